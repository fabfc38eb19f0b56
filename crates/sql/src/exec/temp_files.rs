//! Temporary files: where they are, how much may be in them, and what is told of them.
//!
//! # Invariants
//! A session's files together hold no more than `temp_file_limit`: their space is asked for before it is written to. A session stays on its
//! thread, so what there is of it is the thread's.
//!
//! # Differs from PostgreSQL
//! The files have no names: what a crash leaves needs no clearing up. `log_temp_files` calls them what PostgreSQL would.

use base::{Result, bail};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Temporary files that were used and are gone.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct TempFiles {
    /// How many.
    pub files: u64,
    /// The bytes in them.
    pub bytes: u64,
}

/// `temp_file_limit` and `log_temp_files`, in kB; negative: no limit, no line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TempFileBounds {
    pub limit_kb: i64,
    pub log_kb: i64,
}

impl TempFileBounds {
    const NONE: TempFileBounds = TempFileBounds { limit_kb: -1, log_kb: -1 };

    /// May there be so many bytes in all?
    fn allow(self, bytes: u64) -> Result<()> {
        let limit_kb = self.limit_kb;
        if u64::try_from(limit_kb).is_ok_and(|kb| bytes > kb * 1024) {
            bail!(
                CONFIGURATION_LIMIT_EXCEEDED,
                "temporary file size exceeds \"temp_file_limit\" ({limit_kb}kB)"
            );
        }
        Ok(())
    }

    /// Tells of a file that is gone, if it is large enough.
    fn tell(self, pid: i32, number: u64, bytes: u64) {
        if u64::try_from(self.log_kb).is_ok_and(|kb| bytes / 1024 >= kb) {
            let message =
                format!("temporary file: path \"{FOLDER}/pgsql_tmp{pid}.{number}\", size {bytes}");
            base::log::write_amid(&message, None);
        }
    }
}

thread_local! {
    static GONE: Cell<TempFiles> = const { Cell::new(TempFiles { files: 0, bytes: 0 }) };
    static PLACE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    static BOUNDS: Cell<TempFileBounds> = const { Cell::new(TempFileBounds::NONE) };
    /// Bytes in the files there are.
    static IN_USE: Cell<u64> = const { Cell::new(0) };
    /// How many there have been.
    static MADE: Cell<u64> = const { Cell::new(0) };
    /// Bytes written to them, and read from them.
    static MOVED: Cell<TempMoved> = const { Cell::new(TempMoved { read: 0, written: 0 }) };
}

/// What a thread has moved to and from temporary files, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct TempMoved {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// What this thread has moved so far.
pub(crate) fn temp_moved() -> TempMoved {
    MOVED.get()
}

/// This thread has read so many bytes of a temporary file.
pub(super) fn note_read(bytes: usize) {
    let moved = MOVED.get();
    MOVED.set(TempMoved { read: moved.read + bytes as u64, ..moved });
}

fn note_written(bytes: u64) {
    let _ = MOVED.try_with(|all| {
        let moved = all.get();
        all.set(TempMoved { written: moved.written + bytes, ..moved });
    });
}

/// Where they are, in the data folder.
pub(crate) const FOLDER: &str = "base/pgsql_tmp";

/// This thread's temporary files are in this data folder from now on; without one, where the system has such.
pub(crate) fn keep_temp_files_in(data_folder: &str) {
    let place = (!data_folder.is_empty()).then(|| Path::new(data_folder).join(FOLDER));
    PLACE.with_borrow_mut(|p| *p = place);
}

/// This thread's temporary files are bounded so from now on.
pub(crate) fn bound_temp_files(bounds: TempFileBounds) {
    BOUNDS.set(bounds);
}

/// This thread's temporary files since it last asked.
pub(crate) fn take_temp_files() -> TempFiles {
    GONE.take()
}

pub(super) fn temp_file() -> std::io::Result<File> {
    PLACE.with_borrow(|place| {
        let Some(folder) = place else { return tempfile::tempfile() };
        match tempfile::tempfile_in(folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                tempfile::tempfile_in(folder)
            }
            done => done,
        }
    })
}

/// What a temporary file takes. When it goes the file is counted, if it was written to.
pub(super) struct Space {
    number: u64,
    bytes: u64,
}

impl Space {
    pub(super) fn new() -> Space {
        Space { number: MADE.replace(MADE.get() + 1), bytes: 0 }
    }

    /// So many bytes more are to be written.
    ///
    /// # Errors
    /// `53400`: beyond `temp_file_limit`.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<()> {
        let all = IN_USE.get() + bytes;
        BOUNDS.get().allow(all)?;
        IN_USE.set(all);
        self.bytes += bytes;
        note_written(bytes);
        Ok(())
    }

    /// How many there are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let (number, bytes) = (self.number, self.bytes);
        // A thread that is ending asks no more.
        let _ = IN_USE.try_with(|sum| sum.set(sum.get().saturating_sub(bytes)));
        let _ = GONE.try_with(|sum| {
            let TempFiles { files, bytes: before } = sum.get();
            sum.set(TempFiles { files: files + 1, bytes: before + bytes });
        });
        let bounds = BOUNDS.try_with(Cell::get).unwrap_or(TempFileBounds::NONE);
        bounds.tell(base::log::thread_pid(), number, bytes);
    }
}

/// What the files of an index's sort take, whatever thread writes them. With the session's other files they stay within its limit; what
/// is gone is counted for the thread that lets go of the last of this, which is the session's.
#[derive(Debug)]
pub(crate) struct SortSpace {
    bounds: TempFileBounds,
    pid: i32,
    /// Bytes in the session's other files.
    beside: u64,
    in_use: AtomicU64,
    gone_files: AtomicU64,
    gone_bytes: AtomicU64,
    /// The number of its next file.
    number: AtomicU64,
}

impl SortSpace {
    /// For a sort that this thread's session begins.
    pub(crate) fn new() -> SortSpace {
        SortSpace {
            bounds: BOUNDS.get(),
            pid: base::log::thread_pid(),
            beside: IN_USE.get(),
            in_use: AtomicU64::new(0),
            gone_files: AtomicU64::new(0),
            gone_bytes: AtomicU64::new(0),
            number: AtomicU64::new(MADE.get()),
        }
    }
}

impl btree::TempSpace for SortSpace {
    fn grow(&self, bytes: u64) -> Result<()> {
        let all = self.in_use.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bounds.allow(self.beside + all).inspect_err(|_| {
            self.in_use.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    fn gone(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
        self.gone_files.fetch_add(1, Ordering::Relaxed);
        self.gone_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bounds.tell(self.pid, self.number.fetch_add(1, Ordering::Relaxed), bytes);
    }
}

impl Drop for SortSpace {
    fn drop(&mut self) {
        let (files, bytes) = (*self.gone_files.get_mut(), *self.gone_bytes.get_mut());
        let number = *self.number.get_mut();
        note_written(bytes);
        let _ = MADE.try_with(|made| made.set(made.get().max(number)));
        let _ = GONE.try_with(|sum| {
            let before = sum.get();
            sum.set(TempFiles { files: before.files + files, bytes: before.bytes + bytes });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::RowFile;
    use super::*;
    use types::Datum;

    #[test]
    fn rows_on_disk_are_in_the_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        keep_temp_files_in(folder.path().to_str().unwrap());
        for n in 0..2 {
            let mut file = RowFile::new(1).unwrap();
            file.write(&[Datum::Int4(n)]).unwrap();
            file.rewind().unwrap();
            let mut row = Vec::new();
            assert!(file.read(&mut row).unwrap());
            assert!(matches!(row[..], [Datum::Int4(m)] if m == n));
        }
        assert!(folder.path().join(FOLDER).is_dir());
        keep_temp_files_in("");
    }

    #[test]
    fn an_index_sort_stays_within_the_limit_beside_other_files() {
        use btree::TempSpace as _;
        bound_temp_files(TempFileBounds { limit_kb: 1, log_kb: -1 });
        take_temp_files();
        let mut other = Space::new();
        other.grow(1000).unwrap();
        let sort = std::sync::Arc::new(SortSpace::new());
        let writer = std::sync::Arc::clone(&sort);
        let grown = std::thread::spawn(move || {
            writer.grow(20).unwrap();
            let error = writer.grow(5).unwrap_err();
            writer.gone(20);
            writer.grow(24).unwrap();
            error.state()
        });
        assert_eq!(grown.join().unwrap(), base::SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        sort.gone(24);
        drop(sort);
        assert_eq!(take_temp_files(), TempFiles { files: 2, bytes: 44 });
        bound_temp_files(TempFileBounds::NONE);
    }

    #[test]
    fn all_files_together_stay_within_the_limit() {
        bound_temp_files(TempFileBounds { limit_kb: 1, log_kb: -1 });
        take_temp_files();
        let (mut one, mut two) = (Space::new(), Space::new());
        one.grow(1000).unwrap();
        two.grow(24).unwrap();
        let error = two.grow(1).unwrap_err();
        assert_eq!(error.state(), base::SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        drop(one);
        // What is gone is room again.
        two.grow(1000).unwrap();
        drop((two, Space::new()));
        assert_eq!(take_temp_files(), TempFiles { files: 2, bytes: 2024 });
        bound_temp_files(TempFileBounds { limit_kb: 0, log_kb: -1 });
        assert!(Space::new().grow(1).is_err());
        bound_temp_files(TempFileBounds::NONE);
        Space::new().grow(1 << 40).unwrap();
    }
}
