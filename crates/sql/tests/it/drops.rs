//! What goes with what is dropped, in which order, and what is said of it.

use crate::support::{Database, waiting};

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

/// It is there from the beginning, and dropped more often than any other.
#[test]
fn public_goes_with_what_is_in_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a serial PRIMARY KEY, b text)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TYPE e AS ENUM ('a')",
        "CREATE DOMAIN d AS int",
        "CREATE STATISTICS st ON a, b FROM t",
        "CREATE SCHEMA o",
        "CREATE TABLE o.x (k int, a e)",
    ]);
    let refused = s.run("DROP SCHEMA public");
    assert!(refused.starts_with("2BP01") && refused.contains("table t depends on"), "{refused}");
    s.run_each(&["DROP SCHEMA public CASCADE"]);
    s.check(&[
        ("SELECT count(*) FROM pg_class WHERE relname IN ('t', 'v', 't_pkey', 't_a_seq')", "0"),
        ("SELECT count(*) FROM pg_type WHERE typname IN ('e', '_e', 'd', 't')", "0"),
        ("SELECT count(*) FROM pg_statistic_ext", "0"),
        ("SELECT * FROM o.x", ""),
    ]);
    s.run_each(&["CREATE SCHEMA public", "CREATE TABLE t (a int)", "SELECT * FROM t"]);
}

/// Who makes something in it holds it, as any other schema.
#[test]
fn public_stays_for_who_is_making_something_in_it() {
    let db = Database::new();
    let said = waiting(&db, "CREATE TABLE t (a int)", "DROP SCHEMA public");
    assert!(said.starts_with("2BP01"), "{said}");
}

#[test]
fn a_schema_goes_with_the_extensions_in_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SCHEMA x", "CREATE EXTENSION pg_buffercache SCHEMA x"]);
    let refused = s.run("DROP SCHEMA x");
    assert!(refused.contains("extension pg_buffercache depends on schema x"), "{refused}");
    s.run_each(&["DROP SCHEMA x CASCADE"]);
    s.check(&[
        ("SELECT extname FROM pg_extension", "plpgsql"),
        ("SELECT count(*) FROM pg_proc WHERE proname = 'pg_buffercache_pages'", "0"),
        ("SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_buffercache%'", "0"),
    ]);
    s.run_each(&["CREATE EXTENSION pg_buffercache", "DROP EXTENSION pg_buffercache"]);
}

/// Wherever a view's query names a column, the column stays.
#[test]
fn views_depend_on_every_column_they_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE u (x int, y int)"]);
    for query in [
        "SELECT g FROM t, generate_series(1, t.a) g",
        "SELECT (SELECT max(u.x) FROM u WHERE u.y = t.a) FROM t",
        "SELECT DISTINCT ON (a) b FROM t",
        "SELECT row_number() OVER w FROM t WINDOW w AS (PARTITION BY a)",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "SELECT t.b FROM t, LATERAL (SELECT t.a OFFSET 0) z",
        "SELECT b FROM t WHERE EXISTS (SELECT FROM u WHERE u.x = t.b AND EXISTS (SELECT FROM u v WHERE v.y = t.a))",
        "SELECT b FROM t WHERE b IN (VALUES (t.a), (3))",
        "SELECT j.a FROM (t JOIN u ON t.b = u.x) j",
        "SELECT u.x FROM u FULL JOIN t USING (x, y) WHERE t.a > 1",
        "SELECT count(*) FROM t GROUP BY GROUPING SETS ((a), (b))",
        "WITH w AS (SELECT a FROM t) SELECT 1 FROM w",
    ] {
        s.run_each(&["CREATE TABLE t (a int, b int, x int, y int)"]);
        s.run_each(&[&format!("CREATE VIEW v AS {query}")]);
        let refused = s.run("ALTER TABLE t DROP COLUMN a");
        assert!(refused.contains("view v depends on column a of table t"), "{query}: {refused}");
        s.run_each(&["DROP VIEW v", "DROP TABLE t"]);
    }
    // And on no other.
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c int)",
        "CREATE VIEW v AS SELECT t.a FROM t JOIN u ON t.b = u.x",
        "ALTER TABLE t DROP COLUMN c",
        "ALTER TABLE u DROP COLUMN y",
    ]);
    s.check(&[("SELECT * FROM v", "")]);
}

#[test]
fn views_depend_on_types_wherever_they_are_named() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a text)"]);
    for query in [
        "SELECT * FROM (VALUES ('x'::e)) q(c)",
        "SELECT a FROM t LIMIT (CASE WHEN 'x'::e = 'x'::e THEN 1 END)",
        "SELECT a FROM t, unnest(ARRAY['x']::e[]) u",
    ] {
        s.run_each(&["CREATE TYPE e AS ENUM ('x')", &format!("CREATE VIEW v AS {query}")]);
        let refused = s.run("DROP TYPE e");
        assert!(refused.contains("view v depends on type e"), "{query}: {refused}");
        s.run_each(&["DROP TYPE e CASCADE"]);
        s.check(&[("SELECT count(*) FROM pg_views WHERE viewname = 'v'", "0")]);
    }
    s.run_each(&["CREATE SEQUENCE q", "CREATE TABLE c (a int CHECK (a < nextval('q')))"]);
    let refused = s.run("DROP SEQUENCE q");
    assert!(refused.contains("constraint c_a_check on table c depends on sequence q"), "{refused}");
}

/// What goes with something else is looked at as what is named: a cursor would read on in files that are gone.
#[test]
fn what_is_in_use_does_not_go_with_its_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (a int)",
        "INSERT INTO s.t VALUES (1), (2)",
        "CREATE TABLE s.p (a int PRIMARY KEY)",
        "CREATE TABLE s.f (a int REFERENCES s.p DEFERRABLE INITIALLY DEFERRED)",
        "CREATE MATERIALIZED VIEW m AS SELECT 1 AS a",
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT * FROM s.t",
        "FETCH c",
    ]);
    let refused = s.run("DROP SCHEMA s CASCADE");
    assert!(
        refused.contains("55006 cannot DROP TABLE \"t\" because it is being used"),
        "{refused}"
    );
    s.run_each(&["ROLLBACK", "BEGIN", "INSERT INTO s.f VALUES (1)"]);
    let refused = s.run("DROP SCHEMA s CASCADE");
    assert!(refused.contains("because it has pending trigger events"), "{refused}");
    s.run_each(&["ROLLBACK", "BEGIN", "DECLARE c CURSOR FOR SELECT * FROM m", "FETCH c"]);
    let refused = s.run("REFRESH MATERIALIZED VIEW m");
    assert!(refused.starts_with("55006"), "{refused}");
    s.run_each(&["ROLLBACK", "DROP SCHEMA s CASCADE"]);
}

#[test]
fn comments_on_what_databases_share_go_with_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DATABASE d",
        "COMMENT ON DATABASE d IS 'gone'",
        "CREATE ROLE r",
        "COMMENT ON ROLE r IS 'gone'",
        "DROP DATABASE d",
        "DROP ROLE r",
    ]);
    s.check(&[("SELECT count(*) FROM pg_shdescription WHERE description = 'gone'", "0")]);
}

/// A generated column goes as by `DROP COLUMN`: with the views, indexes, keys, checks and statistics that read it.
#[test]
fn a_generated_column_takes_with_it_what_reads_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL, c int, CHECK (b < 50), \
         d int GENERATED ALWAYS AS (a + c) STORED, CHECK (d > 0), CHECK (b < c), UNIQUE (d, c))",
        "CREATE INDEX ON g (d)",
        "CREATE INDEX ON g ((d + 1))",
        "CREATE INDEX ON g (c) WHERE d > 5",
        "CREATE INDEX kept ON g (c)",
        "CREATE STATISTICS ON c, d FROM g",
        "CREATE VIEW reads_b AS SELECT b FROM g",
        "CREATE VIEW reads_d AS SELECT d FROM g",
        "CREATE TABLE f (x int, y int, FOREIGN KEY (x, y) REFERENCES g (d, c))",
    ]);
    s.check(&[
        (
            "ALTER TABLE g DROP COLUMN a",
            "2BP01 cannot drop column a of table g because other objects depend on it\n\
             column b of table g depends on column a of table g\n\
             view reads_b depends on column b of table g\n\
             column d of table g depends on column a of table g\n\
             view reads_d depends on column d of table g\n\
             constraint f_x_y_fkey on table f depends on column d of table g",
        ),
        ("ALTER TABLE g DROP COLUMN a CASCADE", "NOTICE 00000 drop cascades to 5 other objects"),
        ("INSERT INTO g VALUES (5) RETURNING *", "5"),
        (
            "SELECT relname FROM pg_class WHERE relname IN ('reads_b', 'reads_d') \
             UNION ALL SELECT conname FROM pg_constraint WHERE conrelid IN ('g'::regclass, 'f'::regclass) \
             UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'g'::regclass \
             UNION ALL SELECT stxname FROM pg_statistic_ext",
            "kept",
        ),
        (
            "SELECT count(*) FROM pg_depend WHERE refobjid = 'g'::regclass AND refobjsubid IN (1, 2, 4)",
            "0",
        ),
        ("SELECT count(*) FROM pg_attrdef WHERE adrelid = 'g'::regclass", "0"),
    ]);
}

#[test]
fn what_is_in_no_schema_is_not_there() {
    let db = Database::new();
    let mut s = db.session();
    for kind in ["TABLE", "VIEW", "MATERIALIZED VIEW", "INDEX", "SEQUENCE", "TYPE", "DOMAIN"] {
        for schema in ["pg_temp", "nosuch"] {
            let refused = format!("3F000 schema \"{schema}\" does not exist");
            let skipped = format!("NOTICE 00000 schema \"{schema}\" does not exist, skipping");
            s.check(&[
                (&format!("DROP {kind} {schema}.x"), &refused),
                (&format!("DROP {kind} IF EXISTS {schema}.x"), &skipped),
            ]);
        }
    }
    s.check(&[
        ("ALTER TABLE pg_temp.x ADD a int", "3F000 schema \"pg_temp\" does not exist"),
        ("TRUNCATE nosuch.x", "3F000 schema \"nosuch\" does not exist"),
        ("SELECT 'nosuch.x'::regtype", "3F000 schema \"nosuch\" does not exist"),
        ("SELECT 'public.nosuch'::regtype", "42704 type \"public.nosuch\" does not exist"),
        ("SELECT to_regtype('nosuch.x') IS NULL", "t"),
        ("COMMENT ON TABLE nosuch.x IS 'y'", "3F000 schema \"nosuch\" does not exist"),
        ("SELECT * FROM pg_temp.x", "42P01 relation \"pg_temp.x\" does not exist"),
    ]);
}
