//! LOCK TABLE.
//!
//! A view is locked with the tables and views that it reads, and theirs. Whether one may is asked of whoever reads them: the view's
//! owner, or its user, if it is `security_invoker`. Materialized views within are passed over, as in PostgreSQL.

use super::Session;
use super::state::SessionState;
use crate::acl;
use crate::parse::ast::ObjectName;
use crate::parse::utility::LockMode as Asked;
use crate::query::{Query, RteKind};
use base::{Oid, Result, SqlError, SqlState, bail, err};
use engine::catalog::model::{CatalogView as _, RelationKind, Table};
use txn::{LockMode, LockOutcome, Wait};

/// How relations are locked.
#[derive(Clone, Copy)]
struct Locking {
    mode: LockMode,
    wait: Wait,
    /// Privileges of which one is enough.
    any_of: u32,
}

impl Session {
    pub(super) fn lock_table(
        &mut self,
        name: &ObjectName,
        mode: Asked,
        nowait: bool,
    ) -> Result<()> {
        let state = &self.state;
        let how = Locking::new(mode, nowait);
        let find = || {
            let Some(table) = state.table_by_name(name.schema.as_deref(), &name.name)? else {
                bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist");
            };
            check_kind(&table)?;
            how.check_may(state, &table, state.current_user.borrow().oid)?;
            Ok(table)
        };
        let Some(table) = crate::relations::lock_found(state, how.mode, how.wait, find)? else {
            return Err(not_available(&name.name));
        };
        match table.kind {
            RelationKind::View => how.lock_within(state, &table, &mut vec![table.oid]),
            _ => Ok(()),
        }
    }
}

impl Locking {
    fn new(mode: Asked, nowait: bool) -> Locking {
        let mode = match mode {
            Asked::AccessShare => LockMode::AccessShare,
            Asked::RowShare => LockMode::RowShare,
            Asked::RowExclusive => LockMode::RowExclusive,
            Asked::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
            Asked::Share => LockMode::Share,
            Asked::ShareRowExclusive => LockMode::ShareRowExclusive,
            Asked::Exclusive => LockMode::Exclusive,
            Asked::AccessExclusive => LockMode::AccessExclusive,
        };
        let mut any_of = acl::MAINTAIN | acl::UPDATE | acl::DELETE | acl::TRUNCATE;
        if mode == LockMode::AccessShare {
            any_of |= acl::SELECT;
        }
        if mode <= LockMode::RowExclusive {
            any_of |= acl::INSERT;
        }
        Locking { mode, wait: if nowait { Wait::NoWait } else { Wait::Block }, any_of }
    }

    fn check_may(&self, state: &SessionState, table: &Table, role: Oid) -> Result<()> {
        let has = acl::table_privileges(state, role, table)?;
        if has & self.any_of == 0 {
            let noun = acl::noun(table.kind);
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {noun} {}", table.name);
        }
        Ok(())
    }

    /// Locks what a view reads. `around`: this view and those that it is in, which may go round in circles.
    fn lock_within(&self, state: &SessionState, view: &Table, around: &mut Vec<Oid>) -> Result<()> {
        let reader = match crate::updatable::is_invoker(view) {
            true => state.current_user.borrow().oid,
            false => view.owner,
        };
        let Some(text) = &view.view_query else { return Ok(()) };
        let query: Query = engine::catalog::stored::from_text(text)
            .map_err(|e| err!(INTERNAL_ERROR, "view \"{}\" has a broken query: {e}", view.name))?;
        let mut read = Vec::new();
        relations_of(&query, &mut read);
        for oid in read {
            let Some(table) = state.table_by_oid(oid)? else { continue };
            let is_view = table.kind == RelationKind::View;
            if !(is_view || table.kind == RelationKind::Table) || around.contains(&oid) {
                continue;
            }
            self.check_may(state, &table, reader)?;
            let tag = crate::relations::lock_tag(state, oid);
            if state.txn()?.lock(tag, self.mode, self.wait)? == LockOutcome::NotAvailable {
                return Err(not_available(&table.name));
            }
            if !is_view {
                continue;
            }
            // It may be another query by now.
            let Some(table) = state.table_by_oid(oid)? else { continue };
            around.push(oid);
            self.lock_within(state, &table, around)?;
            around.pop();
        }
        Ok(())
    }
}

/// What the query reads, views as themselves, in the order in which it names them.
fn relations_of(query: &Query, read: &mut Vec<Oid>) {
    for entry in &query.range_table {
        match &entry.kind {
            RteKind::Relation { oid, .. } => read.push(Oid(*oid)),
            RteKind::Subquery { query, view: 0 } => relations_of(query, read),
            RteKind::Subquery { view, .. } => read.push(Oid(*view)),
            _ => {}
        }
    }
    query.ctes.iter().for_each(|cte| relations_of(&cte.query, read));
    query.sub_selects.iter().for_each(|sub| relations_of(sub, read));
}

fn check_kind(table: &Table) -> Result<()> {
    let what = match table.kind {
        RelationKind::Table | RelationKind::View | RelationKind::PartitionedTable => return Ok(()),
        RelationKind::Index | RelationKind::PartitionedIndex => "indexes",
        RelationKind::Sequence => "sequences",
        RelationKind::Toast => "TOAST tables",
        RelationKind::MaterializedView => "materialized views",
        RelationKind::Composite => "composite types",
    };
    let message = format!("cannot lock relation \"{}\"", table.name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail(format!("This operation is not supported for {what}."))
        .into())
}

fn not_available(name: &str) -> base::Error {
    err!(LOCK_NOT_AVAILABLE, "could not obtain lock on relation \"{name}\"")
}
