//! CREATE, ALTER and DROP DATABASE.

use super::locale::NewLocale;
use super::{Ddl, new_oid};
use crate::parse::utility::{RoleName, UtilityOption};
use base::{Error, Oid, RelationId, Result, SqlError, SqlState, bail};
use engine::CheckpointFlags;
use engine::catalog::load::RowSource;
use engine::catalog::rows::{NewRow, Row};
use txn::{LockMode, Wait};
use types::Datum;

fn connection_limit(option: &UtilityOption) -> Result<i32> {
    let limit = option.integer()?;
    match i32::try_from(limit) {
        Ok(limit) if limit >= -1 => Ok(limit),
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid connection limit: {limit}"),
    }
}

impl Ddl<'_> {
    fn database_row(&self, name: &str) -> Result<Option<Row>> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("datname", Datum::text(name))];
        Ok(state.catalog.rows(&txn).find("pg_database", &key)?.into_iter().next())
    }

    pub(super) fn may_create_databases(&self) -> Result<bool> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(true);
        }
        let txn = state.txn()?;
        let me = state.current_user.borrow().oid;
        let rows = state.catalog.rows(&txn).find("pg_authid", &[("oid", Datum::Oid(me))])?;
        Ok(rows.first().is_some_and(|r| r.bool("rolcreatedb")))
    }

    /// Keeps others from connecting to a database (`mode`: Share if others may copy it too), and fails if some are
    /// connected and don't leave soon.
    pub(super) fn check_not_connected(&self, oid: Oid, mode: LockMode, what: &str) -> Result<()> {
        let state = self.state();
        let tag = crate::cluster::database_lock(oid);
        state.txn()?.lock(tag, mode, Wait::Block)?;
        let count = || {
            let mut others = 0;
            for b in state.cluster.backends().all() {
                if b.pid == state.backend.pid || b.activity.lock().database != oid {
                    continue;
                }
                others += 1;
                // Autovacuum gives way.
                if b.kind == txn::BackendKind::AutovacuumWorker {
                    b.interrupt(base::sync::CancelReason::Terminate);
                }
            }
            others
        };
        let deadline = base::sync::now() + std::time::Duration::from_secs(5);
        let mut others = count();
        while others > 0 && base::sync::now() < deadline {
            state.check_cancel()?;
            std::thread::sleep(std::time::Duration::from_millis(20));
            others = count();
        }
        if others == 0 {
            return Ok(());
        }
        let detail = if others == 1 {
            "There is 1 other session using the database.".to_owned()
        } else {
            format!("There are {others} other sessions using the database.")
        };
        Err(SqlError::new(
            SqlState::OBJECT_IN_USE,
            format!("{what} is being accessed by other users"),
        )
        .detail(detail)
        .into())
    }

    /// Ends the sessions of a database, unless there is one that the current user may not end.
    fn end_sessions_of(&self, oid: Oid) -> Result<()> {
        let state = self.state();
        let mut others = state.cluster.backends().all();
        others.retain(|b| b.pid != state.backend.pid && b.activity.lock().database == oid);
        for backend in others.iter().filter(|b| b.kind == txn::BackendKind::Client) {
            crate::system::check_may_terminate(state, backend.pid)?;
        }
        for backend in &others {
            state.cluster.terminate(backend.pid);
        }
        Ok(())
    }

    /// CREATE DATABASE
    ///
    /// # Errors
    /// `42P04`, `3D000`, `55006`, `42501`, `22023`; I/O.
    pub fn create_database(&mut self, name: &str, options: &[UtilityOption]) -> Result<()> {
        self.session.prevent_transaction("CREATE DATABASE")?;
        let mut owner = self.state().current_user.borrow().oid;
        let mut template = "template1".to_owned();
        let mut locale = NewLocale::default();
        let (mut is_template, mut connections, mut limit) = (false, true, -1);
        for (n, option) in options.iter().enumerate() {
            let at = |e| crate::parse::error_at(&self.source, e, option.loc);
            if options[..n].iter().any(|before| before.name == option.name) {
                return Err(at(base::err!(SYNTAX_ERROR, "conflicting or redundant options")));
            }
            let Some(_) = &option.value else { continue };
            match option.name.as_str() {
                "owner" => owner = self.role(&RoleName::Name(option.string()?))?,
                "template" => template = option.string()?,
                "is_template" => is_template = option.boolean()?,
                "allow_connections" => connections = option.boolean()?,
                "connection_limit" => limit = connection_limit(option)?,
                "encoding" => {
                    let encoding = option.string()?;
                    let plain = encoding.to_ascii_lowercase().replace(['-', '_'], "");
                    if base::encoding::by_name(&encoding).is_none() {
                        let e =
                            base::err!(UNDEFINED_OBJECT, "{encoding} is not a valid encoding name");
                        return Err(at(e));
                    }
                    if !matches!(plain.as_str(), "utf8" | "unicode") {
                        return Err(Error::unsupported(format!("encoding \"{encoding}\"")));
                    }
                }
                // A copy is made in one way, whichever is asked for.
                "strategy" => {
                    let strategy = option.string()?;
                    if !matches!(strategy.to_ascii_lowercase().as_str(), "wal_log" | "file_copy") {
                        let message = format!("invalid create database strategy \"{strategy}\"");
                        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                            .hint("Valid strategies are \"wal_log\" and \"file_copy\".")
                            .into());
                    }
                }
                "oid" => {
                    if option.integer()? < i64::from(Oid::FIRST_NORMAL.0) {
                        bail!(
                            INVALID_PARAMETER_VALUE,
                            "OIDs less than {} are reserved for system objects",
                            Oid::FIRST_NORMAL
                        );
                    }
                }
                "collation_version" => {}
                _ if locale.take(option)? => {}
                "tablespace" => {
                    let tablespace = option.string()?;
                    if tablespace == "pg_global" {
                        bail!(
                            INVALID_PARAMETER_VALUE,
                            "pg_global cannot be used as default tablespace"
                        );
                    }
                    super::check_tablespace(Some(&tablespace))?;
                }
                other => {
                    return Err(at(base::err!(SYNTAX_ERROR, "option \"{other}\" not recognized")));
                }
            }
        }
        if !self.may_create_databases()? {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied to create database");
        }
        self.check_may_own(owner)?;
        super::lock_role(self.state(), owner)?;
        if self.database_row(name)?.is_some() {
            bail!(DUPLICATE_DATABASE, "database \"{name}\" already exists");
        }
        let Some(source) = self.database_row(&template)? else {
            bail!(INVALID_CATALOG_NAME, "template database \"{template}\" does not exist");
        };
        let source_oid = source.oid("oid");
        if !source.bool("datistemplate") && !self.state().is_superuser() {
            self.check_database_owner(&template).map_err(|_| {
                base::err!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied to copy database \"{template}\""
                )
            })?;
        }
        let locale = locale.beside(&source)?;
        if template != "template0" {
            locale.check_same(&source)?;
        }
        let what = format!("source database \"{template}\"");
        self.check_not_connected(source_oid, LockMode::Share, &what)?;
        // It may have been dropped while its lock was waited for.
        let Some(source) = self.database_row(&template)?.filter(|r| r.oid("oid") == source_oid)
        else {
            bail!(INVALID_CATALOG_NAME, "template database \"{template}\" does not exist");
        };
        let state = self.state();
        let engine = state.cluster.engine();
        let flags = CheckpointFlags { flush_unlogged: true, ..CheckpointFlags::MANUAL };
        engine.checkpoint_or_cancel(flags, Some(&state.backend.cancel))?;
        let oid = new_oid(state, "pg_database")?;
        let txn = state.txn()?;
        engine.files.copy_database(&txn, source_oid, oid)?;
        let mut row = NewRow::of("pg_database");
        row.values.clone_from(&source.values);
        let row = row
            .oid("oid", oid)
            .text("datname", name)
            .oid("datdba", owner)
            .bool("datistemplate", is_template)
            .bool("datallowconn", connections)
            .set("datconnlimit", Datum::Int4(limit))
            .set("datacl", Datum::Null);
        state.catalog.rows(&txn).insert(&locale.told(row))?;
        Ok(())
    }

    /// ALTER DATABASE … WITH
    ///
    /// # Errors
    /// `3D000`, `42501`, `42601`
    pub fn alter_database(&mut self, name: &str, options: &[UtilityOption]) -> Result<()> {
        let Some(mut row) = self.database_row(name)? else {
            bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist");
        };
        self.check_database_owner(name)?;
        for option in options {
            match option.name.as_str() {
                "is_template" => row.set("datistemplate", Datum::Bool(option.boolean()?)),
                "allow_connections" => {
                    let allow = option.boolean()?;
                    if !allow && row.oid("oid") == self.state().database.oid {
                        bail!(
                            INVALID_PARAMETER_VALUE,
                            "cannot disallow connections for current database"
                        );
                    }
                    row.set("datallowconn", Datum::Bool(allow));
                }
                "connection_limit" => {
                    row.set("datconnlimit", Datum::Int4(connection_limit(option)?));
                }
                other => bail!(SYNTAX_ERROR, "option \"{other}\" not recognized"),
            }
        }
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)
    }

    /// DROP DATABASE
    ///
    /// # Errors
    /// `3D000`, `55006`, `42809`, `42501`; I/O.
    pub fn drop_database(&mut self, if_exists: bool, name: &str, force: bool) -> Result<()> {
        self.session.prevent_transaction("DROP DATABASE")?;
        let Some(row) = self.database_row(name)? else {
            if if_exists {
                return self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("database \"{name}\" does not exist, skipping"),
                );
            }
            bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist");
        };
        self.check_database_owner(name)?;
        if row.bool("datistemplate") {
            bail!(WRONG_OBJECT_TYPE, "cannot drop a template database");
        }
        let oid = row.oid("oid");
        let state = self.state();
        if oid == state.database.oid {
            bail!(OBJECT_IN_USE, "cannot drop the currently open database");
        }
        if force {
            self.end_sessions_of(oid)?;
        }
        self.check_not_connected(oid, LockMode::AccessExclusive, &format!("database \"{name}\""))?;
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        rows.delete_where("pg_db_role_setting", &[("setdatabase", Datum::Oid(oid))])?;
        super::drop::remove_shared_comments(state, super::depend::Object::of("pg_database", oid))?;
        rows.delete(&row)?;
        let folder = RelationId { database: oid, file_number: 0 };
        state.cluster.engine().files.remove_at_commit(&txn, folder);
        state.cluster.forget_database(oid);
        Ok(())
    }
}
