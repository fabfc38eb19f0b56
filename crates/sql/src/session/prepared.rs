//! Prepared statements: text, meaning, plan.
//!
//! # Invariants
//! What follows from a text alone is in its [`Meaning`], which all statements that were prepared of that text may have together: one of them
//! makes the plan, and the others run it. What a statement counts for itself is its own.

use super::Session;
use super::plan_sizes::PlanSizes;
use super::state::SessionState;
use crate::analyse::{self, OuterNames, ParamTypes};
use crate::client::OutputColumn;
use crate::parse::ast::QueryStatement;
use crate::parse::utility::UtilityStatement;
use crate::parse::{Parsed, Statement};
use crate::plan::{self, Plan};
use crate::query::{Command, Query};
use base::{Oid, Result};
use engine::catalog::cache::Footing;
use expr::TypeRef;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use types::oids;

/// A plan, and under which catalogs and settings it was made.
struct CachedPlan {
    plan: Arc<Plan>,
    /// What it is of, if plans for given values may be better.
    query: Option<Rc<Query>>,
    generation: u64,
    /// Made within a transaction that had changed catalogs: as of which of its changes.
    own: Option<u64>,
    footing: Footing,
    search_path: Rc<[String]>,
    /// What [`Session::imports`] was.
    imports: u64,
    sizes: PlanSizes,
}

/// What analysis makes of a query, and under which catalogs and settings.
pub(super) struct Analysed {
    pub(super) query: Query,
    generation: u64,
    footing: Footing,
    search_path: Rc<[String]>,
}

/// What plans for given values have come to, beside the plan for all.
#[derive(Default)]
struct Tried {
    /// That one: with another one this begins anew.
    beside: Option<Arc<Plan>>,
    /// How many were made.
    made: u32,
    /// Their costs, with that of planning.
    costs: f64,
}

/// What a text means, and how it is run.
pub struct Meaning {
    /// The text it came from.
    pub text: Arc<str>,
    /// None for an empty statement.
    pub parsed: Option<Arc<Parsed>>,
    /// The types of `$1` and on.
    pub params: Vec<Oid>,
    /// Result columns; None if it returns no rows.
    pub columns: Option<Rc<Vec<OutputColumn>>>,
    /// What its meaning was found from when it was prepared.
    pub(super) footing: Footing,
    /// Under which catalogs and names, if its meaning may still be that.
    found: RefCell<Option<(u64, Rc<[String]>)>>,
    plan: RefCell<Option<CachedPlan>>,
    /// What analysis made of it when it was prepared, for the first plan.
    analysed: RefCell<Option<Analysed>>,
    /// What it is counted as.
    pub(super) identity: super::counting::Identity,
    /// An executor instance that has run this plan and can run it again.
    pub(super) spare: RefCell<Option<super::run::SpareExecutor>>,
    /// Who knows the names around it, which are its parameters.
    pub(crate) outer: Option<Rc<dyn OuterNames>>,
}

/// A statement that has been parsed and analysed.
pub struct Prepared {
    meaning: Rc<Meaning>,
    /// PREPARE rather than Parse made it (`pg_prepared_statements`).
    pub from_sql: bool,
    /// When it was prepared.
    pub prepared_us: i64,
    /// How often it was run by its plan.
    pub runs: Cell<i64>,
    /// It is planned for its values each time, as the text with these in it would be, or for all values once; none: as it pays.
    for_values: Option<bool>,
    tried: RefCell<Tried>,
}

impl Deref for Prepared {
    type Target = Meaning;

    fn deref(&self) -> &Meaning {
        &self.meaning
    }
}

/// So many times a plan is made for the values, to know what that costs.
const TRIED: u32 = 5;

/// What planning costs, in the planner's own unit: as PostgreSQL reckons.
fn planning_cost(plan: &Plan, session: &Session) -> f64 {
    let relations = (plan.relations.len() + 1) as f64;
    1000.0 * session.state().settings.borrow().real("cpu_operator_cost") * relations
}

/// The parameters of a utility statement, which the query in it may use: types and values.
#[derive(Clone, Copy, Default)]
pub struct Arguments<'a> {
    /// Types of `$1` and on.
    pub types: &'a [Oid],
    /// Values, as many.
    pub values: &'a [types::Datum],
    /// Who knows names that mean parameters.
    pub outer: Option<&'a Rc<dyn OuterNames>>,
}

impl Arguments<'_> {
    /// The parameters that analysis of the query in it is to know of.
    pub(crate) fn params(&self) -> ParamTypes {
        ParamTypes::fixed(self.types.to_vec()).within(self.outer.cloned())
    }
}

impl CachedPlan {
    /// Are the catalogs, as the session sees them, what they were when it was made?
    fn stands(&mut self, state: &SessionState) -> bool {
        match self.own {
            None => state.catalog.still_good(&mut self.generation, &self.footing),
            own => {
                state.catalog.own_version() == own && state.catalog.generation() == self.generation
            }
        }
    }
}

impl Meaning {
    fn of(
        text: Arc<str>,
        parsed: Option<Arc<Parsed>>,
        params: Vec<Oid>,
        columns: Option<Rc<Vec<OutputColumn>>>,
    ) -> Meaning {
        Meaning {
            text,
            parsed,
            params,
            columns,
            footing: Footing::default(),
            found: RefCell::new(None),
            plan: RefCell::new(None),
            analysed: RefCell::new(None),
            identity: Default::default(),
            spare: RefCell::new(None),
            outer: None,
        }
    }

    /// Analysis has just found it; `exact`: with the types of parameters that it was told.
    fn found_by(&mut self, analysed: Analysed, exact: bool, state: &SessionState) {
        self.footing = analysed.footing.clone();
        self.identify(&analysed.query, state);
        // This transaction's own changes of catalogs do not show in the generation.
        if state.catalog.is_dirty() {
            return;
        }
        self.found = RefCell::new(Some((analysed.generation, Rc::clone(&analysed.search_path))));
        // The types of parameters may have been found only on the way: then it is analysed again.
        if exact {
            self.analysed = RefCell::new(Some(analysed));
        }
    }

    /// What analysis made of it when it was prepared, if that is as good as new.
    pub(super) fn take_analysed(&self, state: &SessionState) -> Option<Analysed> {
        let mut kept = self.analysed.borrow_mut().take()?;
        let same = kept.search_path == state.search_path_names()
            && state.catalog.still_good(&mut kept.generation, &kept.footing);
        same.then_some(kept)
    }
}

impl From<Meaning> for Prepared {
    fn from(meaning: Meaning) -> Prepared {
        Prepared::with(Rc::new(meaning))
    }
}

impl Prepared {
    fn with(meaning: Rc<Meaning>) -> Prepared {
        Prepared {
            meaning,
            from_sql: false,
            prepared_us: base::sync::now_timestamp_us(),
            runs: Cell::new(0),
            for_values: None,
            tried: RefCell::default(),
        }
    }

    /// An empty statement.
    pub fn empty(text: Arc<str>) -> Prepared {
        Meaning::of(text, None, Vec::new(), None).into()
    }

    /// Another one of the same text, prepared now.
    pub(super) fn again(&self) -> Prepared {
        Prepared::with(Rc::clone(&self.meaning))
    }

    /// Has it planned for its values each time, or never, whatever that costs.
    pub(super) fn plan_by_values(&mut self, each_time: bool) {
        self.for_values = Some(each_time);
    }

    /// A query rather than a utility statement.
    pub fn is_query(&self) -> bool {
        matches!(self.parsed.as_deref(), Some(Parsed { statement: Statement::Query(_), .. }))
    }

    /// How strongly a SELECT locks its rows, in words, if it does.
    pub(super) fn locks_rows(&self) -> Option<&'static str> {
        match &self.parsed.as_deref()?.statement {
            Statement::Query(QueryStatement::Select(select)) => {
                select.locking.first().map(|l| analyse::lock_words(l.strength))
            }
            _ => None,
        }
    }

    /// The utility statement, if it is one.
    pub fn utility(&self) -> Option<&UtilityStatement> {
        match &self.parsed.as_deref()?.statement {
            Statement::Utility(u) => Some(u),
            Statement::Query(_) => None,
        }
    }

    /// The plan, made anew when what it was made from has changed since.
    pub(super) fn plan(&self, session: &Session, params: &[types::Datum]) -> Result<Arc<Plan>> {
        let plan = self.plan_for_all(session)?;
        let Some(query) = self.worth_values(&plan, session, params) else { return Ok(plan) };
        session.planned.set(session.planned.get() + 1);
        let plan = Arc::new(plan_query(Query::clone(&query), session, params)?);
        let mut tried = self.tried.borrow_mut();
        tried.made += 1;
        tried.costs += plan.root.total_cost + planning_cost(&plan, session);
        Ok(plan)
    }

    /// The query to be planned for the values: the first few times, and if that has been cheaper than the plan for all values.
    fn worth_values(
        &self,
        plan: &Arc<Plan>,
        session: &Session,
        params: &[types::Datum],
    ) -> Option<Rc<Query>> {
        if params.is_empty() || !self.for_values.unwrap_or(plan.by_values) {
            return None;
        }
        let cached = self.meaning.plan.borrow();
        // The plan at hand may be of catalogs that only this transaction sees: then no query is kept with it.
        let cached = cached.as_ref().filter(|cached| Arc::ptr_eq(&cached.plan, plan))?;
        if self.for_values == Some(true) {
            return cached.query.clone();
        }
        let mut tried = self.tried.borrow_mut();
        if !tried.beside.as_ref().is_some_and(|before| Arc::ptr_eq(before, plan)) {
            *tried = Tried { beside: Some(Arc::clone(plan)), ..Tried::default() };
        }
        let mean = tried.costs / f64::from(tried.made.max(1));
        let wanted = match session.state().settings.borrow().text("plan_cache_mode") {
            "force_custom_plan" => true,
            "force_generic_plan" => false,
            _ => tried.made < TRIED || mean < plan.root.total_cost,
        };
        cached.query.clone().filter(|_| wanted)
    }

    /// The plan for all values of parameters, made anew when what it was made from has changed since.
    fn plan_for_all(&self, session: &Session) -> Result<Arc<Plan>> {
        self.runs.set(self.runs.get() + 1);
        let state = session.state();
        let generation = state.catalog.generation();
        let path = state.search_path_names();
        if let Some(cached) = &mut *self.meaning.plan.borrow_mut()
            && cached.imports == session.imports.get()
            && (Rc::ptr_eq(&cached.search_path, &path) || cached.search_path == path)
            && cached.stands(state)
            && cached.sizes.still()
        {
            return Ok(Arc::clone(&cached.plan));
        }
        *self.spare.borrow_mut() = None;
        let Some(parsed) = &self.parsed else {
            base::bail!(INTERNAL_ERROR, "an empty statement has no plan");
        };
        let (analysed, mut footing) = match self.take_analysed(state) {
            Some(kept) => (Ok(kept.query), kept.footing),
            None => crate::relations::analysed(state, || self.analyse(parsed, session)),
        };
        let query = analysed?;
        session.planned.set(session.planned.get() + 1);
        // Only where there are values may others be planned for.
        let kept = (!self.params.is_empty()).then(|| query.clone());
        let (plan, more) = state.catalog.watched(|| plan_query(query, session, &[]));
        let plan = Arc::new(plan?);
        let own = state.catalog.own_version();
        // What nobody but this transaction sees may be run again in it.
        if own.is_some() || !state.catalog.is_dirty() {
            footing.add(more);
            let plan = Arc::clone(&plan);
            let sizes = PlanSizes::of(&plan, state.cluster.storage());
            let by_values = self.for_values.unwrap_or(plan.by_values);
            let query = kept.filter(|_| by_values).map(Rc::new);
            *self.meaning.plan.borrow_mut() = Some(CachedPlan {
                plan,
                query,
                generation,
                own,
                footing,
                search_path: path,
                imports: session.imports.get(),
                sizes,
            });
        }
        Ok(plan)
    }

    /// Fails if a query's result is not what it was when it was prepared.
    pub(super) fn check_result(&self, session: &Session) -> Result<()> {
        let Some(parsed) = self.parsed.as_ref().filter(|_| self.is_query()) else { return Ok(()) };
        let state = session.state();
        if let Some((good, under)) = &mut *self.found.borrow_mut()
            && *under == state.search_path_names()
            && state.catalog.still_good(good, &self.footing)
        {
            return Ok(());
        }
        crate::relations::analysed(state, || self.analyse(parsed, session)).0.map(|_| ())
    }

    /// Its meaning now.
    fn analyse(&self, parsed: &Parsed, session: &Session) -> Result<Query> {
        let mut params = ParamTypes::fixed(self.params.clone()).within(self.outer.clone());
        let state = session.state();
        let query = analyse::analyse(parsed, state.as_ref(), &mut params, session.env().as_ref())?;
        check_result_unchanged(self, &query)?;
        // A name that was a column's may be a variable's by now.
        if self.outer.is_some() && params.types != self.params {
            return Err(changed());
        }
        Ok(query)
    }
}

/// A cached statement may not change its result type under its client's feet.
fn check_result_unchanged(prepared: &Prepared, query: &Query) -> Result<()> {
    let now = query_columns(query);
    let before = prepared.columns.as_ref();
    let same = match (&now, before) {
        (None, None) => true,
        (Some(now), Some(before)) => {
            now.len() == before.len()
                && now.iter().zip(before.iter()).all(|(n, b)| n.ty == b.ty && n.name == b.name)
        }
        _ => false,
    };
    if same { Ok(()) } else { Err(changed()) }
}

/// What is said of a statement that is not any more what it was when it was prepared.
fn changed() -> base::Error {
    base::err!(FEATURE_NOT_SUPPORTED, "cached plan must not change result type")
}

pub(super) fn plan_query(query: Query, session: &Session, params: &[types::Datum]) -> Result<Plan> {
    let state = session.state();
    let env = session.env().as_ref();
    let begun = session.planning_begins();
    let plan = plan::plan_query(query, state.as_ref(), &state.derived().planner, env, params)?;
    session.planning_ended(begun);
    // Whether or not it will be come to.
    for e in &plan.left_over {
        expr::fold::value_in(e, env)?;
    }
    Ok(plan)
}

/// The columns that a query returns; None for one that returns no rows.
pub(super) fn query_columns(query: &Query) -> Option<Vec<OutputColumn>> {
    let entries = if query.command == Command::Select { &query.targets } else { &query.returning };
    if query.command != Command::Select && entries.is_empty() {
        return None;
    }
    let visible = entries.iter().filter(|t| !t.hidden);
    Some(visible.map(|t| output_column(&t.name, t.expr.ty(), t.origin)).collect())
}

/// A column as the client is told of it, in text format.
pub(super) fn output_column(name: &str, ty: TypeRef, origin: (u32, i32)) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        ty: if ty.oid == oids::UNKNOWN { TypeRef::of(oids::TEXT) } else { ty },
        type_len: types::type_info(ty.oid).map_or(-1, |i| i.len),
        table: origin.0,
        column: i16::try_from(origin.1).unwrap_or(0),
        format: 0,
    }
}

impl Session {
    /// How many plans it has made, for lack of one that was as good as new.
    pub fn plans_made(&self) -> u64 {
        self.planned.get()
    }

    /// How many descriptions of relations it has made, for lack of one that was as good as new.
    pub fn descriptions_made(&self) -> u64 {
        self.state.catalog.descriptions_made()
    }

    /// Analyses `parsed`, which may have the parameters that `params` allows.
    pub(super) fn prepare(&mut self, parsed: Parsed, params: ParamTypes) -> Result<Prepared> {
        let text: Arc<str> = Arc::from(parsed.text());
        let parsed = Arc::new(parsed);
        let outer = params.outer.clone();
        if let Statement::Query(query) = &parsed.statement {
            let (analysed, types, exact) = self.analysed(query, &parsed.source, params)?;
            let columns = query_columns(&analysed.query).map(Rc::new);
            let mut meaning = Meaning::of(text, Some(parsed), types, columns);
            meaning.outer = outer;
            meaning.found_by(analysed, exact, &self.state);
            return Ok(meaning.into());
        }
        let columns = self.utility_columns(&parsed)?;
        let within = match query_within(&parsed.statement) {
            Some(query) => Some(self.analysed(query, &parsed.source, params.clone())?),
            None => None,
        };
        let dirty = self.state.catalog.is_dirty();
        let (kept, types) = match within {
            Some((analysed, types, exact)) => ((exact && !dirty).then_some(analysed), types),
            None => (None, params.types),
        };
        let mut meaning = Meaning::of(text, Some(parsed), types, columns);
        meaning.outer = outer;
        meaning.analysed = RefCell::new(kept);
        Ok(meaning.into())
    }

    /// The query that a utility statement is about, `parsed`, as a statement: with what analysis has made of it when that one was prepared.
    pub(super) fn prepare_within(
        &mut self,
        outer: &Prepared,
        parsed: Parsed,
        params: ParamTypes,
    ) -> Result<Prepared> {
        let Some(analysed) = outer.take_analysed(&self.state) else {
            return self.prepare(parsed, params);
        };
        let (text, columns) =
            (Arc::from(parsed.text()), query_columns(&analysed.query).map(Rc::new));
        let mut meaning = Meaning::of(text, Some(Arc::new(parsed)), params.types, columns);
        meaning.outer = params.outer;
        meaning.found_by(analysed, true, &self.state);
        Ok(meaning.into())
    }

    /// What analysis makes of a query, the types of its parameters, and whether those are what was asked for.
    fn analysed(
        &self,
        query: &QueryStatement,
        source: &Arc<str>,
        asked: ParamTypes,
    ) -> Result<(Analysed, Vec<Oid>, bool)> {
        let (state, env) = (&self.state, self.env.as_ref());
        let (generation, search_path) = (state.catalog.generation(), state.search_path_names());
        let (analysed, footing) = crate::relations::analysed(state, || {
            let mut params = asked.clone();
            let query = analyse::analyse_query(query, source, state.as_ref(), &mut params, env)?;
            Ok((query, params.types))
        });
        let (query, types) = analysed?;
        // Names around a statement have their types whenever they are looked for.
        let exact = types == asked.types || asked.outer.is_some();
        Ok((Analysed { query, generation, footing, search_path }, types, exact))
    }
}

/// The query that a statement is, or that it is about: EXPLAIN's, a cursor's, CREATE TABLE AS's. Analysis looks at it, and it may have parameters.
pub(super) fn query_within(statement: &Statement) -> Option<&QueryStatement> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Utility(utility) => match utility.as_ref() {
            UtilityStatement::Explain(explain) => query_within(&explain.statement),
            UtilityStatement::DeclareCursor(declare) => Some(&declare.query),
            UtilityStatement::CreateTableAs(create) => query_within(&create.statement),
            _ => None,
        },
    }
}
