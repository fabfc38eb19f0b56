//! UNION, INTERSECT, EXCEPT, and recursive WITH queries, which are unions.

use super::from::subquery_entry;
use super::{Analyser, Clause};
use crate::parse::ast::{CteDefinition, ExprKind, Loc, QueryStatement, Select, SelectBody};
use crate::parse::references::{mentions, misplaced, statement_mentions};
use crate::query::{
    Command, Cte, Distinct, FromItem, Query, RangeTableEntry, RteKind, SetOp, SetOperation,
    TargetEntry,
};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::tree::SortKey;
use expr::{Expr, TypeRef};

fn word(op: SetOp) -> &'static str {
    match op {
        SetOp::Union => "UNION",
        SetOp::Intersect => "INTERSECT",
        SetOp::Except => "EXCEPT",
    }
}

impl Analyser<'_> {
    /// A set operation in the current level.
    pub fn set_operation(&mut self, s: &Select) -> Result<Query> {
        let bare = Select {
            with: None,
            body: s.body.clone(),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
            locking: Vec::new(),
            loc: s.loc,
        };
        let (tree, types) = self.set_tree(&bare)?;
        self.finish_set(s, tree, types)
    }

    fn finish_set(&mut self, s: &Select, tree: SetOperation, types: Vec<TypeRef>) -> Result<Query> {
        if let Some(l) = s.locking.first() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{} is not allowed with UNION/INTERSECT/EXCEPT",
                super::locking::lock_name(l.strength)
            ));
        }
        let left = leftmost(&tree);
        let names = self.level().rtes[left].column_names.clone();
        let targets: Vec<TargetEntry> = names
            .iter()
            .zip(&types)
            .enumerate()
            .map(|(i, (n, ty))| TargetEntry {
                expr: Expr::Var { levels_up: 0, rte: left, column: i as i32 + 1, ty: *ty },
                name: n.clone(),
                target_column: None,
                origin: (0, 0),
                hidden: false,
            })
            .collect();
        let mut order_by = Vec::new();
        for k in &s.order_by {
            let index = match (self.output_column(&k.expr, &targets, "ORDER BY")?, &k.expr.kind) {
                (Some(i), _) => i,
                (None, ExprKind::Column(c)) if c.len() == 1 => {
                    return self.no_column(&c[0], k.expr.loc);
                }
                (None, ExprKind::Column(c)) if c.len() > 1 => {
                    return self.no_table(&c[c.len() - 2], k.expr.loc);
                }
                _ => {
                    let e = SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    )
                    .detail("Only result column names can be used, not expressions or functions.")
                    .hint(
                        "Add the expression/function to every SELECT, or move the UNION into a \
                         FROM clause.",
                    );
                    return self.at(k.expr.loc, e.into());
                }
            };
            self.must_be_sortable(types[index].oid, k.expr.loc)?;
            self.ordering_operator(k)?;
            order_by.push(SortKey {
                expr: Expr::Slot { index, ty: types[index] },
                descending: k.descending,
                nulls_first: k.nulls_first.unwrap_or(k.descending),
            });
        }
        let saved = self.enter(Clause::Limit);
        let (limit, offset) = self.limits(s)?;
        self.enter(saved);
        let mut q = self.gather(Command::Select);
        q.targets = targets;
        q.set_operation = Some(tree);
        q.order_by = order_by;
        q.limit = limit;
        q.limit_with_ties = s.with_ties;
        q.offset = offset;
        Ok(q)
    }

    /// The tree of a set operation whose leaves become sub-selects; its column types.
    fn set_tree(&mut self, s: &Select) -> Result<(SetOperation, Vec<TypeRef>)> {
        let node = s.with.is_none()
            && s.order_by.is_empty()
            && s.limit.is_none()
            && s.offset.is_none()
            && s.locking.is_empty();
        let SelectBody::SetOp { op, all, left, right, loc } = &s.body else {
            return self.leaf(s);
        };
        if !node {
            return self.leaf(s);
        }
        let (mut l, lt) = self.set_tree(left)?;
        let (mut r, rt) = self.set_tree(right)?;
        let types = self.match_sides(*op, *all, &mut l, lt, &mut r, rt, (left, right), *loc)?;
        let tree = SetOperation::Node {
            op: *op,
            all: *all,
            left: Box::new(l),
            right: Box::new(r),
            types: types.clone(),
            given_as: Vec::new(),
        };
        Ok((tree, types))
    }

    fn leaf(&mut self, s: &Select) -> Result<(SetOperation, Vec<TypeRef>)> {
        let mut q = self.nested(|a| a.select_with(s, true))?;
        q.plain_outputs();
        let types = q.targets.iter().filter(|t| !t.hidden).map(|t| t.expr.ty()).collect();
        let level = self.level();
        level.rtes.push(subquery_entry(q, false));
        Ok((SetOperation::Leaf(level.rtes.len() - 1), types))
    }

    #[allow(clippy::too_many_arguments, reason = "two sides of three parts each")]
    fn match_sides(
        &mut self,
        op: SetOp,
        all: bool,
        l: &mut SetOperation,
        lt: Vec<TypeRef>,
        r: &mut SetOperation,
        rt: Vec<TypeRef>,
        sides: (&Select, &Select),
        loc: Loc,
    ) -> Result<Vec<TypeRef>> {
        if lt.len() != rt.len() {
            let e =
                err!(SYNTAX_ERROR, "each {} query must have the same number of columns", word(op));
            return self.at(first_loc(sides.1), e);
        }
        let mut types = Vec::new();
        for (i, (a, b)) in lt.iter().zip(&rt).enumerate() {
            let list: Vec<(Oid, Loc)> = vec![
                (a.oid, column_loc(sides.0, i).unwrap_or(loc)),
                (b.oid, column_loc(sides.1, i).unwrap_or(loc)),
            ];
            let oid = self.common_type(&list, word(op))?;
            let typmod = if a == b { a.typmod } else { -1 };
            if !(op == SetOp::Union && all) {
                self.must_be_equatable(oid, loc)?;
            }
            types.push(TypeRef { oid, typmod });
        }
        self.convert(l, &types, word(op), sides.0)?;
        self.convert(r, &types, word(op), sides.1)?;
        Ok(types)
    }

    /// Makes a side yield these types: every leaf of it, or what compares their rows by the types that they have.
    fn convert(
        &mut self,
        tree: &mut SetOperation,
        types: &[TypeRef],
        what: &str,
        ast: &Select,
    ) -> Result<()> {
        let differ = |own: &[TypeRef]| own.iter().zip(types).any(|(o, t)| o.oid != t.oid);
        match tree {
            SetOperation::Node { op, all, types: own, given_as, .. }
                if !(*op == SetOp::Union && *all) && (!given_as.is_empty() || differ(own)) =>
            {
                let slot = |(index, ty): (usize, &TypeRef)| Expr::Slot { index, ty: *ty };
                let before = match given_as.is_empty() {
                    true => own.iter().enumerate().map(slot).collect(),
                    false => std::mem::take(given_as),
                };
                for (i, (e, ty)) in before.into_iter().zip(types).enumerate() {
                    let loc = column_loc(ast, i).unwrap_or(ast.loc);
                    given_as.push(self.to_common(e, ty.oid, what, loc)?);
                }
                Ok(())
            }
            SetOperation::Node { left, right, types: own, .. } => {
                *own = types.to_vec();
                let sides = match &ast.body {
                    SelectBody::SetOp { left, right, .. } => (&**left, &**right),
                    _ => (ast, ast),
                };
                self.convert(left, types, what, sides.0)?;
                self.convert(right, types, what, sides.1)
            }
            SetOperation::Leaf(rte) => self.convert_leaf(*rte, types, what, ast),
        }
    }

    fn convert_leaf(
        &mut self,
        rte: usize,
        types: &[TypeRef],
        what: &str,
        ast: &Select,
    ) -> Result<()> {
        let entry = &mut self.level().rtes[rte];
        if entry.column_types.iter().map(|t| t.oid).eq(types.iter().map(|t| t.oid)) {
            return Ok(());
        }
        entry.column_types = types.to_vec();
        let RteKind::Subquery { query, .. } = &mut entry.kind else { return Ok(()) };
        let mut q = std::mem::replace(&mut **query, empty_query());
        let unknown_only = q
            .targets
            .iter()
            .filter(|t| !t.hidden)
            .zip(types)
            .all(|(t, ty)| t.expr.ty().oid == ty.oid || matches!(t.expr, Expr::Const(_)));
        let plain = q.set_operation.is_none()
            && (unknown_only
                || (matches!(q.distinct, Distinct::No)
                    && q.order_by.is_empty()
                    && q.group_exprs.is_empty()));
        if !plain {
            q = wrap(q);
        }
        for (i, (t, ty)) in q.targets.iter_mut().filter(|t| !t.hidden).zip(types).enumerate() {
            let e = std::mem::replace(&mut t.expr, Expr::And(Vec::new()));
            let loc = column_loc(ast, i).unwrap_or(ast.loc);
            t.expr = self.to_common(e, ty.oid, what, loc)?;
        }
        if let RteKind::Subquery { query, .. } = &mut self.level().rtes[rte].kind {
            **query = q;
        }
        Ok(())
    }

    /// A WITH RECURSIVE query that is a UNION. False: it is none, treat it as an ordinary one.
    pub fn recursive_cte(&mut self, c: &CteDefinition) -> Result<bool> {
        let itself = || statement_mentions(&c.statement, &c.name);
        let QueryStatement::Select(s) = &*c.statement else {
            if !itself() {
                return Ok(false);
            }
            let e = err!(
                INVALID_RECURSION,
                "recursive query \"{}\" must not contain data-modifying statements",
                c.name
            );
            return self.at(c.loc, e);
        };
        let malformed = || {
            err!(
                INVALID_RECURSION,
                "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] \
                 recursive-term",
                c.name
            )
        };
        let SelectBody::SetOp { op, all, left, right, loc } = &s.body else {
            return if itself() { self.at(c.loc, malformed()) } else { Ok(false) };
        };
        if !itself() {
            return Ok(false);
        }
        if *op != SetOp::Union {
            return self.at(c.loc, malformed());
        }
        let misplaced_in = |within: &str| {
            err!(
                INVALID_RECURSION,
                "recursive reference to query \"{}\" must not appear within {within}",
                c.name
            )
        };
        // A query of the body's own WITH may have the name, and then hides this one.
        let own = s.with.iter().flat_map(|w| &w.ctes);
        let hidden = own.clone().any(|o| o.name == c.name);
        if !hidden && mentions(left, &c.name) {
            return self.at(c.loc, misplaced_in("its non-recursive term"));
        }
        if let Some(inner) = own.clone().find(|o| statement_mentions(&o.statement, &c.name)) {
            return self.at(inner.loc, misplaced_in("a subquery"));
        }
        if hidden || !mentions(right, &c.name) {
            return Ok(false);
        }
        if let Some((within, loc)) = misplaced(right, &c.name) {
            return self.at(loc, misplaced_in(within));
        }
        // The left side alone gives the columns.
        let mut first = self.nested(|a| match &s.with {
            None => a.select(left),
            Some(w) => {
                a.with_clause(w)?;
                a.nested(|a| a.select(left))
            }
        })?;
        first.plain_outputs();
        let mut provisional = self.make_cte(c, first)?;
        let types = provisional.types.clone();
        let own = provisional.columns.clone();
        self.add_search_and_cycle(c, &mut provisional)?;
        let columns = provisional.columns.clone();
        let owner = self.levels.len() - 1;
        self.level().ctes.push(Cte { recursive: true, ..provisional });
        let index = self.level().ctes.len() - 1;
        let saved = self.levels[owner].recursive.replace(index);
        let made = self.nested(|a| a.recursive_union(s, *all, left, right, &types, &c.name, *loc));
        self.levels[owner].recursive = saved;
        let made = made?;
        self.check_search_and_cycle(c, [left, right], &own)?;
        let cte = &mut self.levels[owner].ctes[index];
        *cte.query = made;
        cte.columns = columns;
        cte.references = 0;
        cte.recursive = true;
        Ok(true)
    }

    /// What the recursive term, the last leaf added, must not do.
    fn recursive_term(&self, right: &Select) -> Result<()> {
        let Some(RteKind::Subquery { query, .. }) =
            self.levels.last().and_then(|l| l.rtes.last()).map(|e| &e.kind)
        else {
            return Ok(());
        };
        let own = |e: &RangeTableEntry| matches!(e.kind, RteKind::Cte { self_reference: true, .. });
        // GROUP BY alone is allowed.
        let aggregate =
            |e: &Expr| e.any(&mut |e| matches!(e, Expr::Aggregate(a) if a.levels_up == 0));
        let outputs = query.targets.iter().map(|t| &t.expr).chain(&query.having);
        let mut all = outputs.chain(query.order_by.iter().map(|k| &k.expr));
        if all.any(aggregate) && query.range_table.iter().any(own) {
            let e = err!(
                INVALID_RECURSION,
                "aggregate functions are not allowed in a recursive query's recursive term"
            );
            return self.at(first_loc(right), e);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one UNION")]
    fn recursive_union(
        &mut self,
        s: &Select,
        all: bool,
        left: &Select,
        right: &Select,
        types: &[TypeRef],
        name: &str,
        loc: Loc,
    ) -> Result<Query> {
        if let Some(w) = &s.with {
            self.with_clause(w)?;
        }
        let (mut l, _) = self.leaf(left)?;
        self.convert(&mut l, types, "UNION", left)?;
        let (mut r, rt) = self.leaf(right)?;
        self.recursive_term(right)?;
        if rt.len() != types.len() {
            let e = err!(SYNTAX_ERROR, "each UNION query must have the same number of columns");
            return self.at(first_loc(right), e);
        }
        for (i, (a, b)) in types.iter().zip(&rt).enumerate() {
            let list = [(a.oid, loc), (b.oid, column_loc(right, i).unwrap_or(loc))];
            let common = self.common_type(&list, "UNION")?;
            let typmod = if common == b.oid && a.typmod == b.typmod { a.typmod } else { -1 };
            if common != a.oid || typmod != a.typmod {
                let (was, overall) = if common != a.oid {
                    (self.type_name_of(a.oid), self.type_name_of(common))
                } else {
                    (types::format_type(a.oid, a.typmod), types::format_type(common, typmod))
                };
                let e = SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {was} in non-recursive term \
                         but type {overall} overall",
                        i + 1,
                    ),
                )
                .hint("Cast the output of the non-recursive term to the correct type.");
                return self.at(column_loc(left, i).unwrap_or(loc), e.into());
            }
        }
        self.convert(&mut r, types, "UNION", right)?;
        // As there, so that what never ends there does not begin here.
        if !all && types.iter().any(|t| matches!(t.oid, types::oids::BIT | types::oids::VARBIT)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "could not implement recursive UNION",
            )
            .detail("All column datatypes must be hashable.")
            .into());
        }
        let tree = SetOperation::Node {
            op: SetOp::Union,
            all,
            left: Box::new(l),
            right: Box::new(r),
            types: types.to_vec(),
            given_as: Vec::new(),
        };
        if !s.order_by.is_empty() || s.limit.is_some() || s.offset.is_some() {
            let what = if !s.order_by.is_empty() {
                "ORDER BY"
            } else if s.limit.is_some() {
                "LIMIT"
            } else {
                "OFFSET"
            };
            let e = err!(FEATURE_NOT_SUPPORTED, "{what} in a recursive query is not implemented");
            return self.at(s.loc, e);
        }
        self.finish_set(s, tree, types.to_vec())
    }
}

fn leftmost(tree: &SetOperation) -> usize {
    match tree {
        SetOperation::Leaf(i) => *i,
        SetOperation::Node { left, .. } => leftmost(left),
    }
}

/// Where column `i` of a select was written.
fn column_loc(s: &Select, i: usize) -> Option<Loc> {
    match &s.body {
        SelectBody::Core(c) => c.targets.get(i).map(|t| t.expr.loc),
        SelectBody::Values(rows) => rows.first()?.get(i).map(|e| e.loc),
        SelectBody::SetOp { left, .. } => column_loc(left, i),
    }
}

fn first_loc(s: &Select) -> Loc {
    column_loc(s, 0).unwrap_or(s.loc)
}

pub(crate) fn empty_query() -> Query {
    Query {
        command: Command::Select,
        ctes: Vec::new(),
        recursive_with: false,
        range_table: Vec::new(),
        result_rte: None,
        from: Vec::new(),
        filter: None,
        targets: Vec::new(),
        group_exprs: Vec::new(),
        grouping_sets: Vec::new(),
        group_items: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
        distinct: Distinct::No,
        order_by: Vec::new(),
        limit: None,
        limit_with_ties: false,
        offset: None,
        row_marks: Vec::new(),
        rechecks: Vec::new(),
        run_conditions: Vec::new(),
        set_operation: None,
        sub_selects: Vec::new(),
        keys_relied_on: Vec::new(),
        declared: Vec::new(),
        returning: Vec::new(),
        on_conflict: None,
        images: None,
        merge: None,
        view_checks: Vec::new(),
        named: Vec::new(),
        has_aggregates: false,
        has_windows: false,
        has_target_srfs: false,
    }
}

/// `SELECT * FROM (q)`
pub(crate) fn wrap(mut q: Query) -> Query {
    crate::plan::query_walk::shift_query_levels(&mut q, 1, 1);
    let entry = subquery_entry(q, false);
    let mut out = empty_query();
    out.targets = entry
        .column_names
        .iter()
        .zip(&entry.column_types)
        .enumerate()
        .map(|(i, (n, ty))| TargetEntry {
            expr: Expr::Var { levels_up: 0, rte: 0, column: i as i32 + 1, ty: *ty },
            name: n.clone(),
            target_column: None,
            origin: (0, 0),
            hidden: false,
        })
        .collect();
    out.range_table.push(entry);
    out.from.push(FromItem::Rte(0));
    out
}
