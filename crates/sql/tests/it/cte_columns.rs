//! CTEs of which not all columns are read.

use crate::support::Database;

/// A statement over a CTE that is kept says what it says over the same rows kept nowhere; in much memory and in little.
#[test]
fn what_is_not_read_is_missed_by_nobody() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, k int, a text, b numeric, c timestamp, d int[], e jsonb, f text)",
        "INSERT INTO t SELECT i, i % 50, repeat('a', i % 60) || i, i / 7.0, timestamp '2020-01-01' + i * interval '1 hour',
           ARRAY[i, NULL, -i], jsonb_build_object('i', i), CASE WHEN i % 9 = 0 THEN NULL ELSE 'f' || i % 13 END
         FROM generate_series(1, 4000) i",
        "INSERT INTO t SELECT i, i, repeat(md5(i::text), 400), NULL, NULL, NULL, NULL, repeat('long', 3000) FROM generate_series(5001, 5003) i",
        "ANALYZE t",
        "CREATE TABLE seen (id int, what text)",
    ]);
    let statements = [
        "SELECT (SELECT sum(length(a)) FROM w), (SELECT sum(k) FROM w)",
        "SELECT count(*), (SELECT max(f) FROM w) FROM w",
        "SELECT sum(x.k), max(y.a) FROM w x JOIN w y ON x.id = y.id + 1",
        "SELECT x.f, count(*) FROM w x LEFT JOIN w y ON x.k = y.id AND y.a < 'aaaa' WHERE y.b IS NULL OR x.b > y.b GROUP BY 1 ORDER BY 1",
        "SELECT x.id, y.c FROM w x, LATERAL (SELECT c FROM w z WHERE z.k = x.k AND z.id > x.id ORDER BY z.b, z.id LIMIT 1) y WHERE x.id < 30 ORDER BY 1",
        "SELECT x.id, (SELECT max(y.b) FROM w y WHERE y.k = x.k AND y.f IS NOT DISTINCT FROM x.f) FROM w x WHERE x.id % 777 = 1 ORDER BY 1",
        "SELECT md5(string_agg(w::text, ',' ORDER BY id)) FROM w",
        "SELECT md5(string_agg(s::text, ',' ORDER BY (s).id)) FROM (SELECT w FROM w) x(s)",
        "SELECT (x).d, x.f FROM w x WHERE (SELECT count(*) FROM w) > 0 ORDER BY id DESC LIMIT 5",
        "SELECT DISTINCT k, f FROM w UNION ALL SELECT k, a FROM w WHERE id < 20 ORDER BY 1, 2",
        "SELECT k, f FROM w EXCEPT SELECT id, a FROM w ORDER BY 1, 2 LIMIT 20",
        "SELECT DISTINCT ON (k) k, id, e FROM w WHERE (SELECT min(id) FROM w) < id ORDER BY k, b DESC NULLS LAST",
        "SELECT k, string_agg(a, '' ORDER BY c DESC) FILTER (WHERE f > 'f3') FROM w WHERE id < 300 AND id > (SELECT min(id) FROM w) GROUP BY k HAVING max(b) > 3 ORDER BY k",
        "SELECT id, lag(a) OVER (PARTITION BY f ORDER BY c, id), sum(b) OVER (ORDER BY id ROWS 3 PRECEDING) FROM w WHERE id IN (SELECT k FROM w) ORDER BY 1",
        "SELECT id FROM w WHERE EXISTS (SELECT FROM w y WHERE y.k = w.id AND y.d[1] > 3900) ORDER BY 1",
        "SELECT id FROM w WHERE (k, f) NOT IN (SELECT k, f FROM w WHERE f IS NOT NULL AND id < 3000) ORDER BY 1",
        "SELECT k FROM w WHERE id > (SELECT min(id) FROM w) ORDER BY k DESC FETCH FIRST 2 ROWS WITH TIES",
        "SELECT unnest(d), f FROM w WHERE id < 4 + (SELECT count(*) FROM w) * 0 ORDER BY 1, 2",
        "SELECT x.id, jsonb_each(x.e) FROM w x JOIN w y USING (id) WHERE id < 5 ORDER BY 1",
        "SELECT length(f), length(a) FROM w WHERE id > 5000 AND id > (SELECT min(id) FROM w) ORDER BY id",
        "SELECT id FROM w WHERE f IN (SELECT f FROM w WHERE id < 3) ORDER BY id LIMIT 7",
        "SELECT count(*) FROM (SELECT * FROM w UNION SELECT * FROM w) x",
        "SELECT max(x.a), min(y.e->>'i') FROM w x FULL JOIN (SELECT * FROM w WHERE id > 100) y ON x.id = y.k WHERE x.id IS NULL OR y.id < 200",
    ];
    for memory in ["64kB", "64MB"] {
        s.run_each(&[&format!("SET work_mem = '{memory}'")]);
        for what in ["*", "id, k, upper(a) AS a, b + 1 AS b, c, d, e, f", "t.*"] {
            for statement in statements {
                let [kept, not_kept] = ["MATERIALIZED", "NOT MATERIALIZED"].map(|how| {
                    s.run(&format!("WITH w AS {how} (SELECT {what} FROM t) {statement}"))
                });
                assert_eq!(kept, not_kept, "{statement} of {what} in {memory}");
            }
        }
    }
}

#[test]
fn what_computes_computes_still() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, z int, a text)",
        "INSERT INTO t VALUES (1, 1, 'one'), (2, 0, 'two'), (3, NULL, NULL)",
        "CREATE SEQUENCE q",
        "CREATE TABLE u (id int, a text)",
    ]);
    s.check(&[
        // Nobody reads the quotient, but it is computed, as it is in PostgreSQL.
        (
            "WITH w AS MATERIALIZED (SELECT id, 1 / z AS d FROM t) SELECT count(*), (SELECT sum(id) FROM w) FROM w",
            "22012 division by zero",
        ),
        ("WITH w AS MATERIALIZED (SELECT id, nextval('q') AS n FROM t) SELECT count(*), (SELECT sum(id) FROM w) FROM w", "3|6"),
        ("SELECT last_value FROM q", "3"),
        // A column that the reader gives on computed.
        ("WITH w AS MATERIALIZED (SELECT * FROM t) SELECT x.id, coalesce(y.a, 'none') FROM w x LEFT JOIN w y ON y.z = x.id ORDER BY 1", "1|one\n2|none\n3|none"),
        // One CTE reads another, and its reader reads less.
        ("WITH w AS MATERIALIZED (SELECT * FROM t), v AS MATERIALIZED (SELECT *, length(a) AS n FROM w) SELECT sum(n), (SELECT count(z) FROM v) FROM v", "6|2"),
        ("WITH v AS MATERIALIZED (WITH w AS MATERIALIZED (SELECT * FROM t) SELECT x.*, y.a AS b FROM w x, w y WHERE x.id < y.id) SELECT max(b), (SELECT sum(z) FROM v) FROM v", "two|2"),
        // What is written is whole.
        ("WITH w AS MATERIALIZED (SELECT * FROM t), i AS (INSERT INTO u SELECT id, a FROM w RETURNING *) SELECT count(*), (SELECT sum(id) FROM w) FROM i", "3|6"),
        ("SELECT * FROM u ORDER BY id", "1|one\n2|two\n3|~"),
        ("WITH d AS (DELETE FROM u RETURNING *) SELECT (SELECT count(*) FROM d), (SELECT max(id) FROM d)", "3|3"),
        ("WITH RECURSIVE r AS (SELECT id, a, z FROM t WHERE id = 1 UNION SELECT t.id, t.a, t.z FROM t, r WHERE t.id = r.id + 1) SELECT (SELECT count(*) FROM r), (SELECT string_agg(a, ',' ORDER BY id) FROM r)", "3|one,two"),
        // Nobody reads anything.
        ("WITH w AS MATERIALIZED (SELECT * FROM t) SELECT (SELECT count(*) FROM w), (SELECT count(*) FROM w)", "3|3"),
        // A cursor goes back and forth over it.
        ("BEGIN", ""),
        ("DECLARE c SCROLL CURSOR FOR WITH w AS MATERIALIZED (SELECT * FROM t) SELECT id, a FROM w WHERE id >= (SELECT min(id) FROM w) ORDER BY id", ""),
        ("FETCH 2 FROM c", "1|one\n2|two"),
        ("FETCH PRIOR FROM c", "1|one"),
        ("ROLLBACK", ""),
    ]);
}
