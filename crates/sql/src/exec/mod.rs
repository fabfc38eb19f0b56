//! Execution: a tree of nodes that pull batches of rows from each other.
//!
//! # Purpose
//! [`Executor`] is made from a plan once and run as often as wanted: [`Executor::start`] resets it, so that
//! a prepared statement pays for compiling expressions once.
//!
//! # Invariants
//! A node asked for at most `max` rows evaluates no expression for more than that (LIMIT must not call
//! `nextval` too often). An empty batch is the end.

pub(crate) mod aggregate;
pub mod batch;
mod build;
mod check_list;
pub mod context;
mod cte_reads;
mod effects;
pub mod foreign_key;
mod foreign_key_text;
mod hash_join;
mod hypothetical;
mod incremental_sort;
mod index_scan;
mod join;
mod key_types;
mod late;
mod lock_rows;
mod merge_append;
mod merge_join;
mod misc;
pub mod modify;
mod modify_node;
mod numbered_rows;
mod open_params;
mod parallel;
mod parts;
mod project;
mod row;
mod row_codec;
mod sample;
mod scan;
mod set_op;
mod sort;
mod sort_run;
mod sorted_set_op;
mod store;
mod sub_plan;
mod temp_files;
pub mod unique_later;
mod wanted;
mod window;

use crate::plan::{Plan, RelationUse};
use crate::query::Command;
use base::{Result, SqlError, SqlState, bail};
pub use batch::Batch;
pub(crate) use build::each_expr as each_node_expr;
pub use check_list::{CheckList, Mark as CheckMark};
pub use context::{ExecContext, RelationAccess};
use engine::catalog::model::RelationKind;
use expr::eval::{EvalContext, EvalHook};
pub(crate) use numbered_rows::NumberedRows;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
pub(crate) use temp_files::{
    FOLDER as TEMP_FOLDER, SortSpace, TempFileBounds, bound_temp_files, keep_temp_files_in,
    take_temp_files, temp_moved,
};
use types::Datum;

/// A node at work.
pub(crate) trait Node {
    /// Puts up to `max` rows into `out`, none at the end.
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()>;
    /// Begins again; parameters may have changed.
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()>;
    /// Lets go of all pages and of the rows it has gathered, being kept for another execution, which begins with [`Node::rescan`].
    fn let_go(&mut self);
    /// Tells a sort that so many rows are enough.
    fn set_bound(&mut self, _rows: Option<usize>) {}
    /// Tells a sort that of rows that are alike in its first `keys` the first so many are enough: it may leave others out.
    fn set_most_of_each(&mut self, _keys: usize, _rows: usize) {}
    /// Tells a scan which of its rows a sort above it has no use for from now on (see [`sort::Beyond`]); None: for all of them.
    fn set_beyond(&mut self, _beyond: Option<sort::Beyond>) {}
    /// What EXPLAIN ANALYZE shows of its work, before it lets go.
    fn told(&self) -> Told {
        Told::default()
    }
}

/// What nodes share during a statement.
#[derive(Default)]
pub(crate) struct Shared {
    pub exec_params: RefCell<Vec<Datum>>,
    pub sub_plans: Vec<RefCell<sub_plan::SubPlanState>>,
    pub ctes: Vec<RefCell<store::CteState>>,
    pub affected: Cell<u64>,
    pub depth: Cell<u32>,
    /// Counts executions: what was kept in an earlier one is not for this.
    pub generation: Cell<u64>,
    /// Foreign-key work for the end of the statement.
    pub after: RefCell<CheckList>,
    /// Some scan may leave values unread.
    pub has_late: bool,
}

impl Shared {
    /// Forgets what an earlier execution has kept.
    pub(crate) fn reset(&self) {
        for s in &self.sub_plans {
            s.borrow_mut().reset();
        }
        for c in &self.ctes {
            c.borrow_mut().reset();
        }
    }
    /// How often the rows of a CTE have been forgotten.
    fn times_made(&self, cte: usize) -> i64 {
        self.ctes[cte].borrow().times
    }
    fn let_go(&self) {
        for s in &self.sub_plans {
            s.borrow_mut().let_go();
        }
        for c in &self.ctes {
            let mut c = c.borrow_mut();
            c.reset();
            if let Some(node) = &mut c.node {
                node.let_go();
            }
        }
    }
}

/// What nodes run in.
pub(crate) struct Cx<'a> {
    pub x: &'a ExecContext<'a>,
    pub shared: &'a Shared,
    pub eval: EvalContext<'a>,
}

/// Sub-plans and sequences for expressions.
pub(crate) struct Hook<'a> {
    pub x: &'a ExecContext<'a>,
    pub shared: &'a Shared,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(
        x: &'a ExecContext<'a>,
        shared: &'a Shared,
        hook: &'a dyn EvalHook,
    ) -> Cx<'a> {
        let mut eval = EvalContext::new(x.env, &shared.exec_params);
        eval.params = x.params;
        eval.hook = Some(hook);
        Cx { x, shared, eval }
    }
    /// Polls for cancellation.
    #[inline]
    pub(crate) fn poll(&self) -> Result<()> {
        self.x.cancel.check()
    }
}

/// Counts of one node for EXPLAIN ANALYZE.
#[derive(Clone, Copy, Default, Debug)]
pub struct NodeStats {
    /// Rows handed out, over all loops.
    pub rows: u64,
    /// Times it was started.
    pub loops: u64,
    /// Nanoseconds until the first row of each loop, summed.
    pub startup_ns: u64,
    /// Nanoseconds in it, over all loops.
    pub total_ns: u64,
    /// What it told of its work when it let go.
    pub told: Told,
}

/// What a node tells of its work beside rows and time, over all loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Rows that its filter refused.
    pub removed: u64,
    /// How often an index scan went to where a range of keys begins.
    pub searches: u64,
    /// Rows that an index-only scan looked for in the table.
    pub heap_fetches: u64,
    /// What the last sort needed.
    pub sort: Option<SortTold>,
    /// What a hash table has come to.
    pub hash: Option<HashTold>,
    /// What a MERGE did with its rows.
    pub merged: Option<MergeTold>,
}

/// How many rows a MERGE did what with.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named after what is done")]
pub struct MergeTold {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    pub skipped: u64,
}

/// What a hash table has come to at most, of all loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashTold {
    /// Chains of rows.
    pub buckets: usize,
    /// In how many parts rows were done; 0: the table was not filled.
    pub batches: u64,
    /// Bytes in memory.
    pub peak: usize,
    /// Bytes on disk.
    pub disk: u64,
}

/// How rows were sorted.
#[derive(Clone, Copy, Debug)]
pub struct SortTold {
    /// In PostgreSQL's words.
    pub method: &'static str,
    /// Memory, or room on disk, in bytes.
    pub bytes: u64,
    /// It was room on disk.
    pub on_disk: bool,
}

type Stats = Rc<RefCell<Vec<NodeStats>>>;

/// A plan's nodes, and what they share. `settled`: whoever takes the root's rows reads what is late in them.
pub(crate) fn parts(
    plan: &Arc<Plan>,
    stats: Option<Stats>,
    settled: bool,
) -> Result<(Box<dyn Node>, Shared)> {
    let mut late = late::LateColumns::default();
    late.mark(&plan.root, settled);
    plan.sub_plans.iter().for_each(|s| late.mark(&s.node, false));
    plan.ctes.iter().for_each(|c| late.mark(&c.node, false));
    let wanted = wanted::WantedColumns::of_plan(plan);
    let effects_beside = effects::beside(plan);
    let mut builder = build::Builder { plan, stats, main: true, effects_beside, late, wanted };
    let root = builder.node(&plan.root)?;
    builder.main = false;
    let has_late = !builder.late.is_empty();
    let mut shared = Shared { has_late, ..Shared::default() };
    for (i, s) in plan.sub_plans.iter().enumerate() {
        let node = builder.node(&s.node)?;
        let later = s.later.is_some().then(|| (plan.clone(), i));
        shared.sub_plans.push(RefCell::new(sub_plan::SubPlanState::new(plan, i, node, later)?));
    }
    for (number, c) in plan.ctes.iter().enumerate() {
        let state = builder.cte(number, c)?;
        shared.ctes.push(RefCell::new(state));
    }
    *shared.exec_params.borrow_mut() = vec![Datum::Null; plan.exec_params];
    Ok((root, shared))
}

/// A plan made ready to run.
pub struct Executor {
    plan: Arc<Plan>,
    root: Box<dyn Node>,
    shared: Shared,
    stats: Option<Stats>,
    started: bool,
    done: bool,
    batch: Batch,
    rest: Option<Batch>,
    /// Nodes hand each other so many rows at most.
    at_once: usize,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Executor")
    }
}

impl Executor {
    /// Compiles a plan.
    ///
    /// # Errors
    /// `0A000` for functions that do not exist here.
    pub fn new(plan: Arc<Plan>) -> Result<Executor> {
        Executor::build(plan, false)
    }

    /// As [`Executor::new`], counting rows and time for EXPLAIN ANALYZE.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn instrumented(plan: Arc<Plan>) -> Result<Executor> {
        Executor::build(plan, true)
    }

    fn build(plan: Arc<Plan>, instrument: bool) -> Result<Executor> {
        let stats = instrument.then(|| Rc::new(RefCell::new(Vec::new())));
        let (root, shared) = parts(&plan, stats.clone(), true)?;
        Ok(Executor {
            at_once: effects::rows_at_once(&plan),
            plan,
            root,
            shared,
            stats,
            started: false,
            done: false,
            batch: Batch::new(),
            rest: None,
        })
    }

    /// Lets go of all pages, and of the memory and the files of what it has gathered, to be kept for another execution: a statement that
    /// leaves off in the middle of a scan would keep vacuums waiting until then.
    pub fn let_go(&mut self) {
        self.batch.reset(0);
        self.rest = None;
        self.root.let_go();
        self.shared.let_go();
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Begins an execution: privileges are checked, everything is reset.
    ///
    /// # Errors
    /// `42501`; `42809` for rows that are not to be locked, `55000` for a materialized view that nobody has filled.
    pub fn start(&mut self, x: &ExecContext<'_>) -> Result<()> {
        for r in &self.plan.relations {
            if r.privileges != 0 {
                x.relations.check_privileges(
                    &r.table,
                    r.privileges,
                    r.used.as_deref(),
                    r.check_as,
                )?;
            }
        }
        self.plan.relations.iter().try_for_each(|r| check_readable(&self.plan, r))?;
        let again = self.started;
        self.started = true;
        self.done = false;
        self.rest = None;
        self.shared.affected.set(0);
        self.shared.depth.set(0);
        self.shared.generation.set(self.shared.generation.get() + 1);
        self.shared.after.take();
        if again {
            self.shared.reset();
        }
        let hook = Hook { x, shared: &self.shared };
        let cx = Cx::new(x, &self.shared, &hook);
        self.root.rescan(&cx)
    }

    /// The next rows, at most `max`; an empty batch at the end.
    ///
    /// # Errors
    /// Whatever the statement meets.
    pub fn next_batch(&mut self, x: &ExecContext<'_>, max: usize) -> Result<&mut Batch> {
        if !self.started {
            bail!(INTERNAL_ERROR, "executor was not started");
        }
        if let Some(rest) = self.rest.take() {
            self.batch = rest;
            return self.cut(max);
        }
        if self.done {
            self.batch.reset(self.batch.width());
            return Ok(&mut self.batch);
        }
        x.cancel.check()?;
        let hook = Hook { x, shared: &self.shared };
        let cx = Cx::new(x, &self.shared, &hook);
        self.root.next(&cx, &mut self.batch, max.clamp(1, self.at_once))?;
        if self.batch.is_empty() {
            self.done = true;
            store::finish_modifying(&cx, &self.plan)?;
            foreign_key::run_after(&cx)?;
        }
        self.cut(max)
    }

    /// Reads what is late. RETURNING may give more rows at once than were asked for, and long values may be too much at once: the rest is kept.
    fn cut(&mut self, max: usize) -> Result<&mut Batch> {
        let n = if self.shared.has_late { self.batch.settle(max)? } else { max };
        if self.batch.len() > n {
            self.rest = Some(self.batch.split_off(n));
        }
        Ok(&mut self.batch)
    }

    /// Runs what is left to the end without handing out rows; returns how many there were.
    ///
    /// # Errors
    /// Whatever the statement meets.
    pub fn run(&mut self, x: &ExecContext<'_>) -> Result<u64> {
        let mut rows = 0;
        loop {
            let n = self.next_batch(x, usize::MAX)?.len();
            if n == 0 {
                return Ok(rows);
            }
            rows += n as u64;
        }
    }

    /// Rows that INSERT, UPDATE or DELETE has changed so far (the command tag's count).
    pub fn affected(&self) -> u64 {
        self.shared.affected.get()
    }

    /// Counts by node, in the order in which nodes are built (parents before children, outer before
    /// inner, then sub-plans, then CTEs).
    pub fn stats(&self) -> Vec<NodeStats> {
        self.stats.as_ref().map_or_else(Vec::new, |s| s.borrow().clone())
    }
}

/// What has no rows to lock, or no rows to show yet, is not read as if it were empty.
fn check_readable(plan: &Plan, used: &RelationUse) -> Result<()> {
    let table = &used.table;
    let locks = used.target && plan.command == Command::Select;
    if locks && matches!(table.kind, RelationKind::Sequence | RelationKind::MaterializedView) {
        let noun = crate::acl::noun(table.kind);
        bail!(WRONG_OBJECT_TYPE, "cannot lock rows in {noun} \"{}\"", table.name);
    }
    if table.kind == RelationKind::MaterializedView && !table.populated {
        let text = format!("materialized view \"{}\" has not been populated", table.name);
        let e = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text);
        return Err(e.hint("Use the REFRESH MATERIALIZED VIEW command.").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
