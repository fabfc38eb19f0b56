//! Choosing functions and operators by PostgreSQL's rules, and building their calls.

use super::Analyser;
use super::coerce::{array_type, can_coerce, category, element_type, is_polymorphic, is_preferred};
use crate::parse::ast::{Loc, OpName};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::tree::CallForm;
use expr::{Expr, TypeRef};
use types::OperatorInfo;
use types::facts::{CastContext, ProcFact, procs_by_name};
use types::oids::*;
use types::registry::{functions_by_name, operators_by_name};

/// What the choice needs to know of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub oid: Oid,
    pub args: &'static [Oid],
    pub variadic: Oid,
    pub result: Oid,
    pub defaults: usize,
    pub returns_set: bool,
    /// f, a, w
    pub kind: char,
}

impl Function {
    fn of(p: &'static ProcFact) -> Function {
        Function {
            oid: p.oid,
            args: p.args,
            variadic: p.variadic,
            result: p.result,
            defaults: usize::from(p.defaults),
            returns_set: p.returns_set,
            kind: p.kind,
        }
    }
}

/// All functions of this name: PostgreSQL's, and those that Ebb adds.
pub(crate) fn functions(schema: Option<&str>, name: &str) -> Vec<Function> {
    if schema.is_some_and(|s| s != "pg_catalog" && s != "information_schema" && s != "public") {
        return Vec::new();
    }
    let mut out: Vec<Function> = procs_by_name(name).iter().map(|p| Function::of(p)).collect();
    for f in functions_by_name(name) {
        if types::facts::proc(f.oid).is_none() {
            out.push(Function {
                oid: f.oid,
                args: f.args,
                variadic: f.variadic,
                result: f.result,
                defaults: usize::from(f.defaults),
                returns_set: f.returns_set(),
                kind: match f.kind {
                    types::FunctionKind::Scalar => 'f',
                    types::FunctionKind::Aggregate => 'a',
                    types::FunctionKind::Window => 'w',
                },
            });
        }
    }
    out
}

fn arg_names(oid: Oid) -> Vec<&'static str> {
    if let Some(p) = types::facts::proc(oid) {
        if p.modes.is_empty() {
            return p.arg_names.to_vec();
        }
        return p
            .arg_names
            .iter()
            .zip(p.modes)
            .filter(|(_, m)| matches!(**m, "i" | "b" | "v"))
            .map(|(n, _)| *n)
            .collect();
    }
    types::registry::function(oid).map_or_else(Vec::new, |f| f.arg_names.to_vec())
}

/// Does the call itself (not something in it) yield many rows?
pub(crate) fn returns_set(e: &Expr) -> bool {
    match e {
        Expr::Call { function, .. } => function_returns_set(Oid(*function)),
        _ => false,
    }
}

pub(crate) fn function_returns_set(oid: Oid) -> bool {
    types::facts::proc(oid).map_or_else(
        || types::registry::function(oid).is_some_and(types::FunctionInfo::returns_set),
        |p| p.returns_set,
    )
}

/// A candidate for a call with a given number of arguments.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub function: Function,
    /// Declared types, one for each actual argument (a VARIADIC tail spread out, then defaults).
    pub args: Vec<Oid>,
    /// How many of the actual arguments go into the VARIADIC array (0: none).
    pub spread: usize,
    /// Arguments left to their defaults.
    pub defaulted: usize,
    /// For named notation: actual argument i goes to declared position `order[i]`.
    pub order: Option<Vec<usize>>,
}

enum Choice {
    One(Candidate),
    None,
    Ambiguous,
}

/// Keeps those candidates for which `score` is highest.
fn keep_best<C>(list: &mut Vec<C>, score: impl Fn(&C) -> usize) {
    let best = list.iter().map(&score).max().unwrap_or(0);
    list.retain(|c| score(c) == best);
}

/// PostgreSQL's `func_select_candidate`. `args(c)` are the declared types of a candidate.
fn select<C>(mut list: Vec<C>, input: &[Oid], args: impl Fn(&C) -> &[Oid]) -> Vec<C> {
    if list.len() <= 1 {
        return list;
    }
    let exact = |c: &C| args(c).iter().zip(input).filter(|(a, i)| **i != UNKNOWN && a == i).count();
    keep_best(&mut list, exact);
    if list.len() == 1 {
        return list;
    }
    let preferred = |c: &C| {
        args(c)
            .iter()
            .zip(input)
            .filter(|(a, i)| {
                **i != UNKNOWN && (a == i || (is_preferred(**a) && category(**a) == category(**i)))
            })
            .count()
    };
    keep_best(&mut list, preferred);
    if list.len() == 1 || !input.contains(&UNKNOWN) {
        return list;
    }
    let mut slots: Vec<Option<(char, bool)>> = vec![None; input.len()];
    let mut resolved = true;
    for (i, t) in input.iter().enumerate() {
        if *t != UNKNOWN {
            continue;
        }
        let mut slot: Option<(char, bool)> = None;
        let mut conflict = false;
        for c in &list {
            let declared = args(c)[i];
            let (cat, pref) = (category(declared), is_preferred(declared));
            match &mut slot {
                None => slot = Some((cat, pref)),
                Some((s, p)) if *s == cat => *p |= pref,
                Some((s, p)) if cat == 'S' => {
                    *s = 'S';
                    *p = pref;
                }
                Some(_) => conflict = true,
            }
        }
        if conflict && slot.is_some_and(|(s, _)| s != 'S') {
            resolved = false;
            break;
        }
        slots[i] = slot;
    }
    if resolved {
        let fits = |c: &C| {
            slots.iter().enumerate().all(|(i, slot)| {
                slot.is_none_or(|(cat, pref)| {
                    let t = args(c)[i];
                    category(t) == cat && (!pref || is_preferred(t))
                })
            })
        };
        if list.iter().any(fits) {
            list.retain(fits);
        }
        if list.len() == 1 {
            return list;
        }
    }
    // All known types the same: suppose the unknown ones are too.
    let mut known = input.iter().filter(|t| **t != UNKNOWN);
    if let Some(first) = known.next()
        && known.all(|t| t == first)
    {
        let fits = |c: &C| {
            let supposed = vec![*first; input.len()];
            args(c)
                .iter()
                .zip(input)
                .all(|(a, i)| *i != UNKNOWN || can_coerce(*first, *a, CastContext::Implicit))
                && settle(args(c), &supposed, UNKNOWN).is_some()
        };
        if list.iter().filter(|c| fits(c)).count() == 1 {
            list.retain(fits);
        }
    }
    list
}

/// Settles polymorphic types: the declared types made concrete, and the result. None: no fit.
pub(crate) fn settle(declared: &[Oid], actual: &[Oid], result: Oid) -> Option<(Vec<Oid>, Oid)> {
    if !declared.iter().any(|t| is_polymorphic(*t)) {
        return Some((declared.to_vec(), result));
    }
    let mut element: Option<Oid> = None;
    let mut array: Option<Oid> = None;
    let mut compatible: Vec<Oid> = Vec::new();
    let mut any_compatible = false;
    for (d, a) in declared.iter().zip(actual) {
        match *d {
            ANYELEMENT | ANYNONARRAY | ANYENUM if *a != UNKNOWN => {
                if element.is_some_and(|e| e != *a) {
                    return None;
                }
                element = Some(*a);
            }
            ANYARRAY if *a != UNKNOWN => {
                if array.is_some_and(|e| e != *a) {
                    return None;
                }
                array = Some(*a);
            }
            ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => {
                any_compatible = true;
                if *a != UNKNOWN {
                    compatible.push(*a);
                }
            }
            ANYCOMPATIBLEARRAY => {
                any_compatible = true;
                if *a != UNKNOWN {
                    compatible.push(element_type(*a)?);
                }
            }
            _ => {}
        }
    }
    if let Some(array) = array {
        let of = if array == ANYARRAY { ANYELEMENT } else { element_type(array)? };
        if element.is_some_and(|e| e != of) {
            return None;
        }
        element = Some(of);
    }
    if array.is_none() {
        array = element.and_then(array_type);
    }
    let mut common = None;
    if any_compatible {
        let mut c = *compatible.first().unwrap_or(&TEXT);
        for t in &compatible {
            if *t == c {
                continue;
            }
            if category(*t) != category(c) {
                return None;
            }
            if !is_preferred(c)
                && can_coerce(c, *t, CastContext::Implicit)
                && !can_coerce(*t, c, CastContext::Implicit)
            {
                c = *t;
            }
        }
        common = Some(c);
    }
    let concrete = |t: Oid| -> Option<Oid> {
        match t {
            ANYELEMENT | ANYNONARRAY | ANYENUM => element,
            ANYARRAY => array,
            ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => common,
            ANYCOMPATIBLEARRAY => common.and_then(array_type),
            other => Some(other),
        }
    };
    let args: Option<Vec<Oid>> = declared.iter().map(|t| concrete(*t)).collect();
    Some((args?, concrete(result)?))
}

impl Analyser<'_> {
    fn candidates(
        &self,
        schema: Option<&str>,
        fname: &str,
        nargs: usize,
        names: &[Option<String>],
        explicit_variadic: bool,
    ) -> Vec<Candidate> {
        let named = names.iter().any(Option::is_some);
        let mut out = Vec::new();
        for f in functions(schema, fname) {
            let declared = f.args.len();
            if named {
                let Some(order) = Self::named_order(&f, names) else { continue };
                let mut used = vec![false; declared];
                order.iter().for_each(|p| used[*p] = true);
                let first_default = declared - f.defaults.min(declared);
                if used.iter().take(first_default).any(|u| !u) {
                    continue;
                }
                let args = order.iter().map(|p| f.args[*p]).collect();
                out.push(Candidate {
                    function: f,
                    args,
                    spread: 0,
                    defaulted: declared - nargs,
                    order: Some(order),
                });
                continue;
            }
            if nargs == declared && (!f.variadic.is_valid() || explicit_variadic) {
                out.push(Candidate {
                    function: f,
                    args: f.args.to_vec(),
                    spread: 0,
                    defaulted: 0,
                    order: None,
                });
            } else if f.variadic.is_valid() && !explicit_variadic && nargs >= declared {
                let fixed = declared - 1;
                let mut args = f.args[..fixed].to_vec();
                args.resize(nargs, f.variadic);
                let spread = if f.variadic == ANY { 0 } else { nargs - fixed };
                out.push(Candidate { function: f, args, spread, defaulted: 0, order: None });
            } else if nargs < declared && nargs + f.defaults >= declared {
                let args = f.args[..nargs].to_vec();
                let defaulted = declared - nargs;
                out.push(Candidate { function: f, args, spread: 0, defaulted, order: None });
            } else if f.variadic == ANY && !explicit_variadic && nargs + 1 == declared {
                // json_build_object() and the like have rows of their own; nothing to spread
            }
        }
        out
    }

    fn named_order(f: &Function, names: &[Option<String>]) -> Option<Vec<usize>> {
        let declared = arg_names(f.oid);
        if declared.len() != f.args.len() || names.len() > declared.len() {
            return None;
        }
        let mut order = Vec::new();
        for (i, n) in names.iter().enumerate() {
            let p = match n {
                None => i,
                Some(n) => declared.iter().position(|d| d == n)?,
            };
            if order.contains(&p) {
                return None;
            }
            order.push(p);
        }
        Some(order)
    }

    fn choose(&self, list: Vec<Candidate>, input: &[Oid]) -> Choice {
        // Exact, and of those the ones without spreading or defaults first.
        let exact: Vec<&Candidate> = list.iter().filter(|c| c.args == input).collect();
        if let Some(c) = exact.iter().min_by_key(|c| (c.spread, c.defaulted)) {
            return Choice::One((*c).clone());
        }
        let fits: Vec<Candidate> = list
            .into_iter()
            .filter(|c| {
                c.args.iter().zip(input).all(|(d, a)| can_coerce(*a, *d, CastContext::Implicit))
                    && settle(&c.args, input, c.function.result).is_some()
                        // What is wrong then is said when the arguments are converted.
                        | c.args
                            .iter()
                            .zip(input)
                            .all(|(d, a)| !is_polymorphic(*d) || *d != ANYENUM && *a == UNKNOWN)
            })
            .collect();
        // Equal argument lists: no VARIADIC beats VARIADIC, fewer defaults beat more.
        let mut unique: Vec<Candidate> = Vec::new();
        for c in fits {
            match unique.iter_mut().find(|u| u.args == c.args) {
                Some(u) => {
                    if (c.spread, c.defaulted) < (u.spread, u.defaulted) {
                        *u = c;
                    }
                }
                None => unique.push(c),
            }
        }
        let mut best = select(unique, input, |c| &c.args);
        match best.len() {
            0 => Choice::None,
            1 => Choice::One(best.swap_remove(0)),
            _ => Choice::Ambiguous,
        }
    }

    /// The candidate for a call; None if there is no such function at all.
    pub fn find_function(
        &self,
        fname: &[String],
        input: &[Oid],
        names: &[Option<String>],
        explicit_variadic: bool,
        loc: Loc,
    ) -> Result<Option<Candidate>> {
        let (schema, bare) = match fname {
            [n] => (None, n.as_str()),
            [.., s, n] => (Some(s.as_str()), n.as_str()),
            [] => (None, ""),
        };
        if input.len() > 100 {
            let too_many = SqlState(*b"54023");
            let e = SqlError::new(too_many, "cannot pass more than 100 arguments to a function");
            return self.at(loc, e.into());
        }
        let mut list = Vec::new();
        for c in self.candidates(schema, bare, input.len(), names, explicit_variadic) {
            if self.catalog.function_is_visible(c.function.oid)? {
                list.push(c);
            }
        }
        match self.choose(list, input) {
            Choice::One(c) => Ok(Some(c)),
            Choice::None => Ok(None),
            Choice::Ambiguous => {
                let e = SqlError::new(
                    SqlState::AMBIGUOUS_FUNCTION,
                    format!(
                        "function {} is not unique",
                        self.signature(&fname.join("."), input, names)
                    ),
                )
                .hint(
                    "Could not choose a best candidate function. You might need to add explicit \
                     type casts.",
                );
                self.at(loc, e.into())
            }
        }
    }

    pub fn no_function<T>(
        &self,
        fname: &[String],
        input: &[Oid],
        names: &[Option<String>],
        loc: Loc,
    ) -> Result<T> {
        let missing = match fname {
            [f] => types::left_out::feature_of(f),
            [s, f] if s == "pg_catalog" => types::left_out::feature_of(f),
            _ => None,
        };
        if let Some(feature) = missing {
            let what = format!("function {} ({feature})", fname.join("."));
            return self.at(loc, base::Error::unsupported(what));
        }
        let e = SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {} does not exist", self.signature(&fname.join("."), input, names)),
        )
        .hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        );
        self.at(loc, e.into())
    }

    /// `f(integer, unknown)`
    pub(super) fn signature(&self, fname: &str, input: &[Oid], names: &[Option<String>]) -> String {
        let args: Vec<String> = input
            .iter()
            .enumerate()
            .map(|(i, t)| match names.get(i).and_then(Option::as_ref) {
                Some(n) => format!("{n} => {}", self.type_name_of(*t)),
                None => self.type_name_of(*t),
            })
            .collect();
        format!("{fname}({})", args.join(", "))
    }

    /// The arguments converted to what the candidate declares, VARIADIC tail gathered, defaults
    /// filled in; their types; the result's type.
    pub fn arguments(
        &mut self,
        c: &Candidate,
        args: Vec<(Expr, Loc)>,
    ) -> Result<(Vec<Expr>, Vec<TypeRef>, Oid)> {
        let input: Vec<Oid> = args.iter().map(|(e, _)| e.ty().oid).collect();
        let Some((declared, result)) = settle(&c.args, &input, c.function.result) else {
            let e = err!(
                DATATYPE_MISMATCH,
                "could not determine polymorphic type because input has type unknown"
            );
            return Err(e);
        };
        let mut out = Vec::with_capacity(args.len());
        for ((e, at), ty) in args.into_iter().zip(&declared) {
            // A function that takes one value of any type whatever is told that the type is not known.
            if *ty == ANY && c.function.variadic != ANY && matches!(e, Expr::Const(_)) {
                out.push(e);
                continue;
            }
            out.push(self.argument(e, *ty, at)?);
        }
        if c.spread > 0 {
            let tail = out.split_off(out.len() - c.spread);
            let element = declared[declared.len() - 1];
            let ty = array_type(element).unwrap_or(TEXT_ARRAY);
            out.push(Expr::Array {
                elements: tail,
                element_type: TypeRef::of(element),
                multidim: false,
                ty: TypeRef::of(ty),
            });
        }
        if let Some(order) = &c.order {
            let mut slots: Vec<Option<Expr>> = vec![None; c.function.args.len()];
            for (e, p) in out.into_iter().zip(order) {
                slots[*p] = Some(e);
            }
            let mut filled = Vec::new();
            for (i, s) in slots.into_iter().enumerate() {
                filled.push(match s {
                    Some(e) => e,
                    None => default_argument(&c.function, i)?,
                });
            }
            out = filled;
        } else if c.defaulted > 0 {
            for i in c.function.args.len() - c.defaulted..c.function.args.len() {
                out.push(default_argument(&c.function, i)?);
            }
        }
        // Only pg_typeof is told of domains.
        let types = out.iter().map(Expr::ty).collect();
        Ok((out.into_iter().map(Expr::plain).collect(), types, result))
    }

    fn argument(&mut self, e: Expr, ty: Oid, loc: Loc) -> Result<Expr> {
        if ty == ANY {
            // format('%s', 'x'): unknown stays what it is for "any", as text
            return self.known(e, loc);
        }
        if is_polymorphic(ty) {
            return self.known(e, loc);
        }
        self.coerce_implicit(e, ty, loc)
    }

    /// A plain call of a function by name, arguments known to fit.
    pub fn call_named(
        &mut self,
        fname: &str,
        args: Vec<(Expr, Loc)>,
        form: CallForm,
        loc: Loc,
    ) -> Result<Expr> {
        let names = [String::from("pg_catalog"), fname.to_owned()];
        let input: Vec<Oid> = args.iter().map(|(e, _)| e.ty().oid).collect();
        let Some(c) = self.find_function(&names, &input, &[], false, loc)? else {
            return self.no_function(&names, &input, &[], loc);
        };
        let (args, arg_types, result) = self.arguments(&c, args)?;
        Ok(Expr::Call {
            function: c.function.oid.0,
            args,
            arg_types,
            ty: TypeRef::of(result),
            operator: 0,
            form,
        })
    }

    /// The operator for these operand types (`left` None: prefix).
    pub fn find_operator(
        &self,
        op: &OpName,
        left: Option<Oid>,
        right: Oid,
        loc: Loc,
    ) -> Result<&'static OperatorInfo> {
        let all: &[&'static OperatorInfo] = match op.schema.as_deref() {
            None | Some("pg_catalog") => operators_by_name(&op.name),
            Some(_) => &[],
        };
        let Some(l) = left else { return self.find_prefix(op, all, right, loc) };
        // One side unknown: suppose it is like the other.
        let (a, b) = match (l == UNKNOWN, right == UNKNOWN) {
            (true, false) => (right, right),
            (false, true) => (l, l),
            _ => (l, right),
        };
        if let Some(o) = all.iter().find(|o| o.kind == 'b' && o.left == a && o.right == b) {
            return Ok(o);
        }
        let fits: Vec<(&'static OperatorInfo, [Oid; 2])> = all
            .iter()
            .filter(|o| {
                o.kind == 'b'
                    && can_coerce(l, o.left, CastContext::Implicit)
                    && can_coerce(right, o.right, CastContext::Implicit)
                    && (settle(&[o.left, o.right], &[l, right], o.result).is_some()
                        || (l == UNKNOWN && right == UNKNOWN))
            })
            .map(|o| (*o, [o.left, o.right]))
            .collect();
        let best = select(fits, &[l, right], |c| &c.1);
        match best.len() {
            1 => Ok(best[0].0),
            n => {
                let text =
                    format!("{} {} {}", self.type_name_of(l), op.name, self.type_name_of(right));
                self.operator_error(&text, false, n > 1, loc)
            }
        }
    }

    fn find_prefix(
        &self,
        op: &OpName,
        all: &[&'static OperatorInfo],
        right: Oid,
        loc: Loc,
    ) -> Result<&'static OperatorInfo> {
        if let Some(o) = all.iter().find(|o| o.kind == 'l' && o.right == right) {
            return Ok(o);
        }
        let fits: Vec<(&'static OperatorInfo, [Oid; 1])> = all
            .iter()
            .filter(|o| o.kind == 'l' && can_coerce(right, o.right, CastContext::Implicit))
            .map(|o| (*o, [o.right]))
            .collect();
        let best = select(fits, &[right], |c| &c.1);
        match best.len() {
            1 => Ok(best[0].0),
            n => self.operator_error(
                &format!("{} {}", op.name, self.type_name_of(right)),
                true,
                n > 1,
                loc,
            ),
        }
    }

    fn operator_error<T>(&self, what: &str, prefix: bool, ambiguous: bool, loc: Loc) -> Result<T> {
        let e = if ambiguous {
            SqlError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("operator is not unique: {what}"),
            )
            .hint(
                "Could not choose a best candidate operator. You might need to add explicit type \
                 casts.",
            )
        } else {
            let hint = if prefix {
                "No operator matches the given name and argument type. You might need to add an \
                 explicit type cast."
            } else {
                "No operator matches the given name and argument types. You might need to add \
                 explicit type casts."
            };
            SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {what}"))
                .hint(hint)
        };
        self.at(loc, e.into())
    }

    /// `left op right`.
    pub fn binary(
        &mut self,
        op: &OpName,
        left: (Expr, Loc),
        right: (Expr, Loc),
        loc: Loc,
    ) -> Result<Expr> {
        let (lt, rt) = (left.0.ty().oid, right.0.ty().oid);
        let o = self.find_operator(op, Some(lt), rt, loc)?;
        let Some((declared, result)) = settle(&[o.left, o.right], &[lt, rt], o.result) else {
            let text = format!("{} {} {}", self.type_name_of(lt), op.name, self.type_name_of(rt));
            return self.operator_error(&text, false, false, loc);
        };
        let l = self.argument(left.0, declared[0], left.1)?;
        let r = self.argument(right.0, declared[1], right.1)?;
        let arg_types = vec![l.ty(), r.ty()];
        Ok(Expr::Call {
            function: o.function.0,
            args: vec![l, r],
            arg_types,
            ty: TypeRef::of(result),
            operator: o.oid.0,
            form: CallForm::Operator,
        })
    }

    /// `op right`.
    pub fn prefix(&mut self, op: &OpName, right: (Expr, Loc), loc: Loc) -> Result<Expr> {
        let o = self.find_operator(op, None, right.0.ty().oid, loc)?;
        let r = self.argument(right.0, o.right, right.1)?;
        let arg_types = vec![r.ty()];
        Ok(Expr::Call {
            function: o.function.0,
            args: vec![r],
            arg_types,
            ty: TypeRef::of(o.result),
            operator: o.oid.0,
            form: CallForm::Operator,
        })
    }
}

fn default_argument(f: &Function, index: usize) -> Result<Expr> {
    let ty = f.args[index];
    let from_first = index + f.defaults - f.args.len();
    if let Some(info) = types::registry::function(f.oid)
        && let Some(v) = info.default_values.get(from_first)
    {
        return Ok(super::coerce::constant(ty, v.clone()));
    }
    let text = types::facts::proc(f.oid)
        .and_then(|p| p.default_text.split('|').nth(from_first))
        .unwrap_or("NULL");
    let text = text.split("::").next().unwrap_or(text).trim();
    let text = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text);
    let value = if text == "NULL" {
        types::Datum::Null
    } else {
        types::text_input(ty, -1, text, &types::env::PlainEnv)?
    };
    Ok(super::coerce::constant(ty, value))
}
