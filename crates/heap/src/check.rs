//! Checking heaps: what `ebb check` and amcheck's `verify_heapam` report.
//!
//! # Purpose
//! Looks at every page: line pointers, tuple headers, HOT chains, and that the visibility map's bits are true.
//!
//! # Invariants
//! A page is looked at under its latch, together with its bits in the map, so that others may write the heap meanwhile.

mod chains;

use crate::heap::Heap;
use crate::prune::Verdict;
use crate::visibility::{Hints, Horizon, satisfies_vacuum};
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE, MapPin};
use base::{BlockNumber, Fork, OffsetNumber, PageTag, Result, Xid};
use buffer::Strategy;
use chains::Chains;
use page::Page;
use page::tuple::{HEADER, MAX_ATTRIBUTES, XMIN_FROZEN, XMIN_INVALID};
use std::ops::Range;

/// What is wrong with a heap page, or with a page of its visibility map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapFault {
    /// The page.
    pub tag: PageTag,
    /// The line pointer, if it is about one.
    pub offset: Option<OffsetNumber>,
    /// What is wrong; it names the line pointer.
    pub what: String,
}

/// A fault that a page's bytes show.
type PageFault = (Option<OffsetNumber>, String);

/// The faults of one heap page that its bytes alone show. `block` is its number.
pub fn check_page(page: &Page, block: BlockNumber) -> Vec<PageFault> {
    if let Err(fault) = page.verify() {
        return vec![(None, fault)];
    }
    let mut faults = Vec::new();
    for offset in page.offsets() {
        let id = page.item_id(offset);
        let mut fault = |what: String| faults.push((Some(offset), what));
        if id.is_redirect() {
            let target = page.item_id(id.redirect_target());
            if !target.is_normal() {
                fault(format!("line pointer {offset} redirects to a tuple that is not there"));
            } else if !page.tuple(id.redirect_target()).is_heap_only() {
                fault(format!("line pointer {offset} redirects to a tuple not heap-only"));
            }
        }
        if id.is_dead() && !id.is_empty() && !page::tuple::verify_stub(page.item(offset)) {
            fault(format!("dead line pointer {offset} keeps what is no key"));
        }
        if id.is_normal() {
            check_tuple(page, offset, &mut faults);
        }
    }
    Chains::of(page, block, &mut |fault| faults.push(fault));
    faults
}

fn check_tuple(page: &Page, offset: OffsetNumber, faults: &mut Vec<PageFault>) {
    let tuple = page.tuple(offset);
    let mut fault = |what: String| faults.push((Some(offset), format!("tuple {offset}: {what}")));
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
    if !tuple.ctid().is_valid() {
        fault("leads nowhere".into());
    }
}

impl Heap {
    /// Checks every page of the heap against itself, the commit log, the visibility map and `frozen` (its relfrozenxid, below which no
    /// XID is left), telling `report` each fault. Pages that cannot be read are faults too.
    ///
    /// # Errors
    /// What stops the check as a whole.
    pub fn check(&self, frozen: Xid, report: &mut dyn FnMut(PageTag, String)) -> Result<()> {
        let all = 0..self.len_blocks()?.0;
        let mut strategy = Strategy::bulk_read(&self.ctx.pool);
        self.check_blocks(all, 0, frozen, &mut strategy, &mut |fault| report(fault.tag, fault.what))
    }

    /// The same of some blocks only, those left out that have one of the bits `skip` in the visibility map. Others may read and
    /// write the heap.
    ///
    /// # Errors
    /// What stops the check as a whole.
    pub fn check_blocks(
        &self,
        blocks: Range<u32>,
        skip: u8,
        frozen: Xid,
        strategy: &mut Strategy,
        report: &mut dyn FnMut(HeapFault),
    ) -> Result<()> {
        let map = self.visibility_map();
        let mut map_pin = MapPin::none();
        for n in blocks {
            let block = BlockNumber(n);
            let tag = crate::context::tag(self.rel.id(), Fork::Main, block);
            if skip != 0 && map.bits(block, &mut map_pin)? & skip != 0 {
                continue;
            }
            let pin = match self.rel.try_pin(Fork::Main, block, strategy) {
                Ok(Some(pin)) => pin,
                Ok(None) => break,
                Err(base::Error::Corruption(c)) => {
                    report(HeapFault { tag, offset: None, what: c.what });
                    continue;
                }
                Err(e) => return Err(e),
            };
            let page = pin.read();
            // With the page locked nothing that the bits say can change.
            let bits = match map.bits(block, &mut map_pin) {
                Ok(bits) => bits,
                Err(base::Error::Corruption(c)) => {
                    report(HeapFault { tag: c.tag.unwrap_or(tag), offset: None, what: c.what });
                    0
                }
                Err(e) => return Err(e),
            };
            let mut report = |(offset, what)| report(HeapFault { tag, offset, what });
            let faults = check_page(&page, block);
            // Of a damaged page nobody knows what leads where.
            let chains = faults.is_empty().then(|| Chains::of(&page, block, &mut |_| {}));
            faults.into_iter().for_each(&mut report);
            if page.is_new() {
                if bits != 0 {
                    let what = "a new page is all-visible in the visibility map";
                    report((None, what.to_owned()));
                }
                continue;
            }
            self.check_bits(&page, bits, frozen, chains.as_ref(), &mut report)?;
        }
        Ok(())
    }

    fn check_bits(
        &self,
        page: &Page,
        bits: u8,
        frozen: Xid,
        chains: Option<&Chains>,
        report: &mut dyn FnMut(PageFault),
    ) -> Result<()> {
        // Asked for under the latch: no transaction on the page is younger.
        let next_xid = self.ctx.txns.next_xid();
        let horizon = Horizon::at(next_xid);
        if bits & ALL_VISIBLE != 0 && !page.is_all_visible() {
            report((None, "all-visible in the visibility map, but not on the page".into()));
        }
        if bits & ALL_FROZEN != 0 && bits & ALL_VISIBLE == 0 {
            report((None, "all-frozen but not all-visible in the visibility map".into()));
        }
        let mut hints = Hints::default();
        for offset in page.offsets() {
            let id = page.item_id(offset);
            let mut report = |what: String| report((Some(offset), what));
            if id.is_dead() && page.is_all_visible() {
                report(format!("line pointer {offset} is dead on an all-visible page"));
            }
            if !id.is_normal() {
                continue;
            }
            let tuple = page.tuple(offset);
            for (name, xid) in [("xmin", tuple.xmin()), ("xmax", tuple.xmax())] {
                if xid >= next_xid {
                    report(format!("tuple {offset}: {name} {xid} is yet to come"));
                }
                if xid.is_normal() && xid < frozen {
                    report(format!("tuple {offset}: {name} {xid} precedes relfrozenxid {frozen}"));
                }
            }
            if bits & ALL_FROZEN != 0 && (tuple.xmin().is_normal() || tuple.xmax().is_normal()) {
                report(format!("tuple {offset} is not frozen on an all-frozen page"));
            }
            if page.is_all_visible() {
                let verdict = satisfies_vacuum(&tuple, &self.ctx.txns, &horizon, &mut hints)?;
                if verdict != Verdict::Live {
                    report(format!("tuple {offset} is {verdict:?} on an all-visible page"));
                }
            }
            // What an aborted update made is led to by nothing once the row has been updated again.
            let xmin = tuple.xmin();
            if tuple.is_heap_only()
                && chains.is_some_and(|c| !c.lead_to(offset))
                && (xmin == Xid::FROZEN || (frozen..next_xid).contains(&xmin))
                && tuple.infomask() & XMIN_FROZEN != XMIN_INVALID
                && self.ctx.txns.committed(xmin)?
            {
                report(format!("tuple {offset} is heap-only, but nothing leads to it"));
            }
        }
        Ok(())
    }
}
