//! SELECT: WITH, the target list, GROUP BY, ORDER BY, DISTINCT, LIMIT, locking.

use super::aggregates::Reach;
use super::group_by::GroupBy;
use super::grouping::settle_grouped_links;
use super::{Analyser, Clause};
use crate::parse::ast::{
    self, DistinctClause, ExprKind, Select, SelectBody, SelectCore, SortBy, Target, With,
};
use crate::parse::references::statement_mentions;
use crate::query::{Command, Distinct, FromItem, Query, RangeTableEntry, RteKind, TargetEntry};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::tree::SortKey;
use expr::{Expr, TypeRef};
use types::oids::UNKNOWN;

/// The name PostgreSQL gives an output column that has none, and how sure it is of it.
fn label(e: &ast::Expr) -> Option<(String, u8)> {
    let sure = |s: &str| Some((s.to_owned(), 2));
    match &e.kind {
        ExprKind::Column(names) => names.last().map(|n| (n.clone(), 2)),
        ExprKind::Call(c) => c.name.last().map(|n| (n.clone(), 2)),
        ExprKind::Json(call) => sure(super::json::label(call)),
        ExprKind::Field { name, .. } => sure(name),
        ExprKind::Subscript { arg, .. } | ExprKind::Collate { arg, .. } => label(arg),
        ExprKind::Cast { arg, ty: _ } if matches!(&arg.kind, ExprKind::Star(n) if !n.is_empty()) => {
            let ExprKind::Star(names) = &arg.kind else { return None };
            names.last().map(|n| (n.clone(), 2))
        }
        ExprKind::Cast { arg, ty } => match label(arg) {
            Some((n, 2)) => Some((n, 2)),
            _ => ty.names.last().map(|n| (n.clone(), 1)),
        },
        ExprKind::Case { otherwise, .. } => match otherwise.as_deref().and_then(label) {
            Some((n, 2)) => Some((n, 2)),
            _ => Some(("case".into(), 1)),
        },
        ExprKind::Array(_) | ExprKind::ArraySelect(_) => sure("array"),
        ExprKind::Row { explicit: true, .. } => sure("row"),
        ExprKind::Row { .. } => sure("row"),
        ExprKind::Coalesce(_) => sure("coalesce"),
        ExprKind::MinMax { greatest: true, .. } => sure("greatest"),
        ExprKind::MinMax { .. } => sure("least"),
        ExprKind::NullIf(..) => sure("nullif"),
        ExprKind::Grouping(_) => sure("grouping"),
        ExprKind::Exists(_) => sure("exists"),
        ExprKind::Subquery(q) => sure(&only_column(q)),
        ExprKind::SqlValue { kind, .. } => {
            use expr::SqlValueFunction as S;
            sure(match kind {
                S::CurrentDate => "current_date",
                S::CurrentTime => "current_time",
                S::CurrentTimestamp => "current_timestamp",
                S::LocalTime => "localtime",
                S::LocalTimestamp => "localtimestamp",
                S::CurrentUser => "current_user",
                S::SessionUser => "session_user",
                S::CurrentRole => "current_role",
                S::CurrentCatalog => "current_catalog",
                S::CurrentSchema => "current_schema",
            })
        }
        _ => None,
    }
}

/// What the column of a sub-select is called; that it has no name is a name, too.
fn only_column(q: &Select) -> String {
    match &q.body {
        SelectBody::Core(c) => match c.targets.first() {
            Some(Target { alias: Some(a), .. }) => a.clone(),
            Some(t) => column_label(&t.expr),
            None => column_label(&ast::Expr { kind: ExprKind::Null, loc: q.loc }),
        },
        SelectBody::Values(_) => "column1".into(),
        SelectBody::SetOp { left, .. } => only_column(left),
    }
}

/// Does the name of this come from `*` in a sub-select?
fn is_of_star(e: &ast::Expr) -> bool {
    let of = |mut q: &Select| {
        while let SelectBody::SetOp { left, .. } = &q.body {
            q = left;
        }
        matches!(&q.body, SelectBody::Core(c)
            if c.targets.first().is_some_and(|t| matches!(t.expr.kind, ExprKind::Star(_) | ExprKind::FieldStar(_))))
    };
    match &e.kind {
        ExprKind::Subquery(q) => of(q),
        ExprKind::Cast { arg, .. }
        | ExprKind::Collate { arg, .. }
        | ExprKind::Subscript { arg, .. } => is_of_star(arg),
        _ => false,
    }
}

/// What WITH TIES cannot do without, and cannot stand beside.
fn check_ties(s: &Select) -> Result<()> {
    if s.with_ties && s.order_by.is_empty() {
        return Err(err!(SYNTAX_ERROR, "WITH TIES cannot be specified without ORDER BY clause"));
    }
    if s.with_ties && s.locking.iter().any(|l| l.wait == crate::query::LockWait::SkipLocked) {
        return Err(err!(
            SYNTAX_ERROR,
            "SKIP LOCKED and WITH TIES options cannot be used together"
        ));
    }
    Ok(())
}

/// The name of an output column without AS.
pub(crate) fn column_label(e: &ast::Expr) -> String {
    label(e).map_or_else(|| "?column?".into(), |(n, _)| n)
}

impl Analyser<'_> {
    /// A SELECT in the current (new) level; unknown columns become text.
    pub fn select(&mut self, s: &Select) -> Result<Query> {
        self.select_with(s, false)
    }

    pub fn select_with(&mut self, s: &Select, keep_unknown: bool) -> Result<Query> {
        check_ties(s)?;
        if let Some(w) = &s.with {
            self.with_clause(w)?;
        }
        match &s.body {
            SelectBody::Core(c) => self.core(s, c, keep_unknown),
            SelectBody::Values(rows) => self.values(s, rows, keep_unknown),
            SelectBody::SetOp { .. } => self.set_operation(s),
        }
    }

    /// An entry of an output list.
    fn entry(&mut self, expr: Expr, name: String) -> TargetEntry {
        let origin = self.origin(&expr);
        TargetEntry { expr, name, target_column: None, origin, hidden: false }
    }

    /// The table column that an expression passes on unchanged.
    fn origin(&mut self, e: &Expr) -> (u32, i32) {
        let Expr::Var { levels_up: 0, rte, column, .. } = e.as_plain() else { return (0, 0) };
        let Some(entry) = self.level().rtes.get(*rte) else { return (0, 0) };
        match &entry.kind {
            RteKind::Relation { oid, .. } if *column != 0 => (*oid, *column),
            RteKind::Subquery { query, view: 0 } if *column > 0 => query
                .targets
                .iter()
                .filter(|t| !t.hidden)
                .nth(*column as usize - 1)
                .map_or((0, 0), |t| t.origin),
            RteKind::Subquery { view, .. } if *column > 0 => (*view, *column),
            _ => (0, 0),
        }
    }

    pub fn targets(
        &mut self,
        list: &[Target],
        clause: Clause,
        keep_unknown: bool,
    ) -> Result<Vec<TargetEntry>> {
        let saved = self.enter(clause);
        let mut out = Vec::with_capacity(list.len());
        for t in list {
            if let Some(columns) = self.star_target(&t.expr)? {
                for (n, e) in columns {
                    let entry = self.entry(e, n);
                    out.push(entry);
                }
                continue;
            }
            let mut e = self.declared_expr(&t.expr)?;
            if !keep_unknown {
                e = self.known(e, t.expr.loc)?;
            }
            let name = match &t.alias {
                Some(a) => a.clone(),
                None => self.spread_label(&t.expr, &e).unwrap_or_else(|| column_label(&t.expr)),
            };
            let entry = self.entry(e, name);
            out.push(entry);
        }
        self.enter(saved);
        if out.len() > 1664 {
            return Err(err!(TOO_MANY_COLUMNS, "target lists can have at most 1664 entries"));
        }
        Ok(out)
    }

    /// The name of an output that is a sub-select's of all columns, of which there is one.
    fn spread_label(&mut self, written: &ast::Expr, e: &Expr) -> Option<String> {
        if !is_of_star(written) {
            return None;
        }
        let mut found = None;
        e.walk(&mut |e| {
            if let Expr::SubLink { subquery, .. } = e {
                found = found.or(Some(*subquery));
            }
        });
        let sub = self.level().sub_selects.get(found?)?;
        sub.targets.first().map(|t| t.name.clone())
    }

    fn core(&mut self, s: &Select, c: &SelectCore, keep_unknown: bool) -> Result<Query> {
        if let Some(into) = &c.into {
            let e = err!(SYNTAX_ERROR, "SELECT ... INTO is not allowed here");
            return self.at(into.loc, e);
        }
        let from = self.from_clause(&c.from)?;
        self.window_clause(&c.windows)?;
        let mut targets = self.targets(&c.targets, Clause::Target, keep_unknown)?;
        let filter = self.condition(c.filter.as_ref(), Clause::Where, "WHERE")?;
        let having = self.condition(c.having.as_ref(), Clause::Having, "HAVING")?;
        let saved = self.enter(Clause::GroupBy);
        // Before ORDER BY, which may name outputs that it tells apart.
        let GroupBy { exprs: group_exprs, mut sets, items } =
            self.group_by(&c.group_by, &mut targets)?;
        self.enter(Clause::OrderBy);
        let mut order_by = self.order_by(&s.order_by, &mut targets)?;
        if c.group_distinct {
            let mut seen: Vec<Vec<usize>> = Vec::new();
            sets.retain(|s| {
                let mut k = s.clone();
                k.sort_unstable();
                let new = !seen.contains(&k);
                seen.push(k);
                new
            });
        }
        self.enter(Clause::DistinctOn);
        let distinct = self.distinct(&c.distinct, s, &mut targets, &mut order_by)?;
        self.enter(saved);
        let (limit, offset) = self.limits(s)?;
        let mut q = self.gather(Command::Select);
        q.from = from;
        q.filter = filter;
        q.targets = targets;
        q.having = having;
        q.has_aggregates |= q.having.is_some() || !c.group_by.is_empty();
        q.group_exprs = group_exprs;
        q.grouping_sets = sets;
        q.group_items = items;
        q.group_distinct = c.group_distinct;
        q.order_by = order_by;
        q.distinct = distinct;
        q.limit = limit;
        q.limit_with_ties = s.with_ties;
        q.offset = offset;
        settle_grouped_links(&mut q);
        self.settle_groupings(&mut q)?;
        q.keys_relied_on = self.check_grouping(&q)?;
        self.locking(&s.locking, &mut q)?;
        Ok(q)
    }

    pub fn condition(
        &mut self,
        e: Option<&ast::Expr>,
        clause: Clause,
        what: &str,
    ) -> Result<Option<Expr>> {
        let Some(e) = e else { return Ok(None) };
        let saved = self.enter(clause);
        let x = self.expr(e)?;
        let x = self.boolean(x, what, e.loc)?;
        self.enter(saved);
        Ok(Some(x))
    }

    /// Refuses columns of this level, in sub-selects too: the value is wanted before there is a row.
    pub(super) fn must_be_fixed(&mut self, e: &Expr, what: &str, loc: ast::Loc) -> Result<()> {
        let reach = Reach::of(std::iter::once(e), &self.level().sub_selects);
        if reach.least != Some(0) {
            return Ok(());
        }
        let text = format!("argument of {what} must not contain variables");
        self.at(loc, err!(INVALID_COLUMN_REFERENCE, "{text}"))
    }

    pub fn limits(&mut self, s: &Select) -> Result<(Option<Expr>, Option<Expr>)> {
        let saved = self.clause();
        let one = |a: &mut Self, e: &Option<ast::Expr>, clause: Clause, what: &str| {
            let Some(e) = e else { return Ok(None) };
            if matches!(e.kind, ExprKind::Null) {
                return Ok(None);
            }
            a.enter(clause);
            let x = a.expr(e)?;
            a.must_be_fixed(&x, what, e.loc)?;
            a.bigint(x, what, e.loc).map(Some)
        };
        if s.with_ties && s.limit.as_ref().is_some_and(|e| matches!(e.kind, ExprKind::Null)) {
            base::bail!(
                INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                "row count cannot be null in FETCH FIRST ... WITH TIES clause"
            );
        }
        let limit = one(self, &s.limit, Clause::Limit, "LIMIT")?;
        let offset = one(self, &s.offset, Clause::Offset, "OFFSET")?;
        self.enter(saved);
        Ok((limit, offset))
    }

    /// The target that a bare name or a position means. None: an expression of its own.
    pub(super) fn output_column(
        &mut self,
        e: &ast::Expr,
        targets: &[TargetEntry],
        clause: &str,
    ) -> Result<Option<usize>> {
        match &e.kind {
            ExprKind::Column(names) if names.len() == 1 => {
                if clause == "GROUP BY" && self.own_column(&names[0]) {
                    return Ok(None);
                }
                let mut hit: Option<usize> = None;
                for (i, t) in targets.iter().enumerate() {
                    if t.hidden || t.name != names[0] {
                        continue;
                    }
                    match hit {
                        Some(h) if !self.are_same(&targets[h].expr, &t.expr) => {
                            let e2 =
                                err!(AMBIGUOUS_COLUMN, "{clause} \"{}\" is ambiguous", names[0]);
                            return self.at(e.loc, e2);
                        }
                        Some(_) => {}
                        None => hit = Some(i),
                    }
                }
                Ok(hit)
            }
            ExprKind::Number(n) => {
                let Ok(n) = n.parse::<i32>() else {
                    let e2 = err!(SYNTAX_ERROR, "non-integer constant in {clause}");
                    return self.at(e.loc, e2);
                };
                let shown: Vec<usize> =
                    (0..targets.len()).filter(|i| !targets[*i].hidden).collect();
                match usize::try_from(n)
                    .ok()
                    .and_then(|n| n.checked_sub(1))
                    .and_then(|n| shown.get(n))
                {
                    Some(i) => Ok(Some(*i)),
                    None => {
                        let e2 = err!(
                            INVALID_COLUMN_REFERENCE,
                            "{clause} position {n} is not in select list"
                        );
                        self.at(e.loc, e2)
                    }
                }
            }
            ExprKind::String(_)
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::BitString { .. } => {
                let e2 = err!(SYNTAX_ERROR, "non-integer constant in {clause}");
                self.at(e.loc, e2)
            }
            _ => Ok(None),
        }
    }

    /// Is there an input column of this name at this level?
    fn own_column(&mut self, name: &str) -> bool {
        let level = self.level();
        level.items.iter().filter(|i| i.by_column).any(|i| match &i.columns {
            Some(c) => c.iter().any(|(n, _)| n == name),
            None => level.rtes[i.rte].column_names.iter().any(|n| n == name),
        })
    }

    pub(super) fn sort_expr(
        &mut self,
        e: &ast::Expr,
        targets: &mut [TargetEntry],
        clause: &str,
    ) -> Result<Expr> {
        match self.output_column(e, targets, clause)? {
            Some(i) => {
                if targets[i].expr.ty().oid == UNKNOWN {
                    let x = targets[i].expr.clone();
                    targets[i].expr = self.known(x, e.loc)?;
                }
                Ok(targets[i].expr.as_plain().clone())
            }
            None => {
                let x = self.known_expr(e)?;
                Ok(self.as_written_before(x, targets))
            }
        }
    }

    /// USING wants `<` or `>`.
    pub(super) fn ordering_operator(&self, s: &SortBy) -> Result<()> {
        let Some(op) = &s.using else { return Ok(()) };
        if matches!(op.name.as_str(), "<" | ">") {
            return Ok(());
        }
        let text = format!("operator {} is not a valid ordering operator", op.name);
        let e = SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
            .hint("Ordering operators must be \"<\" or \">\" members of btree operator families.");
        self.at(s.expr.loc, e.into())
    }

    fn order_by(&mut self, list: &[SortBy], targets: &mut [TargetEntry]) -> Result<Vec<SortKey>> {
        let mut out: Vec<SortKey> = Vec::with_capacity(list.len());
        for s in list {
            let expr = self.sort_expr(&s.expr, targets, "ORDER BY")?;
            self.must_be_sortable(expr.ty().oid, s.expr.loc)?;
            self.ordering_operator(s)?;
            if out.iter().any(|k| k.expr == expr) {
                continue;
            }
            out.push(SortKey {
                expr,
                descending: s.descending,
                nulls_first: s.nulls_first.unwrap_or(s.descending),
            });
        }
        Ok(out)
    }

    fn distinct(
        &mut self,
        d: &DistinctClause,
        s: &Select,
        targets: &mut Vec<TargetEntry>,
        order_by: &mut [SortKey],
    ) -> Result<Distinct> {
        match d {
            DistinctClause::No => Ok(Distinct::No),
            DistinctClause::All => {
                for t in targets.iter_mut() {
                    if t.expr.ty().oid == UNKNOWN {
                        t.expr = self.known(t.expr.clone(), s.loc)?;
                    }
                    self.must_be_equatable(t.expr.as_plain().ty().oid, s.loc)?;
                }
                for (k, a) in order_by.iter().zip(&s.order_by) {
                    if !targets.iter().any(|t| *t.expr.as_plain() == k.expr) {
                        let e = err!(
                            INVALID_COLUMN_REFERENCE,
                            "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
                        );
                        return self.at(a.expr.loc, e);
                    }
                }
                Ok(Distinct::All)
            }
            DistinctClause::On(list) => {
                let mut out: Vec<Expr> = Vec::new();
                for e in list {
                    let x = self.sort_expr(e, targets, "DISTINCT ON")?;
                    self.must_be_equatable(x.ty().oid, e.loc)?;
                    if !out.contains(&x) {
                        out.push(x);
                    }
                }
                // The first ORDER BY keys must be exactly these.
                let mut matched = 0;
                let mut gap = false;
                for k in order_by.iter() {
                    if out.contains(&k.expr) {
                        if gap {
                            break;
                        }
                        matched += 1;
                    } else {
                        gap = true;
                    }
                }
                let later = order_by[matched..].iter().any(|k| out.contains(&k.expr));
                if (gap && matched < out.len()) || later {
                    let e = err!(
                        INVALID_COLUMN_REFERENCE,
                        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
                    );
                    return self.at(list.first().map_or(s.loc, |e| e.loc), e);
                }
                Ok(Distinct::On(out))
            }
        }
    }

    /// VALUES as a query.
    fn values(&mut self, s: &Select, rows: &[Vec<ast::Expr>], keep_unknown: bool) -> Result<Query> {
        let saved = self.enter(Clause::Values);
        let mut made: Vec<Vec<(Expr, ast::Loc)>> = Vec::with_capacity(rows.len());
        for r in rows {
            let row = self.spread(r)?;
            if made.first().is_some_and(|first| first.len() != row.len()) {
                let e = err!(SYNTAX_ERROR, "VALUES lists must all be the same length");
                return self.at(r.first().map_or(s.loc, |e| e.loc), e);
            }
            made.push(row);
        }
        let width = made.first().map_or(0, Vec::len);
        let mut types = Vec::new();
        for i in 0..width {
            let column: Vec<(Oid, ast::Loc)> =
                made.iter().map(|r| (r[i].0.ty().oid, r[i].1)).collect();
            let all_unknown = column.iter().all(|(t, _)| *t == UNKNOWN);
            let ty = if keep_unknown && all_unknown {
                UNKNOWN
            } else {
                self.common_type(&column, "VALUES")?
            };
            // All of one modifier keep it.
            let first = made[0][i].0.ty();
            let same = made.iter().all(|r| r[i].0.ty() == first);
            types.push(if same && first.oid == ty { first } else { TypeRef::of(ty) });
        }
        let mut out = Vec::with_capacity(made.len());
        for row in made {
            let mut exprs = Vec::with_capacity(width);
            for ((e, loc), ty) in row.into_iter().zip(&types) {
                exprs.push(self.to_common(e, ty.oid, "VALUES", loc)?);
            }
            out.push(exprs);
        }
        let names: Vec<String> = (1..=width).map(|i| format!("column{i}")).collect();
        let entry = RangeTableEntry {
            kind: RteKind::Values { rows: out },
            alias: "*VALUES*".into(),
            has_alias: false,
            column_aliases: 0,
            column_names: names.clone(),
            column_types: types,
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: false,
        };
        let level = self.level();
        let rte = level.rtes.len();
        level.rtes.push(entry);
        level.items.push(super::scope::Item::table(rte, "*VALUES*"));
        let mut targets: Vec<TargetEntry> = Vec::new();
        for (i, n) in names.into_iter().enumerate() {
            let e = self.var(rte, i);
            targets.push(self.entry(e, n));
        }
        self.enter(Clause::OrderBy);
        let order_by = self.order_by(&s.order_by, &mut targets)?;
        self.enter(saved);
        let (limit, offset) = self.limits(s)?;
        if !s.locking.is_empty() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{} cannot be applied to VALUES",
                super::locking::lock_name(s.locking[0].strength)
            ));
        }
        let mut q = self.gather(Command::Select);
        q.from = vec![FromItem::Rte(rte)];
        q.targets = targets;
        q.order_by = order_by;
        q.limit = limit;
        q.limit_with_ties = s.with_ties;
        q.offset = offset;
        Ok(q)
    }

    /// WITH.
    pub fn with_clause(&mut self, w: &With) -> Result<()> {
        self.level().recursive_with = w.recursive;
        for (n, c) in w.ctes.iter().enumerate() {
            if w.ctes[..n].iter().any(|o| o.name == c.name) {
                let e = err!(
                    DUPLICATE_ALIAS,
                    "WITH query name \"{}\" specified more than once",
                    c.name
                );
                return self.at(c.loc, e);
            }
        }
        for c in self.in_order(w)? {
            if w.recursive && self.recursive_cte(c)? {
                continue;
            }
            self.refuse_search_and_cycle(c)?;
            let q = self.statement(&c.statement)?;
            // Further in it might be run often, or never.
            if q.command != Command::Select && self.levels.len() > 1 {
                let e = err!(
                    FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level"
                );
                return self.at(c.loc, e);
            }
            let cte = self.make_cte(c, q)?;
            self.level().ctes.push(cte);
        }
        Ok(())
    }

    /// A clause's queries so that each comes behind those it names: RECURSIVE lets it name what stands further down, too.
    fn in_order<'w>(&self, w: &'w With) -> Result<Vec<&'w ast::CteDefinition>> {
        let names = |c: &ast::CteDefinition, o: &ast::CteDefinition| {
            c.name != o.name && statement_mentions(&c.statement, &o.name)
        };
        let mut queries: Vec<_> = w
            .ctes
            .iter()
            .map(|c| (c, w.ctes.iter().filter(|o| w.recursive && names(c, o)).collect::<Vec<_>>()))
            .collect();
        for i in 0..queries.len() {
            let left = &queries[i..];
            let waits =
                |named: &&ast::CteDefinition| left.iter().any(|(c, _)| c.name == named.name);
            let Some(next) = left.iter().position(|(_, named)| !named.iter().any(waits)) else {
                let e = err!(
                    FEATURE_NOT_SUPPORTED,
                    "mutual recursion between WITH items is not implemented"
                );
                return self.at(left[0].0.loc, e);
            };
            queries.swap(i, i + next);
        }
        Ok(queries.into_iter().map(|(c, _)| c).collect())
    }

    pub fn make_cte(&mut self, c: &ast::CteDefinition, q: Query) -> Result<crate::query::Cte> {
        let output = if q.command == Command::Select { &q.targets } else { &q.returning };
        let shown: Vec<&TargetEntry> = output.iter().filter(|t| !t.hidden).collect();
        if c.columns.len() > shown.len() {
            let e = err!(
                INVALID_COLUMN_REFERENCE,
                "WITH query \"{}\" has {} columns available but {} columns specified",
                c.name,
                shown.len(),
                c.columns.len()
            );
            return self.at(c.loc, e);
        }
        let mut columns: Vec<String> = shown.iter().map(|t| t.name.clone()).collect();
        for (slot, n) in columns.iter_mut().zip(&c.columns) {
            slot.clone_from(n);
        }
        let types = shown.iter().map(|t| t.expr.ty()).collect();
        Ok(crate::query::Cte {
            name: c.name.clone(),
            columns,
            types,
            query: Box::new(q),
            recursive: false,
            materialized: c.materialized,
            references: 0,
            search: None,
            cycle: None,
        })
    }
}
