//! The counts of tables ([`crate::activity`]), kept over restarts.
//!
//! # Purpose
//! Autovacuum decides by them. A server that forgot them would leave the dead rows of before alone until as many again have come.
//!
//! # Layout
//! `activity.json` in the data folder: since when there are counts, and by database and table those that are not 0, by name. What has no
//! name here is passed over, what is missing is 0.
//!
//! # Invariants
//! A database's counts are in memory or among those that wait for its first use, never in both; the file is made of all of them.
//!
//! # Crash cases
//! Written when the server stops and, by autovacuum's launcher, once a minute if something has changed, under another name that then takes
//! the file's place. It is not synced in between: after a loss of power it may be the one before, or damaged, which is told in the log,
//! and the counts begin anew. After a crash they are those of a minute ago at worst: what was done since is not counted, and a table
//! vacuumed since may be looked at once more than need be.
//!
//! # Differs from PostgreSQL
//! PostgreSQL 18 writes all its statistics when it stops, and discards them after a crash. What Ebb counts of databases and of the server
//! (`pg_stat_database`, `pg_stat_io` and the like) begins anew at every restart.

use crate::activity::{TableActivity, TableCounts};
use base::sync::{Mutex, Rank};
use base::{Error, Oid, Result, Xid};
use disk::{Disk, File, OpenMode};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who writes looks at counts, which have locks of their own.
const WRITTEN_RANK: Rank = Rank(44);
const RANK: Rank = Rank(46);
const FILE: &str = "activity.json";
const NEW: &str = "activity.json.new";
const VERSION: u32 = 1;
/// How often the launcher may write.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// So much of the file is in memory at once.
const PIECE: usize = 1 << 16;

/// The file's contents, as they are read.
#[derive(Deserialize)]
struct Found<'a> {
    version: u32,
    since_us: i64,
    since_xid: u64,
    #[serde(borrow)]
    databases: BTreeMap<u32, &'a RawValue>,
}

/// The file's contents, to be written.
#[derive(Serialize)]
pub struct Kept {
    version: u32,
    since_us: i64,
    since_xid: u64,
    databases: BTreeMap<u32, Part>,
}

/// A database's part of it.
enum Part {
    Counted(Arc<TableActivity>),
    Waiting(Arc<RawValue>),
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let activity = match self {
            Part::Counted(activity) => activity,
            Part::Waiting(text) => return text.serialize(to),
        };
        let mut all = activity.all();
        all.sort_unstable_by_key(|(oid, _)| *oid);
        let mut tables = to.serialize_map(None)?;
        for (oid, counts) in &all {
            let mut any = false;
            counts.each_named(|_, _| any = true);
            if any {
                tables.serialize_entry(&oid.0, &Named(counts))?;
            }
        }
        tables.end()
    }
}

/// A table's part: those of its counts that are not 0, by name.
struct Named<'a>(&'a TableCounts);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let mut result = Ok(());
        self.0.each_named(|name, n| {
            if result.is_ok() {
                result = map.serialize_entry(name, &n);
            }
        });
        result.and_then(|()| map.end())
    }
}

impl<'de> Deserialize<'de> for TableCounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<TableCounts, D::Error> {
        struct Counts;
        impl<'de> Visitor<'de> for Counts {
            type Value = TableCounts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by name")
            }
            fn visit_map<M: MapAccess<'de>>(
                self,
                mut map: M,
            ) -> std::result::Result<TableCounts, M::Error> {
                let counts = TableCounts::default();
                while let Some((name, n)) = map.next_entry::<String, i64>()? {
                    counts.set_named(&name, n);
                }
                Ok(counts)
            }
        }
        from.deserialize_map(Counts)
    }
}

/// A database's tables.
struct Tables(Vec<(Oid, TableCounts)>);

impl<'de> Deserialize<'de> for Tables {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Tables, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Tables;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tables by OID")
            }
            fn visit_map<M: MapAccess<'de>>(
                self,
                mut map: M,
            ) -> std::result::Result<Tables, M::Error> {
                let mut tables = Vec::new();
                while let Some((oid, counts)) = map.next_entry()? {
                    tables.push((Oid(oid), counts));
                }
                Ok(Tables(tables))
            }
        }
        from.deserialize_map(All)
    }
}

/// When counting began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Since {
    /// As a timestamptz.
    pub us: i64,
    /// The next XID then.
    pub xid: Xid,
}

/// What was kept, until its database is used, and what was written last.
pub struct KeptCounts {
    disk: Arc<dyn Disk>,
    since: Since,
    waiting: Mutex<HashMap<Oid, Arc<RawValue>>>,
    written: Mutex<Written>,
}

/// What was written last.
struct Written {
    /// A hash of it, by which it is known again.
    hash: Option<u64>,
    at: Instant,
}

impl KeptCounts {
    /// Reads what a server before this one kept; `now` if there is nothing, or nothing that can be read.
    pub fn read(disk: Arc<dyn Disk>, now: Since) -> KeptCounts {
        let (mut since, mut hash, mut waiting) = (now, None, HashMap::new());
        let read = read_file(disk.as_ref()).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(()) };
            let found = understand(&bytes)?;
            since = Since { us: found.since_us, xid: Xid(found.since_xid) };
            let databases = found.databases.into_iter();
            waiting.extend(databases.map(|(oid, text)| (Oid(oid), Arc::from(text.to_owned()))));
            hash = Some(hash_of(|to| to.write_all(&bytes)).map_err(|e| io("read", e))?);
            Ok(())
        });
        if let Err(e) = read {
            base::log!("the counts of \"{FILE}\" begin anew: {e}");
        }
        KeptCounts {
            disk,
            since,
            waiting: Mutex::new(RANK, waiting),
            written: Mutex::new(WRITTEN_RANK, Written { hash, at: base::sync::now() }),
        }
    }

    /// When counting began.
    pub fn since(&self) -> Since {
        self.since
    }

    /// A database's counts, which are the caller's from now on.
    /// `shared`: where those of the shared catalogs are, which are database 0's.
    pub fn take(&self, database: Oid, shared: Option<Arc<TableActivity>>) -> TableActivity {
        let text = self.waiting.lock().remove(&database);
        let tables = text.map(|text| serde_json::from_str::<Tables>(text.get()));
        let tables = match tables {
            Some(Ok(tables)) => tables.0,
            Some(Err(e)) => {
                base::log!("the counts of \"{FILE}\" begin anew for database {database}: {e}");
                Vec::new()
            }
            None => Vec::new(),
        };
        TableActivity::with(tables.into_iter(), shared)
    }

    /// Forgets a database that is no more.
    pub fn forget(&self, database: Oid) {
        self.waiting.lock().remove(&database);
    }

    /// Is it time to write them again?
    pub fn are_due(&self) -> bool {
        self.written.lock().at.elapsed() >= WRITE_EVERY
    }

    /// What is to be kept: the counts of `databases`, as they are when they are written, and what waits.
    pub fn gather(&self, databases: impl Iterator<Item = (Oid, Arc<TableActivity>)>) -> Kept {
        let mut all: BTreeMap<u32, Part> =
            databases.map(|(oid, activity)| (oid.0, Part::Counted(activity))).collect();
        let waiting = self.waiting.lock();
        all.extend(waiting.iter().map(|(oid, text)| (oid.0, Part::Waiting(Arc::clone(text)))));
        Kept {
            version: VERSION,
            since_us: self.since.us,
            since_xid: self.since.xid.0,
            databases: all,
        }
    }

    /// Writes it down, unless that is what was written before.
    ///
    /// # Errors
    /// The disk's; the old file stays.
    pub fn write(&self, kept: &Kept, sync: bool) -> Result<()> {
        let mut written = self.written.lock();
        // What is counted between this and the writing goes into the file, and makes the next one differ.
        let hash = hash_of(|to| kept.write_to(to)).map_err(|e| io("write", e))?;
        written.at = base::sync::now();
        if written.hash == Some(hash) {
            return Ok(());
        }
        written.hash = None;
        replace(self.disk.as_ref(), |to| kept.write_to(to), sync)?;
        written.hash = Some(hash);
        Ok(())
    }
}

impl Kept {
    fn write_to(&self, to: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(to, self).map_err(Into::into)
    }
}

fn io(what: &str, e: io::Error) -> Error {
    Error::io(format!("could not {what} file \"{FILE}\""), e)
}

/// The hash of what `write` writes.
fn hash_of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    struct Hashed(DefaultHasher);
    impl Write for Hashed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut to = BufWriter::with_capacity(PIECE, Hashed(DefaultHasher::new()));
    write(&mut to)?;
    Ok(to.into_inner().map_err(io::IntoInnerError::into_error)?.0.finish())
}

/// A file, written from its beginning.
struct FileWriter {
    file: Arc<dyn File>,
    at: u64,
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn replace(
    disk: &dyn Disk,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    sync: bool,
) -> Result<()> {
    let file = disk.open(NEW, OpenMode::Create).map_err(|e| io("create", e))?;
    file.set_len(0).map_err(|e| io("truncate", e))?;
    let mut to = BufWriter::with_capacity(PIECE, FileWriter { file, at: 0 });
    let written = write(&mut to).and_then(|()| to.flush());
    written.map_err(|e| io("write", e))?;
    if sync {
        to.get_ref().file.sync_data().map_err(|e| io("fsync", e))?;
    }
    drop(to);
    disk.rename(NEW, FILE).map_err(|e| io("rename", e))?;
    if sync { disk.sync_dir("").map_err(|e| io("fsync", e)) } else { Ok(()) }
}

/// The file's bytes, if there is one.
fn read_file(disk: &dyn Disk) -> Result<Option<Vec<u8>>> {
    if !disk.exists(FILE).map_err(|e| io("look for", e))? {
        return Ok(None);
    }
    let file = disk.open(FILE, OpenMode::Existing).map_err(|e| io("open", e))?;
    let len = file.len().map_err(|e| io("read", e))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64).map_err(|e| io("read", e))? {
            0 => break,
            n => read += n,
        }
    }
    Ok(Some(bytes))
}

/// What they say.
fn understand(bytes: &[u8]) -> Result<Found<'_>> {
    let found: Found<'_> = serde_json::from_slice(bytes).map_err(|e| io("understand", e.into()))?;
    if found.version != VERSION {
        return Err(io("understand", io::Error::other(format!("version {}", found.version))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::sim::SimDisk;
    use std::sync::atomic::Ordering;

    const NOW: Since = Since { us: 77, xid: Xid(5) };
    const LATER: Since = Since { us: 99, xid: Xid(9) };

    fn dead(activity: &TableActivity, table: u32) -> i64 {
        activity.of(Oid(table)).dead.load(Ordering::Relaxed)
    }

    fn write(kept: &KeptCounts, databases: &[(Oid, &Arc<TableActivity>)]) {
        let databases = databases.iter().map(|(oid, activity)| (*oid, Arc::clone(activity)));
        kept.write(&kept.gather(databases), true).unwrap();
    }

    #[test]
    fn counts_come_back() {
        let disk = SimDisk::new(1);
        let first = KeptCounts::read(disk.clone(), NOW);
        assert_eq!(first.since(), NOW);
        let activity = Arc::new(first.take(Oid(5), None));
        activity.of(Oid(100)).dead.store(7, Ordering::Relaxed);
        activity.of(Oid(100)).vacuum_time_us.store(1 << 40, Ordering::Relaxed);
        activity.of(Oid(101));
        write(&first, &[(Oid(5), &activity), (Oid(6), &Arc::default())]);
        let second = KeptCounts::read(disk.clone(), LATER);
        assert_eq!(second.since(), NOW);
        // Another database is used before; what waits is kept.
        write(&second, &[(Oid(7), &activity)]);
        let third = KeptCounts::read(disk.clone(), LATER);
        for database in [5, 7] {
            let activity = third.take(Oid(database), None);
            assert_eq!((dead(&activity, 100), activity.all().len()), (7, 1));
            let time = &activity.of(Oid(100)).vacuum_time_us;
            assert_eq!(time.load(Ordering::Relaxed), 1 << 40);
        }
        assert!(third.take(Oid(5), None).all().is_empty(), "they are given once");
    }

    #[test]
    fn what_cannot_be_read_begins_anew() {
        let disk = SimDisk::new(1);
        let kept = KeptCounts::read(disk.clone(), NOW);
        let activity = Arc::new(TableActivity::default());
        activity.of(Oid(100)).dead.store(7, Ordering::Relaxed);
        write(&kept, &[(Oid(5), &activity)]);
        let whole = read_file(disk.as_ref()).unwrap().unwrap();
        for cut in 0..whole.len() {
            replace(disk.as_ref(), |to| to.write_all(&whole[..cut]), true).unwrap();
            let kept = KeptCounts::read(disk.clone(), LATER);
            assert_eq!(kept.since(), LATER);
            assert!(kept.take(Oid(5), None).all().is_empty());
        }
        let newer = String::from_utf8(whole).unwrap().replace("\"version\":1", "\"version\":2");
        replace(disk.as_ref(), |to| to.write_all(newer.as_bytes()), true).unwrap();
        assert_eq!(KeptCounts::read(disk.clone(), LATER).since(), LATER);
    }

    /// A part whose counts are none: its database's alone begin anew, when it is used.
    #[test]
    fn a_database_that_cannot_be_read_begins_anew_by_itself() {
        let disk = SimDisk::new(1);
        let text = r#"{"version":1,"since_us":77,"since_xid":5,
            "databases":{"5":{"100":{"dead":7}},"6":{"100":{"dead":"many"}},"7":{"100":{"dead":7,"odd":1}}}}"#;
        replace(disk.as_ref(), |to| to.write_all(text.as_bytes()), true).unwrap();
        let kept = KeptCounts::read(disk.clone(), LATER);
        assert_eq!(kept.since(), NOW);
        assert_eq!(dead(&kept.take(Oid(5), None), 100), 7);
        assert!(kept.take(Oid(6), None).all().is_empty());
        assert_eq!(dead(&kept.take(Oid(7), None), 100), 7);
    }

    /// What is the same again is not written again, whether this server wrote it or the one before.
    #[test]
    fn what_has_not_changed_is_not_written_again() {
        let disk = SimDisk::new(1);
        let first = KeptCounts::read(disk.clone(), NOW);
        let activity = Arc::new(TableActivity::default());
        for table in 100..3000 {
            activity.of(Oid(table)).dead.store(7, Ordering::Relaxed);
        }
        let there = || disk.exists(FILE).unwrap();
        write(&first, &[(Oid(5), &activity)]);
        assert!(there());
        disk.remove(FILE).unwrap();
        write(&first, &[(Oid(5), &activity)]);
        assert!(!there());
        activity.of(Oid(2999)).dead.store(8, Ordering::Relaxed);
        write(&first, &[(Oid(5), &activity)]);
        assert!(there());
        let second = KeptCounts::read(disk.clone(), LATER);
        disk.remove(FILE).unwrap();
        write(&second, &[]);
        assert!(!there());
        let taken = Arc::new(second.take(Oid(5), None));
        assert_eq!((taken.all().len(), dead(&taken, 2999)), (2900, 8));
        write(&second, &[(Oid(5), &taken)]);
        assert!(!there());
    }

    /// However many tables there are, the file goes to the disk in pieces.
    #[test]
    fn the_file_is_written_in_pieces() {
        let mut longest = 0;
        let mut sum = 0;
        struct Pieces<'a>(&'a mut usize, &'a mut usize);
        impl Write for Pieces<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                *self.0 = (*self.0).max(bytes.len());
                *self.1 += bytes.len();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let activity = Arc::new(TableActivity::default());
        for table in 100..10_000 {
            activity.of(Oid(table)).dead.store(7, Ordering::Relaxed);
        }
        let kept = KeptCounts::read(SimDisk::new(1), NOW);
        let kept = kept.gather(std::iter::once((Oid(5), activity)));
        kept.write_to(&mut Pieces(&mut longest, &mut sum)).unwrap();
        assert!(longest < 64 && sum > 10 * 9900, "{longest} of {sum}");
    }
}
