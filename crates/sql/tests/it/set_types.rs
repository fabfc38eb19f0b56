//! Set operations within set operations, of other types: which rows are equal the inner one says. The answers are PostgreSQL 18's.

use crate::support::Database;

#[test]
fn rows_are_compared_by_the_types_that_a_set_operation_has_itself() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        // As floats the two would be one.
        ("(SELECT 16777217 UNION SELECT 16777216) UNION ALL SELECT 1::float4 ORDER BY 1", "1\n1.6777216e+07\n1.6777216e+07"),
        ("(SELECT 16777217 EXCEPT SELECT 16777216) UNION ALL SELECT 1::float4 ORDER BY 1", "1\n1.6777216e+07"),
        ("(SELECT 16777217 INTERSECT SELECT 16777216) UNION ALL SELECT 1::float4", "1"),
        ("(SELECT 16777217 UNION SELECT 16777216) UNION SELECT 1::float4 ORDER BY 1", "1\n1.6777216e+07"),
        ("(SELECT 16777217 INTERSECT ALL SELECT 16777216) UNION ALL SELECT 1::float4", "1"),
        ("SELECT 1::float8 UNION ALL (SELECT 9007199254740993 EXCEPT SELECT 9007199254740992) ORDER BY 1", "1\n9.007199254740992e+15"),
        ("((SELECT 16777217 UNION SELECT 16777216) UNION ALL SELECT 1::float4) EXCEPT ALL SELECT 2::float8 ORDER BY 1", "1\n16777216\n16777216"),
        // All of a UNION ALL are as its own type has them first.
        ("(SELECT 16777217 UNION ALL SELECT 1::float4) UNION SELECT 2::float8 ORDER BY 1", "1\n2\n16777216"),
        ("SELECT x FROM ((SELECT 16777217 UNION SELECT 16777216) UNION ALL SELECT 1::float4) z(x) WHERE x > 5 ORDER BY x", "1.6777216e+07\n1.6777216e+07"),
        ("SELECT count(*) FROM ((SELECT 16777217 UNION SELECT 16777216) UNION SELECT 1::float4) z(x) WHERE x = 16777216", "1"),
        ("(SELECT 'a ' UNION SELECT 'a'::char(3)) UNION ALL SELECT 'b'::text ORDER BY 1", "a \nb"),
        ("(SELECT NULL UNION SELECT NULL) UNION ALL SELECT 1 ORDER BY 1", "42804 UNION types text and integer cannot be matched"),
        ("(SELECT 1 UNION SELECT NULL) UNION ALL SELECT 2.5 ORDER BY 1", "1\n2.5\n~"),
        ("SELECT pg_typeof(x) FROM ((SELECT 1 UNION SELECT NULL) UNION ALL SELECT 2.5) z(x) LIMIT 1", "numeric"),
    ]);
    s.run_each(&[
        "CREATE VIEW v AS (SELECT 16777217 AS x UNION SELECT 16777216) UNION ALL SELECT 1::real",
    ]);
    s.check(&[
        ("SELECT x FROM v ORDER BY x", "1\n1.6777216e+07\n1.6777216e+07"),
        (
            "SELECT pg_get_viewdef('v')",
            "(\n         SELECT 16777217 AS x\n        UNION\n         SELECT 16777216 AS x\n) UNION ALL\n SELECT (1)::real AS x;",
        ),
    ]);
}
