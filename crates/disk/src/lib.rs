//! Files: the two traits through which every byte of a data folder is read and written.
//!
//! # Purpose
//! [`Disk`] is a data folder, [`File`] an open file in it. [`os`] gives the real ones; [`sim`] a
//! folder in memory that loses what was not synced, tears writes, fails and fills up on demand, so
//! that crashes can be tried at every single operation.
//!
//! # Invariants
//! - Paths are relative to the data folder, with `/` between the parts, and never lead out of it.
//! - What [`File::write_at`] wrote is durable only after [`File::sync_data`]; a file's name (created,
//!   renamed, removed) only after [`Disk::sync_dir`] of its folder.
//! - A write is all or an error; after an error the range's content is unknown.

#![expect(unsafe_code, reason = "vectored reads and writes and hints through libc")]

mod os;
pub mod sim;
mod unsynced;

use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;

/// How [`Disk::open`] treats a file that is, or is not, there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// It must be there ([`io::ErrorKind::NotFound`] else).
    Existing,
    /// Made if it is not there.
    Create,
    /// It must not be there ([`io::ErrorKind::AlreadyExists`] else).
    CreateNew,
}

/// A data folder. All paths are relative to it.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Is there a file or folder of this name?
    ///
    /// # Errors
    /// The system's.
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// Removes a file; durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::NotFound`] if it is not there.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Renames a file, replacing `to` if it is there, in one step; durable after
    /// [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// The names in a folder (files and folders), without order. `""` is the data folder.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes a folder and those above it; it may be there already.
    ///
    /// # Errors
    /// The system's.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a folder and all in it.
    ///
    /// # Errors
    /// The system's.
    fn remove_dir_all(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a folder durable. `""` is the data folder.
    ///
    /// # Errors
    /// The system's.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Makes everything written and named in the data folder durable, in one go: for many files this is
    /// much cheaper than syncing each, but it may wait for what others wrote to the same file system.
    ///
    /// # Errors
    /// The system's; never to be retried.
    fn sync_all(&self) -> io::Result<()>;
}

/// An open file. Positions are bytes from its start.
pub trait File: Send + Sync + Debug {
    /// Reads into `buf`; the count is short only at the end of the file.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Reads into several buffers, as one operation if the system can.
    ///
    /// # Errors
    /// The system's.
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize>;
    /// Writes all of `buf`.
    ///
    /// # Errors
    /// The system's; then the content of the range is unknown.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Writes several buffers, as one operation if the system can.
    ///
    /// # Errors
    /// The system's; then the content of the range is unknown.
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()>;
    /// Makes the data written (and the length) durable: `fdatasync`.
    ///
    /// # Errors
    /// The system's; never to be retried, since the kernel may have dropped what it failed to write.
    fn sync_data(&self) -> io::Result<()>;
    /// The file's length.
    ///
    /// # Errors
    /// The system's.
    fn len(&self) -> io::Result<u64>;
    /// Is it empty?
    ///
    /// # Errors
    /// The system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file, or lengthens it with a hole.
    ///
    /// # Errors
    /// The system's.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space on the disk for the range, so that writes to it can't meet a full disk; the
    /// file grows to the end of the range, and what was not there reads as zeros.
    ///
    /// # Errors
    /// The system's: a full disk is met here.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Says that the range will be read soon.
    fn will_need(&self, offset: u64, len: u64);
    /// Starts writing the range out, without waiting.
    fn start_writeback(&self, offset: u64, len: u64);
    /// Takes the file for this process alone, until it is closed; false if another holds it.
    ///
    /// # Errors
    /// The system's.
    fn try_lock(&self) -> io::Result<bool>;
}

/// The data folder at `root` on the operating system's disk. The folder must be there.
///
/// # Errors
/// If `root` is not a folder.
pub fn os(root: std::path::PathBuf) -> io::Result<Arc<dyn Disk>> {
    Ok(Arc::new(os::OsDisk::new(root)?))
}

/// `disk` without its syncs: for `fsync = off`. A crash of the machine may leave anything.
pub fn without_sync(disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
    Arc::new(unsynced::UnsyncedDisk(disk))
}

/// Lets this process have as many files open as the system allows it, and says how many that are.
pub fn raise_open_file_limit() -> u64 {
    os::raise_open_file_limit()
}
