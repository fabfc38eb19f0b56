//! Arrays: construction, subscripts, slices, assignment, joining.

use crate::{ArrayValue, Datum, compare};
use base::{Oid, Result, bail, err};
use std::sync::Arc;

/// The most elements.
pub const ELEMENTS_MAX: usize = 134_217_727;

fn too_big() -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ELEMENTS_MAX})")
}

/// How many elements an array of these dimensions has.
///
/// # Errors
/// `54000`
pub fn element_count(dims: &[(i32, i32)]) -> Result<usize> {
    let mut n = usize::from(!dims.is_empty());
    for (len, _) in dims {
        let len = usize::try_from(*len).map_err(|_| too_big())?;
        n = n.checked_mul(len).filter(|n| *n <= ELEMENTS_MAX).ok_or_else(too_big)?;
    }
    for (len, low) in dims {
        if low.checked_add(*len).is_none() {
            bail!(PROGRAM_LIMIT_EXCEEDED, "array lower bound is too large: {low}");
        }
    }
    Ok(n)
}

/// `ARRAY[…]` of elements.
pub fn construct(element_type: Oid, elements: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(ArrayValue::one_dimension(element_type, elements)))
}

/// `ARRAY(SELECT …)` of arrays: one dimension more.
///
/// # Errors
/// `22004`, `2202E`: NULL, empty and unlike ones.
pub fn accumulate(element_type: Oid, arrays: &[Datum]) -> Result<Datum> {
    let mut first: Option<&[(i32, i32)]> = None;
    for a in arrays {
        let Datum::Array(a) = a else {
            bail!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")
        };
        if a.dims.is_empty() && first.is_none() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays");
        }
        if *first.get_or_insert(&a.dims) != a.dims {
            bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality");
        }
    }
    construct_nested(element_type, arrays)
}

/// `ARRAY[…]` of arrays: one dimension more. NULL inner arrays are skipped as empty ones are.
///
/// # Errors
/// `2202E` when they do not match.
pub fn construct_nested(element_type: Oid, arrays: &[Datum]) -> Result<Datum> {
    let mut dims: Option<&[(i32, i32)]> = None;
    let mut elements = Vec::new();
    let mut count = 0;
    let mut empty = 0;
    for a in arrays {
        let Datum::Array(a) = a else {
            empty += 1;
            continue;
        };
        if a.dims.is_empty() {
            empty += 1;
            continue;
        }
        match dims {
            None => dims = Some(&a.dims),
            Some(d) if d == a.dims => {}
            Some(_) => bail!(
                ARRAY_SUBSCRIPT_ERROR,
                "multidimensional arrays must have array expressions with matching dimensions"
            ),
        }
        count += 1;
        elements.extend(a.elements.iter().cloned());
    }
    let Some(inner) = dims else { return Ok(construct(element_type, Vec::new())) };
    if empty > 0 {
        bail!(
            ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions"
        );
    }
    if inner.len() >= 6 {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions ({}) exceeds the maximum allowed (6)",
            inner.len() + 1
        );
    }
    let mut all = vec![(count, 1)];
    all.extend_from_slice(inner);
    Ok(Datum::Array(Arc::new(ArrayValue { element_type, dims: all, elements })))
}

/// `a[i][j]…`: NULL outside the bounds or with the wrong number of subscripts.
pub fn subscript(a: &ArrayValue, subscripts: &[i32]) -> Datum {
    offset(a, subscripts).and_then(|i| a.elements.get(i)).cloned().unwrap_or_default()
}

fn offset(a: &ArrayValue, subscripts: &[i32]) -> Option<usize> {
    if subscripts.len() != a.dims.len() {
        return None;
    }
    let mut i = 0usize;
    for (s, (len, low)) in subscripts.iter().zip(&a.dims) {
        let at = i64::from(*s) - i64::from(*low);
        if at < 0 || at >= i64::from(*len) {
            return None;
        }
        i = i * (*len as usize) + at as usize;
    }
    Some(i)
}

/// `a[l:u]…`: each bound may be left out (None). Dimensions beyond the ones given are taken whole; the
/// result is counted from 1.
pub fn slice(a: &ArrayValue, bounds: &[(Option<i32>, Option<i32>)]) -> Datum {
    let empty = || construct(a.element_type, Vec::new());
    if bounds.len() > a.dims.len() || a.dims.is_empty() {
        return empty();
    }
    let mut ranges = Vec::new();
    for (d, (len, low)) in a.dims.iter().enumerate() {
        let high = low + len - 1;
        let (l, u) = bounds.get(d).copied().unwrap_or((None, None));
        let l = l.unwrap_or(*low).max(*low);
        let u = u.unwrap_or(high).min(high);
        if l > u {
            return empty();
        }
        ranges.push(((l - low) as usize, (u - low) as usize));
    }
    let mut elements = Vec::new();
    collect(a, &ranges, 0, 0, &mut elements);
    let dims = ranges.iter().map(|(l, u)| ((u - l + 1) as i32, 1)).collect();
    Datum::Array(Arc::new(ArrayValue { element_type: a.element_type, dims, elements }))
}

fn collect(a: &ArrayValue, ranges: &[(usize, usize)], d: usize, at: usize, out: &mut Vec<Datum>) {
    let (l, u) = ranges[d];
    let width = a.dims[d].0 as usize;
    for i in l..=u {
        let at = at * width + i;
        if d + 1 == ranges.len() {
            out.push(a.elements.get(at).cloned().unwrap_or_default());
        } else {
            collect(a, ranges, d + 1, at, out);
        }
    }
}

/// `a[i] = v`: a one-dimensional array grows at either end, with NULLs in between; an empty one
/// becomes an array of one element with those lower bounds.
///
/// # Errors
/// `2202E`
pub fn assign(a: &ArrayValue, subscripts: &[i32], value: Datum) -> Result<Datum> {
    let mut r = a.clone();
    put(&mut r, subscripts, value)?;
    Ok(Datum::Array(Arc::new(r)))
}

/// [`assign`] in place.
///
/// # Errors
/// `2202E`; the array is as it was then.
pub fn put(a: &mut ArrayValue, subscripts: &[i32], value: Datum) -> Result<()> {
    if a.dims.is_empty() {
        if subscripts.len() > 6 {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({}) exceeds the maximum allowed (6)",
                subscripts.len()
            );
        }
        let dims: Vec<(i32, i32)> = subscripts.iter().map(|s| (1, *s)).collect();
        element_count(&dims)?;
        a.dims = dims;
        a.elements = vec![value];
        return Ok(());
    }
    if subscripts.len() != a.dims.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    if let Some(i) = offset(a, subscripts) {
        a.elements[i] = value;
        return Ok(());
    }
    if a.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range");
    }
    let (len, low) = a.dims[0];
    let at = subscripts[0];
    if at == i32::MAX {
        return Err(too_big());
    }
    if at < low {
        let gap = i64::from(low) - i64::from(at);
        let n = i64::from(len) + gap;
        if n > ELEMENTS_MAX as i64 {
            return Err(too_big());
        }
        let mut elements = vec![Datum::Null; gap as usize];
        elements[0] = value;
        elements.append(&mut a.elements);
        a.elements = elements;
        a.dims = vec![(n as i32, at)];
    } else {
        let n = i64::from(at) - i64::from(low) + 1;
        if n > ELEMENTS_MAX as i64 {
            return Err(too_big());
        }
        a.elements.resize(n as usize, Datum::Null);
        a.elements[n as usize - 1] = value;
        a.dims = vec![(n as i32, low)];
    }
    Ok(())
}

/// `a[l:u] = source` for one dimension.
///
/// # Errors
/// `2202E`, `0A000` for more dimensions.
pub fn assign_slice(
    a: &ArrayValue,
    bounds: &[(Option<i32>, Option<i32>)],
    source: &ArrayValue,
) -> Result<Datum> {
    let [(l, u)] = bounds else {
        return Err(base::Error::unsupported("assignment to a slice of a multidimensional array"));
    };
    if a.dims.len() > 1 {
        return Err(base::Error::unsupported("assignment to a slice of a multidimensional array"));
    }
    let (len, low) = a.dims.first().copied().unwrap_or((0, l.unwrap_or(1)));
    if a.dims.is_empty() && (l.is_none() || u.is_none()) {
        let text = "array slice subscript must provide both boundaries";
        return Err(base::SqlError::new(base::SqlState::ARRAY_SUBSCRIPT_ERROR, text)
            .detail("When assigning to a slice of an empty array value, slice boundaries must be fully specified.")
            .into());
    }
    let l = l.unwrap_or(low);
    let u = u.unwrap_or(low + len - 1);
    if l > u {
        bail!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound");
    }
    let n = i64::from(u) - i64::from(l) + 1;
    if (source.elements.len() as i64) < n {
        bail!(ARRAY_SUBSCRIPT_ERROR, "source array too small");
    }
    let mut result = a.clone();
    for (i, v) in (l..=u).zip(&source.elements) {
        match assign(&result, &[i], v.clone())? {
            Datum::Array(next) => result = Arc::unwrap_or_clone(next),
            _ => break,
        }
    }
    Ok(Datum::Array(Arc::new(result)))
}

/// `array || element` and `element || array`.
///
/// # Errors
/// `22000` for more than one dimension.
pub fn append(a: &ArrayValue, value: Datum, front: bool) -> Result<Datum> {
    if a.dims.len() > 1 {
        bail!(DATA_EXCEPTION, "argument must be empty or one-dimensional array");
    }
    let mut r = a.clone();
    let (len, low) = a.dims.first().copied().unwrap_or((0, 1));
    if front {
        r.elements.insert(0, value);
    } else {
        r.elements.push(value);
    }
    // a prepended element takes the old lower bound's place
    r.dims = vec![(len + 1, low)];
    element_count(&r.dims)?;
    Ok(Datum::Array(Arc::new(r)))
}

/// `array || array`.
///
/// # Errors
/// `2202E`
pub fn catenate(a: &ArrayValue, b: &ArrayValue) -> Result<Datum> {
    let incompatible = |detail: &str| -> base::Error {
        base::SqlError::new(
            base::SqlState::ARRAY_SUBSCRIPT_ERROR,
            "cannot concatenate incompatible arrays",
        )
        .detail(detail)
        .into()
    };
    if b.dims.is_empty() {
        return Ok(Datum::Array(Arc::new(a.clone())));
    }
    if a.dims.is_empty() {
        return Ok(Datum::Array(Arc::new(b.clone())));
    }
    let (n, m) = (a.dims.len(), b.dims.len());
    let mut dims;
    if n == m {
        if a.dims[1..] != b.dims[1..] {
            return Err(incompatible(
                "Arrays with differing element dimensions are not compatible for concatenation.",
            ));
        }
        dims = a.dims.clone();
        dims[0].0 += b.dims[0].0;
    } else if n + 1 == m {
        if a.dims[..] != b.dims[1..] {
            return Err(incompatible(
                "Arrays with differing dimensions are not compatible for concatenation.",
            ));
        }
        dims = b.dims.clone();
        dims[0].0 += 1;
    } else if m + 1 == n {
        if b.dims[..] != a.dims[1..] {
            return Err(incompatible(
                "Arrays with differing dimensions are not compatible for concatenation.",
            ));
        }
        dims = a.dims.clone();
        dims[0].0 += 1;
    } else {
        return Err(incompatible(&format!(
            "Arrays of {n} and {m} dimensions are not compatible for concatenation."
        )));
    }
    element_count(&dims)?;
    let elements = a.elements.iter().chain(&b.elements).cloned().collect();
    Ok(Datum::Array(Arc::new(ArrayValue { element_type: a.element_type, dims, elements })))
}

/// The offset of the first element at or after `skip` that is `wanted` (NULL finds NULL).
pub fn position_of(a: &ArrayValue, wanted: &Datum, skip: usize) -> Option<usize> {
    let hit = |e: &Datum| match (e, wanted) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        _ => compare::equal(a.element_type, e, wanted),
    };
    a.elements.iter().skip(skip).position(hit).map(|i| i + skip)
}
