//! Aggregates over a large table, its blocks shared out to two threads.
//!
//! # Purpose
//! `count`, `sum` of integers, `min` and `max` over a sequential scan or one of a range of addresses, with or without a filter: each thread counts
//! what it scans, and the parts are put together. Only expressions that ask nothing of the session but what letters are
//! are evaluated so.

use super::aggregate::{Call, Maker, State, add_int};
use super::batch::Batch;
use super::scan::ScanBase;
use super::{Cx, Node};
use crate::activity::TableChanges;
use base::sync::CancelFlag;
use base::{Oid, Result, bail};
use expr::Expr;
use expr::eval::EvalContext;
use expr::ops::compare;
use heap::{Heap, HeapScan, PageBatch, ScanOptions, SharedBlocks, TidRange};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use txn::Snapshot;
use types::{Ctype, Datum, Volatility};

/// Tables shorter than this are scanned by one thread.
const MIN_PAGES: u32 = if cfg!(all(test, debug_assertions)) { 4 } else { 1024 };

/// True if the expression may be evaluated away from the session.
pub(crate) fn is_independent(e: &Expr) -> bool {
    !e.any(&mut |e| match e {
        Expr::Call { function, .. } | Expr::ScalarArrayOp { function, .. } => {
            expr::fold::function_volatility(*function) != Volatility::Immutable
        }
        Expr::SubPlan { .. }
        | Expr::ExecParam { .. }
        | Expr::SqlValue { .. }
        | Expr::NextValue { .. }
        | Expr::Json(_)
        | Expr::CoerceViaIo { .. } => true,
        _ => false,
    })
}

/// One row of aggregates over a table.
pub(crate) struct ParallelAggregate {
    base: ScanBase,
    calls: Vec<Call>,
    /// Only rows are counted, all of them.
    count_only: bool,
    done: bool,
}

/// What a thread needs of the node and the statement.
struct Work<'a> {
    base: &'a ScanBase,
    calls: &'a [Call],
    count_only: bool,
    heap: &'a Heap,
    snapshot: &'a Arc<Snapshot>,
    params: &'a [Datum],
    cancel: &'a CancelFlag,
    /// The session's.
    ctype: Ctype,
    tids: Option<TidRange>,
    shared: Option<Arc<SharedBlocks>>,
    /// Rows read, for the statistics.
    read: AtomicI64,
}

impl Work<'_> {
    fn run(&self) -> Result<Vec<State>> {
        let (tids, shared) = (self.tids, self.shared.clone());
        let options = ScanOptions { tids, shared, ..ScanOptions::default() };
        let mut scan = HeapScan::new(self.heap, self.snapshot.clone(), options)?;
        let mut states: Vec<State> = self.calls.iter().map(Call::start).collect();
        if self.count_only {
            let n = scan.count(|| self.cancel.check())?;
            let n = i64::try_from(n).unwrap_or(i64::MAX);
            self.read.fetch_add(n, Ordering::Relaxed);
            states.iter_mut().for_each(|s| *s = State::Count(n));
            return Ok(states);
        }
        types::ctype::with(self.ctype, &types::env::PlainEnv, |env| {
            self.add_rows(&mut scan, &mut states, env)
        })?;
        Ok(states)
    }

    /// Reads what is left of the scan.
    fn add_rows(
        &self,
        scan: &mut HeapScan,
        states: &mut [State],
        env: &dyn types::Env,
    ) -> Result<()> {
        let exec = RefCell::new(Vec::new());
        let mut cx = EvalContext::new(env, &exec);
        cx.params = self.params;
        let mut page = PageBatch::new();
        let mut row = Batch::new();
        row.reset(self.base.reader.width());
        let filter = self.base.filter.as_ref();
        while scan.next_page(&mut page)? {
            self.cancel.check()?;
            self.read.fetch_add(i64::try_from(page.len()).unwrap_or(0), Ordering::Relaxed);
            for t in page.iter() {
                let keep = |row: &[Datum]| filter.map_or(Ok(true), |f| f.is_true(row, &cx));
                if self.base.reader.read(
                    &t.tuple,
                    t.tid,
                    self.heap,
                    &mut row,
                    keep,
                    filter.is_some(),
                )? {
                    for (c, s) in self.calls.iter().zip(&mut *states) {
                        c.add_simple(s, row.row(0), &cx)?;
                    }
                    row.reset(self.base.reader.width());
                }
            }
        }
        Ok(())
    }
}

/// What another thread's state comes to.
enum Part {
    Count(i64),
    Sum(i64, u64),
    Extreme(Datum),
}

impl Part {
    fn of(state: State) -> Result<Part> {
        Ok(match state {
            State::Count(n) => Part::Count(n),
            State::Sum(sum, n) => Part::Sum(sum, n),
            State::Extreme(value) => Part::Extreme(value),
            _ => bail!(INTERNAL_ERROR, "an aggregate's state is not made of parts"),
        })
    }
}

/// Puts two parts together.
fn merge(call: &Call, a: &mut State, b: Part) -> Result<()> {
    match (a, b) {
        (State::Count(x), Part::Count(y)) => *x += y,
        (State::Sum(x, n), Part::Sum(y, m)) => (*x, *n) = (add_int(*x, y)?, *n + m),
        (State::Extreme(x), Part::Extreme(y)) => {
            if let Maker::Extreme { greatest, ty } = call.maker
                && !y.is_null()
                && (x.is_null() || {
                    let o = compare(ty, &y, x);
                    if greatest { o.is_gt() } else { o.is_lt() }
                })
            {
                *x = y;
            }
        }
        _ => bail!(INTERNAL_ERROR, "aggregate states of two kinds"),
    }
    Ok(())
}

impl ParallelAggregate {
    pub(crate) fn new(base: ScanBase, calls: Vec<Call>, count_only: bool) -> ParallelAggregate {
        ParallelAggregate { base, calls, count_only, done: false }
    }

    /// True for calls whose parts can be put together.
    pub(crate) fn suits(call: &expr::tree::AggregateCall, arg: Option<Oid>) -> bool {
        !call.distinct
            && call.order_by.is_empty()
            && call.filter.as_deref().is_none_or(is_independent)
            && call.args.iter().all(is_independent)
            && !matches!(
                Call::maker(call.function, call.star, arg),
                Err(_) | Ok(Maker::Other(_) | Maker::Place(_))
            )
    }
}

impl Node for ParallelAggregate {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, _max: usize) -> Result<()> {
        out.reset(self.calls.len());
        if self.done {
            return Ok(());
        }
        self.done = true;
        let heap = self.base.heap(cx)?;
        let tids = self.base.tids(cx)?;
        let range = tids.unwrap_or(TidRange::ALL).blocks(heap.len_blocks()?);
        let large = range.end.0.saturating_sub(range.start.0) >= MIN_PAGES;
        let work = Work {
            base: &self.base,
            calls: &self.calls,
            count_only: self.count_only,
            heap: &heap,
            snapshot: &cx.x.snapshot,
            params: cx.x.params,
            cancel: cx.x.cancel,
            ctype: cx.x.env.style().ctype,
            tids,
            shared: large.then(|| SharedBlocks::new(range)),
            read: AtomicI64::new(0),
        };
        let mut states = if large {
            let role = buffer::Role::mine();
            let worker = cx.x.relations.helper();
            std::thread::scope(|s| {
                let helper = std::thread::Builder::new()
                    .name("parallel scan".to_owned())
                    .spawn_scoped(s, || {
                        role.take();
                        let worker = worker;
                        if let Some(worker) = &worker {
                            worker.runs_here();
                        }
                        work.run()?.into_iter().map(Part::of).collect::<Result<Vec<Part>>>()
                    });
                let mine = work.run();
                let Ok(helper) = helper else {
                    // No thread to be had: this one has done it all.
                    return mine;
                };
                let other = match helper.join() {
                    Ok(r) => r,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                let mut mine = mine?;
                for ((c, a), b) in self.calls.iter().zip(&mut mine).zip(other?) {
                    merge(c, a, b)?;
                }
                Ok(mine)
            })?
        } else {
            work.run()?
        };
        let tuples_read = work.read.load(Ordering::Relaxed);
        let seen = TableChanges {
            scans: i64::from(!self.base.is_bounded()),
            tuples_read,
            ..TableChanges::default()
        };
        cx.x.relations.note_scan(self.base.table.oid, &seen);
        for (c, s) in self.calls.iter().zip(&mut states) {
            let v = c.finish(s, cx)?;
            out.push_value(v);
        }
        out.end_row();
        Ok(())
    }
    fn let_go(&mut self) {}
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.done = false;
        Ok(())
    }
}
