//! random(), setseed, uuids.

use crate::args::*;
use crate::numeric::Numeric;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Result, bail, err};
use std::cell::RefCell;

/// xoroshiro128**: one state a session (a session is a thread).
struct Generator {
    s0: u64,
    s1: u64,
}

thread_local!(static STATE: RefCell<Option<Generator>> = const { RefCell::new(None) });

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut v = *state;
    v = (v ^ (v >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    v = (v ^ (v >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    v ^ (v >> 31)
}

impl Generator {
    fn from_seed(seed: u64) -> Generator {
        let mut s = seed;
        Generator { s0: splitmix(&mut s), s1: splitmix(&mut s) }
    }
    fn from_system() -> Generator {
        let mut b = [0u8; 8];
        // without entropy the clock must do
        let seed = match getrandom::fill(&mut b) {
            Ok(()) => u64::from_le_bytes(b),
            Err(_) => base::sync::now_timestamp_us() as u64,
        };
        Generator::from_seed(seed)
    }
    fn next(&mut self) -> u64 {
        let (s0, sx) = (self.s0, self.s1 ^ self.s0);
        let value = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        value
    }
}

fn next() -> u64 {
    STATE.with_borrow_mut(|s| s.get_or_insert_with(Generator::from_system).next())
}

/// [0, 1)
pub(crate) fn uniform() -> f64 {
    (next() >> 12) as f64 / (1u64 << 52) as f64
}

/// [0, n)
pub(crate) fn below(n: u64) -> u64 {
    if n <= 1 {
        return 0;
    }
    between(n - 1)
}

/// [0, range], by rejection over the smallest mask.
fn between(range: u64) -> u64 {
    if range == 0 {
        return 0;
    }
    let shift = range.leading_zeros();
    loop {
        let v = next() >> shift;
        if v <= range {
            return v;
        }
    }
}

fn seed(v: f64) -> Result<Datum> {
    if !(-1.0..=1.0).contains(&v) {
        let mut s = String::new();
        crate::io::float8_output(v, 1, &mut s);
        bail!(INVALID_PARAMETER_VALUE, "setseed parameter {s} is out of allowed range [-1,1]");
    }
    let seed = (((1u64 << 52) - 1) as f64 * v) as i64 as u64;
    STATE.with_borrow_mut(|s| *s = Some(Generator::from_seed(seed)));
    // void
    Ok(Datum::text(""))
}

fn check(low_is_greater: bool) -> Result<()> {
    if low_is_greater {
        bail!(INVALID_PARAMETER_VALUE, "lower bound must be less than or equal to upper bound");
    }
    Ok(())
}

fn normal(mean: f64, deviation: f64) -> f64 {
    // Box and Muller
    let u1 = 1.0 - uniform();
    let u2 = 1.0 - uniform();
    let z = (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin();
    deviation * z + mean
}

fn numerics(low: &Numeric, high: &Numeric) -> Result<Datum> {
    for (n, what) in [(low, "lower"), (high, "upper")] {
        if n.is_nan() {
            bail!(INVALID_PARAMETER_VALUE, "{what} bound cannot be NaN");
        }
        if n.is_infinite() {
            bail!(INVALID_PARAMETER_VALUE, "{what} bound cannot be infinity");
        }
    }
    check(low > high)?;
    let scale = low.scale().max(high.scale());
    let (a, b) = (low.round(scale), high.round(scale));
    let range = b.sub(&a)?;
    let unit = Numeric::new(1, scale as u16);
    // steps of one unit; wide ranges get 63 random bits and a remainder
    let steps = range.div_trunc(&unit)?;
    let pick = match steps.to_i64() {
        Some(n) => Numeric::from(between(n as u64)),
        None => {
            let mut v = Numeric::ZERO;
            let mut remaining = steps.exponent() + 1;
            while remaining > 0 {
                v = v.mul(&Numeric::from(1u64 << 62))?.add(&Numeric::from(next() >> 2))?;
                remaining -= 18;
            }
            v.rem(&steps.add(&Numeric::new(1, 0))?)?
        }
    };
    Ok(Datum::Numeric(Box::new(a.add(&pick.mul(&unit)?)?)))
}

fn random_bytes() -> Result<[u8; 16]> {
    let mut b = [0u8; 16];
    getrandom::fill(&mut b)
        .map_err(|e| err!(INTERNAL_ERROR, "could not generate random values: {e}"))?;
    Ok(b)
}

fn uuid4() -> Result<Datum> {
    let mut b = random_bytes()?;
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(b))
}

const UNIX_TO_2000_US: i64 = 946_684_800_000_000;

/// Version 7: milliseconds, then the sub-millisecond part in 12 bits, then random bits; rising within a session.
fn uuid7(shift_us: i64) -> Result<Datum> {
    let far = || {
        base::SqlError::new(
            base::SqlState::DATETIME_FIELD_OVERFLOW,
            "timestamp out of range for UUID version 7",
        )
        .detail("UUID version 7 supports timestamps from 1970-01-01 to approximately year 10889.")
    };
    thread_local!(static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
    let mut b = random_bytes()?;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    // 12 bits of a millisecond are steps of about 245 ns
    let now = now.max(LAST.get() + 245);
    LAST.set(now);
    let ns = i128::from(now) + i128::from(shift_us) * 1000;
    let ms = u64::try_from(ns.div_euclid(1_000_000)).ok().filter(|ms| *ms >> 48 == 0);
    let ms = ms.ok_or_else(far)?;
    let sub = ns.rem_euclid(1_000_000) * 4096 / 1_000_000;
    b[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    b[6] = 0x70 | (sub >> 8) as u8;
    b[7] = sub as u8;
    b[8] = b[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(b))
}

fn uuid_version(u: &[u8; 16]) -> Option<u8> {
    (u[8] & 0xc0 == 0x80).then_some(u[6] >> 4)
}

fn uuid_timestamp(u: &[u8; 16]) -> Option<i64> {
    let part = |r: &[u8]| r.iter().fold(0u64, |a, b| a << 8 | u64::from(*b));
    match uuid_version(u)? {
        1 => {
            let t = part(&u[0..4]) | part(&u[4..6]) << 32 | (part(&u[6..8]) & 0xfff) << 48;
            // 100 ns since 1582-10-15
            Some((t / 10) as i64 - 12_219_292_800_000_000 - UNIX_TO_2000_US)
        }
        7 => Some(part(&u[0..6]) as i64 * 1000 - UNIX_TO_2000_US),
        _ => None,
    }
}

fn later(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let now = env.statement_timestamp();
    let by = interval(a, 0)?;
    let infinite = [(i32::MAX, i32::MAX, i64::MAX), (i32::MIN, i32::MIN, i64::MIN)];
    if infinite.contains(&(by.months, by.days, by.micros)) {
        let e = base::SqlError::new(
            base::SqlState::DATETIME_FIELD_OVERFLOW,
            "interval out of range for UUID version 7",
        );
        return Err(e.detail("UUID version 7 does not support infinite intervals.").into());
    }
    let then = crate::datetime::timestamp_plus_interval(now, &by)?;
    uuid7(then.wrapping_sub(now))
}

const UUID4: FunctionBody = S(|_, _| uuid4());

pub(super) const BODIES: BodyTable = &[
    ("drandom", S(|_, _| Ok(Datum::Float8(uniform())))),
    ("setseed", S(|_, a| seed(float8(a, 0)?))),
    (
        "drandom_normal",
        S(|_, a| {
            Ok(Datum::Float8(normal(float8(a, 0).unwrap_or(0.0), float8(a, 1).unwrap_or(1.0))))
        }),
    ),
    (
        "int4random",
        S(|_, a| {
            let (x, y) = (int4(a, 0)?, int4(a, 1)?);
            check(x > y)?;
            Ok(Datum::Int4(
                (i64::from(x) + between((i64::from(y) - i64::from(x)) as u64) as i64) as i32,
            ))
        }),
    ),
    (
        "int8random",
        S(|_, a| {
            let (x, y) = (int8(a, 0)?, int8(a, 1)?);
            check(x > y)?;
            Ok(Datum::Int8(x.wrapping_add(between(y.wrapping_sub(x) as u64) as i64)))
        }),
    ),
    ("numeric_random", S(|_, a| numerics(numeric(a, 0)?, numeric(a, 1)?))),
    ("gen_random_uuid", UUID4),
    ("uuidv7", S(|_, _| uuid7(0))),
    ("uuidv7_interval", S(later)),
    (
        "uuid_extract_version",
        S(|_, a| Ok(uuid_version(&uuid(a, 0)?).map_or(Datum::Null, |v| Datum::Int2(i16::from(v))))),
    ),
    (
        "uuid_extract_timestamp",
        S(|_, a| Ok(uuid_timestamp(&uuid(a, 0)?).map_or(Datum::Null, Datum::TimestampTz))),
    ),
];
