//! Experiment 1: how much VACUUM writes, by BUFFER_USAGE_LIMIT.
//!
//! The table is built once for each server and its folder kept; every turn vacuums a copy of it with cold
//! caches, so that all limits and rounds meet the same pages. Calls are counted in turns of their own under
//! strace, since that takes time; the others are timed.

use super::{notices, record, turns};
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::{Result, trace, vacuum_report};
use std::time::Instant;

/// What each limit is called, and what the statement says.
const LIMITS: &[(&str, &str)] =
    &[("256 kB", "256 kB"), ("2 MB", "2 MB"), ("16 MB", "16 MB"), ("no limit", "0")];

const DATA_BYTES: Figure = Figure { name: "data-file bytes written", unit: "bytes" };
const WAL_CALLS: Figure = Figure { name: "WAL write calls", unit: "calls" };
const HELD_WITH_INDEXES: Figure =
    Figure { name: "buffers the table and its indexes hold afterwards", unit: "buffers" };

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let rows = plan.rows(200_000);
    e.workload = format!(
        "{rows} rows with an index on md5 text, half updated; VACUUM with cold caches, then CHECKPOINT"
    );
    // All of it fits, and the largest ring is not cut to an eighth of the pool.
    let pool = super::pool(rows);
    let settings = [("shared_buffers", pool.as_str()), ("autovacuum", "off")];
    let statements = statements(rows);
    e.steps = statements.clone();
    e.steps.push("VACUUM (VERBOSE, BUFFER_USAGE_LIMIT …) table1; CHECKPOINT".into());

    let mut subjects = subject::open(plan, &settings, results, e)?;
    let turns_each = LIMITS.len() * (plan.rounds + usize::from(plan.trace));
    progress.begin("ring", (subjects.len() * (turns_each + 4)) as u64);
    let build = |subject: &Subject| -> Result<()> {
        subject.has_extension("pg_buffercache")?;
        subject.sql(&statements.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for subject in &mut subjects {
        progress.step(&format!("{}: {rows} rows", subject.label), 4);
        build(subject)?;
        subject.save()?;
    }
    let rounds = plan.rounds + usize::from(plan.trace);
    for round in 0..rounds {
        let traced = plan.trace && round == plan.rounds;
        for limit in LIMITS {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                progress.step(&format!("{}: VACUUM at {}", subject.label, limit.0), 1);
                one(subject, *limit, Fresh { cold: true, traced }, e, &build)?;
            }
        }
    }
    if !plan.trace {
        e.note("Write calls: all of the server's (/proc/PID/io) less those that it says it made to WAL; --trace counts them by file.");
    }
    targets(results, e);
    Ok(())
}

/// The published steps; the table goes first, for a server that ran them before.
pub(super) fn statements(rows: u64) -> Vec<String> {
    vec![
        "DROP TABLE IF EXISTS table1".into(),
        "CREATE TABLE table1 (id SERIAL PRIMARY KEY, filler VARCHAR(32))".into(),
        "ALTER TABLE table1 SET (autovacuum_enabled = false)".into(),
        format!(
            "INSERT INTO table1 (filler) SELECT md5(random()::text) FROM generate_series(1, {rows})"
        ),
        "CREATE INDEX ON table1 (filler)".into(),
        "UPDATE table1 SET filler = md5(random()::text) \
         WHERE id <= (SELECT max(id) FROM table1) * 2 / 4"
            .into(),
        "CHECKPOINT".into(),
    ]
}

fn one(
    subject: &mut Subject,
    limit: (&str, &str),
    how: Fresh,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let x = limit.0;
    let label = subject.label.clone();
    let Some(sql) = super::limited_vacuum(subject, "table1", limit, e) else { return Ok(()) };
    subject.fresh(how, e, build)?;
    let mut client = subject.connect()?;
    if !how.traced
        && let Ok(outcome) = client.run(HELD)
    {
        e.report(&label, x, "pg_buffercache before VACUUM", &lines(&outcome.rows()));
    }
    let (before, calls_before) = (subject.counters()?, subject.write_calls());
    let (from, begun) = (trace::now(), Instant::now());
    let outcome = client.run(&sql)?;
    let elapsed = begun.elapsed().as_secs_f64();
    let held = client.run(HELD).ok().map(|o| o.rows());
    client.run("CHECKPOINT")?;
    let to = trace::now();
    let calls = subject.write_calls().zip(calls_before).map(|(now, then)| now - then);
    if how.traced {
        client.close();
        if let Some(t) = subject.traced(from, to)? {
            let count = |n: u64| Some(crate::measure::count(n));
            let figures = [
                (f::WRITE_CALLS, count(t.data.writes + t.uring + t.msyncs)),
                (DATA_BYTES, count(t.data.bytes)),
                (WAL_CALLS, count(t.wal.writes)),
                (f::WAL_SYNCS, count(t.wal.syncs)),
            ];
            record(e, &label, x, &figures);
            e.report(&label, x, "strace, to the end of the next CHECKPOINT", &format!("{t:#?}"));
        }
        return Ok(());
    }
    super::sizes(&mut client, "table1", e, &label, x)?;
    client.close();
    let delta = subject.settled_counters()?.since(&before);
    let text = notices(&outcome);
    let report = vacuum_report::parse(&text).into_iter().next().unwrap_or_default();
    let log = subject.log();
    let checkpoint = log.lines().rev().find_map(|l| l.split_once("checkpoint complete: wrote "));
    let written = checkpoint.and_then(|(_, l)| l.split_whitespace().next()?.parse().ok());
    let figures = [
        (f::VACUUM_TIME, Some(elapsed)),
        (f::WRITE_RATE, report.write_rate()),
        (f::CHECKPOINT_BUFFERS, written.or_else(|| delta.get(crate::counters::CHECKPOINT_BUFFERS))),
        (f::WAL_BYTES, delta.get(crate::counters::WAL_BYTES)),
    ];
    record(e, &label, x, &figures);
    if let Some(rows) = held {
        let main = |row: &&Vec<Option<String>>| row[1].as_deref() == Some("0");
        let heap = |row: &&Vec<Option<String>>| row[0].as_deref() == Some("table1");
        // The sum of nothing would be -0.
        let add = |sum: f64, row: &Vec<Option<String>>| sum + count(row, 2);
        let all = rows.iter().filter(main).fold(0.0, add);
        let of_heap = rows.iter().filter(main).filter(heap).fold(0.0, add);
        record(e, &label, x, &[(f::BUFFERS_HELD, Some(of_heap)), (HELD_WITH_INDEXES, Some(all))]);
        e.report(&label, x, "pg_buffercache after VACUUM", &lines(&rows));
    }
    if !subject.traces()
        && let Some(all) = calls
    {
        let wal = delta.get(crate::counters::WAL_WRITES).unwrap_or(0.0);
        e.record(&label, x, f::WRITE_CALLS, all - wal);
    }
    e.report(&label, x, &sql, &text);
    Ok(())
}

/// A number in a row of [`HELD`].
fn count(row: &[Option<String>], at: usize) -> f64 {
    row.get(at).and_then(|v| v.as_ref()?.parse().ok()).unwrap_or(0.0)
}

/// The rows of [`HELD`] as lines.
fn lines(rows: &[Vec<Option<String>>]) -> String {
    let line = |r: &Vec<Option<String>>| {
        let name = r[0].clone().unwrap_or_default();
        format!("{name} fork {}: {} buffers, {} dirty\n", count(r, 1), count(r, 2), count(r, 3))
    };
    rows.iter().map(line).collect()
}

/// Buffers by relation and fork.
const HELD: &str = "SELECT c.relname, b.relforknumber, count(*), count(*) FILTER (WHERE b.isdirty) \
    FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) \
    WHERE b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND c.relname IN ('table1', 'table1_pkey', 'table1_filler_idx') \
    GROUP BY c.relname, b.relforknumber ORDER BY c.relname, b.relforknumber";

fn targets(results: &Results, e: &mut Experiment) {
    let Some(ours) = results.ebb().map(str::to_owned) else { return };
    if let Some(theirs) = results.peer(e).map(str::to_owned) {
        let (ours, theirs) = (ours.as_str(), theirs.as_str());
        let pair = |x: &'static str, figure| ((ours, x, figure), (theirs, x, figure));
        let (a, b) = pair("256 kB", f::WRITE_CALLS);
        e.want_ratio(
            "data-file write calls at 256 kB, Ebb / PostgreSQL",
            Bound::AtMost(1.0 / 16.0),
            a,
            b,
        );
        let (a, b) = pair("256 kB", f::VACUUM_TIME);
        e.want_ratio("VACUUM at 256 kB, Ebb / PostgreSQL", Bound::AtMost(0.5), a, b);
        let (a, b) = pair("no limit", f::VACUUM_TIME);
        e.want_ratio("VACUUM without a limit, Ebb / PostgreSQL", Bound::AtMost(1.0), a, b);
    }
    let ours = ours.as_str();
    e.want_ratio(
        "Ebb's VACUUM at 256 kB / without a limit",
        Bound::AtMost(1.1),
        (ours, "256 kB", f::VACUUM_TIME),
        (ours, "no limit", f::VACUUM_TIME),
    );
    for (x, ring) in [("256 kB", 32.0), ("2 MB", 256.0), ("16 MB", 2048.0)] {
        let held = e.median(ours, x, f::BUFFERS_HELD.name);
        e.want(format!("buffers the table holds after VACUUM at {x}"), Bound::AtMost(ring), held);
    }
}
