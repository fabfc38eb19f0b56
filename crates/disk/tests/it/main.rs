//! The two disks behave alike, and the simulated one loses what it may lose.

use disk::sim::{Fault, Operation, SimDisk};
use disk::{Disk, OpenMode};
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

fn both() -> Vec<(Option<tempfile::TempDir>, Arc<dyn Disk>)> {
    let dir = tempfile::tempdir().unwrap();
    let os = disk::os(dir.path().to_owned()).unwrap();
    vec![(Some(dir), os), (None, SimDisk::new(1) as Arc<dyn Disk>)]
}

#[test]
fn files_and_names() {
    for (_dir, disk) in both() {
        disk.create_dir("a/b").unwrap();
        disk.create_dir("a/b").unwrap();
        assert!(disk.open("a/b/f", OpenMode::Existing).is_err());
        let f = disk.open("a/b/f", OpenMode::CreateNew).unwrap();
        assert!(disk.open("a/b/f", OpenMode::CreateNew).is_err());
        assert!(disk.open("a/none/f", OpenMode::Create).is_err());
        f.write_at(b"hello", 5000).unwrap();
        assert_eq!(f.len().unwrap(), 5005);
        let mut buf = [9; 10];
        assert_eq!(f.read_at(&mut buf, 4998).unwrap(), 7);
        assert_eq!(&buf[..7], b"\0\0hello");
        assert_eq!(f.read_at(&mut buf, 6000).unwrap(), 0);
        f.write_vectored_at(&[IoSlice::new(b"xy"), IoSlice::new(b""), IoSlice::new(b"z")], 1)
            .unwrap();
        let (mut one, mut two) = ([0; 2], [0; 3]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(f.read_vectored_at(&mut bufs, 0).unwrap(), 5);
        assert_eq!((&one, &two), (b"\0x", b"yz\0"));
        f.set_len(3).unwrap();
        f.allocate(0, 10_000).unwrap();
        assert_eq!(f.len().unwrap(), 10_000);
        assert_eq!(f.read_at(&mut buf, 0).unwrap(), 10);
        assert_eq!(&buf, b"\0xy\0\0\0\0\0\0\0");
        f.sync_data().unwrap();
        disk.sync_dir("a/b").unwrap();
        disk.sync_all().unwrap();
        disk.rename("a/b/f", "a/b/g").unwrap();
        disk.open("a/x", OpenMode::Create).unwrap();
        let mut names = disk.list("a").unwrap();
        names.sort();
        assert_eq!(names, ["b", "x"]);
        assert!(!disk.exists("a/b/f").unwrap() && disk.exists("a/b/g").unwrap());
        assert!(disk.remove("a/b/f").is_err());
        assert!(f.try_lock().unwrap());
        let again = disk.open("a/b/g", OpenMode::Existing).unwrap();
        assert!(!again.try_lock().unwrap());
        drop(f);
        assert!(again.try_lock().unwrap());
        disk.remove_dir_all("a").unwrap();
        assert!(!disk.exists("a/b/g").unwrap());
        assert!(disk.list("").unwrap().is_empty());
    }
}

#[test]
fn the_folder_is_not_left() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    assert!(disk.open("../x", OpenMode::Create).is_err());
    assert!(disk.open("/etc/passwd", OpenMode::Existing).is_err());
    assert!(disk::os(dir.path().join("none")).is_err());
}

#[test]
fn only_what_was_synced_is_sure() {
    let mut outcomes = std::collections::HashSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(7);
        let f = disk.open("f", OpenMode::Create).unwrap();
        f.write_at(&[1; 2048], 0).unwrap();
        f.sync_data().unwrap();
        disk.sync_dir("").unwrap();
        f.write_at(&[2; 2048], 0).unwrap();
        let late = disk.open("late", OpenMode::Create).unwrap();
        late.write_at(b"x", 0).unwrap();
        late.sync_data().unwrap();
        disk.crash();
        assert!(f.write_at(b"x", 0).is_err() && disk.open("f", OpenMode::Existing).is_err());
        let after = disk.after_crash(seed);
        let f = after.open("f", OpenMode::Existing).unwrap();
        let mut buf = [0; 2048];
        assert_eq!(f.read_at(&mut buf, 0).unwrap(), 2048);
        // Sectors are old or new, never a mixture.
        for sector in buf.chunks(512) {
            assert!(sector == [1; 512] || sector == [2; 512]);
        }
        outcomes.insert((buf.to_vec(), after.exists("late").unwrap()));
    }
    assert!(outcomes.len() > 10, "{}", outcomes.len());
    assert!(outcomes.contains(&(vec![1; 2048], false)));
    assert!(outcomes.contains(&(vec![2; 2048], true)));
}

#[test]
fn equal_seeds_end_equally() {
    let run = || {
        let disk = SimDisk::new(3);
        let f = disk.open("f", OpenMode::Create).unwrap();
        disk.sync_dir("").unwrap();
        for i in 0..100u64 {
            f.write_at(&[i as u8; 700], i * 300).unwrap();
        }
        let mut buf = vec![0; 40_000];
        let f = disk.after_crash(11).open("f", OpenMode::Existing).unwrap();
        let n = f.read_at(&mut buf, 0).unwrap();
        (n, buf)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_failed_sync_loses_the_data() {
    let disk = SimDisk::new(1);
    let f = disk.open("f", OpenMode::Create).unwrap();
    disk.sync_dir("").unwrap();
    disk.fail_sync(0);
    f.write_at(b"lost", 0).unwrap();
    assert_eq!(f.sync_data().unwrap_err().raw_os_error(), Some(5));
    f.sync_data().unwrap();
    for seed in 0..20 {
        let f = disk.after_crash(seed).open("f", OpenMode::Existing).unwrap();
        assert_eq!(f.len().unwrap(), 0);
    }
}

#[test]
fn faults_and_a_full_disk() {
    let disk = SimDisk::new(1);
    let f = disk.open("data", OpenMode::Create).unwrap();
    disk.fail_write(1);
    f.write_at(b"a", 0).unwrap();
    assert!(f.write_at(b"b", 0).is_err());
    f.write_at(b"c", 0).unwrap();
    disk.inject(Fault {
        operation: Operation::Read,
        path_contains: "dat".into(),
        after: 0,
        error: 5,
        once: false,
    });
    assert!(f.read_at(&mut [0], 0).is_err() && f.read_at(&mut [0], 0).is_err());
    disk.heal();
    disk.set_free_space(8192);
    f.write_at(&[1; 4096], 4096).unwrap();
    f.allocate(8192, 4096).unwrap();
    assert_eq!(f.write_at(b"x", 12288).unwrap_err().raw_os_error(), Some(28));
    f.write_at(&[2; 4096], 8192).unwrap();
    f.set_len(4096).unwrap();
    f.write_at(b"x", 12288).unwrap();
}

#[test]
fn power_goes_at_a_given_operation() {
    for n in 0..4 {
        let disk = SimDisk::new(1);
        disk.crash_at(n);
        let run = || -> std::io::Result<()> {
            let f = disk.open("f", OpenMode::Create)?;
            f.write_at(b"a", 0)?;
            f.sync_data()?;
            disk.sync_dir("")
        };
        assert!(run().is_err());
        assert!(disk.has_crashed());
        assert_eq!(disk.counts().operations, n + 1);
    }
}
