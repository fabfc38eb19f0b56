//! Row types of relations, composite types among them, and the array types over them, as `pg_type` has them; what uses them; and names of types that make way.
//!
//! # Invariants
//! A relation that has a row type has an array type over it, whose OID follows from the row type's ([`types::row_types`]). Only a row type
//! that is older than such array types may lack one: it gets it when a column is of it.

use super::Ddl;
use super::default_acl::{self, Made};
use super::depend::{self, Kind, Object};
use super::enums::{array_name, array_row, type_row};
use super::field_places;
use super::relation::NewRelation;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::rows::{NewRow, Row};
use std::sync::Arc;
use types::Datum;
use types::row_types::{array_of, row_of};

/// OIDs for a row type and its array type.
fn new_oids(state: &SessionState) -> Result<(Oid, Oid)> {
    loop {
        let row = types::row_types::type_oid(state.cluster.engine().files.new_oid());
        let Some(array) = array_of(row) else { continue };
        if type_row(state, row)?.is_none() && type_row(state, array)?.is_none() {
            return Ok((row, array));
        }
    }
}

/// Makes the row type of a relation, with its array type.
///
/// # Errors
/// `42710`; I/O.
pub(super) fn create(state: &SessionState, new: &NewRelation, relation: Oid) -> Result<Oid> {
    if !is_free(state, new.namespace, &new.name)? {
        let text = format!("type \"{}\" already exists", new.name);
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, text)
            .hint(
                "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
            )
            .into());
    }
    let (oid, array) = new_oids(state)?;
    let is_composite = new.kind == RelationKind::Composite;
    let privileges = match is_composite {
        true => default_acl::of_new(state, Made::Type, new.owner, new.namespace)?,
        false => Datum::Null,
    };
    let row = NewRow::of("pg_type")
        .oid("oid", oid)
        .text("typname", &new.name)
        .oid("typnamespace", new.namespace)
        .oid("typowner", new.owner)
        .set("typacl", privileges)
        .int("typlen", -1)
        .char("typtype", b'c')
        .char("typcategory", b'C')
        .bool("typisdefined", true)
        .char("typdelim", b',')
        .oid("typrelid", relation)
        .oid("typarray", array)
        .oid("typinput", Oid(2290))
        .oid("typoutput", Oid(2291))
        .oid("typreceive", Oid(2402))
        .oid("typsend", Oid(2403))
        .char("typalign", b'd')
        .char("typstorage", b'x')
        .int("typtypmod", -1);
    let txn = state.txn()?;
    state.catalog.rows(&txn).insert(&row)?;
    let (ty, relation) = (Object::of("pg_type", oid), Object::relation(relation));
    if is_composite {
        depend::record(state, relation, ty, Kind::Internal)?;
        let schema = Object::of("pg_namespace", new.namespace);
        depend::record(state, ty, schema, Kind::Normal)?;
    } else {
        depend::record(state, ty, relation, Kind::Internal)?;
    }
    create_array(state, oid, array, &new.name, new.namespace, new.owner)?;
    Ok(oid)
}

fn create_array(
    state: &SessionState,
    row_type: Oid,
    array: Oid,
    name: &str,
    namespace: Oid,
    owner: Oid,
) -> Result<()> {
    let name = array_name(state, namespace, name)?;
    let row = array_row(array, &name, namespace, owner, row_type).char("typalign", b'd');
    let txn = state.txn()?;
    state.catalog.rows(&txn).insert(&row)?;
    let (array, row_type) = (Object::of("pg_type", array), Object::of("pg_type", row_type));
    depend::record(state, array, row_type, Kind::Internal)?;
    state.catalog.changed_named(array.oid, &name);
    Ok(())
}

/// Sees to it that the array type over a row type, of which something is about to be, has a row in `pg_type`.
///
/// # Errors
/// `42704` when the row type is not there any more; I/O.
pub(super) fn ensure_array(state: &SessionState, array: Oid) -> Result<()> {
    let Some(row_type) = row_of(array).filter(|row| *row >= Oid::FIRST_NORMAL) else {
        return Ok(());
    };
    if type_row(state, array)?.is_some() {
        return Ok(());
    }
    let Some(mut row) = type_row(state, row_type)? else {
        bail!(UNDEFINED_OBJECT, "type with OID {array} does not exist");
    };
    let (namespace, owner) = (row.oid("typnamespace"), row.oid("typowner"));
    create_array(state, row_type, array, row.text("typname"), namespace, owner)?;
    row.set("typarray", Datum::Oid(array));
    let txn = state.txn()?;
    state.catalog.rows(&txn).update(&row)
}

/// Changes the row of a relation's row type, and that of its array type by what `array` makes of it.
///
/// # Errors
/// I/O.
pub(super) fn update(
    state: &SessionState,
    row_type: Oid,
    change: impl FnOnce(&mut Row),
    array: impl FnOnce(&mut Row) -> Result<()>,
) -> Result<()> {
    let Some(mut row) = type_row(state, row_type)? else { return Ok(()) };
    change(&mut row);
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    rows.update(&row)?;
    if let Some(mut row) = type_row(state, row.oid("typarray"))? {
        array(&mut row)?;
        rows.update(&row)?;
    }
    Ok(())
}

/// Renames a relation's row type, whose new name is free, and its array type unless that has just made way.
///
/// # Errors
/// I/O.
pub(super) fn rename(
    state: &SessionState,
    row_type: Oid,
    namespace: Oid,
    new: &str,
    moved: Option<Oid>,
) -> Result<()> {
    update(
        state,
        row_type,
        |row| row.set("typname", Datum::text(new)),
        |array| {
            if moved != Some(array.oid("oid")) {
                array.set("typname", Datum::text(array_name(state, namespace, new)?));
            }
            Ok(())
        },
    )
}

/// Moves a relation's row type to another schema, with its array type. Neither makes another type of that schema give way.
///
/// # Errors
/// `42710`; I/O.
pub(super) fn move_to(
    state: &SessionState,
    row_type: Oid,
    namespace: Oid,
    schema: &str,
) -> Result<()> {
    let Some(row) = type_row(state, row_type)? else { return Ok(()) };
    let parts = [Some(row), type_row(state, array_of(row_type).unwrap_or_default())?];
    let txn = state.txn()?;
    for mut row in parts.into_iter().flatten() {
        let name = row.text("typname");
        if state.catalog.type_oid(&txn, namespace, name)?.is_some() {
            bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists in schema \"{schema}\"");
        }
        row.set("typnamespace", Datum::Oid(namespace));
        state.catalog.rows(&txn).update(&row)?;
    }
    Ok(())
}

fn is_free(state: &SessionState, namespace: Oid, name: &str) -> Result<bool> {
    let found = state.catalog.type_oid(&*state.txn()?, namespace, name)?;
    found.map_or(Ok(true), |ty| make_way(state, ty))
}

/// Gives an array type that was made with its element another name: whoever wants the one that it has did not know of it. False: it is no
/// such type.
fn make_way(state: &SessionState, ty: Oid) -> Result<bool> {
    let Some(mut row) = type_row(state, ty)? else { return Ok(false) };
    let Some(element) = type_row(state, row.oid("typelem"))? else { return Ok(false) };
    if element.oid("typarray") != ty {
        return Ok(false);
    }
    let old = row.text("typname").to_owned();
    let new = array_name(state, row.oid("typnamespace"), &old)?;
    row.set("typname", Datum::text(&new));
    let txn = state.txn()?;
    state.catalog.rows(&txn).update(&row)?;
    if types::domains::is_domain_array(ty) {
        super::domains::learn(&element, &new);
    } else if types::enums::is_enum_array(ty) {
        types::enums::name(ty, &new);
    }
    state.catalog.changed_named(ty, &old);
    state.catalog.changed_named(ty, &new);
    Ok(true)
}

/// Sees to it that no type of the schema has that name. Returns the array type that had it and has another now.
///
/// # Errors
/// `42710`
pub(super) fn free_type_name(
    state: &SessionState,
    namespace: Oid,
    name: &str,
) -> Result<Option<Oid>> {
    let found = state.catalog.type_oid(&*state.txn()?, namespace, name)?;
    if let Some(ty) = found
        && !make_way(state, ty)?
    {
        bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
    }
    Ok(found)
}

impl Ddl<'_> {
    /// Rows of `table` as values of others' columns are not rewritten with it.
    ///
    /// # Errors
    /// `0A000`
    pub(super) fn check_row_type_unused(&self, table: &Table) -> Result<()> {
        match self.row_type_user(table)? {
            None => Ok(()),
            Some((user, column)) if table.kind == RelationKind::Composite => bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter type \"{}\" because column \"{}.{column}\" uses it",
                table.name,
                user.name
            ),
            Some((user, column)) => bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter table \"{}\" because column \"{}.{column}\" uses its row type",
                table.name,
                user.name
            ),
        }
    }

    /// The table's rows have more columns, or other names, from now on: descriptions of the tables whose columns hold such say so, and so
    /// does what makes them in stored expressions.
    pub(super) fn rows_have_changed(&self, table: &Table) -> Result<()> {
        if !table.row_type.is_valid() {
            return Ok(());
        }
        let mut changed = self.row_type_user(table)?.is_some();
        let table = self.described(table.oid)?;
        for user in self.dependents_of_rows(table.row_type)?.iter().filter(|user| user.sub == 0) {
            changed |= field_places::widen(self.state(), *user, &table)?;
        }
        if changed {
            self.state().catalog.changed(Oid::INVALID);
        }
        Ok(())
    }

    /// A stored column of the table's row type, of an array of it, or of rows of a view or composite type that have such columns.
    pub(super) fn row_type_user(&self, table: &Table) -> Result<Option<(Arc<Table>, String)>> {
        if !table.row_type.is_valid() {
            return Ok(None);
        }
        let mut types = vec![table.row_type];
        let mut views = self.views_over(table.oid)?;
        let mut at = 0;
        while let Some(&ty) = types.get(at) {
            at += 1;
            if let Some(user) = self.stored_column_of(ty, &mut Vec::new())? {
                return Ok(Some(user));
            }
            let is_of = |own: Oid| own == ty || Some(own) == array_of(ty);
            let has = |view: &Table| view.columns.iter().any(|c| is_of(c.ty.oid));
            types.extend(views.extract_if(.., |view| has(view)).map(|view| view.row_type));
        }
        Ok(None)
    }

    /// The views that read a relation, be it through other views.
    pub(super) fn views_over(&self, relation: Oid) -> Result<Vec<Arc<Table>>> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let (class, rule) =
            (Object::relation(relation).class, Object::of("pg_rewrite", relation).class);
        let mut found: Vec<Arc<Table>> = Vec::new();
        let mut open = vec![relation];
        while let Some(read) = open.pop() {
            let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(read))];
            for row in rows.find("pg_depend", &key)? {
                if row.oid("classid") != rule {
                    continue;
                }
                for rule in rows.find("pg_rewrite", &[("oid", Datum::Oid(row.oid("objid")))])? {
                    let view = rule.oid("ev_class");
                    if view != relation
                        && !found.iter().any(|v| v.oid == view)
                        && let Some(view) = state.table_by_oid(view)?
                        && view.kind == RelationKind::View
                    {
                        open.push(view.oid);
                        found.push(view);
                    }
                }
            }
        }
        Ok(found)
    }

    /// A column of the row type, or of an array of it, in a relation that stores rows, be it within rows of a composite type. It is the one
    /// that PostgreSQL comes upon first, which goes by when things came to depend on the type: its array did at once.
    fn stored_column_of(
        &self,
        row_type: Oid,
        seen: &mut Vec<Oid>,
    ) -> Result<Option<(Arc<Table>, String)>> {
        if seen.contains(&row_type) {
            return Ok(None);
        }
        seen.push(row_type);
        let class = |name| engine::catalog::defs::by_name(name).oid;
        let txn = self.state().txn()?;
        let rows = self.state().catalog.rows(&txn);
        for ty in [array_of(row_type), Some(row_type)].into_iter().flatten() {
            let key = [("refclassid", Datum::Oid(class("pg_type"))), ("refobjid", Datum::Oid(ty))];
            for row in rows.find("pg_depend", &key)? {
                if row.oid("classid") != class("pg_class") || row.i32("objsubid") == 0 {
                    continue;
                }
                let user = self.described(row.oid("objid"))?;
                let column = user.columns.iter().find(|c| c.number == row.i32("objsubid"));
                if user.kind == RelationKind::Composite {
                    if let Some(within) = self.stored_column_of(user.row_type, seen)? {
                        return Ok(Some(within));
                    }
                } else if let Some(column) = column.filter(|_| user.storage.is_some()) {
                    let column = column.name.clone();
                    return Ok(Some((user, column)));
                }
            }
        }
        Ok(None)
    }

    /// A row does not hold a row of its own kind, nor an array of them: there would be no end to it.
    ///
    /// # Errors
    /// `42P16`
    pub(super) fn check_not_within(&self, table: &Table, ty: Oid) -> Result<()> {
        let ty = row_of(ty).unwrap_or(ty);
        if ty < Oid::FIRST_NORMAL || super::enums::is_ours(ty) {
            return Ok(());
        }
        if ty == table.row_type {
            bail!(
                INVALID_TABLE_DEFINITION,
                "composite type {} cannot be made a member of itself",
                table.name
            );
        }
        let txn = self.state().txn()?;
        let key = [("oid", Datum::Oid(ty))];
        for row in self.state().catalog.rows(&txn).find("pg_type", &key)? {
            if let Some(of) = self.state().catalog.table(&txn, row.oid("typrelid"))? {
                for column in of.columns.iter().filter(|c| !c.dropped) {
                    self.check_not_within(table, column.ty.oid)?;
                }
            }
        }
        Ok(())
    }
}
