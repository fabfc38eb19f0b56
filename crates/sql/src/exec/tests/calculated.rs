//! What is calculated and compared without calls is what the functions of `pg_proc` give.

use super::db::Db;

#[track_caller]
fn check(db: &Db, list: &[(&str, &str)]) {
    for (e, want) in list {
        let got = db.run(&format!("select {e} from one"));
        assert_eq!(got, *want, "{e}");
    }
}

#[test]
fn floats() {
    let db = Db::new();
    db.create("one", "x float8, y float8, n float8", &[]);
    db.run("insert into one values (3, 1e308, null)");
    check(
        &db,
        &[
            ("x + 1.5::float8, x - 5, x * x, x / 2", "4.5|-2|9|1.5"),
            ("x + n, n * x, n / 0, n - n", "~|~|~|~"),
            ("x * x + sqrt(x + 1) / 2 - x", "7"),
            ("y * 10", "22003 value out of range: overflow"),
            ("y + y", "22003 value out of range: overflow"),
            ("-y - y", "22003 value out of range: overflow"),
            ("(1 / y) / y", "22003 value out of range: underflow"),
            ("(1 / y) * (1 / y)", "22003 value out of range: underflow"),
            ("x / 0", "22012 division by zero"),
            ("x / (x - 3)", "22012 division by zero"),
            ("'NaN'::float8 / (x - 3)", "NaN"),
            ("'Infinity'::float8 * x, x / 'Infinity'::float8", "Infinity|0"),
            ("x - 'Infinity'::float8, 0 * x, (x - x) * -1", "-Infinity|0|-0"),
            ("x * 2 > 5, x + n > 0, 'NaN'::float8 + x > y", "t|~|t"),
        ],
    );
}

#[test]
fn null_if_and_rows() {
    let db = Db::new();
    db.create("one", "a int4, b int8, t text, d numeric, n int4", &[]);
    db.run("insert into one values (3, 4, 'x', 1.50, null)");
    check(
        &db,
        &[
            ("nullif(a, 3), nullif(a, 4), nullif(a, b - 1), nullif(a, n)", "~|3|~|3"),
            ("nullif(n, 3), nullif(n, n), nullif(t, 'x'), nullif(t, 'y')", "~|~|~|x"),
            ("nullif(d, 1.5), nullif(d, 2), nullif(a + 1, 4), nullif(b, a)", "~|1.50|~|4"),
            ("(a, b) > (3, 3), (a, b) > (3, 4), (a, b) >= (3, 4), (a, b) < (2, 9)", "t|f|t|f"),
            ("(a, n) > (3, 1), (a, n) > (2, 1), (n, a) < (1, 1), (t, a) < ('y', 1)", "~|t|~|t"),
            ("(b, d) < (4::int8, 2), (d, t) > (1.5, 'a'), (a + 0, b) <= (3, 4)", "t|t|t"),
        ],
    );
}
