//! The interpreter.
//!
//! # Purpose
//! It walks the tree statement by statement. [`Frame::at`] always says where it is, so that whoever needs a context line (an error, a notice, PG_CONTEXT)
//! finds it there.
//!
//! # Layout
//! Here the statements and what they come to ([`Flow`]); [`assign`] has values and their places, [`blocks`] blocks with handlers, [`loops`], [`sql`],
//! [`cursors`], [`raise`] and [`diagnostics`] what their names say.
//!
//! # Invariants
//! `at` is set where a statement begins and stays when it fails: the line is added once, by the block that catches the error or by [`run`]. An error
//! that is raised again has its line already ([`Run::complete`]).

mod assign;
mod blocks;
mod cursors;
mod diagnostics;
mod loops;
mod raise;
mod sql;

use crate::ast::{IfArm, Kind, Routine, Statement};
use crate::frame::{At, BOOLEAN, Frame};
use crate::host::{Host, Site, Value};
use base::{Result, SqlError, SqlState};
use std::sync::Arc;
use types::Datum;

/// `P0004`: a failed ASSERT, which OTHERS does not catch.
pub(crate) const ASSERT_FAILURE: SqlState = SqlState(*b"P0004");

/// How a routine ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// RETURN with a value (not cast yet).
    Returned(Value),
    /// RETURN alone.
    Return,
    /// It came to its end.
    FellOff,
}

/// Runs a routine.
///
/// # Errors
/// Whatever its body and its statements say, with context lines.
pub fn run(frame: &mut Frame, host: &mut dyn Host) -> Result<Ended> {
    let routine = Arc::clone(frame.routine());
    frame.at = At::Nowhere;
    let mut run =
        Run { frame, host, processed: 0, handling: None, complete: false, returned: None };
    let flow = run.routine(&routine);
    let complete = run.complete;
    match flow {
        Ok(Flow::Return) => Ok(run.returned.take().map_or(Ended::Return, Ended::Returned)),
        Ok(_) => Ok(Ended::FellOff),
        Err(error) if complete => Err(error),
        Err(error) => Err(error.within(frame.context())),
    }
}

/// What a statement came to.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Flow {
    /// On with the next.
    Next,
    /// Out of the block or loop of that label, or the innermost loop.
    Exit(Option<Arc<str>>),
    /// On with the next turn of that loop.
    Continue(Option<Arc<str>>),
    /// Out of the routine.
    Return,
}

struct Run<'a> {
    frame: &'a mut Frame,
    host: &'a mut dyn Host,
    /// ROW_COUNT
    processed: u64,
    /// The error that a handler handles.
    handling: Option<Arc<SqlError>>,
    /// Does the error that is under way have the routine's line?
    complete: bool,
    returned: Option<Value>,
}

impl Run<'_> {
    fn routine(&mut self, routine: &Routine) -> Result<Flow> {
        self.frame.at = At::Statement(routine.body.line, "statement block");
        self.block(&routine.body)
    }

    fn statements(&mut self, all: &[Statement]) -> Result<Flow> {
        if all.is_empty() {
            self.host.check_interrupts()?;
            return Ok(Flow::Next);
        }
        let before = self.frame.at;
        for statement in all {
            self.frame.at = At::Statement(statement.line, statement.name);
            self.host.check_interrupts()?;
            let flow = self.statement(&statement.kind)?;
            if !matches!(flow, Flow::Next) {
                self.frame.at = before;
                return Ok(flow);
            }
        }
        self.frame.at = before;
        Ok(Flow::Next)
    }

    fn statement(&mut self, kind: &Kind) -> Result<Flow> {
        match kind {
            Kind::Assign { target, value } => self.assignment(target, value)?,
            Kind::If { arms, otherwise } => return self.if_statement(arms, otherwise),
            Kind::Block(block) => return self.block(block),
            Kind::Case { .. } => return self.case(kind),
            Kind::Loop(run) => return self.endless(run),
            Kind::While(condition, run) => return self.while_loop(condition, run),
            Kind::ForInteger { .. } => return self.for_integer(kind),
            Kind::ForQuery { into, query, run } => return self.for_query(into, query, run),
            Kind::ForCursor { record, cursor, args, run } => {
                return self.for_cursor(*record, *cursor, args, run);
            }
            Kind::ForEach { into, slice, array, run } => {
                return self.for_each(into, *slice, array, run);
            }
            Kind::Exit { next, label, when } => {
                if let Some(when) = when
                    && !self.is_true(when)?
                {
                    return Ok(Flow::Next);
                }
                let label = label.clone();
                return Ok(if *next { Flow::Continue(label) } else { Flow::Exit(label) });
            }
            Kind::Return(value) => {
                if let Some(value) = value {
                    self.returned = Some(self.evaluate(value)?);
                }
                return Ok(Flow::Return);
            }
            _ => self.simple(kind)?,
        }
        Ok(Flow::Next)
    }

    /// A statement after which the next follows.
    fn simple(&mut self, kind: &Kind) -> Result<()> {
        match kind {
            Kind::Sql { site, into, strict } => self.sql(site, into.as_ref(), *strict),
            Kind::Perform(site) => self.perform(site),
            Kind::Call(site, _) => self.call(site),
            Kind::Execute { .. } => self.execute(kind),
            Kind::Raise(raise) => self.raise(raise),
            Kind::Assert { condition, message } => self.assert(condition, message.as_deref()),
            Kind::Get { stacked, items } => self.diagnostics(*stacked, items),
            Kind::Open { cursor, how, scroll } => self.open(*cursor, how, *scroll),
            Kind::Fetch { cursor, direction, into } => {
                self.fetch(*cursor, direction, into.as_ref())
            }
            Kind::Close(cursor) => self.close(*cursor),
            Kind::Commit { chain } => self.host.commit(*chain),
            Kind::Rollback { chain } => self.host.roll_back(*chain),
            Kind::ReturnNext(value) => self.return_next(value.as_deref()),
            Kind::ReturnQuery(query) => self.return_query(query),
            _ => base::bail!(INTERNAL_ERROR, "no such statement"),
        }
    }

    fn evaluate(&mut self, site: &Site) -> Result<Value> {
        self.host.evaluate(site, self.frame)
    }

    /// Is it true (not NULL)?
    fn is_true(&mut self, site: &Site) -> Result<bool> {
        let Value { value, ty } = self.host.evaluate(site, self.frame)?;
        match value {
            Datum::Bool(is) => Ok(is),
            Datum::Null => Ok(false),
            other => Ok(matches!(self.host.cast(other, ty, BOOLEAN)?, Datum::Bool(true))),
        }
    }

    fn if_statement(&mut self, arms: &[IfArm], otherwise: &[Statement]) -> Result<Flow> {
        for arm in arms {
            if self.is_true(&arm.condition)? {
                return self.statements(&arm.body);
            }
        }
        self.statements(otherwise)
    }

    fn case(&mut self, kind: &Kind) -> Result<Flow> {
        let Kind::Case { subject, arms, otherwise } = kind else { return Ok(Flow::Next) };
        if let Some((site, id)) = subject {
            let Value { value, ty } = self.evaluate(site)?;
            self.frame.set_typed(*id, value, ty);
        }
        for arm in arms {
            if self.is_true(&arm.condition)? {
                if let Some((_, id)) = subject {
                    self.frame.set(*id, Datum::Null);
                }
                return self.statements(&arm.body);
            }
        }
        if let Some((_, id)) = subject {
            self.frame.set(*id, Datum::Null);
        }
        match otherwise {
            Some(body) => self.statements(body),
            None => Err(SqlError::new(SqlState(*b"20000"), "case not found")
                .hint("CASE statement is missing ELSE part.")
                .into()),
        }
    }

    /// A value as text; None: NULL.
    fn text_of(&mut self, value: &Value) -> Result<Option<String>> {
        match &value.value {
            Datum::Null => Ok(None),
            Datum::Text(text) if value.ty.oid == types::oids::TEXT => Ok(Some(text.to_string())),
            other => self.host.text(other, value.ty).map(Some),
        }
    }
}
