//! RETURNING, with OLD and NEW.
//!
//! # Purpose
//! The rows before and after a change are range-table entries that stand in no FROM: only RETURNING sees them, by their names alone. They are
//! there only if it does.

use super::from::table_entry;
use super::scope::Item;
use super::{Analyser, Clause};
use crate::parse::ast::Returning;
use crate::query::{RteKind, TargetEntry};
use base::{Result, err};
use engine::catalog::model::{RelationKind, Table};

/// The range-table entries of OLD and NEW.
type Images = Option<(usize, usize)>;

impl Analyser<'_> {
    /// RETURNING's columns, and the entries of OLD and NEW if they name them.
    pub fn returning(&mut self, r: &Returning, t: &Table) -> Result<(Vec<TargetEntry>, Images)> {
        let (first, items) = (self.level().rtes.len(), self.level().items.len());
        if !r.targets.is_empty() {
            self.name_images(r, t)?;
        }
        let targets = self.targets(&r.targets, Clause::Returning, false)?;
        let level = self.level();
        level.items.truncate(items);
        if level.seen.iter().any(|(rte, ..)| *rte >= first) {
            return Ok((targets, Some((first, first + 1))));
        }
        level.rtes.truncate(first);
        Ok((targets, None))
    }

    /// OLD and NEW as names see them: so called where nothing else is, or as WITH says.
    fn name_images(&mut self, r: &Returning, t: &Table) -> Result<()> {
        for (i, given) in r.names.iter().enumerate() {
            if r.names[..i].iter().any(|o| o.new == given.new) {
                let what = if given.new { "NEW" } else { "OLD" };
                let e = err!(SYNTAX_ERROR, "{what} cannot be specified multiple times");
                return self.at(given.loc, e);
            }
        }
        let first = self.level().rtes.len();
        for new in [false, true] {
            let mut entry = table_entry(t, false);
            entry.required_privileges = 0;
            if t.kind == RelationKind::View {
                // It has no system columns.
                entry.kind = RteKind::Excluded;
            }
            entry.has_alias = true;
            entry.alias = if new { "new" } else { "old" }.into();
            self.level().rtes.push(entry);
        }
        for given in &r.names {
            if self.is_named(&given.name) {
                let e =
                    err!(DUPLICATE_ALIAS, "table name \"{}\" specified more than once", given.name);
                return self.at(given.loc, e);
            }
            self.name_image(first + usize::from(given.new), &given.name);
        }
        for (rte, new, name) in [(first, false, "old"), (first + 1, true, "new")] {
            if !r.names.iter().any(|n| n.new == new) && !self.is_named(name) {
                self.name_image(rte, name);
            }
        }
        Ok(())
    }

    fn is_named(&self, name: &str) -> bool {
        self.levels.iter().any(|l| l.items.iter().any(|i| i.by_name && i.name == name))
    }

    fn name_image(&mut self, rte: usize, name: &str) {
        let level = self.level();
        level.rtes[rte].alias = name.into();
        let mut item = Item::table(rte, name);
        item.by_column = false;
        level.items.push(item);
    }
}
