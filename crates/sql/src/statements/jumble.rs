//! What a query is known by: a hash of what it means, its constants left out.
//!
//! # Purpose
//! Statements that differ in constants, white space, comments, the case of words or the names of their outputs have one `queryid`.
//!
//! # Layout
//! [`Jumble`] is a serialiser: it is fed the analysed [`Query`] as a stored view would be written, and hashes instead of writing. What is
//! left out has names in [`is_left_out`].
//!
//! # Invariants
//! Of a constant the type counts and nothing else, and a list of two constants or more counts as one list, however long. A table counts by
//! its name, whatever its schema, not by its OID: `queryid` outlives DROP and CREATE, and is one for the schemas of all tenants. Of a view its
//! name counts and not its query.
//!
//! # Differs from PostgreSQL
//! Identifiers are other numbers than PostgreSQL's. A column that INSERT fills by its default counts with that.

use super::hash::Hash;
use crate::query::Query;
use crate::session::SessionState;
use base::Oid;
use engine::catalog::model::CatalogView;
use serde::ser::{self, Serialize};
use std::fmt;

/// The identifier of an analysed query.
pub fn query_id(query: &Query, state: &SessionState) -> i64 {
    let mut jumble =
        Jumble { hash: Hash::new(), state, plain: true, first_number: None, first_length: None };
    // What can't be fed is not hashed; nothing in a query is of that kind.
    let _ = query.serialize(&mut jumble);
    jumble.named(query);
    jumble.hash.id()
}

struct Jumble<'a> {
    hash: Hash,
    state: &'a SessionState,
    /// Nothing but constants, parameters and casts has come since this was set.
    plain: bool,
    /// The first number, and the first list's length, that have come since these were taken.
    first_number: Option<u64>,
    first_length: Option<usize>,
}

#[derive(Debug)]
struct Never;

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a query could not be hashed")
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: fmt::Display>(_: T) -> Never {
        Never
    }
}

type Done = Result<(), Never>;

/// Fields of which nothing follows that was not written otherwise too.
fn is_left_out(of: &str, field: &str) -> bool {
    match of {
        "TargetEntry" => matches!(field, "name" | "origin"),
        "RangeTableEntry" => matches!(
            field,
            "has_alias"
                | "column_aliases"
                | "column_names"
                | "column_types"
                | "required_privileges"
                | "check_as"
        ),
        // How something is printed, and how often it is referred to.
        "Query" => matches!(field, "group_items" | "group_distinct" | "recursive_with"),
        "Cte" => matches!(field, "references" | "types"),
        "Join" => matches!(field, "using" | "using_alias"),
        "WindowDefinition" => matches!(field, "name" | "base" | "ordered_as_base"),
        "WindowFrame" => matches!(field, "explicit" | "open"),
        "CoerceViaIo" | "Relabel" | "CoerceToDomain" => field == "explicit",
        "Field" | "Row" => matches!(field, "name" | "names"),
        _ => false,
    }
}

impl Jumble<'_> {
    fn variant(&mut self, of: &str, variant: &str) {
        self.hash.text(variant);
        if of == "Expr"
            && !matches!(variant, "Const" | "Param" | "Relabel" | "CoerceViaIo" | "Call")
        {
            self.plain = false;
        }
        // A call that is no cast.
        if of == "CallForm" && !matches!(variant, "ExplicitCast" | "ImplicitCast") {
            self.plain = false;
        }
    }

    /// For which columns there are values: those that are filled by default look the same.
    fn named(&mut self, query: &Query) {
        query.named.iter().for_each(|column| self.hash.number(u64::from(column.unsigned_abs())));
        query.ctes.iter().for_each(|cte| self.named(&cte.query));
    }

    /// A relation by its name.
    fn relation(&mut self, oid: u64) {
        let known = self.state.table_by_oid(Oid(u32::try_from(oid).unwrap_or(0)));
        let Ok(Some(table)) = known else { return self.hash.number(oid) };
        self.hash.text(&table.name);
    }

    /// The first number in a value, which is not hashed.
    fn number_in<T: Serialize + ?Sized>(&mut self, value: &T) -> u64 {
        let before = self.hash;
        self.first_number = None;
        let _ = value.serialize(&mut *self);
        self.hash = before;
        self.first_number.unwrap_or(0)
    }
}

/// Whatever consists of parts.
struct Parts<'j, 'a> {
    jumble: &'j mut Jumble<'a>,
    of: &'static str,
    /// The hash as it was before a part that may yet be left out.
    before: Hash,
}

impl<'j, 'a> Parts<'j, 'a> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        if is_left_out(self.of, name) {
            return Ok(());
        }
        match (self.of, name) {
            ("Relation", "oid") => {
                let oid = self.jumble.number_in(value);
                self.jumble.relation(oid);
                return Ok(());
            }
            ("Subquery", "query") => {
                self.before = self.jumble.hash;
                return value.serialize(&mut *self.jumble);
            }
            ("Subquery", "view") => {
                let view = self.jumble.number_in(value);
                if view != 0 {
                    self.jumble.hash = self.before;
                    self.jumble.relation(view);
                }
                return Ok(());
            }
            ("Array", "elements") => return self.elements(value),
            _ => {}
        }
        self.jumble.hash.text(name);
        value.serialize(&mut *self.jumble)
    }

    /// ARRAY[…], and the list of IN.
    fn elements<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let (before, plain) = (self.jumble.hash, self.jumble.plain);
        (self.jumble.plain, self.jumble.first_length) = (true, None);
        value.serialize(&mut *self.jumble)?;
        let length = self.jumble.first_length;
        if self.jumble.plain && length.is_some_and(|n| n > 1) {
            self.jumble.hash = before;
            self.jumble.hash.text("constants");
        }
        self.jumble.plain = plain && self.jumble.plain;
        Ok(())
    }
}

impl<'j, 'a> ser::Serializer for &'j mut Jumble<'a> {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Parts<'j, 'a>;
    type SerializeTuple = Parts<'j, 'a>;
    type SerializeTupleStruct = Parts<'j, 'a>;
    type SerializeTupleVariant = Parts<'j, 'a>;
    type SerializeMap = Parts<'j, 'a>;
    type SerializeStruct = Parts<'j, 'a>;
    type SerializeStructVariant = Parts<'j, 'a>;

    fn serialize_bool(self, v: bool) -> Done {
        self.hash.number(u64::from(v));
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i16(self, v: i16) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i32(self, v: i32) -> Done {
        self.serialize_i64(i64::from(v))
    }
    fn serialize_i64(self, v: i64) -> Done {
        self.serialize_u64(v.cast_unsigned())
    }
    fn serialize_u8(self, v: u8) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u16(self, v: u16) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u32(self, v: u32) -> Done {
        self.serialize_u64(u64::from(v))
    }
    fn serialize_u64(self, v: u64) -> Done {
        self.first_number.get_or_insert(v);
        self.hash.number(v);
        Ok(())
    }
    fn serialize_f32(self, v: f32) -> Done {
        self.serialize_u64(u64::from(v.to_bits()))
    }
    fn serialize_f64(self, v: f64) -> Done {
        self.serialize_u64(v.to_bits())
    }
    fn serialize_char(self, v: char) -> Done {
        self.serialize_u64(u64::from(u32::from(v)))
    }
    fn serialize_str(self, v: &str) -> Done {
        self.hash.text(v);
        Ok(())
    }
    fn serialize_bytes(self, v: &[u8]) -> Done {
        self.hash.bytes(v);
        Ok(())
    }
    fn serialize_none(self) -> Done {
        self.hash.number(0);
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        self.hash.number(1);
        value.serialize(self)
    }
    fn serialize_unit(self) -> Done {
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Ok(())
    }
    fn serialize_unit_variant(self, of: &'static str, _: u32, variant: &'static str) -> Done {
        self.variant(of, variant);
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Done {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        of: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.variant(of, variant);
        // The type, which comes first, and not the value.
        if of == "Expr" && variant == "Const" {
            let ty = self.number_in(value);
            self.hash.number(ty);
            return Ok(());
        }
        value.serialize(self)
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Parts<'j, 'a>, Never> {
        self.first_length.get_or_insert(len.unwrap_or(0));
        self.hash.number(len.unwrap_or(0) as u64);
        Ok(Parts { before: self.hash, jumble: self, of: "" })
    }
    fn serialize_tuple(self, _: usize) -> Result<Parts<'j, 'a>, Never> {
        Ok(Parts { before: self.hash, jumble: self, of: "" })
    }
    fn serialize_tuple_struct(self, of: &'static str, _: usize) -> Result<Parts<'j, 'a>, Never> {
        Ok(Parts { before: self.hash, jumble: self, of })
    }
    fn serialize_tuple_variant(
        self,
        of: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'j, 'a>, Never> {
        self.variant(of, variant);
        Ok(Parts { before: self.hash, jumble: self, of: variant })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'j, 'a>, Never> {
        Ok(Parts { before: self.hash, jumble: self, of: "" })
    }
    fn serialize_struct(self, of: &'static str, _: usize) -> Result<Parts<'j, 'a>, Never> {
        Ok(Parts { before: self.hash, jumble: self, of })
    }
    fn serialize_struct_variant(
        self,
        of: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'j, 'a>, Never> {
        self.variant(of, variant);
        Ok(Parts { before: self.hash, jumble: self, of: variant })
    }
}

impl ser::SerializeSeq for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.jumble)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeTuple for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.jumble)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeTupleStruct for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.jumble)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeTupleVariant for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.jumble)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeMap for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        key.serialize(&mut *self.jumble)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.jumble)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeStruct for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
impl ser::SerializeStructVariant for Parts<'_, '_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }
    fn end(self) -> Done {
        Ok(())
    }
}
