//! Procedural blocks: what a session is to the language that they are written in.
//!
//! # Layout
//! The language is the crate `plpgsql`, which knows nothing of SQL. `host`: what it asks for. `sites`: embedded texts, what was made of
//! them kept for the next turn of a loop. `names`: variables within SQL. `expression`: what needs no executor. `cast`: assignments. `type_names`: types by
//! their names. `run`: statements. `cursors`: portals. `errors`: in which text an error is. How a statement runs within another one is
//! [`crate::session::within`].
//!
//! # Invariants
//! While the language runs it has the session to itself, and lends nothing of it over a statement. A block that ends leaves neither a
//! savepoint nor a loop's portal behind.

mod cast;
mod cursors;
mod errors;
mod expression;
mod good;
mod host;
mod names;
mod run;
mod sites;
mod type_names;

use crate::client::Client;
use crate::session::{Session, SessionState};
use base::Result;
use plpgsql::{Conflict, Frame, Options};

/// The text of a DO statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    /// What the language reads.
    pub text: &'a str,
    /// The query string that it is a literal of.
    pub source: &'a str,
}

/// Runs the body of a DO statement; `atomic`: within a transaction that is not its own to end.
///
/// # Errors
/// The block's.
pub(crate) fn run_block(
    session: &mut Session,
    body: Body<'_>,
    atomic: bool,
    client: &mut dyn Client,
) -> Result<()> {
    let options = options(session.state());
    let mut host = host::BlockHost::new(session, client, atomic);
    let routine = plpgsql::compile(body.text, &options, &mut host);
    let routine = routine.map_err(|error| errors::in_statement(error, body))?;
    plpgsql::run(&mut Frame::new(routine), &mut host)?;
    Ok(())
}

/// What settings say of how a block is read. Those of the language are there once somebody has set them.
fn options(state: &SessionState) -> Options {
    let settings = state.settings.borrow();
    let of = |name: &str| settings.show(name).ok().map(|value| value.to_ascii_lowercase());
    let is = |name: &str, by_default: bool| {
        of(name).map_or(by_default, |value| matches!(value.as_str(), "on" | "true" | "yes" | "1"))
    };
    Options {
        conflict: match of("plpgsql.variable_conflict").as_deref() {
            Some("use_variable") => Conflict::UseVariable,
            Some("use_column") => Conflict::UseColumn,
            _ => Conflict::Error,
        },
        print_strict_params: is("plpgsql.print_strict_params", false),
        check_asserts: is("plpgsql.check_asserts", true),
        check_syntax: is("check_function_bodies", true),
        ..Options::default()
    }
}
