//! The expression tree.
//!
//! # Layout
//! Everything in it is self-contained and serialisable: functions, operators and types by OID,
//! constants by type and text form, so that a stored tree survives renames and restarts.

use base::Oid;
use serde::{Deserialize, Serialize};
use types::Datum;

/// A type with its modifier (-1: none).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypeRef {
    /// The type.
    pub oid: Oid,
    /// `atttypmod`
    pub typmod: i32,
}

/// A constant of known type.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its type.
    pub ty: TypeRef,
    /// Its value.
    pub value: Datum,
}

impl PartialEq for Constant {
    /// The same type and the identical value (not merely an equal one).
    fn eq(&self, other: &Constant) -> bool {
        self.ty == other.ty && crate::ops::identical(&self.value, &other.value)
    }
}

/// `IS [NOT] TRUE | FALSE | UNKNOWN`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum BoolTestKind {
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
    IsUnknown,
    IsNotUnknown,
}

/// One arm of CASE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseWhen {
    /// The condition (already `operand = value` for a simple CASE, over [`Expr::CaseTestValue`]).
    pub when: Expr,
    /// The result.
    pub then: Expr,
}

/// Functions that are written without parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the SQL")]
pub enum SqlValueFunction {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentUser,
    SessionUser,
    CurrentRole,
    CurrentCatalog,
    CurrentSchema,
}

/// What a sub-select in an expression means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SubLinkKind {
    /// `EXISTS (…)`
    Exists,
    /// `(SELECT one column)` as a value; more than one row is 21000.
    Scalar,
    /// `x op ANY (…)`, IN
    Any,
    /// `x op ALL (…)`, NOT IN as `<> ALL`
    All,
    /// `ARRAY(SELECT …)`
    Array,
    /// A row-valued sub-select (multi-column assignment, row comparison).
    Row,
}

/// An aggregate call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregateCall {
    /// `pg_proc.oid`
    pub function: u32,
    /// Its arguments (direct arguments first for ordered-set aggregates).
    pub args: Vec<Expr>,
    /// The arguments' types.
    pub arg_types: Vec<TypeRef>,
    /// The result's type.
    pub ty: TypeRef,
    /// `count(*)`
    pub star: bool,
    /// DISTINCT
    pub distinct: bool,
    /// ORDER BY inside the call, or WITHIN GROUP's.
    pub order_by: Vec<SortKey>,
    /// FILTER
    pub filter: Option<Box<Expr>>,
    /// How many of `args` are direct (ordered-set aggregates).
    pub direct_args: usize,
    /// Query levels up that the aggregate belongs to (0: this query). The sub-selects in it are numbered there.
    pub levels_up: u32,
}

/// A window function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowCall {
    /// `pg_proc.oid`: a window function or an aggregate.
    pub function: u32,
    /// Arguments.
    pub args: Vec<Expr>,
    /// The arguments' types.
    pub arg_types: Vec<TypeRef>,
    /// The result's type.
    pub ty: TypeRef,
    /// FILTER
    pub filter: Option<Box<Expr>>,
    /// `count(*)`
    pub star: bool,
    /// Index into the query's windows.
    pub window: usize,
}

/// One sort key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortKey {
    /// What to sort by.
    pub expr: Expr,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A constant.
    Const(Constant),
    /// A column of a range-table entry, as the analyser sees it.
    Var {
        /// Query levels up (0: this query).
        levels_up: u32,
        /// Index into that query's range table. Stored expressions of a table use 0.
        rte: usize,
        /// Column number from 1; 0 the whole row; negative: system columns (-1 ctid, -2 xmin, -3
        /// cmin, -4 xmax, -5 cmax, -6 tableoid).
        column: i32,
        /// Its type.
        ty: TypeRef,
    },
    /// A column of the executor's input row, as the planner leaves it.
    Slot {
        /// Position in the row.
        index: usize,
        /// Its type.
        ty: TypeRef,
    },
    /// `$n`, from 1.
    Param {
        /// n
        number: u32,
        /// Its type.
        ty: TypeRef,
    },
    /// A value that an enclosing plan node sets at run time (correlated sub-selects).
    ExecParam {
        /// Index into the executor's parameters.
        index: usize,
        /// Its type.
        ty: TypeRef,
    },
    /// A function call; operators and casts by function become this too.
    Call {
        /// `pg_proc.oid`
        function: u32,
        /// Arguments, already coerced; a VARIADIC tail already made an array.
        args: Vec<Expr>,
        /// The arguments' types; one more, "any", when the last argument is an array that was
        /// given as VARIADIC to a function of VARIADIC "any": its elements are the arguments.
        arg_types: Vec<TypeRef>,
        /// The result's type.
        ty: TypeRef,
        /// The operator it was written as (`pg_operator.oid`), or 0.
        operator: u32,
        /// How to print it.
        form: CallForm,
    },
    /// `a op ANY|ALL (array)`
    ScalarArrayOp {
        /// `pg_proc.oid` of the operator's function.
        function: u32,
        /// `pg_operator.oid`
        operator: u32,
        /// ANY rather than ALL.
        any: bool,
        /// The left operand.
        left: Box<Expr>,
        /// The array.
        array: Box<Expr>,
    },
    /// AND of two or more.
    And(Vec<Expr>),
    /// OR of two or more.
    Or(Vec<Expr>),
    /// NOT
    Not(Box<Expr>),
    /// IS [NOT] NULL (row-wise for records).
    IsNull {
        /// The operand.
        arg: Box<Expr>,
        /// IS NOT NULL
        negated: bool,
    },
    /// IS [NOT] TRUE and so on.
    BoolTest {
        /// The operand.
        arg: Box<Expr>,
        /// Which.
        kind: BoolTestKind,
    },
    /// `a IS [NOT] DISTINCT FROM b`, by the type's `=` function.
    Distinct {
        /// `pg_proc.oid` of `=`.
        function: u32,
        /// `pg_operator.oid` of `=`.
        operator: u32,
        /// Left.
        left: Box<Expr>,
        /// Right.
        right: Box<Expr>,
        /// IS NOT DISTINCT FROM
        negated: bool,
    },
    /// NULLIF
    NullIf {
        /// `pg_proc.oid` of `=`.
        function: u32,
        /// `pg_operator.oid` of `=`.
        operator: u32,
        /// Left.
        left: Box<Expr>,
        /// Right.
        right: Box<Expr>,
        /// The result's type.
        ty: TypeRef,
    },
    /// CASE
    Case {
        /// The operand of a simple CASE: evaluated once, seen as [`Expr::CaseTestValue`].
        operand: Option<Box<Expr>>,
        /// Arms.
        arms: Vec<CaseWhen>,
        /// ELSE
        otherwise: Option<Box<Expr>>,
        /// The result's type.
        ty: TypeRef,
    },
    /// The operand of the enclosing simple CASE.
    CaseTestValue(TypeRef),
    /// COALESCE
    Coalesce {
        /// Arguments.
        args: Vec<Expr>,
        /// The result's type.
        ty: TypeRef,
    },
    /// GREATEST or LEAST
    MinMax {
        /// GREATEST
        greatest: bool,
        /// Arguments.
        args: Vec<Expr>,
        /// The result's type.
        ty: TypeRef,
    },
    /// ARRAY[…]
    Array {
        /// Elements (arrays themselves when `multidim`).
        elements: Vec<Expr>,
        /// The element type.
        element_type: TypeRef,
        /// Elements are arrays to be stacked.
        multidim: bool,
        /// The array's type.
        ty: TypeRef,
    },
    /// ROW(…)
    Row {
        /// Fields.
        fields: Vec<Expr>,
        /// Field names.
        names: Vec<String>,
        /// record, or a table's row type.
        ty: TypeRef,
    },
    /// Row comparison `(a, b) < (c, d)`.
    RowCompare {
        /// One of `<`, `<=`, `>`, `>=` (`=` and `<>` become AND/OR).
        op: RowCompareOp,
        /// `pg_operator.oid` per column.
        operators: Vec<u32>,
        /// Left fields.
        left: Vec<Expr>,
        /// Right fields.
        right: Vec<Expr>,
    },
    /// `(row).field`
    Field {
        /// The row.
        arg: Box<Expr>,
        /// Field index from 0.
        index: usize,
        /// Its name, for printing.
        name: String,
        /// The field's type.
        ty: TypeRef,
    },
    /// The row with another value in one field (the left of an assignment); of no row one that has NULL in all others.
    FieldStore {
        /// The row.
        arg: Box<Expr>,
        /// Field index from 0.
        index: usize,
        /// What is put there: [`Expr::CaseTestValue`] in an assignment to a part of the field is what the field was.
        value: Box<Expr>,
        /// The names of all fields.
        names: Vec<String>,
        /// Their types.
        types: Vec<TypeRef>,
        /// The row's type.
        ty: TypeRef,
    },
    /// `array[i]`, `array[a:b]`
    Subscript {
        /// The array (or jsonb).
        arg: Box<Expr>,
        /// Each dimension: lower (slices only) and upper.
        indexes: Vec<(Option<Expr>, Option<Expr>)>,
        /// A slice.
        slice: bool,
        /// What is put there: the value is then the whole array, changed (the left of an assignment).
        /// [`Expr::CaseTestValue`] in an assignment to a part of the element is what the element was.
        assign: Option<Box<Expr>>,
        /// The result's type.
        ty: TypeRef,
    },
    /// Cast through text output and input.
    CoerceViaIo {
        /// The operand.
        arg: Box<Expr>,
        /// To.
        ty: TypeRef,
        /// Written by the user (printing).
        explicit: bool,
    },
    /// Cast that changes no bytes.
    Relabel {
        /// The operand.
        arg: Box<Expr>,
        /// To.
        ty: TypeRef,
        /// Written by the user (printing).
        explicit: bool,
    },
    /// Cast to a domain, or an array of one: the operand, which is of the base type, unless it is none of the domain's values. The
    /// value is still of the base type; [`Expr::declared`] says what it is called.
    CoerceToDomain {
        /// The operand.
        arg: Box<Expr>,
        /// The domain, or array of one.
        domain: u32,
        /// The base type.
        ty: TypeRef,
        /// Written by the user (printing).
        explicit: bool,
    },
    /// Element-wise array cast: `element` is over [`Expr::CaseTestValue`].
    ArrayCoerce {
        /// The array.
        arg: Box<Expr>,
        /// The element's conversion.
        element: Box<Expr>,
        /// To.
        ty: TypeRef,
    },
    /// SQL/JSON's own expressions.
    Json(Box<crate::json::JsonExpr>),
    /// COLLATE
    Collate {
        /// The operand.
        arg: Box<Expr>,
        /// `pg_collation.oid`
        collation: u32,
    },
    /// current_date and the like.
    SqlValue {
        /// Which.
        kind: SqlValueFunction,
        /// The type, with precision.
        ty: TypeRef,
    },
    /// An aggregate, in a target list or HAVING.
    Aggregate(Box<AggregateCall>),
    /// A window function.
    Window(Box<WindowCall>),
    /// `GROUPING(…)`: indexes into the query's grouping expressions.
    Grouping(Vec<usize>),
    /// A sub-select.
    SubLink {
        /// What it means.
        kind: SubLinkKind,
        /// Index into the query's sub-selects.
        subquery: usize,
        /// For ANY/ALL: the comparison, over [`Expr::SubLinkColumn`]s.
        test: Option<Box<Expr>>,
        /// The result's type.
        ty: TypeRef,
    },
    /// In a SubLink's `test`: column `index` (from 0) of the sub-select's row.
    SubLinkColumn {
        /// Column from 0.
        index: usize,
        /// Its type.
        ty: TypeRef,
    },
    /// After planning: a sub-plan of the statement, by number.
    SubPlan {
        /// What it means.
        kind: SubLinkKind,
        /// Index into the plan's sub-plans.
        plan: usize,
        /// For ANY/ALL: the comparison.
        test: Option<Box<Expr>>,
        /// Values to hand down: (exec parameter, expression over the outer row).
        args: Vec<(usize, Expr)>,
        /// The result's type.
        ty: TypeRef,
    },
    /// The address of the row on which a cursor stands (`WHERE CURRENT OF`, as `ctid = …`).
    CurrentOf {
        /// The cursor's name.
        cursor: String,
        /// Or the number of the parameter whose value that is; 0: none.
        parameter: u32,
        /// `pg_class.oid` of the table changed.
        table: u32,
    },
    /// DEFAULT in VALUES or SET, replaced by the analyser's rewrite.
    Default(TypeRef),
    /// `nextval` of an identity or serial column's sequence, by OID.
    NextValue {
        /// The sequence.
        sequence: u32,
        /// The column's type.
        ty: TypeRef,
    },
}

/// The comparison of a row comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the operators")]
pub enum RowCompareOp {
    Lt,
    Le,
    Gt,
    Ge,
}

/// How a call was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallForm {
    /// `f(x)`
    Function,
    /// An operator.
    Operator,
    /// `x::type` or `CAST(x AS type)`
    ExplicitCast,
    /// A cast nobody wrote.
    ImplicitCast,
    /// SQL syntax (`EXTRACT`, `SUBSTRING … FROM`, `AT TIME ZONE`, …)
    SqlSyntax,
}

impl TypeRef {
    /// `oid` without a modifier.
    pub const fn of(oid: Oid) -> TypeRef {
        TypeRef { oid, typmod: -1 }
    }
    /// The type that values have: a domain's base, or the type itself.
    #[inline]
    pub fn base(self) -> TypeRef {
        types::domains::base(self.oid).map_or(self, |(oid, typmod)| TypeRef { oid, typmod })
    }
}

impl Serialize for TypeRef {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        (self.oid.0, self.typmod).serialize(s)
    }
}

impl<'de> Deserialize<'de> for TypeRef {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let (oid, typmod) = <(u32, i32)>::deserialize(d)?;
        Ok(TypeRef { oid: Oid(oid), typmod })
    }
}

impl Serialize for Constant {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let text = if self.value.is_null() {
            None
        } else {
            Some(constant_text(self).map_err(serde::ser::Error::custom)?)
        };
        (self.ty, text).serialize(s)
    }
}

impl<'de> Deserialize<'de> for Constant {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let (ty, text) = <(TypeRef, Option<String>)>::deserialize(d)?;
        let value = match text {
            None => Datum::Null,
            Some(text) => constant_value(ty, &text).map_err(serde::de::Error::custom)?,
        };
        Ok(Constant { ty, value })
    }
}

/// Rows say of themselves what they consist of in the form that pages have; their text needs a catalog to be read.
fn constant_text(constant: &Constant) -> base::Result<String> {
    let (ty, mut out) = (constant.ty.oid, String::new());
    if types::row_types::row_of(ty).is_some() {
        let mut bytes = Vec::new();
        types::encode(ty, &constant.value, &mut bytes)?;
        types::text::bytea_output(&bytes, false, &mut out);
    } else {
        types::text_output(ty, &constant.value, &types::env::PlainEnv, &mut out)?;
    }
    Ok(out)
}

fn constant_value(ty: TypeRef, text: &str) -> base::Result<Datum> {
    if types::row_types::row_of(ty.oid).is_some() {
        return types::decode(ty.oid, &types::text::bytea_input(text)?);
    }
    types::text_input(ty.oid, -1, text, &types::env::PlainEnv)
}
