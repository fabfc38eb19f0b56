//! Expressions with rules of their own: current_date and friends, COLLATE, IS NORMALIZED, subscripts, fields.

use super::Analyser;
use super::calls::settle;
use super::coerce::{can_coerce, element_type, is_polymorphic};
use crate::parse::ast::{self, Loc, SubscriptIndex};
use crate::query::{RangeTableEntry, RteKind};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::{Expr, SqlValueFunction as S, TypeRef};
use types::facts::CastContext;
use types::oids::*;

fn no_field(name: &str) -> base::Error {
    err!(UNDEFINED_COLUMN, "could not identify column \"{name}\" in record data type")
}

impl Analyser<'_> {
    pub fn sql_value(&mut self, kind: S, precision: Option<i32>) -> Expr {
        let oid = match kind {
            S::CurrentDate => DATE,
            S::CurrentTime => TIMETZ,
            S::CurrentTimestamp => TIMESTAMPTZ,
            S::LocalTime => TIME,
            S::LocalTimestamp => TIMESTAMP,
            S::CurrentUser
            | S::SessionUser
            | S::CurrentRole
            | S::CurrentCatalog
            | S::CurrentSchema => NAME,
        };
        let typmod = precision.map_or(-1, |p| p.clamp(0, 6));
        Expr::SqlValue { kind, ty: TypeRef { oid, typmod } }
    }

    pub fn collate(&mut self, arg: &ast::Expr, names: &[String], loc: Loc) -> Result<Expr> {
        let e = self.expr(arg)?;
        let ty = e.ty().oid;
        let collatable = ty == UNKNOWN
            || types::type_info(ty).is_some_and(|t| {
                t.collation.is_valid()
                    || element_type(ty)
                        .and_then(types::type_info)
                        .is_some_and(|e| e.collation.is_valid())
            });
        if !collatable {
            let e = err!(
                DATATYPE_MISMATCH,
                "collations are not supported by type {}",
                self.type_name_of(ty)
            );
            return self.at(loc, e);
        }
        let collation = self.collation(names, loc)?;
        Ok(Expr::Collate { arg: Box::new(e), collation: collation.0 })
    }

    pub fn collation(&self, names: &[String], loc: Loc) -> Result<base::Oid> {
        super::collation_of(names).or_else(|e| self.at(loc, e))
    }

    /// `x IS [NFC] NORMALIZED`
    pub fn is_normalized(
        &mut self,
        arg: &ast::Expr,
        form: &str,
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let value = self.expr(arg)?;
        let mut args = vec![(value, arg.loc)];
        if !form.is_empty() {
            let form = types::Datum::text(form);
            args.push((super::coerce::constant(TEXT, form), loc));
        }
        let e = self.call_named("is_normalized", args, expr::tree::CallForm::SqlSyntax, loc)?;
        Ok(if negated { Expr::Not(Box::new(e)) } else { e })
    }

    pub fn subscript(
        &mut self,
        arg: &ast::Expr,
        indexes: &[SubscriptIndex],
        loc: Loc,
    ) -> Result<Expr> {
        let declared = self.declared_expr(arg)?;
        let called = declared.ty().oid;
        let e = declared.plain();
        let ty = e.ty();
        if ty.oid == JSONB {
            let out = self.names_or_numbers(indexes, loc)?;
            return Ok(Expr::Subscript {
                arg: Box::new(e),
                indexes: out,
                slice: false,
                assign: None,
                ty,
            });
        }
        let element = match ty.oid {
            OIDVECTOR => Some(OID),
            INT2VECTOR => Some(INT2),
            NAME => Some(CHAR),
            t => element_type(t),
        };
        let Some(element) = element else {
            let e = err!(
                DATATYPE_MISMATCH,
                "cannot subscript type {} because it does not support subscripting",
                self.type_name_of(ty.oid)
            );
            return self.at(loc, e);
        };
        let (out, slice) = self.subscripts(indexes)?;
        let result = if slice {
            match ty.oid {
                INT2VECTOR => TypeRef::of(INT2_ARRAY),
                OIDVECTOR => TypeRef::of(OID_ARRAY),
                _ => ty,
            }
        } else {
            TypeRef { oid: element, typmod: ty.typmod }
        };
        let e = Expr::Subscript { arg: Box::new(e), indexes: out, slice, assign: None, ty: result };
        // An element of an array of a domain is of the domain.
        Ok(match element_type(called).filter(|_| types::domains::is_domain_array(called)) {
            Some(element) => e.declared(TypeRef::of(if slice { called } else { element })),
            None => e,
        })
    }

    /// The subscripts of a jsonb value.
    pub(super) fn names_or_numbers(
        &mut self,
        indexes: &[SubscriptIndex],
        loc: Loc,
    ) -> Result<Vec<(Option<Expr>, Option<Expr>)>> {
        let mut out = Vec::new();
        for i in indexes {
            let Some(x) = i.upper.as_ref().filter(|_| !i.slice) else {
                let e = err!(DATATYPE_MISMATCH, "jsonb subscript does not support slices");
                let at = i.upper.as_ref().or(i.lower.as_ref()).map_or(loc, |x| x.loc);
                return self.at(at, e);
            };
            let v = self.expr(x)?;
            let from = v.ty().oid;
            let to = if matches!(from, INT4 | INT2) { INT4 } else { TEXT };
            if !can_coerce(from, to, CastContext::Implicit) {
                let e = SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("subscript type {} is not supported", self.type_name_of(from)),
                )
                .hint("jsonb subscript must be coercible to either integer or text.");
                return self.at(x.loc, e.into());
            }
            out.push((None, Some(self.coerce_implicit(v, to, x.loc)?)));
        }
        Ok(out)
    }

    /// The subscripts of an array, and whether they name a slice.
    pub fn subscripts(
        &mut self,
        indexes: &[SubscriptIndex],
    ) -> Result<(Vec<(Option<Expr>, Option<Expr>)>, bool)> {
        let (slice, dimensions) = (indexes.iter().any(|i| i.slice), indexes.len());
        if dimensions > 6 {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({dimensions}) exceeds the maximum allowed (6)"
            ));
        }
        let mut out = Vec::new();
        for i in indexes {
            let mut lower = match &i.lower {
                Some(x) => Some(self.index_number(x)?),
                None => None,
            };
            let upper = match &i.upper {
                Some(x) => Some(self.index_number(x)?),
                None => None,
            };
            // a[2][1:3] means a[1:2][1:3]
            if slice && !i.slice {
                lower = Some(super::coerce::constant(INT4, types::Datum::Int4(1)));
            }
            out.push((lower, upper));
        }
        Ok((out, slice))
    }

    fn index_number(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.expr(e)?;
        if !can_coerce(x.ty().oid, INT4, CastContext::Assignment) {
            let e2 = err!(DATATYPE_MISMATCH, "array subscript must have type integer");
            return self.at(e.loc, e2);
        }
        self.coerce(x, TypeRef::of(INT4), CastContext::Assignment, false, e.loc)
    }

    /// The names and types of a row value's columns, where they are known.
    pub fn record_columns(&self, e: &Expr) -> Option<Vec<(String, TypeRef)>> {
        self.own_columns(e).or_else(|| self.columns_of_type(e.ty()))
    }

    /// The columns of a table's rows.
    fn columns_of_type(&self, ty: TypeRef) -> Option<Vec<(String, TypeRef)>> {
        if !super::coerce::is_composite(ty.oid) {
            return None;
        }
        let table = self.catalog.table_of_row_type(ty.oid).ok()??;
        let live = table.columns.iter().filter(|c| !c.dropped);
        Some(live.map(|c| (c.name.clone(), c.declared())).collect())
    }

    fn own_columns(&self, e: &Expr) -> Option<Vec<(String, TypeRef)>> {
        match e {
            Expr::Row { fields, names, .. } => {
                Some(names.iter().cloned().zip(fields.iter().map(Expr::ty)).collect())
            }
            Expr::Var { levels_up, rte, column, ty } => {
                let at = self.levels.len().checked_sub(1 + *levels_up as usize)?;
                let entry = self.levels[at].rtes.get(*rte)?;
                if *column == 0 {
                    return Some(
                        entry
                            .column_names
                            .iter()
                            .cloned()
                            .zip(entry.column_types.iter().copied())
                            .filter(|(n, _)| !n.is_empty())
                            .collect(),
                    );
                }
                if let RteKind::Subquery { query, .. } = &entry.kind {
                    let t = query.targets.iter().filter(|t| !t.hidden).nth(*column as usize - 1)?;
                    if let Expr::Row { fields, names, .. } = &t.expr {
                        return Some(
                            names.iter().cloned().zip(fields.iter().map(Expr::ty)).collect(),
                        );
                    }
                    if let Expr::Var { levels_up: 0, rte, column: 0, .. } = &t.expr {
                        let inner = query.range_table.get(*rte)?;
                        let names = self.own_names(inner);
                        let named = names.into_iter().zip(inner.column_types.iter().copied());
                        return Some(named.filter(|(n, _)| !n.is_empty()).collect());
                    }
                    return function_columns(&t.expr);
                }
                let _ = ty;
                None
            }
            Expr::Relabel { ty, .. } if super::coerce::is_composite(ty.oid) => {
                self.columns_of_type(*ty)
            }
            Expr::Relabel { arg, .. } => self.record_columns(arg),
            Expr::Param { number, .. } if self.params.outer.is_some() => self.outer_fields(*number),
            other => function_columns(other),
        }
    }

    /// The names of the columns of an entry's row: a table's or view's own, whatever an alias calls them where it stands.
    fn own_names(&self, entry: &RangeTableEntry) -> Vec<String> {
        let table = entry.described_by();
        let table = table.and_then(|oid| self.catalog.table_by_oid(base::Oid(oid)).ok()?);
        let mut names = entry.column_names.clone();
        if let Some(table) = table {
            let live = names.iter_mut().zip(&table.columns).filter(|(n, _)| !n.is_empty());
            live.for_each(|(name, column)| name.clone_from(&column.name));
        }
        names
    }

    /// `(row).name`
    pub fn field(&mut self, arg: &ast::Expr, field: &str, loc: Loc) -> Result<Expr> {
        let e = self.expr(arg)?;
        let columns = self.record_columns(&e);
        let Some(columns) = columns else {
            let ty = e.ty().oid;
            if ty == RECORD || super::coerce::is_composite(ty) {
                return self.at(loc, no_field(field));
            }
            let e = err!(
                WRONG_OBJECT_TYPE,
                "column notation .{field} applied to type {}, which is not a composite type",
                self.type_name_of(ty)
            );
            return self.at(loc, e);
        };
        let Some(index) = columns.iter().position(|(n, _)| n == field) else {
            if let Expr::Var { levels_up, rte, column: 0, .. } = &e
                && let Some(at) = self.levels.len().checked_sub(1 + *levels_up as usize)
                && let Some(entry) = self.levels[at].rtes.get(*rte)
            {
                let e = err!(UNDEFINED_COLUMN, "column {}.{field} does not exist", entry.alias);
                return self.at(loc, e);
            }
            let e = match e.ty().oid {
                RECORD => no_field(field),
                ty => {
                    let ty = self.type_name_of(ty);
                    err!(UNDEFINED_COLUMN, "column \"{field}\" not found in data type {ty}")
                }
            };
            return self.at(loc, e);
        };
        Ok(self.field_of(&e, index, &columns))
    }

    /// `(row).*`
    pub fn expand(&mut self, arg: &ast::Expr, loc: Loc) -> Result<Vec<(String, Expr)>> {
        let e = self.expr(arg)?;
        self.expand_row(e, loc)
    }

    /// The same, of what is analysed already.
    pub(super) fn expand_row(&mut self, e: Expr, loc: Loc) -> Result<Vec<(String, Expr)>> {
        let e = e.plain();
        let Some(columns) = self.record_columns(&e) else {
            let e =
                err!(WRONG_OBJECT_TYPE, "type {} is not composite", self.type_name_of(e.ty().oid));
            return self.at(loc, e);
        };
        let field = |i: usize| (columns[i].0.clone(), self.field_of(&e, i, &columns));
        Ok((0..columns.len()).map(field).collect())
    }

    pub(super) fn field_of(&self, e: &Expr, index: usize, columns: &[(String, TypeRef)]) -> Expr {
        let (name, ty) = columns[index].clone();
        match e {
            Expr::Row { fields, .. } => fields[index].clone(),
            // Of a whole row in sight it is the column.
            Expr::Var { levels_up, rte, column: 0, .. } => {
                let entry = self.levels.len().checked_sub(1 + *levels_up as usize);
                let entry = entry.and_then(|at| self.levels[at].rtes.get(*rte));
                let names = entry.map_or(&[][..], |entry| &entry.column_names);
                let shown = names.iter().enumerate().filter(|(_, n)| !n.is_empty());
                let column = shown.map(|(i, _)| i as i32 + 1).nth(index).unwrap_or(0);
                Expr::Var { levels_up: *levels_up, rte: *rte, column, ty: ty.base() }.declared(ty)
            }
            _ => {
                let arg = Box::new(e.clone());
                Expr::Field { arg, index, name, ty: ty.base() }.declared(ty)
            }
        }
    }
}

/// The output columns of a function that returns a record.
pub(crate) fn function_columns(e: &Expr) -> Option<Vec<(String, TypeRef)>> {
    if let Some(columns) = super::json_table::columns(e) {
        return Some(columns);
    }
    if let Some(columns) = super::json::template_columns(e) {
        return Some(columns.into_iter().map(|(name, ty)| (name, ty.base())).collect());
    }
    let Expr::Call { function, args, .. } = e else { return None };
    let oid = Oid(*function);
    let from_facts = types::facts::proc(oid).map(|p| {
        p.modes
            .iter()
            .enumerate()
            .filter(|(_, m)| matches!(**m, "o" | "b" | "t"))
            .filter_map(|(i, _)| {
                Some(((*p.arg_names.get(i)?).to_owned(), TypeRef::of(*p.all_args.get(i)?)))
            })
            .collect::<Vec<_>>()
    });
    let mut columns = match from_facts {
        Some(c) if !c.is_empty() => c,
        _ => types::registry::function(oid)?
            .columns
            .iter()
            .map(|(n, t)| ((*n).to_owned(), TypeRef::of(*t)))
            .collect(),
    };
    // A column of a polymorphic type has the type that the arguments settle.
    if columns.iter().any(|(_, t)| is_polymorphic(t.oid)) {
        let declared = types::registry::function(oid)?.args;
        let actual: Vec<Oid> = args.iter().map(|a| a.ty().oid).collect();
        for (_, ty) in &mut columns {
            *ty = TypeRef::of(settle(declared, &actual, ty.oid)?.1);
        }
    }
    if columns.is_empty() { None } else { Some(columns) }
}
