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
use disk::{Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RANK: Rank = Rank(46);
const FILE: &str = "activity.json";
const NEW: &str = "activity.json.new";
const VERSION: u32 = 1;
/// How often the launcher may write.
const WRITE_EVERY: Duration = Duration::from_secs(60);

type Tables = BTreeMap<u32, BTreeMap<String, i64>>;

/// The file's contents.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    version: u32,
    since_us: i64,
    since_xid: u64,
    databases: BTreeMap<u32, Tables>,
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
    state: Mutex<State>,
}

struct State {
    waiting: HashMap<Oid, Tables>,
    written: Vec<u8>,
    written_at: Instant,
}

impl KeptCounts {
    /// Reads what a server before this one kept; `now` if there is nothing, or nothing that can be read.
    pub fn read(disk: Arc<dyn Disk>, now: Since) -> KeptCounts {
        let (written, kept) = match load(disk.as_ref()) {
            Ok(found) => found.map_or((Vec::new(), None), |(bytes, kept)| (bytes, Some(kept))),
            Err(e) => {
                base::log!("the counts of \"{FILE}\" begin anew: {e}");
                (Vec::new(), None)
            }
        };
        let since = kept.as_ref().map_or(now, |k| Since { us: k.since_us, xid: Xid(k.since_xid) });
        let databases = kept.map(|k| k.databases).unwrap_or_default();
        let waiting = databases.into_iter().map(|(oid, tables)| (Oid(oid), tables)).collect();
        let state = State { waiting, written, written_at: base::sync::now() };
        KeptCounts { disk, since, state: Mutex::new(RANK, state) }
    }

    /// When counting began.
    pub fn since(&self) -> Since {
        self.since
    }

    /// A database's counts, which are the caller's from now on.
    /// `shared`: where those of the shared catalogs are, which are database 0's.
    pub fn take(&self, database: Oid, shared: Option<Arc<TableActivity>>) -> TableActivity {
        let tables = self.state.lock().waiting.remove(&database).unwrap_or_default();
        TableActivity::with(
            tables.iter().map(|(oid, counts)| (Oid(*oid), TableCounts::of_named(counts))),
            shared,
        )
    }

    /// Forgets a database that is no more.
    pub fn forget(&self, database: Oid) {
        self.state.lock().waiting.remove(&database);
    }

    /// Is it time to write them again?
    pub fn are_due(&self) -> bool {
        self.state.lock().written_at.elapsed() >= WRITE_EVERY
    }

    /// What is to be kept: the counts of `databases`, and what waits.
    pub fn gather<'a>(&self, databases: impl Iterator<Item = (Oid, &'a TableActivity)>) -> Kept {
        let tables = |activity: &TableActivity| -> Tables {
            let all = activity.all().into_iter();
            all.map(|(oid, counts)| (oid.0, counts.named()))
                .filter(|(_, c)| !c.is_empty())
                .collect()
        };
        let mut all: BTreeMap<u32, Tables> =
            databases.map(|(oid, activity)| (oid.0, tables(activity))).collect();
        let state = self.state.lock();
        all.extend(state.waiting.iter().map(|(oid, tables)| (oid.0, tables.clone())));
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
        let mut state = self.state.lock();
        let bytes = serde_json::to_vec(kept)
            .map_err(|e| Error::io(format!("could not write file \"{NEW}\""), e.into()))?;
        state.written_at = base::sync::now();
        if bytes == state.written {
            return Ok(());
        }
        replace(self.disk.as_ref(), &bytes, sync)?;
        state.written = bytes;
        Ok(())
    }
}

fn io(what: &str, e: std::io::Error) -> Error {
    Error::io(format!("could not {what} file \"{FILE}\""), e)
}

fn replace(disk: &dyn Disk, bytes: &[u8], sync: bool) -> Result<()> {
    let file = disk.open(NEW, OpenMode::Create).map_err(|e| io("create", e))?;
    file.set_len(0).map_err(|e| io("truncate", e))?;
    file.write_at(bytes, 0).map_err(|e| io("write", e))?;
    if sync {
        file.sync_data().map_err(|e| io("fsync", e))?;
    }
    drop(file);
    disk.rename(NEW, FILE).map_err(|e| io("rename", e))?;
    if sync { disk.sync_dir("").map_err(|e| io("fsync", e)) } else { Ok(()) }
}

/// The file's bytes and what they say, if there is one.
fn load(disk: &dyn Disk) -> Result<Option<(Vec<u8>, Kept)>> {
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
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|e| io("understand", e.into()))?;
    if kept.version != VERSION {
        return Err(io("understand", std::io::Error::other(format!("version {}", kept.version))));
    }
    Ok(Some((bytes, kept)))
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

    fn write(kept: &KeptCounts, databases: &[(Oid, &TableActivity)]) {
        kept.write(&kept.gather(databases.iter().copied()), true).unwrap();
    }

    #[test]
    fn counts_come_back() {
        let disk = SimDisk::new(1);
        let first = KeptCounts::read(disk.clone(), NOW);
        assert_eq!(first.since(), NOW);
        let activity = first.take(Oid(5), None);
        activity.of(Oid(100)).dead.store(7, Ordering::Relaxed);
        activity.of(Oid(100)).vacuum_time_us.store(1 << 40, Ordering::Relaxed);
        activity.of(Oid(101));
        write(&first, &[(Oid(5), &activity), (Oid(6), &TableActivity::default())]);
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
        let activity = TableActivity::default();
        activity.of(Oid(100)).dead.store(7, Ordering::Relaxed);
        write(&kept, &[(Oid(5), &activity)]);
        let whole = load(disk.as_ref()).unwrap().unwrap().0;
        for cut in 0..whole.len() {
            replace(disk.as_ref(), &whole[..cut], true).unwrap();
            let kept = KeptCounts::read(disk.clone(), LATER);
            assert_eq!(kept.since(), LATER);
            assert!(kept.take(Oid(5), None).all().is_empty());
        }
        let newer = String::from_utf8(whole).unwrap().replace("\"version\":1", "\"version\":2");
        replace(disk.as_ref(), newer.as_bytes(), true).unwrap();
        assert_eq!(KeptCounts::read(disk.clone(), LATER).since(), LATER);
    }
}
