//! A made-up run of all five experiments. No figure in it was measured.

use lab::results::{Bound, Experiment, Figure, Kind, Machine, Results, ServerInfo, figure as f};

const SERVERS: [&str; 3] = ["Ebb", "PostgreSQL 18", "PostgreSQL 15"];

/// The run.
pub fn results() -> Results {
    Results {
        machine: Machine {
            date: "2026-11-22 00:12:00 UTC".into(),
            command: "ebb lab --peer /usr/lib/postgresql/18/bin".into(),
            commit: "0123abc".into(),
            cpu: "A processor".into(),
            cores: 2,
            memory_bytes: 24 << 30,
            disk: "ext4 on /dev/vda".into(),
            kernel: "6.1".into(),
            more: vec![("load average".into(), "0.30".into())],
        },
        servers: SERVERS
            .iter()
            .map(|label| ServerInfo {
                label: (*label).into(),
                kind: if *label == "Ebb" { Kind::Ebb } else { Kind::Postgres },
                version: format!("{label}.0"),
                from: "/usr/bin/<server>".into(),
                settings: vec![("fsync".into(), "on".into())],
            })
            .collect(),
        experiments: vec![ring(), freeze(), index(), sync(), drop()],
        unfinished: Vec::new(),
    }
}

/// Three rounds around a value.
fn rounds(e: &mut Experiment, server: &str, x: &str, figure: Figure, value: f64) {
    for part in [1.0, 0.9, 1.25] {
        e.record(server, x, figure, value * part);
    }
}

fn ring() -> Experiment {
    let mut e = Experiment::new("ring");
    e.workload = "400,000 rows, a serial key and an index on md5 text, half updated; cold.".into();
    e.steps = vec!["CREATE TABLE table1 (id SERIAL PRIMARY KEY, filler VARCHAR(32));".into()];
    e.settings = vec![("shared_buffers".into(), "1GB".into())];
    for (x, calls, seconds) in [
        ("256 kB", [610.0, 13_420.0, 14_001.0], [0.61, 1.82, 1.95]),
        ("2 GB", [502.0, 4180.0, f64::NAN], [0.58, 1.31, f64::NAN]),
        ("0", [498.0, 12.0, f64::NAN], [0.57, 0.49, f64::NAN]),
    ] {
        for (at, server) in SERVERS.iter().enumerate().filter(|(at, _)| !f64::is_nan(calls[*at])) {
            rounds(&mut e, server, x, f::WRITE_CALLS, calls[at]);
            rounds(&mut e, server, x, f::VACUUM_TIME, seconds[at]);
        }
    }
    e.note("PostgreSQL 15 has no BUFFER_USAGE_LIMIT: it ran with its own 256 kB only.");
    let calls = |server| (server, "256 kB", f::WRITE_CALLS);
    let what = "data-file write calls at 256 kB, Ebb / PostgreSQL 18";
    e.want_ratio(what, Bound::AtMost(1.0 / 16.0), calls("Ebb"), calls("PostgreSQL 18"));
    let time = |x| ("Ebb", x, f::VACUUM_TIME);
    e.want_ratio(
        "VACUUM at 256 kB / without limit, Ebb",
        Bound::AtMost(1.1),
        time("256 kB"),
        time("0"),
    );
    e.report("Ebb", "256 kB", "VACUUM (VERBOSE)", "INFO:  vacuuming \"postgres.public.table1\"\n");
    e
}

fn freeze() -> Experiment {
    let mut e = Experiment::new("freeze");
    e.workload = "Inserts at 800 a second for four minutes; ages tuned low.".into();
    for (which, server) in SERVERS[..2].iter().enumerate() {
        let slow = if which == 0 { 1.0 } else { 3.0 };
        for second in (0..240_i32).step_by(2) {
            let at = f64::from(second);
            let wave = (at / 7.0).sin().abs();
            e.point(server, "", f::P99, at, 2.0 + wave * slow);
            e.point(server, "", f::BACKLOG, at, (at * 40.0 * slow) % 4000.0);
            if second % 20 == 10 {
                let spike = if which == 1 && second == 190 { 9.0 } else { 0.3 + wave * 0.2 };
                e.point(server, "", f::VACUUM_LENGTH, at, spike);
                e.point(server, "", f::FROZEN_PAGES, at, spike * 2000.0);
            }
        }
        rounds(&mut e, server, "", f::LONGEST_VACUUM, slow * 0.5);
        rounds(&mut e, server, "", f::P99, 1.0 + slow);
    }
    e.want("longest vacuum / median one, Ebb", Bound::AtMost(1.5), Some(1.31));
    e
}

fn index() -> Experiment {
    let mut e = Experiment::new("index");
    for n in [1, 5, 21, 55] {
        let share = f64::from(n) / 100.0;
        for (at, server) in SERVERS[..2].iter().enumerate() {
            let (fixed, each) = if at == 0 { (0.02, 2.4) } else { (0.21, 5.0) };
            rounds(&mut e, server, &format!("{n} %"), f::INDEX_ON, fixed + each * share);
            rounds(&mut e, server, &format!("{n} %"), f::INDEX_OFF, 0.015 + 1.9 * share);
        }
    }
    e.want("ON at 1 %, Ebb / PostgreSQL 18", Bound::AtMost(0.2), Some(0.34));
    e
}

fn sync() -> Experiment {
    let mut e = Experiment::new("sync");
    for (x, ebb, peer) in
        [("256 kB", 6.0, 570.0), ("1 MB", 5.0, 144.0), ("4 MB", 5.0, 39.0), ("0", 5.0, 5.0)]
    {
        for (server, syncs) in [("Ebb", ebb), ("PostgreSQL 18", peer)] {
            rounds(&mut e, server, x, f::WAL_SYNCS, syncs);
            rounds(&mut e, server, x, f::VACUUM_TIME, 1.0 + syncs / 200.0);
            rounds(&mut e, server, x, f::WRITES, syncs * 31.0);
        }
    }
    e.want("WAL syncs at 256 kB, Ebb / PostgreSQL 15", Bound::AtMost(0.05), None);
    e
}

fn drop() -> Experiment {
    let mut e = Experiment::new("drop");
    for (x, pool) in [("128 MB", 0.125), ("1 GB", 1.0), ("12 GB", 12.0)] {
        for (at, server) in SERVERS.iter().enumerate() {
            let scan = if at == 0 { 0.0 } else { 1.4 };
            for (figure, base) in [
                (f::TRUNCATE_LIVE, 1.9),
                (f::TRUNCATE_REDO, 0.15),
                (f::VACUUM_LIVE, 1.1),
                (f::VACUUM_REDO, 0.12),
                (f::TRUNCATE_LIVE_FULL, 2.0),
                (f::TRUNCATE_REDO_FULL, 0.15),
            ] {
                rounds(&mut e, server, x, figure, base + scan * pool);
            }
        }
    }
    e
}
