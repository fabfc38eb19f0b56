//! PRIMARY KEY and UNIQUE: constraints that are indexes.

use super::constraint::constraint_row;
use super::depend::{self, Kind, Object};
use super::index::{NewIndex, opclass};
use super::relation::IndexColumnRow;
use super::{Ddl, new_oid, relation};
use crate::parse::utility::{ConstraintTiming, TableConstraint, UniqueOptions};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Index, Table};
use engine::catalog::rows::int2_array;
use std::sync::Arc;
use types::Datum;

impl Ddl<'_> {
    pub(super) fn add_key(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        columns: &[String],
        options: &UniqueOptions,
        primary: bool,
    ) -> Result<()> {
        super::check_tablespace(options.tablespace.as_deref())?;
        let mut rows = Vec::new();
        for name in columns.iter().chain(&options.include) {
            let number = column_number(table, name)?;
            let at = usize::try_from(number - 1).unwrap_or(0);
            if rows.len() < columns.len()
                && rows.iter().any(|r: &IndexColumnRow| r.column == number)
            {
                bail!(
                    DUPLICATE_COLUMN,
                    "column \"{name}\" appears twice in {} constraint",
                    if primary { "primary key" } else { "unique" }
                );
            }
            if table.columns[at].is_virtual() {
                return Err(super::virtual_columns::no_key(primary));
            }
            let ty = table.columns[at].ty;
            // What is only carried along need not be comparable.
            let class = if rows.len() < columns.len() { opclass(ty, None)? } else { Oid::INVALID };
            let mut row = IndexColumnRow::simple(name, number, ty, class);
            if rows.len() < columns.len() {
                row.collation = table.columns[at].collation;
            }
            rows.push(row);
        }
        let new = NewIndex {
            concurrently: false,
            name: c.name.clone(),
            unique: true,
            primary,
            nulls_not_distinct: options.nulls_not_distinct,
            deferrable: c.timing.deferrable,
            columns: rows,
            key_columns: columns.len(),
            predicate: None,
            options: super::storage_options::index_options(&options.options)?,
            suffix: if primary { "pkey" } else { "key" },
        };
        super::index::check_may_make_index(self.state(), table)?;
        let (index, name) = self.make_index(table, &new)?;
        let numbers: Vec<i32> = new.columns.iter().map(|c| c.column).collect();
        let (keys, carried) = numbers.split_at(columns.len());
        self.key_constraint(table, index, &name, primary, (keys, carried), c.timing)
    }

    /// Notes the constraint that `index` is. `columns`: by number, those of the key, and those that are only carried along.
    pub(super) fn key_constraint(
        &mut self,
        table: &Arc<Table>,
        index: Oid,
        name: &str,
        primary: bool,
        columns: (&[i32], &[i32]),
        timing: ConstraintTiming,
    ) -> Result<()> {
        let state = self.state();
        let oid = new_oid(state, "pg_constraint")?;
        let row = constraint_row(table, oid, name, if primary { b'p' } else { b'u' }, timing)
            .oid("conindid", index)
            .set("conkey", int2_array(columns.0));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        let object = Object::of("pg_constraint", oid);
        super::drop::forget_dependencies(state, Object::relation(index))?;
        depend::record(state, Object::relation(index), object, Kind::Internal)?;
        for number in columns.0.iter().chain(columns.1) {
            depend::record(state, object, Object::column(table.oid, *number), Kind::Auto)?;
        }
        if timing.deferrable {
            let how = (primary, timing.initially_deferred);
            super::triggers::of_key(state, table.oid, (oid, index), how)?;
        }
        state.catalog.changed_alone(table.oid);
        Ok(())
    }

    /// An index that a constraint can be made of: whole, unique, over plain columns, and nobody's yet.
    fn check_can_be_key(&self, c: &TableConstraint, index: &Index) -> Result<()> {
        let name = &index.name;
        let at = |e: SqlError| Err(crate::parse::error_at(&self.source, e.into(), c.loc));
        let not_now =
            |text: String| at(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
        if index.constraint.is_some() {
            return not_now(format!("index \"{name}\" is already associated with a constraint"));
        }
        // What it does not hold may be there twice.
        if !index.valid {
            return not_now(format!("index \"{name}\" is not valid"));
        }
        let wrong = if !index.unique {
            format!("\"{name}\" is not a unique index")
        } else if index.columns.iter().any(|c| c.expr.is_some()) {
            format!("index \"{name}\" contains expressions")
        } else if index.predicate.is_some() {
            format!("\"{name}\" is a partial index")
        } else {
            return Ok(());
        };
        at(SqlError::new(SqlState::WRONG_OBJECT_TYPE, wrong)
            .detail("Cannot create a primary key or unique constraint using such an index."))
    }

    pub(super) fn key_using_index(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        primary: bool,
        index: &str,
    ) -> Result<()> {
        let Some(found) = table.indexes.iter().find(|i| i.name == index).cloned() else {
            bail!(UNDEFINED_OBJECT, "index \"{index}\" does not exist");
        };
        self.check_can_be_key(c, &found)?;
        let keys = &found.columns[..found.key_columns];
        // What a dump would make of the constraint has the default order.
        let other = keys.iter().position(|c| {
            let default = types::registry::default_btree_class(c.ty.oid).map(|d| d.oid);
            c.expr.is_none() && (c.descending || c.nulls_first || default != Some(c.opclass))
        });
        if let Some(other) = other {
            let message = format!(
                "index \"{index}\" column number {} does not have default sorting behavior",
                other + 1
            );
            let e = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .detail("Cannot create a primary key or unique constraint using such an index.");
            return Err(crate::parse::error_at(&self.source, e.into(), c.loc));
        }
        if primary && found.nulls_not_distinct {
            bail!(INVALID_TABLE_DEFINITION, "primary keys cannot use NULLS NOT DISTINCT indexes");
        }
        let numbers: Vec<i32> = found.columns.iter().map(|c| c.column).collect();
        let columns = numbers.split_at(found.key_columns);
        if primary {
            for column in columns.0 {
                self.make_key_column(table, *column)?;
            }
            set_primary(self.state(), found.oid)?;
        }
        if c.timing.deferrable {
            set_index(self.state(), found.oid, ("indimmediate", false))?;
        }
        let name = c.name.clone().unwrap_or_else(|| index.to_owned());
        if name != index {
            let state = self.state();
            if state.catalog.relation_oid(&*state.txn()?, table.namespace, &name)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
            }
            self.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!(
                    "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{index}\" to \"{name}\""
                ),
            )?;
            relation::update_class(self.state(), found.oid, |row| {
                row.set("relname", Datum::text(&name));
            })?;
        }
        self.key_constraint(table, found.oid, &name, primary, columns, c.timing)
    }
}

pub(super) fn check_first_primary(table: &Table) -> Result<()> {
    if table.primary_key().is_some() {
        bail!(
            INVALID_TABLE_DEFINITION,
            "multiple primary keys for table \"{}\" are not allowed",
            table.name
        );
    }
    Ok(())
}

fn set_primary(state: &SessionState, index: Oid) -> Result<()> {
    set_index(state, index, ("indisprimary", true))
}

/// Sets one thing that `pg_index` says of an index.
fn set_index(state: &SessionState, index: Oid, (column, is): (&str, bool)) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let found = rows.find("pg_index", &[("indexrelid", Datum::Oid(index))])?;
    if let Some(mut row) = found.into_iter().next() {
        row.set(column, Datum::Bool(is));
        rows.update(&row)?;
    }
    Ok(())
}

pub(super) fn column_number(table: &Table, name: &str) -> Result<i32> {
    match table.column(name) {
        Some(column) => Ok(column.number),
        None => bail!(UNDEFINED_COLUMN, "column \"{name}\" named in key does not exist"),
    }
}
