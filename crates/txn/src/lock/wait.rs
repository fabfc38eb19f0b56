//! One backend's sleep.

use crate::rank;
use base::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Default)]
struct State {
    signalled: bool,
    poked: bool,
}

/// Where a backend sleeps while it waits for a lock, and where it is woken.
pub struct WaitCell {
    state: Mutex<State>,
    changed: Condvar,
}

impl Default for WaitCell {
    fn default() -> Self {
        WaitCell::new()
    }
}

impl WaitCell {
    /// A cell nobody waits in.
    pub fn new() -> WaitCell {
        WaitCell { state: Mutex::new(rank::WAIT, State::default()), changed: Condvar::new() }
    }
    /// Forgets earlier signals. Called under the table's lock, before anybody can signal.
    pub(crate) fn prepare(&self) {
        self.state.lock().signalled = false;
    }
    /// What is waited for is there.
    pub(crate) fn signal(&self) {
        self.state.lock().signalled = true;
        self.changed.notify_all();
    }
    /// Look at the cancel flag.
    pub(crate) fn notify(&self) {
        self.state.lock().poked = true;
        self.changed.notify_all();
    }
    /// Sleeps for at most `time`; true if signalled.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.signalled && !state.poked {
            state.wait_for(&self.changed, time);
        }
        state.poked = false;
        state.signalled
    }
}
