//! Cursors: DECLARE, FETCH, MOVE, CLOSE.
//!
//! # Layout
//! A cursor keeps the rows it has fetched, within `work_mem` in memory and beyond it on disk: moving backward, and going on after its
//! transaction (WITH HOLD), read from there.

use super::portal::{KeptRows, PortalState};
use super::prepared::{Arguments, Prepared};
use super::utility::UtilityDone;
use super::{Portal, Session};
use crate::analyse::lock_words;
use crate::parse::ast::QueryStatement;
use crate::parse::utility::{DeclareCursor, Fetch, FetchDirection};
use crate::parse::{Parsed, Statement};
use crate::plan::current_of::Addresses;
use base::{Result, bail};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use types::Datum;

/// Where a FETCH goes: the positions of the rows it returns, and where the cursor then stands.
struct Movement {
    /// Row positions, from 1.
    rows: Range<usize>,
    /// They come in falling order.
    backward: bool,
    /// The new position.
    to: usize,
}

impl Session {
    pub(super) fn declare_cursor(
        &mut self,
        declare: &DeclareCursor,
        outer: &Prepared,
        source: &Arc<str>,
        arguments: Arguments<'_>,
    ) -> Result<UtilityDone> {
        if !declare.hold {
            self.require_block("DECLARE CURSOR")?;
        }
        let parsed = Parsed {
            statement: Statement::Query(declare.query.clone()),
            source: Arc::clone(source),
            start: declare.query_span.0 as usize,
            end: declare.query_span.1 as usize,
            max_param: 0,
        };
        let params = arguments.params();
        let prepared = Rc::new(self.prepare_within(outer, parsed, params)?);
        if declare.query.modifies_in_with() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "DECLARE CURSOR must not contain data-modifying statements in WITH"
            );
        }
        let locks = locks_rows(declare)?;
        // What is wrong with the query is told first.
        if self.portals.contains_key(&declare.name) {
            bail!(DUPLICATE_CURSOR, "cursor \"{}\" already exists", declare.name);
        }
        let mut columns = prepared.columns.clone();
        if declare.binary {
            for column in columns.iter_mut().flat_map(Rc::make_mut) {
                column.format = 1;
            }
        }
        let mut portal = Portal::new(Rc::clone(&prepared), arguments.values.to_vec(), columns);
        portal.is_cursor = true;
        portal.hold = declare.hold;
        portal.depth = self.savepoints.len();
        portal.scroll = declare.scroll != Some(false) && !locks;
        portal.text = Arc::clone(source);
        portal.kept = Some(KeptRows::default());
        self.start_portal(&mut portal)?;
        portal.list(&self.state.cursors, &declare.name);
        self.portals.insert(declare.name.clone(), portal);
        Ok(UtilityDone { tag: "DECLARE CURSOR".into(), rows: None })
    }

    pub(super) fn fetch(&mut self, fetch: &Fetch) -> Result<UtilityDone> {
        let Some(mut portal) = self.portals.remove(&fetch.cursor) else {
            bail!(INVALID_CURSOR_NAME, "cursor \"{}\" does not exist", fetch.cursor);
        };
        if let PortalState::Failed = portal.state {
            self.portals.insert(fetch.cursor.clone(), portal);
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{}\" cannot be run", fetch.cursor);
        }
        let result = self.fetch_from(&mut portal, fetch);
        if result.is_err() {
            portal.state = PortalState::Failed;
        }
        portal.tell_place();
        self.portals.insert(fetch.cursor.clone(), portal);
        result
    }

    fn fetch_from(&mut self, portal: &mut Portal, fetch: &Fetch) -> Result<UtilityDone> {
        if let PortalState::Ready = portal.state {
            self.start_portal(portal)?;
        }
        portal.kept.get_or_insert_with(KeptRows::default);
        check_direction(portal, fetch)?;
        let movement = plan_movement(portal, fetch.direction)?;
        stand(portal, movement.to)?;
        let count = movement.rows.len();
        if fetch.move_only {
            return Ok(UtilityDone { tag: format!("MOVE {count}"), rows: None });
        }
        let rows = match movement.rows {
            Range { start, end } if start < end => start - 1..end - 1,
            _ => 0..0,
        };
        let rows = portal.kept_rows(rows, movement.backward);
        let columns = portal.columns.clone().unwrap_or_default();
        Ok(UtilityDone { tag: format!("FETCH {count}"), rows: Some((columns, rows)) })
    }

    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<UtilityDone> {
        match name {
            Some(name) => {
                if self.portals.remove(name).is_none() {
                    bail!(INVALID_CURSOR_NAME, "cursor \"{name}\" does not exist");
                }
                Ok(UtilityDone { tag: "CLOSE CURSOR".into(), rows: None })
            }
            None => {
                self.portals.retain(|_, p| !p.is_cursor);
                Ok(UtilityDone { tag: "CLOSE CURSOR ALL".into(), rows: None })
            }
        }
    }

    /// WITH HOLD cursors keep all their rows when their transaction commits.
    pub(super) fn hold_cursors(&mut self) -> Result<()> {
        for portal in self.portals.values_mut().filter(|p| p.survives_commit() && !p.held) {
            hold(portal)?;
        }
        Ok(())
    }
}

/// Keeps all rows that there are still to be, so that the portal goes on without its transaction.
pub(super) fn hold(portal: &mut Portal) -> Result<()> {
    read_to(portal, usize::MAX)?;
    portal.state = PortalState::Done;
    portal.hold = true;
    portal.held = true;
    portal.tell_place();
    Ok(())
}

/// Whether the cursor locks its rows as it comes to them: such a one only goes forward, and ends with its transaction.
fn locks_rows(declare: &DeclareCursor) -> Result<bool> {
    let QueryStatement::Select(select) = &declare.query else { return Ok(false) };
    let Some(first) = select.locking.first() else { return Ok(false) };
    let lock = lock_words(first.strength);
    let refused = |state, message: String, whose| {
        let detail = format!("{whose} cursors must be READ ONLY.");
        Err(base::SqlError::new(state, message).detail(detail).into())
    };
    let unsupported = base::SqlState::FEATURE_NOT_SUPPORTED;
    if declare.hold {
        let message = format!("DECLARE CURSOR WITH HOLD ... {lock} is not supported");
        return refused(unsupported, message, "Holdable");
    }
    if declare.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {lock} is not supported");
        return refused(unsupported, message, "Scrollable");
    }
    if declare.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {lock} is not valid");
        return refused(base::SqlState::INVALID_CURSOR_DEFINITION, message, "Insensitive");
    }
    Ok(true)
}

/// Moves the cursor to a position.
fn stand(portal: &mut Portal, position: usize) -> Result<()> {
    let kept = portal.kept.get_or_insert_with(KeptRows::default);
    kept.position = position;
    let hidden = portal.addresses.as_ref().map_or(0, Addresses::columns);
    kept.here = None;
    if hidden > 0
        && let Some(at) = position.checked_sub(1)
    {
        let addresses = |row: &[Datum]| Ok(row[row.len() - hidden..].to_vec());
        kept.here = kept.rows.borrow().look(at, addresses)?;
    }
    Ok(())
}

/// The next rows, `limit` at most (0: all), by their numbers from 0; the portal then stands on the last of them, or behind it if there
/// are no more.
pub(super) fn next_rows(portal: &mut Portal, limit: usize) -> Result<Range<usize>> {
    let at = portal.kept.as_ref().map_or(0, |kept| kept.position);
    let next = forward(portal, at, if limit == 0 { usize::MAX } else { limit })?;
    stand(portal, next.to)?;
    let first = next.rows.start - 1;
    Ok(first..first + next.rows.len())
}

/// Reads rows into the cursor's store until it has `n`, or the query ends. What writes is always run to its end.
fn read_to(portal: &mut Portal, n: usize) -> Result<()> {
    let kept = portal.kept.get_or_insert_with(KeptRows::default);
    if kept.complete || kept.len() >= n {
        return Ok(());
    }
    let PortalState::Running(execution) = &mut portal.state else {
        kept.complete = true;
        return Ok(());
    };
    let all = n == usize::MAX || execution.writes();
    let wanted = if all { 0 } else { n - kept.len() };
    let (mut rows, bound) = (kept.rows.borrow_mut(), execution.work_mem_bytes());
    kept.complete = execution.run_whole(wanted, &mut |row| rows.push(row, bound))?;
    rows.settle()
}

fn count(n: i64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A NO SCROLL cursor only goes forward: neither back to a row nor to the one it stands on, which would have to be
/// fetched again.
fn check_direction(portal: &Portal, fetch: &Fetch) -> Result<()> {
    if portal.scroll {
        return Ok(());
    }
    let Some(kept) = &portal.kept else { return Ok(()) };
    let at = kept.position;
    let on_row = (1..=kept.len()).contains(&at);
    let backward = match fetch.direction {
        FetchDirection::Next | FetchDirection::ForwardAll => false,
        FetchDirection::Forward(0) | FetchDirection::Backward(0) | FetchDirection::Relative(0) => {
            on_row && !fetch.move_only
        }
        FetchDirection::BackwardAll if fetch.move_only => at > 0,
        FetchDirection::Prior | FetchDirection::BackwardAll | FetchDirection::Last => true,
        FetchDirection::First => at > 0,
        FetchDirection::Backward(n) => n > 0,
        FetchDirection::Forward(n) | FetchDirection::Relative(n) => n < 0,
        FetchDirection::Absolute(n) => n < 0 || at > 0 && count(n) <= at,
    };
    if !backward {
        return Ok(());
    }
    Err(base::SqlError::new(
        base::SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .hint("Declare it with SCROLL option to enable backward scan.")
    .into())
}

fn plan_movement(portal: &mut Portal, direction: FetchDirection) -> Result<Movement> {
    let at = portal.kept.as_ref().map_or(0, |k| k.position);
    match direction {
        FetchDirection::Next => forward(portal, at, 1),
        FetchDirection::Forward(n) if n > 0 => forward(portal, at, count(n)),
        FetchDirection::Backward(n) if n < 0 => forward(portal, at, count(-n)),
        FetchDirection::ForwardAll => forward(portal, at, usize::MAX),
        FetchDirection::Prior => back(portal, at, 1),
        FetchDirection::Backward(n) if n > 0 => back(portal, at, count(n)),
        FetchDirection::Forward(n) if n < 0 => back(portal, at, count(-n)),
        FetchDirection::BackwardAll => back(portal, at, usize::MAX),
        FetchDirection::Forward(_) | FetchDirection::Backward(_) => single(portal, at),
        FetchDirection::First => single(portal, 1),
        FetchDirection::Last => {
            read_to(portal, usize::MAX)?;
            let last = portal.kept.as_ref().map_or(0, KeptRows::len);
            single(portal, last)
        }
        FetchDirection::Absolute(n) if n >= 0 => single(portal, count(n)),
        FetchDirection::Absolute(n) => {
            read_to(portal, usize::MAX)?;
            let rows = portal.kept.as_ref().map_or(0, KeptRows::len);
            single(portal, (rows + 1).saturating_sub(count(-n)))
        }
        FetchDirection::Relative(n) if n >= 0 => single(portal, at.saturating_add(count(n))),
        FetchDirection::Relative(n) => single(portal, at.saturating_sub(count(-n))),
    }
}

fn forward(portal: &mut Portal, at: usize, n: usize) -> Result<Movement> {
    let wanted = at.saturating_add(n);
    read_to(portal, wanted)?;
    let have = portal.kept.as_ref().map_or(0, KeptRows::len);
    let to = if have < wanted { have + 1 } else { wanted };
    Ok(Movement { rows: at + 1..wanted.min(have) + 1, backward: false, to })
}

fn back(portal: &mut Portal, at: usize, n: usize) -> Result<Movement> {
    let have = portal.kept.as_ref().map_or(0, KeptRows::len);
    let from = at.min(have + 1);
    let low = from.saturating_sub(n);
    Ok(Movement { rows: low.max(1)..from, backward: true, to: low })
}

fn single(portal: &mut Portal, at: usize) -> Result<Movement> {
    read_to(portal, at)?;
    let have = portal.kept.as_ref().map_or(0, KeptRows::len);
    let rows = if (1..=have).contains(&at) { at..at + 1 } else { 0..0 };
    Ok(Movement { rows, backward: false, to: at.min(have + 1) })
}
