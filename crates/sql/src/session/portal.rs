//! Portals and cursors: statements bound to parameters, running or done.

use super::current_of::Place;
use super::prepared::Prepared;
use super::run::Execution;
use crate::client::OutputColumn;
use crate::exec::NumberedRows;
use crate::parse::Statement;
use crate::parse::ast::QueryStatement;
use crate::plan::Plan;
use crate::plan::current_of::Addresses;
use base::Result;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use types::Datum;

/// What `pg_cursors` shows of a portal.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are pg_cursors' columns")]
pub struct CursorRow {
    pub name: String,
    pub statement: Arc<str>,
    pub is_holdable: bool,
    pub is_binary: bool,
    pub is_scrollable: bool,
    pub creation_time: i64,
    pub place: Place,
}

/// The portals of a session, for `pg_cursors`.
#[derive(Default)]
pub struct CursorList {
    rows: RefCell<BTreeMap<u64, CursorRow>>,
}

impl CursorList {
    /// All rows, in the order in which they were made.
    pub fn rows(&self) -> Vec<CursorRow> {
        self.rows.borrow().values().cloned().collect()
    }

    /// Where the cursor of this name stands.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.rows.borrow().values().find(|row| row.name == name).map(|row| row.place.clone())
    }
}

/// A portal's place in the list, which it leaves when it ends, however it ends.
pub struct Listed {
    list: Rc<CursorList>,
    key: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.list.rows.borrow_mut().remove(&self.key);
    }
}

/// Rows made beforehand, and how many of them have been handed out.
pub struct MadeRows {
    rows: Made,
    out: usize,
}

enum Made {
    /// Its own, within `work_mem` in memory and beyond it on disk.
    Own(NumberedRows),
    /// Some of a cursor's, which keeps them; `hidden` of their columns are not for its client.
    Kept { rows: SharedRows, numbers: Range<usize>, backward: bool, hidden: usize },
}

/// A cursor's rows, which a FETCH under way hands out too.
type SharedRows = Rc<RefCell<NumberedRows>>;

impl Default for MadeRows {
    fn default() -> MadeRows {
        MadeRows { rows: Made::Own(NumberedRows::default()), out: 0 }
    }
}

impl MadeRows {
    /// These, which are all.
    pub(super) fn own(mut rows: NumberedRows) -> Result<MadeRows> {
        rows.settle()?;
        Ok(MadeRows { rows: Made::Own(rows), out: 0 })
    }

    /// Hands the next one to `sink`; false if there is no other.
    pub(super) fn next(&mut self, sink: impl FnOnce(&[Datum]) -> Result<()>) -> Result<bool> {
        let n = self.out;
        self.out += 1;
        let given = match &mut self.rows {
            Made::Own(rows) => rows.look(n, sink)?,
            Made::Kept { rows, numbers, backward, hidden } => {
                let next = if *backward { numbers.next_back() } else { numbers.next() };
                let Some(at) = next else { return Ok(false) };
                rows.borrow().look(at, |row| sink(&row[..row.len() - *hidden]))?
            }
        };
        Ok(given.is_some())
    }

    /// A few, in memory.
    pub(super) fn of(rows: Vec<Vec<Datum>>) -> Result<MadeRows> {
        let mut made = NumberedRows::default();
        rows.into_iter().try_for_each(|mut row| made.push(&mut row, usize::MAX))?;
        MadeRows::own(made)
    }
}

/// Rows kept for a cursor that moves both ways, or that outlives its transaction.
#[derive(Default)]
pub struct KeptRows {
    /// The rows: more come behind them, none goes.
    pub(super) rows: SharedRows,
    /// The addresses of the row on which it stands.
    pub here: Option<Vec<Datum>>,
    /// The query has run to its end.
    pub complete: bool,
    /// Where the cursor stands: 0 before the first row, n on row n, one past the last.
    pub position: usize,
}

impl KeptRows {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.borrow().len()
    }
}

/// How far a portal has come.
pub enum PortalState {
    /// Not started.
    Ready,
    /// Running.
    Running(Box<Execution>),
    /// Rows made beforehand, handed out in turn (utility statements that return rows).
    Rows(MadeRows, String),
    /// Over.
    Done,
    /// It met an error, and can be closed only.
    Failed,
}

/// A statement bound to parameters.
pub struct Portal {
    /// The statement.
    pub prepared: Rc<Prepared>,
    /// Parameter values.
    pub params: Vec<Datum>,
    /// Result columns with their formats.
    pub columns: Option<Rc<Vec<OutputColumn>>>,
    /// How far it has come.
    pub state: PortalState,
    /// A cursor's kept rows.
    pub kept: Option<KeptRows>,
    /// SQL made it (DECLARE), not the protocol.
    pub is_cursor: bool,
    /// WITH HOLD
    pub hold: bool,
    /// WITH HOLD, and its transaction has committed.
    pub held: bool,
    /// It may move backward.
    pub scroll: bool,
    /// A procedure's loop reads it.
    pub of_loop: bool,
    /// How many savepoints were open when it was made; those released since do not count.
    pub depth: usize,
    /// When it was made.
    pub created_us: i64,
    /// DECLARE's text.
    pub text: Arc<str>,
    /// The name of the prepared statement that was bound, where it will be logged.
    pub statement: String,
    /// Its plan, from Bind until it starts, and the catalogs' generation of then.
    pub(super) plan: Option<(Arc<Plan>, u64)>,
    /// What a cursor's rows have behind its columns.
    pub addresses: Option<Addresses>,
    listed: Option<Listed>,
}

impl Portal {
    /// A portal of `prepared`.
    pub fn new(
        prepared: Rc<Prepared>,
        params: Vec<Datum>,
        columns: Option<Rc<Vec<OutputColumn>>>,
    ) -> Portal {
        let text = Arc::clone(&prepared.text);
        Portal {
            prepared,
            params,
            columns,
            state: PortalState::Ready,
            kept: None,
            is_cursor: false,
            hold: false,
            held: false,
            scroll: false,
            of_loop: false,
            depth: 0,
            statement: String::new(),
            created_us: base::sync::now_timestamp_us(),
            text,
            plan: None,
            addresses: None,
            listed: None,
        }
    }

    /// Shows it in `pg_cursors` until it ends.
    pub(super) fn list(&mut self, list: &Rc<CursorList>, name: &str) {
        let row = CursorRow {
            name: name.to_owned(),
            statement: Arc::clone(&self.text),
            is_holdable: self.hold,
            is_binary: self.columns.iter().flat_map(|c| c.iter()).any(|c| c.format == 1),
            is_scrollable: self.scroll,
            creation_time: self.created_us,
            place: self.place(),
        };
        let mut rows = list.rows.borrow_mut();
        let key = rows.last_key_value().map_or(0, |(key, _)| key + 1);
        rows.insert(key, row);
        drop(rows);
        self.listed = Some(Listed { list: Rc::clone(list), key });
    }

    fn place(&self) -> Place {
        match &self.kept {
            _ if !self.is_cursor => Place::Protocol,
            Some(kept) if !self.held && !matches!(self.state, PortalState::Failed) => {
                Place::at(self.addresses.as_ref(), kept)
            }
            _ => Place::Over,
        }
    }

    /// Tells in the list where it stands now.
    pub(super) fn tell_place(&self) {
        let Some(listed) = &self.listed else { return };
        if let Some(row) = listed.list.rows.borrow_mut().get_mut(&listed.key) {
            row.place = self.place();
        }
    }

    /// Its transaction has failed: it can be closed only, and is in nobody's way until that has ended.
    pub(super) fn fail(&mut self) {
        if let PortalState::Running(execution) = &mut self.state {
            execution.give_up();
        }
        self.state = PortalState::Failed;
        self.kept = None;
        self.tell_place();
    }

    /// It is a query that only reads.
    pub(super) fn only_reads(&self) -> bool {
        matches!(
            self.prepared.parsed.as_deref().map(|parsed| &parsed.statement),
            Some(Statement::Query(query @ QueryStatement::Select(_))) if !query.modifies_in_with()
        )
    }

    /// Rows that it keeps, by their numbers from 0, without what is behind its columns.
    pub(super) fn kept_rows(&self, numbers: Range<usize>, backward: bool) -> MadeRows {
        let Some(kept) = &self.kept else { return MadeRows::default() };
        let hidden = self.addresses.as_ref().map_or(0, Addresses::columns);
        let rows = Rc::clone(&kept.rows);
        MadeRows { rows: Made::Kept { rows, numbers, backward, hidden }, out: 0 }
    }

    /// It is to be there after a commit. One that has failed has nothing to go on with.
    pub(super) fn survives_commit(&self) -> bool {
        self.hold && !matches!(self.state, PortalState::Failed)
    }

    /// It is still there after a rollback to the savepoint within which `depth` are open.
    pub(super) fn outlives(&self, depth: usize) -> bool {
        self.held || self.depth < depth
    }

    /// It is still there after a rollback.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }
}
