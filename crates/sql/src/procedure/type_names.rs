//! Types by their names, and what they are to the language.

use crate::analyse;
use crate::session::Session;
use base::{Result, SqlError, SqlState, bail, err};
use engine::catalog::model::{CatalogView, Table};
use expr::TypeRef;
use plpgsql::{Columns, TypeKind};
use std::sync::Arc;
use types::{RecordColumn, Text, oids};

/// The type that a text names.
pub(super) fn of_text(session: &Session, text: &str) -> Result<TypeRef> {
    let name = crate::parse::parse_type(text)?;
    analyse::resolve_type_name(&name, text, session.state().as_ref(), session.env().as_ref())
}

/// The relation that names, joined by dots, mean.
fn relation(session: &Session, names: &[String]) -> Result<Arc<Table>> {
    let state = session.state();
    let (schema, name) = match names {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        [database, schema, name] if *database == state.database_name() => {
            (Some(schema.as_str()), name)
        }
        _ => {
            let all = names.join(".");
            bail!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: \"{all}\"")
        }
    };
    match state.table_by_name(schema, name)? {
        Some(table) => Ok(table),
        None => {
            let text = format!("relation \"{}\" does not exist", names.join("."));
            Err(SqlError::new(SqlState::UNDEFINED_TABLE, text).into())
        }
    }
}

/// The type of a table's column.
pub(super) fn of_column(session: &Session, names: &[String]) -> Result<TypeRef> {
    let Some((column, table)) = names.split_last() else {
        bail!(SYNTAX_ERROR, "type name is empty");
    };
    let table = relation(session, table)?;
    match table.column(column) {
        Some(column) => Ok(column.declared()),
        None => Err(err!(
            UNDEFINED_COLUMN,
            "column \"{column}\" of relation \"{}\" does not exist",
            table.name
        )),
    }
}

/// The type of a table's rows.
pub(super) fn of_row(session: &Session, names: &[String]) -> Result<TypeRef> {
    let table = relation(session, names)?;
    if !table.row_type.is_valid() {
        bail!(WRONG_OBJECT_TYPE, "relation \"{}\" does not have a composite type", names.join("."));
    }
    Ok(TypeRef::of(table.row_type))
}

/// Fails unless a variable of type `ty` may have that collation.
pub(super) fn check_collation(names: &[String], ty: TypeRef) -> Result<()> {
    let of = |oid| types::type_info(oid).is_some_and(|t| t.collation.is_valid());
    let base = ty.base().oid;
    if !of(base) && !types::element_type(base).is_some_and(of) {
        bail!(
            DATATYPE_MISMATCH,
            "collations are not supported by type {}",
            types::format_type(ty.oid, -1)
        );
    }
    analyse::collation_of(names)?;
    match names.last().map(String::as_str) {
        Some("default") => Ok(()),
        _ => Err(base::Error::unsupported("a variable with a collation of its own")),
    }
}

/// What a type is to the language.
pub(super) fn kind_of(session: &Session, ty: TypeRef) -> Result<TypeKind> {
    let base = ty.base();
    let checked = base.oid != ty.oid;
    if base.oid == oids::RECORD {
        return Ok(TypeKind::AnyRow);
    }
    if let Some(columns) = super::cast::row_type(session, base)? {
        return Ok(TypeKind::Row { columns: columns_of(&columns), checked });
    }
    if types::type_info(base.oid).is_some_and(|t| t.kind == 'p') {
        return Ok(TypeKind::Pseudo);
    }
    Ok(TypeKind::Scalar { checked })
}

fn columns_of(fields: &[(String, TypeRef)]) -> Columns {
    fields.iter().map(|(name, ty)| column(name, *ty)).collect()
}

/// A column as the language knows it.
pub(super) fn column(name: &str, ty: TypeRef) -> RecordColumn {
    RecordColumn { name: Text::from(name), type_oid: ty.oid, typmod: ty.typmod }
}
