//! Who is let in, and with what settings.
//!
//! # Invariants
//! A session counts from when it is registered, and is let in if those that were registered before it leave room: however many come at
//! once, a limit is never exceeded, and no place stays empty because too many asked for it.

use super::{ConnectRequest, Session};
use crate::cluster::LoginRole;
use base::settings::{SetScope, Source};
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use std::sync::Arc;
use txn::{Backend, BackendKind};
use types::Datum;

impl Session {
    /// Fails if `role` may not connect, or not now.
    ///
    /// # Errors
    /// `53300`, `42501`; I/O.
    pub(super) fn check_admission(
        &mut self,
        role: &LoginRole,
        request: &ConnectRequest,
    ) -> Result<()> {
        self.state.backend.activity.lock().user = role.oid;
        let before = self.clients_before();
        self.check_slots(role, before.len())?;
        if role.superuser {
            return Ok(());
        }
        let too_many = |limit: i32, of: &dyn Fn(&Backend) -> bool| {
            usize::try_from(limit).is_ok_and(|n| before.iter().filter(|b| of(b)).count() >= n)
        };
        if too_many(role.connection_limit, &|b| b.activity.lock().user == role.oid) {
            bail!(TOO_MANY_CONNECTIONS, "too many connections for role \"{}\"", request.user);
        }
        let limit = self.in_transaction(|session| session.check_database(role.oid))?;
        let database = self.state.database.oid;
        if too_many(limit, &|b| b.activity.lock().database == database) {
            let name = &request.database;
            bail!(TOO_MANY_CONNECTIONS, "too many connections for database \"{name}\"");
        }
        Ok(())
    }

    /// The clients' sessions that were there before this one.
    fn clients_before(&self) -> Vec<Arc<Backend>> {
        let own = self.state.backend.pid;
        let mut all = self.state.cluster.backends().all();
        all.retain(|b| b.kind == BackendKind::Client && b.pid < own);
        all
    }

    fn check_slots(&self, role: &LoginRole, before: usize) -> Result<()> {
        let settings = self.state.cluster.settings();
        let number = |name| usize::try_from(settings.int(name)).unwrap_or(0);
        let limit = number("max_connections");
        if before >= limit {
            bail!(TOO_MANY_CONNECTIONS, "sorry, too many clients already");
        }
        if !role.superuser && before + number("superuser_reserved_connections") >= limit {
            bail!(
                TOO_MANY_CONNECTIONS,
                "remaining connection slots are reserved for roles with the SUPERUSER attribute"
            );
        }
        Ok(())
    }

    /// Fails if `role` may not connect to the session's database; how many connections that takes, if not negative.
    fn check_database(&self, role: Oid) -> Result<i32> {
        let state = &self.state;
        let txn = state.txn()?;
        let key = [("oid", Datum::Oid(state.database.oid))];
        let rows = state.catalog.rows(&txn).find("pg_database", &key)?;
        let Some(row) = rows.first() else { return Ok(-1) };
        if !crate::acl::may_connect(state, role, row)? {
            let name = row.text("datname");
            let text = format!("permission denied for database \"{name}\"");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text)
                .detail("User does not have CONNECT privilege.")
                .into());
        }
        Ok(row.i32("datconnlimit"))
    }
}

impl Session {
    /// What database, role and client set for the session's begin.
    ///
    /// # Errors
    /// `42704`, `22023`, `42501`; I/O.
    pub(super) fn begin_settings(&mut self, request: &ConnectRequest) -> Result<()> {
        self.apply_stored_settings()?;
        let superuser = self.state.is_superuser();
        for (name, value) in &request.settings {
            base::settings::check_start(name, superuser)?;
            self.set_at_start(name, value, Source::Client)?;
        }
        self.set_at_start("session_authorization", &request.user, Source::Client)?;
        self.renew_env();
        let asked = request.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("role"));
        match self.take_role() {
            Err(error) if asked => Err(error),
            Err(error) => {
                stored_is_wrong(&error);
                self.set_at_start("role", "none", Source::User)
            }
            Ok(()) => Ok(()),
        }
    }

    /// ALTER DATABASE … SET and ALTER ROLE … SET, the most special last.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn apply_stored_settings(&mut self) -> Result<()> {
        let cluster = Arc::clone(&self.state.cluster);
        let (database, role) = (self.state.database.oid, self.state.session_user.borrow().oid);
        let stored = cluster.with_catalogs(Oid::INVALID, |c| {
            let mut stored = Vec::new();
            let all = Oid::INVALID;
            for (database, role) in [(all, all), (database, all), (all, role), (database, role)] {
                let key = [("setdatabase", Datum::Oid(database)), ("setrole", Datum::Oid(role))];
                let source = match (database.is_valid(), role.is_valid()) {
                    (true, true) => Source::DatabaseUser,
                    (false, true) => Source::User,
                    (true, false) => Source::Database,
                    (false, false) => Source::Global,
                };
                for row in c.find("pg_db_role_setting", &key)? {
                    stored
                        .extend(row.options("setconfig").into_iter().map(|(n, v)| (n, v, source)));
                }
            }
            Ok(stored)
        })?;
        for (name, value, source) in stored {
            if let Err(error) = self.set_at_start(&name, &value, source) {
                stored_is_wrong(&error);
            }
        }
        Ok(())
    }

    fn set_at_start(&self, name: &str, value: &str, source: Source) -> Result<()> {
        let value = super::setting_texts::in_session(name, value, true)?;
        self.state.settings.borrow_mut().set_default(name, &value, source)
    }

    /// Takes on the role that the settings name.
    fn take_role(&mut self) -> Result<()> {
        let role = self.state.settings.borrow().text("role").to_owned();
        if role.eq_ignore_ascii_case("none") {
            return Ok(());
        }
        self.in_transaction(|session| session.set_role("role", &[role], SetScope::Session))?;
        // It is what RESET goes back to, and no more.
        self.state.settings.borrow_mut().reset("role", SetScope::Session, true)
    }
}

/// Who is told is the log: the client has not asked for it.
fn stored_is_wrong(error: &Error) {
    base::log::write_error(base::log::Level::Warning, &error.to_sql_error());
}
