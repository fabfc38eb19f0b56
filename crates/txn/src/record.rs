//! What a transaction's end writes to the WAL.
//!
//! # Layout
//! All little-endian. Commit and abort: timestamp i64, then five counted lists, each a u32 and its elements: XIDs of
//! subtransactions (u64), files to remove (database u32, file number u32), and the bytes of the invalidation
//! payload. Next-XID: one u64.

use base::{Error, Oid, RelationId, Result, Xid};

/// `info` of a commit record.
pub const COMMIT: u8 = 0;
/// `info` of an abort record.
pub const ABORT: u8 = 1;
/// `info` of a record that moves the next XID forward.
pub const NEXT_XID: u8 = 2;
/// `info` of a record that truncates the commit log.
pub const TRUNCATE_LOG: u8 = 3;

/// A transaction's commit, or the abort of a transaction or of some of its subtransactions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitRecord {
    /// Microseconds since 2000.
    pub timestamp_us: i64,
    /// Its subtransactions that end with it.
    pub children: Vec<Xid>,
    /// Relation files that go with it.
    pub remove: Vec<RelationId>,
    /// What other sessions' caches must forget; opaque here.
    pub invalidations: Vec<u8>,
}

/// An abort record has the same shape.
pub type AbortRecord = CommitRecord;

impl CommitRecord {
    /// The record's main data.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(20 + self.children.len() * 8 + self.remove.len() * 8);
        out.extend_from_slice(&self.timestamp_us.to_le_bytes());
        out.extend_from_slice(&(self.children.len() as u32).to_le_bytes());
        for xid in &self.children {
            out.extend_from_slice(&xid.0.to_le_bytes());
        }
        out.extend_from_slice(&(self.remove.len() as u32).to_le_bytes());
        for rel in &self.remove {
            out.extend_from_slice(&rel.database.0.to_le_bytes());
            out.extend_from_slice(&rel.file_number.to_le_bytes());
        }
        out.extend_from_slice(&(self.invalidations.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.invalidations);
        out
    }

    /// The inverse of [`CommitRecord::encode`].
    ///
    /// # Errors
    /// Corruption, if the bytes are not such a record.
    pub fn decode(bytes: &[u8]) -> Result<CommitRecord> {
        let mut rest = Bytes(bytes);
        let timestamp_us = rest.u64()? as i64;
        let n = rest.count(8)?;
        let children = (0..n).map(|_| Ok(Xid(rest.u64()?))).collect::<Result<_>>()?;
        let n = rest.count(8)?;
        let remove = (0..n)
            .map(|_| Ok(RelationId { database: Oid(rest.u32()?), file_number: rest.u32()? }))
            .collect::<Result<_>>()?;
        let n = rest.count(1)?;
        let invalidations = rest.take(n)?.to_vec();
        if !rest.0.is_empty() {
            return Err(bad());
        }
        Ok(CommitRecord { timestamp_us, children, remove, invalidations })
    }
}

struct Bytes<'a>(&'a [u8]);

fn bad() -> Error {
    Error::corrupt_file("malformed transaction record in the write-ahead log")
}

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n).ok_or_else(bad)?;
        self.0 = tail;
        Ok(head)
    }
    fn u32(&mut self) -> Result<u32> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn u64(&mut self) -> Result<u64> {
        let low = u64::from(self.u32()?);
        Ok(low | u64::from(self.u32()?) << 32)
    }
    fn count(&mut self, size: usize) -> Result<usize> {
        let n = self.u32()? as usize;
        if n.checked_mul(size).is_none_or(|bytes| bytes > self.0.len()) {
            return Err(bad());
        }
        Ok(n)
    }
}

/// The XID in a next-XID or truncation record.
///
/// # Errors
/// Corruption, if the bytes are not such a record.
pub fn decode_xid(bytes: &[u8]) -> Result<Xid> {
    let mut rest = Bytes(bytes);
    Ok(Xid(rest.u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let r = CommitRecord {
            timestamp_us: -5,
            children: vec![Xid(7), Xid(1 << 40)],
            remove: vec![RelationId { database: Oid(5), file_number: 16384 }],
            invalidations: vec![1, 2, 3],
        };
        let bytes = r.encode();
        assert_eq!(CommitRecord::decode(&bytes).unwrap(), r);
        for cut in 0..bytes.len() {
            assert!(CommitRecord::decode(&bytes[..cut]).is_err());
        }
        assert!(CommitRecord::decode(&[255; 64]).is_err());
    }
}
