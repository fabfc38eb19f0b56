//! Whole queries, laid out as PostgreSQL lays out a view.

use super::Printer;
use super::exprs::IntoOwnedString;
use crate::query::{
    Command, Distinct, FromItem, JoinKind, Query, RangeTableEntry, RteKind, SetOp, SetOperation,
};
use base::{Oid, Result};
use engine::catalog::model::Column;
use expr::Expr;
use types::quote_ident;

/// A column of the query's own level, by its bare name.
fn column_name<'q>(q: &'q Query, e: &Expr) -> Option<&'q str> {
    let Expr::Var { levels_up: 0, rte, column, .. } = e else { return None };
    let names = &q.range_table.get(*rte)?.column_names;
    names.get(usize::try_from(*column - 1).ok()?).map(String::as_str)
}

impl<'a> Printer<'a> {
    pub fn query(&mut self, q: &'a Query) -> Result<()> {
        self.text(" ");
        self.nested(q)
    }

    /// A query one level further in.
    pub fn nested<'b>(&mut self, q: &'b Query) -> Result<()>
    where
        'a: 'b,
    {
        // A printer of its own borrows for as long as this level lasts.
        let mut levels: Vec<&'b Query> = self.levels.iter().map(|l| &**l as &'b Query).collect();
        levels.push(q);
        let mut inner = Printer {
            out: std::mem::take(&mut self.out),
            pretty: self.pretty,
            env: self.env,
            catalog: self.catalog,
            levels,
            columns: &[],
            outputs: self.outputs,
            indent: self.indent,
            sub_columns: Vec::new(),
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
            for (i, k) in q.order_by.iter().enumerate() {
                if i > 0 {
                    self.text(", ");
                }
                match &k.expr {
                    Expr::Slot { index, .. } => {
                        let n = q.targets.get(*index).map_or("", |t| t.name.as_str());
                        self.text(&quote_ident(n).into_owned_string());
                    }
                    e if self.hidden_by_output(q, e) => self.qualified(q, e)?,
                    e => self.sort_expr(q, e)?,
                }
                self.direction(k.descending, k.nulls_first);
            }
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
            if let Some(r) = q.range_table.get(m.rte) {
                self.text(" OF ");
                self.text(&quote_ident(&r.alias).into_owned_string());
            }
            self.text(match m.wait {
                crate::query::LockWait::Block => "",
                crate::query::LockWait::NoWait => " NOWAIT",
                crate::query::LockWait::SkipLocked => " SKIP LOCKED",
            });
        }
        Ok(())
    }

    /// Would ORDER BY take the column's bare name for that of another output?
    fn hidden_by_output(&self, q: &Query, e: &Expr) -> bool {
        let Some(name) = column_name(q, e) else { return false };
        let shown = || q.targets.iter().enumerate().filter(|(_, t)| !t.hidden);
        shown().any(|(n, t)| self.output_name(n, &t.name) == name && t.expr != *e)
    }

    fn qualified(&mut self, q: &Query, e: &Expr) -> Result<()> {
        let (Expr::Var { rte, .. }, Some(name)) = (e, column_name(q, e)) else {
            return self.expr(e);
        };
        let table = quote_ident(&q.range_table[*rte].alias).into_owned_string();
        self.text(&format!("{table}.{}", quote_ident(name).into_owned_string()));
        Ok(())
    }

    /// The name of output `n`: a view's own column names stand over those it was made with.
    fn output_name<'n>(&'n self, n: usize, own: &'n str) -> &'n str {
        match self.outputs.get(n) {
            Some(name) if self.levels.len() == 1 => name,
            _ => own,
        }
    }

    /// ORDER BY and GROUP BY name an output's expression in parentheses where it is no plain column.
    fn sort_expr(&mut self, _q: &Query, e: &Expr) -> Result<()> {
        let plain = matches!(e, Expr::Var { .. })
            || super::exprs::looks_like_function(e)
            || matches!(e, Expr::Aggregate(_) | Expr::Const(_));
        if plain || !self.pretty {
            return self.expr(e);
        }
        self.text("(");
        self.expr(e)?;
        self.text(")");
        Ok(())
    }

    fn with(&mut self, q: &'a Query) -> Result<()> {
        if q.ctes.is_empty() {
            return Ok(());
        }
        self.text(if q.ctes.iter().any(|c| c.recursive) { "WITH RECURSIVE " } else { "WITH " });
        for (i, c) in q.ctes.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            self.text(&quote_ident(&c.name).into_owned_string());
            let own: Vec<&str> = c.query.targets.iter().map(|t| t.name.as_str()).collect();
            if !own.iter().copied().eq(c.columns.iter().map(String::as_str)) {
                let names: Vec<String> =
                    c.columns.iter().map(|n| quote_ident(n).into_owned_string()).collect();
                self.text(&format!("({})", names.join(", ")));
            }
            self.text(match c.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            self.indent += 8;
            self.line(0);
            self.text(" ");
            self.nested(&c.query)?;
            self.indent -= 8;
            self.line(8);
            self.text(")");
        }
        self.line(0);
        self.text(" ");
        Ok(())
    }

    fn select(&mut self, q: &'a Query) -> Result<()> {
        if let (Some(RteKind::Values { rows }), [FromItem::Rte(0)], None) =
            (q.range_table.first().map(|r| &r.kind), q.from.as_slice(), &q.filter)
            && q.range_table.len() == 1
            && q.targets.len() == q.range_table[0].column_names.len()
        {
            return self.values(rows);
        }
        self.text("SELECT ");
        match &q.distinct {
            Distinct::No => {}
            Distinct::All => self.text("DISTINCT "),
            Distinct::On(list) => {
                self.text("DISTINCT ON (");
                self.list(list)?;
                self.text(") ");
            }
        }
        let mut first = true;
        for (n, t) in q.targets.iter().enumerate().filter(|(_, t)| !t.hidden) {
            let shown = self.output_name(n, &t.name).to_owned();
            if !first {
                self.text(",");
                self.line(4);
            }
            first = false;
            self.expr(&t.expr)?;
            let implied = match &t.expr {
                Expr::Var { levels_up: 0, rte, column, .. } if *column > 0 => {
                    q.range_table[*rte].column_names.get(*column as usize - 1) == Some(&shown)
                }
                _ => false,
            };
            if !implied && shown != "?column?" {
                self.text(" AS ");
                self.text(&quote_ident(&shown).into_owned_string());
            } else if shown == "?column?" {
                self.text(" AS \"?column?\"");
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
            self.text("GROUP BY ");
            let plain = q.grouping_sets.len() == 1;
            if plain {
                for (i, g) in q.grouping_sets[0].iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.sort_expr(q, &q.group_exprs[*g])?;
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
                        self.expr(&q.group_exprs[*g])?;
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

    fn values(&mut self, rows: &[Vec<Expr>]) -> Result<()> {
        self.text("VALUES ");
        for (i, r) in rows.iter().enumerate() {
            self.text(if i > 0 { ", (" } else { "(" });
            for (j, e) in r.iter().enumerate() {
                if j > 0 {
                    self.text(",");
                }
                self.expr(e)?;
            }
            self.text(")");
        }
        Ok(())
    }

    fn from_item(&mut self, q: &'a Query, f: &'a FromItem) -> Result<()> {
        match f {
            FromItem::Rte(i) => self.entry(&q.range_table[*i]),
            FromItem::Join(j) => {
                let entry = &q.range_table[j.rte];
                let parens = !self.pretty || entry.has_alias;
                if parens {
                    self.text("(");
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
                let nested = matches!(j.right, FromItem::Join(_)) && self.pretty;
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
                    self.text(&quote_ident(&entry.alias).into_owned_string());
                }
                Ok(())
            }
        }
    }

    fn entry(&mut self, r: &'a RangeTableEntry) -> Result<()> {
        if r.lateral && matches!(r.kind, RteKind::Subquery { .. }) {
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
                self.text("( ");
                self.indent += 8;
                self.nested(query)?;
                self.indent -= 8;
                self.text(")");
            }
            RteKind::Cte { .. } => {
                own_name.clone_from(&r.alias);
                let name = self.cte_name(&r.kind).unwrap_or_else(|| r.alias.clone());
                self.text(&quote_ident(&name).into_owned_string());
                own_name = if r.has_alias { name } else { own_name };
            }
            RteKind::Function { calls, ordinality } => {
                if calls.len() > 1 {
                    self.text("ROWS FROM(");
                }
                for (i, c) in calls.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.expr(&c.call)?;
                }
                if calls.len() > 1 {
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
        // What refers to it, and to its columns, does so by the names that they had when the view was made, or were given there.
        let mut columns: Vec<&str> = r.column_names.iter().map(String::as_str).collect();
        let is_table = !own_name.is_empty() && !matches!(r.kind, RteKind::Cte { .. });
        let mut renamed = matches!(r.kind, RteKind::Function { .. } | RteKind::Values { .. });
        if is_table {
            let pairs = || r.column_names.iter().zip(&own_columns);
            let present = pairs().filter(|(_, now)| !now.is_empty());
            columns = present.clone().map(|(then, _)| then.as_str()).collect();
            renamed = present.clone().any(|(then, now)| then != now);
        }
        let aliased = (r.has_alias || is_table) && r.alias != own_name
            || renamed
            || matches!(r.kind, RteKind::Subquery { view: 0, .. });
        if aliased && !r.alias.is_empty() {
            self.text(" ");
            self.text(&quote_ident(&r.alias).into_owned_string());
            if renamed {
                let names: Vec<String> =
                    columns.iter().map(|n| quote_ident(n).into_owned_string()).collect();
                self.text(&format!("({})", names.join(", ")));
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

    fn cte_name(&self, kind: &RteKind) -> Option<String> {
        let RteKind::Cte { levels_up, index, .. } = kind else { return None };
        let at = self.levels.len().checked_sub(1 + *levels_up as usize)?;
        self.levels.get(at)?.ctes.get(*index).map(|c| c.name.clone())
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
                    || query.set_operation.is_some();
                if parens {
                    self.text("( ");
                }
                self.nested(query)?;
                if parens {
                    self.text(")");
                }
                Ok(())
            }
            SetOperation::Node { op, all, left, right, .. } => {
                self.set_operation(q, left)?;
                self.line(0);
                self.text(match op {
                    SetOp::Union => "UNION",
                    SetOp::Intersect => "INTERSECT",
                    SetOp::Except => "EXCEPT",
                });
                if *all {
                    self.text(" ALL");
                }
                self.line(1);
                let nested = matches!(**right, SetOperation::Node { .. });
                if nested {
                    self.text("( ");
                }
                self.set_operation(q, right)?;
                if nested {
                    self.text(")");
                }
                Ok(())
            }
        }
    }
}
