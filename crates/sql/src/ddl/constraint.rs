//! Constraints: what they have in common, and CHECK. Keys are in [`super::key_constraint`], foreign keys in [`super::foreign_key`].

use super::depend::{self, Kind, Object};
use super::{Ddl, new_oid, relation};
use crate::analyse;
use crate::parse::utility::{ConstraintTiming, TableConstraint, TableConstraintKind};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::{RowSource, store_expr};
use engine::catalog::model::Table;
use engine::catalog::rows::{NewRow, int2_array};
use std::sync::Arc;
use types::Datum;

/// Is there a constraint of that name in the schema?
///
/// # Errors
/// I/O.
pub fn name_taken(state: &SessionState, namespace: Oid, name: &str) -> Result<bool> {
    let txn = state.txn()?;
    let key = [("conname", Datum::text(name)), ("connamespace", Datum::Oid(namespace))];
    Ok(!state.catalog.rows(&txn).find("pg_constraint", &key)?.is_empty())
}

pub(super) fn constraint_row(
    table: &Table,
    oid: Oid,
    name: &str,
    kind: u8,
    t: ConstraintTiming,
) -> NewRow {
    NewRow::of("pg_constraint")
        .oid("oid", oid)
        .text("conname", name)
        .oid("connamespace", table.namespace)
        .char("contype", kind)
        .bool("condeferrable", t.deferrable)
        .bool("condeferred", t.initially_deferred)
        .bool("conenforced", !t.not_enforced)
        .bool("convalidated", !t.not_valid)
        .oid("conrelid", table.oid)
        .char("confupdtype", b' ')
        .char("confdeltype", b' ')
        .char("confmatchtype", b' ')
        .bool("conislocal", true)
        .bool("connoinherit", kind != b'c' || t.no_inherit)
}

/// A table without rows leaves nothing to validate.
pub(super) fn validity(timing: ConstraintTiming, fresh: bool) -> ConstraintTiming {
    let not_valid = timing.not_valid && (!fresh || timing.not_enforced);
    ConstraintTiming { not_valid, ..timing }
}

impl Ddl<'_> {
    /// Adds a constraint to a table. `fresh`: the table has no rows yet.
    ///
    /// # Errors
    /// `42710`, `42P16`, `42830`, `42703`; `23505`, `23514`, `23503` when rows violate it; I/O.
    pub fn add_constraint(&mut self, oid: Oid, c: &TableConstraint, fresh: bool) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let Some(table) = state.catalog.table(&txn, oid)? else {
            bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist");
        };
        let is_not_null = matches!(c.kind, TableConstraintKind::NotNull(_));
        if let Some(name) = c.name.as_ref().filter(|_| !is_not_null) {
            let key = [("conrelid", Datum::Oid(oid)), ("conname", Datum::text(name))];
            let makes_index = matches!(
                &c.kind,
                TableConstraintKind::PrimaryKey { .. } | TableConstraintKind::Unique { .. }
            );
            if makes_index && state.catalog.relation_oid(&txn, table.namespace, name)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
            }
            if !state.catalog.rows(&txn).find("pg_constraint", &key)?.is_empty() {
                if fresh && matches!(c.kind, TableConstraintKind::Check(_)) {
                    bail!(DUPLICATE_OBJECT, "check constraint \"{name}\" already exists");
                }
                bail!(
                    DUPLICATE_OBJECT,
                    "constraint \"{name}\" for relation \"{}\" already exists",
                    table.name
                );
            }
        }
        drop(txn);
        match &c.kind {
            TableConstraintKind::Check(expr) => self.add_check(&table, c, expr, fresh),
            // A new table has been made with it.
            TableConstraintKind::NotNull(_) if fresh => Ok(()),
            TableConstraintKind::NotNull(column) => self.add_not_null(&table, c, column),
            TableConstraintKind::PrimaryKey { columns, options } => {
                super::key_constraint::check_first_primary(&table)?;
                for column in columns {
                    let number = match table.column(column) {
                        None if !fresh => bail!(
                            UNDEFINED_COLUMN,
                            "column \"{column}\" of relation \"{}\" does not exist",
                            table.name
                        ),
                        _ => super::key_constraint::column_number(&table, column)?,
                    };
                    if super::virtual_columns::is_asked(&table, number, None) {
                        return Err(super::virtual_columns::no_key(true));
                    }
                    self.make_key_column(&table, number)?;
                }
                self.add_key(&table, c, columns, options, true)
            }
            TableConstraintKind::Unique { columns, options } => {
                self.add_key(&table, c, columns, options, false)
            }
            TableConstraintKind::UsingIndex { primary, index } => {
                if *primary {
                    super::key_constraint::check_first_primary(&table)?;
                }
                self.key_using_index(&table, c, *primary, index)
            }
            TableConstraintKind::ForeignKey { columns, references } => {
                self.add_foreign_key(&table, c, columns, references, fresh)
            }
        }
    }

    fn add_check(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        expr: &crate::parse::ast::Expr,
        fresh: bool,
    ) -> Result<()> {
        let state = self.state();
        let env = self.session.env().as_ref();
        let analysed = analyse::analyse_check(expr, table, &self.source, state, env)?;
        let mut columns = std::collections::BTreeSet::new();
        analysed.walk(&mut |e| {
            if let expr::Expr::Var { column, .. } = e {
                columns.insert(*column);
            }
        });
        let columns: Vec<i32> = columns.into_iter().collect();
        let name = match &c.name {
            Some(name) => name.clone(),
            None => {
                let part = match columns[..] {
                    [one] => usize::try_from(one - 1)
                        .ok()
                        .and_then(|i| table.columns.get(i))
                        .map_or("", |c| c.name.as_str()),
                    _ => "",
                };
                super::table::choose_name(state, &table.name, part, "check", table.namespace)?
            }
        };
        if !fresh && !c.timing.not_valid {
            self.verify_check(table, &name, &analysed)?;
        }
        let state = self.state();
        let oid = new_oid(state, "pg_constraint")?;
        let timing = validity(c.timing, fresh);
        let row = constraint_row(table, oid, &name, b'c', timing)
            .set("conkey", int2_array(&columns))
            .text("conbin", &store_expr(&analysed)?);
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        relation::update_class(state, table.oid, |row| {
            let checks = i16::try_from(row.int("relchecks") + 1).unwrap_or(i16::MAX);
            row.set("relchecks", Datum::Int2(checks));
        })?;
        let object = Object::of("pg_constraint", oid);
        for column in &columns {
            depend::record(state, object, Object::column(table.oid, *column), Kind::Auto)?;
        }
        if columns.is_empty() {
            depend::record(state, object, Object::relation(table.oid), Kind::Auto)?;
        }
        depend::record_expr(state, object, Oid::INVALID, &analysed, Kind::Auto)
    }

    /// Looks for a row that has NULL in a column.
    pub(super) fn verify_not_null(&mut self, table: &Arc<Table>, number: i32) -> Result<()> {
        let at = usize::try_from(number - 1).unwrap_or(0);
        let column = &table.columns[at].name;
        let name = crate::system::names::relation_name(self.state(), table);
        let quoted = crate::system::names::quote_identifier(column);
        let sql = format!("SELECT 1 FROM ONLY {name} WHERE {quoted} IS NULL LIMIT 1");
        if !self.session.internal_query(&sql, &[])?.is_empty() {
            return Err(SqlError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!("column \"{column}\" of relation \"{}\" contains null values", table.name),
            )
            .table(&table.namespace_name, &table.name)
            .column(column)
            .into());
        }
        Ok(())
    }

    /// Looks for a row that violates a check.
    pub(super) fn verify_check(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        check: &expr::Expr,
    ) -> Result<()> {
        let relation = crate::system::names::relation_name(self.state(), table);
        let text = relation::expr_text(check, table, self.session.env().as_ref())?;
        let sql = format!("SELECT 1 FROM ONLY {relation} WHERE NOT ({text}) LIMIT 1");
        if !self.session.internal_query(&sql, &[])?.is_empty() {
            return Err(SqlError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                    table.name
                ),
            )
            .table(&table.namespace_name, &table.name)
            .constraint(name)
            .into());
        }
        Ok(())
    }
}

/// Removes a constraint's row (its index, if it has one, depends on it and goes first).
///
/// # Errors
/// I/O.
pub fn remove(state: &SessionState, oid: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for row in rows.find("pg_constraint", &[("oid", Datum::Oid(oid))])? {
        let (table, referenced) = (row.oid("conrelid"), row.oid("confrelid"));
        let is_check = row.char("contype") == b'c';
        rows.delete(&row)?;
        if row.oid("contypid").is_valid() {
            super::domains::constraint_gone(state, &row)?;
            continue;
        }
        if is_check {
            relation::update_class(state, table, |row| {
                let checks = i16::try_from(row.int("relchecks") - 1).unwrap_or(0).max(0);
                row.set("relchecks", Datum::Int2(checks));
            })?;
        }
        if row.char("contype") == b'n' {
            for number in row.ints("conkey") {
                relation::update_attribute(state, table, number, |row| {
                    row.set("attnotnull", Datum::Bool(false));
                })?;
            }
        }
        state.catalog.changed_alone(table);
        if referenced.is_valid() {
            state.catalog.changed_alone(referenced);
        }
    }
    Ok(())
}
