//! Rows that a scan reads in part: those that its filter takes out, and those that a sort above it has no use for.

use super::db::Db;

fn sample() -> Db {
    let db = Db::new();
    db.create("f", "a int4 notnull, k int4, v text, x float8", &[]);
    let row = "i, case when i % 50 <> 0 then i * 7919 % 977 end, 'v' || i % 313, i / 8.0";
    db.run(&format!("insert into f select {row} from generate_series(1, 6000) i"));
    db
}

#[test]
fn the_first_rows_of_a_sort_are_whole() {
    let db = sample();
    let orders = [
        "k, a",
        "k desc, a desc",
        "k nulls first, a",
        "k desc nulls last, a",
        "v, a",
        "v desc, x",
        "k % 7, a",
        "-a",
    ];
    for order in orders {
        for filter in ["", "where a % 3 = 1", "where k + 0 > 100 or v = 'v7'", "where x < 500"] {
            let sorted = format!("select * from f {filter} order by {order}");
            let all = db.run(&sorted);
            let all: Vec<&str> = all.lines().collect();
            for (limit, offset) in [(1, 0), (7, 0), (40, 3), (300, 0), (900, 600)] {
                let got = db.run(&format!("{sorted} limit {limit} offset {offset}"));
                let got: Vec<&str> = got.lines().collect();
                let end = all.len().min(offset + limit);
                assert!(got == all[offset..end], "{sorted} limit {limit} offset {offset}: {got:?}");
            }
        }
    }
}

/// The tuple after one that is taken out has its own values, and its own NULLs.
#[test]
fn what_a_filter_takes_out_leaves_nothing_behind() {
    let db = sample();
    let same = [
        ("k + 0 > 970 or k is null", "coalesce(k, 1000) > 970"),
        ("k + 0 is null", "a % 50 = 0"),
        ("a + 0 > 5990", "a > 5990"),
        ("x * 2 < 3", "x < 1.5"),
    ];
    for (one, other) in same {
        let run = |filter| db.run(&format!("select *, ctid from f where {filter} order by a"));
        let (one, other) = (run(one), run(other));
        assert!(one == other && !one.is_empty(), "{one}\n{other}");
    }
}
