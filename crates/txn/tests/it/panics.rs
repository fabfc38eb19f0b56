//! A panic where there is no way back.

use crate::support::{backend, manager};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use txn::CommitExtras;

/// Tells this very program that it is the one to die.
const TO_DIE: &str = "EBB_TEST_PANICS_IN_COMMIT";

/// Its record is in the log: it can't be rolled back any more, as what is dropped by a panic would be.
#[test]
fn in_a_commit_it_ends_the_process() {
    if std::env::var_os(TO_DIE).is_some() {
        let m = manager();
        let b = backend(&m);
        let t = m.begin(&b);
        t.xid().unwrap();
        let commit = || t.commit_with(CommitExtras::default(), || panic!("amid the commit"));
        let _ = catch_unwind(AssertUnwindSafe(commit));
        return;
    }
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["panics::in_a_commit_it_ends_the_process", "--exact", "--nocapture"])
        .env(TO_DIE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.signal(), Some(6), "{told}");
    assert!(told.contains("PANIC:  panic while a transaction was committing"), "{told}");
}
