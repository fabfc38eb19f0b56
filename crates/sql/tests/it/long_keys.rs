//! Index keys that are longer than a third of a page, and become short enough once compressed.

use crate::support::{Connection, Database};

/// Every third row has a key of which, packed, two thirds are left; the others next to nothing.
const ROWS: &str = "SELECT n, CASE n % 3 WHEN 0 THEN (SELECT string_agg(md5((n * 100 + i)::text), '') FROM generate_series(1, 50) i) \
     || repeat('-', 3000) ELSE repeat(chr(97 + n % 26), 2600 + n * 17) || n END FROM generate_series(1, 300) n";

fn sound(s: &mut Connection) {
    s.check(&[
        ("SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 't'::regclass AND indexrelid = 't_pkey'::regclass", ""),
        ("SELECT bt_index_parent_check('t_k_n', true, true)", ""),
    ]);
}

#[test]
fn long_keys_are_found_ordered_and_cleaned_up() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE t (n int, k text PRIMARY KEY, m int DEFAULT 0)",
        "CREATE INDEX t_k_n ON t (md5(k), k DESC) INCLUDE (n)",
        &format!("INSERT INTO t {ROWS}"),
        "ANALYZE t",
        "SET enable_seqscan = off",
    ]);
    sound(&mut s);
    s.check(&[
        ("SELECT count(*), sum(a.n) FROM t a JOIN t b USING (k) WHERE a.n = b.n", "300|45150"),
        ("SELECT n FROM t WHERE k = repeat('b', 2617) || 1", "1"),
        ("SELECT count(*) FROM t WHERE k = repeat('b', 2616) || 1", "0"),
        ("SELECT bool_and(o) FROM (SELECT k > lag(k) OVER (ORDER BY k) o FROM t) q", "t"),
        ("SELECT length(max(k)), length(min(k)) FROM t", "7006|4600"),
    ]);
    let said = s.run("INSERT INTO t VALUES (0, repeat('b', 2617) || 1)");
    assert!(said.starts_with("23505"), "{said}");
    s.run_each(&[
        "INSERT INTO t VALUES (0, repeat('b', 2617) || 1) ON CONFLICT (k) DO UPDATE SET m = 7",
    ]);
    s.check(&[("SELECT n, m FROM t WHERE m > 0", "1|7")]);
    // Of the dead some have left their keys behind, some have not.
    s.run_each(&[
        "UPDATE t SET k = k || 'z' WHERE n % 5 = 0",
        "DELETE FROM t WHERE n % 7 = 0",
        "VACUUM (INDEX_CLEANUP on) t",
    ]);
    sound(&mut s);
    s.run_each(&[
        "INSERT INTO t SELECT n, k || '+' FROM t WHERE n % 2 = 0",
        "VACUUM (INDEX_CLEANUP on) t",
    ]);
    sound(&mut s);
    s.run_each(&["REINDEX TABLE t", "VACUUM FULL t"]);
    sound(&mut s);
    s.check(&[("SELECT count(*), count(DISTINCT k) FROM t", "387|387")]);
}

#[test]
fn equal_long_keys_share_an_entry() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k text)",
        "CREATE INDEX t_k ON t (k)",
        "INSERT INTO t SELECT repeat(chr(97 + n % 3), 5000) FROM generate_series(1, 3000) n",
        "ANALYZE t",
        "SET enable_seqscan = off",
    ]);
    s.check(&[
        ("SELECT count(*) FROM t WHERE k = repeat('b', 5000)", "1000"),
        ("SELECT pg_relation_size('t_k') < 100000", "t"),
        ("SELECT left(k, 1), count(*) FROM t GROUP BY k ORDER BY k", "a|1000\nb|1000\nc|1000"),
    ]);
}

#[test]
fn what_does_not_become_short_is_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k text)",
        "INSERT INTO t SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i",
    ]);
    let said = s.run("CREATE INDEX ON t (k)");
    assert!(
        said.starts_with("54000") && said.contains("exceeds btree version 4 maximum 2704"),
        "{said}"
    );
    s.run_each(&[
        "TRUNCATE t",
        "CREATE UNIQUE INDEX ON t (k)",
        "INSERT INTO t VALUES (repeat('x', 200000))",
    ]);
    let said =
        s.run("INSERT INTO t SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i");
    assert!(said.starts_with("54000"), "{said}");
    s.check(&[("SELECT length(k) FROM t", "200000")]);
}

/// What an index has refused leaves a dead row behind, whose key VACUUM must not stumble over.
#[test]
fn rows_that_an_index_has_refused_are_cleaned_up() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE t (n int PRIMARY KEY, k text STORAGE main)",
        "CREATE INDEX t_k ON t (k)",
        "INSERT INTO t SELECT n, n FROM generate_series(1, 1000) n",
    ]);
    for n in 2001..2010 {
        let said = s.run(&format!(
            "INSERT INTO t SELECT {n}, string_agg(md5(i::text), '') FROM generate_series(1, 100) i"
        ));
        assert!(said.starts_with("54000"), "{said}");
    }
    s.run_each(&[
        "DELETE FROM t WHERE n % 10 = 0",
        "VACUUM (INDEX_CLEANUP on) t",
        "SET enable_seqscan = off",
    ]);
    s.check(&[
        ("SELECT count(*) FROM t WHERE k > ''", "900"),
        ("SELECT bt_index_check('t_k', true)", ""),
        ("SELECT bt_index_check('t_pkey', true)", ""),
    ]);
}
