//! Checking heaps: what `ebb check` reports.
//!
//! # Purpose
//! Looks at every page: line pointers, tuple headers, HOT chains, and that the visibility map's bits are true.

use crate::heap::Heap;
use crate::prune::Verdict;
use crate::visibility::{Hints, Horizon, satisfies_vacuum};
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE, MapPin};
use base::{BlockNumber, Fork, OffsetNumber, PageTag, Result, Xid};
use buffer::Strategy;
use page::Page;
use page::tuple::{HEADER, MAX_ATTRIBUTES};

/// The faults of one heap page that its bytes alone show. `block` is its number.
pub fn check_page(page: &Page, block: BlockNumber) -> Vec<String> {
    if let Err(fault) = page.verify() {
        return vec![fault];
    }
    let mut faults = Vec::new();
    for offset in page.offsets() {
        let id = page.item_id(offset);
        if id.is_redirect() {
            let target = page.item_id(id.redirect_target());
            if !target.is_normal() {
                faults
                    .push(format!("line pointer {offset} redirects to a tuple that is not there"));
            } else if !page.tuple(id.redirect_target()).is_heap_only() {
                faults.push(format!("line pointer {offset} redirects to a tuple not heap-only"));
            }
        }
        if id.is_normal() {
            check_tuple(page, block, offset, &mut faults);
        }
        if id.is_dead() && !id.is_empty() && !page::tuple::verify_stub(page.item(offset)) {
            faults.push(format!("dead line pointer {offset} keeps what is no key"));
        }
    }
    faults
}

fn check_tuple(page: &Page, block: BlockNumber, offset: OffsetNumber, faults: &mut Vec<String>) {
    let tuple = page.tuple(offset);
    let mut fault = |what: String| faults.push(format!("tuple {offset}: {what}"));
    if tuple.bytes.len() < HEADER {
        return fault(format!("only {} bytes long", tuple.bytes.len()));
    }
    if tuple.natts() > MAX_ATTRIBUTES {
        fault(format!("{} attributes", tuple.natts()));
    }
    let nulls = tuple.infomask() & page::tuple::HAS_NULL != 0;
    let needed = page::tuple::HEADER_MIN + if nulls { tuple.natts().div_ceil(8) } else { 0 };
    let hoff = page::align8(needed);
    if tuple.hoff() != hoff || tuple.hoff() > tuple.bytes.len() {
        fault(format!("data begins at byte {}, not {hoff}", tuple.hoff()));
    }
    let ctid = tuple.ctid();
    if !ctid.is_valid() {
        fault("leads nowhere".into());
    }
    if tuple.is_hot_updated() {
        if ctid.block != block {
            fault(format!("is updated heap-only, but leads to block {}", ctid.block));
        } else {
            let next = page.item_id(ctid.offset);
            // What an aborted update made may be gone, and its line pointer another row's.
            let successor = next.is_normal().then(|| page.tuple(ctid.offset));
            let made = successor.filter(|t| t.raw_xmin() == tuple.next_xmin());
            if made.is_some_and(|t| !t.is_heap_only()) {
                fault(format!("is updated heap-only, but {} is not heap-only", ctid.offset));
            }
        }
    }
}

impl Heap {
    /// Checks every page of the heap against itself, the commit log and the visibility map, telling
    /// `report` each fault. Pages that cannot be read are faults too.
    ///
    /// # Errors
    /// What stops the check as a whole.
    pub fn check(&self, report: &mut dyn FnMut(PageTag, String)) -> Result<()> {
        let blocks = self.len_blocks()?;
        let next_xid = self.ctx.txns.next_xid();
        let horizon = Horizon::at(next_xid);
        let map = self.visibility_map();
        let mut map_pin = MapPin::none();
        let mut strategy = Strategy::bulk_read(&self.ctx.pool);
        for n in 0..blocks.0 {
            let block = BlockNumber(n);
            let tag = crate::context::tag(self.rel.id(), Fork::Main, block);
            let pin = match self.rel.try_pin(Fork::Main, block, &mut strategy) {
                Ok(Some(pin)) => pin,
                Ok(None) => break,
                Err(base::Error::Corruption(c)) => {
                    report(tag, c.what);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let page = pin.read();
            // With the page locked nothing that the bits say can change.
            let bits = match map.bits(block, &mut map_pin) {
                Ok(bits) => bits,
                Err(base::Error::Corruption(c)) => {
                    report(c.tag.unwrap_or(tag), c.what);
                    0
                }
                Err(e) => return Err(e),
            };
            for fault in check_page(&page, block) {
                report(tag, fault);
            }
            if page.is_new() {
                if bits != 0 {
                    report(tag, "a new page is all-visible in the visibility map".into());
                }
                continue;
            }
            self.check_bits(&page, tag, bits, &horizon, next_xid, report)?;
        }
        Ok(())
    }

    fn check_bits(
        &self,
        page: &Page,
        tag: PageTag,
        bits: u8,
        horizon: &Horizon,
        next_xid: Xid,
        report: &mut dyn FnMut(PageTag, String),
    ) -> Result<()> {
        if bits & ALL_VISIBLE != 0 && !page.is_all_visible() {
            report(tag, "all-visible in the visibility map, but not on the page".into());
        }
        if bits & ALL_FROZEN != 0 && bits & ALL_VISIBLE == 0 {
            report(tag, "all-frozen but not all-visible in the visibility map".into());
        }
        let mut hints = Hints::default();
        for offset in page.offsets() {
            let id = page.item_id(offset);
            if id.is_dead() && page.is_all_visible() {
                report(tag, format!("line pointer {offset} is dead on an all-visible page"));
            }
            if !id.is_normal() {
                continue;
            }
            let tuple = page.tuple(offset);
            for (name, xid) in [("xmin", tuple.xmin()), ("xmax", tuple.xmax())] {
                if xid >= next_xid {
                    report(tag, format!("tuple {offset}: {name} {xid} is yet to come"));
                }
            }
            if bits & ALL_FROZEN != 0 && (tuple.xmin().is_normal() || tuple.xmax().is_normal()) {
                report(tag, format!("tuple {offset} is not frozen on an all-frozen page"));
            }
            if page.is_all_visible() {
                let verdict = satisfies_vacuum(&tuple, &self.ctx.txns, horizon, &mut hints)?;
                if verdict != Verdict::Live {
                    report(tag, format!("tuple {offset} is {verdict:?} on an all-visible page"));
                }
            }
        }
        Ok(())
    }
}
