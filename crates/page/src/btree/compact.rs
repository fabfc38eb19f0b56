//! Taking entries off a leaf, and addresses out of its posting lists, in one pass over the page.
//!
//! # Invariants
//! What is left keeps its bytes and its order in the line pointers; the entries close ranks towards the special area, in the order in
//! which they lie. Nothing is allocated, and what lies between two holes moves at once.

use super::{Bytes, HEADER, PageMut, SPECIAL, line_pointer, tuple, u16_at, u32_at};

/// Entries take at least eight bytes, so that of each eight bytes of the page at most one is the first of an entry.
const GRANULE: usize = 8;
const GRANULES: usize = super::SIZE / GRANULE;

/// Bytes that become free, by the granule where they begin.
pub struct Holes {
    begins: [u64; GRANULES / 64],
    /// length << 3 | the beginning's place within its granule.
    lengths: [u16; GRANULES],
}

impl Default for Holes {
    fn default() -> Self {
        Holes { begins: [0; GRANULES / 64], lengths: [0; GRANULES] }
    }
}

impl Holes {
    fn at(&self, granule: usize) -> (usize, usize) {
        let hole = usize::from(self.lengths[granule]);
        (granule * GRANULE + (hole & 7), hole >> 3)
    }

    fn add(&mut self, start: usize, len: usize) -> bool {
        let granule = start / GRANULE;
        let (word, bit) = (granule / 64, 1 << (granule % 64));
        let (mut start, mut len) = (start, len);
        if self.begins[word] & bit != 0 {
            // The last address of a posting list, six bytes, and the entry behind it.
            let other = self.at(granule);
            if start + len != other.0 && other.0 + other.1 != start {
                return false;
            }
            (start, len) = (start.min(other.0), len + other.1);
        }
        if len == 0 || start + len > SPECIAL {
            return false;
        }
        self.begins[word] |= bit;
        self.lengths[granule] = ((len << 3) | (start % GRANULE)) as u16;
        true
    }
}

/// An entry's line pointer while it waits to be taken away.
const GONE: u32 = 0;

/// So many entries go without a table of how far each eighth byte moves.
pub const FEW: usize = 8;

impl PageMut<'_> {
    fn pointer_at(&self, offset: u16) -> Option<(usize, usize, usize)> {
        let at = HEADER + usize::from(offset).checked_sub(1)? * 4;
        if offset > self.as_ref().count() {
            return None;
        }
        let lp = u32_at(self.0, at);
        let (start, len) = ((lp & 0x7FFF) as usize, (lp >> 17) as usize);
        let upper = usize::from(u16_at(self.0, 28));
        (lp != GONE && len >= 8 && start >= upper && start + len <= SPECIAL)
            .then_some((at, start, len))
    }

    /// Takes away up to [`FEW`] entries, whose line pointers ascend. False, and nothing is done, if there is one that is none, or two overlap.
    #[must_use]
    pub fn remove_few(&mut self, offsets: &[u16]) -> bool {
        let mut holes = [(0, 0); FEW];
        let Some(holes) = holes.get_mut(..offsets.len()) else { return false };
        for (hole, offset) in holes.iter_mut().zip(offsets) {
            let Some((_, start, len)) = self.pointer_at(*offset) else { return false };
            *hole = (start, len);
        }
        holes.sort_unstable_by_key(|(start, _)| std::cmp::Reverse(*start));
        let apart = |two: &[(usize, usize)]| two[1].0 + two[1].1 <= two[0].0;
        let upper = usize::from(u16_at(self.0, 28));
        if !holes.windows(2).all(apart) || !offsets.is_sorted_by(|a, b| a < b) || upper > SPECIAL {
            return false;
        }
        let (mut by, mut before) = (0, SPECIAL);
        for &(start, len) in &*holes {
            if by > 0 {
                self.0.copy_within(start + len..before, start + len + by);
            }
            (by, before) = (by + len, start);
        }
        self.0.copy_within(upper..before, upper + by);
        let end = HEADER + usize::from(self.as_ref().count()) * 4;
        aim(&mut self.0[HEADER..end], holes);
        self.take_few_pointers_away(offsets, end);
        self.put_u16(26, (end - offsets.len() * 4) as u16);
        self.put_u16(28, (upper + by) as u16);
        true
    }

    /// Closes the ranks of the line pointers, which end at `end`, over these.
    fn take_few_pointers_away(&mut self, offsets: &[u16], end: usize) {
        let place = |offset: u16| HEADER + (usize::from(offset) - 1) * 4;
        for (n, offset) in offsets.iter().enumerate() {
            let next = offsets.get(n + 1).map_or(end, |next| place(*next));
            let from = place(*offset);
            self.0.copy_within(from + 4..next, from - n * 4);
        }
    }

    /// Gives up an entry; [`PageMut::close_holes`] ends it. False if there is none.
    #[must_use]
    pub fn give_up(&mut self, holes: &mut Holes, offset: u16) -> bool {
        let Some((at, start, len)) = self.pointer_at(offset) else { return false };
        self.put_u32(at, GONE);
        holes.add(start, len)
    }

    /// Takes addresses out of a posting list: those with these indexes in it (two bytes each), which ascend. It becomes Normal;
    /// [`PageMut::close_holes`] ends it. False if there is no such list, or nothing would be left of it.
    #[must_use]
    pub fn thin_out(&mut self, holes: &mut Holes, offset: u16, gone: &[u8]) -> bool {
        let Some((at, start, len)) = self.pointer_at(offset) else { return false };
        let entry = &mut self.0[start..start + len];
        let Some(new_len) = tuple::thin_out(entry, gone) else { return false };
        self.put_u32(at, line_pointer(start, new_len));
        new_len == len || holes.add(start + new_len, len - new_len)
    }

    /// Closes the holes and takes the line pointers given up away. False, with the page half done, if holes overlap.
    #[must_use]
    pub fn close_holes(&mut self, holes: &Holes) -> bool {
        // By granule: how far an entry that begins there moves.
        let mut moves = [0u16; GRANULES];
        let (mut by, mut before, mut above) = (0, SPECIAL, GRANULES);
        for word in (0..holes.begins.len()).rev() {
            let mut bits = holes.begins[word];
            while bits != 0 {
                let granule = word * 64 + 63 - bits.leading_zeros() as usize;
                bits &= !(1 << (granule % 64));
                let (start, len) = holes.at(granule);
                if start + len > before {
                    return false;
                }
                if by > 0 {
                    self.0.copy_within(start + len..before, start + len + by);
                }
                moves[granule..above].fill(by as u16);
                by += len;
                (before, above) = (start, granule);
            }
        }
        let upper = usize::from(u16_at(self.0, 28));
        if upper > before {
            return false;
        }
        self.0.copy_within(upper..before, upper + by);
        moves[..above].fill(by as u16);
        let end = HEADER + usize::from(self.as_ref().count()) * 4;
        let left = take_pointers_away(&mut self.0[HEADER..end], &moves);
        self.put_u16(26, (HEADER + left * 4) as u16);
        self.put_u16(28, (upper + by) as u16);
        true
    }
}

/// Aims line pointers at entries that have moved up over these holes, of which there are [`FEW`] at most.
fn aim(pointers: &mut [u8], holes: &[(usize, usize)]) {
    // Below which place, by how much; 32 bits wide and as many as ever, so that several line pointers are dealt with at once.
    let mut steps = [(0, 0); FEW];
    for (step, (start, len)) in steps.iter_mut().zip(holes) {
        *step = (*start as i32, *len as u32);
    }
    for pointer in pointers.as_chunks_mut::<4>().0 {
        let lp = u32::from_le_bytes(*pointer);
        let at = (lp & 0x7FFF) as i32;
        let moved = steps
            .iter()
            .fold(lp, |lp, (start, len)| lp.wrapping_add(if at < *start { *len } else { 0 }));
        *pointer = moved.to_le_bytes();
    }
}

/// Moves the line pointers that stay together and what they point to; returns how many stay.
fn take_pointers_away(pointers: &mut [u8], moves: &[u16; GRANULES]) -> usize {
    let mut left = 0;
    for i in 0..pointers.len() / 4 {
        let at = i * 4;
        let lp = u32::from_le_bytes([
            pointers[at],
            pointers[at + 1],
            pointers[at + 2],
            pointers[at + 3],
        ]);
        let moved = lp.wrapping_add(u32::from(moves[(lp as usize & 0x7FFF) / GRANULE % GRANULES]));
        // Overwritten by the next, if this one goes.
        pointers[left * 4..left * 4 + 4].copy_from_slice(&moved.to_le_bytes());
        left += usize::from(lp != GONE);
    }
    left
}

/// Moves what lies below `start` up by `len`, over the bytes there, and aims the line pointers at it.
pub(super) fn close_gap(bytes: &mut Bytes, start: usize, len: usize) {
    let upper = usize::from(u16_at(bytes, 28));
    // Of a damaged line pointer only the pointer goes.
    if start < upper || start + len > SPECIAL {
        return;
    }
    bytes.copy_within(upper..start, upper + len);
    let end = HEADER + usize::from(super::PageRef(bytes).count()) * 4;
    let (begin, by) = (start as u32, len as u32);
    for pointer in bytes[HEADER..end].as_chunks_mut::<4>().0 {
        let lp = u32::from_le_bytes(*pointer);
        let by = if lp & 0x7FFF < begin { by } else { 0 };
        *pointer = lp.wrapping_add(by).to_le_bytes();
    }
    bytes[28..30].copy_from_slice(&((upper + len) as u16).to_le_bytes());
}
