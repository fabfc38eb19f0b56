//! Queues: who looks for the oldest row clears away what is in the way of the next look, and nothing that anybody still sees.

use crate::support::{Connection, Database};
use base::stop::{PATIENCE, arm};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const OLDEST: &str = "SELECT id FROM jobs ORDER BY id LIMIT 1";

fn queue(s: &mut Connection) {
    s.run_each(&[
        "CREATE TABLE jobs (id bigserial PRIMARY KEY, payload text) WITH (autovacuum_enabled = off)",
        "INSERT INTO jobs (payload) SELECT 'one of many' FROM generate_series(1, 5000)",
        "CREATE EXTENSION pgstattuple",
        "CREATE EXTENSION amcheck",
        "SET enable_seqscan = off",
        "SET enable_bitmapscan = off",
    ]);
}

fn leaves(s: &mut Connection) -> u32 {
    s.run("SELECT leaf_pages FROM pgstatindex('jobs_pkey')").parse().unwrap()
}

#[test]
fn the_head_of_a_queue_is_cleared_by_who_reads_it() {
    let db = Database::new();
    let mut s = db.session();
    queue(&mut s);
    let before = leaves(&mut s);
    assert!(before > 10);
    s.run_each(&["DELETE FROM jobs WHERE id <= 4500"]);
    for _ in 0..10 {
        s.check(&[(OLDEST, "4501")]);
    }
    assert!(leaves(&mut s) <= 4, "{} of {before}", leaves(&mut s));
    s.check(&[
        ("SELECT bt_index_parent_check('jobs_pkey', true, true)", ""),
        ("SELECT count(*), min(id), max(id) FROM jobs", "500|4501|5000"),
    ]);
    s.run_each(&[
        "INSERT INTO jobs SELECT g, 'again' FROM generate_series(1, 4500) g",
        "VACUUM jobs",
    ]);
    s.check(&[
        (OLDEST, "1"),
        ("SELECT count(*) FROM jobs WHERE id > 0", "5000"),
        ("SELECT bt_index_parent_check('jobs_pkey', true, true)", ""),
    ]);
}

#[test]
fn what_an_old_snapshot_sees_stays() {
    let db = Database::new();
    let (mut s, mut idle) = (db.session(), db.session());
    queue(&mut s);
    idle.run_each(&[
        "SET enable_seqscan = off",
        "SET enable_bitmapscan = off",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT count(*) FROM jobs",
    ]);
    let before = leaves(&mut s);
    s.run_each(&["DELETE FROM jobs WHERE id <= 4500"]);
    for _ in 0..10 {
        s.check(&[(OLDEST, "4501")]);
    }
    assert_eq!(leaves(&mut s), before);
    let seen = "SELECT count(*), min(id), sum(id) FROM jobs WHERE id > 0";
    idle.check(&[(seen, "5000|1|12502500"), (OLDEST, "1")]);
    // What came and went after it nobody sees.
    for _ in 0..6 {
        s.run_each(&[
            "INSERT INTO jobs (payload) SELECT 'later' FROM generate_series(1, 2000)",
            "DELETE FROM jobs WHERE id > 5000",
        ]);
        s.check(&[("SELECT max(id) FROM jobs", "5000"), ("SELECT count(*) FROM jobs", "500")]);
        let later = "SELECT id FROM jobs WHERE id > 5000 ORDER BY id";
        s.check(&[(later, ""), (later, "")]);
    }
    assert!(leaves(&mut s) < before + 15, "{} of {before}", leaves(&mut s));
    idle.check(&[(seen, "5000|1|12502500")]);
    idle.run_each(&["COMMIT"]);
    s.check(&[("SELECT bt_index_parent_check('jobs_pkey', true, true)", "")]);
}

/// How many of the table's pages the session's look for the oldest row visits.
fn visits(s: &mut Connection) -> u32 {
    let plan = s.run(&format!("EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off) {OLDEST}"));
    let (_, hit) = plan.split_once("shared hit=").expect("buffers");
    hit.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn what_is_gone_for_all_but_an_old_snapshot_is_looked_at_once() {
    let db = Database::new();
    let (mut s, mut idle) = (db.session(), db.session());
    queue(&mut s);
    idle.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM jobs"]);
    s.run_each(&["DELETE FROM jobs WHERE id <= 4500"]);
    let (first, then) = (visits(&mut s), visits(&mut s));
    assert!(first > 30 && then < 20, "{first}, {then}");
    let before = leaves(&mut s);
    idle.check(&[("SELECT count(*), min(id) FROM jobs WHERE id > 0", "5000|1")]);
    // A row among them makes its leaf another one.
    s.run_each(&["INSERT INTO jobs VALUES (0, 'first of all')"]);
    s.check(&[(OLDEST, "0"), ("DELETE FROM jobs WHERE id = 0", ""), (OLDEST, "4501")]);
    // It is not left at that for ever: once nobody sees them, leaves are taken out.
    idle.run_each(&["COMMIT"]);
    let enough = (0..600).position(|_| {
        s.check(&[(OLDEST, "4501")]);
        leaves(&mut s) <= 4
    });
    assert!(enough.is_some(), "{} of {before}", leaves(&mut s));
    s.check(&[("SELECT bt_index_parent_check('jobs_pkey', true, true)", "")]);
}

/// A session, and whether it has a transaction open.
struct Actor {
    session: Connection,
    is_open: bool,
    savepoint: bool,
}

impl Actor {
    fn act(&mut self, random: &mut SmallRng) {
        let id = random.random_range(0..300);
        let near = format!("id BETWEEN {id} AND {}", id + random.random_range(0..40));
        let statement = match random.random_range(0..10) {
            0 if !self.is_open => "BEGIN".to_owned(),
            1 if !self.is_open => "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned(),
            0 if !self.savepoint => "SAVEPOINT s".to_owned(),
            0 => "ROLLBACK TO s".to_owned(),
            1 => "COMMIT".to_owned(),
            2 if self.is_open => "ROLLBACK".to_owned(),
            2 | 3 => format!("INSERT INTO jobs SELECT {id}, 0, pad FROM pads WHERE which < 2"),
            4 | 5 => format!("UPDATE jobs SET v = v + 1 WHERE {near}"),
            6 => format!("UPDATE jobs SET id = id + 7 WHERE {near}"),
            _ => format!("DELETE FROM jobs WHERE {near}"),
        };
        self.is_open = match statement.as_str() {
            "COMMIT" | "ROLLBACK" => false,
            begin if begin.starts_with("BEGIN") => true,
            _ => self.is_open,
        };
        self.savepoint = self.is_open && (self.savepoint || statement == "SAVEPOINT s");
        // Who would wait for another's row is told so, and gives up what he has begun.
        let said = self.session.run(&statement);
        if ["55P03", "40001"].iter().any(|state| said.starts_with(state)) {
            let _ = self.session.run("ROLLBACK");
            (self.is_open, self.savepoint) = (false, false);
        } else {
            assert_eq!(said, "", "{statement}");
        }
    }

    /// The table by its index and without it.
    fn compare(&mut self, context: &str) {
        let all = "SELECT count(*), sum(id), sum(v), min(id), max(id) FROM jobs WHERE id >= 0";
        let [by_index, by_heap] = ["off", "on"].map(|seqscan| {
            self.session.run_each(&[&format!("SET enable_seqscan = {seqscan}")]);
            self.session.run(all)
        });
        assert_eq!(by_index, by_heap, "{context}");
    }
}

#[test]
fn index_and_table_tell_everybody_the_same_at_any_time() {
    for seed in 0..2 {
        let mut random = SmallRng::seed_from_u64(seed);
        let db = Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE TABLE pads AS SELECT n AS which, repeat(chr(97 + n), 300) AS pad FROM generate_series(0, 20) n",
            "CREATE TABLE jobs (id int, v int, pad text) WITH (autovacuum_enabled = off)",
            "CREATE INDEX ON jobs (id, pad)",
            "INSERT INTO jobs SELECT g, 0, pad FROM generate_series(0, 299) g, pads WHERE which = g % 21",
        ]);
        let settings = ["SET lock_timeout = 1", "SET enable_bitmapscan = off"];
        let mut actors: Vec<Actor> = (0..4)
            .map(|_| Actor { session: db.session(), is_open: false, savepoint: false })
            .collect();
        actors.iter_mut().for_each(|a| a.session.run_each(&settings));
        for step in 0..150 {
            actors[random.random_range(0..4)].act(&mut random);
            if random.random_range(0..30) == 0 {
                s.run_each(&["VACUUM jobs"]);
            }
            let who = random.random_range(0..4);
            actors[who].compare(&format!("seed {seed}, step {step}, session {who}"));
        }
    }
}

/// A catalog's index is rebuilt beside its readers: they take nothing out of it.
#[test]
fn indexes_of_catalogs_are_left_to_vacuum() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE EXTENSION pgstattuple", "SET enable_seqscan = off"]);
    s.run_each(&["CREATE TABLE many AS SELECT 1 AS a"]);
    for n in 0..400 {
        s.run_each(&[&format!("CREATE TABLE t{n} (a int, b int, c int)")]);
    }
    let leaves = "SELECT leaf_pages FROM pgstatindex('pg_attribute_relid_attnum_index')";
    let before = s.run(leaves);
    for n in 0..400 {
        s.run_each(&[&format!("DROP TABLE t{n}")]);
    }
    let all = "SELECT count(*) > 0 FROM pg_attribute WHERE attrelid > 0 AND attnum > 0";
    for _ in 0..5 {
        s.check(&[(all, "t")]);
    }
    assert_eq!(s.run(leaves), before);
}

/// There is always somebody who writes: the next one has come before the last has ended. VACUUM stands among them for a moment, cuts the
/// table's empty end, and the writer that came behind it goes on.
#[test]
fn a_table_that_is_written_to_all_the_time_is_cut() {
    let db = &Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE jobs (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off, fillfactor = 50)",
        "INSERT INTO jobs SELECT g, 0 FROM generate_series(1, 5000) g",
        "DELETE FROM jobs WHERE id > 10",
        "VACUUM (TRUNCATE off) jobs",
    ]);
    let size = "SELECT pg_relation_size('jobs') / 8192";
    let before: u32 = s.run(size).parse().unwrap();
    assert!(before > 20);
    let waits = |s: &mut Connection, mode: &str| {
        let asked = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = '{mode}'");
        let began = std::time::Instant::now();
        while s.run(&asked) != "1" {
            assert!(began.elapsed() < PATIENCE, "nobody waits for {mode}");
            std::thread::yield_now();
        }
    };
    let write = |id: u32| format!("UPDATE jobs SET n = n + 1 WHERE id = {id}");
    let mut first = db.session();
    first.run_each(&["BEGIN", &write(1)]);
    let queued = arm("txn.lock.in_queue_for_a_moment");
    let subject = queued.subject();
    let (vacuum_is_over, go_on) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let vacuum = scope.spawn(|| subject.run(|| db.session().run("VACUUM jobs")));
        assert!(queued.is_reached(), "it does not wait for writers");
        // Who has written already goes on writing.
        first.run_each(&[&write(2)]);
        waits(&mut s, "ExclusiveLock");
        let next = scope.spawn(move || {
            let mut next = db.session();
            next.run_each(&["BEGIN", &write(3)]);
            go_on.recv().unwrap();
            next.run_each(&[&write(4), "COMMIT"]);
        });
        waits(&mut s, "RowExclusiveLock");
        first.run_each(&["COMMIT"]);
        queued.release();
        assert_eq!(vacuum.join().unwrap(), "");
        s.check(&[(size, "1")]);
        vacuum_is_over.send(()).unwrap();
        next.join().unwrap();
    });
    s.check(&[
        ("SELECT count(*), sum(id), sum(n) FROM jobs", "10|55|4"),
        ("SELECT count(*) FROM pg_locks WHERE relation = 'jobs'::regclass", "0"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// As of a customer whose orders keep coming, and whose own row is written with each.
#[test]
fn a_foreign_key_walks_over_former_versions_of_what_it_refers_to_once() {
    const READ: &str =
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'p_pkey'";
    let db = Database::new();
    let (mut s, mut idle) = (db.session(), db.session());
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY, b int) WITH (autovacuum_enabled = off)",
        // So that no update is HOT.
        "CREATE INDEX ON p (b)",
        "CREATE TABLE c (a int REFERENCES p)",
        "INSERT INTO p VALUES (1, 0)",
    ]);
    let refer = |s: &mut Connection| {
        let before: i64 = s.run(READ).parse().unwrap();
        s.run_each(&["INSERT INTO c VALUES (1)"]);
        s.run(READ).parse::<i64>().unwrap() - before
    };
    for x in ["nobody", "an old snapshot"] {
        if x != "nobody" {
            idle.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT b FROM p"]);
        }
        for _ in 0..100 {
            s.run_each(&["UPDATE p SET b = b + 1"]);
        }
        assert!(refer(&mut s) > 50, "{x} beside it");
        let read = refer(&mut s);
        // The version that the snapshot sees, and the newest.
        assert!(read <= 2, "{x} beside it: {read}");
    }
    idle.check(&[("SELECT b FROM p", "100")]);
    s.check(&[("SELECT b FROM p", "200"), ("SELECT count(*) FROM c", "4")]);
}

/// DDL looks at what depends on a table: views that come and go leave entries behind.
#[test]
fn ddl_walks_over_what_is_dead_in_a_catalog_once() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE EXTENSION pageinspect", "CREATE TABLE t (a int)"]);
    let oid: u32 = s.run("SELECT 't'::regclass::oid").parse().unwrap();
    let key: Vec<String> =
        [1259u32, oid].iter().flat_map(|n| n.to_le_bytes()).map(|b| format!("{b:02x}")).collect();
    let entries = format!(
        "SELECT count(*) FROM generate_series(1, pg_relation_size('pg_depend_reference_index') / 8192 - 1) b, \
         LATERAL bt_page_items('pg_depend_reference_index', b) i WHERE NOT dead AND data LIKE '{}%'",
        key.join(" ")
    );
    for _ in 0..40 {
        s.run_each(&["CREATE VIEW v AS SELECT a FROM t", "DROP VIEW v"]);
    }
    let before: u32 = s.run(&entries).parse().unwrap();
    assert!(before > 40, "{before}");
    s.run_each(&["ALTER TABLE t ALTER a TYPE bigint"]);
    let after: u32 = s.run(&entries).parse().unwrap();
    assert!(after < 10, "{before} to {after}");
    s.run_each(&["DROP TABLE t"]);
}
