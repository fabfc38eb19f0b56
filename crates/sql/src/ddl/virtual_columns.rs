//! What virtual generated columns can't be, or be used for.
//!
//! # Differs from PostgreSQL
//! Nothing that shows.

use base::{Error, Oid, Result, SqlError, SqlState};
use engine::catalog::model::{Column, Table};
use expr::Expr;

const NO_USER_TYPES: &str =
    "Virtual generated columns that make use of user-defined types are not yet supported.";

/// "{what} on virtual generated columns is not supported".
pub(super) fn unsupported(what: &str) -> Error {
    let text = format!("{what} on virtual generated columns is not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into()
}

/// A virtual column is no part of a key.
pub(super) fn no_key(primary: bool) -> Error {
    let what = if primary { "primary keys" } else { "unique constraints" };
    let text = format!("{what} on virtual generated columns are not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into()
}

/// `what`, of this virtual column.
pub(super) fn refused(what: &str, table: &Table, column: &str) -> Error {
    let detail = format!(
        "Column \"{column}\" of relation \"{}\" is a virtual generated column.",
        table.name
    );
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what).detail(detail).into()
}

/// True if the column (0: none), or the expression, reads a virtual column.
pub(super) fn is_asked(table: &Table, column: i32, expr: Option<&Expr>) -> bool {
    let is_virtual =
        |number: i32| table.columns.iter().any(|c| c.number == number && c.is_virtual());
    let whole = || table.columns.iter().any(Column::is_virtual);
    let reads = |e: &Expr| match e {
        Expr::Var { column: 0, .. } => whole(),
        Expr::Var { column, .. } => is_virtual(*column),
        _ => false,
    };
    match expr {
        Some(e) => e.any(&mut |e| reads(e)),
        None => is_virtual(column),
    }
}

fn is_of_user(ty: Oid) -> bool {
    ty >= Oid::FIRST_NORMAL || super::enums::is_ours(ty)
}

/// A virtual column's type is one of the system's.
///
/// # Errors
/// `0A000`
pub(super) fn check_type(column: &str, ty: Oid) -> Result<()> {
    if types::domains::is_domain(ty) {
        let text = format!("virtual generated column \"{column}\" cannot have a domain type");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
    }
    if is_of_user(ty) {
        let text = format!("virtual generated column \"{column}\" cannot have a user-defined type");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
            .detail(NO_USER_TYPES)
            .into());
    }
    Ok(())
}

/// Nothing in a virtual column's expression is of another type.
///
/// # Errors
/// `0A000`
pub(super) fn refuse_user_types(e: &Expr, source: &str, loc: crate::parse::ast::Loc) -> Result<()> {
    if !e.any(&mut |e| is_of_user(e.ty().oid)) {
        return Ok(());
    }
    let text = "generation expression uses user-defined type";
    let e = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).detail(NO_USER_TYPES);
    Err(crate::parse::error_at(source, e.into(), loc))
}
