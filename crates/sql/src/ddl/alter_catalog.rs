//! ALTER TABLE actions that change catalogs only.

use super::alter::column_of;
use super::{Ddl, relation};
use crate::parse::utility::{ConstraintTiming, UtilityOption};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail, err};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, Table};
use engine::catalog::rows::options_array;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// The row of a table's constraint.
    pub(super) fn constraint_row(
        &self,
        table: &Table,
        name: &str,
    ) -> Result<Option<engine::catalog::rows::Row>> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(name))];
        Ok(state.catalog.rows(&txn).find("pg_constraint", &key)?.into_iter().next())
    }

    pub(super) fn alter_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        timing: Option<ConstraintTiming>,
        inherit: Option<bool>,
    ) -> Result<()> {
        let Some(mut row) = self.constraint_row(table, name)? else {
            bail!(
                UNDEFINED_OBJECT,
                "constraint \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        let is_not = |what: &str| {
            let text =
                format!("constraint \"{name}\" of relation \"{}\" is not a {what}", table.name);
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text).into())
        };
        if timing.is_some() && row.char("contype") != b'f' {
            return is_not("foreign key constraint");
        }
        if inherit.is_some() && row.char("contype") != b'n' {
            return is_not("not-null constraint");
        }
        if let Some(inherit) = inherit {
            return self.set_inheritable(row, inherit);
        }
        let Some(timing) = timing else { return Ok(()) };
        row.set("condeferrable", Datum::Bool(timing.deferrable));
        row.set("condeferred", Datum::Bool(timing.initially_deferred));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        let waits = (timing.deferrable, timing.initially_deferred);
        super::triggers::retime(state, row.oid("oid"), waits)?;
        state.catalog.changed(table.oid);
        state.catalog.changed(row.oid("confrelid"));
        Ok(())
    }

    /// ALTER CONSTRAINT … [NOT] ENFORCED
    ///
    /// # Errors
    /// `42809`, `23503`; I/O.
    pub(super) fn alter_enforced(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        enforced: bool,
    ) -> Result<()> {
        let Some(key) = table.foreign_keys.iter().find(|k| k.name == name) else {
            bail!(
                WRONG_OBJECT_TYPE,
                "cannot alter enforceability of constraint \"{name}\" of relation \"{}\"",
                table.name
            );
        };
        if key.enforced == enforced {
            return Ok(());
        }
        // Who writes the other table does so by the constraints that it has: from here on he asks this one, too.
        if key.referenced_table != table.oid {
            let mode =
                if enforced { LockMode::ShareRowExclusive } else { LockMode::AccessExclusive };
            crate::relations::lock(self.state(), key.referenced_table, mode)?;
            if !enforced {
                self.check_not_in_use(&*self.described(key.referenced_table)?, "DROP TRIGGER")?;
            }
        }
        let Some(mut row) = self.constraint_row(table, name)? else { return Ok(()) };
        row.set("conenforced", Datum::Bool(enforced));
        row.set("convalidated", Datum::Bool(enforced));
        let timing = (row.bool("condeferrable"), row.bool("condeferred"));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        state.catalog.changed_alone(table.oid);
        state.catalog.changed_alone(key.referenced_table);
        if !enforced {
            return super::triggers::remove(state, key.oid);
        }
        let triggers = super::triggers::Key {
            constraint: key.oid,
            table: table.oid,
            referenced: key.referenced_table,
            index: key.referenced_index,
            on_delete: key.on_delete,
            on_update: key.on_update,
            timing,
        };
        super::triggers::of_foreign_key(state, &triggers)?;
        drop(txn);
        let referenced = self.described(key.referenced_table)?;
        let (from, to) = (&key.columns, &key.referenced_columns);
        self.verify_foreign_key(table, &referenced, name, from, to, key.match_full)
    }

    pub(super) fn set_statistics(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        target: Option<i32>,
    ) -> Result<()> {
        let number = statistics_column(self.state(), table, name)?;
        if table.columns.iter().any(|c| c.number == number && c.is_virtual()) {
            let text = format!("cannot alter statistics on virtual generated column \"{name}\"");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
        }
        let target = target.filter(|t| *t != -1);
        if let Some(t) = target
            && t < 0
        {
            bail!(INVALID_PARAMETER_VALUE, "statistics target {t} is too low");
        }
        if target.is_some_and(|t| t > 10_000) {
            let mut notice = crate::client::Notice::new(
                crate::client::Severity::Warning,
                "lowering statistics target to 10000",
            );
            notice.body.state = SqlState::INVALID_PARAMETER_VALUE;
            self.client.notice(&notice)?;
        }
        let value = target
            .map_or(Datum::Null, |t| Datum::Int2(i16::try_from(t.min(10_000)).unwrap_or(10_000)));
        relation::update_attribute(self.state(), table.oid, number, |row| {
            row.set("attstattarget", value);
        })
    }

    pub(super) fn column_options(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        set: Option<&[UtilityOption]>,
        reset: &[String],
    ) -> Result<()> {
        let number = column_of(table, name)?.number;
        let set = super::storage_options::column_options(set.unwrap_or(&[]))?;
        relation::update_attribute(self.state(), table.oid, number, |row| {
            let mut options = row.options("attoptions");
            options.extend(set);
            options.retain(|n| !reset.iter().any(|r| r == n));
            row.set("attoptions", options_array(&options));
        })
    }

    pub(super) fn mark_clustered(&mut self, table: &Arc<Table>, index: Option<&str>) -> Result<()> {
        if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView) {
            let action = if index.is_some() { "CLUSTER ON" } else { "SET WITHOUT CLUSTER" };
            let text =
                format!("ALTER action {action} cannot be performed on relation \"{}\"", table.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .detail(format!(
                    "This operation is not supported for {}.",
                    crate::acl::nouns(table.kind)
                ))
                .into());
        }
        let wanted = match index {
            None => Oid::INVALID,
            Some(name) => super::cluster::index_to_cluster_on(self.state(), table, name)?.oid,
        };
        super::cluster::note_clustered(self.state(), table.oid, wanted)
    }
}

/// The column whose statistics target is to change: of a table by its name, of an index an expression's by its number.
fn statistics_column(state: &SessionState, table: &Table, name: &str) -> Result<i32> {
    let Ok(number) = name.parse::<i32>() else { return Ok(column_of(table, name)?.number) };
    if table.kind != RelationKind::Index {
        bail!(FEATURE_NOT_SUPPORTED, "cannot refer to non-index column by number");
    }
    let described = crate::system::describe::index(state, table.oid)?;
    let columns = described.as_ref().map_or(&[][..], |(_, index)| &index.columns);
    let column = usize::try_from(number - 1).ok().and_then(|n| columns.get(n).map(|c| (n, c)));
    let Some((n, column)) = column else {
        bail!(
            UNDEFINED_COLUMN,
            "column number {number} of relation \"{}\" does not exist",
            table.name
        );
    };
    if column.expr.is_some() {
        return Ok(number);
    }
    let keys = described.as_ref().map_or(0, |(_, index)| index.key_columns);
    if n >= keys {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "cannot alter statistics on included column \"{}\" of index \"{}\"",
            column.name,
            table.name
        );
    }
    let mut error = err!(
        FEATURE_NOT_SUPPORTED,
        "cannot alter statistics on non-expression column \"{}\" of index \"{}\"",
        column.name,
        table.name
    )
    .to_sql_error();
    error.hint = Some("Alter statistics on table column instead.".to_owned());
    Err(base::Error::Sql(Box::new(error)))
}
