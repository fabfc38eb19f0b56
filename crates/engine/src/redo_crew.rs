//! Redo by several threads.
//!
//! # Purpose
//! A server that crashed is not there until its log is replayed, and that is a core's work: here it is all cores'.
//!
//! # Layout
//! The *reader*, the thread that recovers, reads the log, checks its records and looks which pages each changes. A page is one *worker's*
//! ([`RedoShare`]). Records go to the workers in batches: their bytes, once for all, and for each worker the list of those that change a page of his. He
//! decodes of them what concerns him.
//!
//! # Invariants
//! - One worker makes all changes of a page, in the log's order. No more is asked of the order: redo changes a page from itself and the record alone.
//! - What is no change of pages the reader replays himself. Before a record that ends files he waits until the workers have done all that came before
//!   (a *fence*); one that only makes files comes before all records of their pages, and one that marks an XID concerns no page.
//! - A worker that failed goes on to take what he is given, and does nothing with it: the reader never waits in vain. Of several failures the one that
//!   comes first in the log is told.
//!
//! # Crash cases
//! None of its own: replay begins again at the redo point, and passes over pages that have a change already.
//!
//! # Locks
//! The failure (rank 290), with nothing below it.
//!
//! # Differs from PostgreSQL
//! There one process replays the log.

use crate::database::Engine;
use crate::storage::{ends_files, is_of_pages, redo_images};
use base::sync::{Arc, Mutex, Rank};
use base::{Error, Lsn, PageTag, Result};
use buffer::{RedoPages, RedoShare, Role};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use wal::{RawRecord, ResourceManager};

/// A batch is given out when it has so many bytes.
const BATCH_BYTES: usize = 128 << 10;
/// So many batches wait for a worker.
const BATCHES_WAITING: usize = 16;

/// Records, and who has to do with which.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    records: Vec<(Lsn, Range<usize>)>,
    /// For each worker.
    shares: Vec<Vec<u32>>,
}

impl Batch {
    fn new(workers: usize) -> Batch {
        Batch { shares: vec![Vec::new(); workers], ..Batch::default() }
    }

    /// Without records, its memory kept.
    fn emptied(mut self) -> Batch {
        self.bytes.clear();
        self.records.clear();
        self.shares.iter_mut().for_each(Vec::clear);
        self
    }

    fn add(&mut self, raw: &RawRecord<'_>, tags: &[PageTag]) {
        let number = self.records.len() as u32;
        let from = self.bytes.len();
        self.bytes.extend_from_slice(raw.bytes());
        self.records.push((raw.lsn(), from..self.bytes.len()));
        let workers = self.shares.len();
        for tag in tags {
            let share = &mut self.shares[RedoShare::of(*tag, workers)];
            if share.last() != Some(&number) {
                share.push(number);
            }
        }
    }

    fn of_worker(&self, worker: usize) -> impl Iterator<Item = RawRecord<'_>> {
        self.shares[worker].iter().map(|n| {
            let (lsn, bytes) = &self.records[*n as usize];
            RawRecord::new(&self.bytes[bytes.clone()], *lsn)
        })
    }
}

enum Job {
    Batch(Arc<Batch>),
    /// Say when you come to this.
    Fence,
}

/// Of the workers' failures, the first in the log's order.
struct Failure {
    happened: AtomicBool,
    first: Mutex<Option<(Lsn, Error)>>,
}

impl Failure {
    fn note(&self, at: Lsn, error: Error) {
        let mut first = self.first.lock();
        if first.as_ref().is_none_or(|(lsn, _)| at < *lsn) {
            *first = Some((at, error));
        }
        self.happened.store(true, Ordering::Release);
    }
    fn happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }
}

/// The reader's end of what leads to a worker.
struct Worker {
    jobs: SyncSender<Job>,
    fenced: Receiver<()>,
}

/// The workers, as the reader sees them.
pub(crate) struct Crew<'e> {
    engine: &'e Engine,
    workers: Vec<Worker>,
    batch: Batch,
    /// Those given out, the oldest first: whose records all are replayed is filled again.
    out: VecDeque<Arc<Batch>>,
    failure: &'e Failure,
}

/// Reads the log by `read`, which gives the records to a crew of so many workers; returns when all of them are replayed.
///
/// # Errors
/// A worker's; else `read`'s.
pub(crate) fn with_crew<R>(
    engine: &Engine,
    size: usize,
    read: impl FnOnce(&mut Crew<'_>) -> Result<R>,
) -> Result<R> {
    let failure = Failure { happened: AtomicBool::new(false), first: Mutex::new(Rank(290), None) };
    let done = std::thread::scope(|scope| {
        let role = Role::mine();
        let mut workers = Vec::with_capacity(size);
        for number in 0..size {
            let (jobs, to_do) = sync_channel(BATCHES_WAITING);
            let (fence, fenced) = sync_channel(1);
            let (share, failure) = (RedoShare::new(engine.pool.clone(), number, size), &failure);
            let work = move || {
                role.take();
                engine.redo_jobs(number, &share, &to_do, &fence, failure);
            };
            std::thread::Builder::new()
                .name("redo".to_owned())
                .spawn_scoped(scope, work)
                .map_err(|e| Error::io("could not start a thread for recovery", e))?;
            workers.push(Worker { jobs, fenced });
        }
        let (batch, out) = (Batch::new(size), VecDeque::new());
        let mut crew = Crew { engine, workers, batch, out, failure: &failure };
        let done = read(&mut crew)?;
        crew.fence()?;
        Ok(done)
    });
    let failed = failure.first.lock().take();
    match failed {
        Some((_, error)) => Err(error),
        None => done,
    }
}

impl Crew<'_> {
    /// Has a record replayed, now or soon.
    ///
    /// # Errors
    /// What it meets; [`with_crew`] tells what a worker met.
    pub(crate) fn take(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        if is_of_pages(raw.rmgr()?, raw.info()) {
            let tags = raw.tags()?;
            if !tags.is_empty() {
                self.engine.txns.note_replayed_xid(raw.xid());
                self.batch.add(raw, &tags);
                return if self.batch.bytes.len() < BATCH_BYTES { Ok(()) } else { self.send() };
            }
        }
        let record = raw.decode()?;
        if ends_files(&record)? {
            self.fence()?;
        }
        self.engine.redo_record(&record)
    }

    /// Gives out what was gathered.
    fn send(&mut self) -> Result<()> {
        let next = match self.out.pop_front().map(Arc::try_unwrap) {
            Some(Ok(done)) => done.emptied(),
            Some(Err(busy)) => {
                self.out.push_front(busy);
                Batch::new(self.workers.len())
            }
            None => Batch::new(self.workers.len()),
        };
        let batch = Arc::new(std::mem::replace(&mut self.batch, next));
        self.out.push_back(Arc::clone(&batch));
        for (share, worker) in batch.shares.iter().zip(&self.workers) {
            if !share.is_empty() {
                worker.jobs.send(Job::Batch(Arc::clone(&batch))).map_err(|_| gone())?;
            }
        }
        if self.failure.happened() { Err(gone()) } else { Ok(()) }
    }

    /// Waits until all that was taken is replayed.
    fn fence(&mut self) -> Result<()> {
        self.send()?;
        for worker in &self.workers {
            worker.jobs.send(Job::Fence).map_err(|_| gone())?;
        }
        for worker in &self.workers {
            worker.fenced.recv().map_err(|_| gone())?;
        }
        if self.failure.happened() { Err(gone()) } else { Ok(()) }
    }
}

/// What the reader goes away with when a worker has failed, who says why.
fn gone() -> Error {
    Error::corrupt_file("a thread of recovery has failed")
}

impl Engine {
    /// What a worker does until the reader goes away.
    fn redo_jobs(
        &self,
        number: usize,
        share: &RedoShare,
        jobs: &Receiver<Job>,
        fence: &SyncSender<()>,
        failure: &Failure,
    ) {
        for job in jobs {
            match job {
                Job::Batch(batch) => {
                    for raw in batch.of_worker(number) {
                        if failure.happened() {
                            break;
                        }
                        if let Err(error) = self.redo_share(&raw, share) {
                            failure.note(raw.lsn(), error);
                        }
                    }
                }
                Job::Fence => {
                    share.forget_relations();
                    if fence.send(()).is_err() {
                        break;
                    }
                }
            }
        }
    }

    /// Replays a record that changes pages on those of the share.
    fn redo_share(&self, raw: &RawRecord<'_>, share: &RedoShare) -> Result<()> {
        let parts = raw.parts()?;
        let mut changes = false;
        for block in parts.blocks.iter().filter(|b| share.has(b.tag)) {
            if block.is_restored() {
                // From the log's bytes into the page.
                share.restore(block.tag, raw.end_lsn(), |to| {
                    block.restore(to).map(|_| ()).map_err(|what| raw.senseless(what))
                })?;
            } else {
                changes = true;
            }
        }
        if !changes {
            return Ok(());
        }
        let record = raw.assemble(&parts, |b| share.has(b.tag) && !b.is_restored())?;
        match record.rmgr {
            ResourceManager::Heap => heap::redo(&record, share),
            ResourceManager::Btree => btree::redo(&record, share),
            _ => redo_images(&record, share),
        }
    }
}
