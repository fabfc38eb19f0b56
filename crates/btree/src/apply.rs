//! # Purpose
//! Every change of a page, as bytes and as a function: the bytes go into the WAL record, the function is
//! called with them on the page, now and in replay.
//!
//! # Layout
//! A block's data: one byte that says which operation, then its arguments, little-endian
//! (docs/FORMAT.md). Each block of a record stands alone: none needs another page to be replayed.

use base::{BlockNumber, Tid};
use page::btree::{self as layout, Bytes, Gone, Item, Meta, PageMut, PageRef};

/// Bytes that say how one page changes.
pub(crate) type Data = Vec<u8>;

const INSERT: u8 = 1;
const INSERT_POSTING: u8 = 2;
const CLEAR_INCOMPLETE: u8 = 3;
const CONTENTS: u8 = 4;
const META: u8 = 5;
const SPLIT_LEFT: u8 = 6;
const SET_PREV: u8 = 7;
const SET_NEXT: u8 = 8;
const DELETE: u8 = 9;
const DEDUPLICATE: u8 = 10;
const HALF_DEAD: u8 = 11;
const UNLINK_CHILD: u8 = 12;
const SET_DELETED: u8 = 13;
const SET_TOP_PARENT: u8 = 14;
const DELETE_MARKED: u8 = 15;
const RETIRE: u8 = 16;
const ROOT_MARK: u8 = 17;

/// Reads arguments.
struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (head, tail) = self.0.split_at_checked(n).ok_or("record is too short")?;
        self.0 = tail;
        Ok(head)
    }
    fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(*self.take(2)?.first_chunk().ok_or("record is too short")?))
    }
    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(*self.take(4)?.first_chunk().ok_or("record is too short")?))
    }
    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(*self.take(8)?.first_chunk().ok_or("record is too short")?))
    }
    fn offset(&mut self, view: PageRef<'_>, beyond: u16) -> Result<u16, String> {
        let offset = self.u16()?;
        if offset == 0 || offset > view.count() + beyond {
            return Err(format!("line pointer {offset} of {}", view.count()));
        }
        Ok(offset)
    }
}

fn data(operation: u8, parts: &[&[u8]]) -> Data {
    let mut out = Vec::with_capacity(1 + parts.iter().map(|p| p.len()).sum::<usize>());
    out.push(operation);
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// Place `item` at `offset`.
pub(crate) fn insert(offset: u16, item: &[u8]) -> Data {
    data(INSERT, &[&offset.to_le_bytes(), item])
}
/// Place `item` within the posting list at `offset`: it takes in the item's address and gives up its
/// last, which the item, placed after it, gets.
pub(crate) fn insert_posting(offset: u16, item: &[u8]) -> Data {
    data(INSERT_POSTING, &[&offset.to_le_bytes(), item])
}
/// The right sibling's link has reached the parent.
pub(crate) fn clear_incomplete() -> Data {
    data(CLEAR_INCOMPLETE, &[])
}
/// Another left sibling.
pub(crate) fn set_prev(block: BlockNumber) -> Data {
    data(SET_PREV, &[&block.0.to_le_bytes()])
}
/// Another right sibling.
pub(crate) fn set_next(block: BlockNumber) -> Data {
    data(SET_NEXT, &[&block.0.to_le_bytes()])
}
/// The whole meta page.
pub(crate) fn meta(meta: Meta) -> Data {
    data(META, &[&meta.to_bytes()])
}
/// A new page.
pub(crate) fn contents<'a>(
    level: u32,
    prev: BlockNumber,
    next: BlockNumber,
    flags: u16,
    cycle_id: u16,
    items: impl Iterator<Item = &'a [u8]>,
) -> Data {
    let mut out = data(
        CONTENTS,
        &[
            &level.to_le_bytes(),
            &prev.0.to_le_bytes(),
            &next.0.to_le_bytes(),
            &flags.to_le_bytes(),
            &cycle_id.to_le_bytes(),
        ],
    );
    for item in items {
        out.extend((item.len() as u16).to_le_bytes());
        out.extend_from_slice(item);
    }
    out
}
/// What DELETE's data take before the line pointers.
pub(crate) const DELETE_HEAD: usize = 6;
/// Entries go, and of posting lists (so many) some addresses: in `out`, whose memory is used again.
pub(crate) fn delete(
    out: &mut Data,
    deleted: &[u16],
    (updates, updated): (u16, &[u16]),
    clear_cycle: bool,
) {
    out.clear();
    out.extend_from_slice(&[DELETE, u8::from(clear_cycle)]);
    let header = [deleted.len() as u16, updates];
    for words in [&header[..], deleted, updated] {
        let at = out.len();
        out.resize(at + words.len() * 2, 0);
        let places = out[at..].as_chunks_mut::<2>().0;
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
    }
}
/// Addresses go that are not told one by one: a bit for each of the leaf's, or all.
pub(crate) fn delete_marked(out: &mut Data, gone: Option<&Gone>, clear_cycle: bool) {
    out.clear();
    out.extend_from_slice(&[DELETE_MARKED, u8::from(clear_cycle), 0]);
    out[2] = gone.map_or(0, |gone| gone.to_bytes(out));
}
/// Runs of entries with equal keys become posting lists: (first line pointer, how many).
pub(crate) fn deduplicate(runs: &[(u16, u16)]) -> Data {
    let mut out = vec![DEDUPLICATE];
    for (offset, count) in runs {
        out.extend(offset.to_le_bytes());
        out.extend(count.to_le_bytes());
    }
    out
}
/// An empty leaf waits to be unlinked, after the pages from `top_parent` down, if that is not 0.
pub(crate) fn half_dead(top_parent: BlockNumber) -> Data {
    data(HALF_DEAD, &[&top_parent.0.to_le_bytes()])
}
/// The child at `offset` goes: its key space is its right neighbour's.
pub(crate) fn unlink_child(offset: u16) -> Data {
    data(UNLINK_CHILD, &[&offset.to_le_bytes()])
}
/// Out of the tree; to be reused once no snapshot is older than `xid`.
pub(crate) fn set_deleted(xid: u64) -> Data {
    data(SET_DELETED, &[&xid.to_le_bytes()])
}
/// Whatever it was: a deleted page, to be reused once no search is as old as `xid`.
pub(crate) fn retire(xid: u64) -> Data {
    data(RETIRE, &[&xid.to_le_bytes()])
}
/// Searches begin here from now on, or do so no more.
pub(crate) fn root_mark(is_root: bool) -> Data {
    data(ROOT_MARK, &[&[u8::from(is_root)]])
}
/// The next page of the chain above a half-dead leaf.
pub(crate) fn set_top_parent(block: BlockNumber) -> Data {
    data(SET_TOP_PARENT, &[&block.0.to_le_bytes()])
}

/// The left half of a split.
pub(crate) struct SplitLeft<'a> {
    /// The first line pointer (of the page with the new entry in it) that goes right.
    pub(crate) first_right: u16,
    /// The new entry's line pointer, or 0 if the left half is as if there were none.
    pub(crate) new_offset: u16,
    /// The new entry falls into the posting list before it.
    pub(crate) into_posting: bool,
    /// The right half.
    pub(crate) right: BlockNumber,
    pub(crate) cycle_id: u16,
    pub(crate) high_key: &'a [u8],
    pub(crate) new_item: &'a [u8],
}

impl SplitLeft<'_> {
    pub(crate) fn encode(&self) -> Data {
        let new_item = if self.new_offset == 0 { &[] } else { self.new_item };
        data(
            SPLIT_LEFT,
            &[
                &self.first_right.to_le_bytes(),
                &self.new_offset.to_le_bytes(),
                &u16::from(self.into_posting).to_le_bytes(),
                &self.right.0.to_le_bytes(),
                &self.cycle_id.to_le_bytes(),
                &(self.high_key.len() as u16).to_le_bytes(),
                self.high_key,
                new_item,
            ],
        )
    }
}

/// What becomes of a posting list and a new entry whose address falls into it: the list with the
/// address, the entry with the list's last one.
pub(crate) fn swap_posting(posting: Item<'_>, item: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let new = Item(item).tid();
    let mut tids: Vec<Tid> = posting.tids().collect();
    let at = tids.partition_point(|t| *t < new);
    tids.insert(at, new);
    let last = tids.pop().unwrap_or(new);
    (layout::form_posting(posting, &tids), layout::with_tid(item, last))
}

/// The entries of a page with a new one among them, as line pointers' bytes from the first data one on.
pub(crate) fn with_new_item(
    view: PageRef<'_>,
    new_offset: u16,
    into_posting: bool,
    item: &[u8],
) -> Vec<Vec<u8>> {
    let first = view.first_data();
    let mut items: Vec<Vec<u8>> = (first..=view.count()).map(|o| view.item(o).0.to_vec()).collect();
    if new_offset < first {
        return items;
    }
    let at = usize::from(new_offset - first).min(items.len());
    let mut item = item.to_vec();
    if into_posting && at > 0 {
        let (posting, moved) = swap_posting(Item(&items[at - 1]), &item);
        items[at - 1] = posting;
        item = moved;
    }
    items.insert(at, item);
    items
}

fn fits(placed: bool) -> Result<(), String> {
    if placed { Ok(()) } else { Err("entry does not fit the page".into()) }
}

/// Makes the change that `data` describes.
pub(crate) fn apply(bytes: &mut Bytes, data: &[u8]) -> Result<(), String> {
    let mut page = PageMut(bytes);
    let Some((operation, rest)) = data.split_first() else {
        return Err("record has no operation".into());
    };
    let mut arguments = Arguments(rest);
    if !matches!(*operation, CONTENTS | META | RETIRE) && !page.as_ref().is_sane() {
        return Err("page is damaged".into());
    }
    match *operation {
        INSERT => {
            let offset = arguments.offset(page.as_ref(), 1)?;
            fits(page.insert(offset, arguments.0))
        }
        INSERT_POSTING => {
            let offset = arguments.offset(page.as_ref(), 0)?;
            let old = page.as_ref().item(offset);
            if !old.is_posting() || arguments.0.len() < 8 {
                return Err(format!("line pointer {offset} is not a posting list"));
            }
            let (posting, item) = swap_posting(old, arguments.0);
            fits(page.replace(offset, &posting) && page.insert(offset + 1, &item))
        }
        CLEAR_INCOMPLETE => {
            page.clear_flags(layout::INCOMPLETE_SPLIT);
            Ok(())
        }
        CONTENTS => {
            let (level, prev, next) = (arguments.u32()?, arguments.u32()?, arguments.u32()?);
            let (flags, cycle_id) = (arguments.u16()?, arguments.u16()?);
            page.init(level, flags);
            page.set_prev(BlockNumber(prev));
            page.set_next(BlockNumber(next));
            page.set_cycle_id(cycle_id);
            while !arguments.0.is_empty() {
                let len = arguments.u16()?;
                fits(page.push(arguments.take(usize::from(len))?))?;
            }
            Ok(())
        }
        META => {
            let meta = Meta::from_bytes(arguments.0).ok_or("record is too short")?;
            page.init_meta(meta);
            Ok(())
        }
        SPLIT_LEFT => split_left(&mut page, &mut arguments),
        SET_PREV => {
            page.set_prev(BlockNumber(arguments.u32()?));
            Ok(())
        }
        SET_NEXT => {
            page.set_next(BlockNumber(arguments.u32()?));
            Ok(())
        }
        DELETE => delete_items(&mut page, &mut arguments),
        DELETE_MARKED => delete_marked_ones(&mut page, &mut arguments),
        DEDUPLICATE => merge_runs(&mut page, &mut arguments),
        HALF_DEAD => {
            let top_parent = BlockNumber(arguments.u32()?);
            page.clear_items();
            page.add_flags(layout::HALF_DEAD);
            fits(page.push(&layout::form_pivot(&[], &[], None, top_parent)))
        }
        UNLINK_CHILD => {
            let offset = arguments.offset(page.as_ref(), 0)?;
            if offset == page.as_ref().count() {
                return Err("the last child can't be unlinked".into());
            }
            let heir = page.as_ref().item(offset + 1).downlink();
            page.set_downlink(offset, heir);
            page.remove(offset + 1);
            Ok(())
        }
        SET_DELETED => {
            page.set_deleted(arguments.u64()?);
            Ok(())
        }
        RETIRE => {
            let xid = arguments.u64()?;
            page.init(0, layout::LEAF);
            page.set_deleted(xid);
            Ok(())
        }
        ROOT_MARK => {
            page.clear_flags(layout::ROOT);
            if arguments.take(1)?[0] != 0 {
                page.add_flags(layout::ROOT);
            }
            Ok(())
        }
        SET_TOP_PARENT => {
            let block = BlockNumber(arguments.u32()?);
            if page.as_ref().count() != 1 {
                return Err("page is not half-dead".into());
            }
            page.set_downlink(1, block);
            Ok(())
        }
        other => Err(format!("unknown operation {other}")),
    }
}

fn split_left(page: &mut PageMut<'_>, arguments: &mut Arguments<'_>) -> Result<(), String> {
    let (first_right, new_offset) = (arguments.u16()?, arguments.u16()?);
    let into_posting = arguments.u16()? != 0;
    let right = BlockNumber(arguments.u32()?);
    let cycle_id = arguments.u16()?;
    let len = arguments.u16()?;
    let high_key = arguments.take(usize::from(len))?;
    let first = page.as_ref().first_data();
    let items = with_new_item(page.as_ref(), new_offset, into_posting, arguments.0);
    let keep = usize::from(first_right.checked_sub(first).ok_or("split point before the page")?);
    if keep > items.len() {
        return Err("split point beyond the page".into());
    }
    page.clear_items();
    page.set_next(right);
    page.set_cycle_id(cycle_id);
    page.clear_flags(layout::ROOT | layout::SPLIT_END);
    page.add_flags(layout::INCOMPLETE_SPLIT);
    fits(page.push(high_key))?;
    for item in &items[..keep] {
        fits(page.push(item))?;
    }
    Ok(())
}

fn delete_items(page: &mut PageMut<'_>, arguments: &mut Arguments<'_>) -> Result<(), String> {
    let clear_cycle = arguments.take(1)?[0] != 0;
    let (deleted, updated) = (arguments.u16()?, arguments.u16()?);
    let deleted = arguments.take(usize::from(deleted) * 2)?.as_chunks::<2>().0;
    if updated == 0 && deleted.len() <= layout::FEW {
        let mut few = [0; layout::FEW];
        few.iter_mut().zip(deleted).for_each(|(to, offset)| *to = u16::from_le_bytes(*offset));
        let few = &few[..deleted.len()];
        if !page.remove_few(few) {
            return Err(format!("line pointers {few:?} can't be given up"));
        }
    } else {
        let gone = marked(page.as_ref(), deleted, updated, arguments)?;
        all_go(page.remove_addresses(&gone))?;
    }
    end_cycle(page, clear_cycle);
    Ok(())
}

fn delete_marked_ones(page: &mut PageMut<'_>, arguments: &mut Arguments<'_>) -> Result<(), String> {
    let clear_cycle = arguments.take(1)?[0] != 0;
    let skip = arguments.take(1)?[0];
    let gone = match arguments.0 {
        [] => {
            let view = page.as_ref();
            let counts = (view.first_data()..=view.count()).map(|o| view.item(o).tid_count());
            let mut all = Gone::default();
            all.add(0..counts.sum()).map(|()| all)
        }
        bytes => Gone::from_bytes(skip, bytes),
    };
    all_go(page.remove_addresses(&gone.ok_or("more addresses than a page has")?))?;
    end_cycle(page, clear_cycle);
    Ok(())
}

fn all_go(gone: bool) -> Result<(), String> {
    if gone { Ok(()) } else { Err("entries overlap, or addresses are not there".into()) }
}

fn end_cycle(page: &mut PageMut<'_>, clear: bool) {
    if clear {
        page.set_cycle_id(0);
        page.clear_flags(layout::SPLIT_END);
    }
}

/// Which addresses go with these line pointers, and with so many posting lists that follow in the `arguments` and lose some.
fn marked(
    view: PageRef<'_>,
    deleted: &[[u8; 2]],
    updated: u16,
    arguments: &mut Arguments<'_>,
) -> Result<Gone, String> {
    let mut gone = Gone::default();
    let mut deleted = deleted.iter().map(|offset| u16::from_le_bytes(*offset)).peekable();
    let mut update = |left: &mut u16| -> Result<Option<(u16, &[u8])>, String> {
        let Some(less) = left.checked_sub(1) else { return Ok(None) };
        *left = less;
        let (offset, n) = (arguments.u16()?, arguments.u16()?);
        Ok(Some((offset, arguments.take(usize::from(n) * 2)?)))
    };
    let mut updates = updated;
    let mut next = update(&mut updates)?;
    let mut number = 0;
    for offset in view.first_data()..=view.count() {
        let count = view.item(offset).tid_count();
        if deleted.next_if_eq(&offset).is_some() {
            gone.add(number..number + count).ok_or("more addresses than a page has")?;
        }
        if let Some((_, indexes)) = next.take_if(|(of, _)| *of == offset) {
            let mut lost = 0;
            for index in indexes.as_chunks::<2>().0 {
                let index = usize::from(u16::from_le_bytes(*index));
                if index < lost || index >= count || indexes.len() / 2 >= count {
                    return Err(format!("posting list {offset} can't lose these addresses"));
                }
                lost = index + 1;
                let one = number + index..number + lost;
                gone.add(one).ok_or("more addresses than a page has")?;
            }
            next = update(&mut updates)?;
        }
        number += count;
    }
    match (deleted.next(), next) {
        (Some(offset), _) | (_, Some((offset, _))) => {
            Err(format!("line pointer {offset} can't be given up, or not in this order"))
        }
        _ => Ok(gone),
    }
}

fn merge_runs(page: &mut PageMut<'_>, arguments: &mut Arguments<'_>) -> Result<(), String> {
    let before: Bytes = *page.0;
    let before = PageRef(&before);
    let count = before.count();
    page.clear_items();
    let mut offset = 1;
    let next_run = |arguments: &mut Arguments<'_>| -> Result<Option<(u16, u16)>, String> {
        if arguments.0.is_empty() {
            return Ok(None);
        }
        Ok(Some((arguments.u16()?, arguments.u16()?)))
    };
    let mut run = next_run(arguments)?;
    while offset <= count {
        match run {
            Some((start, length)) if start == offset => {
                if length == 0 || offset + length - 1 > count {
                    return Err("run beyond the page".into());
                }
                let tids: Vec<Tid> =
                    (offset..offset + length).flat_map(|o| before.item(o).tids()).collect();
                fits(page.push(&layout::form_posting(before.item(offset), &tids)))?;
                offset += length;
                run = next_run(arguments)?;
            }
            _ => {
                fits(page.push(before.item(offset).0))?;
                offset += 1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
