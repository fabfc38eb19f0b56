//! Fuzzing: bad bytes get an error, never a panic.
//!
//! `cargo run --release -p sim --bin fuzz -- sql|protocol|pages|wal [SECONDS] [SEED]`
//!
//! Prints the seed, what it did, and each distinct panic with what led to it; exits with 1 if there was one.

#![forbid(unsafe_code)]

use rand::SeedableRng;
use rand::rngs::SmallRng;
use sim::fuzz::{self, Found};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let what = args.get(1).map_or("sql", String::as_str);
    let seconds: u64 = args.get(2).and_then(|s| s.parse().ok()).unwrap_or(60);
    let seed: u64 = args.get(3).and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("fuzz {what}: seed {seed}, {seconds} s");
    let mut rng = SmallRng::seed_from_u64(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut found = Found::watch();
    let runs = match what {
        "sql" => fuzz::sql(&mut rng, end, &mut found),
        "protocol" => fuzz::protocol(&mut rng, end, &mut found),
        "pages" => fuzz::pages(&mut rng, end, &mut found),
        "wal" => fuzz::wal(&mut rng, end, &mut found),
        other => {
            eprintln!("unknown: {other}");
            return ExitCode::FAILURE;
        }
    };
    match runs {
        Ok(runs) => println!("{runs} inputs, {} distinct panics", found.len()),
        Err(error) => {
            eprintln!("stopped: {error}");
            return ExitCode::FAILURE;
        }
    }
    found.print();
    if found.len() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
