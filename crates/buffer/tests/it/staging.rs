use crate::common::*;
use base::{BlockNumber, stop};
use buffer::{IoContext, Strategy};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Dirties every page of a relation in order under a ring, as VACUUM does.
fn pass(rel: &buffer::RelationHandle, strategy: &mut Strategy, add: u64) {
    for block in 0..rel.len_blocks(Main).unwrap().0 {
        let page = rel.pin(Main, BlockNumber(block), strategy).unwrap();
        fill(&page, u64::from(block) + add, 10_000 + u64::from(block));
    }
}

#[test]
fn a_ring_neither_grows_nor_syncs_wal_page_by_page() {
    let mut config = config(512);
    config.staging_frames = 128;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 1000);
    bed.checkpoint();
    let bed = bed_with_files(&bed);
    let rel = bed.pool.open(rel.id(), Default::default());
    let (flushes, writes) = (bed.wal.flushes.load(Ordering::SeqCst), bed.disk.counts().writes);
    let mut ring = Strategy::vacuum(&bed.pool, 256);
    pass(&rel, &mut ring, 1);
    bed.checkpoint();
    let flushes = bed.wal.flushes.load(Ordering::SeqCst) - flushes;
    let writes = bed.disk.counts().writes - writes;
    assert!(flushes <= 1000 / 96 + 2, "{flushes} WAL flushes");
    assert!(writes <= 1000 / 16, "{writes} writes for 1000 pages");
    let (mut shared, mut staged) = (0, 0);
    bed.pool.for_each_buffer(|b| if b.staged { staged += 1 } else { shared += 1 });
    assert!(shared <= 32, "{shared} pages in shared buffers for a ring of 32");
    assert!(staged <= 128);
    for b in 0..1000 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 1);
    }
    let rows = bed.pool.io_stats();
    let vacuum: Vec<_> = rows.iter().filter(|r| r.context == IoContext::Vacuum).collect();
    assert_eq!(vacuum.iter().map(|r| r.counters.reads).sum::<u64>(), 1000);
    assert!(vacuum.iter().map(|r| r.counters.reuses).sum::<u64>() >= 900);
    assert!(vacuum.iter().map(|r| r.counters.write_bytes).sum::<u64>() >= 800 * 8192);
}

fn bed_with_files(bed: &Bed) -> Bed {
    let mut config = config(512);
    config.staging_frames = 128;
    let pool = buffer::BufferPool::new(config, bed.disk.clone(), bed.wal.clone()).unwrap();
    Bed { disk: bed.disk.clone(), wal: bed.wal.clone(), pool }
}

fn staged(bed: &Bed, block: u32) -> bool {
    let mut found = false;
    bed.pool.for_each_buffer(|b| found |= b.staged && b.tag.block.0 == block);
    found
}

/// A relation of 8 pages of which block 0 and 1 are staged.
fn with_staged(bed: &Bed) -> buffer::RelationHandle {
    let rel = filled(bed, 1, 8);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let mut ring = Strategy::vacuum(&bed.pool, 16);
    assert_eq!(ring.ring_pages(), Some(2));
    for block in 0..4 {
        let page = rel.pin(Main, BlockNumber(block), &mut ring).unwrap();
        fill(&page, 100 + u64::from(block), 10_000 + u64::from(block));
    }
    assert!(staged(bed, 0) && staged(bed, 1) && !staged(bed, 2));
    rel
}

#[test]
fn a_staged_page_is_read_where_it_is_and_written_in_the_pool() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    assert_eq!(value(&pin(&rel, 0)), 100);
    assert!(staged(&bed, 0));
    fill(&pin(&rel, 0), 200, 20_000);
    assert!(!staged(&bed, 0) && staged(&bed, 1));
    assert_eq!(bed.pool.staging_status().owed, 1);
    bed.pool.write_behind_round().unwrap();
    assert_eq!(bed.pool.staging_status().staged, 0);
    assert!(!on_disk(&bed, &rel, Main, 1).is_new());
    assert_eq!(on_disk(&bed, &rel, Main, 1).bytes()[32], 101);
    assert_eq!(on_disk(&bed, &rel, Main, 0).bytes()[32], 0, "block 0 is the pool's to write");
    assert_eq!(value(&pin(&rel, 0)), 200);
    // The debt is paid with the next frame.
    drop(pin(&rel, 6));
    assert_eq!(bed.pool.staging_status().owed, 0);
}

#[test]
fn a_checkpoint_includes_staging() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    bed.checkpoint();
    for b in 0..4u8 {
        assert_eq!(on_disk(&bed, &rel, Main, u32::from(b)).bytes()[32], 100 + b);
    }
    let writes = bed.disk.counts().writes;
    bed.pool.write_behind_round().unwrap();
    assert_eq!(bed.disk.counts().writes, writes, "what the checkpoint wrote is not written again");
    assert_eq!(bed.pool.staging_status().staged, 0);
}

#[test]
fn forgetting_cancels_staged_pages() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    bed.pool.unlink(rel.id()).unwrap();
    assert_eq!(bed.pool.staging_status().staged, 0);
    assert_eq!(bed.pool.write_behind_round().unwrap(), 0);
    bed.checkpoint();
    assert_eq!(bed.pool.table_nodes(), 0);
    use disk::Disk;
    assert!(!bed.disk.exists("base/5/1").unwrap());
}

#[test]
fn forgetting_races_with_a_round() {
    let bed = base::sync::Arc::new(bed(16));
    let rel = with_staged(&bed);
    let after_flush = stop::arm("buffer.write_behind.after_flush");
    let round = {
        let (bed, subject) = (bed.clone(), after_flush.subject());
        std::thread::spawn(move || subject.run(|| bed.pool.write_behind_round().unwrap()))
    };
    after_flush.wait_reached();
    bed.pool.unlink(rel.id()).unwrap();
    let again = filled(&bed, 1, 2);
    after_flush.release();
    assert_eq!(round.join().unwrap(), 0);
    bed.checkpoint();
    assert_eq!(on_disk(&bed, &again, Main, 1).bytes()[32], 1);
}

#[test]
fn a_pinned_staged_page_does_not_clog_staging() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    let held = pin(&rel, 0);
    bed.pool.write_behind_round().unwrap();
    assert_eq!(bed.pool.staging_status().staged, 0);
    assert_eq!(bed.pool.staging_status().owed, 1);
    assert_eq!(value(&held), 100);
    assert!(!held.is_dirty());
}

#[test]
fn without_staging_a_ring_writes_itself() {
    let mut config = config(64);
    config.staging_frames = 0;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 200);
    pass(&rel, &mut Strategy::vacuum(&bed.pool, 64), 5);
    bed.checkpoint();
    for b in 0..200 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 5);
    }
}

#[test]
fn a_failed_write_keeps_the_staged_page() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    bed.wal.failing.store(true, Ordering::SeqCst);
    assert!(bed.pool.write_behind_round().is_err());
    assert_eq!(bed.pool.staging_status().staged, 2);
    bed.wal.failing.store(false, Ordering::SeqCst);
    bed.disk.fail_write(0);
    assert!(bed.pool.write_behind_round().is_err());
    assert_eq!(bed.pool.staging_status().staged, 2);
    bed.disk.heal();
    bed.pool.write_behind_round().unwrap();
    assert_eq!(on_disk(&bed, &rel, Main, 1).bytes()[32], 101);
}

#[test]
fn an_operation_that_comes_back_to_its_pages_stays_in_its_ring() {
    let mut config = config(512);
    config.staging_frames = 256;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 200);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    pass(&rel, &mut ring, 1);
    assert!(bed.pool.staging_status().staged > 100);
    pass(&rel, &mut ring, 2);
    let mut shared = 0;
    bed.pool.for_each_buffer(|b| shared += usize::from(!b.staged));
    assert!(shared <= 16, "{shared} pages in shared buffers for a ring of 16");
    assert_eq!(bed.pool.staging_status().owed, 0);
    bed.checkpoint();
    for b in 0..200 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 2);
    }
}

#[test]
fn an_operation_that_came_round_its_ring_leaves_nothing_in_shared_buffers() {
    let mut config = config(512);
    config.staging_frames = 256;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 200);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let shared = || {
        let mut shared = 0;
        bed.pool.for_each_buffer(|b| shared += usize::from(!b.staged));
        shared
    };
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    pass(&rel, &mut ring, 1);
    assert!((1..=16).contains(&shared()));
    // Somebody else wants one of them: it stays.
    let kept = pin(&rel, 199);
    ring.finish(&bed.pool);
    assert_eq!(shared(), 1);
    assert_eq!(value(&kept), 200);
    drop(kept);
    // Few pages, all in the ring: they stay cached.
    let small = filled(&bed, 2, 10);
    bed.checkpoint();
    let id = small.id();
    small.forget();
    let small = bed.pool.open(id, Default::default());
    let before = shared();
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    pass(&small, &mut ring, 1);
    ring.finish(&bed.pool);
    assert_eq!(shared(), before + 10);
    bed.checkpoint();
    for b in 0..200 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 1);
    }
}

/// As VACUUM has while it removes the index entries of a batch of pages.
#[test]
fn pages_that_an_operation_has_pinned_keep_their_places_in_its_ring() {
    let mut config = config(512);
    config.staging_frames = 256;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 300);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    let mut held = Vec::new();
    for block in 0..300 {
        let page = rel.pin(Main, BlockNumber(block), &mut ring).unwrap();
        fill(&page, u64::from(block) + 1, 10_000 + u64::from(block));
        match block % 50 {
            0..8 => held.push(page),
            49 => held.clear(),
            _ => {}
        }
    }
    let mut shared = 0;
    bed.pool.for_each_buffer(|b| shared += usize::from(!b.staged));
    assert!(shared <= 16, "{shared} pages in shared buffers for a ring of 16");
    bed.checkpoint();
    for b in 0..300 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 1);
    }
}

#[test]
fn a_few_staged_pages_do_not_wait_for_more() {
    let mut config = config(512);
    config.staging_frames = 256;
    config.write_behind_thread = true;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 40);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    pass(&rel, &mut ring, 1);
    ring.finish(&bed.pool);
    let begun = std::time::Instant::now();
    while bed.pool.staging_status().staged > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", bed.pool.staging_status());
        std::thread::yield_now();
    }
    assert!(bed.wal.flushed.load(Ordering::SeqCst) >= 10_039);
    assert_eq!(rel.cached_pages(), 0);
    for b in 0..40 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b) + 1);
    }
}

#[test]
fn what_bulk_work_writes_is_given_to_the_disk_little_by_little() {
    let mut config = config(4096);
    config.staging_frames = 4096;
    config.combine_pages = 128;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 1000);
    bed.checkpoint();
    assert_eq!(bed.pool.writeback_pending(), 0, "the pool's own pages are the checkpoint's");
    rel.forget();
    let rel = bed.pool.open(rel.id(), Default::default());
    let mut ring = Strategy::vacuum(&bed.pool, 128);
    pass(&rel, &mut ring, 1);
    let before = bed.disk.counts();
    let written = bed.pool.write_behind_round().unwrap();
    assert_eq!(bed.pool.writeback_pending(), written);
    assert_eq!(bed.disk.counts().writebacks, before.writebacks, "not at once");
    let first = bed.pool.writeback_round();
    assert!(first >= 128 && first < written / 4, "{first} of {written}");
    let mut asked = first;
    while bed.pool.writeback_pending() > 0 {
        asked += bed.pool.writeback_round();
    }
    assert_eq!(asked, written);
    let after = bed.disk.counts();
    assert_eq!(after.writeback_bytes - before.writeback_bytes, written as u64 * 8192);
    assert_eq!(bed.pool.writeback_round(), 0);
    let told = |r: &&buffer::IoStatsRow| r.context == IoContext::Vacuum;
    let told: u64 = bed.pool.io_stats().iter().filter(told).map(|r| r.counters.writebacks).sum();
    assert_eq!(told, after.writebacks - before.writebacks);
}

#[test]
fn a_dropped_relation_is_not_given_to_the_disk() {
    let bed = bed(16);
    let rel = with_staged(&bed);
    bed.pool.write_behind_round().unwrap();
    assert!(bed.pool.writeback_pending() > 0);
    bed.pool.unlink(rel.id()).unwrap();
    let before = bed.disk.counts().writebacks;
    while bed.pool.writeback_pending() > 0 {
        bed.pool.writeback_round();
    }
    assert_eq!(bed.disk.counts().writebacks, before);
}

/// A ring that comes round to a page that others have come to want leaves it to them, dirty or clean.
#[test]
fn a_ring_leaves_what_others_want() {
    for dirty in [false, true] {
        let bed = bed(64);
        let rel = filled(&bed, 1, 12);
        bed.checkpoint();
        rel.forget();
        let rel = bed.pool.open(rel.id(), Default::default());
        let mut ring = Strategy::vacuum(&bed.pool, 16);
        let page = rel.pin(Main, BlockNumber(0), &mut ring).unwrap();
        if dirty {
            fill(&page, 100, 100);
        }
        drop(page);
        drop([pin(&rel, 0), pin(&rel, 0)]);
        for block in 1..12 {
            drop(rel.pin(Main, BlockNumber(block), &mut ring).unwrap());
        }
        assert!(rel.is_cached(Main, BlockNumber(0)) && !rel.is_cached(Main, BlockNumber(1)));
        assert!(!staged(&bed, 0), "dirty {dirty}");
    }
}
