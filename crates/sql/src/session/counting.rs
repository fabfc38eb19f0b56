//! Statements are known by identifiers, measured and counted: what the session has to do with [`crate::statements`].
//!
//! # Invariants
//! What is measured is between the start and the end of a statement's work, its rows' way to the client included; a portal that waits for its
//! client is not. A statement that fails is not counted, nor a portal that a rollback ends.

use super::prepared::{Meaning, Prepared};
use super::{Session, SessionState};
use crate::analyse::ParamTypes;
use crate::parse::utility::UtilityStatement as U;
use crate::parse::{Parsed, Statement};
use crate::query::Query;
use crate::statements::counters::Used;
use crate::statements::table::{Entry, Key};
use crate::statements::{normalised, query_id, utility_id};
use base::Result;
use base::settings::SessionSettings;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use txn::BackendKind;

/// `pg_stat_statements.track`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tracked {
    None,
    Top,
    All,
}

/// `compute_query_id`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    Off,
    Auto,
    On,
    /// As On, but EXPLAIN does not show them.
    Regress,
}

/// What settings say of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counting {
    ids: Ids,
    tracked: Tracked,
    utility: bool,
    planning: bool,
}

impl Counting {
    pub(super) fn new(settings: &SessionSettings) -> Counting {
        Counting {
            ids: match settings.text("compute_query_id") {
                "off" => Ids::Off,
                "on" => Ids::On,
                "regress" => Ids::Regress,
                _ => Ids::Auto,
            },
            tracked: match settings.text("pg_stat_statements.track") {
                "none" => Tracked::None,
                "all" => Tracked::All,
                _ => Tracked::Top,
            },
            utility: settings.bool("pg_stat_statements.track_utility"),
            planning: settings.bool("pg_stat_statements.track_planning"),
        }
    }
}

/// An entry as a session holds it: its own count of holders is no other session's business, and is counted without disturbing any.
type Held = Rc<Arc<Entry>>;

/// What a prepared statement is known by, once that has been asked for.
#[derive(Default)]
pub(super) struct Identity {
    /// 0: not yet.
    id: Cell<i64>,
    /// Where it was counted last.
    entry: RefCell<Option<Held>>,
    /// It was made from a text of the simple protocol whose numbers have become parameters.
    of_template: Cell<bool>,
}

impl Identity {
    /// It is that of a statement with its numbers.
    pub(super) fn become_template_of(&self, whole: &Identity) {
        self.of_template.set(true);
        self.id.set(whole.id.get());
    }
}

/// What a session keeps of it.
#[derive(Default)]
pub(super) struct Nesting {
    /// How many utility statements the one under way is within.
    depth: Cell<u32>,
    /// Planning that has been measured and not been counted: milliseconds, and what it used.
    planned: Cell<Option<(f64, Used)>>,
    /// How many rows the query of a materialized view has given.
    streamed: Cell<u64>,
    /// The utility statement under way.
    outer: RefCell<Option<Arc<Parsed>>>,
}

impl Nesting {
    /// This utility statement is under way now; returns the one that was.
    pub(super) fn enter(&self, parsed: Option<Arc<Parsed>>) -> Option<Arc<Parsed>> {
        self.outer.replace(parsed)
    }

    pub(super) fn note_streamed(&self, rows: u64) {
        self.streamed.set(rows);
    }
}

/// A measurement that has begun.
pub(super) struct Begun {
    at: Instant,
    used: Used,
}

impl Begun {
    pub(super) fn now() -> Begun {
        let used = Used::so_far();
        Begun { at: Instant::now(), used }
    }

    /// How many milliseconds it took, and what was used.
    fn end(&self) -> (f64, Used) {
        let ms = self.at.elapsed().as_secs_f64() * 1000.0;
        (ms, Used::so_far().since(&self.used))
    }
}

/// An execution's measurements, counted when it ends.
pub(super) struct Measured {
    entry: Held,
    state: Rc<SessionState>,
    ms: f64,
    used: Used,
    rows: u64,
    ran: bool,
    /// It is not to be counted.
    void: bool,
}

impl Measured {
    fn of(entry: Held, state: &Rc<SessionState>) -> Measured {
        Measured {
            entry,
            state: Rc::clone(state),
            ms: 0.0,
            used: Used::default(),
            rows: 0,
            ran: false,
            void: false,
        }
    }

    /// It has gone on since `begun`, and come to so many rows.
    pub(super) fn add(&mut self, begun: &Begun, rows: u64, ok: bool) {
        let (ms, used) = begun.end();
        self.ms += ms;
        self.used.add(&used);
        self.rows = rows;
        self.ran = true;
        self.void |= !ok;
    }

    /// It did not come to its end.
    pub(super) fn forget(&mut self) {
        self.void = true;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if self.ran && !self.void {
            let (ms, rows, used) = (self.ms, self.rows, self.used.settled());
            count(&self.state, &self.entry, |c| c.executed(ms, rows, &used));
        }
    }
}

/// Counts in an entry, or in the one that has taken its place.
fn count(
    state: &SessionState,
    entry: &Arc<Entry>,
    change: impl FnOnce(&mut crate::statements::counters::Counters),
) {
    let pid = state.backend.pid;
    if entry.is_gone() {
        let again = state.cluster.statements.table.entry(entry.key, || entry.text.to_string());
        return again.count(pid, change);
    }
    entry.count(pid, change);
}

impl SessionState {
    /// Queries are to have identifiers.
    pub(super) fn wants_query_ids(&self) -> bool {
        match self.derived().counting.ids {
            Ids::Off => false,
            Ids::On | Ids::Regress => true,
            Ids::Auto => self.cluster.statements.is_active(),
        }
    }

    /// EXPLAIN VERBOSE tells them.
    pub(super) fn shows_query_ids(&self) -> bool {
        self.wants_query_ids() && self.derived().counting.ids != Ids::Regress
    }

    /// What begins now is to be counted.
    pub(super) fn counts_statements(&self) -> bool {
        if !self.cluster.statements.is_active() || self.backend.kind != BackendKind::Client {
            return false;
        }
        let counting = self.derived().counting;
        let tracked = match counting.tracked {
            Tracked::None => false,
            Tracked::Top => self.nesting.depth.get() == 0,
            Tracked::All => true,
        };
        tracked && counting.ids != Ids::Off
    }

    /// The statement under way has this identifier, as others see it; the first one that is told counts.
    pub(super) fn tell_query_id(&self, id: i64) {
        if id != 0 && self.nesting.depth.get() == 0 {
            base::log::prefix::set_query(id);
            let mut activity = self.backend.activity.lock();
            activity.query_id.get_or_insert(id);
        }
    }
}

impl Prepared {
    /// Its identifier, if there is to be one: found when it is first asked for.
    pub(super) fn query_id(&self, session: &Session) -> i64 {
        let known = self.identity.id.get();
        if known != 0 || !session.state.wants_query_ids() {
            return known;
        }
        let Some(parsed) = &self.parsed else { return 0 };
        let id = match &parsed.statement {
            Statement::Utility(utility) if is_passed_over(utility) => 0,
            Statement::Utility(utility) => utility_id(parsed, utility, session.env.dialect),
            Statement::Query(_) => self.id_anew(parsed, session).unwrap_or(0),
        };
        self.identity.id.set(id);
        id
    }

    /// A query's, that was analysed before identifiers were asked for.
    fn id_anew(&self, parsed: &Parsed, session: &Session) -> Option<i64> {
        let whole;
        let (parsed, params) = if self.identity.of_template.get() {
            whole = crate::parse::parse_noting(parsed.text(), session.env.dialect, &mut Vec::new());
            (whole.ok()?.pop()?, Vec::new())
        } else {
            (parsed.clone(), self.params.clone())
        };
        let (state, env) = (&session.state, session.env.as_ref());
        let (analysed, _) = crate::relations::analysed(state, || {
            let mut params = ParamTypes::fixed(params.clone()).within(self.outer.clone());
            crate::analyse::analyse(&parsed, state.as_ref(), &mut params, env)
        });
        Some(query_id(&analysed.ok()?, state))
    }
}

impl Meaning {
    /// A query was just analysed.
    pub(super) fn identify(&self, query: &Query, state: &SessionState) {
        if state.wants_query_ids() {
            self.identity.id.set(query_id(query, state));
        }
    }
}

/// Those that others are counted in the place of.
fn is_passed_over(utility: &U) -> bool {
    matches!(utility, U::Execute { .. } | U::Prepare { .. })
}

impl Session {
    /// Where a statement is counted.
    fn entry(&self, prepared: &Prepared, id: i64) -> Held {
        let state = &self.state;
        let toplevel = state.nesting.depth.get() == 0;
        let key = Key {
            user: state.current_user.borrow().oid,
            database: state.database.oid,
            id,
            toplevel,
        };
        let mut kept = prepared.identity.entry.borrow_mut();
        if let Some(entry) = kept.as_ref().filter(|entry| entry.key == key && !entry.is_gone()) {
            return Rc::clone(entry);
        }
        let entry = self.find_entry(key, prepared.parsed.as_deref());
        *kept = Some(Rc::clone(&entry));
        entry
    }

    fn find_entry(&self, key: Key, parsed: Option<&Parsed>) -> Held {
        let statements = &self.state.cluster.statements;
        statements.begin_counting();
        let text = || parsed.map(|parsed| normalised(parsed, self.env.dialect));
        Rc::new(statements.table.entry(key, || text().unwrap_or_default()))
    }

    /// A query begins: what it is measured with, if it is.
    pub(super) fn measured(&self, prepared: &Prepared) -> Option<Measured> {
        if !self.state.counts_statements() {
            return None;
        }
        let id = prepared.query_id(self);
        (id != 0).then(|| Measured::of(self.entry(prepared, id), &self.state))
    }

    /// The query of CREATE TABLE AS or EXPLAIN ANALYZE begins: what it is measured with, if it is. Its text is that of the whole.
    pub(super) fn measured_within(&self, query: &Query) -> Option<Measured> {
        let state = &self.state;
        if state.nesting.depth.get() == 0 || !state.counts_statements() {
            return None;
        }
        let outer = state.nesting.outer.borrow().clone()?;
        let Statement::Utility(utility) = &outer.statement else { return None };
        if !matches!(utility.as_ref(), U::CreateTableAs(_) | U::Explain(_)) {
            return None;
        }
        let key = Key {
            user: state.current_user.borrow().oid,
            database: state.database.oid,
            id: query_id(query, state),
            toplevel: false,
        };
        Some(Measured::of(self.find_entry(key, Some(&outer)), state))
    }

    /// Tells others what the statement is that begins.
    pub(super) fn tell_query_id_of(&self, prepared: &Prepared) {
        if self.state.wants_query_ids() {
            self.state.tell_query_id(prepared.query_id(self));
        }
    }

    /// Planning begins: when, if that is to be measured.
    pub(super) fn planning_begins(&self) -> Option<Begun> {
        (self.state.derived().counting.planning && self.state.counts_statements()).then(Begun::now)
    }

    /// Planning has ended.
    pub(super) fn planning_ended(&self, begun: Option<Begun>) {
        if let Some(begun) = begun {
            self.state.nesting.planned.set(Some(begun.end()));
        }
    }

    /// Counts the planning that was measured since it was last asked, as this statement's.
    pub(super) fn count_planning(&self, prepared: &Prepared) {
        let Some((ms, used)) = self.state.nesting.planned.take() else { return };
        let id = prepared.query_id(self);
        if id != 0 && self.state.counts_statements() {
            let (entry, used) = (self.entry(prepared, id), used.settled());
            count(&self.state, &entry, |c| c.planned(ms, &used));
        }
    }

    /// Runs a utility statement, which is counted if such are, with the rows that `rows` makes of what it came to.
    pub(super) fn counted<T>(
        &mut self,
        (utility, parsed): (&U, &Parsed),
        prepared: Option<&Prepared>,
        run: impl FnOnce(&mut Session) -> Result<T>,
        rows: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        // What it executes stands for it.
        if matches!(utility, U::Execute { .. }) {
            return run(self);
        }
        let mut id = 0;
        if self.state.wants_query_ids() && !is_passed_over(utility) {
            id = match prepared {
                Some(prepared) => prepared.query_id(self),
                None => utility_id(parsed, utility, self.env.dialect),
            };
            self.state.tell_query_id(id);
        }
        let counts = self.state.derived().counting.utility && self.state.counts_statements();
        let begun = (id != 0 && counts).then(Begun::now);
        let depth = self.state.nesting.depth.get();
        self.state.nesting.depth.set(depth + 1);
        self.state.nesting.streamed.set(0);
        let done = run(self);
        self.state.nesting.depth.set(depth);
        if let (Some(begun), Ok(done)) = (begun, &done) {
            let (ms, used) = begun.end();
            let rows = match utility {
                U::RefreshMaterializedView { .. } => self.state.nesting.streamed.get(),
                _ => rows(done),
            };
            let entry = match prepared {
                Some(prepared) => self.entry(prepared, id),
                None => {
                    let user = self.state.current_user.borrow().oid;
                    let database = self.state.database.oid;
                    let key = Key { user, database, id, toplevel: depth == 0 };
                    self.find_entry(key, Some(parsed))
                }
            };
            let used = used.settled();
            count(&self.state, &entry, |c| c.executed(ms, rows, &used));
        }
        done
    }
}

/// The rows that a command tag tells of: those of COPY, FETCH and SELECT.
pub(super) fn rows_of(tag: &str) -> u64 {
    match tag.split_once(' ') {
        Some(("COPY" | "FETCH" | "SELECT", rows)) => rows.parse().unwrap_or(0),
        _ => 0,
    }
}
