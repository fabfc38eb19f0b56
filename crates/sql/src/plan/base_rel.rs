//! Base relations: what they are, how big, and conditions pushed into sub-selects.

use super::RelationUse;
use super::prep::{Global, plan_level};
use super::rels::{JoinSpace, Rel, RelKind, RelSet, SampleParts};
use super::run_condition::Taken;
use super::selectivity::VarFacts;
use super::sub_links::constant;
use crate::query::{Command, Distinct, Query, RteKind, SetOperation};
use base::{Oid, Result};
use engine::catalog::model::{RelationKind, Table};
use expr::Expr;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use types::{Datum, oids};

/// Values of longer lists are not compared with each other.
const MANY_VALUES: usize = 100;

impl JoinSpace<'_, '_> {
    /// Looks a range-table entry of the join tree up.
    pub(crate) fn base_rel(&mut self, rte: usize) -> Result<Rel> {
        let mut rel = Rel {
            rte,
            kind: RelKind::Values,
            needed: BTreeSet::new(),
            needed_beside: BTreeSet::new(),
            quals: Vec::new(),
            tuples: 1.0,
            pages: 0.0,
            rows: 1.0,
            width: 32,
            sample: None,
            lateral: RelSet::EMPTY,
            lateral_args: Vec::new(),
            paths: Vec::new(),
            ordered: false,
            by_keys: Vec::new(),
            stats: HashMap::new().into(),
            columns: Vec::new(),
        };
        let mut kind = self.q.range_table[rte].kind.clone();
        match &mut kind {
            RteKind::Relation { oid, sample, .. } => {
                let table = self.g.table(*oid)?;
                if !matches!(
                    table.kind,
                    RelationKind::Table
                        | RelationKind::Toast
                        | RelationKind::MaterializedView
                        | RelationKind::Sequence
                ) && table.storage.is_some()
                {
                    return Err(base::Error::unsupported(format!(
                        "reading relation \"{}\"",
                        table.name
                    )));
                }
                note_relation(self.g, &self.q, rte, &table);
                let (pages, tuples) = table_size(self.g, &table)?;
                rel.pages = pages;
                rel.tuples = tuples;
                if let Some(sample) = sample {
                    super::sample::shrink(&mut rel, sample);
                    let told = sample.clone();
                    if sample.percent.any(&mut |e| matches!(e, Expr::Param { .. })) {
                        self.g.by_values.set(true);
                    }
                    for e in sample.exprs_mut() {
                        self.take_lateral(e, &mut rel.lateral_args);
                    }
                    rel.sample = Some(SampleParts { asked: sample.clone(), told });
                }
                rel.width = table.columns.iter().filter(|c| !c.dropped).map(column_width).sum();
                rel.kind = RelKind::Table(table);
            }
            RteKind::Subquery { .. } => rel.kind = RelKind::Subquery(None),
            RteKind::Function { calls, .. } => {
                rel.tuples = 1.0;
                for c in calls.iter_mut() {
                    rel.tuples = f64::max(rel.tuples, function_rows(&c.call));
                    self.take_lateral(&mut c.call, &mut rel.lateral_args);
                }
                if let [call] = &calls[..]
                    && counts_up(&call.call)
                {
                    rel.columns = vec![VarFacts::different(rel.tuples)];
                }
                rel.kind = RelKind::Function;
            }
            RteKind::Values { rows } => {
                rel.tuples = rows.len() as f64;
                let width = rows.first().map_or(0, Vec::len);
                rel.columns = (0..width).map(|c| column_of_values(rows, c)).collect();
                for e in rows.iter_mut().flatten() {
                    self.take_lateral(e, &mut rel.lateral_args);
                }
            }
            RteKind::Cte { levels_up, index, self_reference } => {
                let frame = self
                    .g
                    .frames
                    .len()
                    .checked_sub(1 + *levels_up as usize)
                    .and_then(|f| self.g.frames[f].get(*index));
                let Some((store, rows, width, columns)) =
                    frame.and_then(|f| f.store.map(|s| (s, f.rows, f.width, f.columns.clone())))
                else {
                    base::bail!(INTERNAL_ERROR, "common table expression was not planned");
                };
                rel.tuples = rows.max(1.0);
                rel.columns = columns;
                rel.width = width;
                rel.kind = RelKind::Cte { store, work_table: *self_reference };
            }
            RteKind::Join { .. } | RteKind::Excluded => {
                base::bail!(INTERNAL_ERROR, "unexpected range-table entry in FROM");
            }
        }
        if !matches!(kind, RteKind::Subquery { .. }) {
            self.q.range_table[rte].kind = kind;
        }
        Ok(rel)
    }

    /// Replaces variables of siblings by parameters.
    fn take_lateral(&mut self, e: &mut Expr, args: &mut Vec<(usize, Expr)>) {
        let g = &mut *self.g;
        e.rewrite(&mut |e| {
            if !matches!(e, Expr::Var { levels_up: 0, .. }) {
                return false;
            }
            let ty = e.ty();
            let index = match args.iter().find(|(_, a)| a == e) {
                Some((i, _)) => *i,
                None => {
                    let i = g.new_param();
                    args.push((i, e.clone()));
                    i
                }
            };
            *e = Expr::ExecParam { index, ty };
            true
        });
    }

    /// Plans sub-selects in FROM, with the conditions that can be tested inside.
    pub(crate) fn plan_subqueries(&mut self) -> Result<()> {
        for i in 0..self.rels.len() {
            if !matches!(self.rels[i].kind, RelKind::Subquery(None)) {
                continue;
            }
            let rte = self.rels[i].rte;
            let kind = std::mem::replace(&mut self.q.range_table[rte].kind, RteKind::Excluded);
            let RteKind::Subquery { query, .. } = kind else { continue };
            let mut sub = *query;
            let quals = std::mem::take(&mut self.rels[i].quals);
            for e in quals {
                // A sub-select that looks at nothing outside is one value, in there as here.
                let looks_out = |e: &Expr| match e {
                    Expr::SubPlan { plan, test, args, .. } => {
                        test.is_some()
                            || !args.is_empty()
                            || !self.g.sub_plans[*plan].depends.is_empty()
                    }
                    _ => false,
                };
                let inside = !expr::fold::contains_volatile(&e)
                    && !e.any(&mut |e| looks_out(e))
                    && push_into(&mut sub, &e, rte);
                if !inside && super::run_condition::take(&mut sub, &e, rte) != Taken::Instead {
                    self.rels[i].quals.push(e);
                }
            }
            let whole = self.rels.len() == 1 && self.rels[i].quals.is_empty();
            self.drop_unused_outputs(&mut sub, rte);
            let ordered = whole && self.hand_order_down(&mut sub, rte);
            let fraction = match self.sorted_rows {
                Some(rows) if ordered => rows,
                _ if whole => self.fraction,
                _ => 0.0,
            };
            let keys = self.keys_of_sub_select(i, &sub);
            if !keys.is_empty() {
                self.rels[i].by_keys = self.plan_by_keys(i, &sub, &keys)?;
            }
            let level = plan_level(self.g, sub, fraction)?;
            let rel = &mut self.rels[i];
            rel.ordered = ordered;
            rel.lateral_args = level.args.clone();
            rel.tuples = level.node.rows;
            rel.width = level.node.width;
            rel.columns = level.columns.clone();
            rel.kind = RelKind::Subquery(Some(Box::new(level)));
        }
        for i in 0..self.rels.len() {
            let mut set = RelSet::EMPTY;
            for (_, e) in &self.rels[i].lateral_args {
                set = set.or(self.rels_of(e));
            }
            self.rels[i].lateral = set.minus(RelSet::one(i));
        }
        self.expand_lateral();
        Ok(())
    }
}

/// A column's usual width.
pub(crate) fn column_width(c: &engine::catalog::model::Column) -> i32 {
    if c.len > 0 {
        i32::from(c.len)
    } else if c.ty.typmod > 4 && matches!(c.ty.oid, oids::VARCHAR | oids::BPCHAR) {
        (c.ty.typmod - 4).min(64)
    } else {
        32
    }
}

/// Pages and tuples of a table now.
fn table_size(g: &mut Global<'_>, table: &Arc<Table>) -> Result<(f64, f64)> {
    if table.storage.is_none() {
        return Ok((10.0, 1000.0));
    }
    let now = g.catalog.relation_pages(table)?;
    if !g.sizes.iter().any(|(t, _)| t.oid == table.oid) {
        g.sizes.push((Arc::clone(table), now));
    }
    let mut pages = f64::from(now);
    if pages < 10.0 && table.reltuples < 0.0 {
        pages = 10.0;
    }
    let density = if table.reltuples >= 0.0 && table.relpages > 0 {
        f64::from(table.reltuples) / f64::from(table.relpages)
    } else {
        let width: i32 = table.columns.iter().filter(|c| !c.dropped).map(column_width).sum();
        (8160.0 / (f64::from(width) + 28.0)).max(1.0)
    };
    Ok((pages, (pages * density).round().max(0.0)))
}

/// Records that the statement uses a relation.
pub(crate) fn note_relation(g: &mut Global<'_>, q: &Query, rte: usize, table: &Arc<Table>) {
    let entry = &q.range_table[rte];
    // A view that is written through stands beside its table.
    let written = entry.required_privileges & (2 | 4 | 8) != 0;
    let target = written || q.result_rte == Some(rte) || q.row_marks.iter().any(|m| m.rte == rte);
    g.relations.push(RelationUse {
        table: table.clone(),
        privileges: entry.required_privileges,
        used: entry.used.clone(),
        check_as: entry.check_as,
        target,
    });
}

/// Rows a function in FROM probably yields.
fn function_rows(e: &Expr) -> f64 {
    let Expr::Call { function, args, .. } = e else { return 1.0 };
    let Some(f) = types::facts::proc(Oid(*function)) else { return 1000.0 };
    if !f.returns_set {
        return 1.0;
    }
    if f.name == "generate_series" {
        let n = |i: usize| args.get(i).map_or(Some(1.0), |e| constant(e).and_then(distance));
        if let (Some(a), Some(b), Some(step)) = (n(0), n(1), n(2))
            && step != 0.0
        {
            return ((b - a + step) / step).floor().max(1.0);
        }
    }
    if f.name == "unnest"
        && let Some(a) = args.first()
    {
        return super::selectivity::array_length(a).max(1.0);
    }
    f64::from(f.rows).max(1.0)
}

/// A number, or how many microseconds.
fn distance(value: &Datum) -> Option<f64> {
    match value {
        Datum::Numeric(n) if n.is_finite() => Some(n.to_f64()),
        Datum::Interval(i) => {
            let days = f64::from(i.months) * 30.0 + f64::from(i.days);
            Some(days * 86_400e6 + i.micros as f64)
        }
        Datum::Timestamp(i64::MIN | i64::MAX) | Datum::TimestampTz(i64::MIN | i64::MAX) => None,
        other => expr::code::int_of(other).map(|n| n as f64),
    }
}

/// Is it generate_series over numbers, which gives no value twice?
fn counts_up(e: &Expr) -> bool {
    let Expr::Call { function, .. } = e else { return false };
    types::facts::proc(Oid(*function)).is_some_and(|f| f.name == "generate_series")
}

/// A column of VALUES: its constants are at hand, other values are taken to be different.
fn column_of_values(rows: &[Vec<Expr>], column: usize) -> VarFacts {
    let mut seen: Vec<&Expr> = Vec::new();
    let values = rows.iter().filter_map(|r| r.get(column));
    let many = rows.len() > MANY_VALUES;
    for e in values {
        if many || !matches!(e, Expr::Const(_)) || !seen.contains(&e) {
            seen.push(e);
        }
    }
    let tuples = (rows.len() as f64).max(1.0);
    let distinct = (seen.len() as f64).max(1.0);
    VarFacts { stats: None, tuples, distinct, unique: false }
}

/// Puts a condition on a sub-select's output into the sub-select. False: it must stay outside.
pub(super) fn push_into(sub: &mut Query, e: &Expr, rte: usize) -> bool {
    if sub.command != Command::Select
        || sub.limit.is_some()
        || sub.offset.is_some()
        || sub.has_target_srfs
        || sub.grouping_sets.len() > 1
    {
        return false;
    }
    if let Some(tree) = sub.set_operation.clone() {
        let mut leaves = Vec::new();
        if !union_leaves(&tree, &mut leaves) {
            return false;
        }
        let mut trial = sub.clone();
        for leaf in leaves {
            let RteKind::Subquery { query, .. } = &mut trial.range_table[leaf].kind else {
                return false;
            };
            if query.set_operation.is_some() || !push_into(query, e, rte) {
                return false;
            }
        }
        *sub = trial;
        return true;
    }
    let targets: Vec<&Expr> = sub.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr).collect();
    let mut ok = true;
    let mut new = e.clone();
    new.rewrite(&mut |e| {
        if let Expr::Var { levels_up: 0, rte: r, column, .. } = e {
            if *r != rte {
                ok = false;
                return true;
            }
            match usize::try_from(*column - 1).ok().and_then(|c| targets.get(c)) {
                Some(t)
                    if !expr::fold::contains_volatile(t)
                        && !t.any(&mut |e| matches!(e, Expr::SubLink { .. })) =>
                {
                    let grouped = !sub.has_aggregates && sub.group_exprs.is_empty();
                    // A condition takes whole groups, partitions and sets of duplicates away, or it stays above.
                    let whole = (grouped || sub.group_exprs.contains(t))
                        && (!sub.has_windows
                            || sub.windows.iter().all(|w| w.partition_by.contains(t)))
                        && !matches!(&sub.distinct, Distinct::On(list) if !list.contains(t));
                    if !whole {
                        ok = false;
                        return true;
                    }
                    *e = (*t).clone();
                }
                _ => ok = false,
            }
            return true;
        }
        false
    });
    // A group of everything is there though a condition that looks at none of it lets no row through.
    let whole = sub.grouping_sets.iter().any(Vec::is_empty)
        || (sub.has_aggregates || sub.having.is_some()) && sub.group_exprs.is_empty();
    if !ok || whole {
        return false;
    }
    sub.filter = Some(match sub.filter.take() {
        None => new,
        Some(Expr::And(mut a)) => {
            a.push(new);
            Expr::And(a)
        }
        Some(f) => Expr::And(vec![f, new]),
    });
    true
}

fn union_leaves(tree: &SetOperation, out: &mut Vec<usize>) -> bool {
    match tree {
        SetOperation::Leaf(i) => {
            out.push(*i);
            true
        }
        SetOperation::Node { op: crate::query::SetOp::Union, left, right, given_as, .. }
            if given_as.is_empty() =>
        {
            union_leaves(left, out) && union_leaves(right, out)
        }
        SetOperation::Node { .. } => false,
    }
}
