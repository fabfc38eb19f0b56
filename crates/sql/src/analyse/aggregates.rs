//! Function calls: scalar, set-returning, aggregate and window.

use super::calls::{functions, returns_set};
use super::coerce::can_coerce;
use super::{Analyser, Clause};
use crate::parse::ast::{self, ExprKind, FuncCall, Loc};
use crate::plan::query_walk::{query_any, shift_query_levels};
use crate::query::{Query, RteKind};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::tree::{AggregateCall, CallForm, SortKey, WindowCall};
use expr::{Expr, TypeRef};
use types::facts::{CastContext, aggregate};
use types::oids::{RECORD, UNKNOWN, VOID};
use types::registry;
use types::typename::type_by_typname;

/// The nearest levels that what an aggregate is made of reaches, counted from the query that it is written in.
#[derive(Default)]
pub(super) struct Reach<'q> {
    /// Of columns and aggregates.
    pub least: Option<u32>,
    /// Of WITH queries that its sub-selects read, with the name that such a one has there.
    with: Option<(u32, &'q str)>,
}

impl<'q> Reach<'q> {
    pub fn of<'e>(list: impl Iterator<Item = &'e Expr>, subs: &'q [Query]) -> Reach<'q> {
        let mut reach = Reach::default();
        list.for_each(|e| reach.expr(e, subs));
        reach
    }

    fn note(&mut self, level: u32) {
        self.least = Some(self.least.map_or(level, |l| l.min(level)));
    }

    fn expr(&mut self, e: &Expr, subs: &'q [Query]) {
        match e {
            Expr::Var { levels_up, .. } => self.note(*levels_up),
            // What it is made of is of that level, or further out.
            Expr::Aggregate(a) if a.levels_up > 0 => self.note(a.levels_up),
            Expr::Aggregate(_) => self.note(0),
            Expr::SubLink { subquery, .. } => {
                if let Some(sub) = subs.get(*subquery) {
                    self.sub_select(sub);
                }
            }
            _ => {}
        }
        if !of_query_around(e) {
            e.for_children(&mut |c| self.expr(c, subs));
        }
    }

    /// What a sub-select takes from around it counts, seen from there.
    fn sub_select(&mut self, sub: &'q Query) {
        query_any(sub, &mut |e, depth| {
            match e {
                Expr::Var { levels_up, .. } if *levels_up > depth => {
                    self.note(levels_up - depth - 1)
                }
                Expr::Aggregate(a) if a.levels_up > depth => self.note(a.levels_up - depth - 1),
                _ => {}
            }
            false
        });
        self.with_queries(sub, 1);
    }

    fn with_queries(&mut self, q: &'q Query, depth: u32) {
        for entry in &q.range_table {
            if let RteKind::Cte { levels_up, .. } = &entry.kind
                && let Some(level) = levels_up.checked_sub(depth)
                && self.with.is_none_or(|(l, _)| l > level)
            {
                self.with = Some((level, entry.alias.as_str()));
            }
            if let RteKind::Subquery { query, .. } = &entry.kind {
                self.with_queries(query, depth + 1);
            }
        }
        q.ctes.iter().for_each(|c| self.with_queries(&c.query, depth + 1));
        q.sub_selects.iter().for_each(|sub| self.with_queries(sub, depth + 1));
    }
}

/// An aggregate of a query around: the numbers of the sub-selects in it are that query's.
pub(super) fn of_query_around(e: &Expr) -> bool {
    matches!(e, Expr::Aggregate(a) if a.levels_up > 0)
}

const MOVE_THE_SET: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Sets in the arguments of a call over many rows.
fn sets_within(kind: &str) -> base::Error {
    let text = format!("{kind} function calls cannot contain set-returning function calls");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).hint(MOVE_THE_SET).into()
}

/// Is there an aggregate of this level in it, or in its sub-selects?
fn aggregates_at(e: &Expr, level: u32, subs: &[Query]) -> bool {
    let found = match e {
        Expr::Aggregate(a) => a.levels_up == level,
        Expr::SubLink { subquery, .. } => subs.get(*subquery).is_some_and(|sub| {
            query_any(
                sub,
                &mut |e, depth| matches!(e, Expr::Aggregate(a) if a.levels_up == level + depth + 1),
            )
        }),
        _ => false,
    };
    if found || of_query_around(e) {
        return found;
    }
    let mut within = false;
    e.for_children(&mut |c| within = within || aggregates_at(c, level, subs));
    within
}

/// The schema that the call names.
fn call_schema(call: &FuncCall) -> Option<&str> {
    match call.name.as_slice() {
        [.., s, _] => Some(s.as_str()),
        _ => None,
    }
}

/// The function whose name is a type's and which converts from the type, or from a string.
fn names_a_cast(bare: &str, from: Oid) -> bool {
    let Some(ty) = type_by_typname(bare) else { return false };
    let text = |t: Oid| super::coerce::category(t) == 'S';
    from == UNKNOWN
        || from == ty.oid
        || match registry::cast(from, ty.oid) {
            Some(c) => !matches!(c.method, types::facts::CastMethod::Function(_)),
            None => text(from) && from != RECORD || text(ty.oid) && from != RECORD,
        }
}

impl Analyser<'_> {
    pub fn call(&mut self, call: &FuncCall, loc: Loc) -> Result<Expr> {
        let bare = call.name.last().map_or("", String::as_str);
        if call.sql_syntax && bare == "merge_action" {
            return self.merge_action(loc);
        }
        let maybe_aggregate =
            call.over.is_none() && functions(call_schema(call), bare).iter().any(|f| f.kind == 'a');
        let saved = self.level().in_aggregate;
        if maybe_aggregate {
            self.level().in_aggregate = true;
        }
        let r = self.call_inner(call, bare, loc);
        self.level().in_aggregate = saved;
        r
    }

    /// An argument of a function; pg_typeof wants to know if it is said to be of a domain.
    fn arg(&mut self, e: &ast::Expr, function: &str) -> Result<Expr> {
        if matches!(&e.kind, ExprKind::Star(names) if names.is_empty()) {
            return self.at(e.loc, err!(SYNTAX_ERROR, "syntax error at or near \"*\""));
        }
        if function == "pg_typeof" {
            return self.declared_expr(e);
        }
        self.expr(e)
    }

    /// `t.*` where one value is wanted, not a list: the whole row.
    pub(super) fn whole_row_star(&mut self, names: &[String], loc: Loc) -> Result<Expr> {
        let (schema, table) = match names {
            [t] => (None, t.as_str()),
            [.., s, t] => (Some(s.as_str()), t.as_str()),
            [] => return self.at(loc, err!(SYNTAX_ERROR, "invalid use of \"*\"")),
        };
        self.column_allowed(loc)?;
        let in_query = |a: &mut Self| match a.find_item(schema, table, loc)? {
            Some((up, i)) => Ok(a.whole_row(up, i, loc)),
            None => a.no_table(table, loc),
        };
        self.or_outer(names, true, loc, in_query, |_, found| Ok(found.plain()))
    }

    fn call_inner(&mut self, call: &FuncCall, bare: &str, loc: Loc) -> Result<Expr> {
        let first_sub = self.level().sub_selects.len();
        let mut args = Vec::with_capacity(call.args.len());
        let mut names: Vec<Option<String>> = Vec::new();
        for a in &call.args {
            args.push((self.arg(&a.value, bare)?, a.value.loc));
            if a.name.is_some() || !names.is_empty() {
                names.resize(args.len() - 1, None);
                if a.name.is_none() {
                    let e = err!(SYNTAX_ERROR, "positional argument cannot follow named argument");
                    return self.at(a.value.loc, e);
                }
                if let Some(name) = a.name.as_ref().filter(|_| names.contains(&a.name)) {
                    let e = err!(SYNTAX_ERROR, "argument name \"{name}\" used more than once");
                    return self.at(a.value.loc, e);
                }
                names.push(a.name.clone());
            }
        }
        // JDBC passes a parameter of type void in the place of what is to be returned.
        if names.is_empty() {
            args.retain(|(e, _)| !matches!(e, Expr::Param { ty, .. } if ty.oid == VOID));
        }
        let direct = args.len();
        let filter = match &call.filter {
            None => None,
            Some(f) => {
                let clause = self.enter(Clause::Filter);
                let e = self.expr(f)?;
                let e = self.boolean(e, "FILTER", f.loc)?;
                self.enter(clause);
                Some(Box::new(e))
            }
        };
        let mut order_by = Vec::new();
        for s in &call.order_by {
            self.ordering_operator(s)?;
            // What is aggregated is an argument: a literal becomes what the function takes.
            let e = if call.within_group {
                let e = self.expr(&s.expr)?;
                args.push((e.clone(), s.expr.loc));
                e
            } else {
                self.known_expr(&s.expr)?
            };
            order_by.push(SortKey {
                expr: e,
                descending: s.descending,
                nulls_first: s.nulls_first.unwrap_or(s.descending),
            });
        }
        let input: Vec<Oid> = args.iter().map(|(e, _)| e.ty().oid).collect();
        // `type(x)` is a cast unless there is such a function for exactly x's type.
        if let [from] = input[..]
            && names.is_empty()
            && names_a_cast(bare, from)
            && !functions(call_schema(call), bare).iter().any(|f| f.args == [from])
            && let Some(e) = self.cast_call(call, bare, &args, loc)?
        {
            return Ok(e);
        }
        let function = super::json::function_name(call, &input);
        let found = self.find_function(&function, &input, &names, call.variadic, loc)?;
        let Some(c) = found else {
            if let Some(e) = self.cast_call(call, bare, &args, loc)? {
                return Ok(e);
            }
            if let Some(e) = self.column_call(call, bare, &args) {
                return Ok(e);
            }
            return self.no_function(&call.name, &input, &names, loc);
        };
        let kind = c.function.kind;
        if kind == 'f' {
            self.only_for_aggregates(call, bare, loc)?;
        }
        if kind == 'w' && call.over.is_none() {
            let e = err!(WRONG_OBJECT_TYPE, "window function {bare} requires an OVER clause");
            return self.at(loc, e);
        }
        if kind == 'a' && args.is_empty() && !call.star && !call.within_group {
            let e = err!(
                WRONG_OBJECT_TYPE,
                "{bare}(*) must be used to call a parameterless aggregate function"
            );
            return self.at(loc, e);
        }
        let fact = aggregate(c.function.oid);
        if kind == 'a' {
            let ordered_set = fact.is_some_and(|f| f.kind != 'n');
            if ordered_set && !call.within_group {
                let e = err!(
                    WRONG_OBJECT_TYPE,
                    "WITHIN GROUP is required for ordered-set aggregate {bare}"
                );
                return self.at(loc, e);
            }
            if !ordered_set && call.within_group {
                let e = err!(
                    WRONG_OBJECT_TYPE,
                    "{bare} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                );
                return self.at(loc, e);
            }
        }
        let spread = call.variadic && c.function.variadic == types::oids::ANY;
        if spread
            && let Some((last, at)) = args.last()
            && !types::type_info(last.ty().oid).is_some_and(types::facts::TypeInfo::is_array)
        {
            let e = err!(DATATYPE_MISMATCH, "VARIADIC argument must be an array");
            return self.at(*at, e);
        }
        let mut args = args;
        if fact.is_some_and(|f| f.kind == 'h') && args.len() == 2 * direct {
            // A literal is of the type of what it is compared with.
            for i in 0..direct {
                let ty = args[direct + i].0.ty().oid;
                if args[i].0.ty().oid == UNKNOWN && ty != UNKNOWN {
                    let (e, at) = args[i].clone();
                    args[i].0 = self.coerce_implicit(e, ty, at)?;
                }
            }
        }
        let (mut args, mut arg_types, result) = self.arguments(&c, args)?;
        if (call.distinct || call.within_group) && kind == 'a' {
            // What is compared is of a type.
            for (i, a) in args.iter_mut().enumerate() {
                *a = self.known(a.clone(), loc)?;
                if let Some(ty) = arg_types.get_mut(i) {
                    *ty = a.ty();
                }
            }
        }
        if kind == 'a' && fact.is_some_and(|f| f.kind == 'h') {
            self.hypothetical(call, &mut args, direct, loc)?;
            arg_types = args.iter().map(Expr::ty).collect();
        }
        if spread {
            arg_types.push(TypeRef::of(types::oids::ANY));
        }
        let ty = TypeRef::of(result);
        if call.over.is_some() {
            return self.window_call(call, c.function.oid, args, arg_types, ty, filter, bare, loc);
        }
        if kind == 'a' {
            if call.within_group {
                for (key, a) in order_by.iter_mut().zip(&args[direct..]) {
                    key.expr = a.clone();
                }
            } else {
                // An argument that is cast to its parameter's type is what ORDER BY means by it.
                for key in &mut order_by {
                    if !args.contains(&key.expr)
                        && let Some(a) = args.iter().find(|a| uncast(a) == &key.expr)
                    {
                        key.expr = a.clone();
                    }
                }
                for (key, s) in order_by.iter().zip(&call.order_by) {
                    self.must_be_sortable(key.expr.ty().oid, s.expr.loc)?;
                }
            }
            if call.distinct {
                self.check_distinct(call, &args, &order_by, loc)?;
            }
            let aggregate = AggregateCall {
                function: c.function.oid.0,
                args,
                arg_types,
                ty,
                star: call.star,
                distinct: call.distinct,
                order_by,
                filter,
                direct_args: if call.within_group { direct } else { 0 },
                levels_up: 0,
            };
            return self.aggregate_call(aggregate, first_sub, loc);
        }
        let form = if call.sql_syntax { CallForm::SqlSyntax } else { CallForm::Function };
        let e = Expr::Call { function: c.function.oid.0, args, arg_types, ty, operator: 0, form };
        if c.function.returns_set {
            self.set_allowed(loc)?;
        }
        self.with_template(e)
    }

    /// The arguments of a row that is not there are of the types that rows are sorted by.
    fn hypothetical(
        &mut self,
        call: &FuncCall,
        args: &mut [Expr],
        direct: usize,
        loc: Loc,
    ) -> Result<()> {
        let (asked, sorted) = args.split_at_mut(direct);
        if asked.len() != sorted.len() {
            let input: Vec<Oid> = asked.iter().chain(&*sorted).map(|a| a.ty().oid).collect();
            let text = self.signature(&call.name.join("."), &input, &[]);
            let bare = call.name.last().map_or("", String::as_str);
            let e = SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {text} does not exist"),
            )
            .hint(format!(
                "To use the hypothetical-set aggregate {bare}, the number of hypothetical direct \
                 arguments (here {}) must match the number of ordering columns (here {}).",
                asked.len(),
                sorted.len()
            ));
            return self.at(loc, e.into());
        }
        for (a, s) in asked.iter_mut().zip(sorted) {
            let (from, to) = (a.ty().oid, s.ty().oid);
            if from == to {
                continue;
            }
            if from == UNKNOWN || can_coerce(from, to, CastContext::Implicit) {
                *a = self.coerce_implicit(a.clone(), to, loc)?;
            } else if can_coerce(to, from, CastContext::Implicit) {
                *s = self.coerce_implicit(s.clone(), from, loc)?;
            } else {
                let e = err!(
                    DATATYPE_MISMATCH,
                    "WITHIN GROUP types {} and {} cannot be matched",
                    self.type_name_of(to),
                    self.type_name_of(from)
                );
                return self.at(loc, e);
            }
        }
        Ok(())
    }

    fn only_for_aggregates(&self, call: &FuncCall, bare: &str, loc: Loc) -> Result<()> {
        let what = if call.star {
            format!("{bare}(*) specified, but {bare} is not an aggregate function")
        } else if call.distinct {
            format!("DISTINCT specified, but {bare} is not an aggregate function")
        } else if call.within_group {
            format!("WITHIN GROUP specified, but {bare} is not an aggregate function")
        } else if !call.order_by.is_empty() {
            format!("ORDER BY specified, but {bare} is not an aggregate function")
        } else if call.filter.is_some() {
            format!("FILTER specified, but {bare} is not an aggregate function")
        } else if call.over.is_some() {
            format!("OVER specified, but {bare} is not a window function nor an aggregate function")
        } else {
            return Ok(());
        };
        self.at(loc, err!(WRONG_OBJECT_TYPE, "{what}"))
    }

    /// Analyses an expression that evaluates only some of its parts: sets in those would be rows or not.
    pub fn without_sets<T>(
        &mut self,
        what: &str,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.level().last_set.take();
        let made = f(self)?;
        if let Some(loc) = self.level().last_set {
            let e = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("set-returning functions are not allowed in {what}"),
            )
            .hint(MOVE_THE_SET);
            return self.at(loc, e.into());
        }
        self.level().last_set = before;
        Ok(made)
    }

    fn set_allowed(&mut self, loc: Loc) -> Result<()> {
        let clause = self.clause();
        if self.level().in_aggregate {
            return self.at(loc, sets_within("aggregate"));
        }
        if !clause.allows_sets() {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "set-returning functions are not allowed in {}",
                clause.whole().noun()
            );
            return self.at(loc, e);
        }
        if clause != Clause::From {
            self.level().has_sets = true;
            self.level().last_set = Some(loc);
        }
        Ok(())
    }

    fn check_distinct(
        &mut self,
        call: &FuncCall,
        args: &[Expr],
        order_by: &[SortKey],
        loc: Loc,
    ) -> Result<()> {
        if call.args.is_empty() {
            let e = err!(
                SYNTAX_ERROR,
                "DISTINCT specified, but {} has no arguments",
                call.name.last().map_or("", String::as_str)
            );
            return self.at(loc, e);
        }
        for (a, x) in args.iter().zip(&call.args) {
            self.must_be_equatable(a.ty().oid, x.value.loc)?;
        }
        for (k, s) in order_by.iter().zip(&call.order_by) {
            if !args.contains(&k.expr) {
                let e = err!(
                    INVALID_COLUMN_REFERENCE,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument \
                     list"
                );
                return self.at(s.expr.loc, e);
            }
        }
        Ok(())
    }

    /// `column(row)` as that column of the row.
    fn column_call(&self, call: &FuncCall, bare: &str, args: &[(Expr, Loc)]) -> Option<Expr> {
        let [(row, _)] = args else { return None };
        let plain = !call.star
            && !call.distinct
            && !call.variadic
            && call.over.is_none()
            && call.filter.is_none()
            && call.order_by.is_empty()
            && call.name.len() == 1
            && call.args.iter().all(|a| a.name.is_none());
        if !plain {
            return None;
        }
        let columns = self.record_columns(row)?;
        let index = columns.iter().position(|(n, _)| n == bare)?;
        Some(self.field_of(row, index, &columns))
    }

    /// `type(x)` as a cast.
    fn cast_call(
        &mut self,
        call: &FuncCall,
        bare: &str,
        args: &[(Expr, Loc)],
        loc: Loc,
    ) -> Result<Option<Expr>> {
        let [(arg, at)] = args else { return Ok(None) };
        let plain = !call.star
            && !call.distinct
            && call.over.is_none()
            && call.filter.is_none()
            && call.args.iter().all(|a| a.name.is_none());
        let schema_ok = call.name.len() == 1 || call.name[0] == "pg_catalog";
        if !plain || !schema_ok {
            return Ok(None);
        }
        let Some(ty) = type_by_typname(bare) else { return Ok(None) };
        if !can_coerce(arg.ty().oid, ty.oid, CastContext::Explicit) {
            return Ok(None);
        }
        let e = self.coerce(
            arg.clone(),
            TypeRef::of(ty.oid),
            CastContext::Explicit,
            true,
            if arg.ty().oid == types::oids::UNKNOWN { *at } else { loc },
        )?;
        Ok(Some(e))
    }

    /// An aggregate belongs to the nearest query whose columns it is made of. `first_sub`: the first of the sub-selects in it.
    fn aggregate_call(&mut self, mut a: AggregateCall, first_sub: usize, loc: Loc) -> Result<Expr> {
        let filter = a.filter.as_deref();
        let (direct, aggregated) = a.args.split_at(a.direct_args);
        let over = || aggregated.iter().chain(a.order_by.iter().map(|k| &k.expr)).chain(filter);
        let parts = || direct.iter().chain(over());
        let depth = self.levels.len() as u32 - 1;
        let subs = &self.levels[depth as usize].sub_selects;
        let reach = Reach::of(over(), subs);
        let up = reach.least.unwrap_or(0).min(depth);
        if let Some((_, name)) = reach.with.filter(|(level, _)| *level < up) {
            let e = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "outer-level aggregate cannot use a nested CTE",
            )
            .detail(format!("CTE \"{name}\" is below the aggregate's semantic level."));
            return self.at(loc, e.into());
        }
        if Reach::of(direct.iter(), subs).least.is_some_and(|l| l < up) {
            let e = err!(
                GROUPING_ERROR,
                "outer-level aggregate cannot contain a lower-level variable in its direct \
                 arguments"
            );
            return self.at(loc, e);
        }
        for e in parts() {
            if aggregates_at(e, up, subs) {
                let e = err!(GROUPING_ERROR, "aggregate function calls cannot be nested");
                let inner = self.levels[self.levels.len() - 1 - up as usize].last_aggregate;
                return self.at(inner, e);
            }
            if e.any(&mut |e| matches!(e, Expr::Window(_))) {
                let e = err!(
                    GROUPING_ERROR,
                    "aggregate function calls cannot contain window function calls"
                );
                return self.at(loc, e);
            }
            if e.any(&mut |e| returns_set(e)) {
                return self.at(loc, sets_within("aggregate"));
            }
        }
        a.levels_up = up;
        let at = self.levels.len() - 1 - up as usize;
        let clause = self.levels[at].clause;
        if !clause.allows_aggregates() {
            let e =
                err!(GROUPING_ERROR, "aggregate functions are not allowed in {}", clause.noun());
            return self.at(loc, e);
        }
        self.levels[at].has_aggregates = true;
        self.levels[at].last_aggregate = loc;
        let mut made = Expr::Aggregate(Box::new(a));
        if up > 0 {
            self.hand_out(&mut made, first_sub, up);
        }
        Ok(made)
    }

    /// Gives the sub-selects in an aggregate to the query that it belongs to, `up` levels out.
    fn hand_out(&mut self, aggregate: &mut Expr, first_sub: usize, up: u32) {
        let subs = self.level().sub_selects.split_off(first_sub);
        let owner = self.levels.len() - 1 - up as usize;
        let known = &mut self.levels[owner].sub_selects;
        let mut numbers = Vec::with_capacity(subs.len());
        for mut sub in subs {
            shift_query_levels(&mut sub, 1, -(up as i32));
            // What was written twice, in two queries within that one, is to be known as the same.
            let number = known.iter().position(|k| *k == sub).unwrap_or(known.len());
            if number == known.len() {
                known.push(sub);
            }
            numbers.push(number);
        }
        aggregate.for_children_mut(&mut |part| {
            part.rewrite(&mut |e| {
                if let Expr::SubLink { subquery, .. } = e {
                    *subquery = numbers[*subquery - first_sub];
                }
                of_query_around(e)
            });
        });
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one call, used once")]
    fn window_call(
        &mut self,
        call: &FuncCall,
        function: Oid,
        args: Vec<Expr>,
        arg_types: Vec<TypeRef>,
        ty: TypeRef,
        filter: Option<Box<Expr>>,
        bare: &str,
        loc: Loc,
    ) -> Result<Expr> {
        let clause = self.clause();
        if !clause.allows_windows() {
            let noun = clause.whole().noun();
            let e = err!(WINDOWING_ERROR, "window functions are not allowed in {noun}");
            return self.at(loc, e);
        }
        if call.distinct {
            let e = err!(FEATURE_NOT_SUPPORTED, "DISTINCT is not implemented for window functions");
            return self.at(loc, e);
        }
        if !call.order_by.is_empty() {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "aggregate ORDER BY is not implemented for window functions"
            );
            return self.at(loc, e);
        }
        if filter.is_some() && aggregate(function).is_none() {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "FILTER is not implemented for non-aggregate window functions"
            );
            return self.at(loc, e);
        }
        if args.iter().any(|e| e.any(&mut |e| matches!(e, Expr::Window(_)))) {
            let e = err!(WINDOWING_ERROR, "window function calls cannot be nested");
            return self.at(loc, e);
        }
        let _ = bare;
        if args.iter().any(|e| e.any(&mut returns_set)) {
            let at = self.level().last_set.unwrap_or(loc);
            return self.at(at, sets_within("window"));
        }
        let window = match &call.over {
            Some(over) => self.over(over)?,
            None => return self.at(loc, err!(INTERNAL_ERROR, "no window")),
        };
        self.level().has_windows = true;
        Ok(Expr::Window(Box::new(WindowCall {
            function: function.0,
            args,
            arg_types,
            ty,
            filter,
            star: call.star,
            window,
        })))
    }

    /// GROUPING(…): settled when GROUP BY is known.
    pub fn grouping(&mut self, args: &[ast::Expr], loc: Loc) -> Result<Expr> {
        if args.len() > 31 {
            let e = err!(TOO_MANY_ARGUMENTS, "GROUPING must have fewer than 32 arguments");
            return self.at(loc, e);
        }
        let clause = self.clause();
        if !clause.allows_aggregates() {
            let e =
                err!(GROUPING_ERROR, "grouping operations are not allowed in {}", clause.noun());
            return self.at(loc, e);
        }
        let saved = std::mem::replace(&mut self.level().in_aggregate, true);
        let made: Result<Vec<Expr>> = args.iter().map(|a| self.known_expr(a)).collect();
        self.level().in_aggregate = saved;
        let made = made?;
        let list = &mut self.level().groupings;
        // What is written twice is one expression.
        let number = list.iter().position(|(args, _)| *args == made).unwrap_or(list.len());
        if number == list.len() {
            list.push((made, args.iter().map(|a| a.loc).collect()));
        }
        Ok(Expr::Grouping(vec![number]))
    }
}

/// What stands below the casts that nobody wrote.
fn uncast(e: &Expr) -> &Expr {
    match e {
        Expr::Call { args, form: CallForm::ImplicitCast, .. } => args.first().map_or(e, uncast),
        Expr::Relabel { arg, explicit: false, .. }
        | Expr::CoerceViaIo { arg, explicit: false, .. } => uncast(arg),
        _ => e,
    }
}
