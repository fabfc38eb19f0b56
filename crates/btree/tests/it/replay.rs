//! The log replayed: pages come out equal, and after every single record the tree is valid.

use crate::support::*;
use btree::{UniqueCheck, redo};
use page::Page;
use std::collections::HashSet;
use std::sync::Arc;
use wal::{Reader, Record, ResourceManager};

fn records(db: &Database) -> Vec<Record> {
    db.wal.flush(db.wal.insert_lsn()).unwrap();
    let mut reader = Reader::new(db.disk.clone(), "wal", wal::FIRST_LSN, 1);
    let mut out = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        assert_eq!(record.rmgr, ResourceManager::Btree);
        out.push(record);
    }
    out
}

/// Insertions and deletions enough for splits of both kinds, posting lists and page deletions.
fn work(
    db: &Database,
    schema: &Arc<btree::KeySchema>,
    seed: u64,
    steps: u32,
    pad: usize,
    range: u64,
) {
    let tree = db.tree(schema);
    let mut random = Random(seed);
    let mut live = Vec::new();
    for step in 0..steps {
        let n = random.below(range);
        let key = format!("{n:06}{}", "y".repeat(n as usize * 31 % (pad + 1)));
        let t = tid(step * 7919 % 60_000);
        tree.insert(&[Some(key.as_bytes())], t, UniqueCheck::No).unwrap();
        live.push((key, t));
        if step % 150 == 149 {
            live.sort();
            let gone: HashSet<_> = live.drain(..live.len() * 2 / 3).map(|l| l.1).collect();
            with_control(|c| tree.bulk_delete(&|t: base::Tid| gone.contains(&t), c));
            db.advance_horizon();
        }
    }
    tree.verify().unwrap();
}

fn masked(page: &Page) -> Vec<u8> {
    let mut bytes = page.bytes().to_vec();
    bytes[8..12].fill(0);
    if !page.is_new() {
        bytes[page.lower()..page.upper()].fill(0);
        for i in 0..page.item_count() {
            // The Dead bit is a hint.
            bytes[33 + i * 4] |= 0x80;
            bytes[34 + i * 4] |= 0x01;
        }
    }
    bytes
}

fn replayed_pages_are_equal(pad: usize, range: u64) {
    let db = Database::new();
    let schema = schema(vec![text()]);
    work(&db, &schema, 77, 1500, pad, range);
    let copy = Database::new();
    for record in records(&db) {
        redo(&record, &copy.pool).unwrap();
    }
    let (a, b) = (db.open(&schema), copy.open(&schema));
    b.verify().unwrap();
    let fork = base::Fork::Main;
    let blocks = a.relation().len_blocks(fork).unwrap();
    for block in 0..blocks.0 {
        let normal = &mut buffer::Strategy::Normal;
        let a = a.relation().pin(fork, base::BlockNumber(block), normal).unwrap();
        let b = b.relation().pin(fork, base::BlockNumber(block), normal).unwrap();
        assert_eq!(masked(&a.read()), masked(&b.read()), "block {block}");
    }
}

#[test]
fn replayed_pages_are_equal_long_keys() {
    replayed_pages_are_equal(1500, 2000);
}
#[test]
fn replayed_pages_are_equal_duplicates() {
    replayed_pages_are_equal(3, 25);
}

#[test]
fn a_crash_after_any_record_leaves_a_valid_tree() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for i in 0..=more {
        crash_after_any_record(78 + i);
    }
}

fn crash_after_any_record(seed: u64) {
    let db = Database::new();
    let schema = schema(vec![text()]);
    work(&db, &schema, seed, 450, 2200, 300);
    let records = records(&db);
    let copy = Database::new();
    let tree = copy.open(&schema);
    let (mut incomplete, mut half_dead) = (Vec::new(), Vec::new());
    for (i, record) in records.iter().enumerate() {
        redo(record, &copy.pool).unwrap();
        let report =
            tree.verify().unwrap_or_else(|e| panic!("after record {i} {:?}: {e}", record.info));
        if report.incomplete_splits > 0 {
            incomplete.push(i);
        }
        if report.half_dead > 0 {
            half_dead.push(i);
        }
    }
    assert!(incomplete.len() > 20 && half_dead.len() > 5, "{seed}: {incomplete:?} {half_dead:?}");
    // From some of the worst places life goes on.
    for stop in incomplete.iter().step_by(9).chain(half_dead.iter().step_by(7)) {
        let copy = Database::new();
        for record in &records[..=*stop] {
            redo(record, &copy.pool).unwrap();
        }
        let tree = copy.open(&schema);
        for n in 0..300u32 {
            let key = format!("{:06}z{}", n, "q".repeat(300));
            tree.insert(&[Some(key.as_bytes())], tid(100_000 + n), UniqueCheck::No).unwrap();
        }
        with_control(|c| tree.bulk_delete(&|_: base::Tid| false, c));
        let report = tree.verify().unwrap();
        // A split amid duplicates of one key may have met no insertion.
        assert!(report.incomplete_splits <= 1 && report.half_dead == 0, "from {stop}: {report:?}");
    }
}

/// What clean-up meets after a crash: halves of splits of which no parent knows, pages on their way out of the tree.
#[test]
fn after_any_crash_what_is_dead_goes_and_the_rest_stays() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    work(&db, &schema, 81, 450, 2200, 300);
    let records = records(&db);
    let along = Database::new();
    let (mut unfinished, mut seen) = (Vec::new(), (0, 0));
    for (i, record) in records.iter().enumerate() {
        redo(record, &along.pool).unwrap();
        let report = along.open(&schema).verify().unwrap();
        if report.incomplete_splits > 0 || report.half_dead > 0 {
            unfinished.push(i);
            seen.0 += report.incomplete_splits;
            seen.1 += report.half_dead;
        }
    }
    assert!(seen.0 > 20 && seen.1 > 5, "{seen:?}");
    for (n, stop) in unfinished.into_iter().enumerate().step_by(3) {
        let copy = Database::new();
        for record in &records[..=stop] {
            redo(record, &copy.pool).unwrap();
        }
        let tree = copy.open(&schema);
        let here = || {
            let mut scan = tree.scan(btree::ScanBounds::all(), btree::ScanOptions::default());
            std::iter::from_fn(move || scan.next().unwrap()).collect::<Vec<_>>()
        };
        let before = here();
        // A part of the key space, then all of it, so that pages are emptied beside those that are not.
        let from = before.len() * (n % 4) / 5;
        let to = from + before.len() / 3 + 1;
        let gone: HashSet<_> = before.iter().skip(from).take(to - from).copied().collect();
        with_control(|c| tree.bulk_delete(&|t: base::Tid| gone.contains(&t), c));
        let report = tree.verify().unwrap_or_else(|e| panic!("from {stop}: {e}"));
        let left: Vec<_> = before.iter().filter(|t| !gone.contains(t)).copied().collect();
        assert_eq!(here(), left, "from {stop}");
        assert_eq!(report.half_dead, 0, "from {stop}");
        with_control(|c| tree.bulk_delete(&|_: base::Tid| true, c));
        tree.verify().unwrap_or_else(|e| panic!("from {stop}: {e}"));
        assert_eq!(here(), [], "from {stop}");
        for n in 0..60u32 {
            let key = format!("{:06}{}", n * 5, "q".repeat(900));
            tree.insert(&[Some(key.as_bytes())], tid(100_000 + n), UniqueCheck::No).unwrap();
        }
        assert_eq!(tree.verify().unwrap().entries, 60, "from {stop}");
    }
}

#[test]
fn damaged_records_are_errors() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    work(&db, &schema, 79, 200, 500, 100);
    let mut random = Random(5);
    let copy = Database::new();
    let mut refused = 0;
    for mut record in records(&db) {
        if random.below(10) == 0 {
            for block in &mut record.blocks {
                if !block.data.is_empty() {
                    let at = random.below(block.data.len() as u64) as usize;
                    block.data[at] ^= random.next() as u8;
                }
            }
        }
        refused += u32::from(redo(&record, &copy.pool).is_err());
    }
    assert!(refused > 0);
}

/// A page that a record makes anew is made when the record has made sense: until then what was there stays.
#[test]
fn a_record_that_makes_no_sense_leaves_its_page_alone() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    work(&db, &schema, 79, 600, 1500, 500);
    let copy = Database::new();
    records(&db).iter().for_each(|record| redo(record, &copy.pool).unwrap());
    let tree = copy.open(&schema);
    let mut kinds = HashSet::new();
    for mut record in records(&db) {
        let Some(block) = record.blocks.iter_mut().find(|b| b.will_init && b.data.len() > 1) else {
            continue;
        };
        let tag = block.tag;
        let bytes = || {
            let normal = &mut buffer::Strategy::Normal;
            *tree.relation().pin(tag.fork, tag.block, normal).unwrap().read().bytes()
        };
        let before = bytes();
        block.data.pop();
        redo(&record, &copy.pool).unwrap_err();
        assert!(bytes() == before, "record {} of {tag}", record.info);
        kinds.insert(record.info);
    }
    assert!(kinds.len() > 2, "{kinds:?}");
    tree.verify().unwrap();
}
