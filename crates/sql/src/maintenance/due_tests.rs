//! A table becomes due after it has been found not to be: in whatever way, the next look finds it.

use super::autovacuum::launcher;
use super::known_tables::KnownTables;
use super::tests::{cluster, connect, int, run};
use crate::cluster::Cluster;
use crate::session::Session;
use base::Oid;
use base::settings::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vacuum::autovacuum::Launcher;

/// A cluster with a table `t` of 1000 rows, 100 of them dead, that is vacuumed from 10,000 dead rows on; and a launcher that knows it.
struct Calm {
    _folder: tempfile::TempDir,
    cluster: Arc<Cluster>,
    session: Session,
    launcher: Arc<Launcher>,
}

impl Calm {
    fn new() -> Calm {
        let (folder, cluster) = cluster();
        let mut session = connect(&cluster);
        for (setting, value) in [
            ("autovacuum_vacuum_threshold", 10_000),
            ("autovacuum_analyze_threshold", 10_000),
            ("autovacuum_vacuum_insert_threshold", 100_000),
        ] {
            cluster.settings().set_internal(setting, Value::Int(value));
        }
        run(&mut session, "CREATE TABLE t (a int, b text)");
        run(&mut session, "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 1000) g");
        run(&mut session, "DELETE FROM t WHERE a <= 100");
        let launcher = launcher(&cluster);
        let mut calm = Calm { _folder: folder, cluster, session, launcher };
        // The catalogs' own vacuums are over then.
        for _ in 0..3 {
            calm.look();
        }
        assert_eq!(calm.done("t"), (0, 0));
        assert!(calm.read().hold(&calm.cluster, calm.database()));
        calm
    }

    fn run(&mut self, sql: &str) {
        run(&mut self.session, sql);
    }

    fn database(&self) -> Oid {
        self.session.state().database.oid
    }

    fn look(&mut self) {
        self.launcher.look_at(self.database());
    }

    fn read(&self) -> KnownTables {
        KnownTables::read(&self.cluster, self.database()).unwrap()
    }

    /// How often a table was vacuumed and analysed.
    fn done(&mut self, table: &str) -> (i64, i64) {
        let oid = int(&mut self.session, &format!("SELECT '{table}'::regclass::oid::int8"));
        let counts = self.session.state().database.activity.of(Oid(u32::try_from(oid).unwrap()));
        let count = |n: &std::sync::atomic::AtomicI64| n.load(Ordering::Relaxed);
        (count(&counts.autovacuum_count), count(&counts.autoanalyze_count))
    }

    /// The next look vacuums `t`, and the one after it does not.
    #[track_caller]
    fn comes_due(mut self) {
        self.look();
        assert_eq!(self.done("t").0, 1);
        self.look();
        assert_eq!(self.done("t").0, 1);
        self.session.close();
    }
}

#[test]
fn by_dead_rows() {
    let mut calm = Calm::new();
    calm.run("INSERT INTO t SELECT 0, 'x' FROM generate_series(1, 9_900)");
    calm.look();
    assert_eq!(calm.done("t"), (0, 1), "changed often enough for an analyze");
    calm.run("DELETE FROM t WHERE a = 0");
    calm.run("INSERT INTO t SELECT 0, 'x' FROM generate_series(1, 3_000)");
    calm.run("DELETE FROM t WHERE a = 0");
    calm.comes_due();
}

#[test]
fn by_inserts() {
    let mut calm = Calm::new();
    calm.run("ALTER TABLE t SET (autovacuum_vacuum_insert_threshold = 10000)");
    calm.look();
    calm.run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 10_500) g");
    calm.comes_due();
}

#[test]
fn by_its_storage_parameters() {
    let mut calm = Calm::new();
    calm.run(
        "ALTER TABLE t SET (autovacuum_vacuum_threshold = 20.4, autovacuum_vacuum_scale_factor = 0)",
    );
    calm.comes_due();
}

#[test]
fn by_the_settings() {
    let calm = Calm::new();
    calm.cluster.settings().set_internal("autovacuum_vacuum_threshold", Value::Int(20));
    calm.cluster.settings().set_internal("autovacuum_vacuum_scale_factor", Value::Real(0.0));
    calm.comes_due();
}

/// As in PostgreSQL, what ALTER DATABASE … SET says holds for autovacuum's work there.
#[test]
fn a_databases_settings_hold_for_autovacuum() {
    let mut calm = Calm::new();
    calm.run("ALTER DATABASE postgres SET default_statistics_target = 3");
    calm.run("ALTER TABLE t SET (autovacuum_analyze_threshold = 1)");
    calm.run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g");
    calm.look();
    assert_eq!(calm.done("t").1, 1);
    let bounds = "SELECT array_length(histogram_bounds, 1)::int8 FROM pg_stats WHERE tablename = 't' AND attname = 'a'";
    assert_eq!(int(&mut calm.session, bounds), 4);
    calm.session.close();
}

/// ALTER SYSTEM and a reload read all settings anew.
#[test]
fn by_a_reload() {
    let mut calm = Calm::new();
    let before = calm.read();
    calm.cluster.settings().apply(&[], false).unwrap();
    assert!(!before.hold(&calm.cluster, calm.database()));
    calm.look();
    assert_eq!(calm.done("t").0, 1, "50 rows are enough where nothing is set");
    calm.session.close();
}

#[test]
fn by_age() {
    let mut calm = Calm::new();
    calm.cluster.settings().set_internal("autovacuum_freeze_max_age", Value::Int(100_000));
    calm.look();
    assert_eq!(calm.done("t").0, 0);
    calm.run("SELECT ebb_burn_xids(120000)");
    calm.comes_due();
}

#[test]
fn by_being_new() {
    let mut calm = Calm::new();
    calm.run("CREATE TABLE u (a int) WITH (autovacuum_vacuum_threshold = 20)");
    calm.run("INSERT INTO u SELECT generate_series(1, 100)");
    calm.look();
    assert_eq!(calm.done("u").0, 0);
    calm.run("DELETE FROM u");
    calm.look();
    assert_eq!((calm.done("u").0, calm.done("t").0), (1, 0));
    calm.run("DROP TABLE u");
    calm.look();
    calm.session.close();
}

/// By what ANALYZE writes in place: of fewer rows the same number of dead ones is a greater share.
#[test]
fn by_having_fewer_rows() {
    let mut calm = Calm::new();
    calm.run(
        "ALTER TABLE t SET (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0.2)",
    );
    calm.run("VACUUM ANALYZE t");
    calm.run("DELETE FROM t WHERE a <= 250");
    calm.look();
    assert_eq!(calm.done("t").0, 0, "150 of 900");
    let before = calm.read();
    calm.run("BEGIN; DELETE FROM t WHERE a > 500; ANALYZE t; ROLLBACK");
    assert!(!before.hold(&calm.cluster, calm.database()), "kept though it was rolled back");
    calm.session.close();
}

/// `pg_stat_reset()` leaves what autovacuum goes by, and what it leaves is found.
#[test]
fn by_what_was_counted_before_a_reset() {
    let mut calm = Calm::new();
    calm.run("SELECT pg_stat_reset()");
    calm.look();
    assert_eq!(calm.done("t").0, 0);
    calm.run(ALTERS);
    calm.comes_due();
}

const ALTERS: &str =
    "ALTER TABLE t SET (autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0)";

/// What others change while the tables are read is not taken for known.
#[test]
fn by_what_is_committed_after_a_look() {
    let mut calm = Calm::new();
    let mut other = connect(&calm.cluster);
    run(&mut other, "BEGIN");
    run(&mut other, ALTERS);
    calm.look();
    assert_eq!(calm.done("t").0, 0);
    assert!(!calm.read().hold(&calm.cluster, calm.database()), "a change is under way");
    run(&mut other, "COMMIT");
    other.close();
    calm.comes_due();
}

/// The same, begun when it was found that nobody changes anything.
#[test]
fn by_what_begins_in_the_midst_of_a_look() {
    let mut calm = Calm::new();
    calm.run("CREATE TABLE new (a int)");
    let mut other = connect(&calm.cluster);
    let held = base::stop::arm("sql.autovacuum.tables.read");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let (launcher, database) = (Arc::clone(&calm.launcher), calm.database());
        let look = scope.spawn(move || subject.run(|| launcher.look_at(database)));
        held.wait_reached();
        run(&mut other, "BEGIN");
        run(&mut other, ALTERS);
        held.release();
        look.join().unwrap();
    });
    assert_eq!(calm.done("t").0, 0);
    run(&mut other, "COMMIT");
    other.close();
    calm.comes_due();
}

/// A superuser's own writing to `pg_class`, which goes past everything that DDL goes through.
#[test]
fn by_an_update_of_pg_class() {
    let mut calm = Calm::new();
    calm.run(
        "UPDATE pg_class SET reloptions = '{autovacuum_vacuum_threshold=20,autovacuum_vacuum_scale_factor=0}' WHERE relname = 't'",
    );
    calm.comes_due();
}

/// What is known is read again only when something has changed it.
#[test]
fn what_holds_is_not_read_again() {
    let mut calm = Calm::new();
    let known = calm.read();
    calm.run("INSERT INTO t VALUES (1, 'x')");
    calm.run("DELETE FROM t WHERE a = 1");
    calm.run("SELECT * FROM t");
    calm.look();
    assert!(known.hold(&calm.cluster, calm.database()));
    for change in ["CREATE TABLE u (a int)", "ANALYZE t", "VACUUM (FREEZE) t", "DROP TABLE u"] {
        let known = calm.read();
        assert!(known.hold(&calm.cluster, calm.database()));
        calm.run(change);
        assert!(!known.hold(&calm.cluster, calm.database()), "{change}");
    }
    calm.session.close();
}
