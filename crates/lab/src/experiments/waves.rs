//! What a VACUUM by hand does to everybody else's transactions.
//!
//! pgbench's own transactions at a fixed rate that leaves the machine mostly idle; while they go on, a VACUUM of the table, a fifth of
//! which was updated before. The transactions that met it, beside those of the same run before it, and those of the half
//! minute after it, when the system writes what it left.
//!
//! # Invariants
//! A checkpoint comes before the load, so that VACUUM has to log the images of its pages: as it is for most vacuums of a table that is larger
//! than what changes between two checkpoints.

use super::{notices, record, taken, turns};
use crate::load::{self, Load, Transaction, histogram, quantile_ms};
use crate::measure::count;
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::{Result, vacuum_report};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const P50_MET: Figure = Figure { name: "p50 of transactions while VACUUM ran", unit: "ms" };
const P95_MET: Figure = Figure { name: "p95 of transactions while VACUUM ran", unit: "ms" };
const P99_MET: Figure = Figure { name: "p99 of transactions while VACUUM ran", unit: "ms" };
const P99_BEFORE: Figure = Figure { name: "p99 of transactions before it", unit: "ms" };
const P99_AFTER: Figure = Figure { name: "p99 of transactions after it", unit: "ms" };
const MET: Figure = Figure { name: "transactions while VACUUM ran", unit: "transactions" };
const WAL: Figure = Figure { name: "WAL of VACUUM", unit: "bytes" };
const X: &str = "VACUUM";
/// Transactions a second.
const RATE: u32 = 400;

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let (scale, _) = super::pgbench_rows(plan, 500_000);
    // The load wants pgbench's other tables, too.
    let rows = scale * 100_000;
    // Long enough for PostgreSQL's VACUUM of as many rows on a slow disk, a while alone before it and half a minute after it.
    let alone_s = plan.scaled(3).clamp(1, 6);
    let seconds = alone_s + 2 + rows / 500_000 + plan.scaled(18).clamp(1, 36);
    e.workload = format!(
        "pgbench -b tpcb-like -s {scale} -c 8 at {RATE} transactions a second for {seconds} s, and a VACUUM of pgbench_accounts, a fifth updated"
    );
    e.steps = vec![
        format!("pgbench -i -s {scale}"),
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 5 = 0".into(),
        "CHECKPOINT".into(),
        format!("pgbench -n -M prepared -c 8 -R {RATE} -T {seconds}"),
        format!("after {alone_s} s of it: VACUUM (VERBOSE) pgbench_accounts"),
    ];
    let pool = super::pool(rows.min(4_000_000));
    let settings =
        [("shared_buffers", pool.as_str()), ("autovacuum", "off"), ("max_wal_size", "8GB")];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    let build = |subject: &Subject| -> Result<()> {
        load::fill(&subject.pgbench, &subject.target(), &["-s", &scale.to_string()])?;
        subject.sql(&["CHECKPOINT"])
    };
    progress.begin("waves", subjects.len() as u64 * (plan.rounds as u64 + 1) * seconds);
    for subject in &mut subjects {
        load::available(&subject.pgbench)?;
        progress.step(&format!("{}: {rows} rows", subject.label), seconds);
        build(subject)?;
        subject.save()?;
    }
    for round in 0..plan.rounds {
        for at in turns(&subjects, round) {
            let subject = &mut subjects[at];
            progress.step(&format!("{}: VACUUM beside a load", subject.label), seconds);
            one(subject, alone_s, seconds, e, &build)?;
        }
    }
    if let (Some(ours), Some(theirs)) = (results.ebb(), results.peer(e)) {
        let figures = [
            ("p99 beside VACUUM", P99_MET),
            ("p99 after it", P99_AFTER),
            ("VACUUM", f::VACUUM_TIME),
        ];
        for (what, figure) in figures {
            let at = |server| (server, X, figure);
            let what = format!("{what}, Ebb / PostgreSQL");
            e.want_ratio(what, Bound::AtMost(1.0), at(ours), at(theirs));
        }
    }
    Ok(())
}

fn one(
    subject: &mut Subject,
    alone_s: u64,
    seconds: u64,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    subject.fresh(Fresh::default(), e, build)?;
    subject.sql(&[
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 5 = 0",
        "CHECKPOINT",
    ])?;
    let mut client = subject.connect()?;
    let load =
        Load { builtin: "tpcb-like", clients: 8, rate: Some(RATE), seconds, ..Load::default() };
    let mut running = load.start(&subject.pgbench, &subject.target())?;
    while running.elapsed() < count(alone_s) {
        running.ended(Duration::from_millis(20))?;
    }
    let sql = "VACUUM (VERBOSE) pgbench_accounts";
    let (from_s, begun) = (now_s()?, Instant::now());
    let outcome = client.run(sql)?;
    let elapsed = begun.elapsed().as_secs_f64();
    client.close();
    if running.ended(Duration::ZERO)? {
        e.note(format!("{label}: the load ended before its VACUUM."));
    }
    let measured = running.finish()?;
    let [before, met, after] = divide(&measured.transactions, from_s, from_s + elapsed)?;
    let text = notices(&outcome);
    let report = vacuum_report::parse(&text).into_iter().next().unwrap_or_default();
    let at = |of, quantile| Some(quantile_ms(of, quantile));
    let figures = [
        (f::VACUUM_TIME, Some(elapsed)),
        (P50_MET, at(&met, 0.5)),
        (P95_MET, at(&met, 0.95)),
        (P99_MET, at(&met, 0.99)),
        (P99_BEFORE, at(&before, 0.99)),
        (P99_AFTER, at(&after, 0.99)),
        (MET, Some(count(met.len()))),
        (WAL, report.wal_bytes()),
    ];
    record(e, &label, X, &figures);
    taken(e, &label, X, &measured.taken);
    e.report(&label, X, sql, &text);
    Ok(())
}

/// Latencies of what ended before a time, met the span from it to another, and began after that.
fn divide(transactions: &[Transaction], from_s: f64, until_s: f64) -> Result<[Histogram<u64>; 3]> {
    let mut parts = [histogram()?, histogram()?, histogram()?];
    for t in transactions {
        let began_s = t.ended_s - count(t.latency_us) / 1e6;
        let part = if t.ended_s < from_s { 0 } else { 1 + usize::from(began_s > until_s) };
        parts[part].saturating_record(t.latency_us.max(1));
    }
    Ok(parts)
}

fn now_s() -> Result<f64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(since.map_err(|e| format!("the clock: {e}"))?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_before_beside_or_after() {
        let transaction = |ended_s, latency_us| Transaction { ended_s, latency_us };
        let all = [
            transaction(9.9, 100_000),
            transaction(10.1, 1_000_000),
            transaction(11.0, 1_000),
            transaction(13.0, 1_500_000),
            transaction(13.0, 500_000),
        ];
        let parts = divide(&all, 10.0, 12.0).unwrap();
        assert_eq!(parts.map(|h| h.len()), [1, 3, 1]);
    }
}
