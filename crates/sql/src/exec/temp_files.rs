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
}

thread_local! {
    static GONE: Cell<TempFiles> = const { Cell::new(TempFiles { files: 0, bytes: 0 }) };
    static PLACE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    static BOUNDS: Cell<TempFileBounds> = const { Cell::new(TempFileBounds::NONE) };
    /// Bytes in the files there are.
    static IN_USE: Cell<u64> = const { Cell::new(0) };
    /// How many there have been.
    static MADE: Cell<u64> = const { Cell::new(0) };
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
        let limit_kb = BOUNDS.get().limit_kb;
        if u64::try_from(limit_kb).is_ok_and(|kb| all > kb * 1024) {
            bail!(
                CONFIGURATION_LIMIT_EXCEEDED,
                "temporary file size exceeds \"temp_file_limit\" ({limit_kb}kB)"
            );
        }
        IN_USE.set(all);
        self.bytes += bytes;
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
        let log_kb = BOUNDS.try_with(Cell::get).unwrap_or(TempFileBounds::NONE).log_kb;
        if u64::try_from(log_kb).is_ok_and(|kb| bytes / 1024 >= kb) {
            let pid = base::log::thread_pid();
            let message =
                format!("temporary file: path \"{FOLDER}/pgsql_tmp{pid}.{number}\", size {bytes}");
            base::log::write_amid(&message, None);
        }
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
