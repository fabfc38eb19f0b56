//! Compiled expressions.
//!
//! # Purpose
//! [`Code`] is what the executor runs: a tree with functions resolved to pointers and the common
//! integer, text and boolean cases turned into nodes of their own.
//!
//! # Invariants
//! A `Code` is immutable and `Send + Sync`; everything that changes during evaluation is in the
//! [`EvalContext`](crate::eval::EvalContext).

use crate::any_of::AnyOf;
use crate::eval::EvalContext;
use crate::tree::{BoolTestKind, Expr, RowCompareOp, SqlValueFunction, SubLinkKind, TypeRef};
use base::{FactMap, Oid, Result, bail, err};
use std::sync::{Arc, OnceLock};
use types::datum::{RecordColumn, RecordValue};
use types::registry::{self, ScalarFn};
use types::{Ctype, Datum, FunctionBody, LikePattern, Text, oids};

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after the operators")]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// Whether an ordering satisfies it.
    #[inline(always)]
    pub fn holds(self, o: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Eq => o.is_eq(),
            CompareOp::Ne => o.is_ne(),
            CompareOp::Lt => o.is_lt(),
            CompareOp::Le => o.is_le(),
            CompareOp::Gt => o.is_gt(),
            CompareOp::Ge => o.is_ge(),
        }
    }
}

/// Arithmetic on integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after the operators")]
pub enum ArithOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

/// Which representation arithmetic yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after the types")]
pub enum IntWidth {
    Int2,
    Int4,
    Int8,
}

/// A function as compiled.
#[derive(Clone, Copy)]
pub enum Callee {
    /// Types do not matter.
    Plain(ScalarFn),
    /// The same, in the locale of its arguments' COLLATE.
    Collated(ScalarFn, Ctype),
    /// Told its types.
    Typed(fn(&dyn types::Env, &[Datum], &[Oid], Oid) -> Result<Datum>),
    /// Of type void: what it returns is empty, not NULL.
    Void(ScalarFn),
    /// One row, of these columns.
    Row(registry::SetFn, &'static [(&'static str, Oid)]),
}

/// A call with its types.
pub struct CallCode {
    pub(crate) callee: Callee,
    pub(crate) strict: bool,
    /// The last argument is an array whose elements are the arguments.
    pub(crate) spread: bool,
    /// A NULL for that array is an array without elements.
    pub(crate) or_none: bool,
    pub(crate) args: Box<[Code]>,
    pub(crate) arg_types: Box<[Oid]>,
    pub(crate) result: Oid,
}

/// `text LIKE pattern`, for which neither is copied.
pub struct LikeCode {
    pub(crate) negated: bool,
    pub(crate) text: Code,
    pub(crate) pattern: Code,
    /// The pattern, if it is a constant.
    pub(crate) known: Option<LikePattern>,
}

/// A row with another value in one field.
pub struct FieldStore {
    arg: Code,
    index: usize,
    value: Code,
    /// The value is made of what the field was.
    changes: bool,
    columns: Arc<[RecordColumn]>,
    ty: Oid,
}

impl FieldStore {
    pub(crate) fn eval(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        let mut fields = match self.arg.eval(row, cx)? {
            Datum::Record(r) => r.fields.clone(),
            _ => Vec::new(),
        };
        fields.resize(self.columns.len(), Datum::Null);
        let before = std::mem::take(&mut fields[self.index]);
        fields[self.index] = if self.changes {
            cx.with_test_value(before, || self.value.eval(row, cx))?
        } else {
            self.value.eval(row, cx)?
        };
        let row = RecordValue { type_oid: self.ty, columns: self.columns.clone(), fields };
        row.check_depth()?;
        Ok(Datum::Record(Arc::new(row)))
    }
}

/// A compiled expression: as [`Expr`], with functions resolved.
#[allow(missing_docs, reason = "the fields are those of Expr")]
pub enum Code {
    /// A constant.
    Const(Datum),
    /// A column of the row.
    Slot(usize),
    /// `$n`, from 0 here.
    Param(usize),
    /// Set by an enclosing plan node.
    ExecParam(usize),
    /// Innermost CASE operand or array element.
    CaseValue,
    /// Column of the sub-select's row.
    SubLinkColumn(usize),
    /// Comparison of integers, dates, timestamps, OIDs of any widths.
    IntCompare(CompareOp, Box<(Code, Code)>),
    /// `slot op constant`, the commonest filter.
    SlotConstCompare(CompareOp, usize, i64),
    /// Comparison of text by bytes.
    TextCompare(CompareOp, Box<(Code, Code)>),
    /// Comparison of float8.
    FloatCompare(CompareOp, Box<(Code, Code)>),
    /// Comparison of values of one type, in its order.
    OrderCompare(CompareOp, Oid, Box<(Code, Code)>),
    /// LIKE, or NOT LIKE.
    Like(Box<LikeCode>),
    /// Integer arithmetic.
    IntArith(ArithOp, IntWidth, Box<(Code, Code)>),
    /// Of numerics, which are boxes: those of columns are not copied for it.
    NumericArith(ArithOp, Box<(Code, Code)>),
    /// float8 arithmetic.
    FloatArith(ArithOp, Box<(Code, Code)>),
    /// A function.
    Call(Box<CallCode>),
    /// A call that looks at part of a column.
    Part(Box<crate::part::PartCode>),
    /// AND
    And(Box<[Code]>),
    /// OR
    Or(Box<[Code]>),
    /// NOT
    Not(Box<Code>),
    /// IS [NOT] NULL; `row` tests fields.
    IsNull {
        arg: Box<Code>,
        negated: bool,
    },
    /// IS [NOT] TRUE …
    BoolTest {
        arg: Box<Code>,
        kind: BoolTestKind,
    },
    /// IS [NOT] DISTINCT FROM by the call `=` over the case stack's two values.
    Distinct {
        equal: Box<CallCode>,
        negated: bool,
    },
    /// NULLIF
    NullIf(Box<CallCode>),
    /// NULLIF of a column, which is looked at twice: whether it is equal, and what it is.
    NullIfSlot(Box<(Code, usize)>),
    /// CASE
    Case {
        operand: Option<Box<Code>>,
        arms: Box<[(Code, Code)]>,
        otherwise: Option<Box<Code>>,
    },
    /// COALESCE
    Coalesce(Box<[Code]>),
    /// GREATEST, LEAST
    MinMax {
        greatest: bool,
        args: Box<[Code]>,
        ty: Oid,
    },
    /// `x op ANY (array)` by calling the operator
    ScalarArray {
        call: Box<CallCode>,
        any: bool,
    },
    /// `x op ANY (array)` by comparing
    AnyOf(Box<(crate::any_of::AnyOf, Code, Code)>),
    /// ARRAY[…]
    Array {
        elements: Box<[Code]>,
        element_type: Oid,
        multidim: bool,
    },
    /// ROW(…)
    Row {
        fields: Box<[Code]>,
        columns: Arc<[RecordColumn]>,
        ty: Oid,
    },
    /// (a, b) < (c, d)
    RowCompare {
        op: RowCompareOp,
        left: Box<[Code]>,
        right: Box<[Code]>,
        /// Of both sides of each pair.
        types: Box<[(Oid, Oid)]>,
    },
    /// (row).field
    Field {
        arg: Box<Code>,
        index: usize,
    },
    /// (row).field = …
    FieldStore(Box<FieldStore>),
    /// array[…]
    Subscript {
        arg: Box<Code>,
        indexes: Box<[(Option<Code>, Option<Code>)]>,
        slice: bool,
        /// What is put there; whether that is made of what is there.
        assign: Option<(Box<Code>, bool)>,
        ty: Oid,
    },
    /// Through text.
    ViaIo {
        arg: Box<Code>,
        from: Oid,
        to: TypeRef,
    },
    Relabel {
        arg: Box<Code>,
        to: Oid,
    },
    /// To a domain, or array of one.
    ToDomain {
        arg: Box<Code>,
        domain: Oid,
    },
    /// Element-wise.
    ArrayCoerce {
        arg: Box<Code>,
        element: Box<Code>,
        element_type: Oid,
    },
    /// current_date …
    SqlValue(SqlValueFunction, TypeRef),
    /// A sub-plan.
    SubPlan {
        kind: SubLinkKind,
        plan: usize,
        test: Option<Box<Code>>,
        args: Box<[(usize, Code)]>,
    },
    /// nextval
    NextValue(u32, Oid),
    /// SQL/JSON's own expressions.
    Json(Box<crate::json::JsonCode>),
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Code")
    }
}

/// The integer behind a value of an integer-like type.
#[inline(always)]
pub fn int_of(d: &Datum) -> Option<i64> {
    Some(match d {
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        Datum::Int2(v) => i64::from(*v),
        Datum::Date(v) => i64::from(*v),
        Datum::Timestamp(v) | Datum::TimestampTz(v) | Datum::Time(v) => *v,
        Datum::Oid(v) => i64::from(v.0),
        Datum::Bool(v) => i64::from(*v),
        Datum::Char(v) => i64::from(*v),
        _ => return None,
    })
}

fn integer(t: Oid) -> bool {
    t == oids::INT2 || t == oids::INT4 || t == oids::INT8
}

/// True if values of both types compare as the integers behind them.
fn int_like(a: Oid, b: Oid) -> bool {
    (integer(a) && integer(b))
        || (a == b
            && (a == oids::DATE
                || a == oids::TIMESTAMP
                || a == oids::TIMESTAMPTZ
                || a == oids::TIME
                || a == oids::OID
                || a == oids::BOOL
                || a == oids::CHAR))
}

/// What a function of `pg_proc` compares, if it is that of a comparison operator.
pub fn comparison(function: Oid) -> Option<(CompareOp, Oid, Oid)> {
    static MAP: OnceLock<FactMap<Oid, (CompareOp, Oid, Oid)>> = OnceLock::new();
    MAP.get_or_init(|| {
        types::facts::operators()
            .iter()
            .filter(|o| o.kind == 'b' && o.result == oids::BOOL)
            .filter_map(|o| {
                let op = match o.name {
                    "=" => CompareOp::Eq,
                    "<>" => CompareOp::Ne,
                    "<" => CompareOp::Lt,
                    "<=" => CompareOp::Le,
                    ">" => CompareOp::Gt,
                    ">=" => CompareOp::Ge,
                    _ => return None,
                };
                Some((o.function, (op, o.left, o.right)))
            })
            .collect()
    })
    .get(&function)
    .copied()
}

/// The comparison of a day with a day that says as much as that with a moment; None: a day never is a moment within one.
pub fn day_bound(op: CompareOp, moment: i64) -> Option<(CompareOp, i32)> {
    const DAY: i64 = 86_400_000_000;
    let day = match moment {
        i64::MAX => return Some((op, i32::MAX)),
        i64::MIN => return Some((op, i32::MIN)),
        moment => i32::try_from(moment.div_euclid(DAY)).ok()?,
    };
    Some(match op {
        op if moment.rem_euclid(DAY) == 0 => (op, day),
        CompareOp::Lt | CompareOp::Le => (CompareOp::Le, day),
        CompareOp::Gt | CompareOp::Ge => (CompareOp::Gt, day),
        CompareOp::Eq | CompareOp::Ne => return None,
    })
}

fn arithmetic(function: Oid) -> Option<(ArithOp, IntWidth)> {
    let fact = types::facts::proc(function)?;
    let [a, b] = fact.args else { return None };
    if !integer(*a) || !integer(*b) {
        return None;
    }
    let op = match fact.symbol.trim_start_matches("int").trim_start_matches(['2', '4', '8']) {
        "pl" => ArithOp::Add,
        "mi" => ArithOp::Sub,
        "mul" => ArithOp::Mul,
        "div" => ArithOp::Div,
        "mod" => ArithOp::Mod,
        _ => return None,
    };
    let width = match fact.result {
        oids::INT2 => IntWidth::Int2,
        oids::INT4 => IntWidth::Int4,
        oids::INT8 => IntWidth::Int8,
        _ => return None,
    };
    Some((op, width))
}

/// What a function of numerics does, if it is one of the four that calculate.
fn numeric_arithmetic(function: Oid) -> Option<ArithOp> {
    Some(match types::facts::proc(function)?.symbol {
        "numeric_add" => ArithOp::Add,
        "numeric_sub" => ArithOp::Sub,
        "numeric_mul" => ArithOp::Mul,
        "numeric_div" => ArithOp::Div,
        _ => return None,
    })
}

/// A loop rather than an iterator, whose frames a build without optimisation has on the stack for each level of the expression.
fn all(exprs: &[Expr]) -> Result<Box<[Code]>> {
    let mut list = Vec::with_capacity(exprs.len());
    for e in exprs {
        list.push(compile(e)?);
    }
    Ok(list.into_boxed_slice())
}

fn boxed(e: &Expr) -> Result<Box<Code>> {
    Ok(Box::new(compile(e)?))
}

fn call(function: u32, args: Box<[Code]>, arg_types: &[TypeRef], ty: TypeRef) -> Result<CallCode> {
    let info = registry::function(Oid(function)).ok_or_else(|| {
        let name = types::facts::proc(Oid(function)).map_or("?", |p| p.name);
        base::Error::unsupported(format!("function {name} (OID {function})"))
    })?;
    let callee = match info.body {
        FunctionBody::Scalar(f) if info.result == oids::VOID => Callee::Void(f),
        FunctionBody::Scalar(f) => Callee::Plain(f),
        FunctionBody::ScalarTyped(f) => Callee::Typed(f),
        FunctionBody::Set(f) if !info.returns_set() => Callee::Row(f, info.columns),
        FunctionBody::Set(_) => bail!(
            FEATURE_NOT_SUPPORTED,
            "set-valued function called in context that cannot accept a set"
        ),
        FunctionBody::Aggregate(_) | FunctionBody::Window => {
            bail!(INTERNAL_ERROR, "function {} called as a scalar function", info.name)
        }
    };
    Ok(CallCode {
        callee,
        strict: info.strict,
        spread: arg_types.len() > args.len(),
        or_none: info.name == "format",
        args,
        arg_types: arg_types.iter().map(|t| t.oid).collect(),
        result: ty.oid,
    })
}

/// What a COLLATE among a call's arguments says that letters are, if the function asks.
fn asked_ctype(function: u32, args: &[Expr]) -> Option<Ctype> {
    let fact = types::facts::proc(Oid(function))?;
    if !types::ctype::is_asked_by(fact.symbol) {
        return None;
    }
    let mut collation = None;
    for arg in args {
        arg.walk(&mut |e| {
            if let Expr::Collate { collation: c, .. } = e {
                collation.get_or_insert(*c);
            }
        });
    }
    Ctype::of_collation(collation?)
}

/// Of a function that is LIKE, or NOT LIKE (true).
fn like_negated(symbol: &str) -> Option<bool> {
    match symbol {
        "textlike" | "namelike" => Some(false),
        "textnlike" | "namenlike" => Some(true),
        _ => None,
    }
}

fn text_like(t: Oid) -> bool {
    t == oids::TEXT || t == oids::VARCHAR || t == oids::NAME
}

/// Types whose operators compare by their B-tree order: a call, and a copy of the values for it, costs more than that.
const ORDERED: [Oid; 9] = [
    oids::TID,
    oids::NUMERIC,
    oids::INTERVAL,
    oids::BYTEA,
    oids::UUID,
    oids::BPCHAR,
    oids::FLOAT4,
    oids::TIMETZ,
    oids::ANYENUM,
];

/// The type by whose order values of two types compare, if the operators do not have to be called for it.
pub(crate) fn comparable(a: Oid, b: Oid) -> Option<Oid> {
    match (a, b) {
        (a, b) if int_like(a, b) => Some(oids::INT8),
        (a, b) if text_like(a) && text_like(b) => Some(oids::TEXT),
        (a, b) if a == b && (a == oids::FLOAT8 || ORDERED.contains(&a)) => Some(a),
        _ => None,
    }
}

fn compile_comparison(op: CompareOp, a: Oid, b: Oid, args: &[Expr]) -> Result<Option<Code>> {
    let [l, r] = args else { return Ok(None) };
    if int_like(a, b) {
        let (l, r) = (compile(l)?, compile(r)?);
        if let (Code::Slot(i), Code::Const(c)) = (&l, &r)
            && let Some(v) = int_of(c)
        {
            return Ok(Some(Code::SlotConstCompare(op, *i, v)));
        }
        return Ok(Some(Code::IntCompare(op, Box::new((l, r)))));
    }
    if let (oids::DATE, oids::TIMESTAMP, Expr::Const(c)) = (a, b, r)
        && let Datum::Timestamp(moment) = c.value
        && let Some((op, day)) = day_bound(op, moment)
    {
        let day = Datum::Date(day);
        return Ok(Some(match compile(l)? {
            Code::Slot(i) => Code::SlotConstCompare(op, i, int_of(&day).unwrap_or(0)),
            l => Code::IntCompare(op, Box::new((l, Code::Const(day)))),
        }));
    }
    if text_like(a) && text_like(b) {
        return Ok(Some(Code::TextCompare(op, Box::new((compile(l)?, compile(r)?)))));
    }
    if a == oids::FLOAT8 && b == oids::FLOAT8 {
        return Ok(Some(Code::FloatCompare(op, Box::new((compile(l)?, compile(r)?)))));
    }
    if a == b && ORDERED.contains(&a) {
        return Ok(Some(Code::OrderCompare(op, a, Box::new((compile(l)?, compile(r)?)))));
    }
    Ok(None)
}

fn compile_null_if(function: u32, left: &Expr, right: &Expr) -> Result<Code> {
    if let (Some((op, a, b)), Expr::Slot { index, .. }) = (comparison(Oid(function)), left)
        && let Some(equal) = compile_comparison(op, a, b, &[left.clone(), right.clone()])?
    {
        return Ok(Code::NullIfSlot(Box::new((equal, *index))));
    }
    let arg_types = [left.ty(), right.ty()];
    let args = Box::new([compile(left)?, compile(right)?]);
    Ok(Code::NullIf(Box::new(call(function, args, &arg_types, TypeRef::of(oids::BOOL))?)))
}

/// Compiles an expression whose columns are [`Expr::Slot`]s.
///
/// # Errors
/// `0A000` for functions that do not exist here; an internal error for what planning should
/// have replaced.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
pub fn compile(e: &Expr) -> Result<Code> {
    Ok(match e {
        Expr::Const(c) => Code::Const(c.value.clone()),
        Expr::Slot { index, .. } => Code::Slot(*index),
        Expr::Param { number, .. } => Code::Param(*number as usize - 1),
        Expr::ExecParam { index, .. } => Code::ExecParam(*index),
        Expr::CaseTestValue(_) => Code::CaseValue,
        Expr::SubLinkColumn { index, .. } => Code::SubLinkColumn(*index),
        Expr::Call { function, args, arg_types, ty, .. } => {
            if let Some((op, a, b)) = comparison(Oid(*function))
                && let Some(code) = compile_comparison(op, a, b, args)?
            {
                return Ok(code);
            }
            if let Some((op, width)) = arithmetic(Oid(*function))
                && let [l, r] = &args[..]
            {
                return Ok(Code::IntArith(op, width, Box::new((compile(l)?, compile(r)?))));
            }
            if let Some(op) = numeric_arithmetic(Oid(*function))
                && let [l, r] = &args[..]
            {
                return Ok(Code::NumericArith(op, Box::new((compile(l)?, compile(r)?))));
            }
            if let Some(op) = crate::float::arithmetic(Oid(*function))
                && let [l, r] = &args[..]
            {
                return Ok(Code::FloatArith(op, Box::new((compile(l)?, compile(r)?))));
            }
            let symbol = types::facts::proc(Oid(*function)).map_or("", |f| f.symbol);
            if let (Some(negated), [text, pattern]) = (like_negated(symbol), &args[..]) {
                let (text, pattern) = (compile(text)?, compile(pattern)?);
                let known = match &pattern {
                    Code::Const(Datum::Text(p)) => Some(LikePattern::new(p)),
                    _ => None,
                };
                return Ok(Code::Like(Box::new(LikeCode { negated, text, pattern, known })));
            }
            let mut code = call(*function, all(args)?, arg_types, *ty)?;
            if let (Callee::Plain(f), Some(ctype)) = (code.callee, asked_ctype(*function, args)) {
                code.callee = Callee::Collated(f, ctype);
            }
            match crate::part::PartCode::made(symbol, code) {
                Ok(part) => Code::Part(Box::new(part)),
                Err(whole) => Code::Call(Box::new(whole)),
            }
        }
        Expr::ScalarArrayOp { function, any, left, array, .. } => {
            if let Some(any_of) = AnyOf::made(*function, *any, array) {
                return Ok(Code::AnyOf(Box::new((any_of, compile(left)?, compile(array)?))));
            }
            let arg_types = [left.ty(), array.ty()];
            let args = Box::new([compile(left)?, compile(array)?]);
            let mut code = call(*function, args, &arg_types, TypeRef::of(oids::BOOL))?;
            if let Some(f) = types::facts::proc(Oid(*function)) {
                code.arg_types = f.args.into();
            }
            Code::ScalarArray { call: Box::new(code), any: *any }
        }
        Expr::And(args) => Code::And(all(args)?),
        Expr::Or(args) => Code::Or(all(args)?),
        Expr::Not(arg) => Code::Not(boxed(arg)?),
        Expr::IsNull { arg, negated } => Code::IsNull { arg: boxed(arg)?, negated: *negated },
        Expr::BoolTest { arg, kind } => Code::BoolTest { arg: boxed(arg)?, kind: *kind },
        Expr::Distinct { function, left, right, negated, .. } => {
            let arg_types = [left.ty(), right.ty()];
            let args = Box::new([compile(left)?, compile(right)?]);
            let equal = call(*function, args, &arg_types, TypeRef::of(oids::BOOL))?;
            Code::Distinct { equal: Box::new(equal), negated: *negated }
        }
        Expr::NullIf { function, left, right, .. } => compile_null_if(*function, left, right)?,
        Expr::Case { operand, arms, otherwise, .. } => Code::Case {
            operand: operand.as_deref().map(boxed).transpose()?,
            arms: arms
                .iter()
                .map(|a| Ok((compile(&a.when)?, compile(&a.then)?)))
                .collect::<Result<_>>()?,
            otherwise: otherwise.as_deref().map(boxed).transpose()?,
        },
        Expr::Coalesce { args, .. } => Code::Coalesce(all(args)?),
        Expr::MinMax { greatest, args, ty } => {
            Code::MinMax { greatest: *greatest, args: all(args)?, ty: ty.oid }
        }
        Expr::Array { elements, element_type, multidim, .. } => Code::Array {
            elements: all(elements)?,
            element_type: element_type.oid,
            multidim: *multidim,
        },
        Expr::Row { fields, names, ty } => Code::Row {
            columns: fields
                .iter()
                .enumerate()
                .map(|(i, f)| {
                    let t = f.ty();
                    RecordColumn {
                        name: names
                            .get(i)
                            .map_or_else(|| Text::from(format!("f{}", i + 1)), Text::from),
                        type_oid: t.oid,
                        typmod: t.typmod,
                    }
                })
                .collect(),
            fields: all(fields)?,
            ty: ty.oid,
        },
        Expr::RowCompare { op, left, right, .. } => Code::RowCompare {
            op: *op,
            types: left.iter().zip(right).map(|(l, r)| (l.ty().oid, r.ty().oid)).collect(),
            left: all(left)?,
            right: all(right)?,
        },
        Expr::Field { arg, index, .. } => Code::Field { arg: boxed(arg)?, index: *index },
        Expr::FieldStore { arg, index, value, names, types, ty } => {
            let column = |(name, ty): (&String, &TypeRef)| RecordColumn {
                name: Text::from(name.as_str()),
                type_oid: ty.oid,
                typmod: ty.typmod,
            };
            Code::FieldStore(Box::new(FieldStore {
                arg: compile(arg)?,
                index: *index,
                value: compile(value)?,
                changes: value.changes_test_value(),
                columns: names.iter().zip(types).map(column).collect(),
                ty: ty.oid,
            }))
        }
        Expr::Subscript { arg, indexes, slice, assign, .. } => Code::Subscript {
            assign: match assign.as_deref() {
                Some(value) => Some((boxed(value)?, value.changes_test_value())),
                None => None,
            },
            ty: arg.ty().oid,
            arg: boxed(arg)?,
            indexes: indexes
                .iter()
                .map(|(a, b)| {
                    Ok((a.as_ref().map(compile).transpose()?, b.as_ref().map(compile).transpose()?))
                })
                .collect::<Result<_>>()?,
            slice: *slice,
        },
        Expr::CoerceViaIo { arg, ty, .. } => {
            Code::ViaIo { from: arg.ty().oid, arg: boxed(arg)?, to: *ty }
        }
        // An int4 and an oid have the same bytes on a page, but not the same value here.
        Expr::Relabel { arg, ty, .. } if (arg.ty().oid == oids::INT4) != (ty.oid == oids::INT4) => {
            Code::Relabel { arg: boxed(arg)?, to: ty.oid }
        }
        // ROW(…) as a row of a table is one from the start.
        Expr::Relabel { arg, ty, .. } if types::row_types::is_row(ty.oid) => match compile(arg)? {
            Code::Row { columns, fields, .. } => Code::Row { columns, fields, ty: ty.oid },
            other => other,
        },
        Expr::Relabel { arg, .. } | Expr::Collate { arg, .. } => compile(arg)?,
        Expr::CoerceToDomain { arg, domain, .. } => {
            Code::ToDomain { arg: boxed(arg)?, domain: Oid(*domain) }
        }
        Expr::ArrayCoerce { arg, element, ty } => Code::ArrayCoerce {
            arg: boxed(arg)?,
            element: boxed(element)?,
            element_type: types::element_type(ty.oid).unwrap_or(element.ty().oid),
        },
        Expr::SqlValue { kind, ty } => Code::SqlValue(*kind, *ty),
        Expr::SubPlan { kind, plan, test, args, .. } => Code::SubPlan {
            kind: *kind,
            plan: *plan,
            test: test.as_deref().map(boxed).transpose()?,
            args: args.iter().map(|(i, e)| Ok((*i, compile(e)?))).collect::<Result<_>>()?,
        },
        Expr::NextValue { sequence, ty } => Code::NextValue(*sequence, ty.oid),
        Expr::Json(json) => Code::Json(Box::new(crate::json::JsonCode {
            kind: json.kind.clone(),
            arg_types: json.args.iter().map(|a| a.ty().oid).collect(),
            args: all(&json.args)?,
            ty: json.ty,
        })),
        Expr::Default(_) => Code::Const(Datum::Null),
        Expr::CurrentOf { .. } => {
            bail!(INTERNAL_ERROR, "CURRENT OF is a scan by address, not a condition")
        }
        Expr::Var { .. }
        | Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Grouping(_)
        | Expr::SubLink { .. } => {
            return Err(err!(INTERNAL_ERROR, "expression was not planned: {e:?}"));
        }
    })
}
