//! What a VACUUM costs: `cargo run --release -p vacuum --example rates [rows] [deleted percent] [frames] [ring kB]`.

#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use std::time::Instant;
use support::World;
use vacuum::VacuumOptions;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<i32>().expect("a number"));
    let rows = args.next().unwrap_or(200_000);
    let percent = args.next().unwrap_or(33);
    let frames = args.next().unwrap_or(131_072) as usize;
    let ring = args.next().map(|kb| kb as usize);
    let dir = tempfile::tempdir().expect("a folder");
    let disk = disk::os(dir.path().to_owned()).expect("a disk");
    let w = World::on(disk, 2, frames, buffer::Persistence::Permanent);
    println!("rows {rows}, deleted {percent} %, {frames} buffers, ring {ring:?} kB, os disk");
    let start = Instant::now();
    w.load(rows, b"1234567890123456789012345678901");
    println!("load {:?}", start.elapsed());
    let start = Instant::now();
    w.change(|k| k.wrapping_mul(0x5bd1_e995u32 as i32).rem_euclid(100) < percent, None);
    println!("delete {:?}", start.elapsed());
    for (name, options) in [
        ("vacuum", VacuumOptions::default()),
        ("vacuum again", VacuumOptions::default()),
        ("vacuum freeze", VacuumOptions { freeze: true, ..VacuumOptions::default() }),
    ] {
        let options = VacuumOptions { buffer_usage_limit_kb: ring, ..options };
        let before = w.ctx.wal.stats().syncs;
        let r = w.vacuum_unchecked(&options).expect("vacuum");
        println!("WAL syncs: {}", w.ctx.wal.stats().syncs - before);
        println!("{name}: {:?}\n{}\n", r.usage.elapsed, r.text());
    }
}
