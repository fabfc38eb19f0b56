//! What was acknowledged is there after kill -9, and nothing else.

use crate::support::{check, server};
use lab::client::Client;
use lab::servers::{Server, Stop};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Writers note what was acknowledged until the server dies; then all of it must be there.
#[test]
fn acknowledged_commits_survive_kill() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 5;
    let mut server = server(&[("max_wal_size", "64MB")]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (writer int, n int, v text, PRIMARY KEY (writer, n))").unwrap();
    client.run("CREATE TABLE last (writer int PRIMARY KEY, n int)").unwrap();
    client.run("CREATE INDEX t_v ON t (v)").unwrap();
    for writer in 0..WRITERS {
        client.run(&format!("INSERT INTO last VALUES ({writer}, -1)")).unwrap();
    }
    let acknowledged: Vec<AtomicI64> = (0..WRITERS).map(|_| AtomicI64::new(-1)).collect();
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, acknowledged) = (server.connect(), &acknowledged[writer]);
                scope.spawn(move || write(&mut server.unwrap(), writer, acknowledged));
            }
            let enough = acknowledged.iter().map(|a| a.load(Ordering::SeqCst)).min().unwrap() + 15;
            while acknowledged.iter().all(|a| a.load(Ordering::SeqCst) < enough) {
                std::thread::yield_now();
            }
            server.stop(Stop::Kill).unwrap();
        });
        if round % 2 == 0 {
            let mut copy = server.connect();
            assert!(copy.is_err(), "{:?}", copy.as_mut().map(|c| c.pid));
        }
        server.start().unwrap();
        verify(&server, &acknowledged);
    }
    server.stop(Stop::Fast).unwrap();
    check(&server);
}

fn write(client: &mut Client, writer: usize, acknowledged: &AtomicI64) {
    let mut n = client
        .value(&format!("SELECT n FROM last WHERE writer = {writer}"))
        .ok()
        .and_then(|v| v.parse::<i64>().ok())
        .unwrap_or(-1);
    loop {
        n += 1;
        // Two rows and an update: a transaction that is there in part shows.
        let sql = format!(
            "BEGIN; INSERT INTO t VALUES ({writer}, {n}, md5('{n}') || repeat('x', {})); \
             UPDATE last SET n = {n} WHERE writer = {writer}; COMMIT",
            n % 500
        );
        match client.simple(&sql) {
            Ok(outcome) if outcome.error().is_none() => acknowledged.store(n, Ordering::SeqCst),
            _ => return,
        }
    }
}

fn verify(server: &Server, acknowledged: &[AtomicI64]) {
    let mut client = server.connect().unwrap();
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        let n: i64 = client
            .value(&format!("SELECT n FROM last WHERE writer = {writer}"))
            .unwrap()
            .parse()
            .unwrap();
        let known = acknowledged.load(Ordering::SeqCst);
        // The commit under way when the server died may be there or not; no other.
        assert!(n == known || n == known + 1, "writer {writer}: {n} is there, {known} was said");
        let rows = client
            .value(&format!("SELECT count(*) FROM t WHERE writer = {writer} AND n <= {n}"))
            .unwrap();
        assert_eq!(rows, (n + 1).to_string());
        let more =
            client.value(&format!("SELECT count(*) FROM t WHERE writer = {writer} AND n > {n}"));
        assert_eq!(more.unwrap(), "0");
        acknowledged.store(n, Ordering::SeqCst);
    }
    let sql = "SELECT count(*) FROM t WHERE v LIKE md5(n::text) || '%'";
    assert_eq!(client.value(sql).unwrap(), client.value("SELECT count(*) FROM t").unwrap());
}

fn fill(client: &mut Client, table: &str, rows: u32) {
    client.run(&format!("CREATE TABLE {table} (x int)")).unwrap();
    client.run(&format!("INSERT INTO {table} SELECT generate_series(1, {rows})")).unwrap();
}

/// DDL: a crash leaves no table that was not committed, and every one that was.
#[test]
fn tables_survive_or_vanish_whole() {
    let mut server = server(&[]);
    for round in 0..3 {
        let mut open = server.connect().unwrap();
        open.run("BEGIN; CREATE TABLE ghost (x int PRIMARY KEY)").unwrap();
        open.run("INSERT INTO ghost SELECT generate_series(1, 1000)").unwrap();
        let mut client = server.connect().unwrap();
        fill(&mut client, &format!("kept{round}"), 100);
        client.run(&format!("CREATE INDEX ON kept{round} (x)")).unwrap();
        client.run("CREATE TABLE gone (x int)").unwrap();
        client.run("DROP TABLE gone").unwrap();
        fill(&mut client, &format!("cut{round}"), 5000);
        client.run(&format!("TRUNCATE cut{round}")).unwrap();
        server.stop(Stop::Kill).unwrap();
        server.start().unwrap();
        let mut client = server.connect().unwrap();
        for name in ["ghost", "gone"] {
            let error = client.simple(&format!("SELECT count(*) FROM {name}")).unwrap();
            assert_eq!(error.sqlstate(), "42P01", "{name}");
        }
        for old in 0..=round {
            assert_eq!(client.value(&format!("SELECT sum(x) FROM kept{old}")).unwrap(), "5050");
            assert_eq!(client.value(&format!("SELECT count(*) FROM cut{old}")).unwrap(), "0");
        }
    }
    server.stop(Stop::Fast).unwrap();
    check(&server);
}

/// A server killed while it starts starts again.
#[test]
fn recovery_may_be_killed_too() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int PRIMARY KEY, v text)").unwrap();
    client.run("INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 20000) g").unwrap();
    client.run("UPDATE t SET v = v || 'x' WHERE id % 3 = 0").unwrap();
    client.run("DELETE FROM t WHERE id % 5 = 0").unwrap();
    server.stop(Stop::Kill).unwrap();
    for _ in 0..4 {
        server.launch().unwrap();
        let stop = AtomicBool::new(false);
        while !stop.swap(true, Ordering::Relaxed) {
            std::thread::yield_now();
        }
        server.stop(Stop::Kill).unwrap();
    }
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "16000");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE length(v) = 33").unwrap(), "5333");
    server.stop(Stop::Fast).unwrap();
    check(&server);
}
