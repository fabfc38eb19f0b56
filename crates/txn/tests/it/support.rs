use base::{Lsn, Result, Xid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::{Backend, BackendKind, LogWriter, TransactionManager, TxnConfig};

/// A log that counts.
#[derive(Default)]
pub struct FakeLog {
    position: AtomicU64,
    flushed: AtomicU64,
}

impl LogWriter for FakeLog {
    fn insert(&self, _info: u8, _xid: Xid, data: &[u8]) -> Lsn {
        Lsn(self.position.fetch_add(data.len() as u64 + 1, Ordering::SeqCst)
            + data.len() as u64
            + 1)
    }
    fn flush(&self, lsn: Lsn) -> Result<()> {
        self.flushed.fetch_max(lsn.0, Ordering::SeqCst);
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::SeqCst))
    }
}

pub fn manager() -> Arc<TransactionManager> {
    manager_with(TxnConfig::default())
}

pub fn manager_with(config: TxnConfig) -> Arc<TransactionManager> {
    let disk = disk::sim::SimDisk::new(1);
    TransactionManager::open(disk, Arc::new(FakeLog::default()), config).unwrap()
}

pub fn backend(m: &Arc<TransactionManager>) -> Arc<Backend> {
    let b = m.register_backend(BackendKind::Client);
    b.set_deadlock_timeout_ms(20);
    b
}

/// Waits until the backend waits for something.
pub fn until_waiting(m: &TransactionManager, b: &Backend) {
    let begun = std::time::Instant::now();
    while !m.locks().waits().iter().any(|w| w.pid == b.pid) {
        assert!(begun.elapsed() < base::stop::PATIENCE, "it does not wait");
        std::thread::yield_now();
    }
}
