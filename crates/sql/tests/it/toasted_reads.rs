//! Values out of line are read by what looks at them, as far as it looks, and by nothing else; and are there whenever somebody does.

use crate::support::{Connection, Database};

/// Chunks of `t`'s values that have been read, or gone through to be deleted.
fn chunks(s: &mut Connection) -> u64 {
    let said = s.run(
        "SELECT idx_tup_fetch FROM pg_stat_all_tables \
         WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
    );
    said.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// Ten rows, each with a text of three chunks and a bytea of three.
fn with_long_values(s: &mut Connection) {
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CHECK (n > -9), g int, big text, raw bytea) WITH (autovacuum_enabled = off)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, 10 - i, i % 2, repeat(chr(64 + i), 5000), convert_to(repeat(chr(64 + i), 5000), 'UTF8') FROM generate_series(1, 10) i",
        "CREATE INDEX ON t (g)",
        "CREATE TABLE u (id int PRIMARY KEY, n int)",
        "INSERT INTO u SELECT i, i FROM generate_series(1, 10) i",
    ]);
}

#[track_caller]
fn check_chunks(s: &mut Connection, list: &[(&str, u64)]) {
    for (sql, wanted) in list {
        let before = chunks(s);
        s.run_each(&[sql]);
        assert_eq!(chunks(s) - before, *wanted, "chunks read by {sql}");
    }
}

#[test]
fn queries_read_what_they_look_at() {
    let db = Database::new();
    let mut s = db.session();
    with_long_values(&mut s);
    check_chunks(
        &mut s,
        &[
            ("SELECT count(*) FROM t", 0),
            ("SELECT id FROM t ORDER BY n", 0),
            ("SELECT sum(octet_length(big)), sum(length(raw)), sum(pg_column_size(big)) FROM t", 0),
            ("SELECT count(big), count(*) FILTER (WHERE raw IS NULL) FROM t", 0),
            ("SELECT id FROM t WHERE big IS NOT NULL AND octet_length(big) > 10", 0),
            ("SELECT CASE WHEN big IS NULL THEN 1 END FROM t", 0),
            ("SELECT substr(big, 1, 10) FROM t", 10),
            ("SELECT substr(big, 1990, 10) FROM t", 20),
            ("SELECT substring(big FROM 3 FOR 2), left(big, 1) FROM t", 20),
            ("SELECT substr(raw, 4500, 2), get_byte(raw, 2000) FROM t", 20),
            ("SELECT starts_with(big, 'A'), big ^@ 'AB' FROM t", 20),
            ("SELECT length(big) FROM t", 30),
            ("SELECT left(big, -1) FROM t WHERE id = 1", 3),
            // Twice the same value is one.
            ("SELECT length(big), upper(big), big FROM t", 30),
            ("SELECT * FROM t WHERE id = 3", 6),
            ("SELECT * FROM t ORDER BY n LIMIT 2", 12),
            ("SELECT big FROM t ORDER BY octet_length(big), id LIMIT 1", 3),
            ("SELECT big FROM t ORDER BY big LIMIT 1", 30),
            ("SELECT t.* FROM t JOIN u USING (id) WHERE u.n = 2", 6),
            ("SELECT t.big FROM t, u WHERE u.n = t.n ORDER BY u.n DESC LIMIT 1", 3),
            ("SELECT t.big FROM u LEFT JOIN t ON t.n = u.n AND t.g = 5", 0),
            ("SELECT DISTINCT ON (g) id, big FROM t ORDER BY g, id", 6),
            ("SELECT big, row_number() OVER (ORDER BY n) FROM t LIMIT 1", 3),
            ("SELECT g, max(n), min(left(big, 1)) FROM t GROUP BY g", 10),
            (
                "SELECT big FROM (SELECT big, n FROM t UNION ALL SELECT big, n FROM t OFFSET 0) x WHERE n = 1",
                6,
            ),
            ("SELECT id FROM t FOR UPDATE", 0),
            ("SELECT id, (SELECT octet_length(x.big) FROM t x WHERE x.id = t.id) FROM t", 0),
            ("WITH c AS MATERIALIZED (SELECT id, n FROM t) SELECT * FROM c", 0),
            ("ANALYZE t", 0),
            ("CREATE INDEX tn ON t (n)", 0),
        ],
    );
}

#[test]
fn writes_read_what_they_change() {
    let db = Database::new();
    let mut s = db.session();
    with_long_values(&mut s);
    s.run_each(&[
        "ALTER TABLE t ADD len int GENERATED ALWAYS AS (octet_length(big)) STORED",
        "ALTER TABLE t ADD head text GENERATED ALWAYS AS (upper(left(big, 3))) STORED",
        "CREATE TABLE k (id int REFERENCES t ON UPDATE CASCADE ON DELETE CASCADE)",
    ]);
    check_chunks(
        &mut s,
        &[
            ("UPDATE t SET n = n + 1", 0),
            ("UPDATE t SET g = g + 1", 0),
            ("UPDATE t SET n = n + 1 RETURNING id, len, old.n, new.n", 0),
            ("UPDATE t SET n = u.n FROM u WHERE u.id = t.id", 0),
            ("UPDATE t SET big = big", 0),
            (
                "INSERT INTO t (id, n) SELECT i, 3 FROM generate_series(1, 10) i ON CONFLICT (id) DO UPDATE SET n = excluded.n",
                0,
            ),
            ("INSERT INTO t (id, n) VALUES (1, 3) ON CONFLICT DO NOTHING", 0),
            ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n + 1", 0),
            ("INSERT INTO k SELECT id FROM t", 0),
            ("UPDATE t SET id = id + 100", 0),
            ("UPDATE t SET n = 4 WHERE id = 101 RETURNING new.raw", 3),
            // One is stored, the old one is gone through.
            ("UPDATE t SET big = 'short' WHERE id = 101", 3),
            ("UPDATE t SET raw = NULL WHERE id = 101", 3),
            ("DELETE FROM t WHERE id = 102", 6),
            ("DELETE FROM t WHERE id = 103 RETURNING id", 6),
            ("DELETE FROM t WHERE id = 104 RETURNING big", 9),
            ("VACUUM t", 0),
        ],
    );
    s.check(&[("SELECT count(*), sum(len), min(head), max(head) FROM t", "7|30005|EEE|SHO")]);
    // A referring row with long values of its own.
    s.run_each(&[
        "DROP TABLE t CASCADE",
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE t (id int REFERENCES p ON UPDATE CASCADE ON DELETE SET NULL, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO t VALUES (1, repeat('x', 5000))",
    ]);
    check_chunks(&mut s, &[("UPDATE p SET id = 2", 0), ("DELETE FROM p", 0)]);
    s.check(&[("SELECT id, length(big) FROM t", "~|5000")]);
}

/// A value that is kept is there for whoever sees a version that has it, whatever became of others.
#[test]
fn kept_values_outlive_their_old_versions() {
    let db = Database::new();
    let mut s = db.session();
    with_long_values(&mut s);
    let sums = "SELECT count(*), sum(length(big)), md5(string_agg(big, '' ORDER BY n, id)) = md5(string_agg(convert_from(raw, 'UTF8'), '' ORDER BY n, id)) FROM t";
    let sound = "SELECT count(*) FROM verify_heapam('t', check_toast => true)";
    s.run_each(&["CREATE EXTENSION amcheck"]);
    for round in 0..4 {
        s.run_each(&[
            "UPDATE t SET n = n + 1",
            "UPDATE t SET g = g + 1 WHERE id % 2 = 0",
            "VACUUM t",
        ]);
        s.check(&[(sums, "10|50000|t"), (sound, "0")]);
        // Rolled back, whole or in part.
        s.run_each(&[
            "BEGIN",
            "UPDATE t SET n = 0, big = 'x'",
            "UPDATE t SET n = 1, g = 9",
            "ROLLBACK",
            "BEGIN",
            "UPDATE t SET n = n + 1",
            "SAVEPOINT a",
            "UPDATE t SET big = NULL, g = 77",
            "ROLLBACK TO a",
            "UPDATE t SET n = n - 1",
            "COMMIT",
            if round % 2 == 0 { "VACUUM t" } else { "VACUUM FULL t" },
        ]);
        s.check(&[(sums, "10|50000|t"), (sound, "0")]);
    }
    // Values that other rows, columns and tables have are copied.
    s.run_each(&[
        "CREATE TABLE o (id int, other text)",
        "ALTER TABLE o ALTER other SET STORAGE EXTERNAL",
        "INSERT INTO o SELECT id, big FROM t",
        "ALTER TABLE t ADD again text",
        "ALTER TABLE t ALTER again SET STORAGE EXTERNAL",
        "UPDATE t SET again = big",
        "UPDATE t SET big = o.other FROM o WHERE o.id = t.id",
        "UPDATE t a SET again = b.big FROM t b WHERE b.id = a.id",
        "DROP TABLE o",
        "VACUUM t",
    ]);
    s.check(&[
        (sums, "10|50000|t"),
        ("SELECT count(*) FROM t WHERE again = big", "10"),
        (sound, "0"),
    ]);
    s.run_each(&["UPDATE t SET big = again, again = big", "UPDATE t SET again = NULL", "VACUUM t"]);
    s.check(&[(sums, "10|50000|t"), (sound, "0")]);
    s.run_each(&["DELETE FROM t", "VACUUM t"]);
    let left = "SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    s.check(&[(left, "0")]);
}

#[test]
fn an_old_snapshot_reads_old_values() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    with_long_values(&mut s);
    s.run_each(&["CREATE TABLE was AS SELECT id, md5(big) AS sum FROM t"]);
    // The cursor's sort has gone through the rows before the values are replaced.
    s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT id, md5(big), big FROM t ORDER BY n"]);
    let first = s.run("FETCH 1 FROM c");
    assert!(first.starts_with("10|"), "{first}");
    other.run_each(&[
        "UPDATE t SET big = repeat('z', 6000)",
        "DELETE FROM t WHERE id < 5",
        "VACUUM t",
        "VACUUM t",
    ]);
    let rest = s.run("FETCH 20 FROM c");
    assert_eq!(rest.lines().count(), 9);
    for line in rest.lines() {
        let mut parts = line.split('|');
        let id: u8 = parts.next().unwrap().parse().unwrap();
        let letter = char::from(64 + id).to_string();
        assert_eq!(parts.nth(1).unwrap(), letter.repeat(5000));
    }
    s.run_each(&["COMMIT", "VACUUM t"]);
    s.check(&[("SELECT count(*), sum(length(big)) FROM t", "6|36000")]);
    // What the own transaction has replaced since.
    s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT big FROM t ORDER BY n"]);
    s.run_each(&["UPDATE t SET big = 'new', n = n + 1", "DELETE FROM t"]);
    s.check(&[("FETCH 1 FROM c", &"z".repeat(6000)), ("ROLLBACK", "")]);
    s.check(&[("SELECT count(*), sum(length(big)) FROM t", "6|36000")]);
}

#[test]
fn what_returning_and_errors_show_is_read() {
    let db = Database::new();
    let mut s = db.session();
    with_long_values(&mut s);
    s.run_each(&["CREATE UNIQUE INDEX ON t (left(big, 20))", "CREATE INDEX ON t (md5(big))"]);
    let shown = "SELECT 'Failing row contains (1, -9, 1, ' || repeat('A', 64) || '..., \\x' || repeat('41', 31) || '...).'";
    let shown = s.run(shown);
    s.check(&[
        ("UPDATE t SET big = 'new' WHERE id = 2 RETURNING length(old.big), new.big, length(new.raw)", "5000|new|5000"),
        ("UPDATE t SET n = 50 WHERE id = 3 RETURNING length(old.big), old.big = new.big, left(big, 2)", "5000|t|CC"),
        ("DELETE FROM t WHERE id = 4 RETURNING left(big, 3), length(raw)", "DDD|5000"),
        (
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.id = 5 THEN UPDATE SET n = 3 WHEN MATCHED AND left(t.big, 1) = 'F' THEN DELETE RETURNING t.id, length(old.big), left(t.big, 2)",
            "5|5000|EE\n6|5000|FF",
        ),
        ("INSERT INTO t (id, n, big) VALUES (7, 1, 'q') ON CONFLICT (id) DO UPDATE SET n = -1 RETURNING length(big), left(old.big, 1)", "5000|G"),
        ("UPDATE t SET n = -9 WHERE id = 1", &format!("23514 new row for relation \"t\" violates check constraint \"t_n_check\"\n{shown}")),
        ("SELECT id FROM t WHERE md5(big) = md5(repeat('G', 5000))", "7"),
        ("SELECT id FROM t WHERE left(big, 20) = repeat('A', 20)", "1"),
    ]);
}

/// A generated column that is out of line itself stays as it is while what it is made of does.
#[test]
fn long_generated_columns_stay() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, n int, word text, big text GENERATED ALWAYS AS (repeat(word, 5000)) STORED)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t (id, n, word) VALUES (1, 1, 'a'), (2, 2, 'b')",
    ]);
    check_chunks(&mut s, &[("UPDATE t SET n = 7", 0), ("UPDATE t SET word = 'a' WHERE id = 1", 0)]);
    // As long as before, so that it may be the same: looked at, and gone through.
    check_chunks(&mut s, &[("UPDATE t SET word = 'c' WHERE id = 2", 6)]);
    s.check(&[("SELECT id, length(big), left(big, 2) FROM t ORDER BY id", "1|5000|aa\n2|5000|cc")]);
}

/// Values in the row but compressed stay so, and are as wide as they are there.
#[test]
fn compressed_values_stay_compressed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, n int, big text, nothing text DEFAULT NULL)",
        "INSERT INTO t SELECT i, i, repeat('abcdefghij', 1000) FROM generate_series(1, 3) i",
    ]);
    let size = s.run("SELECT max(pg_column_size(big)) FROM t");
    assert!(size.parse::<u32>().unwrap() < 300, "{size}");
    s.run_each(&[
        "UPDATE t SET n = n + 1",
        "UPDATE t SET id = id + 10",
        "VACUUM FULL t",
        "ANALYZE t",
    ]);
    s.check(&[
        ("SELECT max(pg_column_size(big)) FROM t", &size),
        ("SELECT id, length(big), octet_length(big), substr(big, 9995, 4), left(big, 3) FROM t ORDER BY id LIMIT 1", "11|10000|10000|efgh|abc"),
        ("SELECT avg_width, n_distinct FROM pg_stats WHERE tablename = 't' AND attname = 'big'", &format!("{size}|-1")),
        ("SELECT count(DISTINCT big) FROM t WHERE big LIKE '%jab%'", "1"),
    ]);
}

/// Parts of texts with letters of all lengths, out of line and compressed, against those of values in line.
#[test]
fn parts_are_those_of_the_whole() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "SELECT setseed(0.31)",
        "CREATE TABLE t (id int PRIMARY KEY, big text, raw bytea)",
        "CREATE TABLE packed (LIKE t)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL",
        "INSERT INTO t (id, big) SELECT i, (SELECT string_agg(repeat((ARRAY['a', 'ß', '€', '😀', 'xyz', md5(i::text || j)])[1 + (random() * 5.99)::int % 6], 1 + (random() * 60)::int), '') FROM generate_series(1, 20 * i) j) FROM generate_series(1, 12) i",
        "UPDATE t SET raw = convert_to(big, 'UTF8')",
        "INSERT INTO packed SELECT * FROM t",
        "CREATE TABLE p AS SELECT (random() * 14000)::int - 20 AS a, (random() * 9000)::int AS b FROM generate_series(1, 40)",
        // Where chunks end.
        "INSERT INTO p SELECT n * 1996 + d, e FROM generate_series(0, 6) n, generate_series(-1, 2) d, (VALUES (0), (1), (2), (1996), (1997)) v(e)",
    ]);
    let parts = |of: &str, big: &str, raw: &str| {
        format!(
            "SELECT count(*), md5(string_agg(substr({big}, a, b), '|' ORDER BY id, a, b)), md5(string_agg(substr({raw}, a, b), '|' ORDER BY id, a, b)), \
             md5(string_agg(left({big}, greatest(a, 0)), '|' ORDER BY id, a, b)), sum(octet_length({big})), sum(length({raw})) FROM {of}, p"
        )
    };
    let wanted = s.run(&parts("t", "(big || '')", "(raw || '')"));
    assert!(wanted.starts_with("2160|"), "{wanted}");
    for of in ["t", "packed"] {
        s.check(&[(&parts(of, "big", "raw"), &wanted)]);
    }
    // They were out of line, and compressed.
    s.check(&[
        ("SELECT count(*) FROM t WHERE pg_column_size(big) = octet_length(big) AND octet_length(big) > 2000", "12"),
        ("SELECT count(*) > 8 FROM packed WHERE pg_column_size(big) < octet_length(big)", "t"),
    ]);
}

/// Patterns made of the values' own beginnings, middles and ends, against values out of line, compressed, and in line.
#[test]
fn patterns_are_held_against_whole_values() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, big text, raw bytea)",
        "CREATE TABLE packed (LIKE t)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL",
        "INSERT INTO t (id, big) SELECT i, (SELECT string_agg(repeat(md5(i::text || j), 3) || 'ß', '') FROM generate_series(1, 30 * i) j) FROM generate_series(1, 8) i",
        "UPDATE t SET raw = convert_to(big, 'UTF8')",
        "INSERT INTO packed SELECT * FROM t",
        "CREATE TABLE p AS SELECT id AS n, v.* FROM t, LATERAL (VALUES (left(big, 2100) || '%'), ('%' || right(big, 2100)), \
         ('%' || substr(big, 1000, 1500) || '%'), (left(big, 40) || '%' || substr(big, 1990, 20) || '%' || right(big, 1)), \
         (left(big, 500) || '_' || substr(big, 502)), (left(big, 500) || '_' || substr(big, 503)), (big)) v(pattern)",
    ]);
    let found = |of: &str, big: &str, raw: &str| {
        format!(
            "SELECT string_agg(id || CASE WHEN {big} LIKE pattern THEN 'l' ELSE '-' END || CASE WHEN {big} ILIKE upper(pattern) THEN 'i' ELSE '-' END || \
             CASE WHEN {big} NOT LIKE pattern THEN 'n' ELSE '-' END || CASE WHEN {raw} LIKE convert_to(pattern, 'UTF8') THEN 'b' ELSE '-' END, ',' \
             ORDER BY id, n, pattern) FROM {of}, p"
        )
    };
    let wanted = s.run(&found("t", "(big || '')", "(raw || '')"));
    // Each value meets six of its own seven patterns, none of another's.
    assert_eq!(wanted.matches("l").count(), 6 * 8, "{wanted}");
    assert_eq!(wanted.matches("n").count(), 8 * 56 - 6 * 8, "{wanted}");
    for of in ["t", "packed"] {
        s.check(&[(&found(of, "big", "raw"), &wanted)]);
    }
    s.check(&[
        ("SELECT count(*) FROM t WHERE pg_column_size(big) > 2000", "8"),
        ("SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE big LIKE (SELECT pattern FROM p WHERE n = 3 LIMIT 1)", "3"),
    ]);
}
