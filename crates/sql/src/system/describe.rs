//! Definitions as SQL (`pg_get_*def`), comments, owners.

use super::names::{self, row_by_oid};
use super::{Bodies, Own, rows, state, text_or_null};
use crate::deparse;
use crate::session::SessionState;
use base::{Error, Oid, Result, bail};
use engine::catalog::defs;
use engine::catalog::load::{RowSource, stored_expr};
use engine::catalog::model::{CatalogView, Index, Table};
use engine::catalog::rows::Row;
use engine::catalog::stored::from_text;
use expr::Expr;
use std::sync::Arc;
use types::FunctionBody::{Scalar, Set};
use types::args::{boolean, int4, is_null, oid, text};
use types::{Datum, Env, oids, quote_ident};

pub(super) const OWN: &[Own] = &[Own {
    oid: 9906,
    name: "_pg_expandarray",
    args: &[oids::ANYARRAY],
    result: oids::RECORD,
    columns: &[("x", oids::ANYELEMENT), ("n", oids::INT4)],
    // Of information_schema; JDBC's driver numbers the columns of a key with it.
    body: Set(|_, a| {
        let Some(Datum::Array(array)) = a.first() else { return Ok(rows(Vec::new())) };
        let numbered = array.elements.iter().zip(1..).map(|(x, n)| vec![x.clone(), Datum::Int4(n)]);
        Ok(rows(numbered.collect()))
    }),
}];

pub(super) const BODIES: Bodies = &[
    ("pg_get_expr", Scalar(|env, a| expression(env, a))),
    ("pg_get_indexdef", Scalar(|env, a| index_definition(env, a))),
    ("pg_get_constraintdef", Scalar(|env, a| constraint_definition(env, a))),
    ("pg_get_viewdef", Scalar(|env, a| view_definition(env, a))),
    ("pg_get_ruledef", Scalar(|env, a| rule_definition(env, a))),
    ("pg_get_triggerdef", Scalar(|env, a| trigger_definition(env, a))),
    // There are no partitions.
    ("pg_get_partkeydef", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_get_partition_constraintdef", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_partition_ancestors", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_partition_tree", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_partition_root", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_get_publication_tables", Set(|_, _| Ok(rows(Vec::new())))),
    (
        "pg_relation_is_publishable",
        Scalar(|env, a| {
            let table = state(env)?.table_by_oid(oid(a, 0)?)?;
            Ok(table.map_or(Datum::Null, |t| {
                use engine::catalog::model::{RelationKind, RelationPersistence};
                Datum::Bool(
                    matches!(t.kind, RelationKind::Table | RelationKind::PartitionedTable)
                        && t.persistence == RelationPersistence::Permanent
                        && t.oid >= Oid::FIRST_NORMAL,
                )
            }))
        }),
    ),
    (
        "pg_get_replica_identity_index",
        Scalar(|env, a| replica_identity_index(state(env)?, oid(a, 0)?)),
    ),
    (
        "pg_get_userbyid",
        Scalar(|env, a| {
            let oid = oid(a, 0)?;
            let name = state(env)?.role_name(oid)?;
            Ok(Datum::text(name.unwrap_or_else(|| format!("unknown (OID={oid})"))))
        }),
    ),
    (
        "pg_get_serial_sequence",
        Scalar(|env, a| serial_sequence(state(env)?, text(a, 0)?, text(a, 1)?)),
    ),
    (
        "format_type",
        Scalar(|env, a| {
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            let typmod = if is_null(a, 1) { None } else { Some(int4(a, 1)?) };
            let ty = oid(a, 0)?;
            if !ty.is_valid() {
                return Ok(Datum::text("-"));
            }
            let name = names::type_name(state(env)?, ty, typmod);
            Ok(Datum::text(name.unwrap_or_else(|| "???".to_owned())))
        }),
    ),
    (
        "obj_description",
        Scalar(|env, a| {
            let state = state(env)?;
            let class = if a.len() > 1 { Some(text(a, 1)?) } else { None };
            description(state, "pg_description", oid(a, 0)?, class)
        }),
    ),
    (
        "shobj_description",
        Scalar(|env, a| {
            description(state(env)?, "pg_shdescription", oid(a, 0)?, Some(text(a, 1)?))
        }),
    ),
    (
        "col_description",
        Scalar(|env, a| {
            let state = state(env)?;
            let txn = state.txn()?;
            let key = [
                ("objoid", Datum::Oid(oid(a, 0)?)),
                ("classoid", Datum::Oid(defs::by_name("pg_class").oid)),
                ("objsubid", Datum::Int4(int4(a, 1)?)),
            ];
            let found = state.catalog.rows(&txn).find("pg_description", &key)?;
            Ok(text_or_null(found.first().map(|r| r.text("description"))))
        }),
    ),
    (
        "pg_options_to_table",
        Set(|_, a| {
            let Some(Datum::Array(options)) = a.first() else { return Ok(rows(Vec::new())) };
            let row = |option: &Datum| match option {
                Datum::Text(t) => {
                    let (name, value) = match t.split_once('=') {
                        Some((name, value)) => (name, Some(value)),
                        None => (t.as_str(), None),
                    };
                    vec![Datum::text(name), text_or_null(value)]
                }
                _ => vec![Datum::Null, Datum::Null],
            };
            Ok(rows(options.elements.iter().map(row).collect()))
        }),
    ),
];

fn column_names(table: &Table) -> Vec<String> {
    table.columns.iter().map(|c| c.name.clone()).collect()
}

fn expression(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let stored = text(a, 0)?;
    let pretty = a.len() > 2 && boolean(a, 2)?;
    let table = state.table_by_oid(oid(a, 1)?)?;
    let columns = table.map(|t| column_names(&t)).unwrap_or_default();
    // Index expressions are stored as a list.
    if stored.trim_start().starts_with('[') {
        let list: Vec<Expr> = from_text(stored)
            .map_err(|e| Error::corrupt_file(format!("stored expression does not parse: {e}")))?;
        let texts: Vec<String> = list
            .iter()
            .map(|e| deparse::expression(e, &columns, pretty, env))
            .collect::<Result<_>>()?;
        return Ok(Datum::text(texts.join(", ")));
    }
    deparse::expression(&*stored_expr(stored)?, &columns, pretty, env).map(Datum::text)
}

/// An index and its table.
pub(crate) fn index(state: &SessionState, oid: Oid) -> Result<Option<(Arc<Table>, Arc<Index>)>> {
    let Some(row) = row_by_oid(state, "pg_index", "indexrelid", oid)? else { return Ok(None) };
    let Some(table) = state.table_by_oid(row.oid("indrelid"))? else { return Ok(None) };
    let found = table.indexes.iter().find(|i| i.oid == oid).cloned();
    Ok(found.map(|index| (table, index)))
}

fn index_definition(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let Some((table, index)) = index(state, oid(a, 0)?)? else { return Ok(Datum::Null) };
    let (column, pretty) = if a.len() > 1 {
        (usize::try_from(int4(a, 1)?).ok().filter(|c| *c > 0), boolean(a, 2)?)
    } else {
        (None, false)
    };
    // The full definition names the schema; the pretty one only where it must.
    let qualified =
        !pretty || !names::relation_is_visible(state, table.oid, &table.name, table.namespace)?;
    deparse::index_definition(&index, &table, column, pretty, qualified, env).map(Datum::text)
}

fn constraint_definition(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let pretty = a.len() > 1 && boolean(a, 1)?;
    let Some(row) = row_by_oid(state, "pg_constraint", "oid", oid(a, 0)?)? else {
        return Ok(Datum::Null);
    };
    if row.oid("contypid").is_valid() {
        return crate::ddl::domains::definition(&row, pretty, env).map(Datum::text);
    }
    let Some(table) = state.table_by_oid(row.oid("conrelid"))? else { return Ok(Datum::Null) };
    let oid = row.oid("oid");
    let text = match row.char("contype") {
        b'c' => match table.checks.iter().find(|c| c.oid == oid) {
            Some(check) => Some(deparse::check_definition(check, &table, pretty, env)?),
            None => None,
        },
        b'p' | b'u' => {
            let index = table.indexes.iter().find(|i| i.oid == row.oid("conindid"));
            index.map(|index| {
                let mut text = deparse::key_definition(index, &table);
                if row.bool("condeferred") {
                    text.push_str(" INITIALLY DEFERRED");
                }
                text
            })
        }
        b'f' => match table.foreign_keys.iter().find(|f| f.oid == oid) {
            Some(key) => match state.table_by_oid(key.referenced_table)? {
                Some(other) => {
                    let name = names::relation_name(state, &other);
                    Some(deparse::foreign_key_definition(key, &table, &other, &name))
                }
                None => None,
            },
            None => None,
        },
        b'n' => not_null(&row, &table),
        _ => None,
    };
    Ok(text_or_null(text))
}

/// Of the triggers that constraints have: there are no others.
fn trigger_definition(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let pretty = a.len() > 1 && boolean(a, 1)?;
    let Some(row) = row_by_oid(state, "pg_trigger", "oid", oid(a, 0)?)? else {
        return Ok(Datum::Null);
    };
    let Some(table) = state.table_by_oid(row.oid("tgrelid"))? else { return Ok(Datum::Null) };
    let kind = row.int("tgtype");
    let events = [(4, "INSERT"), (8, "DELETE"), (16, "UPDATE")];
    let events: Vec<&str> = events.iter().filter(|e| kind & e.0 != 0).map(|e| e.1).collect();
    let qualified =
        || format!("{}.{}", quote_ident(&table.namespace_name), quote_ident(&table.name));
    let on = if pretty { names::relation_name(state, &table) } else { qualified() };
    let from = match state.table_by_oid(row.oid("tgconstrrelid"))? {
        Some(other) => format!("FROM {} ", names::relation_name(state, &other)),
        None => String::new(),
    };
    let not = if row.bool("tgdeferrable") { "" } else { "NOT " };
    let initially = if row.bool("tginitdeferred") { "DEFERRED" } else { "IMMEDIATE" };
    let function = types::facts::proc(row.oid("tgfoid")).map_or("?", |p| p.name);
    Ok(Datum::text(format!(
        "CREATE CONSTRAINT TRIGGER {} AFTER {} ON {on} {from}{not}DEFERRABLE INITIALLY {initially} FOR EACH ROW EXECUTE FUNCTION {}()",
        quote_ident(row.text("tgname")),
        events.join(" OR "),
        quote_ident(function),
    )))
}

fn not_null(row: &Row, table: &Table) -> Option<String> {
    let number = *row.ints("conkey").first()?;
    let column = table.columns.get(usize::try_from(number - 1).ok()?)?;
    let mut text = format!("NOT NULL {}", quote_ident(&column.name));
    if row.bool("connoinherit") {
        text.push_str(" NO INHERIT");
    }
    if !row.bool("convalidated") {
        text.push_str(" NOT VALID");
    }
    Some(text)
}

fn view_text(env: &dyn Env, table: &Table, pretty: bool) -> Result<Option<String>> {
    let Some(stored) = &table.view_query else { return Ok(None) };
    let query = from_text(stored)
        .map_err(|e| Error::corrupt_file(format!("stored query does not parse: {e}")))?;
    let outputs: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
    deparse::query(&query, &outputs, state(env)?, pretty, env).map(Some)
}

fn view_definition(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let oid = match &a[0] {
        Datum::Text(name) => names::relation_oid(state, name)?,
        _ => oid(a, 0)?,
    };
    // A width to wrap at implies prettiness.
    let pretty = match a.get(1) {
        Some(Datum::Bool(pretty)) => *pretty,
        Some(Datum::Int4(_)) => true,
        _ => false,
    };
    match state.table_by_oid(oid)? {
        Some(table) => view_text(env, &table, pretty).map(text_or_null),
        None => Ok(Datum::Null),
    }
}

fn rule_definition(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let pretty = a.len() > 1 && boolean(a, 1)?;
    let Some(row) = row_by_oid(state, "pg_rewrite", "oid", oid(a, 0)?)? else {
        return Ok(Datum::Null);
    };
    let Some(table) = state.table_by_oid(row.oid("ev_class"))? else { return Ok(Datum::Null) };
    let Some(select) = view_text(env, &table, pretty)? else { return Ok(Datum::Null) };
    let name = if pretty {
        names::relation_name(state, &table)
    } else {
        format!("{}.{}", quote_ident(&table.namespace_name), quote_ident(&table.name))
    };
    Ok(Datum::text(format!(
        "CREATE RULE {} AS\n    ON SELECT TO {name} DO INSTEAD {select}",
        quote_ident(row.text("rulename"))
    )))
}

fn serial_sequence(state: &SessionState, table: &str, column: &str) -> Result<Datum> {
    let oid = names::relation_oid(state, table)?;
    let Some(table) = state.table_by_oid(oid)? else { return Ok(Datum::Null) };
    let Some(column) = table.column(column) else {
        bail!(
            UNDEFINED_COLUMN,
            "column \"{column}\" of relation \"{}\" does not exist",
            table.name
        );
    };
    let class = defs::by_name("pg_class").oid;
    let txn = state.txn()?;
    let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(table.oid))];
    for depend in state.catalog.rows(&txn).find("pg_depend", &key)? {
        if depend.oid("classid") != class
            || depend.i32("refobjsubid") != column.number
            || !matches!(depend.char("deptype"), b'a' | b'i')
        {
            continue;
        }
        if let Some(sequence) = state.table_by_oid(depend.oid("objid"))?
            && sequence.kind == engine::catalog::model::RelationKind::Sequence
        {
            let schema = quote_ident(&sequence.namespace_name);
            return Ok(Datum::text(format!("{schema}.{}", quote_ident(&sequence.name))));
        }
    }
    Ok(Datum::Null)
}

fn description(
    state: &SessionState,
    catalog: &str,
    object: Oid,
    class: Option<&str>,
) -> Result<Datum> {
    let txn = state.txn()?;
    let mut key = vec![("objoid", Datum::Oid(object))];
    if let Some(class) = class {
        let Some(def) = defs::all().iter().find(|d| d.name == class) else {
            return Ok(Datum::Null);
        };
        key.push(("classoid", Datum::Oid(def.oid)));
    }
    if catalog == "pg_description" {
        key.push(("objsubid", Datum::Int4(0)));
    }
    let found = state.catalog.rows(&txn).find(catalog, &key)?;
    Ok(text_or_null(found.first().map(|r| r.text("description"))))
}

/// The index whose keys identify a table's rows: the one that was named, else the primary key, if that is not ruled out.
fn replica_identity_index(state: &SessionState, oid: Oid) -> Result<Datum> {
    let Some(table) = state.table_by_oid(oid)? else { return Ok(Datum::Null) };
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let class = rows.find("pg_class", &[("oid", Datum::Oid(oid))])?;
    let found = match class.first().map(|r| r.char("relreplident")) {
        Some(b'd') => table.primary_key().map(|i| i.oid),
        Some(b'i') => {
            let indexes = rows.find("pg_index", &[("indrelid", Datum::Oid(oid))])?;
            indexes.iter().find(|r| r.bool("indisreplident")).map(|r| r.oid("indexrelid"))
        }
        _ => None,
    };
    Ok(found.map_or(Datum::Null, Datum::Oid))
}
