//! Writing rows into a table with all its indexes and constraints.
//!
//! # Purpose
//! [`TableWriter`] is what INSERT, UPDATE, DELETE, COPY FROM and foreign-key actions share: it checks NOT NULL and
//! CHECK constraints, computes stored generated columns, forms the tuple, and keeps the indexes up.
//!
//! # Invariants
//! Rows have one value for every attribute of the table, dropped ones included (NULL).

mod index_writer;
pub(super) mod refused;
mod stored;

use super::check_list::CheckList;
use super::context::ExecContext;
use super::foreign_key::AfterCheck;
use super::unique_later::DoubtfulKey;
use crate::activity::TableChanges;
use base::{Error, Oid, Result, SqlError, SqlState, Tid, bail};
use btree::{InsertOutcome, KeyConflict, TupleLiveness, UniqueCheck};
use engine::catalog::model::{ForeignKey, Table};
use engine::relation::RowEncoder;
use expr::code::Code;
use expr::eval::EvalContext;
use expr::ops::identical;
use heap::{Heap, InsertState, RowQueue, TupleOutcome, UpdateDone, UpdateOptions};
use std::cell::RefCell;
use std::sync::Arc;
use txn::{RowLockMode, Wait};
use types::Datum;
use wal::BulkTurn;

pub use index_writer::HeapLiveness;
pub(crate) use index_writer::IndexWriter;
use index_writer::is_asked;
use stored::Generated;
pub(crate) use stored::columns_of_index;
pub use stored::{compile_stored, compile_stored_of};

/// A value as error details show it.
pub(crate) fn shown(ty: Oid, v: &Datum, x: &ExecContext<'_>) -> String {
    let Ok(v) = v.now() else { return "?".to_owned() };
    if v.is_null() {
        return "null".to_owned();
    }
    types::io::to_text(ty, v, x.env).unwrap_or_else(|_| "?".to_owned())
}

/// What a row could not be inserted for.
pub enum Inserted {
    /// It stands here.
    At(Tid),
    /// A row that arbitrates has its key: the root of its chain.
    Conflict(Tid),
}

/// Writes rows of one table.
pub struct TableWriter {
    table: Arc<Table>,
    heap: Arc<Heap>,
    encoder: RowEncoder,
    indexes: Vec<IndexWriter>,
    not_null: Vec<usize>,
    checks: Vec<(usize, Code)>,
    generated: Vec<Generated>,
    /// Virtual columns that may not be NULL: they are in no row.
    virtual_not_null: Vec<(usize, Code)>,
    state: InsertState,
    tuple: Vec<u8>,
    key_columns: Vec<i32>,
    indexed_columns: Vec<i32>,
    /// In the order in which they were made, which is that of the checks.
    foreign_keys: Vec<Arc<ForeignKey>>,
    bulk: bool,
    /// `session_replication_role` is `replica`.
    replica: bool,
    /// The columns of a refused row that are shown to who may not read the table; None: all.
    named: Option<Vec<i32>>,
    /// Keys of deferrable constraints that may be there twice.
    doubtful: CheckList,
    /// What was done since somebody last took it.
    pub(crate) changes: TableChanges,
    /// Lets those who commit go first, once it has written much.
    turn: BulkTurn,
}

/// Values of a foreign key in a row.
pub(crate) fn key_values(columns: &[i32], row: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|c| row[*c as usize - 1].clone()).collect()
}

impl TableWriter {
    /// Opens a table for writing.
    ///
    /// # Errors
    /// I/O; `42809` for what is not a table.
    pub fn new(x: &ExecContext<'_>, table: &Arc<Table>) -> Result<TableWriter> {
        if table.storage.is_none() {
            bail!(WRONG_OBJECT_TYPE, "cannot change relation \"{}\"", table.name);
        }
        let mut indexes = Vec::new();
        for i in &table.indexes {
            if i.ready {
                indexes.push(IndexWriter::new(x, table, i)?);
            }
        }
        let mut key_columns = Vec::new();
        for i in &indexes {
            if i.index.unique
                && i.predicate.is_none()
                && i.index.columns.iter().all(|c| c.expr.is_none())
            {
                key_columns.extend(i.index.columns[..i.index.key_columns].iter().map(|c| c.column));
            }
        }
        // An index that is being built concurrently gets an entry for a chain's root: its columns do not change
        // within a chain from the moment that the index is there.
        let indexed_columns =
            table.indexes.iter().filter(|i| i.live).flat_map(|i| columns_of_index(i)).collect();
        let mut not_null = Vec::new();
        let (mut generated, mut virtual_not_null) = (Vec::new(), Vec::new());
        for (n, c) in table.columns.iter().enumerate() {
            if c.dropped {
                continue;
            }
            if let Some(value) = c.virtual_value() {
                if c.not_null {
                    virtual_not_null.push((n, compile_stored_of(value, Some(table))?));
                }
                continue;
            }
            if c.not_null {
                not_null.push(n);
            }
            if c.is_generated()
                && let Some(d) = &c.default
            {
                generated.push(Generated::new(n, d, table)?);
            }
        }
        let checks = table
            .checks
            .iter()
            .enumerate()
            .filter(|(_, c)| c.enforced)
            .map(|(n, c)| Ok((n, compile_stored_of(&c.expr, Some(table))?)))
            .collect::<Result<_>>()?;
        let mut foreign_keys = table.foreign_keys.clone();
        foreign_keys.sort_by_key(|k| k.oid);
        Ok(TableWriter {
            foreign_keys,
            heap: x.relations.heap(table)?,
            encoder: RowEncoder::for_table(table),
            table: table.clone(),
            indexes,
            not_null,
            checks,
            generated,
            virtual_not_null,
            state: InsertState::new(),
            tuple: Vec::new(),
            key_columns,
            indexed_columns,
            bulk: false,
            replica: x.relations.is_replica(),
            named: None,
            doubtful: CheckList::default(),
            changes: TableChanges::default(),
            turn: BulkTurn::new(),
        })
    }

    /// Before the next rows: no page is latched, and no row waited for.
    #[inline]
    pub(crate) fn give_way(&mut self, x: &ExecContext<'_>, rows: usize) {
        let awaited = || x.txn.manager().locks().awaits(x.txn.backend());
        self.heap.context().wal.bulk_point(&mut self.turn, rows, awaited);
    }

    /// For many rows: a ring of buffers, the relation extended in steps; `frozen` as COPY FREEZE wants it
    /// (the caller has checked that it may). Call [`TableWriter::finish`] at the end.
    pub fn bulk(&mut self, frozen: bool) {
        self.state = InsertState::bulk(&self.heap.context().pool);
        self.state.frozen = frozen;
        self.state.skip_fsm = frozen;
        self.bulk = true;
    }

    /// Shows of refused rows nothing but these columns to who may not read the table.
    pub fn shows_only(&mut self, columns: Vec<i32>) {
        self.named = Some(columns);
    }

    /// Ends a bulk load.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(&mut self) -> Result<()> {
        if self.bulk {
            if self.state.frozen {
                self.heap.finish_unseen(&mut self.state)?;
            } else {
                self.heap.finish_bulk(&mut self.state)?;
            }
            self.bulk = false;
        }
        Ok(())
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
    /// Its heap.
    pub fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    fn error(&self, state: SqlState, message: String) -> SqlError {
        SqlError::new(state, message).table(&self.table.namespace_name, &self.table.name)
    }

    /// Computes generated columns, but those that are made of what a row that it takes the place of has too; then tests NOT NULL and CHECK.
    fn constrain(
        &self,
        old: &[Datum],
        row: &mut [Datum],
        x: &ExecContext<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        for g in &self.generated {
            // None is made of another.
            if !g.stays(old, row) {
                row[g.at] = g.code.eval(row, cx)?;
            }
        }
        for n in &self.not_null {
            if row[*n].is_null() {
                return Err(self.is_null(*n, row, x));
            }
        }
        for (n, code) in &self.virtual_not_null {
            if code.eval(row, cx)?.is_null() {
                return Err(self.is_null(*n, row, x));
            }
        }
        for (n, code) in &self.checks {
            if code.eval_bool(row, cx)? == Some(false) {
                let check = &self.table.checks[*n];
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    self.table.name, check.name
                );
                let e = self.error(SqlState::CHECK_VIOLATION, message).constraint(&check.name);
                return Err(self.with_row(e, row, x).into());
            }
        }
        Ok(())
    }

    fn is_null(&self, column: usize, row: &[Datum], x: &ExecContext<'_>) -> Error {
        let c = &self.table.columns[column];
        let message = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            c.name, self.table.name
        );
        let e = self.error(SqlState::NOT_NULL_VIOLATION, message).column(&c.name);
        self.with_row(e, row, x).into()
    }

    fn duplicate(
        &self,
        i: usize,
        row: &[Datum],
        x: &ExecContext<'_>,
        cx: &EvalContext<'_>,
    ) -> Error {
        let w = &self.indexes[i];
        // While an index is rebuilt concurrently there are two, and the constraint has the name of the valid one.
        let named = self.table.indexes.iter().find(|i| i.valid && i.stands_for(&w.index));
        let name = if w.index.valid { &w.index.name } else { &named.unwrap_or(&w.index).name };
        let message = format!("duplicate key value violates unique constraint \"{name}\"");
        let e = self.error(SqlState::UNIQUE_VIOLATION, message).constraint(name);
        // There may be more in the key than the user has put there himself.
        if !refused::may_show_key(x, &self.table, &w.index) {
            return e.into();
        }
        let key = w.key_text(row, &self.table, x, cx);
        e.detail(format!("Key {key} already exists.")).into()
    }

    /// Makes the index entries of a row at `tid`. `arbiters`: a conflict there is told, not raised.
    /// `old`: the version before, whose unchanged keys need no check.
    fn index_row(
        &mut self,
        row: &[Datum],
        tid: Tid,
        x: &ExecContext<'_>,
        cx: &EvalContext<'_>,
        arbiters: Option<&[Oid]>,
        changed: Option<&[bool]>,
    ) -> Result<Option<Tid>> {
        let heap = self.heap.clone();
        for i in 0..self.indexes.len() {
            let w = &mut self.indexes[i];
            if !w.encode(row, cx)? {
                continue;
            }
            let w = &self.indexes[i];
            let entry = Some((tid, w.index.name.as_str()));
            let liveness = HeapLiveness { heap: &heap, txn: x.txn, entry };
            let same_key = changed.is_some_and(|c| {
                !w.columns.iter().any(|n| usize::try_from(n - 1).is_ok_and(|n| c[n]))
            });
            let arbiter = arbiters.is_some_and(|a| is_asked(&w.index, a));
            let later = w.index.unique && !w.index.immediate;
            // A key that stays may have been there twice before.
            let check = match w.index.unique && (!same_key || later) {
                true if later => UniqueCheck::Partial(&liveness),
                true if arbiter => UniqueCheck::Now(&liveness),
                true => UniqueCheck::Yes(&liveness),
                false => UniqueCheck::No,
            };
            let outcome = {
                let values = w.values();
                if same_key {
                    w.tree.insert_version(&values, tid, check, Some(&liveness))?
                } else {
                    w.tree.insert(&values, tid, check)?
                }
            };
            match outcome {
                InsertOutcome::Inserted => {}
                InsertOutcome::InsertedMaybeDuplicate => {
                    let key = w.key(row, cx)?;
                    let doubtful = DoubtfulKey::new(&self.table, &w.index, key);
                    self.doubtful.push(AfterCheck::Unique(doubtful))?;
                }
                InsertOutcome::Conflict(other) if arbiter => return Ok(Some(other)),
                InsertOutcome::Conflict(_) => return Err(self.duplicate(i, row, x, cx)),
            }
        }
        Ok(None)
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// `23502`, `23514`, `23505`, `54000`, I/O.
    pub fn insert(&mut self, x: &ExecContext<'_>, row: &mut [Datum]) -> Result<Tid> {
        self.give_way(x, 1);
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        self.constrain(&[], row, x, &cx)?;
        let mut tuple = std::mem::take(&mut self.tuple);
        self.encoder.encode(row, &mut tuple)?;
        let tid = self.heap.insert(x.txn, &tuple, &mut self.state)?;
        self.tuple = tuple;
        self.changes.inserted += 1;
        self.index_row(row, tid, x, &cx, None, None)?;
        Ok(tid)
    }

    /// Inserts many rows, page by page.
    ///
    /// # Errors
    /// As [`TableWriter::insert`].
    pub fn insert_many(
        &mut self,
        x: &ExecContext<'_>,
        rows: &mut [Vec<Datum>],
    ) -> Result<Vec<Tid>> {
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        let mut tuples: Vec<Vec<u8>> = Vec::with_capacity(rows.len());
        for row in rows.iter_mut() {
            self.constrain(&[], row, x, &cx)?;
            let mut t = Vec::new();
            self.encoder.encode(row, &mut t)?;
            tuples.push(t);
        }
        let mut tids = Vec::with_capacity(rows.len());
        self.give_way(x, rows.len());
        self.heap.multi_insert(x.txn, &tuples, &mut self.state, &mut tids)?;
        self.changes.inserted += i64::try_from(tids.len()).unwrap_or(0);
        if !self.indexes.is_empty() {
            for (row, tid) in rows.iter().zip(&tids) {
                self.give_way(x, 1);
                self.index_row(row, *tid, x, &cx, None, None)?;
            }
        }
        Ok(tids)
    }

    /// Nothing but NOT NULL stands between a row and the heap: no index, CHECK or generated column.
    pub fn is_plain(&self) -> bool {
        self.indexes.is_empty()
            && self.checks.is_empty()
            && self.generated.is_empty()
            && self.virtual_not_null.is_empty()
    }

    /// The columns (from 0) that may not be NULL.
    pub fn not_null(&self) -> &[usize] {
        &self.not_null
    }

    /// Checks a row and forms its tuple, to be inserted by [`TableWriter::insert_prepared`].
    ///
    /// # Errors
    /// `23502`, `23514`.
    pub fn prepare(
        &mut self,
        x: &ExecContext<'_>,
        row: &mut [Datum],
        tuple: &mut Vec<u8>,
    ) -> Result<()> {
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        self.constrain(&[], row, x, &cx)?;
        self.encoder.encode(row, tuple)
    }

    /// Inserts prepared tuples, page by page; `rows` are their values, for the indexes (unused if there are none).
    ///
    /// # Errors
    /// As [`TableWriter::insert`], with the number of the row if it is one row's.
    pub fn insert_prepared(
        &mut self,
        x: &ExecContext<'_>,
        rows: &[Vec<Datum>],
        tuples: &[Vec<u8>],
        tids: &mut Vec<Tid>,
    ) -> Result<(), (Option<usize>, Error)> {
        tids.clear();
        self.give_way(x, tuples.len());
        let inserted = self.heap.multi_insert(x.txn, tuples, &mut self.state, tids);
        self.changes.inserted += i64::try_from(tids.len()).unwrap_or(0);
        inserted.map_err(|e| (None, e))?;
        if !self.indexes.is_empty() {
            let exec = RefCell::new(Vec::new());
            let cx = EvalContext::new(x.env, &exec);
            for (n, (row, tid)) in rows.iter().zip(tids.iter()).enumerate() {
                self.give_way(x, 1);
                self.index_row(row, *tid, x, &cx, None, None).map_err(|e| (Some(n), e))?;
            }
        }
        Ok(())
    }

    /// Inserts a row unless one of the arbiters (none named: any unique index) has its key.
    ///
    /// # Errors
    /// As [`TableWriter::insert`].
    pub fn insert_or_conflict(
        &mut self,
        x: &ExecContext<'_>,
        row: &mut [Datum],
        arbiters: &[Oid],
    ) -> Result<Inserted> {
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        self.constrain(&[], row, x, &cx)?;
        self.give_way(x, 1);
        loop {
            x.cancel.check()?;
            if let Some(tid) = self.find_conflict(x, row, &cx, arbiters)? {
                return Ok(Inserted::Conflict(tid));
            }
            base::stop_point!("sql.on_conflict.none_found");
            let mut tuple = std::mem::take(&mut self.tuple);
            self.encoder.encode(row, &mut tuple)?;
            let tid = self.heap.insert(x.txn, &tuple, &mut self.state)?;
            self.tuple = tuple;
            match self.index_row(row, tid, x, &cx, Some(arbiters), None)? {
                None => {
                    self.changes.inserted += 1;
                    return Ok(Inserted::At(tid));
                }
                // Somebody was faster: take the row back, look again, and wait for him if need be.
                Some(_) => self.heap.kill_own(x.txn, tid)?,
            }
        }
    }

    fn find_conflict(
        &mut self,
        x: &ExecContext<'_>,
        row: &[Datum],
        cx: &EvalContext<'_>,
        arbiters: &[Oid],
    ) -> Result<Option<Tid>> {
        let heap = self.heap.clone();
        let liveness = HeapLiveness::new(&heap, x.txn);
        for w in &mut self.indexes {
            if !w.index.unique || !is_asked(&w.index, arbiters) {
                continue;
            }
            if !w.index.immediate {
                let text = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
                let name = w.index.constraint.as_ref().unwrap_or(&w.index.name);
                return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
                    .table(&self.table.namespace_name, &self.table.name)
                    .constraint(name)
                    .into());
            }
            if !w.encode(row, cx)? {
                continue;
            }
            loop {
                let found = w.tree.find_conflict(&w.values(), None, &liveness)?;
                w.asked.scans += 1;
                w.asked.tuples_read += i64::from(found.is_some());
                w.asked.tuples_fetched += i64::from(found.is_some());
                match found {
                    None => break,
                    Some(KeyConflict::Live(tid)) => return Ok(Some(tid)),
                    Some(KeyConflict::InProgress(tid, xid)) => liveness.wait(tid, xid)?,
                }
            }
        }
        Ok(None)
    }

    /// Hands on what has been counted.
    pub(crate) fn note(&mut self, x: &ExecContext<'_>) {
        let changes = std::mem::take(&mut self.changes);
        if changes != TableChanges::default() {
            x.relations.note_changes(self.table.oid, &changes);
        }
        for w in &mut self.indexes {
            x.relations.note_scan(w.index.oid, &std::mem::take(&mut w.asked));
        }
    }

    /// Has the version at `tid`, which is locked and has the values `there`, the key of `row` in one of the arbiters? Between its being found
    /// and its being locked the row may have gone: one that came after the command's snapshot is kept by nobody, and then its place
    /// may be another row's.
    ///
    /// # Errors
    /// I/O, and those of the indexes' expressions.
    pub fn still_conflicts(
        &mut self,
        x: &ExecContext<'_>,
        row: &[Datum],
        arbiters: &[Oid],
        tid: Tid,
        there: &[Datum],
    ) -> Result<bool> {
        let mut asked =
            self.indexes.iter().filter(|w| w.index.unique && is_asked(&w.index, arbiters));
        if asked.any(|w| w.plainly_same_key(row, there)) {
            return Ok(true);
        }
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        Ok(match self.find_conflict(x, row, &cx, arbiters)? {
            Some(root) => self.heap.liveness(root, x.txn)?.1 == tid,
            None => false,
        })
    }

    /// How a row is locked before an update of these columns: foreign keys may go on looking at one whose keys stay.
    pub fn lock_to_update(&self, mut columns: impl Iterator<Item = i32>) -> RowLockMode {
        let made = |n: &i32| self.generated.iter().any(|g| g.at as i32 + 1 == *n);
        if self.key_columns.iter().any(made) || columns.any(|c| self.key_columns.contains(&c)) {
            RowLockMode::Update
        } else {
            RowLockMode::NoKeyUpdate
        }
    }

    /// Replaces the version at `tid`, whose values are `old`, by `new`. What is late in both stays as it is there.
    ///
    /// # Errors
    /// As [`TableWriter::insert`]; `40P01`, `55P03`.
    pub fn update(
        &mut self,
        x: &ExecContext<'_>,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        old: &[Datum],
        new: &mut [Datum],
    ) -> Result<TupleOutcome<UpdateDone>> {
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(x.env, &exec);
        self.constrain(old, new, x, &cx)?;
        let changed: smallvec::SmallVec<[bool; 16]> =
            old.iter().zip(new.iter()).map(|(a, b)| !identical(a, b)).collect();
        let is_changed = |c: &i32| usize::try_from(c - 1).is_ok_and(|n| changed[n]);
        let options = UpdateOptions {
            hot: !self.indexed_columns.iter().any(is_changed),
            key_changed: self.key_columns.iter().any(is_changed),
            wait: Wait::Block,
        };
        let mut tuple = std::mem::take(&mut self.tuple);
        self.encoder.encode_over(old, new, &mut tuple)?;
        let outcome = self.heap.update_queued(queue, tid, &tuple, options)?;
        self.tuple = tuple;
        if let TupleOutcome::Ok(done) = &outcome {
            self.changes.updated += 1;
            self.changes.hot_updated += i64::from(done.hot);
            self.changes.newpage_updated += i64::from(done.tid.block != tid.block);
            if !done.hot {
                self.index_row(new, done.tid, x, &cx, None, Some(&changed))?;
            }
        }
        Ok(outcome)
    }

    /// Deletes the version at `tid`.
    ///
    /// # Errors
    /// `40P01`, `55P03`, I/O.
    pub fn delete(&mut self, queue: &mut RowQueue<'_>, tid: Tid) -> Result<TupleOutcome> {
        let outcome = self.heap.delete_queued(queue, tid, Wait::Block)?;
        self.changes.deleted += i64::from(matches!(outcome, TupleOutcome::Ok(())));
        Ok(outcome)
    }

    /// Hands on the keys that are to be looked at later.
    ///
    /// # Errors
    /// As [`CheckList::append`].
    pub(crate) fn take_doubtful(&mut self, out: &mut CheckList) -> Result<()> {
        out.append(&mut self.doubtful)
    }

    /// Foreign-key work that an inserted row makes for the end of the statement.
    ///
    /// # Errors
    /// As [`CheckList::push`].
    pub fn after_insert(&self, row: &[Datum], out: &mut CheckList) -> Result<()> {
        for k in self.foreign_keys.iter().filter(|k| k.triggers.inserted.now(self.replica)) {
            out.push(AfterCheck::Referencing {
                key: k.clone(),
                values: key_values(&k.columns, row),
            })?;
        }
        Ok(())
    }

    /// Foreign-key work that an update makes. `own`: of a version that the transaction had made itself, whose key is asked for again
    /// though it stays.
    ///
    /// # Errors
    /// As [`CheckList::push`].
    pub fn after_update(
        &self,
        old: &[Datum],
        new: &[Datum],
        own: bool,
        out: &mut CheckList,
    ) -> Result<()> {
        // The row may refer to itself: what its key takes along comes before what it asks for.
        let asks = |k: &&Arc<ForeignKey>| k.triggers.updated.now(self.replica);
        let acts = |k: &&Arc<ForeignKey>| k.triggers.referenced_updated.now(self.replica);
        for k in self.table.referenced_by.iter().filter(acts) {
            let a = key_values(&k.referenced_columns, old);
            let b = key_values(&k.referenced_columns, new);
            if a.iter().zip(&b).any(|(a, b)| !identical(a, b)) {
                out.push(AfterCheck::Referenced { key: k.clone(), old: a, new: Some(b) })?;
            }
        }
        for k in self.foreign_keys.iter().filter(asks) {
            let (a, b) = (key_values(&k.columns, old), key_values(&k.columns, new));
            let nulls = b.iter().filter(|v| v.is_null()).count();
            let asks_nothing = nulls == b.len() || (nulls > 0 && !k.match_full);
            if !asks_nothing && (own || a.iter().zip(&b).any(|(a, b)| !identical(a, b))) {
                out.push(AfterCheck::Referencing { key: k.clone(), values: b })?;
            }
        }
        Ok(())
    }

    /// Foreign-key work that a delete makes.
    ///
    /// # Errors
    /// As [`CheckList::push`].
    pub fn after_delete(&self, old: &[Datum], out: &mut CheckList) -> Result<()> {
        let acts = |k: &&Arc<ForeignKey>| k.triggers.referenced_deleted.now(self.replica);
        for k in self.table.referenced_by.iter().filter(acts) {
            let a = key_values(&k.referenced_columns, old);
            out.push(AfterCheck::Referenced { key: k.clone(), old: a, new: None })?;
        }
        Ok(())
    }
}
