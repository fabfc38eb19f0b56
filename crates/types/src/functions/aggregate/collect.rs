//! string_agg and array_agg.

use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{ArrayValue, Datum, Env};
use base::{Oid, Result, bail};
use std::sync::Arc;

fn check_buffer(bytes: usize) -> Result<()> {
    if bytes > crate::functions::text::SIZE_MAX {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "string buffer exceeds maximum allowed length (1073741823 bytes)"
        );
    }
    Ok(())
}

#[derive(Default)]
struct Strings {
    out: String,
    any: bool,
}
impl AggregateState for Strings {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(Datum::Text(v)) = args.first() else { return Ok(()) };
        if self.any
            && let Some(Datum::Text(d)) = args.get(1)
        {
            self.out.push_str(d);
        }
        self.out.push_str(v);
        self.any = true;
        check_buffer(self.out.len())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(if self.any { Datum::text(&self.out) } else { Datum::Null })
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.out.capacity() + 64)
    }
}

#[derive(Default)]
struct Bytes {
    out: Vec<u8>,
    any: bool,
}
impl AggregateState for Bytes {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(Datum::Bytea(v)) = args.first() else { return Ok(()) };
        if self.any
            && let Some(Datum::Bytea(d)) = args.get(1)
        {
            self.out.extend_from_slice(d);
        }
        self.out.extend_from_slice(v);
        self.any = true;
        check_buffer(self.out.len())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(if self.any { Datum::Bytea(Arc::from(&self.out[..])) } else { Datum::Null })
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.out.capacity() + 64)
    }
}

/// The elements of an array to be.
#[derive(Default)]
struct Items {
    list: Vec<Datum>,
    /// What they hold beside their places in the list.
    bytes: usize,
}

impl Items {
    fn push(&mut self, item: Datum) -> Result<()> {
        self.bytes += match &item {
            Datum::Text(t) => t.len(),
            Datum::Bytea(b) => b.len(),
            Datum::Jsonb(j) => j.bytes().len(),
            Datum::Numeric(_) | Datum::Interval(_) => size_of::<Datum>(),
            Datum::Record(row) => row.fields.len() * size_of::<Datum>(),
            Datum::Late(v) => v.len_in_row(),
            _ => 0,
        };
        self.list.push(item);
        if self.bytes > crate::functions::text::SIZE_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (1073741823)");
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Datum>() + self.bytes + 64
    }
}

/// array_agg of elements.
struct Elements {
    element: Oid,
    items: Items,
}
impl AggregateState for Elements {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.items.push(args.first().cloned().unwrap_or_default())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if self.items.list.is_empty() {
            return Ok(Datum::Null);
        }
        let items = self.items.list.clone();
        Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(self.element, items))))
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.items.memory_bytes())
    }
}

/// array_agg of arrays: one dimension more.
struct Arrays {
    element: Oid,
    inner: Option<Vec<(i32, i32)>>,
    count: i32,
    items: Items,
}
impl AggregateState for Arrays {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(Datum::Array(a)) = args.first() else {
            bail!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")
        };
        if a.dims.is_empty() && self.inner.is_none() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays");
        }
        match &self.inner {
            None if a.dims.len() >= 6 => bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({}) exceeds the maximum allowed (6)",
                a.dims.len() + 1
            ),
            None => self.inner = Some(a.dims.clone()),
            Some(d) if *d == a.dims => {}
            Some(_) => {
                bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality")
            }
        }
        self.count += 1;
        a.elements.iter().try_for_each(|e| self.items.push(e.clone()))
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        let Some(inner) = &self.inner else { return Ok(Datum::Null) };
        let mut dims = vec![(self.count, 1)];
        dims.extend_from_slice(inner);
        Ok(Datum::Array(Arc::new(ArrayValue {
            element_type: self.element,
            dims,
            elements: self.items.list.clone(),
        })))
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.items.memory_bytes())
    }
}

pub(super) const BODIES: BodyTable = &[
    ("string_agg(text,text)", FunctionBody::Aggregate(|_, _| Box::new(Strings::default()))),
    ("string_agg(bytea,bytea)", FunctionBody::Aggregate(|_, _| Box::new(Bytes::default()))),
    (
        "array_agg(anynonarray)",
        FunctionBody::Aggregate(|types, _| {
            Box::new(Elements {
                element: types.first().copied().unwrap_or_default(),
                items: Items::default(),
            })
        }),
    ),
    (
        "array_agg(anyarray)",
        FunctionBody::Aggregate(|types, _| {
            let array = types.first().copied().unwrap_or_default();
            let element = crate::element_type(array).unwrap_or_default();
            Box::new(Arrays { element, inner: None, count: 0, items: Items::default() })
        }),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::PlainEnv;
    use crate::oids::TEXT;

    #[test]
    fn what_texts_hold_counts() {
        let text = Datum::text("x".repeat(1000));
        let mut one = Elements { element: TEXT, items: Items::default() };
        one.add(&PlainEnv, std::slice::from_ref(&text)).unwrap();
        assert!(one.memory_bytes().is_some_and(|n| n >= 1000));
        let mut more = Arrays { element: TEXT, inner: None, count: 0, items: Items::default() };
        let array = ArrayValue::one_dimension(TEXT, vec![text.clone(), text]);
        more.add(&PlainEnv, &[Datum::Array(Arc::new(array))]).unwrap();
        assert!(more.memory_bytes().is_some_and(|n| n >= 2000));
    }

    #[test]
    fn an_array_has_an_end() {
        let mut items = Items { list: Vec::new(), bytes: crate::functions::text::SIZE_MAX };
        let e = items.push(Datum::text("x")).unwrap_err();
        assert_eq!(e.to_string(), "array size exceeds the maximum allowed (1073741823)");
    }
}
