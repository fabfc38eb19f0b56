//! Text → statements.
//!
//! # Purpose
//! [`parse`] splits a query string into statements and parses each: queries into the syntax tree of
//! [`ast`], everything else into a typed [`UtilityStatement`].
//!
//! # Invariants
//! A lexical or syntax error anywhere in the string fails the whole string before anything runs, as in
//! PostgreSQL. Depth is bounded (54001), so no input can overflow the stack.

mod alter;
pub mod ast;
mod constraint_attributes;
mod create;
mod create_table;
mod dml;
mod escapes;
mod expr;
mod from;
mod grant;
mod json;
pub mod keywords;
mod lexer;
mod merge;
mod parser;
mod primary;
pub mod references;
mod select;
mod session;
mod statement;
mod statistics;
mod types;
pub mod utility;

#[cfg(test)]
mod tests;

pub use dml::as_values;
/// Tokens of a text, for those who look at it beside its tree.
pub(crate) mod tokens {
    use super::Dialect;
    pub(crate) use super::lexer::{Kind, Token};

    /// The tokens of `source`, the end last.
    ///
    /// # Errors
    /// 42601 for what is no token.
    pub(crate) fn tokens(source: &str, dialect: Dialect) -> base::Result<Vec<Token<'_>>> {
        super::lexer::tokens(source, dialect, &mut Vec::new())
    }
}
pub use lexer::truncate_identifier;
pub use utility::UtilityStatement;

use crate::client::{Notice, Severity};
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

/// What of the grammar settings decide.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// `standard_conforming_strings`: a backslash in a plain string is one.
    pub standard_strings: bool,
    /// `escape_string_warning`: it is warned of where it is none.
    pub escape_warning: bool,
}

impl Dialect {
    /// As the settings are by themselves.
    pub const STANDARD: Dialect = Dialect { standard_strings: true, escape_warning: true };
}

/// All statements of a query string. Empty ones (nothing between semicolons) are left out.
///
/// # Errors
/// 42601 and the like, with position.
pub fn parse(source: &str) -> base::Result<Vec<Parsed>> {
    parse_noting(source, Dialect::STANDARD, &mut Vec::new())
}

/// [`parse`], with what is to be said of names that are too long and of backslashes; of a string that fails, of those up to where it does.
///
/// # Errors
/// 42601 and the like, with position.
pub fn parse_noting(
    source: &str,
    dialect: Dialect,
    notices: &mut Vec<Notice>,
) -> base::Result<Vec<Parsed>> {
    let mut remarks = Vec::new();
    let mut failed = NO_LOC;
    let result = statements(source, dialect, &mut remarks, &mut failed);
    let said = remarks.into_iter().filter(|r| r.start <= failed);
    notices.extend(said.map(|r| notice_of(source, &r)));
    result
}

fn notice_of(source: &str, remark: &lexer::Remark) -> Notice {
    let warning = |text: &str, hint: &str| {
        let body = base::SqlError::new(base::SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, text);
        match error_at(source, body.hint(hint).into(), remark.start) {
            base::Error::Sql(body) => Notice { severity: Severity::Warning, body: *body },
            other => Notice { severity: Severity::Warning, body: other.to_sql_error() },
        }
    };
    match &remark.about {
        lexer::About::CutName(whole) => {
            let text = format!(
                "identifier \"{whole}\" will be truncated to \"{}\"",
                truncate_identifier(whole)
            );
            let body = base::SqlError::new(base::SqlState::NAME_TOO_LONG, text);
            Notice { severity: Severity::Notice, body }
        }
        lexer::About::Escape(b'\'') => warning(
            "nonstandard use of \\' in a string literal",
            "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
        ),
        lexer::About::Escape(b'\\') => warning(
            "nonstandard use of \\\\ in a string literal",
            "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
        ),
        lexer::About::Escape(_) => warning(
            "nonstandard use of escape in a string literal",
            "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
        ),
    }
}

/// Parses them; `failed` is where, if it was over a token.
fn statements(
    source: &str,
    dialect: Dialect,
    remarks: &mut Vec<lexer::Remark>,
    failed: &mut Loc,
) -> base::Result<Vec<Parsed>> {
    let mut parser = parser::Parser::new(source, dialect, remarks)?;
    let result = all(&mut parser, source);
    if result.is_err() {
        *failed = parser.loc();
    }
    result
}

fn all(parser: &mut parser::Parser<'_>, source: &str) -> base::Result<Vec<Parsed>> {
    let shared: Arc<str> = Arc::from(source);
    let mut out = Vec::new();
    loop {
        while parser.accept_op(";") {}
        if parser.at_end() {
            return Ok(out);
        }
        let start = parser.loc() as usize;
        parser.max_param = 0;
        let statement = parser.statement()?;
        if !parser.at_end() {
            return Err(parser.unexpected());
        }
        let end = parser.last_end() as usize;
        let max_param = parser.max_param;
        out.push(Parsed { statement, source: Arc::clone(&shared), start, end, max_param });
    }
}

/// One expression standing alone.
///
/// # Errors
/// 42601 and the like, with position.
pub fn parse_expression(source: &str) -> base::Result<ast::Expr> {
    let mut remarks = Vec::new();
    let mut parser = parser::Parser::new(source, Dialect::STANDARD, &mut remarks)?;
    let e = parser.expr()?;
    if parser.at_end() { Ok(e) } else { Err(parser.unexpected()) }
}

/// A type standing alone, as in `'int4[]'::regtype`.
///
/// # Errors
/// 42601 and the like, with position.
pub fn parse_type(source: &str) -> base::Result<ast::TypeName> {
    let mut remarks = Vec::new();
    let mut parser = parser::Parser::new(source, Dialect::STANDARD, &mut remarks)?;
    let t = parser.type_name()?;
    if parser.at_end() { Ok(t) } else { Err(parser.unexpected()) }
}
