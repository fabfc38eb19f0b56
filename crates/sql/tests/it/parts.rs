//! Values for parts of columns: elements and slices of arrays, and what is in jsonb.

use crate::support::Database;

fn parts() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE DOMAIN small AS int[] CHECK (value[1] < 100)",
        "CREATE TABLE p (id int, a int[], m int[][], j jsonb, js json, x int[] DEFAULT '{7,8}', s small)",
    ]);
    db
}

#[test]
fn insert_gives_elements_and_slices() {
    let db = parts();
    let mut s = db.session();
    s.check(&[
        ("INSERT INTO p (id, a[1], a[2]) VALUES (1, 10, 20) RETURNING a", "{10,20}"),
        ("INSERT INTO p (id, a[3]) VALUES (2, '30') RETURNING a", "[3:3]={30}"),
        ("INSERT INTO p (id, a[1:2], m[1][1]) VALUES (3, '{1,2}', 5) RETURNING a, m", "{1,2}|{{5}}"),
        ("INSERT INTO p (id, j['k'], j['l']['m']) VALUES (4, '\"v\"', '1') RETURNING j", "{\"k\": \"v\", \"l\": {\"m\": 1}}"),
        // A default is not what a part is put into.
        ("INSERT INTO p (id, x[2]) VALUES (5, 99) RETURNING x", "[2:2]={99}"),
        ("INSERT INTO p (id, a[1], x[1]) SELECT 6, 66, '5' RETURNING a, x", "{66}|{5}"),
        ("INSERT INTO p (a[1], a[2]) VALUES (1, 2), (3, 4), (5, NULL) RETURNING a", "{1,2}\n{3,4}\n{5,NULL}"),
        ("INSERT INTO p (s[1]) VALUES (99) RETURNING s", "{99}"),
        ("INSERT INTO p (s[1]) VALUES (100)", "23514 value for domain small violates check constraint \"small_check\""),
        ("INSERT INTO p (a[1]) VALUES (DEFAULT)", "0A000 cannot set an array element to DEFAULT"),
        ("INSERT INTO p (a, a[1]) VALUES ('{1}', 2)", "42701 column \"a\" specified more than once"),
        ("INSERT INTO p (a[1], a) VALUES (2, '{1}')", "42701 column \"a\" specified more than once"),
        ("INSERT INTO p (id[1]) VALUES (1)", "42804 cannot subscript type integer because it does not support subscripting"),
        ("INSERT INTO p (js['a']) VALUES ('1')", "42804 cannot subscript type json because it does not support subscripting"),
        ("INSERT INTO p (a[NULL]) VALUES (1)", "22004 array subscript in assignment must not be null"),
        (
            "INSERT INTO p (a[1:]) VALUES ('{1}')",
            "2202E array slice subscript must provide both boundaries\n\
             When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
        ),
        (
            "INSERT INTO p (a[1]) VALUES (now())",
            "42804 subscripted assignment to \"a\" requires type integer but expression is of type timestamp with time zone",
        ),
        ("CREATE VIEW v AS SELECT id, a, j FROM p", ""),
        ("INSERT INTO v (id, a[1], j['x']) VALUES (60, 1, '2') RETURNING a, j", "{1}|{\"x\": 2}"),
        ("UPDATE v SET a[2] = 3, j['x'] = '5' WHERE id = 60 RETURNING a, j", "{1,3}|{\"x\": 5}"),
        (
            "MERGE INTO p USING (VALUES (60), (61)) s (n) ON id = n WHEN MATCHED THEN UPDATE SET j['y'] = to_jsonb(n) \
             WHEN NOT MATCHED THEN INSERT (id, a[2], j['k']) VALUES (n, n, '1') RETURNING id, a, j",
            "60|{1,3}|{\"x\": 5, \"y\": 60}\n61|[2:2]={61}|{\"k\": 1}",
        ),
        ("CREATE UNIQUE INDEX ON p (id)", ""),
        (
            "INSERT INTO p (id) VALUES (61) ON CONFLICT (id) DO UPDATE SET a[1] = excluded.id, j['c'] = to_jsonb(p.id) RETURNING a, j",
            "{61,61}|{\"c\": 61, \"k\": 1}",
        ),
    ]);
}

#[test]
fn jsonb_is_changed_where_the_subscripts_say() {
    let db = parts();
    let mut s = db.session();
    let scalar = "22023 cannot replace existing key\nThe path assumes key is a composite object, but it is a scalar value.";
    s.check(&[
        ("INSERT INTO p (id, j) VALUES (1, '{\"k\": \"v\"}'), (2, NULL), (3, NULL), (4, '[1, 2]'), (5, '7')", ""),
        ("UPDATE p SET j['k'] = '2', j['n'][2] = 'true' WHERE id = 1 RETURNING j", "{\"k\": 2, \"n\": [null, null, true]}"),
        ("UPDATE p SET j['k']['z'] = '3' WHERE id = 1", scalar),
        ("UPDATE p SET j[0] = '3' WHERE id = 1 RETURNING j", "{\"0\": 3, \"k\": 2, \"n\": [null, null, true]}"),
        ("UPDATE p SET j['n'][-1] = '\"last\"' WHERE id = 1 RETURNING j['n']", "[null, null, \"last\"]"),
        ("UPDATE p SET j['n'][-9] = '1' WHERE id = 1", "22023 path element at position 2 is out of range: -9"),
        ("UPDATE p SET j['n']['x'] = '1' WHERE id = 1", "22P02 path element at position 2 is not an integer: \"x\""),
        ("UPDATE p SET j['a']['b'][1]['c'] = '1' WHERE id = 1 RETURNING j['a']", "{\"b\": [null, {\"c\": 1}]}"),
        ("UPDATE p SET j['q'] = NULL WHERE id = 1 RETURNING j['q']", "null"),
        ("UPDATE p SET j['1'] = '1' WHERE id = 2 RETURNING j", "{\"1\": 1}"),
        ("UPDATE p SET j[1] = '1' WHERE id = 3 RETURNING j", "[null, 1]"),
        ("UPDATE p SET j[4] = '5' WHERE id = 4 RETURNING j", "[1, 2, null, null, 5]"),
        ("UPDATE p SET j['0'] = '\"zero\"' WHERE id = 4 RETURNING j", "[\"zero\", 2, null, null, 5]"),
        ("UPDATE p SET j['a'] = '1' WHERE id = 5", scalar),
        (
            "UPDATE p SET j[2000000000] = '1' WHERE id = 4",
            "54000 number of jsonb array elements exceeds the maximum allowed (44739242)",
        ),
        ("UPDATE p SET j[1:2] = '1'", "42804 jsonb subscript does not support slices"),
        (
            "UPDATE p SET j[true] = '1'",
            "42804 subscript type boolean is not supported",
        ),
        ("UPDATE p SET j[NULL] = '1'", "22004 jsonb subscript in assignment must not be null"),
        (
            "UPDATE p SET j['a'] = 1",
            "42804 subscripted assignment to \"j\" requires type jsonb but expression is of type integer",
        ),
        ("UPDATE p SET (a[1], j['z']) = (77, '[]') WHERE id = 2 RETURNING a, j", "{77}|{\"1\": 1, \"z\": []}"),
        ("UPDATE p SET (a[2], j['z']) = (SELECT 78, '{}'::jsonb) WHERE id = 2 RETURNING a, j", "{77,78}|{\"1\": 1, \"z\": {}}"),
        ("UPDATE p SET j['a'] = '1', j = '{}'", "42601 multiple assignments to same column \"j\""),
    ]);
}
