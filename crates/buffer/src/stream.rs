//! # Purpose
//! Read streams: pages in an order known ahead, read before they are asked for, neighbours in one vectored read.
//!
//! # Invariants
//! - The stream holds pins on the pages read ahead, never more than an eighth of the pool.
//! - It reads a run only of blocks that were not cached, and finishes the read before it looks at anything else, so no
//!   thread waits for it while it waits for another.
//!
//! # Differs from PostgreSQL
//! Reads are synchronous; the system is asked to read the range after the run in the meantime. A run grows while the stream goes on in
//! order, up to 1 MiB, so a LIMIT 1 does not read that much.

use crate::frame::READING;
use crate::pin::PinnedPage;
use crate::pool::{Entered, Pool};
use crate::relation::RelationHandle;
use crate::strategy::Strategy;
use base::{BlockNumber, Error, Fork, Result};
use std::collections::VecDeque;

/// The first run reads so many pages at most.
const FIRST_RUN: usize = 4;

/// Pages of a fork in the order of an iterator of block numbers.
///
/// Blocks beyond the end are passed over. After an error the stream may be asked for the pages that follow.
pub struct ReadStream<I> {
    relation: RelationHandle,
    fork: Fork,
    strategy: Strategy,
    blocks: I,
    /// A block drawn from the iterator and not dealt with.
    peeked: Option<BlockNumber>,
    ready: VecDeque<Result<PinnedPage>>,
    /// How many pages the next run may have.
    run: usize,
    run_max: usize,
    /// The block after the last run.
    next: Option<u32>,
    /// Up to where the system was asked to read ahead.
    hinted: u32,
}

impl<I: Iterator<Item = BlockNumber>> ReadStream<I> {
    /// A stream of the pages of `fork` named by `blocks`, under `strategy`.
    pub fn new(
        relation: &RelationHandle,
        fork: Fork,
        strategy: Strategy,
        blocks: I,
    ) -> ReadStream<I> {
        let config = relation.pool.config();
        let mut run_max = config.combine_pages.min((config.frames / 8).max(1));
        if let Some(ring) = strategy.ring_pages() {
            // A run must not come round its own ring.
            run_max = run_max.min((ring / 2).max(1));
        }
        ReadStream {
            relation: relation.clone(),
            fork,
            strategy,
            blocks,
            peeked: None,
            ready: VecDeque::new(),
            run: FIRST_RUN.min(run_max),
            run_max,
            next: None,
            hinted: 0,
        }
    }

    /// The strategy, for pages of another kind that the same operation needs.
    pub fn strategy(&mut self) -> &mut Strategy {
        &mut self.strategy
    }

    /// Ends the stream and gives its strategy back.
    pub fn into_strategy(self) -> Strategy {
        self.strategy
    }

    /// The next page.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is an iterator too; this saves an import"
    )]
    pub fn next(&mut self) -> Option<Result<PinnedPage>> {
        loop {
            if let Some(page) = self.ready.pop_front() {
                return Some(page);
            }
            let block = self.peeked.take().or_else(|| self.blocks.next())?;
            match self.fill(block) {
                Ok(()) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }

    /// Makes pages ready, `block` first.
    fn fill(&mut self, block: BlockNumber) -> Result<()> {
        let relation = self.relation.clone();
        let len = relation.len_blocks(self.fork)?;
        if block >= len {
            return Ok(());
        }
        if self.run_max == 1 || relation.is_cached(self.fork, block) {
            if let Some(page) = relation.try_pin(self.fork, block, &mut self.strategy)? {
                self.ready.push_back(Ok(page));
            }
            return Ok(());
        }
        if self.next != Some(block.0) {
            self.run = FIRST_RUN.min(self.run_max);
        }
        let pool = relation.inner();
        let mut frames = Vec::with_capacity(self.run);
        let mut wanted = block;
        loop {
            if !frames.is_empty() && relation.is_cached(self.fork, wanted) {
                self.peeked = Some(wanted);
                break;
            }
            match pool.enter_for_read(&relation, self.fork, wanted.0, &mut self.strategy) {
                Ok(Some(n)) => frames.push(n),
                Ok(None) => {
                    if !frames.is_empty() || wanted == block {
                        self.peeked_unless_first(wanted, block);
                    }
                    break;
                }
                Err(e) if frames.is_empty() => return Err(e),
                Err(_) => {
                    self.peeked = Some(wanted);
                    break;
                }
            }
            if frames.len() >= self.run {
                break;
            }
            match self.blocks.next() {
                Some(next) if next.0 == block.0 + frames.len() as u32 && next < len => {
                    wanted = next
                }
                other => {
                    self.peeked = other;
                    break;
                }
            }
        }
        if frames.is_empty() {
            // Another thread is reading it, or the fork was cut.
            self.peeked = None;
            if let Some(page) = relation.try_pin(self.fork, block, &mut self.strategy)? {
                self.ready.push_back(Ok(page));
            }
            return Ok(());
        }
        let context = self.strategy.context();
        self.hint(&relation, block.0 + frames.len() as u32, frames.len(), len.0);
        let (good, failure) =
            pool.read_run(&relation.relation, self.fork, block.0, &frames, context);
        for n in &frames[..good] {
            self.ready.push_back(Ok(PinnedPage::new(pool, *n)));
        }
        if let Some(e) = failure {
            self.after_failure(e, block, good, frames.len());
        }
        self.next = Some(block.0 + frames.len() as u32);
        self.run = (self.run * 2).min(self.run_max);
        Ok(())
    }

    fn peeked_unless_first(&mut self, wanted: BlockNumber, first: BlockNumber) {
        if wanted != first {
            self.peeked = Some(wanted);
        }
    }

    /// Queues the error and, one by one, what the run held after the bad page.
    fn after_failure(&mut self, e: Error, first: BlockNumber, good: usize, count: usize) {
        self.ready.push_back(Err(e));
        let relation = self.relation.clone();
        for i in good + 1..count {
            let block = BlockNumber(first.0 + i as u32);
            match relation.try_pin(self.fork, block, &mut self.strategy) {
                Ok(Some(page)) => self.ready.push_back(Ok(page)),
                Ok(None) => {}
                Err(e) => self.ready.push_back(Err(e)),
            }
        }
    }

    /// Asks the system to read on while we read this run.
    fn hint(&mut self, relation: &RelationHandle, from: u32, run: usize, len: u32) {
        if run < self.run_max.min(16) {
            return;
        }
        let to = len.min(from.saturating_add(2 * run as u32));
        let from = from.max(self.hinted.min(to));
        if to > from {
            relation.prefetch(self.fork, BlockNumber(from), to - from);
            self.hinted = to;
        }
    }
}

impl<I: Iterator<Item = BlockNumber>> Iterator for ReadStream<I> {
    type Item = Result<PinnedPage>;
    fn next(&mut self) -> Option<Result<PinnedPage>> {
        ReadStream::next(self)
    }
}

impl Pool {
    /// A frame in the table for a block that is about to be read, in `READING` and pinned; `None` if it is there already or
    /// beyond the end.
    fn enter_for_read(
        &self,
        relation: &RelationHandle,
        fork: Fork,
        block: u32,
        strategy: &mut Strategy,
    ) -> Result<Option<u32>> {
        let n = self.take_frame(strategy)?;
        if self.enter(&relation.relation, fork, block, n, READING) == Entered::Yes {
            return Ok(Some(n));
        }
        self.put_free(n);
        Ok(None)
    }
}
