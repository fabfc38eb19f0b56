//! Does a query's condition imply a partial index's predicate, and which conditions does that imply?

use super::rels::JoinSpace;
use super::selectivity::strip;
use super::sub_links::constant;
use base::Oid;
use expr::tree::{CallForm, Constant};
use expr::{BoolTestKind, Expr, TypeRef};
use types::{Datum, oids};

/// True if the conditions imply the predicate.
pub(crate) fn implied(predicate: &Expr, quals: &[Expr]) -> bool {
    match predicate {
        Expr::And(args) => args.iter().all(|a| implied(a, quals)),
        Expr::Const(c) => matches!(c.value, Datum::Bool(true)),
        Expr::Or(args) if args.iter().any(|a| implied(a, quals)) => true,
        p => quals.iter().any(|q| implies(q, p)),
    }
}

fn implies(q: &Expr, p: &Expr) -> bool {
    if q == p {
        return true;
    }
    match (q, p) {
        (Expr::And(args), _) => args.iter().any(|a| implies(a, p)),
        (Expr::Or(args), _) => args.iter().all(|a| implies(a, p)),
        // A row is that only if all of its fields are.
        (_, Expr::IsNull { arg, negated: true }) if is_row(arg) => false,
        (Expr::Call { function, args, .. }, Expr::IsNull { arg, negated: true }) => {
            types::facts::proc(Oid(*function)).is_some_and(|f| f.strict)
                && args.iter().any(|a| strip(a) == strip(arg))
        }
        (Expr::ScalarArrayOp { left, any: true, .. }, Expr::IsNull { arg, negated: true }) => {
            strip(left) == strip(arg)
        }
        (Expr::BoolTest { arg, kind: BoolTestKind::IsTrue }, p) => **arg == *p,
        (Expr::BoolTest { arg, kind: BoolTestKind::IsFalse }, Expr::Not(p)) => arg == p,
        (_, Expr::ScalarArrayOp { any: true, .. }) => {
            each_element(p).is_some_and(|list| list.iter().any(|one| implies(q, one)))
                || matches!(q, Expr::ScalarArrayOp { any: true, .. })
                    && each_element(q).is_some_and(|list| list.iter().all(|one| implies(one, p)))
        }
        (Expr::ScalarArrayOp { any: true, .. }, _) => {
            each_element(q).is_some_and(|list| list.iter().all(|one| implies(one, p)))
        }
        (Expr::Call { function: f, args: a, .. }, Expr::Call { function: g, args: b, .. }) => {
            use expr::code::CompareOp as C;
            let (Some((x, _, s)), Some((y, _, t))) =
                (expr::code::comparison(Oid(*f)), expr::code::comparison(Oid(*g)))
            else {
                return false;
            };
            let ([al, ar], [bl, br]) = (&a[..], &b[..]) else { return false };
            // Those of another type may hold other values for the same.
            if strip(al) != strip(bl) || s != t {
                return false;
            }
            let (Some(v), Some(w)) = (constant(strip(ar)), constant(strip(br))) else {
                return false;
            };
            if v.is_null() || w.is_null() || std::mem::discriminant(v) != std::mem::discriminant(w)
            {
                return false;
            }
            let o = expr::ops::compare(t, v, w);
            match (x, y) {
                (C::Eq, y) => y.holds(o),
                (C::Lt, C::Lt | C::Le) | (C::Le, C::Le) => o.is_le(),
                (C::Le, C::Lt) => o.is_lt(),
                (C::Gt, C::Gt | C::Ge) | (C::Ge, C::Ge) => o.is_ge(),
                (C::Ge, C::Gt) => o.is_gt(),
                (C::Lt | C::Le, C::Ne) => o.is_lt() || (x == C::Lt && o.is_eq()),
                (C::Gt | C::Ge, C::Ne) => o.is_gt() || (x == C::Gt && o.is_eq()),
                _ => false,
            }
        }
        _ => false,
    }
}

fn is_row(e: &Expr) -> bool {
    let ty = e.ty().oid;
    ty == oids::RECORD || types::type_info(ty).is_none()
}

impl JoinSpace<'_, '_> {
    /// Columns of relation `i` that only conditions need which `predicate` implies.
    pub(super) fn only_implied(
        &self,
        i: usize,
        conditions: &[&Expr],
        predicate: &[Expr],
    ) -> Vec<i32> {
        let rel = &self.rels[i];
        if predicate.is_empty() {
            return Vec::new();
        }
        let mut left_out: Vec<i32> = rel.needed.difference(&rel.needed_beside).copied().collect();
        for e in conditions.iter().filter(|e| !implied(e, predicate)) {
            e.walk(&mut |e| {
                if let Expr::Var { levels_up: 0, rte, column, .. } = e
                    && *rte == rel.rte
                {
                    left_out.retain(|c| c != column);
                }
            });
        }
        left_out
    }
}

/// Longer lists are not taken apart.
const MOST_ELEMENTS: usize = 100;

/// `x = ANY (constant array)` as the comparisons that it stands for; none if it has no elements.
fn each_element(e: &Expr) -> Option<Vec<Expr>> {
    let Expr::ScalarArrayOp { function, operator, any: true, left, array } = e else { return None };
    let Some(Datum::Array(a)) = constant(strip(array)) else { return None };
    if a.elements.is_empty() || a.elements.len() > MOST_ELEMENTS {
        return None;
    }
    let ty = TypeRef::of(expr::array::element_type(array.ty().oid));
    let one = |value: &Datum| {
        let value = Expr::Const(Constant { ty, value: value.clone() });
        Expr::Call {
            function: *function,
            arg_types: vec![left.ty(), ty],
            args: vec![(**left).clone(), value],
            ty: TypeRef::of(oids::BOOL),
            operator: *operator,
            form: CallForm::Operator,
        }
    };
    Some(a.elements.iter().map(one).collect())
}

/// `x = 1 OR x = 2` as `x = ANY (ARRAY[1, 2])`, which an index can look for.
pub(crate) fn any_of(e: &Expr) -> Option<Expr> {
    let Expr::Or(args) = e else { return None };
    let mut first: Option<(u32, u32, &Expr, TypeRef)> = None;
    let mut elements = Vec::new();
    for a in args {
        let Expr::Call { function, args, operator, .. } = a else { return None };
        let [left, right] = &args[..] else { return None };
        let value = matches!(strip(right), Expr::Const(_) | Expr::Param { .. });
        if !value || super::rels::equality_family(*operator).is_none() {
            return None;
        }
        let this = (*function, *operator, left, TypeRef::of(right.ty().oid));
        if *first.get_or_insert(this) != this || expr::fold::contains_volatile(left) {
            return None;
        }
        elements.push(right.clone());
    }
    let (function, operator, left, element_type) = first?;
    let ty = TypeRef::of(types::type_info(element_type.oid)?.array);
    if ty.oid.0 == 0 {
        return None;
    }
    let array = Box::new(Expr::Array { elements, element_type, multidim: false, ty });
    Some(Expr::ScalarArrayOp { function, operator, any: true, left: Box::new(left.clone()), array })
}
