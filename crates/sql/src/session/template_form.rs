//! Which constants of a statement become parameters of a template.
//!
//! # Purpose
//! [`has_form`] says without a copy whether a statement may be one that is kept; [`Taker`] makes parameters of constants that columns are
//! compared with in WHERE, or that INSERT and UPDATE write, and says whether a plan could depend on their values.

use super::template::Run;
use crate::parse::ast::{
    Expr, ExprKind, JoinCondition, ObjectName, QueryStatement, Select, SelectBody, SetClause,
    TableRef,
};
use base::{Oid, Result};
use engine::catalog::model::{CatalogView, Column, RelationKind, Table};
use std::sync::Arc;
use types::oids;

/// Operators that compare.
const COMPARISONS: [&str; 7] = ["=", "<>", "!=", "<", ">", "<=", ">="];

/// So many rows of values: more come as data.
const MOST_ROWS: usize = 64;

/// Are statements of this form kept, if their conditions and values are such?
pub(super) fn has_form(s: &QueryStatement) -> bool {
    match s {
        QueryStatement::Select(s) => {
            let SelectBody::Core(core) = &s.body else { return false };
            s.with.is_none()
                && core.filter.is_some()
                && !core.from.is_empty()
                && core.from.iter().all(of_tables)
                && core.into.is_none()
        }
        QueryStatement::Update(u) => {
            let single = |clause: &SetClause| matches!(clause, SetClause::Single { .. });
            u.with.is_none() && u.from.is_empty() && u.set.iter().all(single)
        }
        QueryStatement::Delete(d) => d.with.is_none() && d.using.is_empty(),
        QueryStatement::Insert(i) => {
            let few_rows = |source: &Select| {
                source.with.is_none()
                    && matches!(&source.body, SelectBody::Values(rows) if rows.len() <= MOST_ROWS)
            };
            i.with.is_none() && i.source.as_ref().is_some_and(few_rows)
        }
        QueryStatement::Merge(_) => false,
    }
}

/// Tables, and joins of such.
fn of_tables(from: &TableRef) -> bool {
    match from {
        // Columns may have other names here.
        TableRef::Table { sample, alias, .. } => {
            sample.is_none() && alias.as_ref().is_none_or(|alias| alias.columns.is_empty())
        }
        TableRef::Join { left, right, alias, .. } => {
            alias.is_none() && of_tables(left) && of_tables(right)
        }
        _ => false,
    }
}

/// A constant that has become a parameter.
pub(super) struct Taken {
    /// The first byte of its run.
    pub(super) start: usize,
    pub(super) negative: bool,
    /// The type of the column that a string is written to, which must be its own.
    pub(super) written_to: Option<Oid>,
}

/// A column that is compared with parameters.
struct Compared {
    /// As it is written.
    path: Vec<String>,
    /// For equality with one.
    equal: bool,
}

/// Makes parameters of constants.
pub(super) struct Taker<'a> {
    source: &'a Arc<str>,
    runs: &'a [Run],
    pub(super) taken: Vec<Taken>,
    compared: Vec<Compared>,
}

impl<'a> Taker<'a> {
    /// For a statement of `source`, whose constants are `runs`.
    pub(super) fn new(source: &'a Arc<str>, runs: &'a [Run]) -> Taker<'a> {
        Taker { source, runs, taken: Vec::new(), compared: Vec::new() }
    }

    /// Takes the constants of a statement that [`has_form`]: true if one plan is as good for all values, none if it is to be left as it is.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn statement(
        &mut self,
        s: &mut QueryStatement,
        catalog: &dyn CatalogView,
    ) -> Result<Option<bool>> {
        match s {
            QueryStatement::Select(s) => {
                let SelectBody::Core(core) = &mut s.body else { return Ok(None) };
                self.conditions(core.filter.as_mut());
                let from: Vec<&TableRef> = core.from.iter().collect();
                self.one_row(&from, core.filter.as_ref(), catalog)
            }
            QueryStatement::Update(u) => {
                let Some(table) = self.table(&u.table, catalog)? else { return Ok(None) };
                for clause in &mut u.set {
                    if let SetClause::Single { target, value } = clause {
                        let column = table.column(&target.column);
                        if let Some(column) = column.filter(|_| target.indirection.is_empty()) {
                            self.new_value(value, column);
                        }
                    }
                }
                self.conditions(u.filter.as_mut());
                Ok(Some(self.compared.is_empty() || self.finds_one_of(&table)))
            }
            QueryStatement::Delete(d) => {
                self.conditions(d.filter.as_mut());
                let table = self.table(&d.table, catalog)?;
                Ok(table.map(|table| self.finds_one_of(&table)))
            }
            QueryStatement::Insert(i) => {
                let Some(Select { body: SelectBody::Values(rows), .. }) = &mut i.source else {
                    return Ok(None);
                };
                rows.iter_mut().flatten().for_each(|value| self.value(value));
                Ok(Some(true))
            }
            QueryStatement::Merge(_) => Ok(None),
        }
    }

    fn table(&self, name: &ObjectName, catalog: &dyn CatalogView) -> Result<Option<Arc<Table>>> {
        catalog.table_by_name(name.schema.as_deref(), &name.name)
    }

    /// What a column is set to by an UPDATE, which may find no row: a constant that is none of the column's values is an error nevertheless,
    /// of planning. So it stays one, unless it can't be.
    fn new_value(&mut self, e: &mut Expr, column: &Column) {
        let ty = column.ty.oid;
        let takes_all = column.ty.typmod < 0 && column.declared == ty;
        match &e.kind {
            ExprKind::Binary { .. } => self.value(e),
            ExprKind::Number(_) if !(takes_all && takes_integers(ty)) => {}
            _ if takes_all => {
                let before = self.taken.len();
                self.value(e);
                self.taken[before..].iter_mut().for_each(|taken| taken.written_to = Some(ty));
            }
            _ => {}
        }
    }

    /// A value that is written: a constant, or arithmetic with a number.
    fn value(&mut self, e: &mut Expr) {
        // What is computed of constants alone is computed, or fails, when the statement is planned.
        if matches!(e.kind, ExprKind::Binary { .. }) && is_constant(e) {
            return;
        }
        match &mut e.kind {
            ExprKind::Binary { op, left, right }
                if op.schema.is_none() && matches!(op.name.as_str(), "+" | "-" | "*") =>
            {
                self.number_within(left);
                self.number_within(right);
            }
            _ => {
                self.take(e);
            }
        }
    }

    fn number_within(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Number(_) => {
                self.take(e);
            }
            ExprKind::Binary { .. } => self.value(e),
            _ => {}
        }
    }

    /// Takes the constants of a condition, or of those that must all be true.
    fn conditions(&mut self, filter: Option<&mut Expr>) {
        match filter {
            Some(Expr { kind: ExprKind::And(list), .. }) => {
                list.iter_mut().for_each(|condition| self.condition(condition));
            }
            Some(condition) => self.condition(condition),
            None => {}
        }
    }

    fn condition(&mut self, e: &mut Expr) {
        let (path, constants, equal) = match &mut e.kind {
            ExprKind::Binary { op, left, right }
                if op.schema.is_none() && COMPARISONS.contains(&op.name.as_str()) =>
            {
                let equal = op.name == "=";
                match (&left.kind, &right.kind) {
                    (ExprKind::Column(path), _) => (path.clone(), vec![&mut **right], equal),
                    (_, ExprKind::Column(path)) => (path.clone(), vec![&mut **left], equal),
                    _ => return,
                }
            }
            ExprKind::Between { arg, low, high, symmetric: false, .. } => match &arg.kind {
                ExprKind::Column(path) => (path.clone(), vec![&mut **low, &mut **high], false),
                _ => return,
            },
            _ => return,
        };
        for constant in constants {
            if self.take(constant) {
                self.compared.push(Compared { path: path.clone(), equal });
            }
        }
    }

    /// Is one plan as good for all values, as they are of one row of a table, and tell nothing of others? None: a table is missing.
    fn one_row(
        &self,
        from: &[&TableRef],
        filter: Option<&Expr>,
        catalog: &dyn CatalogView,
    ) -> Result<Option<bool>> {
        let mut entries = Vec::new();
        let mut joined = Vec::new();
        from.iter().for_each(|from| spread(from, &mut entries, &mut joined));
        let mut tables = Vec::with_capacity(entries.len());
        for (name, alias) in &entries {
            let Some(table) = self.table(name, catalog)? else { return Ok(None) };
            tables.push((*alias, table));
        }
        if let [(_, table)] = tables.as_slice() {
            return Ok(Some(self.finds_one_of(table)));
        }
        // Of several, all values are compared with columns of the same, which are compared with nothing else.
        let owner = |path: &[String]| -> Option<usize> {
            let mut owners = tables.iter().enumerate().filter(|(_, (alias, table))| match path {
                [column] => table.column(column).is_some(),
                [qualifier, _] => qualifier == alias,
                _ => false,
            });
            let found = owners.next()?.0;
            owners.next().is_none().then_some(found)
        };
        let Some(of) = self.compared.first().and_then(|c| owner(&c.path)) else {
            return Ok(Some(false));
        };
        if self.compared.iter().any(|c| owner(&c.path) != Some(of)) {
            return Ok(Some(false));
        }
        let names: Vec<&String> = self.compared.iter().filter_map(|c| c.path.last()).collect();
        let within = match filter {
            Some(Expr { kind: ExprKind::And(list), .. }) => list.iter().collect(),
            other => Vec::from_iter(other),
        };
        let others = within.into_iter().filter(|e| !is_taken(e));
        let alone = !others
            .chain(joined.iter().filter_map(|on| match on {
                JoinCondition::On(e) => Some(&**e),
                _ => None,
            }))
            .any(|e| may_name(e, &names))
            && joined.iter().all(|on| match on {
                JoinCondition::Cross | JoinCondition::On(_) => true,
                JoinCondition::Using(columns, _) => {
                    columns.iter().all(|(column, _)| !names.contains(&column))
                }
                JoinCondition::Natural => false,
            });
        Ok(Some(alone && self.finds_one_of(&tables[of].1)))
    }

    /// Are all columns of a unique key of the table compared for equality?
    fn finds_one_of(&self, table: &Table) -> bool {
        let found = |number: i32| {
            let column = usize::try_from(number - 1).ok().and_then(|n| table.columns.get(n));
            column.is_some_and(|column| {
                self.compared.iter().any(|c| c.equal && c.path.last() == Some(&column.name))
            })
        };
        table.kind == RelationKind::Table
            && table.indexes.iter().any(|i| {
                i.unique
                    && i.immediate
                    && i.valid
                    && i.predicate.is_none()
                    && i.columns[..i.key_columns]
                        .iter()
                        .all(|c| c.expr.is_none() && found(c.column))
            })
    }

    /// Makes a parameter of a constant, be it one that is given a type; false if it is none, or not written in the usual way.
    fn take(&mut self, e: &mut Expr) -> bool {
        match &mut e.kind {
            ExprKind::Number(_) => self.take_number(e),
            ExprKind::String(_) => self.take_string(e),
            // A length or a precision may be exceeded.
            ExprKind::Cast { arg, ty, .. }
                if matches!(arg.kind, ExprKind::String(_))
                    && ty.modifiers.is_empty()
                    && ty.fixed_typmod.is_none() =>
            {
                self.take_string(arg)
            }
            _ => false,
        }
    }

    /// An integer.
    fn take_number(&mut self, e: &mut Expr) -> bool {
        let ExprKind::Number(text) = &e.kind else { return false };
        if text.parse::<i32>().is_err() {
            return false;
        }
        let Some(written) = self.source.get(e.loc as usize..) else { return false };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => match written.strip_prefix('-') {
                Some(rest) if rest.starts_with(digits) => (true, digits),
                _ => return false,
            },
            None if written.starts_with(text.as_str()) => (false, text.as_str()),
            None => return false,
        };
        // The number is all there is: no fraction, no exponent.
        let start = e.loc as usize + usize::from(negative);
        let after = self.source.as_bytes().get(start + digits.len());
        if after.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')) {
            return false;
        }
        self.becomes_parameter(e, start, negative);
        true
    }

    /// A string that says what stands between its quotes, and is not gone on with in the next line.
    fn take_string(&mut self, e: &mut Expr) -> bool {
        let ExprKind::String(value) = &e.kind else { return false };
        let start = e.loc as usize;
        let run = self.runs.iter().find(|run| run.is_string && run.start == start);
        if !run.is_some_and(|run| run.content(self.source) == value.as_str()) {
            return false;
        }
        self.becomes_parameter(e, start, false);
        true
    }

    fn becomes_parameter(&mut self, e: &mut Expr, start: usize, negative: bool) {
        self.taken.push(Taken { start, negative, written_to: None });
        e.kind = ExprKind::Param(u32::try_from(self.taken.len()).unwrap_or(u32::MAX));
    }
}

/// Is every integer of the statement a value of this type?
fn takes_integers(ty: Oid) -> bool {
    matches!(ty, oids::INT4 | oids::INT8 | oids::NUMERIC | oids::FLOAT8 | oids::TEXT)
}

/// A number, or computed of such alone?
fn is_constant(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Number(_) => true,
        ExprKind::Binary { left, right, .. } => is_constant(left) && is_constant(right),
        _ => false,
    }
}

/// The tables of FROM by what they are called in the statement, and how they are joined.
fn spread<'f>(
    from: &'f TableRef,
    tables: &mut Vec<(&'f ObjectName, &'f str)>,
    joined: &mut Vec<&'f JoinCondition>,
) {
    match from {
        TableRef::Table { name, alias, .. } => {
            let called = alias.as_ref().map_or(name.name.as_str(), |alias| alias.name.as_str());
            tables.push((name, called));
        }
        TableRef::Join { left, right, condition, .. } => {
            spread(left, tables, joined);
            spread(right, tables, joined);
            joined.push(condition);
        }
        _ => {}
    }
}

/// Has a constant of it become a parameter?
fn is_taken(condition: &Expr) -> bool {
    let is_param = |e: &Expr| match &e.kind {
        ExprKind::Param(_) => true,
        ExprKind::Cast { arg, .. } => matches!(arg.kind, ExprKind::Param(_)),
        _ => false,
    };
    match &condition.kind {
        ExprKind::Binary { left, right, .. } => is_param(left) || is_param(right),
        ExprKind::Between { low, high, .. } => is_param(low) && is_param(high),
        _ => false,
    }
}

/// May a column of one of these names stand in it? What is not looked into may have any.
fn may_name(e: &Expr, names: &[&String]) -> bool {
    let within = |e: &Expr| may_name(e, names);
    match &e.kind {
        ExprKind::Column(path) => path.last().is_none_or(|name| names.contains(&name)),
        ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::Param(_) => false,
        ExprKind::Binary { left, right, .. } => within(left) || within(right),
        ExprKind::And(list) | ExprKind::Or(list) => list.iter().any(within),
        ExprKind::Not(arg) | ExprKind::Is { arg, .. } | ExprKind::Cast { arg, .. } => within(arg),
        ExprKind::In { arg, list, .. } => within(arg) || list.iter().any(within),
        ExprKind::Between { arg, low, high, .. } => within(arg) || within(low) || within(high),
        _ => true,
    }
}
