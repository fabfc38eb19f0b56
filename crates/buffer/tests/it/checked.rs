//! A disk that looks at every page written to a relation: its WAL must be durable, its checksum right, and it must lie
//! within the file.

use crate::common::FakeWal;
use disk::{Disk, File, OpenMode};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Debug)]
pub struct CheckedDisk {
    pub inner: Arc<dyn Disk>,
    pub wal: Arc<FakeWal>,
}

#[derive(Debug)]
struct CheckedFile {
    inner: Arc<dyn File>,
    wal: Arc<FakeWal>,
}

impl CheckedFile {
    fn check(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        assert_eq!(offset % 8192, 0);
        for (i, bytes) in buf.chunks(8192).enumerate() {
            let page = page::Page::from_bytes(bytes.try_into().unwrap());
            let block = u32::try_from(offset / 8192).unwrap() + i as u32;
            assert!(page.verify_checksum(block), "a page is written with a wrong checksum");
            let durable = self.wal.flushed.load(Ordering::SeqCst);
            assert!(page.lsn().0 <= durable, "a page left before its WAL");
            let end = offset + (i as u64 + 1) * 8192;
            if !page.is_all_zero() {
                assert!(end <= self.inner.len()?, "a write made a file longer");
            }
        }
        Ok(())
    }
}

impl Disk for CheckedDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(CheckedFile { inner, wal: self.wal.clone() }))
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn remove_dir_all(&self, path: &str) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }
    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn sync_all(&self) -> io::Result<()> {
        self.inner.sync_all()
    }
}

impl File for CheckedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.inner.read_vectored_at(bufs, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.check(buf, offset)?;
        self.inner.write_at(buf, offset)
    }
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for buf in bufs {
            self.check(buf, at)?;
            at += buf.len() as u64;
        }
        self.inner.write_vectored_at(bufs, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(offset, len)
    }
    fn will_need(&self, offset: u64, len: u64) {
        self.inner.will_need(offset, len);
    }
    fn start_writeback(&self, offset: u64, len: u64) {
        self.inner.start_writeback(offset, len);
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}
