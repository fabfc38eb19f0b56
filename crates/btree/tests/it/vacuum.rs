//! Bulk deletion, page deletion, reuse.

use crate::support::*;
use btree::{RetailKey, ScanBounds, ScanOptions, UniqueCheck};

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
        let stats = with_control(|c| tree.bulk_delete(&mut |t| t < keep_from, c));
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
    with_control(|c| tree.bulk_delete(&mut |t| t < tid(900), c));
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

#[test]
fn retail_finds_what_is_there_and_names_what_is_not() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    for n in 0..4000u32 {
        tree.insert(&[Some(&(n % 400).to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let key = |n: u32, t: u32| tree.retail_key(&[Some(&n.to_le_bytes())], tid(t)).unwrap();
    let mut keys: Vec<RetailKey> = (0..4000).step_by(7).map(|n| key(n % 400, n)).collect();
    let wanted = keys.len() as u64;
    keys.push(key(3, 77_777));
    keys.push(key(9999, 5));
    let stats = with_control(|c| tree.retail_delete(&mut keys, c));
    assert_eq!(stats.removed, wanted);
    assert_eq!(stats.missing, [tid(77_777), tid(5)]);
    assert_eq!(tree.verify().unwrap().entries, 4000 - wanted);
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
