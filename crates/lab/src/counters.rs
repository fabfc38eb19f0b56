//! A server's own counters, before and after, and the kernel's of its processes.
//!
//! Which views a server has is asked of the server. What it does not have is none here, not 0.

use crate::Result;
use crate::client::Client;
use std::collections::BTreeMap;
use std::fs;

/// Counters at one moment, or the difference of two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters(BTreeMap<&'static str, f64>);

/// Bytes of WAL written since the beginning.
pub const WAL_BYTES: &str = "wal bytes";
/// Syncs of WAL files.
pub const WAL_SYNCS: &str = "wal syncs";
/// Writes of WAL files.
pub const WAL_WRITES: &str = "wal writes";
/// Writes of relations' files: PostgreSQL counts one a page, or one a call where it combines them.
pub const DATA_WRITES: &str = "data writes";
/// Bytes of those.
pub const DATA_WRITE_BYTES: &str = "data write bytes";
/// Writes by VACUUM, within its ring or in place of it.
pub const VACUUM_WRITES: &str = "vacuum writes";
/// Full page images in the WAL.
pub const FULL_PAGE_IMAGES: &str = "full page images";
/// Buffers that checkpoints wrote.
pub const CHECKPOINT_BUFFERS: &str = "checkpoint buffers";

impl Counters {
    /// One counter, where the server has it.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Counters) -> Counters {
        let difference = |(name, value): (&&'static str, &f64)| {
            before.get(name).map(|earlier| (*name, value - earlier))
        };
        Counters(self.0.iter().filter_map(difference).collect())
    }

    /// Reads the views that there are.
    pub fn read(client: &mut Client) -> Result<Counters> {
        let mut all = BTreeMap::new();
        let version: u32 = client.value("SHOW server_version_num")?.parse()?;
        let lsn = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')";
        let lsn = client
            .value(lsn)
            .or_else(|_| client.value("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"));
        if let Some(bytes) = lsn.ok().and_then(|l| l.parse().ok()) {
            all.insert(WAL_BYTES, bytes);
        }
        let mut ask = |names: &[&'static str], sql: &str| {
            let Ok(outcome) = client.run(sql) else { return };
            let Some(row) = outcome.rows().into_iter().next() else { return };
            for (name, value) in names.iter().zip(row) {
                if let Some(value) = value.and_then(|v| v.parse().ok()) {
                    all.insert(name, value);
                }
            }
        };
        if version >= 180_000 {
            ask(
                &[WAL_SYNCS, WAL_WRITES],
                "SELECT sum(fsyncs), sum(writes) FROM pg_stat_io WHERE object = 'wal'",
            );
            ask(&[FULL_PAGE_IMAGES], "SELECT wal_fpi FROM pg_stat_wal");
            ask(
                &[DATA_WRITES, DATA_WRITE_BYTES],
                "SELECT sum(writes) + sum(extends), sum(write_bytes) + sum(extend_bytes) \
                 FROM pg_stat_io WHERE object = 'relation'",
            );
        } else if version >= 140_000 {
            ask(
                &[WAL_SYNCS, WAL_WRITES, FULL_PAGE_IMAGES],
                "SELECT wal_sync, wal_write, wal_fpi FROM pg_stat_wal",
            );
        }
        if (160_000..180_000).contains(&version) {
            ask(
                &[DATA_WRITES],
                "SELECT sum(writes) + sum(extends) FROM pg_stat_io WHERE object = 'relation'",
            );
        }
        if version >= 160_000 {
            ask(
                &[VACUUM_WRITES],
                "SELECT sum(writes) FROM pg_stat_io WHERE object = 'relation' \
                 AND (context = 'vacuum' OR (backend_type = 'client backend' AND context = 'normal'))",
            );
        } else {
            ask(
                &[DATA_WRITES],
                "SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM pg_stat_bgwriter",
            );
        }
        let written = match version {
            170_000.. => "SELECT buffers_written FROM pg_stat_checkpointer",
            _ => "SELECT buffers_checkpoint FROM pg_stat_bgwriter",
        };
        ask(&[CHECKPOINT_BUFFERS], written);
        Ok(Counters(all))
    }
}

/// The kernel's count of write calls by these processes, to whatever file.
pub fn write_calls(pids: &[u32]) -> Option<f64> {
    let of = |pid: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        text.lines().find_map(|l| l.strip_prefix("syscw: "))?.trim().parse().ok()
    };
    let calls: Vec<u64> = pids.iter().filter_map(of).collect();
    if calls.is_empty() { None } else { Some(crate::measure::count(calls.iter().sum())) }
}
