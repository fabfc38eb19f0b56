//! A pool to test with.

use base::sync::Arc;
use base::{BlockNumber, Error, Fork, Lsn, Oid, RelationId, Result};
use buffer::{BufferPool, Persistence, PinnedPage, PoolConfig, RelationHandle, Strategy, WalFlush};
use disk::sim::SimDisk;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use base::Fork::Main;

/// A WAL that is durable up to where it was last asked to be.
#[derive(Default, Debug)]
pub struct FakeWal {
    pub flushed: AtomicU64,
    pub flushes: AtomicU64,
    pub failing: AtomicBool,
    /// While held, flushes wait.
    pub gate: std::sync::Mutex<()>,
    /// Threads that came to the gate.
    pub arrived: AtomicU64,
}

impl WalFlush for FakeWal {
    fn flush(&self, lsn: Lsn) -> Result<()> {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.lock());
        if self.failing.load(Ordering::SeqCst) {
            return Err(Error::io("could not write WAL", std::io::Error::from_raw_os_error(5)));
        }
        if self.flushed.fetch_max(lsn.0, Ordering::SeqCst) < lsn.0 {
            self.flushes.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::SeqCst))
    }
}

pub struct Bed {
    pub disk: Arc<SimDisk>,
    pub wal: Arc<FakeWal>,
    pub pool: Arc<BufferPool>,
}

pub fn config(frames: usize) -> PoolConfig {
    PoolConfig { staging_frames: 32, write_behind_thread: false, ..PoolConfig::new(frames) }
}

pub fn bed(frames: usize) -> Bed {
    bed_with(config(frames))
}

pub fn bed_with(config: PoolConfig) -> Bed {
    let disk = SimDisk::new(1);
    let wal = Arc::new(FakeWal::default());
    let checked = Arc::new(crate::checked::CheckedDisk { inner: disk.clone(), wal: wal.clone() });
    let pool = BufferPool::new(config, checked, wal.clone()).unwrap();
    Bed { disk, wal, pool }
}

pub fn rel(n: u32) -> RelationId {
    RelationId { database: Oid(5), file_number: n }
}

impl Bed {
    pub fn create(&self, n: u32) -> RelationHandle {
        self.pool.create(rel(n), Persistence::Permanent).unwrap()
    }
    /// A pool that has nothing cached, over the same files.
    pub fn reopened(&self, frames: usize) -> Bed {
        let pool = BufferPool::new(config(frames), self.disk.clone(), self.wal.clone()).unwrap();
        Bed { disk: self.disk.clone(), wal: self.wal.clone(), pool }
    }
    pub fn checkpoint(&self) -> buffer::CheckpointProgress {
        let done = self.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
        self.pool.sync_all_pending().unwrap();
        done
    }
}

/// Fills a page with a value that can be recognised.
pub fn fill(page: &PinnedPage, value: u64, lsn: u64) {
    let mut guard = page.write();
    guard.mark_dirty();
    if guard.is_new() {
        guard.init(0);
    }
    for chunk in guard.bytes_mut()[32..].chunks_exact_mut(8) {
        chunk.copy_from_slice(&value.to_le_bytes());
    }
    guard.set_lsn(Lsn(lsn));
}

/// The value that the page was filled with: the same all over, or the test fails.
pub fn value(page: &PinnedPage) -> u64 {
    let guard = page.read();
    let mut chunks = guard.bytes()[32..].chunks_exact(8);
    let first = chunks.next().unwrap();
    assert!(chunks.all(|c| c == first), "torn page {}", page.tag());
    u64::from_le_bytes(first.try_into().unwrap())
}

pub fn pin(rel: &RelationHandle, block: u32) -> PinnedPage {
    rel.pin(Main, BlockNumber(block), &mut Strategy::Normal).unwrap()
}

/// A relation of `blocks` pages, block *n* filled with *n*.
pub fn filled(bed: &Bed, n: u32, blocks: u32) -> RelationHandle {
    let rel = bed.create(n);
    for block in 0..blocks {
        let page = rel.extend_one(Main, &mut Strategy::Normal).unwrap();
        assert_eq!(page.block(), BlockNumber(block));
        fill(&page, u64::from(block), u64::from(block) + 1);
    }
    rel
}

/// What the file holds at a block.
pub fn on_disk(bed: &Bed, rel: &RelationHandle, fork: Fork, block: u32) -> Box<page::Page> {
    use disk::Disk;
    let file =
        bed.disk.open(&format!("{}{}", rel.id(), fork.suffix()), disk::OpenMode::Existing).unwrap();
    let mut page = page::Page::new_zeroed();
    assert_eq!(file.read_at(page.bytes_mut(), u64::from(block) * 8192).unwrap(), 8192);
    page
}
