//! Forming tuples from values and taking them apart.

use super::header::{
    HAS_EXTERNAL, HAS_NULL, HAS_VARWIDTH, HEADER, HEADER_MIN, TupleMut, TupleView,
};
use super::varlena::{
    COMPRESSED_HEADER, EXTERNAL, EXTERNAL_ON_DISK, EXTERNAL_SIZE, MAX_SHORT, ToastPointer,
    VARLENA_HEADER,
};

/// How an attribute lies in a tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PhysicalAttr {
    /// Bytes of a fixed-width value; -1: varlena; -2: bytes up to a NUL.
    pub len: i16,
    /// 1, 2, 4 or 8.
    pub align: u8,
}

impl PhysicalAttr {
    /// An attribute of `len` bytes (or -1, -2) aligned to `align`.
    pub const fn new(len: i16, align: u8) -> PhysicalAttr {
        PhysicalAttr { len, align }
    }
}

/// How the attributes of a relation's tuples lie.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TupleDesc {
    attrs: Vec<PhysicalAttr>,
    /// Offsets (from the start of the data) of the leading attributes, as long as they do not depend
    /// on the values: used for tuples without nulls.
    fixed: Vec<u32>,
}

impl TupleDesc {
    /// The description of tuples with these attributes.
    pub fn new(attrs: Vec<PhysicalAttr>) -> TupleDesc {
        let mut fixed = Vec::new();
        let mut at = 0usize;
        for a in &attrs {
            // A first varlena at a place that is aligned anyway may begin with either header, and its
            // place is known; anywhere else it depends on the header.
            if a.len < 0 {
                if at.is_multiple_of(usize::from(a.align.max(1))) {
                    fixed.push(at as u32);
                }
                break;
            }
            at = align(at, a.align);
            fixed.push(at as u32);
            at += a.len as usize;
        }
        TupleDesc { attrs, fixed }
    }
    /// The attributes.
    pub fn attrs(&self) -> &[PhysicalAttr] {
        &self.attrs
    }
    /// How many attributes.
    pub fn len(&self) -> usize {
        self.attrs.len()
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.attrs.is_empty()
    }
    /// Where attribute `n` lies in the data of a tuple without nulls, if that does not depend on its values.
    pub fn fixed_range(&self, n: usize) -> Option<std::ops::Range<usize>> {
        let width = usize::try_from(self.attrs.get(n)?.len).ok()?;
        let start = *self.fixed.get(n)? as usize;
        Some(start..start + width)
    }
    /// The last attribute up to `n` whose place in a tuple without nulls does not depend on the values, and that place.
    #[inline]
    pub(super) fn known_start(&self, n: usize) -> Option<(usize, usize)> {
        let last = n.min(self.fixed.len().checked_sub(1)?);
        Some((last, self.fixed[last] as usize))
    }
    /// Where the first `n` attributes of a tuple without nulls end, if that does not depend on their values.
    pub(super) fn fixed_end(&self, n: usize) -> Option<usize> {
        let Some(last) = n.checked_sub(1) else { return Some(0) };
        self.fixed_range(last).map(|r| r.end)
    }
}

/// An attribute's value as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AttrValue<'a> {
    /// NULL (or not stored: the tuple is older than the column).
    #[default]
    Null,
    /// The value's bytes, without a varlena header.
    Inline(&'a [u8]),
    /// An LZ4 block.
    Compressed {
        /// Length of the value itself.
        raw_size: u32,
        /// The block.
        data: &'a [u8],
    },
    /// Stored out of line.
    External(ToastPointer),
}

#[inline]
pub(super) const fn align(n: usize, to: u8) -> usize {
    let a = to as usize;
    if a <= 1 { n } else { (n + a - 1) & !(a - 1) }
}

/// Forms a tuple of plain values. Transaction fields are zero; the heap sets them.
///
/// # Panics
/// If a fixed-width value has another length than its attribute, which is a bug of the caller.
pub fn form_tuple(desc: &TupleDesc, values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    form_into(
        desc,
        values.len(),
        |i| values[i].map_or(AttrValue::Null, AttrValue::Inline),
        &mut out,
    );
    out
}

/// Forms a tuple of values in any form.
pub fn form_values(desc: &TupleDesc, values: &[AttrValue<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    form_values_into(desc, values, &mut out);
    out
}

/// [`form_values`] into `out`, whose contents are replaced.
pub fn form_values_into(desc: &TupleDesc, values: &[AttrValue<'_>], out: &mut Vec<u8>) {
    form_into(desc, values.len(), |i| values[i], out);
}

fn form_into<'v>(
    desc: &TupleDesc,
    n: usize,
    value: impl Fn(usize) -> AttrValue<'v>,
    out: &mut Vec<u8>,
) {
    assert!(n <= desc.attrs.len() && n <= super::MAX_ATTRIBUTES);
    out.clear();
    let has_null = (0..n).any(|i| value(i) == AttrValue::Null);
    let hoff = if has_null { crate::align8(HEADER_MIN + n.div_ceil(8)) } else { HEADER };
    out.resize(hoff, 0);
    for i in (0..n).filter(|i| has_null && value(*i) != AttrValue::Null) {
        out[HEADER_MIN + i / 8] |= 1 << (i % 8);
    }
    let infomask = form_data(&desc.attrs[..n], value, out) | if has_null { HAS_NULL } else { 0 };
    let mut t = TupleMut(out);
    t.set_hoff(hoff as u8);
    t.set_infomask(infomask);
    t.set_infomask2(n as u16);
}

/// Fills `out` up for a value that is aligned so. Alignment counts from the start of the data.
#[inline]
pub(super) fn pad(start: usize, to: u8, out: &mut Vec<u8>) {
    out.resize(start + align(out.len() - start, to), 0);
}

/// Appends a varlena in line, with the shorter header if there is one, to data that begins at `start`.
#[inline]
pub(super) fn form_varlena(bytes: &[u8], to: u8, start: usize, out: &mut Vec<u8>) {
    if bytes.len() <= MAX_SHORT {
        out.push((bytes.len() as u8 + 1) << 1 | 1);
    } else {
        pad(start, to, out);
        let len = (bytes.len() + VARLENA_HEADER) as u32;
        out.extend_from_slice(&(len << 2).to_le_bytes());
    }
    out.extend_from_slice(bytes);
}

/// Appends a tuple's data to `out`; what the infomask says of it.
pub(super) fn form_data<'v>(
    attrs: &[PhysicalAttr],
    value: impl Fn(usize) -> AttrValue<'v>,
    out: &mut Vec<u8>,
) -> u16 {
    let mut infomask = 0;
    let start = out.len();
    let pad = |out: &mut Vec<u8>, to| pad(start, to, out);
    for (i, attr) in attrs.iter().enumerate() {
        match value(i) {
            AttrValue::Null => {}
            AttrValue::Inline(bytes) if attr.len >= 0 => {
                assert_eq!(bytes.len(), attr.len as usize, "width of attribute {i}");
                pad(out, attr.align);
                out.extend_from_slice(bytes);
            }
            AttrValue::Inline(bytes) if attr.len == -2 => {
                infomask |= HAS_VARWIDTH;
                pad(out, attr.align);
                let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
                out.extend_from_slice(&bytes[..end]);
                out.push(0);
            }
            AttrValue::Inline(bytes) => {
                infomask |= HAS_VARWIDTH;
                form_varlena(bytes, attr.align, start, out);
            }
            AttrValue::Compressed { raw_size, data } => {
                infomask |= HAS_VARWIDTH;
                pad(out, attr.align);
                let len = (data.len() + COMPRESSED_HEADER) as u32;
                out.extend_from_slice(&(len << 2 | 2).to_le_bytes());
                out.extend_from_slice(&raw_size.to_le_bytes());
                out.extend_from_slice(data);
            }
            AttrValue::External(pointer) => {
                infomask |= HAS_VARWIDTH | HAS_EXTERNAL;
                out.extend_from_slice(&[EXTERNAL, EXTERNAL_ON_DISK]);
                out.extend_from_slice(&pointer.to_bytes());
            }
        }
    }
    infomask
}

pub(super) const DAMAGED: &str = "tuple is damaged: a value ends beyond it";

/// Takes the first `out.len()` attributes of a tuple apart. Attributes that are not stored (added after
/// the tuple was made) come out null; see [`TupleView::natts`].
#[inline]
pub fn deform<'a>(
    tuple: &'a [u8],
    desc: &TupleDesc,
    out: &mut [AttrValue<'a>],
) -> Result<(), &'static str> {
    let view = TupleView { bytes: tuple, xid_base: base::Xid(0) };
    let stored = view.natts().min(desc.attrs.len());
    let wanted = out.len().min(stored);
    out[wanted..].fill(AttrValue::Null);
    let data = tuple.get(view.hoff()..).ok_or(DAMAGED)?;
    let nulls = view.null_bitmap();
    if nulls.is_none() && view.infomask() & HAS_NULL != 0 {
        return Err(DAMAGED);
    }
    deform_data(data, nulls, wanted, desc, out)?;
    Ok(())
}

/// Takes the first `wanted` attributes of a tuple's data apart; where they end. `nulls`, if any, and `out` have room for
/// them all.
#[inline]
pub(super) fn deform_data<'a>(
    data: &'a [u8],
    nulls: Option<&[u8]>,
    wanted: usize,
    desc: &TupleDesc,
    out: &mut [AttrValue<'a>],
) -> Result<usize, &'static str> {
    let mut at = 0usize;
    let mut first = 0;
    if nulls.is_none() {
        // The leading fixed part: no arithmetic per attribute.
        let n = desc.fixed.len().min(wanted);
        while first < n && desc.attrs[first].len >= 0 {
            let start = desc.fixed[first] as usize;
            at = start + desc.attrs[first].len as usize;
            out[first] = AttrValue::Inline(data.get(start..at).ok_or(DAMAGED)?);
            first += 1;
        }
    }
    for i in first..wanted {
        if let Some(bitmap) = nulls
            && bitmap[i / 8] & (1 << (i % 8)) == 0
        {
            out[i] = AttrValue::Null;
            continue;
        }
        let attr = desc.attrs[i];
        if attr.len >= 0 {
            let start = align(at, attr.align);
            at = start + attr.len as usize;
            out[i] = AttrValue::Inline(data.get(start..at).ok_or(DAMAGED)?);
        } else if attr.len == -1 {
            (out[i], at) = varlena(data, at, attr.align)?;
        } else {
            let start = align(at, attr.align);
            let rest = data.get(start..).ok_or(DAMAGED)?;
            let len = rest.iter().position(|&b| b == 0).ok_or(DAMAGED)?;
            out[i] = AttrValue::Inline(&rest[..len]);
            at = start + len + 1;
        }
    }
    Ok(at)
}

/// The value at `at` (to be aligned unless its header is short) and where it ends.
#[inline]
pub(super) fn varlena(
    data: &[u8],
    at: usize,
    to: u8,
) -> Result<(AttrValue<'_>, usize), &'static str> {
    let first = *data.get(at).ok_or(DAMAGED)?;
    if first & 1 == 1 {
        if first == EXTERNAL {
            let end = at + EXTERNAL_SIZE;
            let b = data.get(at + 2..end).ok_or(DAMAGED)?;
            let pointer = ToastPointer::from_bytes(b.try_into().map_err(|_| DAMAGED)?);
            return Ok((AttrValue::External(pointer), end));
        }
        let end = at + usize::from(first >> 1);
        return Ok((AttrValue::Inline(data.get(at + 1..end).ok_or(DAMAGED)?), end));
    }
    let start = align(at, to);
    // The aligned place may hold a short header too, if no padding was needed before it.
    let word = |at: usize| -> Result<u32, &'static str> {
        let b = data.get(at..at + 4).ok_or(DAMAGED)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    let header = word(start)?;
    let end = start + (header >> 2) as usize;
    match header & 3 {
        0 => {
            let bytes = data.get(start + VARLENA_HEADER..end).ok_or(DAMAGED)?;
            Ok((AttrValue::Inline(bytes), end))
        }
        2 => {
            let raw_size = word(start + 4)?;
            let data = data.get(start + COMPRESSED_HEADER..end).ok_or(DAMAGED)?;
            Ok((AttrValue::Compressed { raw_size, data }, end))
        }
        _ => Err("tuple is damaged: padding before a short value"),
    }
}

/// Where the value at `at` (as [`varlena`] takes it) ends, by its header alone.
#[inline]
pub(super) fn varlena_end(data: &[u8], at: usize, to: u8) -> Result<usize, &'static str> {
    let first = *data.get(at).ok_or(DAMAGED)?;
    if first & 1 == 1 {
        return Ok(at + if first == EXTERNAL { EXTERNAL_SIZE } else { usize::from(first >> 1) });
    }
    let start = align(at, to);
    let b = data.get(start..start + 4).ok_or(DAMAGED)?;
    Ok(start + (u32::from_le_bytes([b[0], b[1], b[2], b[3]]) >> 2) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desc(a: &[(i16, u8)]) -> TupleDesc {
        TupleDesc::new(a.iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect())
    }

    #[test]
    fn round_trip_of_every_form() {
        let d =
            desc(&[(4, 4), (-1, 4), (8, 8), (-1, 4), (-1, 4), (2, 2), (-2, 1), (-1, 8), (1, 1)]);
        let long = vec![7u8; 300];
        let pointer = ToastPointer::sample();
        let values = [
            AttrValue::Inline(&[1, 2, 3, 4]),
            AttrValue::Inline(b"short"),
            AttrValue::Inline(&[9; 8]),
            AttrValue::External(pointer),
            AttrValue::Inline(&long),
            AttrValue::Inline(&[5, 6]),
            AttrValue::Inline(b"cstring"),
            AttrValue::Compressed { raw_size: 4000, data: &long[..99] },
            AttrValue::Inline(&[1]),
        ];
        // Every subset of nulls.
        for mask in 0..1u32 << values.len() {
            let v: Vec<_> = values
                .iter()
                .enumerate()
                .map(|(i, &v)| if mask >> i & 1 == 1 { AttrValue::Null } else { v })
                .collect();
            let t = form_values(&d, &v);
            let mut out = vec![AttrValue::Null; v.len()];
            deform(&t, &d, &mut out).unwrap();
            assert_eq!(out, v);
            let mut some = vec![AttrValue::Null; 5];
            deform(&t, &d, &mut some).unwrap();
            assert_eq!(some, v[..5]);
            // Cut anywhere: an error or a wrong value, never a panic.
            for cut in 0..t.len() {
                let _ = deform(&t[..cut], &d, &mut out);
            }
        }
    }

    #[test]
    fn empty_and_missing() {
        let d = desc(&[(-1, 4), (4, 4)]);
        let t = form_tuple(&d, &[Some(b"")]);
        assert_eq!(t.len(), HEADER + 1);
        let mut out = [AttrValue::Inline(b"x"); 2];
        deform(&t, &d, &mut out).unwrap();
        assert_eq!(out, [AttrValue::Inline(b""), AttrValue::Null]);
    }
}
