//! Outer joins whose padded rows a condition throws away, or keeps alone: they become inner, one-sided, or anti joins.
//!
//! # Invariants
//! Where a left join becomes an anti join (`… LEFT JOIN r … WHERE r.key IS NULL`, of a column that is never NULL in a row that met one)
//! each column of its right side is NULL everywhere but within that side and the join's condition: NULLs stand in their places.

use super::prep::{Global, flatten, own_exprs};
use super::pull_up::JoinTree;
use super::query_walk::visit_rte;
use crate::query::{JoinKind, Query, RteKind};
use base::{Oid, Result};
use expr::{Constant, Expr, TypeRef};
use types::Datum;

/// A column of a range-table entry.
type Column = (usize, i32);

/// The columns in both lists, and for relations that are in both only by different columns any of these.
fn in_both(a: &[Column], b: &[Column]) -> Vec<Column> {
    let mut out: Vec<Column> = a.iter().filter(|c| b.contains(c)).copied().collect();
    for (rel, _) in a {
        if b.iter().any(|c| c.0 == *rel) && !out.iter().any(|c| c.0 == *rel) {
            out.push((*rel, WHOLE));
        }
    }
    out
}

/// No column, but the relation: one of its columns or another.
const WHOLE: i32 = i32::MIN;

/// Columns whose being NULL would make the condition not true.
fn rejects_nulls(e: &Expr, top: bool, out: &mut Vec<Column>) {
    match e {
        Expr::Var { levels_up: 0, rte, column, .. } => out.push((*rte, *column)),
        Expr::Call { function, args, .. }
            if types::facts::proc(Oid(*function)).is_some_and(|p| p.strict) =>
        {
            args.iter().for_each(|a| rejects_nulls(a, false, out));
        }
        // Of nothing at all it is false, which is not NULL; at the top that is as good.
        Expr::ScalarArrayOp { function, any: true, left, array, .. }
            if types::facts::proc(Oid(*function)).is_some_and(|p| p.strict)
                && (top || has_elements(array)) =>
        {
            rejects_nulls(left, false, out);
        }
        Expr::And(args) if top => args.iter().for_each(|a| rejects_nulls(a, true, out)),
        Expr::And(args) | Expr::Or(args) => {
            let mut common: Option<Vec<Column>> = None;
            for a in args {
                let mut mine = Vec::new();
                rejects_nulls(a, top, &mut mine);
                common = Some(match common {
                    None => mine,
                    // Different columns of one relation: a row of NULLs is refused all the same.
                    Some(c) => in_both(&c, &mine),
                });
            }
            out.extend(common.unwrap_or_default());
        }
        Expr::Not(arg)
        | Expr::Relabel { arg, .. }
        | Expr::Collate { arg, .. }
        | Expr::CoerceViaIo { arg, .. } => rejects_nulls(arg, false, out),
        Expr::IsNull { arg, negated: true } if top => rejects_nulls(arg, false, out),
        Expr::BoolTest { arg, kind } if top => {
            if matches!(
                kind,
                expr::BoolTestKind::IsTrue
                    | expr::BoolTestKind::IsFalse
                    | expr::BoolTestKind::IsNotUnknown
            ) {
                rejects_nulls(arg, false, out);
            }
        }
        _ => {}
    }
}

/// True if the expression is known to be NULL where all of its columns are.
pub(super) fn is_null_of_nulls(e: &Expr) -> bool {
    let mut columns = Vec::new();
    rejects_nulls(e, false, &mut columns);
    !columns.is_empty()
}

/// True if the array is known to hold something, or to be NULL.
fn has_elements(array: &Expr) -> bool {
    match array {
        Expr::Const(c) => match &c.value {
            Datum::Array(a) => !a.elements.is_empty(),
            value => value.is_null(),
        },
        Expr::Array { elements, multidim: false, .. } => !elements.is_empty(),
        Expr::Relabel { arg, .. } => has_elements(arg),
        _ => false,
    }
}

/// What the conditions above a join say of its rows.
#[derive(Clone, Default)]
struct Above {
    /// These are not NULL.
    not_null: Vec<Column>,
    /// These are NULL.
    null: Vec<Column>,
}

impl Above {
    fn of(quals: &[Expr]) -> Above {
        let mut above = Above::default();
        for e in quals {
            rejects_nulls(e, true, &mut above.not_null);
            if let Some(column) = null_asked(e) {
                above.null.push(column);
            }
        }
        above
    }
    fn and(&self, more: &Above) -> Above {
        let joined = |a: &[Column], b: &[Column]| [a, b].concat();
        Above {
            not_null: joined(&self.not_null, &more.not_null),
            null: joined(&self.null, &more.null),
        }
    }
}

/// The column of `column IS NULL`. Of a value that is a row that asks for its fields.
fn null_asked(e: &Expr) -> Option<Column> {
    let Expr::IsNull { arg, negated: false } = e else { return None };
    match &**arg {
        Expr::Var { levels_up: 0, rte, column, ty } if *column != 0 => {
            let plain = types::type_info(ty.oid).is_some() && ty.oid != types::oids::RECORD;
            plain.then_some((*rte, *column))
        }
        _ => None,
    }
}

/// Makes less of outer joins where it can.
pub(super) fn reduce(g: &Global<'_>, q: &mut Query, tree: &mut JoinTree) -> Result<()> {
    let mut reducer = Reducer { g, q, lost: Vec::new() };
    reducer.tree(tree, &Above::default())?;
    let lost = reducer.lost;
    if lost.is_empty() {
        return Ok(());
    }
    own_exprs(q, &mut |e| {
        forget(e, &lost);
    });
    forget_in_tree(tree, &lost);
    flatten(tree);
    Ok(())
}

struct Reducer<'r, 'g> {
    g: &'r Global<'g>,
    q: &'r Query,
    /// The right sides of joins that became anti joins, each in order.
    lost: Vec<Vec<usize>>,
}

impl Reducer<'_, '_> {
    fn tree(&mut self, tree: &mut JoinTree, above: &Above) -> Result<()> {
        match tree {
            JoinTree::Rel(_) => {}
            JoinTree::Group { items, quals } => {
                let above = above.and(&Above::of(quals));
                for item in items {
                    self.tree(item, &above)?;
                }
            }
            JoinTree::Join { kind, left, right, quals } => {
                self.join(kind, left, right, quals, above)?;
                let mine = Above::of(quals);
                match kind {
                    JoinKind::Inner => {
                        let above = above.and(&mine);
                        self.tree(left, &above)?;
                        self.tree(right, &above)?;
                        let items = vec![
                            std::mem::replace(&mut **left, JoinTree::Rel(0)),
                            std::mem::replace(&mut **right, JoinTree::Rel(0)),
                        ];
                        let quals = std::mem::take(quals);
                        *tree = JoinTree::Group { items, quals };
                    }
                    JoinKind::Left | JoinKind::Anti => {
                        self.tree(left, above)?;
                        self.tree(right, &mine)?;
                    }
                    JoinKind::Semi => {
                        self.tree(left, &above.and(&mine))?;
                        self.tree(right, &mine)?;
                    }
                    _ => {
                        self.tree(left, &Above::default())?;
                        self.tree(right, &Above::default())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What the join need only be.
    fn join(
        &mut self,
        kind: &mut JoinKind,
        left: &mut Box<JoinTree>,
        right: &mut Box<JoinTree>,
        quals: &[Expr],
        above: &Above,
    ) -> Result<()> {
        let (mut l, mut r) = (Vec::new(), Vec::new());
        left.rels(&mut l);
        right.rels(&mut r);
        let hits = |side: &[usize]| above.not_null.iter().any(|c| side.contains(&c.0));
        let (on_left, on_right) = (hits(&l), hits(&r));
        match kind {
            JoinKind::Left if on_right => *kind = JoinKind::Inner,
            JoinKind::Left if self.only_lone(right, &r, quals, above)? => {
                *kind = JoinKind::Anti;
                r.sort_unstable();
                self.lost.push(r);
            }
            JoinKind::Full => match (on_left, on_right) {
                (true, true) => *kind = JoinKind::Inner,
                // Rows of left without a match stay: RIGHT-less.
                (true, false) => *kind = JoinKind::Left,
                (false, true) => {
                    std::mem::swap(left, right);
                    *kind = JoinKind::Left;
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Do the conditions above a left join keep only rows that met none of the right side? Then something is to be NULL there that is
    /// not in a row that met one.
    fn only_lone(
        &self,
        right: &JoinTree,
        side: &[usize],
        quals: &[Expr],
        above: &Above,
    ) -> Result<bool> {
        let mut asked = above.null.iter().filter(|c| side.contains(&c.0)).peekable();
        // Of rows to be changed or locked the address is asked for.
        let mut marked = self.q.row_marks.iter().map(|m| m.rte).chain(self.q.result_rte);
        if asked.peek().is_none() || marked.any(|r| side.contains(&r)) || self.looks_within(side) {
            return Ok(false);
        }
        let strict = Above::of(quals).not_null;
        let mut padded = Vec::new();
        right.nullable(false, &mut padded);
        for column in asked {
            if strict.contains(column) || !padded.contains(&column.0) && self.never_null(*column)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn never_null(&self, (rte, column): Column) -> Result<bool> {
        let RteKind::Relation { oid, .. } = self.q.range_table[rte].kind else { return Ok(false) };
        let table = self.g.table(oid)?;
        if table.storage.is_none() {
            return Ok(false);
        }
        let at = usize::try_from(column - 1).ok();
        Ok(at.is_none_or(|i| table.columns.get(i).is_some_and(|c| c.not_null && !c.may_hold_null)))
    }

    /// Does an entry refer to one of these (LATERAL)?
    fn looks_within(&self, side: &[usize]) -> bool {
        let mut found = false;
        for entry in self.q.range_table.iter().filter(|e| e.lateral || is_sampled(&e.kind)) {
            let mut kind = entry.kind.clone();
            visit_rte(&mut kind, 0, &mut |e: &mut Expr, depth: u32| {
                let within = |e: &Expr| matches!(e, Expr::Var { levels_up, rte, .. } if *levels_up == depth && side.contains(rte));
                found = found || within(e);
                found
            });
        }
        found
    }
}

fn is_sampled(kind: &RteKind) -> bool {
    matches!(kind, RteKind::Relation { sample: Some(_), .. })
}

/// Puts NULLs in the places of the lost columns; true if there were any.
fn forget(e: &mut Expr, lost: &[Vec<usize>]) -> bool {
    let mut changed = false;
    e.rewrite(&mut |e| {
        let Expr::Var { levels_up: 0, rte, ty, .. } = e else { return false };
        if !lost.iter().any(|side| side.contains(rte)) {
            return false;
        }
        let ty: TypeRef = *ty;
        *e = Expr::Const(Constant { ty, value: Datum::Null });
        changed = true;
        true
    });
    changed
}

fn forget_in_quals(quals: &mut Vec<Expr>, lost: &[Vec<usize>]) {
    quals.retain_mut(|e| {
        if forget(e, lost) {
            *e = expr::fold::fold(e);
        }
        !matches!(e, Expr::Const(c) if matches!(c.value, Datum::Bool(true)))
    });
}

fn forget_in_tree(tree: &mut JoinTree, lost: &[Vec<usize>]) {
    match tree {
        JoinTree::Rel(_) => {}
        JoinTree::Group { items, quals } => {
            forget_in_quals(quals, lost);
            items.iter_mut().for_each(|i| forget_in_tree(i, lost));
        }
        JoinTree::Join { left, right, quals, .. } => {
            let mut side = Vec::new();
            right.rels(&mut side);
            side.sort_unstable();
            let within: Vec<Vec<usize>> = lost.iter().filter(|l| **l != side).cloned().collect();
            forget_in_tree(left, lost);
            forget_in_tree(right, &within);
            forget_in_quals(quals, &within);
        }
    }
}
