//! The commit log is cut, while it is written, flushed, and a checkpoint comes by.

use crate::support::FakeLog;
use base::{Lsn, Result, Xid};
use disk::Disk;
use disk::sim::SimDisk;
use std::sync::{Arc, Mutex, OnceLock};
use txn::clog::{CommitLog, Outcome, PAGE_XIDS, SEGMENT_XIDS};
use txn::{CheckpointState, LogWriter, TransactionManager, TxnConfig};

fn log(disk: &Arc<SimDisk>) -> CommitLog {
    disk.create_dir("xact").unwrap();
    disk.sync_dir("").unwrap();
    // None of the pages here are in each other's place.
    CommitLog::new(disk.clone(), "xact", Arc::new(FakeLog::default()), 11, Xid(0), Xid(0))
}

fn segments(disk: &SimDisk) -> Vec<u64> {
    let names = disk.list("xact").unwrap();
    names.iter().map(|name| u64::from_str_radix(name, 16).unwrap()).collect()
}

/// Pages of segments that are gone were changed after they were last written, and are still in memory.
#[test]
fn what_was_cut_off_is_not_written_any_more() {
    let disk = SimDisk::new(1);
    let clog = log(&disk);
    let xids = [5, PAGE_XIDS + 5, SEGMENT_XIDS + 5, 2 * SEGMENT_XIDS + 5].map(Xid);
    let last = xids[3];
    clog.set(&xids, Outcome::Committed, Lsn(0)).unwrap();
    assert_eq!(clog.flush(last).unwrap(), 4);
    clog.set(&xids, Outcome::Aborted, Lsn(0)).unwrap();
    assert_eq!(clog.truncate(last).unwrap(), 2);
    assert_eq!(segments(&disk), [2]);
    // A checkpoint, and pages that need the memory.
    assert_eq!(clog.flush(last).unwrap(), 1);
    let later: Vec<Xid> = (0..20).map(|n| Xid(last.0 + n * PAGE_XIDS)).collect();
    clog.set(&later, Outcome::Committed, Lsn(0)).unwrap();
    clog.flush(last).unwrap();
    assert_eq!(segments(&disk), [2]);
    assert!(xids[..3].iter().all(|x| clog.get(*x).is_err()));
    assert_eq!(clog.get(last).unwrap(), Outcome::Committed);
}

/// The segment in which the oldest XID lies stays, pages in memory and all.
#[test]
fn what_was_not_cut_off_stays() {
    let disk = SimDisk::new(1);
    let clog = log(&disk);
    let kept = [SEGMENT_XIDS, SEGMENT_XIDS + 1, SEGMENT_XIDS + PAGE_XIDS].map(Xid);
    clog.set(&[Xid(5)], Outcome::Committed, Lsn(0)).unwrap();
    clog.set(&kept, Outcome::Committed, Lsn(0)).unwrap();
    clog.flush(kept[2]).unwrap();
    clog.set(&kept, Outcome::Aborted, Lsn(0)).unwrap();
    assert_eq!(clog.truncate(kept[0]).unwrap(), 1);
    assert!(kept.iter().all(|x| clog.get(*x).unwrap() == Outcome::Aborted));
    assert_eq!(clog.flush(kept[2]).unwrap(), 2);
    // Within it nothing is to be removed, but XIDs below are not asked for any more.
    assert_eq!(clog.truncate(kept[2]).unwrap(), 0);
    assert_eq!(segments(&disk), [1]);
    assert!(clog.get(kept[1]).is_err() && clog.get(kept[2]).is_ok());
}

/// What is removed does not come back after a power loss.
#[test]
fn a_segment_that_was_removed_is_gone_for_good() {
    let disk = SimDisk::new(1);
    let clog = log(&disk);
    let last = Xid(SEGMENT_XIDS);
    clog.set(&[Xid(5), last], Outcome::Committed, Lsn(0)).unwrap();
    clog.flush(last).unwrap();
    clog.truncate(last).unwrap();
    for seed in 0..10 {
        assert_eq!(segments(&disk.after_crash(seed)), [1]);
    }
}

/// A log beside which a checkpoint comes by when the cut has been logged, and nothing has been cut.
#[derive(Default)]
struct Beside {
    log: FakeLog,
    manager: OnceLock<Arc<TransactionManager>>,
    /// How many segments there are, and what the checkpoint would note.
    seen: Mutex<Vec<(usize, CheckpointState)>>,
    disk: OnceLock<Arc<SimDisk>>,
}

impl LogWriter for Beside {
    fn insert(&self, info: u8, xid: Xid, data: &[u8]) -> Lsn {
        self.log.insert(info, xid, data)
    }
    fn flush(&self, lsn: Lsn) -> Result<()> {
        if let (Some(manager), Some(disk)) = (self.manager.get(), self.disk.get()) {
            let seen = (segments(disk).len(), manager.checkpoint()?);
            self.seen.lock().unwrap().push(seen);
        }
        self.log.flush(lsn)
    }
    fn flushed_lsn(&self) -> Lsn {
        self.log.flushed_lsn()
    }
}

/// The checkpoint's redo lies behind the cut's record, so that it is not replayed: what it notes must say what the record says.
#[test]
fn a_checkpoint_between_a_cuts_record_and_the_cut_knows_of_it() {
    let disk = SimDisk::new(1);
    let beside = Arc::new(Beside::default());
    let manager =
        TransactionManager::open(disk.clone(), beside.clone(), TxnConfig::default()).unwrap();
    manager.burn_xids(2 * SEGMENT_XIDS).unwrap();
    manager.checkpoint().unwrap();
    let before = manager.next_xid();
    assert_eq!(segments(&disk).len(), 3);
    beside.disk.set(disk.clone()).unwrap();
    beside.manager.set(manager.clone()).ok().unwrap();
    assert_eq!(manager.truncate_clog(before).unwrap(), 2);
    let seen = beside.seen.lock().unwrap();
    assert_eq!(seen.iter().map(|s| (s.0, s.1.oldest_clog_xid)).collect::<Vec<_>>(), [(3, before)]);
    assert_eq!(manager.oldest_clog_xid(), before);
}
