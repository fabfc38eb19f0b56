//! Domains while a statement is analysed.
//!
//! # Purpose
//! An expression of a domain is one of the base type that is *declared* to be of the domain ([`Expr::declared`]): whoever wants to know how
//! an output, a column of a table or view made from it, or a parameter is called keeps that ([`Analyser::declared_expr`]), all others,
//! which choose operators and functions, have the plain expression ([`Analyser::expr`]). At the end nothing is left of it but the
//! list of the statement's own outputs (`Query::declared`), and [`Expr::CoerceToDomain`] where values are checked.
//!
//! # Differs from PostgreSQL
//! UNION, CASE and the like of values of one domain are of its base, and so is what a function of `anyelement` makes of one.

use super::Analyser;
use crate::parse::ast::Loc;
use crate::query::TargetEntry;
use base::{Oid, Result};
use engine::catalog::model::{Column, Table};
use expr::tree::CallForm;
use expr::{Constant, Expr, TypeRef};
use types::Datum;
use types::facts::CastContext;
use types::oids::UNKNOWN;

/// A cast from `from` to `to` that goes without saying, since a cast to a domain implies it.
fn unsaid(mut e: Expr, from: Oid, to: Oid) -> Expr {
    match &mut e {
        Expr::Relabel { explicit, ty, .. } | Expr::CoerceViaIo { explicit, ty, .. }
            if from != to && ty.oid == to =>
        {
            *explicit = false;
        }
        Expr::Call { form: form @ CallForm::ExplicitCast, ty, args, .. } if ty.oid == to => {
            *form = CallForm::ImplicitCast;
            // Below a length conversion there is the cast itself.
            if let Some(arg) = args.first_mut()
                && from != to
                && arg.ty().oid == to
            {
                let inner = std::mem::replace(arg, Expr::And(Vec::new()));
                *arg = unsaid(inner, from, to);
            }
        }
        _ => {}
    }
    e
}

/// `e`, which is of the base type, checked to be a value of a domain or array of one.
pub(super) fn to_domain(e: Expr, domain: TypeRef, explicit: bool) -> Expr {
    let ty = domain.base();
    Expr::CoerceToDomain { arg: Box::new(e), domain: domain.oid.0, ty, explicit }
}

/// A column's default: its own, that of its domain, or NULL if the domain lets it.
pub(crate) fn column_default(c: &Column) -> Option<Expr> {
    if let Some(default) = c.any_default() {
        return Some((**default).clone());
    }
    let null = Expr::Const(Constant { ty: c.ty, value: Datum::Null });
    (c.declared() != c.ty).then(|| to_domain(null, c.declared(), false))
}

/// Of a changed element the whole array is asked.
pub(super) fn check_changed_elements(assigned: &mut [TargetEntry], t: &Table) {
    for entry in assigned {
        let Some(c) = t.columns.iter().find(|c| Some(c.number) == entry.target_column) else {
            continue;
        };
        if c.declared() != c.ty && super::dml_parts::changed(&mut entry.expr).is_some() {
            let e = std::mem::replace(&mut entry.expr, Expr::And(Vec::new()));
            entry.expr = to_domain(e, c.declared(), false);
        }
    }
}

impl Analyser<'_> {
    /// `e` as a domain, or array of one: as the base type, and checked, unless it is of that domain anyway.
    pub(super) fn to_domain(
        &mut self,
        e: Expr,
        to: TypeRef,
        context: CastContext,
        explicit: bool,
        loc: Loc,
    ) -> Result<Expr> {
        if e.ty().oid == to.oid {
            return Ok(e);
        }
        let base = to.base();
        if let Expr::Param { number, ty } = e
            && ty.oid == UNKNOWN
        {
            // Its value is checked when it is given.
            self.infer_param(number, ty, to.oid, loc)?;
            return Ok(Expr::Param { number, ty: TypeRef::of(base.oid) }.declared(to));
        }
        let from = e.ty();
        let mut e = self.coerce(e, base, context, explicit, loc)?;
        if from.oid != base.oid || base.typmod >= 0 && from.typmod != base.typmod {
            e = unsaid(e, from.oid, base.oid);
        }
        Ok(to_domain(e, to, explicit).declared(to))
    }
}
