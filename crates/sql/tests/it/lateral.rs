//! A sub-select on a LEFT JOIN's right side that looks at the left side is joined as a table, with the rows it had.

use crate::support::Database;

#[test]
fn a_lateral_sub_select_is_hashed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (i int, t int)",
        "CREATE TABLE b (i int, f int, t int)",
        "INSERT INTO a SELECT g, g % 10 FROM generate_series(1, 250) g",
        "INSERT INTO b SELECT g, g % 70, g % 7 FROM generate_series(1, 250) g",
        "INSERT INTO b VALUES (NULL, NULL, NULL), (9, 17, NULL)",
        "ANALYZE a, b",
    ]);
    // A LIMIT that cuts nothing off keeps a sub-select whole.
    let cases = [
        ("SELECT a.t + b.t AS x, b.f, a.i AS y FROM b", "a.i = ss.f"),
        ("SELECT coalesce(a.t + b.t, 1) AS x, 5 AS f, a.i AS y FROM b WHERE b.f = a.i", "true"),
        ("SELECT a.t AS x, b.f, 7 AS y FROM b WHERE b.f = a.i AND a.t > 3", "x > 4"),
        (
            "SELECT a.t + c.t AS x, b.f, coalesce(c.i, a.i) AS y FROM b LEFT JOIN b c ON c.i = b.f AND c.t > 2 WHERE b.f = a.i",
            "y > 5",
        ),
        (
            "SELECT b.t AS x, q.f, a.t AS y FROM b JOIN (SELECT f, i FROM b WHERE t < 4) q ON q.i = b.i WHERE q.f = a.i",
            "true",
        ),
    ];
    for (sub, on) in cases {
        let of = |sub: String| {
            format!(
                "SELECT count(*), count(x), sum(x), count(f), sum(y) FROM a LEFT JOIN LATERAL ({sub}) ss ON {on}"
            )
        };
        let plain = of(sub.to_owned());
        let plan = s.run(&format!("EXPLAIN (COSTS off) {plain}"));
        assert!(plan.contains("Hash") && !plan.contains("Nested"), "{plain}\n{plan}");
        assert!(!plan.contains("Filter: true"), "{plain}\n{plan}");
        let whole = format!("{} LIMIT 1000000", sub);
        assert_eq!(s.run(&plain), s.run(&of(whole)), "{plain}");
    }
    s.check(&[
        // A constant of a missing row is NULL, above another outer join too.
        ("SELECT a.i, ss.x FROM a LEFT JOIN LATERAL (SELECT 5 AS x FROM b WHERE b.f = a.i) ss ON true WHERE x IS NULL AND a.i < 72 ORDER BY 1", "70|~\n71|~"),
        ("SELECT count(*), count(x) FROM a z LEFT JOIN (a LEFT JOIN LATERAL (SELECT 1 AS x FROM b WHERE b.f = a.i) ss ON true) ON a.i = z.i + 245 WHERE z.i > 2", "248|0"),
        ("SELECT count(*), count(x) FROM a z LEFT JOIN (a LEFT JOIN LATERAL (SELECT 1 AS x FROM b WHERE b.f = a.i) ss ON true) ON a.i = z.i - 248", "256|8"),
        ("SELECT ss FROM a LEFT JOIN LATERAL (SELECT a.t AS x, b.f FROM b WHERE b.f = a.i) ss ON true WHERE a.i = 249", "~"),
    ]);
}

/// Its conditions are asked of padded rows too: beside an outer join, whose padded side they look at.
#[test]
fn a_condition_of_a_sub_select_looks_at_a_padded_side_beside_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (q int, r int)",
        "INSERT INTO t VALUES (1, 2), (1, 3), (3, 1), (3, 3), (3, -3)",
    ]);
    let left = "t t1 LEFT JOIN t t2 ON t1.r = t2.q";
    for (sub, wanted) in [
        ("SELECT 1 FROM t t3 WHERE t2.q = t2.r", "10"),
        ("SELECT 1 FROM t t3 WHERE t2.q = t3.q", "22"),
        ("SELECT 1 FROM t t3 WHERE t2.q IS NULL", "10"),
        ("SELECT 1 FROM t t3 WHERE coalesce(t2.q, t3.q) = 1", "14"),
        ("SELECT 1 FROM (SELECT 1 FROM t t3 WHERE t2.q = t2.r) x", "10"),
        ("SELECT 1 FROM t t3 WHERE EXISTS (SELECT 1 FROM t t4 WHERE t4.q = t2.q)", "40"),
        ("SELECT 1 FROM t t3 WHERE t3.q IN (SELECT t4.q FROM t t4 WHERE t4.r = t2.r)", "29"),
        ("SELECT 1 FROM t t3 LEFT JOIN t t4 ON t4.q = t3.r WHERE t2.q = t2.r", "20"),
    ] {
        let plain = format!("SELECT count(*) FROM {left}, LATERAL ({sub}) ss");
        let whole = format!("SELECT count(*) FROM {left}, LATERAL ({sub} OFFSET 0) ss");
        assert_eq!(s.run(&whole), wanted, "{whole}");
        assert_eq!(s.run(&plain), wanted, "{plain}");
    }
}

/// A condition below an outer join of the sub-select's own is not the LEFT JOIN's.
#[test]
fn a_join_below_an_outer_one_looks_beside_the_sub_select() {
    let db = Database::new();
    let mut s = db.session();
    s.make_joined();
    s.run_each(&["INSERT INTO w VALUES (1, 10)"]);
    let of = |join: &str| {
        format!(
            "SELECT v.id, q.* FROM v LEFT JOIN LATERAL (SELECT t.id, u.k, w.z FROM \
             (t JOIN u ON {join}) LEFT JOIN w ON w.id = t.id) q ON true ORDER BY 1, 2, 3"
        )
    };
    s.check(&[
        (&of("t.id = u.t_id AND t.x = v.y"), "1|1|1|10\n1|2|2|~\n2|~|~|~\n3|~|~|~"),
        (&of("t.id = u.t_id AND v.y = 7"), "1|~|~|~\n2|~|~|~\n3|~|~|~"),
    ]);
}

/// What LATERAL may not see though it stands there.
#[test]
fn lateral_sees_no_outer_joins_left_side_and_no_target() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE x (x1 int, x2 int)"]);
    let no = "42P10 invalid reference to FROM-clause entry for table \"x\"";
    let join =
        format!("{no}\nThe combining JOIN type must be INNER or LEFT for a LATERAL reference.");
    let joined = |kind: &str, what: &str| {
        format!("SELECT 1 FROM x {kind} JOIN LATERAL (SELECT {what}) q ON true")
    };
    s.check(&[
        (&joined("FULL", "x.x1"), &join),
        (&joined("RIGHT", "x1"), &join),
        ("DELETE FROM x USING LATERAL (SELECT x1) q WHERE x2 = 1", no),
        ("DELETE FROM x USING LATERAL (SELECT x.x1) q WHERE x2 = 1", no),
        ("UPDATE x SET x1 = 2 FROM LATERAL (SELECT x.x1) q", no),
        (
            "UPDATE x SET x1 = 2 FROM (SELECT x.x1) q",
            "42P01 invalid reference to FROM-clause entry for table \"x\"\n\
             There is an entry for table \"x\", but it cannot be referenced from this part of the query.",
        ),
    ]);
}
