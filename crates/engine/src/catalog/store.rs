//! Reading and writing catalog rows: heap tables with B-tree indexes, like any other.
//!
//! # Invariants
//! Every row of a catalog has an entry in each of its indexes. A look-up by columns that begin some index's
//! key goes through that index.
//!
//! A row that was read may be moved (`relocation.rs`) before it is changed: who changes it follows it, for it says the same.
//!
//! # Locks
//! Catalog rows of an object are written only under that object's own heavyweight lock. Who writes takes RowExclusive on the
//! catalog as well, for the rest of the transaction: so its end is cut off, and its rows are moved, only while nobody has
//! changes under way in it. Readers take no lock: what they may still come to is never cut off (`vacuum`'s `truncate.rs`).

use super::defs::{self, CatalogDef, CatalogIndex};
use super::load::RowSource;
use super::rows::{NewRow, Row};
use super::visit::StoredRow;
use crate::relation::{self, RowEncoder, Storage};
use base::sync::{Rank, RwLock};
use base::{Error, Oid, RelationId, Result, Tid, Xid, bail};
use btree::{Btree, InsertOutcome, KeySchema, Liveness, TupleLiveness, UniqueCheck};
use buffer::Persistence;
use heap::toast::AttrStorage;
use heap::visibility::Dirty;
use heap::{
    Heap, HeapOptions, HeapScan, InsertState, PageBatch, ScanOptions as HeapScanOptions,
    TupleOutcome, TupleSlot, UpdateDone, UpdateOptions,
};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use txn::{LockMode, LockTag, Snapshot, Transaction, Wait};
use types::Datum;

const OPEN_RANK: Rank = Rank(60);

/// An opened catalog.
pub struct OpenCatalog {
    /// What it looks like.
    pub def: &'static CatalogDef,
    /// Its rows.
    pub heap: Heap,
    pub(super) types: Vec<Oid>,
    pub(super) desc: TupleDesc,
    pub(super) indexes: Vec<(&'static CatalogIndex, Arc<Btree>)>,
    /// The columns that [`Catalogs::update_in_place`] writes over.
    in_place: Vec<usize>,
}

/// The catalogs of one database (and the shared ones), open.
pub struct CatalogStore {
    pub(super) storage: Storage,
    database: Oid,
    open: RwLock<HashMap<Oid, Arc<OpenCatalog>>>,
}

/// Where catalog `def` or its index with number `file_number` is stored.
fn location(def: &CatalogDef, file_number: u32, database: Oid) -> RelationId {
    let database = if def.shared { Oid::INVALID } else { database };
    RelationId { database, file_number }
}

fn index_schema(def: &CatalogDef, index: &CatalogIndex) -> Result<KeySchema> {
    let mut keys = Vec::new();
    for column in &index.columns {
        let column = &def.columns[usize::try_from(*column - 1).unwrap_or(0)];
        keys.push(relation::key_column(column.ty, false, false)?);
    }
    let mut schema = KeySchema::new(index.name, def.name, keys, Vec::new());
    schema.unique = index.unique;
    Ok(schema)
}

fn layout_of(def: &CatalogDef) -> TupleDesc {
    TupleDesc::new(def.columns.iter().map(|c| PhysicalAttr::new(c.len, c.align)).collect())
}

impl OpenCatalog {
    /// The first `columns` columns of a tuple.
    pub(super) fn take_apart<'t>(
        &self,
        tuple: &'t [u8],
        columns: usize,
    ) -> Result<Vec<AttrValue<'t>>> {
        let mut attrs = vec![AttrValue::Null; columns];
        page::tuple::deform(tuple, &self.desc, &mut attrs).map_err(Error::corrupt_file)?;
        Ok(attrs)
    }

    /// The columns that are written in place.
    fn decode_in_place(&self, tuple: &[u8]) -> Result<Vec<Datum>> {
        let attrs = self.take_apart(tuple, self.types.len())?;
        let decode = |i: &usize| relation::decode_attr(&self.heap, &attrs[*i], self.types[*i]);
        self.in_place.iter().map(decode).collect()
    }
}

impl CatalogStore {
    /// The catalogs of `database`.
    pub fn new(storage: Storage, database: Oid) -> CatalogStore {
        CatalogStore { storage, database, open: RwLock::new(OPEN_RANK, HashMap::new()) }
    }

    /// What relations are opened with.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The database.
    pub fn database(&self) -> Oid {
        self.database
    }

    /// The catalog `def`, opened once.
    ///
    /// # Errors
    /// I/O.
    pub fn open(&self, def: &'static CatalogDef) -> Result<Arc<OpenCatalog>> {
        if let Some(open) = self.open.read().get(&def.oid) {
            return Ok(Arc::clone(open));
        }
        let id = location(def, def.oid.0, self.database);
        let rel = self.storage.heap.pool.open(id, Persistence::Permanent);
        let mut options = HeapOptions { name: Arc::from(def.name), ..HeapOptions::default() };
        if let Some(toast) = def.toast {
            let (heap, index) =
                (location(def, toast.0, self.database), location(def, toast.0 + 1, self.database));
            let store = self.storage.toast(toast, heap, index, Persistence::Permanent)?;
            options.toast = Some(Arc::new(store));
            let storage = def.columns.iter().map(|c| AttrStorage::from_letter(c.storage)).collect();
            options.storage = Some(Arc::new((layout_of(def), storage)));
        }
        let heap = Heap::new(rel, Arc::clone(&self.storage.heap), options);
        let mut indexes = Vec::new();
        for index in &def.indexes {
            let id = location(def, index.oid.0, self.database);
            let rel = self.storage.heap.pool.open(id, Persistence::Permanent);
            let schema = Arc::new(index_schema(def, index)?);
            indexes
                .push((index, Arc::new(Btree::new(rel, Arc::clone(&self.storage.btree), schema))));
        }
        let open = Arc::new(OpenCatalog {
            def,
            heap,
            types: def.columns.iter().map(|c| c.ty).collect(),
            desc: layout_of(def),
            indexes,
            in_place: written_in_place(def).iter().map(|name| def.position(name)).collect(),
        });
        self.open.write().insert(def.oid, Arc::clone(&open));
        Ok(open)
    }

    /// Makes the files of catalog `def` and its empty indexes.
    ///
    /// # Errors
    /// I/O.
    pub fn create(&self, def: &'static CatalogDef, txn: &Transaction) -> Result<()> {
        let make = |file_number: u32| {
            let id = location(def, file_number, self.database);
            self.storage.files.create_numbered(txn, id, Persistence::Permanent).map(|_| id)
        };
        make(def.oid.0)?;
        for index in &def.indexes {
            make(index.oid.0)?;
        }
        if let Some(toast) = def.toast {
            make(toast.0)?;
            let index = make(toast.0 + 1)?;
            self.storage.toast_index(index, Persistence::Permanent)?.create()?;
        }
        for (_, tree) in &self.open(def)?.indexes {
            tree.create()?;
        }
        Ok(())
    }

    /// The catalogs as transaction `txn` sees them now, its own changes included.
    pub fn session<'a>(&'a self, txn: &'a Transaction) -> Catalogs<'a> {
        Catalogs { store: self, txn, tally: None, moment: None }
    }

    /// The same, with what is written counted.
    pub fn counted_session<'a>(
        &'a self,
        txn: &'a Transaction,
        tally: &'a CatalogTally,
    ) -> Catalogs<'a> {
        Catalogs { store: self, txn, tally: Some(tally), moment: None }
    }
}

/// Rows written to a catalog.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CatalogWrites {
    /// Rows added.
    pub inserted: i64,
    /// Rows replaced by new versions.
    pub updated: i64,
    /// Those of them that needed no index entries.
    pub hot_updated: i64,
    /// Rows removed.
    pub deleted: i64,
}

/// What a transaction has written to which catalog: catalogs leave dead rows like any other table, and autovacuum goes by counts.
#[derive(Default, Debug)]
pub struct CatalogTally {
    writes: RefCell<HashMap<Oid, CatalogWrites>>,
    written: Cell<u64>,
}

impl CatalogTally {
    /// What there is, and begins anew.
    pub fn take(&self) -> HashMap<Oid, CatalogWrites> {
        self.writes.take()
    }

    /// How often anything was written since the session began: what is the same afterwards as before was read between two writes.
    pub fn written(&self) -> u64 {
        self.written.get()
    }
}

/// The catalogs within a transaction.
pub struct Catalogs<'a> {
    pub(super) store: &'a CatalogStore,
    txn: &'a Transaction,
    tally: Option<&'a CatalogTally>,
    /// What is read is as of this; none: as of each reading.
    moment: Option<Arc<Snapshot>>,
}

/// The heap's side of a unique check on a catalog.
pub(crate) struct Unique<'a> {
    pub(crate) heap: &'a Heap,
    pub(crate) txn: &'a Transaction,
    /// The entry that is made, and its index.
    pub(crate) entry: (Tid, &'a str),
}

impl TupleLiveness for Unique<'_> {
    fn check(&self, tid: Tid) -> Result<Liveness> {
        Ok(match self.heap.liveness(tid, self.txn)? {
            (Dirty::Live, ..) => Liveness::Live,
            (Dirty::Inserting(xid) | Dirty::Deleting(xid), ..) => Liveness::InProgress(xid),
            (Dirty::Dead, _, true) => Liveness::DeadToAll,
            (Dirty::Dead, _, false) => Liveness::Dead,
        })
    }
    fn wait(&self, _: Tid, xid: Xid) -> Result<()> {
        let (tid, index) = self.entry;
        heap::waiting(heap::inserting_entry(tid, index), || {
            self.txn.wait_for_xid(xid, Wait::Block).map(|_| ())
        })
    }
}

impl Catalogs<'_> {
    /// The transaction.
    pub fn transaction(&self) -> &Transaction {
        self.txn
    }
    /// The store.
    pub fn store(&self) -> &CatalogStore {
        self.store
    }

    fn note_class_write(&self, def: &CatalogDef) {
        if def.name == "pg_class" {
            self.store.storage.class_writes.note(self.store.database);
        }
    }

    /// A row has been written.
    fn count(&self, def: &CatalogDef, add: impl FnOnce(&mut CatalogWrites)) {
        self.note_class_write(def);
        self.note_write();
        if let Some(tally) = self.tally {
            add(tally.writes.borrow_mut().entry(def.oid).or_default());
        }
    }

    fn note_write(&self) {
        if let Some(tally) = self.tally {
            tally.written.set(tally.written.get() + 1);
        }
    }

    /// The same, all of whose rows are read as of now: what several readings say fits together, though others commit between them.
    #[must_use]
    pub fn at_one_moment(self) -> Self {
        Self { moment: Some(self.snapshot()), ..self }
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.moment.clone().unwrap_or_else(|| self.txn.take_latest_snapshot())
    }

    /// The heavyweight lock on a catalog.
    pub fn lock_tag(&self, def: &CatalogDef) -> LockTag {
        let database = if def.shared { Oid::INVALID } else { self.store.database };
        LockTag::Relation { database, relation: def.oid }
    }

    /// Announces that this transaction writes to a catalog: no row of it is moved until it ends. The writing functions do so
    /// by themselves; who writes in place calls this before reading the row.
    ///
    /// # Errors
    /// 40P01, 57014 while waiting.
    pub fn announce_write(&self, def: &CatalogDef) -> Result<()> {
        self.txn.lock(self.lock_tag(def), LockMode::RowExclusive, Wait::Block).map(|_| ())
    }

    /// Adds a row; returns where it stands.
    ///
    /// # Errors
    /// `23505` when a unique index has its key; I/O.
    pub fn insert(&self, row: &NewRow) -> Result<Tid> {
        self.announce_write(row.def)?;
        let open = self.store.open(row.def)?;
        let tuple = self.encode(&open, &row.values)?;
        let tid = open.heap.insert(self.txn, &tuple, &mut InsertState::new())?;
        self.count(row.def, |n| n.inserted += 1);
        self.index(&open, &row.values, tid)?;
        self.txn.advance_command()?;
        Ok(tid)
    }

    /// Is this key of a unique index taken, be it by a row that another transaction has not committed, or not yet done away with? `key` are the
    /// index's columns, in any order.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn is_taken(&self, catalog: &str, key: &[(&str, Datum)]) -> Result<bool> {
        let def = defs::by_name(catalog);
        let open = self.store.open(def)?;
        let mut values = vec![Datum::Null; open.types.len()];
        for (name, value) in key {
            values[def.position(name)] = value.clone();
        }
        let is_whole = |index: &CatalogIndex| {
            let given = |c: &i32| {
                usize::try_from(c - 1).is_ok_and(|i| key.iter().any(|(n, _)| def.position(n) == i))
            };
            index.unique && index.columns.len() == key.len() && index.columns.iter().all(given)
        };
        let Some((index, tree)) = open.indexes.iter().find(|(index, _)| is_whole(index)) else {
            bail!(INTERNAL_ERROR, "\"{catalog}\" has no unique index with this key");
        };
        let live = Unique { heap: &open.heap, txn: self.txn, entry: (Tid::default(), index.name) };
        let key = self.key(&open, &index.columns, &values)?;
        let key: Vec<Option<&[u8]>> = key.iter().map(|k| k.as_deref()).collect();
        // Who walks a tree has published a snapshot, or has an XID: a page on the way is not used again meanwhile.
        let _snapshot = self.snapshot();
        Ok(tree.find_conflict(&key, None, &live)?.is_some())
    }

    /// The rows in the order in which an index has them.
    fn in_order(
        &self,
        open: &OpenCatalog,
        index: &CatalogIndex,
        tree: &Btree,
        rows: Vec<Row>,
    ) -> Result<Vec<Row>> {
        let with_key = |row: Row| Ok((self.key(open, &index.columns, &row.values)?, row));
        let mut rows = rows.into_iter().map(with_key).collect::<Result<Vec<_>>>()?;
        rows.sort_by(|(a, _), (b, _)| {
            let columns = tree.schema().columns.iter().zip(a.iter().zip(b));
            let mut orders =
                columns.map(|(c, (a, b))| KeySchema::compare_column(c, a.as_deref(), b.as_deref()));
            orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    fn encode(&self, open: &OpenCatalog, values: &[Datum]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        RowEncoder::new(open.types.clone(), open.desc.clone()).encode(values, &mut out)?;
        Ok(out)
    }

    fn key(
        &self,
        open: &OpenCatalog,
        columns: &[i32],
        values: &[Datum],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        columns
            .iter()
            .map(|column| {
                let i = usize::try_from(*column - 1).unwrap_or(0);
                encode_key(open.types[i], &values[i])
            })
            .collect()
    }

    pub(super) fn index(&self, open: &OpenCatalog, values: &[Datum], tid: Tid) -> Result<()> {
        for (index, tree) in &open.indexes {
            let entry = (tid, index.name);
            let live = Unique { heap: &open.heap, txn: self.txn, entry };
            let key = self.key(open, &index.columns, values)?;
            let key: Vec<Option<&[u8]>> = key.iter().map(|k| k.as_deref()).collect();
            let check = if index.unique { UniqueCheck::Yes(&live) } else { UniqueCheck::No };
            if let InsertOutcome::Conflict(_) = tree.insert(&key, tid, check)? {
                bail!(
                    UNIQUE_VIOLATION,
                    "duplicate key value violates unique constraint \"{}\"",
                    index.name
                );
            }
        }
        Ok(())
    }

    /// Would `row` be stored as a row of these values is?
    ///
    /// # Errors
    /// A value that has no stored form.
    pub fn are_stored_alike(&self, row: &NewRow, values: &[Datum]) -> Result<bool> {
        let open = self.store.open(row.def)?;
        Ok(self.encode(&open, &row.values)? == self.encode(&open, values)?)
    }

    /// Replaces a row that was read in this transaction.
    ///
    /// # Errors
    /// `XX000` "tuple concurrently updated" when somebody else changed it meanwhile.
    pub fn update(&self, row: &Row) -> Result<()> {
        match self.update_unless_changed(row)? {
            true => Ok(()),
            false => bail!(INTERNAL_ERROR, "tuple concurrently updated"),
        }
    }

    /// As [`Catalogs::update`]; false, nothing being done, when somebody else has changed the row.
    ///
    /// # Errors
    /// I/O, 40P01, 57014 while waiting.
    pub fn update_unless_changed(&self, row: &Row) -> Result<bool> {
        self.announce_write(row.def)?;
        let open = self.store.open(row.def)?;
        // The indexed columns of catalogs hardly ever change; entries of all indexes are made when the
        // update is not heap-only.
        let keys_changed = self.indexed_columns_changed(&open, row)?;
        let options =
            UpdateOptions { hot: !keys_changed, key_changed: keys_changed, wait: Wait::Block };
        let change = |tid| self.replace(&open, row, tid, options);
        match following_moves(&open, row.tid, change)? {
            TupleOutcome::Ok((done, values)) => {
                self.count(row.def, |n| {
                    n.updated += 1;
                    n.hot_updated += i64::from(done.hot);
                });
                if !done.hot {
                    self.index(&open, &values, done.tid)?;
                }
                self.txn.advance_command()?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Replaces the version at `tid` by what `row` says, but for statistics that were written in place since it was read, and that it does not
    /// change itself: as they are now. What the new version says, too.
    fn replace(
        &self,
        open: &OpenCatalog,
        row: &Row,
        tid: Tid,
        options: UpdateOptions,
    ) -> Result<TupleOutcome<(UpdateDone, Vec<Datum>)>> {
        let mut was = TupleSlot::new();
        loop {
            let mut values = row.values.clone();
            if open.in_place.is_empty() || !open.heap.fetch_any(tid, &mut was)? {
                let tuple = self.encode(open, &values)?;
                let outcome = open.heap.update(self.txn, tid, &tuple, options)?;
                return Ok(with_values(outcome, values));
            }
            let now = open.decode_in_place(&was.bytes)?;
            for (i, (before, now)) in open.in_place.iter().zip(row.statistics.iter().zip(now)) {
                if types::equal(open.types[*i], &values[*i], before) {
                    values[*i] = now;
                }
            }
            base::stop_point!("engine.catalog.replace");
            let tuple = self.encode(open, &values)?;
            let outcome =
                open.heap.update_unless_rewritten(self.txn, tid, &was.bytes, &tuple, options)?;
            match outcome {
                TupleOutcome::Ok(None) => {}
                TupleOutcome::Ok(Some(done)) => {
                    return Ok(TupleOutcome::Ok((done, values)));
                }
                other => return Ok(other.failed().unwrap_or(TupleOutcome::Invisible)),
            }
        }
    }

    /// Replaces statistics in a row (sizes, ages) where it stands: no new version, seen by all at once, kept even if the
    /// transaction is rolled back. A row whose stored form would change its length gets a new version after all. The row was read
    /// after [`Catalogs::announce_write`], so that it has not been moved. False, nothing being done, when somebody has changed
    /// the row since: who is about to is waited for, since the version that he makes would lack what is written here.
    ///
    /// # Errors
    /// As [`Catalogs::update`].
    pub fn update_in_place(&self, row: &Row) -> Result<bool> {
        let open = self.store.open(row.def)?;
        let tuple = self.encode(&open, &row.values)?;
        let mut was = TupleSlot::new();
        if !open.heap.fetch_any(row.tid, &mut was)? {
            return Ok(false);
        }
        let now = open.decode_in_place(&was.bytes)?;
        let columns = open.in_place.iter().zip(row.statistics.iter().zip(&now));
        let mut columns = columns.map(|(i, (before, now))| (open.types[*i], before, now));
        let is_as_read = columns.all(|(ty, before, now)| types::equal(ty, now, before));
        if !is_as_read {
            return Ok(false);
        }
        base::stop_point!("engine.catalog.write_in_place");
        let header = page::tuple::HEADER_MIN - 1..page::tuple::HEADER_MIN;
        let fits = was.bytes.len() == tuple.len() && was.bytes[header.clone()] == tuple[header];
        if !fits {
            return self.update_unless_changed(row);
        }
        let (tid, was) = (row.tid, &was.bytes);
        match open.heap.update_in_place_unless_changed(self.txn, tid, was, &tuple)? {
            TupleOutcome::Ok(done) => {
                self.note_class_write(row.def);
                self.note_write();
                Ok(done)
            }
            TupleOutcome::Updated { .. } | TupleOutcome::Deleted { .. } => Ok(false),
            _ => bail!(INTERNAL_ERROR, "tuple concurrently updated"),
        }
    }

    fn indexed_columns_changed(&self, open: &OpenCatalog, row: &Row) -> Result<bool> {
        let mut slot = TupleSlot::new();
        if !open.heap.fetch_any(row.tid, &mut slot)? {
            return Ok(true);
        }
        let old = open.take_apart(slot.view().bytes, open.types.len())?;
        for column in open.indexes.iter().flat_map(|(index, _)| &index.columns) {
            let i = usize::try_from(*column - 1).unwrap_or(0);
            let new = encode_key(open.types[i], &row.values[i])?;
            let same = match (&old[i], &new) {
                (AttrValue::Null, None) => true,
                (AttrValue::Inline(old), Some(new)) => old == new,
                (AttrValue::Null | AttrValue::Inline(_), _) => false,
                // Packed, or elsewhere.
                (stored, new) => {
                    let old = relation::decode_attr(&open.heap, stored, open.types[i])?;
                    encode_key(open.types[i], &old)? == *new
                }
            };
            if !same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a row that was read in this transaction.
    ///
    /// # Errors
    /// `XX000` "tuple concurrently deleted" when somebody else changed it meanwhile.
    pub fn delete(&self, row: &Row) -> Result<()> {
        self.announce_write(row.def)?;
        let open = self.store.open(row.def)?;
        let change = |tid| open.heap.delete(self.txn, tid, Wait::Block);
        match following_moves(&open, row.tid, change)? {
            TupleOutcome::Ok(()) => {
                self.count(row.def, |n| n.deleted += 1);
                self.txn.advance_command()
            }
            _ => bail!(INTERNAL_ERROR, "tuple concurrently deleted"),
        }
    }

    /// Removes the rows that [`RowSource::find`] finds; how many.
    ///
    /// # Errors
    /// As [`Catalogs::delete`].
    pub fn delete_where(&self, catalog: &str, key: &[(&str, Datum)]) -> Result<usize> {
        let rows = self.find(catalog, key)?;
        for row in &rows {
            self.delete(row)?;
        }
        Ok(rows.len())
    }

    /// Every row of a catalog.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn scan(&self, catalog: &str) -> Result<Vec<Row>> {
        let def = defs::by_name(catalog);
        let open = self.store.open(def)?;
        let mut rows = Vec::new();
        let seen = self.snapshot();
        let mut scan = HeapScan::new(&open.heap, Arc::clone(&seen), HeapScanOptions::default())?;
        let mut batch = PageBatch::new();
        while scan.next_page(&mut batch)? {
            for found in batch.iter() {
                let values =
                    relation::decode_tuple(&open.heap, found.tuple.bytes, &open.desc, &open.types)?;
                rows.push(row_read(&open, found.tid, values, &seen));
            }
        }
        Ok(rows)
    }

    /// Calls `f` with the values of `columns`, in that order, of every row of a catalog until it says false. For what runs
    /// often and looks at few of a wide catalog's columns: the others are not decoded.
    ///
    /// # Errors
    /// I/O, corruption, `f`'s.
    pub fn scan_columns(
        &self,
        catalog: &str,
        columns: &[&str],
        f: &mut dyn FnMut(&[Datum]) -> Result<bool>,
    ) -> Result<()> {
        let def = defs::by_name(catalog);
        let open = self.store.open(def)?;
        let columns: Vec<usize> = columns.iter().map(|name| def.position(name)).collect();
        let stored = columns.iter().max().map_or(0, |last| last + 1);
        let mut values = Vec::with_capacity(columns.len());
        let mut scan = HeapScan::new(&open.heap, self.snapshot(), HeapScanOptions::default())?;
        let mut batch = PageBatch::new();
        while scan.next_page(&mut batch)? {
            let mut attrs = vec![AttrValue::Null; stored];
            for found in batch.iter() {
                page::tuple::deform(found.tuple.bytes, &open.desc, &mut attrs)
                    .map_err(Error::corrupt_file)?;
                values.clear();
                for i in &columns {
                    values.push(relation::decode_attr(&open.heap, &attrs[*i], open.types[*i])?);
                }
                if !f(&values)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Makes a change to the row version at `tid`, or to the one that it was moved to since it was read.
fn following_moves<T>(
    open: &OpenCatalog,
    mut tid: Tid,
    change: impl Fn(Tid) -> Result<TupleOutcome<T>>,
) -> Result<TupleOutcome<T>> {
    loop {
        match change(tid)? {
            TupleOutcome::Updated { next, xmax } if says_the_same(open, tid, next, xmax)? => {
                tid = next;
            }
            outcome => return Ok(outcome),
        }
    }
}

fn with_values<T>(outcome: TupleOutcome<T>, values: Vec<Datum>) -> TupleOutcome<(T, Vec<Datum>)> {
    match outcome {
        TupleOutcome::Ok(done) => TupleOutcome::Ok((done, values)),
        other => other.failed().unwrap_or(TupleOutcome::Invisible),
    }
}

/// A row that `seen` shows at `tid`.
fn row_read(open: &OpenCatalog, tid: Tid, values: Vec<Datum>, seen: &Arc<Snapshot>) -> Row {
    let statistics = open.in_place.iter().map(|i| values[*i].clone()).collect();
    Row { def: open.def, tid, values, statistics, _seen: Arc::clone(seen) }
}

/// What [`Catalogs::update_in_place`] may have written over a row since it was read or moved.
fn written_in_place(def: &CatalogDef) -> &'static [&'static str] {
    match def.name {
        "pg_class" => &[
            "relpages",
            "reltuples",
            "relallvisible",
            "relallfrozen",
            "relfrozenxid",
            "relfrozenxid8",
            "relhasindex",
        ],
        "pg_database" => &["datfrozenxid", "datfrozenxid8"],
        _ => &[],
    }
}

/// Whether the version at `newer`, made by `by` (if that is known), says what the one at `tid` said, as after a move, but for
/// statistics. The version at `tid` is kept there by the snapshot that it was seen through.
fn says_the_same(open: &OpenCatalog, tid: Tid, newer: Tid, by: Xid) -> Result<bool> {
    let (mut a, mut b) = (TupleSlot::new(), TupleSlot::new());
    if !(open.heap.fetch_any(tid, &mut a)? && open.heap.fetch_any(newer, &mut b)?) {
        return Ok(false);
    }
    let (old, new) = (a.view(), b.view());
    if by.is_valid() && new.raw_xmin() != by {
        return Ok(false);
    }
    // From the header's length on: the null bitmap, the data. The other flags tell of who did what.
    let from = page::tuple::HEADER_MIN - 1;
    if old.natts() == new.natts() && old.bytes.get(from..) == new.bytes.get(from..) {
        return Ok(true);
    }
    let but_for = written_in_place(open.def);
    if but_for.is_empty() {
        return Ok(false);
    }
    let decode = |t: &[u8]| relation::decode_tuple(&open.heap, t, &open.desc, &open.types);
    let (old, new) = (decode(old.bytes)?, decode(new.bytes)?);
    Ok(open.def.columns.iter().zip(old.iter().zip(&new)).all(|(column, (old, new))| {
        but_for.contains(&column.name) || types::equal(column.ty, old, new)
    }))
}

pub(super) fn encode_key(ty: Oid, value: &Datum) -> Result<Option<Vec<u8>>> {
    if value.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    types::encode(ty, value, &mut bytes)?;
    Ok(Some(bytes))
}

impl RowSource for Catalogs<'_> {
    fn find(&self, catalog: &str, key: &[(&str, Datum)]) -> Result<Vec<Row>> {
        let def = defs::by_name(catalog);
        let open = self.store.open(def)?;
        let key: Vec<(usize, &Datum)> = key.iter().map(|(n, d)| (def.position(n), d)).collect();
        let matches = |values: &[Datum]| {
            key.iter().all(|(i, d)| types::equal(open.types[*i], &values[*i], d))
        };
        let Some((index, tree)) = open.index_for(&key) else {
            let mut rows = self.scan(catalog)?;
            rows.retain(|r| matches(&r.values));
            return Ok(rows);
        };
        if self.store.storage.ignores_system_indexes {
            let mut rows = self.scan(catalog)?;
            rows.retain(|r| matches(&r.values));
            return self.in_order(&open, index, tree, rows);
        }
        let mut rows = Vec::new();
        self.each_by(&open, index, tree, &key, &mut |tid, tuple, seen| {
            let values = relation::decode_tuple(&open.heap, tuple, &open.desc, &open.types)?;
            if matches(&values) {
                rows.push(row_read(&open, tid, values, seen));
            }
            Ok(true)
        })?;
        Ok(rows)
    }

    fn visit(
        &self,
        catalog: &str,
        key: &[(&str, Datum)],
        f: &mut dyn FnMut(&StoredRow<'_>) -> Result<()>,
    ) -> Result<()> {
        self.visit_until(catalog, key, &mut |row| f(row).map(|()| true))
    }

    fn database(&self) -> Oid {
        self.store.database
    }
}
