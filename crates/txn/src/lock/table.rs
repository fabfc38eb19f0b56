//! The shared lock table: who holds, who waits, who is next.
//!
//! # Invariants
//! A waiter is in one queue only, and `waiting` says in which. A queue is looked at whenever something is released.

use super::held::{ModeSet, TagMap};
use super::{LockMode, LockTag, TransactionTarget, Wait};
use crate::backend::Backend;
use base::Xid;
use base::sync::Arc;
use std::collections::HashMap;

/// What a backend waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitingFor {
    /// A lock.
    Lock(LockTag, LockMode),
    /// A transaction's end.
    Transaction(TransactionTarget),
}

pub(super) struct Waiter {
    pub backend: Arc<Backend>,
    pub mode: LockMode,
    /// Soon it goes away by itself: it is in nobody's way for good.
    pub brief: bool,
}

#[derive(Default)]
pub(super) struct Object {
    pub holders: Vec<(i32, ModeSet)>,
    pub queue: Vec<Waiter>,
}

impl Object {
    pub fn modes_of(&self, pid: i32) -> ModeSet {
        self.holders.iter().find(|h| h.0 == pid).map(|h| h.1).unwrap_or_default()
    }
    fn blocked(&self, pid: i32, mode: LockMode) -> bool {
        self.holders.iter().any(|h| h.0 != pid && h.1.conflicts_with(mode))
    }
    fn grant(&mut self, pid: i32, modes: ModeSet) {
        match self.holders.iter_mut().find(|h| h.0 == pid) {
            Some(h) => h.1.extend(modes),
            None => self.holders.push((pid, modes)),
        }
    }
    /// Grants to those at the head of the queue whom nobody is in the way of any more; who they are.
    pub fn wake(&mut self) -> Vec<Arc<Backend>> {
        let mut woken = Vec::new();
        let mut ahead = ModeSet::default();
        let mut i = 0;
        while i < self.queue.len() {
            let (pid, mode) = (self.queue[i].backend.pid, self.queue[i].mode);
            if !ahead.conflicts_with(mode) && !self.blocked(pid, mode) {
                let waiter = self.queue.remove(i);
                self.grant(pid, ModeSet::of(mode));
                woken.push(waiter.backend);
            } else {
                ahead.extend(ModeSet::of(mode));
                i += 1;
            }
        }
        woken
    }
}

/// The table.
#[derive(Default)]
pub struct Table {
    pub(super) objects: TagMap<Object>,
    transactions: HashMap<TransactionTarget, Vec<Arc<Backend>>>,
    waiting: HashMap<i32, WaitingFor>,
}

impl Table {
    /// How many things are locked in it.
    pub fn len(&self) -> usize {
        self.objects.len()
    }
    /// Is nothing locked?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
    /// Is this one?
    pub fn contains(&self, tag: &LockTag) -> bool {
        self.objects.contains_key(tag)
    }

    /// Notes a lock that the fast path had granted.
    pub fn add_holder(&mut self, tag: LockTag, backend: &Backend, modes: ModeSet) {
        self.objects.entry(tag).or_default().grant(backend.pid, modes);
    }

    /// Grants at once if possible (true), else joins the queue if `wait` says so.
    pub fn request(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        backend: &Arc<Backend>,
        wait: Wait,
    ) -> bool {
        let object = self.objects.entry(tag).or_default();
        let pid = backend.pid;
        let mine = object.modes_of(pid);
        let mut ahead = ModeSet::default();
        let mut place = object.queue.len();
        for (i, waiter) in object.queue.iter().enumerate() {
            // Whoever waits for what we hold can't go before us.
            if mine.conflicts_with(waiter.mode) {
                place = i;
                break;
            }
            ahead.extend(ModeSet::of(waiter.mode));
        }
        if !ahead.conflicts_with(mode) && !object.blocked(pid, mode) {
            object.grant(pid, ModeSet::of(mode));
            return true;
        }
        if wait != Wait::NoWait {
            let brief = matches!(wait, Wait::AtMost(_));
            object.queue.insert(place, Waiter { backend: backend.clone(), mode, brief });
            self.waiting.insert(pid, WaitingFor::Lock(tag, mode));
        }
        false
    }

    /// Does anybody wait here for what `pid` holds, and hold here what keeps `pid` from getting `mode`? Neither will ever go on.
    pub fn is_facing(&self, tag: &LockTag, mode: LockMode, pid: i32) -> bool {
        let Some(object) = self.objects.get(tag) else { return false };
        let mine = object.modes_of(pid);
        object.queue.iter().any(|w| {
            let other = w.backend.pid;
            other != pid
                && !w.brief
                && mine.conflicts_with(w.mode)
                && object.modes_of(other).conflicts_with(mode)
        })
    }

    /// Leaves the queue; true if the lock has been granted meanwhile.
    pub fn cancel_wait(&mut self, tag: &LockTag, backend: &Backend) -> bool {
        let Some(WaitingFor::Lock(..)) = self.waiting.remove(&backend.pid) else { return true };
        if let Some(object) = self.objects.get_mut(tag) {
            object.queue.retain(|w| w.backend.pid != backend.pid);
        }
        self.wake(tag);
        self.forget_if_empty(tag);
        false
    }

    /// Drops the entry of a tag that nobody holds or wants.
    pub fn forget_if_empty(&mut self, tag: &LockTag) {
        if self.objects.get(tag).is_some_and(|o| o.holders.is_empty() && o.queue.is_empty()) {
            self.objects.remove(tag);
        }
    }

    /// Looks at the queue of `tag`.
    pub fn wake(&mut self, tag: &LockTag) {
        let Some(object) = self.objects.get_mut(tag) else { return };
        for backend in object.wake() {
            self.waiting.remove(&backend.pid);
            backend.wait.signal();
        }
    }

    /// Gives back what it needed when there were many more locks.
    pub fn give_back_memory(&mut self) {
        if self.objects.capacity() / 8 > self.objects.len() {
            self.objects.shrink_to_fit();
        }
    }

    /// Takes modes from a holder.
    pub fn release(&mut self, tag: &LockTag, pid: i32, modes: ModeSet) {
        let Some(object) = self.objects.get_mut(tag) else { return };
        if let Some(i) = object.holders.iter().position(|h| h.0 == pid) {
            object.holders[i].1.0 &= !modes.0;
            if object.holders[i].1.is_empty() {
                object.holders.swap_remove(i);
            }
        }
        if object.queue.is_empty() {
            if object.holders.is_empty() {
                self.objects.remove(tag);
            }
        } else {
            self.wake(tag);
        }
    }

    /// Does anybody wait for it?
    pub fn has_waiters(&self, tag: &LockTag) -> bool {
        self.objects.get(tag).is_some_and(|o| !o.queue.is_empty())
    }

    /// In which modes this backend holds it, the fast path apart.
    pub fn modes_of(&self, tag: &LockTag, pid: i32) -> ModeSet {
        self.objects.get(tag).map(|o| o.modes_of(pid)).unwrap_or_default()
    }

    /// All that is held here, by who holds it.
    pub fn held(&self) -> HashMap<i32, Vec<(LockTag, ModeSet)>> {
        let mut out: HashMap<i32, Vec<_>> = HashMap::new();
        for (tag, object) in &self.objects {
            for (pid, modes) in object.holders.iter().filter(|h| !h.1.is_empty()) {
                out.entry(*pid).or_default().push((*tag, *modes));
            }
        }
        out
    }

    /// What the backend waits for.
    pub fn waiting(&self, pid: i32) -> Option<WaitingFor> {
        self.waiting.get(&pid).copied()
    }

    /// Those who wait for a transaction's end.
    pub fn waiters_for(&self, target: TransactionTarget) -> Vec<i32> {
        let waiting = self.transactions.get(&target);
        waiting.map_or_else(Vec::new, |w| w.iter().map(|b| b.pid).collect())
    }

    /// Does anybody wait for the end of one of these transactions?
    pub fn awaits(&self, of: impl Fn(Xid) -> bool) -> bool {
        self.transactions.keys().any(|t| matches!(t, TransactionTarget::Xid(xid) if of(*xid)))
    }

    /// Joins those who wait for a transaction's end.
    pub fn join_waiters(&mut self, target: TransactionTarget, backend: &Arc<Backend>) {
        self.transactions.entry(target).or_default().push(backend.clone());
        self.waiting.insert(backend.pid, WaitingFor::Transaction(target));
    }

    /// Leaves them.
    pub fn stop_waiting_for(&mut self, target: TransactionTarget, backend: &Backend) {
        self.waiting.remove(&backend.pid);
        if let Some(list) = self.transactions.get_mut(&target) {
            list.retain(|b| b.pid != backend.pid);
            if list.is_empty() {
                self.transactions.remove(&target);
            }
        }
    }

    /// Signals those who wait for a transaction's end.
    pub fn wake_waiters(&self, target: TransactionTarget) {
        for backend in self.transactions.get(&target).into_iter().flatten() {
            backend.wait.signal();
        }
    }

    /// Those whom a backend waits for: holders in the way, waiters ahead in the way, the owner of a transaction.
    pub fn blockers(&self, backend: &Backend, all: &[Arc<Backend>]) -> Vec<Arc<Backend>> {
        let pids: Vec<i32> = match self.waiting(backend.pid) {
            None => Vec::new(),
            Some(WaitingFor::Lock(tag, mode)) => {
                let Some(object) = self.objects.get(&tag) else { return Vec::new() };
                let holders = object
                    .holders
                    .iter()
                    .filter(|h| h.0 != backend.pid && h.1.conflicts_with(mode))
                    .map(|h| h.0);
                let ahead = object
                    .queue
                    .iter()
                    .take_while(|w| w.backend.pid != backend.pid)
                    .filter(|w| w.mode.conflicts(mode))
                    .map(|w| w.backend.pid);
                holders.chain(ahead).collect()
            }
            Some(WaitingFor::Transaction(TransactionTarget::Xid(xid))) => {
                all.iter().filter(|b| b.is_mine(xid)).map(|b| b.pid).collect()
            }
            Some(WaitingFor::Transaction(TransactionTarget::Virtual(pid, _))) => vec![pid],
        };
        let mut out: Vec<Arc<Backend>> = Vec::new();
        for pid in pids {
            if let Some(b) = all.iter().find(|b| b.pid == pid)
                && b.pid != backend.pid
                && !out.iter().any(|o| o.pid == pid)
            {
                out.push(b.clone());
            }
        }
        out
    }
}
