//! What a vacuum did: one struct, from which every text is printed.
//!
//! # Differs from PostgreSQL
//! The lines are PostgreSQL 18's word for word; lines of Ebb's own (how each index was cleaned) come after them.

use crate::foresight::figures::method_name;
use crate::heap_pass::ScanCounts;
use crate::plan::{IndexMethod, VacuumCutoffs, VacuumMode};
use crate::run::TableFacts;
use crate::usage::Usage;
use base::{Oid, Xid};
use btree::IndexVacuumStats;
use std::fmt::Write;
use std::time::Duration;

/// Who started a vacuum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// A statement.
    Statement,
    /// Autovacuum.
    Automatic,
}

/// Why index passes were left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexBypass {
    /// They were not.
    None,
    /// Little was dead, or INDEX_CLEANUP was off.
    Bypassed,
    /// The failsafe, whether there were any to be left out or not.
    Failsafe,
}

/// What became of an index.
#[derive(Clone, Debug)]
pub struct IndexReport {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Its figures.
    pub stats: IndexVacuumStats,
    /// How its dead entries were found; `None`: there was no pass.
    pub method: Option<IndexMethod>,
    /// Keys looked up in vain, so that bulk deletion came after.
    pub missing: usize,
}

impl IndexReport {
    /// False for an index whose clean-up was found not to be needed: it has no line.
    fn was_visited(&self) -> bool {
        let s = &self.stats;
        !s.entries_estimated
            || s.entries_removed > 0
            || s.pages_newly_deleted > 0
            || s.pages_deleted > 0
            || s.pages_free > 0
    }
}

/// What a vacuum did.
#[derive(Clone, Debug)]
pub struct VacuumReport {
    /// The table as it was.
    pub facts: TableFacts,
    /// Who started it.
    pub trigger: Trigger,
    /// How much was read.
    pub mode: VacuumMode,
    /// To prevent old age.
    pub for_age: bool,
    /// What went and what was frozen.
    pub cutoffs: VacuumCutoffs,
    /// The next XID at the end.
    pub next_xid_at_end: Xid,
    /// Rounds over the indexes.
    pub index_scans: u32,
    /// The length before.
    pub pages_before: u32,
    /// The length after.
    pub pages_after: u32,
    /// What the heap passes counted.
    pub counts: ScanCounts,
    /// Dead line pointers freed.
    pub dead_items_removed: u64,
    /// Pages that were cleaned with their index entries, in one visit.
    pub one_visit_pages: u32,
    /// The table has indexes.
    pub has_indexes: bool,
    /// Why index passes were left out.
    pub bypass: IndexBypass,
    /// The failsafe struck.
    pub failsafe: bool,
    /// For pg_class, if it advances.
    pub new_relfrozenxid: Option<Xid>,
    /// For pg_class.
    pub new_reltuples: f64,
    /// For pg_class (`relallvisible`).
    pub all_visible_pages: u64,
    /// For pg_class (`relallfrozen`).
    pub all_frozen_pages: u64,
    /// The indexes.
    pub indexes: Vec<IndexReport>,
    /// Slept for the cost delay.
    pub delay: Duration,
    /// The most threads that were at the heap, and at the indexes.
    pub threads: (u32, u32),
    /// Whether I/O timings, and the delay, are printed.
    pub timings: (bool, bool),
    /// Page images were packed for the log.
    pub packs_images: bool,
    /// Pages, WAL and time used.
    pub usage: Usage,
}

fn percent(part: u64, whole: u32) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / f64::from(whole) }
}

impl VacuumReport {
    /// The line that begins VERBOSE's output: `vacuuming "db.schema.table"`.
    pub fn begin_line(facts: &TableFacts, mode: VacuumMode) -> String {
        let how =
            if mode == VacuumMode::Aggressive { "aggressively vacuuming" } else { "vacuuming" };
        format!("{how} \"{}.{}.{}\"", facts.database, facts.schema, facts.table)
    }

    fn headline(&self) -> &'static str {
        match (self.trigger, self.mode == VacuumMode::Aggressive, self.for_age) {
            (Trigger::Statement, _, _) => "finished vacuuming",
            (Trigger::Automatic, true, true) => {
                "automatic aggressive vacuum to prevent wraparound of table"
            }
            (Trigger::Automatic, false, true) => "automatic vacuum to prevent wraparound of table",
            (Trigger::Automatic, true, false) => "automatic aggressive vacuum of table",
            (Trigger::Automatic, false, false) => "automatic vacuum of table",
        }
    }

    /// PostgreSQL's report, as VERBOSE and the log print it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_to(&mut out);
        out
    }

    /// The rows that are there afterwards: the dead that could not go are among them.
    fn remaining_tuples(&self) -> u64 {
        let c = &self.counts;
        self.new_reltuples as u64 + c.recently_dead_tuples + c.missed_dead_tuples
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        let (f, c) = (&self.facts, &self.counts);
        let whole = self.pages_before;
        let low = |x: Xid| x.0 as u32;
        writeln!(
            out,
            "{} \"{}.{}.{}\": index scans: {}",
            self.headline(),
            f.database,
            f.schema,
            f.table,
            self.index_scans
        )?;
        writeln!(
            out,
            "pages: {} removed, {} remain, {} scanned ({:.2}% of total), {} eagerly scanned",
            self.pages_before - self.pages_after.min(self.pages_before),
            self.pages_after,
            c.scanned_pages,
            percent(u64::from(c.scanned_pages), whole),
            c.eagerly_scanned_pages
        )?;
        writeln!(
            out,
            "tuples: {} removed, {} remain, {} are dead but not yet removable",
            c.removed_tuples,
            self.remaining_tuples(),
            c.recently_dead_tuples
        )?;
        if c.missed_dead_tuples > 0 {
            writeln!(
                out,
                "tuples missed: {} dead from {} pages not removed due to cleanup lock contention",
                c.missed_dead_tuples, c.missed_dead_pages
            )?;
        }
        writeln!(
            out,
            "removable cutoff: {}, which was {} XIDs old when operation ended",
            low(self.cutoffs.oldest_xmin),
            self.next_xid_at_end.0 - self.cutoffs.oldest_xmin.0
        )?;
        if let Some(new) = self.new_relfrozenxid {
            writeln!(
                out,
                "new relfrozenxid: {}, which is {} XIDs ahead of previous value",
                low(new),
                new.0 - self.cutoffs.relfrozenxid.0
            )?;
        }
        writeln!(
            out,
            "frozen: {} pages from table ({:.2}% of total) had {} tuples frozen",
            c.frozen_pages,
            percent(u64::from(c.frozen_pages), whole),
            c.frozen_tuples
        )?;
        writeln!(
            out,
            "visibility map: {} pages set all-visible, {} pages set all-frozen ({} were all-visible)",
            c.set_visible_pages, c.set_frozen_pages, c.set_frozen_were_visible_pages
        )?;
        let part = percent(u64::from(c.dead_item_pages), whole);
        let (how, what, items) = match self.bypass {
            IndexBypass::None if self.index_scans == 0 => {
                ("index scan not needed", "had", " removed")
            }
            IndexBypass::None => ("index scan needed", "had", " removed"),
            IndexBypass::Bypassed => ("index scan bypassed", "have", ""),
            IndexBypass::Failsafe => ("index scan bypassed by failsafe", "have", ""),
        };
        writeln!(
            out,
            "{how}: {} pages from table ({part:.2}% of total) {what} {} dead item identifiers{items}",
            c.dead_item_pages, c.dead_items
        )?;
        for i in self.indexes.iter().filter(|i| i.was_visited()) {
            writeln!(
                out,
                "index \"{}\": pages: {} in total, {} newly deleted, {} currently deleted, {} reusable",
                i.name,
                i.stats.pages,
                i.stats.pages_newly_deleted,
                i.stats.pages_deleted,
                i.stats.pages_free
            )?;
        }
        self.usage.write_to(out, self.timings.1.then_some(self.delay), self.timings.0)?;
        for i in &self.indexes {
            let Some(method) = i.method else { continue };
            let name = method_name(method);
            write!(
                out,
                "\nindex \"{}\" method: {name}, {} entries removed",
                i.name, i.stats.entries_removed
            )?;
            if i.missing > 0 {
                write!(out, ", {} not found by their keys", i.missing)?;
            }
        }
        Ok(())
    }
}
