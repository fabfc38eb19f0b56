//! Entries whose keys are too long for a page, and are packed.

use crate::support::*;
use base::Tid;
use btree::{
    Condition, IncludedColumn, InsertOutcome, KeySchema, RetailKeys, ScanBounds, ScanOptions,
    UniqueCheck,
};
use std::sync::Arc;

fn found(tree: &Arc<btree::Btree>, key: &[u8]) -> Vec<(Tid, Row)> {
    let bounds = ScanBounds::from_conditions(tree.schema(), &[Condition::Equal(key.to_vec())]);
    let options = ScanOptions { index_only: true, ..ScanOptions::default() };
    let mut scan = tree.scan(bounds, options);
    let mut out = Vec::new();
    while let Some(tid) = scan.next().unwrap() {
        out.push((tid, scan.values().map(|v| v.map(<[u8]>::to_vec)).collect()));
    }
    out
}

/// An integer that is looked at where it stands on the page does not stand there in a packed entry.
#[test]
fn integers_beside_included_texts_that_are_packed() {
    let db = Database::new();
    let included = IncludedColumn { width: -1, align: 4 };
    let schema = Arc::new(KeySchema::new("i", "t", vec![int4()], vec![included]));
    let tree = db.tree(&schema);
    let mut random = Random(77);
    let text = |n: i32| vec![b'a' + (n % 26).unsigned_abs() as u8; (n * 37 % 5000) as usize];
    let mut all: Vec<i32> = (0..1500).collect();
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i as u64 + 1) as usize);
    }
    for n in &all {
        let values = vec![Some(n.to_le_bytes().to_vec()), Some(text(*n))];
        let outcome = tree.insert(&row(&values), tid(*n as u32), UniqueCheck::No).unwrap();
        assert_eq!(outcome, InsertOutcome::Inserted);
    }
    assert_eq!(tree.verify().unwrap().entries, 1500);
    for n in 0..1500i32 {
        let want = vec![Some(n.to_le_bytes().to_vec()), Some(text(n))];
        assert_eq!(found(&tree, &n.to_le_bytes()), [(tid(n as u32), want)], "{n}");
    }
    let mut keys = RetailKeys::new();
    for n in (0..1500).step_by(3) {
        tree.add_retail_key(&mut keys, &[Some(&i32::to_le_bytes(n)[..])], tid(n as u32)).unwrap();
    }
    let stats = with_control(|c| tree.retail_delete(&mut keys, &|_| true, c));
    assert_eq!((stats.removed, stats.missing.len()), (500, 0));
    assert_eq!(tree.verify().unwrap().entries, 1000);
}

#[test]
fn very_long_values_come_back_whole() {
    let db = Database::new();
    let schema = unique(vec![text()]);
    let tree = db.tree(&schema);
    for (i, len) in [2_692, 2_693, 32_511, 32_512, 32_768, 65_536, 300_000].into_iter().enumerate()
    {
        let value = vec![b'a' + i as u8; len];
        let outcome = tree.insert(&[Some(&value)], tid(i as u32), UniqueCheck::No).unwrap();
        assert_eq!(outcome, InsertOutcome::Inserted, "{len}");
    }
    for (i, len) in [2_692, 2_693, 32_511, 32_512, 32_768, 65_536, 300_000].into_iter().enumerate()
    {
        let value = vec![b'a' + i as u8; len];
        assert_eq!(found(&tree, &value), [(tid(i as u32), vec![Some(value.clone())])], "{len}");
        assert_eq!(found(&tree, &value[1..]), []);
    }
    tree.verify().unwrap();
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let db = Database::new();
    let schema = schema(vec![text()]);
    let tree = db.tree(&schema);
    let mut random = Random(3);
    let noise: Vec<u8> = (0..3000).map(|_| random.next() as u8).collect();
    let error = tree.insert(&[Some(&noise)], tid(1), UniqueCheck::No).unwrap_err();
    let want = "index row size 3016 exceeds btree version 4 maximum 2704 for index \"i\"";
    assert_eq!(error.to_string(), want);
    let far_too_long = vec![0; 1 << 20];
    let error = tree.insert(&[Some(&far_too_long)], tid(1), UniqueCheck::No).unwrap_err();
    assert!(error.to_string().starts_with("index row size 10485"), "{error}");
    assert_eq!(tree.verify().unwrap().entries, 0);
}
