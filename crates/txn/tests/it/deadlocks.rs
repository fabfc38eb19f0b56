use crate::support::{backend, manager, until_waiting};
use base::{Error, Oid, SqlState, stop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use txn::{CommitExtras, LockMode, LockOutcome, LockTag, Transaction, Wait};

fn table(n: u32) -> LockTag {
    LockTag::Relation { database: Oid(5), relation: Oid(n) }
}

fn ring(n: u32) {
    let m = manager();
    let barrier = Barrier::new(n as usize);
    let results: Vec<_> = std::thread::scope(|s| {
        let handles: Vec<_> = (0..n)
            .map(|i| {
                let (m, barrier) = (&m, &barrier);
                s.spawn(move || {
                    let b = backend(m);
                    b.activity.lock().database = Oid(5);
                    let t = m.begin(&b);
                    t.lock(table(i), LockMode::RowExclusive, Wait::Block).unwrap();
                    barrier.wait();
                    let got = t.lock(table((i + 1) % n), LockMode::Share, Wait::Block);
                    match got {
                        Ok(_) => t.commit(CommitExtras::default()).map(|_| b.pid),
                        Err(e) => Err(e),
                    }
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    });
    let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    // It is counted, for the victim's database.
    assert_eq!(m.locks().deadlocks_of(Oid(5)), failed.len() as u64);
    assert_eq!(m.locks().deadlocks_of(Oid(6)), 0);
    for e in failed {
        let Error::Sql(e) = e else { panic!("{e}") };
        assert_eq!(e.state, SqlState::DEADLOCK_DETECTED);
        assert_eq!(e.message, "deadlock detected");
        let detail = e.detail.as_ref().unwrap();
        assert_eq!(detail.lines().count(), n as usize, "{detail}");
        assert!(detail.contains("waits for ShareLock on relation"), "{detail}");
        assert!(detail.lines().all(|l| l.contains("; blocked by process ")), "{detail}");
    }
    assert!(m.locks().waits().is_empty());
}

#[test]
fn of_two() {
    ring(2);
}

#[test]
fn of_three_and_four() {
    ring(3);
    ring(4);
}

#[test]
fn of_transactions() {
    let m = manager();
    let barrier = Barrier::new(2);
    let xids = std::sync::Mutex::new([base::Xid::INVALID; 2]);
    let lost: usize = std::thread::scope(|s| {
        let run = |me: usize| {
            let (m, barrier, xids) = (&m, &barrier, &xids);
            s.spawn(move || {
                let b = backend(m);
                let t = m.begin(&b);
                t.begin_sub();
                xids.lock().unwrap()[me] = t.xid().unwrap();
                barrier.wait();
                let other = xids.lock().unwrap()[1 - me];
                match t.wait_for_xid(other, Wait::Block) {
                    Ok(_) => 0,
                    Err(e) => {
                        let e = e.to_sql_error();
                        assert_eq!(e.state, SqlState::DEADLOCK_DETECTED);
                        let first = format!(
                            "Process {} waits for ShareLock on transaction {other};",
                            b.pid
                        );
                        assert!(e.detail.unwrap().starts_with(&first));
                        1
                    }
                }
            })
        };
        let (a, b) = (run(0), run(1));
        a.join().unwrap() + b.join().unwrap()
    });
    assert_eq!(lost, 1);
}

/// Of a cycle's two members the second, `b`, finds it and is held right there, then `a` looks. A victim has given up its wait with
/// the verdict: whoever looks after it finds no cycle.
fn one_victim(waits: impl Fn(&Transaction, &Transaction) -> [Wanted; 2]) {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    b.activity.lock().database = Oid(5);
    // Its wait ends by itself right after it has looked, as that of one who found nothing.
    a.set_lock_timeout(Some(Duration::from_millis(21)));
    let (ta, tb) = (m.begin(&a), m.begin(&b));
    let [for_a, for_b] = waits(&ta, &tb);
    std::thread::scope(|scope| {
        // A transaction outlives the wait in it, and goes on to hold what the other one wants.
        let spawn = |t: Transaction, wanted: Wanted, subject: stop::Subject| {
            scope.spawn(move || (subject.run(|| wanted.wait_in(&t)), t))
        };
        let looks = stop::arm("txn.lock.before_deadlock_check");
        let one = spawn(ta, for_a, looks.subject());
        until_waiting(&m, &a);
        let found = stop::arm("txn.lock.deadlock_found");
        let two = spawn(tb, for_b, found.subject());
        found.wait_reached();
        looks.wait_reached();
        looks.release();
        let (outcome, _ta) = one.join().unwrap();
        let waiting = m.locks().waits();
        found.release();
        let (victims, _tb) = two.join().unwrap();
        assert_eq!(outcome.unwrap_err().state(), SqlState::LOCK_NOT_AVAILABLE);
        assert_eq!(victims.unwrap_err().state(), SqlState::DEADLOCK_DETECTED);
        assert!(waiting.is_empty(), "{waiting:?}");
    });
    assert_eq!(m.locks().deadlocks_of(Oid(5)), 1);
}

enum Wanted {
    Table(u32),
    End(base::Xid),
}

impl Wanted {
    fn wait_in(&self, t: &Transaction) -> base::Result<()> {
        match self {
            Wanted::Table(n) => {
                t.lock(table(*n), LockMode::AccessExclusive, Wait::Block).map(|_| ())
            }
            Wanted::End(xid) => t.wait_for_xid(*xid, Wait::Block).map(|_| ()),
        }
    }
}

#[test]
fn a_cycle_of_locks_has_one_victim() {
    one_victim(|a, b| {
        Wanted::Table(1).wait_in(a).unwrap();
        Wanted::Table(2).wait_in(b).unwrap();
        [Wanted::Table(2), Wanted::Table(1)]
    });
}

#[test]
fn a_cycle_of_transactions_has_one_victim() {
    one_victim(|a, b| {
        let (a, b) = (a.xid().unwrap(), b.xid().unwrap());
        [Wanted::End(b), Wanted::End(a)]
    });
}

#[test]
fn a_cycle_of_a_lock_and_a_transaction_has_one_victim() {
    one_victim(|a, b| {
        Wanted::Table(1).wait_in(a).unwrap();
        [Wanted::End(b.xid().unwrap()), Wanted::Table(1)]
    });
    one_victim(|a, b| {
        Wanted::Table(1).wait_in(b).unwrap();
        [Wanted::Table(1), Wanted::End(a.xid().unwrap())]
    });
}

/// A waits for B, and B merely queues behind A: changing the queue is enough.
#[test]
fn a_soft_cycle_is_undone() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let holder = m.begin(&c);
    holder.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    let b_tx_tag = table(2);
    std::thread::scope(|s| {
        let (ma, aa) = (m.clone(), a.clone());
        let started = std::sync::Arc::new(Barrier::new(2));
        let st = started.clone();
        // A: holds table 2, waits for table 1 exclusively (behind the holder).
        let one = s.spawn(move || {
            // The other one is to find the deadlock.
            aa.set_deadlock_timeout_ms(100_000);
            let t = ma.begin(&aa);
            t.lock(b_tx_tag, LockMode::AccessExclusive, Wait::Block).unwrap();
            st.wait();
            t.lock(table(1), LockMode::AccessExclusive, Wait::Block).unwrap();
            t.commit(CommitExtras::default()).unwrap();
        });
        started.wait();
        until_waiting(&m, &a);
        // The holder wants table 2, which A holds: hard both ways? No: A waits for the holder's table 1.
        let e = holder.lock(b_tx_tag, LockMode::AccessShare, Wait::Block);
        match e {
            Err(e) => {
                assert_eq!(e.state(), SqlState::DEADLOCK_DETECTED);
                drop(holder);
                one.join().unwrap();
            }
            Ok(_) => panic!("a hard cycle was not seen"),
        }
    });
    // Now the soft one: C holds share on 1; A queues for exclusive on 1; B holds 3 and queues for share on 1 behind A; A
    // needs nothing of B, but C waits for 3: C -> B (hard), B -> A (soft), A -> C (hard). B may go ahead of A.
    let holder = m.begin(&c);
    holder.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    std::thread::scope(|s| {
        let (ma, aa) = (m.clone(), a.clone());
        let one = s.spawn(move || {
            let t = ma.begin(&aa);
            t.lock(table(1), LockMode::AccessExclusive, Wait::Block).unwrap();
        });
        until_waiting(&m, &a);
        let (mb, bb) = (m.clone(), b.clone());
        let two = s.spawn(move || {
            bb.set_deadlock_timeout_ms(100_000);
            let t = mb.begin(&bb);
            t.lock(table(3), LockMode::AccessExclusive, Wait::Block).unwrap();
            t.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
            t.commit(CommitExtras::default()).unwrap();
        });
        until_waiting(&m, &b);
        holder.lock(table(3), LockMode::AccessShare, Wait::Block).unwrap();
        two.join().unwrap();
        holder.commit(CommitExtras::default()).unwrap();
        one.join().unwrap();
    });
}

/// Two cycles through one waiter, each undone by a change of another queue: who may go on in either is woken.
#[test]
fn two_soft_cycles_are_undone() {
    let m = manager();
    let patient = || {
        let b = backend(&m);
        b.set_deadlock_timeout_ms(100_000);
        b
    };
    let (finder, blockers, others) = (backend(&m), [patient(), patient()], [patient(), patient()]);
    let t = m.begin(&finder);
    t.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    t.lock(table(2), LockMode::AccessShare, Wait::Block).unwrap();
    std::thread::scope(|s| {
        for (i, backend) in (1..).zip(&others) {
            let m = &m;
            s.spawn(move || {
                let t = m.begin(backend);
                t.lock(table(i), LockMode::AccessExclusive, Wait::Block).unwrap();
            });
            until_waiting(m, backend);
        }
        // These hold what the finder wants, and merely queue behind those who wait for the finder.
        for (i, backend) in (1..).zip(&blockers) {
            let m = &m;
            s.spawn(move || {
                let t = m.begin(backend);
                t.lock(table(3), LockMode::AccessShare, Wait::Block).unwrap();
                t.lock(table(i), LockMode::AccessShare, Wait::Block).unwrap();
            });
            until_waiting(m, backend);
        }
        finder.set_lock_timeout(Some(stop::PATIENCE));
        t.lock(table(3), LockMode::AccessExclusive, Wait::Block).unwrap();
        drop(t);
    });
}

/// Either of two waiters could go ahead: the one further from the finder does (PostgreSQL's deadlock-soft).
#[test]
fn of_two_soft_edges_the_further_one_is_turned() {
    let m = manager();
    let patient = || {
        let b = backend(&m);
        b.set_deadlock_timeout_ms(100_000);
        b
    };
    let (finder, reader) = (backend(&m), patient());
    let writers = [patient(), patient()];
    let granted = &AtomicBool::new(false);
    let (mine, theirs) = (m.begin(&finder), m.begin(&reader));
    theirs.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    mine.lock(table(2), LockMode::AccessShare, Wait::Block).unwrap();
    std::thread::scope(|s| {
        for (i, backend) in (1..).zip(&writers) {
            let m = &m;
            s.spawn(move || {
                let t = m.begin(backend);
                t.lock(table(i), LockMode::AccessExclusive, Wait::Block).unwrap();
            });
            until_waiting(m, backend);
        }
        s.spawn(move || {
            theirs.lock(table(2), LockMode::AccessShare, Wait::Block).unwrap();
            granted.store(true, Ordering::SeqCst);
            theirs.commit(CommitExtras::default()).unwrap();
        });
        until_waiting(&m, &reader);
        // Granted only after the other reader has ended, and the writer that waited for him.
        mine.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
        assert!(granted.load(Ordering::SeqCst));
        mine.commit(CommitExtras::default()).unwrap();
    });
}

/// Two hold a lock and want a stronger one on the same: the second can only fail, and does not wait for that.
#[test]
fn who_faces_a_waiter_fails_at_once() {
    let m = manager();
    let patient = || {
        let b = backend(&m);
        b.set_deadlock_timeout_ms(100_000_000);
        b
    };
    for (held, wanted) in [
        (LockMode::Share, LockMode::AccessExclusive),
        (LockMode::AccessShare, LockMode::AccessExclusive),
        (LockMode::RowExclusive, LockMode::Share),
    ] {
        let (first, second) = (patient(), patient());
        let (one, two) = (m.begin(&first), m.begin(&second));
        one.lock(table(1), held, Wait::Block).unwrap();
        two.lock(table(1), held, Wait::Block).unwrap();
        std::thread::scope(|s| {
            let waits = s.spawn(move || {
                let got = one.lock(table(1), wanted, Wait::Block);
                drop(one);
                got
            });
            until_waiting(&m, &first);
            // It would go ahead of the other one, whom it keeps waiting; nobody who does not wait is a victim.
            let got = two.lock(table(1), wanted, Wait::NoWait).unwrap();
            assert_eq!(got, txn::LockOutcome::NotAvailable);
            second.set_lock_timeout(Some(stop::PATIENCE));
            let e = two.lock(table(1), wanted, Wait::Block).unwrap_err().to_sql_error();
            assert_eq!(e.state, SqlState::DEADLOCK_DETECTED, "{}", e.message);
            assert_eq!(e.detail.unwrap().lines().count(), 2);
            assert_eq!(m.locks().waits().len(), 1);
            drop(two);
            waits.join().unwrap().unwrap();
        });
    }
    // One in between who merely waits keeps nobody from waiting, and is passed.
    let (holder, first, second) = (patient(), patient(), patient());
    let (zero, one, two) = (m.begin(&holder), m.begin(&first), m.begin(&second));
    zero.lock(table(2), LockMode::RowShare, Wait::Block).unwrap();
    two.lock(table(2), LockMode::AccessShare, Wait::Block).unwrap();
    std::thread::scope(|s| {
        let waits = s.spawn(move || one.lock(table(2), LockMode::AccessExclusive, Wait::Block));
        until_waiting(&m, &first);
        let ahead = s.spawn(move || two.lock(table(2), LockMode::Exclusive, Wait::Block));
        until_waiting(&m, &second);
        assert_eq!(m.locks().waits().len(), 2);
        drop(zero);
        ahead.join().unwrap().unwrap();
        waits.join().unwrap().unwrap();
    });
}

/// One writes and then wants what a VACUUM holds, which for a moment wants what the writer holds: nobody is a victim.
#[test]
fn who_waits_for_a_moment_is_in_no_deadlock() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let writer = m.begin(&a);
    writer.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
    let vacuum = m.begin(&b);
    vacuum.lock(table(1), LockMode::ShareUpdateExclusive, Wait::Block).unwrap();
    std::thread::scope(|s| {
        let (m, b) = (&m, &b);
        let waits = s.spawn(move || {
            until_waiting(m, b);
            writer.lock(table(1), LockMode::ShareUpdateExclusive, Wait::Block).map(|_| ())
        });
        let moment = Wait::AtMost(Duration::from_millis(60));
        let ask = || {
            let got = vacuum.lock(table(1), LockMode::Exclusive, moment).unwrap();
            assert_eq!(got, LockOutcome::NotAvailable);
        };
        while !m.locks().waits().iter().any(|w| w.pid == a.pid) {
            ask();
        }
        // Now the other one is in the queue before it asks, and looks for a deadlock after 20 ms.
        ask();
        vacuum.commit(CommitExtras::default()).unwrap();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(m.locks().deadlocks_of(Oid(0)), 0);
}
