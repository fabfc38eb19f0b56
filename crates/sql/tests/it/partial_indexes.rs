//! Partial indexes: what their predicates say of every row is not asked of each again, and newer versions of rows are asked all the same.

use crate::support::{Connection, Database, waiting};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The plan in one line.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn items() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE items (id int PRIMARY KEY, owner int, state text, deleted_at timestamptz, n int, filler text) WITH (autovacuum_enabled = off)",
        "INSERT INTO items SELECT g, g % 100, 'done', CASE WHEN g % 50 <> 0 THEN now() END, g % 1000, repeat('x', 100) FROM generate_series(1, 5000) g",
        "UPDATE items SET state = 'new' WHERE id % 100 = 0",
        "CREATE INDEX live ON items (owner, id) WHERE deleted_at IS NULL",
        "CREATE INDEX new ON items (id) WHERE state = 'new'",
        "CREATE INDEX much ON items (owner) INCLUDE (id) WHERE n > 980 AND state IS NOT NULL",
        "VACUUM ANALYZE items",
    ]);
    db
}

#[test]
fn what_the_predicate_says_is_not_asked_again() {
    let db = items();
    let mut s = db.session();
    for (statement, want) in [
        (
            "SELECT id FROM items WHERE owner = 50 AND deleted_at IS NULL ORDER BY id",
            "Index Only Scan using live on items Index Cond: (owner = 50)",
        ),
        (
            "SELECT filler FROM items WHERE owner = 50 AND deleted_at IS NULL ORDER BY id LIMIT 1",
            "Limit -> Index Scan using live on items Index Cond: (owner = 50)",
        ),
        ("SELECT count(*) FROM items WHERE state = 'new'", "Aggregate -> Index Only Scan using new on items"),
        ("SELECT id FROM items WHERE state = 'new' ORDER BY id", "Index Only Scan using new on items"),
        // What is asked for is needed.
        ("SELECT id, state FROM items WHERE state = 'new' ORDER BY id", "Index Scan using new on items"),
        ("SELECT id FROM items WHERE state = 'new' ORDER BY id, deleted_at", "Index Scan using new on items"),
        (
            "SELECT id FROM items WHERE state = 'new' AND state <> filler ORDER BY id",
            "Index Scan using new on items Filter: (state <> filler)",
        ),
        // Less than the predicate, and no more than that.
        (
            "SELECT id FROM items WHERE n > 980 AND n > 900 AND state > '' AND owner = 90 ORDER BY id",
            "Index Cond: (owner = 90) Filter: (state > ''::text)",
        ),
        (
            "SELECT id FROM items WHERE n > 990 AND state IS NOT NULL AND owner = 95 ORDER BY id",
            "Index Cond: (owner = 95) Filter: (n > 990)",
        ),
        (
            "SELECT a.id, b.id FROM items a JOIN items b ON b.owner = a.owner AND b.state = a.state AND b.deleted_at IS NULL
             WHERE a.state = 'new' AND a.id < 500 ORDER BY 1, 2",
            "",
        ),
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(want), "{statement}\n{shape}");
        if !want.is_empty() && !want.contains("Filter") {
            assert!(!shape.contains("Filter"), "{statement}\n{shape}");
        }
        let rows = s.run(statement);
        assert!(!rows.is_empty(), "{statement}");
        s.run_each(&["SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"]);
        assert_eq!(s.run(statement), rows, "{statement}");
        s.run_each(&["RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_bitmapscan"]);
    }
}

#[test]
fn a_newer_version_is_asked_for_what_the_predicate_says() {
    let db = items();
    let mut s = db.session();
    let hide = "UPDATE items SET deleted_at = now() WHERE id = 50";
    let live = "FROM items WHERE owner = 50 AND deleted_at IS NULL";
    let reset =
        || db.session().run_each(&["UPDATE items SET deleted_at = NULL, owner = 50 WHERE id = 50"]);
    let count = format!("SELECT count(*), min(id) {live}");
    let all: i64 = s.run(&format!("SELECT count(*) {live}")).parse().unwrap();
    assert!(all > 10);
    for statement in [
        "UPDATE items SET owner = -1 WHERE owner = 50 AND deleted_at IS NULL AND id < 60",
        "DELETE FROM items WHERE owner = 50 AND deleted_at IS NULL AND id < 60",
        "SELECT id FROM items WHERE owner = 50 AND deleted_at IS NULL AND id < 60 FOR UPDATE",
        "SELECT a.id FROM items a JOIN items b ON b.id = a.id WHERE a.owner = 50 AND a.deleted_at IS NULL AND a.id < 60 FOR UPDATE OF a",
        "WITH x AS (SELECT id FROM items WHERE owner = 50 AND deleted_at IS NULL AND id < 60 FOR UPDATE) SELECT id FROM x",
        "UPDATE items SET owner = -1 FROM (VALUES (50)) v (o) WHERE owner = o AND deleted_at IS NULL AND id < 60 RETURNING id",
        "DELETE FROM items USING generate_series(50, 50) o WHERE owner = o AND deleted_at IS NULL AND id < 60 RETURNING id",
        "MERGE INTO items USING (VALUES (50)) v (o) ON owner = o AND deleted_at IS NULL AND id < 60 WHEN MATCHED THEN UPDATE SET owner = -1",
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains("using live"), "{statement}\n{shape}");
        assert_eq!(waiting(&db, hide, statement), "", "{statement}");
        s.check(&[
            (&count, &format!("{}|150", all - 1)),
            ("SELECT owner, deleted_at IS NULL FROM items WHERE id = 50", "50|f"),
        ]);
        reset();
        s.check(&[(&count, &format!("{all}|50"))]);
    }
    // Who meets it still is changed, in its newest version.
    let touch = "UPDATE items SET n = 12345 WHERE id = 50";
    let change = "UPDATE items SET owner = owner + n WHERE owner = 50 AND deleted_at IS NULL AND id < 60 RETURNING owner";
    assert_eq!(waiting(&db, touch, change), "12395");
    reset();
    // One that was hidden when the statement began is none of its rows, whatever it has become.
    db.session().run_each(&[hide]);
    let show = "UPDATE items SET deleted_at = NULL WHERE id IN (50, 150)";
    let change = "UPDATE items SET owner = -2 WHERE owner = 50 AND deleted_at IS NULL AND id < 160 RETURNING id";
    assert_eq!(waiting(&db, show, change), "150");
}

#[test]
fn every_snapshot_sees_its_own_rows_in_it() {
    let db = Database::new();
    let (mut s, mut old) = (db.session(), db.session());
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text) WITH (autovacuum_enabled = off, fillfactor = 50)",
        "INSERT INTO t SELECT g, g % 7, NULLIF(g % 11, 5), CASE WHEN g % 3 > 0 THEN 'x' || g % 5 END FROM generate_series(1, 2000) g",
        "CREATE INDEX i1 ON t (a) WHERE b IS NULL",
        "CREATE INDEX i2 ON t (id) WHERE b > 7",
        "CREATE INDEX i3 ON t (a, id) WHERE c IN ('x1', 'x2')",
        "CREATE INDEX i4 ON t (b) WHERE c IS NOT NULL AND a >= 3",
        "CREATE INDEX i5 ON t (id) WHERE NOT (a > 4)",
        "CREATE INDEX i6 ON t (id) WHERE a = 2 OR b = 3",
        "VACUUM ANALYZE t",
    ]);
    let queries = [
        "SELECT count(*), sum(a) FROM t WHERE b IS NULL",
        "SELECT count(*) FROM t WHERE b IS NULL AND a = 3",
        "SELECT count(*), sum(id) FROM t WHERE b > 7",
        "SELECT count(*), sum(id) FROM t WHERE b > 7 AND b > 5 AND b IS NOT NULL",
        "SELECT count(*), sum(id) FROM t WHERE b = 9",
        "SELECT count(*), sum(id), sum(a) FROM t WHERE c = 'x1'",
        "SELECT count(*), sum(id), sum(a) FROM t WHERE c = 'x1' OR c = 'x2'",
        "SELECT count(*), sum(id) FROM t WHERE c IN ('x2', 'x1') AND a BETWEEN 2 AND 4",
        "SELECT count(*), sum(b) FROM t WHERE c > 'x' AND a > 3",
        "SELECT count(*), sum(b) FROM t WHERE c IS NOT NULL AND a >= 3 AND a >= 2",
        "SELECT count(*), sum(id) FROM t WHERE NOT (a > 4)",
        "SELECT count(*), sum(id) FROM t WHERE NOT (a > 4) AND b IS NULL",
        "SELECT count(*), sum(id) FROM t WHERE a = 2 OR b = 3",
        "SELECT count(*), sum(id) FROM t WHERE a = 2",
        "SELECT count(*), sum(x.id), sum(y.id) FROM t x JOIN t y ON y.id = x.id + 1 AND y.b > 7 WHERE x.b IS NULL",
        "SELECT count(*), count(y.id) FROM t x LEFT JOIN t y ON y.id = x.id + 1 AND y.b > 7 WHERE x.b > 7",
        "SELECT count(*) FROM t x WHERE x.b > 7 AND NOT EXISTS (SELECT FROM t y WHERE y.a = x.a AND y.id = x.id + 3 AND y.c IN ('x1', 'x2'))",
    ];
    let ways = |s: &mut Connection, query: &str| {
        let mut all = Vec::new();
        for off in [
            "jit",
            "enable_seqscan",
            "enable_bitmapscan",
            "enable_seqscan = off; SET enable_bitmapscan",
            "enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan",
        ] {
            s.run_each(&[&format!("SET {off} = off")]);
            all.push(s.run(query));
            s.run_each(&["RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexscan; RESET enable_indexonlyscan"]);
        }
        assert!(all.windows(2).all(|w| w[0] == w[1]), "{query} {all:?}");
        all.remove(0)
    };
    let first: Vec<String> = queries.iter().map(|q| ways(&mut s, q)).collect();
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM t LIMIT 1"]);
    let mut random = SmallRng::seed_from_u64(72);
    for round in 0..9 {
        for _ in 0..12 {
            let (id, a, b) = (
                random.random_range(1..2000),
                random.random_range(0..7),
                random.random_range(0..11),
            );
            let change = match random.random_range(0..6) {
                0 => format!("UPDATE t SET a = {a} WHERE id BETWEEN {id} AND {id} + 30"),
                1 => format!("UPDATE t SET b = NULLIF({b}, 5) WHERE id BETWEEN {id} AND {id} + 30"),
                2 => {
                    format!("UPDATE t SET c = 'x{a}' WHERE b > 7 AND id > {id} AND id < {id} + 100")
                }
                3 => format!("UPDATE t SET c = NULL WHERE b IS NULL AND a = {a} AND id > {id}"),
                4 => format!(
                    "DELETE FROM t WHERE c IN ('x1', 'x2') AND a = {a} AND id BETWEEN {id} AND {id} + 60"
                ),
                _ => format!(
                    "INSERT INTO t SELECT g, {a}, {b}, 'x1' FROM generate_series({id}, {id} + 20) g ON CONFLICT (id) DO UPDATE SET b = NULL"
                ),
            };
            s.run_each(&[&change]);
        }
        if round % 4 == 3 {
            s.run_each(&["VACUUM ANALYZE t"]);
        }
        for query in &queries {
            ways(&mut s, query);
        }
        if round % 3 == 0 {
            for (query, want) in queries.iter().zip(&first) {
                assert_eq!(&ways(&mut old, query), want, "{query}");
            }
        }
    }
}

/// Whatever is asked beside what the predicate says, and whether or not that says it: the rows are those of the table read whole.
#[test]
fn predicates_and_conditions_of_all_kinds() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE k (a int, b int, c text, f boolean, d timestamp) WITH (autovacuum_enabled = off)",
        "INSERT INTO k SELECT g % 9, NULLIF(g % 10, 9), CASE WHEN g % 4 > 0 THEN 'c' || g % 3 END, (g % 5 = 0) OR NULLIF(g % 7, 0) IS NULL, \
            CASE WHEN g % 6 > 1 THEN timestamp '2001-01-01' + g * interval '1 day' END FROM generate_series(1, 300) g",
        "UPDATE k SET f = NULL WHERE a = 4",
    ]);
    let mut conditions: Vec<String> = Vec::new();
    for op in ["=", "<>", "<", "<=", ">", ">="] {
        conditions.extend([3, 4, 5].map(|n| format!("b {op} {n}")));
    }
    let others = [
        "b IS NULL",
        "b IS NOT NULL",
        "b = ANY ('{3,4}')",
        "b = ANY ('{4,NULL}')",
        "b = ANY ('{3,4,5}')",
        "(b = 3 OR a = 2)",
        "(b = 3 OR b = 4)",
        "(b > 3 AND a > 2)",
        "f",
        "NOT f",
        "f IS TRUE",
        "f IS FALSE",
        "f IS NOT TRUE",
        "c > 'c0'",
        "c IS NOT NULL",
        "(a, b) IS NOT NULL",
        "coalesce(b, 4) = 4",
        "b + a > 7",
        "d IS NOT NULL",
        // A period has an end if it has no beginning.
        "(d, timestamp '2001-05-01') OVERLAPS (timestamp '2001-03-01', timestamp '2001-06-01')",
    ];
    conditions.extend(others.map(str::to_owned));
    let predicates = conditions.iter().filter(|c| !c.ends_with(" 5") && !c.ends_with(" 3"));
    for predicate in predicates {
        s.run_each(&[
            "DROP INDEX IF EXISTS k_some",
            &format!("CREATE INDEX k_some ON k (a) WHERE {predicate}"),
        ]);
        let mut answers = Vec::new();
        for off in [
            "enable_seqscan",
            "enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan",
        ] {
            s.run_each(&[&format!("SET {off} = off")]);
            let ask = |c: &String| {
                s.run(&format!(
                    "SELECT count(*), sum(a) FROM k WHERE {c} UNION ALL SELECT count(*), sum(a) FROM k WHERE {predicate} AND {c}"
                ))
            };
            answers.push(conditions.iter().map(ask).collect::<Vec<_>>());
            s.run_each(&["RESET ALL"]);
        }
        for (n, condition) in conditions.iter().enumerate() {
            assert_eq!(answers[0][n], answers[1][n], "{condition} by an index where {predicate}");
        }
    }
}
