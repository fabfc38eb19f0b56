//! Domains: what their values may be, when that changes, and what is left of them over a crash.

use crate::support::Database;

#[test]
fn values_that_are_none_of_the_domains_do_not_get_in() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
        "CREATE DOMAIN evenpos AS posint CONSTRAINT even CHECK (VALUE % 2 = 0)",
        "CREATE DOMAIN code AS varchar(5) NOT NULL DEFAULT 'none' CHECK (VALUE <> 'bad')",
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN good AS mood DEFAULT 'ok' CHECK (VALUE <> 'sad')",
        "CREATE DOMAIN triple AS int[] CHECK (array_length(VALUE, 1) = 3)",
        "CREATE TABLE t (id posint PRIMARY KEY, c code, m good, tr triple, ps posint[])",
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO t VALUES (2, 'abc', DEFAULT, '{1,2,3}', '{1,2}'), (3, DEFAULT, NULL, NULL, ARRAY[5])",
    ]);
    let positive = "23514 value for domain posint violates check constraint \"posint_check\"";
    let not_null = "23502 domain code does not allow null values";
    let triple = "23514 value for domain triple violates check constraint \"triple_check\"";
    a.check(&[
        (
            "SELECT pg_basetype('evenpos'), pg_basetype('code'), pg_basetype('text')",
            "integer|character varying|text",
        ),
        ("SELECT * FROM t ORDER BY id", "1|none|ok|~|~\n2|abc|ok|{1,2,3}|{1,2}\n3|none|~|~|{5}"),
        ("INSERT INTO t (id) VALUES (0)", positive),
        ("INSERT INTO t (id) SELECT g FROM generate_series(-1, 9) g", positive),
        ("INSERT INTO t (id, c) VALUES (5, NULL)", not_null),
        (
            "INSERT INTO t (id, c) VALUES (5, 'bad')",
            "23514 value for domain code violates check constraint \"code_check\"",
        ),
        (
            "INSERT INTO t (id, c) VALUES (5, 'toolong')",
            "22001 value too long for type character varying(5)",
        ),
        (
            "INSERT INTO t (id, m) VALUES (5, 'sad')",
            "23514 value for domain good violates check constraint \"good_check\"",
        ),
        ("INSERT INTO t (id, tr) VALUES (5, '{1,2}')", triple),
        ("INSERT INTO t (id, ps) VALUES (5, ARRAY[1,-1])", positive),
        ("UPDATE t SET id = -id WHERE id = 3", positive),
        ("UPDATE t SET tr[4] = 4 WHERE id = 2", triple),
        ("UPDATE t SET ps[1] = -1 WHERE id = 2", positive),
        ("UPDATE t SET ps[3] = 9, tr[1] = 7 WHERE id = 2 RETURNING ps, tr", "{1,2,9}|{7,2,3}"),
        ("INSERT INTO t (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET id = 0", positive),
        ("SELECT 5::posint, 6::evenpos, 'abcdefgh'::code, ARRAY[1]::posint[]", "5|6|abcde|{1}"),
        ("SELECT '-1'::posint", positive),
        ("SELECT NULL::posint", "~"),
        ("SELECT NULL::code", not_null),
        ("SELECT 5::evenpos", "23514 value for domain evenpos violates check constraint \"even\""),
        (
            "SELECT (-2)::evenpos",
            "23514 value for domain evenpos violates check constraint \"posint_check\"",
        ),
        (
            "SELECT pg_typeof(ps[1]), pg_typeof(ps[1:1]), pg_typeof(ps) FROM t LIMIT 1",
            "posint|posint[]|posint[]",
        ),
        ("SELECT true::posint, 2.6::posint", "1|3"),
        ("SELECT '2020-01-01'::date::posint", "42846 cannot cast type date to posint"),
    ]);
}

#[test]
fn a_value_of_a_domain_is_one_of_its_base() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
        "CREATE DOMAIN code AS varchar(5)",
        "CREATE TABLE t (id posint PRIMARY KEY, c code)",
        "CREATE TABLE u (id int REFERENCES t, t_id posint)",
        "INSERT INTO t SELECT g, 'c' || g % 3 FROM generate_series(1, 300) g",
        "INSERT INTO u SELECT id, id FROM t WHERE id > 290",
        "CREATE INDEX ON t (c)",
        "ANALYZE t",
        "CREATE VIEW v AS SELECT id, c, 5::posint AS five FROM t WHERE id < '3'::posint",
        "SET enable_seqscan = off",
        "CREATE TABLE made AS SELECT id, c || '' AS c FROM t WHERE false",
    ]);
    a.check(&[
        ("SELECT id + 1, upper(c), pg_typeof(id), pg_typeof(id + 1) FROM t WHERE id = 7", "8|C1|posint|integer"),
        ("SELECT c, count(*), max(id) FROM t GROUP BY 1 HAVING c > 'c0' ORDER BY c", "c1|100|298\nc2|100|299"),
        ("SELECT DISTINCT c FROM t ORDER BY c DESC", "c2\nc1\nc0"),
        ("SELECT count(*) FROM t JOIN u ON t.id = u.t_id WHERE t.id = ANY ('{291,299}')", "2"),
        ("SELECT id FROM t UNION SELECT 0 ORDER BY id LIMIT 2", "0\n1"),
        ("WITH w AS (SELECT id AS x FROM t) SELECT pg_typeof(x) FROM w LIMIT 1", "posint"),
        ("SELECT * FROM v ORDER BY id", "1|c1|5\n2|c2|5"),
        (
            "SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attrelid, attnum) FROM pg_attribute \
             WHERE attrelid IN ('v'::regclass, 'made'::regclass) AND attnum > 0",
            "posint,code,posint,posint,text",
        ),
        ("EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 7", "Index Scan using t_pkey on t\n  Index Cond: (id = 7)"),
        ("SELECT n_distinct FROM pg_stats WHERE tablename = 't' AND attname = 'c'", "3"),
        (
            "INSERT INTO made VALUES (0)",
            "23514 value for domain posint violates check constraint \"posint_check\"",
        ),
    ]);
    assert!(db.faults().is_empty(), "{:?}", db.faults());
}

#[test]
fn what_is_altered_holds_for_rows_that_are_there_and_in_other_sessions() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.run_each(&[
        "CREATE DOMAIN d AS int",
        "CREATE DOMAIN e AS d",
        "CREATE TABLE t (x d, y e)",
        "INSERT INTO t VALUES (1, 2)",
    ]);
    b.run_each(&["PREPARE p AS INSERT INTO t (x) VALUES ($1)", "EXECUTE p(3)"]);
    a.check(&[
        (
            "ALTER DOMAIN d ADD CONSTRAINT small CHECK (VALUE < 2)",
            "23514 column \"x\" of table \"t\" contains values that violate the new constraint",
        ),
        ("ALTER DOMAIN d SET NOT NULL", "23502 column \"y\" of table \"t\" contains null values"),
        ("ALTER DOMAIN d ADD CONSTRAINT small CHECK (VALUE < 2) NOT VALID", ""),
        (
            "SELECT pg_get_constraintdef(oid), convalidated FROM pg_constraint WHERE conname = 'small'",
            "CHECK ((VALUE < 2)) NOT VALID|f",
        ),
    ]);
    let small = "23514 value for domain d violates check constraint \"small\"";
    b.check(&[("EXECUTE p(3)", small), ("EXECUTE p(1)", "")]);
    a.run_each(&["DELETE FROM t WHERE x > 1 OR y > 1", "ALTER DOMAIN d VALIDATE CONSTRAINT small"]);
    a.run_each(&["ALTER DOMAIN e SET DEFAULT 1", "ALTER DOMAIN d DROP CONSTRAINT small"]);
    b.check(&[("EXECUTE p(4)", ""), ("SELECT x, y FROM t ORDER BY x", "1|~\n4|1")]);
    a.check(&[
        (
            "ALTER DOMAIN d DROP CONSTRAINT none",
            "42704 constraint \"none\" of domain \"d\" does not exist",
        ),
        (
            "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS none",
            "NOTICE 00000 constraint \"none\" of domain \"d\" does not exist, skipping",
        ),
        (
            "ALTER DOMAIN d VALIDATE CONSTRAINT none",
            "42704 constraint \"none\" of domain \"d\" does not exist",
        ),
    ]);
    // What is rolled back has not been.
    a.run_each(&["BEGIN", "ALTER DOMAIN d ADD CHECK (VALUE > 0)"]);
    a.check(&[
        ("SELECT 0::d", "23514 value for domain d violates check constraint \"d_check\""),
        ("ROLLBACK", ""),
        ("SELECT 0::d", "0"),
        ("ALTER DOMAIN d RENAME TO f", ""),
        ("SELECT pg_typeof(x) FROM t LIMIT 1", "f"),
        (
            "DROP DOMAIN f",
            "2BP01 cannot drop type f because other objects depend on it\n\
             type e depends on type f\ncolumn y of table t depends on type e\ncolumn x of table t depends on type f",
        ),
        ("DROP DOMAIN e CASCADE", "NOTICE 00000 drop cascades to column y of table t"),
        ("SELECT * FROM t ORDER BY x", "1\n4"),
    ]);
}

#[test]
fn columns_become_of_a_domain_and_are_added_with_one() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN nn AS int NOT NULL",
        "CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
        "CREATE TABLE empty (a int)",
        "ALTER TABLE empty ADD COLUMN b nn",
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1), (-1)",
    ]);
    let null = "23502 domain nn does not allow null values";
    let positive = "23514 value for domain posint violates check constraint \"posint_check\"";
    a.check(&[
        ("INSERT INTO empty VALUES (1)", null),
        ("INSERT INTO empty VALUES (1, 2)", ""),
        ("ALTER TABLE t ADD COLUMN b nn", null),
        ("ALTER TABLE t ADD COLUMN b nn DEFAULT 4", ""),
        ("ALTER TABLE t ALTER COLUMN a TYPE posint", positive),
        ("DELETE FROM t WHERE a < 0", ""),
        ("ALTER TABLE t ALTER COLUMN a TYPE posint", ""),
        ("INSERT INTO t VALUES (0)", positive),
        ("ALTER TABLE t ALTER COLUMN a TYPE bigint", ""),
        ("INSERT INTO t VALUES (0)", ""),
        ("SELECT * FROM t ORDER BY a", "0|4\n1|4"),
        ("CREATE TABLE g (a int, b posint GENERATED ALWAYS AS (a * 2) STORED)", ""),
        ("INSERT INTO g VALUES (-4)", positive),
        ("CREATE TABLE l (LIKE t INCLUDING ALL)", ""),
        ("INSERT INTO l VALUES (1, NULL)", null),
        (
            "CREATE TABLE r (a posint REFERENCES k ON DELETE SET DEFAULT DEFAULT 1)",
            "42P01 relation \"k\" does not exist",
        ),
        ("CREATE TABLE k (a nn PRIMARY KEY)", ""),
        ("CREATE TABLE r (a nn REFERENCES k ON DELETE SET NULL)", ""),
        ("INSERT INTO k VALUES (1)", ""),
        ("INSERT INTO r VALUES (1)", ""),
        ("DELETE FROM k", null),
        ("CREATE DOMAIN three AS int[]", ""),
        ("CREATE TABLE arrays (a three[])", "0A000 an array of a domain over an array is not supported"),
        ("CREATE ROLE owner", ""),
        ("ALTER DOMAIN three OWNER TO owner", ""),
        ("DROP ROLE owner", "2BP01 role \"owner\" cannot be dropped because some objects depend on it\nowner of type three"),
        (
            "CREATE INDEX ON t ((a::posint))",
            "0A000 a cast to a domain in an index is not supported",
        ),
    ]);
}

#[test]
fn a_new_or_worked_out_column_is_asked_whatever_it_is_filled_with() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE TABLE t (a int, g positive GENERATED ALWAYS AS (a) STORED)",
        "INSERT INTO t VALUES (1), (NULL)",
    ]);
    let null = "23502 column \"n\" of relation \"t\" contains null values";
    let check = "23514 value for domain positive violates check constraint \"positive_check\"";
    a.check(&[
        ("ALTER TABLE t ADD n positive NOT NULL", null),
        ("ALTER TABLE t ADD n positive DEFAULT NULL NOT NULL", null),
        ("ALTER TABLE t ADD n int GENERATED ALWAYS AS (a) STORED NOT NULL", null),
        ("ALTER TABLE t ALTER g SET EXPRESSION AS (a - 1)", check),
        ("ALTER TABLE t ADD n positive NOT NULL DEFAULT 4", ""),
        ("ALTER TABLE t ALTER g SET EXPRESSION AS (a + 1)", ""),
        ("SELECT * FROM t ORDER BY a", "1|2|4\n~|~|4"),
    ]);
}

#[test]
fn array_types_have_their_own_alignment_and_their_domains_collation() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN flag AS bool",
        "CREATE DOMAIN name_c AS text COLLATE \"C\"",
        "CREATE DOMAIN long AS bigint",
        "CREATE TYPE mood AS ENUM ('ok')",
    ]);
    a.check(&[(
        "SELECT typname, typalign, typcollation, typdelim, typlen FROM pg_type WHERE typname IN ('_flag', '_name_c', '_long', '_mood') ORDER BY 1",
        "_flag|i|0|,|-1\n_long|d|0|,|-1\n_mood|i|0|,|-1\n_name_c|i|950|,|-1",
    )]);
}

#[test]
fn a_default_that_mentions_a_domain_makes_no_use_of_it() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN d AS int",
        "CREATE DOMAIN over AS d",
        "CREATE DOMAIN other AS int DEFAULT 1::over",
        "ALTER DOMAIN d SET DEFAULT 5::d",
        "ALTER DOMAIN d SET DEFAULT 5::over",
        "CREATE TABLE t (o over, x other)",
        "INSERT INTO t VALUES (7, -7)",
    ]);
    a.check(&[
        ("ALTER DOMAIN d ADD CONSTRAINT positive CHECK (VALUE > 0)", ""),
        (
            "ALTER DOMAIN d ADD CHECK (VALUE < 7)",
            "23514 column \"o\" of table \"t\" contains values that violate the new constraint",
        ),
        ("ALTER DOMAIN d SET NOT NULL", ""),
        (
            "INSERT INTO t VALUES (-1, 1)",
            "23514 value for domain over violates check constraint \"positive\"",
        ),
    ]);
}

#[test]
fn rows_of_a_table_type_have_its_columns_and_their_domains() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE TABLE part (gone int, p positive, b varchar(2))",
        "ALTER TABLE part DROP gone",
        "CREATE TABLE whole (id int, x part)",
    ]);
    let check = "23514 value for domain positive violates check constraint \"positive_check\"";
    a.check(&[
        ("INSERT INTO whole VALUES (1, ROW(5, 'y')), (2, ROW('7', NULL)), (3, ROW(1.7, 5)) RETURNING x", "(5,y)\n(7,)\n(2,5)"),
        ("INSERT INTO whole VALUES (1, ROW(-5, 'y'))", check),
        ("UPDATE whole SET x = ROW(0, 'y')", check),
        ("SELECT ROW('-1', 'z')::part", check),
        ("INSERT INTO whole VALUES (1, ROW(5, 'long'))", "22001 value too long for type character varying(2)"),
        ("SELECT (ROW(4, 'long')::part).b", "lo"),
        ("SELECT ROW('q', 'z')::part", "22P02 invalid input syntax for type integer: \"q\""),
        ("SELECT ROW(1, 2, 3)::part", "42846 cannot cast type record to part\nInput has too many columns."),
        ("INSERT INTO whole VALUES (1, ROW(1))", "42846 cannot cast type record to part\nInput has too few columns."),
        ("INSERT INTO whole VALUES (1, ROW(true, 'b'))", "42846 cannot cast type record to part\nCannot cast type boolean to positive in column 1."),
        ("ALTER DOMAIN positive ADD CHECK (VALUE < 7)", "0A000 cannot alter type \"positive\" because column \"whole.x\" uses it"),
    ]);
}
