//! The server as all sessions share it: the engine, its databases, settings and timers.

use crate::kept_counts::{KeptCounts, Since};
use crate::notify::NotifyQueue;
use crate::timer::Timer;
use base::settings::ServerSettings;
use base::sync::{Mutex, Rank, RwLock};
use base::{Oid, Result, bail};
use engine::Engine;
use engine::catalog::cache::SharedCache;
use engine::catalog::load::RowSource;
use engine::catalog::rows::Row;
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use txn::{Backend, BackendKind, LockMode, LockTag, Registry, Wait};
use types::{Ctype, Datum};

/// The clusters that the process has opened.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

const DATABASES_RANK: Rank = Rank(40);
/// Nothing is taken under it but what writing a file takes.
const SETTINGS_FILE_RANK: Rank = Rank(49);

/// A database that sessions are, or were, connected to.
pub struct DatabaseState {
    /// `pg_database.oid`
    pub oid: Oid,
    /// Its name when it was connected to: one that is renamed has nobody connected to it.
    pub name: String,
    /// What letters are in it.
    pub ctype: Ctype,
    /// Its catalogs.
    pub store: Arc<CatalogStore>,
    /// Descriptions of its relations.
    pub cache: Arc<SharedCache>,
    /// What VACUUM and ANALYZE are to know of its tables.
    pub activity: Arc<crate::activity::TableActivity>,
    /// Its clients' sessions.
    pub sessions: Arc<crate::activity::Sessions>,
    /// What else is counted of its sessions.
    pub work: Arc<crate::activity::DatabaseWork>,
    /// What its counters were when they were last reset.
    pub reset: Arc<RwLock<crate::system::reset::Database>>,
}

impl DatabaseState {
    /// The same database under another name: all that is counted of it goes on.
    fn renamed(&self, name: &str) -> DatabaseState {
        DatabaseState {
            oid: self.oid,
            name: name.to_owned(),
            ctype: self.ctype,
            store: Arc::clone(&self.store),
            cache: Arc::clone(&self.cache),
            activity: Arc::clone(&self.activity),
            sessions: Arc::clone(&self.sessions),
            work: Arc::clone(&self.work),
            reset: Arc::clone(&self.reset),
        }
    }
}

/// What letters are in the database of a row of `pg_database`.
pub(crate) fn ctype_of(row: &Row) -> Ctype {
    let builtin = row.char("datlocprovider") == b'b';
    let locale = row.text_opt(if builtin { "datlocale" } else { "datctype" });
    locale.and_then(Ctype::of_locale).unwrap_or_default()
}

/// What the server needs to know of a role that wants to log in.
#[derive(Clone, Debug)]
pub struct LoginRole {
    /// `pg_authid.oid`
    pub oid: Oid,
    /// Superuser.
    pub superuser: bool,
    /// May log in.
    pub login: bool,
    /// The stored SCRAM verifier.
    pub password: Option<String>,
    /// `rolconnlimit`, -1: none.
    pub connection_limit: i32,
    /// `rolvaliduntil` has passed.
    pub expired: bool,
}

type Reloader = Box<dyn Fn() + Send + Sync>;

fn notify_queue_bytes(settings: &ServerSettings) -> usize {
    let pages = usize::try_from(settings.int("max_notify_queue_pages")).unwrap_or(0);
    pages.saturating_mul(page::PAGE_SIZE)
}

/// The lock on a database: RowExclusive to connect to it, Share to copy it, AccessExclusive to drop or rename it.
pub fn database_lock(database: Oid) -> LockTag {
    let class = engine::catalog::defs::by_name("pg_database").oid;
    LockTag::Object { database: Oid::INVALID, class, object: database, sub: 0 }
}

/// Why a session that waits for its client is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// It must end: its cancel flag says why.
    End,
    /// There is a notification for it.
    Hear,
}

type Waker = Box<dyn Fn(i32, Wake) + Send + Sync>;

/// The server.
pub struct Cluster {
    engine: Arc<Engine>,
    storage: Storage,
    settings: Arc<ServerSettings>,
    databases: RwLock<HashMap<Oid, Arc<DatabaseState>>>,
    /// How often roles were changed.
    role_changes: AtomicU64,
    waker: OnceLock<Waker>,
    reloader: OnceLock<Reloader>,
    /// VACUUM and ANALYZE that run now.
    pub maintenance: crate::maintenance::progress::Registry,
    /// The autovacuum workers that share the cost limit.
    pub workers: Arc<crate::maintenance::throttle::Workers>,
    /// How long statements have been taking.
    pub latency: Arc<base::latency::LatencyWindow>,
    /// What sessions notify each other of.
    pub notifications: Arc<NotifyQueue>,
    /// Raises statement timeouts.
    pub timer: Timer,
    /// What the server's counters were when they were last reset.
    pub baselines: crate::system::reset::Baselines,
    /// Indexes that are not for old snapshots.
    pub young_indexes: crate::young_indexes::YoungIndexes,
    /// The sequences in use.
    pub sequences: Arc<crate::sequence::Sequences>,
    /// When the server came up.
    pub started_us: i64,
    /// Which of the process's clusters it is.
    number: u32,
    /// The tables' counts of before.
    kept: KeptCounts,
    /// What statements cost.
    pub statements: crate::statements::Statements,
    /// Who holds it may change ALTER SYSTEM's file.
    pub settings_file: Mutex<()>,
    /// When the configuration files were last read.
    pub configured_us: AtomicI64,
    /// The counts of the catalogs that all databases share.
    shared_activity: Arc<crate::activity::TableActivity>,
}

impl Cluster {
    /// Over an open engine.
    ///
    /// # Errors
    /// No threads.
    pub fn new(engine: Arc<Engine>, settings: Arc<ServerSettings>) -> Result<Arc<Cluster>> {
        crate::system::register();
        let started_us = base::sync::now_timestamp_us();
        let sequences = Arc::new(crate::sequence::Sequences::default());
        let watching = Arc::downgrade(&sequences);
        engine.files.on_removal(move |removed| {
            if let Some(sequences) = watching.upgrade() {
                sequences.forget(removed);
            }
        });
        let kept = KeptCounts::read(
            Arc::clone(&engine.disk),
            Since { us: started_us, xid: engine.txns.next_xid() },
        );
        let statements =
            crate::statements::Statements::open(Arc::clone(&engine.disk), &settings, started_us);
        Ok(Arc::new(Cluster {
            statements,
            storage: Storage::of(&engine),
            maintenance: crate::maintenance::progress::Registry::new(Arc::clone(&engine.disk)),
            shared_activity: Arc::new(kept.take(Oid::INVALID, None)),
            kept,
            notifications: Arc::new(NotifyQueue::new(notify_queue_bytes(&settings))),
            engine,
            settings,
            databases: RwLock::new(DATABASES_RANK, HashMap::new()),
            role_changes: AtomicU64::new(1),
            waker: OnceLock::new(),
            reloader: OnceLock::new(),
            workers: Arc::default(),
            latency: Arc::default(),
            timer: Timer::start()?,
            baselines: crate::system::reset::Baselines::new(started_us),
            young_indexes: crate::young_indexes::YoungIndexes::default(),
            sequences,
            started_us,
            settings_file: Mutex::new(SETTINGS_FILE_RANK, ()),
            configured_us: AtomicI64::new(started_us),
            number: CLUSTERS.fetch_add(1, Ordering::Relaxed),
        }))
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What relations are opened with.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The server's settings.
    pub fn settings(&self) -> &Arc<ServerSettings> {
        &self.settings
    }

    /// The counts of the catalogs that all databases share.
    pub fn shared_activity(&self) -> &crate::activity::TableActivity {
        &self.shared_activity
    }

    /// Since when the tables' changes are counted.
    pub fn counted_since(&self) -> Since {
        self.kept.since()
    }

    /// Writes the tables' counts down for the next server, if they have changed: for good when this one stops, otherwise once a minute.
    /// When it stops, those of statements too.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep_counts(&self, for_good: bool) -> Result<()> {
        if !for_good && !self.kept.are_due() {
            return Ok(());
        }
        let kept = {
            // A database that is used for the first time meanwhile would be missed.
            let databases = self.databases.read();
            let shared = std::iter::once((Oid::INVALID, Arc::clone(&self.shared_activity)));
            let used = databases.values().map(|d| (d.oid, Arc::clone(&d.activity)));
            self.kept.gather(used.chain(shared))
        };
        let written = self.kept.write(&kept, for_good);
        if for_good {
            self.statements.keep(&self.settings)?;
        }
        written
    }

    /// All sessions and workers.
    pub fn backends(&self) -> &Arc<Registry> {
        self.engine.txns.backends()
    }

    /// What wakes a session that waits for its client.
    pub fn on_wake(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Wakes session `pid` if it waits for its client. Called with no lock held.
    pub fn wake(&self, pid: i32, why: Wake) {
        if let Some(wake) = self.waker.get() {
            wake(pid, why);
        }
    }

    /// What reads the configuration files again.
    pub fn on_reload(&self, reloader: Reloader) {
        let _ = self.reloader.set(reloader);
    }

    /// Reads the configuration files again; false where there are none.
    pub fn reload(&self) -> bool {
        match self.reloader.get() {
            Some(reload) => {
                self.configured_us.store(base::sync::now_timestamp_us(), Ordering::Relaxed);
                reload();
                true
            }
            None => false,
        }
    }

    /// Ends session `pid`.
    pub fn terminate(&self, pid: i32) -> bool {
        let Some(backend) = self.backends().by_pid(pid) else { return false };
        backend.interrupt(base::sync::CancelReason::Terminate);
        self.wake(pid, Wake::End);
        true
    }

    /// Runs `f` in a transaction of its own, to read catalogs outside any session.
    ///
    /// # Errors
    /// `f`'s; I/O.
    pub fn with_catalogs<T>(
        &self,
        database: Oid,
        f: impl FnOnce(&engine::catalog::store::Catalogs<'_>) -> Result<T>,
    ) -> Result<T> {
        let backend = self.engine.txns.register_backend(BackendKind::Internal);
        "catalog look-up".clone_into(&mut backend.activity.lock().application_name);
        self.with_catalogs_as(&backend, database, f)
    }

    fn with_catalogs_as<T>(
        &self,
        backend: &Arc<Backend>,
        database: Oid,
        f: impl FnOnce(&engine::catalog::store::Catalogs<'_>) -> Result<T>,
    ) -> Result<T> {
        let txn = self.engine.txns.begin(backend);
        backend.activity.lock().xact_start = txn.start_timestamp_us();
        let store = CatalogStore::new(self.storage.clone(), database);
        let result = f(&store.session(&txn));
        let ended = txn.abort();
        backend.activity.lock().xact_start = 0;
        ended?;
        result
    }

    /// A role by name.
    ///
    /// # Errors
    /// I/O.
    pub fn login_role(&self, name: &str) -> Result<Option<LoginRole>> {
        self.with_catalogs(Oid::INVALID, |c| {
            let rows = c.find("pg_authid", &[("rolname", Datum::text(name))])?;
            Ok(rows.first().map(|r| LoginRole {
                oid: r.oid("oid"),
                superuser: r.bool("rolsuper"),
                login: r.bool("rolcanlogin"),
                password: r.text_opt("rolpassword").map(str::to_owned),
                connection_limit: r.i32("rolconnlimit"),
                expired: match r.get("rolvaliduntil") {
                    Datum::TimestampTz(until) => *until < base::sync::now_timestamp_us(),
                    _ => false,
                },
            }))
        })
    }

    /// A role that can log in and has no password, if there is one.
    ///
    /// # Errors
    /// I/O.
    pub fn login_role_without_password(&self) -> Result<Option<String>> {
        self.with_catalogs(Oid::INVALID, |c| {
            let rows = c.scan("pg_authid")?;
            Ok(rows
                .iter()
                .find(|r| r.bool("rolcanlogin") && r.text_opt("rolpassword").is_none())
                .map(|r| r.text("rolname").to_owned()))
        })
    }

    /// The database called `name`; a client's session is let in only where connections are taken.
    ///
    /// # Errors
    /// `3D000` when there is none; `55000` when it takes no connections.
    pub fn find_database(&self, name: &str, for_client: bool) -> Result<Oid> {
        let (oid, connections) = self.with_catalogs(Oid::INVALID, |c| {
            match c.find("pg_database", &[("datname", Datum::text(name))])?.first() {
                Some(row) => Ok((row.oid("oid"), row.bool("datallowconn"))),
                None => bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist"),
            }
        })?;
        if for_client && !connections {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "database \"{name}\" is not currently accepting connections"
            );
        }
        Ok(oid)
    }

    /// Connects `backend` to database `oid`. Only then are its files read: whoever drops it waits for those who are connected.
    ///
    /// # Errors
    /// Those of waiting for whoever copies, renames or drops it; `3D000` if it was dropped; I/O.
    pub fn connect(
        &self,
        backend: &Arc<Backend>,
        oid: Oid,
        name: &str,
    ) -> Result<Arc<DatabaseState>> {
        self.enter_database(backend, oid, name)?;
        self.database_by_oid(oid, name)
    }

    /// The state of database `oid`, if anybody was ever connected to it.
    pub fn known_database(&self, oid: Oid) -> Option<Arc<DatabaseState>> {
        self.databases.read().get(&oid).map(Arc::clone)
    }

    /// The databases that anybody was ever connected to.
    pub fn known_databases(&self) -> Vec<Oid> {
        self.databases.read().keys().copied().collect()
    }

    /// The state of database `oid`.
    ///
    /// # Errors
    /// I/O.
    fn database_by_oid(&self, oid: Oid, name: &str) -> Result<Arc<DatabaseState>> {
        if let Some(database) = self.known_database(oid) {
            if database.name == name {
                return Ok(database);
            }
            let renamed = Arc::new(database.renamed(name));
            self.databases.write().insert(oid, Arc::clone(&renamed));
            return Ok(renamed);
        }
        let before = self.work_for(oid);
        let learned = self.with_catalogs(oid, |catalogs| {
            engine::catalog::enums::learn_names(catalogs)?;
            engine::catalog::domains::learn(catalogs)?;
            let extension = [("extname", Datum::text(crate::statements::EXTENSION))];
            self.statements.found_in(oid, !catalogs.find("pg_extension", &extension)?.is_empty());
            let row = catalogs.find("pg_database", &[("oid", Datum::Oid(oid))])?;
            Ok(row.first().map_or(Ctype::C, ctype_of))
        });
        types::enums::enter(before);
        let ctype = learned?;
        let store = Arc::new(CatalogStore::new(self.storage.clone(), oid));
        let mut databases = self.databases.write();
        Ok(Arc::clone(databases.entry(oid).or_insert_with(|| {
            Arc::new(DatabaseState {
                oid,
                name: name.to_owned(),
                ctype,
                store,
                cache: Arc::new(SharedCache::default()),
                activity: Arc::new(self.kept.take(oid, Some(Arc::clone(&self.shared_activity)))),
                sessions: Arc::default(),
                work: Arc::default(),
                reset: Arc::new(crate::system::reset::never()),
            })
        })))
    }

    /// Notes that `backend` is connected to database `oid`, unless that has just been dropped.
    ///
    /// # Errors
    /// `3D000`; those of waiting for whoever copies, renames or drops it.
    fn enter_database(&self, backend: &Arc<Backend>, oid: Oid, name: &str) -> Result<()> {
        let txn = self.engine.txns.begin(backend);
        backend.activity.lock().xact_start = txn.start_timestamp_us();
        let enter = || {
            txn.lock(database_lock(oid), LockMode::RowExclusive, Wait::Block)?;
            let store = CatalogStore::new(self.storage.clone(), Oid::INVALID);
            let key = [("oid", Datum::Oid(oid))];
            if store.session(&txn).find("pg_database", &key)?.is_empty() {
                bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist");
            }
            base::stop_point!("sql.session.connects");
            // So far it counted for every database's horizon; from now on for this one's, and for what is shared.
            backend.connect_to(oid);
            let mut activity = backend.activity.lock();
            activity.database = oid;
            name.clone_into(&mut activity.database_name);
            Ok(())
        };
        let entered = enter();
        let ended = txn.abort();
        backend.activity.lock().xact_start = 0;
        ended?;
        entered
    }

    /// What this thread says of types is about this database's from now on.
    pub(crate) fn work_for(&self, database: Oid) -> u64 {
        types::enums::enter(u64::from(self.number) << 32 | u64::from(database.0))
    }

    /// Roles were changed: what any database's sessions know of what they may do is out of date.
    pub(crate) fn roles_changed(&self) {
        self.role_changes.fetch_add(1, Ordering::AcqRel);
        self.databases.read().values().for_each(|database| database.cache.forget_all());
    }

    /// How often roles were changed.
    pub(crate) fn role_changes(&self) -> u64 {
        self.role_changes.load(Ordering::Acquire)
    }

    /// Forgets a dropped database.
    pub fn forget_database(&self, oid: Oid) {
        self.databases.write().remove(&oid);
        self.kept.forget(oid);
        self.statements.found_in(oid, false);
    }
}
