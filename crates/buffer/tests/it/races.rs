use crate::common::*;
use base::sync::{Arc, CancelFlag, CancelReason};
use base::{BlockNumber, Fork, SqlState, stop};
use buffer::{ReadStream, Strategy, WalFlush};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `BUFFER_TEST_ROUNDS` asks for more.
fn rounds() -> u64 {
    std::env::var("BUFFER_TEST_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1500)
}

/// Threads read and write pages under every strategy in a pool much too small, while others checkpoint and write
/// behind; every read sees the last value written.
#[test]
fn many_threads_agree_with_a_model() {
    let mut config = config(48);
    config.staging_frames = 24;
    config.write_behind_thread = true;
    let bed = Arc::new(bed_with(config));
    let blocks = 300u32;
    let rel = filled(&bed, 1, blocks);
    let model: Arc<Vec<Mutex<u64>>> =
        Arc::new((0..blocks).map(|b| Mutex::new(u64::from(b))).collect());
    let lsn = Arc::new(AtomicU64::new(1000));
    let stop = Arc::new(AtomicBool::new(false));
    let cleaner = {
        let (bed, stop) = (bed.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                bed.checkpoint();
                bed.pool.background_write_round(10, 2.0, &mut last).unwrap();
                bed.pool.write_behind_round().unwrap();
                bed.pool.for_each_buffer(|_| ());
            }
        })
    };
    let workers: Vec<_> = (0..4u64)
        .map(|t| {
            let (rel, model, lsn) = (rel.clone(), model.clone(), lsn.clone());
            std::thread::spawn(move || {
                let mut rng = SmallRng::seed_from_u64(t);
                let mut strategy = match t {
                    0 => Strategy::Normal,
                    1 => Strategy::vacuum(rel.pool(), 32),
                    2 => Strategy::bulk_write(rel.pool()),
                    _ => Strategy::bulk_read(rel.pool()),
                };
                for i in 0..rounds() {
                    let block = rng.random_range(0..blocks);
                    let page = rel.pin(Main, BlockNumber(block), &mut strategy).unwrap();
                    assert_eq!(page.tag().block, BlockNumber(block));
                    if rng.random_range(0..3) == 0 {
                        let mut expected = model[block as usize].lock().unwrap();
                        assert_eq!(value(&page), *expected);
                        let new = t << 32 | i;
                        fill(&page, new, lsn.fetch_add(1, Ordering::SeqCst));
                        *expected = new;
                    } else {
                        let _ = value(&page);
                        let expected = model[block as usize].lock().unwrap();
                        assert_eq!(value(&page), *expected);
                    }
                    if i % 200 == 0 {
                        let from = rng.random_range(0..blocks - 20);
                        let range = (from..from + 20).map(BlockNumber);
                        for page in ReadStream::new(&rel, Main, strategy.fresh(), range) {
                            let _ = value(&page.unwrap());
                        }
                    }
                }
            })
        })
        .collect();
    for w in workers {
        w.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    cleaner.join().unwrap();
    let expected = |b: u32| *model[b as usize].lock().unwrap();
    for b in 0..blocks {
        assert_eq!(value(&pin(&rel, b)), expected(b));
    }
    bed.checkpoint();
    for b in 0..blocks {
        let page = on_disk(&bed, &rel, Main, b);
        assert!(page.verify_checksum(b));
        assert_eq!(page.bytes()[32..40], expected(b).to_le_bytes());
    }
    let status = bed.pool.staging_status();
    assert!(status.staged + status.owed <= status.capacity);
    // Every frame is accounted for: nothing is pinned, and a relation forgotten leaves no table node behind.
    let mut pins = 0;
    bed.pool.for_each_buffer(|b| pins += b.pins);
    assert_eq!(pins, 0);
    rel.forget();
    assert_eq!(bed.pool.table_nodes(), 0);
    let mut cached = 0;
    bed.pool.for_each_buffer(|_| cached += 1);
    assert_eq!(cached, 0);
    // And all frames can be used again.
    let rel = filled(&bed, 2, 48);
    let held: Vec<_> = (0..48).map(|b| pin(&rel, b)).collect();
    assert_eq!(held.len(), 48);
}

/// The same with a disk that refuses a read or a write now and then: who is refused is told so, and every value stays; no frame is lost.
#[test]
fn many_threads_agree_with_a_model_though_the_disk_refuses() {
    use disk::sim::{Fault, Operation};
    let mut config = config(48);
    config.staging_frames = 24;
    config.write_behind_thread = true;
    let bed = Arc::new(bed_with(config));
    let blocks = 300u32;
    let rel = filled(&bed, 1, blocks);
    let model: Vec<Mutex<u64>> = (0..blocks).map(|b| Mutex::new(u64::from(b))).collect();
    let lsn = AtomicU64::new(1000);
    let stop = AtomicBool::new(false);
    let refused = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (bed, rel, model, lsn) = (&bed, &rel, &model, &lsn);
        let (stop, refused) = (&stop, &refused);
        scope.spawn(move || {
            let (mut last, mut rng) = (0, SmallRng::seed_from_u64(11));
            while !stop.load(Ordering::Relaxed) {
                let read = rng.random_range(0..2) == 0;
                bed.disk.inject(Fault {
                    operation: if read { Operation::Read } else { Operation::Write },
                    path_contains: rel.id().to_string(),
                    after: rng.random_range(0..30),
                    error: if rng.random_range(0..2) == 0 { 5 } else { 28 },
                    once: true,
                });
                let _ = bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(()));
                let _ = bed.pool.background_write_round(10, 2.0, &mut last);
                let _ = bed.pool.write_behind_round();
            }
        });
        let workers: Vec<_> = (0..4u64)
            .map(|t| {
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(t);
                    let mut strategy = match t {
                        0 => Strategy::Normal,
                        1 => Strategy::vacuum(rel.pool(), 32),
                        2 => Strategy::bulk_write(rel.pool()),
                        _ => Strategy::bulk_read(rel.pool()),
                    };
                    for i in 0..rounds() {
                        let block = rng.random_range(0..blocks);
                        let Ok(page) = rel.pin(Main, BlockNumber(block), &mut strategy) else {
                            refused.fetch_add(1, Ordering::Relaxed);
                            continue;
                        };
                        let mut expected = model[block as usize].lock().unwrap();
                        assert_eq!(value(&page), *expected);
                        if rng.random_range(0..3) == 0 {
                            let new = t << 32 | i;
                            fill(&page, new, lsn.fetch_add(1, Ordering::SeqCst));
                            *expected = new;
                        }
                        drop((expected, page));
                        if i % 100 == 0 {
                            let from = rng.random_range(0..blocks - 20);
                            let range = (from..from + 20).map(BlockNumber);
                            let stream = ReadStream::new(rel, Main, strategy.fresh(), range);
                            // Each block once, or an error in its place.
                            assert_eq!(stream.inspect(|p| _ = p.as_ref().map(value)).count(), 20);
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|w| w.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    assert!(refused.load(Ordering::Relaxed) > 0);
    bed.disk.heal();
    bed.checkpoint();
    for b in 0..blocks {
        let expected = *model[b as usize].lock().unwrap();
        assert_eq!(value(&pin(&rel, b)), expected);
        assert_eq!(on_disk(&bed, &rel, Main, b).bytes()[32..40], expected.to_le_bytes());
    }
    let status = bed.pool.staging_status();
    assert!(status.staged + status.owed <= status.capacity);
    let mut pins = 0;
    bed.pool.for_each_buffer(|b| pins += b.pins);
    assert_eq!(pins, 0);
    rel.forget();
    assert_eq!(bed.pool.table_nodes(), 0);
    let rel = filled(&bed, 2, 48);
    let held: Vec<_> = (0..48).map(|b| pin(&rel, b)).collect();
    assert_eq!(held.len(), 48);
}

#[test]
fn extension_and_readers_race() {
    let bed = Arc::new(bed(64));
    let rel = bed.create(1);
    let writers: Vec<_> = (0..3u64)
        .map(|t| {
            let rel = rel.clone();
            std::thread::spawn(move || {
                for _ in 0..40 {
                    let pages = rel.extend(Main, 1 + t as usize, &mut Strategy::Normal).unwrap();
                    for page in pages {
                        fill(&page, u64::from(page.block().0), 1);
                    }
                }
            })
        })
        .collect();
    let reader = {
        let rel = rel.clone();
        std::thread::spawn(move || {
            loop {
                let len = rel.len_blocks(Main).unwrap();
                for b in 0..len.0 {
                    let page = pin(&rel, b);
                    let guard = page.read();
                    assert!(guard.is_new() || guard.bytes()[32..36] == b.to_le_bytes());
                }
                if len.0 == 40 * 6 {
                    return;
                }
            }
        })
    };
    for w in writers {
        w.join().unwrap();
    }
    reader.join().unwrap();
    for b in 0..240 {
        assert_eq!(value(&pin(&rel, b)), u64::from(b));
    }
}

#[test]
fn clean_up_waits_for_the_other_pin_and_only_one_waits() {
    let bed = Arc::new(bed(16));
    let rel = filled(&bed, 1, 2);
    let other = pin(&rel, 0);
    let before_wait = stop::arm("buffer.cleanup.before_wait");
    let waiter = {
        let (page, subject) = (pin(&rel, 0), before_wait.subject());
        std::thread::spawn(move || {
            let guard = subject.run(|| page.cleanup().unwrap());
            assert!(guard.is_sole_pin());
        })
    };
    before_wait.wait_reached();
    // It does not hold the latch meanwhile.
    assert_eq!(value(&other), 0);
    let second = pin(&rel, 0);
    assert_eq!(second.cleanup().err().unwrap().state(), SqlState::OBJECT_IN_USE);
    drop(second);
    // The pin goes between the waiter's look and its sleep: it must not sleep through it.
    drop(other);
    before_wait.release();
    waiter.join().unwrap();
    // And it can be called off.
    let other = pin(&rel, 1);
    let page = pin(&rel, 1);
    let cancel = Arc::new(CancelFlag::default());
    let waiter = {
        let cancel = cancel.clone();
        std::thread::spawn(move || page.cleanup_or_cancel(Some(&cancel)).err().unwrap().state())
    };
    cancel.raise(CancelReason::UserRequest);
    assert_eq!(waiter.join().unwrap(), SqlState::QUERY_CANCELED);
    assert!(other.try_cleanup().is_some());
}

#[test]
fn beyond_a_truncation_there_is_nothing() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 20);
    bed.checkpoint();
    let old_length = rel.len_blocks(Main).unwrap();
    rel.truncate(Main, BlockNumber(5)).unwrap();
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(5));
    // A scan that holds the older length reads nothing there, and no error.
    let stream = ReadStream::new(&rel, Main, Strategy::Normal, (0..old_length.0).map(BlockNumber));
    assert_eq!(stream.map(|p| value(&p.unwrap())).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(rel.cached_pages(), 5);
    let page = rel.extend_one(Main, &mut Strategy::Normal).unwrap();
    assert_eq!(page.block(), BlockNumber(5));
    assert!(page.read().is_new());
}

/// Of a relation of which nothing is cached somebody is about to enter a page beyond the new end: it does not stay.
#[test]
fn what_is_being_entered_is_forgotten_too() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 8);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(8));
    let looked = base::stop::arm("buffer.enter.looked");
    let reader = {
        let (rel, subject) = (rel.clone(), looked.subject());
        std::thread::spawn(move || {
            subject.run(|| rel.try_pin(Main, BlockNumber(7), &mut Strategy::Normal).map(|_| ()))
        })
    };
    looked.wait_reached();
    let cutter = {
        let rel = rel.clone();
        std::thread::spawn(move || {
            rel.truncate_later(Main, BlockNumber(3), base::Lsn(100)).unwrap()
        })
    };
    while rel.len_blocks(Main).unwrap() != BlockNumber(3) {
        std::thread::yield_now();
    }
    // Time enough for who does not wait.
    for _ in 0..10_000 {
        std::thread::yield_now();
    }
    looked.release();
    // It was there when it was asked for.
    let _ = reader.join().unwrap();
    cutter.join().unwrap();
    assert_eq!(rel.cached_pages(), 0);
    let page = rel.extend(Main, 5, &mut Strategy::Normal).unwrap().pop().unwrap();
    assert_eq!(page.block(), BlockNumber(7));
    assert!(page.read().is_new());
}

#[test]
fn forgetting_waits_for_a_write_under_way() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 8);
    bed.checkpoint();
    fill(&pin(&rel, 6), 77, 5000);
    // A writer has taken its image and waits for the WAL.
    let gate = bed.wal.gate.lock().unwrap();
    let arrived = bed.wal.arrived.load(Ordering::SeqCst);
    let writer = {
        let rel = rel.clone();
        std::thread::spawn(move || rel.flush().unwrap())
    };
    while bed.wal.arrived.load(Ordering::SeqCst) == arrived {
        std::thread::yield_now();
    }
    let done = Arc::new(AtomicBool::new(false));
    let cutter = {
        let (rel, done) = (rel.clone(), done.clone());
        std::thread::spawn(move || {
            rel.truncate(Main, BlockNumber(3)).unwrap();
            done.store(true, Ordering::SeqCst);
        })
    };
    while rel.len_blocks(Main).unwrap() != BlockNumber(3) {
        std::thread::yield_now();
    }
    assert!(!done.load(Ordering::SeqCst), "the file was cut while a write was under way");
    drop(gate);
    writer.join().unwrap();
    cutter.join().unwrap();
    bed.checkpoint();
    use disk::Disk;
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    assert_eq!(file.len().unwrap(), 3 * 8192, "a write of a forgotten page made the file longer");
}

/// A checkpoint takes a page's image just as that page, the only one beyond the new end, is about to be forgotten.
#[test]
fn forgetting_waits_for_a_write_that_has_just_begun() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 8);
    bed.checkpoint();
    fill(&pin(&rel, 7), 77, 5000);
    let forgets = base::stop::arm("buffer.forget.entry");
    let done = Arc::new(AtomicBool::new(false));
    let cutter = {
        let (rel, done, subject) = (rel.clone(), done.clone(), forgets.subject());
        std::thread::spawn(move || {
            subject.run(|| rel.truncate(Main, BlockNumber(7)).unwrap());
            done.store(true, Ordering::SeqCst);
        })
    };
    forgets.wait_reached();
    let writes = base::stop::arm("buffer.write.imaged");
    let writer = {
        let (bed, subject) = (bed.clone(), writes.subject());
        std::thread::spawn(move || subject.run(|| bed.checkpoint()))
    };
    writes.wait_reached();
    forgets.release();
    // Time enough for who does not wait.
    for _ in 0..10_000 {
        std::thread::yield_now();
    }
    assert!(!done.load(Ordering::SeqCst), "the file was cut while a write was under way");
    writes.release();
    writer.join().unwrap();
    cutter.join().unwrap();
    assert_eq!(rel.cached_pages(), 7);
    use disk::Disk;
    let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
    assert_eq!(file.len().unwrap(), 7 * 8192, "a write of a forgotten page made the file longer");
}

#[test]
fn a_page_can_be_changed_while_its_image_waits() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    fill(&pin(&rel, 1), 10, 5000);
    let gate = bed.wal.gate.lock().unwrap();
    let arrived = bed.wal.arrived.load(Ordering::SeqCst);
    let writer = {
        let rel = rel.clone();
        std::thread::spawn(move || rel.flush().unwrap())
    };
    while bed.wal.arrived.load(Ordering::SeqCst) == arrived {
        std::thread::yield_now();
    }
    let page = pin(&rel, 1);
    page.read().set_hint(|p| p.or_flags(1));
    fill(&page, 11, 6000);
    drop(gate);
    writer.join().unwrap();
    let written = on_disk(&bed, &rel, Main, 1);
    assert!(written.verify_checksum(1));
    assert_eq!((written.bytes()[32], written.flags() & 1), (10, 0));
    assert!(page.is_dirty());
    bed.checkpoint();
    assert_eq!(on_disk(&bed, &rel, Main, 1).bytes()[32], 11);
}

#[test]
fn one_read_for_many_who_miss() {
    let bed = Arc::new(bed(64));
    let rel = filled(&bed, 1, 4);
    bed.checkpoint();
    let id = rel.id();
    rel.forget();
    let rel = bed.pool.open(id, Default::default());
    let reads = bed.disk.counts().reads;
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let rel = rel.clone();
            std::thread::spawn(move || (0..4).map(|b| value(&pin(&rel, b))).collect::<Vec<_>>())
        })
        .collect();
    for t in threads {
        assert_eq!(t.join().unwrap(), [0, 1, 2, 3]);
    }
    assert_eq!(bed.disk.counts().reads - reads, 4);
}

#[test]
fn a_dropped_relation_is_gone_while_pinned() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 4);
    let page = pin(&rel, 2);
    bed.pool.unlink(rel.id()).unwrap();
    assert_eq!(value(&page), 2, "who has it pinned may look on");
    assert!(rel.is_forgotten());
    let again = bed.create(1);
    assert_eq!(again.len_blocks(Main).unwrap(), BlockNumber(0));
    let new = again.extend_one(Main, &mut Strategy::Normal).unwrap();
    fill(&new, 9, 9);
    drop(page);
    bed.checkpoint();
    assert_eq!(value(&pin(&again, 0)), 9);
    assert_eq!(again.cached_pages(), 1);
    assert_eq!(rel.len_blocks(Fork::Main).unwrap(), BlockNumber(0));
}

#[test]
fn a_panic_under_a_write_guard_closes_the_page() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 3);
    bed.checkpoint();
    let half_change = |block: u32, dirty: bool| {
        let rel = rel.clone();
        let result = std::thread::Builder::new()
            .name("panics on purpose".into())
            .spawn(move || {
                let page = pin(&rel, block);
                let mut guard = page.write();
                if dirty {
                    guard.mark_dirty();
                }
                guard.bytes_mut()[100] = 0xEE;
                std::panic::resume_unwind(Box::new("on purpose"));
            })
            .unwrap()
            .join();
        assert!(result.is_err());
    };
    // Clean in the file: it is read again.
    half_change(0, false);
    assert_eq!(value(&pin(&rel, 0)), 0);
    // Dirty: closed, and never written.
    half_change(1, true);
    for _ in 0..2 {
        let e = rel.pin(Main, BlockNumber(1), &mut Strategy::Normal).unwrap_err();
        assert_eq!(e.state(), SqlState::DATA_CORRUPTED);
    }
    assert!(bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).is_err());
    assert_eq!(on_disk(&bed, &rel, Main, 1).bytes()[100], 0);
    assert_eq!(value(&pin(&rel, 2)), 2);
    // Who needs room for other pages is not told of it.
    let other = filled(&bed, 2, 60);
    for block in 0..60 {
        assert_eq!(value(&pin(&other, block)), u64::from(block));
    }
}

/// Relations come, grow, shrink and go while others do the same and checkpoints and write-behind run.
#[test]
fn relations_come_and_go() {
    let mut config = config(64);
    config.staging_frames = 16;
    config.open_files_max = 8;
    let bed = Arc::new(bed_with(config));
    let lsn = Arc::new(AtomicU64::new(1));
    let stop = Arc::new(AtomicBool::new(false));
    let cleaner = {
        let (bed, stop) = (bed.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                bed.checkpoint();
                bed.pool.write_behind_round().unwrap();
            }
        })
    };
    let workers: Vec<_> = (0..3u32)
        .map(|t| {
            let (bed, lsn) = (bed.clone(), lsn.clone());
            std::thread::spawn(move || {
                let mut rng = SmallRng::seed_from_u64(u64::from(t));
                let next = || lsn.fetch_add(1, Ordering::SeqCst);
                for i in 0..rounds() as u32 / 150 {
                    let rel = bed.create(100 + t * 100_000 + i);
                    let mut strategy = Strategy::vacuum(&bed.pool, 24);
                    let mut model: Vec<u64> = Vec::new();
                    for step in 0..60u64 {
                        match rng.random_range(0..10) {
                            0..4 => {
                                let count = rng.random_range(1..10);
                                for page in rel.extend(Main, count, &mut strategy).unwrap() {
                                    assert_eq!(page.block().0 as usize, model.len());
                                    fill(&page, step, next());
                                    model.push(step);
                                }
                            }
                            4..8 if !model.is_empty() => {
                                let b = rng.random_range(0..model.len());
                                let page =
                                    rel.pin(Main, BlockNumber(b as u32), &mut strategy).unwrap();
                                assert_eq!(value(&page), model[b]);
                                fill(&page, step + 1000, next());
                                model[b] = step + 1000;
                            }
                            8 => {
                                let len = rng.random_range(0..=model.len());
                                rel.truncate(Main, BlockNumber(len as u32)).unwrap();
                                model.truncate(len);
                            }
                            _ => {
                                let range = (0..model.len() as u32).map(BlockNumber);
                                let stream = ReadStream::new(&rel, Main, strategy.fresh(), range);
                                let values: Vec<_> = stream.map(|p| value(&p.unwrap())).collect();
                                assert_eq!(values, model);
                            }
                        }
                    }
                    bed.pool.unlink(rel.id()).unwrap();
                }
            })
        })
        .collect();
    for w in workers {
        w.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    cleaner.join().unwrap();
    assert_eq!(bed.pool.table_nodes(), 0);
    let status = bed.pool.staging_status();
    assert_eq!(status.staged, 0);
    let rel = filled(&bed, 1, 64);
    let held: Vec<_> = (0..64).map(|b| pin(&rel, b)).collect();
    assert_eq!(held.len(), 64, "a frame was lost");
}

/// It sleeps, and nobody can cancel it: who gives up the other pin wakes it.
#[test]
fn clean_up_is_woken() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 1);
    let other = pin(&rel, 0);
    let before_wait = stop::arm("buffer.cleanup.before_wait");
    let subject = before_wait.subject();
    std::thread::scope(|scope| {
        let page = pin(&rel, 0);
        let waiter = scope.spawn(move || subject.run(|| drop(page.cleanup().unwrap())));
        before_wait.wait_reached();
        before_wait.release();
        // Time to fall asleep.
        for _ in 0..10_000 {
            std::thread::yield_now();
        }
        drop(other);
        waiter.join().unwrap();
    });
}

/// A page is on its way to the file, by another, when a checkpoint or a flush looks for what is dirty; and does not get there.
#[test]
fn who_makes_pages_durable_waits_for_the_writes_of_others() {
    for flush in [false, true] {
        let bed = bed(64);
        let rel = filled(&bed, 1, 4);
        bed.checkpoint();
        fill(&pin(&rel, 2), 77, 100);
        let writes = base::stop::arm("buffer.write.imaged");
        let looks = base::stop::arm("buffer.checkpoint.collected");
        let (writer, durable) = (writes.subject(), looks.subject());
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                writer.run(|| bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())))
            });
            writes.wait_reached();
            let durable = scope.spawn(|| {
                durable.run(|| {
                    if flush {
                        rel.flush()
                    } else {
                        bed.checkpoint();
                        Ok(())
                    }
                })
            });
            looks.wait_reached();
            bed.disk.fail_write(0);
            writes.release();
            writer.join().unwrap().unwrap_err();
            let before = bed.disk.counts().writes;
            looks.release();
            durable.join().unwrap().unwrap();
            assert_eq!(bed.disk.counts().writes, before + 1, "flush {flush}");
        });
        assert_eq!(on_disk(&bed, &rel, Main, 2).bytes()[8184], 77, "flush {flush}");
    }
}

/// A page is changed while an image of it is on its way to the file: the next image waits for that one, which would else come last.
#[test]
fn of_two_images_of_a_page_the_younger_comes_last() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 4);
    bed.checkpoint();
    fill(&pin(&rel, 2), 77, 100);
    let writes = base::stop::arm("buffer.write.imaged");
    let waits = base::stop::arm("buffer.image.waits");
    let (first, second) = (writes.subject(), waits.subject());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| first.run(|| rel.flush()));
        writes.wait_reached();
        fill(&pin(&rel, 2), 78, 101);
        let second = scope.spawn(|| second.run(|| rel.flush()));
        waits.wait_reached();
        waits.release();
        writes.release();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(on_disk(&bed, &rel, Main, 2).bytes()[32], 78);
}

/// Readers set hints while the image is taken.
#[test]
fn an_image_waits_for_the_wal_of_hints_set_meanwhile() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 1);
    bed.checkpoint();
    let page = pin(&rel, 0);
    fill(&page, 77, 10);
    bed.wal.flush(base::Lsn(10)).unwrap();
    let latched = base::stop::arm("buffer.image.latched");
    let subject = latched.subject();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| subject.run(|| rel.flush()));
        latched.wait_reached();
        page.read().set_hint_after(base::Lsn(200), |p| p.or_flags(1));
        latched.release();
        flush.join().unwrap().unwrap();
    });
    assert_eq!(on_disk(&bed, &rel, Main, 0).flags() & 1, 1);
    assert_eq!(bed.wal.flushed.load(Ordering::SeqCst), 200);
}

/// The clock's hand has found a clean page, which somebody changes before it is taken out of its table.
#[test]
fn a_victim_that_was_changed_stays() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 17);
    bed.checkpoint();
    for block in 0..17 {
        assert_eq!(value(&pin(&rel, block)), u64::from(block));
    }
    let cached: Vec<u32> = (0..17).filter(|b| rel.is_cached(Main, BlockNumber(*b))).collect();
    let missing = (0..17).find(|b| !cached.contains(b)).unwrap();
    let found = base::stop::arm("buffer.evict.found");
    let subject = found.subject();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| subject.run(|| value(&pin(&rel, missing))));
        found.wait_reached();
        for block in &cached {
            fill(&pin(&rel, *block), 100 + u64::from(*block), 100);
        }
        found.release();
        assert_eq!(reader.join().unwrap(), u64::from(missing));
    });
    for block in cached {
        assert_eq!(value(&pin(&rel, block)), 100 + u64::from(block));
    }
}

/// A look-up finds a page in a frame that holds another one by the time it is pinned: it looks again, and leaves no pin behind.
#[test]
#[cfg(debug_assertions)]
fn a_frame_that_holds_another_page_by_then_is_left_alone() {
    let bed = bed(16);
    let rel = filled(&bed, 1, 2);
    bed.checkpoint();
    let buffers = |bed: &Bed| {
        let mut found = Vec::new();
        bed.pool.for_each_buffer(|b| found.push((b.tag.block.0, b.buffer, b.pins)));
        found.sort_unstable();
        found
    };
    // Only block 0 is cached, and the next page comes into its frame.
    for (block, buffer, _) in buffers(&bed) {
        assert!(block == 0 || bed.pool.evict(buffer).unwrap().evicted);
    }
    let found = stop::arm("buffer.pin.found");
    let subject = found.subject();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| subject.run(|| value(&pin(&rel, 0))));
        found.wait_reached();
        let frame = buffers(&bed)[0].1;
        assert!(bed.pool.evict(frame).unwrap().evicted);
        assert_eq!(value(&pin(&rel, 1)), 1);
        assert_eq!(buffers(&bed), [(1, frame, 0)]);
        found.release();
        assert_eq!(reader.join().unwrap(), 0);
    });
    let pins: Vec<_> = buffers(&bed).iter().map(|b| (b.0, b.2)).collect();
    assert_eq!(pins, [(0, 0), (1, 0)]);
}

/// Somebody waits for a frame while the relation goes for which it is: no page of it comes into the pool any more.
#[test]
fn a_relation_that_goes_meanwhile_gets_no_page() {
    let bed = bed(16);
    let id = filled(&bed, 1, 2).id();
    bed.checkpoint();
    bed.pool.open(id, Default::default()).forget();
    let gone = bed.pool.open(id, Default::default());
    assert_eq!(gone.len_blocks(Main).unwrap(), BlockNumber(2));
    // All frames hold pages of another one whose log is not durable.
    let other = filled(&bed, 2, 16);
    (0..16).for_each(|b| fill(&pin(&other, b), 7, 1000));
    assert_eq!((gone.cached_pages(), other.cached_pages()), (0, 16));
    let gate = bed.wal.gate.lock().unwrap();
    let arrived = bed.wal.arrived.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| gone.pin_to_overwrite(Main, BlockNumber(0)).map(|_| ()));
        while bed.wal.arrived.load(Ordering::SeqCst) == arrived {
            assert!(!late.is_finished());
            std::thread::yield_now();
        }
        gone.forget();
        drop(gate);
        assert_eq!(late.join().unwrap().unwrap_err().state(), SqlState::IO_ERROR);
    });
    assert_eq!(gone.cached_pages(), 0);
    // Its frame is not lost.
    let held: Vec<_> = (0..16).map(|b| pin(&other, b)).collect();
    assert_eq!(held.len(), 16);
}
