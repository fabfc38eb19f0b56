//! # Purpose
//! Reading some attributes of a tuple, in their order, without taking those between them apart: what a scan does of
//! each row it looks at, most of which a filter then turns away.
//!
//! # Invariants
//! Gives of every attribute what [`deform`](super::deform) gives.

use super::form::{AttrValue, DAMAGED, PhysicalAttr, TupleDesc, align, varlena, varlena_end};
use super::header::{HAS_NULL, TupleView};

/// Where one is in a tuple's data.
pub struct TupleWalk<'a, 'd> {
    data: &'a [u8],
    nulls: Option<&'a [u8]>,
    desc: &'d TupleDesc,
    /// Attributes that are stored.
    stored: usize,
    /// The next attribute, and where the one before ends.
    next: usize,
    at: usize,
}

impl<'a, 'd> TupleWalk<'a, 'd> {
    /// Begins at the first attribute.
    ///
    /// # Errors
    /// What is wrong with the tuple.
    #[inline]
    pub fn new(tuple: &TupleView<'a>, desc: &'d TupleDesc) -> Result<Self, &'static str> {
        let data = tuple.bytes.get(tuple.hoff()..).ok_or(DAMAGED)?;
        let nulls = tuple.null_bitmap();
        if nulls.is_none() && tuple.infomask() & HAS_NULL != 0 {
            return Err(DAMAGED);
        }
        let stored = tuple.natts().min(desc.len());
        Ok(TupleWalk { data, nulls, desc, stored, next: 0, at: 0 })
    }

    /// Attribute `n`. One that is not stored (added after the tuple was made) is null; see [`TupleView::natts`]. Going back begins at the first
    /// attribute again.
    ///
    /// # Errors
    /// What is wrong with the tuple.
    #[inline]
    pub fn get(&mut self, n: usize) -> Result<AttrValue<'a>, &'static str> {
        if n >= self.stored || self.is_null(n) {
            return Ok(AttrValue::Null);
        }
        if n < self.next {
            (self.next, self.at) = (0, 0);
        }
        self.go_to(n)?;
        let attr = self.desc.attrs()[n];
        self.next = n + 1;
        if attr.len == -1 {
            let (value, end) = varlena(self.data, self.at, attr.align)?;
            self.at = end;
            return Ok(value);
        }
        let start = align(self.at, attr.align);
        let (end, after) = self.plain_end(start, attr)?;
        self.at = after;
        Ok(AttrValue::Inline(self.data.get(start..end).ok_or(DAMAGED)?))
    }

    #[inline]
    fn is_null(&self, n: usize) -> bool {
        self.nulls.is_some_and(|bits| bits[n / 8] & (1 << (n % 8)) == 0)
    }

    /// Where a value that begins at `start` ends, and what lies behind it begins.
    #[inline]
    fn plain_end(&self, start: usize, attr: PhysicalAttr) -> Result<(usize, usize), &'static str> {
        if attr.len >= 0 {
            let end = start + attr.len as usize;
            return Ok((end, end));
        }
        let rest = self.data.get(start..).ok_or(DAMAGED)?;
        let len = rest.iter().position(|&b| b == 0).ok_or(DAMAGED)?;
        Ok((start + len, start + len + 1))
    }

    /// Passes over what lies before attribute `n`.
    #[inline]
    fn go_to(&mut self, n: usize) -> Result<(), &'static str> {
        if self.nulls.is_none()
            && let Some((last, start)) = self.desc.known_start(n)
            && last >= self.next
        {
            (self.next, self.at) = (last, start);
        }
        while self.next < n {
            let attr = self.desc.attrs()[self.next];
            if !self.is_null(self.next) {
                self.at = if attr.len == -1 {
                    varlena_end(self.data, self.at, attr.align)?
                } else {
                    self.plain_end(align(self.at, attr.align), attr)?.1
                };
            }
            self.next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::varlena::ToastPointer;
    use super::super::{deform, form_values};
    use super::*;
    use base::Xid;

    /// Every choice of attributes of tuples with every choice of nulls, beside taking the whole apart.
    #[test]
    fn any_attributes_as_deform_gives_them() {
        let attr = |(len, align)| PhysicalAttr::new(len, align);
        let d = TupleDesc::new(
            [(4, 4), (2, 2), (-1, 4), (8, 8), (-1, 4), (-2, 1), (-1, 8), (1, 1)].map(attr).into(),
        );
        let long = vec![7u8; 300];
        let pointer = ToastPointer::sample();
        let values = [
            AttrValue::Inline(&[1, 2, 3, 4]),
            AttrValue::Inline(&[5, 6]),
            AttrValue::Inline(b"short"),
            AttrValue::Inline(&[9; 8]),
            AttrValue::External(pointer),
            AttrValue::Inline(b"cstring"),
            AttrValue::Compressed { raw_size: 4000, data: &long[..99] },
            AttrValue::Inline(&[1]),
        ];
        for mask in 0..1u32 << values.len() {
            let null = |i: usize| mask >> i & 1 == 1;
            let v: Vec<_> = (0..values.len())
                .map(|i| if null(i) { AttrValue::Null } else { values[i] })
                .collect();
            // The last attributes were added later.
            for stored in [v.len(), v.len() - 2] {
                let tuple = form_values(&d, &v[..stored]);
                let view = TupleView { bytes: &tuple, xid_base: Xid(0) };
                let mut all = vec![AttrValue::Null; v.len()];
                deform(&tuple, &d, &mut all).unwrap();
                for chosen in 0..1u32 << v.len() {
                    let mut walk = TupleWalk::new(&view, &d).unwrap();
                    for n in (0..v.len()).filter(|n| chosen >> n & 1 == 1) {
                        assert_eq!(walk.get(n).unwrap(), all[n], "{n} of {chosen:b}, {mask:b}");
                    }
                    let again = chosen.trailing_zeros() as usize % v.len();
                    assert_eq!(walk.get(again).unwrap(), all[again], "{again}, {mask:b}");
                }
            }
        }
    }

    /// Cut anywhere: an error or a wrong value, never a panic.
    #[test]
    fn damaged_tuples_are_errors() {
        let d = TupleDesc::new(vec![
            PhysicalAttr::new(4, 4),
            PhysicalAttr::new(-1, 4),
            PhysicalAttr::new(-2, 1),
            PhysicalAttr::new(8, 8),
        ]);
        let values = [
            AttrValue::Inline(&[1, 2, 3, 4]),
            AttrValue::Null,
            AttrValue::Inline(b"cstring"),
            AttrValue::Inline(&[9; 8]),
        ];
        let tuple = form_values(&d, &values);
        let mut refused = 0;
        for cut in 0..tuple.len() {
            let view = TupleView { bytes: &tuple[..cut], xid_base: Xid(0) };
            match TupleWalk::new(&view, &d) {
                Ok(mut walk) => refused += u32::from(walk.get(3).is_err()),
                Err(_) => refused += 1,
            }
        }
        assert!(refused as usize >= tuple.len() / 2, "{refused} of {}", tuple.len());
    }
}
