//! How EXPLAIN names tables, columns and what sub-plans are given.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE SCHEMA s",
        "CREATE TABLE s.a (id int PRIMARY KEY, k int, t text)",
        "CREATE TABLE b (id int PRIMARY KEY, k int, t text)",
        "INSERT INTO s.a SELECT g, g * 31 % 700, 'a' || g % 9 FROM generate_series(1, 3000) g",
        "INSERT INTO b SELECT g, g * 7 % 900, 'b' || g % 9 FROM generate_series(1, 3000) g",
        "CREATE INDEX a_k ON s.a (k)",
        "CREATE INDEX a_t ON s.a (t)",
        "CREATE INDEX b_k ON b (k)",
        "ANALYZE s.a, b",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn session(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "SET search_path = s, public",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
        "SET enable_memoize = off",
    ]);
    s
}

#[test]
fn a_scan_does_not_say_whose_its_columns_are() {
    let db = database();
    let mut s = session(&db);
    let shapes = [
        (
            "SELECT a.t, b.t FROM a JOIN b ON b.id = a.k WHERE a.id < 5 AND a.t > 'a'",
            "Index Scan using a_pkey on a Index Cond: (id < 5) Filter: (t > 'a'::text)",
        ),
        // The index's column stands on the left however the condition was written.
        ("SELECT a.t, b.t FROM a JOIN b ON a.k = b.id WHERE a.id < 5", "Index Cond: (id = a.k)"),
        (
            "SELECT a.t, b.t FROM a LEFT JOIN b ON a.k < b.id WHERE a.id < 5",
            "Index Cond: (id > a.k)",
        ),
        (
            "SELECT 1 FROM a x, a y WHERE x.id = 3 AND x.k + y.k = 700",
            "Join Filter: ((x.k + y.k) = 700)",
        ),
        (
            "WITH w AS MATERIALIZED (SELECT id FROM a WHERE id < 9) SELECT 1 FROM w, b WHERE w.id > 3 AND b.id = w.id",
            "CTE Scan on w Filter: (id > 3)",
        ),
        (
            "SELECT 1 FROM generate_series(1, 9) g (n), b WHERE n > 3 AND b.id = n",
            "Filter: (n > 3)",
        ),
        ("SELECT id FROM a ORDER BY k + 1 DESC", "Sort Key: ((k + 1)) DESC"),
        ("SELECT k FROM a GROUP BY k ORDER BY count(*), k", "Sort Key: (count(*)), k"),
        (
            "SELECT * FROM a WHERE k = 5 OR t = 'a7'",
            "Recheck Cond: ((k = 5) OR (t = 'a7'::text)) -> BitmapOr -> Bitmap Index Scan on a_k Index Cond: (k = 5) -> Bitmap Index Scan on a_t Index Cond: (t = 'a7'::text)",
        ),
    ];
    for (statement, has) in shapes {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(has), "{statement}\n{shape}");
    }
}

#[test]
fn verbose_says_all() {
    let db = database();
    let mut s = session(&db);
    let text =
        s.run("EXPLAIN (VERBOSE, COSTS off) SELECT k FROM a x WHERE id = 3 AND k > 2 ORDER BY k");
    for has in ["on s.a x\n", "Index Cond: (x.id = 3)", "Filter: (x.k > 2)", "Sort Key: x.k"] {
        assert!(text.contains(has), "{has}\n{text}");
    }
}

#[test]
fn parameters_are_what_they_are_given() {
    let db = database();
    let mut s = session(&db);
    let shapes = [
        ("SELECT (SELECT max(t) FROM b WHERE b.k = a.k) FROM a WHERE id < 5", "(k = a.k)"),
        // The same name further out is another's.
        ("SELECT (SELECT max(t) FROM a WHERE a.k = o.id) FROM a o WHERE id < 5", "(k = o.id)"),
        (
            "SELECT (SELECT max(t) FROM a i WHERE i.k = a.id + 1) FROM a WHERE id < 5",
            "(k = (a.id + 1))",
        ),
        (
            "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.k = a.id LIMIT 2) l WHERE a.id < 5",
            "Index Cond: (k = a.id)",
        ),
    ];
    for (statement, has) in shapes {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(has) && !shape.contains('$'), "{statement}\n{shape}");
    }
}

#[test]
fn what_is_always_true_is_not_asked() {
    let db = database();
    let mut s = session(&db);
    for join in [
        "JOIN b ON true",
        "LEFT JOIN b ON true",
        "CROSS JOIN LATERAL (SELECT * FROM b WHERE b.k = a.k LIMIT 1) l",
    ] {
        let statement = format!("SELECT * FROM a {join} WHERE a.id < 5");
        let shape = plan(&mut s, &statement);
        assert!(!shape.contains("true"), "{statement}\n{shape}");
    }
    s.check(&[
        ("SELECT count(*), count(b.id) FROM a LEFT JOIN b ON true WHERE a.id < 5", "12000|12000"),
        ("SELECT count(*), count(b.id) FROM a LEFT JOIN (SELECT * FROM b WHERE id < 0) b ON true WHERE a.id < 5", "4|0"),
        ("SELECT count(*) FROM a FULL JOIN b ON true WHERE a.id < 5 OR b.id < 5", "23984"),
    ]);
}

/// What is asked again of rows that several indexes lead to is not told twice.
#[test]
fn what_an_or_asks_again_is_no_filter() {
    let db = database();
    let mut s = session(&db);
    let shape = plan(&mut s, "SELECT * FROM a WHERE (k = 5 OR t = 'a7') AND id > 10");
    assert!(shape.contains("Filter: (id > 10) ->"), "{shape}");
}

/// As in PostgreSQL the first keeps its name, others get numbers.
#[test]
fn a_table_that_is_read_twice_goes_by_two_names() {
    let db = database();
    let mut s = session(&db);
    let shapes = [
        ("SELECT * FROM a WHERE id = 1 UNION ALL SELECT * FROM a WHERE id = 2", "a_pkey on a a_1"),
        (
            "WITH w AS MATERIALIZED (SELECT * FROM a WHERE id = 3) SELECT * FROM w, a WHERE a.id = w.k",
            "a_pkey on a a_1 Index Cond: (id = 3)",
        ),
        (
            "SELECT * FROM a AS a_1, a, (SELECT * FROM a WHERE id = 5 OFFSET 0) s WHERE a.id = a_1.id AND a.id = 3",
            "on a a_2",
        ),
        (
            "INSERT INTO b SELECT * FROM b WHERE id = 3",
            "Insert on b -> Index Scan using b_pkey on b b_1",
        ),
        ("SELECT (SELECT max(a.t) FROM a WHERE a.k = 1 OFFSET 0) FROM a WHERE id = 1", "on a a_1"),
        ("SELECT * FROM (VALUES (1), (2)) v (a), (VALUES (3), (4)) w (a)", "\"*VALUES*_1\""),
    ];
    for (statement, has) in shapes {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(has), "{statement}\n{shape}");
    }
    s.run_each(&["CREATE VIEW v AS SELECT * FROM a WHERE k = 3"]);
    let shape = plan(&mut s, "SELECT * FROM v, a WHERE v.id = a.id");
    assert!(shape.contains("a_1") && !shape.contains("(id = id)"), "{shape}");
}

#[test]
fn what_is_written_to_is_named_with_its_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE k (a int PRIMARY KEY, b int)"]);
    let first = |plan: String| plan.lines().next().unwrap_or_default().to_owned();
    for (sql, title) in [
        ("UPDATE k SET b = 1", "Update on public.k"),
        ("DELETE FROM k AS x", "Delete on public.k x"),
        ("INSERT INTO k VALUES (1, 2)", "Insert on public.k"),
    ] {
        let plan = s.run(&format!("EXPLAIN (VERBOSE, COSTS OFF) {sql}"));
        assert_eq!(first(plan), title);
    }
    s.check(&[(
        "EXPLAIN (COSTS OFF) INSERT INTO k VALUES (1, 2) ON CONFLICT (a) DO NOTHING",
        "Insert on k\n  Conflict Resolution: NOTHING\n  Conflict Arbiter Indexes: k_pkey\n  ->  Result",
    )]);
}
