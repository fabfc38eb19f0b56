//! Sub-selects in expressions.

use super::Analyser;
use super::aggregates::of_query_around;
use super::coerce::array_type;
use crate::parse::ast::{self, ExprKind, Loc, OpName, Select};
use crate::query::{Query, TargetEntry};
use base::{Result, err};
use expr::{Expr, SubLinkKind, TypeRef};
use types::oids::BOOL;

/// Has it a sub-select in it?
pub(super) fn is_linked(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::SubLink { .. }))
}

/// Are they one expression? Sub-selects that were written twice have two numbers.
pub(super) fn are_same(a: &Expr, b: &Expr, subs: &[Query]) -> bool {
    a == b || is_linked(a) && is_linked(b) && numbered(a, subs) == numbered(b, subs)
}

/// Each sub-select under the first number that it has.
fn numbered(e: &Expr, subs: &[Query]) -> Expr {
    let mut e = e.clone();
    e.rewrite(&mut |e| {
        if let Expr::SubLink { subquery, .. } = e
            && let Some(sub) = subs.get(*subquery)
            && let Some(first) = subs.iter().position(|s| s == sub)
        {
            *subquery = first;
        }
        of_query_around(e)
    });
    e
}

impl Analyser<'_> {
    pub(super) fn are_same(&mut self, a: &Expr, b: &Expr) -> bool {
        are_same(a, b, &self.level().sub_selects)
    }

    /// An expression of GROUP BY, ORDER BY or DISTINCT ON that an output, or one of those, is already: that one, with its sub-selects.
    pub(super) fn as_written_before(&mut self, e: Expr, targets: &[TargetEntry]) -> Expr {
        if !is_linked(&e) {
            return e;
        }
        let level = self.level();
        let before = targets.iter().map(|t| t.expr.as_plain()).chain(&level.linked);
        for known in before {
            if are_same(known, &e, &level.sub_selects) {
                return known.clone();
            }
        }
        level.linked.push(e.clone());
        e
    }

    fn sub_query(&mut self, q: &Select, loc: Loc) -> Result<Query> {
        if let Some(why) = self.clause().no_subquery() {
            return self.at(loc, err!(FEATURE_NOT_SUPPORTED, "{why}"));
        }
        let mut q = self.nested(|a| a.select(q))?;
        q.plain_outputs();
        Ok(q)
    }

    fn add(&mut self, q: Query) -> usize {
        let list = &mut self.level().sub_selects;
        list.push(q);
        list.len() - 1
    }

    fn columns(q: &Query) -> Vec<TypeRef> {
        q.targets.iter().filter(|t| !t.hidden).map(|t| t.expr.ty()).collect()
    }

    pub fn exists(&mut self, q: &Select, loc: Loc) -> Result<Expr> {
        let q = self.sub_query(q, loc)?;
        let subquery = self.add(q);
        let ty = TypeRef::of(BOOL);
        Ok(Expr::SubLink { kind: SubLinkKind::Exists, subquery, test: None, ty })
    }

    fn one_column(&self, q: &Query, loc: Loc) -> Result<TypeRef> {
        match Self::columns(q).as_slice() {
            [one] => Ok(*one),
            [] => self.at(loc, err!(SYNTAX_ERROR, "subquery must return a column")),
            _ => self.at(loc, err!(SYNTAX_ERROR, "subquery must return only one column")),
        }
    }

    /// Fails unless a sub-select has one column.
    pub(super) fn must_be_one_column(&mut self, q: &Select, loc: Loc) -> Result<()> {
        let q = self.sub_query(q, loc)?;
        self.one_column(&q, loc).map(|_| ())
    }

    pub fn scalar(&mut self, q: &Select, loc: Loc) -> Result<Expr> {
        let q = self.sub_query(q, loc)?;
        let ty = self.one_column(&q, loc)?;
        let subquery = self.add(q);
        Ok(Expr::SubLink { kind: SubLinkKind::Scalar, subquery, test: None, ty })
    }

    pub fn array_select(&mut self, q: &Select, loc: Loc) -> Result<Expr> {
        let q = self.sub_query(q, loc)?;
        let element = self.one_column(&q, loc)?;
        let array = if super::coerce::element_type(element.oid).is_some() {
            Some(element.oid)
        } else {
            array_type(element.oid)
        };
        let Some(ty) = array else {
            let e = err!(
                UNDEFINED_OBJECT,
                "could not find array type for data type {}",
                self.type_name_of(element.oid)
            );
            return self.at(loc, e);
        };
        let subquery = self.add(q);
        let ty = TypeRef { oid: ty, typmod: element.typmod };
        Ok(Expr::SubLink { kind: SubLinkKind::Array, subquery, test: None, ty })
    }

    /// `left op ANY|ALL (SELECT …)`, IN.
    pub fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &OpName,
        any: bool,
        query: &Select,
        loc: Loc,
    ) -> Result<Expr> {
        let q = self.sub_query(query, loc)?;
        let columns = Self::columns(&q);
        let mut operands = Vec::new();
        match &left.kind {
            ExprKind::Row { fields, .. } => operands = self.spread(fields)?,
            _ => operands.push((self.expr(left)?, left.loc)),
        }
        self.column_count(operands.len(), columns.len(), loc)?;
        let pairs = operands
            .into_iter()
            .zip(columns.iter().enumerate())
            .map(|(l, (index, ty))| (l, (Expr::SubLinkColumn { index, ty: *ty }, loc)))
            .collect();
        let test = Some(Box::new(self.row_pairs(op, pairs, loc)?));
        let subquery = self.add(q);
        let kind = if any { SubLinkKind::Any } else { SubLinkKind::All };
        Ok(Expr::SubLink { kind, subquery, test, ty: TypeRef::of(BOOL) })
    }

    fn column_count(&self, left: usize, right: usize, loc: Loc) -> Result<()> {
        if left < right {
            return self.at(loc, err!(SYNTAX_ERROR, "subquery has too many columns"));
        }
        if left > right {
            return self.at(loc, err!(SYNTAX_ERROR, "subquery has too few columns"));
        }
        Ok(())
    }

    /// `(a, b) op (SELECT x, y)`: the row compared is the sub-select's only one.
    pub fn row_subquery(
        &mut self,
        op: &OpName,
        left: &ast::Expr,
        query: &Select,
        loc: Loc,
    ) -> Result<Expr> {
        let ExprKind::Row { fields, .. } = &left.kind else {
            return self.at(loc, err!(INTERNAL_ERROR, "not a row"));
        };
        let q = self.sub_query(query, loc)?;
        let columns = Self::columns(&q);
        let names: Vec<String> = q.targets.iter().map(|t| t.name.clone()).collect();
        let left = self.spread(fields)?;
        self.column_count(left.len(), columns.len(), loc)?;
        let subquery = self.add(q);
        let row = Expr::SubLink {
            kind: SubLinkKind::Row,
            subquery,
            test: None,
            ty: TypeRef::of(types::oids::RECORD),
        };
        let mut pairs = Vec::new();
        for (i, l) in left.into_iter().enumerate() {
            let field = Expr::Field {
                arg: Box::new(row.clone()),
                index: i,
                name: names[i].clone(),
                ty: columns[i],
            };
            pairs.push((l, (field, loc)));
        }
        self.row_pairs(op, pairs, loc)
    }
}
