//! The operators and functions of json, which keeps its text.

use super::raw::{self, Kind, elements, kind, members, trimmed, unescape};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S, RowIter};
use crate::{Datum, Env};
use base::{Result, bail};

/// A json argument of whose escapes characters are made.
fn json(a: &[Datum]) -> Result<&str> {
    super::escapes_checked(text(a, 0)?)
}

fn as_json(v: Option<&str>) -> Result<Datum> {
    Ok(v.map_or(Datum::Null, Datum::text))
}

/// A part as SQL text: strings without their quotes, null as NULL.
fn as_text(v: Option<&str>) -> Result<Datum> {
    match v {
        None => Ok(Datum::Null),
        Some(v) => match kind(v) {
            Kind::Null => Ok(Datum::Null),
            Kind::String => Ok(Datum::text(unescape(v)?)),
            _ => Ok(Datum::text(v)),
        },
    }
}

/// A path's steps; None when one is NULL.
pub(super) fn steps(a: &[Datum], i: usize) -> Result<Option<Vec<&str>>> {
    let mut out = Vec::new();
    for e in &array(a, i)?.elements {
        match e {
            Datum::Text(t) => out.push(t.as_str()),
            _ => return Ok(None),
        }
    }
    Ok(Some(out))
}

fn at_path(a: &[Datum]) -> Result<Option<&str>> {
    let json = json(a)?;
    Ok(match steps(a, 1)? {
        Some(p) if p.is_empty() => Some(trimmed(json)),
        Some(p) => raw::path(json, &p),
        None => None,
    })
}

fn rows(rows: Vec<Vec<Datum>>) -> Result<RowIter> {
    Ok(Box::new(rows.into_iter().map(Ok)))
}

fn each(a: &[Datum], as_sql: bool) -> Result<RowIter> {
    let json = json(a)?;
    match kind(json) {
        Kind::Object => {}
        Kind::Array => {
            bail!(INVALID_PARAMETER_VALUE, "cannot deconstruct an array as an object")
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot deconstruct a scalar"),
    }
    let mut out = Vec::new();
    for (k, v) in members(json) {
        let value = if as_sql { as_text(Some(v))? } else { Datum::text(v) };
        out.push(vec![Datum::text(unescape(k)?), value]);
    }
    rows(out)
}

fn all_elements(a: &[Datum], as_sql: bool, name: &str) -> Result<RowIter> {
    let json = if as_sql { json(a)? } else { text(a, 0)? };
    match kind(json) {
        Kind::Array => {}
        Kind::Object => bail!(INVALID_PARAMETER_VALUE, "cannot call {name} on a non-array"),
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot call {name} on a scalar"),
    }
    let mut out = Vec::new();
    for v in elements(json) {
        out.push(vec![if as_sql { as_text(Some(v))? } else { Datum::text(v) }]);
    }
    rows(out)
}

fn keys(_: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let json = json(a)?;
    match kind(json) {
        Kind::Object => {}
        Kind::Array => bail!(INVALID_PARAMETER_VALUE, "cannot call json_object_keys on an array"),
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot call json_object_keys on a scalar"),
    }
    let mut out: Vec<String> = Vec::new();
    for (k, _) in members(json) {
        out.push(unescape(k)?);
    }
    rows(out.into_iter().map(|k| vec![Datum::text(k)]).collect())
}

fn length(_: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let json = text(a, 0)?;
    match kind(json) {
        Kind::Array => Ok(Datum::Int4(elements(json).count() as i32)),
        Kind::Object => bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a non-array"),
        _ => bail!(INVALID_PARAMETER_VALUE, "cannot get array length of a scalar"),
    }
}

pub(super) const BODIES: BodyTable = &[
    (
        "json_typeof",
        S(|_, a| {
            Ok(Datum::text(match kind(text(a, 0)?) {
                Kind::Object => "object",
                Kind::Array => "array",
                Kind::String => "string",
                Kind::Null => "null",
                Kind::Bool => "boolean",
                Kind::Number => "number",
            }))
        }),
    ),
    ("json_object_field", S(|_, a| as_json(raw::field(json(a)?, text(a, 1)?)))),
    ("json_object_field_text", S(|_, a| as_text(raw::field(json(a)?, text(a, 1)?)))),
    ("json_array_element", S(|_, a| as_json(raw::element(json(a)?, int4(a, 1)?.into())))),
    ("json_array_element_text", S(|_, a| as_text(raw::element(json(a)?, int4(a, 1)?.into())))),
    ("json_extract_path", S(|_, a| as_json(at_path(a)?))),
    ("json_extract_path_text", S(|_, a| as_text(at_path(a)?.map(trimmed)))),
    ("json_array_length", S(length)),
    ("json_each", FunctionBody::Set(|_, a| each(a, false))),
    ("json_each_text", FunctionBody::Set(|_, a| each(a, true))),
    (
        "json_array_elements",
        FunctionBody::Set(|_, a| all_elements(a, false, "json_array_elements")),
    ),
    (
        "json_array_elements_text",
        FunctionBody::Set(|_, a| all_elements(a, true, "json_array_elements_text")),
    ),
    ("json_object_keys", FunctionBody::Set(keys)),
    (
        "json_strip_nulls",
        S(|_, a| {
            if super::is_too_deep(text(a, 0)?) {
                return Err(super::too_deep());
            }
            let mut out = String::new();
            super::once::strip_nulls(json(a)?, a.len() > 1 && boolean(a, 1)?, &mut out)?;
            Ok(Datum::text(out))
        }),
    ),
];
