//! Trees → PostgreSQL's text, as `pg_get_expr`, `pg_get_indexdef`, `pg_get_constraintdef` and
//! `pg_get_viewdef` print it.
//!
//! # Layout
//! [`exprs`] prints expressions, [`json`] those of SQL/JSON, [`queries`] whole queries, [`definitions`] indexes and constraints; [`names`] keeps names apart,
//! and [`names_now`] knows what tables and columns are called by now.
//!
//! # Invariants
//! What is printed parses back to the same tree (casts that nobody wrote are left out, as the parser adds
//! them again).

mod calls;
mod definitions;
mod exprs;
mod json;
mod names;
mod names_now;
mod queries;

#[cfg(test)]
mod tests;

pub(crate) use definitions::column_names;
pub use definitions::{check_definition, foreign_key_definition, index_definition, key_definition};
pub(crate) use exprs::looks_like_function;

use crate::query::Query;
use base::Result;
use engine::catalog::model::CatalogView;
use expr::Expr;
use types::Env;

/// What printing needs to know.
pub(crate) struct Printer<'a> {
    pub out: String,
    /// Few parentheses.
    pub pretty: bool,
    pub env: &'a dyn Env,
    pub catalog: Option<&'a dyn CatalogView>,
    /// Query levels, outermost first; empty for a table's own expressions.
    pub levels: Vec<names::Level<'a>>,
    /// Column names of entry 0 when there is no query.
    pub columns: &'a [String],
    /// Names of the query's outputs, where they are not its own.
    pub outputs: &'a [String],
    /// Its outputs' names are seen: they are said even if there are none.
    pub named: bool,
    /// How far lines are indented.
    pub indent: usize,
    /// Within a CASE, which has indented what stands in it.
    pub in_case: bool,
    /// The operand that a CASE's WHEN leaves out.
    pub sub_columns: Vec<String>,
    /// How many levels out the query is whose sub-selects are meant: within an aggregate, the one that it belongs to.
    pub owner_up: usize,
}

/// An expression over one table (defaults, checks, index keys): entry 0's columns are `columns`.
///
/// # Errors
/// Those of printing constants.
pub fn expression(e: &Expr, columns: &[String], pretty: bool, env: &dyn Env) -> Result<String> {
    let mut p = Printer {
        out: String::new(),
        pretty,
        env,
        catalog: None,
        levels: Vec::new(),
        columns,
        outputs: &[],
        named: true,
        indent: 0,
        in_case: false,
        sub_columns: Vec::new(),
        owner_up: 0,
    };
    p.quiet(e)?;
    Ok(p.out)
}

/// A query as `pg_get_viewdef` prints it, with the semicolon; `outputs`: the view's column names.
///
/// # Errors
/// Those of printing constants, and I/O of looking up names.
pub fn query(
    q: &Query,
    outputs: &[String],
    catalog: &dyn CatalogView,
    pretty: bool,
    env: &dyn Env,
) -> Result<String> {
    let mut q = q.clone();
    names_now::put(&mut q, catalog)?;
    let mut p = Printer {
        out: String::new(),
        pretty,
        env,
        catalog: Some(catalog),
        levels: Vec::new(),
        columns: &[],
        outputs,
        named: true,
        indent: 0,
        in_case: false,
        sub_columns: Vec::new(),
        owner_up: 0,
    };
    p.query(&q)?;
    p.out.push(';');
    Ok(p.out)
}
