//! Plans that are kept: made again when what they stand on has changed, and only then.

use crate::support::{Connection, Database};

/// A session with a statement of each kind that is kept, and what runs them.
struct Reader(Connection);

impl Reader {
    fn new(db: &Database) -> Reader {
        let mut reader = Reader(db.session());
        reader
            .0
            .run_each(&["PREPARE p AS SELECT t.b, u.b FROM t JOIN u ON u.a = t.b WHERE t.a = $1"]);
        // Templates are kept when they come a second time.
        for n in 1..=4 {
            reader.run(n, "x");
        }
        reader
    }

    /// The statements' answers for row `n`, whose `u.b` is `word`; how many plans were made for them.
    fn run(&mut self, n: i32, word: &str) -> u64 {
        let before = self.0.session.plans_made();
        let row = format!("{n}|{word}");
        self.0.check(&[
            (&format!("EXECUTE p({n})"), &row),
            (&format!("SELECT a, b FROM u WHERE a = {n}"), &row),
            ("SELECT t.b, u.b FROM t JOIN u ON u.a = t.b WHERE t.a = 1", &format!("1|{word}")),
        ]);
        self.0.session.plans_made() - before
    }
}

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "CREATE TABLE u (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 9) g",
        "INSERT INTO u SELECT g, 'x' FROM generate_series(1, 9) g",
        "CREATE TABLE other (a int PRIMARY KEY REFERENCES t, b text)",
        "CREATE SCHEMA nearer",
    ]);
    db
}

#[test]
fn what_others_do_to_other_tables_costs_no_planning() {
    let db = database();
    let (mut reader, mut other) = (Reader::new(&db), db.session());
    other.run_each(&["DROP TABLE other"]);
    reader.run(1, "x");
    reader.run(2, "x");
    for list in [
        &[
            "CREATE TEMP TABLE w (i serial PRIMARY KEY, j text UNIQUE)",
            "INSERT INTO w(j) VALUES ('a')",
            "DROP TABLE w",
        ][..],
        &["BEGIN", "CREATE TEMP TABLE w ON COMMIT DROP AS SELECT * FROM t", "COMMIT"],
        &[
            "CREATE TABLE w (i int PRIMARY KEY, j text)",
            "CREATE INDEX ON w (j)",
            "INSERT INTO w VALUES (1, 'a')",
        ],
        &["ANALYZE w"],
        &["VACUUM w"],
        &["TRUNCATE w"],
        &["DROP TABLE w"],
    ] {
        other.run_each(list);
        assert_eq!(reader.run(3, "x"), 0, "after {list:?}");
    }
}

#[test]
fn what_is_done_to_their_own_tables_makes_plans_stale() {
    let db = database();
    let (mut reader, mut other) = (Reader::new(&db), db.session());
    for sql in [
        "CREATE INDEX ub ON u (b)",
        "DROP INDEX ub",
        "ANALYZE t",
        "ALTER TABLE u ADD c int",
        "ALTER TABLE u ALTER a SET STATISTICS 10",
        "DROP TABLE other",
    ] {
        other.run_each(&[sql]);
        // Two of the three stand on both tables.
        assert!(reader.run(3, "x") >= 2, "after {sql}");
        reader.run(4, "x");
        assert_eq!(reader.run(4, "x"), 0, "again after {sql}");
    }
    other.run_each(&[
        "BEGIN",
        "TRUNCATE u",
        "INSERT INTO u SELECT g, 'y' FROM generate_series(1, 9) g",
        "COMMIT",
    ]);
    reader.run(3, "y");
    other.run_each(&[
        "DROP TABLE u",
        "CREATE TABLE u (a int, b text)",
        "INSERT INTO u VALUES (1, 'z'), (5, 'z')",
    ]);
    reader.run(5, "z");
}

#[test]
fn a_new_name_that_is_found_first_makes_plans_stale() {
    let db = database();
    let (mut reader, mut other) = (Reader::new(&db), db.session());
    reader.0.run_each(&["SET search_path = nearer, public"]);
    reader.run(1, "x");
    reader.run(2, "x");
    reader.run(4, "x");
    assert_eq!(reader.run(4, "x"), 0);
    let rows = "SELECT a, 'n' AS b FROM generate_series(1, 9) g(a)";
    other.run_each(&[&format!("CREATE TABLE nearer.u AS {rows}")]);
    reader.run(4, "n");
    other.run_each(&["ALTER TABLE nearer.u RENAME TO v"]);
    reader.run(4, "x");
    other.run_each(&["ALTER TABLE nearer.v RENAME TO u"]);
    reader.run(4, "n");
    other.run_each(&["DROP TABLE nearer.u"]);
    reader.run(4, "x");
    other.run_each(&[&format!("CREATE VIEW nearer.u AS {rows}")]);
    reader.run(4, "n");
    other.run_each(&["DROP VIEW nearer.u"]);
    reader.run(4, "x");
    // One's own temporary table, from before the schema of temporary tables was there.
    reader.0.run_each(&[&format!("CREATE TEMP TABLE u AS {rows}")]);
    reader.run(4, "n");
    reader.0.run_each(&["BEGIN", "DROP TABLE u"]);
    reader.run(4, "x");
    reader.0.run_each(&["ROLLBACK"]);
    reader.run(4, "n");
    reader.0.run_each(&["DROP TABLE u"]);
    reader.run(4, "x");
}

/// The rows of a round that do not fit into `work_mem` are read back from a file: in order, again for each outer row, and as the outer side of a join.
#[test]
fn a_recursive_round_may_be_larger_than_memory() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "SET work_mem = '64kB'",
        "CREATE TABLE two (k int)",
        "INSERT INTO two VALUES (1), (2)",
    ]);
    let rounds = "WITH RECURSIVE t (n, b) AS (SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g \
                  UNION ALL SELECT n + 5000, b FROM t WHERE n <= 10000) ";
    let doubled = "WITH RECURSIVE t (n, d, b) AS (SELECT 1, 0, repeat('x', 200) \
                   UNION ALL SELECT n * 2 + k - 1, d + 1, b FROM two, t WHERE d < 11) ";
    s.check(&[
        (
            &format!("{rounds} SELECT count(*), sum(n), min(length(b)) FROM t"),
            "15000|112507500|100",
        ),
        (&format!("{rounds} SELECT n FROM t OFFSET 14998"), "14999\n15000"),
        (&format!("{doubled} SELECT count(*), count(DISTINCT n), max(d) FROM t"), "4095|4095|11"),
        ("SET enable_hashjoin = off", ""),
        ("SET enable_mergejoin = off", ""),
        (&format!("{doubled} SELECT count(*), count(DISTINCT n), max(d) FROM t"), "4095|4095|11"),
    ]);
}

/// Statements that are kept for their next execution keep no pages: VACUUM (FREEZE) would wait for sessions that do nothing.
#[test]
fn a_kept_statement_holds_no_page() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    s.run_each(&[
        "CREATE EXTENSION pg_buffercache",
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g",
        "CREATE TABLE u AS SELECT * FROM t",
        "CREATE INDEX u_a ON u (a)",
        "CREATE UNLOGGED TABLE v (a int PRIMARY KEY, b int)",
        "INSERT INTO v SELECT * FROM t",
        "ANALYZE t, u, v",
    ]);
    for statement in [
        "SELECT a FROM t ORDER BY a LIMIT 1",
        "SELECT * FROM t ORDER BY a LIMIT 3",
        "SELECT * FROM t WHERE a > 5 ORDER BY a LIMIT 1 FOR UPDATE",
        "SELECT * FROM t JOIN u USING (a) ORDER BY a LIMIT 3",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND a < 4",
        "SELECT * FROM t LIMIT 1",
        "SELECT min(a) FROM t",
        "SELECT * FROM t WHERE a = 7",
        "SELECT * FROM t WHERE a < 7 FOR UPDATE",
        "SELECT * FROM v WHERE a = 7",
        "SELECT * FROM v WHERE a IN (3, 7)",
        "SELECT * FROM v ORDER BY a LIMIT 1",
        "DELETE FROM t WHERE a = (SELECT a FROM t WHERE b > 0 ORDER BY a LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE t SET b = b + 1 WHERE a = 9",
        "WITH w AS (SELECT * FROM t ORDER BY a) SELECT * FROM w LIMIT 2",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT t.a FROM t LEFT JOIN u ON u.b < t.b ORDER BY t.a DESC LIMIT 2",
        "SELECT a, (SELECT b FROM u WHERE u.a >= t.a ORDER BY u.a LIMIT 1) FROM t ORDER BY a LIMIT 3",
        "SELECT * FROM t WHERE a > ANY (SELECT a FROM u) LIMIT 2",
        "SELECT DISTINCT a FROM t ORDER BY a LIMIT 3",
        "SELECT a, row_number() OVER (ORDER BY a) FROM t LIMIT 2",
        "SELECT * FROM (SELECT a, row_number() OVER (ORDER BY a) n FROM t) x WHERE n < 3",
        "SELECT a FROM t UNION ALL SELECT a FROM u LIMIT 2",
        "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT a FROM u ORDER BY a LIMIT 1)",
        "SELECT b, a FROM t ORDER BY a, b LIMIT 2",
        "SELECT * FROM u, LATERAL (SELECT b FROM t WHERE t.a > u.a ORDER BY t.a LIMIT 1) x LIMIT 2",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT t.a + 1 FROM r JOIN t ON t.a = r.n) SELECT * FROM r LIMIT 5",
        "UPDATE t SET b = 0 FROM u WHERE u.a = t.a AND t.a = (SELECT min(a) FROM t)",
        "INSERT INTO u SELECT a + 10000, b FROM t ORDER BY a LIMIT 1",
    ] {
        let first = other.run(statement);
        for _ in 0..3 {
            let again = other.run(statement);
            if !statement.contains("t SET") && !statement.starts_with("DELETE") {
                assert_eq!(again, first, "{statement}");
            }
        }
        s.check(&[(
            "SELECT count(*) FROM pg_buffercache p JOIN pg_class c ON c.relfilenode = p.relfilenode \
             WHERE p.pinning_backends > 0 AND c.relname IN ('t', 't_pkey', 'u', 'u_a', 'v', 'v_pkey')",
            "0",
        )]);
        s.run_each(&["VACUUM (FREEZE) t, u, v"]);
    }
}

/// What a statement has in temporary files is gone when it is done, though it is kept: another one's would not fit beside it.
#[test]
fn a_kept_statement_holds_no_files() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE big AS SELECT g, repeat('x', 100) || g AS t FROM generate_series(1, 6000) g",
        "CREATE INDEX ON big ((g / 3000))",
        "ANALYZE big",
        "SET work_mem = '64kB'",
        "SET enable_mergejoin = off",
        "SET jit = off",
    ]);
    let shapes = [
        "SELECT count(*) FROM (SELECT t FROM big ORDER BY t OFFSET 1) z",
        "SELECT t FROM big ORDER BY t LIMIT 1 OFFSET 4000",
        "SELECT t FROM big ORDER BY g / 3000, t LIMIT 1 OFFSET 4000",
        "SELECT count(*) FROM big a JOIN big b ON a.t = b.t",
        "SELECT count(*) FROM (SELECT t FROM big GROUP BY t OFFSET 1) z",
        "SELECT count(*) FROM (SELECT t FROM big UNION SELECT t FROM big) z",
        "WITH c AS MATERIALIZED (SELECT * FROM big) SELECT count(x.t) FROM c x, (SELECT g FROM c LIMIT 1) y",
        "SELECT count(b.t) FROM (VALUES (1), (2)) v (n) LEFT JOIN (SELECT g, t FROM big OFFSET 0) b ON b.g > v.n",
        "WITH RECURSIVE r AS (SELECT 1 AS n, t FROM big UNION ALL SELECT n + 1, t FROM r WHERE n < 2) SELECT count(*) FROM r",
        "SELECT count(c), count(t) FROM (SELECT t, count(*) OVER () c FROM big) z",
        "SELECT t, count(*) OVER () c FROM big LIMIT 1",
        // Left off in the midst of what is in files.
        "SELECT count(*) FROM (SELECT a.t FROM big a JOIN big b ON a.t = b.t LIMIT 1) z",
        "SELECT count(*) FROM (SELECT t FROM big GROUP BY t LIMIT 1) z",
    ];
    // The least, to the next 100 kB, with which a statement comes to its end.
    let least = |s: &mut Connection, statement: &str| {
        s.run_each(&["SET temp_file_limit = -1"]);
        let right = s.run(statement);
        let fits = |kb: &i64| {
            s.run_each(&[&format!("SET temp_file_limit = '{kb}kB'")]);
            s.run(statement) == right
        };
        let limit = (100..).step_by(100).find(fits).unwrap();
        assert!(limit > 100 && limit < 10_000, "{limit} kB: {statement}");
        (limit, right)
    };
    let other = "SELECT count(*) FROM (SELECT t FROM big ORDER BY t DESC OFFSET 1) z";
    let (others, count) = least(&mut s, other);
    for shape in shapes {
        let (limit, right) = least(&mut s, shape);
        for _ in 0..3 {
            assert_eq!(s.run(shape), right, "{limit} kB: {shape}");
        }
        // Nothing has room beside it.
        s.run_each(&[&format!("SET temp_file_limit = '{others}kB'")]);
        assert_eq!(s.run(other), count, "{limit} kB: {shape}");
    }
}

/// Queues are empty when their clients connect and prepare.
#[test]
fn a_plan_goes_when_a_table_has_become_much_larger_or_smaller() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    let is = |s: &mut Connection, execute: &str, wanted: &str| {
        let plan = s.run(&format!("EXPLAIN (COSTS OFF) {execute}"));
        assert!(plan.contains(wanted), "{execute}: {plan}");
    };
    s.run_each(&[
        "CREATE TABLE q (id int PRIMARY KEY, state int, filler text) WITH (autovacuum_enabled = off)",
        "CREATE INDEX q_state ON q (state)",
        "INSERT INTO q SELECT g, g, repeat('x', 200) FROM generate_series(1, 10) g",
        "VACUUM ANALYZE q",
        "SET plan_cache_mode = force_generic_plan",
        "PREPARE one(int) AS SELECT id FROM q WHERE state = $1",
        "PREPARE none AS SELECT count(*) FROM q WHERE state = 7",
        "PREPARE change(int) AS UPDATE q SET filler = 'y' WHERE state = $1",
        "PREPARE put(int) AS INSERT INTO q VALUES ($1, $1, repeat('x', 200))",
    ]);
    s.check(&[("EXECUTE one(3)", "3"), ("EXECUTE none", "1")]);
    s.run_each(&["EXECUTE change(3)", "EXECUTE put(11)"]);
    for execute in ["EXECUTE one(3)", "EXECUTE none", "EXECUTE change(3)"] {
        is(&mut s, execute, "Seq Scan on q");
    }
    // A few pages more change nothing.
    other
        .run_each(&["INSERT INTO q SELECT g, g, repeat('x', 200) FROM generate_series(12, 300) g"]);
    let before = s.session.plans_made();
    s.check(&[("EXECUTE one(3)", "3"), ("EXECUTE none", "1")]);
    assert_eq!(s.session.plans_made(), before);
    other.run_each(&[
        "INSERT INTO q SELECT g, g, repeat('x', 200) FROM generate_series(301, 3000) g",
    ]);
    s.check(&[("EXECUTE one(3)", "3"), ("EXECUTE none", "1")]);
    for execute in ["EXECUTE one(3)", "EXECUTE none", "EXECUTE change(3)"] {
        is(&mut s, execute, "q_state");
    }
    // That's once; who does not read the table is not concerned.
    let before = s.session.plans_made();
    s.check(&[("EXECUTE one(3)", "3"), ("EXECUTE none", "1")]);
    s.run_each(&["EXECUTE put(3001)", "EXECUTE change(3)"]);
    assert_eq!(s.session.plans_made(), before);
    // VACUUM by others: the same tuples, fewer pages.
    other.run_each(&["DELETE FROM q WHERE id > 10"]);
    let mut old = db.session();
    old.run_each(&["SET plan_cache_mode = force_generic_plan"]);
    other.run_each(&["VACUUM q"]);
    s.check(&[("EXECUTE one(3)", "3"), ("EXECUTE none", "1")]);
    is(&mut s, "EXECUTE one(3)", "Seq Scan on q");
}
