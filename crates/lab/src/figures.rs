//! Ebb against PostgreSQL in one run: the same work on each, turn about, medians.

use crate::measure::{self, Peak, median, number, pgbench, seconds, tps};
use crate::servers::{Make, Server, Stop};
use crate::{Error, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// The settings of both servers.
pub const SETTINGS: &[(&str, &str)] = &[
    ("shared_buffers", "1GB"),
    ("fsync", "on"),
    ("max_wal_size", "4GB"),
    ("autovacuum", "off"),
    ("max_connections", "50"),
];

/// How large the work is.
#[derive(Clone, Debug)]
pub struct Scale {
    pgbench_scale: u32,
    run_s: u32,
    strings: u32,
    updated: u32,
    rounds: usize,
    only: Vec<String>,
}

impl Scale {
    /// The sizes of the acceptance run, or a tenth of them.
    pub fn new(quick: bool, rounds: Option<usize>, only: &[String]) -> Scale {
        let only = only.to_vec();
        let scale = if quick {
            Scale {
                pgbench_scale: 5,
                run_s: 4,
                strings: 400_000,
                updated: 100_000,
                rounds: 1,
                only,
            }
        } else {
            Scale {
                pgbench_scale: 50,
                run_s: 20,
                strings: 4_000_000,
                updated: 1_000_000,
                rounds: 3,
                only,
            }
        };
        Scale { rounds: rounds.unwrap_or(scale.rounds), ..scale }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == name)
    }
}

/// One figure: what is done, and whether more or less is better.
struct Figure {
    name: &'static str,
    title: String,
    unit: &'static str,
    /// The bound on Ebb / PostgreSQL.
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

struct Bench<'a> {
    server: Server,
    program: &'a PathBuf,
    scale: &'a Scale,
    peak: Peak,
}

impl Bench<'_> {
    fn pgbench(&self, arguments: &str) -> Result<String> {
        pgbench(self.program, &self.server, &arguments.split(' ').collect::<Vec<_>>())
    }

    fn sql(&self, sql: &[&str]) -> Result<()> {
        let mut client = self.server.connect()?;
        for sql in sql {
            client.run(sql)?;
        }
        client.close();
        Ok(())
    }

    fn measure(&self, figure: &str) -> Result<f64> {
        let Scale { pgbench_scale, run_s, updated, .. } = self.scale;
        match figure {
            "init" => {
                self.sql(&["CHECKPOINT"])?;
                seconds(|| self.pgbench(&format!("-i -q -s {pgbench_scale}")))
            }
            "count" => {
                let mut client = self.server.connect()?;
                client.run("SELECT count(*) FROM pgbench_accounts")?;
                seconds(|| client.run("SELECT count(*) FROM pgbench_accounts"))
            }
            "select-only" => {
                tps(&self
                    .pgbench(&format!("-n -b select-only -M prepared -c 8 -j 2 -T {run_s}"))?)
            }
            "tpcb-like" => {
                self.sql(&["CHECKPOINT"])?;
                tps(&self.pgbench(&format!("-n -b tpcb-like -M prepared -c 8 -j 2 -T {run_s}"))?)
            }
            "update" => {
                self.sql(&["VACUUM pgbench_accounts", "CHECKPOINT"])?;
                let mut client = self.server.connect()?;
                let sql = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid <=";
                seconds(|| client.run(&format!("{sql} {updated}")))
            }
            "index" => {
                self.sql(&["DROP INDEX IF EXISTS strings_filler", "CHECKPOINT"])?;
                let mut client = self.server.connect()?;
                seconds(|| client.run("CREATE INDEX strings_filler ON strings (filler)"))
            }
            other => Err(format!("no figure {other}").into()),
        }
    }

    fn prepare(&self, figure: &str) -> Result<()> {
        match figure {
            "index" => {
                let strings = self.scale.strings;
                self.sql(&[
                    "DROP TABLE IF EXISTS strings",
                    "CREATE TABLE strings (id serial PRIMARY KEY, filler varchar(32))",
                    &format!(
                        "INSERT INTO strings (filler) \
                         SELECT md5(random()::text) FROM generate_series(1, {strings})"
                    ),
                    "VACUUM ANALYZE strings",
                ])
            }
            "init" => Ok(()),
            _ => {
                let mut client = self.server.connect()?;
                let sql = "SELECT count(*) FROM pg_class WHERE relname = 'pgbench_accounts'";
                if client.value(sql)? == "0" {
                    self.measure("init")?;
                }
                Ok(())
            }
        }
    }
}

/// Measures everything and gives the table.
pub fn run(ebb: &Make, peer: &Make, scale: &Scale) -> Result<String> {
    let program = measure::pgbench_program(peer);
    let bench = |make: &Make| -> Result<Bench<'_>> {
        let server = Server::started(make.clone(), SETTINGS)?;
        Ok(Bench { server, program: &program, scale, peak: Peak::default() })
    };
    let mut benches = [bench(ebb)?, bench(peer)?];
    let (s, rows) = (scale.pgbench_scale, scale.pgbench_scale * 100_000);
    let figure = |name, title: String, unit, bound| Figure { name, title, unit, bound };
    let figures = [
        figure("init", format!("pgbench -i -s {s}"), "s", Bound::AtMost(1.2)),
        figure("count", format!("count(*) over {rows} rows"), "s", Bound::AtMost(1.0)),
        figure(
            "select-only",
            "pgbench select-only -M prepared -c 8".into(),
            "tps",
            Bound::AtLeast(1.0),
        ),
        figure(
            "tpcb-like",
            "pgbench tpcb-like -M prepared -c 8".into(),
            "tps",
            Bound::AtLeast(1.0),
        ),
        figure("update", format!("UPDATE of {} rows", scale.updated), "s", Bound::AtMost(1.2)),
        figure(
            "index",
            format!("CREATE INDEX on {} md5 strings", scale.strings),
            "s",
            Bound::AtMost(1.2),
        ),
    ];
    let mut text = measure::provenance(ebb, peer, SETTINGS);
    let _ = writeln!(text, "- rounds: {}, turn about, medians\n", scale.rounds);
    text.push_str("| figure | unit | Ebb | PostgreSQL | Ebb / PostgreSQL | wanted | |\n");
    text.push_str("|---|---|---:|---:|---:|---|---|\n");
    for figure in figures.iter().filter(|f| scale.wants(f.name)) {
        let mut values = [Vec::new(), Vec::new()];
        for (which, bench) in benches.iter().enumerate() {
            if let Err(e) = bench.prepare(figure.name) {
                eprintln!("{} on {}: {e}", figure.name, benches[which].server.name());
            }
        }
        for round in 0..scale.rounds {
            for turn in 0..2 {
                let which = (round + turn) % 2;
                let bench = &mut benches[which];
                let mut peak = std::mem::take(&mut bench.peak);
                let value =
                    measure::watched(&bench.server, &mut peak, || bench.measure(figure.name))?;
                bench.peak = peak;
                match value {
                    Ok(value) => {
                        let name = bench.server.name();
                        eprintln!("{} on {name}: {} {}", figure.name, number(value), figure.unit);
                        values[which].push(value);
                    }
                    Err(e) => eprintln!("{} on {}: {e}", figure.name, bench.server.name()),
                }
            }
        }
        let [ours, theirs] = [median(&values[0]), median(&values[1])];
        line(&mut text, figure, ours, theirs);
    }
    let [ours, theirs] = [benches[0].peak.mebibytes(), benches[1].peak.mebibytes()];
    let ok = if ours <= 1024.0 + 300.0 { "yes" } else { "no" };
    let _ = writeln!(
        text,
        "| resident memory, greatest | MiB | {ours:.0} | {theirs:.0} | {} | ≤ 1324 MiB | {ok} |",
        number(ours / theirs)
    );
    for bench in &mut benches {
        bench.server.stop(Stop::Fast)?;
    }
    Ok(text)
}

fn line(text: &mut String, figure: &Figure, ours: f64, theirs: f64) {
    let ratio = ours / theirs;
    let (wanted, ok) = match figure.bound {
        Bound::AtLeast(b) => (format!("≥ {b:.1}"), ratio >= b),
        Bound::AtMost(b) => (format!("≤ {b:.1}"), ratio <= b),
    };
    let Figure { title, unit, .. } = figure;
    let (ours, theirs, ratio) = (number(ours), number(theirs), number(ratio));
    let ok = if ok { "yes" } else { "no" };
    let _ = writeln!(text, "| {title} | {unit} | {ours} | {theirs} | {ratio} | {wanted} | {ok} |");
}

/// Commits of one client against traced syncs of WAL files.
pub fn syncs(ebb: &Make, peer: &Make) -> Result<String> {
    const TRANSACTIONS: usize = 500;
    let program = measure::pgbench_program(peer);
    let mut text = String::from("| server | commits | WAL syncs traced |\n|---|---:|---:|\n");
    for make in [ebb, peer] {
        let mut server = Server::started(make.clone(), &[("autovacuum", "off")])?;
        pgbench(&program, &server, &["-i", "-q", "-s", "1"])?;
        server.stop(Stop::Fast)?;
        let trace = server.scratch().join("trace");
        let trace_name = trace.to_string_lossy().into_owned();
        let calls = "trace=fdatasync,fsync,sync_file_range,openat";
        server.run_under(&["strace", "-f", "-y", "-e", calls, "-o", &trace_name]);
        server.start()?;
        let before = wal_syncs(&trace)?;
        let transactions = TRANSACTIONS.to_string();
        pgbench(&program, &server, &["-n", "-c", "1", "-M", "prepared", "-t", &transactions])?;
        let after = wal_syncs(&trace)?;
        let syncs = after - before;
        let _ = writeln!(text, "| {} | {TRANSACTIONS} | {syncs} |", server.name());
        server.stop(Stop::Kill)?;
        if syncs < TRANSACTIONS {
            return Err(Error::from(format!("{text}fewer syncs than commits")));
        }
    }
    Ok(text)
}

fn wal_syncs(trace: &PathBuf) -> Result<usize> {
    let text = fs::read_to_string(trace)?;
    let is_sync =
        |l: &&str| (l.contains("fdatasync(") || l.contains("fsync(")) && l.contains("wal/");
    Ok(text.lines().filter(is_sync).count())
}
