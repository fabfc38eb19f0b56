//! A load: pgbench against a server, each transaction's latency kept.
//!
//! pgbench writes a line for every transaction. With a rate, a latency counts from when the transaction was due,
//! so that a stall shows in every transaction that it held up.

use crate::client::Target;
use crate::host::{Taken, Watch};
use crate::{Error, Result, cleanup};
use hdrhistogram::Histogram;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Load<'a> {
    /// One of pgbench's own scripts, unless `script` has one.
    pub builtin: &'a str,
    /// A script of our own.
    pub script: &'a str,
    /// `-D NAME=VALUE` for it.
    pub variables: &'a [(&'a str, String)],
    /// Connections.
    pub clients: u32,
    /// Transactions a second, or as fast as it goes.
    pub rate: Option<u32>,
    /// For how long.
    pub seconds: u64,
}

/// A pgbench that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    folder: tempfile::TempDir,
    begun: Instant,
    watch: Watch,
    reaped: bool,
}

/// One transaction of a load.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// When it ended, in seconds since 1970.
    pub ended_s: f64,
    /// Its latency in microseconds.
    pub latency_us: u64,
}

/// What it measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Transactions a second by pgbench's own report.
    pub tps: f64,
    /// All latencies, in microseconds.
    pub latency: Histogram<u64>,
    /// The same one by one, in no order.
    pub transactions: Vec<Transaction>,
    /// A histogram for each second since the start.
    pub seconds: Vec<Histogram<u64>>,
    /// Transactions that failed or were skipped.
    pub failed: u64,
    /// What the machine's host took meanwhile.
    pub taken: Taken,
}

/// An empty histogram of microseconds, to three digits, up to an hour.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 3_600_000_000, 3).map_err(|e| format!("a histogram: {e}"))?)
}

/// Milliseconds at a quantile.
pub fn quantile_ms(of: &Histogram<u64>, quantile: f64) -> f64 {
    crate::measure::count(of.value_at_quantile(quantile)) / 1000.0
}

/// A pgbench command against a server.
fn command(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    command.args(["-h", &target.host, "-U", &target.user, "-p", &target.port.to_string()]);
    if let Some(password) = &target.password {
        command.env("PGPASSWORD", password);
    }
    command.env("PGSSLMODE", target.tls.mode.word());
    match &target.tls.root {
        Some(file) => command.env("PGSSLROOTCERT", file),
        None => command.env_remove("PGSSLROOTCERT"),
    };
    command
}

/// Fills pgbench's tables.
pub fn fill(program: &Path, target: &Target, arguments: &[&str]) -> Result<()> {
    let mut command = command(program, target);
    command.args(["-i", "-q"]).args(arguments).arg(&target.database);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = cleanup::spawn(&mut command)?;
    let pid = child.id();
    let output = child.wait_with_output();
    cleanup::ended(pid);
    let output = output?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|l| l.contains("rror")).or(text.lines().last()).unwrap_or("?");
    Err(format!("pgbench -i failed: {line}").into())
}

impl Load<'_> {
    /// Starts it.
    pub fn start(&self, program: &Path, target: &Target) -> Result<Running> {
        let folder = cleanup::folder()?;
        let mut command = command(program, target);
        let seconds = self.seconds.to_string();
        let clients = self.clients.to_string();
        let threads = self.clients.min(2).to_string();
        command.args(["-n", "-M", "prepared", "-l", "--log-prefix=log"]);
        command.args(["-c", &clients, "-j", &threads, "-T", &seconds]);
        if let Some(rate) = self.rate {
            command.args(["-R", &rate.to_string()]);
        }
        for (name, value) in self.variables {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        if self.script.is_empty() {
            command.args(["-b", self.builtin]);
        } else {
            fs::write(folder.path().join("script.sql"), self.script)?;
            command.args(["-f", "script.sql"]);
        }
        command.arg(&target.database).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(fs::File::create(folder.path().join("out"))?);
        command.stderr(fs::File::create(folder.path().join("err"))?);
        let child = cleanup::spawn(&mut command)?;
        Ok(Running { child, folder, begun: Instant::now(), watch: Watch::start(), reaped: false })
    }

    /// Runs it to its end.
    pub fn run(&self, program: &Path, target: &Target) -> Result<Measured> {
        self.start(program, target)?.finish()
    }
}

impl Running {
    /// Seconds since the start.
    pub fn elapsed(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Whether it has ended; sleeps for up to `nap` if not.
    pub fn ended(&mut self, nap: Duration) -> Result<bool> {
        if self.child.try_wait()?.is_none() {
            std::thread::sleep(nap);
        }
        let ended = self.child.try_wait()?.is_some();
        if ended && !self.reaped {
            self.reaped = true;
            cleanup::ended(self.child.id());
        }
        Ok(ended)
    }

    /// Waits for the end and reads the log.
    pub fn finish(mut self) -> Result<Measured> {
        let status = self.child.wait()?;
        let taken = self.watch.taken();
        if !self.reaped {
            self.reaped = true;
            cleanup::ended(self.child.id());
        }
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name));
        let (out, errors) = (read("out")?, read("err")?);
        if !status.success() {
            let line = errors.lines().find(|l| l.contains("rror") || l.contains("fatal"));
            let line = line.or(errors.lines().last()).unwrap_or("it said nothing").to_owned();
            return Err(format!("pgbench failed: {line}").into());
        }
        let mut lines: Vec<(f64, Option<u64>)> = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with("log.") {
                continue;
            }
            let text = fs::read_to_string(entry.path())?;
            lines.extend(text.lines().filter_map(line));
        }
        let start = lines.iter().map(|l| l.0).fold(f64::INFINITY, f64::min);
        let mut latency = histogram()?;
        let mut seconds: Vec<Histogram<u64>> = Vec::new();
        let mut failed = 0;
        let mut transactions = Vec::with_capacity(lines.len());
        for (at, value) in lines {
            let Some(value) = value else {
                failed += 1;
                continue;
            };
            latency.saturating_record(value.max(1));
            transactions.push(Transaction { ended_s: at, latency_us: value });
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a second's number"
            )]
            let second = (at - start).max(0.0) as usize;
            while seconds.len() <= second {
                seconds.push(histogram()?);
            }
            seconds[second].saturating_record(value.max(1));
        }
        let tps = crate::measure::tps(&out)?;
        Ok(Measured { tps, latency, transactions, seconds, failed, taken })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.child.kill();
            let _ = self.child.wait();
            cleanup::ended(self.child.id());
        }
    }
}

/// When a transaction ended (seconds since 1970), and its latency, none if it failed or was skipped:
/// `client transaction latency_us script epoch_s epoch_us [lag]`.
fn line(line: &str) -> Option<(f64, Option<u64>)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let seconds: f64 = fields.get(4)?.parse().ok()?;
    let micros: f64 = fields.get(5)?.parse().ok()?;
    Some((seconds + micros / 1e6, fields[2].parse().ok()))
}

/// Makes sure that pgbench is there.
pub fn available(program: &Path) -> Result<()> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Error::from(format!("{}: {}", program.display(), output.status))),
        Err(e) => Err(format!("{} is needed: {e}", program.display()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_is_read() {
        assert_eq!(
            line("0 199 2241 0 1175850568 995598"),
            Some((1_175_850_568.995_598, Some(2241)))
        );
        assert_eq!(line("0 200 skipped 0 1175850568 0 12"), Some((1_175_850_568.0, None)));
        assert_eq!(line(""), None);
    }
}
