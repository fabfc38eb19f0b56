use super::super::temp_files::{TempFileBounds, TempFiles, bound_temp_files, take_temp_files};
use super::*;
use std::collections::BTreeMap;

const MEMORY: usize = 64 << 10;

/// A row that tells its number, of a length that differs.
fn row(n: i32) -> Vec<Datum> {
    let text = if n % 5 == 0 { Datum::Null } else { Datum::text("v".repeat(n as usize % 70)) };
    vec![Datum::Int4(n), text]
}

fn number(row: &[Datum]) -> i32 {
    match row {
        [Datum::Int4(n), text] => {
            assert_eq!(format!("{text:?}"), format!("{:?}", self::row(*n)[1]));
            *n
        }
        other => panic!("{other:?}"),
    }
}

/// The numbers of a part's rows of a side, as they come.
fn numbers<const SIDES: usize>(part: &mut Part<SIDES>, side: usize) -> Vec<i32> {
    let (mut out, mut row) = (Vec::new(), Vec::new());
    while part.read(side, &mut row).unwrap() {
        out.push(number(&row));
        row.clear();
    }
    out
}

/// Bytes of rows in memory.
fn held<const SIDES: usize>(sides: &[[Option<Rows>; FAN]; SIDES]) -> usize {
    sides.iter().flatten().flatten().map(|rows| rows.bytes.capacity()).sum()
}

/// A hash for each number; some share one.
fn hash_of(n: i32) -> u64 {
    mix(n as u64 / 3)
}

#[test]
fn every_row_comes_back_once_and_in_order() {
    let mut parted: Parted<2> = Parted::default();
    let mut split = parted.split(0, 7, MEMORY).unwrap();
    for n in 0..20_000 {
        split.put(0, hash_of(n), &row(n)).unwrap();
        if n % 4 == 0 {
            split.put(1, hash_of(n), &row(n)).unwrap();
        }
    }
    parted.end(split).unwrap();
    assert_eq!(parted.made().0, FAN as u64);
    let mut place_of = BTreeMap::new();
    let mut seen = [Vec::new(), Vec::new()];
    let mut at = 0;
    while let Some(mut part) = parted.next() {
        assert_eq!((part.level, part.of), (1, 7));
        assert!(!part.is_lump(0) && !part.is_lump(1));
        for (side, seen) in seen.iter_mut().enumerate() {
            let rows = part.rows(side);
            assert_eq!(part.left(side), rows);
            let all = numbers(&mut part, side);
            assert!(all.is_sorted() && all.len() as u64 == rows && part.left(side) == 0);
            // From the first again, some at a time.
            part.rewind(side);
            let (mut batch, mut again) = (Batch::new(), Vec::new());
            loop {
                batch.reset(2);
                part.read_batch(side, &mut batch, 100).unwrap();
                if batch.is_empty() {
                    break;
                }
                assert!(batch.len() <= 100);
                again.extend(batch.rows().map(number));
            }
            assert_eq!(again, all);
            // Both sides' rows of a hash, and no other's, are here.
            assert!(all.iter().all(|n| *place_of.entry(hash_of(*n)).or_insert(at) == at));
            seen.extend(all);
        }
        at += 1;
    }
    seen.iter_mut().for_each(|seen| seen.sort_unstable());
    assert!(seen[0].iter().copied().eq(0..20_000));
    assert!(seen[1].iter().copied().eq((0..20_000).step_by(4)));
}

#[test]
fn rows_longer_than_a_block_and_nulls_alone_come_back() {
    let mut parted: Parted<1> = Parted::default();
    let mut split = parted.split(0, 0, MEMORY).unwrap();
    let rows: Vec<Vec<Datum>> = vec![
        vec![Datum::text("a".repeat(5 * GREATEST_BLOCK + 3)), Datum::Null],
        vec![Datum::Null, Datum::Null],
        vec![Datum::text("b".repeat(LEAST_BLOCK - 12)), Datum::Null],
        vec![Datum::text("c".repeat(2 * LEAST_BLOCK)), Datum::Int8(1)],
    ];
    rows.iter().for_each(|row| split.put(0, 5, row).unwrap());
    parted.end(split).unwrap();
    let mut part = parted.next().unwrap();
    for _ in 0..2 {
        part.rewind(0);
        for wanted in &rows {
            let mut row = Vec::new();
            assert!(part.read(0, &mut row).unwrap());
            assert_eq!(format!("{row:?}"), format!("{wanted:?}"));
        }
        assert!(!part.read(0, &mut Vec::new()).unwrap());
    }
    assert!(part.is_lump(0) && parted.next().is_none());
}

/// A level parts what the one before put together.
#[test]
fn each_level_takes_other_bits() {
    let mut together: Vec<u64> = (0..1 << 20).map(mix).collect();
    for level in 0..DEEPEST - 1 {
        let mut counts = [0usize; FAN];
        together.iter().for_each(|h| counts[place(*h, level)] += 1);
        let even = together.len() / FAN;
        assert!(counts.iter().all(|n| *n > even / 2 && *n < even * 2), "level {level}: {counts:?}");
        together.retain(|h| place(*h, level) == 3);
        if together.len() < 20 * FAN {
            break;
        }
    }
    // Hashes that differ in few bits, as in those of which a table takes the lowest.
    let counts = |shift: u32| {
        let mut counts = [0usize; FAN];
        (0..1u64 << 12).for_each(|n| counts[place(n << shift, 0)] += 1);
        counts
    };
    for shift in [0, 20, 52] {
        assert!(counts(shift).iter().all(|n| (32..=512).contains(n)), "{shift}");
    }
}

/// What one has who splits as long as it helps: parts of one hash, or small ones.
#[test]
fn equal_hashes_stay_together_and_are_told() {
    let mut parted: Parted<1> = Parted::default();
    let mut split = parted.split(0, 0, MEMORY).unwrap();
    // Three in four rows have one hash.
    let hash = |n: i32| if n % 8 < 7 { 42 } else { hash_of(n) };
    (0..8000).for_each(|n| split.put(0, hash(n), &row(n)).unwrap());
    parted.end(split).unwrap();
    let (mut lumps, mut seen) = (0, 0);
    while let Some(mut part) = parted.next() {
        if part.rows(0) > 100 && !part.is_lump(0) {
            assert!(part.level < DEEPEST);
            let mut split = parted.split(part.level, 0, MEMORY).unwrap();
            for n in numbers(&mut part, 0) {
                split.put(0, hash(n), &row(n)).unwrap();
            }
            parted.end(split).unwrap();
            continue;
        }
        lumps += usize::from(part.is_lump(0) && part.rows(0) >= 7000);
        seen += numbers(&mut part, 0).len();
    }
    assert_eq!((lumps, seen), (1, 8000));
}

#[test]
fn memory_is_a_block_for_each_part_at_most() {
    let mut parted: Parted<2> = Parted::default();
    let mut split = parted.split(0, 0, MEMORY).unwrap();
    let bound = 2 * FAN * LEAST_BLOCK;
    for n in 0..30_000 {
        split.put(0, hash_of(n), &row(n)).unwrap();
        if n % 1000 == 0 {
            assert!(held(&split.rows) <= bound, "{}", held(&split.rows));
        }
    }
    assert!(held(&split.rows) > 0 && split.has(0, 1) && !split.has(1, 1));
    split.rest(0).unwrap();
    assert_eq!(held(&split.rows), 0);
    split.put(1, 1, &row(1)).unwrap();
    parted.end(split).unwrap();
    while let Some(mut part) = parted.next() {
        let of = |part: &Part<2>| -> usize {
            part.rows.iter().flatten().map(|rows| rows.bytes.capacity()).sum()
        };
        assert_eq!(of(&part), 0);
        let mut row = Vec::new();
        while part.read(0, &mut row).unwrap() {
            row.clear();
            assert!(of(&part) <= 3 * LEAST_BLOCK);
        }
        assert_eq!(of(&part), 0);
    }
}

/// Blocks of what is done are written anew: the file is as long as what there was at once.
#[test]
fn a_file_is_used_again_and_gone_in_the_end() {
    take_temp_files();
    let mut parted: Parted<1> = Parted::default();
    let mut lengths = Vec::new();
    for _ in 0..5 {
        let mut split = parted.split(0, 0, MEMORY).unwrap();
        (0..10_000).for_each(|n| split.put(0, hash_of(n), &row(n)).unwrap());
        parted.end(split).unwrap();
        while parted.next().is_some() {}
        lengths.push(parted.made().1);
    }
    assert!(lengths[0] > 0 && lengths.iter().all(|bytes| *bytes == lengths[0]), "{lengths:?}");
    // One of them is still in hand.
    let mut split = parted.split(0, 0, MEMORY).unwrap();
    split.put(0, 1, &row(1)).unwrap();
    parted.end(split).unwrap();
    let part = parted.next();
    parted.clear();
    assert_eq!((parted.made(), take_temp_files()), ((0, 0), TempFiles::default()));
    drop(part);
    assert_eq!(take_temp_files(), TempFiles { files: 1, bytes: lengths[0] });
}

#[test]
fn an_error_leaves_nothing() {
    take_temp_files();
    bound_temp_files(TempFileBounds { limit_kb: 64, log_kb: -1 });
    let mut parted: Parted<1> = Parted::default();
    let mut split = parted.split(0, 0, MEMORY).unwrap();
    let failed = (0..100_000).find_map(|n| split.put(0, hash_of(n), &row(n)).err());
    assert_eq!(failed.unwrap().state(), base::SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    drop((split, parted));
    assert_eq!(take_temp_files(), TempFiles { files: 1, bytes: 64 << 10 });
    // All of the limit may be used again.
    let mut space = Space::new();
    space.grow(64 << 10).unwrap();
    bound_temp_files(TempFileBounds { limit_kb: -1, log_kb: -1 });
}
