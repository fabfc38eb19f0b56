//! Rows of json objects: json_populate_record, json_to_record and their like.
//!
//! # How the columns are known
//! The analyser adds a last argument to a call: a row of NULLs, with the names and types of the columns that the result has, rows of NULLs
//! for columns that are rows, arrays of one of them for columns that are arrays of rows. Without it (a call with a row value of no
//! declared type) the columns are those of the first argument.

use super::jsonb_output;
use super::raw::{self, Kind};
use super::stored::{View, view};
use crate::registry::{BodyTable, FunctionBody, RowIter};
use crate::{ArrayValue, Datum, Env, RecordColumn, RecordValue, oids};
use base::{Oid, Result, SqlError, SqlState, bail, err};
use std::collections::HashMap;
use std::sync::Arc;

/// A json or jsonb value, or part of one.
#[derive(Clone, Copy)]
enum Source<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> Source<'a> {
    fn of(value: &'a Datum) -> Option<Source<'a>> {
        match value {
            Datum::Text(t) => Some(Source::Text(t)),
            Datum::Jsonb(j) => Some(Source::Binary(j.bytes())),
            _ => None,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Source::Text(s) => raw::kind(s),
            Source::Binary(b) => match view(b) {
                View::Object(_) => Kind::Object,
                View::Array(_) => Kind::Array,
                View::String(_) => Kind::String,
                View::Null => Kind::Null,
                View::Bool(_) => Kind::Bool,
                View::Integer(_) | View::Number(_) => Kind::Number,
            },
        }
    }

    fn elements(self) -> Vec<Source<'a>> {
        match self {
            Source::Text(s) => raw::elements(s).map(Source::Text).collect(),
            Source::Binary(b) => match view(b) {
                View::Array(items) => items.iter().map(Source::Binary).collect(),
                _ => Vec::new(),
            },
        }
    }

    /// The value as json shows it.
    fn shown(self) -> String {
        match self {
            Source::Text(s) => raw::trimmed(s).to_owned(),
            Source::Binary(b) => {
                let mut out = String::new();
                jsonb_output(view(b), &mut out);
                out
            }
        }
    }

    /// What a type's input function reads: a string's own text, of anything else what it is shown as.
    fn input(self) -> Result<String> {
        match (self.kind(), self) {
            (Kind::String, Source::Text(s)) => raw::unescape(raw::trimmed(s)),
            (Kind::String, Source::Binary(b)) => match view(b) {
                View::String(s) => Ok(s.to_owned()),
                _ => Ok(String::new()),
            },
            _ => Ok(self.shown()),
        }
    }
}

/// The members of an object, for looking up.
enum Members<'a> {
    Text(HashMap<String, &'a str>),
    Binary(super::Object<'a>),
}

impl<'a> Members<'a> {
    fn of(source: Source<'a>) -> Result<Members<'a>> {
        match source {
            Source::Text(s) if raw::kind(s) == Kind::Object => {
                super::escapes_checked(s)?;
                let mut map = HashMap::new();
                for (key, value) in raw::members(s) {
                    map.insert(raw::unescape(key)?, value);
                }
                Ok(Members::Text(map))
            }
            Source::Binary(b) if matches!(view(b), View::Object(_)) => match view(b) {
                View::Object(members) => Ok(Members::Binary(members)),
                _ => Err(not_an_object(source)),
            },
            _ => Err(not_an_object(source)),
        }
    }

    fn get(&self, key: &str) -> Option<Source<'a>> {
        match self {
            Members::Text(map) => map.get(key).map(|v| Source::Text(v)),
            Members::Binary(members) => members.get(key).map(Source::Binary),
        }
    }
}

fn not_an_object(source: Source) -> base::Error {
    let what = if source.kind() == Kind::Array { "an array" } else { "a scalar" };
    err!(INVALID_PARAMETER_VALUE, "cannot call populate_composite on {what}")
}

/// The row that an object is: of the template's columns, those that the object lacks as in `base`.
fn record(
    source: Source,
    base: Option<&RecordValue>,
    template: &RecordValue,
    env: &dyn Env,
) -> Result<RecordValue> {
    let members = Members::of(source)?;
    let mut fields = Vec::with_capacity(template.columns.len());
    for (i, column) in template.columns.iter().enumerate() {
        let before = base.and_then(|b| b.fields.get(i));
        fields.push(match (members.get(&column.name), before) {
            (None, Some(before)) => before.clone(),
            (None, None) => checked(column.type_oid, Datum::Null, env)?,
            (Some(value), before) => field(value, column, before, template.fields.get(i), env)?,
        });
    }
    let columns = template.columns.iter().map(|c| match crate::domains::base(c.type_oid) {
        Some((type_oid, typmod)) => RecordColumn { type_oid, typmod, ..c.clone() },
        None => c.clone(),
    });
    Ok(RecordValue { type_oid: template.type_oid, columns: columns.collect(), fields })
}

/// The value, if it is one of the type, which may be a domain.
fn checked(ty: Oid, value: Datum, env: &dyn Env) -> Result<Datum> {
    crate::domains::check(ty, &value, env)?;
    Ok(value)
}

fn field(
    value: Source,
    column: &RecordColumn,
    before: Option<&Datum>,
    template: Option<&Datum>,
    env: &dyn Env,
) -> Result<Datum> {
    let (ty, typmod) =
        crate::domains::base(column.type_oid).unwrap_or((column.type_oid, column.typmod));
    let kind = value.kind();
    if kind == Kind::Null {
        return checked(column.type_oid, Datum::Null, env);
    }
    if let Some(Datum::Record(template)) = template
        && kind != Kind::String
    {
        let before = match before {
            Some(Datum::Record(r)) => Some(&**r),
            _ => None,
        };
        return Ok(Datum::Record(Arc::new(record(value, before, template, env)?)));
    }
    let element = crate::element_type(ty);
    let made = match element.filter(|_| kind != Kind::String) {
        Some(element) => {
            let of = match template {
                Some(Datum::Array(a)) => a.elements.first(),
                _ => None,
            };
            array(value, Element { ty: element, typmod, template: of }, &column.name, env)?
        }
        None => scalar(value, ty, typmod, env)?,
    };
    checked(column.type_oid, made, env)
}

/// A jsonb as a value of a column's type; a string keeps its quotes where the type is text.
///
/// # Errors
/// What the type's input says.
pub(super) fn column_of(
    value: &super::Jsonb,
    column: &RecordColumn,
    env: &dyn Env,
) -> Result<Datum> {
    let source = Source::Binary(value.bytes());
    let (ty, typmod) =
        crate::domains::base(column.type_oid).unwrap_or((column.type_oid, column.typmod));
    // JSON's null is one of json's values, and text as any other is.
    if ty == oids::JSON || ty == oids::JSONB {
        return checked(column.type_oid, scalar(source, ty, typmod, env)?, env);
    }
    if let Some(element) = crate::element_type(ty) {
        let made = array(source, Element { ty: element, typmod, template: None }, "", env)?;
        return checked(column.type_oid, made, env);
    }
    checked(column.type_oid, crate::io::text_input(ty, typmod, &source.shown(), env)?, env)
}

fn scalar(value: Source, ty: Oid, typmod: i32, env: &dyn Env) -> Result<Datum> {
    match (ty, value) {
        (oids::JSON, _) => Ok(Datum::text(value.shown())),
        (oids::JSONB, Source::Binary(b)) => Ok(Datum::Jsonb(super::Jsonb::part(b))),
        (oids::JSONB, Source::Text(s)) => super::jsonb_input(s),
        _ => crate::io::text_input(ty, typmod, &value.input()?, env),
    }
}

/// What elements of an array are: their type, and if that is a row's a row of NULLs.
#[derive(Clone, Copy)]
struct Element<'a> {
    ty: Oid,
    typmod: i32,
    template: Option<&'a Datum>,
}

/// Elements of an array that is being filled.
struct Filling<'a> {
    element: Element<'a>,
    key: &'a str,
    env: &'a dyn Env,
    /// The lengths of its dimensions: those that are known.
    lengths: Vec<Option<usize>>,
    /// How many dimensions it has, once something was found that is no array.
    dimensions: Option<usize>,
    elements: Vec<Datum>,
    /// Where in the json it is, counted from 0.
    at: Vec<usize>,
}

fn array(value: Source, element: Element, key: &str, env: &dyn Env) -> Result<Datum> {
    let mut filling = Filling {
        element,
        key,
        env,
        lengths: Vec::new(),
        dimensions: None,
        elements: Vec::new(),
        at: Vec::new(),
    };
    filling.level(value, 1)?;
    let array = if filling.elements.is_empty() {
        ArrayValue { element_type: element.ty, dims: Vec::new(), elements: Vec::new() }
    } else {
        let length = |n: &Option<usize>| (n.map_or(0, |n| n as i32), 1);
        let dims = filling.lengths.iter().map(length).collect();
        ArrayValue { element_type: element.ty, dims, elements: filling.elements }
    };
    crate::array::element_count(&array.dims)?;
    Ok(Datum::Array(Arc::new(array)))
}

impl Filling<'_> {
    fn level(&mut self, value: Source, level: usize) -> Result<()> {
        if value.kind() != Kind::Array {
            return Err(self.expected_array());
        }
        if level > 6 {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({level}) exceeds the maximum allowed (6)"
            );
        }
        let items = value.elements();
        if self.lengths.len() < level {
            self.lengths.push(None);
        }
        match self.lengths[level - 1] {
            Some(n) if n != items.len() => return Err(malformed()),
            _ => self.lengths[level - 1] = Some(items.len()),
        }
        for (i, item) in items.into_iter().enumerate() {
            self.at.push(i);
            if self.dimensions.is_none() && item.kind() != Kind::Array {
                self.dimensions = Some(level);
                if self.lengths.len() > level {
                    return Err(malformed());
                }
            }
            if self.dimensions == Some(level) {
                let made = self.made(item)?;
                self.elements.push(made);
            } else {
                self.level(item, level + 1)?;
            }
            self.at.pop();
        }
        Ok(())
    }

    fn made(&self, item: Source) -> Result<Datum> {
        let Element { ty, typmod, template } = self.element;
        match (item.kind(), template) {
            (Kind::Null, _) => checked(ty, Datum::Null, self.env),
            (kind, Some(Datum::Record(template))) if kind != Kind::String => {
                Ok(Datum::Record(Arc::new(record(item, None, template, self.env)?)))
            }
            _ => {
                let (base, typmod) = crate::domains::base(ty).unwrap_or((ty, typmod));
                checked(ty, scalar(item, base, typmod, self.env)?, self.env)
            }
        }
    }

    fn expected_array(&self) -> base::Error {
        let e = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
        let place: String = self.at.iter().map(|i| format!("[{i}]")).collect();
        let hint = match (place.is_empty(), self.key.is_empty()) {
            (true, true) => return e.into(),
            (true, false) => format!("See the value of key \"{}\".", self.key),
            (false, false) => format!("See the array element {place} of key \"{}\".", self.key),
            (false, true) => format!("See the array element {place}."),
        };
        e.hint(hint).into()
    }
}

fn malformed() -> base::Error {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
        .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
        .into()
}

/// What one of the functions is called with.
struct Call<'a> {
    name: &'static str,
    source: Option<Source<'a>>,
    base: Option<&'a RecordValue>,
    template: &'a RecordValue,
}

/// Takes a call apart. `populates`: its first argument is the row to begin with.
fn call<'a>(a: &'a [Datum], name: &'static str, populates: bool) -> Result<Call<'a>> {
    let row = |d: Option<&'a Datum>| match d {
        Some(Datum::Record(r)) => Some(&**r),
        _ => None,
    };
    let base = if populates { row(a.first()) } else { None };
    let at = usize::from(populates);
    let source = a.get(at).and_then(Source::of);
    let template = if a.len() > at + 1 { row(a.last()) } else { None };
    if populates && !matches!(a.first(), Some(Datum::Null | Datum::Record(_))) {
        bail!(DATATYPE_MISMATCH, "first argument of {name} must be a row type");
    }
    let Some(template) = template.or(base) else {
        let hint = if populates {
            "Provide a non-null record argument, or call the function in the FROM clause using a column definition list."
        } else {
            "Call the function in the FROM clause using a column definition list."
        };
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("could not determine row type for result of {name}"),
        )
        .hint(hint)
        .into());
    };
    Ok(Call { name, source, base, template })
}

fn one(env: &dyn Env, a: &[Datum], name: &'static str, populates: bool) -> Result<Datum> {
    let call = call(a, name, populates)?;
    let Some(source) = call.source else {
        return Ok(call.base.map_or(Datum::Null, |b| Datum::Record(Arc::new(b.clone()))));
    };
    Ok(Datum::Record(Arc::new(record(source, call.base, call.template, env)?)))
}

fn many(env: &dyn Env, a: &[Datum], name: &'static str, populates: bool) -> Result<RowIter> {
    let call = call(a, name, populates)?;
    let Some(source) = call.source else { return Ok(Box::new(std::iter::empty())) };
    if source.kind() != Kind::Array {
        let what = match (source, source.kind()) {
            (Source::Binary(_), _) => "a non-array",
            (_, Kind::Object) => "an object",
            _ => "a scalar",
        };
        bail!(INVALID_PARAMETER_VALUE, "cannot call {} on {what}", call.name);
    }
    let mut rows = Vec::new();
    for item in source.elements() {
        env.check_cancel()?;
        if item.kind() != Kind::Object {
            bail!(INVALID_PARAMETER_VALUE, "argument of {} must be an array of objects", call.name);
        }
        let row = record(item, call.base, call.template, env)?;
        rows.push(Ok(vec![Datum::Record(Arc::new(row))]));
    }
    Ok(Box::new(rows.into_iter()))
}

/// Whether a row can be made.
fn valid(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    match one(env, a, "jsonb_populate_record", true) {
        Ok(_) => Ok(Datum::Bool(true)),
        Err(e) if e.state().as_str().starts_with("22") || e.state().as_str().starts_with("23") => {
            Ok(Datum::Bool(false))
        }
        Err(e) => Err(e),
    }
}

macro_rules! row {
    ($name:literal, $populates:literal) => {
        ($name, FunctionBody::Scalar(|env, a| one(env, a, $name, $populates)))
    };
}

macro_rules! rows {
    ($name:literal, $populates:literal) => {
        ($name, FunctionBody::Set(|env, a| many(env, a, $name, $populates)))
    };
}

pub(super) const BODIES: BodyTable = &[
    row!("json_populate_record", true),
    row!("jsonb_populate_record", true),
    row!("json_to_record", false),
    row!("jsonb_to_record", false),
    rows!("json_populate_recordset", true),
    rows!("jsonb_populate_recordset", true),
    rows!("json_to_recordset", false),
    rows!("jsonb_to_recordset", false),
    ("jsonb_populate_record_valid", FunctionBody::Scalar(valid)),
];

/// True for the functions whose rows' columns are told by a last argument.
pub fn makes_rows(name: &str) -> bool {
    BODIES.iter().any(|(n, _)| *n == name)
}
