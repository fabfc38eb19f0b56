//! Power loss at random moments of random workloads, for as long as there is time.
//!
//! `cargo run --release -p sim --bin soak -- [SECONDS] [SEED] [upkeep|emptied|rebuilt|catalogs|transfers|enums|killed|filled|replayed|ddl|
//! ddl_power|swept|held|aged]`
//!
//! Each seed's workload runs once whole and some times with the power going. What is wrong panics, saying which run it was; so does this.

#![forbid(unsafe_code)]

use disk::sim::SimDisk;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORKLOADS: [&str; 14] = [
    "upkeep",
    "emptied",
    "rebuilt",
    "catalogs",
    "transfers",
    "enums",
    "killed",
    "filled",
    "replayed",
    "ddl",
    "ddl_power",
    "swept",
    "held",
    "aged",
];
const CRASHES: u64 = 8;

fn prepared(workload: &str) -> base::Result<Arc<SimDisk>> {
    match workload {
        "upkeep" | "killed" | "filled" | "replayed" => sim::upkeep::prepared(1),
        "emptied" => sim::emptied::prepared(1),
        "rebuilt" => sim::rebuilt::prepared(1),
        "catalogs" => sim::catalogs::prepared(1),
        "enums" => sim::enums::prepared(1),
        "ddl" | "ddl_power" => sim::ddl::prepared(1),
        "swept" | "held" => sim::swept::prepared(1),
        "aged" => sim::aged::prepared(1),
        _ => sim::prepared(1),
    }
}

fn run(
    workload: &str,
    start: &SimDisk,
    seed: u64,
    at: Option<u64>,
    then: u64,
) -> base::Result<u64> {
    match workload {
        "upkeep" => sim::upkeep::run(start, seed, 60, at, then),
        "emptied" => sim::emptied::run(start, seed, 30, at, then),
        "rebuilt" => sim::rebuilt::run(start, seed, 24, at),
        "catalogs" => sim::catalogs::run(start, seed, 16, at),
        "enums" => sim::enums::run(start, seed, 40, at),
        // The process ends, and the disk goes on.
        "killed" => sim::killed::run(start, seed ^ at.unwrap_or(0) << 32, 30).map(|()| u64::MAX),
        "replayed" => {
            sim::replayed::run(start, seed ^ at.unwrap_or(0) << 32, 60).map(|()| u64::MAX)
        }
        "filled" => sim::filled::run(start, seed ^ at.unwrap_or(0) << 32, 60).map(|_| u64::MAX),
        // These choose for themselves where they are in trouble.
        "ddl" => sim::ddl::run(start, seed ^ at.unwrap_or(0) << 32, 3).map(|_| u64::MAX),
        "ddl_power" => sim::ddl::crash(start, seed ^ at.unwrap_or(0) << 32, 5).map(|_| u64::MAX),
        "swept" => sim::swept::run(start, seed ^ at.unwrap_or(0) << 32).map(|_| u64::MAX),
        "held" => sim::swept::held(start, seed ^ at.unwrap_or(0) << 32).map(|_| u64::MAX),
        "aged" => sim::aged::run(start, seed ^ at.unwrap_or(0) << 32, 200, seed % 2 == 1)
            .map(|()| u64::MAX),
        _ => sim::run(start, seed, 40, at).map(|outcome| outcome.operations),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let seconds: u64 = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(60);
    let first: u64 = args.get(2).and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    let only = args.get(3).map(String::as_str);
    println!("soak: seed {first}, {seconds} s");
    let end = Instant::now() + Duration::from_secs(seconds);
    let starts: Vec<_> = WORKLOADS
        .iter()
        .filter(|w| only.is_none_or(|only| only == **w))
        .map(|w| (*w, prepared(w)))
        .collect();
    let (mut runs, mut bad) = (0u64, 0u64);
    'seeds: for seed in first.. {
        for (workload, start) in &starts {
            let Ok(start) = start else { return ExitCode::FAILURE };
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut one = |at: Option<u64>, then: u64| {
                runs += 1;
                let done = catch_unwind(AssertUnwindSafe(|| run(workload, start, seed, at, then)));
                if let Ok(Ok(operations)) = done {
                    return Some(operations);
                }
                println!("{workload}: seed {seed}, crash at {at:?}, then {then}");
                bad += 1;
                None
            };
            let Some(whole) = one(None, u64::MAX) else { continue };
            for _ in 0..CRASHES {
                if Instant::now() > end {
                    break 'seeds;
                }
                let then = 1 << rng.random_range(0..8);
                one(Some(rng.random_range(0..whole.max(1))), rng.random_range(0..then));
            }
        }
    }
    println!("{runs} runs, {bad} went wrong");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
