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
