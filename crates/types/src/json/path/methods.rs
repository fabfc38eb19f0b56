//! The methods of items: `size()`, `double()`, `keyvalue()` and the like.

use super::eval::{Fault, Outcome, Sink, Walk, soft};
use super::value::Value;
use super::{Method, Step, moments};
use crate::json::stored::{self, Members, View};
use crate::{Datum, Numeric, oids};
use base::Result;
use std::borrow::Cow;

/// The text of what a method makes a number of: a string's, or a number's own.
fn text_of(value: &Value) -> Option<String> {
    match value.view()? {
        View::String(s) => Some(s.to_owned()),
        v => v.number().map(|n| n.to_string()),
    }
}

fn argument_invalid(text: &str, method: Method, type_name: &str) -> Fault {
    Fault::Soft(base::err!(
        NON_NUMERIC_SQL_JSON_ITEM,
        "argument \"{text}\" of jsonpath item method .{}() is invalid for type {type_name}",
        method.name()
    ))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Moment(m) => m.type_name(),
        Value::Json(bytes) => crate::json::type_name(stored::view(bytes)),
    }
}

impl<'a> Walk<'a> {
    pub(super) fn method(
        &mut self,
        value: Value<'a>,
        method: Method,
        arguments: &[Numeric],
        rest: &[Step],
        sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let made = match method {
            Method::Type => Value::string(type_name(&value)),
            Method::Size => match value.view() {
                Some(View::Array(items)) => Value::number(&Numeric::from_i128(items.len() as i128)),
                _ if self.is_lax() => Value::number(&Numeric::from_i128(1)),
                _ if self.is_forgiving() => return Ok(false),
                _ => soft!(
                    SQL_JSON_ARRAY_NOT_FOUND,
                    "jsonpath item method .size() can only be applied to an array"
                ),
            },
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Some(n) = value.view().and_then(|v| v.number()) else {
                    soft!(
                        NON_NUMERIC_SQL_JSON_ITEM,
                        "jsonpath item method .{}() can only be applied to a numeric value",
                        method.name()
                    );
                };
                Value::number(&match method {
                    Method::Abs => n.abs(),
                    Method::Floor => n.floor(),
                    _ => n.ceil(),
                })
            }
            Method::BigInt
            | Method::Integer
            | Method::Double
            | Method::Number
            | Method::Decimal => self.numeric(&value, method, arguments)?,
            Method::Boolean => boolean(&value)?,
            Method::String => string(&value)?,
            Method::KeyValue => {
                let pairs = self.pairs(&value)?;
                return self.each(pairs, rest, self.is_lax(), sink);
            }
            Method::Date
            | Method::Datetime
            | Method::Time
            | Method::TimeTz
            | Method::Timestamp
            | Method::TimestampTz => {
                let zones = self.zones;
                Value::Moment(moments::method(&value, method, arguments, zones, self.env)?)
            }
        };
        self.steps(made, rest, self.is_lax(), sink)
    }

    fn numeric(&self, value: &Value, method: Method, arguments: &[Numeric]) -> Outcome<Value<'a>> {
        let Some(text) = text_of(value) else {
            soft!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .{}() can only be applied to a string or numeric value",
                method.name()
            );
        };
        let (oid, type_name) = match method {
            Method::BigInt => (oids::INT8, "bigint"),
            Method::Integer => (oids::INT4, "integer"),
            Method::Double => (oids::FLOAT8, "double precision"),
            _ => (oids::NUMERIC, "numeric"),
        };
        let invalid = || argument_invalid(&text, method, type_name);
        let number = value.as_number();
        // A number is rounded to a whole one, a string must be one.
        let text = match (method, &number) {
            (Method::BigInt | Method::Integer, Some(n)) => n.round(0).to_string(),
            _ => text.clone(),
        };
        let read = crate::io::text_input(oid, -1, &text, self.env).map_err(|_| invalid())?;
        let n = match (read, number) {
            (Datum::Int4(n), _) => Numeric::from_i128(n.into()),
            (Datum::Int8(n), _) => Numeric::from_i128(n.into()),
            // A number keeps its digits, also those that a double has no room for.
            (Datum::Float8(v), Some(n)) if v.is_finite() => n,
            (Datum::Float8(v), _) => Numeric::from_f64(v),
            (Datum::Numeric(n), _) => *n,
            _ => return Err(invalid()),
        };
        if !n.is_finite() {
            soft!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "NaN or Infinity is not allowed for jsonpath item method .{}()",
                method.name()
            );
        }
        if arguments.is_empty() {
            return Ok(Value::number(&n));
        }
        let typmod = crate::typmod_in(oids::NUMERIC, &whole(arguments)?)?;
        Ok(Value::number(&n.apply_typmod(typmod).map_err(|_| invalid())?))
    }

    /// An object's members, each as an object.
    fn pairs(&self, value: &Value<'a>) -> Outcome<Vec<Value<'a>>> {
        let Value::Json(bytes) = value else { return Err(no_object()) };
        let View::Object(members) = stored::view(bytes) else { return Err(no_object()) };
        let id = self.place(bytes);
        let mut out = Vec::new();
        for (key, part) in members.iter() {
            let mut pair = Members::default();
            let put = |part: &[u8], out: &mut Vec<u8>| -> Result<()> {
                out.extend_from_slice(part);
                Ok(())
            };
            pair.add("key", |out| {
                stored::put_string(key, out);
                Ok(())
            })?;
            pair.add("value", |out| put(part, out))?;
            pair.add("id", |out| {
                stored::put_integer(id, out);
                Ok(())
            })?;
            let mut made = Vec::new();
            pair.put(&mut made)?;
            out.push(Value::Json(Cow::Owned(made)));
        }
        Ok(out)
    }
}

fn no_object() -> Fault {
    Fault::Soft(base::err!(
        SQL_JSON_OBJECT_NOT_FOUND,
        "jsonpath item method .keyvalue() can only be applied to an object"
    ))
}

/// The precision and scale of `decimal()`.
fn whole(arguments: &[Numeric]) -> Outcome<Vec<i32>> {
    const NAMES: [&str; 2] = ["precision", "scale"];
    let mut out = Vec::new();
    for (n, name) in arguments.iter().zip(NAMES) {
        match n.to_i64().and_then(|n| i32::try_from(n).ok()) {
            Some(n) => out.push(n),
            None => soft!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "{name} of jsonpath item method .decimal() is out of range for type integer"
            ),
        }
    }
    Ok(out)
}

fn boolean<'a>(value: &Value) -> Outcome<Value<'a>> {
    let method = Method::Boolean;
    let (text, b) = match value.view() {
        Some(View::Bool(b)) => return Ok(Value::boolean(b)),
        // Without the blanks that boolean's input takes.
        Some(View::String(s)) => {
            let bare = s == s.trim_matches(crate::text::is_space);
            (s.to_owned(), crate::io::parse_bool(s).filter(|_| bare))
        }
        Some(v) => match v.number() {
            Some(n) => {
                let whole = n.to_i64().filter(|i| n.scale() == 0 && i32::try_from(*i).is_ok());
                (n.to_string(), whole.map(|n| n != 0))
            }
            None => soft!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .boolean() can only be applied to a boolean, string, or numeric value"
            ),
        },
        None => soft!(
            NON_NUMERIC_SQL_JSON_ITEM,
            "jsonpath item method .boolean() can only be applied to a boolean, string, or numeric value"
        ),
    };
    b.map(Value::boolean).ok_or_else(|| argument_invalid(&text, method, "boolean"))
}

fn string<'a>(value: &Value) -> Outcome<Value<'a>> {
    let text = match (value, value.view()) {
        (Value::Moment(m), _) => m.text(),
        (_, Some(View::Bool(b))) => b.to_string(),
        _ => match text_of(value) {
            Some(text) => text,
            None => soft!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .string() can only be applied to a boolean, string, numeric, or datetime value"
            ),
        },
    };
    Ok(Value::string(&text))
}
