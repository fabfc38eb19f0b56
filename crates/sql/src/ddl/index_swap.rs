//! One index takes another's place in the catalogs.
//!
//! # Invariants
//! Everything goes in one transaction: whoever looks sees the one or the other, valid and under its name, never none.

use super::depend::Object;
use super::{relation, table};
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::rows::Row;
use types::Datum;

/// `new`, whose entries are whole, takes the name and the duties of `old`, which stays, invalid and under another name, until
/// nobody uses it.
///
/// # Errors
/// `XX000` when one of them is gone; I/O.
pub(super) fn swap(state: &SessionState, old: Oid, new: Oid) -> Result<()> {
    swap_names(state, old, new)?;
    swap_flags(state, old, new)?;
    move_constraints(state, old, new)?;
    move_rows(state, "pg_description", "objoid", old, new)?;
    move_rows(state, "pg_statistic", "starelid", old, new)?;
    exchange_dependencies(state, ["classid", "objid"], old, new)?;
    exchange_dependencies(state, ["refclassid", "refobjid"], old, new)?;
    for index in [old, new] {
        state.catalog.changed(index);
    }
    let counts = &state.database.activity;
    counts.of(new).take_over(&counts.of(old));
    Ok(())
}

/// The `pg_class` row of a relation.
///
/// # Errors
/// `XX000` if there is none; I/O.
pub(crate) fn class_row(state: &SessionState, oid: Oid) -> Result<Row> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_class", &[("oid", Datum::Oid(oid))])?;
    match rows.into_iter().next() {
        Some(row) => Ok(row),
        None => bail!(INTERNAL_ERROR, "cache lookup failed for relation {oid}"),
    }
}

fn swap_names(state: &SessionState, old: Oid, new: Oid) -> Result<()> {
    let (before, after) = (class_row(state, old)?, class_row(state, new)?);
    let name = before.text("relname").to_owned();
    let aside = table::choose_name(state, &name, "", "ccold", before.oid("relnamespace"))?;
    let files = [&before, &after].map(|row| relation::location(state, row.oid("relfilenode").0));
    // pg_statio_* goes on where it was.
    state.cluster.engine().pool.inherit_block_counts(files[1], files[0]);
    drop((before, after));
    relation::update_class(state, old, |row| row.set("relname", Datum::text(&aside)))?;
    relation::update_class(state, new, |row| row.set("relname", Datum::text(&name)))
}

fn swap_flags(state: &SessionState, old: Oid, new: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let row = |oid| -> Result<Row> {
        match rows.find("pg_index", &[("indexrelid", Datum::Oid(oid))])?.into_iter().next() {
            Some(row) => Ok(row),
            None => bail!(INTERNAL_ERROR, "cache lookup failed for index {oid}"),
        }
    };
    let (mut before, mut after) = (row(old)?, row(new)?);
    for flag in ["indisprimary", "indisclustered", "indisreplident"] {
        after.set(flag, before.get(flag).clone());
        before.set(flag, Datum::Bool(false));
    }
    after.set("indisvalid", Datum::Bool(true));
    before.set("indisvalid", Datum::Bool(false));
    state.catalog.changed(before.oid("indrelid"));
    rows.update(&before)?;
    rows.update(&after)
}

/// Keys, and foreign keys that refer to them, name the new index, and so do their triggers.
fn move_constraints(state: &SessionState, old: Oid, new: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_constraint", &[("conindid", Datum::Oid(old))])? {
        row.set("conindid", Datum::Oid(new));
        rows.update(&row)?;
        for mut trigger in rows.find("pg_trigger", &[("tgconstraint", row.get("oid").clone())])? {
            trigger.set("tgconstrindid", Datum::Oid(new));
            rows.update(&trigger)?;
        }
        state.catalog.changed(row.oid("conrelid"));
        state.catalog.changed(row.oid("confrelid"));
    }
    Ok(())
}

/// Rows of a catalog about the old index are about the new one.
fn move_rows(state: &SessionState, catalog: &str, column: &str, old: Oid, new: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let class = Object::relation(old).class;
    for mut row in rows.find(catalog, &[(column, Datum::Oid(old))])? {
        if catalog == "pg_description" && row.oid("classoid") != class {
            continue;
        }
        row.set(column, Datum::Oid(new));
        rows.update(&row)?;
    }
    Ok(())
}

/// What the one depended on the other depends on now, or what depended on it.
fn exchange_dependencies(
    state: &SessionState,
    [class, object]: [&str; 2],
    old: Oid,
    new: Oid,
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let of = |oid| {
        let key = [(class, Datum::Oid(Object::relation(oid).class)), (object, Datum::Oid(oid))];
        rows.find("pg_depend", &key)
    };
    let (of_old, of_new) = (of(old)?, of(new)?);
    for (found, to) in [(of_old, new), (of_new, old)] {
        for mut row in found {
            row.set(object, Datum::Oid(to));
            rows.update(&row)?;
        }
    }
    Ok(())
}
