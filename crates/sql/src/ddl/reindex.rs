//! REINDEX.
//!
//! Indexes of system catalogs keep their files for good: see [`super::reindex_catalog`]. CONCURRENTLY
//! ([`super::reindex_concurrently`]) leaves them alone, in PostgreSQL too.

use super::depend::Object;
use super::reindex_catalog::catalog;
use super::reindex_concurrently::whose_toast;
use super::truncate::lock_and_look_again;
use super::{Ddl, rewrite};
use crate::client::{Notice, Severity};
use crate::maintenance::commands::{self, Command, create_index};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{Reindex, ReindexKind};
use crate::session::SessionState;
use base::{Oid, Result, SqlState, bail, err};
use engine::catalog::bootstrap::PG_CATALOG;
use engine::catalog::defs;
use engine::catalog::model::{CatalogView, Index, RelationKind, RelationPersistence, Table};
use std::sync::Arc;
use txn::LockMode;
use vacuum::UsageMeter;

/// What the statement asks for besides names.
#[derive(Clone, Copy)]
struct Options {
    verbose: bool,
    concurrently: bool,
    /// A tablespace was named.
    moves: bool,
}

impl Options {
    /// What the table is locked in at first.
    fn first_lock(self) -> LockMode {
        if self.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::Share }
    }

    /// What an index that is named is locked in at first.
    fn index_lock(self) -> LockMode {
        if self.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::AccessExclusive }
    }

    fn of(statement: &Reindex, source: &str) -> Result<Options> {
        let concurrently = statement.concurrently;
        let mut found = Options { verbose: false, concurrently, moves: false };
        for option in &statement.options {
            match option.name.as_str() {
                "verbose" => found.verbose = option.boolean()?,
                "concurrently" => found.concurrently = option.boolean()?,
                "tablespace" => {
                    let name = option.string()?;
                    found.moves = true;
                    super::check_tablespace(Some(&name))?;
                }
                other => {
                    let e = err!(SYNTAX_ERROR, "unrecognized REINDEX option \"{other}\"");
                    return Err(crate::parse::error_at(source, e, option.loc));
                }
            }
        }
        Ok(found)
    }
}

impl Ddl<'_> {
    /// REINDEX
    ///
    /// # Errors
    /// `42P01`, `42809`, `25001`, `42501`, `23505`; I/O.
    pub fn reindex(&mut self, statement: &Reindex) -> Result<()> {
        let options = Options::of(statement, &self.source)?;
        if options.concurrently {
            self.session.prevent_transaction("REINDEX CONCURRENTLY")?;
        }
        match (statement.kind, &statement.name) {
            (ReindexKind::Index, Some(name)) => self.reindex_index(name, options),
            (ReindexKind::Table, Some(name)) => self.reindex_all_of(name, options),
            (kind, name) => {
                self.reindex_many(kind, name.as_ref().map(|n| n.name.as_str()), options)
            }
        }
    }

    /// Fails unless the current user may maintain `table`; `named` is what was named.
    fn check_maintain(&self, table: &Table, named: &Table) -> Result<()> {
        if may_maintain(self.state(), table)? {
            return Ok(());
        }
        let noun = crate::acl::noun(named.kind);
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {noun} {}", named.name);
    }

    fn reindex_index(&mut self, name: &ObjectName, options: Options) -> Result<()> {
        if let Some((index, table)) = self.index_named(name, options)?
            && let Some(def) = catalog(table)
        {
            return self.reindex_catalog(def, Some(index), options.verbose).map(|_| ());
        }
        let (index, table) = loop {
            self.state().check_cancel()?;
            if let Some(locked) = self.lock_index(name, options)? {
                break locked;
            }
        };
        if options.concurrently && table.persistence != RelationPersistence::Temporary {
            let old = table.indexes.iter().find(|i| i.oid == index);
            if table.kind == RelationKind::Toast && old.is_some_and(|i| !i.valid) {
                bail!(FEATURE_NOT_SUPPORTED, "cannot reindex invalid index on TOAST table");
            }
            self.reindex_concurrently(table.oid, Some(index), options.verbose)?;
        } else {
            self.reindex_locked(table.oid, Some(index), options.verbose)?;
        }
        Ok(())
    }

    /// Locks the index that has the name, which who renames it locks alone, and before it its table. None: while one of them was waited for,
    /// another index got the name.
    fn lock_index(&self, name: &ObjectName, options: Options) -> Result<Option<(Oid, Arc<Table>)>> {
        let Some((index, table)) = self.index_named(name, options)? else { return Ok(None) };
        let state = self.state();
        self.stand_in_line(table, options)?;
        let locked = [(table, options.first_lock()), (index, options.index_lock())];
        for (oid, mode) in locked {
            crate::relations::lock(state, oid, mode)?;
        }
        if self.index_named(name, options)? == Some((index, table))
            && let Some(table) = state.table_by_oid(table)?
        {
            return Ok(Some((index, table)));
        }
        for (oid, mode) in locked {
            state.txn()?.unlock(crate::relations::lock_tag(state, oid), mode);
        }
        Ok(None)
    }

    /// Waits for others who build indexes of the table anew: each ends by locking all others out, and of two that keep writers out by then
    /// neither would come to that.
    fn stand_in_line(&self, table: Oid, options: Options) -> Result<()> {
        if options.concurrently {
            return Ok(());
        }
        let state = self.state();
        for of in whose_toast(state, table)?.into_iter().chain([table]) {
            super::lock_object(state, Object::of("pg_index", of), LockMode::Exclusive)?;
        }
        Ok(())
    }

    /// The index that has the name, and its table. None: it went while that was looked up.
    fn index_named(&self, name: &ObjectName, options: Options) -> Result<Option<(Oid, Oid)>> {
        let index = self.relation(name)?;
        if index.kind != RelationKind::Index {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", index.name);
        }
        let Some(table) = self.table_of_index(index.oid)? else { return Ok(None) };
        let Some(table) = self.state().table_by_oid(table)? else { return Ok(None) };
        self.check_maintain(&table, &index)?;
        check_catalog(&table, &[index.name.as_str()], options)?;
        Ok(Some((index.oid, table.oid)))
    }

    fn reindex_all_of(&mut self, name: &ObjectName, options: Options) -> Result<()> {
        let table = self.relation(name)?;
        if let Some(def) = catalog(table.oid) {
            self.check_whole(&table, options)?;
            return match self.reindex_catalog(def, None, options.verbose)? {
                true => Ok(()),
                false => self.tell_no_indexes(&table, options),
            };
        }
        let table = crate::relations::lock_named(self.state(), options.first_lock(), || {
            let table = self.relation(name)?;
            self.check_whole(&table, options)?;
            self.stand_in_line(table.oid, options)?;
            Ok(table)
        })?;
        let concurrently =
            options.concurrently && table.persistence != RelationPersistence::Temporary;
        let done = if concurrently {
            self.reindex_concurrently(table.oid, None, options.verbose)?
        } else {
            self.reindex_locked(table.oid, None, options.verbose)?
        };
        if done {
            return Ok(());
        }
        self.tell_no_indexes(&table, Options { concurrently, ..options })
    }

    fn tell_no_indexes(&mut self, table: &Table, options: Options) -> Result<()> {
        let to_be = match options.concurrently {
            true => "that can be reindexed concurrently",
            false => "to reindex",
        };
        self.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            format!("table \"{}\" has no indexes {to_be}", table.name),
        )
    }

    /// Fails unless REINDEX TABLE may be done with `table`.
    fn check_whole(&self, table: &Table, options: Options) -> Result<()> {
        if !matches!(
            table.kind,
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::Toast
        ) {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", table.name);
        }
        self.check_maintain(table, table)?;
        let indexes: Vec<&str> = table.indexes.iter().map(|i| i.name.as_str()).collect();
        check_catalog(table, &indexes, options)
    }

    /// Keeps writers out while indexes of a table are built anew, and readers for a moment at the end. False: there are none.
    fn reindex_locked(&mut self, table: Oid, only: Option<Oid>, verbose: bool) -> Result<bool> {
        let table = lock_and_look_again(self.state(), table, LockMode::Share)?;
        // Values out of line are reached under the lock of the table they belong to.
        let mut holders = match table.kind {
            RelationKind::Toast => whose_toast(self.state(), table.oid)?,
            _ => Vec::new(),
        };
        for of in &holders {
            crate::relations::lock(self.state(), *of, LockMode::Share)?;
        }
        holders.push(table.oid);
        self.reindex_table(&table, only, verbose)?;
        // Whoever reads the old files is waited for before they go, and nobody is locked out any longer than that takes.
        for of in holders {
            crate::relations::lock(self.state(), of, LockMode::AccessExclusive)?;
        }
        Ok(match only {
            Some(index) => table.indexes.iter().any(|i| i.oid == index),
            None => table.toast.is_valid() || table.indexes.iter().any(|i| i.live),
        })
    }

    /// One index of a table, or all, those of its TOAST table first.
    fn reindex_table(
        &mut self,
        table: &Arc<Table>,
        only: Option<Oid>,
        verbose: bool,
    ) -> Result<()> {
        let shown = commands::show(self.session.state(), Command::CreateIndex, table.oid);
        if let Some(shown) = &shown {
            shown.progress.set(create_index::COMMAND, 3);
        }
        if only.is_none() && table.toast.is_valid() {
            let toast = lock_and_look_again(self.state(), table.toast, LockMode::Share)?;
            self.reindex_table(&toast, None, verbose)?;
        }
        let chosen = |i: &&Arc<Index>| only.map_or(i.live, |o| o == i.oid);
        for index in table.indexes.iter().filter(chosen) {
            let usage = UsageMeter::start();
            crate::relations::lock(self.state(), index.oid, LockMode::AccessExclusive)?;
            rewrite::rebuild_index(self.session, table, index)?;
            self.tell_reindexed(&index.name, &usage, verbose)?;
        }
        Ok(())
    }

    fn reindex_many(
        &mut self,
        kind: ReindexKind,
        name: Option<&str>,
        options: Options,
    ) -> Result<()> {
        let word = match kind {
            ReindexKind::Schema => "REINDEX SCHEMA",
            ReindexKind::System => "REINDEX SYSTEM",
            _ => "REINDEX DATABASE",
        };
        self.session.prevent_transaction(word)?;
        if kind == ReindexKind::System && options.concurrently {
            bail!(FEATURE_NOT_SUPPORTED, "{NOT_CONCURRENTLY}");
        }
        let state = self.state();
        let mut schema = None;
        let mut noun = ("database", state.database.name.clone());
        if kind == ReindexKind::Schema {
            let name = name.unwrap_or_default();
            let Some(oid) = state.schema_by_name(name)? else {
                bail!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist");
            };
            schema = Some(oid);
            noun = ("schema", name.to_owned());
        } else if let Some(name) = name
            && name != state.database.name
        {
            bail!(FEATURE_NOT_SUPPORTED, "can only reindex the currently open database");
        }
        crate::acl::check_reindex_all(state, schema, noun.0, &noun.1)?;
        if options.concurrently && schema == Some(PG_CATALOG) {
            let mut notice =
                Notice::new(Severity::Warning, format!("{NOT_CONCURRENTLY}, skipping all"));
            notice.body.state = SqlState::FEATURE_NOT_SUPPORTED;
            self.client.notice(&notice)?;
        }
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn).scan("pg_class")?;
        let mut tables = Vec::new();
        for row in rows.iter().filter(|r| matches!(r.char("relkind"), b'r' | b'm')) {
            let oid = row.oid("oid");
            let is_meant = match (kind, catalog(oid)) {
                (ReindexKind::System, def) => def.is_some(),
                (ReindexKind::Schema, def) => {
                    Some(row.oid("relnamespace")) == schema
                        && !(options.concurrently && def.is_some())
                }
                (_, def) => def.is_none() && oid >= Oid::FIRST_NORMAL,
            };
            if is_meant && row.char("relpersistence") != b't' && self.may_reindex_among(oid)? {
                tables.push(oid);
            }
        }
        // As everything else is looked up there.
        tables.sort_by_key(|oid| *oid != defs::by_name("pg_class").oid);
        // Rows keep their snapshot.
        drop((rows, txn));
        for oid in tables {
            self.session.next_transaction()?;
            let done = match catalog(oid) {
                Some(def) => self.reindex_catalog(def, None, options.verbose)?,
                None => {
                    self.stand_in_line(oid, options)?;
                    crate::relations::lock(self.state(), oid, options.first_lock())?;
                    // Dropped meanwhile.
                    if self.state().table_by_oid(oid)?.is_none() {
                        continue;
                    }
                    if options.concurrently {
                        self.reindex_concurrently(oid, None, options.verbose)?;
                        continue;
                    }
                    self.reindex_locked(oid, None, options.verbose)?
                }
            };
            if done
                && options.verbose
                && let Some(table) = self.state().table_by_oid(oid)?
            {
                let name = format!("{}.{}", table.namespace_name, table.name);
                let text = format!("table \"{name}\" was reindexed");
                self.client.notice(&Notice::new(Severity::Info, text))?;
            }
        }
        self.session.next_transaction()
    }
}

impl Ddl<'_> {
    /// May a table be rebuilt with many others by who may ask for those? What all databases share is not the database's owner's.
    fn may_reindex_among(&self, oid: Oid) -> Result<bool> {
        if !catalog(oid).is_some_and(|def| def.shared) {
            return Ok(true);
        }
        match self.state().table_by_oid(oid)? {
            Some(table) => may_maintain(self.state(), &table),
            None => Ok(false),
        }
    }
}

/// May the current user maintain `table`?
///
/// # Errors
/// I/O.
pub(super) fn may_maintain(state: &SessionState, table: &Table) -> Result<bool> {
    let role = state.current_user.borrow().oid;
    let has = crate::acl::table_privileges(state, role, table)?;
    Ok(has & crate::acl::MAINTAIN != 0)
}

const NOT_CONCURRENTLY: &str = "cannot reindex system catalogs concurrently";

/// Fails if `table` is a catalog, of which these are indexes, and the statement asks for what can't be done with it.
fn check_catalog(table: &Table, indexes: &[&str], options: Options) -> Result<()> {
    if table.oid >= Oid::FIRST_NORMAL {
        return Ok(());
    }
    if options.concurrently {
        bail!(FEATURE_NOT_SUPPORTED, "{NOT_CONCURRENTLY}");
    }
    if let Some(index) = indexes.first()
        && options.moves
    {
        bail!(FEATURE_NOT_SUPPORTED, "cannot move system relation \"{index}\"");
    }
    Ok(())
}
