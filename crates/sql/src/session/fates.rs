//! Which tables a transaction has made and dropped: their counts ([`crate::activity`]) go when there is no table for them any more.
//!
//! # Invariants
//! A table's counts are forgotten when a transaction has ended after which it is not there: one that dropped it and committed, or that
//! made it and did not. Not before: what the transaction did to the table is counted at its end, and would make new counts for it,
//! which nobody would ever forget; and a drop that is rolled back leaves the counts as they were.

use base::Oid;

/// How much there was at some point of the transaction.
#[derive(Clone, Copy, Default, Debug)]
pub struct FatesMark {
    made: usize,
    dropped: usize,
}

/// The tables that the transaction under way has made, and has dropped.
#[derive(Default, Debug)]
pub struct Fates {
    made: Vec<Oid>,
    dropped: Vec<Oid>,
    /// Made after a savepoint that was rolled back to.
    unmade: Vec<Oid>,
}

impl Fates {
    /// `table` was made.
    pub fn made(&mut self, table: Oid) {
        self.made.push(table);
    }

    /// `table` was dropped.
    pub fn dropped(&mut self, table: Oid) {
        self.dropped.push(table);
    }

    /// To go back to.
    pub fn mark(&self) -> FatesMark {
        FatesMark { made: self.made.len(), dropped: self.dropped.len() }
    }

    /// What came after `mark` was rolled back.
    pub fn roll_back_to(&mut self, mark: FatesMark) {
        self.unmade.extend(self.made.drain(mark.made.min(self.made.len())..));
        self.dropped.truncate(mark.dropped);
    }

    /// The tables that are no more, now that the transaction has ended.
    pub fn end(&mut self, committed: bool) -> Vec<Oid> {
        let Fates { made, dropped, mut unmade } = std::mem::take(self);
        unmade.extend(if committed { dropped } else { made });
        unmade
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_depends_on_how_it_ended() {
        let fill = || {
            let mut f = Fates::default();
            f.made(Oid(1));
            f.dropped(Oid(2));
            let mark = f.mark();
            f.made(Oid(3));
            f.dropped(Oid(1));
            f.roll_back_to(mark);
            f.made(Oid(4));
            f.dropped(Oid(4));
            f
        };
        assert_eq!(fill().end(true), [Oid(3), Oid(2), Oid(4)]);
        assert_eq!(fill().end(false), [Oid(3), Oid(1), Oid(4)]);
        let mut f = fill();
        f.roll_back_to(FatesMark::default());
        assert_eq!(f.end(false), [Oid(3), Oid(1), Oid(4)]);
        assert!(f.end(true).is_empty());
    }
}
