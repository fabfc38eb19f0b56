//! Descriptions of relations, kept between statements and shared by all sessions of a database.
//!
//! # Invariants
//! The shared part holds only what is committed. A reader that loads an entry notes the generation first
//! and puts the entry in only if no invalidation came between: a description older than the last
//! invalidation never gets in. A transaction that has changed catalogs reads through a part of its own,
//! emptied at each change, its own or another's, and its invalidations reach the shared part when it has committed, before its
//! locks are released.

use super::enums::EnumLabels;
use super::load::{self, RowSource};
use super::model::{ColumnStatistics, Table};
use super::store::{CatalogStore, CatalogTally, Catalogs};
use base::sync::{Rank, RwLock};
use base::{Oid, Result};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::Transaction;
use types::Datum;

const CACHE_RANK: Rank = Rank(50);

#[derive(Default)]
struct Entries {
    tables: HashMap<Oid, Arc<Table>>,
    /// (schema, name) → relation.
    names: HashMap<(Oid, String), Oid>,
    schemas: HashMap<String, Oid>,
    /// (schema, name) → type.
    types: HashMap<(Oid, String), Oid>,
    enums: HashMap<Oid, Arc<EnumLabels>>,
    statistics: HashMap<(Oid, i32), Option<Arc<ColumnStatistics>>>,
}

/// What all sessions of a database share.
pub struct SharedCache {
    entries: RwLock<Entries>,
    generation: AtomicU64,
}

impl Default for SharedCache {
    fn default() -> Self {
        SharedCache {
            entries: RwLock::new(CACHE_RANK, Entries::default()),
            generation: AtomicU64::new(1),
        }
    }
}

impl SharedCache {
    /// Rises with every invalidation: cached plans compare it.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Forgets these relations and types, and all names.
    pub fn invalidate(&self, relations: &HashSet<Oid>) {
        let mut entries = self.entries.write();
        self.generation.fetch_add(1, Ordering::AcqRel);
        entries.names.clear();
        entries.schemas.clear();
        entries.types.clear();
        if relations.contains(&Oid::INVALID) {
            entries.tables.clear();
            entries.enums.clear();
            entries.statistics.clear();
            return;
        }
        for oid in relations {
            entries.tables.remove(oid);
            entries.enums.remove(oid);
        }
        entries.statistics.retain(|(table, _), _| !relations.contains(table));
    }
}

/// A session's view of the catalogs.
pub struct SessionCatalog {
    store: Arc<CatalogStore>,
    shared: Arc<SharedCache>,
    /// This transaction has changed catalogs: the shared part is not for it.
    dirty: Cell<bool>,
    own: RefCell<Entries>,
    /// The generation that `own` belongs to: what others change does not stay in it either.
    own_generation: Cell<u64>,
    changed: RefCell<HashSet<Oid>>,
    tally: CatalogTally,
}

impl SessionCatalog {
    /// A view without changes of its own.
    pub fn new(store: Arc<CatalogStore>, shared: Arc<SharedCache>) -> SessionCatalog {
        SessionCatalog {
            store,
            shared,
            dirty: Cell::new(false),
            own: RefCell::default(),
            own_generation: Cell::new(0),
            changed: RefCell::default(),
            tally: CatalogTally::default(),
        }
    }

    /// What has been written to catalogs since it was last taken.
    pub fn tally(&self) -> &CatalogTally {
        &self.tally
    }

    /// The rows themselves.
    pub fn store(&self) -> &Arc<CatalogStore> {
        &self.store
    }

    /// The catalogs within `txn`, to be read and written.
    pub fn rows<'a>(&'a self, txn: &'a Transaction) -> Catalogs<'a> {
        self.store.counted_session(txn, &self.tally)
    }

    /// Rises whenever a description held may be out of date, in this transaction or by another.
    pub fn generation(&self) -> u64 {
        self.shared.generation()
    }

    /// This transaction has changed catalogs, so that plans made before it are not to be trusted.
    pub fn is_dirty(&self) -> bool {
        self.dirty.get()
    }

    /// This transaction has changed what the catalogs say of `relation`, or type ([`Oid::INVALID`]: of anything).
    pub fn changed(&self, relation: Oid) {
        self.dirty.set(true);
        self.changed.borrow_mut().insert(relation);
        *self.own.borrow_mut() = Entries::default();
    }

    /// The transaction has committed: all sessions forget what it changed. Called before locks go.
    pub fn committed(&self) {
        if self.dirty.replace(false) {
            self.shared.invalidate(&self.changed.take());
            *self.own.borrow_mut() = Entries::default();
        }
    }

    /// The transaction, or a savepoint of it, was rolled back.
    pub fn rolled_back(&self, whole: bool) {
        *self.own.borrow_mut() = Entries::default();
        if whole {
            self.dirty.set(false);
            self.changed.borrow_mut().clear();
        }
    }

    /// Looks in the right part, else loads and keeps what it loaded.
    fn cached<T: Clone>(
        &self,
        look: impl Fn(&Entries) -> Option<T>,
        load: impl FnOnce() -> Result<Option<T>>,
        keep: impl FnOnce(&mut Entries, T),
    ) -> Result<Option<T>> {
        if self.dirty.get() {
            let generation = self.shared.generation();
            if self.own_generation.replace(generation) != generation {
                *self.own.borrow_mut() = Entries::default();
            }
            if let Some(found) = look(&self.own.borrow()) {
                return Ok(Some(found));
            }
            let loaded = load()?;
            if let Some(loaded) = &loaded {
                keep(&mut self.own.borrow_mut(), loaded.clone());
            }
            return Ok(loaded);
        }
        if let Some(found) = look(&self.shared.entries.read()) {
            return Ok(Some(found));
        }
        let generation = self.shared.generation();
        let loaded = load()?;
        if let Some(loaded) = &loaded {
            let mut entries = self.shared.entries.write();
            if self.shared.generation() == generation {
                keep(&mut entries, loaded.clone());
            }
        }
        Ok(loaded)
    }

    /// The relation with that OID.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn table(&self, txn: &Transaction, oid: Oid) -> Result<Option<Arc<Table>>> {
        self.cached(
            |e| e.tables.get(&oid).cloned(),
            || load::load_table(&self.rows(txn), oid),
            |e, table| {
                e.tables.insert(oid, table);
            },
        )
    }

    /// The OID of relation `name` in schema `namespace`.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn relation_oid(
        &self,
        txn: &Transaction,
        namespace: Oid,
        name: &str,
    ) -> Result<Option<Oid>> {
        let key = (namespace, name.to_owned());
        self.cached(
            |e| e.names.get(&key).copied(),
            || {
                let find =
                    [("relname", Datum::text(name)), ("relnamespace", Datum::Oid(namespace))];
                Ok(self.rows(txn).find("pg_class", &find)?.first().map(|r| r.oid("oid")))
            },
            |e, oid| {
                e.names.insert(key.clone(), oid);
            },
        )
    }

    /// The OID of a schema.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn schema_oid(&self, txn: &Transaction, name: &str) -> Result<Option<Oid>> {
        self.cached(
            |e| e.schemas.get(name).copied(),
            || {
                let find = [("nspname", Datum::text(name))];
                Ok(self.rows(txn).find("pg_namespace", &find)?.first().map(|r| r.oid("oid")))
            },
            |e, oid| {
                e.schemas.insert(name.to_owned(), oid);
            },
        )
    }

    /// The OID of type `name` in schema `namespace`.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn type_oid(&self, txn: &Transaction, namespace: Oid, name: &str) -> Result<Option<Oid>> {
        let key = (namespace, name.to_owned());
        self.cached(
            |e| e.types.get(&key).copied(),
            || {
                let find =
                    [("typname", Datum::text(name)), ("typnamespace", Datum::Oid(namespace))];
                Ok(self.rows(txn).find("pg_type", &find)?.first().map(|r| r.oid("oid")))
            },
            |e, oid| {
                e.types.insert(key.clone(), oid);
            },
        )
    }

    /// The labels of an enum type.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn enum_labels(&self, txn: &Transaction, ty: Oid) -> Result<Arc<EnumLabels>> {
        let found = self.cached(
            |e| e.enums.get(&ty).cloned(),
            || EnumLabels::load(&self.rows(txn), ty).map(|l| Some(Arc::new(l))),
            |e, labels| {
                e.enums.insert(ty, labels);
            },
        )?;
        Ok(found.unwrap_or_default())
    }

    /// A column's statistics, if any were gathered.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn statistics(
        &self,
        txn: &Transaction,
        table: Oid,
        column: i32,
    ) -> Result<Option<Arc<ColumnStatistics>>> {
        let found = self.cached(
            |e| e.statistics.get(&(table, column)).cloned(),
            || {
                let number = Datum::Int2(i16::try_from(column).unwrap_or(0));
                let find = [
                    ("starelid", Datum::Oid(table)),
                    ("staattnum", number),
                    ("stainherit", Datum::Bool(false)),
                ];
                let rows = self.rows(txn).find("pg_statistic", &find)?;
                Ok(Some(rows.first().map(|r| Arc::new(load::column_statistics(r)))))
            },
            |e, statistics| {
                e.statistics.insert((table, column), statistics);
            },
        )?;
        Ok(found.flatten())
    }
}
