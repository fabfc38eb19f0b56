//! The folder that a run leaves: `report.html`, `report.md`, plots as SVG, every sample as CSV and
//! JSON, and the machine.
//!
//! # Invariants
//! - A run may be killed while it writes the folder again: each file is replaced whole, by the rename of a new one.
//! - [`RESULTS`] is the first: whatever did not come after it can be made of it. `report.html` is the last: where it
//!   is, the others are.

mod html;
mod markdown;
mod samples;
mod table;

pub use markdown::summary;

use crate::results::Results;
use crate::{Error, Result, plots};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The results themselves, from which the rest can be written again.
pub const RESULTS: &str = "results.json";

/// Writes the folder.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| named(folder, e))?;
    let mut drawn = Vec::new();
    for experiment in &results.experiments {
        drawn.push(plots::plots(results, experiment)?);
    }
    put(folder, RESULTS, &(serde_json::to_string_pretty(results)? + "\n"))?;
    for plot in drawn.iter().flatten() {
        put(folder, &format!("{}.svg", plot.name), &plot.desk)?;
    }
    put(folder, "samples.csv", &samples::rows(results))?;
    put(folder, "series.csv", &samples::series(results))?;
    put(folder, "machine.json", &samples::machine(results)?)?;
    put(folder, "report.md", &markdown::page(results, &drawn))?;
    put(folder, "report.html", &html::page(results, &drawn))
}

/// Which experiments are missing, if the run was not over.
fn unfinished(results: &Results) -> Option<String> {
    let names = results.unfinished.join(", ");
    (!names.is_empty()).then(|| format!("Not finished when this was written: {names}."))
}

/// The results of a run, from its folder.
pub fn read(folder: &Path) -> Result<Results> {
    let file = folder.join(RESULTS);
    let text = fs::read_to_string(&file).map_err(|e| named(&file, e))?;
    serde_json::from_str(&text).map_err(|e| named(&file, e))
}

/// The time of now for a folder's name, as `20261122-001200`, in UTC.
pub fn stamp() -> String {
    let date = Command::new("date").args(["-u", "+%Y%m%d-%H%M%S"]).stderr(Stdio::null()).output();
    date.map_or_else(|_| "report".into(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

/// Puts a file in its place: whoever looks there finds all of the old text or all of the new.
fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    let (file, new) = (folder.join(name), folder.join(format!("{name}.new")));
    fs::write(&new, text).and_then(|()| fs::rename(&new, &file)).map_err(|e| {
        // A part of a file is of no use to anybody.
        let _ = fs::remove_file(&new);
        named(&file, e)
    })
}

fn named(path: &Path, e: impl std::fmt::Display) -> Error {
    format!("{}: {e}", path.display()).into()
}
