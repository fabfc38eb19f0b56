//! `ebb check`: is the data folder what it should be?
//!
//! # Purpose
//! Reads every page of every relation (checksums), checks heaps against themselves and their visibility maps,
//! B-trees against themselves, and each index against its table: every row version that somebody may
//! see has its entry, and no entry leads to a line pointer that is free.
//!
//! # Differs from PostgreSQL
//! What `pg_amcheck --heapallindexed` and `pg_checksums` do in two programs. The folder is opened, so that a crash
//! is recovered from first; sessions there are none.

use crate::ddl::index::RowDecoder;
use crate::exec::modify::IndexWriter;
use base::{BlockNumber, Fork, OffsetNumber, Oid, PageTag, Result, Tid};
use buffer::Strategy;
use engine::Engine;
use engine::catalog::load::load_table;
use engine::catalog::model::{Index, RelationKind, Table};
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use expr::eval::EvalContext;
use heap::{BuildScan, Heap, HeapOptions};
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use txn::{BackendKind, Transaction};

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
    let databases: Vec<(Oid, String)> = shared
        .session(&txn)
        .scan("pg_database")?
        .iter()
        .map(|r| (r.oid("oid"), r.text("datname").to_owned()))
        .collect();
    for (i, (oid, name)) in databases.iter().enumerate() {
        report.databases += 1;
        let store = CatalogStore::new(storage.clone(), *oid);
        if let Err(error) = check_database(&store, &txn, i == 0, &mut report) {
            report.faults.push(format!("database \"{name}\": {error}"));
        }
    }
    txn.abort()?;
    Ok(report)
}

fn check_database(
    store: &CatalogStore,
    txn: &Transaction,
    with_shared: bool,
    report: &mut CheckReport,
) -> Result<()> {
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
        check_table(store.storage(), &table, report)?;
    }
    Ok(())
}

fn check_table(storage: &Storage, table: &Arc<Table>, report: &mut CheckReport) -> Result<()> {
    let Some(id) = table.storage else { return Ok(()) };
    report.relations += 1;
    let name = format!("{}.{}", table.namespace_name, table.name);
    let rel = storage.open(id, table.persistence);
    let options = HeapOptions { has_indexes: !table.indexes.is_empty(), ..HeapOptions::default() };
    let heap = Heap::new(rel, Arc::clone(&storage.heap), options);
    report.pages += u64::from(heap.len_blocks()?.0);
    let mut found = Vec::new();
    heap.check(&mut |tag: PageTag, what: String| {
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
        if let Err(error) = tree.verify() {
            report.faults.push(format!("index \"{}\" of \"{name}\": {error}", index.name));
            continue;
        }
        // A damaged heap is told of once; its indexes cannot be judged by it.
        if damaged || !index.valid || !index.ready {
            continue;
        }
        if let Err(error) = compare(&heap, table, index, &tree, &name, report) {
            report.faults.push(format!("index \"{}\" of \"{name}\": {error}", index.name));
        }
    }
    Ok(())
}

fn fingerprint<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values {
        value.hash(&mut hasher);
    }
    hasher.finish()
}

/// An index against its table.
fn compare(
    heap: &Heap,
    table: &Arc<Table>,
    index: &Arc<Index>,
    tree: &Arc<btree::Btree>,
    name: &str,
    report: &mut CheckReport,
) -> Result<()> {
    let mut entries: HashSet<(Tid, u64)> = HashSet::new();
    let mut tids: Vec<Tid> = Vec::new();
    tree.for_each_entry(&mut |values, tid| {
        entries.insert((tid, fingerprint(values.iter().copied())));
        tids.push(tid);
        Ok(())
    })?;
    let mut faults = 0;
    let mut fault = |report: &mut CheckReport, text: String| {
        faults += 1;
        if faults <= FAULTS_PER_RELATION {
            report.faults.push(format!("index \"{}\" of \"{name}\": {text}", index.name));
        }
    };
    tids.sort_unstable();
    tids.dedup();
    for tid in free_targets(heap, &tids)? {
        fault(report, format!("an entry leads to {tid}, where there is no row"));
    }
    let mut writer = IndexWriter::over(index, tree)?;
    let mut decoder = RowDecoder::new(table, index);
    let exec_params = RefCell::new(Vec::new());
    let eval = EvalContext::new(&types::env::PlainEnv, &exec_params);
    let mut scan = BuildScan::new(heap, None, None)?;
    while scan.next_page()? {
        for row in scan.tuples().filter(|t| t.alive) {
            // Values kept out of line are looked at by no index entry's bytes alone.
            let Ok(values) = decoder.decode(heap, row.tuple.bytes) else { continue };
            if !writer.encode(values, &eval)? {
                continue;
            }
            let key = fingerprint(writer.values().iter().copied());
            if !entries.contains(&(row.tid, key)) {
                fault(report, format!("the row at {} has no entry", row.tid));
            }
        }
    }
    Ok(())
}

/// Of the addresses (ascending), those whose line pointer is free.
fn free_targets(heap: &Heap, tids: &[Tid]) -> Result<Vec<Tid>> {
    let mut out = Vec::new();
    let mut at: Option<(BlockNumber, buffer::PinnedPage)> = None;
    let end = heap.len_blocks()?;
    for tid in tids {
        if tid.block >= end {
            out.push(*tid);
            continue;
        }
        if at.as_ref().is_none_or(|(block, _)| *block != tid.block) {
            let pin = heap.relation().pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
            at = Some((tid.block, pin));
        }
        let Some((_, pin)) = &at else { continue };
        let page = pin.read();
        let exists = tid.offset != OffsetNumber::INVALID
            && usize::from(tid.offset.0) <= page.item_count()
            && !page.item_id(tid.offset).is_unused();
        if !exists {
            out.push(*tid);
        }
    }
    Ok(out)
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
