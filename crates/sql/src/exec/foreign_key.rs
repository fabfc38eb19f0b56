//! Foreign keys: checks and actions at the end of the statement, or of the transaction.
//!
//! # Purpose
//! Rows written queue [`AfterCheck`]s. A referencing row is checked by finding and key-share locking the row it
//! refers to; a referenced row that went or changed its key does what the constraint says to the rows that refer to it.

mod finder;

use super::check_list::CheckList;
use super::context::ExecContext;
use super::foreign_key_text::{Asked, within};
use super::modify::{TableWriter, compile_stored, shown};
use super::unique_later::DoubtfulKey;
use super::{Batch, Cx};
use base::{Oid, Result, SqlError, SqlState, Tid, bail};
use engine::catalog::model::{Column, ForeignKey, ReferentialAction, Table};
use expr::eval::EvalContext;
use finder::Finder;
use heap::{RowQueue, TupleOutcome, TupleSlot};
use std::cell::RefCell;
use std::sync::Arc;
use txn::{IsolationLevel, RowLockMode, Snapshot, Wait};
use types::Datum;

/// What a written row leaves to be seen to.
#[derive(Clone, Debug)]
pub enum AfterCheck {
    /// A row refers to this key.
    Referencing {
        /// The constraint.
        key: Arc<ForeignKey>,
        /// The referring values.
        values: Vec<Datum>,
    },
    /// A key that rows may refer to has gone or become another.
    Referenced {
        /// The constraint.
        key: Arc<ForeignKey>,
        /// The old key.
        old: Vec<Datum>,
        /// The new one, of an update.
        new: Option<Vec<Datum>>,
    },
    /// A key that must be there once may be there twice.
    Unique(DoubtfulKey),
}

fn table(x: &ExecContext<'_>, oid: Oid) -> Result<Arc<Table>> {
    match x.catalog.table_by_oid(oid)? {
        Some(t) => Ok(t),
        None => bail!(UNDEFINED_TABLE, "relation with OID {} does not exist", oid.0),
    }
}

fn names(t: &Table, columns: &[i32]) -> String {
    let list: Vec<&str> =
        columns.iter().map(|c| t.columns[*c as usize - 1].name.as_str()).collect();
    list.join(", ")
}

/// ` (columns)=(values)`; nothing for who may not read them.
fn shown_key(x: &ExecContext<'_>, t: &Table, columns: &[i32], values: &[Datum]) -> String {
    match x.relations.may_read(t, columns) {
        true => format!(" ({})=({})", names(t, columns), texts(x, t, columns, values)),
        false => String::new(),
    }
}

fn texts(x: &ExecContext<'_>, t: &Table, columns: &[i32], values: &[Datum]) -> String {
    let list: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(c, v)| shown(t.columns[*c as usize - 1].ty.oid, v, x))
        .collect();
    list.join(", ")
}

/// Checks that a referring row's key is there, and keeps it there.
fn check_referencing(x: &ExecContext<'_>, key: &Arc<ForeignKey>, values: &[Datum]) -> Result<()> {
    // Also for a key of NULLs: whoever is altering the referred table may be dropping the constraint.
    x.relations.lock_table(key.referenced_table, false)?;
    let nulls = values.iter().filter(|v| v.is_null()).count();
    if nulls == values.len() || (nulls > 0 && !key.match_full) {
        // It refers to nothing that would have to stay.
        x.relations.unlock_table(key.referenced_table, false);
        return Ok(());
    }
    let child = table(x, key.table)?;
    if nulls > 0 {
        return Err(SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                child.name, key.name
            ),
        )
        .detail("MATCH FULL does not allow mixing of null and nonnull key values.")
        .table(&child.namespace_name, &child.name)
        .constraint(&key.name)
        .into());
    }
    let parent = table(x, key.referenced_table)?;
    let finder = Finder::referenced(x, key, &parent, &child)?;
    let there = if x.txn.isolation() == IsolationLevel::ReadCommitted {
        keep_latest(x, &finder, values)
    } else {
        keep_seen(x, &finder, values)
    };
    let there = within(there, Asked::Referenced, key, &parent, &child)?;
    // An action of this or another constraint may have changed the row since, and its check is queued behind this one.
    if there || !still_refers(x, key, &child, values)? {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            child.name, key.name
        ),
    )
    .detail(format!(
        "Key{} is not present in table \"{}\".",
        shown_key(x, &child, &key.columns, values),
        parent.name
    ))
    .table(&child.namespace_name, &child.name)
    .constraint(&key.name)
    .into())
}

/// Has any row these referring values by now?
fn still_refers(
    x: &ExecContext<'_>,
    key: &ForeignKey,
    child: &Arc<Table>,
    values: &[Datum],
) -> Result<bool> {
    let finder = Finder::new(x, child, &key.columns)?;
    Ok(finder.first(x, &x.txn.take_latest_snapshot(), values)?.is_some())
}

/// READ COMMITTED: locks the row that has the key now, waiting for who is changing it; false if there is none, or that row is gone or has
/// another key afterwards, though another row may have taken the key over: as a statement with a snapshot of that moment would see it.
fn keep_latest(x: &ExecContext<'_>, finder: &Finder, values: &[Datum]) -> Result<bool> {
    let (heap, mode) = (&finder.heap, RowLockMode::KeyShare);
    loop {
        x.cancel.check()?;
        // Kept until the row is locked: a version that came after the statement's own snapshot nobody else may keep, and where it was another row may
        // be by then.
        let snapshot = x.txn.take_latest_snapshot();
        let Some(tid) = finder.first(x, &snapshot, values)? else { return Ok(false) };
        base::stop_point!("sql.foreign_key.found");
        let mut queue = RowQueue::new(x.txn);
        let (next, xmax) = match heap.lock_tuple_queued(&mut queue, tid, mode, Wait::Block, None)? {
            TupleOutcome::Ok(()) | TupleOutcome::SelfModified => return Ok(true),
            TupleOutcome::WouldBlock => return Err(not_locked(&finder.table)),
            TupleOutcome::Deleted { .. } => return Ok(false),
            TupleOutcome::Updated { next, xmax } => (next, xmax),
            // It has been cleaned away since: look again.
            TupleOutcome::Invisible => continue,
        };
        let mut slot = TupleSlot::new();
        let latest =
            heap.lock_latest_queued(&mut queue, tid, next, xmax, mode, Wait::Block, &mut slot)?;
        return match latest {
            TupleOutcome::Ok(()) => {
                base::stop_point!("sql.foreign_key.followed");
                finder.has_key(x, &slot, values)
            }
            TupleOutcome::WouldBlock => Err(not_locked(&finder.table)),
            _ => Ok(false),
        };
    }
}

/// A transaction with a snapshot of its own may refer only to the row which that sees: false if it sees none, an error if that row is
/// gone or has another key by now, though another row may have taken the key over.
fn keep_seen(x: &ExecContext<'_>, finder: &Finder, values: &[Datum]) -> Result<bool> {
    let Some(tid) = finder.first(x, &x.txn.take_snapshot(), values)? else { return Ok(false) };
    let (heap, mode) = (&finder.heap, RowLockMode::KeyShare);
    let mut queue = RowQueue::new(x.txn);
    let mut slot = TupleSlot::new();
    let (next, xmax) = match heap.lock_tuple_queued(&mut queue, tid, mode, Wait::Block, None)? {
        TupleOutcome::SelfModified => return Ok(true),
        // An update since does not stand in the way if it left the table's keys alone: those that it had then.
        TupleOutcome::Ok(()) => {
            return match heap.fetch_row(tid, &x.txn.take_latest_snapshot(), &mut slot)?
                && finder.has_key(x, &slot, values)?
            {
                true => Ok(true),
                false => Err(changed_meanwhile("update")),
            };
        }
        TupleOutcome::WouldBlock => return Err(not_locked(&finder.table)),
        TupleOutcome::Updated { .. } if heap.key_has_gone(x.txn, tid)? => {
            return Err(changed_meanwhile("update"));
        }
        TupleOutcome::Updated { next, xmax } => (next, xmax),
        _ => return Err(changed_meanwhile("update")),
    };
    // Clean-up has made the chain shorter: the key itself has to tell.
    match heap.lock_latest_queued(&mut queue, tid, next, xmax, mode, Wait::Block, &mut slot)? {
        TupleOutcome::Ok(()) if finder.has_key(x, &slot, values)? => Ok(true),
        TupleOutcome::WouldBlock => Err(not_locked(&finder.table)),
        _ => Err(changed_meanwhile("update")),
    }
}

fn still_referenced(
    x: &ExecContext<'_>,
    key: &ForeignKey,
    parent: &Table,
    child: &Table,
    old: &[Datum],
    restrict: bool,
) -> base::Error {
    let (state, message) = if restrict {
        (
            SqlState::RESTRICT_VIOLATION,
            format!(
                "update or delete on table \"{}\" violates RESTRICT setting of foreign key constraint \"{}\" on table \"{}\"",
                parent.name, key.name, child.name
            ),
        )
    } else {
        (
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
                parent.name, key.name, child.name
            ),
        )
    };
    let word = if restrict { "is referenced" } else { "is still referenced" };
    SqlError::new(state, message)
        .detail(format!(
            "Key{} {word} from table \"{}\".",
            shown_key(x, parent, &key.referenced_columns, old),
            child.name
        ))
        .table(&child.namespace_name, &child.name)
        .constraint(&key.name)
        .into()
}

/// Does what a constraint says when its referenced key goes or changes. Has it changed rows? What comes next must see that: the
/// same row may refer by another constraint, too.
fn act(
    x: &ExecContext<'_>,
    key: &Arc<ForeignKey>,
    old: &[Datum],
    new: Option<&[Datum]>,
    queue: &mut CheckList,
) -> Result<bool> {
    if old.iter().any(Datum::is_null) {
        return Ok(false);
    }
    let action = if new.is_some() { key.on_update } else { key.on_delete };
    let changes = !matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict);
    x.relations.lock_table(key.table, changes)?;
    let parent = table(x, key.referenced_table)?;
    let child = table(x, key.table)?;
    let snapshot = x.txn.take_latest_snapshot();
    if action == ReferentialAction::NoAction {
        // Another row may have taken the key over.
        let finder = Finder::new(x, &parent, &key.referenced_columns)?;
        let mut there = false;
        let found = finder.find(x, &snapshot, old, &mut |_, _| {
            there = true;
            Ok(false)
        });
        within(found, Asked::Referenced, key, &parent, &child)?;
        if there {
            return Ok(false);
        }
    }
    let finder = Finder::referring(x, key, &parent, &child)?;
    if !changes {
        let referred = is_referred_to(x, &finder, old);
        if within(referred, Asked::Referring, key, &parent, &child)? {
            let restrict = action == ReferentialAction::Restrict;
            return Err(still_referenced(x, key, &parent, &child, old, restrict));
        }
        return Ok(false);
    }
    let mut changed = Ok(false);
    let mut change = || -> Result<()> {
        changed = change_all(x, key, &finder, (old, new), &snapshot, queue);
        Ok(())
    };
    if has_expressions(&child, action) {
        x.relations.as_owner(child.owner, &mut change)?;
    } else {
        change()?;
    }
    let asked = Asked::Action(action, new.is_some());
    if !within(changed, asked, key, &parent, &child)? {
        return Ok(false);
    }
    if action == ReferentialAction::SetDefault {
        // A row that had its defaults before still has them, and nothing above asks whether they are there: what
        // still refers to the key now is refused.
        x.txn.advance_command()?;
        let plain =
            Arc::new(ForeignKey { on_delete: ReferentialAction::NoAction, ..(**key).clone() });
        act(x, &plain, old, None, queue)?;
    }
    Ok(true)
}

/// Does an action evaluate what the owner of the referring table has written into it?
fn has_expressions(child: &Table, action: ReferentialAction) -> bool {
    let of_domain = |c: &Column| types::domains::is_domain(c.declared);
    action == ReferentialAction::SetDefault
        || !child.checks.is_empty()
        || child.columns.iter().any(of_domain)
}

/// Does what a constraint says to all rows that refer, if there are any; what that leaves to be seen to is queued.
fn change_all(
    x: &ExecContext<'_>,
    key: &Arc<ForeignKey>,
    finder: &Finder,
    (old, new): (&[Datum], Option<&[Datum]>),
    snapshot: &Arc<Snapshot>,
    queue: &mut CheckList,
) -> Result<bool> {
    let mut rows: Vec<(Tid, Vec<Datum>)> = Vec::new();
    finder.find(x, snapshot, old, &mut |tid, batch| {
        rows.push((tid, batch.take_row(0)));
        Ok(true)
    })?;
    if rows.is_empty() {
        return Ok(false);
    }
    let repeatable = x.txn.isolation() != IsolationLevel::ReadCommitted;
    let own = repeatable.then(|| x.txn.take_snapshot());
    let mut writer = TableWriter::new(x, &finder.table)?;
    let mut change = |(tid, row)| {
        x.cancel.check()?;
        // Rows that the transaction may not see it may not change either.
        if let Some(own) = &own
            && !finder.heap.fetch_version(tid, own, &mut TupleSlot::new())?
        {
            return Err(changed_meanwhile("update"));
        }
        change_referring(x, key, finder, &mut writer, (tid, row), old, new, queue)
    };
    let changed = rows.into_iter().try_for_each(&mut change);
    // Those changed before one that failed are dead.
    writer.note(x);
    changed?;
    writer.take_doubtful(queue)?;
    Ok(true)
}

fn changed_meanwhile(how: &str) -> base::Error {
    base::err!(SERIALIZATION_FAILURE, "could not serialize access due to concurrent {how}")
}

fn not_locked(child: &Table) -> base::Error {
    base::err!(LOCK_NOT_AVAILABLE, "could not obtain lock on row in relation \"{}\"", child.name)
}

/// Has a row the key `old`? Who is about to take it away is waited for.
fn is_referred_to(x: &ExecContext<'_>, finder: &Finder, old: &[Datum]) -> Result<bool> {
    loop {
        x.cancel.check()?;
        let snapshot = x.txn.take_latest_snapshot();
        let Some(tid) = finder.first(x, &snapshot, old)? else { return Ok(false) };
        match finder.heap.lock_tuple(x.txn, tid, RowLockMode::KeyShare, Wait::Block, None)? {
            TupleOutcome::Ok(()) | TupleOutcome::SelfModified => return Ok(true),
            TupleOutcome::WouldBlock => return Err(not_locked(&finder.table)),
            // It changed: look again.
            TupleOutcome::Updated { .. }
            | TupleOutcome::Deleted { .. }
            | TupleOutcome::Invisible => {
                if x.txn.isolation() != IsolationLevel::ReadCommitted {
                    return Err(changed_meanwhile("update"));
                }
            }
        }
    }
}

/// Does what a constraint says to one referring row: if somebody has changed that meanwhile, to its newest version, should it still refer.
#[expect(
    clippy::too_many_arguments,
    reason = "the constraint, the row, what to do and what follows"
)]
fn change_referring(
    x: &ExecContext<'_>,
    key: &Arc<ForeignKey>,
    finder: &Finder,
    writer: &mut TableWriter,
    (mut tid, mut row): (Tid, Vec<Datum>),
    old: &[Datum],
    new: Option<&[Datum]>,
    after: &mut CheckList,
) -> Result<()> {
    let action = if new.is_some() { key.on_update } else { key.on_delete };
    let deletes = action == ReferentialAction::Cascade && new.is_none();
    let read_committed = x.txn.isolation() == IsolationLevel::ReadCommitted;
    let mode = if deletes { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
    let mut places = RowQueue::new(x.txn);
    loop {
        x.cancel.check()?;
        let outcome = if deletes {
            let outcome = writer.delete(&mut places, tid)?;
            if outcome == TupleOutcome::Ok(()) {
                writer.after_delete(&row, after)?;
            }
            outcome
        } else {
            let mut changed = referring_otherwise(x, key, finder, &row, action, new)?;
            match writer.update(x, &mut places, tid, &row, &mut changed)? {
                TupleOutcome::Ok(done) => {
                    writer.after_update(&row, &changed, done.own, after)?;
                    TupleOutcome::Ok(())
                }
                other => other.failed().unwrap_or(TupleOutcome::Invisible),
            }
        };
        let (next, xmax) = match outcome {
            TupleOutcome::Ok(()) | TupleOutcome::SelfModified => return Ok(()),
            TupleOutcome::Deleted { .. } if read_committed => return Ok(()),
            TupleOutcome::Deleted { .. } => return Err(changed_meanwhile("delete")),
            TupleOutcome::WouldBlock => return Err(not_locked(&finder.table)),
            TupleOutcome::Updated { next, xmax } if read_committed => (next, xmax),
            TupleOutcome::Updated { .. } | TupleOutcome::Invisible => {
                return Err(changed_meanwhile("update"));
            }
        };
        let (heap, mut slot) = (&finder.heap, TupleSlot::new());
        let latest =
            heap.lock_latest_queued(&mut places, tid, next, xmax, mode, Wait::Block, &mut slot)?;
        match latest {
            TupleOutcome::Ok(()) => {}
            TupleOutcome::WouldBlock => return Err(not_locked(&finder.table)),
            _ => return Ok(()),
        }
        let mut batch = Batch::new();
        batch.reset(finder.reader.width());
        finder.reader.read(&slot.view(), slot.tid, heap, &mut batch, |_| Ok(true), false)?;
        if !finder.matches(x, batch.row(0), old)? {
            return Ok(());
        }
        (tid, row) = (slot.tid, batch.take_row(0));
    }
}

/// A referring row with what ON DELETE or ON UPDATE puts in the place of the key.
fn referring_otherwise(
    x: &ExecContext<'_>,
    key: &ForeignKey,
    finder: &Finder,
    row: &[Datum],
    action: ReferentialAction,
    new: Option<&[Datum]>,
) -> Result<Vec<Datum>> {
    let exec = RefCell::new(Vec::new());
    let cx = EvalContext::new(x.env, &exec);
    let mut changed = row.to_vec();
    let only = Some(&key.on_delete_columns).filter(|list| new.is_none() && !list.is_empty());
    for (n, c) in key.columns.iter().enumerate() {
        if only.is_some_and(|list| !list.contains(c)) {
            continue;
        }
        let column = &finder.table.columns[*c as usize - 1];
        changed[*c as usize - 1] = match (action, new) {
            (ReferentialAction::Cascade, Some(v)) => finder.sides[n].assigned(x, &v[n])?,
            (ReferentialAction::SetDefault, _) => match column.any_default() {
                Some(d) => compile_stored(d)?.eval(&[], &cx)?,
                None => Datum::Null,
            },
            _ => Datum::Null,
        };
        types::domains::check(column.declared, &changed[*c as usize - 1], x.env)?;
    }
    Ok(changed)
}

fn work(x: &ExecContext<'_>, mut queue: CheckList) -> Result<()> {
    if queue.is_empty() {
        return Ok(());
    }
    // Rows of this statement must be seen.
    x.txn.advance_command()?;
    let mut n = 0u32;
    while let Some(check) = queue.take_first()? {
        n += 1;
        if n.is_multiple_of(64) {
            x.cancel.check()?;
        }
        match check {
            AfterCheck::Referencing { key, values } => {
                if x.relations.is_deferred(&key) {
                    x.relations.defer(AfterCheck::Referencing { key, values })?;
                    continue;
                }
                check_referencing(x, &key, &values)?;
            }
            AfterCheck::Referenced { key, old, new } => {
                let action = if new.is_some() { key.on_update } else { key.on_delete };
                if action == ReferentialAction::NoAction && x.relations.is_deferred(&key) {
                    x.relations.defer(AfterCheck::Referenced { key, old, new: None })?;
                    continue;
                }
                if act(x, &key, &old, new.as_deref(), &mut queue)? {
                    x.txn.advance_command()?;
                }
            }
            AfterCheck::Unique(key) => {
                if x.relations.is_put_off(key.constraint, key.deferred) {
                    x.relations.defer(AfterCheck::Unique(key))?;
                } else {
                    key.check(x)?;
                }
            }
        }
    }
    Ok(())
}

/// Runs what the statement has queued.
pub(crate) fn run_after(cx: &Cx<'_>) -> Result<()> {
    work(cx.x, cx.shared.after.take())
}

/// Runs foreign-key work that COPY and others have collected themselves.
///
/// # Errors
/// `23503` and what the actions meet.
pub fn run_checks(x: &ExecContext<'_>, checks: CheckList) -> Result<()> {
    work(x, checks)
}

/// Runs checks that were put off to the end of the transaction (or SET CONSTRAINTS … IMMEDIATE).
///
/// # Errors
/// `23503`.
pub fn run_deferred(x: &ExecContext<'_>, mut checks: CheckList) -> Result<()> {
    x.txn.advance_command()?;
    while let Some(c) = checks.take_first()? {
        match c {
            AfterCheck::Referencing { key, .. } | AfterCheck::Referenced { key, .. }
                if !is_there(x, &key)? => {}
            AfterCheck::Referencing { key, values } => {
                // The row may be gone or changed by now: only a row that still refers counts.
                let child = table(x, key.table)?;
                if values.iter().any(Datum::is_null) {
                    x.relations.lock_table(key.referenced_table, false)?;
                } else if still_refers(x, &key, &child, &values)? {
                    check_referencing(x, &key, &values)?;
                }
            }
            AfterCheck::Referenced { key, old, .. } => {
                let mut queue = CheckList::default();
                let plain = Arc::new(ForeignKey {
                    on_delete: ReferentialAction::NoAction,
                    ..(*key).clone()
                });
                act(x, &plain, &old, None, &mut queue)?;
            }
            AfterCheck::Unique(key) => key.check(x)?,
        }
    }
    Ok(())
}

/// Is the constraint still there? Who dropped it, or one of its tables, in the same transaction has done with what it would have asked.
fn is_there(x: &ExecContext<'_>, key: &ForeignKey) -> Result<bool> {
    let child = x.catalog.table_by_oid(key.table)?;
    Ok(child.is_some_and(|child| child.foreign_keys.iter().any(|k| k.oid == key.oid)))
}
