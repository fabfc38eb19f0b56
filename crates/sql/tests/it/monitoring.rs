//! Who may look into others' sessions, signal them and measure databases; what is told of databases one is not connected to.

use crate::support::Database;

/// What `pg_stat_activity` hides its functions hide as well.
#[test]
fn sessions_are_hidden_from_whom_they_are_none_of_the_business() {
    let db = Database::new();
    let mut boss = db.session();
    boss.run_each(&["CREATE ROLE low; CREATE ROLE reader IN ROLE pg_read_all_stats"]);
    let pid = boss.run("SELECT pg_backend_pid()");
    let mut s = db.session();
    let told = format!(
        "SELECT pg_stat_get_backend_activity({pid}), pg_stat_get_backend_start({pid}) IS NULL, \
         pg_stat_get_backend_activity_start({pid}) IS NULL, pg_stat_get_backend_wait_event({pid}), \
         pg_stat_get_backend_wait_event_type({pid}), pg_stat_get_backend_pid({pid}) = {pid}"
    );
    let open = "SELECT pg_backend_pid()|f|f|ClientRead|Client|t";
    let hidden = "<insufficient privilege>";
    let shut = format!("{hidden}|t|t|{hidden}|{hidden}|t");
    s.check(&[
        (&told, open),
        ("SET ROLE low", ""),
        (&told, &shut),
        ("RESET ROLE; SET ROLE reader", ""),
        (&told, open),
        ("SELECT pg_stat_get_backend_activity(-1)", "<backend information not available>"),
        ("SELECT pg_stat_get_backend_wait_event(-1)", "<backend information not available>"),
    ]);
}

/// A superuser's session, another role's, and the server's own threads.
#[test]
fn who_may_signal_whom() {
    let db = Database::new();
    let mut boss = db.session();
    boss.run_each(&[
        "CREATE ROLE low; CREATE ROLE owner; CREATE ROLE member IN ROLE owner",
        "CREATE ROLE signaller IN ROLE pg_signal_backend",
    ]);
    let mut theirs = db.session();
    let owner = boss.run("SELECT oid FROM pg_roles WHERE rolname = 'owner'").parse().unwrap();
    theirs.session.state().backend.activity.lock().user = base::Oid(owner);
    let of = |s: &mut crate::support::Connection| s.run("SELECT pg_backend_pid()");
    let (of_boss, of_owner) = (of(&mut boss), of(&mut theirs));
    let mut s = db.session();
    let mut tries = |role: &str, pid: &str, wanted: &str| {
        s.run_each(&["RESET ROLE", &format!("SET ROLE {role}")]);
        s.check(&[(&format!("SELECT pg_cancel_backend({pid})"), wanted)]);
    };
    let superusers = "42501 permission denied to cancel query\nOnly roles with the SUPERUSER \
                      attribute may cancel queries of roles with the SUPERUSER attribute.";
    let owners = "42501 permission denied to cancel query\nOnly roles with privileges of the role \
                  whose query is being canceled or with privileges of the \"pg_signal_backend\" \
                  role may cancel this query.";
    for role in ["low", "signaller", "member"] {
        tries(role, &of_boss, superusers);
    }
    tries("low", &of_owner, owners);
    tries("member", &of_owner, "t");
    tries("signaller", &of_owner, "t");
}

#[test]
fn autovacuum_is_signalled_by_those_who_may() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE low; CREATE ROLE signaller IN ROLE pg_signal_backend",
        "CREATE ROLE vacuums IN ROLE pg_signal_autovacuum_worker",
    ]);
    let worker = db.backend(txn::BackendKind::AutovacuumWorker);
    let checkpointer = db.backend(txn::BackendKind::Checkpointer);
    let refused = "42501 permission denied to terminate process\nOnly roles with privileges of the \
                   \"pg_signal_autovacuum_worker\" role may terminate autovacuum workers.";
    let end = |pid: i32| format!("SELECT pg_terminate_backend({pid})");
    let none =
        format!("WARNING 01000 PID {} is not a PostgreSQL backend process\nf", checkpointer.pid);
    s.check(&[
        (&end(checkpointer.pid), &none),
        ("SET ROLE low", ""),
        (&end(worker.pid), refused),
        ("RESET ROLE; SET ROLE signaller", ""),
        (&end(worker.pid), refused),
        ("RESET ROLE; SET ROLE vacuums", ""),
    ]);
    assert!(worker.cancel.reason().is_none() && checkpointer.cancel.reason().is_none());
    s.check(&[(&end(worker.pid), "t")]);
    assert!(worker.cancel.reason().is_some());
}

#[test]
fn sizes_and_sequences_are_told_to_those_who_may_use_them() {
    let db = Database::new();
    let mut s = db.session();
    let size = "SELECT pg_database_size('postgres') > 0";
    s.run_each(&[
        "CREATE ROLE low; CREATE ROLE reader IN ROLE pg_read_all_stats",
        "CREATE SEQUENCE q; SELECT nextval('q')",
        "SET ROLE low",
    ]);
    s.check(&[
        (size, "t"),
        ("SELECT pg_sequence_last_value('q'), last_value FROM pg_get_sequence_data('q')", "~|~"),
        ("SELECT last_value FROM pg_sequences WHERE sequencename = 'q'", "~"),
        (
            "SELECT * FROM pg_sequence_parameters('q'::regclass)",
            "42501 permission denied for sequence q",
        ),
        (
            "SELECT pg_stat_have_stats('wal', 0, 0)",
            "42501 permission denied for function pg_stat_have_stats",
        ),
        ("RESET ROLE", ""),
        ("SELECT pg_sequence_last_value('q')", "1"),
        ("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC", ""),
        (size, "t"),
        ("SET ROLE low", ""),
        (size, "42501 permission denied for database postgres"),
        ("RESET ROLE; SET ROLE reader", ""),
        (size, "t"),
    ]);
}

/// One sees what was done in databases one is not connected to; what is counted of a database goes on when it gets another name.
#[test]
fn other_databases_are_told_of_too() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE DATABASE other"]);
    let mut there = db.session_of("other");
    there.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 1000)"]);
    let told = |name: &str| {
        format!(
            "SELECT tup_inserted >= 1000, xact_commit > 1, numbackends FROM pg_stat_database \
             WHERE datname = '{name}'"
        )
    };
    s.check(&[(&told("other"), "t|t|1")]);
    let worker = db.backend(txn::BackendKind::AutovacuumWorker);
    worker.activity.lock().database =
        base::Oid(s.run("SELECT oid FROM pg_database WHERE datname = 'other'").parse().unwrap());
    s.check(&[(&told("other"), "t|t|2")]);
    drop((there, worker));
    s.check(&[("ALTER DATABASE other RENAME TO another", ""), (&told("another"), "t|t|0")]);
    let mut there = db.session_of("another");
    let rows = "SELECT n_tup_ins, n_live_tup FROM pg_stat_user_tables WHERE relname = 't'";
    there.check(&[("SELECT current_database()", "another"), (rows, "1000|1000")]);
    s.check(&[(&told("another"), "t|t|1")]);
}

/// Storage parameters that are numbers with a fraction are whole ones, rounded, wherever they are gone by.
#[test]
fn whole_storage_parameters_are_rounded() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text) WITH (fillfactor = 50.4, autovacuum_vacuum_threshold = 7.6)",
        "CREATE TABLE u (a int, b text) WITH (fillfactor = 50)",
        "INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(1, 1000) g",
        "INSERT INTO u SELECT g, repeat('x', 200) FROM generate_series(1, 1000) g",
        "CREATE INDEX ti ON t (a) WITH (fillfactor = 50.4, deduplicate_items = F)",
        "CREATE INDEX ui ON u (a) WITH (fillfactor = 50, deduplicate_items = off)",
    ]);
    s.check(&[
        ("SELECT pg_relation_size('t') = pg_relation_size('u')", "t"),
        ("SELECT pg_relation_size('ti') = pg_relation_size('ui')", "t"),
    ]);
}

#[test]
fn what_a_transaction_makes_it_has_locked() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    let locks = "SELECT mode, count(*) FROM pg_locks WHERE locktype = 'relation' AND relation >= 16384 \
                 GROUP BY mode ORDER BY mode";
    s.run_each(&["BEGIN", "CREATE TABLE t (a int PRIMARY KEY, b text)"]);
    // The table, its key, its TOAST table and the index of that.
    other.check(&[(locks, "AccessExclusiveLock|4\nShareLock|2")]);
    s.run_each(&["ROLLBACK", "CREATE TABLE t (a int)", "BEGIN", "CREATE INDEX ON t (a)"]);
    other.check(&[(locks, "AccessExclusiveLock|1\nShareLock|1")]);
    s.run_each(&["COMMIT"]);
    other.check(&[(locks, "")]);
}

/// Before the first ANALYZE, and after rows went since the last, what dead rows take is told by the file and what was counted.
#[test]
fn the_backlog_knows_what_dead_rows_take_before_they_are_analysed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE d (a int, b text) WITH (autovacuum_enabled = off)",
        "INSERT INTO d SELECT g, repeat('x', 100) FROM generate_series(1, 3000) g",
        "DELETE FROM d WHERE a % 3 = 0",
    ]);
    let third = "SELECT dead_tuples, abs(dead_bytes - pg_relation_size('d') / 3.0) < 10 \
                 FROM ebb_vacuum_backlog WHERE relname = 'd'";
    s.check(&[
        ("SELECT reltuples, relpages FROM pg_class WHERE relname = 'd'", "-1|0"),
        (third, "1000|t"),
    ]);
    s.run_each(&["VACUUM d", "ANALYZE d", "DELETE FROM d WHERE a % 3 = 1"]);
    s.check(&[(
        "SELECT dead_tuples, abs(dead_bytes - pg_relation_size('d') / 2.0) < 10 \
         FROM ebb_vacuum_backlog WHERE relname = 'd'",
        "1000|t",
    )]);
}
