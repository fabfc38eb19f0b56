//! What a dead line pointer keeps of its tuple: the attributes that index keys are made of.
//!
//! # Purpose
//! An index entry can be looked up only by its key. So a dead tuple that index entries may still lead to is not emptied
//! but cut down to its first attributes, up to the last one that a plain index has as a key. Where others stand between the keys that are too
//! long for that, or out of line, only the keys are kept: the others are null. An index made later may ask for one of these: it finds no such
//! entry then, and who finds none reads the index whole.
//!
//! # Layout
//! ```text
//! 0 natts u16   bits 0–10 number of attributes | 0x8000 there are nulls
//! 2 bitmap      with nulls only: one bit an attribute, lowest first, 1 = not null
//!   data        as in the tuple, alignment counted from here
//! ```

use super::form::{AttrValue, TupleDesc, deform_data, form_values_into};
use super::header::{HEADER_MIN, NATTS_MASK, TupleView};
use base::OffsetNumber;
use smallvec::SmallVec;

/// The most data that a dead line pointer keeps: more is not worth its room.
pub const MAX_STUB_DATA: usize = 256;

const HAS_NULLS: u16 = 0x8000;
const DAMAGED: &str = "dead line pointer's key is damaged";

/// With more data than this the keys alone are kept, if there is anything between them.
const PLAIN_DATA: u16 = 48;

/// What dead line pointers keep of a relation's tuples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StubDesc {
    desc: TupleDesc,
    /// Which of the attributes are keys; `None`: all.
    keys: Option<Box<[bool]>>,
}

impl StubDesc {
    /// The first attributes of a relation, up to the last that an index may ask for, and which of them are keys.
    pub fn new(desc: TupleDesc, is_key: impl Fn(usize) -> bool) -> StubDesc {
        let keys: Box<[bool]> = (0..desc.len()).map(is_key).collect();
        let keys = (!keys.iter().all(|k| *k)).then_some(keys);
        StubDesc { desc, keys }
    }
    /// The attributes.
    pub fn desc(&self) -> &TupleDesc {
        &self.desc
    }
    fn is_key(&self, attribute: usize) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys[attribute])
    }
}

/// All of the attributes are keys.
impl From<TupleDesc> for StubDesc {
    fn from(desc: TupleDesc) -> StubDesc {
        StubDesc { desc, keys: None }
    }
}

/// How much of a tuple is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StubSize {
    /// How many attributes; 0: nothing is kept.
    pub natts: u16,
    /// How many bytes of data they take.
    pub len: u16,
}

/// How much of `tuple` is to be kept for keys within the first so many attributes of `desc`. Nothing if that is too long, or if one of
/// them is not in line.
pub fn stub_size(tuple: &TupleView<'_>, desc: &TupleDesc, attributes: usize) -> StubSize {
    let natts = desc.len().min(attributes).min(tuple.natts());
    let end = if tuple.null_bitmap().is_none()
        && let Some(end) = desc.fixed_end(natts)
    {
        end
    } else {
        let mut values: SmallVec<[AttrValue<'_>; 16]> = SmallVec::new();
        values.resize(natts, AttrValue::Null);
        let Some(data) = tuple.bytes.get(tuple.hoff()..) else { return StubSize::default() };
        match deform_data(data, tuple.null_bitmap(), natts, desc, &mut values) {
            Ok(end) if !values.iter().any(|v| matches!(v, AttrValue::External(_))) => end,
            _ => return StubSize::default(),
        }
    };
    if natts == 0 || end > MAX_STUB_DATA || tuple.hoff() + end > tuple.bytes.len() {
        return StubSize::default();
    }
    StubSize { natts: natts as u16, len: end as u16 }
}

/// Forms what is kept of `tuple` if that is the keys alone, at the end of `out`, where keeping all in its place (`whole`) takes more or can't be. Its
/// length; `None`, and nothing is added: it is not to be had, or no shorter.
pub fn form_stub(
    tuple: &TupleView<'_>,
    desc: &StubDesc,
    attributes: usize,
    whole: StubSize,
    out: &mut Vec<u8>,
) -> Option<StubSize> {
    desc.keys.as_ref()?;
    if whole.natts > 0 && whole.len <= PLAIN_DATA {
        return None;
    }
    let natts = desc.desc.len().min(attributes).min(tuple.natts());
    let mut values: SmallVec<[AttrValue<'_>; 16]> = SmallVec::new();
    values.resize(natts, AttrValue::Null);
    let data = tuple.bytes.get(tuple.hoff()..)?;
    deform_data(data, tuple.null_bitmap(), natts, &desc.desc, &mut values).ok()?;
    for (i, value) in values.iter_mut().enumerate() {
        if !desc.is_key(i) {
            *value = AttrValue::Null;
        } else if matches!(value, AttrValue::External(_)) {
            return None;
        }
    }
    let mut formed = Vec::with_capacity(128);
    form_values_into(&desc.desc, &values, &mut formed);
    let formed = TupleView { bytes: &formed, xid_base: base::Xid(0) };
    let nulls = formed.null_bitmap().map(|b| &b[..natts.div_ceil(8)]);
    let data = &formed.bytes[formed.hoff()..];
    let len = 2 + nulls.map_or(0, <[u8]>::len) + data.len();
    let shorter = whole.natts == 0 || len < usize::from(whole.len);
    if natts == 0 || data.len() > MAX_STUB_DATA || len > tuple.bytes.len() || !shorter {
        return None;
    }
    let head = natts as u16 | if nulls.is_some() { HAS_NULLS } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(nulls.unwrap_or_default());
    out.extend_from_slice(data);
    Some(StubSize { natts: natts as u16, len: len as u16 })
}

impl TupleDesc {
    /// [`stub_size`] of every tuple that has the first so many of these attributes and no nulls, if it is the same for all.
    pub fn fixed_stub(&self, attributes: usize) -> Option<StubSize> {
        let natts = self.len().min(attributes);
        let end = self.fixed_end(natts).filter(|end| *end <= MAX_STUB_DATA)?;
        (natts > 0).then_some(StubSize { natts: natts as u16, len: end as u16 })
    }
}

impl TupleView<'_> {
    /// Has it no nulls, and so many attributes and bytes of data?
    #[inline]
    pub fn holds_plain(&self, size: StubSize) -> bool {
        self.infomask() & super::header::HAS_NULL == 0
            && self.natts() >= usize::from(size.natts)
            && self.hoff() + usize::from(size.len) <= self.bytes.len()
    }
}

/// Where the attributes of a dead tuple are read that index keys are made of: what its line pointer kept, or the tuple itself.
#[derive(Clone, Copy, Debug)]
pub struct KeySource<'a> {
    natts: usize,
    nulls: Option<&'a [u8]>,
    data: &'a [u8],
}

impl<'a> KeySource<'a> {
    /// A dead line pointer's bytes; `None` if it keeps nothing.
    #[inline]
    pub fn of_stub(stub: &'a [u8]) -> Option<KeySource<'a>> {
        let (natts, nulls, data) = parts(stub)?;
        Some(KeySource { natts, nulls, data })
    }
    /// What a line pointer would keep of `tuple`; `None` if that is nothing.
    #[inline]
    pub fn of_tuple(tuple: &TupleView<'a>, size: StubSize) -> Option<KeySource<'a>> {
        let natts = usize::from(size.natts);
        let data = tuple.bytes.get(tuple.hoff()..tuple.hoff() + usize::from(size.len))?;
        let nulls = tuple.null_bitmap();
        (natts > 0).then_some(KeySource { natts, nulls, data })
    }
    /// The data, if none of its first `natts` attributes is null or missing.
    #[inline]
    pub fn plain(&self, natts: usize) -> Option<&'a [u8]> {
        (self.nulls.is_none() && self.natts >= natts).then_some(self.data)
    }
    /// The attributes of `desc` that are there; the others come out as `None`.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn deform(
        &self,
        desc: &TupleDesc,
        out: &mut [Option<AttrValue<'a>>],
    ) -> Result<(), &'static str> {
        out.fill(None);
        let natts = self.natts.min(desc.len()).min(out.len());
        let mut values: SmallVec<[AttrValue<'_>; 16]> = SmallVec::new();
        values.resize(natts, AttrValue::Null);
        deform_data(self.data, self.nulls, natts, desc, &mut values)?;
        for (to, value) in out.iter_mut().zip(values) {
            *to = Some(value);
        }
        Ok(())
    }
}

/// Takes a dead line pointer's bytes apart: the attributes of `desc` that are kept; the others come out as `None`.
///
/// # Errors
/// Damaged bytes.
pub fn deform_stub<'a>(
    stub: &'a [u8],
    desc: &TupleDesc,
    out: &mut [Option<AttrValue<'a>>],
) -> Result<(), &'static str> {
    out.fill(None);
    KeySource::of_stub(stub).ok_or(DAMAGED)?.deform(desc, out)
}

/// Is this what [`crate::Page::cut_to_key`] makes?
pub fn verify_stub(stub: &[u8]) -> bool {
    parts(stub).is_some_and(|(natts, _, data)| natts > 0 && data.len() <= MAX_STUB_DATA)
}

#[inline]
fn parts(stub: &[u8]) -> Option<(usize, Option<&[u8]>, &[u8])> {
    let (head, rest) = stub.split_first_chunk::<2>()?;
    let head = u16::from_le_bytes(*head);
    let natts = usize::from(head & NATTS_MASK);
    if head & HAS_NULLS == 0 {
        return Some((natts, None, rest));
    }
    let (nulls, data) = rest.split_at_checked(natts.div_ceil(8))?;
    Some((natts, Some(nulls), data))
}

impl crate::Page {
    /// Cuts the tuple at line pointer `from` down to its key, in its place: the bytes' place and length, for a line
    /// pointer that will be dead. `None` if there is nothing to be kept, or not so much.
    pub fn cut_to_key(&mut self, from: OffsetNumber, size: StubSize) -> Option<(usize, usize)> {
        let id = self.item_id(from);
        if size.natts == 0 || usize::from(size.len) > MAX_STUB_DATA || !id.is_normal() {
            return None;
        }
        let tuple = self.tuple(from);
        let natts = usize::from(size.natts);
        if natts > tuple.natts() {
            return None;
        }
        let (hoff, data) = (tuple.hoff(), usize::from(size.len));
        let bitmap = tuple.null_bitmap().map_or(0, |_| natts.div_ceil(8));
        let (at, len) = (id.offset(), 2 + bitmap + data);
        // What is kept moves towards the beginning, over a header that is longer than what stands for it.
        if hoff < HEADER_MIN + bitmap || hoff + data > tuple.bytes.len() {
            return None;
        }
        let head = size.natts | if bitmap > 0 { HAS_NULLS } else { 0 };
        if bitmap == 0 && data <= 6 && at + hoff + 8 <= crate::PAGE_SIZE {
            // One small key: the tuple's header is longer than what takes its place.
            let bytes = self.get_u64(at + hoff) & ((1 << (8 * data)) - 1);
            self.put_u64(at, u64::from(head) | bytes << 16);
            return Some((at, len));
        }
        let item = self.item_mut(from);
        item.copy_within(HEADER_MIN..HEADER_MIN + bitmap, 2);
        item.copy_within(hoff..hoff + data, 2 + bitmap);
        item[..2].copy_from_slice(&head.to_le_bytes());
        Some((at, len))
    }

    /// As [`crate::Page::cut_to_key`], keeping what [`form_stub`] made of the tuple.
    pub fn put_stub(&mut self, from: OffsetNumber, stub: &[u8]) -> Option<(usize, usize)> {
        let id = self.item_id(from);
        if !id.is_normal() || stub.len() > id.len() || !verify_stub(stub) {
            return None;
        }
        self.item_mut(from)[..stub.len()].copy_from_slice(stub);
        Some((id.offset(), stub.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::{PhysicalAttr, form_values};
    use super::*;
    use crate::{ItemId, Page};

    fn desc(n: usize) -> TupleDesc {
        let all = [(4, 4), (-1, 4), (8, 8), (-1, 4), (2, 2)];
        TupleDesc::new(all[..n].iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect())
    }

    #[test]
    fn every_cut_gives_its_values_back() {
        let long = vec![3u8; 200];
        let values = [
            AttrValue::Inline(&[1, 2, 3, 4]),
            AttrValue::Inline(b"short"),
            AttrValue::Inline(&[9; 8]),
            AttrValue::Inline(&long),
            AttrValue::Inline(&[5, 6]),
        ];
        for mask in 0..32u32 {
            let v: Vec<_> = (0..5)
                .map(|i| if mask >> i & 1 == 1 { AttrValue::Null } else { values[i] })
                .collect();
            let tuple = form_values(&desc(5), &v);
            for keep in 1..=5 {
                let mut page = Page::new_zeroed();
                page.init(0);
                let o = page.add_item(&tuple).unwrap();
                let size = stub_size(&page.tuple(o), &desc(5), keep);
                assert_eq!(size, stub_size(&page.tuple(o), &desc(keep), usize::MAX));
                assert_eq!(usize::from(size.natts), keep);
                let (at, len) = page.cut_to_key(o, size).unwrap();
                page.set_item_id(o, ItemId::dead(at, len));
                page.compact();
                page.verify().unwrap();
                assert!(page.item_id(o).is_dead() && verify_stub(page.item(o)));
                let mut out = [None; 5];
                deform_stub(page.item(o), &desc(5), &mut out).unwrap();
                for i in 0..5 {
                    assert_eq!(out[i], (i < keep).then_some(v[i]));
                }
                for cut in 0..len {
                    let _ = deform_stub(&page.item(o)[..cut], &desc(5), &mut out);
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        let d = TupleDesc::new(vec![PhysicalAttr::new(-1, 4), PhysicalAttr::new(4, 4)]);
        let long = vec![3u8; 300];
        let tuple = form_values(&d, &[AttrValue::Inline(&long), AttrValue::Inline(&[1; 4])]);
        let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
        assert_eq!(stub_size(&view, &d, 2), StubSize::default());
        assert_eq!(stub_size(&view, &TupleDesc::default(), 2), StubSize::default());
    }

    /// A key, a payload, another key.
    fn with_payload() -> StubDesc {
        let all = [(8, 8), (-1, 4), (4, 4), (-1, 4)];
        let desc = TupleDesc::new(all.map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
        StubDesc::new(desc, |i| i == 0 || i == 2)
    }

    /// What is kept of a row with these values.
    fn formed(values: &[AttrValue<'_>], attributes: usize) -> Option<Vec<u8>> {
        let d = with_payload();
        let tuple = form_values(d.desc(), values);
        let mut page = Page::new_zeroed();
        page.init(0);
        let o = page.add_item(&tuple).unwrap();
        let whole = stub_size(&page.tuple(o), d.desc(), attributes);
        let mut out = b"before".to_vec();
        let size = form_stub(&page.tuple(o), &d, attributes, whole, &mut out);
        assert_eq!(out.len(), 6 + size.map_or(0, |s| usize::from(s.len)));
        size?;
        let (at, len) = page.put_stub(o, &out[6..]).unwrap();
        page.set_item_id(o, ItemId::dead(at, len));
        page.compact();
        page.verify().unwrap();
        Some(page.item(o).to_vec())
    }

    #[test]
    fn keys_with_something_long_between_them_are_kept_alone() {
        let pointer = super::super::ToastPointer {
            raw_size: 9000,
            stored_size: 5000,
            compressed: true,
            value_id: base::Oid(77),
            toast_table: base::Oid(16400),
        };
        let (long, longer) = (vec![3u8; 100], vec![4u8; 1000]);
        let key = |n: u8| [AttrValue::Inline(&[9; 8]), AttrValue::Inline(&[7; 4])][usize::from(n)];
        let payloads = [
            AttrValue::Inline(&long[..]),
            AttrValue::Inline(&longer[..]),
            AttrValue::Compressed { raw_size: 4000, data: &longer },
            AttrValue::External(pointer),
        ];
        for payload in payloads {
            let mut out = [None; 4];
            let stub = formed(&[key(0), payload, key(1), AttrValue::Null], 3).unwrap();
            assert_eq!(stub.len(), 2 + 1 + 8 + 4);
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            assert_eq!(out, [Some(key(0)), Some(AttrValue::Null), Some(key(1)), None]);
            // A key that is null is null; of fewer attributes the first keys are kept.
            let stub = formed(&[key(0), payload, AttrValue::Null, payload], 4).unwrap();
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            let null = Some(AttrValue::Null);
            assert_eq!(out, [Some(key(0)), null, null, null]);
            let stub = formed(&[key(0), payload, key(1), payload], 2).unwrap();
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            assert_eq!(out, [Some(key(0)), null, None, None]);
        }
        // What is short is kept as it stands.
        assert_eq!(formed(&[key(0), AttrValue::Inline(b"short"), key(1), payloads[1]], 3), None);
        assert_eq!(formed(&[key(0), payloads[1], key(1), payloads[1]], 1), None);
    }

    #[test]
    fn a_key_out_of_line_is_not_kept() {
        let pointer = super::super::ToastPointer {
            raw_size: 9000,
            stored_size: 5000,
            compressed: false,
            value_id: base::Oid(77),
            toast_table: base::Oid(16400),
        };
        let d = TupleDesc::new([(-1, 4); 2].map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
        let tuple = form_values(&d, &[AttrValue::Inline(&[1; 300]), AttrValue::External(pointer)]);
        let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
        let d = StubDesc::new(d, |i| i == 1);
        assert_eq!(form_stub(&view, &d, 2, StubSize::default(), &mut Vec::new()), None);
    }
}
