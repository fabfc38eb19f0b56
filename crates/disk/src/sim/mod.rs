//! A data folder in memory that behaves as badly as a real one may.
//!
//! # Purpose
//! [`SimDisk`] keeps two states: what a running program sees, and what a power loss would leave. A
//! test lets a program run, stops it at any operation ([`SimDisk::crash_at`]), takes what is left
//! ([`SimDisk::after_crash`]) and lets the program recover from that.
//!
//! # Crash cases
//! - A write that was not synced may be lost, whole or by 512-byte sectors, independently of others, also of
//!   those before it; so may a change of length.
//! - A name that was created, renamed or removed without a sync of its folder may be as it was
//!   before; within a folder such changes survive in order.
//! - A write that fails, for want of space too, may have written its first sectors.
//! - After a failed sync the data it should have written is lost, though reads still show it.
//!
//! All choices come from a seed: equal runs end equally.

mod content;
mod files;

use crate::{Disk, File, OpenMode};
use base::sync::{Mutex, Rank};
use content::{Content, Pending};
use files::SimFile;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Which operations a fault hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes, and reservations of space.
    Write,
    /// Syncs of files and folders.
    Sync,
    /// Opening, creating, renaming, removing.
    Name,
}

/// An error to come.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Hits these operations
    pub operation: Operation,
    /// on paths that contain this;
    pub path_contains: String,
    /// so many of them succeed before
    pub after: u64,
    /// this error of the system's is given,
    pub error: i32,
    /// once, or for ever.
    pub once: bool,
}

/// What a simulated disk has been asked for.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct SimCounts {
    /// All operations that change something: what [`SimDisk::crash_at`] counts.
    pub operations: u64,
    /// Calls of the two write functions.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Calls of the two read functions.
    pub reads: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of folders.
    pub dir_syncs: u64,
    /// Ranges that were to be written out.
    pub writebacks: u64,
    /// Their bytes.
    pub writeback_bytes: u64,
    /// Ranges that were said to be read soon.
    pub asks: u64,
    /// Their bytes.
    pub asked_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    Folder,
    File(usize),
}

/// A change of names that is not durable.
#[derive(Clone, Debug)]
struct NameChange {
    folder: String,
    path: String,
    entry: Option<Entry>,
    /// The path that disappears in the same step (a rename).
    moved_from: Option<String>,
}

#[derive(Debug)]
struct Inode {
    /// What the program sees.
    content: Content,
    /// What is safe.
    durable: Content,
    /// What lies between, in order.
    pending: Vec<Pending>,
    locked: bool,
}

/// What is to be done at some access.
type Call = Box<dyn FnOnce() + Send>;

struct State {
    rng: SmallRng,
    inodes: Vec<Inode>,
    names: BTreeMap<String, Entry>,
    durable_names: BTreeMap<String, Entry>,
    name_changes: Vec<NameChange>,
    counts: SimCounts,
    faults: Vec<Fault>,
    crash_at: Option<u64>,
    crashed: bool,
    capacity: Option<u64>,
    used: u64,
    /// After so many more accesses.
    call: Option<(u64, Call)>,
}

/// A data folder in memory; see the module.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// The most unsynced changes that one file keeps apart; older ones are settled by chance, as the
/// system writes back when it likes.
const PENDING_MAX: usize = 8192;

fn crashed() -> io::Error {
    io::Error::other("the simulated machine has lost power")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl SimDisk {
    /// An empty disk whose choices come from `seed`.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        Self::with(seed, Vec::new(), BTreeMap::new())
    }

    fn with(seed: u64, inodes: Vec<Inode>, names: BTreeMap<String, Entry>) -> Arc<SimDisk> {
        let used = inodes.iter().map(|i| i.content.space()).sum();
        Arc::new(SimDisk {
            state: Arc::new(Mutex::new(
                Rank(750),
                State {
                    rng: SmallRng::seed_from_u64(seed),
                    inodes,
                    durable_names: names.clone(),
                    names,
                    name_changes: Vec::new(),
                    counts: SimCounts::default(),
                    faults: Vec::new(),
                    crash_at: None,
                    crashed: false,
                    capacity: None,
                    used,
                    call: None,
                },
            )),
        })
    }

    /// Adds an error to come.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// The `n`th sync from now on (0 is the next) fails with EIO.
    pub fn fail_sync(&self, n: u64) {
        self.inject(Fault {
            operation: Operation::Sync,
            path_contains: String::new(),
            after: n,
            error: libc::EIO,
            once: true,
        });
    }

    /// The `n`th write from now on (0 is the next) fails with EIO.
    pub fn fail_write(&self, n: u64) {
        self.inject(Fault {
            operation: Operation::Write,
            path_contains: String::new(),
            after: n,
            error: libc::EIO,
            once: true,
        });
    }

    /// No more faults, no call, no limit of space, and no power loss to come.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.call = None;
        state.crash_at = None;
        state.capacity = None;
    }

    /// The space that files take, in bytes.
    pub fn used_space(&self) -> u64 {
        self.state.lock().used
    }

    /// The disk has room for so many bytes more (counted in blocks of 4 KiB), then it is full.
    pub fn set_free_space(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.capacity = Some(state.used + bytes);
    }

    /// Power is lost at the `n`th changing operation from now on (0 is the next): it may have been
    /// done or not, and everything after it fails.
    pub fn crash_at(&self, n: u64) {
        let mut state = self.state.lock();
        state.crash_at = Some(state.counts.operations + n);
    }

    /// `call` is made at the `n`th access that could fail from now on (0 is the next), under the disk's lock.
    pub fn call_at(&self, n: u64, call: Box<dyn FnOnce() + Send>) {
        self.state.lock().call = Some((n, call));
    }

    /// Power is lost now.
    pub fn crash(&self) {
        self.state.lock().crashed = true;
    }

    /// Has power been lost?
    pub fn has_crashed(&self) -> bool {
        self.state.lock().crashed
    }

    /// What the disk has been asked for.
    pub fn counts(&self) -> SimCounts {
        self.state.lock().counts
    }

    /// The disk after a power loss now, its choices from `seed`: unsynced changes are there or not.
    /// The disk itself is not changed, so that several outcomes of one crash can be tried.
    pub fn after_crash(&self, seed: u64) -> Arc<SimDisk> {
        let state = self.state.lock();
        let mut rng = SmallRng::seed_from_u64(seed);
        // Extremes are likelier to find something than the middle.
        let survival = [0, 100, 50, 10, 90][rng.random_range(0..5)];
        let mut names = state.durable_names.clone();
        let mut cut = BTreeMap::<&str, bool>::new();
        for change in &state.name_changes {
            // Once a change in a folder is lost, those after it are.
            let lost = cut.entry(change.folder.as_str()).or_insert(false);
            *lost = *lost || rng.random_range(0..100) >= survival;
            if !*lost {
                change.apply(&mut names);
            }
        }
        let inodes = state
            .inodes
            .iter()
            .map(|inode| {
                let mut content = inode.durable.clone();
                for change in &inode.pending {
                    change.settle(&mut content, survival, &mut rng);
                }
                Inode { durable: content.clone(), content, pending: Vec::new(), locked: false }
            })
            .collect();
        Self::with(rng.random(), inodes, names)
    }

    /// The disk as a program sees it, all of it durable: an orderly copy.
    pub fn snapshot(&self, seed: u64) -> Arc<SimDisk> {
        let state = self.state.lock();
        let inodes = state
            .inodes
            .iter()
            .map(|inode| Inode {
                content: inode.content.clone(),
                durable: inode.content.clone(),
                pending: Vec::new(),
                locked: false,
            })
            .collect();
        Self::with(seed, inodes, state.names.clone())
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, Entry>) {
        if let Some(from) = &self.moved_from {
            names.remove(from);
        }
        match self.entry {
            Some(entry) => {
                names.insert(self.path.clone(), entry);
            }
            None => {
                names.remove(&self.path);
            }
        }
    }
}

impl State {
    /// Counts a changing operation; fails if it is the one at which power is lost. The flag says that
    /// the operation is under way as power is lost: its effect stays pending.
    fn change(&mut self, operation: Operation, path: &str) -> io::Result<bool> {
        if self.crashed {
            return Err(crashed());
        }
        let last = self.crash_at == Some(self.counts.operations);
        self.counts.operations += 1;
        if last {
            self.crashed = true;
            return Ok(true);
        }
        self.fault(operation, path)?;
        Ok(false)
    }

    fn fault(&mut self, operation: Operation, path: &str) -> io::Result<()> {
        match self.call.take() {
            Some((0, call)) => call(),
            Some((n, call)) => self.call = Some((n - 1, call)),
            None => {}
        }
        let mut hit = None;
        for (i, fault) in self.faults.iter_mut().enumerate() {
            if fault.operation == operation && path.contains(&fault.path_contains) {
                if fault.after == 0 {
                    hit = hit.or(Some(i));
                } else {
                    fault.after -= 1;
                }
            }
        }
        let Some(i) = hit else { return Ok(()) };
        let error = io::Error::from_raw_os_error(self.faults[i].error);
        if self.faults[i].once {
            self.faults.remove(i);
        }
        Err(error)
    }

    fn rename_entry(&mut self, path: &str, entry: Option<Entry>, moved_from: Option<&str>) {
        let change = NameChange {
            folder: folder_of(path).to_owned(),
            path: path.to_owned(),
            entry,
            moved_from: moved_from.map(str::to_owned),
        };
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    /// Room for `more` blocks' bytes?
    fn take_space(&mut self, more: u64) -> io::Result<()> {
        if let Some(capacity) = self.capacity
            && more > 0
            && self.used + more > capacity
        {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.used += more;
        Ok(())
    }

    fn add_pending(&mut self, inode: usize, change: Pending) {
        let State { inodes, rng, .. } = self;
        let Some(inode) = inodes.get_mut(inode) else { return };
        inode.pending.push(change);
        if inode.pending.len() > PENDING_MAX {
            for old in inode.pending.drain(..PENDING_MAX / 2) {
                old.settle(&mut inode.durable, 50, rng);
            }
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        let inode = match state.names.get(path).copied() {
            Some(Entry::Folder) => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Some(Entry::File(_)) if mode == OpenMode::CreateNew => {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            Some(Entry::File(inode)) => {
                state.fault(Operation::Name, path)?;
                inode
            }
            None => {
                let folder = folder_of(path);
                if mode == OpenMode::Existing
                    || (!folder.is_empty() && state.names.get(folder) != Some(&Entry::Folder))
                {
                    return Err(io::Error::from(io::ErrorKind::NotFound));
                }
                let dying = state.change(Operation::Name, path)?;
                state.inodes.push(Inode {
                    content: Content::default(),
                    durable: Content::default(),
                    pending: Vec::new(),
                    locked: false,
                });
                let inode = state.inodes.len() - 1;
                state.rename_entry(path, Some(Entry::File(inode)), None);
                if dying {
                    return Err(crashed());
                }
                inode
            }
        };
        Ok(Arc::new(SimFile::new(Arc::clone(&self.state), inode, path)))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        let state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        Ok(path.is_empty() || state.names.contains_key(path))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        match state.names.get(path).copied() {
            None if !state.crashed => Err(io::Error::from(io::ErrorKind::NotFound)),
            Some(Entry::Folder) if !state.crashed => {
                Err(io::Error::from(io::ErrorKind::IsADirectory))
            }
            found => {
                let dying = state.change(Operation::Name, path)?;
                if let Some(Entry::File(inode)) = found {
                    let space = state.inodes[inode].content.space();
                    state.used = state.used.saturating_sub(space);
                }
                state.rename_entry(path, None, None);
                if dying { Err(crashed()) } else { Ok(()) }
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        let Some(entry) = state.names.get(from).copied() else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        if entry == Entry::Folder {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let dying = state.change(Operation::Name, to)?;
        if let Some(Entry::File(old)) = state.names.get(to).copied() {
            let space = state.inodes[old].content.space();
            state.used = state.used.saturating_sub(space);
        }
        state.rename_entry(to, Some(entry), Some(from));
        if dying { Err(crashed()) } else { Ok(()) }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        if !dir.is_empty() && state.names.get(dir) != Some(&Entry::Folder) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(state
            .names
            .keys()
            .filter(|path| folder_of(path) == dir)
            .map(|path| path.rsplit('/').next().unwrap_or(path).to_owned())
            .collect())
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let mut upto = 0;
        for part in path.split('/') {
            upto += part.len();
            let folder = &path[..upto];
            upto += 1;
            match state.names.get(folder) {
                Some(Entry::Folder) => {}
                Some(Entry::File(_)) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                None => {
                    let dying = state.change(Operation::Name, folder)?;
                    state.rename_entry(folder, Some(Entry::Folder), None);
                    if dying {
                        return Err(crashed());
                    }
                }
            }
        }
        Ok(())
    }

    fn remove_dir_all(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        if state.names.get(path) != Some(&Entry::Folder) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let prefix = format!("{path}/");
        let mut inside: Vec<_> =
            state.names.keys().filter(|p| p.starts_with(&prefix)).cloned().collect();
        inside.reverse();
        inside.push(path.to_owned());
        for name in inside {
            let dying = state.change(Operation::Name, &name)?;
            if let Some(Entry::File(inode)) = state.names.get(&name).copied() {
                let space = state.inodes[inode].content.space();
                state.used = state.used.saturating_sub(space);
            }
            state.rename_entry(&name, None, None);
            if dying {
                return Err(crashed());
            }
        }
        Ok(())
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if !path.is_empty() && !state.crashed && state.names.get(path) != Some(&Entry::Folder) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.counts.dir_syncs += 1;
        if state.change(Operation::Sync, path)? {
            return Err(crashed());
        }
        let State { durable_names, name_changes, .. } = &mut *state;
        name_changes.retain(|change| {
            if change.folder == path {
                change.apply(durable_names);
            }
            change.folder != path
        });
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.counts.syncs += 1;
        match state.change(Operation::Sync, "") {
            Ok(false) => {}
            Ok(true) => return Err(crashed()),
            Err(e) => {
                if !state.crashed {
                    for inode in &mut state.inodes {
                        inode.pending.clear();
                    }
                }
                return Err(e);
            }
        }
        let State { durable_names, name_changes, inodes, .. } = &mut *state;
        for change in name_changes.drain(..) {
            change.apply(durable_names);
        }
        for inode in inodes {
            for change in std::mem::take(&mut inode.pending) {
                change.apply(&mut inode.durable);
            }
        }
        Ok(())
    }
}
