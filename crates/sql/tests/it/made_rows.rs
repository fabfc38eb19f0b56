//! Rows that stored expressions make, after their type got, or lost, a column, or gave it another name. The answers are PostgreSQL 18's.

use crate::support::Database;

#[test]
fn rows_in_stored_expressions_are_what_their_type_is_by_now() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TYPE t AS (a int, b text)",
        "CREATE TABLE k (id int, r t DEFAULT ROW(1, 'd'), s t[] DEFAULT ARRAY['(2,e)'::t], x text DEFAULT (ROW(3, 'f')::t)::text)",
        "CREATE VIEW v AS SELECT '(1,lit)'::t AS l, ROW(id, 'made')::t AS m, (ROW(id, 'x')::t).b AS f FROM k",
        "CREATE INDEX i ON k ((ROW(id, 'i')::t))",
        "INSERT INTO k (id) VALUES (1)",
    ]);
    s.check(&[
        ("ALTER TYPE t ADD ATTRIBUTE c int", ""),
        ("INSERT INTO k (id) VALUES (2)", ""),
        (
            "SELECT * FROM k ORDER BY id",
            "1|(1,d,)|{\"(2,e,)\"}|(3,f)\n2|(1,d,)|{\"(2,e,)\"}|(3,f,)",
        ),
        ("SELECT * FROM v LIMIT 1", "(1,lit,)|(1,made,)|x"),
        ("SELECT (l).c, to_jsonb(m) FROM v LIMIT 1", "~|{\"a\": 1, \"b\": \"made\", \"c\": null}"),
        ("ALTER TYPE t RENAME ATTRIBUTE b TO bb", ""),
        ("SELECT to_jsonb(l), f FROM v LIMIT 1", "{\"a\": 1, \"c\": null, \"bb\": \"lit\"}|x"),
        ("SET enable_seqscan = off", ""),
        (
            "SELECT id FROM k WHERE ROW(id, 'i')::t = ROW(2, 'i', NULL)::t",
            "42846 cannot cast type record to t\nInput has too few columns.",
        ),
        ("SELECT id FROM k WHERE ROW(id, 'i', NULL)::t = ROW(2, 'i', NULL)::t", "2"),
        ("ALTER TYPE t DROP ATTRIBUTE a", "0A000 cannot alter type \"t\" because index i uses it"),
        ("DROP INDEX i", ""),
        ("ALTER TYPE t DROP ATTRIBUTE a", ""),
        ("INSERT INTO k (id) VALUES (3)", ""),
        (
            "SELECT * FROM k ORDER BY id",
            "1|(d,)|{\"(e,)\"}|(3,f)\n2|(d,)|{\"(e,)\"}|(3,f,)\n3|(d,)|{\"(e,)\"}|(f,)",
        ),
        ("SELECT * FROM v LIMIT 1", "(lit,)|(made,)|x"),
        (
            "ALTER TYPE t ALTER ATTRIBUTE c TYPE text",
            "0A000 cannot alter type \"t\" because column \"k.s\" uses it",
        ),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// What has no rows of the type, but makes some, would have fields of another type.
#[test]
fn what_makes_rows_keeps_their_fields_types() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TYPE t AS (a int, b text)",
        "CREATE TYPE u AS (t t, c int)",
        "CREATE TABLE k (x text DEFAULT (ROW(ROW(3, 'f'), 4)::u)::text)",
    ]);
    let needed =
        "0A000 cannot alter type \"t\" because default value for column x of table k uses it";
    s.check(&[
        ("ALTER TYPE t ALTER ATTRIBUTE a TYPE bigint", needed),
        ("ALTER TABLE k ALTER x DROP DEFAULT", ""),
        ("CREATE VIEW v AS SELECT (NULL::t).a AS a", ""),
        (
            "ALTER TYPE t ALTER ATTRIBUTE a TYPE bigint",
            "0A000 cannot alter type of a column used by a view or rule\nrule _RETURN on view v depends on column \"a\"",
        ),
        ("DROP VIEW v", ""),
        ("ALTER TABLE k ALTER x SET DEFAULT ((NULL::u).t).a::text", ""),
        (
            "ALTER TYPE t ALTER ATTRIBUTE a TYPE bigint",
            "0A000 cannot alter type \"t\" because default value for column x of table k uses its attribute",
        ),
        ("ALTER TABLE k ALTER x DROP DEFAULT", ""),
        ("CREATE VIEW w AS SELECT ROW(1, 'x')::t AS r", ""),
        ("ALTER TYPE t ALTER ATTRIBUTE b TYPE varchar", "0A000 cannot alter type \"t\" because view w uses it"),
        ("DROP VIEW w", ""),
        ("ALTER TYPE t ALTER ATTRIBUTE a TYPE bigint", ""),
        ("SELECT ROW(ROW(5000000000, 'x'), 1)::u", "(\"(5000000000,x)\",1)"),
    ]);
}
