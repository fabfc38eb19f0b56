//! ALTER TABLE … REPLICA IDENTITY: kept for those who read the catalogs; nothing is replicated.

use super::relation;
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::Table;
use types::Datum;

/// The index `name` of a table, if its keys can identify a row.
///
/// # Errors
/// `42704`, `42809`, `0A000`.
pub(super) fn identity_index(state: &SessionState, table: &Table, name: &str) -> Result<Oid> {
    let Some(index) = table.indexes.iter().find(|i| i.name == name && i.live) else {
        let txn = state.txn()?;
        if state.catalog.relation_oid(&txn, table.namespace, name)?.is_some() {
            bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not an index for table \"{}\"", table.name);
        }
        bail!(UNDEFINED_OBJECT, "index \"{name}\" for table \"{}\" does not exist", table.name);
    };
    if !index.unique {
        bail!(WRONG_OBJECT_TYPE, "cannot use non-unique index \"{name}\" as replica identity");
    }
    if !index.immediate {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "cannot use non-immediate index \"{name}\" as replica identity"
        );
    }
    let keys = &index.columns[..index.key_columns];
    if keys.iter().any(|k| k.expr.is_some()) {
        bail!(FEATURE_NOT_SUPPORTED, "cannot use expression index \"{name}\" as replica identity");
    }
    if index.predicate.is_some() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot use partial index \"{name}\" as replica identity");
    }
    for key in keys {
        let column = table.columns.iter().find(|c| c.number == key.column);
        if let Some(column) = column.filter(|c| !c.not_null) {
            bail!(
                WRONG_OBJECT_TYPE,
                "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
                column.name
            );
        }
    }
    Ok(index.oid)
}

/// Is the column in the index that identifies a table's rows?
///
/// # Errors
/// I/O.
pub(super) fn identifies(state: &SessionState, table: &Table, column: i32) -> Result<bool> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let found = rows.find("pg_index", &[("indrelid", Datum::Oid(table.oid))])?;
    Ok(found.iter().any(|i| i.bool("indisreplident") && i.ints("indkey").contains(&column)))
}

/// Sets what identifies a table's rows; `index` if it is an index.
///
/// # Errors
/// I/O.
pub(super) fn set_identity(state: &SessionState, table: Oid, letter: u8, index: Oid) -> Result<()> {
    relation::update_class(state, table, |row| row.set("relreplident", Datum::Char(letter)))?;
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_index", &[("indrelid", Datum::Oid(table))])? {
        let mark = row.oid("indexrelid") == index;
        if row.bool("indisreplident") != mark {
            row.set("indisreplident", Datum::Bool(mark));
            rows.update(&row)?;
        }
    }
    state.catalog.changed(table);
    Ok(())
}
