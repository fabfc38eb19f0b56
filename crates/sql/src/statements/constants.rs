//! Where a statement's constants stand in its text, by its syntax tree.
//!
//! # Invariants
//! A number that means a column of the output (`ORDER BY 1`, `GROUP BY 1`, `DISTINCT ON (1)`) is none, nor is one that belongs to a type
//! (`varchar(10)`). A list of constants is one place.

use crate::parse::Statement;
use crate::parse::ast::{
    Bound, ConflictTarget, Cycle, DistinctClause, Expr, ExprKind, FuncCall, GroupItem, Insert,
    JoinCondition, JsonAnswer, JsonArg, JsonCall, JsonTableItem, JsonTableRows, Loc, Merge,
    MergeAction, Over, QueryStatement, Returning, Select, SelectBody, SelectCore, SetClause,
    SortBy, SubscriptIndex, TableRef, WindowSpec, With,
};
use crate::parse::utility::UtilityStatement as U;

/// A place in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A constant, or what the parser has made one of.
    Constant(Loc),
    /// What the statement says `$n` for; or what was a number in its text before it was given a plan for all numbers.
    Param(Loc),
    /// A list of two constants or more within the parentheses or brackets that open next after here.
    List(Loc),
}

/// The places of a statement: those of a query in it, too, where PostgreSQL takes them out.
pub(super) fn places(statement: &Statement) -> Vec<Place> {
    let mut found = Places(Vec::new());
    found.any(statement);
    found.0
}

/// Is it of the kind that lists are made short of?
fn is_plain(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::BitString { .. }
        | ExprKind::Param(_) => true,
        ExprKind::Cast { arg, .. } => is_plain(arg),
        _ => false,
    }
}

fn is_list(list: &[Expr]) -> bool {
    list.len() > 1 && list.iter().all(is_plain)
}

struct Places(Vec<Place>);

impl Places {
    fn any(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) => self.statement(query),
            Statement::Utility(utility) => match utility.as_ref() {
                U::CreateTableAs(create) => self.any(&create.statement),
                U::DeclareCursor(declare) => self.statement(&declare.query),
                U::Explain(explain) => self.any(&explain.statement),
                U::Prepare { statement, .. } => self.any(statement),
                _ => {}
            },
        }
    }

    fn statement(&mut self, statement: &QueryStatement) {
        match statement {
            QueryStatement::Select(s) => self.select(s),
            QueryStatement::Insert(i) => self.insert(i),
            QueryStatement::Update(u) => {
                self.with(u.with.as_ref());
                self.set(&u.set);
                u.from.iter().for_each(|t| self.table(t));
                self.exprs(&u.filter);
                self.returning(&u.returning);
            }
            QueryStatement::Delete(d) => {
                self.with(d.with.as_ref());
                d.using.iter().for_each(|t| self.table(t));
                self.exprs(&d.filter);
                self.returning(&d.returning);
            }
            QueryStatement::Merge(m) => self.merge(m),
        }
    }

    fn with(&mut self, with: Option<&With>) {
        for cte in with.iter().flat_map(|w| &w.ctes) {
            self.statement(&cte.statement);
            if let Some(Cycle { value, default, .. }) = &cte.cycle {
                self.exprs(value.iter().chain(default));
            }
        }
    }

    fn returning(&mut self, returning: &Returning) {
        self.exprs(returning.targets.iter().map(|t| &t.expr));
    }

    fn insert(&mut self, i: &Insert) {
        self.with(i.with.as_ref());
        if let Some(source) = &i.source {
            self.select(source);
        }
        if let Some(c) = &i.on_conflict {
            if let ConflictTarget::Columns { elements, filter, .. } = &c.target {
                self.exprs(elements.iter().filter_map(|e| e.expr.as_ref()));
                self.exprs(filter);
            }
            self.set(c.update.as_deref().unwrap_or_default());
            self.exprs(&c.filter);
        }
        self.returning(&i.returning);
    }

    fn merge(&mut self, m: &Merge) {
        self.with(m.with.as_ref());
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
        self.returning(&m.returning);
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

    fn select(&mut self, s: &Select) {
        self.with(s.with.as_ref());
        match &s.body {
            SelectBody::Core(core) => self.core(core),
            SelectBody::Values(rows) => rows.iter().for_each(|row| self.exprs(row)),
            SelectBody::SetOp { left, right, .. } => {
                self.select(left);
                self.select(right);
            }
        }
        self.columns(s.order_by.iter().map(|by| &by.expr));
        self.exprs(s.limit.iter().chain(&s.offset));
    }

    fn core(&mut self, c: &SelectCore) {
        if let DistinctClause::On(list) = &c.distinct {
            self.columns(list);
        }
        self.exprs(c.targets.iter().map(|t| &t.expr));
        c.from.iter().for_each(|t| self.table(t));
        self.exprs(&c.filter);
        c.group_by.iter().for_each(|item| self.group(item));
        self.exprs(&c.having);
        c.windows.iter().for_each(|(_, window)| self.window(window));
    }

    fn group(&mut self, item: &GroupItem) {
        match item {
            GroupItem::Expr(e) => self.columns(std::iter::once(e)),
            GroupItem::Empty => {}
            GroupItem::Rollup(list) | GroupItem::Cube(list) => self.columns(list),
            GroupItem::Sets(items) => items.iter().for_each(|item| self.group(item)),
        }
    }

    /// Expressions among which a whole number is a column of the output.
    fn columns<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        let number =
            |e: &&Expr| !matches!(&e.kind, ExprKind::Number(n) if n.parse::<i32>().is_ok());
        self.exprs(list.into_iter().filter(number));
    }

    fn table(&mut self, table: &TableRef) {
        match table {
            TableRef::Table { sample, .. } => {
                if let Some(sample) = sample {
                    self.exprs(sample.arguments.iter().chain(&sample.seed));
                }
            }
            TableRef::Subquery { query, .. } => self.select(query),
            TableRef::Function { calls, .. } => self.exprs(calls.iter().map(|(call, _)| call)),
            TableRef::Join { left, right, condition, .. } => {
                self.table(left);
                self.table(right);
                if let JoinCondition::On(on) = condition {
                    self.expr(on);
                }
            }
        }
    }

    fn window(&mut self, window: &WindowSpec) {
        self.exprs(&window.partition_by);
        self.sorted(&window.order_by);
        let Some(frame) = &window.frame else { return };
        for bound in std::iter::once(&frame.start).chain(&frame.end) {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                self.expr(e);
            }
        }
    }

    fn sorted(&mut self, by: &[SortBy]) {
        self.exprs(by.iter().map(|by| &by.expr));
    }

    fn over(&mut self, over: Option<&Over>) {
        if let Some(Over::Spec(window)) = over {
            self.window(window);
        }
    }

    fn exprs<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        list.into_iter().for_each(|e| self.expr(e));
    }

    /// The elements of a list that opens after `at`.
    fn list(&mut self, at: Loc, list: &[Expr]) {
        if is_list(list) { self.0.push(Place::List(at)) } else { self.exprs(list) }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BitString { .. } => self.0.push(Place::Constant(e.loc)),
            ExprKind::Param(_) => self.0.push(Place::Param(e.loc)),
            ExprKind::Column(_)
            | ExprKind::Star(_)
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
            ExprKind::Between { arg, low, high, .. } => {
                [arg, low, high].into_iter().for_each(|e| self.expr(e));
            }
            ExprKind::In { arg, list, .. } => {
                self.expr(arg);
                self.list(e.loc, list);
            }
            ExprKind::Like { arg, pattern, escape, .. } => {
                self.expr(arg);
                self.expr(pattern);
                self.exprs(escape.as_deref());
            }
            ExprKind::InSelect { arg, query, .. } => {
                self.expr(arg);
                self.select(query);
            }
            ExprKind::AnySelect { left, query, .. } => {
                self.expr(left);
                self.select(query);
            }
            ExprKind::Exists(query) | ExprKind::Subquery(query) | ExprKind::ArraySelect(query) => {
                self.select(query);
            }
            ExprKind::Array(list) => self.list(e.loc, list),
            ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Row { fields: list, .. }
            | ExprKind::Coalesce(list)
            | ExprKind::MinMax { args: list, .. }
            | ExprKind::Grouping(list) => self.exprs(list),
            ExprKind::Case { operand, arms, otherwise } => {
                self.exprs(operand.as_deref());
                self.exprs(arms.iter().flat_map(|(when, then)| [when, then]));
                self.exprs(otherwise.as_deref());
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Json(json) => self.json(json),
            ExprKind::Subscript { arg, indexes } => {
                self.expr(arg);
                for SubscriptIndex { lower, upper, .. } in indexes {
                    self.exprs(lower.iter().chain(upper));
                }
            }
        }
    }

    fn call(&mut self, call: &FuncCall) {
        self.exprs(call.args.iter().map(|a| &a.value));
        self.sorted(&call.order_by);
        self.exprs(call.filter.as_deref());
        self.over(call.over.as_ref());
    }

    fn json(&mut self, json: &JsonCall) {
        match json {
            JsonCall::Make { args, .. } => self.json_args(args),
            JsonCall::ArraySelect { query, .. } => self.select(query),
            JsonCall::Aggregate { args, order_by, filter, over, .. } => {
                self.json_args(args);
                self.sorted(order_by);
                self.exprs(filter.as_deref());
                self.over(over.as_ref());
            }
            JsonCall::Table(table) => {
                self.expr(&table.value.value);
                self.json_rows(&table.rows);
                self.exprs(table.passing.iter().map(|(arg, _)| &arg.value));
                self.answer(table.on_error.as_ref());
            }
            JsonCall::Find { value, path, passing, on_empty, on_error, .. } => {
                self.expr(&value.value);
                self.expr(path);
                self.exprs(passing.iter().map(|(arg, _)| &arg.value));
                self.answer(on_empty.as_ref());
                self.answer(on_error.as_ref());
            }
        }
    }

    fn json_args(&mut self, args: &[JsonArg]) {
        self.exprs(args.iter().map(|a| &a.value));
    }

    fn json_rows(&mut self, rows: &JsonTableRows) {
        self.expr(&rows.path);
        for item in &rows.items {
            match item {
                JsonTableItem::Ordinality { .. } => {}
                JsonTableItem::Column(column) => {
                    self.exprs(&column.path);
                    self.answer(column.on_empty.as_ref());
                    self.answer(column.on_error.as_ref());
                }
                JsonTableItem::Nested(rows) => self.json_rows(rows),
            }
        }
    }

    fn answer(&mut self, answer: Option<&JsonAnswer>) {
        if let Some(JsonAnswer::Default(e)) = answer {
            self.expr(e);
        }
    }
}
