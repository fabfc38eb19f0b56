//! CREATE SCHEMA, SET SCHEMA, and owners of schemas.

use super::default_acl::{self, Made};
use super::depend::{self, Kind, Object};
use super::{Ddl, new_oid, relation};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{ObjectKind, RoleName, UtilityStatement as U};
use crate::session::{Lent, SessionState};
use base::settings::SetScope;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use engine::catalog::rows::NewRow;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// Fails unless the current user may make things `owner`'s.
    pub(super) fn check_may_own(&self, owner: Oid) -> Result<()> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        if state.is_superuser() || crate::acl::roles_to_set(state, me)?.contains(&owner) {
            return Ok(());
        }
        let name = state.role_name(owner)?.unwrap_or_default();
        bail!(INSUFFICIENT_PRIVILEGE, "must be able to SET ROLE \"{name}\"")
    }

    /// As [`Ddl::check_may_own`], of something in a schema, that `owner` must be able to make there.
    ///
    /// # Errors
    /// `42501`
    pub(super) fn check_may_own_in(&self, owner: Oid, namespace: Oid) -> Result<()> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(());
        }
        self.check_may_own(owner)?;
        let name = crate::system::names::schema_name(state, namespace)?.unwrap_or_default();
        super::check_schema_create_of(state, owner, namespace, &name)
    }

    /// TEMPORARY on the database.
    pub(super) fn check_may_make_temporary(&self) -> Result<()> {
        const TEMPORARY: u32 = 2048;
        self.check_database_privilege(TEMPORARY).map_err(|e| match e.state() {
            SqlState::INSUFFICIENT_PRIVILEGE => base::err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to create temporary tables in database \"{}\"",
                self.state().database.name
            ),
            _ => e,
        })
    }

    /// Fails if things move into or out of the schemas that sessions and TOAST tables have to themselves.
    pub(super) fn check_set_namespace(&self, from: Oid, to: Oid) -> Result<()> {
        for namespace in [from, to] {
            let name = crate::system::names::schema_name(self.state(), namespace)?;
            if name.is_some_and(|name| super::temp::is_temporary(&name)) {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot move objects into or out of temporary schemas"
                );
            }
        }
        if [from, to].contains(&bootstrap::PG_TOAST) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of TOAST schema");
        }
        Ok(())
    }

    /// The table that an index belongs to.
    pub(super) fn table_of_index(&self, index: Oid) -> Result<Option<Oid>> {
        let state = self.state();
        let txn = state.txn()?;
        let rows =
            state.catalog.rows(&txn).find("pg_index", &[("indexrelid", Datum::Oid(index))])?;
        Ok(rows.first().map(|r| r.oid("indrelid")))
    }

    /// CREATE SCHEMA
    ///
    /// # Errors
    /// `42P06`, `42939`, `42501`; I/O.
    pub fn create_schema(
        &mut self,
        if_not_exists: bool,
        name: Option<&str>,
        authorization: Option<&RoleName>,
        elements: &[U],
    ) -> Result<()> {
        let owner = match authorization {
            Some(role) => self.role(role)?,
            None => self.state().current_user.borrow().oid,
        };
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.state().role_name(owner)?.unwrap_or_default(),
        };
        if name.starts_with("pg_") {
            return Err(SqlError::new(
                SqlState::RESERVED_NAME,
                format!("unacceptable schema name \"{name}\""),
            )
            .detail("The prefix \"pg_\" is reserved for system schemas.")
            .into());
        }
        self.check_database_privilege(crate::acl::CREATE)?;
        self.check_may_own(owner)?;
        if self.state().schema_by_name(&name)?.is_some() {
            if if_not_exists {
                return self.notice(
                    SqlState::DUPLICATE_SCHEMA,
                    format!("schema \"{name}\" already exists, skipping"),
                );
            }
            bail!(DUPLICATE_SCHEMA, "schema \"{name}\" already exists");
        }
        let state = self.state();
        super::lock_role(state, owner)?;
        let oid = new_oid(state, "pg_namespace")?;
        let txn = state.txn()?;
        let privileges = default_acl::of_new(state, Made::Schema, owner, Oid::INVALID)?;
        let row = NewRow::of("pg_namespace").oid("oid", oid).text("nspname", &name);
        let row = row.oid("nspowner", owner).set("nspacl", privileges);
        state.catalog.rows(&txn).insert(&row)?;
        state.catalog.changed(Oid::INVALID);
        txn.advance_command()?;
        drop(txn);
        if elements.is_empty() {
            return Ok(());
        }
        self.as_role(owner, Lent::Definer, |ddl| ddl.make_elements(&name, elements))
    }

    /// Makes what CREATE SCHEMA says is in the schema: what others may refer to first.
    fn make_elements(&mut self, schema: &str, elements: &[U]) -> Result<()> {
        let mut ordered = Vec::new();
        for element in elements {
            let mut element = element.clone();
            let (place, name) = match &mut element {
                U::CreateSequence(s) => (0, Some(&mut s.name)),
                U::CreateTable(s) => (1, Some(&mut s.name)),
                U::CreateView(s) => (2, Some(&mut s.name)),
                U::CreateIndex(s) => (3, Some(&mut s.table)),
                _ => (4, None),
            };
            if let Some(name) = name {
                match &name.schema {
                    Some(other) if other != schema => bail!(
                        INVALID_SCHEMA_DEFINITION,
                        "CREATE specifies a schema ({other}) different from the one being created ({schema})"
                    ),
                    _ => name.schema = Some(schema.to_owned()),
                }
            }
            ordered.push((place, element));
        }
        ordered.sort_by_key(|(place, _)| *place);
        let before = self.state().settings.borrow().text("search_path").to_owned();
        let mut path = types::quote_ident(schema);
        if !before.trim().is_empty() {
            path = format!("{path}, {before}");
        }
        self.state().set("search_path", &path, SetScope::Local)?;
        let made = ordered.iter().try_for_each(|(_, element)| {
            self.run(element)?;
            self.state().txn()?.advance_command()
        });
        self.state().set("search_path", &before, SetScope::Local)?;
        made
    }

    /// Fails unless the current user has `wanted` on the database.
    pub(super) fn check_database_privilege(&self, wanted: u32) -> Result<()> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(());
        }
        let txn = state.txn()?;
        let key = [("oid", Datum::Oid(state.database.oid))];
        let rows = state.catalog.rows(&txn).find("pg_database", &key)?;
        let Some(row) = rows.first() else { return Ok(()) };
        let role = state.current_user.borrow().oid;
        let acl = row.texts("datacl");
        let has =
            crate::acl::privileges(state, role, row.oid("datdba"), acl.as_deref(), 1024 | 2048)?;
        if has & wanted == 0 {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for database {}", state.database.name);
        }
        Ok(())
    }

    /// ALTER … SET SCHEMA
    ///
    /// # Errors
    /// `42P01`, `3F000`, `42P07`; I/O.
    pub fn set_schema(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        name: &ObjectName,
        schema: &str,
    ) -> Result<()> {
        if kind == ObjectKind::Domain {
            self.check_is_domain(name)?;
        }
        if matches!(kind, ObjectKind::Type | ObjectKind::Domain) {
            return self.set_type_schema(name, schema);
        }
        if kind == ObjectKind::Statistics {
            return self.set_statistics_schema(name, schema);
        }
        let check = |table: &Table| {
            if kind == ObjectKind::Table && table.kind == RelationKind::Index {
                return Err(base::SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot change schema of index \"{}\"", table.name),
                )
                .hint("Change the schema of the table instead.")
                .into());
            }
            super::alter::check_kind(kind, table)?;
            super::refuse_catalog(table)?;
            crate::acl::check_owner(self.state(), table)
        };
        let Some(table) = self.find_locked(name, LockMode::AccessExclusive, &check)? else {
            if if_exists {
                return self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("relation \"{name}\" does not exist, skipping"),
                );
            }
            return self.relation(name).map(|_| ());
        };
        if table.persistence == RelationPersistence::Temporary || schema.starts_with("pg_temp") {
            bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of temporary schemas");
        }
        let moved = ObjectName { schema: Some(schema.to_owned()), ..name.clone() };
        let namespace = self.creation_namespace(&moved, false)?;
        let state = self.state();
        let linked = "cannot move an owned sequence into another schema";
        super::sequence::refuse_owned(state, &table, linked)?;
        self.check_set_namespace(table.namespace, namespace)?;
        if namespace == table.namespace {
            return Ok(());
        }
        let txn = state.txn()?;
        let mut moved = vec![table.oid];
        moved.extend(table.indexes.iter().map(|i| i.oid));
        let owned = moved.len();
        let class = Object::relation(table.oid).class;
        let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(table.oid))];
        let rows = state.catalog.rows(&txn);
        for row in rows.find("pg_depend", &key)? {
            if row.oid("classid") == class
                && row.i32("refobjsubid") != 0
                && !moved.contains(&row.oid("objid"))
            {
                moved.push(row.oid("objid"));
            }
        }
        for oid in &moved {
            // Who renames an index or sets its options locks nothing else.
            crate::relations::lock(state, *oid, LockMode::AccessExclusive)?;
            let class = rows.find("pg_class", &[("oid", Datum::Oid(*oid))])?;
            let name = class.first().map_or("", |row| row.text("relname"));
            if state.catalog.relation_oid(&txn, namespace, name)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists in schema \"{schema}\"");
            }
            relation::update_class(state, *oid, |row| {
                row.set("relnamespace", Datum::Oid(namespace));
            })?;
        }
        super::row_types::move_to(state, table.row_type, namespace, schema)?;
        for mut row in rows.find("pg_constraint", &[("conrelid", Datum::Oid(table.oid))])? {
            row.set("connamespace", Datum::Oid(namespace));
            rows.update(&row)?;
        }
        let old = Object::of("pg_namespace", table.namespace);
        let new = Object::of("pg_namespace", namespace);
        // An index is only its table's; a sequence is also its schema's.
        for oid in moved[..1].iter().chain(&moved[owned..]) {
            depend::forget(state, Object::relation(*oid), old)?;
            depend::record(state, Object::relation(*oid), new, Kind::Normal)?;
        }
        state.catalog.changed(table.oid);
        Ok(())
    }

    /// OWNER TO of anything.
    ///
    /// # Errors
    /// `42501`, `42704`, `42P01`; I/O.
    pub fn owner_to(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        name: &ObjectName,
        owner: &RoleName,
    ) -> Result<()> {
        let (catalog, key, column, found) = match kind {
            ObjectKind::Schema => ("pg_namespace", "nspname", "nspowner", "schema"),
            ObjectKind::Database => ("pg_database", "datname", "datdba", "database"),
            ObjectKind::Type => return self.set_type_owner(name, owner),
            ObjectKind::Statistics => return self.set_statistics_owner(name, owner),
            ObjectKind::Domain => {
                self.check_is_domain(name)?;
                return self.set_type_owner(name, owner);
            }
            ObjectKind::Table
            | ObjectKind::Index
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::Sequence => {
                let check = |table: &Table| {
                    // ALTER TABLE may be said of any of them.
                    match kind {
                        ObjectKind::Table => super::alter::refuse_composite(table)?,
                        _ => super::alter::check_kind(kind, table)?,
                    }
                    crate::acl::check_owner(self.state(), table)
                };
                let mode = LockMode::AccessExclusive;
                let Some(table) = self.find_locked(name, mode, &check)? else {
                    if if_exists {
                        return self.notice(
                            SqlState::SUCCESSFUL_COMPLETION,
                            format!("relation \"{name}\" does not exist, skipping"),
                        );
                    }
                    return self.relation(name).map(|_| ());
                };
                return self.change_owner(&table, owner);
            }
            other => {
                return Err(base::Error::unsupported(format!("ALTER {} OWNER TO", other.noun())));
            }
        };
        let owner = self.role(owner)?;
        let state = self.state();
        super::lock_role(state, owner)?;
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let Some(mut row) =
            rows.find(catalog, &[(key, Datum::text(&name.name))])?.into_iter().next()
        else {
            let error = if kind == ObjectKind::Schema {
                SqlState::INVALID_SCHEMA_NAME
            } else {
                SqlState::INVALID_CATALOG_NAME
            };
            return Err(
                SqlError::new(error, format!("{found} \"{}\" does not exist", name.name)).into()
            );
        };
        // As in PostgreSQL, which asks nobody who changes nothing.
        if row.oid(column) == owner {
            return Ok(());
        }
        let me = state.current_user.borrow().oid;
        if !state.is_superuser() && !crate::acl::roles_of(state, me)?.contains(&row.oid(column)) {
            bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {found} {}", name.name);
        }
        self.check_may_own(owner)?;
        match kind {
            ObjectKind::Schema => self.check_database_privilege(crate::acl::CREATE)?,
            _ if self.may_create_databases()? => {}
            _ => bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of database"),
        }
        let acl = if kind == ObjectKind::Schema { "nspacl" } else { "datacl" };
        let (old, new) = super::grant::owner_names(state, row.oid(column), owner)?;
        super::grant::hand_over(&mut row, acl, &old, &new);
        row.set(column, Datum::Oid(owner));
        rows.update(&row)?;
        state.catalog.changed(Oid::INVALID);
        if kind == ObjectKind::Database {
            // Its owner is a member of pg_database_owner there.
            super::role::roles_changed(state);
        }
        Ok(())
    }
}

/// Fails unless the current user owns the schema.
///
/// # Errors
/// `42501`
pub(super) fn check_schema_owner(state: &SessionState, oid: Oid, name: &str) -> Result<()> {
    if state.is_superuser() {
        return Ok(());
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_namespace", &[("oid", Datum::Oid(oid))])?;
    let me = state.current_user.borrow().oid;
    let roles = crate::acl::roles_of(state, me)?;
    if rows.first().is_some_and(|row| roles.contains(&row.oid("nspowner"))) {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "must be owner of schema {name}")
}
