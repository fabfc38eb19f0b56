//! Descriptions of relations, kept between statements and shared by all sessions of a database.
//!
//! # Invariants
//! The shared part holds only what is committed. A reader that loads an entry notes the generation first
//! and puts the entry in only if no invalidation came between: a description older than the last
//! invalidation never gets in. A transaction that has changed catalogs reads through a part of its own,
//! emptied at each change, its own or another's, and its invalidations reach the shared part when it has committed, before its
//! locks are released.
//!
//! While it has changed no names the shared part goes on being good for these, and while it has changed statistics alone for everything else: it
//! is looked into after its own, but nothing that such a transaction loads gets in there. Descriptions of its own that were loaded after the last
//! row that it wrote, and after the last invalidation, are what the next who looks would load: they get in when it has committed.
//!
//! # What was made from descriptions
//! A plan is good as long as nothing that it was made from has changed. [`SessionCatalog::watched`] notes what is looked up while
//! it is made ([`Footing`]); each change that names a relation, or a new name, is dated by the generation it brought; a
//! change that cannot say whom it concerns ([`SessionCatalog::changed`]) makes all plans stale. So a session that makes and drops tables
//! all day costs the others no planning.

pub use super::changes::Footing;
use super::changes::{Changes, History, Subject};
use super::descriptions::Descriptions;
use super::domains::DomainConstraints;
use super::enums::EnumLabels;
use super::extended::ExtendedStatistics;
use super::load::{self, RowSource};
use super::model::{ColumnStatistics, Table};
use super::store::{CatalogStore, CatalogTally, Catalogs};
use base::sync::{Rank, RwLock};
use base::{FactMap, FactSet, Oid, RelationId, Result};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::Transaction;
use types::Datum;

const CACHE_RANK: Rank = Rank(50);

/// So many relations, and so many names, are known by what takes little memory.
const MOST_SHORT: usize = 1 << 16;
/// So many by what takes more.
const MOST_LONG: usize = 4096;
/// In so many schemas each a name is known.
const MOST_SCHEMAS: usize = 256;

/// Makes room in `map` for one more if it has `most`: every other one goes, whichever that is. Those that are asked for often are soon back.
fn make_room<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>, most: usize) {
    if map.len() >= most {
        let mut stays = false;
        map.retain(|_, _| {
            stays = !stays;
            stays
        });
    }
}

#[derive(Default)]
struct Entries {
    tables: Descriptions,
    /// Where relations are stored whose descriptions nobody needs.
    stored: FactMap<Oid, Option<RelationId>>,
    /// Table → its indexes; the same.
    indexes: FactMap<Oid, Arc<[Oid]>>,
    /// Name → schema → relation. Those that are not there too: a table of a user's is looked for in `pg_catalog` first.
    names: HashMap<String, NamedIn>,
    /// The same of schemas: few users have the one that `search_path` begins with.
    schemas: HashMap<String, Option<Oid>>,
    /// Name → schema → type; the same.
    types: HashMap<String, NamedIn>,
    enums: FactMap<Oid, Arc<EnumLabels>>,
    domains: FactMap<Oid, Arc<DomainConstraints>>,
    /// Table → column → its statistics.
    statistics: FactMap<Oid, HashMap<i32, Option<Arc<ColumnStatistics>>>>,
    extended: FactMap<Oid, Arc<[ExtendedStatistics]>>,
}

/// What a name means in some schemas: few have the same names.
type NamedIn = Vec<(Oid, Option<Oid>)>;

/// What `name` is known to mean in `schema`, if anything is known.
fn meaning(names: &HashMap<String, NamedIn>, schema: Oid, name: &str) -> Option<Option<Oid>> {
    names.get(name)?.iter().find(|(within, _)| *within == schema).map(|(_, oid)| *oid)
}

/// Notes what `name` means in `schema`; of `most` names at most something is known.
fn note_meaning(
    names: &mut HashMap<String, NamedIn>,
    most: usize,
    (schema, name): (Oid, &str),
    oid: Option<Oid>,
) {
    if let Some(known) = names.get_mut(name) {
        // Another session may have been as quick.
        known.retain(|(within, _)| *within != schema);
        if known.len() >= MOST_SCHEMAS {
            known.clear();
        }
        known.push((schema, oid));
        return;
    }
    make_room(names, most);
    names.insert(name.to_owned(), vec![(schema, oid)]);
}

impl Entries {
    /// Forgets what is said of one relation, or type.
    fn forget(&mut self, oid: Oid) {
        self.tables.remove(oid);
        self.stored.remove(&oid);
        self.indexes.remove(&oid);
        self.enums.remove(&oid);
        self.forget_statistics(oid);
    }

    /// Forgets the statistics of a relation's columns.
    fn forget_statistics(&mut self, oid: Oid) {
        self.statistics.remove(&oid);
        self.extended.remove(&oid);
    }
}

/// What all sessions of a database share.
pub struct SharedCache {
    entries: RwLock<(Entries, History)>,
    generation: AtomicU64,
}

impl Default for SharedCache {
    fn default() -> Self {
        SharedCache {
            entries: RwLock::new(CACHE_RANK, <(Entries, History)>::default()),
            generation: AtomicU64::new(1),
        }
    }
}

impl SharedCache {
    /// Rises with every invalidation: cached plans compare it.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Forgets what these changes concern, and all names where those may be concerned; what the transaction that made them has `loaded`, in
    /// generation `loaded_in`, since it made the last of them is kept, if nobody else has changed anything meanwhile.
    fn invalidate(&self, changes: &Changes, loaded: Vec<Arc<Table>>, loaded_in: u64) {
        let mut guard = self.entries.write();
        let (entries, history) = &mut *guard;
        let is_latest = self.generation.load(Ordering::Acquire) == loaded_in;
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        history.add(changes, generation);
        if changes.meanings {
            entries.names.clear();
            entries.schemas.clear();
            entries.types.clear();
            entries.domains.clear();
        }
        let relations = &changes.relations;
        if relations.contains(&Oid::INVALID) {
            entries.tables.clear();
            entries.stored.clear();
            entries.indexes.clear();
            entries.enums.clear();
            entries.statistics.clear();
            entries.extended.clear();
            return;
        }
        relations.iter().for_each(|oid| entries.forget(*oid));
        for oid in &changes.statistics {
            entries.forget_statistics(*oid);
        }
        if is_latest {
            loaded.into_iter().for_each(|table| entries.tables.insert(table.oid, table));
        }
    }

    /// Forgets everything: something was changed that all databases share.
    pub fn forget_all(&self) {
        let relations = FactSet::from_iter([Oid::INVALID]);
        let all = Changes { relations, any: true, meanings: true, ..Changes::default() };
        self.invalidate(&all, Vec::new(), 0);
    }

    /// The generation up to which what stood on `footing` in generation `since` is as good as ever; none: it is stale.
    fn good_until(&self, since: u64, footing: &Footing) -> Option<u64> {
        let guard = self.entries.read();
        guard.1.unchanged(since, footing).then(|| self.generation())
    }
}

/// What a transaction that has changed catalogs has looked up.
#[derive(Default)]
struct Own {
    entries: Entries,
    /// How many rows it had written to catalogs when it loaded these descriptions.
    written: FactMap<Oid, u64>,
}

/// A session's view of the catalogs.
pub struct SessionCatalog {
    store: Arc<CatalogStore>,
    shared: Arc<SharedCache>,
    /// This transaction has changed catalogs: the shared part is not for it.
    dirty: Cell<bool>,
    /// Rises with each change of this session's own, and when one is taken back.
    own_changes: Cell<u64>,
    own: RefCell<Own>,
    /// The generation that `own` belongs to: what others change does not stay in it either.
    own_generation: Cell<u64>,
    /// Rows of catalogs are written otherwise than by [`Catalogs`]: by a superuser's INSERT, UPDATE or DELETE.
    written_by_hand: Cell<bool>,
    changed: RefCell<Changes>,
    /// What is looked up is noted here, while something is made from it.
    watch: RefCell<Option<Footing>>,
    tally: CatalogTally,
    /// Descriptions made.
    made: Cell<u64>,
}

impl SessionCatalog {
    /// A view without changes of its own.
    pub fn new(store: Arc<CatalogStore>, shared: Arc<SharedCache>) -> SessionCatalog {
        SessionCatalog {
            store,
            shared,
            dirty: Cell::new(false),
            own_changes: Cell::new(0),
            own: RefCell::default(),
            own_generation: Cell::new(0),
            written_by_hand: Cell::new(false),
            changed: RefCell::default(),
            watch: RefCell::default(),
            tally: CatalogTally::default(),
            made: Cell::new(0),
        }
    }

    /// What has been written to catalogs since it was last taken.
    pub fn tally(&self) -> &CatalogTally {
        &self.tally
    }

    /// How many descriptions of relations it has made from their rows.
    pub fn descriptions_made(&self) -> u64 {
        self.made.get()
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

    /// As of which changes of its own this transaction sees the catalogs, if it has made any: what it made from them since is good in this
    /// transaction while that and the generation stay as they are. None too if nobody knows when it writes to them.
    pub fn own_version(&self) -> Option<u64> {
        (self.dirty.get() && !self.written_by_hand.get()).then(|| self.own_changes.get())
    }

    fn note_own_change(&self) {
        self.own_changes.set(self.own_changes.get() + 1);
    }

    /// What `make` makes, and what it stands on: good as long as [`SessionCatalog::still_good`] says so.
    pub fn watched<T>(&self, make: impl FnOnce() -> T) -> (T, Footing) {
        // One within another: the outer stands on what the inner stands on.
        let outer = self.watch.replace(Some(Footing::default()));
        let made = make();
        let found = self.watch.replace(outer).unwrap_or_default();
        if let Some(outer) = &mut *self.watch.borrow_mut() {
            outer.add(found.clone());
        }
        (made, found)
    }

    /// Is what was made on `footing`, and was good in generation `good`, good now? Notes until when. This transaction's own changes
    /// have no generation yet: nothing is good then.
    pub fn still_good(&self, good: &mut u64, footing: &Footing) -> bool {
        if self.dirty.get() {
            return false;
        }
        if *good == self.generation() {
            return true;
        }
        match self.shared.good_until(*good, footing) {
            Some(until) => {
                *good = until;
                true
            }
            None => false,
        }
    }

    fn note(&self, note: impl FnOnce(&mut Footing)) {
        if let Some(footing) = &mut *self.watch.borrow_mut() {
            note(footing);
        }
    }

    fn note_name(&self, name: &str) {
        self.note(|footing| {
            if !footing.names.contains(name) {
                footing.names.insert(name.to_owned());
            }
        });
    }

    /// This transaction has changed what the catalogs say of `relation`, or type ([`Oid::INVALID`]: of anything), perhaps what
    /// names mean.
    pub fn changed(&self, relation: Oid) {
        let relations = FactSet::from_iter([relation]);
        self.change(Changes { relations, any: true, meanings: true, ..Changes::default() });
    }

    /// This transaction has changed `relation`, an index or other part of it included, or dropped it, and nothing else: all names
    /// that there are mean what they did.
    pub fn changed_alone(&self, relation: Oid) {
        let relations = FactSet::from_iter([relation]);
        self.change(Changes { relations, meanings: true, ..Changes::default() });
    }

    /// This transaction has changed what is said of `relation` itself or its columns, be it only their size, age or values, and nothing else:
    /// VACUUM and ANALYZE do so all the time, and what names mean need not be looked up again for it.
    pub fn changed_within(&self, relation: Oid) {
        let relations = FactSet::from_iter([relation]);
        self.change(Changes { relations, ..Changes::default() });
    }

    /// This transaction has changed what is known of the values in columns of `relation`, and nothing else.
    pub fn changed_statistics(&self, relation: Oid) {
        let statistics = FactSet::from_iter([relation]);
        self.change(Changes { statistics, ..Changes::default() });
    }

    /// This transaction writes to a catalog as to any table: it is not known when.
    pub fn write_by_hand(&self) {
        self.written_by_hand.set(true);
    }

    /// This transaction has made or dropped `relation`, or a type that belongs to one, of that name.
    pub fn changed_named(&self, relation: Oid, name: &str) {
        let names = [name.to_owned()].into();
        let relations = FactSet::from_iter([relation]);
        self.change(Changes { relations, names, meanings: true, ..Changes::default() });
    }

    fn change(&self, changes: Changes) {
        self.dirty.set(true);
        self.note_own_change();
        let own = &mut *self.own.borrow_mut();
        if changes.are_of_statistics() {
            for oid in &changes.statistics {
                own.entries.forget_statistics(*oid);
            }
        } else {
            *own = Own::default();
        }
        self.changed.borrow_mut().add(changes);
    }

    /// The transaction has committed: all sessions forget what it changed. Called before locks go.
    pub fn committed(&self) {
        if self.dirty.replace(false) {
            self.note_own_change();
            let loaded = if self.written_by_hand.get() { Vec::new() } else { self.settled() };
            self.shared.invalidate(&self.changed.take(), loaded, self.own_generation.get());
            *self.own.borrow_mut() = Own::default();
        }
        self.written_by_hand.set(false);
    }

    /// The descriptions of its own that were loaded after the last row that this transaction wrote.
    fn settled(&self) -> Vec<Arc<Table>> {
        let own = self.own.borrow();
        let written = self.tally.written();
        let last = own.written.iter().filter(|(_, then)| **then == written);
        last.filter_map(|(oid, _)| own.entries.tables.get(*oid).cloned()).collect()
    }

    /// The transaction, or a savepoint of it, was rolled back.
    pub fn rolled_back(&self, whole: bool) {
        if self.dirty.get() {
            self.note_own_change();
        }
        *self.own.borrow_mut() = Own::default();
        if whole {
            self.dirty.set(false);
            self.written_by_hand.set(false);
            *self.changed.borrow_mut() = Changes::default();
        }
    }

    /// Looks in the right part, else loads and keeps what it loaded.
    fn cached<T: Clone>(
        &self,
        what: Subject,
        look: impl Fn(&Entries) -> Option<T>,
        load: impl FnOnce() -> Result<Option<T>>,
        keep: impl FnOnce(&mut Entries, T),
    ) -> Result<Option<T>> {
        if self.dirty.get() {
            let generation = self.shared.generation();
            if self.own_generation.replace(generation) != generation {
                *self.own.borrow_mut() = Own::default();
            }
            if let Some(found) = look(&self.own.borrow().entries) {
                return Ok(Some(found));
            }
            if self.changed.borrow().spare(what)
                && let Some(found) = look(&self.shared.entries.read().0)
            {
                return Ok(Some(found));
            }
            let written = self.tally.written();
            let loaded = load()?;
            if let Some(loaded) = &loaded {
                let own = &mut *self.own.borrow_mut();
                keep(&mut own.entries, loaded.clone());
                if let Subject::Relation(oid) = what {
                    // Of what else there is of a relation nothing stays.
                    own.written.insert(oid, written);
                }
            }
            return Ok(loaded);
        }
        if let Some(found) = look(&self.shared.entries.read().0) {
            return Ok(Some(found));
        }
        let generation = self.shared.generation();
        let loaded = load()?;
        if let Some(loaded) = &loaded {
            let mut entries = self.shared.entries.write();
            if self.shared.generation() == generation {
                keep(&mut entries.0, loaded.clone());
            }
        }
        Ok(loaded)
    }

    /// The relation with that OID.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn table(&self, txn: &Transaction, oid: Oid) -> Result<Option<Arc<Table>>> {
        self.note(|footing| {
            footing.relations.insert(oid);
        });
        self.cached(
            Subject::Relation(oid),
            |e| e.tables.get(oid).cloned(),
            || {
                self.made.set(self.made.get() + 1);
                load::load_table(&self.rows(txn).at_one_moment(), oid)
            },
            |e, table| {
                e.tables.insert(oid, table);
            },
        )
    }

    /// Where the relation with that OID is stored. For who asks it of every relation, and nothing else: a description takes many more rows
    /// to make, and more memory to keep.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn storage_of(&self, txn: &Transaction, oid: Oid) -> Result<Option<RelationId>> {
        let found = self.cached(
            Subject::Relation(oid),
            |e| e.tables.get(oid).map(|t| t.storage).or_else(|| e.stored.get(&oid).copied()),
            || {
                let rows = self.rows(txn);
                let classes = rows.find("pg_class", &[("oid", Datum::Oid(oid))])?;
                Ok(classes.first().map(|class| load::storage(&rows, class)))
            },
            |e, stored| {
                make_room(&mut e.stored, MOST_SHORT);
                e.stored.insert(oid, stored);
            },
        )?;
        Ok(found.flatten())
    }

    /// The indexes of the table with that OID, in no order. As [`SessionCatalog::storage_of`].
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn index_oids(&self, txn: &Transaction, table: Oid) -> Result<Arc<[Oid]>> {
        let found = self.cached(
            Subject::Relation(table),
            |e| {
                let described = e.tables.get(table);
                let described = described.map(|t| t.indexes.iter().map(|i| i.oid).collect());
                described.or_else(|| e.indexes.get(&table).cloned())
            },
            || {
                let rows = self.rows(txn).find("pg_index", &[("indrelid", Datum::Oid(table))])?;
                Ok(Some(rows.iter().map(|row| row.oid("indexrelid")).collect()))
            },
            |e, indexes| {
                make_room(&mut e.indexes, MOST_SHORT);
                e.indexes.insert(table, indexes);
            },
        )?;
        Ok(found.unwrap_or_default())
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
        self.note_name(name);
        let found = self.cached(
            Subject::Name,
            |e| meaning(&e.names, namespace, name),
            || {
                let find =
                    [("relname", Datum::text(name)), ("relnamespace", Datum::Oid(namespace))];
                let rows = self.rows(txn).find("pg_class", &find)?;
                Ok(Some(rows.first().map(|r| r.oid("oid"))))
            },
            |e, oid| {
                note_meaning(&mut e.names, MOST_SHORT, (namespace, name), oid);
            },
        )?;
        Ok(found.flatten())
    }

    /// The OID of a schema.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn schema_oid(&self, txn: &Transaction, name: &str) -> Result<Option<Oid>> {
        let found = self.cached(
            Subject::Name,
            |e| e.schemas.get(name).copied(),
            || {
                let find = [("nspname", Datum::text(name))];
                let rows = self.rows(txn).find("pg_namespace", &find)?;
                Ok(Some(rows.first().map(|r| r.oid("oid"))))
            },
            |e, oid| {
                make_room(&mut e.schemas, MOST_LONG);
                e.schemas.insert(name.to_owned(), oid);
            },
        )?;
        Ok(found.flatten())
    }

    /// The OID of type `name` in schema `namespace`.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn type_oid(&self, txn: &Transaction, namespace: Oid, name: &str) -> Result<Option<Oid>> {
        self.note_name(name);
        let found = self.cached(
            Subject::Name,
            |e| meaning(&e.types, namespace, name),
            || {
                let find =
                    [("typname", Datum::text(name)), ("typnamespace", Datum::Oid(namespace))];
                let rows = self.rows(txn).find("pg_type", &find)?;
                Ok(Some(rows.first().map(|r| r.oid("oid"))))
            },
            |e, oid| {
                note_meaning(&mut e.types, MOST_LONG, (namespace, name), oid);
            },
        )?;
        Ok(found.flatten())
    }

    /// The labels of an enum type.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn enum_labels(&self, txn: &Transaction, ty: Oid) -> Result<Arc<EnumLabels>> {
        self.note(|footing| {
            footing.relations.insert(ty);
        });
        let found = self.cached(
            Subject::Relation(ty),
            |e| e.enums.get(&ty).cloned(),
            || EnumLabels::load(&self.rows(txn), ty).map(|l| Some(Arc::new(l))),
            |e, labels| {
                make_room(&mut e.enums, MOST_LONG);
                e.enums.insert(ty, labels);
            },
        )?;
        Ok(found.unwrap_or_default())
    }

    /// What values of a domain must satisfy. Plans do not stand on it: they ask when they run.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn domain(&self, txn: &Transaction, ty: Oid) -> Result<Arc<DomainConstraints>> {
        let found = self.cached(
            Subject::Name,
            |e| e.domains.get(&ty).cloned(),
            || {
                DomainConstraints::load(&self.rows(txn).at_one_moment(), ty)
                    .map(|c| Some(Arc::new(c)))
            },
            |e, constraints| {
                make_room(&mut e.domains, MOST_LONG);
                e.domains.insert(ty, constraints);
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
        self.note(|footing| {
            footing.relations.insert(table);
        });
        let found = self.cached(
            Subject::Statistics(table),
            |e| e.statistics.get(&table)?.get(&column).cloned(),
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
                if !e.statistics.contains_key(&table) {
                    make_room(&mut e.statistics, MOST_LONG);
                }
                e.statistics.entry(table).or_default().insert(column, statistics);
            },
        )?;
        Ok(found.flatten())
    }

    /// A table's extended statistics, gathered or not.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn extended_statistics(
        &self,
        txn: &Transaction,
        table: Oid,
    ) -> Result<Arc<[ExtendedStatistics]>> {
        self.note(|footing| {
            footing.relations.insert(table);
        });
        let found = self.cached(
            Subject::Statistics(table),
            |e| e.extended.get(&table).cloned(),
            || ExtendedStatistics::load(&self.rows(txn), table).map(|all| Some(all.into())),
            |e, all| {
                make_room(&mut e.extended, MOST_LONG);
                e.extended.insert(table, all);
            },
        )?;
        Ok(found.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_they_mean_in_each_schema() {
        let mut names = HashMap::new();
        for schema in 0..1000 {
            note_meaning(&mut names, 16, (Oid(schema), "a"), Some(Oid(schema + 1)));
            note_meaning(&mut names, 16, (Oid(schema), "b"), None);
            assert_eq!(meaning(&names, Oid(schema), "a"), Some(Some(Oid(schema + 1))));
            assert_eq!(meaning(&names, Oid(schema), "b"), Some(None));
            assert_eq!(meaning(&names, Oid(schema + 1), "a"), None);
            assert!(names["a"].len() <= MOST_SCHEMAS);
        }
        note_meaning(&mut names, 16, (Oid(999), "b"), Some(Oid(7)));
        assert_eq!(meaning(&names, Oid(999), "b"), Some(Some(Oid(7))));
        for n in 0..100 {
            note_meaning(&mut names, 16, (Oid(1), &n.to_string()), None);
            assert!(names.len() <= 16);
        }
    }

    #[test]
    fn entries_are_so_many_and_no_more() {
        let mut map = HashMap::new();
        for n in 0..100_000 {
            make_room(&mut map, 4096);
            map.insert(n, ());
            assert!(map.len() <= 4096 && map.len() >= 2048.min(n + 1));
            assert!(map.contains_key(&n));
        }
    }
}
