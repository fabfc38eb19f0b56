//! A queue of jobs in a table, and one idle REPEATABLE READ transaction beside it.
//!
//! Each transaction of the load puts a job in and takes the oldest that nobody else is at (`FOR UPDATE SKIP LOCKED`). The table
//! stays as long as it is, and all that ever was in it is garbage at the head of its index: what the snapshot keeps from being
//! removed, every later look for the oldest job walks over.
//!
//! # Invariants
//! As many jobs are there at the end as at the beginning, and the snapshot sees those that it saw.

use super::{record, taken, there_and_back, turns};
use crate::Result;
use crate::load::{self, Load, quantile_ms};
use crate::measure::count;
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};

const TPS: Figure = Figure { name: "transactions", unit: "tps" };
const TPS_FIRST: Figure = Figure { name: "transactions, first fifth of the time", unit: "tps" };
const TPS_LAST: Figure = Figure { name: "transactions, last fifth of the time", unit: "tps" };
const TABLE: Figure = Figure { name: "table at the end", unit: "bytes" };
const INDEX: Figure = Figure { name: "its index at the end", unit: "bytes" };
const WITHOUT: &str = "without";
const WITH: &str = "with";

/// Jobs that wait at any time.
const BACKLOG: u64 = 1000;

const JOB: &str = "\
INSERT INTO jobs (payload) VALUES ('one of many that come and go');
DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
";
/// What a snapshot sees of the queue.
const SEEN: &str = "SELECT count(*), min(id), max(id), sum(id) FROM jobs";

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let seconds = plan.scaled(15).clamp(5, 300);
    e.workload = format!(
        "a queue of {BACKLOG} jobs, pgbench -c 8 for {seconds} s, each transaction puts one in and takes one; \
         with and without an idle REPEATABLE READ snapshot"
    );
    let statements = statements();
    e.steps = statements.clone();
    e.steps.push("BEGIN ISOLATION LEVEL REPEATABLE READ".into());
    e.steps.push(SEEN.into());
    e.steps.extend(JOB.lines().map(str::to_owned));
    let settings = [("autovacuum", "on"), ("autovacuum_naptime", "1s")];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    progress.begin("queue", subjects.len() as u64 * 2 * plan.rounds as u64 * seconds);
    let build = |subject: &Subject| -> Result<()> {
        subject.sql(&statements.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for subject in &mut subjects {
        load::available(&subject.pgbench)?;
        build(subject)?;
        subject.save()?;
    }
    for round in 0..plan.rounds {
        for &x in there_and_back(&[WITHOUT, WITH], round) {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                progress.step(&format!("{}: {x} an idle snapshot", subject.label), seconds);
                one(subject, x, seconds, e, &build)?;
            }
        }
    }
    targets(results, e);
    Ok(())
}

fn statements() -> Vec<String> {
    vec![
        "DROP TABLE IF EXISTS jobs".into(),
        "CREATE TABLE jobs (id bigserial PRIMARY KEY, payload text NOT NULL)".into(),
        format!(
            "INSERT INTO jobs (payload) SELECT 'one of the first' FROM generate_series(1, {BACKLOG})"
        ),
        "VACUUM ANALYZE jobs".into(),
        "CHECKPOINT".into(),
    ]
}

fn one(
    subject: &mut Subject,
    x: &str,
    seconds: u64,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    subject.fresh(Fresh::default(), e, build)?;
    let mut idle = subject.connect()?;
    if x == WITH {
        idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
    }
    let seen = idle.run(SEEN)?.rows();
    let load = Load { script: JOB, clients: 8, seconds, ..Load::default() };
    let measured = load.run(&subject.pgbench, &subject.target())?;
    if x == WITH {
        let again = idle.run(SEEN)?.rows();
        if seen != again {
            let what = format!("{label}: the snapshot saw {seen:?} and then {again:?}");
            return Err(what.into());
        }
        idle.run("COMMIT")?;
    }
    let left = idle.value("SELECT count(*) FROM jobs")?;
    if left != BACKLOG.to_string() {
        return Err(format!("{label}: {left} jobs of {BACKLOG} are left").into());
    }
    let mut bytes = |sql: &str| -> Result<f64> { Ok(idle.value(sql)?.parse()?) };
    let per_second: Vec<f64> = measured.seconds.iter().map(|of| count(of.len())).collect();
    let figures = [
        (TPS, Some(measured.tps)),
        (TPS_FIRST, fifth(&per_second, 0)),
        (TPS_LAST, fifth(&per_second, 4)),
        (f::P99, Some(quantile_ms(&measured.latency, 0.99))),
        (TABLE, Some(bytes("SELECT pg_relation_size('jobs')")?)),
        (INDEX, Some(bytes("SELECT pg_relation_size('jobs_pkey')")?)),
    ];
    record(e, &label, x, &figures);
    taken(e, &label, x, &measured.taken);
    for (second, tps) in per_second.iter().enumerate() {
        e.point(&label, x, TPS, count(second as u64), *tps);
    }
    Ok(())
}

/// The mean of one fifth of what was counted in whole seconds: the last one is a part of one.
fn fifth(per_second: &[f64], which: usize) -> Option<f64> {
    let whole = &per_second[..per_second.len().saturating_sub(1)];
    let part = whole.get(whole.len() * which / 5..whole.len() * (which + 1) / 5)?;
    (!part.is_empty()).then(|| part.iter().sum::<f64>() / count(part.len() as u64))
}

fn targets(results: &Results, e: &mut Experiment) {
    let Some(ours) = results.ebb().map(str::to_owned) else { return };
    let pair = |figure| ((ours.as_str(), WITH, figure), (ours.as_str(), WITHOUT, figure));
    let (a, b) = pair(TPS_LAST);
    e.want_ratio("TPS at the end, with / without an idle snapshot", Bound::AtLeast(0.95), a, b);
    for (what, figure) in [("table", TABLE), ("index", INDEX)] {
        let (a, b) = pair(figure);
        e.want_ratio(format!("{what}, with / without"), Bound::AtMost(2.0), a, b);
    }
    if let Some(theirs) = results.peer(e).map(str::to_owned) {
        for x in [WITHOUT, WITH] {
            let (a, b) = ((ours.as_str(), x, TPS_LAST), (theirs.as_str(), x, TPS_LAST));
            let what = format!("TPS at the end, {x}, Ebb / PostgreSQL");
            e.want_ratio(what, Bound::AtLeast(1.0), a, b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_is_of_whole_seconds() {
        let seconds: Vec<f64> = (0..11).map(f64::from).collect();
        assert_eq!(fifth(&seconds, 0), Some(0.5));
        assert_eq!(fifth(&seconds, 4), Some(8.5));
        assert_eq!(fifth(&seconds[..3], 0), None);
        assert_eq!(fifth(&[], 4), None);
    }
}
