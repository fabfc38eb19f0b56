//! The experiments: the published five, and more of Ebb's own.
//!
//! Each sends the same statements to every server, turn about, and writes what it measured into an
//! [`Experiment`]. None knows which server it speaks to beyond starting it.

pub mod drop;
pub mod explain;
pub mod freeze;
pub mod index;
pub mod longtx;
pub mod queue;
pub mod ring;
pub mod sync;
pub mod waves;

use crate::host::Taken;
use crate::plan::{Plan, Progress, Run};
use crate::results::{Experiment, Figure, Results};
use crate::subject::{self, Subject};
use crate::{Result, load, sizes, trace};

/// Runs a run's experiments. One that fails keeps what it measured and says why; the others still run, and the
/// first error is the run's. One that measured nothing is left out. `after` each of them sees the results so far.
pub fn run(
    run: &Run,
    progress: &dyn Progress,
    results: &mut Results,
    after: &dyn Fn(&Results),
) -> Result<()> {
    let strace = if run.trace || run.full { trace::available() } else { Ok(()) };
    if run.trace {
        strace.as_ref().map_err(ToString::to_string)?;
    }
    let plan_of = |name: &String| {
        let mut plan = run.plan(name);
        plan.trace &= strace.is_ok();
        plan
    };
    let expected: Vec<(String, f64)> = run
        .experiments
        .iter()
        .map(|name| (name.clone(), sizes::expected_s(name, &plan_of(name))))
        .collect();
    progress.note(&sizes::announcement(&expected));
    results.unfinished.clone_from(&run.experiments);
    let mut outcome = Ok(());
    for name in &run.experiments {
        let plan = plan_of(name);
        let mut e = Experiment::new(name);
        if let (Err(why), true) = (&strace, run.plan(name).trace) {
            e.note(format!("Not traced: {why}"));
        }
        let ran = one(name, &plan, progress, results, &mut e);
        progress.end();
        subject::leave_running_servers();
        if let Err(error) = ran {
            progress.note(&format!("{name}: {error}"));
            e.note(format!("Not complete: {error}"));
            outcome = outcome.and(Err(error));
        }
        if !e.rows.is_empty() || !e.series.is_empty() {
            results.experiments.push(e);
        }
        results.unfinished.remove(0);
        after(results);
    }
    outcome
}

fn one(
    name: &str,
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    match name {
        "ring" => ring::run(plan, progress, results, e),
        "freeze" => freeze::run(plan, progress, results, e),
        "index" => index::run(plan, progress, results, e),
        "sync" => sync::run(plan, progress, results, e),
        "drop" => drop::run(plan, progress, results, e),
        "longtx" => longtx::run(plan, progress, results, e),
        "explain" => explain::run(plan, progress, results, e),
        "waves" => waves::run(plan, progress, results, e),
        "queue" => queue::run(plan, progress, results, e),
        other => Err(format!("there is no experiment {other}").into()),
    }
}

/// pgbench's scale for as many rows as the plan wants, and the rows: whole scales, or a part of one.
fn pgbench_rows(plan: &Plan, small: u64) -> (u64, u64) {
    let rows = plan.rows(small);
    let scale = rows.div_ceil(100_000);
    (scale, if rows < 100_000 { rows } else { scale * 100_000 })
}

/// Makes pgbench's tables with that many accounts: by pgbench itself, unless they are a part of a scale.
fn fill_accounts(subject: &Subject, scale: u64, rows: u64) -> Result<()> {
    let (pgbench, target, scale) = (&subject.pgbench, subject.target(), scale.to_string());
    if rows >= 100_000 {
        return load::fill(pgbench, &target, &["-s", &scale]);
    }
    load::fill(pgbench, &target, &["-I", "dt", "-s", &scale])?;
    subject.sql(&[
        &format!(
            "INSERT INTO pgbench_accounts SELECT g, 1, 0, '' FROM generate_series(1, {rows}) g"
        ),
        "VACUUM ANALYZE pgbench_accounts",
        "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
    ])
}

/// A pool that such a table and its indexes fit in, of which an eighth is more than any ring that is tried.
fn pool(rows: u64) -> String {
    format!("{}MB", (rows * 256).next_power_of_two().max(256 << 20) >> 20)
}

/// Whose turn it is: each round begins with another server, so that none always runs on a warm machine.
fn turns(subjects: &[Subject], round: usize) -> impl Iterator<Item = usize> + use<> {
    let count = subjects.len().max(1);
    (0..subjects.len()).map(move |turn| (round + turn) % count)
}

/// Every other round backward, so that none always comes after the same: a disk that the turn before had much written to is slower,
/// and so is a cloud's once its burst is used up.
fn there_and_back<T>(list: &[T], round: usize) -> impl Iterator<Item = &T> {
    let last = list.len().saturating_sub(1);
    (0..list.len()).map(move |n| &list[if round.is_multiple_of(2) { n } else { last - n }])
}

/// Records each of a turn's figures that there is.
fn record(e: &mut Experiment, server: &str, x: &str, figures: &[(Figure, Option<f64>)]) {
    for (figure, value) in figures {
        if let Some(value) = value {
            e.record(server, x, *figure, *value);
        }
    }
}

/// Records what the machine's host took while a load ran: no server's doing, but in its latencies.
fn taken(e: &mut Experiment, server: &str, x: &str, taken: &Taken) {
    const STOLEN: Figure =
        Figure { name: "processor time wanted that the machine's host took", unit: "%" };
    // Not in plain ms, in which less would be to a server's credit.
    const LATEST: Figure = Figure { name: "longest delay of an idle thread", unit: "ms of delay" };
    record(e, server, x, &[(STOLEN, taken.stolen_percent), (LATEST, Some(taken.latest_ms))]);
}

/// Records how large a table and its indexes are.
fn sizes(
    client: &mut crate::client::Client,
    table: &str,
    e: &mut Experiment,
    server: &str,
    x: &str,
) -> Result<()> {
    const TABLE: Figure = Figure { name: "table", unit: "bytes" };
    const INDEXES: Figure = Figure { name: "its indexes", unit: "bytes" };
    for (function, figure) in [("pg_table_size", TABLE), ("pg_indexes_size", INDEXES)] {
        let bytes = client.value(&format!("SELECT {function}('{table}')"))?.parse()?;
        e.record(server, x, figure, bytes);
    }
    Ok(())
}

/// The text of an outcome's notices, as psql prints them.
fn notices(outcome: &crate::client::Outcome) -> String {
    let mut text = String::new();
    for event in &outcome.events {
        if let crate::client::Event::Notice(report) = event {
            text.push_str(report.severity());
            text.push_str(":  ");
            text.push_str(report.message());
            text.push('\n');
            if !report.field('D').is_empty() {
                text.push_str("DETAIL:  ");
                text.push_str(report.field('D'));
                text.push('\n');
            }
        }
    }
    text
}

/// VACUUM of `table` at a limit (its name in the report, its value); a server from before BUFFER_USAGE_LIMIT takes part with its fixed ring alone.
fn limited_vacuum(
    subject: &Subject,
    table: &str,
    (x, value): (&str, &str),
    e: &mut Experiment,
) -> Option<String> {
    if subject.version >= 160_000 {
        return Some(format!("VACUUM (VERBOSE, BUFFER_USAGE_LIMIT '{value}') {table}"));
    }
    let label = &subject.label;
    e.note(format!("{label} has no BUFFER_USAGE_LIMIT: only its fixed ring of 256 kB is run."));
    (x == "256 kB").then(|| format!("VACUUM (VERBOSE) {table}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Silent;
    use std::cell::RefCell;

    #[test]
    fn after_each_experiment_the_others_are_unfinished() {
        let experiments = ["one", "two", "three"].map(str::to_owned).to_vec();
        let run = Run { experiments, ..Run::default() };
        let seen = RefCell::new(Vec::new());
        let mut results = Results::default();
        let after = |r: &Results| seen.borrow_mut().push(r.unfinished.join(" "));
        let outcome = super::run(&run, &Silent, &mut results, &after);
        assert_eq!(outcome.unwrap_err().to_string(), "there is no experiment one");
        assert_eq!(seen.into_inner(), ["two three", "three", ""]);
        // Nothing was measured.
        assert_eq!(results, Results::default());
    }

    #[test]
    fn every_other_round_goes_backward() {
        let orders = [0, 1, 2]
            .map(|round| there_and_back(&["without", "with"], round).copied().collect::<Vec<_>>());
        assert_eq!(orders, [["without", "with"], ["with", "without"], ["without", "with"]]);
        assert_eq!(there_and_back::<u8>(&[], 1).next(), None);
    }
}
