//! # Purpose
//! What a vacuum would do to a page and log for it, found out on a copy: for EXPLAIN VACUUM.
//!
//! # Invariants
//! Nothing that others see changes (hint bits aside, as with any look at a page). Plans, changes and records are made by the
//! functions that the vacuum itself uses.

use crate::cleaning::Planned;
use crate::heap::Heap;
use crate::prune::{PageFindings, PruneOptions, PrunePlan, apply_prune, plan_reap};
use crate::record;
use crate::visibility::Horizon;
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use base::{BlockNumber, Fork, PageTag, Result, Xid};
use page::Page;
use wal::{BlockFlags, RecordBuilder, RecordCost, ResourceManager};

/// What a vacuum would do to one page.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// What planning says.
    pub findings: PageFindings,
    /// The first pass's record; `None`: it changes nothing.
    pub prune: Option<RecordCost>,
    /// The second pass's record.
    pub reap: Option<RecordCost>,
    /// The record instead of both, if the page's index entries go in between; `None`: it has to be both.
    pub clean: Option<RecordCost>,
    /// The page becomes all-visible, or all-frozen, that is not now.
    pub map_changes: bool,
    /// Line pointers that index entries may lead to, before.
    pub roots: u32,
}

impl Heap {
    /// Plans what a vacuum with these `options` would do to `page`, of `block`; with `reap`, also its second pass.
    ///
    /// # Errors
    /// The commit log's.
    pub fn rehearse(
        &self,
        page: &Page,
        block: BlockNumber,
        options: &PruneOptions,
        horizon: &Horizon,
        reap: bool,
    ) -> Result<Rehearsal> {
        if page.is_new() {
            return Ok(Rehearsal::default());
        }
        let (plan, findings) = self.examine(page, block, options, horizon)?;
        let mut out = Rehearsal { roots: roots(page), ..Rehearsal::default() };
        out.map_changes = plan.visibility != 0;
        let mut copy = Page::from_bytes(page.bytes());
        if reap && let Some(plan) = Planned::in_one_visit(&plan, &findings, page, options.map_bits)
        {
            out.clean = self.perform(&mut copy, block, &plan);
            copy = Page::from_bytes(page.bytes());
        }
        out.prune = self.perform(&mut copy, block, &plan);
        if reap && !findings.dead_items.is_empty() {
            let mut plan = plan_reap(&copy, &findings.dead_items, true);
            if findings.all_visible_but_dead_items {
                let frozen = if findings.all_frozen_but_dead_items { ALL_FROZEN } else { 0 };
                plan.visibility = ALL_VISIBLE | frozen;
                out.map_changes = true;
            }
            out.reap = self.perform(&mut copy, block, &plan);
        }
        out.findings = findings;
        Ok(out)
    }

    /// Carries `plan` out on a copy; what its record takes.
    fn perform(&self, copy: &mut Page, block: BlockNumber, plan: &PrunePlan) -> Option<RecordCost> {
        if plan.is_empty() {
            return None;
        }
        apply_prune(copy, plan);
        if !self.logged {
            return Some(RecordCost::default());
        }
        let tag = PageTag { relation: self.rel.id(), fork: Fork::Main, block };
        let map = PageTag { fork: Fork::VisibilityMap, ..tag };
        let mut record = RecordBuilder::new(ResourceManager::Heap, record::PRUNE, Xid::INVALID);
        record.block(record::HEAP, tag, copy, BlockFlags::STANDARD);
        if plan.visibility != 0 {
            // A map page's image serves thousands of heap pages: not counted with one of them.
            record.block(record::MAP, map, copy, BlockFlags::NO_IMAGE);
        }
        record.data(&record::encode_plan(plan));
        let cost = self.ctx.wal.measure(&record);
        drop(record);
        copy.set_lsn(self.ctx.wal.insert_lsn());
        Some(cost)
    }
}

fn roots(page: &Page) -> u32 {
    let leads_here = |o: &base::OffsetNumber| {
        let id = page.item_id(*o);
        id.is_dead() || id.is_redirect() || (id.is_normal() && !page.tuple(*o).is_heap_only())
    };
    u32::try_from(page.offsets().filter(leads_here).count()).unwrap_or(u32::MAX)
}
