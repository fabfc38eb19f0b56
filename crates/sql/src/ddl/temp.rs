//! Temporary tables: each session's own schema, emptied when the session ends.
//!
//! The schema is called after the number of the session's backend ([`txn::Backend::number`]) and stays, for the next session of that
//! number: there are never more of them than there were sessions at a time.

use super::depend::Object;
use super::drop;
use crate::cluster::Cluster;
use crate::session::state::OnCommitAction;
use crate::session::{Session, SessionState};
use base::{Oid, Result, SqlError, SqlState};
use engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Table};
use engine::catalog::rows::{NewRow, Row};
use std::collections::HashMap;
use txn::{LockMode, LockOutcome, Wait};
use types::Datum;

/// What the schemas are called, but for the number of the session.
const SCHEMA: &str = "pg_temp_";
/// How many schemas out of use go at once: each is locked meanwhile.
const MAX_DROPPED: usize = 1000;

/// The schema of this session's temporary tables, made when it is first needed.
///
/// # Errors
/// I/O.
pub fn namespace(session: &mut Session) -> Result<Oid> {
    let state = session.state();
    if state.temp_schema.get().is_valid() {
        return Ok(state.temp_schema.get());
    }
    let name = format!("{SCHEMA}{}", state.backend.number());
    // Before there is anything in it: autovacuum asks when it has seen a table.
    state.backend.activity.lock().temporary = true;
    let oid = match locked(state, &name)? {
        Some(oid) => {
            // A crash, or an error at its end, may have kept a session of the same number from doing so.
            empty(state, oid)?;
            oid
        }
        None => create(state, &name)?,
    };
    state.temp_schema.set(oid);
    Ok(oid)
}

/// The schema of this name, locked to the transaction's end: autovacuum may be about to drop it.
fn locked(state: &SessionState, name: &str) -> Result<Option<Oid>> {
    let find = || -> Result<Option<Oid>> {
        let txn = state.txn()?;
        let rows =
            state.catalog.rows(&txn).find("pg_namespace", &[("nspname", Datum::text(name))])?;
        Ok(rows.first().map(|row| row.oid("oid")))
    };
    let mut locked = None;
    loop {
        let found = find()?;
        let (Some(oid), true) = (found, found != locked) else { return Ok(found) };
        super::lock_object(state, Object::of("pg_namespace", oid), LockMode::AccessShare)?;
        locked = found;
    }
}

fn create(state: &SessionState, name: &str) -> Result<Oid> {
    let txn = state.txn()?;
    let oid = super::new_oid(state, "pg_namespace")?;
    let row = NewRow::of("pg_namespace").oid("oid", oid).text("nspname", name);
    state.catalog.rows(&txn).insert(&row.oid("nspowner", BOOTSTRAP_SUPERUSER))?;
    state.catalog.changed_named(oid, name);
    Ok(oid)
}

/// Is this the name of a schema of temporary tables, one's own or another session's?
pub fn is_temporary(schema: &str) -> bool {
    schema == "pg_temp" || schema.starts_with("pg_temp_") || schema.starts_with("pg_toast_temp_")
}

/// Drops everything in a temporary schema: relations and composite types, and what goes with them.
fn empty(state: &SessionState, namespace: Oid) -> Result<()> {
    let txn = state.txn()?;
    let schema = Object::of("pg_namespace", namespace);
    let kinds = [Object::relation(Oid::INVALID).class, Object::of("pg_type", Oid::INVALID).class];
    // Not by `pg_class`, which has no index on what schema a relation is in.
    let key = [("refclassid", Datum::Oid(schema.class)), ("refobjid", Datum::Oid(namespace))];
    let found = state.catalog.rows(&txn).find("pg_depend", &key)?;
    let objects: Vec<_> = found
        .iter()
        .filter(|r| kinds.contains(&r.oid("classid")))
        .map(|r| Object { class: r.oid("classid"), oid: r.oid("objid"), sub: 0 })
        .collect();
    if objects.is_empty() {
        return Ok(());
    }
    drop::drop_objects(state, &objects, true).map(|_| ())
}

/// The number of the backend whose temporary schema has this name.
fn number_of(schema: &str) -> Option<u32> {
    schema.strip_prefix(SCHEMA)?.parse().ok()
}

/// Is what `schema` has left behind by a session that is gone, or that has not come to use it? Asked after its tables were seen:
/// whoever made them and is still there has said so before.
fn is_left_behind(backends: &txn::Registry, database: Oid, schema: &str) -> bool {
    let Some(number) = number_of(schema) else { return false };
    backends.by_number(number).is_none_or(|backend| {
        let activity = backend.activity.lock();
        activity.database != database || !activity.temporary
    })
}

/// Those of a database's `pg_class` rows that are temporary tables of nobody's, and their schemas: a crash has left them.
pub(crate) fn left_behind<'a>(
    cluster: &Cluster,
    database: Oid,
    rows: &'a [Row],
) -> Result<Vec<(&'a Row, String)>> {
    let is_temporary =
        |r: &&Row| matches!(r.char("relkind"), b'r' | b'm') && r.char("relpersistence") == b't';
    let mut found = Vec::new();
    for row in rows.iter().filter(is_temporary) {
        let key = [("oid", Datum::Oid(row.oid("relnamespace")))];
        let schema = cluster.with_catalogs(database, |c| c.find("pg_namespace", &key))?;
        let Some(schema) = schema.first().map(|s| s.text("nspname").to_owned()) else { continue };
        if is_left_behind(cluster.backends(), database, &schema) {
            found.push((row, schema));
        }
    }
    Ok(found)
}

/// Drops a table that was [`left_behind`], unless somebody has a lock on it or it is somebody's by now. Says whether it is gone.
///
/// # Errors
/// I/O.
pub(crate) fn drop_left_behind(session: &mut Session, table: Oid, schema: &str) -> Result<bool> {
    session.in_transaction(|session| {
        let state = session.state();
        let txn = state.txn()?;
        let tag = crate::relations::lock_tag(state, table);
        if txn.lock(tag, LockMode::AccessExclusive, Wait::NoWait)? == LockOutcome::NotAvailable
            || state.catalog.table(&txn, table)?.is_none()
            || !is_left_behind(state.cluster.backends(), state.database.oid, schema)
        {
            return Ok(false);
        }
        drop::drop_objects(state, &[Object::relation(table)], true)?;
        Ok(true)
    })
}

/// Drops those of the schemas that are out of use and empty: of a time with more sessions at once, or of a version that called them after
/// numbers that did not come again. No session has used one of them since the server's start. Says how many are gone.
///
/// # Errors
/// I/O.
pub(crate) fn drop_out_of_use(session: &mut Session) -> Result<usize> {
    session.in_transaction(|session| {
        let state = session.state();
        let backends = state.cluster.backends();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let is_old = |row: &&Row| {
            number_of(row.text("nspname")).is_some_and(|n| n > backends.greatest_number())
        };
        let mut old = HashMap::new();
        for row in rows.scan("pg_namespace")?.iter().filter(is_old).take(MAX_DROPPED) {
            let schema = Object::of("pg_namespace", row.oid("oid"));
            // Who comes to use it says so first, and then locks it.
            let lock = txn.lock(
                super::object_tag(state, schema),
                LockMode::AccessExclusive,
                Wait::NoWait,
            )?;
            if lock != LockOutcome::NotAvailable
                && is_left_behind(backends, state.database.oid, row.text("nspname"))
                && !rows.find("pg_namespace", &[("oid", Datum::Oid(schema.oid))])?.is_empty()
            {
                old.insert(schema.oid, schema);
            }
        }
        txn.take_latest_snapshot();
        rows.scan_columns("pg_class", &["relnamespace"], &mut |row| {
            if let [Datum::Oid(schema)] = row {
                old.remove(schema);
            }
            Ok(true)
        })?;
        let old: Vec<Object> = old.into_values().collect();
        if !old.is_empty() {
            drop::drop_objects(state, &old, true)?;
        }
        Ok(old.len())
    })
}

/// The session ends: its temporary tables go.
///
/// # Errors
/// I/O.
pub fn drop_all(session: &mut Session) -> Result<()> {
    let namespace = session.state().temp_schema.get();
    if !namespace.is_valid() {
        return Ok(());
    }
    session.in_transaction(|session| empty(session.state(), namespace))
}

/// ON COMMIT DROP and DELETE ROWS.
///
/// # Errors
/// I/O.
pub fn on_commit(session: &mut Session) -> Result<()> {
    let state = session.state();
    let actions = state.on_commit.borrow().clone();
    let mut kept = Vec::new();
    for action in actions {
        let txn = state.txn()?;
        match action {
            OnCommitAction::Drop(oid) => {
                if state.catalog.table(&txn, oid)?.is_some() {
                    drop::drop_objects(state, &[Object::relation(oid)], true)?;
                }
            }
            OnCommitAction::DeleteRows(oid) => {
                if let Some(table) = state.catalog.table(&txn, oid)? {
                    check_references(state, &table)?;
                    // An empty one stays as it is: most transactions do not touch it.
                    if state.open_relation(&table)?.heap.len_blocks()?.0 > 0 {
                        super::truncate::empty(state, &table)?;
                    }
                    kept.push(action);
                }
            }
        }
    }
    *state.on_commit.borrow_mut() = kept;
    Ok(())
}

/// Rows that are deleted behind the back of those that refer to them must be deleted with those.
fn check_references(state: &SessionState, table: &Table) -> Result<()> {
    for key in table.referenced_by.iter().filter(|k| k.table != table.oid) {
        let too = |action: &OnCommitAction| matches!(action, OnCommitAction::DeleteRows(oid) if *oid == key.table);
        if state.on_commit.borrow().iter().any(too) {
            continue;
        }
        let Some(other) = state.table_by_oid(key.table)? else { continue };
        let text = "unsupported ON COMMIT and foreign key combination";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
            .detail(format!(
                "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                other.name, table.name
            ))
            .into());
    }
    Ok(())
}

/// DISCARD TEMP: this session's temporary tables go.
///
/// # Errors
/// I/O.
pub fn empty_own(session: &mut Session) -> Result<()> {
    let state = session.state();
    match state.temp_schema.get() {
        namespace if namespace.is_valid() => empty(state, namespace),
        _ => Ok(()),
    }
}
