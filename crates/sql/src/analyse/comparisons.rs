//! Comparisons: operators and chains of them, rows, BETWEEN, IN, ANY, LIKE, IS.

use super::Analyser;
use super::coerce::{array_type, element_type, is_composite};
use super::exprs::op;
use crate::parse::ast::{self, ExprKind, IsTest, LikeKind, Loc, OpName};
use base::{Result, err};
use expr::tree::{CallForm, RowCompareOp};
use expr::{BoolTestKind, Expr, TypeRef};
use types::oids::*;

impl Analyser<'_> {
    /// A chain `a + b + c …` is worked off without recursion on its left side.
    pub(super) fn operator_chain(&mut self, e: &ast::Expr) -> Result<Expr> {
        let mut chain = Vec::new();
        let mut at = e;
        while let ExprKind::Binary { op, left, right } = &at.kind {
            chain.push((op, right, at.loc, left));
            at = left;
        }
        let mut left = if matches!(at.kind, ExprKind::Row { .. }) {
            None
        } else {
            Some((self.expr(at)?, at.loc))
        };
        for (op, right, loc, left_ast) in chain.into_iter().rev() {
            let is_row = |e: &ast::Expr| matches!(&e.kind, ExprKind::Row { .. });
            let made = if is_row(left_ast) && is_row(right) {
                self.row_comparison(op, left_ast, right, loc)?
            } else if is_row(left_ast) && matches!(right.kind, ExprKind::Subquery(_)) {
                let ExprKind::Subquery(q) = &right.kind else {
                    return self.at(loc, err!(INTERNAL_ERROR, "not a sub-select"));
                };
                self.row_subquery(op, left_ast, q, loc)?
            } else {
                let l = match left.take() {
                    Some(l) => l,
                    None => (self.expr(left_ast)?, left_ast.loc),
                };
                let r = self.expr(right)?;
                self.binary(op, l, (r, right.loc), loc)?
            };
            left = Some((made, loc));
        }
        match left {
            Some((e, _)) => Ok(e),
            None => self.at(e.loc, err!(INTERNAL_ERROR, "empty operator chain")),
        }
    }

    fn row_comparison(
        &mut self,
        op: &OpName,
        left: &ast::Expr,
        right: &ast::Expr,
        loc: Loc,
    ) -> Result<Expr> {
        let (ExprKind::Row { fields: l, .. }, ExprKind::Row { fields: r, .. }) =
            (&left.kind, &right.kind)
        else {
            return self.at(loc, err!(INTERNAL_ERROR, "not a row comparison"));
        };
        let (l, r) = (self.spread(l)?, self.spread(r)?);
        if l.len() != r.len() {
            let e = err!(SYNTAX_ERROR, "unequal number of entries in row expressions");
            return self.at(loc, e);
        }
        if l.is_empty() {
            let e = err!(FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length");
            return self.at(loc, e);
        }
        self.row_pairs(op, l.into_iter().zip(r).collect(), loc)
    }

    /// Compares pair by pair.
    pub fn row_pairs(
        &mut self,
        op: &OpName,
        pairs: Vec<((Expr, Loc), (Expr, Loc))>,
        loc: Loc,
    ) -> Result<Expr> {
        let mut tests = Vec::new();
        for (a, b) in pairs {
            let e = self.binary(op, a, b, loc)?;
            tests.push(self.must_be_bool(e, op, loc)?);
        }
        if tests.len() == 1 {
            return Ok(tests.swap_remove(0));
        }
        let op = match op.name.as_str() {
            "=" => return Ok(Expr::And(tests)),
            "<>" => return Ok(Expr::Or(tests)),
            "<" => RowCompareOp::Lt,
            "<=" => RowCompareOp::Le,
            ">" => RowCompareOp::Gt,
            ">=" => RowCompareOp::Ge,
            other => {
                let e = err!(
                    FEATURE_NOT_SUPPORTED,
                    "could not determine interpretation of row comparison operator {other}"
                );
                return self.at(loc, e);
            }
        };
        let (mut operators, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for t in tests {
            if let Expr::Call { operator, mut args, .. } = t {
                operators.push(operator);
                if let (Some(r), Some(l)) = (args.pop(), args.pop()) {
                    left.push(l);
                    right.push(r);
                }
            }
        }
        Ok(Expr::RowCompare { op, operators, left, right })
    }

    fn must_be_bool(&self, e: Expr, op: &OpName, loc: Loc) -> Result<Expr> {
        if e.ty().oid == BOOL {
            return Ok(e);
        }
        let e = err!(
            DATATYPE_MISMATCH,
            "row comparison operator must yield type boolean, not type {}",
            self.type_name_of(e.ty().oid)
        );
        let _ = op;
        self.at(loc, e)
    }

    pub(super) fn between(
        &mut self,
        arg: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        symmetric: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let a = self.expr(arg)?;
        let l = self.expr(low)?;
        let h = self.expr(high)?;
        // A parameter is of the type that the first comparison has found for it.
        let side = |s: &mut Self, name: &str, b: &Expr, at: Loc| {
            let (a, b) = (s.inferred(a.clone()), s.inferred(b.clone()));
            s.binary(&op(name), (a, arg.loc), (b, at), loc)
        };
        let one = |s: &mut Self, l: (&Expr, Loc), h: (&Expr, Loc)| -> Result<Expr> {
            Ok(if negated {
                Expr::Or(vec![side(s, "<", l.0, l.1)?, side(s, ">", h.0, h.1)?])
            } else {
                Expr::And(vec![side(s, ">=", l.0, l.1)?, side(s, "<=", h.0, h.1)?])
            })
        };
        let first = one(self, (&l, low.loc), (&h, high.loc))?;
        if !symmetric {
            return Ok(first);
        }
        let second = one(self, (&h, high.loc), (&l, low.loc))?;
        let both = vec![first, second];
        Ok(if negated { Expr::And(both) } else { Expr::Or(both) })
    }

    pub(super) fn in_list(
        &mut self,
        arg: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let name = op(if negated { "<>" } else { "=" });
        if matches!(arg.kind, ExprKind::Row { .. }) {
            let mut tests = Vec::new();
            for item in list {
                tests.push(if matches!(item.kind, ExprKind::Row { .. }) {
                    self.row_comparison(&name, arg, item, loc)?
                } else {
                    let l = (self.expr(arg)?, arg.loc);
                    let r = (self.expr(item)?, item.loc);
                    self.binary(&name, l, r, loc)?
                });
            }
            return Ok(match tests.len() {
                1 => tests.swap_remove(0),
                _ if negated => Expr::And(tests),
                _ => Expr::Or(tests),
            });
        }
        let left = self.expr(arg)?;
        let mut items = Vec::with_capacity(list.len());
        for i in list {
            items.push((self.expr(i)?, i.loc));
        }
        let has_var = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Var { .. }));
        let (vars, plain): (Vec<_>, Vec<_>) = items.into_iter().partition(|(e, _)| has_var(e));
        let mut tests = Vec::new();
        let mut rest = vars;
        if plain.len() > 1 {
            let mut types = vec![(left.ty().oid, arg.loc)];
            types.extend(plain.iter().map(|(e, l)| (e.ty().oid, *l)));
            let common = self.common_type(&types, "IN").ok();
            match common.filter(|c| *c != RECORD).and_then(|c| Some((c, array_type(c)?))) {
                Some((element, array)) => {
                    let mut elements = Vec::new();
                    for (e, l) in plain {
                        elements.push(self.coerce_implicit(e, element, l)?);
                    }
                    let array = Expr::Array {
                        elements,
                        element_type: TypeRef::of(element),
                        multidim: false,
                        ty: TypeRef::of(array),
                    };
                    tests.push(self.scalar_array(
                        (left.clone(), arg.loc),
                        &name,
                        !negated,
                        (array, loc),
                        loc,
                    )?);
                }
                None => rest.extend(plain),
            }
        } else {
            rest.splice(0..0, plain);
        }
        for (r, at) in rest {
            let (l, r) = (self.inferred(left.clone()), self.inferred(r));
            tests.push(self.binary(&name, (l, arg.loc), (r, at), loc)?);
        }
        Ok(match tests.len() {
            1 => tests.swap_remove(0),
            _ if negated => Expr::And(tests),
            _ => Expr::Or(tests),
        })
    }

    /// `left op ANY|ALL (array)`
    fn scalar_array(
        &mut self,
        left: (Expr, Loc),
        op: &OpName,
        any: bool,
        array: (Expr, Loc),
        loc: Loc,
    ) -> Result<Expr> {
        let (mut l, lloc) = left;
        let (mut r, rloc) = array;
        let wrong = |s: &Self, t: &str| {
            let e = err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires {t} on right side");
            s.at(loc, e)
        };
        let rt = r.ty().oid;
        let element = if rt == UNKNOWN {
            UNKNOWN
        } else {
            match element_type(rt) {
                Some(e) => e,
                None if rt == ANYARRAY => ANYELEMENT,
                None => return wrong(self, "array"),
            }
        };
        let o = self.find_operator(op, Some(l.ty().oid), element, loc)?;
        if o.result != BOOL {
            let e =
                err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires operator to yield boolean");
            return self.at(loc, e);
        }
        let declared = super::calls::settle(&[o.left, o.right], &[l.ty().oid, element], o.result)
            .map_or([o.left, o.right], |(d, _)| [d[0], d[1]]);
        l = self.coerce_implicit(l, declared[0], lloc)?;
        if let Some(array) = array_type(declared[1])
            && (rt == UNKNOWN
                || (element != declared[1] && !super::coerce::is_polymorphic(declared[1])))
        {
            r = self.coerce_implicit(r, array, rloc)?;
        }
        Ok(Expr::ScalarArrayOp {
            function: o.function.0,
            operator: o.oid.0,
            any,
            left: Box::new(l),
            array: Box::new(r),
        })
    }

    pub(super) fn any_array(
        &mut self,
        left: &ast::Expr,
        op: &OpName,
        any: bool,
        right: &ast::Expr,
        loc: Loc,
    ) -> Result<Expr> {
        let l = self.expr(left)?;
        let r = self.expr(right)?;
        self.scalar_array((l, left.loc), op, any, (r, right.loc), loc)
    }

    pub(super) fn like(
        &mut self,
        kind: LikeKind,
        arg: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let a = self.expr(arg)?;
        let mut p = self.expr(pattern)?;
        if kind == LikeKind::Similar {
            let mut args = vec![(p, pattern.loc)];
            if let Some(e) = escape {
                args.push((self.expr(e)?, e.loc));
            }
            p = self.call_named("similar_to_escape", args, CallForm::Function, loc)?;
        } else if let Some(e) = escape {
            let x = self.expr(e)?;
            let args = vec![(p, pattern.loc), (x, e.loc)];
            p = self.call_named("like_escape", args, CallForm::Function, loc)?;
        }
        let name = match (kind, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::Similar, false) => "~",
            (LikeKind::Similar, true) => "!~",
        };
        self.binary(&op(name), (a, arg.loc), (p, pattern.loc), loc)
    }

    pub(super) fn is_test(
        &mut self,
        arg: &ast::Expr,
        test: IsTest,
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let kind = match (test, negated) {
            (IsTest::Null, _) => {
                let a = self.expr(arg)?;
                return Ok(Expr::IsNull { arg: Box::new(a), negated });
            }
            (IsTest::True, false) => BoolTestKind::IsTrue,
            (IsTest::True, true) => BoolTestKind::IsNotTrue,
            (IsTest::False, false) => BoolTestKind::IsFalse,
            (IsTest::False, true) => BoolTestKind::IsNotFalse,
            (IsTest::Unknown, false) => BoolTestKind::IsUnknown,
            (IsTest::Unknown, true) => BoolTestKind::IsNotUnknown,
            (IsTest::Json { kind, unique_keys }, _) => {
                return self.is_json(arg, kind, unique_keys, negated, loc);
            }
            (IsTest::Normalized(form), _) => {
                return self.is_normalized(arg, form, negated, loc);
            }
            (IsTest::Document, _) => {
                return self.at(loc, base::Error::unsupported("IS DOCUMENT"));
            }
        };
        let what = match kind {
            BoolTestKind::IsTrue => "IS TRUE",
            BoolTestKind::IsNotTrue => "IS NOT TRUE",
            BoolTestKind::IsFalse => "IS FALSE",
            BoolTestKind::IsNotFalse => "IS NOT FALSE",
            BoolTestKind::IsUnknown => "IS UNKNOWN",
            BoolTestKind::IsNotUnknown => "IS NOT UNKNOWN",
        };
        let a = self.expr(arg)?;
        let a = self.boolean(a, what, arg.loc)?;
        Ok(Expr::BoolTest { arg: Box::new(a), kind })
    }

    pub(super) fn is_distinct(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let null = |e: &ast::Expr| matches!(e.kind, ExprKind::Null);
        if null(left) || null(right) {
            let arg = if null(right) { left } else { right };
            let a = self.expr(arg)?;
            // A row of NULLs is a row.
            if !(a.ty().oid == RECORD || is_composite(a.ty().oid)) {
                return Ok(Expr::IsNull { arg: Box::new(a), negated: !negated });
            }
        }
        if let (ExprKind::Row { fields: l, .. }, ExprKind::Row { fields: r, .. }) =
            (&left.kind, &right.kind)
        {
            let (l, r) = (self.spread(l)?, self.spread(r)?);
            if l.len() != r.len() {
                let e = err!(SYNTAX_ERROR, "unequal number of entries in row expressions");
                return self.at(loc, e);
            }
            let tests: Result<Vec<Expr>> =
                l.into_iter().zip(r).map(|(a, b)| self.distinct_pair(a, b, negated, loc)).collect();
            return Ok(if negated { Expr::And(tests?) } else { Expr::Or(tests?) });
        }
        let l = (self.expr(left)?, left.loc);
        let r = (self.expr(right)?, right.loc);
        self.distinct_pair(l, r, negated, loc)
    }

    fn distinct_pair(
        &mut self,
        l: (Expr, Loc),
        r: (Expr, Loc),
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let (function, operator, left, right) = self.equality(l, r, loc)?;
        Ok(Expr::Distinct { function, operator, left, right, negated })
    }

    /// `=` of two operands, taken apart.
    pub(super) fn equality(
        &mut self,
        l: (Expr, Loc),
        r: (Expr, Loc),
        loc: Loc,
    ) -> Result<(u32, u32, Box<Expr>, Box<Expr>)> {
        let e = self.binary(&op("="), l, r, loc)?;
        match e {
            Expr::Call { function, operator, mut args, .. } if args.len() == 2 => {
                let right = Box::new(args.swap_remove(1));
                let left = Box::new(args.swap_remove(0));
                Ok((function, operator, left, right))
            }
            _ => self.at(loc, err!(INTERNAL_ERROR, "equality is no call")),
        }
    }
}
