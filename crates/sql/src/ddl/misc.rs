//! SET CONSTRAINTS, and small things.

use super::Ddl;
use crate::parse::ast::ObjectName;
use base::{Oid, Result, SqlState, bail};
use engine::catalog::load::RowSource;
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
            let txn = state.txn()?;
            let key = [("conname", Datum::text(&name.name))];
            let found = state.catalog.rows(&txn).find("pg_constraint", &key)?;
            if found.is_empty() {
                bail!(UNDEFINED_OBJECT, "constraint \"{name}\" does not exist");
            }
            for row in &found {
                if !row.bool("condeferrable") {
                    bail!(WRONG_OBJECT_TYPE, "constraint \"{name}\" is not deferrable");
                }
                chosen.push(row.oid("oid"));
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
}
