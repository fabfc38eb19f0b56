//! Expressions that need no executor.
//!
//! # Purpose
//! Most expressions of a procedure are of its variables and of nothing else: what they come to is computed at once, without a plan, a snapshot,
//! or a portal.

use super::good::Good;
use crate::query::{Command, Distinct, Query};
use crate::session::Session;
use base::Result;
use expr::code::Code;
use expr::eval::EvalContext;
use expr::{Expr, TypeRef};
use std::cell::RefCell;
use types::{Datum, Env};

/// Such an expression, compiled.
pub(super) struct Simple {
    code: Code,
    /// What it is of; said to be of a domain if it is.
    pub ty: TypeRef,
    good: Good,
}

impl Simple {
    /// What `query` computes, if that is one value of its parameters alone.
    ///
    /// # Errors
    /// Those of constants in it, which planning would compute.
    pub fn of(query: &Query, good: Good, env: &dyn Env) -> Result<Option<Simple>> {
        let [target] = query.targets.as_slice() else { return Ok(None) };
        if !is_bare(query) || !needs_nothing(&target.expr) {
            return Ok(None);
        }
        let folded = expr::fold::fold(&target.expr);
        let mut constants = Vec::new();
        expr::fold::left_over(&folded, &mut constants);
        for constant in &constants {
            expr::fold::value_in(constant, env)?;
        }
        let Ok(code) = expr::code::compile(&folded) else { return Ok(None) };
        let declared = query.declared.first().copied();
        Ok(Some(Simple { code, ty: declared.unwrap_or_else(|| target.expr.ty()), good }))
    }

    /// It is what the text would mean now.
    pub fn holds(&self, session: &Session) -> bool {
        self.good.holds(session)
    }

    /// Its value for these parameters.
    pub fn value(&self, session: &Session, params: &[Datum]) -> Result<Datum> {
        let none = RefCell::new(Vec::new());
        let mut cx = EvalContext::new(session.env().as_ref(), &none);
        cx.params = params;
        self.code.eval(&[], &cx)
    }
}

/// SELECT of values, and nothing else.
fn is_bare(query: &Query) -> bool {
    query.command == Command::Select
        && query.ctes.is_empty()
        && query.range_table.is_empty()
        && query.from.is_empty()
        && query.filter.is_none()
        && query.group_exprs.is_empty()
        && query.grouping_sets.is_empty()
        && query.having.is_none()
        && query.windows.is_empty()
        && matches!(query.distinct, Distinct::No)
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.row_marks.is_empty()
        && query.set_operation.is_none()
        && query.sub_selects.is_empty()
        && !query.has_aggregates
        && !query.has_windows
        && !query.has_target_srfs
}

/// Neither a row, nor a sub-select, nor a sequence is asked.
fn needs_nothing(e: &Expr) -> bool {
    !e.any(&mut |e| matches!(e, Expr::Var { .. } | Expr::SubLink { .. } | Expr::NextValue { .. }))
}
