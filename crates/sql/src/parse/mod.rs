//! Text → statements.
//!
//! # Purpose
//! [`parse`] splits a query string into statements and parses each: queries into the syntax tree of
//! [`ast`], everything else into a typed [`UtilityStatement`].
//!
//! # Invariants
//! A lexical or syntax error anywhere in the string fails the whole string before anything runs, as in
//! PostgreSQL. Depth is bounded (54001), so no input can overflow the stack.

pub mod ast;
pub mod utility;

pub use utility::UtilityStatement;

use ast::{Loc, NO_LOC, QueryStatement};
use std::sync::Arc;

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE.
    Query(QueryStatement),
    /// All others.
    Utility(Box<UtilityStatement>),
}

/// A statement with its place in the source.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// The whole string it came in.
    pub source: Arc<str>,
    /// Its first byte in `source`.
    pub start: usize,
    /// The byte after its last (without the semicolon).
    pub end: usize,
    /// The highest `$n` in it.
    pub max_param: u32,
}

impl Parsed {
    /// The statement's own text.
    pub fn text(&self) -> &str {
        self.source.get(self.start..self.end).unwrap_or("")
    }
    /// `error` with the position of byte `loc` of the source, unless it already has one.
    pub fn error_at(&self, error: base::Error, loc: Loc) -> base::Error {
        error_at(&self.source, error, loc)
    }
}

/// `error` with the position (in characters) of byte `loc` of `source`, unless it already has one.
pub fn error_at(source: &str, error: base::Error, loc: Loc) -> base::Error {
    match error {
        base::Error::Sql(mut e) if e.position.is_none() && loc != NO_LOC => {
            let chars = source.char_indices().take_while(|(i, _)| *i < loc as usize).count();
            e.position = u32::try_from(chars + 1).ok();
            base::Error::Sql(e)
        }
        other => other,
    }
}
