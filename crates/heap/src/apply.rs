//! The changes to heap pages, as pure functions.
//!
//! # Purpose
//! Normal running and replay call the very same functions, so that a replayed page equals the
//! original. None of them decides anything: what to do has been planned before.
//!
//! # Invariants
//! A page is changed here only, and only inside a critical section together with its WAL record.

use base::{CommandId, OffsetNumber, Tid, Xid};
use page::Page;
use page::tuple::{
    CHAIN_SHORTENED, COMBO_CID, HEADER_MIN, HEAP_ONLY, HOT_UPDATED, KEYS_UPDATED, TupleMut,
    UPDATED, XMAX_COMMITTED, XMAX_INVALID, XMIN_COMMITTED, XMIN_FROZEN, XMIN_INVALID,
    xid_to_offset,
};

/// The parts of a tuple that do not depend on where it lies: what a WAL record holds of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TupleParts<'a> {
    pub infomask2: u16,
    pub infomask: u16,
    pub hoff: u8,
    /// From byte [`HEADER_MIN`] on: null bitmap, padding and data.
    pub body: Body<'a>,
}

/// A tuple's body, in up to three pieces (an update logs only the middle one).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a>(pub [&'a [u8]; 3]);

impl<'a> Body<'a> {
    pub fn whole(bytes: &'a [u8]) -> Body<'a> {
        Body([bytes, &[], &[]])
    }
    pub fn len(&self) -> usize {
        self.0.iter().map(|p| p.len()).sum()
    }
}

impl<'a> TupleParts<'a> {
    /// The parts of a formed tuple, its flags reduced to those about its data.
    pub fn of(tuple: &'a [u8]) -> TupleParts<'a> {
        use page::tuple::{HAS_EXTERNAL, HAS_NULL, HAS_VARWIDTH, NATTS_MASK, TupleView};
        let view = TupleView { bytes: tuple, xid_base: Xid(0) };
        TupleParts {
            infomask2: view.infomask2() & NATTS_MASK,
            infomask: view.infomask() & (HAS_NULL | HAS_VARWIDTH | HAS_EXTERNAL) | XMAX_INVALID,
            hoff: view.hoff() as u8,
            body: Body::whole(tuple.get(HEADER_MIN..).unwrap_or(&[])),
        }
    }
    pub fn len(&self) -> usize {
        HEADER_MIN + self.body.len()
    }
    /// As a version made by an update.
    pub fn updated(mut self, hot: bool) -> Self {
        self.infomask |= UPDATED;
        if hot {
            self.infomask2 |= HEAP_ONLY;
        }
        self
    }
    /// As a tuple that everybody sees (COPY FREEZE).
    pub fn frozen(mut self) -> Self {
        self.infomask |= XMIN_FROZEN;
        self
    }
}

/// Who changes a row: the (sub)transaction and its command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub xid: Xid,
    pub cid: CommandId,
    /// `cid` is a combo id (deleting what the same transaction inserted).
    pub combo: bool,
}

/// A 32-bit xid for a page that is known to fit it.
fn fit(page: &Page, xid: Xid) -> u32 {
    xid_to_offset(page.xid_base(), xid).expect("the page's xid base was checked before")
}

/// Puts a tuple at `tid.offset`. False if it does not fit (replay of a damaged log).
#[must_use]
pub(crate) fn insert(page: &mut Page, tid: Tid, parts: &TupleParts<'_>, by: Actor) -> bool {
    let xmin = fit(page, by.xid);
    if usize::from(tid.offset.0) > page.item_count() + 1 || !page.item_id(tid.offset).is_unused() {
        return false;
    }
    if usize::from(tid.offset.0) > page.item_count() {
        // Taken from the end, since there is no unused line pointer.
        let f = page.flags();
        page.set_flags(f & !page::flags::HAS_FREE_LINES);
    }
    let Some(item) = page.reserve_item(tid.offset, parts.len()) else { return false };
    let (header, mut rest) = item.split_at_mut(HEADER_MIN);
    let mut t = TupleMut(header);
    t.set_xmin_offset(xmin);
    t.set_xmax_offset(0);
    t.set_command_id(by.cid);
    t.set_ctid(tid);
    t.set_infomask2(parts.infomask2);
    t.set_infomask(parts.infomask);
    t.set_hoff(parts.hoff);
    for piece in parts.body.0 {
        let (here, after) = rest.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        rest = after;
    }
    true
}

/// Lays a page out for its first tuple.
pub(crate) fn init(page: &mut Page, base: Xid) {
    page.init(0);
    page.set_xid_base(base);
}

fn set_xmax(page: &mut Page, offset: OffsetNumber, by: Actor) {
    let xmax = fit(page, by.xid);
    let mut t = page.tuple_mut(offset);
    t.set_xmax_offset(xmax);
    t.set_command_id(by.cid);
    let mask = t.infomask() & !(XMAX_COMMITTED | XMAX_INVALID | COMBO_CID);
    t.set_infomask(mask | if by.combo { COMBO_CID } else { 0 });
    note_prunable(page, by.xid);
}

/// Lowers the page's prune hint to `xid` if that is older.
pub(crate) fn note_prunable(page: &mut Page, xid: Xid) {
    let old = page.prune_xid();
    if !old.is_valid() || xid < old {
        page.set_prune_xid(xid);
    }
}

/// Marks the tuple at `tid` deleted.
pub(crate) fn delete(page: &mut Page, tid: Tid, by: Actor) {
    set_xmax(page, tid.offset, by);
    let mut t = page.tuple_mut(tid.offset);
    t.set_ctid(tid);
    let mask2 = t.infomask2() & !HOT_UPDATED;
    t.set_infomask2(mask2 | KEYS_UPDATED);
}

/// Marks the tuple at `offset` updated, its next version being at `next`.
pub(crate) fn update_old(
    page: &mut Page,
    offset: OffsetNumber,
    next: Tid,
    by: Actor,
    hot: bool,
    keys: bool,
) {
    set_xmax(page, offset, by);
    let mut t = page.tuple_mut(offset);
    t.set_ctid(next);
    let mask2 = t.infomask2() & !(HOT_UPDATED | KEYS_UPDATED);
    let mask2 = mask2 | if hot { HOT_UPDATED } else { 0 } | if keys { KEYS_UPDATED } else { 0 };
    t.set_infomask2(mask2);
}

/// Makes a tuple just inserted by the running transaction as if it had aborted.
pub(crate) fn kill(page: &mut Page, offset: OffsetNumber) {
    let xmin = page.tuple(offset).raw_xmin();
    let mut t = page.tuple_mut(offset);
    let mask = t.infomask() & !XMIN_COMMITTED;
    t.set_infomask(mask | XMIN_INVALID);
    t.set_xmin_offset(0);
    if xmin.is_valid() {
        note_prunable(page, xmin);
    }
}

/// Replaces a tuple's body in place (same length): catalog statistics, which are not versioned.
#[must_use]
pub(crate) fn in_place(page: &mut Page, offset: OffsetNumber, body: &[u8]) -> bool {
    match page.item_mut(offset).get_mut(HEADER_MIN..) {
        Some(old) if old.len() == body.len() => {
            old.copy_from_slice(body);
            true
        }
        _ => false,
    }
}

/// What becomes of one tuple's transaction ids when the page's base moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rebase {
    pub offset: OffsetNumber,
    pub xmin: RebaseTo,
    pub xmax: RebaseTo,
}

/// What becomes of a transaction id when the page's base moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RebaseTo {
    /// Still fits: the same transaction, another offset.
    Keep = 0,
    /// Committed, seen by all.
    Frozen = 1,
    /// Aborted.
    Aborted = 2,
}

impl RebaseTo {
    pub fn from_number(n: u8) -> Option<RebaseTo> {
        Some(match n {
            0 => RebaseTo::Keep,
            1 => RebaseTo::Frozen,
            2 => RebaseTo::Aborted,
            _ => return None,
        })
    }
}

/// Moves the page's base to `base`; every normal tuple is kept unless `list` says otherwise.
#[must_use]
pub(crate) fn shift_base(page: &mut Page, base: Xid, list: &[Rebase]) -> bool {
    let old = page.xid_base();
    let prune = page.prune_xid();
    let mut list = list.iter().peekable();
    for offset in page.offsets() {
        if !page.item_id(offset).is_normal() {
            continue;
        }
        let how = list.next_if(|r| r.offset == offset).copied();
        let how = how.unwrap_or(Rebase { offset, xmin: RebaseTo::Keep, xmax: RebaseTo::Keep });
        let view = page.tuple(offset);
        debug_assert_eq!(view.xid_base, old);
        let (xmin, xmax) = (view.raw_xmin(), view.xmax());
        let shortened = view.infomask2() & CHAIN_SHORTENED != 0;
        let next = shortened.then(|| view.next_xmin());
        let mut t = page.tuple_mut(offset);
        if let Some(next) = next {
            // One that does not fit is any.
            t.set_command_id(CommandId(xid_to_offset(base, next).unwrap_or(0)));
        }
        let mask = t.infomask();
        match how.xmin {
            RebaseTo::Keep => match xid_to_offset(base, xmin) {
                Some(o) => t.set_xmin_offset(o),
                None => return false,
            },
            RebaseTo::Frozen => {
                t.set_xmin_offset(Xid::FROZEN.0 as u32);
                t.set_infomask(mask | XMIN_FROZEN);
            }
            RebaseTo::Aborted => {
                t.set_xmin_offset(0);
                t.set_infomask(mask & !XMIN_COMMITTED | XMIN_INVALID);
            }
        }
        let mask = t.infomask();
        match how.xmax {
            RebaseTo::Keep => match xid_to_offset(base, xmax) {
                Some(o) => t.set_xmax_offset(o),
                None => return false,
            },
            RebaseTo::Frozen => {
                t.set_xmax_offset(Xid::FROZEN.0 as u32);
                t.set_infomask(mask & !XMAX_INVALID | XMAX_COMMITTED);
            }
            RebaseTo::Aborted => {
                t.set_xmax_offset(0);
                t.set_infomask(mask & !XMAX_COMMITTED | XMAX_INVALID);
            }
        }
    }
    page.set_xid_base(base);
    // Too old for the new base: bootstrap's id is older than every horizon, so the page is looked at.
    let prune = match xid_to_offset(base, prune) {
        Some(_) => prune,
        None => Xid::BOOTSTRAP,
    };
    page.set_prune_xid(prune);
    true
}
