//! The five published experiments: their titles, and their tables as rows.

use crate::results::{Figure, Row, figure as f};

/// Every experiment's word on the command line and its title; the first five are the published ones.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("ring", "How much VACUUM writes, by BUFFER_USAGE_LIMIT"),
    ("freeze", "The aggressive-vacuum spike"),
    ("index", "What INDEX_CLEANUP costs"),
    ("sync", "Access strategies and WAL syncs"),
    ("drop", "Forgetting a relation's buffers"),
    ("longtx", "What one idle transaction holds back"),
    ("explain", "EXPLAIN VACUUM: expected beside actual"),
    ("waves", "What a VACUUM by hand does to others"),
    ("queue", "A queue beside one idle transaction"),
];

/// The title of an experiment; its word where it has none.
pub fn title(name: &str) -> &str {
    EXPERIMENTS.iter().find(|(n, _)| *n == name).map_or(name, |(_, title)| title)
}

/// The published table of an experiment; empty where none was published.
pub fn rows(name: &str) -> Vec<Row> {
    match name {
        "ring" => ring(),
        "freeze" => freeze(),
        "index" => index(),
        "sync" => sync(),
        "drop" => drop(),
        _ => Vec::new(),
    }
}

/// The published figures are of PostgreSQL of this version.
fn row(version: &str, x: &str, figure: Figure, value: f64) -> Row {
    Row::new(&format!("PostgreSQL {version}"), x, figure, &[value])
}

fn ring() -> Vec<Row> {
    let table = [
        ("15.4", "256 kB", 337_800.0, 81.0, 32.42, 40.0),
        ("16.4", "256 kB", 332_453.0, 86.0, 30.30, 42.0),
        ("16.4", "2 GB", 104_868.0, 109.0, 24.06, 232_014.0),
        ("16.4", "10 GB", 1.0, 178.0, 12.96, 295_206.0),
    ];
    let mut rows = Vec::new();
    for (version, x, calls, rate, seconds, buffers) in table {
        rows.push(row(version, x, f::WRITE_CALLS, calls));
        rows.push(row(version, x, f::WRITE_RATE, rate));
        rows.push(row(version, x, f::VACUUM_TIME, seconds));
        rows.push(row(version, x, f::CHECKPOINT_BUFFERS, buffers));
    }
    rows
}

const GIB: f64 = 1_073_741_824.0;

/// Published before and after eager scanning came to PostgreSQL 18.
fn freeze() -> Vec<Row> {
    let table = [
        (f::AGGRESSIVE_VACUUM, 1201.0, 44.0),
        (f::AGGRESSIVE_PAGES, 15_800_948.0, 1_104_095.0),
        (f::AGGRESSIVE_WAL, 11.8 * GIB, 0.28 * GIB),
        (f::P99, 16.0, 1.0),
        (f::VACUUM_IO, 1_003_654.0, 513_722.0),
    ];
    let mut rows = Vec::new();
    for (figure, before, after) in table {
        rows.push(row("17", "", figure, before));
        rows.push(row("18", "", figure, after));
    }
    rows
}

fn index() -> Vec<Row> {
    let updated = [1, 2, 3, 5, 8, 13, 21, 34, 55];
    let on = [0.3, 0.45, 0.53, 0.9, 1.44, 2.26, 3.85, 5.83, 10.14];
    let off = [0.03, 0.06, 0.09, 0.21, 0.44, 0.76, 1.27, 2.03, 3.68];
    let mut rows = Vec::new();
    for (at, n) in updated.iter().enumerate() {
        let x = format!("{n} %");
        rows.push(row("15", &x, f::INDEX_ON, on[at]));
        rows.push(row("15", &x, f::INDEX_OFF, off[at]));
    }
    rows
}

fn sync() -> Vec<Row> {
    vec![row("16", "256 kB", f::WAL_SYNCS, 12_018.0), row("16", "0", f::WAL_SYNCS, 49.0)]
}

fn drop() -> Vec<Row> {
    let table = [
        ("128 MB", [0.306, 0.306, 0.206, 0.206]),
        ("1 GB", [0.506, 0.306, 0.506, 0.206]),
        ("20 GB", [14.522, 0.306, 16.476, 0.206]),
        ("100 GB", [66.564, 0.306, 88.261, 0.206]),
    ];
    let mut rows = Vec::new();
    for (x, [vacuum_13, vacuum_14, truncate_13, truncate_14]) in table {
        rows.push(row("13", x, f::VACUUM_STANDBY, vacuum_13));
        rows.push(row("14", x, f::VACUUM_STANDBY, vacuum_14));
        rows.push(row("13", x, f::TRUNCATE_STANDBY, truncate_13));
        rows.push(row("14", x, f::TRUNCATE_STANDBY, truncate_14));
    }
    rows
}
