//! How an index's dead entries are found, by cost.
//!
//! # Purpose
//! Bulk deletion reads the whole index, whatever is dead; retail deletion looks every dead row's key up. Which is cheaper depends on
//! how many rows are dead, on how many leaves their entries lie, and on what is cached. What both have to do (changing the leaves that
//! have dead entries) is left out.
//!
//! # Invariants
//! Retail deletion's cost only grows with the number of dead rows, so an index for which it is too dear already will not be cheaper later.

use crate::index_pass::IndexTarget;
use crate::plan::IndexMethod;
use base::Result;

/// Microseconds, measured on the machine that Ebb is developed on (docs/decisions/0042): a page passed over, an entry asked about.
const BULK_PAGE_US: f64 = 0.8;
const BULK_ENTRY_US: f64 = 0.0005;
/// A key taken from the heap, its bytes; a leaf descended to and locked.
const KEY_US: f64 = 0.012;
const KEY_BYTE_US: f64 = 0.0004;
/// Out of order: a comparison while sorting, and each byte of the keys that it fetches; a search on a leaf.
const KEY_SORT_US: f64 = 0.002;
const KEY_SORT_BYTE_US: f64 = 0.0002;
const KEY_FIND_US: f64 = 0.2;
const LEAF_US: f64 = 1.3;
/// A page's second visit; a key kept and cut away again.
const SECOND_VISIT_US: f64 = 1.2;
const KEPT_KEY_US: f64 = 0.02;
/// The order that keys must come in to be looked up batch by batch, from 0 to 1.
const IN_ORDER: f64 = 0.9;
/// A page that is not cached, read in order and read alone.
const SEQUENTIAL_READ_US: f64 = 8.0;
const RANDOM_READ_US: f64 = 40.0;

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
}

/// The dead rows.
#[derive(Clone, Copy, Debug)]
pub struct DeadShape {
    /// How many.
    pub items: f64,
    /// On so many heap pages.
    pub pages: f64,
}

impl DeadShape {
    /// What freeing their line pointers costs in a visit and a record of its own, and what keeping their keys until then does, in microseconds.
    pub fn second_visit_us(&self) -> f64 {
        self.pages * SECOND_VISIT_US + self.items * KEPT_KEY_US
    }
}

impl IndexShape {
    /// Of `target`, an index of a table of so many pages and rows.
    ///
    /// # Errors
    /// I/O.
    pub fn of(target: &IndexTarget, heap_pages: u32, rows: f64) -> Result<IndexShape> {
        let pages = target.index.pages()?;
        let known = target.keys.as_ref().and_then(|k| k.correlation);
        Ok(IndexShape {
            pages: f64::from(pages),
            cached_pages: target.index.cached_pages(pages),
            // Never counted: as many as fit.
            entries: if rows >= 0.0 { rows } else { f64::from(pages) * 200.0 },
            heap_pages: f64::from(heap_pages),
            correlation: known.unwrap_or(0.0).abs().min(1.0),
        })
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

    fn missed(&self) -> f64 {
        1.0 - self.cached_pages / self.pages.max(1.0)
    }

    /// Bulk deletion's cost in microseconds.
    pub fn bulk_us(&self) -> f64 {
        self.pages * (BULK_PAGE_US + self.missed() * SEQUENTIAL_READ_US)
            + self.entries * BULK_ENTRY_US
    }

    /// Retail deletion's cost in microseconds.
    pub fn retail_us(&self, dead: &DeadShape) -> f64 {
        let leaves = self.leaves_with(dead);
        let bytes =
            (self.pages * page::PAGE_SIZE as f64 / self.entries.max(1.0)).clamp(8.0, 2704.0);
        let comparison = KEY_SORT_US + KEY_SORT_BYTE_US * bytes;
        let sort =
            (comparison * dead.items.max(1.0).log2() + KEY_FIND_US) * (1.0 - self.correlation);
        let key = KEY_US + KEY_BYTE_US * bytes;
        dead.items * (key + sort) + leaves * (LEAF_US + self.missed() * RANDOM_READ_US)
    }

    /// Is looking the dead up while the heap is read, batch by batch, worth while: do the keys come in the table's order, and does it cost
    /// less than reading the index, one of so many, and visiting the pages once more?
    pub fn in_one_visit(&self, dead: &DeadShape, indexes: usize) -> bool {
        let second_visit = dead.second_visit_us() / indexes.max(1) as f64;
        self.correlation >= IN_ORDER && self.retail_us(dead) < self.bulk_us() + second_visit
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
    fn keys_in_order_are_looked_up_page_by_page() {
        let in_one_visit = |correlation: f64, dead: f64, indexes| {
            let dead = DeadShape { items: dead, pages: dead / 61.0 };
            shape(correlation, 1.0).in_one_visit(&dead, indexes)
        };
        assert!([5e4, 2.5e5, 2.75e6].iter().all(|dead| in_one_visit(1.0, *dead, 1)));
        assert!(in_one_visit(1.0, 2.5e5, 2) && !in_one_visit(1.0, 2.75e6, 8));
        assert!(!in_one_visit(0.5, 5e4, 1));
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
