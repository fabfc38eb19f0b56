//! Experiment 2: the aggressive-vacuum spike.
//!
//! Rows are only ever added, at a fixed rate, while autovacuum runs with ages so low that days pass in minutes. Every
//! vacuum's line and every transaction's latency is kept. The same load runs with autovacuum off, to have its own
//! latency beside. Then a load that updates, where a page frozen too early is soon modified again.
//!
//! # Invariants
//! A transaction uses five XIDs, so that ages pass at five times its rate. The load without autovacuum has the default
//! `autovacuum_freeze_max_age`, or it would be vacuumed all the same.

use super::{record, taken, turns};
use crate::at_work;
use crate::load::{Load, Measured, quantile_ms};
use crate::measure::{count, median};
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::vacuum_report::{self, VacuumReport};
use crate::{Result, load};
use hdrhistogram::Histogram;
use std::time::Duration;

const VACUUMS: Figure = Figure { name: "vacuums of the table", unit: "vacuums" };
const AGE: Figure = Figure { name: "age of relfrozenxid", unit: "XIDs" };
const GREATEST_AGE: Figure = Figure { name: "greatest age of relfrozenxid", unit: "XIDs" };
const P50: Figure = Figure { name: "p50 latency of the load", unit: "ms" };
const P999: Figure = Figure { name: "p99.9 latency of the load", unit: "ms" };
const P99_MET: Figure = Figure { name: "p99 of transactions while autovacuum worked", unit: "ms" };
const P99_OTHERS: Figure = Figure { name: "p99 of transactions while it did not", unit: "ms" };
const MET: Figure = Figure { name: "transactions while autovacuum worked", unit: "%" };
const SLOWEST: Figure = Figure { name: "slowest transaction", unit: "ms" };
const TPS: Figure = Figure { name: "transactions", unit: "tps" };
const TABLE_BYTES: Figure = Figure { name: "table", unit: "bytes" };
const GREATEST_BACKLOG: Figure = Figure { name: "greatest freeze backlog", unit: "pages" };
const FROZEN_TOTAL: Figure = Figure { name: "pages set all-frozen by vacuums", unit: "pages" };
const THAWED: Figure = Figure { name: "of them modified again", unit: "%" };
const INSERTS: &str = "autovacuum on";
const ALONE: &str = "autovacuum off";
const UPDATES: &str = "updates";

/// Transactions a second, the XIDs that each uses and the rows that it adds.
const RATE: u32 = 250;
const XIDS: u32 = 5;

const APPEND: &str = "\
BEGIN;
SAVEPOINT a;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT 1, 1, g, 0, CURRENT_TIMESTAMP FROM generate_series(1, 20) g;
RELEASE a;
SAVEPOINT b;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT 2, 1, g, 0, CURRENT_TIMESTAMP FROM generate_series(1, 20) g;
RELEASE b;
SAVEPOINT c;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT 3, 1, g, 0, CURRENT_TIMESTAMP FROM generate_series(1, 20) g;
RELEASE c;
SAVEPOINT d;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT 4, 1, g, 0, CURRENT_TIMESTAMP FROM generate_series(1, 20) g;
RELEASE d;
COMMIT;
";

/// A few rows are updated often, most of them hardly ever.
const UPDATE: &str = "\
\\set one random_zipfian(1, :rows, 1.2)
\\set two random_zipfian(1, :rows, 1.2)
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :one;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :two;
";

/// How long, and how old things may grow.
struct Ages {
    seconds: u64,
    xids: u64,
    freeze_max_age: u64,
}

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let seconds = plan.scaled(15).clamp(2, 240);
    let xids = seconds * u64::from(RATE * XIDS);
    // PostgreSQL takes no less than 100,000.
    let ages = Ages { seconds, xids, freeze_max_age: (xids / 3).max(100_000) };
    let scale = plan.rows(300_000).div_ceil(100_000).clamp(1, 10);
    let rows = scale * 100_000;
    e.workload = format!(
        "{RATE} transactions a second for {seconds} s, each adding 80 rows to pgbench_history with {XIDS} XIDs; \
         then {RATE} a second for {} s, each updating two of {rows} rows, some often and most hardly ever",
        ages.update_seconds()
    );
    e.steps = vec![
        format!("pgbench -i -I dtGp -s {scale}"),
        format!(
            "pgbench -R {RATE} -c 4 -T {seconds} -f append.sql (autovacuum off and on, in turn first)"
        ),
        APPEND.into(),
        format!("pgbench -R {RATE} -c 4 -T {} -f update.sql", ages.update_seconds()),
        UPDATE.into(),
    ];
    let (naptime, min_age, table_age) = (
        ages.naptime_s(),
        (xids / 40).to_string(),
        (xids / 4).min(ages.freeze_max_age / 2).to_string(),
    );
    let settings = [
        ("shared_buffers", "512MB"),
        ("autovacuum", "on"),
        ("autovacuum_naptime", naptime.as_str()),
        ("autovacuum_vacuum_insert_threshold", "1000"),
        ("autovacuum_vacuum_insert_scale_factor", "0"),
        ("autovacuum_vacuum_scale_factor", "0.002"),
        ("vacuum_freeze_min_age", min_age.as_str()),
        ("vacuum_freeze_table_age", table_age.as_str()),
        ("log_autovacuum_min_duration", "0"),
        ("log_line_prefix", at_work::LOG_LINE_PREFIX),
        ("track_io_timing", "on"),
    ];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    e.settings.push(("autovacuum_freeze_max_age".into(), ages.freeze_max_age.to_string()));
    let each = 2 * seconds + ages.update_seconds();
    progress.begin("freeze", subjects.len() as u64 * plan.rounds as u64 * each);
    let build = |subject: &Subject| -> Result<()> {
        let scale = scale.to_string();
        load::fill(&subject.pgbench, &subject.target(), &["-I", "dtGp", "-s", &scale])?;
        subject.has_extension("pg_visibility")?;
        subject.sql(&["CHECKPOINT"])
    };
    for subject in &mut subjects {
        load::available(&subject.pgbench)?;
        progress.step(&format!("{}: pgbench -i", subject.label), 0);
        build(subject)?;
        subject.save()?;
    }
    for round in 0..plan.rounds {
        // What the machine does by the hour must not fall on the same side each time.
        let loads = if round % 2 == 0 { [ALONE, INSERTS] } else { [INSERTS, ALONE] };
        for x in loads.into_iter().chain([UPDATES]) {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                let length = if x == UPDATES { ages.update_seconds() } else { seconds };
                progress.step(&format!("{}: {x}", subject.label), length);
                one(subject, x, &ages, rows, e, &build)?;
            }
        }
    }
    targets(&ages, results, e);
    Ok(())
}

impl Ages {
    fn update_seconds(&self) -> u64 {
        (self.seconds / 2).max(1)
    }

    /// So that there are some two dozen vacuums.
    fn naptime_s(&self) -> String {
        format!("{}s", (self.seconds / 24).max(1))
    }
}

/// What was seen while the load ran.
#[derive(Default)]
struct Seen {
    vacuums: Vec<VacuumReport>,
    /// Seconds of each, from the statistics view where it has them, which is finer than the report's hundredths.
    lengths: Vec<f64>,
    greatest_age: Option<f64>,
    greatest_backlog: Option<f64>,
}

fn one(
    subject: &mut Subject,
    x: &str,
    ages: &Ages,
    rows: u64,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    let on = x != ALONE;
    match subject.server() {
        Some(server) => {
            server.set("autovacuum", if on { "on" } else { "off" });
            let age = if on { ages.freeze_max_age } else { 200_000_000 };
            server.set("autovacuum_freeze_max_age", &age.to_string());
        }
        None => e.note(format!("{label} was running: with its own autovacuum settings")),
    }
    subject.fresh(Fresh::default(), e, build)?;
    let variables = [("rows", rows.to_string())];
    let load = Load {
        script: if x == UPDATES { UPDATE } else { APPEND },
        variables: if x == UPDATES { &variables } else { &[] },
        clients: 4,
        rate: Some(RATE),
        seconds: if x == UPDATES { ages.update_seconds() } else { ages.seconds },
        ..Load::default()
    };
    let table = if x == UPDATES { "pgbench_accounts" } else { "pgbench_history" };
    let (measured, seen) = watched(subject, &load, table, x, e)?;
    latencies(&label, x, &measured, e);
    taken(e, &label, x, &measured.taken);
    if !on {
        return Ok(());
    }
    met(&label, x, &measured, &subject.log(), e)?;
    let mut client = subject.connect()?;
    let bytes: f64 = client.value(&format!("SELECT pg_relation_size('{table}')"))?.parse()?;
    e.record(&label, x, TABLE_BYTES, bytes);
    let texts: Vec<&str> = seen.vacuums.iter().map(|v| v.text.as_str()).collect();
    e.report(&label, x, &format!("every automatic vacuum of {table}"), &texts.join("\n"));
    let reported: Vec<f64> = seen.vacuums.iter().filter_map(VacuumReport::elapsed_s).collect();
    let timed = seen.lengths.iter().any(|l| *l > 0.0);
    let lengths = if timed { seen.lengths.clone() } else { reported };
    let sum = |of: fn(&VacuumReport) -> Option<f64>| {
        let values: Vec<f64> = seen.vacuums.iter().filter_map(of).collect();
        if values.is_empty() { None } else { Some(values.iter().sum::<f64>()) }
    };
    let some = |value: f64| Some(value).filter(|v| v.is_finite());
    let first = seen.vacuums.iter().find(|v| v.aggressive);
    let figures = [
        (VACUUMS, Some(count(seen.vacuums.len() as u64))),
        (f::LONGEST_VACUUM, lengths.iter().copied().reduce(f64::max)),
        (f::MEDIAN_VACUUM, some(median(&lengths))),
        (f::AGGRESSIVE_VACUUM, first.and_then(VacuumReport::elapsed_s)),
        (f::AGGRESSIVE_PAGES, first.and_then(VacuumReport::pages_scanned)),
        (f::AGGRESSIVE_WAL, first.and_then(VacuumReport::wal_bytes)),
        (f::VACUUM_WAL, sum(VacuumReport::wal_bytes)),
        (f::VACUUM_IO, sum(VacuumReport::io_ms)),
        (GREATEST_AGE, seen.greatest_age),
        (GREATEST_BACKLOG, seen.greatest_backlog),
        (FROZEN_TOTAL, sum(VacuumReport::pages_set_frozen)),
    ];
    record(e, &label, x, &figures);
    if x == UPDATES
        && let Some(frozen) = sum(VacuumReport::pages_set_frozen)
        && let Some(left) = map_summary(&mut client, table).map(|m| m.1)
    {
        // None was frozen at the start, so what was frozen and is not now was modified.
        let thawed = if frozen > 0.0 { 100.0 * (frozen - left) / frozen } else { 0.0 };
        e.record(&label, x, THAWED, thawed);
    }
    Ok(())
}

/// All-visible and all-frozen pages, where the server can tell.
fn map_summary(client: &mut crate::client::Client, table: &str) -> Option<(f64, f64)> {
    let sql = format!("SELECT all_visible, all_frozen FROM pg_visibility_map_summary('{table}')");
    let row = client.run(&sql).ok()?.rows().into_iter().next()?;
    let value = |at: usize| row.get(at)?.as_ref()?.parse::<f64>().ok();
    Some((value(0)?, value(1)?))
}

/// How many automatic vacuums there were, and their milliseconds in all; 18 and later count those.
fn timed(client: &mut crate::client::Client, table: &str) -> Option<(f64, f64)> {
    let sql = format!(
        "SELECT autovacuum_count, total_autovacuum_time FROM pg_stat_all_tables WHERE relname = '{table}'"
    );
    let row = client.run(&sql).ok()?.rows().into_iter().next()?;
    let value = |at: usize| row.get(at)?.as_ref()?.parse::<f64>().ok();
    Some((value(0)?, value(1)?))
}

/// Runs the load and looks at the table and the log twice a second.
fn watched(
    subject: &Subject,
    load: &Load<'_>,
    table: &str,
    x: &str,
    e: &mut Experiment,
) -> Result<(Measured, Seen)> {
    let label = &subject.label;
    let mut client = subject.connect()?;
    let mut running = load.start(&subject.pgbench, &subject.target())?;
    let mut seen = Seen::default();
    let mut before = timed(&mut client, table);
    let age = format!("SELECT age(relfrozenxid) FROM pg_class WHERE relname = '{table}'");
    loop {
        let ended = running.ended(Duration::from_millis(500))?;
        let at = running.elapsed();
        let log = subject.log();
        let all = vacuum_report::parse(&log).into_iter();
        let ours = all.filter(|v| v.automatic && v.table.ends_with(&format!(".{table}")));
        // The last may not be written whole yet: its last line is the one of system usage.
        let whole: Vec<VacuumReport> = ours.filter(|v| v.elapsed_s().is_some()).collect();
        let now = timed(&mut client, table);
        if let (Some((times, total)), Some((times_now, total_now))) = (before, now)
            && times_now > times
        {
            // Two between two looks share their time.
            let length = (total_now - total) / (times_now - times) / 1000.0;
            e.point(label, x, f::VACUUM_LENGTH, at, length);
            seen.lengths.push(length);
        }
        before = now;
        for vacuum in whole.into_iter().skip(seen.vacuums.len()) {
            if now.is_none()
                && let Some(length) = vacuum.elapsed_s()
            {
                e.point(label, x, f::VACUUM_LENGTH, at, length);
            }
            if let Some(pages) = vacuum.pages_set_frozen().or(vacuum.pages_frozen()) {
                e.point(label, x, f::FROZEN_PAGES, at, pages);
            }
            seen.vacuums.push(vacuum);
        }
        let years: f64 = client.value(&age)?.parse()?;
        seen.greatest_age = Some(seen.greatest_age.map_or(years, |g| g.max(years)));
        e.point(label, x, AGE, at, years);
        if let Some((visible, frozen)) = map_summary(&mut client, table) {
            let backlog = visible - frozen;
            seen.greatest_backlog = Some(seen.greatest_backlog.map_or(backlog, |g| g.max(backlog)));
            e.point(label, x, f::BACKLOG, at, backlog);
        }
        if ended {
            break;
        }
    }
    Ok((running.finish()?, seen))
}

fn latencies(label: &str, x: &str, measured: &Measured, e: &mut Experiment) {
    let at = |quantile| Some(quantile_ms(&measured.latency, quantile));
    let figures = [
        (f::P99, at(0.99)),
        (P50, at(0.5)),
        (P999, at(0.999)),
        (SLOWEST, Some(count(measured.latency.max()) / 1000.0)),
        (TPS, Some(measured.tps)),
    ];
    record(e, label, x, &figures);
    for (second, of) in measured.seconds.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
        e.point(label, x, f::P99, count(second as u64), quantile_ms(of, 0.99));
    }
    if measured.failed > 0 {
        e.note(format!("{label}: {} transactions failed ({x})", measured.failed));
    }
}

/// What autovacuum's work did to those who met it, beside the others of the same minutes.
fn met(label: &str, x: &str, measured: &Measured, log: &str, e: &mut Experiment) -> Result<()> {
    let spans = at_work::spans(log);
    if spans.is_empty() {
        return Ok(());
    }
    let (met, others) = at_work::divide(&measured.transactions, &spans)?;
    let p99 = |of: &Histogram<u64>| (!of.is_empty()).then(|| quantile_ms(of, 0.99));
    let share = 100.0 * count(met.len()) / count((met.len() + others.len()).max(1));
    let figures = [(P99_MET, p99(&met)), (P99_OTHERS, p99(&others)), (MET, Some(share))];
    record(e, label, x, &figures);
    Ok(())
}

fn targets(ages: &Ages, results: &Results, e: &mut Experiment) {
    let Some(ours) = results.ebb() else { return };
    let pair = |one, other| ((ours, INSERTS, one), (ours, INSERTS, other));
    let (a, b) = pair(f::LONGEST_VACUUM, f::MEDIAN_VACUUM);
    e.want_ratio("Ebb's longest vacuum / its median one", Bound::AtMost(1.5), a, b);
    e.want_ratio(
        "Ebb's p99, autovacuum on / off",
        Bound::AtMost(1.1),
        (ours, INSERTS, f::P99),
        (ours, ALONE, f::P99),
    );
    let vacuums = e.median(ours, INSERTS, VACUUMS.name);
    e.want("vacuums of the table in Ebb", Bound::AtLeast(10.0), vacuums);
    let age = e.median(ours, INSERTS, GREATEST_AGE.name);
    let share = age.map(|a| a / count(ages.freeze_max_age));
    let what = "greatest age of relfrozenxid in Ebb / autovacuum_freeze_max_age";
    e.want(what, Bound::AtMost(1.0), share);
    if let Some(theirs) = results.peer(e) {
        let at = |server| (server, INSERTS, f::VACUUM_WAL);
        e.want_ratio(
            "WAL of all vacuums, Ebb / PostgreSQL",
            Bound::AtMost(1.0),
            at(ours),
            at(theirs),
        );
    }
    let thawed = e.median(ours, UPDATES, THAWED.name);
    e.want("pages that Ebb froze and that were modified again, %", Bound::AtMost(5.0), thawed);
    if ages.xids < ages.freeze_max_age {
        e.note("The run is too short for any table to reach autovacuum_freeze_max_age (PostgreSQL takes no less than 100,000): use --scale 16.");
    }
}
