//! How long a page must have been left alone before it is frozen early.
//!
//! # Purpose
//! A page that is changed soon after it was frozen was frozen for nothing. Whether it will be nobody knows, but two things are known. Chance: where pages
//! are changed at random, one left alone for many times the mean gap between two changes of a page is one of those that do not change. And
//! experience: rates of change differ from page to page by orders of magnitude, and of such pages those left alone for so long are half of them left alone as
//! long again. So a page is frozen early only if it has been left alone for eight mean gaps *and* for four times the XIDs that are left until it has to be
//! frozen; or if, of the pages of this table that had been left alone for eight gaps, hardly any has been changed since (a table to which rows are added that are
//! changed while they are new, say).
//!
//! # Invariants
//! - Nothing here puts off what must be frozen: an aggressive vacuum freezes all that is older than its limit, and comes in time.
//! - When a page was last changed is told by its ids and its LSN: a row that was deleted, or updated onto another page, leaves no id behind once it is pruned away.
//! - A page whose LSN is no newer than a [`Mark`]'s was changed before that mark's XID at the latest.
//!
//! # Differs from PostgreSQL
//! All of it: `vacuum_freeze_min_age` alone decides there, and full-page images.

use base::{Lsn, Xid};
use page::Page;
use std::collections::VecDeque;

/// A page left alone for so many mean gaps has outlived chance (e^-8 of pages changed at random do).
pub const QUIET_GAPS: u64 = 8;
/// It must have been left alone for so many times the XIDs that are left until it has to be frozen: by the rule that what has lasted for `a` lasts
/// another `b` with the probability `a / (a + b)`, at most one in five is changed before then, and a fifth of the time is left to freeze in.
const OUTLIVES_DUE: u64 = 4;
/// Of pages left alone so long at most this part may change until they have to be frozen, for that not to be asked.
const LOSS: f64 = 0.05;
/// How much of what was learned before counts at the next vacuum.
const MEMORY: f64 = 0.75;
/// So many vacuums are remembered.
const MARKS: usize = 64;

/// The end of a vacuum.
#[derive(Clone, Copy, Debug)]
struct Mark {
    xid: Xid,
    lsn: Lsn,
    /// Pages that it found changed since the one before.
    changed: u64,
}

/// What is remembered of how a table's pages change, from vacuum to vacuum.
#[derive(Clone, Debug, Default)]
pub struct PageHistory {
    marks: VecDeque<Mark>,
    /// Of pages left alone for eight gaps, those that were changed after all.
    roused: f64,
    /// How many such pages there were, each as often as XIDs passed.
    watched: f64,
}

/// What to watch for, while a vacuum reads pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Watch {
    /// The vacuum before ended here,
    since_lsn: Lsn,
    /// and then.
    since_xid: Xid,
    /// Pages not changed from here until then had been left alone.
    quiet_before: Xid,
    /// So many had.
    quiet_pages: u64,
}

/// What a vacuum has seen of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Pages changed since the vacuum before.
    pub changed_pages: u64,
    /// Of these, such as had been left alone for long.
    pub roused_pages: u64,
}

/// When a page is quiet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quiet {
    /// It was left alone for so many XIDs; 0: it need not have been.
    pub age: u64,
    /// Its LSN is not newer.
    pub lsn: Lsn,
}

impl Quiet {
    /// Any page is.
    pub const ANY: Quiet = Quiet { age: 0, lsn: Lsn(u64::MAX) };
}

impl PageHistory {
    /// When a page is quiet in a table whose pages are changed every `gap` XIDs on average and that comes of age in `due_in`.
    pub fn quiet(&self, gap: u64, due_in: u64, next: Xid) -> Quiet {
        let outlived = QUIET_GAPS.saturating_mul(gap);
        let lost = (self.roused + 1.0) * due_in as f64;
        let age = if lost <= LOSS * self.watched {
            outlived
        } else {
            outlived.max(OUTLIVES_DUE.saturating_mul(due_in))
        };
        Quiet { age, lsn: self.lsn_before(next.0.saturating_sub(age)) }
    }

    /// The newest LSN that a page can have that was last changed before `xid`, as far as is remembered.
    fn lsn_before(&self, xid: u64) -> Lsn {
        let known = self.marks.iter().rev().find(|m| m.xid.0 <= xid);
        // What was before the first mark may be as old as its ids say.
        known.or(self.marks.front()).map_or(Quiet::ANY.lsn, |m| m.lsn)
    }

    /// What to watch for in a table of `pages` pages; `None`: this is its first vacuum.
    pub fn watch(&self, gap: u64, pages: u64) -> Option<Watch> {
        let last = self.marks.back()?;
        let quiet_before = last.xid.0.saturating_sub(QUIET_GAPS.saturating_mul(gap));
        let reaches_back = self.marks.front().is_some_and(|m| m.xid.0 <= quiet_before);
        let since = self.marks.iter().rev().take_while(|m| m.xid.0 > quiet_before);
        let changed: u64 = since.map(|m| m.changed).sum();
        Some(Watch {
            since_lsn: last.lsn,
            since_xid: last.xid,
            quiet_before: if gap > 0 && reaches_back { Xid(quiet_before) } else { Xid(0) },
            quiet_pages: if gap > 0 && reaches_back { pages.saturating_sub(changed) } else { 0 },
        })
    }

    /// A vacuum that watched and saw this has ended, when the next XID was `xid` and the log had come to `lsn`.
    pub fn note(&mut self, watch: Option<Watch>, seen: Seen, pages: u64, xid: Xid, lsn: Lsn) {
        if let Some(watch) = watch {
            let passed = xid.0.saturating_sub(watch.since_xid.0);
            self.roused = MEMORY * self.roused + seen.roused_pages as f64;
            self.watched = MEMORY * self.watched + watch.quiet_pages as f64 * passed as f64;
        }
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        let changed = if watch.is_some() { seen.changed_pages } else { pages };
        // Of most tables few are made, and there may be very many tables.
        if self.marks.len() < 4 {
            self.marks.reserve_exact(1);
        }
        self.marks.push_back(Mark { xid, lsn, changed });
    }
}

impl Watch {
    /// Looks at a page before anything is done to it.
    pub fn look(&self, page: &Page, seen: &mut Seen) {
        if page.lsn() <= self.since_lsn {
            return;
        }
        seen.changed_pages += 1;
        if self.quiet_before > Xid(0) {
            let before = newest_id(page, self.since_xid);
            seen.roused_pages += u64::from(before.is_valid() && before < self.quiet_before);
        }
    }
}

/// The newest id on `page` that is older than `limit`.
fn newest_id(page: &Page, limit: Xid) -> Xid {
    let normal = page.offsets().filter(|o| page.item_id(*o).is_normal());
    let ids = normal.flat_map(|o| {
        let tuple = page.tuple(o);
        [tuple.raw_xmin(), tuple.xmax()]
    });
    ids.filter(|x| *x < limit).max().unwrap_or(Xid::INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::OffsetNumber;
    use page::tuple::{PhysicalAttr, TupleDesc, form_tuple};

    /// A vacuum every 1,000 XIDs, of 1,000 pages changed every 100 XIDs on average.
    fn watched(roused: impl Fn(u64) -> u64, vacuums: u64) -> PageHistory {
        let mut history = PageHistory::default();
        for n in 1..=vacuums {
            let watch = history.watch(100, 1000);
            let seen = Seen { changed_pages: 50, roused_pages: roused(n) };
            history.note(watch, seen, 1000, Xid(n * 1000), Lsn(n * 10));
        }
        history
    }

    #[test]
    fn a_page_must_have_outlived_chance_and_what_is_left() {
        let fresh = PageHistory::default();
        let age = |due_in| fresh.quiet(100, due_in, Xid(1 << 40)).age;
        assert_eq!((age(0), age(400), age(100_000)), (800, 1600, 400_000));
        assert_eq!(age(100), 800, "what is left is less than chance needs");
        assert_eq!(fresh.quiet(100, 0, Xid(5000)).lsn, Lsn(u64::MAX));
        assert_eq!(fresh.watch(100, 1000), None);
    }

    #[test]
    fn pages_that_prove_to_be_left_alone_are_frozen_soon() {
        // None of the 950 has been changed in all these XIDs.
        let calm = watched(|_| 0, 30);
        assert_eq!(calm.quiet(100, 100_000, Xid(30_000)).age, 800);
        // One in a hundred is, every 1,000 XIDs: in 100,000 most of them are.
        let lively = watched(|_| 10, 30);
        assert_eq!(lively.quiet(100, 100_000, Xid(30_000)).age, 400_000);
        assert_eq!(lively.quiet(100, 10_000, Xid(30_000)).age, 40_000);
        assert_eq!(lively.quiet(100, 300, Xid(30_000)).age, 800);
        // What was learned is forgotten when it is no longer so.
        let now_calm = watched(|n| if n < 30 { 10 } else { 0 }, 60);
        assert_eq!(now_calm.quiet(100, 100_000, Xid(60_000)).age, 800);
        // Two vacuums are not enough to tell.
        assert_eq!(watched(|_| 0, 2).quiet(100, 100_000, Xid(2000)).age, 400_000);
    }

    #[test]
    fn the_log_tells_when_ids_do_not() {
        let history = watched(|_| 0, 30);
        // Not changed for 800 XIDs: before 29,200, so before the vacuum that ended at 29,000.
        assert_eq!(history.quiet(100, 0, Xid(30_000)).lsn, Lsn(290));
        assert_eq!(history.quiet(0, 0, Xid(30_000)).lsn, Lsn(300));
        // Before anything that is remembered: what the log had come to then.
        assert_eq!(history.quiet(1000, 100_000, Xid(3000)).lsn, Lsn(10));
        let many = watched(|_| 0, 500);
        assert_eq!((many.marks.len(), many.marks[0].xid), (MARKS, Xid(437_000)));
        // It is not known how many pages were left alone for longer than is remembered.
        assert_eq!(many.watch(100_000, 1000).map(|w| w.quiet_pages), Some(0));
        assert_eq!(many.watch(100, 1000).map(|w| w.quiet_pages), Some(950));
        // Nor, where hardly a page changes, what is quiet there.
        let unknown = |gap| many.watch(gap, 100_000).map(|w| (w.quiet_before, w.quiet_pages));
        assert_eq!(unknown(100), Some((Xid(499_200), 99_950)));
        assert_eq!([0, 100_000].map(unknown), [Some((Xid(0), 0)); 2]);
    }

    /// A page with one row that `made` and `removed` (0: nobody) are the transactions of, or none.
    fn page(row: Option<(u32, u32)>, lsn: u64) -> Box<Page> {
        let mut page = Page::new_zeroed();
        page.init(0);
        page.set_lsn(Lsn(lsn));
        if let Some((made, removed)) = row {
            let desc = TupleDesc::new(vec![PhysicalAttr { len: 8, align: 8 }]);
            let at = OffsetNumber(1);
            assert!(page.put_item(at, &form_tuple(&desc, &[Some(&[1; 8])])));
            page.tuple_mut(at).set_xmin_offset(made);
            page.tuple_mut(at).set_xmax_offset(removed);
        }
        page
    }

    #[test]
    fn a_page_is_roused_that_was_left_alone_until_the_vacuum_before() {
        // The vacuum before ended at 30,000, when the log had come to 300; what had been quiet then is from before 29,200.
        let watch = watched(|_| 0, 30).watch(100, 1000).unwrap();
        let seen = |row, lsn| {
            let mut seen = Seen::default();
            watch.look(&page(row, lsn), &mut seen);
            (seen.changed_pages, seen.roused_pages)
        };
        assert_eq!(seen(Some((29_000, 0)), 300), (0, 0), "as it was then");
        assert_eq!(seen(Some((29_000, 0)), 301), (1, 1));
        assert_eq!(seen(Some((29_200, 0)), 301), (1, 0));
        assert_eq!(
            seen(Some((29_000, 29_500)), 301),
            (1, 0),
            "who removes a row changes its page, too"
        );
        // What has been done since says nothing of before; where that is all there is, nothing is known.
        assert_eq!(seen(Some((29_000, 30_000)), 301), (1, 1));
        assert_eq!(seen(Some((30_000, 0)), 301), (1, 0));
        assert_eq!(seen(None, 301), (1, 0));
    }
}
