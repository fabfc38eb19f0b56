//! CLUSTER: a table in the order of an index.

use crate::support::Database;

/// A table whose rows lie in no order, with values out of line.
fn prepare(db: &Database) {
    db.session().run_each(&[
        "CREATE TABLE c (id int PRIMARY KEY, a int, b text, gone int) WITH (autovacuum_enabled = off)",
        "ALTER TABLE c ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO c SELECT g, g * 7919 % 1000, repeat('x', g % 5 * 900), 1 FROM generate_series(1, 999) g",
        "ALTER TABLE c DROP gone",
        "ALTER TABLE c ADD late int DEFAULT 5",
        "INSERT INTO c VALUES (1000, NULL, 'last')",
        "DELETE FROM c WHERE id % 10 = 0 AND id < 1000",
        "UPDATE c SET b = b || 'y' WHERE id % 7 = 0",
        "CREATE INDEX c_a ON c (a)",
        "CREATE INDEX c_down ON c (a DESC, id) INCLUDE (late)",
        "CREATE INDEX c_low ON c (lower(left(b, 30)), id)",
        "CREATE INDEX c_part ON c (a) WHERE a > 5",
    ]);
}

/// How many rows come before one that they should follow.
fn disorder(order: &str) -> String {
    format!(
        "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY ctid) AS here, row_number() OVER (ORDER BY {order}) AS due \
         FROM c) x WHERE here <> due"
    )
}

const SUM: &str =
    "SELECT count(*), sum(id), sum(a), sum(length(b)), sum(late), min(md5(b)), max(md5(b)) FROM c";

#[test]
fn rows_come_in_the_order_of_the_index() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    let whole = s.run(SUM);
    for (index, order) in [
        ("c_a", "a, id"),
        ("c_down", "a DESC, id"),
        ("c_low", "lower(left(b, 30)), id"),
        ("c_pkey", "id"),
    ] {
        s.check(&[
            (&format!("CLUSTER c USING {index}"), ""),
            (&disorder(order), "0"),
            (SUM, &whole),
            (
                "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'c'::regclass AND indisclustered",
                index,
            ),
        ]);
        assert_eq!(db.faults(), Vec::<String>::new());
    }
    // The mark says by what the next one goes, of this table or of all.
    for sql in ["CLUSTER c", "CLUSTER", "CLUSTER c_pkey ON c"] {
        s.run_each(&["UPDATE c SET b = b || 'z' WHERE id % 3 = 0"]);
        s.check(&[(sql, ""), (&disorder("id"), "0")]);
    }
    s.run_each(&["SET enable_seqscan = off"]);
    s.check(&[
        ("SELECT count(*) FROM c WHERE a > -1", "900"),
        ("SELECT id FROM c WHERE id = 7", "7"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// More rows than sort memory holds, and an open snapshot that sees what was.
#[test]
fn snapshots_see_what_they_saw() {
    let db = Database::new();
    prepare(&db);
    let (mut s, mut old) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE other (a int)"]);
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM other"]);
    let before = s.run(SUM);
    s.run_each(&[
        "UPDATE c SET a = a + 1, b = 'new' WHERE id < 100",
        "DELETE FROM c WHERE id BETWEEN 200 AND 220",
        "INSERT INTO c SELECT g, 1, 'more' FROM generate_series(2000, 20000) g",
        "SET maintenance_work_mem = '1MB'",
    ]);
    let after = s.run(SUM);
    s.check(&[("CLUSTER c USING c_a", ""), (SUM, &after)]);
    old.check(&[(SUM, &before), ("COMMIT", ""), (SUM, &after)]);
    s.check(&[("VACUUM c", ""), ("CLUSTER c", ""), (SUM, &after)]);
    s.check(&[(
        "SELECT count(*) FROM (SELECT a < lag(a) OVER (ORDER BY ctid) AS back FROM c) x WHERE back",
        "0",
    )]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// In a block: what the transaction did itself goes over, and a rollback undoes all.
#[test]
fn a_block_may_cluster_what_it_changed() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    let whole = s.run(SUM);
    let steps = [
        "BEGIN",
        "INSERT INTO c VALUES (5000, 3, 'own'), (5001, 3, 'own')",
        "DELETE FROM c WHERE id = 5001",
        "UPDATE c SET a = -a WHERE id < 50",
        "SAVEPOINT s",
        "DELETE FROM c WHERE id < 500",
        "ROLLBACK TO s",
        "UPDATE c SET b = 'twice' WHERE id = 5000",
    ];
    for end in ["ROLLBACK", "COMMIT"] {
        s.run_each(&steps);
        let inside = s.run(SUM);
        s.check(&[("CLUSTER c USING c_a", ""), (SUM, &inside)]);
        s.run_each(&[
            "UPDATE c SET a = a + 1 WHERE id = 5000",
            "UPDATE c SET a = a - 1 WHERE id = 5000",
        ]);
        s.check(&[(SUM, &inside), (end, "")]);
        let left = if end == "COMMIT" { &inside } else { &whole };
        s.check(&[(SUM, left)]);
        assert_eq!(db.faults(), Vec::<String>::new());
    }
}

/// PostgreSQL's words.
#[test]
fn what_is_refused_and_told() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE c2 (x int)",
        "CREATE INDEX c2_x ON c2 (x)",
        "CREATE VIEW cv AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW cm AS SELECT 1 AS a",
        "CREATE INDEX cm_a ON cm (a)",
        "CREATE TEMP TABLE tt (a int PRIMARY KEY)",
        "INSERT INTO tt VALUES (2), (1)",
    ]);
    s.check(&[
        ("CLUSTER c", "42704 there is no previously clustered index for table \"c\""),
        ("CLUSTER c USING nope", "42704 index \"nope\" for table \"c\" does not exist"),
        ("CLUSTER c USING c_part", "0A000 cannot cluster on partial index \"c_part\""),
        ("CLUSTER c USING c2_x", "42809 \"c2_x\" is not an index for table \"c\""),
        ("CLUSTER nope USING c_a", "42P01 relation \"nope\" does not exist"),
        ("CLUSTER c_a", "42809 \"c_a\" is not a table or materialized view"),
        ("CLUSTER cv", "42809 \"cv\" is not a table or materialized view"),
        ("CLUSTER (foo) c", "42601 unrecognized CLUSTER option \"foo\""),
        ("CLUSTER pg_database USING pg_database_oid_index", "0A000 cannot cluster a shared catalog"),
        ("ALTER TABLE c CLUSTER ON nope", "42704 index \"nope\" for table \"c\" does not exist"),
        ("ALTER TABLE c CLUSTER ON c_part", "0A000 cannot cluster on partial index \"c_part\""),
        ("ALTER TABLE c CLUSTER ON c2_x", "42809 \"c2_x\" is not an index for table \"c\""),
        ("BEGIN", ""),
        ("CLUSTER", "25001 CLUSTER cannot run inside a transaction block"),
        ("ROLLBACK", ""),
        ("BEGIN; DECLARE x CURSOR FOR SELECT * FROM c2; FETCH 1 FROM x", ""),
        ("CLUSTER c USING c_a", ""),
        (
            "CLUSTER c2 USING c2_x",
            "55006 cannot CLUSTER \"c2\" because it is being used by active queries in this session",
        ),
        ("ROLLBACK", ""),
        ("CLUSTER cm USING cm_a", ""),
        ("CLUSTER tt USING tt_pkey", ""),
        ("SELECT string_agg(a::text, ' ' ORDER BY ctid) FROM tt", "1 2"),
        ("ALTER TABLE c CLUSTER ON c_a", ""),
        ("REINDEX INDEX CONCURRENTLY c_a", ""),
        (
            "CLUSTER (VERBOSE) c",
            "INFO 00000 clustering \"public.c\" using sequential scan and sort\n\
             INFO 00000 \"public.c\": found 227 removable, 901 nonremovable row versions in 86 pages",
        ),
        ("ALTER TABLE c SET WITHOUT CLUSTER", ""),
        ("CLUSTER c", "42704 there is no previously clustered index for table \"c\""),
        ("ALTER TABLE c CLUSTER ON c_a", ""),
        ("CREATE ROLE someone", ""),
        ("SET ROLE someone", ""),
        ("CLUSTER c", "42501 permission denied for table c"),
        (
            "CLUSTER",
            "WARNING 01000 permission denied to cluster \"c\", skipping it\nWARNING 01000 permission denied to cluster \"cm\", skipping it\n\
             WARNING 01000 permission denied to cluster \"tt\", skipping it",
        ),
        ("ALTER TABLE c SET WITHOUT CLUSTER", "42501 must be owner of table c"),
        ("RESET ROLE; GRANT MAINTAIN ON c TO someone; SET ROLE someone", ""),
        ("CLUSTER c", ""),
    ]);
}

/// A unique index made where the same transaction has changed rows counts what is left.
#[test]
fn what_the_builder_deleted_is_no_duplicate() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE q (a int, b int); CREATE INDEX ON q (b); INSERT INTO q VALUES (1, 1)", ""),
        ("BEGIN; UPDATE q SET b = 2; INSERT INTO q VALUES (2, 2); DELETE FROM q WHERE a = 2; INSERT INTO q VALUES (2, 3)", ""),
        ("CREATE UNIQUE INDEX q_a ON q (a)", ""),
        ("COMMIT", ""),
        ("INSERT INTO q VALUES (1, 9) ON CONFLICT (a) DO NOTHING", ""),
        ("SELECT string_agg(a || ' ' || b, ',' ORDER BY a) FROM q", "1 2,2 3"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}
