use crate::common::*;
use base::{BlockNumber, Error, Fork, Lsn, SqlState};
use buffer::{ReadStream, Strategy};
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
    assert!(written.verify_checksum());
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
        assert!(e.to_string().contains("block 7 of relation \"base/5/1\""), "{e}");
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

#[test]
fn a_page_of_zeros_is_a_new_page() {
    let bed = bed(16);
    let rel = bed.create(1);
    drop(rel.extend(Main, 2, &mut Strategy::Normal).unwrap());
    let again = bed.reopened(16);
    let rel = again.pool.open(rel.id(), Default::default());
    assert!(pin(&rel, 1).read().is_new());
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
