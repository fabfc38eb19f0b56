//! ALTER TABLE actions that change catalogs only.

use super::alter::column_of;
use super::{Ddl, relation};
use crate::parse::utility::{ConstraintTiming, UtilityOption};
use base::{Oid, Result, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, Table};
use engine::catalog::rows::options_array;
use std::sync::Arc;
use types::Datum;

impl Ddl<'_> {
    /// The row of a table's constraint.
    fn constraint_row(
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
        timing: ConstraintTiming,
    ) -> Result<()> {
        let Some(mut row) = self.constraint_row(table, name)? else {
            bail!(
                UNDEFINED_OBJECT,
                "constraint \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        if row.char("contype") != b'f' {
            bail!(
                WRONG_OBJECT_TYPE,
                "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                table.name
            );
        }
        row.set("condeferrable", Datum::Bool(timing.deferrable || timing.initially_deferred));
        row.set("condeferred", Datum::Bool(timing.initially_deferred));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        state.catalog.changed(table.oid);
        state.catalog.changed(row.oid("confrelid"));
        Ok(())
    }

    pub(super) fn set_statistics(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        target: Option<i32>,
    ) -> Result<()> {
        let number = match (table.kind, name.parse::<i32>()) {
            (RelationKind::Index, Ok(number)) => number,
            _ => column_of(table, name)?.number,
        };
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
        for option in set.unwrap_or(&[]) {
            if !matches!(option.name.as_str(), "n_distinct" | "n_distinct_inherited") {
                bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{}\"", option.name);
            }
        }
        relation::update_attribute(self.state(), table.oid, number, |row| {
            let mut options = row.options("attoptions");
            for option in set.unwrap_or(&[]) {
                options.insert(option.name.clone(), option.storage_text());
            }
            options.retain(|n, _| !reset.contains(n));
            row.set("attoptions", options_array(&options));
        })
    }

    pub(super) fn mark_clustered(&mut self, table: &Arc<Table>, index: Option<&str>) -> Result<()> {
        let wanted = match index {
            None => Oid::INVALID,
            Some(name) => match table.indexes.iter().find(|i| i.name == name) {
                Some(index) => index.oid,
                None => bail!(
                    UNDEFINED_OBJECT,
                    "index \"{name}\" for table \"{}\" does not exist",
                    table.name
                ),
            },
        };
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for mut row in rows.find("pg_index", &[("indrelid", Datum::Oid(table.oid))])? {
            let mark = row.oid("indexrelid") == wanted;
            if row.bool("indisclustered") != mark {
                row.set("indisclustered", Datum::Bool(mark));
                rows.update(&row)?;
            }
        }
        Ok(())
    }
}
