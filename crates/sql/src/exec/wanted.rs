//! Which columns of a CTE's rows somebody reads.
//!
//! # Purpose
//! A CTE has all columns that its query names, `SELECT *` often; those who read it need few. What nobody reads is not kept, and where it
//! comes from a table as it is, it is not even taken out of the row there: NULL stands for it.
//!
//! # Invariants
//! A column is wanted unless every node above every scan of the CTE is known not to look at it. No expression that computes something is
//! given a NULL in place of a value, whether its result is wanted or not: what it would have failed on, it fails on.

use crate::plan::{NodeKind, Plan, PlanNode, PlanSortKey};
use expr::Expr;
use std::collections::HashMap;

/// The columns wanted of each CTE, of the scans of CTEs, and of those of tables that CTEs read.
#[derive(Default)]
pub(crate) struct WantedColumns {
    ctes: Vec<Vec<bool>>,
    /// By the nodes' addresses, as a plan does not move while it is built; those alone of which some are not wanted.
    scans: HashMap<*const PlanNode, Vec<bool>>,
}

impl WantedColumns {
    pub(crate) fn of_plan(plan: &Plan) -> WantedColumns {
        let mut wanted = WantedColumns::default();
        if plan.ctes.is_empty() {
            return wanted;
        }
        wanted.ctes = plan.ctes.iter().map(|c| vec![false; c.node.columns.len()]).collect();
        let roots = [&plan.root].into_iter().chain(plan.sub_plans.iter().map(|s| &s.node));
        for root in roots.chain(plan.ctes.iter().map(|c| &c.node)) {
            wanted.visit(root, vec![true; root.columns.len()]);
        }
        // Each CTE was taken to want all of what it reads itself. Of its scans less may be.
        for (n, cte) in plan.ctes.iter().enumerate() {
            let columns = wanted.ctes[n].clone();
            if columns.contains(&false) {
                wanted.visit(&cte.node, columns);
            }
        }
        wanted
    }

    /// Of a CTE's columns; None: all.
    pub(crate) fn of_cte(&self, cte: usize) -> Option<&[bool]> {
        self.ctes.get(cte).map(Vec::as_slice).filter(|columns| columns.contains(&false))
    }

    /// Of a scan's columns; None: all.
    pub(crate) fn of_scan(&self, scan: &PlanNode) -> Option<&[bool]> {
        self.scans.get(&std::ptr::from_ref(scan)).map(Vec::as_slice)
    }

    /// `wanted`: which columns of the node's rows are.
    fn visit(&mut self, node: &PlanNode, mut wanted: Vec<bool>) {
        match &node.kind {
            NodeKind::CteScan { cte, .. } => {
                self.note_scan(node, &wanted);
                if let Some(columns) = self.ctes.get_mut(*cte) {
                    columns.resize(columns.len().max(wanted.len()), true);
                    columns.iter_mut().zip(wanted).for_each(|(c, wanted)| *c |= wanted);
                }
            }
            // A recursive CTE's rows are compared, or are those of its next round.
            NodeKind::WorkTableScan { cte, .. } | NodeKind::RecursiveUnion { cte, .. } => {
                if let Some(columns) = self.ctes.get_mut(*cte) {
                    columns.fill(true);
                }
                self.visit_all(node);
            }
            NodeKind::SeqScan(_) | NodeKind::TidRangeScan { .. } => self.note_scan(node, &wanted),
            NodeKind::SubqueryScan { input, .. }
            | NodeKind::Materialize { input }
            | NodeKind::CteScope { input, .. } => self.visit(input, wanted),
            NodeKind::Filter { input, filter } => {
                read(&mut wanted, filter);
                self.visit(input, wanted);
            }
            NodeKind::Limit { input, limit, offset, ties, .. } => {
                limit.iter().chain(offset).for_each(|e| read(&mut wanted, e));
                read_keys(&mut wanted, ties);
                self.visit(input, wanted);
            }
            NodeKind::Project { input, exprs } => {
                let mut below = vec![false; input.columns.len()];
                for (at, e) in exprs.iter().enumerate() {
                    match e {
                        Expr::Slot { index, .. } => {
                            want(&mut below, *index, wanted.get(at).copied().unwrap_or(true));
                        }
                        e => read(&mut below, e),
                    }
                }
                self.visit(input, below);
            }
            NodeKind::Sort { input, keys, .. } => {
                read_keys(&mut wanted, keys);
                self.visit(input, wanted);
            }
            NodeKind::Unique { input, keys } => {
                keys.iter().for_each(|k| want(&mut wanted, *k, true));
                self.visit(input, wanted);
            }
            NodeKind::Aggregate { input, groups, calls, .. } => {
                let mut below = vec![false; input.columns.len()];
                groups.iter().for_each(|e| read(&mut below, e));
                for c in calls {
                    let of_call = c.args.iter().chain(c.filter.as_deref());
                    of_call.for_each(|e| read(&mut below, e));
                    c.order_by.iter().for_each(|k| read(&mut below, &k.expr));
                }
                self.visit(input, below);
            }
            NodeKind::Window { input, partition, order, calls, run, .. } => {
                wanted.truncate(input.columns.len());
                read_keys(&mut wanted, order);
                let of_calls = calls.iter().flat_map(|c| c.args.iter().chain(c.filter.as_deref()));
                partition.iter().chain(of_calls).chain(run).for_each(|e| read(&mut wanted, e));
                self.visit(input, wanted);
            }
            NodeKind::NestLoop { left, right, params, on, filter, output, .. } => {
                let mut below = joined(left, right, output, &wanted);
                params.iter().for_each(|p| read(&mut below, &p.1));
                on.iter().chain(filter).for_each(|e| read(&mut below, e));
                self.visit_both(left, right, below);
            }
            NodeKind::HashJoin { left, right, keys, on, filter, output, .. }
            | NodeKind::MergeJoin { left, right, keys, on, filter, output, .. } => {
                let mut below = joined(left, right, output, &wanted);
                on.iter().chain(filter).for_each(|e| read(&mut below, e));
                for k in keys {
                    read(&mut below, &k.left);
                    read(&mut below[left.columns.len()..], &k.right);
                }
                self.visit_both(left, right, below);
            }
            NodeKind::Append { inputs } => {
                inputs.iter().for_each(|input| self.visit(input, wanted.clone()));
            }
            NodeKind::MergeAppend { inputs, keys } => {
                read_keys(&mut wanted, keys);
                inputs.iter().for_each(|input| self.visit(input, wanted.clone()));
            }
            _ => self.visit_all(node),
        }
    }

    fn note_scan(&mut self, scan: &PlanNode, wanted: &[bool]) {
        if wanted.contains(&false) {
            self.scans.insert(std::ptr::from_ref(scan), wanted.to_vec());
        }
    }

    /// The inputs of a node that may look at all they have.
    fn visit_all(&mut self, node: &PlanNode) {
        for input in node.children() {
            self.visit(input, vec![true; input.columns.len()]);
        }
    }

    fn visit_both(&mut self, left: &PlanNode, right: &PlanNode, mut wanted: Vec<bool>) {
        let of_right = wanted.split_off(left.columns.len());
        self.visit(left, wanted);
        self.visit(right, of_right);
    }
}

/// What of both sides of a join goes into the columns wanted of it.
fn joined(left: &PlanNode, right: &PlanNode, output: &[usize], wanted: &[bool]) -> Vec<bool> {
    let mut below = vec![false; left.columns.len() + right.columns.len()];
    for (at, from) in output.iter().enumerate() {
        want(&mut below, *from, wanted.get(at).copied().unwrap_or(true));
    }
    below
}

fn want(columns: &mut [bool], at: usize, wanted: bool) {
    if let Some(c) = columns.get_mut(at) {
        *c |= wanted;
    }
}

/// An expression reads these columns.
fn read(columns: &mut [bool], e: &Expr) {
    e.walk(&mut |part| {
        if let Expr::Slot { index, .. } = part {
            want(columns, *index, true);
        }
    });
}

fn read_keys(columns: &mut [bool], keys: &[PlanSortKey]) {
    keys.iter().for_each(|k| read(columns, &k.expr));
}
