//! Reading the log back.
//!
//! # Crash cases
//! The log ends where a record is not whole: no length, a checksum that does not fit, a segment that
//! is missing or short. That is the end and no error; [`Reader::end_reason`] says which it was. A
//! record whose checksum fits and whose content can't be understood is corruption.

use crate::raw::RawRecord;
use crate::record::{self, HEADER_SIZE, RECORD_SIZE_MAX, Record, ResourceManager};
use crate::segment::{SEGMENT_SIZE, Segments};
use crate::stats::WalIo;
use base::sync::now;
use base::{Error, Lsn, Result};
use disk::{Disk, File, OpenMode};
use std::sync::Arc;

const READ_AHEAD: u64 = 512 << 10;

/// Gives the records of a log, one after the other.
pub struct Reader {
    segments: Segments,
    position: u64,
    /// Bytes of the stream from `buffer_start` on.
    buffer: Vec<u8>,
    buffer_start: u64,
    file: Option<(u64, Arc<dyn File>)>,
    end_reason: Option<String>,
    /// Records that end up to here have been checked.
    checked: u64,
    io: WalIo,
}

impl Reader {
    /// Reads the log in folder `dir` from `from`, where a record starts.
    pub fn new(disk: Arc<dyn Disk>, dir: &str, from: Lsn, timeline: u32) -> Reader {
        Reader {
            segments: Segments::new(disk, dir, timeline),
            position: from.0,
            buffer: Vec::new(),
            buffer_start: from.0,
            file: None,
            end_reason: None,
            checked: 0,
            io: WalIo::default(),
        }
    }

    /// Another reader has found the records up to `end` whole: they are not checked again.
    pub fn trusting(mut self, end: Lsn) -> Reader {
        self.checked = end.0;
        self
    }

    /// What it has read so far: only the reads are set.
    pub fn read_io(&self) -> WalIo {
        self.io
    }

    /// Where the next record starts; after `next` gave none, the end of the log.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// Why the log ended there, in PostgreSQL's words.
    pub fn end_reason(&self) -> Option<&str> {
        self.end_reason.as_deref()
    }

    /// The next record; `None` at the end of the log.
    ///
    /// # Errors
    /// When a file can't be read, or a record with the right checksum makes no sense.
    #[expect(clippy::should_implement_trait, reason = "an iterator would hide the errors")]
    pub fn next(&mut self) -> Result<Option<Record>> {
        self.next_raw()?.map(|raw| raw.decode()).transpose()
    }

    /// As [`Reader::next`], the record not decoded yet.
    ///
    /// # Errors
    /// When a file can't be read.
    pub fn next_raw(&mut self) -> Result<Option<RawRecord<'_>>> {
        let lsn = Lsn(self.position);
        let Some(len) = self.whole_record()? else { return Ok(None) };
        let from = (lsn.0 - self.buffer_start) as usize;
        self.position += record::padded(len as u64);
        Ok(Some(RawRecord::new(&self.buffer[from..from + len], lsn)))
    }

    /// The next record of `rmgr`, or `None` at the end of the log; those before it are only checked.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_of(&mut self, rmgr: ResourceManager) -> Result<Option<Record>> {
        while let Some(len) = self.whole_record()? {
            if ResourceManager::from_number(self.window()[16]) == Some(rmgr) {
                return self.next();
            }
            self.position += record::padded(len as u64);
        }
        Ok(None)
    }

    /// Goes to the end of the log without looking into the records, and says where it is.
    ///
    /// # Errors
    /// When a file can't be read.
    pub fn skip_to_end(&mut self) -> Result<Lsn> {
        while let Some(len) = self.whole_record()? {
            self.position += record::padded(len as u64);
        }
        Ok(Lsn(self.position))
    }

    /// Has the next record whole in the buffer and checks it; its length, or `None` at the end.
    fn whole_record(&mut self) -> Result<Option<usize>> {
        let lsn = Lsn(self.position);
        let have = self.fill(HEADER_SIZE as u64)?;
        let header = self.window();
        let expected = format_args!("expected at least {HEADER_SIZE}");
        if !have {
            return self.end(format!("invalid record length at {lsn}: {expected}, got 0"));
        }
        let len = u32::from_le_bytes(std::array::from_fn(|i| header[i])) as usize;
        if len < HEADER_SIZE {
            return self.end(format!("invalid record length at {lsn}: {expected}, got {len}"));
        }
        if len > RECORD_SIZE_MAX {
            return self.end(format!("record length {len} at {lsn} too long"));
        }
        if ResourceManager::from_number(header[16]).is_none() || header[19] != 0 {
            return self.end(format!("invalid resource manager ID {} at {lsn}", header[16]));
        }
        let stored = u32::from_le_bytes(std::array::from_fn(|i| header[4 + i]));
        if !self.fill(len as u64)? {
            return self.end(format!("record at {lsn} is not complete"));
        }
        let is_checked = lsn.0 + record::padded(len as u64) <= self.checked;
        if !is_checked && record::checksum(&self.window()[..len], lsn) != stored {
            return self
                .end(format!("incorrect resource manager data checksum in record at {lsn}"));
        }
        Ok(Some(len))
    }

    fn end(&mut self, reason: String) -> Result<Option<usize>> {
        self.end_reason = Some(reason);
        // What is not there yet may be there at the next call: forget what was read.
        self.buffer.clear();
        self.buffer_start = self.position;
        Ok(None)
    }

    /// The buffered bytes from the position on.
    fn window(&self) -> &[u8] {
        &self.buffer[(self.position - self.buffer_start) as usize..]
    }

    /// Has `len` bytes from the position on in the buffer; false if there are not so many.
    fn fill(&mut self, len: u64) -> Result<bool> {
        if self.window_len() >= len {
            return Ok(true);
        }
        self.buffer
            .drain(..(self.position - self.buffer_start).min(self.buffer.len() as u64) as usize);
        self.buffer_start = self.position;
        while self.window_len() < len {
            let at = self.buffer_start + self.buffer.len() as u64;
            let number = at / SEGMENT_SIZE;
            let Some(file) = self.file(number)? else { return Ok(false) };
            let rest = SEGMENT_SIZE - at % SEGMENT_SIZE;
            let want = rest.min(READ_AHEAD.max(len - self.window_len()));
            let old = self.buffer.len();
            self.buffer.resize(old + want as usize, 0);
            let started = now();
            let got = file.read_at(&mut self.buffer[old..], at % SEGMENT_SIZE).map_err(|e| {
                Error::io(format!("could not read file \"{}\"", self.segments.path(number)), e)
            })?;
            self.buffer.truncate(old + got);
            self.io += WalIo {
                reads: 1,
                read_bytes: got as u64,
                read_time_us: started.elapsed().as_micros() as u64,
                ..WalIo::default()
            };
            if (got as u64) < want && self.window_len() < len {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn window_len(&self) -> u64 {
        (self.buffer_start + self.buffer.len() as u64).saturating_sub(self.position)
    }

    fn file(&mut self, number: u64) -> Result<Option<Arc<dyn File>>> {
        if let Some((n, file)) = &self.file
            && *n == number
        {
            return Ok(Some(file.clone()));
        }
        let path = self.segments.path(number);
        match self.segments.disk.open(&path, OpenMode::Existing) {
            Ok(file) => {
                self.file = Some((number, file.clone()));
                Ok(Some(file))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(format!("could not open file \"{path}\""), e)),
        }
    }
}
