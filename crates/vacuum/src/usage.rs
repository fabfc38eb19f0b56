//! What a vacuum or analyze used: measured from a beginning, printed as PostgreSQL's last report lines.

use std::fmt::Write;
use std::time::{Duration, Instant};

/// The clocks and counters of this thread at the beginning.
#[derive(Clone, Debug)]
pub struct UsageMeter {
    at: Instant,
    buffers: buffer::BufferUsage,
    wal: wal::WalUsage,
    cpu: (Duration, Duration),
}

/// What has been used since the beginning.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Pages touched.
    pub buffers: buffer::BufferUsage,
    /// WAL written.
    pub wal: wal::WalUsage,
    /// User and system time.
    pub cpu: (Duration, Duration),
    /// Time on the wall.
    pub elapsed: Duration,
}

impl UsageMeter {
    /// Begins.
    pub fn start() -> UsageMeter {
        UsageMeter {
            at: Instant::now(),
            buffers: buffer::my_usage(),
            wal: wal::thread_usage(),
            cpu: cpu_times(),
        }
    }

    /// Time on the wall so far.
    pub fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }

    /// What has been used so far.
    pub fn used(&self) -> Usage {
        let cpu = cpu_times();
        Usage {
            buffers: buffer::my_usage() - self.buffers,
            wal: wal::thread_usage() - self.wal,
            cpu: (cpu.0.saturating_sub(self.cpu.0), cpu.1.saturating_sub(self.cpu.1)),
            elapsed: self.at.elapsed(),
        }
    }
}

/// This thread's user and system time, as far as the system tells.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn cpu_times() -> (Duration, Duration) {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeVal;
    let time = |t: TimeVal| {
        let [seconds, micros] = [t.tv_sec(), t.tv_usec()].map(|n| u64::try_from(n).unwrap_or(0));
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    let used = getrusage(UsageWho::RUSAGE_THREAD);
    used.map(|u| (time(u.user_time()), time(u.system_time()))).unwrap_or_default()
}

/// Here the system tells nothing of threads.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn cpu_times() -> (Duration, Duration) {
    Default::default()
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// `S.CC`, cut and not rounded, as PostgreSQL prints times.
fn centis(t: Duration) -> String {
    format!("{}.{:02}", t.as_secs(), t.subsec_millis() / 10)
}

impl Usage {
    /// `CPU: user: … s, system: … s, elapsed: … s`
    pub fn cpu_text(&self) -> String {
        format!(
            "CPU: user: {} s, system: {} s, elapsed: {} s",
            centis(self.cpu.0),
            centis(self.cpu.1),
            centis(self.elapsed)
        )
    }

    /// The report's last lines: delay and I/O timings where they are wanted, rates, buffers, WAL, times. No line end after the last.
    ///
    /// # Errors
    /// `out`'s.
    pub fn write_to(
        &self,
        out: &mut String,
        delay: Option<Duration>,
        io_timing: bool,
    ) -> std::fmt::Result {
        if let Some(delay) = delay {
            writeln!(out, "delay time: {:.3} ms", ms(delay.as_micros() as u64))?;
        }
        let b = &self.buffers;
        if io_timing {
            writeln!(
                out,
                "I/O timings: read: {:.3} ms, write: {:.3} ms",
                ms(b.read_time_us),
                ms(b.write_time_us)
            )?;
        }
        let seconds = self.elapsed.as_secs_f64();
        let rate = |pages: u64| {
            let mb = pages as f64 * page::PAGE_SIZE as f64 / (1024.0 * 1024.0);
            if seconds > 0.0 { mb / seconds } else { 0.0 }
        };
        let (hits, reads, dirtied) =
            (b.hits + b.temp_hits, b.reads + b.temp_reads, b.dirtied + b.temp_dirtied);
        writeln!(
            out,
            "avg read rate: {:.3} MB/s, avg write rate: {:.3} MB/s",
            rate(reads),
            rate(dirtied)
        )?;
        writeln!(out, "buffer usage: {hits} hits, {reads} reads, {dirtied} dirtied")?;
        writeln!(
            out,
            "WAL usage: {} records, {} full page images, {} bytes, {} buffers full",
            self.wal.records, self.wal.full_page_images, self.wal.bytes, self.wal.buffers_full
        )?;
        write!(out, "system usage: {}", self.cpu_text())
    }
}
