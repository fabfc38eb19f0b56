//! OPEN, FETCH, MOVE, CLOSE.

use super::Run;
use crate::ast::{Going, Into, Opening};
use crate::frame::INT4;
use crate::host::{Direction, OpenCursor, Site, Source, Want};
use crate::names::VarId;
use base::{Result, bail};
use std::sync::Arc;
use types::Datum;

impl Run<'_> {
    /// What a cursor variable holds; None: NULL.
    pub(super) fn cursor_name(&self, cursor: VarId) -> Option<String> {
        match self.frame.scalar(cursor) {
            Some(Datum::Text(name)) => Some(name.to_string()),
            _ => None,
        }
    }

    fn open_name(&self, cursor: VarId) -> Result<String> {
        match self.cursor_name(cursor) {
            Some(name) => Ok(name),
            None => {
                let name = &self.frame.variable(cursor).name;
                bail!(NULL_VALUE_NOT_ALLOWED, "cursor variable \"{name}\" is null")
            }
        }
    }

    /// Opens a bound cursor, its arguments in their variables.
    pub(super) fn open_bound(
        &mut self,
        cursor: VarId,
        args: &[Arc<Site>],
        in_loop: bool,
    ) -> Result<String> {
        let Some(bound) = self.frame.variable(cursor).cursor.clone() else {
            bail!(INTERNAL_ERROR, "cursor has no query");
        };
        let name = self.cursor_name(cursor);
        let values = self.values(args)?;
        for (id, value) in bound.args.iter().zip(values) {
            self.assign(*id, value)?;
        }
        let open = OpenCursor {
            name: name.as_deref(),
            source: Source::Site(&bound.query),
            scroll: bound.scroll,
            in_loop,
            positioned: true,
        };
        self.host.open(open, self.frame)
    }

    pub(super) fn open(
        &mut self,
        cursor: VarId,
        how: &Opening,
        scroll: Option<bool>,
    ) -> Result<()> {
        let given = self.cursor_name(cursor);
        let name = match how {
            Opening::Bound(args) => self.open_bound(cursor, args, false)?,
            Opening::Query(query) => self.open_query(query, given.as_deref(), scroll, false)?,
        };
        if given.is_none() {
            self.frame.set(cursor, Datum::text(&name));
        }
        Ok(())
    }

    pub(super) fn fetch(
        &mut self,
        cursor: VarId,
        going: &Going,
        into: Option<&Into>,
    ) -> Result<()> {
        let name = self.open_name(cursor)?;
        let mut direction = going.direction;
        if let Some(count) = &going.count {
            let value = self.evaluate(count)?;
            let Datum::Int4(n) = self.cast(value, INT4)? else {
                bail!(NULL_VALUE_NOT_ALLOWED, "relative or absolute cursor position is null");
            };
            let n = i64::from(n);
            direction = match direction {
                Direction::Forward(_) => Direction::Forward(n),
                Direction::Backward(_) => Direction::Backward(n),
                Direction::Absolute(_) => Direction::Absolute(n),
                Direction::Relative(_) => Direction::Relative(n),
            };
        }
        let want = if into.is_some() { Want::All } else { Want::Count };
        let outcome = self.host.fetch(&name, direction, want)?;
        if let Some(into) = into {
            let columns = outcome.columns.unwrap_or_else(|| Arc::new([]));
            self.row_into(into, &columns, outcome.rows.into_iter().next())?;
        }
        self.processed = outcome.processed;
        self.frame.set_found(outcome.processed > 0);
        Ok(())
    }

    pub(super) fn close(&mut self, cursor: VarId) -> Result<()> {
        let name = self.open_name(cursor)?;
        self.host.close(&name, false)
    }
}
