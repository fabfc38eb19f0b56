//! How large each experiment is at its full size, and about how long that takes.

use crate::measure::count;
use crate::plan::Plan;

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// How many times the small size, for what is counted in seconds or tables.
    pub scale: f64,
    /// Rows of the main table.
    pub rows: Option<u64>,
    /// How often each figure is taken.
    pub rounds: usize,
    /// Under `strace` in turns of their own.
    pub trace: bool,
    /// See [`Plan::peers_s`].
    pub peers_s: Option<u64>,
}

impl Default for Size {
    fn default() -> Size {
        Size { scale: 1.0, rows: None, rounds: 1, trace: false, peers_s: None }
    }
}

/// The size of an experiment with `--full`.
pub fn full(experiment: &str) -> Size {
    let small = Size::default();
    match experiment {
        "ring" => Size { rows: Some(4_000_000), rounds: 3, trace: true, ..small },
        // Four minutes of each load: long enough for a table to reach autovacuum_freeze_max_age.
        "freeze" => Size { scale: 16.0, rows: Some(300_000), ..small },
        "index" => Size { rows: Some(5_000_000), rounds: 3, ..small },
        "sync" => Size { rows: Some(5_000_000), trace: true, ..small },
        // A thousand tables, pools to 12 GB, empty and full.
        "drop" => Size { scale: 5.0, rounds: 2, ..small },
        // Five minutes, which only Ebb's targets ask for.
        "longtx" => Size { scale: 15.0, rows: Some(1_000_000), peers_s: Some(60), ..small },
        "explain" => Size { rows: Some(2_000_000), ..small },
        "waves" => Size { scale: 2.0, rows: Some(10_000_000), rounds: 3, ..small },
        "queue" => Size { scale: 2.0, ..small },
        _ => small,
    }
}

/// About how many seconds an experiment takes on two idle cores with a disk of 1 GB/s.
pub fn expected_s(experiment: &str, plan: &Plan) -> f64 {
    let servers = plan.servers() as u64;
    let rounds = plan.rounds as u64;
    let traced = u64::from(plan.trace);
    let millions = |small| count(plan.rows(small)) / 1e6;
    let times = |turns: u64, each: f64| count(turns) * each;
    match experiment {
        "ring" => {
            let m = millions(200_000);
            times(servers, 3.0 + 10.0 * m)
                + times(servers * (4 * rounds + 5 * traced + 1), 1.5 + 1.0 * m)
        }
        "freeze" => {
            let s = plan.scaled(15).clamp(2, 240);
            times(servers, 5.0) + times(servers * rounds, 2.5 * count(s) + 5.0)
        }
        "index" => {
            let m = millions(500_000);
            let more = if m >= 5.0 || plan.scale >= 5.0 { 10 } else { 0 };
            times(servers, 4.0 + 7.0 * m) + times(servers * (24 * rounds + more), 0.5 + 0.85 * m)
        }
        "sync" => {
            let m = millions(500_000);
            times(servers, 3.0 + 4.0 * m) + times(servers * 4 * (rounds + traced), 1.5 + 0.8 * m)
        }
        // Most of it fills pools of 12 GB.
        "drop" if plan.scale >= 5.0 => times(servers, 75.0) + times(servers * rounds, 130.0),
        "drop" => times(servers * (1 + 4 * rounds), 1.0),
        "longtx" => {
            let s = plan.scaled(20).clamp(2, 300);
            let theirs = plan.peers_s.map_or(s, |most| s.min(most));
            let load = count(s) + times(servers.saturating_sub(1), count(theirs));
            times(servers, 5.0) + times(2 * rounds, load)
        }
        // Only Ebb has EXPLAIN VACUUM.
        "explain" => times(6 * rounds + 5, 0.5 + 2.0 * millions(500_000)),
        "waves" => {
            let m = millions(500_000);
            times(servers, 1.5 * m) + times(servers * rounds, 25.0 + 4.5 * m)
        }
        "queue" => times(2 * servers * rounds, 2.0 + count(plan.scaled(15).clamp(5, 300))),
        _ => 0.0,
    }
}

/// A line for the start of a run: how many minutes of what.
pub fn announcement(parts: &[(String, f64)]) -> String {
    let minutes = |seconds: f64| match seconds / 60.0 {
        m if m < 1.0 => "less than 1 min".to_owned(),
        m => format!("about {m:.0} min"),
    };
    let all = minutes(parts.iter().map(|(_, seconds)| seconds).sum());
    let each: Vec<String> =
        parts.iter().map(|(name, s)| format!("{name} {}", minutes(*s))).collect();
    match each.len() {
        0 | 1 => format!("{all} on two idle cores"),
        _ => format!("{all} on two idle cores: {}", each.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Entrant, Run};
    use crate::servers::Make;

    #[test]
    fn a_full_run_beside_three_servers_takes_an_hour_and_a_half_at_most() {
        let peer = |experiments: &[&str]| Entrant {
            make: Make::Postgres("bin".into()),
            experiments: experiments.iter().map(|e| (*e).to_owned()).collect(),
        };
        let entrants = vec![peer(&[]), peer(&[]), peer(&["ring", "sync"]), peer(&["drop"])];
        let run = Run { full: true, entrants, ..Run::default() };
        let all: Vec<(String, f64)> = crate::published::EXPERIMENTS
            .iter()
            .map(|(name, _)| ((*name).to_owned(), expected_s(name, &run.plan(name))))
            .collect();
        let minutes = all.iter().map(|(_, s)| s).sum::<f64>() / 60.0;
        assert!((60.0..90.0).contains(&minutes), "{}", announcement(&all));
        assert_eq!(
            announcement(&[("ring".into(), 90.0), ("drop".into(), 30.0)]),
            "about 2 min on two idle cores: ring about 2 min, drop less than 1 min"
        );
    }
}
