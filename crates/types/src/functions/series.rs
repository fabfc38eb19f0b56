//! generate_series.

use crate::args::*;
use crate::numeric::Numeric;
use crate::registry::{BodyTable, FunctionBody::Set, RowIter};
use crate::{Datum, Interval};
use base::{Result, bail};

fn zero_step() -> base::Error {
    base::err!(INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

/// Numbers from `from` to `to`; stops before it would overflow.
struct Numbers {
    next: Option<i64>,
    to: i64,
    step: i64,
    wrap: fn(i64) -> Datum,
}
impl Iterator for Numbers {
    type Item = Result<Vec<Datum>>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let v = self.next?;
        if if self.step > 0 { v > self.to } else { v < self.to } {
            self.next = None;
            return None;
        }
        self.next = v.checked_add(self.step);
        Some(Ok(vec![(self.wrap)(v)]))
    }
}

fn numbers(from: i64, to: i64, step: i64, wrap: fn(i64) -> Datum) -> Result<RowIter> {
    if step == 0 {
        return Err(zero_step());
    }
    Ok(Box::new(Numbers { next: Some(from), to, step, wrap }))
}

fn int4s(a: &[Datum]) -> Result<RowIter> {
    let step = if a.len() > 2 { int4(a, 2)? } else { 1 };
    numbers(int4(a, 0)?.into(), int4(a, 1)?.into(), step.into(), |v| Datum::Int4(v as i32))
}
fn int8s(a: &[Datum]) -> Result<RowIter> {
    let step = if a.len() > 2 { int8(a, 2)? } else { 1 };
    numbers(int8(a, 0)?, int8(a, 1)?, step, Datum::Int8)
}

fn numerics(a: &[Datum]) -> Result<RowIter> {
    let from = numeric(a, 0)?.clone();
    let to = numeric(a, 1)?.clone();
    let step = if a.len() > 2 { numeric(a, 2)?.clone() } else { Numeric::new(1, 0) };
    for (n, what) in [(&from, "start value"), (&to, "stop value"), (&step, "step size")] {
        if n.is_nan() {
            bail!(INVALID_PARAMETER_VALUE, "{what} cannot be NaN");
        }
        if n.is_infinite() {
            bail!(INVALID_PARAMETER_VALUE, "{what} cannot be infinity");
        }
    }
    if step.is_zero() {
        return Err(zero_step());
    }
    let up = step.signum() > 0;
    let mut next = Some(from);
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.take()?;
        if if up { v > to } else { v < to } {
            return None;
        }
        next = v.add(&step).ok();
        Some(Ok(vec![Datum::Numeric(Box::new(v))]))
    })))
}

fn step_sign(step: &Interval) -> Result<bool> {
    let (months, days, us) = (step.months, step.days, step.micros);
    if matches!((months, days, us), (i32::MAX, i32::MAX, i64::MAX) | (i32::MIN, i32::MIN, i64::MIN))
    {
        bail!(INVALID_PARAMETER_VALUE, "step size cannot be infinite");
    }
    let span = crate::datetime::interval_span(step);
    if span == 0 {
        return Err(zero_step());
    }
    Ok(span > 0)
}

fn timestamps(a: &[Datum]) -> Result<RowIter> {
    let (mut next, to, step) = (Some(timestamp(a, 0)?), timestamp(a, 1)?, interval(a, 2)?);
    let up = step_sign(&step)?;
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.take()?;
        if if up { v > to } else { v < to } {
            return None;
        }
        match crate::datetime::timestamp_plus_interval(v, &step) {
            Ok(n) => next = Some(n),
            Err(e) => return Some(Err(e)),
        }
        Some(Ok(vec![Datum::Timestamp(v)]))
    })))
}

/// Steps in the session's time zone, so that a day is a day across a change of the clocks.
fn timestamptzs(env: &dyn crate::Env, a: &[Datum]) -> Result<RowIter> {
    let (mut next, to, step) = (Some(timestamptz(a, 0)?), timestamptz(a, 1)?, interval(a, 2)?);
    let zone = if a.len() > 3 {
        let name = text(a, 3)?;
        std::sync::Arc::new(crate::datetime::zone::TimeZone::lookup(name, env)?)
    } else {
        std::sync::Arc::clone(&env.style().time_zone)
    };
    let up = step_sign(&step)?;
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.take()?;
        if if up { v > to } else { v < to } {
            return None;
        }
        match crate::datetime::zoned_plus_interval(v, &step, &zone) {
            Ok(n) => next = Some(n),
            Err(e) => return Some(Err(e)),
        }
        Some(Ok(vec![Datum::TimestampTz(v)]))
    })))
}

pub(super) const BODIES: BodyTable = &[
    ("generate_series_int4", Set(|_, a| int4s(a))),
    ("generate_series_step_int4", Set(|_, a| int4s(a))),
    ("generate_series_int8", Set(|_, a| int8s(a))),
    ("generate_series_step_int8", Set(|_, a| int8s(a))),
    ("generate_series_numeric", Set(|_, a| numerics(a))),
    ("generate_series_step_numeric", Set(|_, a| numerics(a))),
    ("generate_series_timestamptz", Set(timestamptzs)),
    ("generate_series_timestamptz_at_zone", Set(timestamptzs)),
    ("generate_series_timestamp", Set(|_, a| timestamps(a))),
];
