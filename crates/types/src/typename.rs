//! Types by OID and by name, and how a type is written.

use crate::facts::{self, TypeInfo};
use crate::oids::*;
use base::{FactMap, Oid};
use std::sync::OnceLock;

/// The built-in type, enum type, domain, or array of one of these or of a row type, with this OID. A row type has none.
pub fn type_info(oid: Oid) -> Option<&'static TypeInfo> {
    if oid >= Oid::FIRST_NORMAL {
        let known = crate::enums::info(oid).or_else(|| crate::domains::info(oid));
        return known.or_else(|| crate::row_types::info(oid));
    }
    static MAP: OnceLock<Vec<u16>> = OnceLock::new();
    let map = MAP.get_or_init(|| {
        let all = facts::types();
        let top = all.last().map_or(0, |t| t.oid.0 as usize);
        let mut map = vec![u16::MAX; top + 1];
        for (i, t) in all.iter().enumerate() {
            map[t.oid.0 as usize] = u16::try_from(i).unwrap_or(u16::MAX);
        }
        map
    });
    let i = *map.get(oid.0 as usize)?;
    facts::types().get(usize::from(i))
}

/// The element type of a true array type; None: it is none.
pub fn element_type(oid: Oid) -> Option<Oid> {
    let info = || type_info(oid).filter(|t| t.is_array() && t.element.is_valid());
    crate::row_types::row_of(oid).or_else(|| info().map(|t| t.element))
}

/// The array type over a type; None: it has none.
pub fn array_type(oid: Oid) -> Option<Oid> {
    match type_info(oid) {
        Some(info) => Some(info.array).filter(|a| a.is_valid()),
        // A table's row type.
        None => crate::row_types::array_of(oid),
    }
}

/// The SQL spellings that differ from `typname`.
const ALIASES: &[(&str, &str)] = &[
    ("bigint", "int8"),
    ("int", "int4"),
    ("integer", "int4"),
    ("smallint", "int2"),
    ("boolean", "bool"),
    ("real", "float4"),
    ("float", "float8"),
    ("double precision", "float8"),
    ("decimal", "numeric"),
    ("dec", "numeric"),
    ("character varying", "varchar"),
    ("char varying", "varchar"),
    ("character", "bpchar"),
    ("char", "bpchar"),
    ("national character", "bpchar"),
    ("nchar", "bpchar"),
    ("national character varying", "varchar"),
    ("time without time zone", "time"),
    ("time with time zone", "timetz"),
    ("timestamp without time zone", "timestamp"),
    ("timestamp with time zone", "timestamptz"),
    ("bit varying", "varbit"),
    ("\"char\"", "char"),
];

/// The type that SQL calls `name`: `typname`s, SQL's spellings (`int`, `timestamp with time zone`),
/// and either with `[]`. `char` is SQL's character(1); the one-byte type is `"char"`.
pub fn type_by_name(name: &str) -> Option<&'static TypeInfo> {
    static MAP: OnceLock<FactMap<&'static str, &'static TypeInfo>> = OnceLock::new();
    let map = MAP.get_or_init(|| {
        let mut map: FactMap<&'static str, &'static TypeInfo> =
            facts::types().iter().map(|t| (t.name, t)).collect();
        let found: Vec<_> =
            ALIASES.iter().filter_map(|(alias, n)| map.get(n).map(|t| (*alias, *t))).collect();
        map.extend(found);
        map
    });
    if let Some(t) = map.get(name) {
        return Some(t);
    }
    let element = name.strip_suffix("[]")?;
    let element = element.trim_end_matches("[]").trim_end();
    let t = map.get(element)?;
    type_info(t.array)
}

/// The type whose `typname` is exactly this (as quoted names and catalogs mean it).
pub fn type_by_typname(name: &str) -> Option<&'static TypeInfo> {
    static MAP: OnceLock<FactMap<&'static str, &'static TypeInfo>> = OnceLock::new();
    MAP.get_or_init(|| facts::types().iter().map(|t| (t.name, t)).collect()).get(name).copied()
}

/// How PostgreSQL writes a type (`format_type`): `character varying(10)`, `integer[]`.
/// Unknown OIDs give `???`; -1 is "no modifier".
pub fn format_type(oid: Oid, typmod: i32) -> String {
    if oid.0 == 0 {
        return "-".to_owned();
    }
    if let Some(element) = element_type(oid) {
        return format!("{}[]", format_type(element, typmod));
    }
    let Some(info) = type_info(oid) else { return "???".to_owned() };
    let plain = match oid {
        BOOL => "boolean",
        INT2 => "smallint",
        INT4 => "integer",
        INT8 => "bigint",
        FLOAT4 => "real",
        FLOAT8 => "double precision",
        BPCHAR if typmod < 0 => "bpchar",
        BPCHAR => "character",
        VARCHAR => "character varying",
        BIT if typmod < 0 => "\"bit\"",
        BIT => "bit",
        VARBIT => "bit varying",
        CHAR => "\"char\"",
        ANY => "\"any\"",
        TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ => {
            let (word, zone) = match oid {
                TIME => ("time", "without"),
                TIMETZ => ("time", "with"),
                TIMESTAMP => ("timestamp", "without"),
                _ => ("timestamp", "with"),
            };
            return if typmod >= 0 {
                format!("{word}({typmod}) {zone} time zone")
            } else {
                format!("{word} {zone} time zone")
            };
        }
        // Quoted where it must be, as users' names are.
        _ if oid >= Oid::FIRST_NORMAL => return crate::quote_ident(info.name),
        _ => info.name,
    };
    let mut s = plain.to_owned();
    if info.typmod_out != "-" {
        s.push_str(&typmod_out(oid, typmod));
    }
    s
}

/// [`format_type`], a type of a user qualified by its schema where the session's search path does not lead to it.
pub fn type_text(oid: Oid, typmod: i32, env: &dyn crate::Env) -> String {
    let named = if oid >= Oid::FIRST_NORMAL { env.object_name(REGTYPE, oid) } else { None };
    named.unwrap_or_else(|| format_type(oid, typmod))
}

/// The modifier as it follows the type's name: `(10,2)`, or nothing.
pub fn typmod_out(oid: Oid, typmod: i32) -> String {
    if typmod < 0 {
        return String::new();
    }
    match oid {
        BPCHAR | VARCHAR => format!("({})", typmod - 4),
        BIT | VARBIT => format!("({typmod})"),
        TIME | TIMESTAMP => format!("({typmod}) without time zone"),
        TIMETZ | TIMESTAMPTZ => format!("({typmod}) with time zone"),
        NUMERIC => {
            let (precision, scale) = numeric_typmod(typmod);
            format!("({precision},{scale})")
        }
        INTERVAL => interval_typmod_out(typmod),
        _ => format!("({typmod})"),
    }
}

/// (precision, scale) of a numeric's modifier.
pub fn numeric_typmod(typmod: i32) -> (i32, i32) {
    let t = typmod - 4;
    let precision = (t >> 16) & 0xffff;
    let scale = ((t & 0x7ff) ^ 1024) - 1024;
    (precision, scale)
}

const INTERVAL_FULL_RANGE: i32 = 0x7fff;
const INTERVAL_FULL_PRECISION: i32 = 0xffff;
/// (range mask, SQL words); the masks are bits of YEAR 2, MONTH 1, DAY 3, HOUR 10, MINUTE 11, SECOND 12.
const INTERVAL_RANGES: &[(i32, &str)] = &[
    (1 << 2, "year"),
    (1 << 1, "month"),
    (1 << 3, "day"),
    (1 << 10, "hour"),
    (1 << 11, "minute"),
    (1 << 12, "second"),
    (1 << 2 | 1 << 1, "year to month"),
    (1 << 3 | 1 << 10, "day to hour"),
    (1 << 3 | 1 << 10 | 1 << 11, "day to minute"),
    (1 << 3 | 1 << 10 | 1 << 11 | 1 << 12, "day to second"),
    (1 << 10 | 1 << 11, "hour to minute"),
    (1 << 10 | 1 << 11 | 1 << 12, "hour to second"),
    (1 << 11 | 1 << 12, "minute to second"),
];

fn interval_typmod_out(typmod: i32) -> String {
    let (range, precision) = ((typmod >> 16) & 0x7fff, typmod & 0xffff);
    let mut s = String::new();
    if range != INTERVAL_FULL_RANGE
        && let Some((_, words)) = INTERVAL_RANGES.iter().find(|(mask, _)| *mask == range)
    {
        s.push(' ');
        s.push_str(words);
    }
    if precision != INTERVAL_FULL_PRECISION {
        s.push_str(&format!("({precision})"));
    }
    s
}

/// An interval's modifier from its field words (`day to second`, or empty) and precision.
pub fn interval_typmod(fields: &str, precision: Option<i32>) -> Option<i32> {
    let range = if fields.is_empty() {
        INTERVAL_FULL_RANGE
    } else {
        INTERVAL_RANGES.iter().find(|(_, w)| w.eq_ignore_ascii_case(fields))?.0
    };
    if range == INTERVAL_FULL_RANGE && precision.is_none() {
        return Some(-1);
    }
    Some((range << 16) | precision.unwrap_or(INTERVAL_FULL_PRECISION).clamp(0, 0xffff))
}

/// The type modifier that `type(args)` stands for.
///
/// # Errors
/// `22023` when they are out of range, `42601` when the type takes none.
pub fn typmod_in(oid: Oid, args: &[i32]) -> base::Result<i32> {
    let Some(info) = type_info(oid) else {
        base::bail!(UNDEFINED_OBJECT, "type with OID {} does not exist", oid.0)
    };
    if let Some(element) = element_type(oid) {
        return typmod_in(element, args);
    }
    if args.is_empty() {
        return Ok(-1);
    }
    let one = || -> base::Result<i32> {
        match args {
            [n] => Ok(*n),
            _ => base::bail!(INVALID_PARAMETER_VALUE, "invalid type modifier"),
        }
    };
    match oid {
        BPCHAR | VARCHAR => {
            let name = if oid == VARCHAR { "varchar" } else { "char" };
            let n = one()?;
            if n < 1 {
                base::bail!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1");
            }
            if n > 10_485_760 {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "length for type {name} cannot exceed 10485760"
                );
            }
            Ok(n + 4)
        }
        BIT | VARBIT => {
            let name = if oid == BIT { "bit" } else { "varbit" };
            let n = one()?;
            if n < 1 {
                base::bail!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1");
            }
            Ok(n)
        }
        NUMERIC => {
            let (precision, scale) = match args {
                [p] => (*p, 0),
                [p, s] => (*p, *s),
                _ => base::bail!(INVALID_PARAMETER_VALUE, "invalid NUMERIC type modifier"),
            };
            if !(1..=1000).contains(&precision) {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "NUMERIC precision {precision} must be between 1 and 1000"
                );
            }
            if !(-1000..=1000).contains(&scale) {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "NUMERIC scale {scale} must be between -1000 and 1000"
                );
            }
            Ok(((precision << 16) | (scale & 0x7ff)) + 4)
        }
        TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ => {
            let n = one()?;
            if n < 0 {
                let name = format_type(oid, -1);
                let name = name.split(' ').next().unwrap_or("").to_uppercase();
                base::bail!(INVALID_PARAMETER_VALUE, "{name}({n}) precision must not be negative");
            }
            Ok(n.min(6))
        }
        INTERVAL => {
            let n = one()?;
            if n < 0 {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "INTERVAL({n}) precision must not be negative"
                );
            }
            Ok((INTERVAL_FULL_RANGE << 16) | n.min(6))
        }
        _ => base::bail!(SYNTAX_ERROR, "type modifier is not allowed for type \"{}\"", info.name),
    }
}
