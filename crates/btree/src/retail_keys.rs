//! # Purpose
//! The keys of dead rows, as they are collected for retail deletion: in one buffer, sorted by an abbreviation first, cut into parts for
//! several threads.

use crate::early::EarlyRemoved;
use crate::removal::pack;
use crate::schema::Value;
use crate::tree::Btree;
use base::{BlockNumber, OffsetNumber, Result, Tid};
use page::btree::Item;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Entries to be removed, in one buffer.
#[derive(Clone, Debug, Default)]
pub struct RetailKeys {
    bytes: Vec<u8>,
    refs: Vec<KeyRef>,
    unsorted: bool,
    /// Keys that were not below the one added before them.
    ascending: usize,
}

/// Steps from a key to the next one added; of keys that are kept apart they add up.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeySteps {
    ascending: usize,
    all: usize,
}

impl KeySteps {
    /// With those of other keys.
    pub fn and(self, other: KeySteps) -> KeySteps {
        KeySteps { ascending: self.ascending + other.ascending, all: self.all + other.all }
    }
    /// How much the order of the keys is theirs or its reverse, from 0 to 1.
    pub fn order(self) -> f64 {
        (2.0 * self.ascending as f64 / self.all.max(1) as f64 - 1.0).abs().min(1.0)
    }
}

/// A key. Most often it is all here: an integer is its own sort key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRef {
    abbreviated: u64,
    /// [`WHOLE`] and the heap address (block << 16 | line pointer), or where the entry stands in the buffer.
    rest: u64,
}

const WHOLE: u64 = 1 << 63;

impl KeyRef {
    fn whole(abbreviated: u64, tid: Tid) -> KeyRef {
        let rest = WHOLE | u64::from(tid.block.0) << 16 | u64::from(tid.offset.0);
        KeyRef { abbreviated, rest }
    }
    fn is_whole(self) -> bool {
        self.rest & WHOLE != 0
    }
    fn whole_tid(self) -> Tid {
        let block = ((self.rest & !WHOLE) >> 16) as u32;
        Tid::new(BlockNumber(block), OffsetNumber(self.rest as u16))
    }
}

impl RetailKeys {
    /// None.
    pub fn new() -> RetailKeys {
        RetailKeys::default()
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.refs.len()
    }
    /// None?
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }
    /// What they occupy.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.refs.capacity() * size_of::<KeyRef>()
    }
    /// How much the order in which they were added is theirs or its reverse, from 0 to 1.
    pub fn order(&self) -> f64 {
        self.steps().order()
    }
    /// From key to key, as they were added.
    pub fn steps(&self) -> KeySteps {
        KeySteps { ascending: self.ascending, all: self.refs.len().saturating_sub(1) }
    }
    /// Forgets them; their memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.refs.clear();
        self.unsorted = false;
        self.ascending = 0;
    }
}

/// Some of the keys.
#[derive(Clone, Copy)]
pub(crate) struct KeyList<'k> {
    bytes: &'k [u8],
    refs: &'k [KeyRef],
}

impl<'k> KeyList<'k> {
    pub(crate) fn new(bytes: &'k [u8], refs: &'k [KeyRef]) -> KeyList<'k> {
        KeyList { bytes, refs }
    }
    pub(crate) fn len(self) -> usize {
        self.refs.len()
    }
    /// The first `n`.
    pub(crate) fn first(self, n: usize) -> KeyList<'k> {
        KeyList { refs: &self.refs[..n], ..self }
    }
    pub(crate) fn tid(self, n: usize) -> Tid {
        let key = self.refs[n];
        if key.is_whole() { key.whole_tid() } else { stored(self.bytes, key).tid() }
    }
}

fn stored(bytes: &[u8], key: KeyRef) -> Item<'_> {
    // Followed by other entries, which does not matter: an entry's columns say where it ends.
    Item(bytes.get(key.rest as usize..).unwrap_or_default())
}

/// Keys that one thread looks up, in order unless `unsorted`; all are above those of the parts before.
pub(crate) struct Part<'k> {
    pub(crate) refs: &'k mut [KeyRef],
    pub(crate) unsorted: bool,
}

/// So many sort keys are looked at for each part's bounds.
const SAMPLES: usize = 16;

impl RetailKeys {
    /// Leaves out those whose entries are known to be gone: these addresses.
    pub(crate) fn drop_early(&mut self, early: &EarlyRemoved) -> Vec<u64> {
        let RetailKeys { bytes, refs, .. } = self;
        early.take(refs, |key| pack(KeyList::new(bytes, &[*key]).tid(0)))
    }

    /// The keys' bytes, and the keys cut into about so many parts.
    pub(crate) fn parts(&mut self, parts: usize) -> (&[u8], Vec<Part<'_>>) {
        let unsorted = std::mem::take(&mut self.unsorted);
        let refs = &mut self.refs[..];
        let parts = parts.clamp(1, refs.len().max(1));
        let mut out = Vec::with_capacity(parts);
        if !unsorted {
            let size = refs.len().div_ceil(parts).max(1);
            out.extend(refs.chunks_mut(size).map(|refs| Part { refs, unsorted }));
        } else if parts == 1 {
            out.push(Part { refs, unsorted });
        } else {
            let bounds = bounds(refs, parts);
            let ends = partition(refs, &bounds);
            let (mut rest, mut begin) = (refs, 0);
            for end in ends {
                let (refs, further) = std::mem::take(&mut rest).split_at_mut(end - begin);
                out.push(Part { refs, unsorted });
                (rest, begin) = (further, end);
            }
        }
        (&self.bytes, out)
    }
}

/// Sort keys that cut `refs` into about equal parts, from a sample.
fn bounds(refs: &[KeyRef], parts: usize) -> Vec<u64> {
    let step = (refs.len() / (parts * SAMPLES)).max(1);
    let mut sample: Vec<u64> = refs.iter().step_by(step).map(|k| k.abbreviated).collect();
    sample.sort_unstable();
    let mut bounds: Vec<u64> = (1..parts).map(|i| sample[i * sample.len() / parts]).collect();
    bounds.dedup();
    bounds
}

/// Moves the keys, in place, so that those below the first of `bounds` come first, and so on; equal sort keys stay together. Returns where the
/// parts end.
fn partition(refs: &mut [KeyRef], bounds: &[u64]) -> Vec<usize> {
    let part_of = |k: &KeyRef| bounds.partition_point(|b| *b <= k.abbreviated);
    let mut ends = vec![0; bounds.len() + 1];
    refs.iter().for_each(|k| ends[part_of(k)] += 1);
    let mut next = Vec::with_capacity(ends.len());
    let mut sum = 0;
    for end in &mut ends {
        next.push(sum);
        sum += *end;
        *end = sum;
    }
    for part in 0..ends.len() {
        while next[part] < ends[part] {
            let at = next[part];
            let home = part_of(&refs[at]);
            refs.swap(at, next[home]);
            next[home] += 1;
        }
    }
    ends
}

impl Btree {
    /// Adds the entry of the tuple at `tid` with these values of the key columns.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn add_retail_key(
        &self,
        keys: &mut RetailKeys,
        values: &[Value<'_>],
        tid: Tid,
    ) -> Result<()> {
        let key = match self.schema.whole_key(values) {
            Some(abbreviated) => KeyRef::whole(abbreviated, tid),
            None => {
                let at = keys.bytes.len();
                if self.schema.included.is_empty() {
                    self.schema.form(&mut keys.bytes, values, tid)?;
                } else {
                    let mut all: SmallVec<[Value<'_>; 8]> = SmallVec::from_slice(values);
                    all.resize(self.schema.widths().len(), None);
                    self.schema.form(&mut keys.bytes, &all, tid)?;
                }
                let abbreviated = self.schema.abbreviate(Item(&keys.bytes[at..]));
                KeyRef { abbreviated, rest: at as u64 }
            }
        };
        if let Some(last) = keys.refs.last() {
            let descends = self.compare_refs(&keys.bytes, *last, key) == Ordering::Greater;
            keys.unsorted |= descends;
            keys.ascending += usize::from(!descends);
        }
        keys.refs.push(key);
        Ok(())
    }

    /// Adds the keys of `more` after those of `keys`.
    pub fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys) {
        if keys.is_empty() {
            *keys = more;
            return;
        }
        if more.is_empty() {
            return;
        }
        let (first, base) = (keys.refs.len(), keys.bytes.len() as u64);
        keys.bytes.extend_from_slice(&more.bytes);
        let moved = |k: KeyRef| if k.is_whole() { k } else { KeyRef { rest: k.rest + base, ..k } };
        keys.refs.extend(more.refs.into_iter().map(moved));
        let descends = self.compare_refs(&keys.bytes, keys.refs[first - 1], keys.refs[first])
            == Ordering::Greater;
        keys.unsorted |= more.unsorted | descends;
        keys.ascending += more.ascending + usize::from(!descends);
    }

    /// Sorts keys.
    pub(crate) fn sort_keys(&self, bytes: &[u8], refs: &mut [KeyRef]) {
        refs.sort_unstable_by(|a, b| self.compare_refs(bytes, *a, *b));
    }

    #[inline]
    fn compare_refs(&self, bytes: &[u8], a: KeyRef, b: KeyRef) -> Ordering {
        a.abbreviated.cmp(&b.abbreviated).then_with(|| {
            if a.is_whole() && b.is_whole() {
                return a.rest.cmp(&b.rest);
            }
            self.entry_of(bytes, a, |a| {
                self.entry_of(bytes, b, |b| self.schema.compare_items(a, b))
            })
        })
    }

    /// Calls `f` with the entry of the key number `n`.
    #[inline]
    pub(crate) fn with_item<R>(
        &self,
        keys: KeyList<'_>,
        n: usize,
        f: impl FnOnce(Item<'_>) -> R,
    ) -> R {
        self.entry_of(keys.bytes, keys.refs[n], f)
    }

    #[inline]
    fn entry_of<R>(&self, bytes: &[u8], key: KeyRef, f: impl FnOnce(Item<'_>) -> R) -> R {
        if !key.is_whole() {
            return f(stored(bytes, key));
        }
        // The only key column is the first; included ones, which follow, are of no concern.
        let mut entry = [0; 16];
        entry[..6].copy_from_slice(&key.whole_tid().to_bytes());
        entry[8..].copy_from_slice(&self.schema.from_whole_key(key.abbreviated));
        f(Item(&entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_key_once_and_follow_each_other() {
        let mut x = 5u64;
        for (count, distinct) in [(0, 1), (1, 1), (50, 3), (1000, 1), (5000, 7), (20_000, 1 << 40)]
        {
            let mut keys = RetailKeys::new();
            for n in 0..count {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                keys.refs.push(KeyRef { abbreviated: (x >> 20) % distinct, rest: n });
            }
            keys.unsorted = true;
            let (_, parts) = keys.parts(13);
            assert!(parts.len() <= 13);
            let mut last = None;
            for part in parts.iter().filter(|p| !p.refs.is_empty()) {
                let range =
                    |f: fn(std::slice::Iter<'_, KeyRef>) -> Option<u64>| f(part.refs.iter());
                let low = range(|i| i.map(|k| k.abbreviated).min());
                assert!(last < low, "equal keys stay together");
                last = range(|i| i.map(|k| k.abbreviated).max());
            }
            let mut all: Vec<u64> =
                parts.iter().flat_map(|p| p.refs.iter().map(|k| k.rest)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
