//! The database as a whole: made, opened, recovered, run, shut down.
//!
//! # Purpose
//! [`Engine`] holds the parts together: disk, WAL, buffer pool, transactions, storage, and the threads that work for
//! all of them. The catalogs stand on it, SQL on them.
//!
//! # Layout
//! `EBB_VERSION`, `ebb.control`, `ebb.pid`, `wal/` the log, `xact/` the commit log, `global/` shared relations,
//! `base/<database>/` the others.
//!
//! # Crash cases
//! A failed sync or WAL write, or a failure in what can't be left half done, calls the fatal hook (by default the
//! process ends) and latches: nothing is acknowledged afterwards.

use crate::catalog::defs;
use crate::checkpoint::{CheckpointFlags, Checkpointer, new_checkpointer};
use crate::control::{ClusterState, ControlFile, FolderLock, is_data_folder, write_marker};
use crate::recovery::{Start, find_start, sync_what_was_left};
use crate::removal::FileCloser;
use crate::storage::{FIRST_FILE_NUMBER, RelationFiles, StorageState};
use base::settings::ServerSettings;
use base::sync::{Arc, Condvar, Mutex, Rank, now_timestamp_us};
use base::wait::WaitEvent;
use base::{Error, Oid, Result, Xid, log};
use buffer::{BackendType, BufferPool, PoolConfig};
use disk::Disk;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use txn::{BackendKind, TransactionManager, TxnConfig};
use wal::{FIRST_LSN, Wal, WalConfig};

/// The folder of the WAL.
pub const WAL_DIR: &str = "wal";
/// The folder of the commit log.
pub const XACT_DIR: &str = "xact";

/// Called once when the server can't go on.
pub type FatalHook = Arc<dyn Fn(&str) + Send + Sync>;

/// How an engine is opened.
#[derive(Clone)]
pub struct EngineOptions {
    /// All settings.
    pub settings: Arc<ServerSettings>,
    /// Start the checkpointer, the background writer and the WAL writer.
    pub background: bool,
    /// What to do when the disk fails.
    pub on_fatal: FatalHook,
}

impl EngineOptions {
    /// Background threads, and the end of the process when the disk fails.
    pub fn new(settings: Arc<ServerSettings>) -> EngineOptions {
        EngineOptions {
            settings,
            background: true,
            on_fatal: Arc::new(|what| {
                base::log::write(base::log::Level::Panic, what);
                std::process::abort();
            }),
        }
    }
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineOptions").field("background", &self.background).finish()
    }
}

/// The database.
pub struct Engine {
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// All settings.
    pub settings: Arc<ServerSettings>,
    /// The write-ahead log.
    pub wal: Arc<Wal>,
    /// The buffer pool.
    pub pool: Arc<BufferPool>,
    /// Transactions and locks.
    pub txns: Arc<TransactionManager>,
    /// Relation files, file numbers, OIDs.
    pub files: Arc<RelationFiles>,
    /// Checkpoints.
    pub checkpointer: Arc<Checkpointer>,
    closer: Arc<FileCloser>,
    control: Mutex<ControlFile>,
    fatal: Arc<Fatal>,
    pub(crate) background: bool,
    stopping: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _lock: FolderLock,
}

struct Fatal {
    hook: FatalHook,
    happened: AtomicBool,
}

impl Fatal {
    fn raise(&self, what: &str) {
        if !self.happened.swap(true, Ordering::SeqCst) {
            (self.hook)(what);
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("wal", &self.wal).finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes a new database in an empty folder and opens it, without background threads, for the catalogs to be made;
    /// then [`Engine::shutdown`] completes it.
    ///
    /// # Errors
    /// If the folder is not empty; the disk's.
    pub fn init(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<Arc<Engine>> {
        let io = |e| Error::io("could not initialise the data directory", e);
        let there = disk.list("").map_err(io)?;
        if there.iter().any(|name| name != "lost+found" && !name.starts_with('.')) {
            base::bail!(OBJECT_IN_USE, "directory exists but is not empty");
        }
        let lock = FolderLock::take(&*disk)?;
        let disk = with_or_without_sync(disk, &options.settings);
        for dir in ["base", "global", WAL_DIR] {
            disk.create_dir(dir).map_err(io)?;
        }
        write_marker(&*disk)?;
        disk.sync_dir("").map_err(io)?;
        let config = wal_config(&options.settings, 1, false);
        let wal = Wal::create(disk.clone(), config, FIRST_LSN)?;
        let time_us = now_timestamp_us();
        let control = ControlFile {
            state: ClusterState::Initialising,
            system_id: (time_us as u64) << 12 ^ u64::from(std::process::id()),
            checkpoint: FIRST_LSN,
            redo: FIRST_LSN,
            timeline: 1,
            time_us,
            next_xid: Xid::FIRST_NORMAL,
            catalog_version: defs::version(),
        };
        let storage = StorageState {
            next_file: FIRST_FILE_NUMBER,
            next_oid: Oid::FIRST_NORMAL,
            pending: Vec::new(),
            cuts: Vec::new(),
        };
        let txn = TxnConfig { dir: XACT_DIR.to_owned(), ..TxnConfig::default() };
        TransactionManager::create(&disk, XACT_DIR)?;
        let options = EngineOptions { background: false, ..options };
        let engine = Engine::assemble(disk, options, wal, control, &storage, txn, lock)?;
        engine.do_checkpoint(CheckpointFlags { shutdown: true, ..CheckpointFlags::MANUAL })?;
        engine.write_control(|c| c.state = ClusterState::Initialising)?;
        Ok(engine)
    }

    /// Is there a data folder?
    ///
    /// # Errors
    /// The disk's.
    pub fn exists(disk: &dyn Disk) -> Result<bool> {
        is_data_folder(disk)
    }

    /// Opens a database, recovering if it was not shut down in order.
    ///
    /// # Errors
    /// If the folder is not ours, of another version, or in use; the disk's; corruption.
    pub fn open(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<Arc<Engine>> {
        let mut control = ControlFile::read(&*disk)?;
        if control.state == ClusterState::Initialising {
            return Err(Error::Sql(Box::new(
                base::SqlError::new(
                    base::SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the data directory was not initialised to its end",
                )
                .hint("Remove it and initialise it again."),
            )));
        }
        control.check_catalog_version(defs::version())?;
        let lock = FolderLock::take(&*disk)?;
        let disk = with_or_without_sync(disk, &options.settings);
        buffer::set_backend_type(BackendType::Startup);
        let start = find_start(&disk, WAL_DIR, &control)?;
        let then = base::log::timestamp(control.time_us);
        if start.clean {
            log!("database system was shut down at {then}");
        } else if control.state == ClusterState::InRecovery {
            log!("database system was interrupted while in recovery at {then}");
        } else {
            log!("database system was interrupted; last known up at {then}");
        }
        if !start.clean {
            log!("database system was not properly shut down; automatic recovery in progress");
            sync_what_was_left(&*disk)?;
        }
        let config = wal_config(&options.settings, control.timeline, start.clean);
        let wal = Wal::open(disk.clone(), config, start.end, start.checkpoint.redo)?;
        wal.count_reads(&start.read);
        control.state =
            if start.clean { ClusterState::InProduction } else { ClusterState::InRecovery };
        control.time_us = now_timestamp_us();
        control.write(&*disk)?;
        let txn = TxnConfig {
            dir: XACT_DIR.to_owned(),
            next_xid: start.checkpoint.next_xid,
            oldest_clog_xid: start.checkpoint.oldest_clog_xid,
            ..TxnConfig::default()
        };
        let background = options.background;
        let storage = &start.checkpoint.storage;
        let engine = Engine::assemble(disk, options, wal, control, storage, txn, lock)?;
        if background {
            engine.start_closer()?;
        }
        engine.files.remove_temporary()?;
        if start.clean {
            engine.txns.finish_recovery();
        } else {
            engine.recover(&start)?;
        }
        buffer::set_backend_type(BackendType::ClientBackend);
        engine.apply_settings();
        if background {
            if !start.clean {
                // Nobody waits for it. Asked for first, that the checkpointer begins with it, however much log there is.
                engine.checkpoint(CheckpointFlags::AFTER_RECOVERY)?;
            }
            engine.start_threads()?;
        }
        Ok(engine)
    }

    fn recover(&self, start: &Start) -> Result<()> {
        self.files.resume_cuts(&start.checkpoint.storage.cuts, start.checkpoint.redo)?;
        self.redo_all(start)?;
        self.txns.finish_recovery();
        // Before the look for missing pages: an earlier recovery from the same redo point has removed them, too.
        let orphans = self.files.remove_orphans(&self.txns, start.checkpoint.storage.next_file)?;
        if orphans > 0 {
            log!("removed {orphans} relation file(s) of transactions that did not commit");
        }
        self.pool.check_missing_pages()?;
        self.files.reset_unlogged()?;
        self.write_control(|control| {
            control.state = ClusterState::InProduction;
            control.time_us = now_timestamp_us();
        })
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        options: EngineOptions,
        wal: Arc<Wal>,
        control: ControlFile,
        storage: &StorageState,
        txn: TxnConfig,
        lock: FolderLock,
    ) -> Result<Arc<Engine>> {
        let settings = options.settings;
        let fatal = Arc::new(Fatal { hook: options.on_fatal, happened: AtomicBool::new(false) });
        let raise = Arc::clone(&fatal);
        wal.set_fatal_hook(move |e| raise.raise(&e.to_string()));
        let pool_config = PoolConfig {
            staging_frames: settings.int("ebb.staging_size").max(16) as usize,
            // Without background threads (simulation) operations write out themselves.
            write_behind_thread: options.background,
            ..PoolConfig::new(settings.int("shared_buffers").max(16) as usize)
        };
        let pool = BufferPool::new(pool_config, disk.clone(), wal.clone())?;
        let raise = Arc::clone(&fatal);
        pool.on_failure(move |what| raise.raise(what));
        let txn = match settings.int("transaction_buffers") {
            0 => txn,
            pages => TxnConfig { clog_buffers: pages.max(16) as usize, ..txn },
        };
        let max_row_locks = settings.int("ebb.max_row_lock_pages").max(1) as usize;
        let txn = TxnConfig { max_row_locks, ..txn };
        let txns = TransactionManager::open(disk.clone(), wal.clone(), txn)?;
        txns.locks().make_room_for(max_locks(&settings));
        let room = (disk::raise_open_file_limit() / 4).min(8192) as usize;
        let closer = Arc::new(FileCloser::new(room));
        let files =
            RelationFiles::new(disk.clone(), pool.clone(), wal.clone(), closer.clone(), storage);
        let remover = Arc::clone(&files);
        txns.set_file_remover(Box::new(move |files| {
            remover.remove(files);
            Ok(())
        }));
        Ok(Arc::new(Engine {
            disk,
            settings,
            wal,
            pool,
            txns,
            files,
            closer,
            checkpointer: new_checkpointer(),
            control: Mutex::new(Rank(255), control),
            fatal,
            background: options.background,
            stopping: AtomicBool::new(false),
            sleep: Mutex::new(Rank(260), ()),
            wake: Condvar::new(),
            threads: Mutex::new(Rank(205), Vec::new()),
            _lock: lock,
        }))
    }

    /// The control file as last written.
    pub fn control(&self) -> ControlFile {
        *self.control.lock()
    }

    pub(crate) fn write_control(&self, change: impl FnOnce(&mut ControlFile)) -> Result<()> {
        let mut control = self.control.lock();
        let mut changed = *control;
        change(&mut changed);
        changed.write(&*self.disk)?;
        *control = changed;
        Ok(())
    }

    /// Passes a result on; a failed sync ends the server: nobody knows what the disk holds now.
    pub(crate) fn or_fatal<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(Error::Io { what, source }) = &result
            && what.contains("fsync")
        {
            self.fatal.raise(&format!("{what}: {source}"));
        }
        result
    }

    /// Takes over settings that others keep a copy of: at the start, and when a reload may have changed them.
    pub fn apply_settings(&self) {
        self.wal.set_full_page_writes(self.settings.bool("full_page_writes"));
        self.wal.set_compression(self.settings.string("wal_compression") != "off");
        let flush_after = self.settings.int("wal_writer_flush_after").max(0) as u64;
        self.wal.set_flush_after(flush_after * page::PAGE_SIZE as u64);
        self.pool.set_writeback(
            self.settings.int("bgwriter_flush_after") > 0,
            self.settings.int("backend_flush_after") > 0,
        );
    }

    /// Has the disk failed, so that nothing more may be acknowledged?
    pub fn has_failed(&self) -> bool {
        self.fatal.happened.load(Ordering::SeqCst)
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.has_failed() {
            base::bail!(CRASH_SHUTDOWN, "the database system is stopping after a disk failure");
        }
        Ok(())
    }

    pub(crate) fn has_background_threads(&self) -> bool {
        self.background && !self.stopping.load(Ordering::SeqCst)
    }

    // ---- threads ----

    fn start_threads(self: &Arc<Self>) -> Result<()> {
        type Work = fn(&Engine);
        let work: [(&str, BackendKind, BackendType, Work); 3] = [
            ("checkpointer", BackendKind::Checkpointer, BackendType::Checkpointer, |e| {
                e.run_checkpointer();
            }),
            (
                "background writer",
                BackendKind::BackgroundWriter,
                BackendType::BackgroundWriter,
                Engine::run_background_writer,
            ),
            ("walwriter", BackendKind::WalWriter, BackendType::WalWriter, Engine::run_wal_writer),
        ];
        for (name, kind, io_type, run) in work {
            let engine = Arc::clone(self);
            let thread = base::sync::spawn(name, move || {
                let backend = engine.txns.register_backend(kind);
                backend.runs_here();
                buffer::set_backend_type(io_type);
                run(&engine);
            })
            .map_err(|e| Error::io(format!("could not start thread \"{name}\""), e))?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    fn start_closer(&self) -> Result<()> {
        self.closer.start();
        let closer = Arc::clone(&self.closer);
        let thread = base::sync::spawn("file closer", move || closer.run())
            .map_err(|e| Error::io("could not start thread \"file closer\"", e))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst) || self.has_failed()
    }

    fn run_wal_writer(&self) {
        while !self.is_stopping() {
            let delay = self.settings.int("wal_writer_delay").max(1) as u64;
            self.wal.wait_for_work(Duration::from_millis(delay));
            if self.wal_writer_round().is_err() {
                // Latched, and the hook was called.
                return;
            }
        }
    }

    /// One round of the WAL writer: commits that did not wait become durable.
    ///
    /// # Errors
    /// The WAL's.
    pub fn wal_writer_round(&self) -> Result<bool> {
        self.wal.note_asynchronous(self.txns.last_async_commit_lsn());
        self.wal.writer_round()
    }

    fn run_background_writer(&self) {
        let mut allocations = self.pool.allocations();
        while !self.is_stopping() {
            let pages = self.settings.int("bgwriter_lru_maxpages").max(0) as usize;
            let multiplier = self.settings.real("bgwriter_lru_multiplier");
            let mut delay = self.settings.int("bgwriter_delay").max(10) as u64;
            let before = self.pool.allocations();
            let round = match pages {
                0 => Ok(0),
                _ => self.pool.background_write_round(pages, multiplier, &mut allocations),
            };
            // What VACUUMs have cut off.
            let cut = self.pool.cut_round();
            match round.and_then(|written| cut.map(|cut| (written, cut))) {
                Ok((written, cut)) => {
                    let counters = &self.checkpointer.counters;
                    counters.background_written.fetch_add(written as u64, Ordering::Relaxed);
                    if written >= pages && pages > 0 {
                        counters.background_maxwritten.fetch_add(1, Ordering::Relaxed);
                    }
                    if written == 0 && before == allocations && self.pool.pending_cuts() == 0 {
                        // Nothing going on: look less often.
                        delay *= 5;
                    }
                    if cut > 0 {
                        delay = delay.min(50);
                    }
                }
                Err(e) => {
                    base::log::write(base::log::Level::Error, &e.to_string());
                    delay *= 5;
                }
            }
            let mut sleep = self.sleep.lock();
            if !self.is_stopping() {
                let _idle = base::wait::at(WaitEvent::BgWriterMain);
                sleep.wait_for(&self.wake, Duration::from_millis(delay));
            }
        }
    }

    fn stop_threads(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.stop_checkpointer();
        self.wal.wake_writer();
        self.closer.stop();
        {
            let _sleep = self.sleep.lock();
            self.wake.notify_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A panic there was reported when it happened.
            let _ = thread.join();
        }
    }

    /// Shuts down in order: the threads stop, all is written, the control file says so. Sessions must have ended.
    ///
    /// # Errors
    /// The disk's; then the next start recovers.
    pub fn shutdown(&self) -> Result<()> {
        self.stop_threads();
        self.check_alive()?;
        log!("shutting down");
        self.do_checkpoint(CheckpointFlags {
            shutdown: true,
            immediate: true,
            ..CheckpointFlags::default()
        })?;
        log!("database system is shut down");
        Ok(())
    }

    /// Stops without writing anything: the next start recovers.
    pub fn stop_at_once(&self) {
        self.stop_threads();
    }
}

/// How many locks the settings ask room for.
fn max_locks(settings: &ServerSettings) -> usize {
    let each = settings.int("max_locks_per_transaction").max(1) as usize;
    each.saturating_mul(settings.int("max_connections").max(1) as usize)
}

fn with_or_without_sync(disk: Arc<dyn Disk>, settings: &ServerSettings) -> Arc<dyn Disk> {
    if settings.bool("fsync") { disk } else { disk::without_sync(disk) }
}

fn wal_config(settings: &ServerSettings, timeline: u32, clean: bool) -> WalConfig {
    // wal_buffers in pages; -1 is 1/32 of shared_buffers, within 64 kB and 16 MB.
    let pages = match settings.int("wal_buffers") {
        n if n > 0 => n,
        _ => (settings.int("shared_buffers") / 32).clamp(8, 2048),
    };
    WalConfig {
        dir: WAL_DIR.to_owned(),
        timeline,
        buffer_bytes: pages as usize * page::PAGE_SIZE,
        compression: settings.string("wal_compression") != "off",
        full_page_writes: settings.bool("full_page_writes"),
        fsync: settings.bool("fsync"),
        clean,
    }
}
