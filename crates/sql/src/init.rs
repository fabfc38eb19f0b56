//! Making a new database cluster.
//!
//! # Crash cases
//! Until the control file says otherwise at the end, the folder is not taken for a data folder.

use crate::cluster::Cluster;
use crate::session::Session;
use base::settings::ServerSettings;
use base::{Oid, Result};
use disk::Disk;
use engine::catalog::bootstrap::{self, POSTGRES, TEMPLATE0, TEMPLATE1};
use engine::catalog::store::CatalogStore;
use engine::relation::Storage;
use engine::{CheckpointFlags, Engine, EngineOptions};
use std::sync::Arc;
use txn::{BackendKind, CommitExtras};

/// Makes the catalogs, the system views and the databases `template1`, `template0` and `postgres` in an empty
/// folder, and closes it again.
///
/// # Errors
/// When the folder is not empty; I/O.
pub fn init(disk: Arc<dyn Disk>, settings: &Arc<ServerSettings>) -> Result<()> {
    crate::system::register();
    let options = EngineOptions { background: false, ..EngineOptions::new(Arc::clone(settings)) };
    init_with(disk, options)
}

/// [`init`] with options of the caller's (tests).
///
/// # Errors
/// As [`init`].
pub fn init_with(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<()> {
    let settings = Arc::clone(&options.settings);
    let engine = Engine::init(disk, options)?;
    engine.files.begin_init_oids();
    {
        let backend = engine.txns.register_backend(BackendKind::Internal);
        let store = CatalogStore::new(Storage::of(&engine), TEMPLATE1);
        let txn = engine.txns.begin(&backend);
        bootstrap::bootstrap(&store, &txn)?;
        txn.commit(CommitExtras::default())?;
    }
    let cluster = Cluster::new(Arc::clone(&engine), settings)?;
    system_views(&cluster)?;
    engine.checkpoint(CheckpointFlags::MANUAL)?;
    {
        let backend = engine.txns.register_backend(BackendKind::Internal);
        for (oid, name, template, connections) in
            [(TEMPLATE0, "template0", true, false), (POSTGRES, "postgres", false, true)]
        {
            let txn = engine.txns.begin(&backend);
            let store = CatalogStore::new(cluster.storage().clone(), TEMPLATE1);
            bootstrap::database_row(&store.session(&txn), oid, name, template, connections)?;
            engine.files.copy_database(&txn, TEMPLATE1, oid)?;
            txn.commit(CommitExtras::default())?;
        }
    }
    engine.files.set_next_oid(Oid::FIRST_NORMAL);
    drop(cluster);
    engine.shutdown()
}

fn system_views(cluster: &Arc<Cluster>) -> Result<()> {
    let mut session = Session::internal(cluster, "template1", BackendKind::Internal)?;
    let mut client = crate::client::Quiet;
    let begin = "SET search_path = pg_catalog; SET allow_system_table_mods = on";
    session.simple_query(begin, &mut client)?;
    session.simple_query(crate::system::script(), &mut client)?;
    session.close();
    Ok(())
}
