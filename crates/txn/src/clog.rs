//! The commit log: two bits an XID, durable.
//!
//! # Purpose
//! Says of any XID since the last truncation whether it committed. All other knowledge of transactions is lost at
//! restart; this is what remains.
//!
//! # Layout
//! Files `xact/SSSSSSSSSSSS` (hexadecimal segment number) of 32 pages of 8 KiB. A page is 16 sectors of 512
//! bytes, each with 504 bytes of statuses (2,016 XIDs), 4 bytes of zero and its own CRC-32C, so that a torn
//! page is 16 whole sectors, each old or new, and needs no full-page image. A sector of zeros is valid: nothing
//! there has ended.
//!
//! # WAL and replay
//! Commit and abort records say it all; replay sets the same bits again. A page's end of WAL is kept
//! in memory beside it, and flushed before the page is written. A checkpoint writes and syncs all that is dirty.
//!
//! # Crash cases
//! A page never written reads as zeros: its XIDs did not end before the last checkpoint. A segment that
//! is missing although a checkpoint covered it is corruption, and says so.
//!
//! # Differs from PostgreSQL
//! No "subcommitted" state: while a commit is under way readers ask the CSN window. Sectors have checksums.

use crate::manager::LogWriter;
use crate::rank;
use base::sync::{Arc, Mutex, RwLock};
use base::{Error, Lsn, Result, Xid};
use disk::{Disk, File, OpenMode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 8192;
const SECTOR: usize = 512;
const SECTOR_DATA: usize = 504;
const SECTORS: usize = PAGE / SECTOR;
const SECTOR_XIDS: u64 = (SECTOR_DATA * 4) as u64;
/// XIDs on a page.
pub const PAGE_XIDS: u64 = SECTOR_XIDS * SECTORS as u64;
/// Pages in a file.
pub const SEGMENT_PAGES: u64 = 32;
/// XIDs in a file.
pub const SEGMENT_XIDS: u64 = PAGE_XIDS * SEGMENT_PAGES;

/// What the log says of an XID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It had not ended; after a restart this means it never will, and counts as aborted.
    Unknown,
    /// Committed.
    Committed,
    /// Aborted.
    Aborted,
}

impl Outcome {
    fn bits(self) -> u8 {
        match self {
            Outcome::Unknown => 0,
            Outcome::Committed => 1,
            Outcome::Aborted => 2,
        }
    }
}

/// What the log's pages in memory were asked for (`pg_stat_slru`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CommitLogStats {
    /// Pages that began empty.
    pub zeroed: u64,
    /// Pages found in memory.
    pub hits: u64,
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub written: u64,
    /// Flushes of all dirty pages.
    pub flushes: u64,
    /// How often the log was cut.
    pub truncates: u64,
}

struct Slot {
    page: Option<u64>,
    dirty: bool,
    lsn: Lsn,
    bytes: Box<[u8; PAGE]>,
    /// Counted by who holds the lock for reading, too.
    hits: AtomicU64,
    zeroed: u64,
    reads: u64,
    written: u64,
}

/// The log with its cache.
pub struct CommitLog {
    disk: Arc<dyn Disk>,
    dir: String,
    wal: Arc<dyn LogWriter>,
    slots: Box<[RwLock<Slot>]>,
    files: Mutex<Files>,
    /// XIDs below this were assigned before the last checkpoint: their segments must be there.
    known: AtomicU64,
    oldest: AtomicU64,
    flushes: AtomicU64,
    truncates: AtomicU64,
}

#[derive(Default)]
struct Files {
    open: BTreeMap<u64, Arc<dyn File>>,
    unsynced: BTreeSet<u64>,
    names_unsynced: bool,
}

fn place(xid: Xid) -> (u64, usize, u32) {
    let page = xid.0 / PAGE_XIDS;
    let in_page = xid.0 % PAGE_XIDS;
    let sector = (in_page / SECTOR_XIDS) as usize;
    let in_sector = (in_page % SECTOR_XIDS) as usize;
    (page, sector * SECTOR + in_sector / 4, (in_sector % 4 * 2) as u32)
}

fn segment_name(dir: &str, segment: u64) -> String {
    format!("{dir}/{segment:012X}")
}

/// Puts each sector's checksum in; a sector of zeros stays so.
fn seal(bytes: &mut [u8; PAGE]) {
    for sector in bytes.chunks_exact_mut(SECTOR) {
        let (data, sum) = sector.split_at_mut(SECTOR - 4);
        let crc = if data.iter().all(|b| *b == 0) { 0 } else { crc32c::crc32c(data) };
        sum.copy_from_slice(&crc.to_le_bytes());
    }
}

/// The number of the first sector whose checksum is wrong.
fn damaged(bytes: &[u8; PAGE]) -> Option<usize> {
    bytes.chunks_exact(SECTOR).position(|sector| {
        let (data, sum) = sector.split_at(SECTOR - 4);
        let stored = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
        let right = if data.iter().all(|b| *b == 0) { 0 } else { crc32c::crc32c(data) };
        stored != right
    })
}

impl CommitLog {
    /// The log in folder `dir`, with room for `pages` pages in memory.
    pub fn new(
        disk: Arc<dyn Disk>,
        dir: &str,
        wal: Arc<dyn LogWriter>,
        pages: usize,
        oldest: Xid,
        known: Xid,
    ) -> CommitLog {
        let slots = (0..pages.max(4))
            .map(|_| {
                RwLock::new(
                    rank::CLOG_SLOT,
                    Slot {
                        page: None,
                        dirty: false,
                        lsn: Lsn::INVALID,
                        bytes: Box::new([0; PAGE]),
                        hits: AtomicU64::new(0),
                        zeroed: 0,
                        reads: 0,
                        written: 0,
                    },
                )
            })
            .collect();
        CommitLog {
            disk,
            dir: dir.to_owned(),
            wal,
            slots,
            files: Mutex::new(rank::CLOG_FILES, Files::default()),
            known: AtomicU64::new(known.0),
            oldest: AtomicU64::new(oldest.0),
            flushes: AtomicU64::new(0),
            truncates: AtomicU64::new(0),
        }
    }

    /// Counters since start.
    pub fn stats(&self) -> CommitLogStats {
        let mut sum = CommitLogStats {
            flushes: self.flushes.load(Ordering::Relaxed),
            truncates: self.truncates.load(Ordering::Relaxed),
            ..CommitLogStats::default()
        };
        for slot in &self.slots {
            let slot = slot.read();
            sum.hits += slot.hits.load(Ordering::Relaxed);
            sum.zeroed += slot.zeroed;
            sum.reads += slot.reads;
            sum.written += slot.written;
        }
        sum
    }

    /// The first XID the log still knows.
    pub fn oldest(&self) -> Xid {
        Xid(self.oldest.load(Ordering::Acquire))
    }

    fn slot(&self, page: u64) -> &RwLock<Slot> {
        &self.slots[(page % self.slots.len() as u64) as usize]
    }

    /// What became of `xid`.
    ///
    /// # Errors
    /// The disk's; corruption if the page is damaged, its segment lost, or `xid` older than the log.
    pub fn get(&self, xid: Xid) -> Result<Outcome> {
        if xid < self.oldest() {
            return Err(Error::corrupt_file(format!(
                "could not access status of transaction {xid}"
            )));
        }
        let (page, byte, shift) = place(xid);
        let read = |slot: &Slot| match slot.bytes[byte] >> shift & 3 {
            1 => Outcome::Committed,
            2 => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        {
            let slot = self.slot(page).read();
            if slot.page == Some(page) {
                slot.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(read(&slot));
            }
        }
        let mut slot = self.slot(page).write();
        self.load(&mut slot, page, xid)?;
        Ok(read(&slot))
    }

    /// Notes the outcome of `xids`; `lsn` is the end of the record that says so (the page is not written before that is durable).
    ///
    /// # Errors
    /// As [`CommitLog::get`].
    pub fn set(&self, xids: &[Xid], outcome: Outcome, lsn: Lsn) -> Result<()> {
        let mut rest = xids;
        while let Some(first) = rest.first() {
            let page = place(*first).0;
            let same = rest.iter().take_while(|x| place(**x).0 == page).count();
            let (now, later) = rest.split_at(same);
            let mut slot = self.slot(page).write();
            self.load(&mut slot, page, *first)?;
            for xid in now {
                let (_, byte, shift) = place(*xid);
                slot.bytes[byte] = slot.bytes[byte] & !(3 << shift) | outcome.bits() << shift;
            }
            slot.dirty = true;
            slot.lsn = slot.lsn.max(lsn);
            rest = later;
        }
        Ok(())
    }

    /// As [`CommitLog::set`], in replay: without those XIDs whose segment was there at the checkpoint and is not any more. A truncation
    /// that is still to be replayed gave it up; else whoever asks for them is told that it is missing.
    ///
    /// # Errors
    /// As [`CommitLog::get`].
    pub fn replay(&self, xids: &[Xid], outcome: Outcome, lsn: Lsn) -> Result<()> {
        let known = self.known.load(Ordering::Acquire);
        let mut there = Vec::with_capacity(xids.len());
        for xid in xids.iter().filter(|x| **x >= self.oldest()) {
            let segment = xid.0 / SEGMENT_XIDS;
            if segment * SEGMENT_XIDS >= known || self.file(segment, false)?.is_some() {
                there.push(*xid);
            }
        }
        self.set(&there, outcome, lsn)
    }

    fn load(&self, slot: &mut Slot, page: u64, xid: Xid) -> Result<()> {
        if slot.page == Some(page) {
            *slot.hits.get_mut() += 1;
            return Ok(());
        }
        self.write_out(slot)?;
        slot.page = None;
        slot.lsn = Lsn::INVALID;
        let segment = page / SEGMENT_PAGES;
        let name = segment_name(&self.dir, segment);
        slot.bytes.fill(0);
        match self.file(segment, false)? {
            Some(file) => {
                let got = file
                    .read_at(&mut slot.bytes[..], page % SEGMENT_PAGES * PAGE as u64)
                    .map_err(|e| Error::io(format!("could not read file \"{name}\""), e))?;
                slot.bytes[got..].fill(0);
                if got > 0 {
                    slot.reads += 1;
                } else {
                    slot.zeroed += 1;
                }
                if let Some(sector) = damaged(&slot.bytes) {
                    return Err(Error::corrupt_file(format!(
                        "could not access status of transaction {xid}: wrong checksum in file \"{name}\", page {}, sector {sector}",
                        page % SEGMENT_PAGES
                    )));
                }
            }
            None if segment * SEGMENT_XIDS < self.known.load(Ordering::Acquire) => {
                return Err(Error::corrupt_file(format!(
                    "could not access status of transaction {xid}: file \"{name}\" is missing"
                )));
            }
            None => slot.zeroed += 1,
        }
        slot.page = Some(page);
        Ok(())
    }

    fn write_out(&self, slot: &mut Slot) -> Result<()> {
        let Some(page) = slot.page.filter(|_| slot.dirty) else { return Ok(()) };
        if slot.lsn > self.wal.flushed_lsn() {
            self.wal.flush(slot.lsn)?;
        }
        let segment = page / SEGMENT_PAGES;
        seal(&mut slot.bytes);
        let Some(file) = self.file(segment, true)? else { return Ok(()) };
        file.write_at(&slot.bytes[..], page % SEGMENT_PAGES * PAGE as u64).map_err(|e| {
            Error::io(format!("could not write file \"{}\"", segment_name(&self.dir, segment)), e)
        })?;
        self.files.lock().unsynced.insert(segment);
        slot.dirty = false;
        slot.written += 1;
        Ok(())
    }

    fn file(&self, segment: u64, create: bool) -> Result<Option<Arc<dyn File>>> {
        let mut files = self.files.lock();
        if let Some(file) = files.open.get(&segment) {
            return Ok(Some(file.clone()));
        }
        let name = segment_name(&self.dir, segment);
        let opened = self.disk.open(&name, OpenMode::Existing);
        let file = match opened {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                if !create {
                    return Ok(None);
                }
                let file = self
                    .disk
                    .open(&name, OpenMode::Create)
                    .map_err(|e| Error::io(format!("could not create file \"{name}\""), e))?;
                files.names_unsynced = true;
                file
            }
            Err(e) => return Err(Error::io(format!("could not open file \"{name}\""), e)),
        };
        files.open.insert(segment, file.clone());
        if files.open.len() > 64
            && let Some(first) = files.open.keys().find(|s| **s != segment).copied()
        {
            files.open.remove(&first);
        }
        Ok(Some(file))
    }

    /// Makes sure that the segments up to `next` exist, so that a lost one can be told from one not yet made;
    /// then writes all dirty pages and syncs their files; how many pages it wrote.
    ///
    /// # Errors
    /// The disk's. A failed sync is not to be retried: the caller stops the server.
    pub fn flush(&self, next: Xid) -> Result<usize> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        // That of the last known XID was made then: were it lost, an empty one in its place would hide it.
        let known = self.known.load(Ordering::Acquire) / SEGMENT_XIDS;
        let first = (known + 1).max(self.oldest().0 / SEGMENT_XIDS);
        for segment in first..=next.0 / SEGMENT_XIDS {
            if self.file(segment, true)?.is_some() {
                self.files.lock().unsynced.insert(segment);
            }
        }
        let mut pages = 0;
        for slot in &self.slots {
            let (dirty, lsn) = {
                let slot = slot.read();
                (slot.dirty, slot.lsn)
            };
            if !dirty {
                continue;
            }
            // Before the page is taken, for whose sake others wait: those who commit.
            if lsn > self.wal.flushed_lsn() {
                self.wal.flush(lsn)?;
            }
            let mut slot = slot.write();
            pages += usize::from(slot.dirty);
            self.write_out(&mut slot)?;
        }
        let (unsynced, names) = {
            let mut files = self.files.lock();
            (std::mem::take(&mut files.unsynced), std::mem::take(&mut files.names_unsynced))
        };
        let mut left = unsynced.clone();
        for segment in unsynced {
            if let Err(e) = self.sync_segment(segment) {
                // The next checkpoint must not take them for synced.
                let mut files = self.files.lock();
                files.unsynced.append(&mut left);
                files.names_unsynced |= names;
                return Err(e);
            }
            left.remove(&segment);
        }
        if names {
            self.disk
                .sync_dir(&self.dir)
                .map_err(|e| Error::io(format!("could not fsync file \"{}\"", self.dir), e))?;
        }
        Ok(pages)
    }

    fn sync_segment(&self, segment: u64) -> Result<()> {
        let Some(file) = self.file(segment, false)? else { return Ok(()) };
        file.sync_data().map_err(|e| {
            Error::io(format!("could not fsync file \"{}\"", segment_name(&self.dir, segment)), e)
        })
    }

    /// Says that a checkpoint covers all XIDs below `next` (its record is durable).
    pub fn set_known(&self, next: Xid) {
        self.known.fetch_max(next.0, Ordering::AcqRel);
    }

    /// XIDs below `before` are not asked for any more. Told before the truncation is logged, so that a checkpoint in between
    /// does not record an older bound than the log will have.
    pub fn set_oldest(&self, before: Xid) {
        self.oldest.fetch_max(before.0, Ordering::AcqRel);
    }

    /// Forgets XIDs below `before`, and removes the segments that hold no others.
    ///
    /// # Errors
    /// The disk's.
    pub fn truncate(&self, before: Xid) -> Result<usize> {
        self.truncates.fetch_add(1, Ordering::Relaxed);
        self.set_oldest(before);
        let keep_from = before.0 / SEGMENT_XIDS;
        for slot in &self.slots {
            let mut slot = slot.write();
            if slot.page.is_some_and(|p| p / SEGMENT_PAGES < keep_from) {
                slot.page = None;
                slot.dirty = false;
            }
        }
        let mut removed = 0;
        let names = self
            .disk
            .list(&self.dir)
            .map_err(|e| Error::io(format!("could not open directory \"{}\"", self.dir), e))?;
        base::stop_point!("txn.clog.truncate.listed");
        for name in names {
            let Ok(segment) = u64::from_str_radix(&name, 16) else { continue };
            if segment >= keep_from || name.len() != 12 {
                continue;
            }
            {
                let mut files = self.files.lock();
                files.open.remove(&segment);
                files.unsynced.remove(&segment);
            }
            let path = segment_name(&self.dir, segment);
            match self.disk.remove(&path) {
                Ok(()) => removed += 1,
                // By who cuts the log too (a vacuum of another database).
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(format!("could not remove file \"{path}\""), e)),
            }
        }
        if removed > 0 {
            self.disk
                .sync_dir(&self.dir)
                .map_err(|e| Error::io(format!("could not fsync file \"{}\"", self.dir), e))?;
        }
        Ok(removed)
    }
}
