//! Schemas and what the search path leads to.

use super::names;
use super::{Bodies, name_array, state, text_or_null};
use crate::session::SessionState;
use base::{Oid, Result};
use types::Datum;
use types::FunctionBody::Scalar;
use types::args::{boolean, oid};

pub(super) const BODIES: Bodies = &[
    (
        "pg_table_is_visible",
        Scalar(|env, a| {
            let (state, oid) = (state(env)?, oid(a, 0)?);
            let Some((name, namespace)) = names::name_and_schema(state, oid)? else {
                return Ok(Datum::Null);
            };
            names::relation_is_visible(state, oid, &name, namespace).map(Datum::Bool)
        }),
    ),
    (
        "pg_type_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_type", "typnamespace", oid(a, 0)?)),
    ),
    (
        "pg_function_is_visible",
        Scalar(|env, a| {
            // Built-in functions are in pg_catalog.
            let (state, oid) = (state(env)?, oid(a, 0)?);
            if types::facts::proc(oid).is_some() {
                return Ok(Datum::Bool(true));
            }
            by_schema(state, "pg_proc", "pronamespace", oid)
        }),
    ),
    (
        "pg_operator_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_operator", "oprnamespace", oid(a, 0)?)),
    ),
    (
        "pg_opclass_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_opclass", "opcnamespace", oid(a, 0)?)),
    ),
    (
        "pg_opfamily_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_opfamily", "opfnamespace", oid(a, 0)?)),
    ),
    (
        "pg_collation_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_collation", "collnamespace", oid(a, 0)?)),
    ),
    (
        "pg_conversion_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_conversion", "connamespace", oid(a, 0)?)),
    ),
    (
        "pg_statistics_obj_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_statistic_ext", "stxnamespace", oid(a, 0)?)),
    ),
    (
        "pg_ts_config_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_ts_config", "cfgnamespace", oid(a, 0)?)),
    ),
    (
        "pg_ts_dict_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_ts_dict", "dictnamespace", oid(a, 0)?)),
    ),
    (
        "pg_ts_parser_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_ts_parser", "prsnamespace", oid(a, 0)?)),
    ),
    (
        "pg_ts_template_is_visible",
        Scalar(|env, a| by_schema(state(env)?, "pg_ts_template", "tmplnamespace", oid(a, 0)?)),
    ),
    ("pg_my_temp_schema", Scalar(|env, _| Ok(Datum::Oid(state(env)?.temp_schema.get())))),
    (
        "pg_is_other_temp_schema",
        Scalar(|env, a| {
            let (state, oid) = (state(env)?, oid(a, 0)?);
            if oid == state.temp_schema.get() {
                return Ok(Datum::Bool(false));
            }
            let name = names::schema_name(state, oid)?.unwrap_or_default();
            Ok(Datum::Bool(name.starts_with("pg_temp_") || name.starts_with("pg_toast_temp_")))
        }),
    ),
    (
        "current_schemas",
        Scalar(|env, a| {
            let (state, implicit) = (state(env)?, boolean(a, 0)?);
            let listed = state.search_path_names();
            let schemas: Vec<String> = state
                .search_schemas()?
                .into_iter()
                .filter(|(name, _)| implicit || listed.contains(name))
                .map(|(name, oid)| real_name(state, name, oid))
                .collect::<Result<_>>()?;
            Ok(name_array(&schemas))
        }),
    ),
    (
        "current_schema",
        Scalar(|env, _| {
            let state = state(env)?;
            let listed = state.search_path_names();
            let first = state.search_schemas()?.into_iter().find(|(name, _)| listed.contains(name));
            let name = first.map(|(name, oid)| real_name(state, name, oid)).transpose()?;
            Ok(text_or_null(name))
        }),
    ),
];

/// `pg_temp` is called by the schema's own name.
fn real_name(state: &SessionState, name: String, oid: Oid) -> Result<String> {
    if name == "pg_temp" { Ok(names::schema_name(state, oid)?.unwrap_or(name)) } else { Ok(name) }
}

/// Is the object's schema in the search path? NULL for an object that is not there.
fn by_schema(state: &SessionState, catalog: &str, column: &str, oid: Oid) -> Result<Datum> {
    let Some(row) = names::row_by_oid(state, catalog, "oid", oid)? else { return Ok(Datum::Null) };
    let namespace = row.oid(column);
    Ok(Datum::Bool(state.search_schemas()?.iter().any(|(_, schema)| *schema == namespace)))
}
