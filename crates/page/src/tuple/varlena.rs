//! Values of variable length.
//!
//! # Layout
//! The first byte says which form it is:
//! - `len << 1 | 1`, 1 ≤ len ≤ 127: short; `len` counts the byte itself. Not aligned.
//! - `0x01`: external; the next byte is the kind (18: on disk), then a 16-byte [`ToastPointer`]. Not aligned.
//! - low bits `00`: a u32 `len << 2`; `len` counts the four bytes. Aligned as the attribute says.
//! - low bits `10`: a u32 `len << 2 | 2`, a u32 with the raw length, an LZ4 block. Aligned.
//!
//! Padding is zeros, so a non-zero byte at an unaligned place starts a value there.

use base::Oid;

/// Bytes of the long header.
pub const VARLENA_HEADER: usize = 4;
/// Bytes before the LZ4 block of a compressed value.
pub const COMPRESSED_HEADER: usize = 8;
/// The longest payload that gets a short header.
pub const MAX_SHORT: usize = 126;
/// The longest payload of a value (1 GB less the header).
pub const MAX_VALUE_SIZE: usize = (1 << 30) - 1 - VARLENA_HEADER;
pub(crate) const EXTERNAL: u8 = 0x01;
pub(crate) const EXTERNAL_ON_DISK: u8 = 18;
/// Bytes that a value out of line takes in its tuple.
pub const EXTERNAL_SIZE: usize = 2 + TOAST_POINTER_SIZE;
pub(crate) const TOAST_POINTER_SIZE: usize = 16;

/// Where a value is that is stored out of line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ToastPointer {
    /// Length of the value itself.
    pub raw_size: u32,
    /// Length as stored (compressed or not).
    pub stored_size: u32,
    /// True if stored as an LZ4 block.
    pub compressed: bool,
    /// The chunks' `chunk_id`.
    pub value_id: Oid,
    /// `pg_class.oid` of the TOAST table.
    pub toast_table: Oid,
}

impl ToastPointer {
    /// Sixteen bytes, little-endian; the top bit of the stored size says compressed.
    pub fn to_bytes(self) -> [u8; TOAST_POINTER_SIZE] {
        let mut b = [0; TOAST_POINTER_SIZE];
        let stored = self.stored_size | u32::from(self.compressed) << 31;
        b[..4].copy_from_slice(&self.raw_size.to_le_bytes());
        b[4..8].copy_from_slice(&stored.to_le_bytes());
        b[8..12].copy_from_slice(&self.value_id.0.to_le_bytes());
        b[12..].copy_from_slice(&self.toast_table.0.to_le_bytes());
        b
    }
    /// The inverse of [`ToastPointer::to_bytes`].
    pub fn from_bytes(b: [u8; TOAST_POINTER_SIZE]) -> ToastPointer {
        let word = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        ToastPointer {
            raw_size: word(0),
            stored_size: word(4) & 0x7FFF_FFFF,
            compressed: word(4) >> 31 != 0,
            value_id: Oid(word(8)),
            toast_table: Oid(word(12)),
        }
    }
}

/// Bytes that a plain payload of `len` bytes takes with its header, without padding.
pub fn plain_varlena_size(len: usize) -> usize {
    if len <= MAX_SHORT { len + 1 } else { len + VARLENA_HEADER }
}

#[cfg(test)]
impl ToastPointer {
    /// Some pointer, for tests.
    pub(super) fn sample() -> ToastPointer {
        ToastPointer {
            raw_size: 9000,
            stored_size: 5000,
            compressed: true,
            value_id: Oid(77),
            toast_table: Oid(16400),
        }
    }
}
