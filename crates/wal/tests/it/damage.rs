//! Torn and damaged logs end or are refused; they never panic and never give a wrong record.

use crate::crash::Random;
use base::{BlockNumber, Fork, Lsn, Oid, PageTag, RelationId, Xid};
use disk::sim::SimDisk;
use disk::{Disk, OpenMode};
use page::Page;
use std::sync::Arc;
use wal::{BlockFlags, FIRST_LSN, Reader, RecordBuilder, ResourceManager, Wal, WalConfig};

fn log(disk: &Arc<SimDisk>) -> Vec<Lsn> {
    let config = WalConfig { buffer_bytes: 64 << 10, ..WalConfig::default() };
    let wal = Wal::create(disk.clone(), config, FIRST_LSN).unwrap();
    let mut random = Random(42);
    let relation = RelationId { database: Oid(1), file_number: 2 };
    let mut page = Page::new_zeroed();
    page.init(0);
    for b in &mut page.bytes_mut()[4000..] {
        *b = (random.below(40) * random.below(2)) as u8;
    }
    let mut ends = vec![FIRST_LSN];
    for i in 0..6u32 {
        let tag = PageTag { relation, fork: Fork::Main, block: BlockNumber(i) };
        let other = PageTag { fork: Fork::VisibilityMap, ..tag };
        let mut r = RecordBuilder::new(ResourceManager::Heap, i as u8, Xid(7));
        let flags = if i % 2 == 0 { BlockFlags::STANDARD } else { BlockFlags::WILL_INIT };
        r.block(0, tag, &page, flags).block_data(0, &[i as u8; 33]);
        r.block(1, other, &page, BlockFlags::NO_IMAGE).data(&[1, 2, 3][..i as usize % 4]);
        ends.push(wal.insert(&r));
    }
    wal.flush(ends[6]).unwrap();
    ends
}

fn read_all(disk: &Arc<SimDisk>) -> Result<usize, base::Error> {
    let mut reader = Reader::new(disk.clone() as Arc<dyn Disk>, "wal", FIRST_LSN, 1);
    let mut n = 0;
    while reader.next()?.is_some() {
        n += 1;
    }
    Ok(n)
}

/// The first record past what another reader has found whole may have come to be there since, in part.
#[test]
fn what_is_trusted_ends_where_it_is_said_to() {
    let disk = SimDisk::new(1);
    let ends = log(&disk);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    let mut last = vec![0; (ends[6].0 - ends[5].0) as usize];
    file.read_at(&mut last, ends[5].0 - FIRST_LSN.0).unwrap();
    last[40] ^= 1;
    file.write_at(&last, ends[5].0 - FIRST_LSN.0).unwrap();
    for (trusted, read) in [(FIRST_LSN, 5), (ends[5], 5), (ends[6], 6)] {
        let reader = Reader::new(disk.clone() as Arc<dyn Disk>, "wal", FIRST_LSN, 1);
        let mut reader = reader.trusting(trusted);
        let mut n = 0;
        while matches!(reader.next_raw(), Ok(Some(_))) {
            n += 1;
        }
        assert_eq!(n, read, "trusting up to {trusted}");
    }
}

#[test]
fn a_tail_torn_at_any_byte() {
    let disk = SimDisk::new(1);
    let ends = log(&disk);
    assert_eq!(read_all(&disk).unwrap(), 6);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    let (from, to) = (ends[5].0 - FIRST_LSN.0, ends[6].0 - FIRST_LSN.0);
    let mut last = vec![0; (to - from) as usize];
    file.read_at(&mut last, from).unwrap();
    for keep in 0..last.len() {
        let mut torn = last.clone();
        torn[keep..].fill(0);
        if torn == last {
            continue;
        }
        file.write_at(&torn, from).unwrap();
        assert_eq!(read_all(&disk).unwrap(), 5, "{keep} bytes of the last record");
        file.set_len(from + keep as u64).unwrap();
        assert_eq!(read_all(&disk).unwrap(), 5, "file cut after {keep} bytes");
    }
}

#[test]
fn flipped_bits() {
    let disk = SimDisk::new(1);
    let ends = log(&disk);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    let mut random = Random(99);
    let total = ends[6].0 - FIRST_LSN.0;
    for _ in 0..3000 {
        let at = random.below(total);
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        let flipped = [byte[0] ^ (1 << random.below(8))];
        file.write_at(&flipped, at).unwrap();
        let hit = ends.iter().filter(|e| e.0 - FIRST_LSN.0 <= at).count() - 1;
        let n = read_all(&disk).unwrap();
        // Padding carries nothing.
        assert!(n == hit || n == 6, "byte {at}: {n} records, {hit} whole");
        file.write_at(&byte, at).unwrap();
    }
}

#[test]
fn nonsense_with_the_right_checksum() {
    let disk = SimDisk::new(1);
    let ends = log(&disk);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    let mut random = Random(5);
    let mut refused = 0;
    for _ in 0..3000 {
        let which = random.below(6) as usize;
        let (from, to) = (ends[which].0 - FIRST_LSN.0, ends[which + 1].0 - FIRST_LSN.0);
        let mut whole = vec![0; (to - from) as usize];
        file.read_at(&mut whole, from).unwrap();
        let good = whole.clone();
        let len = u32::from_le_bytes(std::array::from_fn(|i| whole[i])) as usize;
        // Mostly in the headers, where it hurts.
        for _ in 0..=random.below(3) {
            let range = if random.below(2) == 0 { 60 } else { len as u64 - 8 };
            let at = 8 + random.below(range);
            whole[at as usize % len] = random.below(256) as u8;
        }
        let mut tail = (len as u32).to_le_bytes().to_vec();
        tail.extend_from_slice(&ends[which].0.to_le_bytes());
        whole[..4].copy_from_slice(&(len as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&whole[8..len]), &tail);
        whole[4..8].copy_from_slice(&crc.to_le_bytes());
        file.write_at(&whole, from).unwrap();
        if let Err(e) = read_all(&disk) {
            refused += 1;
            assert!(e.to_string().contains("write-ahead log"), "{e}");
        }
        file.write_at(&good, from).unwrap();
    }
    assert!(refused > 100);
}

#[test]
fn a_former_life_does_not_go_on() {
    let disk = SimDisk::new(1);
    let ends = log(&disk);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    let at = ends[3].0 - FIRST_LSN.0;
    let mut lost = vec![0; (ends[4].0 - ends[3].0) as usize];
    file.read_at(&mut lost, at).unwrap();
    // Record 3 was torn, 4 and 5 reached the disk.
    file.write_at(&[0; 8], at).unwrap();
    assert_eq!(read_all(&disk).unwrap(), 3);
    let wal = Wal::open(disk.clone(), WalConfig::default(), ends[3], FIRST_LSN).unwrap();
    let mut r = RecordBuilder::new(ResourceManager::Heap, 9, Xid(8));
    r.data(&vec![5; lost.len() - 20]);
    assert_eq!(wal.insert(&r), ends[4]);
    wal.flush(ends[4]).unwrap();
    assert_eq!(read_all(&disk).unwrap(), 4);
}

/// The new record ends with a block of the file, so that no zeros are written behind it; and there a record of the former life begins.
#[test]
fn a_former_life_does_not_go_on_behind_a_whole_block() {
    let disk = SimDisk::new(1);
    let config = WalConfig { buffer_bytes: 64 << 10, ..WalConfig::default() };
    let insert = |wal: &Wal, content: u8, len: usize| {
        let mut r = RecordBuilder::new(ResourceManager::Heap, 9, Xid(8));
        r.data(&vec![content; len]);
        wal.insert(&r)
    };
    let wal = Wal::create(disk.clone(), config.clone(), FIRST_LSN).unwrap();
    let first = insert(&wal, 1, 100);
    let rest = 8192 - (first.0 % 4096) as usize - 20;
    let second = insert(&wal, 2, rest);
    assert_eq!(second.0 % 4096, 0);
    wal.flush(insert(&wal, 3, 100)).unwrap();
    drop(wal);
    assert_eq!(read_all(&disk).unwrap(), 3);
    let file = disk.open("wal/000000010000000000000001", OpenMode::Existing).unwrap();
    file.write_at(&[0; 8], first.0 - FIRST_LSN.0).unwrap();
    let wal = Wal::open(disk.clone(), config, first, FIRST_LSN).unwrap();
    assert_eq!(insert(&wal, 4, rest), second);
    wal.flush(second).unwrap();
    assert_eq!(read_all(&disk).unwrap(), 2);
}
