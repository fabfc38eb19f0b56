//! At what ages a table's rows are frozen.
//!
//! # Purpose
//! Settings, storage parameters; and for autovacuum, which comes again and again, what the table's history says of pages that will change
//! soon anyway: freezing them early is work for nothing (see [`vacuum::quiet`]).
//!
//! # Differs from PostgreSQL
//! The last.

use crate::activity::TableCounts;
use crate::session::SessionState;
use base::{Lsn, Result, Xid};
use engine::catalog::model::{CatalogView, Table};
use std::sync::atomic::Ordering;
use vacuum::quiet::{QUIET_GAPS, Quiet, Watch};
use vacuum::{FreezeSettings, VacuumReport};

/// Pages that change more seldom than this are frozen early all the same, as they have to be frozen some day.
const SELDOM_XIDS: u64 = 1_000_000;

/// What a table's storage parameters and the settings make of a freeze age.
fn age(state: &SessionState, table: &Table, setting: &str, option: &str, automatic: bool) -> u64 {
    let own = if automatic { table.option_i64(option) } else { None };
    let value = own.unwrap_or_else(|| state.settings.borrow().int(setting));
    u64::try_from(value).unwrap_or(0)
}

/// Whose vacuum it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    /// A statement's.
    Statement,
    /// Autovacuum's.
    Autovacuum,
    /// Autovacuum's of a template, or of a database that nobody may connect to: there hardly anything changes, and all is frozen at once.
    Template,
}

/// The ages for a vacuum of `table`.
pub(super) fn freeze_settings(
    state: &SessionState,
    table: &Table,
    whose: Whose,
) -> Result<FreezeSettings> {
    let automatic = whose != Whose::Statement;
    let get = |setting: &str, option: &str| age(state, table, setting, option, automatic);
    let of_all = |setting: &str, option: &str| match whose {
        Whose::Template => u64::try_from(table.option_i64(option).unwrap_or(0)).unwrap_or(0),
        _ => get(setting, option),
    };
    let rate = table
        .options
        .number("vacuum_max_eager_freeze_failure_rate")
        .unwrap_or_else(|| state.settings.borrow().real("vacuum_max_eager_freeze_failure_rate"));
    let mut settings = FreezeSettings {
        min_age: of_all("vacuum_freeze_min_age", "autovacuum_freeze_min_age"),
        table_age: of_all("vacuum_freeze_table_age", "autovacuum_freeze_table_age"),
        max_age: get("autovacuum_freeze_max_age", "autovacuum_freeze_max_age"),
        failsafe_age: u64::try_from(state.settings.borrow().int("vacuum_failsafe_age"))
            .unwrap_or(0),
        max_eager_failure_rate: rate,
        quiet: Quiet::ANY,
        watch: None,
    };
    let server_max = u64::try_from(state.settings.borrow().int("autovacuum_freeze_max_age"));
    let (own, server) = (settings.max_age, server_max.unwrap_or(u64::MAX));
    // The failsafe goes by the server's, as in PostgreSQL: a table that autovacuum is to come for early is in no danger when it does.
    settings.failsafe_age = FreezeSettings { max_age: server, ..settings }.failsafe();
    settings.max_age = own.min(server);
    if let Some(counts) = state.database.activity.get(table.oid) {
        let pages = u64::from(state.relation_pages(table)?).max(1);
        let next = state.cluster.engine().txns.next_xid();
        // The counts began some time ago, the table perhaps later.
        let since = table.relfrozenxid.max(state.cluster.counted_since().xid);
        let gap = gap(&counts, pages, since, next, settings.table_age);
        let history = counts.pages.0.lock();
        settings.watch = history.watch(gap, pages);
        if whose == Whose::Autovacuum && gap > 0 {
            postpone(&mut settings, gap);
            let due_in = (table.relfrozenxid.0 + settings.table_age).saturating_sub(next.0);
            settings.quiet = history.quiet(gap, due_in, next);
        }
    }
    Ok(settings)
}

/// Where pages go on changing, what is older than `vacuum_freeze_min_age` or even `vacuum_freeze_table_age` is left alone for a while, in
/// the hope that it is gone by the time that it has to be frozen: when autovacuum comes for the table's age. What is frozen
/// then is so much that it comes no sooner than half that age later.
fn postpone(settings: &mut FreezeSettings, gap: u64) {
    let due = settings.max_age / 100 * 95;
    settings.table_age = settings.table_age.max(due);
    settings.min_age = settings.min_age.max(gap.saturating_mul(QUIET_GAPS).min(due / 2));
}

fn changes(counts: &TableCounts) -> i64 {
    counts.updated.load(Ordering::Relaxed) + counts.deleted.load(Ordering::Relaxed)
}

/// How many XIDs pass on average between two changes of a page; 0: pages hardly change.
fn gap(counts: &TableCounts, pages: u64, since: Xid, next: Xid, table_age: u64) -> u64 {
    let at = counts.xid_at_vacuum.load(Ordering::Relaxed);
    let from = u64::try_from(at).ok().filter(|x| *x > 0).unwrap_or(since.0);
    let xids = next.0.saturating_sub(from).max(1);
    let done = changes(counts) - counts.changes_at_vacuum.load(Ordering::Relaxed);
    let Some(done) = u64::try_from(done).ok().filter(|n| *n > 0) else { return 0 };
    let between = u64::try_from(u128::from(pages) * u128::from(xids) / u128::from(done))
        .unwrap_or(u64::MAX)
        .max(1);
    if between >= table_age.max(SELDOM_XIDS) { 0 } else { between }
}

/// A vacuum that watched for `watch` has ended, the log being at `lsn`: from here on changes are counted for the next one.
pub(super) fn note_vacuum(
    counts: &TableCounts,
    watch: Option<Watch>,
    report: &VacuumReport,
    lsn: Lsn,
) {
    let (next, pages) = (report.next_xid_at_end, u64::from(report.pages_after));
    counts.pages.0.lock().note(watch, report.counts.seen, pages, next, lsn);
    count_from(counts, next);
}

fn count_from(counts: &TableCounts, next: Xid) {
    counts.xid_at_vacuum.store(i64::try_from(next.0).unwrap_or(i64::MAX), Ordering::Relaxed);
    counts.changes_at_vacuum.store(changes(counts), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_left_to_change_while_the_table_does() {
        let counts = TableCounts::default();
        let age = |pages, next| gap(&counts, pages, Xid(1000), Xid(next), 50_000);
        counts.inserted.store(1_000_000, Ordering::Relaxed);
        assert_eq!(age(1000, 2000), 0, "inserts do not count");
        // One update a transaction, on 1,000 pages: each is hit every 1,000 transactions.
        counts.updated.store(900, Ordering::Relaxed);
        counts.deleted.store(100, Ordering::Relaxed);
        assert_eq!(age(1000, 2000), 1000);
        // On so many pages it is a rare thing.
        assert_eq!(age(1_000_000, 2000), 0);
        // What was before the last vacuum is past.
        count_from(&counts, Xid(2000));
        assert_eq!(age(1000, 3000), 0);
        counts.updated.fetch_add(10, Ordering::Relaxed);
        assert_eq!(age(100, 3000), 10_000);
        // What is old is left until autovacuum comes for the table's age.
        let ages = |gap| {
            let (min_age, table_age, max_age) = (1000, 50_000, 100_000);
            let mut s = FreezeSettings { min_age, table_age, max_age, ..Default::default() };
            postpone(&mut s, gap);
            (s.min_age, s.table_age)
        };
        assert_eq!(ages(1000), (8000, 95_000));
        assert_eq!(ages(10_000), (47_500, 95_000));
    }
}
