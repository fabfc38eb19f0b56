//! Left joins of which only the rows without a partner are asked for.

use crate::support::Database;

fn tables() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE l (id int PRIMARY KEY, x int)",
        "CREATE TABLE r (id int PRIMARY KEY, lid int, z text NOT NULL, w int)",
        "INSERT INTO l SELECT g, g % 10 FROM generate_series(1, 2000) g",
        "INSERT INTO r SELECT g, g * 2, 'z', nullif(g % 7, 0) FROM generate_series(1, 500) g",
        "ANALYZE l",
        "ANALYZE r",
    ]);
    db
}

/// The join in a query's plan, below what is done with its rows.
fn join_of(db: &Database, query: &str) -> String {
    let plan = db.session().run(&format!("EXPLAIN (COSTS OFF) {query}"));
    let line = plan.lines().find(|l| l.contains("Join") || l.contains("Nested Loop"));
    line.unwrap_or(&plan).trim_start_matches([' ', '-', '>']).to_owned()
}

#[test]
fn a_left_join_whose_partners_are_refused_is_an_anti_join() {
    let db = tables();
    for (condition, join, count) in [
        // The join's condition is not true of NULL.
        ("r.lid = l.id WHERE r.lid IS NULL", "Hash Anti Join", "1500"),
        // A row that is there has them.
        ("r.lid = l.id WHERE r.z IS NULL", "Hash Anti Join", "1500"),
        ("r.lid = l.id WHERE r.id IS NULL", "Hash Anti Join", "1500"),
        ("r.lid = l.id WHERE r.ctid IS NULL AND l.id < 9", "Hash Anti Join", "4"),
        ("r.lid = l.id AND r.w > 3 WHERE r.w IS NULL", "Hash Anti Join", "1787"),
        ("r.lid = l.id WHERE r.lid IS NULL AND coalesce(r.w, 0) = 0", "Hash Anti Join", "1500"),
        // It may be NULL in a row that met one.
        ("r.lid = l.id WHERE r.w IS NULL", "Hash Left Join", "1571"),
        ("r.lid = l.id WHERE r IS NULL", "Hash Left Join", "1500"),
        ("r.lid = l.id WHERE r.lid IS NULL OR l.x = 0", "Hash Left Join", "1600"),
    ] {
        let from = format!("FROM l LEFT JOIN r ON {condition}");
        let count_of = format!("SELECT count(*) {from}");
        assert_eq!(db.session().run(&count_of), count, "{from}");
        let got = join_of(&db, &count_of).replace("Hash Right Anti", "Hash Anti");
        assert_eq!(got.replace("Hash Right Join", "Hash Left Join"), join, "{from}");
    }
}

#[test]
fn what_has_no_partner_has_nulls_everywhere() {
    let db = tables();
    let from = "FROM l LEFT JOIN r ON r.lid = l.id";
    let mut s = db.session();
    for (query, want) in [
        (
            "SELECT l.id, r.*, r, r.z IS NULL {} WHERE r.lid IS NULL ORDER BY l.id DESC, r.id LIMIT 1",
            "2000|~|~|~|~|~|t",
        ),
        ("SELECT r.z, count(*), count(r.id) {} WHERE r.lid IS NULL GROUP BY r.z", "~|1500|0"),
        (
            "SELECT DISTINCT ON (r.z) r.z, l.id {} WHERE r.lid IS NULL ORDER BY r.z, l.id DESC",
            "~|2000",
        ),
        (
            "SELECT count(*) {} LEFT JOIN r q ON q.id = r.id WHERE r.lid IS NULL AND q.id IS NULL",
            "1500",
        ),
        ("SELECT count(*) {}, LATERAL (SELECT r.id v) s WHERE r.lid IS NULL AND v IS NULL", "1500"),
        (
            "SELECT count(*) {} WHERE r.lid IS NULL AND NOT EXISTS (SELECT FROM r q WHERE q.id = l.x AND q.id IS DISTINCT FROM r.id)",
            "100",
        ),
        // A partner's own partner may be missing.
        (
            "SELECT count(*), count(r.id) FROM l LEFT JOIN (r LEFT JOIN r q ON q.id = r.w AND q.id < 3) ON r.lid = l.id WHERE q.id IS NULL",
            "1856|356",
        ),
        (
            "SELECT count(*), count(r.id) FROM l LEFT JOIN (r LEFT JOIN r q ON q.id = r.w) ON r.lid = l.id AND q.id > 3 WHERE q.id IS NULL",
            "1787|0",
        ),
        // That side's own joins change on the way.
        (
            "SELECT count(*) FROM l LEFT JOIN (r FULL JOIN r q ON r.w = q.id) ON l.id = q.lid WHERE q.lid IS NULL",
            "1500",
        ),
    ] {
        let query = query.replace("{}", from);
        assert_eq!(s.run(&query), want, "{query}");
    }
}

#[test]
fn the_few_rows_of_an_anti_join_are_hashed() {
    let db = tables();
    let query = "SELECT count(*) FROM r LEFT JOIN l ON l.x = r.id WHERE l.x IS NULL AND r.w = 1";
    assert_eq!(join_of(&db, query), "Hash Right Anti Join");
    assert_eq!(db.session().run(query), "70");
    let query =
        "SELECT count(*) FROM r WHERE w = 1 AND NOT EXISTS (SELECT FROM l WHERE l.x = r.id)";
    assert_eq!(db.session().run(query), "70");
    // In parts on disk, NULLs among the keys.
    let mut s = db.session();
    s.run_each(&[
        "SET work_mem = '64kB'",
        "CREATE TABLE a AS SELECT nullif(g % 5000, 7) k, repeat('a', 50) p FROM generate_series(1, 5000) g",
        "CREATE TABLE b AS SELECT nullif(g % 9000, 9) k FROM generate_series(1, 30000) g WHERE g % 3 = 0",
        "ANALYZE a",
        "ANALYZE b",
    ]);
    let query =
        "SELECT count(*), count(a.k), max(p) FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL";
    assert_eq!(join_of(&db, query), "Hash Right Anti Join");
    let slow = query.replace(
        "LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
        "WHERE (SELECT count(*) FROM b WHERE b.k = a.k) = 0",
    );
    s.run_each(&["CREATE INDEX ON b (k)"]);
    let want = s.run(&slow);
    s.run_each(&["SET enable_nestloop = off", "SET enable_mergejoin = off"]);
    assert_eq!(s.run(query), want);
}

/// A condition on padded rows, asked of the rows themselves, would take a row its partner and then let it pass as one without.
#[test]
fn a_condition_above_an_outer_join_leads_no_scan_below_it() {
    let db = tables();
    let mut s = db.session();
    s.run_each(&[
        "CREATE INDEX ON r (w)",
        "CREATE INDEX ON r (lid)",
        "CREATE INDEX ON r ((coalesce(w, 0)))",
    ]);
    s.run_each(&["ANALYZE r", "SET enable_hashjoin = off", "SET enable_mergejoin = off"]);
    for (query, want) in [
        (
            "l LEFT JOIN r ON l.id = r.lid WHERE l.id = 42 AND (r.id IS NULL AND l.x = 2 OR r.w = 3)",
            "",
        ),
        (
            "l LEFT JOIN r ON l.id = r.lid WHERE l.id = 42 AND (r.id IS NULL AND l.x = 2 OR r.w = 7 - l.x)",
            "",
        ),
        (
            "l LEFT JOIN r ON l.id = r.lid WHERE l.id = 42 AND coalesce(r.w, 0) = l.x - 2",
            "42|2|21|42|z|~",
        ),
        ("l LEFT JOIN r ON l.id = r.lid WHERE l.id = 44 AND coalesce(r.w, 0) = l.x - 4", ""),
        // Within the condition of a join above it.
        (
            "l LEFT JOIN (l k LEFT JOIN r ON k.id = r.lid) ON k.id = l.id AND (r.id IS NULL AND l.x = 2 OR r.w = 3) WHERE l.id = 42",
            "42|2|~|~|~|~|~|~",
        ),
        (
            "l FULL JOIN r ON l.id = r.lid WHERE l.id = 42 AND (r.id IS NULL AND l.x = 2 OR r.w = 3)",
            "",
        ),
    ] {
        assert_eq!(s.run(&format!("SELECT * FROM {query}")), want, "{query}");
    }
}

#[test]
fn a_partner_asked_for_among_nothing_may_be_missing() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int, list int[])",
        "CREATE TABLE b (id int, x int)",
        "INSERT INTO a VALUES (1, '{}'), (2, '{1,2}'), (3, NULL)",
        "INSERT INTO b VALUES (2, 1)",
    ]);
    // NULL = ANY ('{}') is false, not NULL.
    let of = |condition: &str| {
        format!(
            "SELECT a.id, b.x FROM a LEFT JOIN b ON a.id = b.id WHERE {condition} ORDER BY a.id"
        )
    };
    s.check(&[
        (&of("(b.x = ANY (a.list)) IS NOT NULL"), "1|~\n2|1"),
        (&of("(b.x = ANY (a.list)) IS FALSE"), "1|~"),
        (&of("NOT (b.x = ANY (a.list))"), "1|~"),
        (&of("(b.x = ANY (a.list)) = false"), "1|~"),
        (&of("b.x = ANY (a.list)"), "2|1"),
    ]);
}
