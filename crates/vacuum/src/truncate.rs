//! Cutting off the empty end of a table.
//!
//! # Purpose
//! Pages at the end that hold nothing are given back to the system, if it is worth keeping writers away for a moment.
//!
//! # Invariants
//! - Under EXCLUSIVE, which no writer and no row locker passes, on the table and, of a TOAST table, on the one whose values it keeps (its writers
//!   lock nothing else), every page from the new end on has been seen to be without tuples and line
//!   pointers in use. So there is nothing for a reader there to see, prune or set hints on.
//! - The map's bits go first, in place: a reader that keeps a map page pinned finds them cleared. Then the cut is logged, the shorter
//!   length published, beyond which readers find nothing, and the cached pages are forgotten. The file is cut later, once the record is
//!   durable (`buffer`'s `cuts.rs`).
//! - A row that is put where the end was once more is newer than the snapshots of readers who may still hold its old address.
//!
//! # Locks
//! EXCLUSIVE is asked for every 50 ms for 5 s; of two locks none is kept if the other is not to be had. Once held, the way back
//! from the end stops when somebody waits for one.
//!
//! It is asked for no longer once there is nothing to be had from it: rows have been put at the end again, or who holds it now held it a second
//! ago, in the same transaction. That is one that loads or rewrites the table, and fills what would be cut; meanwhile nobody else could
//! vacuum the table, and a worker stood still.
//!
//! Of a table that is written to all the time, as a queue's is, it would not be had in 5 s, in which nobody else may vacuum the table. So it is
//! asked for without waiting but for the second time, the fifth, the seventeenth and the sixty-fifth, when the request stands in the queue for
//! [`IN_QUEUE`] at most: those who write now end in that time, those who come wait for so long.
//!
//! # Differs from PostgreSQL
//! It takes ACCESS EXCLUSIVE, which it never waits for, keeps readers waiting, flushes the WAL and cuts the file before it goes on.

use crate::progress::Phase;
use crate::run::{Message, VacuumContext, VacuumTarget};
use base::{BlockNumber, Fork, Result};
use buffer::Strategy;
use std::time::{Duration, Instant};
use txn::{LockMode, LockOutcome, LockOwner, LockTag, Wait};

const MIN_PAGES: u32 = 1000;
const MIN_FRACTION: u32 = 16;
const LOCK_RETRY: Duration = Duration::from_millis(50);
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// What others may be made to wait for each of the locks.
const IN_QUEUE: Duration = Duration::from_millis(5);
/// So many attempts later, a second, it is seen whether those who were in the way are there still.
const LASTING: u32 = 20;
const CHECK_WAITERS: Duration = Duration::from_millis(20);

/// Are there enough empty pages at the end?
pub fn worth_it(pages: u32, nonempty_pages: u32) -> bool {
    let free = pages.saturating_sub(nonempty_pages);
    free > 0 && (free >= MIN_PAGES || free >= pages / MIN_FRACTION)
}

/// Cuts the table's empty end; the table's length afterwards.
///
/// # Errors
/// The disk's; cancellation.
pub fn truncate(
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
    scanned_len: u32,
    mut nonempty_pages: u32,
) -> Result<u32> {
    context.progress.enter(Phase::TruncatingHeap);
    let mut len = scanned_len;
    loop {
        let start = Instant::now();
        let mut before = Vec::new();
        for attempt in 0u32.. {
            if keep_writers_out(target, context, patience(attempt))? {
                break;
            }
            let in_vain = end_in_use(target, len)?
                || attempt.is_multiple_of(LASTING) && any_still(&mut before, target, context);
            if in_vain || start.elapsed() > LOCK_TIMEOUT {
                context.say(
                    Message::Verbose,
                    format!(
                        "\"{}\": stopping truncate due to conflicting lock request",
                        target.facts.table
                    ),
                );
                return Ok(len);
            }
            base::stop_point!("vacuum.truncate.refused");
            context.backend.cancel.check()?;
            std::thread::sleep(LOCK_RETRY);
        }
        let result = cut(target, context, len, nonempty_pages);
        let_writers_in(target, context, usize::MAX);
        let (new_len, suspended) = result?;
        let cut_some = new_len < len;
        len = new_len;
        nonempty_pages = nonempty_pages.min(len);
        if !(suspended && cut_some && worth_it(len, nonempty_pages)) {
            return Ok(len);
        }
    }
}

/// How an attempt at the locks waits, the first one's number being 0.
fn patience(attempt: u32) -> Wait {
    match attempt {
        1 | 4 | 16 | 64 => Wait::AtMost(IN_QUEUE),
        _ => Wait::NoWait,
    }
}

/// What has to be locked so that nobody writes to the table.
fn tags<'a>(context: &'a VacuumContext<'_>) -> impl Iterator<Item = LockTag> + 'a {
    std::iter::once(context.lock_tag).chain(context.writers_locks.iter().copied())
}

/// Locks all of it, or nothing (false).
fn keep_writers_out(
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
    wait: Wait,
) -> Result<bool> {
    let locks = target.heap.context().txns.locks();
    let (owner, mode) = (LockOwner::Transaction, LockMode::Exclusive);
    for (held, tag) in tags(context).enumerate() {
        let got = locks.acquire(context.backend, owner, tag, mode, wait);
        if !matches!(got, Ok(got) if got != LockOutcome::NotAvailable) {
            let_writers_in(target, context, held);
            return got.map(|_| false);
        }
    }
    Ok(true)
}

/// Gives up the first `held` of the locks.
fn let_writers_in(target: &VacuumTarget<'_>, context: &VacuumContext<'_>, held: usize) {
    let locks = target.heap.context().txns.locks();
    for tag in tags(context).take(held) {
        locks.release(context.backend, LockOwner::Transaction, tag, LockMode::Exclusive);
    }
}

/// Is one of those `before` still in the way, in the same transaction? Notes who is now.
fn any_still(
    before: &mut Vec<(i32, u32)>,
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
) -> bool {
    let locks = target.heap.context().txns.locks();
    let holders =
        |tag| locks.conflicting_holders(context.backend, &tag, LockMode::Exclusive).into_iter();
    let now: Vec<(i32, u32)> = tags(context)
        .flat_map(holders)
        .map(|running| (running.backend.pid, running.number()))
        .filter(|(_, transaction)| *transaction != 0)
        .collect();
    let still = now.iter().any(|n| before.contains(n));
    *before = now;
    still
}

/// Have rows been put at the end of the table of `len` pages, or behind it?
fn end_in_use(target: &VacuumTarget<'_>, len: u32) -> Result<bool> {
    let rel = target.heap.relation();
    if target.heap.len_blocks()?.0 != len {
        return Ok(true);
    }
    let Some(last) = len.checked_sub(1) else { return Ok(true) };
    let pin = rel.pin(Fork::Main, BlockNumber(last), &mut Strategy::vacuum(rel.pool(), 256))?;
    Ok(in_use(&pin.read()))
}

fn in_use(page: &page::Page) -> bool {
    !page.is_new() && page.offsets().any(|o| !page.item_id(o).is_unused())
}

/// With the locks held: finds the end and cuts. The new length, and whether somebody's waiting ended the search early.
fn cut(
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
    expected_len: u32,
    nonempty_pages: u32,
) -> Result<(u32, bool)> {
    let heap = target.heap;
    let len = heap.len_blocks()?.0;
    if len != expected_len {
        // It grew meanwhile: somebody uses the end. The length stays the one that goes with the rows counted.
        return Ok((expected_len, false));
    }
    let (keep, suspended) = last_in_use(target, context, len, nonempty_pages)?;
    if keep >= len {
        return Ok((len, false));
    }
    base::stop_point!("vacuum.truncate.end_found");
    // First what the map says (less than is there, never more), then the heap itself, and the map with it.
    heap.visibility_map().forget(BlockNumber(keep), Some(&heap.context().wal))?;
    context.host.truncate(heap, BlockNumber(keep))?;
    heap.free_space_map().truncate(BlockNumber(keep))?;
    context.say(
        Message::Verbose,
        format!("table \"{}\": truncated {len} to {keep} pages", target.facts.table),
    );
    Ok((keep, suspended))
}

/// One more than the last page in use, looking backwards from the end to `nonempty_pages`.
fn last_in_use(
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
    len: u32,
    nonempty_pages: u32,
) -> Result<(u32, bool)> {
    let locks = target.heap.context().txns.locks();
    let rel = target.heap.relation();
    let mut strategy = Strategy::vacuum(rel.pool(), 256);
    let mut looked = Instant::now();
    let mut block = len;
    while block > nonempty_pages {
        if block.is_multiple_of(32) {
            if looked.elapsed() >= CHECK_WAITERS {
                looked = Instant::now();
                if tags(context).any(|tag| locks.has_waiters(&tag)) {
                    context.say(
                        Message::Verbose,
                        format!(
                            "table \"{}\": suspending truncate due to conflicting lock request",
                            target.facts.table
                        ),
                    );
                    return Ok((block, true));
                }
            }
            rel.prefetch(Fork::Main, BlockNumber(block.saturating_sub(32)), 32);
        }
        base::stop_point!("vacuum.truncate.looking");
        context.backend.cancel.check()?;
        block -= 1;
        let pin = rel.pin(Fork::Main, BlockNumber(block), &mut strategy)?;
        if in_use(&pin.read()) {
            return Ok((block + 1, false));
        }
    }
    Ok((block, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_in_the_queue_four_times_at_most() {
        let attempts = (LOCK_TIMEOUT.as_millis() / LOCK_RETRY.as_millis()) as u32 + 2;
        let queued = |n: &u32| patience(*n) == Wait::AtMost(IN_QUEUE);
        assert_eq!((0..attempts).filter(queued).collect::<Vec<_>>(), [1, 4, 16, 64]);
    }
}
