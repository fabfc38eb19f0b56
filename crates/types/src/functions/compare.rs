//! = <> < <= > >= and the btree comparison functions, for every type.

use crate::args;
use crate::macros::{comparisons, order_body};
use crate::registry::BodyTable;
use crate::{Datum, RecordValue, compare};
use base::Result;
use std::cmp::Ordering;

fn i64_of(a: &[Datum], i: usize) -> Result<i64> {
    Ok(match a.get(i) {
        Some(Datum::Int4(n)) => i64::from(*n),
        Some(Datum::Int2(n)) => i64::from(*n),
        _ => args::int8(a, i)?,
    })
}
fn i64_cmp(a: i64, b: i64) -> Ordering {
    a.cmp(&b)
}
fn f64_of(a: &[Datum], i: usize) -> Result<f64> {
    match a.get(i) {
        Some(Datum::Float4(n)) => Ok(f64::from(*n)),
        _ => args::float8(a, i),
    }
}
/// xid and the like, oid against an integer too.
fn oid_of(a: &[Datum], i: usize) -> Result<u32> {
    match a.get(i) {
        Some(Datum::Int4(n)) => Ok(*n as u32),
        _ => Ok(args::oid(a, i)?.0),
    }
}
fn ord<T: Ord>(a: T, b: T) -> Ordering {
    a.cmp(&b)
}
fn str_cmp(a: &str, b: &str) -> Ordering {
    a.as_bytes().cmp(b.as_bytes())
}
fn bpchar_cmp(a: &str, b: &str) -> Ordering {
    compare::bpchar_compare(a.as_bytes(), b.as_bytes())
}
fn any(a: &[Datum], i: usize) -> Result<&Datum> {
    a.get(i).ok_or_else(|| base::err!(INTERNAL_ERROR, "missing argument"))
}
fn by_value(a: &Datum, b: &Datum) -> Ordering {
    compare::compare(base::Oid(0), a, b)
}
/// The first of two rows, if the second is one of the same types as far as the two do not differ.
fn alike(a: &[Datum], i: usize) -> Result<&Datum> {
    let (one, other) = (any(a, i)?, any(a, i + 1)?);
    let (Datum::Record(x), Datum::Record(y)) = (one.now()?, other.now()?) else { return Ok(one) };
    for (at, (p, q)) in x.fields.iter().zip(&y.fields).enumerate() {
        let ty = |r: &RecordValue| r.columns.get(at).map_or(base::Oid(0), |c| c.type_oid);
        let (of_p, of_q) = (ty(x), ty(y));
        if known(of_p) && known(of_q) && of_p != of_q {
            base::bail!(
                DATATYPE_MISMATCH,
                "cannot compare dissimilar column types {} and {} at record column {}",
                crate::format_type(of_p, -1),
                crate::format_type(of_q, -1),
                at + 1
            );
        }
        if compare::compare(of_p, p, q) != Ordering::Equal {
            return Ok(one);
        }
    }
    if x.fields.len() != y.fields.len() {
        base::bail!(
            DATATYPE_MISMATCH,
            "cannot compare record types with different numbers of columns"
        );
    }
    Ok(one)
}
/// What a literal without a type became is not told here.
fn known(ty: base::Oid) -> bool {
    ty.is_valid() && ty != crate::oids::UNKNOWN
}
/// oidvectors: the longer one is greater.
fn vector_cmp(a: &Datum, b: &Datum) -> Ordering {
    compare::compare(crate::oids::OIDVECTOR, a, b)
}

macro_rules! families {
    ($($name:ident: $a:path, $b:path, $cmp:path, $eq:literal $ne:literal $lt:literal $le:literal $gt:literal $ge:literal;)*) => {
        $(pub(super) const $name: BodyTable = comparisons!($a, $b, $cmp; $eq, $ne, $lt, $le, $gt, $ge);)*
    };
}

families! {
    BOOL: args::boolean, args::boolean, ord, "booleq" "boolne" "boollt" "boolle" "boolgt" "boolge";
    CHAR: args::char1, args::char1, ord, "chareq" "charne" "charlt" "charle" "chargt" "charge";
    INT2: i64_of, i64_of, i64_cmp, "int2eq" "int2ne" "int2lt" "int2le" "int2gt" "int2ge";
    INT4: args::int4, args::int4, ord, "int4eq" "int4ne" "int4lt" "int4le" "int4gt" "int4ge";
    INT8: args::int8, args::int8, ord, "int8eq" "int8ne" "int8lt" "int8le" "int8gt" "int8ge";
    INT24: i64_of, i64_of, i64_cmp, "int24eq" "int24ne" "int24lt" "int24le" "int24gt" "int24ge";
    INT42: i64_of, i64_of, i64_cmp, "int42eq" "int42ne" "int42lt" "int42le" "int42gt" "int42ge";
    INT28: i64_of, i64_of, i64_cmp, "int28eq" "int28ne" "int28lt" "int28le" "int28gt" "int28ge";
    INT82: i64_of, i64_of, i64_cmp, "int82eq" "int82ne" "int82lt" "int82le" "int82gt" "int82ge";
    INT48: i64_of, i64_of, i64_cmp, "int48eq" "int48ne" "int48lt" "int48le" "int48gt" "int48ge";
    INT84: i64_of, i64_of, i64_cmp, "int84eq" "int84ne" "int84lt" "int84le" "int84gt" "int84ge";
    FLOAT4: f64_of, f64_of, compare::float_compare, "float4eq" "float4ne" "float4lt" "float4le" "float4gt" "float4ge";
    FLOAT8: f64_of, f64_of, compare::float_compare, "float8eq" "float8ne" "float8lt" "float8le" "float8gt" "float8ge";
    FLOAT48: f64_of, f64_of, compare::float_compare, "float48eq" "float48ne" "float48lt" "float48le" "float48gt" "float48ge";
    FLOAT84: f64_of, f64_of, compare::float_compare, "float84eq" "float84ne" "float84lt" "float84le" "float84gt" "float84ge";
    NUMERIC: args::numeric, args::numeric, ord, "numeric_eq" "numeric_ne" "numeric_lt" "numeric_le" "numeric_gt" "numeric_ge";
    TEXT: args::text, args::text, str_cmp, "texteq" "textne" "text_lt" "text_le" "text_gt" "text_ge";
    BPCHAR: args::text, args::text, bpchar_cmp, "bpchareq" "bpcharne" "bpcharlt" "bpcharle" "bpchargt" "bpcharge";
    NAME: args::text, args::text, str_cmp, "nameeq" "namene" "namelt" "namele" "namegt" "namege";
    NAMETEXT: args::text, args::text, str_cmp, "nameeqtext" "namenetext" "namelttext" "nameletext" "namegttext" "namegetext";
    TEXTNAME: args::text, args::text, str_cmp, "texteqname" "textnename" "textltname" "textlename" "textgtname" "textgename";
    TEXT_PATTERN: args::text, args::text, str_cmp, "-" "-" "text_pattern_lt" "text_pattern_le" "text_pattern_gt" "text_pattern_ge";
    BPCHAR_PATTERN: args::text, args::text, bpchar_cmp, "-" "-" "bpchar_pattern_lt" "bpchar_pattern_le" "bpchar_pattern_gt" "bpchar_pattern_ge";
    BYTEA: args::bytes, args::bytes, ord, "byteaeq" "byteane" "bytealt" "byteale" "byteagt" "byteage";
    OID: oid_of, oid_of, ord, "oideq" "oidne" "oidlt" "oidle" "oidgt" "oidge";
    XID: oid_of, oid_of, ord, "xideq" "xidneq" "-" "-" "-" "-";
    XIDINT4: oid_of, oid_of, ord, "xideqint4" "xidneqint4" "-" "-" "-" "-";
    CID: oid_of, oid_of, ord, "cideq" "-" "-" "-" "-" "-";
    XID8: args::xid8, args::xid8, ord, "xid8eq" "xid8ne" "xid8lt" "xid8le" "xid8gt" "xid8ge";
    TID: args::tid, args::tid, ord, "tideq" "tidne" "tidlt" "tidle" "tidgt" "tidge";
    LSN: args::lsn, args::lsn, ord, "pg_lsn_eq" "pg_lsn_ne" "pg_lsn_lt" "pg_lsn_le" "pg_lsn_gt" "pg_lsn_ge";
    UUID: args::uuid, args::uuid, ord, "uuid_eq" "uuid_ne" "uuid_lt" "uuid_le" "uuid_gt" "uuid_ge";
    OIDVECTOR: any, any, vector_cmp, "oidvectoreq" "oidvectorne" "oidvectorlt" "oidvectorle" "oidvectorgt" "oidvectorge";
    ARRAY: any, any, by_value, "array_eq" "array_ne" "array_lt" "array_le" "array_gt" "array_ge";
    RECORD: alike, any, by_value, "record_eq" "record_ne" "record_lt" "record_le" "record_gt" "record_ge";
    ENUM: any, any, by_value, "enum_eq" "enum_ne" "enum_lt" "enum_le" "enum_gt" "enum_ge";
    JSONB: any, any, by_value, "jsonb_eq" "jsonb_ne" "jsonb_lt" "jsonb_le" "jsonb_gt" "jsonb_ge";
    DATE: args::date, args::date, ord, "date_eq" "date_ne" "date_lt" "date_le" "date_gt" "date_ge";
    TIME: args::time, args::time, ord, "time_eq" "time_ne" "time_lt" "time_le" "time_gt" "time_ge";
    TIMETZ: any, any, by_value, "timetz_eq" "timetz_ne" "timetz_lt" "timetz_le" "timetz_gt" "timetz_ge";
    TIMESTAMP: any, any, by_value, "timestamp_eq" "timestamp_ne" "timestamp_lt" "timestamp_le" "timestamp_gt" "timestamp_ge";
    INTERVAL: any, any, by_value, "interval_eq" "interval_ne" "interval_lt" "interval_le" "interval_gt" "interval_ge";
    BIT: args::text, args::text, str_cmp, "biteq" "bitne" "bitlt" "bitle" "bitgt" "bitge";
}

/// The tables above.
pub(super) const FAMILIES: &[BodyTable] = &[
    BOOL,
    CHAR,
    INT2,
    INT4,
    INT8,
    INT24,
    INT42,
    INT28,
    INT82,
    INT48,
    INT84,
    FLOAT4,
    FLOAT8,
    FLOAT48,
    FLOAT84,
    NUMERIC,
    TEXT,
    BPCHAR,
    NAME,
    NAMETEXT,
    TEXTNAME,
    TEXT_PATTERN,
    BPCHAR_PATTERN,
    BYTEA,
    OID,
    XID,
    XIDINT4,
    CID,
    XID8,
    TID,
    LSN,
    UUID,
    OIDVECTOR,
    ARRAY,
    RECORD,
    ENUM,
    JSONB,
    DATE,
    TIME,
    TIMETZ,
    TIMESTAMP,
    INTERVAL,
    BIT,
    ORDERS,
];

/// The functions that btree operator classes name, and min/max of two.
pub(super) const ORDERS: BodyTable = &[
    ("btboolcmp", order_body!(any, any, by_value)),
    ("btcharcmp", order_body!(any, any, by_value)),
    ("btint2cmp", order_body!(any, any, by_value)),
    ("btint4cmp", order_body!(args::int4, args::int4, ord)),
    ("btint8cmp", order_body!(args::int8, args::int8, ord)),
    ("btint24cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btint42cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btint28cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btint82cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btint48cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btint84cmp", order_body!(i64_of, i64_of, i64_cmp)),
    ("btfloat4cmp", order_body!(f64_of, f64_of, compare::float_compare)),
    ("btfloat8cmp", order_body!(f64_of, f64_of, compare::float_compare)),
    ("btfloat48cmp", order_body!(f64_of, f64_of, compare::float_compare)),
    ("btfloat84cmp", order_body!(f64_of, f64_of, compare::float_compare)),
    ("numeric_cmp", order_body!(any, any, by_value)),
    ("bttextcmp", order_body!(args::text, args::text, str_cmp)),
    ("btnamecmp", order_body!(args::text, args::text, str_cmp)),
    ("btnametextcmp", order_body!(args::text, args::text, str_cmp)),
    ("bttextnamecmp", order_body!(args::text, args::text, str_cmp)),
    ("bttext_pattern_cmp", order_body!(args::text, args::text, str_cmp)),
    ("bpcharcmp", order_body!(args::text, args::text, bpchar_cmp)),
    ("btbpchar_pattern_cmp", order_body!(args::text, args::text, bpchar_cmp)),
    ("byteacmp", order_body!(any, any, by_value)),
    ("btoidcmp", order_body!(oid_of, oid_of, ord)),
    ("btoidvectorcmp", order_body!(any, any, vector_cmp)),
    ("xid8cmp", order_body!(any, any, by_value)),
    ("bttidcmp", order_body!(any, any, by_value)),
    ("pg_lsn_cmp", order_body!(any, any, by_value)),
    ("uuid_cmp", order_body!(any, any, by_value)),
    ("btarraycmp", order_body!(any, any, by_value)),
    ("btrecordcmp", order_body!(any, any, by_value)),
    ("enum_cmp", order_body!(any, any, by_value)),
    ("jsonb_cmp", order_body!(any, any, by_value)),
    ("date_cmp", order_body!(any, any, by_value)),
    ("time_cmp", order_body!(any, any, by_value)),
    ("timetz_cmp", order_body!(any, any, by_value)),
    ("timestamp_cmp", order_body!(any, any, by_value)),
    ("interval_cmp", order_body!(any, any, by_value)),
    ("bitcmp", order_body!(any, any, by_value)),
    ("text_larger", LARGER),
    ("bpchar_larger", LARGER_BPCHAR),
    ("int2larger", LARGER),
    ("int4larger", LARGER),
    ("int8larger", LARGER),
    ("float4larger", LARGER),
    ("float8larger", LARGER),
    ("numeric_larger", LARGER),
    ("oidlarger", LARGER),
    ("tidlarger", LARGER),
    ("xid8_larger", LARGER),
    ("pg_lsn_larger", LARGER),
    ("date_larger", LARGER),
    ("time_larger", LARGER),
    ("timetz_larger", LARGER),
    ("timestamp_larger", LARGER),
    ("interval_larger", LARGER),
    ("array_larger", LARGER),
    ("bytea_larger", LARGER),
    ("record_larger", LARGER),
    ("enum_larger", LARGER),
    ("text_smaller", SMALLER),
    ("bpchar_smaller", SMALLER_BPCHAR),
    ("int2smaller", SMALLER),
    ("int4smaller", SMALLER),
    ("int8smaller", SMALLER),
    ("float4smaller", SMALLER),
    ("float8smaller", SMALLER),
    ("numeric_smaller", SMALLER),
    ("oidsmaller", SMALLER),
    ("tidsmaller", SMALLER),
    ("xid8_smaller", SMALLER),
    ("pg_lsn_smaller", SMALLER),
    ("date_smaller", SMALLER),
    ("time_smaller", SMALLER),
    ("timetz_smaller", SMALLER),
    ("timestamp_smaller", SMALLER),
    ("interval_smaller", SMALLER),
    ("array_smaller", SMALLER),
    ("bytea_smaller", SMALLER),
    ("record_smaller", SMALLER),
    ("enum_smaller", SMALLER),
];

use crate::FunctionBody;
const LARGER: FunctionBody = FunctionBody::Scalar(|_, a| {
    let (x, y) = (any(a, 0)?, any(a, 1)?);
    Ok(if by_value(x, y) == Ordering::Greater { x.clone() } else { y.clone() })
});
const SMALLER: FunctionBody = FunctionBody::Scalar(|_, a| {
    let (x, y) = (any(a, 0)?, any(a, 1)?);
    Ok(if by_value(x, y) == Ordering::Less { x.clone() } else { y.clone() })
});
const LARGER_BPCHAR: FunctionBody = FunctionBody::Scalar(|_, a| {
    let o = bpchar_cmp(args::text(a, 0)?, args::text(a, 1)?);
    Ok(any(a, usize::from(o == Ordering::Less))?.clone())
});
const SMALLER_BPCHAR: FunctionBody = FunctionBody::Scalar(|_, a| {
    let o = bpchar_cmp(args::text(a, 0)?, args::text(a, 1)?);
    Ok(any(a, usize::from(o == Ordering::Greater))?.clone())
});
