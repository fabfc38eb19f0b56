//! `lab`: the laboratory without Ebb inside; it measures this workspace's release build.

#![forbid(unsafe_code)]

use clap::Parser;

/// The five experiments, side by side with PostgreSQL.
#[derive(Parser)]
#[command(name = "lab", version)]
struct Cli {
    #[command(flatten)]
    lab: lab::cli::Lab,
}

fn main() -> std::process::ExitCode {
    Cli::parse().lab.run(None)
}
