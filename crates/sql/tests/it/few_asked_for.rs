//! Plans of statements that ask for few rows, or ask much of each.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE o (id int PRIMARY KEY, c int, day int, total int, filler text)",
        "INSERT INTO o SELECT g, g % 500, g % 200, g * 7919 % 1000, repeat('x', 200) FROM generate_series(1, 6000) g",
        "CREATE INDEX ON o (c)",
        "CREATE INDEX ON o (day)",
        "CREATE TABLE c (id int, region int)",
        "INSERT INTO c SELECT nullif(g, 7), nullif(g % 20, 3) FROM generate_series(1, 70) g",
        "VACUUM ANALYZE o, c",
    ]);
    db
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The plan has this part; the rows are those of another statement.
fn check(s: &mut Connection, statement: &str, part: &str, alike: &str) {
    let shape = plan(s, statement);
    assert!(shape.contains(part), "{statement}\n{shape}");
    let rows = s.run(statement);
    assert!(rows.lines().count() > 2, "{statement}: {rows}");
    assert_eq!(rows, s.run(alike), "{statement}");
}

/// What a sub-select costs that is run for each row is part of what reading the row costs: a LIMIT is better met row by row, in order.
#[test]
fn a_sub_select_in_a_condition_costs_each_time() {
    let db = database();
    let mut s = db.session();
    check(
        &mut s,
        "SELECT id FROM o WHERE total >= (SELECT max(total) FROM o x WHERE x.day = o.day) ORDER BY id LIMIT 5",
        "Index Scan using o_pkey on o",
        "SELECT id FROM (SELECT *, max(total) OVER (PARTITION BY day) m FROM o) s WHERE total >= m ORDER BY id LIMIT 5",
    );
    // Whether one row is expected or more: the first comes sooner so.
    check(
        &mut s,
        "SELECT id FROM o WHERE id = (SELECT max(id) FROM o x WHERE x.day = o.day) ORDER BY id LIMIT 5",
        "Index Scan using o_pkey on o",
        "SELECT max(id) FROM o GROUP BY day ORDER BY 1 LIMIT 5",
    );
    // Cheap conditions are asked first, and of what they leave alone the sub-select is run.
    check(
        &mut s,
        "SELECT id FROM o WHERE c = 5 AND total > (SELECT avg(total) FROM o x WHERE x.filler = o.filler) ORDER BY id",
        "Index Cond: (c = 5)",
        "SELECT id FROM o WHERE c = 5 AND total > (SELECT avg(total) FROM o) ORDER BY id",
    );
}

/// Rows that come out of a window in the beginning of the order asked for are sorted group by group, and as many as are asked for.
#[test]
fn the_order_of_a_window_is_the_beginning_of_the_order_asked_for() {
    let db = database();
    let mut s = db.session();
    let query =
        "SELECT c, id, rank() OVER (PARTITION BY c ORDER BY total) r FROM o ORDER BY c, id DESC";
    let want = s.run(&format!("{query} OFFSET 0"));
    let limited = format!("{query} LIMIT 40");
    let shape = plan(&mut s, &limited);
    assert_eq!(shape.matches("Incremental Sort").count(), 2, "{shape}");
    assert!(shape.contains("Index Scan using o_c_idx"), "{shape}");
    let first: Vec<&str> = want.lines().take(40).collect();
    assert_eq!(s.run(&limited), first.join("\n"));
    s.run_each(&["SET enable_incremental_sort = off"]);
    assert!(!plan(&mut s, &limited).contains("Incremental"));
    assert_eq!(s.run(query), want);
    s.run_each(&["RESET enable_incremental_sort"]);
    // The other way round it is another order, and what is sorted by twice is one element.
    for order in ["c DESC, id", "c, c, id DESC", "r, c, id", "c NULLS FIRST, r, id"] {
        let ordered = format!(
            "SELECT c, id, rank() OVER (PARTITION BY c ORDER BY total) r FROM o ORDER BY {order}"
        );
        let plain = s.run(&format!("SELECT * FROM (SELECT c, id, rank() OVER (PARTITION BY c ORDER BY total) r FROM o OFFSET 0) s ORDER BY {order}"));
        assert_eq!(s.run(&ordered), plain, "{order}");
        let first: Vec<&str> = plain.lines().take(7).collect();
        assert_eq!(s.run(&format!("{ordered} LIMIT 7")), first.join("\n"), "{order}");
    }
}

/// `IN` of rows that depend on the row around is a join, as EXISTS is.
#[test]
fn in_of_rows_that_depend_on_the_row_around_is_a_join() {
    let db = database();
    let mut s = db.session();
    for (condition, part) in [
        ("id IN (SELECT c FROM o WHERE total > region * 49)", "Join"),
        ("id = ANY (SELECT c + 0 FROM o WHERE o.day = region)", "Join"),
        ("(id, region) IN (SELECT c, day FROM o WHERE total > region)", "Join"),
        ("region * 11 > SOME (SELECT day FROM o WHERE o.c = c.id)", "Join"),
        ("id IN (SELECT DISTINCT c FROM o WHERE total > region * 49)", "Join"),
        (
            "id IN (SELECT c FROM o WHERE total > region * 49 GROUP BY c HAVING count(*) > 2)",
            "SubPlan",
        ),
        ("id IN (SELECT c FROM o WHERE o.c = c.id ORDER BY total DESC LIMIT 1)", "SubPlan"),
        ("(id IN (SELECT c FROM o WHERE o.day = region)) IS NOT TRUE", "SubPlan"),
        ("id NOT IN (SELECT c FROM o WHERE o.day = region)", "SubPlan"),
    ] {
        // Once more as what stays a sub-select: a column that is computed from it.
        check(
            &mut s,
            &format!("SELECT id, region FROM c WHERE {condition} ORDER BY 1, 2"),
            part,
            &format!(
                "SELECT id, region FROM (SELECT *, {condition} AS fits FROM c OFFSET 0) s WHERE fits ORDER BY 1, 2"
            ),
        );
    }
}

/// Pages that an OR's indexes lead to are read in the table's order: many of them are no random reads.
#[test]
fn many_pages_of_an_or_are_neighbours() {
    let db = database();
    let mut s = db.session();
    check(
        &mut s,
        "SELECT id FROM o WHERE day IN (4, 5) AND total > 100 OR c IN (3, 5, 9) OR id < 10 ORDER BY id",
        "Bitmap Heap Scan on o",
        "SELECT id FROM o WHERE day + 0 IN (4, 5) AND total > 100 OR c + 0 IN (3, 5, 9) OR id + 0 < 10 ORDER BY id",
    );
}

/// A foreign key is checked by a join that is made for all rows.
#[test]
fn rows_of_a_new_foreign_key_are_joined() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE r AS SELECT g id, g % 6000 + 1 o FROM generate_series(1, 9000) g", ""),
        ("ALTER TABLE r ADD FOREIGN KEY (o) REFERENCES o", ""),
        ("ALTER TABLE r DROP CONSTRAINT r_o_fkey", ""),
        ("INSERT INTO r VALUES (0, 6001), (0, 6002)", ""),
        (
            "ALTER TABLE r ADD FOREIGN KEY (o) REFERENCES o",
            "23503 insert or update on table \"r\" violates foreign key constraint \"r_o_fkey\"\nKey (o)=(6001) is not present in table \"o\".",
        ),
    ]);
}

/// Rows that come in the beginning of an order are sorted further for DISTINCT; groups by a key come in its order, with what depends on it.
#[test]
fn different_rows_and_groups_come_in_order() {
    let db = database();
    let mut s = db.session();
    check(
        &mut s,
        "SELECT DISTINCT c, total FROM o ORDER BY c, total LIMIT 20",
        "Unique -> Incremental Sort",
        "SELECT c, total FROM o GROUP BY c, total ORDER BY c, total LIMIT 20",
    );
    check(
        &mut s,
        "SELECT DISTINCT c, total FROM o ORDER BY c DESC LIMIT 20",
        "Unique -> Incremental Sort",
        "SELECT c, total FROM o GROUP BY c, total ORDER BY c DESC, total LIMIT 20",
    );
    for (order, part) in [
        ("o.id", "Index Scan using o_pkey"),
        ("o.total, o.id", "Sort"),
        ("o.total DESC, o.id", "Sort"),
    ] {
        check(
            &mut s,
            &format!(
                "SELECT o.id, o.total, o.day, count(c.id) FROM o LEFT JOIN c ON c.region = o.c GROUP BY o.id ORDER BY {order} LIMIT 12"
            ),
            part,
            &format!(
                "SELECT o.id, o.total, o.day, (SELECT count(c.id) FROM c WHERE c.region = o.c) FROM o ORDER BY {order} LIMIT 12"
            ),
        );
    }
    // The first groups of a join come first in a nested loop, whatever all of them would cost.
    check(
        &mut s,
        "SELECT a.id, a.total, count(b.id) FROM o a LEFT JOIN o b ON b.c = a.day GROUP BY a.id ORDER BY a.id LIMIT 5",
        "GroupAggregate Group Key: a.id, a.total -> Nested Loop Left Join -> Index Scan using o_pkey on o a",
        "SELECT id, total, (SELECT count(*) FROM o b WHERE b.c = a.day) FROM o a ORDER BY id LIMIT 5",
    );
}

/// What is dear is computed of the rows that a LIMIT takes, once they are in order: others' errors are not met.
#[test]
fn what_is_dear_waits_for_the_limit() {
    let db = database();
    let mut s = db.session();
    let of_each = "(SELECT sum(x.id * 0 + 1000 / (999 - o.total)) FROM o x WHERE x.c = o.c)";
    check(
        &mut s,
        &format!("SELECT id, {of_each} FROM o ORDER BY total, id LIMIT 3"),
        "Limit -> Result -> Sort Sort Key: o.total, o.id -> Seq Scan on o",
        "SELECT id, 12 FROM o ORDER BY total, id LIMIT 3",
    );
    let failed = s.run(&format!("SELECT id, {of_each} FROM o ORDER BY total DESC, id LIMIT 3"));
    assert!(failed.contains("division by zero"), "{failed}");
    // Over groups, with a row more that is asked for to know a tie by, and where it is itself what is sorted by.
    for (statement, part) in [
        (
            "SELECT day, (SELECT count(*) FROM o x WHERE x.c = o.day) n FROM o GROUP BY day ORDER BY sum(total), day LIMIT 4",
            "Limit -> Result -> Sort",
        ),
        (
            "SELECT id, (SELECT count(*) FROM o x WHERE x.c = o.c) n FROM o ORDER BY total FETCH FIRST 4 ROWS WITH TIES",
            "Limit -> Result -> Sort",
        ),
        (
            "SELECT id, (SELECT count(*) FROM o x WHERE x.c = o.c) n FROM o ORDER BY n, id LIMIT 4",
            "Limit -> Sort",
        ),
    ] {
        let all = statement.split(" LIMIT").next().unwrap().split(" FETCH").next().unwrap();
        let shape = plan(&mut s, statement);
        assert!(shape.contains(part), "{statement}\n{shape}");
        let (some, all) = (s.run(statement), s.run(all));
        assert!(some.lines().count() >= 4, "{some}");
        match statement.contains("TIES") {
            // Which of those alike comes first nobody says.
            true => assert!(some.lines().all(|row| all.lines().any(|l| l == row))),
            false => assert!(all.starts_with(&some), "{statement}"),
        }
    }
}
