//! Whom a checkpoint waits for.

use crate::support::{backend, manager};
use base::stop;
use std::sync::mpsc;
use txn::CommitExtras;

/// For the commit that was under way, and not for the session's next one.
#[test]
fn not_for_the_next_commit() {
    let m = manager();
    let b = backend(&m);
    let (first, second) =
        (stop::arm("txn.commit.before_mark"), stop::arm("txn.commit.before_mark"));
    let subjects = [first.subject(), second.subject()];
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|s| {
        let m = &m;
        s.spawn(move || {
            for subject in subjects {
                let t = m.begin(&b);
                t.xid().unwrap();
                subject.run(|| t.commit(CommitExtras::default())).unwrap();
            }
        });
        first.wait_reached();
        let waits = stop::arm("txn.checkpoint.waits");
        let waiter = waits.subject();
        s.spawn(move || done.send(waiter.run(|| m.checkpoint()).unwrap()).unwrap());
        waits.wait_reached();
        first.release();
        second.wait_reached();
        waits.release();
        let state = is_done.recv_timeout(stop::PATIENCE).unwrap();
        assert!(state.next_xid <= m.next_xid());
        second.release();
    });
}
