use crate::support::{backend, manager};
use base::{CommandId, Csn, stop};
use txn::{CommitExtras, IsolationLevel, XidStatus};

#[test]
fn sees_what_committed_before() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let early = m.begin(&a);
    let x = early.xid().unwrap();
    let reader = m.begin(&b);
    let s1 = reader.take_snapshot();
    assert!(!s1.sees(x).unwrap());
    assert_eq!(m.status(x).unwrap(), XidStatus::InProgress);
    let info = early.commit(CommitExtras::default()).unwrap();
    assert_eq!(info.xid, Some(x));
    let s2 = reader.take_snapshot();
    assert!(!s1.sees(x).unwrap(), "a snapshot's answer never changes");
    assert!(s2.sees(x).unwrap());
    assert!(m.committed(x).unwrap());
}

#[test]
fn repeatable_read_keeps_the_first() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let reader = m.begin(&b);
    reader.set_isolation(IsolationLevel::RepeatableRead);
    assert!(!reader.has_snapshot());
    let s1 = reader.take_snapshot();
    let t = m.begin(&a);
    let x = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    reader.command_id();
    reader.advance_command().unwrap();
    let s2 = reader.take_snapshot();
    assert_eq!(s1.csn, s2.csn);
    assert_eq!(s2.command_id, CommandId(1));
    assert!(!s2.sees(x).unwrap());
    assert!(reader.take_latest_snapshot().sees(x).unwrap());
}

#[test]
fn aborted_is_never_seen() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    let x = t.xid().unwrap();
    t.abort().unwrap();
    assert_eq!(m.status(x).unwrap(), XidStatus::Aborted);
    let dropped = m.begin(&b);
    let y = dropped.xid().unwrap();
    drop(dropped);
    assert_eq!(m.status(y).unwrap(), XidStatus::Aborted);
    assert_eq!(m.oldest_running(), m.next_xid());
}

#[test]
fn horizons() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let old = m.begin(&a);
    let s = old.take_snapshot();
    let t = m.begin(&b);
    let x = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(m.oldest_xmin(), s.xmin);
    assert!(m.oldest_xmin() <= x);
    assert_eq!(old.backend().xmin(), Some(s.xmin));
    let XidStatus::Committed(csn) = m.status(x).unwrap() else { panic!() };
    assert!(m.any_snapshot_between(Csn(s.csn.0), csn));
    assert!(!m.any_snapshot_between(csn, csn));
    // Two later commits: nobody stands between them.
    let csns: Vec<Csn> = (0..2)
        .map(|_| {
            let t = m.begin(&b);
            t.xid().unwrap();
            t.commit(CommitExtras::default()).unwrap().csn.unwrap()
        })
        .collect();
    assert!(!m.any_snapshot_between(csns[0], csns[1]));
    assert!(m.any_snapshot_between(csns[0], Csn(csns[1].0 + 1)), "not judged yet");
    assert_eq!(m.holders_of_older_snapshots(&c, s.xmin).len(), 1);
    a.set_ignored_by_horizons(true);
    assert!(m.oldest_xmin() > x);
    a.set_ignored_by_horizons(false);
    drop(s);
    assert_eq!(m.oldest_xmin(), m.next_xid());
    drop(old);
}

#[test]
fn a_cleaner_cannot_slip_between() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let writer = m.begin(&a);
    let x = writer.xid().unwrap();
    std::thread::scope(|scope| {
        let published = stop::arm("txn.snapshot.bound_published");
        let subject = published.subject();
        let (m, b) = (&m, &b);
        let taker = scope.spawn(move || {
            let t = m.begin(b);
            let s = subject.run(|| t.take_snapshot());
            let xmin = s.xmin;
            (s.sees(x).unwrap(), xmin)
        });
        published.wait_reached();
        writer.commit(CommitExtras::default()).unwrap();
        // The snapshot is on its way, its bound below x: what x deleted must stay.
        assert!(m.oldest_xmin() <= x);
        published.release();
        let (seen, xmin) = taker.join().unwrap();
        assert!(seen && xmin > x);
    });
}

#[test]
fn a_long_snapshot_costs_little_memory() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let old = m.begin(&a);
    let s = old.take_snapshot();
    let mut commits = Vec::new();
    for i in 0..100 {
        for _ in 0..30 {
            let t = m.begin(&b);
            let x = t.xid().unwrap();
            if i % 3 == 0 {
                t.abort().unwrap();
                commits.push((x, false));
            } else {
                t.commit(CommitExtras::default()).unwrap();
                commits.push((x, true));
            }
        }
        m.burn_xids(4096).unwrap();
    }
    m.sweep();
    let newer = m.begin(&b);
    let s2 = newer.take_snapshot();
    for (x, committed) in &commits {
        assert!(!s.sees(*x).unwrap());
        assert_eq!(s2.sees(*x).unwrap(), *committed);
        assert_eq!(m.committed(*x).unwrap(), *committed);
    }
    drop(s);
    drop(old);
    assert!(m.oldest_xmin() > commits.last().unwrap().0);
}

#[test]
fn hints_wait_for_the_log() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    let x = t.xid().unwrap();
    let info = t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap();
    assert!(m.committed(x).unwrap());
    assert_eq!(Some(m.commit_lsn_to_flush(x)), info.lsn);
    assert_eq!(Some(m.last_async_commit_lsn()), info.lsn);
    let t = m.begin(&b);
    let y = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    for durable in [x, y] {
        assert!(!m.commit_lsn_to_flush(durable).is_valid());
    }
}

#[test]
fn combo_commands() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    let n = t.combo_command(CommandId(1), CommandId(4));
    assert_eq!(t.combo_command(CommandId(1), CommandId(4)), n);
    let n2 = t.combo_command(CommandId(1), CommandId(5));
    assert_ne!(n, n2);
    assert_eq!(t.take_snapshot().combo(n2), Some((CommandId(1), CommandId(5))));
    assert_eq!(t.combo_pair(CommandId(9)), None);
}

/// A cleaner has read the CSN counter; before it reads who has which snapshot, one is taken and a version dies after it. The
/// cleaner judges neither: what died after its counter it leaves alone.
#[test]
fn a_snapshot_taken_while_a_cleaner_asks() {
    let m = manager();
    let commit = || {
        let t = m.begin(&backend(&m));
        t.xid().unwrap();
        t.commit(CommitExtras::default()).unwrap().csn.unwrap()
    };
    let born = commit();
    let live = std::thread::scope(|s| {
        let counter_read = stop::arm("txn.live_snapshots.counter_read");
        let (subject, m) = (counter_read.subject(), &m);
        let cleaner = s.spawn(move || subject.run(|| m.live_snapshots()));
        counter_read.wait_reached();
        let reader = m.begin(&backend(m));
        let snapshot = reader.take_snapshot();
        let died = commit();
        counter_read.release();
        let live = cleaner.join().unwrap();
        assert!(snapshot.csn >= born && snapshot.csn < died);
        assert!(live.any_between(born, died));
        // A list taken now knows the snapshot.
        let now = m.live_snapshots();
        assert!(now.taken_at >= died && now.any_between(born, died));
        let later = commit();
        assert!(!m.any_snapshot_between(died, later), "nobody sees what lived from then to then");
        assert!(m.live_snapshots().any_before(died));
        drop(snapshot);
        assert!(!m.any_snapshot_between(born, died));
        live
    });
    // An old list goes on keeping.
    assert!(live.taken_at < m.current_csn());
}

/// The same when the cleaner has asked everybody: who takes a snapshot now is not on its list, and keeps what dies after that.
#[test]
fn a_snapshot_taken_when_a_cleaner_has_asked() {
    let m = manager();
    let commit = || {
        let t = m.begin(&backend(&m));
        t.xid().unwrap();
        t.commit(CommitExtras::default()).unwrap().csn.unwrap()
    };
    let born = commit();
    std::thread::scope(|s| {
        let asked = stop::arm("txn.live_snapshots.holders_found");
        let (subject, m) = (asked.subject(), &m);
        let cleaner = s.spawn(move || subject.run(|| m.live_snapshots()));
        asked.wait_reached();
        let reader = m.begin(&backend(m));
        let snapshot = reader.take_snapshot();
        let died = commit();
        asked.release();
        let live = cleaner.join().unwrap();
        assert!(live.csns.is_empty() && snapshot.csn >= born && snapshot.csn < died);
        assert!(live.any_between(born, died));
    });
}

#[test]
fn a_backend_that_rests_has_no_scan_under_way() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let reader = m.begin(&a);
    let old = reader.take_snapshot();
    let taken_at = m.next_xid();
    m.burn_xids(10).unwrap();
    assert_eq!(m.oldest_scan(base::Oid::INVALID), taken_at);
    {
        let _rest = a.rest();
        assert_eq!(m.oldest_scan(base::Oid::INVALID), m.next_xid());
        // Its rows stay all the same.
        assert_eq!(m.oldest_xmin(), old.xmin);
        // A writer's XID keeps others' xmin back, not where their scans began.
        let writer = m.begin(&b);
        let xid = writer.xid().unwrap();
        assert_eq!(
            m.oldest_scan(base::Oid::INVALID),
            xid,
            "what it does without a snapshot counts"
        );
        m.burn_xids(10).unwrap();
        let _rests_too = b.rest();
        let other = m.begin(&c);
        let late = other.take_snapshot();
        assert_eq!((late.xmin, m.oldest_scan(base::Oid::INVALID)), (xid, m.next_xid()));
        m.burn_xids(10).unwrap();
        assert_eq!(m.oldest_scan(base::Oid::INVALID), late.xmax);
    }
    assert_eq!(m.oldest_scan(base::Oid::INVALID), taken_at);
    let again = old.with_command(base::CommandId(1));
    drop(old);
    assert_eq!(m.oldest_scan(base::Oid::INVALID), taken_at);
    drop(again);
    assert_eq!(m.oldest_scan(base::Oid::INVALID), m.next_xid());
}

/// A REPEATABLE READ transaction.
fn repeatable(
    m: &std::sync::Arc<txn::TransactionManager>,
    b: &std::sync::Arc<txn::Backend>,
) -> txn::Transaction {
    let t = m.begin(b);
    t.set_isolation(IsolationLevel::RepeatableRead);
    t
}

#[test]
fn an_imported_snapshot_sees_the_same_and_holds_the_same() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let writer = m.begin(&c);
    let x = writer.xid().unwrap();
    let exporter = repeatable(&m, &a);
    let name = exporter.export_snapshot().unwrap();
    let other = exporter.export_snapshot().unwrap();
    assert_ne!(name, other);
    let csn = writer.commit(CommitExtras::default()).unwrap().csn.unwrap();
    let own = exporter.xid().unwrap();
    let importer = repeatable(&m, &b);
    importer.import_snapshot(&name).unwrap();
    assert!(importer.has_snapshot());
    exporter.commit(CommitExtras::default()).unwrap();
    let s = importer.take_snapshot();
    assert!(!s.sees(x).unwrap() && !s.sees(own).unwrap());
    assert!(m.oldest_xmin() <= x);
    assert!(m.any_snapshot_between(Csn(csn.0 - 1), csn));
    assert_eq!(m.holders_of_older_snapshots(&c, s.xmin).len(), 1);
    // What it does itself it sees.
    let mine = importer.xid().unwrap();
    assert!(s.is_mine(mine));
    let late = repeatable(&m, &a);
    for (name, says) in [
        (name.as_str(), "does not exist"),
        ("00000003-0000001B-1", "does not exist"),
        ("", "does not exist"),
        ("../x", "invalid snapshot identifier"),
        ("0000000a-1", "invalid snapshot identifier"),
    ] {
        let error = late.import_snapshot(name).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
    drop(s);
    importer.commit(CommitExtras::default()).unwrap();
    assert_eq!(m.oldest_xmin(), m.next_xid());
}

#[test]
fn what_is_exported_ends_with_its_transaction() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let exporter = m.begin(&a);
    exporter.begin_sub();
    let error = exporter.export_snapshot().unwrap_err().to_string();
    assert_eq!(error, "cannot export a snapshot from a subtransaction");
    exporter.commit_sub().unwrap();
    // READ COMMITTED: the snapshot lives as long as the transaction.
    let name = exporter.export_snapshot().unwrap();
    assert!(a.xmin().is_some());
    exporter.abort().unwrap();
    assert!(a.xmin().is_none());
    assert!(repeatable(&m, &b).import_snapshot(&name).is_err());
}

/// One who cleans looks at who imports before that, and at who exported after his end.
fn passed_on_past(
    stop_at: &'static str,
    clean: impl Fn(&txn::TransactionManager) -> bool + Send + Sync,
) {
    let m = manager();
    // Backends are looked at in the order in which they came.
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let writer = m.begin(&c);
    writer.xid().unwrap();
    let exporter = repeatable(&m, &b);
    let name = exporter.export_snapshot().unwrap();
    writer.commit(CommitExtras::default()).unwrap();
    std::thread::scope(|scope| {
        let stopped = stop::arm(stop_at);
        let subject = stopped.subject();
        let (m, clean) = (&m, &clean);
        let cleaner = scope.spawn(move || subject.run(|| clean(m)));
        stopped.wait_reached();
        let importer = repeatable(m, &a);
        importer.import_snapshot(&name).unwrap();
        exporter.commit(CommitExtras::default()).unwrap();
        stopped.release();
        assert!(cleaner.join().unwrap(), "the snapshot was there all the time");
    });
}

#[test]
fn a_snapshot_is_not_missed_while_it_is_passed_on() {
    passed_on_past("txn.horizon.bound_read", |m| m.oldest_xmin() < m.next_xid());
    passed_on_past("txn.live_snapshots.holders_found", |m| !m.live_snapshots().csns.is_empty());
}
