//! FOR UPDATE and its kin: which entries are locked, and which may not be.

use super::Analyser;
use crate::parse::ast::Locking;
use crate::query::{Distinct, FromItem, LockStrength, LockWait, Query, RowMark, RteKind};
use base::{Result, err};

impl Analyser<'_> {
    /// FOR UPDATE and friends.
    pub fn locking(&mut self, list: &[Locking], q: &mut Query) -> Result<()> {
        let mut nullable = Vec::new();
        q.from.iter().for_each(|f| nullable_entries(f, false, &mut nullable));
        for l in list {
            let name = lock_name(l.strength);
            may_lock(q, l)?;
            if l.tables.is_empty() {
                for rte in 0..q.range_table.len() {
                    lock_rte(q, rte, l, false)?;
                }
                self.none_nullable(q, &nullable, name)?;
                continue;
            }
            for t in &l.tables {
                if t.schema.is_some() {
                    let e = err!(SYNTAX_ERROR, "{name} must specify unqualified relation names");
                    return self.at(t.loc, e);
                }
                let Some(rte) = q.range_table.iter().position(|r| r.alias == t.name) else {
                    let e = err!(
                        UNDEFINED_TABLE,
                        "relation \"{}\" in {name} clause not found in FROM clause",
                        t.name
                    );
                    return self.at(t.loc, e);
                };
                let what = match &q.range_table[rte].kind {
                    RteKind::Join { .. } => "a join",
                    RteKind::Function { .. } => "a function",
                    RteKind::Values { .. } => "VALUES",
                    RteKind::Cte { .. } => "a WITH query",
                    _ => {
                        lock_rte(q, rte, l, false)?;
                        continue;
                    }
                };
                let e = err!(FEATURE_NOT_SUPPORTED, "{name} cannot be applied to {what}");
                return self.at(t.loc, e);
            }
        }
        let last = list.last().map_or("", |l| lock_name(l.strength));
        self.none_nullable(q, &nullable, last)
    }

    /// Refuses locks on rows that an outer join may make up.
    fn none_nullable(&self, q: &Query, nullable: &[usize], name: &str) -> Result<()> {
        let locked = |rte: &usize| {
            q.row_marks.iter().any(|m| m.rte == *rte)
                && match &q.range_table[*rte].kind {
                    RteKind::Subquery { query, .. } => !query.row_marks.is_empty(),
                    _ => true,
                }
        };
        if nullable.iter().any(locked) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{name} cannot be applied to the nullable side of an outer join"
            ));
        }
        Ok(())
    }
}

/// The entries of a FROM item that an outer join may fill with NULLs.
fn nullable_entries(item: &FromItem, inside: bool, out: &mut Vec<usize>) {
    match item {
        FromItem::Rte(i) if inside => out.push(*i),
        FromItem::Rte(_) => {}
        FromItem::Join(j) => {
            let left =
                matches!(j.kind, crate::query::JoinKind::Right | crate::query::JoinKind::Full);
            let right =
                matches!(j.kind, crate::query::JoinKind::Left | crate::query::JoinKind::Full);
            nullable_entries(&j.left, inside || left, out);
            nullable_entries(&j.right, inside || right, out);
        }
    }
}

pub(crate) fn lock_name(s: LockStrength) -> &'static str {
    match s {
        LockStrength::KeyShare => "FOR KEY SHARE",
        LockStrength::Share => "FOR SHARE",
        LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockStrength::Update => "FOR UPDATE",
    }
}

/// Refuses locks on rows that are not a table's.
fn may_lock(q: &Query, l: &Locking) -> Result<()> {
    let with = if q.set_operation.is_some() {
        "UNION/INTERSECT/EXCEPT"
    } else if !matches!(q.distinct, Distinct::No) {
        "DISTINCT clause"
    } else if !q.group_exprs.is_empty() || !q.grouping_sets.is_empty() {
        "GROUP BY clause"
    } else if q.having.is_some() {
        "HAVING clause"
    } else if q.has_aggregates {
        "aggregate functions"
    } else if q.has_windows {
        "window functions"
    } else if q.has_target_srfs {
        "set-returning functions in the target list"
    } else {
        return Ok(());
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "{} is not allowed with {with}", lock_name(l.strength)))
}

/// Locks the rows of a view that a query around locks.
pub(crate) fn lock_within(q: &mut Query, strength: LockStrength, wait: LockWait) -> Result<()> {
    if q.set_operation.is_some() {
        return Ok(());
    }
    let locking = Locking { strength, tables: Vec::new(), wait };
    (0..q.range_table.len()).try_for_each(|rte| lock_rte(q, rte, &locking, true))
}

/// Marks an entry as locked, and within a sub-select all of its tables. `pushed`: from a query around.
fn lock_rte(q: &mut Query, rte: usize, l: &Locking, pushed: bool) -> Result<()> {
    let entry = &mut q.range_table[rte];
    match &mut entry.kind {
        RteKind::Relation { .. } => entry.required_privileges |= 4,
        RteKind::Subquery { query, view } => {
            if *view != 0 {
                entry.required_privileges |= 4;
            }
            // A view's UNION goes unlocked, as in PostgreSQL.
            if *view == 0 || query.set_operation.is_none() {
                may_lock(query, l)?;
                for inner in 0..query.range_table.len() {
                    lock_rte(query, inner, l, true)?;
                }
            }
        }
        _ => return Ok(()),
    }
    match q.row_marks.iter_mut().find(|m| m.rte == rte) {
        Some(m) => {
            m.strength = m.strength.max(l.strength);
            m.wait = m.wait.firmer(l.wait);
            m.pushed &= pushed;
        }
        None => q.row_marks.push(RowMark { rte, strength: l.strength, wait: l.wait, pushed }),
    }
    Ok(())
}
