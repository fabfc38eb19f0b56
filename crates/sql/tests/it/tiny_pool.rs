//! The least `shared_buffers` there may be, 128 kB: everything works, if slowly.

use crate::support::Database;

#[test]
fn sixteen_buffers_are_enough() {
    let db = Database::with_buffers(16);
    let mut s = db.session();
    s.check(&[
        ("SHOW shared_buffers", "128kB"),
        ("CREATE TABLE t (id serial PRIMARY KEY, f varchar(32), big text)", ""),
        (
            "INSERT INTO t (f, big) SELECT md5(g::text), CASE WHEN g % 500 = 0 THEN \
             (SELECT string_agg(md5((g * 1000 + i)::text), '') FROM generate_series(1, 300) i) END \
             FROM generate_series(1, 5000) g",
            "",
        ),
        ("CREATE INDEX ON t (f)", ""),
        ("CREATE INDEX ON t (lower(f), id) WHERE id % 2 = 0", ""),
        ("UPDATE t SET f = md5(f) WHERE id <= 2500", ""),
        ("DELETE FROM t WHERE id % 10 = 3", ""),
        ("CREATE TABLE sums AS SELECT id % 7 AS k, count(*) AS n FROM t GROUP BY 1", ""),
        ("SELECT sum(n) FROM sums", "4500"),
        ("SELECT count(*), count(DISTINCT a.f) FROM t a JOIN t b ON a.f = b.f", "4500|4500"),
        ("SELECT count(*), sum(length(big)) FROM t WHERE big IS NOT NULL", "10|96000"),
        ("SELECT id FROM t WHERE f = md5(md5('77'))", "77"),
        ("SELECT id FROM t ORDER BY f COLLATE \"C\", id LIMIT 1 OFFSET 4499", "301"),
        ("VACUUM (BUFFER_USAGE_LIMIT '128 kB') t", ""),
        ("VACUUM (FREEZE, BUFFER_USAGE_LIMIT 0) t", ""),
        ("ANALYZE t", ""),
        ("VACUUM FULL t", ""),
        ("REINDEX TABLE t", ""),
        ("CHECKPOINT", ""),
        ("SELECT count(*), sum(id) FROM t", "4500|11253500"),
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id", ""),
        ("FETCH 2 FROM c", "1\n2"),
        ("DELETE FROM t WHERE id <= 1000", ""),
        ("ROLLBACK", ""),
        ("TRUNCATE sums", ""),
        ("SELECT count(*) FROM sums", "0"),
        ("CREATE EXTENSION pg_buffercache", ""),
        ("SELECT count(*) <= 16 FROM pg_buffercache WHERE relfilenode IS NOT NULL", "t"),
    ]);
}
