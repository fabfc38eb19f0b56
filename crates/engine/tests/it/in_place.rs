//! Statistics written in place beside changes of the same row: each in the midst of the other, and at a crash.

use base::stop;
use base::{Oid, Xid};
use disk::Disk;
use engine::catalog::bootstrap::{TEMPLATE1, bootstrap};
use engine::catalog::load::RowSource;
use engine::catalog::rows::Row;
use engine::catalog::store::{CatalogStore, Catalogs};
use engine::relation::Storage;
use engine::{CheckpointFlags, Engine, EngineOptions};
use std::sync::Arc;
use txn::{Backend, BackendKind, CommitExtras, Transaction};
use types::Datum;

const SYNC: CommitExtras =
    CommitExtras { dropped: Vec::new(), invalidations: Vec::new(), sync: true };

fn options() -> EngineOptions {
    let settings = base::settings::ServerSettings::new();
    EngineOptions { background: false, ..EngineOptions::new(Arc::new(settings)) }
}

/// An engine that has been started with its catalogs there.
fn bootstrapped(disk: &Arc<dyn Disk>) -> (Arc<Engine>, CatalogStore) {
    let engine = Engine::init(Arc::clone(disk), options()).unwrap();
    {
        let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
        let txn = engine.txns.begin(&client(&engine));
        bootstrap(&store, &txn).unwrap();
        txn.commit(SYNC).unwrap();
    }
    engine.shutdown().unwrap();
    drop(engine);
    start(disk)
}

fn start(disk: &Arc<dyn Disk>) -> (Arc<Engine>, CatalogStore) {
    let engine = Engine::open(Arc::clone(disk), options()).unwrap();
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    (engine, store)
}

fn client(engine: &Engine) -> Arc<Backend> {
    engine.txns.register_backend(BackendKind::Client)
}

/// The `pg_class` row that is changed here.
fn class(catalogs: &Catalogs<'_>) -> Row {
    let key = [("oid", Datum::Oid(engine::catalog::defs::by_name("pg_proc").oid))];
    catalogs.find("pg_class", &key).unwrap().pop().unwrap()
}

/// Pages, age and owner.
type Said = (i32, Xid, Oid);

fn said(row: &Row) -> Said {
    let Datum::Int4(pages) = row.get("relpages") else { panic!("{:?}", row.get("relpages")) };
    (*pages, row.xid8("relfrozenxid8"), row.oid("relowner"))
}

/// What the row says to whoever comes now.
fn seen(engine: &Engine, store: &CatalogStore) -> Said {
    let txn = engine.txns.begin(&client(engine));
    let row = class(&store.session(&txn));
    txn.commit(CommitExtras::default()).unwrap();
    said(&row)
}

fn measured(catalogs: &Catalogs<'_>, pages: i32, frozen: u64) -> Row {
    let mut row = class(catalogs);
    row.set("relpages", Datum::Int4(pages));
    row.set("relfrozenxid8", Datum::Xid8(frozen));
    row
}

/// Writes in place in a transaction of its own. False: somebody has changed the row.
fn write_in_place(engine: &Engine, store: &CatalogStore, pages: i32, frozen: u64) -> bool {
    let txn = engine.txns.begin(&client(engine));
    let rows = store.session(&txn);
    let row = measured(&rows, pages, frozen);
    let done = rows.update_in_place(&row).unwrap();
    txn.commit(SYNC).unwrap();
    done
}

/// Changes the owner, in a transaction that stays open.
fn give(store: &CatalogStore, txn: &Transaction, owner: u32) {
    let rows = store.session(txn);
    let mut row = class(&rows);
    row.set("relowner", Datum::Oid(Oid(owner)));
    rows.update(&row).unwrap();
}

/// Runs `change` to the point `at`, then `beside`, then `change` to its end.
fn in_the_midst(at: &'static str, change: impl FnOnce(), beside: impl FnOnce() + Send) {
    let armed = stop::arm(at);
    let subject = armed.subject();
    std::thread::scope(|scope| {
        // A transaction stays on its thread.
        let other = scope.spawn(move || {
            armed.wait_reached();
            beside();
            armed.release();
        });
        subject.run(change);
        other.join().unwrap();
    });
}

#[test]
fn statistics_are_written_between_a_changers_read_and_its_write() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, store) = bootstrapped(&disk::os(folder.path().to_path_buf()).unwrap());
    for (n, frozen, commits) in [(50, Xid(1050), false), (60, Xid(1060), true)] {
        let before = seen(&engine, &store).2;
        let changer = engine.txns.begin(&client(&engine));
        in_the_midst(
            "engine.catalog.replace",
            || give(&store, &changer, 77),
            || assert!(write_in_place(&engine, &store, n, frozen.0)),
        );
        // The new version has what was written after it had been thought of; so has the old one.
        let own = said(&class(&store.session(&changer)));
        assert_eq!(own, (n, frozen, Oid(77)));
        assert_eq!(seen(&engine, &store), (n, frozen, before));
        match commits {
            true => changer.commit(SYNC).map(|_| ()).unwrap(),
            false => changer.abort().unwrap(),
        }
        let owner = if commits { Oid(77) } else { before };
        assert_eq!(seen(&engine, &store), (n, frozen, owner));
    }
}

/// Who comes to write in place finds another's change, ended or open: an open one is waited for.
#[test]
fn a_row_is_changed_between_the_read_and_the_write_of_who_writes_statistics() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum End {
        Before,
        Commits,
        Aborts,
    }
    let folder = tempfile::tempdir().unwrap();
    let (engine, store) = bootstrapped(&disk::os(folder.path().to_path_buf()).unwrap());
    for (n, end) in [(50, End::Before), (60, End::Commits), (70, End::Aborts)] {
        let frozen = Xid(u64::try_from(2000 + n).unwrap());
        let was = seen(&engine, &store);
        let owner = u32::try_from(n).unwrap();
        let changer = engine.txns.begin(&client(&engine));
        let armed = stop::arm("engine.catalog.write_in_place");
        let subject = armed.subject();
        std::thread::scope(|scope| {
            let (engine, store) = (&engine, &store);
            let write = move || write_in_place(engine, store, n, frozen.0);
            let writing = scope.spawn(move || subject.run(write));
            armed.wait_reached();
            give(store, &changer, owner);
            let mut changer = Some(changer);
            if end == End::Before {
                changer.take().unwrap().commit(SYNC).unwrap();
            }
            armed.release();
            if let Some(changer) = changer {
                let began = std::time::Instant::now();
                while !engine.txns.locks().list().iter().any(|lock| !lock.granted) {
                    assert!(began.elapsed() < stop::PATIENCE, "an open change is not waited for");
                    std::thread::yield_now();
                }
                match end {
                    End::Commits => changer.commit(SYNC).map(|_| ()).unwrap(),
                    _ => changer.abort().unwrap(),
                }
            }
            assert_eq!(writing.join().unwrap(), end == End::Aborts, "{end:?}");
        });
        match end {
            // It reads again, and writes to the version that counts now.
            End::Before | End::Commits => {
                assert_eq!(seen(&engine, &store), (was.0, was.1, Oid(owner)), "{end:?}");
                assert!(write_in_place(&engine, &store, n, frozen.0));
                assert_eq!(seen(&engine, &store), (n, frozen, Oid(owner)));
            }
            End::Aborts => assert_eq!(seen(&engine, &store), (n, frozen, was.2)),
        }
    }
}

/// What was written in place beside a change that a crash has kept open for ever stands; the change is not there.
#[test]
fn a_crash_keeps_what_was_written_in_place_and_not_the_open_change() {
    // No checkpoint, or one before both, between them, or after both.
    for checkpoint in 0..4 {
        let disk = disk::sim::SimDisk::new(17 + checkpoint);
        let (engine, store) = bootstrapped(&(disk.clone() as Arc<dyn Disk>));
        let place = |here| {
            if checkpoint == here {
                engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
            }
        };
        place(1);
        let before = seen(&engine, &store).2;
        let changer = engine.txns.begin(&client(&engine));
        in_the_midst(
            "engine.catalog.replace",
            || give(&store, &changer, 77),
            || {
                assert!(write_in_place(&engine, &store, 50, 1050));
                place(2);
            },
        );
        assert_eq!(class(&store.session(&changer)).oid("relowner"), Oid(77));
        place(3);
        engine.wal.flush(engine.wal.insert_lsn()).unwrap();
        disk.crash();
        std::mem::forget(changer);
        drop((store, engine));
        let (engine, store) = start(&(disk.after_crash(checkpoint) as Arc<dyn Disk>));
        assert_eq!(seen(&engine, &store), (50, Xid(1050), before), "checkpoint {checkpoint}");
        // The next to write finds nobody in its way.
        assert!(write_in_place(&engine, &store, 51, 1051));
        assert_eq!(seen(&engine, &store), (51, Xid(1051), before));
    }
}
