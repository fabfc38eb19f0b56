//! What one idle REPEATABLE READ transaction costs a busy database.
//!
//! pgbench's own transactions with and without a snapshot held open; the same sums read through it before and
//! after must agree.

use super::{record, taken, there_and_back, turns};
use crate::Result;
use crate::load::{self, Load, quantile_ms};
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Kind, Results, figure as f};
use crate::subject::{self, Fresh, Subject};

const TPS: Figure = Figure { name: "transactions", unit: "tps" };
const TABLES: [(&str, Figure); 4] = [
    ("pgbench_accounts", Figure { name: "pgbench_accounts", unit: "bytes" }),
    ("pgbench_tellers", Figure { name: "pgbench_tellers", unit: "bytes" }),
    ("pgbench_branches", Figure { name: "pgbench_branches", unit: "bytes" }),
    ("pgbench_history", Figure { name: "pgbench_history", unit: "bytes" }),
];
const WITHOUT: &str = "without";
const WITH: &str = "with";
const SUMS: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), \
    (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), \
    (SELECT count(*) FROM pgbench_history)";

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let seconds = plan.scaled(20).clamp(2, 300);
    let (scale, rows) = super::pgbench_rows(plan, 1_000_000);
    let scale = scale.min(10);
    e.workload = format!(
        "pgbench -b tpcb-like -s {scale} -c 8 for {seconds} s, with and without an idle REPEATABLE READ snapshot"
    );
    e.steps = vec![
        "BEGIN ISOLATION LEVEL REPEATABLE READ".into(),
        SUMS.into(),
        format!("pgbench -n -M prepared -c 8 -T {seconds}"),
        SUMS.into(),
        "COMMIT".into(),
    ];
    let pool = super::pool(rows.min(1_000_000) * 2);
    let naptime = format!("{}s", (seconds / 20).clamp(1, 60));
    let settings = [
        ("shared_buffers", pool.as_str()),
        ("autovacuum", "on"),
        ("autovacuum_naptime", naptime.as_str()),
    ];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    // Targets are of Ebb with and without; what another server does in a shorter time stands at a setting of its own.
    let theirs = plan.peers_s.unwrap_or(seconds).min(seconds);
    let length = |subject: &Subject| if subject.kind == Kind::Ebb { seconds } else { theirs };
    if subjects.iter().any(|s| length(s) < seconds) {
        e.note(format!(
            "The load runs for {seconds} s on Ebb and for {theirs} s on other servers: tables are as large as the load \
             has had time to make them."
        ));
    }
    let all: u64 = subjects.iter().map(|s| 2 * plan.rounds as u64 * length(s)).sum();
    progress.begin("longtx", all);
    let build = |subject: &Subject| -> Result<()> {
        load::fill(&subject.pgbench, &subject.target(), &["-s", &scale.to_string()])?;
        subject.sql(&["CHECKPOINT"])
    };
    for subject in &mut subjects {
        progress.step(&format!("{}: pgbench -i -s {scale}", subject.label), 0);
        build(subject)?;
        subject.save()?;
    }
    for round in 0..plan.rounds {
        for &x in there_and_back(&[WITHOUT, WITH], round) {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                let length = length(subject);
                progress.step(&format!("{}: {x} an idle snapshot", subject.label), length);
                let setting =
                    if length < seconds { format!("{x}, {length} s") } else { x.to_owned() };
                one(subject, x == WITH, &setting, length, e, &build)?;
            }
        }
    }
    for server in results.servers.iter().map(|s| s.label.as_str()) {
        let pair = |figure| ((server, WITH, figure), (server, WITHOUT, figure));
        let ours = results.ebb() == Some(server);
        if !ours {
            continue;
        }
        let (a, b) = pair(TPS);
        e.want_ratio("TPS with / without an idle snapshot", Bound::AtLeast(0.95), a, b);
        for (table, figure) in &TABLES[1..3] {
            let (a, b) = pair(*figure);
            e.want_ratio(format!("{table} with / without"), Bound::AtMost(2.0), a, b);
        }
    }
    Ok(())
}

fn one(
    subject: &mut Subject,
    held: bool,
    x: &str,
    seconds: u64,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    subject.fresh(Fresh::default(), e, build)?;
    let mut idle = subject.connect()?;
    let mut before = Vec::new();
    if held {
        idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        before = idle.run(SUMS)?.rows();
    }
    let load = Load { builtin: "tpcb-like", clients: 8, seconds, ..Load::default() };
    let measured = load.run(&subject.pgbench, &subject.target())?;
    let mut client = subject.connect()?;
    for (table, figure) in TABLES {
        let bytes = client.value(&format!("SELECT pg_relation_size('{table}')"))?.parse()?;
        e.record(&label, x, figure, bytes);
    }
    let figures = [(TPS, Some(measured.tps)), (f::P99, Some(quantile_ms(&measured.latency, 0.99)))];
    record(e, &label, x, &figures);
    taken(e, &label, x, &measured.taken);
    for (second, of) in measured.seconds.iter().enumerate() {
        let at = crate::measure::count(second as u64);
        e.point(&label, x, TPS, at, crate::measure::count(of.len()));
    }
    if held {
        let after = idle.run(SUMS)?.rows();
        if before != after {
            return Err(format!(
                "{label}: the snapshot's sums changed from {before:?} to {after:?}"
            )
            .into());
        }
        idle.run("COMMIT")?;
    }
    Ok(())
}
