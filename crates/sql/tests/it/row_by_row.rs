//! What PostgreSQL does row by row: nobody can tell that rows come in batches.

use crate::support::Database;

#[test]
fn a_row_is_written_before_the_next_one_is_made() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SEQUENCE s",
        "CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY, v int UNIQUE, n int CHECK (n > 0))",
        "CREATE TABLE sizes (a bigint, b text)",
        "CREATE TABLE plain (a int)",
    ]);
    let twice = "23505 duplicate key value violates unique constraint \"t_v_key\"\nKey (v)=(1) already exists.";
    s.check(&[
        // The third row's number is not taken.
        ("INSERT INTO t (v) VALUES (1), (1), (2)", twice),
        ("INSERT INTO t (v) VALUES (3) RETURNING i", "3"),
        (
            "INSERT INTO t (v, n) SELECT 10 + g, 3 - g FROM generate_series(1, 100) g",
            "23514 new row for relation \"t\" violates check constraint \"t_n_check\"\nFailing row contains (6, 13, 0).",
        ),
        ("INSERT INTO t (v) VALUES (4) RETURNING i", "7"),
        // A row sees the pages that those before it have filled.
        (
            "INSERT INTO sizes SELECT pg_relation_size('sizes'), repeat('x', 1000) FROM generate_series(1, 3)",
            "",
        ),
        ("SELECT a FROM sizes ORDER BY a", "0\n8192\n8192"),
        // RETURNING and DO UPDATE take their numbers in between.
        (
            "INSERT INTO plain SELECT nextval('s') FROM generate_series(1, 3) RETURNING a, nextval('s')",
            "1|2\n3|4\n5|6",
        ),
        ("DELETE FROM t", ""),
        ("INSERT INTO t (v, n) VALUES (1, 1), (2, 2)", ""),
        (
            "INSERT INTO t (v, n) SELECT g, nextval('s') FROM generate_series(1, 3) g \
             ON CONFLICT (v) DO UPDATE SET n = nextval('s') RETURNING v, n",
            "1|8\n2|10\n3|11",
        ),
    ]);
}

#[test]
fn nodes_that_count_take_turns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SEQUENCE s",
        "CREATE TABLE t (a int)",
        "INSERT INTO t SELECT generate_series(1, 3)",
    ]);
    s.check(&[
        ("SELECT nextval('s') FROM t WHERE nextval('s') > 0", "2\n4\n6"),
        (
            "SELECT nextval('s'), x FROM (SELECT nextval('s') AS x FROM t OFFSET 0) q",
            "8|7\n10|9\n12|11",
        ),
        (
            "WITH w AS (SELECT nextval('s') AS x FROM t) SELECT x, nextval('s') FROM w",
            "13|14\n15|16\n17|18",
        ),
    ]);
}
