//! Names of catalog objects.

use crate::session::SessionState;
use base::{Oid, Result};
use engine::catalog::model::{CatalogView, Table};
use types::oids;

/// What a reg* input names.
///
/// # Errors
/// `42P01` and the like.
pub fn object_oid(state: &SessionState, reg_type: Oid, name: &str) -> Result<Option<Oid>> {
    if reg_type != oids::REGCLASS {
        return Ok(None);
    }
    if name.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(None);
    }
    let parts = crate::names::split_qualified(name);
    let (schema, relation) = match parts.as_slice() {
        [relation] => (None, relation),
        [schema, relation] => (Some(schema.as_str()), relation),
        _ => base::bail!(INVALID_NAME, "invalid name syntax"),
    };
    match state.table_by_name(schema, relation)? {
        Some(table) => Ok(Some(table.oid)),
        None => base::bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
    }
}

/// How a reg* value prints.
pub fn object_name(state: &SessionState, reg_type: Oid, oid: Oid) -> Option<String> {
    if reg_type != oids::REGCLASS {
        return None;
    }
    let table = state.table_by_oid(oid).ok()??;
    Some(relation_name(state, &table))
}

/// A relation's name, qualified when it is not visible.
pub fn relation_name(state: &SessionState, table: &Table) -> String {
    let visible = state
        .table_by_name(None, &table.name)
        .ok()
        .flatten()
        .is_some_and(|found| found.oid == table.oid);
    if visible {
        quote_identifier(&table.name)
    } else {
        format!("{}.{}", quote_identifier(&table.namespace_name), quote_identifier(&table.name))
    }
}

/// A name as SQL needs it.
pub fn quote_identifier(name: &str) -> String {
    let plain = name.chars().enumerate().all(|(i, c)| {
        c.is_ascii_lowercase() || c == '_' || (i > 0 && (c.is_ascii_digit() || c == '$'))
    });
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
