//! SEARCH and CYCLE of recursive WITH queries. The answers are PostgreSQL 18's.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE tree (id int, parent int)",
        "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)",
        "CREATE TABLE graph (f int, t int)",
        "INSERT INTO graph VALUES (1, 2), (2, 3), (1, 4), (4, 5), (5, 1)",
    ]);
    db
}

const DOWN: &str = "WITH RECURSIVE s AS (SELECT * FROM tree WHERE parent IS NULL UNION ALL SELECT t.* FROM tree t, s WHERE t.parent = s.id)";
const ROUND: &str = "WITH RECURSIVE s AS (SELECT f, t FROM graph WHERE f = 1 UNION ALL SELECT g.f, g.t FROM graph g JOIN s x ON g.f = x.t)";
const COUNT: &str = "WITH RECURSIVE s AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM s WHERE a < 3)";

#[test]
fn rows_are_ordered_by_the_way_to_them() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        (&*format!("{DOWN} SEARCH DEPTH FIRST BY id SET o SELECT id, o FROM s ORDER BY o"), "1|{(1)}\n2|{(1),(2)}\n4|{(1),(2),(4)}\n5|{(1),(2),(5)}\n3|{(1),(3)}\n6|{(1),(3),(6)}"),
        (&*format!("{DOWN} SEARCH BREADTH FIRST BY id SET o SELECT * FROM s ORDER BY o"), "1|~|(0,1)\n2|1|(1,2)\n3|1|(1,3)\n4|2|(2,4)\n5|2|(2,5)\n6|3|(2,6)"),
        ("WITH RECURSIVE s(i, p) AS (SELECT * FROM tree WHERE parent IS NULL UNION SELECT t.* FROM tree t JOIN s x ON t.parent = x.i) \
          SEARCH DEPTH FIRST BY p, i SET o SELECT i, o FROM s ORDER BY o LIMIT 3", "1|{\"(,1)\"}\n2|{\"(,1)\",\"(1,2)\"}\n4|{\"(,1)\",\"(1,2)\",\"(2,4)\"}"),
        // Of a row that is around.
        ("SELECT id, (WITH RECURSIVE s AS (SELECT t.id AS a UNION ALL SELECT a + 1 FROM s WHERE a < 3) SEARCH DEPTH FIRST BY a SET o \
          SELECT string_agg(o::text, ';') FROM s) FROM tree t WHERE id < 3 ORDER BY id", "1|{(1)};{(1),(2)};{(1),(2),(3)}\n2|{(2)};{(2),(3)}"),
    ]);
}

#[test]
fn a_row_that_has_been_there_goes_no_further() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        (&*format!("{ROUND} CYCLE f, t SET c USING p SELECT t, c FROM s ORDER BY p"), "2|f\n3|f\n4|f\n5|f\n1|f\n2|f\n3|f\n4|t"),
        (&*format!("{ROUND} CYCLE f, t SET c TO 'yes' DEFAULT 'no' USING p SELECT p, c FROM s WHERE c = 'yes'"), "{\"(1,4)\",\"(4,5)\",\"(5,1)\",\"(1,4)\"}|yes"),
        (&*format!("{ROUND} SEARCH DEPTH FIRST BY t SET o CYCLE t SET c TO 1 DEFAULT 0 USING p SELECT t, o, c FROM s ORDER BY o"), "2|{(2)}|0\n3|{(2),(3)}|0\n4|{(4)}|0\n5|{(4),(5)}|0\n1|{(4),(5),(1)}|0\n2|{(4),(5),(1),(2)}|0\n3|{(4),(5),(1),(2),(3)}|0\n4|{(4),(5),(1),(4)}|1"),
        // The query may name the columns, but * does not stand for them.
        ("WITH RECURSIVE s AS (SELECT f, t FROM graph WHERE f = 1 UNION ALL SELECT g.f, g.t FROM graph g, s WHERE g.f = s.t AND array_length(p, 1) < 2) \
          CYCLE f SET c USING p SELECT t, c, p FROM s ORDER BY p, t", "2|f|{(1)}\n4|f|{(1)}\n3|f|{(1),(2)}\n5|f|{(1),(4)}"),
        ("WITH RECURSIVE s AS (SELECT f, t FROM graph WHERE f = 1 UNION ALL SELECT s.* FROM s WHERE f < 0) CYCLE f SET c USING p SELECT * FROM s ORDER BY t", "1|2|f|{(1)}\n1|4|f|{(1)}"),
    ]);
}

#[test]
fn what_they_say_must_fit() {
    let db = database();
    let mut s = db.session();
    let not_recursive = "42601 WITH query is not recursive";
    s.check(&[
        ("WITH s AS (SELECT 1 AS a) SEARCH DEPTH FIRST BY a SET o SELECT * FROM s", not_recursive),
        ("WITH RECURSIVE s AS (SELECT 1 AS a) CYCLE a SET o USING p SELECT * FROM s", not_recursive),
        (&*format!("{COUNT} SEARCH DEPTH FIRST BY b SET o SELECT * FROM s"), "42601 search column \"b\" not in WITH query column list"),
        (&*format!("{COUNT} SEARCH DEPTH FIRST BY a, a SET o SELECT * FROM s"), "42701 search column \"a\" specified more than once"),
        (&*format!("{COUNT} SEARCH DEPTH FIRST BY a SET a SELECT * FROM s"), "42702 column reference \"a\" is ambiguous"),
        (&*format!("{} SEARCH DEPTH FIRST BY a SET a SELECT * FROM s", COUNT.replace("a + 1 FROM s WHERE a < 3", "1 FROM s")), "42601 search sequence column name \"a\" already used in WITH query column list"),
        (&*format!("{COUNT} CYCLE a SET o USING o SELECT * FROM s"), "42601 cycle mark column name and cycle path column name are the same"),
        (&*format!("{COUNT} SEARCH DEPTH FIRST BY a SET o CYCLE a SET q USING o SELECT * FROM s"), "42601 search sequence column name and cycle path column name are the same"),
        (&*format!("{COUNT} CYCLE a SET o TO true DEFAULT 5 USING p SELECT * FROM s"), "42804 CYCLE types boolean and integer cannot be matched"),
        ("WITH RECURSIVE s AS (SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT a + 1 FROM s WHERE a < 3) SEARCH DEPTH FIRST BY a SET o SELECT * FROM s", "0A000 with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT"),
        ("WITH RECURSIVE s AS (SELECT 1 AS a UNION ALL SELECT q.* FROM (SELECT a + 1 FROM s WHERE a < 3) q) CYCLE a SET c USING p SELECT * FROM s", "0A000 with a SEARCH or CYCLE clause, the recursive reference to WITH query \"s\" must be at the top level of its right-hand SELECT"),
    ]);
}

#[test]
fn a_view_shows_them() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        &format!("CREATE VIEW v AS {COUNT} SEARCH BREADTH FIRST BY a SET o CYCLE a SET c TO 'Y' DEFAULT 'N' USING p SELECT a, c FROM s ORDER BY o"),
        &format!("CREATE VIEW w AS {COUNT} CYCLE a SET c USING p SELECT a, c FROM s"),
        "CREATE RECURSIVE VIEW r (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 3",
    ]);
    s.check(&[
        ("SELECT * FROM v", "1|N\n2|N\n3|N"),
        (
            "SELECT substring(pg_get_viewdef('v') FROM '\\) (SEARCH.* p)\n')",
            "SEARCH BREADTH FIRST BY a SET o CYCLE a SET c TO 'Y'::text DEFAULT 'N'::text USING p",
        ),
        ("SELECT substring(pg_get_viewdef('w') FROM '\\) (CYCLE.* p)\n')", "CYCLE a SET c USING p"),
        ("SELECT * FROM r", "1\n2\n3"),
        (
            "CREATE RECURSIVE VIEW q (n) AS VALUES (1) WITH CHECK OPTION",
            "0A000 WITH CHECK OPTION not supported on recursive views",
        ),
    ]);
    // What is shown makes the view again, as a dump does.
    let shown = s.run("SELECT pg_get_viewdef('v')");
    s.run_each(&[&format!("CREATE VIEW again AS {shown}")]);
    s.check(&[
        ("SELECT * FROM again", "1|N\n2|N\n3|N"),
        ("SELECT pg_get_viewdef('again')", &shown),
    ]);
}
