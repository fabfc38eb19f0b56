//! When tables are vacuumed and analysed without being asked.
//!
//! # Layout
//! This module: PostgreSQL's formulae, for one table.  [`forecast`]: when. [`launcher`]: naps, databases, workers.

pub mod forecast;
pub mod launcher;

pub use launcher::{AutovacuumHost, DatabaseInfo, Launcher};

use base::{Oid, Xid};

/// `autovacuum_…` settings, or what a table's storage parameters make of them.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as the settings, without their autovacuum_ prefix")]
pub struct Thresholds {
    /// `autovacuum`, and the table's `autovacuum_enabled`.
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

/// PostgreSQL's decision for a table, at `next_xid`.
pub fn decide(t: &TableState, next_xid: Xid) -> Decision {
    let s = &t.thresholds;
    let for_age = t.relfrozenxid.is_normal()
        && t.relfrozenxid.0 < next_xid.0.saturating_sub(s.freeze_max_age);
    if !s.enabled {
        return Decision { vacuum: for_age, analyze: false, for_age };
    }
    let (vacuum, insert, analyze) = limits(t);
    let by_rows = t.dead_tuples as f64 > vacuum
        || (s.vacuum_insert_threshold >= 0 && t.inserts_since_vacuum as f64 > insert);
    Decision {
        vacuum: for_age || by_rows,
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
    }

    #[test]
    fn frozen_pages_lower_the_insert_threshold_and_large_tables_have_a_maximum() {
        let mut t = table();
        t.all_frozen_pages = 5;
        assert_eq!(limits(&t).1, 1100.0);
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
    }
}
