//! What is said of a page on which versions do not lead to each other as they should.

use crate::common::{World, row, world};
use base::{BlockNumber, Fork, OffsetNumber, Tid, Xid};
use buffer::Strategy;
use heap::{TupleOutcome, UpdateOptions, Wait};
use page::Page;
use page::tuple::{HEAP_ONLY, HOT_UPDATED};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use txn::CommitExtras;

const HOT: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
const FIRST: OffsetNumber = OffsetNumber(1);

/// Rows 1 and 2, each at its third version: line pointers 1 3 4, and 2 5 6. A snapshot is still to be had that sees them all.
fn updated() -> (World, txn::Transaction) {
    let w = world();
    let t = w.begin();
    let mut tids = [w.insert(&t, 1, b"0"), w.insert(&t, 2, b"0")];
    t.commit(CommitExtras::default()).unwrap();
    let holder = w.begin();
    holder.xid().unwrap();
    for (tid, key) in tids.iter_mut().zip([1, 2]) {
        for version in [b"1", b"2"] {
            *tid = update(&w, *tid, key, version, true);
        }
    }
    w.check();
    (w, holder)
}

fn update(w: &World, tid: Tid, key: u64, value: &[u8], commits: bool) -> Tid {
    let t = w.begin();
    let done = match w.heap.update(&t, tid, &row(key, value), HOT).unwrap() {
        TupleOutcome::Ok(done) => done,
        other => panic!("{other:?}"),
    };
    assert!(done.hot);
    if commits {
        t.commit(CommitExtras::default()).unwrap();
    } else {
        t.abort().unwrap();
    }
    done.tid
}

/// Changes the page as no record says, and gives what the check says of it.
fn faults(w: &World, damage: impl FnOnce(&mut Page)) -> Vec<String> {
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let mut guard = pin.write();
    let before = guard.bytes().to_owned();
    damage(&mut guard);
    drop(guard);
    let mut found = Vec::new();
    w.heap.check(Xid::INVALID, &mut |_, what| found.push(what)).unwrap();
    pin.write().bytes_mut().copy_from_slice(&before);
    w.check();
    found
}

fn with_bits(page: &mut Page, offset: u16, set: u16, clear: u16) {
    let mut t = page.tuple_mut(OffsetNumber(offset));
    let mask = t.infomask2();
    t.set_infomask2(mask & !clear | set);
}

#[test]
fn versions_that_lead_to_each_other_otherwise_than_they_say_are_found() {
    let (w, _holder) = updated();
    assert_eq!(
        faults(&w, |page| with_bits(page, 3, 0, HEAP_ONLY)),
        ["tuple 1: is updated heap-only, but 3 is not heap-only"]
    );
    assert_eq!(
        faults(&w, |page| with_bits(page, 3, 0, HOT_UPDATED)),
        ["tuple 3: is not updated heap-only, but 4 is heap-only"]
    );
    assert_eq!(
        faults(&w, |page| page.tuple_mut(FIRST).set_xmax_offset(0)),
        ["tuple 1: is updated heap-only, but by nobody"]
    );
    // Line pointer 2 as if it were row 1's: what it led to has nothing that leads to it.
    let both = faults(&w, |page| {
        let (xmax, ctid) = (page.tuple(FIRST).xmax().0 as u32, page.tuple(FIRST).ctid());
        let mut t = page.tuple_mut(OffsetNumber(2));
        t.set_xmax_offset(xmax);
        t.set_ctid(ctid);
    });
    assert_eq!(both, ["line pointers 1 and 2 both lead to 3"]);
}

#[test]
fn a_version_that_nothing_leads_to_is_found() {
    let (w, _holder) = updated();
    assert_eq!(
        faults(&w, |page| page
            .tuple_mut(OffsetNumber(3))
            .set_ctid(Tid::new(BlockNumber(0), OffsetNumber(3)))),
        ["tuple 4 is heap-only, but nothing leads to it"]
    );
    // One of an aborted update is led to by nothing once the row has been updated again, and that is as it should be.
    let last = Tid::new(BlockNumber(0), OffsetNumber(4));
    update(&w, last, 1, b"aborted", false);
    update(&w, last, 1, b"3", true);
    w.check();
}

#[test]
fn redirects_to_one_version_are_found() {
    let (w, holder) = updated();
    holder.abort().unwrap();
    w.clean(&mut SmallRng::seed_from_u64(1)).unwrap();
    let page = w.page(Fork::Main, 0);
    assert!(page.item_id(FIRST).is_redirect() && page.item_id(OffsetNumber(2)).is_redirect());
    let both = faults(&w, |page| {
        let id = page.item_id(FIRST);
        page.set_item_id(OffsetNumber(2), id);
    });
    assert_eq!(both, ["line pointers 1 and 2 both lead to 4"]);
}
