use crate::common::*;
use base::{BlockNumber, SqlState};
use buffer::{Persistence, ReadStream, RelationHandle, Strategy};
use disk::sim::{Fault, Operation};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

#[test]
fn a_full_disk_fails_the_extension_and_nothing_else() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 4);
    bed.checkpoint();
    bed.disk.set_free_space(3 * 8192 + 100);
    for count in [5, 9] {
        let e = rel.extend(Main, count, &mut Strategy::Normal).unwrap_err();
        // At most an eighth of the pool at once is asked for, here eight pages.
        assert_eq!(e.state(), SqlState::DISK_FULL, "{e}");
        assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(4));
        let file = disk::Disk::open(&*bed.disk, "base/5/1", disk::OpenMode::Existing).unwrap();
        assert_eq!(file.len().unwrap(), 4 * 8192, "what there was room for is given back");
    }
    fill(&pin(&rel, 1), 50, 50);
    bed.checkpoint();
    assert_eq!(on_disk(&bed, &rel, Main, 1).bytes()[32], 50);
    bed.disk.set_free_space(1 << 30);
    let page = rel.extend_one(Main, &mut Strategy::Normal).unwrap();
    assert_eq!(page.block(), BlockNumber(4));
    assert!(bed.pool.failure().is_none());
}

#[test]
fn a_failed_sync_is_final() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 4);
    let told = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let hook = told.clone();
    bed.pool.on_failure(move |why| *hook.lock().unwrap() = why.to_owned());
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    bed.disk.fail_sync(0);
    assert!(bed.pool.sync_all_pending().is_err());
    bed.disk.heal();
    assert!(bed.pool.sync_all_pending().is_err());
    assert!(told.lock().unwrap().contains("could not fsync file \"base/5/1\""));
    fill(&pin(&rel, 0), 9, 9);
    assert!(bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).is_err());
    assert!(rel.extend_one(Main, &mut Strategy::Normal).is_err());
}

/// A checkpoint takes the file off the list of those to be synced while a flush is about to sync it, and can't.
#[test]
fn a_flush_that_fails_leaves_its_file_to_be_synced() {
    let mut config = config(64);
    config.open_files_max = 8;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 1);
    let taken = base::stop::arm("buffer.flush.taken");
    let subject = taken.subject();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| subject.run(|| rel.flush()));
        taken.wait_reached();
        bed.checkpoint();
        // Its file has to be opened again.
        (2..40).for_each(|n| drop(filled(&bed, n, 1)));
        bed.disk.inject(Fault {
            operation: Operation::Name,
            path_contains: "base/5/1".to_owned(),
            after: 0,
            error: libc::EACCES,
            once: true,
        });
        taken.release();
        flush.join().unwrap().unwrap_err();
    });
    bed.checkpoint();
    fill(&pin(&rel, 0), 9, 9);
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 1);
}

/// That a file does not open says nothing of what it holds: it, those after it and their folder are left to the next checkpoint.
#[test]
fn a_file_that_does_not_open_is_synced_later() {
    let mut config = config(64);
    config.open_files_max = 8;
    let bed = bed_with(config);
    let rels: Vec<_> = (1..20).map(|n| filled(&bed, n, 1)).collect();
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    bed.disk.inject(Fault {
        operation: Operation::Name,
        path_contains: "base/5/10".to_owned(),
        after: 0,
        error: libc::EACCES,
        once: true,
    });
    let before = bed.disk.counts().dir_syncs;
    bed.pool.sync_all_pending().unwrap_err();
    assert!(bed.pool.failure().is_none());
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 10);
    assert!(bed.disk.counts().dir_syncs > before);
    fill(&pin(&rels[9], 0), 9, 9);
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 1);
}

#[test]
fn removed_files_are_not_synced() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 4);
    bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    bed.pool.unlink(rel.id()).unwrap();
    assert_eq!(bed.pool.sync_all_pending().unwrap().files, 0);
}

#[test]
fn temporary_and_unlogged_relations() {
    let bed = bed(64);
    let temp = bed.pool.create(rel(1), Persistence::Temp).unwrap();
    let unlogged = bed.pool.create(rel(2), Persistence::Unlogged).unwrap();
    for r in [&temp, &unlogged] {
        fill(&r.extend_one(Main, &mut Strategy::Normal).unwrap(), 1, 0);
    }
    let done = bed.checkpoint();
    assert_eq!(done.pages_written, 0);
    let all = buffer::CheckpointOptions { unlogged: true, ..Default::default() };
    let done = bed.pool.checkpoint_write(all, &mut |_| Ok(())).unwrap();
    assert_eq!(done.pages_written, 1);
    bed.disk.fail_sync(1_000_000);
    bed.pool.sync_all_pending().unwrap();
}

#[test]
fn many_files_few_descriptors() {
    let mut config = config(64);
    config.open_files_max = 8;
    let bed = bed_with(config);
    let rels: Vec<_> = (1..40).map(|n| filled(&bed, n, 3)).collect();
    bed.checkpoint();
    for (i, r) in rels.iter().enumerate() {
        assert_eq!(value(&pin(r, 2)), 2, "{i}");
    }
}

#[test]
fn a_checkpoint_writes_neighbours_together_and_in_order() {
    let bed = bed(512);
    let a = filled(&bed, 1, 100);
    let _b = filled(&bed, 2, 50);
    let before = bed.disk.counts().writes;
    let done = bed.checkpoint();
    assert_eq!((done.pages_total, done.pages_written), (150, 150));
    let writes = bed.disk.counts().writes - before;
    assert_eq!(writes as usize, done.writes);
    // An eighth of 512 is 64 pages at once.
    assert_eq!(writes, 3);
    assert_eq!(bed.checkpoint().pages_written, 0);
    fill(&pin(&a, 10), 1, 1);
    assert_eq!(bed.checkpoint().pages_written, 1);
}

/// A block's number follows that of the page before it, which is another file's.
#[test]
fn a_write_is_of_one_file() {
    use base::Fork::VisibilityMap;
    for staged in [false, true] {
        let bed = bed(512);
        let rels = [filled(&bed, 1, 6), filled(&bed, 2, 12)];
        drop(rels[1].extend(VisibilityMap, 16, &mut Strategy::Normal).unwrap());
        bed.checkpoint();
        rels.iter().for_each(RelationHandle::forget);
        let [a, b] = [1, 2].map(|n| bed.pool.open(rel(n), Persistence::Permanent));
        let places = [(&a, Main, 2..6), (&b, Main, 6..12), (&b, VisibilityMap, 12..16)];
        let mut strategy = if staged { Strategy::vacuum(&bed.pool, 8) } else { Strategy::Normal };
        for (rel, fork, blocks) in &places {
            for block in blocks.clone() {
                let page = rel.pin(*fork, BlockNumber(block), &mut strategy).unwrap();
                fill(&page, 1000 + u64::from(block), 1000);
            }
        }
        if staged {
            assert_eq!(bed.pool.staging_status().staged, 13);
            bed.pool.write_behind_round().unwrap();
        }
        bed.checkpoint();
        for (rel, fork, blocks) in places {
            for block in blocks {
                let page = on_disk(&bed, rel, fork, block);
                assert_eq!(page.bytes()[32..40], (1000 + u64::from(block)).to_le_bytes());
            }
        }
    }
}

#[test]
fn part_of_a_block_at_the_end_does_not_count_and_does_not_show() {
    use disk::Disk;
    for count in [1, 16] {
        let bed = bed(256);
        let id = filled(&bed, 1, 2).id();
        bed.checkpoint();
        let file = bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap();
        file.write_at(&[7; 3000], 2 * 8192).unwrap();
        let again = bed.reopened(256);
        let rel = again.pool.open(id, Persistence::Permanent);
        assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(2));
        drop(rel.extend(Main, count, &mut Strategy::Normal).unwrap());
        let again = bed.reopened(256);
        let rel = again.pool.open(id, Persistence::Permanent);
        assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(2 + count as u32));
        assert!(pin(&rel, 2).read().is_all_zero());
    }
}

/// Reads and writes fail now and then: each failure is its operation's error, and nothing is lost, stuck or wrong.
#[test]
fn single_failures_lose_nothing() {
    for seed in 0..6 {
        let mut config = config(24);
        config.staging_frames = 8;
        let bed = bed_with(config);
        let rel = filled(&bed, 1, 30);
        let mut model: Vec<u64> = (0..30).collect();
        let mut rng = SmallRng::seed_from_u64(seed);
        let (mut failed, mut lsn) = (0, 100);
        let mut strategies =
            [Strategy::Normal, Strategy::vacuum(&bed.pool, 16), Strategy::bulk_write(&bed.pool)];
        for step in 0..400 {
            if rng.random_range(0..8) == 0 {
                let read = rng.random_range(0..2) == 0;
                bed.disk.inject(Fault {
                    operation: if read { Operation::Read } else { Operation::Write },
                    path_contains: String::new(),
                    after: rng.random_range(0..4),
                    error: if read { libc::EIO } else { libc::ENOSPC },
                    once: true,
                });
            }
            let strategy = &mut strategies[rng.random_range(0..3)];
            let block = BlockNumber(rng.random_range(0..model.len() as u32));
            let ok = match rng.random_range(0..20) {
                0..6 => rel.pin(Main, block, strategy).map(|page| {
                    assert_eq!(value(&page), model[block.0 as usize]);
                }),
                6..12 => rel.pin(Main, block, strategy).map(|page| {
                    lsn += 1;
                    fill(&page, step, lsn);
                    model[block.0 as usize] = step;
                }),
                12..14 => rel.extend(Main, 2, strategy).map(|pages| {
                    for page in pages {
                        assert_eq!(page.block().0 as usize, model.len());
                        fill(&page, step, lsn);
                        model.push(step);
                    }
                }),
                14 => {
                    // A failure here would be final (the next test).
                    bed.disk.heal();
                    let len = model.len() as u32 - rng.random_range(0..3);
                    rel.truncate(Main, BlockNumber(len)).map(|()| model.truncate(len as usize))
                }
                15..17 => {
                    let stream =
                        ReadStream::new(&rel, Main, strategy.fresh(), (0..20).map(BlockNumber));
                    let mut result = Ok(());
                    for (b, page) in stream.enumerate() {
                        match page {
                            Ok(page) => assert_eq!(value(&page), model[page.block().0 as usize]),
                            Err(e) => result = Err(e),
                        }
                        assert!(b <= 20);
                    }
                    result
                }
                17 => bed.pool.write_behind_round().map(|_| ()),
                _ => bed.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).map(|_| ()),
            };
            if let Err(e) = ok {
                failed += 1;
                assert!([SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&e.state()), "{e}");
            }
        }
        assert!(failed > 0);
        bed.disk.heal();
        for (b, v) in model.iter().enumerate() {
            assert_eq!(value(&pin(&rel, b as u32)), *v, "seed {seed}, block {b}");
        }
        bed.checkpoint();
        for (b, v) in model.iter().enumerate() {
            assert_eq!(on_disk(&bed, &rel, Main, b as u32).bytes()[32..40], v.to_le_bytes());
        }
        while model.len() < 24 {
            drop(rel.extend_one(Main, &mut Strategy::Normal).unwrap());
            model.push(0);
        }
        let held: Vec<_> = (0..24).map(|b| pin(&rel, b)).collect();
        assert_eq!(held.len(), 24, "a frame was lost");
        drop(held);
        bed.pool.unlink(rel.id()).unwrap();
        assert_eq!(bed.pool.table_nodes(), 0);
        let status = bed.pool.staging_status();
        assert_eq!((status.staged, status.owed), (0, 0));
    }
}

#[test]
fn a_failed_cut_is_final() {
    let bed = bed(64);
    let rel = filled(&bed, 1, 4);
    bed.disk.fail_write(0);
    assert!(rel.truncate(Main, BlockNumber(2)).is_err());
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(2));
    bed.disk.heal();
    assert!(bed.pool.failure().unwrap().contains("could not truncate file"));
    assert!(rel.extend_one(Main, &mut Strategy::Normal).is_err());
}

/// Sessions, sorts and the log took the last descriptors: files that are open make room for one to be opened, or made.
#[test]
fn open_files_make_room_where_descriptors_run_out() {
    let mut config = config(64);
    config.open_files_max = 8;
    let bed = bed_with(config);
    let first = filled(&bed, 1, 1);
    (2..30).for_each(|n| drop(filled(&bed, n, 1)));
    bed.checkpoint();
    for path in ["base/5/1", "base/5/50"] {
        bed.disk.inject(Fault {
            operation: Operation::Name,
            path_contains: path.to_owned(),
            after: 0,
            error: libc::EMFILE,
            once: true,
        });
    }
    fill(&pin(&first, 0), 7, 7);
    bed.checkpoint();
    filled(&bed, 50, 1);
    bed.checkpoint();
    assert_eq!(on_disk(&bed, &first, Main, 0).bytes()[32], 7);
}

/// No file can be opened just now: a truncation is refused before it has done anything.
#[test]
fn a_cut_whose_file_does_not_open_cuts_nothing() {
    use disk::Disk;
    let mut config = config(64);
    config.open_files_max = 8;
    let bed = bed_with(config);
    let rel = filled(&bed, 1, 4);
    bed.checkpoint();
    // So that its file is closed; its length is known.
    let others: Vec<_> = (2..30).map(|n| filled(&bed, n, 1)).collect();
    bed.checkpoint();
    bed.disk.inject(Fault {
        operation: Operation::Name,
        path_contains: "base/5/1".to_owned(),
        after: 0,
        error: libc::EMFILE,
        once: false,
    });
    assert!(rel.truncate(Main, BlockNumber(1)).is_err());
    bed.disk.heal();
    assert_eq!(rel.len_blocks(Main).unwrap(), BlockNumber(4));
    assert_eq!(value(&pin(&rel, 3)), 3);
    rel.truncate(Main, BlockNumber(1)).unwrap();
    bed.checkpoint();
    assert_eq!(bed.disk.open("base/5/1", disk::OpenMode::Existing).unwrap().len().unwrap(), 8192);
    drop(others);
}
