//! Making json and jsonb of SQL values: to_json, json_build_*, json_object, row_to_json, json_agg.

use super::jsonb_output;
use crate::args::*;
use crate::io::natural_type;
use crate::registry::{AggregateState, BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{ArrayValue, Datum, Env, Text, oids, type_info};
use base::{Oid, Result, SqlError, SqlState, bail};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Appends a string as json.
pub(super) fn push_string(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
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
        Datum::Array(_) if ty != oids::INT2VECTOR && ty != oids::OIDVECTOR => Form::Array,
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
            Datum::Jsonb(j) => jsonb_output(j, out),
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

/// A value as jsonb.
///
/// # Errors
/// What its text form says.
pub fn to_value(ty: Oid, v: &Datum, env: &dyn Env) -> Result<Value> {
    Ok(match form(ty, v, env)? {
        Form::Null => Value::Null,
        Form::Bool(b) => Value::Bool(b),
        Form::Number(s) => super::number(&s)?,
        Form::String(s) => Value::String(s),
        Form::Json => match v {
            Datum::Text(t) => super::parse(t)?,
            _ => Value::Null,
        },
        Form::Jsonb => match v {
            Datum::Jsonb(j) => (**j).clone(),
            _ => Value::Null,
        },
        Form::Array => match v {
            Datum::Array(a) => array_value(a, 0, &mut 0, env)?,
            _ => Value::Null,
        },
        Form::Record => match v {
            Datum::Record(r) => {
                let mut map = Map::new();
                for (i, f) in r.fields.iter().enumerate() {
                    let c = r.columns.get(i);
                    let ty = c.map_or_else(|| natural_type(f), |c| c.type_oid);
                    let name = c.map_or("", |c| c.name.as_str());
                    map.insert(name.to_owned(), to_value(ty, f, env)?);
                }
                Value::Object(map)
            }
            _ => Value::Null,
        },
    })
}

fn array_value(a: &ArrayValue, d: usize, at: &mut usize, env: &dyn Env) -> Result<Value> {
    let mut out = Vec::new();
    for _ in 0..a.dims.get(d).map_or(0, |d| d.0) {
        if d + 1 < a.dims.len() {
            out.push(array_value(a, d + 1, at, env)?);
        } else {
            if let Some(e) = a.elements.get(*at) {
                out.push(to_value(a.element_type, e, env)?);
            }
            *at += 1;
        }
    }
    Ok(Value::Array(out))
}

/// An object's key: any scalar's text.
fn key(ty: Oid, v: &Datum, env: &dyn Env) -> Result<String> {
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

fn wrap(v: Value) -> Datum {
    Datum::Jsonb(Arc::new(v))
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
    Ok(json_text(out))
}

fn build_array_b(env: &dyn Env, a: &[Datum], types: &[Oid], _: Oid) -> Result<Datum> {
    let mut out = Vec::new();
    for (i, v) in a.iter().enumerate() {
        out.push(to_value(type_of(types, i, v), v, env)?);
    }
    Ok(wrap(Value::Array(out)))
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
    let mut map = Map::new();
    for (i, pair) in a.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            bail!(INVALID_PARAMETER_VALUE, "argument {}: key must not be null", 2 * i + 1);
        }
        let k = key(type_of(types, 2 * i, &pair[0]), &pair[0], env)?;
        map.insert(k, to_value(type_of(types, 2 * i + 1, &pair[1]), &pair[1], env)?);
    }
    Ok(wrap(super::sorted(Value::Object(map))))
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
    Ok(json_text(out))
});

const JSONB_OBJECT: FunctionBody = S(|_, a| {
    let mut map = Map::new();
    for (k, v) in pairs(a)? {
        map.insert(k, v.map_or(Value::Null, Value::String));
    }
    Ok(wrap(super::sorted(Value::Object(map))))
});

const TO_JSON: FunctionBody = FunctionBody::ScalarTyped(|env, a, types, _| {
    let mut out = String::new();
    let Some(v) = a.first() else { return Ok(Datum::Null) };
    let lines = a.len() > 1 && boolean(a, 1)?;
    push_json(type_of(types, 0, v), v, env, lines, &mut out)?;
    Ok(json_text(out))
});

/// json_agg and jsonb_agg.
struct Items {
    ty: Oid,
    binary: bool,
    strict: bool,
    text: String,
    values: Vec<Value>,
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
            self.values.push(to_value(ty, v, env)?);
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push_str(", ");
            if matches!(v, Datum::Array(_) | Datum::Record(_)) {
                self.text.push_str("\n ");
            }
        }
        push_json(ty, v, env, false, &mut self.text)
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.binary {
            return Ok(wrap(Value::Array(self.values.clone())));
        }
        Ok(json_text(format!("[{}]", self.text)))
    }
    fn memory_bytes(&self) -> usize {
        self.text.capacity() + self.values.len() * 64 + 64
    }
}

/// json_object_agg and jsonb_object_agg.
struct Members {
    types: [Oid; 2],
    binary: bool,
    strict: bool,
    unique: bool,
    text: String,
    map: Map<String, Value>,
    any: bool,
}

impl AggregateState for Members {
    fn add(&mut self, env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.any = true;
        let [k, v] = args else { return Ok(()) };
        if k.is_null() && self.binary {
            base::bail!(INVALID_PARAMETER_VALUE, "field name must not be null");
        }
        if v.is_null() && self.strict && !k.is_null() {
            return Ok(());
        }
        let k = key(type_of(&self.types, 0, k), k, env)?;
        let ty = type_of(&self.types, 1, v);
        if self.unique && self.map.contains_key(&k) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_JSON_OBJECT_KEY_VALUE,
                format!("duplicate JSON object key value: {}", Value::from(k)),
            )
            .into());
        }
        if self.binary {
            self.map.insert(k, to_value(ty, v, env)?);
            return Ok(());
        }
        self.text.push_str(if self.text.is_empty() { "{ " } else { ", " });
        push_string(&k, &mut self.text);
        self.text.push_str(" : ");
        push_json(ty, v, env, false, &mut self.text)?;
        if self.unique {
            self.map.insert(k, Value::Null);
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.binary {
            return Ok(wrap(super::sorted(Value::Object(self.map.clone()))));
        }
        if self.text.is_empty() {
            return Ok(json_text("{ }".to_owned()));
        }
        Ok(json_text(format!("{} }}", self.text)))
    }
    fn memory_bytes(&self) -> usize {
        self.text.capacity() + self.map.len() * 96 + 64
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
                values: Vec::new(),
                any: false,
            })
        })
    };
}

macro_rules! members {
    ($binary:literal, $strict:literal, $unique:literal) => {
        FunctionBody::Aggregate(|types, _| {
            let ty = |i: usize| types.get(i).copied().unwrap_or_default();
            Box::new(Members {
                types: [ty(0), ty(1)],
                binary: $binary,
                strict: $strict,
                unique: $unique,
                text: String::new(),
                map: Map::new(),
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
            Ok(wrap(super::sorted(to_value(type_of(types, 0, v), v, env)?)))
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
