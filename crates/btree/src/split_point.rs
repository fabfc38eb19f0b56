//! # Purpose
//! Where to split a page: near the middle (or, at the right end of a level, near the fillfactor), there
//! where the pivot comes out shortest; between different keys rather than among equal ones.

use crate::schema::KeySchema;
use page::btree::{self as layout, Item};

const CAPACITY: usize = layout::SPECIAL - layout::HEADER;
const INTERNAL_FILLFACTOR: usize = 70;
const SINGLE_VALUE_FILLFACTOR: usize = 96;

struct Candidate {
    point: usize,
    left_free: usize,
    right_free: usize,
}

impl Candidate {
    /// How far from leaving `fill` per cent on the left.
    fn delta(&self, fill: Option<usize>) -> usize {
        match fill {
            None => self.left_free.abs_diff(self.right_free),
            Some(f) => (self.left_free * f).abs_diff(self.right_free * (100 - f)),
        }
    }
}

fn size(item: &[u8]) -> usize {
    item.len() + 4
}

/// The index of the first of `items` that goes to the right half. `new` is the index of the new one;
/// `high` is the page's high key, absent at the right end of the level.
pub(crate) fn choose(
    schema: &KeySchema,
    items: &[Vec<u8>],
    new: usize,
    is_leaf: bool,
    high: Option<Item<'_>>,
) -> Option<usize> {
    let total: usize = items.iter().map(|i| size(i)).sum();
    let right_high = high.map_or(0, |h| size(h.0));
    let mut candidates = Vec::with_capacity(items.len());
    let mut left = 0;
    for point in 1..items.len() {
        left += size(&items[point - 1]);
        let mut right = total - left + right_high;
        let high_key = if is_leaf {
            8 + Item(&items[point]).key_bytes().len() + 6 + 4
        } else {
            // The first entry of the right half loses its key.
            right -= items[point].len() - 8;
            size(&items[point])
        };
        if left + high_key <= CAPACITY && right <= CAPACITY {
            candidates.push(Candidate {
                point,
                left_free: CAPACITY - left - high_key,
                right_free: CAPACITY - right,
            });
        }
    }
    let mut fill = match (high.is_none(), is_leaf) {
        (true, true) => Some(usize::from(schema.fillfactor.clamp(10, 100)).min(99)),
        (true, false) => Some(INTERNAL_FILLFACTOR),
        (false, _) => None,
    };
    if is_leaf && fill.is_none() && grows_after(schema, items, new) {
        // Rising keys within a group: the page stays full, what follows starts a page of its own.
        if let Some(c) = candidates.iter().find(|c| c.point == new + 1) {
            return Some(c.point);
        }
        fill = Some(usize::from(schema.fillfactor.clamp(10, 99)));
    }
    if !is_leaf {
        return best(&candidates, fill, 75, |c| items[c.point].len());
    }
    let separate = |c: &Candidate| {
        schema.attributes_to_separate(Item(&items[c.point - 1]), Item(&items[c.point]))
    };
    let chosen = best(&candidates, fill, 50, separate)?;
    let all = schema.key_count() + 1;
    let penalty = schema.attributes_to_separate(Item(&items[chosen - 1]), Item(&items[chosen]));
    if penalty < all {
        return Some(chosen);
    }
    // Equal keys all round. If the page has others, split between different ones; if not, fill the left page.
    let (first, last) = (Item(items.first()?), Item(items.last()?));
    if schema.attributes_to_separate(first, last) < all {
        return best(&candidates, fill, 1000, separate);
    }
    let goes_on = high.is_some_and(|h| {
        h.pivot_attributes() == schema.key_count()
            && h.plain().item().attributes(schema.widths()).eq(last
                .plain()
                .item()
                .attributes(schema.widths())
                .take(schema.key_count()))
    });
    if goes_on { Some(chosen) } else { best(&candidates, Some(SINGLE_VALUE_FILLFACTOR), 0, |_| 0) }
}

/// Of the `permille` of candidates next to the target, the one with the least penalty.
fn best(
    candidates: &[Candidate],
    fill: Option<usize>,
    permille: usize,
    penalty: impl Fn(&Candidate) -> usize,
) -> Option<usize> {
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    order.sort_by_key(|c| c.delta(fill));
    let near = (candidates.len() * permille).div_ceil(1000).max(1);
    let near = order.iter().take(near);
    near.min_by_key(|c| penalty(c)).map(|c| c.point)
}

/// True if the new entry continues a run of rising keys in the middle of the index: same leading
/// columns as its predecessor, a tuple right behind that one's, all entries of one size.
fn grows_after(schema: &KeySchema, items: &[Vec<u8>], new: usize) -> bool {
    if schema.key_count() < 2 || new == 0 {
        return false;
    }
    let (before, item) = (Item(&items[new - 1]), Item(&items[new]));
    if items.iter().any(|i| i.len() != items[new].len())
        || before.is_posting()
        || before.has_nulls()
    {
        return false;
    }
    let keep = schema.attributes_to_separate(before, item);
    if keep < 2 || keep > schema.key_count() {
        return false;
    }
    let (a, b) = (before.tid(), item.tid());
    a.block == b.block && a.offset < b.offset || a.block.0 + 1 == b.block.0 && b.offset.0 == 1
}
