//! Cursors of a block: portals of its session.

use super::errors;
use super::host::BlockHost;
use super::run::Described;
use super::sites::Purpose;
use crate::parse::utility::FetchDirection;
use crate::session::Prepared;
use crate::session::within::Opening;
use base::{Result, SqlState, bail};
use plpgsql::{Command, Direction, Frame, OpenCursor, Outcome, Source, Want};
use std::collections::HashMap;
use std::rc::Rc;
use types::Datum;

/// What the columns of cursors are.
pub(super) type CursorColumns = HashMap<String, Described>;

/// So many cursors' columns are known; of more they are described anew.
const MOST_DESCRIBED: usize = 64;

fn direction_of(direction: Direction) -> FetchDirection {
    match direction {
        Direction::Forward(i64::MAX) => FetchDirection::ForwardAll,
        Direction::Forward(n) => FetchDirection::Forward(n),
        Direction::Backward(i64::MAX) => FetchDirection::BackwardAll,
        Direction::Backward(n) => FetchDirection::Backward(n),
        Direction::Absolute(n) => FetchDirection::Absolute(n),
        Direction::Relative(n) => FetchDirection::Relative(n),
    }
}

/// An error that the text itself is not to be named with.
fn is_of_opening(error: &base::Error) -> bool {
    matches!(error.state(), SqlState::INVALID_CURSOR_DEFINITION | SqlState::DUPLICATE_CURSOR)
}

impl BlockHost<'_> {
    pub(super) fn open_cursor(&mut self, cursor: OpenCursor<'_>, frame: &Frame) -> Result<String> {
        if let Some(name) = cursor.name
            && self.session.has_portal(name)
        {
            bail!(DUPLICATE_CURSOR, "cursor \"{name}\" already in use");
        }
        let located = |error| match is_of_opening(&error) {
            true => error,
            false => errors::within(cursor.source, error),
        };
        let (prepared, params) = match cursor.source {
            Source::Site(site) => {
                let kept = self.kept(site, frame, Purpose::Statement)?;
                let found = (kept.statement()?, kept.params.clone());
                self.sites.put(site, kept);
                found
            }
            Source::Text { text, using } => {
                let (mut statements, _) =
                    self.parse_text(cursor.source, frame, text).map_err(located)?;
                let Some(parsed) = statements.pop().filter(|_| statements.is_empty()) else {
                    bail!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor");
                };
                let prepared = self.prepare_text(parsed, using).map_err(located)?;
                (prepared, using.iter().map(|v| v.value.clone()).collect())
            }
        };
        super::run::command_of(&prepared, matches!(cursor.source, Source::Text { .. }))?;
        self.open_portal(cursor, frame, &prepared, &params).map_err(located)
    }

    fn open_portal(
        &mut self,
        cursor: OpenCursor<'_>,
        frame: &Frame,
        prepared: &Rc<Prepared>,
        params: &[Datum],
    ) -> Result<String> {
        let opening = Opening {
            scroll: cursor.scroll,
            of_loop: cursor.in_loop,
            positioned: cursor.positioned,
        };
        let (session, mut client) = self.parts(cursor.source, frame);
        session.open_inner(cursor.name, prepared, params, opening, &mut client)
    }

    pub(super) fn fetch_rows(
        &mut self,
        name: &str,
        direction: Direction,
        want: Want,
    ) -> Result<Outcome> {
        let described = self.session.portal_columns(name);
        let mut rows = Vec::new();
        let mut take = |_: &[crate::client::OutputColumn], row: &[Datum]| {
            if want != Want::Count {
                rows.push(row.to_vec());
            }
            Ok(())
        };
        let processed = match direction {
            Direction::Forward(n) if self.session.is_of_query_loop(name) => {
                let limit = usize::try_from(n).unwrap_or(usize::MAX);
                self.session.next_of_loop(name, limit, &mut take)? as u64
            }
            _ => {
                let to = direction_of(direction);
                self.session.fetch_inner(name, to, want == Want::Count, &mut take)?
            }
        };
        let columns = match self.cursors.get_mut(name) {
            Some(known) => known.columns(described.as_ref()),
            None => {
                if self.cursors.len() >= MOST_DESCRIBED {
                    self.cursors.clear();
                }
                let mut known = Described::default();
                let columns = known.columns(described.as_ref());
                self.cursors.insert(name.to_owned(), known);
                columns
            }
        };
        Ok(Outcome { command: Command::Select, processed, columns, rows })
    }

    pub(super) fn close_cursor(&mut self, name: &str, in_loop: bool) -> Result<()> {
        self.cursors.remove(name);
        if !self.session.has_portal(name) {
            if in_loop {
                return Ok(());
            }
            bail!(INVALID_CURSOR_NAME, "cursor \"{name}\" does not exist");
        }
        if !in_loop && self.session.is_of_loop(name) {
            bail!(INVALID_CURSOR_STATE, "cannot drop pinned portal \"{name}\"");
        }
        self.session.close_inner(name);
        Ok(())
    }
}
