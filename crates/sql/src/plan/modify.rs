//! INSERT, UPDATE, DELETE and MERGE.

use super::create::{and_all, slotted};
use super::prep::{Global, prepare};
use super::pull_up::JoinTree;
use super::rels::JoinSpace;
use super::upper::plan_upper;
use super::{
    Modify, NodeKind, PlanMerge, PlanMergeAction, PlanMergeClause, PlanNode, PlanOnConflict,
};
use crate::query::{Command, Merge, MergeAction, Query, RteKind, TargetEntry};
use base::{Result, bail};
use engine::catalog::model::Table;
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::oids;

/// Columns of a table's row as RETURNING and ON CONFLICT see it: all attributes, ctid, tableoid.
fn row_layout(table: &Table, rte: usize) -> Vec<Expr> {
    let mut out: Vec<Expr> = table
        .columns
        .iter()
        .map(|c| Expr::Var { levels_up: 0, rte, column: c.number, ty: c.ty })
        .collect();
    out.push(Expr::Var { levels_up: 0, rte, column: -1, ty: TypeRef::of(oids::TID) });
    out.push(Expr::Var { levels_up: 0, rte, column: -6, ty: TypeRef::of(oids::OID) });
    out
}

/// A row as RETURNING of an INSERT sees it: xmin, xmax, cmin and cmax stand behind the rest.
fn returning_layout(table: &Table, rte: usize) -> Vec<Expr> {
    let var = |column, ty| Expr::Var { levels_up: 0, rte, column, ty: TypeRef::of(ty) };
    let mut out = row_layout(table, rte);
    out.extend([(-2, oids::XID), (-4, oids::XID)].map(|(column, ty)| var(column, ty)));
    out.extend([(-3, oids::CID), (-5, oids::CID)].map(|(column, ty)| var(column, ty)));
    out
}

/// The layouts of OLD's row and NEW's behind what else RETURNING sees; `base`: how far entries are numbered on.
fn image_layouts(table: &Table, images: Option<(usize, usize)>, base: usize) -> Vec<Expr> {
    let entries = images.into_iter().flat_map(|(old, new)| [old, new]);
    entries.flat_map(|rte| returning_layout(table, rte + base)).collect()
}

/// What views ask of a row of the target.
fn view_checks(q: &mut Query, layout: &[Expr]) -> Result<Vec<(String, Expr)>> {
    let asked = std::mem::take(&mut q.view_checks);
    let asked = asked.into_iter().filter_map(|c| Some((c.view, c.condition?)));
    asked.map(|(view, e)| Ok((view, slotted(&e, layout)?))).collect()
}

/// The target's system columns that OLD is asked for.
fn old_system_columns(q: &Query, target: usize, out: &mut Vec<Expr>) {
    let Some((old, _)) = q.images else { return };
    for t in &q.returning {
        t.expr.walk(&mut |e| {
            if let Expr::Var { levels_up: 0, rte, column, ty } = e
                && *rte == old
                && *column < -1
            {
                out.push(Expr::Var { levels_up: 0, rte: target, column: *column, ty: *ty });
            }
        });
    }
}

fn target_table(g: &Global<'_>, q: &Query) -> Result<(usize, Arc<Table>)> {
    let Some(rte) = q.result_rte else {
        bail!(INTERNAL_ERROR, "statement without a target");
    };
    let RteKind::Relation { oid, .. } = q.range_table[rte].kind else {
        bail!(INTERNAL_ERROR, "the target is not a relation");
    };
    Ok((rte, g.table(oid)?))
}

/// Plans a data-modifying query.
pub(crate) fn plan_modify(g: &mut Global<'_>, mut q: Query) -> Result<PlanNode> {
    let (rte, table) = target_table(g, &q)?;
    let tree = prepare(g, &mut q)?;
    let (noted, target) = (g.relations.len(), table.oid);
    let modify = match q.command {
        Command::Insert => plan_insert(g, q, tree, rte, table)?,
        _ => plan_update(g, q, tree, rte, table)?,
    };
    // What may not be written is told of before what may not be read, whichever the join begins with.
    let used = &mut g.relations[noted..];
    if let Some(at) = used.iter().position(|r| r.target && r.table.oid == target) {
        used[..=at].rotate_right(1);
    }
    let (columns, modify) = modify;
    let (mut rows, mut total, mut startup, width) = match &modify.input {
        Some(i) => (i.rows, i.total_cost, i.startup_cost, i.width),
        None => (1.0, 0.01, 0.0, 0),
    };
    if columns.is_empty() {
        rows = 0.0;
    }
    if total < startup {
        total = startup;
    }
    startup = startup.min(total);
    Ok(PlanNode {
        kind: NodeKind::Modify(Box::new(modify)),
        columns,
        rows,
        startup_cost: startup,
        total_cost: total,
        width: if rows == 0.0 { 0 } else { width },
    })
}

fn plan_insert(
    g: &mut Global<'_>,
    mut q: Query,
    tree: JoinTree,
    rte: usize,
    table: Arc<Table>,
) -> Result<(Vec<Expr>, Modify)> {
    super::base_rel::note_relation(g, &q, rte, &table);
    let alias = q.range_table[rte].alias.clone();
    let returning_exprs: Vec<Expr> =
        std::mem::take(&mut q.returning).into_iter().map(|t| t.expr).collect();
    let layout = row_layout(&table, rte);
    let named = std::mem::take(&mut q.named);
    let view_checks = view_checks(&mut q, &layout)?;
    let mut shown = returning_layout(&table, rte);
    shown.extend(image_layouts(&table, q.images, 0));
    let images = q.images.is_some();
    let returning: Vec<Expr> =
        returning_exprs.iter().map(|e| slotted(e, &shown)).collect::<Result<_>>()?;
    let base = g.names.len();
    let on_conflict = match q.on_conflict.take() {
        None => None,
        Some(c) => {
            let mut both = layout.clone();
            if let Some(x) = c.excluded_rte {
                both.extend(row_layout(&table, x));
            }
            let update = match &c.update {
                None => None,
                Some(list) => Some(
                    list.iter()
                        .map(|t| Ok((t.target_column.unwrap_or(0), slotted(&t.expr, &both)?)))
                        .collect::<Result<Vec<_>>>()?,
                ),
            };
            let filter = c.filter.as_ref().map(|f| slotted(f, &both)).transpose()?;
            Some(PlanOnConflict { source: c, update, filter })
        }
    };
    let mut empty = Vec::new();
    tree.rels(&mut empty);
    let no_conditions = match &tree {
        JoinTree::Group { quals, .. } => quals.is_empty(),
        _ => false,
    };
    let mut row = Vec::new();
    let mut input = None;
    if empty.is_empty() && no_conditions && !q.has_target_srfs {
        for r in &q.range_table {
            g.names.push((r.alias.clone(), r.column_names.clone()));
        }
        row = q.targets.iter().map(|t| slotted(&t.expr, &[])).collect::<Result<_>>()?;
    } else {
        q.command = Command::Select;
        q.result_rte = None;
        input = Some(plan_upper(g, q, tree, 0.0)?.0);
    }
    let columns = returning_exprs
        .iter()
        .map(|e| {
            let mut e = e.clone();
            e.rewrite(&mut |e| {
                if let Expr::Var { rte, .. } = e {
                    *rte += base;
                }
                false
            });
            e
        })
        .collect();
    Ok((
        columns,
        Modify {
            command: Command::Insert,
            table,
            alias,
            input,
            row,
            assignments: Vec::new(),
            tid_slot: 0,
            old_slots: Vec::new(),
            recheck: None,
            returning,
            images,
            on_conflict,
            merge: None,
            view_checks,
            named,
            key_columns_changed: false,
        },
    ))
}

/// The columns that are assigned to, and their values over `columns`.
fn assigned(
    s: &JoinSpace<'_, '_>,
    targets: &[TargetEntry],
    columns: &[Expr],
) -> Result<Vec<(i32, Expr)>> {
    let to = targets.iter().filter_map(|t| t.target_column.map(|c| (c, &t.expr)));
    to.map(|(c, e)| Ok((c, s.over(e, columns)?))).collect()
}

/// A MERGE's clauses over the join's columns.
fn plan_merge(s: &JoinSpace<'_, '_>, m: &Merge, columns: &[Expr]) -> Result<PlanMerge> {
    let over = |e: &Expr| s.over(e, columns);
    let clauses = m.clauses.iter().map(|c| {
        let action = match &c.action {
            MergeAction::Update(set) => PlanMergeAction::Update(assigned(s, set, columns)?),
            MergeAction::Delete => PlanMergeAction::Delete,
            MergeAction::Insert(row) => {
                PlanMergeAction::Insert(row.iter().map(|t| over(&t.expr)).collect::<Result<_>>()?)
            }
            MergeAction::Nothing => PlanMergeAction::Nothing,
        };
        let condition = c.condition.as_ref().map(over).transpose()?;
        Ok(PlanMergeClause { when: c.when, condition, action })
    });
    Ok(PlanMerge {
        on: over(&m.on)?,
        source: m.source.as_ref().map(over).transpose()?,
        clauses: clauses.collect::<Result<_>>()?,
    })
}

/// UPDATE, DELETE and MERGE, whose rows are a join's with the target.
fn plan_update(
    g: &mut Global<'_>,
    mut q: Query,
    tree: JoinTree,
    rte: usize,
    table: Arc<Table>,
) -> Result<(Vec<Expr>, Modify)> {
    let command = q.command;
    let named = std::mem::take(&mut q.named);
    let view_checks = view_checks(&mut q, &row_layout(&table, rte))?;
    let alias = q.range_table[rte].alias.clone();
    let mut s = JoinSpace::new(g, q, &tree)?;
    let mut extra = vec![Expr::Var { levels_up: 0, rte, column: -1, ty: TypeRef::of(oids::TID) }];
    old_system_columns(&s.q, rte, &mut extra);
    let images = s.q.images.is_some();
    let mut merge = s.q.merge.take();
    let whole = matches!(command, Command::Update | Command::Merge);
    if whole || !table.referenced_by.is_empty() || images {
        for c in table.columns.iter().filter(|c| !c.dropped) {
            extra.push(Expr::Var { levels_up: 0, rte, column: c.number, ty: c.ty });
        }
    }
    // A row of MERGE that its condition is not true of any more may still be one that does not match, if a view still shows it.
    let recheck = if merge.is_some() { s.q.rechecks.clone() } else { s.recheck_quals() };
    extra.extend(recheck.iter().cloned());
    extra.extend(merge.iter_mut().flat_map(|m| m.exprs_mut()).map(|e| e.clone()));
    let paths = s.solve(&extra, None)?;
    let Some((p, _)) = s.choose(&paths, &[], None, 0.0) else {
        bail!(INTERNAL_ERROR, "could not devise a query plan for the given query");
    };
    let mut input = s.create(&p)?;
    let constant = s.take_constant_quals();
    let list: Vec<Expr> =
        constant.iter().map(|e| s.over(e, &input.columns)).collect::<Result<_>>()?;
    input = super::create::filtered(input, and_all(list));
    let columns = input.columns.clone();
    let old_slots: Vec<(usize, i32)> = columns
        .iter()
        .enumerate()
        .filter_map(|(i, c)| match c {
            Expr::Var { levels_up: 0, rte: r, column, .. } if *r == rte + s.names_base => {
                Some((i, *column))
            }
            _ => None,
        })
        .collect();
    let Some(tid_slot) = old_slots.iter().find(|s| s.1 == -1).map(|s| s.0) else {
        bail!(INTERNAL_ERROR, "no row address for the target");
    };
    let mut assignments = Vec::new();
    if command == Command::Update {
        assignments = assigned(&s, &s.q.targets, &columns)?;
    }
    let plan = merge.as_ref().map(|m| plan_merge(&s, m, &columns)).transpose()?;
    let recheck: Vec<Expr> = recheck.iter().filter_map(|e| s.over(e, &columns).ok()).collect();
    let returning_exprs: Vec<Expr> = s.q.returning.iter().map(|t| t.expr.clone()).collect();
    let mut seen = columns;
    seen.extend(image_layouts(&table, s.q.images, s.names_base));
    seen.extend(merge.map(|m| {
        let rte = m.action_rte + s.names_base;
        Expr::Var { levels_up: 0, rte, column: 1, ty: TypeRef::of(oids::TEXT) }
    }));
    let returning: Vec<Expr> =
        returning_exprs.iter().map(|e| s.over(e, &seen)).collect::<Result<_>>()?;
    let shown = returning_exprs.iter().map(|e| s.shifted(e)).collect();
    Ok((
        shown,
        Modify {
            command,
            table,
            alias,
            input: Some(input),
            row: Vec::new(),
            assignments,
            tid_slot,
            old_slots,
            recheck: and_all(recheck),
            returning,
            images,
            on_conflict: None,
            merge: plan,
            view_checks,
            named,
            key_columns_changed: false,
        },
    ))
}
