//! # Purpose
//! Read streams: pages in an order known ahead, read before they are asked for, neighbours in one vectored read.
//!
//! # Invariants
//! - The stream holds pins on the pages read ahead, never more than an eighth of the pool.
//! - It reads a run only of blocks that were not cached, and finishes the read before it looks at anything else, so no
//!   thread waits for it while it waits for another.
//!
//! - What is asked of the system ahead of the runs takes no frame: how far that goes does not depend on the ring.
//!
//! # Differs from PostgreSQL
//! Reads are synchronous; the system is asked to read what comes after the run in the meantime. A run grows while the stream goes on in
//! order, up to 1 MiB, and so does what is asked ahead, so a LIMIT 1 does not read that much.

use crate::frame::READING;
use crate::pin::PinnedPage;
use crate::pool::Entered;
use crate::relation::RelationHandle;
use crate::stats::combined_max;
use crate::strategy::Strategy;
use base::{BlockNumber, Error, Fork, Result};
use std::collections::VecDeque;

/// The first run reads so many pages at most.
const FIRST_RUN: usize = 4;
/// The system is asked for so many pages ahead of the run: 1 MiB in one piece, or so many places that lie apart (a disk serves
/// some at a time).
const AHEAD_IN_ORDER: usize = 128;
const AHEAD_APART: usize = 32;

/// Pages of a fork in the order of an iterator of block numbers.
///
/// Blocks beyond the end are passed over. After an error the stream may be asked for the pages that follow.
pub struct ReadStream<I> {
    relation: RelationHandle,
    fork: Fork,
    strategy: Strategy,
    blocks: I,
    /// Blocks drawn from the iterator and not dealt with.
    drawn: VecDeque<BlockNumber>,
    ready: VecDeque<Result<PinnedPage>>,
    /// How many pages the next run may have.
    run: usize,
    run_max: usize,
    /// The block after the last run.
    next: Option<u32>,
    /// How far the system is asked ahead.
    ahead: usize,
    /// So many of `drawn`, the first ones, it was asked for, or they are cached.
    asked: usize,
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
        let mut run_max = config.combine_pages.min((config.frames / 8).max(1)).min(combined_max());
        if let Some(ring) = strategy.ring_pages() {
            // A run must not come round its own ring.
            run_max = run_max.min((ring / 2).max(1));
        }
        ReadStream {
            relation: relation.clone(),
            fork,
            strategy,
            blocks,
            drawn: VecDeque::new(),
            ready: VecDeque::new(),
            run: FIRST_RUN.min(run_max),
            run_max,
            next: None,
            ahead: 0,
            asked: 0,
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
            let block = self.draw()?;
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
        let in_order = self.next == Some(block.0);
        if !in_order {
            self.run = FIRST_RUN.min(self.run_max);
        }
        let wanted = self.draw_run(&relation, block, len);
        let pool = relation.inner();
        // All frames first: making room may take a while, and then nobody may be waiting for our reads.
        let mut free = Vec::with_capacity(wanted);
        while free.len() < wanted {
            match pool.take_frame(&mut self.strategy) {
                Ok(n) => free.push(n),
                Err(e) if free.is_empty() => {
                    self.put_back(block, 1, wanted);
                    return Err(e);
                }
                Err(_) => break,
            }
        }
        let entered = free
            .iter()
            .enumerate()
            .take_while(|(i, n)| {
                let block = block.0 + *i as u32;
                pool.enter(&relation.relation, self.fork, block, **n, READING) == Entered::Yes
            })
            .count();
        for n in free.drain(entered..) {
            pool.put_free(n);
        }
        let frames = free;
        if frames.is_empty() {
            // Another thread reads it, or the fork was cut.
            self.put_back(block, 1, wanted);
            if let Some(page) = relation.try_pin(self.fork, block, &mut self.strategy)? {
                self.ready.push_back(Ok(page));
            }
            return Ok(());
        }
        self.put_back(block, frames.len(), wanted);
        let context = self.strategy.context();
        self.ask_ahead(&relation, in_order, len);
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

    fn draw(&mut self) -> Option<BlockNumber> {
        self.asked = self.asked.saturating_sub(1);
        self.drawn.pop_front().or_else(|| self.blocks.next())
    }

    /// The block that comes next.
    fn peek(&mut self) -> Option<BlockNumber> {
        if self.drawn.is_empty() {
            self.drawn.push_back(self.blocks.next()?);
        }
        self.drawn.front().copied()
    }

    /// Draws the blocks that follow `block` and are not cached either, and says how many blocks that makes.
    fn draw_run(
        &mut self,
        relation: &RelationHandle,
        block: BlockNumber,
        len: BlockNumber,
    ) -> usize {
        let mut count = 1;
        while count < self.run {
            match self.peek() {
                Some(next)
                    if next.0 == block.0 + count as u32
                        && next < len
                        && !relation.is_cached(self.fork, next) =>
                {
                    self.draw();
                    count += 1;
                }
                _ => break,
            }
        }
        count
    }

    /// Puts back the blocks of a run from its `from`-th to its `to`-th, which were drawn in vain.
    fn put_back(&mut self, block: BlockNumber, from: usize, to: usize) {
        for i in (from..to).rev() {
            self.drawn.push_front(BlockNumber(block.0 + i as u32));
            self.asked += 1;
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

    /// Asks the system to read on while we read a run, once half of what it was asked for before has been dealt with.
    fn ask_ahead(&mut self, relation: &RelationHandle, in_order: bool, len: BlockNumber) {
        let most = if in_order { AHEAD_IN_ORDER.max(2 * self.run_max) } else { AHEAD_APART };
        let ahead = self.ahead.min(most);
        self.ahead = (2 * ahead).max(FIRST_RUN);
        if self.asked > ahead / 2 {
            return;
        }
        let mut piece: Option<(BlockNumber, u32)> = None;
        while self.asked < ahead {
            if self.drawn.len() == self.asked {
                let Some(block) = self.blocks.next() else { break };
                self.drawn.push_back(block);
            }
            let block = self.drawn[self.asked];
            self.asked += 1;
            if block >= len || relation.is_cached(self.fork, block) {
                continue;
            }
            piece = match piece {
                Some((first, count)) if first.0 + count == block.0 => Some((first, count + 1)),
                other => {
                    if let Some((first, count)) = other {
                        relation.prefetch(self.fork, first, count);
                    }
                    Some((block, 1))
                }
            };
        }
        if let Some((first, count)) = piece {
            relation.prefetch(self.fork, first, count);
        }
    }
}

impl<I: Iterator<Item = BlockNumber>> Iterator for ReadStream<I> {
    type Item = Result<PinnedPage>;
    fn next(&mut self) -> Option<Result<PinnedPage>> {
        ReadStream::next(self)
    }
}
