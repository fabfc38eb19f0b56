//! sum, avg, variance and stddev of integers, numerics and intervals: exact.

use crate::functions::int::int8_range;
use crate::functions::numeric::num;
use crate::numeric::Numeric;
use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{Datum, Env, Interval};
use base::{Result, err};
use std::cmp::Ordering;

/// sum of int2 and int4.
#[derive(Default)]
struct SumInt {
    sum: i64,
    any: bool,
}
impl AggregateState for SumInt {
    #[inline]
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let v = match args.first() {
            Some(Datum::Int4(v)) => i64::from(*v),
            Some(Datum::Int2(v)) => i64::from(*v),
            _ => return Ok(()),
        };
        self.sum = self.sum.checked_add(v).ok_or_else(int8_range)?;
        self.any = true;
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(if self.any { Datum::Int8(self.sum) } else { Datum::Null })
    }
}

/// What is wanted of a sum.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    Sum,
    Average,
    VariancePop,
    VarianceSamp,
    DeviationPop,
    DeviationSamp,
}

/// Sums of integers and of their squares, in 128 bits until those overflow.
struct Ints {
    want: Want,
    n: i64,
    sum: i128,
    squares: i128,
    /// What no longer fitted.
    big: Numeric,
    big_squares: Numeric,
}
#[inline]
fn int(d: &Datum) -> Option<i128> {
    match d {
        Datum::Int8(v) => Some(i128::from(*v)),
        Datum::Int4(v) => Some(i128::from(*v)),
        Datum::Int2(v) => Some(i128::from(*v)),
        _ => None,
    }
}
impl Ints {
    fn make(want: Want) -> Box<dyn AggregateState> {
        Box::new(Ints {
            want,
            n: 0,
            sum: 0,
            squares: 0,
            big: Numeric::ZERO,
            big_squares: Numeric::ZERO,
        })
    }
}
impl AggregateState for Ints {
    #[inline]
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(v) = args.first().and_then(int) else { return Ok(()) };
        self.n += 1;
        match self.sum.checked_add(v) {
            Some(s) => self.sum = s,
            None => {
                self.big = self.big.add(&Numeric::from_i128(self.sum))?;
                self.sum = v;
            }
        }
        if !matches!(self.want, Want::Sum | Want::Average) {
            match self.squares.checked_add(v * v) {
                Some(s) => self.squares = s,
                None => {
                    self.big_squares = self.big_squares.add(&Numeric::from_i128(self.squares))?;
                    self.squares = v * v;
                }
            }
        }
        Ok(())
    }
    fn remove(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<bool> {
        let Some(v) = args.first().and_then(int) else { return Ok(true) };
        let with_squares = !matches!(self.want, Want::Sum | Want::Average);
        let squares = if with_squares { self.squares.checked_sub(v * v) } else { Some(0) };
        let (Some(sum), Some(squares)) = (self.sum.checked_sub(v), squares) else {
            return Ok(false);
        };
        (self.n, self.sum, self.squares) = (self.n - 1, sum, squares);
        Ok(true)
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        let sum = self.big.add(&Numeric::from_i128(self.sum))?;
        let squares = self.big_squares.add(&Numeric::from_i128(self.squares))?;
        conclude(self.want, self.n, &sum, &squares)
    }
}

/// The same for numerics.
struct Numerics {
    want: Want,
    n: i64,
    sum: Numeric,
    squares: Numeric,
    /// The most digits behind the point, and how many values have as many: the sum has them too.
    scale: i32,
    of_scale: i64,
}
impl Numerics {
    fn make(want: Want) -> Box<dyn AggregateState> {
        Box::new(Numerics {
            want,
            n: 0,
            sum: Numeric::ZERO,
            squares: Numeric::ZERO,
            scale: 0,
            of_scale: 0,
        })
    }
}
impl AggregateState for Numerics {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(Datum::Numeric(v)) = args.first() else { return Ok(()) };
        self.n += 1;
        self.sum = self.sum.add(v)?;
        if !matches!(self.want, Want::Sum | Want::Average) {
            self.squares = self.squares.add(&v.mul(v)?)?;
        }
        match v.scale().cmp(&self.scale) {
            Ordering::Less => {}
            Ordering::Equal => self.of_scale += 1,
            Ordering::Greater => (self.scale, self.of_scale) = (v.scale(), 1),
        }
        Ok(())
    }
    fn remove(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<bool> {
        let Some(Datum::Numeric(v)) = args.first() else { return Ok(true) };
        let last_of_scale = v.scale() == self.scale && self.of_scale == 1 && self.scale > 0;
        if !self.sum.is_finite() || !v.is_finite() || last_of_scale {
            return Ok(false);
        }
        self.of_scale -= i64::from(v.scale() == self.scale);
        self.n -= 1;
        self.sum = self.sum.sub(v)?;
        if !matches!(self.want, Want::Sum | Want::Average) {
            self.squares = self.squares.sub(&v.mul(v)?)?;
        }
        Ok(true)
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        conclude(self.want, self.n, &self.sum, &self.squares)
    }
}

fn conclude(want: Want, n: i64, sum: &Numeric, squares: &Numeric) -> Result<Datum> {
    if n == 0 {
        return Ok(Datum::Null);
    }
    let count = Numeric::from(n);
    match want {
        Want::Sum => return Ok(num(sum.clone())),
        Want::Average => return Ok(num(sum.div(&count)?)),
        _ => {}
    }
    let sample = matches!(want, Want::VarianceSamp | Want::DeviationSamp);
    if sample && n == 1 {
        return Ok(Datum::Null);
    }
    if !sum.is_finite() || !squares.is_finite() {
        return Ok(num(Numeric::NAN));
    }
    // (n·Σx² − (Σx)²) / (n·(n−1) or n²)
    let top = count.mul(squares)?.sub(&sum.mul(sum)?)?;
    if top.signum() <= 0 || top.is_zero() {
        return Ok(num(Numeric::ZERO));
    }
    let bottom = count.mul(&Numeric::from(if sample { n - 1 } else { n }))?;
    let scale = crate::numeric::div_scale(&top, &bottom);
    let variance = top.div_to(&bottom, scale)?;
    Ok(num(match want {
        Want::DeviationPop | Want::DeviationSamp => variance.sqrt_to(scale)?,
        _ => variance,
    }))
}

/// sum and avg of intervals.
#[derive(Default)]
struct Intervals {
    average: bool,
    /// Finite ones, and their sum.
    n: i64,
    sum: Interval,
    /// Whether infinite and minus infinite ones came.
    up: bool,
    down: bool,
}
impl AggregateState for Intervals {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(Datum::Interval(v)) = args.first() else { return Ok(()) };
        let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
        if let Some(up) = crate::datetime::infinite_interval(v) {
            self.up |= up;
            self.down |= !up;
            return Ok(());
        }
        self.n += 1;
        self.sum = Interval {
            months: self.sum.months.checked_add(v.months).ok_or_else(overflow)?,
            days: self.sum.days.checked_add(v.days).ok_or_else(overflow)?,
            micros: self.sum.micros.checked_add(v.micros).ok_or_else(overflow)?,
        };
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        if self.up && self.down {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "interval out of range"));
        }
        if self.up || self.down {
            return Ok(Datum::Interval(Box::new(crate::datetime::infinity(self.up))));
        }
        if self.n == 0 {
            return Ok(Datum::Null);
        }
        let v = if self.average {
            crate::datetime::interval_divide(&self.sum, self.n as f64)?
        } else {
            self.sum
        };
        Ok(Datum::Interval(Box::new(v)))
    }
}

macro_rules! of {
    ($kind:ident, $want:ident) => {
        FunctionBody::Aggregate(|_, _| $kind::make(Want::$want))
    };
}
const SUM_INT: FunctionBody = FunctionBody::Aggregate(|_, _| Box::new(SumInt::default()));

pub(super) const BODIES: BodyTable = &[
    ("sum(int2)", SUM_INT),
    ("sum(int4)", SUM_INT),
    ("sum(int8)", of!(Ints, Sum)),
    ("sum(numeric)", of!(Numerics, Sum)),
    ("sum(interval)", FunctionBody::Aggregate(|_, _| Box::new(Intervals::default()))),
    (
        "avg(interval)",
        FunctionBody::Aggregate(|_, _| {
            Box::new(Intervals { average: true, ..Intervals::default() })
        }),
    ),
    ("avg(int2)", of!(Ints, Average)),
    ("avg(int4)", of!(Ints, Average)),
    ("avg(int8)", of!(Ints, Average)),
    ("avg(numeric)", of!(Numerics, Average)),
    ("variance(int2)", of!(Ints, VarianceSamp)),
    ("variance(int4)", of!(Ints, VarianceSamp)),
    ("variance(int8)", of!(Ints, VarianceSamp)),
    ("variance(numeric)", of!(Numerics, VarianceSamp)),
    ("var_samp(int2)", of!(Ints, VarianceSamp)),
    ("var_samp(int4)", of!(Ints, VarianceSamp)),
    ("var_samp(int8)", of!(Ints, VarianceSamp)),
    ("var_samp(numeric)", of!(Numerics, VarianceSamp)),
    ("var_pop(int2)", of!(Ints, VariancePop)),
    ("var_pop(int4)", of!(Ints, VariancePop)),
    ("var_pop(int8)", of!(Ints, VariancePop)),
    ("var_pop(numeric)", of!(Numerics, VariancePop)),
    ("stddev(int2)", of!(Ints, DeviationSamp)),
    ("stddev(int4)", of!(Ints, DeviationSamp)),
    ("stddev(int8)", of!(Ints, DeviationSamp)),
    ("stddev(numeric)", of!(Numerics, DeviationSamp)),
    ("stddev_samp(int2)", of!(Ints, DeviationSamp)),
    ("stddev_samp(int4)", of!(Ints, DeviationSamp)),
    ("stddev_samp(int8)", of!(Ints, DeviationSamp)),
    ("stddev_samp(numeric)", of!(Numerics, DeviationSamp)),
    ("stddev_pop(int2)", of!(Ints, DeviationPop)),
    ("stddev_pop(int4)", of!(Ints, DeviationPop)),
    ("stddev_pop(int8)", of!(Ints, DeviationPop)),
    ("stddev_pop(numeric)", of!(Numerics, DeviationPop)),
];
