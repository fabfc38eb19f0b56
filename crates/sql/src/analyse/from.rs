//! The FROM clause.

use super::coerce::can_coerce;
use super::exprs::op;
use super::scope::Item;
use super::special::function_columns;
use super::{Analyser, Clause};
use crate::parse::ast::{
    Alias, ColumnDefinition, Expr as AstExpr, ExprKind, JoinCondition, Loc, ObjectName, TableRef,
};
use crate::query::{FromItem, FunctionInFrom, Join, JoinKind, Query, RangeTableEntry, RteKind};
use base::{Result, err};
use engine::catalog::model::{Column, RelationKind, Table};
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::facts::CastContext;
use types::oids::{INT8, RECORD};

/// Does a function in FROM spread into several columns?
pub(crate) fn yields_record(call: &Expr) -> bool {
    call.ty().oid == RECORD
        || super::coerce::is_composite(call.ty().oid)
        || function_columns(call).is_some_and(|c| c.len() > 1)
        || super::json::template_columns(call).is_some()
}

type FromCall = (AstExpr, Vec<ColumnDefinition>);

/// `unnest(a, b, …)` in FROM, which stands for `ROWS FROM (unnest(a), unnest(b), …)`.
fn several_unnests(calls: &[FromCall]) -> Option<Vec<FromCall>> {
    let several = |(e, own): &FromCall| match &e.kind {
        ExprKind::Call(f) => {
            f.args.len() > 1
                && own.is_empty()
                && matches!(f.name.as_slice(), [n] if n == "unnest")
                && !(f.star || f.distinct || f.variadic || f.over.is_some() || f.filter.is_some())
                && f.order_by.is_empty()
        }
        _ => false,
    };
    if !calls.iter().any(several) {
        return None;
    }
    let mut out = Vec::new();
    for call in calls {
        match &call.0.kind {
            ExprKind::Call(f) if several(call) => {
                for a in &f.args {
                    let mut one = f.clone();
                    one.args = vec![a.clone()];
                    let kind = ExprKind::Call(one);
                    out.push((AstExpr { kind, loc: call.0.loc }, Vec::new()));
                }
            }
            _ => out.push(call.clone()),
        }
    }
    Some(out)
}

impl Analyser<'_> {
    /// FROM: adds the entries and the names, and gives the tree.
    pub fn from_clause(&mut self, list: &[TableRef]) -> Result<Vec<FromItem>> {
        let first = self.level().items.len();
        let mut out = Vec::with_capacity(list.len());
        let saved = self.enter(Clause::From);
        for t in list {
            let before = self.level().items.len();
            out.push(self.table_ref(t)?);
            self.unique_names(first, before)?;
            for i in &mut self.level().items[first..] {
                i.lateral_only = true;
            }
        }
        for i in &mut self.level().items[first..] {
            i.lateral_only = false;
        }
        self.enter(saved);
        Ok(out)
    }

    /// No two names alike, between the items before and after `middle`.
    fn unique_names(&mut self, first: usize, middle: usize) -> Result<()> {
        let items = &self.level().items;
        for new in &items[middle..] {
            if !new.by_name || new.name.is_empty() {
                continue;
            }
            if items[first..middle].iter().any(|o| o.is_called_as(new)) {
                return Err(err!(
                    DUPLICATE_ALIAS,
                    "table name \"{}\" specified more than once",
                    new.name
                ));
            }
        }
        Ok(())
    }

    fn table_ref(&mut self, t: &TableRef) -> Result<FromItem> {
        match t {
            TableRef::Table { name, only, alias, sample } => {
                let made = self.table(name, *only, alias.as_ref())?;
                if let Some(sample) = sample {
                    let FromItem::Rte(rte) = made else { return Ok(made) };
                    self.sampled(rte, sample, name.loc)?;
                }
                Ok(made)
            }
            TableRef::Subquery { query, lateral, alias, loc } => {
                let saved = std::mem::replace(&mut self.level().lateral, *lateral);
                let clause = self.enter(Clause::FromSelect);
                let q = self.nested(|a| a.select(query));
                self.enter(clause);
                self.level().lateral = saved;
                let entry = subquery_entry(q?, *lateral);
                self.add_entry(entry, alias.as_ref(), *loc)
            }
            TableRef::Function { calls, rows_from, ordinality, lateral, alias, columns, loc } => {
                let _ = (rows_from, lateral);
                self.functions_in_from(calls, *ordinality, alias.as_ref(), columns, *loc)
            }
            TableRef::Join { kind, left, right, condition, alias, loc } => {
                self.join(*kind, left, right, condition, alias.as_ref(), *loc)
            }
        }
    }

    /// Names an entry, adds it and its item.
    fn add_entry(
        &mut self,
        mut entry: RangeTableEntry,
        alias: Option<&Alias>,
        loc: Loc,
    ) -> Result<FromItem> {
        if let Some(a) = alias {
            entry.alias.clone_from(&a.name);
            entry.has_alias = true;
            entry.column_aliases = a.columns.len();
            let mut names = a.columns.iter();
            let mut given = 0;
            for slot in entry.column_names.iter_mut().filter(|n| !n.is_empty()) {
                if let Some(n) = names.next() {
                    slot.clone_from(n);
                    given += 1;
                }
            }
            if given < a.columns.len() {
                let e = err!(
                    INVALID_COLUMN_REFERENCE,
                    "table \"{}\" has {given} columns available but {} columns specified",
                    a.name,
                    a.columns.len()
                );
                return self.at(loc, e);
            }
        }
        let unspread = self.unspread(&entry.kind);
        let level = self.level();
        let rte = level.rtes.len();
        let mut item = Item::table(rte, entry.alias.clone());
        item.by_name = !entry.alias.is_empty();
        item.unspread = unspread;
        level.rtes.push(entry);
        level.items.push(item);
        Ok(FromItem::Rte(rte))
    }

    /// How many of an entry's last columns `*` does not stand for: those of SEARCH and CYCLE further in than their query is read.
    fn unspread(&self, kind: &RteKind) -> usize {
        let RteKind::Cte { levels_up: up @ 1.., index, .. } = kind else { return 0 };
        let owner = self.levels.len().checked_sub(1 + *up as usize);
        let cte = owner.and_then(|at| self.levels[at].ctes.get(*index));
        cte.map_or(0, crate::query::Cte::added_columns)
    }

    fn table(&mut self, name: &ObjectName, only: bool, alias: Option<&Alias>) -> Result<FromItem> {
        if name.schema.is_none()
            && let Some(entry) = self.cte_entry(&name.name, name.loc)?
        {
            return self.add_entry(entry, alias, name.loc);
        }
        let table = self.relation(name)?;
        self.readable(&table, name.loc)?;
        let entry = self.relation_entry(&table, only)?;
        let made = self.add_entry(entry, alias, name.loc)?;
        if alias.is_none() {
            let schema = Some(table.namespace_name.clone());
            if let Some(item) = self.level().items.last_mut() {
                item.schema = schema;
            }
        }
        Ok(made)
    }

    fn readable(&self, t: &Table, loc: Loc) -> Result<()> {
        crate::relations::check_opens(t).or_else(|e| self.at(loc, e))
    }

    /// A range-table entry for a table, or for a view put in place.
    pub fn relation_entry(&self, t: &Arc<Table>, only: bool) -> Result<RangeTableEntry> {
        let mut entry = table_entry(t, only);
        if t.kind == RelationKind::View {
            let query = crate::updatable::view_query(self.catalog, t)?;
            entry.kind = RteKind::Subquery { query: Box::new(query), view: t.oid.0 };
        }
        Ok(entry)
    }

    /// The WITH query of that name, if one is in sight.
    fn cte_entry(&mut self, name: &str, loc: Loc) -> Result<Option<RangeTableEntry>> {
        for up in 0..self.levels.len() {
            let at = self.levels.len() - 1 - up;
            let level = &mut self.levels[at];
            let Some(index) = level.ctes.iter().position(|c| c.name == name) else { continue };
            let self_reference = level.recursive == Some(index);
            let cte = &mut level.ctes[index];
            cte.references += 1;
            if cte.columns.is_empty() && cte.query.command != crate::query::Command::Select {
                let e = err!(
                    FEATURE_NOT_SUPPORTED,
                    "WITH query \"{name}\" does not have a RETURNING clause"
                );
                return self.at(loc, e);
            }
            if self_reference {
                cte.recursive = true;
                if cte.references > 1 {
                    let e = err!(
                        INVALID_RECURSION,
                        "recursive reference to query \"{name}\" must not appear more than once"
                    );
                    return self.at(loc, e);
                }
            }
            return Ok(Some(RangeTableEntry {
                kind: RteKind::Cte { levels_up: up as u32, index, self_reference },
                alias: name.to_owned(),
                has_alias: false,
                column_aliases: 0,
                column_names: cte.columns.clone(),
                column_types: cte.types.clone(),
                required_privileges: 0,
                used: None,
                check_as: 0,
                lateral: false,
            }));
        }
        Ok(None)
    }

    fn functions_in_from(
        &mut self,
        calls: &[(AstExpr, Vec<ColumnDefinition>)],
        ordinality: bool,
        alias: Option<&Alias>,
        definitions: &[ColumnDefinition],
        loc: Loc,
    ) -> Result<FromItem> {
        let mut made = Vec::new();
        let (mut names, mut types) = (Vec::new(), Vec::new());
        let saved = std::mem::replace(&mut self.level().lateral, true);
        let mut title = String::new();
        let spread = several_unnests(calls);
        let calls = spread.as_deref().unwrap_or(calls);
        for (ast, own) in calls {
            let mut call = self.known_expr(ast)?;
            let mut within = false;
            call.for_children(&mut |e| within |= e.any(&mut super::calls::returns_set));
            if within {
                let e = err!(
                    FEATURE_NOT_SUPPORTED,
                    "set-returning functions must appear at top level of FROM"
                );
                return self.at(ast.loc, e);
            }
            let definitions = if own.is_empty() { definitions } else { own };
            let fname = super::select::column_label(ast);
            if title.is_empty() {
                title.clone_from(&fname);
            }
            let before = types.len();
            if !definitions.is_empty() {
                self.may_be_defined(&call, loc)?;
                for d in definitions {
                    names.push(d.name.clone());
                    let ty = self.type_ref(&d.ty)?;
                    if ty.base() != ty {
                        let what = "a domain in a column definition list";
                        return self.at(loc, base::Error::unsupported(what));
                    }
                    types.push(ty);
                }
                if super::json::fills_records(&call) {
                    let pairs =
                        names[before..].iter().cloned().zip(types[before..].iter().copied());
                    let columns: Vec<(String, TypeRef)> = pairs.collect();
                    call = self.with_columns(call, RECORD, &columns)?;
                }
            } else if let Some(columns) = self.columns_of_rows(&call)? {
                for (n, t) in columns {
                    names.push(n);
                    types.push(t);
                }
            } else if let Some(columns) = function_columns(&call)
                && (columns.len() > 1 || yields_record(&call))
            {
                for (n, t) in columns {
                    names.push(n);
                    types.push(t);
                }
            } else if call.ty().oid == RECORD {
                let e = err!(
                    SYNTAX_ERROR,
                    "a column definition list is required for functions returning \"record\""
                );
                return self.at(loc, e);
            } else {
                let own = function_columns(&call).and_then(|c| c.into_iter().next());
                let single = calls.len() == 1;
                names.push(match (own, alias) {
                    (Some((n, _)), _) if !n.is_empty() => n,
                    (_, Some(a)) if single => a.name.clone(),
                    _ => fname,
                });
                types.push(call.ty());
            }
            made.push(FunctionInFrom { call, columns: types.len() - before });
        }
        self.level().lateral = saved;
        if ordinality {
            names.push("ordinality".into());
            types.push(TypeRef::of(INT8));
        }
        let entry = RangeTableEntry {
            kind: RteKind::Function { calls: made, ordinality },
            alias: title,
            has_alias: false,
            column_aliases: 0,
            column_names: names,
            column_types: types,
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: true,
        };
        self.add_entry(entry, alias, loc)
    }

    /// The columns of rows of a table's or view's type; `None` if they are of another, or the call itself says what columns it fills.
    fn columns_of_rows(&mut self, call: &Expr) -> Result<Option<Vec<(String, TypeRef)>>> {
        let ty = call.ty().oid;
        if ty == RECORD
            || !super::coerce::is_composite(ty)
            || super::json::template_columns(call).is_some()
        {
            return Ok(None);
        }
        let columns = self.row_type_columns(ty)?;
        Ok(columns.map(|all| all.into_iter().map(|(name, ty)| (name, ty.base())).collect()))
    }

    /// A column definition list is for a record whose columns nobody knows.
    fn may_be_defined(&mut self, call: &Expr, loc: Loc) -> Result<()> {
        let text = if call.ty().oid != RECORD {
            "a column definition list is only allowed for functions returning \"record\""
        } else if function_columns(call).is_some() {
            "a column definition list is redundant for a function with OUT parameters"
        } else {
            return Ok(());
        };
        self.at(loc, err!(SYNTAX_ERROR, "{text}"))
    }

    /// The columns that the items from `first` on show to bare names.
    fn visible(&mut self, first: usize, last: usize) -> Vec<(String, Expr)> {
        let mut out = Vec::new();
        for i in first..last {
            let level = self.level();
            let item = &level.items[i];
            if !item.by_column {
                continue;
            }
            if let Some(c) = &item.columns {
                out.extend(c.iter().cloned());
                continue;
            }
            let rte = item.rte;
            let entry = &level.rtes[rte];
            let spread = entry.column_names.len() - item.unspread;
            let named = entry.column_names.iter().enumerate().take(spread);
            for (i, n) in named.filter(|(_, n)| !n.is_empty()) {
                out.push((n.clone(), super::scope::column_var(rte, i, entry.column_types[i])));
            }
        }
        out
    }

    fn join(
        &mut self,
        kind: JoinKind,
        left: &TableRef,
        right: &TableRef,
        condition: &JoinCondition,
        alias: Option<&Alias>,
        loc: Loc,
    ) -> Result<FromItem> {
        let base = self.level().items.len();
        let l = self.table_ref(left)?;
        let middle = self.level().items.len();
        let no_lateral = matches!(kind, JoinKind::Right | JoinKind::Full);
        for i in &mut self.level().items[base..middle] {
            i.lateral_only = true;
            i.forbidden = no_lateral;
        }
        let r = self.table_ref(right)?;
        for i in &mut self.level().items[base..] {
            i.lateral_only = false;
            i.forbidden = false;
        }
        self.unique_names(base, middle)?;
        let end = self.level().items.len();
        let lcols = self.visible(base, middle);
        let rcols = self.visible(middle, end);
        let mut using: Vec<(String, Loc)> = Vec::new();
        match condition {
            JoinCondition::Using(list, _) => using.clone_from(list),
            JoinCondition::Natural => {
                for (n, _) in &lcols {
                    if rcols.iter().any(|(m, _)| m == n) {
                        using.push((n.clone(), loc));
                    }
                }
            }
            _ => {}
        }
        let mut columns: Vec<(String, Expr)> = Vec::new();
        let mut tests = Vec::new();
        for (i, (n, at)) in using.iter().enumerate() {
            if using[..i].iter().any(|(o, _)| o == n) {
                let e = err!(
                    DUPLICATE_COLUMN,
                    "column name \"{n}\" appears more than once in USING clause"
                );
                return self.at(*at, e);
            }
            let a = self.using_column(&lcols, n, "left", *at)?;
            let b = self.using_column(&rcols, n, "right", *at)?;
            let here = self.levels.len() - 1;
            [&a, &b].into_iter().for_each(|e| self.reads(here, e));
            tests.push(self.binary(&op("="), (a.clone(), *at), (b.clone(), *at), *at)?);
            columns.push((n.clone(), self.merged(kind, a, b, *at)?));
        }
        let merged = |n: &String| using.iter().any(|(u, _)| u == n);
        let using_alias: Vec<(String, Expr)> = columns.clone();
        columns.extend(lcols.into_iter().filter(|(n, _)| !merged(n)));
        columns.extend(rcols.into_iter().filter(|(n, _)| !merged(n)));
        let on = match condition {
            JoinCondition::On(e) => {
                let saved = self.enter(Clause::JoinOn);
                let x = self.expr(e)?;
                let x = self.boolean(x, "JOIN/ON", e.loc)?;
                self.enter(saved);
                Some(x)
            }
            _ => match tests.len() {
                0 => None,
                1 => Some(tests.swap_remove(0)),
                _ => Some(Expr::And(tests)),
            },
        };
        self.finish_join(kind, l, r, on, using, columns, using_alias, condition, alias, base, loc)
    }

    #[allow(clippy::too_many_arguments, reason = "the second half of join()")]
    fn finish_join(
        &mut self,
        kind: JoinKind,
        l: FromItem,
        r: FromItem,
        on: Option<Expr>,
        using: Vec<(String, Loc)>,
        mut columns: Vec<(String, Expr)>,
        using_alias: Vec<(String, Expr)>,
        condition: &JoinCondition,
        alias: Option<&Alias>,
        base: usize,
        loc: Loc,
    ) -> Result<FromItem> {
        if let Some(a) = alias {
            if a.columns.len() > columns.len() {
                let e = err!(
                    INVALID_COLUMN_REFERENCE,
                    "join expression \"{}\" has {} columns available but {} columns specified",
                    a.name,
                    columns.len(),
                    a.columns.len()
                );
                return self.at(loc, e);
            }
            for (c, n) in columns.iter_mut().zip(&a.columns) {
                c.0.clone_from(n);
            }
        }
        let entry = RangeTableEntry {
            kind: RteKind::Join {
                vars: columns.iter().map(|(_, e)| e.clone().plain()).collect(),
                kind,
            },
            alias: alias.map_or_else(String::new, |a| a.name.clone()),
            has_alias: alias.is_some(),
            column_aliases: alias.map_or(0, |a| a.columns.len()),
            column_names: columns.iter().map(|(n, _)| n.clone()).collect(),
            column_types: columns.iter().map(|(_, e)| e.ty()).collect(),
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: false,
        };
        let level = self.level();
        let rte = level.rtes.len();
        level.rtes.push(entry);
        let mut item = Item::table(rte, "");
        item.by_name = false;
        if let Some(a) = alias {
            level.items.truncate(base);
            item.name.clone_from(&a.name);
            item.by_name = true;
        } else {
            for i in &mut level.items[base..] {
                i.by_column = false;
            }
        }
        item.columns = Some(columns);
        level.items.push(item);
        // The join's own alias hides that of its USING.
        if let JoinCondition::Using(_, Some(name)) = condition
            && alias.is_none()
        {
            let mut item = Item::table(rte, name.clone());
            item.by_column = false;
            item.columns = Some(using_alias);
            level.items.push(item);
            let last = level.items.len() - 1;
            self.unique_names(base, last)?;
        }
        let using = using.into_iter().map(|(n, _)| n).collect();
        let using_alias = match condition {
            JoinCondition::Using(_, alias) => alias.clone(),
            _ => None,
        };
        let join = Join { kind, left: l, right: r, on, rte, using, using_alias };
        Ok(FromItem::Join(Box::new(join)))
    }

    fn using_column(
        &self,
        columns: &[(String, Expr)],
        name: &str,
        side: &str,
        loc: Loc,
    ) -> Result<Expr> {
        let mut hits = columns.iter().filter(|(n, _)| n == name);
        match (hits.next(), hits.next()) {
            (Some((_, e)), None) => Ok(e.clone().plain()),
            (None, _) => {
                let e = err!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" specified in USING clause does not exist in {side} table"
                );
                self.at(loc, e)
            }
            _ => {
                let e = err!(
                    AMBIGUOUS_COLUMN,
                    "common column name \"{name}\" appears more than once in {side} table"
                );
                self.at(loc, e)
            }
        }
    }

    /// What a USING column of the join stands for.
    fn merged(&mut self, kind: JoinKind, a: Expr, b: Expr, loc: Loc) -> Result<Expr> {
        let types = [(a.ty().oid, loc), (b.ty().oid, loc)];
        let ty = self.common_type(&types, "JOIN/USING")?;
        let fix = |s: &mut Self, e: Expr| {
            if can_coerce(e.ty().oid, ty, CastContext::Implicit) && e.ty().oid != ty {
                s.coerce_implicit(e, ty, loc)
            } else {
                Ok(e)
            }
        };
        Ok(match kind {
            JoinKind::Right => fix(self, b)?,
            JoinKind::Full => {
                let ty = if a.ty() == b.ty() { a.ty() } else { TypeRef::of(ty) };
                Expr::Coalesce { args: vec![fix(self, a)?, fix(self, b)?], ty }
            }
            // Either will do: the one that is as it stands in its table.
            JoinKind::Inner if a.ty().oid != ty && b.ty().oid == ty => b,
            _ => fix(self, a)?,
        })
    }

    /// `*` (no names) or `t.*`, spelt out.
    pub fn star(&mut self, names: &[String], loc: Loc) -> Result<Vec<(String, Expr)>> {
        let (schema, table) = match names {
            [] => {
                let count = self.level().items.len();
                let mut out = Vec::new();
                let mut any = false;
                for i in 0..count {
                    let item = &self.level().items[i];
                    if item.by_column && !item.forbidden {
                        any = true;
                        out.extend(self.item_columns(0, i, loc));
                    }
                }
                if !any {
                    let e = err!(SYNTAX_ERROR, "SELECT * with no tables specified is not valid");
                    return self.at(loc, e);
                }
                return Ok(out);
            }
            [t] => (None, t.as_str()),
            [.., s, t] => (Some(s.as_str()), t.as_str()),
        };
        match self.find_item(schema, table, loc)? {
            Some((up, i)) => Ok(self.item_columns(up, i, loc)),
            None => self.no_table(table, loc),
        }
    }

    /// Is this a `*` of some kind? Then what it stands for.
    pub fn star_target(&mut self, e: &AstExpr) -> Result<Option<Vec<(String, Expr)>>> {
        match &e.kind {
            ExprKind::Star(names) if names.is_empty() => self.star(names, e.loc).map(Some),
            ExprKind::Star(names) => {
                let in_query = |a: &mut Self| a.star(names, e.loc);
                let spread = |a: &mut Self, row| a.expand_row(row, e.loc);
                self.or_outer(names, true, e.loc, in_query, spread).map(Some)
            }
            ExprKind::FieldStar(arg) => self.expand(arg, e.loc).map(Some),
            _ => Ok(None),
        }
    }
}

/// The entry of an ordinary table.
pub(crate) fn table_entry(t: &Table, only: bool) -> RangeTableEntry {
    let names =
        t.columns.iter().map(|c| if c.dropped { String::new() } else { c.name.clone() }).collect();
    RangeTableEntry {
        kind: RteKind::Relation { oid: t.oid.0, only, sample: None },
        alias: t.name.clone(),
        has_alias: false,
        column_aliases: 0,
        column_names: names,
        column_types: t.columns.iter().map(Column::declared).collect(),
        required_privileges: 1,
        used: Some(Box::default()),
        check_as: 0,
        lateral: false,
    }
}

/// The entry of a sub-select, unnamed.
pub(crate) fn subquery_entry(query: Query, lateral: bool) -> RangeTableEntry {
    let output = if query.command == crate::query::Command::Select {
        &query.targets
    } else {
        &query.returning
    };
    let shown = output.iter().filter(|t| !t.hidden);
    let column_names = shown.clone().map(|t| t.name.clone()).collect();
    let column_types = shown.map(|t| t.expr.ty()).collect();
    RangeTableEntry {
        kind: RteKind::Subquery { query: Box::new(query), view: 0 },
        alias: String::new(),
        has_alias: false,
        column_aliases: 0,
        column_names,
        column_types,
        required_privileges: 0,
        used: None,
        check_as: 0,
        lateral,
    }
}
