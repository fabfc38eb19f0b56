//! Random schedules of a few sessions on Ebb and PostgreSQL: `cargo run --release -p sim --bin schedules -- PEER [SECONDS] [SEED]`.
//!
//! PEER is a PostgreSQL 18's folder of binaries. Starts both on free ports and temporary folders, `ebb` from beside this program. Prints
//! the seed, each difference with all that led to it, and what was counted; exits with 1 if there was a difference.

#![forbid(unsafe_code)]

use lab::servers::{Make, Server};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// More differences are the same ones.
const MOST: usize = 10;

fn run() -> lab::Result<usize> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args.get(at).and_then(|s| s.parse::<u64>().ok());
    let peer = args.get(1).ok_or("schedules PEER [SECONDS] [SEED]")?;
    let time = Duration::from_secs(number(2).unwrap_or(60));
    let seed = number(3).unwrap_or_else(|| u64::from(rand::random::<u32>()));
    println!("schedules: seed {seed}, {} s", time.as_secs());
    lab::cleanup::watch()?;
    let settings = [("fsync", "off"), ("autovacuum", "off")];
    let ebb = std::env::current_exe()?.with_file_name("ebb");
    let ebb = Server::started(Make::Ebb(ebb), &settings)?;
    let peer = Server::started(Make::Postgres(PathBuf::from(peer)), &settings)?;
    let found = sim::schedules::run(&ebb.target(), &peer.target(), time, seed, MOST)?;
    for difference in &found.differences {
        println!("{difference}");
    }
    let sim::schedules::Found { schedules, steps, waits, open, differences } = &found;
    let count = differences.len();
    println!(
        "{schedules} schedules, {steps} steps, {waits} waits, {open} left open, {count} differ"
    );
    drop((ebb, peer));
    lab::cleanup::finish();
    Ok(count)
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            lab::cleanup::finish();
            eprintln!("schedules: {error}");
            ExitCode::FAILURE
        }
    }
}
