//! What a path meets: json, or a moment that a method has made of a string.

use super::moments::Moment;
use crate::Numeric;
use crate::json::stored::{self, Jsonb, View, view};
use std::borrow::Cow;

/// One value: json is lent where it is part of what the path was given.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Json(Cow<'a, [u8]>),
    Moment(Moment),
}

impl<'a> Value<'a> {
    pub(super) fn view(&self) -> Option<View<'_>> {
        match self {
            Value::Json(bytes) => Some(view(bytes)),
            Value::Moment(_) => None,
        }
    }

    fn made(put: impl FnOnce(&mut Vec<u8>)) -> Value<'a> {
        let mut out = Vec::new();
        put(&mut out);
        Value::Json(Cow::Owned(out))
    }

    pub(super) fn number(n: &Numeric) -> Value<'a> {
        Value::made(|out| stored::put_numeric(n, out))
    }

    pub(super) fn string(s: &str) -> Value<'a> {
        Value::made(|out| stored::put_string(s, out))
    }

    pub(super) fn boolean(b: bool) -> Value<'a> {
        Value::made(|out| stored::put_bool(b, out))
    }

    pub(super) fn null() -> Value<'a> {
        Value::made(stored::put_null)
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.view(), Some(View::Array(_)))
    }

    /// True for what has no parts.
    pub(super) fn is_leaf(&self) -> bool {
        self.view().is_none_or(|v| v.is_scalar())
    }

    /// How many elements an array has; None of anything else.
    pub(super) fn length(&self) -> Option<usize> {
        match self.view() {
            Some(View::Array(items)) => Some(items.len()),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<Numeric> {
        self.view().and_then(|v| v.number())
    }

    /// The elements of an array, the values of an object.
    pub(super) fn children(&self) -> Vec<Value<'a>> {
        fn of(bytes: &[u8]) -> Vec<&[u8]> {
            match view(bytes) {
                View::Array(items) => items.iter().collect(),
                View::Object(members) => members.iter().map(|(_, v)| v).collect(),
                _ => Vec::new(),
            }
        }
        match self {
            Value::Json(Cow::Borrowed(b)) => {
                of(b).into_iter().map(|v| Value::Json(Cow::Borrowed(v))).collect()
            }
            Value::Json(Cow::Owned(b)) => {
                of(b).into_iter().map(|v| Value::Json(Cow::Owned(v.to_vec()))).collect()
            }
            Value::Moment(_) => Vec::new(),
        }
    }

    /// The part that `pick` picks, lent where the whole is.
    fn part(&self, pick: impl for<'b> Fn(View<'b>) -> Option<&'b [u8]>) -> Option<Value<'a>> {
        match self {
            Value::Json(Cow::Borrowed(b)) => pick(view(b)).map(|v| Value::Json(Cow::Borrowed(v))),
            Value::Json(Cow::Owned(b)) => {
                pick(view(b)).map(|v| Value::Json(Cow::Owned(v.to_vec())))
            }
            Value::Moment(_) => None,
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<Value<'a>> {
        self.part(|v| match v {
            View::Object(members) => members.get(key),
            _ => None,
        })
    }

    pub(super) fn element(&self, i: usize) -> Option<Value<'a>> {
        self.part(|v| match v {
            View::Array(items) => items.get(i as i64),
            _ => None,
        })
    }

    /// As json: a moment is its text.
    pub(super) fn into_jsonb(self) -> Jsonb {
        match self {
            Value::Json(bytes) => Jsonb::part(&bytes),
            Value::Moment(m) => {
                let mut out = Vec::new();
                stored::put_string(&m.text(), &mut out);
                Jsonb::part(&out)
            }
        }
    }
}
