//! What autovacuum knows of a database's tables, kept from look to look.
//!
//! # Purpose
//! An idle server with tens of thousands of tables is not to spend its time on reading that nothing has changed.
//!
//! # Invariants
//! - What `pg_class` says is kept for as long as nobody has written to it (`engine::catalog::class_writes`): a vacuum's and an analyze's
//!   results, storage parameters, new and dropped tables are all written there. What the settings say, for as long as they are as they were.
//! - Counts, and the next XID that ages are measured by, are as of each look.
//! - While somebody has changes of `pg_class` under way each look reads it.

use super::autovacuum::table_options;
use crate::activity::TableActivity;
use crate::cluster::Cluster;
use base::{Oid, Result, Xid};
use engine::catalog::options::RelationOptions;
use std::collections::HashMap;
use std::sync::Arc;
use types::Datum;
use vacuum::autovacuum::{TableState, Thresholds};

/// A database's tables as `pg_class` and the settings have them.
pub(super) struct KnownTables {
    /// The writes to `pg_class` that it has seen; None: others may have been under way.
    writes: Option<u64>,
    /// The settings' generation.
    settings: u64,
    /// The tables that autovacuum looks after, without counts.
    tables: Vec<TableState>,
    /// Temporary tables: somebody may have left them behind.
    pub temporary: Vec<Oid>,
}

const COLUMNS: [&str; 10] = [
    "oid",
    "relkind",
    "relpersistence",
    "relfilenode",
    "relfrozenxid8",
    "reltuples",
    "relpages",
    "relallfrozen",
    "reltoastrelid",
    "reloptions",
];

/// `name=value` texts.
fn options(stored: &Datum) -> RelationOptions {
    let Datum::Array(stored) = stored else { return RelationOptions::default() };
    let texts = stored.elements.iter().filter_map(|e| match e {
        Datum::Text(text) => text.as_str().split_once('='),
        _ => None,
    });
    texts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn count(value: &Datum) -> u32 {
    match value {
        Datum::Int4(n) => u32::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

/// What `pg_class` has of autovacuum's concern.
#[derive(Default)]
struct Found {
    tables: Vec<TableState>,
    temporary: Vec<Oid>,
    /// Of those that have any.
    options: HashMap<Oid, RelationOptions>,
    /// TOAST table → table.
    owners: HashMap<Oid, Oid>,
}

impl Found {
    fn add(&mut self, row: &[Datum]) {
        let [
            Datum::Oid(oid),
            Datum::Char(kind),
            Datum::Char(persistence),
            Datum::Oid(file),
            frozen,
            rows,
            pages,
            all_frozen,
            toast,
            stored,
        ] = row
        else {
            return;
        };
        if !matches!(kind, b'r' | b'm' | b't') {
            return;
        }
        if *persistence == b't' {
            if *kind != b't' {
                self.temporary.push(*oid);
            }
            return;
        }
        if let Datum::Oid(toast) = toast
            && toast.is_valid()
        {
            self.owners.insert(*toast, *oid);
        }
        let own = options(stored);
        if !own.is_empty() {
            self.options.insert(*oid, own);
        }
        if file.is_valid() {
            self.tables.push(TableState {
                oid: *oid,
                relfrozenxid: if let Datum::Xid8(x) = frozen { Xid(*x) } else { Xid::INVALID },
                reltuples: if let Datum::Float4(n) = rows { f64::from(*n) } else { 0.0 },
                relpages: count(pages),
                all_frozen_pages: count(all_frozen),
                dead_tuples: 0,
                inserts_since_vacuum: 0,
                changes_since_analyze: 0,
                analyzable: super::autovacuum::is_analyzable(*kind, *oid),
                thresholds: Thresholds::default(),
            });
        }
    }

    /// The storage parameters that a table goes by.
    fn options(&self, table: Oid) -> Option<&RelationOptions> {
        let of_owner = || self.owners.get(&table).and_then(|owner| self.options.get(owner));
        self.options.get(&table).or_else(of_owner)
    }
}

impl KnownTables {
    /// Reads them.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn read(cluster: &Cluster, database: Oid) -> Result<KnownTables> {
        let settings = cluster.settings().generation();
        let server = super::autovacuum::server_thresholds(cluster);
        // Before the snapshot by which the rows are read.
        let writes = cluster.with_catalogs(database, |c| c.settled_class())?;
        base::stop_point!("sql.autovacuum.tables.read");
        let mut found = Found::default();
        cluster.with_catalogs(database, |c| {
            c.scan_columns("pg_class", &COLUMNS, &mut |row| {
                found.add(row);
                Ok(true)
            })
        })?;
        let mut tables = std::mem::take(&mut found.tables);
        for table in &mut tables {
            table.thresholds = match found.options(table.oid) {
                Some(options) => table_options(&server, options),
                None => server,
            };
        }
        Ok(KnownTables { writes, settings, tables, temporary: found.temporary })
    }

    /// Do they hold still?
    pub fn hold(&self, cluster: &Cluster, database: Oid) -> bool {
        self.writes == Some(cluster.storage().class_writes.of(database))
            && self.settings == cluster.settings().generation()
    }

    /// The writes to `pg_class` that they have seen, if that is known.
    pub fn writes(&self) -> Option<u64> {
        self.writes
    }

    /// The tables with their counts of now.
    pub fn with_counts(&self, activity: &TableActivity) -> Vec<TableState> {
        let mut tables = self.tables.clone();
        for table in &mut tables {
            super::autovacuum::count(table, activity);
        }
        tables
    }
}

/// What is known of databases' tables.
#[derive(Default)]
pub(super) struct Known(HashMap<Oid, Database>);

struct Database {
    tables: Arc<KnownTables>,
    /// `datfrozenxid` was as old as the oldest table when `pg_class` had been written to so often.
    frozen_at: Option<u64>,
}

impl Known {
    /// A database's tables, as they were when they were read.
    pub fn tables(&self, database: Oid) -> Option<Arc<KnownTables>> {
        self.0.get(&database).map(|known| Arc::clone(&known.tables))
    }

    /// They were read.
    pub fn learn(&mut self, database: Oid, tables: Arc<KnownTables>) {
        let frozen_at = self.0.get(&database).and_then(|known| known.frozen_at);
        self.0.insert(database, Database { tables, frozen_at });
    }

    /// `datfrozenxid` is that of the oldest table; it was when `pg_class` had been written to `writes` times, and nobody was about to.
    pub fn frozen(&mut self, database: Oid, writes: Option<u64>) {
        if let Some(known) = self.0.get_mut(&database) {
            known.frozen_at = writes;
        }
    }

    /// Is it as it was found then?
    pub fn is_frozen(&self, database: Oid, writes: u64) -> bool {
        self.0.get(&database).is_some_and(|known| known.frozen_at == Some(writes))
    }

    /// These are the databases that there are.
    pub fn keep(&mut self, databases: impl Fn(Oid) -> bool) {
        self.0.retain(|database, _| databases(*database));
    }
}
