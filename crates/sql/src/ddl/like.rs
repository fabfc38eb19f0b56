//! CREATE TABLE (LIKE …): columns of a table that is there, and what INCLUDING asks for besides.
//!
//! # Purpose
//! Columns are copied when the statement's elements are gathered; what refers to columns by their numbers (checks, indexes) when the
//! table is there. Checks and generated columns go by way of their text, as the columns have other numbers.

use super::Ddl;
use super::depend::Object;
use super::index::NewIndex;
use super::key_constraint::column_number;
use super::not_null::{self, Declared, NotNull};
use super::relation::{IndexColumnRow, NewColumn};
use super::sequence::Home;
use super::table::{Elements, Owned};
use crate::deparse::column_names;
use crate::parse::utility::{
    ConstraintTiming, SequenceOption, TableConstraint, TableConstraintKind,
};
use crate::parse::{parse_expression, parse_type};
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Column, Index, RelationKind, Table};
use engine::catalog::rows::Row;
use expr::Expr;
use std::collections::HashSet;
use std::sync::Arc;
use types::Datum;

const ALL: [&str; 9] = [
    "comments",
    "compression",
    "constraints",
    "defaults",
    "generated",
    "identity",
    "indexes",
    "statistics",
    "storage",
];

/// What numbers the columns of `source` have in a table like it.
fn numbers(source: &Table, table: &Table) -> Result<Vec<i32>> {
    let of = |c: &Column| if c.dropped { Ok(0) } else { column_number(table, &c.name) };
    source.columns.iter().map(of).collect()
}

/// A table whose columns were copied, and what else is to be.
pub(super) struct Pattern {
    source: Arc<Table>,
    including: HashSet<&'static str>,
}

impl Pattern {
    pub(super) fn new(source: Arc<Table>, options: &[(bool, String)]) -> Pattern {
        let mut including = HashSet::new();
        for (include, what) in options {
            for w in ALL.iter().filter(|w| what == "all" || what == *w) {
                if *include {
                    including.insert(*w);
                } else {
                    including.remove(w);
                }
            }
        }
        Pattern { source, including }
    }

    fn has(&self, what: &str) -> bool {
        self.including.contains(what)
    }
}

/// May a table be made like this relation?
pub(super) fn check_source(table: &Table) -> Result<()> {
    if matches!(
        table.kind,
        RelationKind::Table
            | RelationKind::View
            | RelationKind::MaterializedView
            | RelationKind::Composite
    ) {
        return Ok(());
    }
    let message = format!("relation \"{}\" is invalid in LIKE clause", table.name);
    let kind = crate::acl::noun(table.kind);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail(format!("This operation is not supported for {kind}s."))
        .into())
}

impl Ddl<'_> {
    /// The columns of a pattern.
    pub(super) fn copy_columns(
        &mut self,
        pattern: &Pattern,
        table: &str,
        home: Home,
        out: &mut Elements,
    ) -> Result<()> {
        let source = &pattern.source;
        for column in source.columns.iter().filter(|c| !c.dropped) {
            let at = out.columns.len();
            let mut new = NewColumn::plain(&column.name, column.declared());
            if column.not_null {
                let found = not_null::find(self.state(), source.oid, column.number)?;
                let what = found.map_or_else(NotNull::default, |row| NotNull {
                    name: Some(row.text("conname").to_owned()),
                    no_inherit: row.bool("connoinherit"),
                    not_valid: false,
                });
                let column = column.name.clone();
                out.not_nulls.push(Declared { column, what, in_column: false });
            }
            new.collation = self.collation_of(source.oid, column.number)?;
            if pattern.has("storage") {
                new.storage = Some(column.storage);
            }
            if pattern.has("compression") {
                new.compression = column.compression;
            }
            match &column.default {
                Some(default) if column.is_generated() && pattern.has("generated") => {
                    let env = std::rc::Rc::clone(self.session.env());
                    let text = crate::deparse::expression(
                        default,
                        &column_names(source),
                        false,
                        env.as_ref(),
                    )?;
                    new.generated = column.generated;
                    out.defaults.push((at, parse_expression(&text)?, column.generated));
                }
                Some(default) if !column.is_generated() && pattern.has("defaults") => {
                    new.default = Some((**default).clone());
                }
                _ => {}
            }
            if let Some(of) = column.identity_sequence.filter(|_| pattern.has("identity")) {
                new.identity = column.identity;
                // Whatever the column is: PostgreSQL copies all but the type.
                let mut options = self.sequence_options(of)?;
                options.retain(|o| !matches!(o, SequenceOption::As(_)));
                let (name, ty) = (&column.name, types::oids::INT8);
                let sequence = self.column_sequence(table, name, home, ty, &options)?;
                let number = i32::try_from(at + 1).unwrap_or(i32::MAX);
                out.owned.push(Owned { sequence, column: number, identity: true });
            }
            out.columns.push(new);
        }
        Ok(())
    }

    /// A column's collation.
    fn collation_of(&self, table: Oid, number: i32) -> Result<Option<Oid>> {
        let txn = self.state().txn()?;
        let number = Datum::Int2(i16::try_from(number).unwrap_or(i16::MAX));
        let key = [("attrelid", Datum::Oid(table)), ("attnum", number)];
        let rows = self.state().catalog.rows(&txn).find("pg_attribute", &key)?;
        Ok(rows.first().map(|row| row.oid("attcollation")))
    }

    /// What a sequence was made with.
    fn sequence_options(&self, sequence: Oid) -> Result<Vec<SequenceOption>> {
        let p = crate::sequence::parameters(self.state(), sequence)?;
        Ok(vec![
            SequenceOption::As(parse_type(&types::format_type(p.data_type, -1))?),
            SequenceOption::Increment(p.increment),
            SequenceOption::MinValue(Some(p.min)),
            SequenceOption::MaxValue(Some(p.max)),
            SequenceOption::Start(p.start),
            SequenceOption::Cache(p.cache),
            SequenceOption::Cycle(p.cycle),
        ])
    }

    /// The checks of a pattern, and the comments on them and on the columns, for the table that is there by now.
    pub(super) fn copy_checks(&mut self, pattern: &Pattern, to: Oid) -> Result<()> {
        let source = &pattern.source;
        if pattern.has("comments") {
            for column in source.columns.iter().filter(|c| !c.dropped) {
                let there = self.column_like(to, column)?;
                self.copy_comment(Object::column(source.oid, column.number), there)?;
                let of = |row: Row| Object::of("pg_constraint", row.oid("oid"));
                let state = self.state();
                let from = not_null::find(state, source.oid, column.number)?.map(of);
                let made = not_null::find(state, to, there.sub)?.map(of);
                if let (Some(from), Some(made)) = (from, made) {
                    self.copy_comment(from, made)?;
                }
            }
        }
        for check in source.checks.iter().filter(|_| pattern.has("constraints")) {
            let env = std::rc::Rc::clone(self.session.env());
            let text = crate::deparse::expression(
                &check.expr,
                &column_names(source),
                false,
                env.as_ref(),
            )?;
            let timing = ConstraintTiming {
                no_inherit: check.no_inherit,
                not_valid: !check.enforced,
                not_enforced: !check.enforced,
                ..ConstraintTiming::default()
            };
            let constraint = TableConstraint {
                name: Some(check.name.clone()),
                kind: TableConstraintKind::Check(parse_expression(&text)?),
                timing,
                loc: 0,
            };
            self.add_constraint(to, &constraint, true)?;
            if pattern.has("comments") {
                let txn = self.state().txn()?;
                let key = [("conrelid", Datum::Oid(to)), ("conname", Datum::text(&check.name))];
                let made = self.state().catalog.rows(&txn).find("pg_constraint", &key)?;
                drop(txn);
                if let Some(row) = made.first() {
                    let of = |oid| Object::of("pg_constraint", oid);
                    self.copy_comment(of(check.oid), of(row.oid("oid")))?;
                }
            }
        }
        Ok(())
    }

    /// The keys and other indexes of a pattern. They get names of their own.
    pub(super) fn copy_indexes(&mut self, pattern: &Pattern, to: Oid) -> Result<()> {
        if !pattern.has("indexes") {
            return Ok(());
        }
        for index in pattern.source.indexes.iter().filter(|i| i.live && i.valid) {
            let made = self.copy_index(&pattern.source, index, to)?;
            if pattern.has("comments") {
                self.copy_comment(Object::relation(index.oid), Object::relation(made))?;
            }
        }
        Ok(())
    }

    /// The extended statistics of a pattern.
    pub(super) fn copy_extended(&mut self, pattern: &Pattern, to: Oid) -> Result<()> {
        if !pattern.has("statistics") {
            return Ok(());
        }
        let table = self.table_like(to)?;
        let numbers = numbers(&pattern.source, &table)?;
        let copies = self.copy_statistics(&pattern.source, &table, &|column| {
            let at = usize::try_from(column - 1).ok();
            at.and_then(|at| numbers.get(at).copied()).unwrap_or(column)
        })?;
        let of = |oid| Object::of("pg_statistic_ext", oid);
        for (from, to) in copies.into_iter().filter(|_| pattern.has("comments")) {
            self.copy_comment(of(from), of(to))?;
        }
        Ok(())
    }

    fn copy_index(&mut self, source: &Table, index: &Index, to: Oid) -> Result<Oid> {
        let table = self.table_like(to)?;
        if index.primary && table.primary_key().is_some() {
            bail!(
                INVALID_TABLE_DEFINITION,
                "multiple primary keys for table \"{}\" are not allowed",
                table.name
            );
        }
        let numbers = numbers(source, &table)?;
        let renumbered = |column: i32| match usize::try_from(column - 1) {
            Ok(at) => numbers.get(at).copied().unwrap_or(column),
            Err(_) => column,
        };
        let moved = |e: &Expr| {
            let mut e = e.clone();
            e.rewrite(&mut |e| match e {
                Expr::Var { column, .. } => {
                    *column = renumbered(*column);
                    true
                }
                _ => false,
            });
            e
        };
        let columns: Vec<IndexColumnRow> = index
            .columns
            .iter()
            .map(|c| IndexColumnRow {
                name: c.name.clone(),
                column: renumbered(c.column),
                expr: c.expr.as_deref().map(moved),
                ty: c.ty,
                opclass: c.opclass,
                collation: c.collation,
                descending: c.descending,
                nulls_first: c.nulls_first,
            })
            .collect();
        let is_key = index.constraint.is_some();
        let new = NewIndex {
            name: None,
            unique: index.unique,
            primary: index.primary,
            nulls_not_distinct: index.nulls_not_distinct,
            deferrable: !index.immediate,
            key_columns: index.key_columns,
            columns,
            predicate: index.predicate.as_deref().map(moved),
            options: index.options.clone(),
            suffix: match (index.primary, is_key) {
                (true, _) => "pkey",
                (false, true) => "key",
                (false, false) => "idx",
            },
            concurrently: false,
        };
        let (made, name) = self.make_index(&table, &new)?;
        if is_key {
            let numbers: Vec<i32> = new.columns.iter().map(|c| c.column).collect();
            let columns = numbers.split_at(index.key_columns);
            let timing = ConstraintTiming {
                deferrable: !index.immediate,
                initially_deferred: index.deferred,
                ..ConstraintTiming::default()
            };
            self.key_constraint(&table, made, &name, index.primary, columns, timing)?;
        }
        Ok(made)
    }

    fn table_like(&self, oid: Oid) -> Result<Arc<Table>> {
        match self.state().table_by_oid(oid)? {
            Some(table) => Ok(table),
            None => bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist"),
        }
    }

    fn column_like(&self, to: Oid, column: &Column) -> Result<Object> {
        Ok(Object::column(to, column_number(&*self.table_like(to)?, &column.name)?))
    }

    fn copy_comment(&self, from: Object, to: Object) -> Result<()> {
        let txn = self.state().txn()?;
        let key = [
            ("objoid", Datum::Oid(from.oid)),
            ("classoid", Datum::Oid(from.class)),
            ("objsubid", Datum::Int4(from.sub)),
        ];
        let rows = self.state().catalog.rows(&txn).find("pg_description", &key)?;
        drop(txn);
        match rows.first() {
            Some(row) => self.set_comment(to, false, Some(row.text("description"))),
            None => Ok(()),
        }
    }
}
