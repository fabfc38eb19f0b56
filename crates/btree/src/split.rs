//! # Purpose
//! Splitting a page, telling the parent, growing a new root, and finishing what a crash interrupted.
//!
//! # WAL and replay
//! One record for the two halves and the old right sibling's link; another for the parent's. Between
//! the two the left half is marked INCOMPLETE_SPLIT, and searches reach the right half by the left's link.

use crate::apply::{self, SplitLeft};
use crate::log::{Block, Change};
use crate::schema::{Edge, KeySchema, Value};
use crate::split_point;
use crate::tree::{Btree, WritePage};
use base::{BlockNumber, Result};
use page::btree::{self as layout, Item, NO_BLOCK};
use smallvec::SmallVec;
use std::sync::atomic::Ordering as Memory;

impl Btree {
    /// Splits `left`, with the new entry before line pointer `new_offset`.
    pub(crate) fn split(
        &self,
        mut left: WritePage,
        stack: &[(BlockNumber, u16)],
        new_item: &[u8],
        new_offset: u16,
        into_posting: bool,
        mut child: Option<WritePage>,
    ) -> Result<()> {
        let view = left.view();
        let (first, next, level) = (view.first_data(), view.next(), view.level());
        let (is_leaf, is_root) = (view.is_leaf(), view.has(layout::ROOT));
        let generation = view.generation();
        let old_high = view.high_key().map(|i| i.0.to_vec());
        let items = apply::with_new_item(view, new_offset, into_posting, new_item);
        let new_index = usize::from(new_offset - first);
        let chosen = split_point::choose(
            &self.schema,
            &items,
            new_index,
            is_leaf,
            old_high.as_deref().map(Item),
        );
        let Some(point) = chosen else {
            return Err(self.corrupt(left.block, "cannot find a feasible split point"));
        };
        let high_key = if is_leaf {
            self.schema.truncate(Item(&items[point - 1]), Item(&items[point]), NO_BLOCK)
        } else {
            KeySchema::pivot_to(Item(&items[point]), NO_BLOCK)
        };
        let first_right_truncated = if is_leaf {
            None
        } else {
            let child = Item(&items[point]).downlink();
            Some(layout::form_pivot(&[], &[], None, child))
        };

        let mut right = self.allocate()?;
        let mut old_right = if next == NO_BLOCK { None } else { Some(self.write(next)?) };
        if let Some(old_right) = &old_right
            && old_right.view().prev() != left.block
        {
            return Err(self.corrupt(next, "left link does not match"));
        }
        let cycle_id = self.shared.cycle_id.load(Memory::SeqCst);
        let mut right_flags = generation.flags() | if is_leaf { layout::LEAF } else { 0 };
        if cycle_id != 0 && old_right.as_ref().is_some_and(|r| r.view().cycle_id() != cycle_id) {
            right_flags |= layout::SPLIT_END;
        }
        let right_items = old_high
            .as_deref()
            .into_iter()
            .chain(first_right_truncated.as_deref())
            .chain(items.iter().skip(point + usize::from(!is_leaf)).map(Vec::as_slice));
        let right_data =
            apply::contents(level, left.block, next, right_flags, cycle_id, right_items);
        // The left half's record has the new entry only if it is there, or changed a posting list there.
        let on_left = new_index < point + usize::from(into_posting);
        let left_data = SplitLeft {
            first_right: first + point as u16,
            new_offset: if on_left { new_offset } else { 0 },
            into_posting,
            right: right.block,
            cycle_id,
            high_key: &high_key,
            new_item,
        }
        .encode();
        let right_block = right.block;
        {
            let mut blocks: SmallVec<[Block<'_>; 4]> = SmallVec::new();
            blocks.push(Block::change(&mut left, left_data));
            blocks.push(Block::init(&mut right, right_data));
            if let Some(old_right) = &mut old_right {
                blocks.push(Block::change(old_right, apply::set_prev(right_block)));
            }
            if let Some(child) = &mut child {
                blocks.push(Block::change(child, apply::clear_incomplete()));
            }
            self.execute(Change::Split, &mut blocks);
        }
        drop(old_right);
        drop(child);
        if is_leaf && next == NO_BLOCK {
            self.shared.rightmost.store(right_block.0, Memory::Relaxed);
        }
        base::stop_point!("btree.split.before_parent");
        self.insert_parent(left, right, stack, is_root)
    }

    /// Tells the parent of `left` about `right`, the other half of a split.
    fn insert_parent(
        &self,
        left: WritePage,
        right: WritePage,
        stack: &[(BlockNumber, u16)],
        is_root: bool,
    ) -> Result<()> {
        if is_root {
            return self.new_root(left, right);
        }
        let Some(high) = left.view().high_key() else {
            return Err(self.corrupt(left.block, "split page has no high key"));
        };
        let link = KeySchema::pivot_to(high, right.block);
        let (parent, offset) = self.find_parent(left.block, Some(&left), stack)?;
        drop(right);
        let upper = stack.split_last().map_or(&[][..], |(_, upper)| upper);
        self.insert_item(parent, upper, &link, offset + 1, false, Some(left))
    }

    /// The parent of `child`, latched for writing, and the line pointer of its link.
    pub(crate) fn find_parent(
        &self,
        child: BlockNumber,
        child_page: Option<&WritePage>,
        stack: &[(BlockNumber, u16)],
    ) -> Result<(WritePage, u16)> {
        let (mut block, hint) = match (stack.last(), child_page) {
            (Some(entry), _) => *entry,
            (None, Some(page)) => (self.parent_by_key(page)?, 0),
            (None, None) => return Err(self.corrupt(child, "failed to re-find parent key")),
        };
        let upper = stack.split_last().map_or(&[][..], |(_, upper)| upper);
        let mut hint = hint;
        loop {
            let page = self.write(block)?;
            if page.view().has(layout::INCOMPLETE_SPLIT) {
                self.finish_split(page, upper)?;
                continue;
            }
            let view = page.view();
            if !view.is_ignored() {
                let (first, last) = (view.first_data(), view.count());
                let from = hint.clamp(first, last.max(first));
                // Links move right as others come in, seldom left.
                let found = (from..=last)
                    .chain((first..from).rev())
                    .find(|o| *o <= last && view.item(*o).downlink() == child);
                if let Some(offset) = found {
                    return Ok((page, offset));
                }
            }
            if view.is_rightmost() {
                return Err(self.corrupt(child, "failed to re-find parent key"));
            }
            block = view.next();
            hint = 0;
        }
    }
    /// Where a search for the parent of `child` may start: on the way to the child's high key.
    fn parent_by_key(&self, child: &WritePage) -> Result<BlockNumber> {
        let level = child.view().level() + 1;
        let page = match child.view().high_key() {
            Some(high) => {
                let widths = self.schema.widths();
                let key = high.plain();
                let values: SmallVec<[Value<'_>; 8]> = key.item().attributes(widths).collect();
                let edge = high.pivot_tid().map_or(Edge::Pivot, Edge::At);
                self.descend(&self.schema.bound(&values, edge), level, None)?
            }
            None => self.endpoint(level, true)?,
        };
        match page {
            Some(page) => Ok(page.block),
            None => Err(self.corrupt(child.block, "failed to re-find parent key")),
        }
    }

    fn new_root(&self, mut left: WritePage, right: WritePage) -> Result<()> {
        let Some(high) = left.view().high_key() else {
            return Err(self.corrupt(left.block, "split page has no high key"));
        };
        let level = left.view().level() + 1;
        let links = [
            layout::form_pivot(&[], &[], None, left.block),
            KeySchema::pivot_to(high, right.block),
        ];
        let mut root = self.allocate()?;
        let mut meta_page = self.write(layout::META_BLOCK)?;
        let mut meta = self.check_meta(meta_page.view())?;
        meta.root = root.block;
        meta.level = level;
        meta.fast_root = root.block;
        meta.fast_level = level;
        let items = links.iter().map(Vec::as_slice);
        let flags = layout::ROOT | left.view().generation().flags();
        let data = apply::contents(level, NO_BLOCK, NO_BLOCK, flags, 0, items);
        self.execute(
            Change::NewRoot,
            &mut [
                Block::init(&mut root, data),
                Block::change(&mut left, apply::clear_incomplete()),
                Block::init(&mut meta_page, apply::meta(meta)),
            ],
        );
        self.remember_root(root.block, level);
        Ok(())
    }

    /// Tells the parent about the right half of a split that stopped before that.
    pub(crate) fn finish_split(&self, left: WritePage, stack: &[(BlockNumber, u16)]) -> Result<()> {
        let right = self.write(left.view().next())?;
        let is_root = self.meta()?.root == left.block;
        self.insert_parent(left, right, stack, is_root)
    }
}
