//! Sorted builds, in memory and through temporary files.

use crate::support::*;
use base::sync::CancelFlag;
use btree::{
    Btree, BuildOutcome, KeyColumn, KeySchema, ScanBounds, ScanOptions, SortConfig, Sorter,
    UniqueCheck,
};
use std::sync::Arc;

fn config(db: &Database, memory_bytes: usize) -> SortConfig {
    SortConfig {
        memory_bytes,
        disk: db.disk.clone(),
        temp_dir: "base/pgsql_tmp".into(),
        space: None,
    }
}

fn keys(n: u32) -> impl Iterator<Item = (String, u32)> {
    (0..n).map(|i| (format!("{:08x}", i.wrapping_mul(0x9E37_79B1) >> 4), i))
}

fn all(tree: &Arc<Btree>) -> Vec<base::Tid> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut out = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        out.push(t);
    }
    out
}

fn build(schema: Arc<KeySchema>, n: u32, memory: usize, sorters: usize) {
    let db = Database::new();
    let mut parts: Vec<Sorter> =
        (0..sorters).map(|_| Sorter::new(schema.clone(), config(&db, memory))).collect();
    let mut want = Vec::new();
    for (i, (key, t)) in keys(n).enumerate() {
        let part = i % sorters;
        parts[part].add(&[Some(key.as_bytes())], tid(t), true).unwrap();
        want.push((key, tid(t)));
    }
    want.sort();
    let tree = db.empty(&schema);
    let outcome = tree
        .build(Sorter::finish_all(parts, &CancelFlag::default()).unwrap(), &mut |_| Ok(()))
        .unwrap();
    assert_eq!(outcome, BuildOutcome::Built { entries: u64::from(n) });
    assert_eq!(tree.verify().unwrap().entries, u64::from(n));
    assert_eq!(all(&tree), want.iter().map(|w| w.1).collect::<Vec<_>>());
    use disk::Disk;
    assert!(db.disk.list("base/pgsql_tmp").unwrap_or_default().is_empty());
    // It is a tree like any other.
    for (key, t) in keys(500) {
        tree.insert(&[Some(key.as_bytes())], tid(t + n), UniqueCheck::No).unwrap();
    }
    assert_eq!(tree.verify().unwrap().entries, u64::from(n + 500));
    // And its log makes the same one.
    db.wal.flush(db.wal.insert_lsn()).unwrap();
    let copy = Database::new();
    let mut reader = wal::Reader::new(db.disk.clone(), "wal", wal::FIRST_LSN, 1);
    while let Some(record) = reader.next().unwrap() {
        btree::redo(&record, &copy.pool).unwrap();
    }
    let copy = copy.open(&schema);
    copy.verify().unwrap();
    assert_eq!(all(&copy), all(&tree));
}

#[test]
fn nothing() {
    build(schema(vec![text()]), 0, 1 << 20, 1);
}
#[test]
fn one_page() {
    build(schema(vec![text()]), 10, 1 << 20, 1);
}
#[test]
fn in_memory() {
    build(schema(vec![text()]), 5000, 8 << 20, 1);
}
#[test]
fn with_runs_from_two_feeders() {
    build(schema(vec![text()]), 12_000, 200 << 10, 2);
}
#[test]
fn small_indexes_are_small() {
    let db = Database::new();
    let schema = schema(vec![int4()]);
    let tree = db.empty(&schema);
    let mut sorter = Sorter::new(schema, config(&db, 1 << 20));
    sorter.add(&[Some(&[1, 0, 0, 0])], tid(1), true).unwrap();
    tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap();
    assert_eq!(tree.relation().len_blocks(base::Fork::Main).unwrap().0, 2);
}

#[test]
fn duplicates_become_posting_lists() {
    let db = Database::new();
    let schema = schema(vec![int4()]);
    let tree = db.empty(&schema);
    let mut sorter = Sorter::new(schema, config(&db, 1 << 20));
    for i in 0..6000u32 {
        sorter.add(&[Some(&(i % 3).to_le_bytes())], tid(i), true).unwrap();
    }
    tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap();
    assert_eq!(tree.verify().unwrap().entries, 6000);
    // 6,000 addresses of 6 bytes need 5 pages at 90 per cent; apart they would need 13.
    assert!(tree.relation().len_blocks(base::Fork::Main).unwrap().0 <= 8);
}

#[test]
fn unique_builds_tell_the_duplicate() {
    let db = Database::new();
    let schema = unique(vec![int4()]);
    let build = |live: &[bool]| {
        let tree = Arc::new(Btree::new(
            db.pool
                .create(
                    base::RelationId {
                        file_number: 1000 + live.iter().filter(|l| **l).count() as u32,
                        ..RELATION
                    },
                    buffer::Persistence::Permanent,
                )
                .unwrap(),
            db.context.clone(),
            schema.clone(),
        ));
        let mut sorter = Sorter::new(schema.clone(), config(&db, 1 << 20));
        for i in 0..100u32 {
            sorter.add(&[Some(&i.to_le_bytes())], tid(i), true).unwrap();
        }
        for (i, live) in (0..).zip(live) {
            sorter.add(&[Some(&42u32.to_le_bytes())], tid(1000 + i), *live).unwrap();
        }
        sorter.add(&[None], tid(2000), true).unwrap();
        sorter.add(&[None], tid(2001), true).unwrap();
        tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap()
    };
    assert_eq!(build(&[false, false]), BuildOutcome::Built { entries: 104 });
    assert_eq!(
        build(&[false, true]),
        BuildOutcome::Duplicate {
            first: tid(42),
            second: tid(1001),
            values: vec![Some(42u32.to_le_bytes().to_vec())]
        }
    );
}

#[test]
fn long_keys_and_descending() {
    let db = Database::new();
    let column = KeyColumn { descending: true, nulls_first: true, ..text() };
    let schema = schema(vec![column]);
    let tree = db.empty(&schema);
    let mut sorter = Sorter::new(schema.clone(), config(&db, 1 << 20));
    let mut random = Random(9);
    for i in 0..1500u32 {
        let len = random.below(2690) as usize;
        let key = vec![b'a' + random.below(20) as u8; len];
        let value = (random.below(20) > 0).then_some(&key[..]);
        sorter.add(&[value], tid(i), true).unwrap();
    }
    tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap();
    assert_eq!(tree.verify().unwrap().entries, 1500);
}

/// Little memory for many entries makes many runs: they are merged in several passes, with few files open, and all in order.
#[test]
fn many_runs_need_few_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let config = SortConfig {
        memory_bytes: 0,
        disk: disk::os(folder.path().to_owned()).unwrap(),
        temp_dir: "tmp".into(),
        space: None,
    };
    let db = Database::new();
    let schema = schema(vec![text()]);
    let mut sorters: Vec<Sorter> =
        (0..2).map(|_| Sorter::new(schema.clone(), config.clone())).collect();
    let pad = "p".repeat(1000);
    let key = |n: u32| format!("{:08x}{pad}", n.wrapping_mul(0x9E37_79B1));
    const ALL: u32 = 12_000;
    for n in 0..ALL {
        let live = !n.is_multiple_of(3);
        sorters[n as usize % 2].add(&[Some(key(n).as_bytes())], tid(n), live).unwrap();
    }
    let files = || std::fs::read_dir(folder.path().join("tmp")).unwrap().count();
    assert!(files() > 160, "{}", files());
    let sorted = Sorter::finish_all(sorters, &CancelFlag::default()).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter(|fd| {
        let to = fd.as_ref().ok().and_then(|fd| std::fs::read_link(fd.path()).ok());
        to.is_some_and(|to| to.starts_with(folder.path().join("tmp")))
    });
    assert_eq!((files(), open.count()), (128, 128));
    assert_eq!(sorted.count(), u64::from(ALL));
    let tree = db.empty(&schema);
    let outcome = tree.build(sorted, &mut |_| Ok(())).unwrap();
    assert_eq!(outcome, BuildOutcome::Built { entries: u64::from(ALL) });
    assert_eq!(files(), 0);
    let mut want: Vec<_> = (0..ALL).map(|n| (key(n), tid(n))).collect();
    want.sort();
    assert_eq!(all(&tree), want.iter().map(|w| w.1).collect::<Vec<_>>());
}

/// Who gives up, or is called off, leaves no file, in whichever pass he was.
#[test]
fn a_sort_called_off_leaves_nothing() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    let pad = "p".repeat(1000);
    let sorter = || {
        let mut sorter = Sorter::new(schema.clone(), config(&db, 0));
        for n in 0..9000u32 {
            let key = format!("{:08x}{pad}", n.wrapping_mul(0x9E37_79B1));
            sorter.add(&[Some(key.as_bytes())], tid(n), true).unwrap();
        }
        sorter
    };
    use disk::Disk;
    let files = || db.disk.list("base/pgsql_tmp").unwrap().len();
    let given_up = sorter();
    assert!(files() > 128);
    drop(given_up);
    assert_eq!(files(), 0);
    let cancel = CancelFlag::default();
    cancel.raise(base::sync::CancelReason::UserRequest);
    let called_off = Sorter::finish_all(vec![sorter()], &cancel).err().unwrap();
    assert_eq!(called_off.state(), base::SqlState::QUERY_CANCELED);
    assert_eq!(files(), 0);
    drop(sorter().finish().unwrap());
    assert_eq!(files(), 0);
}

/// It is bulk work: while sessions commit it leaves room for them, at every few pages.
#[test]
fn a_build_gives_way_to_commits() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    let built = |n: u32| {
        let mut sorter = Sorter::new(schema.clone(), config(&db, 8 << 20));
        for (key, t) in keys(n) {
            sorter.add(&[Some(key.as_bytes())], tid(t), true).unwrap();
        }
        let tree = db.empty(&schema);
        tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap();
        db.pool.unlink(RELATION).unwrap();
    };
    for (entries, gives_way) in [(500, false), (5000, true)] {
        let asked = base::stop::arm("wal.give_way.asked");
        std::thread::scope(|scope| {
            let (subject, built) = (asked.subject(), &built);
            let build = scope.spawn(move || subject.run(|| built(entries)));
            assert_eq!(asked.is_reached(), gives_way, "{entries}");
            asked.release();
            build.join().unwrap();
        });
    }
}
