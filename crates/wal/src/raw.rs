//! A record of the log as it was read, not decoded yet: so that one thread can say which pages a record changes, and others decode it.

use crate::record::{self, BlockParts, HEADER_SIZE, Record, RecordParts, ResourceManager};
use base::{Error, Lsn, PageTag, Result, Xid};
use smallvec::SmallVec;

/// A whole record with the right checksum, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'b> {
    bytes: &'b [u8],
    lsn: Lsn,
}

impl<'b> RawRecord<'b> {
    /// The bytes of a record that starts at `lsn`, as [`RawRecord::bytes`] gave them.
    ///
    /// # Panics
    /// If they are fewer than a record has.
    pub fn new(bytes: &'b [u8], lsn: Lsn) -> RawRecord<'b> {
        assert!(bytes.len() >= HEADER_SIZE, "{} bytes are no record", bytes.len());
        RawRecord { bytes, lsn }
    }

    /// Its bytes, without the padding.
    pub fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// Where it starts.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The transaction that wrote it, if any.
    pub fn xid(&self) -> Xid {
        Xid(u64::from_le_bytes(std::array::from_fn(|i| self.bytes[8 + i])))
    }

    /// Who redoes it.
    ///
    /// # Errors
    /// XX001 if there is no such resource manager.
    pub fn rmgr(&self) -> Result<ResourceManager> {
        ResourceManager::from_number(self.bytes[16])
            .ok_or_else(|| self.senseless("record of an unknown resource manager"))
    }

    /// The resource manager's own: which kind of record.
    pub fn info(&self) -> u8 {
        self.bytes[17]
    }

    /// The pages that it changed.
    ///
    /// # Errors
    /// XX001 if it makes no sense.
    pub fn tags(&self) -> Result<SmallVec<[PageTag; 4]>> {
        record::tags(self.bytes).map_err(|what| self.senseless(what))
    }

    /// Where it ends: the LSN of the pages it changed.
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.lsn.0 + record::padded(self.bytes.len() as u64))
    }

    /// Its parts.
    ///
    /// # Errors
    /// XX001 if it makes no sense.
    pub fn parts(&self) -> Result<RecordParts<'b>> {
        record::parts(self.bytes).map_err(|what| self.senseless(what))
    }

    /// All of it.
    ///
    /// # Errors
    /// XX001 if it makes no sense.
    pub fn decode(&self) -> Result<Record> {
        self.assemble(&self.parts()?, |_| true)
    }

    /// Its record, made of its `parts`. Of blocks that are not `wanted` neither the image nor the data is there.
    ///
    /// # Errors
    /// XX001 if it makes no sense.
    pub fn assemble(
        &self,
        parts: &RecordParts<'_>,
        wanted: impl Fn(&BlockParts<'_>) -> bool,
    ) -> Result<Record> {
        parts.record(self.lsn, self.bytes.len(), wanted).map_err(|what| self.senseless(what))
    }

    /// The error of a record that makes no sense, for `what` reason.
    pub fn senseless(&self, what: &str) -> Error {
        Error::corrupt_file(format!("{what} in the write-ahead log at {}", self.lsn))
    }
}
