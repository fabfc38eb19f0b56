//! What ANALYZE makes of a sample: the planner's statistics of a column.
//!
//! # Purpose
//! [`column_statistics`] is pure: it takes the sampled values of one column in physical order and how many rows the table
//! has, and gives [`ColumnStatistics`] as PostgreSQL's ANALYZE would estimate them: distinct values by Haas and Stokes's
//! estimator, most common values where they are clearly more common, an equi-depth histogram of the rest, and
//! the correlation between value order and physical order.

use base::{GiveWay, Oid};
use engine::catalog::model::ColumnStatistics;
use expr::ops::{compare, identical};
use types::Datum;

/// Values wider than this take no part in comparisons.
const WIDE_BYTES: usize = 1024;

/// Rows to sample for a statistics target.
pub fn sample_rows(target: usize) -> usize {
    300 * target
}

/// Whether a value takes no part in comparisons.
pub(crate) fn is_wide(d: &Datum, ty: Oid) -> bool {
    match d {
        Datum::Late(late) => late.len() > WIDE_BYTES,
        there => width(there, ty) > WIDE_BYTES,
    }
}

/// How wide a value is in its row.
pub(crate) fn width(d: &Datum, ty: Oid) -> usize {
    let len = types::type_info(ty).map_or(-1, |t| t.len);
    if len > 0 {
        return len as usize;
    }
    let with_header = |len: usize| len + if len <= 126 { 1 } else { 4 };
    match d {
        Datum::Text(t) => with_header(t.len()),
        Datum::Bytea(b) => with_header(b.len()),
        Datum::Late(late) => late.len_in_row(),
        other => {
            let mut bytes = Vec::new();
            match types::encode(ty, other, &mut bytes) {
                Ok(()) => with_header(bytes.len()),
                Err(_) => 16,
            }
        }
    }
}

/// One run of equal values.
struct Run {
    first: usize,
    count: usize,
}

/// The statistics of a column from `values`, its values in the sampled rows, in physical order.
/// `width_in_rows` is how wide they are in their rows on average, where rows have them as they may not be here: compressed, or out of line.
/// `rows` is how many the table has, `target` the statistics target.
///
/// Between values it gives way, if it is to.
pub fn column_statistics(
    ty: Oid,
    values: &[Datum],
    width_in_rows: Option<i32>,
    rows: f64,
    target: usize,
    give_way: &mut GiveWay,
) -> ColumnStatistics {
    let total = values.len();
    let mut out = ColumnStatistics::default();
    if total == 0 {
        return out;
    }
    let nulls = values.iter().filter(|v| v.is_null()).count();
    out.null_fraction = nulls as f32 / total as f32;
    let present: Vec<(usize, &Datum)> =
        values.iter().filter(|v| !v.is_null()).enumerate().collect();
    if present.is_empty() {
        out.width_bytes = types::type_info(ty).map_or(0, |t| i32::from(t.len.max(0)));
        return out;
    }
    out.width_bytes = width_in_rows.unwrap_or_else(|| {
        let measured = |(_, v): &(usize, &Datum)| {
            give_way.tick();
            width(v, ty)
        };
        let bytes: usize = present.iter().map(measured).sum();
        (bytes / present.len()) as i32
    });
    if !types::compare::is_orderable(ty) {
        only_equality(&present, total, rows, target, &mut out, give_way);
        return out;
    }
    let mut sorted: Vec<(usize, &Datum)> =
        present.iter().filter(|(_, v)| !is_wide(v, ty)).copied().collect();
    let too_wide = present.len() - sorted.len();
    if sorted.is_empty() {
        out.distinct = -(1.0 - out.null_fraction);
        return out;
    }
    sorted.sort_by(|a, b| {
        give_way.tick();
        compare(ty, a.1, b.1)
    });
    let mut runs: Vec<Run> = Vec::new();
    for i in 0..sorted.len() {
        give_way.tick();
        match runs.last_mut() {
            Some(r) if compare(ty, sorted[r.first].1, sorted[i].1).is_eq() => r.count += 1,
            _ => runs.push(Run { first: i, count: 1 }),
        }
    }
    let once = runs.iter().filter(|r| r.count == 1).count() + too_wide;
    let distinct = runs.len() + too_wide;
    out.distinct = distinct_values(distinct, once, present.len(), total, rows, out.null_fraction);
    let common = choose_common(&runs, &out, total, rows, target, too_wide == 0);
    for c in &common {
        out.common.push((sorted[runs[*c].first].1.clone(), runs[*c].count as f32 / total as f32));
    }
    // The histogram is of what is not among the common ones.
    let mut rest: Vec<usize> = Vec::new();
    let mut kinds = 0;
    for (i, r) in runs.iter().enumerate() {
        if !common.contains(&i) {
            kinds += 1;
            rest.extend(r.first..r.first + r.count);
        }
    }
    if kinds >= 2 {
        let bins = (target + 1).min(kinds);
        if bins >= 2 {
            let last = rest.len() - 1;
            for b in 0..bins {
                let at = b * last / (bins - 1);
                out.histogram.push(sorted[rest[at]].1.clone());
            }
        }
    }
    out.correlation = correlation(&sorted);
    out
}

/// Types that have no order get at most common values, by identity.
fn only_equality(
    present: &[(usize, &Datum)],
    total: usize,
    rows: f64,
    target: usize,
    out: &mut ColumnStatistics,
    give_way: &mut GiveWay,
) {
    let mut kinds: Vec<(&Datum, usize)> = Vec::new();
    let limit = target.saturating_mul(10).max(10);
    for (_, v) in present {
        give_way.point();
        let room = kinds.len() < limit;
        match kinds.iter_mut().find(|k| identical(k.0, v)) {
            Some(k) => k.1 += 1,
            None if room => kinds.push((v, 1)),
            None => {
                out.distinct = -(1.0 - out.null_fraction);
                return;
            }
        }
    }
    let once = kinds.iter().filter(|k| k.1 == 1).count();
    out.distinct =
        distinct_values(kinds.len(), once, present.len(), total, rows, out.null_fraction);
    kinds.retain(|k| k.1 > 1);
    kinds.sort_by_key(|k| std::cmp::Reverse(k.1));
    kinds.truncate(target);
    out.common = kinds.iter().map(|k| (k.0.clone(), k.1 as f32 / total as f32)).collect();
}

/// Haas and Stokes: `n*d / (n - f1 + f1*n/N)`; negative when it grows with the table.
fn distinct_values(
    distinct: usize,
    once: usize,
    present: usize,
    total: usize,
    rows: f64,
    null_fraction: f32,
) -> f32 {
    let mut d = distinct as f64;
    if once == distinct && distinct == present {
        // No value twice: unique, NULLs aside.
        return -(1.0 - null_fraction);
    }
    if once > 0 {
        let n = present as f64;
        let all = (rows * (1.0 - f64::from(null_fraction))).max(n);
        let f1 = once as f64;
        let denominator = (n - f1) + f1 * n / all;
        d = (n * d / denominator).clamp(d, all);
        let _ = total;
    }
    d = (d + 0.5).floor();
    // More than a tenth of the rows: a fraction.
    if d > 0.1 * rows { -(d / rows) as f32 } else { d as f32 }
}

/// Which runs are common enough to be listed, most common first.
fn choose_common(
    runs: &[Run],
    stats: &ColumnStatistics,
    total: usize,
    rows: f64,
    target: usize,
    complete: bool,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..runs.len()).filter(|i| runs[*i].count > 1).collect();
    order.sort_by(|a, b| runs[*b].count.cmp(&runs[*a].count).then(a.cmp(b)));
    // A column of few values, all seen more than once: all of them.
    if order.len() == runs.len() && complete && stats.distinct > 0.0 && runs.len() <= target {
        return order;
    }
    order.truncate(target);
    if order.is_empty() {
        return order;
    }
    let n = total as f64;
    if (total as f64) >= rows {
        // All rows were seen: what occurs more than once is exactly that common.
        return order;
    }
    let distinct = if stats.distinct < 0.0 {
        -f64::from(stats.distinct) * rows
    } else {
        f64::from(stats.distinct)
    };
    let mut sum: f64 = order.iter().map(|i| runs[*i].count as f64).sum();
    // The least common one goes while it is not clearly more common than the average of what is not listed.
    while let Some(last) = order.last() {
        let count = runs[*last].count as f64;
        sum -= count;
        let mut sel = 1.0 - sum / n - f64::from(stats.null_fraction);
        sel = sel.clamp(0.0, 1.0);
        let others = distinct - (order.len() - 1) as f64;
        if others > 1.0 {
            sel /= others;
        }
        // Hypergeometric: the count that would surprise nobody.
        let hits = rows * count / n;
        let variance = if rows > 1.0 {
            n * hits * (rows - hits) * (rows - n) / (rows * rows * (rows - 1.0))
        } else {
            0.0
        };
        if count > sel * n + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        order.pop();
    }
    order
}

fn correlation(sorted: &[(usize, &Datum)]) -> Option<f32> {
    let n = sorted.len() as f64;
    if sorted.len() < 2 {
        return None;
    }
    // Both series are permutations of 0..n.
    let mut product = 0.0;
    for (i, (at, _)) in sorted.iter().enumerate() {
        product += i as f64 * *at as f64;
    }
    let sum = n * (n - 1.0) / 2.0;
    let squares = (n - 1.0) * n * (2.0 * n - 1.0) / 6.0;
    let c = (n * product - sum * sum) / (n * squares - sum * sum);
    c.is_finite().then_some(c.clamp(-1.0, 1.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::oids::{INT4, TEXT};

    #[test]
    fn a_key_is_unique_and_ordered() {
        let v: Vec<Datum> = (1..=3000).map(Datum::Int4).collect();
        let s = column_statistics(INT4, &v, None, 100_000.0, 100, &mut GiveWay::never());
        assert_eq!(s.distinct, -1.0);
        assert!(s.common.is_empty());
        assert_eq!(s.histogram.len(), 101);
        assert_eq!(s.correlation, Some(1.0));
        assert_eq!(s.width_bytes, 4);
        let back: Vec<Datum> = v.into_iter().rev().collect();
        assert_eq!(
            column_statistics(INT4, &back, None, 3000.0, 100, &mut GiveWay::never()).correlation,
            Some(-1.0)
        );
    }

    #[test]
    fn few_values_are_all_listed() {
        let mut v: Vec<Datum> = (0..3000).map(|i| Datum::text(format!("k{}", i % 3))).collect();
        v.extend(std::iter::repeat_n(Datum::Null, 1000));
        let s = column_statistics(TEXT, &v, None, 1_000_000.0, 100, &mut GiveWay::never());
        assert_eq!(s.distinct, 3.0);
        assert_eq!(s.null_fraction, 0.25);
        assert_eq!(s.common.len(), 3);
        assert_eq!(s.common[0].1, 0.25);
        assert!(s.histogram.is_empty());
    }

    #[test]
    fn a_skewed_value_stands_out() {
        let v: Vec<Datum> = (0..30_000)
            .map(|i| Datum::Int4(if i % 2 == 0 { 7 } else { i * 7919 % 50_000 }))
            .collect();
        let s = column_statistics(INT4, &v, None, 1_000_000.0, 100, &mut GiveWay::never());
        assert_eq!(s.common.first().map(|c| c.1 > 0.49), Some(true));
        assert!(s.common.len() < 10, "{}", s.common.len());
        assert!(s.distinct < 0.0 || s.distinct > 10_000.0);
        assert_eq!(s.histogram.len(), 101);
    }
}
