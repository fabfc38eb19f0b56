//! Power is lost at every operation of a workload: what was flushed is there, in order, and nothing
//! that was not inserted.

use base::{Lsn, Xid};
use disk::Disk;
use disk::sim::SimDisk;
use std::sync::Arc;
use wal::{FIRST_LSN, Reader, RecordBuilder, ResourceManager, SEGMENT_SIZE, Wal, WalConfig};

fn config() -> WalConfig {
    WalConfig { buffer_bytes: 64 << 10, ..WalConfig::default() }
}

/// A small deterministic generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn body(xid: u64) -> Vec<u8> {
    let mut random = Random(xid.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let len = match random.below(20) {
        0 => 9000 + random.below(60_000),
        1..5 => random.below(5000),
        _ => random.below(200),
    };
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// Reads the whole log: the XIDs in it, and its end.
fn read(disk: &Arc<SimDisk>, start: Lsn) -> (Vec<u64>, Lsn) {
    let mut reader = Reader::new(disk.clone() as Arc<dyn Disk>, "wal", start, 1);
    let mut xids = Vec::new();
    while let Some(record) = reader.next().expect("readable log") {
        assert_eq!(record.data, body(record.xid.0));
        xids.push(record.xid.0);
    }
    assert!(reader.end_reason().is_some());
    (xids, reader.position())
}

/// One life: inserts records `first..`, flushing now and then; returns those surely durable.
fn live(wal: &Wal, first: u64, count: u64, random: &mut Random) -> u64 {
    let mut acknowledged = first;
    for xid in first..first + count {
        let mut record = RecordBuilder::new(ResourceManager::Heap, 0, Xid(xid));
        record.data(&body(xid));
        let end = wal.insert(&record);
        if random.below(3) == 0 {
            if wal.flush(end).is_err() {
                break;
            }
            acknowledged = xid + 1;
        }
    }
    acknowledged
}

#[test]
fn nothing_flushed_is_lost() {
    // Not far from the end of a segment, so that the second life crosses it.
    let start = Lsn(FIRST_LSN.0 + SEGMENT_SIZE - 200_000);
    let fresh = SimDisk::new(1);
    drop(Wal::create(fresh.clone(), config(), start).unwrap());
    let mut crossed = 0;
    for trial in 0..60u64 {
        let mut random = Random(trial * 77 + 5);
        let mut disk = fresh.snapshot(trial);
        let mut expected: Vec<u64> = Vec::new();
        let mut sure = 0;
        for life in 0..4u64 {
            let (found, end) = read(&disk, start);
            // What was acknowledged is there; what is there is what was inserted, in order.
            assert!(found.len() >= sure, "trial {trial}, life {life}: lost records");
            assert_eq!(found, expected[..found.len()], "trial {trial}, life {life}");
            expected = found;
            crossed += u64::from(end.0 / SEGMENT_SIZE > start.0 / SEGMENT_SIZE);
            // The first lives are cut short at each operation in turn.
            let at = if life < 2 { trial } else { random.below(200) };
            disk.crash_at(at);
            let first = (trial * 10 + life) * 1000;
            let count = 40;
            sure = expected.len();
            if let Ok(wal) = Wal::open(disk.clone(), config(), end, start) {
                let acknowledged = live(&wal, first, count, &mut random);
                sure += (acknowledged - first) as usize;
            }
            expected.extend(first..first + count);
            disk.crash();
            disk = disk.after_crash(trial * 31 + life);
        }
    }
    assert!(crossed > 5, "only {crossed} crossed a segment's end");
}

#[test]
fn recycled_segments_hold_nothing() {
    let disk = SimDisk::new(9);
    let wal = Wal::create(disk.clone(), config(), FIRST_LSN).unwrap();
    let mut xid = 0;
    let mut fill = |wal: &Wal, upto: u64| {
        while wal.insert_lsn().0 < upto {
            let mut record = RecordBuilder::new(ResourceManager::Heap, 0, Xid(xid));
            record.data(&[7; 500_000]);
            wal.insert(&record);
            xid += 1;
        }
        wal.flush(wal.insert_lsn()).unwrap();
    };
    fill(&wal, 4 * SEGMENT_SIZE);
    wal.begin_checkpoint();
    let stats = wal.recycle_before(wal.redo_lsn(), 2).unwrap();
    assert_eq!((stats.recycled, stats.removed), (2, 1));
    let start = wal.insert_lsn();
    fill(&wal, 5 * SEGMENT_SIZE);
    let end = wal.insert_lsn();
    assert_eq!(wal.stats().segments_created, 3);
    disk.crash();
    let disk = disk.after_crash(1);
    let mut reader = Reader::new(disk.clone(), "wal", start, 1);
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.position(), end);

    // The WAL writer makes the next segment before it is needed.
    let wal = Wal::open(disk.clone(), config(), end, end).unwrap();
    fill(&wal, 5 * SEGMENT_SIZE + SEGMENT_SIZE / 2);
    wal.writer_round().unwrap();
    assert_eq!(wal.stats().segments_created, 1);
    wal.writer_round().unwrap();
    assert!(disk.exists(&format!("wal/{}", wal::segment_name(1, 6))).unwrap());
    fill(&wal, 6 * SEGMENT_SIZE + 100);
    assert_eq!(wal.stats().segments_created, 1);
    let end = wal.insert_lsn();
    disk.crash();
    let mut reader = Reader::new(disk.after_crash(3), "wal", start, 1);
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.position(), end);
}

/// Whoever shut down in order may have died between giving a segment its new name and making that durable.
#[test]
fn a_new_name_that_the_last_process_did_not_sync() {
    let disk = SimDisk::new(9);
    let wal = Wal::create(disk.clone(), config(), FIRST_LSN).unwrap();
    let fill = |wal: &Wal, upto: u64| {
        while wal.insert_lsn().0 < upto {
            let mut record = RecordBuilder::new(ResourceManager::Heap, 0, Xid(3));
            record.data(&[7; 500_000]);
            wal.insert(&record);
        }
        wal.flush(wal.insert_lsn()).unwrap();
    };
    fill(&wal, 4 * SEGMENT_SIZE);
    wal.begin_checkpoint();
    disk.fail_sync(0);
    wal.recycle_before(wal.redo_lsn(), 2).unwrap_err();
    let start = wal.insert_lsn();
    drop(wal);
    let clean = WalConfig { clean: true, ..config() };
    let wal = Wal::open(disk.clone(), clean, start, start).unwrap();
    fill(&wal, 5 * SEGMENT_SIZE);
    let end = wal.insert_lsn();
    disk.crash();
    for seed in 0..6 {
        let mut reader = Reader::new(disk.after_crash(seed), "wal", start, 1);
        assert_eq!(reader.skip_to_end().unwrap(), end, "seed {seed}");
    }
}
