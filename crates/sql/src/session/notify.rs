//! LISTEN, NOTIFY and UNLISTEN, and what a session hears.

use super::transaction::Block;
use super::{Session, SessionState};
use crate::client::{Notice, Severity};
use crate::cluster::Wake;
use crate::notify::{Change, Commit, Notification};
use base::Result;
use std::sync::Arc;

impl SessionState {
    /// NOTIFY, `pg_notify()`: said when the transaction commits.
    ///
    /// # Errors
    /// `22023`, `54000`
    pub fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        let limit = self.cluster.notifications.limit();
        self.notify.borrow_mut().notify(limit, self.backend.pid, channel, payload)
    }
}

impl Session {
    pub(super) fn listen(&self, change: Change) {
        self.state.notify.borrow_mut().change(change);
    }

    /// Makes room for what the transaction says, just before it commits. Most say nothing.
    pub(super) fn prepare_to_notify(&mut self) -> Result<Option<Commit>> {
        let mut outgoing = self.state.notify.borrow_mut();
        if outgoing.is_empty() {
            return Ok(None);
        }
        let queue = &self.state.cluster.notifications;
        let (commit, warning) = outgoing.prepare(queue, self.state.listener())?;
        if let Some(body) = warning {
            self.state.notice(Notice { severity: Severity::Warning, body });
        }
        Ok(Some(commit))
    }

    /// The transaction has committed, and `wake` listen to what it said.
    pub(super) fn notified(&self, said: &Commit, wake: &[i32]) {
        self.state.notify.borrow_mut().committed(said);
        for pid in wake {
            self.state.cluster.wake(*pid, Wake::Hear);
        }
    }

    /// True if what others say is to be heard while the session waits for its client: it listens, and is not in a transaction.
    pub fn is_listening(&self) -> bool {
        self.block == Block::None && !self.state.notify.borrow().listening().is_empty()
    }

    /// Some of what is to be heard now; none when that is all. In a transaction nothing is heard.
    pub fn hear(&self) -> Vec<Arc<Notification>> {
        if self.block != Block::None {
            return Vec::new();
        }
        let mut heard = Vec::new();
        // What is read may be on channels that others listen to.
        while heard.is_empty() && self.state.notify.borrow().is_pending() {
            heard = self.state.cluster.notifications.read(self.state.listener());
        }
        heard
    }
}
