//! Foreign keys whose two sides have different types.
//!
//! Integers are compared as integers; of other types the referring side's becomes the referenced one's if it does so by an
//! implicit cast, else the other way round, as PostgreSQL chooses the operator for it.

use super::context::ExecContext;
use super::modify::compile_stored;
use base::{Oid, Result};
use engine::catalog::model::Table;
use expr::eval::EvalContext;
use expr::ops::compare;
use expr::{Expr, TypeRef};
use std::cell::RefCell;
use types::{CastContext, Datum, oids};

/// One column of a key: the side that is searched, and the side that the values come from.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    mine: TypeRef,
    other: TypeRef,
    common: TypeRef,
}

/// What to look for in an index.
pub(super) enum Sought {
    /// What is equal to this.
    Equal(Datum),
    /// Nothing can be equal.
    Nothing,
    /// The index cannot tell.
    All,
}

fn is_integer(ty: Oid) -> bool {
    matches!(ty, oids::INT2 | oids::INT4 | oids::INT8)
}

fn integer(v: &Datum, ty: Oid) -> Option<Datum> {
    let i = expr::code::int_of(v)?;
    match ty {
        oids::INT2 => i16::try_from(i).ok().map(Datum::Int2),
        oids::INT4 => i32::try_from(i).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(i)),
    }
}

pub(super) fn type_of(t: &Table, column: i32) -> TypeRef {
    let ty = t.columns[column as usize - 1].ty;
    TypeRef { oid: ty.oid, typmod: ty.typmod }
}

/// A value as one of another type, cut or refused as in an assignment.
fn assigned(x: &ExecContext<'_>, v: &Datum, from: TypeRef, to: TypeRef) -> Result<Datum> {
    if v.is_null() || from == to {
        return Ok(v.clone());
    }
    let slot = Expr::Slot { index: 0, ty: from };
    let e = crate::analyse::coerce_assignment(slot, to, "", x.catalog, x.env)?;
    let exec = RefCell::new(Vec::new());
    compile_stored(&e)?.eval(std::slice::from_ref(v), &EvalContext::new(x.env, &exec))
}

impl Sides {
    /// `mine` is searched by values of `other`; `referenced`: mine is the referenced side.
    pub fn new(mine: TypeRef, other: TypeRef, referenced: bool) -> Sides {
        let (pk, fk) = if referenced { (mine, other) } else { (other, mine) };
        let implicit = pk.oid == fk.oid
            || types::registry::cast(fk.oid, pk.oid)
                .is_some_and(|c| c.context == CastContext::Implicit);
        Sides { mine, other, common: TypeRef::of(if implicit { pk.oid } else { fk.oid }) }
    }

    fn are_like(&self) -> bool {
        self.mine.oid == self.other.oid || is_integer(self.mine.oid) && is_integer(self.other.oid)
    }

    fn common(&self, x: &ExecContext<'_>, v: &Datum, from: TypeRef) -> Result<Datum> {
        assigned(x, v, TypeRef::of(from.oid), self.common)
    }

    /// Is the searched side's `mine` equal to `other`?
    pub fn are_equal(&self, x: &ExecContext<'_>, mine: &Datum, other: &Datum) -> Result<bool> {
        if mine.is_null() || other.is_null() {
            return Ok(false);
        }
        if self.are_like() {
            return Ok(compare(self.mine.oid, mine, other).is_eq());
        }
        let mine = self.common(x, mine, self.mine)?;
        Ok(compare(self.common.oid, &mine, &self.common(x, other, self.other)?).is_eq())
    }

    /// A value of the other side for a row of the searched one.
    pub fn assigned(&self, x: &ExecContext<'_>, v: &Datum) -> Result<Datum> {
        assigned(x, v, self.other, self.mine)
    }

    /// What an index over the searched side is asked for.
    pub fn sought(&self, x: &ExecContext<'_>, v: &Datum) -> Result<Sought> {
        if self.mine.oid == self.other.oid {
            return Ok(Sought::Equal(v.clone()));
        }
        if self.are_like() {
            return Ok(integer(v, self.mine.oid).map_or(Sought::Nothing, Sought::Equal));
        }
        if self.common.oid == self.mine.oid {
            return self.common(x, v, self.other).map(Sought::Equal);
        }
        // No two integers are the same numeric.
        if self.other.oid == oids::NUMERIC && is_integer(self.mine.oid) {
            let near = assigned(x, v, TypeRef::of(self.other.oid), TypeRef::of(self.mine.oid)).ok();
            return match near {
                Some(near) if self.are_equal(x, &near, v)? => Ok(Sought::Equal(near)),
                _ => Ok(Sought::Nothing),
            };
        }
        Ok(Sought::All)
    }
}
