//! How many rows of each partition a window looks at, where that is known beforehand.
//!
//! # Purpose
//! `row_number() … <= 2`, and no other call: what comes behind the second row of a partition is not seen. A sort below need not make rows of
//! it, which is what most of its work is where rows are wide.

use crate::plan::{NodeKind, PlanNode, PlanSortKey};
use base::Oid;
use expr::Expr;
use expr::code::{CompareOp, comparison, int_of};
use expr::tree::WindowCall;

/// The first so many rows of each partition are all that the window looks at; the input is a sort whose first keys are its partition.
pub(crate) fn most_of_each(
    input: &PlanNode,
    partition: &[Expr],
    calls: &[WindowCall],
    run: Option<&Expr>,
) -> Option<usize> {
    let NodeKind::Sort { keys, presorted: 0, .. } = &input.kind else { return None };
    if partition.is_empty() || !begins_with(keys, partition) || !calls.iter().all(counts_rows) {
        return None;
    }
    let Expr::Call { function, args, .. } = run? else { return None };
    let (op, ..) = comparison(Oid(*function))?;
    let (number, bound, op) = match &args[..] {
        [Expr::Slot { index, .. }, Expr::Const(c)] => (*index, c, op),
        [Expr::Const(c), Expr::Slot { index, .. }] => match op {
            CompareOp::Ge => (*index, c, CompareOp::Le),
            CompareOp::Gt => (*index, c, CompareOp::Lt),
            _ => return None,
        },
        _ => return None,
    };
    if number < input.columns.len() {
        return None;
    }
    let bound = int_of(&bound.value)?;
    let most = match op {
        CompareOp::Le => bound,
        CompareOp::Lt => bound.checked_sub(1)?,
        _ => return None,
    };
    usize::try_from(most).ok().filter(|most| *most > 0)
}

fn counts_rows(call: &WindowCall) -> bool {
    types::facts::proc(Oid(call.function)).is_some_and(|f| f.name == "row_number" && f.kind == 'w')
}

/// Are the first keys, as many as the partition has expressions, these columns, in whatever order?
fn begins_with(keys: &[PlanSortKey], partition: &[Expr]) -> bool {
    let Some(first) = keys.get(..partition.len()) else { return false };
    let is_column = |e: &Expr| matches!(e, Expr::Slot { .. });
    first.iter().all(|k| is_column(&k.expr) && partition.contains(&k.expr))
        && partition.iter().all(|e| first.iter().any(|k| k.expr == *e))
}
