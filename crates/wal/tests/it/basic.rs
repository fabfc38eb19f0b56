//! Insert, flush, read back.

use base::{BlockNumber, Fork, Lsn, Oid, PageTag, RelationId, Xid};
use page::Page;
use std::sync::Arc;
use wal::{BlockFlags, FIRST_LSN, Reader, RecordBuilder, ResourceManager, Wal, WalConfig};

fn tag(block: u32) -> PageTag {
    let relation = RelationId { database: Oid(5), file_number: 16384 };
    PageTag { relation, fork: Fork::Main, block: BlockNumber(block) }
}

fn config() -> WalConfig {
    WalConfig { buffer_bytes: 64 << 10, ..WalConfig::default() }
}

#[test]
fn what_goes_in_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    let wal = Wal::create(disk.clone(), config(), FIRST_LSN).unwrap();
    let mut page = Page::new_zeroed();
    page.init(16);
    page.bytes_mut()[40..48].copy_from_slice(b"contents");
    page.bytes_mut()[8180..8188].copy_from_slice(b"contents");
    let mut a = RecordBuilder::new(ResourceManager::Heap, 7, Xid(9));
    a.data(b"main").block(0, tag(3), &page, BlockFlags::NONE).block_data(0, b"gone");
    let a_end = wal.insert(&a);
    drop(a);
    page.set_lsn(a_end);
    let mut b = RecordBuilder::new(ResourceManager::Btree, 8, Xid(10));
    b.block(1, tag(3), &page, BlockFlags::STANDARD).block_data(1, b"kept").data(b"x").data(b"y");
    wal.insert(&b);
    let redo = wal.begin_checkpoint();
    let end = wal.insert(&b);
    wal.flush(end).unwrap();
    assert_eq!(wal.flushed_lsn(), end);
    assert_eq!(wal.stats().records, 3);
    assert_eq!(wal.stats().full_page_images, 2);

    let mut reader = Reader::new(disk.clone(), "wal", FIRST_LSN, 1);
    let r = reader.next().unwrap().unwrap();
    assert_eq!(
        (r.lsn, r.end_lsn, r.xid, r.rmgr, r.info),
        (FIRST_LSN, a_end, Xid(9), ResourceManager::Heap, 7)
    );
    assert_eq!(r.data, b"main");
    assert_eq!(r.blocks[0].tag, tag(3));
    assert_eq!(r.blocks[0].data, b"");
    let image = r.blocks[0].image.as_ref().unwrap();
    assert_eq!(&image.bytes()[8..], &page.bytes()[8..]);
    let r = reader.next().unwrap().unwrap();
    assert_eq!(r.data, b"xy");
    assert_eq!(r.block(1).unwrap().data, b"kept");
    assert!(r.block(1).unwrap().image.is_none());
    let r = reader.next().unwrap().unwrap();
    assert_eq!(r.lsn, redo);
    // The hole is zeros in the image.
    assert_eq!(r.blocks[0].image.as_ref().unwrap().bytes()[40..48], [0; 8]);
    assert_eq!(r.blocks[0].image.as_ref().unwrap().bytes()[8180..8188], *b"contents");
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.position(), end);

    drop(wal);
    let wal = Wal::open(disk.clone(), config(), end, redo).unwrap();
    let next = wal.insert(&b);
    wal.flush(next).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().end_lsn, next);
}

#[test]
fn reads_and_writes_are_told_by_thread_and_kind() {
    use base::backend::BackendType;
    let dir = tempfile::tempdir().unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    let wal = Wal::create(disk.clone(), config(), FIRST_LSN).unwrap();
    let mut r = RecordBuilder::new(ResourceManager::Heap, 7, Xid(9));
    r.data(b"main");
    let wrote = wal.stats().by_backend[BackendType::ClientBackend as usize];
    let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|s| {
        let (ready, go, wal, r) = (&ready, &go, &wal, &r);
        let backend = s.spawn(move || {
            base::log::set_thread_pid(4711);
            wal.flush(wal.insert(r)).unwrap();
            ready.wait();
            go.wait();
        });
        ready.wait();
        let (kind, io) = wal.io_of(4711).unwrap();
        assert_eq!(kind, BackendType::ClientBackend);
        assert_eq!((io.writes, io.syncs, io.reads), (1, 1, 0));
        assert!(io.write_bytes > 0);
        assert_eq!(wal.io_of(4712), None);
        go.wait();
        // The scope's end waits for the closure only; `join` also for what the thread's locals drop.
        backend.join().unwrap();
    });
    // The thread is gone; its kind has done it all the same.
    assert_eq!(wal.io_of(4711), None);
    let now = wal.stats().by_backend[BackendType::ClientBackend as usize];
    assert_eq!((now.writes, now.syncs), (wrote.writes + 1, wrote.syncs + 1));

    let mut reader = Reader::new(disk, "wal", FIRST_LSN, 1);
    reader.skip_to_end().unwrap();
    let io = reader.read_io();
    assert!(io.reads > 0 && io.read_bytes >= wal.insert_lsn().0 - FIRST_LSN.0, "{io:?}");
    assert_eq!((io.writes, io.syncs), (0, 0));
    let before = base::backend::set_type(BackendType::Startup);
    wal.count_reads(&io);
    base::backend::set_type(before);
    assert_eq!(wal.stats().by_backend[BackendType::Startup as usize], io);
}

#[test]
fn many_threads() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    let wal = Wal::create(disk.clone(), WalConfig { fsync: false, ..config() }, FIRST_LSN).unwrap();
    let threads: Vec<_> = (0..8u64)
        .map(|t| {
            let wal = Arc::clone(&wal);
            std::thread::spawn(move || {
                let mut x = t.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
                for i in 0..400u64 {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    let len = if x.is_multiple_of(16) { 200_000 } else { x as usize % 3000 };
                    let body: Vec<u8> = (0..len).map(|k| (k as u64 ^ t ^ i) as u8).collect();
                    let mut r = RecordBuilder::new(ResourceManager::Heap, t as u8, Xid(i));
                    r.data(&body);
                    let end = wal.insert(&r);
                    if x.is_multiple_of(5) {
                        wal.flush(end).unwrap();
                    }
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    wal.flush(wal.insert_lsn()).unwrap();
    let mut reader = Reader::new(disk, "wal", FIRST_LSN, 1);
    let mut next = [0u64; 8];
    while let Some(r) = reader.next().unwrap() {
        assert_eq!(r.xid.0, next[usize::from(r.info)]);
        next[usize::from(r.info)] += 1;
        for (k, b) in r.data.iter().enumerate() {
            assert_eq!(*b, (k as u64 ^ u64::from(r.info) ^ r.xid.0) as u8);
        }
    }
    assert_eq!(next, [400; 8]);
    assert_eq!(reader.position(), wal.insert_lsn());
    assert!(wal.stats().buffers_full > 0);
    assert!(reader.position() > Lsn(FIRST_LSN.0 + wal::SEGMENT_SIZE));
}
