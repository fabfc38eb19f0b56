//! # Purpose
//! What a scan looks for: conditions on columns, turned into a lower and an upper edge in the index's order
//! and, for what these can't say, filters on the entries between them.

use crate::schema::{Bound, Edge, KeyColumn, KeySchema, Value};
use page::btree::Item;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// What one column must be, in the operators' sense (not the index's direction).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Anything.
    Any,
    /// `= value`.
    Equal(Vec<u8>),
    /// Between: `>=` or, with `false`, `>` the lower; `<=` or `<` the upper. Nulls are not in it.
    Range {
        /// The smaller end.
        lower: Option<(Vec<u8>, bool)>,
        /// The greater end.
        upper: Option<(Vec<u8>, bool)>,
    },
    /// `= ANY`: one of these, each once and in the index's order.
    OneOf(Vec<Vec<u8>>),
    /// `IS NULL`.
    IsNull,
    /// `IS NOT NULL`.
    IsNotNull,
}

/// One end of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEdge {
    /// The first columns.
    pub values: Vec<Option<Vec<u8>>>,
    /// [`Edge::Before`] or [`Edge::After`] the entries that begin so.
    pub edge: Edge,
}

/// The entries a scan returns.
#[derive(Clone, Debug, Default)]
pub struct ScanBounds {
    /// Where they begin; `None`: at the first.
    pub lower: Option<ScanEdge>,
    /// Where they end; `None`: at the last.
    pub upper: Option<ScanEdge>,
    /// Further conditions, by column.
    pub filters: Vec<(usize, Condition)>,
    /// All conditions, if there are `filters`: a scan skips by them.
    pub skip: Vec<Condition>,
}

impl ScanEdge {
    pub(crate) fn values(&self) -> SmallVec<[Value<'_>; 4]> {
        self.values.iter().map(|v| v.as_deref()).collect()
    }
}

impl ScanBounds {
    /// Everything.
    pub fn all() -> ScanBounds {
        ScanBounds::default()
    }
    /// The entries whose first columns have these values (`None`: null).
    pub fn prefix(values: Vec<Option<Vec<u8>>>) -> ScanBounds {
        ScanBounds {
            lower: Some(ScanEdge { values: values.clone(), edge: Edge::Before }),
            upper: Some(ScanEdge { values, edge: Edge::After }),
            ..ScanBounds::default()
        }
    }
    /// The entries that satisfy `conditions`, one for each of the first columns.
    pub fn from_conditions(schema: &KeySchema, conditions: &[Condition]) -> ScanBounds {
        let mut prefix: Vec<Option<Vec<u8>>> = Vec::new();
        let mut bounds = ScanBounds::default();
        let mut open = true;
        for (i, (condition, column)) in conditions.iter().zip(&schema.columns).enumerate() {
            if !open {
                if *condition != Condition::Any {
                    bounds.filters.push((i, condition.clone()));
                }
                continue;
            }
            match condition {
                Condition::Equal(value) => prefix.push(Some(value.clone())),
                Condition::IsNull => prefix.push(None),
                Condition::Any
                | Condition::IsNotNull
                | Condition::Range { .. }
                | Condition::OneOf(_) => {
                    open = false;
                    if matches!(condition, Condition::OneOf(_)) {
                        // Not all that lies between the first and the last.
                        bounds.filters.push((i, condition.clone()));
                    }
                    let (low, high) = column_edges(column, condition);
                    let with = |value: Option<Option<Vec<u8>>>| {
                        let mut values = prefix.clone();
                        values.extend(value);
                        values
                    };
                    bounds.lower = match low {
                        Some((value, edge)) => Some(ScanEdge { values: with(Some(value)), edge }),
                        None if prefix.is_empty() => None,
                        None => Some(ScanEdge { values: with(None), edge: Edge::Before }),
                    };
                    bounds.upper = match high {
                        Some((value, edge)) => Some(ScanEdge { values: with(Some(value)), edge }),
                        None if prefix.is_empty() => None,
                        None => Some(ScanEdge { values: with(None), edge: Edge::After }),
                    };
                }
            }
        }
        if open && !prefix.is_empty() {
            let filters = std::mem::take(&mut bounds.filters);
            bounds = ScanBounds { filters, ..ScanBounds::prefix(prefix) };
        }
        if !bounds.filters.is_empty() {
            bounds.skip = conditions.to_vec();
        }
        bounds
    }
    /// Do the filters let this entry pass?
    pub(crate) fn passes(&self, schema: &KeySchema, item: Item<'_>) -> bool {
        let entry = item.plain();
        self.filters.iter().all(|(i, condition)| {
            let value = entry.item().attributes(schema.widths()).nth(*i).flatten();
            schema.columns.get(*i).is_none_or(|column| satisfies(column, condition, value))
        })
    }
}

/// A place among a column's values.
pub(crate) type ColumnEdge = Option<(Option<Vec<u8>>, Edge)>;

/// The first and last place in index order of a column's values that satisfy a condition.
pub(crate) fn column_edges(column: &KeyColumn, condition: &Condition) -> (ColumnEdge, ColumnEdge) {
    let only = |v: Option<Vec<u8>>| (Some((v.clone(), Edge::Before)), Some((v, Edge::After)));
    let (lower, upper) = match condition {
        Condition::Range { lower, upper } => (lower.clone(), upper.clone()),
        Condition::IsNotNull => (None, None),
        Condition::Equal(v) => return only(Some(v.clone())),
        Condition::OneOf(list) => {
            let at = |v: Option<&Vec<u8>>, edge| v.map(|v| (Some(v.clone()), edge));
            return (at(list.first(), Edge::Before), at(list.last(), Edge::After));
        }
        Condition::IsNull => return only(None),
        Condition::Any => return (None, None),
    };
    let (first, last) = if column.descending { (upper, lower) } else { (lower, upper) };
    let first =
        first.map(|(v, inclusive)| (Some(v), if inclusive { Edge::Before } else { Edge::After }));
    let last =
        last.map(|(v, inclusive)| (Some(v), if inclusive { Edge::After } else { Edge::Before }));
    // Without a value on the nulls' side, that side ends at the nulls.
    if column.nulls_first {
        (first.or(Some((None, Edge::After))), last)
    } else {
        (first, last.or(Some((None, Edge::Before))))
    }
}

/// Where a value is in a list that is in the index's order, or would be.
pub(crate) fn place_in(
    column: &KeyColumn,
    list: &[Vec<u8>],
    value: &[u8],
) -> std::result::Result<usize, usize> {
    list.binary_search_by(|v| KeySchema::compare_column(column, Some(v), Some(value)))
}

fn satisfies(column: &KeyColumn, condition: &Condition, value: Value<'_>) -> bool {
    let plain = KeyColumn { descending: false, ..*column };
    let compare = |a: &[u8], b: &[u8]| KeySchema::compare_column(&plain, Some(a), Some(b));
    match (condition, value) {
        (Condition::Any, _) | (Condition::IsNull, None) | (Condition::IsNotNull, Some(_)) => true,
        (Condition::Equal(want), Some(v)) => compare(v, want) == Ordering::Equal,
        (Condition::OneOf(list), Some(v)) => place_in(column, list, v).is_ok(),
        (Condition::Range { lower, upper }, Some(v)) => {
            lower.as_ref().is_none_or(|(l, inclusive)| match compare(v, l) {
                Ordering::Greater => true,
                Ordering::Equal => *inclusive,
                Ordering::Less => false,
            }) && upper.as_ref().is_none_or(|(u, inclusive)| match compare(v, u) {
                Ordering::Less => true,
                Ordering::Equal => *inclusive,
                Ordering::Greater => false,
            })
        }
        _ => false,
    }
}

/// Makes a [`Bound`] of an end while it is needed.
pub(crate) fn with_bound<R>(
    schema: &KeySchema,
    edge: Option<&ScanEdge>,
    f: impl FnOnce(Option<&Bound<'_>>) -> R,
) -> R {
    match edge {
        None => f(None),
        Some(edge) => {
            let values = edge.values();
            f(Some(&schema.bound(&values, edge.edge)))
        }
    }
}
