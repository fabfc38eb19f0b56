//! COMMENT ON.

use super::Ddl;
use super::depend::Object;
use crate::client::{Notice, Severity};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{Comment, ObjectKind, RoleName};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::rows::NewRow;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// COMMENT ON
    ///
    /// # Errors
    /// `42P01`, `42704`, `42501`; `0A000` for objects that do not exist here.
    pub fn comment(&mut self, statement: &Comment) -> Result<()> {
        if statement.kind == ObjectKind::Database
            && let Err(e) = self.database_oid(&statement.name.name)
        {
            // A dump names its database as it was called where it was made.
            let mut notice = Notice::new(Severity::Warning, String::new());
            notice.body = e.to_sql_error();
            return self.client.notice(&notice);
        }
        let (object, shared) = self.commented(statement)?;
        self.set_comment(object, shared, statement.text.as_deref())
    }

    /// Sets an object's comment, or takes it away; in the catalog of all databases if it is `shared` by them.
    pub(super) fn set_comment(
        &self,
        object: Object,
        shared: bool,
        text: Option<&str>,
    ) -> Result<()> {
        let catalog = if shared { "pg_shdescription" } else { "pg_description" };
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let mut key =
            vec![("objoid", Datum::Oid(object.oid)), ("classoid", Datum::Oid(object.class))];
        if !shared {
            key.push(("objsubid", Datum::Int4(object.sub)));
        }
        let found = rows.find(catalog, &key)?.into_iter().next();
        let text = text.filter(|t| !t.is_empty());
        match (found, text) {
            (Some(mut row), Some(text)) => {
                row.set("description", Datum::text(text));
                rows.update(&row)
            }
            (Some(row), None) => rows.delete(&row),
            (None, None) => Ok(()),
            (None, Some(text)) => {
                let mut row = NewRow::of(catalog)
                    .oid("objoid", object.oid)
                    .oid("classoid", object.class)
                    .text("description", text);
                if !shared {
                    row = row.int("objsubid", i64::from(object.sub));
                }
                rows.insert(&row).map(|_| ())
            }
        }
    }

    /// The relation of a name, under a lock.
    fn locked(&self, name: &ObjectName, mode: LockMode) -> Result<Arc<Table>> {
        let state = self.state();
        crate::relations::lock_named(state, mode, || self.relation(name))
    }

    /// What is commented on, and whether it is shared by all databases.
    fn commented(&mut self, statement: &Comment) -> Result<(Object, bool)> {
        let name = &statement.name;
        let part = statement.part.as_deref().unwrap_or_default();
        Ok(match statement.kind {
            ObjectKind::Table
            | ObjectKind::Index
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::Sequence => {
                let table = self.locked(name, LockMode::ShareUpdateExclusive)?;
                if statement.kind == ObjectKind::Table && table.kind != RelationKind::Table {
                    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name);
                }
                super::alter::check_kind(statement.kind, &table)?;
                crate::acl::check_owner(self.state(), &table)?;
                (Object::relation(table.oid), false)
            }
            ObjectKind::Column => {
                let table = self.locked(name, LockMode::ShareUpdateExclusive)?;
                let Some(column) = table.column(part) else {
                    bail!(
                        UNDEFINED_COLUMN,
                        "column \"{part}\" of relation \"{name}\" does not exist"
                    );
                };
                check_owner_of_part(self.state(), &table)?;
                let why = match table.kind {
                    RelationKind::Index => "This operation is not supported for indexes.",
                    RelationKind::Sequence => "This operation is not supported for sequences.",
                    RelationKind::Toast => "This operation is not supported for TOAST tables.",
                    _ => "",
                };
                if !why.is_empty() {
                    let text = format!("cannot set comment on relation \"{}\"", table.name);
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                        .detail(why)
                        .into());
                }
                (Object::column(table.oid, column.number), false)
            }
            ObjectKind::Constraint => {
                let table = self.locked(name, LockMode::AccessShare)?;
                check_owner_of_part(self.state(), &table)?;
                let state = self.state();
                let txn = state.txn()?;
                let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(part))];
                match state.catalog.rows(&txn).find("pg_constraint", &key)?.first() {
                    Some(row) => (Object::of("pg_constraint", row.oid("oid")), false),
                    None => bail!(
                        UNDEFINED_OBJECT,
                        "constraint \"{part}\" for table \"{}\" does not exist",
                        table.name
                    ),
                }
            }
            ObjectKind::Domain => {
                self.check_is_domain(name)?;
                let domain = self.own_type(name)?;
                match &statement.part {
                    Some(part) => {
                        let row = self.domain_constraint(domain, name, part)?;
                        (Object::of("pg_constraint", row.oid("oid")), false)
                    }
                    None => (Object::of("pg_type", domain), false),
                }
            }
            ObjectKind::Type => (Object::of("pg_type", self.own_type(name)?), false),
            ObjectKind::Statistics => {
                (Object::of("pg_statistic_ext", self.own_statistics(name)?.oid("oid")), false)
            }
            ObjectKind::Schema => match self.state().schema_by_name(&name.name)? {
                Some(oid) => {
                    super::schema::check_schema_owner(self.state(), oid, &name.name)?;
                    (Object::of("pg_namespace", oid), false)
                }
                None => bail!(INVALID_SCHEMA_NAME, "schema \"{}\" does not exist", name.name),
            },
            ObjectKind::Database => {
                let oid = self.database_oid(&name.name)?;
                self.check_database_owner(&name.name)?;
                (Object::of("pg_database", oid), true)
            }
            ObjectKind::Role => {
                let oid = self.role(&RoleName::Name(name.name.clone()))?;
                self.check_role_owner(oid, &name.name)?;
                (Object::of("pg_authid", oid), true)
            }
            ObjectKind::Extension => {
                let state = self.state();
                let txn = state.txn()?;
                let key = [("extname", Datum::text(&name.name))];
                match state.catalog.rows(&txn).find("pg_extension", &key)?.first() {
                    Some(row) => {
                        super::extension::check_owner(state, row, &name.name)?;
                        (Object::of("pg_extension", row.oid("oid")), false)
                    }
                    None => {
                        bail!(UNDEFINED_OBJECT, "extension \"{}\" does not exist", name.name)
                    }
                }
            }
            ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy => {
                (self.part_of_table(statement.kind, name, part)?, false)
            }
            ObjectKind::ForeignTable => {
                let table = self.locked(name, LockMode::ShareUpdateExclusive)?;
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a foreign table", table.name);
            }
            ObjectKind::Tablespace => (self.named_in("pg_tablespace", "spcname", name)?, true),
            ObjectKind::Language => (self.named_in("pg_language", "lanname", name)?, false),
            ObjectKind::Publication => (self.named_in("pg_publication", "pubname", name)?, false),
            ObjectKind::Subscription => (self.named_in("pg_subscription", "subname", name)?, true),
            other => return Err(Error::unsupported(format!("COMMENT ON {}", other.noun()))),
        })
    }

    /// A trigger, rule or policy of a table.
    fn part_of_table(&self, kind: ObjectKind, of: &ObjectName, part: &str) -> Result<Object> {
        let table = self.locked(of, LockMode::ShareUpdateExclusive)?;
        let (catalog, relation, column, what) = match kind {
            ObjectKind::Trigger => ("pg_trigger", "tgrelid", "tgname", "table"),
            ObjectKind::Rule => ("pg_rewrite", "ev_class", "rulename", "relation"),
            _ => ("pg_policy", "polrelid", "polname", "table"),
        };
        let state = self.state();
        let txn = state.txn()?;
        let key = [(relation, Datum::Oid(table.oid)), (column, Datum::text(part))];
        let Some(row) = state.catalog.rows(&txn).find(catalog, &key)?.into_iter().next() else {
            let noun = kind.noun();
            bail!(
                UNDEFINED_OBJECT,
                "{noun} \"{part}\" for {what} \"{}\" does not exist",
                table.name
            );
        };
        check_owner_of_part(state, &table)?;
        Ok(Object::of(catalog, row.oid("oid")))
    }

    /// What is of no schema, and nobody's but a superuser's.
    fn named_in(&self, catalog: &str, column: &str, name: &ObjectName) -> Result<Object> {
        let state = self.state();
        let txn = state.txn()?;
        let noun = catalog.trim_start_matches("pg_");
        let key = [(column, Datum::text(&name.name))];
        match state.catalog.rows(&txn).find(catalog, &key)?.first() {
            None => bail!(UNDEFINED_OBJECT, "{noun} \"{}\" does not exist", name.name),
            Some(_) if !state.is_superuser() => {
                bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {noun} {}", name.name)
            }
            Some(row) => Ok(Object::of(catalog, row.oid("oid"))),
        }
    }

    /// A database's OID.
    ///
    /// # Errors
    /// `3D000`
    pub(super) fn database_oid(&self, name: &str) -> Result<Oid> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("datname", Datum::text(name))];
        match state.catalog.rows(&txn).find("pg_database", &key)?.first() {
            Some(row) => Ok(row.oid("oid")),
            None => bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist"),
        }
    }

    /// Fails unless the current user owns the database.
    pub(super) fn check_database_owner(&self, name: &str) -> Result<()> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(());
        }
        let txn = state.txn()?;
        let key = [("datname", Datum::text(name))];
        let rows = state.catalog.rows(&txn).find("pg_database", &key)?;
        let me = state.current_user.borrow().oid;
        let roles = crate::acl::roles_of(state, me)?;
        if rows.first().is_some_and(|r| roles.contains(&r.oid("datdba"))) {
            return Ok(());
        }
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of database {name}")
    }
}

/// Fails unless the current user owns the relation that something is a part of.
fn check_owner_of_part(state: &SessionState, table: &Table) -> Result<()> {
    crate::acl::check_owner(state, table).map_err(|e| match e.state() {
        SqlState::INSUFFICIENT_PRIVILEGE => {
            base::err!(INSUFFICIENT_PRIVILEGE, "must be owner of relation {}", table.name)
        }
        _ => e,
    })
}
