//! Experiment 3: what INDEX_CLEANUP costs, by the share of rows updated.
//!
//! Every VACUUM meets a fresh copy of pgbench's accounts of which that share was updated just before, so that ON and
//! OFF have the same work. Beside the published table, two variants: a second index on text in random order, and the
//! table read once between UPDATE and VACUUM, so that pruning on access came first.

use super::{notices, record, there_and_back, turns};
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::{Result, load, vacuum_report};
use std::time::Instant;

const SOME: &[u64] = &[1, 5, 21, 55];
/// Of a table that is there to try the experiment itself.
const FEW: &[u64] = &[1, 55];
const ALL: &[u64] = &[1, 2, 3, 5, 8, 13, 21, 34, 55];

/// A variant: its name, and the figures of ON and OFF.
struct Variant {
    name: &'static str,
    on: Figure,
    off: Figure,
    /// The WAL of either.
    wal: [Figure; 2],
    second_index: bool,
    read_once: bool,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: "",
        on: f::INDEX_ON,
        off: f::INDEX_OFF,
        wal: [
            Figure { name: "WAL, INDEX_CLEANUP on", unit: "bytes" },
            Figure { name: "WAL, INDEX_CLEANUP off", unit: "bytes" },
        ],
        second_index: false,
        read_once: false,
    },
    Variant {
        name: ", read once before",
        on: Figure { name: "VACUUM, INDEX_CLEANUP on, table read once before", unit: "s" },
        off: Figure { name: "VACUUM, INDEX_CLEANUP off, table read once before", unit: "s" },
        wal: [
            Figure { name: "WAL, INDEX_CLEANUP on, table read once before", unit: "bytes" },
            Figure { name: "WAL, INDEX_CLEANUP off, table read once before", unit: "bytes" },
        ],
        second_index: false,
        read_once: true,
    },
    Variant {
        name: ", second index",
        on: Figure { name: "VACUUM, INDEX_CLEANUP on, second index on md5 text", unit: "s" },
        off: Figure { name: "VACUUM, INDEX_CLEANUP off, second index on md5 text", unit: "s" },
        wal: [
            Figure { name: "WAL, INDEX_CLEANUP on, second index on md5 text", unit: "bytes" },
            Figure { name: "WAL, INDEX_CLEANUP off, second index on md5 text", unit: "bytes" },
        ],
        second_index: true,
        read_once: false,
    },
];

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let (scale, rows) = super::pgbench_rows(plan, 500_000);
    e.workload = format!(
        "pgbench -i -s {scale} ({rows} rows); n % updated, then VACUUM with and without index clean-up"
    );
    e.steps = vec![
        format!("pgbench -i -s {scale}"),
        "UPDATE pgbench_accounts SET aid = aid WHERE aid <= n % of the rows".into(),
        "VACUUM (INDEX_CLEANUP on, VERBOSE) pgbench_accounts".into(),
        "the same on a fresh copy with INDEX_CLEANUP off".into(),
    ];
    let large = rows >= 5_000_000 || plan.scale >= 5.0;
    let some = if rows < 100_000 { FEW } else { SOME };
    let percents = if large { ALL } else { some };
    let pool = super::pool(rows);
    let settings = [("shared_buffers", pool.as_str()), ("autovacuum", "off")];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    let more = percents.len() - some.len();
    if more > 0 && plan.rounds > 1 {
        e.note(format!(
            "Shares without a target (2, 3, 8, 13, 34 %) are measured in one round, the others in {}.",
            plan.rounds
        ));
    }
    let cells = plan.rounds * 2 * VARIANTS.len() * some.len() + 2 * more;
    progress.begin("index", (subjects.len() * (cells + 8)) as u64);
    let mut built = None;
    for variant in &VARIANTS {
        let build = |subject: &Subject| build(subject, scale, rows, variant.second_index);
        if built != Some(variant.second_index) {
            built = Some(variant.second_index);
            for subject in &mut subjects {
                progress.step(&format!("{}: {rows} rows{}", subject.label, variant.name), 4);
                subject.start()?;
                build(subject)?;
                subject.save()?;
            }
        }
        for round in 0..plan.rounds {
            // The shares that nothing is wanted of, once and of the published table.
            let all = round == 0 && variant.name.is_empty();
            for n in if all { percents } else { some } {
                for mode in there_and_back(&["on", "off"], round) {
                    for at in turns(&subjects, round) {
                        let subject = &mut subjects[at];
                        let label = &subject.label;
                        let what = format!("{label}: {mode} at {n} %{}", variant.name);
                        progress.step(&what, 1);
                        one(subject, variant, *n, rows, mode, e, &build)?;
                    }
                }
            }
        }
    }
    targets(results, e);
    Ok(())
}

fn build(subject: &Subject, scale: u64, rows: u64, second_index: bool) -> Result<()> {
    if !second_index {
        super::fill_accounts(subject, scale, rows)?;
        return subject.sql(&["CHECKPOINT"]);
    }
    let (pgbench, target) = (&subject.pgbench, subject.target());
    load::fill(pgbench, &target, &["-I", "dt", "-s", &scale.to_string()])?;
    subject.sql(&[
        "ALTER TABLE pgbench_accounts ADD COLUMN code text",
        &format!(
            "INSERT INTO pgbench_accounts (aid, bid, abalance, filler, code) \
             SELECT g, (g - 1) / 100000 + 1, 0, '', md5(g::text) FROM generate_series(1, {rows}) g"
        ),
        "VACUUM ANALYZE pgbench_accounts",
        "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
        "CREATE INDEX ON pgbench_accounts (code)",
        "CHECKPOINT",
    ])
}

fn one(
    subject: &mut Subject,
    variant: &Variant,
    n: u64,
    rows: u64,
    mode: &str,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    subject.fresh(Fresh::default(), e, build)?;
    let mut client = subject.connect()?;
    let last = rows * n / 100;
    client.run(&format!("UPDATE pgbench_accounts SET aid = aid WHERE aid <= {last}"))?;
    if variant.read_once {
        client.run("SELECT sum(abalance) FROM pgbench_accounts")?;
    }
    let sql = format!("VACUUM (INDEX_CLEANUP {mode}, VERBOSE) pgbench_accounts");
    let begun = Instant::now();
    let outcome = client.run(&sql)?;
    let elapsed = begun.elapsed().as_secs_f64();
    client.close();
    let text = notices(&outcome);
    let report = vacuum_report::parse(&text).into_iter().next().unwrap_or_default();
    let x = format!("{n} %");
    let [wal_on, wal_off] = variant.wal;
    let (time, wal) = if mode == "on" { (variant.on, wal_on) } else { (variant.off, wal_off) };
    record(e, &label, &x, &[(time, Some(elapsed)), (wal, report.wal_bytes())]);
    e.report(&label, &x, &format!("{sql}{}", variant.name), &text);
    Ok(())
}

fn targets(results: &Results, e: &mut Experiment) {
    let Some(ours) = results.ebb() else { return };
    for variant in &VARIANTS {
        for n in SOME {
            let x = format!("{n} %");
            if let Some(theirs) = results.peer(e) {
                let bound = if *n == 1 { 0.2 } else { 0.5 };
                let what = format!("{} at {x}, Ebb / PostgreSQL", variant.on.name);
                let at = |server| (server, x.as_str(), variant.on);
                e.want_ratio(what, Bound::AtMost(bound), at(ours), at(theirs));
            }
            let what = format!("Ebb's ON / OFF at {x}{}", variant.name);
            let pair = ((ours, x.as_str(), variant.on), (ours, x.as_str(), variant.off));
            e.want_ratio(what, Bound::AtMost(1.5), pair.0, pair.1);
        }
    }
}
