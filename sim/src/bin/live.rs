//! The real server under everything at once, for as long as there is time:
//!
//! `cargo build -p ebb -p sim && target/debug/live [SECONDS] [SEED] [SECONDS-OF-A-ROUND] [ages]`
//!
//! With `ages` the clients are fewer and after what old snapshots, open portals and kept statements see.
//!
//! Starts the `ebb` beside it on a free port and a temporary folder. Prints the seed, a line for each thing that is wrong and one for each
//! round; exits with 1 if anything was wrong, and keeps a copy of the folder and the log then.

#![forbid(unsafe_code)]

use lab::servers::{Make, Server, Stop};
use sim::live::Focus;
use std::process::{Command, ExitCode};
use std::time::Duration;

fn run() -> lab::Result<usize> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args.get(at).and_then(|s| s.parse::<u64>().ok());
    let time = Duration::from_secs(number(1).unwrap_or(60));
    let seed = number(2).unwrap_or_else(rand::random);
    let round = Duration::from_secs(number(3).unwrap_or(25)).min(time);
    let focus = if args.get(4).is_some_and(|a| a == "ages") { Focus::Ages } else { Focus::All };
    println!("live: seed {seed}, {} s", time.as_secs());
    lab::cleanup::watch()?;
    let ebb = std::env::current_exe()?.with_file_name("ebb");
    let mut server = Server::new(Make::Ebb(ebb), &[])?;
    let done = sim::live::run(&mut server, time, round, seed, focus);
    let _ = server.stop(Stop::Kill);
    if !matches!(done, Ok(0)) {
        let kept = std::env::temp_dir().join(format!("ebb-live-{seed}"));
        Command::new("cp").arg("-a").arg(server.scratch()).arg(&kept).status()?;
        println!("its folder and log are kept in {}", kept.display());
    }
    drop(server);
    lab::cleanup::finish();
    done
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(n) => {
            println!("{n} things are wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
