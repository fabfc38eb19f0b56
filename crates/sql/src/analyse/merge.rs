//! MERGE.
//!
//! # Purpose
//! A MERGE is a join of its target, entry 0, with its source. Which clause is for a row of it tells whether both sides, or
//! which of them, have part in it: so the kind of the join goes by which kinds of clauses do something.
//!
//! # Where it differs from PostgreSQL
//! ON must be boolean (42804): PostgreSQL forgets to ask, and takes what it gets for one.

use super::calls::returns_set;
use super::scope::Item;
use super::{Analyser, Clause};
use crate::parse::as_values;
use crate::parse::ast::{self, Loc};
use crate::query::{
    Command, FromItem, Join, JoinKind, Merge, MergeAction, MergeClause, MergeWhen, Query,
    RangeTableEntry, RteKind, UsedColumns,
};
use base::{Oid, Result, SqlError, SqlState, err};
use engine::catalog::model::{RelationKind, Table};
use expr::{Expr, TypeRef};
use types::oids::{BOOL, TEXT, TID};

/// Which names a clause sees: its rows may lack one of the sides.
#[derive(Clone, Copy)]
struct Sides {
    target: bool,
    source: bool,
}

impl Sides {
    fn of(when: MergeWhen) -> Sides {
        Sides {
            target: when != MergeWhen::NotMatchedByTarget,
            source: when != MergeWhen::NotMatchedBySource,
        }
    }
}

/// A clause behind one of its kind that takes every row is never reached.
fn check_reachable(whens: &[ast::MergeWhen]) -> Result<()> {
    for (i, w) in whens.iter().enumerate() {
        if whens[..i].iter().any(|o| o.when == w.when && o.condition.is_none()) {
            return Err(err!(
                SYNTAX_ERROR,
                "unreachable WHEN clause specified after unconditional WHEN clause"
            ));
        }
    }
    Ok(())
}

/// Privileges on the target (bits as in [`RangeTableEntry::required_privileges`]).
fn privileges(whens: &[ast::MergeWhen]) -> u32 {
    whens.iter().fold(0, |all, w| {
        all | match w.action {
            ast::MergeAction::Insert(_) => 2,
            ast::MergeAction::Update(_) => 4,
            ast::MergeAction::Delete => 8,
            ast::MergeAction::Nothing => 1,
        }
    })
}

impl Analyser<'_> {
    pub fn merge(&mut self, s: &ast::Merge) -> Result<Query> {
        if let Some(w) = &s.with {
            if w.recursive {
                return Err(err!(
                    SYNTAX_ERROR,
                    "WITH RECURSIVE is not supported for MERGE statement"
                ));
            }
            self.with_clause(w)?;
        }
        check_reachable(&s.whens)?;
        let asked = privileges(&s.whens);
        let t = self.target(&s.table, s.alias.as_ref(), s.only, "merge into", asked)?;
        let source = self.merge_source(s, &t)?;
        let on = self.condition(Some(&s.on), Clause::JoinOn, "JOIN/ON")?;
        let clauses =
            s.whens.iter().map(|w| self.merge_clause(w, &t)).collect::<Result<Vec<_>>>()?;
        let action_rte = self.action_entry();
        let (returning, images) = self.returning(&s.returning, &t)?;
        self.may_read(images, None);
        // Rows with which nothing is done need not be in the join.
        let acts = |w: &ast::MergeWhen| !matches!(w.action, ast::MergeAction::Nothing);
        let has = |when| s.whens.iter().any(|w| w.when == when && acts(w));
        let (source, witness) = if has(MergeWhen::NotMatchedBySource) {
            let (source, witness) = self.with_witness(source);
            (source, Some(witness))
        } else {
            (source, None)
        };
        let kind = match (witness.is_some(), has(MergeWhen::NotMatchedByTarget)) {
            (false, false) => JoinKind::Inner,
            (true, false) => JoinKind::Left,
            (false, true) => JoinKind::Right,
            (true, true) => JoinKind::Full,
        };
        let Some(on) = on else { return Err(err!(INTERNAL_ERROR, "MERGE without a condition")) };
        let (mut left, mut right) = (FromItem::Rte(0), source);
        if kind == JoinKind::Full {
            // PostgreSQL comes to rows of the target alone last.
            std::mem::swap(&mut left, &mut right);
        }
        let from = self.join_of(kind, left, right, Some(on.clone()));
        let used = self.level().rtes[0].used.clone().unwrap_or_default();
        let mut q = self.gather(Command::Merge);
        q.named = used.inserted;
        UsedColumns::add(&mut q.named, used.updated);
        q.result_rte = Some(0);
        q.from = vec![from];
        q.returning = returning;
        q.images = images;
        q.merge = Some(Box::new(Merge { on, source: witness, action_rte, clauses }));
        self.write_through(q)
    }

    /// The source. It does not see the target, whose name follows the source's.
    fn merge_source(&mut self, s: &ast::Merge, t: &Table) -> Result<FromItem> {
        let mut item = self.target_item(t);
        let name = item.name.clone();
        item.forbidden = true;
        item.by_column = false;
        self.level().items.push(item);
        let Some(source) = self.from_clause(std::slice::from_ref(&s.source))?.pop() else {
            return Err(err!(INTERNAL_ERROR, "MERGE without a source"));
        };
        let items = &mut self.level().items;
        items.rotate_left(1);
        if let Some(item) = items.last_mut() {
            item.forbidden = false;
            item.by_column = true;
        }
        if items[..items.len() - 1].iter().any(|i| i.by_name && i.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("name \"{name}\" specified more than once"),
            )
            .detail("The name is used both as MERGE target table and data source.")
            .into());
        }
        Ok(source)
    }

    fn merge_clause(&mut self, w: &ast::MergeWhen, t: &Table) -> Result<MergeClause> {
        let all = self.level().items.clone();
        self.hide(Sides::of(w.when));
        let condition = self.condition(w.condition.as_ref(), Clause::MergeWhen, "WHEN")?;
        let action = match &w.action {
            ast::MergeAction::Update(list) => {
                let mut set = self.set_list(list, t)?;
                let generated =
                    |n| t.columns.iter().any(|c| c.is_generated() && Some(c.number) == n);
                // Of a view they stay until it is said what is wrong with them.
                set.retain(|e| t.kind == RelationKind::View || !generated(e.target_column));
                MergeAction::Update(set)
            }
            ast::MergeAction::Delete => MergeAction::Delete,
            ast::MergeAction::Insert(i) => {
                let columns = self.insert_columns(i, t)?;
                let mut given = vec![None; t.columns.len()];
                if let Some([row]) = i.source.as_ref().and_then(as_values).map(Vec::as_slice) {
                    let written = row;
                    let row = self.value_row(i, written, &columns, Clause::OneRow)?;
                    // The executor looks at one row at a time here.
                    if let Some(n) = row.iter().position(|e| e.any(&mut returns_set)) {
                        let e = err!(
                            FEATURE_NOT_SUPPORTED,
                            "set-valued function called in context that cannot accept a set"
                        );
                        return self.at(written[n].loc, e);
                    }
                    for (c, e) in columns.iter().zip(row) {
                        c.put(&mut given, e);
                    }
                }
                let mut targets = super::dml::insert_targets(t, given);
                super::domains::check_changed_elements(&mut targets, t);
                MergeAction::Insert(targets)
            }
            ast::MergeAction::Nothing => MergeAction::Nothing,
        };
        self.level().items = all;
        Ok(MergeClause { when: w.when, condition, action })
    }

    /// Takes a side's names out of sight; the target's is the last.
    fn hide(&mut self, sides: Sides) {
        let items = &mut self.level().items;
        let hide = |item: &mut Item| {
            item.by_column = false;
            item.forbidden = true;
        };
        let target = items.len() - 1;
        if !sides.target {
            hide(&mut items[target]);
        }
        if !sides.source {
            items[..target].iter_mut().for_each(hide);
        }
    }

    /// An entry that names do not find.
    fn unseen(&mut self, kind: RteKind, alias: &str, columns: &[(&str, Oid)]) -> usize {
        let entry = RangeTableEntry {
            kind,
            alias: alias.to_owned(),
            has_alias: true,
            column_aliases: 0,
            column_names: columns.iter().map(|c| c.0.to_owned()).collect(),
            column_types: columns.iter().map(|c| TypeRef::of(c.1)).collect(),
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: false,
        };
        let rtes = &mut self.level().rtes;
        rtes.push(entry);
        rtes.len() - 1
    }

    fn join_of(
        &mut self,
        kind: JoinKind,
        left: FromItem,
        right: FromItem,
        on: Option<Expr>,
    ) -> FromItem {
        let rte = self.unseen(RteKind::Join { vars: Vec::new(), kind }, "", &[]);
        let (using, using_alias) = (Vec::new(), None);
        FromItem::Join(Box::new(Join { kind, left, right, on, rte, using, using_alias }))
    }

    /// The source with something that is NULL only where the source has no part in a row. That a table's ctid is; beside
    /// anything else stands a row of `true`.
    fn with_witness(&mut self, source: FromItem) -> (FromItem, Expr) {
        if let FromItem::Rte(rte) = source
            && matches!(self.level().rtes[rte].kind, RteKind::Relation { oid, .. } if oid >= Oid::FIRST_NORMAL.0)
        {
            let ty = TypeRef::of(TID);
            return (source, Expr::Var { levels_up: 0, rte, column: -1, ty });
        }
        let rows = vec![vec![super::coerce::bool_const(true)]];
        let rte = self.unseen(RteKind::Values { rows }, "*SOURCE*", &[("column1", BOOL)]);
        let both = self.join_of(JoinKind::Inner, source, FromItem::Rte(rte), None);
        (both, Expr::Var { levels_up: 0, rte, column: 1, ty: TypeRef::of(BOOL) })
    }

    /// The entry that merge_action() is the column of.
    fn action_entry(&mut self) -> usize {
        // So called in EXPLAIN.
        let rte = self.unseen(RteKind::Excluded, "", &[("MERGE_ACTION()", TEXT)]);
        self.level().merge_action = Some(rte);
        rte
    }

    /// merge_action(), in RETURNING or in a sub-select there.
    pub(super) fn merge_action(&mut self, loc: Loc) -> Result<Expr> {
        for (up, level) in self.levels.iter().rev().enumerate() {
            if level.clause == Clause::Returning
                && let Some(rte) = level.merge_action
            {
                let levels_up = up as u32;
                return Ok(Expr::Var { levels_up, rte, column: 1, ty: TypeRef::of(TEXT) });
            }
        }
        let e = err!(
            SYNTAX_ERROR,
            "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command"
        );
        self.at(loc, e)
    }
}
