//! Random statements on Ebb and PostgreSQL: `cargo run --release -p sim --bin differ -- 60 --peer /usr/lib/postgresql/15/bin`.
//!
//! `differ [SECONDS] [--peer FOLDER-OF-BINARIES | postgres://…]… [--ebb BINARY | postgres://…] [--seed N] [--only scalar|query|write]… [--most N] [--tries N] [--messages] [--tables N]`
//!
//! Prints the seed, each difference reduced, and what was counted; exits with 1 if there was a difference. `--tables N` prints
//! the statements that make the tables a difference names.

#![forbid(unsafe_code)]

use lab::client::Target;
use lab::servers::{Make, Server};
use sim::differ::{Differ, Kind, Options, tables};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn server(place: &str, ebb: bool, kept: &mut Vec<Server>) -> lab::Result<Target> {
    if place.contains("://") {
        return Target::parse(place);
    }
    let make =
        if ebb { Make::Ebb(PathBuf::from(place)) } else { Make::Postgres(PathBuf::from(place)) };
    let server = Server::started(make, &[("fsync", "off"), ("autovacuum", "off")])?;
    let target = server.target();
    kept.push(server);
    Ok(target)
}

fn run() -> lab::Result<usize> {
    let mut options = Options {
        seed: rand::random(),
        time: Duration::from_secs(60),
        kinds: Vec::new(),
        most: 50,
        tries: 600,
        messages: false,
    };
    let mut ebb = std::env::current_exe()?.with_file_name("ebb").to_string_lossy().into_owned();
    let mut peers = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--peer" => peers.push(value()?),
            "--ebb" => ebb = value()?,
            "--seed" => options.seed = value()?.parse()?,
            "--most" => options.most = value()?.parse()?,
            "--tries" => options.tries = value()?.parse()?,
            "--messages" => options.messages = true,
            "--tables" => {
                println!("{};", tables(value()?.parse()?).join(";\n"));
                return Ok(0);
            }
            "--only" => options.kinds.push(match value()?.as_str() {
                "scalar" => Kind::Scalar,
                "query" => Kind::Query,
                "write" => Kind::Write,
                other => return Err(format!("--only {other}: scalar, query or write").into()),
            }),
            seconds => options.time = Duration::from_secs(seconds.parse()?),
        }
    }
    if options.kinds.is_empty() {
        options.kinds = vec![Kind::Scalar, Kind::Query, Kind::Query, Kind::Write];
    }
    lab::cleanup::watch()?;
    let mut kept = Vec::new();
    let ebb = server(&ebb, true, &mut kept)?;
    let mut targets = Vec::new();
    for peer in &peers {
        targets.push((peer.clone(), server(peer, false, &mut kept)?));
    }
    let mut differ = Differ::new(options, &ebb, &targets);
    let found = differ.run();
    for (what, count) in &differ.counts {
        println!("{count:>9}  {what}");
    }
    println!("{found} differences");
    drop(kept);
    lab::cleanup::finish();
    Ok(found)
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
