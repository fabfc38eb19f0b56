//! Arrays of tables' and views' rows: columns of them, what is made of them, and what holds on to the row's type.

use crate::support::Database;

const TABLES: [&str; 5] = [
    "CREATE TABLE t (a int, b text)",
    "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
    "CREATE TABLE u (id int, r t[])",
    "INSERT INTO u SELECT 1, array_agg(t ORDER BY a) FROM t",
    "INSERT INTO u VALUES (2, '{\"(5,five)\",NULL,\"(6,)\"}'), (3, ARRAY[ROW(7, 's')]::t[]), (4, '{}')",
];

#[test]
fn a_column_holds_an_array_of_a_table_s_rows() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.check(&[
        (
            "SELECT *, pg_typeof(r) FROM u ORDER BY id",
            "1|{\"(1,x)\",\"(2,)\"}|t[]\n2|{\"(5,five)\",NULL,\"(6,)\"}|t[]\n3|{\"(7,s)\"}|t[]\n4|{}|t[]",
        ),
        (
            "SELECT id, (x).a, (x).b FROM u, unnest(r) x ORDER BY id, a",
            "1|1|x\n1|2|~\n2|5|five\n2|6|~\n2|~|~\n3|7|s",
        ),
        (
            "SELECT id, x.*, x.a IS NULL FROM u, unnest(r) x ORDER BY id, a",
            "1|1|x|f\n1|2|~|f\n2|5|five|f\n2|6|~|f\n2|~|~|t\n3|7|s|f",
        ),
        (
            "SELECT * FROM u, unnest(r) WITH ORDINALITY AS x (p, q, n) WHERE id < 3 ORDER BY id, n",
            "1|{\"(1,x)\",\"(2,)\"}|1|x|1\n1|{\"(1,x)\",\"(2,)\"}|2|~|2\n2|{\"(5,five)\",NULL,\"(6,)\"}|5|five|1\n2|{\"(5,five)\",NULL,\"(6,)\"}|~|~|2\n2|{\"(5,five)\",NULL,\"(6,)\"}|6|~|3",
        ),
        (
            "SELECT * FROM ROWS FROM (unnest((SELECT r FROM u WHERE id = 1)), generate_series(1, 3)) ORDER BY 3",
            "1|x|1\n2|~|2\n~|~|3",
        ),
        ("SELECT x, pg_typeof(x) FROM u, unnest(r) x WHERE id = 1 ORDER BY a", "(1,x)|t\n(2,)|t"),
        ("SELECT count(*), sum(a) FROM unnest((SELECT array_agg(t) FROM t))", "2|3"),
        ("SELECT r[1], (r[1]).b, r[1:1], pg_typeof(r[1]) FROM u WHERE id = 1", "(1,x)|x|{\"(1,x)\"}|t"),
        ("SELECT ARRAY[t.*], pg_typeof(ARRAY[t]) FROM t ORDER BY a LIMIT 1", "{\"(1,x)\"}|t[]"),
        ("SELECT pg_typeof(array_agg(t)), array_agg(t)::text FROM t", "t[]|{\"(1,x)\",\"(2,)\"}"),
        ("SELECT array_agg(t ORDER BY a) = (SELECT r FROM u WHERE id = 1) FROM t", "t"),
        ("SELECT '{\"(1,a)\"}'::t[] = ARRAY[ROW(1, 'a')::t], '{\"(1,a)\"}'::t[] || ROW(2, 'b')::t", "t|{\"(1,a)\",\"(2,b)\"}"),
        ("SELECT ROW(7, 's')::t = ANY (r) FROM u WHERE id = 3", "t"),
        ("SELECT '{\"(x,a)\"}'::t[]", "22P02 invalid input syntax for type integer: \"x\""),
        ("SELECT r, count(*) FROM u WHERE id > 2 GROUP BY r ORDER BY r", "{}|1\n{\"(7,s)\"}|1"),
        ("UPDATE u SET r[2] = ROW(9, 'n')::t WHERE id = 3 RETURNING r", "{\"(7,s)\",\"(9,n)\"}"),
        ("SELECT row_to_json(u) FROM u WHERE id = 3", "{\"id\":3,\"r\":[{\"a\":7,\"b\":\"s\"},{\"a\":9,\"b\":\"n\"}]}"),
        (
            "SELECT jsonb_populate_record(NULL::u, '{\"id\": 9, \"r\": [{\"a\": 1, \"b\": \"q\"}, null, \"(4,w)\"]}')",
            "(9,\"{\"\"(1,q)\"\",NULL,\"\"(4,w)\"\"}\")",
        ),
        ("CREATE TABLE k AS SELECT array_agg(t) AS r FROM t", ""),
        ("SELECT pg_typeof(r), r FROM k", "t[]|{\"(1,x)\",\"(2,)\"}"),
        // Elements are not made one by one of what is no row of the type.
        ("SELECT (SELECT array_agg(ROW(1, 'a')))::t[]", "42846 cannot cast type record[] to t[]"),
        ("SELECT '{\"(1,a)\"}'::t[] = ARRAY[ROW(1, 'a')]", "42883 operator does not exist: t[] = record[]"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn the_array_type_has_a_row_in_pg_type_and_follows_the_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    let named = "SELECT typname, typnamespace::regnamespace FROM pg_type WHERE oid = (SELECT atttypid FROM pg_attribute WHERE attrelid = 'u'::regclass AND attname = 'r')";
    s.check(&[
        (
            "SELECT typname, typtype, typcategory, typlen, typalign, typelem::regtype FROM pg_type WHERE typname = '_t'",
            "_t|b|A|-1|d|t",
        ),
        ("SELECT typarray::regtype, '_t'::regtype, 't[]'::regtype FROM pg_type WHERE typname = 't'", "t[]|t[]|t[]"),
        ("SELECT '{\"(1,a)\"}'::_t", "{\"(1,a)\"}"),
        // Who wants its name gets it.
        ("CREATE TABLE _t (q int)", ""),
        (named, "__t|public"),
        ("ALTER TABLE t RENAME TO v", ""),
        (named, "_v|public"),
        ("ALTER TABLE v RENAME TO _v", ""),
        (named, "__v|public"),
        ("CREATE SCHEMA s", ""),
        ("ALTER TABLE _v SET SCHEMA s", ""),
        (named, "__v|s"),
        ("SELECT pg_typeof(r) FROM u LIMIT 1", "s._v[]"),
        ("CREATE TYPE _u AS ENUM ('a')", ""),
        ("CREATE ROLE o", ""),
        ("ALTER TABLE s._v OWNER TO o", ""),
        ("SELECT typowner::regrole FROM pg_type WHERE typname = '__v'", "o"),
        ("DROP TABLE s._v CASCADE", "NOTICE 00000 drop cascades to column r of table u"),
        ("SELECT count(*) FROM pg_type WHERE typname = '__v'", "0"),
        ("SELECT id FROM u ORDER BY id", "1\n2\n3\n4"),
    ]);
}

#[test]
fn what_uses_an_array_of_rows_keeps_the_row_as_it_is() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    let uses = "0A000 cannot alter table \"t\" because column \"u.r\" uses its row type";
    s.check(&[
        ("ALTER TABLE t ADD c int DEFAULT 5", uses),
        ("ALTER TABLE t ALTER a TYPE bigint", uses),
        ("ALTER TABLE t ADD self t[]", "42P16 composite type t cannot be made a member of itself"),
        ("ALTER TABLE t ADD o u", "42P16 composite type t cannot be made a member of itself"),
        (
            "DROP TABLE t",
            "2BP01 cannot drop table t because other objects depend on it\ncolumn r of table u depends on type t[]",
        ),
        (
            "DROP TYPE _t",
            "2BP01 cannot drop type t[] because type t requires it",
        ),
        ("DROP TABLE u", ""),
        ("CREATE VIEW v AS SELECT t AS r FROM t", ""),
        ("CREATE VIEW w AS SELECT v AS r FROM v", ""),
        ("CREATE TABLE u (l w[])", ""),
        ("ALTER TABLE t ALTER a TYPE bigint", "0A000 cannot alter table \"t\" because column \"u.l\" uses its row type"),
        ("DROP TABLE u", ""),
        ("ALTER TABLE t ALTER b TYPE varchar", ""),
    ]);
}

#[test]
fn a_kept_text_of_an_array_of_rows_is_read_again() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "CREATE TABLE d (id int, x t[] DEFAULT '{\"(1,def)\"}', y t[] DEFAULT ARRAY[ROW(2, 'k')::t])",
        "INSERT INTO d (id) VALUES (1)",
        "CREATE VIEW dv AS SELECT '{\"(1,a)\",\"(2,\\\"b c\\\")\"}'::t[] AS k, '[0:0]={\"(3,c)\"}'::t[] AS l, x FROM d",
        "CREATE VIEW tv AS SELECT a, b FROM t",
        "INSERT INTO t VALUES (4, 'v')",
    ]);
    s.check(&[
        ("SELECT * FROM d", "1|{\"(1,def)\"}|{\"(2,k)\"}"),
        (
            "SELECT *, pg_typeof(k) FROM dv",
            "{\"(1,a)\",\"(2,\\\"b c\\\")\"}|[0:0]={\"(3,c)\"}|{\"(1,def)\"}|t[]",
        ),
        ("SELECT array_agg(tv), pg_typeof(array_agg(tv)) FROM tv", "{\"(4,v)\"}|tv[]"),
    ]);
}

/// A row's array goes over the wire as its elements do.
#[test]
fn rows_of_a_type_are_received_in_binary_form() {
    use std::sync::Arc;
    use types::{Datum, Env, RecordColumn, RecordValue, oids};
    struct OneType;
    impl Env for OneType {
        fn setting(&self, _: &str) -> Option<String> {
            None
        }
        fn transaction_timestamp(&self) -> i64 {
            0
        }
        fn statement_timestamp(&self) -> i64 {
            0
        }
        fn check_cancel(&self) -> base::Result<()> {
            Ok(())
        }
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
        fn row_columns(&self, _: base::Oid) -> base::Result<Option<Arc<[RecordColumn]>>> {
            Ok(Some([RecordColumn { name: "a".into(), type_oid: oids::INT4, typmod: -1 }].into()))
        }
    }
    let row = base::Oid(16_384);
    let columns = OneType.row_columns(row).unwrap().unwrap();
    let fields = vec![Datum::Int4(7)];
    let value = Datum::Record(Arc::new(RecordValue { type_oid: row, columns, fields }));
    let array = types::array::construct(row, vec![value, Datum::Null]);
    let ty = types::array_type(row).unwrap();
    let mut bytes = Vec::new();
    types::binary_output(ty, &array, &OneType, &mut bytes).unwrap();
    let read = types::binary_input(ty, -1, &bytes, &OneType).unwrap();
    assert_eq!(types::io::to_text(ty, &read, &OneType).unwrap(), "{(7),NULL}");
}
