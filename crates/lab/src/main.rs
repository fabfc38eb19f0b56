//! `lab`: comparisons and figures, from the command line.

#![forbid(unsafe_code)]

use lab::isolation::Spec;
use lab::plan::{Plan, Silent};
use lab::results::Results;
use lab::servers::{Make, Server};
use lab::{Result, compare, experiments, figures, published};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str =
    "usage: lab figures --peer BIN [--ebb FILE] [--quick] [--only NAME,…] [--rounds N]
       lab ring|sync|index|longtx|drop [--peer BIN] [--ebb FILE] [--rows N] [--scale N] [--rounds N] [--trace]
       lab syncs   --peer BIN [--ebb FILE]
       lab isolation --peer BIN [--ebb FILE] [--write] [--peer-only]
       lab compare --peer BIN [--ebb FILE] [--write] [--peer-only]
BIN is a PostgreSQL's folder of binaries, for example /usr/lib/postgresql/18/bin.
--ebb may also name a second PostgreSQL's folder. Without it, this workspace's release build is made and used.";

#[derive(Default)]
struct Options {
    peer: Option<PathBuf>,
    ebb: Option<PathBuf>,
    quick: bool,
    write: bool,
    peer_only: bool,
    only: Vec<String>,
    rounds: Option<usize>,
    peers: Vec<PathBuf>,
    rows: Option<u64>,
    scale: Option<f64>,
    trace: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("lab: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().ok_or(USAGE)?;
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "--peer" => {
                let path: PathBuf = value()?.into();
                options.peers.push(path.clone());
                options.peer.get_or_insert(path);
            }
            "--rows" => options.rows = Some(value()?.parse()?),
            "--scale" => options.scale = Some(value()?.parse()?),
            "--trace" => options.trace = true,
            "--ebb" => options.ebb = Some(value()?.into()),
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--peer-only" => options.peer_only = true,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--rounds" => options.rounds = Some(value()?.parse()?),
            _ => return Err(USAGE.into()),
        }
    }
    if published::EXPERIMENTS.iter().any(|(name, _)| *name == command) {
        return experiment(&command, &options);
    }
    let peer = Make::Postgres(options.peer.clone().ok_or(USAGE)?);
    let make = |path: PathBuf| if path.is_dir() { Make::Postgres(path) } else { Make::Ebb(path) };
    let ebb = || options.ebb.clone().map_or_else(built, Ok).map(make);
    match command.as_str() {
        "figures" => {
            let scale = figures::Scale::new(options.quick, options.rounds, &options.only);
            print!("{}", figures::run(&ebb()?, &peer, &scale)?);
        }
        "syncs" => print!("{}", figures::syncs(&ebb()?, &peer)?),
        "compare" => {
            let folder = root().join("tests/compare");
            let peer = Server::started(peer, &[])?;
            let ebb = match options.peer_only {
                true => None,
                false => Some(Server::started(ebb()?, &[])?),
            };
            let summary = compare::run(&folder, ebb.as_ref(), &peer, options.write)?;
            for difference in &summary.differences {
                println!("{difference}");
            }
            let compare::Summary { statements, equal, known, differences } = &summary;
            let unknown = differences.len();
            println!("{statements} statements: {equal} equal, {known} known, {unknown} not");
            return Ok(unknown == 0);
        }
        "isolation" => {
            let server = if options.peer_only { peer } else { ebb()? };
            return isolation_scripts(&Server::started(server, &[])?, options.write);
        }
        _ => return Err(USAGE.into()),
    }
    Ok(true)
}

/// One experiment, its figures as text.
fn experiment(name: &str, options: &Options) -> Result<bool> {
    let make = |path: PathBuf| if path.is_dir() { Make::Postgres(path) } else { Make::Ebb(path) };
    let mut makes = vec![make(options.ebb.clone().map_or_else(built, Ok)?)];
    makes.extend(options.peers.iter().cloned().map(Make::Postgres));
    let plan = Plan {
        experiments: vec![name.to_owned()],
        makes,
        running: Vec::new(),
        scale: options.scale.unwrap_or(1.0),
        rows: options.rows,
        rounds: options.rounds.unwrap_or(1),
        trace: options.trace,
        out: ".".into(),
    };
    lab::cleanup::watch()?;
    let mut results = Results::default();
    let ran = experiments::run(&plan, &Silent, &mut results);
    print!("{}", experiments::table::all(&results));
    ran?;
    Ok(true)
}

/// Runs every isolation script; the answers are written, or compared with those written before.
fn isolation_scripts(server: &Server, write: bool) -> Result<bool> {
    let folder = root().join("tests/isolation");
    let mut specs: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    specs.retain(|p| p.extension().is_some_and(|e| e == "spec"));
    specs.sort();
    let mut same = true;
    for path in specs {
        let output = Spec::parse(&std::fs::read_to_string(&path)?)?.run(&server.target());
        let output = match output {
            Ok(output) => output,
            Err(e) => {
                println!("{}: {e}", path.display());
                same = false;
                continue;
            }
        };
        let expected = folder.join("expected").join(format!("{}.out", compare::stem(&path)));
        if write {
            std::fs::write(expected, output)?;
        } else if std::fs::read_to_string(&expected)? != output {
            let file = std::env::temp_dir().join(format!("{}.out", compare::stem(&path)));
            std::fs::write(&file, output)?;
            println!("{} differs from {}", file.display(), expected.display());
            same = false;
        }
    }
    Ok(same)
}

/// The release build of `ebb`, made now.
fn built() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "-p", "ebb"]).status()?;
    if !status.success() {
        return Err("building ebb failed".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.unwrap_or_else(|| root().join("target")).join("release/ebb"))
}

/// The top of the repository: where cargo says that this crate lies, or the folder one is in.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| ".".into(), |f| Path::new(&f).join("../.."))
}
