//! Whole queries, laid out as PostgreSQL lays out a view.

use super::Printer;
use super::exprs::IntoOwnedString;
use super::names::Level;
use crate::query::{
    Command, Cte, Distinct, FromItem, GroupingItem, JoinKind, Query, RangeTableEntry, RteKind,
    SetOp, SetOperation,
};
use base::{Oid, Result};
use engine::catalog::model::Column;
use expr::Expr;
use types::{Datum, quote_ident};

/// Does a function in FROM yield what its column definition list says?
fn is_defined(call: &Expr) -> bool {
    let told = crate::analyse::template_columns(call).is_some();
    call.ty().oid == types::oids::RECORD
        && (told || crate::analyse::function_columns(call).is_none())
}

/// The array that `unnest(array)` is called with.
fn unnested(call: &Expr) -> Option<&Expr> {
    match call {
        Expr::Call { function, args, .. } if super::exprs::function_name(*function) == "unnest" => {
            args.first()
        }
        _ => None,
    }
}

/// A column of the query's own level, by its bare name.
fn column_name<'q>(q: &'q Query, e: &Expr) -> Option<&'q str> {
    let Expr::Var { levels_up: 0, rte, column, .. } = e else { return None };
    let names = &q.range_table.get(*rte)?.column_names;
    names.get(usize::try_from(*column - 1).ok()?).map(String::as_str)
}

impl<'a> Printer<'a> {
    pub fn query(&mut self, q: &'a Query) -> Result<()> {
        self.nested(q, self.outputs, true)
    }

    /// A query one level further in, a blank before it. `outputs`: the names of its columns where they are not its own; `named`: whoever
    /// reads it sees what they are called.
    pub fn nested<'b>(&mut self, q: &'b Query, outputs: &'b [String], named: bool) -> Result<()>
    where
        'a: 'b,
    {
        // A printer of its own borrows for as long as this level lasts.
        let around = self.levels.len().saturating_sub(self.owner_up);
        let mut levels: Vec<Level<'b>> = self.levels[..around].to_vec();
        levels.push(Level::new(q, &self.levels));
        let mut inner = Printer {
            out: std::mem::take(&mut self.out),
            pretty: self.pretty,
            env: self.env,
            catalog: self.catalog,
            levels,
            columns: &[],
            outputs,
            named,
            indent: self.indent,
            in_case: false,
            sub_columns: Vec::new(),
            owner_up: 0,
        };
        let r = inner.body(q);
        self.out = inner.out;
        r
    }

    fn body(&mut self, q: &'a Query) -> Result<()> {
        self.with(q)?;
        if q.command != Command::Select {
            return Err(base::Error::unsupported("printing INSERT, UPDATE or DELETE"));
        }
        match &q.set_operation {
            Some(tree) => self.set_operation(q, tree)?,
            None => self.select(q)?,
        }
        if !q.order_by.is_empty() {
            self.line(2);
            self.text("ORDER BY ");
            self.sort_keys(&q.order_by)?;
        }
        if let Some(e) = &q.offset {
            self.line(1);
            self.text("OFFSET ");
            self.quiet(e)?;
        }
        if let Some(e) = &q.limit {
            self.line(1);
            self.text(if q.limit_with_ties { "FETCH FIRST " } else { "LIMIT " });
            // The count of FETCH FIRST is a constant or stands in parentheses.
            self.text(if q.limit_with_ties { "(" } else { "" });
            self.quiet(e)?;
            self.text(if q.limit_with_ties { ") ROWS WITH TIES" } else { "" });
        }
        for m in q.row_marks.iter().filter(|m| !m.pushed) {
            self.line(1);
            self.text(crate::analyse::lock_words(m.strength));
            if let Some(name) = self.entry_name(m.rte) {
                self.text(" OF ");
                self.text(&name);
            }
            self.text(match m.wait {
                crate::query::LockWait::Block => "",
                crate::query::LockWait::NoWait => " NOWAIT",
                crate::query::LockWait::SkipLocked => " SKIP LOCKED",
            });
        }
        Ok(())
    }

    /// Entry `rte` of this level as it is referred to.
    fn entry_name(&self, rte: usize) -> Option<String> {
        let name = self.levels.last()?.names.get(rte)?;
        Some(quote_ident(name).into_owned_string())
    }

    /// Would ORDER BY take the column's bare name for that of another output?
    fn hidden_by_output(&self, q: &Query, e: &Expr) -> bool {
        let Some(name) = column_name(q, e) else { return false };
        let shown = || q.targets.iter().enumerate().filter(|(_, t)| !t.hidden);
        shown().any(|(n, t)| self.output_name(n, &t.name) == name && t.expr != *e)
    }

    fn qualified(&mut self, q: &Query, e: &Expr) -> Result<()> {
        let (Expr::Var { rte, column, .. }, Some(own)) = (e, column_name(q, e)) else {
            return self.expr(e);
        };
        let called = self.levels.last().and_then(|l| l.columns[*rte].get(*column as usize - 1));
        let name = called.map_or(own, String::as_str).to_owned();
        let table = self.entry_name(*rte).unwrap_or_default();
        self.text(&format!("{table}.{}", quote_ident(&name).into_owned_string()));
        Ok(())
    }

    /// The name of output `n`: a view's own column names stand over those it was made with.
    fn output_name<'n>(&'n self, n: usize, own: &'n str) -> &'n str {
        self.outputs.get(n).map_or(own, String::as_str)
    }

    /// What is sorted or grouped by, so that it is taken for no position, other output, or `cube(…)`.
    pub(super) fn sort_expr(&mut self, e: &Expr) -> Result<()> {
        let q = self.levels.last().map(|l| l.query);
        match e {
            Expr::Slot { index, .. } => {
                self.text(&(index + 1).to_string());
                return Ok(());
            }
            Expr::Const(c) => return self.labelled(c),
            Expr::Var { .. } => {
                return match q {
                    Some(q) if self.join_column(e).is_none() && self.hidden_by_output(q, e) => {
                        self.qualified(q, e)
                    }
                    _ => self.expr(e),
                };
            }
            _ => {}
        }
        let call = match e {
            Expr::Call { form, .. } => *form != expr::tree::CallForm::Operator,
            other => matches!(other, Expr::Aggregate(_) | Expr::Window(_)),
        };
        if !call && !self.pretty {
            return self.expr(e);
        }
        self.text("(");
        self.expr(e)?;
        self.text(")");
        Ok(())
    }

    /// An expression that stands by itself in a list: a whole row would be spread out there.
    pub(super) fn alone(&mut self, e: &Expr) -> Result<()> {
        let from = self.out.len();
        self.expr(e)?;
        if matches!(e, Expr::Var { .. } | Expr::Row { .. }) && self.out[from..].ends_with(".*") {
            let ty = types::type_text(e.ty().oid, -1, self.env);
            self.text(&format!("::{ty}"));
        }
        Ok(())
    }

    fn with(&mut self, q: &'a Query) -> Result<()> {
        if q.ctes.is_empty() {
            return Ok(());
        }
        let recursive = q.recursive_with || q.ctes.iter().any(|c| c.recursive);
        self.text(if recursive { " WITH RECURSIVE " } else { " WITH " });
        for (i, c) in q.ctes.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            self.text(&quote_ident(&c.name).into_owned_string());
            let own: Vec<&str> = c.query.targets.iter().map(|t| t.name.as_str()).collect();
            let shown = &c.columns[..c.columns.len() - c.added_columns()];
            if !own.iter().copied().eq(shown.iter().map(String::as_str)) {
                let names: Vec<String> =
                    shown.iter().map(|n| quote_ident(n).into_owned_string()).collect();
                self.text(&format!("({})", names.join(", ")));
            }
            self.text(match c.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            self.indent += 8;
            self.line(0);
            self.nested(&c.query, &[], true)?;
            self.indent -= 8;
            self.line(8);
            self.text(")");
            self.search_and_cycle(c)?;
        }
        self.line(0);
        Ok(())
    }

    /// SEARCH and CYCLE of a WITH query.
    fn search_and_cycle(&mut self, c: &Cte) -> Result<()> {
        let names = |list: &[String]| {
            let quoted: Vec<String> =
                list.iter().map(|n| quote_ident(n).into_owned_string()).collect();
            quoted.join(", ")
        };
        if let Some(s) = &c.search {
            let order = if s.breadth_first { "BREADTH" } else { "DEPTH" };
            let (columns, sequence) = (names(&s.columns), quote_ident(&s.sequence));
            self.text(&format!(" SEARCH {order} FIRST BY {columns} SET {sequence}"));
        }
        let Some(cycle) = &c.cycle else { return Ok(()) };
        let mark = quote_ident(&cycle.mark).into_owned_string();
        self.text(&format!(" CYCLE {} SET {mark}", names(&cycle.columns)));
        let is = |e: &Expr, b: bool| matches!(e, Expr::Const(c) if matches!(c.value, Datum::Bool(v) if v == b));
        if !is(&cycle.value, true) || !is(&cycle.default, false) {
            self.text(" TO ");
            self.expr(&cycle.value)?;
            self.text(" DEFAULT ");
            self.expr(&cycle.default)?;
        }
        self.text(&format!(" USING {}", quote_ident(&cycle.path)));
        Ok(())
    }

    fn select(&mut self, q: &'a Query) -> Result<()> {
        if let (Some(RteKind::Values { rows }), [FromItem::Rte(0)], None) =
            (q.range_table.first().map(|r| &r.kind), q.from.as_slice(), &q.filter)
            && q.range_table.len() == 1
            && q.targets.len() == q.range_table[0].column_names.len()
        {
            self.text(" ");
            return self.values(rows);
        }
        self.text(" SELECT ");
        match &q.distinct {
            Distinct::No => {}
            Distinct::All => self.text("DISTINCT "),
            Distinct::On(list) => {
                self.text("DISTINCT ON (");
                for (i, e) in list.iter().enumerate() {
                    self.text(if i > 0 { ", " } else { "" });
                    self.sort_expr(e)?;
                }
                self.text(") ");
            }
        }
        let mut first = true;
        for (n, t) in q.targets.iter().enumerate().filter(|(_, t)| !t.hidden) {
            let shown = self.output_name(n, &t.name).to_owned();
            let before = self.out.len() + usize::from(!first);
            if !first {
                self.text(",");
                self.line(4);
            }
            first = false;
            let from = self.out.len();
            self.alone(&t.expr)?;
            // CASE begins a line by itself.
            if self.out[before..].starts_with("\n\n") {
                self.out.remove(before);
            }
            let from = from.min(self.out.len());
            let quoted = quote_ident(&shown).into_owned_string();
            let printed = &self.out[from..];
            let implied = match &t.expr {
                Expr::Var { column, .. } if *column == 0 => false,
                Expr::Var { .. } | Expr::Coalesce { .. } => {
                    printed == quoted || printed.ends_with(&format!(".{quoted}"))
                }
                _ => false,
            };
            if !implied && (self.named || shown != "?column?") {
                self.text(" AS ");
                self.text(&quoted);
            }
        }
        if !q.from.is_empty() {
            self.line(3);
            self.text("FROM ");
            for (i, f) in q.from.iter().enumerate() {
                if i > 0 {
                    self.text(",");
                    self.line(4);
                }
                self.from_item(q, f)?;
            }
        }
        if let Some(e) = &q.filter {
            self.line(2);
            self.text("WHERE ");
            self.quiet(e)?;
        }
        if !q.grouping_sets.is_empty() {
            self.line(2);
            self.text(if q.group_distinct { "GROUP BY DISTINCT " } else { "GROUP BY " });
            let plain = q.grouping_sets.len() == 1;
            if !q.group_items.is_empty() {
                for (i, item) in q.group_items.iter().enumerate() {
                    self.text(if i > 0 { ", " } else { "" });
                    self.grouping_item(q, item, true)?;
                }
            } else if plain {
                for (i, g) in q.grouping_sets[0].iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.sort_expr(&q.group_exprs[*g])?;
                }
                if q.grouping_sets[0].is_empty() {
                    self.text("()");
                }
            } else {
                self.text("GROUPING SETS (");
                for (n, set) in q.grouping_sets.iter().enumerate() {
                    self.text(if n > 0 { ", (" } else { "(" });
                    for (i, g) in set.iter().enumerate() {
                        if i > 0 {
                            self.text(", ");
                        }
                        self.sort_expr(&q.group_exprs[*g])?;
                    }
                    self.text(")");
                }
                self.text(")");
            }
        }
        if let Some(e) = &q.having {
            self.line(1);
            self.text("HAVING ");
            self.quiet(e)?;
        }
        let mut named = q.windows.iter().filter(|w| w.name.is_some()).peekable();
        if named.peek().is_some() {
            self.line(2);
            self.text("WINDOW ");
            let mut comma = "";
            for w in named {
                self.text(comma);
                comma = ", ";
                let n = w.name.as_deref().unwrap_or("");
                self.text(&quote_ident(n).into_owned_string());
                self.text(" AS ");
                self.window(w)?;
            }
        }
        Ok(())
    }

    /// An element of GROUP BY. `bare`: a list of one needs no parentheses there.
    fn grouping_item(&mut self, q: &Query, item: &GroupingItem, bare: bool) -> Result<()> {
        let (head, parts) = match item {
            GroupingItem::Set(set) => return self.grouping_set(q, set, bare),
            GroupingItem::Rollup(parts) => ("ROLLUP(", parts),
            GroupingItem::Cube(parts) => ("CUBE(", parts),
            GroupingItem::Sets(items) => {
                self.text("GROUPING SETS (");
                for (i, item) in items.iter().enumerate() {
                    self.text(if i > 0 { ", " } else { "" });
                    self.grouping_item(q, item, false)?;
                }
                self.text(")");
                return Ok(());
            }
        };
        self.text(head);
        for (i, part) in parts.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            self.grouping_set(q, part, true)?;
        }
        self.text(")");
        Ok(())
    }

    fn grouping_set(&mut self, q: &Query, set: &[usize], bare: bool) -> Result<()> {
        let parens = !bare || set.len() != 1;
        self.text(if parens { "(" } else { "" });
        for (i, g) in set.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            self.sort_expr(&q.group_exprs[*g])?;
        }
        self.text(if parens { ")" } else { "" });
        Ok(())
    }

    fn values(&mut self, rows: &[Vec<Expr>]) -> Result<()> {
        self.text("VALUES ");
        for (i, r) in rows.iter().enumerate() {
            self.text(if i > 0 { ", (" } else { "(" });
            for (j, e) in r.iter().enumerate() {
                if j > 0 {
                    self.text(",");
                }
                self.alone(e)?;
            }
            self.text(")");
        }
        Ok(())
    }

    fn from_item(&mut self, q: &'a Query, f: &'a FromItem) -> Result<()> {
        match f {
            FromItem::Rte(i) => self.entry(*i, &q.range_table[*i]),
            FromItem::Join(j) => {
                let entry = &q.range_table[j.rte];
                let parens = !self.pretty || entry.has_alias;
                if parens {
                    self.text("(");
                }
                if let Some(level) = self.levels.last_mut() {
                    level.within.push(j.rte);
                }
                self.from_item(q, &j.left)?;
                self.line(5);
                self.text(match (j.kind, &j.on) {
                    (JoinKind::Left, _) => "LEFT JOIN ",
                    (JoinKind::Right, _) => "RIGHT JOIN ",
                    (JoinKind::Full, _) => "FULL JOIN ",
                    (_, None) => "CROSS JOIN ",
                    _ => "JOIN ",
                });
                // A join with an alias has parentheses of its own.
                let nested = self.pretty
                    && matches!(&j.right, FromItem::Join(r) if !q.range_table[r.rte].has_alias);
                if nested {
                    self.text("(");
                }
                self.from_item(q, &j.right)?;
                if nested {
                    self.text(")");
                }
                if !j.using.is_empty() {
                    let names: Vec<String> =
                        j.using.iter().map(|n| quote_ident(n).into_owned_string()).collect();
                    self.text(&format!(" USING ({})", names.join(", ")));
                    if let Some(alias) = &j.using_alias {
                        self.text(&format!(" AS {}", quote_ident(alias)));
                    }
                } else if let Some(on) = &j.on {
                    self.text(" ON ");
                    if self.pretty {
                        self.expr(on)?;
                    } else {
                        self.text("(");
                        self.expr(on)?;
                        self.text(")");
                    }
                } else if j.kind != JoinKind::Inner {
                    self.text(" ON TRUE");
                }
                if parens {
                    self.text(")");
                }
                if entry.has_alias {
                    self.text(" ");
                    self.text(&self.entry_name(j.rte).unwrap_or_default());
                    self.join_columns(q, j);
                }
                if let Some(level) = self.levels.last_mut() {
                    level.within.pop();
                }
                Ok(())
            }
        }
    }

    /// The names that an alias gives to a join's columns, if they are others than they were.
    fn join_columns(&mut self, q: &Query, j: &crate::query::Join) {
        let RteKind::Join { vars, .. } = &q.range_table[j.rte].kind else { return };
        let Some(names) = self.levels.last().map(|l| l.columns[j.rte].clone()) else { return };
        let before = |n: usize, e: &Expr| match j.using.get(n) {
            Some(name) => Some(name.clone()),
            None => self.join_column(e).map_or_else(
                || column_name(q, e).map(str::to_owned),
                |text| Some(text.rsplit('.').next().unwrap_or_default().to_owned()),
            ),
        };
        let mut pairs = vars.iter().enumerate().zip(&names);
        if pairs.any(|((n, e), name)| before(n, e).as_ref() != Some(name)) {
            self.column_names(names.iter().map(String::as_str));
        }
    }

    fn column_names<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        let names: Vec<String> = names.map(|n| quote_ident(n).into_owned_string()).collect();
        self.text(&format!("({})", names.join(", ")));
    }

    fn entry(&mut self, rte: usize, r: &'a RangeTableEntry) -> Result<()> {
        let looks_around = match &r.kind {
            RteKind::Subquery { .. } => r.lateral,
            RteKind::Function { calls, .. } => calls
                .iter()
                .any(|c| c.call.any(&mut |e| matches!(e, Expr::Var { levels_up: 0, .. }))),
            _ => false,
        };
        if looks_around {
            self.text("LATERAL ");
        }
        let mut own_name = String::new();
        let mut own_columns = Vec::new();
        match &r.kind {
            RteKind::Relation { oid, only, .. } => {
                if *only {
                    self.text("ONLY ");
                }
                (own_name, own_columns) = self.table(*oid)?;
            }
            RteKind::Subquery { view, .. } if *view != 0 => {
                (own_name, own_columns) = self.table(*view)?;
            }
            RteKind::Subquery { query, .. } => {
                self.text("(");
                self.indent += 8;
                self.nested(query, &[], true)?;
                self.indent -= 8;
                self.text(")");
            }
            RteKind::Cte { .. } => {
                let (name, columns) = self.cte(&r.kind).unwrap_or_default();
                self.text(&quote_ident(&name).into_owned_string());
                (own_name, own_columns) = (name, columns);
            }
            RteKind::Function { calls, ordinality } => {
                // Several arrays side by side.
                let arrays: Option<Vec<&Expr>> = calls.iter().map(|c| unnested(&c.call)).collect();
                let arrays = arrays.filter(|a| a.len() > 1);
                if let Some(arrays) = &arrays {
                    self.text("UNNEST(");
                    for (i, e) in arrays.iter().enumerate() {
                        self.text(if i > 0 { ", " } else { "" });
                        self.expr(e)?;
                    }
                } else if calls.len() > 1 {
                    self.text("ROWS FROM(");
                }
                let calls = if arrays.is_some() { &[][..] } else { calls };
                for (i, c) in calls.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.expr(&c.call)?;
                    if calls.len() > 1 && is_defined(&c.call) {
                        self.text(" AS ");
                        let before: usize = calls[..i].iter().map(|c| c.columns).sum();
                        self.definitions(r, before, c.columns);
                    }
                }
                if calls.len() != 1 {
                    self.text(")");
                }
                if *ordinality {
                    self.text(" WITH ORDINALITY");
                }
            }
            RteKind::Values { rows } => {
                self.text("( ");
                self.values(rows)?;
                self.text(")");
            }
            RteKind::Join { .. } | RteKind::Excluded => {}
        }
        // What refers to it, and to its columns, does so by the names that they have, or were given in the view.
        if let RteKind::Subquery { query, view: 0 } = &r.kind {
            own_columns =
                query.targets.iter().filter(|t| !t.hidden).map(|t| t.name.clone()).collect();
        }
        let is_made = matches!(r.kind, RteKind::Function { .. } | RteKind::Values { .. });
        let called = self.levels.last().map(|l| l.columns[rte].clone()).unwrap_or_default();
        let mut columns: Vec<&str> = called.iter().map(String::as_str).collect();
        let mut renamed = is_made;
        if !is_made {
            let pairs = || called.iter().zip(&own_columns);
            let present = pairs().filter(|(_, now)| !now.is_empty());
            columns = present.clone().map(|(then, _)| then.as_str()).collect();
            // The list that was written for what is no table is a part of what that is.
            let listed = r.column_aliases > 0
                && matches!(r.kind, RteKind::Subquery { view: 0, .. } | RteKind::Cte { .. });
            renamed = listed || present.clone().any(|(then, now)| then != now);
        }
        let name = self.levels.last().and_then(|l| l.names.get(rte)).cloned().unwrap_or_default();
        if !name.is_empty() && (name != own_name || renamed || r.has_alias) {
            self.text(" ");
            self.text(&quote_ident(&name).into_owned_string());
            match &r.kind {
                RteKind::Function { calls, .. }
                    if calls.len() == 1 && is_defined(&calls[0].call) =>
                {
                    self.definitions(r, 0, calls[0].columns);
                }
                RteKind::Function { calls, .. }
                    if calls.len() == 1
                        && super::json::has_its_columns(&calls[0].call, &called) => {}
                _ if renamed => self.column_names(columns.into_iter()),
                _ => {}
            }
        }
        if let RteKind::Relation { sample: Some(sample), .. } = &r.kind {
            self.sample(sample)?;
        }
        Ok(())
    }

    fn sample(&mut self, sample: &'a crate::query::TableSample) -> Result<()> {
        self.text(&format!(" TABLESAMPLE {} (", sample.method.name()));
        self.quiet(&sample.percent)?;
        self.text(")");
        if let Some(seed) = &sample.seed {
            self.text(" REPEATABLE (");
            self.quiet(seed)?;
            self.text(")");
        }
        Ok(())
    }

    /// A column definition list: `columns` of the entry's, from `first` on, with their types.
    fn definitions(&mut self, r: &RangeTableEntry, first: usize, columns: usize) {
        let pairs = r.column_names.iter().zip(&r.column_types).skip(first).take(columns);
        let of = |(name, ty): (&String, &expr::TypeRef)| {
            let name = quote_ident(name).into_owned_string();
            format!("{name} {}", types::type_text(ty.oid, ty.typmod, self.env))
        };
        let list: Vec<String> = pairs.map(of).collect();
        self.text(&format!("({})", list.join(", ")));
    }

    /// The name of a WITH query, and its columns' names.
    fn cte(&self, kind: &RteKind) -> Option<(String, Vec<String>)> {
        let RteKind::Cte { levels_up, index, .. } = kind else { return None };
        let at = self.levels.len().checked_sub(1 + *levels_up as usize)?;
        let cte = self.levels.get(at)?.query.ctes.get(*index)?;
        Some((cte.name.clone(), cte.columns.clone()))
    }

    /// Prints a table's name, with its schema unless it is found without; gives the bare name, and those of its columns, of which
    /// dropped ones have none.
    fn table(&mut self, oid: u32) -> Result<(String, Vec<String>)> {
        let table = match self.catalog {
            Some(catalog) => catalog.table_by_oid(Oid(oid))?.map(|t| (catalog, t)),
            None => None,
        };
        let Some((catalog, t)) = table else {
            self.text("?");
            return Ok(Default::default());
        };
        let visible = catalog.table_by_name(None, &t.name)?.is_some_and(|o| o.oid == t.oid);
        if !visible {
            self.text(&quote_ident(&t.namespace_name).into_owned_string());
            self.text(".");
        }
        self.text(&quote_ident(&t.name).into_owned_string());
        let name = |c: &Column| if c.dropped { String::new() } else { c.name.clone() };
        Ok((t.name.clone(), t.columns.iter().map(name).collect()))
    }

    fn set_operation(&mut self, q: &'a Query, tree: &'a SetOperation) -> Result<()> {
        match tree {
            SetOperation::Leaf(i) => {
                let RteKind::Subquery { query, .. } = &q.range_table[*i].kind else {
                    return Ok(());
                };
                let parens = query.limit.is_some()
                    || query.offset.is_some()
                    || !query.order_by.is_empty()
                    || !query.ctes.is_empty()
                    || query.set_operation.is_some();
                if parens {
                    self.text("(");
                }
                let (outputs, named) = (self.outputs, self.named);
                self.nested(query, outputs, named)?;
                if parens {
                    self.text(")");
                }
                Ok(())
            }
            SetOperation::Node { op, all, left, right, .. } => {
                let other = matches!(&**left, SetOperation::Node { op: o, all: a, .. } if (o, a) != (op, all));
                if other {
                    self.text("(");
                    self.indent += 8;
                    self.line(0);
                }
                self.set_operation(q, left)?;
                if other {
                    self.indent -= 8;
                }
                self.line(0);
                self.text(if other { ") " } else { "" });
                self.text(match op {
                    SetOp::Union => "UNION",
                    SetOp::Intersect => "INTERSECT",
                    SetOp::Except => "EXCEPT",
                });
                self.text(if *all { " ALL" } else { "" });
                let nested = matches!(**right, SetOperation::Node { .. });
                if nested {
                    self.text(" (");
                    self.indent += 8;
                }
                self.line(0);
                // The names are those of the first.
                let named = std::mem::replace(&mut self.named, false);
                self.set_operation(q, right)?;
                self.named = named;
                if nested {
                    self.indent -= 8;
                    self.line(0);
                    self.text(")");
                }
                Ok(())
            }
        }
    }
}
