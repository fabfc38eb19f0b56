//! Trees that are nested deep, stored and read again: what is accepted stays readable.

use crate::support::Database;

/// On a stack as sessions have it.
fn on_a_session_s_stack(f: impl FnOnce() + Send + 'static) {
    let size = if cfg!(debug_assertions) { 64 << 20 } else { 16 << 20 };
    std::thread::Builder::new().stack_size(size).spawn(f).unwrap().join().unwrap();
}

#[test]
fn what_a_table_has_of_many_operators_can_be_read_again() {
    on_a_session_s_stack(|| {
        let db = Database::new();
        let mut s = db.session();
        let sum = |n: usize| format!("a{}", " + 1".repeat(n));
        let text = |n: usize| format!("t{}", " || t".repeat(n));
        s.run_each(&[
            &format!("CREATE TABLE d (a int CHECK ({} > 0), t text, c int DEFAULT 1{}, g int GENERATED ALWAYS AS ({}) STORED, v int GENERATED ALWAYS AS ({}) VIRTUAL)", sum(300), " + 1".repeat(300), sum(200), sum(100)),
            &format!("CREATE INDEX d_i ON d (({})) WHERE {} > 5", sum(150), sum(250)),
            &format!("CREATE STATISTICS d_s ON ({}) FROM d", sum(120)),
            &format!("CREATE DOMAIN dom AS int DEFAULT 2{} CHECK (VALUE{} > 0)", " + 1".repeat(80), " + 1".repeat(90)),
            &format!("CREATE VIEW dv AS SELECT {} AS a, {} AS t FROM d", sum(300), text(300)),
            "INSERT INTO d (a, t) VALUES (1, 'x')",
            "ANALYZE d",
        ]);
        s.check(&[
            ("SELECT a, t, c, g, v FROM d", "1|x|301|201|101"),
            ("SELECT a, length(t) FROM dv", "301|301"),
            ("SELECT length(pg_get_viewdef('dv')) > 3000", "t"),
            (
                "UPDATE d SET a = -400 RETURNING 1",
                "23514 new row for relation \"d\" violates check constraint \"d_a_check\"\nFailing row contains (-400, x, 301, -200, virtual).",
            ),
            (
                "SELECT (-100)::dom",
                "23514 value for domain dom violates check constraint \"dom_check\"",
            ),
            ("DROP TABLE d CASCADE", "NOTICE 00000 drop cascades to view dv"),
        ]);
        let deep = "54001 stack depth limit exceeded";
        s.run_each(&["CREATE TABLE e (a int)"]);
        s.check(&[
            (&format!("CREATE VIEW ev AS SELECT {} FROM e", sum(1500)), deep),
            (&format!("ALTER TABLE e ADD CHECK ({} > 0)", sum(1500)), deep),
            (&format!("CREATE INDEX ON e (({}))", sum(1500)), deep),
            ("SELECT count(*) FROM e", "0"),
        ]);
    });
}

/// The query of a view in a view is not the outer view's to keep.
#[test]
fn views_of_views_of_views() {
    on_a_session_s_stack(|| {
        let db = Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE TABLE t (a int)",
            "INSERT INTO t VALUES (1), (2)",
            "CREATE VIEW v0 AS SELECT a FROM t",
        ]);
        for n in 1..40 {
            s.run_each(&[&format!("CREATE VIEW v{n} AS SELECT a + 1 AS a FROM v{}", n - 1)]);
        }
        s.check(&[
            ("SELECT a FROM v39 ORDER BY a", "40\n41"),
            ("SELECT pg_get_viewdef('v39')", " SELECT (a + 1) AS a\n   FROM v38;"),
            ("SELECT max(length(ev_action)) < 3000 FROM pg_rewrite WHERE ev_class >= 'v0'::regclass", "t"),
            ("CREATE OR REPLACE VIEW v0 AS SELECT a * 10 AS a FROM t", ""),
            ("SELECT a FROM v39 ORDER BY a", "49\n59"),
            ("INSERT INTO v0 VALUES (3)", "55000 cannot insert into view \"v0\"\nViews that have no updatable columns are not automatically updatable."),
        ]);
        s.run_each(&[
            "CREATE VIEW w0 AS SELECT a FROM t WHERE a > 0 WITH CHECK OPTION",
            "CREATE VIEW w1 AS SELECT a FROM w0 WHERE a < 100 WITH CHECK OPTION",
            "CREATE VIEW w2 AS SELECT a FROM w1",
            "INSERT INTO w2 VALUES (7)",
        ]);
        s.check(&[
            (
                "INSERT INTO w2 VALUES (-7)",
                "44000 new row violates check option for view \"w0\"\nFailing row contains (-7).",
            ),
            (
                "UPDATE w2 SET a = 700 WHERE a = 7",
                "44000 new row violates check option for view \"w1\"\nFailing row contains (700).",
            ),
            (
                "SELECT count(*) FROM w2 FOR UPDATE",
                "0A000 FOR UPDATE is not allowed with aggregate functions",
            ),
            ("SELECT a FROM w2 WHERE a = 7 FOR UPDATE", "7"),
        ]);
    });
}
