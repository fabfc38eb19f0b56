//! A session: statements in, results out, transactions in between.
//!
//! # Where to look
//! [`state`]: what a session is. [`transaction`]: BEGIN to COMMIT, implicit and explicit. `simple`:
//! query strings. `extended`: Parse, Bind, Execute. `portal`: running statements. `run`: plans to rows.
//!
//! # Invariants
//! A statement runs in a transaction, always; one that nobody began ends with the statement, or with
//! the query string, or at Sync. After an error inside a block only its end is taken.

mod access;
mod admission;
pub(crate) mod alter_system;
mod catalog_view;
mod command_name;
mod counting;
mod current_of;
mod cursor;
mod derived;
mod domains;
mod enums;
mod explain;
pub(crate) mod explain_format;
mod extended;
pub mod fates;
mod lock_table;
mod nested;
mod notify;
mod plan_sizes;
mod portal;
mod prepared;
mod roles;
pub(crate) use current_of::current_row;
pub(crate) use roles::Lent;
pub mod run;
mod run_queue;
mod setting_texts;
mod simple;
pub mod state;
mod statement_cache;
mod statement_log;
mod template;
mod template_form;
mod transaction;
mod transaction_clock;
mod utility;
pub(crate) mod within;

pub use alter_system::AUTO_CONF;
pub use portal::Portal;
pub use prepared::{Arguments, Prepared};
pub use run::Execution;
pub(crate) use setting_texts::check_setting;
pub use setting_texts::kept;
pub use state::{CurrentRole, OpenRelation, SessionEnv, SessionState};
pub(crate) use utility::setting_text;

use crate::activity::SessionEnd;
use crate::client::{Client, Severity};
use crate::cluster::Cluster;
use base::settings::SessionSettings;
use base::{Lsn, Oid, Result, SqlError, SqlState, bail};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use transaction::Block;
use txn::{Backend, BackendKind, BackendState};

/// Who wants to connect, and how.
#[derive(Clone, Debug)]
pub struct ConnectRequest {
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// Settings from the startup packet.
    pub settings: Vec<(String, String)>,
    /// The client's address.
    pub peer: Option<SocketAddr>,
    /// The connection's encryption.
    pub tls: Option<txn::TlsInfo>,
}

/// Settings that clients are told of, and told again when they change.
const REPORTED: [&str; 15] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "scram_iterations",
    "search_path",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
    "is_superuser",
];

/// A session.
pub struct Session {
    state: Rc<SessionState>,
    env: Rc<SessionEnv>,
    block: Block,
    savepoints: Vec<transaction::Savepoint>,
    /// The modes of a block that has failed, for AND CHAIN.
    failed_modes: crate::parse::utility::TransactionModes,
    /// The modes that the block has from the one before it, by AND CHAIN.
    chained: Option<crate::parse::utility::TransactionModes>,
    /// As it was when the transaction began.
    before: transaction::Before,
    portals: HashMap<String, Portal>,
    /// Statements of the simple protocol, by text.
    plan_cache: statement_cache::StatementCache,
    /// Those of the extended protocol.
    parsed: statement_cache::StatementCache,
    /// The same by text without constants.
    templates: template::Templates,
    /// How many plans were made for statements that are kept.
    planned: Cell<u64>,
    /// How many snapshots of others it has imported.
    imports: Cell<u64>,
    /// Values last told to the client.
    reported: HashMap<&'static str, String>,
    /// What they follow from, as it was then: settings' version, superuser, session user.
    reported_under: (u64, bool, Oid),
    /// The log has its text already.
    statement_logged: Cell<bool>,
    /// What it says of a prepared statement that is executed.
    statement_prepared: RefCell<Option<String>>,
    /// All statements of the transaction are logged (`log_transaction_sample_rate`).
    transaction_sampled: Cell<bool>,
    settings_seen: Cell<u64>,
    /// The statement is maintenance: its time is nobody's latency.
    pub(crate) unmeasured: Cell<bool>,
    /// In a statement of many transactions: the end of the last commit that has not waited for the log.
    unsynced: Option<Lsn>,
    /// What statements waited for a processor before they began.
    run_queue: run_queue::RunQueue,
    /// Is the client gone?
    client_gone: Option<crate::timer::Question>,
    /// What the planner was told by settings when plans were kept.
    planned_under: crate::plan::PlannerSettings,
    /// The query string has several statements: they are one transaction, a block of a kind.
    in_implicit_block: bool,
    /// The transaction that is open has run a statement of the extended protocol, and no Sync has ended it yet.
    pipelined: bool,
    /// The statement begins and ends transactions itself: nothing joins the one that it leaves.
    alone: Cell<bool>,
    /// How many procedures are under way, each called by the one before it.
    procedures: usize,
    /// How many portals without a name procedures have opened.
    unnamed_portals: u64,
}

impl Session {
    /// A session for `request`, whose password has been checked.
    ///
    /// # Errors
    /// `28000`, `3D000`, `53300`, `42501`, a bad setting.
    pub fn connect(cluster: &Arc<Cluster>, request: ConnectRequest) -> Result<Session> {
        let Some(role) = cluster.login_role(&request.user)? else {
            bail!(INVALID_AUTHORIZATION_SPECIFICATION, "role \"{}\" does not exist", request.user);
        };
        if !role.login {
            bail!(
                INVALID_AUTHORIZATION_SPECIFICATION,
                "role \"{}\" is not permitted to log in",
                request.user
            );
        }
        if role.expired {
            bail!(INVALID_PASSWORD, "password authentication failed for user \"{}\"", request.user);
        }
        let user =
            CurrentRole { oid: role.oid, name: request.user.clone(), superuser: role.superuser };
        let mut session = Session::open(cluster, &request.database, user, BackendKind::Client)?;
        session.check_admission(&role, &request)?;
        session.begin_settings(&request)?;
        session.announce(&request);
        Ok(session)
    }

    /// A session of the server's own (autovacuum, `init`), as the superuser.
    ///
    /// # Errors
    /// `3D000`; I/O.
    pub fn internal(cluster: &Arc<Cluster>, database: &str, kind: BackendKind) -> Result<Session> {
        let user = CurrentRole {
            oid: engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER,
            name: "postgres".to_owned(),
            superuser: true,
        };
        Session::open(cluster, database, user, kind)
    }

    fn open(
        cluster: &Arc<Cluster>,
        database: &str,
        user: CurrentRole,
        kind: BackendKind,
    ) -> Result<Session> {
        let oid = cluster.find_database(database, kind == BackendKind::Client)?;
        let backend = cluster.engine().txns.register_backend(kind);
        let database = cluster.connect(&backend, oid, database)?;
        Session::over(cluster, database, user, backend)
    }

    /// An autovacuum worker's session, over the backend it has already.
    ///
    /// # Errors
    /// `3D000`; I/O.
    pub fn worker(
        cluster: &Arc<Cluster>,
        (database, name): (Oid, &str),
        backend: &Arc<Backend>,
    ) -> Result<Session> {
        let user = CurrentRole {
            oid: engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER,
            name: "postgres".to_owned(),
            superuser: true,
        };
        let database = cluster.connect(backend, database, name)?;
        Session::over(cluster, database, user, Arc::clone(backend))
    }

    fn over(
        cluster: &Arc<Cluster>,
        database: Arc<crate::cluster::DatabaseState>,
        user: CurrentRole,
        backend: Arc<Backend>,
    ) -> Result<Session> {
        // A session stays on its thread.
        cluster.work_for(database.oid);
        let settings = SessionSettings::new(Arc::clone(cluster.settings()));
        crate::exec::keep_temp_files_in(settings.text("data_directory"));
        let timeout = u64::try_from(settings.int("deadlock_timeout")).unwrap_or(1000);
        backend.set_deadlock_timeout_ms(timeout);
        backend.log_lock_waits(settings.bool("log_lock_waits"));
        backend.log_lock_failures(settings.bool("log_lock_failures"));
        let state =
            Rc::new(SessionState::new(Arc::clone(cluster), database, backend, user, settings));
        let env = Rc::new(SessionEnv::new(Rc::clone(&state)));
        Ok(Session {
            state,
            env,
            block: Block::None,
            savepoints: Vec::new(),
            failed_modes: Default::default(),
            chained: None,
            before: Default::default(),
            portals: HashMap::new(),
            templates: template::Templates::default(),
            planned: Cell::new(0),
            imports: Cell::new(0),
            plan_cache: Default::default(),
            parsed: Default::default(),
            reported: HashMap::new(),
            reported_under: (u64::MAX, false, Oid::INVALID),
            statement_logged: Cell::new(false),
            statement_prepared: RefCell::new(None),
            transaction_sampled: Cell::new(false),
            settings_seen: Cell::new(0),
            unmeasured: Cell::new(false),
            unsynced: None,
            run_queue: run_queue::RunQueue::default(),
            client_gone: None,
            planned_under: crate::plan::PlannerSettings::default(),
            in_implicit_block: false,
            pipelined: false,
            alone: Cell::new(false),
            procedures: 0,
            unnamed_portals: 0,
        })
    }

    fn announce(&self, request: &ConnectRequest) {
        let now = base::sync::now_timestamp_us();
        let mut activity = self.state.backend.activity.lock();
        activity.database = self.state.database.oid;
        activity.database_name.clone_from(&request.database);
        activity.user = self.state.session_user.borrow().oid;
        activity.user_name.clone_from(&request.user);
        activity.application_name =
            self.state.settings.borrow().text("application_name").to_owned();
        activity.client_addr = request.peer.map(|p| p.ip().to_string());
        activity.client_port = request.peer.map(|p| i32::from(p.port()));
        activity.tls = request.tls;
        activity.backend_start = now;
        activity.state_change = now;
        activity.state = BackendState::Idle;
    }

    /// What tells whether the client is gone, for `client_connection_check_interval`.
    pub fn look_after_client(&mut self, gone: crate::timer::Question) {
        self.client_gone = Some(gone);
    }

    /// This session, as the others see it.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.state.backend
    }

    /// Its state.
    pub fn state(&self) -> &Rc<SessionState> {
        &self.state
    }

    /// The functions' view of it.
    pub fn env(&self) -> &Rc<SessionEnv> {
        &self.env
    }

    /// `I`, `T` or `E`.
    pub fn transaction_status(&self) -> u8 {
        match self.block {
            Block::None | Block::Implicit => b'I',
            Block::Explicit => b'T',
            Block::Failed => b'E',
        }
    }

    /// `client_min_messages`
    pub fn min_notice(&self) -> Severity {
        self.state.derived().min_notice
    }

    /// What the log says from now on is of no statement that ran before.
    pub fn forget_statement(&self) {
        base::log::set_thread_statement(None);
    }

    /// How long the client may be waited for now, and the error that the session ends with then; `idle`: it has been told that the session
    /// is ready.
    pub fn time_left(&self, idle: bool) -> Option<(Duration, SqlError)> {
        let idle = self.idle_timeout().filter(|_| idle);
        idle.into_iter().chain(self.transaction_time_left()).min_by_key(|(duration, _)| *duration)
    }

    fn idle_timeout(&self) -> Option<(Duration, SqlError)> {
        let derived = self.state.derived();
        let (timeout, state, message) = if self.block == Block::None {
            (
                derived.idle_session_timeout,
                SqlState::IDLE_SESSION_TIMEOUT,
                "terminating connection due to idle-session timeout",
            )
        } else {
            (
                derived.idle_in_transaction_timeout,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout",
            )
        };
        timeout.map(|timeout| (timeout, SqlError::new(state, message)))
    }

    /// Settings that the client is told of at the start.
    pub fn reported_settings(&mut self) -> Vec<(String, String)> {
        self.reported = REPORTED.iter().map(|n| (*n, self.reported_value(n))).collect();
        REPORTED.iter().map(|n| ((*n).to_owned(), self.reported_value(n))).collect()
    }

    fn reported_value(&self, name: &str) -> String {
        match name {
            "is_superuser" => if self.state.is_superuser() { "on" } else { "off" }.to_owned(),
            "session_authorization" => self.state.session_user.borrow().name.clone(),
            name => self.state.settings.borrow().show(name).unwrap_or_default(),
        }
    }

    /// Tells the client of reported settings that have changed: before it is told that the session is ready, whatever came of its statement.
    ///
    /// # Errors
    /// The client's.
    pub fn report_settings(&mut self, client: &mut dyn Client) -> Result<()> {
        let now = {
            let settings = self.state.settings.borrow();
            let user = self.state.current_user.borrow();
            (settings.version(), user.superuser, self.state.session_user.borrow().oid)
        };
        if std::mem::replace(&mut self.reported_under, now) == now {
            return Ok(());
        }
        for name in REPORTED {
            let value = self.reported_value(name);
            if self.reported.get(name) != Some(&value) {
                client.parameter_status(name, &value)?;
                self.reported.insert(name, value);
            }
        }
        Ok(())
    }

    /// After any change of a setting: what is derived from settings is made anew.
    fn renew_env(&mut self) {
        let before =
            std::mem::replace(&mut self.env, Rc::new(SessionEnv::new(Rc::clone(&self.state))));
        // Constants of kept statements were read under the settings of then.
        if !types::Env::style(&*self.env).reads_as(types::Env::style(&*before)) {
            self.forget_plans();
        }
        let planned_under = self.state.derived().planner;
        if planned_under != self.planned_under {
            self.planned_under = planned_under;
            self.forget_plans();
        }
        let name = self.state.settings.borrow().text("application_name").to_owned();
        base::log::prefix::set_application(&name);
        self.state.backend.activity.lock().application_name = name;
    }

    /// [`Session::renew_env`], if a setting has changed.
    fn renew_env_if_set(&mut self) {
        if self.env.is_stale() {
            self.renew_env();
        }
        if self.state.role_switched.replace(false) {
            self.forget_plans();
        }
    }

    /// Takes in a reload of the configuration files.
    fn refresh_settings(&mut self) {
        let generation = self.state.cluster.settings().generation();
        if self.settings_seen.replace(generation) != generation {
            self.state.settings.borrow_mut().refresh();
            self.renew_env();
        }
        self.renew_env_if_set();
        self.refresh_roles();
    }

    /// What others have made of the session's roles: a superuser that is none any more has that one's rights no longer.
    fn refresh_roles(&self) {
        let changes = self.state.cluster.role_changes();
        if self.state.roles_known.get() == changes {
            return;
        }
        for role in [&self.state.current_user, &self.state.session_user] {
            // The next statement asks again.
            let Ok(now) = self.state.role_as_it_is(&role.borrow()) else { return };
            role.replace(now);
        }
        self.state.roles_known.set(changes);
    }

    /// `tcp_keepalives_idle`, `_interval`, `_count` and `tcp_user_timeout`.
    pub fn tcp_settings(&self) -> [u32; 4] {
        self.state.derived().tcp
    }

    /// Counts that the session ends in another way than by its client's good-bye.
    pub fn count_end(&self, how: SessionEnd) {
        self.state.database.work.ended(how);
    }

    /// Ends the session: what is open is rolled back, temporary tables go.
    pub fn close(mut self) {
        self.portals.values_mut().for_each(Portal::fail);
        self.portals.clear();
        self.abort_transaction();
        if let Err(error) = crate::ddl::temp::drop_all(&mut self) {
            base::log::write_error(base::log::Level::Warning, &error.to_sql_error());
        }
        self.state.cluster.engine().txns.locks().release_session(&self.state.backend, false);
        base::log::forget_session();
    }
}
