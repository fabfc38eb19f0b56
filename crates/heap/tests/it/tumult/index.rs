//! An index of the heap's rows by key: which line pointers entries lead to.

use super::cleaner::Entries;
use crate::common::{World, read_key};
use base::sync::Arc;
use base::{BlockNumber, Csn, Fork, OffsetNumber, Tid};
use buffer::Strategy;
use heap::{FetchState, Heap, TupleSlot};
use std::collections::{BTreeMap, BTreeSet};
use txn::Snapshot;

#[derive(Default)]
pub struct Index {
    entries: BTreeMap<u64, BTreeSet<Tid>>,
    keys: BTreeMap<Tid, u64>,
    /// Entries whose rows were gone for a snapshot of this CSN, and so are for later ones.
    gone: BTreeMap<Tid, Csn>,
}

impl Entries for Index {
    fn forget_all(&mut self, block: BlockNumber, offsets: &[OffsetNumber]) {
        offsets.iter().for_each(|o| self.forget(Tid::new(block, *o)));
    }
}

impl Index {
    /// A row's new version wants an entry.
    pub fn add(&mut self, key: u64, tid: Tid, context: &str) {
        let before = self.keys.insert(tid, key);
        assert_eq!(before, None, "{context}: {tid} was used again, and an entry leads there");
        self.entries.entry(key).or_default().insert(tid);
    }
    /// Takes an entry out.
    pub fn forget(&mut self, tid: Tid) {
        self.gone.remove(&tid);
        if let Some(key) = self.keys.remove(&tid) {
            self.entries.get_mut(&key).unwrap().remove(&tid);
        }
    }
    /// What `snapshot` sees of the row: by which version. Entries that are dead to all may be killed.
    pub fn find(
        &mut self,
        w: &World,
        snapshot: &Arc<Snapshot>,
        key: u64,
        kill: bool,
        context: &str,
    ) -> Option<(Tid, Vec<u8>)> {
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        let (mut found, mut dead) = (None, Vec::new());
        for tid in self.entries.get(&key).into_iter().flatten() {
            let fetched = w.heap.fetch(*tid, snapshot, &mut state, &mut slot).unwrap();
            if fetched.all_dead {
                assert!(fetched.gone, "{context}: {tid} is dead to all, and not to this one");
                dead.push(*tid);
            }
            if fetched.gone {
                let since = self.gone.entry(*tid).or_insert(snapshot.csn);
                *since = snapshot.csn.min(*since);
            }
            if fetched.found {
                let (k, value) = w.read(&slot.bytes);
                assert_eq!(k, key, "{context}: the entry at {tid}");
                let gone = self.gone.get(tid).is_some_and(|since| *since <= snapshot.csn);
                assert!(!gone, "{context}: {tid} was gone, and is there for {snapshot:?}");
                let twice = found.replace((slot.tid, value));
                assert!(twice.is_none(), "{context}: key {key} is seen by two entries");
            }
        }
        if kill {
            dead.into_iter().for_each(|tid| self.forget(tid));
        }
        found
    }
    pub fn keys(&self) -> Vec<u64> {
        self.entries.keys().copied().collect()
    }
    /// What there is after a crash: the log brought back entries and rows together.
    pub fn rebuild(w: &World) -> Index {
        let mut index = Index::default();
        for n in 0..w.heap.len_blocks().unwrap().0 {
            let block = BlockNumber(n);
            let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
            let page = pin.read();
            for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
                let key = read_key(page.item(offset));
                if let Some(root) = Heap::root_of(&page, offset) {
                    let tid = Tid::new(block, root);
                    let before = index.keys.insert(tid, key);
                    assert!(before.is_none_or(|k| k == key), "{tid}: keys {before:?} and {key}");
                    index.entries.entry(key).or_default().insert(tid);
                }
            }
        }
        index
    }
}
