//! Cuts that were put off.

use crate::common::*;
use base::{BlockNumber, Fork, Lsn, SqlState};
use buffer::{Persistence, RelationHandle, Strategy, WalFlush};
use disk::sim::{Fault, Operation};
use disk::{Disk, OpenMode};
use std::sync::atomic::Ordering;

fn file_blocks(disk: &dyn Disk, rel: &RelationHandle) -> u64 {
    disk.open(&rel.id().to_string(), OpenMode::Existing).unwrap().len().unwrap() / 8192
}

/// Ten pages on the disk, the first `len` of them kept by a cut logged up to `lsn`.
fn cut_to(bed: &Bed, len: u32, lsn: u64) -> RelationHandle {
    let rel = filled(bed, 1, 10);
    bed.checkpoint();
    fill(&pin(&rel, 9), 90, 90);
    rel.truncate_later(Main, BlockNumber(len), Lsn(lsn)).unwrap();
    rel
}

#[test]
fn the_relation_is_shorter_at_once_and_the_file_later() {
    let bed = bed(64);
    let rel = cut_to(&bed, 4, 100);
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(4));
    assert_eq!(rel.cached_pages(), 4);
    assert!(rel.try_pin(Main, BlockNumber(4), &mut Strategy::Normal).unwrap().is_none());
    assert!(bed.wal.flushed_lsn() < Lsn(100), "nobody waits for the WAL");
    assert_eq!(file_blocks(&*bed.disk, &rel), 10);
    assert_eq!(bed.pool.pending_cuts(), 1);
    assert_eq!(bed.pool.pending_cut_list(), [(rel.id(), Main, BlockNumber(4))]);
    // Not at once: others may follow.
    assert_eq!(bed.pool.cut_round().unwrap(), 0);
    assert_eq!(bed.pool.cut_files().unwrap(), 1);
    assert!(bed.wal.flushed_lsn() >= Lsn(100), "the file is cut only when the record is durable");
    assert_eq!((file_blocks(&*bed.disk, &rel), bed.pool.pending_cuts()), (4, 0));
    assert_eq!(value(&pin(&rel, 3)), 3);
}

#[test]
fn a_checkpoint_cuts_and_the_cut_is_durable() {
    let bed = bed(64);
    let rel = cut_to(&bed, 4, 100);
    bed.checkpoint();
    assert_eq!((file_blocks(&*bed.disk, &rel), bed.pool.pending_cuts()), (4, 0));
    bed.disk.crash();
    for seed in 0..8 {
        assert_eq!(file_blocks(&*bed.disk.after_crash(seed), &rel), 4, "seed {seed}");
    }
}

/// The power goes at every operation: the file is as long as before, or cut, and cut only with the record durable.
#[test]
fn power_lost_at_any_operation() {
    for n in 0.. {
        let bed = bed(64);
        let rel = filled(&bed, 1, 10);
        bed.checkpoint();
        bed.disk.crash_at(n);
        let work = || -> base::Result<()> {
            rel.truncate_later(Main, BlockNumber(4), Lsn(100))?;
            fill(&rel.extend_one(Main, &mut Strategy::Normal)?, 40, 120);
            rel.truncate_later(Main, BlockNumber(2), Lsn(130))?;
            bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(()))?;
            bed.pool.sync_all_pending().map(|_| ())
        };
        let ended = work().is_ok();
        let flushed = bed.wal.flushed_lsn();
        for seed in 0..4 {
            let left = file_blocks(&*bed.disk.after_crash(seed), &rel);
            match left {
                10 => assert!(!ended),
                4 | 5 => assert!(flushed >= Lsn(100) && !ended, "{flushed}"),
                2 => assert!(flushed >= Lsn(130), "{flushed}"),
                other => panic!("crash at {n}, seed {seed}: {other} blocks"),
            }
        }
        if ended {
            assert!(n > 3, "{n}");
            break;
        }
    }
}

#[test]
fn growing_again_cuts_first() {
    for count in [1, 8] {
        let bed = bed(256);
        let rel = cut_to(&bed, 4, 100);
        let pages = rel.extend(Main, count, &mut Strategy::Normal).unwrap();
        assert!(bed.wal.flushed_lsn() >= Lsn(100));
        assert_eq!(pages[0].block(), BlockNumber(4));
        assert!(pages.iter().all(|p| p.read().is_all_zero()));
        drop(pages);
        assert_eq!(bed.pool.pending_cuts(), 0);
        assert_eq!(file_blocks(&*bed.disk, &rel), 4 + count as u64);
        // Nor do old bytes show in a pool that has to read them.
        let again = bed.reopened(64);
        let rel = again.pool.open(rel.id(), Persistence::Permanent);
        assert!(pin(&rel, 4).read().is_all_zero());
    }
}

#[test]
fn growing_fails_if_the_record_can_not_be_made_durable() {
    let bed = bed(64);
    let rel = cut_to(&bed, 4, 100);
    bed.wal.failing.store(true, Ordering::SeqCst);
    assert!(rel.extend_one(Main, &mut Strategy::Normal).is_err());
    assert_eq!((file_blocks(&*bed.disk, &rel), bed.pool.pending_cuts()), (10, 1));
    bed.wal.failing.store(false, Ordering::SeqCst);
    assert_eq!(rel.extend_one(Main, &mut Strategy::Normal).unwrap().block(), BlockNumber(4));
}

#[test]
fn twice_and_then_at_once() {
    let bed = bed(64);
    let rel = cut_to(&bed, 6, 100);
    rel.truncate_later(Main, BlockNumber(5), Lsn(110)).unwrap();
    assert_eq!(bed.pool.pending_cuts(), 1);
    rel.truncate_later(Main, BlockNumber(7), Lsn(120)).unwrap();
    assert_eq!(bed.pool.pending_cut_list(), [(rel.id(), Main, BlockNumber(5))]);
    bed.wal.flushed.store(200, Ordering::SeqCst);
    rel.truncate(Main, BlockNumber(3)).unwrap();
    assert_eq!((file_blocks(&*bed.disk, &rel), bed.pool.pending_cuts()), (3, 0));
}

#[test]
fn a_dropped_relation_is_not_cut() {
    let bed = bed(64);
    let rel = cut_to(&bed, 4, 100);
    bed.pool.unlink(rel.id()).unwrap();
    assert_eq!(bed.pool.pending_cuts(), 0);
    assert_eq!(bed.pool.cut_files().unwrap(), 0);
    // Another one of that name is its own.
    let rel = filled(&bed, 1, 7);
    bed.checkpoint();
    assert_eq!(file_blocks(&*bed.disk, &rel), 7);
}

/// The registry forgets relations that nobody uses, but not one whose file is longer than it.
#[test]
fn the_length_is_not_forgotten() {
    let bed = bed(64);
    let id = cut_to(&bed, 0, 100).id();
    for n in 2..20_000 {
        drop(bed.pool.open(rel(n), Persistence::Permanent));
    }
    let rel = bed.pool.open(id, Persistence::Permanent);
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(0));
    bed.checkpoint();
    drop(rel);
    for n in 20_000..60_000 {
        drop(bed.pool.open(crate::common::rel(n), Persistence::Permanent));
    }
    let rel = bed.pool.open(id, Persistence::Permanent);
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(0));
}

#[test]
fn a_full_disk_gets_its_room_back() {
    let bed = bed(64);
    let rel = cut_to(&bed, 2, 100);
    let other = bed.create(2);
    bed.disk.set_free_space(2 * 8192);
    let pages = other.extend(Main, 6, &mut Strategy::Normal).unwrap();
    assert_eq!(pages.len(), 6);
    assert_eq!(file_blocks(&*bed.disk, &rel), 2);
    drop(pages);
    let e = other.extend(Main, 8, &mut Strategy::Normal).unwrap_err();
    assert_eq!(e.state(), SqlState::DISK_FULL);
    assert!(bed.pool.failure().is_none());
}

#[test]
fn a_cut_that_fails_stops_everything() {
    let bed = bed(64);
    let rel = cut_to(&bed, 4, 100);
    bed.disk.inject(Fault {
        operation: Operation::Write,
        path_contains: rel.id().to_string(),
        after: 0,
        error: libc::EIO,
        once: true,
    });
    assert!(bed.pool.cut_files().is_err());
    bed.disk.heal();
    assert!(bed.pool.failure().unwrap().contains("could not truncate file"));
    assert!(rel.extend_one(Main, &mut Strategy::Normal).is_err());
    assert!(bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).is_err());
}

/// Sessions grow a relation while others cut it and a third makes the cuts: blocks are zero when they are new.
#[test]
fn growing_and_cutting_at_once() {
    let bed = bed(512);
    let rel = filled(&bed, 1, 10);
    bed.checkpoint();
    let (bed, rel) = (&bed, &rel);
    std::thread::scope(|s| {
        s.spawn(move || {
            for n in 0..300u64 {
                let page = rel.extend_one(Main, &mut Strategy::Normal).unwrap();
                assert!(page.read().is_all_zero());
                fill(&page, n, 1000 + n);
                drop(page);
                if n % 3 == 0 {
                    let len = rel.len_blocks(Main).unwrap().0;
                    rel.truncate_later(Main, BlockNumber(len / 2), Lsn(2000 + n)).unwrap();
                }
            }
        });
        s.spawn(move || {
            for _ in 0..300 {
                bed.pool.cut_files().unwrap();
            }
        });
        s.spawn(move || {
            for _ in 0..20 {
                bed.checkpoint();
            }
        });
    });
    bed.checkpoint();
    let len = u64::from(rel.len_blocks(Main).unwrap().0);
    assert_eq!(file_blocks(&*bed.disk, rel), len);
    assert_eq!(rel.len_blocks(Fork::VisibilityMap).unwrap(), BlockNumber(0));
}
