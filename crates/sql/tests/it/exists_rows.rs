//! EXISTS of which the rows are gathered once.

use crate::support::{Database, waiting};

/// Two tables with what is equal to something, to nothing, and null, of several types.
const TABLES: &str = "CREATE TABLE a (id int, x int, y bigint, t text, c char(6), n numeric); CREATE TABLE b (id int, x bigint, y smallint, t varchar, c char(9), n numeric);
    INSERT INTO a SELECT g, nullif(g % 40, 3), nullif(g % 7, 2), 't' || g % 30, 'c' || g % 20, (g % 25) / 2.0 FROM generate_series(1, 160) g;
    INSERT INTO b SELECT g, nullif(g % 50, 4) * 2, nullif(g % 11, 5), nullif('t' || g * 3, 't9'), 'c' || g * 2, (g % 30)::numeric(9, 3) FROM generate_series(1, 70) g;
    ANALYZE";

#[test]
fn gathered_rows_answer_as_the_sub_select_does() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[TABLES]);
    for condition in [
        "b.x = a.x",
        "a.x = b.x AND b.y > 4",
        "b.y = a.y AND a.x = b.x",
        "a.t = b.t",
        "a.c = b.c AND b.id < 8",
        "a.n = b.n",
        "a.n + 1 = b.n AND b.y IS NOT NULL",
        "b.id * 2 + 1 = a.id",
        "a.y = 3 AND a.x = b.x",
        "b.x = a.x AND b.id IN (SELECT id FROM a WHERE x = 7)",
        "b.x = a.x AND b.id = (SELECT min(id) FROM a)",
        // These look at the row in another way, too.
        "b.x = a.x AND b.y > a.y",
        "b.x = a.x AND (b.y = 3 OR a.y = 3)",
        "b.x = a.x AND b.id < (SELECT count(*) FROM b c WHERE c.x = a.x) * 20",
        "a.x = a.y AND b.x = a.x",
        "b.x = a.x AND random() < 2",
    ] {
        let exists = format!("EXISTS (SELECT FROM b WHERE {condition})");
        let counted = format!("(SELECT count(*) FROM b WHERE {condition}) > 0");
        for (asked, wanted) in [
            (format!("a.id < 9 OR {exists}"), format!("a.id < 9 OR {counted}")),
            (
                format!("a.id > 9 AND NOT ({exists} OR a.y = 1)"),
                format!("a.id > 9 AND NOT ({counted} OR a.y = 1)"),
            ),
            (
                format!("CASE WHEN {exists} THEN a.id % 2 END = 1"),
                format!("CASE WHEN {counted} THEN a.id % 2 END = 1"),
            ),
            (format!("{exists} IS NOT TRUE"), format!("({counted}) IS NOT TRUE")),
        ] {
            let ids = |w: &str| {
                format!(
                    "SELECT string_agg(id::text, ' ' ORDER BY id), count(*) > 0 FROM a WHERE {w}"
                )
            };
            assert_eq!(s.run(&ids(&asked)), s.run(&ids(&wanted)), "{asked}");
        }
    }
}

const ANALYZE: &str = "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off)";

/// How often a line of a plan was run.
fn loops(plan: &str, below: &str) -> u64 {
    let mut lines = plan.lines().skip_while(|l| !l.trim_start().starts_with(below)).skip(1);
    let line = lines.next().unwrap_or_else(|| panic!("no {below} in {plan}"));
    let said = line.split("loops=").nth(1).and_then(|l| l.split(')').next());
    said.map_or(0, |n| n.parse().unwrap())
}

#[test]
fn the_sub_select_is_run_until_gathering_is_no_dearer() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        TABLES,
        "INSERT INTO b SELECT g, g FROM generate_series(1000, 3000) g; ANALYZE b",
    ]);
    // Read whole each time: gathered after a few.
    let query = "SELECT count(*) FROM a WHERE id < 3 OR EXISTS (SELECT FROM b WHERE b.x = a.x)";
    let plan = s.run(&format!("{ANALYZE} {query}"));
    assert!(plan.contains("Filter: ((id < 3) OR EXISTS(SubPlan 2))"), "{plan}");
    assert_eq!(loops(&plan, "SubPlan 1 (hashed, instead of SubPlan 2"), 1, "{plan}");
    assert!((1..40).contains(&loops(&plan, "SubPlan 2")), "{plan}");
    // Asked for a few rows, with an index: never.
    s.run_each(&["CREATE INDEX ON b (x)"]);
    let plan =
        s.run(&format!("{ANALYZE} SELECT EXISTS (SELECT FROM b WHERE b.x = a.x) FROM a LIMIT 5"));
    assert_eq!(loops(&plan, "SubPlan 2"), 5, "{plan}");
    assert_eq!(loops(&plan, "SubPlan 1 (hashed"), 0, "{plan}");
    // Many rows pay for it even so.
    let plan = s.run(&format!("{ANALYZE} SELECT EXISTS (SELECT FROM b WHERE b.x = c.id) FROM b c"));
    assert_eq!(loops(&plan, "SubPlan 1 (hashed"), 1, "{plan}");
    assert!((5..1000).contains(&loops(&plan, "SubPlan 2")), "{plan}");
}

/// Another execution, and other values of what the rows depend on, have other rows.
#[test]
fn rows_are_gathered_anew_when_they_are_others() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[TABLES]);
    s.run_each(&["PREPARE p AS SELECT count(*) FROM a WHERE id < 0 OR EXISTS (SELECT FROM b WHERE b.x = a.x AND b.y >= $1)"]);
    for _ in 0..8 {
        for least in [0, 4, 20] {
            let wanted = s.run(&format!(
                "SELECT count(*) FROM a WHERE x IN (SELECT x FROM b WHERE y >= {least})"
            ));
            assert_eq!(s.run(&format!("EXECUTE p({least})")), wanted);
        }
        s.run_each(&["UPDATE b SET x = x + 1"]);
    }
    let per_o = |condition: &str| {
        format!(
            "SELECT o, (SELECT count(*) FROM a WHERE a.x % 5 = o AND (a.id < 0 OR {condition})) FROM generate_series(0, 9) o"
        )
    };
    let exists = s.run(&per_o("EXISTS (SELECT FROM b WHERE b.x = a.x AND b.y > o)"));
    assert_eq!(exists, s.run(&per_o("(SELECT count(*) FROM b WHERE b.x = a.x AND b.y > o) > 0")));
}

#[test]
fn what_finds_no_room_is_run_each_time() {
    let db = Database::new();
    let mut s = db.session();
    // Nobody knows that there are many.
    s.run_each(&[
        TABLES,
        "SET work_mem = '64kB'; SET hash_mem_multiplier = 1",
        "INSERT INTO b SELECT g, g FROM generate_series(1000, 4000) g",
    ]);
    let query = "SELECT count(*) FROM a WHERE id < 121 OR EXISTS (SELECT FROM b WHERE b.x = a.id AND b.id + 0 > 0)";
    let plan = s.run(&format!("{ANALYZE} {query}"));
    assert_eq!(loops(&plan, "SubPlan 1 (hashed"), 1, "{plan}");
    assert_eq!(loops(&plan, "SubPlan 2"), 40, "{plan}");
    assert_eq!(
        s.run(query),
        s.run("SELECT count(*) FROM a WHERE id < 121 OR id IN (SELECT x FROM b)")
    );
}

/// What is looked up by is computed only where there is something to be found.
#[test]
fn no_error_comes_of_a_row_that_nothing_is_compared_with() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE a AS SELECT g id, g % 2 z FROM generate_series(1, 100) g; CREATE TABLE b (x int); ANALYZE"]);
    let query = "SELECT count(*) FROM a WHERE id < 3 OR EXISTS (SELECT FROM b WHERE b.x = 1 / a.z)";
    s.check(&[(query, "2"), ("INSERT INTO b VALUES (1)", ""), (query, "22012 division by zero")]);
}

/// A newer version of a row is asked by the statement's snapshot, as by the sub-select itself.
#[test]
fn a_newer_version_is_asked_too() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[TABLES]);
    let then = "UPDATE a SET y = -1 WHERE id < 0 OR NOT EXISTS (SELECT FROM b WHERE b.x = a.x)";
    assert_eq!(waiting(&db, "UPDATE a SET x = 10 WHERE id = 1", then), "");
    s.check(&[
        ("SELECT count(*) FROM a WHERE y = -1 AND x IN (SELECT x FROM b)", "0"),
        ("SELECT count(*) FROM a WHERE y IS DISTINCT FROM -1 AND (x IN (SELECT x FROM b)) IS NOT TRUE", "0"),
        ("SELECT x, y FROM a WHERE id = 1", "10|1"),
    ]);
}
