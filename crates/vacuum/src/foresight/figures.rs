//! What was foretold, beside what became of it: one list, from which text and JSON are printed.

use super::Foresight;
use crate::plan::{IndexMethod, VacuumMode};
use crate::report::{IndexBypass, VacuumReport};

/// A number with its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// As EXPLAIN prints it.
    pub name: &'static str,
    /// Foretold.
    pub expected: f64,
    /// What became of it, if that is known.
    pub actual: Option<f64>,
    /// Digits after the point.
    pub digits: usize,
}

/// An index's lines.
#[derive(Clone, Debug)]
pub struct IndexFigures {
    /// Its name.
    pub name: String,
    /// `bulk`, `retail`, `bypassed` or `not needed`.
    pub method: &'static str,
    /// Its numbers.
    pub figures: Vec<Figure>,
}

/// The name of a mode.
pub fn mode_name(mode: VacuumMode) -> &'static str {
    match mode {
        VacuumMode::Ordinary => "ordinary",
        VacuumMode::Eager => "eager",
        VacuumMode::Aggressive => "aggressive",
    }
}

/// The name of a method.
pub fn method_name(method: IndexMethod) -> &'static str {
    match method {
        IndexMethod::Bulk => "bulk",
        IndexMethod::Retail => "retail",
    }
}

/// Sums that came to nothing again may be a little less than it: never "-0".
fn whole(expected: f64) -> f64 {
    expected.round().max(0.0)
}

impl Foresight {
    /// The table's numbers, with those of `report` beside them.
    pub fn figures(&self, report: Option<&VacuumReport>) -> Vec<Figure> {
        let figure = |name, expected: f64, actual: fn(&VacuumReport) -> f64| Figure {
            name,
            expected: whole(expected),
            actual: report.map(actual),
            digits: 0,
        };
        let ms = |name, expected: f64, actual: fn(&VacuumReport) -> f64| Figure {
            digits: 3,
            ..Figure { expected, ..figure(name, 0.0, actual) }
        };
        let (frozen, visible) = self.skipped_pages;
        let foretold = |name, expected: f64| Figure {
            name,
            expected: whole(expected),
            actual: None,
            digits: 0,
        };
        vec![
            figure("Pages", self.pages.into(), |r| r.pages_before.into()),
            figure("Pages Scanned", self.scanned_pages.into(), |r| r.counts.scanned_pages.into()),
            figure("Pages Scanned Eagerly", self.eager_pages.into(), |r| {
                r.counts.eagerly_scanned_pages.into()
            }),
            foretold("Pages Skipped All-Frozen", frozen.into()),
            foretold("Pages Skipped All-Visible", visible.into()),
            figure("Pages Pruned", self.pruned_pages, |r| r.counts.pruned_pages.into()),
            figure("Pages With Dead Items", self.dead_items.1, |r| r.counts.dead_item_pages.into()),
            figure("Tuples Removed", self.removed_tuples, |r| r.counts.removed_tuples as f64),
            figure("Dead Items", self.dead_items.0, |r| r.counts.dead_items as f64),
            figure("Pages Frozen", self.frozen_pages, |r| r.counts.frozen_pages.into()),
            figure("Tuples Frozen", self.frozen_tuples, |r| r.counts.frozen_tuples as f64),
            figure("Pages Truncated", self.truncated_pages.into(), |r| {
                r.pages_before.saturating_sub(r.pages_after).into()
            }),
            figure("Pages Read", self.reads, |r| r.usage.buffers.reads as f64),
            figure("Pages Dirtied", self.dirtied, |r| {
                (r.usage.buffers.dirtied + r.usage.buffers.temp_dirtied) as f64
            }),
            figure("WAL Records", self.wal_records, |r| r.usage.wal.records as f64),
            figure("WAL Full Page Images", self.wal_images, |r| {
                r.usage.wal.full_page_images as f64
            }),
            figure("WAL Bytes", self.wal_bytes, |r| r.usage.wal.bytes as f64),
            ms("Vacuum Time", self.time.as_secs_f64() * 1e3, |r| {
                r.usage.elapsed.as_secs_f64() * 1e3
            }),
        ]
    }

    /// The indexes' numbers.
    pub fn index_figures(&self, report: Option<&VacuumReport>) -> Vec<IndexFigures> {
        let bypassed = match report {
            Some(r) => r.bypass != IndexBypass::None,
            None => self.bypass,
        };
        let one = |i: &super::IndexForesight| {
            let became =
                report.map(|r| r.indexes.iter().find(|x| x.name == i.name).map(|x| x.stats));
            let removed = became.map(|s| s.map_or(0.0, |s| s.entries_removed as f64));
            let figure = |name, expected: f64, actual| Figure {
                name,
                expected: whole(expected),
                actual,
                digits: 0,
            };
            IndexFigures {
                name: i.name.clone(),
                method: match i.method {
                    Some(method) => method_name(method),
                    None if bypassed => "bypassed",
                    None => "not needed",
                },
                figures: vec![
                    figure("Pages", i.pages.into(), None),
                    figure("Pages Scanned", i.scanned_pages, None),
                    figure("Pages Changed", i.changed_pages, None),
                    figure("Entries Removed", i.removed_entries, removed),
                ],
            }
        };
        self.indexes.iter().map(one).collect()
    }
}
