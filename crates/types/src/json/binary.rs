//! The operators and functions of jsonb.

use super::raw::path_index;
use super::stored::{self, Array, Jsonb, Members, Object, View, view};
use super::text::steps;
use super::{jsonb_compare, jsonb_output, type_name};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S, RowIter};
use crate::{Datum, Env, oids};
use base::{Oid, Result, SqlError, SqlState, bail, err};
use std::cmp::Ordering;
use std::collections::HashSet;

fn jsonb(a: &[Datum], i: usize) -> Result<&Jsonb> {
    match a.get(i) {
        Some(Datum::Jsonb(v)) => Ok(v),
        other => Err(err!(INTERNAL_ERROR, "expected jsonb, got {other:?}")),
    }
}

fn seen(a: &[Datum], i: usize) -> Result<View<'_>> {
    jsonb(a, i).map(Jsonb::view)
}

/// The value that `write` writes.
fn made(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Datum> {
    Jsonb::write(write).map(Datum::Jsonb)
}

fn part(v: Option<&[u8]>) -> Result<Datum> {
    Ok(v.map_or(Datum::Null, |v| Datum::Jsonb(Jsonb::part(v))))
}

/// A part as SQL text: strings without quotes, null as NULL.
fn as_text(v: Option<&[u8]>) -> Result<Datum> {
    Ok(match v.map(view) {
        None | Some(View::Null) => Datum::Null,
        Some(View::String(s)) => Datum::text(s),
        Some(v) => {
            let mut s = String::new();
            jsonb_output(v, &mut s);
            Datum::text(s)
        }
    })
}

/// An element of an array; a scalar is its own only element.
fn root_element(v: &Jsonb, i: i64) -> Option<&[u8]> {
    match v.view() {
        View::Array(items) => items.get(i),
        View::Object(_) => None,
        _ => (i == 0 || i == -1).then(|| v.bytes()),
    }
}

fn at_path<'a>(v: &'a Jsonb, path: &[&str]) -> Option<&'a [u8]> {
    let mut at = v.bytes();
    for step in path {
        at = match view(at) {
            View::Object(members) => members.get(step)?,
            View::Array(items) => items.get(path_index(step)?.into())?,
            _ => return None,
        };
    }
    Some(at)
}

fn field(a: &[Datum]) -> Result<Option<&[u8]>> {
    Ok(match seen(a, 0)? {
        View::Object(members) => members.get(text(a, 1)?),
        _ => None,
    })
}

fn index(step: &str, position: usize) -> Result<i64> {
    path_index(step).map(i64::from).ok_or_else(|| {
        err!(
            INVALID_TEXT_REPRESENTATION,
            "path element at position {position} is not an integer: \"{step}\""
        )
    })
}

fn same(a: View, b: View) -> bool {
    jsonb_compare(a, b) == Ordering::Equal
}

/// `a @> b`
fn contains(a: View, b: View, env: &dyn Env) -> Result<bool> {
    match a {
        View::Array(items) if b.is_scalar() => {
            Ok(items.iter().map(view).any(|i| i.is_scalar() && same(i, b)))
        }
        _ => contains_deep(a, b, env),
    }
}

fn contains_deep(a: View, b: View, env: &dyn Env) -> Result<bool> {
    match (a, b) {
        (View::Object(x), View::Object(y)) => {
            if y.len() > x.len() {
                return Ok(false);
            }
            for (k, v) in y.iter() {
                match x.get(k) {
                    Some(w) if contains_deep(view(w), view(v), env)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (View::Array(x), View::Array(y)) => {
            for v in y.iter().map(view) {
                // Each of the one is looked for in all of the other.
                env.check_cancel()?;
                if !has_element(x, v, env)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a.is_scalar() && b.is_scalar() && same(a, b)),
    }
}

fn has_element(items: Array, v: View, env: &dyn Env) -> Result<bool> {
    if v.is_scalar() {
        return Ok(items.iter().map(view).any(|w| w.is_scalar() && same(w, v)));
    }
    for w in items.iter().map(view) {
        if contains_deep(w, v, env)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn exists(v: View, key: &str) -> bool {
    match v {
        View::Object(members) => members.get(key).is_some(),
        View::Array(items) => items.iter().any(|i| matches!(view(i), View::String(s) if s == key)),
        View::String(s) => s == key,
        _ => false,
    }
}

fn strings(a: &[Datum], i: usize) -> Result<impl Iterator<Item = &str>> {
    Ok(array(a, i)?.elements.iter().filter_map(|e| match e {
        Datum::Text(t) => Some(t.as_str()),
        _ => None,
    }))
}

/// Writes an array of these elements.
fn put_elements<'a>(items: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> Result<()> {
    stored::put_array(out, |out, ended| {
        for item in items {
            out.extend_from_slice(item);
            ended(out.len());
        }
        Ok(())
    })
}

/// A copy of a part.
fn put_part(part: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(part);
    Ok(())
}

fn concat(a: &Jsonb, b: &Jsonb) -> Result<Datum> {
    if let (View::Object(x), View::Object(y)) = (a.view(), b.view()) {
        let mut members = Members::default();
        for (k, v) in x.iter().chain(y.iter()) {
            members.add(k, |out| put_part(v, out))?;
        }
        return made(|out| members.put(out));
    }
    fn list(v: &Jsonb) -> Vec<&[u8]> {
        match v.view() {
            View::Array(items) => items.iter().collect(),
            _ => vec![v.bytes()],
        }
    }
    made(|out| put_elements(list(a).into_iter().chain(list(b)), out))
}

fn delete<'a>(v: &Jsonb, keys: impl Iterator<Item = &'a str>) -> Result<Datum> {
    let keys: HashSet<&str> = keys.collect();
    match v.view() {
        View::Object(members) => {
            let mut left = Members::default();
            for (k, v) in members.iter().filter(|(k, _)| !keys.contains(k)) {
                left.add(k, |out| put_part(v, out))?;
            }
            made(|out| left.put(out))
        }
        View::Array(items) => {
            let goes = |i: &[u8]| matches!(view(i), View::String(s) if keys.contains(s));
            made(|out| put_elements(items.iter().filter(|i| !goes(i)), out))
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot delete from scalar"),
    }
}

fn delete_index(v: &Jsonb, i: i32) -> Result<Datum> {
    match v.view() {
        View::Array(items) => {
            let n = i64::from(i);
            let n = if n < 0 { n + items.len() as i64 } else { n };
            let left = items.iter().enumerate().filter(|(at, _)| *at as i64 != n);
            made(|out| put_elements(left.map(|(_, item)| item), out))
        }
        View::Object(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot delete from object using integer index")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot delete from scalar"),
    }
}

/// What is done at the end of a path.
#[derive(Clone, Copy)]
enum Change<'a> {
    Delete,
    Set { new: &'a [u8], create: bool },
    Insert { new: &'a [u8], after: bool },
}

/// A path, and how far along it a value is.
#[derive(Clone, Copy)]
struct Step<'a> {
    path: &'a [Option<&'a str>],
    level: usize,
}

impl<'a> Step<'a> {
    /// The step from here, `None` behind the end.
    fn name(self) -> Result<Option<&'a str>> {
        match self.path.get(self.level) {
            None => Ok(None),
            Some(Some(name)) => Ok(Some(name)),
            Some(None) => {
                let position = self.level + 1;
                bail!(NULL_VALUE_NOT_ALLOWED, "path element at position {position} is null")
            }
        }
    }

    fn is_last(self) -> bool {
        self.level + 1 == self.path.len()
    }

    fn next(self) -> Step<'a> {
        Step { level: self.level + 1, ..self }
    }
}

/// Writes a part with the change at the path's end made.
fn change(bytes: &[u8], step: Step, what: Change, out: &mut Vec<u8>) -> Result<()> {
    let Some(name) = step.name()? else { return put_part(bytes, out) };
    match view(bytes) {
        View::Object(members) => change_member(members, name, step, what, out),
        View::Array(items) => change_element(items, name, step, what, out),
        _ => put_part(bytes, out),
    }
}

fn change_member(
    object: Object,
    name: &str,
    step: Step,
    what: Change,
    out: &mut Vec<u8>,
) -> Result<()> {
    let there = object.get(name);
    let mut members = Members::default();
    for (k, v) in object.iter() {
        if k != name {
            members.add(k, |out| put_part(v, out))?;
        }
    }
    match (step.is_last(), what, there) {
        (false, _, Some(v)) => members.add(name, |out| change(v, step.next(), what, out))?,
        (true, Change::Insert { .. }, Some(_)) => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot replace existing key",
            )
            .hint("Try using the function jsonb_set to replace key value.")
            .into());
        }
        (true, Change::Set { new, .. }, Some(_))
        | (true, Change::Set { new, create: true } | Change::Insert { new, .. }, None) => {
            members.add(name, |out| put_part(new, out))?;
        }
        (false, _, None) | (true, Change::Delete | Change::Set { create: false, .. }, _) => {}
    }
    members.put(out)
}

fn change_element(
    items: Array,
    name: &str,
    step: Step,
    what: Change,
    out: &mut Vec<u8>,
) -> Result<()> {
    let n = index(name, step.level + 1)?;
    let n = if n < 0 { n + items.len() as i64 } else { n };
    let at = usize::try_from(n).ok().filter(|n| *n < items.len());
    let mut list: Vec<&[u8]> = items.iter().collect();
    let changed;
    match (step.is_last(), what, at) {
        (false, _, Some(n)) => {
            let mut inner = Vec::new();
            change(list[n], step.next(), what, &mut inner)?;
            changed = inner;
            list[n] = &changed;
        }
        (true, Change::Delete, Some(n)) => {
            list.remove(n);
        }
        (true, Change::Set { new, .. }, Some(n)) => list[n] = new,
        (true, Change::Insert { new, after }, Some(n)) => list.insert(n + usize::from(after), new),
        (true, Change::Set { new, create: true } | Change::Insert { new, .. }, None) => {
            list.insert(if n < 0 { 0 } else { list.len() }, new);
        }
        (false, _, None) | (true, Change::Delete | Change::Set { create: false, .. }, None) => {}
    }
    put_elements(list.into_iter(), out)
}

fn changed(a: &[Datum], what: Change) -> Result<Datum> {
    let v = jsonb(a, 0)?;
    let path = array(a, 1)?;
    if path.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    let is_empty = match v.view() {
        View::Object(members) => members.is_empty(),
        View::Array(items) => items.is_empty(),
        _ => match what {
            Change::Delete => bail!(INVALID_PARAMETER_VALUE, "cannot delete path in scalar"),
            _ => bail!(INVALID_PARAMETER_VALUE, "cannot set path in scalar"),
        },
    };
    if is_empty && matches!(what, Change::Set { create: false, .. } | Change::Delete) {
        return Ok(a[0].clone());
    }
    let names: Vec<Option<&str>> = path
        .elements
        .iter()
        .map(|e| match e {
            Datum::Text(t) => Some(t.as_str()),
            _ => None,
        })
        .collect();
    made(|out| change(v.bytes(), Step { path: &names, level: 0 }, what, out))
}

fn set_to(a: &[Datum], new: &[u8]) -> Result<Datum> {
    let create = a.len() < 4 || boolean(a, 3)?;
    changed(a, Change::Set { new, create })
}

fn set(a: &[Datum]) -> Result<Datum> {
    set_to(a, jsonb(a, 2)?.bytes())
}

fn set_lax(a: &[Datum]) -> Result<Datum> {
    if is_null(a, 0) || is_null(a, 1) || a.len() > 3 && is_null(a, 3) {
        return Ok(Datum::Null);
    }
    if a.len() > 4 && is_null(a, 4) {
        bail!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        );
    }
    if !is_null(a, 2) {
        return set(a);
    }
    let how = if a.len() > 4 && !is_null(a, 4) { text(a, 4)? } else { "use_json_null" };
    match how {
        "raise_exception" => {
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
                .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
                .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
                .into())
        }
        "use_json_null" => {
            let mut null = Vec::new();
            stored::put_null(&mut null);
            set_to(a, &null)
        }
        "delete_key" => changed(a, Change::Delete),
        "return_target" => Ok(a[0].clone()),
        _ => bail!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        ),
    }
}

fn strip_nulls(v: View, bytes: &[u8], in_arrays: bool, out: &mut Vec<u8>) -> Result<()> {
    match v {
        View::Object(object) => {
            let mut members = Members::default();
            for (k, v) in object.iter() {
                let seen = view(v);
                if !matches!(seen, View::Null) {
                    members.add(k, |out| strip_nulls(seen, v, in_arrays, out))?;
                }
            }
            members.put(out)
        }
        View::Array(items) => stored::put_array(out, |out, ended| {
            for item in items.iter() {
                let seen = view(item);
                if in_arrays && matches!(seen, View::Null) {
                    continue;
                }
                strip_nulls(seen, item, in_arrays, out)?;
                ended(out.len());
            }
            Ok(())
        }),
        _ => put_part(bytes, out),
    }
}

fn pretty(v: View, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * 4));
    };
    match v {
        View::Object(members) => {
            out.push('{');
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                super::build::push_string(k, out);
                out.push_str(": ");
                pretty(view(v), depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        View::Array(items) => {
            out.push('[');
            for (i, v) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                pretty(view(v), depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        v => jsonb_output(v, out),
    }
}

fn each(a: &[Datum], name: &str, as_sql: bool) -> Result<RowIter> {
    let View::Object(members) = seen(a, 0)? else {
        bail!(INVALID_PARAMETER_VALUE, "cannot call {name} on a non-object")
    };
    let mut out = Vec::with_capacity(members.len());
    for (k, v) in members.iter() {
        out.push(Ok(vec![Datum::text(k), if as_sql { as_text(Some(v))? } else { part(Some(v))? }]));
    }
    Ok(Box::new(out.into_iter()))
}

fn elements(a: &[Datum], as_sql: bool) -> Result<RowIter> {
    let items = match seen(a, 0)? {
        View::Array(items) => items,
        View::Object(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot extract elements from an object")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot extract elements from a scalar"),
    };
    let mut out = Vec::with_capacity(items.len());
    for v in items.iter() {
        out.push(Ok(vec![if as_sql { as_text(Some(v))? } else { part(Some(v))? }]));
    }
    Ok(Box::new(out.into_iter()))
}

fn keys(_: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let members = match seen(a, 0)? {
        View::Object(members) => members,
        View::Array(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot call jsonb_object_keys on an array")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot call jsonb_object_keys on a scalar"),
    };
    let out: Vec<_> = members.iter().map(|(k, _)| Ok(vec![Datum::text(k)])).collect();
    Ok(Box::new(out.into_iter()))
}

/// A value's kind as casts name it.
fn sql_name(v: View) -> &'static str {
    match v {
        View::Integer(_) | View::Number(_) => "numeric",
        v => type_name(v),
    }
}

/// A number as another type: as numeric casts.
fn cast(env: &dyn Env, a: &[Datum], what: &str, name: &str) -> Result<Datum> {
    let v = seen(a, 0)?;
    let n = match (v, v.number()) {
        (View::Null, _) => return Ok(Datum::Null),
        (_, Some(n)) => n,
        (other, None) => {
            let of = sql_name(other);
            bail!(INVALID_PARAMETER_VALUE, "cannot cast jsonb {of} to type {what}");
        }
    };
    let n = Datum::Numeric(Box::new(n));
    if name == "numeric" {
        return Ok(n);
    }
    match crate::registry::function_exact(name, &[oids::NUMERIC]).map(|f| &f.body) {
        Some(FunctionBody::Scalar(body)) => body(env, &[n]),
        Some(FunctionBody::ScalarTyped(body)) => body(env, &[n], &[oids::NUMERIC], Oid(0)),
        _ => bail!(INTERNAL_ERROR, "no cast from numeric to {what}"),
    }
}

pub(super) const BODIES: BodyTable = &[
    ("jsonb_typeof", S(|_, a| Ok(Datum::text(type_name(seen(a, 0)?))))),
    ("jsonb_object_field", S(|_, a| part(field(a)?))),
    ("jsonb_object_field_text", S(|_, a| as_text(field(a)?))),
    ("jsonb_array_element", S(|_, a| part(root_element(jsonb(a, 0)?, int4(a, 1)?.into())))),
    ("jsonb_array_element_text", S(|_, a| as_text(root_element(jsonb(a, 0)?, int4(a, 1)?.into())))),
    (
        "jsonb_extract_path",
        S(|_, a| match steps(a, 1)? {
            Some(p) => part(at_path(jsonb(a, 0)?, &p)),
            None => Ok(Datum::Null),
        }),
    ),
    (
        "jsonb_extract_path_text",
        S(|_, a| match steps(a, 1)? {
            Some(p) => as_text(at_path(jsonb(a, 0)?, &p)),
            None => Ok(Datum::Null),
        }),
    ),
    ("jsonb_contains", S(|env, a| contains(seen(a, 0)?, seen(a, 1)?, env).map(Datum::Bool))),
    ("jsonb_contained", S(|env, a| contains(seen(a, 1)?, seen(a, 0)?, env).map(Datum::Bool))),
    ("jsonb_exists", S(|_, a| Ok(Datum::Bool(exists(seen(a, 0)?, text(a, 1)?))))),
    (
        "jsonb_exists_any",
        S(|_, a| {
            let v = seen(a, 0)?;
            Ok(Datum::Bool(strings(a, 1)?.any(|k| exists(v, k))))
        }),
    ),
    (
        "jsonb_exists_all",
        S(|_, a| {
            let v = seen(a, 0)?;
            Ok(Datum::Bool(strings(a, 1)?.all(|k| exists(v, k))))
        }),
    ),
    ("jsonb_concat", S(|_, a| concat(jsonb(a, 0)?, jsonb(a, 1)?))),
    ("jsonb_delete", S(|_, a| delete(jsonb(a, 0)?, std::iter::once(text(a, 1)?)))),
    ("jsonb_delete_idx", S(|_, a| delete_index(jsonb(a, 0)?, int4(a, 1)?))),
    (
        "jsonb_delete_array",
        S(|_, a| {
            if array(a, 1)?.dims.len() > 1 {
                bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
            }
            delete(jsonb(a, 0)?, strings(a, 1)?)
        }),
    ),
    ("jsonb_delete_path", S(|_, a| changed(a, Change::Delete))),
    ("jsonb_set", S(|_, a| set(a))),
    ("jsonb_set_lax", S(|_, a| set_lax(a))),
    (
        "jsonb_insert",
        S(|_, a| {
            let after = a.len() > 3 && boolean(a, 3)?;
            changed(a, Change::Insert { new: jsonb(a, 2)?.bytes(), after })
        }),
    ),
    (
        "jsonb_strip_nulls",
        S(|_, a| {
            let (v, in_arrays) = (jsonb(a, 0)?, a.len() > 1 && boolean(a, 1)?);
            made(|out| strip_nulls(v.view(), v.bytes(), in_arrays, out))
        }),
    ),
    (
        "jsonb_pretty",
        S(|_, a| {
            let mut s = String::new();
            pretty(seen(a, 0)?, 0, &mut s);
            Ok(Datum::text(s))
        }),
    ),
    (
        "jsonb_array_length",
        S(|_, a| match seen(a, 0)? {
            View::Array(items) => Ok(Datum::Int4(items.len() as i32)),
            View::Object(_) => {
                bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a non-array")
            }
            _ => bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a scalar"),
        }),
    ),
    ("jsonb_each", FunctionBody::Set(|_, a| each(a, "jsonb_each", false))),
    ("jsonb_each_text", FunctionBody::Set(|_, a| each(a, "jsonb_each_text", true))),
    ("jsonb_array_elements", FunctionBody::Set(|_, a| elements(a, false))),
    ("jsonb_array_elements_text", FunctionBody::Set(|_, a| elements(a, true))),
    ("jsonb_object_keys", FunctionBody::Set(keys)),
    (
        "jsonb_bool",
        S(|_, a| match seen(a, 0)? {
            View::Null => Ok(Datum::Null),
            View::Bool(b) => Ok(Datum::Bool(b)),
            other => bail!(
                INVALID_PARAMETER_VALUE,
                "cannot cast jsonb {} to type boolean",
                sql_name(other)
            ),
        }),
    ),
    ("jsonb_numeric", S(|env, a| cast(env, a, "numeric", "numeric"))),
    ("jsonb_int2", S(|env, a| cast(env, a, "smallint", "int2"))),
    ("jsonb_int4", S(|env, a| cast(env, a, "integer", "int4"))),
    ("jsonb_int8", S(|env, a| cast(env, a, "bigint", "int8"))),
    ("jsonb_float4", S(|env, a| cast(env, a, "real", "float4"))),
    ("jsonb_float8", S(|env, a| cast(env, a, "double precision", "float8"))),
];
