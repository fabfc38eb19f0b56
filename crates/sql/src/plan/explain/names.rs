//! Under which names the relations of a plan go.
//!
//! # Invariants
//! No two that are read go by the same name: as in PostgreSQL the first keeps its own, others get numbers. A query comes before its
//! sub-plans, and within it goes the order in which relations are named.

use super::super::{NodeKind, Plan, PlanNode, TableScan};
use super::Explain;
use crate::query::Command;
use expr::Expr;
use std::collections::HashSet;

/// The entry of [`Plan::names`] that a node reads the rows of.
fn entry(n: &PlanNode) -> Option<usize> {
    if let Some(scan) = n.kind.table_scan() {
        return Some(scan.rte);
    }
    match n.kind {
        NodeKind::FunctionScan { .. }
        | NodeKind::ValuesScan { .. }
        | NodeKind::CteScan { .. }
        | NodeKind::WorkTableScan { .. } => n.columns.iter().find_map(|e| match e {
            Expr::Var { rte, .. } => Some(*rte),
            _ => None,
        }),
        _ => None,
    }
}

fn read_within(n: &PlanNode, read: &mut Vec<usize>) {
    read.extend(entry(n));
    n.children().into_iter().for_each(|child| read_within(child, read));
}

/// The table that an INSERT writes to; what others write they read, too.
fn inserted_into(n: &PlanNode) -> Option<&str> {
    match &n.kind {
        NodeKind::Modify(m) if m.command == Command::Insert => {
            Some(if m.alias.is_empty() { &m.table.name } else { &m.alias })
        }
        _ => n.children().into_iter().find_map(inserted_into),
    }
}

/// The plan's names, those of what is read told apart.
pub(super) fn unique(plan: &Plan) -> Vec<(String, Vec<String>)> {
    let mut names = plan.names.clone();
    let (mut taken, mut known) = (HashSet::new(), HashSet::new());
    let ctes = plan.ctes.iter().map(|c| &c.node);
    let sub_plans = plan.sub_plans.iter().map(|s| &s.node);
    for root in std::iter::once(&plan.root).chain(ctes).chain(sub_plans) {
        taken.extend(inserted_into(root).map(str::to_owned));
        let mut read = Vec::new();
        read_within(root, &mut read);
        read.sort_unstable();
        for rte in read {
            let Some((name, _)) = names.get_mut(rte) else { continue };
            if name.is_empty() || !known.insert(rte) {
                continue;
            }
            let own = name.clone();
            let mut number = 0;
            while !taken.insert(name.clone()) {
                number += 1;
                *name = format!("{own}_{number}");
            }
        }
    }
    names
}

impl<'a> Explain<'a> {
    fn name_of(&self, rte: usize) -> Option<&str> {
        self.names.get(rte).map(|n| n.0.as_str()).filter(|name| !name.is_empty())
    }

    /// The name of a table that is read.
    pub(super) fn scan_alias<'s>(&'s self, scan: &'s TableScan) -> &'s str {
        if scan.alias.is_empty() {
            return &scan.table.name;
        }
        self.name_of(scan.rte).unwrap_or(&scan.alias)
    }

    /// The name of what a leaf of the plan reads that is no table.
    pub(super) fn leaf_alias<'s>(&'s self, n: &PlanNode, alias: &'s str) -> &'s str {
        entry(n).filter(|_| !alias.is_empty()).and_then(|rte| self.name_of(rte)).unwrap_or(alias)
    }

    /// The name under which a scan's rows go.
    pub(super) fn scanned<'s>(&'s self, n: &'s PlanNode) -> Option<&'s str> {
        if let Some(scan) = n.kind.table_scan() {
            return Some(self.scan_alias(scan));
        }
        match &n.kind {
            NodeKind::CteScan { alias, name, .. } | NodeKind::WorkTableScan { alias, name, .. } => {
                Some(if alias.is_empty() { name } else { self.leaf_alias(n, alias) })
            }
            NodeKind::FunctionScan { alias, .. } | NodeKind::ValuesScan { alias, .. } => {
                Some(self.leaf_alias(n, alias))
            }
            NodeKind::Filter { input, .. } | NodeKind::Project { input, .. } => self.scanned(input),
            _ => None,
        }
    }
}
