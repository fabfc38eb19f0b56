//! What a disk refuses once, and what a crash leaves behind: it is made good.

use crate::lifecycle::{DATABASE, add_page, begin, contents, files, fresh, options};
use base::settings::Value;
use base::sync::{CancelFlag, CancelReason};
use base::{RelationId, SqlState};
use buffer::Persistence;
use disk::sim::{Fault, Operation, SimDisk};
use disk::{Disk, OpenMode};
use engine::{CheckpointFlags, Engine};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use txn::CommitExtras;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn refuse(disk: &SimDisk, operation: Operation, path: &str, error: i32, once: bool) {
    let path_contains = path.to_owned();
    disk.inject(Fault { operation, path_contains, after: 0, error, once });
}

/// A relation that was dropped, whose file could not be removed.
fn with_a_file_left(disk: &Arc<SimDisk>) -> (Arc<Engine>, RelationId) {
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 5).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    refuse(disk, Operation::Name, &id.file_number.to_string(), EIO, false);
    let t = begin(&engine);
    engine.files.remove_at_commit(&t, id);
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(files(&**disk), [id.file_number]);
    (engine, id)
}

#[test]
fn a_file_that_could_not_be_removed_goes_with_the_next_checkpoint() {
    let disk = fresh();
    let (engine, id) = with_a_file_left(&disk);
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    assert_eq!(files(&*disk), [id.file_number], "still refused");
    disk.heal();
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    assert!(files(&*disk).is_empty());
}

#[test]
fn a_file_that_could_not_be_removed_is_known_to_the_next_start() {
    // In order; by a crash, after a checkpoint; by a crash before one.
    for how in 0..3 {
        let disk = fresh();
        let (engine, id) = with_a_file_left(&disk);
        let disk = match how {
            0 => {
                engine.shutdown().unwrap();
                disk.snapshot(1)
            }
            _ => {
                if how == 1 {
                    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
                }
                disk.crash();
                disk.after_crash(3)
            }
        };
        drop(engine);
        // Where nothing is replayed of it: not yet.
        if how < 2 {
            refuse(&disk, Operation::Name, &id.file_number.to_string(), EIO, false);
        }
        let engine = Engine::open(disk.clone(), options()).unwrap();
        assert_eq!(files(&*disk).is_empty(), how == 2, "{how}");
        disk.heal();
        engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
        assert!(files(&*disk).is_empty(), "{how}");
    }
}

/// There was room for what is left, and need not be for what was removed.
#[test]
fn redo_does_not_make_again_what_the_log_removes() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let ids: Vec<RelationId> = (0..4)
        .map(|_| engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id())
        .collect();
    let (stays, from_before) = (ids[0], ids[1]);
    for id in &ids {
        add_page(&engine, *id, Persistence::Permanent, 5).unwrap();
    }
    t.commit(CommitExtras::default()).unwrap();
    // The log removes what it does not make, too.
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    let t = begin(&engine);
    let made = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    for id in [stays, from_before, made] {
        add_page(&engine, id, Persistence::Permanent, 6).unwrap();
    }
    engine.files.remove_at_commit(&t, from_before);
    t.abort().unwrap();
    let t = begin(&engine);
    engine.files.remove_at_commit(&t, from_before);
    t.commit(CommitExtras::default()).unwrap();
    add_page(&engine, stays, Persistence::Permanent, 7).unwrap();
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    disk.crash();
    let disk = disk.after_crash(3);
    drop(engine);
    for id in [from_before, made] {
        refuse(&disk, Operation::Write, &id.file_number.to_string(), ENOSPC, false);
    }
    let engine = Engine::open(disk.clone(), options()).unwrap();
    assert_eq!(files(&*disk), [stays, ids[2], ids[3]].map(|id| id.file_number));
    assert_eq!(contents(&engine, stays), [5, 6, 7]);
    engine.shutdown().unwrap();
}

/// Whoever replays the record: the reader of the log hears of it, and ends.
#[test]
fn what_a_thread_of_recovery_meets_is_told() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let ids: Vec<RelationId> = (0..4)
        .map(|_| engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id())
        .collect();
    let values: Vec<u8> = (1..60).collect();
    for value in &values {
        for id in &ids {
            add_page(&engine, *id, Persistence::Permanent, *value).unwrap();
        }
    }
    t.commit(CommitExtras::default()).unwrap();
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    disk.crash();
    let left = disk.after_crash(3);
    drop(engine);
    for workers in [1, 3, 7] {
        let disk = left.snapshot(1);
        let options = options();
        options.settings.set_internal("ebb.redo_workers", Value::Int(workers));
        options.settings.set_internal("shared_buffers", Value::Int(256));
        refuse(&disk, Operation::Write, &ids[2].file_number.to_string(), ENOSPC, false);
        let failed = Engine::open(disk.clone(), options.clone()).unwrap_err();
        assert_eq!(failed.state(), SqlState::DISK_FULL, "{workers}: {failed}");
        assert!(failed.to_string().contains(&ids[2].file_number.to_string()), "{failed}");
        disk.heal();
        let engine = Engine::open(disk, options).unwrap();
        for id in &ids {
            assert_eq!(contents(&engine, *id), values, "{workers}");
        }
        engine.shutdown().unwrap();
    }
}

#[test]
fn a_failed_checkpoint_is_tried_again_soon() {
    let disk = fresh();
    let mut options = options();
    options.background = true;
    let engine = Engine::open(disk.clone(), options).unwrap();
    let t = begin(&engine);
    engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    refuse(&disk, Operation::Write, "ebb.control", ENOSPC, false);
    let redo = engine.control().redo;
    let failed = engine.checkpoint(CheckpointFlags::MANUAL).unwrap_err();
    assert_eq!(failed.state(), SqlState::DISK_FULL);
    assert!(!engine.has_failed());
    assert_eq!(engine.control().redo, redo);
    disk.heal();
    // Nobody asks for another.
    let begun = Instant::now();
    while engine.checkpointer.counters.done.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(engine.control().redo > redo);
    engine.shutdown().unwrap();
}

/// A checkpoint lasts as long as its disk lets it: who waits for one need not.
#[test]
fn a_wait_for_a_checkpoint_can_be_cancelled() {
    let disk = fresh();
    let mut options = options();
    options.background = true;
    let engine = Engine::open(disk.clone(), options).unwrap();
    let cancel = &CancelFlag::default();
    let held = base::stop::arm("txn.commit.before_mark");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let (engine, t) = (&engine, begin(&engine));
        scope.spawn(move || {
            engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap();
            subject.run(|| t.commit(CommitExtras::default()).unwrap());
        });
        // A checkpoint that has begun waits for this commit.
        held.wait_reached();
        let waiter = scope.spawn(move || {
            engine.checkpoint_or_cancel(CheckpointFlags::MANUAL, Some(cancel)).unwrap_err()
        });
        let begun = Instant::now();
        while engine.checkpointer.counters.requested.load(Ordering::SeqCst) == 0 {
            assert!(begun.elapsed() < base::stop::PATIENCE, "no checkpoint");
            std::thread::yield_now();
        }
        cancel.raise(CancelReason::UserRequest);
        assert_eq!(waiter.join().unwrap().state(), SqlState::QUERY_CANCELED);
        held.release();
        engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    });
    engine.shutdown().unwrap();
}

#[test]
fn a_checkpoint_on_a_full_disk_says_so() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    refuse(&disk, Operation::Write, "ebb.control", ENOSPC, false);
    let failed = engine.checkpoint(CheckpointFlags::MANUAL).unwrap_err();
    assert_eq!(failed.state(), SqlState::DISK_FULL);
    assert!(engine.shutdown().is_err());
    drop(engine);
    disk.heal();
    Engine::open(disk.clone(), options()).unwrap();
}

/// A crash leaves temporary tables in the catalogs, and removes their files. To drop such a table must not take another's file.
#[test]
fn temporary_relations_have_other_numbers_after_each_start() {
    let mut disk = fresh();
    let mut seen = Vec::new();
    for round in 0..4 {
        let engine = Engine::open(disk.clone(), options()).unwrap();
        for _ in 0..3 {
            let t = begin(&engine);
            let id = engine.files.create(&t, DATABASE, Persistence::Temp).unwrap().id();
            assert!(id.file_number >= engine::storage::FIRST_TEMPORARY);
            assert!(!seen.contains(&id.file_number), "round {round}");
            seen.push(id.file_number);
            // As a table's rows in the catalogs would be.
            let table = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
            add_page(&engine, table, Persistence::Permanent, 1).unwrap();
            t.commit(CommitExtras::default()).unwrap();
        }
        if round == 1 {
            engine.shutdown().unwrap();
        }
        disk.crash();
        drop(engine);
        disk = disk.after_crash(round);
    }
}

#[test]
fn what_a_sort_left_behind_goes_at_the_start() {
    let disk = fresh();
    disk.create_dir("base/pgsql_tmp").unwrap();
    disk.open("base/pgsql_tmp/index_sort.1.0", OpenMode::Create).unwrap();
    disk.sync_dir("base/pgsql_tmp").unwrap();
    disk.sync_dir("base").unwrap();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    assert!(disk.list("base/pgsql_tmp").unwrap_or_default().is_empty());
    engine.shutdown().unwrap();
}

/// A disk without any room left: the log's segments come free with a checkpoint, at the start too.
#[test]
fn a_checkpoint_needs_no_room() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    t.commit(CommitExtras::default()).unwrap();
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    add_page(&engine, id, Persistence::Permanent, 5).unwrap();
    let redo = engine.control().redo;
    disk.set_free_space(0);
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    assert!(engine.control().redo > redo);
    disk.crash();
    drop(engine);
    let disk = disk.after_crash(3);
    disk.set_free_space(0);
    let engine = Engine::open(disk.clone(), options()).unwrap();
    assert_eq!(contents(&engine, id), [5]);
    engine.shutdown().unwrap();
}
