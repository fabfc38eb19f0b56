//! How large tables were when a plan was made, for plans that are kept.
//!
//! # Purpose
//! A plan made while a table had one page reads all of it, and goes on doing so when it has a thousand, unless ANALYZE comes by. Queues are
//! such tables: empty when their clients connect, full at noon. A kept plan is made anew once one of its tables has become much larger, or
//! much smaller.
//!
//! # Invariants
//! Looking is a load of the length that the pool knows, for each table: no lock, no catalog, no system call. A plan is never wrong by what this
//! overlooks, only slow: so what is not known counts as unchanged.
//!
//! # Differs from PostgreSQL
//! There a generic plan stays until something invalidates it.

use crate::plan::Plan;
use buffer::RelationHandle;
use engine::relation::Storage;

/// So many times larger or smaller is much.
const TIMES: u32 = 8;
/// And so many pages at least: below, any plan is quick.
const PAGES: u32 = 16;

/// The tables that a plan went by the sizes of.
pub(super) struct PlanSizes(Box<[(RelationHandle, u32)]>);

impl PlanSizes {
    pub(super) fn of(plan: &Plan, storage: &Storage) -> PlanSizes {
        let opened = plan.sizes.iter().filter_map(|(table, pages)| {
            Some((storage.open(table.storage?, table.persistence), *pages))
        });
        PlanSizes(opened.collect())
    }

    /// Is none of them of quite another size by now?
    #[inline]
    pub(super) fn still(&self) -> bool {
        self.0.iter().all(|(rel, then)| match rel.known_blocks() {
            Some(now) => !differ(*then, now.0),
            None => true,
        })
    }
}

fn differ(then: u32, now: u32) -> bool {
    let (less, more) = (then.min(now), then.max(now));
    more - less >= PAGES && more / TIMES >= less
}

#[cfg(test)]
mod tests {
    use super::differ;

    #[test]
    fn much_is_eight_times_and_sixteen_pages() {
        for (then, now) in [(0, 16), (1, 17), (2, 18), (3, 24), (100, 800), (1, u32::MAX - 1)] {
            assert!(differ(then, now) && differ(now, then), "{then} {now}");
        }
        for (then, now) in [(0, 0), (0, 15), (1, 16), (3, 23), (100, 799), (5000, 5000)] {
            assert!(!differ(then, now) && !differ(now, then), "{then} {now}");
        }
    }
}
