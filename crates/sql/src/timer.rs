//! Statement timeouts: one thread that raises cancel flags when their time has come.
//!
//! # Invariants
//! A timeout that was disarmed before it fired never raises: each has a number, and only the number that
//! is still armed counts.

use base::sync::{self, CancelReason, Condvar, Rank};
use base::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use txn::Backend;

const TIMER_RANK: Rank = Rank(2000);

#[derive(Default)]
struct State {
    /// By deadline and number.
    armed: BTreeMap<(Instant, u64), (Arc<Backend>, CancelReason)>,
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
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.shared.state.lock().armed.remove(&self.key);
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
        let mut state = self.shared.state.lock();
        state.next += 1;
        let key = (Instant::now() + after, state.next);
        state.armed.insert(key, (Arc::clone(backend), reason));
        if state.armed.keys().next() == Some(&key) {
            self.shared.changed.notify_one();
        }
        Armed { shared: Arc::clone(&self.shared), key }
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
                if let Some((backend, reason)) = state.armed.remove(&key) {
                    drop(state);
                    backend.interrupt(reason);
                    state = shared.state.lock();
                }
            }
        }
    }
}
