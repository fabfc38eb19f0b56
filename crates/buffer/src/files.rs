//! # Purpose
//! The files behind relations: opened when needed and closed again beyond a limit, made, removed, and synced by checkpoints.
//!
//! # Invariants
//! - A file written to is in the list of files to be synced before its frame's `WRITING` ends, so a checkpoint that
//!   finds the page clean also finds the file.
//! - A failed sync is latched: the kernel may have dropped what it could not write, so no later sync proves anything.
//!   From then on every write, extension and sync of this pool fails.
//! - A file that is removed before it was synced is forgotten, not missed.
//!
//! # Crash cases
//! New and removed names are made durable by syncing their folder, with the files, at the next checkpoint; until then redo
//! makes and removes them again.

use crate::Persistence;
use crate::pool::{BufferPool, Pool};
use crate::ranks;
use crate::relation::{Relation, UNKNOWN};
use crate::stats::{IoContext, Op};
use base::sync::{Arc, Mutex};
use base::{Error, Fork, PageTag, RelationId, Result};
use disk::{File, OpenMode};
use page::PAGE_SIZE;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, Weak};
use std::time::{Duration, Instant};

/// So many files are synced by one sync of the whole file system.
const SYNC_TOGETHER: usize = 64;

/// Open files and files to be synced.
pub(crate) struct Files {
    open_max: usize,
    open: Mutex<VecDeque<(Weak<Relation>, Fork)>>,
    pending: Mutex<Pending>,
    failed: OnceLock<String>,
    on_failure: OnceLock<Hook>,
}

type Hook = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Pending {
    files: HashMap<(RelationId, Fork), Arc<Relation>>,
    folders: HashSet<String>,
}

/// Pages that redo looked for in vain.
pub(crate) struct Missing {
    pub(crate) pages: Mutex<HashSet<PageTag>>,
    /// Held by a thread of recovery that makes a fork longer.
    pub(crate) growing: Mutex<()>,
}

impl Missing {
    pub(crate) fn new() -> Missing {
        Missing {
            pages: Mutex::new(ranks::MISSING_PAGES, HashSet::new()),
            growing: Mutex::new(ranks::REDO_GROWTH, ()),
        }
    }
}

/// What syncing cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct SyncStats {
    /// Files synced.
    pub files: usize,
    /// The longest sync.
    pub longest: Duration,
    /// All together.
    pub total: Duration,
}

impl Files {
    pub(crate) fn new(open_max: usize) -> Files {
        Files {
            open_max: open_max.max(8),
            open: Mutex::new(ranks::OPEN_FILES, VecDeque::new()),
            pending: Mutex::new(ranks::PENDING_SYNC, Pending::default()),
            failed: OnceLock::new(),
            on_failure: OnceLock::new(),
        }
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.get().cloned()
    }

    /// Latches a failure after which nothing more may be written.
    pub(crate) fn fail(&self, why: &Error) {
        let why = why.to_string();
        if self.failed.set(why.clone()).is_ok()
            && let Some(hook) = self.on_failure.get()
        {
            hook(&why);
        }
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl BufferPool {
    /// Calls `hook` once if a sync (or the cutting of a file) fails; the server should stop then.
    pub fn on_failure(&self, hook: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.inner().files.on_failure.set(Box::new(hook));
    }

    /// Syncs every file written to since it was last synced, and the folders in which names came or went. Call it after
    /// [`BufferPool::checkpoint_write`].
    ///
    /// # Errors
    /// The disk's; a failed sync is final, see [`BufferPool::failure`].
    pub fn sync_all_pending(&self) -> Result<SyncStats> {
        let synced = self.inner().sync_all_pending();
        self.inner().prune_registry();
        synced
    }
}

impl Pool {
    /// Fails after a failed sync or cut.
    pub(crate) fn check_failed(&self) -> Result<()> {
        match self.files.failed.get() {
            None => Ok(()),
            Some(why) => Err(Error::io(
                format!("nothing is written any more after a failure: {why}"),
                io::Error::from_raw_os_error(libc::EIO),
            )),
        }
    }

    /// The fork's file.
    pub(crate) fn file(&self, relation: &Arc<Relation>, fork: Fork) -> Result<Arc<dyn File>> {
        self.open_file(relation, fork, false)
    }

    pub(crate) fn open_file(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        create: bool,
    ) -> Result<Arc<dyn File>> {
        self.making_room(|| self.try_open_file(relation, fork, create))
    }

    fn try_open_file(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        create: bool,
    ) -> Result<Arc<dyn File>> {
        let state = relation.fork(fork);
        let mut slot = state.file.lock();
        if relation.is_dropped() {
            return Err(relation.dropped_error(fork));
        }
        if let Some(file) = &*slot {
            state.file_used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(file));
        }
        let path = relation.path(fork);
        let opened = match self.disk.open(&path, OpenMode::Existing) {
            Err(e) if create && e.kind() == io::ErrorKind::NotFound => {
                self.create_file(&path, OpenMode::Create)
            }
            other => other,
        };
        let file = opened.map_err(|e| Error::io(format!("could not open file \"{path}\""), e))?;
        *slot = Some(Arc::clone(&file));
        drop(slot);
        self.note_open(relation, fork);
        Ok(file)
    }

    fn create_file(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = match self.disk.open(path, mode) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.disk.create_dir(folder_of(path))?;
                let above = folder_of(folder_of(path)).to_owned();
                self.files.pending.lock().folders.insert(above);
                self.disk.open(path, mode)?
            }
            other => other?,
        };
        self.files.pending.lock().folders.insert(folder_of(path).to_owned());
        Ok(file)
    }

    /// Tries again once files are closed if the process, or the system, has no descriptor left: sessions, sorts and the log want some as
    /// well. Holds no file's lock while it closes others.
    fn making_room<T>(&self, open: impl Fn() -> Result<T>) -> Result<T> {
        const TRIES: usize = 8;
        for _ in 1..TRIES {
            match open() {
                Err(Error::Io { what, source }) if is_out_of_descriptors(&source) => {
                    if self.close_least_used() == 0 {
                        return Err(Error::Io { what, source });
                    }
                    let message = format!("out of file descriptors: {source}; release and retry");
                    base::log::write(base::log::Level::Log, &message);
                }
                other => return other,
            }
        }
        open()
    }

    /// Closes some of the open files, those on the list the longest; says how many.
    fn close_least_used(&self) -> usize {
        const AT_ONCE: usize = 16;
        let mut closed = 0;
        while closed < AT_ONCE {
            let Some((weak, fork)) = self.files.open.lock().pop_front() else { break };
            let Some(relation) = weak.upgrade() else { continue };
            closed += usize::from(relation.fork(fork).file.lock().take().is_some());
        }
        closed
    }

    fn note_open(&self, relation: &Arc<Relation>, fork: Fork) {
        let mut to_close = Vec::new();
        {
            let mut open = self.files.open.lock();
            open.push_back((Arc::downgrade(relation), fork));
            let mut looks = open.len();
            while open.len() > self.files.open_max && looks > 0 {
                looks -= 1;
                let Some((weak, fork)) = open.pop_front() else { break };
                let Some(relation) = weak.upgrade() else { continue };
                if relation.fork(fork).file_used.swap(false, Ordering::Relaxed) && looks > 0 {
                    open.push_back((weak, fork));
                } else {
                    to_close.push((relation, fork));
                }
            }
        }
        for (relation, fork) in to_close {
            drop(relation.fork(fork).file.lock().take());
        }
    }

    /// Takes files of relations that are no more, closed with them, off the list of open ones: what is listed keeps its relation's memory.
    pub(crate) fn forget_closed(&self) {
        self.files.open.lock().retain(|(relation, _)| relation.strong_count() > 0);
    }

    /// Makes a file that must not be there.
    pub(crate) fn create_new(&self, relation: &Arc<Relation>, fork: Fork) -> Result<()> {
        self.check_failed()?;
        let state = relation.fork(fork);
        let _extension = state.extension.lock();
        let path = relation.path(fork);
        let file = self.making_room(|| {
            self.create_file(&path, OpenMode::CreateNew)
                .map_err(|e| Error::io(format!("could not create file \"{path}\""), e))
        })?;
        *state.file.lock() = Some(file);
        state.len.store(0, Ordering::Release);
        self.note_open(relation, fork);
        self.register_sync(relation, fork);
        Ok(())
    }

    /// Makes a file unless it is there.
    pub(crate) fn create_fork(&self, relation: &Arc<Relation>, fork: Fork) -> Result<()> {
        self.check_failed()?;
        let state = relation.fork(fork);
        let _extension = state.extension.lock();
        self.open_file(relation, fork, true)?;
        self.learn_len_locked(relation, fork)?;
        self.register_sync(relation, fork);
        Ok(())
    }

    pub(crate) fn fork_exists(&self, relation: &Arc<Relation>, fork: Fork) -> Result<bool> {
        if relation.is_dropped() {
            return Ok(false);
        }
        if relation.known_fork(fork).is_some_and(|state| state.file.lock().is_some()) {
            return Ok(true);
        }
        let path = relation.path(fork);
        self.disk
            .exists(&path)
            .map_err(|e| Error::io(format!("could not look for file \"{path}\""), e))
    }

    /// Asks the file for the fork's length.
    #[cold]
    pub(crate) fn learn_len(&self, relation: &Arc<Relation>, fork: Fork) -> Result<u32> {
        let _extension = relation.fork(fork).extension.lock();
        self.learn_len_locked(relation, fork)
    }

    /// As [`Pool::learn_len`]; the caller holds the extension lock.
    pub(crate) fn learn_len_locked(&self, relation: &Arc<Relation>, fork: Fork) -> Result<u32> {
        let state = relation.fork(fork);
        let known = state.len.load(Ordering::Acquire);
        if known != UNKNOWN {
            return Ok(known);
        }
        let len = match self.file(relation, fork) {
            Ok(file) => self.file_blocks(relation, fork, &*file)?,
            Err(Error::Io { source, .. })
                if fork != Fork::Main
                    && source.kind() == io::ErrorKind::NotFound
                    && !relation.is_dropped() =>
            {
                0
            }
            Err(e) => return Err(e),
        };
        state.len.store(len, Ordering::Release);
        Ok(len)
    }

    /// A file's length in whole blocks. What an interrupted extension left of another one is not counted; the next extension
    /// writes over it.
    fn file_blocks(&self, relation: &Relation, fork: Fork, file: &dyn File) -> Result<u32> {
        let failed = |e| {
            Error::io(format!("could not find the length of file \"{}\"", relation.path(fork)), e)
        };
        let bytes = file.len().map_err(failed)?;
        let blocks = bytes / PAGE_SIZE as u64;
        u32::try_from(blocks).ok().filter(|b| *b <= crate::relation::BLOCKS_MAX).ok_or_else(|| {
            Error::corrupt_file(format!("file \"{}\" is too long", relation.path(fork)))
        })
    }

    pub(crate) fn prefetch(&self, relation: &Arc<Relation>, fork: Fork, first: u32, count: u32) {
        if let Ok(file) = self.file(relation, fork) {
            file.will_need(
                u64::from(first) * PAGE_SIZE as u64,
                u64::from(count) * PAGE_SIZE as u64,
            );
        }
    }

    /// Puts the file on the list of those to be synced.
    pub(crate) fn register_sync(&self, relation: &Arc<Relation>, fork: Fork) {
        if relation.persistence() == Persistence::Temp
            || relation.fork(fork).sync_pending.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.files.pending.lock().files.insert((relation.id, fork), Arc::clone(relation));
    }

    /// Takes a dropped relation's files off that list.
    pub(crate) fn cancel_syncs(&self, relation: &Arc<Relation>) {
        let mut pending = self.files.pending.lock();
        for fork in Fork::ALL {
            let key = (relation.id, fork);
            if pending.files.get(&key).is_some_and(|r| Arc::ptr_eq(r, relation)) {
                pending.files.remove(&key);
            }
        }
    }

    fn sync_all_pending(&self) -> Result<SyncStats> {
        self.check_failed()?;
        let batch = std::mem::take(&mut *self.files.pending.lock());
        let mut stats = SyncStats::default();
        let mut files: Vec<_> = batch.files.into_iter().collect();
        if files.len() >= SYNC_TOGETHER {
            return self.sync_together(&files);
        }
        files.sort_unstable_by_key(|(key, _)| *key);
        let mut files = files.into_iter();
        while let Some(((id, fork), relation)) = files.next() {
            if relation.is_dropped() {
                continue;
            }
            // Cleared first: a write that comes now registers again.
            relation.fork(fork).sync_pending.store(false, Ordering::Release);
            match self.sync_file(&relation, fork) {
                Ok(time) => {
                    stats.files += 1;
                    stats.longest = stats.longest.max(time);
                    stats.total += time;
                }
                Err(_) if relation.is_dropped() => {}
                Err(e) => {
                    let mut pending = self.files.pending.lock();
                    relation.fork(fork).sync_pending.store(true, Ordering::Release);
                    pending.files.insert((id, fork), relation);
                    pending.files.extend(files);
                    pending.folders.extend(batch.folders);
                    return Err(e);
                }
            }
        }
        for folder in &batch.folders {
            if let Err(e) = self.disk.sync_dir(folder) {
                // A folder that was dropped with its database needs no sync.
                if e.kind() == io::ErrorKind::NotFound {
                    continue;
                }
                let e = Error::io(format!("could not fsync folder \"{folder}\""), e);
                self.files.fail(&e);
                return Err(e);
            }
        }
        Ok(stats)
    }

    /// Many files, and all names, in one sync of the file system: a sync of each would commit the file
    /// system's own journal each time (500 new files: 2 s against 20 ms).
    fn sync_together(&self, files: &[((RelationId, Fork), Arc<Relation>)]) -> Result<SyncStats> {
        for ((_, fork), relation) in files {
            // Cleared first: a write that comes now registers again.
            relation.fork(*fork).sync_pending.store(false, Ordering::Release);
        }
        let start = Instant::now();
        let _waits = base::wait::at(base::wait::WaitEvent::DataFileSync);
        if let Err(e) = self.disk.sync_all() {
            let e = Error::io("could not fsync the data directory", e);
            self.files.fail(&e);
            return Err(e);
        }
        let time = start.elapsed();
        self.stats.timed(IoContext::Normal, Op::fsyncs, Op::fsync_time_us, time);
        Ok(SyncStats { files: files.len(), longest: time, total: time })
    }

    /// Syncs one file now.
    pub(crate) fn sync_file(&self, relation: &Arc<Relation>, fork: Fork) -> Result<Duration> {
        self.check_failed()?;
        let file = self.file(relation, fork)?;
        let start = Instant::now();
        let _waits = base::wait::at(base::wait::WaitEvent::DataFileSync);
        if let Err(e) = file.sync_data() {
            let e = Error::io(format!("could not fsync file \"{}\"", relation.path(fork)), e);
            self.files.fail(&e);
            return Err(e);
        }
        let time = start.elapsed();
        self.stats.timed(IoContext::Normal, Op::fsyncs, Op::fsync_time_us, time);
        Ok(time)
    }

    pub(crate) fn unlink(&self, id: RelationId) -> Result<()> {
        if let Some(relation) = self.known_relation(id) {
            self.forget(&relation);
        }
        self.stats.directory.forget(id);
        self.missing.pages.lock().retain(|tag| tag.relation != id);
        let mut result = Ok(());
        let mut folder = None;
        for fork in Fork::ALL {
            let path = format!("{id}{}", fork.suffix());
            match self.disk.remove(&path) {
                Ok(()) => folder = Some(folder_of(&path).to_owned()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    result = Err(Error::io(format!("could not remove file \"{path}\""), e));
                }
            }
        }
        if let Some(folder) = folder {
            self.files.pending.lock().folders.insert(folder);
        }
        result
    }
}
