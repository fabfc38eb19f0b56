//! Moving a page's xid base when a transaction id does not fit it.
//!
//! # Invariants
//! Ids too old for the new base are replaced by what they mean: frozen (seen by everybody) or aborted. An
//! id that some snapshot may still ask about, or a running transaction's, stays: the base moves only as far.

use crate::apply::{self, Rebase, RebaseTo};
use crate::context::Writable;
use crate::heap::Heap;
use crate::record;
use crate::visibility_map::MapPin;
use base::{Result, Xid, bail};
use page::tuple::{XMAX_INVALID, XMIN_FROZEN, XMIN_INVALID, xid_to_offset};
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
        let oldest = self.ctx.txns.oldest_xmin_in(self.scope());
        // Everything below the new base + 3 must be history to all.
        let base = Xid((xid.0.saturating_sub(1 << 31)).min(oldest.0.saturating_sub(3)));
        if xid_to_offset(base, xid).is_none() {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "transaction {xid} cannot write on {}: a snapshot or transaction is more than 2^32 transactions old",
                guard.page_tag()
            );
        }
        let mut list = Vec::new();
        for offset in guard.offsets() {
            if !guard.item_id(offset).is_normal() {
                continue;
            }
            let t = guard.tuple(offset);
            let mask = t.infomask();
            let xmin = match mask & XMIN_FROZEN {
                XMIN_FROZEN => RebaseTo::Frozen,
                XMIN_INVALID => RebaseTo::Aborted,
                _ => self.rebase_to(base, t.raw_xmin())?,
            };
            let xmax = if mask & XMAX_INVALID != 0 {
                RebaseTo::Aborted
            } else {
                self.rebase_to(base, t.xmax())?
            };
            if xmin != RebaseTo::Keep || xmax != RebaseTo::Keep {
                list.push(Rebase { offset, xmin, xmax });
            }
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
