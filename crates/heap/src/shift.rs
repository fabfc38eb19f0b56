//! Moving a page's xid base when a transaction id does not fit it.
//!
//! # Invariants
//! Ids too old for the new base are replaced by what they mean: frozen (seen by everybody) or aborted. An
//! id that some snapshot may still ask about, or a running transaction's, stays: the base moves only as far. What fits stays in any case, a
//! frozen version's too: a version's xmax and the next one's xmin are the same id afterwards, as before.
//! It moves down for an old transaction that comes to a page which was begun long after it. Where the ids that
//! must stay, and the one that comes, span more than 2^32, the page can't take it: an error.

use crate::apply::{self, Rebase, RebaseTo};
use crate::context::Writable;
use crate::heap::Heap;
use crate::record;
use crate::visibility_map::MapPin;
use base::{Result, Xid, bail};
use page::tuple::{
    CHAIN_SHORTENED, XMAX_INVALID, XMIN_FROZEN, XMIN_INVALID, initial_xid_base, xid_to_offset,
};
use txn::XidStatus;
use wal::BlockFlags;

impl Heap {
    /// Sees to it that `xid` can be written on the locked page.
    pub(crate) fn make_xid_fit<G: Writable>(&self, guard: &mut G, xid: Xid) -> Result<()> {
        if xid_to_offset(guard.xid_base(), xid).is_some() {
            return Ok(());
        }
        self.shift_base(guard, xid)
    }

    #[cold]
    fn shift_base<G: Writable>(&self, guard: &mut G, xid: Xid) -> Result<()> {
        let next = self.ctx.txns.next_xid();
        let oldest = self.ctx.txns.oldest_xmin_in(self.scope()).min(xid);
        // Everything below the new base + 3 must be history to all.
        let base = initial_xid_base(next).min(Xid(oldest.0.saturating_sub(3)));
        let fits = |xid: Xid| xid.0 <= base.0 + u64::from(u32::MAX);
        if guard.item_count() == 0 && fits(xid) {
            // The record of its first row says so.
            guard.set_xid_base(base);
            return Ok(());
        }
        let mut all_fit = fits(xid);
        let mut list = Vec::new();
        for offset in guard.offsets() {
            if !guard.item_id(offset).is_normal() {
                continue;
            }
            let t = guard.tuple(offset);
            let mask = t.infomask();
            let xmin = match mask & XMIN_FROZEN {
                // The version before it, if that is kept for a row lock, leads to it by this XID.
                XMIN_FROZEN if xid_to_offset(base, t.raw_xmin()).is_some() => RebaseTo::Keep,
                XMIN_FROZEN => RebaseTo::Frozen,
                XMIN_INVALID => RebaseTo::Aborted,
                _ => {
                    all_fit &= fits(t.raw_xmin());
                    self.rebase_to(base, t.raw_xmin())?
                }
            };
            // Forgotten, it would let any version be taken for the next one.
            all_fit &= t.infomask2() & CHAIN_SHORTENED == 0 || fits(t.next_xmin());
            let xmax = if mask & XMAX_INVALID != 0 {
                RebaseTo::Aborted
            } else {
                all_fit &= fits(t.xmax());
                self.rebase_to(base, t.xmax())?
            };
            if xmin != RebaseTo::Keep || xmax != RebaseTo::Keep {
                list.push(Rebase { offset, xmin, xmax });
            }
        }
        if !all_fit {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "transaction {xid} cannot write on {}: a snapshot or transaction is more than 2^32 transactions old",
                guard.page_tag()
            );
        }
        let data = record::encode_rebase(base, &list);
        let mut done = false;
        self.change_page(
            guard,
            &MapPin::none(),
            record::SHIFT_BASE,
            Xid::INVALID,
            false,
            |page| done = apply::shift_base(page, base, &list),
            |rec| {
                rec.data(&data);
            },
            BlockFlags::STANDARD,
        );
        assert!(done, "every id fits the base that was chosen for them");
        Ok(())
    }

    fn rebase_to(&self, base: Xid, xid: Xid) -> Result<RebaseTo> {
        if xid_to_offset(base, xid).is_some() {
            return Ok(RebaseTo::Keep);
        }
        Ok(match self.ctx.txns.status(xid)? {
            XidStatus::Committed(_) => RebaseTo::Frozen,
            _ => RebaseTo::Aborted,
        })
    }
}
