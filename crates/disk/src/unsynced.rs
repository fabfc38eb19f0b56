//! A disk whose syncs do nothing.

use crate::{Disk, File, OpenMode};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct UnsyncedDisk(pub Arc<dyn Disk>);

#[derive(Debug)]
struct UnsyncedFile(Arc<dyn File>);

impl Disk for UnsyncedDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.0.open(path, mode)?)))
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn remove_dir_all(&self, path: &str) -> io::Result<()> {
        self.0.remove_dir_all(path)
    }
    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

impl File for UnsyncedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.0.read_vectored_at(bufs, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(buf, offset)
    }
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.0.write_vectored_at(bufs, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.allocate(offset, len)
    }
    fn will_need(&self, offset: u64, len: u64) {
        self.0.will_need(offset, len);
    }
    fn start_writeback(&self, offset: u64, len: u64) {
        self.0.start_writeback(offset, len);
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}
