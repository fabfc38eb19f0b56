//! json and jsonb.

mod binary;
mod build;
mod check;
mod raw;
mod text;

pub use binary::{assign, contains, subscript};
pub use build::{push_json, to_value};

use crate::registry::FunctionBody;
use crate::{Datum, Text};
use base::{Result, SqlError, SqlState};
use serde_json::Value;
use std::sync::Arc;

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
    match deep::<serde::de::IgnoredAny>(text, false) {
        Ok(_) => Ok(Datum::Text(Text::from(text))),
        Err(e) => Err(e),
    }
}

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 1000;

/// Reads json text of bounded depth.
fn deep<'a, T: serde::Deserialize<'a>>(text: &'a str, escapes: bool) -> Result<T> {
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
    if deepest > DEPTH_MAX {
        base::bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader);
    value
        .and_then(|v| reader.end().map(|()| v))
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
    parse(text).map(|v| Datum::Jsonb(Arc::new(v)))
}

/// Text as jsonb: keys sorted, numbers in numeric's form.
fn parse(text: &str) -> Result<Value> {
    escapes_checked(text)?;
    normal(deep(text, true)?)
}

fn normal(v: Value) -> Result<Value> {
    let string = |s: String| {
        if s.contains('\0') {
            return Err(SqlError::new(
                SqlState::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )
            .detail("\\u0000 cannot be converted to text."));
        }
        Ok(s)
    };
    Ok(match v {
        Value::String(s) => Value::String(string(s)?),
        Value::Number(n) => {
            let s = n.to_string();
            if is_plain(&s) { Value::Number(n) } else { number(&s)? }
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(normal).collect::<Result<Vec<_>>>()?)
        }
        Value::Object(map) => {
            let mut all = Vec::with_capacity(map.len());
            for (k, v) in map {
                all.push((string(k)?, normal(v)?));
            }
            all.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            Value::Object(all.into_iter().collect())
        }
        v => v,
    })
}

/// Keys in jsonb's order.
fn sorted(v: Value) -> Value {
    match v {
        Value::Object(map) => {
            let mut all: Vec<(String, Value)> =
                map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            all.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            Value::Object(all.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        v => v,
    }
}

/// True for a number whose text is numeric's own.
fn is_plain(s: &str) -> bool {
    !s.bytes().any(|b| b == b'e' || b == b'E') && !s.starts_with("-0")
}

/// A number in numeric's form.
fn number(s: &str) -> Result<Value> {
    let shown = crate::numeric::Numeric::parse(s)?.to_string();
    let n: serde_json::Number = shown.parse().map_err(|_| invalid(format!("number {s}")))?;
    Ok(Value::Number(n))
}

/// jsonb's order of keys: shorter first, then bytes.
pub fn sorted_keys(map: &serde_json::Map<String, Value>) -> Vec<&String> {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    keys
}

/// Appends jsonb's text form.
pub fn jsonb_output(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, v) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                jsonb_output(v, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, k) in sorted_keys(map).into_iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                build::push_string(k, out);
                out.push_str(": ");
                if let Some(v) = map.get(k) {
                    jsonb_output(v, out);
                }
            }
            out.push('}');
        }
        Value::Number(n) => {
            let s = n.as_str();
            if is_plain(s) {
                out.push_str(s);
                return;
            }
            match crate::numeric::Numeric::parse(s) {
                Ok(n) => out.push_str(&n.to_string()),
                Err(_) => out.push_str(s),
            }
        }
        Value::String(s) => build::push_string(s, out),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
    }
}

/// jsonb's btree order. At the top an empty array comes before all scalars.
pub fn jsonb_compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let empty = |v: &Value| v.as_array().is_some_and(Vec::is_empty);
    let scalar = |v: &Value| !v.is_array() && !v.is_object();
    if empty(a) && scalar(b) {
        return Ordering::Less;
    }
    if scalar(a) && empty(b) {
        return Ordering::Greater;
    }
    compare_inner(a, b)
}

fn compare_inner(a: &Value, b: &Value) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    fn rank(v: &Value) -> u8 {
        match v {
            Value::Null => 0,
            Value::String(_) => 1,
            Value::Number(_) => 2,
            Value::Bool(_) => 3,
            Value::Array(_) => 4,
            Value::Object(_) => 5,
        }
    }
    match (a, b) {
        (Value::String(x), Value::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Value::Number(x), Value::Number(y)) => {
            let n = |v: &serde_json::Number| {
                crate::numeric::Numeric::parse(&v.to_string())
                    .unwrap_or(crate::numeric::Numeric::NAN)
            };
            n(x).cmp(&n(y))
        }
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => x.len().cmp(&y.len()).then_with(|| {
            x.iter()
                .zip(y)
                .map(|(p, q)| compare_inner(p, q))
                .find(|o| *o != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        }),
        (Value::Object(x), Value::Object(y)) => x.len().cmp(&y.len()).then_with(|| {
            for (k, l) in sorted_keys(x).into_iter().zip(sorted_keys(y)) {
                let o = k.cmp(l);
                if o != Ordering::Equal {
                    return o;
                }
                if let (Some(p), Some(q)) = (x.get(k), y.get(l)) {
                    let o = compare_inner(p, q);
                    if o != Ordering::Equal {
                        return o;
                    }
                }
            }
            Ordering::Equal
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// jsonb's on-page form: its text.
pub fn jsonb_encode(value: &Value, out: &mut Vec<u8>) {
    let mut s = String::new();
    jsonb_output(value, &mut s);
    out.extend_from_slice(s.as_bytes());
}

/// Reads jsonb's on-page form.
///
/// # Errors
/// `XX001`
pub fn jsonb_decode(bytes: &[u8]) -> Result<Arc<Value>> {
    let text =
        std::str::from_utf8(bytes).map_err(|e| base::err!(DATA_CORRUPTED, "invalid jsonb: {e}"))?;
    deep(text, false).map(Arc::new).map_err(|e| base::err!(DATA_CORRUPTED, "invalid jsonb: {e}"))
}

/// The functions and aggregates of json and jsonb.
pub(crate) const TABLES: &[crate::registry::BodyTable] =
    &[text::BODIES, binary::BODIES, build::BODIES, PATHS];

const NO_PATH: FunctionBody =
    FunctionBody::Scalar(|_, _| Err(base::Error::unsupported("SQL/JSON path expressions")));

/// Functions of jsonpath, which is not there yet.
const PATHS: crate::registry::BodyTable = &[
    ("jsonb_path_exists", NO_PATH),
    ("jsonb_path_match", NO_PATH),
    ("jsonb_path_query_array", NO_PATH),
    ("jsonb_path_query_first", NO_PATH),
    ("jsonb_path_exists_opr", NO_PATH),
    ("jsonb_path_match_opr", NO_PATH),
    (
        "jsonb_path_query",
        FunctionBody::Set(|_, _| Err(base::Error::unsupported("SQL/JSON path expressions"))),
    ),
];

fn type_name(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
