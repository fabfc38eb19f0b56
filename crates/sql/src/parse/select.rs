//! SELECT, VALUES, set operations, WITH, windows; FROM is in `from`.

use super::ast::{
    Bound, CteDefinition, Cycle, DistinctClause, ExprKind, Frame, GroupItem, IntoClause, Loc,
    Locking, ObjectName, OpName, QueryStatement, Search, Select, SelectBody, SelectCore, SortBy,
    TableRef, Target, WindowSpec, With,
};
use super::expr::{boxed, node};
use super::lexer::Kind;
use super::parser::{OF_A_NODE, Parser};
use crate::query::{FrameExclude, FrameMode, LockStrength, LockWait, SetOp};
use base::{Result, err};

/// How many selects one chain of UNION may join.
const MAX_SET_OPERATIONS: u32 = 500;

pub(super) fn plain(body: SelectBody, loc: Loc) -> Select {
    Select {
        with: None,
        body,
        order_by: Vec::new(),
        limit: None,
        offset: None,
        with_ties: false,
        locking: Vec::new(),
        loc,
    }
}

/// `CREATE RECURSIVE VIEW name (columns) AS query` is a view of WITH RECURSIVE, of that name, with these columns.
pub(super) fn recursive_view(name: &str, columns: &[String], query: Select) -> Select {
    let loc = query.loc;
    let column =
        |c: &String| Target { expr: node(ExprKind::Column(vec![c.clone()]), loc), alias: None };
    let core = SelectCore {
        distinct: DistinctClause::No,
        targets: columns.iter().map(column).collect(),
        into: None,
        from: vec![TableRef::Table {
            name: ObjectName { catalog: None, schema: None, name: name.to_owned(), loc },
            only: false,
            alias: None,
            sample: None,
        }],
        filter: None,
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    };
    let cte = CteDefinition {
        name: name.to_owned(),
        columns: columns.to_vec(),
        materialized: None,
        statement: Box::new(QueryStatement::Select(query)),
        search: None,
        cycle: None,
        loc,
    };
    let with = Some(With { recursive: true, ctes: vec![cte], loc });
    Select { with, ..plain(SelectBody::Core(Box::new(core)), loc) }
}

impl Parser<'_> {
    /// WITH … before a query or DML statement.
    pub fn with_clause(&mut self) -> Result<Option<With>> {
        let loc = self.loc();
        if !self.accept("with") {
            return Ok(None);
        }
        let recursive = self.accept("recursive");
        let ctes = self.list(|p| {
            let loc = p.loc();
            let name = p.name()?;
            let columns = if p.is_op("(") { p.paren_list(Self::name)? } else { Vec::new() };
            p.expect("as")?;
            let materialized = if p.accept("materialized") {
                Some(true)
            } else if p.accept_all(&["not", "materialized"]) {
                Some(false)
            } else {
                None
            };
            p.expect_op("(")?;
            let statement = Box::new(p.deeper(Self::query_statement)?);
            p.expect_op(")")?;
            let (search, cycle) = (p.search_clause()?, p.cycle_clause()?);
            Ok(CteDefinition { name, columns, materialized, statement, search, cycle, loc })
        })?;
        Ok(Some(With { recursive, ctes, loc }))
    }

    /// SEARCH behind a WITH query.
    fn search_clause(&mut self) -> Result<Option<Search>> {
        let loc = self.loc();
        if !self.accept("search") {
            return Ok(None);
        }
        let breadth_first = self.accept("breadth");
        if !breadth_first {
            self.expect("depth")?;
        }
        self.expect_all(&["first", "by"])?;
        let columns = self.list(Self::name)?;
        self.expect("set")?;
        Ok(Some(Search { breadth_first, columns, sequence: self.name()?, loc }))
    }

    /// CYCLE behind a WITH query.
    fn cycle_clause(&mut self) -> Result<Option<Cycle>> {
        let loc = self.loc();
        if !self.accept("cycle") {
            return Ok(None);
        }
        let columns = self.list(Self::name)?;
        self.expect("set")?;
        let mark = self.name()?;
        let (mut value, mut default) = (None, None);
        if self.accept("to") {
            // As views are printed: `'y'::text`, which PostgreSQL prints, too, but does not read.
            value = Some(self.with_casts()?);
            self.expect("default")?;
            default = Some(self.with_casts()?);
        }
        self.expect("using")?;
        Ok(Some(Cycle { columns, mark, value, default, path: self.name()?, loc }))
    }

    /// A query or DML statement.
    pub fn query_statement(&mut self) -> Result<QueryStatement> {
        let loc = self.loc();
        let with = self.with_clause()?;
        if self.is("insert") {
            return Ok(QueryStatement::Insert(Box::new(self.insert(with)?)));
        }
        if self.is("update") {
            return Ok(QueryStatement::Update(Box::new(self.update(with)?)));
        }
        if self.is("delete") {
            return Ok(QueryStatement::Delete(Box::new(self.delete(with)?)));
        }
        if self.is("merge") {
            return Ok(QueryStatement::Merge(Box::new(self.merge(with)?)));
        }
        Ok(QueryStatement::Select(self.select_after(with, loc)?))
    }

    /// A SELECT-like with everything round it.
    pub fn select(&mut self) -> Result<Select> {
        self.deeper(|p| {
            let loc = p.loc();
            let with = p.with_clause()?;
            p.select_after(with, loc)
        })
    }

    fn select_after(&mut self, with: Option<With>, loc: Loc) -> Result<Select> {
        let restricted = std::mem::replace(&mut self.restricted, false);
        let mut s = self.set_operation(0)?;
        self.restricted = restricted;
        if let Some(with) = with {
            if s.with.is_some() {
                let e = err!(SYNTAX_ERROR, "multiple WITH clauses not allowed");
                return self.error_here(e, with.loc);
            }
            s.with = Some(with);
            s.loc = loc;
        }
        if self.is("order") {
            let at = self.loc();
            let order = self.order_by()?;
            if !s.order_by.is_empty() {
                let e = err!(SYNTAX_ERROR, "multiple ORDER BY clauses not allowed");
                return self.error_here(e, at);
            }
            s.order_by = order;
        }
        loop {
            let at = self.loc();
            let twice = |p: &Self, what: &str| {
                p.error_here(err!(SYNTAX_ERROR, "multiple {what} clauses not allowed"), at)
            };
            if self.accept("limit") {
                let e = if self.accept("all") { node(ExprKind::Null, at) } else { self.expr()? };
                if self.is_op(",") {
                    let e = base::SqlError::new(
                        base::SqlState::SYNTAX_ERROR,
                        "LIMIT #,# syntax is not supported",
                    )
                    .hint("Use separate LIMIT and OFFSET clauses.");
                    return self.error_here(e.into(), at);
                }
                if s.limit.is_some() {
                    return twice(self, "LIMIT");
                }
                s.limit = Some(e);
            } else if self.accept("offset") {
                let e = self.expr()?;
                if self.is_any(&["row", "rows"]) {
                    self.skip(1);
                }
                if s.offset.is_some() {
                    return twice(self, "OFFSET");
                }
                s.offset = Some(e);
            } else if self.is("fetch") {
                self.fetch_first(&mut s)?;
            } else if self.is("for") && self.is_lock_clause() {
                if let Some(lock) = self.locking()? {
                    s.locking.push(lock);
                }
            } else {
                return Ok(s);
            }
        }
    }

    fn fetch_first(&mut self, s: &mut Select) -> Result<()> {
        let at = self.loc();
        self.expect("fetch")?;
        if !self.accept("first") {
            self.expect("next")?;
        }
        let count = if self.is_any(&["row", "rows"]) {
            node(ExprKind::Number("1".into()), at)
        } else if self.is_op("(") || self.peek().kind == Kind::Param {
            self.primary()?
        } else if self.accept("null") {
            node(ExprKind::Null, at)
        } else {
            let n = self.signed_integer()?;
            node(ExprKind::Number(n.to_string()), at)
        };
        if !self.accept("rows") {
            self.expect("row")?;
        }
        if self.accept_all(&["with", "ties"]) {
            s.with_ties = true;
        } else {
            self.expect("only")?;
        }
        if s.limit.is_some() {
            return self.error_here(err!(SYNTAX_ERROR, "multiple LIMIT clauses not allowed"), at);
        }
        s.limit = Some(count);
        Ok(())
    }

    fn is_lock_clause(&self) -> bool {
        ["update", "share", "no", "key", "read"].iter().any(|w| self.is_at(1, w))
    }

    fn locking(&mut self) -> Result<Option<Locking>> {
        self.expect("for")?;
        let strength = if self.accept("update") {
            LockStrength::Update
        } else if self.accept("share") {
            LockStrength::Share
        } else if self.accept_all(&["no", "key", "update"]) {
            LockStrength::NoKeyUpdate
        } else if self.accept_all(&["key", "share"]) {
            LockStrength::KeyShare
        } else {
            self.expect_all(&["read", "only"])?;
            return Ok(None);
        };
        let tables = if self.accept("of") { self.list(Self::object_name)? } else { Vec::new() };
        let wait = if self.accept("nowait") {
            LockWait::NoWait
        } else if self.accept_all(&["skip", "locked"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Block
        };
        Ok(Some(Locking { strength, tables, wait }))
    }

    fn set_operation(&mut self, min: u8) -> Result<Select> {
        self.within(|p| p.set_operations(min))
    }

    fn set_operations(&mut self, min: u8) -> Result<Select> {
        let mut left = self.simple_select()?;
        let mut chain = 0;
        loop {
            chain += 1;
            if chain > MAX_SET_OPERATIONS {
                return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
            }
            let (op, bind) = match self.peek() {
                t if t.kind != Kind::Word => return Ok(left),
                t if t.text == "union" => (SetOp::Union, 1),
                t if t.text == "except" => (SetOp::Except, 1),
                t if t.text == "intersect" => (SetOp::Intersect, 2),
                _ => return Ok(left),
            };
            if bind < min {
                return Ok(left);
            }
            let loc = self.loc();
            self.skip(1);
            let all = self.accept("all");
            if !all {
                self.accept("distinct");
            }
            let right = self.deeper(|p| p.set_operation(bind + 1))?;
            let start = left.loc;
            left = plain(
                SelectBody::SetOp { op, all, left: Box::new(left), right: Box::new(right), loc },
                start,
            );
            self.grow_by(OF_A_NODE)?;
        }
    }

    fn simple_select(&mut self) -> Result<Select> {
        let loc = self.loc();
        if self.is_op("(") {
            self.skip(1);
            let s = self.select()?;
            self.expect_op(")")?;
            return Ok(s);
        }
        if self.accept("values") {
            let rows = self.list(|p| p.paren_list(Self::expr))?;
            return Ok(plain(SelectBody::Values(rows), loc));
        }
        if self.accept("table") {
            let table = self.unaliased_relation()?;
            let core = SelectCore {
                distinct: DistinctClause::No,
                targets: vec![Target { expr: node(ExprKind::Star(Vec::new()), loc), alias: None }],
                into: None,
                from: vec![table],
                filter: None,
                group_by: Vec::new(),
                group_distinct: false,
                having: None,
                windows: Vec::new(),
            };
            return Ok(plain(SelectBody::Core(Box::new(core)), loc));
        }
        self.expect("select")?;
        let core = self.core()?;
        Ok(plain(SelectBody::Core(Box::new(core)), loc))
    }

    fn core(&mut self) -> Result<SelectCore> {
        let mut distinct = DistinctClause::No;
        if self.accept("distinct") {
            distinct = if self.accept("on") {
                DistinctClause::On(self.paren_list(Self::expr)?)
            } else {
                DistinctClause::All
            };
        } else {
            self.accept("all");
        }
        // DISTINCT is of something.
        let may_be_none = matches!(distinct, DistinctClause::No);
        let none = may_be_none
            && (self.at_end()
                || self.is_op(")")
                || self.is_any(&[
                    "on",
                    "returning",
                    "from",
                    "where",
                    "group",
                    "having",
                    "window",
                    "order",
                    "limit",
                    "offset",
                    "fetch",
                    "for",
                    "union",
                    "intersect",
                    "except",
                    "into",
                ]));
        let targets = if none { Vec::new() } else { self.targets()? };
        let at = self.loc();
        let into = if self.accept("into") { Some(Box::new(self.into_clause(at)?)) } else { None };
        let from = if self.accept("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let filter = if self.accept("where") { Some(self.expr()?) } else { None };
        let mut group_by = Vec::new();
        let mut group_distinct = false;
        if self.accept_all(&["group", "by"]) {
            group_distinct = self.accept("distinct");
            if !group_distinct {
                self.accept("all");
            }
            group_by = self.list(Self::group_item)?;
        }
        let having = if self.accept("having") { Some(self.expr()?) } else { None };
        let mut windows = Vec::new();
        if self.accept("window") {
            windows = self.list(|p| {
                let name = p.name()?;
                p.expect("as")?;
                Ok((name, p.window_spec()?))
            })?;
        }
        Ok(SelectCore {
            distinct,
            targets,
            into,
            from,
            filter,
            group_by,
            group_distinct,
            having,
            windows,
        })
    }

    fn into_clause(&mut self, loc: Loc) -> Result<IntoClause> {
        let mut temporary = false;
        let mut unlogged = false;
        if self.is_any(&["local", "global"]) {
            self.skip(1);
        }
        if self.is_any(&["temp", "temporary"]) {
            self.skip(1);
            temporary = true;
        } else if self.accept("unlogged") {
            unlogged = true;
        }
        self.accept("table");
        Ok(IntoClause { name: self.object_name()?, temporary, unlogged, loc })
    }

    /// A target list or RETURNING list.
    pub fn targets(&mut self) -> Result<Vec<Target>> {
        self.list(|p| {
            let loc = p.loc();
            if p.accept_op("*") {
                return Ok(Target { expr: node(ExprKind::Star(Vec::new()), loc), alias: None });
            }
            let expr = p.expr()?;
            let alias = if p.accept("as") || p.is_bare_label() { Some(p.label()?) } else { None };
            Ok(Target { expr, alias })
        })
    }

    fn group_item(&mut self) -> Result<GroupItem> {
        if self.is_op("(") && self.is_op_at(1, ")") {
            self.skip(2);
            return Ok(GroupItem::Empty);
        }
        if self.is_any(&["rollup", "cube"]) && self.is_op_at(1, "(") {
            let rollup = self.is("rollup");
            self.skip(1);
            let list = self.paren_list(Self::expr)?;
            return Ok(if rollup { GroupItem::Rollup(list) } else { GroupItem::Cube(list) });
        }
        if self.is("grouping") && self.is_at(1, "sets") {
            self.skip(2);
            let sets = self.paren_list(|p| p.deeper(Self::group_item))?;
            return Ok(GroupItem::Sets(sets));
        }
        Ok(GroupItem::Expr(self.expr()?))
    }

    /// ORDER BY and its list.
    pub fn order_by(&mut self) -> Result<Vec<SortBy>> {
        self.expect_all(&["order", "by"])?;
        self.list(|p| {
            let expr = p.expr()?;
            let mut using: Option<OpName> = None;
            let mut descending = false;
            if p.accept("using") {
                let name = p.operator_symbol()?;
                descending = name == ">" || name == ">=";
                using = Some(OpName { schema: None, name });
            } else if p.accept("desc") {
                descending = true;
            } else {
                p.accept("asc");
            }
            let nulls_first = p.nulls_order()?;
            Ok(SortBy { expr, descending, nulls_first, using })
        })
    }

    /// NULLS FIRST | LAST
    pub fn nulls_order(&mut self) -> Result<Option<bool>> {
        if !self.is("nulls") || !(self.is_at(1, "first") || self.is_at(1, "last")) {
            return Ok(None);
        }
        self.skip(1);
        let first = self.accept("first");
        if !first {
            self.expect("last")?;
        }
        Ok(Some(first))
    }

    /// `( … )` after OVER or in WINDOW.
    pub fn window_spec(&mut self) -> Result<WindowSpec> {
        let loc = self.loc();
        self.expect_op("(")?;
        let mut base = None;
        if self.is_name() && !self.is_any(&["partition", "range", "rows", "groups"]) {
            base = Some(self.name()?);
        }
        let mut partition_by = Vec::new();
        if self.accept_all(&["partition", "by"]) {
            partition_by = self.list(Self::expr)?;
        }
        let order_by = if self.is("order") { self.order_by()? } else { Vec::new() };
        let mut frame = None;
        if self.is_any(&["range", "rows", "groups"]) {
            frame = Some(self.frame()?);
        }
        self.expect_op(")")?;
        Ok(WindowSpec { base, partition_by, order_by, frame, loc })
    }

    fn frame(&mut self) -> Result<Frame> {
        let loc = self.loc();
        let mode = match &*self.next().text {
            "range" => FrameMode::Range,
            "rows" => FrameMode::Rows,
            _ => FrameMode::Groups,
        };
        let between = self.accept("between");
        let first = self.loc();
        let start = self.bound()?;
        let (mut last, mut end) = (first, None);
        if between {
            self.expect("and")?;
            last = self.loc();
            end = Some(self.bound()?);
        }
        let bad = match (&start, &end) {
            (Bound::UnboundedFollowing, _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, Some(Bound::UnboundedPreceding)) => Some("frame end cannot be UNBOUNDED PRECEDING"),
            (Bound::CurrentRow, Some(Bound::Preceding(_))) => {
                Some("frame starting from current row cannot have preceding rows")
            }
            (Bound::Following(_), None) => {
                Some("frame starting from following row cannot end with current row")
            }
            (Bound::Following(_), Some(Bound::Preceding(_) | Bound::CurrentRow)) => {
                Some("frame starting from following row cannot have preceding rows")
            }
            _ => None,
        };
        if let Some(message) = bad {
            let at = if matches!(start, Bound::UnboundedFollowing) { first } else { last };
            return self.error_here(err!(WINDOWING_ERROR, "{message}"), at);
        }
        let mut exclude = FrameExclude::NoOthers;
        if self.accept("exclude") {
            if self.accept_all(&["current", "row"]) {
                exclude = FrameExclude::CurrentRow;
            } else if self.accept("group") {
                exclude = FrameExclude::Group;
            } else if self.accept("ties") {
                exclude = FrameExclude::Ties;
            } else {
                self.expect_all(&["no", "others"])?;
            }
        }
        Ok(Frame { mode, start, end, exclude, loc })
    }

    fn bound(&mut self) -> Result<Bound> {
        if self.accept_all(&["current", "row"]) {
            return Ok(Bound::CurrentRow);
        }
        if self.accept("unbounded") {
            if self.accept("preceding") {
                return Ok(Bound::UnboundedPreceding);
            }
            self.expect("following")?;
            return Ok(Bound::UnboundedFollowing);
        }
        let e = boxed(self.expr()?);
        if self.accept("preceding") {
            return Ok(Bound::Preceding(e));
        }
        self.expect("following")?;
        Ok(Bound::Following(e))
    }
}
