//! Experiment 4: how often a ring makes VACUUM wait for the WAL.
//!
//! pgbench's accounts, a third of them updated, vacuumed with cold caches at several sizes of the ring. Syncs are
//! the server's own count to the end of the next CHECKPOINT (so that what was put off counts too), and strace's in
//! turns of their own.

use super::{notices, record, there_and_back, turns};
use crate::counters::{VACUUM_WRITES, WAL_BYTES, WAL_SYNCS};
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::{Result, measure, trace, vacuum_report};
use std::time::Instant;

/// What each limit is called, and what the statement says.
const LIMITS: &[(&str, &str)] =
    &[("256 kB", "256 kB"), ("1024 kB", "1024 kB"), ("4096 kB", "4096 kB"), ("0", "0")];

const TRACED_SYNCS: Figure = Figure { name: "WAL syncs, by strace", unit: "syncs" };
const TRACED_WRITES: Figure = Figure { name: "data-file write calls, by strace", unit: "calls" };

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let (scale, rows) = super::pgbench_rows(plan, 500_000);
    e.workload = format!(
        "pgbench_accounts of {rows} rows, a third updated; VACUUM with cold caches at several limits"
    );
    let pool = super::pool(rows);
    let settings = [("shared_buffers", pool.as_str()), ("autovacuum", "off")];
    let update = format!("UPDATE pgbench_accounts SET bid = 0 WHERE aid <= {}", rows / 3);
    e.steps = vec![
        format!("pgbench -i -s {scale}"),
        update.clone(),
        "CHECKPOINT; restart; cold caches".into(),
        "VACUUM (VERBOSE, BUFFER_USAGE_LIMIT …) pgbench_accounts; CHECKPOINT".into(),
    ];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    let rounds = plan.rounds + usize::from(plan.trace);
    progress.begin("sync", (subjects.len() * (LIMITS.len() * rounds + 4)) as u64);
    let build = |subject: &Subject| -> Result<()> {
        super::fill_accounts(subject, scale, rows)?;
        subject.sql(&[&update, "CHECKPOINT"])
    };
    for subject in &mut subjects {
        progress.step(&format!("{}: {rows} rows", subject.label), 4);
        build(subject)?;
        subject.save()?;
    }
    for round in 0..rounds {
        let traced = plan.trace && round == plan.rounds;
        for limit in there_and_back(LIMITS, round) {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                progress.step(&format!("{}: VACUUM at {}", subject.label, limit.0), 1);
                one(subject, *limit, Fresh { cold: true, traced }, e, &build)?;
            }
        }
    }
    targets(results, e);
    Ok(())
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
    let Some(sql) = super::limited_vacuum(subject, "pgbench_accounts", limit, e) else {
        return Ok(());
    };
    subject.fresh(how, e, build)?;
    let mut client = subject.connect()?;
    let before = subject.counters()?;
    let (from, begun) = (trace::now(), Instant::now());
    let outcome = client.run(&sql)?;
    let elapsed = begun.elapsed().as_secs_f64();
    client.run("CHECKPOINT")?;
    let to = trace::now();
    if !how.traced {
        super::sizes(&mut client, "pgbench_accounts", e, &label, x)?;
    }
    client.close();
    if how.traced {
        if let Some(t) = subject.traced(from, to)? {
            let syncs = Some(measure::count(t.wal.syncs));
            let writes = Some(measure::count(t.data.writes + t.uring + t.msyncs));
            record(e, &label, x, &[(TRACED_SYNCS, syncs), (TRACED_WRITES, writes)]);
        }
        return Ok(());
    }
    let delta = subject.settled_counters()?.since(&before);
    let text = notices(&outcome);
    let figures = [
        (f::VACUUM_TIME, Some(elapsed)),
        (f::WAL_SYNCS, delta.get(WAL_SYNCS)),
        (f::WRITES, delta.get(VACUUM_WRITES)),
        (f::WAL_BYTES, delta.get(WAL_BYTES)),
        (f::WRITE_RATE, vacuum_report::parse(&text).first().and_then(|r| r.write_rate())),
    ];
    record(e, &label, x, &figures);
    e.report(&label, x, &sql, &text);
    Ok(())
}

fn targets(results: &Results, e: &mut Experiment) {
    let (Some(ours), Some(theirs)) = (results.ebb(), results.peer(e)) else { return };
    for figure in [f::WAL_SYNCS, TRACED_SYNCS] {
        if e.median(theirs, "256 kB", figure.name).is_some() {
            let what = format!("{} at 256 kB, Ebb / PostgreSQL", figure.name);
            let at = |server| (server, "256 kB", figure);
            e.want_ratio(what, Bound::AtMost(1.0 / 20.0), at(ours), at(theirs));
        }
    }
}
