//! What EXPLAIN ANALYZE tells of the hash tables of joins and groups.

use super::super::explain_tree::{Figure, Shown};
use super::{Explain, shown_plainly};
use crate::exec::HashTold;
use std::fmt::Write as _;

/// What a hash table has come to, in one line.
pub(super) fn line(s: &Shown) -> String {
    let figure = |name: &str| {
        let found = s.told.iter().find(|t| t.0 == name);
        found.map_or("0", |t| shown_plainly(&t.1))
    };
    let memory = figure("Peak Memory Usage");
    if s.name == "Hash" {
        let (buckets, batches) = (figure("Hash Buckets"), figure("Hash Batches"));
        let before = match figure("Original Hash Batches") {
            original if original == batches => String::new(),
            original => format!(" (originally {original})"),
        };
        return format!("Buckets: {buckets}  Batches: {batches}{before}  Memory Usage: {memory}kB");
    }
    let mut line = format!("Batches: {}  Memory Usage: {memory}kB", figure("HashAgg Batches"));
    if figure("Disk Usage") != "0" {
        let _ = write!(line, "  Disk Usage: {}kB", figure("Disk Usage"));
    }
    line
}

impl Explain<'_> {
    /// What the hash table of a join has come to. Ever as many chains as rows ask for are made, and one part until there must be more.
    pub(super) fn told_of_join(&self, id: usize) -> Vec<Figure> {
        let Some(hash) = self.hash_told(id) else { return Vec::new() };
        vec![
            ("Hash Buckets", (hash.buckets as u64).into()),
            ("Original Hash Buckets", (hash.buckets as u64).into()),
            ("Hash Batches", hash.batches.into()),
            ("Original Hash Batches", 1.into()),
            ("Peak Memory Usage", (hash.peak as u64).div_ceil(1024).into()),
        ]
    }

    /// What the hash table of groups has come to.
    pub(super) fn told_of_groups(&self, id: usize) -> Vec<Figure> {
        let Some(hash) = self.hash_told(id) else { return Vec::new() };
        vec![
            ("HashAgg Batches", hash.batches.into()),
            ("Peak Memory Usage", (hash.peak as u64).div_ceil(1024).into()),
            ("Disk Usage", hash.disk.div_ceil(1024).into()),
        ]
    }

    /// If its table was filled.
    fn hash_told(&self, id: usize) -> Option<HashTold> {
        let st = self.stats.get(id).filter(|s| self.options.analyze && s.loops > 0)?;
        st.told.hash.filter(|hash| hash.batches > 0)
    }
}
