//! Which pages the heap pass reads.
//!
//! # Purpose
//! All-visible pages need not be read (all-frozen ones never), but short runs of them are, since jumping costs more than reading. Eager
//! vacuums read some all-visible pages on purpose, to freeze them before an aggressive vacuum has to.
//!
//! # Invariants
//! - The last page is always read: whether it can be cut off must be known.
//! - If an all-visible page that is not all-frozen was skipped, relfrozenxid must not advance: `skipped_visible` says so.
//! - Eager scanning stops for the region when its failures are used up, and for this vacuum when the successes are.

use crate::plan::VacuumMode;
use base::{BlockNumber, Result};
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{MapPin, VisibilityMap};

/// Runs of skippable pages shorter than this are read.
pub const MIN_RUN: u32 = 32;
/// Eager scanning counts failures by regions of so many blocks.
pub const REGION_BLOCKS: u32 = 4096;
/// At most this part of the all-visible, not all-frozen pages is frozen by eager scanning in one vacuum.
pub const MAX_EAGER_SUCCESS_RATE: f64 = 0.2;

/// A page to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Which.
    pub block: BlockNumber,
    /// Read only to be frozen.
    pub eager: bool,
    /// The blocks since the one chosen before, this one included.
    pub passed: u32,
    /// The first of a stretch that one thread of several has drawn.
    pub begins: bool,
}

/// The state of eager scanning.
#[derive(Clone, Copy, Debug)]
pub struct Eager {
    successes: u64,
    successes_left: u64,
    failures_left: u32,
    failures_per_region: u32,
    next_region: u32,
}

impl Eager {
    /// None.
    pub fn off() -> Eager {
        Eager {
            successes: 0,
            successes_left: 0,
            failures_left: 0,
            failures_per_region: 0,
            next_region: u32::MAX,
        }
    }
    /// For a table with so many pages to freeze; the first region ends at block `first_end` (0..4,095), drawn at random so
    /// that not every vacuum tries the same pages.
    pub fn new(unfrozen_visible_pages: u64, failure_rate: f64, first_end: u32) -> Eager {
        let per_region = (failure_rate * f64::from(REGION_BLOCKS)) as u32;
        let part = 1.0 - f64::from(first_end) / f64::from(REGION_BLOCKS);
        let successes = (unfrozen_visible_pages as f64 * MAX_EAGER_SUCCESS_RATE) as u64;
        if successes == 0 || per_region == 0 {
            return Eager::off();
        }
        Eager {
            successes,
            successes_left: successes,
            failures_left: (f64::from(per_region) * part) as u32,
            failures_per_region: per_region,
            next_region: first_end,
        }
    }
    fn on(&self) -> bool {
        self.successes_left > 0 && self.failures_left > 0
    }
    /// An eagerly read page was frozen, or not. If that was the last success there may be in this vacuum: how many there were.
    pub fn result(&mut self, frozen: bool) -> Option<u64> {
        if !frozen {
            self.failures_left = self.failures_left.saturating_sub(1);
            return None;
        }
        let last = self.successes_left == 1;
        self.successes_left = self.successes_left.saturating_sub(1);
        last.then_some(self.successes)
    }
}

/// The blocks to read, in order. One for a whole vacuum, however many threads read.
pub struct Chooser {
    map: VisibilityMap,
    pin: MapPin,
    pages: u32,
    mode: VacuumMode,
    use_map: bool,
    next: u32,
    /// The next block that must be read, and whether it is read eagerly.
    unskippable: Option<(u32, bool)>,
    /// Eager scanning: told what became of the pages read for it.
    pub eager: Eager,
    /// An all-visible page that is not all-frozen was passed over.
    pub skipped_visible: bool,
}

impl Chooser {
    /// The blocks of a table of `pages` pages.
    pub fn new(
        map: VisibilityMap,
        pages: u32,
        mode: VacuumMode,
        use_map: bool,
        eager: Eager,
    ) -> Chooser {
        Chooser {
            map,
            pin: MapPin::none(),
            pages,
            mode,
            use_map,
            next: 0,
            unskippable: None,
            eager,
            skipped_visible: false,
        }
    }

    /// Looks from `from` on for a page that must be read; notes in the result whether all-visible ones were passed.
    fn find_unskippable(&mut self, from: u32) -> Result<(u32, bool, bool)> {
        let mut skips_visible = false;
        let mut block = from;
        loop {
            let eager = &mut self.eager;
            if block >= eager.next_region {
                eager.next_region = eager.next_region.saturating_add(REGION_BLOCKS);
                eager.failures_left = eager.failures_per_region;
            }
            // What is noted already, or of no interest, is passed over by the run.
            let noted = skips_visible && self.mode != VacuumMode::Aggressive && !eager.on();
            let passed = if noted { ALL_VISIBLE } else { ALL_VISIBLE | ALL_FROZEN };
            let end = eager.next_region.min(self.pages.saturating_sub(1));
            if self.use_map && block < end {
                let (from, end) = (BlockNumber(block), BlockNumber(end));
                let lacking = self.map.first_lacking(from, end, passed, &mut self.pin)?;
                if lacking == end {
                    block = end.0;
                    continue;
                }
                block = lacking.0;
            }
            let bits = self.map.bits(BlockNumber(block), &mut self.pin)?;
            if bits & ALL_VISIBLE == 0 || block + 1 >= self.pages || !self.use_map {
                return Ok((block, false, skips_visible));
            }
            if bits & ALL_FROZEN == 0 {
                if self.mode == VacuumMode::Aggressive {
                    return Ok((block, false, skips_visible));
                }
                if self.mode == VacuumMode::Eager && self.eager.on() {
                    return Ok((block, true, skips_visible));
                }
                skips_visible = true;
            }
            block += 1;
        }
    }

    /// The next block.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn choose(&mut self) -> Result<Option<Chosen>> {
        if self.next >= self.pages {
            return Ok(None);
        }
        let from = self.next;
        if self.unskippable.is_none_or(|(block, _)| self.next > block) {
            let (block, eager, skips_visible) = self.find_unskippable(self.next)?;
            self.unskippable = Some((block, eager));
            if block - self.next >= MIN_RUN {
                self.next = block;
                self.skipped_visible |= skips_visible;
            }
        }
        let block = self.next;
        self.next += 1;
        let eager = self.unskippable == Some((block, true));
        Ok(Some(Chosen {
            block: BlockNumber(block),
            eager,
            passed: self.next - from,
            begins: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_scanning_ends_with_its_failures_or_its_successes() {
        // A half of the first region, and of the 40 failures that a region has.
        let new = || Eager::new(1000, 0.01, 2048);
        let mut eager = new();
        assert!((0..19).all(|_| eager.result(false).is_none() && eager.on()));
        assert!(eager.result(false).is_none() && !eager.on());
        // A fifth of what there is to be frozen.
        let mut eager = new();
        assert!((0..199).all(|_| eager.result(true).is_none() && eager.on()));
        assert_eq!(eager.result(true), Some(200));
        assert!(!eager.on());
        assert!(!Eager::new(4, 0.01, 0).on() && !Eager::new(1000, 0.0, 0).on());
    }
}
