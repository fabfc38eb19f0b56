//! A database in a temporary folder, and a client that writes down what it is told.

use base::Result;
use base::settings::{ServerSettings, Value};
use base::stop::PATIENCE;
use engine::catalog::load::load_table;
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use engine::{Engine, EngineOptions};
use sql::client::{Client, CopyWireFormat, Notice, OutputColumn, Severity};
use sql::cluster::Cluster;
use sql::session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use txn::BackendKind;
use types::{Datum, Env};

pub struct Database {
    cluster: Arc<Cluster>,
    _folder: tempfile::TempDir,
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// What initialisation makes, which takes a second in a debug build: done once, and copied for each test. Kept in memory, where nothing is left of it:
/// paths, and the contents of files without the zeros at their end.
fn initialised() -> &'static [(PathBuf, Option<(Vec<u8>, u64)>)] {
    static MADE: OnceLock<Vec<(PathBuf, Option<(Vec<u8>, u64)>)>> = OnceLock::new();
    fn read(root: &Path, path: &Path, out: &mut Vec<(PathBuf, Option<(Vec<u8>, u64)>)>) {
        for entry in std::fs::read_dir(root.join(path)).unwrap() {
            let entry = entry.unwrap();
            let path = path.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                out.push((path.clone(), None));
                read(root, &path, out);
            } else {
                let mut bytes = std::fs::read(entry.path()).unwrap();
                let len = bytes.len() as u64;
                bytes.truncate(bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
                bytes.shrink_to_fit();
                out.push((path, Some((bytes, len))));
            }
        }
    }
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk::os(folder.path().to_path_buf()).unwrap();
        sql::init::init_with(disk, options(2048)).unwrap();
        let mut out = Vec::new();
        read(folder.path(), Path::new(""), &mut out);
        out
    })
}

/// A folder as initialisation makes it.
fn initialised_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, file) in initialised() {
        let path = folder.path().join(path);
        match file {
            None => std::fs::create_dir(path).unwrap(),
            Some((bytes, len)) => {
                std::fs::write(&path, bytes).unwrap();
                if *len > bytes.len() as u64 {
                    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                    file.set_len(*len).unwrap();
                }
            }
        }
    }
    folder
}

fn options(buffers: i64) -> EngineOptions {
    let settings = ServerSettings::new();
    settings.set_internal("shared_buffers", Value::Int(buffers));
    settings.set_internal("log_checkpoints", Value::Bool(false));
    settings.set_internal("max_notify_queue_pages", Value::Int(64));
    EngineOptions { background: false, ..EngineOptions::new(Arc::new(settings)) }
}

impl Database {
    pub fn new() -> Database {
        Database::with_buffers(2048)
    }

    /// With `shared_buffers` of so many pages.
    pub fn with_buffers(buffers: i64) -> Database {
        base::log::set_min_level(base::log::Level::Panic);
        let folder = initialised_folder();
        let disk = disk::os(folder.path().to_path_buf()).unwrap();
        let options = options(buffers);
        let settings = Arc::clone(&options.settings);
        let engine = Engine::open(disk, options).unwrap();
        Database { cluster: Cluster::new(engine, settings).unwrap(), _folder: folder }
    }

    /// What `ebb check` says, beside its last line.
    pub fn faults(&self) -> Vec<String> {
        sql::check::check(self.cluster.engine()).unwrap().faults
    }

    /// The B-tree of the index `name`: to damage it.
    pub fn tree(&self, name: &str) -> Arc<btree::Btree> {
        let engine = self.cluster.engine();
        let backend = engine.txns.register_backend(BackendKind::Internal);
        let txn = engine.txns.begin(&backend);
        let storage = Storage::of(engine);
        let of = |oid| CatalogStore::new(storage.clone(), oid);
        let databases = of(base::Oid::INVALID).session(&txn).scan("pg_database").unwrap();
        let database = databases.iter().find(|r| r.text("datname") == "postgres").unwrap();
        let store = of(database.oid("oid"));
        let catalogs = store.session(&txn);
        let classes = catalogs.scan("pg_class").unwrap();
        let tables = classes.iter().filter_map(|c| load_table(&catalogs, c.oid("oid")).unwrap());
        let tree = tables.into_iter().find_map(|table| {
            let index = table.indexes.iter().find(|i| i.name == name)?;
            Some(storage.btree(&table.name, index).unwrap())
        });
        txn.abort().unwrap();
        tree.unwrap()
    }

    /// The file of the permanent relation `name`: to damage it.
    pub fn file(&self, name: &str) -> buffer::RelationHandle {
        let path = self.session().run(&format!("SELECT pg_relation_filepath('{name}')"));
        let mut parts = path.trim().split('/').skip(1).map(|part| part.parse().unwrap());
        let database = base::Oid(parts.next().unwrap());
        let id = base::RelationId { database, file_number: parts.next().unwrap() };
        self.cluster.engine().pool.open(id, buffer::Persistence::Permanent)
    }

    /// Of how many B-trees and sequences something is remembered for those who open them next.
    pub fn remembered(&self) -> (usize, usize) {
        (self.cluster.storage().btree.remembered(), self.cluster.sequences.len())
    }

    /// Is all that was logged durable?
    pub fn is_wal_durable(&self) -> bool {
        let wal = &self.cluster.engine().wal;
        wal.flushed_lsn() == wal.insert_lsn()
    }

    /// What becomes of the session `pid` when its client is gone and that is noticed.
    pub fn lose_client(&self, pid: &str) {
        let all = self.cluster.backends().all();
        let of = all.iter().find(|b| b.pid.to_string() == pid).expect("the session");
        of.interrupt(base::sync::CancelReason::ClientLost);
    }

    /// Writes down what a stopping server does.
    pub fn keep_counts(&self) {
        self.cluster.keep_counts(true).unwrap();
    }

    /// What `then` finds after a crash.
    pub fn crash_and_reopen(self, then: impl FnOnce(&Database)) {
        let Database { cluster, _folder } = self;
        let engine = Arc::clone(cluster.engine());
        engine.wal.flush(engine.wal.insert_lsn()).unwrap();
        engine.stop_at_once();
        drop((engine, cluster));
        let disk = disk::os(_folder.path().to_path_buf()).unwrap();
        let options = options(2048);
        let settings = Arc::clone(&options.settings);
        let engine = Engine::open(disk, options).unwrap();
        then(&Database { cluster: Cluster::new(engine, settings).unwrap(), _folder });
    }

    /// Stops in good order, lets `between` at the files, and starts with these settings.
    pub fn stop_and_reopen(
        self,
        between: impl FnOnce(&std::path::Path),
        settings: &[(&'static str, Value)],
        then: impl FnOnce(Database),
    ) {
        let Database { cluster, _folder } = self;
        cluster.engine().shutdown().unwrap();
        drop(cluster);
        between(_folder.path());
        let disk = disk::os(_folder.path().to_path_buf()).unwrap();
        let options = options(2048);
        for (name, value) in settings {
            options.settings.set_internal(name, value.clone());
        }
        let settings = Arc::clone(&options.settings);
        let engine = Engine::open(disk, options).unwrap();
        then(Database { cluster: Cluster::new(engine, settings).unwrap(), _folder });
    }

    /// What `then` finds if the server is lost now, with sessions in the midst of what they do: in a copy of the files.
    pub fn as_after_a_crash(&self, then: impl FnOnce(&Database)) {
        let engine = self.cluster.engine();
        engine.wal.flush(engine.wal.insert_lsn()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        copy_folder(self._folder.path(), folder.path());
        std::fs::remove_file(folder.path().join("ebb.pid")).unwrap();
        let disk = disk::os(folder.path().to_path_buf()).unwrap();
        let options = options(2048);
        let settings = Arc::clone(&options.settings);
        let engine = Engine::open(disk, options).unwrap();
        then(&Database { cluster: Cluster::new(engine, settings).unwrap(), _folder: folder });
    }

    /// Runs `then` while two sessions make, alter and drop tables; each has done so at least once.
    pub fn with_ddl_beside(&self, then: impl FnOnce()) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let workers = [0, 1].map(|worker| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut s = self.session();
                    let mut n = 0;
                    while !stop.load(Ordering::SeqCst) {
                        make_alter_and_drop(&mut s, &format!("t{worker}_{n}"));
                        n += 1;
                    }
                    n
                })
            });
            // A failure must end the others too, or it would never be told.
            let outcome = catch_unwind(AssertUnwindSafe(then));
            stop.store(true, Ordering::SeqCst);
            for worker in workers {
                assert!(worker.join().unwrap() > 0);
            }
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        });
    }

    /// A thread of the server's own, as the others see it.
    pub fn backend(&self, kind: BackendKind) -> Arc<txn::Backend> {
        self.cluster.engine().txns.register_backend(kind)
    }

    /// A setting of the server's start.
    pub fn set(&self, name: &'static str, value: Value) {
        self.cluster.settings().set_internal(name, value);
    }

    pub fn session(&self) -> Connection {
        self.session_of("postgres")
    }

    /// A session of another database.
    pub fn session_of(&self, database: &str) -> Connection {
        let session = Session::internal(&self.cluster, database, BackendKind::Client).unwrap();
        Connection { session }
    }
}

/// A database with two tables, a view, a sequence and a materialized view.
pub fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g",
        "CREATE TABLE onek (unique1 int, unique2 int)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE SEQUENCE s",
        "CREATE MATERIALIZED VIEW mv AS SELECT * FROM t",
    ]);
    db
}

/// `holds` runs in a block; `then` in another session, which is to wait for it. What that said once the first has committed.
pub fn waiting(db: &Database, holds: &str, then: &'static str) -> String {
    let mut holder = db.session();
    holder.run_each(&["BEGIN", holds]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| db.session().run(then));
        let mut looker = db.session();
        let began = std::time::Instant::now();
        while looker.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"
            && !other.is_finished()
            && began.elapsed() < PATIENCE
        {
            std::thread::yield_now();
        }
        assert!(!other.is_finished(), "{then} did not wait for {holds}");
        holder.run_each(&["COMMIT"]);
        other.join().unwrap()
    })
}

/// Waits until somebody waits for a lock.
pub fn await_waiter(looker: &mut Connection) {
    let began = std::time::Instant::now();
    while looker.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

pub struct Connection {
    pub session: Session,
}

fn make_alter_and_drop(s: &mut Connection, t: &str) {
    s.check(&[
        (&format!("CREATE TABLE {t} (id int PRIMARY KEY, name text)"), ""),
        ("BEGIN", ""),
        (&format!("ALTER TABLE {t} ADD c int DEFAULT 3"), ""),
        (&format!("COMMENT ON COLUMN {t}.c IS 'x'"), ""),
        (&format!("ALTER TABLE {t} RENAME TO {t}r"), ""),
        ("COMMIT", ""),
        (&format!("GRANT SELECT ON {t}r TO PUBLIC"), ""),
        (
            &format!("SELECT attname FROM pg_attribute WHERE attrelid = '{t}r'::regclass AND attnum > 0 ORDER BY attnum"),
            "id\nname\nc",
        ),
        (&format!("DROP TABLE {t}r"), ""),
        (&format!("CREATE TEMP TABLE {t} (a text)"), ""),
        ("DISCARD TEMP", ""),
    ]);
}

impl Connection {
    /// Sends a query string. Rows as text, `|` between columns and `~` for NULL, one a line, COPY's messages with escapes; then warnings and
    /// the error.
    #[must_use = "it may be an error: `run_each` takes none"]
    pub fn run(&mut self, sql: &str) -> String {
        self.record(sql).lines.join("\n")
    }

    /// What the error of a statement tells as its context.
    pub fn context(&mut self, sql: &str) -> String {
        let said = self.session.simple_query(sql, &mut Recorder::default());
        said.err().and_then(|e| e.to_sql_error().context).unwrap_or_default()
    }

    /// What a statement is said to have been when it is done.
    pub fn tag(&mut self, sql: &str) -> String {
        self.record(sql).tag
    }

    /// As [`Connection::run`], with all that errors and notices tell: `@` and a position, `QUERY` and a text with the position in it, `HINT`, names of
    /// objects, and `IN` before each line of the context.
    pub fn run_fully(&mut self, sql: &str) -> String {
        let mut client = Recorder { fully: true, ..Recorder::default() };
        if let Err(e) = self.session.simple_query(sql, &mut client) {
            let e = e.to_sql_error();
            client.lines.push(format!("{} {}", e.state, e.message));
            client.lines.extend(told(&e));
        }
        client.lines.join("\n")
    }

    fn record(&mut self, sql: &str) -> Recorder {
        let mut client = Recorder::default();
        if let Err(e) = self.session.simple_query(sql, &mut client) {
            let e = e.to_sql_error();
            client.lines.push(format!("{} {}", e.state, e.message));
            client.lines.extend(e.detail.iter().map(ToString::to_string));
            client.trouble = true;
        }
        client
    }

    /// As [`Connection::run`], by Parse of the unnamed statement with these types of parameters, Bind, Execute and Sync.
    pub fn run_parsed(&mut self, sql: &str, types: &[u32], params: &[&str]) -> String {
        let mut client = Recorder::default();
        let values: Vec<_> =
            params.iter().map(|p| Some(bytes::Bytes::from((*p).to_owned()))).collect();
        let session = &mut self.session;
        let done = session
            .parse("", sql, types, &mut client)
            .and_then(|()| session.bind("", "", &[], &values, &[]))
            .and_then(|()| session.execute("", 0, &mut client));
        if let Err(e) = done {
            session.fail();
            let e = e.to_sql_error();
            client.lines.push(format!("{} {}", e.state, e.message));
        }
        if let Err(e) = session.sync(&mut client) {
            client.lines.push(e.to_string());
        }
        client.lines.join("\n")
    }

    /// Parse of the unnamed statement, and Bind of it as a portal.
    pub fn open_portal(&mut self, portal: &str, sql: &str) {
        let session = &mut self.session;
        session.parse("", sql, &[], &mut Recorder::default()).unwrap();
        session.bind(portal, "", &[], &[], &[]).unwrap();
    }

    /// Execute of a portal: so many of its rows, or all of them (0).
    pub fn execute_portal(&mut self, portal: &str, limit: usize) -> String {
        let mut client = Recorder::default();
        self.session.execute(portal, limit, &mut client).unwrap();
        client.lines.join("\n")
    }

    /// What the notices of a statement tell as detail and hint.
    pub fn details(&mut self, sql: &str) -> Vec<String> {
        self.record(sql).details
    }

    /// What the client is told of settings that a statement changes.
    pub fn told_of_settings(&mut self, sql: &str) -> Vec<String> {
        let mut client = self.record(sql);
        self.session.report_settings(&mut client).unwrap();
        client.settings
    }

    /// What others have notified it of: channel and payload.
    pub fn hear(&self) -> Vec<String> {
        let heard = std::iter::from_fn(|| Some(self.session.hear()).filter(|h| !h.is_empty()));
        heard.flatten().map(|n| format!("{} {}", n.channel, n.payload)).collect()
    }

    /// Runs what is to give neither an error nor a warning, whatever else it says.
    #[track_caller]
    pub fn run_each(&mut self, list: &[&str]) {
        for sql in list {
            let said = self.record(sql);
            assert!(!said.trouble, "{sql}: {}", said.lines.join("\n"));
        }
    }

    /// Makes what joins within sub-selects are asked over: `v (id, y)`, `t (id, x)`, `u (k, t_id)` and `w (id, z)`.
    pub fn make_joined(&mut self) {
        self.run_each(&[
            "CREATE TABLE v (id int, y int)",
            "CREATE TABLE t (id int, x int)",
            "CREATE TABLE u (k int, t_id int)",
            "CREATE TABLE w (id int, z int)",
            "INSERT INTO v VALUES (1, 1), (2, 2), (3, 3)",
            "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)",
            "INSERT INTO u VALUES (1, 1), (2, 2), (3, 9)",
        ]);
    }

    #[track_caller]
    pub fn check(&mut self, list: &[(&str, &str)]) {
        for (sql, want) in list {
            assert_eq!(self.run(sql), *want, "{sql}");
        }
    }
}

/// All that an error or a notice tells after its message.
fn told(e: &base::SqlError) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(e.detail.iter().map(|d| format!("DETAIL {d}")));
    lines.extend(e.hint.iter().map(|h| format!("HINT {h}")));
    lines.extend(e.position.iter().map(|p| format!("@{p}")));
    let inner = e.internal_query.iter().zip(e.internal_position);
    lines.extend(inner.map(|(query, at)| format!("QUERY {query} @{at}")));
    let names = [&e.schema, &e.table, &e.column, &e.data_type, &e.constraint];
    lines.extend(names.into_iter().flatten().map(|n| format!("OF {n}")));
    lines.extend(e.context.iter().flat_map(|c| c.lines()).map(|l| format!("IN {l}")));
    lines
}

#[derive(Default)]
struct Recorder {
    /// Of notices: all they tell.
    fully: bool,
    tag: String,
    lines: Vec<String>,
    /// Changed settings that the client is told of.
    settings: Vec<String>,
    /// Of notices, and their hints.
    details: Vec<String>,
    /// There was a warning or an error.
    trouble: bool,
}

impl Client for Recorder {
    fn row_description(&mut self, _: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn data_row(&mut self, columns: &[OutputColumn], row: &[Datum], env: &dyn Env) -> Result<()> {
        let mut fields = Vec::new();
        for (column, value) in columns.iter().zip(row) {
            fields.push(if value.is_null() {
                "~".to_owned()
            } else {
                types::io::to_text(column.ty.oid, value, env)?
            });
        }
        self.lines.push(fields.join("|"));
        Ok(())
    }
    fn command_complete(&mut self, tag: &str) -> Result<()> {
        tag.clone_into(&mut self.tag);
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        let body = &notice.body;
        self.details.extend(body.detail.iter().chain(&body.hint).map(ToString::to_string));
        self.trouble |= notice.severity == Severity::Warning;
        self.lines.push(format!("{} {} {}", notice.severity.name(), body.state, body.message));
        if self.fully {
            self.lines.extend(told(body));
        }
        Ok(())
    }
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.settings.push(format!("{name}={value}"));
        Ok(())
    }
    fn copy_in_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Err(base::Error::unsupported("COPY FROM STDIN here"))
    }
    fn copy_in_read(&mut self, _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
    fn copy_out_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Ok(())
    }
    fn copy_out_data(&mut self, data: &[u8]) -> Result<()> {
        self.lines.push(data.escape_ascii().to_string());
        Ok(())
    }
    fn copy_out_end(&mut self) -> Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
