//! What SQL/JSON's own expressions are carried out with: IS JSON, JSON_OBJECT() and the other constructors, conversions of JSON_QUERY().

use super::build::{self, push_json, push_string};
use super::once::repeated_key;
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
///
/// # Errors
/// `54001` for what is nested too deep to be told.
pub fn is_json(text: &str, shape: Shape, unique: bool) -> Result<bool> {
    // Keys are compared as characters: then their escapes must be some.
    match checked(text, unique) {
        Ok(_) => {}
        Err(e) if e.state() == SqlState::STATEMENT_TOO_COMPLEX => return Err(e),
        Err(_) => return Ok(false),
    }
    Ok(shape.fits(raw::kind(text)) && (!unique || matches!(repeated_key(text), Ok(None))))
}

/// True if the value has that shape.
pub fn is_shaped(value: &Jsonb, shape: Shape) -> bool {
    shape.fits(match value.view() {
        View::Object(_) => Kind::Object,
        View::Array(_) => Kind::Array,
        _ => Kind::Null,
    })
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
    super::escapes_checked(text)?;
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
    for (i, ((key_type, key), (ty, value))) in pairs.iter().enumerate() {
        if key.is_null() && making.binary {
            bail!(INVALID_PARAMETER_VALUE, "argument {}: key must not be null", 2 * i + 1);
        }
        // What is left out has no need of a key, but to tell whether it comes twice.
        let left_out = making.absent && value.is_null();
        if left_out && !making.unique {
            continue;
        }
        let key = build::key(*key_type, key, env)?;
        if making.unique && !keys.insert(key.clone()) {
            return Err(duplicate((!making.binary).then_some(&key)));
        }
        if left_out {
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
    let is_json = matches!(ty, crate::oids::JSON | crate::oids::JSONB);
    if unquote && (!is_json || matches!(value.view(), View::String(_))) {
        return crate::io::text_input(ty, typmod, &unquoted(value), env);
    }
    let column = RecordColumn { name: Text::from(""), type_oid: ty, typmod };
    super::populate::column_of(value, &column, env)
}
