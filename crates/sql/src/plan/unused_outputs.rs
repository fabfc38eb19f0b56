//! Outputs of a sub-select in FROM that nothing reads are not computed, nor are columns fetched for them.
//!
//! # Invariants
//! A column keeps its place and its type: NULL stands there. What is volatile is computed all the same, what DISTINCT and UNION compare
//! decides over rows, and what is given by ORDER BY, GROUP BY or DISTINCT ON stands apart from the columns.

use super::pull_up::is_volatile;
use super::query_walk::query_any;
use super::rels::JoinSpace;
use crate::query::{Command, Distinct, Query, RteKind, SetOp, SetOperation};
use expr::Expr;
use expr::tree::Constant;
use std::collections::BTreeSet;
use types::Datum;

impl JoinSpace<'_, '_> {
    /// Puts NULLs in the places of the outputs of the sub-select `rte` that this level does not read. The conditions that it tests itself
    /// are in it already.
    pub(super) fn drop_unused_outputs(&self, sub: &mut Query, rte: usize) {
        // A newer version of a row is made of more than what is read.
        if self.q.command != Command::Select || !self.q.row_marks.is_empty() {
            return;
        }
        if sub.set_operation.is_none() && sub.targets.iter().all(|t| is_constant(&t.expr)) {
            return;
        }
        let mut used = BTreeSet::new();
        let mut note = |e: &Expr, depth: u32| {
            if let Expr::Var { levels_up, rte: r, column, .. } = e
                && (*levels_up, *r) == (depth, rte)
            {
                used.insert(*column);
            }
        };
        let upper = self.upper_exprs();
        let members = self.classes.iter().flat_map(|c| c.members.iter().map(|m| &m.0));
        let of_rels = self.rels.iter().flat_map(|r| {
            r.quals.iter().chain(r.lateral_args.iter().map(|a| &a.1)).collect::<Vec<_>>()
        });
        let own = upper.iter().chain(&self.q.run_conditions).chain(&self.constant_quals);
        let own = own.chain(self.quals.iter().map(|q| &q.expr)).chain(members).chain(of_rels);
        own.for_each(|e| e.walk(&mut |e| note(e, 0)));
        for entry in &self.q.range_table {
            if let RteKind::Subquery { query, .. } = &entry.kind {
                query_any(query, &mut |e, depth| {
                    note(e, depth + 1);
                    false
                });
            }
        }
        if used.iter().all(|column| *column > 0) {
            drop_outputs(sub, &used);
        }
    }
}

fn is_constant(e: &Expr) -> bool {
    matches!(e, Expr::Const(_))
}

fn drop_outputs(sub: &mut Query, used: &BTreeSet<i32>) {
    if sub.command != Command::Select
        || matches!(sub.distinct, Distinct::All)
        || sub.has_target_srfs
        || !sub.row_marks.is_empty()
    {
        return;
    }
    if let Some(tree) = &sub.set_operation {
        let mut leaves = Vec::new();
        if sub.order_by.is_empty() && appends(tree, &mut leaves) {
            for leaf in leaves {
                if let RteKind::Subquery { query, .. } = &mut sub.range_table[leaf].kind {
                    drop_outputs(query, used);
                }
            }
        }
        return;
    }
    let Query { targets, sub_selects, .. } = sub;
    for (column, target) in (1..).zip(targets.iter_mut().filter(|t| !t.hidden)) {
        let e = &target.expr;
        let windowed = e.any(&mut |e| matches!(e, Expr::Window(_)));
        if !is_constant(e) && !windowed && !used.contains(&column) && !is_volatile(e, sub_selects) {
            target.expr = Expr::Const(Constant { ty: e.ty(), value: Datum::Null });
        }
    }
}

/// Does it give the rows of its leaves as they are?
fn appends(tree: &SetOperation, leaves: &mut Vec<usize>) -> bool {
    match tree {
        SetOperation::Leaf(rte) => {
            leaves.push(*rte);
            true
        }
        SetOperation::Node { op: SetOp::Union, all: true, left, right, .. } => {
            appends(left, leaves) && appends(right, leaves)
        }
        SetOperation::Node { .. } => false,
    }
}
