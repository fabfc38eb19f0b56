//! An update that goes to another page lets the row's page go while it looks for that one, and that one while it locks the row's again: what may have
//! become of the row, or of the room for it, when it has both.

use crate::common::{World, row, world};
use crate::vacuum::vacuum;
use base::sync::Arc;
use base::{BlockNumber, Fork, Tid, stop};
use buffer::Strategy;
use heap::{MapPin, RowLockMode, TupleOutcome, UpdateDone, UpdateOptions, Wait};
use std::thread::{JoinHandle, spawn};
use txn::{CommitExtras, Transaction};

/// It has room for the new version.
const NEW_PAGE: u32 = 1;

const COLD: UpdateOptions = UpdateOptions { hot: false, key_changed: false, wait: Wait::Block };

/// Of an update unless the row was written over.
type Outcome = TupleOutcome<Option<UpdateDone>>;

fn committed<R>(w: &World, f: impl FnOnce(&Transaction) -> R) -> R {
    let t = w.begin();
    let r = f(&t);
    t.commit(CommitExtras::default()).unwrap();
    r
}

/// A page full of rows, the first of them row 0, and the others on the next.
fn two_pages(w: &World) -> Vec<Tid> {
    let tids = committed(w, |t| (0..30).map(|k| w.insert(t, k, &[b'x'; 400])).collect::<Vec<_>>());
    assert_eq!((tids[0].block.0, tids[29].block.0), (0, NEW_PAGE));
    // Where an insertion begins to look is a hint, which may be another heap's.
    w.heap.free_space_map().record(BlockNumber(NEW_PAGE), 3000).unwrap();
    tids
}

/// Updates row 0 of a full page to one that does not fit there. It has seen the row, and let the page go, when `meanwhile` is called.
fn updates(w: &Arc<World>, meanwhile: impl FnOnce(Tid)) -> JoinHandle<Outcome> {
    let tid = two_pages(w)[0];
    updates_until("heap.update.page_let_go", w, tid, || meanwhile(tid))
}

/// The same; it has got to `point` when `meanwhile` is called.
fn updates_until(
    point: &'static str,
    w: &Arc<World>,
    tid: Tid,
    meanwhile: impl FnOnce(),
) -> JoinHandle<Outcome> {
    let let_go = stop::arm(point);
    let (of_thread, subject) = (Arc::clone(w), let_go.subject());
    let updater = spawn(move || {
        let w = of_thread;
        let t = w.begin();
        let _sees_it = t.take_snapshot();
        let (was, new) = (row(0, &[b'x'; 400]), row(0, &[b'y'; 900]));
        let update = || w.heap.update_unless_rewritten(&t, tid, &was, &new, COLD).unwrap();
        let outcome = subject.run(update);
        t.commit(CommitExtras::default()).unwrap();
        outcome
    });
    let_go.wait_reached();
    meanwhile();
    let_go.release();
    updater
}

fn value_of(w: &World, key: u64) -> Option<u8> {
    w.rows(&w.begin().take_snapshot()).get(&key).map(|(_, value)| value[0])
}

#[test]
fn a_row_deleted_meanwhile_stays_deleted() {
    let w = Arc::new(world());
    let mut by = None;
    let updater = updates(&w, |tid| {
        by = committed(&w, |t| {
            assert_eq!(w.heap.delete(t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
            t.top_xid()
        });
    });
    assert_eq!(updater.join().unwrap(), TupleOutcome::Deleted { xmax: by.unwrap() });
    assert_eq!(value_of(&w, 0), None);
    w.assert_replay_equal();
}

#[test]
fn a_row_updated_meanwhile_is_not_updated_twice() {
    let w = Arc::new(world());
    let updater = updates(&w, |tid| {
        let done = committed(&w, |t| w.heap.update(t, tid, &row(0, b"short"), COLD).unwrap());
        assert!(matches!(done, TupleOutcome::Ok(done) if done.tid.block == tid.block));
    });
    let outcome = updater.join().unwrap();
    assert!(matches!(outcome, TupleOutcome::Updated { .. }), "{outcome:?}");
    assert_eq!(value_of(&w, 0), Some(b's'));
    w.assert_replay_equal();
}

#[test]
fn a_row_locked_meanwhile_is_waited_for() {
    let w = Arc::new(world());
    let locker = w.begin();
    let updater = updates(&w, |tid| {
        let mode = RowLockMode::Share;
        let outcome = w.heap.lock_tuple(&locker, tid, mode, Wait::NoWait, None).unwrap();
        assert_eq!(outcome, TupleOutcome::Ok(()));
    });
    while w.ctx.txns.locks().waits().is_empty() {
        assert!(!updater.is_finished(), "it does not wait");
        std::thread::yield_now();
    }
    locker.commit(CommitExtras::default()).unwrap();
    assert!(matches!(updater.join().unwrap(), TupleOutcome::Ok(Some(_))));
    assert_eq!(value_of(&w, 0), Some(b'y'));
    w.assert_replay_equal();
}

#[test]
fn a_row_written_over_meanwhile_is_not_put_back() {
    let w = Arc::new(world());
    let updater = updates(&w, |tid| w.heap.update_in_place(tid, &row(0, &[b'z'; 400])).unwrap());
    assert_eq!(updater.join().unwrap(), TupleOutcome::Ok(None));
    assert_eq!(value_of(&w, 0), Some(b'z'));
    w.assert_replay_equal();
}

/// The map's page, which was not needed before, is pinned then.
#[test]
fn a_page_that_has_become_all_visible_meanwhile_is_so_no_more() {
    let w = Arc::new(world());
    let updater = updates(&w, |tid| {
        assert!(vacuum(&w, tid.block.0, true).0.set_all_visible);
    });
    assert!(matches!(updater.join().unwrap(), TupleOutcome::Ok(Some(_))));
    assert!(!w.page(Fork::Main, 0).is_all_visible());
    let bits = w.heap.visibility_map().bits(BlockNumber(0), &mut MapPin::none()).unwrap();
    assert_eq!(bits, 0);
    assert_eq!(value_of(&w, 0), Some(b'y'));
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_page_that_others_have_filled_meanwhile_is_not_where_it_goes() {
    let w = Arc::new(world());
    let tid = two_pages(&w)[0];
    let updater = updates_until("heap.update.new_page_let_go", &w, tid, || {
        committed(&w, |t| {
            let mut keys = 100..;
            while w.insert(t, keys.next().unwrap(), &[b'x'; 400]).block.0 <= NEW_PAGE {}
        });
    });
    let outcome = updater.join().unwrap();
    let TupleOutcome::Ok(Some(done)) = outcome else { panic!("{outcome:?}") };
    assert!(done.tid.block.0 > NEW_PAGE, "{done:?}");
    assert_eq!(value_of(&w, 0), Some(b'y'));
    w.check();
    w.assert_replay_equal();
}

/// The map's page, which was not needed when the page was chosen, is pinned then.
#[test]
fn a_page_that_it_goes_to_and_that_has_become_all_visible_is_so_no_more() {
    let w = Arc::new(world());
    let tids = two_pages(&w);
    let (tid, gone) = (tids[0], tids[29]);
    committed(&w, |t| {
        assert_eq!(w.heap.delete(t, gone, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    });
    vacuum(&w, NEW_PAGE, false);
    let (map, mut pin) = (w.heap.visibility_map(), MapPin::none());
    let updater = updates_until("heap.update.new_page_let_go", &w, tid, || {
        // A line pointer that waited for its index entries is freed, whoever has the page pinned.
        let page = w.rel.pin(Fork::Main, gone.block, &mut Strategy::Normal).unwrap();
        let bits = map.bits(gone.block, &mut pin).unwrap();
        let (dead, horizon) = ([gone.offset], w.heap.horizon());
        let done = w.heap.reap(&mut page.write(), &pin, &dead, Some(bits), true, &horizon);
        assert!(done.unwrap().set_all_visible);
    });
    let outcome = updater.join().unwrap();
    let TupleOutcome::Ok(Some(done)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(done.tid.block, gone.block);
    assert!(!w.page(Fork::Main, NEW_PAGE).is_all_visible());
    assert_eq!(map.bits(gone.block, &mut pin).unwrap(), 0);
    assert_eq!(value_of(&w, 0), Some(b'y'));
    w.check();
    w.assert_replay_equal();
}
