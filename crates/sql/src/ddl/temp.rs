//! Temporary tables: each session's own schema, emptied when the session ends.

use super::drop;
use crate::session::state::OnCommitAction;
use crate::session::{Session, SessionState};
use base::{Oid, Result};
use engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER;
use engine::catalog::load::RowSource;
use engine::catalog::rows::NewRow;
use types::Datum;

/// The schema of this session's temporary tables, made when it is first needed.
///
/// # Errors
/// I/O.
pub fn namespace(session: &mut Session) -> Result<Oid> {
    let state = session.state();
    if state.temp_schema.get().is_valid() {
        return Ok(state.temp_schema.get());
    }
    let name = format!("pg_temp_{}", state.backend.pid);
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    // A session of the same number before a crash may have left one behind.
    if let Some(row) = rows.find("pg_namespace", &[("nspname", Datum::text(&name))])?.first() {
        let oid = row.oid("oid");
        empty(state, oid)?;
        state.temp_schema.set(oid);
        return Ok(oid);
    }
    let oid = super::new_oid(state, "pg_namespace")?;
    let row = NewRow::of("pg_namespace").oid("oid", oid).text("nspname", &name);
    rows.insert(&row.oid("nspowner", BOOTSTRAP_SUPERUSER))?;
    state.catalog.changed(Oid::INVALID);
    state.temp_schema.set(oid);
    Ok(oid)
}

/// Is this the name of a schema of temporary tables, one's own or another session's?
pub fn is_temporary(schema: &str) -> bool {
    schema == "pg_temp" || schema.starts_with("pg_temp_") || schema.starts_with("pg_toast_temp_")
}

/// Drops everything in a temporary schema.
fn empty(state: &SessionState, namespace: Oid) -> Result<()> {
    let txn = state.txn()?;
    let key = [("relnamespace", Datum::Oid(namespace))];
    let found = state.catalog.rows(&txn).find("pg_class", &key)?;
    let objects: Vec<_> = found
        .iter()
        .filter(|r| matches!(r.char("relkind"), b'r' | b'v' | b'S' | b'm'))
        .map(|r| super::depend::Object::relation(r.oid("oid")))
        .collect();
    drop::drop_objects(state, &objects, true).map(|_| ())
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
                    drop::drop_objects(state, &[super::depend::Object::relation(oid)], true)?;
                }
            }
            OnCommitAction::DeleteRows(oid) => {
                if let Some(table) = state.catalog.table(&txn, oid)? {
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
