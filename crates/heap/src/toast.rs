//! Values too long for a page: compressed, or out of line in a TOAST table.
//!
//! # Purpose
//! A tuple longer than [`TARGET`] has its longest values compressed (LZ4), then moved out, until it is short enough.
//! A moved value's chunks are rows of the TOAST table, found by an index over (chunk_id, chunk_seq).
//!
//! # Invariants
//! A value belongs to one row: a new version that keeps it carries the same pointer, any other row gets a copy of its
//! own. Its chunks are there since their row is, or longer, and are deleted by the delete or update that drops the
//! pointer, so they live as long as some snapshot sees the row: one older than both would else miss them alone.
//!
//! # Locks
//! No page is locked while the TOAST table is written; an update holds its row by a row lock meanwhile.
//!
//! # Differs from PostgreSQL
//! LZ4 is the only method. The index is a trait: this crate knows no B-tree.

mod prefix;

use crate::fetch::TupleSlot;
use crate::heap::{Heap, TupleOutcome};
use crate::insert::InsertState;
use crate::visibility::{Dirty, Hints, satisfies_dirty};
use base::sync::{Arc, Mutex, Rank};
use base::{Error, Fork, Oid, Result, Tid, Xid, bail};
use buffer::Strategy;
use page::tuple::{
    AttrValue, COMPRESSED_HEADER, HAS_EXTERNAL, PhysicalAttr, ToastPointer, TupleDesc, TupleView,
    VARLENA_HEADER, deform, form_tuple, form_values,
};
use prefix::{Prefix, decompress_prefix};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::{Transaction, Wait};

/// Tuples longer than this are made shorter, down to this if possible.
pub const TARGET: usize = 2032;
/// Bytes of a chunk.
pub const CHUNK: usize = 1996;
/// A value shorter than this is not moved out: the pointer would be as long.
const MIN_MOVED: usize = 32;

/// How a column's long values may be stored (`pg_attribute.attstorage`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AttrStorage {
    /// `p`: as they are.
    #[default]
    Plain,
    /// `e`: out of line, not compressed.
    External,
    /// `m`: compressed; out of line only if the row does not fit a page otherwise.
    Main,
    /// `x`: compressed, then out of line.
    Extended,
}

impl AttrStorage {
    /// By `attstorage`'s letter.
    pub fn from_letter(letter: u8) -> AttrStorage {
        match letter {
            b'e' => AttrStorage::External,
            b'm' => AttrStorage::Main,
            b'x' => AttrStorage::Extended,
            _ => AttrStorage::Plain,
        }
    }
}

/// Since when a row is to have been there, if not since the transaction that inserts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// As [`InsertState::frozen`].
    pub frozen: bool,
    /// As [`InsertState::xmin`].
    pub xmin: Option<Xid>,
}

/// Where long values go.
pub trait ToastStore: std::fmt::Debug + Send + Sync {
    /// The OID that pointers name.
    fn table(&self) -> Oid;
    /// Stores bytes as they are (compressed or not) under a new id, for a row that goes in with `stamp`.
    fn store(&self, txn: &Transaction, data: &[u8], stamp: Stamp) -> Result<Oid>;
    /// Reads `len` of the stored bytes from `start` on.
    fn fetch(&self, value: Oid, start: usize, len: usize) -> Result<Vec<u8>>;
    /// Deletes a value.
    fn delete(&self, txn: &Transaction, value: Oid) -> Result<()>;
    /// Ends a value together with its row, by the committed transaction `xmax`: see [`Heap::end_version`].
    fn end(&self, value: Oid, xmax: Xid) -> Result<()>;
}

/// The index of a TOAST table, over (chunk_id, chunk_seq).
pub trait ToastIndex: std::fmt::Debug + Send + Sync {
    /// An id that no value in the table has, dead ones included.
    fn new_value_id(&self) -> Result<Oid>;
    /// Adds an entry.
    fn insert(&self, txn: &Transaction, value: Oid, chunk: i32, tid: Tid) -> Result<()>;
    /// The entries of `value` with `first <= chunk <= last`, in order of chunks.
    fn lookup(&self, value: Oid, first: i32, last: i32) -> Result<Vec<(i32, Tid)>>;
}

/// A TOAST table: a heap of chunks and its index.
#[derive(Debug)]
pub struct HeapToast {
    heap: Heap,
    index: Arc<dyn ToastIndex>,
    /// Those that get every entry too, though nobody reads them here.
    others: Vec<Arc<dyn ToastIndex>>,
    table: Oid,
    desc: TupleDesc,
    tally: Option<(Arc<ToastTally>, Oid)>,
}

/// Taken last, and held for a few instructions.
const TALLY_RANK: Rank = Rank(980);

/// What was done to TOAST tables, for whoever keeps count.
pub struct ToastTally {
    any: AtomicBool,
    changes: Mutex<Vec<ToastChanges>>,
}

/// Chunks stored in a TOAST table, and deleted, and how its index was asked for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ToastChanges {
    /// `pg_class.oid`
    pub table: Oid,
    /// The index that is read.
    pub index: Oid,
    /// Stored.
    pub inserted: u64,
    /// Deleted.
    pub deleted: u64,
    /// How often the index was asked: for a value's chunks, for an id that is free.
    pub lookups: u64,
    /// Entries that it gave.
    pub found: u64,
    /// Chunks read by way of them.
    pub fetched: u64,
}

impl std::fmt::Debug for ToastTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ToastTally(any: {})", self.any.load(Ordering::Relaxed))
    }
}

impl Default for ToastTally {
    fn default() -> Self {
        ToastTally { any: AtomicBool::new(false), changes: Mutex::new(TALLY_RANK, Vec::new()) }
    }
}

impl ToastTally {
    fn add(&self, more: ToastChanges) {
        let mut changes = self.changes.lock();
        match changes.iter_mut().find(|c| c.table == more.table) {
            Some(sum) => {
                sum.inserted += more.inserted;
                sum.deleted += more.deleted;
                sum.lookups += more.lookups;
                sum.found += more.found;
                sum.fetched += more.fetched;
            }
            None => changes.push(more),
        }
        self.any.store(true, Ordering::Release);
    }

    /// What has been done since this was last asked. Costs a load when that is nothing.
    pub fn take(&self) -> Vec<ToastChanges> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut changes = self.changes.lock();
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut *changes)
    }
}

/// The layout of a TOAST table's rows.
pub fn chunk_desc() -> TupleDesc {
    TupleDesc::new(vec![PhysicalAttr::new(4, 4), PhysicalAttr::new(4, 4), PhysicalAttr::new(-1, 4)])
}

impl HeapToast {
    /// The store in `heap`, whose rows `index` finds; pointers to it name `table`.
    pub fn new(heap: Heap, index: Arc<dyn ToastIndex>, table: Oid) -> HeapToast {
        HeapToast { heap, index, others: Vec::new(), table, desc: chunk_desc(), tally: None }
    }

    /// One more index is kept up: one that is being built, or about to go.
    pub fn also_in(&mut self, index: Arc<dyn ToastIndex>) {
        self.others.push(index);
    }

    /// What is done is counted in `tally`; `index` is the OID of the index that is read.
    #[must_use]
    pub fn counted(self, tally: Arc<ToastTally>, index: Oid) -> HeapToast {
        HeapToast { tally: Some((tally, index)), ..self }
    }

    fn count(&self, done: ToastChanges) {
        if let Some((tally, index)) = &self.tally {
            tally.add(ToastChanges { table: self.table, index: *index, ..done });
        }
    }

    /// Appends those of `entries`, which lead to one page, that are chunks of the value, in order from `next` on.
    fn append_chunks(
        &self,
        value: Oid,
        entries: &[(i32, Tid)],
        next: &mut i32,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((_, Tid { block, .. })) = entries.first() else { return Ok(()) };
        let rel = self.heap.relation();
        let pin = rel.try_pin(Fork::Main, *block, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok(()) };
        let page = pin.read();
        let txns = &self.heap.context().txns;
        let mut hints = Hints::default();
        for (seq, tid) in entries {
            if seq != next || !page.item_id(tid.offset).is_normal() {
                continue;
            }
            // Any version will do but one that was never there; chunks are not updated.
            let t = page.tuple(tid.offset);
            let dead = satisfies_dirty(&t, txns, None, &mut hints)? == Dirty::Dead;
            if dead && !t.xmax().is_valid() {
                continue;
            }
            let mut values = [AttrValue::Null; 3];
            deform(t.bytes, &self.desc, &mut values)
                .map_err(|e| base::err!(DATA_CORRUPTED, "{e}"))?;
            let [AttrValue::Inline(id), _, AttrValue::Inline(chunk)] = values else {
                return Err(missing(value, self.table));
            };
            if id != value.0.to_le_bytes() {
                continue;
            }
            out.extend_from_slice(chunk);
            *next += 1;
        }
        Ok(())
    }

    /// All chunks of a value that goes: they are read to be deleted.
    fn chunks_to_delete(&self, value: Oid) -> Result<Vec<(i32, Tid)>> {
        let chunks = self.index.lookup(value, 0, i32::MAX)?;
        let n = chunks.len() as u64;
        self.count(ToastChanges {
            deleted: n,
            lookups: 1,
            found: n,
            fetched: n,
            ..ToastChanges::default()
        });
        Ok(chunks)
    }
}

fn missing(value: Oid, table: Oid) -> Error {
    base::err!(DATA_CORRUPTED, "missing chunk for toast value {value} in pg_toast_{table}")
}

impl ToastStore for HeapToast {
    fn table(&self) -> Oid {
        self.table
    }

    fn store(&self, txn: &Transaction, data: &[u8], stamp: Stamp) -> Result<Oid> {
        let value = self.index.new_value_id()?;
        let rows: Vec<Vec<u8>> = data
            .chunks(CHUNK)
            .enumerate()
            .map(|(seq, chunk)| {
                let seq = (seq as i32).to_le_bytes();
                form_tuple(&self.desc, &[Some(&value.0.to_le_bytes()), Some(&seq), Some(chunk)])
            })
            .collect();
        let mut tids = Vec::with_capacity(rows.len());
        let mut state = InsertState::new();
        (state.frozen, state.xmin) = (stamp.frozen, stamp.xmin);
        self.heap.multi_insert(txn, &rows, &mut state, &mut tids)?;
        let inserted = tids.len() as u64;
        self.count(ToastChanges { inserted, lookups: 1, ..ToastChanges::default() });
        for (seq, tid) in tids.into_iter().enumerate() {
            self.index.insert(txn, value, seq as i32, tid)?;
            for other in &self.others {
                other.insert(txn, value, seq as i32, tid)?;
            }
        }
        Ok(value)
    }

    fn fetch(&self, value: Oid, start: usize, len: usize) -> Result<Vec<u8>> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let first = start / CHUNK;
        let last = (start + len - 1) / CHUNK;
        let mut out = Vec::with_capacity((last - first + 1) * CHUNK);
        let entries = self.index.lookup(value, first as i32, last as i32)?;
        let mut next = first as i32;
        // Chunks that were stored one after the other are on one page.
        for on_page in entries.chunk_by(|(_, a), (_, b)| a.block == b.block) {
            self.append_chunks(value, on_page, &mut next, &mut out)?;
        }
        let fetched = (next - first as i32).unsigned_abs().into();
        let found = entries.len() as u64;
        self.count(ToastChanges { lookups: 1, found, fetched, ..ToastChanges::default() });
        let skip = start - first * CHUNK;
        if out.len() < skip + len {
            return Err(missing(value, self.table));
        }
        out.truncate(skip + len);
        out.drain(..skip);
        Ok(out)
    }

    fn delete(&self, txn: &Transaction, value: Oid) -> Result<()> {
        for (_, tid) in self.chunks_to_delete(value)? {
            match self.heap.delete(txn, tid, Wait::Block)? {
                TupleOutcome::Invisible => {
                    // Stored by this very command: take it back.
                    let mut slot = TupleSlot::new();
                    if self.heap.fetch_any(tid, &mut slot)? && txn.is_mine(slot.view().raw_xmin()) {
                        self.heap.kill_own(txn, tid)?;
                    }
                }
                _ => continue,
            }
        }
        Ok(())
    }

    fn end(&self, value: Oid, xmax: Xid) -> Result<()> {
        self.chunks_to_delete(value)?
            .into_iter()
            .try_for_each(|(_, tid)| self.heap.end_version(tid, xmax))
    }
}

/// The value's bytes, wherever they are.
///
/// # Errors
/// XX001 if chunks are missing or the compressed data is damaged.
pub fn detoast<'v>(value: &AttrValue<'v>, store: Option<&dyn ToastStore>) -> Result<Cow<'v, [u8]>> {
    Ok(match value {
        AttrValue::Null => Cow::Borrowed(&[]),
        AttrValue::Inline(bytes) => Cow::Borrowed(bytes),
        AttrValue::Compressed { raw_size, data } => Cow::Owned(decompress(data, *raw_size)?),
        AttrValue::External(p) => {
            let stored = fetch_stored(p, store)?;
            Cow::Owned(if p.compressed { decompress(&stored, p.raw_size)? } else { stored })
        }
    })
}

/// `len` bytes of the value from `start` on (fewer at its end). Of a value out of line only the chunks needed are read: those of the bytes,
/// or, if it is compressed, the first ones.
///
/// # Errors
/// As [`detoast`].
pub fn detoast_slice<'v>(
    value: &AttrValue<'v>,
    store: Option<&dyn ToastStore>,
    start: usize,
    len: usize,
) -> Result<Cow<'v, [u8]>> {
    let end = start.saturating_add(len);
    let cut = |n: usize| start.min(n)..end.min(n);
    let owned = |mut bytes: Vec<u8>| {
        bytes.truncate(end);
        bytes.drain(..start.min(bytes.len()));
        Cow::Owned(bytes)
    };
    Ok(match value {
        AttrValue::Null => Cow::Borrowed(&[]),
        AttrValue::Inline(bytes) => Cow::Borrowed(&bytes[cut(bytes.len())]),
        AttrValue::Compressed { raw_size, data } => {
            let end = end.min(*raw_size as usize);
            match decompress_prefix(data, false, end) {
                Prefix::Done(bytes) if bytes.len() == end => owned(bytes),
                _ => return Err(damaged()),
            }
        }
        AttrValue::External(p) => {
            let Some(store) = store else { return Err(missing(p.value_id, p.toast_table)) };
            let at = cut(p.raw_size as usize);
            if p.compressed {
                owned(fetch_prefix(p, store, at.end)?)
            } else {
                Cow::Owned(store.fetch(p.value_id, at.start, at.len())?)
            }
        }
    })
}

/// The first `len` bytes (no more than it has) of a compressed value, by as few chunks as will do.
fn fetch_prefix(p: &ToastPointer, store: &dyn ToastStore, len: usize) -> Result<Vec<u8>> {
    let size = p.stored_size as usize;
    if len == 0 {
        return Ok(Vec::new());
    }
    // No more than a few bytes longer than what they say, but for the lengths of long runs.
    let mut wanted = len + len / 255 + 64;
    let mut block = Vec::new();
    loop {
        wanted = wanted.next_multiple_of(CHUNK).min(size);
        block.extend(store.fetch(p.value_id, block.len(), wanted - block.len())?);
        match decompress_prefix(&block, wanted < size, len) {
            Prefix::Done(bytes) if bytes.len() == len => return Ok(bytes),
            Prefix::NeedsMore => wanted = wanted.saturating_mul(4),
            Prefix::Done(_) | Prefix::Damaged => return Err(damaged()),
        }
    }
}

/// The bytes of a value out of line as they are stored, compressed or not.
///
/// # Errors
/// As [`detoast`].
pub fn fetch_stored(p: &ToastPointer, store: Option<&dyn ToastStore>) -> Result<Vec<u8>> {
    let Some(store) = store else { return Err(missing(p.value_id, p.toast_table)) };
    store.fetch(p.value_id, 0, p.stored_size as usize)
}

fn damaged() -> Error {
    base::err!(DATA_CORRUPTED, "compressed lz4 data is corrupt")
}

fn decompress(data: &[u8], raw_size: u32) -> Result<Vec<u8>> {
    if raw_size as usize > page::tuple::MAX_VALUE_SIZE {
        return Err(damaged());
    }
    match lz4_flex::block::decompress(data, raw_size as usize) {
        Ok(bytes) if bytes.len() == raw_size as usize => Ok(bytes),
        _ => Err(damaged()),
    }
}

/// One value on its way into a tuple.
enum Piece<'v> {
    As(AttrValue<'v>),
    Owned(Vec<u8>),
    Compressed(u32, Vec<u8>),
}

impl Piece<'_> {
    fn value(&self) -> AttrValue<'_> {
        match self {
            Piece::As(v) => *v,
            Piece::Owned(b) => AttrValue::Inline(b),
            Piece::Compressed(raw_size, data) => {
                AttrValue::Compressed { raw_size: *raw_size, data }
            }
        }
    }
    /// Bytes it takes in the tuple; 0 if it is not there or out of line already.
    fn size(&self) -> usize {
        match self.value() {
            AttrValue::Inline(b) => b.len() + VARLENA_HEADER,
            AttrValue::Compressed { data, .. } => data.len() + COMPRESSED_HEADER,
            _ => 0,
        }
    }
}

impl Heap {
    /// True if the tuple must go through the TOAST code before it is inserted.
    #[inline]
    pub(crate) fn needs_toast(&self, tuple: &[u8]) -> bool {
        self.options.toast.is_some() && (tuple.len() > TARGET || self.has_toasted(tuple))
    }

    /// True if the tuple has values out of line.
    #[inline]
    pub(crate) fn has_toasted(&self, tuple: &[u8]) -> bool {
        self.options.toast.is_some()
            && TupleView { bytes: tuple, xid_base: base::Xid(0) }.infomask() & HAS_EXTERNAL != 0
    }

    /// The value's bytes, wherever they are.
    ///
    /// # Errors
    /// XX001 if chunks are missing or the compressed data is damaged.
    pub fn detoast<'v>(&self, value: &AttrValue<'v>) -> Result<Cow<'v, [u8]>> {
        detoast(value, self.options.toast.as_deref())
    }

    /// Is `new` fit to stand in the place of `old` as it is, with the values out of line that are there?
    pub(crate) fn keeps_values(&self, old: &[u8], new: &[u8]) -> Result<bool> {
        let (Some(store), Some(storage)) = (&self.options.toast, &self.options.storage) else {
            return Ok(true);
        };
        if new.len() > TARGET {
            return Ok(false);
        }
        let n = storage.0.len();
        let mut values = vec![AttrValue::Null; 2 * n];
        let (was, is) = values.split_at_mut(n);
        deform(old, &storage.0, was).map_err(|e| base::err!(DATA_CORRUPTED, "{e}"))?;
        deform(new, &storage.0, is).map_err(|e| base::err!(DATA_CORRUPTED, "{e}"))?;
        let outside = |v: &AttrValue<'_>| matches!(v, AttrValue::External(_));
        let table = store.table();
        Ok(was.iter().zip(is).all(|(a, b)| match (a, &*b) {
            (AttrValue::External(a), AttrValue::External(b)) => a == b && a.toast_table == table,
            (a, b) => !outside(a) && !outside(b),
        }))
    }

    /// The tuple to insert instead of `tuple`.
    pub(crate) fn toast_insert(
        &self,
        txn: &Transaction,
        tuple: &[u8],
        stamp: Stamp,
    ) -> Result<Vec<u8>> {
        self.toast(txn, tuple, &[], stamp)
    }

    /// The tuple to put in place of `old` instead of `new`; values that only `old` has are deleted.
    pub(crate) fn toast_update(
        &self,
        txn: &Transaction,
        old: &[u8],
        new: &[u8],
    ) -> Result<Vec<u8>> {
        let kept = self.pointers(old)?;
        let out = self.toast(txn, new, &kept, Stamp::default())?;
        let still = self.pointers(&out)?;
        if let Some(store) = &self.options.toast {
            for (_, p) in kept.iter().filter(|(_, p)| still.iter().all(|(_, s)| s != p)) {
                store.delete(txn, p.value_id)?;
            }
        }
        Ok(out)
    }

    /// Deletes the values out of line of a deleted tuple.
    pub(crate) fn toast_delete(&self, txn: &Transaction, old: &[u8]) -> Result<()> {
        if let Some(store) = &self.options.toast {
            for (_, p) in self.pointers(old)? {
                store.delete(txn, p.value_id)?;
            }
        }
        Ok(())
    }

    /// Ends the values out of line of a version that was ended.
    pub(crate) fn toast_end(&self, old: &[u8], xmax: Xid) -> Result<()> {
        if let Some(store) = &self.options.toast {
            for (_, p) in self.pointers(old)? {
                store.end(p.value_id, xmax)?;
            }
        }
        Ok(())
    }

    /// The pointers to this heap's TOAST table in `tuple`, with their attributes' numbers.
    fn pointers(&self, tuple: &[u8]) -> Result<Vec<(usize, ToastPointer)>> {
        let (Some(store), Some(storage)) = (&self.options.toast, &self.options.storage) else {
            return Ok(Vec::new());
        };
        if !self.has_toasted(tuple) {
            return Ok(Vec::new());
        }
        let mut values = vec![AttrValue::Null; storage.0.len()];
        deform(tuple, &storage.0, &mut values).map_err(|e| base::err!(DATA_CORRUPTED, "{e}"))?;
        let table = store.table();
        Ok(values
            .iter()
            .enumerate()
            .filter_map(|(i, v)| match v {
                AttrValue::External(p) if p.toast_table == table => Some((i, *p)),
                _ => None,
            })
            .collect())
    }

    /// Makes `tuple` short enough. Values out of line that are not the attribute's in `keep` become this row's own; a value that
    /// equals the kept one of its attribute is replaced by that one's pointer.
    fn toast(
        &self,
        txn: &Transaction,
        tuple: &[u8],
        keep: &[(usize, ToastPointer)],
        stamp: Stamp,
    ) -> Result<Vec<u8>> {
        let (Some(store), Some(storage)) = (&self.options.toast, &self.options.storage) else {
            return Ok(tuple.to_vec());
        };
        let (desc, storages) = &**storage;
        let natts = TupleView { bytes: tuple, xid_base: base::Xid(0) }.natts().min(desc.len());
        let mut values = vec![AttrValue::Null; natts];
        deform(tuple, desc, &mut values).map_err(|e| base::err!(DATA_CORRUPTED, "{e}"))?;
        let mut pieces = Vec::with_capacity(natts);
        for (i, v) in values.iter().enumerate() {
            let kept = keep.iter().find(|(n, _)| *n == i).map(|(_, p)| *p);
            pieces.push(match v {
                AttrValue::External(p) if kept != Some(*p) => {
                    Piece::Owned(detoast(v, Some(&**store))?.into_owned())
                }
                AttrValue::Inline(b)
                    if let Some(p) = kept
                        && b.len() == p.raw_size as usize =>
                {
                    let old = AttrValue::External(p);
                    let same = *detoast(&old, Some(&**store))? == **b;
                    Piece::As(if same { old } else { *v })
                }
                v => Piece::As(*v),
            });
        }
        let form = |pieces: &[Piece<'_>]| {
            let values: Vec<_> = pieces.iter().map(Piece::value).collect();
            form_values(desc, &values)
        };
        let mut out = form(&pieces);
        let mut tried = vec![false; natts];
        // Which columns a step may touch, and whether it compresses (else it moves out), to which length.
        type May = fn(AttrStorage) -> bool;
        let extended: May = |s| s == AttrStorage::Extended;
        let movable: May = |s| matches!(s, AttrStorage::Extended | AttrStorage::External);
        let main: May = |s| s == AttrStorage::Main;
        let steps: [(May, bool, usize); 4] = [
            (extended, true, TARGET),
            (movable, false, TARGET),
            (main, true, TARGET),
            (main, false, page::tuple::MAX_TUPLE_SIZE),
        ];
        for (may, compress, target) in steps {
            while out.len() > target {
                let pick = (0..natts)
                    .filter(|&i| {
                        desc.attrs()[i].len == -1
                            && may(storages.get(i).copied().unwrap_or_default())
                            && pieces[i].size() > MIN_MOVED
                            && !(compress
                                && (tried[i]
                                    || matches!(pieces[i].value(), AttrValue::Compressed { .. })))
                    })
                    .max_by_key(|&i| pieces[i].size());
                let Some(i) = pick else { break };
                if compress {
                    tried[i] = true;
                    if let AttrValue::Inline(raw) = pieces[i].value() {
                        let packed = lz4_flex::block::compress(raw);
                        if packed.len() + COMPRESSED_HEADER < raw.len() + VARLENA_HEADER {
                            pieces[i] = Piece::Compressed(raw.len() as u32, packed);
                        }
                    }
                } else {
                    let pointer = self.move_out(txn, &**store, &pieces[i], stamp)?;
                    pieces[i] = Piece::As(AttrValue::External(pointer));
                }
                out = form(&pieces);
            }
        }
        Ok(out)
    }

    fn move_out(
        &self,
        txn: &Transaction,
        store: &dyn ToastStore,
        piece: &Piece<'_>,
        stamp: Stamp,
    ) -> Result<ToastPointer> {
        let (raw_size, compressed, data) = match piece.value() {
            AttrValue::Inline(b) => (b.len() as u32, false, b),
            AttrValue::Compressed { raw_size, data } => (raw_size, true, data),
            _ => bail!(INTERNAL_ERROR, "only a value in line can be moved out"),
        };
        Ok(ToastPointer {
            raw_size,
            stored_size: data.len() as u32,
            compressed,
            value_id: store.store(txn, data, stamp)?,
            toast_table: store.table(),
        })
    }
}
