use base::stop::{self, Subject};
use base::{Error, Oid, Result, Xid};
use disk::sim::SimDisk;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use txn::{Backend, BackendKind, TransactionManager, TxnConfig};
use vacuum::autovacuum::{
    AutovacuumHost, DatabaseInfo, Decision, Launcher, TableState, Thresholds,
};
use wal::{Wal, WalConfig};

#[derive(Default)]
struct Log {
    done: Vec<(u32, u32, Decision)>,
    errors: Vec<String>,
    finished: Vec<u32>,
    /// How often the launcher has begun to look round.
    rounds: usize,
    /// At which databases' [`HELD`] workers are or were.
    held: Vec<u32>,
    let_go: bool,
}

const SHARED: Oid = Oid(20);

/// A table whose worker goes on only when it is let go.
const HELD: Oid = Oid(17);

/// A table whose first vacuum panics.
const PANICS: Oid = Oid(18);

struct Host {
    enabled: bool,
    max_workers: usize,
    naptime: Duration,
    databases: Mutex<Vec<DatabaseInfo>>,
    tables: Mutex<BTreeMap<(u32, u32), TableState>>,
    log: Mutex<Log>,
    changed: Condvar,
}

impl Host {
    fn wait(&self, what: impl Fn(&Log) -> bool) {
        let log = self.log.lock().unwrap();
        let (log, timeout) =
            self.changed.wait_timeout_while(log, stop::PATIENCE, |l| !what(l)).unwrap();
        assert!(!timeout.timed_out(), "{:?} {:?}", log.done, log.errors);
    }

    /// Until the launcher has looked round twice more, whole.
    fn wait_for_rounds(&self, launcher: &Launcher) {
        let before = self.log.lock().unwrap().rounds;
        for n in 1..=3 {
            launcher.wake();
            self.wait(|l| l.rounds >= before + n);
        }
    }

    fn let_go(&self) {
        self.log.lock().unwrap().let_go = true;
        self.changed.notify_all();
    }

    /// `datfrozenxid` of all databases.
    fn set_frozen(&self, frozen: u64) {
        self.databases.lock().unwrap().iter_mut().for_each(|d| d.frozen_xid = Xid(frozen));
    }
}

impl AutovacuumHost for Host {
    fn enabled(&self) -> bool {
        self.enabled
    }
    fn naptime(&self) -> Duration {
        self.naptime
    }
    fn max_workers(&self) -> usize {
        self.max_workers
    }
    fn freeze_max_age(&self) -> u64 {
        1000
    }
    fn keep_counts(&self) {
        self.log.lock().unwrap().rounds += 1;
        self.changed.notify_all();
    }
    fn databases(&self) -> Result<Vec<DatabaseInfo>> {
        Ok(self.databases.lock().unwrap().clone())
    }
    fn tables(&self, _: &Arc<Backend>, database: Oid) -> Result<Vec<TableState>> {
        let all = self.tables.lock().unwrap();
        Ok(all.iter().filter(|t| t.0.0 == database.0).map(|t| t.1.clone()).collect())
    }
    fn is_shared(&self, table: Oid) -> bool {
        table == SHARED
    }
    fn table(&self, _: &Arc<Backend>, database: Oid, table: Oid) -> Result<Option<TableState>> {
        Ok(self.tables.lock().unwrap().get(&(database.0, table.0)).cloned())
    }
    fn work(
        &self,
        worker: &Arc<Backend>,
        database: Oid,
        table: Oid,
        decision: Decision,
    ) -> Result<()> {
        worker.cancel.check()?;
        let backends = worker.manager().backends().all();
        if backends.iter().any(|b| b.kind == BackendKind::AutovacuumLauncher) != self.enabled {
            return Err(Error::unsupported("a launcher's being seen"));
        }
        if table == Oid(15) {
            // Somebody wants the table, whose work is done.
            worker.cancel.raise(base::sync::CancelReason::AutovacuumYield);
        }
        if table == PANICS {
            let first = self.log.lock().unwrap().errors.is_empty();
            assert!(!first, "it was to panic here");
        }
        if table == HELD {
            self.log.lock().unwrap().held.push(database.0);
            self.changed.notify_all();
            self.wait(|l| l.let_go);
        }
        if table == SHARED {
            // Until the other database's worker has been through.
            self.wait(|l| !l.finished.is_empty());
        }
        if table == Oid(13) {
            self.tables.lock().unwrap().remove(&(database.0, table.0));
            return Err(Error::unsupported("this table"));
        }
        // A shared table's counts are every database's.
        let is_it =
            |of: &(u32, u32)| of.1 == table.0 && (of.0 == database.0 || self.is_shared(table));
        for (_, t) in self.tables.lock().unwrap().iter_mut().filter(|(of, _)| is_it(of)) {
            t.dead_tuples = 0;
            t.changes_since_analyze = 0;
            t.relfrozenxid = Xid(1 << 40);
        }
        self.log.lock().unwrap().done.push((database.0, table.0, decision));
        self.changed.notify_all();
        Ok(())
    }
    fn finish_database(&self, _: &Arc<Backend>, database: Oid) -> Result<()> {
        self.log.lock().unwrap().finished.push(database.0);
        self.changed.notify_all();
        Ok(())
    }
    fn log_error(&self, _: Oid, _: Option<(Oid, Decision)>, error: &Error) {
        self.log.lock().unwrap().errors.push(error.to_string());
        self.changed.notify_all();
    }
}

fn table(oid: u32, dead: i64, frozen: u64) -> TableState {
    TableState {
        oid: Oid(oid),
        relfrozenxid: Xid(frozen),
        reltuples: 100.0,
        relpages: 1,
        all_frozen_pages: 0,
        dead_tuples: dead,
        inserts_since_vacuum: 0,
        changes_since_analyze: dead,
        analyzable: true,
        thresholds: Thresholds { freeze_max_age: 1000, ..Thresholds::default() },
    }
}

fn run(host: Host, burn: u64, test: impl FnOnce(&Arc<Launcher>, &Host)) {
    run_held(host, burn, None, test);
}

/// The launcher's thread may be a stop point's subject.
fn run_held(
    host: Host,
    burn: u64,
    subject: Option<Subject>,
    test: impl FnOnce(&Arc<Launcher>, &Host),
) {
    let disk = SimDisk::new(3);
    let disk: Arc<dyn disk::Disk> = disk;
    disk.create_dir("wal").unwrap();
    let wal = Wal::create(disk.clone(), WalConfig::default(), wal::FIRST_LSN).unwrap();
    let txns = TransactionManager::open(disk, wal, TxnConfig::default()).unwrap();
    txns.burn_xids(burn).unwrap();
    let host = Arc::new(host);
    let launcher = Launcher::new(txns.clone(), host.clone());
    let thread = {
        let launcher = launcher.clone();
        std::thread::spawn(move || match subject {
            Some(subject) => subject.run(|| launcher.run()),
            None => launcher.run(),
        })
    };
    test(&launcher, &host);
    launcher.stop();
    thread.join().unwrap();
    assert_eq!(launcher.workers(), 0);
    assert!(txns.backends().all().is_empty());
}

fn host(enabled: bool, frozen: u64, tables: Vec<((u32, u32), TableState)>) -> Host {
    let database = |n| DatabaseInfo { oid: Oid(n), frozen_xid: Xid(frozen) };
    Host {
        enabled,
        max_workers: 2,
        naptime: Duration::from_millis(1),
        databases: Mutex::new((1..=2).map(database).collect()),
        tables: Mutex::new(tables.into_iter().collect()),
        log: Mutex::default(),
        changed: Condvar::new(),
    }
}

#[test]
fn what_is_due_is_done_in_every_database() {
    let tables = vec![
        ((1, 10), table(10, 1000, 500)),
        ((1, 11), table(11, 0, 500)),
        ((1, 13), table(13, 1000, 500)),
        ((2, 14), table(14, 65, 500)),
    ];
    run(host(true, 500, tables), 600, |_, host| {
        host.wait(|l| l.done.len() == 2 && !l.errors.is_empty());
        let log = host.log.lock().unwrap();
        let both = Decision { vacuum: true, analyze: true, for_age: false };
        assert!(log.done.contains(&(1, 10, both)));
        assert!(log.done.contains(&(2, 14, Decision { vacuum: false, ..both })));
        assert_eq!(log.errors, ["this table is not supported"]);
    });
}

#[test]
fn old_age_is_prevented_even_when_off() {
    let tables = vec![((1, 10), table(10, 1000, 100)), ((2, 11), table(11, 1000, 4900))];
    let tables = tables
        .into_iter()
        .map(|(k, mut t)| {
            t.thresholds.active = false;
            (k, t)
        })
        .collect();
    run(host(false, 100, tables), 5000, |_, host| {
        host.wait(|l| l.finished.contains(&1) && l.finished.contains(&2));
        let log = host.log.lock().unwrap();
        assert_eq!(log.errors, Vec::<String>::new());
        assert_eq!(log.done, [(1, 10, Decision { vacuum: true, analyze: false, for_age: true })]);
    });
}

#[test]
fn nothing_happens_when_off_and_young() {
    let tables = vec![((1, 10), table(10, 1000, 4900))];
    run(host(false, 4900, tables), 5000, |launcher, host| {
        launcher.wake();
        std::thread::yield_now();
        assert!(host.log.lock().unwrap().done.is_empty());
    });
}

/// A worker whose thread begins after the others have been told to stop.
#[test]
fn a_worker_that_begins_while_the_launcher_stops_does_nothing() {
    let tables = vec![((1, 10), table(10, 1000, 500))];
    run(host(false, 500, tables), 600, |launcher, host| {
        launcher.stop();
        launcher.look_at(Oid(1));
        let log = host.log.lock().unwrap();
        assert_eq!((log.done.len(), log.finished.len(), log.errors.len()), (0, 0, 0));
    });
}

#[test]
fn a_request_to_yield_that_comes_too_late_is_not_for_the_next_table() {
    let tables = vec![((1, 15), table(15, 2000, 500)), ((1, 16), table(16, 1000, 500))];
    run(host(true, 500, tables), 600, |_, host| {
        host.wait(|l| l.done.len() == 2 || !l.errors.is_empty());
        let log = host.log.lock().unwrap();
        assert_eq!(log.errors, Vec::<String>::new());
        assert_eq!(log.done.iter().map(|d| d.1).collect::<Vec<_>>(), [15, 16]);
    });
}

#[test]
fn two_databases_workers_do_not_work_on_the_same_shared_table() {
    let shared = |database| ((database, SHARED.0), table(SHARED.0, 1000, 500));
    run(host(true, 500, vec![shared(1), shared(2)]), 600, |_, host| {
        let both = |l: &Log| l.finished.contains(&1) && l.finished.contains(&2);
        host.wait(|l| both(l) && !l.done.is_empty());
        let log = host.log.lock().unwrap();
        assert_eq!(log.errors, Vec::<String>::new());
        assert_eq!(log.done.iter().filter(|d| d.1 == SHARED.0).count(), 1);
    });
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn no_more_workers_run_than_are_configured() {
    for most in [1, 2] {
        let held = |n| ((n, HELD.0), table(HELD.0, 1000, 500));
        let tables = (1..=3).map(held).collect();
        // All are due in every round.
        let naptime = Duration::ZERO;
        let host = Host { max_workers: most, naptime, ..host(true, 500, tables) };
        let third = DatabaseInfo { oid: Oid(3), frozen_xid: Xid(500) };
        host.databases.lock().unwrap().push(third);
        run(host, 600, |launcher, host| {
            host.wait(|l| l.held.len() == most);
            host.wait_for_rounds(launcher);
            assert_eq!(launcher.workers(), most);
            assert_eq!(host.log.lock().unwrap().held.len(), most);
            host.let_go();
            host.wait(|l| l.done.len() == 3);
        });
    }
}

/// A worker is there already: whatever the danger, another one would find the same to do.
#[test]
fn a_database_in_danger_gets_no_second_worker() {
    let tables = vec![((1, HELD.0), table(HELD.0, 0, 100))];
    // Its time has come in every round.
    let host = Host { naptime: Duration::ZERO, ..host(false, 100, tables) };
    host.databases.lock().unwrap().truncate(1);
    run(host, 5000, |launcher, host| {
        host.wait(|l| l.held.len() == 1);
        host.wait_for_rounds(launcher);
        assert_eq!(launcher.workers(), 1);
        host.let_go();
        host.wait(|l| !l.finished.is_empty());
    });
}

/// Not only after the nap.
#[test]
fn when_a_worker_ends_another_one_begins() {
    let old = |n| ((n, HELD.0), table(HELD.0, 0, 100));
    let host = Host { max_workers: 1, naptime: HOUR, ..host(false, 100, vec![old(1), old(2)]) };
    run(host, 5000, |_, host| {
        host.wait(|l| l.held.len() == 1);
        host.let_go();
        host.wait(|l| l.finished.len() == 2);
    });
}

/// It has looked round, and has not gone to sleep yet, when the worker is done that it has begun.
#[test]
fn a_worker_that_ends_before_the_launcher_sleeps_is_noticed() {
    let host = Host { max_workers: 1, naptime: HOUR, ..host(false, 100, Vec::new()) };
    let looked = stop::arm("vacuum.launcher.looked");
    run_held(host, 5000, Some(looked.subject()), |launcher, host| {
        looked.wait_reached();
        host.wait(|l| l.finished.len() == 1);
        let began = std::time::Instant::now();
        while launcher.workers() > 0 {
            assert!(began.elapsed() < stop::PATIENCE, "it goes on");
            std::thread::yield_now();
        }
        looked.release();
        host.wait(|l| l.finished.len() == 2);
    });
}

#[test]
fn a_database_that_comes_into_danger_again_is_looked_at_at_once() {
    // The next XID is 5,003, and the age that is too much 1,000.
    let host = Host { naptime: HOUR, ..host(false, 4003, Vec::new()) };
    host.databases.lock().unwrap().truncate(1);
    run(host, 5000, |launcher, host| {
        for looks in 0..3 {
            host.set_frozen(4003);
            host.wait_for_rounds(launcher);
            assert_eq!(host.log.lock().unwrap().finished.len(), looks, "as old as it may be");
            host.set_frozen(4002);
            launcher.wake();
            host.wait(|l| l.finished.len() == looks + 1);
            host.wait_for_rounds(launcher);
            assert_eq!(host.log.lock().unwrap().finished.len(), looks + 1, "it stays in danger");
        }
    });
}

/// What was due when its database's tables were listed may have been done by the time that its turn comes.
#[test]
fn a_table_is_looked_at_again_right_before_it_is_worked_on() {
    let due = |n, dead| ((1, n), table(n, dead, 500));
    let tables = vec![due(HELD.0, 9000), due(10, 1000), due(11, 900)];
    let host = Host { max_workers: 1, ..host(true, 500, tables) };
    host.databases.lock().unwrap().truncate(1);
    run(host, 600, |_, host| {
        // The one most in need comes first.
        host.wait(|l| l.held == [1]);
        host.tables.lock().unwrap().extend([due(10, 65), due(11, 0)]);
        host.let_go();
        host.wait(|l| !l.finished.is_empty());
        let log = host.log.lock().unwrap();
        let analyze = Decision { vacuum: false, analyze: true, for_age: false };
        assert_eq!(log.done[1..], [(1, 10, analyze)]);
    });
}

#[test]
fn a_worker_that_panics_ends_alone() {
    let tables = vec![((1, PANICS.0), table(PANICS.0, 1000, 500)), ((2, 14), table(14, 1000, 500))];
    let host = Host { max_workers: 1, ..host(true, 500, tables) };
    run(host, 600, |_, host| {
        host.wait(|l| l.done.len() == 2);
        let log = host.log.lock().unwrap();
        assert_eq!(log.errors, ["the autovacuum worker has ended because of an internal error"]);
        // In its database's next turn.
        assert_eq!(log.done.iter().map(|d| d.1).collect::<Vec<_>>(), [14, PANICS.0]);
    });
}
