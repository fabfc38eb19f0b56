//! What indexes and their access method can do, which relations and columns can be changed, what a type is based on.
//!
//! # Differs from PostgreSQL
//! There are no domains: a type is based on itself.

use super::{Bodies, state};
use base::Oid;
use engine::catalog::model::Index;
use types::Datum;
use types::FunctionBody::Scalar;
use types::args::{int2, int4, oid, text};
use types::domains::{base_type, is_domain};

pub(super) const BODIES: Bodies = &[
    // Without triggers it makes no difference whether those count.
    (
        "pg_relation_is_updatable",
        Scalar(|env, a| crate::updatable::events(state(env)?, oid(a, 0)?, None).map(Datum::Int4)),
    ),
    (
        "pg_column_is_updatable",
        Scalar(|env, a| {
            let column = int2(a, 1)?.into();
            crate::updatable::is_column_updatable(state(env)?, oid(a, 0)?, column).map(Datum::Bool)
        }),
    ),
    (
        "pg_indexam_has_property",
        Scalar(|_, a| {
            let known = ["can_order", "can_unique", "can_multi_col", "can_exclude", "can_include"];
            let property = text(a, 1)?.to_ascii_lowercase();
            let there = oid(a, 0)? == BTREE && known.contains(&property.as_str());
            Ok(if there { Datum::Bool(true) } else { Datum::Null })
        }),
    ),
    (
        "pg_index_has_property",
        Scalar(|env, a| {
            let known = ["clusterable", "index_scan", "bitmap_scan", "backward_scan"];
            let property = text(a, 1)?.to_ascii_lowercase();
            let index = super::describe::index(state(env)?, oid(a, 0)?)?;
            let there = index.is_some() && known.contains(&property.as_str());
            Ok(if there { Datum::Bool(true) } else { Datum::Null })
        }),
    ),
    (
        "pg_index_column_has_property",
        Scalar(|env, a| {
            let index = super::describe::index(state(env)?, oid(a, 0)?)?;
            let column = usize::try_from(int4(a, 1)?).ok().and_then(|n| n.checked_sub(1));
            let (Some((_, index)), Some(column)) = (index, column) else { return Ok(Datum::Null) };
            let property = text(a, 2)?.to_ascii_lowercase();
            Ok(column_property(&index, column, &property).map_or(Datum::Null, Datum::Bool))
        }),
    ),
    (
        "pg_basetype",
        Scalar(|env, a| {
            let oid = oid(a, 0)?;
            let name = super::names::type_name(state(env)?, oid, None);
            let base = if is_domain(oid) { base_type(oid) } else { oid };
            Ok(name.map_or(Datum::Null, |_| Datum::Oid(base)))
        }),
    ),
];

const BTREE: Oid = Oid(403);

/// None: it is no property, or not one of such a column.
fn column_property(index: &Index, column: usize, property: &str) -> Option<bool> {
    let of = index.columns.get(column)?;
    let is_key = column < index.key_columns;
    let of_key = |value: bool| is_key.then_some(value);
    match property {
        "asc" => of_key(!of.descending),
        "desc" => of_key(of.descending),
        "nulls_first" => of_key(of.nulls_first),
        "nulls_last" => of_key(!of.nulls_first),
        "orderable" => Some(is_key),
        "distance_orderable" => Some(false),
        "returnable" => Some(true),
        "search_array" | "search_nulls" => of_key(true),
        _ => None,
    }
}
