//! What SQL/JSON's own expressions are carried out with: IS JSON, JSON_OBJECT() and the other constructors, conversions of JSON_QUERY().

use super::build::{self, push_json, push_string};
use super::raw::{self, Kind};
use super::stored::{self, Members, View};
use super::{Jsonb, checked};
use crate::functions::text::check_size;
use crate::{Datum, Env, RecordColumn, Text};
use base::{Oid, Result, SqlError, SqlState, bail};
use std::collections::HashSet;

/// Which json values IS JSON is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Shape {
    /// Any.
    Value,
    /// Objects.
    Object,
    /// Arrays.
    Array,
    /// Anything else.
    Scalar,
}

impl Shape {
    fn fits(self, kind: Kind) -> bool {
        match self {
            Shape::Value => true,
            Shape::Object => kind == Kind::Object,
            Shape::Array => kind == Kind::Array,
            Shape::Scalar => !matches!(kind, Kind::Object | Kind::Array),
        }
    }
}

/// True if text is json of that shape; with `unique`, if no object in it has a key twice.
pub fn is_json(text: &str, shape: Shape, unique: bool) -> bool {
    checked(text, false).is_ok()
        && shape.fits(raw::kind(text))
        && (!unique || matches!(repeated_key(text), Ok(None)))
}

/// True if the value has that shape.
pub fn is_shaped(value: &Jsonb, shape: Shape) -> bool {
    shape.fits(match value.view() {
        View::Object(_) => Kind::Object,
        View::Array(_) => Kind::Array,
        _ => Kind::Null,
    })
}

/// A key that an object in the text has twice.
fn repeated_key(text: &str) -> Result<Option<String>> {
    let mut open = vec![text];
    while let Some(part) = open.pop() {
        match raw::kind(part) {
            Kind::Array => open.extend(raw::elements(part)),
            Kind::Object => {
                let mut keys = HashSet::new();
                for (key, value) in raw::members(part) {
                    let key = raw::unescape(key)?;
                    if keys.contains(&key) {
                        return Ok(Some(key));
                    }
                    keys.insert(key);
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

fn duplicate(key: Option<&str>) -> base::Error {
    let mut message = "duplicate JSON object key value".to_owned();
    if let Some(key) = key {
        message.push_str(": ");
        push_string(key, &mut message);
    }
    SqlError::new(SqlState::DUPLICATE_JSON_OBJECT_KEY_VALUE, message).into()
}

/// Fails if an object in the text has a key twice.
///
/// # Errors
/// `22030`
pub fn check_unique(text: &str) -> Result<()> {
    match repeated_key(text)? {
        Some(_) => Err(duplicate(None)),
        None => Ok(()),
    }
}

/// A key and a value of an object that is made, with their types.
pub type Pair<'a> = ((Oid, &'a Datum), (Oid, &'a Datum));

/// How an object is made of its members.
#[derive(Clone, Copy)]
pub struct Making {
    /// Members (elements) that are NULL are left out.
    pub absent: bool,
    /// A key that comes twice is an error.
    pub unique: bool,
    /// jsonb rather than json.
    pub binary: bool,
}

/// JSON_OBJECT()
///
/// # Errors
/// `22004`, `22030`, and what the values' text forms say.
pub fn object(pairs: &[Pair], making: Making, env: &dyn Env) -> Result<Datum> {
    let mut keys = HashSet::new();
    let mut text = String::from("{");
    let mut members = Members::default();
    for ((key_type, key), (ty, value)) in pairs {
        if key.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key");
        }
        let key = build::key(*key_type, key, env)?;
        if making.unique && !keys.insert(key.clone()) {
            return Err(duplicate((!making.binary).then_some(&key)));
        }
        if making.absent && value.is_null() {
            continue;
        }
        if making.binary {
            members.add(key, |out| build::put(*ty, value, env, out))?;
            continue;
        }
        if text.len() > 1 {
            text.push_str(", ");
        }
        push_string(&key, &mut text);
        text.push_str(" : ");
        push_json(*ty, value, env, false, &mut text)?;
    }
    if making.binary {
        return Jsonb::write(|out| members.put(out)).map(Datum::Jsonb);
    }
    text.push('}');
    check_size(text.len())?;
    Ok(Datum::Text(Text::from(text)))
}

/// JSON_ARRAY()
///
/// # Errors
/// What the values' text forms say.
pub fn array(items: &[(Oid, &Datum)], making: Making, env: &dyn Env) -> Result<Datum> {
    let items = items.iter().filter(|(_, v)| !(making.absent && v.is_null()));
    if making.binary {
        let written = Jsonb::write(|out| {
            stored::put_array(out, |out, ended| {
                for (ty, value) in items {
                    build::put(*ty, value, env, out)?;
                    ended(out.len());
                }
                Ok(())
            })
        });
        return written.map(Datum::Jsonb);
    }
    let mut text = String::from("[");
    for (ty, value) in items {
        if text.len() > 1 {
            text.push_str(", ");
        }
        push_json(*ty, value, env, false, &mut text)?;
    }
    text.push(']');
    check_size(text.len())?;
    Ok(Datum::Text(Text::from(text)))
}

/// JSON_SCALAR(): a value as json.
///
/// # Errors
/// What its text form says.
pub fn scalar(ty: Oid, value: &Datum, env: &dyn Env) -> Result<Datum> {
    let mut text = String::new();
    push_json(ty, value, env, false, &mut text)?;
    Ok(Datum::Text(Text::from(text)))
}

/// A jsonb as SQL text: a string without its quotes.
pub fn unquoted(value: &Jsonb) -> String {
    match value.view() {
        View::String(s) => s.to_owned(),
        v => {
            let mut out = String::new();
            super::jsonb_output(v, &mut out);
            out
        }
    }
}

/// A jsonb as a value of a type, as a column of that type is filled from it. With `unquote`, a string counts as its text.
///
/// # Errors
/// What the type's input says.
pub fn convert(value: &Jsonb, ty: Oid, typmod: i32, unquote: bool, env: &dyn Env) -> Result<Datum> {
    if unquote && matches!(value.view(), View::String(_)) {
        return crate::io::text_input(ty, typmod, &unquoted(value), env);
    }
    let column = RecordColumn { name: Text::from(""), type_oid: ty, typmod };
    super::populate::column_of(value, &column, env)
}
