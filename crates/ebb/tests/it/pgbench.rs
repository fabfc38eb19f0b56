//! PostgreSQL's own pgbench, if it is here: no error, equal sums, and nothing lost to kill -9.

use crate::support::{check, have, server};
use lab::measure;
use lab::servers::{Server, Stop};
use std::fs;
use std::process::{Command, Stdio};

const SUMS: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = \
    (SELECT sum(tbalance) FROM pgbench_tellers) AND (SELECT sum(abalance) FROM pgbench_accounts) = \
    (SELECT sum(bbalance) FROM pgbench_branches) AND (SELECT sum(abalance) FROM pgbench_accounts) \
    = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";

fn pgbench(server: &Server, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    measure::pgbench(&"pgbench".into(), server, &arguments).unwrap()
}

#[test]
fn all_scripts_in_all_modes() {
    if !have("pgbench") {
        return;
    }
    let mut server = server(&[("shared_buffers", "64MB")]);
    pgbench(&server, "-i -q -s 1 -I dtgvp");
    pgbench(&server, "-i -q -s 1 -I dtGvpf");
    for script in ["tpcb-like", "simple-update", "select-only"] {
        for mode in ["simple", "extended", "prepared"] {
            let report = pgbench(&server, &format!("-n -b {script} -M {mode} -c 8 -j 2 -t 50"));
            assert!(report.contains("400/400"), "{report}");
            assert!(measure::tps(&report).unwrap() > 0.0);
        }
        // Only the TPC-B script keeps all four sums equal.
        let mut client = server.connect().unwrap();
        if script == "tpcb-like" {
            assert_eq!(client.value(SUMS).unwrap(), "t");
        }
    }
    pgbench(&server, "-i -q -s 1 -I v");
    server.stop(Stop::Fast).unwrap();
    check(&server);
}

#[test]
fn ten_kills_lose_no_logged_transaction() {
    if !have("pgbench") {
        return;
    }
    let mut server = server(&[("shared_buffers", "64MB")]);
    pgbench(&server, "-i -q -s 2");
    let mut client = server.connect().unwrap();
    // Which client wrote which transaction is not in the history table, so every script run says.
    client.run("CREATE TABLE done (round int, client int, n int)").unwrap();
    let script = server.scratch().join("script.sql");
    fs::write(
        &script,
        "\\set aid random(1, 200000)\n\\set bid random(1, 2)\n\\set tid random(1, 20)\n\
         \\set delta random(-5000, 5000)\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
         UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
         UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
         VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
         INSERT INTO done VALUES (:round, :client_id, 1);\nEND;\n",
    )
    .unwrap();
    drop(client);
    for round in 0..10 {
        let mut child = Command::new("pgbench")
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &server.port().to_string()])
            .args(["-n", "-l", "-c", "4", "-j", "2", "-T", "600", "-M", "prepared", "-f"])
            .arg(&script)
            .args([
                "--log-prefix",
                &format!("log{round}"),
                "-D",
                &format!("round={round}"),
                "postgres",
            ])
            .current_dir(server.scratch())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let counted =
            format!("SELECT count(*) > {} FROM done WHERE round = {round}", 40 + 20 * round);
        let mut client = server.connect().unwrap();
        while client.value(&counted).unwrap() == "f" {
            std::thread::yield_now();
        }
        server.stop(Stop::Kill).unwrap();
        child.wait().unwrap();
        server.start().unwrap();
        let mut client = server.connect().unwrap();
        assert_eq!(client.value(SUMS).unwrap(), "t", "round {round}");
        let logged = logged(&server, round);
        for (pgbench_client, logged) in logged {
            let sql = format!(
                "SELECT count(*) FROM done WHERE round = {round} AND client = {pgbench_client}"
            );
            let there: usize = client.value(&sql).unwrap().parse().unwrap();
            assert!(
                there == logged || there == logged + 1,
                "round {round}, client {pgbench_client}: {logged} logged, {there} there"
            );
        }
    }
    let mut client = server.connect().unwrap();
    let sql = "SELECT (SELECT count(*) FROM done) = (SELECT count(*) FROM pgbench_history)";
    assert_eq!(client.value(sql).unwrap(), "t");
    drop(client);
    server.stop(Stop::Fast).unwrap();
    check(&server);
}

/// Transactions that pgbench logged as done, by client.
fn logged(server: &Server, round: usize) -> Vec<(usize, usize)> {
    let mut counts = vec![0; 4];
    for entry in fs::read_dir(server.scratch()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(&format!("log{round}.")) {
            continue;
        }
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            let mut fields = line.split(' ');
            let client: Option<usize> = fields.next().and_then(|f| f.parse().ok());
            // A line cut off by the end of the run is none.
            if let Some(client) = client.filter(|c| *c < 4 && fields.count() >= 5) {
                counts[client] += 1;
            }
        }
    }
    counts.into_iter().enumerate().collect()
}
