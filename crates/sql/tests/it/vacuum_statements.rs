//! What VACUUM, ANALYZE and their settings accept and refuse, in PostgreSQL's words.

use crate::support::Database;

#[test]
fn options_take_what_postgresqls_take() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b text)"]);
    let limit = "22023 BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB";
    s.check(&[
        ("VACUUM (PARALLEL 99999999999) t", "42601 parallel requires an integer value"),
        ("VACUUM (PARALLEL '2') t", "42601 parallel requires an integer value"),
        ("VACUUM (PARALLEL 2) t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT foo) t", limit),
        ("VACUUM (BUFFER_USAGE_LIMIT '1MB') t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT '0x100') t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT '1e3') t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT '128.0kB') t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT ' 256 ') t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT 0.5) t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT 127.5) t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT 127.4) t", limit),
        ("VACUUM (BUFFER_USAGE_LIMIT '1xB') t", limit),
        ("VACUUM (VERBOSE = on) t", "42601 syntax error at or near \"=\""),
        ("VACUUM (VERBOSE null) t", "42601 syntax error at or near \"null\""),
        ("VACUUM (\"VERBOSE\") t", "42601 unrecognized VACUUM option \"VERBOSE\""),
        (
            "VACUUM other.public.t",
            "0A000 cross-database references are not implemented: \"other.public.t\"",
        ),
        ("REINDEX (NONSENSE) TABLE t", "42601 unrecognized REINDEX option \"nonsense\""),
    ]);
}

#[test]
fn a_toast_table_by_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)"]);
    let toast = s.run("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'");
    let name = toast.rsplit('.').next().unwrap().to_owned();
    s.check(&[
        (&format!("VACUUM (ANALYZE) {toast}"), ""),
        (
            &format!("ANALYZE {toast}"),
            &format!(
                "WARNING 01000 skipping \"{name}\" --- cannot analyze non-tables or special system tables"
            ),
        ),
        (
            &format!("ALTER TABLE {toast} SET (autovacuum_enabled = off)"),
            &format!("42501 permission denied: \"{name}\" is a system catalog"),
        ),
        // Its index goes with the table's own.
        (
            "REINDEX (VERBOSE) TABLE t",
            &format!("INFO 00000 index \"{name}_index\" was reindexed"),
        ),
    ]);
}

#[test]
fn a_temporary_tables_toast_table_goes_with_it() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    s.run_each(&[
        "CREATE TEMP TABLE t (a int, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat('x', 10000) FROM generate_series(1, 20) g",
        "DELETE FROM t",
    ]);
    let toast = s.run("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'");
    let pages = format!("SELECT pg_relation_size('{toast}') / 8192");
    assert_ne!(s.run(&pages), "0");
    // Nobody else's business.
    other.run_each(&[&format!("VACUUM {toast}")]);
    assert_ne!(s.run(&pages), "0");
    let said = s.run("VACUUM (VERBOSE) t");
    assert!(said.contains("tuples: 120 removed, 0 remain"), "{said}");
    assert_eq!(s.run(&pages), "0");
}

#[test]
fn statistics_have_no_statistics() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        ("INSERT INTO t VALUES (1), (2)", ""),
        ("ANALYZE t", ""),
        ("ANALYZE (VERBOSE) pg_statistic", ""),
        ("VACUUM (ANALYZE) pg_statistic", ""),
        ("SELECT count(*) FROM pg_statistic WHERE starelid = 'pg_statistic'::regclass", "0"),
        (
            "SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'pg_statistic'::regclass",
            "0",
        ),
    ]);
}

/// What `statement` says when `holder` has run `first` in a transaction, and `then` once the statement waits for it.
fn meanwhile(db: &Database, [first, then]: [&str; 2], statement: &str) -> String {
    let (mut holder, mut watcher) = (db.session(), db.session());
    holder.run_each(&[
        "DROP TABLE IF EXISTS t, u, old",
        "CREATE TABLE t (a int, b text); CREATE TABLE u (a int)",
        "BEGIN",
        first,
    ]);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || db.session().run(statement));
        let began = std::time::Instant::now();
        while watcher.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"
            && !waiter.is_finished()
            && began.elapsed() < base::stop::PATIENCE
        {
            std::thread::yield_now();
        }
        holder.run_each(&[then]);
        waiter.join().unwrap()
    })
}

/// Whose name is nobody's any more is an error; who was found and goes before its turn comes is passed over.
#[test]
fn what_is_dropped_meanwhile() {
    let db = Database::new();
    let missing = "42P01 relation \"t\" does not exist";
    let gone = |verb: &str| {
        format!("WARNING 42P01 skipping {verb} of \"t\" --- relation no longer exists")
    };
    let locked =
        |verb: &str| format!("WARNING 55P03 skipping {verb} of \"t\" --- lock not available");
    for (holds, statement, says) in [
        (["DROP TABLE t", "COMMIT"], "VACUUM t", missing),
        (["DROP TABLE t", "COMMIT"], "ANALYZE t", missing),
        (["DROP TABLE t", "COMMIT"], "VACUUM u, t", missing),
        (["DROP TABLE t", "ROLLBACK"], "VACUUM t", ""),
        (["DROP TABLE t; CREATE TABLE t (c int)", "COMMIT"], "VACUUM ANALYZE t (c)", ""),
        (["ALTER TABLE t RENAME TO old", "COMMIT"], "VACUUM t", missing),
        (["DROP TABLE t", "COMMIT"], "COMMENT ON TABLE t IS 'x'", missing),
        (["DROP TABLE t", "COMMIT"], "ALTER TABLE t ADD c int", missing),
        (["DROP TABLE t; CREATE TABLE t (d int)", "COMMIT"], "ALTER TABLE t DROP d", ""),
        (["DROP TABLE t", "COMMIT"], "TRUNCATE t", missing),
        (["DROP TABLE t", "COMMIT"], "DROP TABLE t", "42P01 table \"t\" does not exist"),
        (["DROP TABLE t", "ROLLBACK"], "DROP TABLE t", ""),
        (["DROP TABLE t", "COMMIT"], "CLUSTER t", missing),
        (["DROP TABLE t", "COMMIT"], "VACUUM (SKIP_LOCKED) t, u", &locked("vacuum")),
        (["DROP TABLE t", "COMMIT"], "ANALYZE (SKIP_LOCKED) t", &locked("analyze")),
    ] {
        assert_eq!(meanwhile(&db, holds, statement), says, "{holds:?} {statement}");
    }
    let found = |then| ["LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE", then];
    let dropped = "DROP TABLE t; COMMIT";
    for (holds, statement, says) in [
        (found(dropped), "VACUUM t", gone("vacuum")),
        (found(dropped), "VACUUM FULL t", gone("vacuum")),
        (found(dropped), "VACUUM ANALYZE t", gone("vacuum")),
        (found(dropped), "ANALYZE t", gone("analyze")),
        // Nobody has named it.
        (found(dropped), "VACUUM", String::new()),
        (found(dropped), "ANALYZE", String::new()),
        (found("ALTER TABLE t RENAME TO old; COMMIT"), "VACUUM t", String::new()),
        (found("COMMIT"), "VACUUM (SKIP_LOCKED) t", locked("vacuum")),
        (found("COMMIT"), "COMMENT ON TABLE t IS 'x'", String::new()),
        (found("COMMIT"), "COMMENT ON COLUMN t.a IS 'x'", String::new()),
        (found(dropped), "COMMENT ON TABLE t IS 'x'", missing.to_owned()),
    ] {
        assert_eq!(meanwhile(&db, holds, statement), says, "{holds:?} {statement}");
    }
}

/// FULL of a TOAST table by its name: its table's values are all there, for those who have it open and for old snapshots.
#[test]
fn a_toast_table_is_written_anew_by_itself() {
    let db = Database::new();
    let (mut s, mut other, mut old) = (db.session(), db.session(), db.session());
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat(g::text || '.', 3000) FROM generate_series(1, 60) g",
    ]);
    let sums = "SELECT count(*), sum(length(b)), min(md5(b)) FROM t";
    let whole = s.run(sums);
    other.check(&[(sums, &whole)]);
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"]);
    s.run_each(&["DELETE FROM t WHERE a > 20"]);
    let kept = s.run(sums);
    let toast = s.run("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'");
    let size = format!("SELECT pg_relation_size('{toast}')");
    let before: i64 = s.run(&size).parse().unwrap();
    let said = s.run(&format!("VACUUM (FULL, VERBOSE) {toast}"));
    let begins = format!("INFO 00000 vacuuming \"{toast}\"\nINFO 00000 \"{toast}\": found 0 rem");
    assert!(said.starts_with(&begins), "{said}");
    other.check(&[(sums, &kept)]);
    old.check(&[(sums, &whole), ("COMMIT", "")]);
    // Without its table, as PROCESS_MAIN has it, and with nobody left who needs more.
    s.run_each(&["VACUUM (FULL, PROCESS_MAIN off) t"]);
    assert!(s.run(&size).parse::<i64>().unwrap() * 2 < before);
    other.run_each(&[
        "INSERT INTO t SELECT g, repeat(g::text || '.', 3000) FROM generate_series(61, 70) g",
    ]);
    other.check(&[("SELECT count(*), sum(length(b)) FROM t WHERE a > 60", "10|90000")]);
    s.check(&[("SELECT count(*) FROM t WHERE length(b) > 0", "30")]);
    // Nor does a new index leave anybody with the old one.
    s.run_each(&["REINDEX TABLE t", &format!("REINDEX TABLE {toast}")]);
    other.run_each(&["UPDATE t SET b = b || '+'"]);
    s.check(&[("SELECT count(*) FROM t WHERE b LIKE '%+'", "30")]);
    other.run_each(&["VACUUM t", "DELETE FROM t WHERE a < 65"]);
    s.run_each(&["VACUUM t"]);
    s.check(&[("SELECT count(b), sum(length(b)) FROM t", "6|54006")]);
    drop((s, other, old));
    assert_eq!(db.faults(), Vec::<String>::new());
}

#[test]
fn storage_parameters_are_checked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE INDEX t_b ON t (lower(b)) INCLUDE (a) WITH (vacuum_cleanup_index_scale_factor = 0.5, deduplicate_items = off)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    ]);
    s.check(&[
        (
            "ALTER TABLE t SET (autovacuum_vacuum_threshold = 2147483648)",
            "22023 invalid value for integer option \"autovacuum_vacuum_threshold\": 2147483648",
        ),
        (
            "CREATE TABLE u (a int) WITH (oids = true)",
            "0A000 tables declared WITH OIDS are not supported",
        ),
        (
            "SELECT pg_get_indexdef('t_b'::regclass)",
            "CREATE INDEX t_b ON public.t USING btree (lower(b)) INCLUDE (a) WITH (vacuum_cleanup_index_scale_factor='0.5', deduplicate_items=off)",
        ),
        ("SELECT relreplident FROM pg_class WHERE relname = 'm'", "d"),
    ]);
    // A definition follows what is altered.
    let definition = "SELECT pg_get_indexdef('t_pkey'::regclass)";
    let plain = "CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a)";
    s.run_each(&["ALTER INDEX t_pkey SET (fillfactor = 50)"]);
    s.check(&[(definition, &format!("{plain} WITH (fillfactor='50')"))]);
    s.run_each(&["ALTER INDEX t_pkey RESET (fillfactor)"]);
    s.check(&[(definition, plain)]);
    // ALTER TABLE does the same to an index.
    s.run_each(&["ALTER TABLE t_pkey SET (fillfactor = 60)"]);
    s.check(&[(definition, &format!("{plain} WITH (fillfactor='60')"))]);
    s.run_each(&["ALTER TABLE t_pkey RESET (fillfactor)"]);
    s.check(&[
        (definition, plain),
        (
            "ALTER TABLE t_pkey SET (autovacuum_enabled = off)",
            "22023 unrecognized parameter \"autovacuum_enabled\"",
        ),
        (
            "ALTER TABLE t_pkey ADD COLUMN c int",
            "42809 ALTER action ADD COLUMN cannot be performed on relation \"t_pkey\"\n\
             This operation is not supported for indexes.",
        ),
        ("ALTER VIEW t_pkey SET (fillfactor = 60)", "42809 \"t_pkey\" is not a view"),
        ("ALTER INDEX t SET (fillfactor = 60)", "42809 \"t\" is not an index"),
    ]);
}

#[test]
fn statistics_targets_of_an_index_are_its_expressions() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE INDEX t_b ON t (lower(b)) INCLUDE (a)",
        "ALTER INDEX t_b ALTER COLUMN 1 SET STATISTICS 50",
    ]);
    s.check(&[
        (
            "ALTER TABLE t ALTER 1 SET STATISTICS 10",
            "0A000 cannot refer to non-index column by number",
        ),
        (
            "ALTER INDEX t_pkey ALTER COLUMN 1 SET STATISTICS 10",
            "0A000 cannot alter statistics on non-expression column \"a\" of index \"t_pkey\"",
        ),
        (
            "ALTER INDEX t_pkey ALTER COLUMN 2 SET STATISTICS 10",
            "42703 column number 2 of relation \"t_pkey\" does not exist",
        ),
        (
            "ALTER INDEX t_b ALTER COLUMN 2 SET STATISTICS 10",
            "0A000 cannot alter statistics on included column \"a\" of index \"t_b\"",
        ),
    ]);
}

#[test]
fn what_a_session_cannot_change_a_role_cannot_have() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE r", "ALTER ROLE r SET vacuum_cost_delay = 5"]);
    s.check(&[
        (
            "ALTER ROLE r SET autovacuum = off",
            "55P02 parameter \"autovacuum\" cannot be changed now",
        ),
        (
            "ALTER DATABASE postgres SET autovacuum_freeze_max_age = 1000000",
            "55P02 parameter \"autovacuum_freeze_max_age\" cannot be changed without restarting the server",
        ),
    ]);
}

#[test]
fn workers_are_refused_to_a_temporary_table_that_they_were_asked_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TEMP TABLE t (a int PRIMARY KEY, b int UNIQUE)"]);
    let said = "WARNING 01000 disabling parallel option of vacuum on \"t\" --- cannot vacuum temporary tables in parallel";
    s.check(&[
        ("VACUUM (PARALLEL 1) t", said),
        ("VACUUM (PARALLEL 0) t", ""),
        ("VACUUM t", ""),
        ("VACUUM (PARALLEL 1, INDEX_CLEANUP off) t", ""),
        ("VACUUM (PARALLEL 0, FULL) t", ""),
    ]);
}

/// Values out of line are written under the lock of the table that they belong to: VACUUM, which cuts the end of the TOAST table off, keeps
/// these writers out, or what they put there while it looked for the end would go with it.
#[test]
fn the_end_of_a_toast_table_is_cut_without_what_others_put_there() {
    let db = &Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE wide (id int PRIMARY KEY, x text); ALTER TABLE wide ALTER x SET STORAGE EXTERNAL"]);
    s.run_each(&["INSERT INTO wide SELECT g, repeat('x', 20000) FROM generate_series(1, 20) g"]);
    s.run_each(&["UPDATE wide SET x = NULL"]);
    std::thread::scope(|scope| {
        let armed = base::stop::arm("vacuum.truncate.end_found");
        let subject = armed.subject();
        let worker = scope.spawn(move || subject.run(|| db.session().run("VACUUM wide")));
        armed.wait_reached();
        let mut writer = db.session();
        writer.run_each(&["SET lock_timeout = '20ms'"]);
        let refused = writer.run("INSERT INTO wide VALUES (99, repeat('y', 20000))");
        armed.release();
        assert_eq!(worker.join().unwrap(), "");
        assert!(refused.contains("lock timeout"), "written meanwhile: {refused}");
        writer.run_each(&["INSERT INTO wide VALUES (100, repeat('z', 20000))"]);
    });
    let toast = "(SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'wide')";
    assert_eq!(
        s.run("SELECT count(*), sum(length(x)), max(x) = repeat('z', 20000) FROM wide"),
        "21|20000|t"
    );
    assert_eq!(s.run(&format!("SELECT pg_relation_size({toast}) / 8192")), "3");
}

/// Who looks sees the locks on a table's indexes too.
#[test]
fn locks_of_indexes() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g",
        "DELETE FROM t WHERE a > 50",
    ]);
    let locks = "SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('t'::regclass, 't_pkey'::regclass) ORDER BY 1, 2";
    for (statement, at, held) in [
        (
            "VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) t",
            "sql.vacuum.index_row_found",
            "t|ShareUpdateExclusiveLock\nt_pkey|RowExclusiveLock",
        ),
        ("ANALYZE t", "sql.analyze.sampled", "t|ShareUpdateExclusiveLock\nt_pkey|AccessShareLock"),
    ] {
        let stopped = base::stop::arm(at);
        let subject = stopped.subject();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| subject.run(|| db.session().run(statement)));
            stopped.wait_reached();
            s.check(&[(locks, held)]);
            stopped.release();
            assert_eq!(running.join().unwrap(), "");
        });
        s.check(&[(locks, "")]);
    }
    s.run_each(&["BEGIN", "CLUSTER t USING t_pkey"]);
    let mut other = db.session();
    other.check(&[(
        "SELECT mode FROM pg_locks WHERE relation = (SELECT oid FROM pg_class WHERE relname = 't_pkey') AND mode = 'AccessExclusiveLock'",
        "AccessExclusiveLock",
    )]);
    s.run_each(&["COMMIT"]);
}

/// An index has another name for who knows it; whoever reads and writes it by then goes on.
#[test]
fn an_index_is_renamed_under_readers_and_writers() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE u (a int)"]);
    let lock = |name: &str| {
        format!(
            "SELECT mode FROM pg_locks WHERE relation = (SELECT oid FROM pg_class WHERE relname = '{name}') AND mode <> 'AccessShareLock'"
        )
    };
    for (statement, name, mode) in [
        ("ALTER INDEX t_pkey RENAME TO k", "k", "ShareUpdateExclusiveLock"),
        ("ALTER TABLE k RENAME TO t_pkey", "t_pkey", "ShareUpdateExclusiveLock"),
        ("ALTER INDEX u RENAME TO v", "v", "AccessExclusiveLock"),
        ("ALTER TABLE v RENAME TO u", "u", "AccessExclusiveLock"),
        ("ALTER INDEX t_pkey SET (fillfactor = 80)", "t_pkey", "ShareUpdateExclusiveLock"),
        ("ALTER TABLE t RENAME COLUMN a TO b", "t", "AccessExclusiveLock"),
    ] {
        s.run_each(&["BEGIN", statement]);
        assert_eq!(s.run(&lock(name)), mode, "{statement}");
        s.run_each(&["COMMIT"]);
    }
}

/// Threads that help are seen beside the session whose statement it is, which ends with them.
#[test]
fn helpers_and_their_leader_are_seen() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 2000) g",
        "DELETE FROM t WHERE a % 2 = 0",
    ]);
    std::thread::scope(|scope| {
        let vacuum = scope.spawn(|| {
            let mut s = db.session();
            s.run_each(&[
                "SET min_parallel_table_scan_size = 0",
                "SET vacuum_cost_delay = 100",
                "SET vacuum_cost_limit = 1",
            ]);
            s.run("VACUUM (PARALLEL 1) t")
        });
        let began = std::time::Instant::now();
        let workers = "SELECT count(*) FROM pg_stat_activity WHERE leader_pid IS NOT NULL";
        while s.run(workers) == "0"
            && !vacuum.is_finished()
            && began.elapsed() < base::stop::PATIENCE
        {
            std::thread::yield_now();
        }
        s.check(&[
            (
                "SELECT w.backend_type, w.state, w.query, w.datname = l.datname, w.xact_start = l.xact_start, \
                 w.query_start = l.query_start, w.backend_xid, w.backend_xmin, l.query, l.leader_pid, l.backend_xid, l.backend_xmin IS NOT NULL \
                 FROM pg_stat_activity w JOIN pg_stat_activity l ON l.pid = w.leader_pid",
                "parallel worker|active|VACUUM (PARALLEL 1) t|t|t|t|~|~|VACUUM (PARALLEL 1) t|~|~|t",
            ),
            // What it shows holds nobody back.
            ("SELECT held_by FROM ebb_vacuum_backlog WHERE relname = 't'", "~"),
            (
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE leader_pid IS NOT NULL",
                "t",
            ),
        ]);
        assert_eq!(vacuum.join().unwrap(), "57014 canceling statement due to user request");
    });
    s.check(&[(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type <> 'client backend'",
        "0",
    )]);
}
