//! INSERT, UPDATE, DELETE and MERGE as plan nodes.

mod merge;

use super::batch::{BATCH_ROWS, Batch};
use super::late::carried;
use super::lock_rows::{follow, refresh, require_read_committed};
use super::modify::{Inserted, TableWriter};
use super::row::RowReader;
use super::{Cx, Node, Told};
use crate::plan::Modify;
use crate::query::Command;
use base::{Oid, Result, SqlError, SqlState, Tid, bail};
use engine::catalog::model::Table;
use expr::code::{Code, compile};
use heap::visibility::Dirty;
use heap::{RowQueue, TupleOutcome, TupleSlot};
use merge::Merge;
use std::sync::Arc;
use txn::{IsolationLevel, RowLockMode, Wait};
use types::Datum;

struct Conflict {
    arbiters: Vec<Oid>,
    update: Option<Vec<(i32, Code)>>,
    filter: Option<Code>,
}

/// Where a row is changed: the writer, and the places for which its command waits.
struct At<'w, 'x> {
    w: &'w mut TableWriter,
    cx: &'w Cx<'x>,
    queue: RowQueue<'w>,
}

/// What became of the attempt to change a row.
enum Change {
    /// It is changed.
    Done,
    /// The command itself had changed it before.
    Own,
    /// Somebody else has deleted it.
    Gone,
    /// Somebody else has updated it: the newest version is locked, and it is that which the input row is of now.
    Newer,
}

/// What RETURNING is told of a change.
struct Effect<'a> {
    /// The row as it is now, and where.
    new: Option<(&'a [Datum], Tid)>,
    /// There was one before.
    old: bool,
    /// What merge_action() gives.
    action: Option<&'static str>,
}

/// A data-modifying node.
pub(crate) struct ModifyNode {
    command: Command,
    table: Arc<Table>,
    input: Option<Box<dyn Node>>,
    row: Vec<Code>,
    /// INSERT: attribute numbers of the input's columns.
    live: Vec<usize>,
    assignments: Vec<(usize, Code)>,
    tid_slot: usize,
    old_slots: Vec<(usize, i32)>,
    recheck: Option<Code>,
    returning: Vec<Code>,
    conflict: Option<Conflict>,
    merge: Option<Merge>,
    /// What views ask of a row once it is written, innermost first.
    view_checks: Vec<(String, Code)>,
    named: Vec<i32>,
    reader: RowReader,
    all_reader: RowReader,
    writer: Option<TableWriter>,
    batch: Batch,
    slot: TupleSlot,
    done: bool,
    /// How many rows its input makes at once: the first [`BATCH_ROWS`] times, and then.
    at_once: (usize, usize),
    /// How often it was asked.
    asked: usize,
    /// There is foreign-key work.
    has_keys: bool,
    /// Its rows are the statement's count.
    counted: bool,
    /// RETURNING sees OLD and NEW.
    images: bool,
}

/// The system columns behind a row's own, as RETURNING sees it.
const SYSTEM_COLUMNS: [i32; 6] = [-1, -6, -2, -4, -3, -5];

impl ModifyNode {
    pub(crate) fn new(
        m: &Modify,
        input: Option<Box<dyn Node>>,
        counted: bool,
        at_once: (usize, usize),
    ) -> Result<ModifyNode> {
        let codes = |list: &[expr::Expr]| list.iter().map(compile).collect::<Result<Vec<_>>>();
        let conflict = match &m.on_conflict {
            None => None,
            Some(c) => Some(Conflict {
                arbiters: c.source.arbiters.iter().map(|o| Oid(*o)).collect(),
                update: c
                    .update
                    .as_ref()
                    .map(|u| u.iter().map(|(n, e)| Ok((*n, compile(e)?))).collect::<Result<_>>())
                    .transpose()?,
                filter: c.filter.as_ref().map(compile).transpose()?,
            }),
        };
        let columns: Vec<i32> = m.old_slots.iter().map(|s| s.1).collect();
        let mut all: Vec<i32> = m.table.columns.iter().map(|c| c.number).collect();
        if m.images {
            all.extend(SYSTEM_COLUMNS);
        }
        let carried = carried(&m.table);
        let late = |columns: &[i32]| -> Vec<bool> {
            let at = |c: &i32| usize::try_from(*c - 1).ok();
            columns.iter().map(|c| at(c).is_some_and(|at| carried[at])).collect()
        };
        Ok(ModifyNode {
            command: m.command,
            table: m.table.clone(),
            input,
            row: codes(&m.row)?,
            live: m
                .table
                .columns
                .iter()
                .enumerate()
                .filter(|(_, c)| !c.dropped)
                .map(|(i, _)| i)
                .collect(),
            assignments: m
                .assignments
                .iter()
                .map(|(c, e)| Ok((*c as usize - 1, compile(e)?)))
                .collect::<Result<_>>()?,
            tid_slot: m.tid_slot,
            old_slots: m.old_slots.clone(),
            recheck: m.recheck.as_ref().map(compile).transpose()?,
            returning: codes(&m.returning)?,
            conflict,
            merge: m.merge.as_ref().map(Merge::new).transpose()?,
            view_checks: m
                .view_checks
                .iter()
                .map(|(view, e)| Ok((view.clone(), compile(e)?)))
                .collect::<Result<_>>()?,
            named: m.named.clone(),
            reader: RowReader::new(&m.table, &columns, None).leave(&late(&columns)),
            all_reader: RowReader::new(&m.table, &all, None).leave(&late(&all)),
            writer: None,
            batch: Batch::new(),
            slot: TupleSlot::new(),
            done: false,
            at_once,
            asked: 0,
            counted,
            images: m.images,
            has_keys: !m.table.foreign_keys.is_empty() || !m.table.referenced_by.is_empty(),
        })
    }

    /// Hands on what the writer has counted.
    fn note_changes(&mut self, cx: &Cx<'_>) -> Result<()> {
        let Some(w) = &mut self.writer else { return Ok(()) };
        w.note(cx.x);
        w.take_doubtful(&mut cx.shared.after.borrow_mut())
    }

    fn affected(&self, cx: &Cx<'_>, n: u64) {
        if !self.counted {
            return;
        }
        cx.shared.affected.set(cx.shared.affected.get() + n);
    }

    /// A table's row from an input row of its live columns.
    fn full_row(&self, values: &mut [Datum]) -> Vec<Datum> {
        let mut row = vec![Datum::Null; self.table.columns.len()];
        for (i, v) in self.live.iter().zip(values) {
            row[*i] = std::mem::take(v);
        }
        row
    }

    /// A row as it is now, with its system columns.
    fn new_image(&self, row: &[Datum], tid: Tid, updated: bool, cx: &Cx<'_>) -> Result<Vec<Datum>> {
        let mut full = row.to_vec();
        full.push(Datum::Tid(tid));
        full.push(Datum::Oid(self.table.oid));
        let xid = own_xid(cx)?;
        full.push(xid.clone());
        full.push(if updated { xid } else { Datum::Oid(Oid(0)) });
        full.extend([Datum::Oid(Oid(0)), Datum::Oid(Oid(0))]);
        Ok(full)
    }

    /// Of a row that is not there.
    fn no_image(&self) -> Vec<Datum> {
        vec![Datum::Null; self.table.columns.len() + SYSTEM_COLUMNS.len()]
    }

    /// The row as an input row has it.
    fn old_image(&self, row: &[Datum]) -> Vec<Datum> {
        let mut old = self.old_row(row);
        for column in SYSTEM_COLUMNS {
            let at = self.old_slots.iter().find(|s| s.1 == column);
            old.push(match at {
                Some((at, _)) => row[*at].clone(),
                None if column == -6 => Datum::Oid(self.table.oid),
                None => Datum::Null,
            });
        }
        old
    }

    /// Emits RETURNING for a table's row. One that ON CONFLICT updated, whose `old` row is given, has an xmax, by which clients tell it
    /// from those inserted: its old version was locked first.
    fn give(
        &self,
        row: &[Datum],
        tid: Tid,
        old: Option<Vec<Datum>>,
        cx: &Cx<'_>,
        out: &mut Batch,
    ) -> Result<()> {
        if self.returning.is_empty() {
            return Ok(());
        }
        let mut full = self.new_image(row, tid, old.is_some(), cx)?;
        if self.images {
            let new = full.clone();
            full.extend(old.unwrap_or_else(|| self.no_image()));
            full.extend(new);
        }
        for r in &self.returning {
            out.push_value(r.eval(&full, &cx.eval)?);
        }
        out.end_row();
        Ok(())
    }

    /// WITH CHECK OPTION, of a row written at `tid`.
    fn ask_views(&self, w: &TableWriter, row: &[Datum], tid: Tid, cx: &Cx<'_>) -> Result<()> {
        if self.view_checks.is_empty() {
            return Ok(());
        }
        let mut seen = row.to_vec();
        seen.extend([Datum::Tid(tid), Datum::Oid(self.table.oid)]);
        for (view, condition) in &self.view_checks {
            if !condition.is_true(&seen, &cx.eval)? {
                return Err(w.fails_view(view, row, cx.x));
            }
        }
        Ok(())
    }

    fn insert_rows(
        &mut self,
        cx: &Cx<'_>,
        mut rows: Vec<Vec<Datum>>,
        out: &mut Batch,
    ) -> Result<()> {
        let Some(mut w) = self.writer.take() else { return Ok(()) };
        let result = (|| -> Result<()> {
            if self.conflict.is_some() {
                for mut row in rows {
                    self.insert_conflicting(&mut w, cx, &mut row, out)?;
                }
                return Ok(());
            }
            if !self.view_checks.is_empty() {
                for row in &mut rows {
                    let tid = w.insert(cx.x, row)?;
                    self.ask_views(&w, row, tid, cx)?;
                    self.affected(cx, 1);
                    if self.has_keys {
                        w.after_insert(row, &mut cx.shared.after.borrow_mut())?;
                    }
                    self.give(row, tid, None, cx, out)?;
                }
                return Ok(());
            }
            let n = rows.len() as u64;
            let tids = if rows.len() == 1 {
                vec![w.insert(cx.x, &mut rows[0])?]
            } else {
                w.insert_many(cx.x, &mut rows)?
            };
            self.affected(cx, n);
            if self.has_keys {
                let mut after = cx.shared.after.borrow_mut();
                for r in &rows {
                    w.after_insert(r, &mut after)?;
                }
            }
            for (r, tid) in rows.iter().zip(tids) {
                self.give(r, tid, None, cx, out)?;
            }
            Ok(())
        })();
        self.writer = Some(w);
        result
    }

    fn insert_conflicting(
        &mut self,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<()> {
        loop {
            let Some(c) = &self.conflict else { return Ok(()) };
            match w.insert_or_conflict(cx.x, row, &c.arbiters)? {
                Inserted::At(tid) => {
                    self.ask_views(w, row, tid, cx)?;
                    self.affected(cx, 1);
                    if self.has_keys {
                        w.after_insert(row, &mut cx.shared.after.borrow_mut())?;
                    }
                    return self.give(row, tid, None, cx, out);
                }
                Inserted::Conflict(root) => {
                    if c.update.is_none() {
                        return require_visible(w, cx, root);
                    }
                    if self.update_conflicting(w, cx, root, row, out)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// DO UPDATE of the row whose chain begins at `root`; false to try the insert again.
    fn update_conflicting(
        &mut self,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        root: Tid,
        excluded: &[Datum],
        out: &mut Batch,
    ) -> Result<bool> {
        let heap = w.heap().clone();
        base::stop_point!("sql.on_conflict.found");
        let (now, tid, _) = heap.liveness(root, cx.x.txn)?;
        if !matches!(now, Dirty::Live | Dirty::Deleting(_)) {
            return Ok(false);
        }
        let assigned = self.conflict.iter().flat_map(|c| c.update.iter().flatten());
        let mode = w.lock_to_update(assigned.map(|(n, _)| *n));
        let mut slot = std::mem::take(&mut self.slot);
        let outcome = heap.lock_tuple(cx.x.txn, tid, mode, Wait::Block, Some(&mut slot));
        self.slot = slot;
        match outcome? {
            TupleOutcome::Ok(()) => {}
            // It has gone meanwhile.
            TupleOutcome::Invisible if !heap.is_own_version(tid, cx.x.txn)? => return Ok(false),
            TupleOutcome::SelfModified | TupleOutcome::Invisible => {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "ON CONFLICT DO UPDATE command cannot affect row a second time",
                )
                .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
                .into());
            }
            TupleOutcome::WouldBlock => bail!(
                LOCK_NOT_AVAILABLE,
                "could not obtain lock on row in relation \"{}\"",
                self.table.name
            ),
            TupleOutcome::Updated { .. } => {
                require_read_committed(cx, false)?;
                return Ok(false);
            }
            TupleOutcome::Deleted { .. } => {
                require_read_committed(cx, true)?;
                return Ok(false);
            }
        }
        let mut batch = Batch::new();
        batch.reset(self.all_reader.width());
        self.all_reader.read(&self.slot.view(), tid, &heap, &mut batch, |_| Ok(true), false)?;
        let mut image = batch.take_row(0);
        self.mark_changed(&mut image, cx)?;
        let old = image[..self.table.columns.len()].to_vec();
        let arbiters = self.conflict.as_ref().map_or(&[][..], |c| &c.arbiters);
        if !w.still_conflicts(cx.x, excluded, arbiters, tid, &old)? {
            return Ok(false);
        }
        if cx.x.txn.isolation() != IsolationLevel::ReadCommitted {
            let mut probe = TupleSlot::new();
            if !heap.fetch_version(tid, &cx.x.snapshot, &mut probe)? {
                require_read_committed(cx, false)?;
            }
        }
        let mut both = old.clone();
        both.push(Datum::Tid(tid));
        both.push(Datum::Oid(self.table.oid));
        both.extend_from_slice(excluded);
        both.push(Datum::Null);
        both.push(Datum::Oid(self.table.oid));
        let Some(c) = &self.conflict else { return Ok(true) };
        if let Some(f) = &c.filter
            && !f.is_true(&both, &cx.eval)?
        {
            return Ok(true);
        }
        let mut new = old.clone();
        for (n, code) in c.update.iter().flatten() {
            new[*n as usize - 1] = code.eval(&both, &cx.eval)?;
        }
        match w.update(cx.x, &mut RowQueue::new(cx.x.txn), tid, &old, &mut new)? {
            TupleOutcome::Ok(done) => {
                self.ask_views(w, &new, done.tid, cx)?;
                self.affected(cx, 1);
                if self.has_keys {
                    w.after_update(&old, &new, done.own, &mut cx.shared.after.borrow_mut())?;
                }
                self.give(&new, done.tid, Some(image), cx, out)?;
                Ok(true)
            }
            TupleOutcome::SelfModified => Ok(true),
            _ => Ok(false),
        }
    }

    fn old_row(&self, row: &[Datum]) -> Vec<Datum> {
        let mut old = vec![Datum::Null; self.table.columns.len()];
        for (at, column) in &self.old_slots {
            if *column > 0 {
                old[*column as usize - 1] = row[*at].clone();
            }
        }
        old
    }

    /// What was just changed has this transaction as its xmax.
    fn mark_changed(&self, image: &mut [Datum], cx: &Cx<'_>) -> Result<()> {
        if self.images {
            image[self.table.columns.len() + 3] = own_xid(cx)?;
        }
        Ok(())
    }

    /// Emits RETURNING for an input row whose target was changed so.
    fn give_changed(
        &self,
        effect: &Effect<'_>,
        row: &mut [Datum],
        cx: &Cx<'_>,
        out: &mut Batch,
    ) -> Result<()> {
        let mut old = Vec::new();
        if self.images && effect.old {
            old = self.old_image(row);
            self.mark_changed(&mut old, cx)?;
        } else if self.images {
            old = self.no_image();
        }
        match effect.new {
            Some((new, now)) => self.put_new(new, now, effect.old, row, cx)?,
            None => {
                for (at, _) in self.old_slots.iter().filter(|(_, column)| *column == -4) {
                    row[*at] = own_xid(cx)?;
                }
            }
        }
        let mut wide = Vec::new();
        if self.images {
            let new = match effect.new {
                Some((new, now)) => self.new_image(new, now, false, cx)?,
                None => self.no_image(),
            };
            wide = [&*row, &old, &new].concat();
        }
        if let Some(action) = effect.action {
            if wide.is_empty() {
                wide = row.to_vec();
            }
            wide.push(Datum::Text(action.into()));
        }
        let seen: &[Datum] = if wide.is_empty() { row } else { &wide };
        for r in &self.returning {
            out.push_value(r.eval(seen, &cx.eval)?);
        }
        out.end_row();
        Ok(())
    }

    /// Puts a row as it is now in the place of the target's in an input row; `old`: there was one.
    fn put_new(
        &self,
        new: &[Datum],
        now: Tid,
        old: bool,
        row: &mut [Datum],
        cx: &Cx<'_>,
    ) -> Result<()> {
        for (at, column) in &self.old_slots {
            row[*at] = match *column {
                c if c > 0 => new[c as usize - 1].clone(),
                -1 => Datum::Tid(now),
                -2 => own_xid(cx)?,
                -4 => Datum::Oid(Oid(0)),
                -6 => Datum::Oid(self.table.oid),
                _ if old => continue,
                _ => Datum::Oid(Oid(0)),
            };
        }
        Ok(())
    }

    /// Tries to update the version at `tid`, which an input row is of, or to delete it (`set` is None).
    fn attempt(
        &self,
        at: &mut At<'_, '_>,
        tid: Tid,
        set: Option<&[(usize, Code)]>,
        action: Option<&'static str>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<TupleOutcome<()>> {
        let cx = at.cx;
        let old = if set.is_some() || self.has_keys { self.old_row(row) } else { Vec::new() };
        let mut new = old.clone();
        let now = match set {
            Some(set) => {
                for (n, code) in set {
                    new[*n] = match code {
                        // The column itself, unread.
                        Code::Slot(i) if matches!((&row[*i], &old[*n]), (Datum::Late(a), Datum::Late(b)) if Arc::ptr_eq(a, b)) =>
                        {
                            continue;
                        }
                        code => code.eval(row, &cx.eval)?,
                    };
                }
                let done = match at.w.update(cx.x, &mut at.queue, tid, &old, &mut new)? {
                    TupleOutcome::Ok(done) => done,
                    other => return Ok(other.failed().unwrap_or(TupleOutcome::Invisible)),
                };
                self.ask_views(at.w, &new, done.tid, cx)?;
                if self.has_keys {
                    at.w.after_update(&old, &new, done.own, &mut cx.shared.after.borrow_mut())?;
                }
                done.tid
            }
            None => {
                match at.w.delete(&mut at.queue, tid)? {
                    TupleOutcome::Ok(()) => {}
                    other => return Ok(other),
                }
                if self.has_keys {
                    at.w.after_delete(&old, &mut cx.shared.after.borrow_mut())?;
                }
                tid
            }
        };
        self.affected(cx, 1);
        if !self.returning.is_empty() {
            let new = set.map(|_| (&*new, now));
            self.give_changed(&Effect { new, old: true, action }, row, cx, out)?;
        }
        Ok(TupleOutcome::Ok(()))
    }

    /// What to do about the outcome of an attempt. If somebody else has changed the row, its newest version is locked, and the
    /// input row gets its values.
    fn settle(
        &mut self,
        at: &mut At<'_, '_>,
        tid: Tid,
        outcome: TupleOutcome<()>,
        mode: RowLockMode,
        row: &mut [Datum],
    ) -> Result<Change> {
        let would_block = |s: &Self| {
            base::err!(
                LOCK_NOT_AVAILABLE,
                "could not obtain lock on row in relation \"{}\"",
                s.table.name
            )
        };
        match outcome {
            TupleOutcome::Ok(()) => Ok(Change::Done),
            TupleOutcome::SelfModified => Ok(Change::Own),
            TupleOutcome::Invisible => {
                bail!(INTERNAL_ERROR, "attempted to change an invisible row")
            }
            TupleOutcome::WouldBlock => Err(would_block(self)),
            TupleOutcome::Deleted { .. } => {
                require_read_committed(at.cx, true)?;
                Ok(Change::Gone)
            }
            TupleOutcome::Updated { next, xmax } => {
                let heap = at.w.heap().clone();
                let (cx, queue) = (at.cx, &mut at.queue);
                let mut slot = std::mem::take(&mut self.slot);
                let r = follow(cx, &heap, queue, tid, next, xmax, mode, Wait::Block, &mut slot);
                self.slot = slot;
                match r? {
                    TupleOutcome::Ok(()) => {}
                    TupleOutcome::WouldBlock => return Err(would_block(self)),
                    TupleOutcome::SelfModified => return Ok(Change::Own),
                    _ => return Ok(Change::Gone),
                }
                refresh(&self.reader, &self.old_slots, &heap, &self.slot, row)?;
                Ok(Change::Newer)
            }
        }
    }

    /// Updates or deletes the row that an input row names.
    fn change(
        &mut self,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<()> {
        let mut at = At { w, cx, queue: RowQueue::new(cx.x.txn) };
        let update = self.command == Command::Update;
        let mode = if update { RowLockMode::NoKeyUpdate } else { RowLockMode::Update };
        loop {
            let Datum::Tid(tid) = row[self.tid_slot] else { return Ok(()) };
            let set = update.then_some(self.assignments.as_slice());
            let outcome = self.attempt(&mut at, tid, set, None, row, out)?;
            match self.settle(&mut at, tid, outcome, mode, row)? {
                Change::Done | Change::Own | Change::Gone => return Ok(()),
                Change::Newer => {
                    if let Some(r) = &self.recheck
                        && !r.is_true(row, &cx.eval)?
                    {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The XID that what this statement writes bears, as `xmin` shows it.
fn own_xid(cx: &Cx<'_>) -> Result<Datum> {
    Ok(Datum::Oid(Oid(cx.x.txn.xid()?.0 as u32)))
}

impl Node for ModifyNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, _max: usize) -> Result<()> {
        let width = self.returning.len();
        out.reset(width);
        if self.done {
            return Ok(());
        }
        if self.writer.is_none() {
            if cx.x.txn.is_read_only()
                && self.merge.as_ref().is_none_or(Merge::writes)
                && self.table.persistence != engine::catalog::model::RelationPersistence::Temporary
            {
                let what = match self.command {
                    Command::Insert => "INSERT",
                    Command::Update => "UPDATE",
                    Command::Merge => "MERGE",
                    _ => "DELETE",
                };
                bail!(
                    READ_ONLY_SQL_TRANSACTION,
                    "cannot execute {what} in a read-only transaction"
                );
            }
            let mut writer = TableWriter::new(cx.x, &self.table)?;
            writer.shows_only(std::mem::take(&mut self.named));
            self.writer = Some(writer);
        }
        let Some(mut input) = self.input.take() else {
            self.done = true;
            let mut values = Vec::with_capacity(self.row.len());
            for c in &self.row {
                values.push(c.eval(&[], &cx.eval)?);
            }
            let row = self.full_row(&mut values);
            let inserted = self.insert_rows(cx, vec![row], out);
            // A row that an index refused is dead, and in the way.
            let noted = self.note_changes(cx);
            return inserted.and_then(|inserted| noted.map(|()| inserted));
        };
        let mut batch = std::mem::take(&mut self.batch);
        let result = (|| -> Result<()> {
            loop {
                cx.poll()?;
                let first = self.asked < BATCH_ROWS;
                self.asked += 1;
                let rows = if first { self.at_once.0 } else { self.at_once.1 };
                input.next(cx, &mut batch, rows)?;
                if batch.is_empty() {
                    self.done = true;
                    break;
                }
                if self.command == Command::Insert {
                    let rows: Vec<Vec<Datum>> =
                        (0..batch.len()).map(|i| self.full_row(batch.row_mut(i))).collect();
                    self.insert_rows(cx, rows, out)?;
                } else {
                    let Some(mut w) = self.writer.take() else { break };
                    let mut r = Ok(());
                    for i in 0..batch.len() {
                        w.give_way(cx.x, 1);
                        r = if self.merge.is_some() {
                            self.merge_row(&mut w, cx, batch.row_mut(i), out)
                        } else {
                            self.change(&mut w, cx, batch.row_mut(i), out)
                        };
                        if r.is_err() {
                            break;
                        }
                    }
                    self.writer = Some(w);
                    r?;
                }
                if !out.is_empty() {
                    break;
                }
            }
            Ok(())
        })();
        self.batch = batch;
        self.input = Some(input);
        let noted = self.note_changes(cx);
        result.and_then(|result| noted.map(|()| result))
    }
    fn told(&self) -> Told {
        Told { merged: self.merge.as_ref().map(Merge::told), ..Told::default() }
    }
    fn let_go(&mut self) {
        if let Some(input) = &mut self.input {
            input.let_go();
        }
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.done = false;
        self.asked = 0;
        match &mut self.input {
            Some(i) => i.rescan(cx),
            None => Ok(()),
        }
    }
}

/// DO NOTHING says that the row is there: at REPEATABLE READ the snapshot must see it, unless it is
/// the transaction's own.
fn require_visible(w: &TableWriter, cx: &Cx<'_>, root: Tid) -> Result<()> {
    if cx.x.txn.isolation() == IsolationLevel::ReadCommitted {
        return Ok(());
    }
    let heap = w.heap();
    let (_, tid, _) = heap.liveness(root, cx.x.txn)?;
    let mut probe = TupleSlot::new();
    if heap.fetch_version(tid, &cx.x.snapshot, &mut probe)? || heap.is_own_version(tid, cx.x.txn)? {
        return Ok(());
    }
    require_read_committed(cx, false)
}
