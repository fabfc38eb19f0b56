//! From plan nodes to nodes at work.

use super::HashTold;
use super::aggregate::{AggregateNode, AggregateWork, Call};
use super::batch::Batch;
use super::effects::rows_to_write;
use super::hash_join::{HashJoinNode, HashKey, HashState};
use super::incremental_sort::IncrementalSort;
use super::index_scan::{IndexScanNode, KeyedIndex};
use super::join::{LoopState, NestLoopNode};
use super::late::LateColumns;
use super::lock_rows::{LockRowsNode, Mark};
use super::merge_append::MergeAppendNode;
use super::merge_join::{MergeJoinNode, MergeKey, MergeState};
use super::misc::{AppendNode, LimitNode, MaterializeNode, UniqueNode};
use super::modify_node::ModifyNode;
use super::open_params::{DependsOn, depends_on};
use super::parallel::{ParallelAggregate, is_independent};
use super::project::{FilterNode, FunctionNode, ProjectNode, ProjectSetNode, SetCall};
use super::row::RowReader;
use super::sample::SampleCode;
use super::scan::{BitmapNode, ResultNode, ScanBase, SeqScanNode, TidScanNode, ValuesNode};
use super::set_op::{SetOpNode, SetOpWork};
use super::sort::{Key, KeyPlace, SortNode};
use super::sorted_set_op::SortedSetOpNode;
use super::store::{CteScanNode, CteScopeNode, CteState, RecursiveNode, RowStore, WorkTableNode};
use super::wanted::WantedColumns;
use super::window::{Bound, Frame, Running, WindowCallCode, WindowNode, most_of_each};
use super::{Cx, Node, NodeStats, Told};
use crate::plan::{
    AggregateStrategy, CtePlan, JoinKey, NodeKind, Plan, PlanNode, PlanSortKey, are_times,
};
use crate::query::{FrameBound, FunctionInFrom};
use base::{Oid, Result};
use expr::code::{Code, compile};
use expr::tree::AggregateCall;
use expr::{Expr, TypeRef};
use heap::TupleSlot;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// Builds nodes, with counters for EXPLAIN ANALYZE if wanted.
pub(crate) struct Builder<'p> {
    pub plan: &'p Plan,
    pub stats: Option<Rc<RefCell<Vec<NodeStats>>>>,
    /// Nodes of the statement itself are being built, not of its CTEs: their changes are counted.
    pub main: bool,
    /// Sub-plans or CTEs show or do something beside their values.
    pub effects_beside: bool,
    /// What scans may leave unread.
    pub late: LateColumns,
    /// What of a CTE somebody reads.
    pub wanted: WantedColumns,
}

/// Counts another node's rows and time.
struct Counted {
    input: Box<dyn Node>,
    stats: Rc<RefCell<Vec<NodeStats>>>,
    id: usize,
    fresh: bool,
}

impl Node for Counted {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        let begin = Instant::now();
        let r = self.input.next(cx, out, max);
        let ns = begin.elapsed().as_nanos() as u64;
        let mut list = self.stats.borrow_mut();
        let s = &mut list[self.id];
        if self.fresh {
            s.loops += 1;
            s.startup_ns += ns;
            self.fresh = false;
        }
        s.total_ns += ns;
        if r.is_ok() {
            s.rows += out.len() as u64;
        }
        r
    }
    fn let_go(&mut self) {
        let now = self.input.told();
        {
            let told = &mut self.stats.borrow_mut()[self.id].told;
            // What was let go of before has no sort to tell of any more.
            *told = Told { sort: now.sort.or(told.sort), ..now };
        }
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.fresh = true;
        self.input.rescan(cx)
    }
    fn set_bound(&mut self, rows: Option<usize>) {
        self.input.set_bound(rows);
    }
    fn set_beyond(&mut self, beyond: Option<super::sort::Beyond>) {
        self.input.set_beyond(beyond);
    }
}

fn codes(list: &[Expr]) -> Result<Vec<Code>> {
    list.iter().map(compile).collect()
}

fn maybe(e: &Option<Expr>) -> Result<Option<Code>> {
    e.as_ref().map(compile).transpose()
}

fn keys(list: &[PlanSortKey]) -> Result<Vec<Key>> {
    list.iter()
        .map(|k| {
            Ok(Key {
                code: compile(&k.expr)?,
                ty: k.expr.ty().oid,
                descending: k.descending,
                nulls_first: k.nulls_first,
            })
        })
        .collect()
}

/// Keys that are columns.
fn slot_places(list: &[PlanSortKey]) -> Result<Vec<KeyPlace>> {
    let place = |k: &PlanSortKey| match &k.expr {
        Expr::Slot { index, ty } => Ok(KeyPlace {
            slot: *index,
            ty: ty.oid,
            descending: k.descending,
            nulls_first: k.nulls_first,
        }),
        _ => base::bail!(INTERNAL_ERROR, "an order is by what is not a column"),
    };
    list.iter().map(place).collect()
}

/// The types of the two sides, if values of both are compared as moments.
fn mixed_times(k: &JoinKey) -> Option<(Oid, Oid)> {
    let (l, r) = (k.left.ty().oid, k.right.ty().oid);
    (l != r && are_times(l) && are_times(r)).then_some((l, r))
}

fn types_of(node: &PlanNode) -> Vec<Oid> {
    node.columns.iter().map(|c| c.ty().oid).collect()
}

/// Calls `f` on every expression of a node itself.
pub(crate) fn each_expr(node: &PlanNode, f: &mut dyn FnMut(&Expr)) {
    match &node.kind {
        NodeKind::Result { exprs, filter } => exprs.iter().chain(filter).for_each(f),
        NodeKind::SeqScan(s) => s.filter.iter().for_each(f),
        NodeKind::SampleScan { scan, sample, .. } => {
            scan.filter.iter().for_each(&mut *f);
            f(&sample.percent);
            sample.seed.iter().for_each(f);
        }
        NodeKind::IndexScan { scan, keys, .. } => {
            scan.filter.iter().for_each(&mut *f);
            keys.iter().filter_map(|k| k.value.as_ref()).for_each(f);
        }
        NodeKind::BitmapScan { scan, arms } => {
            scan.filter.iter().for_each(&mut *f);
            arms.iter().flat_map(|a| &a.1).filter_map(|k| k.value.as_ref()).for_each(f);
        }
        NodeKind::TidScan { scan, tids, .. } => {
            scan.filter.iter().for_each(&mut *f);
            f(tids);
        }
        NodeKind::TidRangeScan { scan, bounds, .. } => {
            scan.filter.iter().for_each(&mut *f);
            bounds.iter().for_each(|b| f(&b.value));
        }
        NodeKind::FunctionScan { calls, .. } => calls.iter().for_each(|c| f(&c.call)),
        NodeKind::ValuesScan { rows, .. } => rows.iter().flatten().for_each(f),
        NodeKind::Filter { filter, .. } => f(filter),
        NodeKind::Project { exprs, .. } | NodeKind::ProjectSet { exprs, .. } => {
            exprs.iter().for_each(f)
        }
        NodeKind::NestLoop { params, on, filter, .. } => {
            params.iter().for_each(|p| f(&p.1));
            on.iter().chain(filter).for_each(f);
        }
        NodeKind::HashJoin { keys, on, filter, .. }
        | NodeKind::MergeJoin { keys, on, filter, .. } => {
            keys.iter().for_each(|k| {
                f(&k.left);
                f(&k.right);
            });
            on.iter().chain(filter).for_each(f);
        }
        NodeKind::Sort { keys, .. } => keys.iter().for_each(|k| f(&k.expr)),
        NodeKind::Aggregate { groups, calls, filter, .. } => {
            groups.iter().chain(filter).for_each(&mut *f);
            calls.iter().for_each(|c| {
                c.args.iter().for_each(&mut *f);
                c.order_by.iter().for_each(|k| f(&k.expr));
                c.filter.iter().for_each(|e| f(e));
            });
        }
        NodeKind::Window { partition, order, calls, frame, run, .. } => {
            partition.iter().for_each(&mut *f);
            order.iter().for_each(|k| f(&k.expr));
            calls.iter().for_each(|c| c.args.iter().for_each(&mut *f));
            calls.iter().filter_map(|c| c.filter.as_ref()).for_each(|e| f(e));
            for b in [&frame.start, &frame.end] {
                if let FrameBound::Preceding(e) | FrameBound::Following(e) = b {
                    f(e);
                }
            }
            run.iter().for_each(f);
        }
        NodeKind::Limit { limit, offset, .. } => limit.iter().chain(offset).for_each(f),
        NodeKind::LockRows { outer, recheck, .. } => {
            outer.iter().map(|side| &side.on).chain(recheck).for_each(f);
        }
        NodeKind::Modify(m) => {
            m.returning.iter().chain(m.view_checks.iter().map(|c| &c.1)).for_each(f);
        }
        _ => {}
    }
}

impl Builder<'_> {
    /// Makes the node and its inputs.
    pub(crate) fn node(&mut self, p: &PlanNode) -> Result<Box<dyn Node>> {
        let Some(stats) = self.stats.clone() else { return self.plain(p) };
        let id = {
            let mut list = stats.borrow_mut();
            list.push(NodeStats::default());
            list.len() - 1
        };
        let input = self.plain(p)?;
        Ok(Box::new(Counted { input, stats, id, fresh: true }))
    }

    /// A CTE's store with its plan.
    pub(crate) fn cte(&mut self, number: usize, c: &CtePlan) -> Result<CteState> {
        Ok(CteState {
            node: Some(self.node(&c.node)?),
            store: RowStore::new(),
            started: false,
            finished: false,
            work: Rc::new(RefCell::new(RowStore::new())),
            width: c.node.columns.len(),
            unwanted: self.wanted.of_cte(number).map_or_else(Vec::new, |wanted| {
                (0..wanted.len()).filter(|at| !wanted[*at]).collect()
            }),
            handed_on: super::cte_reads::read_once(self.plan, number).then_some(0),
            times: 0,
        })
    }

    fn call(c: &AggregateCall, in_order: bool) -> Result<Call> {
        let arg = c.args.last().map(|a| a.ty().oid);
        Ok(Call {
            maker: Call::maker(c.function, c.star, arg)?,
            args: codes(&c.args)?,
            different: Call::takes_different(c),
            in_order,
            arg_types: c.args.iter().map(|a| a.ty().oid).collect(),
            result: c.ty.oid,
            filter: c.filter.as_deref().map(compile).transpose()?,
            distinct: c.distinct,
            order: c
                .order_by
                .iter()
                .map(|k| Ok((compile(&k.expr)?, k.expr.ty().oid, k.descending, k.nulls_first)))
                .collect::<Result<_>>()?,
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    fn plain(&mut self, p: &PlanNode) -> Result<Box<dyn Node>> {
        Ok(match &p.kind {
            NodeKind::Result { exprs, filter } => {
                Box::new(ResultNode { exprs: codes(exprs)?, filter: maybe(filter)?, done: false })
            }
            NodeKind::SeqScan(scan) => {
                let base = ScanBase::new(scan, self.late.of(p))?;
                Box::new(SeqScanNode::new(base.reading(self.wanted.of_scan(p))))
            }
            NodeKind::SampleScan { scan, sample, .. } => {
                let base = ScanBase::new(scan, self.late.of(p))?;
                Box::new(SeqScanNode::sampled(base, SampleCode::new(sample)?))
            }
            NodeKind::IndexScan { scan, index, keys, backward, index_only } => {
                let late = self.late.of(p);
                Box::new(IndexScanNode::new(scan, late, index, keys, *backward, *index_only)?)
            }
            NodeKind::BitmapScan { scan, arms } => {
                let arms =
                    arms.iter().map(|(i, k)| KeyedIndex::new(i, k)).collect::<Result<_>>()?;
                Box::new(BitmapNode::new(scan, self.late.of(p), arms)?)
            }
            NodeKind::TidScan { scan, tids, .. } => {
                Box::new(TidScanNode::new(scan, self.late.of(p), tids)?)
            }
            NodeKind::TidRangeScan { scan, bounds, .. } => {
                let base = ScanBase::new(scan, self.late.of(p))?;
                let base = base.reading(self.wanted.of_scan(p));
                Box::new(SeqScanNode::new(base.between(bounds)?))
            }
            NodeKind::FunctionScan { calls, ordinality, column_types, .. } => {
                Box::new(FunctionNode {
                    calls: set_calls(calls, column_types)?,
                    ordinality: *ordinality,
                    width: p.columns.len(),
                    open: None,
                    number: 0,
                    ended: false,
                })
            }
            NodeKind::ValuesScan { rows, .. } => Box::new(ValuesNode {
                rows: rows.iter().map(|r| codes(r)).collect::<Result<_>>()?,
                width: p.columns.len(),
                at: 0,
            }),
            NodeKind::CteScan { cte, .. } => {
                let width = self.plan.ctes[*cte].node.columns.len();
                let wanted = self.wanted.of_scan(p).filter(|wanted| wanted.len() == width);
                let wanted = wanted.map(<[bool]>::to_vec);
                Box::new(CteScanNode { cte: *cte, wanted, at: 0 })
            }
            NodeKind::WorkTableScan { cte, .. } => {
                Box::new(WorkTableNode { cte: *cte, rows: None, at: 0 })
            }
            NodeKind::SubqueryScan { input, .. } => self.node(input)?,
            NodeKind::Filter { input, filter } => {
                let constant = !filter.any(&mut |e| matches!(e, Expr::Slot { .. }));
                Box::new(FilterNode {
                    input: self.node(input)?,
                    filter: compile(filter)?,
                    batch: Batch::new(),
                    constant: constant && !expr::fold::contains_volatile(filter),
                    removed: 0,
                    later: Default::default(),
                })
            }
            NodeKind::Project { input, exprs } => {
                Box::new(ProjectNode::new(self.node(input)?, exprs)?)
            }
            NodeKind::ProjectSet { input, exprs } => {
                let width = input.columns.len();
                let mut calls: Vec<SetCall> = Vec::new();
                let mut outer = Vec::new();
                for e in exprs {
                    let mut e = e.clone();
                    take_sets(&mut e, width, &mut calls)?;
                    outer.push(compile(&e)?);
                }
                Box::new(ProjectSetNode {
                    input: self.node(input)?,
                    exprs: outer,
                    calls,
                    batch: Batch::new(),
                    at: 0,
                    open: None,
                    row: Vec::new(),
                })
            }
            NodeKind::NestLoop { kind, left, right, params, on, filter, output } => {
                Box::new(NestLoopNode {
                    kind: *kind,
                    left: self.node(left)?,
                    right: self.node(right)?,
                    params: params
                        .iter()
                        .map(|(i, e)| Ok((*i, compile(e)?)))
                        .collect::<Result<_>>()?,
                    on: maybe(on)?,
                    filter: maybe(filter)?,
                    output: output.clone(),
                    right_width: right.columns.len(),
                    state: LoopState::default(),
                })
            }
            NodeKind::HashJoin { kind, left, right, keys, on, filter, output } => {
                Box::new(HashJoinNode {
                    kind: *kind,
                    left: self.node(left)?,
                    right: self.node(right)?,
                    keys: keys
                        .iter()
                        .map(|k| {
                            Ok(HashKey {
                                left: compile(&k.left)?,
                                right: compile(&k.right)?,
                                ty: k.left.ty().oid,
                                mixed: mixed_times(k),
                                nulls_match: k.nulls_match,
                            })
                        })
                        .collect::<Result<_>>()?,
                    on: maybe(on)?,
                    filter: maybe(filter)?,
                    output: output.clone(),
                    left_width: left.columns.len(),
                    right_width: right.columns.len(),
                    state: HashState::default(),
                    told: HashTold::default(),
                })
            }
            NodeKind::MergeJoin { kind, left, right, keys, on, filter, output } => {
                Box::new(MergeJoinNode {
                    kind: *kind,
                    left: self.node(left)?,
                    right: self.node(right)?,
                    keys: keys
                        .iter()
                        .map(|k| {
                            Ok(MergeKey {
                                left: compile(&k.left)?,
                                right: compile(&k.right)?,
                                ty: k.left.ty().oid,
                                mixed: mixed_times(k),
                                descending: k.descending,
                                nulls_first: k.nulls_first,
                            })
                        })
                        .collect::<Result<_>>()?,
                    on: maybe(on)?,
                    filter: maybe(filter)?,
                    output: output.clone(),
                    left_width: left.columns.len(),
                    right_width: right.columns.len(),
                    state: MergeState::default(),
                })
            }
            NodeKind::Sort { input, keys: list, presorted: presorted @ 1.. } => {
                Box::new(IncrementalSort::new(
                    self.node(input)?,
                    keys(list)?,
                    *presorted,
                    input.columns.len(),
                ))
            }
            NodeKind::Sort { input, keys: list, .. } => Box::new(SortNode {
                width: input.columns.len(),
                input: self.node(input)?,
                keys: keys(list)?,
                bound: None,
                most_of_each: None,
                sorter: None,
            }),
            NodeKind::Aggregate { input, strategy, groups, sets, calls, grouping, filter } => {
                if *strategy == AggregateStrategy::Plain
                    && filter.is_none()
                    && grouping.is_empty()
                    && !calls.is_empty()
                    && self.stats.is_none()
                    && let NodeKind::SeqScan(scan) | NodeKind::TidRangeScan { scan, .. } =
                        &input.kind
                    && scan.table.storage.is_some()
                    && scan.filter.as_ref().is_none_or(is_independent)
                    && calls
                        .iter()
                        .all(|c| ParallelAggregate::suits(c, c.args.last().map(|a| a.ty().oid)))
                {
                    let count_only =
                        scan.filter.is_none() && calls.iter().all(|c| c.star && c.filter.is_none());
                    let calls =
                        calls.iter().map(|c| Builder::call(c, false)).collect::<Result<_>>()?;
                    let mut base = ScanBase::new(scan, self.late.of(input))?;
                    if let NodeKind::TidRangeScan { bounds, .. } = &input.kind {
                        base = base.between(bounds)?;
                    }
                    return Ok(Box::new(ParallelAggregate::new(base, calls, count_only)));
                }
                Box::new(AggregateNode {
                    input_width: input.columns.len(),
                    input: self.node(input)?,
                    strategy: *strategy,
                    group_types: groups.iter().map(|g| g.ty().oid).collect(),
                    groups: codes(groups)?,
                    sets: sets.clone(),
                    calls: calls
                        .iter()
                        .map(|c| Builder::call(c, c.in_order))
                        .collect::<Result<_>>()?,
                    grouping: grouping.clone(),
                    filter: maybe(filter)?,
                    state: AggregateWork::default(),
                })
            }
            NodeKind::Window { input, partition, order, frame, calls, run, .. } => {
                let bound = |b: &FrameBound| -> Result<Bound> {
                    Ok(match b {
                        FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
                        FrameBound::Preceding(e) => Bound::Preceding(compile(e)?),
                        FrameBound::CurrentRow => Bound::CurrentRow,
                        FrameBound::Following(e) => Bound::Following(compile(e)?),
                        FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
                    })
                };
                let mut list = Vec::new();
                for c in calls {
                    let fact = types::facts::proc(Oid(c.function));
                    let is_window = fact.is_some_and(|f| f.kind == 'w');
                    let aggregate = if is_window {
                        None
                    } else {
                        Some(Builder::call(
                            &AggregateCall {
                                function: c.function,
                                args: c.args.clone(),
                                arg_types: c.arg_types.clone(),
                                ty: c.ty,
                                star: c.star,
                                distinct: false,
                                order_by: Vec::new(),
                                filter: c.filter.clone(),
                                direct_args: 0,
                                levels_up: 0,
                            },
                            false,
                        )?)
                    };
                    let offset = match c.args.get(1) {
                        None => Some(1),
                        Some(Expr::Const(c)) => expr::code::int_of(&c.value),
                        Some(_) => None,
                    };
                    let volatile = |e: &Expr| expr::fold::contains_volatile(e);
                    list.push(WindowCallCode {
                        name: fact.map_or("", |f| f.name),
                        args: codes(&c.args)?,
                        offset,
                        aggregate,
                        repeatable: !c.args.iter().chain(c.filter.as_deref()).any(volatile),
                        state: Running::default(),
                    });
                }
                let mut below = self.node(input)?;
                // EXPLAIN ANALYZE counts what a sort has sorted.
                if self.stats.is_none()
                    && let Some(rows) = most_of_each(input, partition, calls, run.as_ref())
                {
                    below.set_most_of_each(partition.len(), rows);
                }
                let partition = partition
                    .iter()
                    .map(|e| Ok((compile(e)?, e.ty().oid)))
                    .collect::<Result<_>>()?;
                let ends = (bound(&frame.start)?, bound(&frame.end)?);
                Box::new(WindowNode::new(
                    below,
                    input.columns.len(),
                    (partition, keys(order)?),
                    Frame::new(frame.mode, ends.0, ends.1, frame.exclude),
                    list,
                    run.as_ref().map(compile).transpose()?,
                ))
            }
            NodeKind::Unique { input, keys } => {
                let types = types_of(input);
                Box::new(UniqueNode {
                    input: self.node(input)?,
                    keys: keys.iter().map(|k| (*k, types[*k])).collect(),
                    last: None,
                    batch: Batch::new(),
                })
            }
            NodeKind::SetOp { op, all, left, right, order } if !order.is_empty() => {
                let sides = (self.node(left)?, self.node(right)?);
                Box::new(SortedSetOpNode::new((*op, *all), sides.0, sides.1, slot_places(order)?))
            }
            NodeKind::SetOp { op, all, left, right, .. } => Box::new(SetOpNode {
                op: *op,
                all: *all,
                types: types_of(left),
                left: self.node(left)?,
                right: self.node(right)?,
                work: SetOpWork::default(),
            }),
            NodeKind::Append { inputs } => Box::new(AppendNode {
                inputs: inputs.iter().map(|i| self.node(i)).collect::<Result<_>>()?,
                at: 0,
                width: p.columns.len(),
            }),
            NodeKind::MergeAppend { inputs, keys } => {
                let nodes = inputs.iter().map(|i| self.node(i)).collect::<Result<_>>()?;
                Box::new(MergeAppendNode::new(nodes, slot_places(keys)?, p.columns.len()))
            }
            NodeKind::RecursiveUnion { cte, all, left, right } => Box::new(RecursiveNode {
                cte: *cte,
                all: *all,
                types: types_of(left),
                left: self.node(left)?,
                right: self.node(right)?,
                seen: super::hash_join::Table::default(),
                next_round: RowStore::new(),
                in_right: false,
                ended: false,
                batch: Batch::new(),
            }),
            NodeKind::Limit { input, limit, offset, ties, with_ties } => Box::new(LimitNode {
                input: self.node(input)?,
                limit: maybe(limit)?,
                offset: maybe(offset)?,
                ties: keys(ties)?,
                with_ties: *with_ties,
                left: None,
                to_skip: 0,
                started: false,
                last: None,
                ended: false,
            }),
            NodeKind::LockRows { input, marks, outer, recheck } => Box::new(LockRowsNode {
                input: self.node(input)?,
                marks: marks
                    .iter()
                    .map(|m| {
                        let columns: Vec<i32> = m.slots.iter().map(|s| s.1).collect();
                        Mark {
                            reader: RowReader::new(&m.table, &columns, None),
                            mark: m.clone(),
                            heap: None,
                        }
                    })
                    .collect(),
                outer: outer
                    .iter()
                    .map(|side| Ok((compile(&side.on)?, side.slots.clone())))
                    .collect::<Result<_>>()?,
                recheck: maybe(recheck)?,
                batch: Batch::new(),
                slot: TupleSlot::new(),
            }),
            NodeKind::Materialize { input } => {
                let DependsOn { params, ctes } = depends_on(self.plan, input);
                Box::new(MaterializeNode {
                    depends: params,
                    made: vec![0; ctes.len()],
                    reads: ctes,
                    width: input.columns.len(),
                    input: self.node(input)?,
                    store: RowStore::new(),
                    at: 0,
                    complete: false,
                    started: false,
                    generation: 0,
                    batch: Batch::new(),
                })
            }
            NodeKind::CteScope { input, ctes } => {
                Box::new(CteScopeNode { input: self.node(input)?, ctes: ctes.clone() })
            }
            NodeKind::Modify(m) => {
                let input = m.input.as_ref().map(|i| self.node(i)).transpose()?;
                let at_once = rows_to_write(m, self.effects_beside);
                Box::new(ModifyNode::new(m, input, self.main, at_once)?)
            }
        })
    }
}

/// Takes set-returning calls out of an expression: each becomes a column behind the row.
fn take_sets(e: &mut Expr, width: usize, calls: &mut Vec<SetCall>) -> Result<()> {
    let mut failed = None;
    e.rewrite(&mut |e| {
        let Expr::Call { function, ty, .. } = &*e else { return false };
        let ty = *ty;
        let is_set = types::registry::function(Oid(*function)).is_some_and(|f| f.returns_set());
        if !is_set {
            return false;
        }
        let nested = {
            let mut inner = false;
            e.for_children(&mut |c| {
                inner = inner
                    || c.any(&mut |c| match c {
                        Expr::Call { function, .. } => types::registry::function(Oid(*function))
                            .is_some_and(|f| f.returns_set()),
                        _ => false,
                    });
            });
            inner
        };
        if nested {
            failed = Some(base::Error::unsupported("a set-returning function within another"));
            return true;
        }
        match SetCall::compile(e, 1) {
            Ok(c) => calls.push(c),
            Err(err) => failed = Some(err),
        }
        *e = Expr::Slot { index: width + calls.len().max(1) - 1, ty };
        true
    });
    failed.map_or(Ok(()), Err)
}

/// The calls of FROM, each with its share of the columns.
fn set_calls(calls: &[FunctionInFrom], mut types: &[TypeRef]) -> Result<Vec<SetCall>> {
    let mut out = Vec::with_capacity(calls.len());
    for c in calls {
        let (own, rest) = types.split_at(c.columns.min(types.len()));
        types = rest;
        let mut call = SetCall::compile(&c.call, c.columns)?;
        let ty = c.call.ty().oid;
        call.spread = crate::analyse::template_columns(&c.call).is_some()
            || ty != types::oids::RECORD && crate::analyse::is_composite(ty);
        // Nobody knows the columns of such a record before it is there.
        if c.call.ty().oid == types::oids::RECORD
            && crate::analyse::function_columns(&c.call).is_none()
        {
            call.defined = Some(own.to_vec());
        }
        out.push(call);
    }
    Ok(out)
}
