//! # Purpose
//! Where a scan whose conditions leave gaps goes on: PostgreSQL's skip scan. For `b = 7` in an index on (a, b) it is enough to look at
//! b = 7 behind each value of a; what lies between is passed over.
//!
//! # Invariants
//! What [`next_place`] and [`last_place`] pass over satisfies the conditions nowhere. The place they give is behind, or before, where
//! they were asked from, or the answer is [`Place::Here`]: a scan that follows it comes to its end.

use crate::bounds::{Condition, ScanEdge, column_edges, place_in};
use crate::schema::{Edge, KeyColumn, KeySchema, Value};
use std::cmp::Ordering;

/// Where the first entry that may satisfy the conditions is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// From where it was asked on.
    Here,
    /// From this place on, or up to it.
    At(ScanEdge),
    /// None is to come.
    Nowhere,
}

/// Is the value before the place of it, in the index's order?
fn is_before(column: &KeyColumn, value: Value<'_>, place: &(Option<Vec<u8>>, Edge)) -> bool {
    match KeySchema::compare_column(column, value, place.0.as_deref()) {
        Ordering::Less => true,
        Ordering::Equal => place.1 == Edge::After,
        Ordering::Greater => false,
    }
}

/// The first entry that may satisfy the conditions, of those that do not come before `from`: an entry's values, or the first of them as
/// a pivot has them, where what is missing is less than everything.
pub(crate) fn next_place<'v>(
    schema: &KeySchema,
    conditions: &[Condition],
    mut from: impl Iterator<Item = Value<'v>>,
) -> Place {
    let mut same: Vec<Option<Vec<u8>>> = Vec::new();
    for (i, (condition, column)) in conditions.iter().zip(&schema.columns).enumerate() {
        let (first, last) = column_edges(column, condition);
        let Some(value) = from.next() else {
            return outermost_of(schema, conditions, same, true);
        };
        if first.is_some_and(|f| is_before(column, value, &f)) {
            return outermost_of(schema, conditions, same, true);
        }
        if last.is_some_and(|l| !is_before(column, value, &l)) {
            return past(conditions, same, i, Edge::After);
        }
        if let (Condition::OneOf(list), Some(v)) = (condition, value)
            && let Err(at) = place_in(column, list, v)
        {
            same.extend(list.get(at).cloned().map(Some));
            return Place::At(place_behind(schema, conditions, same, true));
        }
        same.push(value.map(<[u8]>::to_vec));
    }
    Place::Here
}

/// The last entry that may satisfy the conditions, of those that do not come behind an entry with these values.
pub(crate) fn last_place<'v>(
    schema: &KeySchema,
    conditions: &[Condition],
    mut from: impl Iterator<Item = Value<'v>>,
) -> Place {
    let mut same: Vec<Option<Vec<u8>>> = Vec::new();
    for (i, (condition, column)) in conditions.iter().zip(&schema.columns).enumerate() {
        let (first, last) = column_edges(column, condition);
        let Some(value) = from.next() else { return Place::Here };
        if last.is_some_and(|l| !is_before(column, value, &l)) {
            return outermost_of(schema, conditions, same, false);
        }
        if first.is_some_and(|f| is_before(column, value, &f)) {
            return past(conditions, same, i, Edge::Before);
        }
        if let (Condition::OneOf(list), Some(v)) = (condition, value)
            && let Err(at) = place_in(column, list, v)
        {
            same.extend(at.checked_sub(1).and_then(|at| list.get(at)).cloned().map(Some));
            return Place::At(place_behind(schema, conditions, same, false));
        }
        same.push(value.map(<[u8]>::to_vec));
    }
    Place::Here
}

/// The first (else the last) entry of those that begin so whose further columns may satisfy the conditions; of the values
/// where it was asked from, if no further column says more, that is there.
fn outermost_of(
    schema: &KeySchema,
    conditions: &[Condition],
    values: Vec<Option<Vec<u8>>>,
    first: bool,
) -> Place {
    let given = values.len();
    match place_behind(schema, conditions, values, first) {
        edge if edge.values.len() == given => Place::Here,
        edge => Place::At(edge),
    }
}

/// The first (else the last) place behind these values whose further columns may satisfy the conditions.
fn place_behind(
    schema: &KeySchema,
    conditions: &[Condition],
    mut values: Vec<Option<Vec<u8>>>,
    first: bool,
) -> ScanEdge {
    let given = values.len();
    let (outward, inward) =
        if first { (Edge::Before, Edge::After) } else { (Edge::After, Edge::Before) };
    for (condition, column) in conditions.iter().zip(&schema.columns).skip(given) {
        let edges = column_edges(column, condition);
        let Some((value, edge)) = (if first { edges.0 } else { edges.1 }) else {
            break;
        };
        values.push(value);
        if edge == inward {
            return ScanEdge { values, edge };
        }
    }
    ScanEdge { values, edge: outward }
}

/// No entry that begins with these values up to column `i` is left on the side of `onward`: on to the next value, on that side, of a column
/// before it that may have another.
fn past(
    conditions: &[Condition],
    mut values: Vec<Option<Vec<u8>>>,
    i: usize,
    onward: Edge,
) -> Place {
    let open = |c: &Condition| !matches!(c, Condition::Equal(_) | Condition::IsNull);
    let Some(at) = conditions[..i].iter().rposition(open) else { return Place::Nowhere };
    values.truncate(at + 1);
    Place::At(ScanEdge { values, edge: onward })
}
