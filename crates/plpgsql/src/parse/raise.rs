//! RAISE.

use super::Parser;
use crate::ast::{Kind, Raise, RaiseOption};
use crate::conditions::{sqlstate, states};
use crate::host::{Level, Site};
use crate::lex::{Tok, Token};
use base::{Result, bail};
use std::sync::Arc;

impl Parser<'_> {
    /// After RAISE.
    pub(super) fn raise(&mut self) -> Result<Kind> {
        let mut raise = Raise {
            level: None,
            condition: None,
            format: None,
            params: Vec::new(),
            options: Vec::new(),
            again: false,
        };
        if self.accept(";")? {
            raise.again = true;
            return Ok(Kind::Raise(raise));
        }
        let token = self.peek()?;
        let level = match token.text.as_str() {
            _ if token.kind != Tok::Word => None,
            "exception" => Some(None),
            "warning" => Some(Some(Level::Warning)),
            "notice" => Some(Some(Level::Notice)),
            "info" => Some(Some(Level::Info)),
            "log" => Some(Some(Level::Log)),
            "debug" => Some(Some(Level::Debug)),
            _ => None,
        };
        if let Some(level) = level {
            raise.level = level;
            self.at += 1;
        }
        let token = self.take()?;
        let mut ended = token;
        if ended.kind == Tok::End {
            return Err(self.near("unexpected end of function definition", &ended));
        }
        if ended.kind == Tok::Str {
            raise.format = Some(ended.text.as_str().into());
            ended = self.take()?;
            while ended.is(",") {
                let (value, _) = self.expression_to(&[",", ";", "using"], ", or ; or USING")?;
                raise.params.push(value);
                ended = self.token_before();
            }
        } else if !ended.is_word("using") {
            raise.condition = Some(self.condition(&ended)?);
            ended = self.take()?;
        }
        if ended.is_word("using") {
            raise.options = self.raise_options()?;
        } else if !ended.is(";") {
            return Err(self.near("syntax error", &ended));
        }
        check_parameters(&raise)?;
        Ok(Kind::Raise(raise))
    }

    fn condition(&mut self, token: &Token) -> Result<Arc<str>> {
        if token.is_word("sqlstate") {
            let code = self.take()?;
            if code.kind != Tok::Str {
                return Err(self.near("syntax error", &code));
            }
            if sqlstate(&code.text).is_none() {
                return Err(self.near("invalid SQLSTATE code", &code));
            }
            return Ok(code.text.as_str().into());
        }
        if !super::may_be_name(token) {
            return Err(self.near("syntax error", token));
        }
        if states(&token.text).next().is_none() {
            return Err(self.unknown_condition(token));
        }
        Ok(token.text.as_str().into())
    }

    fn raise_options(&mut self) -> Result<Vec<(RaiseOption, Arc<Site>)>> {
        let mut options = Vec::new();
        loop {
            let name = self.take()?;
            if name.kind == Tok::End {
                return Err(self.near("unexpected end of function definition", &name));
            }
            let Some(option) = RaiseOption::named(&name.text).filter(|_| name.is_name()) else {
                return Err(self.near("unrecognized RAISE statement option", &name));
            };
            let sign = self.take()?;
            if !sign.is("=") && !sign.is(":=") {
                return Err(self.near("syntax error, expected \"=\"", &sign));
            }
            let (value, ended) = self.expression_to(&[",", ";"], ", or ;")?;
            options.push((option, value));
            if ended == ";" {
                return Ok(options);
            }
        }
    }
}

impl RaiseOption {
    fn named(name: &str) -> Option<RaiseOption> {
        const ALL: [RaiseOption; 9] = [
            RaiseOption::ErrCode,
            RaiseOption::Message,
            RaiseOption::Detail,
            RaiseOption::Hint,
            RaiseOption::Column,
            RaiseOption::Constraint,
            RaiseOption::DataType,
            RaiseOption::Table,
            RaiseOption::Schema,
        ];
        ALL.into_iter().find(|o| o.name().eq_ignore_ascii_case(name))
    }
}

/// As many values as `%` in the format.
fn check_parameters(raise: &Raise) -> Result<()> {
    let Some(format) = &raise.format else { return Ok(()) };
    let wanted = format.replace("%%", "").matches('%').count();
    if wanted < raise.params.len() {
        bail!(SYNTAX_ERROR, "too many parameters specified for RAISE");
    }
    if wanted > raise.params.len() {
        bail!(SYNTAX_ERROR, "too few parameters specified for RAISE");
    }
    Ok(())
}
