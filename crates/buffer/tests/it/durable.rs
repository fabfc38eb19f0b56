//! What a checkpoint's syncs make durable: files, names, folders; and that a failed one is final.

use crate::common::*;
use base::{BlockNumber, Fork, SqlState};
use buffer::{Persistence, Strategy};
use disk::Disk;
use disk::sim::{Fault, Operation};

/// So many files are synced by one sync of all.
const MANY: u32 = 64;

/// Whatever of it a power loss may leave out.
const LOSSES: std::ops::Range<u64> = 0..10;

#[test]
fn a_new_file_and_the_folder_made_for_it_are_durable() {
    let bed = bed(64);
    bed.disk.create_dir("base").unwrap();
    bed.disk.sync_dir("").unwrap();
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    for seed in LOSSES {
        let after = bed.disk.after_crash(seed);
        assert_eq!(["base/5", "base/5/1"].map(|p| after.exists(p).unwrap()), [true; 2]);
    }
    // Another one in a folder that is there, and another fork.
    filled(&bed, 2, 1);
    drop(rel.extend_one(Fork::FreeSpaceMap, &mut Strategy::Normal).unwrap());
    bed.checkpoint();
    for seed in LOSSES {
        let after = bed.disk.after_crash(seed);
        assert_eq!(["base/5/2", "base/5/1_fsm"].map(|p| after.exists(p).unwrap()), [true; 2]);
    }
}

#[test]
fn a_file_removed_does_not_come_back() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    bed.pool.unlink(rel.id()).unwrap();
    assert!(LOSSES.clone().any(|seed| bed.disk.after_crash(seed).exists("base/5/1").unwrap()));
    bed.checkpoint();
    for seed in LOSSES {
        assert!(!bed.disk.after_crash(seed).exists("base/5/1").unwrap());
    }
}

/// The file's sync comes first, and then its folder's.
#[test]
fn a_failed_sync_of_a_folder_is_final() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 2);
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    bed.disk.inject(Fault {
        operation: Operation::Sync,
        path_contains: "base/5".to_owned(),
        after: 1,
        error: libc::EIO,
        once: true,
    });
    let e = bed.pool.sync_all_pending().unwrap_err();
    assert_eq!((e.state(), bed.disk.counts().dir_syncs > 0), (SqlState::IO_ERROR, true), "{e}");
    is_final(&bed, &rel, "could not fsync folder \"base/5\"");
}

fn is_final(bed: &Bed, rel: &buffer::RelationHandle, why: &str) {
    assert!(bed.pool.failure().is_some_and(|f| f.contains(why)), "{:?}", bed.pool.failure());
    bed.disk.heal();
    bed.pool.sync_all_pending().unwrap_err();
    assert!(rel.extend_one(Main, &mut Strategy::Normal).is_err());
}

#[test]
fn many_files_are_synced_together_with_their_names() {
    let bed = bed(256);
    let gone = filled(&bed, 1, 1);
    bed.checkpoint();
    bed.pool.unlink(gone.id()).unwrap();
    let rels: Vec<_> = (2..2 + MANY).map(|n| filled(&bed, n, 2)).collect();
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    let before = bed.disk.counts().syncs;
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, rels.len());
    assert_eq!(bed.disk.counts().syncs, before + 1);
    for seed in LOSSES {
        let after = bed.disk.after_crash(seed);
        assert!(!after.exists("base/5/1").unwrap());
        for rel in &rels {
            let file = after.open(&rel.id().to_string(), disk::OpenMode::Existing).unwrap();
            let mut page = page::Page::new_zeroed();
            assert_eq!(file.read_at(page.bytes_mut(), 8192).unwrap(), 8192);
            assert_eq!(page.bytes()[32..40], 1u64.to_le_bytes());
        }
    }
    // What is written afterwards is to be synced again.
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 0);
    fill(&pin(&rels[7], 0), 9, 9);
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 1);
}

#[test]
fn a_failed_sync_of_all_is_final() {
    let bed = bed(256);
    let rels: Vec<_> = (1..1 + MANY).map(|n| filled(&bed, n, 1)).collect();
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    bed.disk.fail_sync(0);
    assert_eq!(bed.pool.sync_all_pending().unwrap_err().state(), SqlState::IO_ERROR);
    is_final(&bed, &rels[0], "could not fsync the data directory");
}

/// A crash resets the other forks to it: it goes through the log and the checkpoints as a permanent relation's forks do.
#[test]
fn an_unlogged_relations_init_fork_is_durable_and_waits_for_its_log() {
    let bed = bed(64);
    let unlogged = bed.pool.create(rel(1), Persistence::Unlogged).unwrap();
    fill(&unlogged.extend_one(Main, &mut Strategy::Normal).unwrap(), 1, 0);
    fill(&unlogged.extend_one(Fork::Init, &mut Strategy::Normal).unwrap(), 2, 500);
    assert_eq!(bed.checkpoint().pages_written, 1);
    assert_eq!(bed.wal.flushed.load(std::sync::atomic::Ordering::SeqCst), 500);
    assert_eq!(on_disk(&bed, &unlogged, Fork::Init, 0).bytes()[32], 2);
    assert!(on_disk(&bed, &unlogged, Main, 0).is_all_zero());
    // One from beyond the log's end is of a log that has been lost.
    let again = bed.reopened(64);
    again.wal.flushed.store(400, std::sync::atomic::Ordering::SeqCst);
    let handle = again.pool.open(unlogged.id(), Persistence::Unlogged);
    let e = handle.pin(Fork::Init, BlockNumber(0), &mut Strategy::Normal).unwrap_err();
    assert!(e.to_string().contains("lies beyond the write-ahead log's end"), "{e}");
}
