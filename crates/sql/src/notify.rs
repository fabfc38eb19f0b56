//! Notifications: what NOTIFY says to those who LISTEN.
//!
//! # Purpose
//! One queue for the server, in memory: nothing in it survives a crash, as PostgreSQL's does not. Each database has a log of its own; a
//! listener has a position in it and reads when it is idle.
//!
//! # Layout
//! This module: the shared queue. `outgoing`: what a transaction will say and listen to, until it ends.
//!
//! # Invariants
//! - A commit that notifies is made visible, and what it says is put into the log, under the queue's lock: all listeners hear
//!   commits in the order in which they became visible, and find on hearing one what it wrote.
//! - Who begins to listen in a commit hears all that becomes visible after it.
//! - A log holds nothing that all of its listeners are past, and nothing on a channel to which nobody listened.
//! - What the logs hold, with what committing transactions have reserved, stays below the limit: `max_notify_queue_pages`.

mod outgoing;
#[cfg(test)]
mod tests;

pub use outgoing::{Commit, Mark, Outgoing};

use base::sync::{Mutex, Rank};
use base::{Oid, Result, SqlError, SqlState};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const RANK: Rank = Rank(150);
/// What a notification takes beside its strings.
const OVERHEAD: usize = 128;
/// At most this much is read in one go: by bytes, and by entries looked at, of which many may be on others' channels.
const READ_BYTES: usize = 64 * 1024;
const READ_ENTRIES: usize = 1024;
/// So often is a queue that fills up warned of.
const WARN_EVERY_US: i64 = 5_000_000;

/// What somebody said.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Notification {
    /// The session that said it.
    pub pid: i32,
    /// Where.
    pub channel: Box<str>,
    /// What.
    pub payload: Box<str>,
}

impl Notification {
    fn bytes(&self) -> usize {
        OVERHEAD + self.channel.len() + self.payload.len()
    }
}

/// A change of what a session listens to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// LISTEN
    Listen(Box<str>),
    /// UNLISTEN
    Unlisten(Box<str>),
    /// UNLISTEN *
    UnlistenAll,
}

/// Who listens: its database and itself.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Its database: one hears only what is said there.
    pub database: Oid,
    /// The session.
    pub pid: i32,
}

struct Listening {
    /// The first that it has not read.
    position: u64,
    channels: HashSet<Box<str>>,
    /// There is something for it.
    pending: Arc<AtomicBool>,
}

/// A database's notifications.
#[derive(Default)]
struct Log {
    /// With their places in the order of all.
    entries: VecDeque<(u64, Arc<Notification>)>,
    listeners: HashMap<i32, Listening>,
}

impl Log {
    /// Where those are who have read everything.
    fn end(&self) -> u64 {
        self.entries.back().map_or(0, |e| e.0 + 1)
    }

    /// Drops what all are past; how many bytes that were.
    fn trim(&mut self) -> usize {
        let least = self.listeners.values().map(|l| l.position).min().unwrap_or(u64::MAX);
        let mut gone = 0;
        while self.entries.front().is_some_and(|e| e.0 < least) {
            gone += self.entries.pop_front().map_or(0, |e| e.1.bytes());
        }
        gone
    }
}

#[derive(Default)]
struct State {
    databases: HashMap<Oid, Log>,
    next: u64,
    /// In the logs.
    used: usize,
    /// For commits under way.
    reserved: usize,
    warned_us: i64,
}

/// The queue.
pub struct NotifyQueue {
    state: Mutex<State>,
    limit: usize,
}

impl NotifyQueue {
    /// An empty one that takes so many bytes.
    pub fn new(limit: usize) -> NotifyQueue {
        NotifyQueue { state: Mutex::new(RANK, State::default()), limit }
    }

    /// How full it is, from 0 to 1 (`pg_notification_queue_usage`).
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn usage(&self) -> f64 {
        self.state.lock().used as f64 / self.limit as f64
    }

    /// How many bytes it takes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets `bytes` aside for a commit; and a warning, if the queue is half full.
    ///
    /// # Errors
    /// `54000`: there is no room.
    fn reserve(&self, bytes: usize) -> Result<Option<SqlError>> {
        let mut state = self.state.lock();
        let total = state.used + state.reserved + bytes;
        if total > self.limit {
            return Err(full());
        }
        state.reserved += bytes;
        let now = base::sync::now_timestamp_us();
        // Whoever is slow fills it: with nobody behind, a large transaction alone is no reason.
        if state.used == 0 || total < self.limit / 2 || now - state.warned_us < WARN_EVERY_US {
            return Ok(None);
        }
        state.warned_us = now;
        Ok(Some(state.warning(total * 100 / self.limit)))
    }

    fn give_back(&self, bytes: usize) {
        self.state.lock().reserved -= bytes;
    }

    /// Makes a commit visible (`publish`), with what it changes in its session's listening, and says what it has to say, for which so
    /// many bytes were `reserved`. Returns the others who are to be woken for it.
    fn publish(&self, commit: &Commit, reserved: usize, publish: &mut dyn FnMut()) -> Vec<i32> {
        let Commit { who, pending, changes, said, .. } = commit;
        let mut state = self.state.lock();
        publish();
        let state = &mut *state;
        state.reserved -= reserved;
        if changes.is_empty() && !state.databases.contains_key(&who.database) {
            return Vec::new();
        }
        let log = state.databases.entry(who.database).or_default();
        for change in changes {
            log.change(who.pid, pending, change, state.next);
        }
        // Not before the last: who stops and listens again goes on where it was.
        if log.listeners.get(&who.pid).is_some_and(|l| l.channels.is_empty()) {
            log.listeners.remove(&who.pid);
        }
        let before = log.end();
        let channels: HashSet<&str> = said.iter().map(|n| &*n.channel).collect();
        let heard = |channel: &str| log.listeners.values().any(|l| l.channels.contains(channel));
        let heard: HashSet<&str> = channels.into_iter().filter(|c| heard(c)).collect();
        for notification in said.iter().filter(|n| heard.contains(&*n.channel)) {
            state.used += notification.bytes();
            log.entries.push_back((state.next, Arc::clone(notification)));
            state.next += 1;
        }
        let mut wake = Vec::new();
        for (pid, listening) in &mut log.listeners {
            if heard.iter().any(|c| listening.channels.contains(*c)) {
                if !listening.pending.swap(true, Ordering::SeqCst) && *pid != who.pid {
                    wake.push(*pid);
                }
            } else if listening.position >= before {
                // It has read everything and none of this is for it.
                listening.position = state.next;
            }
        }
        state.settle(who.database);
        wake
    }

    /// What `who` has not read yet, or the beginning of that: the rest is still pending then.
    pub fn read(&self, who: Listener) -> Vec<Arc<Notification>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(log) = state.databases.get_mut(&who.database) else { return Vec::new() };
        let end = log.end();
        let Some(listening) = log.listeners.get_mut(&who.pid) else { return Vec::new() };
        let from = log.entries.partition_point(|e| e.0 < listening.position);
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (place, notification) in log.entries.range(from..).take(READ_ENTRIES) {
            if listening.channels.contains(&notification.channel) {
                if bytes > READ_BYTES {
                    break;
                }
                bytes += notification.bytes();
                found.push(Arc::clone(notification));
            }
            listening.position = place + 1;
        }
        listening.pending.store(listening.position < end, Ordering::SeqCst);
        state.settle(who.database);
        found
    }

    /// A session that ends.
    pub fn forget(&self, who: Listener) {
        let mut state = self.state.lock();
        if let Some(log) = state.databases.get_mut(&who.database) {
            log.listeners.remove(&who.pid);
        }
        state.settle(who.database);
    }
}

impl Log {
    fn change(&mut self, pid: i32, pending: &Arc<AtomicBool>, change: &Change, next: u64) {
        match change {
            Change::Listen(channel) => {
                let listening = self.listeners.entry(pid).or_insert_with(|| Listening {
                    position: next,
                    channels: HashSet::new(),
                    pending: Arc::clone(pending),
                });
                listening.channels.insert(channel.clone());
            }
            Change::Unlisten(channel) => {
                if let Some(listening) = self.listeners.get_mut(&pid) {
                    listening.channels.remove(channel);
                }
            }
            Change::UnlistenAll => {
                if let Some(listening) = self.listeners.get_mut(&pid) {
                    listening.channels.clear();
                }
            }
        }
    }
}

impl State {
    /// Drops what nobody is going to read.
    fn settle(&mut self, database: Oid) {
        let Some(log) = self.databases.get_mut(&database) else { return };
        self.used -= log.trim();
        if log.listeners.is_empty() {
            self.databases.remove(&database);
        }
    }

    /// That the queue fills up, and who is behind.
    fn warning(&self, percent: usize) -> SqlError {
        let warning = SqlError::new(SqlState::WARNING, format!("NOTIFY queue is {percent}% full"));
        let behind = |log: &Log| {
            let end = log.end();
            let behind = log.listeners.iter().filter(|(_, l)| l.position < end);
            behind.map(|(pid, l)| (l.position, *pid)).min()
        };
        let Some((_, pid)) = self.databases.values().filter_map(behind).min() else {
            return warning;
        };
        warning
            .detail(format!(
                "The server process with PID {pid} is among those with the oldest transactions."
            ))
            .hint(
                "The NOTIFY queue cannot be emptied until that process ends its current transaction.",
            )
    }
}

fn full() -> base::Error {
    base::err!(PROGRAM_LIMIT_EXCEEDED, "too many notifications in the NOTIFY queue")
}
