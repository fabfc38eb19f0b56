//! Arithmetic on float8 without calls, and without values between one operation and the next.

use crate::code::{ArithOp, Code};
use crate::eval::{EvalContext, deeper, param};
use base::{Oid, Result};
use types::Datum;
use types::float::{add, div, mul};

/// What a function of two float8 does, if it is one of the four that calculate.
pub(crate) fn arithmetic(function: Oid) -> Option<ArithOp> {
    Some(match types::facts::proc(function)?.symbol {
        "float8pl" => ArithOp::Add,
        "float8mi" => ArithOp::Sub,
        "float8mul" => ArithOp::Mul,
        "float8div" => ArithOp::Div,
        _ => return None,
    })
}

fn float_of(d: &Datum) -> Option<f64> {
    match d {
        Datum::Float8(v) => Some(*v),
        _ => None,
    }
}

impl Code {
    /// The value of an expression of type float8; None is NULL.
    #[inline]
    pub(crate) fn eval_float(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Option<f64>> {
        match self {
            Code::Slot(i) => Ok(float_of(&row[*i])),
            Code::Const(d) => Ok(float_of(d)),
            Code::Param(i) => Ok(float_of(param(cx, *i)?)),
            Code::FloatArith(op, lr) => calculated(*op, lr, row, cx),
            _ => Ok(float_of(&self.eval(row, cx)?)),
        }
    }

    /// The same as a value.
    pub(crate) fn float_value(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        Ok(self.eval_float(row, cx)?.map_or(Datum::Null, Datum::Float8))
    }
}

/// As PostgreSQL's operators, which are strict.
fn calculated(
    op: ArithOp,
    lr: &(Code, Code),
    row: &[Datum],
    cx: &EvalContext<'_>,
) -> Result<Option<f64>> {
    let both = deeper(cx, || Ok((lr.0.eval_float(row, cx)?, lr.1.eval_float(row, cx)?)))?;
    let (Some(a), Some(b)) = both else { return Ok(None) };
    match op {
        ArithOp::Add => add(a, b),
        ArithOp::Sub => add(a, -b),
        ArithOp::Mul => mul(a, b),
        ArithOp::Div => div(a, b),
        ArithOp::Mod => Ok(a % b),
    }
    .map(Some)
}
