//! INTERSECT and EXCEPT of more than memory holds.

use crate::support::Database;

/// However little `work_mem` is, each row comes out as often as it should.
#[test]
fn rows_are_counted_beyond_work_mem() {
    let db = Database::new();
    let mut s = db.session();
    let rows = |table: &str, first: u32, each: u32| {
        format!(
            "INSERT INTO {table} SELECT a, CASE WHEN a % 7 > 0 THEN 'row ' || a END
             FROM generate_series(1, {each}), generate_series({first}, {first} + 9999) a"
        )
    };
    s.run_each(&[
        "CREATE TABLE l (a int, b text)",
        "CREATE TABLE r (a int, b text)",
        &rows("l", 0, 3),
        &rows("l", 10_000, 3),
        &rows("r", 10_000, 2),
        &rows("r", 20_000, 2),
    ]);
    let sums = |op: &str| {
        format!(
            "SELECT count(*), count(DISTINCT a), sum(a) FROM (SELECT * FROM l {op} SELECT * FROM r) x"
        )
    };
    let nested = "SELECT string_agg((SELECT count(*) FROM
        (SELECT a FROM l WHERE a < n EXCEPT SELECT a FROM r) x)::text, ' ') FROM (VALUES (5000), (15000), (8000)) v(n)";
    for work_mem in ["64kB", "64MB"] {
        s.run_each(&[&format!("SET work_mem = '{work_mem}'")]);
        s.check(&[
            (&sums("EXCEPT"), "10000|10000|49995000"),
            (&sums("EXCEPT ALL"), "40000|20000|299980000"),
            (&sums("INTERSECT"), "10000|10000|149995000"),
            (&sums("INTERSECT ALL"), "20000|10000|299990000"),
            (nested, "5000 10000 8000"),
        ]);
    }
}
