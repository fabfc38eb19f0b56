//! The control file, the marker and the lock: whose folder it is, and where recovery starts.
//!
//! # Layout
//! `EBB_VERSION`: the major version as text, so that a folder can be told from any other. `ebb.pid`: the
//! process number, locked while the server runs. `ebb.control`, little-endian:
//! ```text
//!  0 magic "EBBCTRL1" | 8 format version u32 | 12 state u32 | 16 system id u64 | 24 checkpoint LSN u64
//! 32 redo LSN u64 | 40 timeline u32 | 44 page size u32 | 48 WAL segment size u64 | 56 time i64
//! 64 next XID u64 | 72 catalog version u32 | 76 CRC-32C of the bytes before u32
//! ```
//!
//! # Crash cases
//! The control file is written under another name, synced, renamed, and the folder synced: it is always
//! one or the other, whole. Where the disk has no room for another file it is written over, as PostgreSQL does always: it lies in one sector of the
//! disk, which is written whole or not at all. For it is a checkpoint that gives back what the log takes.

use base::{Error, Lsn, Result, SqlError, SqlState, Xid};
use disk::{Disk, File, OpenMode};
use std::sync::Arc;

/// The version of everything on disk; a folder of another one is refused.
pub const FORMAT_VERSION: u32 = 2;
/// What `EBB_VERSION` holds.
pub const MAJOR_VERSION: &str = "18\n";

const CONTROL: &str = "ebb.control";
const CONTROL_NEW: &str = "ebb.control.new";
const MARKER: &str = "EBB_VERSION";
const PID_FILE: &str = "ebb.pid";
const MAGIC: &[u8; 8] = b"EBBCTRL1";
const LEN: usize = 80;

/// What the server was doing when it last wrote the control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ClusterState {
    /// `ebb init` has not finished.
    Initialising = 0,
    /// Shut down in order.
    ShutDown = 1,
    /// Recovering.
    InRecovery = 2,
    /// Running.
    InProduction = 3,
}

/// The control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlFile {
    /// What the server was doing.
    pub state: ClusterState,
    /// Given at init, different for every cluster.
    pub system_id: u64,
    /// Where the last checkpoint's record starts.
    pub checkpoint: Lsn,
    /// Where its redo starts.
    pub redo: Lsn,
    /// The timeline.
    pub timeline: u32,
    /// When this was written.
    pub time_us: i64,
    /// The next XID at the checkpoint, to show.
    pub next_xid: Xid,
    /// Which catalogs are in the folder: [`crate::catalog::defs::version`].
    pub catalog_version: u32,
}

fn io(what: &str, path: &str, e: std::io::Error) -> Error {
    Error::io(format!("could not {what} file \"{path}\""), e)
}

impl ControlFile {
    fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&(self.state as u32).to_le_bytes());
        out[16..24].copy_from_slice(&self.system_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.checkpoint.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.redo.0.to_le_bytes());
        out[40..44].copy_from_slice(&self.timeline.to_le_bytes());
        out[44..48].copy_from_slice(&(page::PAGE_SIZE as u32).to_le_bytes());
        out[48..56].copy_from_slice(&wal::SEGMENT_SIZE.to_le_bytes());
        out[56..64].copy_from_slice(&self.time_us.to_le_bytes());
        out[64..72].copy_from_slice(&self.next_xid.0.to_le_bytes());
        out[72..76].copy_from_slice(&self.catalog_version.to_le_bytes());
        let crc = crc32c::crc32c(&out[..76]);
        out[76..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<ControlFile> {
        let damaged = |what| Error::corrupt_file(format!("file \"{CONTROL}\" {what}"));
        // The version first: the length may be that version's.
        let Some((head, _)) = bytes.split_first_chunk::<12>() else {
            return Err(damaged("has the wrong length"));
        };
        let (magic, version) = head.split_at(8);
        if magic != MAGIC {
            return Err(damaged("is not a control file"));
        }
        let version = u32::from_le_bytes(std::array::from_fn(|k| version[k]));
        if version != FORMAT_VERSION {
            return Err(incompatible(format!(
                "The data directory was initialized with format version {version}, but this server needs {FORMAT_VERSION}."
            )));
        }
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| damaged("has the wrong length"))?;
        let u32_at = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| bytes[i + k]));
        let u64_at = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[i + k]));
        if u32_at(76) != crc32c::crc32c(&bytes[..76]) {
            return Err(Error::corrupt_file(format!("incorrect checksum in file \"{CONTROL}\"")));
        }
        if u32_at(44) as usize != page::PAGE_SIZE || u64_at(48) != wal::SEGMENT_SIZE {
            return Err(incompatible("The page or WAL segment size is another.".to_owned()));
        }
        Ok(ControlFile {
            state: match u32_at(12) {
                0 => ClusterState::Initialising,
                1 => ClusterState::ShutDown,
                2 => ClusterState::InRecovery,
                _ => ClusterState::InProduction,
            },
            system_id: u64_at(16),
            checkpoint: Lsn(u64_at(24)),
            redo: Lsn(u64_at(32)),
            timeline: u32_at(40),
            time_us: u64_at(56) as i64,
            next_xid: Xid(u64_at(64)),
            catalog_version: u32_at(72),
        })
    }

    /// Refuses a folder whose catalogs another server made.
    ///
    /// # Errors
    /// If their version is not `wanted`.
    pub fn check_catalog_version(&self, wanted: u32) -> Result<()> {
        if self.catalog_version == wanted {
            return Ok(());
        }
        Err(incompatible(format!(
            "The data directory was initialized with catalog version {}, but this server has catalog version {wanted}.",
            self.catalog_version
        )))
    }

    /// Reads it, the marker first.
    ///
    /// # Errors
    /// If the folder is not a data folder of this version, or the file is damaged.
    pub fn read(disk: &dyn Disk) -> Result<ControlFile> {
        let marker = read_small(disk, MARKER)?.ok_or_else(|| {
            Error::Sql(Box::new(
                SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the directory is not an Ebb data directory",
                )
                .detail(format!("File \"{MARKER}\" is missing.")),
            ))
        })?;
        if marker != MAJOR_VERSION.as_bytes() {
            return Err(incompatible(format!(
                "The data directory was initialized by version {}, which is not compatible with this version.",
                String::from_utf8_lossy(&marker).trim()
            )));
        }
        let bytes = read_small(disk, CONTROL)?.ok_or_else(|| {
            Error::corrupt_file(format!(
                "could not find the database system: \"{CONTROL}\" is missing"
            ))
        })?;
        ControlFile::decode(&bytes)
    }

    /// Writes it, so that a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// The disk's.
    pub fn write(&self, disk: &dyn Disk) -> Result<()> {
        match self.write_new(disk) {
            Err(e) if e.state() == SqlState::DISK_FULL => {
                // What there is of it takes room.
                let _ = disk.remove(CONTROL_NEW);
                self.write_over(disk)
            }
            done => done,
        }
    }

    fn write_over(&self, disk: &dyn Disk) -> Result<()> {
        let file = disk.open(CONTROL, OpenMode::Existing).map_err(|e| io("open", CONTROL, e))?;
        file.write_at(&self.encode(), 0).map_err(|e| io("write", CONTROL, e))?;
        file.sync_data().map_err(|e| io("fsync", CONTROL, e))
    }

    fn write_new(&self, disk: &dyn Disk) -> Result<()> {
        let file =
            disk.open(CONTROL_NEW, OpenMode::Create).map_err(|e| io("open", CONTROL_NEW, e))?;
        file.set_len(0).map_err(|e| io("truncate", CONTROL_NEW, e))?;
        file.write_at(&self.encode(), 0).map_err(|e| io("write", CONTROL_NEW, e))?;
        file.sync_data().map_err(|e| io("fsync", CONTROL_NEW, e))?;
        drop(file);
        disk.rename(CONTROL_NEW, CONTROL).map_err(|e| io("rename", CONTROL_NEW, e))?;
        disk.sync_dir("").map_err(|e| Error::io("could not fsync the data directory", e))
    }
}

fn incompatible(detail: String) -> Error {
    Error::Sql(Box::new(
        SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "database files are incompatible with server",
        )
        .detail(detail)
        .hint("Dump the databases with the version that made them, and restore them into a new data directory."),
    ))
}

fn read_small(disk: &dyn Disk, path: &str) -> Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenMode::Existing) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io("open", path, e)),
    };
    let mut bytes = vec![0; 4096];
    let n = file.read_at(&mut bytes, 0).map_err(|e| io("read", path, e))?;
    bytes.truncate(n);
    Ok(Some(bytes))
}

/// Writes the marker into a new folder.
///
/// # Errors
/// The disk's.
pub fn write_marker(disk: &dyn Disk) -> Result<()> {
    let file = disk.open(MARKER, OpenMode::Create).map_err(|e| io("open", MARKER, e))?;
    file.write_at(MAJOR_VERSION.as_bytes(), 0).map_err(|e| io("write", MARKER, e))?;
    file.sync_data().map_err(|e| io("fsync", MARKER, e))
}

/// Is there a data folder, whole or begun?
///
/// # Errors
/// The disk's.
pub fn is_data_folder(disk: &dyn Disk) -> Result<bool> {
    disk.exists(MARKER).map_err(|e| io("look for", MARKER, e))
}

/// Keeps other processes out of the folder while it lives.
#[derive(Debug)]
pub struct FolderLock {
    _file: Arc<dyn File>,
}

impl FolderLock {
    /// Takes the folder for this process.
    ///
    /// # Errors
    /// If another process has it; the disk's.
    pub fn take(disk: &dyn Disk) -> Result<FolderLock> {
        let file = disk.open(PID_FILE, OpenMode::Create).map_err(|e| io("create", PID_FILE, e))?;
        if !file.try_lock().map_err(|e| io("lock", PID_FILE, e))? {
            let mut holder = [0; 32];
            let n = file.read_at(&mut holder, 0).unwrap_or(0);
            return Err(Error::Sql(Box::new(
                SqlError::new(
                    SqlState::OBJECT_IN_USE,
                    format!("lock file \"{PID_FILE}\" already exists"),
                )
                .hint(format!(
                    "Is another server (PID {}) running in this data directory?",
                    String::from_utf8_lossy(&holder[..n]).lines().next().unwrap_or("unknown")
                )),
            )));
        }
        file.set_len(0).map_err(|e| io("truncate", PID_FILE, e))?;
        file.write_at(format!("{}\n", std::process::id()).as_bytes(), 0)
            .map_err(|e| io("write", PID_FILE, e))?;
        Ok(FolderLock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: ControlFile = ControlFile {
        state: ClusterState::InProduction,
        system_id: 77,
        checkpoint: Lsn(0x100_0000),
        redo: Lsn(0x100_0000),
        timeline: 1,
        time_us: -3,
        next_xid: Xid(3),
        catalog_version: 5,
    };

    #[test]
    fn of_another_server() {
        let refused = |e: Error| match e {
            Error::Sql(e) => (e.message.to_string(), e.detail.unwrap_or_default().to_string()),
            e => panic!("{e}"),
        };
        let mut bytes = SAMPLE.encode().to_vec();
        bytes[8] = 1;
        bytes.truncate(76);
        let (message, detail) = refused(ControlFile::decode(&bytes).unwrap_err());
        assert_eq!(message, "database files are incompatible with server");
        assert!(detail.contains("format version 1, but"), "{detail}");
        SAMPLE.check_catalog_version(5).unwrap();
        let (message, detail) = refused(SAMPLE.check_catalog_version(6).unwrap_err());
        assert_eq!(message, "database files are incompatible with server");
        assert!(detail.contains("catalog version 5, but"), "{detail}");
    }

    #[test]
    fn whole_or_not_at_all() {
        let control = SAMPLE;
        assert_eq!(ControlFile::decode(&control.encode()).unwrap(), control);
        for i in 0..LEN {
            let mut bytes = control.encode();
            bytes[i] ^= 4;
            assert!(ControlFile::decode(&bytes).is_err(), "byte {i}");
        }
        let disk = disk::sim::SimDisk::new(1);
        assert!(ControlFile::read(&*disk).is_err());
        write_marker(&*disk).unwrap();
        control.write(&*disk).unwrap();
        let newer = ControlFile { redo: Lsn(0x200_0000), ..control };
        for n in 0..6 {
            let disk = disk.snapshot(n);
            disk.crash_at(n);
            let _ = newer.write(&*disk);
            let found = ControlFile::read(&*disk.after_crash(n)).unwrap();
            assert!(found == control || found == newer);
        }
        // Nor where there is no room for another file.
        for n in 0..4 {
            let disk = disk.snapshot(n);
            disk.set_free_space(0);
            disk.crash_at(n + 2);
            let written = newer.write(&*disk);
            let found = ControlFile::read(&*disk.after_crash(n)).unwrap();
            assert!(found == newer || written.is_err() && found == control, "{n}");
        }
        let lock = FolderLock::take(&*disk).unwrap();
        assert!(FolderLock::take(&*disk).is_err());
        drop(lock);
        FolderLock::take(&*disk).unwrap();
    }
}
