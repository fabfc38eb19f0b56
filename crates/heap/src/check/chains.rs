//! Which line pointer of a page leads to which: every version that no index entry points to is led to by one.

use super::PageFault;
use base::{BlockNumber, OffsetNumber};
use page::Page;
use page::tuple::{CHAIN_SHORTENED, TupleView, XMAX_INVALID, XMIN_FROZEN, XMIN_INVALID};

/// What leads to each line pointer of a page.
pub(super) struct Chains {
    before: Vec<Option<OffsetNumber>>,
}

impl Chains {
    /// Follows the redirects and the updates within a page that [`Page::verify`] has passed, telling what is wrong with them.
    pub(super) fn of(page: &Page, block: BlockNumber, fault: &mut dyn FnMut(PageFault)) -> Chains {
        let mut chains = Chains { before: vec![None; page.item_count() + 1] };
        for offset in page.offsets() {
            let id = page.item_id(offset);
            let to = if id.is_redirect() {
                Some(id.redirect_target())
            } else if id.is_normal() {
                updated_to(page, block, offset, fault)
            } else {
                None
            };
            let Some(to) = to else { continue };
            let Some(before) = chains.before.get_mut(usize::from(to.0)) else { continue };
            match before {
                None => *before = Some(offset),
                // VACUUM has aimed one past the other, and has not taken that away yet.
                Some(other) if is_aimed(page, *other) || is_aimed(page, offset) => {}
                Some(other) => {
                    let what = format!("line pointers {other} and {offset} both lead to {to}");
                    fault((Some(offset), what));
                }
            }
        }
        chains
    }

    /// Whether something leads to `offset`.
    pub(super) fn lead_to(&self, offset: OffsetNumber) -> bool {
        self.before.get(usize::from(offset.0)).is_some_and(Option::is_some)
    }
}

/// The version that the one at `offset` was updated to, if it is on the same page. What an aborted update made may be gone, and
/// its line pointer another row's.
fn updated_to(
    page: &Page,
    block: BlockNumber,
    offset: OffsetNumber,
    fault: &mut dyn FnMut(PageFault),
) -> Option<OffsetNumber> {
    let tuple = page.tuple(offset);
    let mut fault = |what: String| fault((Some(offset), format!("tuple {offset}: {what}")));
    if !has_deleter(&tuple) {
        return None;
    }
    if !tuple.xmax().is_valid() {
        if tuple.is_hot_updated() {
            fault("is updated heap-only, but by nobody".into());
        }
        return None;
    }
    let ctid = tuple.ctid();
    if ctid.block != block {
        if tuple.is_hot_updated() {
            fault(format!("is updated heap-only, but leads to block {}", ctid.block));
        }
        return None;
    }
    let there = (1..=page.item_count()).contains(&usize::from(ctid.offset.0));
    if ctid.offset == offset || !there {
        return None;
    }
    let next = page.item_id(ctid.offset).is_normal().then(|| page.tuple(ctid.offset))?;
    let expected = tuple.next_xmin();
    if expected.is_valid() && expected != next.raw_xmin() {
        return None;
    }
    match (tuple.is_hot_updated(), next.is_heap_only()) {
        (true, false) => {
            fault(format!("is updated heap-only, but {} is not heap-only", ctid.offset));
        }
        (false, true) => {
            fault(format!("is not updated heap-only, but {} is heap-only", ctid.offset));
        }
        _ => {}
    }
    Some(ctid.offset)
}

/// Whether a version leads past the one that it was updated to.
fn is_aimed(page: &Page, offset: OffsetNumber) -> bool {
    page.item_id(offset).is_normal() && page.tuple(offset).infomask2() & CHAIN_SHORTENED != 0
}

/// Whether the bits of a version leave it open that somebody has deleted or updated it.
fn has_deleter(tuple: &TupleView<'_>) -> bool {
    tuple.infomask() & XMAX_INVALID == 0 && tuple.infomask() & XMIN_FROZEN != XMIN_INVALID
}
