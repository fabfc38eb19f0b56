//! Evaluation of compiled expressions.

use crate::code::{ArithOp, CallCode, Callee, Code, CompareOp, IntWidth, int_of};
use crate::ops::compare;
use crate::tree::{BoolTestKind, RowCompareOp, SqlValueFunction, SubLinkKind, TypeRef};
use base::{Oid, Result, bail, err};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::Arc;
use types::datetime::beside;
use types::datum::{ArrayValue, RecordValue};
use types::{Datum, Env, oids};

/// What evaluation needs of the executor.
pub trait EvalHook {
    /// The value of sub-plan `plan` for this row.
    ///
    /// # Errors
    /// Whatever the sub-plan meets.
    fn sub_plan(
        &self,
        cx: &EvalContext<'_>,
        kind: SubLinkKind,
        plan: usize,
        test: Option<&Code>,
        args: &[(usize, Code)],
        row: &[Datum],
    ) -> Result<Datum>;
    /// `nextval` of a sequence, by OID.
    ///
    /// # Errors
    /// `2200H` when it has run out, I/O.
    fn next_value(&self, sequence: Oid) -> Result<i64>;
}

/// What an expression is evaluated in.
pub struct EvalContext<'a> {
    /// The session.
    pub env: &'a dyn Env,
    /// `$1`, `$2`, …
    pub params: &'a [Datum],
    /// Values set by enclosing plan nodes.
    pub exec_params: &'a RefCell<Vec<Datum>>,
    /// Sub-plans and sequences.
    pub hook: Option<&'a dyn EvalHook>,
    /// CASE operands and array elements, innermost last.
    pub case_values: RefCell<Vec<Datum>>,
    /// The row of the sub-select being compared with.
    pub sub_row: RefCell<Vec<Datum>>,
    /// How deep evaluation may still go.
    pub depth_left: Cell<u32>,
}

impl<'a> EvalContext<'a> {
    /// What `f` makes where CASE's test value is `value`.
    pub(crate) fn with_test_value<T>(
        &self,
        value: Datum,
        f: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.case_values.borrow_mut().push(value);
        let made = f();
        self.case_values.borrow_mut().pop();
        made
    }

    /// A context with nothing but a session.
    pub fn new(env: &'a dyn Env, exec_params: &'a RefCell<Vec<Datum>>) -> EvalContext<'a> {
        EvalContext {
            env,
            params: &[],
            exec_params,
            hook: None,
            case_values: RefCell::new(Vec::new()),
            sub_row: RefCell::new(Vec::new()),
            depth_left: Cell::new(3000),
        }
    }
}

fn out_of_range(w: IntWidth) -> base::Error {
    match w {
        IntWidth::Int2 => err!(NUMERIC_VALUE_OUT_OF_RANGE, "smallint out of range"),
        IntWidth::Int4 => err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"),
        IntWidth::Int8 => err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"),
    }
}

/// Arithmetic on integers of at most this width.
#[inline]
fn arith(op: ArithOp, w: IntWidth, a: i64, b: i64) -> Result<i64> {
    let r = match op {
        ArithOp::Add => a.checked_add(b),
        ArithOp::Sub => a.checked_sub(b),
        ArithOp::Mul => a.checked_mul(b),
        ArithOp::Div | ArithOp::Mod if b == 0 => bail!(DIVISION_BY_ZERO, "division by zero"),
        ArithOp::Div => a.checked_div(b),
        ArithOp::Mod => Some(a.checked_rem(b).unwrap_or(0)),
    };
    let fits = |r: &i64| match w {
        IntWidth::Int8 => true,
        IntWidth::Int4 => i32::try_from(*r).is_ok(),
        IntWidth::Int2 => i16::try_from(*r).is_ok(),
    };
    r.filter(fits).ok_or_else(|| out_of_range(w))
}

/// An integer of this width, which it fits.
#[inline]
fn int_datum(w: IntWidth, r: i64) -> Datum {
    match w {
        IntWidth::Int8 => Datum::Int8(r),
        IntWidth::Int4 => Datum::Int4(r as i32),
        IntWidth::Int2 => Datum::Int2(r as i16),
    }
}

/// float8 order: NaN equals itself and is greater than all else.
#[inline]
pub(crate) fn float_cmp(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// What a function returns that has several results.
fn one_row(mut fields: Vec<Datum>, columns: &[(&str, Oid)]) -> Datum {
    if fields.len() == 1 {
        return fields.swap_remove(0);
    }
    let column = |(name, ty): &(&str, Oid)| types::RecordColumn {
        name: types::Text::from(*name),
        type_oid: *ty,
        typmod: -1,
    };
    Datum::Record(std::sync::Arc::new(types::RecordValue {
        type_oid: types::oids::RECORD,
        columns: columns.iter().map(column).collect(),
        fields,
    }))
}

/// Evaluates what stands within a call, as deep as that may be.
#[inline]
pub(crate) fn deeper<T>(cx: &EvalContext<'_>, inner: impl FnOnce() -> Result<T>) -> Result<T> {
    let left = cx.depth_left.get();
    if left == 0 {
        bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
    }
    cx.depth_left.set(left - 1);
    let r = inner();
    cx.depth_left.set(left);
    r
}

const TRUE: Option<bool> = Some(true);
const FALSE: Option<bool> = Some(false);

impl CallCode {
    pub(crate) fn invoke(&self, args: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        if self.spread {
            return self.invoke_spread(args, cx);
        }
        self.enter(args, &self.arg_types, cx)
    }
    #[inline]
    fn enter(&self, args: &[Datum], types: &[Oid], cx: &EvalContext<'_>) -> Result<Datum> {
        match self.callee {
            Callee::Plain(f) => f(cx.env, args),
            Callee::Collated(f, ctype) => types::ctype::with(ctype, cx.env, |env| f(env, args)),
            Callee::Typed(f) => f(cx.env, args, types, self.result),
            Callee::Void(f) => f(cx.env, args).map(|_| Datum::text("")),
            Callee::Row(f, columns) => match f(cx.env, args)?.next() {
                None => Ok(Datum::Null),
                Some(fields) => Ok(one_row(fields?, columns)),
            },
        }
    }
    /// With an array's elements for arguments. No array makes NULL, but format(), which has
    /// something to say without arguments.
    fn invoke_spread(&self, args: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        let Some((last, fixed)) = args.split_last() else {
            bail!(INTERNAL_ERROR, "VARIADIC call without an argument");
        };
        let mut values = fixed.to_vec();
        let mut types = self.arg_types[..fixed.len()].to_vec();
        match last {
            Datum::Array(a) => {
                values.extend(a.elements.iter().cloned());
                types.resize(values.len(), a.element_type);
            }
            _ if self.or_none => {}
            _ => return Ok(Datum::Null),
        }
        self.enter(&values, &types, cx)
    }
    /// Evaluates the arguments and calls. Each way is a function of its own: what it has on the stack is there once for each level of calls.
    fn eval(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        match &*self.args {
            [Code::Slot(i)] => self.of_slot(*i, row, cx),
            [a, b] => self.of_two(a, b, row, cx),
            _ => self.invoke(&deeper(cx, || self.eval_args(row, cx))?, cx),
        }
    }
    /// Nothing need be copied for an argument that is there.
    fn of_slot(&self, i: usize, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        let mut scratch = Datum::Null;
        self.invoke(std::slice::from_ref(row[i].lent(&mut scratch)?), cx)
    }
    fn of_two(&self, a: &Code, b: &Code, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        let args = deeper(cx, || Ok([a.eval(row, cx)?, b.eval(row, cx)?]))?;
        self.invoke(&args, cx)
    }
    fn eval_args(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<SmallVec<[Datum; 3]>> {
        let mut args = SmallVec::new();
        for a in &self.args {
            args.push(a.eval(row, cx)?);
        }
        Ok(args)
    }
}

impl Code {
    /// Evaluates, lending the value where it already exists.
    #[inline]
    pub fn eval_ref<'v>(
        &'v self,
        row: &'v [Datum],
        cx: &'v EvalContext<'_>,
        scratch: &'v mut Datum,
    ) -> Result<&'v Datum> {
        match self {
            Code::Slot(i) => row[*i].lent(scratch),
            Code::Const(d) => Ok(d),
            Code::Param(i) => param(cx, *i),
            _ => {
                *scratch = self.eval(row, cx)?;
                Ok(scratch)
            }
        }
    }

    /// Whether it is NULL; a column is not read for that.
    ///
    /// # Errors
    /// As [`Code::eval`].
    #[inline]
    pub fn is_null(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<bool> {
        match self {
            Code::Slot(i) => Ok(row[*i].is_null()),
            code => Ok(code.eval_ref(row, cx, &mut Datum::Null)?.is_null()),
        }
    }

    #[inline]
    fn eval_int(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Option<i64>> {
        match self {
            Code::Slot(i) => Ok(int_of(&row[*i])),
            Code::Const(d) => Ok(int_of(d)),
            Code::Param(i) => Ok(int_of(param(cx, *i)?)),
            Code::IntArith(op, w, lr) => Code::calculated(*op, *w, lr, row, cx),
            _ => Ok(int_of(&self.eval(row, cx)?)),
        }
    }

    /// Arithmetic on integers; None is NULL.
    #[inline]
    fn calculated(
        op: ArithOp,
        w: IntWidth,
        lr: &(Code, Code),
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<Option<i64>> {
        match (lr.0.eval_int(row, cx)?, lr.1.eval_int(row, cx)?) {
            (Some(a), Some(b)) => arith(op, w, a, b).map(Some),
            _ => Ok(None),
        }
    }

    /// Evaluates a condition: NULL is not true.
    #[inline]
    pub fn is_true(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<bool> {
        Ok(self.eval_bool(row, cx)? == TRUE)
    }

    /// Evaluates a boolean; None is NULL.
    pub fn eval_bool(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Option<bool>> {
        Ok(match self {
            Code::SlotConstCompare(op, i, v) => int_of(&row[*i]).map(|x| op.holds(x.cmp(v))),
            Code::IntCompare(op, lr) => match (lr.0.eval_int(row, cx)?, lr.1.eval_int(row, cx)?) {
                (Some(a), Some(b)) => Some(op.holds(a.cmp(&b))),
                _ => None,
            },
            Code::TextCompare(op, lr) => {
                let (mut x, mut y) = (Datum::Null, Datum::Null);
                let a = lr.0.eval_ref(row, cx, &mut x)?;
                let b = lr.1.eval_ref(row, cx, &mut y)?;
                match (a, b) {
                    (Datum::Text(a), Datum::Text(b)) => match op {
                        CompareOp::Eq => Some(a.as_bytes() == b.as_bytes()),
                        CompareOp::Ne => Some(a.as_bytes() != b.as_bytes()),
                        _ => Some(op.holds(a.as_bytes().cmp(b.as_bytes()))),
                    },
                    _ => None,
                }
            }
            Code::Like(like) => {
                let (mut x, mut y) = (Datum::Null, Datum::Null);
                let text = like.text.eval_ref(row, cx, &mut x)?;
                let matches = match (text, &like.known) {
                    (Datum::Text(text), Some(known)) => Some(known.matches(text)?),
                    (text, None) => match (text, like.pattern.eval_ref(row, cx, &mut y)?) {
                        (Datum::Text(text), Datum::Text(pattern)) => {
                            Some(types::like(text, pattern)?)
                        }
                        _ => None,
                    },
                    _ => None,
                };
                matches.map(|m| m != like.negated)
            }
            Code::FloatCompare(op, lr) => {
                match (lr.0.eval_float(row, cx)?, lr.1.eval_float(row, cx)?) {
                    (Some(a), Some(b)) => Some(op.holds(float_cmp(a, b))),
                    _ => None,
                }
            }
            Code::OrderCompare(op, ty, lr) => {
                let (mut x, mut y) = (Datum::Null, Datum::Null);
                let a = lr.0.eval_ref(row, cx, &mut x)?;
                let b = lr.1.eval_ref(row, cx, &mut y)?;
                (!a.is_null() && !b.is_null()).then(|| op.holds(compare(*ty, a, b)))
            }
            Code::And(args) => {
                let mut result = TRUE;
                for a in args {
                    match a.eval_bool(row, cx)? {
                        FALSE => return Ok(FALSE),
                        None => result = None,
                        TRUE => {}
                    }
                }
                result
            }
            Code::Or(args) => {
                let mut result = FALSE;
                for a in args {
                    match a.eval_bool(row, cx)? {
                        TRUE => return Ok(TRUE),
                        None => result = None,
                        FALSE => {}
                    }
                }
                result
            }
            Code::Not(arg) => arg.eval_bool(row, cx)?.map(|b| !b),
            // Nobody need read it for that.
            Code::IsNull { arg, negated } if matches!(&**arg, Code::Slot(i) if matches!(row[*i], Datum::Late(_))) => {
                Some(*negated)
            }
            Code::IsNull { arg, negated } => {
                let mut scratch = Datum::Null;
                let v = arg.eval_ref(row, cx, &mut scratch)?;
                Some(match v {
                    Datum::Null => !negated,
                    Datum::Record(r) if *negated => r.fields.iter().all(|f| !f.is_null()),
                    Datum::Record(r) => r.fields.iter().all(Datum::is_null),
                    _ => *negated,
                })
            }
            Code::BoolTest { arg, kind } => {
                let v = arg.eval_bool(row, cx)?;
                Some(match kind {
                    BoolTestKind::IsTrue => v == TRUE,
                    BoolTestKind::IsNotTrue => v != TRUE,
                    BoolTestKind::IsFalse => v == FALSE,
                    BoolTestKind::IsNotFalse => v != FALSE,
                    BoolTestKind::IsUnknown => v.is_none(),
                    BoolTestKind::IsNotUnknown => v.is_some(),
                })
            }
            Code::Distinct { equal, negated } => {
                let args = equal.eval_args(row, cx)?;
                let same = match (args[0].is_null(), args[1].is_null()) {
                    (true, true) => true,
                    (false, false) => matches!(equal.invoke(&args, cx)?, Datum::Bool(true)),
                    _ => false,
                };
                Some(same == *negated)
            }
            Code::ScalarArray { .. } => self.scalar_array(row, cx)?,
            Code::AnyOf(parts) => {
                let (test, left, array) = &**parts;
                let (mut x, mut y) = (Datum::Null, Datum::Null);
                let left = left.eval_ref(row, cx, &mut x)?;
                if !test.needs_array() {
                    return Ok(test.of_known(left));
                }
                match array.eval_ref(row, cx, &mut y)? {
                    Datum::Array(array) => test.of(left, &array.elements),
                    _ => None,
                }
            }
            Code::RowCompare { op, left, right, types } => {
                for i in 0..left.len() {
                    let (mut x, mut y) = (Datum::Null, Datum::Null);
                    let a = left[i].eval_ref(row, cx, &mut x)?;
                    let b = right[i].eval_ref(row, cx, &mut y)?;
                    if a.is_null() || b.is_null() {
                        return Ok(None);
                    }
                    let o = match types[i] {
                        (l, r) if l == r => compare(l, a, b),
                        // Days and moments have no numbers in common.
                        (l, r) => {
                            let (a, b) = (a.clone(), b.clone());
                            compare(l, &beside(a, r, cx.env), &beside(b, l, cx.env))
                        }
                    };
                    if o.is_ne() {
                        return Ok(Some(match op {
                            RowCompareOp::Lt | RowCompareOp::Le => o.is_lt(),
                            RowCompareOp::Gt | RowCompareOp::Ge => o.is_gt(),
                        }));
                    }
                }
                Some(matches!(op, RowCompareOp::Le | RowCompareOp::Ge))
            }
            Code::Slot(i) => bool_of(&row[*i]),
            Code::Const(d) => bool_of(d),
            _ => bool_of(&self.eval(row, cx)?),
        })
    }

    /// The column, or NULL if the condition holds.
    fn unless_true(&self, slot: usize, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        match self.is_true(row, cx)? {
            true => Ok(Datum::Null),
            false => Code::Slot(slot).eval(row, cx),
        }
    }

    fn scalar_array(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Option<bool>> {
        let Code::ScalarArray { call, any } = self else { return Ok(None) };
        let left = call.args[0].eval(row, cx)?;
        let mut scratch = Datum::Null;
        let Datum::Array(array) = call.args[1].eval_ref(row, cx, &mut scratch)? else {
            return Ok(None);
        };
        let mut result = Some(!*any);
        let mut args = [left, Datum::Null];
        for e in &array.elements {
            args[1] = e.clone();
            match bool_of(&call.invoke(&args, cx)?) {
                Some(b) if b == *any => return Ok(Some(*any)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Evaluates over a row.
    ///
    /// # Errors
    /// What the functions in it raise.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    pub fn eval(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        Ok(match self {
            Code::Const(d) => d.clone(),
            Code::Slot(i) => match &row[*i] {
                Datum::Late(late) => late.read()?,
                there => there.clone(),
            },
            Code::Param(i) => param(cx, *i)?.clone(),
            Code::ExecParam(i) => cx.exec_params.borrow().get(*i).cloned().unwrap_or(Datum::Null),
            Code::CaseValue => cx.case_values.borrow().last().cloned().unwrap_or(Datum::Null),
            Code::SubLinkColumn(i) => cx.sub_row.borrow().get(*i).cloned().unwrap_or(Datum::Null),
            Code::IntArith(op, w, lr) => {
                Code::calculated(*op, *w, lr, row, cx)?.map_or(Datum::Null, |r| int_datum(*w, r))
            }
            Code::FloatArith(..) => self.float_value(row, cx)?,
            Code::NullIfSlot(parts) => parts.0.unless_true(parts.1, row, cx)?,
            Code::NumericArith(op, lr) => deeper(cx, || {
                let (mut x, mut y) = (Datum::Null, Datum::Null);
                let a = lr.0.eval_ref(row, cx, &mut x)?;
                let b = lr.1.eval_ref(row, cx, &mut y)?;
                let (Datum::Numeric(a), Datum::Numeric(b)) = (a, b) else {
                    return Ok(Datum::Null);
                };
                Ok(Datum::Numeric(Box::new(match op {
                    ArithOp::Add => a.add(b)?,
                    ArithOp::Sub => a.sub(b)?,
                    ArithOp::Mul => a.mul(b)?,
                    ArithOp::Div => a.div(b)?,
                    ArithOp::Mod => a.rem(b)?,
                })))
            })?,
            Code::Part(p) => match deeper(cx, || p.of_late(row, cx))? {
                Some(value) => value,
                None => p.call().eval(row, cx)?,
            },
            Code::Call(c) => c.eval(row, cx)?,
            Code::NullIf(c) => {
                let mut args = c.eval_args(row, cx)?;
                if !args[0].is_null()
                    && !args[1].is_null()
                    && matches!(c.invoke(&args, cx)?, Datum::Bool(true))
                {
                    return Ok(Datum::Null);
                }
                std::mem::take(&mut args[0])
            }
            Code::Case { operand, arms, otherwise } => {
                let pushed = match operand {
                    Some(o) => {
                        let v = o.eval(row, cx)?;
                        cx.case_values.borrow_mut().push(v);
                        true
                    }
                    None => false,
                };
                let mut chosen = otherwise.as_deref();
                let mut failed = None;
                for (when, then) in arms {
                    match when.is_true(row, cx) {
                        Ok(true) => {
                            chosen = Some(then);
                            break;
                        }
                        Ok(false) => {}
                        Err(e) => {
                            failed = Some(e);
                            break;
                        }
                    }
                }
                if pushed {
                    cx.case_values.borrow_mut().pop();
                }
                if let Some(e) = failed {
                    return Err(e);
                }
                match chosen {
                    Some(c) => c.eval(row, cx)?,
                    None => Datum::Null,
                }
            }
            Code::Coalesce(args) => {
                for a in args {
                    let v = a.eval(row, cx)?;
                    if !v.is_null() {
                        return Ok(v);
                    }
                }
                Datum::Null
            }
            Code::MinMax { greatest, args, ty } => {
                let mut best = Datum::Null;
                for a in args {
                    let v = a.eval(row, cx)?;
                    if v.is_null() {
                        continue;
                    }
                    if best.is_null()
                        || (compare(*ty, &v, &best).is_gt() == *greatest
                            && compare(*ty, &v, &best).is_ne())
                    {
                        best = v;
                    }
                }
                best
            }
            Code::Array { elements, element_type, multidim } => {
                let mut values = Vec::with_capacity(elements.len());
                for e in elements {
                    values.push(e.eval(row, cx)?);
                }
                if *multidim {
                    types::array::construct_nested(*element_type, &values)?
                } else {
                    Datum::Array(Arc::new(ArrayValue::one_dimension(*element_type, values)))
                }
            }
            Code::Row { fields, columns, ty } => {
                let mut values = Vec::with_capacity(fields.len());
                for f in fields {
                    values.push(f.eval(row, cx)?);
                }
                let row = RecordValue { type_oid: *ty, columns: columns.clone(), fields: values };
                row.check_depth()?;
                Datum::Record(Arc::new(row))
            }
            Code::Field { arg, index } => match arg.eval(row, cx)? {
                Datum::Record(r) => r.fields.get(*index).cloned().unwrap_or(Datum::Null),
                _ => Datum::Null,
            },
            Code::FieldStore(store) => store.eval(row, cx)?,
            Code::Subscript { arg, indexes, slice, assign, ty } => {
                let v = arg.eval(row, cx)?;
                let mut bounds: SmallVec<[(Option<Datum>, Option<Datum>); 2]> = SmallVec::new();
                for (a, b) in indexes {
                    let a = a.as_ref().map(|a| a.eval(row, cx)).transpose()?;
                    let b = b.as_ref().map(|b| b.eval(row, cx)).transpose()?;
                    bounds.push((a, b));
                }
                match assign {
                    Some((value, changes)) => {
                        let value = if *changes {
                            let before = crate::array::subscript(*ty, v.clone(), &bounds, *slice)?;
                            cx.with_test_value(before, || value.eval(row, cx))?
                        } else {
                            value.eval(row, cx)?
                        };
                        crate::array::assign(*ty, v, &bounds, *slice, value)?
                    }
                    None => crate::array::subscript(*ty, v, &bounds, *slice)?,
                }
            }
            Code::Relabel { arg, to } => crate::ops::relabel(arg.eval(row, cx)?, *to),
            Code::ToDomain { arg, domain } => {
                let value = arg.eval(row, cx)?;
                types::domains::check(*domain, &value, cx.env)?;
                value
            }
            Code::ViaIo { arg, from, to } => {
                let v = arg.eval(row, cx)?;
                if v.is_null() {
                    return Ok(v);
                }
                let mut text = String::new();
                types::io::text_output(*from, &v, cx.env, &mut text)?;
                types::io::text_input(to.oid, to.typmod, &text, cx.env)?
            }
            Code::ArrayCoerce { arg, element, element_type } => match arg.eval(row, cx)? {
                Datum::Array(a) => {
                    let mut elements = Vec::with_capacity(a.elements.len());
                    for e in &a.elements {
                        cx.case_values.borrow_mut().push(e.clone());
                        let r = element.eval(row, cx);
                        cx.case_values.borrow_mut().pop();
                        elements.push(r?);
                    }
                    Datum::Array(Arc::new(ArrayValue {
                        element_type: *element_type,
                        dims: a.dims.clone(),
                        elements,
                    }))
                }
                other => other,
            },
            Code::SqlValue(kind, ty) => sql_value(*kind, *ty, cx)?,
            Code::Json(json) => json.eval(row, cx)?,
            Code::SubPlan { kind, plan, test, args } => {
                let Some(hook) = cx.hook else {
                    bail!(FEATURE_NOT_SUPPORTED, "cannot use subquery here");
                };
                hook.sub_plan(cx, *kind, *plan, test.as_deref(), args, row)?
            }
            Code::NextValue(sequence, ty) => {
                let Some(hook) = cx.hook else {
                    bail!(FEATURE_NOT_SUPPORTED, "cannot use nextval here");
                };
                let v = hook.next_value(Oid(*sequence))?;
                match *ty {
                    oids::INT4 => i32::try_from(v)
                        .map(Datum::Int4)
                        .map_err(|_| out_of_range(IntWidth::Int4))?,
                    oids::INT2 => i16::try_from(v)
                        .map(Datum::Int2)
                        .map_err(|_| out_of_range(IntWidth::Int2))?,
                    _ => Datum::Int8(v),
                }
            }
            _ => match self.eval_bool(row, cx)? {
                Some(b) => Datum::Bool(b),
                None => Datum::Null,
            },
        })
    }
}

#[inline]
pub(crate) fn param<'v>(cx: &'v EvalContext<'_>, i: usize) -> Result<&'v Datum> {
    cx.params.get(i).ok_or_else(|| err!(UNDEFINED_PARAMETER, "there is no parameter ${}", i + 1))
}

#[inline]
fn bool_of(d: &Datum) -> Option<bool> {
    match d {
        Datum::Bool(b) => Some(*b),
        _ => None,
    }
}

fn call_exact(cx: &EvalContext<'_>, name: &str, args: &[Oid], values: &[Datum]) -> Result<Datum> {
    let Some(f) = types::registry::function_exact(name, args) else {
        return Err(base::Error::unsupported(format!("function {name}")));
    };
    match f.body {
        types::FunctionBody::Scalar(f) => f(cx.env, values),
        types::FunctionBody::ScalarTyped(b) => b(cx.env, values, args, f.result),
        _ => Err(base::Error::unsupported(format!("function {name}"))),
    }
}

fn sql_value(kind: SqlValueFunction, ty: TypeRef, cx: &EvalContext<'_>) -> Result<Datum> {
    let now = || Datum::TimestampTz(cx.env.transaction_timestamp());
    let convert = |name: &str| call_exact(cx, name, &[oids::TIMESTAMPTZ], &[now()]);
    let value = match kind {
        SqlValueFunction::CurrentTimestamp => now(),
        SqlValueFunction::CurrentDate => return convert("date"),
        SqlValueFunction::LocalTimestamp => convert("timestamp")?,
        SqlValueFunction::CurrentTime => convert("timetz")?,
        SqlValueFunction::LocalTime => convert("time")?,
        other => {
            let name = crate::walk::sql_value_function(other).unwrap_or("current_user");
            return call_exact(cx, name, &[], &[]);
        }
    };
    if ty.typmod < 0 || ty.typmod >= 6 {
        return Ok(value);
    }
    let name = match ty.oid {
        oids::TIMESTAMP => "timestamp",
        oids::TIMETZ => "timetz",
        oids::TIME => "time",
        _ => "timestamptz",
    };
    call_exact(cx, name, &[ty.oid, oids::INT4], &[value, Datum::Int4(ty.typmod)])
}
