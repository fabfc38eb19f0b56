//! Portals and cursors: statements bound to parameters, running or done.

use super::prepared::Prepared;
use super::run::Execution;
use crate::client::OutputColumn;
use std::rc::Rc;
use types::Datum;

/// Rows kept for a cursor that moves both ways, or that outlives its transaction.
#[derive(Default)]
pub struct KeptRows {
    /// The rows.
    pub rows: Vec<Vec<Datum>>,
    /// The query has run to its end.
    pub complete: bool,
    /// Where the cursor stands: 0 before the first row, n on row n, one past the last.
    pub position: usize,
}

/// How far a portal has come.
pub enum PortalState {
    /// Not started.
    Ready,
    /// Running.
    Running(Box<Execution>),
    /// Rows made beforehand, handed out in turn (utility statements that return rows).
    Rows(std::vec::IntoIter<Vec<Datum>>, String),
    /// Over.
    Done,
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
    /// When it was made.
    pub created_us: i64,
    /// DECLARE's text.
    pub text: std::sync::Arc<str>,
}

impl Portal {
    /// A portal of `prepared`.
    pub fn new(
        prepared: Rc<Prepared>,
        params: Vec<Datum>,
        columns: Option<Rc<Vec<OutputColumn>>>,
    ) -> Portal {
        let text = std::sync::Arc::clone(&prepared.text);
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
            created_us: base::sync::now_timestamp_us(),
            text,
        }
    }

    /// It is still there after a commit.
    pub(super) fn survives_commit(&self) -> bool {
        self.hold
    }

    /// It is still there after a rollback.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }
}
