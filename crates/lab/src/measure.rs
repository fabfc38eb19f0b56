//! What all measurements share: the machine, medians, pgbench and tables.

use crate::servers::{Make, Server};
use crate::{Error, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The middle value (the mean of the two in the middle).
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// How long `f` takes, in seconds.
pub fn seconds<T>(f: impl FnOnce() -> Result<T>) -> Result<f64> {
    let begun = Instant::now();
    f()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The machine, the commit and the servers, in lines of markdown.
pub fn provenance(ebb: &Make, peer: &Make, settings: &[(&str, &str)]) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches([' ', '\t', ':']).to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kib = memory_bytes() >> 10;
    let settings: Vec<String> = settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let mut text = String::new();
    let _ = writeln!(text, "- machine: {cores} × {model}, {} GiB", (kib + (1 << 19)) >> 20);
    let _ = writeln!(text, "- commit: {}", output("git", &["rev-parse", "--short", "HEAD"]));
    let _ = writeln!(text, "- servers: {}, {}", version(ebb), version(peer));
    let _ = writeln!(text, "- settings: {}", settings.join(", "));
    text
}

/// Bytes of memory that the machine has, 0 when unknown.
pub fn memory_bytes() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    kib.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output();
    output.map_or_else(|_| "?".into(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

fn version(make: &Make) -> String {
    match make {
        Make::Ebb(_) => "Ebb".into(),
        Make::Postgres(bin) => output(&bin.join("postgres").to_string_lossy(), &["--version"]),
    }
}

/// The pgbench that is used on both servers: the peer's, else the one on the path.
pub fn pgbench_program(peer: &Make) -> PathBuf {
    match peer {
        Make::Postgres(bin) if bin.join("pgbench").exists() => bin.join("pgbench"),
        _ => "pgbench".into(),
    }
}

/// The pgbench for a run: that of the first peer which has one, else the one on the path.
pub fn pgbench_for(makes: &[Make]) -> PathBuf {
    let own = |make: &Make| match make {
        Make::Postgres(bin) => Some(bin.join("pgbench")).filter(|p| p.exists()),
        Make::Ebb(_) => None,
    };
    makes.iter().find_map(own).unwrap_or_else(|| "pgbench".into())
}

/// Runs pgbench and gives what it printed.
pub fn pgbench(program: &PathBuf, server: &Server, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &server.port().to_string()]);
    command.args(arguments).arg("postgres").current_dir(server.scratch());
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pgbench {} failed:\n{text}{errors}", arguments.join(" ")).into());
    }
    Ok(text)
}

/// The transactions per second in pgbench's report.
pub fn tps(report: &str) -> Result<f64> {
    let line = report.lines().find_map(|l| l.strip_prefix("tps = "));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Error::from(format!("no tps in:\n{report}")))
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub fn count(n: u64) -> f64 {
    n as f64
}

/// A number with as many digits as it deserves.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The greatest resident memory of a server so far, sampled when asked.
#[derive(Debug, Default)]
pub struct Peak(u64);

impl Peak {
    /// Looks again.
    pub fn sample(&mut self, server: &Server) -> Result<()> {
        self.0 = self.0.max(server.resident_bytes()?);
        Ok(())
    }

    /// In MiB.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn mebibytes(&self) -> f64 {
        self.0 as f64 / f64::from(1 << 20)
    }
}

/// Runs `work` while another thread looks at the server's memory ten times a second.
pub fn watched<T>(server: &Server, peak: &mut Peak, work: impl FnOnce() -> T) -> Result<T> {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        let watcher = scope.spawn(move || -> Result<()> {
            while stopped
                .recv_timeout(Duration::from_millis(100))
                .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                peak.sample(server)?;
            }
            peak.sample(server)
        });
        let result = work();
        let _ = stop.send(());
        watcher.join().map_err(|_| Error::from("the memory watcher died"))??;
        Ok::<T, Error>(result)
    })?;
    Ok(result)
}
