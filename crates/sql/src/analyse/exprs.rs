//! Expressions.

use super::coerce::{
    agreed, array_type, bool_const, can_coerce, constant, element_type, is_polymorphic,
};
use super::{Analyser, Clause};
use crate::parse::ast::{self, ExprKind, Loc, OpName};
use base::{Oid, Result, bail, err};
use expr::{CaseWhen, Expr, TypeRef};
use types::facts::CastContext;
use types::oids::*;
use types::{Datum, Text};

pub(crate) fn op(name: &str) -> OpName {
    OpName { schema: None, name: name.to_owned() }
}

/// Is it an array that others may stack up with? Vectors and domains are none.
fn is_array(ty: Oid) -> bool {
    !matches!(ty, INT2VECTOR | OIDVECTOR) && element_type(ty).is_some()
}

impl Analyser<'_> {
    /// An expression; unknown literals stay unknown. What is of a domain is of its base.
    pub fn expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        self.declared_expr(e).map(Expr::plain)
    }

    /// The same, said to be of a domain if it is.
    pub fn declared_expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        match &e.kind {
            ExprKind::Column(names) => self.column(names, e.loc),
            ExprKind::Binary { .. } => self.operator_chain(e),
            ExprKind::Number(n) => self.number(n, e.loc),
            ExprKind::String(s) => Ok(constant(UNKNOWN, Datum::Text(Text::from(s.as_str())))),
            ExprKind::Null => Ok(constant(UNKNOWN, Datum::Null)),
            ExprKind::Bool(b) => Ok(bool_const(*b)),
            ExprKind::Param(n) => self.param(*n, e.loc),
            ExprKind::And(list) => Ok(Expr::And(self.conditions(list, "AND")?)),
            ExprKind::Or(list) => Ok(Expr::Or(self.conditions(list, "OR")?)),
            ExprKind::Not(arg) => {
                let a = self.expr(arg)?;
                Ok(Expr::Not(Box::new(self.boolean(a, "NOT", arg.loc)?)))
            }
            ExprKind::Call(call) => self.call(call, e.loc),
            ExprKind::Json(call) => self.json_call(call, e.loc),
            ExprKind::Cast { arg, ty } => self.cast(arg, ty, e.loc),
            _ => self.other_expr(e),
        }
    }

    fn other_expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let loc = e.loc;
        match &e.kind {
            ExprKind::Unary { op, arg } => {
                let a = self.expr(arg)?;
                self.prefix(op, (a, arg.loc), loc)
            }
            ExprKind::Is { arg, test, negated } => self.is_test(arg, *test, *negated, loc),
            ExprKind::IsDistinct { left, right, negated } => {
                self.is_distinct(left, right, *negated, loc)
            }
            ExprKind::Between { arg, low, high, negated, symmetric } => {
                self.between(arg, low, high, *negated, *symmetric, loc)
            }
            ExprKind::In { arg, list, negated } => self.in_list(arg, list, *negated, loc),
            ExprKind::InSelect { arg, query, negated } => {
                let e = self.quantified(arg, &op("="), true, query, loc)?;
                Ok(if *negated { Expr::Not(Box::new(e)) } else { e })
            }
            ExprKind::Like { kind, arg, pattern, escape, negated } => {
                self.like(*kind, arg, pattern, escape.as_deref(), *negated, loc)
            }
            ExprKind::AnyArray { left, op, any, right } => {
                self.any_array(left, op, *any, right, loc)
            }
            ExprKind::AnySelect { left, op, any, query } => {
                self.quantified(left, op, *any, query, loc)
            }
            ExprKind::Exists(q) => self.exists(q, loc),
            ExprKind::Subquery(q) => self.scalar(q, loc),
            ExprKind::ArraySelect(q) => self.array_select(q, loc),
            ExprKind::Array(list) => self.array(list, None, loc),
            ExprKind::Row { fields, .. } => self.row(fields, loc),
            ExprKind::Collate { arg, name } => self.collate(arg, name, loc),
            ExprKind::Case { operand, arms, otherwise } => self.without_sets("CASE", |a| {
                a.case(operand.as_deref(), arms, otherwise.as_deref(), loc)
            }),
            ExprKind::Coalesce(list) => {
                let (args, ty) = self.without_sets("COALESCE", |a| a.common(list, "COALESCE"))?;
                let ty = agreed(ty, args.iter());
                Ok(Expr::Coalesce { args, ty })
            }
            ExprKind::MinMax { greatest, args } => {
                let what = if *greatest { "GREATEST" } else { "LEAST" };
                let (args, ty) = self.common(args, what)?;
                self.must_be_sortable(ty, loc)?;
                let ty = agreed(ty, args.iter());
                Ok(Expr::MinMax { greatest: *greatest, args, ty })
            }
            ExprKind::NullIf(a, b) => self.null_if(a, b, loc),
            ExprKind::SqlValue { kind, precision } => Ok(self.sql_value(*kind, *precision)),
            ExprKind::Subscript { arg, indexes } => self.subscript(arg, indexes, loc),
            ExprKind::Field { arg, name } => self.field(arg, name, loc),
            ExprKind::FieldStar(_) => self.at(
                loc,
                err!(FEATURE_NOT_SUPPORTED, "row expansion via \"*\" is not supported here"),
            ),
            ExprKind::Star(names) => self.whole_row_star(names, loc),
            ExprKind::Default => {
                self.at(loc, err!(SYNTAX_ERROR, "DEFAULT is not allowed in this context"))
            }
            ExprKind::Grouping(args) => self.grouping(args, loc),
            ExprKind::BitString { hex, digits } => self.bit_string(*hex, digits, loc),
            _ => self.at(loc, err!(INTERNAL_ERROR, "unrecognized expression")),
        }
    }

    /// An expression whose type is settled: unknown literals become text.
    pub fn known_expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.expr(e)?;
        self.known(x, e.loc)
    }

    fn conditions(&mut self, list: &[ast::Expr], what: &str) -> Result<Vec<Expr>> {
        list.iter()
            .map(|e| {
                let x = self.expr(e)?;
                self.boolean(x, what, e.loc)
            })
            .collect()
    }

    fn bit_string(&mut self, hex: bool, digits: &str, loc: Loc) -> Result<Expr> {
        let mut bits = String::new();
        if hex {
            for c in digits.chars() {
                match c.to_digit(16) {
                    Some(d) => bits.push_str(&format!("{d:04b}")),
                    None => {
                        let e = err!(
                            INVALID_TEXT_REPRESENTATION,
                            "\"{c}\" is not a valid hexadecimal digit"
                        );
                        return self.at(loc, e);
                    }
                }
            }
        } else {
            bits.push_str(digits);
        }
        let e = constant(UNKNOWN, Datum::Text(Text::from(bits.as_str())));
        self.coerce_implicit(e, BIT, loc)
    }

    fn number(&mut self, text: &str, loc: Loc) -> Result<Expr> {
        if let Ok(n) = text.parse::<i32>() {
            return Ok(constant(INT4, Datum::Int4(n)));
        }
        if let Ok(n) = text.parse::<i64>() {
            return Ok(constant(INT8, Datum::Int8(n)));
        }
        match types::text_input(NUMERIC, -1, text, self.env) {
            Ok(v) => Ok(constant(NUMERIC, v)),
            Err(e) => self.at(loc, e),
        }
    }

    fn param(&mut self, n: u32, loc: Loc) -> Result<Expr> {
        let len = self.params.types.len();
        if n == 0 || (n as usize > len && !self.params.variable) || n > 65535 {
            let e = err!(UNDEFINED_PARAMETER, "there is no parameter ${n}");
            return self.at(loc, e);
        }
        if n as usize > len {
            self.params.types.resize(n as usize, Oid::INVALID);
        }
        let ty = self.params.types[n as usize - 1];
        if ty.is_valid() && !crate::names::is_type(self.catalog, ty)? {
            bail!(INTERNAL_ERROR, "cache lookup failed for type {ty}");
        }
        let ty = TypeRef::of(if ty.is_valid() { ty } else { UNKNOWN });
        Ok(Expr::Param { number: n, ty: TypeRef::of(ty.base().oid) }.declared(ty))
    }

    /// `a`, `t.a`, `s.t.a`, `d.s.t.a`
    fn column(&mut self, names: &[String], loc: Loc) -> Result<Expr> {
        self.column_allowed(loc)?;
        let e = self.any_column(names, loc)?;
        if self.clause() == Clause::MergeWhen
            && let Expr::Var { levels_up: 0, column, .. } = e
            && (-5..0).contains(&column)
        {
            let name = names.last().map_or("", String::as_str);
            let e = err!(
                INVALID_COLUMN_REFERENCE,
                "cannot use system column \"{name}\" in MERGE WHEN condition"
            );
            return self.at(loc, e);
        }
        Ok(e)
    }

    fn any_column(&mut self, names: &[String], loc: Loc) -> Result<Expr> {
        self.or_outer(names, false, loc, |a| a.column_in_query(names, loc), |_, found| Ok(found))
    }

    fn column_in_query(&mut self, names: &[String], loc: Loc) -> Result<Expr> {
        match names {
            [column] => {
                if let Some(e) = self.bare_column(column, loc)? {
                    return Ok(e);
                }
                if let Some((up, i)) = self.find_item(None, column, loc)? {
                    return Ok(self.whole_row(up, i, loc));
                }
                self.no_column(column, loc)
            }
            [table, column] => {
                if let Some(e) = self.qualified_column(None, table, column, loc)? {
                    return Ok(e);
                }
                self.no_table(table, loc)
            }
            [schema, table, column] => {
                if let Some(e) = self.qualified_column(Some(schema), table, column, loc)? {
                    return Ok(e);
                }
                self.no_table(table, loc)
            }
            [database, schema, table, column] => {
                if *database != self.catalog.database_name() {
                    let e = err!(
                        FEATURE_NOT_SUPPORTED,
                        "cross-database references are not implemented: {}",
                        names.join(".")
                    );
                    return self.at(loc, e);
                }
                if let Some(e) = self.qualified_column(Some(schema), table, column, loc)? {
                    return Ok(e);
                }
                self.no_table(table, loc)
            }
            _ => {
                let e = err!(
                    SYNTAX_ERROR,
                    "improper qualified name (too many dotted names): {}",
                    names.join(".")
                );
                self.at(loc, e)
            }
        }
    }

    pub(super) fn column_allowed(&self, loc: Loc) -> Result<()> {
        let message = match self.clause() {
            Clause::Default => "cannot use column reference in DEFAULT expression",
            Clause::Partition => "cannot use column reference in partition bound expression",
            _ => return Ok(()),
        };
        self.at(loc, err!(FEATURE_NOT_SUPPORTED, "{message}"))
    }

    fn null_if(&mut self, a: &ast::Expr, b: &ast::Expr, loc: Loc) -> Result<Expr> {
        let l = (self.expr(a)?, a.loc);
        let r = (self.expr(b)?, b.loc);
        let (function, operator, left, right) = self.equality(l, r, loc)?;
        let ty = left.ty();
        Ok(Expr::NullIf { function, operator, left, right, ty })
    }

    /// Several expressions brought to one type.
    pub fn common(&mut self, list: &[ast::Expr], what: &str) -> Result<(Vec<Expr>, Oid)> {
        let mut made = Vec::with_capacity(list.len());
        for e in list {
            made.push((self.expr(e)?, e.loc));
        }
        let types: Vec<(Oid, Loc)> = made.iter().map(|(e, l)| (e.ty().oid, *l)).collect();
        let ty = self.common_type(&types, what)?;
        let mut out = Vec::with_capacity(made.len());
        for (e, l) in made {
            out.push(self.to_common(e, ty, what, l)?);
        }
        Ok((out, ty))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        arms: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
        loc: Loc,
    ) -> Result<Expr> {
        let operand = match operand {
            None => None,
            Some(o) => Some((self.known_expr(o)?, o.loc)),
        };
        let mut made = Vec::new();
        for (when, then) in arms {
            let w = self.expr(when)?;
            let w = match &operand {
                Some((o, at)) => {
                    let test = Expr::CaseTestValue(TypeRef::of(o.ty().oid));
                    self.binary(&op("="), (test, *at), (w, when.loc), when.loc)?
                }
                None => w,
            };
            let w = self.boolean(w, "CASE/WHEN", when.loc)?;
            made.push((w, self.expr(then)?, then.loc));
        }
        let last = match otherwise {
            None => None,
            Some(e) => Some((self.expr(e)?, e.loc)),
        };
        // PostgreSQL lets ELSE be first in choosing the type.
        let mut types: Vec<(Oid, Loc)> = Vec::new();
        types.push(last.as_ref().map_or((UNKNOWN, loc), |(e, l)| (e.ty().oid, *l)));
        types.extend(made.iter().map(|(_, e, l)| (e.ty().oid, *l)));
        let ty = self.common_type(&types, "CASE")?;
        let mut out = Vec::new();
        for (when, then, l) in made {
            out.push(CaseWhen { when, then: self.to_common(then, ty, "CASE/THEN", l)? });
        }
        let otherwise = match last {
            None => None,
            Some((e, l)) => Some(Box::new(self.to_common(e, ty, "CASE/ELSE", l)?)),
        };
        let operand = operand.map(|(o, _)| Box::new(o));
        // Without ELSE there is a NULL that no modifier was said of.
        let ty = match &otherwise {
            Some(e) => agreed(ty, out.iter().map(|arm| &arm.then).chain([&**e])),
            None => TypeRef::of(ty),
        };
        Ok(Expr::Case { operand, arms: out, otherwise, ty })
    }

    fn cast(&mut self, arg: &ast::Expr, ty: &ast::TypeName, loc: Loc) -> Result<Expr> {
        let target = self.type_ref(ty)?;
        let to = target.base();
        if ty.setof {
            let e = err!(SYNTAX_ERROR, "cannot cast to SETOF");
            return self.at(loc, e);
        }
        // ARRAY[…]::t[] casts the elements
        if let (ExprKind::Array(list), Some(element)) = (&arg.kind, element_type(to.oid)) {
            let e = self.array(list, Some(TypeRef { oid: element, typmod: to.typmod }), arg.loc)?;
            return self.coerce(e, target, CastContext::Explicit, true, loc);
        }
        let e = self.declared_expr(arg)?;
        let from = e.ty().oid;
        if !can_coerce(from, to.oid, CastContext::Explicit)
            || types::type_info(to.oid).is_some_and(|t| t.kind == 'p' && to.oid != RECORD)
                && !(is_polymorphic(to.oid) || to.oid == ANY)
                && from != to.oid
                && from != UNKNOWN
        {
            return self.cannot_cast(from, target.oid, loc);
        }
        if let (Expr::Const(_), UNKNOWN) = (&e, from) {
            return self.coerce(e, target, CastContext::Explicit, true, arg.loc);
        }
        self.coerce(e, target, CastContext::Explicit, true, loc)
    }

    pub fn array(
        &mut self,
        list: &[ast::Expr],
        element: Option<TypeRef>,
        loc: Loc,
    ) -> Result<Expr> {
        let mut made = Vec::with_capacity(list.len());
        let mut nested = false;
        for e in list {
            let x = match (&e.kind, element) {
                (ExprKind::Array(inner), _) => {
                    nested = true;
                    self.array(inner, element, e.loc)?
                }
                _ => self.expr(e)?,
            };
            made.push((x, e.loc));
        }
        if made.is_empty() {
            let Some(element) = element else {
                let e = base::SqlError::new(
                    base::SqlState::INDETERMINATE_DATATYPE,
                    "cannot determine type of empty array",
                )
                .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].");
                return self.at(loc, e.into());
            };
            let ty = array_type(element.oid).unwrap_or(TEXT_ARRAY);
            return Ok(Expr::Array {
                elements: Vec::new(),
                element_type: TypeRef::of(element.oid),
                multidim: false,
                ty: TypeRef::of(ty),
            });
        }
        // Elements that are arrays stack up, NULL beside them.
        let multidim = nested || made.iter().any(|(e, _)| is_array(e.ty().oid));
        let types: Vec<(Oid, Loc)> = made.iter().map(|(e, l)| (e.ty().oid, *l)).collect();
        let to = match element {
            Some(t) if multidim => TypeRef::of(array_type(t.oid).unwrap_or(TEXT_ARRAY)),
            Some(t) => t,
            None => TypeRef::of(self.common_type(&types, "ARRAY")?),
        };
        let mut elements = Vec::new();
        for (e, l) in made {
            elements.push(match element {
                Some(_) => {
                    if !can_coerce(e.ty().oid, to.oid, CastContext::Explicit) {
                        return self.cannot_cast(e.ty().oid, to.oid, l);
                    }
                    self.coerce(e, to, CastContext::Explicit, true, l)?
                }
                None => self.to_common(e, to.oid, "ARRAY", l)?,
            });
        }
        let (element_oid, ty) = if multidim {
            (element_type(to.oid).unwrap_or(TEXT), to.oid)
        } else {
            match array_type(to.oid) {
                Some(a) => (to.oid, a),
                None => {
                    let e = err!(
                        UNDEFINED_OBJECT,
                        "could not find array type for data type {}",
                        self.type_name_of(to.oid)
                    );
                    return self.at(loc, e);
                }
            }
        };
        let typmod = agreed(to.oid, elements.iter()).typmod;
        Ok(Expr::Array {
            elements,
            element_type: TypeRef::of(element_oid),
            multidim,
            ty: TypeRef { oid: ty, typmod },
        })
    }

    /// A list's expressions, with what `t.*` and `(row).*` stand for in their places.
    pub(super) fn spread(&mut self, list: &[ast::Expr]) -> Result<Vec<(Expr, Loc)>> {
        let mut out = Vec::with_capacity(list.len());
        for e in list {
            match self.star_target(e)? {
                Some(columns) => out.extend(columns.into_iter().map(|(_, x)| (x.plain(), e.loc))),
                None => out.push((self.expr(e)?, e.loc)),
            }
        }
        Ok(out)
    }

    pub(super) fn row(&mut self, fields: &[ast::Expr], loc: Loc) -> Result<Expr> {
        let mut out = Vec::new();
        for (e, loc) in self.spread(fields)? {
            out.push(self.known(e, loc)?);
        }
        if out.len() > 1664 {
            let e = err!(TOO_MANY_COLUMNS, "ROW expressions can have at most 1664 entries");
            return self.at(loc, e);
        }
        let names = (1..=out.len()).map(|i| format!("f{i}")).collect();
        Ok(Expr::Row { fields: out, names, ty: TypeRef::of(RECORD) })
    }
}
