//! Freezing over a table's life: many vacuums under a load, with what each learns handed on to the next.

use crate::support::World;
use base::BlockNumber;
use heap::MapPin;
use heap::visibility_map::ALL_FROZEN;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashSet;
use vacuum::quiet::{PageHistory, QUIET_GAPS, Quiet};
use vacuum::{VacuumMode, VacuumOptions, VacuumReport};

/// XIDs between two vacuums, and at what age a table comes due.
const XIDS: u64 = 1000;
const DUE: u64 = 38_000;

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Left alone for eight mean gaps.
    Gaps,
    /// As it is.
    History,
}

/// A table with its history.
struct Life {
    w: World,
    rule: Rule,
    history: PageHistory,
    /// Of each page that was frozen before it had to be: when it would have had to be.
    frozen_until: Vec<Option<u64>>,
    early: u64,
    /// Of those, pages changed before then.
    wasted: u64,
    /// Of the table.
    greatest_age: u64,
    reports: Vec<VacuumReport>,
}

impl Life {
    fn new(rule: Rule) -> Life {
        Life {
            w: World::with(1, 4096),
            rule,
            history: PageHistory::default(),
            frozen_until: Vec::new(),
            early: 0,
            wasted: 0,
            greatest_age: 0,
            reports: Vec::new(),
        }
    }

    /// Which pages are all-frozen.
    fn frozen(&self) -> Vec<bool> {
        let (map, mut pin) = (self.w.heap.visibility_map(), MapPin::none());
        let pages = self.w.heap.len_blocks().unwrap().0;
        let bits = |n| map.bits(BlockNumber(n), &mut pin).unwrap();
        (0..pages).map(bits).map(|b| b & ALL_FROZEN != 0).collect()
    }

    /// XIDs pass, then comes the vacuum that autovacuum would make after so many updates and deletions.
    fn vacuum(&mut self, changes: u64) {
        self.w.ctx.txns.burn_xids(XIDS).unwrap();
        let now = self.w.ctx.txns.next_xid();
        let before = self.frozen();
        for (was, is) in self.frozen_until.iter_mut().zip(&before) {
            if let Some(until) = was.take_if(|_| !is) {
                self.wasted += u64::from(now.0 < until);
            }
        }
        let pages = before.len() as u64;
        let gap = (pages * XIDS).checked_div(changes).unwrap_or(0);
        let rel = self.w.facts.lock().unwrap().relfrozenxid;
        self.greatest_age = self.greatest_age.max(now.0 - rel.0);
        let due_in = (rel.0 + DUE).saturating_sub(now.0);
        let f = &mut self.w.settings.freeze;
        f.max_age = DUE * 100 / 95;
        f.table_age = DUE;
        f.min_age = (QUIET_GAPS * gap).min(DUE / 2);
        f.watch = self.history.watch(gap, pages);
        f.quiet = match (gap, self.rule) {
            (0, _) => Quiet::ANY,
            (_, Rule::Gaps) => Quiet { age: QUIET_GAPS * gap, ..Quiet::ANY },
            (_, Rule::History) => self.history.quiet(gap, due_in, now),
        };
        let watch = f.watch;
        let r = self.w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
        let (end, lsn) = (r.next_xid_at_end, self.w.ctx.wal.insert_lsn());
        self.history.note(watch, r.counts.seen, u64::from(r.pages_after), end, lsn);
        let after = self.frozen();
        self.frozen_until.resize(after.len(), None);
        for (n, is) in after.iter().enumerate() {
            if *is && !before.get(n).is_some_and(|was| *was) && r.mode != VacuumMode::Aggressive {
                self.early += 1;
                self.frozen_until[n] = Some(rel.0 + DUE);
            }
        }
        self.reports.push(r);
    }

    fn update(&self, keys: &HashSet<i32>) {
        self.w.change(|k| keys.contains(&k), Some(&[b'u'; 700]));
    }
}

impl std::fmt::Display for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set: Vec<u32> = self.reports.iter().map(|r| r.counts.set_frozen_pages).collect();
        write!(
            f,
            "early {} wasted {} age {} set {set:?}",
            self.early, self.wasted, self.greatest_age
        )
    }
}

const ROWS: i32 = 2000;

/// A few rows are updated often, most of them hardly ever.
fn zipf(rng: &mut SmallRng, updates: usize) -> HashSet<i32> {
    let power = |n: i32| f64::from(n).powf(-1.2);
    let sums: Vec<f64> = (1..=ROWS)
        .scan(0.0, |sum, n| {
            *sum += power(n);
            Some(*sum)
        })
        .collect();
    let total = sums[sums.len() - 1];
    let draw = |rng: &mut SmallRng| {
        let at = rng.random_range(0.0..total);
        i32::try_from(sums.partition_point(|s| *s < at)).unwrap()
    };
    (0..updates).map(|_| draw(rng)).collect()
}

/// Vacuums until the table has come of age, and some more.
fn under_updates(rule: Rule) -> Life {
    let mut life = Life::new(rule);
    let mut rng = SmallRng::seed_from_u64(47);
    life.w.load(ROWS, &[b'v'; 700]);
    for _ in 0..60 {
        let keys = zipf(&mut rng, 100);
        life.update(&keys);
        life.vacuum(100);
    }
    life
}

#[test]
fn pages_frozen_early_stay_frozen_under_updates() {
    let [gaps, history] = [Rule::Gaps, Rule::History].map(under_updates);
    let told = format!("{gaps} {history}");
    // Eight gaps tell little where rates of change differ so much.
    assert!(gaps.early > 100 && gaps.wasted * 3 > gaps.early, "{told}");
    assert!(history.early > 50 && history.wasted * 4 < history.early, "{told}");
    for life in [&gaps, &history] {
        // The table comes of age when the settings say so, and what is left then is no more than other vacuums' work.
        assert!(life.greatest_age <= DUE + XIDS, "{told}");
        let modes = life.reports.iter().map(|r| (r.mode == VacuumMode::Aggressive, r));
        let aggressive: Vec<_> = modes.filter(|(a, _)| *a).map(|(_, r)| r).collect();
        assert!(!aggressive.is_empty() && aggressive.iter().all(|r| r.new_relfrozenxid.is_some()));
        assert!(aggressive.iter().all(|r| r.counts.frozen_pages * 3 < r.pages_before), "{told}");
        life.w.check();
    }
}
