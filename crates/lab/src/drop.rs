//! Experiment 5, its live and redo halves: what it costs to forget a relation's pages.
//!
//! A thousand tables of one row; VACUUM after DELETE, and TRUNCATE, each table in a transaction of
//! its own; with a small and a large pool, empty and full of another table's pages. Then the
//! server is killed, and the time until it lets a client in again is its redo.

use crate::Result;
use crate::client::Client;
use crate::measure::{self, number, seconds};
use crate::servers::{Make, Server, Stop};
use std::fmt::Write as _;

const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("autovacuum", "off"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
];

/// Measures and gives the table.
pub fn run(ebb: &Make, peer: &Make, quick: bool) -> Result<String> {
    let tables = if quick { 100 } else { 1000 };
    let pools: [(&str, u64); 2] =
        if quick { [("128MB", 128), ("1GB", 1024)] } else { [("128MB", 128), ("12GB", 12 << 10)] };
    let mut text = measure::provenance(ebb, peer, SETTINGS);
    let _ = writeln!(text, "- {tables} tables of one row; seconds\n");
    text.push_str("| work | shared_buffers | pool | Ebb live | PostgreSQL live | Ebb restart | PostgreSQL restart |\n");
    text.push_str("|---|---|---|---:|---:|---:|---:|\n");
    for (pool, mebibytes) in pools {
        for full in [false, true] {
            for work in ["VACUUM", "TRUNCATE"] {
                let mut results = Vec::new();
                for make in [ebb, peer] {
                    let fill = if full { mebibytes } else { 0 };
                    let result = one(make, work, tables, pool, fill);
                    let result = result.unwrap_or_else(|e| {
                        eprintln!("{work} at {pool}: {e}");
                        (f64::NAN, f64::NAN)
                    });
                    eprintln!("{work} {pool} full={full} {make:?}: {result:?}");
                    results.push(result);
                }
                let state = if full { "full" } else { "empty" };
                let [ours, theirs] = [results[0], results[1]];
                let _ = writeln!(
                    text,
                    "| {work} | {pool} | {state} | {} | {} | {} | {} |",
                    number(ours.0),
                    number(theirs.0),
                    number(ours.1),
                    number(theirs.1)
                );
            }
        }
    }
    Ok(text)
}

/// Seconds for the work, and for the restart after a kill.
fn one(make: &Make, work: &str, tables: usize, pool: &str, fill: u64) -> Result<(f64, f64)> {
    let mut server = Server::new(make.clone(), SETTINGS)?;
    server.set("shared_buffers", pool);
    server.start()?;
    let mut client = server.connect()?;
    for n in 0..tables {
        client.run(&format!("CREATE TABLE t{n} (a int)"))?;
        client.run(&format!("INSERT INTO t{n} VALUES (1)"))?;
    }
    if work == "VACUUM" {
        each(&mut client, tables, "DELETE FROM")?;
    }
    if fill > 0 {
        // One row a page, and no WAL. An ordinary INSERT does not go round in a ring.
        client.run("CREATE UNLOGGED TABLE filler (a text)")?;
        client.run("ALTER TABLE filler ALTER a SET STORAGE PLAIN")?;
        let pages = fill * 128 * 96 / 100;
        client.run(&format!(
            "INSERT INTO filler SELECT repeat('x', 7900) FROM generate_series(1, {pages})"
        ))?;
    }
    client.run("CHECKPOINT")?;
    let live = seconds(|| each(&mut client, tables, work))?;
    drop(client);
    server.stop(Stop::Kill)?;
    let redo = server.start()?.as_secs_f64();
    let mut client = server.connect()?;
    let left = client.value(&format!("SELECT count(*) FROM t{}", tables - 1))?;
    if left != "0" {
        return Err(format!("{left} rows are back after the restart").into());
    }
    drop(client);
    server.stop(Stop::Kill)?;
    Ok((live, redo))
}

fn each(client: &mut Client, tables: usize, work: &str) -> Result<()> {
    for n in 0..tables {
        client.run(&format!("{work} t{n}"))?;
    }
    Ok(())
}
