//! # Purpose
//! A [`StubDesc`] as bytes: a log record that has it lets replay, which knows no column types, decide again what a dead line pointer keeps.
//!
//! # Layout
//! ```text
//! 0 count u16
//! 2 attributes * (u8: bits 0–1 log2 of the alignment | 2–3 wanted: 0 no, 1 read, 2 key | 4–7 the length's number in LENGTHS,
//!                 15: [length i16] follows)
//! ```

use super::MAX_ATTRIBUTES;
use super::form::{PhysicalAttr, TupleDesc};
use super::key_stub::{StubDesc, Wanted};

/// Lengths that a byte has room for: varlena, C string, and those of most types.
const LENGTHS: [i16; 12] = [-1, -2, 1, 2, 4, 6, 8, 12, 16, 24, 32, 64];
/// The length stands behind.
const OTHER: u8 = 15;

impl StubDesc {
    /// Appends the inverse of [`StubDesc::from_bytes`] to `out`.
    pub fn to_bytes(&self, out: &mut Vec<u8>) {
        let attrs = self.desc().attrs();
        out.extend_from_slice(&(attrs.len() as u16).to_le_bytes());
        for (i, attr) in attrs.iter().enumerate() {
            let align = attr.align.max(1).trailing_zeros() as u8;
            let length = LENGTHS.iter().position(|l| *l == attr.len).map_or(OTHER, |n| n as u8);
            out.push(align | (self.wanted(i) as u8) << 2 | length << 4);
            if length == OTHER {
                out.extend_from_slice(&attr.len.to_le_bytes());
            }
        }
    }

    /// Takes the description off the front of `bytes`; `None` if there is none.
    pub fn from_bytes(bytes: &mut &[u8]) -> Option<StubDesc> {
        let mut rest = *bytes;
        let count = usize::from(u16::from_le_bytes(take(&mut rest)?));
        if count > MAX_ATTRIBUTES {
            return None;
        }
        let (mut attrs, mut wanted) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let [head] = take(&mut rest)?;
            let len = match head >> 4 {
                OTHER => i16::from_le_bytes(take(&mut rest)?),
                number => *LENGTHS.get(usize::from(number))?,
            };
            if len < -2 {
                return None;
            }
            attrs.push(PhysicalAttr::new(len, 1 << (head & 3)));
            wanted.push(match head >> 2 & 3 {
                0 => Wanted::No,
                1 => Wanted::Read,
                2 => Wanted::Key,
                _ => return None,
            });
        }
        *bytes = rest;
        Some(StubDesc::new(TupleDesc::new(attrs), |i| wanted[i]))
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_comes_back_from_its_bytes() {
        let all = [(4, 4), (-1, 4), (1, 1), (8, 8), (2, 2), (-2, 1), (48, 8), (64, 1), (16, 8)];
        let wants = [Wanted::No, Wanted::Read, Wanted::Key];
        for n in 0..=all.len() {
            for turn in 0..3 {
                let attrs = all[..n].iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect();
                let desc = StubDesc::new(TupleDesc::new(attrs), |i| wants[(i * i + turn) % 3]);
                let mut bytes = Vec::new();
                desc.to_bytes(&mut bytes);
                // One byte each, but for the length that has no number.
                assert_eq!(bytes.len(), 2 + n + if n > 6 { 2 } else { 0 });
                for cut in 0..bytes.len() {
                    assert_eq!(StubDesc::from_bytes(&mut &bytes[..cut]), None);
                }
                bytes.extend_from_slice(b"more");
                let mut rest = &bytes[..];
                assert_eq!(StubDesc::from_bytes(&mut rest), Some(desc));
                assert_eq!(rest, b"more");
            }
        }
    }

    #[test]
    fn what_describes_nothing_is_refused() {
        // Wanted in a way that there is none of; a length, and a length's number, that there are none of; too many.
        let bad = [&[1, 0, 12][..], &[1, 0, 0xF0, 0xFD, 0xFF], &[1, 0, 0xE0, 1, 0], &[0xFF; 4]];
        for bad in bad {
            assert_eq!(StubDesc::from_bytes(&mut &bad[..]), None);
        }
        // Any bytes are safe.
        let mut state = 7u32;
        for len in 0..200 {
            let mut random = || {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                (state >> 24) as u8
            };
            let mut bytes: Vec<u8> = (0..len).map(|_| random()).collect();
            if let Some(count) = bytes.get_mut(1) {
                *count = 0;
            }
            let _ = StubDesc::from_bytes(&mut &bytes[..]);
        }
    }
}
