//! What reading SQL/JSON line by line found, where a session is needed.

use crate::support::Database;

/// What is nested is analysed once, not twice at each level: forty levels would never end.
#[test]
fn nested_constructors_are_analysed_once() {
    let db = Database::new();
    let mut s = db.session();
    for (first, last) in [
        ("(SELECT JSON_ARRAYAGG(", "))"),
        ("(SELECT JSON_OBJECTAGG('k': ", "))"),
        ("JSON_ARRAY(SELECT ", ")"),
    ] {
        let sql = format!("SELECT length(({}1{})::text)", first.repeat(40), last.repeat(40));
        let length: usize = s.run(&sql).parse().unwrap();
        assert!(length >= 81, "{first} {length}");
    }
    s.check(&[
        ("SELECT pg_typeof(JSON_ARRAYAGG(x)) FROM (VALUES ('1'::jsonb)) t (x)", "jsonb"),
        ("SELECT pg_typeof(JSON_OBJECTAGG('a': x)) FROM (VALUES ('1'::jsonb)) t (x)", "jsonb"),
        ("SELECT pg_typeof(JSON_OBJECTAGG('a': x)) FROM (VALUES ('1'::json)) t (x)", "json"),
        ("SELECT JSON_ARRAY(SELECT)", "42601 subquery must return only one column"),
        ("SELECT JSON_ARRAY(SELECT 1, 2)", "42601 subquery must return only one column"),
        ("SELECT JSON_ARRAY(SELECT * FROM (VALUES (1)) t)", "[1]"),
        (
            "SELECT JSON_ARRAY(SELECT * FROM (VALUES (1, 2)) t)",
            "42601 subquery must return only one column",
        ),
    ]);
}
