//! percentile_cont, percentile_disc, mode.

use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{ArrayValue, Datum, Env, compare};
use base::{Oid, Result, bail};
use std::cmp::Ordering;
use std::sync::Arc;

/// What a percentile takes of the sorted values as they come, and the direct argument.
struct Percentile {
    element: Oid,
    continuous: bool,
    direct: Option<Datum>,
    /// How many values there will be.
    values: u64,
    seen: u64,
    /// The places of those that are needed, in order, and those of them that have come.
    places: Vec<u64>,
    kept: Vec<Datum>,
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
    /// The places of the values that a fraction is between.
    fn ends(&self, p: f64) -> (u64, u64) {
        #[expect(clippy::cast_sign_loss, reason = "a fraction is not negative")]
        let place = |at: f64| (at as u64).min(self.values.saturating_sub(1));
        if self.continuous {
            let at = p * self.values.saturating_sub(1) as f64;
            return (place(at.floor()), place(at.ceil()));
        }
        let at = place((p * self.values as f64).ceil().max(1.0) - 1.0);
        (at, at)
    }

    /// Finds out which values are needed.
    fn begin(&mut self, direct: &Datum) -> Result<()> {
        let fractions = match direct {
            // Without values they are not looked at.
            Datum::Array(_) if self.values == 0 => &[],
            Datum::Array(a) => &a.elements[..],
            one => std::slice::from_ref(one),
        };
        for p in fractions {
            if let Some(p) = fraction(p)? {
                let (low, high) = self.ends(p);
                self.places.extend([low, high]);
            }
        }
        self.places.sort_unstable();
        self.places.dedup();
        self.direct = Some(direct.clone());
        Ok(())
    }

    fn at(&self, p: &Datum) -> Result<Datum> {
        let Some(p) = fraction(p)? else { return Ok(Datum::Null) };
        let (low, high) = self.ends(p);
        let value = |place| self.places.binary_search(&place).ok().and_then(|i| self.kept.get(i));
        let (Some(low), Some(high)) = (value(low), value(high)) else { return Ok(Datum::Null) };
        let at = p * self.values.saturating_sub(1) as f64;
        match self.continuous && at.fract() != 0.0 {
            true => between(low, high, at.fract()),
            false => Ok(low.clone()),
        }
    }
}

impl AggregateState for Percentile {
    fn expect(&mut self, values: u64) {
        self.values = values;
    }
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let [direct, value] = args else { bail!(INTERNAL_ERROR, "percentile takes two arguments") };
        if self.direct.is_none() {
            self.begin(direct)?;
        }
        if value.is_null() {
            return Ok(());
        }
        if self.places.get(self.kept.len()) == Some(&self.seen) {
            self.kept.push(value.clone());
        }
        self.seen += 1;
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        match &self.direct {
            Some(Datum::Array(a)) => {
                if self.seen == 0 {
                    return Ok(Datum::Null);
                }
                let elements = a.elements.iter().map(|p| self.at(p)).collect::<Result<Vec<_>>>()?;
                Ok(Datum::Array(Arc::new(ArrayValue {
                    element_type: self.element,
                    dims: a.dims.clone(),
                    elements,
                })))
            }
            Some(p) => self.at(p),
            None => Ok(Datum::Null),
        }
    }
    fn memory_bytes(&self) -> Option<usize> {
        Some(self.kept.capacity() * size_of::<Datum>() + 64)
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
    Box::new(Percentile {
        element,
        continuous,
        direct: None,
        values: 0,
        seen: 0,
        places: Vec::new(),
        kept: Vec::new(),
    })
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
