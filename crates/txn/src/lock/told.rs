//! What the log says of waits for locks (`log_lock_waits`), in PostgreSQL's words. The rows at whose sake a transaction is waited for are
//! named by who waits: [`base::log::amid`].

use super::table::{Table, WaitingFor};
use super::{LockMode, LockTag, TransactionTarget};
use crate::backend::Backend;
use base::Xid;
use base::sync::Arc;
use std::sync::atomic::Ordering;

/// What a backend waits for.
pub(super) struct Waits {
    tag: LockTag,
    mode: LockMode,
    holders: Vec<i32>,
    queue: Vec<i32>,
}

/// What `backend` waits for now; None: nothing any more.
pub(super) fn of(table: &Table, backend: &Backend, all: &[Arc<Backend>]) -> Option<Waits> {
    let (tag, mode, queue) = match table.waiting(backend.pid)? {
        WaitingFor::Lock(tag, mode) => {
            let object = table.objects.get(&tag)?;
            let queue: Vec<i32> = object.queue.iter().map(|w| w.backend.pid).collect();
            let holders = object.holders.iter().map(|h| h.0).filter(|h| !queue.contains(h));
            return Some(Waits { tag, mode, holders: holders.collect(), queue });
        }
        WaitingFor::Transaction(target) => {
            let tag = match target {
                TransactionTarget::Xid(xid) => LockTag::Transaction(xid),
                TransactionTarget::Virtual(pid, number) => {
                    let slot = all.iter().find(|b| b.pid == pid).map_or(0, |b| b.virtual_xid().0);
                    LockTag::Virtual(slot, number)
                }
            };
            (tag, LockMode::Share, table.waiters_for(target))
        }
    };
    let holders = table.blockers(backend, all).iter().map(|b| b.pid).collect();
    Some(Waits { tag, mode, holders, queue })
}

impl Waits {
    /// It waits on.
    pub(super) fn tell(&self, backend: &Backend, undone: bool) {
        if undone {
            self.say(backend, "avoided deadlock for", " by rearranging queue order", true);
        }
        self.say(backend, "still waiting for", "", true);
    }

    /// It waits for itself, and is out of the queue.
    pub(super) fn tell_deadlock(mut self, backend: &Backend) {
        self.queue.retain(|pid| *pid != backend.pid);
        self.say(backend, "detected deadlock while waiting for", "", true);
    }

    /// It has what it waited for.
    pub(super) fn tell_end(&self, backend: &Backend) {
        self.say(backend, "acquired", "", false);
    }

    fn say(&self, backend: &Backend, what: &str, how: &str, whom: bool) {
        let since = backend.wait_started_us.load(Ordering::Relaxed) as i64;
        let us = base::sync::now_timestamp_us().saturating_sub(since).max(0);
        let message = format!(
            "process {} {what} {} on {}{how} after {}.{:03} ms",
            backend.pid,
            self.mode.name(),
            self.tag,
            us / 1000,
            us % 1000
        );
        let several = if self.holders.len() == 1 { "Process" } else { "Processes" };
        let detail = whom.then(|| {
            format!(
                "{several} holding the lock: {}. Wait queue: {}.",
                listed(&self.holders),
                listed(&self.queue)
            )
        });
        base::log::write_amid(&message, detail.as_deref());
    }
}

/// What the log says of a row lock that a transaction in progress is in the way of and that is not waited for.
pub(super) fn tell_failure(backend: &Backend, xid: Xid, holder: Option<i32>, queue: &[i32]) {
    let message = format!(
        "process {} could not obtain {} on {}",
        backend.pid,
        LockMode::Share.name(),
        LockTag::Transaction(xid)
    );
    let holder = holder.map(|pid| pid.to_string()).unwrap_or_default();
    let detail = format!("Process holding the lock: {holder}, Wait queue: {}.", listed(queue));
    base::log::write_amid(&message, Some(&detail));
}

fn listed(pids: &[i32]) -> String {
    pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

/// A deadlock's lines with what each of its processes runs, which is for the log only.
pub(super) fn with_statements(detail: &str, pids: &[i32], all: &[Arc<Backend>]) -> String {
    let mut out = detail.to_owned();
    for pid in pids {
        let statement = match all.iter().find(|b| b.pid == *pid) {
            Some(backend) => Arc::clone(&backend.activity.lock().query),
            None => continue,
        };
        out.push_str(&format!("\nProcess {pid}: {statement}"));
    }
    out
}
