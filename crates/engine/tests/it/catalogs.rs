//! The catalogs over a real engine: bootstrap, look-ups through indexes, changes, a crash.

use base::Oid;
use engine::catalog::bootstrap::{TEMPLATE1, bootstrap};
use engine::catalog::load::{RowSource, load_table};
use engine::catalog::rows::NewRow;
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use engine::{Engine, EngineOptions};
use std::sync::Arc;
use txn::{BackendKind, CommitExtras};
use types::Datum;

fn options() -> EngineOptions {
    let settings = base::settings::ServerSettings::new();
    EngineOptions { background: false, ..EngineOptions::new(Arc::new(settings)) }
}

#[test]
fn bootstrapped_catalogs_describe_themselves_and_survive_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let engine = Engine::init(disk.clone(), options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    bootstrap(&store, &txn).unwrap();
    txn.commit(CommitExtras::default()).unwrap();
    drop(backend);
    engine.shutdown().unwrap();
    drop((store, engine));

    let engine = Engine::open(disk.clone(), options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    let catalogs = store.session(&txn);
    let class = load_table(&catalogs, Oid(1259)).unwrap().unwrap();
    assert_eq!(class.name, "pg_class");
    assert_eq!(class.namespace_name, "pg_catalog");
    assert_eq!(class.columns.len(), 35);
    assert_eq!(class.indexes.len(), 3);
    assert_eq!(class.primary_key().unwrap().name, "pg_class_oid_index");
    // A few columns of all rows are what whole rows say; the end comes when asked for.
    let whole = catalogs.scan("pg_class").unwrap();
    let mut some = Vec::new();
    let mut keep = |row: &[Datum]| {
        some.push(row.to_vec());
        Ok(some.len() < whole.len())
    };
    catalogs.scan_columns("pg_class", &["relkind", "relname"], &mut keep).unwrap();
    let expected: Vec<_> =
        whole.iter().map(|r| vec![r.get("relkind").clone(), r.get("relname").clone()]).collect();
    assert_eq!(format!("{some:?}"), format!("{expected:?}"));
    let mut calls = 0;
    let mut once = |_: &[Datum]| {
        calls += 1;
        Ok(false)
    };
    catalogs.scan_columns("pg_class", &["relname"], &mut once).unwrap();
    assert_eq!(calls, 1);
    // A change, committed; another, not; then a crash.
    let row = NewRow::of("pg_namespace").oid("oid", Oid(20_000)).text("nspname", "kept");
    catalogs.insert(&row).unwrap();
    txn.commit(CommitExtras::default()).unwrap();
    let txn = engine.txns.begin(&backend);
    let catalogs = store.session(&txn);
    let row = NewRow::of("pg_namespace").oid("oid", Oid(20_001)).text("nspname", "lost");
    catalogs.insert(&row).unwrap();
    let again = NewRow::of("pg_namespace").oid("oid", Oid(20_002)).text("nspname", "kept");
    assert_eq!(catalogs.insert(&again).unwrap_err().state(), base::SqlState::UNIQUE_VIOLATION);
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    engine.stop_at_once();
    std::mem::forget(txn);
    drop((backend, store, engine));

    let engine = Engine::open(disk, options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    let catalogs = store.session(&txn);
    let find = |name: &str| {
        catalogs.find("pg_namespace", &[("nspname", Datum::text(name))]).unwrap().len()
    };
    assert_eq!((find("kept"), find("lost")), (1, 0));
    txn.abort().unwrap();
}

fn crowd(catalogs: &engine::catalog::store::Catalogs<'_>, numbers: std::ops::Range<u32>) {
    for n in numbers {
        let row = NewRow::of("pg_namespace")
            .oid("oid", Oid(30_000 + n))
            .text("nspname", &format!("schema_{n}_{}", "x".repeat(40)));
        catalogs.insert(&row).unwrap();
    }
}

/// Rows move from the end of a catalog: indexes find them, an old snapshot sees them where they were, and who has read one before can
/// change it afterwards. A crash before the move's commit leaves all as it was.
#[test]
fn rows_move_forward_and_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let engine = Engine::init(disk.clone(), options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    bootstrap(&store, &txn).unwrap();
    crowd(&store.session(&txn), 0..500);
    txn.commit(CommitExtras::default()).unwrap();
    drop(backend);
    engine.shutdown().unwrap();
    drop((store, engine));
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    for n in 0..480 {
        let key = [("oid", Datum::Oid(Oid(30_000 + n)))];
        assert_eq!(store.session(&txn).delete_where("pg_namespace", &key).unwrap(), 1);
    }
    txn.commit(CommitExtras::default()).unwrap();
    let def = engine::catalog::defs::by_name("pg_namespace");
    let heap = &store.open(def).unwrap().heap;
    let pages = heap.len_blocks().unwrap().0;
    assert!(pages > 4, "{pages}");
    // Pruned on the way: the first pages have room.
    let txn = engine.txns.begin(&backend);
    store.session(&txn).scan("pg_namespace").unwrap();
    txn.abort().unwrap();

    let (a, b) = (&engine.txns.register_backend(BackendKind::Client), &backend);
    let reader = engine.txns.begin(a);
    let by_oid = |c: &engine::catalog::store::Catalogs<'_>, n: u32| {
        let mut rows = c.find("pg_namespace", &[("oid", Datum::Oid(Oid(30_000 + n)))]).unwrap();
        assert_eq!(rows.len(), 1, "schema {n}");
        rows.pop().unwrap()
    };
    let before = store.session(&reader);
    let (mut kept, gone, stale) =
        (by_oid(&before, 497), by_oid(&before, 498), by_oid(&before, 499));
    let mover = engine.txns.begin(b);
    let moving = store.session(&mover);
    assert!(moving.move_rows_forward(def).unwrap() >= 20);
    mover.commit(CommitExtras::default()).unwrap();
    let moved = by_oid(&before, 497);
    assert!(moved.tid.block < kept.tid.block, "{:?} {:?}", moved.tid, kept.tid);
    // One that was read before the move is changed after it: by its OID it is found once, as it is now.
    kept.set("nspowner", Datum::Oid(Oid(77)));
    before.update(&kept).unwrap();
    before.delete(&gone).unwrap();
    assert_eq!(by_oid(&before, 497).oid("nspowner"), Oid(77));
    // One that has really changed meanwhile is not.
    let other = engine.txns.begin(b);
    let mut changed = by_oid(&store.session(&other), 499);
    changed.set("nspowner", Datum::Oid(Oid(78)));
    store.session(&other).update(&changed).unwrap();
    other.commit(CommitExtras::default()).unwrap();
    assert_eq!(before.delete(&stale).unwrap_err().state(), base::SqlState::INTERNAL_ERROR);
    // Statistics do not count.
    let class = |c: &engine::catalog::store::Catalogs<'_>| {
        c.find("pg_class", &[("oid", Datum::Oid(def.oid))]).unwrap().pop().unwrap()
    };
    let mut read = class(&before);
    let other = engine.txns.begin(b);
    store.session(&other).update(&class(&store.session(&other))).unwrap();
    other.commit(CommitExtras::default()).unwrap();
    let other = engine.txns.begin(b);
    let mut measured = class(&store.session(&other));
    assert_ne!(measured.tid, read.tid);
    measured.set("relpages", Datum::Int4(9));
    store.session(&other).update_in_place(&measured).unwrap();
    other.commit(CommitExtras::default()).unwrap();
    read.set("relowner", Datum::Oid(Oid(77)));
    before.update(&read).unwrap();
    assert_eq!(class(&before).oid("relowner"), Oid(77));
    reader.commit(CommitExtras::default()).unwrap();
    drop((read, measured));
    drop((kept, gone, stale, moved, changed));

    // A move that did not come to its commit.
    let txn = engine.txns.begin(b);
    crowd(&store.session(&txn), 1000..1100);
    txn.commit(CommitExtras::default()).unwrap();
    let mover = engine.txns.begin(b);
    store.session(&mover).move_rows_forward(def).unwrap();
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    engine.stop_at_once();
    std::mem::forget(mover);
    drop((backend, store, engine));
    let engine = Engine::open(disk, options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    let catalogs = store.session(&txn);
    for n in (480..498).chain(499..500).chain(1000..1100) {
        by_oid(&catalogs, n);
    }
    assert_eq!(by_oid(&catalogs, 497).oid("nspowner"), Oid(77));
    assert_eq!(
        catalogs.find("pg_namespace", &[("oid", Datum::Oid(Oid(30_498)))]).unwrap().len(),
        0
    );
    txn.abort().unwrap();
}

/// Statistics written in place are not lost to who changes the row beside: what he read before is not what he writes, and what he has
/// written and not committed is waited for.
#[test]
fn statistics_in_place_and_changes_of_the_row_do_not_undo_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let engine = Engine::init(disk, options()).unwrap();
    let backend = engine.txns.register_backend(BackendKind::Client);
    let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
    let txn = engine.txns.begin(&backend);
    bootstrap(&store, &txn).unwrap();
    txn.commit(CommitExtras::default()).unwrap();
    let register = || engine.txns.register_backend(BackendKind::Client);
    let (a, b) = (register(), register());
    let class = |c: &engine::catalog::store::Catalogs<'_>| {
        let key = [("oid", Datum::Oid(engine::catalog::defs::by_name("pg_proc").oid))];
        c.find("pg_class", &key).unwrap().pop().unwrap()
    };
    let pages = |n: i32| Datum::Int4(n);
    let int = |row: &engine::catalog::rows::Row, column: &str| match row.get(column) {
        Datum::Int4(n) => *n,
        other => panic!("{other:?}"),
    };
    // Read, then written in place by another, then changed: both stand.
    let changer = engine.txns.begin(&a);
    let changing = store.session(&changer);
    let mut row = class(&changing);
    let other = engine.txns.begin(&b);
    let mut measured = class(&store.session(&other));
    measured.set("relpages", pages(77));
    assert!(store.session(&other).update_in_place(&measured).unwrap());
    // What was read before that is not written over it.
    let mut late = row.clone();
    late.set("reltuples", Datum::Float4(5.0));
    assert!(!store.session(&other).update_in_place(&late).unwrap());
    other.commit(CommitExtras::default()).unwrap();
    row.set("relowner", Datum::Oid(Oid(77)));
    row.set("relallfrozen", pages(3));
    changing.update(&row).unwrap();
    let now = class(&changing);
    assert_eq!(
        (int(&now, "relpages"), int(&now, "relallfrozen"), now.oid("relowner")),
        (77, 3, Oid(77))
    );
    changer.commit(CommitExtras::default()).unwrap();
    // Who writes in place waits for the changer's end, be it which it may, and writes over the version that counts then.
    for (commits, n) in [(true, 80), (false, 81)] {
        let changer = engine.txns.begin(&a);
        let changing = store.session(&changer);
        let mut row = class(&changing);
        row.set("relowner", Datum::Oid(Oid(u32::try_from(n).unwrap())));
        changing.update(&row).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let txn = engine.txns.begin(&b);
                let rows = store.session(&txn);
                let mut tries = 0;
                loop {
                    let mut row = class(&rows);
                    row.set("relpages", pages(n));
                    tries += 1;
                    if rows.update_in_place(&row).unwrap() {
                        break;
                    }
                }
                txn.commit(CommitExtras::default()).unwrap();
                tries
            });
            let began = std::time::Instant::now();
            while !engine.txns.locks().list().iter().any(|lock| !lock.granted) {
                assert!(began.elapsed() < base::stop::PATIENCE, "nobody waits");
                std::thread::yield_now();
            }
            match commits {
                true => changer.commit(CommitExtras::default()).map(|_| ()).unwrap(),
                false => changer.abort().unwrap(),
            }
            assert_eq!(writer.join().unwrap(), if commits { 2 } else { 1 });
        });
        let txn = engine.txns.begin(&a);
        let now = class(&store.session(&txn));
        assert_eq!((int(&now, "relpages"), now.oid("relowner")), (n, Oid(80)));
        txn.commit(CommitExtras::default()).unwrap();
    }
}
