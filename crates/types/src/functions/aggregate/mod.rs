//! Aggregates.
//!
//! Ordered-set aggregates get each row as [direct arguments…, sorted arguments…], the rows in the order that WITHIN
//! GROUP asks for.

mod collect;
mod float;
mod number;
mod ordered;

use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{Datum, Env, compare};
use base::{Oid, Result};
use std::cmp::Ordering;

pub(super) const TABLES: &[BodyTable] =
    &[BODIES, number::BODIES, float::BODIES, collect::BODIES, ordered::BODIES];

/// count(*) and count(x).
struct Count {
    n: i64,
    any: bool,
}
impl AggregateState for Count {
    #[inline]
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        if self.any || !matches!(args.first(), Some(Datum::Null)) {
            self.n += 1;
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(Datum::Int8(self.n))
    }
}

/// min and max.
struct Extreme {
    ty: Oid,
    keep: Ordering,
    best: Datum,
}
impl AggregateState for Extreme {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(v) = args.first().filter(|v| !v.is_null()) else { return Ok(()) };
        let tie_takes_new = self.ty != crate::oids::BPCHAR;
        let order =
            if self.best.is_null() { self.keep } else { compare::compare(self.ty, v, &self.best) };
        if order == self.keep || order == Ordering::Equal && tie_takes_new {
            self.best = v.clone();
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(self.best.clone())
    }
}

fn extreme(types: &[Oid], keep: Ordering) -> Box<dyn AggregateState> {
    Box::new(Extreme { ty: types.first().copied().unwrap_or_default(), keep, best: Datum::Null })
}
pub(super) const MAX: FunctionBody = FunctionBody::Aggregate(|t, _| extreme(t, Ordering::Greater));
pub(super) const MIN: FunctionBody = FunctionBody::Aggregate(|t, _| extreme(t, Ordering::Less));

/// A running value that a function of two folds into.
struct Fold {
    f: fn(&Datum, &Datum) -> Datum,
    value: Datum,
}
impl AggregateState for Fold {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(v) = args.first().filter(|v| !v.is_null()) else { return Ok(()) };
        self.value = if self.value.is_null() { v.clone() } else { (self.f)(&self.value, v) };
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(self.value.clone())
    }
}

fn fold(f: fn(&Datum, &Datum) -> Datum) -> Box<dyn AggregateState> {
    Box::new(Fold { f, value: Datum::Null })
}

fn bits(a: &Datum, b: &Datum, f: fn(i64, i64) -> i64) -> Datum {
    match (a, b) {
        (Datum::Int2(x), Datum::Int2(y)) => Datum::Int2(f(i64::from(*x), i64::from(*y)) as i16),
        (Datum::Int4(x), Datum::Int4(y)) => Datum::Int4(f(i64::from(*x), i64::from(*y)) as i32),
        (Datum::Int8(x), Datum::Int8(y)) => Datum::Int8(f(*x, *y)),
        _ => a.clone(),
    }
}
fn both(a: &Datum, b: &Datum) -> Datum {
    Datum::Bool(matches!((a, b), (Datum::Bool(true), Datum::Bool(true))))
}
fn either(a: &Datum, b: &Datum) -> Datum {
    Datum::Bool(matches!((a, b), (Datum::Bool(true), _) | (_, Datum::Bool(true))))
}

const AND: FunctionBody = FunctionBody::Aggregate(|_, _| fold(both));
const BIT_AND: FunctionBody = FunctionBody::Aggregate(|_, _| fold(|a, b| bits(a, b, |x, y| x & y)));
const BIT_OR: FunctionBody = FunctionBody::Aggregate(|_, _| fold(|a, b| bits(a, b, |x, y| x | y)));
const BIT_XOR: FunctionBody = FunctionBody::Aggregate(|_, _| fold(|a, b| bits(a, b, |x, y| x ^ y)));

/// A running bit string that another is combined into.
struct BitString {
    f: crate::registry::ScalarFn,
    value: Datum,
}
impl AggregateState for BitString {
    fn add(&mut self, env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(v) = args.first().filter(|v| !v.is_null()) else { return Ok(()) };
        self.value = match std::mem::take(&mut self.value) {
            Datum::Null => v.clone(),
            before => (self.f)(env, &[before, v.clone()])?,
        };
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(self.value.clone())
    }
}

fn bit_string(f: crate::registry::ScalarFn) -> Box<dyn AggregateState> {
    Box::new(BitString { f, value: Datum::Null })
}

const BODIES: BodyTable = &[
    ("bit_and(bit)", FunctionBody::Aggregate(|_, _| bit_string(super::bit::and))),
    ("bit_or(bit)", FunctionBody::Aggregate(|_, _| bit_string(super::bit::or))),
    ("bit_xor(bit)", FunctionBody::Aggregate(|_, _| bit_string(super::bit::xor))),
    ("count()", FunctionBody::Aggregate(|_, _| Box::new(Count { n: 0, any: true }))),
    ("count(any)", FunctionBody::Aggregate(|_, _| Box::new(Count { n: 0, any: false }))),
    ("max(anyenum)", MAX),
    ("max(int2)", MAX),
    ("max(int4)", MAX),
    ("max(int8)", MAX),
    ("max(oid)", MAX),
    ("max(float4)", MAX),
    ("max(float8)", MAX),
    ("max(date)", MAX),
    ("max(time)", MAX),
    ("max(timetz)", MAX),
    ("max(timestamp)", MAX),
    ("max(timestamptz)", MAX),
    ("max(interval)", MAX),
    ("max(text)", MAX),
    ("max(numeric)", MAX),
    ("max(bpchar)", MAX),
    ("max(tid)", MAX),
    ("max(pg_lsn)", MAX),
    ("max(xid8)", MAX),
    ("max(record)", MAX),
    ("max(bytea)", MAX),
    ("max(anyarray)", MAX),
    ("min(anyenum)", MIN),
    ("min(int2)", MIN),
    ("min(int4)", MIN),
    ("min(int8)", MIN),
    ("min(oid)", MIN),
    ("min(float4)", MIN),
    ("min(float8)", MIN),
    ("min(date)", MIN),
    ("min(time)", MIN),
    ("min(timetz)", MIN),
    ("min(timestamp)", MIN),
    ("min(timestamptz)", MIN),
    ("min(interval)", MIN),
    ("min(text)", MIN),
    ("min(numeric)", MIN),
    ("min(bpchar)", MIN),
    ("min(tid)", MIN),
    ("min(pg_lsn)", MIN),
    ("min(xid8)", MIN),
    ("min(record)", MIN),
    ("min(bytea)", MIN),
    ("min(anyarray)", MIN),
    ("any_value(anyelement)", FunctionBody::Aggregate(|_, _| fold(|a, _| a.clone()))),
    ("bool_and(bool)", AND),
    ("every(bool)", AND),
    ("bool_or(bool)", FunctionBody::Aggregate(|_, _| fold(either))),
    ("bit_and(int2)", BIT_AND),
    ("bit_and(int4)", BIT_AND),
    ("bit_and(int8)", BIT_AND),
    ("bit_or(int2)", BIT_OR),
    ("bit_or(int4)", BIT_OR),
    ("bit_or(int8)", BIT_OR),
    ("bit_xor(int2)", BIT_XOR),
    ("bit_xor(int4)", BIT_XOR),
    ("bit_xor(int8)", BIT_XOR),
];
