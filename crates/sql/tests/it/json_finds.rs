//! What reading SQL/JSON line by line found, where a session is needed.

use crate::support::Database;

/// What is nested is analysed once, not twice at each level: forty levels, or thirty, would never end.
#[test]
fn nested_constructors_are_analysed_once() {
    // As much stack as a session's thread has.
    let thread =
        std::thread::Builder::new().stack_size(16 << 20).spawn(nested_constructors).unwrap();
    thread.join().unwrap();
}

fn nested_constructors() {
    let db = Database::new();
    let mut s = db.session();
    for (first, last, times, length) in [
        ("(SELECT JSON_ARRAYAGG(", "))", 40, "81"),
        ("(SELECT JSON_OBJECTAGG('k': ", "))", 40, "401"),
        ("JSON_ARRAY(SELECT ", ")", 30, "61"),
    ] {
        let sql = format!("SELECT length(({}1{})::text)", first.repeat(times), last.repeat(times));
        s.check(&[(&sql, length)]);
    }
    s.check(&[
        ("SELECT pg_typeof(JSON_ARRAYAGG(x)) FROM (VALUES ('1'::jsonb)) t (x)", "jsonb"),
        ("SELECT pg_typeof(JSON_OBJECTAGG('a': x)) FROM (VALUES ('1'::jsonb)) t (x)", "jsonb"),
        ("SELECT pg_typeof(JSON_OBJECTAGG('a': x)) FROM (VALUES ('1'::json)) t (x)", "json"),
        ("SELECT JSON_ARRAY(SELECT 1, 2)", "42601 subquery must return only one column"),
        ("SELECT JSON_ARRAY(SELECT * FROM (VALUES (1)) t)", "[1]"),
        (
            "SELECT JSON_ARRAY(SELECT * FROM (VALUES (1, 2)) t)",
            "42601 subquery must return only one column",
        ),
    ]);
}
