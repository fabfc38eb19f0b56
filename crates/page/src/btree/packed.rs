//! Keys that are too long for a page, compressed.
//!
//! # Purpose
//! An entry takes a third of a page at most. Of a key that is longer its LZ4 block is kept, if that is short enough: addresses, documents and
//! what else repeats itself. Shorter keys stay as they are: they are compared without being unpacked.
//!
//! # Layout
//! In place of bitmap and values: the bytes that follow the length of the key u16, that length u32, the LZ4 block. A pivot may hold more
//! values so than it has attributes: the others are not looked at.
//!
//! # Invariants
//! Only bitmap and values are packed: an entry's first eight bytes and its addresses are where they always are. The nulls bit is that of the key.
//!
//! # Differs from PostgreSQL
//! There each value of more than about 500 bytes is compressed by itself (`TOAST_INDEX_TARGET`), by PostgreSQL's own method as a rule.

use super::tuple::{DAMAGED, HAS_NULLS, PACKED, PIVOT, PIVOT_TID, header};
use super::{Item, MAX_ITEM_SIZE};
use base::{BlockNumber, OffsetNumber, Tid};

/// Before the block: its length and the key's.
const HEAD: usize = 6;
/// What no block of an entry's size unpacks to: LZ4 makes at most 255 bytes of one.
const UNPACKED_MAX: usize = 256 * MAX_ITEM_SIZE;

/// An entry whose values can be looked at.
#[derive(Debug)]
pub enum Plain<'a> {
    /// It always was.
    AsItIs(&'a [u8]),
    /// It was packed.
    Unpacked(Vec<u8>),
}

impl Plain<'_> {
    /// The entry.
    #[inline]
    pub fn item(&self) -> Item<'_> {
        match self {
            Plain::AsItIs(bytes) => Item(bytes),
            Plain::Unpacked(bytes) => Item(bytes),
        }
    }
}

impl<'a> Item<'a> {
    /// The same entry with its key unpacked. A damaged one has no key.
    #[inline]
    pub fn plain(self) -> Plain<'a> {
        if self.is_packed() { self.unpacked() } else { Plain::AsItIs(self.0) }
    }

    #[cold]
    fn unpacked(self) -> Plain<'a> {
        let Some(key) = self.unpacked_key() else { return Plain::AsItIs(&DAMAGED) };
        let tail = &self.0[self.0.len().saturating_sub(self.tail_len())..];
        let mut out = Vec::with_capacity(8 + key.len() + tail.len());
        out.extend_from_slice(&self.0[..6]);
        out.extend((self.info() & !PACKED).to_le_bytes());
        out.extend_from_slice(&key);
        out.extend_from_slice(tail);
        Plain::Unpacked(out)
    }

    fn unpacked_key(self) -> Option<Vec<u8>> {
        let (head, rest) = self.key_bytes().split_first_chunk::<HEAD>()?;
        let [a, b, len @ ..] = *head;
        let block = rest.get(..usize::from(u16::from_le_bytes([a, b])))?;
        let len = u32::from_le_bytes(len) as usize;
        if len > UNPACKED_MAX {
            return None;
        }
        lz4_flex::block::decompress(block, len).ok().filter(|key| key.len() == len)
    }

    /// Can it be unpacked, if it is packed?
    pub fn is_sound(self) -> bool {
        !self.is_packed() || self.unpacked_key().is_some()
    }
}

/// The leaf entry with its key packed, if it becomes short enough for a page.
///
/// # Errors
/// How many bytes it takes at least.
pub fn pack(item: Item<'_>) -> Result<Vec<u8>, usize> {
    let key = item.key_bytes();
    if key.len() > UNPACKED_MAX {
        return Err(item.0.len());
    }
    let block = lz4_flex::block::compress(key);
    let len = 8 + HEAD + block.len();
    // As PostgreSQL counts: in eights.
    if len.next_multiple_of(8) > MAX_ITEM_SIZE {
        return Err(len.min(item.0.len()));
    }
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&item.0[..6]);
    out.extend((item.info() | PACKED).to_le_bytes());
    out.extend((block.len() as u16).to_le_bytes());
    out.extend((key.len() as u32).to_le_bytes());
    out.extend_from_slice(&block);
    Ok(out)
}

/// A pivot of the first `attributes` columns of a packed entry, with a heap address if the columns alone don't separate: its key is kept as it is, so
/// that the pivot is no longer than the entry.
pub fn packed_pivot(
    model: Item<'_>,
    attributes: usize,
    tid: Option<Tid>,
    child: BlockNumber,
) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend_from_slice(model.key_bytes());
    let mut info = PIVOT | model.info() & (HAS_NULLS | PACKED) | attributes as u16;
    if let Some(tid) = tid {
        out.extend(tid.to_bytes());
        info |= PIVOT_TID;
    }
    header(&mut out, Tid::new(child, OffsetNumber(0)), info);
    out
}
