//! The bytes, printed.

use crate::support::*;
use btree::{Change, UniqueCheck};

#[test]
fn a_small_tree() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text(), int4()]));
    let long = "v".repeat(1200);
    for (n, name) in ["delta", "alpha", "echo", "bravo", "charlie", "alpha", "foxtrot", "delta"]
        .iter()
        .enumerate()
    {
        let value = format!("{name}{long}");
        let number = (n as i32).to_le_bytes();
        let number = (n != 3).then_some(&number[..]);
        tree.insert(&[Some(value.as_bytes()), number], tid(n as u32), UniqueCheck::No).unwrap();
    }
    db.wal.flush(db.wal.insert_lsn()).unwrap();
    let mut reader = wal::Reader::new(db.disk.clone(), "wal", wal::FIRST_LSN, 1);
    let mut out = tree.dump().unwrap();
    while let Some(record) = reader.next().unwrap() {
        out.push_str(Change::name(record.info));
        for block in &record.blocks {
            let image = if block.image.is_some() { "image" } else { "data" };
            out.push_str(&format!(" {}:{}", block.tag.block, image));
        }
        out.push('\n');
    }
    let path = "tests/it/small_tree.golden";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &out).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert_eq!(out, golden, "got:\n{out}");
}

#[test]
fn included_columns_ride_along_and_are_not_compared() {
    let db = Database::new();
    let included = vec![btree::IncludedColumn { width: -1, align: 4 }];
    let schema = std::sync::Arc::new(btree::KeySchema::new("i", "t", vec![int4()], included));
    assert!(!schema.deduplicates());
    let tree = db.tree(&schema);
    for n in 0..1000u32 {
        let name = format!("name {}", 1000 - n);
        let values = [Some(&(n % 10).to_le_bytes()[..]), (n % 3 > 0).then_some(name.as_bytes())];
        tree.insert(&values, tid(n), UniqueCheck::No).unwrap();
    }
    assert_eq!(tree.verify().unwrap().entries, 1000);
    let bounds = btree::ScanBounds::prefix(vec![Some(7u32.to_le_bytes().to_vec())]);
    let options = btree::ScanOptions { index_only: true, ..Default::default() };
    let mut scan = tree.scan(bounds, options);
    let mut n = 7;
    while let Some(t) = scan.next().unwrap() {
        assert_eq!(t, tid(n));
        let name = format!("name {}", 1000 - n).into_bytes();
        let want = [Some(7u32.to_le_bytes().to_vec()), (n % 3 > 0).then_some(name)];
        assert_eq!(btree::to_owned_values(scan.values()), want);
        assert!(scan.leaf_unchanged());
        n += 10;
    }
    assert_eq!(n, 1007);
}
