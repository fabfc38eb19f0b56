//! RENAME of everything that has a name.

use super::depend::Object;
use super::row_types::free_type_name;
use super::{Ddl, relation};
use crate::parse::utility::{ObjectKind, Rename, RoleName};
use base::{Error, Oid, Result, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::store::{CatalogStore, Catalogs};
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

/// What was granted to, or by, a role is so under its new name.
fn rename_in_acls(
    rows: &Catalogs<'_>,
    catalogs: &[(&str, &str)],
    old: &str,
    new: &str,
) -> Result<()> {
    for (catalog, column) in catalogs {
        for mut row in rows.scan(catalog)? {
            let Some(texts) = row.texts(*column) else { continue };
            let renamed = |text: &String| match crate::acl::AclItem::parse(text) {
                Some(mut item) => {
                    for name in [&mut item.grantee, &mut item.grantor] {
                        if name == old {
                            new.clone_into(name);
                        }
                    }
                    item.to_text()
                }
                None => text.clone(),
            };
            let renamed: Vec<String> = texts.iter().map(renamed).collect();
            if renamed != texts {
                row.set(column, engine::catalog::bootstrap::acl(&renamed));
                rows.update(&row)?;
            }
        }
    }
    Ok(())
}

impl Ddl<'_> {
    /// ALTER … RENAME
    ///
    /// # Errors
    /// `42P01`, `42P07`, `42701`, `42704`, `42501`
    pub fn rename(&mut self, statement: &Rename) -> Result<()> {
        let new = statement.new_name.as_str();
        match statement.kind {
            ObjectKind::Schema => return self.rename_schema(&statement.name.name, new),
            ObjectKind::Database => return self.rename_database(&statement.name.name, new),
            ObjectKind::Role => return self.rename_role(&statement.name.name, new),
            ObjectKind::Type => return self.rename_type(&statement.name, new),
            ObjectKind::Statistics => return self.rename_statistics(&statement.name, new),
            ObjectKind::Domain => {
                if statement.part.is_none() {
                    self.own_type(&statement.name)?;
                }
                self.check_is_domain(&statement.name)?;
                return match &statement.part {
                    Some(old) => self.rename_domain_constraint(&statement.name, old, new),
                    None => self.rename_type(&statement.name, new),
                };
            }
            ObjectKind::Table
            | ObjectKind::Index
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::Sequence
            | ObjectKind::Column
            | ObjectKind::Constraint => {}
            other => return Err(Error::unsupported(format!("ALTER {} RENAME", other.noun()))),
        }
        let check = |table: &Table| {
            crate::acl::check_owner(self.state(), table)?;
            if table.oid < Oid::FIRST_NORMAL {
                bail!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied: \"{}\" is a system catalog",
                    table.name
                );
            }
            if !matches!(statement.kind, ObjectKind::Column | ObjectKind::Constraint)
                && table.namespace != self.state().temp_schema.get()
            {
                super::check_schema_create(self.state(), table.namespace, &table.namespace_name)?;
            }
            match statement.kind {
                // ALTER INDEX renames tables too, and ALTER TABLE indexes, as in PostgreSQL.
                ObjectKind::Index | ObjectKind::Table => super::alter::refuse_composite(table)?,
                kind => super::alter::check_kind(kind, table)?,
            }
            if table.kind == RelationKind::Composite {
                super::enums::lock_type(self.state(), table.row_type, LockMode::AccessExclusive)?;
            }
            Ok(())
        };
        let Some(table) = self.to_rename(statement, &check)? else {
            if statement.if_exists {
                return self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("relation \"{}\" does not exist, skipping", statement.name),
                );
            }
            return self.relation(&statement.name).map(|_| ());
        };
        let part = statement.part.as_deref().unwrap_or_default();
        match statement.kind {
            ObjectKind::Column => self.rename_column(&table, part, new),
            ObjectKind::Constraint => self.rename_constraint(&table, part, new),
            _ => self.rename_relation(&table, new),
        }
    }

    /// What is to be renamed, locked. An index is read and written under its new name as under its old: whoever holds its table's lock
    /// goes on. What the statement calls it does not matter, as in PostgreSQL.
    fn to_rename(
        &self,
        statement: &Rename,
        check: &dyn Fn(&Table) -> Result<()>,
    ) -> Result<Option<Arc<Table>>> {
        let whole = !matches!(statement.kind, ObjectKind::Column | ObjectKind::Constraint);
        loop {
            let as_index = whole
                && match self.find(&statement.name)? {
                    Some(found) => found.kind == RelationKind::Index,
                    None => statement.kind == ObjectKind::Index,
                };
            let mode =
                if as_index { LockMode::ShareUpdateExclusive } else { LockMode::AccessExclusive };
            let locked = self.find_locked(&statement.name, mode, check)?;
            match &locked {
                Some(table) if whole && (table.kind == RelationKind::Index) != as_index => {
                    let tag = crate::relations::lock_tag(self.state(), table.oid);
                    self.state().txn()?.unlock(tag, mode);
                }
                _ => return Ok(locked),
            }
        }
    }

    pub(super) fn rename_relation(&mut self, table: &Arc<Table>, new: &str) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        if state.catalog.relation_oid(&txn, table.namespace, new)?.is_some() {
            bail!(DUPLICATE_TABLE, "relation \"{new}\" already exists");
        }
        if table.row_type.is_valid() {
            let moved = free_type_name(state, table.namespace, new)?;
            super::row_types::rename(state, table.row_type, table.namespace, new, moved)?;
        }
        relation::update_class(state, table.oid, |row| row.set("relname", Datum::text(new)))?;
        let rows = state.catalog.rows(&txn);
        if table.kind == RelationKind::Index {
            for mut row in rows.find("pg_constraint", &[("conname", Datum::text(&table.name))])? {
                if row.oid("conindid") == table.oid && matches!(row.char("contype"), b'p' | b'u') {
                    row.set("conname", Datum::text(new));
                    rows.update(&row)?;
                }
            }
            if let Some(of) = self.table_of_index(table.oid)? {
                state.catalog.changed(of);
            }
        }
        state.catalog.changed(table.oid);
        Ok(())
    }

    fn rename_column(&mut self, table: &Arc<Table>, old: &str, new: &str) -> Result<()> {
        if super::alter::is_system_column(old) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot rename system column \"{old}\"");
        }
        let Some(column) = table.column(old) else {
            bail!(UNDEFINED_COLUMN, "column \"{old}\" does not exist");
        };
        if table.column(new).is_some() {
            bail!(
                DUPLICATE_COLUMN,
                "column \"{new}\" of relation \"{}\" already exists",
                table.name
            );
        }
        if super::alter::is_system_column(new) {
            bail!(DUPLICATE_COLUMN, "column name \"{new}\" conflicts with a system column name");
        }
        let state = self.state();
        relation::update_attribute(state, table.oid, column.number, |row| {
            row.set("attname", Datum::text(new));
        })?;
        state.catalog.changed(table.oid);
        self.rows_have_changed(table)
    }

    fn rename_constraint(&mut self, table: &Arc<Table>, old: &str, new: &str) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let find = |name: &str| {
            let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(name))];
            rows.find("pg_constraint", &key)
        };
        let Some(mut row) = find(old)?.into_iter().next() else {
            bail!(
                UNDEFINED_OBJECT,
                "constraint \"{old}\" for table \"{}\" does not exist",
                table.name
            );
        };
        if !find(new)?.is_empty() {
            bail!(
                DUPLICATE_OBJECT,
                "constraint \"{new}\" for relation \"{}\" already exists",
                table.name
            );
        }
        row.set("conname", Datum::text(new));
        rows.update(&row)?;
        if matches!(row.char("contype"), b'p' | b'u') {
            if state.catalog.relation_oid(&txn, table.namespace, new)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{new}\" already exists");
            }
            // Who renames an index or sets its options locks nothing else.
            crate::relations::lock(state, row.oid("conindid"), LockMode::ShareUpdateExclusive)?;
            relation::update_class(state, row.oid("conindid"), |row| {
                row.set("relname", Datum::text(new));
            })?;
        }
        state.catalog.changed(table.oid);
        if row.oid("confrelid").is_valid() {
            state.catalog.changed(row.oid("confrelid"));
        }
        Ok(())
    }

    fn rename_schema(&mut self, old: &str, new: &str) -> Result<()> {
        let state = self.state();
        let Some(oid) = state.schema_by_name(old)? else {
            bail!(INVALID_SCHEMA_NAME, "schema \"{old}\" does not exist");
        };
        if state.schema_by_name(new)?.is_some() {
            bail!(DUPLICATE_SCHEMA, "schema \"{new}\" already exists");
        }
        if new.starts_with("pg_") {
            bail!(RESERVED_NAME, "unacceptable schema name \"{new}\"");
        }
        super::schema::check_schema_owner(state, oid, old)?;
        self.check_database_privilege(crate::acl::CREATE)?;
        self.rename_row("pg_namespace", oid, "nspname", "nspowner", ("schema", old), new)
    }

    fn rename_database(&mut self, old: &str, new: &str) -> Result<()> {
        let oid = self.database_oid(old)?;
        if self.database_oid(new).is_ok() {
            bail!(DUPLICATE_DATABASE, "database \"{new}\" already exists");
        }
        self.check_database_owner(old)?;
        if !self.may_create_databases()? {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied to rename database");
        }
        if oid == self.state().database.oid {
            bail!(FEATURE_NOT_SUPPORTED, "current database cannot be renamed");
        }
        self.check_not_connected(
            oid,
            txn::LockMode::AccessExclusive,
            &format!("database \"{old}\""),
        )?;
        self.rename_row("pg_database", oid, "datname", "datdba", ("database", old), new)
    }

    fn rename_role(&mut self, old: &str, new: &str) -> Result<()> {
        let oid = self.role(&RoleName::Name(old.to_owned()))?;
        if oid == self.state().session_user.borrow().oid {
            bail!(FEATURE_NOT_SUPPORTED, "session user cannot be renamed");
        }
        if oid == self.state().current_user.borrow().oid {
            bail!(FEATURE_NOT_SUPPORTED, "current user cannot be renamed");
        }
        for name in [old, new] {
            if name.starts_with("pg_") {
                let text = format!("role name \"{name}\" is reserved");
                return Err(base::SqlError::new(SqlState::RESERVED_NAME, text)
                    .detail("Role names starting with \"pg_\" are reserved.")
                    .into());
            }
        }
        if matches!(new, "public" | "none") {
            bail!(RESERVED_NAME, "role name \"{new}\" is reserved");
        }
        if self.state().role_by_name(new)?.is_some() {
            bail!(DUPLICATE_OBJECT, "role \"{new}\" already exists");
        }
        let Some(row) = self.role_row(old)? else {
            bail!(UNDEFINED_OBJECT, "role \"{old}\" does not exist");
        };
        self.check_controls(&row, "rename")?;
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        // Who is granting something to it, or making something its, holds its lock.
        super::lock_object(state, Object::of("pg_authid", oid), LockMode::AccessExclusive)?;
        let shared = [("pg_database", "datacl")];
        let own = [
            ("pg_class", "relacl"),
            ("pg_namespace", "nspacl"),
            ("pg_type", "typacl"),
            ("pg_default_acl", "defaclacl"),
            ("pg_init_privs", "initprivs"),
            ("pg_attribute", "attacl"),
        ];
        rename_in_acls(&rows, &shared, old, new)?;
        rename_in_acls(&rows, &own, old, new)?;
        for (database, _) in self.other_databases()? {
            if !self.hold_database(database)? {
                continue;
            }
            let store = CatalogStore::new(state.cluster.storage().clone(), database);
            rename_in_acls(&store.session(&txn), &own, old, new)?;
        }
        let Some(mut row) = rows.find("pg_authid", &[("oid", Datum::Oid(oid))])?.into_iter().next()
        else {
            bail!(UNDEFINED_OBJECT, "role \"{old}\" does not exist");
        };
        row.set("rolname", Datum::text(new));
        rows.update(&row)?;
        super::role::roles_changed(state);
        Ok(())
    }

    fn rename_row(
        &self,
        catalog: &str,
        oid: Oid,
        name_column: &str,
        owner_column: &str,
        (noun, old): (&str, &str),
        new: &str,
    ) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for mut row in rows.find(catalog, &[("oid", Datum::Oid(oid))])? {
            let me = state.current_user.borrow().oid;
            let mine = crate::acl::roles_of(state, me)?.contains(&row.oid(owner_column));
            if !mine && !state.is_superuser() {
                bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {noun} {old}");
            }
            row.set(name_column, Datum::text(new));
            rows.update(&row)?;
        }
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }
}
