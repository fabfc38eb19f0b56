//! What a dead line pointer keeps of its tuple: the attributes that index keys are made of.
//!
//! # Purpose
//! An index entry can be looked up only by its key. So a dead tuple that index entries may still lead to is not emptied
//! but cut down to its first attributes, up to the last one that an index asks for. Where others stand between these that are too
//! long for that, or out of line, only what indexes ask for is kept; and where what predicates and expressions ask for is too long, or out of line,
//! only the keys that are columns as they are.
//!
//! # Invariants
//! What is not kept is never taken for null. A partial index's predicate says of a row whether it has an entry at all: of a wrong null it
//! could say no, and the entry would stay when its row's line pointer is another row's. An index made later may ask for what earlier line
//! pointers did not keep.
//!
//! # Layout
//! ```text
//! 0 natts u16   bits 0–10 number of attributes | 0x8000 there are nulls | 0x4000 what is null was null
//!               | 0x2000 some are not kept | 0x1000 it is of its HOT chain's newest version
//! 2 bitmap      with nulls only: one bit an attribute, lowest first, 1 = not null
//!   bitmap      with 0x2000 only: 1 = kept; what is not kept is null in the first one
//!   data        as in the tuple, alignment counted from here
//! ```
//! Without 0x4000, as line pointers of before it are, a null may be one that was not kept. Without 0x1000 there may have been a newer version, gone
//! before this one, which an old snapshot saw: an index that was made meanwhile has an entry by that one's columns, or none.

use super::form::{AttrValue, TupleDesc, deform_data, form_values_into};
use super::header::{HEADER_MIN, NATTS_MASK, TupleView};
use base::OffsetNumber;
use smallvec::SmallVec;

/// The most data that a dead line pointer keeps: more is not worth its room.
pub const MAX_STUB_DATA: usize = 256;

const HAS_NULLS: u16 = 0x8000;
const TRUE_NULLS: u16 = 0x4000;
const SOME_KEPT: u16 = 0x2000;
const NEWEST: u16 = 0x1000;
const DAMAGED: &str = "dead line pointer's key is damaged";

/// With more data than this the keys alone are kept, if there is anything between them.
const PLAIN_DATA: u16 = 48;

/// What indexes want of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wanted {
    /// Nothing.
    No,
    /// A predicate or an expression reads it.
    Read,
    /// It is a key as it is.
    Key,
}

/// What dead line pointers keep of a relation's tuples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StubDesc {
    desc: TupleDesc,
    /// What is wanted of each attribute; `None`: all are keys.
    wanted: Option<Box<[Wanted]>>,
    /// How many attributes there are up to the last that is a key.
    to_last_key: usize,
}

impl StubDesc {
    /// The first attributes of a relation, up to the last that an index may ask for, and what of them is asked for.
    pub fn new(desc: TupleDesc, wanted: impl Fn(usize) -> Wanted) -> StubDesc {
        let wanted: Box<[Wanted]> = (0..desc.len()).map(wanted).collect();
        let to_last_key = wanted.iter().rposition(|w| *w == Wanted::Key).map_or(0, |last| last + 1);
        let wanted = (!wanted.iter().all(|w| *w == Wanted::Key)).then_some(wanted);
        StubDesc { desc, wanted, to_last_key }
    }
    /// The attributes.
    pub fn desc(&self) -> &TupleDesc {
        &self.desc
    }

    /// Decides what is kept of `tuple`, asked for within the first so many attributes: its first attributes up to there, as they stand; or what is
    /// added to `formed`, so many bytes, and then true.
    pub fn keep(
        &self,
        tuple: &TupleView<'_>,
        attributes: usize,
        formed: &mut Vec<u8>,
    ) -> (StubSize, bool) {
        let whole = stub_size(tuple, &self.desc, attributes);
        if let Some(size) = form_stub(tuple, self, Wanted::Read, attributes, whole, formed) {
            return (size, true);
        }
        let keys = self.to_last_key.min(attributes);
        if whole.natts > 0 || keys == self.desc.len().min(attributes) {
            return (whole, false);
        }
        let whole = stub_size(tuple, &self.desc, keys);
        match form_stub(tuple, self, Wanted::Key, keys, whole, formed) {
            Some(size) => (size, true),
            None => (whole, false),
        }
    }

    /// [`StubDesc::keep`] of all tuples that [`TupleView::holds_plain`] so much, if it is the same for all.
    pub fn keep_fixed(&self, attributes: usize) -> Option<StubSize> {
        let fixed = self.desc.fixed_stub(attributes);
        fixed.filter(|size| self.wanted.is_none() || size.len <= PLAIN_DATA)
    }
}

/// All of the attributes are keys.
impl From<TupleDesc> for StubDesc {
    fn from(desc: TupleDesc) -> StubDesc {
        StubDesc { to_last_key: desc.len(), desc, wanted: None }
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
fn stub_size(tuple: &TupleView<'_>, desc: &TupleDesc, attributes: usize) -> StubSize {
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

/// Forms what is kept of `tuple` if that is only what is asked for, `least` or more, at the end of `out`, where keeping all in its place (`whole`)
/// takes more or can't be. Its length; `None`, and nothing is added: it is not to be had, or no shorter. What is read only may be missing, not all of it.
fn form_stub(
    tuple: &TupleView<'_>,
    desc: &StubDesc,
    least: Wanted,
    attributes: usize,
    whole: StubSize,
    out: &mut Vec<u8>,
) -> Option<StubSize> {
    let wanted = desc.wanted.as_ref()?;
    if whole.natts > 0 && whole.len <= PLAIN_DATA {
        return None;
    }
    let natts = desc.desc.len().min(attributes).min(tuple.natts());
    let mut values: SmallVec<[AttrValue<'_>; 16]> = SmallVec::new();
    values.resize(natts, AttrValue::Null);
    let data = tuple.bytes.get(tuple.hoff()..)?;
    deform_data(data, tuple.null_bitmap(), natts, &desc.desc, &mut values).ok()?;
    let mut kept: SmallVec<[u8; 16]> = SmallVec::from_elem(0, natts.div_ceil(8));
    let (mut asked, mut read) = (0, 0);
    for (i, value) in values.iter_mut().enumerate() {
        let in_line = matches!(value, AttrValue::Null | AttrValue::Inline(_));
        match wanted[i] {
            Wanted::Key if matches!(value, AttrValue::External(_)) => return None,
            Wanted::Key => kept[i / 8] |= 1 << (i % 8),
            Wanted::Read if least == Wanted::Read => {
                asked += 1;
                if in_line {
                    read += 1;
                    kept[i / 8] |= 1 << (i % 8);
                } else {
                    *value = AttrValue::Null;
                }
            }
            _ => *value = AttrValue::Null,
        }
    }
    if asked > 0 && read == 0 {
        return None;
    }
    let mut formed = Vec::with_capacity(128);
    form_values_into(&desc.desc, &values, &mut formed);
    let formed = TupleView { bytes: &formed, xid_base: base::Xid(0) };
    let nulls = formed.null_bitmap().map(|b| &b[..natts.div_ceil(8)]);
    let data = &formed.bytes[formed.hoff()..];
    let some = nulls.is_some() && kept.iter().map(|b| b.count_ones()).sum::<u32>() < natts as u32;
    let kept: &[u8] = if some { &kept } else { &[] };
    let len = 2 + nulls.map_or(0, <[u8]>::len) + kept.len() + data.len();
    let shorter = whole.natts == 0 || len < usize::from(whole.len);
    if natts == 0 || data.len() > MAX_STUB_DATA || len > tuple.bytes.len() || !shorter {
        return None;
    }
    let head = natts as u16
        | if nulls.is_some() { HAS_NULLS | TRUE_NULLS } else { 0 }
        | if some { SOME_KEPT } else { 0 }
        | if tuple.is_newest() { NEWEST } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(nulls.unwrap_or_default());
    out.extend_from_slice(kept);
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
    null: Null<'a>,
    newest: bool,
    data: &'a [u8],
}

/// What a null means.
#[derive(Clone, Copy, Debug)]
enum Null<'a> {
    /// Null.
    True,
    /// Null, where the bitmap says that the attribute is kept.
    IfKept(&'a [u8]),
    /// Null or not kept.
    Either,
}

impl<'a> KeySource<'a> {
    /// A dead line pointer's bytes; `None` if it keeps nothing.
    #[inline]
    pub fn of_stub(stub: &'a [u8]) -> Option<KeySource<'a>> {
        parts(stub)
    }
    /// What a line pointer would keep of `tuple`; `None` if that is nothing.
    #[inline]
    pub fn of_tuple(tuple: &TupleView<'a>, size: StubSize) -> Option<KeySource<'a>> {
        let natts = usize::from(size.natts);
        let data = tuple.bytes.get(tuple.hoff()..tuple.hoff() + usize::from(size.len))?;
        let nulls = tuple.null_bitmap();
        let newest = tuple.is_newest();
        (natts > 0).then_some(KeySource { natts, nulls, null: Null::True, newest, data })
    }
    /// Are they surely those that all index entries of the row's HOT chain were made of?
    #[inline]
    pub fn is_newest(&self) -> bool {
        self.newest
    }
    /// The data, if none of its first `natts` attributes is null or missing.
    #[inline]
    pub fn plain(&self, natts: usize) -> Option<&'a [u8]> {
        (self.nulls.is_none() && self.natts >= natts).then_some(self.data)
    }
    /// The attributes of `desc` that are there; the others come out as `None`, and so does what may not have been kept.
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
        for (i, (to, value)) in out.iter_mut().zip(values).enumerate() {
            let is_there = match (value, self.null) {
                (AttrValue::Null, Null::IfKept(kept)) => kept[i / 8] >> (i % 8) & 1 == 1,
                (AttrValue::Null, Null::Either) => false,
                _ => true,
            };
            *to = is_there.then_some(value);
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
    parts(stub).is_some_and(|s| s.natts > 0 && s.data.len() <= MAX_STUB_DATA)
}

#[inline]
fn parts(stub: &[u8]) -> Option<KeySource<'_>> {
    let (head, rest) = stub.split_first_chunk::<2>()?;
    let head = u16::from_le_bytes(*head);
    let natts = usize::from(head & NATTS_MASK);
    let newest = head & NEWEST != 0;
    if head & HAS_NULLS == 0 {
        return Some(KeySource { natts, nulls: None, null: Null::True, newest, data: rest });
    }
    let (nulls, rest) = rest.split_at_checked(natts.div_ceil(8))?;
    let nulls = Some(nulls);
    if head & SOME_KEPT != 0 {
        let (kept, data) = rest.split_at_checked(natts.div_ceil(8))?;
        return Some(KeySource { natts, nulls, null: Null::IfKept(kept), newest, data });
    }
    let null = if head & TRUE_NULLS == 0 { Null::Either } else { Null::True };
    Some(KeySource { natts, nulls, null, newest, data: rest })
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
        let head = size.natts
            | if bitmap > 0 { HAS_NULLS | TRUE_NULLS } else { 0 }
            | if tuple.is_newest() { NEWEST } else { 0 };
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
        StubDesc::new(desc, |i| if i == 0 || i == 2 { Wanted::Key } else { Wanted::No })
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
        let size = form_stub(&page.tuple(o), &d, Wanted::Read, attributes, whole, &mut out);
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
            assert_eq!(stub.len(), 2 + 1 + 1 + 8 + 4);
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            assert_eq!(out, [Some(key(0)), None, Some(key(1)), None]);
            // A key that is null is null; of fewer attributes the first keys are kept.
            let stub = formed(&[key(0), payload, AttrValue::Null, payload], 4).unwrap();
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            let null = Some(AttrValue::Null);
            assert_eq!(out, [Some(key(0)), None, null, None]);
            let stub = formed(&[key(0), payload, key(1), payload], 2).unwrap();
            deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
            assert_eq!(out, [Some(key(0)), None, None, None]);
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
        let d = StubDesc::new(d, |i| if i == 1 { Wanted::Key } else { Wanted::No });
        let mut out = Vec::new();
        assert_eq!(form_stub(&view, &d, Wanted::Read, 2, StubSize::default(), &mut out), None);
        assert!(out.is_empty());
    }

    /// What is kept of a row with these values, taken apart.
    fn kept<'s>(
        d: &StubDesc,
        values: &[AttrValue<'_>],
        attributes: usize,
        stub: &'s mut Vec<u8>,
    ) -> Vec<Option<AttrValue<'s>>> {
        let tuple = form_values(d.desc(), values);
        let mut page = Page::new_zeroed();
        page.init(0);
        let o = page.add_item(&tuple).unwrap();
        let mut formed = Vec::new();
        let (size, alone) = d.keep(&page.tuple(o), attributes, &mut formed);
        assert_eq!(alone, !formed.is_empty());
        let cut = match alone {
            true => page.put_stub(o, &formed),
            false => page.cut_to_key(o, size),
        };
        let Some((at, len)) = cut else { return Vec::new() };
        page.set_item_id(o, ItemId::dead(at, len));
        page.compact();
        page.verify().unwrap();
        stub.clear();
        stub.extend_from_slice(page.item(o));
        let mut out = vec![None; d.desc().len()];
        deform_stub(stub, d.desc(), &mut out).unwrap();
        out
    }

    /// A key, something long, what a predicate reads, a key, what an expression reads.
    #[test]
    fn what_is_read_is_kept_if_there_is_room() {
        use Wanted::{Key, No, Read};
        let all = [(4, 4), (-1, 4), (1, 1), (4, 4), (-1, 4)];
        let desc = TupleDesc::new(all.map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
        let d = StubDesc::new(desc, |i| [Key, No, Read, Key, Read][i]);
        let (long, longer) = (vec![3u8; 100], vec![4u8; 300]);
        let [first, flag, last, null] = [
            AttrValue::Inline(&[9; 4]),
            AttrValue::Inline(&[1]),
            AttrValue::Inline(&[7; 4]),
            AttrValue::Null,
        ];
        let [long, longer] = [&long, &longer].map(|v| AttrValue::Inline(v));
        let compressed = AttrValue::Compressed { raw_size: 4000, data: b"some" };
        let pointer = super::super::ToastPointer {
            raw_size: 9000,
            stored_size: 5000,
            compressed: false,
            value_id: base::Oid(77),
            toast_table: base::Oid(16400),
        };
        let out_of_line = AttrValue::External(pointer);
        let short = AttrValue::Inline(b"a@b");
        let mut stub = Vec::new();
        let some = Some;
        // Nothing long: as it stands, nulls are nulls.
        let row = [first, short, null, last, null];
        assert_eq!(kept(&d, &row, 9, &mut stub), row.map(some));
        // What nobody asks for is left out, and is not null.
        for payload in [long, longer, compressed, out_of_line, null] {
            let row = [first, payload, flag, last, long];
            // (Nothing is gained by leaving out a null.)
            let left_out = (payload == null).then_some(null);
            let want = [some(first), left_out, some(flag), some(last), some(long)];
            assert_eq!(kept(&d, &row, 9, &mut stub), want);
            // A null that is asked for is one.
            let row = [first, payload, null, null, long];
            let want = [some(first), left_out, some(null), some(null), some(long)];
            assert_eq!(kept(&d, &row, 9, &mut stub), want);
            // Of what is read the part that is in line is kept.
            for out_of_reach in [compressed, out_of_line] {
                let row = [first, payload, flag, last, out_of_reach];
                let got = kept(&d, &row, 9, &mut stub);
                // (A payload that takes hardly any room stays where it is.)
                assert_eq!([got[0], got[2], got[3]], [some(first), some(flag), some(last)]);
                assert!(got[4].is_none() || got[4] == some(compressed));
            }
            // Too long: the keys.
            let row = [first, payload, flag, last, longer];
            let want = match payload {
                AttrValue::Null | AttrValue::Compressed { .. } => {
                    [some(first), some(payload), some(flag), some(last), None]
                }
                _ => [some(first), None, None, some(last), None],
            };
            assert_eq!(kept(&d, &row, 9, &mut stub), want, "{payload:?}");
        }
        // A key out of line: nothing.
        let all_read = StubDesc::new(d.desc().clone(), |i| if i == 1 { Key } else { Read });
        assert_eq!(kept(&all_read, &[first, out_of_line, flag, last, short], 9, &mut stub), []);
        // Only what is read, out of line: nothing.
        let d = StubDesc::new(d.desc().clone(), |i| if i == 1 { Read } else { No });
        assert_eq!(kept(&d, &[first, out_of_line, flag, last, short], 9, &mut stub), []);
    }

    /// Of a version after which there were newer ones, too, it is kept as it is or formed, that it is an older one is told.
    #[test]
    fn an_older_version_is_told_from_the_newest() {
        use super::super::header::{CHAIN_END, CHAIN_SHORTENED, HOT_UPDATED};
        let d = with_payload();
        for payload in [&[1u8; 4][..], &[1; 200]] {
            let key = [AttrValue::Inline(&[9; 8]), AttrValue::Inline(&[7; 4])];
            let row = [key[0], AttrValue::Inline(payload), key[1], AttrValue::Null];
            let mut tuple = form_values(d.desc(), &row);
            for (mask, newest) in [
                (0, true),
                (CHAIN_SHORTENED | CHAIN_END, true),
                (CHAIN_SHORTENED, false),
                (HOT_UPDATED, false),
                (HOT_UPDATED | CHAIN_SHORTENED, false),
            ] {
                tuple[18..20].copy_from_slice(&(4 | mask).to_le_bytes());
                let mut page = Page::new_zeroed();
                page.init(0);
                let o = page.add_item(&tuple).unwrap();
                let mut formed = Vec::new();
                let (size, alone) = d.keep(&page.tuple(o), 3, &mut formed);
                assert_eq!(alone, payload.len() > 100);
                if !alone {
                    let source = KeySource::of_tuple(&page.tuple(o), size).unwrap();
                    assert_eq!(source.is_newest(), newest);
                }
                let (at, len) = match alone {
                    true => page.put_stub(o, &formed).unwrap(),
                    false => page.cut_to_key(o, size).unwrap(),
                };
                page.set_item_id(o, ItemId::dead(at, len));
                assert_eq!(KeySource::of_stub(page.item(o)).unwrap().is_newest(), newest);
            }
        }
        // One small key, without nulls; and a line pointer from before that was told.
        let one = TupleDesc::new(vec![PhysicalAttr::new(4, 4)]);
        let tuple = form_values(&one, &[AttrValue::Inline(&[5; 4])]);
        let mut page = Page::new_zeroed();
        page.init(0);
        let o = page.add_item(&tuple).unwrap();
        let (at, len) = page.cut_to_key(o, stub_size(&page.tuple(o), &one, 1)).unwrap();
        page.set_item_id(o, ItemId::dead(at, len));
        assert!(KeySource::of_stub(page.item(o)).unwrap().is_newest());
        assert!(!KeySource::of_stub(&[1, 0, 5, 5, 5, 5]).unwrap().is_newest());
    }

    /// More attributes than a byte of the bitmaps is for.
    #[test]
    fn of_many_attributes_each_is_kept_for_itself() {
        let mut all = vec![PhysicalAttr::new(4, 4); 20];
        all[3] = PhysicalAttr::new(-1, 4);
        let wanted = |i| [Wanted::Read, Wanted::No, Wanted::No, Wanted::Key][(i + 1) % 4];
        let d = StubDesc::new(TupleDesc::new(all), |i| if i == 3 { Wanted::No } else { wanted(i) });
        let long = [3u8; 200];
        let mut row = [AttrValue::Null; 20];
        row[3] = AttrValue::Inline(&long);
        for some in [2, 7, 10, 19] {
            row[some] = AttrValue::Inline(&[8; 4]);
            let mut stub = Vec::new();
            let got = kept(&d, &row, 20, &mut stub);
            for (i, got) in got.into_iter().enumerate() {
                let want = i != 3 && wanted(i) != Wanted::No;
                assert_eq!(got, want.then_some(row[i]), "{i}");
            }
        }
    }

    /// Line pointers from before what is null was told from what is not kept.
    #[test]
    fn an_old_null_may_be_anything() {
        let d = desc(2);
        let mut stub = (2u16 | HAS_NULLS).to_le_bytes().to_vec();
        stub.extend_from_slice(&[1, 5, 0, 0, 0]);
        let mut out = [None; 2];
        deform_stub(&stub, &d, &mut out).unwrap();
        assert_eq!(out, [Some(AttrValue::Inline(&[5, 0, 0, 0])), None]);
        let mut stub = stub.clone();
        stub[1] |= (TRUE_NULLS >> 8) as u8;
        deform_stub(&stub, &d, &mut out).unwrap();
        assert_eq!(out, [Some(AttrValue::Inline(&[5, 0, 0, 0])), Some(AttrValue::Null)]);
    }
}
