//! Statements that run within another one: those of a procedure.
//!
//! # Invariants
//! - Each sees what those before it have done, and has a snapshot of its own; what it leaves for its end (foreign keys, keys that are
//!   looked at later) is done when it ends, within the statement around it.
//! - Between two of them nothing of the session is lent out: each may end the transaction, if that is allowed at all.
//! - Portals that a loop reads stay over the end of a transaction: what they have not given yet is kept before it ends.
//!
//! # Differs from PostgreSQL
//! A portal's rows are kept from the first one on, so that it may be read backwards whatever its plan is.

use super::cursor;
use super::portal::{KeptRows, MadeRows, PortalState};
use super::prepared::Prepared;
use super::simple::send_notices;
use super::{Portal, Session};
use crate::analyse::ParamTypes;
use crate::client::{Client, OutputColumn};
use crate::parse::Parsed;
use crate::parse::utility::{Fetch, FetchDirection, UtilityStatement as U};
use crate::procedure::Body;
use base::{Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use std::rc::Rc;
use types::Datum;

/// So many procedures may be within each other: each takes of the thread's stack.
const DEEPEST: usize = 32;

/// What a statement came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// How many rows it returned or changed.
    pub rows: u64,
    /// The columns of its rows, if it returns any.
    pub columns: Option<Rc<Vec<OutputColumn>>>,
}

/// Takes a row, with its columns.
pub(crate) type RowSink<'a> = dyn FnMut(&[OutputColumn], &[Datum]) -> Result<()> + 'a;

/// How a portal is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// SCROLL or NO SCROLL, if either was said.
    pub scroll: Option<bool>,
    /// A loop reads it: it is in nobody's way, and outlives the transaction's end.
    pub of_loop: bool,
    /// It is a cursor by name: WHERE CURRENT OF may ask where it stands.
    pub positioned: bool,
}

impl Session {
    /// DO: runs a block of a procedural language.
    pub(super) fn do_block(
        &mut self,
        language: Option<&str>,
        body: Body<'_>,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.check_inline_language(language.unwrap_or("plpgsql"))?;
        if self.procedures >= DEEPEST {
            bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
        }
        self.settle_snapshot()?;
        let (atomic, depth) = (self.goes_on(), self.savepoints.len());
        self.procedures += 1;
        let done = crate::procedure::run_block(self, body, atomic, client);
        self.procedures -= 1;
        if done.is_err() && self.state.txn_opt().is_some() {
            // What the block had open is undone, whatever becomes of the statement.
            self.undo_nested(depth.min(self.savepoints.len()))?;
        }
        if self.procedures == 0 {
            self.end_loops();
        }
        done
    }

    fn check_inline_language(&self, language: &str) -> Result<()> {
        if language == "plpgsql" {
            return Ok(());
        }
        let key = [("lanname", Datum::text(language))];
        let txn = self.state.txn()?;
        if self.state.catalog.rows(&txn).find("pg_language", &key)?.is_empty() {
            bail!(UNDEFINED_OBJECT, "language \"{language}\" does not exist");
        }
        bail!(
            FEATURE_NOT_SUPPORTED,
            "language \"{language}\" does not support inline code execution"
        );
    }

    /// Takes in what functions of the statement before have set.
    pub(crate) fn catch_up(&mut self) {
        self.renew_env_if_set();
    }

    /// What `make` makes, and whether nobody has asked for the time meanwhile.
    pub(crate) fn is_timeless<T>(&mut self, make: impl FnOnce(&mut Session) -> T) -> (T, bool) {
        let before = self.state.clock_read.replace(false);
        let made = make(self);
        let read = self.state.clock_read.replace(before);
        (made, !read)
    }

    /// Analyses a statement that is to run within this one.
    pub(crate) fn prepare_inner(
        &mut self,
        parsed: Parsed,
        params: ParamTypes,
    ) -> Result<Rc<Prepared>> {
        self.catch_up();
        if super::prepared::query_within(&parsed.statement).is_some() {
            self.settle_snapshot()?;
        }
        self.prepare(parsed, params).map(Rc::new)
    }

    /// Starts a portal; `is_cursor`: WHERE CURRENT OF may ask where it stands.
    fn start_inner(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        is_cursor: bool,
    ) -> Result<Portal> {
        let mut portal =
            Portal::new(Rc::clone(prepared), params.to_vec(), prepared.columns.clone());
        portal.is_cursor = is_cursor;
        self.start_portal(&mut portal)?;
        Ok(portal)
    }

    /// Runs a statement, of whose rows the first `limit` (0: all) go to `sink`.
    pub(crate) fn run_inner(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        limit: usize,
        client: &mut dyn Client,
        sink: &mut RowSink<'_>,
    ) -> Result<Outcome> {
        self.catch_up();
        if prepared.utility().is_some() {
            return self.run_inner_utility(prepared, params, limit, client, sink);
        }
        let mut portal = self.start_inner(prepared, params, false)?;
        let columns = portal.columns.clone();
        let of_rows = columns.as_deref().map_or(&[][..], Vec::as_slice);
        let PortalState::Running(mut execution) =
            std::mem::replace(&mut portal.state, PortalState::Done)
        else {
            return Ok(Outcome::default());
        };
        let writes = execution.writes();
        let mut taken = 0;
        // What writes, writes all.
        execution.run(if writes { 0 } else { limit }, &mut |row: &[Datum]| {
            taken += 1;
            if limit == 0 || taken <= limit { sink(of_rows, row) } else { Ok(()) }
        })?;
        let rows = execution.processed();
        execution.finish(&portal.prepared)?;
        send_notices(&self.state, client)?;
        self.next_command()?;
        Ok(Outcome { rows, columns })
    }

    fn run_inner_utility(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        limit: usize,
        client: &mut dyn Client,
        sink: &mut RowSink<'_>,
    ) -> Result<Outcome> {
        let (columns, rows, mut given) = self.inner_utility(prepared, params, client)?;
        let mut taken = 0;
        if let (Some(columns), Some(given)) = (&columns, &mut given) {
            while (limit == 0 || taken < limit) && given.next(|row| sink(columns, row))? {
                taken += 1;
            }
        }
        self.next_command()?;
        Ok(Outcome { rows: rows.max(taken as u64), columns })
    }

    /// Carries out a utility statement: the columns of its rows, how many its tag tells of, and the rows.
    fn inner_utility(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<(Option<Rc<Vec<OutputColumn>>>, u64, Option<MadeRows>)> {
        let Some(utility) = prepared.utility() else {
            bail!(INTERNAL_ERROR, "a query is no utility statement");
        };
        let done = self.utility(utility, prepared, params, client)?;
        send_notices(&self.state, client)?;
        let rows = match utility {
            U::CreateTableAs(_) | U::Copy(_) => super::counting::rows_of(&done.tag),
            _ => 0,
        };
        Ok(match done.rows {
            Some((columns, given)) => (Some(columns), rows, Some(given)),
            None => (None, rows, None),
        })
    }

    /// Opens a portal of a statement: under `name`, or one that is nobody's yet.
    pub(crate) fn open_inner(
        &mut self,
        name: Option<&str>,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        opening: Opening,
        client: &mut dyn Client,
    ) -> Result<String> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.next_portal_name(),
        };
        if self.portals.contains_key(&name) {
            bail!(DUPLICATE_CURSOR, "cursor \"{name}\" already exists");
        }
        let locks = prepared.locks_rows();
        if opening.scroll == Some(true)
            && let Some(strength) = locks
        {
            let text = format!("DECLARE SCROLL CURSOR ... {strength} is not supported");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
                .detail("Scrollable cursors must be READ ONLY.")
                .into());
        }
        let mut portal = self.inner_portal(prepared, params, opening, client)?;
        portal.depth = self.savepoints.len();
        portal.scroll = opening.scroll != Some(false) && locks.is_none();
        portal.of_loop = opening.of_loop;
        send_notices(&self.state, client)?;
        portal.list(&self.state.cursors, &name);
        self.portals.insert(name.clone(), portal);
        self.next_command()?;
        Ok(name)
    }

    fn next_portal_name(&mut self) -> String {
        loop {
            self.unnamed_portals += 1;
            let name = format!("<unnamed portal {}>", self.unnamed_portals);
            if !self.portals.contains_key(&name) {
                return name;
            }
        }
    }

    fn inner_portal(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        opening: Opening,
        client: &mut dyn Client,
    ) -> Result<Portal> {
        if prepared.utility().is_some() {
            return self.portal_of_utility(prepared, params, client);
        }
        if prepared.columns.is_none() {
            let what = super::run::tag_of(prepared, 0);
            let what = what.split(' ').next().unwrap_or_default().to_owned();
            bail!(INVALID_CURSOR_DEFINITION, "cannot open {what} query as cursor");
        }
        let mut portal = self.start_inner(prepared, params, opening.positioned)?;
        let writes = matches!(&portal.state, PortalState::Running(e) if e.writes());
        if !opening.of_loop || opening.positioned || writes {
            portal.kept = Some(KeptRows::default());
        }
        Ok(portal)
    }

    /// One whose rows are there from the beginning.
    fn portal_of_utility(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<Portal> {
        let (columns, _, given) = self.inner_utility(prepared, params, client)?;
        let (Some(columns), Some(mut given)) = (columns, given) else {
            let what = prepared.utility().map(super::command_name::command_name);
            let what = what.unwrap_or_default();
            bail!(INVALID_CURSOR_DEFINITION, "cannot open {what} query as cursor");
        };
        let bound = super::run::work_mem_bytes(&self.state);
        let kept = KeptRows { complete: true, ..KeptRows::default() };
        while given.next(|row| kept.rows.borrow_mut().push(&mut row.to_vec(), bound))? {}
        kept.rows.borrow_mut().settle()?;
        let mut portal = Portal::new(Rc::clone(prepared), Vec::new(), Some(columns));
        portal.state = PortalState::Done;
        portal.kept = Some(kept);
        Ok(portal)
    }

    /// The columns of a portal's rows.
    pub(crate) fn portal_columns(&self, name: &str) -> Option<Rc<Vec<OutputColumn>>> {
        self.portals.get(name)?.columns.clone()
    }

    /// Is there a portal of that name?
    pub(crate) fn has_portal(&self, name: &str) -> bool {
        self.portals.contains_key(name)
    }

    /// Does a loop read that portal?
    pub(crate) fn is_of_loop(&self, name: &str) -> bool {
        self.portals.get(name).is_some_and(|portal| portal.of_loop)
    }

    /// Does a loop read it, and nothing else ask where it stands?
    pub(crate) fn is_of_query_loop(&self, name: &str) -> bool {
        self.portals.get(name).is_some_and(|portal| portal.of_loop && !portal.is_cursor)
    }

    /// The next rows of a loop's portal, at most so many; fewer: there are no more.
    pub(crate) fn next_of_loop(
        &mut self,
        name: &str,
        limit: usize,
        sink: &mut RowSink<'_>,
    ) -> Result<usize> {
        let Some(portal) = self.portals.get_mut(name) else {
            bail!(INVALID_CURSOR_NAME, "cursor \"{name}\" does not exist");
        };
        let given = next_of(portal, limit, sink);
        if given.is_err() {
            portal.state = PortalState::Failed;
        }
        self.next_command()?;
        given
    }

    /// FETCH and MOVE: how many rows it went over.
    pub(crate) fn fetch_inner(
        &mut self,
        name: &str,
        direction: FetchDirection,
        move_only: bool,
        sink: &mut RowSink<'_>,
    ) -> Result<u64> {
        let fetch = Fetch { move_only, direction, cursor: name.to_owned() };
        let done = self.fetch(&fetch)?;
        self.next_command()?;
        if let Some((columns, mut rows)) = done.rows {
            while rows.next(|row| sink(&columns, row))? {}
        }
        let count = done.tag.split(' ').nth(1).and_then(|n| n.parse().ok());
        Ok(count.unwrap_or(0))
    }

    /// Ends a portal, if it is there.
    pub(crate) fn close_inner(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Loops' portals keep what they have not given yet: the transaction ends within them.
    pub(crate) fn keep_loops(&mut self) -> Result<()> {
        let loops = |p: &&mut Portal| p.of_loop && !p.held;
        for portal in self.portals.values_mut().filter(loops) {
            if matches!(&portal.state, PortalState::Running(e) if e.writes()) {
                bail!(
                    INVALID_TRANSACTION_TERMINATION,
                    "cannot perform transaction commands inside a cursor loop that is not read-only"
                );
            }
            cursor::hold(portal)?;
        }
        Ok(())
    }

    /// The procedure has ended: so have its loops, however it ended.
    pub(crate) fn end_loops(&mut self) {
        self.portals.retain(|_, portal| !portal.of_loop);
    }
}

fn next_of(portal: &mut Portal, limit: usize, sink: &mut RowSink<'_>) -> Result<usize> {
    let columns = portal.columns.clone().unwrap_or_default();
    if let PortalState::Failed = portal.state {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal cannot be run");
    }
    if portal.kept.is_some() {
        let numbers = cursor::next_rows(portal, limit)?;
        let count = numbers.len();
        let mut rows = portal.kept_rows(numbers, false);
        while rows.next(|row| sink(&columns, row))? {}
        return Ok(count);
    }
    let PortalState::Running(execution) = &mut portal.state else { return Ok(0) };
    let before = execution.rows();
    let over = execution.run(limit, &mut |row| sink(&columns, row))?;
    let given = usize::try_from(execution.rows() - before).unwrap_or(usize::MAX);
    if over
        && let PortalState::Running(execution) =
            std::mem::replace(&mut portal.state, PortalState::Done)
    {
        execution.finish(&portal.prepared)?;
    }
    Ok(given)
}
