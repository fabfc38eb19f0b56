//! Relation files: made, cut and removed with their transactions; file numbers and OIDs.
//!
//! # Invariants
//! - Files of transactions that the commit log has forgotten are kept: who was rolled back has none on the list any more.
//! - A file number is used once. A number is taken, and noted as pending under its XID, in one step.
//! - A file is made, an unlogged relation's init fork with it, and its record inserted, under the checkpoint barrier, so a checkpoint whose
//!   redo point lies after the record syncs the file's folder.
//! - Pending files whose transaction has not committed at the end of recovery are removed; so are files numbered
//!   from the checkpoint's next number on that no record made. So a crash leaves no orphan.
//! - A file that could not be removed stays pending, under no XID: each checkpoint tries again, and notes it until then.
//! - File number 0 stands for a whole database's folder.
//! - Numbers from 2³¹ on are those of temporary relations: never logged, removed at every start. Each start begins elsewhere
//!   among them: a table that a crash left in the catalogs must not be taken for another one's file when it is dropped.
//!
//! # Locks
//! Barrier (230), then pool and WAL; numbers (250) with nothing below it but the WAL.
//!
//! # WAL and replay
//! Create {database, file number, persistence}; truncate {database, file number, length of each fork};
//! page images (blocks only); next OID. Removal is part of commit and abort records.
//!
//! # Crash cases
//! Between making a file and its record: removed, since no record names it. Between the commit record and the
//! removal: redo of the record removes. A truncation is durable in the WAL before the file is cut; a checkpoint whose redo point
//! lies after the record cuts before it ends.
//!
//! # Differs from PostgreSQL
//! PostgreSQL leaves files of transactions that were in progress at a crash. TRUNCATE never shrinks: it is a new number.

mod replay;

pub(crate) use replay::{ends_files, is_of_pages, redo_images, truncated};

use crate::removal::FileCloser;
use base::sync::{Arc, Mutex, Rank, RwLock, RwLockReadGuard};
use base::{BlockNumber, Error, Fork, Lsn, Oid, PageTag, RelationId, Result, Xid, log};
use buffer::{BufferPool, Persistence, RelationHandle};
use disk::{Disk, File, OpenMode};
use page::Page;
use std::collections::{BTreeMap, HashSet};
use txn::{Transaction, TransactionManager, XidStatus};
use wal::{BlockFlags, RecordBuilder, ResourceManager, Wal};

const CREATE: u8 = 0;
const TRUNCATE: u8 = 1;
const PAGE_IMAGES: u8 = 2;
const NEXT_OID: u8 = 3;
/// Where indexes are sorted.
const SORT_FOLDER: &str = "base/pgsql_tmp";
const CREATE_DATABASE: u8 = 0;

/// The first number of temporary relations.
pub const FIRST_TEMPORARY: u32 = 1 << 31;
/// The first number given out; smaller ones are the catalogs' own.
pub const FIRST_FILE_NUMBER: u32 = 16384;
/// OIDs of what `init` makes with SQL start here.
pub const FIRST_INIT_OID: Oid = Oid(12_000);
/// OIDs logged at once.
const OID_BATCH: u32 = 8192;
/// From this length on (8 MB) a file is replaced rather than cut in recovery.
const LARGE_BLOCKS: u32 = 1024;
/// What the file system frees at once: 256 kB.
const SHORT_BLOCKS: u32 = 32;
/// Images in a record of [`RelationFiles::log_pages`].
const IMAGES_MAX: usize = 32;

/// A file that goes away unless its transaction commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingFile {
    /// Which; file number 0 is a database's folder.
    pub relation: RelationId,
    /// The (sub)transaction that made it; none for one that is gone and whose file could not be removed.
    pub xid: Xid,
}

/// What a checkpoint notes of the storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageState {
    /// The next file number.
    pub next_file: u32,
    /// The next OID that was never given out.
    pub next_oid: Oid,
    /// Files of transactions in progress.
    pub pending: Vec<PendingFile>,
    /// Cuts of files that recovery put off: its last checkpoint only.
    pub cuts: Vec<(RelationId, Fork, BlockNumber)>,
}

struct Numbers {
    next_file: u32,
    next_temporary: u32,
    next_oid: u32,
    oids_logged: u32,
    pending: BTreeMap<(Oid, u32), Xid>,
    /// In recovery: numbers of the files that records made.
    made: HashSet<u32>,
}

/// Is told of files that were removed, before their transaction's locks go.
type RemovalWatcher = Box<dyn Fn(RelationId) + Send + Sync>;

/// Makes and removes relation files.
pub struct RelationFiles {
    disk: Arc<dyn Disk>,
    pool: Arc<BufferPool>,
    wal: Arc<Wal>,
    barrier: RwLock<()>,
    numbers: Mutex<Numbers>,
    closer: Arc<FileCloser>,
    watchers: RwLock<Vec<RemovalWatcher>>,
}

impl std::fmt::Debug for RelationFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RelationFiles")
    }
}

impl RelationFiles {
    /// Storage that goes on from a checkpoint's state.
    pub fn new(
        disk: Arc<dyn Disk>,
        pool: Arc<BufferPool>,
        wal: Arc<Wal>,
        closer: Arc<FileCloser>,
        state: &StorageState,
    ) -> Arc<RelationFiles> {
        let pending = state
            .pending
            .iter()
            .map(|p| ((p.relation.database, p.relation.file_number), p.xid))
            .collect();
        // The log has grown since the last start, by more for each temporary relation than is counted for it here.
        let temporary = FIRST_TEMPORARY | (wal.insert_lsn().0 / 64) as u32;
        Arc::new(RelationFiles {
            disk,
            pool,
            wal,
            closer,
            barrier: RwLock::new(Rank(230), ()),
            watchers: RwLock::new(Rank(280), Vec::new()),
            numbers: Mutex::new(
                Rank(250),
                Numbers {
                    next_file: state.next_file,
                    next_temporary: temporary,
                    next_oid: state.next_oid.0,
                    oids_logged: state.next_oid.0,
                    pending,
                    made: HashSet::new(),
                },
            ),
        })
    }

    /// While this is held, no checkpoint passes between what is logged and what is done to files.
    pub fn hold_checkpoints(&self) -> RwLockReadGuard<'_, ()> {
        self.barrier.read()
    }

    /// Waits for those that hold checkpoints up: called after the redo point was set.
    pub fn pass_barrier(&self) {
        drop(self.barrier.write());
    }

    /// Makes a relation's main file under a new number, and the empty init fork of an unlogged one. They go away if the transaction, or the
    /// savepoint, is rolled back.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(
        &self,
        transaction: &Transaction,
        database: Oid,
        persistence: Persistence,
    ) -> Result<RelationHandle> {
        let xid = transaction.xid()?;
        loop {
            let id = self.take_number(database, persistence, xid)?;
            match self.create_numbered(transaction, id, persistence) {
                Err(Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
    }

    /// As [`RelationFiles::create`], with a number of the caller's choice: for the first catalogs.
    ///
    /// # Errors
    /// If the file is there; the disk's.
    pub fn create_numbered(
        &self,
        transaction: &Transaction,
        id: RelationId,
        persistence: Persistence,
    ) -> Result<RelationHandle> {
        let xid = transaction.xid()?;
        {
            let mut numbers = self.numbers.lock();
            numbers.pending.insert((id.database, id.file_number), xid);
            if id.file_number < FIRST_TEMPORARY {
                numbers.next_file = numbers.next_file.max(id.file_number + 1);
            }
        }
        let barrier = self.hold_checkpoints();
        let handle = self.pool.create(id, persistence)?;
        transaction.remove_on_abort(id);
        if persistence == Persistence::Unlogged {
            // With the main file, so that the same checkpoint makes both names durable: without this one nothing would be reset.
            handle.create_fork(Fork::Init)?;
        }
        if persistence != Persistence::Temp {
            let mut record = RecordBuilder::new(ResourceManager::Storage, CREATE, xid);
            record.data(&id.database.0.to_le_bytes());
            record.data(&id.file_number.to_le_bytes());
            record.data(&[persistence as u8]);
            self.wal.insert(&record);
        }
        drop(barrier);
        Ok(handle)
    }

    fn take_number(&self, database: Oid, persistence: Persistence, xid: Xid) -> Result<RelationId> {
        let mut numbers = self.numbers.lock();
        let file_number = if persistence == Persistence::Temp {
            let number = numbers.next_temporary;
            // Round and round: those that are in use are found to be there.
            numbers.next_temporary = number.wrapping_add(1) | FIRST_TEMPORARY;
            number
        } else {
            if numbers.next_file >= FIRST_TEMPORARY {
                base::bail!(PROGRAM_LIMIT_EXCEEDED, "out of relation file numbers");
            }
            numbers.next_file += 1;
            numbers.next_file - 1
        };
        numbers.pending.insert((database, file_number), xid);
        Ok(RelationId { database, file_number })
    }

    /// Was the file made in the innermost subtransaction that is open (or one that has ended within it)?
    pub fn is_made_by(&self, transaction: &Transaction, id: RelationId) -> bool {
        let numbers = self.numbers.lock();
        let made = numbers.pending.get(&(id.database, id.file_number));
        made.is_some_and(|xid| transaction.is_innermost(*xid))
    }

    /// A handle on a relation's files.
    pub fn open(&self, id: RelationId, persistence: Persistence) -> RelationHandle {
        self.pool.open(id, persistence)
    }

    /// Removes a relation's files when the transaction commits (DROP, and the old file of TRUNCATE).
    pub fn remove_at_commit(&self, transaction: &Transaction, id: RelationId) {
        transaction.remove_on_commit(id);
    }

    /// Cuts a relation's forks, a heap's visibility map with its main fork: logged, then shorter for everybody at once. The files follow once the WAL is durable, in the
    /// background (`buffer`'s `cuts.rs`); those of what is not logged are cut here. The caller holds the lock that keeps
    /// writers away.
    ///
    /// # Errors
    /// The WAL's and the disk's.
    pub fn truncate(&self, handle: &RelationHandle, lengths: &[(Fork, BlockNumber)]) -> Result<()> {
        let id = handle.id();
        let _barrier = self.hold_checkpoints();
        let mut lengths = lengths.to_vec();
        let main = lengths.iter().find(|(fork, _)| *fork == Fork::Main);
        if let Some(len) = main.map(|(_, len)| heap::VisibilityMap::len_for(*len))
            && handle.exists(Fork::VisibilityMap)?
        {
            lengths.push((Fork::VisibilityMap, len));
        }
        if handle.persistence() == Persistence::Permanent {
            let mut record = RecordBuilder::new(ResourceManager::Storage, TRUNCATE, Xid::INVALID);
            record.data(&id.database.0.to_le_bytes());
            record.data(&id.file_number.to_le_bytes());
            for (fork, len) in &lengths {
                record.data(&[*fork as u8]);
                record.data(&len.0.to_le_bytes());
            }
            let end = self.wal.insert(&record);
            // Nobody waits for it, but it should not hang in the air for long: the files can be cut only then.
            self.wal.note_asynchronous(end);
            base::stop_point!("engine.truncate.logged");
            for (fork, len) in &lengths {
                if handle.exists(*fork)? {
                    handle.truncate_later(*fork, *len, end)?;
                }
            }
            return Ok(());
        }
        for (fork, len) in &lengths {
            if handle.exists(*fork)? {
                handle.truncate(*fork, *len)?;
            }
        }
        Ok(())
    }

    /// Cuts a table's main fork to `len` blocks, and its maps with it. The caller holds the lock that keeps writers
    /// away, and has seen that nothing lives beyond.
    ///
    /// # Errors
    /// The WAL's and the disk's.
    pub fn truncate_heap(&self, heap: &heap::Heap, len: BlockNumber) -> Result<()> {
        let handle = heap.relation();
        // First what could lead there; each part of it is right by itself, should the power go in between.
        if handle.exists(Fork::VisibilityMap)? {
            heap.visibility_map().forget(len, Some(&*self.wal))?;
        }
        self.truncate(handle, &[(Fork::Main, len)])?;
        if handle.exists(Fork::FreeSpaceMap)? {
            heap.free_space_map().truncate(len)?;
        }
        Ok(())
    }

    /// Logs whole pages; returns the end, to be stamped on them. For pages filled without a record of their own.
    pub fn log_pages(&self, id: RelationId, fork: Fork, pages: &[(BlockNumber, &Page)]) -> Lsn {
        let mut end = self.wal.insert_lsn();
        for chunk in pages.chunks(IMAGES_MAX) {
            let mut record =
                RecordBuilder::new(ResourceManager::Storage, PAGE_IMAGES, Xid::INVALID);
            for (n, (block, page)) in chunk.iter().enumerate() {
                let tag = PageTag { relation: id, fork, block: *block };
                record.block(n as u8, tag, page, BlockFlags::FORCE_IMAGE | BlockFlags::STANDARD);
            }
            end = self.wal.insert(&record);
        }
        end
    }

    /// A new OID; the caller sees to it that its catalog has it not yet.
    pub fn new_oid(&self) -> Oid {
        let mut numbers = self.numbers.lock();
        // After a wrap-around.
        if numbers.next_oid < FIRST_INIT_OID.0 {
            numbers.next_oid = Oid::FIRST_NORMAL.0;
            numbers.oids_logged = Oid::FIRST_NORMAL.0;
        }
        // Those of domains, of enum types and of arrays of row types, which are next to each other.
        if (types::domains::OIDS.start..types::row_types::ARRAYS.end).contains(&numbers.next_oid) {
            numbers.next_oid = types::row_types::ARRAYS.end;
        }
        let oid = numbers.next_oid;
        if oid >= numbers.oids_logged {
            numbers.oids_logged = oid.saturating_add(OID_BATCH);
            let mut record = RecordBuilder::new(ResourceManager::Storage, NEXT_OID, Xid::INVALID);
            record.data(&numbers.oids_logged.to_le_bytes());
            self.wal.insert(&record);
        }
        numbers.next_oid = oid.wrapping_add(1);
        Oid(oid)
    }

    /// Gives out the OIDs of objects that are there from the beginning (system views), until
    /// [`RelationFiles::set_next_oid`] ends that.
    pub fn begin_init_oids(&self) {
        let mut numbers = self.numbers.lock();
        numbers.next_oid = FIRST_INIT_OID.0;
        numbers.oids_logged = FIRST_INIT_OID.0;
    }

    /// Makes the OIDs below `oid` taken: after the first catalogs were made.
    pub fn set_next_oid(&self, oid: Oid) {
        let mut numbers = self.numbers.lock();
        numbers.next_oid = numbers.next_oid.max(oid.0);
        numbers.oids_logged = numbers.oids_logged.max(numbers.next_oid);
    }

    /// Makes the folder of database `new` a copy of `template`'s. The caller has seen to it that nobody writes to the
    /// template and has checkpointed. It goes away with a rollback.
    ///
    /// # Errors
    /// The disk's.
    pub fn copy_database(&self, transaction: &Transaction, template: Oid, new: Oid) -> Result<()> {
        let xid = transaction.xid()?;
        let id = RelationId { database: new, file_number: 0 };
        self.numbers.lock().pending.insert((new, 0), xid);
        transaction.remove_on_abort(id);
        let mut record = RecordBuilder::new(ResourceManager::Catalog, CREATE_DATABASE, xid);
        record.data(&new.0.to_le_bytes());
        let end = self.wal.insert(&record);
        self.wal.flush(end)?;
        let (from, to) = (format!("base/{template}"), format!("base/{new}"));
        let io = |what: &str, path: &str| {
            let what = format!("could not {what} \"{path}\"");
            move |e| Error::io(what, e)
        };
        // Files are read as they are: none may be longer than its relation.
        self.pool.cut_files()?;
        self.disk.create_dir(&to).map_err(io("create directory", &to))?;
        let mut buffer = vec![0; 1 << 20];
        for name in self.disk.list(&from).map_err(io("open directory", &from))? {
            if parse_file_name(&name).is_none_or(|(number, _)| number >= FIRST_TEMPORARY) {
                continue;
            }
            let (source_path, path) = (format!("{from}/{name}"), format!("{to}/{name}"));
            let source = self
                .disk
                .open(&source_path, OpenMode::Existing)
                .map_err(io("open file", &source_path))?;
            let target =
                self.disk.open(&path, OpenMode::Create).map_err(io("create file", &path))?;
            let mut at = 0;
            loop {
                transaction.backend().cancel.check()?;
                let n = source.read_at(&mut buffer, at).map_err(io("read file", &source_path))?;
                if n == 0 {
                    break;
                }
                target.write_at(&buffer[..n], at).map_err(io("write file", &path))?;
                at += n as u64;
            }
            target.sync_data().map_err(io("fsync file", &path))?;
        }
        self.disk.sync_dir(&to).map_err(io("fsync directory", &to))?;
        self.disk.sync_dir("base").map_err(io("fsync directory", "base"))
    }

    /// From now on `watcher` is told of each relation whose files were removed, so that what is remembered of it beside the pool goes too: nobody
    /// opens it again. File number 0 stands for all relations of a database. It takes no locks but leaves.
    pub fn on_removal(&self, watcher: impl Fn(RelationId) + Send + Sync + 'static) {
        self.watchers.write().push(Box::new(watcher));
    }

    /// Removes files at the end of a transaction, and in redo: each at the cost of what it has cached. What can't be removed
    /// is logged, and left to the next checkpoint.
    pub fn remove(&self, files: &[RelationId]) {
        for id in files {
            let held = self.hold_open(*id);
            let removed = if id.file_number == 0 {
                self.remove_database(id.database)
            } else {
                self.pool.unlink(*id)
            };
            if !held.is_empty() {
                self.closer.take(held);
            }
            self.watchers.read().iter().for_each(|watcher| watcher(*id));
            let key = (id.database, id.file_number);
            let mut numbers = self.numbers.lock();
            if let Err(e) = removed {
                log!("could not remove the files of relation \"{id}\", which is tried again: {e}");
                numbers.pending.insert(key, Xid::INVALID);
            } else {
                numbers.pending.remove(&key);
            }
        }
    }

    /// The relation's files, opened, if somebody is there to close them later. To open and close a short one costs more than to free it.
    fn hold_open(&self, id: RelationId) -> Vec<Arc<dyn File>> {
        let short = |len: BlockNumber| len.0 <= SHORT_BLOCKS;
        if id.file_number == 0
            || !self.closer.is_running()
            || self.pool.known_len_blocks(id).is_some_and(short)
        {
            return Vec::new();
        }
        Fork::ALL
            .into_iter()
            .filter_map(|fork| {
                self.disk.open(&format!("{id}{}", fork.suffix()), OpenMode::Existing).ok()
            })
            .collect()
    }

    fn remove_database(&self, database: Oid) -> Result<()> {
        self.pool.forget_database(database);
        let path = format!("base/{database}");
        match self.disk.remove_dir_all(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(format!("could not remove directory \"{path}\""), e));
            }
            _ => {}
        }
        self.disk.sync_dir("base").map_err(|e| Error::io("could not fsync directory \"base\"", e))
    }

    /// What a checkpoint has to note; called after [`RelationFiles::pass_barrier`]. Entries whose transaction has ended
    /// are dropped, and files that could not be removed are tried again.
    ///
    /// # Errors
    /// When the commit log can't be read.
    pub fn state(&self, txns: &TransactionManager, shutdown: bool) -> Result<StorageState> {
        let before: Vec<((Oid, u32), Xid)> =
            self.numbers.lock().pending.iter().map(|(k, v)| (*k, *v)).collect();
        let mut ended = Vec::new();
        let mut left = Vec::new();
        for (key, xid) in before {
            if !xid.is_valid() {
                left.push(RelationId { database: key.0, file_number: key.1 });
            } else if maker(txns, xid)? != Maker::Running {
                ended.push(key);
            }
        }
        self.remove(&left);
        let mut numbers = self.numbers.lock();
        for key in ended {
            numbers.pending.remove(&key);
        }
        let pending = numbers
            .pending
            .iter()
            .filter(|((_, number), _)| *number < FIRST_TEMPORARY)
            .map(|((database, file_number), xid)| PendingFile {
                relation: RelationId { database: *database, file_number: *file_number },
                xid: *xid,
            })
            .collect();
        let next_oid = if shutdown { numbers.next_oid } else { numbers.oids_logged };
        Ok(StorageState {
            next_file: numbers.next_file,
            next_oid: Oid(next_oid),
            pending,
            cuts: Vec::new(),
        })
    }

    // ---- before and after replay ----

    /// Before redo: the cuts that the recovery before this one put off, and that may not have been made. `upto` is durable.
    ///
    /// # Errors
    /// The disk's.
    pub fn resume_cuts(&self, cuts: &[(RelationId, Fork, BlockNumber)], upto: Lsn) -> Result<()> {
        for (id, fork, len) in cuts {
            let handle = self.pool.open(*id, Persistence::Permanent);
            if handle.exists(*fork)? {
                handle.truncate_later(*fork, *len, upto)?;
            }
        }
        Ok(())
    }

    /// After redo: removes the files of transactions that did not commit, and those that nobody made. `checkpointed` is
    /// the next file number that the checkpoint knew.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove_orphans(&self, txns: &TransactionManager, checkpointed: u32) -> Result<usize> {
        let (pending, made) = {
            let mut numbers = self.numbers.lock();
            (std::mem::take(&mut numbers.pending), std::mem::take(&mut numbers.made))
        };
        let mut gone = Vec::new();
        for ((database, file_number), xid) in pending {
            if !xid.is_valid() || maker(txns, xid)? != Maker::Committed {
                gone.push(RelationId { database, file_number });
            }
        }
        for (database, folder) in database_folders(&*self.disk)? {
            for name in list(&*self.disk, &folder)? {
                let Some((file_number, _)) = parse_file_name(&name) else { continue };
                let id = RelationId { database, file_number };
                let new = file_number >= checkpointed && file_number < FIRST_TEMPORARY;
                if new && !made.contains(&file_number) {
                    gone.push(id);
                }
            }
        }
        gone.sort_unstable();
        gone.dedup();
        self.remove(&gone);
        Ok(gone.len())
    }

    /// Removes what temporary relations, and sorts for indexes, left.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove_temporary(&self) -> Result<()> {
        let there = self.disk.exists(SORT_FOLDER);
        if there.map_err(|e| Error::io(format!("could not look for \"{SORT_FOLDER}\""), e))? {
            self.disk.remove_dir_all(SORT_FOLDER).map_err(|e| {
                Error::io(format!("could not remove directory \"{SORT_FOLDER}\""), e)
            })?;
        }
        for (_, folder) in database_folders(&*self.disk)? {
            for name in list(&*self.disk, &folder)? {
                if parse_file_name(&name).is_some_and(|(number, _)| number >= FIRST_TEMPORARY) {
                    let path = format!("{folder}/{name}");
                    self.disk
                        .remove(&path)
                        .map_err(|e| Error::io(format!("could not remove file \"{path}\""), e))?;
                }
            }
        }
        Ok(())
    }

    /// After a crash: every unlogged relation becomes what its init fork is.
    ///
    /// # Errors
    /// The disk's.
    pub fn reset_unlogged(&self) -> Result<usize> {
        let mut count = 0;
        for (database, folder) in database_folders(&*self.disk)? {
            for name in list(&*self.disk, &folder)? {
                let Some((file_number, Fork::Init)) = parse_file_name(&name) else { continue };
                let id = RelationId { database, file_number };
                let mut handle = self.pool.open(id, Persistence::Unlogged);
                for fork in [Fork::Main, Fork::FreeSpaceMap, Fork::VisibilityMap] {
                    if !handle.exists(fork)? {
                        continue;
                    }
                    if handle.len_blocks(fork)?.0 < LARGE_BLOCKS {
                        handle.truncate(fork, BlockNumber(0))?;
                    } else {
                        handle = self.replace_file(&handle, fork)?;
                    }
                }
                handle.create_fork(Fork::Main)?;
                for block in 0..handle.len_blocks(Fork::Init)?.0 {
                    let mut strategy = buffer::Strategy::Normal;
                    let from = handle.pin(Fork::Init, BlockNumber(block), &mut strategy)?;
                    let bytes = *from.read().bytes();
                    let mut to = handle.extend_one(Fork::Main, &mut strategy)?.into_write();
                    to.mark_dirty();
                    *to.bytes_mut() = bytes;
                }
                handle.flush()?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Empties a large fork of an unlogged relation in recovery: the file goes, an empty one takes its name. To give back
    /// gigabytes takes the file system seconds, in which nobody could connect; so that is left to the closer.
    fn replace_file(&self, handle: &RelationHandle, fork: Fork) -> Result<RelationHandle> {
        let id = handle.id();
        // What was replayed (the init fork) must outlive the forgetting.
        handle.flush()?;
        handle.forget();
        let path = format!("{id}{}", fork.suffix());
        let held: Vec<_> = if self.closer.is_running() {
            self.disk.open(&path, OpenMode::Existing).ok().into_iter().collect()
        } else {
            Vec::new()
        };
        let removed = self.disk.remove(&path);
        self.closer.take(held);
        removed.map_err(|e| Error::io(format!("could not remove file \"{path}\""), e))?;
        let handle = self.pool.open(id, Persistence::Unlogged);
        handle.create_fork(fork)?;
        Ok(handle)
    }
}

/// What became of the transaction that made a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Maker {
    Running,
    Committed,
    RolledBack,
}

/// Of `xid`, that a pending file is noted under. One that the commit log has forgotten, cut since the last checkpoint, has ended; and since a
/// rollback, and its replay, take the file off the list, it has committed.
fn maker(txns: &TransactionManager, xid: Xid) -> Result<Maker> {
    match txns.status(xid) {
        Err(_) if xid < txns.oldest_clog_xid() => Ok(Maker::Committed),
        Err(e) => Err(e),
        Ok(XidStatus::InProgress) => Ok(Maker::Running),
        Ok(XidStatus::Committed(_)) => Ok(Maker::Committed),
        Ok(_) => Ok(Maker::RolledBack),
    }
}

/// The folders in which relations are, with their database.
///
/// # Errors
/// The disk's.
pub fn database_folders(disk: &dyn Disk) -> Result<Vec<(Oid, String)>> {
    let mut folders = vec![(Oid::INVALID, "global".to_owned())];
    for name in list(disk, "base")? {
        if let Ok(database) = name.parse::<u32>() {
            folders.push((Oid(database), format!("base/{database}")));
        }
    }
    Ok(folders)
}

fn list(disk: &dyn Disk, folder: &str) -> Result<Vec<String>> {
    disk.list(folder).map_err(|e| Error::io(format!("could not open directory \"{folder}\""), e))
}

/// The file number and fork in a file's name.
pub fn parse_file_name(name: &str) -> Option<(u32, Fork)> {
    let (number, suffix) = match name.find('_') {
        Some(i) => name.split_at(i),
        None => (name, ""),
    };
    let fork = Fork::ALL.into_iter().find(|f| f.suffix() == suffix)?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok())?.map(|n| (n, fork))
}
