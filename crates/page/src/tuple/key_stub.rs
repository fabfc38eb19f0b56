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
//! What [`StubDesc::keep`] decides, its constants with it, stays the same for a given description: replay decides again by the description that
//! a log of before has (`heap/src/kept.rs`).
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

mod apart;

use super::form::{AttrValue, TupleDesc, deform_data, form_data};
use super::header::{HEADER_MIN, NATTS_MASK, TupleView};
use apart::Apart;
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
    /// The quick way for what is kept apart; follows from the others.
    apart: Apart,
}

impl StubDesc {
    /// The first attributes of a relation, up to the last that an index may ask for, and what of them is asked for.
    pub fn new(desc: TupleDesc, wanted: impl Fn(usize) -> Wanted) -> StubDesc {
        let wanted: Box<[Wanted]> = (0..desc.len()).map(wanted).collect();
        let to_last_key = wanted.iter().rposition(|w| *w == Wanted::Key).map_or(0, |last| last + 1);
        let apart = Apart::new(&wanted);
        let wanted = (!wanted.iter().all(|w| *w == Wanted::Key)).then_some(wanted);
        StubDesc { desc, wanted, to_last_key, apart }
    }
    /// The attributes.
    pub fn desc(&self) -> &TupleDesc {
        &self.desc
    }
    /// What indexes want of one of them.
    pub(super) fn wanted(&self, attribute: usize) -> Wanted {
        self.wanted.as_ref().map_or(Wanted::Key, |wanted| wanted[attribute])
    }

    /// Decides what is kept of `tuple`, asked for within the first so many attributes: its first attributes up to there, as they stand; or what is
    /// added to `formed`, so many bytes, and then true.
    pub fn keep(
        &self,
        tuple: &TupleView<'_>,
        attributes: usize,
        formed: &mut Vec<u8>,
    ) -> (StubSize, bool) {
        match self.form_at_once(tuple, attributes, formed) {
            Some(size) => (size, true),
            None => self.keep_by_parts(tuple, attributes, formed),
        }
    }

    /// [`StubDesc::keep`] of any tuple.
    fn keep_by_parts(
        &self,
        tuple: &TupleView<'_>,
        attributes: usize,
        formed: &mut Vec<u8>,
    ) -> (StubSize, bool) {
        let mut values = Values::new();
        let whole = stub_size(tuple, &self.desc, attributes, &mut values);
        if let Some(size) =
            form_stub(tuple, self, (Wanted::Read, attributes), whole, &mut values, formed)
        {
            return (size, true);
        }
        let keys = self.to_last_key.min(attributes);
        if whole.natts > 0 || keys == self.desc.len().min(attributes) {
            return (whole, false);
        }
        let whole = stub_size(tuple, &self.desc, keys, &mut values);
        match form_stub(tuple, self, (Wanted::Key, keys), whole, &mut values, formed) {
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
        StubDesc { to_last_key: desc.len(), desc, ..StubDesc::default() }
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

/// A tuple's first attributes, as far as they have been taken apart.
type Values<'a> = SmallVec<[AttrValue<'a>; 16]>;

/// How much of `tuple` is to be kept for keys within the first so many attributes of `desc`. Nothing if that is too long, or if one of
/// them is not in line. `values` are these attributes, or none: they were not looked at, or are damaged.
fn stub_size<'a>(
    tuple: &TupleView<'a>,
    desc: &TupleDesc,
    attributes: usize,
    values: &mut Values<'a>,
) -> StubSize {
    values.clear();
    let natts = desc.len().min(attributes).min(tuple.natts());
    let end = if tuple.null_bitmap().is_none()
        && let Some(end) = desc.fixed_end(natts)
    {
        end
    } else {
        match take_apart(tuple, desc, natts, values) {
            Some(end) if !values.iter().any(|v| matches!(v, AttrValue::External(_))) => end,
            _ => return StubSize::default(),
        }
    };
    if natts == 0 || end > MAX_STUB_DATA || tuple.hoff() + end > tuple.bytes.len() {
        return StubSize::default();
    }
    StubSize { natts: natts as u16, len: end as u16 }
}

/// The first so many attributes, and where they end; `None`, and there are none: they are damaged.
fn take_apart<'a>(
    tuple: &TupleView<'a>,
    desc: &TupleDesc,
    natts: usize,
    values: &mut Values<'a>,
) -> Option<usize> {
    values.resize(natts, AttrValue::Null);
    let data = tuple.bytes.get(tuple.hoff()..);
    let end = data.and_then(|d| deform_data(d, tuple.null_bitmap(), natts, desc, values).ok());
    if end.is_none() {
        values.clear();
    }
    end
}

/// Forms what is kept of `tuple` if that is only what is asked for, `least` or more, of its first so many attributes, at the end of `out`, where keeping all in its place (`whole`)
/// takes more or can't be. Its length; `None`, and nothing is added: it is not to be had, or no shorter. What is read only may be missing, not all of it.
/// `values` are those that [`stub_size`] found; they are used up.
fn form_stub<'a>(
    tuple: &TupleView<'a>,
    desc: &StubDesc,
    (least, attributes): (Wanted, usize),
    whole: StubSize,
    values: &mut Values<'a>,
    out: &mut Vec<u8>,
) -> Option<StubSize> {
    let wanted = desc.wanted.as_ref()?;
    if whole.natts > 0 && whole.len <= PLAIN_DATA {
        return None;
    }
    if values.is_empty() {
        let natts = desc.desc.len().min(attributes).min(tuple.natts());
        take_apart(tuple, &desc.desc, natts, values)?;
    }
    let natts = values.len();
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
    if natts == 0 || asked > 0 && read == 0 {
        return None;
    }
    let begin = out.len();
    let nulls = values.contains(&AttrValue::Null);
    let some = nulls && kept.iter().map(|b| b.count_ones()).sum::<u32>() < natts as u32;
    let head = natts as u16
        | if nulls { HAS_NULLS | TRUE_NULLS } else { 0 }
        | if some { SOME_KEPT } else { 0 }
        | if tuple.is_newest() { NEWEST } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    if nulls {
        let bits = values.chunks(8).map(|some| {
            some.iter().rev().fold(0u8, |bits, v| bits << 1 | u8::from(*v != AttrValue::Null))
        });
        out.extend(bits);
    }
    out.extend_from_slice(if some { &kept } else { &[] });
    let data = out.len();
    form_data(&desc.desc.attrs()[..natts], |i| values[i], out);
    let (len, data_len) = (out.len() - begin, out.len() - data);
    let shorter = whole.natts == 0 || len < usize::from(whole.len);
    if data_len > MAX_STUB_DATA || len > tuple.bytes.len() || !shorter {
        out.truncate(begin);
        return None;
    }
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
mod tests;
