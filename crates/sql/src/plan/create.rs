//! From the chosen path to plan nodes over slots.

use super::path::{JoinMethod, JoinPath, Path, PathKind};
use super::rels::{JoinSpace, RelKind, RelSet};
use super::{AggregateStrategy, IndexKey, JoinKey, NodeKind, PlanNode, PlanSortKey, TableScan};
use crate::query::{JoinKind, RteKind};
use base::{Result, bail};
use expr::Expr;
use std::rc::Rc;

/// The AND of conditions.
pub(crate) fn and_all(mut list: Vec<Expr>) -> Option<Expr> {
    match list.len() {
        0 => None,
        1 => list.pop(),
        _ => Some(Expr::And(list)),
    }
}

/// Replaces what the columns hold by slots.
pub(crate) fn slotted(e: &Expr, columns: &[Expr]) -> Result<Expr> {
    let mut e = e.clone();
    let mut missing = None;
    e.rewrite(&mut |e| {
        if matches!(e, Expr::Const(_) | Expr::Param { .. } | Expr::ExecParam { .. }) {
            return true;
        }
        if let Some(index) = columns.iter().position(|c| c == e) {
            *e = Expr::Slot { index, ty: e.ty() };
            return true;
        }
        if matches!(e, Expr::Var { .. } | Expr::Aggregate(_) | Expr::Window(_) | Expr::Grouping(_))
        {
            missing = Some(e.clone());
        }
        false
    });
    match missing {
        None => Ok(e),
        Some(m) => bail!(INTERNAL_ERROR, "variable not found in subplan target list: {m:?}"),
    }
}

/// Adds the filter on top of a node.
pub(crate) fn filtered(node: PlanNode, quals: Option<Expr>) -> PlanNode {
    match quals {
        None => node,
        Some(filter) => PlanNode {
            columns: node.columns.clone(),
            rows: node.rows,
            startup_cost: node.startup_cost,
            total_cost: node.total_cost,
            width: node.width,
            kind: NodeKind::Filter { input: Box::new(node), filter },
        },
    }
}

impl JoinSpace<'_, '_> {
    /// Variables numbered across the statement.
    pub(crate) fn shifted(&self, e: &Expr) -> Expr {
        let mut e = e.clone();
        e.rewrite(&mut |e| {
            if let Expr::Var { levels_up: 0, rte, .. } = e {
                *rte += self.names_base;
            }
            false
        });
        e
    }

    /// An expression over the columns of a node.
    pub(crate) fn over(&self, e: &Expr, columns: &[Expr]) -> Result<Expr> {
        slotted(&self.shifted(e), columns)
    }

    fn all_over(&self, list: &[Expr], columns: &[Expr]) -> Result<Option<Expr>> {
        let list: Vec<Expr> = list.iter().map(|e| self.over(e, columns)).collect::<Result<_>>()?;
        Ok(and_all(list))
    }

    /// Replaces variables of other relations by parameters that an enclosing loop sets.
    fn outer_to_params(&mut self, e: &Expr, mine: RelSet) -> Expr {
        let mut e = e.clone();
        let rel_of = self.rel_of_rte.clone();
        let pending = &mut self.pending;
        let g = &mut *self.g;
        let made_unique = &self.made_unique;
        e.rewrite(&mut |e| {
            if !made_unique.contains(e) {
                let Expr::Var { levels_up: 0, rte, .. } = e else { return false };
                if rel_of[*rte].is_some_and(|r| mine.has(r)) {
                    return false;
                }
            }
            let ty = e.ty();
            let index = match pending.iter().find(|(_, p)| p == e) {
                Some((i, _)) => *i,
                None => {
                    let i = g.new_param();
                    pending.push((i, e.clone()));
                    i
                }
            };
            *e = Expr::ExecParam { index, ty };
            true
        });
        e
    }

    fn scan_parts(&mut self, rel: usize, quals: &[Expr]) -> Result<(TableScan, Vec<Expr>)> {
        self.scan_without(rel, quals, &[])
    }

    /// A scan that does not yield the columns `left_out`.
    fn scan_without(
        &mut self,
        rel: usize,
        quals: &[Expr],
        left_out: &[i32],
    ) -> Result<(TableScan, Vec<Expr>)> {
        let rte = self.rels[rel].rte;
        let Some(table) = self.table(rel).cloned() else {
            bail!(INTERNAL_ERROR, "scan of something that is not a table");
        };
        let needed: Vec<i32> =
            self.rels[rel].needed.iter().copied().filter(|c| !left_out.contains(c)).collect();
        let columns: Vec<Expr> = needed
            .iter()
            .map(|c| Expr::Var {
                levels_up: 0,
                rte: rte + self.names_base,
                column: *c,
                ty: self.column_type(rte, *c),
            })
            .collect();
        let mine = RelSet::one(rel);
        let quals: Vec<Expr> = quals.iter().map(|q| self.outer_to_params(q, mine)).collect();
        let filter = self.all_over(&cheap_first(quals), &columns)?;
        let alias = self.q.range_table[rte].alias.clone();
        let rte = rte + self.names_base;
        Ok((TableScan { table, rte, alias, columns: needed, filter }, columns))
    }

    fn index_keys(&mut self, rel: usize, keys: &[IndexKey]) -> Vec<IndexKey> {
        let mine = RelSet::one(rel);
        keys.iter()
            .map(|k| IndexKey {
                column: k.column,
                op: k.op,
                value: k.value.as_ref().map(|v| self.outer_to_params(v, mine)),
                then: k.then.as_ref().map(|v| self.outer_to_params(v, mine)),
                printed: self.shifted(&self.key_first(&k.printed, mine)),
            })
            .collect()
    }

    /// A condition as EXPLAIN shows it with an index: the index's column on the left.
    fn key_first(&self, e: &Expr, mine: RelSet) -> Expr {
        let mut e = e.clone();
        if let Expr::Call { args, operator, .. } = &mut e
            && let [left, right] = &args[..]
            && self.rels_of(right).overlaps(mine)
            && !self.rels_of(left).overlaps(mine)
            && let Some(commuted) = types::registry::operator(base::Oid(*operator))
                .map(|o| o.commutator.0)
                .filter(|o| *o != 0)
        {
            args.swap(0, 1);
            *operator = commuted;
        }
        e
    }

    /// Makes the nodes of a path.
    pub(crate) fn create(&mut self, path: &Rc<Path>) -> Result<PlanNode> {
        let node = |kind: NodeKind, columns: Vec<Expr>| PlanNode {
            kind,
            columns,
            rows: path.rows,
            startup_cost: path.startup,
            total_cost: path.total,
            width: path.width,
        };
        Ok(match &path.kind {
            PathKind::Result { quals } => {
                let filter = self.all_over(quals, &[])?;
                node(NodeKind::Result { exprs: Vec::new(), filter }, Vec::new())
            }
            PathKind::Seq { rel, quals } => {
                let (scan, columns) = self.scan_parts(*rel, quals)?;
                node(NodeKind::SeqScan(scan), columns)
            }
            PathKind::Sample { rel, quals } => {
                let (scan, columns) = self.scan_parts(*rel, quals)?;
                let Some(sample) = self.rels[*rel].sample.clone() else {
                    bail!(INTERNAL_ERROR, "sample scan without TABLESAMPLE");
                };
                self.hand_down_lateral(*rel);
                let mut told = sample.told;
                told.exprs_mut().for_each(|e| *e = self.shifted(e));
                node(NodeKind::SampleScan { scan, sample: sample.asked, told }, columns)
            }
            PathKind::Index { rel, index, keys, quals, backward, index_only, left_out } => {
                let (scan, columns) = self.scan_without(*rel, quals, left_out)?;
                let keys = self.index_keys(*rel, keys);
                let kind = NodeKind::IndexScan {
                    scan,
                    index: index.clone(),
                    keys,
                    backward: *backward,
                    index_only: *index_only,
                };
                node(kind, columns)
            }
            PathKind::Bitmap { rel, arms, quals } => {
                let (scan, columns) = self.scan_parts(*rel, quals)?;
                let arms =
                    arms.iter().map(|(i, k)| (i.clone(), self.index_keys(*rel, k))).collect();
                node(NodeKind::BitmapScan { scan, arms }, columns)
            }
            PathKind::Tid { rel, tids, asked, quals } => {
                let (scan, columns) = self.scan_parts(*rel, quals)?;
                let tids = self.outer_to_params(tids, RelSet::one(*rel));
                let printed = self.shifted(asked);
                node(NodeKind::TidScan { scan, tids, printed }, columns)
            }
            PathKind::TidRange { rel, bounds, asked, rest } => {
                let (scan, columns) = self.scan_parts(*rel, rest)?;
                let printed = and_all(asked.iter().map(|e| self.shifted(e)).collect());
                let bounds = bounds.clone();
                node(NodeKind::TidRangeScan { scan, bounds, printed }, columns)
            }
            PathKind::Other { rel, quals, by_key } => {
                self.create_other(*rel, quals, *by_key, path)?
            }
            PathKind::Join(j) => self.create_join(j, path)?,
            PathKind::Sort { input, exprs } => {
                let input = self.create(input)?;
                let columns = input.columns.clone();
                let keys = exprs
                    .iter()
                    .map(|(e, descending, nulls_first)| {
                        Ok(PlanSortKey {
                            expr: self.over(e, &columns)?,
                            descending: *descending,
                            nulls_first: *nulls_first,
                        })
                    })
                    .collect::<Result<_>>()?;
                node(NodeKind::Sort { input: Box::new(input), keys, presorted: 0 }, columns)
            }
            PathKind::Distinct { input, exprs } => {
                let input = self.create(input)?;
                let groups: Vec<Expr> =
                    exprs.iter().map(|e| self.over(e, &input.columns)).collect::<Result<_>>()?;
                let columns = exprs.iter().map(|e| self.shifted(e)).collect();
                let sets = vec![(0..groups.len()).collect()];
                let kind = NodeKind::Aggregate {
                    input: Box::new(input),
                    strategy: AggregateStrategy::Hashed,
                    groups,
                    sets,
                    calls: Vec::new(),
                    grouping: Vec::new(),
                    filter: None,
                };
                node(kind, columns)
            }
        })
    }

    /// The parameters by which a relation refers to others are to be set by a join above.
    fn hand_down_lateral(&mut self, rel: usize) {
        for a in self.rels[rel].lateral_args.clone() {
            if !self.pending.iter().any(|p| p.0 == a.0) {
                self.pending.push(a);
            }
        }
    }

    fn create_other(
        &mut self,
        rel: usize,
        quals: &[Expr],
        by_key: Option<usize>,
        path: &Path,
    ) -> Result<PlanNode> {
        if let Some(way) = by_key {
            // The parameters are those of this plan of the sub-select.
            let level = self.rels[rel].by_keys[way].level.take();
            self.rels[rel].lateral_args = level.as_ref().map_or(Vec::new(), |l| l.args.clone());
            self.rels[rel].kind = RelKind::Subquery(level);
        }
        let rte = self.rels[rel].rte;
        let entry = &self.q.range_table[rte];
        let alias = entry.alias.clone();
        let columns: Vec<Expr> = entry
            .column_types
            .iter()
            .enumerate()
            .map(|(i, ty)| Expr::Var {
                levels_up: 0,
                rte: rte + self.names_base,
                column: i as i32 + 1,
                ty: *ty,
            })
            .collect();
        let kind = match &mut self.rels[rel].kind {
            RelKind::Subquery(level) => {
                let Some(level) = level.take() else {
                    bail!(INTERNAL_ERROR, "sub-select planned twice");
                };
                NodeKind::SubqueryScan { input: Box::new(level.node), alias }
            }
            RelKind::Cte { store, work_table } => {
                let (cte, work_table) = (*store, *work_table);
                let name = self.g.ctes[cte].name.clone();
                if work_table {
                    NodeKind::WorkTableScan { cte, alias, name }
                } else {
                    NodeKind::CteScan { cte, alias, name }
                }
            }
            RelKind::Function | RelKind::Values => match &self.q.range_table[rte].kind {
                RteKind::Function { calls, ordinality } => NodeKind::FunctionScan {
                    calls: calls.clone(),
                    ordinality: *ordinality,
                    alias,
                    column_types: self.q.range_table[rte].column_types.clone(),
                },
                RteKind::Values { rows } => NodeKind::ValuesScan { rows: rows.clone(), alias },
                _ => bail!(INTERNAL_ERROR, "unexpected range-table entry"),
            },
            RelKind::Table(_) => bail!(INTERNAL_ERROR, "unexpected table"),
        };
        self.hand_down_lateral(rel);
        let quals: Vec<Expr> =
            quals.iter().map(|q| self.outer_to_params(q, RelSet::one(rel))).collect();
        let filter = self.all_over(&quals, &columns)?;
        let node = PlanNode {
            kind,
            columns,
            rows: path.rows,
            startup_cost: path.startup,
            total_cost: path.total,
            width: path.width,
        };
        Ok(filtered(node, filter))
    }

    fn create_join(&mut self, j: &JoinPath, path: &Path) -> Result<PlanNode> {
        let outer_pending = std::mem::take(&mut self.pending);
        let left = self.create(&j.left)?;
        let left_pending = std::mem::take(&mut self.pending);
        let leads = match &j.left.kind {
            PathKind::Distinct { exprs, .. } => exprs.clone(),
            _ => Vec::new(),
        };
        let enclosing = std::mem::replace(&mut self.made_unique, leads);
        let right = self.create(&j.right);
        self.made_unique = enclosing;
        let mut right = right?;
        let mut params = Vec::new();
        let mut still = outer_pending;
        still.extend(left_pending);
        for (i, e) in std::mem::take(&mut self.pending) {
            if j.method == JoinMethod::NestLoop && self.rels_of(&e).within(j.left.rels) {
                params.push((i, self.over(&e, &left.columns)?));
            } else {
                still.push((i, e));
            }
        }
        self.pending = still;
        if j.materialize {
            right = PlanNode {
                columns: right.columns.clone(),
                rows: right.rows,
                startup_cost: right.startup_cost,
                total_cost: right.total_cost,
                width: right.width,
                kind: NodeKind::Materialize { input: Box::new(right) },
            };
        }
        let both: Vec<Expr> = left.columns.iter().chain(&right.columns).cloned().collect();
        let on = self.all_over(&cheap_first(j.on.clone()), &both)?;
        let filter = self.all_over(&cheap_first(j.filter.clone()), &both)?;
        let keys: Vec<JoinKey> = j
            .keys
            .iter()
            .map(|k| {
                Ok(JoinKey {
                    left: self.over(&k.left, &left.columns)?,
                    right: self.over(&k.right, &right.columns)?,
                    ..k.clone()
                })
            })
            .collect::<Result<_>>()?;
        let one_sided = matches!(j.kind, JoinKind::Semi | JoinKind::Anti);
        let shown = match j.kind {
            _ if one_sided => 0..left.columns.len(),
            JoinKind::RightAnti | JoinKind::RightSemi => left.columns.len()..both.len(),
            _ => 0..both.len(),
        };
        let output: Vec<usize> = shown
            .filter(|i| match &both[*i] {
                Expr::Var { rte, column, .. } => {
                    self.needed_above(rte - self.names_base, *column, path.rels)
                }
                // A made-unique expression has done its work.
                _ => false,
            })
            .collect();
        let columns = output.iter().map(|i| both[*i].clone()).collect();
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = match j.method {
            JoinMethod::NestLoop => {
                NodeKind::NestLoop { kind: j.kind, left, right, params, on, filter, output }
            }
            JoinMethod::Hash => {
                NodeKind::HashJoin { kind: j.kind, left, right, keys, on, filter, output }
            }
            JoinMethod::Merge => {
                NodeKind::MergeJoin { kind: j.kind, left, right, keys, on, filter, output }
            }
        };
        Ok(PlanNode {
            kind,
            columns,
            rows: path.rows,
            startup_cost: path.startup,
            total_cost: path.total,
            width: path.width,
        })
    }
}

/// Sub-plans are tested last.
fn cheap_first(mut quals: Vec<Expr>) -> Vec<Expr> {
    quals.sort_by_key(|e| e.any(&mut |e| matches!(e, Expr::SubPlan { .. })));
    quals
}
