//! Which columns of a scan's rows may be left unread.
//!
//! # Purpose
//! A long value that is out of line costs a look-up and as many pages as it is long. A plan that sorts, joins and filters by other columns, or
//! updates them, need not read it at all: the scan hands on a value that is read when an expression asks for it
//! ([`types::late`]), or when the row leaves the executor.
//!
//! # Invariants
//! A scan leaves a column only if all nodes above it, up to where it ends, either hand it on as it is or look at it through an expression;
//! expressions read what they are given. A node that keeps rows and looks into them is given what it looks at, so that its memory is what it counts;
//! of a row that others hold, too, an expression keeps nothing that it reads ([`types::Datum::lent`]). What compares, stores or hands out values by itself is never given a late one.
//! What goes to a temporary file is read before.

use crate::plan::{Modify, NodeKind, PlanNode, PlanSortKey};
use crate::query::Command;
use engine::catalog::model::Table;
use expr::Expr;
use std::collections::HashMap;

/// The columns of each scan that it may leave; by the nodes' addresses, as a plan does not move while it is built.
#[derive(Default)]
pub(crate) struct LateColumns(HashMap<*const PlanNode, Vec<bool>>);

impl LateColumns {
    /// In the plan below `root`, which may give late values out itself (`settled`: whoever takes them reads them).
    pub(crate) fn mark(&mut self, root: &PlanNode, settled: bool) {
        self.visit(root, vec![settled; root.columns.len()]);
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of a scan's columns.
    pub(crate) fn of(&self, scan: &PlanNode) -> &[bool] {
        self.0.get(&std::ptr::from_ref(scan)).map_or(&[], Vec::as_slice)
    }

    /// `may`: which columns of the node's rows may be late.
    fn visit(&mut self, node: &PlanNode, mut may: Vec<bool>) {
        if let Some(scan) = node.kind.table_scan() {
            for (may, column) in may.iter_mut().zip(&scan.columns) {
                *may &= is_long(&scan.table, *column);
            }
            if may.contains(&true) {
                self.0.insert(std::ptr::from_ref(node), may);
            }
            return;
        }
        match &node.kind {
            NodeKind::SubqueryScan { input, .. }
            | NodeKind::Filter { input, .. }
            | NodeKind::Limit { input, .. }
            | NodeKind::LockRows { input, .. }
            | NodeKind::Materialize { input }
            | NodeKind::CteScope { input, .. } => self.visit(input, may),
            NodeKind::Project { input, exprs } => {
                // Whatever is no column is an expression.
                let mut below = vec![true; input.columns.len()];
                for (e, may) in exprs.iter().zip(may) {
                    if let Expr::Slot { index, .. } = handed_on(e) {
                        forbid(&mut below, *index, may);
                    }
                }
                self.visit(input, below);
            }
            NodeKind::Sort { input, keys, .. } => {
                forbid_keys(&mut may, keys);
                self.visit(input, may);
            }
            NodeKind::Unique { input, keys } => {
                for k in keys {
                    forbid(&mut may, *k, false);
                }
                self.visit(input, may);
            }
            NodeKind::NestLoop { left, right, output, .. }
            | NodeKind::HashJoin { left, right, output, .. }
            | NodeKind::MergeJoin { left, right, output, .. } => {
                let mut below = vec![true; left.columns.len() + right.columns.len()];
                for (at, may) in output.iter().zip(may) {
                    forbid(&mut below, *at, may);
                }
                let of_right = below.split_off(left.columns.len());
                self.visit(left, below);
                self.visit(right, of_right);
            }
            NodeKind::Append { inputs } => {
                for input in inputs {
                    self.visit(input, may.clone());
                }
            }
            // What it looks at in rows that it keeps is read before: then it is counted, and goes to a file if there is much.
            NodeKind::Window { input, order, partition, calls, .. } => {
                may.truncate(input.columns.len());
                forbid_keys(&mut may, order);
                let of_calls = calls.iter().flat_map(|c| c.args.iter().chain(c.filter.as_deref()));
                partition.iter().chain(of_calls).for_each(|e| forbid_read(&mut may, e));
                self.visit(input, may);
            }
            NodeKind::MergeAppend { inputs, keys } => {
                forbid_keys(&mut may, keys);
                for input in inputs {
                    self.visit(input, may.clone());
                }
            }
            // Groups and arguments are expressions, and what is given out is made.
            NodeKind::Aggregate { input, .. } | NodeKind::ProjectSet { input, .. } => {
                self.visit(input, vec![true; input.columns.len()]);
            }
            NodeKind::Modify(m) => {
                if let Some(input) = &m.input {
                    self.visit(input, of_modify(m, input.columns.len()));
                }
            }
            // Whoever is not known reads all.
            _ => {
                for input in node.children() {
                    self.visit(input, vec![false; input.columns.len()]);
                }
            }
        }
    }
}

/// May values of a column be out of line, or compressed?
fn is_long(table: &Table, column: i32) -> bool {
    let of = usize::try_from(column - 1).ok().and_then(|at| table.columns.get(at));
    of.is_some_and(|c| engine::kept::may_be_late(c.ty.oid))
}

fn forbid(columns: &mut [bool], at: usize, may: bool) {
    if let Some(c) = columns.get_mut(at) {
        *c &= may;
    }
}

/// Rows are compared by these columns, or by what is made of them.
fn forbid_keys(columns: &mut [bool], keys: &[PlanSortKey]) {
    keys.iter().for_each(|k| forbid_read(columns, &k.expr));
}

/// An expression reads these columns.
fn forbid_read(columns: &mut [bool], e: &Expr) {
    e.walk(&mut |part| {
        if let Expr::Slot { index, .. } = part {
            forbid(columns, *index, false);
        }
    });
}

/// What an expression is that another one only stands around, as the evaluator sees it.
fn handed_on(mut e: &Expr) -> &Expr {
    while let Expr::Relabel { arg, .. } | Expr::Collate { arg, .. } = e {
        e = arg;
    }
    e
}

/// The input's columns that a node may get late: those of a row that it writes over, but for what keys are made of. An inserted row's values
/// are its own, and read.
fn of_modify(m: &Modify, width: usize) -> Vec<bool> {
    if m.command == Command::Insert {
        return vec![false; width];
    }
    let carried = carried(&m.table);
    let mut may = vec![true; width];
    for (at, column) in &m.old_slots {
        let of = usize::try_from(*column - 1).ok().and_then(|i| carried.get(i));
        forbid(&mut may, *at, of.copied().unwrap_or(false));
    }
    may
}

/// The columns of a table that a new version of a row takes over without a look: none of a key, an index or a reference.
pub(crate) fn carried(table: &Table) -> Vec<bool> {
    let mut may = vec![true; table.columns.len()];
    let referred = table.referenced_by.iter().flat_map(|k| &k.referenced_columns);
    let referring = table.foreign_keys.iter().flat_map(|k| &k.columns);
    let indexed = table.indexes.iter().flat_map(|i| super::modify::columns_of_index(i));
    for column in referred.chain(referring).copied().chain(indexed) {
        if column == 0 {
            return vec![false; table.columns.len()];
        }
        if let Ok(at) = usize::try_from(column - 1) {
            forbid(&mut may, at, false);
        }
    }
    may
}
