use crate::common::*;
use base::{BlockNumber, Fork, Lsn, PageTag, Xid};
use buffer::{RedoPage, RedoPages, Strategy};
use wal::{Record, RecordBlock, ResourceManager};

fn record(end: u64, block: RecordBlock) -> Record {
    Record {
        lsn: Lsn(end - 10),
        end_lsn: Lsn(end),
        xid: Xid::INVALID,
        rmgr: ResourceManager::Heap,
        info: 0,
        data: Vec::new(),
        blocks: vec![block],
    }
}

fn block(file: u32, number: u32) -> RecordBlock {
    RecordBlock {
        id: 0,
        tag: PageTag { relation: rel(file), fork: Fork::Main, block: BlockNumber(number) },
        image: None,
        apply_image: false,
        will_init: false,
        data: Vec::new(),
    }
}

#[test]
fn a_change_is_applied_once() {
    let bed = bed(16);
    let _rel = filled(&bed, 1, 3);
    let record = record(50, block(1, 2));
    let RedoPage::Apply(mut guard) = bed.pool.redo_page(&record, 0).unwrap() else { panic!() };
    guard.mark_dirty();
    guard.set_lsn(record.end_lsn);
    drop(guard);
    assert!(matches!(bed.pool.redo_page(&record, 0).unwrap(), RedoPage::Done));
}

#[test]
fn an_image_needs_no_file() {
    let bed = bed(16);
    let mut image = page::Page::new_zeroed();
    image.init(0);
    let block = RecordBlock { image: Some(image), apply_image: true, ..block(9, 30) };
    assert!(matches!(bed.pool.redo_page(&record(50, block), 0).unwrap(), RedoPage::Restored));
    let rel = bed.pool.open(rel(9), Default::default());
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(31));
    assert_eq!(pin(&rel, 30).read().lsn(), Lsn(50));
    assert!(pin(&rel, 29).read().is_new());
}

#[test]
fn an_image_mends_a_torn_page() {
    use disk::Disk;
    let bed = bed(16);
    let rel = filled(&bed, 1, 3);
    bed.checkpoint();
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    file.write_at(&[9; 512], 8192 * 2).unwrap();
    let again = bed.reopened(16);
    let handle = again.pool.open(rel.id(), Default::default());
    assert!(handle.pin(Main, BlockNumber(2), &mut Strategy::Normal).is_err());
    let mut image = page::Page::new_zeroed();
    image.init(0);
    let block = RecordBlock { image: Some(image), apply_image: true, ..block(1, 2) };
    again.pool.redo_page(&record(50, block), 0).unwrap();
    assert_eq!(pin(&handle, 2).read().lsn(), Lsn(50));
}

/// Another share's page may need the frame before all have heard that replay has failed.
#[test]
fn an_image_that_makes_no_sense_leaves_the_file_as_it_is() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 3);
    bed.checkpoint();
    let again = bed.reopened(16);
    let share = buffer::RedoShare::new(again.pool.clone(), 0, 1);
    let senseless = |_: &mut [u8; page::PAGE_SIZE]| Err(base::Error::corrupt_file("senseless"));
    share.restore(block(1, 2).tag, Lsn(50), senseless).unwrap_err();
    again.checkpoint();
    assert!(!on_disk(&again, &rel, Main, 2).is_new());
}

#[test]
fn a_page_made_anew_is_zeroed() {
    let bed = bed(16);
    let _rel = filled(&bed, 1, 3);
    let block = RecordBlock { will_init: true, ..block(1, 1) };
    let RedoPage::Apply(guard) = bed.pool.redo_page(&record(50, block), 0).unwrap() else {
        panic!()
    };
    assert!(guard.is_new());
}

/// Room that was allocated and never written: what made the page is lacking.
#[test]
fn a_page_never_written_is_missing() {
    let bed = bed(16);
    let rel = bed.create(1);
    drop(rel.extend(Main, 2, &mut Strategy::Normal).unwrap());
    let missing = bed.pool.redo_page(&record(50, block(1, 1)), 0).unwrap();
    assert!(matches!(missing, RedoPage::Missing));
    assert_eq!(bed.pool.missing_pages(), [block(1, 1).tag]);
    assert!(!pin(&rel, 1).is_dirty());
    // One that makes it does not ask for it.
    let made = RecordBlock { will_init: true, ..block(1, 0) };
    let made = bed.pool.redo_page(&record(60, made), 0).unwrap();
    assert!(matches!(made, RedoPage::Apply(_)));
    drop(made);
    rel.truncate(Main, BlockNumber(1)).unwrap();
    bed.pool.check_missing_pages().unwrap();
}

/// Two threads of recovery find the fork too short for their pages: it becomes as long as the further one needs.
#[test]
fn two_threads_that_make_a_fork_longer_make_it_long_enough_and_no_longer() {
    let bed = bed(64);
    let image = |number| {
        let mut image = page::Page::new_zeroed();
        image.init(0);
        let block = RecordBlock { image: Some(image), apply_image: true, ..block(9, number) };
        assert!(matches!(bed.pool.redo_page(&record(50, block), 0).unwrap(), RedoPage::Restored));
    };
    let grows = base::stop::arm("buffer.redo.grows");
    let subject = grows.subject();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| subject.run(|| image(5)));
        grows.wait_reached();
        let second = scope.spawn(|| image(6));
        // Time enough for who does not wait.
        for _ in 0..10_000 {
            std::thread::yield_now();
        }
        grows.release();
        first.join().unwrap();
        second.join().unwrap();
    });
    let rel = bed.pool.open(rel(9), Default::default());
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(7));
    assert_eq!([5, 6].map(|n| pin(&rel, n).read().lsn()), [Lsn(50); 2]);
}

#[test]
fn missing_pages_must_be_explained() {
    let bed = bed(16);
    let rel1 = filled(&bed, 1, 3);
    for (file, number) in [(1, 7), (1, 5), (2, 0), (3, 0)] {
        let missing = bed.pool.redo_page(&record(50, block(file, number)), 0).unwrap();
        assert!(matches!(missing, RedoPage::Missing));
    }
    assert_eq!(bed.pool.missing_pages().len(), 4);
    // The file is short already; the truncation's record explains it all the same.
    rel1.truncate(Main, BlockNumber(5)).unwrap();
    assert_eq!(bed.pool.missing_pages().len(), 2);
    bed.pool.unlink(rel(2)).unwrap();
    let e = bed.pool.check_missing_pages().unwrap_err();
    assert!(e.to_string().contains("base/5/3"), "{e}");
    bed.pool.unlink(rel(3)).unwrap();
    bed.pool.check_missing_pages().unwrap();
}
