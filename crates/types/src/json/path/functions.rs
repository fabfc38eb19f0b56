//! The functions of jsonpath.

use super::eval::{Fault, Outcome, Variables, Walk};
use super::moments::Moment;
use super::value::Value;
use super::{Flags, Path, read};
use crate::args::*;
use crate::json::stored::{Jsonb, View, view};
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S, RowIter};
use crate::{Datum, Env};
use base::{Error, Result, SqlError, SqlState, bail, err};
use std::borrow::Cow;

/// Whether a string matches a pattern of `like_regex`.
pub(super) fn pattern_matches(env: &dyn Env, pattern: &str, flags: Flags, s: &str) -> Result<bool> {
    let mut letters = String::new();
    if flags.ignore_case {
        letters.push('i');
    }
    // In a pattern that is taken as it is no character is special.
    letters.push(match (flags.quote, flags.dot_all, flags.multiline) {
        (true, ..) => 'q',
        (_, true, true) => 'w',
        (_, true, false) => 's',
        (_, false, true) => 'n',
        (_, false, false) => 'p',
    });
    crate::functions::regex_matches(env, pattern, &letters, s)
}

/// The value that a variable has in a path.
pub(super) fn value_of<'a>(value: &'a Datum, env: &dyn Env) -> Result<Value<'a>> {
    if let Some(moment) = Moment::of(value) {
        return Ok(Value::Moment(moment));
    }
    Ok(Value::Json(match value {
        Datum::Jsonb(j) => Cow::Borrowed(j.bytes()),
        other => {
            let ty = crate::io::natural_type(other);
            let made = Jsonb::write(|out| crate::json::build::put(ty, other, env, out))?;
            Cow::Owned(made.bytes().to_vec())
        }
    }))
}

/// True for types whose values a path's variable may have.
pub fn is_valid_value(ty: base::Oid) -> bool {
    use crate::oids::*;
    matches!(
        ty,
        BOOL | INT2
            | INT4
            | INT8
            | FLOAT4
            | FLOAT8
            | NUMERIC
            | TEXT
            | VARCHAR
            | DATE
            | TIME
            | TIMETZ
            | TIMESTAMP
            | TIMESTAMPTZ
            | JSON
            | JSONB
    )
}

/// What a path is asked about.
pub struct PathCall<'a> {
    /// The value it is walked over.
    pub root: &'a Jsonb,
    /// The path.
    pub path: &'a str,
    /// Its variables.
    pub variables: &'a [(String, Datum)],
    /// Something else than an error answers one.
    pub silent: bool,
}

/// What SQL/JSON's functions find with a path: an error is one that ON ERROR answers.
pub type Found<T> = std::result::Result<T, Error>;

/// One of what a path finds.
pub enum Item {
    /// json
    Json(Jsonb),
    /// A date, time or timestamp that a method has made, and as json.
    Moment(Datum, Jsonb),
}

impl Item {
    fn of(value: Value) -> Item {
        match value {
            Value::Moment(moment) => Item::Moment(moment.datum(), value.into_jsonb()),
            json => Item::Json(json.into_jsonb()),
        }
    }
}

/// Hard errors apart from those that ON ERROR answers.
fn answered<T>(outcome: Outcome<T>) -> Result<Found<T>> {
    match outcome {
        Ok(made) => Ok(Ok(made)),
        Err(Fault::Soft(e)) => Ok(Err(e)),
        Err(Fault::Hard(e)) => Err(e),
    }
}

impl PathCall<'_> {
    /// Walks the path, with time zones.
    fn walk<T>(
        &self,
        env: &dyn Env,
        go: impl FnOnce(&mut Walk, &Path) -> Outcome<T>,
    ) -> Result<Found<T>> {
        let path = read(self.path)?;
        let variables = Variables::Named(self.variables);
        let mut walk = Walk::new(&path, self.root.bytes(), variables, true, env);
        walk.silent = self.silent;
        answered(go(&mut walk, &path))
    }
}

/// All that a path finds, as json.
///
/// # Errors
/// What ON ERROR does not answer.
pub fn find(call: &PathCall, env: &dyn Env) -> Result<Found<Vec<Jsonb>>> {
    call.walk(env, |walk, path| Ok(walk.all(path)?.into_iter().map(Value::into_jsonb).collect()))
}

/// All that a path finds.
///
/// # Errors
/// What ON ERROR does not answer.
pub fn find_items(call: &PathCall, env: &dyn Env) -> Result<Found<Vec<Item>>> {
    call.walk(env, |walk, path| Ok(walk.all(path)?.into_iter().map(Item::of).collect()))
}

/// Whether a path finds anything.
///
/// # Errors
/// What ON ERROR does not answer.
pub fn finds_any(call: &PathCall, env: &dyn Env) -> Result<Found<bool>> {
    call.walk(env, |walk, path| walk.any(path))
}

fn jsonb(a: &[Datum], i: usize) -> Result<&Jsonb> {
    match a.get(i) {
        Some(Datum::Jsonb(v)) => Ok(v),
        other => Err(err!(INTERNAL_ERROR, "expected jsonb, got {other:?}")),
    }
}

/// The variables that a call is given.
fn variables(a: &[Datum]) -> Result<Variables<'_>> {
    match a.get(2) {
        Some(Datum::Jsonb(v)) => match v.view() {
            View::Object(members) => Ok(Variables::Object(members)),
            _ => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "\"vars\" argument is not an object",
            )
            .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
            .into()),
        },
        _ => Ok(Variables::None),
    }
}

/// Is the call to keep quiet of errors?
fn is_silent(a: &[Datum]) -> bool {
    matches!(a.get(3), Some(Datum::Bool(true)))
}

fn exists(env: &dyn Env, a: &[Datum], zones: bool, silent: bool) -> Result<Datum> {
    let path = read(text(a, 1)?)?;
    let mut walk = Walk::new(&path, jsonb(a, 0)?.bytes(), variables(a)?, zones, env);
    walk.silent = silent || is_silent(a);
    match walk.any(&path) {
        Ok(any) => Ok(Datum::Bool(any)),
        Err(Fault::Soft(_)) if walk.silent => Ok(Datum::Null),
        Err(Fault::Soft(e) | Fault::Hard(e)) => Err(e),
    }
}

/// All that a path finds; a silent one what it finds before an error.
fn found<'a>(
    env: &'a dyn Env,
    a: &'a [Datum],
    zones: bool,
    silent: bool,
) -> Result<Vec<Value<'a>>> {
    let path = read(text(a, 1)?)?;
    let mut found = Vec::new();
    let mut walk = Walk::new(&path, jsonb(a, 0)?.bytes(), variables(a)?, zones, env);
    walk.silent = silent;
    match walk.all_into(&path, &mut found) {
        Err(Fault::Soft(e)) if !silent => Err(e),
        Err(Fault::Hard(e)) => Err(e),
        _ => Ok(found),
    }
}

fn matches(env: &dyn Env, a: &[Datum], zones: bool, silent: bool) -> Result<Datum> {
    let silent = silent || is_silent(a);
    if let [Value::Json(one)] = &found(env, a, zones, silent)?[..] {
        match view(one) {
            View::Bool(b) => return Ok(Datum::Bool(b)),
            View::Null => return Ok(Datum::Null),
            _ => {}
        }
    }
    if silent {
        return Ok(Datum::Null);
    }
    bail!(SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")
}

fn all(env: &dyn Env, a: &[Datum], zones: bool) -> Result<Vec<Jsonb>> {
    let found = found(env, a, zones, is_silent(a))?;
    Ok(found.into_iter().map(Value::into_jsonb).collect())
}

fn rows(env: &dyn Env, a: &[Datum], zones: bool) -> Result<RowIter> {
    let found = all(env, a, zones)?;
    Ok(Box::new(found.into_iter().map(|item| Ok(vec![Datum::Jsonb(item)]))))
}

fn first(env: &dyn Env, a: &[Datum], zones: bool) -> Result<Datum> {
    Ok(all(env, a, zones)?.into_iter().next().map_or(Datum::Null, Datum::Jsonb))
}

fn array(env: &dyn Env, a: &[Datum], zones: bool) -> Result<Datum> {
    array_of(&all(env, a, zones)?).map(Datum::Jsonb)
}

/// An array of these.
///
/// # Errors
/// `54000`, `54001`
pub fn array_of(items: &[Jsonb]) -> Result<Jsonb> {
    Jsonb::write(|out| {
        crate::json::stored::put_array(out, |out, ended| {
            for item in items {
                out.extend_from_slice(item.bytes());
                ended(out.len());
            }
            Ok(())
        })
    })
}

pub(in crate::json) const BODIES: BodyTable = &[
    ("jsonb_path_exists", S(|env, a| exists(env, a, false, false))),
    ("jsonb_path_exists_tz", S(|env, a| exists(env, a, true, false))),
    ("jsonb_path_exists_opr", S(|env, a| exists(env, a, false, true))),
    ("jsonb_path_match", S(|env, a| matches(env, a, false, false))),
    ("jsonb_path_match_tz", S(|env, a| matches(env, a, true, false))),
    ("jsonb_path_match_opr", S(|env, a| matches(env, a, false, true))),
    ("jsonb_path_query", FunctionBody::Set(|env, a| rows(env, a, false))),
    ("jsonb_path_query_tz", FunctionBody::Set(|env, a| rows(env, a, true))),
    ("jsonb_path_query_array", S(|env, a| array(env, a, false))),
    ("jsonb_path_query_array_tz", S(|env, a| array(env, a, true))),
    ("jsonb_path_query_first", S(|env, a| first(env, a, false))),
    ("jsonb_path_query_first_tz", S(|env, a| first(env, a, true))),
];
