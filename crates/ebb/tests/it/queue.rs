//! A job queue with SKIP LOCKED: eight workers, every job done once.

use crate::support::server;
use std::collections::BTreeSet;

const JOBS: usize = 400;
const WORKERS: usize = 8;

#[test]
fn no_job_is_done_twice_and_none_is_left() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE job (id int PRIMARY KEY, done_by int)").unwrap();
    client.run(&format!("INSERT INTO job SELECT generate_series(1, {JOBS})")).unwrap();
    let done: Vec<Vec<String>> = std::thread::scope(|scope| {
        let server = &server;
        let start = |worker| scope.spawn(move || work(server, worker));
        let workers: Vec<_> = (0..WORKERS).map(start).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let all: Vec<&String> = done.iter().flatten().collect();
    let distinct: BTreeSet<&String> = all.iter().copied().collect();
    assert_eq!(all.len(), distinct.len(), "a job was done twice");
    assert_eq!(distinct.len(), JOBS, "a job was left");
    assert_eq!(client.value("SELECT count(*) FROM job WHERE done_by IS NULL").unwrap(), "0");
}

fn work(server: &lab::servers::Server, worker: usize) -> Vec<String> {
    let mut client = server.connect().unwrap();
    let mut done = Vec::new();
    loop {
        client.run("BEGIN").unwrap();
        let sql = "SELECT id FROM job WHERE done_by IS NULL ORDER BY id LIMIT 1 \
                   FOR UPDATE SKIP LOCKED";
        let Some(id) = client.run(sql).unwrap().value() else {
            client.run("COMMIT").unwrap();
            return done;
        };
        client.run(&format!("UPDATE job SET done_by = {worker} WHERE id = {id}")).unwrap();
        client.run("COMMIT").unwrap();
        done.push(id);
    }
}
