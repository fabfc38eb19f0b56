//! Constraints hold for rows that ALTER TABLE has written, and from when it says so for what others write. The answers are PostgreSQL 18's.

use crate::support::{Database, waiting};

#[test]
fn constraints_of_a_new_column_are_asked_of_its_values() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (2)",
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)",
        "CREATE DOMAIN d AS int NOT NULL; CREATE DOMAIN e AS int CHECK (value > 5)",
    ]);
    let violated = |name: &str| {
        format!("23514 check constraint \"{name}\" of relation \"t\" is violated by some row")
    };
    s.check(&[
        ("ALTER TABLE t ADD c int DEFAULT (random() * 5 + 1)::int CHECK (c < 0)", &violated("t_c_check")),
        ("ALTER TABLE t ADD c int GENERATED ALWAYS AS (a * 2) STORED CHECK (c < 4)", &violated("t_c_check")),
        ("ALTER TABLE t ADD c int GENERATED ALWAYS AS (a * 2) VIRTUAL CHECK (c < 4)", &violated("t_c_check")),
        ("ALTER TABLE t ADD c int DEFAULT 3 CHECK (c < 3)", &violated("t_c_check")),
        (
            "ALTER TABLE t ADD c int GENERATED ALWAYS AS (a * 2) STORED REFERENCES p",
            "23503 insert or update on table \"t\" violates foreign key constraint \"t_c_fkey\"\nKey (c)=(4) is not present in table \"p\".",
        ),
        (
            "ALTER TABLE t ADD c int GENERATED ALWAYS AS (nullif(a, 2)) STORED NOT NULL",
            "23502 column \"c\" of relation \"t\" contains null values",
        ),
        ("ALTER TABLE t ADD c d", "23502 domain d does not allow null values"),
        ("ALTER TABLE t ADD c e DEFAULT 3", "23514 value for domain e violates check constraint \"e_check\""),
        ("ALTER TABLE t ADD c int GENERATED ALWAYS AS (a * 2) STORED UNIQUE CHECK (c < 5), ADD d serial PRIMARY KEY", ""),
        ("SELECT * FROM t ORDER BY a", "1|2|1\n2|4|2"),
    ]);
}

#[test]
fn a_conversion_makes_no_nulls_where_there_are_none() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int NOT NULL, b int PRIMARY KEY, c int CONSTRAINT n NOT NULL)",
        "ALTER TABLE t ALTER c DROP NOT NULL; INSERT INTO t VALUES (1, 1, NULL); ALTER TABLE t ADD CONSTRAINT n NOT NULL c NOT VALID",
    ]);
    s.check(&[
        (
            "ALTER TABLE t ALTER a TYPE text USING NULL",
            "23502 column \"a\" of relation \"t\" contains null values",
        ),
        (
            "ALTER TABLE t ALTER b TYPE bigint USING nullif(b, 1)",
            "23502 column \"b\" of relation \"t\" contains null values",
        ),
        ("ALTER TABLE t ALTER c TYPE text", ""),
        ("SELECT * FROM t WHERE c IS NULL", "1|1|~"),
    ]);
}

#[test]
fn what_is_enforced_later_is_asked_of_who_writes_the_other_table() {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1)",
        "CREATE TABLE c (a int CONSTRAINT fk REFERENCES p NOT ENFORCED); INSERT INTO c VALUES (1)",
    ]);
    let said = waiting(&db, "DELETE FROM p", "ALTER TABLE c ALTER CONSTRAINT fk ENFORCED");
    assert_eq!(
        said,
        "23503 insert or update on table \"c\" violates foreign key constraint \"fk\"\nKey (a)=(1) is not present in table \"p\"."
    );
}

#[test]
fn an_identity_columns_sequence_stays() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, b text, v int GENERATED ALWAYS AS (1))"]);
    s.check(&[
        (
            "DROP SEQUENCE t_a_seq",
            "2BP01 cannot drop sequence t_a_seq because column a of table t requires it",
        ),
        (
            "DROP SEQUENCE t_a_seq CASCADE",
            "2BP01 cannot drop sequence t_a_seq because column a of table t requires it",
        ),
        ("INSERT INTO t DEFAULT VALUES RETURNING a", "1"),
        (
            "ALTER TABLE t ALTER b ADD GENERATED ALWAYS AS IDENTITY",
            "22023 identity column type must be smallint, integer, or bigint",
        ),
        (
            "ALTER TABLE t ALTER v SET STATISTICS 5",
            "0A000 cannot alter statistics on virtual generated column \"v\"",
        ),
        ("ALTER TABLE t SET TABLESPACE x", "42704 tablespace \"x\" does not exist"),
    ]);
}

#[test]
fn keys_that_cannot_be_made() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int NOT NULL, b oid); CREATE UNIQUE INDEX i ON t (a); CREATE TABLE taken ()"]);
    s.check(&[
        (
            "ALTER TABLE t ADD CONSTRAINT taken UNIQUE USING INDEX i",
            "42P07 relation \"taken\" already exists",
        ),
        (
            "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES pg_class (oid)",
            "42501 permission denied: \"pg_class\" is a system catalog",
        ),
    ]);
}
