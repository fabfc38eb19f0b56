//! # Purpose
//! Sorting an index's entries within a bound of memory: runs are sorted on a second thread while the next
//! one fills, spilled to temporary files, and merged.
//!
//! # Invariants
//! A run's file is open only while it is written or merged, and [`MERGED_AT_ONCE`] runs at most are merged at a time: how many there are,
//! which little memory for a large table makes many, asks neither for as many open files nor for as many buffers.
//!
//! # Layout
//! In memory and in a run: length u16 (bit 15: the tuple is dead to newcomers), then the entry. Beside the arena stands,
//! for each entry, an 8-byte abbreviated key, so that most comparisons touch no entry.

use crate::schema::{KeySchema, Value};
use base::sync::{CancelFlag, spawn};
use base::{Error, Result, Tid};
use disk::{Disk, File, OpenMode};
use page::btree::Item;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const DEAD_BIT: u16 = 0x8000;
/// Fewer entries are sorted before a thread has begun: most tables are empty when their keys are made.
const HALVED_FROM: usize = if cfg!(all(test, debug_assertions)) { 16 } else { 4096 };
const WRITE_CHUNK: usize = 1 << 20;
/// So many runs are read at a time; more are made fewer first.
const MERGED_AT_ONCE: usize = 128;
/// A merge looks for a cancel after so many entries.
const ENTRIES_BETWEEN_LOOKS: usize = 4096;
static NEXT_SORT: AtomicU64 = AtomicU64::new(0);

/// Who bounds the space of temporary files, and is told when one has gone.
pub trait TempSpace: Send + Sync + std::fmt::Debug {
    /// So many bytes more are to be written.
    ///
    /// # Errors
    /// There may not be as many.
    fn grow(&self, bytes: u64) -> Result<()>;
    /// A file in which there were so many bytes has gone.
    fn gone(&self, bytes: u64);
}

/// How much and where.
#[derive(Clone, Debug)]
pub struct SortConfig {
    /// `maintenance_work_mem`.
    pub memory_bytes: usize,
    /// For runs.
    pub disk: Arc<dyn Disk>,
    /// The folder for temporary files.
    pub temp_dir: String,
    /// What bounds them, if anything does.
    pub space: Option<Arc<dyn TempSpace>>,
}

/// Entries being collected.
#[derive(Default)]
struct Arena {
    data: Vec<u8>,
    /// Abbreviated key, place in `data`.
    index: Vec<(u64, u32)>,
}

impl Arena {
    fn bytes(&self) -> usize {
        // Sorting takes half of the index again.
        self.data.len() + self.index.len() * size_of::<(u64, u32)>() * 3 / 2
    }
    fn raw(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let len = usize::from(u16::from_le_bytes([self.data[at], self.data[at + 1]]) & !DEAD_BIT);
        &self.data[at..at + 2 + len]
    }
}

fn sort_index(
    schema: &KeySchema,
    data: &[u8],
    index: &mut [(u64, u32)],
    check: &impl Fn() -> Result<()>,
) -> Result<()> {
    let item = |at: u32| {
        let at = at as usize;
        let len = usize::from(u16::from_le_bytes([data[at], data[at + 1]]) & !DEAD_BIT);
        Item(&data[at + 2..at + 2 + len])
    };
    let compare = |a: &(u64, u32), b: &(u64, u32)| {
        a.0.cmp(&b.0).then_with(|| schema.compare_items(item(a.1), item(b.1)))
    };
    base::sort::in_pieces(index, compare, check)
}

/// A temporary file, removed when dropped. It is not kept open.
struct TempFile {
    disk: Arc<dyn Disk>,
    path: String,
    len: u64,
    space: Option<Arc<dyn TempSpace>>,
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(space) = &self.space {
            space.gone(self.len);
        }
        if let Err(error) = self.disk.remove(&self.path) {
            let what = format!("could not remove temporary file \"{}\": {error}", self.path);
            base::log::write(base::log::Level::Log, &what);
        }
    }
}

fn io(path: &str, what: &str) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("could not {what} file \"{path}\"");
    move |source| Error::io(what, source)
}

/// The temporary files of one sort.
struct Runs {
    config: SortConfig,
    id: u64,
    made: u64,
}

impl Runs {
    fn new(config: SortConfig) -> Runs {
        let number = NEXT_SORT.fetch_add(1, Memory::Relaxed) & 0xFFFF_FFFF;
        Runs { config, id: u64::from(std::process::id()) << 32 | number, made: 0 }
    }
    /// The next one.
    fn begin(&mut self) -> Result<RunFile> {
        let path = format!("{}/index_sort.{}.{}", self.config.temp_dir, self.id, self.made);
        self.made += 1;
        let disk = Arc::clone(&self.config.disk);
        let file = disk.open(&path, OpenMode::Create).map_err(io(&path, "create"))?;
        let run = TempFile { disk, path, len: 0, space: self.config.space.clone() };
        Ok(RunFile { file, run, chunk: Vec::with_capacity(WRITE_CHUNK + 4096) })
    }
    /// Merges runs, all of whose entries come in one's place.
    fn merge(
        &mut self,
        schema: &Arc<KeySchema>,
        runs: Vec<TempFile>,
        cancel: &CancelFlag,
    ) -> Result<TempFile> {
        let memory = self.config.memory_bytes / 2 / runs.len().max(1);
        let sources = runs.into_iter().map(|run| Source::run(run, memory));
        let sources = sources.collect::<Result<_>>()?;
        let mut stream = SortedStream::new(Arc::clone(schema), sources, 0)?;
        let mut into = self.begin()?;
        let mut entries = 0usize;
        while let Some(raw) = stream.next_raw()? {
            if entries.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
                cancel.check()?;
            }
            entries += 1;
            if into.add(raw) {
                into.flush()?;
            }
        }
        into.end()
    }
}

/// A run being written.
struct RunFile {
    file: Arc<dyn File>,
    run: TempFile,
    chunk: Vec<u8>,
}

impl RunFile {
    /// Adds an entry; true if it is time to [`RunFile::flush`].
    fn add(&mut self, raw: &[u8]) -> bool {
        self.chunk.extend_from_slice(raw);
        self.chunk.len() >= WRITE_CHUNK
    }
    fn flush(&mut self) -> Result<()> {
        let bytes = self.chunk.len() as u64;
        if let Some(space) = &self.run.space {
            space.grow(bytes)?;
        }
        // Taken is taken: what cannot be written goes with the file.
        let at = self.run.len;
        self.run.len += bytes;
        self.file.write_at(&self.chunk, at).map_err(io(&self.run.path, "write to"))?;
        self.chunk.clear();
        Ok(())
    }
    fn end(mut self) -> Result<TempFile> {
        self.flush()?;
        Ok(self.run)
    }
}

struct RunWriter {
    schema: Arc<KeySchema>,
    runs: Runs,
    /// Nobody wants the runs any more.
    given_up: Arc<AtomicBool>,
}

impl RunWriter {
    fn write(&mut self, arena: &mut Arena) -> Result<TempFile> {
        let given_up = self.given_up.clone();
        let check = || match given_up.load(Memory::Relaxed) {
            true => Err(base::err!(QUERY_CANCELED, "sorting was given up")),
            false => Ok(()),
        };
        sort_index(&self.schema, &arena.data, &mut arena.index, &check)?;
        let mut run = self.runs.begin()?;
        for (_, at) in &arena.index {
            if run.add(arena.raw(*at)) {
                check()?;
                run.flush()?;
            }
        }
        let run = run.end()?;
        arena.data.clear();
        arena.index.clear();
        Ok(run)
    }
}

struct Worker {
    full: SyncSender<Arena>,
    done: Receiver<(Arena, Result<TempFile>)>,
    thread: std::thread::JoinHandle<()>,
    busy: bool,
    given_up: Arc<AtomicBool>,
}

/// Collects entries and sorts them.
pub struct Sorter {
    schema: Arc<KeySchema>,
    config: SortConfig,
    arena: Arena,
    spare: Option<Arena>,
    worker: Option<Worker>,
    runs: Vec<TempFile>,
    scratch: Vec<u8>,
    count: u64,
}

impl Sorter {
    /// An empty sorter.
    pub fn new(schema: Arc<KeySchema>, config: SortConfig) -> Sorter {
        Sorter {
            schema,
            config,
            arena: Arena::default(),
            spare: Some(Arena::default()),
            worker: None,
            runs: Vec::new(),
            scratch: Vec::new(),
            count: 0,
        }
    }
    /// Entries so far.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Adds the entry of the tuple at `tid`. `live`: it counts for uniqueness.
    ///
    /// # Errors
    /// 54000 for too large a key; I/O of the runs.
    pub fn add(&mut self, values: &[Value<'_>], tid: Tid, live: bool) -> Result<()> {
        self.scratch.clear();
        self.schema.form(&mut self.scratch, values, tid)?;
        let at = self.arena.data.len() as u32;
        let flag = if live { 0 } else { DEAD_BIT };
        self.arena.data.extend((self.scratch.len() as u16 | flag).to_le_bytes());
        self.arena.data.extend_from_slice(&self.scratch);
        let key = self.schema.abbreviate(Item(&self.scratch));
        self.arena.index.push((key, at));
        self.count += 1;
        let limit = (self.config.memory_bytes / 2).clamp(64 * 1024, 1 << 31);
        if self.arena.bytes() >= limit {
            self.spill()?;
        }
        Ok(())
    }

    /// Hands the full arena to the sorting thread and goes on with the other.
    fn spill(&mut self) -> Result<()> {
        if self.worker.is_none() {
            let dir = &self.config.temp_dir;
            self.config.disk.create_dir(dir).map_err(io(dir, "create"))?;
            let (full, to_sort) = sync_channel::<Arena>(1);
            let (sorted, done) = sync_channel(1);
            let given_up = Arc::new(AtomicBool::new(false));
            let mut writer = RunWriter {
                schema: self.schema.clone(),
                runs: Runs::new(self.config.clone()),
                given_up: given_up.clone(),
            };
            let thread = spawn("index sort", move || {
                while let Ok(mut arena) = to_sort.recv() {
                    let run = writer.write(&mut arena);
                    if sorted.send((arena, run)).is_err() {
                        break;
                    }
                }
            })
            .map_err(|e| Error::io("could not start a sorting thread", e))?;
            self.worker = Some(Worker { full, done, thread, busy: false, given_up });
        }
        self.collect()?;
        let next = self.spare.take().unwrap_or_default();
        let full = std::mem::replace(&mut self.arena, next);
        if let Some(worker) = &mut self.worker {
            worker.busy = worker.full.send(full).is_ok();
        }
        Ok(())
    }
    /// Waits for the run that is being sorted.
    fn collect(&mut self) -> Result<()> {
        if let Some(worker) = &mut self.worker
            && worker.busy
        {
            worker.busy = false;
            match worker.done.recv() {
                Ok((arena, run)) => {
                    self.spare = Some(arena);
                    self.runs.push(run?);
                }
                Err(_) => {
                    return Err(base::err!(INTERNAL_ERROR, "sorting thread ended unexpectedly"));
                }
            }
        }
        Ok(())
    }

    /// Sorts the rest and starts the merge.
    ///
    /// # Errors
    /// I/O of the runs.
    pub fn finish(self) -> Result<SortedStream> {
        Sorter::finish_all(vec![self], &CancelFlag::default())
    }
    /// The same for what several sorters, fed from different threads, have collected.
    ///
    /// # Errors
    /// I/O of the runs, cancellation.
    pub fn finish_all(sorters: Vec<Sorter>, cancel: &CancelFlag) -> Result<SortedStream> {
        let Some(first) = sorters.first() else {
            return Err(base::err!(INTERNAL_ERROR, "nothing to sort"));
        };
        let schema = first.schema.clone();
        let config = first.config.clone();
        let sorters_in_all = sorters.len();
        let mut sources = Vec::new();
        let mut runs = VecDeque::new();
        let mut count = 0;
        for mut sorter in sorters {
            sources.extend(sorter.sort_rest(cancel)?);
            sorter.collect()?;
            sorter.spare = None;
            runs.extend(std::mem::take(&mut sorter.runs));
            count += sorter.count;
            if let Some(Worker { full, thread, .. }) = sorter.worker.take() {
                drop(full);
                // It has nothing left to do.
                let _ = thread.join();
            }
        }
        let memory_bytes = config.memory_bytes.saturating_mul(sorters_in_all);
        let mut merged = Runs::new(SortConfig { memory_bytes, ..config });
        // The oldest first: so they are of about one size each time.
        while runs.len() > MERGED_AT_ONCE {
            let some = (runs.len() - MERGED_AT_ONCE + 1).min(MERGED_AT_ONCE);
            let one = merged.merge(&schema, runs.drain(..some).collect(), cancel)?;
            runs.push_back(one);
        }
        let memory = memory_bytes / 2 / runs.len().max(1);
        for run in runs {
            sources.push(Source::run(run, memory)?);
        }
        SortedStream::new(schema, sources, count)
    }

    /// Sorts the last arena, in two halves if it is worth a thread, while the run before it is written.
    fn sort_rest(&mut self, cancel: &CancelFlag) -> Result<Vec<Source>> {
        let mut arena = std::mem::take(&mut self.arena);
        let halved = arena.index.len() >= HALVED_FROM;
        let middle = if halved { arena.index.len() / 2 } else { 0 };
        let mut second = arena.index.split_off(middle);
        let data = &arena.data;
        let (first, rest) = (&mut arena.index, &mut second);
        let schema = &self.schema;
        let sort = |half| sort_index(schema, data, half, &|| cancel.check());
        if halved {
            in_two_threads(|| sort(first), || sort(rest))?;
        } else {
            sort(rest)?;
        }
        let data = Arc::new(arena.data);
        let halves = [arena.index, second].into_iter().filter(|i| !i.is_empty());
        Ok(halves.map(|index| Source::Memory { data: data.clone(), index, next: 0 }).collect())
    }
}

/// Does both at once.
fn in_two_threads(
    first: impl FnOnce() -> Result<()> + Send,
    second: impl FnOnce() -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new()
            .spawn_scoped(scope, first)
            .map_err(|e| Error::io("could not start a sorting thread", e))?;
        second()?;
        match other.join() {
            Ok(sorted) => sorted,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl Drop for Sorter {
    fn drop(&mut self) {
        if let Some(Worker { full, done, thread, given_up, .. }) = self.worker.take() {
            given_up.store(true, Memory::Relaxed);
            drop((full, done));
            let _ = thread.join();
        }
    }
}

struct RunReader {
    file: Arc<dyn File>,
    run: TempFile,
    at: u64,
    buffer: Vec<u8>,
    start: usize,
    chunk: usize,
}

impl RunReader {
    fn raw_len(&self) -> Option<usize> {
        let head = self.buffer.get(self.start..self.start + 2)?;
        Some(2 + usize::from(u16::from_le_bytes([head[0], head[1]]) & !DEAD_BIT))
    }
    /// Reads on until an entry is whole in the buffer; false at the end.
    fn fill(&mut self) -> Result<bool> {
        loop {
            if let Some(len) = self.raw_len()
                && self.start + len <= self.buffer.len()
            {
                return Ok(true);
            }
            if self.at >= self.run.len {
                return Ok(false);
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            let have = self.buffer.len();
            let want = self.chunk.min((self.run.len - self.at) as usize);
            self.buffer.resize(have + want, 0);
            let got = self
                .file
                .read_at(&mut self.buffer[have..], self.at)
                .map_err(io(&self.run.path, "read"))?;
            self.buffer.truncate(have + got);
            self.at += got as u64;
            if got == 0 {
                return Err(Error::corrupt_file(format!(
                    "temporary file \"{}\" is shorter than it was written",
                    self.run.path
                )));
            }
        }
    }
}

enum Source {
    Memory {
        data: Arc<Vec<u8>>,
        index: Vec<(u64, u32)>,
        next: usize,
    },
    Run(RunReader),
    /// All of it has been handed out.
    Done,
}

impl Source {
    /// A run, read by so much at a time, within reason.
    fn run(run: TempFile, bytes: usize) -> Result<Source> {
        let file = run.disk.open(&run.path, OpenMode::Existing).map_err(io(&run.path, "open"))?;
        let chunk = bytes.clamp(16 << 10, 1 << 20);
        Ok(Source::Run(RunReader { file, run, at: 0, buffer: Vec::new(), start: 0, chunk }))
    }
    fn raw(&self) -> &[u8] {
        match self {
            Source::Memory { data, index, next } => {
                let at = index[*next].1 as usize;
                let len = usize::from(u16::from_le_bytes([data[at], data[at + 1]]) & !DEAD_BIT);
                &data[at..at + 2 + len]
            }
            Source::Run(run) => &run.buffer[run.start..run.start + run.raw_len().unwrap_or(0)],
            Source::Done => &[],
        }
    }
    fn item(&self) -> Item<'_> {
        Item(&self.raw()[2..])
    }
    /// The abbreviated key of the entry at hand; `None` at the end.
    fn key(&mut self, schema: &KeySchema) -> Result<Option<u64>> {
        match self {
            Source::Memory { index, next, .. } => Ok(index.get(*next).map(|e| e.0)),
            Source::Run(run) => {
                if run.fill()? {
                    Ok(Some(schema.abbreviate(self.item())))
                } else {
                    Ok(None)
                }
            }
            Source::Done => Ok(None),
        }
    }
    fn advance(&mut self) {
        match self {
            Source::Memory { next, .. } => *next += 1,
            Source::Run(run) => run.start += run.raw_len().unwrap_or(0),
            Source::Done => {}
        }
    }
}

/// Sorted entries, merged from the runs.
pub struct SortedStream {
    schema: Arc<KeySchema>,
    sources: Vec<Source>,
    /// A heap, least first: abbreviated key, source.
    heap: Vec<(u64, usize)>,
    count: u64,
    started: bool,
}

impl SortedStream {
    fn new(schema: Arc<KeySchema>, mut sources: Vec<Source>, count: u64) -> Result<SortedStream> {
        let mut heap = Vec::new();
        for (i, source) in sources.iter_mut().enumerate() {
            if let Some(key) = source.key(&schema)? {
                heap.push((key, i));
            }
        }
        let mut stream = SortedStream { schema, sources, heap, count, started: false };
        for i in (0..stream.heap.len() / 2).rev() {
            stream.sift_down(i);
        }
        Ok(stream)
    }
    /// Entries in all.
    pub fn count(&self) -> u64 {
        self.count
    }
    fn less(&self, a: (u64, usize), b: (u64, usize)) -> bool {
        a.0.cmp(&b.0).then_with(|| {
            self.schema.compare_items(self.sources[a.1].item(), self.sources[b.1].item())
        }) == Ordering::Less
    }
    fn sift_down(&mut self, mut i: usize) {
        loop {
            let mut least = 2 * i + 1;
            if least >= self.heap.len() {
                return;
            }
            if least + 1 < self.heap.len() && self.less(self.heap[least + 1], self.heap[least]) {
                least += 1;
            }
            if !self.less(self.heap[least], self.heap[i]) {
                return;
            }
            self.heap.swap(i, least);
            i = least;
        }
    }
    /// The address that comes next in the order of the keys.
    ///
    /// # Errors
    /// I/O.
    pub fn next_address(&mut self) -> Result<Option<Tid>> {
        Ok(self.next()?.map(|(item, _)| item.tid()))
    }
    /// The next entry, and whether it counts for uniqueness.
    pub(crate) fn next(&mut self) -> Result<Option<(Item<'_>, bool)>> {
        Ok(self.next_raw()?.map(|raw| {
            let dead = u16::from_le_bytes([raw[0], raw[1]]) & DEAD_BIT != 0;
            (Item(&raw[2..]), !dead)
        }))
    }
    /// The next entry, as it stands in a run.
    fn next_raw(&mut self) -> Result<Option<&[u8]>> {
        if self.started {
            let Some((_, source)) = self.heap.first().copied() else { return Ok(None) };
            self.sources[source].advance();
            match self.sources[source].key(&self.schema)? {
                Some(key) => self.heap[0].0 = key,
                None => {
                    self.heap.swap_remove(0);
                    // Its file, if it is one, goes as soon as it has been read: what takes its entries takes its room.
                    self.sources[source] = Source::Done;
                }
            }
            self.sift_down(0);
        }
        self.started = true;
        let Some((_, source)) = self.heap.first().copied() else { return Ok(None) };
        Ok(Some(self.sources[source].raw()))
    }
}
