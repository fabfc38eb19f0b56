//! What the machine's host took from it while a load ran.
//!
//! A virtual machine is held up when its host gives its processors to others: every latency that is measured then
//! has such holes in it, whatever the server does. Two figures beside the latencies tell how large they were. The
//! kernel counts the time for which a processor had work and was not there; and a thread that only sleeps, and asks
//! nothing of the server, of the disk or of memory, notes how late it was called at the worst.

use crate::measure::count;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the sleeper means to sleep: long enough to cost nothing, short against what is felt.
const NAP: Duration = Duration::from_millis(5);

/// What was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Of the time for which processors had work, the share that they were not there, in percent; none where the
    /// kernel does not tell.
    pub stolen_percent: Option<f64>,
    /// How late the sleeper was called at the worst, in milliseconds.
    pub latest_ms: f64,
}

/// Looks on until it is asked.
#[derive(Debug)]
pub struct Watch {
    before: Option<Ticks>,
    latest: Arc<Mutex<Duration>>,
    stop: Arc<AtomicBool>,
    sleeper: Option<JoinHandle<()>>,
}

/// The processors' time since the machine came up, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// Time for which they worked.
    busy: u64,
    /// Time for which they would have.
    stolen: u64,
}

impl Watch {
    /// Begins.
    pub fn start() -> Watch {
        let (latest, stop) =
            (Arc::new(Mutex::new(Duration::ZERO)), Arc::new(AtomicBool::new(false)));
        let sleeper = {
            let (latest, stop) = (Arc::clone(&latest), Arc::clone(&stop));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    thread::sleep(NAP);
                    let late = begun.elapsed().saturating_sub(NAP);
                    let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                    *latest = late.max(*latest);
                }
            })
        };
        Watch { before: Ticks::now(), latest, stop, sleeper: Some(sleeper) }
    }

    /// What was taken since the start.
    pub fn taken(&self) -> Taken {
        let stolen_percent = self.before.zip(Ticks::now()).and_then(|(a, b)| b.stolen_since(a));
        let latest = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        Taken { stolen_percent, latest_ms: latest.as_secs_f64() * 1000.0 }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sleeper) = self.sleeper.take() {
            let _ = sleeper.join();
        }
    }
}

impl Ticks {
    fn now() -> Option<Ticks> {
        Ticks::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// From the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    fn read(stat: &str) -> Option<Ticks> {
        let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|w| w.parse().ok()).collect();
        let busy = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum();
        Some(Ticks { busy, stolen: *ticks.get(7)? })
    }

    fn stolen_since(self, before: Ticks) -> Option<f64> {
        let stolen = self.stolen.checked_sub(before.stolen)?;
        let wanted = self.busy.checked_sub(before.busy)? + stolen;
        (wanted > 0).then(|| 100.0 * count(stolen) / count(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_what_was_wanted() {
        let before = Ticks::read("cpu  100 10 50 9000 70 1 9 20 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, Ticks { busy: 170, stolen: 20 });
        let after = Ticks::read("cpu  150 10 70 9900 90 1 14 45 0 0").unwrap();
        assert_eq!(after.stolen_since(before), Some(25.0));
        assert_eq!(before.stolen_since(before), None, "nothing was wanted");
        assert_eq!(before.stolen_since(after), None, "counters do not run back");
        assert_eq!(Ticks::read("cpu  1 2 3 4"), None, "a kernel that does not count it");
        assert_eq!(Ticks::read("intr 5"), None);
    }

    #[test]
    fn a_watch_ends_with_its_load() {
        let watch = Watch::start();
        let taken = watch.taken();
        assert!(taken.stolen_percent.is_none_or(|p| (0.0..=100.0).contains(&p)));
        let latest = Arc::downgrade(&watch.latest);
        drop(watch);
        assert!(latest.upgrade().is_none(), "its thread has ended");
    }
}
