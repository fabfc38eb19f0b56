//! Transactions of a procedure: those within the one around it, and the end of that one.
//!
//! # Invariants
//! A procedure's savepoints have no name, and are gone when it ends: no statement of the user's gets at them. Where it ends the transaction, it has none.

use super::Session;
use crate::parse::utility::TransactionModes;
use base::Result;

impl Session {
    /// A savepoint without a name, which nobody but a procedure gets at: how many were open before it.
    pub(crate) fn begin_nested(&mut self) -> Result<usize> {
        let depth = self.savepoints.len();
        self.open_savepoint("")?;
        Ok(depth)
    }

    /// Ends all savepoints but the first `depth`; what was done since stays done.
    pub(crate) fn end_nested(&mut self, depth: usize) -> Result<()> {
        self.release_to(depth)
    }

    /// Ends all savepoints but the first `depth`; what was done since is undone.
    pub(crate) fn undo_nested(&mut self, depth: usize) -> Result<()> {
        if self.savepoints.len() > depth {
            self.undo_to(depth)?;
            self.renew_env_if_set();
        }
        Ok(())
    }

    /// COMMIT within a procedure: what is open is committed, and the next transaction begins.
    pub(crate) fn commit_and_go_on(&mut self, chain: bool) -> Result<()> {
        let modes = self.modes_to_chain();
        let done = self.commit_transaction();
        self.go_on(chain.then_some(modes)).and(done)
    }

    /// ROLLBACK within a procedure.
    pub(crate) fn roll_back_and_go_on(&mut self, chain: bool) -> Result<()> {
        let modes = self.modes_to_chain();
        self.abort_transaction();
        self.go_on(chain.then_some(modes))
    }

    fn go_on(&mut self, modes: Option<TransactionModes>) -> Result<()> {
        self.ensure_transaction()?;
        match modes {
            Some(modes) => {
                self.chained = Some(modes);
                self.set_modes(&modes)
            }
            None => Ok(()),
        }
    }
}
