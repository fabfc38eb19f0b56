//! Joins of days with moments: types that are compared as they are, each with a form of its own.

use crate::support::Database;

fn tables() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE d (d date)",
        "CREATE TABLE t (t timestamp, z timestamptz)",
        // Clocks are put forward in the night to 26 March: 2:30 of that day is no time.
        "INSERT INTO d SELECT date '2023-03-20' + i FROM generate_series(0, 20) i",
        "SET timezone = 'Europe/Berlin'; INSERT INTO t SELECT timestamp '2023-03-20' + i * interval '30 minutes', \
         timestamptz '2023-03-20' + i * interval '30 minutes' FROM generate_series(0, 480) i",
        "INSERT INTO d VALUES ('infinity'), ('-infinity'), (NULL), ('5874897-12-31')",
        "INSERT INTO t VALUES ('infinity', 'infinity'), ('-infinity', '-infinity'), (NULL, NULL)",
        "ANALYZE d",
        "ANALYZE t",
    ]);
    db
}

#[test]
fn every_way_of_joining_finds_the_same() {
    let db = tables();
    let mut s = db.session();
    for (way, off) in [
        ("Hash", ["enable_mergejoin", "enable_nestloop"]),
        ("Merge", ["enable_hashjoin", "enable_nestloop"]),
        ("Nested Loop", ["enable_hashjoin", "enable_mergejoin"]),
    ] {
        s.run_each(&["RESET ALL", "SET timezone = 'Europe/Berlin'"]);
        off.iter().for_each(|o| s.run_each(&[&format!("SET {o} = off")]));
        for (from, want) in [
            ("d JOIN t ON d = t", "13"),
            ("t JOIN d ON t = d", "13"),
            ("d JOIN t ON d = z", "13"),
            ("d LEFT JOIN t ON z = d", "25"),
            ("t x JOIN t y ON x.t = y.z", "483"),
        ] {
            let query = format!("SELECT count(*) FROM {from}");
            assert_eq!(s.run(&query), want, "{way}: {from}");
            // Of local times the order is not that of the moments.
            if !(way == "Merge" && from.contains("x.t")) {
                let plan = s.run(&format!("EXPLAIN (COSTS OFF) {query}"));
                assert!(plan.contains(way), "{way}: {from}: {plan}");
            }
        }
        s.check(&[
            ("SELECT count(*) FROM d WHERE d IN (SELECT t FROM t)", "13"),
            ("SELECT count(*) FROM t WHERE z NOT IN (SELECT d FROM d WHERE d IS NOT NULL)", "470"),
        ]);
    }
    s.run_each(&["RESET ALL", "SET timezone = 'Europe/Berlin'"]);
    s.check(&[("SELECT count(*), count(d), count(z) FROM d FULL JOIN t ON d = z", "496|24|483")]);
}

/// Rows of them, too: the first pair that is not equal decides.
#[test]
fn rows_of_other_kinds_are_compared_as_moments() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["SET timezone = 'Europe/Berlin'"]);
    s.check(&[(
        "SELECT (d, 1) < (t, 1), (d, 1) >= ('2024-01-02'::timestamptz, 1), (t + '1 day', 2) <= ('2024-01-02 00:00+01'::timestamptz, 1), (t + '1 day', 2) > (d, 1), ('infinity'::date, d) >= ('infinity'::timestamp, d), (NULL::date, 1) < (t, 1) FROM (SELECT '2024-01-02'::date AS d, '2024-01-01'::timestamp AS t OFFSET 0) x",
        "f|t|f|t|t|~",
    )]);
}

/// A moment bounds an index on days, to the day, and says the same as without the index.
#[test]
fn moments_bound_indexes_on_days() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (day date)",
        "INSERT INTO t SELECT date '2020-01-01' + g FROM generate_series(-400, 400) g",
        "INSERT INTO t VALUES ('infinity'), ('-infinity'), (NULL), ('5874897-12-31'), ('4713-01-01 BC')",
        "CREATE INDEX ON t (day)",
        "ANALYZE t",
    ]);
    let asked = "day >= date '2020-03-01' AND day < date '2020-03-01' + interval '1 month'";
    let plan = s.run(&format!("EXPLAIN (COSTS off) SELECT * FROM t WHERE {asked}"));
    assert!(plan.contains("Index Cond: ((") && !plan.contains("Filter"), "{plan}");
    for moment in [
        "2020-02-20",
        "2020-02-20 00:00:00.000001",
        "2020-02-19 23:59:59.999999",
        "1995-06-01 12:00 BC",
        "2019-12-31",
        "infinity",
        "-infinity",
        "294276-12-31 23:59",
    ] {
        for op in ["<", "<=", "=", ">=", ">", "<>"] {
            for condition in
                [format!("day {op} timestamp '{moment}'"), format!("timestamp '{moment}' {op} day")]
            {
                // What is no column is compared as it is, and by no index.
                let plain = condition.replace("day", "(SELECT day)");
                let count = |s: &mut crate::support::Connection, condition: &str| {
                    s.run(&format!("SELECT count(*), min(day), max(day) FROM t WHERE {condition}"))
                };
                let want = count(&mut s, &plain);
                for index in ["off", "on"] {
                    let seq = if index == "on" { "off" } else { "on" };
                    s.run_each(&[
                        &format!(
                            "SET enable_indexscan = {index}; SET enable_indexonlyscan = {index}"
                        ),
                        &format!("SET enable_seqscan = {seq}"),
                    ]);
                    assert_eq!(count(&mut s, &condition), want, "{condition}, index {index}");
                }
            }
        }
    }
}
