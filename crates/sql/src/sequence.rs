//! Sequences.
//!
//! # Layout
//! A sequence is a heap of one frozen row (last_value, log_cnt, is_called), changed in place and outside
//! transactions. What it counts by is in `pg_sequence`.
//!
//! # Invariants
//! A value that `nextval` has returned, in a transaction that committed, is never returned again, a crash
//! notwithstanding: the row on disk is kept [`AHEAD`] values ahead of those handed out, and whoever reads the
//! row first has the exact value written; and the transaction that does so gets an XID, so that its commit waits for the record.
//!
//! ALTER SEQUENCE gives it a new file with the value at that time, which counts once it has committed. So whoever takes values or sets one
//! holds RowExclusive on it until his transaction ends, as in PostgreSQL: none is taken of the old file meanwhile.
//!
//! # Crash cases
//! After a crash up to [`AHEAD`] values are skipped. An unlogged sequence starts anew: its init fork has its first row.

use crate::session::SessionState;
use base::sync::{Arc, Mutex, Rank};
use base::{Error, Oid, RelationId, Result, Tid, bail};
use buffer::Persistence;
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, RelationPersistence, Table};
use engine::relation::RowEncoder;
use heap::{Heap, HeapScan, PageBatch, ScanOptions};
use page::tuple::{PhysicalAttr, TupleDesc};
use std::collections::HashMap;
use txn::LockMode;
use types::{Datum, oids};

/// How many values the row on disk is ahead of those handed out.
const AHEAD: i64 = 32;
const SEQUENCE_RANK: Rank = Rank(70);
const OPEN_RANK: Rank = Rank(960);

/// What a session remembers of a sequence: its last value there, and cached ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceCache {
    /// `currval`
    pub last: i64,
    /// Of the cached values, those up to this one are still to be handed out.
    pub cached: i64,
    /// Counts by.
    pub increment: i64,
    /// Where it was stored then: another place means that it was restarted, and nothing cached counts.
    pub storage: Option<RelationId>,
}

/// A sequence's parameters (`pg_sequence`).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after pg_sequence's columns")]
pub struct SequenceParameters {
    pub data_type: Oid,
    pub start: i64,
    pub increment: i64,
    pub max: i64,
    pub min: i64,
    pub cache: i64,
    pub cycle: bool,
}

/// What all sessions share of a sequence in use.
struct SharedSequence {
    tid: Tid,
    last: i64,
    called: bool,
    /// Values that may still be handed out without writing.
    ahead: i64,
}

/// The sequences in use, of all databases, by where they are stored.
pub struct Sequences {
    /// A leaf: files are removed under locks of greater rank than those of sequences in use.
    open: Mutex<HashMap<RelationId, Arc<Mutex<SharedSequence>>>>,
}

impl Default for Sequences {
    fn default() -> Self {
        Sequences { open: Mutex::new(OPEN_RANK, HashMap::new()) }
    }
}

impl Sequences {
    /// Forgets one whose files were removed; file number 0: all of the database's.
    pub fn forget(&self, removed: RelationId) {
        let mut open = self.open.lock();
        match removed.file_number {
            0 => open.retain(|id, _| id.database != removed.database),
            _ => drop(open.remove(&removed)),
        }
    }

    /// How many are in use.
    pub fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Is none in use?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The layout of a sequence's row.
pub fn row_desc() -> TupleDesc {
    TupleDesc::new(vec![PhysicalAttr::new(8, 8), PhysicalAttr::new(8, 8), PhysicalAttr::new(1, 1)])
}

/// A sequence's row as a tuple.
///
/// # Errors
/// None in fact.
pub fn row_tuple(last: i64, log_count: i64, called: bool) -> Result<Vec<u8>> {
    let types = vec![oids::INT8, oids::INT8, oids::BOOL];
    let mut tuple = Vec::new();
    RowEncoder::new(types, row_desc())
        .encode(&[Datum::Int8(last), Datum::Int8(log_count), Datum::Bool(called)], &mut tuple)?;
    Ok(tuple)
}

/// The parameters of a sequence.
///
/// # Errors
/// I/O.
pub fn parameters(state: &SessionState, sequence: Oid) -> Result<SequenceParameters> {
    let txn = state.txn()?;
    let rows =
        state.catalog.rows(&txn).find("pg_sequence", &[("seqrelid", Datum::Oid(sequence))])?;
    let Some(row) = rows.first() else {
        bail!(UNDEFINED_OBJECT, "cache lookup failed for sequence {sequence}");
    };
    Ok(SequenceParameters {
        data_type: row.oid("seqtypid"),
        start: row.int("seqstart"),
        increment: row.int("seqincrement"),
        max: row.int("seqmax"),
        min: row.int("seqmin"),
        cache: row.int("seqcache"),
        cycle: row.bool("seqcycle"),
    })
}

fn sequence_table(state: &SessionState, sequence: Oid) -> Result<Arc<Table>> {
    let txn = state.txn()?;
    match state.catalog.table(&txn, sequence)? {
        Some(table) if table.kind == RelationKind::Sequence => Ok(table),
        Some(table) => bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", table.name),
        None => bail!(UNDEFINED_TABLE, "relation with OID {sequence} does not exist"),
    }
}

/// The sequence, to take values of it: its file is not replaced before the transaction has ended.
fn held(state: &SessionState, sequence: Oid) -> Result<Arc<Table>> {
    crate::relations::lock(state, sequence, LockMode::RowExclusive)?;
    let table = sequence_table(state, sequence)?;
    crate::relations::check_own(state, &table, "access temporary tables")?;
    Ok(table)
}

/// The row of a sequence as it is on the page: where, last value, is_called.
fn read_row(state: &SessionState, heap: &Heap) -> Result<(Tid, i64, bool)> {
    let txn = state.txn()?;
    let mut scan = HeapScan::new(heap, txn.take_latest_snapshot(), ScanOptions::default())?;
    let mut batch = PageBatch::new();
    if scan.next_page(&mut batch)?
        && let Some(found) = batch.iter().next()
    {
        let types = [oids::INT8, oids::INT8, oids::BOOL];
        let row = engine::relation::decode_tuple(heap, found.tuple.bytes, &row_desc(), &types)?;
        if let [Datum::Int8(last), _, Datum::Bool(called)] = row[..] {
            return Ok((found.tid, last, called));
        }
    }
    Err(Error::corrupt_file("sequence has no row"))
}

fn shared(
    state: &SessionState,
    table: &Arc<Table>,
    heap: &Heap,
) -> Result<Arc<Mutex<SharedSequence>>> {
    let id = heap.relation().id();
    if let Some(shared) = state.cluster.sequences.open.lock().get(&id) {
        return Ok(Arc::clone(shared));
    }
    let (tid, last, called) = read_row(state, heap)?;
    debug_assert_eq!(table.storage, Some(id));
    let fresh = SharedSequence { tid, last, called, ahead: 0 };
    let mut open = state.cluster.sequences.open.lock();
    Ok(Arc::clone(open.entry(id).or_insert_with(|| Arc::new(Mutex::new(SEQUENCE_RANK, fresh)))))
}

/// The transaction gets an XID, if the sequence is logged: so that its commit waits for what it is going to log, were that all it does.
fn will_be_durable(state: &SessionState, heap: &Heap) -> Result<()> {
    if heap.relation().persistence() == Persistence::Permanent {
        state.txn()?.xid()?;
    }
    Ok(())
}

fn write(heap: &Heap, tid: Tid, last: i64, called: bool) -> Result<()> {
    heap.update_in_place(tid, &row_tuple(last, 0, called)?)
}

/// A read-only transaction takes values of its session's temporary sequences only.
fn not_read_only(state: &SessionState, table: &Table, what: &str) -> Result<()> {
    if table.persistence != RelationPersistence::Temporary && state.txn()?.is_read_only() {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {what} in a read-only transaction");
    }
    Ok(())
}

/// `nextval` by OID.
///
/// # Errors
/// `2200H` at the end; `42501`; I/O.
pub fn next_value(state: &SessionState, sequence: Oid) -> Result<i64> {
    let table = held(state, sequence)?;
    not_read_only(state, &table, "nextval()")?;
    let storage = table.storage;
    let mut cache = state.sequences.borrow().get(&sequence).copied().unwrap_or_default();
    if cache.storage == storage && cache.increment != 0 && cache.last != cache.cached {
        cache.last += cache.increment;
        state.sequences.borrow_mut().insert(sequence, cache);
        state.last_sequence.set(sequence);
        return Ok(cache.last);
    }
    let parameters = parameters(state, sequence)?;
    let heap = state.open_relation(&table)?.heap;
    let shared = shared(state, &table, &heap)?;
    let mut s = shared.lock();
    let (first, last) = advance(&parameters, s.last, s.called, &table)?;
    let taken = (last - first) / parameters.increment + 1;
    if s.ahead < taken || !s.called {
        // The row goes ahead of what is handed out, but not past the bounds.
        let reserve = parameters.increment.saturating_mul(AHEAD);
        let ahead_of = last.saturating_add(reserve).clamp(parameters.min, parameters.max);
        will_be_durable(state, &heap)?;
        write(&heap, s.tid, ahead_of, true)?;
        s.ahead = (ahead_of - last) / parameters.increment;
    } else {
        s.ahead -= taken;
    }
    s.last = last;
    s.called = true;
    drop(s);
    let cache =
        SequenceCache { last: first, cached: last, increment: parameters.increment, storage };
    state.sequences.borrow_mut().insert(sequence, cache);
    state.last_sequence.set(sequence);
    Ok(first)
}

/// The first and last of the next `cache` values.
fn advance(p: &SequenceParameters, last: i64, called: bool, table: &Table) -> Result<(i64, i64)> {
    let step =
        |value: i64| value.checked_add(p.increment).filter(|next| (p.min..=p.max).contains(next));
    let first = if !called {
        last
    } else {
        match step(last) {
            Some(next) => next,
            None if p.cycle => {
                if p.increment > 0 {
                    p.min
                } else {
                    p.max
                }
            }
            None => {
                let (word, bound) =
                    if p.increment > 0 { ("maximum", p.max) } else { ("minimum", p.min) };
                return Err(Error::sql(
                    base::SqlState(*b"2200H"),
                    format!(
                        "nextval: reached {word} value of sequence \"{}\" ({bound})",
                        table.name
                    ),
                ));
            }
        }
    };
    let mut end = first;
    for _ in 1..p.cache {
        match step(end) {
            Some(next) => end = next,
            None => break,
        }
    }
    Ok((first, end))
}

/// `setval`
///
/// # Errors
/// `22003` out of bounds; `42501`; I/O.
pub fn set_value(state: &SessionState, sequence: Oid, value: i64, called: bool) -> Result<i64> {
    let table = held(state, sequence)?;
    not_read_only(state, &table, "setval()")?;
    let parameters = parameters(state, sequence)?;
    if !(parameters.min..=parameters.max).contains(&value) {
        bail!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
            table.name,
            parameters.min,
            parameters.max
        );
    }
    let heap = state.open_relation(&table)?.heap;
    let shared = shared(state, &table, &heap)?;
    will_be_durable(state, &heap)?;
    let mut s = shared.lock();
    write(&heap, s.tid, value, called)?;
    (s.last, s.called, s.ahead) = (value, called, 0);
    drop(s);
    if let Some(known) = state.sequences.borrow_mut().get_mut(&sequence) {
        // What was cached is for nobody any more; the value last taken stays what it was.
        known.cached = known.last;
    }
    if called {
        let cache = SequenceCache {
            last: value,
            cached: value,
            increment: parameters.increment,
            storage: table.storage,
        };
        state.sequences.borrow_mut().insert(sequence, cache);
        state.last_sequence.set(sequence);
    }
    Ok(value)
}

/// `currval`
///
/// # Errors
/// `55000` when the session has not called `nextval` yet.
pub fn current_value(state: &SessionState, sequence: Oid) -> Result<i64> {
    let table = sequence_table(state, sequence)?;
    match state.sequences.borrow().get(&sequence) {
        Some(cache) => Ok(cache.last),
        None => bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "currval of sequence \"{}\" is not yet defined in this session",
            table.name
        ),
    }
}

/// `lastval`
///
/// # Errors
/// `55000` when the session has not called `nextval` yet.
pub fn last_value(state: &SessionState) -> Result<i64> {
    let sequence = state.last_sequence.get();
    // It may have been dropped, or its creation rolled back, or what the session knew discarded.
    if !state.sequences.borrow().contains_key(&sequence)
        || state.catalog.table(&*state.txn()?, sequence)?.is_none()
    {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "lastval is not yet defined in this session");
    }
    current_value(state, sequence)
}

/// (last value, is_called) as they really are.
///
/// # Errors
/// I/O.
pub fn exact(state: &SessionState, table: &Arc<Table>) -> Result<(i64, bool)> {
    let heap = state.open_relation(table)?.heap;
    let shared = shared(state, table, &heap)?;
    let s = shared.lock();
    Ok((s.last, s.called))
}

/// Writes the exact value, for somebody who is going to read the row.
///
/// # Errors
/// I/O.
pub fn write_exact(state: &SessionState, table: &Arc<Table>) -> Result<()> {
    let heap = state.open_relation(table)?.heap;
    let id = heap.relation().id();
    let shared = state.cluster.sequences.open.lock().get(&id).cloned();
    if let Some(shared) = shared {
        let mut s = shared.lock();
        if s.ahead > 0 {
            write(&heap, s.tid, s.last, s.called)?;
            s.ahead = 0;
        }
    }
    Ok(())
}
