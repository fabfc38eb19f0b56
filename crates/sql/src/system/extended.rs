//! Extended statistics: their definitions as SQL, and what is in them.

use super::names::{self, row_by_oid};
use super::{Bodies, Own, rows, state, text_or_null};
use crate::deparse;
use base::Result;
use engine::catalog::extended::{ExtendedStatistics, stored_common};
use engine::catalog::model::{CatalogView, Table};
use engine::catalog::rows::text_array;
use std::sync::Arc;
use types::FunctionBody::{Scalar, Set};
use types::args::oid;
use types::{ArrayValue, Datum, Env, oids, quote_ident};

pub(super) const OWN: &[Own] = &[
    Own {
        // PostgreSQL's, but for the argument: `pg_mcv_list` is kept as bytea.
        oid: 3427,
        name: "pg_mcv_list_items",
        args: &[oids::BYTEA],
        result: oids::RECORD,
        columns: &[
            ("index", oids::INT4),
            ("values", oids::TEXT_ARRAY),
            ("nulls", oids::BOOL_ARRAY),
            ("frequency", oids::FLOAT8),
            ("base_frequency", oids::FLOAT8),
        ],
        body: Set(|env, a| common_items(env, a).map(rows)),
    },
    Own {
        oid: 9907,
        name: "_ebb_expression_statistics",
        args: &[oids::OID],
        result: oids::RECORD,
        columns: &[
            ("expr", oids::TEXT),
            ("null_frac", oids::FLOAT4),
            ("avg_width", oids::INT4),
            ("n_distinct", oids::FLOAT4),
            ("most_common_vals", oids::ANYARRAY),
            ("most_common_freqs", oids::FLOAT4_ARRAY),
            ("histogram_bounds", oids::ANYARRAY),
            ("correlation", oids::FLOAT4),
            ("most_common_elems", oids::ANYARRAY),
        ],
        // Of the view pg_stats_ext_exprs.
        body: Set(|env, a| expression_statistics(env, a).map(rows)),
    },
];

pub(super) const BODIES: Bodies = &[
    ("pg_get_statisticsobjdef", Scalar(|env, a| definition(env, a, false))),
    ("pg_get_statisticsobjdef_columns", Scalar(|env, a| definition(env, a, true))),
    (
        "pg_get_statisticsobjdef_expressions",
        Scalar(|env, a| match found(env, a)? {
            Some((statistics, table)) if !statistics.exprs.is_empty() => {
                Ok(text_array(&expressions(&statistics, &table, false, env)?))
            }
            _ => Ok(Datum::Null),
        }),
    ),
];

/// The object that the argument names, without its data, and its table.
fn found(env: &dyn Env, a: &[Datum]) -> Result<Option<(ExtendedStatistics, Arc<Table>)>> {
    let state = state(env)?;
    let Some(row) = row_by_oid(state, "pg_statistic_ext", "oid", oid(a, 0)?)? else {
        return Ok(None);
    };
    let Some(table) = state.table_by_oid(row.oid("stxrelid"))? else { return Ok(None) };
    Ok(Some((ExtendedStatistics::of(&row)?, table)))
}

fn expressions(
    statistics: &ExtendedStatistics,
    table: &Table,
    pretty: bool,
    env: &dyn Env,
) -> Result<Vec<String>> {
    let names = deparse::column_names(table);
    statistics.exprs.iter().map(|e| deparse::expression(e, &names, pretty, env)).collect()
}

fn definition(env: &dyn Env, a: &[Datum], columns_only: bool) -> Result<Datum> {
    let Some((statistics, table)) = found(env, a)? else { return Ok(Datum::Null) };
    let state = state(env)?;
    let column = |n: &i32| {
        let at = usize::try_from(n - 1).ok();
        at.and_then(|at| table.columns.get(at)).map(|c| quote_ident(&c.name))
    };
    let mut parts: Vec<String> = statistics.columns.iter().filter_map(column).collect();
    for (text, e) in expressions(&statistics, &table, true, env)?.into_iter().zip(&statistics.exprs)
    {
        parts.push(if deparse::looks_like_function(e) { text } else { format!("({text})") });
    }
    let several = parts.len() > 1;
    let columns = parts.join(", ");
    if columns_only {
        return Ok(Datum::text(columns));
    }
    let schema = names::schema_name(state, statistics.namespace)?.unwrap_or_default();
    let names = [(b'd', "ndistinct"), (b'f', "dependencies"), (b'm', "mcv")];
    let kinds: Vec<&str> =
        names.iter().filter(|(k, _)| statistics.kinds.contains(k)).map(|(_, n)| *n).collect();
    let kinds = if several && kinds.len() < names.len() {
        format!(" ({})", kinds.join(", "))
    } else {
        String::new()
    };
    Ok(Datum::text(format!(
        "CREATE STATISTICS {}.{}{kinds} ON {columns} FROM {}",
        quote_ident(&schema),
        quote_ident(&statistics.name),
        names::relation_name(state, &table)
    )))
}

fn common_items(env: &dyn Env, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let Some(Datum::Bytea(bytes)) = a.first() else { return Ok(Vec::new()) };
    let items = stored_common(bytes)?;
    let list = |ty, elements| Datum::Array(Arc::new(ArrayValue::one_dimension(ty, elements)));
    (0..)
        .zip(&items)
        .map(|(index, item)| {
            let text = |c: &expr::Constant| match &c.value {
                Datum::Null => Ok(Datum::Null),
                value => types::io::to_text(c.ty.oid, value, env).map(Datum::text),
            };
            let values = item.values.iter().map(text).collect::<Result<Vec<_>>>()?;
            let nulls = values.iter().map(|v| Datum::Bool(v.is_null())).collect();
            Ok(vec![
                Datum::Int4(index),
                list(oids::TEXT, values),
                list(oids::BOOL, nulls),
                Datum::Float8(item.frequency),
                Datum::Float8(item.base_frequency),
            ])
        })
        .collect()
}

fn expression_statistics(env: &dyn Env, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let Some((statistics, table)) = found(env, a)? else { return Ok(Vec::new()) };
    let state = state(env)?;
    let all = ExtendedStatistics::load(&state.catalog.rows(&*state.txn()?), table.oid)?;
    let data = all.iter().find(|s| s.oid == statistics.oid).map(|s| &s.data);
    let known = data.and_then(|d| d.expressions.as_deref()).unwrap_or_default();
    let texts = expressions(&statistics, &table, false, env)?;
    let list = |ty, elements: Vec<Datum>| match elements.is_empty() {
        true => Datum::Null,
        false => Datum::Array(Arc::new(ArrayValue::one_dimension(ty, elements))),
    };
    let row = |(n, text): (usize, String)| {
        let ty = statistics.exprs[n].ty().oid;
        let Some(s) = known.get(n).and_then(Option::as_deref) else {
            let mut row = vec![text_or_null(Some(text))];
            row.resize(9, Datum::Null);
            return row;
        };
        let frequencies = s.common.iter().map(|c| Datum::Float4(c.1)).collect();
        vec![
            Datum::text(text),
            Datum::Float4(s.null_fraction),
            Datum::Int4(s.width_bytes),
            Datum::Float4(s.distinct),
            list(ty, s.common.iter().map(|c| c.0.clone()).collect()),
            list(oids::FLOAT4, frequencies),
            list(ty, s.histogram.clone()),
            s.correlation.map_or(Datum::Null, Datum::Float4),
            // Of elements nothing is gathered.
            Datum::Null,
        ]
    };
    Ok(texts.into_iter().enumerate().map(row).collect())
}
