//! Arrays: the functions. Subscripts, slices and construction are in [`crate::array`].

use crate::args::*;
use crate::array::{append, catenate, element_count, position_of};
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S, FunctionBody::Set};
use crate::{ArrayValue, Datum, Env, compare, oids};
use base::{Oid, Result, bail, err};
use std::sync::Arc;

fn arr(a: ArrayValue) -> Datum {
    Datum::Array(Arc::new(a))
}

fn one_dim(element: Oid, items: Vec<Datum>) -> Datum {
    arr(ArrayValue::one_dimension(element, items))
}

fn dimension(a: &[Datum]) -> Result<Option<(i32, i32)>> {
    let (array, n) = (array(a, 0)?, int4(a, 1)?);
    Ok(usize::try_from(n)
        .ok()
        .and_then(|n| n.checked_sub(1))
        .and_then(|i| array.dims.get(i))
        .copied())
}

fn same_element(x: &ArrayValue, y: &ArrayValue) -> Result<()> {
    if x.element_type != y.element_type {
        bail!(DATATYPE_MISMATCH, "cannot compare arrays of different element types");
    }
    Ok(())
}

fn holds(x: &ArrayValue, v: &Datum) -> bool {
    !v.is_null() && x.elements.iter().any(|e| !e.is_null() && compare::equal(x.element_type, e, v))
}

/// Every element of `y` is in `x`.
fn contains(x: &ArrayValue, y: &ArrayValue) -> Result<bool> {
    same_element(x, y)?;
    Ok(y.elements.iter().all(|v| holds(x, v)))
}

fn overlaps(x: &ArrayValue, y: &ArrayValue) -> Result<bool> {
    same_element(x, y)?;
    Ok(y.elements.iter().any(|v| holds(x, v)))
}

fn to_string(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let array = array(a, 0)?;
    let separator = text(a, 1)?;
    let null = if is_null(a, 2) { None } else { Some(text(a, 2)?) };
    let mut out = String::new();
    let mut first = true;
    for e in &array.elements {
        if e.is_null() && null.is_none() {
            continue;
        }
        if !first {
            out.push_str(separator);
        }
        first = false;
        match (e, null) {
            (Datum::Null, Some(n)) => out.push_str(n),
            _ => crate::io::text_output(array.element_type, e, env, &mut out)?,
        }
        super::text::check_size(out.len())?;
    }
    Ok(Datum::text(out))
}

/// The pieces of a string; a NULL separator splits into characters.
fn pieces(a: &[Datum]) -> Result<Vec<Datum>> {
    let s = text(a, 0)?;
    let null = if is_null(a, 2) { None } else { Some(text(a, 2)?) };
    let wrap = |piece: &str| if null == Some(piece) { Datum::Null } else { Datum::text(piece) };
    if s.is_empty() {
        return Ok(Vec::new());
    }
    if is_null(a, 1) {
        let mut buffer = [0u8; 4];
        return Ok(s.chars().map(|c| wrap(c.encode_utf8(&mut buffer))).collect());
    }
    let separator = text(a, 1)?;
    if separator.is_empty() {
        return Ok(vec![wrap(s)]);
    }
    Ok(s.split(separator).map(wrap).collect())
}

fn string_to_array(a: &[Datum]) -> Result<Datum> {
    if is_null(a, 0) {
        return Ok(Datum::Null);
    }
    Ok(one_dim(oids::TEXT, pieces(a)?))
}

fn rows(items: Vec<Datum>) -> crate::registry::RowIter {
    Box::new(items.into_iter().map(|d| Ok(vec![d])))
}

fn search(a: &[Datum], start: Option<i32>) -> Result<Datum> {
    if is_null(a, 0) {
        return Ok(Datum::Null);
    }
    let array = array(a, 0)?;
    if array.dims.len() > 1 {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "searching for elements in multidimensional arrays is not supported"
        );
    }
    let low = array.dims.first().map_or(1, |d| d.1);
    let skip = start.map_or(0, |s| i64::from(s) - i64::from(low)).max(0) as usize;
    let wanted = a.get(1).unwrap_or(&Datum::Null);
    Ok(position_of(array, wanted, skip).map_or(Datum::Null, |i| Datum::Int4(low + i as i32)))
}

fn replace(a: &[Datum], remove: bool) -> Result<Datum> {
    if is_null(a, 0) {
        return Ok(Datum::Null);
    }
    let array = array(a, 0)?;
    if remove && array.dims.len() > 1 {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "removing elements from multidimensional arrays is not supported"
        );
    }
    let wanted = a.get(1).unwrap_or(&Datum::Null);
    let hit = |e: &Datum| match (e, wanted) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        _ => compare::equal(array.element_type, e, wanted),
    };
    if remove {
        let items: Vec<Datum> = array.elements.iter().filter(|e| !hit(e)).cloned().collect();
        if items.len() == array.elements.len() {
            return Ok(a[0].clone());
        }
        let low = array.dims.first().map_or(1, |d| d.1);
        let mut r = ArrayValue::one_dimension(array.element_type, items);
        if let Some(d) = r.dims.first_mut() {
            d.1 = low;
        }
        return Ok(arr(r));
    }
    let with = a.get(2).cloned().unwrap_or_default();
    let elements =
        array.elements.iter().map(|e| if hit(e) { with.clone() } else { e.clone() }).collect();
    Ok(arr(ArrayValue { element_type: array.element_type, dims: array.dims.clone(), elements }))
}

fn fill(a: &[Datum], types: &[Oid]) -> Result<Datum> {
    if is_null(a, 1) || a.len() > 2 && is_null(a, 2) {
        bail!(NULL_VALUE_NOT_ALLOWED, "dimension array or low bound array cannot be null");
    }
    let wrong = |why: &str| {
        let text = "wrong number of array subscripts";
        base::SqlError::new(base::SqlState::ARRAY_SUBSCRIPT_ERROR, text).detail(why).into()
    };
    // Each array is looked at to its end before the other.
    let numbers = |array: &ArrayValue| -> Result<Vec<i32>> {
        if array.dims.len() > 1 {
            return Err(wrong("Dimension array must be one dimensional."));
        }
        let int = |d: &Datum| match d {
            Datum::Int4(n) => Ok(*n),
            _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
        };
        array.elements.iter().map(int).collect()
    };
    let lengths = numbers(array(a, 1)?)?;
    if lengths.len() > 6 {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions ({}) exceeds the maximum allowed (6)",
            lengths.len()
        );
    }
    let bounds = if a.len() > 2 { numbers(array(a, 2)?)? } else { vec![1; lengths.len()] };
    if bounds.len() != lengths.len() {
        return Err(wrong("Low bound array has different size than dimensions array."));
    }
    let dims: Vec<(i32, i32)> = lengths.into_iter().zip(bounds).collect();
    let element = types.first().copied().unwrap_or_default();
    let n = element_count(&dims)?;
    if n == 0 {
        return Ok(one_dim(element, Vec::new()));
    }
    Ok(arr(ArrayValue { element_type: element, dims, elements: vec![a[0].clone(); n] }))
}

fn subscripts(a: &[Datum]) -> Result<crate::registry::RowIter> {
    let Some((len, low)) = dimension(a)? else { return Ok(rows(Vec::new())) };
    let reverse = a.len() > 2 && boolean(a, 2)?;
    let high = low + len - 1;
    Ok(if reverse {
        Box::new((low..=high).rev().map(|i| Ok(vec![Datum::Int4(i)])))
    } else {
        Box::new((low..=high).map(|i| Ok(vec![Datum::Int4(i)])))
    })
}

fn sort(a: &[Datum]) -> Result<Datum> {
    let x = array(a, 0)?;
    let descending = a.len() > 1 && boolean(a, 1)?;
    // Where NULLs go is said of elements; within arrays that are sorted they are in the order of arrays.
    let nulls_first = if a.len() > 2 && x.dims.len() < 2 { boolean(a, 2)? } else { descending };
    let mut r = x.clone();
    let width = x.dims.first().map_or(1, |d| x.elements.len() / (d.0.max(1) as usize)).max(1);
    let mut chunks: Vec<Vec<Datum>> = x.elements.chunks(width).map(<[Datum]>::to_vec).collect();
    chunks.sort_by(|p, q| {
        let mut o = std::cmp::Ordering::Equal;
        for (p, q) in p.iter().zip(q) {
            o = match (p.is_null(), q.is_null()) {
                (true, true) => std::cmp::Ordering::Equal,
                (true, false) => {
                    if nulls_first {
                        std::cmp::Ordering::Less
                    } else {
                        std::cmp::Ordering::Greater
                    }
                }
                (false, true) => {
                    if nulls_first {
                        std::cmp::Ordering::Greater
                    } else {
                        std::cmp::Ordering::Less
                    }
                }
                _ => {
                    let o = compare::compare(x.element_type, p, q);
                    if descending { o.reverse() } else { o }
                }
            };
            if o != std::cmp::Ordering::Equal {
                break;
            }
        }
        o
    });
    r.elements = chunks.into_iter().flatten().collect();
    Ok(arr(r))
}

/// `width_bucket(value, thresholds)`: how many thresholds are not above the value.
fn bucket(a: &[Datum]) -> Result<Datum> {
    let x = array(a, 1)?;
    if x.dims.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array");
    }
    if x.elements.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs");
    }
    let n = x.elements.partition_point(|t| {
        compare::compare(x.element_type, t, &a[0]) != std::cmp::Ordering::Greater
    });
    Ok(Datum::Int4(n as i32))
}

const TO_TABLE: FunctionBody = Set(|_, a| {
    if is_null(a, 0) {
        return Ok(rows(Vec::new()));
    }
    Ok(rows(pieces(a)?))
});

pub(super) const BODIES: BodyTable = &[
    (
        "array_ndims",
        S(|_, a| {
            Ok(match array(a, 0)?.dims.len() {
                0 => Datum::Null,
                n => Datum::Int4(n as i32),
            })
        }),
    ),
    (
        "array_dims",
        S(|_, a| {
            let x = array(a, 0)?;
            if x.dims.is_empty() {
                return Ok(Datum::Null);
            }
            Ok(Datum::text(
                x.dims.iter().map(|(n, l)| format!("[{l}:{}]", l + n - 1)).collect::<String>(),
            ))
        }),
    ),
    ("array_length", S(|_, a| Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int4(d.0))))),
    ("array_lower", S(|_, a| Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int4(d.1))))),
    (
        "array_upper",
        S(|_, a| Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int4(d.1 + d.0 - 1)))),
    ),
    ("array_cardinality", S(|_, a| Ok(Datum::Int4(array(a, 0)?.elements.len() as i32)))),
    (
        "array_append",
        FunctionBody::ScalarTyped(|_, a, ty, _| {
            let element = ty.get(1).copied().unwrap_or_default();
            let empty = ArrayValue::one_dimension(element, Vec::new());
            let x = if is_null(a, 0) { &empty } else { array(a, 0)? };
            append(x, a.get(1).cloned().unwrap_or_default(), false)
        }),
    ),
    (
        "array_prepend",
        FunctionBody::ScalarTyped(|_, a, ty, _| {
            let element = ty.first().copied().unwrap_or_default();
            let empty = ArrayValue::one_dimension(element, Vec::new());
            let x = if is_null(a, 1) { &empty } else { array(a, 1)? };
            append(x, a.first().cloned().unwrap_or_default(), true)
        }),
    ),
    (
        "array_cat",
        S(|_, a| match (is_null(a, 0), is_null(a, 1)) {
            (true, _) => Ok(a[1].clone()),
            (_, true) => Ok(a[0].clone()),
            _ => catenate(array(a, 0)?, array(a, 1)?),
        }),
    ),
    ("arraycontains", S(|_, a| Ok(Datum::Bool(contains(array(a, 0)?, array(a, 1)?)?)))),
    ("arraycontained", S(|_, a| Ok(Datum::Bool(contains(array(a, 1)?, array(a, 0)?)?)))),
    ("arrayoverlap", S(|_, a| Ok(Datum::Bool(overlaps(array(a, 0)?, array(a, 1)?)?)))),
    ("array_to_text", S(to_string)),
    (
        "array_to_text_null",
        S(
            |env, a| {
                if is_null(a, 0) || is_null(a, 1) { Ok(Datum::Null) } else { to_string(env, a) }
            },
        ),
    ),
    ("text_to_array", S(|_, a| string_to_array(a))),
    ("text_to_array_null", S(|_, a| string_to_array(a))),
    ("text_to_table", TO_TABLE),
    ("text_to_table_null", TO_TABLE),
    ("array_unnest", Set(|_, a| Ok(rows(array(a, 0)?.elements.clone())))),
    ("generate_subscripts", Set(|_, a| subscripts(a))),
    ("generate_subscripts_nodir", Set(|_, a| subscripts(a))),
    ("array_position", S(|_, a| search(a, None))),
    (
        "array_position_start",
        S(|_, a| {
            if is_null(a, 2) {
                bail!(NULL_VALUE_NOT_ALLOWED, "initial position must not be null");
            }
            search(a, Some(int4(a, 2)?))
        }),
    ),
    (
        "array_positions",
        S(|_, a| {
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            let x = array(a, 0)?;
            if x.dims.len() > 1 {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "searching for elements in multidimensional arrays is not supported"
                );
            }
            let low = x.dims.first().map_or(1, |d| d.1);
            let mut found = Vec::new();
            let mut at = 0;
            while let Some(i) = position_of(x, a.get(1).unwrap_or(&Datum::Null), at) {
                found.push(Datum::Int4(low + i as i32));
                at = i + 1;
            }
            Ok(one_dim(oids::INT4, found))
        }),
    ),
    ("array_remove", S(|_, a| replace(a, true))),
    ("array_replace", S(|_, a| replace(a, false))),
    ("array_fill", FunctionBody::ScalarTyped(|_, a, ty, _| fill(a, ty))),
    ("array_fill_with_lower_bounds", FunctionBody::ScalarTyped(|_, a, ty, _| fill(a, ty))),
    (
        "trim_array",
        S(|_, a| {
            let (x, n) = (array(a, 0)?, int4(a, 1)?);
            let first = x.dims.first().map_or(0, |d| d.0);
            if n < 0 || n > first {
                bail!(
                    ARRAY_SUBSCRIPT_ERROR,
                    "number of elements to trim must be between 0 and {first}"
                );
            }
            let mut r = x.clone();
            // A slice's bounds begin at 1.
            r.dims.iter_mut().for_each(|d| d.1 = 1);
            if let Some(d) = r.dims.first_mut() {
                let width = r.elements.len() / (d.0.max(1) as usize);
                d.0 -= n;
                r.elements.truncate(d.0 as usize * width);
            }
            if r.elements.is_empty() {
                r.dims.clear();
            }
            Ok(arr(r))
        }),
    ),
    (
        "array_reverse",
        S(|_, a| {
            let x = array(a, 0)?;
            let mut r = x.clone();
            let width =
                x.dims.first().map_or(1, |d| x.elements.len() / (d.0.max(1) as usize)).max(1);
            r.elements = x.elements.chunks(width).rev().flatten().cloned().collect();
            Ok(arr(r))
        }),
    ),
    ("array_sort", S(|_, a| sort(a))),
    ("array_sort_order", S(|_, a| sort(a))),
    ("array_sort_order_nulls_first", S(|_, a| sort(a))),
    (
        "array_shuffle",
        S(|_, a| {
            let x = array(a, 0)?;
            let mut r = x.clone();
            let width =
                x.dims.first().map_or(1, |d| x.elements.len() / (d.0.max(1) as usize)).max(1);
            let mut chunks: Vec<&[Datum]> = x.elements.chunks(width).collect();
            for i in (1..chunks.len()).rev() {
                chunks.swap(i, crate::functions::random::below(i as u64 + 1) as usize);
            }
            r.elements = chunks.concat();
            Ok(arr(r))
        }),
    ),
    (
        "array_sample",
        S(|_, a| {
            let (x, n) = (array(a, 0)?, int4(a, 1)?);
            let count = x.dims.first().map_or(0, |d| d.0);
            if n < 0 || n > count {
                bail!(INVALID_PARAMETER_VALUE, "sample size must be between 0 and {count}");
            }
            let width = x.elements.len() / (count.max(1) as usize);
            let mut chunks: Vec<&[Datum]> = x.elements.chunks(width.max(1)).collect();
            for i in 0..n as usize {
                let j = i + crate::functions::random::below((chunks.len() - i) as u64) as usize;
                chunks.swap(i, j);
            }
            chunks.truncate(n as usize);
            let mut r = x.clone();
            r.elements = chunks.concat();
            if n == 0 {
                r.dims.clear();
            } else if let Some(d) = r.dims.first_mut() {
                *d = (n, 1);
            }
            Ok(arr(r))
        }),
    ),
    ("width_bucket_array", S(|_, a| bucket(a))),
    (
        "parse_ident",
        S(|_, a| {
            let strict = a.len() < 2 || boolean(a, 1)?;
            let parts = super::text::parse_ident(text(a, 0)?, strict)?;
            Ok(one_dim(oids::TEXT, parts.iter().map(Datum::text).collect()))
        }),
    ),
];
