//! Left joins that nobody asks for anything.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, b int, c bigint, t varchar(5))",
        "CREATE TABLE b (id int PRIMARY KEY, d int, x int, y int, code text UNIQUE, UNIQUE (x, y))",
        "CREATE TABLE d (id int PRIMARY KEY, n int, s text)",
        "CREATE UNIQUE INDEX ON d (n) WHERE n > 5",
        "CREATE UNIQUE INDEX ON d ((n + 1))",
        "CREATE TABLE late (id int UNIQUE DEFERRABLE)",
        "INSERT INTO a SELECT g, g % 7, g % 5, 'k' || g % 4 FROM generate_series(1, 30) g",
        "INSERT INTO b SELECT g, g % 3, g, g, 'k' || g FROM generate_series(1, 5) g",
        "INSERT INTO d VALUES (0, 7, 'x'), (1, 6, 'y')",
        "CREATE VIEW wide AS SELECT a.id, a.t, b.x, d.s FROM a LEFT JOIN b ON b.id = a.b LEFT JOIN d ON d.id = b.d",
    ]);
    db
}

/// The number of joins in the plan; the rows are those of the joins made, which a column that is asked for and left out again keeps.
#[test]
fn joins_without_any_use_are_left_out() {
    let db = database();
    let mut s = db.session();
    for (query, joins) in [
        ("SELECT a.id FROM a LEFT JOIN b ON b.id = a.b", 0),
        ("SELECT id FROM wide", 0),
        ("SELECT id, x FROM wide", 1),
        ("SELECT id, s FROM wide", 2),
        ("SELECT id FROM wide WHERE s IS NULL", 2),
        ("SELECT id FROM wide ORDER BY x", 1),
        ("SELECT count(*) FROM wide", 0),
        ("SELECT count(*) FROM wide GROUP BY s", 2),
        ("SELECT t, count(*) OVER (PARTITION BY x) FROM wide", 1),
        ("SELECT a.id FROM a LEFT JOIN b ON b.id = a.c", 0),
        ("SELECT a.id FROM a LEFT JOIN b ON b.code = a.t AND b.x > a.id", 0),
        ("SELECT a.id FROM a LEFT JOIN b ON b.x = a.b AND a.c = b.y", 0),
        ("SELECT a.id FROM a LEFT JOIN b ON b.x = 3 AND b.y = 3", 0),
        // It may have several rows, or none is known that keeps it from it.
        ("SELECT a.id FROM a LEFT JOIN b ON b.x = a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN b ON b.d = a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN b ON b.id >= a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN b ON b.id = b.x", 1),
        ("SELECT a.id FROM a LEFT JOIN d ON d.n = a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN d ON d.n + 1 = a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN late ON late.id = a.b", 1),
        ("SELECT a.id FROM a LEFT JOIN b ON b.id = a.b AND random() >= 0", 1),
        // Others look at it.
        ("SELECT a.id, w FROM a LEFT JOIN b w ON w.id = a.b", 1),
        ("SELECT a.id, (SELECT b.x) FROM a LEFT JOIN b ON b.id = a.b", 1),
        (
            "SELECT a.id FROM a LEFT JOIN b ON b.id = a.b WHERE EXISTS (SELECT FROM d WHERE d.id = b.d OR d.n = 7)",
            2,
        ),
        (
            "SELECT a.id, l.v FROM a LEFT JOIN b ON b.id = a.b, LATERAL (SELECT b.x + 1 OFFSET 0) l(v)",
            2,
        ),
        ("SELECT a.id FROM a LEFT JOIN b ON b.id = a.b LEFT JOIN late ON late.id = b.x", 2),
        // Only the outer one is of no use; an inner join says which rows there are.
        ("SELECT a.id, b.x FROM a LEFT JOIN b ON b.id = a.b LEFT JOIN d ON d.id = a.b", 1),
        ("SELECT a.id FROM a JOIN b ON b.id = a.b LEFT JOIN d ON d.id = b.d", 1),
        ("SELECT a.id FROM a FULL JOIN b ON b.id = a.b", 1),
    ] {
        let plan = s.run(&format!("EXPLAIN (COSTS off) {query}"));
        let is_join = |line: &&str| line.contains(" Join") || line.contains("Nested Loop");
        let plan = plan.replace("Join Filter", "");
        let made = plan.lines().filter(is_join).count();
        assert_eq!(made, joins, "{query}\n{plan}");
        let sorted =
            |q: String| format!("SELECT string_agg(r::text, ' ' ORDER BY r::text) FROM ({q}) r");
        let got = s.run(&sorted(query.to_owned()));
        // Under a snapshot that may be an old one nothing is left out.
        s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
        let kept = s.run(&sorted(query.to_owned()));
        s.run_each(&["COMMIT"]);
        assert_eq!(got, kept, "{query}");
    }
}

/// A snapshot from before a unique index was made sees what that does not let be.
#[test]
fn an_old_snapshot_sees_rows_twice() {
    let db = database();
    let (mut old, mut s) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE e (id int)", "INSERT INTO e VALUES (1), (1), (2)"]);
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM a"]);
    s.run_each(&["DELETE FROM e WHERE ctid = '(0,1)'", "ALTER TABLE e ADD UNIQUE (id)"]);
    let query = "SELECT count(*) FROM a LEFT JOIN e ON e.id = a.b";
    let twice = "SELECT 30 + count(*) FROM a WHERE b = 1";
    let want = s.run(twice);
    assert_eq!(old.run(query), want);
    old.run_each(&["COMMIT"]);
    assert_eq!(old.run(query), "30");
    s.check(&[(query, "30")]);
}

/// Who may not read a table may not join it, whatever comes of it.
#[test]
fn privileges_are_asked_for_all_the_same() {
    let db = database();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE r", "GRANT SELECT ON a TO r", "SET ROLE r"]);
    s.check(&[
        ("SELECT count(*) FROM a LEFT JOIN b ON b.id = a.b", "42501 permission denied for table b"),
        ("SELECT count(*) FROM a", "30"),
    ]);
}

/// Sub-selects whose rows are different in what they are joined by: under any snapshot, for it is they who make them so.
#[test]
fn sub_selects_of_different_rows_are_left_out() {
    let db = database();
    let mut s = db.session();
    for (sub, on, left_out) in [
        ("SELECT DISTINCT d AS k FROM b", "s.k = a.b", true),
        ("SELECT DISTINCT d AS k, x FROM b", "s.k = a.b AND s.x = a.id", true),
        ("SELECT d AS k, count(*) FROM b GROUP BY d", "s.k = a.b", true),
        ("SELECT d AS k, count(*) FROM b GROUP BY d HAVING count(*) > 1", "s.k = a.c", true),
        ("SELECT DISTINCT ON (d) d AS k, x FROM b ORDER BY d, x", "s.k = a.b AND s.x > 1", true),
        ("SELECT DISTINCT ON (x, d) d AS k, x FROM b", "s.k = a.b AND s.x = a.c", true),
        ("SELECT d AS k FROM b UNION SELECT n FROM d", "s.k = a.b", true),
        ("SELECT d AS k FROM b EXCEPT SELECT n FROM d", "s.k = a.b", true),
        ("SELECT max(d) AS k FROM b", "s.k > a.b", true),
        ("SELECT d AS k, x FROM b GROUP BY d, x", "s.k = a.b AND s.x = 3", true),
        // Several rows may be alike, or something else comes of them.
        ("SELECT DISTINCT d AS k, x FROM b", "s.k = a.b", false),
        ("SELECT DISTINCT d AS k FROM b", "s.k >= a.b", false),
        ("SELECT d AS k, count(*) FROM b GROUP BY d, x", "s.k = a.b", false),
        ("SELECT d + 1 AS k, count(*) FROM b GROUP BY d", "s.k = a.b", false),
        ("SELECT d AS k FROM b GROUP BY ROLLUP (d)", "s.k = a.b", false),
        ("SELECT d AS k, generate_series(1, 2) FROM b GROUP BY d", "s.k = a.b", false),
        ("SELECT DISTINCT ON (x) d AS k FROM b", "s.k = a.b", false),
        ("SELECT d AS k FROM b UNION ALL SELECT n FROM d", "s.k = a.b", false),
        ("SELECT d AS k FROM b LIMIT 2", "s.k = a.b", false),
        ("SELECT DISTINCT d AS k FROM b WHERE random() >= 0", "s.k = a.b", false),
        ("SELECT DISTINCT t::varchar AS k FROM a", "s.k::char(9) = a.t", false),
    ] {
        let query = format!("SELECT a.id FROM a LEFT JOIN ({sub}) s ON {on}");
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            s.run_each(&[&format!("BEGIN ISOLATION LEVEL {level}")]);
            let plan = s.run(&format!("EXPLAIN (COSTS off) {query}"));
            let is_left_out = !plan.contains("Join") && !plan.contains("Nested Loop");
            assert_eq!(is_left_out, left_out, "{query}\n{plan}");
            s.run_each(&["COMMIT"]);
        }
        let sorted = format!("{query} ORDER BY a.id");
        let kept = format!(
            "SELECT id FROM (SELECT a.id, s AS row FROM a LEFT JOIN ({sub}) s ON {on}) r WHERE row IS NULL OR row IS NOT NULL OR id > 0 ORDER BY id"
        );
        assert_eq!(s.run(&sorted), s.run(&kept), "{query}");
    }
    // Texts may be different, and the same as values of char(n).
    s.run_each(&["CREATE TABLE u (t text UNIQUE)", "INSERT INTO u VALUES ('k1'), ('k1 ')"]);
    s.check(&[
        ("SELECT count(*) FROM a LEFT JOIN u ON u.t::bpchar = a.t::bpchar WHERE a.id = 1", "2"),
        ("SELECT count(*) FROM a LEFT JOIN (SELECT DISTINCT t FROM u) u ON u.t::bpchar = a.t::bpchar WHERE a.id = 1", "2"),
    ]);
    s.run_each(&["CREATE ROLE r", "GRANT SELECT ON a TO r", "SET ROLE r"]);
    s.check(&[(
        "SELECT count(*) FROM a LEFT JOIN (SELECT DISTINCT d FROM b) s ON s.d = a.b",
        "42501 permission denied for table b",
    )]);
}
