//! The join tree, and sub-selects in FROM merged into it.

use super::missing_rows::Witnesses;
use super::query_walk::{Merge, Visitor, query_any, shift_expr_levels, visit};
use crate::analyse::set_ops::empty_query;
use crate::query::{
    Command, Distinct, FromItem, JoinKind, Query, RangeTableEntry, RowMark, RteKind,
};
use expr::Expr;
use expr::fold::contains_volatile;
use expr::tree::CaseWhen;

/// FROM and WHERE as the planner sees them.
#[derive(Clone, Debug)]
pub(crate) enum JoinTree {
    /// A range-table entry.
    Rel(usize),
    /// Inner joins of any number of items, with conditions.
    Group { items: Vec<JoinTree>, quals: Vec<Expr> },
    /// Left (also Right turned round), Full, Semi or Anti.
    Join { kind: JoinKind, left: Box<JoinTree>, right: Box<JoinTree>, quals: Vec<Expr> },
}

impl JoinTree {
    pub(crate) fn rels(&self, out: &mut Vec<usize>) {
        match self {
            JoinTree::Rel(i) => out.push(*i),
            JoinTree::Group { items, .. } => items.iter().for_each(|i| i.rels(out)),
            JoinTree::Join { left, right, .. } => {
                left.rels(out);
                right.rels(out);
            }
        }
    }

    /// The entries that an outer join may fill with NULLs.
    pub(crate) fn nullable(&self, inside: bool, out: &mut Vec<usize>) {
        match self {
            JoinTree::Rel(i) if inside => out.push(*i),
            JoinTree::Rel(_) => {}
            JoinTree::Group { items, .. } => items.iter().for_each(|i| i.nullable(inside, out)),
            JoinTree::Join { kind, left, right, .. } => {
                let full = *kind == JoinKind::Full;
                left.nullable(inside || full, out);
                right.nullable(inside || full || *kind == JoinKind::Left, out);
            }
        }
    }

    pub(crate) fn quals_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            JoinTree::Rel(_) => {}
            JoinTree::Group { items, quals } => {
                items.iter_mut().for_each(|i| i.quals_mut(f));
                quals.iter_mut().for_each(f);
            }
            JoinTree::Join { left, right, quals, .. } => {
                left.quals_mut(f);
                right.quals_mut(f);
                quals.iter_mut().for_each(f);
            }
        }
    }
}

/// Splits a condition into conjuncts.
pub(crate) fn conjuncts(e: Expr, out: &mut Vec<Expr>) {
    match e {
        Expr::And(args) => args.into_iter().for_each(|a| conjuncts(a, out)),
        other => out.push(other),
    }
}

/// FROM as a tree.
pub(crate) fn from_tree(items: &[FromItem]) -> Vec<JoinTree> {
    items.iter().map(item_tree).collect()
}

fn item_tree(item: &FromItem) -> JoinTree {
    match item {
        FromItem::Rte(i) => JoinTree::Rel(*i),
        FromItem::Join(j) => {
            let (mut left, mut right) = (item_tree(&j.left), item_tree(&j.right));
            let mut quals = Vec::new();
            if let Some(on) = &j.on {
                conjuncts(on.clone(), &mut quals);
            }
            let kind = match j.kind {
                JoinKind::Inner => return JoinTree::Group { items: vec![left, right], quals },
                JoinKind::Right => {
                    std::mem::swap(&mut left, &mut right);
                    JoinKind::Left
                }
                other => other,
            };
            JoinTree::Join { kind, left: Box::new(left), right: Box::new(right), quals }
        }
    }
}

/// Replaces variables of join entries, and whole rows, by what they stand for, throughout the query.
pub(crate) fn expand_join_vars(q: &mut Query, tree: &mut JoinTree) {
    let table: Vec<RangeTableEntry> = q.range_table.clone();
    // Nor is there an old row of one inserted, or a new one of one deleted.
    let images: Vec<usize> = q.images.into_iter().flat_map(|(old, new)| [old, new]).collect();
    let mut witnesses = Witnesses::new(q, &images);
    // The tree has taken its place.
    q.from.clear();
    let mut expand = |e: &mut Expr, depth: u32| -> bool {
        loop {
            let Expr::Var { levels_up, rte, column, ty } = e else { return false };
            if *levels_up != depth {
                return false;
            }
            let entry = &table[*rte];
            if *column == 0 {
                let (levels_up, rte, ty) = (*levels_up, *rte, *ty);
                let row = whole_row(entry, rte, levels_up, ty);
                *e = witnesses.or_null(row, rte, levels_up, ty);
                return false;
            }
            let RteKind::Join { vars, .. } = &entry.kind else { return false };
            let Some(v) = usize::try_from(*column - 1).ok().and_then(|c| vars.get(c)) else {
                return false;
            };
            let mut v = v.clone();
            shift_expr_levels(&mut v, 0, depth as i32);
            *e = v;
            if !matches!(e, Expr::Var { .. }) {
                return false;
            }
        }
    };
    visit(q, 0, &mut expand);
    tree.quals_mut(&mut |e| e.rewrite(&mut |e| expand(e, 0)));
    witnesses.place(q);
}

/// The row of an entry `levels_up` levels up, of its columns.
pub(super) fn whole_row(
    entry: &RangeTableEntry,
    rte: usize,
    levels_up: u32,
    ty: expr::TypeRef,
) -> Expr {
    let live = |i: &usize| !entry.column_names[*i].is_empty();
    let columns: Vec<usize> = (0..entry.column_types.len()).filter(live).collect();
    let field = |i: &usize| {
        let (column, ty) = (*i as i32 + 1, entry.column_types[*i]);
        Expr::Var { levels_up, rte, column, ty }
    };
    let names = columns.iter().map(|i| entry.column_names[*i].clone()).collect();
    Expr::Row { fields: columns.iter().map(field).collect(), names, ty }
}

/// True if the sub-select can be merged into the query around it.
pub(crate) fn is_simple(q: &Query) -> bool {
    is_plain(q) && !q.from.is_empty()
}

/// It takes rows from FROM, if it has one, through WHERE to its columns, and does nothing else.
pub(super) fn is_plain(q: &Query) -> bool {
    q.command == Command::Select
        && q.ctes.is_empty()
        && q.set_operation.is_none()
        && !q.has_aggregates
        && q.group_exprs.is_empty()
        && q.grouping_sets.is_empty()
        && q.having.is_none()
        && !q.has_windows
        && q.windows.is_empty()
        && matches!(q.distinct, Distinct::No)
        && q.order_by.is_empty()
        && q.limit.is_none()
        && q.offset.is_none()
        // Locks of its own are taken of its own rows, those that the query around asks for of what that makes of them.
        && q.row_marks.iter().all(|m| m.pushed)
        && !q.has_target_srfs
}

struct Substitute<'a> {
    rte: usize,
    values: &'a [Expr],
}

impl Visitor for Substitute<'_> {
    fn expr(&mut self, e: &mut Expr, depth: u32) -> bool {
        if let Expr::Var { levels_up, rte, column, .. } = e
            && *levels_up == depth
            && *rte == self.rte
            && let Some(v) = usize::try_from(*column - 1).ok().and_then(|c| self.values.get(c))
        {
            let mut v = v.clone();
            shift_expr_levels(&mut v, 0, depth as i32);
            *e = v;
            return true;
        }
        false
    }
}

/// Merges what can be merged, again and again.
pub(crate) fn pull_up_all(q: &mut Query, tree: JoinTree) -> JoinTree {
    let mut holder = tree;
    pull_up(q, &mut holder, false, false, &mut Vec::new());
    holder
}

fn pull_up(
    q: &mut Query,
    tree: &mut JoinTree,
    nullable: bool,
    outer: bool,
    pending: &mut Vec<(usize, Vec<Expr>)>,
) {
    match tree {
        JoinTree::Rel(i) => {
            let i = *i;
            let merged = match merge_subquery(q, i, nullable, outer) {
                None if !outer => merge_row(q, i),
                merged => merged,
            };
            if let Some((merged, values)) = merged {
                *tree = merged;
                apply(q, i, &values);
                pending.push((i, values));
                pull_up(q, tree, nullable, outer, pending);
            }
        }
        JoinTree::Group { items, .. } => {
            let mut mine = Vec::new();
            for item in items.iter_mut() {
                pull_up(q, item, nullable, outer, &mut mine);
            }
            substitute(tree, &mine);
            splice(tree);
            pending.extend(mine);
        }
        JoinTree::Join { kind, left, right, quals } => {
            if *kind == JoinKind::Left
                && !nullable
                && !q.row_marks.is_empty()
                && let JoinTree::Rel(i) = **right
                && let Some(values) = row_of_left(q, i, quals)
            {
                let left = std::mem::replace(&mut **left, JoinTree::Rel(i));
                *tree = left;
                apply(q, i, &values);
                pending.push((i, values));
                return pull_up(q, tree, nullable, outer, pending);
            }
            let mut mine = Vec::new();
            let full = *kind == JoinKind::Full;
            if *kind == JoinKind::Left
                && let JoinTree::Rel(i) = **right
                && let Some(mut m) = super::lateral_pull_up::merge(q, i, left)
            {
                let mut s = Substitute { rte: i, values: &m.inside };
                quals.iter_mut().for_each(|e| e.rewrite(&mut |e| s.expr(e, 0)));
                quals.append(&mut m.quals);
                quals.retain(|e| !certain(e));
                **right = m.right;
                apply(q, i, &m.outside);
                pending.push((i, m.outside));
            }
            pull_up(q, left, nullable || full, true, &mut mine);
            pull_up(q, right, nullable || full || *kind == JoinKind::Left, true, &mut mine);
            substitute(tree, &mine);
            pending.extend(mine);
        }
    }
}

/// Makes a group of the groups in it. A condition of a merged sub-select may look at what stands beside that, at the padded
/// side of an outer join there: it belongs where all that it looks at is below it. What was asked below is asked first.
fn splice(tree: &mut JoinTree) {
    let JoinTree::Group { items, quals } = tree else { return };
    let above = std::mem::take(quals);
    for item in std::mem::take(items) {
        match item {
            JoinTree::Group { items: inner, quals: own } => {
                items.extend(inner);
                quals.extend(own);
            }
            other => items.push(other),
        }
    }
    quals.extend(above);
}

fn substitute(tree: &mut JoinTree, pending: &[(usize, Vec<Expr>)]) {
    for (rte, values) in pending {
        tree.quals_mut(&mut |e| {
            let mut s = Substitute { rte: *rte, values };
            e.rewrite(&mut |e| s.expr(e, 0));
        });
    }
}

/// Puts the values in place of the entry's columns everywhere but in the join tree's conditions.
fn apply(q: &mut Query, rte: usize, values: &[Expr]) {
    visit(q, 0, &mut Substitute { rte, values });
}

/// Does the sub-select refer to the query around it (LATERAL)?
fn looks_beside(q: &Query) -> bool {
    query_any(
        q,
        &mut |e, depth| matches!(e, Expr::Var { levels_up, .. } if *levels_up == depth + 1),
    )
}

/// Does an outer join in this item refer to the query around, in its condition or below it?
pub(super) fn outer_looks_up(q: &Query, item: &FromItem, below: bool) -> bool {
    match item {
        FromItem::Rte(i) => below && q.range_table[*i].lateral,
        FromItem::Join(j) => {
            let below = below || j.kind != JoinKind::Inner;
            let up = |e: &Expr| match e {
                Expr::Var { levels_up, .. } => *levels_up == 1,
                Expr::SubLink { .. } => true,
                _ => false,
            };
            below && j.on.as_ref().is_some_and(|on| on.any(&mut |e| up(e)))
                || outer_looks_up(q, &j.left, below)
                || outer_looks_up(q, &j.right, below)
        }
    }
}

/// Is it, or is anything in its sub-selects, another value each time?
pub(super) fn is_volatile(e: &Expr, subs: &[Query]) -> bool {
    let within = |number: usize| {
        subs.get(number).is_some_and(|sub| query_any(sub, &mut |e, _| contains_volatile(e)))
    };
    contains_volatile(e)
        || e.any(&mut |e| matches!(e, Expr::SubLink { subquery, .. } if within(*subquery)))
}

/// A column, which is NULL in a padded row. A whole row is made of its columns, and then is one of NULLs.
fn is_column(e: &Expr) -> bool {
    matches!(e, Expr::Var { levels_up: 0, column, .. } if *column != 0)
}

/// Merges a sub-select's range table and join tree; what its columns stand for is returned.
fn merge_subquery(
    q: &mut Query,
    i: usize,
    nullable: bool,
    outer: bool,
) -> Option<(JoinTree, Vec<Expr>)> {
    let entry = &q.range_table[i];
    let RteKind::Subquery { query, .. } = &entry.kind else { return None };
    // With no FROM it has a place in the join tree only beside what it refers to.
    if !is_plain(query) || (query.from.is_empty() && !looks_beside(query)) {
        return None;
    }
    // What was pushed down comes up again with the mark that it came from.
    let mark = q.row_marks.iter().position(|m| m.rte == i);
    if mark.is_none() && !query.row_marks.is_empty() {
        return None;
    }
    let visible: Vec<&Expr> = query.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr).collect();
    if visible.iter().any(|e| is_volatile(e, &query.sub_selects)) {
        return None;
    }
    if nullable && !visible.iter().all(|e| is_column(e)) {
        return None;
    }
    // An outer join's condition cannot look at what is outside of that join, so what looks beside itself stays whole
    // below an outer join, and what does so in the condition of an outer join of its own.
    if looks_beside(query) && (outer || query.from.iter().any(|f| outer_looks_up(query, f, false)))
    {
        return None;
    }
    // A grouping set makes NULL of what it leaves out, so that must be a column, and no other one's too.
    let differ = |e: &&Expr| visible.iter().filter(|o| *o == e).count() == 1;
    let columns = |e: &&Expr| is_column(e) && differ(e);
    let leaves_out = q.grouping_sets.iter().any(|s| s.len() < q.group_exprs.len());
    if leaves_out && !visible.iter().all(columns) {
        return None;
    }
    // A sub-select is known by its number in its own query: it cannot be put into another one.
    let linked: Vec<bool> =
        visible.iter().map(|e| e.any(&mut |e| matches!(e, Expr::SubLink { .. }))).collect();
    if linked.contains(&true)
        && query_any(q, &mut |e, depth| {
            depth > 0
                && matches!(e, Expr::Var { levels_up, rte, column, .. } if *levels_up == depth && *rte == i
                    && (*column <= 0 || linked.get(*column as usize - 1).is_none_or(|l| *l)))
        })
    {
        return None;
    }
    if too_many_relations(q, query) {
        return None;
    }
    take_subquery(q, i)
}

/// Merged levels stay well below [`RelSet`](super::rels::RelSet)'s 128 relations, so that a query of many views is
/// planned level by level instead of being refused.
const MOST_MERGED_RELATIONS: usize = 100;

/// Whether merging `sub` into `q` would make one level of too many relations.
pub(super) fn too_many_relations(q: &Query, sub: &Query) -> bool {
    q.range_table.len() + sub.range_table.len() > MOST_MERGED_RELATIONS
}

/// Moves a sub-select's range table into the query around it; its join tree, and what its columns stand for.
pub(super) fn take_subquery(q: &mut Query, i: usize) -> Option<(JoinTree, Vec<Expr>)> {
    let mark = q.row_marks.iter().position(|m| m.rte == i);
    let mut sub = match std::mem::replace(&mut q.range_table[i].kind, RteKind::Excluded) {
        RteKind::Subquery { query, view } => {
            q.range_table[i].kind = RteKind::Subquery { query: Box::new(empty_query()), view };
            *query
        }
        other => {
            q.range_table[i].kind = other;
            return None;
        }
    };
    let mut merge = Merge { rtes: q.range_table.len(), sub_selects: q.sub_selects.len() };
    let tree = merged_tree(&mut sub, &mut merge);
    let values = sub.targets.iter().filter(|t| !t.hidden).map(|t| t.expr.clone()).collect();
    if let Some(mark) = mark {
        let pushed = q.row_marks.remove(mark).pushed;
        let up = |m: RowMark| RowMark { rte: m.rte + merge.rtes, pushed, ..m };
        q.row_marks.extend(sub.row_marks.drain(..).map(up));
    }
    q.range_table.append(&mut sub.range_table);
    q.sub_selects.append(&mut sub.sub_selects);
    Some((tree, values))
}

fn certain(e: &Expr) -> bool {
    matches!(e, Expr::Const(c) if matches!(c.value, types::Datum::Bool(true)))
}

/// What a LEFT JOIN's right side gives that is one row without a FROM: values where its condition and the join's are met. So written they
/// are made anew of a newer version of the row on the left, as PostgreSQL runs such a join again; nothing else asks for it.
fn row_of_left(q: &Query, i: usize, on: &[Expr]) -> Option<Vec<Expr>> {
    let (mut values, mut conditions) = match &q.range_table[i].kind {
        RteKind::Values { rows } => match rows.as_slice() {
            [row] => (row.clone(), Vec::new()),
            _ => return None,
        },
        RteKind::Subquery { query, .. } if is_plain(query) && query.sub_selects.is_empty() => {
            let mut sub = (**query).clone();
            visit(&mut sub, 0, &mut Merge { rtes: q.range_table.len(), sub_selects: 0 });
            let row = match sub.from.as_slice() {
                [] => Vec::new(),
                [FromItem::Rte(n)] => match &sub.range_table[*n].kind {
                    RteKind::Values { rows } if rows.len() == 1 => rows[0].clone(),
                    _ => return None,
                },
                _ => return None,
            };
            let mut conditions = Vec::new();
            sub.filter.into_iter().for_each(|f| conjuncts(f, &mut conditions));
            let shown = sub.targets.into_iter().filter(|t| !t.hidden);
            let mut values: Vec<Expr> = shown.map(|t| t.expr).collect();
            let mut s = Substitute { rte: q.range_table.len(), values: &row };
            values.iter_mut().chain(&mut conditions).for_each(|e| e.rewrite(&mut |e| s.expr(e, 0)));
            (values, conditions)
        }
        _ => return None,
    };
    let mut on = on.to_vec();
    for e in &mut on {
        let mut s = Substitute { rte: i, values: &values };
        e.rewrite(&mut |e| s.expr(e, 0));
    }
    conditions.extend(on);
    conditions.retain(|e| !certain(e));
    // Of the whole row there is no telling a missing one from one of NULLs.
    let fixed = |e: &Expr| {
        contains_volatile(e)
            || e.any(&mut |e| {
                matches!(e, Expr::SubLink { .. })
                    || matches!(e, Expr::Var { levels_up: 0, rte, .. } if *rte == i || *rte >= q.range_table.len())
            })
    };
    if values.iter().chain(&conditions).any(fixed) {
        return None;
    }
    let when = match conditions.len() {
        0 => return Some(values),
        1 => conditions.remove(0),
        _ => Expr::And(conditions),
    };
    for v in &mut values {
        let ty = v.ty();
        let then = std::mem::replace(v, Expr::And(Vec::new()));
        let arms = vec![CaseWhen { when: when.clone(), then }];
        *v = Expr::Case { operand: None, arms, otherwise: None, ty };
    }
    Some(values)
}

/// Merges a single VALUES row that is made of what stands beside it.
fn merge_row(q: &mut Query, i: usize) -> Option<(JoinTree, Vec<Expr>)> {
    let RteKind::Values { rows } = &q.range_table[i].kind else { return None };
    let [row] = rows.as_slice() else { return None };
    let looks_beside =
        row.iter().any(|e| e.any(&mut |e| matches!(e, Expr::Var { levels_up: 0, .. })));
    let linked = row.iter().any(|e| e.any(&mut |e| matches!(e, Expr::SubLink { .. })));
    let leaves_out = q.grouping_sets.iter().any(|s| s.len() < q.group_exprs.len());
    if !looks_beside || linked || leaves_out || row.iter().any(contains_volatile) {
        return None;
    }
    let nothing = RteKind::Subquery { query: Box::new(empty_query()), view: 0 };
    let RteKind::Values { rows } = std::mem::replace(&mut q.range_table[i].kind, nothing) else {
        return None;
    };
    let row = rows.into_iter().next()?;
    Some((JoinTree::Group { items: Vec::new(), quals: Vec::new() }, row))
}

/// The join tree of a query that is being merged, its expressions renumbered.
pub(crate) fn merged_tree(sub: &mut Query, merge: &mut Merge) -> JoinTree {
    let mut tree = query_tree(sub);
    expand_join_vars(sub, &mut tree);
    visit(sub, 0, merge);
    tree.quals_mut(&mut |e| e.rewrite(&mut |e| merge.expr(e, 0)));
    shift_rels(&mut tree, merge.rtes);
    tree
}

/// FROM and WHERE of a query as a tree; WHERE is taken out of the query.
pub(crate) fn query_tree(q: &mut Query) -> JoinTree {
    let mut items = from_tree(&q.from);
    let mut quals = Vec::new();
    if let Some(f) = q.filter.take() {
        conjuncts(f, &mut quals);
    }
    if q.command == Command::Merge
        && let Some(target) = q.result_rte
        && !quals.is_empty()
    {
        // The view that is written through shows no other rows of the target, newer versions included.
        q.rechecks.clone_from(&quals);
        items.iter_mut().for_each(|item| restrict(item, target, &mut quals));
    }
    JoinTree::Group { items, quals }
}

/// Asks conditions of the relation `rel` where it stands in the tree.
fn restrict(tree: &mut JoinTree, rel: usize, asked: &mut Vec<Expr>) {
    match tree {
        JoinTree::Rel(i) if *i == rel => {
            let quals = std::mem::take(asked);
            *tree = JoinTree::Group { items: vec![JoinTree::Rel(rel)], quals };
        }
        JoinTree::Rel(_) => {}
        JoinTree::Group { items, .. } => {
            items.iter_mut().for_each(|i| restrict(i, rel, asked));
        }
        JoinTree::Join { left, right, .. } => {
            restrict(left, rel, asked);
            restrict(right, rel, asked);
        }
    }
}

fn shift_rels(tree: &mut JoinTree, by: usize) {
    match tree {
        JoinTree::Rel(i) => *i += by,
        JoinTree::Group { items, .. } => items.iter_mut().for_each(|i| shift_rels(i, by)),
        JoinTree::Join { left, right, .. } => {
            shift_rels(left, by);
            shift_rels(right, by);
        }
    }
}
