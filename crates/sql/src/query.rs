//! The analysed statement: what the analyser makes and the planner takes.
//!
//! # Layout
//! One [`Query`] per SELECT-like level. Columns are [`Expr::Var`]s into `range_table`; sub-selects in
//! expressions are numbered into `sub_selects`. Everything is self-contained (OIDs, no pointers), so
//! that a view is stored as its serialised `Query`.

use base::Oid;
use expr::tree::SortKey;
use expr::{Expr, TypeRef};
use serde::{Deserialize, Serialize};

/// What a query does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum Command {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

/// One query level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// What it does.
    pub command: Command,
    /// WITH, in order; referred to by [`RteKind::Cte`].
    pub ctes: Vec<Cte>,
    /// RECURSIVE was written (printing).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive_with: bool,
    /// Everything that columns can come from. For INSERT/UPDATE/DELETE the target is `result_rte`.
    pub range_table: Vec<RangeTableEntry>,
    /// The target of INSERT/UPDATE/DELETE.
    pub result_rte: Option<usize>,
    /// FROM (comma list); for UPDATE/DELETE it begins with the target itself.
    pub from: Vec<FromItem>,
    /// WHERE
    pub filter: Option<Expr>,
    /// The output. INSERT: one entry per target column *in table order* (all live columns, defaults
    /// filled in), over the source; UPDATE: the assigned columns only, `target_column` set.
    pub targets: Vec<TargetEntry>,
    /// GROUP BY: grouping sets over `group_exprs`; empty with `has_aggregates` is one group.
    pub group_exprs: Vec<Expr>,
    /// Each grouping set lists indexes of `group_exprs`; a plain GROUP BY has one set with all.
    pub grouping_sets: Vec<Vec<usize>>,
    /// GROUP BY as it was written, if there are grouping sets of any kind in it (printing).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_items: Vec<GroupingItem>,
    /// GROUP BY DISTINCT (printing)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group_distinct: bool,
    /// HAVING
    pub having: Option<Expr>,
    /// WINDOW definitions, deduplicated.
    pub windows: Vec<WindowDefinition>,
    /// DISTINCT
    pub distinct: Distinct,
    /// ORDER BY. Its expressions are over the same inputs as `targets` (for set operations: over
    /// [`Expr::Slot`]s of the output).
    pub order_by: Vec<SortKey>,
    /// LIMIT (int8)
    pub limit: Option<Expr>,
    /// FETCH FIRST … WITH TIES
    pub limit_with_ties: bool,
    /// OFFSET (int8)
    pub offset: Option<Expr>,
    /// FOR UPDATE and friends.
    pub row_marks: Vec<RowMark>,
    /// UNION, INTERSECT, EXCEPT: a tree over sub-query range-table entries; `targets` then names
    /// the output columns as `Var`s of the leftmost leaf with the common types.
    pub set_operation: Option<SetOperation>,
    /// Sub-selects in expressions, by number.
    pub sub_selects: Vec<Query>,
    /// The planner's: conditions that joins have taken the place of, to be asked of a newer version of a row.
    #[serde(skip)]
    pub rechecks: Vec<Expr>,
    /// The planner's: conditions of the query around on what the last window gives, by which it stops.
    #[serde(skip)]
    pub run_conditions: Vec<Expr>,
    /// Indexes of the primary keys by which columns stand outside aggregates that are not grouped by: a view depends on those keys.
    #[serde(skip)]
    pub keys_relied_on: Vec<Oid>,
    /// What the visible outputs of the whole statement are said to be of, if there is a domain, or array of one, among that.
    #[serde(skip)]
    pub declared: Vec<TypeRef>,
    /// RETURNING
    pub returning: Vec<TargetEntry>,
    /// ON CONFLICT
    pub on_conflict: Option<OnConflict>,
    /// MERGE
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Box<Merge>>,
    /// The entries that stand for OLD and NEW in RETURNING, if it names one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<(usize, usize)>,
    /// WITH CHECK OPTION of the views written through, innermost first: the order in which they are asked.
    #[serde(skip)]
    pub view_checks: Vec<ViewCheck>,
    /// The target's columns that the statement names values for: errors show them to those who may not read the table.
    #[serde(skip)]
    pub named: Vec<i32>,
    /// INSERT … OVERRIDING SYSTEM VALUE and the like were checked by the analyser.
    /// Aggregates are present (or HAVING, or GROUP BY).
    pub has_aggregates: bool,
    /// Window functions are present.
    pub has_windows: bool,
    /// Set-returning functions are in the target list.
    pub has_target_srfs: bool,
}

impl Query {
    /// Outputs that were said to be of a domain are of its base.
    pub fn plain_outputs(&mut self) {
        for t in self.targets.iter_mut().chain(&mut self.returning) {
            let e = std::mem::replace(&mut t.expr, Expr::And(Vec::new()));
            t.expr = e.plain();
        }
    }

    /// The visible outputs' types: what they are said to be of.
    pub fn output_types(&self) -> Vec<TypeRef> {
        if !self.declared.is_empty() {
            return self.declared.clone();
        }
        let outputs = match self.command {
            Command::Select => &self.targets,
            _ => &self.returning,
        };
        outputs.iter().filter(|t| !t.hidden).map(|t| t.expr.ty()).collect()
    }

    /// Ends the analysis of a whole statement: notes what its outputs are said to be of, if a domain is among that; from here on there
    /// are none in it but those that values are checked by.
    pub fn settle_outputs(&mut self) {
        let types = self.output_types();
        if types.iter().any(|t| t.base() != *t) {
            self.declared = types;
        }
        self.plain();
    }

    fn plain(&mut self) {
        self.plain_outputs();
        for rte in &mut self.range_table {
            rte.column_types.iter_mut().for_each(|t| *t = t.base());
            if let RteKind::Subquery { query, .. } = &mut rte.kind {
                query.plain();
            }
        }
        for cte in &mut self.ctes {
            cte.types.iter_mut().for_each(|t| *t = t.base());
            cte.query.plain();
        }
        self.sub_selects.iter_mut().for_each(Query::plain);
    }
}

impl Query {
    /// Does a query of its WITH write?
    pub fn modifies_in_with(&self) -> bool {
        self.ctes.iter().any(|c| c.query.command != Command::Select)
    }
}

/// What a view asks of a row that is written through it.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewCheck {
    /// The view's name.
    pub view: String,
    /// Its condition, over the target; None of a view that takes all rows.
    pub condition: Option<Expr>,
    /// The views below it are asked too.
    pub cascaded: bool,
}

/// One output column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetEntry {
    /// The value.
    pub expr: Expr,
    /// Its name.
    pub name: String,
    /// INSERT/UPDATE: the target's column number (from 1).
    pub target_column: Option<i32>,
    /// The table and column it comes from unchanged (row description), or (0, 0).
    pub origin: (u32, i32),
    /// Not output (sort helper).
    pub hidden: bool,
}

/// A WITH query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cte {
    /// Its name.
    pub name: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Column types.
    pub types: Vec<TypeRef>,
    /// The query. When `recursive`, a set operation UNION [ALL] whose right side reads the CTE.
    pub query: Box<Query>,
    /// Refers to itself.
    pub recursive: bool,
    /// MATERIALIZED (Some(true)) or NOT MATERIALIZED (Some(false)).
    pub materialized: Option<bool>,
    /// How often it is referred to.
    pub references: usize,
    /// SEARCH; its column, and those of CYCLE, are the last of `columns`, and none of `query`'s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// CYCLE
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
}

/// SEARCH … FIRST BY columns SET sequence
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// BREADTH rather than DEPTH.
    pub breadth_first: bool,
    /// BY …
    pub columns: Vec<String>,
    /// SET …
    pub sequence: String,
}

/// CYCLE columns SET mark TO value DEFAULT default USING path
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// What tells rows apart.
    pub columns: Vec<String>,
    /// SET …
    pub mark: String,
    /// TO …
    pub value: Expr,
    /// DEFAULT …
    pub default: Expr,
    /// `mark <> value` of the mark that [`Expr::CaseTestValue`] stands for.
    pub goes_on: Expr,
    /// USING …
    pub path: String,
}

/// Something columns come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeTableEntry {
    /// What it is.
    pub kind: RteKind,
    /// Its name in the query: alias, else the relation's name.
    pub alias: String,
    /// An alias was written (printing).
    pub has_alias: bool,
    /// So many of its columns were given names with the alias (printing).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub column_aliases: usize,
    /// Column names, aliases applied; dropped columns have an empty name.
    pub column_names: Vec<String>,
    /// Column types.
    pub column_types: Vec<TypeRef>,
    /// Privileges needed on it (bits: 1 SELECT, 2 INSERT, 4 UPDATE, 8 DELETE), checked at execution.
    pub required_privileges: u32,
    /// The columns that it is about. None: not known, as of views from before that was noted, and privileges on columns do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Box<UsedColumns>>,
    /// Whose privileges are checked (a view's owner), 0 the current user.
    pub check_as: u32,
    /// LATERAL: may refer to entries on its left.
    pub lateral: bool,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Columns of a relation (0: the whole row), of each of which a privilege on it does where there is none on the relation. Where
/// none is named one on any column does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedColumns {
    /// Those read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<i32>,
    /// Those that INSERT names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inserted: Vec<i32>,
    /// Those that SET names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updated: Vec<i32>,
}

impl UsedColumns {
    /// These are read, and nothing is written.
    pub(crate) fn reading(columns: &[i32]) -> UsedColumns {
        UsedColumns { read: columns.to_vec(), ..UsedColumns::default() }
    }

    /// Adds columns to a list, once.
    pub(crate) fn add(list: &mut Vec<i32>, columns: impl IntoIterator<Item = i32>) {
        for column in columns {
            if !list.contains(&column) {
                list.push(column);
            }
        }
    }
}

impl RangeTableEntry {
    /// Notes columns that are read.
    pub(crate) fn reads(&mut self, columns: impl IntoIterator<Item = i32>) {
        if let Some(used) = &mut self.used {
            UsedColumns::add(&mut used.read, columns);
        }
    }

    /// The table or view whose row type its rows have.
    pub(crate) fn described_by(&self) -> Option<u32> {
        match self.kind {
            RteKind::Relation { oid, .. } => Some(oid),
            RteKind::Subquery { view, .. } if view != 0 => Some(view),
            _ => None,
        }
    }
}

/// What a range-table entry is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RteKind {
    /// A table, catalog, or virtual table; column numbers are attnums (dropped ones included).
    Relation {
        /// `pg_class.oid`
        oid: u32,
        /// ONLY
        only: bool,
        /// TABLESAMPLE
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample: Option<Box<TableSample>>,
    },
    /// A sub-select in FROM, or a view expanded in place.
    Subquery {
        /// The query.
        query: Box<Query>,
        /// The view it was, for privileges and printing, or 0.
        view: u32,
    },
    /// A WITH query: `levels_up` levels out, index into that level's `ctes`.
    Cte {
        /// Query levels up.
        levels_up: u32,
        /// Index into `ctes`.
        index: usize,
        /// The reference inside a recursive CTE's own query.
        self_reference: bool,
    },
    /// Functions in FROM (ROWS FROM has several).
    Function {
        /// Calls; each yields one column or several.
        calls: Vec<FunctionInFrom>,
        /// WITH ORDINALITY (a last int8 column).
        ordinality: bool,
    },
    /// VALUES lists.
    Values {
        /// Rows of expressions.
        rows: Vec<Vec<Expr>>,
    },
    /// A join, so that merged USING columns and whole-join aliases have a home. `vars[i]` is what
    /// column i+1 stands for (a Var of an input, or COALESCE of two for FULL JOIN USING).
    Join {
        /// Meaning of each column.
        vars: Vec<Expr>,
        /// LEFT, RIGHT … of the join.
        kind: JoinKind,
    },
    /// `excluded` in ON CONFLICT DO UPDATE: columns are those of the target.
    Excluded,
}

/// TABLESAMPLE
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSample {
    /// How rows are chosen.
    pub method: SampleMethod,
    /// The percentage (real).
    pub percent: Expr,
    /// REPEATABLE (double precision)
    pub seed: Option<Expr>,
}

impl TableSample {
    /// Its expressions.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        std::iter::once(&mut self.percent).chain(&mut self.seed)
    }
}

/// How TABLESAMPLE chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SampleMethod {
    /// Whole pages.
    System,
    /// Rows.
    Bernoulli,
}

impl SampleMethod {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SampleMethod::System => "system",
            SampleMethod::Bernoulli => "bernoulli",
        }
    }
}

/// A function call in FROM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionInFrom {
    /// The call: [`Expr::Call`] (set-returning or not), or [`Expr::SqlValue`].
    pub call: Expr,
    /// Columns it yields.
    pub columns: usize,
}

/// An element of FROM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromItem {
    /// A range-table entry.
    Rte(usize),
    /// A join of two.
    Join(Box<Join>),
}

/// A join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// How.
    pub kind: JoinKind,
    /// Left input.
    pub left: FromItem,
    /// Right input.
    pub right: FromItem,
    /// ON, or USING and NATURAL spelt out; None for CROSS.
    pub on: Option<Expr>,
    /// The join's own range-table entry.
    pub rte: usize,
    /// USING columns (printing).
    pub using: Vec<String>,
    /// The alias that USING gives them (printing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub using_alias: Option<String>,
}

/// Kinds of join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Planner's: rows of left with a match.
    Semi,
    /// Planner's: rows of left without a match.
    Anti,
    /// Planner's: rows of right without a match.
    RightAnti,
    /// Planner's: rows of right with a match.
    RightSemi,
}

/// DISTINCT
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distinct {
    /// None.
    No,
    /// DISTINCT
    All,
    /// DISTINCT ON
    On(Vec<Expr>),
}

/// An element of GROUP BY; expressions are indexes into [`Query::group_exprs`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GroupingItem {
    /// One expression, a list in parentheses, or `()`.
    Set(Vec<usize>),
    /// ROLLUP
    Rollup(Vec<Vec<usize>>),
    /// CUBE
    Cube(Vec<Vec<usize>>),
    /// GROUPING SETS
    Sets(Vec<GroupingItem>),
}

/// WINDOW
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowDefinition {
    /// Its name, if any (printing).
    pub name: Option<String>,
    /// The window that it is based on (printing): PARTITION BY is that one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// ORDER BY is that of `base`, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered_as_base: bool,
    /// PARTITION BY
    pub partition_by: Vec<Expr>,
    /// ORDER BY
    pub order_by: Vec<SortKey>,
    /// The frame.
    pub frame: WindowFrame,
}

/// A window frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFrame {
    /// ROWS, RANGE or GROUPS.
    pub mode: FrameMode,
    /// Start.
    pub start: FrameBound,
    /// End.
    pub end: FrameBound,
    /// EXCLUDE
    pub exclude: FrameExclude,
    /// The frame was written (printing).
    pub explicit: bool,
    /// It was written without BETWEEN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// ROWS, RANGE, GROUPS
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum FrameMode {
    Rows,
    Range,
    Groups,
}

/// A frame's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// EXCLUDE
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum FrameExclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// FOR UPDATE …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowMark {
    /// Range-table entry locked.
    pub rte: usize,
    /// Strength.
    pub strength: LockStrength,
    /// What to do about locked rows.
    pub wait: LockWait,
    /// A query around asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pushed: bool,
}

/// FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE, FOR KEY SHARE
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// NOWAIT, SKIP LOCKED
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum LockWait {
    Block,
    NoWait,
    SkipLocked,
}

impl LockWait {
    /// Which of two clauses prevails: NOWAIT over SKIP LOCKED, that over waiting.
    pub fn firmer(self, other: LockWait) -> LockWait {
        match (self, other) {
            (LockWait::NoWait, _) | (_, LockWait::NoWait) => LockWait::NoWait,
            (LockWait::SkipLocked, _) | (_, LockWait::SkipLocked) => LockWait::SkipLocked,
            _ => LockWait::Block,
        }
    }
}

/// UNION, INTERSECT, EXCEPT
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SetOperation {
    /// A sub-query range-table entry.
    Leaf(usize),
    /// Two sides.
    Node {
        /// Which.
        op: SetOp,
        /// ALL
        all: bool,
        /// Left.
        left: Box<SetOperation>,
        /// Right.
        right: Box<SetOperation>,
        /// Common types of the columns; leaves whose types differ were given casts.
        types: Vec<TypeRef>,
        /// What its columns become for the set operation around it, over [`Expr::Slot`]s; empty: they stay as they are. Which of its rows
        /// are equal is for its own types to say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        given_as: Vec<Expr>,
    },
}

/// Which set operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

/// ON CONFLICT
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnConflict {
    /// The unique indexes that arbitrate (`pg_class.oid`s); empty: any (DO NOTHING only).
    pub arbiters: Vec<u32>,
    /// DO UPDATE's assignments (`target_column` set), over the target and `excluded`; None: DO NOTHING.
    pub update: Option<Vec<TargetEntry>>,
    /// DO UPDATE … WHERE
    pub filter: Option<Expr>,
    /// The `excluded` range-table entry.
    pub excluded_rte: Option<usize>,
}

/// MERGE: FROM is the join of the target and the source, of the kind that its clauses ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Merge {
    /// The join's condition, to be asked again of a newer version of the target's row.
    pub on: Expr,
    /// Not NULL in rows that the source takes part in; None: it does in all.
    pub source: Option<Expr>,
    /// The entry whose only column is what merge_action() gives; it stands in no FROM.
    pub action_rte: usize,
    /// WHEN …, in order.
    pub clauses: Vec<MergeClause>,
}

/// WHEN … [AND condition] THEN action
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeClause {
    /// Which rows it is for.
    pub when: MergeWhen,
    /// AND …
    pub condition: Option<Expr>,
    /// THEN …
    pub action: MergeAction,
}

/// Which rows of the join a clause of MERGE is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum MergeWhen {
    Matched,
    NotMatchedBySource,
    NotMatchedByTarget,
}

/// What a clause of MERGE does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MergeAction {
    /// UPDATE: as [`Query::targets`] of one.
    Update(Vec<TargetEntry>),
    /// DELETE
    Delete,
    /// INSERT: as [`Query::targets`] of one.
    Insert(Vec<TargetEntry>),
    /// DO NOTHING
    Nothing,
}

impl Merge {
    /// Every expression in it.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let clauses = self.clauses.iter_mut().flat_map(|c| {
            let targets: &mut [TargetEntry] = match &mut c.action {
                MergeAction::Update(list) | MergeAction::Insert(list) => list,
                MergeAction::Delete | MergeAction::Nothing => &mut [],
            };
            c.condition.iter_mut().chain(targets.iter_mut().map(|t| &mut t.expr))
        });
        std::iter::once(&mut self.on).chain(&mut self.source).chain(clauses)
    }
}
