//! INSERT, UPDATE, DELETE and MERGE of a view: written through to the table below it.
//!
//! # Purpose
//! The statement is analysed with the view's columns as names see them. [`Analyser::write_through`] then puts the table, or view, that the
//! view's rows are of in its place, again and again until it is a table.
//!
//! # Layout
//! The target stays entry 0 of the range table, and `excluded`, OLD and NEW stay where they are. The view itself becomes an entry that stands
//! in no FROM, for its privileges and its lock. A view's column is what it is made of, sub-selects included, wherever it is named; its
//! condition is one of UPDATE's and DELETE's own, so that it is asked again of a newer version of a row; in a MERGE it is one of the target's
//! alone, so that to the join there are no rows but those that the view shows.

use super::Analyser;
use super::dml::default_value;
use super::from::table_entry;
use crate::parse::ast::Loc;
use crate::plan::query_walk::{
    nested_queries, shift_expr_levels, shift_query_levels, visit, visit_own,
};
use crate::query::{
    Command, MergeAction, Query, RangeTableEntry, RteKind, TargetEntry, UsedColumns, ViewCheck,
};
use crate::updatable::{self, CheckOption};
use base::{Oid, Result, SqlError, SqlState, bail, err};
use engine::catalog::model::{Column, RelationKind, Table};
use expr::tree::{CaseWhen, Constant};
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::Datum;
use types::oids::TID;

/// A view's column in the table below.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    /// What it is called there, and its number.
    name: String,
    number: i32,
    /// The view has a default of its own for it.
    own_default: bool,
    /// The view, or one below it, has a default for it: the table never hears of DEFAULT.
    view_default: bool,
}

impl Below {
    /// A column of what is written to, as if nothing were below it.
    fn of(c: &Column, is_view: bool) -> Below {
        let own_default = is_view && c.any_default().is_some();
        Below { name: c.name.clone(), number: c.number, own_default, view_default: own_default }
    }
}

/// What a view's columns stand for, over entry `rte`.
struct Meaning {
    rte: usize,
    columns: Vec<Expr>,
    names: Vec<String>,
    /// Numbered as in `columns`.
    sub_selects: Vec<Query>,
    /// OLD or NEW, of which there may be none.
    image: bool,
}

impl Meaning {
    fn of(view: &Query, base: usize, rte: usize, image: bool) -> Meaning {
        let shown = || view.targets.iter().filter(|t| !t.hidden);
        let over = |e: &Expr| {
            let mut e = e.clone();
            e.rewrite(&mut |e| moved(e, 0, base, rte));
            e
        };
        Meaning {
            rte,
            columns: shown().map(|t| over(&t.expr)).collect(),
            names: shown().map(|t| t.name.clone()).collect(),
            sub_selects: sub_selects_over(view, base, rte),
            image,
        }
    }

    /// What column `column` stands for, if it is a view's.
    fn value(&self, column: i32, ty: TypeRef) -> Option<Expr> {
        let value = match usize::try_from(column) {
            Err(_) => return None,
            Ok(0) => Expr::Row { fields: self.columns.clone(), names: self.names.clone(), ty },
            Ok(n) => self.columns.get(n - 1)?.clone(),
        };
        if !self.image || matches!(value, Expr::Var { .. }) {
            return Some(value);
        }
        // Without a row there is no value either, whatever it is made of.
        let ctid = Expr::Var { levels_up: 0, rte: self.rte, column: -1, ty: TypeRef::of(TID) };
        let ty = value.ty();
        Some(Expr::Case {
            operand: None,
            arms: vec![CaseWhen {
                when: Expr::IsNull { arg: Box::new(ctid), negated: false },
                then: Expr::Const(Constant { value: Datum::Null, ty }),
            }],
            otherwise: Some(Box::new(value)),
            ty,
        })
    }
}

fn moved(e: &mut Expr, depth: u32, from: usize, to: usize) -> bool {
    if let Expr::Var { levels_up, rte, .. } = e
        && *levels_up == depth
        && *rte == from
    {
        *rte = to;
    }
    false
}

/// A view's sub-selects, what refers to its table referring to entry `to`.
fn sub_selects_over(view: &Query, base: usize, to: usize) -> Vec<Query> {
    let mut subs = view.sub_selects.clone();
    for sub in &mut subs {
        visit(sub, 1, &mut |e: &mut Expr, depth: u32| moved(e, depth, base, to));
    }
    subs
}

/// Numbers the sub-links of an expression that comes into a query as its `first`th and on, and adds what they mean to `added`.
fn adopt(e: &mut Expr, subs: &[Query], first: usize, added: &mut Vec<Query>, depth: u32) {
    e.rewrite(&mut |e| {
        if let Expr::SubLink { subquery, .. } = e
            && let Some(sub) = subs.get(*subquery)
        {
            let mut sub = sub.clone();
            shift_query_levels(&mut sub, 1, depth as i32);
            *subquery = first + added.len();
            added.push(sub);
        }
        false
    });
    shift_expr_levels(e, 0, depth as i32);
}

/// Puts what views' columns stand for in their places, in a query `depth` levels below theirs and in all within it.
fn put(q: &mut Query, depth: u32, meanings: &[Meaning]) {
    nested_queries(q).for_each(|inner| put(inner, depth + 1, meanings));
    let first = q.sub_selects.len();
    let mut added = Vec::new();
    visit_own(q, depth, &mut |e: &mut Expr, _: u32| {
        let Expr::Var { levels_up, rte, column, ty } = e else { return false };
        let Some(meaning) = meanings.iter().find(|m| m.rte == *rte && *levels_up == depth) else {
            return false;
        };
        let Some(mut value) = meaning.value(*column, *ty) else { return false };
        adopt(&mut value, &meaning.sub_selects, first, &mut added, depth);
        *e = value;
        true
    });
    q.sub_selects.append(&mut added);
}

fn both(a: Option<Expr>, b: Expr) -> Expr {
    match a {
        None => b,
        Some(a) => Expr::And(vec![a, b]),
    }
}

impl Analyser<'_> {
    /// The entry of a target that is a view, and the view with the defaults of the columns below; their names are kept.
    pub(super) fn view_target(&mut self, t: &Arc<Table>) -> Result<(RangeTableEntry, Arc<Table>)> {
        let entry = self.relation_entry(t, false)?;
        let (effective, below) = self.with_defaults_below(t)?;
        self.level().below = below;
        Ok((entry, Arc::new(effective)))
    }

    /// A view whose columns have the defaults that they get from below, and what they are there.
    fn with_defaults_below(&self, view: &Table) -> Result<(Table, Vec<Below>)> {
        let as_it_is = |t: &Table| {
            let is_view = t.kind == RelationKind::View;
            t.columns.iter().map(|c| Below::of(c, is_view)).collect::<Vec<_>>()
        };
        let mut out = view.clone();
        let mut columns = as_it_is(view);
        let query = updatable::view_query(self.catalog, view)?;
        if updatable::not_updatable(self.catalog, &query, false)?.is_some() {
            return Ok((out, columns));
        }
        let below = self.base_table(&query)?;
        let (below, below_columns) = if below.kind == RelationKind::View {
            self.with_defaults_below(&below)?
        } else {
            ((*below).clone(), as_it_is(&below))
        };
        for (c, column) in out.columns.iter_mut().zip(&mut columns) {
            let Ok(n) = updatable::base_column(&query, c.number) else { continue };
            let at = n as usize - 1;
            let Some(b) = below.columns.get(at) else { continue };
            if !column.own_default {
                c.default.clone_from(&b.default);
                c.domain_default.clone_from(&b.domain_default);
            }
            c.identity = b.identity;
            c.identity_sequence = b.identity_sequence;
            c.generated = b.generated;
            column.name.clone_from(&below_columns[at].name);
            column.number = below_columns[at].number;
            column.view_default |= below_columns[at].view_default;
        }
        Ok((out, columns))
    }

    fn base_table(&self, view: &Query) -> Result<Arc<Table>> {
        match updatable::base_of(view) {
            Some((_, oid)) => match self.catalog.table_by_oid(oid)? {
                Some(t) => Ok(t),
                None => bail!(UNDEFINED_TABLE, "relation with OID {} does not exist", oid.0),
            },
            None => bail!(INTERNAL_ERROR, "a view of no relation is written through"),
        }
    }

    /// The table below a view, and what the view's columns are there (None: nothing that an index could have); None of a view that is
    /// not written through.
    pub(super) fn table_below(
        &self,
        view: &Arc<Table>,
    ) -> Result<Option<(Arc<Table>, Vec<Option<Expr>>)>> {
        let var = |column, ty| Expr::Var { levels_up: 0, rte: 0, column, ty };
        let mut table = view.clone();
        let mut columns: Vec<Option<Expr>> =
            table.columns.iter().map(|c| Some(var(c.number, c.ty))).collect();
        while table.kind == RelationKind::View {
            let query = updatable::view_query(self.catalog, &table)?;
            let no = updatable::not_updatable(self.catalog, &query, false)?;
            let (Some((base, _)), None) = (updatable::base_of(&query), no) else {
                return Ok(None);
            };
            let meaning = Meaning::of(&query, base, 0, false);
            for e in &mut columns {
                *e = e.take().and_then(|e| over_columns(e, &meaning.columns));
            }
            table = self.base_table(&query)?;
        }
        Ok(Some((table, columns)))
    }

    /// Puts the table below the views that a statement writes to in their place.
    pub(super) fn write_through(&mut self, mut q: Query) -> Result<Query> {
        let Some(target) = q.result_rte else { return Ok(q) };
        let mut through = false;
        // INSERT's columns that have a default of a view.
        let mut defaulted = Vec::new();
        while let RteKind::Subquery { view, .. } = q.range_table[target].kind {
            let Some(view) = self.catalog.table_by_oid(Oid(view))? else {
                bail!(UNDEFINED_TABLE, "relation with OID {view} does not exist");
            };
            self.through_one(&mut q, target, &view, &mut defaulted)?;
            through = true;
        }
        if through {
            self.end_at_table(&mut q, target, &defaulted)?;
        }
        if self.level().no_arbiter {
            return Err(super::on_conflict::no_arbiter());
        }
        Ok(q)
    }

    /// Columns that the table works out by itself got no value that it would not take, and get its own.
    fn end_at_table(&mut self, q: &mut Query, target: usize, defaulted: &[i32]) -> Result<()> {
        let RteKind::Relation { oid, .. } = q.range_table[target].kind else { return Ok(()) };
        let Some(table) = self.catalog.table_by_oid(Oid(oid))? else { return Ok(()) };
        let mut refused = std::mem::take(&mut self.level().may_not_set);
        let overriding = self.level().overriding;
        for c in table.columns.iter().filter(|c| defaulted.contains(&c.number)) {
            if overriding == Some(false) && c.identity.is_some() {
                q.targets.retain(|t| t.target_column != Some(c.number));
            } else if let Some(e) = super::dml::refusal(c, &c.name, false, overriding) {
                refused.push((c.number, e));
            }
        }
        if let Some((_, e)) = refused.into_iter().min_by_key(|r| r.0) {
            return Err(e);
        }
        inserted_lists(q).for_each(|list| fill_in(list, &table));
        Ok(())
    }

    fn through_one(
        &self,
        q: &mut Query,
        target: usize,
        view: &Arc<Table>,
        defaulted: &mut Vec<i32>,
    ) -> Result<()> {
        let query = updatable::view_query(self.catalog, view)?;
        let writes = writes_rows(q);
        if let Some(why) = updatable::not_updatable(self.catalog, &query, writes)? {
            return Err(refused(q, view, why));
        }
        let Some((base, _)) = updatable::base_of(&query) else { return Ok(()) };
        inserted_lists(q).for_each(|list| own_defaults(list, view, defaulted));
        check_columns(q, view, &query)?;
        let below = self.base_table(&query)?;
        for columns in [&mut q.named, defaulted] {
            *columns =
                columns.iter().filter_map(|n| updatable::base_column(&query, *n).ok()).collect();
        }
        let meanings = put_below(q, target, view, &below, &query, base);
        put(q, 0, &meanings);
        rename_targets(q, &below, &query)?;
        if let Some(condition) = &query.filter
            && q.command != Command::Insert
        {
            let condition = brought_in(q, condition, &query, base, target);
            let asked = q.filter.take();
            q.filter = Some(match (updatable::is_barrier(view), asked) {
                (true, Some(asked)) => both(Some(condition), asked),
                (_, asked) => both(asked, condition),
            });
        }
        if writes {
            add_check(q, view, &query, base, target);
        }
        Ok(())
    }

    /// What the column is called in errors about the table below.
    pub(super) fn name_below<'n>(&'n self, column: &'n Column) -> &'n str {
        self.below(column).map_or(&column.name, |b| &b.name)
    }

    fn below(&self, column: &Column) -> Option<&Below> {
        self.levels.last()?.below.get(column.number as usize - 1)
    }

    /// A column of a view that has no default of its own: a row that says DEFAULT says nothing.
    pub(super) fn has_default_below(&self, c: &Column) -> bool {
        self.below(c).is_some_and(|b| !b.own_default)
    }

    /// What `SET column = DEFAULT` means: of a view its own default or none, whatever the table has.
    pub(super) fn set_default(&mut self, c: &Column, loc: Loc) -> Result<Expr> {
        let Some(own) = self.below(c).map(|b| b.own_default) else { return Ok(default_value(c)) };
        self.may_set(c, true, None, loc)?;
        let default = if own { c.default.clone() } else { None };
        Ok(default_value(&Column { default, identity: None, ..c.clone() }))
    }

    /// What DEFAULT means in a row of INSERT.
    pub(super) fn row_default(
        &mut self,
        c: &Column,
        overriding: Option<bool>,
        loc: Loc,
    ) -> Result<Expr> {
        if !self.below(c).is_some_and(|b| b.view_default) {
            return Ok(default_value(c));
        }
        self.may_set(c, false, overriding, loc)?;
        Ok(default_value(&Column { identity: None, ..c.clone() }))
    }

    /// A value was given for a column that takes none: of a view that is said when nothing else is wrong with it.
    pub(super) fn refuse_below(&mut self, c: &Column, e: base::Error) -> Result<()> {
        let Some(number) = self.below(c).map(|b| b.number) else { return Err(e) };
        self.level().may_not_set.push((number, e));
        Ok(())
    }
}

/// Does it give values to columns?
fn writes_rows(q: &Query) -> bool {
    match &q.merge {
        Some(m) => m
            .clauses
            .iter()
            .any(|c| matches!(c.action, MergeAction::Insert(_) | MergeAction::Update(_))),
        None => q.command != Command::Delete,
    }
}

/// The columns of INSERT, or of each of MERGE's.
fn inserted_lists(q: &mut Query) -> impl Iterator<Item = &mut Vec<TargetEntry>> {
    let own = (q.command == Command::Insert).then_some(&mut q.targets);
    let clauses = q.merge.iter_mut().flat_map(|m| &mut m.clauses);
    let of_clauses = clauses.filter_map(|c| match &mut c.action {
        MergeAction::Insert(list) => Some(list),
        _ => None,
    });
    own.into_iter().chain(of_clauses)
}

/// All lists of columns that get values.
fn assigned_lists(q: &mut Query) -> impl Iterator<Item = &mut Vec<TargetEntry>> {
    let on_conflict = q.on_conflict.iter_mut().filter_map(|c| c.update.as_mut());
    let clauses = q.merge.iter_mut().flat_map(|m| &mut m.clauses);
    let of_clauses = clauses.filter_map(|c| match &mut c.action {
        MergeAction::Insert(list) | MergeAction::Update(list) => Some(list),
        MergeAction::Delete | MergeAction::Nothing => None,
    });
    std::iter::once(&mut q.targets).chain(on_conflict).chain(of_clauses)
}

/// INSERT's columns in the table's order, with the table's defaults for those that got no value.
fn fill_in(targets: &mut Vec<TargetEntry>, table: &Table) {
    let mut given = std::mem::take(targets);
    for c in table.columns.iter().filter(|c| !c.dropped) {
        let at = given.iter().position(|t| t.target_column == Some(c.number));
        targets.push(match at {
            Some(at) => given.swap_remove(at),
            None => assignment(c, default_value(c)),
        });
    }
}

fn assignment(c: &Column, expr: Expr) -> TargetEntry {
    TargetEntry {
        expr,
        name: c.name.clone(),
        target_column: Some(c.number),
        origin: (0, 0),
        hidden: false,
    }
}

/// An expression over a view's columns, over those of the table below; None if a sub-select comes into it.
fn over_columns(mut e: Expr, columns: &[Expr]) -> Option<Expr> {
    let mut fits = true;
    e.rewrite(&mut |e| {
        let Expr::Var { levels_up: 0, rte: 0, column, .. } = e else { return false };
        match usize::try_from(*column - 1).ok().and_then(|at| columns.get(at)) {
            Some(value) => *e = value.clone(),
            None => fits = false,
        }
        true
    });
    (fits && !e.any(&mut |e| matches!(e, Expr::SubLink { .. }))).then_some(e)
}

/// An expression over a view's columns as an index of the table below would have it, or as it is.
pub(super) fn over_below(e: &Expr, columns: &[Option<Expr>]) -> Expr {
    let mut out = e.clone();
    out.rewrite(&mut |e| {
        let Expr::Var { levels_up: 0, rte: 0, column, .. } = e else { return false };
        let at = usize::try_from(*column - 1).unwrap_or(usize::MAX);
        match columns.get(at) {
            Some(Some(value)) => *e = value.clone(),
            // No index's column has such a number.
            _ => *column = i32::MAX,
        }
        true
    });
    out
}

/// An INSERT into a view that has defaults of its own.
fn own_defaults(targets: &mut Vec<TargetEntry>, view: &Table, defaulted: &mut Vec<i32>) {
    for c in &view.columns {
        if let Some(default) = c.any_default()
            && !targets.iter().any(|t| t.target_column == Some(c.number))
        {
            targets.push(assignment(c, (**default).clone()));
            defaulted.push(c.number);
        }
    }
}

/// A view that is not written through.
fn refused(q: &Query, view: &Table, why: &str) -> base::Error {
    let in_merge = q.merge.iter().flat_map(|m| &m.clauses).find_map(|c| match &c.action {
        MergeAction::Insert(_) => Some(Command::Insert),
        MergeAction::Update(_) => Some(Command::Update),
        MergeAction::Delete => Some(Command::Delete),
        MergeAction::Nothing => None,
    });
    if q.command == Command::Merge && in_merge.is_none() {
        return base::Error::unsupported("MERGE that does nothing into such a view");
    }
    let (verb, gerund, event) = match in_merge.unwrap_or(q.command) {
        Command::Insert => ("insert into", "inserting into", "INSERT"),
        Command::Update => ("update", "updating", "UPDATE"),
        _ => ("delete from", "deleting from", "DELETE"),
    };
    let text = format!("cannot {verb} view \"{}\"", view.name);
    let hint = match q.command {
        Command::Merge => format!(
            "To enable {gerund} the view using MERGE, provide an INSTEAD OF {event} trigger."
        ),
        _ => format!(
            "To enable {gerund} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
        ),
    };
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text).detail(why).hint(hint).into()
}

/// Refuses values for columns that are no columns of the table below.
fn check_columns(q: &mut Query, view: &Table, query: &Query) -> Result<()> {
    if !writes_rows(q) {
        return Ok(());
    }
    let verb = match q.command {
        Command::Insert => "insert into",
        Command::Merge => "merge into",
        _ => "update",
    };
    for c in &view.columns {
        let is = |t: &TargetEntry| t.target_column == Some(c.number);
        let named = q.named.contains(&c.number);
        if (named || assigned_lists(q).any(|list| list.iter().any(is)))
            && let Err(why) = updatable::base_column(query, c.number)
        {
            let text = format!("cannot {verb} column \"{}\" of view \"{}\"", c.name, view.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).detail(why).into());
        }
    }
    Ok(())
}

/// Puts the entries of what is below the view in place of the view's; what its columns mean over them is returned.
fn put_below(
    q: &mut Query,
    target: usize,
    view: &Table,
    below: &Arc<Table>,
    query: &Query,
    base: usize,
) -> Vec<Meaning> {
    let shown = &query.range_table[base];
    let mut entry = table_entry(below, false);
    entry.kind = shown.kind.clone();
    entry.alias.clone_from(&shown.alias);
    entry.has_alias = shown.has_alias;
    entry.required_privileges = q.range_table[target].required_privileges;
    entry.check_as = if updatable::is_invoker(view) { 0 } else { view.owner.0 };
    entry.used = written_below(&q.range_table[target], shown, query);
    let mut gone = std::mem::replace(&mut q.range_table[target], entry);
    let empty = Box::new(super::set_ops::empty_query());
    gone.kind = RteKind::Subquery { query: empty, view: view.oid.0 };
    // EXPLAIN has nothing to say of it.
    gone.alias.clear();
    gone.column_names.clear();
    q.range_table.push(gone);
    let mut meanings = vec![Meaning::of(query, base, target, false)];
    let excluded = q.on_conflict.as_ref().and_then(|c| c.excluded_rte);
    let images = q.images.into_iter().flat_map(|(old, new)| [old, new]);
    for (rte, image) in excluded.map(|x| (x, false)).into_iter().chain(images.map(|i| (i, true))) {
        let mut entry = table_entry(below, false);
        entry.required_privileges = 0;
        entry.has_alias = true;
        entry.alias.clone_from(&q.range_table[rte].alias);
        if !image || below.kind == RelationKind::View {
            entry.kind = RteKind::Excluded;
        }
        q.range_table[rte] = entry;
        meanings.push(Meaning::of(query, base, rte, image));
    }
    meanings
}

/// The columns of the entry below a view that privileges are asked on: all that the view reads, and those that the statement writes.
fn written_below(
    written: &RangeTableEntry,
    below: &RangeTableEntry,
    view: &Query,
) -> Option<Box<UsedColumns>> {
    let (written, below) = (written.used.as_ref()?, below.used.as_ref()?);
    let there = |columns: &[i32]| {
        columns.iter().filter_map(|n| updatable::base_column(view, *n).ok()).collect()
    };
    Some(Box::new(UsedColumns {
        read: below.read.clone(),
        inserted: there(&written.inserted),
        updated: there(&written.updated),
    }))
}

/// The assignments are of the columns below.
fn rename_targets(q: &mut Query, below: &Table, query: &Query) -> Result<()> {
    for list in assigned_lists(q) {
        let mut seen = Vec::new();
        for t in list.iter_mut() {
            let Some(n) = t.target_column.and_then(|n| updatable::base_column(query, n).ok())
            else {
                continue;
            };
            let name = below.columns.get(n as usize - 1).map_or("", |c| c.name.as_str());
            if seen.contains(&n) {
                return Err(err!(SYNTAX_ERROR, "multiple assignments to same column \"{name}\""));
            }
            seen.push(n);
            t.target_column = Some(n);
            t.name = name.to_owned();
        }
    }
    Ok(())
}

/// A condition of a view in the statement, its sub-selects with it.
fn brought_in(q: &mut Query, condition: &Expr, view: &Query, base: usize, target: usize) -> Expr {
    let mut e = condition.clone();
    e.rewrite(&mut |e| moved(e, 0, base, target));
    let subs = sub_selects_over(view, base, target);
    let mut added = Vec::new();
    adopt(&mut e, &subs, q.sub_selects.len(), &mut added, 0);
    q.sub_selects.append(&mut added);
    e
}

/// WITH CHECK OPTION: a view's own, or one that a view around it passes down. Inner views are asked first.
fn add_check(q: &mut Query, view: &Table, query: &Query, base: usize, target: usize) {
    let own = updatable::check_option(view);
    let passed_down = q.view_checks.first().is_some_and(|c| c.cascaded);
    let cascaded = passed_down || own == Some(CheckOption::Cascaded);
    if !cascaded && (own.is_none() || query.filter.is_none()) {
        return;
    }
    let condition = query.filter.as_ref().map(|f| brought_in(q, f, query, base, target));
    let check = ViewCheck { view: view.name.clone(), condition, cascaded };
    q.view_checks.insert(0, check);
}
