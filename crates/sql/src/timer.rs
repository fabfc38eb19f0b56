//! Statement timeouts: one thread that raises cancel flags when their time has come, and looks now and then after clients that may have gone.
//!
//! # Invariants
//! A timeout that is disarmed has raised its flag before that, or never will, so that it does not cancel the next statement: each
//! has a number, only the number that is still armed counts, and it raises while it is looked for.
//!
//! No handle of a backend is dropped under the lock: the last one gives up the backend's own locks.

use base::sync::{self, CancelReason, Condvar, Rank};
use base::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use txn::Backend;

const TIMER_RANK: Rank = Rank(2000);

/// Says without waiting whether it is time; takes no lock.
pub type Question = Arc<dyn Fn() -> bool + Send + Sync>;

/// What is to be raised.
struct Due {
    backend: Arc<Backend>,
    reason: CancelReason,
    /// Only when the answer is yes: asked again after so long.
    asks: Option<(Duration, Question)>,
}

#[derive(Default)]
struct State {
    /// By deadline and number.
    armed: BTreeMap<(Instant, u64), Due>,
    /// The deadlines, by number, of those that ask again.
    asking: HashMap<u64, Instant>,
    next: u64,
    stop: bool,
}

struct Shared {
    state: sync::Mutex<State>,
    changed: Condvar,
}

/// The timer thread.
pub struct Timer {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// An armed timeout; dropping it disarms it.
pub struct Armed {
    shared: Arc<Shared>,
    key: (Instant, u64),
    asks: bool,
}

impl Drop for Armed {
    fn drop(&mut self) {
        // What it had of the backend goes after the lock.
        let mut state = self.shared.state.lock();
        let (first, number) = self.key;
        let deadline = if self.asks { state.asking.remove(&number) } else { Some(first) };
        let gone = deadline.and_then(|deadline| state.armed.remove(&(deadline, number)));
        drop(state);
        drop(gone);
    }
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// No threads.
    pub fn start() -> Result<Timer> {
        let shared = Arc::new(Shared {
            state: sync::Mutex::new(TIMER_RANK, State::default()),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = sync::spawn("timer", move || run(&of_thread))
            .map_err(|e| Error::io("could not start a thread", e))?;
        Ok(Timer { shared, thread: Some(thread) })
    }

    /// Raises `reason` on `backend` after `after`, unless the result is dropped before.
    pub fn arm(&self, after: Duration, backend: &Arc<Backend>, reason: CancelReason) -> Armed {
        self.add(after, Due { backend: Arc::clone(backend), reason, asks: None })
    }

    /// Asks `question` every so often, and raises `reason` on `backend` when the answer is yes, unless the result is dropped before.
    pub fn ask(
        &self,
        every: Duration,
        backend: &Arc<Backend>,
        reason: CancelReason,
        question: &Question,
    ) -> Armed {
        let asks = Some((every, Arc::clone(question)));
        self.add(every, Due { backend: Arc::clone(backend), reason, asks })
    }

    fn add(&self, after: Duration, due: Due) -> Armed {
        let asks = due.asks.is_some();
        let mut state = self.shared.state.lock();
        state.next += 1;
        let key = (Instant::now() + after, state.next);
        if asks {
            state.asking.insert(key.1, key.0);
        }
        state.armed.insert(key, due);
        if state.armed.keys().next() == Some(&key) {
            self.shared.changed.notify_one();
        }
        Armed { shared: Arc::clone(&self.shared), key, asks }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared) {
    let mut state = shared.state.lock();
    while !state.stop {
        let now = Instant::now();
        match state.armed.first_key_value().map(|(k, _)| *k) {
            None => state.wait(&shared.changed),
            Some(key) if key.0 > now => {
                state.wait_for(&shared.changed, key.0 - now);
            }
            Some(key) => {
                let Some(due) = state.armed.remove(&key) else { continue };
                if let Some((every, question)) = &due.asks
                    && !question()
                {
                    let next = now + *every;
                    state.asking.insert(key.1, next);
                    state.armed.insert((next, key.1), due);
                    continue;
                }
                base::stop_point!("sql.timer.due");
                // Raised under the lock: who disarms finds it raised already, or never will.
                due.backend.cancel.raise(due.reason);
                state.asking.remove(&key.1);
                drop(state);
                due.backend.look_up();
                drop(due);
                state = shared.state.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Shared, State, TIMER_RANK, Timer, run};
    use base::sync::{self, CancelReason, Condvar};
    use base::{Lsn, Result, Xid};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    use txn::{BackendKind, LogWriter, TransactionManager, TxnConfig};

    struct NoLog;

    impl LogWriter for NoLog {
        fn insert(&self, _: u8, _: Xid, _: &[u8]) -> Lsn {
            Lsn(1)
        }
        fn flush(&self, _: Lsn) -> Result<()> {
            Ok(())
        }
        fn flushed_lsn(&self) -> Lsn {
            Lsn(1)
        }
    }

    /// A session that is ended may be gone while the timer still has it in hand: the end of what was a backend takes locks that come
    /// before the timer's. The other sessions keep their timeouts.
    #[test]
    fn a_backend_may_go_while_its_timeout_is_raised() {
        let disk = disk::sim::SimDisk::new(1);
        let txns = TransactionManager::open(disk, Arc::new(NoLog), TxnConfig::default()).unwrap();
        let shared = Arc::new(Shared {
            state: sync::Mutex::new(TIMER_RANK, State::default()),
            changed: Condvar::new(),
        });
        let timer = Timer { shared: Arc::clone(&shared), thread: None };
        std::thread::scope(|scope| {
            let due = base::stop::arm("sql.timer.due");
            let subject = due.subject();
            let thread = scope.spawn(move || subject.run(|| run(&shared)));
            let backend = txns.register_backend(BackendKind::Client);
            let armed = timer.arm(Duration::ZERO, &backend, CancelReason::TransactionTimeout);
            due.wait_reached();
            drop(backend);
            due.release();
            let backend = txns.register_backend(BackendKind::Client);
            let next = timer.arm(Duration::ZERO, &backend, CancelReason::StatementTimeout);
            while backend.cancel.reason().is_none() && !thread.is_finished() {
                std::thread::yield_now();
            }
            // Who disarms has nothing to give up under the lock either.
            let last = timer.arm(Duration::from_secs(3600), &backend, CancelReason::UserRequest);
            let found = backend.cancel.reason();
            drop(backend);
            drop((armed, next, last, timer));
            thread.join().unwrap();
            assert_eq!(found, Some(CancelReason::StatementTimeout));
        });
    }

    /// The statement ends when the timer has taken its timeout up and has not raised it: the next one has nothing of it.
    #[test]
    fn a_timeout_disarmed_is_never_raised_later() {
        let disk = disk::sim::SimDisk::new(1);
        let txns = TransactionManager::open(disk, Arc::new(NoLog), TxnConfig::default()).unwrap();
        let backend = txns.register_backend(BackendKind::Client);
        let shared = Arc::new(Shared {
            state: sync::Mutex::new(TIMER_RANK, State::default()),
            changed: Condvar::new(),
        });
        let timer = Timer { shared: Arc::clone(&shared), thread: None };
        std::thread::scope(|scope| {
            let due = base::stop::arm("sql.timer.due");
            let subject = due.subject();
            let thread = scope.spawn(move || subject.run(|| run(&shared)));
            let armed = timer.arm(Duration::ZERO, &backend, CancelReason::StatementTimeout);
            due.wait_reached();
            let (ends, ending) = mpsc::channel();
            let backend = &backend;
            let statement = scope.spawn(move || {
                ends.send(()).unwrap();
                drop(armed);
                backend.cancel.reason()
            });
            ending.recv().unwrap();
            // It is given time to go wrong; it can't go right before the release.
            (0..1000).for_each(|_| std::thread::yield_now());
            due.release();
            let found = statement.join().unwrap();
            drop(timer);
            thread.join().unwrap();
            assert_eq!(found, Some(CancelReason::StatementTimeout));
        });
    }
}
