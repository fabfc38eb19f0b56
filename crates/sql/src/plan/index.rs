//! Access paths of base relations.

use super::base_rel::column_width;
use super::heap_order::Costs;
use super::implied::implied;
use super::path::{DISABLED, Path, PathKey, PathKind, add_path};
use super::pull_up::conjuncts;
use super::rels::{JoinSpace, Qual, RelKind, RelSet, class_family, family_strategy};
use super::selectivity::{has_param, strip};
use super::skip_scan::{OnColumn, Reach};
use super::sub_links::constant;
use super::{IndexKey, IndexOp};
use crate::query::{Command, JoinKind};
use base::{Oid, Result};
use engine::catalog::model::{Index, Table};
use expr::code::CompareOp;
use expr::tree::Constant;
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::{Datum, oids};

/// The expression of an index column over the relation `rte`.
pub(super) fn index_expr(table: &Table, index: &Index, i: usize, rte: usize) -> Expr {
    let c = &index.columns[i];
    match &c.expr {
        Some(e) => place(e, rte),
        None => {
            let ty = usize::try_from(c.column - 1)
                .ok()
                .and_then(|n| table.columns.get(n))
                .map_or(c.ty, |c| c.ty);
            Expr::Var { levels_up: 0, rte, column: c.column, ty }
        }
    }
}

/// A stored expression (variables of entry 0) over the relation `rte`.
pub(crate) fn place(e: &Expr, rte: usize) -> Expr {
    let mut e = expr::fold::fold(e);
    e.rewrite(&mut |e| {
        if let Expr::Var { rte: r, .. } = e {
            *r = rte;
        }
        false
    });
    e
}

/// The btree strategy of an operator in an index column's family.
fn strategy(index: &Index, i: usize, operator: u32) -> Option<IndexOp> {
    let family = class_family(index.columns[i].opclass)
        .or_else(|| super::rels::type_family(index.columns[i].ty.oid))?;
    let s = family_strategy(family, operator)?;
    Some(match s {
        1 => IndexOp::Lt,
        2 => IndexOp::Le,
        3 => IndexOp::Eq,
        4 => IndexOp::Ge,
        5 => IndexOp::Gt,
        _ => return None,
    })
}

/// True if a value of type `from` can be turned into the index's type without changing its order.
fn comparable(from: Oid, key: Oid) -> bool {
    let int = |t: Oid| t == oids::INT2 || t == oids::INT4 || t == oids::INT8;
    let text = |t: Oid| t == oids::TEXT || t == oids::VARCHAR;
    let array = |t: Oid| types::registry::type_info(t).is_some_and(types::TypeInfo::is_array);
    let network = |t: Oid| t == oids::INET || t == oids::CIDR;
    from == key
        || (network(from) && network(key))
        || (int(from) && int(key))
        || (text(from) && text(key))
        || (text(from) && key == oids::NAME)
        || (types::io::is_oid_like(from) && types::io::is_oid_like(key))
        || (from == oids::OID && types::io::is_oid_like(key))
        || (types::io::is_oid_like(from) && key == oids::OID)
        || (array(from) && array(key) && from == key)
}

/// What an index on days is asked for where they are compared with a moment.
fn day_key(op: Option<IndexOp>, key: Oid, moment: &Expr) -> Option<(IndexOp, Expr)> {
    let op = match op.filter(|_| key == oids::DATE)? {
        IndexOp::Eq => CompareOp::Eq,
        IndexOp::Lt => CompareOp::Lt,
        IndexOp::Le => CompareOp::Le,
        IndexOp::Gt => CompareOp::Gt,
        IndexOp::Ge => CompareOp::Ge,
        _ => return None,
    };
    let Some(Datum::Timestamp(moment)) = constant(strip(moment)) else { return None };
    let (op, day) = expr::code::day_bound(op, *moment)?;
    let op = match op {
        CompareOp::Eq => IndexOp::Eq,
        CompareOp::Lt => IndexOp::Lt,
        CompareOp::Le => IndexOp::Le,
        CompareOp::Gt => IndexOp::Gt,
        CompareOp::Ge => IndexOp::Ge,
        CompareOp::Ne => return None,
    };
    let ty = TypeRef::of(oids::DATE);
    Some((op, Expr::Const(Constant { ty, value: Datum::Date(day) })))
}

/// The fixed beginning of a LIKE pattern; true if there is nothing but it.
pub(super) fn like_prefix(pattern: &str) -> (String, bool) {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return (out, false),
            '\\' => match chars.next() {
                Some(c) => out.push(c),
                None => return (out, false),
            },
            c => out.push(c),
        }
    }
    (out, true)
}

/// The least string greater than all that begin with `prefix`.
pub(super) fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(c) = chars.pop() {
        let mut n = c as u32 + 1;
        if n == 0xD800 {
            n = 0xE000;
        }
        if let Some(next) = char::from_u32(n) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// A condition matched to an index column.
pub(super) struct Match {
    pub keys: Vec<IndexKey>,
    /// The index decides it wholly: no need to test it again.
    pub exact: bool,
    /// Relations of the values.
    pub outer: RelSet,
}

impl JoinSpace<'_, '_> {
    /// Estimates and makes the paths of every base relation.
    pub(crate) fn base_paths(&mut self) -> Result<()> {
        for i in 0..self.rels.len() {
            let sel = self.all_selectivity(self.rels[i].quals.iter());
            let rel = &mut self.rels[i];
            rel.rows = (rel.tuples * sel).round().max(1.0);
        }
        for i in 0..self.rels.len() {
            let mut paths = Vec::new();
            let s = *self.g.settings;
            let rel = &self.rels[i];
            let width = self.output_width(i);
            let qual_cost = self.quals_cost(&rel.quals);
            match &rel.kind {
                // Where a cursor stands only it knows: nothing else leads there.
                RelKind::Table(_)
                    if rel.quals.iter().any(|q| super::current_of::asked(q).is_some()) =>
                {
                    self.tid_paths(i, &mut paths);
                }
                RelKind::Table(_) if let Some(sample) = &rel.sample => {
                    add_path(&mut paths, self.sample_path(i, &sample.asked));
                }
                RelKind::Table(table) => {
                    let table = table.clone();
                    let mut total =
                        rel.pages * s.seq_page_cost + rel.tuples * (s.cpu_tuple_cost + qual_cost);
                    if !s.enable_seqscan {
                        total += DISABLED;
                    }
                    add_path(
                        &mut paths,
                        Path {
                            kind: PathKind::Seq { rel: i, quals: rel.quals.clone() },
                            rels: RelSet::one(i),
                            rows: rel.rows,
                            startup: 0.0,
                            total,
                            keys: Vec::new(),
                            param: RelSet::EMPTY,
                            width,
                        },
                    );
                    self.tid_paths(i, &mut paths);
                    if table.storage.is_some() {
                        for index in &table.indexes {
                            self.index_paths(i, &table, index, &mut paths);
                        }
                        self.or_paths(i, &table, &mut paths);
                    }
                }
                kind => {
                    let (startup, total) = match kind {
                        RelKind::Subquery(Some(l)) => (l.node.startup_cost, l.node.total_cost),
                        RelKind::Cte { .. } => (0.0, rel.tuples * s.cpu_tuple_cost),
                        _ => (0.0, rel.tuples * s.cpu_tuple_cost),
                    };
                    let total = total + rel.tuples * qual_cost;
                    let keys = if rel.ordered { self.wanted.clone() } else { Vec::new() };
                    add_path(
                        &mut paths,
                        Path {
                            kind: PathKind::Other {
                                rel: i,
                                quals: rel.quals.clone(),
                                by_key: None,
                            },
                            rels: RelSet::one(i),
                            rows: rel.rows,
                            startup,
                            total,
                            keys,
                            param: rel.lateral,
                            width,
                        },
                    );
                    for path in self.paths_by_keys(i, qual_cost) {
                        add_path(&mut paths, path);
                    }
                }
            }
            self.rels[i].paths = paths;
        }
        Ok(())
    }

    pub(super) fn output_width(&self, i: usize) -> i32 {
        let rel = &self.rels[i];
        match &rel.kind {
            RelKind::Table(t) => {
                let mut w = 0;
                for c in &rel.needed {
                    let stats = usize::try_from(*c - 1).ok().and_then(|n| t.columns.get(n));
                    w += stats.map_or(4, column_width);
                }
                w
            }
            _ => rel.width,
        }
    }

    /// Matches one condition to column `c` of an index.
    pub(super) fn match_key(
        &self,
        i: usize,
        index: &Index,
        c: usize,
        key: &Expr,
        e: &Expr,
    ) -> Option<Match> {
        let mine = RelSet::one(i);
        let target = strip(key);
        let key_type = index.columns[c].ty.oid;
        let outside =
            |v: &Expr| !self.rels_of(v).overlaps(mine) && !expr::fold::contains_volatile(v);
        let one = |op: IndexOp, value: Option<Expr>, outer: RelSet| Match {
            keys: vec![IndexKey { column: c, op, value, then: None, printed: e.clone() }],
            exact: true,
            outer,
        };
        match e {
            Expr::Call { args, operator, .. } if args.len() == 2 && *operator != 0 => {
                let (l, r) = (&args[0], &args[1]);
                if strip(l) == target && outside(r) {
                    if let Some(op) = strategy(index, c, *operator)
                        && comparable(r.ty().oid, key_type)
                    {
                        return Some(one(op, Some(r.clone()), self.rels_of(r)));
                    }
                    if let Some((op, day)) = day_key(strategy(index, c, *operator), key_type, r) {
                        return Some(one(op, Some(day), RelSet::EMPTY));
                    }
                    return self.match_like(index, c, e, *operator, r);
                }
                if strip(r) == target && outside(l) {
                    let commuted = types::registry::operator(Oid(*operator))?.commutator.0;
                    if let Some(op) = strategy(index, c, commuted)
                        && comparable(l.ty().oid, key_type)
                    {
                        return Some(one(op, Some(l.clone()), self.rels_of(l)));
                    }
                    if let Some((op, day)) = day_key(strategy(index, c, commuted), key_type, l) {
                        return Some(one(op, Some(day), RelSet::EMPTY));
                    }
                }
                None
            }
            Expr::ScalarArrayOp { operator, any: true, left, array, .. }
                if strip(left) == target && outside(array) =>
            {
                let element = expr::array::element_type(array.ty().oid);
                (strategy(index, c, *operator) == Some(IndexOp::Eq)
                    && comparable(element, key_type))
                .then(|| one(IndexOp::Any, Some((**array).clone()), self.rels_of(array)))
            }
            Expr::IsNull { arg, negated } if strip(arg) == target => {
                let op = if *negated { IndexOp::IsNotNull } else { IndexOp::IsNull };
                Some(one(op, None, RelSet::EMPTY))
            }
            Expr::Var { .. } if e == target && e.ty().oid == oids::BOOL => {
                let value = expr::fold::boolean(true);
                Some(one(IndexOp::Eq, Some(value), RelSet::EMPTY))
            }
            Expr::Not(arg) if strip(arg) == target && arg.ty().oid == oids::BOOL => {
                let value = expr::fold::boolean(false);
                Some(one(IndexOp::Eq, Some(value), RelSet::EMPTY))
            }
            Expr::RowCompare { op, left, right, .. }
                if strip(&left[0]) == target
                    && outside(&right[0])
                    && comparable(right[0].ty().oid, key_type) =>
            {
                use expr::tree::RowCompareOp as R;
                let op = match op {
                    R::Lt | R::Le => IndexOp::Le,
                    R::Gt | R::Ge => IndexOp::Ge,
                };
                let outer = self.rels_of(&right[0]);
                let mut m = one(op, Some(right[0].clone()), outer);
                m.exact = false;
                let second = |table| index_expr(table, index, c + 1, self.rels[i].rte);
                let next = index.columns[..index.key_columns].get(c + 1);
                if let (Some(next), Some(l), Some(r), Some(table)) =
                    (next, left.get(1), right.get(1), self.table(i))
                    && strip(&second(table)) == strip(l)
                    && outside(r)
                    && comparable(r.ty().oid, next.ty.oid)
                {
                    m.outer = m.outer.or(self.rels_of(r));
                    m.keys[0].then = Some(r.clone());
                }
                Some(m)
            }
            _ => None,
        }
    }

    fn match_like(
        &self,
        index: &Index,
        c: usize,
        e: &Expr,
        operator: u32,
        r: &Expr,
    ) -> Option<Match> {
        let o = types::registry::operator(Oid(operator))?;
        if !(o.name == "~~" || o.name == "^@") || index.columns[c].ty.oid == oids::BPCHAR {
            return None;
        }
        let Some(Datum::Text(pattern)) = constant(strip(r)) else {
            if has_param(r) {
                self.g.by_values.set(true);
            }
            return None;
        };
        let (prefix, whole) =
            if o.name == "^@" { (pattern.to_string(), false) } else { like_prefix(pattern) };
        if prefix.is_empty() {
            return None;
        }
        let text = |s: String| {
            Some(Expr::Const(Constant { ty: TypeRef::of(oids::TEXT), value: Datum::text(s) }))
        };
        let key = |op: IndexOp, value: Option<Expr>| IndexKey {
            column: c,
            op,
            value,
            then: None,
            printed: e.clone(),
        };
        let mut keys = Vec::new();
        if whole {
            keys.push(key(IndexOp::Eq, text(prefix)));
        } else {
            if let Some(end) = after_prefix(&prefix) {
                keys.push(key(IndexOp::Lt, text(end)));
            }
            keys.push(key(IndexOp::Ge, text(prefix)));
        }
        Some(Match { keys, exact: whole, outer: RelSet::EMPTY })
    }

    /// Join conditions that could become index conditions of relation `i`.
    pub(super) fn join_clauses(&self, i: usize) -> Vec<(Expr, RelSet)> {
        let mine = RelSet::one(i);
        let mut out = Vec::new();
        for q in &self.quals {
            let rels = self.rels_of(&q.expr);
            if !rels.has(i) || self.above_padding_of(i, q) {
                continue;
            }
            match q.special {
                Some(s) => {
                    let s = &self.specials[s];
                    // `x IN (SELECT …)` may be led by the sub-select's distinct values: `unique_inner`.
                    let led = s.kind == JoinKind::Semi && s.left.has(i) && q.equality.is_some();
                    if s.kind == JoinKind::Full || !(s.right.has(i) || led) {
                        continue;
                    }
                }
                None if q.required != rels => continue,
                None => {}
            }
            out.push((q.expr.clone(), rels.minus(mine)));
        }
        for (c, class) in self.classes.iter().enumerate() {
            if class.constant {
                continue;
            }
            for (m, rels) in &class.members {
                if *rels != mine {
                    continue;
                }
                for (o, other) in &class.members {
                    if !other.has(i)
                        && !other.is_empty()
                        && let Some((e, ..)) = self.equal_expr(c, m, o)
                    {
                        out.push((e, *other));
                    }
                }
            }
        }
        out
    }

    /// Whether the condition looks at rows of relation `i` that an outer join below it may have padded: asked of the relation's
    /// own rows it would take the partner from a row, and let it through as one that has none.
    fn above_padding_of(&self, i: usize, q: &Qual) -> bool {
        let above = |side: RelSet| side.has(i) && !q.required.within(side);
        self.specials.iter().enumerate().any(|(number, s)| match s.kind {
            _ if q.special == Some(number) => false,
            JoinKind::Left => above(s.right),
            JoinKind::Full => above(s.left) || above(s.right),
            _ => false,
        })
    }

    fn index_paths(
        &self,
        i: usize,
        table: &Arc<Table>,
        index: &Arc<Index>,
        paths: &mut Vec<std::rc::Rc<Path>>,
    ) {
        let rel = &self.rels[i];
        if !index.valid
            || !self.g.catalog.may_use(index)
            || !self.g.settings.enable_indexscan && !self.g.settings.enable_indexonlyscan
        {
            return;
        }
        if let Some(p) = &index.predicate {
            let p = place(p, rel.rte);
            if !implied(&p, &rel.quals) {
                let mut of_predicate = Vec::new();
                p.walk(&mut |e| {
                    of_predicate.extend(matches!(e, Expr::Var { .. }).then(|| e.clone()))
                });
                let might = |q: &Expr| has_param(q) && q.any(&mut |e| of_predicate.contains(e));
                if rel.quals.iter().any(might) {
                    self.g.by_values.set(true);
                }
                return;
            }
        }
        let keys: Vec<Expr> =
            (0..index.columns.len()).map(|c| index_expr(table, index, c, rel.rte)).collect();
        // Conditions on the relation alone.
        self.index_path(i, table, index, &keys, &[], RelSet::EMPTY, paths);
        // With values from other relations.
        let clauses: Vec<(Expr, RelSet)> = self
            .join_clauses(i)
            .into_iter()
            .filter(|(e, _)| {
                (0..index.key_columns).any(|c| self.match_key(i, index, c, &keys[c], e).is_some())
            })
            .collect();
        let mut sets: Vec<RelSet> = Vec::new();
        for (_, r) in &clauses {
            if !sets.contains(r) && sets.len() < 16 {
                sets.push(*r);
            }
        }
        let all = sets.iter().fold(RelSet::EMPTY, |a, b| a.or(*b));
        if !all.is_empty() && !sets.contains(&all) {
            sets.push(all);
        }
        for set in sets {
            let mine: Vec<Expr> =
                clauses.iter().filter(|(_, r)| r.within(set)).map(|(e, _)| e.clone()).collect();
            self.index_path(i, table, index, &keys, &mine, set, paths);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of one candidate")]
    fn index_path(
        &self,
        i: usize,
        table: &Arc<Table>,
        index: &Arc<Index>,
        columns: &[Expr],
        extra: &[Expr],
        param: RelSet,
        paths: &mut Vec<std::rc::Rc<Path>>,
    ) {
        let rel = &self.rels[i];
        let s = self.g.settings;
        let all: Vec<&Expr> = rel.quals.iter().chain(extra).collect();
        let mut keys: Vec<IndexKey> = Vec::new();
        let mut used = vec![false; all.len()];
        let mut boundary = true;
        let mut on: Vec<OnColumn<'_>> = Vec::new();
        let mut equal_prefix = 0;
        let mut used_param = RelSet::EMPTY;
        for c in 0..index.key_columns {
            let mut equality = false;
            let mut here = OnColumn::default();
            for (n, e) in all.iter().enumerate() {
                if used[n] {
                    continue;
                }
                let Some(m) = self.match_key(i, index, c, &columns[c], e) else { continue };
                if !m.outer.within(param) {
                    continue;
                }
                // One equality a column is enough; others are tested on the row.
                let is_equal =
                    |k: &IndexKey| matches!(k.op, IndexOp::Eq | IndexOp::Any | IndexOp::IsNull);
                if equality && m.keys.iter().any(|k| is_equal(k) || k.op == IndexOp::IsNotNull) {
                    continue;
                }
                equality |= m.keys.iter().any(is_equal);
                here.quals.push(e);
                used[n] = m.exact;
                used_param = used_param.or(m.outer);
                keys.extend(m.keys);
            }
            // An equality makes other conditions on its column superfluous as scan keys.
            if equality {
                let first = keys.iter().position(|k| {
                    k.column == c && matches!(k.op, IndexOp::Eq | IndexOp::Any | IndexOp::IsNull)
                });
                if let Some(f) = first {
                    let keep = keys[f].clone();
                    let dropped: Vec<Expr> = keys
                        .iter()
                        .filter(|k| k.column == c && k.printed != keep.printed)
                        .map(|k| k.printed.clone())
                        .collect();
                    keys.retain(|k| k.column != c);
                    keys.push(keep);
                    for (n, e) in all.iter().enumerate() {
                        if dropped.contains(e) {
                            used[n] = false;
                        }
                    }
                }
                if boundary {
                    equal_prefix = c + 1;
                }
            } else {
                boundary = false;
            }
            here.equal = equality;
            on.push(here);
        }
        if used_param != param {
            return;
        }
        // What is in the index at all, as a fraction of the table.
        let mut predicate = Vec::new();
        if let Some(p) = &index.predicate {
            conjuncts(place(p, rel.rte), &mut predicate);
        }
        let held = self.all_selectivity(predicate.iter());
        let entries = (rel.tuples * held).max(1.0);
        let entries_per_page = 300.0;
        let index_pages = if index.relpages > 0 {
            f64::from(index.relpages).max(entries / 400.0)
        } else {
            (entries / entries_per_page).max(1.0)
        };
        let forward = self.reach(columns, &on, index_pages);
        let leading = keys.iter().any(|k| k.column == 0) || forward.skips;
        let plain: Vec<i32> =
            index.columns.iter().map(|c| if c.expr.is_none() { c.column } else { 0 }).collect();
        // What the predicate says of every row is not asked of each again; newer versions of rows are asked for all conditions by who
        // locks them.
        for (n, e) in rel.quals.iter().enumerate() {
            used[n] |= !predicate.is_empty() && implied(e, &predicate);
        }
        let rest: Vec<Expr> =
            all.iter().zip(&used).filter(|(_, u)| !**u).map(|(e, _)| (*e).clone()).collect();
        let left_out = self.only_implied(i, &all, &predicate);
        let needed = || rel.needed.iter().filter(|c| !left_out.contains(c));
        let covers = s.enable_indexonlyscan
            && needed().all(|c| *c > 0 && plain.contains(c))
            && !matches!(self.q.command, Command::Update | Command::Delete | Command::Merge if self.q.result_rte == Some(rel.rte));
        let order = self.index_order(index, columns, &keys);
        let reversed: Vec<PathKey> = order
            .iter()
            .map(|k| PathKey {
                class: k.class,
                descending: !k.descending,
                nulls_first: !k.nulls_first,
            })
            .collect();
        let sorted =
            param.is_empty() && (self.order_useful(&order) || self.order_useful(&reversed));
        // A scan that needs no column and has no condition counts rows by the visibility map: no index
        // is read faster.
        let counts_only = needed().next().is_none() && all.is_empty();
        // A partial index holds only rows that its predicate lets through: that alone is worth a scan.
        let partial = index.predicate.is_some();
        if !leading && !sorted && !partial && (!covers || counts_only) {
            return;
        }
        // What of it the conditions on its columns leave.
        let of_index: Vec<&Expr> = on.iter().flat_map(|c| c.quals.iter().copied()).collect();
        let and_predicate = |quals: &[&Expr]| {
            let known = |p: &&Expr| !quals.iter().any(|q| implied(p, std::slice::from_ref(*q)));
            let all = quals.iter().copied().chain(predicate.iter().filter(known));
            self.all_selectivity(all).min(held)
        };
        let heap_sel = and_predicate(&of_index);
        let unique_hit = index.unique
            && equal_prefix >= index.key_columns
            && keys.iter().all(|k| k.op == IndexOp::Eq);
        let row_sel = self.all_selectivity(all.iter().copied());
        let fetched = if unique_hit { 1.0 } else { (rel.tuples * heap_sel).max(1.0) };
        let rows = if unique_hit { 1.0 } else { (rel.tuples * row_sel).round().max(1.0) };
        // As often as the smallest of the relations that it gets values from has rows.
        let outer = param.iter().map(|i| self.rels[i].rows);
        let loops = outer.min_by(f64::total_cmp).unwrap_or(1.0).max(1.0);
        let descent = (entries.max(2.0).log2().ceil() + 2.0 * 50.0) * s.cpu_operator_cost;
        let correlation = self.facts(&columns[0]).and_then(|f| f.stats).and_then(|s| s.correlation);
        let c2 = correlation.map_or(0.0, |c| f64::from(c) * f64::from(c));
        let pages = rel.pages.max(1.0);
        let max_pages = mackert_lohman(fetched * loops, pages, s.effective_cache_pages) / loops;
        let min_pages = (heap_sel * pages).ceil().max(1.0).min(max_pages);
        let mut max_io = max_pages * s.random_page_cost;
        let mut min_io = match loops > 1.0 {
            true => {
                let all = mackert_lohman(min_pages * loops, pages, s.effective_cache_pages);
                (all / loops * s.random_page_cost).min(max_io)
            }
            false => s.random_page_cost + (min_pages - 1.0).max(0.0) * s.seq_page_cost,
        };
        if covers {
            let visible = if table.relpages > 0 {
                (f64::from(table.relallvisible) / f64::from(table.relpages)).clamp(0.0, 1.0)
            } else {
                0.0
            };
            max_io *= 1.0 - visible;
            min_io *= 1.0 - visible;
        }
        let io = max_io + c2 * (min_io - max_io);
        let any: f64 = keys
            .iter()
            .filter(|k| k.op == IndexOp::Any)
            .map(|k| k.value.as_ref().map_or(1.0, super::selectivity::array_length).max(1.0))
            .product();
        let startup = descent;
        let rows_cpu = fetched * (s.cpu_tuple_cost + self.quals_cost(&rest));
        // What is spent on the index alone.
        let index_of = |reach: &Reach<'_>| {
            let index_sel = and_predicate(&reach.quals);
            let read = if unique_hit { 1.0 } else { (rel.tuples * index_sel).max(1.0) };
            let share = index_pages * (index_sel / held.max(1e-10)).min(1.0);
            let leaf = match reach.scans {
                n if n > 1.0 => {
                    let each = (share / n).ceil().max(1.0);
                    mackert_lohman(each * n, index_pages, index_pages)
                }
                _ => share.ceil().max(1.0),
            };
            let cpu = read * (s.cpu_index_tuple_cost + keys.len() as f64 * s.cpu_operator_cost);
            let leaf = match loops > 1.0 {
                true => mackert_lohman(leaf * loops, index_pages, s.effective_cache_pages) / loops,
                false => leaf,
            };
            let more = descent * (any * reach.scans - 1.0).min(index_pages);
            startup + leaf * s.random_page_cost + cpu + more
        };
        let total_of = |reach: &Reach<'_>| {
            let off = !s.enable_indexscan;
            index_of(reach) + io + rows_cpu + if off { DISABLED } else { 0.0 }
        };
        // Of a column that was never analysed nobody knows that its order is not the table's.
        let bounded = keys.iter().any(|k| k.column == 0) && correlation.is_some();
        if param.is_empty() && bounded && !unique_hit && s.enable_bitmapscan {
            let index_cost = index_of(&forward);
            let plain = if s.enable_indexscan { index_cost + io + rows_cpu } else { f64::INFINITY };
            let costs = Costs { index: index_cost, fetched, pages: max_pages, plain };
            if let Some(path) = self.in_heap_order(i, index, &keys, &rest, &costs) {
                add_path(paths, path);
            }
        }
        for backward in [false, true] {
            let keys_order: Vec<PathKey> = if keys.iter().any(|k| k.op == IndexOp::Any) {
                Vec::new()
            } else if backward {
                reversed.clone()
            } else {
                order.clone()
            };
            if backward && (!param.is_empty() || !self.order_useful(&keys_order)) {
                continue;
            }
            let total = total_of(&forward);
            add_path(
                paths,
                Path {
                    kind: PathKind::Index {
                        rel: i,
                        index: index.clone(),
                        keys: keys.clone(),
                        quals: rest.clone(),
                        backward,
                        index_only: covers,
                        left_out: left_out.clone(),
                    },
                    rels: RelSet::one(i),
                    rows,
                    startup,
                    total,
                    keys: keys_order,
                    param: param.or(rel.lateral),
                    width: self.output_width(i),
                },
            );
        }
    }

    /// The order in which an index yields rows.
    fn index_order(&self, index: &Index, columns: &[Expr], keys: &[IndexKey]) -> Vec<PathKey> {
        let mut out = Vec::new();
        for c in 0..index.key_columns {
            let ic = &index.columns[c];
            let family = class_family(ic.opclass).or_else(|| super::rels::type_family(ic.ty.oid));
            let class = family.and_then(|f| self.find(&columns[c], f));
            match class {
                Some(class) if self.classes[class].constant => {}
                Some(class) => out.push(PathKey {
                    class,
                    descending: ic.descending,
                    nulls_first: ic.nulls_first,
                }),
                None => {
                    if !keys.iter().any(|k| k.column == c && k.op == IndexOp::Eq) {
                        break;
                    }
                }
            }
        }
        out
    }

    /// True if somebody could use the order.
    fn order_useful(&self, order: &[PathKey]) -> bool {
        let Some(first) = order.first() else { return false };
        self.wanted.first() == Some(first)
            || self.classes[first.class].members.iter().filter(|m| !m.1.is_empty()).count() > 1
    }
}

/// Pages fetched for `tuples` random tuples (Mackert and Lohman).
pub(super) fn mackert_lohman(tuples: f64, pages: f64, cache: f64) -> f64 {
    let t = pages.max(1.0);
    let b = cache.max(1.0);
    if t <= b {
        let p = 2.0 * t * tuples / (2.0 * t + tuples);
        if p >= t { t } else { p.ceil() }
    } else {
        let limit = 2.0 * t * b / (2.0 * t - b);
        let p = if tuples <= limit {
            2.0 * t * tuples / (2.0 * t + tuples)
        } else {
            b + (tuples - limit) * (t - b) / t
        };
        p.ceil()
    }
}
