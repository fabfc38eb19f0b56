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
use crate::session::Session;
use base::Result;

/// Runs the body of a DO statement; `atomic`: within a transaction that is not its own to end.
///
/// # Errors
/// The block's.
pub(crate) fn run_block(
    session: &mut Session,
    body: &str,
    atomic: bool,
    client: &mut dyn Client,
) -> Result<()> {
    let mut host = host::BlockHost::new(session, client, atomic);
    plpgsql::run_inline(&mut host, body)
}
