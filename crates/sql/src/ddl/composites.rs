//! Composite types of their own: CREATE TYPE … AS (…), and what ALTER TYPE does to their attributes. What is done to them as to other
//! types is in `enums.rs`.
//!
//! # Purpose
//! Such a type is the row type of a relation that has no rows: `pg_class` has it with relkind `c`, its attributes are columns. So its
//! values are rows like those of tables ([`types::row_types`]).
//!
//! # Invariants
//! The relation depends on its type, not the type on its relation as a table's does: the type is what is dropped and what is in a schema,
//! and its owner and privileges are those that count.
//!
//! # Locks
//! The type before its relation. Who alters attributes locks the type as for its end: nobody makes anything of it meanwhile.
//!
//! # Differs from PostgreSQL
//! An attribute keeps its type, and its place, while a stored expression makes rows of the type: there what it makes is not right any
//! more, or is made right when it is.

use super::alter::column_of;
use super::depend::{self, Kind, Object};
use super::relation::{self, NewColumn, NewRelation};
use super::row_types::{self, free_type_name};
use super::{Ddl, drop};
use crate::analyse;
use crate::parse::ast::{ObjectName, TypeName};
use crate::parse::utility::ColumnDef;
use base::{Error, Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, RelationPersistence, Table};
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::Row;
use std::rc::Rc;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

/// Is it the row of a composite type that is no table's or view's?
///
/// # Errors
/// I/O.
pub(super) fn is_alone(catalogs: &dyn RowSource, ty: &Row) -> Result<bool> {
    if ty.char("typtype") != b'c' {
        return Ok(false);
    }
    let found = catalogs.find("pg_class", &[("oid", Datum::Oid(ty.oid("typrelid")))])?;
    Ok(found.first().is_some_and(|class| class.char("relkind") == b'c'))
}

/// Is it the row of a type that is an object by itself: an enum, a domain, a composite type? Tables' row types and array types go with
/// what they are of.
///
/// # Errors
/// I/O.
pub(super) fn is_object(catalogs: &dyn RowSource, ty: &Row) -> Result<bool> {
    Ok(matches!(ty.char("typtype"), b'e' | b'd') || is_alone(catalogs, ty)?)
}

/// Of what CREATE TYPE refuses PostgreSQL does not say where it stands.
fn unplaced(e: Error) -> Error {
    let mut e = e.to_sql_error();
    e.position = None;
    e.into()
}

impl Ddl<'_> {
    /// CREATE TYPE … AS (…)
    ///
    /// # Errors
    /// `42710`, `42P07`, `42701`, `42704`, `42P16`, `3F000`, `42501`; I/O.
    pub fn create_composite(&mut self, name: &ObjectName, attributes: &[ColumnDef]) -> Result<()> {
        let namespace = self.relation_namespace(name, false)?;
        let state = self.state();
        free_type_name(state, namespace, &name.name)?;
        if attributes.len() > relation::COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS, "tables can have at most {} columns", relation::COLUMNS_MAX);
        }
        for (i, a) in attributes.iter().enumerate() {
            if attributes[..i].iter().any(|before| before.name == a.name) {
                bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", a.name);
            }
        }
        let columns = attributes.iter().map(|a| self.attribute(a).map_err(unplaced));
        let columns = columns.collect::<Result<_>>()?;
        let temporary = namespace == state.temp_schema.get();
        let new = NewRelation {
            name: name.name.clone(),
            namespace,
            kind: RelationKind::Composite,
            persistence: match temporary {
                true => RelationPersistence::Temporary,
                false => RelationPersistence::Permanent,
            },
            owner: state.current_user.borrow().oid,
            columns,
            options: RelationOptions::new(),
            toast_options: RelationOptions::new(),
        };
        relation::create(state, &new).map(|_| ())
    }

    /// What is said of an attribute.
    fn attribute(&self, def: &ColumnDef) -> Result<NewColumn> {
        let env = Rc::clone(self.session.env());
        let ty = analyse::resolve_type_name(&def.ty, &self.source, self.state(), env.as_ref())?;
        if def.ty.setof {
            bail!(INVALID_TABLE_DEFINITION, "column \"{}\" cannot be declared SETOF", def.name);
        }
        super::table::check_column_type(&def.name, ty.oid)?;
        let mut column = NewColumn::plain(&def.name, ty);
        if let Some(names) = &def.collation {
            column.collation = Some(super::table::column_collation(names, ty.oid)?);
        }
        Ok(column)
    }

    /// ALTER TYPE … ADD ATTRIBUTE: rows that are there have NULL in it.
    ///
    /// # Errors
    /// `42701`, `42704`, `42P16`; I/O.
    pub(super) fn add_attribute(&mut self, table: &Table, def: &ColumnDef) -> Result<()> {
        let (name, of) = (&def.name, &table.name);
        if table.column(name).is_some() {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" of relation \"{of}\" already exists");
        }
        // Dropped ones, which have their numbers, among them.
        if table.columns.len() >= relation::COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS, "tables can have at most {} columns", relation::COLUMNS_MAX);
        }
        let column = self.attribute(def)?;
        self.check_not_within(table, column.ty.oid)?;
        let state = self.state();
        let number = i32::try_from(table.columns.len() + 1).unwrap_or(i32::MAX);
        relation::insert_column(state, table.oid, number, &column)?;
        depend::record_type(state, Object::column(table.oid, number), column.ty.oid)?;
        relation::update_class(state, table.oid, |row| {
            row.set("relnatts", Datum::Int2(i16::try_from(number).unwrap_or(i16::MAX)));
        })?;
        self.rows_have_changed(table)
    }

    /// ALTER TYPE … ALTER ATTRIBUTE … TYPE: nobody has rows of it.
    ///
    /// # Errors
    /// `42703`, `42704`, `42P16`; `0A000` if something has, or makes, rows of it, or takes the attribute from one; I/O.
    pub(super) fn retype_attribute(
        &mut self,
        table: &Table,
        name: &str,
        ty: &TypeName,
        collation: Option<&[String]>,
    ) -> Result<()> {
        let found = column_of(table, name)?;
        let env = Rc::clone(self.session.env());
        let new = analyse::resolve_type_name(ty, &self.source, self.state(), env.as_ref())?;
        let collation = match collation {
            Some(names) => super::table::column_collation(names, new.oid)?,
            None => types::type_info(new.oid).map_or(Oid::INVALID, |i| i.collation),
        };
        super::table::check_column_type(name, new.oid)?;
        self.check_not_within(table, new.oid)?;
        self.check_row_type_unused(table)?;
        self.refuse_dependent_views(table, found)?;
        self.check_makes_no_rows(table)?;
        self.check_not_taken(table, found.number)?;
        let state = self.state();
        relation::update_attribute(state, table.oid, found.number, |row| {
            super::alter_type::set_type(row, new);
            row.set("attcollation", Datum::Oid(collation));
        })?;
        let object = Object::column(table.oid, found.number);
        depend::forget(state, object, Object::of("pg_type", found.declared))?;
        depend::record_type(state, object, new.oid)?;
        // What mentions the type, and has no rows of it, may be described by it.
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// Stored expressions that take the attribute from a row take it as what it is.
    fn check_not_taken(&self, table: &Table, number: i32) -> Result<()> {
        let class = Object::relation(table.oid).class;
        let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(table.oid))];
        let txn = self.state().txn()?;
        for row in self.state().catalog.rows(&txn).find("pg_depend", &key)? {
            if row.i32("refobjsubid") == number {
                let sub = row.i32("objsubid");
                let user = Object { class: row.oid("classid"), oid: row.oid("objid"), sub };
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot alter type \"{}\" because {} uses its attribute",
                    table.name,
                    drop::describe(self.state(), user)?
                );
            }
        }
        Ok(())
    }

    /// The relation of a composite type, locked to be altered; None: the row is another type's.
    pub(super) fn relation_of_composite(&self, ty: &Row) -> Result<Option<Arc<Table>>> {
        if ty.char("typtype") != b'c' {
            return Ok(None);
        }
        let relation = ty.oid("typrelid");
        crate::relations::lock(self.state(), relation, LockMode::AccessExclusive)?;
        self.described(relation).map(Some)
    }

    /// ALTER TYPE … SET SCHEMA
    ///
    /// # Errors
    /// `42710`, `42P07`; I/O.
    pub(super) fn move_composite(&self, table: &Table, to: Oid, schema: &str) -> Result<()> {
        let state = self.state();
        row_types::move_to(state, table.row_type, to, schema)?;
        if state.catalog.relation_oid(&*state.txn()?, to, &table.name)?.is_some() {
            let name = &table.name;
            bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists in schema \"{schema}\"");
        }
        relation::update_class(state, table.oid, |row| row.set("relnamespace", Datum::Oid(to)))?;
        let object = Object::of("pg_type", table.row_type);
        depend::forget(state, object, Object::of("pg_namespace", table.namespace))?;
        depend::record(state, object, Object::of("pg_namespace", to), Kind::Normal)?;
        // Descriptions hold expressions that are printed with the type's name.
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }
}
