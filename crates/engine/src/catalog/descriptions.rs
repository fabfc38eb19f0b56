//! Descriptions of relations, so many and no more.
//!
//! # Purpose
//! Who looks at each of very many relations once leaves a description of each behind, several kilobytes that nobody may ask for again.
//!
//! # Invariants
//! - Beyond [`MOST`] those go that were not asked for the longest and that nobody else holds: what is held would take its memory all the same, and
//!   twice once it is described anew.
//! - Looking one up writes nothing that others read, but for the first time in an age.

use super::model::Table;
use base::{FactMap, Oid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many stay: for a small table with an index about 9 kB each.
const MOST: usize = 4096;
/// An age is so many new ones, as part of the most.
const AGES: usize = 16;
/// What goes at once, as part of the most.
const PARTS: usize = 8;

struct Kept {
    table: Arc<Table>,
    /// The age in which it was last asked for.
    used: AtomicU32,
}

/// The descriptions that there are.
pub(super) struct Descriptions {
    all: FactMap<Oid, Kept>,
    age: u32,
    /// New ones in this age.
    born: usize,
    most: usize,
    /// At so many some go.
    full: usize,
}

impl Default for Descriptions {
    fn default() -> Self {
        Descriptions::at_most(MOST)
    }
}

impl Descriptions {
    fn at_most(most: usize) -> Descriptions {
        Descriptions { all: FactMap::default(), age: 0, born: 0, most, full: most }
    }

    /// That of a relation.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Table>> {
        let kept = self.all.get(&oid)?;
        if kept.used.load(Ordering::Relaxed) != self.age {
            kept.used.store(self.age, Ordering::Relaxed);
        }
        Some(&kept.table)
    }

    /// One more.
    pub fn insert(&mut self, oid: Oid, table: Arc<Table>) {
        self.born += 1;
        if self.born > self.most / AGES {
            (self.age, self.born) = (self.age.wrapping_add(1), 0);
        }
        if self.all.len() >= self.full {
            self.make_room();
        }
        self.all.insert(oid, Kept { table, used: AtomicU32::new(self.age) });
    }

    /// It is no longer so.
    pub fn remove(&mut self, oid: Oid) {
        self.all.remove(&oid);
    }

    /// None is.
    pub fn clear(&mut self) {
        self.all.clear();
        self.full = self.most;
    }

    fn make_room(&mut self) {
        let part = (self.most / PARTS).max(1);
        let unheld = self.all.iter().filter(|(_, kept)| Arc::strong_count(&kept.table) == 1);
        let mut by_age: Vec<(u32, Oid)> = unheld
            .map(|(oid, kept)| (self.age.wrapping_sub(kept.used.load(Ordering::Relaxed)), *oid))
            .collect();
        by_age.sort_unstable_by(|a, b| b.cmp(a));
        // All that are too many: those that were held the last time may not be now.
        let too_many = (self.all.len() + part).saturating_sub(self.most);
        for (_, oid) in by_age.into_iter().take(too_many) {
            self.all.remove(&oid);
        }
        // Where most are held, the next look is not at the next one already.
        self.full = self.most.max(self.all.len() + part);
        self.all.shrink_to(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::model::{RelationKind, RelationPersistence};

    fn table(oid: u32) -> Arc<Table> {
        Arc::new(Table {
            oid: Oid(oid),
            name: String::new(),
            namespace: Oid::INVALID,
            namespace_name: String::new(),
            kind: RelationKind::Table,
            persistence: RelationPersistence::Permanent,
            owner: Oid::INVALID,
            acl: None,
            system_acls: Vec::new(),
            storage: None,
            columns: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            view_query: None,
            options: Default::default(),
            reltuples: -1.0,
            relpages: 0,
            relallvisible: 0,
            relfrozenxid: base::Xid::INVALID,
            toast: Oid::INVALID,
            row_type: Oid::INVALID,
            populated: true,
        })
    }

    #[test]
    fn what_is_used_and_what_is_held_stays() {
        let mut all = Descriptions::at_most(160);
        let held = table(1);
        all.insert(Oid(1), Arc::clone(&held));
        all.insert(Oid(2), table(2));
        all.insert(Oid(3), table(3));
        for oid in 10..10_000 {
            all.insert(Oid(oid), table(oid));
            assert!(all.get(Oid(2)).is_some());
            assert!(all.all.len() <= 160, "{}", all.all.len());
        }
        assert!(Arc::ptr_eq(all.get(Oid(1)).unwrap(), &held));
        assert!(all.get(Oid(3)).is_none() && all.get(Oid(9999)).is_some());
    }

    #[test]
    fn many_that_are_held_are_not_gone_through_each_time() {
        let mut all = Descriptions::at_most(160);
        let mut held = Vec::new();
        for oid in 0..1000 {
            held.push(table(oid));
            all.insert(Oid(oid), Arc::clone(&held[held.len() - 1]));
        }
        assert_eq!(all.all.len(), 1000);
        assert!(all.full >= 1000, "{}", all.full);
        drop(held);
        for oid in 1000..1100 {
            all.insert(Oid(oid), table(oid));
        }
        assert!(all.all.len() <= 160, "{}", all.all.len());
    }
}
