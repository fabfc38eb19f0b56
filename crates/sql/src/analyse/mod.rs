//! Syntax tree → [`Query`]: names resolved, types, casts, functions and operators settled as
//! PostgreSQL settles them.
//!
//! # Layout
//! [`scope`] finds columns, [`coerce`] converts between types, [`calls`] chooses functions and operators,
//! [`exprs`] and its siblings transform expressions, [`from`] the FROM clause, [`select`] and [`dml`] whole
//! statements, [`grouping`] checks what GROUP BY allows.
//!
//! # Invariants
//! The result refers to nothing but OIDs and range-table positions. `Var`s never refer to a join's own
//! range-table entry: they are already what the join's column stands for.

mod aggregates;
mod calls;
mod coerce;
pub(crate) mod collation;
mod comparisons;
mod dml;
mod dml_parts;
mod domains;
pub(crate) use coerce::is_composite;
pub(crate) use domains::column_default;
mod exprs;
pub(crate) mod from;
mod group_by;
mod grouping;
mod json;
mod json_table;
mod locking;
mod merge;
mod names;
mod on_conflict;
mod outer_names;
mod returning;
mod sample;
mod scope;
mod search_cycle;
mod select;
pub(crate) mod set_ops;
mod special;
pub(crate) use json::{constructor_name, finder_name, template_columns};
pub(crate) use scope::{number_of_system_column, system_column, type_of_system_column};
pub(crate) use special::function_columns;
mod standalone;
mod sub_selects;
mod view_target;
mod windows;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use locking::{lock_name as lock_words, lock_within};
pub use outer_names::{Conflict, OuterName, OuterNames};
pub use standalone::{
    IndexExpression, analyse_check, analyse_copy_filter, analyse_default, analyse_domain_check,
    analyse_execute_args, analyse_generated, analyse_index_expr, analyse_index_predicate,
    analyse_partition_value, analyse_statistics_expr, analyse_using, analyse_variable_cast,
    coerce_assignment, resolve_type_name, retyped_default,
};

use crate::parse::ast::{Loc, QueryStatement};
use crate::parse::error_at;
use crate::query::{Command, Cte, Distinct, FrameMode, Query, RangeTableEntry, WindowDefinition};
use base::{Error, Oid, Result, err};
use engine::catalog::model::CatalogView;
use expr::Expr;
use std::rc::Rc;
use types::{Env, oids};

/// The types of `$1`, `$2`, ….
#[derive(Clone, Debug, Default)]
pub struct ParamTypes {
    /// Each parameter's type; 0 while unknown.
    pub types: Vec<Oid>,
    /// Unknown types are inferred, and the list grows as parameters are met.
    pub variable: bool,
    /// Who knows names that are parameters too.
    pub outer: Option<Rc<dyn OuterNames>>,
}

impl ParamTypes {
    /// No parameters allowed beyond these.
    pub fn fixed(types: Vec<Oid>) -> ParamTypes {
        ParamTypes { types, variable: false, outer: None }
    }
    /// Types to be inferred, some perhaps given (0 or unknown: not).
    pub fn variable(types: Vec<Oid>) -> ParamTypes {
        ParamTypes { types, variable: true, outer: None }
    }
    /// The same, with names around that mean parameters.
    #[must_use]
    pub fn within(mut self, outer: Option<Rc<dyn OuterNames>>) -> ParamTypes {
        self.outer = outer;
        self
    }
}

/// Which clause an expression stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clause {
    Target,
    From,
    /// A sub-select in FROM.
    FromSelect,
    JoinOn,
    Where,
    Having,
    GroupBy,
    OrderBy,
    DistinctOn,
    Window,
    /// The offset of a window's frame.
    Frame(FrameMode),
    Filter,
    Limit,
    Offset,
    Values,
    /// INSERT's VALUES with one row.
    OneRow,
    Returning,
    MergeWhen,
    Update,
    Check,
    Default,
    IndexExpr,
    Statistics,
    IndexPredicate,
    Generated,
    AlterUsing,
    ExecuteArg,
    Partition,
}

impl Clause {
    /// Its name in messages.
    fn noun(self) -> &'static str {
        match self {
            Clause::Target => "SELECT",
            Clause::From => "functions in FROM",
            Clause::FromSelect => "FROM clause of their own query level",
            Clause::JoinOn => "JOIN conditions",
            Clause::Where => "WHERE",
            Clause::Having => "HAVING",
            Clause::GroupBy => "GROUP BY",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Window => "window definitions",
            Clause::Frame(FrameMode::Rows) => "window ROWS",
            Clause::Frame(FrameMode::Range) => "window RANGE",
            Clause::Frame(FrameMode::Groups) => "window GROUPS",
            Clause::Filter => "FILTER",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values | Clause::OneRow => "VALUES",
            Clause::Returning => "RETURNING",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Update => "UPDATE",
            Clause::Check => "check constraints",
            Clause::Default => "DEFAULT expressions",
            Clause::IndexExpr => "index expressions",
            Clause::Statistics => "statistics expressions",
            Clause::IndexPredicate => "index predicates",
            Clause::Generated => "column generation expressions",
            Clause::AlterUsing => "transform expressions",
            Clause::ExecuteArg => "EXECUTE parameters",
            Clause::Partition => "partition bound",
        }
    }
    /// The whole clause that it is a part of.
    fn whole(self) -> Clause {
        if matches!(self, Clause::Frame(_)) { Clause::Window } else { self }
    }
    fn allows_aggregates(self) -> bool {
        matches!(
            self,
            Clause::Target | Clause::Having | Clause::OrderBy | Clause::DistinctOn | Clause::Window
        )
    }
    fn allows_windows(self) -> bool {
        matches!(self, Clause::Target | Clause::OrderBy | Clause::DistinctOn)
    }
    fn allows_sets(self) -> bool {
        matches!(
            self,
            Clause::Target
                | Clause::GroupBy
                | Clause::OrderBy
                | Clause::DistinctOn
                | Clause::From
                | Clause::OneRow
        )
    }
    /// Why sub-selects are not allowed here.
    fn no_subquery(self) -> Option<&'static str> {
        Some(match self {
            Clause::Check => "cannot use subquery in check constraint",
            Clause::Default => "cannot use subquery in DEFAULT expression",
            Clause::IndexExpr => "cannot use subquery in index expression",
            Clause::Statistics => "cannot use subquery in statistics expression",
            Clause::IndexPredicate => "cannot use subquery in index predicate",
            Clause::Generated => "cannot use subquery in column generation expression",
            Clause::AlterUsing => "cannot use subquery in transform expression",
            Clause::ExecuteArg => "cannot use subquery in EXECUTE parameter",
            Clause::Partition => "cannot use subquery in partition bound",
            _ => return None,
        })
    }
}

/// One query level while it is analysed.
pub(crate) struct Level {
    pub rtes: Vec<RangeTableEntry>,
    pub items: Vec<scope::Item>,
    pub ctes: Vec<Cte>,
    /// Its WITH is RECURSIVE.
    pub recursive_with: bool,
    pub sub_selects: Vec<Query>,
    /// What GROUP BY, ORDER BY and DISTINCT ON have named so far that has sub-selects in it and is no output.
    pub linked: Vec<Expr>,
    pub windows: Vec<WindowDefinition>,
    pub clause: Clause,
    pub has_aggregates: bool,
    pub has_windows: bool,
    pub has_sets: bool,
    /// Where the last aggregate of this level stands.
    pub last_aggregate: Loc,
    /// Inside an aggregate's arguments.
    pub in_aggregate: bool,
    /// LATERAL: items to the left may be seen.
    pub lateral: bool,
    /// Where each column of this level was first named.
    pub seen: Vec<(usize, i32, Loc)>,
    /// The arguments of each GROUPING(), until GROUP BY is known.
    pub groupings: Vec<(Vec<Expr>, Vec<Loc>)>,
    /// The WINDOW clause: names and indexes into `windows`.
    pub window_names: Vec<(String, usize)>,
    /// The CTE whose recursive term this level is inside of, by index here.
    pub recursive: Option<usize>,
    /// Where the last set-returning function of this level stands.
    pub last_set: Option<Loc>,
    /// Of a MERGE: the entry whose column merge_action() is.
    pub merge_action: Option<usize>,
    /// Of a target that is a view: its columns in the table below.
    pub below: Vec<view_target::Below>,
    /// Of such a target: no index is what ON CONFLICT asks for.
    pub no_arbiter: bool,
    /// What INSERT says with OVERRIDING: the system's values are replaced, or the user's.
    pub overriding: Option<bool>,
    /// Of such a target: the columns of the table below that got a value and may not, and what is said of it.
    pub may_not_set: Vec<(i32, base::Error)>,
}

impl Level {
    fn new() -> Level {
        Level {
            rtes: Vec::new(),
            items: Vec::new(),
            ctes: Vec::new(),
            recursive_with: false,
            sub_selects: Vec::new(),
            linked: Vec::new(),
            windows: Vec::new(),
            clause: Clause::From,
            has_aggregates: false,
            has_windows: false,
            has_sets: false,
            in_aggregate: false,
            last_aggregate: crate::parse::ast::NO_LOC,
            lateral: false,
            seen: Vec::new(),
            groupings: Vec::new(),
            window_names: Vec::new(),
            recursive: None,
            last_set: None,
            merge_action: None,
            below: Vec::new(),
            no_arbiter: false,
            overriding: None,
            may_not_set: Vec::new(),
        }
    }
}

/// The state of analysing one statement.
pub(crate) struct Analyser<'a> {
    pub catalog: &'a dyn CatalogView,
    pub env: &'a dyn Env,
    pub source: &'a str,
    pub params: &'a mut ParamTypes,
    /// Query levels, outermost first; the last is the current one.
    pub levels: Vec<Level>,
}

impl<'a> Analyser<'a> {
    pub fn new(
        catalog: &'a dyn CatalogView,
        env: &'a dyn Env,
        source: &'a str,
        params: &'a mut ParamTypes,
    ) -> Analyser<'a> {
        Analyser { catalog, env, source, params, levels: Vec::new() }
    }

    pub fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::new());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }
    pub fn clause(&self) -> Clause {
        self.levels.last().map_or(Clause::Target, |l| l.clause)
    }
    /// Sets the clause; the old one is returned.
    pub fn enter(&mut self, clause: Clause) -> Clause {
        std::mem::replace(&mut self.level().clause, clause)
    }
    /// An error at a place in the source.
    pub fn at<T>(&self, loc: Loc, e: Error) -> Result<T> {
        Err(error_at(self.source, e, loc))
    }

    /// Runs `f` in a new innermost level and hands that level back with the result.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.levels.len() >= 100 {
            return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        self.levels.push(Level::new());
        let r = f(self);
        self.levels.pop();
        r
    }

    /// A query whose lists are what the current level has gathered.
    pub fn gather(&mut self, command: Command) -> Query {
        let level = self.level();
        Query {
            command,
            ctes: std::mem::take(&mut level.ctes),
            recursive_with: level.recursive_with,
            range_table: std::mem::take(&mut level.rtes),
            result_rte: None,
            from: Vec::new(),
            filter: None,
            targets: Vec::new(),
            group_exprs: Vec::new(),
            grouping_sets: Vec::new(),
            group_items: Vec::new(),
            group_distinct: false,
            having: None,
            windows: std::mem::take(&mut level.windows),
            distinct: Distinct::No,
            order_by: Vec::new(),
            limit: None,
            limit_with_ties: false,
            offset: None,
            row_marks: Vec::new(),
            rechecks: Vec::new(),
            run_conditions: Vec::new(),
            set_operation: None,
            sub_selects: std::mem::take(&mut level.sub_selects),
            keys_relied_on: Vec::new(),
            declared: Vec::new(),
            returning: Vec::new(),
            on_conflict: None,
            images: None,
            merge: None,
            view_checks: Vec::new(),
            named: Vec::new(),
            has_aggregates: level.has_aggregates,
            has_windows: level.has_windows,
            has_target_srfs: level.has_sets,
        }
    }

    /// A statement in a level of its own.
    pub fn statement(&mut self, s: &QueryStatement) -> Result<Query> {
        self.nested(|a| match s {
            QueryStatement::Select(s) => a.select(s),
            QueryStatement::Insert(s) => a.insert(s),
            QueryStatement::Update(s) => a.update(s),
            QueryStatement::Delete(s) => a.delete(s),
            QueryStatement::Merge(s) => a.merge(s),
        })
    }

    /// Parameters still without a type are errors, as in PostgreSQL's
    /// `check_variable_parameters`.
    fn settle_params(&mut self, q: &mut Query) -> Result<()> {
        if self.params.types.is_empty() {
            return Ok(());
        }
        let types = &self.params.types;
        let mut missing = None;
        crate::plan::query_walk::visit(q, 0, &mut |e: &mut Expr, _: u32| {
            if let Expr::Param { number, ty } = e
                && ty.oid == oids::UNKNOWN
            {
                match types.get(*number as usize - 1) {
                    Some(t) if t.is_valid() && *t != oids::UNKNOWN => {
                        ty.oid = types::domains::base_type(*t);
                    }
                    _ => missing = Some(*number),
                }
            }
            false
        });
        let unused = types.iter().position(|t| !t.is_valid() || *t == oids::UNKNOWN);
        match missing.or(unused.map(|i| i as u32 + 1)) {
            Some(n) => {
                Err(err!(INDETERMINATE_DATATYPE, "could not determine data type of parameter ${n}"))
            }
            None => Ok(()),
        }
    }
}

/// The collation of a name.
///
/// # Errors
/// `42704`
pub fn collation_of(names: &[String]) -> Result<base::Oid> {
    let last = names.last().map_or("", String::as_str);
    match types::facts::collations().iter().find(|c| c.name == last) {
        Some(c) => Ok(c.oid),
        None => base::bail!(
            UNDEFINED_OBJECT,
            "collation \"{}\" for encoding \"UTF8\" does not exist",
            names.join(".")
        ),
    }
}

/// Analyses a query statement. `source` is the string its locations count in.
///
/// # Errors
/// All that PostgreSQL's parse analysis raises, with positions.
pub fn analyse_query(
    statement: &QueryStatement,
    source: &str,
    catalog: &dyn CatalogView,
    params: &mut ParamTypes,
    env: &dyn Env,
) -> Result<Query> {
    let mut a = Analyser::new(catalog, env, source, params);
    let mut q = a.statement(statement)?;
    a.settle_params(&mut q)?;
    q.settle_outputs();
    Ok(q)
}

/// Analyses a parsed query ([`crate::parse::Statement::Query`]); a utility statement is an error.
///
/// # Errors
/// All that PostgreSQL's parse analysis raises, with positions.
pub fn analyse(
    parsed: &crate::parse::Parsed,
    catalog: &dyn CatalogView,
    params: &mut ParamTypes,
    env: &dyn Env,
) -> Result<Query> {
    match &parsed.statement {
        crate::parse::Statement::Query(q) => analyse_query(q, &parsed.source, catalog, params, env),
        crate::parse::Statement::Utility(_) => {
            Err(err!(INTERNAL_ERROR, "a utility statement is not analysed as a query"))
        }
    }
}
