//! sum, avg, variance, regression over floats: Youngs and Cramer's updates, as PostgreSQL's.

use crate::registry::{AggregateState, BodyTable, FunctionBody};
use crate::{Datum, Env};
use base::{Result, err};

fn overflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn number(d: Option<&Datum>) -> Option<f64> {
    match d {
        Some(Datum::Float8(v)) => Some(*v),
        Some(Datum::Float4(v)) => Some(f64::from(*v)),
        _ => None,
    }
}

/// sum.
struct Sum {
    sum: Datum,
}
impl AggregateState for Sum {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.sum = match (&self.sum, args.first()) {
            (_, None | Some(Datum::Null)) => return Ok(()),
            (Datum::Null, Some(v)) => v.clone(),
            (Datum::Float8(s), Some(Datum::Float8(v))) => {
                let r = s + v;
                if r.is_infinite() && s.is_finite() && v.is_finite() {
                    return Err(overflow());
                }
                Datum::Float8(r)
            }
            (Datum::Float4(s), Some(Datum::Float4(v))) => {
                let r = s + v;
                if r.is_infinite() && s.is_finite() && v.is_finite() {
                    return Err(overflow());
                }
                Datum::Float4(r)
            }
            (other, _) => other.clone(),
        };
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(self.sum.clone())
    }
}

/// Count, sum and sum of squared differences of one variable.
#[derive(Default)]
struct Moments {
    n: f64,
    sx: f64,
    sxx: f64,
}

struct One {
    m: Moments,
    finish: fn(&Moments) -> Option<f64>,
}
impl AggregateState for One {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        let Some(x) = number(args.first()) else { return Ok(()) };
        let m = &mut self.m;
        let before = m.n;
        let old = m.sx;
        m.n += 1.0;
        m.sx += x;
        if before > 0.0 {
            let d = x * m.n - m.sx;
            m.sxx += d * d / (m.n * before);
            if m.sx.is_infinite() || m.sxx.is_infinite() {
                if old.is_finite() && x.is_finite() {
                    return Err(overflow());
                }
                m.sxx = f64::NAN;
            }
        } else if !x.is_finite() {
            m.sxx = f64::NAN;
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok((self.finish)(&self.m).map_or(Datum::Null, Datum::Float8))
    }
}

fn one(finish: fn(&Moments) -> Option<f64>) -> Box<dyn AggregateState> {
    Box::new(One { m: Moments::default(), finish })
}

fn average(m: &Moments) -> Option<f64> {
    (m.n > 0.0).then(|| m.sx / m.n)
}
fn variance_pop(m: &Moments) -> Option<f64> {
    (m.n > 0.0).then(|| m.sxx / m.n)
}
fn variance_samp(m: &Moments) -> Option<f64> {
    (m.n > 1.0).then(|| m.sxx / (m.n - 1.0))
}
fn deviation_pop(m: &Moments) -> Option<f64> {
    variance_pop(m).map(f64::sqrt)
}
fn deviation_samp(m: &Moments) -> Option<f64> {
    variance_samp(m).map(f64::sqrt)
}

/// Two variables.
#[derive(Default)]
struct Pairs {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

struct Two {
    p: Pairs,
    finish: fn(&Pairs) -> Option<Datum>,
}
impl AggregateState for Two {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        // (Y, X)
        let (Some(y), Some(x)) = (number(args.first()), number(args.get(1))) else {
            return Ok(());
        };
        let p = &mut self.p;
        let before = p.n;
        let old = (p.sx, p.sy);
        p.n += 1.0;
        p.sx += x;
        p.sy += y;
        if before > 0.0 {
            let (dx, dy) = (x * p.n - p.sx, y * p.n - p.sy);
            let scale = 1.0 / (p.n * before);
            p.sxx += dx * dx * scale;
            p.syy += dy * dy * scale;
            p.sxy += dx * dy * scale;
            let over_x = p.sx.is_infinite() || p.sxx.is_infinite();
            let over_y = p.sy.is_infinite() || p.syy.is_infinite();
            if over_x || over_y || p.sxy.is_infinite() {
                if (over_x && old.0.is_finite() && x.is_finite())
                    || (over_y && old.1.is_finite() && y.is_finite())
                    || (p.sxy.is_infinite()
                        && old.0.is_finite()
                        && x.is_finite()
                        && old.1.is_finite()
                        && y.is_finite())
                {
                    return Err(overflow());
                }
                if p.sxx.is_infinite() {
                    p.sxx = f64::NAN;
                }
                if p.syy.is_infinite() {
                    p.syy = f64::NAN;
                }
                if p.sxy.is_infinite() {
                    p.sxy = f64::NAN;
                }
            }
        } else {
            if !x.is_finite() {
                p.sxx = f64::NAN;
                p.sxy = f64::NAN;
            }
            if !y.is_finite() {
                p.syy = f64::NAN;
                p.sxy = f64::NAN;
            }
        }
        Ok(())
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok((self.finish)(&self.p).unwrap_or(Datum::Null))
    }
}

/// How many pairs without NULLs, whatever they are.
struct PairCount(i64);

impl AggregateState for PairCount {
    fn add(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<()> {
        self.0 += i64::from(args.iter().all(|a| !a.is_null()));
        Ok(())
    }
    fn remove(&mut self, _env: &dyn Env, args: &[Datum]) -> Result<bool> {
        self.0 -= i64::from(args.iter().all(|a| !a.is_null()));
        Ok(true)
    }
    fn finish(&self, _env: &dyn Env) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }
}

macro_rules! pairs {
    ($min:literal, |$p:ident| $e:expr) => {
        FunctionBody::Aggregate(|_, _| {
            Box::new(Two {
                p: Pairs::default(),
                finish: |$p| if $p.n < $min { None } else { $e.map(Datum::Float8) },
            })
        })
    };
}

const SUM: FunctionBody = FunctionBody::Aggregate(|_, _| Box::new(Sum { sum: Datum::Null }));
const AVG: FunctionBody = FunctionBody::Aggregate(|_, _| one(average));
const VAR_SAMP: FunctionBody = FunctionBody::Aggregate(|_, _| one(variance_samp));
const VAR_POP: FunctionBody = FunctionBody::Aggregate(|_, _| one(variance_pop));
const DEV_SAMP: FunctionBody = FunctionBody::Aggregate(|_, _| one(deviation_samp));
const DEV_POP: FunctionBody = FunctionBody::Aggregate(|_, _| one(deviation_pop));

pub(super) const BODIES: BodyTable = &[
    ("sum(float4)", SUM),
    ("sum(float8)", SUM),
    ("avg(float4)", AVG),
    ("avg(float8)", AVG),
    ("variance(float4)", VAR_SAMP),
    ("variance(float8)", VAR_SAMP),
    ("var_samp(float4)", VAR_SAMP),
    ("var_samp(float8)", VAR_SAMP),
    ("var_pop(float4)", VAR_POP),
    ("var_pop(float8)", VAR_POP),
    ("stddev(float4)", DEV_SAMP),
    ("stddev(float8)", DEV_SAMP),
    ("stddev_samp(float4)", DEV_SAMP),
    ("stddev_samp(float8)", DEV_SAMP),
    ("stddev_pop(float4)", DEV_POP),
    ("stddev_pop(float8)", DEV_POP),
    ("regr_count(float8,float8)", FunctionBody::Aggregate(|_, _| Box::new(PairCount(0)))),
    ("regr_sxx(float8,float8)", pairs!(1.0, |p| Some(p.sxx))),
    ("regr_syy(float8,float8)", pairs!(1.0, |p| Some(p.syy))),
    ("regr_sxy(float8,float8)", pairs!(1.0, |p| Some(p.sxy))),
    ("regr_avgx(float8,float8)", pairs!(1.0, |p| Some(p.sx / p.n))),
    ("regr_avgy(float8,float8)", pairs!(1.0, |p| Some(p.sy / p.n))),
    ("covar_pop(float8,float8)", pairs!(1.0, |p| Some(p.sxy / p.n))),
    ("covar_samp(float8,float8)", pairs!(2.0, |p| Some(p.sxy / (p.n - 1.0)))),
    (
        "corr(float8,float8)",
        pairs!(1.0, |p| {
            if p.sxx == 0.0 || p.syy == 0.0 { None } else { Some(p.sxy / (p.sxx * p.syy).sqrt()) }
        }),
    ),
    (
        "regr_r2(float8,float8)",
        pairs!(1.0, |p| {
            if p.sxx == 0.0 {
                None
            } else if p.syy == 0.0 {
                Some(1.0)
            } else {
                Some((p.sxy * p.sxy) / (p.sxx * p.syy))
            }
        }),
    ),
    (
        "regr_slope(float8,float8)",
        pairs!(1.0, |p| if p.sxx == 0.0 { None } else { Some(p.sxy / p.sxx) }),
    ),
    (
        "regr_intercept(float8,float8)",
        pairs!(1.0, |p| {
            if p.sxx == 0.0 { None } else { Some((p.sy - p.sx * p.sxy / p.sxx) / p.n) }
        }),
    ),
];
