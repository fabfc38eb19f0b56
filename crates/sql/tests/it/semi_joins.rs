//! `IN` and `EXISTS` over a large table: led by the sub-select's distinct values through an index or
//! by address, and the same rows as by any other plan.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, p text)",
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g",
        "CREATE TABLE u (id int, k int)",
        "INSERT INTO u SELECT g, g % 7 FROM generate_series(1, 20) g",
        "VACUUM ANALYZE t, u",
    ]);
    db
}

/// The plan's lines, without the spaces before them.
fn plan(s: &mut Connection, statement: &str) -> String {
    s.run(&format!("EXPLAIN (COSTS off) {statement}"))
}

#[test]
fn a_queue_takes_its_oldest_through_the_index() {
    let db = database();
    let mut s = db.session();
    for (column, scan) in [
        ("id", "Index Scan using t_pkey on t\n        Index Cond: (id = \"ANY_subquery\".id)"),
        ("ctid", "Tid Scan on t\n        TID Cond: (ctid = \"ANY_subquery\".ctid)"),
    ] {
        let take = format!(
            "DELETE FROM t WHERE {column} IN (SELECT {column} FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED)"
        );
        let plan = plan(&mut s, &take);
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat(&plan).contains(&flat(scan)), "{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
    s.check(&[
        ("DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING id", "1\n2"),
        ("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING id", "3\n4"),
        ("UPDATE t SET p = 'y' WHERE ctid = ANY (ARRAY(SELECT ctid FROM t ORDER BY id LIMIT 2)) RETURNING id", "5\n6"),
    ]);
}

#[test]
fn every_plan_gives_the_same_rows() {
    let db = database();
    let mut s = db.session();
    let conditions = [
        "t.id IN (SELECT id FROM u UNION ALL SELECT id FROM u)",
        "t.id IN (SELECT 400 + 5 * g FROM generate_series(1, 3) g)",
        "t.id IN (SELECT (400 + 5 * g)::bigint FROM generate_series(1, 3) g)",
        "(t.id, t.id + 1) IN (SELECT 400 + 5 * g, 401 + 5 * g FROM generate_series(1, 3) g)",
        "(t.id, t.id + 1) IN (SELECT id, id + k FROM u)",
        "(t.id, t.ctid) IN (SELECT id, ctid FROM t ORDER BY id LIMIT 12)",
        "EXISTS (SELECT FROM u WHERE u.id = t.id + u.k)",
        "EXISTS (SELECT FROM u WHERE u.id = t.id AND u.k > 3)",
        "EXISTS (SELECT FROM u WHERE u.id = t.id AND u.k < t.id)",
        "EXISTS (SELECT FROM u a JOIN u b USING (k) WHERE a.id = t.id AND b.id > 15)",
        "NOT EXISTS (SELECT FROM u WHERE u.id = t.id) AND t.id < 30",
        "t.id IN (SELECT id FROM u) AND t.id IN (SELECT k FROM u)",
        "t.ctid IN (SELECT t2.ctid FROM t t2 JOIN u ON u.id = t2.id WHERE u.k = 2)",
    ];
    let counted = "SELECT count(*), sum(t.id), min(t.id), max(t.id) FROM";
    for condition in conditions {
        for query in [
            format!("{counted} t WHERE {condition}"),
            format!("{counted} t JOIN u o ON o.id = t.id WHERE {condition}"),
            format!("{counted} u o LEFT JOIN t ON o.k = t.id WHERE {condition}"),
        ] {
            let mut seen = Vec::new();
            for off in [
                "enable_seqscan",
                "enable_hashjoin",
                "enable_nestloop",
                "enable_mergejoin",
                "enable_indexscan",
            ] {
                s.run_each(&["RESET ALL", &format!("SET {off} = off")]);
                seen.push((off, s.run(&query)));
            }
            s.run_each(&["RESET ALL", "SET enable_hashjoin = off", "SET enable_mergejoin = off"]);
            let first = s.run(&query);
            for (off, rows) in seen {
                assert_eq!(rows, first, "{query} without {off}\n{}", plan(&mut s, &query));
            }
        }
    }
}

/// A sub-select in the condition of a join below EXISTS looks at the query around: that is not the semi join's to ask.
#[test]
fn a_join_below_exists_has_a_sub_select_that_looks_out() {
    let db = Database::new();
    let mut s = db.session();
    s.make_joined();
    s.run_each(&["INSERT INTO t VALUES (4, 3)", "INSERT INTO w VALUES (1, 1), (2, 9)"]);
    for (exists, want) in [
        (
            "EXISTS (SELECT 1 FROM t LEFT JOIN u ON EXISTS (SELECT 1 FROM w WHERE w.z = v.y AND w.id = u.k) WHERE t.x = v.y AND u.k IS NULL)",
            "2\n3",
        ),
        (
            "NOT EXISTS (SELECT 1 FROM t LEFT JOIN u ON u.t_id = t.id AND v.y IN (SELECT w.z FROM w WHERE w.id = v.id) WHERE t.x = v.y AND u.k IS NOT NULL)",
            "2\n3",
        ),
        (
            "NOT EXISTS (SELECT 1 FROM t JOIN u ON u.t_id = t.id AND EXISTS (SELECT 1 FROM w WHERE w.z = v.y) WHERE t.x = v.y)",
            "2\n3",
        ),
        (
            "NOT EXISTS (SELECT 1 FROM t JOIN u ON u.t_id = t.id AND (SELECT w.id FROM w WHERE w.z = v.y) = 1 WHERE t.x = v.y)",
            "2\n3",
        ),
        (
            "EXISTS (SELECT 1 FROM t JOIN u ON u.t_id = t.id AND EXISTS (SELECT 1 FROM w WHERE w.z = v.y) WHERE t.x = v.y)",
            "1",
        ),
    ] {
        let query = format!("SELECT id FROM v WHERE {exists} ORDER BY 1");
        assert_eq!(s.run(&query), want, "{query}");
    }
}

/// Few rows are asked for one in many that has none of an index: the few are hashed, each is given once, and reading ends when all have been.
#[test]
fn the_smaller_side_is_hashed_whichever_is_asked_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE few (id int, k int, tag text)",
        "INSERT INTO few SELECT g, nullif(g % 390, 7), 'f' || g || repeat('.', 600) FROM generate_series(1, 400) g",
        "CREATE TABLE many (k bigint, w int)",
        // Each key of the first thirty 200 times, NULLs between them; some keys of nobody.
        "INSERT INTO many SELECT CASE WHEN g % 31 = 0 THEN NULL ELSE g % 30 END, g FROM generate_series(1, 6000) g",
        "INSERT INTO many SELECT g, 0 FROM generate_series(1000, 7000) g",
        "VACUUM ANALYZE few, many",
    ]);
    let asked = [
        "k IN (SELECT k FROM many)",
        "EXISTS (SELECT FROM many m WHERE m.k = few.k)",
        "EXISTS (SELECT FROM many m WHERE m.k = few.k AND m.w > few.id)",
        "EXISTS (SELECT FROM many m WHERE m.k = few.k AND m.w < few.id - 300)",
        "EXISTS (SELECT FROM many m WHERE m.k = few.k AND m.w = 0)",
        "id < 100 AND left(tag, 2) || 'x' IN (SELECT 'f' || m.k || 'x' FROM many m)",
    ];
    // In parts on disk, and in memory.
    for memory in ["64kB", "64MB"] {
        for condition in asked {
            let query = format!(
                "SELECT count(*), count(DISTINCT id), sum(id), min(tag), max(k) FROM few WHERE {condition}"
            );
            s.run_each(&["RESET ALL", "SET enable_hashjoin = off"]);
            let want = s.run(&query);
            let limit = format!("SET work_mem = '{memory}'");
            s.run_each(&["RESET ALL", &limit]);
            let plan = plan(&mut s, &query);
            assert!(memory == "64kB" || plan.contains("Hash Right Semi Join"), "{plan}");
            assert_eq!(s.run(&query), want, "{query} in {memory}\n{plan}");
            // Some rows at a time, and then no more.
            s.run_each(&[
                "BEGIN",
                &format!("DECLARE c CURSOR FOR SELECT id FROM few WHERE {condition}"),
            ]);
            let first = s.run("FETCH 3 FROM c");
            let rest = s.run("FETCH ALL FROM c");
            s.run_each(&["COMMIT"]);
            let given = [first, rest].join("\n");
            let ids: Vec<&str> = given.lines().filter(|l| !l.is_empty()).collect();
            let count = want.split('|').next().unwrap_or_default();
            assert_eq!(ids.len().to_string(), count, "{condition}");
        }
    }
    s.run_each(&["RESET ALL"]);
    let all_met = "SELECT count(*) FROM few WHERE k < 20 AND k IN (SELECT k FROM many)";
    let told = s.run(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) {all_met}"));
    let read = |line: &str| {
        line.split("actual rows=").nth(1).map(|n| n.split('.').next().map(str::to_owned))
    };
    let scanned = told.lines().find(|l| l.contains("Seq Scan on many")).and_then(read).flatten();
    let scanned: u32 = scanned.and_then(|n| n.parse().ok()).expect(&told);
    assert!(scanned < 1000, "all of the few had been given:\n{told}");
}

/// What an EXISTS within an EXISTS asks of the inner rows alone is a join of theirs; counting the rows instead is not, and says the same.
#[test]
fn exists_within_exists() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int, x int)",
        "CREATE TABLE b (id int, x int, y int)",
        "CREATE TABLE c (id int, y int, z int)",
        "INSERT INTO a SELECT g, nullif(g % 9, 4) FROM generate_series(1, 40) g",
        "INSERT INTO b SELECT g, nullif(g % 7, 3), nullif(g % 5, 2) FROM generate_series(1, 60) g",
        "INSERT INTO c SELECT g, nullif(g % 11, 1), g % 3 FROM generate_series(1, 50, 3) g",
        "VACUUM ANALYZE a, b, c",
    ]);
    // Levels of a query: what is asked, and whether of rows that are there.
    let b = "FROM b WHERE b.x = a.x AND";
    let cases: [(&[(&str, bool)], bool); 10] = [
        (&[(b, true), ("FROM c WHERE c.y = b.y", true)], true),
        (&[(b, true), ("FROM c WHERE c.y = b.y AND c.z = 1", false)], true),
        (&[(b, false), ("FROM c WHERE c.y = b.y AND c.z < 2", true)], true),
        (&[(b, false), ("FROM c WHERE c.y = b.y AND c.z < 2", false)], true),
        // These look at the outermost rows as well.
        (&[(b, true), ("FROM c WHERE c.y = b.y AND c.z < a.id - 30", true)], false),
        (&[(b, true), ("FROM c WHERE c.y = a.x", true)], false),
        (&[(b, false), ("FROM c WHERE c.y = b.y AND c.id > a.id", true)], false),
        (
            &[
                (b, true),
                ("FROM c WHERE c.y = b.y AND", true),
                ("FROM b d WHERE d.y = c.z AND d.id > 5", true),
            ],
            true,
        ),
        (
            &[
                (b, true),
                ("FROM c WHERE c.y = b.y AND", false),
                ("FROM b d WHERE d.y = c.z AND d.id < b.id", true),
            ],
            false,
        ),
        (
            &[
                (b, true),
                ("FROM c WHERE c.y = b.y AND", true),
                ("FROM b d WHERE d.y = c.z AND d.x = a.x AND d.id < 15", false),
            ],
            false,
        ),
    ];
    for (levels, joined) in cases {
        let (mut exists, mut counted) = (String::new(), String::new());
        for (from, there) in levels.iter().rev() {
            let (not, op) = if *there { ("", "> 0") } else { ("NOT ", "= 0") };
            exists = format!("{not}EXISTS (SELECT {from} {exists})");
            counted = format!("(SELECT count(*) {from} {counted}) {op}");
        }
        let query = |condition: &str| format!("SELECT id FROM a WHERE {condition} ORDER BY id");
        let want = s.run(&query(&counted));
        let plan = plan(&mut s, &query(&exists));
        assert_eq!(s.run(&query(&exists)), want, "{exists}\n{plan}");
        assert_eq!(!plan.contains("SubPlan"), joined, "{exists}\n{plan}");
        let marked = s.run(&format!("UPDATE a SET id = id WHERE {exists} RETURNING id"));
        let mut marked: Vec<i32> = marked.lines().filter_map(|l| l.parse().ok()).collect();
        marked.sort_unstable();
        let ids: Vec<i32> = want.lines().filter_map(|l| l.parse().ok()).collect();
        assert_eq!(marked, ids, "{exists}");
        assert!(!ids.is_empty() && ids.len() < 40, "{exists} says nothing: {want}");
    }
}

/// `x IN (SELECT y … WHERE …)` whose condition, or whose column, is about the rows around it.
#[test]
fn in_that_looks_at_the_rows_around_is_a_join() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE o (a int, b int)",
        "INSERT INTO o SELECT nullif(g % 9, 8), nullif(g % 4, 3) FROM generate_series(1, 60) g",
        "CREATE TABLE i (y int, k int)",
        "INSERT INTO i SELECT nullif(g % 7, 6), nullif(g % 5, 4) FROM generate_series(1, 200) g",
        "CREATE VIEW grouped AS SELECT k, count(*)::int AS n, max(y) AS y FROM i GROUP BY k",
        "VACUUM ANALYZE o, i",
    ]);
    let nested =
        "SELECT i.y FROM i WHERE i.k = o.b AND i.y IN (SELECT x.a FROM o x WHERE x.b = i.k)";
    for (operand, sub, joins) in [
        ("a IN", "SELECT y FROM i WHERE i.k = o.b", true),
        ("(a, b) IN", "SELECT y, k FROM i WHERE i.k < o.a", true),
        ("a + 1 = ANY", "SELECT y + o.b FROM i", true),
        ("a > ANY", "SELECT y FROM i WHERE i.k = o.b", true),
        ("a IN", "SELECT y FROM grouped g WHERE g.k <= o.b", true),
        ("b >= 0 AND a IN", nested, true),
        (
            "a IN",
            "SELECT x.y FROM i x JOIN grouped g ON g.k = x.k AND g.y > x.y WHERE x.k = o.b",
            true,
        ),
        // A number of rows, or something made of all of them, is of one row's.
        ("a IN", "SELECT y FROM i WHERE i.k = o.b ORDER BY y LIMIT 2", false),
        ("a IN", "SELECT max(y) FROM i WHERE i.k = o.b", false),
        ("a NOT IN", "SELECT y FROM i WHERE i.k = o.b", false),
        ("b = 1 OR a IN", "SELECT y FROM i WHERE i.k = o.b", false),
    ] {
        let of = |sub: &str| {
            format!(
                "SELECT a, b, count(*) FROM o WHERE {operand} ({sub}) GROUP BY a, b ORDER BY a, b"
            )
        };
        let made = plan(&mut s, &of(sub));
        assert_eq!(!made.contains("SubPlan"), joins, "{made}");
        if joins {
            assert_eq!(s.run(&of(sub)), s.run(&of(&format!("{sub} OFFSET 0"))), "{made}");
        }
    }
    let by_row = "SELECT a FROM o WHERE b = 2 AND a IN (SELECT y FROM i WHERE i.k = o.b OFFSET 0) ORDER BY a";
    let before = s.run(by_row);
    assert!(before.starts_with('0'), "{before}");
    assert_eq!(
        s.run("WITH u AS (UPDATE o SET b = 5 WHERE b = 2 AND a IN (SELECT y FROM i WHERE i.k = o.b) RETURNING a) SELECT a FROM u ORDER BY a"),
        before
    );
    assert_eq!(s.run(by_row), "");
}
