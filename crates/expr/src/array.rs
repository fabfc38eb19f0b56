//! Subscripts.

use crate::code::int_of;
use base::{Oid, Result, bail};
use std::sync::Arc;
use types::datum::ArrayValue;
use types::json::assign::Subscript;
use types::json::{Jsonb, View, view};
use types::{Datum, oids};

/// `v[i]…` or `v[a:b]…`: out of bounds is NULL, or an empty array for a slice.
///
/// # Errors
/// `0A000` for types without subscripts.
pub fn subscript(
    ty: Oid,
    v: Datum,
    indexes: &[(Option<Datum>, Option<Datum>)],
    slice: bool,
) -> Result<Datum> {
    match v {
        Datum::Null => Ok(Datum::Null),
        Datum::Array(a) => {
            if slice {
                slice_of(&a, indexes)
            } else {
                Ok(element(&a, indexes))
            }
        }
        // A name is an array of "char" that counts from 0.
        Datum::Text(name) if ty == types::oids::NAME && !slice => {
            let at = match indexes {
                [(_, Some(i))] => int_of(i).and_then(|i| usize::try_from(i).ok()),
                _ => None,
            };
            Ok(match at {
                Some(at @ 0..64) => Datum::Char(name.as_bytes().get(at).copied().unwrap_or(0)),
                _ => Datum::Null,
            })
        }
        Datum::Jsonb(j) if !slice => {
            let mut at = j.bytes();
            for (_, i) in indexes {
                let next = match (view(at), i) {
                    (_, None | Some(Datum::Null)) => None,
                    (View::Object(members), Some(Datum::Text(t))) => members.get(t.as_str()),
                    (View::Object(members), Some(d)) => {
                        int_of(d).and_then(|n| members.get(&n.to_string()))
                    }
                    (View::Array(items), Some(d)) => {
                        let n = match d {
                            Datum::Text(t) => t.parse::<i64>().ok(),
                            other => int_of(other),
                        };
                        n.and_then(|n| items.get(n))
                    }
                    _ => None,
                };
                match next {
                    Some(n) => at = n,
                    None => return Ok(Datum::Null),
                }
            }
            Ok(Datum::Jsonb(Jsonb::part(at)))
        }
        _ => bail!(
            DATATYPE_MISMATCH,
            "cannot subscript type {} because it does not support subscripting",
            types::registry::format_type(ty, -1)
        ),
    }
}

/// `v[i]… := value` or `v[a:b] := value`: the array with that changed.
///
/// # Errors
/// `22004` for a subscript that is NULL, `2202E`
pub fn assign(
    ty: Oid,
    v: Datum,
    indexes: &[(Option<Datum>, Option<Datum>)],
    slice: bool,
    value: Datum,
) -> Result<Datum> {
    if ty == oids::JSONB {
        return assign_part(&v, indexes, &value);
    }
    let number = |d: &Option<Datum>| -> Result<Option<i32>> {
        match d {
            None => Ok(None),
            Some(Datum::Null) => {
                bail!(NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null")
            }
            Some(d) => Ok(int_of(d).and_then(|n| i32::try_from(n).ok())),
        }
    };
    let bounds: Vec<(Option<i32>, Option<i32>)> =
        indexes.iter().map(|(a, b)| Ok((number(a)?, number(b)?))).collect::<Result<_>>()?;
    let empty = || Arc::new(ArrayValue::one_dimension(element_type(ty), Vec::new()));
    let array = match &v {
        Datum::Array(a) => Arc::clone(a),
        _ => empty(),
    };
    if slice {
        return match value {
            Datum::Array(source) => types::array::assign_slice(&array, &bounds, &source),
            // Nothing to put there: the array stays what it was.
            _ => Ok(v),
        };
    }
    let at: Vec<i32> = bounds.iter().map(|(_, i)| i.unwrap_or(0)).collect();
    types::array::assign(&array, &at, value)
}

fn assign_part(
    v: &Datum,
    indexes: &[(Option<Datum>, Option<Datum>)],
    value: &Datum,
) -> Result<Datum> {
    let mut path = Vec::with_capacity(indexes.len());
    for (_, index) in indexes {
        path.push(match index {
            Some(Datum::Text(name)) => Subscript::Name(name.to_string()),
            Some(other) if !other.is_null() => {
                Subscript::Number(int_of(other).and_then(|n| i32::try_from(n).ok()).unwrap_or(0))
            }
            _ => bail!(NULL_VALUE_NOT_ALLOWED, "jsonb subscript in assignment must not be null"),
        });
    }
    types::json::assign::assign(v, &path, value)
}

fn element(a: &ArrayValue, indexes: &[(Option<Datum>, Option<Datum>)]) -> Datum {
    if indexes.len() != a.dims.len() {
        return Datum::Null;
    }
    let mut at = 0usize;
    for ((_, i), (len, lower)) in indexes.iter().zip(&a.dims) {
        let Some(i) = i.as_ref().and_then(int_of) else { return Datum::Null };
        let offset = i - i64::from(*lower);
        if offset < 0 || offset >= i64::from(*len) {
            return Datum::Null;
        }
        at = at * (*len as usize) + offset as usize;
    }
    a.elements.get(at).cloned().unwrap_or(Datum::Null)
}

fn slice_of(a: &ArrayValue, indexes: &[(Option<Datum>, Option<Datum>)]) -> Result<Datum> {
    let empty = || {
        Ok(Datum::Array(Arc::new(ArrayValue {
            element_type: a.element_type,
            dims: Vec::new(),
            elements: Vec::new(),
        })))
    };
    if indexes.len() > a.dims.len() || a.dims.is_empty() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(a.dims.len());
    for (d, (len, lower)) in a.dims.iter().enumerate() {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*len) - 1);
        let (mut from, mut to) = (first, last);
        if let Some((f, t)) = indexes.get(d) {
            for (given, place) in [(f, &mut from), (t, &mut to)] {
                match given {
                    None => {}
                    Some(Datum::Null) => return Ok(Datum::Null),
                    Some(v) => *place = int_of(v).unwrap_or(0),
                }
            }
        }
        let (from, to) = (from.max(first), to.min(last));
        if from > to {
            return empty();
        }
        ranges.push(((from - first) as usize, (to - first) as usize));
    }
    let mut elements = Vec::new();
    let mut at: Vec<usize> = ranges.iter().map(|r| r.0).collect();
    'all: loop {
        let mut i = 0;
        for (d, (len, _)) in a.dims.iter().enumerate() {
            i = i * (*len as usize) + at[d];
        }
        elements.push(a.elements.get(i).cloned().unwrap_or(Datum::Null));
        for d in (0..at.len()).rev() {
            if at[d] < ranges[d].1 {
                at[d] += 1;
                continue 'all;
            }
            at[d] = ranges[d].0;
        }
        break;
    }
    let dims = ranges.iter().map(|(f, t)| ((t - f + 1) as i32, 1)).collect();
    Ok(Datum::Array(Arc::new(ArrayValue { element_type: a.element_type, dims, elements })))
}

/// The element type of an array type.
pub fn element_type(array: Oid) -> Oid {
    types::element_type(array).unwrap_or(oids::TEXT)
}
