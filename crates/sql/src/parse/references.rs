//! Which tables a query's text names.
//!
//! # Invariants
//! A name that a WITH query of the text itself gives is not a table's: it is looked for from the inside out, as the analyser does.

use super::ast::{
    Bound, ConflictTarget, Expr, ExprKind, FuncCall, GroupItem, Insert, JoinCondition, JsonAnswer,
    JsonCall, Loc, Merge, MergeAction, Over, QueryStatement, Select, SelectBody, SelectCore,
    SetClause, SortBy, SubscriptIndex, TableRef, Target, WindowSpec, With,
};
use crate::query::{JoinKind, SetOp};

/// Does `select` name the table or WITH query `name` without a schema, outside of WITH queries of its own that have that name?
pub fn mentions(select: &Select, name: &str) -> bool {
    let mut search = Search { name, found: false, within: None, misplaced: None };
    search.select(select);
    search.found
}

/// As [`mentions`], of a statement of any kind; what it writes to is not looked for among WITH queries.
pub fn statement_mentions(statement: &QueryStatement, name: &str) -> bool {
    let mut search = Search { name, found: false, within: None, misplaced: None };
    search.statement(statement);
    search.found
}

/// Where a recursive term names its own query so that more rows of it could mean fewer rows: what it stands within.
pub fn misplaced(term: &Select, name: &str) -> Option<(&'static str, Loc)> {
    let mut search = Search { name, found: false, within: None, misplaced: None };
    search.select(term);
    search.misplaced
}

struct Search<'a> {
    name: &'a str,
    found: bool,
    /// What a recursive reference may not stand within.
    within: Option<&'static str>,
    misplaced: Option<(&'static str, Loc)>,
}

impl Search<'_> {
    fn select(&mut self, s: &Select) {
        self.with(s.with.as_ref(), |search| {
            match &s.body {
                SelectBody::Core(core) => search.core(core),
                SelectBody::Values(rows) => rows.iter().for_each(|row| search.exprs(row)),
                SelectBody::SetOp { op, all, left, right, .. } => {
                    let (l, r) = match op {
                        SetOp::Union => (None, None),
                        SetOp::Intersect if *all => (Some("INTERSECT"), Some("INTERSECT")),
                        SetOp::Intersect => (None, None),
                        SetOp::Except if *all => (Some("EXCEPT"), Some("EXCEPT")),
                        SetOp::Except => (None, Some("EXCEPT")),
                    };
                    search.inside(l, |s| s.select(left));
                    search.inside(r, |s| s.select(right));
                }
            }
            search.sorted(&s.order_by);
            search.exprs(s.limit.iter().chain(&s.offset));
        });
    }

    fn inside(&mut self, what: Option<&'static str>, f: impl FnOnce(&mut Self)) {
        let before = self.within;
        self.within = what.or(before);
        f(self);
        self.within = before;
    }

    /// A statement behind its WITH clause.
    fn with(&mut self, with: Option<&With>, body: impl FnOnce(&mut Self)) {
        let Some(with) = with else { return body(self) };
        let hiding = with.ctes.iter().position(|c| c.name == self.name);
        // Without RECURSIVE a query sees those before it.
        let seen = match hiding {
            None => with.ctes.len(),
            Some(_) if with.recursive => 0,
            Some(n) => n + 1,
        };
        for cte in &with.ctes[..seen] {
            self.statement(&cte.statement);
        }
        if hiding.is_none() {
            body(self);
        }
    }

    fn statement(&mut self, statement: &QueryStatement) {
        match statement {
            QueryStatement::Select(s) => self.select(s),
            QueryStatement::Insert(i) => self.insert(i),
            QueryStatement::Update(u) => self.with(u.with.as_ref(), |search| {
                search.set(&u.set);
                u.from.iter().for_each(|t| search.table(t));
                search.exprs(&u.filter);
                search.targets(&u.returning.targets);
            }),
            QueryStatement::Delete(d) => self.with(d.with.as_ref(), |search| {
                d.using.iter().for_each(|t| search.table(t));
                search.exprs(&d.filter);
                search.targets(&d.returning.targets);
            }),
            QueryStatement::Merge(m) => self.with(m.with.as_ref(), |search| search.merge(m)),
        }
    }

    fn insert(&mut self, i: &Insert) {
        self.with(i.with.as_ref(), |search| {
            if let Some(source) = &i.source {
                search.select(source);
            }
            if let Some(c) = &i.on_conflict {
                if let ConflictTarget::Columns { elements, filter, .. } = &c.target {
                    search.exprs(elements.iter().filter_map(|e| e.expr.as_ref()));
                    search.exprs(filter);
                }
                search.set(c.update.as_deref().unwrap_or_default());
                search.exprs(&c.filter);
            }
            search.targets(&i.returning.targets);
        });
    }

    fn merge(&mut self, m: &Merge) {
        self.table(&m.source);
        self.expr(&m.on);
        for when in &m.whens {
            self.exprs(&when.condition);
            match &when.action {
                MergeAction::Update(set) => self.set(set),
                MergeAction::Insert(i) => self.insert(i),
                MergeAction::Delete | MergeAction::Nothing => {}
            }
        }
        self.targets(&m.returning.targets);
    }

    fn set(&mut self, clauses: &[SetClause]) {
        for clause in clauses {
            match clause {
                SetClause::Single { value, .. } | SetClause::Multi { value, .. } => {
                    self.expr(value);
                }
            }
        }
    }

    fn core(&mut self, c: &SelectCore) {
        if let super::ast::DistinctClause::On(on) = &c.distinct {
            self.exprs(on);
        }
        self.targets(&c.targets);
        c.from.iter().for_each(|t| self.table(t));
        self.exprs(&c.filter);
        c.group_by.iter().for_each(|g| self.group(g));
        self.exprs(&c.having);
        c.windows.iter().for_each(|(_, w)| self.window(w));
    }

    fn targets(&mut self, targets: &[Target]) {
        self.exprs(targets.iter().map(|t| &t.expr));
    }

    fn group(&mut self, item: &GroupItem) {
        match item {
            GroupItem::Expr(e) => self.expr(e),
            GroupItem::Empty => {}
            GroupItem::Rollup(list) | GroupItem::Cube(list) => self.exprs(list),
            GroupItem::Sets(items) => items.iter().for_each(|i| self.group(i)),
        }
    }

    fn table(&mut self, t: &TableRef) {
        match t {
            TableRef::Table { name, .. } => {
                if name.catalog.is_none() && name.schema.is_none() && name.name == self.name {
                    self.found = true;
                    if let (Some(within), None) = (self.within, self.misplaced) {
                        self.misplaced = Some((within, name.loc));
                    }
                }
            }
            TableRef::Subquery { query, .. } => self.select(query),
            TableRef::Function { calls, .. } => self.exprs(calls.iter().map(|(call, _)| call)),
            TableRef::Join { kind, left, right, condition, .. } => {
                let outer = Some("an outer join");
                let (l, r) = match kind {
                    JoinKind::Left => (None, outer),
                    JoinKind::Right => (outer, None),
                    JoinKind::Full => (outer, outer),
                    _ => (None, None),
                };
                self.inside(l, |s| s.table(left));
                self.inside(r, |s| s.table(right));
                if let JoinCondition::On(on) = condition {
                    self.expr(on);
                }
            }
        }
    }

    fn sorted(&mut self, keys: &[SortBy]) {
        self.exprs(keys.iter().map(|k| &k.expr));
    }

    fn window(&mut self, w: &WindowSpec) {
        self.exprs(&w.partition_by);
        self.sorted(&w.order_by);
        let Some(frame) = &w.frame else { return };
        for bound in std::iter::once(&frame.start).chain(&frame.end) {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                self.expr(e);
            }
        }
    }

    fn exprs<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        list.into_iter().for_each(|e| self.expr(e));
    }

    fn call(&mut self, call: &FuncCall) {
        self.exprs(call.args.iter().map(|a| &a.value));
        self.sorted(&call.order_by);
        self.exprs(call.filter.as_deref());
        if let Some(Over::Spec(w)) = &call.over {
            self.window(w);
        }
    }

    fn json(&mut self, call: &JsonCall) {
        match call {
            JsonCall::Make { args, .. } => self.exprs(args.iter().map(|a| &a.value)),
            JsonCall::ArraySelect { query, .. } => {
                self.inside(Some("a subquery"), |s| s.select(query));
            }
            JsonCall::Table(table) => {
                self.expr(&table.value.value);
                self.exprs(table.passing.iter().map(|(a, _)| &a.value));
            }
            JsonCall::Aggregate { args, order_by, filter, over, .. } => {
                self.exprs(args.iter().map(|a| &a.value));
                self.sorted(order_by);
                self.exprs(filter.as_deref());
                if let Some(Over::Spec(w)) = over {
                    self.window(w);
                }
            }
            JsonCall::Find { value, path, passing, on_empty, on_error, .. } => {
                self.exprs([&value.value, path]);
                self.exprs(passing.iter().map(|(a, _)| &a.value));
                for answer in [on_empty, on_error].into_iter().flatten() {
                    if let JsonAnswer::Default(e) = answer {
                        self.expr(e);
                    }
                }
            }
        }
    }

    fn subscripts(&mut self, indexes: &[SubscriptIndex]) {
        self.exprs(indexes.iter().flat_map(|i| i.lower.iter().chain(&i.upper)));
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Column(_)
            | ExprKind::Star(_)
            | ExprKind::Param(_)
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BitString { .. }
            | ExprKind::SqlValue { .. }
            | ExprKind::Default
            | ExprKind::CurrentOf(_) => {}
            ExprKind::Unary { arg, .. }
            | ExprKind::Not(arg)
            | ExprKind::Is { arg, .. }
            | ExprKind::Cast { arg, .. }
            | ExprKind::Collate { arg, .. }
            | ExprKind::Field { arg, .. }
            | ExprKind::FieldStar(arg) => self.expr(arg),
            ExprKind::Binary { left, right, .. }
            | ExprKind::IsDistinct { left, right, .. }
            | ExprKind::AnyArray { left, right, .. }
            | ExprKind::NullIf(left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Array(list)
            | ExprKind::Coalesce(list)
            | ExprKind::Grouping(list)
            | ExprKind::Row { fields: list, .. }
            | ExprKind::MinMax { args: list, .. } => self.exprs(list),
            ExprKind::Between { arg, low, high, .. } => {
                self.expr(arg);
                self.expr(low);
                self.expr(high);
            }
            ExprKind::In { arg, list, .. } => {
                self.expr(arg);
                self.exprs(list);
            }
            ExprKind::Like { arg, pattern, escape, .. } => {
                self.expr(arg);
                self.expr(pattern);
                self.exprs(escape.as_deref());
            }
            ExprKind::InSelect { arg: left, query, .. }
            | ExprKind::AnySelect { left, query, .. } => {
                self.expr(left);
                self.inside(Some("a subquery"), |s| s.select(query));
            }
            ExprKind::Exists(query) | ExprKind::Subquery(query) | ExprKind::ArraySelect(query) => {
                self.inside(Some("a subquery"), |s| s.select(query));
            }
            ExprKind::Case { operand, arms, otherwise } => {
                self.exprs(operand.as_deref());
                self.exprs(arms.iter().flat_map(|(when, then)| [when, then]));
                self.exprs(otherwise.as_deref());
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Json(call) => self.json(call),
            ExprKind::Subscript { arg, indexes } => {
                self.expr(arg);
                self.subscripts(indexes);
            }
        }
    }
}
