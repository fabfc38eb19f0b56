//! WHERE CURRENT OF: which rows a cursor stands on, told by its plan.
//!
//! # Purpose
//! [`with_addresses`] looks for the one scan of each table whose rows a cursor's plan hands on as they are, or for the rows that it
//! locks, and makes a plan that hands on their addresses too, behind the cursor's own columns. UPDATE and DELETE ask for an address by
//! `ctid = CURRENT OF`, which is a scan by address always.
//!
//! # Differs from PostgreSQL
//! A SCROLL cursor on a bitmap scan is simply updatable: rows that it may go back to are kept whatever the plan is. The rows that a
//! sub-select locks within a join are not.

use super::{NodeKind, Plan, PlanNode};
use base::Oid;
use expr::{Constant, Expr, TypeRef};
use types::{Datum, oids};

/// What a cursor's rows have behind their own columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// For each of these tables, as often as it is named, the address of the row locked.
    Locked(Vec<Oid>),
    /// The address of the row of this table.
    One(Oid),
    /// The address of the row, and the table that it is of; the tables, those that are scanned twice as well.
    OneOf(Vec<Oid>),
}

impl Addresses {
    /// How many columns that are.
    pub fn columns(&self) -> usize {
        match self {
            Addresses::Locked(tables) => tables.len(),
            Addresses::One(_) => 1,
            Addresses::OneOf(_) => 2,
        }
    }
}

/// What `ctid = CURRENT OF …` compares with, if the condition is that.
pub(super) fn asked(e: &Expr) -> Option<&Expr> {
    match e {
        Expr::Call { args, .. } => args.last().filter(|a| matches!(a, Expr::CurrentOf { .. })),
        _ => None,
    }
}

/// The plan with the addresses of its rows; None if it has none to give.
pub fn with_addresses(plan: &Plan) -> Option<(Plan, Addresses)> {
    let found = find(&plan.root)?;
    let mut plan = plan.clone();
    match &found {
        Addresses::Locked(_) => {
            expose_locked(&mut plan.root);
        }
        Addresses::One(_) => expose(&mut plan.root, false),
        Addresses::OneOf(_) => expose(&mut plan.root, true),
    }
    Some((plan, found))
}

/// The input of a node that hands on its input's rows one by one, as they come; by reference as `kind` is.
macro_rules! handed_on {
    ($kind:expr) => {
        match $kind {
            NodeKind::Filter { input, .. }
            | NodeKind::Project { input, .. }
            | NodeKind::Limit { input, .. }
            | NodeKind::SubqueryScan { input, .. }
            | NodeKind::CteScope { input, .. } => Some(input),
            _ => None,
        }
    };
}

fn find(node: &PlanNode) -> Option<Addresses> {
    if let Some(scan) = node.kind.table_scan() {
        return scan.table.storage.is_some().then_some(Addresses::One(scan.table.oid));
    }
    match &node.kind {
        NodeKind::LockRows { marks, .. } => {
            Some(Addresses::Locked(marks.iter().map(|m| m.table.oid).collect()))
        }
        NodeKind::Append { inputs } => {
            let mut tables = Vec::new();
            for input in inputs {
                match find(input) {
                    Some(Addresses::One(table)) => tables.push(table),
                    Some(Addresses::OneOf(more)) => tables.extend(more),
                    _ => {}
                }
            }
            (!tables.is_empty()).then_some(Addresses::OneOf(tables))
        }
        kind => find(handed_on!(kind)?),
    }
}

fn column(column: i32, oid: Oid) -> Expr {
    Expr::Var { levels_up: 0, rte: usize::MAX, column, ty: TypeRef::of(oid) }
}

fn slot(node: &PlanNode, index: usize) -> Expr {
    Expr::Slot { index, ty: node.columns[index].ty() }
}

/// Adds `added` to what a node that hands on rows outputs: the last columns of its input.
fn hand_on(node: &mut PlanNode, added: usize) {
    let Some(input) = handed_on!(&mut node.kind) else { return };
    let from = input.columns.len() - added;
    let slots: Vec<Expr> = (from..input.columns.len()).map(|i| slot(input, i)).collect();
    let columns = input.columns[from..].to_vec();
    if let NodeKind::Project { exprs, .. } = &mut node.kind {
        exprs.extend(slots);
    }
    node.columns.extend(columns);
}

/// Puts the address behind the node's columns, and with `tables` the table behind that.
fn expose(node: &mut PlanNode, tables: bool) {
    if let Some(scan) = node.kind.table_scan_mut() {
        scan.columns.push(-1);
        node.columns.push(column(-1, oids::TID));
        if tables {
            scan.columns.push(-6);
            node.columns.push(column(-6, oids::OID));
        }
        return;
    }
    match &mut node.kind {
        NodeKind::Append { inputs } => {
            for input in inputs.iter_mut() {
                match find(input) {
                    Some(Addresses::One(_) | Addresses::OneOf(_)) => expose(input, true),
                    _ => give_none(input),
                }
            }
            node.columns.extend([column(-1, oids::TID), column(-6, oids::OID)]);
        }
        kind => {
            if let Some(input) = handed_on!(kind) {
                expose(input, tables);
            }
            hand_on(node, 1 + usize::from(tables));
        }
    }
}

/// NULLs for the addresses of rows that have none.
fn give_none(node: &mut PlanNode) {
    let null = |oid| Expr::Const(Constant { ty: TypeRef::of(oid), value: Datum::Null });
    project(node, vec![null(oids::TID), null(oids::OID)]);
}

/// Puts a projection over the node that adds `more` to its columns.
fn project(node: &mut PlanNode, more: Vec<Expr>) {
    let mut exprs: Vec<Expr> = (0..node.columns.len()).map(|i| slot(node, i)).collect();
    let mut columns = node.columns.clone();
    columns.extend(more.iter().cloned());
    exprs.extend(more);
    let shell =
        PlanNode { kind: NodeKind::Result { exprs: Vec::new(), filter: None }, columns, ..*node };
    let input = Box::new(std::mem::replace(node, shell));
    node.kind = NodeKind::Project { input, exprs };
}

/// Puts the addresses of locked rows behind the node's columns: those that the cursor's snapshot sees, which it keeps. What the row was
/// locked at may be younger; it is kept by its lock alone, and when that is rolled back its address may come to be another row's.
fn expose_locked(node: &mut PlanNode) -> usize {
    if let NodeKind::LockRows { input, marks, .. } = &mut node.kind {
        let slots: Vec<Expr> = marks.iter().map(|m| slot(input, m.tid_slot)).collect();
        let added = slots.len();
        node.columns.extend(slots.iter().cloned());
        project(input, slots);
        return added;
    }
    let added = handed_on!(&mut node.kind).map_or(0, |input| expose_locked(input));
    hand_on(node, added);
    added
}
