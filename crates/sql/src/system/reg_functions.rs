//! Functions of extensions by name, as `regproc` and `regprocedure` read them. The types know the built-in ones by themselves.

use super::extensions::{EXTENSIONS, Signature};
use super::names;
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::model::CatalogView;

/// The function called so, if a visible extension has one: with arguments where they are told. None leaves it to the types.
///
/// # Errors
/// `42725`: there are several; `42501`; I/O.
pub(super) fn function_oid(
    state: &SessionState,
    text: &str,
    with_args: bool,
) -> Result<Option<Oid>> {
    let (name, args) = match text.split_once('(').filter(|_| with_args) {
        Some((name, rest)) => match rest.trim_end().strip_suffix(')') {
            Some(list) => (name, list),
            None => return Ok(None),
        },
        None => (text, ""),
    };
    // What has a number for a name, or none, is no extension's.
    let Ok(mut parts) = crate::names::split_qualified(name) else { return Ok(None) };
    let (Some(name), schema) = (parts.pop(), parts.pop()) else { return Ok(None) };
    let mut found: Vec<Signature> =
        EXTENSIONS.iter().flat_map(|e| e.signatures()).filter(|s| s.name == name).collect();
    if found.is_empty() || !parts.is_empty() {
        return Ok(None);
    }
    if with_args {
        let Some(args) = arguments(state, args)? else { return Ok(None) };
        found.retain(|s| s.args == args);
    }
    let mut visible = Vec::new();
    for signature in found {
        if state.function_is_visible(signature.oid)? && is_in(state, signature.oid, &schema)? {
            visible.push(signature.oid);
        }
    }
    match visible[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{text}\""),
    }
}

/// Is the function's extension in the schema of that name, or is none named?
fn is_in(state: &SessionState, function: Oid, schema: &Option<String>) -> Result<bool> {
    let Some(schema) = schema else { return Ok(true) };
    let row = names::row_by_oid(state, "pg_proc", "oid", function)?;
    Ok(match (row, state.schema_by_name(schema)?) {
        (Some(row), Some(schema)) => row.oid("pronamespace") == schema,
        _ => false,
    })
}

/// `regclass, bigint`; None: one of them is no type.
fn arguments(state: &SessionState, list: &str) -> Result<Option<Vec<Oid>>> {
    if list.trim().is_empty() {
        return Ok(Some(Vec::new()));
    }
    let types = list.split(',').map(|one| names::type_oid(state, one.trim()));
    types.collect::<Result<Option<Vec<Oid>>>>()
}
