//! percentile_cont, percentile_disc, mode.

use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{ArrayValue, Datum, Env, compare};
use base::{Oid, Result, bail};
use std::cmp::Ordering;
use std::sync::Arc;

/// The sorted values, and the direct argument.
struct Percentile {
    element: Oid,
    continuous: bool,
    direct: Datum,
    values: Vec<Datum>,
}

fn fraction(d: &Datum) -> Result<Option<f64>> {
    match d {
        Datum::Float8(p) if (0.0..=1.0).contains(p) => Ok(Some(*p)),
        Datum::Float8(p) => {
            let mut s = String::new();
            crate::io::float8_output(*p, 1, &mut s);
            bail!(NUMERIC_VALUE_OUT_OF_RANGE, "percentile value {s} is not between 0 and 1")
        }
        _ => Ok(None),
    }
}

fn between(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    Ok(match (low, high) {
        (Datum::Float8(a), Datum::Float8(b)) => Datum::Float8(a + part * (b - a)),
        (Datum::Interval(a), Datum::Interval(b)) => {
            let difference = crate::datetime::interval_minus(b, a)?;
            let d = crate::datetime::interval_multiply(&difference, part)?;
            Datum::Interval(Box::new(crate::datetime::interval_plus(&d, a)?))
        }
        _ => low.clone(),
    })
}

impl Percentile {
    fn at(&self, p: &Datum) -> Result<Datum> {
        let Some(p) = fraction(p)? else { return Ok(Datum::Null) };
        let n = self.values.len();
        if n == 0 {
            return Ok(Datum::Null);
        }
        if self.continuous {
            let at = p * (n - 1) as f64;
            let (low, high) = (at.floor() as usize, at.ceil() as usize);
            if low == high {
                return Ok(self.values[low].clone());
            }
            return between(&self.values[low], &self.values[high.min(n - 1)], at - at.floor());
        }
        let row = (p * n as f64).ceil().max(1.0) as usize;
        Ok(self.values[row.min(n) - 1].clone())
    }
}

impl AggregateState for Percentile {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let [direct, value] = args else { bail!(INTERNAL_ERROR, "percentile takes two arguments") };
        if self.values.is_empty() {
            self.direct = direct.clone();
        }
        if !value.is_null() {
            self.values.push(value.clone());
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        match &self.direct {
            Datum::Array(a) => {
                if self.values.is_empty() {
                    return Ok(Datum::Null);
                }
                let elements = a.elements.iter().map(|p| self.at(p)).collect::<Result<Vec<_>>>()?;
                Ok(Datum::Array(Arc::new(ArrayValue {
                    element_type: self.element,
                    dims: a.dims.clone(),
                    elements,
                })))
            }
            p => self.at(p),
        }
    }
    fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<Datum>() + 64
    }
}

/// The most frequent value; the rows come sorted.
struct Mode {
    ty: Oid,
    current: Datum,
    run: u64,
    best: Datum,
    best_run: u64,
}
impl AggregateState for Mode {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(v) = args.first().filter(|v| !v.is_null()) else { return Ok(()) };
        if self.run > 0 && compare::compare(self.ty, v, &self.current) == Ordering::Equal {
            self.run += 1;
        } else {
            self.current = v.clone();
            self.run = 1;
        }
        if self.run > self.best_run {
            self.best = self.current.clone();
            self.best_run = self.run;
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(self.best.clone())
    }
}

fn percentile(types: &[Oid], continuous: bool) -> Box<dyn AggregateState> {
    let element = types.get(1).copied().unwrap_or_default();
    Box::new(Percentile { element, continuous, direct: Datum::Null, values: Vec::new() })
}
const CONTINUOUS: FunctionBody = FunctionBody::Aggregate(|t, _| percentile(t, true));
const DISCRETE: FunctionBody = FunctionBody::Aggregate(|t, _| percentile(t, false));

pub(super) const BODIES: BodyTable = &[
    ("percentile_cont(float8,float8)", CONTINUOUS),
    ("percentile_cont(float8,interval)", CONTINUOUS),
    ("percentile_cont(_float8,float8)", CONTINUOUS),
    ("percentile_cont(_float8,interval)", CONTINUOUS),
    ("percentile_disc(float8,anyelement)", DISCRETE),
    ("percentile_disc(_float8,anyelement)", DISCRETE),
    (
        "mode(anyelement)",
        FunctionBody::Aggregate(|t, _| {
            Box::new(Mode {
                ty: t.first().copied().unwrap_or_default(),
                current: Datum::Null,
                run: 0,
                best: Datum::Null,
                best_run: 0,
            })
        }),
    ),
];
