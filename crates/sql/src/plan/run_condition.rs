//! Run conditions: what the query around asks of a window's row number or rank, so that the window stops where it no longer holds.
//!
//! # Invariants
//! Only what never falls within a partition is compared, with an upper bound that does not change while the window runs: after the first
//! row that fails every row of its partition fails. It is asked of the window that is computed last: no other one misses the rows
//! left out, nor does anything between it and the condition count them.

use super::rels::{JoinSpace, family_strategy, type_family};
use super::windows::ordered_by;
use crate::query::{
    Command, Distinct, FrameBound, FrameExclude, FrameMode, Query, WindowDefinition,
};
use base::{Oid, Result};
use expr::Expr;
use expr::tree::WindowCall;
use types::oids;

/// What became of a condition on a sub-select's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It stays outside.
    No,
    /// It stays outside, the window stops by it too.
    Too,
    /// The window does all of it.
    Instead,
}

fn function_name(function: u32) -> &'static str {
    types::facts::proc(Oid(function)).map_or("", |f| f.name)
}

/// Never falls from row to row of a partition.
fn rises(call: &WindowCall) -> bool {
    matches!(function_name(call.function), "row_number" | "rank" | "dense_rank")
        && call.filter.is_none()
}

/// The btree strategy of the comparison, as of a condition with the changing side on the left.
fn strategy(operator: u32, left: bool) -> Option<u16> {
    let s = family_strategy(type_family(oids::INT8)?, operator)?;
    Some(if left { s } else { 6 - s })
}

/// The `<=` (`>=` with the constant on the left) of the same types as an `=`.
fn upper_bound_operator(args: &[Expr], left: bool) -> Option<(u32, u32)> {
    let family = type_family(oids::INT8)?;
    let [l, r] = args else { return None };
    let found = types::facts::family_operators().iter().find(|a| {
        a.family == family
            && a.method == Oid(403)
            && a.purpose == 's'
            && a.strategy == if left { 2 } else { 4 }
            && (a.left, a.right) == (l.ty().oid, r.ty().oid)
    })?;
    let o = types::registry::operator(found.operator)?;
    Some((o.oid.0, o.function.0))
}

/// Makes a condition on the output of `sub`, entry `rte` of the query around, one on its last window.
pub(crate) fn take(sub: &mut Query, e: &Expr, rte: usize) -> Taken {
    let Some(last) = sub.windows.len().checked_sub(1) else { return Taken::No };
    if sub.command != Command::Select
        || sub.limit.is_some()
        || sub.offset.is_some()
        || sub.has_target_srfs
        || sub.set_operation.is_some()
        || matches!(sub.distinct, Distinct::On(_))
    {
        return Taken::No;
    }
    let Expr::Call { args, operator: operator @ 1.., .. } = e else { return Taken::No };
    let [l, r] = &args[..] else { return Taken::No };
    let (column, left) = match (l, r) {
        (Expr::Var { levels_up: 0, rte: n, column, .. }, other) if *n == rte && fixed(other) => {
            (*column, true)
        }
        (other, Expr::Var { levels_up: 0, rte: n, column, .. }) if *n == rte && fixed(other) => {
            (*column, false)
        }
        _ => return Taken::No,
    };
    let mut visible = sub.targets.iter().filter(|t| !t.hidden);
    let target = usize::try_from(column - 1).ok().and_then(|n| visible.nth(n)).map(|t| &t.expr);
    let Some(Expr::Window(call)) = target else { return Taken::No };
    if call.window != last || !rises(call) {
        return Taken::No;
    }
    let mut bound = e.clone();
    let Expr::Call { function, args, operator: new, .. } = &mut bound else { return Taken::No };
    let taken = match strategy(*operator, left) {
        Some(1 | 2) => Taken::Instead,
        Some(3) => {
            let Some((o, f)) = upper_bound_operator(args, left) else { return Taken::No };
            (*new, *function) = (o, f);
            Taken::Too
        }
        _ => return Taken::No,
    };
    args[usize::from(!left)] = Expr::Window(call.clone());
    sub.run_conditions.push(bound);
    taken
}

/// The same for every row.
fn fixed(e: &Expr) -> bool {
    !e.any(&mut |e| matches!(e, Expr::Var { .. } | Expr::SubPlan { .. } | Expr::SubLink { .. }))
        && !expr::fold::contains_volatile(e)
}

/// What must have been read for a row's result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Nothing behind it.
    Row,
    /// Its peers.
    Peers,
    /// The whole partition.
    Partition,
}

/// How far behind its row a call may look.
fn reach(call: &WindowCall, window: &WindowDefinition) -> Reach {
    match function_name(call.function) {
        "row_number" | "rank" | "dense_rank" => return Reach::Row,
        "lag" if call.args.len() == 1 => return Reach::Row,
        "lag" | "lead" | "ntile" | "percent_rank" | "cume_dist" => return Reach::Partition,
        _ => {}
    }
    let frame = &window.frame;
    let back = matches!(
        frame.end,
        FrameBound::CurrentRow | FrameBound::Preceding(_) | FrameBound::UnboundedPreceding
    );
    let rows = frame.mode == FrameMode::Rows
        && matches!(frame.exclude, FrameExclude::NoOthers | FrameExclude::CurrentRow);
    match (back, rows) {
        (false, _) => Reach::Partition,
        (true, true) => Reach::Row,
        (true, false) => Reach::Peers,
    }
}

impl JoinSpace<'_, '_> {
    /// The condition by which window `w` stops, over the columns of its node.
    pub(crate) fn run_condition(&self, w: usize, columns: &[Expr]) -> Result<Option<Expr>> {
        if w + 1 != self.q.windows.len() || self.q.run_conditions.is_empty() {
            return Ok(None);
        }
        let tests =
            self.q.run_conditions.iter().map(|e| self.over(e, columns)).collect::<Result<_>>()?;
        Ok(super::create::and_all(tests))
    }

    /// Whether a row of the only window is given before the whole partition has been read.
    pub(crate) fn streams(&self) -> bool {
        let [window] = &self.q.windows[..] else { return false };
        let whole = |e: &Expr| matches!(e, Expr::Window(c) if reach(c, window) == Reach::Partition);
        !self.q.targets.iter().any(|t| t.expr.any(&mut |e| whole(e)))
    }

    /// The rows that the only window needs to see, if it stops by its conditions; 0: all.
    pub(crate) fn run_rows(&self, rows: f64) -> f64 {
        let ([window], [first, ..]) = (&self.q.windows[..], &self.q.run_conditions[..]) else {
            return 0.0;
        };
        let whole = !window.partition_by.is_empty() || !self.streams();
        let Expr::Call { args, .. } = first else { return 0.0 };
        let call = args.iter().find_map(|e| match e {
            Expr::Window(c) => Some(c),
            _ => None,
        });
        let (Some(call), false) = (call, whole) else { return 0.0 };
        let bound = args.iter().find(|e| !matches!(e, Expr::Window(_)));
        let Some(Expr::Const(bound)) = bound else {
            if bound.is_some_and(super::selectivity::has_param) {
                self.g.by_values.set(true);
            }
            return 0.1;
        };
        let bound = expr::code::int_of(&bound.value).unwrap_or(0).max(0) as f64;
        let mut peers = rows;
        for k in ordered_by(window) {
            peers /= self.distinct_values(&k.expr, rows);
        }
        let peers = peers.max(1.0);
        match function_name(call.function) {
            "row_number" => bound + 1.0,
            "rank" => bound + peers,
            _ => (bound + 1.0) * peers,
        }
    }
}
