//! Marks of dead entries, whose rows' deleters have committed without waiting for the disk.

use crate::support::*;
use base::{Result, Tid, Xid};
use btree::{Btree, Liveness, ScanBounds, ScanOptions, TupleLiveness, UniqueCheck};
use buffer::{CheckpointOptions, PoolConfig};
use std::sync::Arc;
use wal::{RecordBuilder, ResourceManager};

fn key(n: u32) -> [u8; 4] {
    n.to_le_bytes()
}

/// Is the leaf on which `mark` marks the entry of row 3 not written before the deleter's commit is durable?
fn waits_for_the_commit(mark: impl FnOnce(&Arc<Btree>)) -> bool {
    let config = PoolConfig { write_behind_thread: false, ..PoolConfig::new(200) };
    let db = Database::with_pool(config);
    let tree = db.tree(&unique(vec![int4()]));
    for n in 0..10 {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    db.wal.flush(db.wal.insert_lsn()).unwrap();
    let commit = {
        let mut record = RecordBuilder::new(ResourceManager::Transaction, 0, Xid(9));
        record.data(b"committed");
        db.wal.insert(&record)
    };
    db.wal.note_asynchronous(commit);
    mark(&tree);
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let seen: Vec<Tid> = std::iter::from_fn(|| scan.next().unwrap()).collect();
    assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8, 9].map(tid), "it is marked");
    drop(scan);
    assert!(db.wal.flushed_lsn() < commit);
    db.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(())).unwrap();
    db.wal.flushed_lsn() >= commit
}

struct DeadToAll;

impl TupleLiveness for DeadToAll {
    fn check(&self, _: Tid) -> Result<Liveness> {
        Ok(Liveness::DeadToAll)
    }
    fn wait(&self, _: Tid, _: Xid) -> Result<()> {
        Ok(())
    }
}

/// Else a crash would undo the deletion, and no look by the index would find the row.
#[test]
fn a_mark_is_not_written_before_the_commit_it_rests_on() {
    assert!(waits_for_the_commit(|tree| {
        let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
        while let Some(t) = scan.next().unwrap() {
            if t == tid(3) {
                scan.kill_current();
            }
        }
    }));
    assert!(waits_for_the_commit(|tree| {
        let found = tree.find_conflict(&[Some(&key(3))], None, &DeadToAll).unwrap();
        assert_eq!(found, None);
    }));
}
