//! A failed write or sync is final.

use base::{SqlState, Xid};
use disk::sim::{Fault, Operation, SimDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wal::{FIRST_LSN, Reader, RecordBuilder, ResourceManager, Wal, WalConfig};

fn insert(wal: &Wal, len: usize) -> base::Lsn {
    let mut r = RecordBuilder::new(ResourceManager::Heap, 0, Xid(3));
    r.data(&vec![1; len]);
    wal.insert(&r)
}

fn start() -> (Arc<SimDisk>, Arc<Wal>, Arc<AtomicUsize>) {
    let disk = SimDisk::new(1);
    let config = WalConfig { buffer_bytes: 64 << 10, ..WalConfig::default() };
    let wal = Wal::create(disk.clone(), config, FIRST_LSN).unwrap();
    let hooked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hooked);
    wal.set_fatal_hook(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    (disk, wal, hooked)
}

#[test]
fn a_failed_sync_is_never_retried() {
    let (disk, wal, hooked) = start();
    let one = insert(&wal, 100);
    wal.flush(one).unwrap();
    disk.fail_sync(0);
    let two = insert(&wal, 100);
    assert_eq!(wal.flush(two).unwrap_err().state(), SqlState::IO_ERROR);
    let writes = disk.counts();
    assert!(wal.flush(two).is_err());
    assert!(wal.flush(insert(&wal, 10)).is_err());
    // Full buffers don't block anybody.
    insert(&wal, 300_000);
    wal.note_asynchronous(wal.insert_lsn());
    assert!(wal.writer_round().is_err());
    assert_eq!(disk.counts(), writes);
    wal.flush(one).unwrap();
    assert_eq!(wal.flushed_lsn(), one);
    assert_eq!(hooked.load(Ordering::SeqCst), 1);
}

#[test]
fn a_full_disk_is_final_too() {
    let (disk, wal, hooked) = start();
    wal.flush(insert(&wal, 15 << 20)).unwrap();
    disk.set_free_space(1 << 20);
    // Preparing ahead meets it first, and that is no failure.
    wal.writer_round().unwrap();
    assert_eq!(hooked.load(Ordering::SeqCst), 0);
    wal.flush(insert(&wal, 1000)).unwrap();
    let end = insert(&wal, 2 << 20);
    assert_eq!(wal.flush(end).unwrap_err().state(), SqlState::DISK_FULL);
    disk.heal();
    assert!(wal.flush(end).is_err());
    assert_eq!(hooked.load(Ordering::SeqCst), 1);
}

/// The next segment was made ahead, but its folder could not be synced: that is done before it is used.
#[test]
fn a_segments_name_is_durable_before_anything_in_it() {
    let (disk, wal, hooked) = start();
    wal.flush(insert(&wal, 15 << 20)).unwrap();
    disk.inject(Fault {
        operation: Operation::Sync,
        path_contains: "wal".to_owned(),
        // That of the file itself comes first.
        after: 1,
        error: 5,
        once: true,
    });
    let syncs = disk.counts().dir_syncs;
    wal.writer_round().unwrap();
    assert_eq!((disk.counts().dir_syncs, hooked.load(Ordering::SeqCst)), (syncs + 1, 0));
    let ends = [insert(&wal, 2 << 20), insert(&wal, 100)];
    wal.flush(ends[1]).unwrap();
    for seed in 0..10 {
        let mut reader = Reader::new(disk.after_crash(seed), "wal", FIRST_LSN, 1);
        reader.next().unwrap().unwrap();
        let read = ends.map(|_| reader.next().unwrap().map(|r| r.end_lsn));
        assert_eq!(read, ends.map(Some), "seed {seed}");
    }
}

#[test]
fn asynchronous_commits_become_durable() {
    let (disk, wal, _) = start();
    let end = insert(&wal, 100);
    assert!(!wal.writer_round().unwrap());
    wal.note_asynchronous(end);
    // One that was answered before: it takes nothing back.
    wal.note_asynchronous(base::Lsn(end.0 - 40));
    // What is a hint's ground until then.
    assert_eq!(wal.asynchronous_lsn(), end);
    assert!(wal.writer_round().unwrap());
    assert_eq!(wal.flushed_lsn(), end);
    assert_eq!(wal.asynchronous_lsn(), base::Lsn::INVALID);
    // Without a commit, only much waiting is written.
    insert(&wal, 2 << 20);
    assert!(wal.writer_round().unwrap());
    assert_eq!(wal.flushed_lsn(), wal.insert_lsn());
    assert!(wal.flush(base::Lsn(wal.insert_lsn().0 + 8)).is_err());
    disk.crash();
    let mut reader = Reader::new(disk.after_crash(0), "wal", FIRST_LSN, 1);
    assert_eq!(reader.next().unwrap().unwrap().end_lsn, end);
    assert!(reader.next().unwrap().is_some());
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn a_checkpoint_between_decision_and_insertion() {
    use base::{BlockNumber, Fork, Oid, PageTag, RelationId};
    let (disk, wal, _) = start();
    let relation = RelationId { database: Oid(1), file_number: 2 };
    let pages = 4u32;
    let stop = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..pages)
        .map(|n| {
            let (wal, stop) = (Arc::clone(&wal), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut page = page::Page::new_zeroed();
                page.init(0);
                let tag = PageTag { relation, fork: Fork::Main, block: BlockNumber(n) };
                while stop.load(Ordering::Relaxed) == 0 {
                    let mut r = RecordBuilder::new(ResourceManager::Heap, 0, Xid(3));
                    r.block(0, tag, &page, wal::BlockFlags::STANDARD).block_data(0, b"change");
                    let end = wal.insert(&r);
                    drop(r);
                    page.set_lsn(end);
                }
            })
        })
        .collect();
    let mut redos = vec![FIRST_LSN.0];
    for i in 0..2000u64 {
        redos.push(wal.begin_checkpoint().0);
        if i % 20 == 0 {
            std::thread::yield_now();
        }
    }
    stop.store(1, Ordering::Relaxed);
    workers.into_iter().for_each(|w| w.join().unwrap());
    wal.flush(wal.insert_lsn()).unwrap();
    let mut reader = Reader::new(disk, "wal", FIRST_LSN, 1);
    let mut next = 0;
    let mut seen = [true; 4];
    while let Some(r) = reader.next().unwrap() {
        while next < redos.len() && redos[next] <= r.lsn.0 {
            seen = [false; 4];
            next += 1;
        }
        let block = &r.blocks[0];
        let n = block.tag.block.0 as usize;
        assert!(seen[n] || block.image.is_some(), "first change of page {n} at {} bare", r.lsn);
        assert!(block.image.is_none() || block.data.is_empty());
        seen[n] = true;
    }
}

/// The log grows, and is flushed, while the WAL writer looks at how far it is.
#[test]
fn a_round_is_overtaken() {
    let (_, wal, _) = start();
    wal.flush(insert(&wal, 100)).unwrap();
    let looked = base::stop::arm("wal.writer_round.looked");
    let subject = looked.subject();
    std::thread::scope(|scope| {
        let round = scope.spawn(|| subject.run(|| wal.writer_round()));
        looked.wait_reached();
        wal.flush(insert(&wal, 100)).unwrap();
        looked.release();
        assert!(!round.join().unwrap().unwrap());
    });
}
