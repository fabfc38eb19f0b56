//! Bulk deletion, page deletion, reuse.

use crate::support::{row as support_row, *};
use btree::{
    IncludedColumn, IndexVacuumStats, KeyColumn, KeySchema, RetailKeys, ScanBounds, ScanOptions,
    UniqueCheck,
};
use std::collections::BTreeSet;
use std::sync::Arc;

fn len(tree: &btree::Btree) -> u32 {
    tree.relation().len_blocks(base::Fork::Main).unwrap().0
}

#[test]
fn a_queue_keeps_its_size() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let key = |n: u32| format!("{n:08}{}", "k".repeat(400)).into_bytes();
    let mut high = 0;
    let mut largest = 0;
    for round in 0..12u32 {
        for n in high..high + 400 {
            tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
        }
        let keep_from = tid(high + 380);
        high += 400;
        let stats = with_control(|c| tree.bulk_delete(&|t: base::Tid| t < keep_from, c));
        assert!(stats.pages_newly_deleted > 10, "{stats:?}");
        let stats = with_control(|c| tree.cleanup(Some(stats), c));
        assert_eq!(stats.entries, 20);
        db.advance_horizon();
        tree.verify().unwrap();
        if round == 4 {
            largest = len(&tree);
        }
    }
    assert!(len(&tree) <= largest + 1, "{} {largest}", len(&tree));
}

#[test]
fn deleted_pages_wait_for_old_snapshots() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let key = |n: u32| format!("{n:08}{}", "k".repeat(400)).into_bytes();
    for n in 0..1000 {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    // A scan stands on a leaf of the middle.
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    for _ in 0..400 {
        scan.next().unwrap();
    }
    let before = len(&tree);
    with_control(|c| tree.bulk_delete(&|t: base::Tid| t < tid(900), c));
    for n in 1000..1400 {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    assert!(len(&tree) > before, "nothing was reused while the scan's snapshot stood");
    let mut rest = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        rest.push(t);
    }
    assert_eq!(rest.last(), Some(&tid(1399)));
    assert!(rest.ends_with(&(900..1400).map(tid).collect::<Vec<_>>()));
    db.advance_horizon();
    let before = len(&tree);
    for n in 1400..1800 {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    assert_eq!(len(&tree), before, "now they are");
    tree.verify().unwrap();
}

/// A split looks for a free page just when somebody has the first one latched, as who writes it to the disk has: another one is taken, and that one
/// is still known as free.
#[test]
fn a_free_page_that_is_latched_for_a_moment_stays_free() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let key = |n: u32| format!("{n:08}{}", "k".repeat(400)).into_bytes();
    let insert = |n: u32| tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    for n in 0..1000 {
        insert(n);
    }
    with_control(|c| tree.bulk_delete(&|t: base::Tid| t < tid(900), c));
    db.advance_horizon();
    let known = || with_control(|c| tree.cleanup(None, c)).pages_deleted;
    let before = known();
    let pin = |block: u32| {
        let mut strategy = buffer::Strategy::Normal;
        tree.relation().pin(base::Fork::Main, base::BlockNumber(block), &mut strategy).unwrap()
    };
    let is_free =
        |block: &u32| page::btree::PageRef(pin(*block).read().bytes()).has(page::btree::DELETED);
    let first = pin((1..len(&tree)).find(is_free).unwrap());
    let latched = first.read();
    let all = len(&tree);
    (1000..2000).take_while(|_| known() == before).for_each(|n| _ = insert(n));
    drop(latched);
    assert_eq!((known(), len(&tree)), (before - 1, all));
}

#[test]
fn retail_finds_what_is_there_and_names_what_is_not() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    for n in 0..4000u32 {
        tree.insert(&[Some(&(n % 400).to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    // Few of a leaf's entries, then most of them: the ones are looked up, the others asked about.
    let mut left: BTreeSet<u32> = (0..4000).collect();
    for step in [97, 2] {
        let mut keys = RetailKeys::new();
        let mut add = |n: u32, t: u32| {
            tree.add_retail_key(&mut keys, &[Some(&n.to_le_bytes())], tid(t)).unwrap();
        };
        let gone: BTreeSet<u32> = left.iter().copied().step_by(step).collect();
        gone.iter().for_each(|n| add(n % 400, *n));
        // No such entry; an entry with another key, which only a bulk deletion can find.
        add(3, 77_777);
        let elsewhere = *left.difference(&gone).next().unwrap();
        add(9999, elsewhere);
        let dead: BTreeSet<_> = gone.iter().map(|n| tid(*n)).collect();
        let is_dead = |t: base::Tid| dead.contains(&t);
        let stats = with_control(|c| tree.retail_delete(&mut keys, &is_dead, c));
        assert_eq!(stats.removed, gone.len() as u64);
        assert_eq!(stats.missing, [tid(77_777), tid(elsewhere)]);
        left.retain(|n| !gone.contains(n));
        assert_eq!(tree.verify().unwrap().entries, left.len() as u64);
    }
}

/// The first and the last key of each heap page lead to all that lie between; what lies elsewhere stays, untold.
#[test]
fn a_walk_meets_what_lies_between_its_keys() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let in_place = |n: u32| n % 50 != 25 || !(n / 50).is_multiple_of(3);
    let key = |n: u32| if in_place(n) { n } else { 1_000_000 + n };
    const ALL: u32 = 20_000;
    for n in 0..ALL {
        tree.insert(&[Some(&key(n).to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let mut left = u64::from(ALL);
    let mut walk = |pages: &[std::ops::Range<u32>]| {
        let mut keys = RetailKeys::new();
        let mut dead = BTreeSet::new();
        for page in pages.iter().cloned().flatten() {
            let rows: Vec<u32> =
                (page * 50..page * 50 + 50).filter(|n| !n.is_multiple_of(7)).collect();
            for n in [rows[0], rows[rows.len() - 1]] {
                tree.add_retail_key(&mut keys, &[Some(&key(n).to_le_bytes())], tid(n)).unwrap();
            }
            dead.extend(rows);
        }
        let is_dead = |t: base::Tid| dead.contains(&(t.block.0 * 50 + u32::from(t.offset.0) - 1));
        let (stats, gone) = with_control(|c| tree.retail_walk(&mut keys, &is_dead, c));
        assert!(keys.is_empty() && stats.missing.is_empty());
        assert_eq!(stats.removed, gone.len() as u64);
        let gone: BTreeSet<u32> =
            gone.iter().map(|t| t.block.0 * 50 + u32::from(t.offset.0) - 1).collect();
        assert!(gone.len() as u64 == stats.removed && gone.is_subset(&dead));
        assert!(dead.difference(&gone).all(|n| !in_place(*n)), "those in place are met");
        assert!(gone.len() < dead.len(), "those elsewhere are not");
        left -= stats.removed;
        assert_eq!(tree.verify().unwrap().entries, left);
        stats
    };
    let near = walk(&[20..40, 40..60]);
    let apart = walk(&[0..2, 190..192, 380..382]);
    assert!(apart.leaves < near.leaves + 12, "{apart:?}: the leaves in between are passed by");
    let all = walk(&[2..20, 60..190, 192..380]);
    assert!(all.leaves > 50 && all.pages_deleted == 0);
    let (stats, gone) =
        with_control(|c| tree.retail_walk(&mut RetailKeys::new(), &|_: base::Tid| true, c));
    assert!(stats == btree::RetailStats::default() && gone.is_empty(), "no keys lead nowhere");
    // All that is left lies between the least key and the greatest.
    let mut keys = RetailKeys::new();
    tree.add_retail_key(&mut keys, &[Some(&0u32.to_le_bytes())], tid(0)).unwrap();
    tree.add_retail_key(&mut keys, &[Some(&2_000_000u32.to_le_bytes())], tid(1)).unwrap();
    let (stats, gone) = with_control(|c| tree.retail_walk(&mut keys, &|_: base::Tid| true, c));
    assert_eq!(gone.len() as u64, stats.removed);
    assert!(stats.pages_deleted > 40);
    assert_eq!(tree.verify().unwrap().entries, 0);
}

/// Every kind of key: retail deletion takes what bulk deletion would take.
#[test]
fn retail_deletion_of_every_kind_of_key() {
    let descending = KeyColumn { descending: true, nulls_first: true, ..int4() };
    let kinds: [(&str, Vec<KeyColumn>, usize); 5] = [
        ("duplicates", vec![int4()], 0),
        ("descending", vec![descending], 0),
        ("two columns", vec![text(), descending], 0),
        ("included", vec![int4()], 1),
        ("long", vec![text(), text()], 0),
    ];
    for (name, columns, included) in kinds {
        let include = vec![IncludedColumn { width: -1, align: 4 }; included];
        let schema = Arc::new(KeySchema::new("i", "t", columns.clone(), include));
        let db = Database::new();
        let tree = db.tree(&schema);
        let mut random = Random(7);
        let mut rows: Vec<(Row, u32)> = Vec::new();
        for n in 0..6000u32 {
            let mut row: Row = Vec::new();
            for column in &columns {
                let v = random.below(if name == "duplicates" { 40 } else { 3000 });
                row.push(match (random.below(10), column.width) {
                    (0, _) => None,
                    (_, 4) => Some((v as u32).to_le_bytes().to_vec()),
                    _ => Some(format!("{}{v:07}", "prefix ".repeat(4)).into_bytes()),
                });
            }
            let mut all = row.clone();
            all.resize(columns.len() + included, Some(b"included".to_vec()));
            tree.insert(&support_row(&all), tid(n), UniqueCheck::No).unwrap();
            rows.push((row, n));
        }
        let mut left = rows.len() as u64;
        let mut some_deleted = 0;
        for step in [50, 9, 1] {
            let gone: Vec<(Row, u32)> = rows.iter().step_by(step).cloned().collect();
            rows.retain(|r| !gone.iter().any(|g| g.1 == r.1));
            let mut keys = RetailKeys::new();
            for (row, n) in &gone {
                tree.add_retail_key(&mut keys, &support_row(row), tid(*n)).unwrap();
            }
            let dead: BTreeSet<_> = gone.iter().map(|(_, n)| tid(*n)).collect();
            let is_dead = |t: base::Tid| dead.contains(&t);
            let stats = with_control(|c| tree.retail_delete(&mut keys, &is_dead, c));
            assert_eq!((stats.removed, stats.missing.len()), (gone.len() as u64, 0), "{name}");
            left -= stats.removed;
            some_deleted += stats.pages_deleted;
            assert_eq!(tree.verify().unwrap().entries, left, "{name}");
        }
        assert!(some_deleted > 5, "{name}: {some_deleted}");
        db.advance_horizon();
        let stats = IndexVacuumStats {
            entries_estimated: true,
            pages_newly_deleted: some_deleted,
            ..Default::default()
        };
        let stats = with_control(|c| tree.cleanup(Some(stats), c));
        assert_eq!((stats.pages_deleted, stats.pages_free), (some_deleted, some_deleted), "{name}");
        // After a start the free pages are found again, since the meta page says that there are many.
        db.context.forget(RELATION);
        let again = db.open(&schema);
        let stats = with_control(|c| again.cleanup(None, c));
        assert_eq!((stats.pages_deleted, stats.pages_free), (some_deleted, some_deleted), "{name}");
        let before = len(&again);
        for n in 0..3000u32 {
            let mut row: Row =
                columns.iter().map(|c| (c.width < 0).then(|| vec![b'x'; 30])).collect();
            row.resize(columns.len() + included, None);
            again.insert(&support_row(&row), tid(n), UniqueCheck::No).unwrap();
        }
        assert_eq!(len(&again), before, "{name}: deleted pages are used again");
        again.verify().unwrap();
    }
}

#[test]
fn a_pass_without_need_is_not_made() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    for n in 0..1000u32 {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let stats = with_control(|c| tree.cleanup(None, c));
    assert!(stats.entries_estimated);
    assert_eq!(stats.pages, len(&tree));
}
