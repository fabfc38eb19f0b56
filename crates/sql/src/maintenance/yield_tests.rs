//! Who asks for the lock of a table that an autovacuum worker is at.

use super::autovacuum::launcher;
use super::tests::{cluster, connect, int, run, text};
use crate::client::Quiet;
use crate::cluster::Cluster;
use crate::session::Session;
use base::stop;
use base::sync::CancelReason;
use base::{Oid, SqlState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use txn::{Backend, BackendKind};

/// Where the worker is held: its index is clean, its heap not yet.
const AT: &str = "vacuum.before_reap";

/// A table of which half is to be removed.
fn fill(s: &mut Session) {
    run(s, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(s, "INSERT INTO t SELECT g, repeat('x', 700) FROM generate_series(1, 1000) g");
    run(s, "DELETE FROM t WHERE a % 2 = 0");
}

fn worker(cluster: &Cluster) -> Arc<Backend> {
    let all = cluster.backends().all();
    all.into_iter().find(|b| b.kind == BackendKind::AutovacuumWorker).expect("a worker")
}

fn wait_until_asked_to_give_way(cluster: &Cluster) {
    let (asked, began) = (worker(cluster), Instant::now());
    while asked.cancel.reason() != Some(CancelReason::AutovacuumYield) {
        assert!(began.elapsed() < stop::PATIENCE, "the worker is not asked to give way");
        std::thread::yield_now();
    }
}

/// What the worker is at, as others see it.
const SHOWN: &str = "SELECT query FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'";
const FROZEN: &str = "SELECT relfrozenxid::text::int8 FROM pg_class WHERE relname = 't'";
const DEAD: &str = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'";

fn done(s: &mut Session) -> i64 {
    let oid = int(s, "SELECT 't'::regclass::oid::int8");
    let counts = s.state().database.activity.of(Oid(u32::try_from(oid).unwrap()));
    counts.autovacuum_count.load(Ordering::Relaxed)
}

#[test]
fn a_worker_gives_way_to_whoever_wants_its_tables_lock() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    fill(&mut s);
    let (database, launcher) = (s.state().database.oid, launcher(&cluster));
    let frozen = int(&mut s, FROZEN);
    let held = stop::arm(AT);
    let subject = held.subject();
    std::thread::scope(|scope| {
        let (working, cluster) =
            (scope.spawn(|| subject.run(|| launcher.look_at(database))), &cluster);
        held.wait_reached();
        assert_eq!(text(&mut s, SHOWN), "autovacuum: VACUUM ANALYZE public.t");
        let locking = scope.spawn(|| {
            let mut other = connect(cluster);
            run(&mut other, "SET deadlock_timeout = '1ms'");
            run(&mut other, "BEGIN; LOCK TABLE t; COMMIT");
            other.close();
        });
        wait_until_asked_to_give_way(cluster);
        held.release();
        locking.join().unwrap();
        working.join().unwrap();
    });
    // Nothing is told of it, and what it has not done is done next.
    assert_eq!((done(&mut s), int(&mut s, FROZEN)), (0, frozen));
    launcher.look_at(database);
    assert_eq!((done(&mut s), int(&mut s, DEAD)), (1, 0));
    assert_eq!(int(&mut s, "SELECT count(*) FROM t"), 500);
    s.close();
}

/// Old age is not put off: who wants the lock waits.
#[test]
fn a_worker_that_prevents_wraparound_is_waited_for() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    fill(&mut s);
    // It alone is old.
    run(&mut s, "ALTER TABLE t SET (autovacuum_freeze_max_age = 100000)");
    let (database, launcher) = (s.state().database.oid, launcher(&cluster));
    run(&mut s, "SELECT ebb_burn_xids(150000)");
    let frozen = int(&mut s, FROZEN);
    let held = stop::arm(AT);
    let subject = held.subject();
    std::thread::scope(|scope| {
        let (working, cluster) =
            (scope.spawn(|| subject.run(|| launcher.look_at(database))), &cluster);
        held.wait_reached();
        let shown = text(&mut s, SHOWN);
        assert!(shown.starts_with("autovacuum: VACUUM"), "{shown}");
        assert!(shown.ends_with(" public.t (to prevent wraparound)"), "{shown}");
        // Whoever waits looks once whether somebody is to give way: it has looked when its time is up.
        let looking = stop::arm("txn.lock.before_deadlock_check");
        let looks = looking.subject();
        let refused = scope.spawn(move || {
            let mut other = connect(cluster);
            run(&mut other, "SET deadlock_timeout = '1ms'; SET lock_timeout = '20ms'");
            let said = looks.run(|| other.simple_query("BEGIN; LOCK TABLE t", &mut Quiet));
            let state = said.err().map(|e| e.state());
            run(&mut other, "ROLLBACK");
            other.close();
            state
        });
        looking.wait_reached();
        looking.release();
        assert_eq!(refused.join().unwrap(), Some(SqlState::LOCK_NOT_AVAILABLE));
        assert_eq!(worker(cluster).cancel.reason(), None);
        // One that has time has it in the end.
        let looking = stop::arm("txn.lock.before_deadlock_check");
        let looks = looking.subject();
        let locking = scope.spawn(move || {
            let mut other = connect(cluster);
            run(&mut other, "SET deadlock_timeout = '1ms'");
            looks.run(|| run(&mut other, "BEGIN; LOCK TABLE t; COMMIT"));
            other.close();
        });
        looking.wait_reached();
        looking.release();
        held.release();
        locking.join().unwrap();
        working.join().unwrap();
    });
    assert_eq!((done(&mut s), int(&mut s, DEAD)), (1, 0));
    assert!(int(&mut s, FROZEN) > frozen);
    assert_eq!(int(&mut s, "SELECT count(*) FROM t"), 500);
    s.close();
}

/// But its ANALYZE afterwards prevents nothing.
#[test]
fn the_analyze_of_a_worker_that_prevents_wraparound_gives_way() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    fill(&mut s);
    run(&mut s, "ALTER TABLE t SET (autovacuum_freeze_max_age = 100000)");
    let (database, launcher) = (s.state().database.oid, launcher(&cluster));
    run(&mut s, "SELECT ebb_burn_xids(150000)");
    let held = stop::arm("sql.analyze.sampled");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let (working, cluster) =
            (scope.spawn(|| subject.run(|| launcher.look_at(database))), &cluster);
        held.wait_reached();
        assert!(text(&mut s, SHOWN).ends_with(" public.t (to prevent wraparound)"));
        let locking = scope.spawn(|| {
            let mut other = connect(cluster);
            run(&mut other, "SET deadlock_timeout = '1ms'");
            run(&mut other, "BEGIN; LOCK TABLE t; COMMIT");
            other.close();
        });
        wait_until_asked_to_give_way(cluster);
        held.release();
        locking.join().unwrap();
        working.join().unwrap();
    });
    let analysed = "SELECT autoanalyze_count FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!((done(&mut s), int(&mut s, analysed)), (1, 0));
    s.close();
}
