use crate::common::*;
use base::{BlockNumber, Error, Fork, Lsn, SqlState};
use buffer::{Persistence, ReadStream, Strategy, WalFlush};
use std::sync::atomic::Ordering;

#[test]
fn what_is_written_is_read_again_through_a_tiny_pool() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 100);
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(100));
    for block in 0..100 {
        assert_eq!(value(&pin(&rel, block)), u64::from(block));
    }
    assert!(rel.cached_pages() <= 16);
    assert!(rel.try_pin(Main, BlockNumber(100), &mut Strategy::Normal).unwrap().is_none());
    bed.checkpoint();
    let again = bed.reopened(16);
    let rel = again.pool.open(rel.id(), Default::default());
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(100));
    for block in (0..100).rev() {
        assert_eq!(value(&pin(&rel, block)), u64::from(block));
    }
}

#[test]
fn no_page_leaves_before_its_wal() {
    let bed = bed(16);
    let rel = bed.create(1);
    let page = rel.extend_one(Main, &mut Strategy::Normal).unwrap();
    fill(&page, 7, 1000);
    bed.wal.failing.store(true, Ordering::SeqCst);
    assert!(bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).is_err());
    assert!(on_disk(&bed, &rel, Main, 0).is_new());
    assert!(page.is_dirty(), "a page that could not be written stays dirty");
    bed.wal.failing.store(false, Ordering::SeqCst);
    bed.checkpoint();
    assert_eq!(bed.wal.flushed.load(Ordering::SeqCst), 1000);
    let written = on_disk(&bed, &rel, Main, 0);
    assert_eq!(written.lsn(), Lsn(1000));
    assert!(written.verify_checksum(0));
}

#[test]
fn all_pinned_is_an_error_and_not_a_wait() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 40);
    let held: Vec<_> = (0..16).map(|b| pin(&rel, b)).collect();
    let e = rel.pin(Main, BlockNumber(30), &mut Strategy::Normal).unwrap_err();
    assert_eq!(e.state(), SqlState::OUT_OF_MEMORY);
    assert_eq!(e.to_string(), "no unpinned buffers available");
    assert_eq!(value(&pin(&rel, 3)), 3);
    drop(held);
    assert_eq!(value(&pin(&rel, 30)), 30);
}

#[test]
fn a_wrong_checksum_is_reported_and_not_cached() {
    use disk::Disk;
    let bed = bed(16);
    let rel = filled(&bed, 1, 40);
    bed.checkpoint();
    let again = bed.reopened(64);
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    file.write_at(b"x", 8192 * 7 + 5000).unwrap();
    let rel = again.pool.open(rel.id(), Default::default());
    for _ in 0..2 {
        let e = rel.pin(Main, BlockNumber(7), &mut Strategy::Normal).unwrap_err();
        assert!(matches!(e, Error::Corruption(_)), "{e}");
        assert_eq!(e.to_string(), "invalid page in block 7 of relation \"base/5/1\"");
        assert_eq!(rel.cached_pages(), 0);
    }
    // A stream gives the others, and the error in its place.
    let blocks = (0..40).map(BlockNumber);
    let stream = ReadStream::new(&rel, Main, Strategy::Normal, blocks);
    let results: Vec<_> = stream.map(|r| r.map(|p| value(&p)).map_err(|_| ())).collect();
    let wanted: Vec<_> = (0..40).map(|b| if b == 7 { Err(()) } else { Ok(b) }).collect();
    assert_eq!(results, wanted);
    // Mended, it can be read.
    let mut mended = [0; 1];
    mended.copy_from_slice(&7u64.to_le_bytes()[..1]);
    file.write_at(&7u64.to_le_bytes(), 8192 * 7 + 5000).unwrap();
    assert_eq!(value(&pin(&rel, 7)), 7);
}

/// One that a later version has written, or this one amiss: its checksum is right, and nobody here knows what is on it.
#[test]
fn a_page_with_a_header_of_something_else_is_reported() {
    use disk::Disk;
    let bed = bed(16);
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    let mut whole = [0; 8192];
    file.read_at(&mut whole, 8192).unwrap();
    for (at, byte, fault) in [
        (25, 9, "unknown page layout version 9"),
        (27, 0x40, "bad page header: lower 16416, upper 8192, special 8192"),
        (26, 33, "line pointers end at 33, in the middle of one"),
        (29, 0, "not initialised, yet not all zeros"),
    ] {
        let mut page = page::Page::from_bytes(&whole);
        page.bytes_mut()[at] = byte;
        page.set_checksum(1);
        file.write_at(page.bytes(), 8192).unwrap();
        let again = bed.reopened(64);
        let rel = again.pool.open(rel.id(), Default::default());
        let e = rel.pin(Main, BlockNumber(1), &mut Strategy::Normal).unwrap_err();
        let wanted = format!("invalid page ({fault}) in block 1 of relation \"base/5/1\"");
        assert_eq!(e.to_string(), wanted);
        assert_eq!(value(&pin(&rel, 0)), 0);
    }
}

/// A write that went astray, or a page put back to where it was not from: each page is whole.
#[test]
fn a_page_in_the_place_of_another_is_reported() {
    use disk::Disk;
    let bed = bed(16);
    let rel = filled(&bed, 1, 40);
    bed.checkpoint();
    let again = bed.reopened(64);
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    let mut pages = [[0; 8192]; 2];
    for (page, block) in pages.iter_mut().zip([3, 20]) {
        file.read_at(page, block * 8192).unwrap();
    }
    file.write_at(&pages[1], 3 * 8192).unwrap();
    file.write_at(&pages[0], 20 * 8192).unwrap();
    let rel = again.pool.open(rel.id(), Default::default());
    for block in [3, 20] {
        let e = rel.pin(Main, BlockNumber(block), &mut Strategy::Normal).unwrap_err();
        assert_eq!(
            e.to_string(),
            format!("invalid page in block {block} of relation \"base/5/1\"")
        );
    }
    assert_eq!(value(&pin(&rel, 21)), 21);
}

/// The log was damaged, or put back from a copy: what it no longer tells of would be mixed with what it does.
#[test]
fn a_page_from_beyond_the_end_of_the_log_is_reported() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 40);
    bed.checkpoint();
    let flushed = bed.wal.flushed.swap(25, Ordering::SeqCst);
    assert_eq!(flushed, 40);
    let again = bed.reopened(64);
    let logged = again.pool.open(rel.id(), Default::default());
    assert_eq!(value(&pin(&logged, 24)), 24);
    let e = logged.pin(Main, BlockNumber(25), &mut Strategy::Normal).unwrap_err();
    assert!(matches!(e, Error::Corruption(_)), "{e}");
    let wanted = "its LSN 0/1A lies beyond the write-ahead log's end at 0/19, in block 25 of relation \"base/5/1\"";
    assert_eq!(e.to_string(), wanted);
    // Where nothing is logged an LSN says nothing.
    let unlogged = bed.reopened(64).pool.open(rel.id(), Persistence::Unlogged);
    assert_eq!(value(&pin(&unlogged, 25)), 25);
}

/// Folders of before the checksum covered a page's place.
#[test]
fn pages_of_the_older_layout_are_read_and_get_todays_when_they_are_written() {
    use disk::Disk;
    let bed = bed(16);
    let rel = filled(&bed, 1, 40);
    bed.checkpoint();
    let again = bed.reopened(64);
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    let mut bytes = [0; 8192];
    for block in [3u64, 4] {
        file.read_at(&mut bytes, block * 8192).unwrap();
        let mut page = page::Page::from_bytes(&bytes).clone();
        page.bytes_mut()[25] = 1;
        let old = page.compute_checksum(0);
        assert_eq!(old, page.compute_checksum(7), "an old page has no place");
        page.bytes_mut()[8..12].copy_from_slice(&old.to_le_bytes());
        file.write_at(page.bytes(), block * 8192).unwrap();
    }
    let rel = again.pool.open(rel.id(), Default::default());
    fill(&pin(&rel, 3), 3, 2000);
    assert_eq!(value(&pin(&rel, 4)), 4);
    again.checkpoint();
    let written = on_disk(&again, &rel, Main, 3);
    assert!(written.verify_checksum(3) && !written.verify_checksum(4));
    assert_eq!((written.layout_version(), value(&pin(&rel, 3))), (page::LAYOUT_VERSION, 3));
    assert_eq!(on_disk(&again, &rel, Main, 4).layout_version(), 1);
}

/// What the system has been asked for in advance when a stream of `blocks` has come to the page number `at`, in ranges and pages.
fn asked_ahead(bed: &Bed, strategy: Strategy, blocks: &[u32], at: usize) -> (u64, u64) {
    let again = bed.reopened(2048);
    let rel = again.pool.open(rel(1), Default::default());
    let before = bed.disk.counts();
    let blocks_of = blocks.iter().copied().map(BlockNumber);
    let mut stream = ReadStream::new(&rel, Main, strategy, blocks_of);
    let read: Vec<u64> = stream.by_ref().take(at + 1).map(|page| value(&page.unwrap())).collect();
    let wanted: Vec<u64> = blocks[..=at].iter().map(|b| u64::from(*b)).collect();
    assert_eq!(read, wanted);
    let after = bed.disk.counts();
    (after.asks - before.asks, (after.asked_bytes - before.asked_bytes) / 8192)
}

#[test]
fn the_system_is_asked_ahead_however_small_the_ring() {
    let bed = bed(2048);
    filled(&bed, 1, 1000);
    bed.checkpoint();
    let all: Vec<u32> = (0..1000).collect();
    let ring = || Strategy::vacuum(&bed.pool, 128);
    // A ring of 16 pages: 128 pages ahead, in pieces of 64 or more.
    let (asks, pages) = asked_ahead(&bed, ring(), &all, 500);
    assert!((600..=640).contains(&pages), "{pages} pages ahead");
    assert!(asks <= 14, "{asks} times");
    // Who reads little asks for little.
    assert_eq!(asked_ahead(&bed, ring(), &all, 0), (0, 0));
    let (_, pages) = asked_ahead(&bed, ring(), &all, 15);
    assert!(pages <= 32, "{pages} pages ahead");
    // No more than there is, and none twice.
    let (_, pages) = asked_ahead(&bed, ring(), &all, 999);
    assert!((900..1000).contains(&pages), "{pages} pages ahead");
}

#[test]
fn the_system_is_asked_for_places_that_lie_apart() {
    let bed = bed(2048);
    filled(&bed, 1, 1000);
    bed.checkpoint();
    let some: Vec<u32> = (0..1000).step_by(7).collect();
    let (asks, pages) = asked_ahead(&bed, Strategy::vacuum(&bed.pool, 128), &some, 100);
    assert_eq!(asks, pages, "each for itself");
    assert!((100..=132).contains(&pages), "{pages} places ahead");
    assert_eq!(asked_ahead(&bed, Strategy::Normal, &some, 0), (0, 0));
    // What is beyond the end, or cached, is not asked for.
    let beyond: Vec<u32> = (990..1100).collect();
    let again = bed.reopened(2048);
    let rel = again.pool.open(rel(1), Default::default());
    let before = bed.disk.counts();
    for _ in 0..2 {
        let blocks = beyond.iter().copied().map(BlockNumber);
        assert_eq!(ReadStream::new(&rel, Main, Strategy::Normal, blocks).count(), 10);
    }
    assert!(bed.disk.counts().asked_bytes - before.asked_bytes <= 10 * 8192);
}

#[test]
fn a_thread_may_bound_how_many_pages_one_read_joins() {
    let bed = bed(2048);
    filled(&bed, 1, 256);
    bed.checkpoint();
    let reads = |bound: usize| {
        buffer::bound_combined(bound);
        let again = bed.reopened(2048);
        let rel = again.pool.open(rel(1), Default::default());
        let before = bed.disk.counts().reads;
        let stream = ReadStream::new(&rel, Main, Strategy::Normal, (0..256).map(BlockNumber));
        assert_eq!(stream.filter(Result::is_ok).count(), 256);
        bed.disk.counts().reads - before
    };
    let (free, default) = (reads(usize::MAX), reads(128));
    assert_eq!(default, free, "the pool's own bound is no larger");
    assert_eq!(reads(1), 256);
    // The first ones are shorter, and the last.
    assert_eq!(reads(16), 18);
    buffer::bound_combined(usize::MAX);
}

#[test]
fn a_page_of_zeros_is_a_new_page() {
    let bed = bed(16);
    let rel = bed.create(1);
    let mut pages = rel.extend(Main, 2, &mut Strategy::Normal).unwrap();
    // One that was written has a checksum.
    pages.remove(0).write().mark_dirty();
    drop(pages);
    bed.checkpoint();
    let again = bed.reopened(16);
    let rel = again.pool.open(rel.id(), Default::default());
    for block in [0, 1] {
        let page = pin(&rel, block);
        let page = page.read();
        assert!(page.is_new() && page.verify() == Ok(()));
        assert_eq!(page.is_all_zero(), block == 1);
    }
}

#[test]
fn forks_come_into_being_when_extended() {
    let bed = bed(16);
    let rel = bed.create(1);
    assert!(!rel.exists(Fork::VisibilityMap).unwrap());
    assert_eq!(rel.len_blocks(Fork::VisibilityMap).unwrap(), BlockNumber(0));
    drop(rel.extend(Fork::VisibilityMap, 1, &mut Strategy::Normal).unwrap());
    assert!(rel.exists(Fork::VisibilityMap).unwrap());
    assert_eq!(rel.len_blocks(Fork::VisibilityMap).unwrap(), BlockNumber(1));
    bed.pool.unlink(rel.id()).unwrap();
    assert!(rel.pin(Main, BlockNumber(0), &mut Strategy::Normal).is_err());
}

#[test]
fn a_torn_map_page_can_be_had_as_zeros() {
    use disk::Disk;
    let bed = bed(16);
    let rel = bed.create(1);
    let page = rel.extend_one(Fork::FreeSpaceMap, &mut Strategy::Normal).unwrap();
    fill(&page, 3, 3);
    drop(page);
    bed.checkpoint();
    let again = bed.reopened(16);
    let file = bed.disk.open("base/5/1_fsm", disk::OpenMode::Existing).unwrap();
    file.write_at(b"torn", 4096).unwrap();
    let rel = again.pool.open(rel.id(), Default::default());
    let (fsm, mut s) = (Fork::FreeSpaceMap, Strategy::Normal);
    assert!(rel.try_pin(fsm, BlockNumber(0), &mut s).is_err());
    let page = rel.try_pin_or_zeroed(fsm, BlockNumber(0), &mut s).unwrap().unwrap();
    assert!(page.read().is_new());
    assert!(rel.try_pin_or_zeroed(fsm, BlockNumber(1), &mut s).unwrap().is_none());
}

/// A relation's blocks are counted for it only on a thread that counts them, and a helper does as who it helps; the rest always is.
#[test]
fn a_thread_may_count_no_blocks_for_relations() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 10);
    let counted = || {
        let counts = bed.pool.block_counts(rel.id());
        counts.hits + counts.reads
    };
    let before = counted();
    drop(pin(&rel, 0));
    assert_eq!(counted(), before + 1);
    let used = buffer::my_usage();
    buffer::count_blocks(false);
    drop(pin(&rel, 0));
    let (role, handle) = (buffer::Role::mine(), rel.clone());
    std::thread::spawn(move || {
        role.take();
        drop(pin(&handle, 0));
    })
    .join()
    .unwrap();
    assert_eq!(counted(), before + 1);
    assert_eq!((buffer::my_usage() - used).hits, 1);
    buffer::count_blocks(true);
    drop(pin(&rel, 0));
    assert_eq!(counted(), before + 2);
}

#[test]
fn what_a_thread_did_is_counted() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 10);
    bed.checkpoint();
    let again = bed.reopened(64);
    let rel = again.pool.open(rel.id(), Default::default());
    let before = buffer::my_usage();
    for _ in 0..3 {
        for b in 0..10 {
            drop(pin(&rel, b));
        }
    }
    fill(&pin(&rel, 1), 1, 1);
    fill(&pin(&rel, 1), 1, 1);
    again.checkpoint();
    let did = buffer::my_usage() - before;
    assert_eq!((did.reads, did.hits, did.dirtied, did.written), (10, 22, 1, 1));
    let rows = again.pool.io_stats();
    assert_eq!(rows.len(), 1);
    let counters = rows[0].counters;
    assert_eq!(rows[0].backend_type.name(), "client backend");
    assert_eq!((counters.reads, counters.read_bytes, counters.hits), (10, 81_920, 22));
    assert_eq!((counters.writes, counters.write_bytes, counters.fsyncs), (1, 8192, 1));
    // Threads that ended, and those that changed what they are, are remembered.
    let handle = rel.clone();
    std::thread::spawn(move || {
        drop(pin(&handle, 0));
        buffer::set_backend_type(buffer::BackendType::AutovacuumWorker);
        let mut vacuum = Strategy::vacuum(handle.pool(), 128);
        drop(handle.pin(Main, BlockNumber(0), &mut vacuum).unwrap());
    })
    .join()
    .unwrap();
    let rows = again.pool.io_stats();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].counters.hits, 23);
    assert_eq!(rows[1].backend_type, buffer::BackendType::AutovacuumWorker);
    assert_eq!((rows[1].context.name(), rows[1].counters.hits), ("vacuum", 1));
}

#[test]
fn the_background_writer_goes_before_the_clock() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 64);
    // The pool is full of dirty pages that were used; let the clock wear them down and dirty them again.
    let other = filled(&bed, 2, 64);
    drop((rel, other));
    let mut last = 0;
    let mut written = 0;
    for _ in 0..8 {
        let rel = bed.pool.open(crate::common::rel(1), Default::default());
        drop(pin(&rel, 1));
        last = 0;
        written += bed.pool.background_write_round(10, 2.0, &mut last).unwrap();
    }
    assert!(written > 0);
    assert_eq!(
        bed.pool.background_write_round(10, 2.0, &mut last).unwrap(),
        0,
        "nothing is needed"
    );
}

#[test]
fn guards_travel_with_their_pins() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 2);
    let guard = pin(&rel, 0).into_write();
    let guard = std::thread::spawn(move || {
        let page = guard.unlock();
        assert_eq!(value(&page), 0);
        page.into_read()
    })
    .join()
    .unwrap();
    assert!(guard.pinned().try_write().is_none());
    let page = guard.unlock();
    assert!(page.try_write().is_some());
    let other = page.clone();
    assert!(page.try_cleanup().is_none());
    drop(other);
    assert!(page.try_cleanup().is_some());
}

#[test]
fn a_hint_can_hold_its_page_back_and_no_other() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    bed.wal.flush(Lsn(10)).unwrap();
    for (block, after, flushed) in [(0, 0, 10), (1, 20, 20), (0, 15, 20), (1, 0, 20)] {
        let page = pin(&rel, block);
        fill(&page, 7, 5);
        page.read().set_hint_after(Lsn(after), |p| p.or_flags(1));
        drop(page);
        bed.checkpoint();
        assert_eq!(bed.wal.flushed_lsn(), Lsn(flushed), "block {block}, hint after {after}");
    }
    // A clean page is dropped with its hint, and the next in its frame does not wait for it.
    pin(&rel, 0).read().set_hint_after(Lsn(90), |p| p.or_flags(1));
    filled(&bed, 2, 40);
    bed.checkpoint();
    assert_eq!(bed.wal.flushed_lsn(), Lsn(40));
}

/// Of relations that nobody holds, and of which nothing is cached, so many objects are kept and no more; none that somebody holds
/// goes, nor one with a page in the pool.
#[test]
fn unheld_relations_are_few() {
    let bed = bed(64);
    let held = filled(&bed, 1, 2);
    let cached = filled(&bed, 2, 1).id();
    bed.checkpoint();
    let mut most = 0;
    for n in 10..100_000 {
        drop(bed.pool.open(rel(n), Persistence::Permanent));
        if n % 500 == 0 {
            most = most.max(bed.pool.known_relations());
        }
    }
    assert!((4096..=8192 + 2).contains(&most), "{most}");
    let again = bed.pool.open(held.id(), Persistence::Permanent);
    let page = held.extend_one(Main, &mut Strategy::Normal).unwrap();
    assert_eq!(page.block(), BlockNumber(2));
    assert_eq!(again.len_blocks(Main).unwrap(), BlockNumber(3));
    assert!(bed.pool.open(cached, Persistence::Permanent).is_cached(Main, BlockNumber(0)));
}
