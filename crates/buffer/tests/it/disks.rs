use crate::common::*;
use base::{BlockNumber, SqlState};
use buffer::{Persistence, Strategy};

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
