//! What goes with what is dropped, in which order, and what is said of it.

use crate::support::Database;

#[test]
fn a_schema_goes_with_all_that_uses_its_types() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SCHEMA s",
        "CREATE DOMAIN s.d AS int CHECK (VALUE > 0)",
        "CREATE TYPE s.e AS ENUM ('a', 'b')",
        "CREATE TABLE s.t (x s.d PRIMARY KEY, y s.e, z s.d[])",
        "CREATE TABLE kept (k int, x s.d)",
        "CREATE VIEW s.v AS SELECT x, y FROM s.t",
        "CREATE VIEW outside AS SELECT x FROM s.v",
        "DROP SCHEMA s CASCADE",
    ]);
    s.check(&[
        ("SELECT count(*) FROM pg_class WHERE relname IN ('t', 'v', 'outside', 't_pkey')", "0"),
        ("SELECT count(*) FROM pg_type WHERE typname IN ('d', '_d', 'e', '_e')", "0"),
        ("SELECT string_agg(attname, ',') FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attnum > 0 AND NOT attisdropped", "k"),
    ]);
}

#[test]
fn what_is_named_itself_stands_in_nobodys_way() {
    let db = Database::new();
    let mut s = db.session();
    let made = [
        "CREATE TABLE t (x int PRIMARY KEY)",
        "CREATE TABLE u (x int REFERENCES t)",
        "CREATE VIEW w AS SELECT x FROM t",
        "CREATE VIEW over_w AS SELECT x FROM w",
    ];
    for views in ["w, over_w", "over_w, w"] {
        for tables in ["t, u", "u, t"] {
            s.run_each(&made);
            let refused = s.run(&format!("DROP TABLE {tables}"));
            assert!(
                refused.starts_with("2BP01") && refused.contains("view w depends on table t"),
                "{refused}"
            );
            let refused = s.run("DROP VIEW w");
            assert!(refused.contains("view over_w depends on view w"), "{refused}");
            s.run_each(&[&format!("DROP VIEW {views}"), &format!("DROP TABLE {tables}")]);
        }
    }
}

/// Views over views are told of, each after what it is over, and what is older first.
#[test]
fn cascades_tell_of_views_over_views() {
    let db = Database::new();
    let mut s = db.session();
    let table = [
        "CREATE TABLE t (a int, b text)",
        "CREATE VIEW v1 AS SELECT * FROM t",
        "CREATE VIEW v2 AS SELECT * FROM v1",
    ];
    s.run_each(&table);
    let both = "NOTICE 00000 drop cascades to 2 other objects";
    s.check(&[
        (
            "DROP TABLE t",
            "2BP01 cannot drop table t because other objects depend on it\nview v1 depends on table t\nview v2 depends on view v1",
        ),
        (
            "ALTER TABLE t DROP b",
            "2BP01 cannot drop column b of table t because other objects depend on it\nview v1 depends on column b of table t\nview v2 depends on view v1",
        ),
        ("DROP VIEW v1", "2BP01 cannot drop view v1 because other objects depend on it\nview v2 depends on view v1"),
        ("ALTER TABLE t DROP b CASCADE", both),
        ("SELECT count(*) FROM pg_views WHERE schemaname = 'public'", "0"),
        ("DROP TABLE t", ""),
    ]);
    s.run_each(&table);
    s.run_each(&[
        "CREATE SCHEMA s",
        "CREATE TABLE s.x (i int)",
        "CREATE VIEW s.y AS SELECT * FROM s.x",
        "CREATE VIEW s.z AS SELECT * FROM s.y",
        "CREATE SEQUENCE s.q",
        "CREATE VIEW over_z AS SELECT * FROM s.z",
    ]);
    s.check(&[
        ("DROP TABLE t CASCADE", both),
        (
            "DROP SCHEMA s",
            "2BP01 cannot drop schema s because other objects depend on it\ntable s.x depends on schema s\nview s.y depends on schema s\nview s.z depends on schema s\nview over_z depends on view s.z\nsequence s.q depends on schema s",
        ),
        ("DROP SCHEMA s CASCADE", "NOTICE 00000 drop cascades to 5 other objects"),
        (
            "SELECT count(*) FROM pg_views WHERE schemaname IN ('public', 's')",
            "0",
        ),
        ("SELECT count(*) FROM pg_rewrite WHERE oid >= 16384", "0"),
        ("SELECT count(*) FROM pg_depend WHERE classid = 'pg_rewrite'::regclass AND objid >= 16384", "0"),
    ]);
}

#[test]
fn a_key_goes_with_a_column_that_it_only_carries_along() {
    let db = Database::new();
    let mut s = db.session();
    let left = "SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype <> 'n'";
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c text, d int, PRIMARY KEY (a) INCLUDE (c), CONSTRAINT pair UNIQUE (a, b) INCLUDE (c, d))",
        "CREATE UNIQUE INDEX made ON t (d) INCLUDE (c); ALTER TABLE t ADD CONSTRAINT made UNIQUE USING INDEX made",
        "CREATE TABLE like_t (LIKE t INCLUDING INDEXES)",
        "INSERT INTO t VALUES (1, 2, 'three', 4)",
        "ALTER TABLE t DROP COLUMN c",
    ]);
    s.check(&[
        (left, "~"),
        ("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass", "0"),
        ("INSERT INTO t VALUES (1, 2, 4) RETURNING *", "1|2|4"),
        ("ALTER TABLE like_t DROP COLUMN d; SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'like_t'::regclass", "like_t_pkey"),
    ]);
}

#[test]
fn an_index_is_named_by_its_columns_as_it_tells_them_apart() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int); CREATE INDEX ON t (a, b) INCLUDE (a, b)"]);
    s.check(&[
        ("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass", "t_a_b_a1_b1_idx"),
        (
            "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 't_a_b_a1_b1_idx'::regclass",
            "a,b,a1,b1",
        ),
    ]);
}

#[test]
fn a_sequence_that_went_with_its_table_is_not_of_the_schema_of_before() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SCHEMA here; CREATE SCHEMA there",
        "CREATE TABLE here.t (a serial, b int GENERATED ALWAYS AS IDENTITY, c text)",
        "ALTER TABLE here.t SET SCHEMA there",
    ]);
    s.check(&[
        ("DROP SCHEMA here", ""),
        ("INSERT INTO there.t (c) VALUES ('x') RETURNING *", "1|1|x"),
        (
            "DROP SCHEMA there",
            "2BP01 cannot drop schema there because other objects depend on it\ntable there.t depends on schema there",
        ),
        ("DROP TABLE there.t; DROP SCHEMA there", ""),
    ]);
}
