//! SELECT … FOR UPDATE and its kin.

use super::batch::Batch;
use super::row::RowReader;
use super::{Cx, Node};
use crate::plan::PlanRowMark;
use crate::query::{LockStrength, LockWait};
use base::{Result, Tid, Xid, bail};
use expr::code::Code;
use heap::{Heap, RowQueue, TupleOutcome, TupleSlot};
use std::sync::Arc;
use txn::{IsolationLevel, RowLockMode, Wait};
use types::Datum;

/// A row mark at work.
pub(crate) struct Mark {
    pub mark: PlanRowMark,
    pub reader: RowReader,
    pub heap: Option<Arc<Heap>>,
}

/// Locks the rows that pass through.
pub(crate) struct LockRowsNode {
    pub input: Box<dyn Node>,
    pub marks: Vec<Mark>,
    /// Outer joins' conditions, innermost first, with the columns that are NULLs where one is not met.
    pub outer: Vec<(Code, Vec<usize>)>,
    pub recheck: Option<Code>,
    pub batch: Batch,
    pub slot: TupleSlot,
}

/// The row lock of a clause.
pub(crate) fn mode(s: LockStrength) -> RowLockMode {
    match s {
        LockStrength::KeyShare => RowLockMode::KeyShare,
        LockStrength::Share => RowLockMode::Share,
        LockStrength::NoKeyUpdate => RowLockMode::NoKeyUpdate,
        LockStrength::Update => RowLockMode::Update,
    }
}

/// Brings a row's values of one table up to the version in the slot.
pub(crate) fn refresh(
    reader: &RowReader,
    slots: &[(usize, i32)],
    heap: &Heap,
    slot: &TupleSlot,
    row: &mut [Datum],
) -> Result<()> {
    let mut one = Batch::new();
    one.reset(reader.width());
    reader.read(&slot.view(), slot.tid, heap, &mut one, |_| Ok(true), false)?;
    for (n, (at, _)) in slots.iter().enumerate() {
        row[*at] = std::mem::take(&mut one.row_mut(0)[n]);
    }
    Ok(())
}

/// Fails under REPEATABLE READ, where a changed row cannot be followed.
pub(crate) fn require_read_committed(cx: &Cx<'_>, deleted: bool) -> Result<()> {
    if cx.x.txn.isolation() != IsolationLevel::ReadCommitted {
        if deleted {
            bail!(SERIALIZATION_FAILURE, "could not serialize access due to concurrent delete");
        }
        bail!(SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
    }
    Ok(())
}

/// Follows a row from the version at `origin` to its newest one and locks that; `queue` has the places from the wait for the first.
#[expect(clippy::too_many_arguments, reason = "the hop, and how to lock")]
pub(crate) fn follow(
    cx: &Cx<'_>,
    heap: &Heap,
    queue: &mut RowQueue<'_>,
    origin: Tid,
    next: Tid,
    xmin: Xid,
    mode: RowLockMode,
    wait: Wait,
    slot: &mut TupleSlot,
) -> Result<TupleOutcome> {
    require_read_committed(cx, false)?;
    heap.lock_latest_queued(queue, origin, next, xmin, mode, wait, slot)
}

impl LockRowsNode {
    /// Locks a row's tuples; false if it is to be left out.
    fn lock(&mut self, cx: &Cx<'_>, row: &mut [Datum]) -> Result<bool> {
        let mut newer = false;
        for m in &mut self.marks {
            let Datum::Tid(tid) = row[m.mark.tid_slot] else { continue };
            let heap = match &m.heap {
                Some(h) => h.clone(),
                None => {
                    let h = cx.x.relations.heap(&m.mark.table)?;
                    m.heap = Some(h.clone());
                    h
                }
            };
            let wait = if m.mark.wait == LockWait::Block { Wait::Block } else { Wait::NoWait };
            let mode = mode(m.mark.strength);
            let mut queue = RowQueue::new(cx.x.txn);
            let slot = Some(&mut self.slot);
            let mut outcome = heap.lock_tuple_queued(&mut queue, tid, mode, wait, slot)?;
            let mut moved = false;
            if let TupleOutcome::Updated { next, xmax } = outcome {
                outcome =
                    follow(cx, &heap, &mut queue, tid, next, xmax, mode, wait, &mut self.slot)?;
                moved = true;
            }
            match outcome {
                TupleOutcome::Ok(()) => {
                    if moved {
                        base::stop_point!("sql.lock_rows.followed");
                        // FOR KEY SHARE lets others update the row, and the statement's snapshot does not keep a version younger than it is:
                        // the one that is now may be the next, and keeps its values out of line until they are read.
                        let now = (mode == RowLockMode::KeyShare)
                            .then(|| cx.x.txn.take_latest_snapshot());
                        if let Some(now) = &now {
                            let locked = self.slot.tid;
                            if !heap.fetch_row(locked, now, &mut self.slot)? {
                                return Ok(false);
                            }
                        }
                        refresh(&m.reader, &m.mark.slots, &heap, &self.slot, row)?;
                        newer = true;
                    }
                }
                TupleOutcome::WouldBlock if m.mark.wait == LockWait::SkipLocked => {
                    return Ok(false);
                }
                TupleOutcome::WouldBlock => {
                    cx.x.txn.tell_lock_failure();
                    bail!(
                        LOCK_NOT_AVAILABLE,
                        "could not obtain lock on row in relation \"{}\"",
                        m.mark.table.name
                    )
                }
                TupleOutcome::Deleted { .. } => {
                    // PostgreSQL words it so here, and otherwise for UPDATE and DELETE.
                    require_read_committed(cx, false)?;
                    return Ok(false);
                }
                TupleOutcome::SelfModified | TupleOutcome::Invisible => return Ok(false),
                TupleOutcome::Updated { .. } => {
                    require_read_committed(cx, false)?;
                    return Ok(false);
                }
            }
        }
        if !newer {
            return Ok(true);
        }
        for (on, slots) in &self.outer {
            if !on.is_true(row, &cx.eval)? {
                slots.iter().for_each(|slot| row[*slot] = Datum::Null);
            }
        }
        self.recheck.as_ref().map_or(Ok(true), |r| r.is_true(row, &cx.eval))
    }
}

impl Node for LockRowsNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        loop {
            cx.poll()?;
            let mut batch = std::mem::take(&mut self.batch);
            let mut result = self.input.next(cx, &mut batch, max);
            out.reset(batch.width());
            let ended = batch.is_empty();
            for i in 0..batch.len() {
                if result.is_err() {
                    break;
                }
                match self.lock(cx, batch.row_mut(i)) {
                    Ok(true) => out.push(batch.row(i)),
                    Ok(false) => {}
                    Err(e) => result = Err(e),
                }
            }
            self.batch = batch;
            result?;
            if ended || !out.is_empty() {
                return Ok(());
            }
        }
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.input.rescan(cx)
    }
}
