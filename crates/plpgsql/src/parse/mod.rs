//! Text → routine.
//!
//! # Purpose
//! A parser by recursive descent, one pass: declarations are resolved where they stand, so that each place of the text knows which names are
//! in sight of it. Embedded SQL is not read here, only where it ends: by tokens, parentheses counted.
//!
//! # Layout
//! Here what all parts use; [`declare`] has blocks and declarations, [`statements`] the simple statements, [`control`] branches and loops, [`cursors`],
//! [`raise`] and [`sql`] what their names say, [`targets`] the places that values go to.
//!
//! # Invariants
//! Words that are reserved ([`RESERVED`]) are never names. All other keywords are, where the text goes on as a name does.

mod control;
mod cursors;
mod declare;
mod raise;
mod sql;
mod statements;
mod targets;

use crate::ast::{Routine, Variable};
use crate::frame::BOOLEAN;
use crate::host::{Conflict, Host, Mode, Site, SiteId, TypeKind};
use crate::lex::{Tok, Token, character_of, tokens};
use crate::names::{Item, LabelKind, Namespace, VarId};
use base::{Error, Oid, Result, SqlError, SqlState};
use expr::TypeRef;
use std::rc::Rc;
use std::sync::Arc;

/// What RETURN may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Returns {
    /// Nothing: a DO block, a function of `void`.
    #[default]
    Nothing,
    /// Nothing: a procedure.
    Procedure,
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
    /// The name that qualifies its parameters: `f` of `f(integer)`.
    pub label: String,
    /// `pg_proc.oid`; invalid of a DO block.
    pub oid: Oid,
    /// Its parameters: variables 1, 2, … of the routine ([`crate::Frame::set`]).
    pub parameters: Vec<(String, TypeRef)>,
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
            label: "inline_code_block".to_owned(),
            oid: Oid::INVALID,
            parameters: Vec::new(),
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
/// to the statement that the body was a literal of, as PostgreSQL does, and where it cannot, leaves them. `context` of one without says
/// `compilation of PL/pgSQL function "…" near line …`.
pub fn compile(body: &str, options: &Options, host: &mut dyn Host) -> Result<Arc<Routine>> {
    let mut parser = Parser::new(body, options, host);
    parser.routine().map_err(|error| {
        if matches!(&error, Error::Sql(e) if e.internal_position.is_some()) {
            return error;
        }
        let line = parser.line(parser.last_start());
        error.within(format_args!(
            "compilation of PL/pgSQL function \"{}\" near line {line}",
            options.label
        ))
    })
}

/// Words that are never names.
const RESERVED: &[&str] = &[
    "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from",
    "if", "in", "into", "loop", "not", "null", "or", "strict", "then", "to", "using", "when",
    "while",
];

/// Blocks, branches and loops within each other: what keeps the parser and the interpreter within a session's stack.
const DEPTH_MAX: u32 = 80;

pub(crate) struct Parser<'a> {
    source: &'a str,
    /// Where lines end.
    newlines: Vec<usize>,
    tokens: Vec<Rc<Token>>,
    at: usize,
    host: &'a mut dyn Host,
    options: &'a Options,
    names: Namespace,
    variables: Vec<Variable>,
    site_count: u32,
    depth: u32,
    conflict: Conflict,
    print_strict_params: bool,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, options: &'a Options, host: &'a mut dyn Host) -> Parser<'a> {
        let newlines = source.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Parser {
            source,
            newlines: newlines.map(|(at, _)| at).collect(),
            tokens: tokens(source).into_iter().map(Rc::new).collect(),
            at: 0,
            host,
            options,
            names: Namespace::default(),
            variables: Vec::new(),
            site_count: 0,
            depth: 0,
            conflict: options.conflict,
            print_strict_params: options.print_strict_params,
        }
    }

    fn routine(&mut self) -> Result<Arc<Routine>> {
        self.names.add(Item::Label(LabelKind::Block), &self.options.label.clone());
        self.declare("found", BOOLEAN, TypeKind::Scalar { checked: false }, 0, true);
        for (name, ty) in self.options.parameters.clone() {
            let kind = self.host.kind_of(ty)?;
            let id = self.declare(&name, ty, kind, 0, !name.is_empty());
            self.names.add(Item::Variable(id), &format!("${}", id.0));
        }
        self.options()?;
        let label = self.label(LabelKind::Block)?;
        let body = self.block(label)?;
        self.accept(";")?;
        let end = self.peek()?;
        if end.kind != Tok::End {
            return Err(self.syntax(&end));
        }
        Ok(Arc::new(Routine {
            name: self.options.name.as_str().into(),
            oid: self.options.oid,
            variables: std::mem::take(&mut self.variables),
            site_count: self.site_count,
            conflict: self.conflict,
            print_strict_params: self.print_strict_params,
            check_asserts: self.options.check_asserts,
            returns: self.options.returns,
            names: std::mem::take(&mut self.names),
            body,
        }))
    }

    /// `#option dump`, `#print_strict_params on`, `#variable_conflict error`
    fn options(&mut self) -> Result<()> {
        while self.accept("#")? {
            let option = self.take()?;
            let value = self.take()?;
            match (option.text.as_str(), value.text.as_str()) {
                ("option", "dump") => {}
                ("print_strict_params", "on") => self.print_strict_params = true,
                ("print_strict_params", "off") => self.print_strict_params = false,
                ("variable_conflict", "error") => self.conflict = Conflict::Error,
                ("variable_conflict", "use_variable") => self.conflict = Conflict::UseVariable,
                ("variable_conflict", "use_column") => self.conflict = Conflict::UseColumn,
                ("print_strict_params", other) if value.is_name() => {
                    let text = format!("unrecognized print_strict_params option {other}");
                    return Err(Error::sql(SqlState::INTERNAL_ERROR, text));
                }
                ("option" | "print_strict_params" | "variable_conflict", _) => {
                    return Err(self.syntax(&value));
                }
                _ => return Err(self.syntax(&option)),
            }
        }
        Ok(())
    }

    // --- tokens ---

    fn token(&self, ahead: usize) -> Rc<Token> {
        let last = self.tokens.len().saturating_sub(1);
        Rc::clone(&self.tokens[(self.at + ahead).min(last)])
    }

    /// The next token, which stays.
    fn peek(&self) -> Result<Rc<Token>> {
        let token = self.token(0);
        match token.kind {
            Tok::Bad(why) => Err(self.near(why, &token)),
            _ => Ok(token),
        }
    }

    /// The next token, which is used up.
    fn take(&mut self) -> Result<Rc<Token>> {
        let token = self.peek()?;
        if token.kind != Tok::End {
            self.at += 1;
        }
        Ok(token)
    }

    /// The token that begins with this byte.
    fn token_at(&self, start: usize) -> Option<&Token> {
        let at = self.tokens.binary_search_by_key(&start, |t| t.start).ok()?;
        self.tokens.get(at).map(|t| &**t)
    }

    /// Where the last token that was used up begins.
    fn last_start(&self) -> usize {
        self.tokens.get(self.at.saturating_sub(1)).map_or(0, |t| t.start)
    }

    /// Takes a sign, or an unquoted word, if it is next.
    fn accept(&mut self, what: &str) -> Result<bool> {
        let there = is(&*self.peek()?, what);
        self.at += usize::from(there);
        Ok(there)
    }

    /// Takes a sign, or an unquoted word, that has to be next.
    fn expect(&mut self, what: &str) -> Result<Rc<Token>> {
        let token = self.peek()?;
        if !is(&token, what) {
            return Err(self.syntax(&token));
        }
        self.at += 1;
        Ok(token)
    }

    /// A name: quoted, or a word that is not reserved.
    fn name(&mut self) -> Result<Rc<Token>> {
        let token = self.take()?;
        if may_be_name(&token) { Ok(token) } else { Err(self.syntax(&token)) }
    }

    /// Where a byte is: the line, from 1.
    fn line(&self, at: usize) -> u32 {
        1 + self.newlines.partition_point(|n| *n < at) as u32
    }

    // --- errors ---

    /// An error at a byte of the body.
    fn error_at(&self, state: SqlState, message: impl Into<String>, at: usize) -> Error {
        self.placed(SqlError::new(state, message), at)
    }

    fn placed(&self, mut error: SqlError, at: usize) -> Error {
        error.internal_position = Some(character_of(self.source, at));
        error.internal_query = Some(self.source.to_owned());
        error.into()
    }

    /// `42601` at a token, which is named.
    fn near(&self, message: &str, token: &Token) -> Error {
        self.near_text(message, token.start, token.end)
    }

    fn near_text(&self, message: &str, start: usize, end: usize) -> Error {
        let text = self.source.get(start..end).unwrap_or("");
        let text = if text.is_empty() {
            format!("{message} at end of input")
        } else {
            format!("{message} at or near \"{text}\"")
        };
        self.error_at(SqlState::SYNTAX_ERROR, text, start)
    }

    fn syntax(&self, token: &Token) -> Error {
        if token.kind == Tok::End {
            return self.near("syntax error", token);
        }
        // A name that goes on after dots is named as a whole.
        let at = self.tokens.binary_search_by_key(&token.start, |t| t.start).ok();
        let end = at.filter(|_| may_be_name(token)).map(|at| self.names_from(at).2);
        self.near_text("syntax error", token.start, end.unwrap_or(token.end))
    }

    /// One more level of blocks, branches or loops.
    fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            let error =
                SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
            return Err(error
                .hint(
                    "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), \
                     after ensuring the platform's stack depth limit is adequate.",
                )
                .into());
        }
        self.depth += 1;
        let made = what(self);
        self.depth -= 1;
        made
    }

    // --- variables and sites ---

    /// A new variable; `named`: it comes into sight.
    fn declare(
        &mut self,
        name: &str,
        ty: TypeRef,
        kind: TypeKind,
        line: u32,
        named: bool,
    ) -> VarId {
        let id = VarId(self.variables.len() as u32);
        self.variables.push(Variable {
            name: name.into(),
            ty,
            kind,
            constant: false,
            not_null: false,
            default: None,
            cursor: None,
            takes_type: false,
            line,
        });
        if named {
            self.names.add(Item::Variable(id), name);
        }
        id
    }

    /// A site of that text, whose syntax is looked at. `start`: the byte of the body that its first byte is.
    fn site(&mut self, text: String, mode: Mode, start: usize) -> Result<Arc<Site>> {
        let site = self.unchecked_site(text, mode, start);
        if self.options.check_syntax {
            self.check_syntax(&site)?;
        }
        Ok(site)
    }

    fn check_syntax(&mut self, site: &Site) -> Result<()> {
        let start = site.start as usize;
        self.host.check_syntax(site).map_err(|e| self.moved(e, start))
    }

    fn unchecked_site(&mut self, text: String, mode: Mode, start: usize) -> Arc<Site> {
        let id = SiteId(self.site_count);
        self.site_count += 1;
        Arc::new(Site {
            id,
            text: text.into(),
            mode,
            scope: self.names.scope(),
            start: start as u32,
            line: self.line(start),
        })
    }

    /// An error with a position in a text that begins at a byte of the body, with the body's position instead.
    fn moved(&self, error: Error, start: usize) -> Error {
        let Error::Sql(mut error) = error else { return error };
        let inner = error.position.take().or(error.internal_position.take());
        if let Some(position) = inner {
            error.internal_position = Some(character_of(self.source, start) + position - 1);
            error.internal_query = Some(self.source.to_owned());
        }
        Error::Sql(error)
    }
}

fn is(token: &Token, what: &str) -> bool {
    token.is(what) || token.is_word(what)
}

fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

fn may_be_name(token: &Token) -> bool {
    match token.kind {
        Tok::Word => !is_reserved(&token.text),
        Tok::Quoted => true,
        _ => false,
    }
}
