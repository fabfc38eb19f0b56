//! Functions of enum types. Comparisons are in `compare.rs`.

use crate::args::text;
use crate::registry::{BodyTable, FunctionBody};
use crate::{ArrayValue, Datum, EnumValue, Env};
use base::{Oid, Result, bail};
use std::sync::Arc;

/// The type of the arguments; of two, one may be a NULL that nobody gave a type.
fn enum_type(types: &[Oid]) -> Result<Oid> {
    match types.iter().find(|t| crate::enums::is_enum(**t)) {
        Some(ty) => Ok(*ty),
        None => bail!(FEATURE_NOT_SUPPORTED, "could not determine actual enum type"),
    }
}

fn end(env: &dyn Env, types: &[Oid], last: bool) -> Result<Datum> {
    let ty = enum_type(types)?;
    let values = env.enum_values(ty)?;
    match if last { values.last() } else { values.first() } {
        Some(value) => {
            env.check_enum_use(*value)?;
            Ok(Datum::Enum(*value))
        }
        None => bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "enum {} contains no values",
            crate::type_text(ty, -1, env)
        ),
    }
}

/// The values from `low` to `high`, both included; a NULL there is the end of the type.
fn range(env: &dyn Env, types: &[Oid], low: Option<&Datum>, high: Option<&Datum>) -> Result<Datum> {
    let ty = enum_type(types)?;
    let key = |d: Option<&Datum>, open: u32| match d {
        Some(Datum::Enum(EnumValue { key, .. })) => *key,
        _ => open,
    };
    let (low, high) = (key(low, 0), key(high, u32::MAX));
    let mut elements = Vec::new();
    for value in env.enum_values(ty)?.into_iter().filter(|v| (low..=high).contains(&v.key)) {
        env.check_enum_use(value)?;
        elements.push(Datum::Enum(value));
    }
    Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(ty, elements))))
}

pub(super) const BODIES: BodyTable = &[
    ("enum_first", FunctionBody::ScalarTyped(|env, _, types, _| end(env, types, false))),
    ("enum_last", FunctionBody::ScalarTyped(|env, _, types, _| end(env, types, true))),
    ("enum_range_all", FunctionBody::ScalarTyped(|env, _, types, _| range(env, types, None, None))),
    (
        "enum_range_bounds",
        FunctionBody::ScalarTyped(|env, a, types, _| range(env, types, a.first(), a.get(1))),
    ),
    (
        "enum_in",
        FunctionBody::Scalar(|env, a| {
            Ok(Datum::Enum(env.enum_value(crate::args::oid(a, 1)?, text(a, 0)?)?))
        }),
    ),
    (
        "enum_out",
        FunctionBody::Scalar(|env, a| Ok(Datum::text(crate::io::to_text(Oid(0), &a[0], env)?))),
    ),
    (
        "enum_send",
        FunctionBody::Scalar(|env, a| {
            let mut out = Vec::new();
            crate::io::binary_output(Oid(0), &a[0], env, &mut out)?;
            Ok(Datum::Bytea(out.into()))
        }),
    ),
];
