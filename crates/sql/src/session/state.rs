//! What a session is, apart from the protocol: who it is, its settings, its transaction, its view of the
//! catalogs. Shared (by `Rc`) between the session and the functions that run in it.

use super::setting_texts;
use crate::activity::{DatabaseWorkSums, TableChanges};
use crate::client::Notice;
use crate::cluster::{Cluster, DatabaseState};
use crate::exec::RelationAccess;
use crate::notify::{Listener, Outgoing};
use crate::parse::Dialect;
use base::settings::{SessionSettings, SetScope};
use base::{Error, Oid, Result, bail};
use engine::catalog::cache::SessionCatalog;
use engine::catalog::model::{CatalogView, Table};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use txn::{Backend, Transaction};
use types::datetime::zone::TimeZone;
use types::env::{DateOrder, DateStyle, IntervalStyle};
use types::{Ctype, Datum, EnumValue, Env, RecordColumn, Style, Text};

/// A role as a session uses it.
#[derive(Clone, Debug)]
pub struct CurrentRole {
    /// `pg_authid.oid`
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Superuser.
    pub superuser: bool,
}

/// So many relations stay open from statement to statement.
const MOST_OPEN: usize = 1024;

/// A relation opened in this session: valid while its description is.
#[derive(Clone)]
pub struct OpenRelation {
    /// The description it was opened by.
    pub table: Arc<Table>,
    /// Its rows.
    pub heap: Arc<heap::Heap>,
    /// Its indexes, in the order of `table.indexes`.
    pub indexes: Vec<Arc<btree::Btree>>,
}

/// A session's state.
pub struct SessionState {
    /// The server.
    pub cluster: Arc<Cluster>,
    /// The database connected to.
    pub database: Arc<DatabaseState>,
    /// This session, as the others see it.
    pub backend: Arc<Backend>,
    /// Whose session it is: who logged in, or SESSION AUTHORIZATION.
    pub session_user: RefCell<CurrentRole>,
    /// Who logged in; SESSION AUTHORIZATION goes back to it.
    pub login_user: CurrentRole,
    /// Whose privileges count.
    pub current_user: RefCell<CurrentRole>,
    /// Its settings.
    pub settings: RefCell<SessionSettings>,
    /// What the settings come to, as last asked for.
    pub(super) derived: RefCell<Option<Rc<super::derived::Derived>>>,
    /// The catalogs.
    pub catalog: SessionCatalog,
    /// The transaction under way.
    txn: RefCell<Option<Rc<Transaction>>>,
    /// Runs while `transaction_timeout` is set.
    pub(super) transaction_clock: RefCell<Option<super::transaction_clock::Clock>>,
    /// When the statement under way began.
    pub statement_start_us: Cell<i64>,
    /// Somebody has asked for the time since this was set to false.
    pub(super) clock_read: Cell<bool>,
    /// Opened relations.
    pub relations: RefCell<HashMap<Oid, OpenRelation>>,
    /// The schema of this session's temporary tables, once it has one.
    pub temp_schema: Cell<Oid>,
    /// What is known of roles.
    pub known_roles: RefCell<crate::acl::KnownRoles>,
    /// Where the current user may look names up.
    pub usable_schemas: RefCell<crate::acl::UsableSchemas>,
    /// Sequences used: last value and cached ones.
    pub sequences: RefCell<HashMap<Oid, crate::sequence::SequenceCache>>,
    /// The sequence `lastval()` speaks of.
    pub last_sequence: Cell<Oid>,
    /// Prepared statements by name; "" is the unnamed one.
    pub statements: RefCell<HashMap<String, Rc<super::Prepared>>>,
    /// The portals that `pg_cursors` shows.
    pub cursors: Rc<super::portal::CursorList>,
    /// Notices raised by functions, sent at the next opportunity.
    pub notices: RefCell<Vec<Notice>>,
    /// What the transaction notifies of, and what the session listens to.
    pub notify: RefCell<Outgoing>,
    /// Where the session's time goes, if it is a client's.
    pub times: Option<Arc<crate::activity::SessionTimes>>,
    /// This thread's figures when the session's I/O was last counted.
    io_seen: Cell<buffer::BufferUsage>,
    /// What is measured of its statements.
    pub(super) nesting: super::counting::Nesting,
    /// Since when it waits for the next statement of a transaction; 0: it does not.
    pub idle_since_us: Cell<i64>,
    /// A query of the server's own begins: nobody's rights are asked for.
    pub(super) reads_all: Cell<bool>,
    /// Why the current user is another role for a while.
    pub(super) lent: Cell<Option<super::roles::Lent>>,
    /// The session has become another role since its plans were made.
    pub(super) role_switched: Cell<bool>,
    /// The transaction has changed roles, which all databases share.
    pub roles_changed: Cell<bool>,
    /// As of which change of roles the session's own are known.
    pub(super) roles_known: Cell<u64>,
    /// Who the session was when this transaction first changed that, and whom it took on since.
    pub roles_seen: RefCell<Vec<CurrentRole>>,
    /// The transaction under way has run a query: its isolation level is fixed.
    pub queried: Cell<bool>,
    /// Constraints set deferred in this transaction, and the checks waiting for its end.
    pub deferred: RefCell<crate::relations::DeferredState>,
    /// Enum types made and labels added in this transaction.
    pub new_enums: RefCell<super::enums::NewEnums>,
    /// Things to do at the end of every transaction; those that this one has added go with its rollback.
    pub on_commit: RefCell<Vec<OnCommitAction>>,
    /// The command that others see under way.
    pub progress: crate::maintenance::commands::Current,
    /// What this transaction has done to which table (statistics).
    pub changes: RefCell<HashMap<Oid, crate::activity::TableChanges>>,
    /// The statistics that it has read.
    pub fetched: crate::system::fetched::Fetched,
    /// The tables it has made and dropped.
    pub fates: RefCell<super::fates::Fates>,
    /// And to which TOAST table.
    pub toasted: Arc<heap::toast::ToastTally>,
    /// Dead rows that it has pruned away on its way.
    pub pruned: Arc<heap::PruneTally>,
}

/// What happens to a temporary table at commit.
#[derive(Clone, Copy, Debug)]
pub enum OnCommitAction {
    /// ON COMMIT DELETE ROWS
    DeleteRows(Oid),
    /// ON COMMIT DROP
    Drop(Oid),
}

impl Drop for SessionState {
    fn drop(&mut self) {
        if !self.notify.borrow().listening().is_empty() {
            self.cluster.notifications.forget(self.listener());
        }
        match &self.times {
            Some(times) => {
                self.database.sessions.end(times);
                // Temporary files of what was still open.
                self.begin_work();
                self.count_work();
            }
            // A worker's statements are not told apart.
            None => self.count_work(),
        }
    }
}

impl SessionState {
    /// A setting's value as SHOW tells it: of some the session and its transaction know more than the settings.
    ///
    /// # Errors
    /// `42704`
    pub fn shown(&self, name: &str) -> Result<String> {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let txn = self.txn_opt();
        Ok(match (name.to_ascii_lowercase().as_str(), txn) {
            ("session_authorization", _) => self.session_user.borrow().name.clone(),
            ("is_superuser", _) => switch(self.is_superuser()),
            ("transaction_isolation", Some(txn))
                if txn.isolation() == txn::IsolationLevel::RepeatableRead =>
            {
                "repeatable read".to_owned()
            }
            ("transaction_read_only", Some(txn)) => switch(txn.is_read_only()),
            _ => self.settings.borrow().show(name)?,
        })
    }

    /// A state without a transaction.
    pub fn new(
        cluster: Arc<Cluster>,
        database: Arc<DatabaseState>,
        backend: Arc<Backend>,
        user: CurrentRole,
        settings: SessionSettings,
    ) -> SessionState {
        let catalog = SessionCatalog::new(Arc::clone(&database.store), Arc::clone(&database.cache));
        let times = (backend.kind == txn::BackendKind::Client).then(|| database.sessions.begin());
        SessionState {
            times,
            io_seen: Cell::new(buffer::my_usage()),
            idle_since_us: Cell::new(0),
            nesting: Default::default(),
            cluster,
            database,
            backend,
            login_user: user.clone(),
            session_user: RefCell::new(user.clone()),
            current_user: RefCell::new(user),
            settings: RefCell::new(settings),
            derived: RefCell::default(),
            catalog,
            txn: RefCell::default(),
            transaction_clock: RefCell::default(),
            statement_start_us: Cell::new(base::sync::now_timestamp_us()),
            clock_read: Cell::new(false),
            relations: RefCell::default(),
            temp_schema: Cell::new(Oid::INVALID),
            reads_all: Cell::new(false),
            lent: Cell::new(None),
            role_switched: Cell::new(false),
            roles_changed: Cell::new(false),
            roles_known: Cell::new(0),
            known_roles: RefCell::default(),
            usable_schemas: RefCell::default(),
            sequences: RefCell::default(),
            last_sequence: Cell::new(Oid::INVALID),
            statements: RefCell::default(),
            cursors: Rc::default(),
            notices: RefCell::default(),
            notify: RefCell::default(),
            queried: Cell::new(false),
            deferred: RefCell::default(),
            new_enums: RefCell::default(),
            on_commit: RefCell::default(),
            progress: Default::default(),
            roles_seen: RefCell::default(),
            changes: RefCell::default(),
            fetched: Default::default(),
            fates: RefCell::default(),
            toasted: Arc::default(),
            pruned: Arc::default(),
        }
    }

    /// Who hears what this session listens to.
    pub fn listener(&self) -> Listener {
        Listener { database: self.database.oid, pid: self.backend.pid }
    }

    /// From here on what this thread reads and writes is this session's.
    pub(super) fn begin_work(&self) {
        self.io_seen.set(buffer::my_usage());
        // Tests run several sessions on one thread.
        if let Some(derived) = &*self.derived.borrow() {
            derived.hold_for_this_thread();
        }
    }

    /// Counts for the database what this thread has read, written and kept in temporary files since it was last asked.
    pub(super) fn count_work(&self) {
        let now = buffer::my_usage();
        let io = now - self.io_seen.replace(now);
        let temp = crate::exec::take_temp_files();
        let mut work = DatabaseWorkSums {
            temp_files: temp.files,
            temp_bytes: temp.bytes,
            ..DatabaseWorkSums::default()
        };
        if (io.read_time_us | io.write_time_us) != 0
            && self.settings.borrow().bool("track_io_timing")
        {
            (work.read_time_us, work.write_time_us) = (io.read_time_us, io.write_time_us);
        }
        self.database.work.add(&work);
    }

    /// The transaction under way.
    ///
    /// # Errors
    /// `25P01`: none is.
    pub fn txn(&self) -> Result<Rc<Transaction>> {
        match &*self.txn.borrow() {
            Some(txn) => Ok(Rc::clone(txn)),
            None => bail!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"),
        }
    }

    /// The transaction, if one is under way.
    pub fn txn_opt(&self) -> Option<Rc<Transaction>> {
        self.txn.borrow().clone()
    }

    /// Puts a transaction in place.
    pub fn set_txn(&self, txn: Transaction) {
        *self.txn.borrow_mut() = Some(Rc::new(txn));
    }

    /// Takes the transaction to end it.
    ///
    /// # Errors
    /// `XX000` when something still uses it: a bug.
    pub fn take_txn(&self) -> Result<Option<Transaction>> {
        self.fetched.clear();
        let Some(txn) = self.txn.borrow_mut().take() else { return Ok(None) };
        match Rc::try_unwrap(txn) {
            Ok(txn) => Ok(Some(txn)),
            Err(txn) => {
                *self.txn.borrow_mut() = Some(txn);
                bail!(INTERNAL_ERROR, "a transaction that is still in use cannot end")
            }
        }
    }

    /// A query of the server's own begins.
    pub(crate) fn reads_all(&self) -> bool {
        self.reads_all.get()
    }

    /// Superuser's rights are in force.
    pub fn is_superuser(&self) -> bool {
        self.current_user.borrow().superuser
    }

    /// Has the privileges of `pg_read_all_settings`.
    ///
    /// # Errors
    /// I/O.
    pub fn may_read_all_settings(&self) -> Result<bool> {
        const PG_READ_ALL_SETTINGS: Oid = Oid(3374);
        if self.is_superuser() {
            return Ok(true);
        }
        let me = self.current_user.borrow().oid;
        Ok(crate::acl::roles_of(self, me)?.contains(&PG_READ_ALL_SETTINGS))
    }

    /// May the session's user see this setting?
    ///
    /// # Errors
    /// `42501`; I/O.
    pub fn check_examine(&self, name: &str) -> Result<()> {
        let Some((_, def)) = base::settings::find(name) else { return Ok(()) };
        if !def.is_secret() || self.may_read_all_settings()? {
            return Ok(());
        }
        let text = format!("permission denied to examine \"{}\"", def.name);
        let why = "Only roles with privileges of the \"pg_read_all_settings\" role may examine \
                   this parameter.";
        Err(base::SqlError::new(base::SqlState::INSUFFICIENT_PRIVILEGE, text).detail(why).into())
    }

    /// Rows written to catalogs and to TOAST tables are changes like all others.
    pub(crate) fn note_tallied_changes(&self) {
        for (catalog, n) in self.catalog.tally().take() {
            let changes = TableChanges {
                inserted: n.inserted,
                updated: n.updated,
                hot_updated: n.hot_updated,
                deleted: n.deleted,
                ..Default::default()
            };
            RelationAccess::note_changes(self, catalog, &changes);
        }
        let count = |n| i64::try_from(n).unwrap_or(i64::MAX);
        for of_toast in self.toasted.take() {
            let changes = TableChanges {
                inserted: count(of_toast.inserted),
                deleted: count(of_toast.deleted),
                ..Default::default()
            };
            let reads = TableChanges {
                scans: count(of_toast.lookups),
                tuples_read: count(of_toast.found),
                tuples_fetched: count(of_toast.fetched),
                ..Default::default()
            };
            RelationAccess::note_scan(self, of_toast.index, &reads);
            if changes != TableChanges::default() {
                RelationAccess::note_changes(self, of_toast.table, &changes);
            }
        }
    }

    /// SET, with what follows from it.
    ///
    /// # Errors
    /// `42704`, `22023`, `55P02`, `42501`
    pub fn set(&self, name: &str, value: &str, scope: SetScope) -> Result<()> {
        let superuser = self.is_superuser();
        let value = setting_texts::in_session(name, value, false)?;
        // No transaction could begin under it, not even the one that takes it back.
        if name.eq_ignore_ascii_case("default_transaction_isolation")
            && value.trim().eq_ignore_ascii_case("serializable")
        {
            return Err(base::Error::unsupported("isolation level SERIALIZABLE"));
        }
        self.settings.borrow_mut().set(name, &value, scope, superuser)
    }

    /// A relation's rows and indexes, opened once for each description of it.
    ///
    /// # Errors
    /// `42809` for a relation without storage; I/O.
    pub fn open_relation(&self, table: &Arc<Table>) -> Result<OpenRelation> {
        if let Some(open) = self.relations.borrow().get(&table.oid)
            && Arc::ptr_eq(&open.table, table)
        {
            return Ok(open.clone());
        }
        let txn = self.txn()?;
        let open = crate::relations::open(self, &txn, table)?;
        let mut relations = self.relations.borrow_mut();
        // Others may have dropped some of them, and a description that is held is not forgotten.
        if relations.len() >= MOST_OPEN {
            relations.clear();
        }
        relations.insert(table.oid, open.clone());
        Ok(open)
    }

    /// `client_min_messages`
    pub(crate) fn min_notice(&self) -> crate::client::Severity {
        self.derived().min_notice
    }

    /// Raises a notice from within a function.
    pub fn notice(&self, notice: Notice) {
        self.notices.borrow_mut().push(notice);
    }

    /// The statement should stop: cancelled, timed out, or the server is going down.
    ///
    /// # Errors
    /// `57014`, `57P01`
    pub fn check_cancel(&self) -> Result<()> {
        self.backend.cancel.check()
    }
}

/// The session as functions see it: its state, and the settings that decide how values look as they
/// were when it was made. A new one is made when a setting changes.
pub struct SessionEnv {
    /// The session.
    pub state: Rc<SessionState>,
    style: Style,
    /// How texts are read.
    pub dialect: Dialect,
    settings_version: u64,
}

impl SessionEnv {
    /// The environment under the settings in force.
    pub fn new(state: Rc<SessionState>) -> SessionEnv {
        let style = style(&state.settings.borrow(), state.database.ctype);
        let dialect = Dialect {
            standard_strings: state.settings.borrow().bool("standard_conforming_strings"),
            escape_warning: state.settings.borrow().bool("escape_string_warning"),
        };
        let settings_version = state.settings.borrow().version();
        SessionEnv { state, style, dialect, settings_version }
    }

    /// A setting has changed since this was made.
    pub fn is_stale(&self) -> bool {
        self.state.settings.borrow().version() != self.settings_version
    }

    /// The session behind `env`, for functions that ask the catalogs.
    ///
    /// # Errors
    /// `0A000` outside a session.
    pub fn of(env: &dyn Env) -> Result<&SessionEnv> {
        env.as_any().downcast_ref::<SessionEnv>().ok_or_else(|| {
            Error::unsupported("a function that reads the catalogs outside a session")
        })
    }
}

fn style(settings: &SessionSettings, ctype: Ctype) -> Style {
    let date_style = settings.text("DateStyle").to_ascii_lowercase();
    let has = |word: &str| date_style.contains(word);
    Style {
        date_style: if has("sql") {
            DateStyle::Sql
        } else if has("postgres") {
            DateStyle::Postgres
        } else if has("german") {
            DateStyle::German
        } else {
            DateStyle::Iso
        },
        date_order: if has("dmy") || has("german") && !has("mdy") && !has("ymd") {
            DateOrder::Dmy
        } else if has("ymd") {
            DateOrder::Ymd
        } else {
            DateOrder::Mdy
        },
        interval_style: match settings.text("IntervalStyle") {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        bytea_escape: settings.text("bytea_output") == "escape",
        extra_float_digits: i32::try_from(settings.int("extra_float_digits")).unwrap_or(1),
        time_zone: TimeZone::by_name(settings.text("TimeZone"))
            .map_or_else(|| Style::plain().time_zone.clone(), Arc::new),
        ctype,
    }
}

impl Env for SessionEnv {
    fn setting(&self, name: &str) -> Option<String> {
        self.state.settings.borrow().show(name).ok()
    }
    fn style(&self) -> &Style {
        &self.style
    }
    fn transaction_timestamp(&self) -> i64 {
        self.state.clock_read.set(true);
        match self.state.txn_opt() {
            Some(txn) => txn.start_timestamp_us(),
            None => self.state.statement_start_us.get(),
        }
    }
    fn statement_timestamp(&self) -> i64 {
        self.state.statement_start_us.get()
    }
    fn check_cancel(&self) -> Result<()> {
        self.state.check_cancel()
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
    fn object_oid(&self, reg_type: Oid, name: &str) -> Result<Option<Oid>> {
        crate::system::names::object_oid(&self.state, reg_type, name)
    }
    fn object_name(&self, reg_type: Oid, oid: Oid) -> Option<String> {
        crate::system::names::object_name(&self.state, reg_type, oid)
    }
    fn enum_label(&self, value: EnumValue) -> Result<Text> {
        self.state.enum_label(value)
    }
    fn enum_value(&self, type_oid: Oid, label: &str) -> Result<EnumValue> {
        self.state.enum_value(type_oid, label)
    }
    fn check_enum_use(&self, value: EnumValue) -> Result<()> {
        self.state.check_enum_use(value)
    }
    fn check_domain(&self, domain: Oid, value: &Datum) -> Result<()> {
        super::domains::check(self, domain, value)
    }
    fn enum_values(&self, type_oid: Oid) -> Result<Vec<EnumValue>> {
        self.state.enum_values(type_oid)
    }
    fn row_columns(&self, type_oid: Oid) -> Result<Option<Arc<[RecordColumn]>>> {
        let table = self.state.table_of_row_type(type_oid)?;
        let of = |c: &engine::catalog::model::Column| RecordColumn {
            name: Text::from(c.name.as_str()),
            type_oid: c.declared().oid,
            typmod: c.ty.typmod,
        };
        Ok(table.map(|t| t.columns.iter().filter(|c| !c.dropped).map(of).collect()))
    }
}
