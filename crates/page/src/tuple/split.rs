//! A tuple's data taken apart into the bytes that each attribute takes there.

use super::form::{AttrValue, DAMAGED, TupleDesc, align, varlena};

/// An attribute as it stands in a tuple's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredAttr<'a> {
    /// All its bytes, a header included, padding before it not.
    pub bytes: &'a [u8],
    /// What they say.
    pub value: AttrValue<'a>,
}

/// The first `wanted` attributes in a tuple's data, `None` for nulls, and where they end. `nulls`: one bit an attribute, lowest first, 1 =
/// not null.
///
/// # Errors
/// Damaged data, or fewer attributes or null bits than wanted.
pub fn split_data<'a>(
    data: &'a [u8],
    nulls: Option<&[u8]>,
    wanted: usize,
    desc: &TupleDesc,
) -> Result<(Vec<Option<StoredAttr<'a>>>, usize), &'static str> {
    let attrs = desc.attrs().get(..wanted).ok_or(DAMAGED)?;
    let mut out = Vec::with_capacity(wanted);
    let mut at = 0;
    for (i, attr) in attrs.iter().enumerate() {
        if let Some(bitmap) = nulls
            && bitmap.get(i / 8).ok_or(DAMAGED)? & (1 << (i % 8)) == 0
        {
            out.push(None);
            continue;
        }
        let (start, value, end);
        if attr.len == -1 {
            // A short header stands where the value before ends, a long one where the type wants it.
            let short = data.get(at).ok_or(DAMAGED)? & 1 == 1;
            start = if short { at } else { align(at, attr.align) };
            (value, end) = varlena(data, at, attr.align)?;
        } else {
            start = align(at, attr.align);
            let rest = data.get(start..).ok_or(DAMAGED)?;
            let len = match usize::try_from(attr.len) {
                Ok(len) => len,
                // Up to its zero byte.
                Err(_) => rest.iter().position(|b| *b == 0).ok_or(DAMAGED)? + 1,
            };
            end = start + len;
            value = AttrValue::Inline(rest.get(..len).ok_or(DAMAGED)?);
        }
        let bytes = data.get(start..end).ok_or(DAMAGED)?;
        out.push(Some(StoredAttr { bytes, value }));
        at = end;
    }
    Ok((out, at))
}

#[cfg(test)]
mod tests {
    use super::super::form::{PhysicalAttr, form_values};
    use super::super::header::TupleView;
    use super::*;

    #[test]
    fn every_attribute_has_its_own_bytes() {
        let all = [(4, 4), (-1, 4), (8, 8), (-1, 4), (-2, 1), (1, 1)];
        let desc = TupleDesc::new(all.iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect());
        let long = [7; 200];
        let values = [&[1, 2, 3, 4][..], b"short", &[9; 8], &long, b"word", &[5]];
        for mask in 0..64u32 {
            let v: Vec<_> = (0..6)
                .map(|i| match mask >> i & 1 {
                    1 => AttrValue::Null,
                    _ => AttrValue::Inline(values[i]),
                })
                .collect();
            let tuple = form_values(&desc, &v);
            let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
            let data = &tuple[view.hoff()..];
            let (split, end) = split_data(data, view.null_bitmap(), 6, &desc).unwrap();
            assert_eq!(end, data.len());
            for (i, attr) in split.iter().enumerate() {
                assert_eq!(attr.is_none(), v[i] == AttrValue::Null);
                let Some(attr) = attr else { continue };
                let header = [0, 1, 0, 4, 0, 0][i];
                assert_eq!(&attr.bytes[header..][..values[i].len()], values[i]);
                assert_eq!(attr.bytes.len(), header + values[i].len() + usize::from(i == 4));
            }
            for cut in 0..data.len() {
                let _ = split_data(&data[..cut], view.null_bitmap(), 6, &desc);
            }
        }
        assert!(split_data(&[], None, 7, &desc).is_err());
    }
}
