//! What transactions change of what is known of relations, and what that makes stale.

use base::{FactMap, FactSet, Oid};
use std::collections::{HashMap, HashSet};

/// How many changes are kept by whom they concern; then all plans of before are stale.
const KEPT_CHANGES: usize = 8192;

/// What was looked up while something was made: a change of any of it makes that stale.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Footing {
    /// Relations, and enum types.
    pub(super) relations: FactSet<Oid>,
    /// Names of relations and types, found or not: a new one of that name, in whatever schema, could be meant.
    pub(super) names: HashSet<String>,
}

impl Footing {
    /// The relations that were found, and enum types.
    pub fn relations(&self) -> impl Iterator<Item = Oid> {
        self.relations.iter().copied()
    }

    /// Stands on this too.
    pub fn add(&mut self, more: Footing) {
        self.relations.extend(more.relations);
        self.names.extend(more.names);
    }
}

/// What a transaction has changed.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) relations: FactSet<Oid>,
    /// Of these, only the statistics of their columns.
    pub(super) statistics: FactSet<Oid>,
    /// Names that mean something else now.
    pub(super) names: HashSet<String>,
    /// It may concern what does not stand on these.
    pub(super) any: bool,
    /// Names, schemas and types may be others than they were.
    pub(super) meanings: bool,
}

impl Changes {
    pub(super) fn add(&mut self, more: Changes) {
        self.relations.extend(more.relations);
        self.statistics.extend(more.statistics);
        self.names.extend(more.names);
        self.any |= more.any;
        self.meanings |= more.meanings;
    }

    /// Nothing but statistics is another than it was.
    pub(super) fn are_of_statistics(&self) -> bool {
        !self.any && !self.meanings && self.relations.is_empty()
    }

    /// What is looked up is as it was before these changes. A relation's description says something of others, of its indexes and of those that
    /// its keys lead to, and their changes may be told before its own.
    pub(super) fn spare(&self, what: Subject) -> bool {
        match what {
            Subject::Name => !self.any && !self.meanings,
            Subject::Relation(_) => self.are_of_statistics(),
            Subject::Statistics(oid) => self.are_of_statistics() && !self.statistics.contains(&oid),
        }
    }
}

/// What is looked up.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// What a name means, or a type.
    Name,
    /// What is said of a relation.
    Relation(Oid),
    /// The statistics of its columns.
    Statistics(Oid),
}

/// The generations of changes, by whom they concern.
#[derive(Default)]
pub(super) struct History {
    relations: FactMap<Oid, u64>,
    names: HashMap<String, u64>,
    /// Nothing is known of what is older than this.
    floor: u64,
}

impl History {
    pub(super) fn add(&mut self, changes: &Changes, generation: u64) {
        if changes.any || self.relations.len() + self.names.len() > KEPT_CHANGES {
            *self = History { floor: generation, ..History::default() };
            return;
        }
        let relations = changes.relations.iter().chain(&changes.statistics);
        self.relations.extend(relations.map(|oid| (*oid, generation)));
        self.names.extend(changes.names.iter().map(|name| (name.clone(), generation)));
    }

    pub(super) fn unchanged(&self, since: u64, footing: &Footing) -> bool {
        let older = |at: Option<&u64>| at.is_none_or(|at| *at <= since);
        since >= self.floor
            && footing.relations.iter().all(|oid| older(self.relations.get(oid)))
            && footing.names.iter().all(|name| older(self.names.get(name)))
    }
}
