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
