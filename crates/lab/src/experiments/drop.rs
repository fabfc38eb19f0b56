//! Experiment 5: what it costs to forget a relation's pages, live and in crash recovery.
//!
//! Many tables of one row; VACUUM after DELETE, and TRUNCATE, each table in a transaction of its own; with
//! small and large pools, empty and full of another table's pages. Then the server is killed, and the time
//! until it lets a client in again is its redo.

use super::{there_and_back, turns};
use crate::Result;
use crate::client::Client;
use crate::measure::seconds;
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results, figure as f};
use crate::servers::Stop;
use crate::subject::{self, Fresh, Subject};

/// A pool's label, setting and size.
type Pool = (&'static str, &'static str, u64);

const POOLS: &[Pool] = &[
    ("128 MB", "128MB", 128),
    ("1 GB", "1GB", 1 << 10),
    ("4 GB", "4GB", 4 << 10),
    ("12 GB", "12GB", 12 << 10),
];

/// The statement, and its figures: live, redo, and both with a full pool.
const WORKS: &[(&str, [Figure; 4])] = &[
    ("VACUUM", [f::VACUUM_LIVE, f::VACUUM_REDO, f::VACUUM_LIVE_FULL, f::VACUUM_REDO_FULL]),
    (
        "TRUNCATE",
        [f::TRUNCATE_LIVE, f::TRUNCATE_REDO, f::TRUNCATE_LIVE_FULL, f::TRUNCATE_REDO_FULL],
    ),
];

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let large = plan.scale >= 5.0;
    let tables = plan.scaled(200).min(1000);
    let pools = if large { POOLS } else { &POOLS[..2] };
    let fits = crate::measure::memory_bytes() >> 20;
    let pools: Vec<Pool> = pools.iter().filter(|p| p.2 * 3 / 2 < fits).copied().collect();
    let fills: &[bool] = if large { &[false, true] } else { &[false] };
    e.workload = format!(
        "{tables} tables of one row; VACUUM after DELETE, and TRUNCATE, each in a transaction of its own; \
         then kill -9 and the time until a client is let in"
    );
    e.steps = [
        "CREATE TABLE tN (a int); INSERT INTO tN VALUES (1)",
        "DELETE FROM tN",
        "CHECKPOINT",
        "VACUUM tN, or TRUNCATE tN",
        "kill -9, start",
    ]
    .map(str::to_owned)
    .to_vec();
    e.note("The standby's half is not run: Ebb has no standby yet.");
    let settings = [("autovacuum", "off")];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    // Targets compare the largest pool with the smallest: those between show the way from one to the other.
    let ends = |at: usize| at == 0 || at + 1 == pools.len();
    let between = pools.len() - (0..pools.len()).filter(|at| ends(*at)).count();
    if between > 0 {
        e.note(format!(
            "Pools between the smallest and the largest are measured in one round and empty only; rounds of those two: {}.",
            plan.rounds
        ));
    }
    let cells = plan.rounds * (pools.len() - between) * fills.len() + between;
    let turns_each = cells * WORKS.len();
    progress.begin("drop", (subjects.len() * (turns_each + 1)) as u64);
    let build = |subject: &Subject| -> Result<()> {
        let mut client = subject.connect()?;
        for n in 0..tables {
            client.run(&format!("DROP TABLE IF EXISTS t{n}"))?;
            client.run(&format!("CREATE TABLE t{n} (a int)"))?;
            client.run(&format!("INSERT INTO t{n} VALUES (1)"))?;
        }
        client.run("DROP TABLE IF EXISTS after_them")?;
        client.run("CHECKPOINT")?;
        client.close();
        Ok(())
    };
    for subject in &mut subjects {
        progress.step(&format!("{}: {tables} tables", subject.label), 1);
        build(subject)?;
        subject.save()?;
    }
    for round in 0..plan.rounds {
        let some: Vec<(usize, &Pool)> =
            pools.iter().enumerate().filter(|(at, _)| round == 0 || ends(*at)).collect();
        for &(place, pool) in there_and_back(&some, round) {
            for full in fills.iter().filter(|full| !**full || ends(place)) {
                for (work, figures) in WORKS {
                    for at in turns(&subjects, round) {
                        let subject = &mut subjects[at];
                        let state = if *full { ", full" } else { "" };
                        let what = format!("{}: {work} at {}{state}", subject.label, pool.0);
                        progress.step(&what, 1);
                        let fill = if *full { pool.2 } else { 0 };
                        one(subject, work, tables, *pool, fill, figures, e, &build)?;
                    }
                }
            }
        }
    }
    targets(&pools, results, e);
    Ok(())
}

fn one(
    subject: &mut Subject,
    work: &str,
    tables: u64,
    pool: Pool,
    fill: u64,
    figures: &[Figure; 4],
    e: &mut Experiment,
    build: &dyn Fn(&Subject) -> Result<()>,
) -> Result<()> {
    let label = subject.label.clone();
    let (x, setting, _) = pool;
    match subject.server() {
        Some(server) => server.set("shared_buffers", setting),
        None if x != "128 MB" => return Ok(()),
        None => e.note(format!("{label} was running: its own shared_buffers, and no crash")),
    }
    subject.fresh(Fresh::default(), e, build)?;
    let mut client = subject.connect()?;
    if work == "VACUUM" {
        each(&mut client, tables, "DELETE FROM")?;
    }
    if fill > 0 {
        // One row a page, and no WAL. An ordinary INSERT does not go round in a ring.
        client.run("CREATE UNLOGGED TABLE filler (a text)")?;
        client.run("ALTER TABLE filler ALTER a SET STORAGE PLAIN")?;
        let pages = fill * 128 * 96 / 100;
        client.run(&format!(
            "INSERT INTO filler SELECT repeat('x', 7900) FROM generate_series(1, {pages})"
        ))?;
    }
    client.run("CHECKPOINT")?;
    let live = seconds(|| each(&mut client, tables, work))?;
    // A commit that is waited for: now the log has all of it, and the restart all of it to do again.
    client.run("CREATE TABLE after_them ()")?;
    drop(client);
    let at = if fill > 0 { 2 } else { 0 };
    e.record(&label, x, figures[at], live);
    let Some(server) = subject.server() else { return Ok(()) };
    server.stop(Stop::Kill)?;
    let redo = server.start()?.as_secs_f64();
    e.record(&label, x, figures[at + 1], redo);
    let mut client = subject.connect()?;
    let left = client.value(&format!("SELECT count(*) FROM t{}", tables - 1))?;
    if left != "0" {
        return Err(format!("{label}: {left} rows are back after the restart").into());
    }
    Ok(())
}

fn each(client: &mut Client, tables: u64, work: &str) -> Result<()> {
    for n in 0..tables {
        client.run(&format!("{work} t{n}"))?;
    }
    Ok(())
}

fn targets(pools: &[Pool], results: &Results, e: &mut Experiment) {
    let Some(ours) = results.ebb().map(str::to_owned) else { return };
    let Some(largest) = pools.last().filter(|_| pools.len() > 1) else { return };
    let (ours, large, small) = (ours.as_str(), largest.0, pools[0].0);
    for (_, figures) in WORKS {
        for figure in &figures[..2] {
            same_at_any_size(ours, *figure, small, large, e);
            if large == "12 GB"
                && let Some(theirs) = results.peer(e)
            {
                let what = format!("{} at {large}, PostgreSQL / Ebb", figure.name);
                let pair = ((theirs, large, *figure), (ours, large, *figure));
                // Its redo of VACUUM is flat already.
                let least = if *figure == f::VACUUM_REDO { 1.0 } else { 10.0 };
                e.want_ratio(what, Bound::AtLeast(least), pair.0, pair.1);
            }
        }
    }
}

/// A large pool costs at most a tenth more than a small one, or 50 ms.
fn same_at_any_size(ours: &str, figure: Figure, small: &str, large: &str, e: &mut Experiment) {
    let what = format!("Ebb's {}, {large}", figure.name);
    let median = |x| e.median(ours, x, figure.name);
    match median(large).zip(median(small)).map(|(large, small)| large - small) {
        Some(apart_s) if apart_s <= 0.05 => {
            let apart_ms = (apart_s * 1000.0).max(0.0);
            e.want(format!("{what} over {small}, ms"), Bound::AtMost(50.0), Some(apart_ms));
        }
        _ => {
            let pair = ((ours, large, figure), (ours, small, figure));
            e.want_ratio(format!("{what} / {small}"), Bound::AtMost(1.1), pair.0, pair.1);
        }
    }
}
