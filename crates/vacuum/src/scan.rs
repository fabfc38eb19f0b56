//! The first pass over the heap, by one thread or several.
//!
//! # Purpose
//! Which blocks are read is decided in one place, in order, whoever reads them: [`Chooser`], under a lock. Threads draw stretches of the
//! table from it, each has a read stream, a ring, a [`HeapPass`] of its own, and what they have found is put together when they come back.
//!
//! # Invariants
//! - Every chosen block is dealt with by one thread, once. A thread that stops gives back what it has drawn and not dealt with; pages in use that wait for
//!   their second turn are the leader's then, and the scan is not over before they have had it.
//! - So what is skipped, and with it whether relfrozenxid may advance, does not depend on the number of threads. Nor does what is done
//!   to a page: all ask the same cut-offs and the same list of snapshots, and pages are judged one by one.
//! - No index pass and no reap runs while a thread scans: when the memory for dead items is full all come back, and begin again
//!   when it is free. No thread goes on to a page when the memory all of them hold together leaves no room for one more page each.
//! - The rings together are as large as the vacuum's ring.
//!
//! # Locks
//! The lock on what is to be drawn (rank 397) is held while map pages are read, and never with a heap page latched.

use crate::heap_pass::HeapPass;
use crate::plan::VacuumPlan;
use crate::progress::{VacuumProgress, add};
use crate::put_off::again;
use crate::skip::{Chooser, Chosen};
use crate::throttle::Throttle;
use base::sync::{Mutex, Rank};
use base::{BlockNumber, Error, Fork, Result};
use buffer::{ReadStream, Strategy};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of pages that are read only to be frozen so many are drawn at once: what became of those before decides about more.
const EAGER_AT_ONCE: usize = 32;
/// The view is told after so many pages.
const TELL_EVERY_PAGES: u32 = 16;

/// What the threads of a scan share.
pub(crate) struct Scan<'a> {
    /// The table, as errors call it.
    relation: String,
    plan: &'a VacuumPlan,
    progress: &'a VacuumProgress,
    stretches: Mutex<Stretches>,
    /// Everybody is to come back.
    pub stop: AtomicBool,
    /// Since the memory is full.
    full: AtomicBool,
    /// The failsafe has struck and is not asked again.
    pub failsafe: AtomicBool,
    /// The eager freezing that is over, after so many pages, and of which nobody has been told.
    eager_over: AtomicU64,
    /// A stretch lies within so many blocks,
    stretch_blocks: u32,
    /// and has so many pages to be read.
    stretch_pages: usize,
    threads: u32,
}

struct Stretches {
    chooser: Chooser,
    /// Chosen, but of the next stretch.
    next: Option<Chosen>,
    given_back: VecDeque<VecDeque<Chosen>>,
    ended: bool,
}

impl<'a> Scan<'a> {
    /// Of a table of so many pages, of which about `to_read` are to be read.
    pub fn new(
        plan: &'a VacuumPlan,
        relation: String,
        progress: &'a VacuumProgress,
        chooser: Chooser,
        pages: u32,
        to_read: u32,
        threads: usize,
    ) -> Scan<'a> {
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        // Small enough that all end at about the same time, also if what is to be read lies together.
        let most = plan.parallel.stretch_blocks.max(1);
        let even =
            |pages: u32| (pages / threads.saturating_mul(8).max(1)).clamp(most.min(64), most);
        let stretches =
            Stretches { chooser, next: None, given_back: VecDeque::new(), ended: false };
        Scan {
            relation,
            plan,
            progress,
            stretches: Mutex::new(Rank(397), stretches),
            stop: AtomicBool::new(false),
            full: AtomicBool::new(false),
            failsafe: AtomicBool::new(false),
            eager_over: AtomicU64::new(0),
            stretch_blocks: even(pages),
            stretch_pages: even(to_read) as usize,
            threads,
        }
    }

    /// Before anybody scans.
    pub fn begin_round(&self) {
        self.stop.store(false, Ordering::SeqCst);
        self.full.store(false, Ordering::SeqCst);
    }

    /// Nothing is left to be drawn?
    pub fn is_over(&self) -> bool {
        let s = self.stretches.lock();
        s.ended && s.next.is_none() && s.given_back.is_empty()
    }

    /// Did the threads come back for lack of memory?
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    /// Was an all-visible page that is not all-frozen passed over?
    pub fn skipped_visible(&self) -> bool {
        self.stretches.lock().chooser.skipped_visible
    }

    /// If eager freezing is over, and it has not been said: after how many pages.
    pub fn eager_over(&self) -> Option<u64> {
        Some(self.eager_over.swap(0, Ordering::Relaxed)).filter(|n| *n > 0)
    }

    /// Draws a stretch.
    fn draw(&self, into: &mut VecDeque<Chosen>) -> Result<()> {
        let mut s = self.stretches.lock();
        if let Some(back) = s.given_back.pop_front() {
            into.extend(back);
            return Ok(());
        }
        let (mut eager, mut drawn) = (0, 0);
        let mut stretch = None;
        loop {
            let next = match s.next.take() {
                Some(next) => Some(next),
                None => s.chooser.choose()?,
            };
            let Some(mut next) = next else {
                s.ended = true;
                return Ok(());
            };
            let its = next.block.0 / self.stretch_blocks;
            let enough = eager == EAGER_AT_ONCE || drawn == self.stretch_pages;
            if *stretch.get_or_insert(its) != its || enough {
                s.next = Some(next);
                return Ok(());
            }
            next.begins = drawn == 0 && self.threads > 1;
            eager += usize::from(next.eager);
            drawn += 1;
            into.push_back(next);
        }
    }

    fn give_back(&self, mut rest: VecDeque<Chosen>) {
        if let Some(first) = rest.front_mut() {
            first.begins = self.threads > 1;
            self.stretches.lock().given_back.push_back(rest);
        }
    }

    /// One thread's part: until nothing is left, or somebody says stop. The leader says what there is to say on the way.
    pub fn work(
        &self,
        pass: &mut HeapPass<'_>,
        strategy: &mut Strategy,
        throttle: &mut Throttle,
        leader: Option<&dyn Fn(&Scan<'_>)>,
    ) -> Result<()> {
        let hand = Rc::new(RefCell::new(Hand::default()));
        let blocks = Blocks { scan: self, hand: hand.clone() };
        let own = std::mem::replace(strategy, Strategy::Normal);
        let mut stream = ReadStream::new(pass.heap.relation(), Fork::Main, own, blocks);
        let at = Cell::new(None);
        let result = self.pages(pass, &mut stream, &hand, &at, throttle, leader);
        let result = result.map_err(|e| match at.get() {
            Some(block) => e.within(format_args!(
                "while scanning block {block} of relation \"{}\"",
                self.relation
            )),
            None => e.within(format_args!("while scanning relation \"{}\"", self.relation)),
        });
        *strategy = stream.into_strategy();
        let mut hand = hand.borrow_mut();
        let mut rest = std::mem::take(&mut hand.handed);
        rest.append(&mut hand.drawn);
        self.give_back(rest);
        // At once: if another thread fails, nobody asks this one.
        pass.note_without_entries();
        result
    }

    fn pages(
        &self,
        pass: &mut HeapPass<'_>,
        stream: &mut ReadStream<Blocks<'_>>,
        hand: &RefCell<Hand>,
        at: &Cell<Option<BlockNumber>>,
        throttle: &mut Throttle,
        leader: Option<&dyn Fn(&Scan<'_>)>,
    ) -> Result<()> {
        let txns = &pass.heap.context().txns;
        let failsafe_every = (self.plan.failsafe_every_pages / self.threads).max(1);
        let (mut pages, mut passed) = (0u32, 0u64);
        pass.comes_back = true;
        let tell = |passed: &mut u64, pass: &HeapPass<'_>| {
            add(&self.progress.heap_blks_scanned, std::mem::take(passed));
            pass.totals.tell(self.progress);
            if let Some(say) = leader {
                say(self);
            }
        };
        while !self.stop.load(Ordering::Relaxed) {
            if self.is_out_of_room(pass) {
                break;
            }
            let Some(pin) = stream.next() else { break };
            let pin = pin.inspect_err(|_| at.set(None))?;
            at.set(Some(pin.block()));
            // Blocks that the stream passed over are gone from the table (nobody cuts it but us): keep step all the same.
            let chosen = loop {
                match hand.borrow_mut().handed.pop_front() {
                    Some(c) if c.block == pin.block() => break c,
                    Some(_) => {}
                    None => {
                        base::bail!(
                            INTERNAL_ERROR,
                            "vacuum lost its place at block {}",
                            pin.block()
                        )
                    }
                }
            };
            throttle.point(pass.backend)?;
            let frozen = pass.page(chosen, pin)?;
            pass.clean_batch(stream.strategy(), throttle, false)?;
            if chosen.eager
                && let Some(n) = self.stretches.lock().chooser.eager.result(frozen)
            {
                self.eager_over.store(n, Ordering::Relaxed);
            }
            passed += u64::from(chosen.passed);
            pages += 1;
            if pages.is_multiple_of(TELL_EVERY_PAGES) {
                tell(&mut passed, pass);
            }
            if pages.is_multiple_of(failsafe_every)
                && !self.failsafe.load(Ordering::Relaxed)
                && self.plan.failsafe(txns.next_xid())
            {
                // Index work is dropped at once, by all: what waits for it goes the long way.
                if let Some(way) = &pass.one_visit {
                    way.close();
                }
                self.stop.store(true, Ordering::SeqCst);
            }
        }
        self.come_back(pass, stream.strategy(), at, throttle)?;
        pass.clean_batch(stream.strategy(), throttle, true)?;
        tell(&mut passed, pass);
        hand.borrow_mut().failed.take().map_or(Ok(()), Err)
    }

    /// Pages that were in use when their turn came have their second one; those that are in use again are left as they are.
    fn come_back(
        &self,
        pass: &mut HeapPass<'_>,
        strategy: &mut Strategy,
        at: &Cell<Option<BlockNumber>>,
        throttle: &mut Throttle,
    ) -> Result<()> {
        pass.comes_back = false;
        let mut blocks = std::mem::take(&mut pass.in_use).into_iter().peekable();
        if blocks.peek().is_some() {
            base::stop_point!("vacuum.scan.in_use_again");
        }
        while let Some(&block) = blocks.peek() {
            if self.stop.load(Ordering::Relaxed) || self.is_out_of_room(pass) {
                break;
            }
            blocks.next();
            at.set(Some(block));
            throttle.point(pass.backend)?;
            if self.threads > 1 {
                // Between them there are others' pages.
                pass.keys.begin_stretch(block);
            }
            let pin = pass.heap.relation().pin(Fork::Main, block, strategy)?;
            pass.visit(again(block), pin)?;
            pass.clean_batch(strategy, throttle, false)?;
        }
        pass.in_use.extend(blocks);
        Ok(())
    }

    /// If there is no memory for one more page, all are called back.
    fn is_out_of_room(&self, pass: &mut HeapPass<'_>) -> bool {
        let out = !pass.has_room(self.threads) && !pass.totals.is_empty();
        if out {
            self.full.store(true, Ordering::SeqCst);
            self.stop.store(true, Ordering::SeqCst);
        }
        out
    }
}

/// What one thread has drawn.
#[derive(Default)]
struct Hand {
    /// Not yet handed to the read stream.
    drawn: VecDeque<Chosen>,
    /// Handed to it, and not yet dealt with.
    handed: VecDeque<Chosen>,
    /// The map could not be read.
    failed: Option<Error>,
}

/// The blocks that one thread's stream reads.
struct Blocks<'a> {
    scan: &'a Scan<'a>,
    hand: Rc<RefCell<Hand>>,
}

impl Iterator for Blocks<'_> {
    type Item = BlockNumber;
    fn next(&mut self) -> Option<BlockNumber> {
        let mut hand = self.hand.borrow_mut();
        if hand.drawn.is_empty()
            && let Err(e) = self.scan.draw(&mut hand.drawn)
        {
            hand.failed = Some(e);
        }
        let chosen = hand.drawn.pop_front()?;
        hand.handed.push_back(chosen);
        Some(chosen.block)
    }
}
