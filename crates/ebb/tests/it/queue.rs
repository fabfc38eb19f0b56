//! Job queues: with SKIP LOCKED and eight workers every job is done once; an idle snapshot does not let one grow.

use crate::support::{check, server};
use lab::client::Client;
use lab::servers::Stop;
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

/// So many jobs come, are done, and are cleaned away; how large the index is then, in pages.
fn turn(client: &mut Client) -> u64 {
    client.run("INSERT INTO job SELECT nextval('n') FROM generate_series(1, 4000)").unwrap();
    client.run("DELETE FROM job WHERE id > 2000").unwrap();
    client.run("VACUUM (INDEX_CLEANUP ON) job").unwrap();
    client.value("SELECT pg_relation_size('job_pkey') / 8192").unwrap().parse().unwrap()
}

#[test]
fn an_idle_snapshot_does_not_make_the_index_of_a_queue_grow() {
    let mut server = server(&[("autovacuum", "off")]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE job (id int PRIMARY KEY)").unwrap();
    client.run("CREATE SEQUENCE n START 2001").unwrap();
    client.run("INSERT INTO job SELECT generate_series(1, 2000)").unwrap();
    let mut reader = server.connect().unwrap();
    let sum = "SELECT count(*) || ' ' || sum(id) FROM job";
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    assert_eq!(reader.value(sum).unwrap(), "2000 2001000");
    let sizes: Vec<u64> = (0..10).map(|_| turn(&mut client)).collect();
    assert!(sizes[9] <= sizes[2] + 2, "it rests: {sizes:?}");
    // A scan under way may be on its way to any page that it has seen a link to.
    reader.run("SET enable_seqscan = off").unwrap();
    reader.run("SET enable_bitmapscan = off").unwrap();
    reader.run("DECLARE c CURSOR FOR SELECT id FROM job WHERE id > 0 ORDER BY id").unwrap();
    assert_eq!(reader.value("FETCH c").unwrap(), "1");
    let with_cursor: Vec<u64> = (0..5).map(|_| turn(&mut client)).collect();
    assert!(with_cursor[4] > sizes[9] + 20, "it does not: {with_cursor:?}");
    let rest = reader.run("FETCH ALL FROM c").unwrap().rows().len();
    assert_eq!(rest, 1999);
    reader.run("CLOSE c").unwrap();
    let closed: Vec<u64> = (0..5).map(|_| turn(&mut client)).collect();
    assert!(closed[4] <= closed[0], "it rests again: {closed:?}");
    assert_eq!(reader.value(sum).unwrap(), "2000 2001000");
    reader.run("COMMIT").unwrap();
    drop((client, reader));
    server.stop(Stop::Fast).unwrap();
    check(&server);
}
