//! # Purpose
//! Taking an empty leaf out of the tree, with the chain of internal pages that lead to nothing else.
//!
//! # Invariants
//! The right sibling inherits the key space. So the rightmost page of a level stays, and so does the last
//! child of a parent that has others. Two steps: the link in the parent goes (the leaf is half-dead, its key space
//! the right sibling's), then the siblings' links, page by page from the top of the chain to the leaf. A
//! deleted page keeps its right link for searches on their way to it, until no scan is that old.
//!
//! # Locks
//! One thread at a time deletes pages of an index (`Shared::deletion`, taken before any latch), whichever the pass and however many
//! threads are at it: what a chain's pages and siblings are does not change under the second step but by splits. Leaf before
//! parent; for the second step leaf, left sibling, page, right sibling.
//!
//! # Crash cases
//! Between the steps the leaf is half-dead; the next VACUUM goes on.

use crate::apply;
use crate::log::{Block, Change};
use crate::schema::{Edge, Value};
use crate::tree::{Btree, Stack, WritePage};
use base::{BlockNumber, Result};
use page::btree::{self as layout, Item, NO_BLOCK, PageRef};
use smallvec::SmallVec;

/// Where the chain to be deleted hangs.
struct SubtreeParent {
    parent: WritePage,
    offset: u16,
    /// The highest page of the chain, the leaf itself if it is alone.
    top: BlockNumber,
}

impl Btree {
    /// Takes the empty leaf `block` out of the tree, if it can be. Returns the pages deleted. No page is latched by the caller.
    pub(crate) fn delete_page(&self, block: BlockNumber) -> Result<Vec<BlockNumber>> {
        let _alone = self.shared.deletion.lock();
        self.take_out(block, &|_| true)
    }

    /// The same for who has [`crate::tree::Shared::deletion`]; of the leaf, latched, `may` has to say so, too.
    pub(crate) fn take_out(
        &self,
        block: BlockNumber,
        may: &dyn Fn(PageRef<'_>) -> bool,
    ) -> Result<Vec<BlockNumber>> {
        let mut deleted = Vec::new();
        let page = self.write(block)?;
        if !self.is_deletable(&page) || !may(page.view()) {
            return Ok(deleted);
        }
        if !page.view().has(layout::HALF_DEAD) {
            let Some(high) = page.view().high_key().map(|i| i.0.to_vec()) else {
                return Ok(deleted);
            };
            let left = page.view().prev();
            drop(page);
            // Were our link missing in the parent, there would be nothing to take out.
            if self.is_split_from(left, block)? {
                return Ok(deleted);
            }
            let mut stack = Stack::new();
            let high = Item(&high).plain();
            let high = high.item();
            let values: SmallVec<[Value<'_>; 8]> = high.attributes(self.schema.widths()).collect();
            let edge = high.pivot_tid().map_or(Edge::Pivot, Edge::At);
            drop(self.descend(&self.schema.bound(&values, edge), 0, Some(&mut stack))?);
            base::stop_point!("btree.delete_page.descended");
            let page = self.write(block)?;
            if !self.is_deletable(&page) || page.view().has(layout::HALF_DEAD) || !may(page.view())
            {
                return Ok(deleted);
            }
            if !self.mark_half_dead(page, &stack)? {
                return Ok(deleted);
            }
        } else {
            drop(page);
        }
        base::stop_point!("btree.delete_page.half_dead");
        while let Some((gone, more)) = self.unlink(block)? {
            deleted.push(gone);
            if !more {
                break;
            }
        }
        Ok(deleted)
    }

    fn is_deletable(&self, page: &WritePage) -> bool {
        let view = page.view();
        view.is_leaf()
            && !view.is_rightmost()
            && !view.has(layout::ROOT | layout::DELETED | layout::INCOMPLETE_SPLIT)
            && (view.has(layout::HALF_DEAD) || view.data_count() == 0)
    }
    /// Is `page` the right half of an unfinished split of `left`?
    fn is_split_from(&self, left: BlockNumber, page: BlockNumber) -> Result<bool> {
        if left == NO_BLOCK {
            return Ok(false);
        }
        let left = self.read(left)?;
        let view = left.view();
        Ok(view.next() == page && view.has(layout::INCOMPLETE_SPLIT))
    }

    /// Finds the page that has a link to `child`, or to what has only that, and also one right of it.
    fn subtree_parent(
        &self,
        child: &WritePage,
        stack: &[(BlockNumber, u16)],
    ) -> Result<Option<SubtreeParent>> {
        let (mut top, mut right) = (child.block, child.view().next());
        let mut stack = stack;
        loop {
            if stack.is_empty() {
                return Ok(None);
            }
            let (parent, offset) = self.find_parent(top, None, stack)?;
            let view = parent.view();
            if offset < view.count() {
                // A right half whose link is missing must get it first.
                if view.item(offset + 1).downlink() != right {
                    return Ok(None);
                }
                return Ok(Some(SubtreeParent { parent, offset, top }));
            }
            if offset > view.first_data() || view.is_rightmost() || view.has(layout::ROOT) {
                return Ok(None);
            }
            (top, right) = (parent.block, view.next());
            let left = view.prev();
            drop(parent);
            if self.is_split_from(left, top)? {
                return Ok(None);
            }
            stack = stack.split_last().map_or(&[][..], |(_, upper)| upper);
        }
    }

    fn mark_half_dead(&self, mut leaf: WritePage, stack: &[(BlockNumber, u16)]) -> Result<bool> {
        {
            // What is half-dead itself can't inherit.
            let right = self.read(leaf.view().next())?;
            if right.view().is_ignored() {
                return Ok(false);
            }
        }
        let Some(SubtreeParent { mut parent, offset, top }) = self.subtree_parent(&leaf, stack)?
        else {
            return Ok(false);
        };
        let top = if top == leaf.block { NO_BLOCK } else { top };
        self.execute(
            Change::MarkHalfDead,
            &mut [
                Block::change(&mut leaf, apply::half_dead(top)),
                Block::change(&mut parent, apply::unlink_child(offset)),
            ],
        );
        Ok(true)
    }

    /// Unlinks the topmost page of the chain that ends in the half-dead `leaf`. Returns it, and whether
    /// there are more; `None` if it can't be done now.
    fn unlink(&self, leaf: BlockNumber) -> Result<Option<(BlockNumber, bool)>> {
        let (target, mut left_block) = {
            let page = self.read(leaf)?;
            if !page.view().has(layout::HALF_DEAD) || page.view().count() == 0 {
                return Ok(None);
            }
            let top = page.view().item(1).downlink();
            if top == NO_BLOCK {
                (leaf, page.view().prev())
            } else {
                drop(page);
                (top, self.read(top)?.view().prev())
            }
        };
        let mut leaf_page = if target == leaf { None } else { Some(self.write(leaf)?) };
        let mut left = None;
        while left_block != NO_BLOCK {
            let page = self.write(left_block)?;
            if !page.view().has(layout::DELETED) && page.view().next() == target {
                left = Some(page);
                break;
            }
            // It was split: go right until next to the target.
            left_block = page.view().next();
            if left_block == target || left_block == NO_BLOCK {
                return Ok(None);
            }
        }
        let mut page = self.write(target)?;
        let view = page.view();
        if view.is_rightmost() || view.has(layout::DELETED | layout::ROOT) {
            return Err(self.corrupt(target, "half-dead page changed status unexpectedly"));
        }
        if view.prev() != left.as_ref().map_or(NO_BLOCK, |l| l.block) {
            return Ok(None);
        }
        let mut next_child = NO_BLOCK;
        if target == leaf {
            if !view.has(layout::HALF_DEAD) {
                return Err(self.corrupt(target, "half-dead page changed status unexpectedly"));
            }
        } else {
            if view.is_leaf() || view.data_count() != 1 {
                return Err(self.corrupt(target, "page to be deleted has other children"));
            }
            let child = view.item(view.first_data()).downlink();
            if child != leaf {
                next_child = child;
            }
        }
        let right_block = view.next();
        let mut right = self.write(right_block)?;
        if right.view().prev() != target {
            return Err(self.corrupt(right_block, "left link does not match"));
        }
        let left_number = left.as_ref().map_or(NO_BLOCK, |l| l.block);
        // Read with all latches held: whoever still comes here has a snapshot that is older.
        let xid = self.context.horizons.next_xid();
        {
            let mut blocks: SmallVec<[Block<'_>; 4]> = SmallVec::new();
            blocks.push(Block::change(&mut page, apply::set_deleted(xid.0)));
            blocks.push(Block::change(&mut right, apply::set_prev(left_number)));
            if let Some(left) = &mut left {
                blocks.push(Block::change(left, apply::set_next(right_block)));
            }
            if let Some(leaf) = &mut leaf_page {
                blocks.push(Block::change(leaf, apply::set_top_parent(next_child)));
            }
            self.execute(Change::Unlink, &mut blocks);
        }
        self.shared.free.lock().insert((xid.0, target));
        Ok(Some((target, target != leaf)))
    }
}
