//! The commands that came before the experiments: figures, syncs, and comparisons of answers.

use crate::isolation::Spec;
use crate::servers::{Make, Server};
use crate::{Result, compare, figures};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Figures of two servers: how much, which, and how often.
pub fn figures(
    ebb: &Make,
    peer: &Make,
    quick: bool,
    rounds: Option<usize>,
    only: &[String],
) -> Result<bool> {
    print!("{}", figures::run(ebb, peer, &figures::Scale::new(quick, rounds, only))?);
    Ok(true)
}

/// Commits against WAL syncs of two servers.
pub fn syncs(ebb: &Make, peer: &Make) -> Result<bool> {
    print!("{}", figures::syncs(ebb, peer)?);
    Ok(true)
}

/// The answers of two servers to the scripts of `tests/compare`; the peer's are written on demand.
pub fn compare(ebb: Option<Make>, peer: Make, write: bool) -> Result<bool> {
    let folder = root().join("tests/compare");
    let peer = Server::started(peer, &[])?;
    let ebb = ebb.map(|make| Server::started(make, &[])).transpose()?;
    let summary = compare::run(&folder, ebb.as_ref(), &peer, write)?;
    for difference in &summary.differences {
        println!("{difference}");
    }
    let compare::Summary { statements, equal, known, differences } = &summary;
    let unknown = differences.len();
    println!("{statements} statements: {equal} equal, {known} known, {unknown} not");
    Ok(unknown == 0)
}

/// Runs every isolation script; the answers are written, or compared with those written before.
pub fn isolation(make: Make, write: bool) -> Result<bool> {
    let server = Server::started(make, &[])?;
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
pub fn built() -> Result<PathBuf> {
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
        .filter(|f| Path::new(f).ends_with("crates/lab"))
        .map_or_else(|| ".".into(), |f| Path::new(&f).join("../.."))
}
