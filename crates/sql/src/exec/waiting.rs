//! Rows whose groups found no room in a hash table, on disk until those that did are handed out.
//!
//! # Invariants
//! They are in parts by their groups' hashes, so that each row is written a few times however many groups there are, and a group is whole in one part.
//! What is of one part is parted by other bits the next time.

use super::store::RowFile;
use base::Result;
use expr::ops::mix;
use types::Datum;

/// So many parts are made at once.
const PARTS: usize = 16;

/// The parts being written, of one grouping set.
#[derive(Default)]
pub(super) struct Parts {
    files: [Option<RowFile>; PARTS],
    /// There is a row in one.
    pub used: bool,
}

impl Parts {
    /// Adds a row of a group of that hash, which has been parted so often before.
    pub fn write(&mut self, hash: u64, depth: u32, row: &[Datum]) -> Result<()> {
        let at = mix(hash.wrapping_add(u64::from(depth) + 1)) as usize % PARTS;
        let file = match &mut self.files[at] {
            Some(file) => file,
            none => none.insert(RowFile::new(row.len())?),
        };
        self.used = true;
        file.write(row)
    }

    /// All rows are written.
    pub fn end(self, set: usize, depth: u32, out: &mut Vec<Waiting>) -> Result<()> {
        for mut rows in self.files.into_iter().flatten() {
            rows.rest()?;
            out.push(Waiting { rows, set, depth });
        }
        Ok(())
    }
}

/// A part, of which set its groups are, and how often its rows had been parted before.
pub(super) struct Waiting {
    pub rows: RowFile,
    pub set: usize,
    pub depth: u32,
}
