//! Views that are written through: what happens to the table below, and what is refused. The answers are PostgreSQL 18's.

use crate::support::{Connection, Database, waiting};

fn tables(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'none', c int)",
        "INSERT INTO t SELECT g, 'row ' || g, g * 10 FROM generate_series(-1, 3) g",
        "CREATE VIEW v AS SELECT b AS vb, a AS va, c + 1 AS more, 'k'::text AS k FROM t WHERE a > 0",
    ]);
    s
}

const ALL: &str = "SELECT string_agg(concat_ws(' ', a, b, c), ', ' ORDER BY a) FROM t";

#[test]
fn rows_are_written_through_columns_in_another_order() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        ("INSERT INTO v (va) VALUES (5) RETURNING va, vb, more, k, old.k, new.k", "5|none|~|k|~|k"),
        ("INSERT INTO v (va, vb) VALUES (-5, 'hidden') RETURNING va, old.va, new.vb", "-5|~|hidden"),
        ("UPDATE v SET vb = vb || more WHERE va < 3 RETURNING va, old.vb, new.vb, more", "1|row 1|row 111|11\n2|row 2|row 221|21"),
        ("UPDATE v SET va = va + 100 FROM t WHERE t.a = v.va - 3 RETURNING v.va, t.a", "102|-1\n103|0\n105|2"),
        ("DELETE FROM v USING generate_series(1, 9) g WHERE g = va RETURNING v.*, old.more, new.k", "row 111|1|11|k|11|~"),
        (ALL, "-5 hidden, -1 row -1 -10, 0 row 0 0, 102 row 221 20, 103 row 3 30, 105 none"),
        ("UPDATE v SET (vb, va) = (SELECT more || 'x', va + 1) WHERE more = 31 RETURNING v", "(31x,104,31,k)"),
        ("WITH gone AS (DELETE FROM v RETURNING va) INSERT INTO v (va, vb) SELECT va - 100, 'back' FROM gone RETURNING va, vb", "2|back\n5|back\n4|back"),
    ]);
}

#[test]
fn a_conflict_is_one_of_the_table_below() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        ("INSERT INTO v (va) VALUES (1) ON CONFLICT (va) DO NOTHING RETURNING va", ""),
        ("INSERT INTO v (va, vb) VALUES (1, 'new') ON CONFLICT (va) DO UPDATE SET vb = excluded.vb || excluded.k || v.vb || v.more \
          WHERE v.more = 11 RETURNING old.vb, new.vb, more", "row 1|newkrow 111|11"),
        // Rows that the view does not show are met, too.
        ("INSERT INTO v (va) VALUES (-1) ON CONFLICT (va) DO UPDATE SET vb = 'met' RETURNING va, vb", "-1|met"),
        ("INSERT INTO v (va) VALUES (1) ON CONFLICT (more) DO NOTHING", "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification"),
        ("INSERT INTO v (va) VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING", "42704 constraint \"t_pkey\" for table \"v\" does not exist"),
        ("INSERT INTO v (va) VALUES (1) ON CONFLICT (va) DO UPDATE SET more = 1", "0A000 cannot insert into column \"more\" of view \"v\"\nView columns that are not columns of their base relation are not updatable."),
    ]);
}

#[test]
fn what_is_no_column_below_is_not_written() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&["CREATE VIEW odd AS SELECT ctid AS place, t AS whole, a, a AS again FROM t"]);
    let why = "View columns that are not columns of their base relation are not updatable.";
    s.check(&[
        ("UPDATE v SET k = 'x', more = 1", &format!("0A000 cannot update column \"more\" of view \"v\"\n{why}")),
        ("INSERT INTO v (va, k) VALUES (9, DEFAULT)", &format!("0A000 cannot insert into column \"k\" of view \"v\"\n{why}")),
        ("INSERT INTO v VALUES ('b', 9, 9)", &format!("0A000 cannot insert into column \"more\" of view \"v\"\n{why}")),
        ("UPDATE odd SET place = NULL", "0A000 cannot update column \"place\" of view \"odd\"\nView columns that refer to system columns are not updatable."),
        ("INSERT INTO odd (whole) VALUES (NULL)", "0A000 cannot insert into column \"whole\" of view \"odd\"\nView columns that return whole-row references are not updatable."),
        ("UPDATE odd SET a = 1, again = 2", "42601 multiple assignments to same column \"a\""),
        ("UPDATE v SET nope = 1", "42703 column \"nope\" of relation \"v\" does not exist"),
        ("UPDATE v SET vb = '' RETURNING ctid", "42703 column \"ctid\" does not exist"),
        ("TRUNCATE v", "42809 \"v\" is not a table"),
    ]);
}

#[test]
fn a_view_that_is_not_written_through_says_why() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&["CREATE SEQUENCE q", "CREATE MATERIALIZED VIEW m AS SELECT a FROM t"]);
    let not = "are not automatically updatable.";
    for (query, why) in [
        ("SELECT DISTINCT a FROM t", "Views containing DISTINCT"),
        ("SELECT a FROM t GROUP BY a", "Views containing GROUP BY"),
        ("SELECT 1 AS a FROM t HAVING true", "Views containing HAVING"),
        ("SELECT a FROM t UNION ALL SELECT 1", "Views containing UNION, INTERSECT, or EXCEPT"),
        ("WITH w AS (SELECT a FROM t) SELECT a FROM w", "Views containing WITH"),
        ("SELECT a FROM t LIMIT 1", "Views containing LIMIT or OFFSET"),
        ("SELECT a FROM t OFFSET 1", "Views containing LIMIT or OFFSET"),
        ("SELECT count(*) AS a FROM t", "Views that return aggregate functions"),
        ("SELECT a, rank() OVER () FROM t", "Views that return window functions"),
        ("SELECT a, generate_series(1, 2) FROM t", "Views that return set-returning functions"),
        ("SELECT 1 AS a", "Views that do not select from a single table or view"),
        ("SELECT t.a FROM t, t AS u", "Views that do not select from a single table or view"),
        (
            "SELECT a FROM (SELECT a FROM t) x",
            "Views that do not select from a single table or view",
        ),
        ("SELECT last_value AS a FROM q", "Views that do not select from a single table or view"),
        ("SELECT a FROM m", "Views that do not select from a single table or view"),
        ("SELECT a FROM t TABLESAMPLE SYSTEM (100)", "Views containing TABLESAMPLE"),
        ("SELECT a + 1 AS a FROM t", "Views that have no updatable columns"),
    ] {
        s.run_each(&[
            &format!("CREATE VIEW w AS {query}"),
            "CREATE VIEW over_w AS SELECT * FROM w",
        ]);
        for view in ["w", "over_w"] {
            let answer = s.run(&format!("UPDATE {view} SET a = 1"));
            assert_eq!(answer, format!("55000 cannot update view \"w\"\n{why} {not}"), "{query}");
        }
        let check = s.run("CREATE VIEW x AS SELECT * FROM w WITH CHECK OPTION");
        assert_eq!(check, "", "only the view itself is looked at: {query}");
        s.run_each(&["DROP VIEW w CASCADE"]);
    }
    s.check(&[
        ("CREATE VIEW x AS SELECT DISTINCT a FROM t WITH CHECK OPTION", "0A000 WITH CHECK OPTION is supported only on automatically updatable views"),
        ("CREATE VIEW x AS SELECT DISTINCT a FROM t", ""),
        ("DELETE FROM x", "55000 cannot delete from view \"x\"\nViews containing DISTINCT are not automatically updatable."),
        ("INSERT INTO x VALUES (1)", "55000 cannot insert into view \"x\"\nViews containing DISTINCT are not automatically updatable."),
        ("ALTER VIEW x SET (check_option = local)", "0A000 WITH CHECK OPTION is supported only on automatically updatable views"),
        ("ALTER VIEW v SET (check_option = nope)", "22023 invalid value for enum option \"check_option\": nope\nValid values are \"local\" and \"cascaded\"."),
    ]);
}

#[test]
fn a_view_has_defaults_of_its_own() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE VIEW over AS SELECT va AS x, vb AS y FROM v",
        "ALTER VIEW v ALTER vb SET DEFAULT 'of v'",
    ]);
    s.check(&[
        ("INSERT INTO v (va) VALUES (11) RETURNING vb", "of v"),
        ("INSERT INTO over (x) VALUES (12) RETURNING y", "of v"),
        ("INSERT INTO over VALUES (13, DEFAULT), (14, 'given') RETURNING y", "of v\ngiven"),
        ("UPDATE v SET vb = DEFAULT WHERE va = 14 RETURNING vb", "of v"),
        // Without one of its own there is none, whatever is below.
        ("UPDATE over SET y = DEFAULT WHERE x = 14 RETURNING y", "~"),
        ("ALTER VIEW v ALTER vb DROP DEFAULT", ""),
        ("INSERT INTO over VALUES (15, DEFAULT) RETURNING y", "none"),
        ("ALTER VIEW over ALTER x SET DEFAULT 99", ""),
        ("INSERT INTO over DEFAULT VALUES RETURNING x, y", "99|none"),
    ]);
    s.run_each(&[
        "CREATE TABLE i (a int GENERATED ALWAYS AS IDENTITY, b int, c int GENERATED ALWAYS AS (b * 2) STORED)",
        "CREATE VIEW iv AS SELECT c AS vc, b AS vb, a AS va FROM i",
    ]);
    s.check(&[
        ("INSERT INTO iv (vb) VALUES (4) RETURNING *", "8|4|1"),
        ("INSERT INTO iv (va) VALUES (4)", "428C9 cannot insert a non-DEFAULT value into column \"a\"\nColumn \"a\" is an identity column defined as GENERATED ALWAYS."),
        ("INSERT INTO iv (va) OVERRIDING SYSTEM VALUE VALUES (4) RETURNING va", "4"),
        ("UPDATE iv SET vc = 3", "428C9 column \"c\" can only be updated to DEFAULT\nColumn \"c\" is a generated column."),
        ("UPDATE iv SET vb = 5 WHERE va = 1 RETURNING *", "10|5|1"),
    ]);
}

#[test]
fn what_the_table_works_out_takes_no_values_and_no_views_defaults() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE n (i int GENERATED ALWAYS AS IDENTITY, g int GENERATED ALWAYS AS (p * 2) STORED, p int, q int)",
        "CREATE VIEW v AS SELECT g AS gg, i AS ii, i AS again, g AS same, p, q, 1 AS k FROM n",
        "CREATE VIEW w AS SELECT ii, gg, p FROM v",
    ]);
    let inserted = |c: &str, detail: &str| {
        format!(
            "428C9 cannot insert a non-DEFAULT value into column \"{c}\"\nColumn \"{c}\" is {detail}"
        )
    };
    let set = |c: &str, detail: &str| {
        format!("428C9 column \"{c}\" can only be updated to DEFAULT\nColumn \"{c}\" is {detail}")
    };
    let (identity, generated) =
        ("an identity column defined as GENERATED ALWAYS.", "a generated column.");
    let (no_identity, no_generated) = (inserted("i", identity), inserted("g", generated));
    s.check(&[
        ("INSERT INTO v (ii, p) VALUES (DEFAULT, 1) RETURNING ii, gg", "1|2"),
        ("INSERT INTO v (p, gg) VALUES (1, DEFAULT), (2, DEFAULT) RETURNING ii, gg", "2|2\n3|4"),
        ("INSERT INTO v (again, p) VALUES (DEFAULT, 1), (7, 2)", &no_identity),
        ("INSERT INTO v (again, p) OVERRIDING USER VALUE VALUES (DEFAULT, 1), (7, 2) RETURNING ii", "4\n5"),
        ("UPDATE v SET again = DEFAULT", &set("i", identity)),
        ("UPDATE v SET same = DEFAULT", &set("g", generated)),
        // Whatever else is wrong is said first.
        ("INSERT INTO v (ii, p) VALUES (1, 1) RETURNING nope", "42703 column \"nope\" does not exist"),
        ("INSERT INTO v (ii, again) VALUES (1, 1)", "42601 multiple assignments to same column \"i\""),
        ("UPDATE v SET gg = 1, same = 2", "42601 multiple assignments to same column \"g\""),
        ("INSERT INTO v (ii, k) VALUES (1, 1)", "0A000 cannot insert into column \"k\" of view \"v\"\nView columns that are not columns of their base relation are not updatable."),
        ("INSERT INTO v (ii) VALUES (1) ON CONFLICT (p) DO NOTHING", &no_identity),
    ]);
    // A default of a view is a value for the table below.
    s.run_each(&["ALTER VIEW v ALTER again SET DEFAULT 50"]);
    s.check(&[
        ("INSERT INTO v (p) VALUES (1)", &no_identity),
        ("UPDATE v SET again = 6", &set("i", identity)),
        ("UPDATE v SET again = DEFAULT", &set("i", identity)),
        ("INSERT INTO v (p) OVERRIDING USER VALUE VALUES (1) RETURNING ii", "6"),
        ("INSERT INTO v (p) OVERRIDING SYSTEM VALUE VALUES (1) RETURNING ii", "50"),
    ]);
    s.run_each(&[
        "ALTER VIEW v ALTER again DROP DEFAULT",
        "ALTER VIEW v ALTER ii SET DEFAULT 60",
        "ALTER VIEW v ALTER gg SET DEFAULT 1",
    ]);
    s.check(&[
        ("INSERT INTO w (p) OVERRIDING SYSTEM VALUE VALUES (1)", &no_generated),
        (
            "INSERT INTO w (ii, gg, p) VALUES (DEFAULT, DEFAULT, 1), (DEFAULT, DEFAULT, 2)",
            &no_identity,
        ),
    ]);
    s.run_each(&[
        "ALTER VIEW v ALTER gg DROP DEFAULT",
        "ALTER TABLE n ALTER i SET GENERATED BY DEFAULT",
    ]);
    s.check(&[
        ("INSERT INTO w (ii, p) VALUES (DEFAULT, 1) RETURNING ii", "60"),
        ("INSERT INTO w (ii, p) OVERRIDING USER VALUE VALUES (DEFAULT, 1) RETURNING ii", "7"),
        ("UPDATE v SET ii = DEFAULT WHERE ii = 7 RETURNING old.ii, new.ii", "7|60"),
    ]);
}

#[test]
fn a_default_of_null_is_none() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "ALTER VIEW v ALTER vb SET DEFAULT 'view'",
        "ALTER VIEW v ALTER vb SET DEFAULT NULL",
        "ALTER VIEW v ALTER more SET DEFAULT NULL",
        "CREATE TABLE n (a int DEFAULT NULL, b text DEFAULT NULL::text, c int DEFAULT 1)",
    ]);
    s.check(&[
        ("INSERT INTO v (va) VALUES (7) RETURNING vb", "none"),
        ("SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'n'::regclass AND atthasdef", "c"),
        ("SELECT count(*) FROM pg_attrdef WHERE adrelid IN ('n'::regclass, 'v'::regclass)", "1"),
    ]);
}

#[test]
fn a_domain_is_asked_of_what_is_written_through() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DOMAIN small AS int DEFAULT 3 CHECK (VALUE < 100)",
        "CREATE TABLE t (a int, d small, e small DEFAULT 5)",
        "CREATE VIEW v AS SELECT e AS ve, d AS vd, a AS va FROM t WHERE a > 0 WITH CHECK OPTION",
    ]);
    let refused = "23514 value for domain small violates check constraint \"small_check\"";
    s.check(&[
        ("INSERT INTO v (va) VALUES (1) RETURNING ve, vd", "3|3"),
        ("INSERT INTO v (va, ve, vd) VALUES (2, DEFAULT, 7) RETURNING ve, vd", "3|7"),
        ("UPDATE v SET vd = vd + 95", refused),
        ("UPDATE v SET vd = DEFAULT, va = va + 1 RETURNING va, vd", "2|3\n3|3"),
        ("INSERT INTO v (va, vd) VALUES (1, 200)", refused),
    ]);
}

#[test]
fn a_check_option_is_asked_of_new_rows() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c int)",
        "CREATE VIEW one AS SELECT * FROM t WHERE a > 0 WITH LOCAL CHECK OPTION",
        "CREATE VIEW two AS SELECT c, b, a FROM one WHERE b > 0",
        "CREATE VIEW three AS SELECT a x, b y, c z FROM two WHERE c > 0 WITH CASCADED CHECK OPTION",
        "CREATE VIEW four AS SELECT * FROM three WHERE x < 100",
    ]);
    let fails = |view: &str, row: &str| {
        format!(
            "44000 new row violates check option for view \"{view}\"\nFailing row contains ({row})."
        )
    };
    s.check(&[
        ("INSERT INTO four VALUES (1, 1, 1), (200, 2, 2) RETURNING x", "1\n200"),
        ("INSERT INTO four VALUES (-1, -1, -1)", &fails("one", "-1, -1, -1")),
        ("INSERT INTO four VALUES (3, -1, -1)", &fails("two", "3, -1, -1")),
        ("INSERT INTO four VALUES (3, NULL, 1)", &fails("two", "3, null, 1")),
        ("INSERT INTO four VALUES (3, 1, -1)", &fails("three", "3, 1, -1")),
        ("INSERT INTO two VALUES (-1, -1, 4) RETURNING b", "-1"),
        ("UPDATE four SET z = -z", &fails("three", "1, 1, -1")),
        ("INSERT INTO four VALUES (1, 1, 1) ON CONFLICT (x) DO UPDATE SET y = -5", &fails("two", "1, -5, 1")),
        ("UPDATE four SET x = 500 RETURNING x", "500"),
        // What the indexes refuse comes first.
        ("INSERT INTO four VALUES (200, -1, 1)", "23505 duplicate key value violates unique constraint \"t_pkey\"\nKey (a)=(200) already exists."),
        ("SELECT table_name, check_option FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1", "four|NONE\none|LOCAL\nthree|CASCADED\ntwo|NONE"),
        ("ALTER VIEW one RESET (check_option)", ""),
        ("INSERT INTO one VALUES (-9) RETURNING a", "-9"),
    ]);
    s.run_each(&[
        "CREATE TABLE r (x int)",
        "INSERT INTO r VALUES (5), (7)",
        "CREATE VIEW linked AS SELECT a, (SELECT count(*) FROM r WHERE x < a) AS n FROM t WHERE EXISTS (SELECT FROM r WHERE x = a) WITH CHECK OPTION",
    ]);
    s.check(&[
        (
            "INSERT INTO linked VALUES (5) RETURNING a, n, (SELECT max(linked.n + x) FROM r)",
            "5|0|7",
        ),
        ("INSERT INTO linked VALUES (6)", &fails("linked", "6, null, null")),
        ("UPDATE linked SET a = a + 2 WHERE n = 0 RETURNING a, old.n, new.n", "7|0|1"),
        ("UPDATE linked SET a = 8", &fails("linked", "8, null, null")),
        ("DELETE FROM linked WHERE n IN (SELECT linked.n FROM r WHERE x = a) RETURNING n", "1"),
    ]);
}

#[test]
fn the_views_owner_is_asked_for_its_table_and_the_user_for_the_view() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE owner",
        "CREATE ROLE other",
        "CREATE ROLE third",
        "GRANT ALL ON SCHEMA public TO PUBLIC",
        "SET ROLE owner",
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t VALUES (1, 'one')",
        "CREATE VIEW v AS SELECT a FROM t WHERE a < 50 WITH CHECK OPTION",
        "SET ROLE other",
    ]);
    s.check(&[
        ("UPDATE v SET a = 2", "42501 permission denied for view v"),
        ("SELECT a FROM v FOR UPDATE", "42501 permission denied for view v"),
        ("SET ROLE owner", ""),
        ("GRANT ALL ON v TO other", ""),
        ("SET ROLE other", ""),
        ("UPDATE v SET a = 2 RETURNING a", "2"),
        ("SELECT a FROM v FOR UPDATE", "2"),
        ("UPDATE t SET a = 3", "42501 permission denied for table t"),
        // What one may not read is not told.
        (
            "UPDATE v SET a = 77",
            "44000 new row violates check option for view \"v\"\nFailing row contains (a) = (77).",
        ),
        ("CREATE VIEW mine AS SELECT a FROM t", ""),
        ("UPDATE mine SET a = 5", "42501 permission denied for table t"),
        ("CREATE VIEW over AS SELECT a FROM v", ""),
        ("GRANT ALL ON over TO third", ""),
        ("SET ROLE third", ""),
        ("UPDATE over SET a = 6 RETURNING a", "6"),
        ("SET ROLE owner", ""),
        ("ALTER VIEW v SET (security_invoker)", ""),
        ("SET ROLE other", ""),
        ("UPDATE v SET a = 7", "42501 permission denied for table t"),
        ("SELECT * FROM v", "42501 permission denied for table t"),
        ("SET ROLE owner", ""),
        ("GRANT SELECT, UPDATE ON t TO third", ""),
        ("SET ROLE third", ""),
        ("UPDATE over SET a = 8 RETURNING a", "8"),
        ("DELETE FROM over", "42501 permission denied for table t"),
        ("RESET ROLE", ""),
        ("ALTER VIEW v RESET (security_invoker)", ""),
        ("ALTER VIEW v OWNER TO third", ""),
        ("SET ROLE other", ""),
        ("UPDATE over SET a = 9 RETURNING a", "9"),
        ("DELETE FROM over", "42501 permission denied for table t"),
    ]);
}

#[test]
fn a_view_in_a_view_counts_as_it_is_now() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE VIEW inner_v AS SELECT a, b FROM t WHERE a > 0",
        "CREATE VIEW outer_v AS SELECT a, b FROM inner_v",
        "CREATE MATERIALIZED VIEW kept AS SELECT a FROM inner_v",
        "CREATE OR REPLACE VIEW inner_v AS SELECT a, b FROM t WHERE a < 0",
        "REFRESH MATERIALIZED VIEW kept",
    ]);
    s.check(&[
        ("SELECT a FROM outer_v", "-1"),
        ("SELECT a FROM kept", "-1"),
        ("UPDATE outer_v SET b = 'x' RETURNING a", "-1"),
        ("CREATE OR REPLACE VIEW inner_v AS SELECT a, b FROM outer_v", ""),
        (
            "SELECT a FROM outer_v",
            "42P17 infinite recursion detected in rules for relation \"outer_v\"",
        ),
    ]);
}

#[test]
fn plans_and_catalogs_name_what_is_there() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE VIEW d AS SELECT DISTINCT a FROM t",
        "CREATE VIEW e AS SELECT a + 1 AS a FROM t",
    ]);
    s.check(&[
        ("EXPLAIN (COSTS OFF) UPDATE v SET vb = '' WHERE k = vb", "Update on t\n  ->  Seq Scan on t\n        Filter: (('k'::text = b) AND (a > 0))"),
        ("SELECT relname, pg_relation_is_updatable(oid, false), pg_column_is_updatable(oid, 1::int2, false) FROM pg_class WHERE relname IN ('t', 't_pkey', 'v', 'd', 'e') ORDER BY 1", "d|0|f\ne|16|f\nt|28|t\nt_pkey|0|f\nv|28|t"),
        ("SELECT table_name, is_updatable, is_insertable_into FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1", "d|NO|NO\ne|NO|NO\nv|YES|YES"),
        ("SELECT column_name, is_updatable FROM information_schema.columns WHERE table_name = 'v' ORDER BY ordinal_position", "vb|YES\nva|YES\nmore|NO\nk|NO"),
        ("SELECT table_name, is_insertable_into FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1", "d|NO\ne|NO\nt|YES\nv|YES"),
        ("DELETE FROM e WHERE a = 0 RETURNING a", "0"),
        ("ALTER VIEW v SET (security_barrier, check_option = local)", ""),
        ("SELECT reloptions FROM pg_class WHERE relname = 'v'", "{security_barrier=true,check_option=local}"),
        ("CREATE OR REPLACE VIEW v AS SELECT b AS vb, a AS va, c + 1 AS more, 'k'::text AS k FROM t", ""),
        ("SELECT reloptions FROM pg_class WHERE relname = 'v'", "~"),
    ]);
}

/// A row that somebody else changed meanwhile is written only if the view still shows it.
#[test]
fn the_views_condition_is_asked_again_of_a_newer_version() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&["CREATE VIEW over AS SELECT va, vb FROM v WHERE vb <> 'no'"]);
    assert_eq!(waiting(&db, "UPDATE t SET a = -10 WHERE a = 1", "UPDATE v SET vb = 'written'"), "");
    s.check(&[(ALL, "-10 row 1 10, -1 row -1 -10, 0 row 0 0, 2 written 20, 3 written 30")]);
    assert_eq!(
        waiting(&db, "UPDATE t SET b = 'no' WHERE a = 2", "DELETE FROM over RETURNING va"),
        "3"
    );
    s.check(&[(ALL, "-10 row 1 10, -1 row -1 -10, 0 row 0 0, 2 no 20")]);
    s.run_each(&["UPDATE t SET b = 'seen' WHERE a = 2"]);
    let locked = "SELECT va FROM over FOR UPDATE";
    assert_eq!(waiting(&db, "UPDATE t SET a = 5, b = 'yes' WHERE a = 2", locked), "5");
    assert_eq!(waiting(&db, "UPDATE t SET b = 'no' WHERE a = 5", locked), "");
    assert_eq!(
        waiting(
            &db,
            "UPDATE t SET c = 6 WHERE a = 5",
            "UPDATE v SET vb = 'w' || more RETURNING va, vb"
        ),
        "5|w7"
    );
}
