//! Init, open, shut down, crash and recover; relation files come and go with their transactions.

use base::settings::ServerSettings;
use base::{BlockNumber, Fork, Oid, RelationId, Xid};
use buffer::{Persistence, Strategy};
use disk::Disk;
use disk::sim::SimDisk;
use engine::control::ControlFile;
use engine::storage::parse_file_name;
use engine::{CheckpointFlags, Engine, EngineOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use txn::{BackendKind, CommitExtras, Transaction};
use wal::{RecordBuilder, ResourceManager};

pub const DATABASE: Oid = Oid(5);

pub fn options() -> EngineOptions {
    let settings = ServerSettings::new();
    settings.set_internal("shared_buffers", base::settings::Value::Int(64));
    settings.set_internal("wal_buffers", base::settings::Value::Int(16));
    settings.set_internal("log_checkpoints", base::settings::Value::Bool(false));
    let mut options = EngineOptions::new(Arc::new(settings));
    options.background = false;
    options.on_fatal = Arc::new(|_| {});
    options
}

pub fn begin(engine: &Engine) -> Transaction {
    engine.txns.begin(&engine.txns.register_backend(BackendKind::Internal))
}

/// Puts a page with `content` at the end of a relation.
pub fn add_page(
    engine: &Engine,
    id: RelationId,
    persistence: Persistence,
    content: u8,
) -> base::Result<()> {
    let handle = engine.files.open(id, persistence);
    let mut page = handle.extend_one(Fork::Main, &mut Strategy::Normal)?.into_write();
    page.mark_dirty();
    page.init(16);
    page.bytes_mut()[8180] = content;
    if persistence == Persistence::Permanent {
        let block = page.tag().block;
        let end = engine.files.log_pages(id, Fork::Main, &[(block, &page)]);
        page.set_lsn(end);
    }
    Ok(())
}

pub fn contents(engine: &Engine, id: RelationId) -> Vec<u8> {
    let handle = engine.files.open(id, Persistence::Permanent);
    let len = handle.len_blocks(Fork::Main).unwrap().0;
    (0..len)
        .map(|b| {
            let page = handle.pin(Fork::Main, BlockNumber(b), &mut Strategy::Normal).unwrap();
            page.read().bytes()[8180]
        })
        .collect()
}

pub fn files(disk: &dyn Disk) -> Vec<u32> {
    let folder = format!("base/{DATABASE}");
    if !disk.exists(&folder).unwrap() {
        return Vec::new();
    }
    let names = disk.list(&folder).unwrap();
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|n| parse_file_name(n)).map(|(n, _)| n).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub fn fresh() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let engine = Engine::init(disk.clone(), options()).unwrap();
    disk.create_dir(&format!("base/{DATABASE}")).unwrap();
    disk.sync_dir("base").unwrap();
    engine.shutdown().unwrap();
    drop(engine);
    disk.snapshot(1)
}

#[test]
fn made_opened_shut_down() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    assert!(!Engine::exists(&*disk).unwrap());
    let mut options = options();
    let engine = Engine::init(disk.clone(), options.clone()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 7).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    let oid = engine.files.new_oid();
    engine.shutdown().unwrap();
    assert!(Engine::open(disk.clone(), options.clone()).is_err(), "in use");
    drop(engine);
    assert!(Engine::exists(&*disk).unwrap());
    assert!(Engine::init(disk.clone(), options.clone()).is_err(), "not empty");
    options.background = true;
    let engine = Engine::open(disk.clone(), options.clone()).unwrap();
    assert_eq!(contents(&engine, id), [7]);
    assert!(engine.files.new_oid() > oid);
    add_page(&engine, id, Persistence::Permanent, 8).unwrap();
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    let redo = engine.control().redo;
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    assert!(engine.control().redo > redo);
    add_page(&engine, id, Persistence::Permanent, 9).unwrap();
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    engine.stop_at_once();
    drop(engine);
    // As after kill -9.
    let engine = Engine::open(disk.clone(), options).unwrap();
    assert_eq!(contents(&engine, id), [7, 8, 9]);
    let number = engine.files.create(&begin(&engine), DATABASE, Persistence::Permanent);
    assert!(number.unwrap().id().file_number > id.file_number);
    engine.shutdown().unwrap();
}

/// A process that is killed leaves to the system what it wrote and named: there to be seen by the next one, and not durable. Recovery finds
/// nothing to be done where it sees it, and its checkpoint would rest on it.
#[test]
fn a_killed_process_and_then_a_power_loss() {
    for seed in 0..12 {
        let disk = fresh();
        let engine = Engine::open(disk.clone(), options()).unwrap();
        let t = begin(&engine);
        let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
        add_page(&engine, id, Persistence::Permanent, 7).unwrap();
        t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        engine.stop_at_once();
        drop(engine);
        let engine = Engine::open(disk.clone(), options()).unwrap();
        assert_eq!(contents(&engine, id), [7]);
        engine.stop_at_once();
        drop(engine);
        let engine = Engine::open(disk.after_crash(seed), options()).unwrap();
        assert_eq!(contents(&engine, id), [7], "seed {seed}");
    }
}

/// Between two checkpoints a file is made, and the commit log is cut beyond who made it: he committed, or his file is gone.
#[test]
fn files_of_makers_that_the_commit_log_has_forgotten() {
    for (seed, checkpoint) in [(0, true), (1, false)] {
        let disk = fresh();
        let engine = Engine::open(disk.clone(), options()).unwrap();
        let t = begin(&engine);
        let lost = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
        t.abort().unwrap();
        let t = begin(&engine);
        let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
        add_page(&engine, id, Persistence::Permanent, 7).unwrap();
        t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        let next = engine.txns.burn_xids(1_100_000).unwrap();
        engine.txns.truncate_clog(next).unwrap();
        if checkpoint {
            engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
        }
        let engine = Engine::open(disk.after_crash(seed), options()).unwrap();
        assert_eq!(contents(&engine, id), [7]);
        assert!(!engine.files.open(lost, Persistence::Permanent).exists(Fork::Main).unwrap());
        engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    }
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let disk = SimDisk::new(1);
    assert!(Engine::open(disk.clone(), options()).is_err());
    assert!(disk.list("").unwrap().is_empty());
    disk.open("somebody's", disk::OpenMode::Create).unwrap();
    assert!(Engine::init(disk.clone(), options()).is_err());
    assert_eq!(disk.list("").unwrap(), ["somebody's"]);
}

/// Rows of other catalogs would be read as what they are not.
#[test]
fn a_folder_of_other_catalogs_is_refused() {
    let disk = fresh();
    let control = ControlFile::read(&*disk).unwrap();
    ControlFile { catalog_version: control.catalog_version ^ 1, ..control }.write(&*disk).unwrap();
    let before = disk.list("").unwrap();
    let Err(e) = Engine::open(disk.clone(), options()) else { panic!("opened") };
    assert!(e.to_string().contains("database files are incompatible with server"), "{e}");
    assert_eq!(disk.list("").unwrap(), before);
    control.write(&*disk).unwrap();
    Engine::open(disk, options()).unwrap().shutdown().unwrap();
}

/// What the workload expects to find: relations and their pages.
type Model = BTreeMap<u32, Vec<u8>>;

/// Runs transactions until the power goes. Returns the model before and after the commit that was under way.
fn workload(engine: &Arc<Engine>, model: &mut Model, seed: u64) -> (Model, Model) {
    let mut before = model.clone();
    let mut step = || -> base::Result<()> {
        for round in 0..6u64 {
            before = model.clone();
            let t = begin(engine);
            let choice = (seed + round) % 5;
            match choice {
                // A table is made, and filled.
                0 | 1 => {
                    let id = engine.files.create(&t, DATABASE, Persistence::Permanent)?.id();
                    for n in 0..3 {
                        add_page(engine, id, Persistence::Permanent, n)?;
                    }
                    if choice == 0 {
                        model.insert(id.file_number, vec![0, 1, 2]);
                        t.commit(CommitExtras { sync: true, ..CommitExtras::default() })?;
                    } else {
                        t.abort()?;
                    }
                }
                // Dropped, and made anew.
                2 => {
                    let new = engine.files.create(&t, DATABASE, Persistence::Permanent)?.id();
                    add_page(engine, new, Persistence::Permanent, 9)?;
                    if let Some((old, _)) = model.pop_first() {
                        let old = RelationId { database: DATABASE, file_number: old };
                        engine.files.remove_at_commit(&t, old);
                    }
                    model.insert(new.file_number, vec![9]);
                    t.commit(CommitExtras { sync: true, ..CommitExtras::default() })?;
                }
                // A checkpoint in the middle of a transaction that never ends well.
                3 => {
                    let id = engine.files.create(&t, DATABASE, Persistence::Permanent)?.id();
                    add_page(engine, id, Persistence::Permanent, 1)?;
                    t.begin_sub();
                    engine.files.create(&t, DATABASE, Persistence::Permanent)?;
                    engine.checkpoint(CheckpointFlags::MANUAL)?;
                    t.rollback_sub()?;
                    add_page(engine, id, Persistence::Permanent, 2)?;
                    model.insert(id.file_number, vec![1, 2]);
                    t.commit(CommitExtras { sync: true, ..CommitExtras::default() })?;
                }
                // The tail is cut off.
                _ => {
                    engine.checkpoint(CheckpointFlags::MANUAL)?;
                    if let Some((old, pages)) = model.last_key_value() {
                        let id = RelationId { database: DATABASE, file_number: *old };
                        let mut pages = pages.clone();
                        pages.truncate(1);
                        model.insert(id.file_number, pages);
                        let handle = engine.files.open(id, Persistence::Permanent);
                        engine.files.truncate(&handle, &[(Fork::Main, BlockNumber(1))])?;
                        // It does not wait for the WAL; any commit after it does.
                        engine.wal.flush(engine.wal.insert_lsn())?;
                        if seed.is_multiple_of(2) {
                            engine.pool.cut_files()?;
                        }
                    }
                    t.abort()?;
                }
            }
            before = model.clone();
        }
        Ok(())
    };
    let _ = step();
    (before, model.clone())
}

#[test]
fn power_lost_at_every_operation() {
    let fresh = fresh();
    // How many operations there are.
    let total = {
        let disk = fresh.snapshot(0);
        let engine = Engine::open(disk.clone(), options()).unwrap();
        let before = disk.counts().operations;
        workload(&engine, &mut Model::new(), 0);
        disk.counts().operations - before
    };
    let step = 1;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(step, Ordering::SeqCst) as u64;
                    let at = seed;
                    if at >= total * 5 {
                        return;
                    }
                    let at = at % total;
                    let disk = fresh.snapshot(at);
                    let mut model = Model::new();
                    let engine = Engine::open(disk.clone(), options()).unwrap();
                    disk.crash_at(at);
                    let (before, after) = workload(&engine, &mut model, seed);
                    drop(engine);
                    disk.crash();
                    let mut disk = disk.after_crash(seed);
                    if seed.is_multiple_of(3) {
                        // And again, in the middle of recovery.
                        disk.crash_at(seed % 40);
                        let _ = Engine::open(disk.clone(), options());
                        disk.crash();
                        disk = disk.after_crash(seed + 1);
                    }
                    let engine = Engine::open(disk.clone(), options())
                        .unwrap_or_else(|e| panic!("operation {at}: {e}"));
                    let found: Model = files(&*disk)
                        .into_iter()
                        .map(|n| {
                            let id = RelationId { database: DATABASE, file_number: n };
                            (n, contents(&engine, id))
                        })
                        .collect();
                    assert!(
                        found == before || found == after,
                        "operation {at}: found {found:?}\nbefore {before:?}\nafter {after:?}"
                    );
                }
            });
        }
    });
}

#[test]
fn unlogged_and_temporary() {
    let fresh = fresh();
    let engine = Engine::open(fresh.clone(), options()).unwrap();
    let t = begin(&engine);
    let unlogged = engine.files.create(&t, DATABASE, Persistence::Unlogged).unwrap();
    let id = unlogged.id();
    // Its init fork: one page.
    unlogged.create_fork(Fork::Init).unwrap();
    let mut page = unlogged.extend_one(Fork::Init, &mut Strategy::Normal).unwrap().into_write();
    page.mark_dirty();
    page.init(16);
    page.bytes_mut()[8180] = 77;
    let end = engine.files.log_pages(id, Fork::Init, &[(BlockNumber(0), &page)]);
    page.set_lsn(end);
    drop(page);
    add_page(&engine, id, Persistence::Unlogged, 1).unwrap();
    add_page(&engine, id, Persistence::Unlogged, 2).unwrap();
    let temp = engine.files.create(&t, DATABASE, Persistence::Temp).unwrap().id();
    add_page(&engine, temp, Persistence::Temp, 3).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    drop(unlogged);
    engine.shutdown().unwrap();
    drop(engine);
    // Kept over an orderly shutdown.
    let engine = Engine::open(fresh.clone(), options()).unwrap();
    assert_eq!(contents(&engine, id), [1, 2]);
    assert_eq!(files(&*fresh), [id.file_number]);
    fresh.crash();
    drop(engine);
    let disk = fresh.after_crash(1);
    let engine = Engine::open(disk.clone(), options()).unwrap();
    assert_eq!(contents(&engine, id), [77]);
    // Large, its file is replaced: also when that is interrupted, and begun again.
    let handle = engine.files.open(id, Persistence::Unlogged);
    while handle.len_blocks(Fork::Main).unwrap().0 <= 1024 {
        handle.extend(Fork::Main, 100, &mut Strategy::Normal).unwrap();
    }
    drop(handle);
    disk.crash();
    drop(engine);
    for at in 0..60 {
        let disk = disk.after_crash(at);
        disk.crash_at(at);
        let _ = Engine::open(disk.clone(), options());
        disk.crash();
        let disk = disk.after_crash(at);
        let engine = Engine::open(disk.clone(), options()).unwrap();
        assert_eq!(contents(&engine, id), [77], "interrupted at operation {at}");
        assert_eq!(files(&*disk), [id.file_number]);
    }
}

/// Opening does not wait for the checkpoint that follows a recovery (`recovered_twice_from_one_redo_point`); it is made without anybody's asking for it.
#[test]
fn a_checkpoint_follows_recovery() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 1).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    let redo = engine.control().redo;
    disk.crash();
    drop(engine);
    let disk = disk.after_crash(1);
    let engine = Engine::open(disk, EngineOptions { background: true, ..options() }).unwrap();
    assert_eq!(contents(&engine, id), [1]);
    assert_eq!(engine.control().state, engine::control::ClusterState::InProduction);
    let began = std::time::Instant::now();
    while engine.control().redo == redo {
        assert!(began.elapsed() < base::stop::PATIENCE, "no checkpoint comes");
        std::thread::yield_now();
    }
    engine.shutdown().unwrap();
}

/// What an unlogged relation is reset to is logged, so a checkpoint writes it as it does other logged pages; and who finds
/// the relation without it, its file's name lost, makes it again.
#[test]
fn what_an_unlogged_relation_is_reset_to_outlives_a_crash() {
    for (checkpoint, index) in [(false, false), (false, true), (true, true)] {
        for seed in 0..12 {
            let disk = fresh();
            let engine = Engine::open(disk.clone(), options()).unwrap();
            let t = begin(&engine);
            let unlogged = engine.files.create(&t, DATABASE, Persistence::Unlogged).unwrap();
            let id = unlogged.id();
            if index {
                let mut strategy = Strategy::Normal;
                let mut page = unlogged.extend_one(Fork::Init, &mut strategy).unwrap().into_write();
                page.mark_dirty();
                page.init(16);
                page.bytes_mut()[8180] = 77;
                let end = engine.files.log_pages(id, Fork::Init, &[(BlockNumber(0), &page)]);
                page.set_lsn(end);
            }
            add_page(&engine, id, Persistence::Unlogged, 1).unwrap();
            t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
            if checkpoint {
                engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
            } else {
                // As if its pages had been evicted.
                unlogged.flush().unwrap();
            }
            drop(unlogged);
            disk.crash();
            drop(engine);
            let engine = Engine::open(disk.after_crash(seed), options()).unwrap();
            let expected: &[u8] = if index { &[77] } else { &[] };
            let found = contents(&engine, id);
            assert_eq!(found, expected, "checkpoint {checkpoint}, index {index}, seed {seed}");
        }
    }
}

/// What is logged while a checkpoint is under way, in more segments than one, is needed after it.
#[test]
fn the_log_from_the_redo_point_on_is_kept() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    t.commit(CommitExtras::default()).unwrap();
    let redo_set = base::stop::arm("engine.checkpoint.redo_set");
    let subject = redo_set.subject();
    std::thread::scope(|scope| {
        let checkpoint =
            scope.spawn(|| subject.run(|| engine.checkpoint(CheckpointFlags::MANUAL).unwrap()));
        redo_set.wait_reached();
        let bytes = vec![7; 1 << 20];
        let mut much = RecordBuilder::new(ResourceManager::Wal, 9, Xid::INVALID);
        much.data(&bytes);
        for content in 0..3 {
            add_page(&engine, id, Persistence::Permanent, content).unwrap();
            (0..16).for_each(|_| _ = engine.wal.insert(&much));
        }
        engine.wal.flush(engine.wal.insert_lsn()).unwrap();
        redo_set.release();
        checkpoint.join().unwrap();
    });
    disk.crash();
    drop(engine);
    let engine = Engine::open(disk.after_crash(3), options()).unwrap();
    assert_eq!(contents(&engine, id), [0, 1, 2]);
}

/// A checkpoint that comes as soon as the relation is there makes both its names durable: nothing that is replayed after it would make the
/// second one again, without which a crash would leave what was on its way to the disk as the relation.
#[test]
fn an_unlogged_relation_has_what_it_is_reset_to_from_the_beginning() {
    for seed in 0..12 {
        let disk = fresh();
        let engine = Engine::open(disk.clone(), options()).unwrap();
        let t = begin(&engine);
        let unlogged = engine.files.create(&t, DATABASE, Persistence::Unlogged).unwrap();
        let id = unlogged.id();
        engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
        // As whoever makes a table did by himself.
        unlogged.create_fork(Fork::Init).unwrap();
        add_page(&engine, id, Persistence::Unlogged, 1).unwrap();
        t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        unlogged.flush().unwrap();
        drop(unlogged);
        disk.crash();
        drop(engine);
        let engine = Engine::open(disk.after_crash(seed), options()).unwrap();
        assert!(contents(&engine, id).is_empty(), "seed {seed}");
    }
}

#[test]
fn a_database_is_copied() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 5).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    let t = begin(&engine);
    engine.files.copy_database(&t, DATABASE, Oid(6)).unwrap();
    t.abort().unwrap();
    assert!(!disk.exists("base/6").unwrap());
    let t = begin(&engine);
    engine.files.copy_database(&t, DATABASE, Oid(7)).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    let t = begin(&engine);
    engine.files.copy_database(&t, DATABASE, Oid(8)).unwrap();
    std::mem::forget(t);
    disk.crash();
    drop(engine);
    let disk = disk.after_crash(4);
    let engine = Engine::open(disk.clone(), options()).unwrap();
    assert!(!disk.exists("base/8").unwrap());
    let copy = RelationId { database: Oid(7), ..id };
    assert_eq!(contents(&engine, copy), [5]);
    let t = begin(&engine);
    engine.files.remove_at_commit(&t, RelationId { database: Oid(7), file_number: 0 });
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    assert!(!disk.exists("base/7").unwrap());
}

#[test]
fn a_failed_sync_stops_everything() {
    let disk = fresh();
    let happened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&happened);
    let mut options = options();
    options.on_fatal = Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let engine = Engine::open(disk.clone(), options).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 5).unwrap();
    disk.inject(disk::sim::Fault {
        operation: disk::sim::Operation::Sync,
        path_contains: "base/".into(),
        after: 0,
        error: 5,
        once: true,
    });
    assert!(engine.checkpoint(CheckpointFlags::MANUAL).is_err());
    assert_eq!(happened.load(Ordering::SeqCst), 1);
    assert!(engine.has_failed());
    assert!(engine.checkpoint(CheckpointFlags::MANUAL).is_err());
    assert!(engine.shutdown().is_err());
    std::mem::forget(t);
}

#[test]
fn commits_that_do_not_wait_become_durable() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 5).unwrap();
    let info = t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap();
    assert!(engine.wal.flushed_lsn() < info.lsn.unwrap());
    assert!(engine.wal_writer_round().unwrap());
    assert!(engine.wal.flushed_lsn() >= info.lsn.unwrap());
    disk.crash();
    drop(engine);
    let engine = Engine::open(disk.after_crash(2), options()).unwrap();
    assert_eq!(contents(&engine, id), [5]);
}

#[test]
fn a_full_disk_fails_the_statement_only() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    disk.set_free_space(20_000);
    let failed = loop {
        if let Err(e) = add_page(&engine, id, Persistence::Permanent, 5) {
            break e;
        }
    };
    assert_eq!(failed.state(), base::SqlState::DISK_FULL);
    t.abort().unwrap();
    assert!(!engine.has_failed());
    disk.heal();
    let t = begin(&engine);
    let id = engine.files.create(&t, DATABASE, Persistence::Permanent).unwrap().id();
    add_page(&engine, id, Persistence::Permanent, 6).unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    engine.shutdown().unwrap();
    assert_eq!(files(&*disk), [id.file_number]);
}

/// What a storage remembers of a B-tree goes with its files, however they go; what is remembered of others stays.
#[test]
fn nothing_is_remembered_of_removed_trees() {
    let engine = Engine::init(SimDisk::new(1), options()).unwrap();
    let storage = engine::relation::Storage::of(&engine);
    let make = |t: &Transaction, database| {
        let id = engine.files.create(t, database, Persistence::Permanent).unwrap().id();
        storage.toast_entries(id, Persistence::Permanent).unwrap();
        id
    };
    let commit = |t: Transaction| t.commit(CommitExtras::default()).unwrap();
    let t = begin(&engine);
    let (_kept, dropped) = (make(&t, DATABASE), make(&t, DATABASE));
    commit(t);
    assert_eq!(storage.btree.remembered(), 2);
    let t = begin(&engine);
    engine.files.remove_at_commit(&t, dropped);
    commit(t);
    assert_eq!(storage.btree.remembered(), 1);
    let t = begin(&engine);
    make(&t, DATABASE);
    t.abort().unwrap();
    assert_eq!(storage.btree.remembered(), 1);
    engine.files.remove(&[RelationId { database: DATABASE, file_number: 0 }]);
    assert_eq!(storage.btree.remembered(), 0);
}
