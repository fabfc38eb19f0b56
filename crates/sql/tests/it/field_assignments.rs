//! Assignments to a part of a column that is, or has in it, a row: a field, a field of an array's element, an element of a field.

use crate::support::Database;

const TABLES: [&str; 5] = [
    "CREATE TABLE t (a int, b text, c int[])",
    "CREATE TABLE u (id int, r t[], o t, j jsonb)",
    "CREATE TABLE w (x u, y u[])",
    "INSERT INTO u VALUES (1, ARRAY[ROW(1, 'x', '{1,2}')::t, ROW(2, 'y', NULL)::t], ROW(5, 'o', '{7}')), (2, NULL, NULL)",
    "INSERT INTO w SELECT u, ARRAY[u] FROM u WHERE id = 1",
];

#[test]
fn what_is_not_assigned_to_stays() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.check(&[
        (
            "UPDATE u SET o.a = 1, o.b = 'z' RETURNING o",
            "(1,z,{7})\n(1,z,)",
        ),
        ("UPDATE u SET o.c[3] = 4 RETURNING o", "(1,z,\"{7,NULL,4}\")\n(1,z,[3:3]={4})"),
        (
            "UPDATE u SET r[1].b = 'new' RETURNING r",
            "{\"(1,new,\\\"{1,2}\\\")\",\"(2,y,)\"}\n{\"(,new,)\"}",
        ),
        (
            "UPDATE u SET r[2].a = 5, r[2].b = 'q', r[3].c[2] = 9 WHERE id = 1 RETURNING r",
            "{\"(1,new,\\\"{1,2}\\\")\",\"(5,q,)\",\"(,,[2:2]={9})\"}",
        ),
        // Each sees the row as it was; of one field the last counts.
        (
            "UPDATE u SET r[1].a = (r[1]).a + 1, r[2].a = (r[1]).a, o.a = 8, o.a = (o).a WHERE id = 1 RETURNING r[1], r[2], o",
            "(2,new,\"{1,2}\")|(1,q,)|(1,z,\"{7,NULL,4}\")",
        ),
        ("UPDATE u SET (o.a, r[1].b) = (SELECT 11, 'sub') WHERE id = 1 RETURNING (o).a, (r[1]).b", "11|sub"),
        ("UPDATE w SET x.r[1].c[2] = 3, x.o.b = 'deep', x.j['k'] = '5' RETURNING (x).r[1], (x).o, (x).j", "(1,x,\"{1,3}\")|(5,deep,{7})|{\"k\": 5}"),
        ("UPDATE w SET y[1].r[2].b = 'm' RETURNING (y[1]).id, (y[1]).r", "1|{\"(1,x,\\\"{1,2}\\\")\",\"(2,m,)\"}"),
        ("INSERT INTO u (id, o.a, o.b, r[1].a, r[1].c[2]) VALUES (10, 1, 'i', 2, 3) RETURNING *", "10|{\"(2,,[2:2]={3})\"}|(1,i,)|~"),
        ("INSERT INTO u (id, o.a, o.b) VALUES (11, 1, 'i'), (12, 2, 'k') RETURNING o", "(1,i,)\n(2,k,)"),
        (
            "MERGE INTO u USING (VALUES (1)) s (i) ON u.id = s.i WHEN MATCHED THEN UPDATE SET o.a = (u.o).a + 1, r[1].a = i RETURNING u.o, u.r[1]",
            "(12,z,\"{7,NULL,4}\")|(1,sub,\"{1,2}\")",
        ),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// What assigns several times makes each value once.
#[test]
fn values_are_made_once() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.run_each(&["CREATE SEQUENCE n"]);
    s.check(&[
        (
            "UPDATE u SET r[1].a = nextval('n'), r[1].b = 'k', r[2].a = nextval('n'), r[2].c[1] = nextval('n') WHERE id = 1 RETURNING r",
            "{\"(1,k,\\\"{1,2}\\\")\",\"(2,y,{3})\"}",
        ),
        ("SELECT nextval('n')", "4"),
    ]);
}

#[test]
fn what_has_no_such_part_is_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.check(&[
        ("UPDATE u SET o.no = 1", "42703 cannot assign to field \"no\" of column \"o\" because there is no such column in data type t"),
        ("UPDATE u SET o.ctid = NULL", "42703 cannot assign to system column \"ctid\""),
        ("UPDATE u SET o.a.b = 1", "42804 cannot assign to field \"b\" of column \"a\" because its type integer is not a composite type"),
        ("UPDATE u SET id.x = 1", "42804 cannot assign to field \"x\" of column \"id\" because its type integer is not a composite type"),
        ("UPDATE u SET r[1:2].a = 1", "42804 cannot assign to field \"a\" of column \"r\" because its type t[] is not a composite type"),
        ("UPDATE u SET j['a'].b = '1'", "42804 cannot assign to field \"b\" of column \"j\" because its type jsonb is not a composite type"),
        ("UPDATE u SET o.b[1] = 'x'", "42804 cannot subscript type text because it does not support subscripting"),
        (
            "UPDATE u SET o.a = now()",
            "42804 subfield \"a\" is of type integer but expression is of type timestamp with time zone",
        ),
        (
            "UPDATE u SET o.c[1] = now()",
            "42804 subscripted assignment to \"c\" requires type integer but expression is of type timestamp with time zone",
        ),
        ("UPDATE u SET o.a = DEFAULT", "0A000 cannot set a subfield to DEFAULT"),
        ("UPDATE u SET r[1].a = DEFAULT", "0A000 cannot set an array element to DEFAULT"),
        ("INSERT INTO u (o.a) VALUES (DEFAULT)", "0A000 cannot set a subfield to DEFAULT"),
        ("UPDATE u SET o = NULL, o.a = 1", "42601 multiple assignments to same column \"o\""),
        ("UPDATE u SET r[NULL].a = 1", "22004 array subscript in assignment must not be null"),
    ]);
}

#[test]
fn a_field_of_a_domain_is_checked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DOMAIN pos AS int CHECK (VALUE > 0)",
        "CREATE TABLE t (p pos, q pos[])",
        "CREATE TABLE u (r t, s t[])",
        "INSERT INTO u VALUES (ROW(1, '{1}'), ARRAY[ROW(1, '{1}')::t])",
    ]);
    let refused = "23514 value for domain pos violates check constraint \"pos_check\"";
    s.check(&[
        ("UPDATE u SET r.p = 5, s[1].p = 4 RETURNING *", "(5,{1})|{\"(4,{1})\"}"),
        ("UPDATE u SET r.p = -5", refused),
        ("UPDATE u SET s[1].p = -5", refused),
        ("UPDATE u SET s[1].q = '{-1}'", refused),
        ("UPDATE u SET s[1].q[1] = -1", refused),
    ]);
}

/// Rows with fields of domains are read as they were written, be they made of a text or of values.
#[test]
fn rows_with_domains_are_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DOMAIN pos AS int CHECK (VALUE > 0)",
        "CREATE TABLE t (p pos, q pos[])",
        "CREATE TABLE u (r t, s t[])",
        "INSERT INTO u VALUES ('(3,\"{4}\")', '{\"(5,{6})\"}')",
        "INSERT INTO u SELECT jsonb_populate_record(NULL::t, '{\"p\": 7}'), NULL",
    ]);
    let rows = "(3,{4})|{\"(5,{6})\"}\n(7,)|~";
    s.check(&[
        ("SELECT * FROM u", rows),
        ("UPDATE u SET r.q[2] = 5 WHERE (r).p = 3 RETURNING r", "(3,\"{4,5}\")"),
    ]);
}

#[test]
fn all_fields_at_once_are_not_assigned_to() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE f (p int, q int)", "CREATE TABLE t (a int, o f, l int[])"]);
    let refused = "0A000 row expansion via \"*\" is not supported here";
    let unknown = "42703 column \"t\" of relation \"t\" does not exist";
    s.check(&[
        ("UPDATE t SET o.* = ROW(1, 2)", refused),
        ("UPDATE t SET a.* = 1", refused),
        ("UPDATE t SET o.p.* = 1", refused),
        ("UPDATE t SET l[1].* = 1", refused),
        ("UPDATE t SET (o.*, a) = (1, 2)", refused),
        ("INSERT INTO t (o.*) VALUES (1)", refused),
        ("INSERT INTO t (o.*) SELECT 1", refused),
        ("UPDATE t SET o.* = nope", "42703 column \"nope\" does not exist"),
        ("UPDATE t SET o.* = DEFAULT", "0A000 cannot set a subfield to DEFAULT"),
        ("UPDATE t SET o.*.p = 1", "42601 improper use of \"*\" at or near \"=\""),
        ("UPDATE t SET t.* = 1", unknown),
        ("UPDATE t SET t[1] = 1", unknown),
    ]);
}
