//! Constant folding and simplification.

use crate::code::compile;
use crate::eval::EvalContext;
use crate::tree::{Constant, Expr, TypeRef};
use base::Oid;
use std::cell::RefCell;
use types::{Datum, Volatility, oids};

fn constant(ty: TypeRef, value: Datum) -> Expr {
    Expr::Const(Constant { ty, value })
}

/// A boolean constant.
pub fn boolean(b: bool) -> Expr {
    constant(TypeRef::of(oids::BOOL), Datum::Bool(b))
}

/// The volatility of a function; what is unknown is volatile.
pub fn function_volatility(function: u32) -> Volatility {
    match types::facts::proc(Oid(function)) {
        Some(p) => match p.volatility {
            'i' => Volatility::Immutable,
            's' => Volatility::Stable,
            _ => Volatility::Volatile,
        },
        None => {
            types::registry::function(Oid(function)).map_or(Volatility::Volatile, |f| f.volatility)
        }
    }
}

/// True if evaluating it twice may give different answers or have effects.
pub fn contains_volatile(e: &Expr) -> bool {
    e.any(&mut |e| match e {
        Expr::Call { function, .. } | Expr::ScalarArrayOp { function, .. } => {
            function_volatility(*function) == Volatility::Volatile
        }
        Expr::NextValue { .. } => true,
        _ => false,
    })
}

/// Functions that are called immutable and still ask the session: age(timestamptz, timestamptz) counts in its days, and what is
/// a letter beyond ASCII its database says.
fn depends_on_session(function: u32, args: &[&Expr]) -> bool {
    types::facts::proc(Oid(function)).is_some_and(|p| {
        p.symbol == "timestamptz_age"
            || types::ctype::is_asked_by(p.symbol)
                && !args.iter().filter_map(|e| known(e)).all(is_ascii)
    })
}

fn is_ascii(value: &Datum) -> bool {
    match value {
        Datum::Text(text) => text.is_ascii(),
        Datum::Array(array) => array.elements.iter().all(is_ascii),
        _ => true,
    }
}

fn is_const(e: &Expr) -> bool {
    matches!(e, Expr::Const(_))
}

fn known(e: &Expr) -> Option<&Datum> {
    match e {
        Expr::Const(c) => Some(&c.value),
        _ => None,
    }
}

/// Folds what is constant, flattens AND and OR, and cuts what they make unreachable. Calls that fail
/// are left as they are, to fail when they are run, if they are.
pub fn fold(e: &Expr) -> Expr {
    let e = e.map_children(&mut |c| fold(c));
    match e {
        Expr::And(args) => junction(args, true),
        Expr::Or(args) => junction(args, false),
        Expr::Not(arg) => match *arg {
            Expr::Const(c) => match c.value {
                Datum::Bool(b) => boolean(!b),
                _ => constant(TypeRef::of(oids::BOOL), Datum::Null),
            },
            Expr::Not(inner) => *inner,
            Expr::And(args) => {
                fold(&Expr::Or(args.into_iter().map(|a| Expr::Not(Box::new(a))).collect()))
            }
            Expr::Or(args) => {
                fold(&Expr::And(args.into_iter().map(|a| Expr::Not(Box::new(a))).collect()))
            }
            Expr::IsNull { arg, negated } if !is_row(&arg) => {
                Expr::IsNull { arg, negated: !negated }
            }
            Expr::Call { function, args, arg_types, ty, operator, form } => {
                negate(function, args, arg_types, ty, operator, form)
            }
            Expr::ScalarArrayOp { function, operator, any, left, array } => {
                match types::registry::operator(Oid(operator))
                    .and_then(|o| types::registry::operator(o.negator))
                {
                    Some(n) => Expr::ScalarArrayOp {
                        function: n.function.0,
                        operator: n.oid.0,
                        any: !any,
                        left,
                        array,
                    },
                    None => Expr::Not(Box::new(Expr::ScalarArrayOp {
                        function,
                        operator,
                        any,
                        left,
                        array,
                    })),
                }
            }
            other => Expr::Not(Box::new(other)),
        },
        Expr::Call { function, ref args, ty, .. } => {
            // A set-returning function's rows are not a value: of NULL there are none.
            let strict = types::registry::function(Oid(function))
                .is_some_and(|f| f.strict && !f.returns_set());
            // What fails is left to fail.
            if strict
                && args.iter().any(|a| known(a).is_some_and(Datum::is_null))
                && !args.iter().any(fails)
            {
                return constant(ty, Datum::Null);
            }
            if args.iter().all(is_const)
                && function_volatility(function) == Volatility::Immutable
                && !depends_on_session(function, &args.iter().collect::<Vec<_>>())
            {
                return evaluate(&e).unwrap_or(e);
            }
            plain_boolean(e)
        }
        Expr::ScalarArrayOp { function, ref left, ref array, .. } => {
            if is_const(left)
                && is_const(array)
                && function_volatility(function) == Volatility::Immutable
                && !depends_on_session(function, &[left, array])
            {
                return evaluate(&e).unwrap_or(e);
            }
            e
        }
        Expr::Coalesce { args, ty } => {
            let mut kept = Vec::new();
            for a in args {
                match known(&a) {
                    Some(d) if d.is_null() => {}
                    Some(_) => {
                        kept.push(a);
                        break;
                    }
                    None => kept.push(a),
                }
            }
            match kept.len() {
                0 => constant(ty, Datum::Null),
                1 => kept.remove(0),
                _ => Expr::Coalesce { args: kept, ty },
            }
        }
        Expr::Case { operand: Some(operand), mut arms, otherwise, ty } if is_const(&operand) => {
            arms.iter_mut().for_each(|a| put_test_value(&mut a.when, &operand));
            fold(&Expr::Case { operand: None, arms, otherwise, ty })
        }
        Expr::Case { operand: None, arms, otherwise, ty } => {
            let mut kept = Vec::new();
            let mut otherwise = otherwise;
            for a in arms {
                match known(&a.when) {
                    Some(Datum::Bool(true)) => {
                        otherwise = Some(Box::new(a.then));
                        break;
                    }
                    Some(_) => {}
                    None => kept.push(a),
                }
            }
            if kept.is_empty() {
                return otherwise.map_or_else(|| constant(ty, Datum::Null), |o| *o);
            }
            Expr::Case { operand: None, arms: kept, otherwise, ty }
        }
        Expr::Array { ref elements, .. } | Expr::MinMax { args: ref elements, .. }
            if elements.iter().all(is_const) =>
        {
            evaluate(&e).unwrap_or(e)
        }
        Expr::IsNull { ref arg, .. } | Expr::BoolTest { ref arg, .. } if is_const(arg) => {
            evaluate(&e).unwrap_or(e)
        }
        Expr::Relabel { arg, ty, explicit } => match *arg {
            Expr::Const(c) => constant(ty, crate::ops::relabel(c.value, ty.oid)),
            arg => Expr::Relabel { arg: Box::new(arg), ty, explicit },
        },
        other => other,
    }
}

/// Puts the operand of a simple CASE into one of its conditions.
fn put_test_value(when: &mut Expr, operand: &Expr) {
    when.rewrite(&mut |e| match e {
        Expr::CaseTestValue(_) => {
            *e = operand.clone();
            true
        }
        // What has test values of its own.
        Expr::Case { operand: Some(_), .. } | Expr::Json(_) => true,
        Expr::ArrayCoerce { arg, .. } => {
            put_test_value(arg, operand);
            true
        }
        _ => false,
    });
}

/// `x = true` is x, `x = false` is NOT x: an index, or its predicate, may be written either way.
fn plain_boolean(e: Expr) -> Expr {
    let Expr::Call { args, operator, .. } = &e else { return e };
    let same = match types::registry::operator(Oid(*operator)) {
        Some(o) if o.left == oids::BOOL && o.right == oids::BOOL => match o.name {
            "=" => true,
            "<>" => false,
            _ => return e,
        },
        _ => return e,
    };
    let (arg, value) = match &args[..] {
        [x, Expr::Const(c)] | [Expr::Const(c), x] => match c.value {
            Datum::Bool(b) => (x, b),
            _ => return e,
        },
        _ => return e,
    };
    if value == same { arg.clone() } else { fold(&Expr::Not(Box::new(arg.clone()))) }
}

fn is_row(e: &Expr) -> bool {
    let t = e.ty().oid;
    t == oids::RECORD || types::registry::type_info(t).is_none_or(|t| t.kind == 'c')
}

fn negate(
    function: u32,
    args: Vec<Expr>,
    arg_types: Vec<TypeRef>,
    ty: TypeRef,
    operator: u32,
    form: crate::tree::CallForm,
) -> Expr {
    if operator != 0
        && let Some(o) = types::registry::operator(Oid(operator))
        && let Some(n) = types::registry::operator(o.negator)
    {
        return Expr::Call { function: n.function.0, args, arg_types, ty, operator: n.oid.0, form };
    }
    Expr::Not(Box::new(Expr::Call { function, args, arg_types, ty, operator, form }))
}

fn junction(args: Vec<Expr>, and: bool) -> Expr {
    let mut flat: Vec<Expr> = Vec::with_capacity(args.len());
    let mut null = false;
    for a in args {
        let inner = match a {
            Expr::And(inner) if and => inner,
            Expr::Or(inner) if !and => inner,
            other => vec![other],
        };
        for i in inner {
            match known(&i) {
                Some(Datum::Bool(b)) if *b == and => {}
                Some(Datum::Bool(b)) => return boolean(*b),
                Some(_) => null = true,
                None => {
                    if contains_volatile(&i) || !flat.contains(&i) {
                        flat.push(i);
                    }
                }
            }
        }
    }
    if null {
        flat.push(constant(TypeRef::of(oids::BOOL), Datum::Null));
    }
    match flat.len() {
        0 => boolean(and),
        1 => flat.remove(0),
        _ if and => Expr::And(flat),
        _ => Expr::Or(flat),
    }
}

/// Is there something in a folded expression that could not be folded since it raises an error?
fn fails(e: &Expr) -> bool {
    e.any(&mut |e| match e {
        Expr::Call { function, args, .. } => {
            args.iter().all(is_const)
                && function_volatility(*function) == Volatility::Immutable
                && !depends_on_session(*function, &args.iter().collect::<Vec<_>>())
                && types::registry::function(Oid(*function)).is_some_and(|f| !f.returns_set())
        }
        // A string that is not of the type fails always; what depends on a setting may not.
        Expr::CoerceViaIo { arg, .. } => {
            is_const(arg) && !known(arg).is_some_and(Datum::is_null) && evaluate(e).is_none()
        }
        _ => false,
    })
}

/// Adds to `found` the calls in a folded expression that have constants only and could not be folded: they fail, unless they need a session.
pub fn left_over(e: &Expr, found: &mut Vec<Expr>) {
    e.any(&mut |e| {
        let is_left = match e {
            Expr::Call { function, args, .. } => {
                args.iter().all(is_const)
                    && function_volatility(*function) == Volatility::Immutable
                    && !depends_on_session(*function, &args.iter().collect::<Vec<_>>())
                    && types::registry::function(Oid(*function)).is_some_and(|f| !f.returns_set())
            }
            Expr::ScalarArrayOp { function, left, array, .. } => {
                is_const(left)
                    && is_const(array)
                    && function_volatility(*function) == Volatility::Immutable
                    && !depends_on_session(*function, &[left, array])
            }
            _ => false,
        };
        if is_left {
            found.push(e.clone());
        }
        false
    });
}

/// The value of an expression without variables in the session that `env` is.
///
/// # Errors
/// The expression's.
pub fn value_in(e: &Expr, env: &dyn types::Env) -> base::Result<Datum> {
    let code = compile(e)?;
    let exec = RefCell::new(Vec::new());
    code.eval(&[], &EvalContext::new(env, &exec))
}

/// The value of an expression without variables, or None if it has some or fails.
pub fn evaluate(e: &Expr) -> Option<Expr> {
    let code = compile(e).ok()?;
    let exec = RefCell::new(Vec::new());
    let cx = EvalContext::new(&types::env::PlainEnv, &exec);
    let value = code.eval(&[], &cx).ok()?;
    Some(constant(e.ty(), value))
}
