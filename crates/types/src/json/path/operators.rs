//! Arithmetic of paths.

use super::eval::{Fault, Outcome, Sink, Walk, push, soft};
use super::value::Value;
use super::{Node, Operator};
use crate::Numeric;
use base::err;

impl<'a> Walk<'a> {
    /// The values of an operand, the elements of arrays in lax mode.
    pub(super) fn operand(&mut self, node: &Node) -> Outcome<Vec<Value<'a>>> {
        let mut found = Vec::new();
        self.node(node, Some(&mut found))?;
        if self.lax && found.iter().any(Value::is_array) {
            found = found
                .into_iter()
                .flat_map(|v| if v.is_array() { v.children() } else { vec![v] })
                .collect();
        }
        Ok(found)
    }

    pub(super) fn arithmetic(
        &mut self,
        operator: Operator,
        l: &Node,
        r: &Node,
    ) -> Outcome<Value<'a>> {
        let symbol = operator.symbol();
        let (l, r) = (self.operand(l)?, self.operand(r)?);
        let l = single_number(&l, "left", symbol)?;
        let r = single_number(&r, "right", symbol)?;
        let result = match operator {
            Operator::Add => l.add(&r),
            Operator::Subtract => l.sub(&r),
            Operator::Multiply => l.mul(&r),
            Operator::Divide => l.div(&r),
            Operator::Remainder => l.rem(&r),
        };
        Ok(Value::number(&result.map_err(Fault::Soft)?))
    }

    pub(super) fn signed(
        &mut self,
        minus: bool,
        of: &Node,
        mut sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let mut any = false;
        for value in self.operand(of)? {
            match value.as_number() {
                Some(n) => {
                    any = true;
                    let n = if minus { n.neg() } else { n };
                    push(Value::number(&n), sink.as_deref_mut());
                }
                None if sink.is_none() => {}
                None => soft!(
                    SQL_JSON_NUMBER_NOT_FOUND,
                    "operand of unary jsonpath operator {} is not a numeric value",
                    if minus { '-' } else { '+' }
                ),
            }
        }
        Ok(any)
    }
}

fn single_number(found: &[Value], side: &str, symbol: &str) -> Outcome<Numeric> {
    match found {
        [one] => one.as_number(),
        _ => None,
    }
    .ok_or_else(|| {
        Fault::Soft(err!(
            SINGLETON_SQL_JSON_ITEM_REQUIRED,
            "{side} operand of jsonpath operator {symbol} is not a single numeric value"
        ))
    })
}
