//! Tuples between two addresses.
//!
//! # Purpose
//! What a scan of a range reads: the pages between its ends, of which only the first and the last may hold tuples beyond it.

use crate::scan::BlockRange;
use base::{BlockNumber, Tid};

/// The addresses from one on (inclusive) to another (exclusive). Each is a number here, block before offset, so that
/// there is always one that is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TidRange {
    from: u64,
    to: u64,
}

fn number(tid: Tid) -> u64 {
    u64::from(tid.block.0) << 16 | u64::from(tid.offset.0)
}

impl TidRange {
    /// All addresses.
    pub const ALL: TidRange = TidRange { from: 0, to: u64::MAX };
    /// None.
    pub const NONE: TidRange = TidRange { from: 0, to: 0 };

    /// Of these, those from `tid` on; without `tid` itself unless `inclusive`.
    #[must_use]
    pub fn from(self, tid: Tid, inclusive: bool) -> TidRange {
        TidRange { from: self.from.max(number(tid) + u64::from(!inclusive)), ..self }
    }
    /// Of these, those up to `tid`; without `tid` itself unless `inclusive`.
    #[must_use]
    pub fn up_to(self, tid: Tid, inclusive: bool) -> TidRange {
        TidRange { to: self.to.min(number(tid) + u64::from(inclusive)), ..self }
    }

    /// The blocks that have addresses of it, of a relation of so many.
    pub fn blocks(self, of: BlockNumber) -> BlockRange {
        let block = |n: u64| BlockNumber(u32::try_from(n).unwrap_or(u32::MAX).min(of.0));
        if self.from >= self.to {
            return BlockRange { start: BlockNumber(0), end: BlockNumber(0) };
        }
        BlockRange { start: block(self.from >> 16), end: block(((self.to - 1) >> 16) + 1) }
    }
    /// Is an address in it?
    #[inline]
    pub fn holds(self, tid: Tid) -> bool {
        (self.from..self.to).contains(&number(tid))
    }
    /// Are all addresses of a block?
    #[inline]
    pub fn holds_block(self, block: BlockNumber) -> bool {
        let first = u64::from(block.0) << 16;
        self.from <= first && first + 0xffff < self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::OffsetNumber;

    fn tid(block: u32, offset: u16) -> Tid {
        Tid::new(BlockNumber(block), OffsetNumber(offset))
    }
    fn blocks(range: TidRange, of: u32) -> (u32, u32) {
        let b = range.blocks(BlockNumber(of));
        (b.start.0, b.end.0)
    }

    #[test]
    fn ends_are_in_it_or_not() {
        let all = TidRange::ALL;
        let (low, high) = (tid(3, 5), tid(4, 7));
        let closed = all.from(low, true).up_to(high, true);
        let open = all.from(low, false).up_to(high, false);
        for (at, closed_has, open_has) in [
            (tid(3, 4), false, false),
            (low, true, false),
            (tid(3, 6), true, true),
            (tid(4, 6), true, true),
            (high, true, false),
            (tid(4, 8), false, false),
        ] {
            assert_eq!((closed.holds(at), open.holds(at)), (closed_has, open_has), "{at}");
        }
        // The narrowest of several bounds is what counts, in whatever order they come.
        assert_eq!(open.from(low, true).up_to(high, true), open);
        assert_eq!(all.from(tid(1, 1), true).from(low, false).up_to(high, false), open);
    }

    #[test]
    fn blocks_are_those_with_addresses_of_it() {
        let all = TidRange::ALL;
        assert_eq!(blocks(all, 9), (0, 9));
        assert_eq!(blocks(TidRange::NONE, 9), (0, 0));
        // (5,0) is on block 5 still, what is below it is not.
        assert_eq!(blocks(all.from(tid(3, 0), true).up_to(tid(5, 0), false), 9), (3, 5));
        assert_eq!(blocks(all.from(tid(3, 0), true).up_to(tid(5, 0), true), 9), (3, 6));
        assert_eq!(blocks(all.from(tid(3, u16::MAX), false), 9), (4, 9));
        assert_eq!(blocks(all.up_to(tid(0, 0), false), 9), (0, 0));
        // Beyond the end, and the wrong way round.
        assert_eq!(blocks(all.from(tid(u32::MAX, u16::MAX), false), 9), (9, 9));
        assert_eq!(blocks(all.up_to(tid(u32::MAX, u16::MAX), true), 9), (0, 9));
        assert_eq!(blocks(all.from(tid(5, 0), true).up_to(tid(3, 0), true), 9), (0, 0));
    }

    #[test]
    fn only_blocks_at_the_ends_are_held_in_part() {
        let range = TidRange::ALL.from(tid(3, 1), true).up_to(tid(6, 0), false);
        let whole = |b| range.holds_block(BlockNumber(b));
        assert_eq!([2, 3, 4, 5, 6].map(whole), [false, false, true, true, false]);
        assert!(TidRange::ALL.holds_block(BlockNumber(u32::MAX)));
    }
}
