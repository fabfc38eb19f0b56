//! The operators and functions of jsonb.

use super::text::steps;
use super::{jsonb_compare, jsonb_output, sorted_keys, type_name};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S, RowIter};
use crate::{Datum, Env, Numeric, oids};
use base::{Oid, Result, SqlError, SqlState, bail, err};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::sync::Arc;

fn jsonb(a: &[Datum], i: usize) -> Result<&Value> {
    match a.get(i) {
        Some(Datum::Jsonb(v)) => Ok(v),
        other => Err(err!(INTERNAL_ERROR, "expected jsonb, got {other:?}")),
    }
}

fn wrap(v: Value) -> Datum {
    Datum::Jsonb(Arc::new(v))
}

fn part(v: Option<&Value>) -> Result<Datum> {
    Ok(v.map_or(Datum::Null, |v| wrap(v.clone())))
}

/// A part as SQL text: strings without quotes, null as NULL.
fn as_text(v: Option<&Value>) -> Result<Datum> {
    Ok(match v {
        None | Some(Value::Null) => Datum::Null,
        Some(Value::String(s)) => Datum::text(s),
        Some(v) => {
            let mut s = String::new();
            jsonb_output(v, &mut s);
            Datum::text(s)
        }
    })
}

/// An element of an array; a scalar is its own only element.
fn root_element(v: &Value, i: i64) -> Option<&Value> {
    match v {
        Value::Array(_) => element(v, i),
        Value::Object(_) => None,
        scalar => {
            if i == 0 || i == -1 {
                Some(scalar)
            } else {
                None
            }
        }
    }
}

fn element(v: &Value, i: i64) -> Option<&Value> {
    let items = v.as_array()?;
    let i = if i < 0 { i + items.len() as i64 } else { i };
    items.get(usize::try_from(i).ok()?)
}

fn at_path<'a>(v: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut at = v;
    for step in path {
        at = match at {
            Value::Object(map) => map.get(*step)?,
            Value::Array(_) => element(at, step.trim().parse::<i32>().ok()?.into())?,
            _ => return None,
        };
    }
    Some(at)
}

/// `v[a][b]…`: NULL when there is no such part. Integers index arrays and name keys.
pub fn subscript(v: &Value, path: &[&str]) -> Datum {
    at_path(v, path).map_or(Datum::Null, |v| wrap(v.clone()))
}

/// `v[a][b]… = new`: as `jsonb_set` that creates, missing parents included.
///
/// # Errors
/// `22023`, `22P02`
pub fn assign(v: &Value, path: &[&str], new: Value) -> Result<Value> {
    let mut out = v.clone();
    let mut at = &mut out;
    for (i, step) in path.iter().enumerate() {
        if at.is_null() {
            let array = step.parse::<i64>().is_ok();
            *at = if array { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        }
        at = match at {
            Value::Object(map) => map.entry(*step).or_insert(Value::Null),
            Value::Array(items) => {
                let n = index(step, i + 1)?;
                let n = if n < 0 { n + items.len() as i64 } else { n };
                let Ok(n) = usize::try_from(n) else {
                    bail!(
                        INVALID_PARAMETER_VALUE,
                        "path element at position {} is out of range: {step}",
                        i + 1
                    )
                };
                if n > 10_000_000 {
                    bail!(
                        PROGRAM_LIMIT_EXCEEDED,
                        "number of jsonb array elements exceeds the maximum allowed"
                    );
                }
                while items.len() <= n {
                    items.push(Value::Null);
                }
                &mut items[n]
            }
            _ => bail!(INVALID_PARAMETER_VALUE, "cannot replace existing key"),
        };
    }
    *at = new;
    Ok(out)
}

fn index(step: &str, position: usize) -> Result<i64> {
    step.trim().parse::<i32>().map(i64::from).map_err(|_| {
        err!(
            INVALID_TEXT_REPRESENTATION,
            "path element at position {position} is not an integer: \"{step}\""
        )
    })
}

fn same(a: &Value, b: &Value) -> bool {
    jsonb_compare(a, b) == Ordering::Equal
}

fn is_scalar(v: &Value) -> bool {
    !v.is_array() && !v.is_object()
}

/// `a @> b`
pub fn contains(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(items), b) if is_scalar(b) => {
            items.iter().any(|i| is_scalar(i) && same(i, b))
        }
        _ => contains_deep(a, b),
    }
}

fn contains_deep(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            y.iter().all(|(k, v)| x.get(k).is_some_and(|w| contains_deep(w, v)))
        }
        (Value::Array(x), Value::Array(y)) => y.iter().all(|v| {
            x.iter().any(|w| {
                if is_scalar(v) { is_scalar(w) && same(w, v) } else { contains_deep(w, v) }
            })
        }),
        (a, b) => is_scalar(a) && is_scalar(b) && same(a, b),
    }
}

fn exists(v: &Value, key: &str) -> bool {
    match v {
        Value::Object(map) => map.contains_key(key),
        Value::Array(items) => items.iter().any(|i| i.as_str() == Some(key)),
        Value::String(s) => s == key,
        _ => false,
    }
}

fn strings(a: &[Datum], i: usize) -> Result<impl Iterator<Item = &str>> {
    Ok(array(a, i)?.elements.iter().filter_map(|e| match e {
        Datum::Text(t) => Some(t.as_str()),
        _ => None,
    }))
}

fn concat(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut map = x.clone();
            for (k, v) in y {
                map.insert(k.clone(), v.clone());
            }
            Value::Object(map)
        }
        _ => {
            let list = |v: &Value| match v {
                Value::Array(items) => items.clone(),
                other => vec![other.clone()],
            };
            let mut all = list(a);
            all.extend(list(b));
            Value::Array(all)
        }
    }
}

fn delete<'a>(v: &Value, keys: impl Iterator<Item = &'a str>) -> Result<Value> {
    let mut v = v.clone();
    let keys: Vec<&str> = keys.collect();
    match &mut v {
        Value::Object(map) => map.retain(|k, _| !keys.contains(&k.as_str())),
        Value::Array(items) => {
            items.retain(|i| i.as_str().is_none_or(|s| !keys.contains(&s)));
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot delete from scalar"),
    }
    Ok(v)
}

fn delete_index(v: &Value, i: i32) -> Result<Value> {
    let mut v = v.clone();
    match &mut v {
        Value::Array(items) => {
            let n = i64::from(i);
            let n = if n < 0 { n + items.len() as i64 } else { n };
            if let Ok(n) = usize::try_from(n)
                && n < items.len()
            {
                items.remove(n);
            }
        }
        Value::Object(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot delete from object using integer index")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot delete from scalar"),
    }
    Ok(v)
}

/// What is done at the end of a path.
#[derive(Clone, Copy)]
enum Change<'a> {
    Delete,
    Set { new: &'a Value, create: bool },
    Insert { new: &'a Value, after: bool },
}

fn change(v: &mut Value, path: &[Option<&str>], level: usize, what: Change) -> Result<()> {
    let Some(step) = path.get(level) else { return Ok(()) };
    let Some(step) = step else {
        bail!(NULL_VALUE_NOT_ALLOWED, "path element at position {} is null", level + 1)
    };
    let last = level + 1 == path.len();
    match v {
        Value::Object(map) => {
            if !last {
                if let Some(inner) = map.get_mut(*step) {
                    return change(inner, path, level + 1, what);
                }
                return Ok(());
            }
            match what {
                Change::Delete => map.retain(|k, _| k != step),
                Change::Set { new, create } => {
                    if create || map.contains_key(*step) {
                        map.insert((*step).to_owned(), new.clone());
                    }
                }
                Change::Insert { new, .. } => {
                    if map.contains_key(*step) {
                        return Err(SqlError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            "cannot replace existing key",
                        )
                        .hint("Try using the function jsonb_set to replace key value.")
                        .into());
                    }
                    map.insert((*step).to_owned(), new.clone());
                }
            }
        }
        Value::Array(items) => {
            let n = index(step, level + 1)?;
            let len = items.len() as i64;
            let n = if n < 0 { n + len } else { n };
            let at = usize::try_from(n).ok().filter(|n| *n < items.len());
            if !last {
                if let Some(inner) = at.and_then(|n| items.get_mut(n)) {
                    return change(inner, path, level + 1, what);
                }
                return Ok(());
            }
            match (what, at) {
                (Change::Delete, Some(n)) => {
                    items.remove(n);
                }
                (Change::Delete, None) => {}
                (Change::Set { new, .. }, Some(n)) => items[n] = new.clone(),
                (Change::Insert { new, after }, Some(n)) => {
                    items.insert(n + usize::from(after), new.clone());
                }
                (Change::Set { create: false, .. }, None) => {}
                (Change::Set { new, .. } | Change::Insert { new, .. }, None) => {
                    let to = if n < 0 { 0 } else { items.len() };
                    items.insert(to, new.clone());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn changed(a: &[Datum], what: Change) -> Result<Datum> {
    let v = jsonb(a, 0)?;
    let path = array(a, 1)?;
    if path.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    if is_scalar(v) {
        match what {
            Change::Delete => bail!(INVALID_PARAMETER_VALUE, "cannot delete path in scalar"),
            _ => bail!(INVALID_PARAMETER_VALUE, "cannot set path in scalar"),
        }
    }
    let mut out = v.clone();
    if (out.as_array().is_some_and(Vec::is_empty) || out.as_object().is_some_and(Map::is_empty))
        && let Change::Set { create: false, .. } | Change::Delete = what
    {
        return Ok(wrap(out));
    }
    let names: Vec<Option<&str>> = path
        .elements
        .iter()
        .map(|e| match e {
            Datum::Text(t) => Some(t.as_str()),
            _ => None,
        })
        .collect();
    change(&mut out, &names, 0, what)?;
    Ok(wrap(out))
}

fn set(a: &[Datum]) -> Result<Datum> {
    let create = a.len() < 4 || boolean(a, 3)?;
    changed(a, Change::Set { new: jsonb(a, 2)?, create })
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
        "raise_exception" => bail!(NULL_VALUE_NOT_ALLOWED, "JSON value must not be null"),
        "use_json_null" => {
            let create = a.len() < 4 || boolean(a, 3)?;
            changed(a, Change::Set { new: &Value::Null, create })
        }
        "delete_key" => changed(a, Change::Delete),
        "return_target" => Ok(a[0].clone()),
        _ => bail!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        ),
    }
}

fn strip_nulls(v: &mut Value, in_arrays: bool) {
    match v {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(|v| strip_nulls(v, in_arrays));
        }
        Value::Array(items) => {
            if in_arrays {
                items.retain(|v| !v.is_null());
            }
            items.iter_mut().for_each(|v| strip_nulls(v, in_arrays));
        }
        _ => {}
    }
}

fn pretty(v: &Value, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * 4));
    };
    match v {
        Value::Object(map) => {
            out.push('{');
            for (i, k) in sorted_keys(map).into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                out.push_str(&Value::from(k.as_str()).to_string());
                out.push_str(": ");
                if let Some(v) = map.get(k) {
                    pretty(v, depth + 1, out);
                }
            }
            line(depth, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, v) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(depth + 1, out);
                pretty(v, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        v => jsonb_output(v, out),
    }
}

fn each(a: &[Datum], name: &str, as_sql: bool) -> Result<RowIter> {
    let Value::Object(map) = jsonb(a, 0)? else {
        bail!(INVALID_PARAMETER_VALUE, "cannot call {name} on a non-object")
    };
    let mut out = Vec::new();
    for k in sorted_keys(map) {
        let v = map.get(k);
        out.push(Ok(vec![Datum::text(k), if as_sql { as_text(v)? } else { part(v)? }]));
    }
    Ok(Box::new(out.into_iter()))
}

fn elements(a: &[Datum], name: &str, as_sql: bool) -> Result<RowIter> {
    let items = match jsonb(a, 0)? {
        Value::Array(items) => items,
        Value::Object(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot extract elements from an object")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot extract elements from a scalar"),
    };
    let _ = name;
    let mut out = Vec::new();
    for v in items {
        out.push(Ok(vec![if as_sql { as_text(Some(v))? } else { wrap(v.clone()) }]));
    }
    Ok(Box::new(out.into_iter()))
}

fn keys(_: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let map = match jsonb(a, 0)? {
        Value::Object(map) => map,
        Value::Array(_) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot call jsonb_object_keys on an array")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot call jsonb_object_keys on a scalar"),
    };
    let out: Vec<_> = sorted_keys(map).into_iter().map(|k| Ok(vec![Datum::text(k)])).collect();
    Ok(Box::new(out.into_iter()))
}

/// A value's kind as casts name it.
fn sql_name(v: &Value) -> &'static str {
    if v.is_number() { "numeric" } else { type_name(v) }
}

/// A number as another type: as numeric casts.
fn cast(env: &dyn Env, a: &[Datum], what: &str, name: &str) -> Result<Datum> {
    let v = jsonb(a, 0)?;
    let n = match v {
        Value::Null => return Ok(Datum::Null),
        Value::Number(n) => Numeric::parse(&n.to_string())?,
        other => {
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
    ("jsonb_typeof", S(|_, a| Ok(Datum::text(type_name(jsonb(a, 0)?))))),
    (
        "jsonb_object_field",
        S(|_, a| {
            part(jsonb(a, 0)?.as_object().and_then(|m| m.get(text(a, 1).unwrap_or_default())))
        }),
    ),
    (
        "jsonb_object_field_text",
        S(|_, a| {
            as_text(jsonb(a, 0)?.as_object().and_then(|m| m.get(text(a, 1).unwrap_or_default())))
        }),
    ),
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
    ("jsonb_contains", S(|_, a| Ok(Datum::Bool(contains(jsonb(a, 0)?, jsonb(a, 1)?))))),
    ("jsonb_contained", S(|_, a| Ok(Datum::Bool(contains(jsonb(a, 1)?, jsonb(a, 0)?))))),
    ("jsonb_exists", S(|_, a| Ok(Datum::Bool(exists(jsonb(a, 0)?, text(a, 1)?))))),
    (
        "jsonb_exists_any",
        S(|_, a| {
            let v = jsonb(a, 0)?;
            Ok(Datum::Bool(strings(a, 1)?.any(|k| exists(v, k))))
        }),
    ),
    (
        "jsonb_exists_all",
        S(|_, a| {
            let v = jsonb(a, 0)?;
            Ok(Datum::Bool(strings(a, 1)?.all(|k| exists(v, k))))
        }),
    ),
    ("jsonb_concat", S(|_, a| Ok(wrap(concat(jsonb(a, 0)?, jsonb(a, 1)?))))),
    ("jsonb_delete", S(|_, a| delete(jsonb(a, 0)?, std::iter::once(text(a, 1)?)).map(wrap))),
    ("jsonb_delete_idx", S(|_, a| delete_index(jsonb(a, 0)?, int4(a, 1)?).map(wrap))),
    (
        "jsonb_delete_array",
        S(|_, a| {
            if array(a, 1)?.dims.len() > 1 {
                bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
            }
            delete(jsonb(a, 0)?, strings(a, 1)?).map(wrap)
        }),
    ),
    ("jsonb_delete_path", S(|_, a| changed(a, Change::Delete))),
    ("jsonb_set", S(|_, a| set(a))),
    ("jsonb_set_lax", S(|_, a| set_lax(a))),
    (
        "jsonb_insert",
        S(|_, a| {
            let after = a.len() > 3 && boolean(a, 3)?;
            changed(a, Change::Insert { new: jsonb(a, 2)?, after })
        }),
    ),
    (
        "jsonb_strip_nulls",
        S(|_, a| {
            let mut v = jsonb(a, 0)?.clone();
            strip_nulls(&mut v, a.len() > 1 && boolean(a, 1)?);
            Ok(wrap(v))
        }),
    ),
    (
        "jsonb_pretty",
        S(|_, a| {
            let mut s = String::new();
            pretty(jsonb(a, 0)?, 0, &mut s);
            Ok(Datum::text(s))
        }),
    ),
    (
        "jsonb_array_length",
        S(|_, a| match jsonb(a, 0)? {
            Value::Array(items) => Ok(Datum::Int4(items.len() as i32)),
            Value::Object(_) => {
                bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a non-array")
            }
            _ => bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a scalar"),
        }),
    ),
    ("jsonb_each", FunctionBody::Set(|_, a| each(a, "jsonb_each", false))),
    ("jsonb_each_text", FunctionBody::Set(|_, a| each(a, "jsonb_each_text", true))),
    ("jsonb_array_elements", FunctionBody::Set(|_, a| elements(a, "jsonb_array_elements", false))),
    (
        "jsonb_array_elements_text",
        FunctionBody::Set(|_, a| elements(a, "jsonb_array_elements_text", true)),
    ),
    ("jsonb_object_keys", FunctionBody::Set(keys)),
    (
        "jsonb_bool",
        S(|_, a| match jsonb(a, 0)? {
            Value::Null => Ok(Datum::Null),
            Value::Bool(b) => Ok(Datum::Bool(*b)),
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
