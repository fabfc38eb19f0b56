//! Does a query's condition imply a partial index's predicate?

use super::selectivity::strip;
use super::sub_links::constant;
use base::Oid;
use expr::Expr;
use types::Datum;

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
        (Expr::Call { function, args, .. }, Expr::IsNull { arg, negated: true }) => {
            types::facts::proc(Oid(*function)).is_some_and(|f| f.strict)
                && args.iter().any(|a| strip(a) == strip(arg))
        }
        (Expr::ScalarArrayOp { left, any: true, .. }, Expr::IsNull { arg, negated: true }) => {
            strip(left) == strip(arg)
        }
        (Expr::Call { function: f, args: a, .. }, Expr::Call { function: g, args: b, .. }) => {
            use expr::code::CompareOp as C;
            let (Some((x, ..)), Some((y, t, _))) =
                (expr::code::comparison(Oid(*f)), expr::code::comparison(Oid(*g)))
            else {
                return false;
            };
            let ([al, ar], [bl, br]) = (&a[..], &b[..]) else { return false };
            if strip(al) != strip(bl) {
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
