//! Tuples drawn by hand, judged at the edges of snapshots and horizons.

use super::*;
use base::CommandId;
use disk::sim::SimDisk;
use page::tuple::{HEADER, TupleMut};
use txn::{BackendKind, CommitExtras, LogWriter, TxnConfig};

/// A log that is durable at once.
struct NoLog;

impl LogWriter for NoLog {
    fn insert(&self, _info: u8, _xid: Xid, _data: &[u8]) -> Lsn {
        Lsn(1)
    }
    fn flush(&self, _lsn: Lsn) -> Result<()> {
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(1)
    }
}

fn manager() -> Arc<TransactionManager> {
    TransactionManager::open(SimDisk::new(1), Arc::new(NoLog), TxnConfig::default()).unwrap()
}

fn begin(m: &Arc<TransactionManager>) -> Transaction {
    m.begin(&m.register_backend(BackendKind::Client))
}

/// A transaction that has done something, and committed.
fn committed(m: &Arc<TransactionManager>) -> Xid {
    let t = begin(m);
    let xid = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    xid
}

fn aborted(m: &Arc<TransactionManager>) -> Xid {
    let t = begin(m);
    let xid = t.xid().unwrap();
    t.abort().unwrap();
    xid
}

struct Drawn([u8; HEADER]);

impl Drawn {
    /// Made by `xmin`, deleted by `xmax` if that is valid.
    fn new(xmin: Xid, xmax: Xid, hints: u16) -> Drawn {
        let mut bytes = [0; HEADER];
        let mut t = TupleMut(&mut bytes);
        t.set_xmin_offset(u32::try_from(xmin.0).unwrap());
        t.set_xmax_offset(u32::try_from(xmax.0).unwrap());
        t.set_command_id(CommandId(0));
        t.set_infomask(hints | if xmax.is_valid() { 0 } else { XMAX_INVALID });
        Drawn(bytes)
    }
    fn view(&self) -> TupleView<'_> {
        TupleView { bytes: &self.0, xid_base: Xid(0) }
    }
}

fn exact(m: &TransactionManager) -> Horizon {
    Horizon { oldest_xmin: m.oldest_xmin(), live: Some(Arc::new(m.live_snapshots())) }
}

fn verdict(t: &Drawn, m: &TransactionManager, horizon: &Horizon) -> Verdict {
    satisfies_vacuum(&t.view(), m, horizon, &mut Hints::default()).unwrap()
}

#[test]
fn who_deleted_at_the_horizon_is_not_below_it() {
    let m = manager();
    let (made, gone) = (committed(&m), committed(&m));
    let t = Drawn::new(made, gone, 0);
    assert_eq!(verdict(&t, &m, &Horizon::at(gone)), Verdict::RecentlyDead);
    assert_eq!(verdict(&t, &m, &Horizon::at(Xid(gone.0 + 1))), Verdict::Dead);
}

#[test]
fn what_went_before_every_snapshot_is_dead_however_old_who_runs_is() {
    let m = manager();
    let made = committed(&m);
    // He holds the horizon back, and sees nothing.
    let idle = begin(&m);
    idle.xid().unwrap();
    let between = begin(&m);
    let old = between.take_snapshot();
    let (newer, gone) = (committed(&m), committed(&m));
    let later = begin(&m);
    let snapshot = later.take_snapshot();
    let horizon = exact(&m);
    assert!(horizon.oldest_xmin < newer);
    assert_eq!(verdict(&Drawn::new(made, gone, 0), &m, &horizon), Verdict::RecentlyDead);
    // Nobody sees what came and went between two snapshots, but one that was there before.
    assert_eq!(verdict(&Drawn::new(newer, gone, 0), &m, &horizon), Verdict::Middle);
    assert!(sees_before(&Drawn::new(newer, Xid::INVALID, 0).view(), &m, &horizon).unwrap());
    assert!(!sees_before(&Drawn::new(made, Xid::INVALID, 0).view(), &m, &horizon).unwrap());
    drop(old);
    let horizon = exact(&m);
    assert!(horizon.oldest_xmin < newer);
    for t in [Drawn::new(made, gone, 0), Drawn::new(newer, gone, 0)] {
        assert_eq!(verdict(&t, &m, &horizon), Verdict::Dead);
    }
    assert!(!sees_before(&Drawn::new(newer, Xid::INVALID, 0).view(), &m, &horizon).unwrap());
    drop(snapshot);
}

#[test]
fn who_made_it_at_the_horizon_is_not_below_it() {
    let m = manager();
    let t = begin(&m);
    let made = t.xid().unwrap();
    let reader = begin(&m);
    let snapshot = reader.take_snapshot();
    t.commit(CommitExtras::default()).unwrap();
    // The snapshot's xmin, whose commit it does not see.
    let (horizon, row) = (exact(&m), Drawn::new(made, Xid::INVALID, XMIN_COMMITTED));
    assert_eq!(horizon.oldest_xmin, made);
    assert!(sees_before(&row.view(), &m, &horizon).unwrap());
    assert!(!satisfies_mvcc(&row.view(), &snapshot, &mut Hints::default()).unwrap());
    let gone = committed(&m);
    assert_eq!(verdict(&Drawn::new(made, gone, 0), &m, &horizon), Verdict::RecentlyDead);
    assert_eq!(verdict(&Drawn::new(made, gone, 0), &m, &exact(&m)), Verdict::Middle);
}

#[test]
fn an_inserter_who_runs_has_deleted_it_only_if_that_stands() {
    let m = manager();
    let t = begin(&m);
    let xid = t.xid().unwrap();
    t.begin_sub();
    let sub = t.xid().unwrap();
    let horizon = Horizon::at(m.oldest_xmin());
    let by = |xmax| verdict(&Drawn::new(xid, xmax, 0), &m, &horizon);
    assert_eq!(by(Xid::INVALID), Verdict::InsertInProgress);
    assert_eq!((by(xid), by(sub)), (Verdict::DeleteInProgress, Verdict::DeleteInProgress));
    t.rollback_sub().unwrap();
    assert_eq!((by(xid), by(sub)), (Verdict::DeleteInProgress, Verdict::InsertInProgress));
}

#[test]
fn an_entry_is_killed_only_for_a_deleter_who_is_known_to_have_committed() {
    let m = manager();
    let (made, gone, back) = (committed(&m), committed(&m), aborted(&m));
    let horizon = Horizon::at(m.next_xid());
    let dead = |t: Drawn| is_surely_dead(&t.view(), &m, &horizon).unwrap();
    // No hint tells what became of him.
    assert!(!dead(Drawn::new(made, back, XMIN_COMMITTED)));
    assert!(!dead(Drawn::new(made, gone, XMIN_COMMITTED)));
    assert!(dead(Drawn::new(made, gone, XMIN_COMMITTED | XMAX_COMMITTED)));
    assert!(!dead(Drawn::new(made, gone, XMAX_COMMITTED)));
    assert!(dead(Drawn::new(back, Xid::INVALID, XMIN_INVALID)));
    assert!(dead(Drawn::new(Xid::INVALID, Xid::INVALID, 0)));
    assert!(!dead(Drawn::new(made, Xid::INVALID, XMIN_COMMITTED)));
}
