//! # Purpose
//! `x op ANY (array)` and `x op ALL (array)` where `op` compares by the values' order: no call per element, and no copy of
//! one. A longer list of constants is looked up instead of gone through.
//!
//! # Invariants
//! Says what calling the operator with each element would say, NULLs included.

use crate::code::{CompareOp, comparable, comparison, int_of};
use crate::ops::compare;
use crate::tree::Expr;
use base::Oid;
use std::collections::HashSet;
use types::{Datum, Text, oids};

/// From so many constants on they are looked up.
const LOOK_UP: usize = 9;

/// A comparison with the elements of an array.
pub struct AnyOf {
    op: CompareOp,
    /// Whose order it is.
    ty: Oid,
    /// True once one comparison is; else once all are.
    any: bool,
    known: Option<Known>,
}

/// The constants of a list, for look-up.
struct Known {
    values: Values,
    has_null: bool,
}

enum Values {
    Ints(HashSet<i64>),
    Texts(HashSet<Text>),
    /// In their order.
    Sorted(Vec<Datum>),
}

impl AnyOf {
    /// Of a ScalarArrayOp's parts; None if its operator has to be called.
    pub(crate) fn made(function: u32, any: bool, array: &Expr) -> Option<AnyOf> {
        let (op, a, b) = comparison(Oid(function))?;
        let ty = comparable(a, b)?;
        let looked_up = if any { CompareOp::Eq } else { CompareOp::Ne };
        let known = match array {
            Expr::Const(c) if op == looked_up => Known::made(ty, &c.value),
            _ => None,
        };
        Some(AnyOf { op, ty, any, known })
    }

    /// The left side is found in constants.
    pub(crate) fn needs_array(&self) -> bool {
        self.known.is_none()
    }

    /// Of `left` and the constants.
    #[inline]
    pub(crate) fn of_known(&self, left: &Datum) -> Option<bool> {
        let known = self.known.as_ref()?;
        if left.is_null() {
            return None;
        }
        match (known.holds(self.ty, left), known.has_null) {
            (true, _) => Some(self.any),
            (false, true) => None,
            (false, false) => Some(!self.any),
        }
    }

    /// Of `left` and an array's elements.
    #[inline]
    pub(crate) fn of(&self, left: &Datum, elements: &[Datum]) -> Option<bool> {
        let mut result = Some(!self.any);
        for e in elements {
            if left.is_null() || e.is_null() {
                result = None;
            } else if self.holds(left, e) == self.any {
                return Some(self.any);
            }
        }
        result
    }

    #[inline]
    fn holds(&self, a: &Datum, b: &Datum) -> bool {
        match (self.op, a, b) {
            // Most differ in their length.
            (CompareOp::Eq, Datum::Text(a), Datum::Text(b)) if self.ty == oids::TEXT => {
                a.as_bytes() == b.as_bytes()
            }
            (op, a, b) => op.holds(compare(self.ty, a, b)),
        }
    }
}

impl Known {
    fn made(ty: Oid, array: &Datum) -> Option<Known> {
        let Datum::Array(array) = array else { return None };
        if array.elements.len() < LOOK_UP {
            return None;
        }
        let there = || array.elements.iter().filter(|e| !e.is_null());
        let values = match ty {
            oids::INT8 => Values::Ints(there().map(int_of).collect::<Option<_>>()?),
            oids::TEXT => Values::Texts(
                there()
                    .map(|e| if let Datum::Text(t) = e { Some(t.clone()) } else { None })
                    .collect::<Option<_>>()?,
            ),
            _ => {
                let mut sorted: Vec<Datum> = there().cloned().collect();
                sorted.sort_by(|a, b| compare(ty, a, b));
                Values::Sorted(sorted)
            }
        };
        Some(Known { values, has_null: array.elements.iter().any(Datum::is_null) })
    }

    #[inline]
    fn holds(&self, ty: Oid, value: &Datum) -> bool {
        match &self.values {
            Values::Ints(set) => int_of(value).is_some_and(|v| set.contains(&v)),
            Values::Texts(set) => matches!(value, Datum::Text(t) if set.contains(t)),
            Values::Sorted(list) => list.binary_search_by(|e| compare(ty, e, value)).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Code, compile};
    use crate::eval::EvalContext;
    use crate::tree::{Constant, TypeRef};
    use std::cell::RefCell;
    use std::sync::Arc;
    use types::ArrayValue;
    use types::env::PlainEnv;

    fn constant(ty: Oid, value: Datum) -> Expr {
        Expr::Const(Constant { value, ty: TypeRef::of(ty) })
    }

    /// `value op ANY|ALL (list)` as compiled, and by calling the operator with one element after the other.
    fn both(name: &str, ty: Oid, any: bool, value: &Datum, list: &[Datum]) -> [Option<bool>; 2] {
        let operators = types::facts::operators();
        let function = operators
            .iter()
            .find(|o| o.name == name && (o.left, o.right) == (ty, ty))
            .expect("operator")
            .function;
        let exec = RefCell::new(Vec::new());
        let cx = EvalContext::new(&PlainEnv, &exec);
        let types::FunctionBody::Scalar(f) = types::registry::function(function).unwrap().body
        else {
            panic!("{name} is no plain function")
        };
        let mut one_by_one = Some(!any);
        for e in list {
            if value.is_null() || e.is_null() {
                one_by_one = None;
            } else if matches!(f(&PlainEnv, &[value.clone(), e.clone()]).unwrap(), Datum::Bool(b) if b == any)
            {
                one_by_one = Some(any);
                break;
            }
        }
        let array = Datum::Array(Arc::new(ArrayValue::one_dimension(ty, list.to_vec())));
        let array_type = types::registry::type_info(ty).unwrap().array;
        let code = compile(&Expr::ScalarArrayOp {
            operator: 0,
            function: function.0,
            any,
            left: Box::new(constant(ty, value.clone())),
            array: Box::new(constant(array_type, array)),
        })
        .unwrap();
        assert!(matches!(code, Code::AnyOf { .. }), "{name} of {ty:?} is called");
        [code.eval_bool(&[], &cx).unwrap(), one_by_one]
    }

    #[test]
    fn as_the_operator_says_of_each_element() {
        let text = |s: &str| Datum::text(s);
        let number =
            |s: &str| types::io::text_input(oids::NUMERIC, -1, s, &PlainEnv).expect("a numeric");
        let padded: Vec<Datum> =
            ["a", "a ", "ab", "", " ", "b  ", "c", "d", "e", "f"].map(text).into();
        let plain: Vec<Datum> = ["", "a", "A", "ab", "é", "b", "c", "d", "e", "f"].map(text).into();
        let numbers: Vec<Datum> =
            ["1", "1.00", "-0", "NaN", "2", "1e30", "-Infinity", "3", "0.5", "7"]
                .map(number)
                .into();
        let floats: Vec<Datum> =
            [0.0, -0.0, f64::NAN, 1.5, -1.5, 2.0, 3.0, 4.0, 5.0, 6.0].map(Datum::Float8).into();
        let ints: Vec<Datum> = (0..10).map(|i| Datum::Int4(i * 3 % 10 - 4)).collect();
        let kinds = [
            (oids::BPCHAR, padded),
            (oids::TEXT, plain),
            (oids::NUMERIC, numbers),
            (oids::FLOAT8, floats),
            (oids::INT4, ints),
        ];
        let mut found = 0;
        for (ty, values) in kinds {
            // Some lists are short, some are looked up, some have a NULL, one has nothing.
            for (len, null) in [(0, false), (1, true), (4, false), (4, true), (9, false), (9, true)]
            {
                let mut list = values[values.len() - len..].to_vec();
                if null {
                    list[len / 2] = Datum::Null;
                }
                for value in values.iter().chain([&Datum::Null]) {
                    for op in ["=", "<>", "<", ">="] {
                        for any in [true, false] {
                            let [ours, theirs] = both(op, ty, any, value, &list);
                            assert_eq!(ours, theirs, "{value:?} {op} {any} of {list:?}");
                            found += u32::from(ours == Some(true));
                        }
                    }
                }
            }
        }
        assert!(found > 100, "{found} were true");
    }
}
