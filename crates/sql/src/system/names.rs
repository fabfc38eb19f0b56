//! Objects by name and names of objects: what the reg* types read and print.
//!
//! # Differs from PostgreSQL
//! Operators and collations are the built-in ones, functions those and extensions'.

use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Table};
use engine::catalog::rows::Row;
use types::{Datum, facts, format_type, oids, quote_ident, type_info};

/// An identifier as SQL must write it.
pub fn quote_identifier(name: &str) -> String {
    quote_ident(name)
}

/// A relation's name: qualified when the search path does not lead to it, quoted where needed.
pub fn relation_name(state: &SessionState, table: &Table) -> String {
    let visible = relation_is_visible(state, table.oid, &table.name, table.namespace);
    if visible.unwrap_or(false) {
        quote_ident(&table.name)
    } else {
        format!("{}.{}", quote_ident(&table.namespace_name), quote_ident(&table.name))
    }
}

/// The name of the relation with that OID, or its number.
pub fn relation_name_by_oid(state: &SessionState, oid: Oid) -> String {
    class_name(state, oid).ok().flatten().unwrap_or_else(|| oid.to_string())
}

/// The one row of `catalog` whose `column` is `oid`.
///
/// # Errors
/// I/O.
pub fn row_by_oid(
    state: &SessionState,
    catalog: &str,
    column: &str,
    oid: Oid,
) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find(catalog, &[(column, Datum::Oid(oid))])?;
    Ok(rows.into_iter().next())
}

/// A schema's name.
///
/// # Errors
/// I/O.
pub fn schema_name(state: &SessionState, oid: Oid) -> Result<Option<String>> {
    if oid == engine::catalog::bootstrap::PG_CATALOG {
        return Ok(Some("pg_catalog".to_owned()));
    }
    Ok(row_by_oid(state, "pg_namespace", "oid", oid)?.map(|r| r.text("nspname").to_owned()))
}

/// Does an unqualified `name` mean relation `oid`?
///
/// # Errors
/// I/O.
pub fn relation_is_visible(
    state: &SessionState,
    oid: Oid,
    name: &str,
    namespace: Oid,
) -> Result<bool> {
    let txn = state.txn()?;
    for (_, schema) in state.search_schemas()? {
        if schema == namespace {
            return Ok(true);
        }
        if let Some(found) = state.catalog.relation_oid(&txn, schema, name)?
            && found != oid
        {
            return Ok(false);
        }
    }
    Ok(false)
}

/// A relation's name and its schema. For who asks it of every relation.
///
/// # Errors
/// I/O.
pub fn name_and_schema(state: &SessionState, relation: Oid) -> Result<Option<(String, Oid)>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let found = rows.columns_of("pg_class", relation, &["relname", "relnamespace"])?;
    Ok(match found.as_deref() {
        Some([Datum::Text(name), Datum::Oid(schema)]) => Some((name.as_str().to_owned(), *schema)),
        _ => None,
    })
}

fn class_name(state: &SessionState, oid: Oid) -> Result<Option<String>> {
    let Some((name, namespace)) = name_and_schema(state, oid)? else { return Ok(None) };
    if relation_is_visible(state, oid, &name, namespace)? {
        return Ok(Some(quote_ident(&name)));
    }
    let schema = schema_name(state, namespace)?.unwrap_or_default();
    Ok(Some(format!("{}.{}", quote_ident(&schema), quote_ident(&name))))
}

/// The type called so: built-in ones, and the row types of relations.
pub(super) fn type_oid(state: &SessionState, text: &str) -> Result<Option<Oid>> {
    let parts = crate::names::split_type_name(text);
    let (schema, name) = match &parts[..] {
        [name] => (None, name.as_str()),
        [schema, name] => (Some(schema.as_str()), name.as_str()),
        _ => bail!(SYNTAX_ERROR, "invalid type name \"{text}\""),
    };
    let built_in = schema.is_none_or(|s| s == "pg_catalog");
    if built_in && let Some(found) = built_in_type(text, name) {
        return Ok(Some(found));
    }
    let txn = state.txn()?;
    let catalogs = state.catalog.rows(&txn);
    let schemas = match schema {
        Some(schema) => named_schema(state, schema)?,
        None => state.search_schemas()?.into_iter().map(|s| s.1).collect(),
    };
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element.trim_end(), true),
        None => (name, false),
    };
    for namespace in schemas {
        let key = [("typname", Datum::text(name)), ("typnamespace", Datum::Oid(namespace))];
        if let Some(row) = catalogs.find("pg_type", &key)?.first() {
            let oid = row.oid(if is_array { "typarray" } else { "oid" });
            return Ok(Some(oid).filter(|o| o.is_valid()));
        }
    }
    Ok(None)
}

/// `varchar(10)`, `timestamp(3) with time zone`, `int[]`, `"char"`.
fn built_in_type(text: &str, name: &str) -> Option<Oid> {
    if text.trim() == "\"char\"" {
        return Some(oids::CHAR);
    }
    let mut bare = String::new();
    let mut depth = 0u32;
    for c in name.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let bare = bare.split_whitespace().collect::<Vec<_>>().join(" ");
    types::type_by_name(&bare.replace(" []", "[]")).map(|t| t.oid)
}

/// What `text` names, as an object of the kind that `reg_type` stands for. None leaves it to what the
/// types know by themselves.
///
/// # Errors
/// `42P01`, `42704`, `3F000` when there is no such object; I/O.
pub fn object_oid(state: &SessionState, reg_type: Oid, text: &str) -> Result<Option<Oid>> {
    match reg_type {
        oids::REGCLASS => relation_oid(state, text).map(Some),
        oids::REGPROC => super::reg_functions::function_oid(state, text, false),
        oids::REGPROCEDURE => super::reg_functions::function_oid(state, text, true),
        oids::REGTYPE => match type_oid(state, text)? {
            Some(oid) => Ok(Some(oid)),
            None => {
                if let [schema, _] = &crate::names::split_type_name(text)[..]
                    && state.schema_by_name(schema)?.is_none()
                {
                    bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
                }
                bail!(UNDEFINED_OBJECT, "type \"{text}\" does not exist")
            }
        },
        oids::REGNAMESPACE => {
            let name = only_part(text)?;
            match state.schema_by_name(&name)? {
                Some(oid) => Ok(Some(oid)),
                None => bail!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"),
            }
        }
        oids::REGROLE => {
            let name = only_part(text)?;
            match state.role_by_name(&name)? {
                Some(oid) => Ok(Some(oid)),
                None => bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"),
            }
        }
        oids::REGCOLLATION => {
            let parts = crate::names::split_qualified(text)?;
            let name = parts.last().map_or("", String::as_str);
            match facts::collations().iter().find(|c| c.name == name) {
                Some(collation) => Ok(Some(collation.oid)),
                None => bail!(
                    UNDEFINED_OBJECT,
                    "collation \"{text}\" for encoding \"UTF8\" does not exist"
                ),
            }
        }
        oids::REGCONFIG => {
            bail!(UNDEFINED_OBJECT, "text search configuration \"{text}\" does not exist")
        }
        oids::REGDICTIONARY => {
            bail!(UNDEFINED_OBJECT, "text search dictionary \"{text}\" does not exist")
        }
        _ => Ok(None),
    }
}

fn only_part(text: &str) -> Result<String> {
    match <[String; 1]>::try_from(crate::names::split_qualified(text)?) {
        Ok([name]) if !name.is_empty() => Ok(name),
        _ => bail!(INVALID_NAME, "invalid name syntax"),
    }
}

/// The schema of that name, if there is one.
///
/// # Errors
/// `42501`: the current user may not look into it.
fn named_schema(state: &SessionState, name: &str) -> Result<Vec<Oid>> {
    let Some(oid) = state.schema_by_name(name)? else { return Ok(Vec::new()) };
    crate::acl::check_schema_usage(state, oid, name)?;
    Ok(vec![oid])
}

/// The relation called `text`.
///
/// # Errors
/// `42P01`, `3F000`, `0A000` for another database's.
pub fn relation_oid(state: &SessionState, text: &str) -> Result<Oid> {
    let mut parts = crate::names::split_qualified(text)?;
    if parts.len() == 3 {
        let database = parts.remove(0);
        if database != state.database_name() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: \"{text}\""
            );
        }
    }
    let (schema, name) = match &parts[..] {
        [name] if !name.is_empty() => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        [_, _, _, ..] => {
            bail!(SYNTAX_ERROR, "improper relation name (too many dotted names): {text}")
        }
        _ => bail!(INVALID_NAME, "invalid name syntax"),
    };
    let txn = state.txn()?;
    let schemas = match schema {
        Some(schema) => named_schema(state, schema)?,
        None => state.search_schemas()?.into_iter().map(|s| s.1).collect(),
    };
    for namespace in schemas {
        if let Some(oid) = state.catalog.relation_oid(&txn, namespace, name)? {
            return Ok(oid);
        }
    }
    match schema {
        Some(schema) => bail!(UNDEFINED_TABLE, "relation \"{schema}.{name}\" does not exist"),
        None => bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
    }
}

/// How the object of a reg* value prints. None leaves it to what the types know by themselves.
pub fn object_name(state: &SessionState, reg_type: Oid, oid: Oid) -> Option<String> {
    match reg_type {
        oids::REGCLASS => class_name(state, oid).ok()?,
        oids::REGTYPE => type_name(state, oid, None),
        oids::REGNAMESPACE => schema_name(state, oid).ok()?.map(|n| quote_ident(&n)),
        oids::REGROLE => state.role_name(oid).ok()?.map(|n| quote_ident(&n)),
        oids::REGCOLLATION => {
            facts::collations().iter().find(|c| c.oid == oid).map(|c| quote_ident(c.name))
        }
        _ => None,
    }
}

/// A type as `format_type` writes it, row types included; None when there is no such type.
pub fn type_name(state: &SessionState, oid: Oid, typmod: Option<i32>) -> Option<String> {
    if oid < Oid::FIRST_NORMAL && type_info(oid).is_some() {
        return Some(match (oid, typmod) {
            (oids::BPCHAR, None) => "character".to_owned(),
            (oids::BPCHAR_ARRAY, None) => "character[]".to_owned(),
            (oids::BIT, None) => "bit".to_owned(),
            _ => format_type(oid, typmod.unwrap_or(-1)),
        });
    }
    if let Some(row) = types::row_types::row_of(oid) {
        return type_name(state, row, typmod).map(|name| format!("{name}[]"));
    }
    let row = row_by_oid(state, "pg_type", "oid", oid).ok()??;
    let element = row.oid("typelem");
    if row.char("typcategory") == b'A' && element.is_valid() {
        return type_name(state, element, typmod).map(|name| format!("{name}[]"));
    }
    let (name, namespace) = (row.text("typname"), row.oid("typnamespace"));
    let schemas = state.search_schemas().ok()?;
    if schemas.iter().any(|s| s.1 == namespace) {
        return Some(quote_ident(name));
    }
    let schema = schema_name(state, namespace).ok()??;
    Some(format!("{}.{}", quote_ident(&schema), quote_ident(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_types_are_found_by_their_sql_names() {
        for (text, expected) in [
            ("int", oids::INT4),
            ("varchar(10)", oids::VARCHAR),
            ("timestamp(3) with time zone", oids::TIMESTAMPTZ),
            ("int []", oids::INT4_ARRAY),
            ("\"char\"", oids::CHAR),
        ] {
            assert_eq!(built_in_type(text, text), Some(expected), "{text}");
        }
        assert_eq!(built_in_type("nosuch", "nosuch"), None);
    }
}
