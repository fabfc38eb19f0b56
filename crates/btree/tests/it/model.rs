//! Random insertions, deletions and scans against a sorted vector.

use crate::support::*;
use base::Tid;
use btree::{
    Btree, BtreeScan, Condition, Direction, InsertOutcome, KeyColumn, KeySchema, RetailKeys,
    ScanBounds, ScanOptions, UniqueCheck,
};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

struct Model {
    schema: Arc<KeySchema>,
    rows: Vec<(Row, Tid)>,
}

impl Model {
    fn compare(&self, a: &(Row, Tid), b: &(Row, Tid)) -> Ordering {
        for (i, column) in self.schema.columns.iter().enumerate() {
            let o = KeySchema::compare_column(column, a.0[i].as_deref(), b.0[i].as_deref());
            if o != Ordering::Equal {
                return o;
            }
        }
        a.1.cmp(&b.1)
    }
    fn insert(&mut self, row: Row, tid: Tid) {
        let new = (row, tid);
        let at = self.rows.partition_point(|r| self.compare(r, &new) == Ordering::Less);
        self.rows.insert(at, new);
    }
}

fn matches(column: &KeyColumn, condition: &Condition, value: &Option<Vec<u8>>) -> bool {
    let plain = KeyColumn { descending: false, ..*column };
    let compare = |a: &[u8], b: &[u8]| KeySchema::compare_column(&plain, Some(a), Some(b));
    match (condition, value) {
        (Condition::Any, _) | (Condition::IsNull, None) | (Condition::IsNotNull, Some(_)) => true,
        (Condition::Equal(w), Some(v)) => w == v,
        (Condition::OneOf(list), Some(v)) => list.contains(v),
        (Condition::Range { lower, upper }, Some(v)) => {
            lower.as_ref().is_none_or(|(l, inc)| {
                compare(v, l) == Ordering::Greater || *inc && compare(v, l) == Ordering::Equal
            }) && upper.as_ref().is_none_or(|(u, inc)| {
                compare(v, u) == Ordering::Less || *inc && compare(v, u) == Ordering::Equal
            })
        }
        _ => false,
    }
}

/// Where values may be longer, many keys are packed.
const PACKED_FROM: usize = 3000;

fn value(random: &mut Random, column: &KeyColumn, range: u64, pad: usize) -> Option<Vec<u8>> {
    if random.below(12) == 0 {
        return None;
    }
    let n = random.below(range) as i32 - (range / 2) as i32;
    Some(if column.width == 4 {
        n.to_le_bytes().to_vec()
    } else {
        let mut v = format!("{:05}", n + 50_000).into_bytes();
        v.resize(5 + (n.unsigned_abs() as usize * 7) % (pad + 1), b'x');
        if pad > PACKED_FROM {
            // Of some of them next to nothing is left, of others nearly as much as a page takes.
            let mut noise = Random(u64::from(n.unsigned_abs()) * 2 + 1);
            let kept = n.unsigned_abs() as usize * 131 % 2500;
            v.iter_mut().skip(5).take(kept).for_each(|b| *b = noise.next() as u8);
        }
        v
    })
}

fn condition(random: &mut Random, column: &KeyColumn, range: u64, pad: usize) -> Condition {
    let one = |random: &mut Random| loop {
        if let Some(v) = value(random, column, range, pad) {
            return v;
        }
    };
    let (a, b) = (one(random), one(random));
    let plain = KeyColumn { descending: false, ..*column };
    let (a, b) = if KeySchema::compare_column(&plain, Some(&a), Some(&b)) == Ordering::Greater {
        (b, a)
    } else {
        (a, b)
    };
    match random.below(12) {
        9.. => {
            let mut list: Vec<Vec<u8>> = vec![a, b];
            for _ in 0..random.below(5) {
                list.push(one(random));
            }
            list.sort_by(|a, b| KeySchema::compare_column(column, Some(a), Some(b)));
            list.dedup();
            Condition::OneOf(list)
        }
        0 => Condition::Any,
        1 => Condition::IsNull,
        2 => Condition::IsNotNull,
        3 | 4 => Condition::Equal(a),
        5 => Condition::Range { lower: Some((a, random.below(2) == 0)), upper: None },
        6 => Condition::Range { lower: None, upper: Some((b, random.below(2) == 0)) },
        _ => Condition::Range {
            lower: Some((a, random.below(2) == 0)),
            upper: Some((b, random.below(2) == 0)),
        },
    }
}

/// By new scans in both directions, and by one that was somewhere else before.
fn check_scan(
    tree: &Arc<Btree>,
    model: &Model,
    conditions: &[Condition],
    elsewhere: &mut BtreeScan,
) {
    let bounds = ScanBounds::from_conditions(&model.schema, conditions);
    let want: Vec<Tid> = model
        .rows
        .iter()
        .filter(|(row, _)| {
            conditions
                .iter()
                .enumerate()
                .all(|(i, c)| matches(&model.schema.columns[i], c, &row[i]))
        })
        .map(|(_, tid)| *tid)
        .collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let options = ScanOptions {
            direction,
            index_only: want.len().is_multiple_of(2),
            ..ScanOptions::default()
        };
        let mut scan = tree.scan(bounds.clone(), options);
        let mut got = Vec::new();
        while let Some(tid) = scan.next().unwrap() {
            if options.index_only {
                let values: Row = scan.values().map(|v| v.map(<[u8]>::to_vec)).collect();
                assert!(model.rows.contains(&(values, tid)));
            }
            got.push(tid);
        }
        if direction == Direction::Backward {
            got.reverse();
        }
        assert_eq!(got, want, "{direction:?} {conditions:?}");
    }
    elsewhere.rescan(bounds);
    let mut got = Vec::new();
    while let Some(tid) = elsewhere.next().unwrap() {
        got.push(tid);
    }
    assert_eq!(got, want, "again {conditions:?}");
}

/// Each of so many rows from `from` on by a look-up of its own, as `= ANY` finds them.
fn check_neighbours(model: &Model, from: usize, count: usize, scan: &mut BtreeScan) {
    for (values, tid) in model.rows.iter().skip(from).take(count) {
        let equal = |v: &Option<Vec<u8>>| v.clone().map_or(Condition::IsNull, Condition::Equal);
        let conditions: Vec<_> = values.iter().map(equal).collect();
        scan.rescan(ScanBounds::from_conditions(&model.schema, &conditions));
        let mut found = false;
        while let Some(t) = scan.next().unwrap() {
            found |= t == *tid;
        }
        assert!(found, "{conditions:?}");
    }
}

/// One run; with EBB_SOAK=n in the environment n more from other seeds.
fn run(seed: u64, columns: Vec<KeyColumn>, range: u64, pad: usize, steps: u32) {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for i in 0..=more {
        run_once(seed + i * 1000, columns.clone(), range, pad, steps);
    }
}

fn run_once(seed: u64, columns: Vec<KeyColumn>, range: u64, pad: usize, steps: u32) {
    let db = Database::new();
    let mut random = Random(seed | 1);
    let schema = schema(columns);
    let tree = db.tree(&schema);
    let mut model = Model { schema: schema.clone(), rows: Vec::new() };
    let mut next_tid = 0u32;
    let mut kept = tree.scan(ScanBounds::default(), ScanOptions::default());
    for step in 0..steps {
        match random.below(100) {
            0..=1 => {
                let gone: HashSet<Tid> = {
                    let odds = 1 + random.below(4);
                    let low = random.below(10) < 5;
                    let n = model.rows.len();
                    let rows = model.rows.iter().enumerate();
                    rows.filter(|(i, _)| if low { *i < n / 2 } else { random.below(odds) == 0 })
                        .map(|(_, r)| r.1)
                        .collect()
                };
                let stats = if random.below(2) == 0 {
                    with_control(|c| tree.bulk_delete(&|t: base::Tid| gone.contains(&t), c))
                        .entries_removed
                } else {
                    let mut keys = RetailKeys::new();
                    for r in model.rows.iter().filter(|r| gone.contains(&r.1)) {
                        tree.add_retail_key(&mut keys, &row(&r.0), r.1).unwrap();
                    }
                    let is_dead = |t: base::Tid| gone.contains(&t);
                    let stats = with_control(|c| tree.retail_delete(&mut keys, &is_dead, c));
                    assert!(stats.missing.is_empty());
                    stats.removed
                };
                assert_eq!(stats, gone.len() as u64);
                model.rows.retain(|r| !gone.contains(&r.1));
                if random.below(2) == 0 {
                    db.advance_horizon();
                }
            }
            2..=4 => {
                let conditions: Vec<_> =
                    schema.columns.iter().map(|c| condition(&mut random, c, range, pad)).collect();
                let n = 1 + random.below(conditions.len() as u64) as usize;
                check_scan(&tree, &model, &conditions[..n], &mut kept);
                let from = random.below(model.rows.len() as u64 + 1) as usize;
                check_neighbours(&model, from, 20, &mut kept);
            }
            _ => {
                let new: Row =
                    schema.columns.iter().map(|c| value(&mut random, c, range, pad)).collect();
                // Addresses come in no order, as they do from a heap with free space.
                next_tid += 1;
                let tid = tid(next_tid.wrapping_mul(40_503) % 65_536 * 8 + next_tid / 65_536);
                let outcome = tree.insert(&row(&new), tid, UniqueCheck::No).unwrap();
                assert_eq!(outcome, InsertOutcome::Inserted);
                model.insert(new, tid);
            }
        }
        if step % 500 == 499 {
            let report = tree.verify().unwrap();
            assert_eq!(report.entries, model.rows.len() as u64);
            assert_eq!(report.incomplete_splits, 0);
            check_scan(&tree, &model, &[Condition::Any], &mut kept);
        }
    }
    let mut seen = Vec::new();
    tree.for_each_entry(&mut |values, tid| {
        seen.push((values.iter().map(|v| v.map(<[u8]>::to_vec)).collect::<Row>(), tid));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, model.rows);
    // Everything goes; the tree is left with little.
    // The last child of a parent can go only when it is alone: a pass per level.
    for _ in 0..8 {
        with_control(|c| tree.bulk_delete(&|_: base::Tid| true, c));
    }
    let report = tree.verify().unwrap();
    assert_eq!(report.entries, 0);
    assert!(report.pages <= 2 * u64::from(report.levels), "{report:?}");
}

#[test]
fn int4_many_distinct() {
    run(11, vec![int4()], 1_000_000, 0, 4000);
}
#[test]
fn int4_many_duplicates() {
    run(12, vec![int4()], 5, 0, 4000);
}
#[test]
fn long_texts() {
    run(13, vec![text()], 2000, 2600, 2500);
}
#[test]
fn long_texts_with_duplicates() {
    run(14, vec![text()], 12, 900, 2500);
}
#[test]
fn texts_too_long_for_a_page() {
    run(21, vec![text()], 2000, 7500, 1500);
    run(22, vec![text()], 12, 4000, 1500);
}
#[test]
fn two_columns_too_long_for_a_page() {
    let columns = vec![KeyColumn { descending: true, ..text() }, int4(), text()];
    run(23, columns, 40, 3500, 1500);
}
#[test]
fn two_columns_descending_nulls_first() {
    let columns = vec![
        KeyColumn { descending: true, nulls_first: true, ..int4() },
        KeyColumn { nulls_first: true, ..text() },
    ];
    run(15, columns, 40, 300, 3000);
}
#[test]
fn two_columns_descending_nulls_last() {
    let columns = vec![KeyColumn { descending: true, ..text() }, int4()];
    run(16, columns, 40, 120, 3000);
}
#[test]
fn without_equal_images() {
    run(17, vec![KeyColumn { equal_image: false, ..int4() }], 20, 0, 3000);
}
#[test]
fn three_columns_in_all_orders() {
    let columns = vec![int4(), KeyColumn { descending: true, ..text() }, int4()];
    run(18, columns, 25, 200, 3000);
    let first = KeyColumn { descending: true, nulls_first: true, ..text() };
    run(19, vec![first, int4(), KeyColumn { nulls_first: true, ..int4() }], 9, 400, 2500);
}
