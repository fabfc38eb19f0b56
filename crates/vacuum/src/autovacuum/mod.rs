//! When tables are vacuumed and analysed without being asked.
//!
//! # Differs from PostgreSQL
//! A table is vacuumed from 95 % of `autovacuum_freeze_max_age` on, by a vacuum that gives way; only when that has
//! not helped does one come that gives way to nobody. The table most in need comes first.
//!
//! # Layout
//! This module: PostgreSQL's formulae, for one table.  [`forecast`]: when. [`launcher`]: naps, databases, workers; `schedule`: each database's times.

pub mod forecast;
pub mod launcher;
mod schedule;

pub use launcher::{AutovacuumHost, DatabaseInfo, Launcher};

use base::{Oid, Xid};

/// `autovacuum_…` settings, or what a table's storage parameters make of them.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as the settings, without their autovacuum_ prefix")]
pub struct Thresholds {
    /// `autovacuum` and `track_counts`: without them only age counts.
    pub active: bool,
    /// The table's `autovacuum_enabled`: without it nothing counts before age does.
    pub enabled: bool,
    pub vacuum_threshold: i64,
    pub vacuum_scale_factor: f64,
    /// −1: none.
    pub vacuum_max_threshold: i64,
    /// −1: never for inserts.
    pub vacuum_insert_threshold: i64,
    pub vacuum_insert_scale_factor: f64,
    pub analyze_threshold: i64,
    pub analyze_scale_factor: f64,
    pub freeze_max_age: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            active: true,
            enabled: true,
            vacuum_threshold: 50,
            vacuum_scale_factor: 0.2,
            vacuum_max_threshold: 100_000_000,
            vacuum_insert_threshold: 1000,
            vacuum_insert_scale_factor: 0.2,
            analyze_threshold: 50,
            analyze_scale_factor: 0.1,
            freeze_max_age: 200_000_000,
        }
    }
}

/// What is known of a table.
#[derive(Clone, Debug)]
pub struct TableState {
    /// Its OID.
    pub oid: Oid,
    /// `relfrozenxid`.
    pub relfrozenxid: Xid,
    /// `reltuples`; below 0 when never counted.
    pub reltuples: f64,
    /// `relpages`.
    pub relpages: u32,
    /// `relallfrozen`.
    pub all_frozen_pages: u32,
    /// Dead rows since the last vacuum (`n_dead_tup`).
    pub dead_tuples: i64,
    /// Rows inserted since the last vacuum.
    pub inserts_since_vacuum: i64,
    /// Rows changed since the last analyze.
    pub changes_since_analyze: i64,
    /// It can be analysed (a TOAST table can't).
    pub analyzable: bool,
    /// Settings with its storage parameters merged in.
    pub thresholds: Thresholds,
}

/// What is to be done to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// Vacuum it.
    pub vacuum: bool,
    /// Analyse it.
    pub analyze: bool,
    /// The vacuum prevents old age: it is done even where autovacuum is off, and gives way to nobody.
    pub for_age: bool,
}

impl Decision {
    /// Anything?
    pub fn any(self) -> bool {
        self.vacuum || self.analyze
    }
}

/// The dead rows at which a table is vacuumed, the inserts at which it is, the changes at which it is analysed.
pub fn limits(t: &TableState) -> (f64, f64, f64) {
    let s = &t.thresholds;
    let rows = t.reltuples.max(0.0);
    let mut vacuum = s.vacuum_threshold as f64 + s.vacuum_scale_factor * rows;
    if s.vacuum_max_threshold >= 0 {
        vacuum = vacuum.min(s.vacuum_max_threshold as f64);
    }
    let unfrozen = if t.relpages > 0 && t.all_frozen_pages > 0 {
        1.0 - f64::from(t.all_frozen_pages.min(t.relpages)) / f64::from(t.relpages)
    } else {
        1.0
    };
    let insert = s.vacuum_insert_threshold as f64 + s.vacuum_insert_scale_factor * rows * unfrozen;
    let analyze = s.analyze_threshold as f64 + s.analyze_scale_factor * rows;
    (vacuum, insert, analyze)
}

/// How urgent a table's work is, against others': above 1 it is due by its most pressing threshold; a table whose age must be brought down
/// comes before all that has dead rows.
pub fn urgency(t: &TableState, next_xid: Xid) -> f64 {
    let (vacuum, insert, analyze) = limits(t);
    let age = if t.relfrozenxid.is_normal() {
        next_xid.0.saturating_sub(t.relfrozenxid.0) as f64
            / t.thresholds.freeze_max_age.max(1) as f64
    } else {
        0.0
    };
    if age >= 0.95 {
        return age * 1e12;
    }
    let part = |n: i64, of: f64| n as f64 / of.max(1.0);
    let inserts = if t.thresholds.vacuum_insert_threshold < 0 {
        0.0
    } else {
        part(t.inserts_since_vacuum, insert)
    };
    let analyze = if t.analyzable { part(t.changes_since_analyze, analyze) } else { 0.0 };
    part(t.dead_tuples, vacuum).max(inserts).max(analyze)
}

/// PostgreSQL's decision for a table, at `next_xid`; and a vacuum that gives way like any other a little before the table's age makes
/// one necessary that does not.
pub fn decide(t: &TableState, next_xid: Xid) -> Decision {
    let s = &t.thresholds;
    let older =
        |age: u64| t.relfrozenxid.is_normal() && t.relfrozenxid.0 < next_xid.0.saturating_sub(age);
    let for_age = older(s.freeze_max_age);
    // From here on a vacuum is aggressive.
    let soon = older(s.freeze_max_age / 100 * 95);
    if !s.active || (!s.enabled && !for_age) {
        return Decision { vacuum: for_age, analyze: false, for_age };
    }
    let (vacuum, insert, analyze) = limits(t);
    let by_rows = t.dead_tuples as f64 > vacuum
        || (s.vacuum_insert_threshold >= 0 && t.inserts_since_vacuum as f64 > insert);
    Decision {
        vacuum: soon || by_rows,
        analyze: t.analyzable && t.changes_since_analyze as f64 > analyze,
        for_age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableState {
        TableState {
            oid: Oid(1),
            relfrozenxid: Xid(1000),
            reltuples: 1000.0,
            relpages: 10,
            all_frozen_pages: 0,
            dead_tuples: 0,
            inserts_since_vacuum: 0,
            changes_since_analyze: 0,
            analyzable: true,
            thresholds: Thresholds::default(),
        }
    }

    #[test]
    fn thresholds_are_exclusive() {
        let mut t = table();
        t.dead_tuples = 250;
        t.changes_since_analyze = 150;
        t.inserts_since_vacuum = 1200;
        assert_eq!(decide(&t, Xid(2000)), Decision::default());
        t.dead_tuples = 251;
        assert!(decide(&t, Xid(2000)).vacuum && !decide(&t, Xid(2000)).analyze);
        t.changes_since_analyze = 151;
        assert!(decide(&t, Xid(2000)).analyze);
        t.dead_tuples = 0;
        t.inserts_since_vacuum = 1201;
        assert!(decide(&t, Xid(2000)).vacuum);
        t.thresholds.vacuum_insert_threshold = -1;
        assert!(!decide(&t, Xid(2000)).vacuum);
        // Zero is a threshold.
        t.thresholds.vacuum_insert_threshold = 0;
        assert!(decide(&t, Xid(2000)).vacuum);
        t.analyzable = false;
        assert!(!decide(&t, Xid(2000)).analyze);
    }

    #[test]
    fn frozen_pages_lower_the_insert_threshold_and_large_tables_have_a_maximum() {
        let mut t = table();
        t.all_frozen_pages = 5;
        assert_eq!(limits(&t).1, 1100.0);
        // Cut since that was counted.
        t.all_frozen_pages = 30;
        assert_eq!(limits(&t).1, 1000.0);
        t.reltuples = 1e12;
        assert_eq!(limits(&t).0, 1e8);
        t.reltuples = -1.0;
        assert_eq!(limits(&t), (50.0, 1000.0, 50.0));
    }

    #[test]
    fn age_overrides_the_switch() {
        let mut t = table();
        t.thresholds.enabled = false;
        t.dead_tuples = 1_000_000;
        assert!(!decide(&t, Xid(200_001_000)).any());
        let d = decide(&t, Xid(200_001_001));
        assert!(d.vacuum && d.for_age && !d.analyze);
        // As in PostgreSQL: once age asks for it, its counts are asked too; but not where they are not to be believed.
        t.changes_since_analyze = 1_000_000;
        assert!(!decide(&t, Xid(200_001_000)).any());
        assert!(decide(&t, Xid(200_001_001)).analyze);
        for enabled in [false, true] {
            t.thresholds = Thresholds { active: false, enabled, ..t.thresholds };
            assert!(!decide(&t, Xid(200_001_000)).any());
            let d = decide(&t, Xid(200_001_001));
            assert!(d.vacuum && d.for_age && !d.analyze);
        }
    }

    #[test]
    fn a_vacuum_that_gives_way_comes_before_one_that_does_not() {
        let t = table();
        assert!(!decide(&t, Xid(190_001_000)).any());
        let d = decide(&t, Xid(190_001_001));
        assert!(d.vacuum && !d.for_age);
        assert!(decide(&t, Xid(200_001_001)).for_age);
    }

    #[test]
    fn the_worst_comes_first() {
        let mut dead = table();
        dead.dead_tuples = 10_000;
        let mut inserts = table();
        inserts.inserts_since_vacuum = 10_000;
        let mut old = table();
        old.thresholds.freeze_max_age = 2000;
        let mut older = table();
        older.thresholds.freeze_max_age = 1500;
        let now = Xid(3500);
        let mut all = [&inserts, &old, &dead, &older].map(|t| urgency(t, now));
        assert!(all[3] > all[1] && all[1] > all[2] && all[2] > all[0], "{all:?}");
        // From where on a vacuum is due for age.
        old.thresholds.freeze_max_age = 2500;
        assert!(urgency(&old, Xid(3374)) < 1.0 && urgency(&old, Xid(3375)) > all[2]);
        // Never vacuumed for inserts.
        inserts.thresholds.vacuum_insert_threshold = -1;
        all[0] = urgency(&inserts, now);
        assert!(all[0] < 1.0);
    }
}
