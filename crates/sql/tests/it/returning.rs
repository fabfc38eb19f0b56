//! RETURNING's OLD and NEW: the row before and after, NULLs where there is none.

use crate::support::{Connection, Database, waiting};

/// A dropped column, one added later and one that is generated.
fn table(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "DROP TABLE IF EXISTS o",
        "CREATE TABLE o (id int PRIMARY KEY, gone int, v int, g int GENERATED ALWAYS AS (v * 2) STORED)",
        "INSERT INTO o VALUES (1, 0, 10), (2, 0, 20)",
        "ALTER TABLE o DROP COLUMN gone",
        "ALTER TABLE o ADD COLUMN n int DEFAULT 7",
    ]);
    s
}

#[test]
fn rows_before_and_after_are_returned() {
    let db = Database::new();
    let mut s = table(&db);
    s.check(&[
        (
            "INSERT INTO o VALUES (3, 30) RETURNING old.*, new.*, v, old, old IS NULL, new",
            "~|~|~|~|3|30|60|7|30|~|t|(3,30,60,7)",
        ),
        (
            "INSERT INTO o VALUES (1, 11), (4, 40) ON CONFLICT (id) DO UPDATE SET v = o.v + excluded.v \
             RETURNING WITH (OLD AS a, NEW AS b) a.v, a.g, b.g, a.ctid IS NULL, a, b.tableoid::regclass, a.xmin IS NULL, v",
            "10|20|42|f|(1,10,20,7)|o|f|21\n~|~|80|t|~|o|t|40",
        ),
        (
            "UPDATE o SET v = v + 1, n = 8 WHERE id = 1 RETURNING old.v, new.v, new.g - old.g, old.n, n, old.ctid = new.ctid, old.xmin = new.xmin, old",
            "21|22|2|7|8|f|f|(1,21,42,7)",
        ),
        (
            "WITH c AS (UPDATE o SET v = 0 WHERE id = 1 RETURNING old.v AS was, new.v AS now) SELECT * FROM c",
            "22|0",
        ),
        (
            "UPDATE o SET v = o.v + 1 FROM (VALUES (1, 'x')) x(i, t) WHERE i = id RETURNING old.v, new.v, t, (SELECT old.v + new.v)",
            "0|1|x|1",
        ),
        (
            "DELETE FROM o WHERE id = 1 RETURNING old.*, new.*, new, new IS NULL, new.ctid, old.xmax::text <> '0'",
            "1|1|2|8|~|~|~|~|~|t|~|t",
        ),
        ("INSERT INTO o SELECT 50 + x, x FROM generate_series(1, 2) x RETURNING old.id, new.id", "~|51\n~|52"),
        ("PREPARE p(int) AS UPDATE o SET v = $1 WHERE id = 51 RETURNING old.v, new.v", ""),
        ("EXECUTE p(3)", "1|3"),
        ("EXECUTE p(4)", "3|4"),
        (
            "EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO o VALUES (5, 5) RETURNING WITH (OLD AS a) a.v, new.v, v",
            "Insert on public.o\n  Output: a.v, new.v, o.v\n  ->  Result",
        ),
    ]);
}

#[test]
fn old_is_what_was_there_after_a_wait() {
    let db = Database::new();
    let _s = table(&db);
    let then = "UPDATE o SET v = v * 2 WHERE id = 1 RETURNING old.v, new.v, old.g, new.g";
    assert_eq!(waiting(&db, "UPDATE o SET v = v + 1 WHERE id = 1", then), "11|22|22|44");
    let then = "DELETE FROM o WHERE id = 1 RETURNING old.v, new.v";
    assert_eq!(waiting(&db, "UPDATE o SET v = v + 1 WHERE id = 1", then), "23|~");
    let then = "INSERT INTO o VALUES (2, 1) ON CONFLICT (id) DO UPDATE SET v = o.v + 1 RETURNING old.v, new.v";
    assert_eq!(waiting(&db, "UPDATE o SET v = v + 1 WHERE id = 2", then), "21|22");
}

#[test]
fn old_and_new_are_names_like_others() {
    let db = Database::new();
    let mut s = table(&db);
    s.check(&[
        ("UPDATE o AS old SET v = 1 WHERE id = 1 RETURNING old.v, new.v", "1|1"),
        ("UPDATE o SET v = 2 WHERE id = 1 RETURNING WITH (OLD AS new) new.v, v", "1|2"),
        ("UPDATE o SET v = 3 FROM (VALUES (9)) old(w) WHERE id = 1 RETURNING old.w, new.v", "9|3"),
        (
            "UPDATE o SET v = 1 RETURNING WITH (OLD AS x) old.v",
            "42P01 missing FROM-clause entry for table \"old\"",
        ),
        (
            "UPDATE o SET v = 1 RETURNING WITH (OLD AS x, OLD AS y) x.v",
            "42601 OLD cannot be specified multiple times",
        ),
        (
            "UPDATE o SET v = 1 RETURNING WITH (OLD AS x, NEW AS x) x.v",
            "42712 table name \"x\" specified more than once",
        ),
        (
            "DELETE FROM o RETURNING WITH (NEW AS o) o.v",
            "42712 table name \"o\" specified more than once",
        ),
        ("DELETE FROM o RETURNING old.nosuch", "42703 column old.nosuch does not exist"),
        ("UPDATE o SET v = old.v", "42P01 missing FROM-clause entry for table \"old\""),
        ("DELETE FROM o WHERE new.v = 1", "42P01 missing FROM-clause entry for table \"new\""),
        ("DELETE FROM o RETURNING WITH () v", "42601 syntax error at or near \")\""),
        (
            "DELETE FROM o RETURNING WITH (excluded AS a) v",
            "42601 syntax error at or near \"excluded\"",
        ),
        ("SELECT count(*) FROM o", "2"),
    ]);
}

/// What writes in WITH is run once, with its statement: nowhere is it written where it would be kept, or run by and by.
#[test]
fn what_writes_in_with_stands_at_the_top() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (k int)", "CREATE TABLE u (k int)", "INSERT INTO t VALUES (1)"]);
    let with = "WITH x AS (DELETE FROM t RETURNING *) SELECT k FROM x";
    let top = "0A000 WITH clause containing a data-modifying statement must be at the top level";
    for (before, after, want) in [
        ("INSERT INTO u ", "", top),
        ("WITH y AS (", ") SELECT * FROM y", top),
        ("SELECT * FROM (", ") q", top),
        ("SELECT (", ")", top),
        ("SELECT 1 UNION ALL (", ")", top),
        ("CREATE VIEW v AS ", "", "0A000 views must not contain data-modifying statements in WITH"),
        (
            "CREATE MATERIALIZED VIEW v AS ",
            "",
            "0A000 materialized views must not use data-modifying statements in WITH",
        ),
        (
            "DECLARE c CURSOR WITH HOLD FOR ",
            "",
            "0A000 DECLARE CURSOR must not contain data-modifying statements in WITH",
        ),
        ("BEGIN; ", "; ROLLBACK", "1"),
        ("BEGIN; ", " UNION ALL SELECT 2; ROLLBACK", "1\n2"),
        ("BEGIN; (", "); ROLLBACK", "1"),
        ("BEGIN; COPY (", ") TO STDOUT; ROLLBACK", "1\\n"),
        ("BEGIN; CREATE TABLE v AS ", "; SELECT * FROM v; ROLLBACK", "1"),
    ] {
        let sql = format!("{before}{with}{after}");
        assert_eq!(s.run(&sql), want, "{sql}");
    }
    s.check(&[("SELECT * FROM t", "1")]);
}

#[test]
fn excluded_is_not_seen_there() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE k (a int PRIMARY KEY, b int)"]);
    let insert = "INSERT INTO k VALUES (1, 1) ON CONFLICT (a)";
    let refused = "42P01 invalid reference to FROM-clause entry for table \"excluded\"\n\
                   There is an entry for table \"excluded\", but it cannot be referenced from this part of the query.";
    for what in ["excluded.b", "excluded.*", "(SELECT excluded.b)"] {
        s.check(&[(&format!("{insert} DO UPDATE SET b = 2 RETURNING {what}"), refused)]);
    }
    s.check(&[
        (
            &format!("{insert} DO UPDATE SET b = 2 RETURNING excluded"),
            "42703 column \"excluded\" does not exist",
        ),
        (
            &format!("{insert} DO NOTHING RETURNING excluded.b"),
            "42P01 missing FROM-clause entry for table \"excluded\"",
        ),
    ]);
}
