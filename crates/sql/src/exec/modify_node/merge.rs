//! MERGE: which clause is for a row, and its re-check.
//!
//! # Invariants
//! A row of the join is matched, or its source alone is there, or its target alone; the first clause for such rows whose condition
//! holds is taken. At READ COMMITTED somebody else may have changed the target's row by the time that it is to be changed. Then
//! its newest version is locked and asked for the join's condition again:
//! - it holds: the clauses for matched rows are gone through from the first on, over the new version;
//! - it does not: the row is two now, one of the target alone and one of the source alone, and each goes through the clauses for
//!   such, the target's first;
//! - there is no version any more, or the view that is written through does not show it: the source is alone.
//!
//! A row of the target alone stays one, whatever became of it. No row is changed twice by a command.
//!
//! # Where it differs from PostgreSQL
//! The source's row is always the one that the join had found. PostgreSQL 18.6 comes upon others of a source that is a UNION ALL, and
//! takes a row that still matches for one that does not. Of a row of the target alone that somebody deletes meanwhile PostgreSQL makes
//! one of a source that there is none of, and inserts NULLs.

use super::{At, Batch, Change, Code, Cx, Datum, Effect, ModifyNode, RowQueue, TableWriter};
use crate::exec::MergeTold;
use crate::plan::{PlanMerge, PlanMergeAction};
use crate::query::MergeWhen;
use base::{Error, Result, SqlError, SqlState};
use expr::code::compile;

enum Action {
    Update(Vec<(usize, Code)>),
    Delete,
    Insert(Vec<Code>),
    Nothing,
}

struct Clause {
    when: MergeWhen,
    condition: Option<Code>,
    action: Action,
}

/// What a MERGE does, over the join's rows.
pub(super) struct Merge {
    on: Code,
    source: Option<Code>,
    clauses: Vec<Clause>,
    /// Columns that some clause updates.
    updated: Vec<i32>,
    told: MergeTold,
}

/// Whether a row of the source has turned out to be without a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Settled,
    Alone,
}

impl Merge {
    pub(super) fn new(m: &PlanMerge) -> Result<Merge> {
        let mut updated = Vec::new();
        let mut clauses = Vec::with_capacity(m.clauses.len());
        for c in &m.clauses {
            let action = match &c.action {
                PlanMergeAction::Update(set) => {
                    updated.extend(set.iter().map(|(n, _)| *n));
                    let set = set.iter().map(|(n, e)| Ok((*n as usize - 1, compile(e)?)));
                    Action::Update(set.collect::<Result<_>>()?)
                }
                PlanMergeAction::Delete => Action::Delete,
                PlanMergeAction::Insert(row) => {
                    Action::Insert(row.iter().map(compile).collect::<Result<_>>()?)
                }
                PlanMergeAction::Nothing => Action::Nothing,
            };
            let condition = c.condition.as_ref().map(compile).transpose()?;
            clauses.push(Clause { when: c.when, condition, action });
        }
        Ok(Merge {
            on: compile(&m.on)?,
            source: m.source.as_ref().map(compile).transpose()?,
            clauses,
            updated,
            told: MergeTold::default(),
        })
    }

    /// Does any clause change rows?
    pub(super) fn writes(&self) -> bool {
        self.clauses.iter().any(|c| !matches!(c.action, Action::Nothing))
    }

    pub(super) fn told(&self) -> MergeTold {
        self.told
    }

    /// What is to be done with such a row.
    fn action(&self, when: MergeWhen, row: &[Datum], cx: &Cx<'_>) -> Result<Option<&Action>> {
        for c in self.clauses.iter().filter(|c| c.when == when) {
            let holds = match &c.condition {
                Some(condition) => condition.is_true(row, &cx.eval)?,
                None => true,
            };
            if holds {
                return Ok(Some(&c.action));
            }
        }
        Ok(None)
    }

    fn has_source(&self, row: &[Datum], cx: &Cx<'_>) -> Result<bool> {
        match &self.source {
            Some(witness) => Ok(!witness.eval(row, &cx.eval)?.is_null()),
            None => Ok(true),
        }
    }
}

fn second_time() -> Error {
    SqlError::new(SqlState::CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time")
        .hint("Ensure that not more than one source row matches any one target row.")
        .into()
}

impl ModifyNode {
    /// Does what the clauses ask for with a row of the join.
    pub(super) fn merge_row(
        &mut self,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<()> {
        let Some(mut merge) = self.merge.take() else { return Ok(()) };
        let before = merge.told;
        let result = (|| {
            if !row[self.tid_slot].is_null()
                && self.merge_target(&mut merge, w, cx, row, out)? == Source::Settled
            {
                return Ok(());
            }
            self.merge_source(&mut merge, w, cx, row, out)
        })();
        let done = |t: &MergeTold| t.inserted + t.updated + t.deleted;
        merge.told.skipped += u64::from(done(&before) == done(&merge.told));
        self.merge = Some(merge);
        result
    }

    /// A row that the target has part in.
    fn merge_target(
        &mut self,
        merge: &mut Merge,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<Source> {
        let mut at = At { w, cx, queue: RowQueue::new(cx.x.txn) };
        let mode = at.w.lock_to_update(merge.updated.iter().copied());
        let mut source = Source::Settled;
        let has_source = merge.has_source(row, cx)?;
        let mut when = match has_source {
            true => MergeWhen::Matched,
            false => MergeWhen::NotMatchedBySource,
        };
        loop {
            let Datum::Tid(tid) = row[self.tid_slot] else { return Ok(source) };
            let set = match merge.action(when, row, cx)? {
                Some(Action::Update(set)) => Some(set.as_slice()),
                Some(Action::Delete) => None,
                Some(Action::Insert(_) | Action::Nothing) | None => return Ok(source),
            };
            let updates = set.is_some();
            let name = if updates { "UPDATE" } else { "DELETE" };
            let outcome = self.attempt(&mut at, tid, set, Some(name), row, out)?;
            match self.settle(&mut at, tid, outcome, mode, row)? {
                Change::Done => {
                    merge.told.updated += u64::from(updates);
                    merge.told.deleted += u64::from(!updates);
                    return Ok(source);
                }
                Change::Own => return Err(second_time()),
                Change::Gone if has_source => return Ok(Source::Alone),
                Change::Gone => return Ok(Source::Settled),
                Change::Newer => {
                    if let Some(shown) = &self.recheck
                        && !shown.is_true(row, &cx.eval)?
                    {
                        return Ok(if has_source { Source::Alone } else { Source::Settled });
                    }
                    if when == MergeWhen::Matched && !merge.on.is_true(row, &cx.eval)? {
                        when = MergeWhen::NotMatchedBySource;
                        source = Source::Alone;
                    }
                }
            }
        }
    }

    /// A row of the source without a match.
    fn merge_source(
        &self,
        merge: &mut Merge,
        w: &mut TableWriter,
        cx: &Cx<'_>,
        row: &mut [Datum],
        out: &mut Batch,
    ) -> Result<()> {
        let Some(Action::Insert(codes)) = merge.action(MergeWhen::NotMatchedByTarget, row, cx)?
        else {
            return Ok(());
        };
        let mut values = codes.iter().map(|c| c.eval(row, &cx.eval)).collect::<Result<Vec<_>>>()?;
        let mut new = self.full_row(&mut values);
        let tid = w.insert(cx.x, &mut new)?;
        self.ask_views(w, &new, tid, cx)?;
        merge.told.inserted += 1;
        self.affected(cx, 1);
        if self.has_keys {
            w.after_insert(&new, &mut cx.shared.after.borrow_mut())?;
        }
        if !self.returning.is_empty() {
            let effect = Effect { new: Some((&new, tid)), old: false, action: Some("INSERT") };
            self.give_changed(&effect, row, cx, out)?;
        }
        Ok(())
    }
}
