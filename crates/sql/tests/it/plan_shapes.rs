//! Statements of tables that churn: which plan they get, and that any other gives the same rows.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE j (id int PRIMARY KEY, queue text, status text, at int, prio int, locked int, done bool NOT NULL)",
        "INSERT INTO j SELECT g, 'q' || g % 7, CASE WHEN g % 500 = 0 THEN 'pending' WHEN g % 500 = 1 THEN 'running' ELSE 'done' END,
             g / 3, g % 10, CASE WHEN g % 50 = 0 THEN g % 9 END, g % 400 <> 0 FROM generate_series(1, 8000) g",
        "CREATE INDEX j_pending ON j (prio DESC, id) WHERE status = 'pending'",
        "CREATE INDEX j_live ON j (id) WHERE status IN ('pending', 'running')",
        "CREATE INDEX j_open ON j (at) WHERE NOT done",
        "CREATE INDEX j_queue ON j (queue, status, at)",
        "CREATE INDEX j_at ON j (at)",
        "CREATE INDEX j_locked ON j (locked) WHERE locked IS NOT NULL",
        "CREATE TABLE l (id int PRIMARY KEY, account int, at int, amount int)",
        "INSERT INTO l SELECT g, g * 7919 % 2000, g, g % 100 FROM generate_series(1, 8000) g",
        "CREATE INDEX l_account ON l (account, at DESC)",
        "CREATE VIEW latest AS SELECT DISTINCT ON (account) * FROM l ORDER BY account, at DESC",
        "CREATE VIEW ranked AS SELECT *, row_number() OVER (PARTITION BY account ORDER BY at DESC) n FROM l",
        "VACUUM ANALYZE j, l",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const OTHERWISE: [&str; 7] = [
    "enable_indexscan",
    "enable_indexonlyscan",
    "enable_bitmapscan",
    "enable_seqscan",
    "enable_incremental_sort",
    "enable_sort",
    "enable_hashagg",
];

/// Each statement's plan contains what stands beside it, and gives the rows that it gives when it may not be used.
fn check(s: &mut Connection, cases: &[(&str, &str)]) {
    for (statement, part) in cases {
        let shape = plan(s, statement);
        assert!(shape.contains(part), "{statement}\n{shape}");
        let rows = s.run(statement);
        for off in OTHERWISE {
            s.run_each(&[&format!("SET {off} = off")]);
            assert_eq!(s.run(statement), rows, "{statement} without {off}");
            s.run_each(&[&format!("RESET {off}")]);
        }
        s.run_each(&[
            "SET enable_indexscan = off",
            "SET enable_indexonlyscan = off",
            "SET enable_bitmapscan = off",
        ]);
        assert_eq!(s.run(statement), rows, "{statement} without indexes");
        s.run_each(&[
            "RESET enable_indexscan",
            "RESET enable_indexonlyscan",
            "RESET enable_bitmapscan",
        ]);
    }
}

#[test]
fn partial_indexes_are_read_for_their_predicate() {
    let db = database();
    check(
        &mut db.session(),
        &[
            ("SELECT count(*) FROM j WHERE status = 'pending'", "Index Only Scan using j_"),
            ("SELECT id FROM j WHERE status = 'running' ORDER BY id", "Index Scan using j_live"),
            (
                "SELECT id FROM j WHERE queue = 'q3' AND (status = 'pending' OR status = 'running') ORDER BY id",
                "Index Scan using j_live on j Filter: (queue = 'q3'::text)",
            ),
            (
                "SELECT id FROM j WHERE status IN ('running', 'pending') ORDER BY id",
                "Index Only Scan using j_live",
            ),
            (
                "SELECT id FROM j WHERE (status = 'running' OR status = 'pending') ORDER BY id",
                "Index Only Scan using j_live",
            ),
            ("SELECT id FROM j WHERE done = false ORDER BY at, id", "j_open"),
            ("SELECT id FROM j WHERE done IS FALSE AND at < 1000 ORDER BY at, id", "j_open"),
            ("SELECT id FROM j WHERE true <> done AND at < 1000 ORDER BY at, id", "j_open"),
            ("SELECT count(*) FROM j WHERE done IS NOT NULL AND status <> 'pending'", "Seq Scan"),
            ("SELECT count(*) FROM j WHERE status IN ('running', 'done')", "Seq Scan"),
        ],
    );
}

#[test]
fn an_or_is_read_by_several_indexes() {
    let db = database();
    check(
        &mut db.session(),
        &[
            ("SELECT id FROM j WHERE id = 5 OR locked = 3 ORDER BY id", "Bitmap Heap Scan on j"),
            (
                "SELECT id FROM j WHERE id = 5 OR queue = 'q3' AND status = 'pending' AND at < 1500 ORDER BY id",
                "Bitmap Heap Scan on j",
            ),
            (
                "SELECT id FROM j WHERE queue = 'q3' AND (status = 'pending' OR status = 'waiting') ORDER BY id",
                "(status = ANY ('{pending,waiting}'::text[]))",
            ),
            (
                "SELECT id FROM j WHERE id = 5 OR id = 7 OR id = 7 ORDER BY id",
                "(id = ANY ('{5,7}'::integer[]))",
            ),
            (
                "SELECT x.id, y.id FROM l x JOIN j y ON y.id = x.amount OR y.at = x.account WHERE x.id < 5 ORDER BY 1, 2",
                "-> Bitmap Heap Scan on j y",
            ),
            (
                "SELECT x.id, y.id FROM l x LEFT JOIN j y ON y.id = x.amount AND y.done OR y.at = x.at AND y.prio > 3 WHERE x.id < 5 ORDER BY 1, 2",
                "-> Bitmap Heap Scan on j y",
            ),
            (
                "SELECT x.id FROM l x WHERE x.id < 9 AND NOT EXISTS (SELECT FROM j WHERE j.id = x.amount - 3 OR j.at = x.amount * 90) ORDER BY 1",
                "-> Bitmap Heap Scan on j",
            ),
        ],
    );
}

#[test]
fn what_is_partly_in_order_is_sorted_piece_by_piece() {
    let db = database();
    let mut s = db.session();
    check(
        &mut s,
        &[
            ("SELECT id, at FROM j ORDER BY at, id LIMIT 5", "Incremental Sort Sort Key: at, id Presorted Key: at"),
            ("SELECT id, at FROM j ORDER BY at DESC, id LIMIT 5 OFFSET 200", "Sort Key: at DESC, id Presorted Key: at ->"),
            ("SELECT id FROM j WHERE (at, id) > (2000, 6001) ORDER BY at, id LIMIT 5", "Presorted Key: at"),
            ("SELECT id FROM j WHERE queue = 'q3' ORDER BY status, at, id LIMIT 5", "Presorted Key: status, at"),
            ("SELECT at, prio, count(*) OVER (ORDER BY at, prio) FROM j ORDER BY at, prio, id LIMIT 5", "WindowAgg"),
            ("SELECT id FROM j ORDER BY at, -id LIMIT 7", "Presorted Key: at"),
            ("SELECT j.id, l.amount FROM j JOIN l ON l.id = j.id ORDER BY j.at, j.id LIMIT 5", "Presorted Key: j.at"),
            (
                "SELECT a, (SELECT string_agg(x.id::text, ',') FROM (SELECT id FROM l WHERE account = a ORDER BY at DESC, id LIMIT 2) x)
                 FROM generate_series(1, 5) a",
                "Presorted Key: l.at",
            ),
            ("SELECT id FROM j WHERE id = 5 ORDER BY id, at", "Index Scan using j_pkey"),
        ],
    );
    s.run_each(&["SET enable_incremental_sort = off"]);
    let without = plan(&mut s, "SELECT id, at FROM j ORDER BY at, id LIMIT 5");
    assert!(!without.contains("Incremental"), "{without}");
}

#[test]
fn groups_that_come_in_order_end_at_the_limit() {
    let db = database();
    let sorted = "Limit -> GroupAggregate Group Key: account";
    check(
        &mut db.session(),
        &[
            (
                "SELECT account, sum(amount) FROM l GROUP BY account ORDER BY account LIMIT 5",
                sorted,
            ),
            (
                "SELECT account, sum(amount) FROM l GROUP BY account ORDER BY account DESC LIMIT 5",
                sorted,
            ),
            (
                "SELECT account, at, count(*) FROM l GROUP BY at, account ORDER BY account, at DESC LIMIT 5",
                "Limit -> GroupAggregate",
            ),
            (
                "SELECT account, count(*) FROM l GROUP BY account HAVING count(*) > 4 ORDER BY account LIMIT 5",
                sorted,
            ),
            (
                "SELECT account, sum(amount) s FROM l GROUP BY account ORDER BY s, account LIMIT 5",
                "HashAggregate",
            ),
        ],
    );
}

#[test]
fn conditions_reach_into_views_with_windows_and_distinct_on() {
    let db = database();
    let through = "(account = 77)";
    check(
        &mut db.session(),
        &[
            ("SELECT * FROM latest WHERE account = 77", through),
            ("SELECT * FROM latest WHERE account = 77 AND amount > 50", through),
            ("SELECT * FROM ranked WHERE account = 77 AND n <= 2 ORDER BY n", through),
            // These decide over single rows: they stay above.
            ("SELECT count(*) FROM latest WHERE amount = 50", "Filter: (latest.amount = 50)"),
            ("SELECT count(*) FROM ranked WHERE amount = 50 AND n = 2", "ranked.amount = 50"),
            (
                "SELECT count(*) FROM ranked WHERE account = 77 AND at > 5000 AND n = 1",
                "ranked.at > 5000",
            ),
        ],
    );
}

#[test]
fn several_ends_of_indexes_are_looked_up_each() {
    let db = database();
    let both = "-> Limit -> Index Only Scan Backward using j_pkey";
    check(
        &mut db.session(),
        &[
            ("SELECT min(id), max(id) FROM j", both),
            ("SELECT max(id) - min(id) + 1, min(id)::text || 'x' FROM j WHERE id > 100", both),
            (
                "SELECT min(at), max(at) FROM j WHERE NOT done",
                "Index Only Scan Backward using j_open",
            ),
            ("SELECT min(locked), max(locked) FROM j WHERE id < 0", "Aggregate"),
            (
                "SELECT (SELECT max(at) - min(at) FROM l WHERE account = a) FROM generate_series(1, 4) a",
                "Limit -> Index Only Scan using l_account",
            ),
            ("SELECT min(prio), max(prio) FROM j", "Seq Scan"),
            ("SELECT min(id), max(id), count(*) FROM j", "Aggregate"),
        ],
    );
}

#[test]
fn a_row_is_compared_by_both_columns_of_an_index() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE k (id int PRIMARY KEY, kind int, n bigint, d int)",
        "INSERT INTO k SELECT g, g % 4, NULLIF(g % 500, 7), g % 30 FROM generate_series(1, 4000) g",
        "CREATE INDEX k_kind ON k (kind, n, id)",
        "CREATE INDEX k_down ON k (d DESC, n)",
        "VACUUM ANALYZE k",
    ]);
    let mut cases = Vec::new();
    for op in ["<", "<=", ">", ">="] {
        for (a, b) in [
            ("2", "490"),
            ("0", "0"),
            ("9", "5"),
            ("2", "NULL"),
            ("NULL", "3"),
            ("2", "99999999999"),
            ("99999999999", "1"),
        ] {
            for way in ["", " DESC"] {
                cases.push(format!("SELECT kind, n FROM k WHERE (kind, n) {op} ({a}, {b}) ORDER BY kind{way}, n{way} LIMIT 9"));
                cases.push(format!(
                    "SELECT d, n FROM k WHERE (d, n) {op} ({a}, {b}) ORDER BY d{way}, n LIMIT 9"
                ));
                cases.push(format!("SELECT kind, n, id FROM k WHERE kind = 3 AND (n, id) {op} ({a}, {b}) ORDER BY n{way}, id{way} LIMIT 9"));
                cases.push(format!("SELECT kind, n, id FROM k WHERE (n, id) {op} ({a}, {b}) ORDER BY kind{way}, n{way}, id{way} LIMIT 9"));
                cases.push(format!("SELECT kind, n FROM k WHERE kind IN (1, 3) AND (n, id) {op} ({a}, {b}) AND n < 495 ORDER BY n{way}, id LIMIT 9"));
            }
        }
    }
    let cases: Vec<(&str, &str)> = cases.iter().map(|c| (c.as_str(), "")).collect();
    for (statement, _) in &cases {
        let rows = s.run(statement);
        s.run_each(&[
            "SET enable_indexscan = off",
            "SET enable_indexonlyscan = off",
            "SET enable_bitmapscan = off",
        ]);
        assert_eq!(s.run(statement), rows, "{statement}");
        s.run_each(&[
            "RESET enable_indexscan",
            "RESET enable_indexonlyscan",
            "RESET enable_bitmapscan",
        ]);
    }
    // Only what is on the page is read.
    s.check(&[("SELECT pg_stat_force_next_flush() IS NULL", "f")]);
    let read = s.run("EXPLAIN (ANALYZE, COSTS off, TIMING off, BUFFERS off, SUMMARY off) SELECT id FROM k WHERE (kind, n) > (3, 490) ORDER BY kind, n LIMIT 3");
    assert!(!read.contains("Rows Removed"), "{read}");
}

#[test]
fn plans_go_by_parameters_values_where_these_tell_much() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "PREPARE queue AS SELECT id FROM j WHERE status = $1 ORDER BY prio DESC, id LIMIT 1",
        "PREPARE since AS SELECT count(*) FROM l WHERE at > $1 AND amount >= 0",
        "PREPARE name AS SELECT count(*) FROM j WHERE queue LIKE $1 AND id > 0",
        "PREPARE page AS SELECT id FROM j ORDER BY at, id LIMIT $1",
        "CREATE INDEX l_at ON l (at)",
    ]);
    let flat = |s: &mut Connection, call: &str| plan(s, call);
    for n in 0..9 {
        let pending = flat(&mut s, "EXECUTE queue('pending')");
        assert!(pending.contains("using j_pending"), "{n} {pending}");
        let late = flat(&mut s, "EXECUTE since(7990)");
        assert!(late.contains("using l_at") && late.contains("(at > 7990)"), "{n} {late}");
        s.check(&[
            ("EXECUTE queue('pending')", "500"),
            ("EXECUTE since(7990)", "10"),
            ("EXECUTE page(2)", "1\n2"),
        ]);
    }
    let done = flat(&mut s, "EXECUTE queue('done')");
    assert!(!done.contains("j_pending"), "{done}");
    s.run_each(&["SET plan_cache_mode = force_generic_plan"]);
    let any = flat(&mut s, "EXECUTE queue('pending')");
    assert!(any.contains("status = $1") && !any.contains("j_pending"), "{any}");
    s.check(&[("EXECUTE queue('pending')", "500"), ("EXECUTE name('q3')", "1143")]);
}

#[test]
fn a_look_up_by_a_unique_key_is_planned_once() {
    let db = database();
    let mut s = db.session();
    s.run_each(&["PREPARE one AS SELECT at FROM j WHERE id = $1", "EXECUTE one(1)"]);
    let before = s.session.plans_made();
    s.run_each(&["EXECUTE one(2)", "EXECUTE one(3)"]);
    assert_eq!(s.session.plans_made(), before);
}

#[test]
fn ranges_of_addresses_read_only_their_pages() {
    let db = database();
    let mut s = db.session();
    let range = "Tid Range Scan on l TID Cond: ((ctid >= '(3,0)'::tid) AND (ctid < '(5,0)'::tid))";
    check(
        &mut s,
        &[
            (
                "SELECT min(id), max(id), count(*) FROM l WHERE ctid >= '(3,0)' AND ctid < '(5,0)'",
                range,
            ),
            (
                "SELECT id FROM l WHERE '(2,5)' > ctid AND ctid > '(2,1)' AND id > 0 ORDER BY id",
                "Filter: (id > 0)",
            ),
            ("SELECT count(*) FROM l WHERE ctid <= '(0,7)'", "Tid Range Scan"),
            ("SELECT count(*) FROM l WHERE ctid < NULL::tid", ""),
            ("SELECT count(*) FROM l WHERE ctid > '(4000000000,1)'", "Tid Range Scan"),
            ("SELECT count(*) FROM l WHERE ctid > '(5,0)' AND ctid < '(3,0)'", "Tid Range Scan"),
        ],
    );
    for off in ["off", "on"] {
        s.run_each(&[&format!("SET enable_tidscan = {off}")]);
        s.check(&[
            ("SELECT count(*) FROM l WHERE ctid < '(2,1)'", "370"),
            ("SELECT count(*) FROM generate_series(1, 2) g, LATERAL (SELECT FROM l WHERE ctid < ('(' || g || ',1)')::tid OFFSET 0) x", "555"),
        ]);
    }
    s.check(&[
        ("WITH d AS (DELETE FROM l WHERE ctid >= '(1,0)' AND ctid < '(2,0)' RETURNING id) SELECT count(*) FROM d", "185"),
        ("SELECT count(*) FROM l WHERE ctid < '(2,1)'", "185"),
        ("UPDATE l SET amount = -1 WHERE ctid <= '(0,3)' RETURNING id", "1\n2\n3"),
    ]);
}

#[test]
fn windows_are_shown_as_postgresql_shows_them() {
    let db = database();
    let mut s = db.session();
    for (statement, line) in [
        (
            "SELECT row_number() OVER (PARTITION BY account ORDER BY at DESC) FROM l",
            "WindowAgg Window: w1 AS (PARTITION BY account ORDER BY at ROWS UNBOUNDED PRECEDING) ->",
        ),
        (
            "SELECT sum(id) OVER w, rank() OVER w FROM l WINDOW w AS (PARTITION BY account ORDER BY at, id DESC)",
            "WindowAgg Window: w AS (PARTITION BY account ORDER BY at, id) ->",
        ),
        (
            "SELECT ntile(3) OVER \"W x\" FROM l WINDOW \"W x\" AS (ORDER BY amount + 1), unused AS (PARTITION BY id)",
            "WindowAgg Window: \"W x\" AS (ORDER BY (amount + 1) ROWS UNBOUNDED PRECEDING) -> Sort",
        ),
        (
            "SELECT sum(id) OVER w1, count(*) OVER (ORDER BY amount) FROM l WINDOW w1 AS (PARTITION BY account)",
            "Window: w2 AS (ORDER BY amount)",
        ),
        (
            "SELECT * FROM (SELECT id, row_number() OVER w AS n FROM l WINDOW w AS (ORDER BY id)) t WHERE n < 3",
            "Run Condition: (row_number() OVER w < 3)",
        ),
        (
            "SELECT count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM l",
            "Window: w1 AS (ORDER BY id ROWS BETWEEN '1'::bigint PRECEDING AND CURRENT ROW EXCLUDE TIES)",
        ),
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(line), "{statement}\n{shape}");
    }
}

#[test]
fn a_grouped_sub_select_is_read_for_the_value_of_another() {
    let db = database();
    let grouped = "(SELECT account, count(*), sum(amount) FROM l GROUP BY account) g";
    let both = "(SELECT account, id FROM l UNION ALL SELECT prio, id FROM j) g";
    let cases = [
        format!("SELECT * FROM {grouped} WHERE account = (SELECT max(amount) FROM l WHERE id < 9)"),
        format!(
            "SELECT * FROM {grouped} WHERE account = ANY (ARRAY(SELECT amount FROM l WHERE id < 4)) ORDER BY 1"
        ),
        format!("SELECT * FROM {grouped} WHERE account = (SELECT amount FROM l WHERE id < 0)"),
        format!(
            "SELECT * FROM {both} WHERE account = (SELECT amount FROM l WHERE id = 7) ORDER BY 1, 2 LIMIT 9"
        ),
        format!(
            "SELECT x.id, (SELECT count FROM {grouped} WHERE account = (SELECT max(amount) FROM l WHERE id < 9)) FROM l x WHERE x.id < 4 ORDER BY 1"
        ),
    ];
    // As an index scan or, of several values, in the table's order.
    let cases: Vec<(&str, &str)> = cases.iter().map(|c| (c.as_str(), " l_account")).collect();
    check(&mut db.session(), &cases);
    // What looks at the row outside stays outside.
    let mut s = db.session();
    let statement = format!(
        "SELECT x.id, (SELECT count FROM {grouped} WHERE account = (SELECT max(y.amount) FROM l y WHERE y.id < x.id)) FROM l x WHERE x.id < 12 ORDER BY 1"
    );
    assert_eq!(
        s.run(&statement),
        s.run(&statement.replace(" g WHERE", " g, (SELECT 1 OFFSET 0) o WHERE"))
    );
}

/// An index-only scan is one of an index's scans, and forbidden with them.
#[test]
fn enable_indexscan_is_for_index_only_scans_too() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE i (a int PRIMARY KEY)",
        "INSERT INTO i SELECT generate_series(1, 10000)",
        "VACUUM ANALYZE i",
        "SET enable_indexscan = off",
    ]);
    s.check(&[
        (
            "EXPLAIN (COSTS off) SELECT a FROM i ORDER BY a LIMIT 3",
            "Limit\n  ->  Sort\n        Sort Key: a\n        ->  Seq Scan on i",
        ),
        ("EXPLAIN (COSTS off) SELECT max(a) FROM i", "Aggregate\n  ->  Seq Scan on i"),
        ("SET enable_bitmapscan = off", ""),
        ("EXPLAIN (COSTS off) SELECT a FROM i WHERE a = 5", "Seq Scan on i\n  Filter: (a = 5)"),
        ("SET enable_indexonlyscan = off; SET enable_indexscan = on", ""),
        (
            "EXPLAIN (COSTS off) SELECT a FROM i WHERE a = 5",
            "Index Scan using i_pkey on i\n  Index Cond: (a = 5)",
        ),
    ]);
}

/// What a condition says of a value is not what a predicate asks of it.
#[test]
fn partial_indexes_lack_rows_that_a_condition_wants() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE pair (p int, q text)",
        "CREATE TABLE h (k int, r pair)",
        "CREATE INDEX h_i ON h (k) WHERE r IS NOT NULL",
        "INSERT INTO h VALUES (1, ROW(1, NULL)::pair), (1, ROW(1, 'x')::pair), (2, ROW(3, NULL)::pair)",
        "CREATE TABLE t (k int, t text)",
        "CREATE INDEX t_i ON t (k) WHERE t = 'a'",
        "INSERT INTO t VALUES (1, 'a'), (1, 'a '), (1, 'b')",
        "SET enable_seqscan = off",
    ]);
    s.check(&[
        // A row is not NULL if none of its fields is.
        ("SELECT count(*) FROM h WHERE k = 1 AND r >= ROW(1, 'a')::pair", "2"),
        ("SELECT count(*) FROM h WHERE k = 2 AND r = ROW(3, NULL)::pair", "1"),
        // Blanks behind do not count.
        ("SELECT count(*) FROM t WHERE k = 1 AND t::bpchar = 'a'::bpchar", "2"),
    ]);
}

/// A day's rows that came at several times lie about the table, many on a page: neither all pages are worth reading, nor each row's by itself.
#[test]
fn what_lies_about_a_table_is_read_in_its_order() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE r (day int, key int, n int, PRIMARY KEY (day, key))",
        "INSERT INTO r SELECT d, g, g % 5 FROM generate_series(1, 30) d, generate_series(1, 300) g ORDER BY d % 7, d % 4, d",
        "INSERT INTO r SELECT g % 30 + 1, 1000 + g, g % 5 FROM generate_series(1, 9000) g ORDER BY g * 7919 % 31, g % 30",
        "CREATE INDEX r_n ON r (n)",
        "VACUUM ANALYZE r",
    ]);
    check(
        &mut s,
        &[
            ("SELECT sum(n), count(*) FROM r WHERE day = 7", "-> Bitmap Heap Scan on r"),
            ("SELECT sum(n) FROM r WHERE day = 7 AND n > 2", "Bitmap Heap Scan on r"),
            ("SELECT sum(n) FROM r WHERE day IN (3, 4)", "Bitmap Heap Scan on r"),
            ("SELECT sum(n) FROM r WHERE day = 7 AND key = 5", "Index Scan using r_pkey"),
            ("SELECT sum(key) FROM r WHERE n < 4", "Seq Scan"),
        ],
    );
    // Fewer addresses at once than there are.
    s.run_each(&["SET work_mem = 64", "SET enable_seqscan = off", "SET enable_indexscan = off"]);
    s.check(&[(
        "SELECT sum(day), sum(key), count(*) FROM r WHERE day > 0",
        "279000|50859000|18000",
    )]);
    s.run_each(&["DELETE FROM r WHERE day = 7"]);
    s.check(&[("SELECT count(*), count(*) FILTER (WHERE day = 7) FROM r", "17400|0")]);
}
