//! What the window of CSNs keeps, and for whom.

use crate::support::{backend, manager, manager_with};
use base::{Csn, Xid, stop};
use txn::clog::SEGMENT_XIDS;
use txn::csn::{CsnWindow, Entry, PAGE_XIDS};
use txn::{CommitExtras, LiveSnapshots, TxnConfig};

const FIRST: Xid = Xid(PAGE_XIDS);
const ABORTED: Xid = Xid(PAGE_XIDS + 7);
const LAST: Xid = Xid(2 * PAGE_XIDS - 1);
const NEXT: Xid = Xid(2 * PAGE_XIDS);

/// A page whose first half committed with CSN 10, its second one with CSN 20, one having rolled back; it has left the ring.
fn left_the_ring(running: Option<Xid>) -> CsnWindow {
    let window = CsnWindow::new(FIRST);
    for xid in (FIRST.0..NEXT.0).map(Xid).filter(|x| Some(*x) != running) {
        if xid == ABORTED {
            window.abort(xid);
        } else {
            window.commit(xid, Csn(if xid.0 < FIRST.0 + PAGE_XIDS / 2 { 10 } else { 20 }));
        }
    }
    window.extend_to(Xid(FIRST.0 + 64 * PAGE_XIDS));
    assert_eq!(window.old_pages(), (1, 0));
    window
}

fn live(csns: &[u64], taken_at: u64) -> LiveSnapshots {
    LiveSnapshots { csns: csns.iter().map(|c| Csn(*c)).collect(), taken_at: Csn(taken_at) }
}

#[test]
fn a_page_is_put_into_one_number_only_if_no_snapshot_parts_it() {
    let whole = |window: &CsnWindow| {
        assert_eq!(window.old_pages(), (1, 0));
        assert_eq!(window.get(FIRST), Entry::Committed(Csn(10)));
        assert_eq!(window.get(ABORTED), Entry::Aborted);
        assert_eq!(window.get(LAST), Entry::Committed(Csn(20)));
    };
    let window = left_the_ring(None);
    // A snapshot that sees the first half, or may have come since the list was made.
    for parts in [live(&[5, 10, 30], 40), live(&[19], 40), live(&[], 15)] {
        window.sweep(FIRST, &parts);
        whole(&window);
    }
    window.sweep(FIRST, &live(&[5, 9, 20, 30], 40));
    assert_eq!(window.old_pages(), (0, 1));
    assert_eq!(window.get(FIRST), Entry::Ended(Csn(20)));
    // Somebody's end is still to be noted.
    let window = left_the_ring(Some(LAST));
    window.sweep(FIRST, &live(&[], 40));
    assert_eq!((window.old_pages(), window.get(LAST)), ((1, 0), Entry::InProgress));
    window.commit(LAST, Csn(50));
    assert_eq!(window.get(LAST), Entry::Committed(Csn(50)));
}

#[test]
fn a_page_goes_when_all_of_it_is_below_the_horizon() {
    let window = left_the_ring(None);
    for (horizon, known) in [(FIRST, true), (LAST, true), (NEXT, false)] {
        window.sweep(horizon, &live(&[15], 40));
        assert_eq!(window.get(LAST) != Entry::Old, known, "{horizon}");
    }
    assert_eq!(window.old_pages(), (0, 0));
}

/// The commit log is not cut above who still has to end in it, whatever the caller takes for frozen.
#[test]
fn the_commit_log_is_kept_for_who_is_running() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let long = m.begin(&a);
    let xid = long.xid().unwrap();
    m.burn_xids(3 * SEGMENT_XIDS).unwrap();
    let other = m.begin(&b);
    other.xid().unwrap();
    other.commit(CommitExtras::default()).unwrap();
    assert_eq!(m.truncate_clog(m.next_xid()).unwrap(), 0);
    assert!(m.oldest_clog_xid() <= xid);
    long.commit(CommitExtras::default()).unwrap();
    assert!(m.committed(xid).unwrap());
    assert!(m.truncate_clog(m.next_xid()).unwrap() >= 1);
}

/// Two vacuums, of two databases for one, come to cut the log together: what one has removed the other need not.
#[test]
fn two_cut_the_commit_log_at_once() {
    let m = manager();
    let b = backend(&m);
    let commit = || {
        let t = m.begin(&b);
        let xid = t.xid().unwrap();
        t.commit(CommitExtras::default()).unwrap();
        xid
    };
    let mut xids = Vec::new();
    for _ in 0..4 {
        xids.push(commit());
        m.burn_xids(SEGMENT_XIDS).unwrap();
    }
    m.checkpoint().unwrap();
    std::thread::scope(|scope| {
        let listed = stop::arm("txn.clog.truncate.listed");
        let subject = listed.subject();
        let (other, to) = (&m, xids[2]);
        let late = scope.spawn(move || subject.run(|| other.truncate_clog(to)));
        listed.wait_reached();
        assert_eq!(m.truncate_clog(xids[3]).unwrap(), 3);
        listed.release();
        assert_eq!(late.join().unwrap().unwrap(), 0);
    });
    assert_eq!(m.oldest_clog_xid(), xids[3]);
    assert!(m.committed(xids[3]).unwrap());
}

/// A page of the commit log that must make room is not written before the log says the same.
#[test]
fn a_page_that_makes_room_waits_for_the_log() {
    let m = manager_with(TxnConfig { clog_buffers: 4, ..TxnConfig::default() });
    let old = m.begin(&backend(&m));
    old.xid().unwrap();
    // So far on that both are kept in one place.
    m.burn_xids(4 * txn::clog::PAGE_XIDS).unwrap();
    let lazily = || CommitExtras { sync: false, ..CommitExtras::default() };
    let lsn = old.commit(lazily()).unwrap().lsn.unwrap();
    assert!(m.log().flushed_lsn() < lsn);
    let new = m.begin(&backend(&m));
    new.xid().unwrap();
    new.commit(lazily()).unwrap();
    assert!(m.log().flushed_lsn() >= lsn);
}
