//! `ebb check`: is the data folder what it should be?
//!
//! # Purpose
//! Reads every page of every relation (checksums), checks heaps against themselves, their visibility maps and what the catalogs say of
//! their oldest XIDs, B-trees against themselves, and each index against its table: every row version that somebody may
//! see has its entry, and no entry leads to a line pointer that is free.
//!
//! # Differs from PostgreSQL
//! What `pg_amcheck --heapallindexed` and `pg_checksums` do in two programs. The folder is opened, so that a crash
//! is recovered from first; sessions there are none.

use crate::cluster::ctype_of;
use crate::index_check::{Bounds, TableAndIndex};
use base::{Fork, Oid, PageTag, Result, Xid};
use engine::Engine;
use engine::catalog::load::load_table;
use engine::catalog::model::{RelationKind, Table};
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use heap::{Heap, HeapOptions};
use std::sync::Arc;
use txn::{BackendKind, Transaction};
use types::Ctype;
use types::env::PlainEnv;

/// What a check has found.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Databases looked at.
    pub databases: usize,
    /// Relations looked at, indexes included.
    pub relations: usize,
    /// Pages read.
    pub pages: u64,
    /// What is wrong: each names relation and block.
    pub faults: Vec<String>,
}

/// How many faults are listed before the check gives up looking for more in a relation.
const FAULTS_PER_RELATION: usize = 20;

/// Checks everything in `engine`'s folder.
///
/// # Errors
/// What stops the check as a whole; damage is in the report.
pub fn check(engine: &Arc<Engine>) -> Result<CheckReport> {
    crate::system::register();
    let mut report = CheckReport::default();
    let backend = engine.txns.register_backend(BackendKind::Internal);
    let storage = Storage::of(engine);
    let txn = engine.txns.begin(&backend);
    let shared = CatalogStore::new(storage.clone(), Oid::INVALID);
    for (i, row) in shared.session(&txn).scan("pg_database")?.iter().enumerate() {
        let (name, frozen) = (row.text("datname"), row.xid8("datfrozenxid8"));
        report.databases += 1;
        let store = CatalogStore::new(storage.clone(), row.oid("oid"));
        let database = Database { frozen, ctype: ctype_of(row) };
        if frozen < engine.txns.oldest_clog_xid() {
            report.faults.push(format!(
                "database \"{name}\": the commit log begins after datfrozenxid {frozen}"
            ));
        }
        if let Err(error) = check_database(&store, &txn, i == 0, &database, &mut report) {
            report.faults.push(format!("database \"{name}\": {error}"));
        }
    }
    txn.abort()?;
    Ok(report)
}

/// What `pg_database` says.
struct Database {
    frozen: Xid,
    ctype: Ctype,
}

fn check_database(
    store: &CatalogStore,
    txn: &Transaction,
    with_shared: bool,
    database: &Database,
    report: &mut CheckReport,
) -> Result<()> {
    let frozen = database.frozen;
    let catalogs = store.session(txn);
    for class in catalogs.scan("pg_class")? {
        let kind = RelationKind::from_letter(class.char("relkind"));
        let shared = class.bool("relisshared");
        if !class.oid("relfilenode").is_valid() || (shared && !with_shared) {
            continue;
        }
        // Indexes are looked at with their tables.
        if !matches!(
            kind,
            Some(
                RelationKind::Table
                    | RelationKind::Toast
                    | RelationKind::MaterializedView
                    | RelationKind::Sequence
            )
        ) {
            continue;
        }
        let Some(table) = load_table(&catalogs, class.oid("oid"))? else { continue };
        // Temporary relations hold nothing after their session.
        if table.persistence == engine::catalog::model::RelationPersistence::Temporary {
            continue;
        }
        if table.relfrozenxid.is_normal() && table.relfrozenxid < frozen {
            report.faults.push(format!(
                "table \"{}.{}\": relfrozenxid {} precedes datfrozenxid {frozen}",
                table.namespace_name, table.name, table.relfrozenxid
            ));
        }
        check_table(store.storage(), &table, database.ctype, report)?;
    }
    Ok(())
}

fn check_table(
    storage: &Storage,
    table: &Arc<Table>,
    ctype: Ctype,
    report: &mut CheckReport,
) -> Result<()> {
    let Some(id) = table.storage else { return Ok(()) };
    report.relations += 1;
    let name = format!("{}.{}", table.namespace_name, table.name);
    let rel = storage.open(id, table.persistence);
    let heap = Heap::new(rel, Arc::clone(&storage.heap), HeapOptions::default());
    report.pages += u64::from(heap.len_blocks()?.0);
    let mut found = Vec::new();
    heap.check(table.relfrozenxid, &mut |tag: PageTag, what: String| {
        if found.len() < FAULTS_PER_RELATION {
            found.push(format!("table \"{name}\", {tag}: {what}"));
        }
    })?;
    let damaged = !found.is_empty();
    report.faults.append(&mut found);
    for index in &table.indexes {
        report.relations += 1;
        let tree = storage.btree(&table.name, index)?;
        report.pages += u64::from(tree.relation().len_blocks(Fork::Main)?.0);
        let entries = match tree.verify() {
            Ok(seen) => seen.entries,
            Err(error) => {
                report.faults.push(format!("index \"{}\" of \"{name}\": {error}", index.name));
                continue;
            }
        };
        // A damaged heap is told of once; its indexes cannot be judged by it.
        if damaged || !index.valid || !index.ready {
            continue;
        }
        let pair = TableAndIndex { heap: &heap, table, index, tree: &tree };
        if let Err(error) = compare(&pair, entries, ctype, &name, report) {
            report.faults.push(format!("index \"{}\" of \"{name}\": {error}", index.name));
        }
    }
    Ok(())
}

/// Fingerprints of this many bytes are held against the heap at once.
const MEMORY_BYTES: usize = 256 << 20;

/// An index against its table.
fn compare(
    pair: &TableAndIndex<'_>,
    entries: u64,
    ctype: Ctype,
    name: &str,
    report: &mut CheckReport,
) -> Result<()> {
    let index = pair.index;
    let mut faults = 0;
    let mut fault = |text: String| {
        faults += 1;
        if faults <= FAULTS_PER_RELATION {
            report.faults.push(format!("index \"{}\" of \"{name}\": {text}", index.name));
        }
        Ok(())
    };
    let pause = &mut || Ok(());
    pair.entries_without_row(pause, &mut |tid| {
        fault(format!("an entry leads to {tid}, where there is no row"))
    })?;
    let bounds = Bounds { entries, memory_bytes: MEMORY_BYTES };
    types::ctype::with(ctype, &PlainEnv, |env| {
        pair.rows_without_entry(bounds, None, env, pause, &mut |tid| {
            fault(format!("the row at {tid} has no entry"))
        })
    })
}

/// A report as lines to print.
pub fn lines(report: &CheckReport) -> Vec<String> {
    let mut out = report.faults.clone();
    out.push(format!(
        "checked {} databases, {} relations, {} pages: {}",
        report.databases,
        report.relations,
        report.pages,
        match report.faults.len() {
            0 => "no damage".to_owned(),
            1 => "1 fault".to_owned(),
            n => format!("{n} faults"),
        }
    ));
    out
}
