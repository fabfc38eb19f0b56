//! The frame of a run: steps on a disk whose power goes, then a look at what is left.

use crate::Server;
use base::{Oid, Result};
use disk::Disk;
use disk::sim::SimDisk;
use engine::storage::{FIRST_FILE_NUMBER, database_folders, parse_file_name};
use rand::rngs::SmallRng;
use sql::client::Quiet;
use sql::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use txn::BackendKind;
use types::Datum;

/// One step of a workload. What fails is the end of it: the power must have gone.
pub(crate) type Step<'a> = dyn FnMut(&Server, &mut Session, &mut SmallRng) -> Result<()> + 'a;

/// A copy of `start` whose power goes at changing operation `crash_at` (None: not at all), and its operations so far.
pub(crate) fn disk(start: &SimDisk, seed: u64, crash_at: Option<u64>) -> (Arc<SimDisk>, u64) {
    let disk = start.snapshot(seed);
    let before = disk.counts().operations;
    if let Some(n) = crash_at {
        disk.crash_at(n);
    }
    (disk, before)
}

/// Takes steps, `steps` at most, until the power goes; `at` says which run this is.
///
/// # Panics
/// When a step fails without that.
pub(crate) fn work(
    disk: &Arc<SimDisk>,
    rng: &mut SmallRng,
    steps: usize,
    at: &str,
    step: &mut Step<'_>,
) {
    let Ok(server) = Server::open(disk.clone()) else { return };
    if let Ok(mut session) = server.session() {
        for _ in 0..steps {
            if let Err(error) = step(&server, &mut session, rng) {
                assert!(disk.has_crashed(), "{at}: a step failed without a crash: {error}");
                break;
            }
        }
        // A session that cannot take its transaction back may say so as it likes.
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    }
    server.engine.stop_at_once();
}

/// What comes up again.
pub(crate) struct Left<'a> {
    pub(crate) server: Server,
    pub(crate) session: Session,
    /// Which run it is left of.
    pub(crate) at: &'a str,
}

impl<'a> Left<'a> {
    /// # Panics
    /// When it does not come up.
    pub(crate) fn open(disk: Arc<dyn Disk>, at: &'a str) -> Left<'a> {
        let server = Server::open(disk).unwrap_or_else(|e| panic!("{at}: does not come up: {e}"));
        let session = server.session().unwrap_or_else(|e| panic!("{at}: no session: {e}"));
        Left { server, session, at }
    }

    /// Heaps, indexes and maps agree.
    ///
    /// # Panics
    /// When they do not.
    pub(crate) fn verify(&self, when: &str) {
        verify(&self.server, self.at, when);
    }

    /// A statement that has to work.
    ///
    /// # Panics
    /// When it does not.
    pub(crate) fn run(&mut self, sql: &str) {
        let done = self.session.simple_query(sql, &mut Quiet);
        done.unwrap_or_else(|e| panic!("{}: {sql}: {e}", self.at));
    }

    /// A last look, and the end.
    ///
    /// # Errors
    /// The shutdown's.
    pub(crate) fn shut_down(self, when: &str) -> Result<()> {
        let Left { server, session, at } = self;
        session.close();
        verify(&server, at, when);
        server.shut_down()
    }
}

fn verify(server: &Server, at: &str, when: &str) {
    let report = sql::check::check(&server.engine).unwrap_or_else(|e| panic!("{at}: {e}"));
    assert!(report.faults.is_empty(), "{at}, {when}: {:#?}", report.faults);
}

/// Every file is a relation's, every folder a database's.
///
/// # Panics
/// When one is nobody's.
pub(crate) fn no_orphans(disk: &SimDisk, server: &Server, session: &mut Session, at: &str) {
    let databases: BTreeMap<Oid, String> = session
        .in_transaction(|s| s.internal_query("SELECT oid, datname::text FROM pg_database", &[]))
        .unwrap_or_else(|e| panic!("{at}: {e}"))
        .into_iter()
        .map(|row| match &row[..] {
            [Datum::Oid(oid), Datum::Text(name)] => (*oid, name.to_string()),
            _ => panic!("{at}: {row:?}"),
        })
        .collect();
    let folders = database_folders(disk).unwrap_or_else(|e| panic!("{at}: {e}"));
    for (oid, folder) in folders.into_iter().filter(|(oid, _)| oid.is_valid()) {
        let name = databases.get(&oid).unwrap_or_else(|| panic!("{at}: {folder} is nobody's"));
        let kind = BackendKind::AutovacuumWorker;
        let there = Session::internal(&server.cluster, name, kind);
        let mut there = there.unwrap_or_else(|e| panic!("{at}: {name}: {e}"));
        let sql = "SELECT relfilenode FROM pg_class WHERE relfilenode <> 0";
        let known: BTreeSet<u32> = there
            .in_transaction(|s| s.internal_query(sql, &[]))
            .unwrap_or_else(|e| panic!("{at}: {e}"))
            .into_iter()
            .map(|row| if let Some(Datum::Oid(o)) = row.first() { o.0 } else { 0 })
            .collect();
        there.close();
        let files = disk.list(&folder).unwrap_or_else(|e| panic!("{at}: {e}"));
        for file in files {
            if let Some((file_number, _)) = parse_file_name(&file)
                && file_number >= FIRST_FILE_NUMBER
            {
                assert!(known.contains(&file_number), "{at}: {folder}/{file} is nobody's");
            }
        }
    }
}
