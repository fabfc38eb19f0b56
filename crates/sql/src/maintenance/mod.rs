//! VACUUM, ANALYZE, and autovacuum.
//!
//! # Where to look
//! [`options`]: what may be asked for. `vacuum` and `analyze`: one table. [`autovacuum`]: tables in need.
//! [`progress`]: what runs now. [`explain`]: what would be done.
//!
//! # Invariants
//! Each table is vacuumed in a transaction of its own, which has no XID and whose snapshots hold nobody's
//! clean-up back; what `pg_class` says of its size and age is written in place.

pub(crate) mod analyze;
mod analyze_extended;
mod analyze_index;
pub mod autovacuum;
pub mod commands;
#[cfg(test)]
mod count_tests;
#[cfg(test)]
mod due_tests;
pub mod explain;
#[cfg(test)]
mod foresight_tests;
mod freezing;
mod full_catalog;
mod index_keys;
mod known_tables;
pub mod options;
pub mod progress;
#[cfg(test)]
mod temp_schema_tests;
#[cfg(test)]
mod tests;
pub mod throttle;
mod vacuum;
#[cfg(test)]
mod yield_tests;

pub use self::vacuum::Target;

use crate::acl;
use crate::client::{Client, Notice, Severity};
use crate::parse::ast::ObjectName;
use crate::parse::utility::Vacuum;
use crate::session::{Session, SessionState};
use base::{Oid, Result, SqlState, Xid, bail, err};
use engine::catalog::model::{CatalogView, Table};
use options::Options;
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, LockTag, Wait};
use types::Datum;

impl Session {
    /// VACUUM and ANALYZE; returns the tag.
    ///
    /// # Errors
    /// `25001`, `42601`, `42P01`; what the tables meet.
    pub(crate) fn vacuum_statement(
        &mut self,
        statement: &Vacuum,
        source: &Arc<str>,
        client: &mut dyn Client,
    ) -> Result<String> {
        let options = Options::of(statement, source)?;
        let tag = if statement.vacuum { "VACUUM" } else { "ANALYZE" };
        self.run_vacuum(tag, statement, &options, client)?;
        Ok(tag.to_owned())
    }

    /// VACUUM and ANALYZE with their options; `what` names the statement in errors.
    fn run_vacuum(
        &mut self,
        what: &str,
        statement: &Vacuum,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.unmeasured.set(true);
        if options.vacuum {
            self.prevent_transaction(what)?;
        }
        if options.only_database_stats {
            return self.update_frozen().map(|_| ());
        }
        let targets = self.targets(statement, options.skip_locked, client)?;
        let own = options.vacuum || !(self.in_block() || targets.len() <= 1);
        if own {
            self.end_own()?;
        }
        let mut each = |session: &mut Session| -> Result<()> {
            for target in &targets {
                let mut there = true;
                if options.vacuum {
                    there = session.vacuum_table(target, options, client)?;
                }
                if options.analyze && there {
                    session.analyze_table(target, options, own, client)?;
                }
            }
            Ok(())
        };
        if own {
            self.synced_at_the_end(each)?;
        } else {
            each(self)?;
        }
        if options.vacuum && !options.skip_database_stats {
            self.update_frozen()?;
        }
        if own {
            self.begin_own()?;
        }
        Ok(())
    }

    /// The relations named, or all that hold rows; those that the user has no business with are left out with a warning, before
    /// their locks are asked for.
    fn targets(
        &mut self,
        statement: &Vacuum,
        skip_locked: bool,
        client: &mut dyn Client,
    ) -> Result<Vec<Target>> {
        let state = Rc::clone(self.state());
        let verb = if statement.vacuum { "vacuum" } else { "analyze" };
        let mut warn = |state: SqlState, text: String| {
            let mut notice = Notice::new(Severity::Warning, text);
            notice.body.state = state;
            client.notice(&notice)
        };
        let denied = |warn: &mut dyn FnMut(SqlState, String) -> Result<()>, name: &str| {
            let text = format!("permission denied to {verb} \"{name}\", skipping it");
            warn(SqlState::WARNING, text)
        };
        if statement.tables.is_empty() {
            let txn = state.txn()?;
            let mut rows = state.catalog.rows(&txn).scan("pg_class")?;
            rows.sort_by_key(|r| r.oid("oid"));
            let mut targets = Vec::new();
            for row in rows.iter().filter(|r| matches!(r.char("relkind"), b'r' | b'm')) {
                let (oid, owner) = (row.oid("oid"), row.oid("relowner"));
                let may = state.is_superuser()
                    || acl::may_vacuum(&state, oid, owner, row.texts("relacl").as_deref())?;
                if may {
                    targets.push(Target { oid, name: String::new(), columns: Vec::new() });
                } else {
                    denied(&mut warn, row.text("relname"))?;
                }
            }
            return Ok(targets);
        }
        let mut targets = Vec::new();
        for table in &statement.tables {
            let Some(found) = look_up(&state, &table.name, skip_locked)? else {
                let name = &table.name.name;
                let text = format!("skipping {verb} of \"{name}\" --- lock not available");
                warn(SqlState::LOCK_NOT_AVAILABLE, text)?;
                continue;
            };
            let (oid, owner) = (found.oid, found.owner);
            if !state.is_superuser() && !acl::may_vacuum(&state, oid, owner, found.acl.as_deref())?
            {
                denied(&mut warn, &found.name)?;
                continue;
            }
            targets.push(Target {
                oid: found.oid,
                name: table.name.name.clone(),
                columns: table.columns.clone(),
            });
        }
        Ok(targets)
    }

    /// `datfrozenxid` of this database from its tables' ages; the commit log is cut at the oldest. True if it was as old as its oldest
    /// table before: only what changes `pg_class` can change that.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn update_frozen(&mut self) -> Result<bool> {
        let own = !self.in_block();
        if own {
            self.begin_own()?;
        }
        let state = Rc::clone(self.state());
        let result = update_frozen(&state);
        if own {
            match &result {
                Ok(_) => self.end_own()?,
                Err(_) => self.abort_own(),
            }
        }
        result
    }
}

/// The relation of a name, as it is when nobody drops, makes or renames it; None: somebody does, and is not to be waited for.
fn look_up(
    state: &SessionState,
    name: &ObjectName,
    skip_locked: bool,
) -> Result<Option<Arc<Table>>> {
    crate::ddl::check_catalog(state, name)?;
    let wait = if skip_locked { Wait::NoWait } else { Wait::Block };
    let found = crate::relations::lock_found(state, LockMode::AccessShare, wait, || {
        if let Some(schema) = name.schema.as_deref()
            && state.schema_by_name(schema)?.is_none()
        {
            bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
        }
        match state.table_by_name(name.schema.as_deref(), &name.name)? {
            Some(found) => Ok(found),
            None => Err(err!(UNDEFINED_TABLE, "relation \"{name}\" does not exist")),
        }
    })?;
    if let Some(found) = &found {
        // Its own lock is asked for later: it may be long until its turn comes.
        state.txn()?.unlock(crate::relations::lock_tag(state, found.oid), LockMode::AccessShare);
    }
    Ok(found)
}

fn update_frozen(state: &SessionState) -> Result<bool> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    // Tables that others are making now are no older than this.
    let mut oldest = state.oldest_xmin();
    let mut as_the_oldest = false;
    let me = state.database.oid;
    // Two at once could set it back.
    let tag = LockTag::DatabaseFrozenIds { database: me };
    txn.lock(tag, LockMode::Exclusive, Wait::Block)?;
    rows.announce_write(engine::catalog::defs::by_name("pg_database"))?;
    let mut databases = rows.scan("pg_database")?;
    let known = databases.iter().find(|row| row.oid("oid") == me);
    let known = known.map_or(Xid::INVALID, |row| row.xid8("datfrozenxid8"));
    // Every VACUUM does this; of a thousand tables, each must not decode a thousand whole rows. And one table as old as the
    // database was before says that nothing has changed.
    rows.scan_columns("pg_class", &["relkind", "relfrozenxid8"], &mut |row| {
        if let [Datum::Char(b'r' | b'm' | b't'), Datum::Xid8(frozen)] = row
            && Xid(*frozen).is_normal()
        {
            oldest = oldest.min(Xid(*frozen));
            as_the_oldest |= Xid(*frozen) <= known;
        }
        Ok(oldest > known)
    })?;
    // Who changes the row meanwhile is waited for, and it is the new one that is written over then.
    while let Some(row) = databases.iter_mut().find(|row| row.oid("oid") == me)
        && oldest > row.xid8("datfrozenxid8")
    {
        row.set("datfrozenxid", Datum::Oid(Oid(crate::ddl::relation::low_half(oldest))));
        row.set("datfrozenxid8", Datum::Xid8(oldest.0));
        if rows.update_in_place(row)? {
            break;
        }
        databases = rows.scan("pg_database")?;
    }
    let least = databases.iter().map(|row| row.xid8("datfrozenxid8")).fold(oldest, Xid::min);
    let txns = txn.manager();
    if least > txns.oldest_clog_xid() && least > Xid::FIRST_NORMAL {
        txns.truncate_clog(least)?;
    }
    Ok(as_the_oldest)
}
