//! What mentions a table's row type in an expression depends on it. The answers are PostgreSQL 18's.

use crate::support::Database;

#[test]
fn what_mentions_a_row_type_goes_with_its_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE TABLE u (a int, d text DEFAULT (NULL::t)::text, g bool GENERATED ALWAYS AS (NULL::t[] IS NULL) STORED, CONSTRAINT c CHECK (NULL::t IS NULL))",
        "CREATE VIEW v AS SELECT NULL::t AS r",
        "CREATE VIEW w AS SELECT '{}'::t[] AS r",
        "CREATE INDEX i ON u (a) WHERE NULL::t IS NULL",
        "CREATE INDEX j ON u (((ROW(a)::t) IS NULL))",
    ]);
    s.check(&[
        (
            "DROP TABLE t",
            "2BP01 cannot drop table t because other objects depend on it\ncolumn g of table u depends on type t[]\nview w depends on type t[]\n\
             default value for column d of table u depends on type t\nconstraint c on table u depends on type t\nview v depends on type t\n\
             index i depends on type t\nindex j depends on type t",
        ),
        ("DROP TABLE t CASCADE", "NOTICE 00000 drop cascades to 7 other objects"),
        ("INSERT INTO u VALUES (1) RETURNING *", "1|~"),
        ("SELECT count(*) FROM pg_class WHERE relname IN ('v', 'w', 'i', 'j')", "0"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}
