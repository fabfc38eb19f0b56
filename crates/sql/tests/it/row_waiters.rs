//! Who waits for a row keeps no clean-up from the row's page.

use crate::support::{Database, await_waiter};

/// What waits for the first session, and what the row is when both have committed.
const WAITING: [(&str, &str, &str); 6] = [
    ("UPDATE t SET v = v + 10 WHERE id = 1", "1|11", ""),
    ("UPDATE t SET v = v + 10 WHERE v < 5 AND id < 3", "1|11,2|10", ""),
    ("DELETE FROM t WHERE id = 1 AND v < 5", "", ""),
    ("SELECT v FROM t WHERE id = 1 FOR UPDATE", "1|1", "1"),
    ("INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = t.v + 10", "1|11", ""),
    (
        "MERGE INTO t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 10",
        "1|11",
        "",
    ),
];

#[test]
fn vacuum_freezes_pages_for_whose_rows_somebody_waits() {
    for (statement, wanted, said) in WAITING {
        let db = &Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE EXTENSION pg_buffercache",
            "CREATE TABLE t (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off)",
            "INSERT INTO t SELECT i, CASE WHEN i < 3 THEN 0 ELSE 100 END FROM generate_series(1, 100) i",
            "DELETE FROM t WHERE id > 50",
            "SET statement_timeout = '60s'",
        ]);
        let mut holder = db.session();
        holder.run_each(&["BEGIN", "UPDATE t SET v = v + 1 WHERE id = 1"]);
        let answer = std::thread::scope(|scope| {
            let other = scope.spawn(|| db.session().run(statement));
            await_waiter(&mut s);
            s.check(&[
                (
                    "SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0 AND relfilenode = pg_relation_filenode('t')",
                    "0",
                ),
                ("VACUUM (FREEZE, INDEX_CLEANUP ON) t", ""),
                ("SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = 't'", "0"),
            ]);
            assert!(!other.is_finished(), "{statement}");
            holder.run_each(&["COMMIT"]);
            other.join().unwrap()
        });
        assert_eq!(answer, said, "{statement}");
        let changed = "SELECT coalesce(string_agg(id || '|' || v, ',' ORDER BY id), '') FROM t WHERE v BETWEEN 1 AND 99";
        s.check(&[(changed, wanted), ("SELECT count(*) > 47 FROM t WHERE v = 100", "t")]);
        assert_eq!(db.faults(), Vec::<String>::new(), "{statement}");
    }
}
