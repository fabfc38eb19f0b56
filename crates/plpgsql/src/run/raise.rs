//! RAISE and ASSERT.

use super::{ASSERT_FAILURE, Run};
use crate::ast::{Raise, RaiseOption};
use crate::conditions::{sqlstate, states};
use crate::host::{Level, Site};
use base::{Error, Result, SqlError, SqlState, bail, err};
use std::sync::Arc;

/// `P0001`
const RAISED: SqlState = SqlState(*b"P0001");
/// `0Z002`
pub(super) const NO_HANDLER: SqlState = SqlState(*b"0Z002");

impl Run<'_> {
    pub(super) fn raise(&mut self, raise: &Raise) -> Result<()> {
        if raise.again {
            return Err(self.raised_again());
        }
        let mut state = None;
        let mut condition = raise.condition.as_deref().map(str::to_owned);
        if let Some(name) = &condition {
            state = Some(state_of(name)?);
        }
        let mut message = match &raise.format {
            Some(format) => Some(self.formatted(format, &raise.params)?),
            None => None,
        };
        let mut error = SqlError::new(RAISED, "");
        for (option, site) in &raise.options {
            let value = self.evaluate(site)?;
            let Some(text) = self.text_of(&value)? else {
                bail!(NULL_VALUE_NOT_ALLOWED, "RAISE statement option cannot be null");
            };
            if *option == RaiseOption::ErrCode {
                if state.is_some() {
                    return Err(twice(*option));
                }
                state = Some(state_of(&text)?);
                condition = Some(text);
                continue;
            }
            let place = match option {
                RaiseOption::Message | RaiseOption::ErrCode => &mut message,
                RaiseOption::Detail => &mut error.detail,
                RaiseOption::Hint => &mut error.hint,
                RaiseOption::Column => &mut error.column,
                RaiseOption::Constraint => &mut error.constraint,
                RaiseOption::DataType => &mut error.data_type,
                RaiseOption::Table => &mut error.table,
                RaiseOption::Schema => &mut error.schema,
            };
            if place.replace(text).is_some() {
                return Err(twice(*option));
            }
        }
        let plain = match raise.level {
            None => RAISED,
            Some(Level::Warning) => SqlState::WARNING,
            Some(_) => SqlState::SUCCESSFUL_COMPLETION,
        };
        error.state = state.unwrap_or(plain);
        error.message = message.or(condition).unwrap_or_else(|| error.state.as_str().to_owned());
        match raise.level {
            None => Err(error.into()),
            Some(level) => {
                let mut context = self.frame.context();
                if let Some(outer) = self.host.outer_context() {
                    context = format!("{context}\n{outer}");
                }
                error.context = Some(context);
                self.host.report(level, error)
            }
        }
    }

    fn raised_again(&mut self) -> Error {
        match &self.handling {
            Some(error) => {
                self.complete = true;
                Error::Sql(Box::new((**error).clone()))
            }
            None => Error::sql(
                NO_HANDLER,
                "RAISE without parameters cannot be used outside an exception handler",
            ),
        }
    }

    /// The format with the values in place of each `%`; `%%` is one.
    fn formatted(&mut self, format: &str, params: &[Arc<Site>]) -> Result<String> {
        let mut params = params.iter();
        let mut text = String::with_capacity(format.len());
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let Some(site) = params.next() else {
                bail!(INTERNAL_ERROR, "unexpected RAISE parameter list length");
            };
            let value = self.evaluate(site)?;
            match self.text_of(&value)? {
                Some(value) => text.push_str(&value),
                None => text.push_str("<NULL>"),
            }
        }
        text.push_str(rest);
        Ok(text)
    }

    pub(super) fn assert(&mut self, condition: &Site, message: Option<&Site>) -> Result<()> {
        if !self.frame.routine().check_asserts || self.is_true(condition)? {
            return Ok(());
        }
        let mut text = None;
        if let Some(message) = message {
            let value = self.evaluate(message)?;
            text = self.text_of(&value)?;
        }
        Err(Error::sql(ASSERT_FAILURE, text.unwrap_or_else(|| "assertion failed".to_owned())))
    }
}

/// A SQLSTATE by itself or by a condition's name.
fn state_of(text: &str) -> Result<SqlState> {
    match sqlstate(text).or_else(|| states(text).next()) {
        Some(state) => Ok(state),
        None => bail!(UNDEFINED_OBJECT, "unrecognized exception condition \"{text}\""),
    }
}

fn twice(option: RaiseOption) -> Error {
    err!(SYNTAX_ERROR, "RAISE option already specified: {}", option.name())
}
