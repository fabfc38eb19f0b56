//! # Purpose
//! Checking a tree at rest: order on every page and across pages, links, high keys, levels, every downlink.
//! [`super::verify_live`] checks one that is written to.

use crate::schema::{Bound, Edge, KeySchema, Value};
use crate::tree::{Btree, ReadPage};
use base::{BlockNumber, Result};
use page::btree::{self as layout, Item, NO_BLOCK, PageRef};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// What a check saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifyReport {
    /// The tree's levels.
    pub levels: u32,
    /// Pages in the tree.
    pub pages: u64,
    /// Heap addresses on the leaves.
    pub entries: u64,
    /// Pages on their way out.
    pub half_dead: u64,
    /// Splits not finished.
    pub incomplete_splits: u64,
}

pub(crate) type Values<'a> = SmallVec<[Value<'a>; 8]>;

/// The key of an entry, as far as it has one, which is not packed.
pub(crate) fn values<'a>(schema: &KeySchema, item: Item<'a>) -> Values<'a> {
    let n = if item.is_pivot() { item.pivot_attributes() } else { schema.key_count() };
    item.attributes(schema.widths()).take(n.min(schema.key_count())).collect()
}
/// The place of an entry itself (of a posting list, its end).
fn place<'a>(schema: &KeySchema, item: Item<'_>, values: &'a [Value<'a>]) -> Bound<'a> {
    let edge = if item.is_pivot() {
        item.pivot_tid().map_or(Edge::Pivot, Edge::At)
    } else {
        Edge::At(item.max_tid())
    };
    schema.bound(values, edge)
}
fn compare(schema: &KeySchema, a: Item<'_>, b: Item<'_>) -> Ordering {
    let a = a.plain();
    let v = values(schema, a.item());
    schema.compare(&place(schema, a.item(), &v), b)
}

/// A child as its parent knows it: the block, and the key above which and up to which it holds.
struct Link {
    child: BlockNumber,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl Btree {
    /// Checks the whole tree. Nobody may write to it meanwhile; readers are kept from taking leaves out (`tidy`).
    ///
    /// # Errors
    /// The first thing found wrong, as corruption; I/O.
    pub fn verify(&self) -> Result<VerifyReport> {
        let _still = self.keep_still();
        self.verify_pausing(&mut || Ok(()))
    }

    /// The same; `pause` is called between pages, with none latched.
    ///
    /// # Errors
    /// As [`Btree::verify`]; `pause`'s.
    pub fn verify_pausing(&self, pause: &mut dyn FnMut() -> Result<()>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let meta = self.meta()?;
        if meta.root == NO_BLOCK {
            return Ok(report);
        }
        let root = self.read(meta.root)?;
        if root.view().level() != meta.level || !root.view().is_leftmost() {
            return Err(self.corrupt(meta.root, "is not the root the meta page tells of"));
        }
        drop(root);
        report.levels = meta.level + 1;
        let mut links = vec![Link { child: meta.root, low: None, high: None }];
        for level in (0..=meta.level).rev() {
            links = self.verify_level(level, &links, &mut report, pause)?;
        }
        Ok(report)
    }

    /// Checks one level against the links from above; returns its own links.
    fn verify_level(
        &self,
        level: u32,
        links: &[Link],
        report: &mut VerifyReport,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Link>> {
        let generation = self.meta()?.generation;
        let mut down = Vec::new();
        let mut expected = links.iter().peekable();
        let mut block = links.first().map_or(NO_BLOCK, |l| l.child);
        let mut prev = NO_BLOCK;
        let mut last_high: Option<Vec<u8>> = None;
        let mut incomplete = false;
        // A leftmost page on its way out has no link.
        let leftmost = self.read(block)?.view().prev();
        if leftmost != NO_BLOCK {
            prev = leftmost;
            let mut left = self.read(leftmost)?;
            loop {
                // Half-dead, or above such a leaf and nothing else.
                if !left.view().is_ignored() && (level == 0 || left.view().data_count() != 1) {
                    return Err(self.corrupt(left.block, "has no downlink"));
                }
                report.half_dead += 1;
                let next = left.view().prev();
                if next == NO_BLOCK {
                    break;
                }
                left = self.read(next)?;
            }
        }
        while block != NO_BLOCK {
            pause()?;
            let page = self.read(block)?;
            let view = page.view();
            layout::verify(view.0).map_err(|what| self.corrupt(block, &what))?;
            if view.prev() != prev {
                return Err(self.corrupt(block, "left link is wrong"));
            }
            if view.level() != level || view.has(layout::DELETED | layout::META) {
                return Err(self.corrupt(block, "is on the wrong level"));
            }
            if view.generation() != generation {
                return Err(self.corrupt(block, "is of another tree"));
            }
            prev = block;
            block = view.next();
            if view.is_ignored() {
                report.half_dead += 1;
                continue;
            }
            report.pages += 1;
            self.verify_page(page.block, view, last_high.as_deref().map(Item), report)?;
            let high = view.high_key().map(|i| i.0.to_vec());
            match expected.peek() {
                Some(link) if link.child == page.block => {
                    self.verify_link(&page, link)?;
                    expected.next();
                }
                // The right half of an unfinished split, or a page above a half-dead leaf.
                _ if incomplete => {}
                _ if level > 0 && view.data_count() == 1 => {
                    report.half_dead += 1;
                    continue;
                }
                _ => return Err(self.corrupt(page.block, "has no downlink")),
            }
            incomplete = view.has(layout::INCOMPLETE_SPLIT);
            report.incomplete_splits += u64::from(incomplete);
            if level > 0 {
                for offset in view.first_data()..=view.count() {
                    let low = if offset == view.first_data() {
                        last_high.clone()
                    } else {
                        Some(view.item(offset).0.to_vec())
                    };
                    let high = if offset < view.count() {
                        Some(view.item(offset + 1).0.to_vec())
                    } else {
                        high.clone()
                    };
                    down.push(Link { child: view.item(offset).downlink(), low, high });
                }
            }
            last_high = high;
        }
        if let Some(link) = expected.next() {
            return Err(self.corrupt(link.child, "is linked to but not on its level"));
        }
        Ok(down)
    }

    /// Checks one page: its entries' order, its high key, and that it lies above `left_high`.
    pub(crate) fn verify_page(
        &self,
        block: BlockNumber,
        view: PageRef<'_>,
        left_high: Option<Item<'_>>,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let schema = &self.schema;
        let first = if view.is_leaf() { view.first_data() } else { view.first_data() + 1 };
        for offset in first..=view.count() {
            let item = view.item(offset);
            if view.is_leaf() {
                report.entries += item.tid_count() as u64;
            }
            if offset < view.count()
                && compare(schema, item, view.item(offset + 1)) != Ordering::Less
            {
                return Err(self.corrupt(block, &format!("entry {offset} is out of order")));
            }
            if let Some(high) = view.high_key()
                && compare(schema, item, high) == Ordering::Greater
            {
                return Err(self.corrupt(block, &format!("entry {offset} is above the high key")));
            }
            if let Some(high) = left_high {
                let key = item.plain();
                let v = values(schema, key.item());
                let edge = match item.is_pivot() {
                    true => item.pivot_tid().map_or(Edge::Pivot, Edge::At),
                    false => Edge::At(item.tid()),
                };
                if schema.compare(&schema.bound(&v, edge), high) != Ordering::Greater {
                    let what = format!("entry {offset} is not above the left page's high key");
                    return Err(self.corrupt(block, &what));
                }
            }
        }
        if !view.is_leaf() && view.data_count() == 0 {
            return Err(self.corrupt(block, "internal page has no entries"));
        }
        Ok(())
    }

    fn verify_link(&self, page: &ReadPage, link: &Link) -> Result<()> {
        let view = page.view();
        let schema = &self.schema;
        if let Some(low) = &link.low {
            let first = if view.is_leaf() { view.first_data() } else { view.first_data() + 1 };
            if first <= view.count() {
                let item = view.item(first);
                let key = item.plain();
                let v = values(schema, key.item());
                let edge = if item.is_pivot() {
                    item.pivot_tid().map_or(Edge::Pivot, Edge::At)
                } else {
                    Edge::At(item.tid())
                };
                if schema.compare(&schema.bound(&v, edge), Item(low)) != Ordering::Greater {
                    return Err(
                        self.corrupt(page.block, "an entry is not above the downlink's key")
                    );
                }
            }
        }
        // A page whose split is unfinished, or that lies left of a page on its way out, ends below its parent's next key.
        if let (Some(high), Some(own)) = (&link.high, view.high_key())
            && compare(schema, own, Item(high)) == Ordering::Greater
        {
            return Err(self.corrupt(page.block, "high key is above the next downlink's"));
        }
        if link.high.is_some() && view.high_key().is_none() {
            return Err(self.corrupt(page.block, "is rightmost but its downlink is not"));
        }
        Ok(())
    }

    /// All pages as text.
    ///
    /// # Errors
    /// I/O.
    pub fn dump(&self) -> Result<String> {
        let mut out = String::new();
        for block in 0..self.rel.len_blocks(base::Fork::Main)?.0 {
            let page = self.pin(BlockNumber(block))?.into_read();
            out.push_str(&format!("block {block}: {}", layout::dump(page.bytes())));
        }
        Ok(out)
    }
}
