//! Text → routine.

use crate::ast::Routine;
use crate::host::{Conflict, Host};
use base::Result;
use std::sync::Arc;

/// What RETURN may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Returns {
    /// Nothing: a DO block, a function of `void`.
    #[default]
    Nothing,
    /// A value, which the host casts.
    Value,
    /// Rows.
    Set,
}

/// How a routine is compiled: what is known from outside its text.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name in context lines.
    pub name: String,
    /// `plpgsql.variable_conflict`
    pub conflict: Conflict,
    /// `plpgsql.print_strict_params`
    pub print_strict_params: bool,
    /// `plpgsql.check_asserts`
    pub check_asserts: bool,
    /// Is the syntax of embedded texts looked at at once? (`check_function_bodies`)
    pub check_syntax: bool,
    /// What RETURN may do.
    pub returns: Returns,
}

impl Default for Options {
    /// Those of a DO block, with PostgreSQL's settings.
    fn default() -> Options {
        Options {
            name: "inline_code_block".to_owned(),
            conflict: Conflict::Error,
            print_strict_params: false,
            check_asserts: true,
            check_syntax: true,
            returns: Returns::Nothing,
        }
    }
}

/// Compiles a body.
///
/// # Errors
/// All that the text can be wrong in. One with a place has `internal_position` and `internal_query` (the body): the host moves these
/// to the statement that the body was a literal of (then without `context`), as PostgreSQL does, and where it cannot, leaves them. `context` says
/// `compilation of PL/pgSQL function "…" near line …`.
pub fn compile(body: &str, options: &Options, host: &mut dyn Host) -> Result<Arc<Routine>> {
    let _ = (body, options, host);
    Err(base::Error::unsupported("PL/pgSQL"))
}
