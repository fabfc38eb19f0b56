//! Catalog rows by column name.

use super::defs::{CatalogDef, ColumnOf};
use crate::catalog::options::RelationOptions;
use base::{Oid, Tid, Xid};
use std::sync::Arc;
use txn::Snapshot;
use types::{ArrayValue, Datum, oids};

/// A row read from a catalog.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its catalog.
    pub def: &'static CatalogDef,
    /// Where it stands.
    pub tid: Tid,
    /// Its values, in column order.
    pub values: Vec<Datum>,
    /// What its columns that are written in place said when it was read.
    pub(super) statistics: Vec<Datum>,
    /// What it was seen through. As long as it lives, the version at `tid` stays there, even if the row is moved.
    pub(super) _seen: Arc<Snapshot>,
}

impl Row {
    /// The value of a column.
    pub fn get(&self, name: impl ColumnOf) -> &Datum {
        &self.values[name.within(self.def)]
    }
    /// An oid, regproc or xid column.
    pub fn oid(&self, name: impl ColumnOf) -> Oid {
        match self.get(name) {
            Datum::Oid(oid) => *oid,
            _ => Oid::INVALID,
        }
    }
    /// A text or name column; empty when NULL.
    pub fn text(&self, name: impl ColumnOf) -> &str {
        match self.get(name) {
            Datum::Text(s) => s.as_str(),
            _ => "",
        }
    }
    /// A text column that may be NULL.
    pub fn text_opt(&self, name: impl ColumnOf) -> Option<&str> {
        match self.get(name) {
            Datum::Text(s) => Some(s.as_str()),
            _ => None,
        }
    }
    /// A bool column.
    pub fn bool(&self, name: impl ColumnOf) -> bool {
        matches!(self.get(name), Datum::Bool(true))
    }
    /// A "char" column.
    pub fn char(&self, name: impl ColumnOf) -> u8 {
        match self.get(name) {
            Datum::Char(c) => *c,
            _ => 0,
        }
    }
    /// An int2, int4 or int8 column.
    pub fn int(&self, name: impl ColumnOf) -> i64 {
        match self.get(name) {
            Datum::Int2(i) => i64::from(*i),
            Datum::Int4(i) => i64::from(*i),
            Datum::Int8(i) => *i,
            _ => 0,
        }
    }
    /// An int2 or int4 column as i32.
    pub fn i32(&self, name: impl ColumnOf) -> i32 {
        i32::try_from(self.int(name)).unwrap_or(0)
    }
    /// A float4 column.
    pub fn f32(&self, name: impl ColumnOf) -> f32 {
        match self.get(name) {
            Datum::Float4(f) => *f,
            _ => 0.0,
        }
    }
    /// An xid8 column.
    pub fn xid8(&self, name: impl ColumnOf) -> Xid {
        match self.get(name) {
            Datum::Xid8(x) => Xid(*x),
            _ => Xid::INVALID,
        }
    }
    /// The elements of an array column; none when NULL.
    pub fn array(&self, name: impl ColumnOf) -> &[Datum] {
        match self.get(name) {
            Datum::Array(a) => &a.elements,
            _ => &[],
        }
    }
    /// An array of integers.
    pub fn ints(&self, name: impl ColumnOf) -> Vec<i32> {
        self.array(name)
            .iter()
            .map(|d| match d {
                Datum::Int2(i) => i32::from(*i),
                Datum::Int4(i) => *i,
                _ => 0,
            })
            .collect()
    }
    /// An array of OIDs.
    pub fn oids(&self, name: impl ColumnOf) -> Vec<Oid> {
        self.array(name)
            .iter()
            .map(|d| match d {
                Datum::Oid(oid) => *oid,
                _ => Oid::INVALID,
            })
            .collect()
    }
    /// An array of texts, or None when NULL.
    pub fn texts(&self, name: impl ColumnOf) -> Option<Vec<String>> {
        texts(self.get(name))
    }
    /// `reloptions`-like `name=value` texts.
    pub fn options(&self, name: impl ColumnOf) -> RelationOptions {
        options_of(self.get(name))
    }
    /// Sets a column.
    pub fn set(&mut self, name: &str, value: Datum) {
        let i = self.def.position(name);
        self.values[i] = counted(self.def.columns[i].ty, value);
    }
}

/// The texts of an array of them.
pub(super) fn texts(value: &Datum) -> Option<Vec<String>> {
    let text = |d: &Datum| match d {
        Datum::Text(s) => s.to_string(),
        _ => String::new(),
    };
    match value {
        Datum::Array(a) => Some(a.elements.iter().map(text).collect()),
        _ => None,
    }
}

/// `reloptions`-like `name=value` texts; none when NULL.
pub fn options_of(value: &Datum) -> RelationOptions {
    texts(value)
        .unwrap_or_default()
        .iter()
        .filter_map(|o| o.split_once('='))
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

/// A row to be: columns not set are NULL where they may be, else their type's zero.
pub struct NewRow {
    /// Its catalog.
    pub def: &'static CatalogDef,
    /// Its values so far.
    pub values: Vec<Datum>,
}

impl NewRow {
    /// A row of the catalog called `catalog`.
    pub fn of(catalog: &str) -> NewRow {
        let def = super::defs::by_name(catalog);
        let values =
            def.columns.iter().map(|c| if c.not_null { zero(c.ty) } else { Datum::Null }).collect();
        NewRow { def, values }
    }
    /// Sets a column.
    pub fn set(mut self, name: &str, value: Datum) -> NewRow {
        let i = self.def.position(name);
        self.values[i] = counted(self.def.columns[i].ty, value);
        self
    }
    /// Sets an oid column.
    pub fn oid(self, name: &str, oid: Oid) -> NewRow {
        self.set(name, Datum::Oid(oid))
    }
    /// Sets a text or name column.
    pub fn text(self, name: &str, text: &str) -> NewRow {
        self.set(name, Datum::text(text))
    }
    /// Sets a bool column.
    pub fn bool(self, name: &str, value: bool) -> NewRow {
        self.set(name, Datum::Bool(value))
    }
    /// Sets a "char" column.
    pub fn char(self, name: &str, value: u8) -> NewRow {
        self.set(name, Datum::Char(value))
    }
    /// Sets an integer column of any width.
    pub fn int(self, name: &str, value: i64) -> NewRow {
        let ty = self.def.columns[self.def.position(name)].ty;
        let value = match ty {
            oids::INT2 => Datum::Int2(i16::try_from(value).unwrap_or(0)),
            oids::INT4 => Datum::Int4(i32::try_from(value).unwrap_or(0)),
            _ => Datum::Int8(value),
        };
        self.set(name, value)
    }
}

/// The zero of a type that catalogs use.
fn zero(ty: Oid) -> Datum {
    match ty {
        oids::BOOL => Datum::Bool(false),
        oids::CHAR => Datum::Char(0),
        oids::INT2 => Datum::Int2(0),
        oids::INT4 => Datum::Int4(0),
        oids::INT8 => Datum::Int8(0),
        oids::FLOAT4 => Datum::Float4(0.0),
        oids::OID | oids::REGPROC | oids::XID => Datum::Oid(Oid::INVALID),
        oids::XID8 => Datum::Xid8(0),
        oids::TIMESTAMPTZ => Datum::TimestampTz(0),
        oids::PG_LSN => Datum::Lsn(base::Lsn::INVALID),
        oids::INT2VECTOR => int2_array(&[]),
        oids::OIDVECTOR | oids::OID_ARRAY => oid_array(&[]),
        oids::TEXT_ARRAY => text_array::<&str>(&[]),
        _ => Datum::text(""),
    }
}

/// An int2[] or int2vector.
pub fn int2_array(values: &[i32]) -> Datum {
    let elements =
        values.iter().map(|v| Datum::Int2(i16::try_from(*v).unwrap_or(0))).collect::<Vec<_>>();
    vector(oids::INT2, elements)
}

/// An oid[] or oidvector.
pub fn oid_array(values: &[Oid]) -> Datum {
    vector(oids::OID, values.iter().map(|v| Datum::Oid(*v)).collect())
}

/// A text[].
pub fn text_array<S: AsRef<str>>(values: &[S]) -> Datum {
    let elements = values.iter().map(Datum::text).collect();
    Datum::Array(Arc::new(ArrayValue::one_dimension(oids::TEXT, elements)))
}

/// `name=value` texts, NULL when there are none.
pub fn options_array(options: &RelationOptions) -> Datum {
    if options.is_empty() {
        return Datum::Null;
    }
    let list: Vec<String> = options.iter().map(|(n, v)| format!("{n}={v}")).collect();
    text_array(&list)
}

/// int2vector and oidvector count from 0, arrays from 1.
fn counted(ty: Oid, value: Datum) -> Datum {
    match value {
        Datum::Array(a) if matches!(ty, oids::INT2VECTOR | oids::OIDVECTOR) => {
            let mut a = Arc::unwrap_or_clone(a);
            for dim in &mut a.dims {
                dim.1 = 0;
            }
            Datum::Array(Arc::new(a))
        }
        value => value,
    }
}

/// An array; of a column that is a vector `counted` makes one.
fn vector(element: Oid, elements: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(ArrayValue::one_dimension(element, elements)))
}
