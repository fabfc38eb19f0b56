//! # Purpose
//! What most line pointers keep whose keys are kept apart ([`super`]), formed in one walk over the tuple: VACUUM forms it of every dead row.
//!
//! # Invariants
//! It is byte for byte what [`StubDesc::keep_by_parts`] forms, or it is not formed here. That one says what is kept; this one only is quicker, and leaves to
//! it all that is rare: rows of before an ADD COLUMN, values that are asked for but not in line, damage.

use super::{
    HAS_NULLS, MAX_STUB_DATA, NEWEST, PLAIN_DATA, SOME_KEPT, StubDesc, StubSize, TRUE_NULLS, Wanted,
};
use crate::tuple::form::{AttrValue, align, form_varlena, pad, varlena};
use crate::tuple::header::{HAS_NULL, TupleView};

/// The head and the bitmap of a line pointer that keeps all that is asked for of all attributes: `[head u16][kept bitmap]`. Empty: there is nothing that
/// nobody asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Apart(Box<[u8]>);

impl Apart {
    pub(super) fn new(wanted: &[Wanted]) -> Apart {
        if !wanted.contains(&Wanted::No) {
            return Apart::default();
        }
        let head = wanted.len() as u16 | HAS_NULLS | TRUE_NULLS | SOME_KEPT | NEWEST;
        let mut bytes = head.to_le_bytes().to_vec();
        bytes.extend(wanted.chunks(8).map(|some| {
            some.iter().rev().fold(0u8, |bits, w| bits << 1 | u8::from(*w != Wanted::No))
        }));
        Apart(bytes.into())
    }
}

impl StubDesc {
    /// Adds what is kept apart of `tuple` to `out`; `None`, and nothing is added: that is left to [`StubDesc::keep_by_parts`].
    pub(super) fn form_at_once(
        &self,
        tuple: &TupleView<'_>,
        attributes: usize,
        out: &mut Vec<u8>,
    ) -> Option<StubSize> {
        let natts = self.desc.len();
        if self.apart.0.is_empty() || tuple.natts().min(attributes) < natts {
            return None;
        }
        let nulls = tuple.null_bitmap();
        if nulls.is_none() && tuple.infomask() & HAS_NULL != 0 {
            return None;
        }
        let begin = out.len();
        let formed = self.form_parts(tuple, nulls, out);
        let formed = formed.filter(|len| *len <= tuple.bytes.len());
        if formed.is_none() {
            out.truncate(begin);
        }
        formed.map(|len| StubSize { natts: natts as u16, len: len as u16 })
    }

    /// Adds it whatever becomes of it; how many bytes.
    fn form_parts(
        &self,
        tuple: &TupleView<'_>,
        nulls: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let data = tuple.bytes.get(tuple.hoff()..)?;
        let (head, kept) = self.apart.0.split_first_chunk::<2>()?;
        let begin = out.len();
        let older = if tuple.is_newest() { 0 } else { NEWEST };
        out.extend_from_slice(&(u16::from_le_bytes(*head) & !older).to_le_bytes());
        match nulls {
            None => out.extend_from_slice(kept),
            Some(nulls) => out.extend(kept.iter().zip(nulls).map(|(kept, there)| kept & there)),
        }
        out.extend_from_slice(kept);
        let start = out.len();
        let (mut at, mut all_in_line) = (0, true);
        for (i, attr) in self.desc.attrs().iter().enumerate() {
            if nulls.is_some_and(|there| there[i / 8] >> (i % 8) & 1 == 0) {
                continue;
            }
            let is_kept = kept[i / 8] >> (i % 8) & 1 == 1;
            if let Ok(len) = usize::try_from(attr.len) {
                let from = align(at, attr.align);
                at = from + len;
                let bytes = data.get(from..at)?;
                if is_kept {
                    pad(start, attr.align, out);
                    out.extend_from_slice(bytes);
                }
                continue;
            }
            if attr.len != -1 {
                return None;
            }
            let value;
            (value, at) = varlena(data, at, attr.align).ok()?;
            all_in_line &= !matches!(value, AttrValue::External(_));
            match value {
                AttrValue::Inline(bytes) if is_kept => {
                    form_varlena(bytes, attr.align, start, out);
                }
                _ if is_kept => return None,
                _ => {}
            }
        }
        // What all in its place would take.
        let whole = (all_in_line && at <= MAX_STUB_DATA).then_some(at);
        let len = out.len() - begin;
        let shorter = whole.is_none_or(|whole| whole > usize::from(PLAIN_DATA) && len < whole);
        (shorter && out.len() - start <= MAX_STUB_DATA).then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::ToastPointer;
    use crate::tuple::form::{PhysicalAttr, TupleDesc, form_values};
    use crate::tuple::header::{CHAIN_SHORTENED, HOT_UPDATED};

    /// Numbers from a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    const ATTRS: [(i16, u8); 7] = [(4, 4), (-1, 4), (8, 8), (-1, 4), (1, 1), (2, 2), (-1, 8)];
    static BYTES: [u8; 400] = [0x5a; 400];

    fn value(r: &mut Random, len: i16) -> AttrValue<'static> {
        let some = match (r.below(8), usize::try_from(len)) {
            (0, _) => return AttrValue::Null,
            (_, Ok(len)) => len,
            (1, _) => return AttrValue::External(ToastPointer::sample()),
            (2, _) => {
                return AttrValue::Compressed { raw_size: 4000, data: &BYTES[..r.below(80)] };
            }
            (3, _) => 100 + r.below(60),
            (4, _) => r.below(400),
            _ => r.below(30),
        };
        AttrValue::Inline(&BYTES[..some])
    }

    /// Both ways form the same of any tuple, and often enough it is the quick one's turn.
    #[test]
    fn at_once_and_by_parts_are_the_same() {
        let (mut formed, mut left) = (0, 0);
        for seed in 0..3000 {
            let mut r = Random(seed);
            let n = 1 + r.below(12);
            let attrs: Vec<_> = (0..n).map(|_| ATTRS[r.below(ATTRS.len())]).collect();
            let desc =
                TupleDesc::new(attrs.iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect());
            let wants: Vec<_> = (0..n)
                .map(|_| [Wanted::No, Wanted::No, Wanted::Read, Wanted::Key][r.below(4)])
                .collect();
            let d = StubDesc::new(desc, |i| wants[i]);
            for _ in 0..20 {
                let in_line = r.below(2) == 0;
                let mut row: Vec<_> = attrs.iter().map(|&(len, _)| value(&mut r, len)).collect();
                for (value, &(len, _)) in row.iter_mut().zip(&attrs) {
                    if in_line && len == -1 && !matches!(value, AttrValue::Inline(_)) {
                        *value = AttrValue::Inline(&BYTES[..r.below(100)]);
                    }
                }
                let stored = if r.below(6) == 0 { r.below(n + 1) } else { n };
                let mut tuple = form_values(d.desc(), &row[..stored]);
                let mask = [0, HOT_UPDATED, CHAIN_SHORTENED][r.below(3)];
                tuple[18..20].copy_from_slice(&(stored as u16 | mask).to_le_bytes());
                // Damage: cut off, or a byte is another.
                match r.below(12) {
                    0 => tuple.truncate(24 + r.below(tuple.len().saturating_sub(23).max(1))),
                    1 => {
                        let at = 24 + r.below(tuple.len().saturating_sub(24).max(1));
                        if let Some(byte) = tuple.get_mut(at) {
                            *byte = r.below(256) as u8;
                        }
                    }
                    _ => {}
                }
                let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
                let attributes = if r.below(4) == 0 { r.below(n + 2) } else { usize::MAX };
                let (mut by_parts, mut kept) = (b"before".to_vec(), b"before".to_vec());
                let want = d.keep_by_parts(&view, attributes, &mut by_parts);
                let mut at_once = b"before".to_vec();
                match d.form_at_once(&view, attributes, &mut at_once) {
                    Some(size) => {
                        assert_eq!(((size, true), &at_once), (want, &by_parts), "seed {seed}");
                        formed += 1;
                    }
                    None => {
                        assert_eq!(at_once, b"before");
                        left += usize::from(want.1);
                    }
                }
                assert_eq!(d.keep(&view, attributes, &mut kept), want);
                assert_eq!(kept, by_parts);
            }
        }
        assert!(formed > 10_000 && left > 1_000, "{formed} {left}");
    }
}
