//! Making json and jsonb of SQL values: to_json, json_build_*, json_object, row_to_json, json_agg.

use super::jsonb_output;
use super::stored::{self, Jsonb, Members};
use crate::args::*;
use crate::functions::text::check_size;
use crate::io::natural_type;
use crate::registry::{AggregateState, BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{ArrayValue, Datum, Env, Text, oids, type_info};
use base::{Oid, Result, SqlError, SqlState, bail};
use std::collections::HashSet;
use std::fmt::Write;

/// Appends a string as json.
pub(super) fn push_string(s: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (i, b) in s.bytes().enumerate() {
        if b >= b' ' && b != b'"' && b != b'\\' {
            continue;
        }
        out.push_str(&s[plain..i]);
        plain = i + 1;
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b => _ = write!(out, "\\u{b:04x}"),
        }
    }
    out.push_str(&s[plain..]);
    out.push('"');
}

/// What a value becomes.
enum Form {
    Null,
    Bool(bool),
    /// A number's text.
    Number(String),
    String(String),
    /// json as it is written.
    Json,
    Jsonb,
    Array,
    Record,
}

fn form(ty: Oid, v: &Datum, env: &dyn Env) -> Result<Form> {
    let number = |v: &Datum| -> Result<Form> {
        let s = crate::io::to_text(ty, v, env)?;
        let plain = s.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e'));
        Ok(if plain { Form::Number(s) } else { Form::String(s) })
    };
    Ok(match v {
        Datum::Null => Form::Null,
        Datum::Bool(b) => Form::Bool(*b),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => number(v)?,
        Datum::Text(_) if ty == oids::JSON => Form::Json,
        Datum::Jsonb(_) => Form::Jsonb,
        Datum::Array(_) => Form::Array,
        Datum::Record(_) => Form::Record,
        Datum::Date(d) => Form::String(crate::datetime::iso_date(*d)),
        Datum::Timestamp(t) => Form::String(crate::datetime::iso_timestamp(*t, None)),
        Datum::TimestampTz(t) => {
            Form::String(crate::datetime::iso_timestamp(*t, Some(&env.style().time_zone)))
        }
        _ => Form::String(crate::io::to_text(ty, v, env)?),
    })
}

fn type_of(types: &[Oid], i: usize, v: &Datum) -> Oid {
    match types.get(i).copied() {
        Some(t) if type_info(t).is_some_and(|t| t.kind != 'p') => t,
        _ => natural_type(v),
    }
}

/// Appends a value as json.
///
/// # Errors
/// What its text form says.
pub fn push_json(ty: Oid, v: &Datum, env: &dyn Env, lines: bool, out: &mut String) -> Result<()> {
    match form(ty, v, env)? {
        Form::Null => out.push_str("null"),
        Form::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Form::Number(s) => out.push_str(&s),
        Form::String(s) => push_string(&s, out),
        Form::Json | Form::Jsonb => match v {
            Datum::Jsonb(j) => jsonb_output(j.view(), out),
            Datum::Text(t) => out.push_str(t),
            _ => {}
        },
        Form::Array => {
            if let Datum::Array(a) = v {
                push_array(a, env, lines, out)?;
            }
        }
        Form::Record => {
            if let Datum::Record(r) = v {
                out.push('{');
                for (i, f) in r.fields.iter().enumerate() {
                    if i > 0 {
                        out.push_str(if lines { ",\n " } else { "," });
                    }
                    let c = r.columns.get(i);
                    push_string(c.map_or("", |c| c.name.as_str()), out);
                    out.push(':');
                    push_json(
                        c.map_or_else(|| natural_type(f), |c| c.type_oid),
                        f,
                        env,
                        false,
                        out,
                    )?;
                }
                out.push('}');
            }
        }
    }
    Ok(())
}

fn push_array(a: &ArrayValue, env: &dyn Env, lines: bool, out: &mut String) -> Result<()> {
    fn level(
        a: &ArrayValue,
        d: usize,
        at: &mut usize,
        env: &dyn Env,
        lines: bool,
        out: &mut String,
    ) -> Result<()> {
        out.push('[');
        let n = a.dims.get(d).map_or(0, |d| d.0);
        for i in 0..n {
            if i > 0 {
                out.push_str(if lines { ",\n " } else { "," });
            }
            if d + 1 < a.dims.len() {
                level(a, d + 1, at, env, false, out)?;
            } else {
                if let Some(e) = a.elements.get(*at) {
                    push_json(a.element_type, e, env, false, out)?;
                }
                *at += 1;
            }
        }
        out.push(']');
        Ok(())
    }
    level(a, 0, &mut 0, env, lines, out)
}

/// Writes a value as jsonb.
///
/// # Errors
/// What its text form says.
pub(super) fn put(ty: Oid, v: &Datum, env: &dyn Env, out: &mut Vec<u8>) -> Result<()> {
    match (form(ty, v, env)?, v) {
        (Form::Bool(b), _) => stored::put_bool(b, out),
        (Form::Number(s), _) => super::read::number(&s, out)?,
        (Form::String(s), _) => stored::put_string(&s, out),
        (Form::Json, Datum::Text(t)) => super::read::put(t, out)?,
        (Form::Jsonb, Datum::Jsonb(j)) => out.extend_from_slice(j.bytes()),
        (Form::Array, Datum::Array(a)) => put_dimension(a, 0, &mut 0, env, out)?,
        (Form::Record, Datum::Record(r)) => {
            let mut members = Members::default();
            for (i, f) in r.fields.iter().enumerate() {
                let c = r.columns.get(i);
                let ty = c.map_or_else(|| natural_type(f), |c| c.type_oid);
                let name = c.map_or("", |c| c.name.as_str());
                members.add(name, |out| put(ty, f, env, out))?;
            }
            members.put(out)?;
        }
        _ => stored::put_null(out),
    }
    Ok(())
}

fn put_dimension(
    a: &ArrayValue,
    d: usize,
    at: &mut usize,
    env: &dyn Env,
    out: &mut Vec<u8>,
) -> Result<()> {
    stored::put_array(out, |out, ended| {
        for _ in 0..a.dims.get(d).map_or(0, |d| d.0) {
            if d + 1 < a.dims.len() {
                put_dimension(a, d + 1, at, env, out)?;
            } else {
                let element = a.elements.get(*at).unwrap_or(&Datum::Null);
                put(a.element_type, element, env, out)?;
                *at += 1;
            }
            ended(out.len());
        }
        Ok(())
    })
}

/// An object's key: any scalar's text.
pub(super) fn key(ty: Oid, v: &Datum, env: &dyn Env) -> Result<String> {
    Ok(match form(ty, v, env)? {
        Form::Null => bail!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key"),
        Form::Bool(b) => b.to_string(),
        Form::Number(s) | Form::String(s) => s,
        _ => bail!(
            INVALID_PARAMETER_VALUE,
            "key value must be scalar, not array, composite, or json"
        ),
    })
}

fn json_text(s: String) -> Datum {
    Datum::Text(Text::from(s))
}

/// The jsonb that `write` writes.
fn made(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Datum> {
    Jsonb::write(write).map(Datum::Jsonb)
}

fn even(a: &[Datum]) -> Result<()> {
    if a.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        "argument list must have even number of elements",
    )
    .hint("The arguments of json_build_object() must consist of alternating keys and values.")
    .into())
}

fn build_array(env: &dyn Env, a: &[Datum], types: &[Oid], _: Oid) -> Result<Datum> {
    let mut out = String::from("[");
    for (i, v) in a.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        push_json(type_of(types, i, v), v, env, false, &mut out)?;
    }
    out.push(']');
    check_size(out.len())?;
    Ok(json_text(out))
}

fn build_object(env: &dyn Env, a: &[Datum], types: &[Oid], _: Oid) -> Result<Datum> {
    even(a)?;
    let mut out = String::from("{");
    for (i, pair) in a.chunks_exact(2).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        push_string(&key(type_of(types, 2 * i, &pair[0]), &pair[0], env)?, &mut out);
        out.push_str(" : ");
        push_json(type_of(types, 2 * i + 1, &pair[1]), &pair[1], env, false, &mut out)?;
    }
    out.push('}');
    check_size(out.len())?;
    Ok(json_text(out))
}

fn build_array_b(env: &dyn Env, a: &[Datum], types: &[Oid], _: Oid) -> Result<Datum> {
    made(|out| {
        stored::put_array(out, |out, ended| {
            for (i, v) in a.iter().enumerate() {
                put(type_of(types, i, v), v, env, out)?;
                ended(out.len());
            }
            Ok(())
        })
    })
}

fn build_object_b(env: &dyn Env, a: &[Datum], types: &[Oid], _: Oid) -> Result<Datum> {
    if !a.len().is_multiple_of(2) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "argument list must have even number of elements",
        )
        .hint("The arguments of jsonb_build_object() must consist of alternating keys and values.")
        .into());
    }
    let mut members = Members::default();
    for (i, pair) in a.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            bail!(INVALID_PARAMETER_VALUE, "argument {}: key must not be null", 2 * i + 1);
        }
        let k = key(type_of(types, 2 * i, &pair[0]), &pair[0], env)?;
        members.add(k, |out| put(type_of(types, 2 * i + 1, &pair[1]), &pair[1], env, out))?;
    }
    made(|out| members.put(out))
}

/// Keys and values of json_object: from one array of pairs, or from two arrays.
fn pairs(a: &[Datum]) -> Result<Vec<(String, Option<String>)>> {
    let of = |d: &Datum| match d {
        Datum::Text(t) => Some(t.to_string()),
        _ => None,
    };
    let named = |k: &Datum| {
        of(k).ok_or_else(|| {
            base::err!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key")
        })
    };
    let first = array(a, 0)?;
    let mut out = Vec::new();
    if a.len() > 1 {
        let second = array(a, 1)?;
        if first.dims.len() > 1 || first.dims.len() != second.dims.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
        }
        if first.elements.len() != second.elements.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions");
        }
        for (k, v) in first.elements.iter().zip(&second.elements) {
            out.push((named(k)?, of(v)));
        }
        return Ok(out);
    }
    match first.dims.as_slice() {
        [] => {}
        [(n, _)] if n % 2 != 0 => {
            bail!(ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements")
        }
        [_] => {}
        [_, (2, _)] => {}
        [_, _] => bail!(ARRAY_SUBSCRIPT_ERROR, "array must have two columns"),
        _ => bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"),
    }
    for p in first.elements.chunks_exact(2) {
        out.push((named(&p[0])?, of(&p[1])));
    }
    Ok(out)
}

const JSON_OBJECT: FunctionBody = S(|_, a| {
    let mut out = String::from("{");
    for (i, (k, v)) in pairs(a)?.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        push_string(&k, &mut out);
        out.push_str(" : ");
        match v {
            Some(v) => push_string(&v, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    check_size(out.len())?;
    Ok(json_text(out))
});

const JSONB_OBJECT: FunctionBody = S(|_, a| {
    let mut members = Members::default();
    for (k, v) in pairs(a)? {
        members.add(k, |out| {
            match v {
                Some(v) => stored::put_string(&v, out),
                None => stored::put_null(out),
            }
            Ok(())
        })?;
    }
    made(|out| members.put(out))
});

const TO_JSON: FunctionBody = FunctionBody::ScalarTyped(|env, a, types, _| {
    let mut out = String::new();
    let Some(v) = a.first() else { return Ok(Datum::Null) };
    let lines = a.len() > 1 && boolean(a, 1)?;
    push_json(type_of(types, 0, v), v, env, lines, &mut out)?;
    check_size(out.len())?;
    Ok(json_text(out))
});

/// json_agg and jsonb_agg.
struct Items {
    ty: Oid,
    binary: bool,
    strict: bool,
    text: String,
    /// jsonb_agg's elements behind each other, and where each ends.
    elements: Vec<u8>,
    ends: Vec<usize>,
    any: bool,
}

impl AggregateState for Items {
    fn add(&mut self, env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.any = true;
        let null = Datum::Null;
        let v = args.first().unwrap_or(&null);
        if v.is_null() && self.strict {
            return Ok(());
        }
        let ty = type_of(&[self.ty], 0, v);
        if self.binary {
            put(ty, v, env, &mut self.elements)?;
            self.ends.push(self.elements.len());
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push_str(", ");
            if matches!(v, Datum::Array(_) | Datum::Record(_)) {
                self.text.push_str("\n ");
            }
        }
        push_json(ty, v, env, false, &mut self.text)?;
        check_size(self.text.len())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.binary {
            return made(|out| {
                stored::put_array(out, |out, ended| {
                    out.extend_from_slice(&self.elements);
                    self.ends.iter().for_each(|end| ended(*end));
                    Ok(())
                })
            });
        }
        Ok(json_text(format!("[{}]", self.text)))
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.text.capacity() + self.elements.capacity() + self.ends.capacity() * 8 + 64)
    }
}

/// json_object_agg and jsonb_object_agg.
struct ObjectAgg {
    types: [Oid; 2],
    binary: bool,
    strict: bool,
    unique: bool,
    text: String,
    members: Members<String>,
    /// The keys so far, where none may come twice.
    keys: HashSet<String>,
    /// How long the keys are together, wherever they are kept.
    keys_bytes: usize,
    any: bool,
}

impl AggregateState for ObjectAgg {
    fn add(&mut self, env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.any = true;
        let [k, v] = args else { return Ok(()) };
        if k.is_null() && self.binary {
            base::bail!(INVALID_PARAMETER_VALUE, "field name must not be null");
        }
        let skipped = v.is_null() && self.strict;
        if skipped && !self.unique && !k.is_null() {
            return Ok(());
        }
        let k = key(type_of(&self.types, 0, k), k, env)?;
        let ty = type_of(&self.types, 1, v);
        let kept = usize::from(self.unique) + usize::from(self.binary && !skipped);
        self.keys_bytes += kept * k.len();
        if self.unique && !self.keys.insert(k.clone()) {
            let mut message = "duplicate JSON object key value".to_owned();
            if !self.binary {
                message.push_str(": ");
                push_string(&k, &mut message);
            }
            return Err(SqlError::new(SqlState::DUPLICATE_JSON_OBJECT_KEY_VALUE, message).into());
        }
        if skipped {
            return Ok(());
        }
        if self.binary {
            return self.members.add(k, |out| put(ty, v, env, out));
        }
        self.text.push_str(if self.text.is_empty() { "{ " } else { ", " });
        push_string(&k, &mut self.text);
        self.text.push_str(" : ");
        push_json(ty, v, env, false, &mut self.text)?;
        check_size(self.text.len())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.binary {
            return made(|out| self.members.put(out));
        }
        if self.text.is_empty() {
            return Ok(json_text("{  }".to_owned()));
        }
        Ok(json_text(format!("{} }}", self.text)))
    }
    fn memory_bytes(&self) -> Option<usize> {
        let keys = self.keys.len() * 64 + self.keys_bytes;
        Some(self.text.capacity() + self.members.memory_bytes() + keys + 64)
    }
}

macro_rules! items {
    ($binary:literal, $strict:literal) => {
        FunctionBody::Aggregate(|types, _| {
            Box::new(Items {
                ty: types.first().copied().unwrap_or_default(),
                binary: $binary,
                strict: $strict,
                text: String::new(),
                elements: Vec::new(),
                ends: Vec::new(),
                any: false,
            })
        })
    };
}

macro_rules! members {
    ($binary:literal, $strict:literal, $unique:literal) => {
        FunctionBody::Aggregate(|types, _| {
            let ty = |i: usize| types.get(i).copied().unwrap_or_default();
            Box::new(ObjectAgg {
                types: [ty(0), ty(1)],
                binary: $binary,
                strict: $strict,
                unique: $unique,
                text: String::new(),
                members: Members::default(),
                keys: HashSet::new(),
                keys_bytes: 0,
                any: false,
            })
        })
    };
}

pub(super) const BODIES: BodyTable = &[
    ("to_json", TO_JSON),
    ("row_to_json", TO_JSON),
    ("row_to_json_pretty", TO_JSON),
    ("array_to_json", TO_JSON),
    ("array_to_json_pretty", TO_JSON),
    (
        "to_jsonb",
        FunctionBody::ScalarTyped(|env, a, types, _| {
            let Some(v) = a.first() else { return Ok(Datum::Null) };
            made(|out| put(type_of(types, 0, v), v, env, out))
        }),
    ),
    ("json_build_array", FunctionBody::ScalarTyped(build_array)),
    ("json_build_array_noargs", FunctionBody::ScalarTyped(build_array)),
    ("json_build_object", FunctionBody::ScalarTyped(build_object)),
    ("json_build_object_noargs", FunctionBody::ScalarTyped(build_object)),
    ("jsonb_build_array", FunctionBody::ScalarTyped(build_array_b)),
    ("jsonb_build_array_noargs", FunctionBody::ScalarTyped(build_array_b)),
    ("jsonb_build_object", FunctionBody::ScalarTyped(build_object_b)),
    ("jsonb_build_object_noargs", FunctionBody::ScalarTyped(build_object_b)),
    ("json_object", JSON_OBJECT),
    ("json_object_two_arg", JSON_OBJECT),
    ("jsonb_object", JSONB_OBJECT),
    ("jsonb_object_two_arg", JSONB_OBJECT),
    ("json_agg(anyelement)", items!(false, false)),
    ("json_agg_strict(anyelement)", items!(false, true)),
    ("jsonb_agg(anyelement)", items!(true, false)),
    ("jsonb_agg_strict(anyelement)", items!(true, true)),
    ("json_object_agg(any,any)", members!(false, false, false)),
    ("json_object_agg_strict(any,any)", members!(false, true, false)),
    ("json_object_agg_unique(any,any)", members!(false, false, true)),
    ("json_object_agg_unique_strict(any,any)", members!(false, true, true)),
    ("jsonb_object_agg(any,any)", members!(true, false, false)),
    ("jsonb_object_agg_strict(any,any)", members!(true, true, false)),
    ("jsonb_object_agg_unique(any,any)", members!(true, false, true)),
    ("jsonb_object_agg_unique_strict(any,any)", members!(true, true, true)),
];
