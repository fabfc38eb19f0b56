//! Descriptions of relations: who changes one hands the new one on, and statistics change without it.

use crate::support::{Connection, Database};

fn made(s: &mut Connection, statements: &[&str]) -> u64 {
    let before = s.session.descriptions_made();
    s.run_each(statements);
    s.session.descriptions_made() - before
}

#[test]
fn an_altered_table_is_described_once_for_all() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)"]);
    other.check(&[("SELECT * FROM t", "1")]);
    assert_eq!(made(&mut s, &["ALTER TABLE t ADD b int"]), 1);
    let before = other.session.descriptions_made();
    other.check(&[("SELECT * FROM t", "1|~")]);
    assert_eq!(other.session.descriptions_made() - before, 0);
    assert_eq!(made(&mut s, &["INSERT INTO t VALUES (2)", "ALTER TABLE t ADD c int"]), 1);
    other.check(&[("SELECT * FROM t ORDER BY a", "1|~|~\n2|~|~")]);
    s.run_each(&["ALTER TABLE t ADD d int DEFAULT 7"]);
    other.check(&[("SELECT * FROM t ORDER BY a", "1|~|~|7\n2|~|~|7")]);
    assert_eq!(other.session.descriptions_made() - before, 0);
}

#[test]
fn what_is_not_committed_is_handed_to_nobody() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE TABLE u (a int)"]);
    let look = [("SELECT * FROM t", "1")];
    s.run_each(&["BEGIN", "ALTER TABLE t ADD b int DEFAULT 7"]);
    s.check(&[("SELECT * FROM t", "1|7")]);
    s.run_each(&["ROLLBACK"]);
    other.check(&look);
    // A savepoint's, given up; another's change meanwhile; and one that comes after the last look.
    s.run_each(&["BEGIN", "ALTER TABLE t ADD b int DEFAULT 7", "SAVEPOINT p"]);
    s.run_each(&["ALTER TABLE t ADD c int DEFAULT 8"]);
    s.check(&[("SELECT * FROM t", "1|7|8")]);
    s.run_each(&["ROLLBACK TO p"]);
    s.check(&[("SELECT * FROM t", "1|7")]);
    other.run_each(&["ALTER TABLE u ADD b int"]);
    s.run_each(&["COMMIT"]);
    other.check(&[("SELECT * FROM t", "1|7"), ("SELECT b FROM u", "")]);
    s.run_each(&["BEGIN", "ALTER TABLE t ADD c int DEFAULT 8"]);
    s.check(&[("SELECT c FROM t", "8")]);
    s.run_each(&["ALTER TABLE t RENAME c TO d", "ALTER TABLE t ALTER d SET DEFAULT 9", "COMMIT"]);
    other.check(&[
        ("INSERT INTO t (a) VALUES (2)", ""),
        ("SELECT d FROM t ORDER BY a", "8\n9"),
        ("SELECT c FROM t", "42703 column \"c\" does not exist"),
    ]);
}

#[test]
fn what_is_written_by_hand_is_read_again() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE t AS SELECT 1 AS a"]);
    other.check(&[("SELECT a FROM t", "1")]);
    s.run_each(&["BEGIN", "ALTER TABLE t ADD b int DEFAULT 7"]);
    s.check(&[("SELECT b FROM t", "7")]);
    s.run_each(&[
        "UPDATE pg_attribute SET attname = 'c' WHERE attrelid = 't'::regclass AND attname = 'b'",
        "COMMIT",
    ]);
    other.check(&[("SELECT c FROM t", "7")]);
}

/// A transaction that has changed a table goes on with what names are known to mean; what it changes of these, and of other tables, it sees.
#[test]
fn who_changes_tables_sees_all_of_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE TABLE u (a int PRIMARY KEY); INSERT INTO u VALUES (1)",
        "CREATE TABLE h (r t); INSERT INTO h VALUES (ROW(3))",
    ]);
    s.check(&[
        ("SELECT * FROM u", "1"),
        ("SELECT count(*) FROM t", "0"),
        ("SELECT r FROM h", "(3)"),
    ]);
    s.run_each(&["BEGIN", "ALTER TABLE u ADD b int DEFAULT 7"]);
    s.check(&[("SELECT count(*) FROM t", "0"), ("SELECT * FROM u", "1|7")]);
    s.run_each(&["ALTER TABLE u ADD FOREIGN KEY (b) REFERENCES t NOT VALID"]);
    s.check(&[
        ("INSERT INTO u VALUES (2, 2)", "23503 insert or update on table \"u\" violates foreign key constraint \"u_b_fkey\"\nKey (b)=(2) is not present in table \"t\"."),
    ]);
    s.run_each(&["ROLLBACK", "BEGIN", "ALTER TABLE u ADD b int DEFAULT 7"]);
    s.run_each(&["ALTER TABLE t ADD c int"]);
    s.check(&[("SELECT r FROM h", "(3,)"), ("SELECT (r).c FROM h", "~")]);
    s.run_each(&["ALTER TABLE u RENAME TO w", "CREATE TABLE u AS SELECT 5 AS x"]);
    s.check(&[("SELECT * FROM u", "5"), ("SELECT * FROM w", "1|7")]);
    s.run_each(&["COMMIT"]);
    s.check(&[("SELECT * FROM u", "5"), ("SELECT * FROM w", "1|7"), ("SELECT r FROM h", "(3,)")]);
}

#[test]
fn statistics_change_without_the_table() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c text)",
        "INSERT INTO t SELECT g, g % 3, 'x' FROM generate_series(1, 60) g",
        "ANALYZE t",
    ]);
    let versions = "SELECT string_agg(xmin::text, ' ' ORDER BY staattnum) FROM pg_statistic WHERE starelid = 't'::regclass";
    let common = "SELECT most_common_vals FROM pg_stats WHERE tablename = 't' AND attname = 'b'";
    let estimate = |s: &mut Connection| {
        let plan = s.run("EXPLAIN SELECT * FROM t WHERE b = 1");
        plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    };
    other.check(&[("SELECT count(*) FROM t", "60")]);
    assert_eq!(estimate(&mut other).as_deref(), Some("20"));
    // Nothing has changed: no row is written, nothing is read again.
    let was = s.run(versions);
    assert_eq!(made(&mut s, &["ANALYZE t", "ANALYZE t (b)"]), 0);
    assert_eq!(s.run(versions), was);
    // Of one column something has: its row, and the estimates of all sessions.
    s.run_each(&["UPDATE t SET b = 1 WHERE b = 0"]);
    s.run_each(&["ANALYZE t"]);
    let is = s.run(versions);
    let changed: Vec<bool> = was.split(' ').zip(is.split(' ')).map(|(a, b)| a != b).collect();
    assert!(changed[1] && !changed[2], "{was} {is}");
    s.check(&[(common, "{1,2}")]);
    assert_eq!(estimate(&mut other).as_deref(), Some("40"));
    s.run_each(&["BEGIN", "UPDATE t SET b = 5 WHERE b = 1", "ANALYZE t"]);
    s.check(&[(common, "{5,2}")]);
    assert_eq!(estimate(&mut s).as_deref(), Some("1"));
    assert_eq!(estimate(&mut other).as_deref(), Some("40"));
    s.run_each(&["ROLLBACK"]);
    s.check(&[(common, "{1,2}")]);
    assert_eq!(estimate(&mut s).as_deref(), Some("40"));
}
