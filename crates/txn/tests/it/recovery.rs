//! Crashes on a disk that loses and tears what was not synced.

use base::{Error, Oid, RelationId, Xid};
use disk::Disk;
use disk::sim::SimDisk;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use txn::{BackendKind, CheckpointState, CommitExtras, TransactionManager, TxnConfig, XidStatus};
use wal::{FIRST_LSN, Reader, Wal, WalConfig};

fn config(state: &CheckpointState) -> TxnConfig {
    TxnConfig {
        next_xid: state.next_xid,
        oldest_clog_xid: state.oldest_clog_xid,
        clog_buffers: 4,
        ..TxnConfig::default()
    }
}

struct Server {
    wal: Arc<Wal>,
    txns: Arc<TransactionManager>,
    removed: Arc<Mutex<Vec<u32>>>,
}

const FRESH: CheckpointState = CheckpointState {
    next_xid: Xid::FIRST_NORMAL,
    oldest_clog_xid: Xid::FIRST_NORMAL,
    oldest_running: Xid::FIRST_NORMAL,
    log_pages: 0,
};

fn start(disk: &Arc<SimDisk>, redo: base::Lsn, state: &CheckpointState) -> base::Result<Server> {
    let disk: Arc<dyn Disk> = disk.clone();
    let exists = disk.exists("wal").map_err(|e| Error::io("wal", e))?;
    let end = if exists {
        let mut reader = Reader::new(disk.clone(), "wal", redo, 1);
        while reader.next()?.is_some() {}
        reader.position()
    } else {
        disk.create_dir("wal").map_err(|e| Error::io("wal", e))?;
        disk.sync_dir("").map_err(|e| Error::io("wal", e))?;
        FIRST_LSN
    };
    let wal = Wal::open(disk.clone(), WalConfig::default(), end, redo)?;
    let txns = TransactionManager::open(disk.clone(), wal.clone(), config(state))?;
    let removed = Arc::new(Mutex::new(Vec::new()));
    let log = removed.clone();
    txns.set_file_remover(Box::new(move |files| {
        log.lock().unwrap().extend(files.iter().map(|f| f.file_number));
        Ok(())
    }));
    let mut reader = Reader::new(disk, "wal", redo, 1);
    while let Some(record) = reader.next()? {
        txns.note_replayed_xid(record.xid);
        if record.rmgr == wal::ResourceManager::Transaction {
            txns.redo(&record)?;
        }
    }
    txns.finish_recovery();
    Ok(Server { wal, txns, removed })
}

/// A change, so that the commit has something to wait for.
fn log_something(server: &Server, xid: Xid) {
    let mut record = wal::RecordBuilder::new(wal::ResourceManager::Heap, 0, xid);
    record.data(b"a change");
    server.wal.insert(&record);
}

/// Commits, aborts, savepoints and checkpoints; what must be true of each XID afterwards (absent: it may be either).
fn workload(
    server: &Server,
    outcome: &mut BTreeMap<Xid, bool>,
    last: &mut (base::Lsn, CheckpointState),
) -> base::Result<()> {
    let backend = server.txns.register_backend(BackendKind::Client);
    for i in 0..60u32 {
        let t = server.txns.begin(&backend);
        let top = t.xid()?;
        log_something(server, top);
        t.begin_sub();
        let kept = t.xid()?;
        t.commit_sub()?;
        t.begin_sub();
        let undone = t.xid()?;
        t.rollback_sub()?;
        outcome.insert(undone, false);
        if i % 7 == 3 {
            outcome.insert(top, false);
            outcome.insert(kept, false);
            t.abort()?;
        } else {
            outcome.remove(&top);
            t.remove_on_commit(RelationId { database: Oid(1), file_number: i });
            match t.commit(CommitExtras { sync: true, ..CommitExtras::default() }) {
                Ok(_) => {
                    outcome.insert(top, true);
                    outcome.insert(kept, true);
                }
                Err(e) => return Err(e),
            }
        }
        if i % 5 == 4 {
            server.txns.burn_xids(40_000)?;
        }
        if i % 8 == 7 {
            let redo = server.wal.begin_checkpoint();
            let state = server.txns.checkpoint()?;
            // A control file would be written here, in one step.
            server.wal.flush(server.wal.insert_lsn())?;
            *last = (redo, state);
            server.txns.checkpoint_done(&state);
        }
    }
    Ok(())
}

#[test]
fn a_crash_at_every_operation() {
    let mut crashes = 0;
    for n in (0..).step_by(3) {
        let disk = SimDisk::new(n);
        let mut outcome = BTreeMap::new();
        let mut last = (FIRST_LSN, FRESH);
        let Ok(server) = start(&disk, FIRST_LSN, &FRESH) else { panic!("start") };
        disk.crash_at(n);
        let result = workload(&server, &mut outcome, &mut last);
        if result.is_ok() {
            break;
        }
        crashes += 1;
        let next = server.txns.next_xid();
        for seed in 0..2 {
            let after = disk.after_crash(seed);
            let again = start(&after, last.0, &last.1)
                .unwrap_or_else(|e| panic!("crash {n}, seed {seed}: {e}"));
            for (xid, committed) in &outcome {
                let status = again.txns.status(*xid).unwrap();
                assert_eq!(
                    matches!(status, XidStatus::Committed(_)),
                    *committed,
                    "crash {n}, seed {seed}, xid {xid}: {status:?}"
                );
            }
            // XIDs that reached the log are not given out again.
            let newest = outcome.iter().filter(|o| *o.1).map(|o| *o.0).max();
            assert!(newest.is_none_or(|x| again.txns.next_xid() > x));
            assert!(again.txns.next_xid() <= next);
        }
    }
    assert!(crashes > 30, "{crashes}");
}

#[test]
fn replay_removes_files_and_keeps_ids() {
    let disk = SimDisk::new(5);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let mut outcome = BTreeMap::new();
    let mut last = (FIRST_LSN, FRESH);
    workload(&server, &mut outcome, &mut last).unwrap();
    let again = start(&disk.after_crash(1), FIRST_LSN, &FRESH).unwrap();
    assert_eq!(*again.removed.lock().unwrap(), *server.removed.lock().unwrap());
    assert_eq!(again.txns.next_xid(), server.txns.next_xid());
    for (xid, committed) in outcome {
        assert_eq!(again.txns.committed(xid).unwrap(), committed);
    }
}

#[test]
fn truncation_and_lost_segments() {
    let disk = SimDisk::new(6);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let mut xids = Vec::new();
    for _ in 0..5 {
        let t = server.txns.begin(&backend);
        xids.push(t.xid().unwrap());
        log_something(&server, xids[0]);
        t.commit(CommitExtras::default()).unwrap();
        server.txns.burn_xids(txn::clog::SEGMENT_XIDS).unwrap();
    }
    let redo = server.wal.begin_checkpoint();
    let state = server.txns.checkpoint().unwrap();
    server.txns.checkpoint_done(&state);
    assert_eq!(server.txns.truncate_clog(xids[2]).unwrap(), 2);
    assert_eq!(server.txns.oldest_clog_xid(), xids[2]);
    drop(backend);
    let after = disk.after_crash(3);
    let again = start(&after, redo, &state).unwrap();
    assert_eq!(again.txns.oldest_clog_xid(), xids[2], "the truncation is replayed");
    assert!(again.txns.status(xids[0]).is_err());
    assert!(xids[2..].iter().all(|x| again.txns.committed(*x).unwrap()));
    // A segment that the checkpoint covered is lost: that is said, not guessed at.
    let lost = disk.after_crash(3);
    lost.remove(&format!("xact/{:012X}", xids[3].0 / txn::clog::SEGMENT_XIDS)).unwrap();
    let again = start(&lost, redo, &state).unwrap();
    let e = again.txns.status(xids[3]).unwrap_err();
    assert!(matches!(e, Error::Corruption(_)), "{e}");
}

/// The log was cut after the last checkpoint, and power lost then: commits that are replayed are of segments that are gone.
#[test]
fn commits_of_segments_that_were_given_up_are_replayed() {
    let disk = SimDisk::new(8);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    server.txns.burn_xids(1000).unwrap();
    let redo = server.wal.begin_checkpoint();
    let state = server.txns.checkpoint().unwrap();
    server.txns.checkpoint_done(&state);
    let commit = || {
        let t = server.txns.begin(&backend);
        let xid = t.xid().unwrap();
        log_something(&server, xid);
        t.commit(CommitExtras::default()).unwrap();
        xid
    };
    let early = commit();
    server.txns.burn_xids(2 * txn::clog::SEGMENT_XIDS).unwrap();
    let late = commit();
    assert!(server.txns.truncate_clog(late).unwrap() >= 1);
    drop(backend);
    let again = start(&disk.after_crash(3), redo, &state).unwrap();
    assert_eq!(again.txns.oldest_clog_xid(), late);
    assert!(again.txns.committed(late).unwrap());
    assert!(again.txns.status(early).is_err());
}

/// A segment that is lost stays lost: checkpoints do not put an empty one in its place, by which all in it would have been rolled back.
#[test]
fn a_lost_segment_is_not_made_again() {
    let disk = SimDisk::new(9);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let xid = t.xid().unwrap();
    log_something(&server, xid);
    t.commit(CommitExtras::default()).unwrap();
    let redo = server.wal.begin_checkpoint();
    let state = server.txns.checkpoint().unwrap();
    server.txns.checkpoint_done(&state);
    drop(backend);
    let lost = disk.after_crash(3);
    lost.remove(&format!("xact/{:012X}", 0)).unwrap();
    let again = start(&lost, redo, &state).unwrap();
    assert!(again.txns.status(xid).is_err());
    again.txns.checkpoint().unwrap();
    assert!(again.txns.status(xid).is_err(), "after a checkpoint");
}

#[test]
fn a_damaged_page_is_reported() {
    let disk = SimDisk::new(7);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let x = t.xid().unwrap();
    log_something(&server, x);
    t.commit(CommitExtras::default()).unwrap();
    let redo = server.wal.begin_checkpoint();
    let state = server.txns.checkpoint().unwrap();
    let file = disk.open("xact/000000000000", disk::OpenMode::Existing).unwrap();
    file.write_at(&[0xFF], 20).unwrap();
    let txns = TransactionManager::open(disk.clone(), server.wal.clone(), config(&state)).unwrap();
    let e = txns.status(x).unwrap_err();
    assert!(e.to_string().contains("wrong checksum"), "{e}");
    let _ = redo;
}

/// Reading the log's page fails right when a commit wants to mark it: the commit stands, and the checkpoint makes the mark.
#[test]
fn a_commit_that_cannot_be_marked_has_committed() {
    let disk = SimDisk::new(8);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let x = t.xid().unwrap();
    disk.inject(disk::sim::Fault {
        operation: disk::sim::Operation::Read,
        path_contains: "xact".to_owned(),
        after: 0,
        error: 5,
        once: true,
    });
    t.commit(CommitExtras::default()).unwrap();
    assert!(server.txns.committed(x).unwrap());
    let redo = server.wal.begin_checkpoint();
    let state = server.txns.checkpoint().unwrap();
    let again = start(&disk.after_crash(1), redo, &state).unwrap();
    assert!(again.txns.committed(x).unwrap());
}

/// A transaction that only locked rows does not wait for the disk; one that logged something does.
#[test]
fn only_what_can_be_lost_is_waited_for() {
    let disk = SimDisk::new(9);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let x = t.xid().unwrap();
    let syncs = server.wal.stats().syncs;
    let info = t.commit(CommitExtras::default()).unwrap();
    assert_eq!(server.wal.stats().syncs, syncs);
    assert!(server.txns.committed(x).unwrap() && server.txns.commit_lsn_to_flush(x).is_valid());
    let t = server.txns.begin(&backend);
    t.xid().unwrap();
    let mut record = wal::RecordBuilder::new(wal::ResourceManager::Heap, 0, Xid(1));
    record.data(b"a change");
    server.wal.insert(&record);
    t.commit(CommitExtras::default()).unwrap();
    assert!(server.wal.stats().syncs > syncs);
    assert!(server.wal.flushed_lsn() >= info.lsn.unwrap());
}

/// A flush that fails between two files has synced one of them: the next one must not take the other for synced.
#[test]
fn a_flush_that_failed_is_done_again_whole() {
    use disk::sim::{Fault, Operation};
    use txn::clog::{CommitLog, Outcome, SEGMENT_XIDS};
    // More files than are kept open.
    let xids: Vec<Xid> = (0..80).map(|n| Xid(n * SEGMENT_XIDS + 5)).collect();
    let log = |disk: &Arc<SimDisk>, known| {
        let wal = Arc::new(crate::support::FakeLog::default());
        CommitLog::new(disk.clone(), "xact", wal, 4, Xid(0), known)
    };
    let mut failed = 0;
    for after in 0..200 {
        let disk = SimDisk::new(after);
        disk.create_dir("xact").unwrap();
        disk.sync_dir("").unwrap();
        let clog = log(&disk, Xid(0));
        clog.set(&xids, Outcome::Committed, base::Lsn(0)).unwrap();
        disk.inject(Fault {
            operation: Operation::Name,
            path_contains: "xact/".into(),
            after,
            error: 24,
            once: true,
        });
        let end = *xids.last().unwrap();
        failed += u32::from(clog.flush(end).is_err());
        disk.heal();
        clog.flush(end).unwrap();
        for seed in 0..2 {
            let after_crash = disk.after_crash(seed);
            let again = log(&after_crash, end);
            for xid in &xids {
                assert_eq!(again.get(*xid).unwrap(), Outcome::Committed, "{xid} after {after}");
            }
        }
    }
    assert!(failed > 10, "{failed}");
}

/// Nobody knows whether the record of a commit whose sync failed is there: until replay says so the transaction is neither committed nor
/// aborted, and no later one is answered.
#[test]
fn a_commit_whose_sync_failed_is_left_open() {
    let disk = SimDisk::new(10);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let top = t.xid().unwrap();
    t.begin_sub();
    let sub = t.xid().unwrap();
    t.commit_sub().unwrap();
    log_something(&server, sub);
    disk.fail_sync(0);
    t.commit(CommitExtras::default()).unwrap_err();
    let other = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&other);
    let snapshot = t.take_snapshot();
    for xid in [top, sub] {
        assert_eq!(server.txns.status(xid).unwrap(), XidStatus::InProgress);
        assert!(!snapshot.sees(xid).unwrap());
    }
    assert_eq!(server.txns.oldest_xmin(), top);
    let next = t.xid().unwrap();
    log_something(&server, next);
    t.commit(CommitExtras::default()).unwrap_err();
    // Nor is one that would not wait for the disk.
    let another = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&another);
    let lost = t.xid().unwrap();
    log_something(&server, lost);
    t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap_err();
    assert_eq!(server.txns.status(lost).unwrap(), XidStatus::InProgress);
    // Whether it was written out or not, all of it has the same end.
    for seed in 0..10 {
        let again = start(&disk.after_crash(seed), FIRST_LSN, &FRESH).unwrap();
        let ends = [top, sub].map(|xid| again.txns.committed(xid).unwrap());
        assert_eq!(ends[0], ends[1]);
    }
}

/// A file goes when the commit that drops it is durable, whether or not its transaction would have waited for that.
#[test]
fn a_file_whose_drop_is_not_durable_stays() {
    let disk = SimDisk::new(11);
    let server = start(&disk, FIRST_LSN, &FRESH).unwrap();
    let backend = server.txns.register_backend(BackendKind::Client);
    let t = server.txns.begin(&backend);
    let xid = t.xid().unwrap();
    log_something(&server, xid);
    t.remove_on_commit(RelationId { database: Oid(1), file_number: 7 });
    disk.fail_sync(0);
    t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap_err();
    assert_eq!(server.txns.status(xid).unwrap(), XidStatus::InProgress);
    assert!(server.removed.lock().unwrap().is_empty());
}
