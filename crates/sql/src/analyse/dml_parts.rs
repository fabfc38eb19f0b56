//! Assignment to a part of a column: an array's element or slice, something within a jsonb.

use super::Analyser;
use super::dml::is_default;
use crate::parse::ast::{self, AssignTarget, Loc};
use base::{Result, SqlError, SqlState, err};
use engine::catalog::model::Column;
use expr::{Expr, TypeRef};
use types::Datum;
use types::facts::CastContext;
use types::oids::JSONB;

/// What of a column is assigned to, and of what type that is.
#[derive(Clone)]
pub(super) struct Part {
    indexes: Vec<(Option<Expr>, Option<Expr>)>,
    slice: bool,
    pub(super) wanted: TypeRef,
    whole: TypeRef,
}

impl Part {
    /// `before` with `value` in this place.
    pub(super) fn put(&self, before: Expr, value: Expr) -> Expr {
        Expr::Subscript {
            arg: Box::new(before),
            indexes: self.indexes.clone(),
            slice: self.slice,
            assign: Some(Box::new(value)),
            ty: self.whole,
        }
    }
}

/// A column that INSERT gives a value, or a part of one.
#[derive(Clone)]
pub(super) struct Given<'t> {
    pub column: &'t Column,
    pub(super) part: Option<Part>,
    pub(super) loc: Loc,
}

impl Given<'_> {
    /// What the value must be of.
    pub(super) fn wanted(&self) -> TypeRef {
        self.part.as_ref().map_or(self.column.declared(), |part| part.wanted)
    }

    /// As what a row of VALUES keeps it.
    pub(super) fn kept_as(&self) -> TypeRef {
        self.part.as_ref().map_or(self.column.ty, |part| part.wanted)
    }

    /// Notes the value among those of the columns: parts of one column, one after the other.
    pub fn put(&self, given: &mut [Option<Expr>], value: Expr) {
        let Some(place) = given.get_mut(self.column.number as usize - 1) else { return };
        *place = Some(match &self.part {
            None => value,
            Some(part) => {
                let before = place.take();
                let ty = self.column.ty.oid;
                part.put(before.unwrap_or_else(|| super::coerce::constant(ty, Datum::Null)), value)
            }
        });
    }
}

impl Analyser<'_> {
    /// What of column `c` is assigned to; None: all of it. `update`: what has no parts is pointed at, as in PostgreSQL.
    pub(super) fn part_of(
        &mut self,
        c: &Column,
        target: &AssignTarget,
        update: bool,
    ) -> Result<Option<Part>> {
        if target.indirection.is_empty() {
            return Ok(None);
        }
        let mut indexes = Vec::with_capacity(target.indirection.len());
        for step in &target.indirection {
            match step {
                ast::Indirection::Index(index) => indexes.push(index.clone()),
                ast::Indirection::Field(field)
                    if indexes.is_empty() && c.declared < base::Oid::FIRST_NORMAL =>
                {
                    let e = err!(
                        DATATYPE_MISMATCH,
                        "cannot assign to field \"{field}\" of column \"{}\" because its type {} is not a composite type",
                        c.name,
                        self.type_name_of(c.ty.oid)
                    );
                    return self.at(target.loc, e);
                }
                ast::Indirection::Field(_) => {
                    return self.at(target.loc, base::Error::unsupported("assignment to a field"));
                }
            }
        }
        if c.ty.oid == JSONB {
            let indexes = self.names_or_numbers(&indexes, target.loc)?;
            return Ok(Some(Part { indexes, slice: false, wanted: c.ty, whole: c.ty }));
        }
        let Some(element) = super::coerce::element_type(c.ty.oid) else {
            let e = err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                self.type_name_of(c.ty.oid)
            );
            return if update { self.at(target.loc, e) } else { Err(e) };
        };
        let (indexes, slice) = self.subscripts(&indexes)?;
        let wanted = if slice { c.ty } else { TypeRef { oid: element, typmod: c.ty.typmod } };
        Ok(Some(Part { indexes, slice, wanted, whole: c.ty }))
    }

    /// A value for a part of column `c`.
    pub(super) fn part_value(
        &mut self,
        part: &Part,
        e: Expr,
        c: &Column,
        target: Loc,
        loc: Loc,
    ) -> Result<Expr> {
        let (from, wanted) = (e.ty().oid, part.wanted);
        if !super::coerce::can_coerce(from, wanted.oid, CastContext::Assignment) {
            let e = SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                    c.name,
                    self.type_name_of(wanted.oid),
                    self.type_name_of(from)
                ),
            )
            .hint("You will need to rewrite or cast the expression.");
            return self.at(target, e.into());
        }
        self.coerce(e, wanted, CastContext::Assignment, false, loc)
    }

    /// `a[i] = value`: the column's array (or jsonb) with that element, or slice, changed.
    pub(super) fn set_element(
        &mut self,
        c: &Column,
        target: &AssignTarget,
        value: &ast::Expr,
    ) -> Result<Expr> {
        self.may_set(c, true, None, value.loc)?;
        if is_default(value) {
            return self.no_default_of_part(target.loc);
        }
        let Some(part) = self.part_of(c, target, true)? else { return self.set_value(c, value) };
        let e = self.expr(value)?;
        let value = self.part_value(&part, e, c, target.loc, value.loc)?;
        let column = Expr::Var { levels_up: 0, rte: 0, column: c.number, ty: c.ty };
        Ok(part.put(column, value))
    }

    pub(super) fn no_default_of_part<T>(&self, loc: Loc) -> Result<T> {
        self.at(loc, err!(FEATURE_NOT_SUPPORTED, "cannot set an array element to DEFAULT"))
    }
}
