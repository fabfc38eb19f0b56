//! Assignment to a part of a column: an array's element or slice, a row's field, something within a jsonb.
//!
//! # Layout
//! `r[1].b = v` is the array with another element, which is the element that was there (`CaseTestValue`) with another field.

use super::Analyser;
use super::dml::is_default;
use crate::parse::ast::{self, AssignTarget, Loc};
use base::{Result, SqlError, SqlState, err};
use engine::catalog::model::Column;
use expr::{Expr, TypeRef};
use types::Datum;
use types::facts::CastContext;
use types::oids::JSONB;

/// What rows have beside the columns that are theirs.
pub(super) const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// A step from a value to a part of it.
#[derive(Clone)]
enum Step {
    /// To an array's element or slice, or to what is within a jsonb.
    Subscript { indexes: Vec<(Option<Expr>, Option<Expr>)>, slice: bool },
    /// To a row's field.
    Field { index: usize, columns: Vec<(String, TypeRef)> },
}

/// What of a column is assigned to, and of what type that is.
#[derive(Clone)]
pub(super) struct Part {
    /// Each with the type of what it is a step from.
    steps: Vec<(Step, TypeRef)>,
    pub(super) wanted: TypeRef,
    /// The column or field that has it.
    name: String,
}

impl Part {
    /// `before` with `value` in this place.
    pub(super) fn put(&self, before: Expr, value: Expr) -> Expr {
        put(&self.steps, before, value)
    }

    /// Is the first step one to a field?
    pub(super) fn is_of_row(&self) -> bool {
        matches!(self.steps.first(), Some((Step::Field { .. }, _)))
    }

    /// Is the last step one to a field?
    fn is_field(&self) -> bool {
        matches!(self.steps.last(), Some((Step::Field { .. }, _)))
    }
}

fn put(steps: &[(Step, TypeRef)], before: Expr, value: Expr) -> Expr {
    let Some(((step, ty), rest)) = steps.split_first() else { return value };
    let value = match rest.first() {
        None => value,
        Some((_, inner)) => put(rest, Expr::CaseTestValue(*inner), value),
    };
    let (arg, value, ty) = (Box::new(before), Box::new(value), *ty);
    match step {
        Step::Subscript { indexes, slice } => {
            let (indexes, slice) = (indexes.clone(), *slice);
            Expr::Subscript { arg, indexes, slice, assign: Some(value), ty }
        }
        Step::Field { index, columns } => {
            // A row has the values of a domain as those of its base.
            let (names, types) = columns.iter().map(|(n, ty)| (n.clone(), ty.base())).unzip();
            Expr::FieldStore { arg, index: *index, value, names, types, ty }
        }
    }
}

/// What an assignment to a part of a column changes; None: it is one to the whole.
pub(super) fn changed(e: &mut Expr) -> Option<&mut Expr> {
    match e {
        Expr::Subscript { arg, assign: Some(_), .. } | Expr::FieldStore { arg, .. } => Some(arg),
        _ => None,
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
        self.part.as_ref().map_or(self.column.ty, |part| part.wanted.base())
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
        let mut part = Part { steps: Vec::new(), wanted: c.ty, name: c.name.clone() };
        let mut rest = &target.indirection[..];
        while let Some(first) = rest.first() {
            if let ast::Indirection::Field(field) = first {
                self.step_to_field(&mut part, field, target.loc)?;
                rest = &rest[1..];
                continue;
            }
            if let ast::Indirection::Star = first {
                let e =
                    err!(FEATURE_NOT_SUPPORTED, "row expansion via \"*\" is not supported here");
                return self.at(target.loc, e);
            }
            let is_index = |step: &ast::Indirection| matches!(step, ast::Indirection::Index(_));
            let (here, more) = rest.split_at(rest.iter().take_while(|s| is_index(s)).count());
            rest = more;
            let indexes: Vec<_> = here
                .iter()
                .filter_map(|step| match step {
                    ast::Indirection::Index(index) => Some(index.clone()),
                    _ => None,
                })
                .collect();
            let loc = (update && part.steps.is_empty()).then_some(target.loc);
            self.step_by_subscripts(&mut part, &indexes, target.loc, loc)?;
        }
        Ok(Some(part))
    }

    fn step_to_field(&mut self, part: &mut Part, field: &str, loc: Loc) -> Result<()> {
        let ty = part.wanted.base();
        let columns = match super::coerce::is_composite(ty.oid) {
            true => self.row_type_columns(ty.oid)?,
            false => None,
        };
        let to = format!("cannot assign to field \"{field}\" of column \"{}\"", part.name);
        let called = self.type_name_of(part.wanted.oid);
        let Some(columns) = columns else {
            let why = format!("because its type {called} is not a composite type");
            return self.at(loc, err!(DATATYPE_MISMATCH, "{to} {why}"));
        };
        let Some(index) = columns.iter().position(|(name, _)| name == field) else {
            if SYSTEM_COLUMNS.contains(&field) {
                let e = err!(UNDEFINED_COLUMN, "cannot assign to system column \"{field}\"");
                return self.at(loc, e);
            }
            let why = format!("because there is no such column in data type {called}");
            return self.at(loc, err!(UNDEFINED_COLUMN, "{to} {why}"));
        };
        part.wanted = columns[index].1;
        part.name = field.to_owned();
        part.steps.push((Step::Field { index, columns }, ty));
        Ok(())
    }

    /// `pointed`: where what has no parts is pointed at.
    fn step_by_subscripts(
        &mut self,
        part: &mut Part,
        indexes: &[ast::SubscriptIndex],
        loc: Loc,
        pointed: Option<Loc>,
    ) -> Result<()> {
        let (ty, declared) = (part.wanted.base(), part.wanted);
        // What is made of it would have to be asked again.
        if !part.steps.is_empty() && types::domains::is_domain(declared.oid) {
            let what = "assignment to a part of a domain's value in a row";
            return self.at(loc, base::Error::unsupported(what));
        }
        if ty.oid == JSONB {
            let indexes = self.names_or_numbers(indexes, loc)?;
            part.steps.push((Step::Subscript { indexes, slice: false }, ty));
            part.wanted = ty;
            return Ok(());
        }
        let Some(element) = super::coerce::element_type(ty.oid) else {
            let e = err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                self.type_name_of(part.wanted.oid)
            );
            return match pointed {
                Some(loc) => self.at(loc, e),
                None => Err(e),
            };
        };
        let (indexes, slice) = self.subscripts(indexes)?;
        let of_domain = super::coerce::element_type(declared.oid)
            .filter(|_| types::domains::is_domain_array(declared.oid));
        part.wanted = match of_domain {
            _ if slice => declared,
            Some(domain) => TypeRef::of(domain),
            None => TypeRef { oid: element, typmod: ty.typmod },
        };
        part.steps.push((Step::Subscript { indexes, slice }, ty));
        Ok(())
    }

    /// A value for a part of a column.
    pub(super) fn part_value(
        &mut self,
        part: &Part,
        e: Expr,
        target: Loc,
        loc: Loc,
    ) -> Result<Expr> {
        let (from, wanted) = (e.ty().oid, part.wanted);
        if !super::coerce::can_coerce(from, wanted.oid, CastContext::Assignment) {
            let needs = match part.is_field() {
                true => format!("subfield \"{}\" is of type", part.name),
                false => format!("subscripted assignment to \"{}\" requires type", part.name),
            };
            let (needed, given) = (self.type_name_of(wanted.oid), self.type_name_of(from));
            let text = format!("{needs} {needed} but expression is of type {given}");
            let e = SqlError::new(SqlState::DATATYPE_MISMATCH, text)
                .hint("You will need to rewrite or cast the expression.");
            return self.at(target, e.into());
        }
        self.coerce(e, wanted, CastContext::Assignment, false, loc).map(Expr::plain)
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
            let index = matches!(target.indirection.first(), Some(ast::Indirection::Index(_)));
            return self.no_default_of_part(!index, target.loc);
        }
        if target.indirection.is_empty() {
            return self.set_value(c, value);
        }
        let e = self.expr(value)?;
        let Some(part) = self.part_of(c, target, true)? else { return Ok(e) };
        let value = self.part_value(&part, e, target.loc, value.loc)?;
        let column = Expr::Var { levels_up: 0, rte: 0, column: c.number, ty: c.ty };
        Ok(part.put(column, value))
    }

    /// `field`: of a row's field.
    pub(super) fn no_default_of_part<T>(&self, field: bool, loc: Loc) -> Result<T> {
        let what = if field { "a subfield" } else { "an array element" };
        self.at(loc, err!(FEATURE_NOT_SUPPORTED, "cannot set {what} to DEFAULT"))
    }
}
