//! Each change of an all-visible page, replayed without page images: the bits it clears stay cleared.

use crate::common::{World, row, world};
use crate::vacuum::vacuum;
use base::{BlockNumber, Fork, Tid};
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{InsertState, MapPin, TupleOutcome, UpdateOptions, Wait};
use txn::{CommitExtras, Transaction};

const COLD: UpdateOptions = UpdateOptions { hot: false, key_changed: true, wait: Wait::NoWait };
const HOT: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };

fn bits(w: &World, block: u32) -> u8 {
    w.heap.visibility_map().bits(BlockNumber(block), &mut MapPin::none()).unwrap()
}

fn commit<R>(w: &World, f: impl FnOnce(&Transaction) -> R) -> R {
    let t = w.begin();
    let r = f(&t);
    t.commit(CommitExtras::default()).unwrap();
    r
}

/// All of `blocks` are all-visible and all-frozen.
fn freeze(w: &World, blocks: &[u32]) {
    for block in blocks {
        vacuum(w, *block, true);
        assert_eq!(bits(w, *block), ALL_VISIBLE | ALL_FROZEN);
    }
}

fn assert_cleared(w: &World, block: u32, cleared: bool) {
    assert_eq!(bits(w, block), if cleared { 0 } else { ALL_VISIBLE | ALL_FROZEN });
    assert_ne!(w.page(Fork::Main, block).is_all_visible(), cleared);
}

#[test]
fn a_change_on_an_all_visible_page_clears_its_bits_in_replay_too() {
    type Change = fn(&World, &Transaction, Tid);
    let changes: [Change; 5] = [
        |w, t, _| {
            assert_eq!(w.insert(t, 9, b"new").block, BlockNumber(0));
        },
        |w, t, _| {
            let (rows, mut tids) = ([row(8, b"a"), row(9, b"b")], Vec::new());
            w.heap.multi_insert(t, &rows, &mut InsertState::new(), &mut tids).unwrap();
            assert!(tids.iter().all(|tid| tid.block == BlockNumber(0)));
        },
        |w, t, tid| {
            assert_eq!(w.heap.delete(t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
        },
        |w, t, tid| {
            let done = w.heap.update(t, tid, &row(0, b"hot"), HOT).unwrap();
            assert!(matches!(done, TupleOutcome::Ok(done) if done.hot));
        },
        |w, t, tid| {
            let done = w.heap.update(t, tid, &row(0, b"cold"), COLD).unwrap();
            assert!(
                matches!(done, TupleOutcome::Ok(done) if !done.hot && done.tid.block == tid.block)
            );
        },
    ];
    for change in changes {
        let w = world();
        let tid = commit(&w, |t| w.insert(t, 0, b"row"));
        freeze(&w, &[0]);
        commit(&w, |t| change(&w, t, tid));
        assert_cleared(&w, 0, true);
        w.check();
        w.assert_replay_equal();
    }
}

#[test]
fn an_update_from_page_to_page_clears_the_bits_of_both() {
    for visible in [&[0][..], &[1], &[0, 1]] {
        let w = world();
        let tids: Vec<Tid> =
            commit(&w, |t| (0..30).map(|key| w.insert(t, key, &[b'x'; 400])).collect());
        assert_eq!(tids.last().unwrap().block, BlockNumber(1));
        freeze(&w, visible);
        let done = commit(&w, |t| w.heap.update(t, tids[0], &row(0, &[b'y'; 900]), COLD).unwrap());
        assert!(matches!(done, TupleOutcome::Ok(done) if done.tid.block == BlockNumber(1)));
        for block in [0, 1] {
            assert_cleared(&w, block, true);
        }
        w.check();
        w.assert_replay_equal();
    }
}

#[test]
fn a_frozen_row_taken_back_never_was() {
    let w = world();
    let t = w.begin();
    let mut state = InsertState::new();
    state.frozen = true;
    let mut tids = Vec::new();
    w.heap.multi_insert(&t, &[row(1, b"stays"), row(2, b"goes")], &mut state, &mut tids).unwrap();
    assert_cleared(&w, 0, false);
    w.heap.kill_own(&t, tids[1]).unwrap();
    assert_cleared(&w, 0, true);
    t.commit(CommitExtras::default()).unwrap();
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot()).keys().collect::<Vec<_>>(), [&1]);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_truncation_that_is_replayed_cuts_both_maps() {
    let w = world();
    commit(&w, |t| {
        for key in 0..100 {
            w.insert(t, key, &[0; 400]);
        }
    });
    let blocks: Vec<u32> = (0..w.heap.len_blocks().unwrap().0).collect();
    freeze(&w, &blocks);
    let fsm = w.heap.free_space_map();
    blocks.iter().for_each(|b| fsm.record(BlockNumber(*b), 5000).unwrap());
    w.heap.visibility_map().forget(BlockNumber(2), Some(&w.ctx.wal)).unwrap();
    heap::truncate_maps(&w.rel, BlockNumber(2)).unwrap();
    assert_eq!(w.heap.visibility_map().count().unwrap(), (2, 2));
    assert!(fsm.get(BlockNumber(1)).unwrap() > 0 && fsm.get(BlockNumber(2)).unwrap() == 0);
    heap::truncate_maps(&w.rel, BlockNumber(0)).unwrap();
    assert_eq!(w.rel.len_blocks(Fork::VisibilityMap).unwrap(), BlockNumber(0));
}

/// A page that a record makes anew is made when the record has made sense: until then what was there stays.
#[test]
fn a_record_that_makes_no_sense_leaves_its_page_alone() {
    let w = world();
    let tids: Vec<Tid> = commit(&w, |t| (0..20).map(|k| w.insert(t, k, &[b'x'; 400])).collect());
    let (rows, mut made) = (vec![row(100, &[b'y'; 700]); 30], Vec::new());
    commit(&w, |t| w.heap.multi_insert(t, &rows, &mut InsertState::new(), &mut made).unwrap());
    for tid in tids {
        commit(&w, |t| w.heap.update(t, tid, &row(0, &[b'z'; 1500]), COLD).unwrap());
    }
    let copy = World::empty_copy();
    w.records_since(wal::FIRST_LSN).iter().for_each(|rec| heap::redo(rec, &copy.pool).unwrap());
    let rel = copy.pool.open(w.rel.id(), buffer::Persistence::Permanent);
    let mut kinds = std::collections::BTreeSet::new();
    for mut rec in w.records_since(wal::FIRST_LSN) {
        let Some(block) = rec.blocks.iter_mut().find(|b| b.will_init) else { continue };
        let tag = block.tag;
        let bytes = || {
            let pin = rel.pin(tag.fork, tag.block, &mut buffer::Strategy::Normal).unwrap();
            *pin.read().bytes()
        };
        let before = bytes();
        // The last of many rows is cut short; one row has no header.
        let kind = heap::record::name(rec.info);
        let keep = if kind == "MULTI_INSERT" { block.data.len() - 1 } else { 3 };
        block.data.truncate(keep);
        heap::redo(&rec, &copy.pool).unwrap_err();
        assert!(bytes() == before, "{kind} of {tag}");
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}
