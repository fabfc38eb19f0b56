//! Statements and their counters, kept over a restart in good order.
//!
//! # Layout
//! `statements.json` in the data folder: a line with a hash of the rest, then what there is as JSON.
//!
//! # Crash cases
//! The file is written when the server stops, and goes before the next server counts its first statement: after a crash there is none, as
//! in PostgreSQL, and counting begins anew. One that is damaged is told of in the log and passed over.

use super::counters::Counters;
use super::hash::Hash;
use super::table::{Info, Key, Table};
use base::{Error, Oid, Result};
use disk::{Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

pub(super) const FILE: &str = "statements.json";
const NEW: &str = "statements.json.new";
const VERSION: u32 = 1;

/// The file's contents.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    version: u32,
    dealloc: i64,
    reset_us: i64,
    /// Those that have the extension.
    databases: BTreeSet<u32>,
    statements: Vec<Statement>,
}

#[derive(Serialize, Deserialize)]
struct Statement {
    user: u32,
    database: u32,
    id: i64,
    toplevel: bool,
    text: String,
    since_us: [i64; 2],
    counters: Counters,
}

impl Kept {
    /// Fills an empty table; returns the databases that have the extension.
    pub(super) fn put_back(self, table: &Table) -> BTreeSet<u32> {
        let entries = self.statements.into_iter().map(|s| {
            let (user, database) = (Oid(s.user), Oid(s.database));
            let key = Key { user, database, id: s.id, toplevel: s.toplevel };
            (key, s.text, s.since_us, s.counters)
        });
        let info = Info { dealloc: self.dealloc, reset_us: self.reset_us };
        table.put_back(info, entries.collect());
        self.databases
    }
}

fn failed(what: &str, e: io::Error) -> Error {
    Error::io(format!("could not {what} file \"{FILE}\""), e)
}

fn damaged() -> Error {
    failed("understand", io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
}

/// The first line.
fn seal(body: &[u8]) -> String {
    let mut hash = Hash::new();
    hash.bytes(body);
    format!("{:016x}\n", hash.id())
}

/// What was kept, if anything was.
pub(super) fn read(disk: &dyn Disk) -> Result<Option<Kept>> {
    if !disk.exists(FILE).map_err(|e| failed("look for", e))? {
        return Ok(None);
    }
    let file = disk.open(FILE, OpenMode::Existing).map_err(|e| failed("open", e))?;
    let len = file.len().map_err(|e| failed("read", e))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64).map_err(|e| failed("read", e))? {
            0 => return Err(damaged()),
            n => read += n,
        }
    }
    let line = bytes.iter().position(|b| *b == b'\n').ok_or_else(damaged)?;
    let (first, body) = bytes.split_at(line + 1);
    if first != seal(body).as_bytes() {
        return Err(damaged());
    }
    let kept: Kept = serde_json::from_slice(body).map_err(|e| failed("understand", e.into()))?;
    if kept.version != VERSION {
        let other = io::Error::other(format!("version {}", kept.version));
        return Err(failed("understand", other));
    }
    Ok(Some(kept))
}

/// What there was goes.
pub(super) fn remove(disk: &dyn Disk) {
    if let Err(e) = disk.remove(FILE).and_then(|()| disk.sync_dir("")) {
        base::log!("could not remove file \"{FILE}\": {e}");
    }
}

/// Keeps what is in `table`.
pub(super) fn write(disk: &dyn Disk, table: &Table, databases: BTreeSet<u32>) -> Result<()> {
    let info = table.info();
    let statements = table.all().into_iter().map(|entry| Statement {
        user: entry.key.user.0,
        database: entry.key.database.0,
        id: entry.key.id,
        toplevel: entry.key.toplevel,
        text: entry.text.to_string(),
        since_us: [entry.since_us, entry.extremes_since_us()],
        counters: entry.counters(),
    });
    let kept = Kept {
        version: VERSION,
        dealloc: info.dealloc,
        reset_us: info.reset_us,
        databases,
        statements: statements.collect(),
    };
    let body = serde_json::to_vec(&kept).map_err(|e| failed("write", e.into()))?;
    let seal = seal(&body);
    let file = disk.open(NEW, OpenMode::Create).map_err(|e| failed("create", e))?;
    let written = file
        .set_len(0)
        .and_then(|()| file.write_at(seal.as_bytes(), 0))
        .and_then(|()| file.write_at(&body, seal.len() as u64))
        .and_then(|()| file.sync_data());
    written.map_err(|e| failed("write", e))?;
    drop(file);
    disk.rename(NEW, FILE).map_err(|e| failed("rename", e))?;
    disk.sync_dir("").map_err(|e| failed("fsync", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::counters::Used;
    use disk::sim::SimDisk;

    fn filled() -> Table {
        let table = Table::new(100, 7);
        for id in [-5, 6] {
            let key = Key { user: Oid(10), database: Oid(5), id, toplevel: id > 0 };
            let entry = table.entry(key, || format!("select ${id} -- \u{e9}\""));
            entry
                .count(1, |c| c.executed(1.25, 3, &Used { wal_bytes: 1 << 40, ..Used::default() }));
        }
        table
    }

    #[test]
    fn statements_come_back() {
        let disk = SimDisk::new(1);
        assert!(read(disk.as_ref()).unwrap().is_none());
        let before = filled();
        write(disk.as_ref(), &before, BTreeSet::from([5])).unwrap();
        let after = Table::new(100, 99);
        let databases = read(disk.as_ref()).unwrap().unwrap().put_back(&after);
        assert_eq!((databases, after.info()), (BTreeSet::from([5]), before.info()));
        assert_eq!(after.all().len(), 2);
        for entry in after.all() {
            let old = before.get(&entry.key).unwrap();
            assert_eq!((&entry.text, entry.since_us), (&old.text, old.since_us));
            assert_eq!(entry.counters(), old.counters());
        }
        remove(disk.as_ref());
        assert!(read(disk.as_ref()).unwrap().is_none());
    }

    #[test]
    fn what_is_damaged_is_found_out() {
        let disk = SimDisk::new(1);
        write(disk.as_ref(), &filled(), BTreeSet::new()).unwrap();
        let file = disk.open(FILE, OpenMode::Existing).unwrap();
        let len = file.len().unwrap();
        for at in (0..len).step_by(7) {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 1], at).unwrap();
            assert!(read(disk.as_ref()).is_err(), "byte {at}");
            file.write_at(&byte, at).unwrap();
        }
        assert!(read(disk.as_ref()).unwrap().is_some());
        for cut in [0, 5, 17, len - 1] {
            file.set_len(cut).unwrap();
            assert!(read(disk.as_ref()).is_err(), "{cut} bytes");
        }
    }
}
