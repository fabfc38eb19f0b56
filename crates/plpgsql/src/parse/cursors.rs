//! OPEN, FETCH, MOVE, and the arguments of cursors.

use super::{Parser, may_be_name};
use crate::ast::{Going, Kind, Opening, Query};
use crate::host::{Direction, Mode, Site};
use crate::lex::Token;
use crate::names::VarId;
use base::{Result, SqlState};
use std::sync::Arc;
use types::oids;

impl Parser<'_> {
    pub(super) fn cursor_variable(&mut self) -> Result<VarId> {
        let named = self.known()?;
        let bracket = self.peek()?.is("[");
        let variable = &self.variables[named.variable.index()];
        if named.field.is_some() || variable.is_record() || bracket {
            let text = "cursor variable must be a simple variable";
            return Err(self.error_at(SqlState::DATATYPE_MISMATCH, text, named.start));
        }
        if variable.ty.oid != oids::REFCURSOR {
            let text =
                format!("variable \"{}\" must be of type cursor or refcursor", variable.name);
            return Err(self.error_at(SqlState::DATATYPE_MISMATCH, text, named.start));
        }
        Ok(named.variable)
    }

    /// `(a, x := b)` and what has to follow, which is taken too.
    pub(super) fn cursor_arguments(
        &mut self,
        cursor: VarId,
        until: &str,
    ) -> Result<Vec<Arc<Site>>> {
        let variable = &self.variables[cursor.index()];
        let name = Arc::clone(&variable.name);
        let names: Vec<Arc<str>> = variable.cursor.as_ref().map_or(Vec::new(), |c| {
            c.args.iter().map(|a| Arc::clone(&self.variables[a.index()].name)).collect()
        });
        let next = self.peek()?;
        let refused = |text: String| Err(self.error_at(SqlState::SYNTAX_ERROR, text, next.start));
        if names.is_empty() {
            if next.is("(") {
                return refused(format!("cursor \"{name}\" has no arguments"));
            }
            self.expect(until)?;
            return Ok(Vec::new());
        }
        if !next.is("(") {
            return refused(format!("cursor \"{name}\" has arguments"));
        }
        self.at += 1;
        let args = self.argument_list(&name, &names)?;
        self.expect(until)?;
        Ok(args)
    }

    fn argument_list(&mut self, cursor: &str, names: &[Arc<str>]) -> Result<Vec<Arc<Site>>> {
        let mut given: Vec<Option<Arc<Site>>> = vec![None; names.len()];
        for at in 0..names.len() {
            let first = self.peek()?;
            let mut place = at;
            let sign = self.token(1);
            if may_be_name(&first) && (sign.is(":=") || sign.is("=>")) {
                self.at += 2;
                match names.iter().position(|n| **n == *first.text) {
                    Some(found) => place = found,
                    None => {
                        let text =
                            format!("cursor \"{cursor}\" has no argument named \"{}\"", first.text);
                        return Err(self.error_at(SqlState::SYNTAX_ERROR, text, first.start));
                    }
                }
            }
            if given[place].is_some() {
                let text = format!(
                    "value for parameter \"{}\" of cursor \"{cursor}\" specified more than once",
                    names[place]
                );
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, first.start));
            }
            let (start, end, found) = self.span(&[",", ")"], ",\" or \")", true)?;
            let text = self.source[start..end].to_owned();
            given[place] = Some(self.site(text, Mode::Expression, start)?);
            let last = at + 1 == names.len();
            if (found == ")") != last {
                let what = if last { "too many" } else { "not enough" };
                let text = format!("{what} arguments for cursor \"{cursor}\"");
                let at = self.last_start();
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, at));
            }
        }
        Ok(given.into_iter().flatten().collect())
    }

    /// After OPEN.
    pub(super) fn open(&mut self) -> Result<Kind> {
        let cursor = self.cursor_variable()?;
        if self.variables[cursor.index()].cursor.is_some() {
            let args = self.cursor_arguments(cursor, ";")?;
            return Ok(Kind::Open { cursor, how: Opening::Bound(args), scroll: None });
        }
        let scroll = self.scroll()?;
        let next = self.take()?;
        if !next.is_word("for") {
            return Err(self.near("syntax error, expected \"FOR\"", &next));
        }
        let query = if self.accept("execute")? {
            self.dynamic(";", "USING or ;", ", or ;")?
        } else {
            Query::Site(self.statement_text()?)
        };
        Ok(Kind::Open { cursor, how: Opening::Query(query), scroll })
    }

    /// After FETCH.
    pub(super) fn fetch(&mut self, first: &Token) -> Result<Kind> {
        let (direction, several) = self.direction()?;
        let cursor = self.cursor_variable()?;
        self.expect("into")?;
        let (into, _) = self.into_target()?;
        self.expect(";")?;
        if several {
            let text = "FETCH statement cannot return multiple rows";
            return Err(self.error_at(SqlState::FEATURE_NOT_SUPPORTED, text, first.start));
        }
        Ok(Kind::Fetch { cursor, direction, into: Some(into) })
    }

    /// After MOVE.
    pub(super) fn move_cursor(&mut self) -> Result<Kind> {
        let (direction, _) = self.direction()?;
        let cursor = self.cursor_variable()?;
        self.expect(";")?;
        Ok(Kind::Fetch { cursor, direction, into: None })
    }

    /// Where FETCH goes, with its FROM or IN; whether that may be several rows.
    fn direction(&mut self) -> Result<(Going, bool)> {
        let one = |direction| Going { direction, count: None };
        let next = self.peek()?;
        let word = if next.kind == crate::lex::Tok::Word { next.text.as_str() } else { "" };
        let plain = match word {
            "next" => Some((one(Direction::Forward(1)), false)),
            "prior" => Some((one(Direction::Backward(1)), false)),
            "first" => Some((one(Direction::Absolute(1)), false)),
            "last" => Some((one(Direction::Absolute(-1)), false)),
            "all" => Some((one(Direction::Forward(i64::MAX)), true)),
            _ => None,
        };
        if let Some(plain) = plain {
            self.at += 1;
            self.from_or_in()?;
            return Ok(plain);
        }
        match word {
            "absolute" | "relative" => {
                self.at += 1;
                let relative = word == "relative";
                let count = Some(self.expression_to(&["from", "in"], "FROM or IN")?.0);
                let direction =
                    if relative { Direction::Relative(1) } else { Direction::Absolute(1) };
                Ok((Going { direction, count }, false))
            }
            "forward" => {
                self.at += 1;
                self.so_many(Direction::Forward)
            }
            "backward" => {
                self.at += 1;
                self.so_many(Direction::Backward)
            }
            "from" | "in" => {
                self.at += 1;
                Ok((one(Direction::Forward(1)), false))
            }
            _ => {
                let (names, _, _) = self.names_from(self.at);
                if self.look_up(&names).is_some() {
                    return Ok((one(Direction::Forward(1)), false));
                }
                let count = Some(self.expression_to(&["from", "in"], "FROM or IN")?.0);
                Ok((Going { direction: Direction::Forward(1), count }, true))
            }
        }
    }

    /// After FORWARD and BACKWARD.
    fn so_many(&mut self, to: impl Fn(i64) -> Direction) -> Result<(Going, bool)> {
        if self.accept("from")? || self.accept("in")? {
            return Ok((Going { direction: to(1), count: None }, false));
        }
        if self.accept("all")? {
            self.from_or_in()?;
            return Ok((Going { direction: to(i64::MAX), count: None }, true));
        }
        let count = Some(self.expression_to(&["from", "in"], "FROM or IN")?.0);
        Ok((Going { direction: to(1), count }, true))
    }

    fn from_or_in(&mut self) -> Result<()> {
        let next = self.take()?;
        if next.is_word("from") || next.is_word("in") {
            return Ok(());
        }
        Err(self.near("expected FROM or IN", &next))
    }
}
