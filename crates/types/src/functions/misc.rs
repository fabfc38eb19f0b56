//! pg_typeof, format_type, sizes, xids, and what fits nowhere else.

use super::text::t;
use crate::Datum;
use crate::args::*;
use crate::numeric::Numeric;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use base::{Oid, Result, SqlError, SqlState, bail};

/// (unit, the size from which the next one is used, bits of it already rounded away)
const UNITS: &[(&str, u32)] =
    &[("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];

/// A size as `pg_size_pretty` writes it: the unit in which it is below 10240 (20480 once rounded).
pub fn size_pretty(size: i64) -> String {
    if size.unsigned_abs() < 10 * 1024 {
        return format!("{size} bytes");
    }
    // one bit more than the unit, to round half up
    let mut v = size / 512;
    for (i, (unit, _)) in UNITS.iter().enumerate().skip(1) {
        if i + 1 == UNITS.len() || v.unsigned_abs() < 20 * 1024 - 1 {
            let rounded = if v < 0 { (v - 1) / 2 } else { (v + 1) / 2 };
            return format!("{rounded} {unit}");
        }
        v /= 1024;
    }
    format!("{size} bytes")
}

fn numeric_pretty(n: &Numeric) -> Result<String> {
    if n.abs() < Numeric::from(10 * 1024) {
        return Ok(format!("{n} bytes"));
    }
    let two = Numeric::new(2, 0);
    let k = Numeric::from(1024);
    let mut v = n.div_trunc(&Numeric::from(512))?;
    for (i, (unit, _)) in UNITS.iter().enumerate().skip(1) {
        if i + 1 == UNITS.len() || v.abs() < Numeric::from(20 * 1024 - 1) {
            let one = Numeric::from(if v.signum() < 0 { -1 } else { 1 });
            return Ok(format!("{} {unit}", v.add(&one)?.div_trunc(&two)?));
        }
        v = v.div_trunc(&k)?;
    }
    Ok(format!("{n} bytes"))
}

fn size_bytes(s: &str) -> Result<Datum> {
    let invalid =
        || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{s}\""));
    let body = s.trim_matches(crate::text::is_space);
    let mut end = body
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(body.len());
    // an exponent, if digits follow the e
    let rest = &body[end..];
    if rest.starts_with(['e', 'E']) {
        let sign = usize::from(rest[1..].starts_with(['+', '-']));
        let digits = rest[1 + sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            end += 1 + sign + digits;
        }
    }
    let (number, unit) = (&body[..end], body[end..].trim_matches(crate::text::is_space));
    if number.is_empty() || !number.bytes().any(|b| b.is_ascii_digit()) {
        return Err(invalid().into());
    }
    let n = Numeric::parse(number).map_err(|_| invalid())?;
    let shift = if unit.is_empty() || unit.eq_ignore_ascii_case("B") {
        0
    } else {
        match UNITS.iter().find(|(u, _)| u.eq_ignore_ascii_case(unit)) {
            Some((_, shift)) => *shift,
            None => {
                return Err(invalid()
                    .detail(format!("Invalid size unit: \"{unit}\"."))
                    .hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
                    .into());
            }
        }
    };
    let v = n.mul(&Numeric::from(1u64 << shift))?;
    Ok(Datum::Int8(crate::numeric::to_integer(&v, "bigint")?))
}

/// How many bytes a value takes in a row, its header included.
fn column_size(d: &Datum, ty: Oid) -> Result<Datum> {
    if d.is_null() {
        return Ok(Datum::Null);
    }
    let mut out = Vec::new();
    crate::store::encode(ty, d, &mut out)?;
    let header = match crate::typename::type_info(ty).map_or(-1, |t| t.len) {
        -1 if out.len() < 127 => 1,
        -1 => 4,
        _ => 0,
    };
    Ok(Datum::Int4((out.len() + header) as i32))
}

fn nulls(a: &[Datum], want: bool) -> Datum {
    Datum::Int4(a.iter().filter(|d| d.is_null() == want).count() as i32)
}

fn typed(a: &[Datum], types: &[Oid]) -> Oid {
    match types.first() {
        Some(t) => *t,
        None => a.first().map_or(crate::oids::UNKNOWN, crate::io::natural_type),
    }
}

pub(super) const BODIES: BodyTable = &[
    ("pg_typeof", FunctionBody::ScalarTyped(|_, a, ty, _| Ok(Datum::Oid(typed(a, ty))))),
    (
        "format_type",
        S(|_, a| {
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            let typmod = if is_null(a, 1) { -1 } else { int4(a, 1)? };
            let oid = oid(a, 0)?;
            // without a modifier char(n) and bit(n) are named by their bare types
            if is_null(a, 1) && oid == crate::oids::BPCHAR {
                return Ok(t("character"));
            }
            if is_null(a, 1) && oid == crate::oids::BIT {
                return Ok(t("bit"));
            }
            Ok(t(crate::typename::format_type(oid, typmod)))
        }),
    ),
    (
        "pg_column_size",
        FunctionBody::ScalarTyped(|_, a, ty, _| {
            column_size(a.first().unwrap_or(&Datum::Null), typed(a, ty))
        }),
    ),
    ("pg_column_compression", S(|_, _| Ok(Datum::Null))),
    ("pg_num_nulls", S(|_, a| Ok(nulls(a, true)))),
    ("pg_num_nonnulls", S(|_, a| Ok(nulls(a, false)))),
    ("pg_size_pretty", S(|_, a| Ok(t(size_pretty(int8(a, 0)?))))),
    ("pg_size_pretty_numeric", S(|_, a| Ok(t(numeric_pretty(numeric(a, 0)?)?)))),
    ("pg_size_bytes", S(|_, a| size_bytes(text(a, 0)?))),
    (
        "pg_collation_for",
        FunctionBody::ScalarTyped(|_, a, ty, _| {
            let ty = typed(a, ty);
            match crate::typename::type_info(ty) {
                Some(i) if i.collation.0 == 950 => Ok(t("\"C\"")),
                Some(i) if i.collation.0 != 0 => Ok(t("\"default\"")),
                _ => bail!(
                    DATATYPE_MISMATCH,
                    "collations are not supported by type {}",
                    crate::typename::format_type(ty, -1)
                ),
            }
        }),
    ),
    ("pg_input_is_valid", S(|env, a| Ok(Datum::Bool(input_error(a, env)?.is_none())))),
    (
        "pg_input_error_info",
        FunctionBody::Set(|env, a| {
            let row = match input_error(a, env)? {
                None => vec![Datum::Null; 4],
                Some(e) => {
                    let e = e.to_sql_error();
                    let opt = |s: Option<String>| s.map_or(Datum::Null, t);
                    vec![t(&e.message), opt(e.detail), opt(e.hint), t(e.state.as_str())]
                }
            };
            Ok(Box::new(std::iter::once(Ok(row))))
        }),
    ),
    ("xid8toxid", S(|_, a| Ok(Datum::Oid(Oid(xid8(a, 0)? as u32))))),
    (
        "pg_get_keywords",
        FunctionBody::Set(|_, _| {
            Ok(Box::new(super::quote::keywords().map(|(word, class, bare)| {
                let (described, label) = match class {
                    'U' => ("unreserved", bare),
                    'C' => ("unreserved (cannot be function or type name)", bare),
                    'T' => ("reserved (can be function or type name)", bare),
                    _ => ("reserved", bare),
                };
                Ok(vec![
                    t(word),
                    Datum::Char(class as u8),
                    Datum::Bool(label),
                    t(described),
                    t(if label { "can be bare label" } else { "requires AS" }),
                ])
            })))
        }),
    ),
    ("to_regtype", S(|env, a| reg(crate::oids::REGTYPE, text(a, 0)?, env))),
    ("to_regclass", S(|env, a| reg(crate::oids::REGCLASS, text(a, 0)?, env))),
    ("to_regproc", S(|env, a| reg(crate::oids::REGPROC, text(a, 0)?, env))),
    ("to_regprocedure", S(|env, a| reg(crate::oids::REGPROCEDURE, text(a, 0)?, env))),
    ("to_regnamespace", S(|env, a| reg(crate::oids::REGNAMESPACE, text(a, 0)?, env))),
    ("to_regrole", S(|env, a| reg(crate::oids::REGROLE, text(a, 0)?, env))),
    ("to_regoper", S(|env, a| reg(crate::oids::REGOPER, text(a, 0)?, env))),
    ("to_regoperator", S(|env, a| reg(crate::oids::REGOPERATOR, text(a, 0)?, env))),
    ("to_regcollation", S(|env, a| reg(crate::oids::REGCOLLATION, text(a, 0)?, env))),
    (
        "text_regclass",
        S(|env, a| {
            // A name, also where it looks like a number.
            let name = text(a, 0)?;
            match env.object_oid(crate::oids::REGCLASS, name)? {
                Some(oid) => Ok(Datum::Oid(oid)),
                None => bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
            }
        }),
    ),
];

/// Does `text` read as a value of the type named `name` (with a modifier, perhaps)?
fn input_error(a: &[Datum], env: &dyn crate::Env) -> Result<Option<base::Error>> {
    let name = text(a, 1)?.trim().to_ascii_lowercase();
    // numeric(10,2), timestamp(3) with time zone
    let (bare, modifiers) = match (name.find('('), name.find(')')) {
        (Some(l), Some(r)) if l < r => {
            let numbers: Option<Vec<i32>> =
                name[l + 1..r].split(',').map(|n| n.trim().parse().ok()).collect();
            (format!("{}{}", name[..l].trim_end(), &name[r + 1..]), numbers.unwrap_or_default())
        }
        _ => (name.clone(), Vec::new()),
    };
    let Some(info) = crate::typename::type_by_name(bare.trim()) else {
        // A type that users made.
        if let Some(ty) = env.object_oid(crate::oids::REGTYPE, text(a, 1)?)? {
            return Ok(crate::io::text_input(ty, -1, text(a, 0)?, env).err());
        }
        bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist");
    };
    // a bare char is char(1)
    let modifiers = if modifiers.is_empty() && matches!(bare.as_str(), "char" | "character") {
        vec![1]
    } else {
        modifiers
    };
    let typmod = crate::typename::typmod_in(info.oid, &modifiers)?;
    Ok(crate::io::text_input(info.oid, typmod, text(a, 0)?, env).err())
}

/// A name's OID, or NULL when there is no such object.
fn reg(ty: Oid, name: &str, env: &dyn crate::Env) -> Result<Datum> {
    match crate::io::text_input(ty, -1, name, env) {
        Ok(d) => Ok(d),
        Err(e) if matches!(&e.state().0[..2], b"42" | b"3F") => Ok(Datum::Null),
        Err(e) => Err(e),
    }
}
