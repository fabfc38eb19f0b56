//! Replay of storage, sequence and catalog records.
//!
//! # WAL and replay
//! A record either changes pages and nothing else ([`is_of_pages`]), and may then be replayed by several threads, each with its pages; or it makes
//! or ends files, and is replayed alone.

use super::{
    CREATE, CREATE_DATABASE, FIRST_TEMPORARY, NEXT_OID, PAGE_IMAGES, RelationFiles, TRUNCATE,
};
use base::{BlockNumber, Error, Fork, Oid, RelationId, Result};
use buffer::{Persistence, RedoPages};
use txn::CommitRecord;
use txn::record::{ABORT, COMMIT};
use wal::{Record, ResourceManager};

impl RelationFiles {
    /// Replays a record of the storage, sequence or catalog resource manager.
    ///
    /// # Errors
    /// The disk's; corruption.
    pub fn redo(&self, record: &Record) -> Result<()> {
        let bad = || malformed(record);
        let u32_at = |i: usize| -> Result<u32> {
            let bytes = record.data.get(i..i + 4).ok_or_else(bad)?;
            Ok(u32::from_le_bytes(std::array::from_fn(|k| bytes[k])))
        };
        match (record.rmgr, record.info) {
            (ResourceManager::Storage, CREATE) => {
                let id = RelationId { database: Oid(u32_at(0)?), file_number: u32_at(4)? };
                let persistence = match record.data.get(8) {
                    Some(0) => Persistence::Permanent,
                    Some(1) => Persistence::Unlogged,
                    _ => return Err(bad()),
                };
                let handle = self.pool.open(id, persistence);
                handle.create_fork(Fork::Main)?;
                if persistence == Persistence::Unlogged {
                    // Its name may be lost where the main file's is not; without it nothing would be reset.
                    handle.create_fork(Fork::Init)?;
                }
                let mut numbers = self.numbers.lock();
                numbers.pending.insert((id.database, id.file_number), record.xid);
                numbers.made.insert(id.file_number);
                if id.file_number < FIRST_TEMPORARY {
                    numbers.next_file = numbers.next_file.max(id.file_number + 1);
                }
            }
            (ResourceManager::Storage, TRUNCATE) => {
                let id = RelationId { database: Oid(u32_at(0)?), file_number: u32_at(4)? };
                let handle = self.pool.open(id, Persistence::Permanent);
                let rest = record.data.get(8..).ok_or_else(bad)?;
                if !rest.len().is_multiple_of(5) {
                    return Err(bad());
                }
                for part in rest.chunks_exact(5) {
                    let fork = Fork::from_number(part[0]).ok_or_else(bad)?;
                    let len = BlockNumber(u32::from_le_bytes([part[1], part[2], part[3], part[4]]));
                    if handle.exists(fork)? {
                        // Clients wait for the end of redo, and not for the file system to free space.
                        handle.truncate_later(fork, len, record.end_lsn)?;
                    }
                    self.pool.explain_missing(id, fork, len);
                    if fork == Fork::Main {
                        heap::truncate_maps(&handle, len)?;
                    }
                }
            }
            (ResourceManager::Storage, NEXT_OID) => {
                let next = u32_at(0)?;
                let mut numbers = self.numbers.lock();
                numbers.next_oid = next;
                numbers.oids_logged = next;
            }
            (ResourceManager::Storage, PAGE_IMAGES) | (ResourceManager::Sequence, _) => {
                redo_images(record, &self.pool)?;
            }
            (ResourceManager::Catalog, CREATE_DATABASE) => {
                let database = Oid(u32_at(0)?);
                let path = format!("base/{database}");
                self.disk
                    .create_dir(&path)
                    .map_err(|e| Error::io(format!("could not create directory \"{path}\""), e))?;
                self.numbers.lock().pending.insert((database, 0), record.xid);
            }
            _ => return Err(bad()),
        }
        Ok(())
    }
}

/// Does a record change pages, and nothing else?
pub(crate) fn is_of_pages(rmgr: ResourceManager, info: u8) -> bool {
    match rmgr {
        ResourceManager::Heap | ResourceManager::Btree | ResourceManager::Sequence => true,
        ResourceManager::Storage => info == PAGE_IMAGES,
        _ => false,
    }
}

/// Must all records before one be replayed before it is? One that makes what was not there has nothing before it; XIDs and pages don't know of
/// each other.
///
/// # Errors
/// Corruption.
pub(crate) fn ends_files(record: &Record) -> Result<bool> {
    Ok(match record.rmgr {
        ResourceManager::Transaction if matches!(record.info, COMMIT | ABORT) => {
            !CommitRecord::decode(&record.data)?.remove.is_empty()
        }
        ResourceManager::Wal | ResourceManager::Transaction => false,
        ResourceManager::Storage => !matches!(record.info, CREATE | NEXT_OID),
        _ => true,
    })
}

/// Replays a record that has its pages as images, on those that are `pages`'.
///
/// # Errors
/// The disk's; corruption.
pub(crate) fn redo_images(record: &Record, pages: &dyn RedoPages) -> Result<()> {
    for block in record.blocks.iter().filter(|b| pages.has(b.tag)) {
        if block.image.is_none() {
            return Err(malformed(record));
        }
        pages.redo_block(block, record.end_lsn)?;
    }
    Ok(())
}

fn malformed(record: &Record) -> Error {
    Error::corrupt_file(format!("malformed storage record in the WAL at {}", record.lsn))
}

/// The relation whose files a record cuts.
pub(crate) fn truncated(record: &Record) -> Option<RelationId> {
    if (record.rmgr, record.info) != (ResourceManager::Storage, TRUNCATE) {
        return None;
    }
    let u32_at = |i: usize| record.data.get(i..i + 4)?.try_into().ok().map(u32::from_le_bytes);
    Some(RelationId { database: Oid(u32_at(0)?), file_number: u32_at(4)? })
}
