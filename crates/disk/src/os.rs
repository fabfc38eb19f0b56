//! The operating system's files.
//!
//! # Crash cases
//! A write is split only if the system splits it; it may be torn at any sector by a power loss.
//! `sync_dir` opens the folder and syncs it: names made by `open`, `rename` and `remove` are not
//! durable before.

use crate::{Disk, File, OpenMode};
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The most buffers one vectored call takes.
const IOV_MAX: usize = 1024;

/// A data folder on the operating system's disk.
#[derive(Debug)]
pub(crate) struct OsDisk {
    root: PathBuf,
    /// Open from the start: `syncfs` on it tells of every failed write since.
    folder: fs::File,
}

#[derive(Debug)]
struct OsFile {
    file: fs::File,
}

impl OsDisk {
    pub(crate) fn new(root: PathBuf) -> io::Result<OsDisk> {
        if !fs::metadata(&root)?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let folder = fs::File::open(&root)?;
        Ok(OsDisk { root, folder })
    }

    /// The whole path, if `path` stays in the folder.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let relative = Path::new(path);
        if relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            Ok(self.root.join(relative))
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("path leaves the folder: {path}"),
            ))
        }
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        match mode {
            OpenMode::Existing => {}
            OpenMode::Create => {
                options.create(true).truncate(false);
            }
            OpenMode::CreateNew => {
                options.create_new(true);
            }
        }
        Ok(Arc::new(OsFile { file: options.open(self.path(path)?)? }))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.path(path)?.try_exists()
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from)?, self.path(to)?)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(dir)?)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.path(path)?)
    }

    fn remove_dir_all(&self, path: &str) -> io::Result<()> {
        fs::remove_dir_all(self.path(path)?)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        fs::File::open(self.path(path)?)?.sync_all()
    }

    fn sync_all(&self) -> io::Result<()> {
        // SAFETY: only an open descriptor.
        check(unsafe { libc::syncfs(self.folder.as_raw_fd()) })
    }
}

pub(crate) fn raise_open_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours, and as the call wants it.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 256;
        }
        if limit.rlim_cur < limit.rlim_max {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    limit.rlim_cur
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn position(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let mut rest = bufs;
        let mut done = 0usize;
        IoSliceMut::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let count = rest.len().min(IOV_MAX) as libc::c_int;
            let at = position(offset + done as u64)?;
            // SAFETY: IoSliceMut has the layout of iovec, and each points to memory that `rest`
            // borrows for writing; the descriptor is open while `self` lives.
            let n =
                unsafe { libc::preadv(self.file.as_raw_fd(), rest.as_mut_ptr().cast(), count, at) };
            if n < 0 {
                let e = io::Error::last_os_error();
                if e.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(e);
            }
            if n == 0 {
                break;
            }
            done += n as usize;
            IoSliceMut::advance_slices(&mut rest, n as usize);
        }
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut slices = bufs.to_vec();
        let mut rest = slices.as_mut_slice();
        let mut at = offset;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let count = rest.len().min(IOV_MAX) as libc::c_int;
            // SAFETY: IoSlice has the layout of iovec, and each points to memory that `rest`
            // borrows; the descriptor is open while `self` lives.
            let n = unsafe {
                libc::pwritev(self.file.as_raw_fd(), rest.as_ptr().cast(), count, position(at)?)
            };
            if n < 0 {
                let e = io::Error::last_os_error();
                if e.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(e);
            }
            if n == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero));
            }
            at += n as u64;
            IoSlice::advance_slices(&mut rest, n as usize);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            // SAFETY: only plain numbers and an open descriptor.
            let result = unsafe {
                libc::fallocate(self.file.as_raw_fd(), 0, position(offset)?, position(len)?)
            };
            let Err(e) = check(result) else { return Ok(()) };
            match e.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => return self.fill_with_zeros(offset, len),
                _ => return Err(e),
            }
        }
    }

    fn will_need(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (position(offset), position(len)) else { return };
        // SAFETY: a hint; only plain numbers and an open descriptor.
        unsafe {
            libc::posix_fadvise(self.file.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED);
        }
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (position(offset), position(len)) else { return };
        // SAFETY: a hint; only plain numbers and an open descriptor.
        unsafe {
            libc::sync_file_range(self.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE);
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }
}

impl OsFile {
    /// For file systems without `fallocate`: writes zeros past the end of the file. What lies
    /// before the end has its space already, or is a hole that the caller made.
    fn fill_with_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        static ZEROS: [u8; 65536] = [0; 65536];
        let end = offset + len;
        let mut at = offset.max(self.len()?);
        while at < end {
            let n = (end - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..n as usize], at)?;
            at += n;
        }
        Ok(())
    }
}
