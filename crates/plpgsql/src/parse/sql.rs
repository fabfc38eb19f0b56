//! Embedded SQL: where it ends, and the INTO within it.

use super::{Parser, is};
use crate::ast::{Into, Kind, Query};
use crate::host::{Mode, Site};
use crate::lex::{Tok, Token};
use base::{Result, SqlState};
use std::rc::Rc;
use std::sync::Arc;

impl Parser<'_> {
    /// From here to one of `until` outside all parentheses, which is taken too: the first byte, the end of the last token, what it ended with.
    pub(super) fn span<'u>(
        &mut self,
        until: &[&'u str],
        expected: &str,
        expression: bool,
    ) -> Result<(usize, usize, &'u str)> {
        let start = self.peek()?.start;
        let mut end = start;
        let mut depth = 0usize;
        loop {
            let token = self.take()?;
            if depth == 0
                && let Some(found) = until.iter().find(|u| is(&token, u))
            {
                if end == start {
                    let what =
                        if expression { "missing expression" } else { "missing SQL statement" };
                    return Err(self.near(what, &token));
                }
                return Ok((start, end, found));
            }
            if token.is("(") || token.is("[") {
                depth += 1;
            } else if token.is(")") || token.is("]") {
                match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return Err(self.near("mismatched parentheses", &token)),
                }
            } else if token.kind == Tok::End || token.is(";") {
                if depth > 0 {
                    return Err(self.near("mismatched parentheses", &token));
                }
                let what = if expression { "expression" } else { "statement" };
                let text = format!("missing \"{expected}\" at end of SQL {what}");
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, token.start));
            }
            end = token.end;
        }
    }

    /// An expression up to `until`, which is taken too.
    pub(super) fn expression(&mut self, until: &str) -> Result<Arc<Site>> {
        let expected = until.to_uppercase();
        Ok(self.expression_to(&[until], &expected)?.0)
    }

    /// An expression up to one of `until`, which is taken too, and said.
    pub(super) fn expression_to<'u>(
        &mut self,
        until: &[&'u str],
        expected: &str,
    ) -> Result<(Arc<Site>, &'u str)> {
        let (start, end, found) = self.span(until, expected, true)?;
        let text = self.source[start..end].to_owned();
        Ok((self.site(text, Mode::Expression, start)?, found))
    }

    /// A statement up to the semicolon, which is taken too.
    pub(super) fn statement_text(&mut self) -> Result<Arc<Site>> {
        let (start, end, _) = self.span(&[";"], ";", false)?;
        self.site(self.source[start..end].to_owned(), Mode::Statement, start)
    }

    /// `text [USING a, b]` up to `end`, after EXECUTE.
    pub(super) fn dynamic(&mut self, end: &str, expected: &str, between: &str) -> Result<Query> {
        let (text, mut found) = self.expression_to(&[end, "using"], expected)?;
        let mut using = Vec::new();
        if found == "using" {
            loop {
                let (value, ended) = self.expression_to(&[",", end], between)?;
                using.push(value);
                found = ended;
                if found != "," {
                    break;
                }
            }
        }
        Ok(Query::Dynamic { text, using })
    }

    /// `PERFORM …`: as if it were SELECT.
    pub(super) fn perform(&mut self, keyword: &Token) -> Result<Kind> {
        self.at -= 1;
        let (start, end, _) = self.span(&[";"], ";", false)?;
        debug_assert_eq!(start, keyword.start);
        let text = format!("SELECT{}", &self.source[keyword.end..end]);
        Ok(Kind::Perform(self.site(text, Mode::Statement, start + 1)?))
    }

    /// `EXECUTE text [INTO …] [USING …];`
    pub(super) fn execute(&mut self) -> Result<Kind> {
        let (text, mut found) =
            self.expression_to(&["into", "using", ";"], "INTO or USING or ;")?;
        let (mut into, mut strict, mut using) = (None, false, Vec::new());
        loop {
            let token = self.token_before();
            match found {
                "into" if into.is_none() => {
                    let (target, is_strict) = self.into_target()?;
                    (into, strict) = (Some(target), is_strict);
                    let next = self.take()?;
                    let known = ["using", "into", ";"].into_iter().find(|w| is(&next, w));
                    found = match known {
                        Some(word) => word,
                        None => return Err(self.syntax(&next)),
                    };
                }
                "using" if using.is_empty() => loop {
                    let (value, ended) =
                        self.expression_to(&[",", ";", "into"], ", or ; or INTO")?;
                    using.push(value);
                    found = ended;
                    if found != "," {
                        break;
                    }
                },
                ";" => return Ok(Kind::Execute { text, into, strict, using }),
                _ => return Err(self.near("syntax error", &token)),
            }
        }
    }

    pub(super) fn token_before(&self) -> Rc<Token> {
        Rc::clone(&self.tokens[self.at.saturating_sub(1)])
    }

    /// A statement of SQL, whose first word is next.
    pub(super) fn sql_statement(&mut self) -> Result<Kind> {
        let first = self.peek()?;
        let mut words: Vec<String> = Vec::new();
        let (mut depth, mut begins) = (0usize, 0usize);
        let mut routine = false;
        let mut before: Option<Rc<Token>> = None;
        let mut into: Option<(Into, bool, usize, usize)> = None;
        let end = loop {
            let token = self.take()?;
            if words.len() < 4 && token.kind == Tok::Word {
                words.push(token.text.clone());
                routine |= creates_routine(&words);
            }
            if token.is("(") {
                depth += 1;
            } else if token.is(")") {
                depth = depth.saturating_sub(1);
            }
            if routine && depth == 0 {
                // Bodies written in SQL have semicolons of their own.
                if token.is_word("begin") || (begins > 0 && token.is_word("case")) {
                    begins += 1;
                } else if begins > 0 && token.is_word("end") {
                    begins -= 1;
                }
            }
            if token.is(";") && depth == 0 && begins == 0 {
                break token;
            }
            if token.kind == Tok::End {
                return Err(self.near("unexpected end of function definition", &token));
            }
            let is_into = token.is_word("into")
                && !before.as_ref().is_some_and(|b| b.is_word("insert") || b.is_word("merge"))
                && !first.is_word("import");
            if is_into {
                if into.is_some() {
                    return Err(self.near("INTO specified more than once", &token));
                }
                let (target, strict) = self.into_target()?;
                into = Some((target, strict, token.start, self.peek()?.start));
            }
            before = Some(token);
        };
        let (text, into, strict) = match into {
            None => (self.source[first.start..end.start].to_owned(), None, false),
            Some((target, strict, from, to)) => {
                // Blanks in its place keep positions as they are.
                let blanks = self.source[from..to].chars().count();
                let text = format!(
                    "{}{:blanks$}{}",
                    &self.source[first.start..from],
                    "",
                    &self.source[to..end.start]
                );
                (text, Some(target), strict)
            }
        };
        let text = text.trim_end_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).to_owned();
        let site = self.site(text, Mode::Statement, first.start)?;
        Ok(Kind::Sql { site, into, strict })
    }
}

/// CREATE [OR REPLACE] FUNCTION or PROCEDURE
fn creates_routine(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(
        words[..],
        ["create", "function" | "procedure"]
            | ["create", "or", "replace", "function" | "procedure"]
    )
}
