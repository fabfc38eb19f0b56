//! MERGE into views that are written through. The answers are PostgreSQL 18's.

use crate::support::{Connection, Database, waiting};

fn tables(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE b (id int PRIMARY KEY, v text DEFAULT 'dflt', n int, gen int GENERATED ALWAYS AS (n * 2) STORED)",
        "INSERT INTO b VALUES (-1, 'hid', -10), (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)",
        "CREATE VIEW vv AS SELECT v AS name, id AS key, n + 1 AS more, n FROM b WHERE id > 0",
        "CREATE TABLE s (k int, val text, n int)",
        "INSERT INTO s VALUES (1, 'one', 100), (4, 'four', 400)",
    ]);
    s
}

const ALL: &str = "SELECT string_agg(concat_ws(' ', id, v, n, gen), ', ' ORDER BY id) FROM b";

#[test]
fn its_rows_are_those_that_the_view_shows() {
    let db = Database::new();
    let mut s = tables(&db);
    s.check(&[
        ("MERGE INTO vv USING s ON vv.key = s.k WHEN MATCHED THEN UPDATE SET name = s.val, n = vv.n + s.n WHEN NOT MATCHED THEN INSERT (key, n) VALUES (s.k, s.n) \
          RETURNING merge_action(), old.name, old.more, new.*, s.k", "UPDATE|a|11|one|1|111|110|1\nINSERT|~|~|dflt|4|401|400|4"),
        (ALL, "-1 hid -10 -20, 1 one 110 220, 2 b 20 40, 3 c 30 60, 4 dflt 400 800"),
        // The hidden row is in the way of what does not match it.
        ("MERGE INTO vv USING (VALUES (-1)) q (k) ON vv.key = q.k WHEN NOT MATCHED THEN INSERT (key) VALUES (q.k)", "23505 duplicate key value violates unique constraint \"b_pkey\"\nKey (id)=(-1) already exists."),
        // Nor is it one that the source has nothing for.
        ("MERGE INTO vv AS w USING s ON w.key = s.k WHEN NOT MATCHED BY SOURCE AND w.key < 3 THEN UPDATE SET name = name || '!' \
          WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN DO NOTHING RETURNING merge_action(), old.key, new.key, new.name, new.more", "UPDATE|2|2|b!|21\nDELETE|3|~|~|~"),
        (ALL, "-1 hid -10 -20, 1 one 110 220, 2 b! 20 40, 4 dflt 400 800"),
        ("CREATE VIEW over AS SELECT key AS kk, name FROM vv WHERE key < 100", ""),
        ("MERGE INTO over USING (VALUES (1, 'deep'), (60, 'new')) q (k, m) ON over.kk = q.k WHEN MATCHED THEN UPDATE SET name = q.m WHEN NOT MATCHED THEN INSERT VALUES (q.k, q.m) \
          RETURNING merge_action(), over, old, new", "UPDATE|(1,deep)|(1,one)|(1,deep)\nINSERT|(60,new)|~|(60,new)"),
        ("ALTER VIEW vv ALTER name SET DEFAULT 'of view'", ""),
        ("MERGE INTO vv USING (VALUES (90)) q (k) ON vv.key = q.k WHEN NOT MATCHED THEN INSERT (key) VALUES (q.k) RETURNING name", "of view"),
        ("CREATE VIEW sub AS SELECT id, n, (SELECT count(*) FROM s WHERE s.k = b.id) AS c FROM b WHERE EXISTS (SELECT 1 FROM s WHERE s.k = b.id)", ""),
        ("MERGE INTO sub USING (VALUES (1), (2)) q (k) ON sub.id = q.k WHEN MATCHED AND c > 0 THEN UPDATE SET n = c + 5 WHEN NOT MATCHED BY SOURCE THEN DELETE \
          RETURNING merge_action(), id, sub.n, c", "UPDATE|1|6|1\nDELETE|4|400|1"),
    ]);
}

#[test]
fn what_a_view_does_not_take_is_refused() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&[
        "CREATE VIEW grouped AS SELECT n, count(*) FROM b GROUP BY n",
        "CREATE VIEW checked AS SELECT id, n FROM b WHERE n < 1000 WITH CHECK OPTION",
        "CREATE VIEW made AS SELECT id, gen FROM b",
    ]);
    let why = "View columns that are not columns of their base relation are not updatable.";
    let grouped = "Views containing GROUP BY are not automatically updatable.";
    s.check(&[
        ("MERGE INTO vv USING s ON vv.key = s.k WHEN MATCHED THEN UPDATE SET more = 1", &*format!("0A000 cannot merge into column \"more\" of view \"vv\"\n{why}")),
        ("MERGE INTO vv USING s ON vv.key = s.k WHEN NOT MATCHED THEN INSERT VALUES ('x', 9, 1)", &*format!("0A000 cannot merge into column \"more\" of view \"vv\"\n{why}")),
        ("MERGE INTO grouped g USING s ON g.n = s.k WHEN MATCHED THEN UPDATE SET n = 1", &*format!("55000 cannot update view \"grouped\"\n{grouped}")),
        ("MERGE INTO grouped g USING s ON g.n = s.k WHEN MATCHED THEN DELETE", &*format!("55000 cannot delete from view \"grouped\"\n{grouped}")),
        ("MERGE INTO grouped g USING s ON g.n = s.k WHEN NOT MATCHED THEN INSERT VALUES (1)", &*format!("55000 cannot insert into view \"grouped\"\n{grouped}")),
        ("MERGE INTO checked c USING (VALUES (1, 5000)) q (k, m) ON c.id = q.k WHEN MATCHED THEN UPDATE SET n = q.m", "44000 new row violates check option for view \"checked\"\nFailing row contains (1, a, 5000, 10000)."),
        ("MERGE INTO checked c USING (VALUES (50, 5000)) q (k, m) ON c.id = q.k WHEN NOT MATCHED THEN INSERT VALUES (q.k, q.m)", "44000 new row violates check option for view \"checked\"\nFailing row contains (50, dflt, 5000, 10000)."),
        ("MERGE INTO checked c USING (VALUES (50, 500)) q (k, m) ON c.id = q.k WHEN NOT MATCHED THEN INSERT VALUES (q.k, q.m) RETURNING c", "(50,500)"),
        ("MERGE INTO made USING s ON made.id = s.k WHEN MATCHED THEN UPDATE SET gen = 3", "428C9 column \"gen\" can only be updated to DEFAULT\nColumn \"gen\" is a generated column."),
        ("MERGE INTO made USING s ON made.id = s.k WHEN NOT MATCHED THEN INSERT VALUES (70, 3)", "428C9 cannot insert a non-DEFAULT value into column \"gen\"\nColumn \"gen\" is a generated column."),
    ]);
}

/// A row that somebody changes meanwhile so that the view shows it no more is not there.
#[test]
fn the_views_condition_is_asked_again_of_a_newer_version() {
    let db = Database::new();
    let mut s = tables(&db);
    let merge = "MERGE INTO vv USING (VALUES (1), (2)) q (k) ON vv.key = q.k WHEN MATCHED THEN UPDATE SET name = 'met' \
                 WHEN NOT MATCHED THEN INSERT (key, name) VALUES (q.k + 10, 'alone') RETURNING merge_action(), key, name";
    assert_eq!(
        waiting(&db, "UPDATE b SET id = -5 WHERE id = 1", merge),
        "INSERT|11|alone\nUPDATE|2|met"
    );
    let rest = "MERGE INTO vv USING (VALUES (2)) q (k) ON vv.key = q.k WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING key";
    assert_eq!(waiting(&db, "UPDATE b SET id = -6 WHERE id = 3", rest), "11");
    s.check(&[(ALL, "-6 c 30 60, -5 a 10 20, -1 hid -10 -20, 2 met 20 40")]);
}
