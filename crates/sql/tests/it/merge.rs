//! MERGE: which clause is for a row, and what becomes of one that somebody changes meanwhile.

use crate::support::{Connection, Database, waiting};

/// A target of three rows and a source that matches two of them, and has a third.
fn tables(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "DROP TABLE IF EXISTS t, s",
        "CREATE TABLE t (k int PRIMARY KEY, v int, w text)",
        "CREATE TABLE s (k int, v int)",
        "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')",
        "INSERT INTO s VALUES (1, 100), (2, 200), (4, 400)",
    ]);
    s
}

const ALL: &str = "SELECT string_agg(concat_ws(':', k, v, w), ' ' ORDER BY k) FROM t";

#[test]
fn each_row_goes_to_the_first_clause_that_is_for_it() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        (
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.v < 15 THEN UPDATE SET v = t.v + s.v \
             WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)",
            "",
        ),
        (ALL, "1:110:a 3:30:c 4:400"),
        (
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DO NOTHING \
             WHEN NOT MATCHED BY TARGET AND s.v > 200 THEN DO NOTHING \
             WHEN NOT MATCHED BY TARGET THEN INSERT (w, k) VALUES ('new', s.k) \
             WHEN NOT MATCHED BY SOURCE AND t.v = 31 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 31",
            "",
        ),
        (ALL, "1:110:a 2:new 3:31:c 4:400"),
        (
            "MERGE INTO t USING (SELECT k + 1 AS k FROM s) x ON t.k = x.k WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "",
        ),
        (ALL, "2:new 3:31:c"),
        ("MERGE INTO t USING s ON false WHEN NOT MATCHED AND s.k = 4 THEN INSERT DEFAULT VALUES",
         "23502 null value in column \"k\" of relation \"t\" violates not-null constraint\nFailing row contains (null, null, null)."),
    ]);
}

#[test]
fn returning_sees_source_old_and_new_row_and_the_action() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        (
            "WITH m AS (MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.k = 1 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET v = t.v + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) \
             WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = NULL \
             RETURNING merge_action() AS a, t.k, s.v AS sv, old, new, t.tableoid = 't'::regclass AS mine, \
             (SELECT lower(merge_action()))) SELECT * FROM m ORDER BY 2",
            "DELETE|1|100|(1,10,a)|~|t|delete\nUPDATE|2|200|(2,20,b)|(2,21,b)|t|update\n\
             UPDATE|3|~|(3,30,c)|(3,30,)|t|update\nINSERT|4|400|~|(4,400,)|t|insert",
        ),
        (
            "MERGE INTO t AS x USING s ON x.k = s.k AND s.k = 2 WHEN MATCHED THEN UPDATE SET v = 0 RETURNING *",
            "2|200|2|0|b",
        ),
        (
            "SELECT merge_action()",
            "42601 MERGE_ACTION() can only be used in the RETURNING list of a MERGE command",
        ),
        (
            "COPY (MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.k = 4 THEN DELETE RETURNING t.k) TO STDOUT",
            "4\\n",
        ),
    ]);
}

/// What the source gives is told from what it does not by its being there, not by its values.
#[test]
fn a_source_of_nulls_is_there() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        ("UPDATE t SET v = NULL WHERE k = 3", ""),
        (
            "MERGE INTO t USING (VALUES (NULL::int)) x (v) ON t.v IS NOT DISTINCT FROM x.v \
             WHEN MATCHED THEN UPDATE SET w = 'match' WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = 'none'",
            "",
        ),
        (ALL, "1:10:none 2:20:none 3:match"),
        (
            "MERGE INTO t USING generate_series(1, 1) g ON t.k = g WHEN NOT MATCHED THEN INSERT VALUES (9) \
             WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "",
        ),
        (ALL, "1:10:none"),
    ]);
}

#[test]
fn no_row_is_changed_twice() {
    let db = Database::new();
    let mut s = tables(&db);
    let twice = "21000 MERGE command cannot affect row a second time";
    s.check(&[
        ("MERGE INTO t USING s ON s.k < 4 AND t.k = 1 WHEN MATCHED THEN UPDATE SET v = s.v", twice),
        ("MERGE INTO t USING s ON s.k < 4 AND t.k = 1 WHEN MATCHED THEN DELETE", twice),
        (
            "WITH u AS (UPDATE t SET v = 0 RETURNING k) MERGE INTO t USING u ON t.k = u.k \
             WHEN MATCHED THEN UPDATE SET v = 1",
            twice,
        ),
        (
            "MERGE INTO t USING s ON s.k < 4 AND t.k = 1 WHEN MATCHED AND s.k = 1 THEN UPDATE SET v = 11 \
             WHEN MATCHED THEN DO NOTHING",
            "",
        ),
        (ALL, "1:11:a 2:20:b 3:30:c"),
    ]);
}

#[test]
fn generated_identity_and_default_columns_and_constraints() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE TABLE g (k int PRIMARY KEY, i int GENERATED ALWAYS AS IDENTITY, d text DEFAULT 'dd' CHECK (d <> 'bad'), \
         c int GENERATED ALWAYS AS (k * 2) STORED)",
        "CREATE TABLE r (k int REFERENCES g ON DELETE CASCADE)",
    ]);
    let merge = |rest: &str| format!("MERGE INTO g USING (SELECT 1 AS k) x ON g.k = x.k {rest}");
    let mut check = |rest: &str, want: &str| assert_eq!(s.run(&merge(rest)), want, "{rest}");
    check(
        "WHEN NOT MATCHED THEN INSERT VALUES (x.k, 5)",
        "428C9 cannot insert a non-DEFAULT value into column \"i\"\nColumn \"i\" is an identity column defined as GENERATED ALWAYS.",
    );
    check(
        "WHEN NOT MATCHED THEN INSERT VALUES (x.k, DEFAULT, DEFAULT, DEFAULT) RETURNING g.*",
        "1|1|dd|2",
    );
    check("WHEN MATCHED THEN DELETE RETURNING g.*", "1|1|dd|2");
    check(
        "WHEN NOT MATCHED THEN INSERT (k, i) OVERRIDING SYSTEM VALUE VALUES (x.k, 7) RETURNING g.*",
        "1|7|dd|2",
    );
    check(
        "WHEN MATCHED THEN UPDATE SET k = 3, d = DEFAULT, c = DEFAULT RETURNING new.*",
        "3|7|dd|6",
    );
    check(
        "WHEN NOT MATCHED THEN INSERT (k, i) OVERRIDING USER VALUE VALUES (x.k, 7) RETURNING i",
        "2",
    );
    check(
        "WHEN MATCHED THEN UPDATE SET d = 'bad'",
        "23514 new row for relation \"g\" violates check constraint \"g_d_check\"\nFailing row contains (1, 2, bad, 2).",
    );
    check(
        "WHEN MATCHED THEN UPDATE SET c = 1",
        "428C9 column \"c\" can only be updated to DEFAULT\nColumn \"c\" is a generated column.",
    );
    check(
        "WHEN MATCHED THEN UPDATE SET k = 3",
        "23505 duplicate key value violates unique constraint \"g_pkey\"\nKey (k)=(3) already exists.",
    );
    s.check(&[
        ("MERGE INTO r USING (VALUES (3), (4)) x (k) ON false WHEN NOT MATCHED THEN INSERT VALUES (x.k)",
         "23503 insert or update on table \"r\" violates foreign key constraint \"r_k_fkey\"\nKey (k)=(4) is not present in table \"g\"."),
        ("MERGE INTO r USING (VALUES (3), (1)) x (k) ON false WHEN NOT MATCHED THEN INSERT VALUES (x.k)", ""),
        ("MERGE INTO g USING (VALUES (3)) x (k) ON g.k = x.k WHEN MATCHED THEN DELETE", ""),
        ("SELECT * FROM r", "1"),
    ]);
}

#[test]
fn what_is_not_a_merge() {
    let db = Database::new();
    let mut s = tables(&db);
    let hidden = |t: &str| {
        format!(
            "42P01 invalid reference to FROM-clause entry for table \"{t}\"\nThere is an entry for table \"{t}\", but it cannot \
             be referenced from this part of the query."
        )
    };
    let (no_t, no_s) = (hidden("t"), hidden("s"));
    let matched = |rest: &str| format!("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED {rest}");
    for (rest, want) in [
        ("THEN DO NOTHING WHEN NOT MATCHED AND t.v = 1 THEN DO NOTHING", no_t.as_str()),
        ("THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (t.k)", &no_t),
        ("THEN DO NOTHING WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v", &no_s),
        (
            "THEN DELETE WHEN NOT MATCHED AND w = 'a' THEN DO NOTHING",
            "42703 column \"w\" does not exist\nThere is a column named \"w\" in table \"t\", but it cannot be referenced from this part of the query.",
        ),
        (
            "THEN DELETE WHEN MATCHED THEN DO NOTHING",
            "42601 unreachable WHEN clause specified after unconditional WHEN clause",
        ),
        (
            "AND t.xmin IS NULL THEN DELETE",
            "42P10 cannot use system column \"xmin\" in MERGE WHEN condition",
        ),
        (
            "AND count(*) > 1 THEN DELETE",
            "42803 aggregate functions are not allowed in MERGE WHEN conditions",
        ),
        ("AND 1 THEN DELETE", "42804 argument of WHEN must be type boolean, not type integer"),
        ("THEN INSERT VALUES (1)", "42601 syntax error at or near \"INSERT\""),
        ("THEN DELETE WHEN NOT MATCHED THEN DELETE", "42601 syntax error at or near \"DELETE\""),
        (
            "THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1, 2, 3, 4)",
            "42601 INSERT has more expressions than target columns",
        ),
    ] {
        assert_eq!(s.run(&matched(rest)), want, "{rest}");
    }
    let same = "42712 name \"t\" specified more than once\nThe name is used both as MERGE target table and data source.";
    s.check(&[
        ("MERGE INTO t USING s t ON true WHEN MATCHED THEN DELETE", same),
        ("MERGE INTO t USING (SELECT t.k) x ON true WHEN MATCHED THEN DELETE", &no_t),
        ("WITH RECURSIVE x AS (SELECT 1) MERGE INTO t USING x ON true WHEN MATCHED THEN DELETE",
         "42601 WITH RECURSIVE is not supported for MERGE statement"),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1", ""),
        ("MERGE INTO m USING s ON true WHEN MATCHED THEN DELETE",
         "0A000 cannot execute MERGE on relation \"m\"\nThis operation is not supported for materialized views."),
        ("BEGIN READ ONLY; MERGE INTO t USING s ON true WHEN MATCHED THEN DO NOTHING; \
          MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
         "25006 cannot execute MERGE in a read-only transaction"),
        ("ROLLBACK", ""),
        (ALL, "1:10:a 2:20:b 3:30:c"),
    ]);
}

#[test]
fn a_clause_asks_for_its_privilege() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE ROLE r",
        "GRANT SELECT, UPDATE ON t TO r",
        "GRANT SELECT ON s TO r",
        "SET ROLE r",
    ]);
    let merge = |then: &str| format!("MERGE INTO t USING s ON t.k = s.k WHEN {then}");
    assert_eq!(s.run(&merge("MATCHED THEN UPDATE SET v = 0")), "");
    assert_eq!(s.run(&merge("MATCHED THEN DO NOTHING")), "");
    for then in ["MATCHED THEN DELETE", "NOT MATCHED THEN INSERT DEFAULT VALUES"] {
        assert_eq!(s.run(&merge(then)), "42501 permission denied for table t");
    }
}

#[test]
fn prepared_and_explained() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        (
            "PREPARE p (int, int) AS MERGE INTO t USING (SELECT $1 AS k, $2 AS v) x ON t.k = x.k \
             WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT VALUES (x.k, x.v) RETURNING merge_action()",
            "",
        ),
        ("EXECUTE p (1, 5)", "UPDATE"),
        ("EXECUTE p (9, 5)", "INSERT"),
        ("EXECUTE p (9, 6)", "UPDATE"),
        (ALL, "1:5:a 2:20:b 3:30:c 9:6"),
        (
            "EXPLAIN (COSTS OFF) MERGE INTO t AS x USING s ON x.k = s.k WHEN MATCHED THEN DELETE",
            "Merge on t x\n  ->  Hash Join\n        Hash Cond: (s.k = x.k)\n        ->  Seq Scan on s\n        ->  Hash\n              ->  Seq Scan on t x",
        ),
    ]);
    let verbose = s.run(
        "EXPLAIN (VERBOSE, COSTS OFF) MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DELETE RETURNING merge_action(), s.k",
    );
    assert!(verbose.contains("\n  Output: MERGE_ACTION(), s.k\n"), "{verbose}");
    let told = s.run(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) MERGE INTO t USING (VALUES (1), (7), (8)) x (k) \
         ON t.k = x.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x.k) \
         WHEN NOT MATCHED BY SOURCE AND t.k = 2 THEN UPDATE SET v = 0",
    );
    assert!(told.contains("\n  Tuples: inserted=2 updated=1 deleted=1 skipped=2\n"), "{told}");
}

/// The row that somebody has updated goes through the clauses from the first on, as it is now.
#[test]
fn a_newer_version_is_asked_for_all_conditions() {
    const MERGE: &str = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.v < 15 THEN UPDATE SET v = t.v + s.v \
        WHEN MATCHED AND t.v < 1000 THEN UPDATE SET w = 'second' WHEN MATCHED THEN DELETE RETURNING merge_action(), t.*, old";
    let db = Database::new();
    let second = "UPDATE|2|20|second|(2,20,b)";
    for (holds, want) in [
        ("UPDATE t SET v = v + 1 WHERE k = 1", "UPDATE|1|111|a|(1,11,a)"),
        ("UPDATE t SET v = 500 WHERE k = 1", "UPDATE|1|500|second|(1,500,a)"),
        ("UPDATE t SET v = 2000 WHERE k = 1", "DELETE|1|2000|a|(1,2000,a)"),
        ("SELECT FROM t WHERE k = 1 FOR UPDATE", "UPDATE|1|110|a|(1,10,a)"),
    ] {
        let mut s = tables(&db);
        s.run_each(&["ANALYZE t", "ANALYZE s"]);
        assert_eq!(waiting(&db, holds, MERGE), format!("{want}\n{second}"), "{holds}");
    }
    // Only of the versions that are there: what takes no row keeps it as it is, and waits for nobody.
    let mut s = tables(&db);
    assert_eq!(
        waiting(
            &db,
            "UPDATE t SET v = 10000 WHERE k = 1",
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.v < 15 THEN DELETE"
        ),
        ""
    );
    s.check(&[(ALL, "1:10000:a 2:20:b 3:30:c")]);
}

/// A row that somebody has moved away from the source's, or deleted, does not match any more: its two sides are rows of their own.
#[test]
fn a_row_that_no_longer_matches_is_two() {
    const INSERTS: &str = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'new')";
    const ALONE: &str = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = 'alone'";
    const BOTH: &str = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'new') \
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = 'alone'";
    const CONDITION: &str = "MERGE INTO t USING s ON t.k = s.k AND t.v < 15 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k + 10, s.v, 'new')";
    let db = Database::new();
    let moved = "UPDATE t SET k = 11 WHERE k = 1";
    let deleted = "DELETE FROM t WHERE k = 1";
    for (holds, merge, want) in [
        (moved, INSERTS, "1:100:new 2:200:b 3:30:c 4:400:new 11:10:a"),
        (deleted, INSERTS, "1:100:new 2:200:b 3:30:c 4:400:new"),
        (moved, ALONE, "2:200:b 3:30:alone 11:10:alone"),
        (deleted, ALONE, "2:200:b 3:30:alone"),
        (moved, BOTH, "1:100:new 2:200:b 3:30:alone 4:400:new 11:10:alone"),
        (deleted, BOTH, "1:100:new 2:200:b 3:30:alone 4:400:new"),
        (
            "UPDATE t SET v = 16 WHERE k = 1",
            CONDITION,
            "1:16:a 2:20:b 3:30:c 11:100:new 12:200:new 14:400:new",
        ),
        ("UPDATE t SET v = 14 WHERE k = 1", CONDITION, "2:20:b 3:30:c 12:200:new 14:400:new"),
        // A row without a match stays one.
        ("UPDATE t SET k = 6, v = 31 WHERE k = 3", ALONE, "1:100:a 2:200:b 6:31:alone"),
        // Deleted, it is none: there is no source that would have no match.
        ("DELETE FROM t WHERE k = 3", BOTH, "1:100:a 2:200:b 4:400:new"),
    ] {
        let mut s = tables(&db);
        assert_eq!(waiting(&db, holds, merge), "", "{holds}; {merge}");
        s.check(&[(ALL, want)]);
    }
}

/// The sub-select of a condition is asked of the newer version too, and one row is met by two of the source.
#[test]
fn sub_selects_and_second_times_after_a_wait() {
    let db = Database::new();
    let mut s = tables(&db);
    let merge = "MERGE INTO t USING s ON t.k = s.k AND EXISTS (SELECT FROM s x WHERE x.v = t.v * 10) \
        WHEN MATCHED THEN UPDATE SET w = 'met' WHEN NOT MATCHED THEN INSERT VALUES (s.k + 10, s.v, 'new')";
    assert_eq!(waiting(&db, "UPDATE t SET v = 11 WHERE k = 1", merge), "");
    s.check(&[(ALL, "1:11:a 2:20:met 3:30:c 11:100:new 14:400:new")]);
    let mut s = tables(&db);
    let merge = "MERGE INTO t USING (SELECT k FROM s UNION ALL SELECT 7) x ON t.k = x.k WHEN MATCHED THEN DELETE \
        WHEN NOT MATCHED THEN INSERT VALUES (x.k, 0, 'new')";
    assert_eq!(waiting(&db, "UPDATE t SET v = 11", merge), "");
    s.check(&[(ALL, "3:11:c 4:0:new 7:0:new")]);
    let _ = tables(&db);
    let merge = "MERGE INTO t USING (VALUES (1), (1)) x (k) ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = t.v + 1";
    let twice = "21000 MERGE command cannot affect row a second time";
    assert_eq!(waiting(&db, "UPDATE t SET v = 11 WHERE k = 1", merge), twice);
    let _ = tables(&db);
    let inserts =
        "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)";
    assert_eq!(
        waiting(&db, "INSERT INTO t VALUES (4)", inserts),
        "23505 duplicate key value violates unique constraint \"t_pkey\"\nKey (k)=(4) already exists."
    );
}

#[test]
fn repeatable_read_does_not_follow() {
    const MERGE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT; \
        MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)";
    let db = Database::new();
    for (holds, what) in
        [("UPDATE t SET w = 'x' WHERE k = 1", "update"), ("DELETE FROM t WHERE k = 1", "delete")]
    {
        let _ = tables(&db);
        let want = format!("40001 could not serialize access due to concurrent {what}");
        assert_eq!(waiting(&db, holds, MERGE).trim(), want);
    }
}
