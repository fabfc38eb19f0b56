//! Statistics as a transaction has read them (`stats_fetch_consistency`).
//!
//! # Purpose
//! Who reads an object's statistics twice in a transaction, or joins two views of them, is to meet the same figures.
//!
//! # Invariants
//! - `cache`: an object's counts are as they were when the transaction first asked for them; if there were none, there are none. `snapshot`: all are
//!   as of its first question. `none`: as they are.
//! - What was read is forgotten at the transaction's end, by `pg_stat_clear_snapshot()`, and when the setting changes.
//! - What autovacuum and VACUUM go by is never read here: always as it is.
//!
//! # Memory
//! Some 300 bytes for each relation that has counts and was asked for (`snapshot`: that has counts), until the transaction ends.
//!
//! # Differs from PostgreSQL
//! A relation's rows and its blocks are two objects: each stays put by itself. `pg_stat_activity` is always as it is.

use super::reset::{self, BackgroundWriter, Baseline, Checkpointer};
use super::{io, statistics};
use crate::activity::{TableActivity, TableCounts};
use crate::session::SessionState;
use base::{Oid, RelationId};
use buffer::BlockCounts;
use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::Datum;

/// `stats_fetch_consistency`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consistency {
    /// Nothing is kept.
    None,
    /// What has been asked for.
    Cache,
    /// Everything.
    Snapshot,
}

impl Consistency {
    /// By its name.
    pub fn named(name: &str) -> Consistency {
        match name {
            "none" => Consistency::None,
            "snapshot" => Consistency::Snapshot,
            _ => Consistency::Cache,
        }
    }
}

/// Rows that a database's tables, those that are gone too, had read and changed.
#[derive(Clone, Copy, Default)]
pub(super) struct RowSums {
    pub read: i64,
    pub fetched: i64,
    pub inserted: i64,
    pub updated: i64,
    pub deleted: i64,
}

impl RowSums {
    fn of(activity: &TableActivity) -> RowSums {
        let mut sums = RowSums::default();
        sums.add(activity.of_gone());
        for (_, counts) in activity.all() {
            sums.add(&counts);
        }
        sums
    }

    fn add(&mut self, counts: &TableCounts) {
        self.read += counts.tuples_read.load(Ordering::Relaxed);
        self.fetched += counts.tuples_fetched.load(Ordering::Relaxed);
        self.inserted += counts.inserted.load(Ordering::Relaxed);
        self.updated += counts.updated.load(Ordering::Relaxed);
        self.deleted += counts.deleted.load(Ordering::Relaxed);
    }
}

/// A database's counters since their last reset.
#[derive(Clone, Copy, Default)]
pub(super) struct OfDatabase {
    pub counters: reset::Database,
    pub rows: RowSums,
}

/// The rows of a view that has few.
type Rows = Vec<Vec<Datum>>;

/// What such a view is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Wal,
    Archiver,
    CommitLog,
    Io,
    /// By a session's number.
    IoOf(i32),
    WalOf(i32),
}

impl Part {
    fn read(self, state: &SessionState) -> Rows {
        match self {
            Part::Wal => statistics::wal(state),
            Part::Archiver => statistics::archiver(state),
            Part::CommitLog => statistics::commit_log(state),
            Part::Io => io::of_server(state),
            Part::IoOf(pid) => io::of_pid(state, pid),
            Part::WalOf(pid) => io::wal_of_pid(state, pid),
        }
    }

    /// What is told of a session that began after the snapshot.
    fn of_nobody(self) -> Rows {
        if matches!(self, Part::WalOf(_)) { io::no_wal() } else { Vec::new() }
    }
}

/// What the transaction under way has read.
#[derive(Default)]
pub struct Fetched(RefCell<Held>);

#[derive(Default)]
struct Held {
    /// What the setting was; none: nothing was read.
    mode: Option<Consistency>,
    /// When all was read.
    taken_us: Option<i64>,
    relations: HashMap<Oid, Option<Arc<TableCounts>>>,
    blocks: HashMap<RelationId, BlockCounts>,
    databases: HashMap<Oid, OfDatabase>,
    background_writer: Option<Baseline<BackgroundWriter>>,
    checkpointer: Option<Baseline<Checkpointer>>,
    parts: HashMap<Part, Rows>,
}

impl Fetched {
    /// Forgets it.
    pub fn clear(&self) {
        let mut held = self.0.borrow_mut();
        if held.mode.is_some() {
            *held = Held::default();
        }
    }

    /// When the snapshot was taken, if one was.
    pub(super) fn taken_us(&self) -> Option<i64> {
        self.0.borrow().taken_us
    }

    /// What is held, if the setting has anything held.
    fn held(&self, state: &SessionState) -> Option<RefMut<'_, Held>> {
        let mode = state.derived().stats_consistency;
        let mut held = self.0.borrow_mut();
        if held.mode != Some(mode) {
            *held = Held { mode: Some(mode), ..Held::default() };
            if mode == Consistency::Snapshot {
                held.take(state);
            }
        }
        (mode != Consistency::None).then_some(held)
    }
}

impl Held {
    fn is_whole(&self) -> bool {
        self.taken_us.is_some()
    }

    fn take(&mut self, state: &SessionState) {
        self.taken_us = Some(base::sync::now_timestamp_us());
        let pool = &state.cluster.engine().pool;
        let shared = (Oid::INVALID, state.cluster.shared_activity());
        for (database, activity) in [(state.database.oid, &*state.database.activity), shared] {
            for (oid, counts) in activity.all() {
                self.relations.insert(oid, Some(Arc::new(counts.copy())));
            }
            self.blocks.extend(pool.block_counts_of_relations(database));
        }
        let databases = state.cluster.known_databases().into_iter().chain([Oid::INVALID]);
        self.databases = databases.map(|of| (of, read_database(state, of))).collect();
        self.background_writer = Some(reset::background_writer_since(state));
        self.checkpointer = Some(reset::checkpointer_since(state));
        let sessions = state.cluster.backends().all();
        let of_sessions = sessions.iter().flat_map(|b| [Part::IoOf(b.pid), Part::WalOf(b.pid)]);
        let of_server = [Part::Wal, Part::Archiver, Part::CommitLog, Part::Io];
        for part in of_server.into_iter().chain(of_sessions) {
            self.parts.insert(part, part.read(state));
        }
    }
}

/// A relation's counts.
pub(super) fn relation(state: &SessionState, oid: Oid) -> Option<Arc<TableCounts>> {
    let activity = &state.database.activity;
    let Some(mut held) = state.fetched.held(state) else { return activity.get(oid) };
    if let Some(found) = held.relations.get(&oid) {
        return found.clone();
    }
    if held.is_whole() {
        return None;
    }
    let found = activity.get(oid).map(|counts| Arc::new(counts.copy()));
    held.relations.insert(oid, found.clone());
    found
}

/// How often the blocks of the relation stored at `id` were asked for.
pub(super) fn blocks(state: &SessionState, id: RelationId) -> BlockCounts {
    let pool = &state.cluster.engine().pool;
    let Some(mut held) = state.fetched.held(state) else { return pool.block_counts(id) };
    if held.is_whole() {
        return held.blocks.get(&id).copied().unwrap_or_default();
    }
    *held.blocks.entry(id).or_insert_with(|| pool.block_counts(id))
}

/// A database's counters; of the shared relations those of [`Oid::INVALID`].
pub(super) fn database(state: &SessionState, of: Oid) -> OfDatabase {
    let Some(mut held) = state.fetched.held(state) else { return read_database(state, of) };
    if held.is_whole() {
        return held.databases.get(&of).copied().unwrap_or_default();
    }
    *held.databases.entry(of).or_insert_with(|| read_database(state, of))
}

fn read_database(state: &SessionState, of: Oid) -> OfDatabase {
    let rows = if of == Oid::INVALID {
        RowSums::of(state.cluster.shared_activity())
    } else {
        let known = state.cluster.known_database(of);
        known.map_or_else(RowSums::default, |database| RowSums::of(&database.activity))
    };
    OfDatabase { counters: reset::database_since(state, of), rows }
}

/// The background writer's counters since their last reset.
pub(super) fn background_writer(state: &SessionState) -> Baseline<BackgroundWriter> {
    let read = || reset::background_writer_since(state);
    match state.fetched.held(state) {
        Some(mut held) => *held.background_writer.get_or_insert_with(read),
        None => read(),
    }
}

/// The checkpointer's.
pub(super) fn checkpointer(state: &SessionState) -> Baseline<Checkpointer> {
    let read = || reset::checkpointer_since(state);
    match state.fetched.held(state) {
        Some(mut held) => *held.checkpointer.get_or_insert_with(read),
        None => read(),
    }
}

/// The rows of a view that has few.
pub(super) fn part(state: &SessionState, part: Part) -> Rows {
    let Some(mut held) = state.fetched.held(state) else { return part.read(state) };
    if held.is_whole() {
        return held.parts.get(&part).cloned().unwrap_or_else(|| part.of_nobody());
    }
    held.parts.entry(part).or_insert_with(|| part.read(state)).clone()
}
