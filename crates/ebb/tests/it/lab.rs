//! `ebb lab`: the experiments at a tiny scale against Ebb alone, and runs that are stopped at each stage.

use crate::support::{binary, have};
use lab::results::Results;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The command, with a temporary folder of its own, so that what it leaves can be seen.
fn command(temporary: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("lab").args(words).arg("--out").arg(temporary.join("out"));
    command.env("TMPDIR", temporary).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Folders of servers under it.
fn left(temporary: &Path) -> Vec<String> {
    let entries = fs::read_dir(temporary).expect("the folder").map(|e| e.expect("an entry"));
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with("ebb-lab-")).collect()
}

/// Processes whose command line names a path under it.
fn processes(temporary: &Path) -> Vec<String> {
    let name = temporary.to_string_lossy().into_owned() + "/ebb-lab-";
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let lines = entries.filter_map(|e| fs::read(e.path().join("cmdline")).ok());
    lines.map(|l| String::from_utf8_lossy(&l).into_owned()).filter(|l| l.contains(&name)).collect()
}

/// Runs experiments and gives what was measured.
fn run(words: &[&str]) -> Results {
    let temporary = tempfile::tempdir().expect("a folder");
    let output = command(temporary.path(), words).output().expect("ebb lab runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    assert_eq!(left(temporary.path()), Vec::<String>::new());
    lab::report::read(&temporary.path().join("out")).expect("results")
}

/// Runs one experiment on Ebb alone and gives what was measured.
fn measured(words: &[&str]) -> Results {
    let results = run(words);
    assert_eq!(results.servers.len(), 1);
    assert_eq!(results.experiments.len(), 1);
    results
}

/// The median of Ebb's figure, which must be there.
fn figure(results: &Results, x: &str, name: &str) -> f64 {
    let e = &results.experiments[0];
    let value = e.median("Ebb", x, name);
    value.unwrap_or_else(|| panic!("no {name} at {x}: {:#?}", e.rows))
}

#[test]
fn ring_counts_what_vacuum_writes() {
    let results = measured(&["ring", "--rows", "3000"]);
    for x in ["256 kB", "2 MB", "32 MB", "no limit"] {
        assert!(figure(&results, x, "VACUUM") > 0.0);
        assert!(figure(&results, x, "data-file write calls") > 0.0);
        assert!(figure(&results, x, "WAL") > 0.0);
    }
    let by_autovacuum = "autovacuum, 256 kB";
    assert!(figure(&results, by_autovacuum, "WAL") > 0.0);
    assert!(figure(&results, by_autovacuum, "buffers the table holds afterwards") <= 32.0);
    let reports = &results.experiments[0].reports;
    let said = |r: &&lab::results::Report| {
        r.x == by_autovacuum
            && r.text.contains("automatic vacuum of table \"postgres.public.table1\"")
    };
    let text = &reports.iter().find(said).expect("autovacuum's line").text;
    let parsed = lab::vacuum_report::parse(text);
    // Half of the rows, and the one that was updated to hand the table over.
    let removed = parsed[0].number("index scan", "dead item identifiers removed");
    assert_eq!(removed, Some(1_501.0), "{text}");
    assert!(figure(&results, "256 kB", "buffers the table holds afterwards") <= 32.0);
}

#[test]
fn ring_is_traced_by_kind_of_file() {
    if lab::trace::available().is_err() {
        eprintln!("skipped: strace can't trace here");
        return;
    }
    let results = measured(&["ring", "--rows", "2000", "--trace"]);
    let calls = figure(&results, "256 kB", "data-file write calls");
    let bytes = figure(&results, "256 kB", "data-file bytes written");
    assert!(calls > 0.0 && bytes >= calls * 8192.0, "{calls} calls, {bytes} bytes");
    assert!(figure(&results, "256 kB", "WAL syncs") > 0.0);
}

#[test]
fn sync_counts_syncs_of_wal() {
    if !have("pgbench") {
        return;
    }
    let results = measured(&["sync", "--rows", "3000"]);
    for x in ["256 kB", "1024 kB", "4096 kB", "0"] {
        assert!(figure(&results, x, "WAL syncs") > 0.0);
    }
}

#[test]
fn index_runs_both_ways_and_its_variants() {
    if !have("pgbench") {
        return;
    }
    let results = measured(&["index", "--rows", "5000"]);
    for x in ["1 %", "55 %"] {
        for variant in ["", ", table read once before", ", second index on md5 text"] {
            for mode in ["on", "off"] {
                let name = format!("VACUUM, INDEX_CLEANUP {mode}{variant}");
                assert!(figure(&results, x, &name) > 0.0);
            }
        }
    }
    // ON found what it was to find: a report says so in PostgreSQL's words.
    let reports = &results.experiments[0].reports;
    let on = |r: &&lab::results::Report| r.what.contains("INDEX_CLEANUP on") && r.x == "55 %";
    let text = &reports.iter().find(on).expect("a report").text;
    let parsed = lab::vacuum_report::parse(text);
    assert_eq!(parsed[0].index_scan, "needed", "{text}");
    assert_eq!(parsed[0].number("index scan", "dead item identifiers removed"), Some(2_750.0));
}

#[test]
fn freeze_keeps_every_vacuum_and_every_latency() {
    if !have("pgbench") {
        return;
    }
    let results = measured(&["freeze", "--rows", "100000", "--scale", "0.2"]);
    assert!(figure(&results, "autovacuum on", "greatest age of relfrozenxid") >= 0.0);
    for x in ["autovacuum on", "autovacuum off", "updates"] {
        let [p50, p99, slowest] =
            ["p50 latency of the load", "p99 latency of the load", "slowest transaction"]
                .map(|name| figure(&results, x, name));
        assert!(0.0 < p50 && p50 <= p99 && p99 <= slowest, "{p50} {p99} {slowest}");
    }
}

#[test]
fn drop_runs_live_and_after_a_crash() {
    let results = measured(&["drop", "--scale", "0.05"]);
    for name in
        ["VACUUM, live", "VACUUM, crash recovery", "TRUNCATE, live", "TRUNCATE, crash recovery"]
    {
        assert!(figure(&results, "128 MB", name) > 0.0);
    }
}

#[test]
fn longtx_reads_the_same_sums_again() {
    if !have("pgbench") {
        return;
    }
    let results = measured(&["longtx", "--rows", "100000", "--scale", "0.1"]);
    assert!(figure(&results, "with", "transactions") > 0.0);
    assert!(figure(&results, "without", "pgbench_tellers") > 0.0);
}

#[test]
fn explain_sets_expected_beside_actual() {
    if !have("pgbench") {
        return;
    }
    let results = measured(&["explain", "--rows", "5000"]);
    assert!(figure(&results, "55 %", "pages actual") > 0.0);
    assert!(figure(&results, "55 %", "WAL expected") > 0.0);
}

#[test]
fn a_full_run_is_one_report_of_all_nine() {
    if !have("pgbench") {
        return;
    }
    let results = run(&["--full", "--rows", "2000", "--scale", "0.02", "--rounds", "1"]);
    let names: Vec<&str> = results.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        names,
        ["ring", "freeze", "index", "sync", "drop", "longtx", "explain", "waves", "queue"]
    );
    assert_eq!(results.joined("Ebb"), names);
    let command = &results.machine.command;
    assert!(command.contains("lab --full --rows 2000 --scale 0.02 --rounds 1"), "{command}");
    // ring and sync are traced, and nothing else is.
    if lab::trace::available().is_ok() {
        let traced = |e: &&lab::results::Experiment| {
            e.rows
                .iter()
                .any(|r| r.figure.contains("strace") || r.figure == "data-file bytes written")
        };
        let traced: Vec<&str> =
            results.experiments.iter().filter(traced).map(|e| e.name.as_str()).collect();
        assert_eq!(traced, ["ring", "sync"]);
    }
}

/// Waits until something is so; a stage that never comes fails the test, one that nine runs on one core delay does not.
fn until(what: &str, child: Option<&mut Child>, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut child = child;
    while !so() {
        if let Some(child) = child.as_mut() {
            assert!(child.try_wait().expect("its state").is_none(), "it ended before {what}");
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run, waits for a file in its server's folder, ends it by a signal, and looks at what is left.
fn stopped(signal: &str, stage: &str, words: &[&str]) {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut child = command(temporary.path(), words).spawn().expect("ebb lab");
    let reached = || {
        let names = left(temporary.path());
        names.iter().any(|n| temporary.path().join(n).join(stage).exists())
    };
    until(stage, Some(&mut child), reached);
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
    assert!(sent.success());
    child.wait().expect("its end");
    // kill -9 leaves the cleaning to the watcher, which is then its own master.
    until("no folder", None, || left(temporary.path()).is_empty());
    until("no process", None, || processes(temporary.path()).is_empty());
}

const RING: &[&str] = &["ring", "--rows", "20000"];

#[test]
fn a_run_killed_while_strace_looks_on_leaves_nothing() {
    if lab::trace::available().is_err() {
        eprintln!("skipped: strace can't trace here");
        return;
    }
    stopped("-KILL", "trace", &["--full", "ring", "--rows", "2000", "--rounds", "1"]);
}

#[test]
fn a_run_killed_while_it_makes_a_cluster_leaves_nothing() {
    stopped("-KILL", "data", RING);
}

#[test]
fn a_run_interrupted_between_turns_leaves_nothing() {
    stopped("-INT", "saved", RING);
}

#[test]
fn a_run_terminated_between_turns_leaves_nothing() {
    stopped("-TERM", "saved/base", RING);
}

/// Ends a run of five experiments when the first is finished; what it said.
fn ended_after_the_first(signal: &str) -> String {
    let temporary = tempfile::tempdir().expect("a folder");
    let words = ["--rows", "2000", "--scale", "0.02"];
    let mut child = command(temporary.path(), &words).spawn().expect("ebb lab");
    let out = temporary.path().join("out");
    until("a report", Some(&mut child), || out.join("report.html").exists());
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
    assert!(sent.success());
    let output = child.wait_with_output().expect("its end");
    until("no folder", None, || left(temporary.path()).is_empty());
    until("no process", None, || processes(temporary.path()).is_empty());
    let results = lab::report::read(&out).expect("results");
    let finished = results.experiments.iter().map(|e| e.name.as_str());
    let unfinished = results.unfinished.iter().map(String::as_str);
    let names: Vec<&str> = finished.chain(unfinished).collect();
    assert_eq!(names, ["ring", "freeze", "index", "sync", "drop"]);
    assert!(!results.experiments.is_empty() && !results.unfinished.is_empty());
    assert!(figure(&results, "256 kB", "VACUUM") > 0.0);
    for name in ["report.md", "report.html"] {
        let text = fs::read_to_string(out.join(name)).expect("text");
        assert!(text.contains("Not finished when this was written: "), "{name}: {text}");
    }
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_that_is_ended_leaves_the_report_of_what_was_finished() {
    if !have("pgbench") {
        return;
    }
    ended_after_the_first("-KILL");
    let said = ended_after_the_first("-INT");
    assert!(said.contains("report of what is finished: "), "{said}");
}

#[test]
fn what_is_missing_is_one_clear_line() {
    let temporary = tempfile::tempdir().expect("a folder");
    let line = |words: &[&str], path: Option<&str>| {
        let mut command = command(temporary.path(), words);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().expect("ebb lab runs");
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().rev().find(|l| l.starts_with("ebb lab: "));
        last.unwrap_or_else(|| panic!("no line: {text}")).to_owned()
    };
    let no_programs = tempfile::tempdir().expect("a folder");
    let path = no_programs.path().to_string_lossy().into_owned();
    let said = line(&["longtx", "--rows", "1000", "--scale", "0.1"], Some(&path));
    assert!(said.contains("pgbench"), "{said}");
    let said = line(&["ring", "--rows", "100", "--trace"], Some(&path));
    assert!(said.contains("strace"), "{said}");
    let said = line(&["ring", "--peer", &path], None);
    assert!(said.contains("no `postgres`"), "{said}");
    assert_eq!(left(temporary.path()), Vec::<String>::new());
}
