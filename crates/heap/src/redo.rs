//! Replay of heap records.
//!
//! # WAL and replay
//! Every change is made by the function in `apply` or `prune` that made it the first time. A page whose LSN
//! is not older than the record has the change already (the pool says so). A page that the record makes anew is made beside the one that is there, which a
//! record that makes no sense leaves as it was.

use crate::apply::{self, Actor, Body};
use crate::prune::apply_prune;
use crate::record::{
    self, Decoder, F_CLEAR, F_CLEAR_OLD, F_FROZEN, F_HOT, F_INIT, F_KEYS, F_PREFIX, F_SUFFIX, HEAP,
    MAP, OLD, OLD_MAP,
};
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use base::{BlockNumber, CommandId, Error, Result, Tid, Xid};
use buffer::{OwnedWriteGuard, RedoPages, RelationHandle};
use page::{Page, visibility};
use wal::Record;

/// Replays one record of the heap's resource manager on those of its pages that are `pages`'.
///
/// # Errors
/// Corruption (of the log or of a page), the disk's.
pub fn redo(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    match rec.info {
        record::INSERT => insert(rec, pages),
        record::MULTI_INSERT => multi_insert(rec, pages),
        record::DELETE => delete(rec, pages),
        record::UPDATE => update(rec, pages),
        record::PRUNE | record::PRUNE_FIXED => prune(rec, pages),
        record::SHIFT_BASE => shift_base(rec, pages),
        record::KILL => kill(rec, pages),
        record::IN_PLACE => in_place(rec, pages),
        record::MAP_IMAGE => map_image(rec, pages),
        other => Err(Error::corrupt_file(format!("unknown heap record {other} at {}", rec.lsn))),
    }
}

/// Forgets what the maps say beyond heap block `len`; for replay of a truncation.
///
/// # Errors
/// The disk's.
pub fn truncate_maps(rel: &RelationHandle, len: BlockNumber) -> Result<()> {
    crate::FreeSpaceMap::new(rel.clone()).truncate(len)?;
    crate::VisibilityMap::new(rel.clone()).truncate(len)
}

fn wrong(rec: &Record, id: u8) -> Error {
    let what =
        format!("heap record {} at {} does not fit the page", record::name(rec.info), rec.lsn);
    match rec.block(id) {
        Some(block) => Error::corrupt(block.tag, what),
        None => Error::corrupt_file(what),
    }
}

fn done(rec: &Record, mut guard: OwnedWriteGuard) {
    guard.mark_dirty();
    guard.set_lsn(rec.end_lsn);
}

/// Changes the record's page `id`, if it is `pages`' and has not been changed yet.
fn change(
    rec: &Record,
    pages: &dyn RedoPages,
    id: u8,
    f: impl FnOnce(&mut Page) -> Result<()>,
) -> Result<()> {
    let block = rec.block(id);
    if block.is_some_and(|b| b.will_init && !b.apply_image && pages.has(b.tag)) {
        let mut made = Page::new_zeroed();
        f(&mut made)?;
        if let Some(mut guard) = pages.redo_page(rec, id)?.into_apply() {
            *guard.bytes_mut() = *made.bytes();
            done(rec, guard);
        }
    } else if let Some(mut guard) = pages.redo_page(rec, id)?.into_apply() {
        f(&mut guard)?;
        done(rec, guard);
    }
    Ok(())
}

/// Who made the change; the page, the record's `id`, must be able to hold its XID, as it did when the record was made.
fn actor(rec: &Record, page: &Page, id: u8) -> Result<Actor> {
    if page::tuple::xid_to_offset(page.xid_base(), rec.xid).is_none() {
        return Err(wrong(rec, id));
    }
    Ok(Actor { xid: rec.xid, cid: CommandId(0), combo: false })
}

fn block_of(rec: &Record, id: u8) -> Result<BlockNumber> {
    rec.block(id)
        .map(|b| b.tag.block)
        .ok_or_else(|| Error::corrupt_file(format!("heap record at {} lacks block {id}", rec.lsn)))
}

fn block_data(rec: &Record, id: u8) -> &[u8] {
    rec.block(id).map_or(&[], |b| &b.data)
}

/// Sets the map bits of `heap_block` in the record's map page `id`, if it names one.
fn set_map(
    rec: &Record,
    pages: &dyn RedoPages,
    id: u8,
    heap_block: BlockNumber,
    bits: u8,
) -> Result<()> {
    if rec.block(id).is_some()
        && let Some(mut guard) = pages.redo_page(rec, id)?.into_apply()
    {
        if guard.is_new() {
            guard.init(0);
        }
        visibility::set(&mut guard, heap_block, bits);
        done(rec, guard);
    }
    Ok(())
}

fn insert(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    let mut d = Decoder(&rec.data);
    let offset = d.offset()?;
    let flags = d.u8()?;
    change(rec, pages, HEAP, |page| {
        if flags & F_INIT != 0 {
            apply::init(page, Xid(d.u64()?));
        }
        if flags & F_CLEAR != 0 {
            page.set_all_visible(false);
        }
        let mut d = Decoder(block_data(rec, HEAP));
        let mut parts = record::tuple_parts(&mut d)?;
        parts.body = Body::whole(d.0);
        let by = actor(rec, page, HEAP)?;
        if offset.0 == 0 || !apply::insert(page, Tid::new(block, offset), &parts, by) {
            return Err(wrong(rec, HEAP));
        }
        Ok(())
    })?;
    set_map(rec, pages, MAP, block, 0)
}

fn multi_insert(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    let mut d = Decoder(&rec.data);
    let flags = d.u8()?;
    let frozen = flags & F_FROZEN != 0;
    change(rec, pages, HEAP, |page| {
        if flags & F_INIT != 0 {
            apply::init(page, Xid(d.u64()?));
        }
        if flags & F_CLEAR != 0 {
            page.set_all_visible(false);
        }
        let count = d.u16()?;
        let mut bodies = Decoder(block_data(rec, HEAP));
        let by = actor(rec, page, HEAP)?;
        for n in 1..=count {
            let offset = if flags & F_INIT != 0 { base::OffsetNumber(n) } else { d.offset()? };
            let len = bodies.u16()?;
            let mut parts = record::tuple_parts(&mut bodies)?;
            parts.body = Body::whole(bodies.take(len.into())?);
            if offset.0 == 0 || !apply::insert(page, Tid::new(block, offset), &parts, by) {
                return Err(wrong(rec, HEAP));
            }
        }
        if frozen {
            page.set_all_visible(true);
        }
        Ok(())
    })?;
    let bits = if frozen { ALL_VISIBLE | ALL_FROZEN } else { 0 };
    set_map(rec, pages, MAP, block, bits)
}

fn delete(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    if let Some(mut guard) = pages.redo_page(rec, HEAP)?.into_apply() {
        let mut d = Decoder(&rec.data);
        let offset = d.offset_on(&guard)?;
        if d.u8()? & F_CLEAR != 0 {
            guard.set_all_visible(false);
        }
        let by = actor(rec, &guard, HEAP)?;
        apply::delete(&mut guard, Tid::new(block, offset), by);
        done(rec, guard);
    }
    set_map(rec, pages, MAP, block, 0)
}

fn update(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    let mut d = Decoder(&rec.data);
    let (old_offset, new_offset, flags) = (d.offset()?, d.offset()?, d.u8()?);
    let new_tid = Tid::new(block, new_offset);
    let (hot, keys) = (flags & F_HOT != 0, flags & F_KEYS != 0);
    let across = rec.block(OLD).is_some();
    if across && let Some(mut guard) = pages.redo_page(rec, OLD)?.into_apply() {
        record::existing(&guard, old_offset)?;
        let by = actor(rec, &guard, OLD)?;
        if flags & F_CLEAR_OLD != 0 {
            guard.set_all_visible(false);
        }
        apply::update_old(&mut guard, old_offset, new_tid, by, hot, keys);
        done(rec, guard);
    }
    change(rec, pages, HEAP, |page| {
        if flags & F_INIT != 0 {
            apply::init(page, Xid(d.u64()?));
        }
        if flags & F_CLEAR != 0 {
            page.set_all_visible(false);
        }
        let by = actor(rec, page, HEAP)?;
        let prefix = if flags & F_PREFIX != 0 { usize::from(d.u16()?) } else { 0 };
        let suffix = if flags & F_SUFFIX != 0 { usize::from(d.u16()?) } else { 0 };
        let mut data = Decoder(block_data(rec, HEAP));
        let mut parts = record::tuple_parts(&mut data)?;
        let old_body;
        parts.body = if across {
            Body::whole(data.0)
        } else {
            record::existing(page, old_offset)?;
            old_body = record::body_on_page(page, old_offset).to_vec();
            if prefix.max(suffix) > old_body.len() {
                return Err(wrong(rec, HEAP));
            }
            Body([&old_body[..prefix], data.0, &old_body[old_body.len() - suffix..]])
        };
        if new_offset.0 == 0 || !apply::insert(page, new_tid, &parts, by) {
            return Err(wrong(rec, HEAP));
        }
        if !across {
            apply::update_old(page, old_offset, new_tid, by, hot, keys);
        }
        Ok(())
    })?;
    if across {
        let old_block = block_of(rec, OLD)?;
        // One map page for both heap pages is named once, in the old page's role.
        let shared = rec.block(MAP).is_none() && flags & F_CLEAR != 0;
        if rec.block(OLD_MAP).is_some()
            && let Some(mut guard) = pages.redo_page(rec, OLD_MAP)?.into_apply()
        {
            if guard.is_new() {
                guard.init(0);
            }
            visibility::set(&mut guard, old_block, 0);
            if shared {
                visibility::set(&mut guard, block, 0);
            }
            done(rec, guard);
        }
    }
    set_map(rec, pages, MAP, block, 0)
}

fn prune(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    let mut plan = record::plan_of(rec, block)?;
    if let Some(mut guard) = pages.redo_page(rec, HEAP)?.into_apply() {
        let from = plan.redirects.iter().flat_map(|(f, t)| [*f, *t]);
        let freeze = plan.freeze.iter().map(|f| f.offset);
        let all = from.chain(freeze).chain(plan.dead.iter().chain(&plan.unused).copied());
        let kept = plan.kept.iter().map(|k| k.from).filter(|from| from.0 != 0);
        let links = plan.links.iter().map(|l| l.from);
        for offset in all.chain(kept).chain(links) {
            record::existing(&guard, offset)?;
        }
        plan.keep_again(&guard);
        apply_prune(&mut guard, &plan);
        done(rec, guard);
    }
    if plan.visibility != 0 {
        set_map(rec, pages, MAP, block, plan.visibility)?;
    }
    Ok(())
}

fn shift_base(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    if let Some(mut guard) = pages.redo_page(rec, HEAP)?.into_apply() {
        let (base, list) = record::decode_rebase(&rec.data)?;
        if !apply::shift_base(&mut guard, base, &list) {
            return Err(wrong(rec, HEAP));
        }
        done(rec, guard);
    }
    Ok(())
}

fn kill(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    let block = block_of(rec, HEAP)?;
    if let Some(mut guard) = pages.redo_page(rec, HEAP)?.into_apply() {
        let offset = Decoder(&rec.data).offset_on(&guard)?;
        guard.set_all_visible(false);
        apply::kill(&mut guard, offset);
        done(rec, guard);
    }
    set_map(rec, pages, MAP, block, 0)
}

fn in_place(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    if let Some(mut guard) = pages.redo_page(rec, HEAP)?.into_apply() {
        let offset = Decoder(&rec.data).offset_on(&guard)?;
        if !apply::in_place(&mut guard, offset, block_data(rec, HEAP)) {
            return Err(wrong(rec, HEAP));
        }
        done(rec, guard);
    }
    Ok(())
}

fn map_image(rec: &Record, pages: &dyn RedoPages) -> Result<()> {
    pages.redo_page(rec, MAP)?;
    Ok(())
}
