//! Where a tuple is judged: seen by a snapshot, in the way of an update, dead for a cleaner.
//!
//! # Purpose
//! Six questions about one tuple: [`satisfies_mvcc`] (may this snapshot see it), [`is_gone`] (or will none see it that comes after), [`satisfies_dirty`] (does it
//! exist as of now, whoever made it: unique checks), [`satisfies_self`], [`satisfies_update`] (may this
//! command change it) and [`satisfies_vacuum`] (can anybody still see it).
//!
//! # Invariants
//! A hint ("committed") decides alone only for transactions below the snapshot's xmin; above it the CSN
//! does. A committed hint is proposed with the LSN of a commit that is not durable yet: the page must not
//! reach the disk before that ([`Hints::after`]). Own changes are judged by command id: a
//! statement sees what earlier commands of its transaction did, not what it does itself.
//!
//! # Differs from PostgreSQL
//! Snapshots are {csn, xmin}; xmax is never a locker; hint bits are proposed by the judge and set by
//! who holds the page, without dirtying it. A commit that nobody waited for (`synchronous_commit = off`) gives its hints at
//! once, and the frame remembers what WAL its page needs; PostgreSQL gives them if the page's own LSN is as young, else later.

use crate::prune::Verdict;
use base::sync::Arc;
use base::{CommandId, Csn, Lsn, Result, Tid, Xid};
use page::tuple::{
    COMBO_CID, TupleView, XMAX_COMMITTED, XMAX_INVALID, XMIN_COMMITTED, XMIN_FROZEN, XMIN_INVALID,
};
use txn::{LiveSnapshots, Snapshot, Transaction, TransactionManager, XidStatus};

/// Hint bits that a judgement found out, and the cost of finding them out again saved.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hints {
    /// Infomask bits to set on the tuple judged last.
    pub bits: u16,
    /// How far the WAL must be durable before they reach the disk; may be that of an earlier tuple.
    pub after: Lsn,
    /// The last transaction whose commit was found durable.
    durable: Xid,
    /// The last transaction that was found to have ended, and whether by a commit.
    ended: (Xid, bool),
}

impl Hints {
    /// Proposes `bit`: `xid` has committed.
    #[inline]
    fn committed(&mut self, manager: &TransactionManager, xid: Xid, bit: u16) {
        if self.durable != xid {
            let needed = manager.commit_lsn_to_flush(xid);
            if needed.is_valid() {
                self.after = self.after.max(needed);
            } else {
                self.durable = xid;
            }
        }
        self.bits |= bit;
    }

    /// [`xid_state`], remembering the last one that will not change: neighbours often are of one transaction.
    #[inline]
    fn state_of(
        &mut self,
        xid: Xid,
        manager: &TransactionManager,
        me: Option<&Transaction>,
    ) -> Result<State> {
        if xid == self.ended.0 && xid.is_valid() {
            return Ok(if self.ended.1 { State::Committed } else { State::Aborted });
        }
        let state = xid_state(xid, manager, me)?;
        if matches!(state, State::Committed | State::Aborted) {
            self.ended = (xid, state == State::Committed);
        }
        Ok(state)
    }
}

/// The command that inserted and the one that deleted, where they are the own transaction's. `combo`
/// looks a combo id up in its table.
fn own_commands(
    t: &TupleView<'_>,
    combo: impl Fn(CommandId) -> Option<(CommandId, CommandId)>,
) -> (CommandId, CommandId) {
    let cid = t.command_id();
    if t.infomask() & COMBO_CID != 0 {
        // "Never" for one that should be in the table and is not.
        combo(cid).unwrap_or((CommandId(u32::MAX), CommandId(u32::MAX)))
    } else {
        (cid, cid)
    }
}

/// May `snapshot` see the tuple?
///
/// # Errors
/// When the commit log can't be read.
#[inline]
pub fn satisfies_mvcc(t: &TupleView<'_>, snapshot: &Snapshot, hints: &mut Hints) -> Result<bool> {
    hints.bits = 0;
    let mask = t.infomask();
    match mask & XMIN_FROZEN {
        XMIN_FROZEN => {}
        XMIN_INVALID => return Ok(false),
        XMIN_COMMITTED => {
            if !snapshot.sees_committed(t.raw_xmin())? {
                return Ok(false);
            }
        }
        _ => {
            let xmin = t.raw_xmin();
            if !xmin.is_normal() {
                if !xmin.is_valid() {
                    return Ok(false);
                }
            } else if snapshot.is_mine(xmin) {
                return Ok(sees_own(t, snapshot));
            } else if snapshot.sees(xmin)? {
                hints.committed(snapshot.manager(), xmin, XMIN_COMMITTED);
            } else {
                if xmin < snapshot.xmin {
                    // It had ended, and not by a commit.
                    hints.bits |= XMIN_INVALID;
                }
                return Ok(false);
            }
        }
    }
    if mask & XMAX_INVALID != 0 {
        return Ok(true);
    }
    let xmax = t.xmax();
    if mask & XMAX_COMMITTED != 0 {
        return Ok(!snapshot.sees_committed(xmax)?);
    }
    if !xmax.is_normal() {
        return Ok(!xmax.is_valid());
    }
    if snapshot.is_mine(xmax) {
        return Ok(own_commands(t, |n| snapshot.combo(n)).1 >= snapshot.command_id);
    }
    if snapshot.sees(xmax)? {
        hints.committed(snapshot.manager(), xmax, XMAX_COMMITTED);
        return Ok(false);
    }
    if xmax < snapshot.xmin {
        hints.bits |= XMAX_INVALID;
    }
    Ok(true)
}

/// Is a tuple that `snapshot` does not see gone for it and for every snapshot that sees what it sees? That is so where who made the tuple rolled
/// back, or where another transaction that the snapshot sees took it away; the own transaction may yet roll back.
///
/// # Errors
/// When the commit log can't be read.
pub fn is_gone(t: &TupleView<'_>, snapshot: &Snapshot) -> Result<bool> {
    let mask = t.infomask();
    // Who is at work, or committed later than the snapshot, may have made it for those who come.
    let made = match mask & XMIN_FROZEN {
        XMIN_FROZEN => true,
        XMIN_INVALID => return Ok(true),
        XMIN_COMMITTED => snapshot.sees_committed(t.raw_xmin())?,
        _ => {
            let xmin = t.raw_xmin();
            !xmin.is_normal() || (!snapshot.is_mine(xmin) && snapshot.sees(xmin)?)
        }
    };
    let xmax = t.xmax();
    if !made || mask & XMAX_INVALID != 0 || !xmax.is_normal() {
        return Ok(false);
    }
    if mask & XMAX_COMMITTED != 0 {
        return snapshot.sees_committed(xmax);
    }
    Ok(!snapshot.is_mine(xmax) && snapshot.sees(xmax)?)
}

/// [`satisfies_mvcc`] for a tuple that the own transaction inserted.
#[cold]
fn sees_own(t: &TupleView<'_>, snapshot: &Snapshot) -> bool {
    let (cmin, cmax) = own_commands(t, |n| snapshot.combo(n));
    if cmin >= snapshot.command_id {
        return false;
    }
    let xmax = t.xmax();
    if t.infomask() & XMAX_INVALID != 0 || !xmax.is_valid() || !snapshot.is_mine(xmax) {
        // Never deleted, or by a subtransaction that rolled back.
        return true;
    }
    cmax >= snapshot.command_id
}

/// The state of a transaction as of now, hint bits and special ids considered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    None,
    Mine,
    Running,
    Committed,
    Aborted,
}

#[inline]
fn xmin_state(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    me: Option<&Transaction>,
    hints: &mut Hints,
) -> Result<State> {
    match t.infomask() & XMIN_FROZEN {
        XMIN_FROZEN | XMIN_COMMITTED => return Ok(State::Committed),
        XMIN_INVALID => return Ok(State::Aborted),
        _ => {}
    }
    let xmin = t.raw_xmin();
    if !xmin.is_valid() {
        return Ok(State::Aborted);
    }
    let state = hints.state_of(xmin, manager, me)?;
    match state {
        State::Committed => hints.committed(manager, xmin, XMIN_COMMITTED),
        State::Aborted => hints.bits |= XMIN_INVALID,
        _ => {}
    }
    Ok(state)
}

#[inline]
fn xmax_state(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    me: Option<&Transaction>,
    hints: &mut Hints,
) -> Result<State> {
    let mask = t.infomask();
    let xmax = t.xmax();
    if mask & XMAX_INVALID != 0 || !xmax.is_valid() {
        return Ok(State::None);
    }
    if mask & XMAX_COMMITTED != 0 {
        return Ok(State::Committed);
    }
    let state = hints.state_of(xmax, manager, me)?;
    match state {
        State::Committed => hints.committed(manager, xmax, XMAX_COMMITTED),
        State::Aborted => hints.bits |= XMAX_INVALID,
        _ => {}
    }
    Ok(state)
}

fn xid_state(xid: Xid, manager: &TransactionManager, me: Option<&Transaction>) -> Result<State> {
    if !xid.is_normal() {
        return Ok(State::Committed);
    }
    if me.is_some_and(|b| b.is_mine(xid)) {
        return Ok(State::Mine);
    }
    Ok(match manager.status(xid)? {
        XidStatus::InProgress => State::Running,
        XidStatus::Committed(_) => State::Committed,
        XidStatus::Aborted => State::Aborted,
    })
}

/// What a tuple is as of now, running transactions' changes considered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dirty {
    /// It does not exist, or not any more.
    Dead,
    /// It exists.
    Live,
    /// Another running transaction inserted it.
    Inserting(Xid),
    /// Another running transaction deleted or updated it.
    Deleting(Xid),
}

/// What is the tuple as of now? Own changes count, of other running transactions it says so.
///
/// # Errors
/// When the commit log can't be read.
pub fn satisfies_dirty(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    me: Option<&Transaction>,
    hints: &mut Hints,
) -> Result<Dirty> {
    hints.bits = 0;
    let xmin = xmin_state(t, manager, me, hints)?;
    match xmin {
        State::Aborted | State::None => return Ok(Dirty::Dead),
        State::Running => return Ok(Dirty::Inserting(t.raw_xmin())),
        State::Mine | State::Committed => {}
    }
    Ok(match xmax_state(t, manager, me, hints)? {
        State::None | State::Aborted => Dirty::Live,
        // Deleted by a subtransaction of another one whose insert is running cannot be: xmin was judged.
        State::Running => Dirty::Deleting(t.xmax()),
        State::Committed | State::Mine => Dirty::Dead,
    })
}

/// Who has deleted a tuple or replaced it, whoever made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    /// Nobody, or he has rolled back.
    Not,
    /// Another transaction, which is running: perhaps the one that made it.
    Running(Xid),
    /// A committed transaction, or the own one.
    Done,
}

/// Has the tuple been deleted or replaced, as of now? Unlike [`satisfies_dirty`] this looks past an inserter who is running still. One that was
/// never inserted, its inserter having rolled back, is as good as unchanged: nothing newer came of it.
///
/// # Errors
/// When the commit log can't be read.
pub(crate) fn changed(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    me: &Transaction,
) -> Result<Changed> {
    let mut hints = Hints::default();
    if xmin_state(t, manager, Some(me), &mut hints)? == State::Aborted {
        return Ok(Changed::Not);
    }
    Ok(match xmax_state(t, manager, Some(me), &mut hints)? {
        State::None | State::Aborted => Changed::Not,
        State::Running => Changed::Running(t.xmax()),
        State::Committed | State::Mine => Changed::Done,
    })
}

/// Does the tuple exist for this transaction as of now: committed, or its own work?
///
/// # Errors
/// When the commit log can't be read.
pub fn satisfies_self(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    me: Option<&Transaction>,
    hints: &mut Hints,
) -> Result<bool> {
    Ok(matches!(satisfies_dirty(t, manager, me, hints)?, Dirty::Live | Dirty::Deleting(_)))
}

/// What stands between a command and the tuple it wants to change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateVerdict {
    /// Nothing.
    Ok,
    /// The command could not have seen it.
    Invisible,
    /// The same command, or a later one of this transaction, changed it already.
    SelfModified,
    /// A committed transaction updated it: there is a newer version.
    Updated,
    /// A committed transaction deleted it.
    Deleted,
    /// A running transaction changed it.
    BeingModified(Xid),
}

/// May command `cid` of `me` change the tuple at `tid`, as of now?
///
/// # Errors
/// When the commit log can't be read.
pub fn satisfies_update(
    t: &TupleView<'_>,
    tid: Tid,
    me: &Transaction,
    cid: CommandId,
    hints: &mut Hints,
) -> Result<UpdateVerdict> {
    hints.bits = 0;
    let manager = &**me.manager();
    let xmin = xmin_state(t, manager, Some(me), hints)?;
    match xmin {
        State::Mine if own_commands(t, |n| me.combo_pair(n)).0 >= cid => {
            return Ok(UpdateVerdict::Invisible);
        }
        State::Mine | State::Committed => {}
        _ => return Ok(UpdateVerdict::Invisible),
    }
    Ok(match xmax_state(t, manager, Some(me), hints)? {
        State::None | State::Aborted => UpdateVerdict::Ok,
        State::Mine if own_commands(t, |n| me.combo_pair(n)).1 >= cid => {
            UpdateVerdict::SelfModified
        }
        State::Mine => UpdateVerdict::Invisible,
        State::Running => UpdateVerdict::BeingModified(t.xmax()),
        State::Committed if t.ctid() == tid => UpdateVerdict::Deleted,
        State::Committed => UpdateVerdict::Updated,
    })
}

/// Which versions must be kept.
#[derive(Clone, Debug)]
pub struct Horizon {
    /// Every live snapshot, and every one to come, sees which transactions below this committed.
    pub oldest_xmin: Xid,
    /// The live snapshots at some moment, if it is to be asked between which of them a version lived. A list that has
    /// grown old keeps too much, never too little.
    pub live: Option<Arc<LiveSnapshots>>,
}

impl Horizon {
    /// By the age of transactions alone.
    pub fn at(oldest_xmin: Xid) -> Horizon {
        Horizon { oldest_xmin, live: None }
    }

    /// What a version is that `xmin` made and `xmax` removed; both have committed. A frozen version was made before every snapshot,
    /// whatever XID is stored with it: [`TupleView::xmin`].
    #[inline]
    fn deleted(&self, xmin: Xid, xmax: Xid, manager: &TransactionManager) -> Result<Verdict> {
        if xmax < self.oldest_xmin {
            return Ok(Verdict::Dead);
        }
        match &self.live {
            None => Ok(Verdict::RecentlyDead),
            // Below the horizon it was born before every snapshot: no need to look up when.
            Some(live) => between(live, (xmin >= self.oldest_xmin).then_some(xmin), xmax, manager),
        }
    }
}

/// When `xid`, which has committed, did; the time before every snapshot for what the window no longer knows.
fn committed_at(xid: Xid, manager: &TransactionManager) -> Result<Option<Csn>> {
    Ok(match manager.status(xid)? {
        XidStatus::Committed(csn) => Some(csn),
        XidStatus::InProgress | XidStatus::Aborted => None,
    })
}

/// Does any of the snapshots stand between the version's birth and its death, or before its birth?
fn between(
    live: &LiveSnapshots,
    xmin: Option<Xid>,
    xmax: Xid,
    manager: &TransactionManager,
) -> Result<Verdict> {
    let Some(died) = committed_at(xmax, manager)? else { return Ok(Verdict::RecentlyDead) };
    if died > live.taken_at {
        return Ok(Verdict::RecentlyDead);
    }
    if !live.any_before(died) {
        return Ok(Verdict::Dead);
    }
    let Some(xmin) = xmin else { return Ok(Verdict::RecentlyDead) };
    let Some(born) = committed_at(xmin, manager)? else { return Ok(Verdict::RecentlyDead) };
    Ok(if live.any_between(born, died) { Verdict::RecentlyDead } else { Verdict::Middle })
}

/// May one of the horizon's snapshots see a version before this one, whose inserter has committed?
pub(crate) fn sees_before(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    horizon: &Horizon,
) -> Result<bool> {
    let Some(live) = &horizon.live else { return Ok(true) };
    if t.xmin() < horizon.oldest_xmin {
        return Ok(false);
    }
    Ok(committed_at(t.xmin(), manager)?.is_none_or(|born| live.any_before(born)))
}

/// What is the tuple to a cleaner?
///
/// # Errors
/// When the commit log can't be read.
pub fn satisfies_vacuum(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    horizon: &Horizon,
    hints: &mut Hints,
) -> Result<Verdict> {
    hints.bits = 0;
    match xmin_state(t, manager, None, hints)? {
        State::Aborted | State::None => return Ok(Verdict::Dead),
        State::Running | State::Mine => {
            let xmax = t.xmax();
            let deleted = t.infomask() & XMAX_INVALID == 0 && xmax.is_valid();
            return Ok(if deleted && xid_state(xmax, manager, None)? == State::Running {
                Verdict::DeleteInProgress
            } else {
                Verdict::InsertInProgress
            });
        }
        State::Committed => {}
    }
    Ok(match xmax_state(t, manager, None, hints)? {
        State::None | State::Aborted => Verdict::Live,
        State::Running | State::Mine => Verdict::DeleteInProgress,
        State::Committed => horizon.deleted(t.xmin(), t.xmax(), manager)?,
    })
}

/// Whether the tuple is surely dead to all, as far as hint bits say it; `None`: the horizon decides.
#[inline]
pub(crate) fn dead_by_hints(t: &TupleView<'_>) -> Option<bool> {
    let mask = t.infomask();
    match mask & XMIN_FROZEN {
        XMIN_INVALID => return Some(true),
        0 => return Some(!t.raw_xmin().is_valid()),
        _ => {}
    }
    (mask & XMAX_INVALID != 0 || mask & XMAX_COMMITTED == 0).then_some(false)
}

/// True if the tuple is surely dead to all, by hint bits and horizon alone (for killing index entries).
///
/// # Errors
/// When the commit log can't be read.
#[inline]
pub fn is_surely_dead(
    t: &TupleView<'_>,
    manager: &TransactionManager,
    horizon: &Horizon,
) -> Result<bool> {
    if let Some(dead) = dead_by_hints(t) {
        return Ok(dead);
    }
    let verdict = horizon.deleted(t.xmin(), t.xmax(), manager)?;
    Ok(matches!(verdict, Verdict::Dead | Verdict::Middle))
}

#[cfg(test)]
mod tests;
