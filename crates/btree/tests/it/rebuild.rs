//! Making an index anew in its own file, beside the tree that is there.

use crate::support::*;
use base::sync::CancelFlag;
use base::{BlockNumber, Fork, Result, Tid, Xid};
use btree::{
    Btree, BuildOutcome, Direction, KeyConflict, KeySchema, Liveness, Rebuilt, ScanBounds,
    ScanOptions, SortConfig, SortedStream, Sorter, TupleLiveness, UniqueCheck, redo,
};
use buffer::{BufferPool, CheckpointOptions, Persistence, PoolConfig};
use disk::Disk;
use disk::sim::SimDisk;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wal::{Reader, Wal, WalConfig};

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}{}", "k".repeat(400)).into_bytes()
}

fn insert(tree: &Btree, n: u32) {
    tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
}

fn sorted(
    disk: &Arc<SimDisk>,
    schema: &Arc<KeySchema>,
    rows: impl IntoIterator<Item = u32>,
) -> SortedStream {
    let config = SortConfig {
        memory_bytes: 1 << 20,
        disk: disk.clone(),
        temp_dir: "base/pgsql_tmp".into(),
        space: None,
    };
    let mut sorter = Sorter::new(schema.clone(), config);
    for n in rows {
        sorter.add(&[Some(&key(n))], tid(n), true).unwrap();
    }
    Sorter::finish_all(vec![sorter], &CancelFlag::default()).unwrap()
}

fn rebuild(db: &Database, tree: &Btree, rows: impl IntoIterator<Item = u32>) -> Rebuilt {
    let rebuilt = tree.rebuild(sorted(&db.disk, tree.schema(), rows), &mut |_| Ok(())).unwrap();
    assert!(matches!(rebuilt.outcome, BuildOutcome::Built { .. }));
    rebuilt
}

fn all(tree: &Arc<Btree>) -> Vec<Tid> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut out = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        out.push(t);
    }
    out
}

fn tids(rows: impl IntoIterator<Item = u32>) -> Vec<Tid> {
    rows.into_iter().map(tid).collect()
}

fn len(tree: &Btree) -> u32 {
    tree.relation().len_blocks(Fork::Main).unwrap().0
}

fn vacuum(tree: &Btree, dead: impl Fn(u32) -> bool + Sync) -> btree::IndexVacuumStats {
    let dead = |t: Tid| dead(t.block.0 * 50 + u32::from(t.offset.0) - 1);
    with_control(|c| {
        let stats = tree.bulk_delete(&dead, c)?;
        tree.cleanup(Some(stats), c)
    })
}

/// In no order, so that a tree made at once has fewer pages.
fn fill(tree: &Btree, n: u32) {
    (0..n).for_each(|i| insert(tree, i * 7 % n));
}

fn filled(n: u32) -> (Database, Arc<Btree>) {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    fill(&tree, n);
    (db, tree)
}

#[test]
fn a_rebuilt_tree_is_one_like_any_other() {
    let (db, tree) = filled(1000);
    rebuild(&db, &tree, (0..1000).filter(|n| n % 2 == 0));
    assert_eq!(all(&tree), tids((0..1000).filter(|n| n % 2 == 0)));
    (0..1000).filter(|n| n % 2 == 1).for_each(|n| insert(&tree, n));
    assert_eq!(tree.verify().unwrap().entries, 1000);
    db.advance_horizon();
    vacuum(&tree, |n| n < 900);
    db.advance_horizon();
    (1000..1500).for_each(|n| insert(&tree, n));
    assert_eq!(tree.verify().unwrap().entries, 600);
    assert_eq!(all(&tree), tids(900..1500));
    // From nothing, and to nothing.
    rebuild(&db, &tree, []);
    assert_eq!(all(&tree), []);
    insert(&tree, 7);
    assert_eq!((all(&tree), tree.verify().unwrap().entries), (tids([7]), 1));
    db.advance_horizon();
    rebuild(&db, &tree, 0..300);
    assert_eq!((all(&tree), tree.verify().unwrap().entries), (tids(0..300), 300));
}

/// A search that began before goes on among the old tree's pages, which nobody uses while it lasts.
#[test]
fn searches_under_way_stay_in_the_old_tree() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (db, tree) = filled(1000);
        let reader = db.horizons.register();
        let options = ScanOptions { direction, ..ScanOptions::default() };
        let mut scan = tree.scan(ScanBounds::all(), options);
        let mut seen: Vec<Tid> = (0..3).map(|_| scan.next().unwrap().unwrap()).collect();
        scan.mark();
        scan.next().unwrap().unwrap();
        let before = len(&tree);
        for _ in 0..3 {
            db.horizons.advance();
            rebuild(&db, &tree, 0..1000);
            db.horizons.next.fetch_add(1, Ordering::SeqCst);
            // Nor do VACUUM, and whoever needs pages.
            (2000..2100).for_each(|n| insert(&tree, n));
            vacuum(&tree, |n| n >= 2000);
        }
        assert!(len(&tree) > 3 * before / 2, "pages were used that a search may be on");
        scan.restore();
        while let Some(t) = scan.next().unwrap() {
            seen.push(t);
        }
        if direction == Direction::Backward {
            seen.reverse();
        }
        assert_eq!(seen, tids(0..1000));
        drop((scan, reader));
        db.advance_horizon();
        let stats = vacuum(&tree, |_| false);
        assert_eq!(stats.pages_free, stats.pages_deleted);
        let before = len(&tree);
        (2000..2800).for_each(|n| insert(&tree, n));
        assert_eq!(len(&tree), before, "pages are free that are not used");
        tree.verify().unwrap();
    }
}

/// Held between the meta page and the root: it comes to the old root, and what it remembers of that misleads nobody.
#[test]
fn who_knew_the_old_root_leads_nobody_there() {
    let (db, tree) = filled(300);
    // A tree that nobody has searched yet since the start.
    db.context.forget(RELATION);
    let tree = {
        drop(tree);
        db.open(&schema(vec![text()]))
    };
    let held = base::stop::arm("btree.root.known");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let searcher = scope.spawn(|| subject.run(|| all(&tree)));
        held.wait_reached();
        rebuild(&db, &tree, 0..300);
        insert(&tree, 300);
        held.release();
        assert_eq!(searcher.join().unwrap(), tids(0..300));
    });
    assert_eq!(all(&tree), tids(0..301));
    insert(&tree, 301);
    assert_eq!((all(&tree), tree.verify().unwrap().entries), (tids(0..302), 302));
}

/// A scan that is started again looks where it was last, but not in a former tree.
#[test]
fn a_scan_started_again_is_in_the_new_tree() {
    let (db, tree) = filled(300);
    let at = |n: u32| ScanBounds::prefix(vec![Some(key(n))]);
    let mut scan = tree.scan(at(150), ScanOptions::default());
    assert_eq!(scan.next().unwrap(), Some(tid(150)));
    rebuild(&db, &tree, (0..300).filter(|n| *n != 151));
    scan.rescan(at(151));
    assert_eq!(scan.next().unwrap(), None);
    scan.rescan(at(152));
    assert_eq!(scan.next().unwrap(), Some(tid(152)));
}

/// VACUUM takes nothing from the old tree's leaves: that one is as it was does not mean that the map may be believed.
#[test]
fn a_leaf_of_the_old_tree_is_not_unchanged() {
    let (db, tree) = filled(300);
    let options = ScanOptions { index_only: true, ..ScanOptions::default() };
    let mut scan = tree.scan(ScanBounds::all(), options);
    scan.next().unwrap();
    assert!(scan.leaf_unchanged());
    rebuild(&db, &tree, 0..300);
    assert!(!scan.leaf_unchanged());
    scan.rescan(ScanBounds::all());
    scan.next().unwrap();
    assert!(scan.leaf_unchanged());
}

/// Rebuilds the tree, without the row, when it is first asked about one.
struct RebuildsMeanwhile<'a> {
    db: &'a Database,
    tree: &'a Btree,
    done: AtomicBool,
}

impl TupleLiveness for RebuildsMeanwhile<'_> {
    fn check(&self, _: Tid) -> Result<Liveness> {
        if !self.done.swap(true, Ordering::SeqCst) {
            rebuild(self.db, self.tree, (0..300).filter(|n| *n != 150));
        }
        Ok(Liveness::Live)
    }
    fn wait(&self, _: Tid, _: Xid) -> Result<()> {
        Ok(())
    }
}

#[test]
fn an_entry_of_the_old_tree_is_no_conflict() {
    let (db, tree) = filled(300);
    let live = RebuildsMeanwhile { db: &db, tree: &tree, done: AtomicBool::new(false) };
    assert_eq!(tree.find_conflict(&[Some(&key(150))], None, &live).unwrap(), None);
    let found = tree.find_conflict(&[Some(&key(151))], None, &live).unwrap();
    assert_eq!(found, Some(KeyConflict::Live(tid(151))));
}

#[test]
fn the_file_does_not_grow_with_each_rebuild() {
    let (db, tree) = filled(1000);
    let mut lengths = Vec::new();
    for _ in 0..20 {
        rebuild(&db, &tree, 0..1000);
        lengths.push(len(&tree));
        db.advance_horizon();
    }
    // Two trees in turn.
    assert_eq!(lengths.iter().max(), Some(&lengths[0]), "{lengths:?}");
    // Searches of old keep one more for each rebuild, until they end.
    let reader = db.horizons.register();
    for _ in 0..3 {
        db.horizons.advance();
        rebuild(&db, &tree, 0..1000);
    }
    let long = len(&tree);
    assert!(long > lengths[0]);
    drop(reader);
    for _ in 0..20 {
        db.advance_horizon();
        rebuild(&db, &tree, 0..1000);
    }
    assert_eq!((len(&tree), all(&tree)), (long, tids(0..1000)));
    tree.verify().unwrap();
}

#[test]
fn a_rebuild_that_fails_leaves_the_index_and_nothing_else() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![text()]));
    fill(&tree, 1000);
    let duplicates = || {
        let config = SortConfig {
            memory_bytes: 1 << 20,
            disk: db.disk.clone(),
            temp_dir: "base/pgsql_tmp".into(),
            space: None,
        };
        let mut sorter = Sorter::new(tree.schema().clone(), config);
        (0..1000).for_each(|n| sorter.add(&[Some(&key(n))], tid(n), true).unwrap());
        sorter.add(&[Some(&key(999))], tid(1000), true).unwrap();
        Sorter::finish_all(vec![sorter], &CancelFlag::default()).unwrap()
    };
    let mut lengths = Vec::new();
    for _ in 0..5 {
        let failed = tree.rebuild(duplicates(), &mut |_| Ok(())).unwrap();
        let BuildOutcome::Duplicate { first, second, .. } = failed.outcome else { panic!() };
        assert_eq!((first, second, failed.repaired), (tid(999), tid(1000), vec![]));
        lengths.push(len(&tree));
        // What says stop is asked before every page that is looked at.
        let mut asked = 0;
        let stopped = tree.rebuild(duplicates(), &mut |_| {
            asked += 1;
            if asked > 10 { base::bail!(QUERY_CANCELED, "enough") } else { Ok(()) }
        });
        assert!(stopped.is_err());
        assert_eq!(tree.verify().unwrap().entries, 1000);
    }
    assert_eq!(lengths.iter().max(), Some(&lengths[0]), "{lengths:?}");
    // What it left is free after a pass.
    let stats = vacuum(&tree, |_| false);
    assert_eq!((stats.pages, stats.pages_free), (len(&tree), stats.pages_deleted));
    assert!(stats.pages_deleted > 0);
    assert_eq!(all(&tree), tids(0..1000));
}

/// The database as it comes up after a crash, from what the disk has, with the log replayed.
fn recovered(disk: Arc<SimDisk>) -> Database {
    let mut reader = Reader::new(disk.clone(), "wal", wal::FIRST_LSN, 1);
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        records.push(record);
    }
    let config = WalConfig { compression: false, ..WalConfig::default() };
    let wal = Wal::open(disk.clone(), config, reader.position(), wal::FIRST_LSN).unwrap();
    let pool = BufferPool::new(PoolConfig::new(2000), disk.clone(), wal.clone()).unwrap();
    for record in &records {
        redo(record, &pool).unwrap();
    }
    pool.check_missing_pages().unwrap();
    let horizons = Arc::new(TestHorizons::default());
    horizons.next.store(1000, Ordering::SeqCst);
    horizons.advance();
    let context = Arc::new(btree::Context::new(pool.clone(), wal.clone(), horizons.clone()));
    Database { disk, wal, pool, context, horizons }
}

fn flush(db: &Database) {
    db.wal.flush(db.wal.insert_lsn()).unwrap();
}

/// Crashes when the rebuild has come to `point`, all its records so far being durable.
fn crash_at(point: &'static str) -> (Database, Arc<Btree>, u32) {
    let (db, tree) = filled(1000);
    let held = base::stop::arm(point);
    let subject = held.subject();
    let disk = std::thread::scope(|scope| {
        let builder = scope.spawn(|| subject.run(|| rebuild(&db, &tree, 0..1000)));
        held.wait_reached();
        flush(&db);
        let disk = db.disk.snapshot(3);
        held.release();
        builder.join().unwrap();
        disk
    });
    let before = len(&tree);
    let db = recovered(disk);
    let tree = db.open(&schema(vec![text()]));
    assert_eq!(tree.verify().unwrap().entries, 1000);
    assert_eq!(all(&tree), tids(0..1000));
    (db, tree, before)
}

#[test]
fn a_crash_before_the_switch_leaves_the_old_tree_and_room() {
    for again in [true, false] {
        let (db, tree, before) = crash_at("btree.rebuild.before_switch");
        if again {
            rebuild(&db, &tree, 0..1000);
            assert_eq!(len(&tree), before, "what the crash left was not used");
            assert_eq!(tree.verify().unwrap().entries, 1000);
        } else {
            let stats = vacuum(&tree, |_| false);
            assert!(stats.pages_free > before / 3, "{stats:?}");
            (2000..2500).for_each(|n| insert(&tree, n));
            assert_eq!(len(&tree), before, "what the crash left was not used");
        }
    }
}

#[test]
fn a_crash_after_the_switch_leaves_the_new_tree_and_room() {
    for again in [true, false] {
        let (db, tree, before) = crash_at("btree.rebuild.switched");
        // Nobody searches it since before the crash, which the XIDs tell.
        db.advance_horizon();
        if again {
            rebuild(&db, &tree, 0..1000);
        } else {
            // Without anything dead VACUUM passes over the file, once.
            let stats = with_control(|c| tree.cleanup(None, c));
            assert!(stats.pages_free > before / 3, "{stats:?}");
            let stats = with_control(|c| tree.cleanup(None, c));
            assert!(stats.entries_estimated, "{stats:?}");
            (2000..2500).for_each(|n| insert(&tree, n));
        }
        assert_eq!(len(&tree), before, "the old tree's pages were not used");
        tree.verify().unwrap();
    }
}

/// Whatever is damaged, a rebuild makes a whole index of it, and a file that can be read.
#[test]
fn damage_is_repaired() {
    let (db, tree) = filled(1000);
    let path = "base/5/16384";
    let last = len(&tree) - 1;
    drop(tree);
    let root = {
        db.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(())).unwrap();
        db.pool.sync_all_pending().unwrap();
        flush(&db);
        let file = db.disk.open(path, disk::OpenMode::Existing).unwrap();
        let mut meta = [0; 8192];
        file.read_at(&mut meta, 0).unwrap();
        page::btree::PageRef(&meta).meta().root.0
    };
    let zeroed: &[u32] = &[5];
    for damaged in [&[3u32, 4][..], &[root], &[0], &[0, root, 7], &[last]] {
        let disk = db.disk.snapshot(9);
        let file = disk.open(path, disk::OpenMode::Existing).unwrap();
        for block in damaged {
            file.write_at(&[0xEE; 100], u64::from(*block) * 8192 + 500).unwrap();
        }
        for block in zeroed {
            file.write_at(&[0; 8192], u64::from(*block) * 8192).unwrap();
        }
        drop(file);
        // A start after a checkpoint: nothing is replayed.
        let config = WalConfig { compression: false, ..WalConfig::default() };
        let mut reader = Reader::new(disk.clone(), "wal", wal::FIRST_LSN, 1);
        while reader.next().unwrap().is_some() {}
        let wal = Wal::open(disk.clone(), config, reader.position(), wal::FIRST_LSN).unwrap();
        let pool = BufferPool::new(PoolConfig::new(2000), disk.clone(), wal.clone()).unwrap();
        let horizons = Arc::new(TestHorizons::default());
        horizons.next.store(1000, Ordering::SeqCst);
        horizons.advance();
        let context = Arc::new(btree::Context::new(pool.clone(), wal.clone(), horizons.clone()));
        let db = Database { disk, wal, pool, context, horizons };
        let tree = db.open(&schema(vec![text()]));
        assert!(tree.verify().is_err());
        if damaged.contains(&last) {
            let extent = tree.extent(&mut || Ok(())).unwrap();
            assert_eq!(extent.end, last + 1, "nobody knows what is in it: it stays");
        }
        let rebuilt = rebuild(&db, &tree, 0..1000);
        let expected: Vec<BlockNumber> = {
            let mut blocks: Vec<_> = damaged.iter().map(|b| BlockNumber(*b)).collect();
            blocks.sort_unstable();
            blocks
        };
        assert_eq!(rebuilt.repaired, expected);
        assert_eq!((tree.verify().unwrap().entries, all(&tree)), (1000, tids(0..1000)));
        let before = len(&tree);
        db.advance_horizon();
        let stats = vacuum(&tree, |_| false);
        assert!(stats.pages_free > 0, "{stats:?}");
        rebuild(&db, &tree, 0..1000);
        assert_eq!(len(&tree), before);
        // And after a crash the same.
        flush(&db);
        db.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(())).unwrap();
        let rel = db.pool.open(RELATION, Persistence::Permanent);
        for n in 0..before {
            rel.pin(Fork::Main, BlockNumber(n), &mut buffer::Strategy::Normal).unwrap();
        }
    }
}

/// Old generations that a search of old keeps come to an end: then it says so.
#[test]
fn there_are_so_many_generations() {
    let (db, tree) = filled(10);
    let _reader = db.horizons.register();
    db.horizons.advance();
    let failed = (0..300).find_map(|n| {
        let stream = sorted(&db.disk, tree.schema(), 0..10);
        tree.rebuild(stream, &mut |_| Ok(())).err().map(|e| (n, e.to_string()))
    });
    let (times, error) = failed.unwrap();
    assert_eq!(times, 255);
    assert!(error.contains("rebuilt too often"), "{error}");
    assert_eq!(all(&tree), tids(0..10));
    let seen: BTreeSet<Tid> = all(&tree).into_iter().collect();
    assert_eq!(seen.len(), 10);
}
