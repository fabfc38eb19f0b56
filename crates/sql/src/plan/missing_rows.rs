//! Whole rows of what an outer join may leave without a partner.
//!
//! # Invariants
//! Such a row is NULL where there is no partner, and else a row, though all its columns be NULL. A witness tells: a value that
//! no row lacks. A table's is its ctid, a function's the number of the row; a sub-select, and what is made one for this, gets
//! another column for it.

use super::pull_up::is_plain;
use super::query_walk::shift_rte_levels;
use crate::analyse::set_ops::empty_query;
use crate::query::{FromItem, Join, JoinKind, Query, RangeTableEntry, RteKind, TargetEntry};
use base::Oid;
use expr::tree::{CaseWhen, Constant};
use expr::{Expr, TypeRef};
use std::collections::{BTreeMap, BTreeSet};
use types::oids;

/// What tells of each entry whether its row is there.
pub(super) struct Witnesses {
    /// The entries that outer joins may fill with NULLs, joins among them, and the witnesses of each: one that is not NULL is enough.
    of: BTreeMap<usize, Vec<Expr>>,
    /// The entries that get a witness: those somebody asks for.
    wanted: BTreeSet<usize>,
}

impl Witnesses {
    /// Of a query; `more` is missing now and then, too.
    pub(super) fn new(q: &Query, more: &[usize]) -> Witnesses {
        let mut all = Witnesses { of: BTreeMap::new(), wanted: BTreeSet::new() };
        for item in &q.from {
            all.note(q, item, false);
        }
        for rte in more {
            all.of.insert(*rte, own(q, *rte));
        }
        all
    }

    /// Notes what is `missing` now and then; the item's own witnesses are returned.
    fn note(&mut self, q: &Query, item: &FromItem, missing: bool) -> Vec<Expr> {
        let (rte, witnesses) = match item {
            FromItem::Rte(i) => (*i, own(q, *i)),
            FromItem::Join(j) => {
                let Join { kind, left, right, rte, .. } = &**j;
                let full = *kind == JoinKind::Full;
                let mut left = self.note(q, left, missing || full || *kind == JoinKind::Right);
                let right = self.note(q, right, missing || full || *kind == JoinKind::Left);
                match kind {
                    JoinKind::Right => left = right,
                    JoinKind::Full => left.extend(right),
                    _ => {}
                }
                (*rte, left)
            }
        };
        if missing {
            self.of.insert(rte, witnesses.clone());
        }
        witnesses
    }

    /// The row of an entry `depth` levels up, if it may be missing: `row`, or NULL.
    pub(super) fn or_null(&mut self, row: Expr, rte: usize, depth: u32, ty: TypeRef) -> Expr {
        let Some(witnesses) = self.of.get(&rte) else { return row };
        let mut lacks = Vec::new();
        for witness in witnesses {
            let mut witness = witness.clone();
            if let Expr::Var { levels_up, rte, .. } = &mut witness {
                *levels_up = depth;
                self.wanted.insert(*rte);
            }
            lacks.push(Expr::IsNull { arg: Box::new(witness), negated: false });
        }
        let lacking = match lacks.len() {
            // What has none is missing if it has no value at all.
            0 => Expr::IsNull { arg: Box::new(row.clone()), negated: false },
            1 => lacks.remove(0),
            _ => Expr::And(lacks),
        };
        let nothing = Expr::Const(Constant { value: types::Datum::Null, ty });
        Expr::Case {
            operand: None,
            arms: vec![CaseWhen { when: lacking, then: nothing }],
            otherwise: Some(Box::new(row)),
            ty,
        }
    }

    /// Gives the entries their witnesses.
    pub(super) fn place(&self, q: &mut Query) {
        for rte in &self.wanted {
            give(&mut q.range_table[*rte]);
        }
    }
}

/// A table, whose rows have a ctid.
fn is_table(kind: &RteKind) -> bool {
    matches!(kind, RteKind::Relation { oid, .. } if *oid >= Oid::FIRST_NORMAL.0)
}

/// An entry's own witness.
fn own(q: &Query, rte: usize) -> Vec<Expr> {
    let entry = &q.range_table[rte];
    let next = entry.column_types.len() as i32 + 1;
    let (column, ty) = match &entry.kind {
        kind if is_table(kind) => (-1, oids::TID),
        RteKind::Function { ordinality: true, .. } => (next - 1, oids::INT8),
        RteKind::Function { .. } => (next, oids::INT8),
        RteKind::Subquery { .. } | RteKind::Cte { .. } | RteKind::Values { .. } => {
            let table = match &entry.kind {
                RteKind::Subquery { query, .. } => table_below(query).is_some(),
                _ => false,
            };
            (next, if table { oids::TID } else { oids::BOOL })
        }
        RteKind::Relation { .. } | RteKind::Join { .. } | RteKind::Excluded => return Vec::new(),
    };
    vec![Expr::Var { levels_up: 0, rte, column, ty: TypeRef::of(ty) }]
}

fn always() -> Expr {
    expr::fold::boolean(true)
}

/// Where in a sub-select that does nothing but filter and join there is a table with a row for each of its own: the ctid of that is a column,
/// so that the sub-select can be merged into the query around it as before.
fn table_below(q: &Query) -> Option<usize> {
    fn in_item(q: &Query, item: &FromItem) -> Option<usize> {
        match item {
            FromItem::Rte(i) => match &q.range_table[*i].kind {
                RteKind::Subquery { query, .. } => table_below(query).map(|_| *i),
                kind => is_table(kind).then_some(*i),
            },
            FromItem::Join(j) => match j.kind {
                JoinKind::Inner => in_item(q, &j.left).or_else(|| in_item(q, &j.right)),
                JoinKind::Left => in_item(q, &j.left),
                JoinKind::Right => in_item(q, &j.right),
                _ => None,
            },
        }
    }
    if !is_plain(q) {
        return None;
    }
    q.from.iter().find_map(|item| in_item(q, item))
}

/// Adds the witness as an entry's last column.
fn give(entry: &mut RangeTableEntry) {
    let ty = match &mut entry.kind {
        RteKind::Subquery { query, .. } if query.set_operation.is_none() => {
            let witness = give_query(query);
            let ty = witness.ty();
            query.targets.push(output(witness));
            ty
        }
        RteKind::Subquery { .. } | RteKind::Cte { .. } => {
            wrap(entry);
            TypeRef::of(oids::BOOL)
        }
        RteKind::Values { rows } => {
            rows.iter_mut().for_each(|r| r.push(always()));
            TypeRef::of(oids::BOOL)
        }
        RteKind::Function { ordinality, .. } if !*ordinality => {
            *ordinality = true;
            TypeRef::of(oids::INT8)
        }
        _ => return,
    };
    entry.column_names.push("witness".to_owned());
    entry.column_types.push(ty);
}

fn give_query(q: &mut Query) -> Expr {
    let Some(i) = table_below(q) else { return always() };
    let entry = &mut q.range_table[i];
    let column = if is_table(&entry.kind) {
        -1
    } else {
        give(entry);
        entry.column_types.len() as i32
    };
    Expr::Var { levels_up: 0, rte: i, column, ty: TypeRef::of(oids::TID) }
}

fn output(expr: Expr) -> TargetEntry {
    TargetEntry {
        expr,
        name: "witness".to_owned(),
        target_column: None,
        origin: (0, 0),
        hidden: false,
    }
}

/// Makes an entry a sub-select from itself, with a column that is true.
fn wrap(entry: &mut RangeTableEntry) {
    let mut inner = entry.clone();
    shift_rte_levels(&mut inner.kind, 1);
    inner.lateral = false;
    let mut query = empty_query();
    let columns = entry.column_types.iter().zip(&entry.column_names).enumerate();
    query.targets = columns
        .map(|(i, (ty, name))| {
            let column = i as i32 + 1;
            let expr = Expr::Var { levels_up: 0, rte: 0, column, ty: *ty };
            TargetEntry { name: name.clone(), ..output(expr) }
        })
        .collect();
    query.targets.push(output(always()));
    query.range_table = vec![inner];
    query.from = vec![FromItem::Rte(0)];
    entry.kind = RteKind::Subquery { query: Box::new(query), view: 0 };
}
