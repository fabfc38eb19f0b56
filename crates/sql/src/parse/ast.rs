//! The syntax tree of queries and expressions, as written: no names resolved, no types known.
//!
//! # Invariants
//! A [`Loc`] is a byte offset into the whole source string the statement was parsed from.
#![allow(missing_docs, reason = "the fields are named after the SQL they hold")]

use crate::query::{FrameExclude, FrameMode, JoinKind, LockStrength, LockWait, SetOp};
use expr::SqlValueFunction;
use expr::json::{JsonBehaviour, JsonConstructor, JsonFinder, JsonWrapper};

/// A byte offset into the source text; [`NO_LOC`] when unknown.
pub type Loc = u32;
/// No location.
pub const NO_LOC: Loc = u32::MAX;

/// `[catalog.][schema.]name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub catalog: Option<String>,
    pub schema: Option<String>,
    pub name: String,
    pub loc: Loc,
}

impl ObjectName {
    /// A bare name.
    pub fn bare(name: impl Into<String>) -> ObjectName {
        ObjectName { catalog: None, schema: None, name: name.into(), loc: NO_LOC }
    }
}

impl std::fmt::Display for ObjectName {
    /// As PostgreSQL names it in messages: dots, no quotes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(c) = &self.catalog {
            write!(f, "{c}.")?;
        }
        if let Some(s) = &self.schema {
            write!(f, "{s}.")?;
        }
        f.write_str(&self.name)
    }
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeName {
    /// `pg_catalog, int4` or `myschema, t` or `text`.
    pub names: Vec<String>,
    pub modifiers: Vec<Expr>,
    /// The interval's field mask or the like, when the syntax fixes the modifier.
    pub fixed_typmod: Option<i32>,
    pub array_dims: usize,
    pub setof: bool,
    /// `table.column%TYPE`
    pub percent_type: bool,
    pub loc: Loc,
}

/// An operator: a schema if written `OPERATOR(s.op)`, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpName {
    pub schema: Option<String>,
    pub name: String,
}

/// An expression and where it stands (of an operator expression: where the operator stands).
#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub loc: Loc,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LikeKind {
    Like,
    ILike,
    Similar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonKind {
    Value,
    Object,
    Array,
    Scalar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsTest {
    Null,
    True,
    False,
    Unknown,
    Document,
    Json {
        kind: JsonKind,
        unique_keys: bool,
    },
    /// `IS NFC NORMALIZED`: in which form.
    Normalized(&'static str),
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `a`, `t.a`, `s.t.a`, `d.s.t.a`
    Column(Vec<String>),
    /// `*`, `t.*`, `s.t.*`
    Star(Vec<String>),
    Param(u32),
    Null,
    Bool(bool),
    /// Decimal text (other bases already converted).
    Number(String),
    String(String),
    /// `B'101'`, `X'1F'`
    BitString {
        hex: bool,
        digits: String,
    },
    Unary {
        op: OpName,
        arg: Box<Expr>,
    },
    Binary {
        op: OpName,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Is {
        arg: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    IsDistinct {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    Between {
        arg: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
        symmetric: bool,
    },
    In {
        arg: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InSelect {
        arg: Box<Expr>,
        query: Box<Select>,
        negated: bool,
    },
    Like {
        kind: LikeKind,
        arg: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    /// `x op ANY (array)`
    AnyArray {
        left: Box<Expr>,
        op: OpName,
        any: bool,
        right: Box<Expr>,
    },
    /// `x op ANY (SELECT …)`
    AnySelect {
        left: Box<Expr>,
        op: OpName,
        any: bool,
        query: Box<Select>,
    },
    Exists(Box<Select>),
    Subquery(Box<Select>),
    ArraySelect(Box<Select>),
    Array(Vec<Expr>),
    Row {
        fields: Vec<Expr>,
        explicit: bool,
    },
    Cast {
        arg: Box<Expr>,
        ty: Box<TypeName>,
    },
    Collate {
        arg: Box<Expr>,
        name: Vec<String>,
    },
    Case {
        operand: Option<Box<Expr>>,
        arms: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Coalesce(Vec<Expr>),
    NullIf(Box<Expr>, Box<Expr>),
    MinMax {
        greatest: bool,
        args: Vec<Expr>,
    },
    Call(Box<FuncCall>),
    Json(Box<JsonCall>),
    SqlValue {
        kind: SqlValueFunction,
        precision: Option<i32>,
    },
    Subscript {
        arg: Box<Expr>,
        indexes: Vec<SubscriptIndex>,
    },
    Field {
        arg: Box<Expr>,
        name: String,
    },
    FieldStar(Box<Expr>),
    Default,
    Grouping(Vec<Expr>),
    CurrentOf(String),
}

#[derive(Clone, Debug)]
pub struct SubscriptIndex {
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
    pub slice: bool,
}

#[derive(Clone, Debug)]
pub struct FuncCall {
    pub name: Vec<String>,
    pub args: Vec<FuncArg>,
    pub star: bool,
    pub distinct: bool,
    pub variadic: bool,
    pub order_by: Vec<SortBy>,
    pub within_group: bool,
    pub filter: Option<Box<Expr>>,
    pub over: Option<Over>,
    /// Written in SQL's own syntax (EXTRACT and friends).
    pub sql_syntax: bool,
}

impl FuncCall {
    /// A call with nothing but its arguments.
    pub fn plain(name: Vec<String>, args: Vec<FuncArg>) -> FuncCall {
        FuncCall {
            name,
            args,
            star: false,
            distinct: false,
            variadic: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
            sql_syntax: false,
        }
    }
}

/// A value with FORMAT JSON behind it, or not.
#[derive(Clone, Debug)]
pub struct JsonArg {
    pub value: Expr,
    pub format: bool,
}

/// `RETURNING type [FORMAT JSON]`
#[derive(Clone, Debug)]
pub struct JsonReturning {
    pub ty: TypeName,
    pub format: bool,
}

/// An expression of SQL/JSON.
#[derive(Clone, Debug)]
pub enum JsonCall {
    /// JSON(), JSON_SCALAR(), JSON_SERIALIZE(), JSON_OBJECT(), JSON_ARRAY()
    Make {
        what: JsonConstructor,
        /// Of an object keys and values in turn.
        args: Vec<JsonArg>,
        absent: bool,
        unique: bool,
        returning: Option<JsonReturning>,
    },
    /// `JSON_ARRAY(SELECT …)`
    ArraySelect { query: Box<Select>, format: bool, returning: Option<JsonReturning> },
    /// JSON_OBJECTAGG(), JSON_ARRAYAGG()
    Aggregate {
        what: JsonConstructor,
        args: Vec<JsonArg>,
        absent: bool,
        unique: bool,
        returning: Option<JsonReturning>,
        order_by: Vec<SortBy>,
        filter: Option<Box<Expr>>,
        over: Option<Over>,
    },
    /// JSON_TABLE()
    Table(Box<JsonTable>),
    /// JSON_EXISTS(), JSON_QUERY(), JSON_VALUE()
    Find {
        what: JsonFinder,
        value: JsonArg,
        path: Expr,
        passing: Vec<(JsonArg, String)>,
        returning: Option<JsonReturning>,
        wrapper: JsonWrapper,
        /// OMIT QUOTES or KEEP QUOTES, if either is said.
        omit_quotes: Option<bool>,
        on_empty: Option<JsonAnswer>,
        on_error: Option<JsonAnswer>,
    },
}

/// JSON_TABLE()
#[derive(Clone, Debug)]
pub struct JsonTable {
    pub value: JsonArg,
    pub rows: JsonTableRows,
    pub passing: Vec<(JsonArg, String)>,
    pub on_error: Option<JsonAnswer>,
}

/// A path of JSON_TABLE(), and the columns of what it finds.
#[derive(Clone, Debug)]
pub struct JsonTableRows {
    pub path: Expr,
    pub name: Option<String>,
    pub items: Vec<JsonTableItem>,
}

#[derive(Clone, Debug)]
pub enum JsonTableItem {
    Ordinality { name: String, loc: Loc },
    Column(Box<JsonTableColumn>),
    Nested(JsonTableRows),
}

#[derive(Clone, Debug)]
pub struct JsonTableColumn {
    pub name: String,
    pub ty: TypeName,
    pub exists: bool,
    pub format: bool,
    pub path: Option<Expr>,
    pub wrapper: Option<JsonWrapper>,
    pub omit_quotes: Option<bool>,
    pub on_empty: Option<JsonAnswer>,
    pub on_error: Option<JsonAnswer>,
    pub loc: Loc,
}

/// What ON EMPTY or ON ERROR says.
#[derive(Clone, Debug)]
pub enum JsonAnswer {
    Default(Box<Expr>),
    Plain(JsonBehaviour, Loc),
}

#[derive(Clone, Debug)]
pub struct FuncArg {
    pub name: Option<String>,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub enum Over {
    Name(String, Loc),
    Spec(WindowSpec),
}

#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// The window it is based on.
    pub base: Option<String>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortBy>,
    pub frame: Option<Frame>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub mode: FrameMode,
    pub start: Bound,
    pub end: Option<Bound>,
    pub exclude: FrameExclude,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub enum Bound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

#[derive(Clone, Debug)]
pub struct SortBy {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: Option<bool>,
    pub using: Option<OpName>,
}

/// SELECT, VALUES or a set operation, with what may stand round it.
#[derive(Clone, Debug)]
pub struct Select {
    pub with: Option<With>,
    pub body: SelectBody,
    pub order_by: Vec<SortBy>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    pub with_ties: bool,
    pub locking: Vec<Locking>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub enum SelectBody {
    Core(Box<SelectCore>),
    Values(Vec<Vec<Expr>>),
    SetOp { op: SetOp, all: bool, left: Box<Select>, right: Box<Select>, loc: Loc },
}

#[derive(Clone, Debug)]
pub enum DistinctClause {
    No,
    All,
    On(Vec<Expr>),
}

#[derive(Clone, Debug)]
pub struct SelectCore {
    pub distinct: DistinctClause,
    pub targets: Vec<Target>,
    pub into: Option<Box<IntoClause>>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<GroupItem>,
    pub group_distinct: bool,
    pub having: Option<Expr>,
    pub windows: Vec<(String, WindowSpec)>,
}

/// SELECT … INTO
#[derive(Clone, Debug)]
pub struct IntoClause {
    pub name: ObjectName,
    pub temporary: bool,
    pub unlogged: bool,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub expr: Expr,
    pub alias: Option<String>,
}

#[derive(Clone, Debug)]
pub enum GroupItem {
    Expr(Expr),
    Empty,
    Rollup(Vec<Expr>),
    Cube(Vec<Expr>),
    Sets(Vec<GroupItem>),
}

#[derive(Clone, Debug)]
pub struct Alias {
    pub name: String,
    pub columns: Vec<String>,
}

/// `AS t(a int, b text)`
#[derive(Clone, Debug)]
pub struct ColumnDefinition {
    pub name: String,
    pub ty: TypeName,
}

/// `TABLESAMPLE method (arguments) REPEATABLE (seed)`
#[derive(Clone, Debug)]
pub struct Sample {
    pub method: Vec<String>,
    pub loc: Loc,
    pub arguments: Vec<Expr>,
    pub seed: Option<Expr>,
}

#[derive(Clone, Debug)]
pub enum TableRef {
    Table {
        name: ObjectName,
        only: bool,
        alias: Option<Alias>,
        sample: Option<Box<Sample>>,
    },
    Subquery {
        query: Box<Select>,
        lateral: bool,
        alias: Option<Alias>,
        loc: Loc,
    },
    Function {
        calls: Vec<(Expr, Vec<ColumnDefinition>)>,
        rows_from: bool,
        ordinality: bool,
        lateral: bool,
        alias: Option<Alias>,
        columns: Vec<ColumnDefinition>,
        loc: Loc,
    },
    Join {
        kind: JoinKind,
        left: Box<TableRef>,
        right: Box<TableRef>,
        condition: JoinCondition,
        alias: Option<Alias>,
        loc: Loc,
    },
}

#[derive(Clone, Debug)]
pub enum JoinCondition {
    Cross,
    On(Box<Expr>),
    Using(Vec<(String, Loc)>, Option<String>),
    Natural,
}

#[derive(Clone, Debug)]
pub struct Locking {
    pub strength: LockStrength,
    pub tables: Vec<ObjectName>,
    pub wait: LockWait,
}

#[derive(Clone, Debug)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<CteDefinition>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub struct CteDefinition {
    pub name: String,
    pub columns: Vec<String>,
    pub materialized: Option<bool>,
    pub statement: Box<QueryStatement>,
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
    pub loc: Loc,
}

/// SEARCH … FIRST BY … SET …
#[derive(Clone, Debug)]
pub struct Search {
    pub breadth_first: bool,
    pub columns: Vec<String>,
    pub sequence: String,
    pub loc: Loc,
}

/// CYCLE … SET … [TO … DEFAULT …] USING …
#[derive(Clone, Debug)]
pub struct Cycle {
    pub columns: Vec<String>,
    pub mark: String,
    pub value: Option<Expr>,
    pub default: Option<Expr>,
    pub path: String,
    pub loc: Loc,
}

/// A statement that is analysed into a [`crate::query::Query`].
#[derive(Clone, Debug)]
pub enum QueryStatement {
    Select(Select),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
}

impl QueryStatement {
    /// It is a SELECT with statements in its WITH that change rows.
    pub fn modifies_in_with(&self) -> bool {
        let QueryStatement::Select(select) = self else { return false };
        let mut ctes = select.with.iter().flat_map(|w| &w.ctes);
        ctes.any(|c| !matches!(*c.statement, QueryStatement::Select(_)))
    }
}

#[derive(Clone, Debug)]
pub struct Insert {
    pub with: Option<With>,
    pub table: ObjectName,
    pub alias: Option<String>,
    pub columns: Vec<AssignTarget>,
    /// Some(true): OVERRIDING SYSTEM VALUE; Some(false): USER.
    pub overriding_system: Option<bool>,
    /// None: DEFAULT VALUES.
    pub source: Option<Select>,
    pub on_conflict: Option<Conflict>,
    pub returning: Returning,
}

/// RETURNING; without targets there is none.
#[derive(Clone, Debug, Default)]
pub struct Returning {
    /// WITH (OLD AS …, NEW AS …)
    pub names: Vec<ReturningName>,
    pub targets: Vec<Target>,
}

/// What OLD or NEW is called in RETURNING.
#[derive(Clone, Debug)]
pub struct ReturningName {
    pub new: bool,
    pub name: String,
    pub loc: Loc,
}

/// `a`, `a[1]`, `a.f` on the left of an assignment.
#[derive(Clone, Debug)]
pub struct AssignTarget {
    pub column: String,
    pub indirection: Vec<Indirection>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub enum Indirection {
    Field(String),
    /// `.*`, the last: all fields at once, which nothing can be assigned to.
    Star,
    Index(SubscriptIndex),
}

#[derive(Clone, Debug)]
pub struct Conflict {
    pub target: ConflictTarget,
    /// None: DO NOTHING.
    pub update: Option<Vec<SetClause>>,
    pub filter: Option<Expr>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub enum ConflictTarget {
    None,
    Constraint(String, Loc),
    Columns { elements: Vec<IndexElement>, filter: Option<Expr>, loc: Loc },
}

/// A column or expression of an index, or of ON CONFLICT.
#[derive(Clone, Debug)]
pub struct IndexElement {
    /// A plain column; else `expr`.
    pub column: Option<String>,
    pub expr: Option<Expr>,
    pub collation: Option<Vec<String>>,
    pub opclass: Option<Vec<String>>,
    pub descending: bool,
    /// ASC or DESC was written.
    pub ordered: bool,
    pub nulls_first: Option<bool>,
    pub loc: Loc,
}

impl IndexElement {
    /// An expression, and nothing said besides.
    pub fn of(expr: Expr) -> IndexElement {
        IndexElement {
            column: None,
            loc: expr.loc,
            expr: Some(expr),
            collation: None,
            opclass: None,
            descending: false,
            ordered: false,
            nulls_first: None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum SetClause {
    Single { target: AssignTarget, value: Expr },
    Multi { targets: Vec<AssignTarget>, value: Expr },
}

#[derive(Clone, Debug)]
pub struct Update {
    pub with: Option<With>,
    pub table: ObjectName,
    pub only: bool,
    pub alias: Option<Alias>,
    pub set: Vec<SetClause>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub returning: Returning,
}

#[derive(Clone, Debug)]
pub struct Delete {
    pub with: Option<With>,
    pub table: ObjectName,
    pub only: bool,
    pub alias: Option<Alias>,
    pub using: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub returning: Returning,
}

#[derive(Clone, Debug)]
pub struct Merge {
    pub with: Option<With>,
    pub table: ObjectName,
    pub only: bool,
    pub alias: Option<Alias>,
    pub source: TableRef,
    pub on: Expr,
    pub whens: Vec<MergeWhen>,
    pub returning: Returning,
}

/// WHEN [NOT] MATCHED … THEN …
#[derive(Clone, Debug)]
pub struct MergeWhen {
    pub when: crate::query::MergeWhen,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

#[derive(Clone, Debug)]
pub enum MergeAction {
    Update(Vec<SetClause>),
    Delete,
    /// Without WITH, ON CONFLICT and RETURNING; one row of VALUES, or DEFAULT VALUES.
    Insert(Box<Insert>),
    Nothing,
}
