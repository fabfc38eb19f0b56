//! Blocks: declarations, subtransactions, handlers.

use super::{Flow, Run};
use crate::ast::{Block, Handlers};
use crate::frame::At;
use base::{Error, Result, SqlState};
use std::sync::Arc;
use types::Datum;

impl Run<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Result<Flow> {
        let at = self.frame.at;
        for id in &block.variables {
            let variable = self.frame.variable(*id);
            let default = variable.default.clone();
            self.frame.at =
                At::Doing(variable.line, "during statement block local variable initialization");
            match default {
                None => self.begin_null(*id)?,
                Some(site) => {
                    let value = self.evaluate(&site)?;
                    self.assign(*id, value)?;
                }
            }
        }
        self.frame.at = at;
        let flow = match &block.handlers {
            None => self.statements(&block.body)?,
            Some(handlers) => self.guarded(block, handlers)?,
        };
        match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Ok(Flow::Next),
            flow => Ok(flow),
        }
    }

    /// A block's statements in a subtransaction, and a handler if they fail.
    fn guarded(&mut self, block: &Block, handlers: &Handlers) -> Result<Flow> {
        let at = self.frame.at;
        self.frame.at = At::Doing(block.line, "during statement block entry");
        self.host.begin_subtransaction()?;
        self.frame.at = at;
        let flow = self.statements(&block.body).and_then(|flow| {
            self.frame.at = At::Doing(block.line, "during statement block exit");
            self.host.release_subtransaction()?;
            self.frame.at = at;
            Ok(flow)
        });
        match flow {
            Ok(flow) => Ok(flow),
            Err(error) => self.caught(error, block, handlers, at),
        }
    }

    /// The error has all its lines from here on.
    fn caught(&mut self, error: Error, block: &Block, handlers: &Handlers, at: At) -> Result<Flow> {
        let error = if std::mem::take(&mut self.complete) {
            error
        } else {
            error.within(self.frame.context())
        };
        self.frame.at = At::Doing(block.line, "during exception cleanup");
        self.host.roll_back_subtransaction()?;
        self.frame.at = at;
        let state = error.state();
        let found = handlers.handlers.iter().find(|h| h.conditions.matches(state));
        let (Some(handler), false) = (found, ends_session(state)) else {
            self.complete = true;
            return Err(error);
        };
        let error = Arc::new(error.to_sql_error());
        self.frame.set(handlers.sqlstate, Datum::text(error.state.as_str()));
        self.frame.set(handlers.sqlerrm, Datum::text(&error.message));
        let outer = self.handling.replace(error);
        let flow = self.statements(&handler.body);
        self.handling = outer;
        if flow.is_ok() {
            self.frame.set(handlers.sqlstate, Datum::Null);
            self.frame.set(handlers.sqlerrm, Datum::Null);
        }
        flow
    }
}

/// Is it an error that ends the session, which nobody handles?
fn ends_session(state: SqlState) -> bool {
    matches!(
        state,
        SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::DATABASE_DROPPED
            | SqlState::IDLE_SESSION_TIMEOUT
            | SqlState::TRANSACTION_TIMEOUT
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    )
}
