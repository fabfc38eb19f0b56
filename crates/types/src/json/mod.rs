//! json and jsonb.

use crate::registry::FunctionBody::Scalar as S;
use crate::{Datum, Text, args};
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
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(Datum::Text(Text::from(text))),
        Err(e) => Err(invalid(e.to_string())),
    }
}

/// Reads jsonb.
///
/// # Errors
/// `22P02`
pub fn jsonb_input(text: &str) -> Result<Datum> {
    match serde_json::from_str::<Value>(text) {
        Ok(v) => Ok(Datum::Jsonb(Arc::new(v))),
        Err(e) => Err(invalid(e.to_string())),
    }
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
                out.push_str(&Value::from(k.as_str()).to_string());
                out.push_str(": ");
                if let Some(v) = map.get(k) {
                    jsonb_output(v, out);
                }
            }
            out.push('}');
        }
        Value::Number(n) => {
            let s = n.to_string();
            match crate::numeric::Numeric::parse(&s) {
                Ok(n) => out.push_str(&n.to_string()),
                Err(_) => out.push_str(&s),
            }
        }
        other => out.push_str(&other.to_string()),
    }
}

/// jsonb's btree order.
pub fn jsonb_compare(a: &Value, b: &Value) -> std::cmp::Ordering {
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
                .map(|(p, q)| jsonb_compare(p, q))
                .find(|o| *o != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        }),
        (Value::Object(x), Value::Object(y)) => x.len().cmp(&y.len()).then_with(|| {
            for (k, l) in sorted_keys(x).into_iter().zip(sorted_keys(y)) {
                let o = k.len().cmp(&l.len()).then_with(|| k.cmp(l));
                if o != Ordering::Equal {
                    return o;
                }
                if let (Some(p), Some(q)) = (x.get(k), y.get(l)) {
                    let o = jsonb_compare(p, q);
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
    serde_json::from_slice(bytes)
        .map(Arc::new)
        .map_err(|e| base::err!(DATA_CORRUPTED, "invalid jsonb: {e}"))
}

/// The functions and aggregates of json and jsonb.
pub const BODIES: crate::registry::BodyTable = &[
    (
        "json_typeof",
        S(|_, a| match serde_json::from_str::<Value>(args::text(a, 0)?) {
            Ok(v) => Ok(Datum::text(type_name(&v))),
            Err(e) => Err(invalid(e.to_string())),
        }),
    ),
    (
        "jsonb_typeof",
        S(|_, a| match a.first() {
            Some(Datum::Jsonb(v)) => Ok(Datum::text(type_name(v))),
            _ => Ok(Datum::Null),
        }),
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
