//! REINDEX.
//!
//! # Differs from PostgreSQL
//! Indexes of system catalogs keep their files for good and are not rebuilt: nobody locks a catalog to look something up in it, so there is
//! no moment at which a file, or its pages, could be replaced. CONCURRENTLY is refused.

use super::truncate::lock_and_look_again;
use super::{Ddl, rewrite};
use crate::client::{Notice, Severity};
use crate::maintenance::commands::{self, Command, create_index};
use crate::parse::utility::{Reindex, ReindexKind};
use base::{Error, Oid, Result, SqlState, bail, err};
use engine::catalog::model::{CatalogView, RelationKind, Table};
use std::sync::Arc;
use txn::LockMode;
use vacuum::UsageMeter;

impl Ddl<'_> {
    /// REINDEX
    ///
    /// # Errors
    /// `42P01`, `42809`, `25001`, `42501`, `23505`; I/O.
    pub fn reindex(&mut self, statement: &Reindex) -> Result<()> {
        let mut verbose = false;
        let mut concurrently = statement.concurrently;
        for option in &statement.options {
            match option.name.as_str() {
                "verbose" => verbose = option.boolean()?,
                "concurrently" => concurrently = option.boolean()?,
                "tablespace" => {
                    let name = option.string()?;
                    if name != "pg_default" {
                        bail!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist");
                    }
                }
                other => {
                    let e = err!(SYNTAX_ERROR, "unrecognized REINDEX option \"{other}\"");
                    return Err(crate::parse::error_at(&self.source, e, option.loc));
                }
            }
        }
        if concurrently {
            return Err(Error::unsupported("REINDEX CONCURRENTLY"));
        }
        match (statement.kind, &statement.name) {
            (ReindexKind::Index, Some(name)) => {
                let index = self.relation(name)?;
                if index.kind != RelationKind::Index {
                    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", index.name);
                }
                let Some(table) = self.table_of_index(index.oid)? else {
                    bail!(INTERNAL_ERROR, "index \"{}\" has no table", index.name);
                };
                self.check_maintain(table, &index)?;
                refuse_catalog(&index)?;
                let table = lock_and_look_again(self.state(), table, LockMode::Share)?;
                self.reindex_table(&table, Some(index.oid), verbose)
            }
            (ReindexKind::Table, Some(name)) => {
                let table = self.relation(name)?;
                if !matches!(
                    table.kind,
                    RelationKind::Table | RelationKind::MaterializedView | RelationKind::Toast
                ) {
                    bail!(
                        WRONG_OBJECT_TYPE,
                        "\"{}\" is not a table or materialized view",
                        table.name
                    );
                }
                self.check_maintain(table.oid, &table)?;
                refuse_catalog(&table)?;
                let table = lock_and_look_again(self.state(), table.oid, LockMode::Share)?;
                if table.indexes.is_empty() && !table.toast.is_valid() {
                    return self.notice(
                        SqlState::SUCCESSFUL_COMPLETION,
                        format!("table \"{}\" has no indexes to reindex", table.name),
                    );
                }
                self.reindex_table(&table, None, verbose)
            }
            (kind, name) => {
                self.reindex_many(kind, name.as_ref().map(|n| n.name.as_str()), verbose)
            }
        }
    }

    /// Fails unless the current user may maintain `table`; `named` is what it has named.
    fn check_maintain(&self, table: Oid, named: &Table) -> Result<()> {
        let state = self.state();
        let Some(table) = state.table_by_oid(table)? else { return Ok(()) };
        let role = state.current_user.borrow().oid;
        let has = crate::acl::relation_privileges(state, role, table.owner, table.acl.as_deref())?;
        if has & crate::acl::MAINTAIN == 0 {
            let noun = crate::acl::noun(named.kind);
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {noun} {}", named.name);
        }
        Ok(())
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
        for index in table.indexes.iter().filter(|i| only.is_none_or(|o| o == i.oid)) {
            let usage = UsageMeter::start();
            crate::relations::lock(self.state(), index.oid, LockMode::AccessExclusive)?;
            rewrite::rebuild_index(self.session, table, index)?;
            if verbose {
                let text = format!("index \"{}\" was reindexed", index.name);
                let mut notice = Notice::new(Severity::Info, text);
                notice.body.detail = Some(usage.used().cpu_text());
                self.client.notice(&notice)?;
            }
        }
        Ok(())
    }

    fn reindex_many(&mut self, kind: ReindexKind, name: Option<&str>, verbose: bool) -> Result<()> {
        let word = match kind {
            ReindexKind::Schema => "REINDEX SCHEMA",
            ReindexKind::System => "REINDEX SYSTEM",
            _ => "REINDEX DATABASE",
        };
        self.session.prevent_transaction(word)?;
        if kind == ReindexKind::System {
            return Err(catalogs_stay("REINDEX SYSTEM"));
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
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn).scan("pg_class")?;
        let tables: Vec<Oid> = rows
            .iter()
            .filter(|r| matches!(r.char("relkind"), b'r' | b'm'))
            .filter(|r| r.oid("oid") >= Oid::FIRST_NORMAL && r.char("relpersistence") != b't')
            .filter(|r| schema.is_none_or(|s| r.oid("relnamespace") == s))
            .map(|r| r.oid("oid"))
            .collect();
        // Rows keep their snapshot.
        drop((rows, txn));
        for table in tables {
            self.session.next_transaction()?;
            crate::relations::lock(self.state(), table, LockMode::Share)?;
            if let Some(table) = self.state().table_by_oid(table)? {
                self.reindex_table(&table, None, verbose)?;
            }
        }
        self.session.next_transaction()
    }
}

/// Why a catalog's indexes are not written anew.
const CATALOGS_STAY: &str = "System catalogs are read without locks on them, at all times and by every session, so that their indexes cannot be replaced by others.";

fn catalogs_stay(what: &str) -> Error {
    let mut error = Error::unsupported(what).to_sql_error();
    error.detail = Some(CATALOGS_STAY.to_owned());
    error.hint = Some("\"ebb check\" tells whether an index is whole. VACUUM FULL makes the catalog's table smaller.".to_owned());
    Error::Sql(Box::new(error))
}

fn refuse_catalog(table: &Table) -> Result<()> {
    if table.oid < Oid::FIRST_NORMAL {
        return Err(catalogs_stay("REINDEX of a system catalog"));
    }
    Ok(())
}
