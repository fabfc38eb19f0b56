//! SET CONSTRAINTS, and small things.

use super::Ddl;
use crate::parse::ast::ObjectName;
use base::{Oid, Result, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::Row;
use types::Datum;

impl Ddl<'_> {
    /// SET CONSTRAINTS
    ///
    /// # Errors
    /// `42704`, `42809`; `23503` when a check that is no longer put off fails.
    pub fn set_constraints(&mut self, names: &[ObjectName], deferred: bool) -> Result<()> {
        if !self.session.in_block() {
            let mut notice = crate::client::Notice::new(
                crate::client::Severity::Warning,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            notice.body.state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
            self.client.notice(&notice)?;
        }
        let state = self.state();
        let mut chosen: Vec<Oid> = Vec::new();
        for name in names {
            for row in self.constraints_called(name)? {
                if row.bool("condeferrable") {
                    chosen.push(row.oid("oid"));
                } else if deferred {
                    bail!(WRONG_OBJECT_TYPE, "constraint \"{}\" is not deferrable", name.name);
                }
            }
        }
        {
            let mut set = state.deferred.borrow_mut();
            if names.is_empty() {
                set.by_constraint.clear();
                set.all = Some(deferred);
            } else {
                set.by_constraint.extend(chosen.iter().map(|oid| (*oid, deferred)));
            }
        }
        if deferred {
            return Ok(());
        }
        self.session.run_queued_checks(&|oid| names.is_empty() || chosen.contains(&oid))
    }

    /// The constraints of a name: those of its schema, or of the first one of the search path that has any.
    fn constraints_called(&self, name: &ObjectName) -> Result<Vec<Row>> {
        let state = self.state();
        let schemas = match &name.schema {
            None => state.search_schemas()?.into_iter().map(|(_, oid)| oid).collect(),
            Some(schema) => match state.schema_by_name(schema)? {
                Some(oid) => vec![oid],
                None => bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist"),
            },
        };
        let txn = state.txn()?;
        let key = [("conname", Datum::text(&name.name))];
        let mut found = state.catalog.rows(&txn).find("pg_constraint", &key)?;
        let in_schema = |row: &Row, oid: &Oid| row.oid("connamespace") == *oid;
        let Some(first) = schemas.iter().find(|s| found.iter().any(|row| in_schema(row, s))) else {
            bail!(UNDEFINED_OBJECT, "constraint \"{}\" does not exist", name.name)
        };
        found.retain(|row| in_schema(row, first));
        Ok(found)
    }
}
