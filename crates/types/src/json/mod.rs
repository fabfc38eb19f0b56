//! json and jsonb.

pub mod assign;
mod binary;
mod build;
mod check;
mod once;
pub mod path;
mod populate;
mod raw;
mod read;
pub mod standard;
mod stored;
mod text;

pub use build::push_json;
pub use populate::makes_rows;
pub use stored::{Array, Jsonb, Object, View, view};

use crate::{Datum, Text};
use base::{Result, SqlError, SqlState};
use serde::Deserialize;
use std::cmp::Ordering;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

fn invalid(detail: String) -> base::Error {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
        .detail(detail)
        .into()
}

/// Reads json: checked, and kept as written.
///
/// # Errors
/// `22P02`
pub fn json_input(text: &str) -> Result<Datum> {
    checked(text, false).map(|text| Datum::Text(Text::from(text)))
}

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 1000;

fn too_deep() -> base::Error {
    base::err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}

/// True for text that is nested deeper than what goes through its parts may go.
fn is_too_deep(text: &str) -> bool {
    brackets_open(text) > DEPTH_MAX
}

/// The most brackets that are open at one place of a json text.
pub fn brackets_open(text: &str) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    let (mut quoted, mut escaped) = (false, false);
    for b in text.bytes() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The text, if it is json of bounded depth; with `escapes`, if characters can be made of its escapes too.
fn checked(text: &str, escapes: bool) -> Result<&str> {
    if is_too_deep(text) {
        return Err(too_deep());
    }
    if escapes {
        escapes_checked(text)?;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde::de::IgnoredAny::deserialize(&mut reader)
        .and_then(|_| reader.end())
        .map(|()| text)
        .map_err(|e| check::complaint(text, escapes).unwrap_or_else(|| invalid(e.to_string())))
}

/// The text, if characters can be made of its escapes.
fn escapes_checked(text: &str) -> Result<&str> {
    match text.contains("\\u").then(|| check::complaint(text, true)).flatten() {
        Some(e) => Err(e),
        None => Ok(text),
    }
}

/// Reads jsonb.
///
/// # Errors
/// `22P02`
pub fn jsonb_input(text: &str) -> Result<Datum> {
    read::jsonb(text).map(Datum::Jsonb)
}

/// Appends jsonb's text form.
pub fn jsonb_output(value: View, out: &mut String) {
    match value {
        View::Array(items) => {
            out.push('[');
            for (i, v) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                jsonb_output(view(v), out);
            }
            out.push(']');
        }
        View::Object(members) => {
            out.push('{');
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                build::push_string(k, out);
                out.push_str(": ");
                jsonb_output(view(v), out);
            }
            out.push('}');
        }
        View::Integer(n) => _ = write!(out, "{n}"),
        View::Number(_) => {
            if let Some(n) = value.number() {
                _ = write!(out, "{n}");
            }
        }
        View::String(s) => build::push_string(s, out),
        View::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        View::Null => out.push_str("null"),
    }
}

/// jsonb's btree order. At the top an empty array comes before all scalars.
pub fn jsonb_compare(a: View, b: View) -> Ordering {
    let empty = |v: View| matches!(v, View::Array(items) if items.is_empty());
    if empty(a) && b.is_scalar() {
        return Ordering::Less;
    }
    if a.is_scalar() && empty(b) {
        return Ordering::Greater;
    }
    compare_inner(a, b)
}

fn compare_inner(a: View, b: View) -> Ordering {
    fn rank(v: View) -> u8 {
        match v {
            View::Null => 0,
            View::String(_) => 1,
            View::Integer(_) | View::Number(_) => 2,
            View::Bool(_) => 3,
            View::Array(_) => 4,
            View::Object(_) => 5,
        }
    }
    match (a, b) {
        (View::String(x), View::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (View::Integer(x), View::Integer(y)) => x.cmp(&y),
        (View::Integer(_) | View::Number(_), View::Integer(_) | View::Number(_)) => {
            let n = |v: View| v.number().unwrap_or(crate::Numeric::NAN);
            n(a).cmp(&n(b))
        }
        (View::Bool(x), View::Bool(y)) => x.cmp(&y),
        (View::Array(x), View::Array(y)) => x.len().cmp(&y.len()).then_with(|| {
            let pairs = x.iter().zip(y.iter());
            first_unequal(pairs.map(|(p, q)| compare_inner(view(p), view(q))))
        }),
        (View::Object(x), View::Object(y)) => x.len().cmp(&y.len()).then_with(|| {
            let pairs = x.iter().zip(y.iter());
            first_unequal(
                pairs
                    .map(|((k, p), (l, q))| k.cmp(l).then_with(|| compare_inner(view(p), view(q)))),
            )
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn first_unequal(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal)
}

/// Hashes a value: alike for all that are equal, as 1 and 1.0 are.
pub fn jsonb_hash<H: Hasher>(value: View, state: &mut H) {
    match value {
        View::Null => state.write_u8(0),
        View::Bool(b) => state.write_u8(1 + u8::from(b)),
        View::String(s) => s.hash(state),
        View::Integer(n) => state.write_i64(n),
        View::Number(_) => {
            let n = value.number().unwrap_or(crate::Numeric::NAN);
            match n.trunc(n.min_scale()) {
                n if n.is_finite() && n.scale() == 0 && n.to_i64().is_some() => {
                    state.write_i64(n.to_i64().unwrap_or_default());
                }
                n => n.to_string().hash(state),
            }
        }
        View::Array(items) => {
            state.write_usize(items.len());
            items.iter().for_each(|v| jsonb_hash(view(v), state));
        }
        View::Object(members) => {
            state.write_usize(members.len());
            for (k, v) in members.iter() {
                k.hash(state);
                jsonb_hash(view(v), state);
            }
        }
    }
}

/// The functions and aggregates of json and jsonb.
pub(crate) const TABLES: &[crate::registry::BodyTable] =
    &[text::BODIES, binary::BODIES, build::BODIES, path::BODIES, populate::BODIES];

fn type_name(v: View) -> &'static str {
    match v {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Integer(_) | View::Number(_) => "number",
        View::String(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    }
}
