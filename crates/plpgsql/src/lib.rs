//! `plpgsql`: the language PL/pgSQL.
//!
//! # Purpose
//! [`compile`] turns a routine's body into a [`Routine`], [`Frame::new`] makes a frame of its variables, and [`run`] interprets it upon a [`Host`], which
//! is the database server: whatever is SQL in a body is handed to it as text (see [`host`]).
//!
//! # Layout
//! [`lex`] has the tokens, `parse/` the grammar (one pass, declarations resolved as they come), [`ast`] what it makes, [`names`] the variables in
//! sight of a place, [`frame`] their values, `run/` the interpreter, [`conditions`] the names of errors.
//!
//! # Invariants
//! No body, whatever its bytes, panics, and nesting is bounded (54001), so that neither the parser nor the interpreter overflows a stack.
//!
//! # Differs from PostgreSQL
//! `#option dump` is read and does nothing: PostgreSQL prints the tree to the server's standard output, which no client sees.

#![forbid(unsafe_code)]

pub mod ast;
pub mod conditions;
pub mod frame;
pub mod host;
pub mod lex;
pub mod names;
mod parse;
mod run;

#[cfg(test)]
mod tests;

pub use ast::{Routine, Variable};
pub use frame::Frame;
pub use host::{
    Columns, Command, Conflict, Direction, Host, Level, Mode, OpenCursor, Outcome, ScopeId, Site,
    SiteId, Source, TypeKind, Value, Want,
};
pub use names::{Found, Names, Reference, VarId};
pub use parse::{Options, Returns, compile};
pub use run::{Ended, run};
