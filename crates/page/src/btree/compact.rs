//! Taking entries off a leaf, and addresses out of its posting lists.
//!
//! # Invariants
//! What is left keeps its bytes and its order in the line pointers; the entries close ranks towards the special area. Nothing is allocated.
//! Where a few go the others move up over them; where more do, what stays is copied once, in the order of the line pointers.

use super::{
    Bytes, HEADER, Item, LP_NORMAL, PageMut, PageRef, SIZE, SPECIAL, tuple, u16_at, u32_at,
};

/// A leaf has fewer addresses: each takes six bytes at least.
pub const ADDRESSES: usize = WORDS * 64;
const WORDS: usize = 22;
const _: () = assert!(ADDRESSES * 6 > SIZE);

/// Which of a leaf's addresses go: a bit for each, in the order of [`PageRef::addresses`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gone(pub [u64; WORDS]);

impl Gone {
    /// As the bytes say from the bit `8 * skip` on, lowest bits first; `None` if they are too many.
    pub fn from_bytes(skip: u8, bytes: &[u8]) -> Option<Gone> {
        let mut all = [[0; 8]; WORDS];
        let from = usize::from(skip);
        all.as_flattened_mut().get_mut(from..from + bytes.len())?.copy_from_slice(bytes);
        Some(Gone(all.map(u64::from_le_bytes)))
    }
    /// Appends the inverse of [`Gone::from_bytes`] to `out`, without the zeros at both ends; returns how many were left out in front.
    pub fn to_bytes(&self, out: &mut Vec<u8>) -> u8 {
        let all = self.0.map(u64::to_le_bytes);
        let all = all.as_flattened();
        let begin = all.iter().position(|b| *b != 0).unwrap_or(0);
        // One byte at least: no byte says all of a leaf.
        let end = all.iter().rposition(|b| *b != 0).unwrap_or(begin) + 1;
        out.extend_from_slice(&all[begin..end]);
        begin as u8
    }
    /// So many.
    pub fn count(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// The numbers of those that go, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        (0u16..).step_by(64).zip(&self.0).flat_map(|(begin, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let n = left.trailing_zeros() as u16;
                (left != 0).then(|| {
                    left &= left - 1;
                    begin + n
                })
            })
        })
    }
    /// So many of those from a number on; `None` if a leaf has not so many.
    fn count_within(&self, number: usize, count: usize) -> Option<usize> {
        (number..number + count).try_fold(0, |n, i| Some(n + usize::from(self.has(i)?)))
    }
    /// Any from this number on?
    fn beyond(&self, number: usize) -> bool {
        let (word, bit) = (number / 64, number % 64);
        self.0.get(word).is_some_and(|w| w >> bit != 0)
            || self.0.iter().skip(word + 1).any(|w| *w != 0)
    }
    /// Does this one go? `None` if a leaf has no such number.
    #[inline]
    fn has(&self, number: usize) -> Option<bool> {
        Some(self.0.get(number / 64)? >> (number % 64) & 1 != 0)
    }
    /// Adds so many from a number on; `None` if a leaf has no such number.
    pub fn add(&mut self, numbers: std::ops::Range<usize>) -> Option<()> {
        for n in numbers {
            *self.0.get_mut(n / 64)? |= 1 << (n % 64);
        }
        Some(())
    }
}

/// So many entries go without the others being copied.
pub const FEW: usize = 8;

/// The longest of small entries: the head and eight bytes of key. No posting list is as short.
const SMALL: usize = 16;

impl PageMut<'_> {
    fn pointer_at(&self, offset: u16) -> Option<(usize, usize, usize)> {
        let at = HEADER + usize::from(offset).checked_sub(1)? * 4;
        if offset > self.as_ref().count() {
            return None;
        }
        let lp = u32_at(self.0, at);
        let (start, len) = ((lp & 0x7FFF) as usize, (lp >> 17) as usize);
        let upper = usize::from(u16_at(self.0, 28));
        (len >= 8 && start >= upper && start + len <= SPECIAL).then_some((at, start, len))
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

    /// Takes these addresses away, and the entries of which none is left; a posting list that loses some becomes Normal. False, with the page half
    /// done, if there are fewer addresses, or entries overlap.
    #[must_use]
    pub fn remove_addresses(&mut self, gone: &Gone) -> bool {
        if gone.count() <= FEW
            && let Some((few, n)) = self.as_ref().plain_entries(gone)
        {
            return self.remove_few(&few[..n]);
        }
        self.copy_alike(gone).or_else(|| self.copy_others(gone)).unwrap_or(false)
    }

    /// [`PageMut::copy_others`] of a leaf on which all entries are small and of one length, as those of an integer's index are: they are known
    /// by their line pointers, and what goes is not looked at. `None`, and nothing is done: it is not such a leaf.
    fn copy_alike(&mut self, gone: &Gone) -> Option<bool> {
        let first = usize::from(self.as_ref().first_data());
        let end = HEADER + usize::from(self.as_ref().count()) * 4;
        let upper = usize::from(u16_at(self.0, 28));
        let pointers = self.0.get(HEADER + (first - 1) * 4..end)?.as_chunks::<4>().0;
        let len = (u32::from_le_bytes(*pointers.first()?) >> 17) as usize;
        if !(8..=SMALL).contains(&len) {
            return None;
        }
        let is_one = |lp: u32| {
            let start = (lp & 0x7FFF) as usize;
            (lp >> 17 == len as u32) & (start >= upper) & (start + len <= SPECIAL)
        };
        let alike = pointers.iter().fold(true, |all, lp| all & is_one(u32::from_le_bytes(*lp)));
        let count = pointers.len();
        let (mut to, mut left) = (SPECIAL, HEADER);
        let mut moved: Bytes = [0; SIZE];
        if first > 1 {
            let (_, start, key_len) = self.pointer_at(1)?;
            to -= key_len;
            moved[to..SPECIAL].copy_from_slice(&self.0[start..start + key_len]);
            left += 4;
        }
        // Entries that do not overlap take no more room than they took.
        let room = upper + count.saturating_sub(gone.count()) * len <= to;
        if !alike || !room || gone.beyond(count) {
            return None;
        }
        if first > 1 {
            let lp = u32_at(self.0, HEADER);
            self.put_u32(HEADER, lp & !0x7FFF | to as u32);
        }
        let mut seen = 0;
        for (number, gone) in (0..count).step_by(64).zip(&gone.0) {
            let at = HEADER + (first - 1 + number) * 4;
            let mut stay = !gone & !0 >> (64 - (count - number).min(64));
            while stay != 0 {
                let lp = u32_at(self.0, at + stay.trailing_zeros() as usize * 4);
                let end = (lp & 0x7FFF) as usize + len;
                // As long for all; what is before the entry is written over by the next one, or is not part of what is copied back.
                let entry: [u8; SMALL] = *self.0[end - SMALL..].first_chunk()?;
                seen |= entry[SMALL - len + 7];
                moved[to - SMALL..to].copy_from_slice(&entry);
                to -= len;
                self.put_u32(left, to as u32 | lp & !0x7FFF);
                left += 4;
                stay &= stay - 1;
            }
        }
        self.0[to..SPECIAL].copy_from_slice(&moved[to..SPECIAL]);
        self.put_u16(26, left as u16);
        self.put_u16(28, to as u16);
        Some(seen & (tuple::POSTING >> 8) as u8 == 0)
    }

    /// Copies what stays to where it belongs; `None` or false if the page is damaged, or has not so many addresses.
    fn copy_others(&mut self, gone: &Gone) -> Option<bool> {
        let (first, count) =
            (usize::from(self.as_ref().first_data()), usize::from(self.as_ref().count()));
        let upper = usize::from(u16_at(self.0, 28));
        let mut moved: Bytes = [0; SIZE];
        // Entries that do not overlap take no more room than they took.
        let (mut to, mut left, mut number) = (SPECIAL, HEADER, 0);
        for at in (HEADER..).step_by(4).take(count) {
            let lp = u32_at(self.0, at);
            let (start, len) = ((lp & 0x7FFF) as usize, (lp >> 17) as usize);
            let end = start + len;
            if start < upper || len < 8 || end > SPECIAL {
                return None;
            }
            let is_data = at >= HEADER + (first - 1) * 4;
            let posting = self.0[start + 7] & (tuple::POSTING >> 8) as u8 != 0;
            let mut flags = lp & 0x1_8000;
            let mut new_len = len;
            let next = to.checked_sub(len).filter(|next| *next >= upper)?;
            let mut stays = true;
            if is_data && posting {
                let entry = &self.0[start..end];
                let addresses = Item(entry).tid_count();
                let lost = gone.count_within(number, addresses)?;
                stays = lost == 0 || lost < addresses;
                if stays && lost > 0 {
                    let kept = &mut moved[next..to];
                    new_len = tuple::thin_out(entry, kept, |i| gone.has(number + i))?;
                    flags = LP_NORMAL << 15;
                } else {
                    moved[next..to].copy_from_slice(entry);
                }
                number += addresses;
            } else {
                if is_data {
                    stays = !gone.has(number)?;
                    number += 1;
                }
                // What goes is written over by what follows; a copy is cheaper than a guess that fails.
                if len <= 16 {
                    let entry: [u8; 16] = *self.0[end - 16..].first_chunk()?;
                    moved[to - 16..to].copy_from_slice(&entry);
                } else if stays {
                    moved[next..to].copy_from_slice(&self.0[start..end]);
                }
            }
            let begin = to - new_len;
            self.put_u32(left, begin as u32 | flags | (new_len as u32) << 17);
            to = if stays { begin } else { to };
            left += if stays { 4 } else { 0 };
        }
        if gone.beyond(number) {
            return Some(false);
        }
        self.0[to..SPECIAL].copy_from_slice(&moved[to..SPECIAL]);
        self.put_u16(26, left as u16);
        self.put_u16(28, to as u16);
        Some(true)
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

impl PageRef<'_> {
    /// The line pointers of these addresses, [`FEW`] at most, if none is in a posting list or behind one. The first so many count.
    fn plain_entries(self, gone: &Gone) -> Option<([u16; FEW], usize)> {
        let (mut few, mut n) = ([0; FEW], 0);
        let (first, count) = (self.first_data(), self.count());
        for (offset, number) in few.iter_mut().zip(gone.numbers()) {
            *offset = first + number;
            n += 1;
        }
        let last = few[..n].last().copied().unwrap_or(0);
        if last > count {
            return None;
        }
        let pointers = &self.0[HEADER..HEADER + usize::from(last) * 4];
        let pointers = pointers.get(usize::from(first - 1) * 4..)?.as_chunks::<4>().0;
        let seen = pointers.iter().fold(0, |seen, lp| seen | self.first_word(*lp));
        (seen & super::POSTING_WORD == 0).then_some((few, n))
    }
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
