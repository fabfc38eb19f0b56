//! Transaction blocks, savepoints, settings and locks, as a client sees them.

use crate::support::{Connection, Database};

#[test]
fn what_needs_a_transaction_block_says_so() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SAVEPOINT a", "25P01 SAVEPOINT can only be used in transaction blocks"),
        ("RELEASE a", "25P01 RELEASE SAVEPOINT can only be used in transaction blocks"),
        ("ROLLBACK TO a", "25P01 ROLLBACK TO SAVEPOINT can only be used in transaction blocks"),
        (
            "SET LOCAL work_mem = '1MB'",
            "WARNING 25P01 SET LOCAL can only be used in transaction blocks",
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "WARNING 25P01 SET TRANSACTION can only be used in transaction blocks",
        ),
        ("SHOW transaction_isolation", "read committed"),
    ]);
}

#[test]
fn the_isolation_level_is_fixed_by_the_first_query() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("BEGIN", ""),
        ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", ""),
        ("SHOW transaction_isolation", "repeatable read"),
        ("COMMIT", ""),
        ("BEGIN", ""),
        ("SELECT 1", "1"),
        (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query",
        ),
        ("ROLLBACK", ""),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", ""),
        ("COMMIT", ""),
        ("CREATE TABLE t (a int)", ""),
    ]);
    // What changes tables looks at data as well; what sets, shows and locks does not.
    for (statement, late) in [
        ("TRUNCATE t", true),
        ("CREATE TABLE u (a int)", true),
        ("PREPARE p AS SELECT 1", true),
        ("DISCARD PLANS", true),
        ("LOCK TABLE t", false),
        ("SET CONSTRAINTS ALL IMMEDIATE", false),
        ("SET work_mem = '2MB'", false),
    ] {
        let set = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        let error = "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query";
        s.run_each(&["BEGIN", statement]);
        s.check(&[(set, if late { error } else { "" })]);
        s.run_each(&["ROLLBACK"]);
    }
}

#[test]
fn an_outer_join_s_made_up_rows_are_not_locked() {
    let db = Database::new();
    let mut s = db.session();
    let refused = "0A000 FOR UPDATE cannot be applied to the nullable side of an outer join";
    s.check(&[
        ("CREATE TABLE t (id int PRIMARY KEY)", ""),
        ("INSERT INTO t VALUES (1), (2)", ""),
        ("SELECT * FROM t a LEFT JOIN t b ON a.id = b.id + 1 FOR UPDATE", refused),
        ("SELECT * FROM t a FULL JOIN t b USING (id) FOR UPDATE OF a", refused),
        ("SELECT * FROM t a LEFT JOIN t b ON a.id = b.id FOR UPDATE OF a", "1|1\n2|2"),
        ("SELECT * FROM t a RIGHT JOIN t b ON a.id = b.id FOR UPDATE OF b", "1|1\n2|2"),
    ]);
}

#[test]
fn messages_name_what_postgresql_names() {
    let db = Database::new();
    let mut s = db.session();
    let many = (0..101).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    s.check(&[
        ("SELECT array[1,2] || '{3}', '{3}' || array[1], array[1] || NULL", "{1,2,3}|{3,1}|{1}"),
        (
            &format!("SELECT concat({many})"),
            "54023 cannot pass more than 100 arguments to a function",
        ),
        ("CREATE TABLE t (a int, b text)", ""),
        ("CREATE UNIQUE INDEX u ON t (lower(b), (a + 1))", ""),
        ("INSERT INTO t VALUES (1, 'A')", ""),
        (
            "INSERT INTO t VALUES (1, 'a')",
            "23505 duplicate key value violates unique constraint \"u\"\n\
             Key (lower(b), (a + 1))=(a, 2) already exists.",
        ),
        ("CREATE VIEW v AS SELECT a FROM t", ""),
        (
            "DROP TABLE t",
            "2BP01 cannot drop table t because other objects depend on it\nview v depends on table t",
        ),
        ("PREPARE p AS SELECT * FROM t", ""),
        ("EXECUTE p", "1|A"),
        ("DROP VIEW v", ""),
        ("ALTER TABLE t RENAME COLUMN b TO c", ""),
        ("EXECUTE p", "0A000 cached plan must not change result type"),
    ]);
}

/// Each time, though plans are kept by their text.
#[test]
fn names_that_are_too_long_are_cut() {
    let db = Database::new();
    let mut s = db.session();
    let (long, name) = ("x".repeat(70), "x".repeat(63));
    let notice = format!("NOTICE 42622 identifier \"{long}\" will be truncated to \"{name}\"");
    s.run_each(&[&format!("CREATE TABLE {name} (a int)")]);
    for _ in 0..3 {
        s.check(&[(&format!("SELECT count(*) FROM {long} WHERE a = 1"), &format!("{notice}\n0"))]);
    }
    s.check(&[
        (&format!("VACUUM {long}"), &notice),
        (&format!("SELECT '{long}'::regclass"), &name),
    ]);
}

/// What a function of type void returns is not NULL, unless its arguments are.
#[test]
fn void_is_empty() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT pg_sleep(0), pg_stat_reset(), pg_sleep(NULL)", "||~"),
        ("SELECT pg_sleep(0) IS NULL, pg_sleep(NULL) IS NULL, count(setseed(0))", "f|t|1"),
        ("SELECT pg_typeof(pg_sleep(0)), '<' || pg_sleep(0)::text || '>'", "void|<>"),
        ("SELECT * FROM pg_sleep(0)", ""),
        ("SELECT pg_advisory_lock(1), pg_advisory_unlock_all()", "|"),
    ]);
}

#[test]
fn thousands_of_conditions_are_no_depth() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (id int PRIMARY KEY, v int)", ""),
        ("INSERT INTO t SELECT g, g FROM generate_series(1, 20) g", ""),
    ]);
    let any: Vec<String> = (0..4000).map(|i| format!("v = {}", i * 10)).collect();
    let all: Vec<String> = (0..4000).map(|i| format!("v <> {i}")).collect();
    assert_eq!(s.run(&format!("SELECT count(*) FROM t WHERE {}", any.join(" OR "))), "2");
    assert_eq!(s.run(&format!("SELECT count(*) FROM t WHERE {}", all.join(" AND "))), "0");
}

/// A role made in the same query string can be taken on at once, and one made in a transaction that failed can't.
#[test]
fn a_role_can_be_taken_on_where_it_was_made() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE ROLE fresh; SET ROLE fresh", ""),
        ("SELECT current_user, session_user", "fresh|postgres"),
        ("RESET ROLE", ""),
        ("BEGIN; CREATE ROLE given_up; SET ROLE given_up; SELECT current_user", "given_up"),
        ("ROLLBACK", ""),
        ("SET ROLE given_up", "22023 role \"given_up\" does not exist"),
        ("SELECT current_user", "postgres"),
        ("BEGIN; SET LOCAL ROLE fresh; SELECT current_user", "fresh"),
        ("COMMIT; SELECT current_user", "postgres"),
        ("BEGIN; SAVEPOINT s; SET ROLE fresh; ROLLBACK TO s; SELECT current_user", "postgres"),
        ("SET ROLE fresh; COMMIT; SELECT current_user", "fresh"),
        ("BEGIN; RESET ROLE; SELECT current_user", "postgres"),
        ("ROLLBACK; SELECT current_user", "fresh"),
        ("RESET ROLE", ""),
        ("CREATE ROLE other; SET SESSION AUTHORIZATION other; SELECT session_user", "other"),
    ]);
}

#[test]
fn what_pools_send_between_two_users_works() {
    let db = Database::new();
    let mut c = db.session();
    c.run_each(&["SET work_mem = '1MB'; CREATE TEMP TABLE t (a int); SELECT pg_advisory_lock(1)"]);
    c.run_each(&["LISTEN x"]);
    assert_eq!(c.run("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL"), "");
    assert_eq!(c.run("SHOW work_mem; SELECT pg_listening_channels()"), "4MB");
    assert_eq!(c.run("LISTEN x; NOTIFY x"), "");
    assert_eq!(c.run("DISCARD ALL"), "");
    assert!(c.hear().is_empty());
    assert!(c.run("SELECT * FROM t").contains("42P01"));
}

/// What a session has planned of itself is for the pool's next client, too, where that one's settings and role are the same.
#[test]
fn plans_outlive_what_pools_send_between_two_users() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t SELECT g, g * 10 FROM generate_series(1, 20) g",
        "CREATE SCHEMA other; CREATE TABLE other.t (a int, b int); INSERT INTO other.t VALUES (9, 77)",
        "CREATE ROLE fresh",
    ]);
    let asked = |s: &mut Connection, n: i32| s.run(&format!("SELECT b FROM t WHERE a = {n}"));
    let used = s.session.templates_used();
    for n in 1..=6 {
        assert_eq!(asked(&mut s, n), (n * 10).to_string());
        assert_eq!(s.run("DISCARD ALL"), "");
    }
    // The first text is remembered, the second one's plan is kept, the others use it.
    assert_eq!(s.session.templates_used() - used, 4);
    s.run_each(&["PREPARE p AS SELECT 1", "SET search_path = other"]);
    assert_eq!(asked(&mut s, 9), "77");
    s.run_each(&["DISCARD ALL"]);
    assert_eq!(asked(&mut s, 9), "90");
    s.check(&[("EXECUTE p", "26000 prepared statement \"p\" does not exist")]);
    s.run_each(&["CREATE TEMP TABLE t (a int, b int)", "INSERT INTO t VALUES (9, 1)"]);
    assert_eq!(asked(&mut s, 9), "1");
    s.run_each(&["DISCARD ALL"]);
    assert_eq!(asked(&mut s, 9), "90");
    s.run_each(&["SET ROLE fresh"]);
    assert_eq!(asked(&mut s, 9), "42501 permission denied for table t");
    s.run_each(&["DISCARD ALL", "GRANT SELECT ON t TO fresh", "SET ROLE fresh"]);
    assert_eq!(asked(&mut s, 8), "80");
    s.run_each(&["DISCARD ALL", "REVOKE SELECT ON t FROM fresh"]);
    assert_eq!(asked(&mut s, 7), "70");
    s.run_each(&["SET SESSION AUTHORIZATION fresh"]);
    assert_eq!(asked(&mut s, 7), "42501 permission denied for table t");
    s.run_each(&["DISCARD ALL", "DISCARD PLANS"]);
    let used = s.session.templates_used();
    for n in 1..=3 {
        assert_eq!(asked(&mut s, n), (n * 10).to_string());
    }
    // It has come before: the first one's plan is kept.
    assert_eq!(s.session.templates_used() - used, 2);
}

/// As JDBC's driver asks for the columns of keys.
#[test]
fn arrays_are_numbered_by_information_schema_s_function() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT * FROM information_schema._pg_expandarray(ARRAY['a', 'b'])", "a|1\nb|2"),
        ("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (c, a))", ""),
        (
            "SELECT attname, (keys).n, pg_typeof((keys).x) FROM (
                SELECT attname, attnum, information_schema._pg_expandarray(i.indkey) AS keys
                FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                WHERE i.indrelid = 't'::regclass) k
             WHERE attnum = (keys).x ORDER BY 2",
            "c|1|smallint\na|2|smallint",
        ),
    ]);
}

#[test]
fn statements_that_differ_in_numbers_share_a_plan() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int PRIMARY KEY, b int, c text)", ""),
        ("INSERT INTO t SELECT g, g * 10, 'x' || g FROM generate_series(1, 9) g", ""),
    ]);
    let used = s.session.templates_used();
    for n in 1..=9 {
        let (sql, want) = (format!("SELECT b, c FROM t WHERE a = {n}"), format!("{}|x{n}", n * 10));
        assert_eq!(s.run(&sql), want);
    }
    // The first text is remembered, the second one's plan is kept, the others use it.
    assert_eq!(s.session.templates_used() - used, 7);
    for n in 1..=4 {
        s.check(&[(&format!("UPDATE t SET b = b + {n} WHERE a = {n}"), "")]);
    }
    assert_eq!(s.session.templates_used() - used, 9);
    // A number that is no parameter must be the same.
    s.check(&[
        ("SELECT b, 1 FROM t WHERE a = 1", "11|1"),
        ("SELECT b, 1 FROM t WHERE a = 2", "22|1"),
        ("SELECT b, 1 FROM t WHERE a = 3", "33|1"),
        ("SELECT b, 2 FROM t WHERE a = 3", "33|2"),
    ]);
    assert_eq!(s.session.templates_used() - used, 10);
    // Numbers in strings are no parameters either, and the byte that stands for them is none.
    s.check(&[
        ("SELECT 1 FROM t WHERE a = 1 AND c = '1' AND c <> '\u{1}'", ""),
        ("SELECT 1 FROM t WHERE a = 1 AND c = '1' AND c <> '\u{1}'", ""),
        ("SELECT 1 FROM t WHERE a = 1 AND c = '\u{1}' AND c <> '1'", ""),
        ("ALTER TABLE t ADD d int DEFAULT 7", ""),
        ("SELECT * FROM t WHERE a = 5", "5|50|x5|7"),
    ]);
}

/// Rows, unique keys, tables, and the catalogs that DDL writes to.
#[test]
fn lock_timeout_ends_every_wait() {
    let db = Database::new();
    let (mut holder, mut waiter) = (db.session(), db.session());
    holder.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b int)", "INSERT INTO t VALUES (1, 1)"]);
    waiter.run_each(&["SET lock_timeout = '20ms'"]);
    for (held, wanted) in [
        ("UPDATE t SET b = 2", "DELETE FROM t"),
        ("UPDATE t SET b = 2", "SELECT * FROM t FOR SHARE"),
        ("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (2)"),
        ("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (2) ON CONFLICT DO NOTHING"),
        ("LOCK TABLE t", "SELECT * FROM t"),
        ("CREATE TABLE u (a int)", "CREATE TABLE u (a int)"),
        ("LOCK TABLE pg_class IN SHARE MODE", "CREATE TABLE v (a int)"),
        ("SELECT pg_advisory_lock(5)", "SELECT pg_advisory_xact_lock(5)"),
    ] {
        holder.run_each(&["BEGIN", held]);
        waiter.run_each(&["BEGIN"]);
        let said = waiter.run(wanted);
        assert_eq!(said, "55P03 canceling statement due to lock timeout", "{held}; {wanted}");
        waiter.run_each(&["ROLLBACK"]);
        holder.run_each(&["ROLLBACK"]);
    }
    holder.run_each(&["SELECT pg_advisory_unlock(5)"]);
    waiter.check(&[("DELETE FROM t", "")]);
}

/// What runs in transactions of its own would commit what came before it in the pipeline: an error behind it could not undo that.
#[test]
fn what_runs_alone_is_not_run_within_a_pipeline() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let mut send = |sql: &str| {
        s.session.parse("", sql, &[], &mut sql::client::Quiet)?;
        s.session.bind("", "", &[], &[], &[])?;
        s.session.execute("", 0, &mut sql::client::Quiet)
    };
    send("INSERT INTO t VALUES (1)").unwrap();
    let refused = send("VACUUM t").unwrap_err().to_sql_error();
    assert_eq!(refused.message, "VACUUM cannot run inside a transaction block");
    assert_eq!(refused.state, base::SqlState::ACTIVE_SQL_TRANSACTION);
    s.session.fail();
    s.check(&[("SELECT count(*) FROM t", "0")]);
    // First it may come, and is over then.
    let mut send = |sql: &str| {
        s.session.parse("", sql, &[], &mut sql::client::Quiet)?;
        s.session.bind("", "", &[], &[], &[])?;
        s.session.execute("", 0, &mut sql::client::Quiet)
    };
    send("CREATE INDEX CONCURRENTLY t_a ON t (a)").unwrap();
    send("VACUUM t").unwrap();
    send("INSERT INTO t VALUES (2)").unwrap();
    send("LOCK TABLE t").unwrap();
    send("SELECT 1 / 0").unwrap_err();
    s.session.fail();
    s.check(&[
        ("SELECT count(*) FROM t", "0"),
        ("SELECT count(*) FROM pg_class WHERE relname = 't_a'", "1"),
    ]);
}

#[test]
fn a_table_that_a_cursor_reads_stays_as_it_is() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 9)"]);
    for (statement, what) in [
        ("DROP TABLE t", "DROP TABLE"),
        ("TRUNCATE t", "TRUNCATE"),
        ("ALTER TABLE t ALTER a TYPE text", "ALTER TABLE"),
        ("CREATE INDEX ON t (a)", "CREATE INDEX"),
    ] {
        s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH 1 FROM c"]);
        s.check(&[
            (
                statement,
                &format!(
                    "55006 cannot {what} \"t\" because it is being used by active queries in this session"
                ),
            ),
            ("ROLLBACK", ""),
        ]);
        s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH 1 FROM c"]);
        s.check(&[("CLOSE c", ""), (statement, ""), ("ROLLBACK", "")]);
    }
}

/// Which rows a cursor locks is known once it is at them: it goes forward only, and does not outlive its transaction.
#[test]
fn a_cursor_that_locks_goes_forward() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 3)"]);
    for (how, state, refused, whose) in [
        ("SCROLL CURSOR", "0A000", "is not supported", "Scrollable"),
        ("CURSOR WITH HOLD", "0A000", "is not supported", "Holdable"),
        ("INSENSITIVE CURSOR", "42P11", "is not valid", "Insensitive"),
    ] {
        let sql = format!("DECLARE c {how} FOR SELECT * FROM t FOR KEY SHARE");
        let said = format!(
            "{state} DECLARE {how} ... FOR KEY SHARE {refused}\n{whose} cursors must be READ ONLY."
        );
        s.check(&[("BEGIN", ""), (&sql, &said), ("ROLLBACK", "")]);
    }
    for back in ["FETCH PRIOR FROM c", "FETCH RELATIVE 0 FROM c"] {
        s.check(&[
            ("BEGIN", ""),
            ("DECLARE c CURSOR FOR SELECT * FROM t ORDER BY a FOR UPDATE", ""),
            ("SELECT is_scrollable FROM pg_cursors", "f"),
            ("FETCH 2 FROM c", "1\n2"),
            (back, "55000 cursor can only scan forward"),
            ("ROLLBACK", ""),
        ]);
    }
}

/// What waits for the transaction's end was asked of the table as it is.
#[test]
fn a_table_whose_checks_wait_stays_as_it_is() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "CREATE TABLE c (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO p VALUES (1)",
    ]);
    for (statement, what) in [
        ("ALTER TABLE c DROP CONSTRAINT c_a_fkey", "ALTER TABLE \"c\""),
        ("CREATE INDEX ON c (a)", "CREATE INDEX \"c\""),
        ("TRUNCATE c", "TRUNCATE \"c\""),
        ("DROP TABLE c", "DROP TABLE \"c\""),
    ] {
        let refused = format!("55006 cannot {what} because it has pending trigger events");
        s.run_each(&["BEGIN", "INSERT INTO c VALUES (2)"]);
        s.check(&[(statement, &refused), ("ROLLBACK", "")]);
        // Asked now, they wait no longer; nor do those of a row that is taken back.
        s.run_each(&["BEGIN", "INSERT INTO c VALUES (1)", "SET CONSTRAINTS ALL IMMEDIATE"]);
        s.check(&[(statement, ""), ("ROLLBACK", "")]);
        s.run_each(&["BEGIN", "SAVEPOINT s", "INSERT INTO c VALUES (2)", "ROLLBACK TO s"]);
        s.check(&[(statement, ""), ("ROLLBACK", "")]);
    }
    let cascaded = "NOTICE 00000 truncate cascades to table \"c\"\n\
                    55006 cannot TRUNCATE \"c\" because it has pending trigger events";
    s.run_each(&["BEGIN", "INSERT INTO c VALUES (2)"]);
    s.check(&[("TRUNCATE p CASCADE", cascaded), ("ROLLBACK", "")]);
    // The referred table's, when its keys go.
    s.run_each(&["BEGIN", "ALTER TABLE p ADD b int", "DELETE FROM p"]);
    s.check(&[
        (
            "ALTER TABLE p ADD c int",
            "55006 cannot ALTER TABLE \"p\" because it has pending trigger events",
        ),
        ("ROLLBACK", ""),
    ]);
}

#[test]
fn a_chained_transaction_has_the_modes_of_the_one_before() {
    let db = Database::new();
    let mut s = db.session();
    let modes = "SELECT current_setting('transaction_isolation'), \
                 current_setting('transaction_read_only'), current_setting('transaction_deferrable')";
    let same = "repeatable read|on|on";
    let failed = ("SELECT nothing", "42703 column \"nothing\" does not exist");
    s.check(&[
        ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY DEFERRABLE", ""),
        ("COMMIT AND CHAIN", ""),
        (modes, same),
        // What it has from the one before stays if it fails,
        failed,
        ("COMMIT AND CHAIN", ""),
        (modes, same),
        ("SAVEPOINT a", ""),
        failed,
        ("ROLLBACK AND CHAIN", ""),
        (modes, same),
        ("COMMIT", ""),
        (modes, "read committed|off|off"),
        // what it has set itself goes, as all settings do.
        ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY DEFERRABLE", ""),
        failed,
        ("ROLLBACK AND CHAIN", ""),
        (modes, "read committed|off|off"),
        ("ROLLBACK", ""),
        ("BEGIN ISOLATION LEVEL READ UNCOMMITTED, READ ONLY", ""),
        ("SAVEPOINT a", ""),
        failed,
        ("COMMIT AND CHAIN", ""),
        (modes, "read uncommitted|on|off"),
        ("COMMIT", ""),
        // What a subtransaction set is not the transaction's.
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        ("SET TRANSACTION READ ONLY", ""),
        failed,
        ("ROLLBACK AND CHAIN", ""),
        (modes, "read committed|off|off"),
        ("SAVEPOINT a", ""),
        ("SET TRANSACTION READ ONLY", ""),
        ("SAVEPOINT b", ""),
        ("ROLLBACK AND CHAIN", ""),
        (modes, "read committed|off|off"),
        ("SAVEPOINT a", ""),
        ("SET TRANSACTION READ ONLY", ""),
        ("COMMIT AND CHAIN", ""),
        (modes, "read committed|on|off"),
        ("COMMIT", ""),
        ("SET default_transaction_deferrable = on", ""),
        ("BEGIN", ""),
        ("SHOW transaction_deferrable", "on"),
        failed,
        ("COMMIT AND CHAIN", ""),
        ("SHOW transaction_deferrable", "on"),
        ("ROLLBACK", ""),
        // A block that can't have its modes does not begin.
        (
            "SELECT 1; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 2",
            "1\n25001 SET TRANSACTION ISOLATION LEVEL must be called before any query",
        ),
        ("SELECT 3", "3"),
    ]);
}

#[test]
fn what_is_constant_fails_when_it_is_planned() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        // There is no row.
        ("SELECT * FROM t WHERE a = 1 / 0", "22012 division by zero"),
        ("SELECT CASE WHEN a = 1 THEN 1 / 0 END FROM t", "22012 division by zero"),
        ("SELECT a FROM t GROUP BY a, 1 / 0", "22012 division by zero"),
        ("SELECT a FROM t LIMIT 1 / 0", "22012 division by zero"),
        (
            "SELECT 'a' ~ '(' FROM t",
            "2201B invalid regular expression: parentheses () not balanced",
        ),
        ("EXPLAIN SELECT 1 / 0", "22012 division by zero"),
        ("UPDATE t SET a = 2147483647 + 1", "22003 integer out of range"),
        // What is not come to is not there.
        ("SELECT CASE WHEN false THEN 1 / 0 ELSE 2 END", "2"),
        ("SELECT CASE 1 WHEN 1 THEN 2 ELSE 1 / 0 END", "2"),
        ("SELECT CASE 1 WHEN a THEN 2 WHEN 2 THEN 1 / 0 WHEN 1 THEN 3 ELSE 1 / 0 END FROM (SELECT 1 AS a OFFSET 0) t", "2"),
        ("SELECT CASE ARRAY[1] WHEN ARRAY[2] THEN 1 / 0 ELSE CASE 3 WHEN a THEN 4 WHEN CASE a WHEN 3 THEN a ELSE 3 END THEN 5 END END FROM (SELECT 2 AS a OFFSET 0) t", "5"),
        ("SELECT CASE NULL::int WHEN NULL THEN 1 / 0 WHEN 1 THEN 1 / 0 END IS NULL", "t"),
        ("SELECT CASE 1 WHEN a THEN 1 / 0 ELSE 3 END FROM t", "22012 division by zero"),
        ("SELECT coalesce(1, 1 / 0)", "1"),
        ("SELECT count(*) FROM t WHERE false AND a = 1 / 0", "0"),
        ("SELECT 1 / (a - a) FROM t", ""),
    ]);
}

#[test]
fn read_only_ends_with_the_savepoint_it_was_set_in() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        ("SET TRANSACTION READ ONLY", ""),
        (
            "SET TRANSACTION READ WRITE",
            "25001 cannot set transaction read-write mode inside a read-only transaction",
        ),
        ("ROLLBACK TO a", ""),
        ("INSERT INTO t VALUES (1)", ""),
        ("SET TRANSACTION READ ONLY", ""),
        ("INSERT INTO t VALUES (2)", "25006 cannot execute INSERT in a read-only transaction"),
        ("ROLLBACK TO a", ""),
        ("INSERT INTO t VALUES (3)", ""),
        ("SAVEPOINT b", ""),
        ("SET TRANSACTION READ ONLY", ""),
        ("SAVEPOINT c", ""),
        ("RELEASE b", ""),
        ("SHOW transaction_read_only", "off"),
        ("SELECT current_setting('transaction_read_only')", "off"),
        ("INSERT INTO t VALUES (4)", ""),
        ("COMMIT", ""),
        ("SELECT * FROM t", "3\n4"),
        // Isolation and DEFERRABLE are the whole transaction's.
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "25001 SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
        ),
        ("ROLLBACK TO a", ""),
        (
            "SET TRANSACTION NOT DEFERRABLE",
            "25001 SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction",
        ),
        ("ROLLBACK", ""),
        ("BEGIN", ""),
        ("SELECT 1", "1"),
        (
            "SET TRANSACTION NOT DEFERRABLE",
            "25001 SET TRANSACTION [NOT] DEFERRABLE must be called before any query",
        ),
        ("ROLLBACK", ""),
        (
            "RESET transaction_read_only",
            "0A000 parameter \"transaction_read_only\" cannot be reset",
        ),
        (
            "SELECT 1; RELEASE a",
            "1\n25P01 RELEASE SAVEPOINT can only be used in transaction blocks",
        ),
        (
            "SELECT 1; ROLLBACK TO a",
            "1\n25P01 ROLLBACK TO SAVEPOINT can only be used in transaction blocks",
        ),
    ]);
}

#[test]
fn a_setting_nobody_defined_is_empty_after_its_values_end() {
    let db = Database::new();
    let mut s = db.session();
    let bad = |name: &str| {
        format!(
            "42602 invalid configuration parameter name \"{name}\"\nCustom parameter names must be \
             two or more simple identifiers separated by dots."
        )
    };
    s.check(&[
        ("SELECT current_setting('app.tenant', true)", "~"),
        ("BEGIN", ""),
        ("SET LOCAL app.tenant = '7'", ""),
        ("SELECT current_setting('app.tenant')", "7"),
        ("COMMIT", ""),
        ("SELECT current_setting('app.tenant') = ''", "t"),
        ("BEGIN", ""),
        ("SET app.other = '7'", ""),
        ("ROLLBACK", ""),
        ("SELECT current_setting('app.other') = ''", "t"),
        ("SET app.tenant = '8'", ""),
        ("RESET app.tenant", ""),
        ("SELECT current_setting('app.tenant') = ''", "t"),
        // A pooler's next client sees nothing of the one before.
        ("SET app.tenant = '9'", ""),
        ("DISCARD ALL", ""),
        ("SELECT current_setting('app.tenant') = ''", "t"),
        ("SET app.tenant = '9'", ""),
        ("BEGIN", ""),
        ("RESET ALL", ""),
        ("ROLLBACK", ""),
        ("SELECT current_setting('app.tenant')", "9"),
        ("SET app.\"bad-name\" = 1", &bad("app.bad-name")),
        ("SELECT set_config('1.a', '1', false)", &bad("1.a")),
        ("ALTER DATABASE postgres SET app.\"bad-name\" = 1", &bad("app.bad-name")),
        (
            "SET ebb.nonsense = 1",
            "42602 invalid configuration parameter name \"ebb.nonsense\"\n\"ebb\" is a reserved prefix.",
        ),
    ]);
}

/// What a transaction is by default is told as what it was begun as.
#[test]
fn default_modes_are_told_as_the_transactions() {
    let db = Database::new();
    let mut s = db.session();
    let told =
        "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')";
    s.run_each(&["SET default_transaction_isolation = 'read uncommitted'"]);
    s.check(&[
        ("SHOW transaction_isolation", "read uncommitted"),
        ("BEGIN ISOLATION LEVEL READ COMMITTED", ""),
        (told, "read committed|off"),
        ("COMMIT", ""),
        (told, "read uncommitted|off"),
    ]);
    s.run_each(&[
        "SET default_transaction_isolation = 'repeatable read'",
        "SET default_transaction_read_only = on",
    ]);
    s.check(&[
        (told, "repeatable read|on"),
        ("BEGIN READ WRITE", ""),
        (told, "repeatable read|off"),
        ("ROLLBACK", ""),
        (told, "repeatable read|on"),
    ]);
    s.run_each(&["SET default_transaction_read_only = off", "RESET default_transaction_isolation"]);
    s.check(&[(told, "read committed|off")]);
}

#[test]
fn an_explained_change_names_its_operation_and_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let said = s.run("EXPLAIN (FORMAT json, COSTS off) UPDATE t AS x SET a = 1");
    for part in ["\"Operation\": \"Update\"", "\"Relation Name\": \"t\"", "\"Alias\": \"x\""] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn others_see_that_a_block_has_failed() {
    let db = Database::new();
    let (mut s, mut looker) = (db.session(), db.session());
    let looks = "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE query <> '' AND pid <> pg_backend_pid()";
    s.check(&[("BEGIN", ""), ("SELECT 1", "1")]);
    looker.check(&[(looks, "idle in transaction|f")]);
    s.check(&[("SELECT 1 / 0", "22012 division by zero")]);
    looker.check(&[(looks, "idle in transaction (aborted)|t")]);
    s.check(&[("ROLLBACK", ""), ("SELECT 1 / 0", "22012 division by zero")]);
    looker.check(&[(looks, "idle|t")]);
}

/// A database is copied in one way; what asks for PostgreSQL's ways is understood, and a slip of the pen is told.
#[test]
fn a_strategy_of_create_database_is_one_of_two() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE DATABASE one STRATEGY wal_log", ""),
        ("CREATE DATABASE two STRATEGY = 'FILE_COPY'", ""),
        ("CREATE DATABASE three STRATEGY copy", "22023 invalid create database strategy \"copy\""),
        ("SELECT string_agg(datname, ',' ORDER BY 1) FROM pg_database WHERE oid > 5", "one,two"),
    ]);
}

/// What a transaction and a role make of settings is told by either way of asking.
#[test]
fn a_setting_is_the_same_however_it_is_asked_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE plain", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]);
    for (setting, value) in [
        ("transaction_isolation", "repeatable read"),
        ("transaction_read_only", "on"),
        ("is_superuser", "on"),
        ("session_authorization", "postgres"),
    ] {
        let asked = format!("SELECT current_setting('{setting}')");
        s.check(&[(&format!("SHOW {setting}"), value), (&asked, value)]);
    }
    s.run_each(&["COMMIT", "SET SESSION AUTHORIZATION plain"]);
    s.check(&[(
        "SELECT current_setting('is_superuser'), current_setting('Session_Authorization')",
        "off|plain",
    )]);
}

/// What a prepared FETCH or EXECUTE returns is what the cursor, or the statement, of the name has when it is bound.
#[test]
fn a_bound_fetch_returns_what_the_cursor_has() {
    let db = Database::new();
    let mut s = db.session();
    let columns = |s: &mut Connection| {
        s.session.bind("", "f", &[], &[], &[]).unwrap();
        let columns = s.session.describe_portal("").unwrap();
        columns.map(|c| c.iter().map(|c| c.name.to_string()).collect::<Vec<_>>())
    };
    s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT 1 AS x, 2 AS y"]);
    s.session.parse("f", "FETCH c", &[], &mut sql::client::Quiet).unwrap();
    assert_eq!(columns(&mut s), Some(vec!["x".to_owned(), "y".to_owned()]));
    s.run_each(&["CLOSE c", "DECLARE c CURSOR FOR SELECT 1 AS z"]);
    assert_eq!(columns(&mut s), Some(vec!["z".to_owned()]));
    s.run_each(&["CLOSE c"]);
    assert_eq!(columns(&mut s), None);
    s.run_each(&["COMMIT"]);
}
