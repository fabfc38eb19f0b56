//! `transaction_timeout`: a session whose transaction lasts too long ends.
//!
//! # Invariants
//! - The clock runs from the transaction's begin, or from when the setting came, until it ends, whether a statement is under way or not;
//!   a change from one duration to another leaves it as it is.
//! - It is stopped before the commit: a transaction whose time was up by then is rolled back, and after that none is.
//! - What it has raised is gone with the transaction, unless that ended for it.

use super::{Session, SessionState};
use base::SqlError;
use base::sync::CancelReason;
use std::time::{Duration, Instant};

/// Until when the transaction under way may last.
pub(super) struct Clock {
    end: Instant,
    #[expect(dead_code, reason = "disarms when dropped")]
    armed: crate::timer::Armed,
}

const REASON: CancelReason = CancelReason::TransactionTimeout;

impl SessionState {
    /// Starts or stops the clock of the transaction that has begun, or whose settings may have changed.
    pub(super) fn mind_transaction_timeout(&self) {
        let after = self.derived().transaction_timeout;
        let mut clock = self.transaction_clock.borrow_mut();
        match after {
            Some(after) if clock.is_none() && self.txn_opt().is_some() => {
                let armed = self.cluster.timer.arm(after, &self.backend, REASON);
                *clock = Some(Clock { end: Instant::now() + after, armed });
            }
            Some(_) => {}
            None if clock.is_some() => {
                *clock = None;
                self.backend.cancel.withdraw(REASON);
            }
            None => {}
        }
    }

    /// A clock for a wait between two transactions of one statement; None where there is no limit.
    pub(crate) fn wait_clock(&self) -> Option<crate::timer::Armed> {
        let after = self.derived().transaction_timeout?;
        Some(self.cluster.timer.arm(after, &self.backend, REASON))
    }

    /// Stops the clock. True if the time was up.
    pub(super) fn stop_transaction_clock(&self) -> bool {
        let Some(clock) = self.transaction_clock.take() else { return false };
        // Disarmed first: what is withdrawn then does not come back.
        drop(clock);
        self.backend.cancel.withdraw(REASON)
    }
}

impl Session {
    /// How long the transaction may still last while the client is waited for, and the error that the session ends with then.
    pub(super) fn transaction_time_left(&self) -> Option<(Duration, SqlError)> {
        self.state.mind_transaction_timeout();
        let clock = self.state.transaction_clock.borrow();
        let left = clock.as_ref()?.end.saturating_duration_since(Instant::now());
        Some((left, REASON.error().to_sql_error()))
    }
}
