//! # Purpose
//! Making a change: to the pages and to the WAL, in one critical section; and making it again in replay.
//!
//! # WAL and replay
//! A record names up to five blocks. Each block's data is an operation of `apply`; replay calls the same
//! function with the same bytes. The record's kind is for people and statistics.
//!
//! # Crash cases
//! A record is whole or absent. After any record the tree is valid: a split lacks at most its parent's link
//! (marked on the left half), a deletion at most its unlinking (the leaf is half-dead).

use crate::apply;
use crate::removal::Removal;
use crate::tree::{Btree, WritePage};
use base::{Error, Result, Xid};
use buffer::{RedoPage, RedoPages};
use page::btree::{self as layout, Bytes};
use wal::{BlockFlags, CriticalSection, Record, RecordBuilder, ResourceManager};

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Change {
    /// An entry on a leaf.
    InsertLeaf = 1,
    /// A link on an internal page.
    InsertUpper = 2,
    /// An entry that falls into a posting list.
    InsertPosting = 3,
    /// A page split.
    Split = 4,
    /// A new root.
    NewRoot = 5,
    /// Equal keys merged.
    Deduplicate = 6,
    /// Entries removed by an insert that needed room.
    Delete = 7,
    /// Entries removed by VACUUM.
    Vacuum = 8,
    /// A leaf cut off from its parent.
    MarkHalfDead = 9,
    /// A page cut off from its siblings.
    Unlink = 10,
    /// The meta page.
    Meta = 11,
    /// Whole pages of a sorted build.
    Build = 12,
    /// Another tree is the index from now on.
    Switch = 13,
    /// A page that no search comes to any more, of a former tree or damaged.
    Retire = 14,
}

impl Change {
    /// A name for logs and dumps.
    pub fn name(info: u8) -> &'static str {
        match info {
            1 => "INSERT_LEAF",
            2 => "INSERT_UPPER",
            3 => "INSERT_POST",
            4 => "SPLIT",
            5 => "NEWROOT",
            6 => "DEDUP",
            7 => "DELETE",
            8 => "VACUUM",
            9 => "MARK_PAGE_HALFDEAD",
            10 => "UNLINK_PAGE",
            11 => "META",
            12 => "BUILD",
            13 => "SWITCH",
            14 => "RETIRE",
            _ => "UNKNOWN",
        }
    }
}

/// A page and how it changes.
pub(crate) struct Block<'a> {
    page: &'a mut WritePage,
    data: apply::Data,
    init: bool,
}

impl<'a> Block<'a> {
    /// A change to a page as it stands.
    pub(crate) fn change(page: &'a mut WritePage, data: apply::Data) -> Block<'a> {
        Block { page, data, init: false }
    }
    /// The page is made anew.
    pub(crate) fn init(page: &'a mut WritePage, data: apply::Data) -> Block<'a> {
        Block { page, data, init: true }
    }
}

impl Btree {
    /// Removes from a leaf what `removal` holds, if anything.
    pub(crate) fn remove(
        &self,
        change: Change,
        page: &mut WritePage,
        removal: &mut Removal,
        clear_cycle: bool,
    ) {
        if removal.removed == 0 {
            return;
        }
        let mut blocks = [Block::change(page, removal.data(clear_cycle))];
        self.execute(change, &mut blocks);
        let [block] = blocks;
        removal.done(block.data);
    }

    /// Changes these pages and logs it.
    pub(crate) fn execute(&self, change: Change, blocks: &mut [Block<'_>]) {
        let _critical = CriticalSection::enter();
        for block in blocks.iter_mut() {
            block.page.guard.mark_dirty();
            if let Err(what) = apply::apply(block.page.guard.bytes_mut(), &block.data) {
                let tag = self.tag(block.page.block);
                panic!("{change:?} of {tag}: {what}");
            }
        }
        if !self.logged {
            // No log, yet a change must show: scans compare the LSN.
            for block in blocks {
                let lsn = block.page.guard.lsn();
                block.page.guard.set_lsn(base::Lsn(lsn.0 + 1));
            }
            return;
        }
        let mut record = RecordBuilder::new(ResourceManager::Btree, change as u8, Xid::INVALID);
        for (id, block) in (0u8..).zip(blocks.iter()) {
            let flags = if block.init { BlockFlags::WILL_INIT } else { BlockFlags::STANDARD };
            record.block(id, self.tag(block.page.block), &block.page.guard, flags);
            record.block_data(id, &block.data);
        }
        let lsn = self.context.wal.insert(&record);
        drop(record);
        for block in blocks {
            block.page.guard.set_lsn(lsn);
        }
    }
}

impl Btree {
    /// Writes the only page of an init fork, as a whole.
    pub(crate) fn write_init_fork(&self, mut page: WritePage, meta: page::btree::Meta) {
        let _critical = CriticalSection::enter();
        page.guard.mark_dirty();
        if let Err(what) = apply::apply(page.guard.bytes_mut(), &apply::meta(meta)) {
            panic!("init fork: {what}");
        }
        let mut record =
            RecordBuilder::new(ResourceManager::Btree, Change::Meta as u8, Xid::INVALID);
        let flags = BlockFlags::FORCE_IMAGE | BlockFlags::STANDARD;
        record.block(0, page.guard.tag(), &page.guard, flags);
        let lsn = self.context.wal.insert(&record);
        drop(record);
        page.guard.set_lsn(lsn);
    }
}

/// Replays one of our records on those of its pages that are `pages`'.
///
/// # Errors
/// I/O, or a record that does not fit its page.
pub fn redo(record: &Record, pages: &dyn RedoPages) -> Result<()> {
    // All blocks stay latched until the last is done, as when the change was made.
    let mut held = Vec::with_capacity(record.blocks.len());
    for block in &record.blocks {
        let apply = |bytes: &mut Bytes| {
            apply::apply(bytes, &block.data).map_err(|what| {
                let kind = Change::name(record.info);
                Error::corrupt(block.tag, format!("redo of {kind} at {}: {what}", record.lsn))
            })
        };
        // What the record makes anew is made beside the page that is there, which one that makes no sense leaves as it was.
        let mut made = None;
        if block.will_init && !block.apply_image && pages.has(block.tag) {
            apply(made.insert([0; layout::SIZE]))?;
        }
        match pages.redo_page(record, block.id)? {
            RedoPage::Apply(mut page) => {
                match &made {
                    Some(made) => *page.bytes_mut() = *made,
                    None => apply(page.bytes_mut())?,
                }
                page.mark_dirty();
                page.set_lsn(record.end_lsn);
                held.push(page);
            }
            RedoPage::Restored | RedoPage::Done | RedoPage::Missing => {}
        }
    }
    Ok(())
}
