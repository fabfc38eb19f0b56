//! Virtual generated columns: read, asked for in conditions, checked, and refused where PostgreSQL refuses them.

use crate::support::Database;

fn table() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE v (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2), \
         s int GENERATED ALWAYS AS (a + 1) STORED, \
         n text GENERATED ALWAYS AS (coalesce('<' || a || '>', 'none')) VIRTUAL)",
        "INSERT INTO v (a) VALUES (1), (2), (3)",
    ]);
    db
}

/// Everywhere that an expression may stand, whole rows too.
#[test]
fn they_are_worked_out_where_they_are_read() {
    let db = table();
    let mut s = db.session();
    s.check(&[
        ("SELECT * FROM v ORDER BY b DESC LIMIT 1", "3|6|4|<3>"),
        ("SELECT v, row_to_json(v) FROM v WHERE b = 4", "(2,4,3,<2>)|{\"a\":2,\"b\":4,\"s\":3,\"n\":\"<2>\"}"),
        ("SELECT b + s, count(*) FROM v GROUP BY b, s HAVING b > 2 ORDER BY 1", "7|1\n10|1"),
        ("SELECT x.b FROM (SELECT b, a FROM v) x, LATERAL (SELECT FROM v WHERE v.a = x.b) y", "2"),
        ("SELECT (SELECT n FROM v w WHERE w.a = v.b) FROM v ORDER BY a", "<2>\n~\n~"),
        ("WITH w AS MATERIALIZED (SELECT * FROM v) SELECT sum(b) FROM w", "12"),
        ("SELECT b FROM v UNION ALL SELECT s FROM v ORDER BY 1", "2\n2\n3\n4\n4\n6"),
        ("SELECT b FROM v WHERE a = 2 FOR UPDATE", "4"),
        ("CREATE VIEW w AS SELECT a, b, n FROM v WHERE b > 2", ""),
        ("SELECT * FROM w ORDER BY a", "2|4|<2>\n3|6|<3>"),
        ("INSERT INTO w (a) VALUES (7) RETURNING *", "7|14|<7>"),
        ("UPDATE w SET b = 3", "428C9 column \"b\" can only be updated to DEFAULT\nColumn \"b\" is a generated column."),
        ("COPY v TO STDOUT", "1\\n\n2\\n\n3\\n\n7\\n"),
    ]);
}

/// A row that is not there has none, whatever the expression makes of NULLs.
#[test]
fn what_is_missing_has_none() {
    let db = table();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT l.a, r.b, r.n, r IS NULL FROM v l LEFT JOIN v r ON r.a = l.b ORDER BY 1",
            "1|4|<2>|f\n2|~|~|t\n3|~|~|t",
        ),
        ("SELECT l.a FROM v l LEFT JOIN v r ON r.a = l.b WHERE r.n IS NULL ORDER BY 1", "2\n3"),
        (
            "SELECT l.n, r.n FROM v l FULL JOIN v r ON r.a = l.b ORDER BY 1, 2",
            "<1>|<2>\n<2>|~\n<3>|~\n~|<1>\n~|<3>",
        ),
        ("INSERT INTO v (a) VALUES (8) RETURNING old.n, new.n, old.b, new.b", "~|<8>|~|16"),
        ("DELETE FROM v WHERE b = 16 RETURNING old.n, new.n, n", "<8>|~|<8>"),
        ("UPDATE v SET a = b + 10 WHERE b = 2 RETURNING old.b, new.b, n", "2|24|<12>"),
    ]);
}

/// ON CONFLICT's EXCLUDED has them, and so has MERGE.
#[test]
fn they_are_there_to_those_who_write() {
    let db = table();
    let mut s = db.session();
    s.check(&[
        (
            "INSERT INTO v (a) VALUES (3) ON CONFLICT (a) DO UPDATE SET a = excluded.b * 10 WHERE v.b = 6 RETURNING a, n",
            "60|<60>",
        ),
        (
            "MERGE INTO v USING (VALUES (4), (9)) x (k) ON v.b = k WHEN MATCHED THEN UPDATE SET a = v.b + k \
             WHEN NOT MATCHED THEN INSERT (a) VALUES (k) RETURNING merge_action(), b",
            "UPDATE|16\nINSERT|18",
        ),
        ("SELECT a, b, s, n FROM v ORDER BY a", "1|2|2|<1>\n8|16|9|<8>\n9|18|10|<9>\n60|120|61|<60>"),
        ("INSERT INTO v VALUES (5, 10)", "428C9 cannot insert a non-DEFAULT value into column \"b\"\nColumn \"b\" is a generated column."),
        ("INSERT INTO v VALUES (5, DEFAULT)", ""),
    ]);
}

/// NOT NULL and CHECK are asked of what they are worked out to; the row that is refused says that they are virtual.
#[test]
fn constraints_see_them() {
    let db = Database::new();
    let mut s = db.session();
    let not_null = |row: &str| {
        format!(
            "23502 null value in column \"b\" of relation \"k\" violates not-null constraint\nFailing row contains ({row}, virtual)."
        )
    };
    let check = |row: &str| {
        format!(
            "23514 new row for relation \"k\" violates check constraint \"k_b_check\"\nFailing row contains ({row}, virtual)."
        )
    };
    s.check(&[
        ("CREATE TABLE k (a int, b int GENERATED ALWAYS AS (a * 2) NOT NULL CHECK (b < 10))", ""),
        ("INSERT INTO k VALUES (1)", ""),
        ("INSERT INTO k VALUES (NULL)", &not_null("null")),
        ("INSERT INTO k VALUES (5)", &check("5")),
        ("UPDATE k SET a = 6", &check("6")),
        ("UPDATE k SET a = NULL", &not_null("null")),
        ("ALTER TABLE k ADD c int GENERATED ALWAYS AS (nullif(a, 1)) NOT NULL", "23502 column \"c\" of relation \"k\" contains null values"),
        ("ALTER TABLE k ADD c int GENERATED ALWAYS AS (a) CHECK (c > 1)", "23514 check constraint \"k_c_check\" of relation \"k\" is violated by some row"),
        ("ALTER TABLE k ADD c int GENERATED ALWAYS AS (a + 1)", ""),
        ("ALTER TABLE k ALTER c SET NOT NULL", ""),
        ("SELECT * FROM k", "1|2|2"),
        ("ALTER TABLE k ALTER c SET EXPRESSION AS (a * 5)", "0A000 ALTER TABLE / SET EXPRESSION is not supported for virtual generated columns in tables with check constraints\nColumn \"c\" of relation \"k\" is a virtual generated column."),
        ("ALTER TABLE k DROP CONSTRAINT k_b_check", ""),
        ("ALTER TABLE k ALTER c SET EXPRESSION AS (nullif(a, 1))", "23502 column \"c\" of relation \"k\" contains null values"),
        ("ALTER TABLE k ALTER c SET EXPRESSION AS (a * 5)", ""),
        ("SELECT * FROM k", "1|2|5"),
        ("ALTER TABLE k ALTER c DROP EXPRESSION", "0A000 ALTER TABLE / DROP EXPRESSION is not supported for virtual generated columns\nColumn \"c\" of relation \"k\" is a virtual generated column."),
    ]);
}

/// Nothing keeps them, and nothing is reckoned before it is read: what would fail fails then.
#[test]
fn nothing_is_kept_of_them() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE d (a int, b int GENERATED ALWAYS AS (10 / a))", ""),
        ("INSERT INTO d VALUES (0)", ""),
        ("SELECT a FROM d", "0"),
        ("SELECT b FROM d", "22012 division by zero"),
        ("UPDATE d SET a = 5", ""),
        ("ALTER TABLE d ALTER a TYPE bigint", "0A000 cannot alter type of a column used by a generated column\nColumn \"a\" is used by generated column \"b\"."),
        ("VACUUM FULL d", ""),
        ("SELECT * FROM d", "5|2"),
        ("ANALYZE d", ""),
        ("SELECT attname FROM pg_stats WHERE tablename = 'd'", "a"),
        ("SELECT attgenerated, atthasdef FROM pg_attribute WHERE attrelid = 'd'::regclass AND attname = 'b'", "v|t"),
        ("CREATE TABLE l (LIKE d INCLUDING GENERATED)", ""),
        ("INSERT INTO l VALUES (2)", ""),
        ("SELECT * FROM l", "2|5"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

#[test]
fn what_they_cannot_be_is_refused() {
    let db = table();
    let mut s = db.session();
    let index = "0A000 indexes on virtual generated columns are not supported";
    let statistics = "0A000 statistics creation on virtual generated columns is not supported";
    s.check(&[
        ("CREATE INDEX ON v (b)", index),
        ("CREATE INDEX ON v ((b + 1))", index),
        ("CREATE INDEX ON v (a) WHERE b > 1", index),
        ("CREATE STATISTICS st ON a, b FROM v", statistics),
        ("CREATE STATISTICS st ON (b + 1) FROM v", statistics),
        (
            "ALTER TABLE v ADD UNIQUE (b)",
            "0A000 unique constraints on virtual generated columns are not supported",
        ),
        (
            "CREATE TABLE x (a int, b int GENERATED ALWAYS AS (a) PRIMARY KEY)",
            "0A000 primary keys on virtual generated columns are not supported",
        ),
        (
            "ALTER TABLE v ADD FOREIGN KEY (b) REFERENCES v",
            "0A000 foreign key constraints on virtual generated columns are not supported",
        ),
        ("CREATE DOMAIN dom AS int; CREATE TYPE en AS ENUM ('x')", ""),
        (
            "CREATE TABLE x (a int, b dom GENERATED ALWAYS AS (a))",
            "0A000 virtual generated column \"b\" cannot have a domain type",
        ),
    ]);
}
