//! Who may begin a session, and as which role.

use super::{ConnectRequest, Session};
use crate::cluster::Cluster;
use base::settings::{SetScope, Source};
use base::{Result, SqlError, SqlState, bail};
use txn::BackendKind;

/// What everybody may do with a database while nothing is said of it: CONNECT and TEMPORARY.
const EVERYBODYS: u32 = CONNECT | 2048;
const CONNECT: u32 = 1024;

/// Is there room for another session of this role?
///
/// # Errors
/// `53300`
pub(super) fn check_limits(
    cluster: &Cluster,
    role: &crate::cluster::LoginRole,
    request: &ConnectRequest,
) -> Result<()> {
    let backends = cluster.backends().all();
    let clients = backends.iter().filter(|b| b.kind == BackendKind::Client).count();
    let limit = usize::try_from(cluster.settings().int("max_connections")).unwrap_or(usize::MAX);
    let reserved = usize::try_from(cluster.settings().int("superuser_reserved_connections"));
    let reserved = if role.superuser { 0 } else { reserved.unwrap_or(0) };
    if clients >= limit {
        bail!(TOO_MANY_CONNECTIONS, "sorry, too many clients already");
    }
    if clients + reserved >= limit {
        bail!(
            TOO_MANY_CONNECTIONS,
            "remaining connection slots are reserved for roles with the SUPERUSER attribute"
        );
    }
    if let Ok(limit) = usize::try_from(role.connection_limit)
        && !role.superuser
    {
        let of_role = backends
            .iter()
            .filter(|b| b.kind == BackendKind::Client && b.activity.lock().user == role.oid)
            .count();
        if of_role >= limit {
            bail!(TOO_MANY_CONNECTIONS, "too many connections for role \"{}\"", request.user);
        }
    }
    Ok(())
}

impl Session {
    /// Superusers connect to any database; others where they have the privilege, and there is room.
    pub(super) fn check_may_connect(&mut self) -> Result<()> {
        if self.state.session_user.borrow().superuser {
            return Ok(());
        }
        self.begin_own()?;
        match self.check_database() {
            Ok(()) => self.end_own(),
            Err(error) => {
                self.abort_own();
                Err(error)
            }
        }
    }

    fn check_database(&self) -> Result<()> {
        let (state, name) = (&self.state, &self.state.database.name);
        let me = state.session_user.borrow().oid;
        let row =
            crate::system::names::row_by_oid(state, "pg_database", "oid", state.database.oid)?;
        // It has just been dropped: what comes next says so.
        let Some(row) = row else { return Ok(()) };
        let (owner, acl) = (row.oid("datdba"), row.texts("datacl"));
        if crate::acl::privileges(state, me, owner, acl.as_deref(), EVERYBODYS)? & CONNECT == 0 {
            let text = format!("permission denied for database \"{name}\"");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text)
                .detail("User does not have CONNECT privilege.")
                .into());
        }
        let Ok(limit) = usize::try_from(row.i32("datconnlimit")) else { return Ok(()) };
        let here = |b: &&std::sync::Arc<txn::Backend>| {
            b.kind == BackendKind::Client && b.activity.lock().database == state.database.oid
        };
        // This one is among them.
        if state.cluster.backends().all().iter().filter(here).count() > limit {
            bail!(TOO_MANY_CONNECTIONS, "too many connections for database \"{name}\"");
        }
        Ok(())
    }

    /// The role that ALTER ROLE … SET role, or the client, wants the session to begin as.
    ///
    /// # Errors
    /// What the client asked for and may not have; else that is only told in the log.
    pub(super) fn take_login_role(&mut self) -> Result<()> {
        let (wanted, source) = {
            let settings = self.state.settings.borrow();
            let (index, _) = base::settings::definition("role")?;
            (settings.text("role").to_owned(), settings.source(index))
        };
        if wanted.eq_ignore_ascii_case("none") {
            return Ok(());
        }
        self.begin_own()?;
        match self.set_role("role", &[wanted], SetScope::Session) {
            Ok(()) => {
                // It is what RESET goes back to, and no more.
                self.state.settings.borrow_mut().reset("role", SetScope::Session, true)?;
                self.end_own()
            }
            Err(error) => {
                self.abort_own();
                if source == Source::Client {
                    return Err(error);
                }
                base::log::write_error(base::log::Level::Warning, &error.to_sql_error());
                self.state.settings.borrow_mut().set_default("role", "none", source)
            }
        }
    }
}
