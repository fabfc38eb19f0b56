//! # Purpose
//! Sorting an index's entries within a bound of memory: runs are sorted on a second thread while the next
//! one fills, spilled to temporary files, and merged.
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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const DEAD_BIT: u16 = 0x8000;
const WRITE_CHUNK: usize = 1 << 20;
static NEXT_SORT: AtomicU64 = AtomicU64::new(0);

/// How much and where.
#[derive(Clone, Debug)]
pub struct SortConfig {
    /// `maintenance_work_mem`.
    pub memory_bytes: usize,
    /// For runs.
    pub disk: Arc<dyn Disk>,
    /// The folder for temporary files.
    pub temp_dir: String,
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

/// A temporary file, removed when dropped.
struct TempFile {
    file: Arc<dyn File>,
    disk: Arc<dyn Disk>,
    path: String,
    len: u64,
}

impl Drop for TempFile {
    fn drop(&mut self) {
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

struct RunWriter {
    config: SortConfig,
    schema: Arc<KeySchema>,
    id: u64,
    runs: u64,
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
        let path = format!("{}/index_sort.{}.{}", self.config.temp_dir, self.id, self.runs);
        self.runs += 1;
        let file = self.config.disk.open(&path, OpenMode::Create).map_err(io(&path, "create"))?;
        let mut run = TempFile { file, disk: self.config.disk.clone(), path: path.clone(), len: 0 };
        let mut chunk = Vec::with_capacity(WRITE_CHUNK + 4096);
        for (_, at) in &arena.index {
            chunk.extend_from_slice(arena.raw(*at));
            if chunk.len() >= WRITE_CHUNK {
                check()?;
                run.file.write_at(&chunk, run.len).map_err(io(&path, "write to"))?;
                run.len += chunk.len() as u64;
                chunk.clear();
            }
        }
        run.file.write_at(&chunk, run.len).map_err(io(&path, "write to"))?;
        run.len += chunk.len() as u64;
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
                config: self.config.clone(),
                schema: self.schema.clone(),
                id: u64::from(std::process::id()) << 32
                    | NEXT_SORT.fetch_add(1, Memory::Relaxed) & 0xFFFF_FFFF,
                runs: 0,
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
        let mut sources = Vec::new();
        let mut schema = None;
        let mut count = 0;
        for mut sorter in sorters {
            // The last arena is sorted here, in two halves, while the run before it is written.
            let mut arena = std::mem::take(&mut sorter.arena);
            let middle = arena.index.len() / 2;
            let mut second = arena.index.split_off(middle);
            let data = &arena.data;
            let (first, rest) = (&mut arena.index, &mut second);
            let sort = |half| sort_index(&sorter.schema, data, half, &|| cancel.check());
            std::thread::scope(|scope| {
                let other = scope.spawn(|| sort(first));
                sort(rest)?;
                match other.join() {
                    Ok(sorted) => sorted,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            })?;
            sorter.collect()?;
            let data = Arc::new(std::mem::take(&mut arena.data));
            let halves = [std::mem::take(&mut arena.index), second];
            for index in halves.into_iter().filter(|i| !i.is_empty()) {
                sources.push(Source::Memory { data: data.clone(), index, next: 0 });
            }
            sorter.spare = None;
            let n = sorter.runs.len().max(1);
            let chunk = (sorter.config.memory_bytes / 2 / n).clamp(16 << 10, 1 << 20);
            for run in std::mem::take(&mut sorter.runs) {
                let reader = RunReader { run, at: 0, buffer: Vec::new(), start: 0, chunk };
                sources.push(Source::Run(reader));
            }
            count += sorter.count;
            if let Some(Worker { full, thread, .. }) = sorter.worker.take() {
                drop(full);
                // It has nothing left to do.
                let _ = thread.join();
            }
            schema = Some(sorter.schema.clone());
        }
        let Some(schema) = schema else {
            return Err(base::err!(INTERNAL_ERROR, "nothing to sort"));
        };
        SortedStream::new(schema, sources, count)
    }
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
                .run
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
    Memory { data: Arc<Vec<u8>>, index: Vec<(u64, u32)>, next: usize },
    Run(RunReader),
}

impl Source {
    fn raw(&self) -> &[u8] {
        match self {
            Source::Memory { data, index, next } => {
                let at = index[*next].1 as usize;
                let len = usize::from(u16::from_le_bytes([data[at], data[at + 1]]) & !DEAD_BIT);
                &data[at..at + 2 + len]
            }
            Source::Run(run) => &run.buffer[run.start..run.start + run.raw_len().unwrap_or(0)],
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
        }
    }
    fn advance(&mut self) {
        match self {
            Source::Memory { next, .. } => *next += 1,
            Source::Run(run) => run.start += run.raw_len().unwrap_or(0),
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
        if self.started {
            let Some((_, source)) = self.heap.first().copied() else { return Ok(None) };
            self.sources[source].advance();
            match self.sources[source].key(&self.schema)? {
                Some(key) => self.heap[0].0 = key,
                None => {
                    self.heap.swap_remove(0);
                }
            }
            self.sift_down(0);
        }
        self.started = true;
        let Some((_, source)) = self.heap.first().copied() else { return Ok(None) };
        let raw = self.sources[source].raw();
        let dead = u16::from_le_bytes([raw[0], raw[1]]) & DEAD_BIT != 0;
        Ok(Some((Item(&raw[2..]), !dead)))
    }
}
