//! What a session's transaction says and begins to listen to: nothing of it is anybody's business before it commits.

use super::{Change, Listener, Notification, NotifyQueue, full};
use base::{Result, SqlError, bail};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A channel's name is shorter than this (`NAMEDATALEN`).
const CHANNEL_BYTES: usize = 64;
/// A payload is shorter than this.
const PAYLOAD_BYTES: usize = 8000;

/// A place in a transaction, to roll back to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mark {
    said: usize,
    changes: usize,
}

/// What the transaction under way says and changes, and what the session listens to.
#[derive(Default)]
pub struct Outgoing {
    said: Vec<Arc<Notification>>,
    /// The same: what is said twice is heard once.
    seen: HashSet<Arc<Notification>>,
    bytes: usize,
    changes: Vec<Change>,
    /// Channels listened to by what has committed, in the order of LISTEN.
    listening: Vec<Box<str>>,
    /// Somebody has said something that this session hears.
    pending: Arc<AtomicBool>,
}

/// What is about to be said by a transaction that is about to commit.
pub struct Commit {
    queue: Arc<NotifyQueue>,
    pub(super) who: Listener,
    pub(super) pending: Arc<AtomicBool>,
    pub(super) changes: Vec<Change>,
    pub(super) said: Vec<Arc<Notification>>,
    /// What the queue keeps free for it.
    reserved: usize,
}

impl Outgoing {
    /// NOTIFY
    ///
    /// # Errors
    /// `22023` for a name or a payload that is too long; `54000`: more than the queue takes.
    pub fn notify(&mut self, limit: usize, pid: i32, channel: &str, payload: &str) -> Result<()> {
        if channel.is_empty() {
            bail!(INVALID_PARAMETER_VALUE, "channel name cannot be empty");
        }
        if channel.len() >= CHANNEL_BYTES {
            bail!(INVALID_PARAMETER_VALUE, "channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES {
            bail!(INVALID_PARAMETER_VALUE, "payload string too long");
        }
        let said = Arc::new(Notification { pid, channel: channel.into(), payload: payload.into() });
        if self.seen.contains(&said) {
            return Ok(());
        }
        // It could not commit: no need to gather more.
        if self.bytes + said.bytes() > limit {
            return Err(full());
        }
        self.bytes += said.bytes();
        self.seen.insert(Arc::clone(&said));
        self.said.push(said);
        Ok(())
    }

    /// LISTEN and UNLISTEN
    pub fn change(&mut self, change: Change) {
        // Who listens to nothing has nothing to end.
        let idle = self.changes.is_empty() && self.listening.is_empty();
        if !idle || matches!(change, Change::Listen(_)) {
            self.changes.push(change);
        }
    }

    /// `pg_listening_channels()`
    pub fn listening(&self) -> &[Box<str>] {
        &self.listening
    }

    /// There is something to be read.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst)
    }

    /// The transaction neither says nor changes anything.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty() && self.changes.is_empty()
    }

    /// Where the transaction is.
    pub fn mark(&self) -> Mark {
        Mark { said: self.said.len(), changes: self.changes.len() }
    }

    /// Forgets what came after `mark`.
    pub fn roll_back_to(&mut self, mark: Mark) {
        for said in self.said.drain(mark.said..) {
            self.bytes -= said.bytes();
            self.seen.remove(&said);
        }
        self.changes.truncate(mark.changes);
    }

    /// Forgets what the transaction wanted to say.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.roll_back_to(Mark::default());
        }
    }

    /// Takes what the transaction says, with room in the queue for it; and a warning, if that is half full.
    ///
    /// # Errors
    /// `54000`: the queue is full.
    pub fn prepare(
        &mut self,
        queue: &Arc<NotifyQueue>,
        who: Listener,
    ) -> Result<(Commit, Option<SqlError>)> {
        let warning = if self.said.is_empty() { None } else { queue.reserve(self.bytes)? };
        self.seen.clear();
        let commit = Commit {
            queue: Arc::clone(queue),
            who,
            pending: Arc::clone(&self.pending),
            changes: std::mem::take(&mut self.changes),
            said: std::mem::take(&mut self.said),
            reserved: std::mem::take(&mut self.bytes),
        };
        Ok((commit, warning))
    }

    /// The commit is made: what the session listens to from now on.
    pub fn committed(&mut self, commit: &Commit) {
        for change in &commit.changes {
            match change {
                Change::Listen(channel) if self.listening.contains(channel) => {}
                Change::Listen(channel) => self.listening.push(channel.clone()),
                Change::Unlisten(channel) => self.listening.retain(|c| c != channel),
                Change::UnlistenAll => self.listening.clear(),
            }
        }
        if self.listening.is_empty() {
            // What came before is not heard any more, nor does anybody put it right again.
            self.pending.store(false, Ordering::SeqCst);
        }
    }
}

impl Commit {
    /// Makes the commit visible by calling `publish`, and says what it says. Returns who else is to be woken.
    pub fn publish(&mut self, publish: &mut dyn FnMut()) -> Vec<i32> {
        let reserved = std::mem::take(&mut self.reserved);
        let queue = Arc::clone(&self.queue);
        queue.publish(self, reserved, publish)
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.queue.give_back(self.reserved);
        }
    }
}
