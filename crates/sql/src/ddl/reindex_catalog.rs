//! REINDEX of system catalogs.
//!
//! # Purpose
//! A catalog's indexes are known by their numbers and read without locks, by every session and at all times: they can't get new files. Each
//! is built anew in its own file, beside the tree that is there ([`btree::Btree::rebuild`], docs/decisions/0062).
//!
//! # Locks
//! Exclusive on the catalog while its indexes are built: DDL, which has RowExclusive on the catalogs that it writes, waits, and VACUUM too; reading
//! goes on. It is given up before `pg_class` is told the sizes, even within a transaction block: each index is what it should be from its switch on,
//! whatever becomes of the transaction.
//!
//! # Differs from PostgreSQL
//! SELECTs of a catalog go on, and DDL does not wait for the end of the transaction that rebuilt the indexes. A rollback does not bring back
//! the old ones.

use super::index::{duplicate, feed, is_left_alone, note_size, sort_config};
use super::index_feed::RowsOf;
use super::{Ddl, truncate::lock_and_look_again};
use crate::client::{Notice, Severity};
use crate::exec::RelationAccess;
use crate::maintenance::commands::{self, Command, create_index as progress};
use crate::session::run::{exec_context, work_mem_bytes};
use base::{Error, Oid, RelationId, Result, SqlState, err};
use btree::{Btree, BuildOutcome, Rebuilt, SortedStream, Sorter};
use buffer::Persistence;
use engine::catalog::defs::{self, CatalogDef};
use engine::catalog::model::{Index, Table};
use heap::{BuildScan, Heap, HeapOptions};
use page::tuple::{AttrValue, deform};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use txn::LockMode;
use vacuum::UsageMeter;

/// What `pg_class` is to say of an index.
pub(super) struct Size {
    index: Arc<Index>,
    entries: u64,
    rows: u64,
}

impl Ddl<'_> {
    /// Builds one index of a catalog anew, or all, those of its TOAST table first. False: there are none.
    ///
    /// # Errors
    /// `23505`; I/O; 40P01, 57014 while waiting.
    pub(super) fn reindex_catalog(
        &mut self,
        def: &'static CatalogDef,
        only: Option<Oid>,
        verbose: bool,
    ) -> Result<bool> {
        let shown = commands::show(self.session.state(), Command::CreateIndex, def.oid);
        if let Some(shown) = &shown {
            shown.progress.set(progress::COMMAND, 3);
        }
        let table = lock_and_look_again(self.state(), def.oid, LockMode::Exclusive)?;
        if only.is_none()
            && let Some(toast) = def.toast
        {
            self.reindex_catalog_toast(def, toast, verbose)?;
        }
        let mut sizes = Vec::new();
        for index in table.indexes.iter().filter(|i| only.is_none_or(|oid| i.oid == oid)) {
            let usage = UsageMeter::start();
            sizes.push(self.rebuild_in_place(&table, index)?);
            self.tell_reindexed(&index.name, &usage, verbose)?;
        }
        let state = self.state();
        state.txn()?.unlock(crate::relations::lock_tag(state, def.oid), LockMode::Exclusive);
        for size in &sizes {
            let Index { oid, storage, persistence, .. } = *size.index;
            note_size(state, oid, storage, persistence, Some(size.entries))?;
        }
        if let (Some(last), Some(storage)) = (sizes.last(), table.storage)
            && !is_left_alone(&table)
        {
            let rows = (last.rows > 0 || table.reltuples >= 0.0).then_some(last.rows);
            note_size(state, table.oid, storage, table.persistence, rows)?;
        }
        Ok(!sizes.is_empty() || def.toast.is_some())
    }

    /// Builds one index of a catalog, which is locked, anew.
    ///
    /// # Errors
    /// `23505`; I/O; cancellation.
    pub(super) fn rebuild_in_place(
        &mut self,
        table: &Arc<Table>,
        index: &Arc<Index>,
    ) -> Result<Size> {
        let state = std::rc::Rc::clone(self.session.state());
        let at = state.progress.of(Command::CreateIndex);
        if let Some(at) = &at {
            at.set(progress::INDEX, u64::from(index.oid.0));
            at.set(progress::PHASE, progress::BUILD);
            at.set(progress::SUBPHASE, progress::SCANNING);
        }
        let open = state.open_relation(table)?;
        let tree = state.btree(table, index)?;
        // A catalog's rows have the same key all along a chain: no snapshot is too old for the new index.
        let lacks_some = AtomicBool::new(false);
        let from = RowsOf { heap: &open.heap, table, index, seen: None, lacks_some: &lacks_some };
        let (sorters, rows) = feed(self.session, &from, &tree, at.as_deref())?;
        base::stop_point!("sql.reindex_catalog.collected");
        let rebuilt = self.rebuild_tree(&tree, sorters)?;
        match rebuilt.outcome {
            BuildOutcome::Built { entries } => {
                self.tell_repaired(&index.name, &rebuilt)?;
                Ok(Size { index: Arc::clone(index), entries, rows })
            }
            BuildOutcome::Duplicate { values, .. } => {
                let txn = state.txn()?;
                let snapshot = txn.take_latest_snapshot();
                let env = self.session.env();
                let cx = exec_context(&state, env, &txn, snapshot, &[], work_mem_bytes(&state));
                Err(duplicate(&cx, table, index, &values))
            }
        }
    }

    fn rebuild_tree(&mut self, tree: &Btree, sorters: Vec<Sorter>) -> Result<Rebuilt> {
        let state = self.state();
        let sorted: SortedStream = Sorter::finish_all(sorters, &state.backend.cancel)?;
        let rebuilt = tree.rebuild(sorted, &mut |_| state.check_cancel())?;
        // So that the next one may use the old tree's pages: who begins from now on can be told from who is in there.
        let txn = state.txn()?;
        txn.begin_sub();
        let used_up = txn.xid();
        txn.commit_sub()?;
        used_up.map(|_| rebuilt)
    }

    /// The TOAST table of a catalog is not in `pg_class`, and nobody locks it: who writes to it writes to the catalog.
    ///
    /// # Errors
    /// I/O; cancellation.
    pub(super) fn reindex_catalog_toast(
        &mut self,
        def: &CatalogDef,
        toast: Oid,
        verbose: bool,
    ) -> Result<()> {
        let usage = UsageMeter::start();
        let (tree, sorter) = {
            let state = self.state();
            let database = if def.shared { Oid::INVALID } else { state.database.oid };
            let at = |file_number| RelationId { database, file_number };
            let storage = state.cluster.storage();
            let handle = storage.heap.pool.open(at(toast.0), Persistence::Permanent);
            let heap = Heap::new(handle, Arc::clone(&storage.heap), HeapOptions::default());
            let tree = storage.toast_index(at(toast.0 + 1), Persistence::Permanent)?;
            let mut sorter = Sorter::new(Arc::clone(tree.schema()), sort_config(state));
            let desc = heap::toast::chunk_desc();
            let mut scan = BuildScan::new(&heap, None, None)?;
            while scan.next_page()? {
                state.check_cancel()?;
                for found in scan.tuples() {
                    let mut values = [AttrValue::Null; 2];
                    deform(found.tuple.bytes, &desc, &mut values).map_err(Error::corrupt_file)?;
                    let key = values.map(|value| match value {
                        AttrValue::Inline(bytes) => Some(bytes),
                        _ => None,
                    });
                    sorter.add(&key, found.tid, found.alive)?;
                }
            }
            (tree, sorter)
        };
        let name = format!("pg_toast_{}_index", def.oid);
        let rebuilt = self.rebuild_tree(&tree, vec![sorter])?;
        if let BuildOutcome::Duplicate { .. } = rebuilt.outcome {
            return Err(err!(UNIQUE_VIOLATION, "could not create unique index \"{name}\""));
        }
        self.tell_repaired(&name, &rebuilt)?;
        self.tell_reindexed(&name, &usage, verbose)
    }

    fn tell_repaired(&mut self, index: &str, rebuilt: &Rebuilt) -> Result<()> {
        if rebuilt.repaired.is_empty() {
            return Ok(());
        }
        let blocks: Vec<String> = rebuilt.repaired.iter().map(ToString::to_string).collect();
        let text = format!("index \"{index}\" had damaged pages, which were made anew");
        let mut notice = Notice::new(Severity::Warning, text);
        notice.body.state = SqlState::INDEX_CORRUPTED;
        notice.body.detail = Some(format!("Blocks {}.", blocks.join(", ")));
        self.client.notice(&notice)
    }

    /// REINDEX (VERBOSE)'s line for an index.
    pub(super) fn tell_reindexed(
        &mut self,
        index: &str,
        usage: &UsageMeter,
        verbose: bool,
    ) -> Result<()> {
        if !verbose {
            return Ok(());
        }
        let text = format!("index \"{index}\" was reindexed");
        let mut notice = Notice::new(Severity::Info, text);
        notice.body.detail = Some(usage.used().cpu_text());
        self.client.notice(&notice)
    }
}

/// The catalog with this OID; None: it is a table like others.
pub(super) fn catalog(oid: Oid) -> Option<&'static CatalogDef> {
    defs::by_oid(oid)
}
