//! Planning: from an analysed [`Query`](crate::query::Query) to a tree of executor nodes.
//!
//! # Purpose
//! `prep` rewrites the query (folding, sub-links to joins, pulled-up sub-selects), `rels` collects
//! relations and conditions, `paths` and `joins` find the cheapest way, `upper` adds grouping,
//! windows, ordering and limits, and `create` turns the chosen way into [`PlanNode`]s whose
//! expressions are over slots.
//!
//! # Invariants
//! A plan is immutable and shared: parameters stay `Param`s, so it serves every execution until the
//! catalogs change.

mod base_rel;
mod computed_before;
mod create;
pub(crate) mod current_of;
mod distinct;
mod equiv;
mod exists_rows;
pub mod explain;
pub(crate) mod explain_tree;
mod extended;
mod finish;
mod groups;
mod heap_order;
mod idle_joins;
pub(crate) mod implied;
mod index;
mod join_paths;
mod joins;
mod key_joins;
mod lateral_pull_up;
mod merge_reach;
mod min_max;
mod missing_rows;
mod modify;
mod or_clauses;
mod or_paths;
mod ordered_sets;
mod outer_joins;
mod output_facts;
mod path;
mod patterns;
mod prep;
mod presorted;
mod print;
mod pull_up;
mod qual_cost;
pub(crate) mod query_walk;
mod rels;
mod run_condition;
mod sample;
mod search_cycle;
mod selectivity;
mod set_ops;
mod skip_scan;
mod sub_links;
mod sub_select_keys;
mod tid_paths;
mod unused_outputs;
mod upper;
mod virtual_columns;
mod window_line;
mod windows;

pub use exists_rows::GatheredRows;
pub use presorted::PlannedCall;
pub(crate) use sub_links::are_times;

use crate::query::{
    Command, FunctionInFrom, JoinKind, LockStrength, LockWait, MergeWhen, OnConflict, Query, SetOp,
    TableSample, UsedColumns, WindowFrame,
};
use base::{Oid, Result};
use engine::catalog::model::{CatalogView, Index, Table};
use expr::tree::{SubLinkKind, WindowCall};
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::Datum;

/// Settings that the planner heeds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "named after the settings")]
pub struct PlannerSettings {
    pub work_mem_bytes: usize,
    pub hash_mem_bytes: f64,
    pub random_page_cost: f64,
    pub seq_page_cost: f64,
    pub cpu_tuple_cost: f64,
    pub cpu_index_tuple_cost: f64,
    pub cpu_operator_cost: f64,
    pub effective_cache_pages: f64,
    pub enable_seqscan: bool,
    pub enable_indexscan: bool,
    pub enable_indexonlyscan: bool,
    pub enable_bitmapscan: bool,
    pub enable_hashjoin: bool,
    pub enable_mergejoin: bool,
    pub enable_nestloop: bool,
    pub enable_hashagg: bool,
    pub enable_sort: bool,
    pub enable_tidscan: bool,
    pub enable_incremental_sort: bool,
    pub enable_presorted_aggregate: bool,
    pub enable_material: bool,
    /// Rows of a cursor that are expected to be fetched, as a fraction; 0: all.
    pub cursor_tuple_fraction: f64,
}

impl Default for PlannerSettings {
    fn default() -> Self {
        PlannerSettings {
            work_mem_bytes: 4 << 20,
            hash_mem_bytes: 8192.0 * 1024.0,
            random_page_cost: 4.0,
            seq_page_cost: 1.0,
            cpu_tuple_cost: 0.01,
            cpu_index_tuple_cost: 0.005,
            cpu_operator_cost: 0.0025,
            effective_cache_pages: 524_288.0,
            enable_seqscan: true,
            enable_indexscan: true,
            enable_indexonlyscan: true,
            enable_bitmapscan: true,
            enable_hashjoin: true,
            enable_mergejoin: true,
            enable_nestloop: true,
            enable_hashagg: true,
            enable_sort: true,
            enable_tidscan: true,
            enable_incremental_sort: true,
            enable_presorted_aggregate: true,
            enable_material: true,
            cursor_tuple_fraction: 0.0,
        }
    }
}

/// A statement ready to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it does.
    pub command: Command,
    /// The top node; its columns are exactly the statement's output (RETURNING's for DML).
    pub root: PlanNode,
    /// Sub-plans, referred to by `Expr::SubPlan`.
    pub sub_plans: Vec<SubPlan>,
    /// CTEs kept in a store, referred to by [`NodeKind::CteScan`].
    pub ctes: Vec<CtePlan>,
    /// How many executor parameters there are.
    pub exec_params: usize,
    /// The output columns.
    pub output: Vec<OutputColumn>,
    /// Relations used, with the privileges needed on them.
    pub relations: Vec<RelationUse>,
    /// The tables whose sizes the planner went by, with their pages of then.
    pub sizes: Vec<(Arc<Table>, u32)>,
    /// Parameters' values would have told the planner much: a plan made for them may be of another order.
    pub by_values: bool,
    /// What has constants only and still no value: it fails in the session, or has one only there.
    pub left_over: Vec<Expr>,
    /// For printing: alias and column names of each range-table entry.
    pub names: Vec<(String, Vec<String>)>,
}

/// An output column.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeRef,
    /// Table and column it comes from unchanged, or (0, 0).
    pub origin: (u32, i32),
}

/// A relation that the plan touches.
#[derive(Clone, Debug)]
pub struct RelationUse {
    /// The relation.
    pub table: Arc<Table>,
    /// Privileges needed (bits: 1 SELECT, 2 INSERT, 4 UPDATE, 8 DELETE).
    pub privileges: u32,
    /// The columns that it is about, if that is known.
    pub used: Option<Box<UsedColumns>>,
    /// Whose, or 0 for the current user.
    pub check_as: u32,
    /// It is written, or its rows are locked.
    pub target: bool,
}

/// A sub-plan in an expression.
#[derive(Debug, Clone)]
pub struct SubPlan {
    /// What the expression makes of its rows.
    pub kind: SubLinkKind,
    /// The plan.
    pub node: PlanNode,
    /// Exec parameters it reads that outer levels set.
    pub depends: Vec<usize>,
    /// Evaluate once and keep the result while `depends` do not change.
    pub cache: bool,
    /// For ANY without correlation: build a hash of the rows; the expressions are the test's
    /// left sides (outer row), with the type compared.
    pub hash: Option<Vec<(Expr, Oid)>>,
    /// The element type, for ARRAY.
    pub ty: TypeRef,
    /// What is planned only when it is first run: `node` stands for nothing then.
    pub later: Option<Box<LaterPlan>>,
    /// For EXISTS that compares its rows with the outer row for equality alone.
    pub gathered: Option<GatheredRows>,
}

/// A sub-select that is seldom run, without references to the levels around but through exec parameters.
#[derive(Debug, Clone)]
pub struct LaterPlan {
    query: Query,
    settings: PlannerSettings,
}

impl LaterPlan {
    /// Plans it; `exec_params` are what the statement around has.
    ///
    /// # Errors
    /// As [`plan_query`].
    pub(crate) fn plan(
        &self,
        catalog: &dyn CatalogView,
        env: &dyn types::Env,
        exec_params: usize,
    ) -> Result<Plan> {
        prep::plan_within(self.query.clone(), catalog, &self.settings, env, exec_params)
    }
}

/// A CTE kept in a store.
#[derive(Debug, Clone)]
pub struct CtePlan {
    /// Its name.
    pub name: String,
    /// The plan (for a recursive one a [`NodeKind::RecursiveUnion`]).
    pub node: PlanNode,
    /// It changes data: run to the end even if nobody reads.
    pub modifies: bool,
}

/// A node of the plan.
#[derive(Debug, Clone)]
pub struct PlanNode {
    /// What it does.
    pub kind: NodeKind,
    /// What each output column is, for printing (variables numbered across the statement).
    pub columns: Vec<Expr>,
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost before the first row.
    pub startup_cost: f64,
    /// Estimated cost of all rows.
    pub total_cost: f64,
    /// Estimated width in bytes.
    pub width: i32,
}

impl PlanNode {
    /// Inputs, outer first.
    pub fn children(&self) -> Vec<&PlanNode> {
        match &self.kind {
            NodeKind::Filter { input, .. }
            | NodeKind::Project { input, .. }
            | NodeKind::ProjectSet { input, .. }
            | NodeKind::Sort { input, .. }
            | NodeKind::Aggregate { input, .. }
            | NodeKind::Window { input, .. }
            | NodeKind::Unique { input, .. }
            | NodeKind::Limit { input, .. }
            | NodeKind::LockRows { input, .. }
            | NodeKind::Materialize { input }
            | NodeKind::SubqueryScan { input, .. }
            | NodeKind::CteScope { input, .. } => vec![input],
            NodeKind::NestLoop { left, right, .. }
            | NodeKind::HashJoin { left, right, .. }
            | NodeKind::MergeJoin { left, right, .. }
            | NodeKind::SetOp { left, right, .. }
            | NodeKind::RecursiveUnion { left, right, .. } => vec![left, right],
            NodeKind::Append { inputs } | NodeKind::MergeAppend { inputs, .. } => {
                inputs.iter().collect()
            }
            NodeKind::Modify(m) => m.input.iter().collect(),
            NodeKind::Result { .. }
            | NodeKind::SeqScan(_)
            | NodeKind::SampleScan { .. }
            | NodeKind::IndexScan { .. }
            | NodeKind::BitmapScan { .. }
            | NodeKind::TidScan { .. }
            | NodeKind::TidRangeScan { .. }
            | NodeKind::FunctionScan { .. }
            | NodeKind::ValuesScan { .. }
            | NodeKind::CteScan { .. }
            | NodeKind::WorkTableScan { .. } => Vec::new(),
        }
    }
}

/// The scan of a node that reads a table; by reference as `kind` is.
macro_rules! table_scan {
    ($kind:expr) => {
        match $kind {
            NodeKind::SeqScan(scan)
            | NodeKind::SampleScan { scan, .. }
            | NodeKind::IndexScan { scan, .. }
            | NodeKind::BitmapScan { scan, .. }
            | NodeKind::TidScan { scan, .. }
            | NodeKind::TidRangeScan { scan, .. } => Some(scan),
            _ => None,
        }
    };
}

impl NodeKind {
    /// What it reads of a table, by whichever way; None if it reads none.
    pub fn table_scan(&self) -> Option<&TableScan> {
        table_scan!(self)
    }

    /// The same, to be changed.
    pub fn table_scan_mut(&mut self) -> Option<&mut TableScan> {
        table_scan!(self)
    }
}

/// Where a scan of a range of addresses begins or ends.
#[derive(Debug, Clone)]
pub struct TidBound {
    /// It begins there.
    pub lower: bool,
    /// With the address itself.
    pub inclusive: bool,
    /// The address.
    pub value: Expr,
}

/// What every scan of a table has.
#[derive(Debug, Clone)]
pub struct TableScan {
    /// The table.
    pub table: Arc<Table>,
    /// Which of [`Plan::names`] it is.
    pub rte: usize,
    /// Its name in the query.
    pub alias: String,
    /// Columns that the scan's row consists of (negative: system columns).
    pub columns: Vec<i32>,
    /// Conditions over that row.
    pub filter: Option<Expr>,
}

/// One condition that an index evaluates.
#[derive(Debug, Clone)]
pub struct IndexKey {
    /// Index column from 0.
    pub column: usize,
    /// What.
    pub op: IndexOp,
    /// The value compared with, over no row (constants, parameters, exec parameters).
    pub value: Option<Expr>,
    /// Of a row comparison, `(a, b) > (1, 2)`: the value that the next index column is compared with where this one is equal.
    pub then: Option<Expr>,
    /// The condition as written (for printing).
    pub printed: Expr,
}

/// What an index can evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOp {
    /// `=`
    Eq,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `= ANY (array)`
    Any,
    /// IS NULL
    IsNull,
    /// IS NOT NULL
    IsNotNull,
}

/// One sort key over the input row.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSortKey {
    /// Over the input's slots.
    pub expr: Expr,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// How an aggregate groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "as EXPLAIN calls them")]
pub enum AggregateStrategy {
    Plain,
    Sorted,
    Hashed,
}

/// One equality of a hash or merge join.
#[derive(Debug, Clone)]
pub struct JoinKey {
    /// Over the left input.
    pub left: Expr,
    /// Over the right input.
    pub right: Expr,
    /// `pg_proc.oid` of `=`.
    pub function: u32,
    /// For merge joins: both inputs are in descending order.
    pub descending: bool,
    /// For merge joins: NULLs come first.
    pub nulls_first: bool,
    /// NULLs match each other (IS NOT DISTINCT FROM; set operations).
    pub nulls_match: bool,
}

/// The side of an outer join that becomes NULLs in a row for which `on` does not hold.
#[derive(Clone, Debug)]
pub struct PaddedSide {
    /// The condition.
    pub on: Expr,
    /// The side's columns.
    pub slots: Vec<usize>,
}

/// A row mark as executed.
#[derive(Debug, Clone)]
pub struct PlanRowMark {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in the query.
    pub alias: String,
    /// Slot of its `ctid`.
    pub tid_slot: usize,
    /// Columns of the table that the row holds: (slot, column).
    pub slots: Vec<(usize, i32)>,
    /// Strength.
    pub strength: LockStrength,
    /// What to do about locked rows.
    pub wait: LockWait,
}

/// What a node does.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields say it")]
pub enum NodeKind {
    /// One row of expressions (none if `filter` is false).
    Result {
        exprs: Vec<Expr>,
        filter: Option<Expr>,
    },
    SeqScan(TableScan),
    /// TABLESAMPLE
    SampleScan {
        scan: TableScan,
        sample: Box<TableSample>,
        /// As EXPLAIN shows it.
        told: Box<TableSample>,
    },
    IndexScan {
        scan: TableScan,
        index: Arc<Index>,
        keys: Vec<IndexKey>,
        backward: bool,
        /// Take values from the index where the visibility map allows.
        index_only: bool,
    },
    /// Union of index scans' TIDs, sorted, then the heap; the filter holds all conditions.
    BitmapScan {
        scan: TableScan,
        arms: Vec<(Arc<Index>, Vec<IndexKey>)>,
    },
    /// `ctid = …` or `ctid = ANY(…)`
    TidScan {
        scan: TableScan,
        tids: Expr,
        /// The condition as EXPLAIN shows it.
        printed: Expr,
    },
    /// What lies between bounds of `ctid`; the filter holds the other conditions.
    TidRangeScan {
        scan: TableScan,
        bounds: Vec<TidBound>,
        /// The conditions on `ctid` as EXPLAIN shows them.
        printed: Option<Expr>,
    },
    FunctionScan {
        calls: Vec<FunctionInFrom>,
        ordinality: bool,
        alias: String,
        column_types: Vec<TypeRef>,
    },
    ValuesScan {
        rows: Vec<Vec<Expr>>,
        alias: String,
    },
    CteScan {
        cte: usize,
        alias: String,
        name: String,
    },
    WorkTableScan {
        cte: usize,
        alias: String,
        name: String,
    },
    SubqueryScan {
        input: Box<PlanNode>,
        alias: String,
    },
    Filter {
        input: Box<PlanNode>,
        filter: Expr,
    },
    Project {
        input: Box<PlanNode>,
        exprs: Vec<Expr>,
    },
    /// Projection with set-returning functions.
    ProjectSet {
        input: Box<PlanNode>,
        exprs: Vec<Expr>,
    },
    NestLoop {
        kind: JoinKind,
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        /// Exec parameters set from the left row.
        params: Vec<(usize, Expr)>,
        /// Join condition over left ++ right.
        on: Option<Expr>,
        /// Condition after the join.
        filter: Option<Expr>,
        /// Slots of left ++ right that are output.
        output: Vec<usize>,
    },
    HashJoin {
        kind: JoinKind,
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        keys: Vec<JoinKey>,
        on: Option<Expr>,
        filter: Option<Expr>,
        output: Vec<usize>,
    },
    MergeJoin {
        kind: JoinKind,
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        keys: Vec<JoinKey>,
        on: Option<Expr>,
        filter: Option<Expr>,
        output: Vec<usize>,
    },
    Sort {
        input: Box<PlanNode>,
        keys: Vec<PlanSortKey>,
        /// The input is in the order of so many of the keys already.
        presorted: usize,
    },
    /// Output: grouping expressions, then aggregates, then GROUPING() bit sets.
    Aggregate {
        input: Box<PlanNode>,
        strategy: AggregateStrategy,
        groups: Vec<Expr>,
        /// Indexes into `groups`; one set with all for a plain GROUP BY.
        sets: Vec<Vec<usize>>,
        calls: Vec<PlannedCall>,
        /// GROUPING() calls.
        grouping: Vec<Vec<usize>>,
        filter: Option<Expr>,
    },
    /// Output: the input's columns, then the calls. The input is sorted by partition and order.
    Window {
        input: Box<PlanNode>,
        partition: Vec<Expr>,
        order: Vec<PlanSortKey>,
        frame: WindowFrame,
        calls: Vec<WindowCall>,
        /// For printing.
        name: String,
        /// A condition on row numbers and ranks after which a partition has no more rows to give, over the output's columns.
        run: Option<Expr>,
    },
    /// Neighbouring equal rows become one; `keys` are slots.
    Unique {
        input: Box<PlanNode>,
        keys: Vec<usize>,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        /// The order in which both sides come, of all columns, as slots; empty: in none.
        order: Vec<PlanSortKey>,
    },
    Append {
        inputs: Vec<PlanNode>,
    },
    /// The inputs are each in the order of the keys, which are slots.
    MergeAppend {
        inputs: Vec<PlanNode>,
        keys: Vec<PlanSortKey>,
    },
    RecursiveUnion {
        cte: usize,
        all: bool,
        left: Box<PlanNode>,
        right: Box<PlanNode>,
    },
    Limit {
        input: Box<PlanNode>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// WITH TIES: the order.
        ties: Vec<PlanSortKey>,
        with_ties: bool,
    },
    /// Locks rows. On newer versions the outer joins' conditions are re-checked, innermost first, then `recheck`.
    LockRows {
        input: Box<PlanNode>,
        marks: Vec<PlanRowMark>,
        outer: Vec<PaddedSide>,
        recheck: Option<Expr>,
    },
    Materialize {
        input: Box<PlanNode>,
    },
    /// Resets these CTEs when it is started again.
    CteScope {
        input: Box<PlanNode>,
        ctes: Vec<usize>,
    },
    Modify(Box<Modify>),
}

/// INSERT, UPDATE, DELETE, MERGE.
#[derive(Debug, Clone)]
pub struct Modify {
    /// Which.
    pub command: Command,
    /// The target.
    pub table: Arc<Table>,
    /// Its name in the query.
    pub alias: String,
    /// The rows: for INSERT one value for every live column in table order; for UPDATE, DELETE and
    /// MERGE the join's columns. None for INSERT of one row given by `row`.
    pub input: Option<PlanNode>,
    /// INSERT of one row: its values, evaluated without an input.
    pub row: Vec<Expr>,
    /// UPDATE: (column, value over the input row).
    pub assignments: Vec<(i32, Expr)>,
    /// UPDATE, DELETE, MERGE: slot of the target's `ctid`.
    pub tid_slot: usize,
    /// UPDATE, DELETE, MERGE: (slot, column) of the target in the input row.
    pub old_slots: Vec<(usize, i32)>,
    /// UPDATE, DELETE: conditions to hold on a newer version, over the input row. MERGE: without them there is no such row.
    pub recheck: Option<Expr>,
    /// Over (INSERT) the table's columns, (UPDATE, DELETE, MERGE) the input row with the target's columns
    /// replaced by the new ones.
    pub returning: Vec<Expr>,
    /// RETURNING sees the old row and the new one behind that, each with its system columns.
    pub images: bool,
    /// ON CONFLICT; expressions over the table's columns, then `excluded`'s.
    pub on_conflict: Option<PlanOnConflict>,
    /// MERGE; RETURNING sees the action's name behind everything else.
    pub merge: Option<PlanMerge>,
    /// What views ask of the new row (conditions over the table's columns), and their names.
    pub view_checks: Vec<(String, Expr)>,
    /// The columns that the statement names values for.
    pub named: Vec<i32>,
    /// UPDATE: the plan of columns changed touches a key that others may refer to.
    pub key_columns_changed: bool,
}

/// ON CONFLICT as executed.
#[derive(Debug, Clone)]
pub struct PlanOnConflict {
    /// As analysed.
    pub source: OnConflict,
    /// DO UPDATE: (column, value over table row ++ excluded row).
    pub update: Option<Vec<(i32, Expr)>>,
    /// DO UPDATE … WHERE
    pub filter: Option<Expr>,
}

/// MERGE as executed; expressions over the input row.
#[derive(Debug, Clone)]
pub struct PlanMerge {
    /// The join's condition.
    pub on: Expr,
    /// Not NULL in rows that the source takes part in; None: it does in all.
    pub source: Option<Expr>,
    /// WHEN …, in order.
    pub clauses: Vec<PlanMergeClause>,
}

/// A clause of MERGE.
#[derive(Debug, Clone)]
pub struct PlanMergeClause {
    /// Which rows it is for.
    pub when: MergeWhen,
    /// AND …
    pub condition: Option<Expr>,
    /// THEN …
    pub action: PlanMergeAction,
}

/// What a clause of MERGE does.
#[derive(Debug, Clone)]
pub enum PlanMergeAction {
    /// UPDATE: (column, value).
    Update(Vec<(i32, Expr)>),
    /// DELETE
    Delete,
    /// INSERT: one value for every live column in table order.
    Insert(Vec<Expr>),
    /// DO NOTHING
    Nothing,
}

/// Plans a statement.
///
/// # Errors
/// `0A000` for what is not there yet, catalog I/O.
pub fn plan_query(
    query: Query,
    catalog: &dyn CatalogView,
    settings: &PlannerSettings,
    env: &dyn types::Env,
    params: &[Datum],
) -> Result<Plan> {
    let query = if params.is_empty() { query } else { with_values(query, params) };
    prep::plan_statement(query, catalog, settings, env)
}

/// The query with the parameters' values in their places.
fn with_values(mut query: Query, params: &[Datum]) -> Query {
    query_walk::visit(&mut query, 0, &mut |e: &mut Expr, _: u32| {
        if let Expr::Param { number, ty } = e
            && let Some(value) = (*number as usize).checked_sub(1).and_then(|n| params.get(n))
        {
            *e = Expr::Const(expr::Constant { ty: *ty, value: value.clone() });
        }
        false
    });
    query
}
