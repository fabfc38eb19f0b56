//! Many threads against the rules of snapshot isolation, at the level of XIDs.
//!
//! Each writer keeps a register: an array of (register, XID) writes. The model: a snapshot's answer about a transaction's XIDs is all or
//! nothing; it never changes; what a session has seen or done it sees ever after; and the order of commits is one order for all.

use crate::support::{backend, manager};
use base::Xid;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::{CommitExtras, XidStatus};

#[test]
fn snapshots_are_cuts_of_one_order() {
    let m = manager();
    // Families of XIDs (a transaction with its subtransactions), in progress or ended.
    let families: Mutex<Vec<Vec<Xid>>> = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    // All snapshots' views of the same families: for each two snapshots one contains the other.
    std::thread::scope(|s| {
        for seed in 0..3 {
            let (m, families, stop) = (&m, &families, &stop);
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let b = backend(m);
                for _ in 0..400 {
                    let t = m.begin(&b);
                    let mut family = vec![t.xid().unwrap()];
                    for _ in 0..rng.random_range(0..5) {
                        t.begin_sub();
                        let x = t.xid().unwrap();
                        if rng.random_range(0..3) == 0 {
                            t.rollback_sub().unwrap();
                            assert_eq!(m.status(x).unwrap(), XidStatus::Aborted);
                        } else {
                            t.commit_sub().unwrap();
                            family.push(x);
                        }
                    }
                    families.lock().unwrap().push(family.clone());
                    if rng.random_range(0..4) == 0 {
                        t.abort().unwrap();
                    } else {
                        let sync = rng.random_range(0..2) == 0;
                        t.commit(CommitExtras { sync, ..CommitExtras::default() }).unwrap();
                        // Own commits are seen by the next snapshot.
                        let t = m.begin(&b);
                        let s = t.take_snapshot();
                        assert!(family.iter().all(|x| s.sees(*x).unwrap()));
                    }
                }
                stop.store(true, Ordering::SeqCst);
            });
        }
        for seed in 10..12 {
            let (m, families, stop) = (&m, &families, &stop);
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let b = backend(m);
                while !stop.load(Ordering::SeqCst) {
                    let t = m.begin(&b);
                    let s1 = t.take_snapshot();
                    let horizon = m.oldest_xmin();
                    assert!(horizon <= s1.xmin);
                    let s2 = t.take_latest_snapshot();
                    assert!(s1.csn <= s2.csn && s1.xmin <= s2.xmin);
                    let some: Vec<Vec<Xid>> = {
                        let all = families.lock().unwrap();
                        let from = all.len().saturating_sub(rng.random_range(1..40));
                        all[from..].to_vec()
                    };
                    for family in &some {
                        for s in [&s1, &s2, &s1] {
                            let first = s.sees(family[0]).unwrap();
                            assert!(family.iter().all(|x| s.sees(*x).unwrap() == first));
                            if first {
                                assert!(matches!(
                                    m.status(family[0]).unwrap(),
                                    XidStatus::Committed(_)
                                ));
                            }
                        }
                        // s1 is a part of s2.
                        assert!(!s1.sees(family[0]).unwrap() || s2.sees(family[0]).unwrap());
                        // Below the horizon nothing is in progress.
                        assert!(family[0] >= horizon || !m.in_progress(family[0]).unwrap());
                    }
                }
            });
        }
    });
    assert_eq!(m.oldest_xmin(), m.next_xid());
}
