//! Inserting rows, one at a time or a page at a time.

use crate::apply::{self, Actor, TupleParts};
use crate::heap::Heap;
use crate::record::{self, Encoder, F_CLEAR, F_FROZEN, F_INIT};
use crate::toast::Stamp;
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE, MapPin};
use base::{BlockNumber, CommandId, OffsetNumber, Result, Tid, Xid};
use buffer::{BufferPool, OwnedWriteGuard, PinnedPage, Strategy};
use page::visibility;
use std::ops::Range;
use txn::Transaction;
use wal::{BlockFlags, CriticalSection, RecordBuilder, ResourceManager};

/// What an inserting command keeps between rows.
#[derive(Debug)]
pub struct InsertState {
    /// Rows are frozen as they go in (COPY FREEZE: the caller has checked that the relation was made in
    /// this transaction).
    pub frozen: bool,
    /// The versions keep this xmin instead of getting the transaction's (a table rewritten as it is: the caller holds it
    /// exclusively, and the file is new).
    pub xmin: Option<Xid>,
    /// Do not look for room on old pages: extend (bulk loads into new relations).
    pub skip_fsm: bool,
    pub(crate) strategy: Strategy,
    /// The page inserted into last, kept pinned by bulk inserts.
    pub(crate) current: Option<PinnedPage>,
    pub(crate) extend_by: u32,
    /// Blocks added to the relation for this command and not used yet.
    pub(crate) reserved: Range<u32>,
    pub(crate) map: MapPin,
    bulk: bool,
}

impl Default for InsertState {
    fn default() -> Self {
        InsertState {
            frozen: false,
            xmin: None,
            skip_fsm: false,
            strategy: Strategy::Normal,
            current: None,
            extend_by: 0,
            reserved: 0..0,
            map: MapPin::none(),
            bulk: false,
        }
    }
}

impl InsertState {
    /// For a few rows.
    pub fn new() -> InsertState {
        InsertState::default()
    }
    /// For many rows (COPY, INSERT … SELECT, CREATE TABLE AS): a ring of buffers, the relation extended by
    /// growing steps, the current page kept pinned. Call [`Heap::finish_bulk`] at the end.
    pub fn bulk(pool: &BufferPool) -> InsertState {
        InsertState { strategy: Strategy::bulk_write(pool), bulk: true, ..InsertState::default() }
    }
    fn stamp(&self) -> Stamp {
        Stamp { frozen: self.frozen, xmin: self.xmin }
    }
    pub(crate) fn is_bulk(&self) -> bool {
        self.bulk
    }
    pub(crate) fn next_reserved(&mut self) -> Option<BlockNumber> {
        self.reserved.next().map(BlockNumber)
    }
}

impl Heap {
    /// Inserts a formed tuple. Long values go to the TOAST table.
    ///
    /// # Errors
    /// 54000 if the row is too big; 53100; the pool's.
    pub fn insert(&self, txn: &Transaction, tuple: &[u8], state: &mut InsertState) -> Result<Tid> {
        let toasted;
        let tuple = if self.needs_toast(tuple) {
            toasted = self.toast_insert(txn, tuple, state.stamp())?;
            &toasted[..]
        } else {
            tuple
        };
        let own = txn.xid()?;
        let xid = state.xmin.unwrap_or(own);
        let mut parts = TupleParts::of(tuple);
        if state.frozen {
            parts = parts.frozen();
        }
        let mut map = std::mem::take(&mut state.map);
        let mut guard = self.page_with_room(parts.len(), state, &mut map)?;
        self.make_xid_fit(&mut guard, xid)?;
        let init = guard.item_count() == 0;
        let offset = guard.free_offset();
        let tid = Tid::new(guard.block(), offset);
        let by = Actor { xid, cid: txn.command_id(), combo: false };
        let clear = guard.is_all_visible();
        let mut data = Encoder::<16>::new();
        data.u16(offset.0);
        data.u8(if init { F_INIT } else { 0 } | if clear { F_CLEAR } else { 0 });
        if init {
            data.u64(guard.xid_base().0);
        }
        let flags =
            if init { BlockFlags::STANDARD | BlockFlags::WILL_INIT } else { BlockFlags::STANDARD };
        let mut done = false;
        self.change_page(
            &mut guard,
            &map,
            record::INSERT,
            xid,
            true,
            |page| {
                if init {
                    apply::init(page, page.xid_base());
                }
                done = apply::insert(page, tid, &parts, by);
            },
            |rec| {
                rec.data(data.bytes());
                rec.block_data(record::HEAP, &record::tuple_header(&parts));
                rec.block_data(record::HEAP, parts.body.0[0]);
            },
            flags,
        );
        assert!(done, "there was room for the tuple");
        self.leave_page(guard, state);
        state.map = map;
        Ok(tid)
    }

    fn leave_page(&self, guard: OwnedWriteGuard, state: &mut InsertState) {
        let block = guard.block();
        if state.bulk {
            state.current = Some(guard.unlock());
        } else {
            drop(guard);
            self.targets.set(block);
        }
    }

    /// Inserts many tuples, as many to a page as fit, with one record a page. Their addresses are
    /// appended to `tids`.
    ///
    /// # Errors
    /// As [`Heap::insert`]; some of the tuples may be in by then (the statement fails as a whole).
    pub fn multi_insert<T: AsRef<[u8]>>(
        &self,
        txn: &Transaction,
        tuples: &[T],
        state: &mut InsertState,
        tids: &mut Vec<Tid>,
    ) -> Result<()> {
        if tuples.is_empty() {
            return Ok(());
        }
        let own = txn.xid()?;
        let xid = state.xmin.unwrap_or(own);
        let cid = txn.command_id();
        let stamp = state.stamp();
        let toasted;
        let replaced: Option<&[Option<Vec<u8>>]> =
            if tuples.iter().any(|t| self.needs_toast(t.as_ref())) {
                toasted = tuples
                    .iter()
                    .map(|t| {
                        let t = t.as_ref();
                        self.needs_toast(t).then(|| self.toast_insert(txn, t, stamp)).transpose()
                    })
                    .collect::<Result<Vec<_>>>()?;
                Some(&toasted)
            } else {
                None
            };
        let tuple = |i: usize| -> &[u8] {
            replaced.and_then(|r| r[i].as_deref()).unwrap_or(tuples[i].as_ref())
        };
        let mut data = Vec::new();
        let mut block_data = Vec::new();
        let mut map = std::mem::take(&mut state.map);
        let mut next = 0;
        while next < tuples.len() {
            let first = TupleParts::of(tuple(next));
            let mut guard = self.page_with_room(first.len(), state, &mut map)?;
            let empty = guard.item_count() == 0;
            if state.frozen && (empty || guard.is_all_visible()) {
                let block = guard.block();
                if !map.is_for(block) {
                    let pin = guard.unlock();
                    self.visibility_map().pin(block, &mut map)?;
                    state.current = Some(pin);
                    continue;
                }
            }
            self.make_xid_fit(&mut guard, xid)?;
            next = self.fill_page(
                &mut guard,
                &map,
                (xid, cid),
                next..tuples.len(),
                &tuple,
                state.frozen,
                tids,
                (&mut data, &mut block_data),
            );
            self.leave_page(guard, state);
        }
        state.map = map;
        Ok(())
    }

    /// Puts as many of the tuples `range` on the page as fit, at least one; returns the next one's number.
    #[expect(clippy::too_many_arguments, reason = "the loop body of multi_insert")]
    fn fill_page<'t>(
        &self,
        guard: &mut OwnedWriteGuard,
        map: &MapPin,
        (xid, cid): (Xid, CommandId),
        range: Range<usize>,
        tuple: &dyn Fn(usize) -> &'t [u8],
        frozen: bool,
        tids: &mut Vec<Tid>,
        (data, block_data): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> usize {
        let tag = guard.tag();
        let by = Actor { xid, cid, combo: false };
        let init = guard.item_count() == 0;
        let clear = guard.is_all_visible() && !frozen;
        let set = frozen && (init || guard.is_all_visible());
        let base = guard.xid_base();
        let reserve = self.reserve();
        data.clear();
        block_data.clear();
        let mut flags = 0;
        flags |= if init { F_INIT } else { 0 };
        flags |= if clear { F_CLEAR } else { 0 };
        flags |= if set { F_FROZEN } else { 0 };
        data.push(flags);
        if init {
            data.extend_from_slice(&base.0.to_le_bytes());
        }
        let count_at = data.len();
        data.extend_from_slice(&[0; 2]);

        let _critical = CriticalSection::enter();
        guard.mark_dirty();
        let mut map_guard = if set {
            map.page().map(|p| p.write())
        } else if clear {
            crate::heap::clear_all_visible(guard, tag.block, map)
        } else {
            None
        };
        if init {
            apply::init(guard, base);
        }
        let mut next = range.start;
        while next < range.end {
            let mut parts = TupleParts::of(tuple(next));
            if frozen {
                parts = parts.frozen();
            }
            let offset: OffsetNumber = guard.free_offset();
            let item = page::align8(parts.len()) + 4;
            if next > range.start && guard.free_space() < item + reserve {
                break;
            }
            let tid = Tid::new(tag.block, offset);
            if !apply::insert(guard, tid, &parts, by) {
                break;
            }
            tids.push(tid);
            if !init {
                data.extend_from_slice(&offset.0.to_le_bytes());
            }
            if self.logged {
                block_data.extend_from_slice(&(parts.body.len() as u16).to_le_bytes());
                block_data.extend_from_slice(&record::tuple_header(&parts));
                block_data.extend_from_slice(parts.body.0[0]);
            }
            next += 1;
        }
        assert!(next > range.start, "there was room for one tuple");
        if set {
            guard.set_all_visible(true);
            if let Some(m) = &mut map_guard {
                m.mark_dirty();
                visibility::set(m, tag.block, ALL_VISIBLE | ALL_FROZEN);
            }
        }
        if self.logged {
            let count = (next - range.start) as u16;
            data[count_at..count_at + 2].copy_from_slice(&count.to_le_bytes());
            let lsn = {
                let mut rec = RecordBuilder::new(ResourceManager::Heap, record::MULTI_INSERT, xid);
                let init = if init { BlockFlags::WILL_INIT } else { BlockFlags::NONE };
                rec.block(record::HEAP, tag, guard, BlockFlags::STANDARD | init);
                if let Some(m) = &map_guard {
                    rec.block(record::MAP, m.tag(), m, crate::heap::first_image(m));
                }
                rec.data(data);
                rec.block_data(record::HEAP, block_data);
                self.ctx.wal.insert(&rec)
            };
            guard.set_lsn(lsn);
            if let Some(m) = &mut map_guard {
                m.set_lsn(lsn);
            }
        }
        next
    }

    /// Ends the bulk inserts into a file that this transaction made and nobody else has seen: `len` pages are used, what was added
    /// for more is cut off. Not logged: replay makes no pages that were not filled.
    ///
    /// # Errors
    /// The pool's.
    pub fn finish_new(&self, states: &mut [InsertState], len: BlockNumber) -> Result<()> {
        for state in states {
            state.reserved = 0..0;
            self.finish_bulk(state)?;
        }
        self.rel.truncate(base::Fork::Main, len)
    }

    /// Ends a bulk insert into a file that nobody else has seen, as [`Heap::finish_new`] does: the unused pages, if they are still the
    /// file's last, are cut off, so that no page of frozen rows' file is without its bits.
    ///
    /// # Errors
    /// The pool's.
    pub fn finish_unseen(&self, state: &mut InsertState) -> Result<()> {
        let unused = state.reserved.clone();
        if unused.is_empty() || self.len_blocks()?.0 != unused.end {
            return self.finish_bulk(state);
        }
        self.finish_new(std::slice::from_mut(state), BlockNumber(unused.start))
    }

    /// Ends a bulk insert: gives the unused pages that were added for it to everybody.
    ///
    /// # Errors
    /// The pool's.
    pub fn finish_bulk(&self, state: &mut InsertState) -> Result<()> {
        let fsm = self.free_space_map();
        if let Some(pin) = state.current.take() {
            let free = pin.read().free_space_for_item();
            fsm.record(pin.block(), free)?;
        }
        let free = page::free_space::EMPTY_PAGE;
        for block in std::mem::replace(&mut state.reserved, 0..0) {
            fsm.record(BlockNumber(block), free)?;
        }
        Ok(())
    }
}
