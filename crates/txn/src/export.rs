//! Snapshots that transactions offer to others: `pg_export_snapshot()`, `SET TRANSACTION SNAPSHOT`.
//!
//! # Invariants
//! - A name is here as long as the transaction runs that exported it, which holds the snapshot as long.
//! - Who imports one holds it, too, until it has registered the same view as its own ([`crate::Snapshot`]): at no moment is it registered
//!   nowhere, and who reads horizons meanwhile reads them again.
//! - Both are connected to one database: what a snapshot holds back there (the `scope` module) is the same for both.

use crate::rank;
use crate::snapshot::Snapshot;
use base::sync::{Arc, Mutex};
use base::{Result, bail};
use std::collections::HashMap;
use std::sync::Weak;

/// The exported snapshots by name.
pub(crate) struct Exports(Mutex<HashMap<String, Weak<Snapshot>>>);

impl Exports {
    pub(crate) fn new() -> Exports {
        Exports(Mutex::new(rank::EXPORTS, HashMap::new()))
    }

    pub(crate) fn add(&self, name: &str, snapshot: &Arc<Snapshot>) {
        self.0.lock().insert(name.to_owned(), Arc::downgrade(snapshot));
    }

    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<Snapshot>> {
        if !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F' | b'-')) {
            bail!(INVALID_PARAMETER_VALUE, "invalid snapshot identifier: \"{name}\"");
        }
        let found = self.0.lock().get(name).and_then(Weak::upgrade);
        match found {
            Some(snapshot) => Ok(snapshot),
            None => bail!(UNDEFINED_OBJECT, "snapshot \"{name}\" does not exist"),
        }
    }
}
