//! What extended statistics say of several columns' values together.
//!
//! # Layout
//! [`build`] is pure: it takes the sampled values. Each column's values are numbered in their order first ([`ranks`]), so that
//! combinations are compared by numbers alone.
//!
//! # Invariants
//! NULLs are equal to each other and after all values. Combinations are in the order in which PostgreSQL has them.

#![expect(clippy::cast_precision_loss, reason = "sample sizes are small")]

use crate::analyze_stats::is_wide;
use base::Oid;
use engine::catalog::extended::{CommonItem, ExtendedData};
use expr::ops::compare;
use expr::{Constant, TypeRef};
use std::cmp::Ordering;
use types::Datum;

/// A column, or an expression, and its values in the sampled rows.
pub struct Sampled {
    /// As in `ExtendedStatistics::attributes`.
    pub number: i32,
    /// Its type.
    pub ty: Oid,
    /// One for each row.
    pub values: Vec<Datum>,
}

/// The statistics that `kinds` (d, f, m) ask for; `rows` is how many the table has.
pub fn build(kinds: &[u8], columns: &[Sampled], rows: f64, target: usize) -> ExtendedData {
    let sample = Sample::of(columns);
    let wanted = |kind: u8| kinds.contains(&kind) && sample.rows > 0 && columns.len() > 1;
    ExtendedData {
        distinct: wanted(b'd').then(|| sample.distinct(rows)),
        dependencies: wanted(b'f').then(|| sample.dependencies()).filter(|d| !d.is_empty()),
        common: wanted(b'm').then(|| sample.common(rows, target)).filter(|c| !c.is_empty()),
        expressions: None,
    }
}

struct Sample<'a> {
    columns: &'a [Sampled],
    /// Of each column, its rows' numbers.
    ranks: Vec<Vec<u32>>,
    rows: usize,
    /// Rows without values that are too long to be kept.
    narrow: Vec<usize>,
}

fn order(ty: Oid, a: &Datum, b: &Datum) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (false, false) => compare(ty, a, b),
        (a, b) => a.cmp(&b),
    }
}

/// Equal values have the same number, greater ones a greater one.
fn ranks(column: &Sampled) -> Vec<u32> {
    let values = &column.values;
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|a, b| order(column.ty, &values[*a], &values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut rank = 0;
    for (n, at) in sorted.iter().enumerate() {
        if n > 0 && order(column.ty, &values[sorted[n - 1]], &values[*at]).is_ne() {
            rank += 1;
        }
        ranks[*at] = rank;
    }
    ranks
}

/// Those of 0..n of which there are `k`, in order.
fn combinations(n: usize, k: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut current: Vec<usize> = (0..k).collect();
    if k > n {
        return all;
    }
    loop {
        all.push(current.clone());
        let Some(at) = (0..k).rev().find(|i| current[*i] < n - k + i) else { return all };
        current[at] += 1;
        for i in at + 1..k {
            current[i] = current[i - 1] + 1;
        }
    }
}

impl<'a> Sample<'a> {
    fn of(columns: &'a [Sampled]) -> Sample<'a> {
        let rows = columns.first().map_or(0, |c| c.values.len());
        let is_wide = |row: &usize| {
            columns.iter().any(|c| {
                let value = &c.values[*row];
                !value.is_null() && is_wide(value, c.ty)
            })
        };
        let narrow = (0..rows).filter(|row| !is_wide(row)).collect();
        Sample { columns, ranks: columns.iter().map(ranks).collect(), rows, narrow }
    }

    fn compare(&self, chosen: &[usize], a: usize, b: usize) -> Ordering {
        let by = |c: &usize| self.ranks[*c][a].cmp(&self.ranks[*c][b]);
        chosen.iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn sorted(&self, mut rows: Vec<usize>, chosen: &[usize]) -> Vec<usize> {
        rows.sort_by(|a, b| self.compare(chosen, *a, *b));
        rows
    }

    fn numbers(&self, chosen: &[usize]) -> Vec<i32> {
        chosen.iter().map(|c| self.columns[*c].number).collect()
    }

    fn distinct(&self, rows: f64) -> Vec<(Vec<i32>, f64)> {
        let n = self.columns.len();
        let sets = (2..=n).flat_map(|k| combinations(n, k));
        sets.map(|set| {
            let sorted = self.sorted((0..self.rows).collect(), &set);
            let groups = sorted.chunk_by(|a, b| self.compare(&set, *a, *b).is_eq());
            let (mut different, mut once) = (0.0, 0.0);
            for group in groups {
                different += 1.0;
                once += if group.len() == 1 { 1.0 } else { 0.0 };
            }
            (self.numbers(&set), estimate(rows, self.rows as f64, different, once))
        })
        .collect()
    }

    /// Of which part of the rows the last of `set` follows from the others.
    fn degree(&self, set: &[usize]) -> f64 {
        let Some((last, from)) = set.split_last() else { return 0.0 };
        let sorted = self.sorted(self.narrow.clone(), set);
        let groups = sorted.chunk_by(|a, b| self.compare(from, *a, *b).is_eq());
        let decided = |group: &&[usize]| {
            group.windows(2).all(|w| self.ranks[*last][w[0]] == self.ranks[*last][w[1]])
        };
        groups.filter(decided).map(|g| g.len() as f64).sum::<f64>() / self.rows as f64
    }

    fn dependencies(&self) -> Vec<(Vec<i32>, f64)> {
        let n = self.columns.len();
        let mut list = Vec::new();
        for from in (1..n).flat_map(|k| combinations(n, k)) {
            for last in (0..n).filter(|c| !from.contains(c)) {
                let set: Vec<usize> = from.iter().copied().chain([last]).collect();
                let degree = self.degree(&set);
                if degree > 0.0 {
                    list.push((self.numbers(&set), degree));
                }
            }
        }
        list
    }

    fn common(&self, rows: f64, target: usize) -> Vec<CommonItem> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let sorted = self.sorted(self.narrow.clone(), &all);
        let mut groups: Vec<&[usize]> =
            sorted.chunk_by(|a, b| self.compare(&all, *a, *b).is_eq()).collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
        let least = least_count(self.rows as f64, rows);
        groups.truncate(target);
        groups.retain(|g| g.len() as f64 >= least);
        let mut counts: Vec<Vec<u32>> = Vec::new();
        for ranks in &self.ranks {
            let mut of = vec![0; ranks.iter().max().map_or(0, |m| *m as usize + 1)];
            ranks.iter().for_each(|r| of[*r as usize] += 1);
            counts.push(of);
        }
        let n = self.rows as f64;
        let item = |group: &&[usize]| {
            let row = group[0];
            let part = |c: usize| f64::from(counts[c][self.ranks[c][row] as usize]) / n;
            let value =
                |c: &Sampled| Constant { ty: TypeRef::of(c.ty), value: c.values[row].clone() };
            CommonItem {
                values: self.columns.iter().map(value).collect(),
                frequency: group.len() as f64 / n,
                base_frequency: all.iter().map(|c| part(*c)).product(),
            }
        };
        groups.iter().map(item).collect()
    }
}

/// How many different values the table has, when the sample has so many.
fn estimate(rows: f64, sample: f64, different: f64, once: f64) -> f64 {
    let all = sample * different / ((sample - once) + once * sample / rows.max(sample));
    (all.clamp(different, rows.max(different)) + 0.5).floor()
}

/// What is seen less often in the sample may be as rare as anything.
fn least_count(sample: f64, rows: f64) -> f64 {
    let least = sample * (rows - sample);
    let of = rows - sample + 0.04 * sample * (rows - 1.0);
    if of == 0.0 { 0.0 } else { (least / of).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::oids::INT4;

    fn column(number: i32, value: impl Fn(i32) -> Option<i32>) -> Sampled {
        let values = (0..1000).map(|i| value(i).map_or(Datum::Null, Datum::Int4)).collect();
        Sampled { number, ty: INT4, values }
    }

    #[test]
    fn what_decides_what() {
        let columns = [column(1, |i| Some(i / 10)), column(2, |i| Some(i / 50))];
        let data = build(b"df", &columns, 1000.0, 100);
        assert_eq!(data.distinct, Some(vec![(vec![1, 2], 100.0)]));
        assert_eq!(data.dependencies, Some(vec![(vec![1, 2], 1.0)]));
        assert!(data.common.is_none());
    }

    #[test]
    fn common_combinations_and_nulls() {
        let columns = [column(1, |i| (i % 4 != 0).then_some(i % 4)), column(-1, |i| Some(i % 4))];
        let common = build(b"m", &columns, 1000.0, 3).common.unwrap();
        assert_eq!(common.len(), 3);
        assert!(common.iter().all(|c| c.frequency == 0.25 && c.base_frequency == 0.0625));
        assert!(matches!(common[0].values[0].value, Datum::Int4(1)));
        let all = build(b"m", &columns, 1000.0, 100).common.unwrap();
        assert!(all[3].values[0].value.is_null());
    }

    #[test]
    fn combinations_are_in_order() {
        assert_eq!(combinations(3, 2), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!(combinations(2, 3), Vec::<Vec<usize>>::new());
    }
}
