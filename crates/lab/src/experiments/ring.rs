//! Experiment 1: how much VACUUM writes, by BUFFER_USAGE_LIMIT.
//!
//! The table is built once for each server and its folder kept; every turn vacuums a copy of it with cold
//! caches, so that all limits and rounds meet the same pages. Calls are counted in turns of their own under
//! strace, since that takes time; the others are timed. The last turns leave the VACUUM to autovacuum, and read in
//! the server's log what it did.

use super::{notices, record, there_and_back, turns};
use crate::client::Client;
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::subject::{self, Fresh, Subject};
use crate::vacuum_report::VacuumReport;
use crate::{Result, trace, vacuum_report};
use std::time::{Duration, Instant};

/// What each limit is called, and what the statement says.
const LIMITS: &[(&str, &str)] =
    &[("256 kB", "256 kB"), ("2 MB", "2 MB"), ("32 MB", "32 MB"), ("no limit", "0")];

/// What the turns of autovacuum are called.
const AUTOVACUUM: &str = "autovacuum, 256 kB";

/// Hands the table to autovacuum, with nothing that would slow it down or come after it.
const HAND_OVER: &str = "ALTER TABLE table1 SET (autovacuum_enabled = true, autovacuum_vacuum_threshold = 0, \
     autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0, log_autovacuum_min_duration = 0, \
     autovacuum_analyze_threshold = 2147483647)";

/// Makes it due even where a server has forgotten over its restart how many rows are dead.
const ONE_MORE: &str = "UPDATE table1 SET filler = filler WHERE id = 1";

/// How a turn's VACUUM is run.
#[derive(Clone, Copy)]
enum Way {
    /// By hand, at a limit: its name and its value.
    Hand(&'static str, &'static str),
    /// By autovacuum, at 256 kB.
    Autovacuum,
}

impl Way {
    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Way::Hand(name, _) => name,
            Way::Autovacuum => AUTOVACUUM,
        }
    }

    /// The statement that runs it, or that lets it run; none where the server can't.
    fn statement(self, subject: &Subject, e: &mut Experiment) -> Option<String> {
        match self {
            Way::Hand(name, value) => super::limited_vacuum(subject, "table1", (name, value), e),
            Way::Autovacuum => Some(HAND_OVER.into()),
        }
    }
}

/// A VACUUM that was run.
struct Vacuumed {
    seconds: f64,
    report: VacuumReport,
    /// The lines that the server wrote.
    text: String,
}

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
    e.steps.push(format!("{HAND_OVER}; {ONE_MORE}; -- and when autovacuum is done: CHECKPOINT"));

    let mut subjects = subject::open(plan, &settings, results, e)?;
    let rounds = plan.rounds + usize::from(plan.trace);
    let turns_each = LIMITS.len() * rounds + 1 + usize::from(plan.trace);
    progress.begin("ring", (subjects.len() * (turns_each + 5)) as u64);
    let build = |subject: &Subject| -> Result<()> {
        subject.has_extension("pg_buffercache")?;
        subject.sql(&statements.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for subject in &mut subjects {
        progress.step(&format!("{}: {rows} rows", subject.label), 4);
        build(subject)?;
        subject.save()?;
    }
    warm_up(&mut subjects, rows, progress, &build)?;
    for round in 0..rounds {
        let traced = plan.trace && round == plan.rounds;
        for limit in there_and_back(LIMITS, round) {
            for at in turns(&subjects, round) {
                let subject = &mut subjects[at];
                progress.step(&format!("{}: VACUUM at {}", subject.label, limit.0), 1);
                let way = Way::Hand(limit.0, limit.1);
                one(subject, way, rows, Fresh { cold: true, traced }, e, &build)?;
            }
        }
    }
    for (round, traced) in [false, true].into_iter().take(1 + usize::from(plan.trace)).enumerate() {
        for at in turns(&subjects, round) {
            let subject = &mut subjects[at];
            progress.step(&format!("{}: autovacuum at 256 kB", subject.label), 1);
            if with_autovacuum(subject, e) {
                one(subject, Way::Autovacuum, rows, Fresh { cold: true, traced }, e, &build)?;
            }
        }
    }
    if !plan.trace {
        e.note("Write calls: all of the server's (/proc/PID/io) less those that it says it made to WAL; --trace counts them by file.");
    }
    targets(results, e);
    Ok(())
}

/// A turn for each server that is not recorded: the first VACUUM after the loads takes two to three times as long as any later
/// one, whichever server it is, while the disk still has the loads to write.
fn warm_up(
    subjects: &mut [Subject],
    rows: u64,
    progress: &dyn Progress,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let (name, value) = LIMITS[0];
    for subject in subjects {
        progress.step(&format!("{}: a turn to warm up", subject.label), 1);
        let mut unrecorded = Experiment::new("ring");
        let how = Fresh { cold: true, traced: false };
        one(subject, Way::Hand(name, value), rows, how, &mut unrecorded, build)?;
    }
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

/// Has the server run autovacuum from its next start on, for the rest of the experiment; false where it is not ours to
/// restart.
fn with_autovacuum(subject: &mut Subject, e: &mut Experiment) -> bool {
    let (label, has_limit) = (subject.label.clone(), subject.version >= 160_000);
    let Some(server) = subject.server() else {
        e.note(format!(
            "{label} was running: autovacuum's turn needs settings of its own and the log."
        ));
        return false;
    };
    server.set("autovacuum", "on");
    server.set("autovacuum_naptime", "1s");
    if has_limit {
        server.set("vacuum_buffer_usage_limit", "256kB");
    }
    e.note(format!(
        "{AUTOVACUUM}: autovacuum = on, autovacuum_naptime = 1s and, from 16 on, vacuum_buffer_usage_limit = 256kB; \
         one round, its time from the line in the server's log."
    ));
    true
}

fn by_hand(client: &mut Client, sql: &str) -> Result<Vacuumed> {
    let begun = Instant::now();
    let outcome = client.run(sql)?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = notices(&outcome);
    let report = vacuum_report::parse(&text).into_iter().next().unwrap_or_default();
    Ok(Vacuumed { seconds, report, text })
}

/// Hands the table over and waits for autovacuum's line in the log, for longer than any that is on its way takes.
fn by_autovacuum(subject: &Subject, sql: &str, rows: u64) -> Result<Option<Vacuumed>> {
    // A session that ends tells at once what it did.
    subject.sql(&[sql, ONE_MORE])?;
    let patience = Duration::from_secs(60 + rows / 20_000);
    let begun = Instant::now();
    while begun.elapsed() < patience {
        let ours = |r: &VacuumReport| r.automatic && r.table.ends_with(".table1");
        // Whole when its time is there: the lines come one after the other.
        let whole = |r: VacuumReport| r.elapsed_s().map(|seconds| (seconds, r));
        let mut reports = vacuum_report::parse(&subject.log()).into_iter().filter(ours);
        if let Some((seconds, report)) = reports.find_map(whole) {
            let text = report.text.clone();
            return Ok(Some(Vacuumed { seconds, report, text }));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

fn one(
    subject: &mut Subject,
    way: Way,
    rows: u64,
    how: Fresh,
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let x = way.name();
    let label = subject.label.clone();
    let Some(sql) = way.statement(subject, e) else { return Ok(()) };
    subject.fresh(how, e, build)?;
    let mut client = subject.connect()?;
    if !how.traced
        && let Ok(outcome) = client.run(HELD)
    {
        e.report(&label, x, "pg_buffercache before VACUUM", &lines(&outcome.rows()));
    }
    let (before, calls_before) = (subject.counters()?, subject.write_calls());
    let from = trace::now();
    let vacuumed = match way {
        Way::Hand(..) => Some(by_hand(&mut client, &sql)?),
        Way::Autovacuum => by_autovacuum(subject, &sql, rows)?,
    };
    let Some(vacuumed) = vacuumed else {
        e.note(format!("{label}: autovacuum did not come to the table in time."));
        return Ok(());
    };
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
    let log = subject.log();
    let checkpoint = log.lines().rev().find_map(|l| l.split_once("checkpoint complete: wrote "));
    let written = checkpoint.and_then(|(_, l)| l.split_whitespace().next()?.parse().ok());
    let figures = [
        (f::VACUUM_TIME, Some(vacuumed.seconds)),
        (f::WRITE_RATE, vacuumed.report.write_rate()),
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
    // Of a process that came and went, as a worker of autovacuum's, /proc knows nothing.
    if !subject.traces()
        && matches!(way, Way::Hand(..))
        && let Some(all) = calls
    {
        let wal = delta.get(crate::counters::WAL_WRITES).unwrap_or(0.0);
        e.record(&label, x, f::WRITE_CALLS, all - wal);
    }
    e.report(&label, x, &sql, &vacuumed.text);
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
    for (x, ring) in [("256 kB", 32.0), ("2 MB", 256.0), ("32 MB", 4096.0)] {
        let held = e.median(ours, x, f::BUFFERS_HELD.name);
        e.want(format!("buffers the table holds after VACUUM at {x}"), Bound::AtMost(ring), held);
    }
}
