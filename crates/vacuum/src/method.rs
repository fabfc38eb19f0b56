//! How an index's dead entries are found, by cost.
//!
//! # Purpose
//! Bulk deletion reads the whole index, whatever is dead; retail deletion looks every dead row's key up. Which is cheaper depends on
//! how many rows are dead, on how many leaves their entries lie, and on what is cached, and on the machine ([`crate::machine`]). What both have to do (changing the leaves that
//! have dead entries) is left out.
//!
//! # Invariants
//! Retail deletion's cost only grows with the number of dead rows, so an index for which it is too dear already will not be cheaper later.

use crate::index_pass::IndexTarget;
use crate::machine::{Machine, Pace};
use crate::plan::{IndexMethod, VacuumPlan};
use crate::throttle::Costs;
use base::{BlockNumber, Fork, Result};
use heap::visibility_map::ALL_VISIBLE;
use heap::{Heap, MapPin};

/// Microseconds on the machine of [`Machine::REFERENCE`] (docs/decisions/0048); on others they go with its paces. At the pace of visits: a page
/// passed over, a page's second visit.
const BULK_PAGE_US: f64 = 2.1;
const SECOND_VISIT_US: f64 = 2.6;
/// At the pace of searches: a leaf descended to and locked; an entry asked about; a key taken from the heap, its bytes.
const LEAF_US: f64 = 1.8;
const BULK_ENTRY_US: f64 = 0.001;
const KEY_US: f64 = 0.017;
const KEY_BYTE_US: f64 = 0.0006;
/// A predicate evaluated, or an expression: measured as 0.05 µs for `v + 1`, 0.14 for `v >= 0`, 0.24 for `lower(t) <> 'a' AND v > 0`.
const COMPUTED_US: f64 = 0.12;
/// Out of order: a comparison while sorting, and each byte of the keys that it fetches; a search on a leaf.
const KEY_SORT_US: f64 = 0.003;
const KEY_SORT_BYTE_US: f64 = 0.0003;
const KEY_FIND_US: f64 = 0.3;
/// A key kept and cut away again.
const KEPT_KEY_US: f64 = 0.04;
/// At the pace of visits: a page judged once more.
const JUDGED_AGAIN_US: f64 = 1.2;
/// Pages asked for when it matters what part of a table the pool holds.
const CACHED_ASKED: u32 = 128;
/// Dead rows a page from which on two keys a page lead to all of them (`one_visit/entries.rs`).
pub const WALK_ROOTS: f64 = 8.0;
/// The order that keys must come in to be looked up batch by batch, from 0 to 1.
const IN_ORDER: f64 = 0.9;

/// What the costs depend on, of an index and its table.
#[derive(Clone, Copy, Debug)]
pub struct IndexShape {
    /// The index's pages.
    pub pages: f64,
    /// Of these, in the pool.
    pub cached_pages: f64,
    /// Its entries.
    pub entries: f64,
    /// The table's pages.
    pub heap_pages: f64,
    /// How much the key's order is the rows' order, from 0 to 1.
    pub correlation: f64,
    /// What part of the dead rows has an entry.
    pub dead_share: f64,
    /// Its keys are computed.
    pub computed: bool,
    /// The machine's paces.
    pub machine: Machine,
}

/// The dead rows.
#[derive(Clone, Copy, Debug)]
pub struct DeadShape {
    /// How many.
    pub items: f64,
    /// On so many heap pages.
    pub pages: f64,
}

/// What coming back to a page takes.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// The part of the pages with dead rows that the pool does not hold. They are read into the vacuum's ring and are gone, written, when it
    /// comes back for their line pointers: then they are read and made dirty once more.
    pub missed: f64,
    /// What the cost delay takes in microseconds for a page found in the pool, one read, one made dirty.
    pub delay_us: [f64; 3],
}

impl Return {
    /// To pages that the pool holds, nothing being slowed down.
    pub const CHEAP: Return = Return { missed: 0.0, delay_us: [0.0; 3] };

    /// To those of `heap`, of so many pages, as it is cached now, for a vacuum as planned. All-visible pages have no dead rows, and are
    /// not asked for: mostly nobody has read them for long, and they are not read now.
    ///
    /// # Errors
    /// The visibility map cannot be read.
    pub fn to(heap: &Heap, pages: u32, plan: &VacuumPlan, costs: &Costs) -> Result<Return> {
        let each = costs.delay_us as f64 / f64::from(costs.limit.max(1));
        let delay_us = [costs.page_hit, costs.page_miss, costs.page_dirty];
        let delay_us = delay_us.map(|cost| f64::from(cost) * each);
        if plan.keeps_pages(heap.relation().pool().config().frames) {
            return Ok(Return { missed: 0.0, delay_us });
        }
        let step = (pages / CACHED_ASKED).max(1);
        let (map, mut pin) = (heap.visibility_map(), MapPin::none());
        let (mut asked, mut missed) = (0u32, 0u32);
        for from in (0..pages).step_by(step as usize) {
            let end = BlockNumber(from.saturating_add(step).min(pages));
            let block = map.first_lacking(BlockNumber(from), end, ALL_VISIBLE, &mut pin)?;
            if block < end {
                asked += 1;
                missed += u32::from(!heap.relation().is_cached(Fork::Main, block));
            }
        }
        Ok(Return { missed: f64::from(missed) / f64::from(asked.max(1)), delay_us })
    }

    /// Are pages better left as they are until their index entries are gone, since they would be written, or paid for as dirty, once more?
    pub fn puts_off(&self, machine: &Machine) -> bool {
        let [_, _, dirty] = self.delay_us;
        // A write has the page copied and checksummed, and copied by the system as a read has.
        let write = machine.us(Pace::Copy) + machine.us(Pace::Read);
        let again = self.missed * (write + dirty);
        again > JUDGED_AGAIN_US * machine.factor(Pace::Visit)
    }

    /// What a page takes beside the work on it, if so large a part of the like is not cached.
    fn page_us(&self, missed: f64, read_us: f64) -> f64 {
        let [hit, miss, dirty] = self.delay_us;
        // Writing is not measured; it takes about as long as reading.
        missed * (2.0 * read_us + miss + dirty) + (1.0 - missed) * hit
    }
}

impl DeadShape {
    /// So many of each index's keys are made where pages are cleaned in one visit (`one_visit/entries.rs`).
    pub fn keys_in_one_visit(&self) -> f64 {
        if self.items >= WALK_ROOTS * self.pages { 2.0 * self.pages } else { self.items }
    }

    /// What freeing their line pointers costs in a visit and a record of its own, and what keeping their keys until then does, in microseconds.
    pub fn second_visit_us(&self, machine: &Machine, back: &Return) -> f64 {
        let page = SECOND_VISIT_US * machine.factor(Pace::Visit);
        self.pages * (page + back.page_us(back.missed, machine.us(Pace::Read)))
            + self.items * KEPT_KEY_US * machine.factor(Pace::Search)
    }
}

impl IndexShape {
    /// Of `target`, an index of a table of so many pages and rows.
    ///
    /// # Errors
    /// I/O.
    pub fn of(
        target: &IndexTarget,
        heap_pages: u32,
        rows: f64,
        machine: &Machine,
    ) -> Result<IndexShape> {
        let pages = target.index.pages()?;
        let keys = target.keys.as_ref();
        let known = keys.and_then(|k| k.correlation);
        let share = keys.and_then(|k| k.share).unwrap_or(1.0).clamp(0.0, 1.0);
        Ok(IndexShape {
            pages: f64::from(pages),
            cached_pages: target.index.cached_pages(pages),
            // Never counted: as many as fit.
            entries: if rows >= 0.0 { rows * share } else { f64::from(pages) * 200.0 },
            dead_share: share,
            computed: keys.is_some_and(|k| k.function.is_some()),
            heap_pages: f64::from(heap_pages),
            correlation: known.unwrap_or(0.0).abs().min(1.0),
            machine: *machine,
        })
    }

    /// Those of the dead rows that have an entry.
    pub fn own(&self, dead: &DeadShape) -> DeadShape {
        let items = dead.items * self.dead_share;
        DeadShape { items, pages: dead.pages.min(items) }
    }

    /// What finding out these keys costs, for all of the dead.
    fn computing_us(&self, dead: &DeadShape) -> f64 {
        let each = if self.computed { COMPUTED_US } else { 0.0 };
        dead.items * each * self.machine.factor(Pace::Search)
    }

    /// With keys in this order.
    pub fn with_order(self, correlation: f64) -> IndexShape {
        IndexShape { correlation, ..self }
    }

    /// On how many leaves the entries of the dead lie.
    pub fn leaves_with(&self, dead: &DeadShape) -> f64 {
        let leaves = self.pages.max(1.0);
        let scattered = leaves * (1.0 - (-dead.items / leaves).exp());
        // In the rows' order the entries of a heap page lie together.
        let per_heap_page = leaves / self.heap_pages.max(1.0);
        let together = (dead.pages * per_heap_page + 1.0).min(scattered);
        let weight = self.correlation * self.correlation;
        weight * together + (1.0 - weight) * scattered
    }

    /// The part of it that is not cached.
    pub fn missed(&self) -> f64 {
        1.0 - self.cached_pages / self.pages.max(1.0)
    }

    /// Bulk deletion's cost in microseconds.
    pub fn bulk_us(&self) -> f64 {
        let m = &self.machine;
        self.pages * (BULK_PAGE_US * m.factor(Pace::Visit) + self.missed() * m.us(Pace::Read))
            + self.entries * BULK_ENTRY_US * m.factor(Pace::Search)
    }

    /// Retail deletion's cost in microseconds.
    pub fn retail_us(&self, dead: &DeadShape) -> f64 {
        let own = self.own(dead);
        self.by_keys_us(&own, own.items) + self.computing_us(dead)
    }

    /// What it costs if so many keys are made and looked up, and the others' entries found on the same leaves.
    fn by_keys_us(&self, dead: &DeadShape, keys: f64) -> f64 {
        self.keys_us(dead, keys) + self.leaves_with(dead) * self.leaf_us()
    }

    /// A leaf descended to.
    fn leaf_us(&self) -> f64 {
        let m = &self.machine;
        LEAF_US * m.factor(Pace::Search) + self.missed() * m.us(Pace::ReadAlone)
    }

    /// What it costs without the leaves.
    fn keys_us(&self, dead: &DeadShape, keys: f64) -> f64 {
        let bytes =
            (self.pages * page::PAGE_SIZE as f64 / self.entries.max(1.0)).clamp(8.0, 2704.0);
        let comparison = KEY_SORT_US + KEY_SORT_BYTE_US * bytes;
        let sort = (comparison * keys.max(1.0).log2() + KEY_FIND_US) * (1.0 - self.correlation);
        let key = KEY_US + KEY_BYTE_US * bytes;
        let entries = keys * (key + sort) + (dead.items - keys) * BULK_ENTRY_US;
        entries * self.machine.factor(Pace::Search)
    }

    /// Is looking the dead up while the heap is read, batch by batch, worth while: does it cost less than reading the index, one of so many, and
    /// visiting the pages once more? Keys that come in the table's order lead to each leaf once; others to a leaf for each of them, in
    /// every batch anew.
    pub fn in_one_visit(&self, dead: &DeadShape, indexes: usize, back: &Return) -> bool {
        let m = &self.machine;
        let second_visit = dead.second_visit_us(m, back) / indexes.max(1) as f64;
        let (own, computing) = (&self.own(dead), self.computing_us(dead));
        if self.correlation >= IN_ORDER {
            // Where some have no entry the first and the last of a page lead nowhere, maybe.
            let keys = if self.dead_share < 1.0 { own.items } else { own.keys_in_one_visit() };
            let cost = self.by_keys_us(own, keys) + computing;
            return cost < self.bulk_us() + second_visit;
        }
        let leaf = self.leaf_us() + back.page_us(self.missed(), m.us(Pace::Read));
        let cost = self.keys_us(own, own.items) + own.items * leaf + computing;
        let [hit, miss, _] = back.delay_us;
        let delay = self.pages * (hit + self.missed() * (miss - hit).max(0.0));
        cost < self.bulk_us() + delay + second_visit
    }

    /// The cheaper method.
    pub fn method(&self, dead: &DeadShape) -> IndexMethod {
        if self.retail_us(dead) < self.bulk_us() { IndexMethod::Retail } else { IndexMethod::Bulk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(correlation: f64, cached: f64) -> IndexShape {
        IndexShape {
            pages: 13_700.0,
            cached_pages: 13_700.0 * cached,
            entries: 5e6,
            heap_pages: 82_000.0,
            correlation,
            dead_share: 1.0,
            computed: false,
            machine: Machine::REFERENCE,
        }
    }

    #[test]
    fn few_are_looked_up_and_many_passed_over() {
        let near = |n: f64| DeadShape { items: n, pages: n / 61.0 };
        let scattered = |n: f64| DeadShape { items: n, pages: n };
        for cached in [0.0, 1.0] {
            assert_eq!(shape(1.0, cached).method(&near(50_000.0)), IndexMethod::Retail);
            assert_eq!(shape(1.0, cached).method(&scattered(50.0)), IndexMethod::Retail);
            assert_eq!(shape(0.0, cached).method(&near(500.0)), IndexMethod::Retail);
        }
        assert_eq!(shape(1.0, 1.0).method(&near(2_750_000.0)), IndexMethod::Bulk);
        // Scattered over nearly all leaves, cold: reading in order is cheaper.
        assert_eq!(shape(0.0, 0.0).method(&near(50_000.0)), IndexMethod::Bulk);
    }

    #[test]
    fn the_choice_goes_with_the_machine() {
        let dead = DeadShape { items: 8000.0, pages: 8000.0 };
        let at = |read: f64, alone: f64| {
            let machine = Machine::REFERENCE.with(Pace::Read, read).with(Pace::ReadAlone, alone);
            IndexShape { machine, ..shape(0.0, 0.0) }
        };
        // A disk that reads as fast here and there, and one on which each place costs much.
        assert_eq!(at(20.0, 20.0).method(&dead), IndexMethod::Retail);
        assert_eq!(at(4.0, 100.0).method(&dead), IndexMethod::Bulk);
        // Twice as fast at everything: the same choice.
        let twice = [Pace::Visit, Pace::Search, Pace::Read, Pace::ReadAlone]
            .into_iter()
            .fold(Machine::REFERENCE, |m, p| m.with(p, m.us(p) / 2.0));
        for items in [50.0, 5e3, 2e4, 5e4, 5e5] {
            let dead = DeadShape { items, pages: items };
            for correlation in [0.0, 0.7, 1.0] {
                let slow = shape(correlation, 0.5);
                let fast = IndexShape { machine: twice, ..slow };
                assert_eq!(slow.method(&dead), fast.method(&dead));
                assert!((slow.bulk_us() / fast.bulk_us() - 2.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn keys_in_order_are_looked_up_page_by_page() {
        let in_one_visit = |correlation: f64, dead: f64, indexes| {
            let dead = DeadShape { items: dead, pages: dead / 61.0 };
            shape(correlation, 1.0).in_one_visit(&dead, indexes, &Return::CHEAP)
        };
        assert!([5e4, 2.5e5, 2.75e6].iter().all(|dead| in_one_visit(1.0, *dead, 1)));
        assert!(in_one_visit(1.0, 2.5e5, 2) && in_one_visit(1.0, 2.75e6, 8));
        // Each by its key, and a second visit that many indexes share.
        let few_a_page = DeadShape { items: 7.0 * 82_000.0, pages: 82_000.0 };
        assert!(shape(1.0, 1.0).in_one_visit(&few_a_page, 2, &Return::CHEAP));
        assert!(!shape(1.0, 1.0).in_one_visit(&few_a_page, 64, &Return::CHEAP));
        assert!(!in_one_visit(0.5, 5e4, 1));
    }

    #[test]
    fn coming_back_to_pages_that_are_gone_is_dear_under_the_cost_delay() {
        // A TOAST table that churned: a few rows a page, of all ages.
        let toast = |cached: f64| IndexShape {
            pages: 3000.0,
            cached_pages: 3000.0 * cached,
            entries: 240_000.0,
            heap_pages: 50_000.0,
            correlation: 0.3,
            dead_share: 1.0,
            computed: false,
            machine: Machine::REFERENCE,
        };
        let dead = DeadShape { items: 230_000.0, pages: 52_000.0 };
        let slowed = |missed: f64| Return { missed, delay_us: [10.0, 20.0, 200.0] };
        assert!(toast(1.0).in_one_visit(&dead, 1, &slowed(1.0)));
        assert!(!toast(1.0).in_one_visit(&dead, 1, &slowed(0.0)), "the page is dirty already");
        assert!(!toast(1.0).in_one_visit(&dead, 1, &Return::CHEAP));
        // Each key reads a leaf, and writes it.
        assert!(!toast(0.0).in_one_visit(&dead, 1, &slowed(1.0)));
        // Then the index is read, and pages that would be paid for twice are left alone until then.
        assert!(slowed(1.0).puts_off(&Machine::REFERENCE));
        assert!(!slowed(0.0).puts_off(&Machine::REFERENCE));
        assert!(!Return::CHEAP.puts_off(&Machine::REFERENCE));
        // Without a delay the write alone is more than the second look, on a machine whose visits are slow for its reads, too.
        let unslowed = Return { missed: 1.0, delay_us: [0.0; 3] };
        assert!(unslowed.puts_off(&Machine::REFERENCE));
        assert!(unslowed.puts_off(&Machine::REFERENCE.with(Pace::Visit, 0.36)));
    }

    #[test]
    fn cost_grows_with_the_dead() {
        for correlation in [0.0, 0.5, 1.0] {
            let mut before = 0.0;
            for n in (0..200).map(|n| f64::from(n) * 1000.0) {
                let cost =
                    shape(correlation, 0.5).retail_us(&DeadShape { items: n, pages: n / 9.0 });
                assert!(cost >= before);
                before = cost;
            }
        }
    }
}
