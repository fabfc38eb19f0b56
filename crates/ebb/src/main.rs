//! `ebb`: the command.

#![forbid(unsafe_code)]

mod serve;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Sessions' threads keep the small pieces that they free.
#[global_allocator]
static MEMORY: buffer::ThreadMemory = buffer::ThreadMemory;

/// A PostgreSQL-compatible database server whose clean-up makes no waves.
#[derive(Parser)]
#[command(name = "ebb", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a data folder, made if it is not there.
    // `-h` is the address, as in `postgres -h`; only `--help` is help.
    #[command(disable_help_flag = true)]
    Serve {
        /// Print help.
        #[arg(long, action = clap::ArgAction::HelpLong)]
        help: Option<bool>,
        /// The data folder.
        #[arg(short = 'D', long = "data", default_value = "./ebb-data")]
        data: PathBuf,
        /// The port to listen on.
        #[arg(short = 'p', long)]
        port: Option<u16>,
        /// The addresses to listen on, separated by commas.
        #[arg(short = 'h', long)]
        host: Option<String>,
        /// A setting, as name=value; may be repeated.
        #[arg(short = 'c', value_name = "NAME=VALUE")]
        setting: Vec<String>,
    },
    /// Make a new data folder.
    Init {
        /// The data folder.
        #[arg(short = 'D', long = "data", default_value = "./ebb-data")]
        data: PathBuf,
        /// A setting, as name=value; may be repeated.
        #[arg(short = 'c', value_name = "NAME=VALUE")]
        setting: Vec<String>,
    },
    /// Verify checksums, heaps, indexes against heaps, and maps of a data folder that nobody serves.
    Check {
        /// The data folder.
        data: PathBuf,
    },
    /// Run the five published experiments on VACUUM, beside any PostgreSQL; or ask for advice on a table.
    Lab(lab::cli::Lab),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Serve { data, port, host, setting, .. } => {
            serve::serve(&data, port, host, &setting)
        }
        Command::Init { data, setting } => serve::init(&data, &setting),
        Command::Check { data } => serve::check(&data),
        Command::Lab(lab) => return lab.run(std::env::current_exe().ok()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            let error = error.to_sql_error();
            let detail = error.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            eprintln!("ebb: {}", format!("{}{detail}", error.message).replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
