//! `pg_restore_*_stats` and `pg_clear_*_stats`: what the planner knows of a relation, as it is told rather than found.
//!
//! # Layout
//! A restore takes pairs of names and values. What is wrong with one of them is a warning, and it is left out; what names the
//! relation and the column must be there.
//!
//! # Locks
//! ShareUpdateExclusive on the relation. The changes are the transaction's, as any others.
//!
//! # Differs from PostgreSQL
//! Statistics of array elements and of ranges are not kept, as ANALYZE does not gather them.

use super::{Bodies, state};
use crate::client::{Notice, Severity};
use crate::maintenance::analyze::operators;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail, err};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Column, RelationKind, Table};
use engine::catalog::rows::NewRow;
use std::sync::Arc;
use txn::LockMode;
use types::FunctionBody::{Scalar, ScalarTyped};
use types::{ArrayValue, Datum, Env, oids};

pub(super) const BODIES: Bodies = &[
    ("pg_restore_relation_stats", ScalarTyped(|env, a, types, _| restore_relation(env, a, types))),
    ("pg_restore_attribute_stats", ScalarTyped(|env, a, types, _| restore_column(env, a, types))),
    ("pg_clear_relation_stats", Scalar(|env, a| clear_relation(env, a).map(|()| Datum::Null))),
    ("pg_clear_attribute_stats", Scalar(|env, a| clear_column(env, a).map(|()| Datum::Null))),
];

const OF_RELATION: &[(&str, Oid)] = &[
    ("schemaname", oids::TEXT),
    ("relname", oids::TEXT),
    ("relpages", oids::INT4),
    ("reltuples", oids::FLOAT4),
    ("relallvisible", oids::INT4),
    ("relallfrozen", oids::INT4),
];
const OF_COLUMN: &[(&str, Oid)] = &[
    ("schemaname", oids::TEXT),
    ("relname", oids::TEXT),
    ("attname", oids::TEXT),
    ("attnum", oids::INT2),
    ("inherited", oids::BOOL),
    ("null_frac", oids::FLOAT4),
    ("avg_width", oids::INT4),
    ("n_distinct", oids::FLOAT4),
    ("most_common_vals", oids::TEXT),
    ("most_common_freqs", oids::FLOAT4_ARRAY),
    ("histogram_bounds", oids::TEXT),
    ("correlation", oids::FLOAT4),
    ("most_common_elems", oids::TEXT),
    ("most_common_elem_freqs", oids::FLOAT4_ARRAY),
    ("elem_count_histogram", oids::FLOAT4_ARRAY),
    ("range_length_histogram", oids::TEXT),
    ("range_empty_frac", oids::FLOAT4),
    ("range_bounds_histogram", oids::TEXT),
];

/// What was given, by name; and whether all of it was good.
struct Given<'a> {
    state: &'a SessionState,
    values: Vec<(&'static str, Datum)>,
    good: bool,
}

impl<'a> Given<'a> {
    /// Reads pairs of names and values.
    fn read(
        state: &'a SessionState,
        args: &[Datum],
        types: &[Oid],
        known: &'static [(&'static str, Oid)],
    ) -> Result<Given<'a>> {
        if !args.len().is_multiple_of(2) {
            let text = "variadic arguments must be name/value pairs";
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, text)
                .hint(
                    "Provide an even number of variadic arguments that can be divided into pairs.",
                )
                .into());
        }
        let mut given = Given { state, values: Vec::new(), good: true };
        let ty = |i: usize| match types.get(i).copied() {
            None | Some(oids::UNKNOWN) => oids::TEXT,
            Some(ty) => ty,
        };
        for (i, pair) in args.chunks(2).enumerate() {
            let name = match &pair[0] {
                Datum::Null => {
                    bail!(INTERNAL_ERROR, "name at variadic position {} is null", 2 * i + 1)
                }
                Datum::Text(name) if ty(2 * i) == oids::TEXT => name,
                _ => bail!(
                    INTERNAL_ERROR,
                    "name at variadic position {} has type {}, expected type text",
                    2 * i + 1,
                    types::format_type(ty(2 * i), -1)
                ),
            };
            // The version of the server that it comes from says nothing.
            if pair[1].is_null() || name.eq_ignore_ascii_case("version") {
                continue;
            }
            let Some((name, wanted)) = known.iter().find(|(n, _)| name.eq_ignore_ascii_case(n))
            else {
                given.warn(SqlState::WARNING, format!("unrecognized argument name: \"{name}\""));
                continue;
            };
            if ty(2 * i + 1) != *wanted {
                let text = format!(
                    "argument \"{name}\" has type {}, expected type {}",
                    types::format_type(ty(2 * i + 1), -1),
                    types::format_type(*wanted, -1)
                );
                given.warn(SqlState::WARNING, text);
                continue;
            }
            given.values.retain(|(n, _)| n != name);
            given.values.push((name, pair[1].clone()));
        }
        Ok(given)
    }

    fn get(&self, name: &str) -> Option<&Datum> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Datum::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Forgets what cannot be used.
    fn forget(&mut self, names: &[&str]) {
        self.values.retain(|(n, _)| !names.contains(n));
    }

    fn warn(&mut self, state: SqlState, text: String) {
        self.warn_error(SqlError::new(state, text));
    }

    fn warn_error(&mut self, body: SqlError) {
        self.good = false;
        self.state.notice(Notice { severity: Severity::Warning, body });
    }

    /// The relation, locked.
    fn relation(&self) -> Result<Arc<Table>> {
        relation(self.state, self.text("schemaname"), self.text("relname"))
    }
}

fn missing(name: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "argument \"{name}\" must not be null")
}

fn text_at(a: &[Datum], i: usize) -> Option<&str> {
    match a.get(i) {
        Some(Datum::Text(text)) => Some(text),
        _ => None,
    }
}

/// A relation whose statistics the current user may change, locked.
fn relation(state: &SessionState, schema: Option<&str>, name: Option<&str>) -> Result<Arc<Table>> {
    let schema = schema.ok_or_else(|| missing("schemaname"))?;
    let name = name.ok_or_else(|| missing("relname"))?;
    crate::relations::lock_named(state, LockMode::ShareUpdateExclusive, || {
        if state.schema_by_name(schema)?.is_none() {
            bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
        }
        let Some(table) = state.table_by_name(Some(schema), name)? else {
            bail!(UNDEFINED_TABLE, "relation \"{schema}.{name}\" does not exist");
        };
        let holds = matches!(
            table.kind,
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::Index
        );
        if !holds {
            let text = format!("cannot modify statistics for relation \"{name}\"");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .detail(super::extensions::not_supported_for(table.kind))
                .into());
        }
        if engine::catalog::defs::by_oid(table.oid).is_some_and(|d| d.shared) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot modify statistics for shared relation");
        }
        let of = if table.kind == RelationKind::Index {
            table_of_index(state, &table)?
        } else {
            Arc::clone(&table)
        };
        if !state.is_superuser()
            && !crate::acl::may_vacuum(state, of.oid, of.owner, of.acl.as_deref())?
        {
            let noun = crate::acl::noun(of.kind);
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {noun} {}", of.name);
        }
        Ok(table)
    })
}

pub(super) fn table_of_index(state: &SessionState, index: &Table) -> Result<Arc<Table>> {
    let txn = state.txn()?;
    let key = [("indexrelid", Datum::Oid(index.oid))];
    let rows = state.catalog.rows(&txn).find("pg_index", &key)?;
    match rows.first() {
        Some(row) => crate::ddl::reload(state, row.oid("indrelid")),
        None => bail!(INTERNAL_ERROR, "index \"{}\" has no table", index.name),
    }
}

fn set_relation(
    state: &SessionState,
    table: &Table,
    values: &[(&'static str, Datum)],
) -> Result<()> {
    crate::ddl::relation::update_class(state, table.oid, |row| {
        for (name, value) in values {
            row.set(name, value.clone());
        }
    })?;
    state.txn()?.advance_command()
}

fn restore_relation(env: &dyn Env, args: &[Datum], types: &[Oid]) -> Result<Datum> {
    let mut given = Given::read(state(env)?, args, types, OF_RELATION)?;
    let table = given.relation()?;
    let wrong = match given.get("reltuples") {
        Some(Datum::Float4(n)) if !n.is_finite() => Some("must be a finite value"),
        Some(Datum::Float4(n)) if *n < -1.0 => Some("must not be less than -1.0"),
        _ => None,
    };
    if let Some(wrong) = wrong {
        let text = format!("argument \"reltuples\" {wrong}");
        given.warn(SqlState::INVALID_PARAMETER_VALUE, text);
        given.forget(&["reltuples"]);
    }
    given.forget(&["schemaname", "relname"]);
    if !given.values.is_empty() {
        set_relation(given.state, &table, &given.values)?;
    }
    Ok(Datum::Bool(given.good))
}

fn clear_relation(env: &dyn Env, a: &[Datum]) -> Result<()> {
    let state = state(env)?;
    let table = relation(state, text_at(a, 0), text_at(a, 1))?;
    let nothing = [
        ("relpages", Datum::Int4(0)),
        ("reltuples", Datum::Float4(-1.0)),
        ("relallvisible", Datum::Int4(0)),
        ("relallfrozen", Datum::Int4(0)),
    ];
    set_relation(state, &table, &nothing)
}

/// A column by its name; `verb` is what cannot be done with those that every table has.
fn column_named<'t>(table: &'t Table, name: &str, verb: &str) -> Result<&'t Column> {
    if ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"].contains(&name) {
        bail!(FEATURE_NOT_SUPPORTED, "cannot {verb} statistics on system column \"{name}\"");
    }
    crate::ddl::alter::column_of(table, name)
}

fn key(table: &Table, column: &Column, inherited: bool) -> Result<[(&'static str, Datum); 3]> {
    let number = i16::try_from(column.number)
        .map_err(|_| err!(INTERNAL_ERROR, "column {} has no statistics", column.number))?;
    Ok([
        ("starelid", Datum::Oid(table.oid)),
        ("staattnum", Datum::Int2(number)),
        ("stainherit", Datum::Bool(inherited)),
    ])
}

fn clear_column(env: &dyn Env, a: &[Datum]) -> Result<()> {
    let state = state(env)?;
    let table = relation(state, text_at(a, 0), text_at(a, 1))?;
    let name = text_at(a, 2).ok_or_else(|| missing("attname"))?;
    let column = column_named(&table, name, "clear")?;
    let Some(Datum::Bool(inherited)) = a.get(3) else { return Err(missing("inherited")) };
    let txn = state.txn()?;
    let key = key(&table, column, *inherited)?;
    state.catalog.rows(&txn).delete_where("pg_statistic", &key)?;
    state.catalog.changed(table.oid);
    txn.advance_command()
}

/// One kind of statistics, as `pg_statistic` has room for five.
struct Slot {
    kind: i16,
    operator: Oid,
    numbers: Datum,
    values: Datum,
}

fn restore_column(env: &dyn Env, args: &[Datum], types: &[Oid]) -> Result<Datum> {
    let mut given = Given::read(state(env)?, args, types, OF_COLUMN)?;
    let table = given.relation()?;
    let column = match (given.text("attname"), given.get("attnum")) {
        (Some(_), Some(_)) => {
            bail!(INVALID_PARAMETER_VALUE, "cannot specify both \"attname\" and \"attnum\"")
        }
        (Some(name), _) => column_named(&table, name, "modify")?,
        (None, Some(Datum::Int2(n))) => {
            let here = |c: &&Column| c.number == i32::from(*n) && !c.dropped;
            table.columns.iter().find(here).ok_or_else(|| {
                err!(UNDEFINED_COLUMN, "column {n} of relation \"{}\" does not exist", table.name)
            })?
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "must specify either \"attname\" or \"attnum\""),
    };
    let Some(Datum::Bool(inherited)) = given.get("inherited").cloned() else {
        return Err(missing("inherited"));
    };
    let slots = slots(env, &mut given, column);
    let mut sets: Vec<(String, Datum)> = Vec::new();
    let plain =
        [("null_frac", "stanullfrac"), ("avg_width", "stawidth"), ("n_distinct", "stadistinct")];
    for (name, column) in plain {
        sets.extend(given.get(name).map(|value| (column.to_owned(), value.clone())));
    }
    write(given.state, &key(&table, column, inherited)?, column.collation, sets, slots)?;
    given.state.catalog.changed(table.oid);
    given.state.txn()?.advance_command()?;
    Ok(Datum::Bool(given.good))
}

/// The kinds of statistics that are given whole; of the others there is a warning.
fn slots(env: &dyn Env, given: &mut Given<'_>, column: &Column) -> Vec<Slot> {
    for (name, with) in [
        ("most_common_freqs", "most_common_vals"),
        ("most_common_elem_freqs", "most_common_elems"),
        ("elem_count_histogram", ""),
    ] {
        let null =
            |d: &Datum| matches!(d, Datum::Array(a) if a.elements.iter().any(Datum::is_null));
        if given.get(name).is_some_and(null) {
            let text = format!("argument \"{name}\" array must not contain null values");
            given.warn(SqlState::INVALID_PARAMETER_VALUE, text);
            given.forget(&[name, with]);
        }
    }
    for (one, other) in [
        ("most_common_vals", "most_common_freqs"),
        ("most_common_elems", "most_common_elem_freqs"),
        ("range_length_histogram", "range_empty_frac"),
    ] {
        let (given_one, given_other) = (given.get(one).is_some(), given.get(other).is_some());
        if given_one != given_other {
            let (there, not) = if given_one { (one, other) } else { (other, one) };
            let text = format!(
                "argument \"{not}\" must be specified when argument \"{there}\" is specified"
            );
            given.warn(SqlState::INVALID_PARAMETER_VALUE, text);
            given.forget(&[one, other]);
        }
    }
    if ["most_common_elems", "elem_count_histogram"].iter().any(|n| given.get(n).is_some()) {
        let text = format!("could not determine element type of column \"{}\"", column.name);
        let why = "Cannot set STATISTIC_KIND_MCELEM or STATISTIC_KIND_DECHIST.";
        given.warn_error(SqlError::new(SqlState::WARNING, text).detail(why));
    }
    if ["range_length_histogram", "range_bounds_histogram"].iter().any(|n| given.get(n).is_some()) {
        let text = format!("column \"{}\" is not a range type", column.name);
        let why =
            "Cannot set STATISTIC_KIND_RANGE_LENGTH_HISTOGRAM or STATISTIC_KIND_BOUNDS_HISTOGRAM.";
        let e = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
        given.warn_error(e.detail(why));
    }
    let (equal, less) = operators(column.ty.oid);
    let mut slots = Vec::new();
    if let Some(common) = values(env, given, "most_common_vals", column) {
        let frequencies = given.get("most_common_freqs").cloned().unwrap_or_default();
        let count = |d: &Datum| if let Datum::Array(a) = d { a.elements.len() } else { 0 };
        if count(&common) == count(&frequencies) {
            slots.push(Slot { kind: 1, operator: equal, numbers: frequencies, values: common });
        } else {
            let text = "could not parse \"most_common_vals\": incorrect number of elements (same as \"most_common_freqs\" required)";
            given.warn(SqlState::INVALID_PARAMETER_VALUE, text.to_owned());
        }
    }
    if let Some(bounds) = values(env, given, "histogram_bounds", column) {
        slots.push(Slot { kind: 2, operator: less, numbers: Datum::Null, values: bounds });
    }
    if let Some(correlation) = given.get("correlation") {
        let number = ArrayValue::one_dimension(oids::FLOAT4, vec![correlation.clone()]);
        let numbers = Datum::Array(Arc::new(number));
        slots.push(Slot { kind: 3, operator: less, numbers, values: Datum::Null });
    }
    slots
}

/// An array of the column's values, as text gives it.
fn values(env: &dyn Env, given: &mut Given<'_>, name: &str, column: &Column) -> Option<Datum> {
    let text = given.text(name)?.to_owned();
    let ty = types::type_info(column.ty.oid)?;
    match types::text_input(ty.array, -1, &text, env) {
        Err(e) => {
            given.warn_error(e.to_sql_error());
            None
        }
        Ok(Datum::Array(a)) if a.elements.iter().any(Datum::is_null) => {
            let text = format!("\"{name}\" array must not contain null values");
            given.warn(SqlState::INVALID_PARAMETER_VALUE, text);
            None
        }
        Ok(Datum::Array(a)) if a.dims.len() > 1 => {
            let text = format!("\"{name}\" must be a one-dimensional array");
            given.warn(SqlState::INVALID_PARAMETER_VALUE, text);
            None
        }
        Ok(found) => Some(found),
    }
}

/// Puts what is given beside what is known already.
fn write(
    state: &SessionState,
    key: &[(&'static str, Datum); 3],
    collation: Oid,
    mut sets: Vec<(String, Datum)>,
    slots: Vec<Slot>,
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let known = rows.find("pg_statistic", key)?.into_iter().next();
    let mut kinds: Vec<i16> = (1..=5)
        .map(|n| known.as_ref().map_or(0, |row| row.int(format!("stakind{n}").as_str()) as i16))
        .collect();
    for slot in slots {
        let place = kinds.iter().position(|k| *k == slot.kind);
        let Some(at) = place.or_else(|| kinds.iter().position(|k| *k == 0)) else {
            bail!(INTERNAL_ERROR, "maximum number of statistics slots exceeded: 6");
        };
        kinds[at] = slot.kind;
        let n = at + 1;
        sets.push((format!("stakind{n}"), Datum::Int2(slot.kind)));
        sets.push((format!("staop{n}"), Datum::Oid(slot.operator)));
        sets.push((format!("stacoll{n}"), Datum::Oid(collation)));
        sets.push((format!("stanumbers{n}"), slot.numbers));
        sets.push((format!("stavalues{n}"), slot.values));
    }
    match known {
        Some(mut row) => {
            for (name, value) in sets {
                row.set(&name, value);
            }
            rows.update(&row)
        }
        None => {
            let mut row = NewRow::of("pg_statistic")
                .set("stanullfrac", Datum::Float4(0.0))
                .set("stawidth", Datum::Int4(0))
                .set("stadistinct", Datum::Float4(0.0));
            for (name, value) in key {
                row = row.set(name, value.clone());
            }
            for (name, value) in sets {
                row = row.set(&name, value);
            }
            rows.insert(&row).map(|_| ())
        }
    }
}
