//! Prepared statements: text, meaning, plan.

use super::plan_sizes::PlanSizes;
use super::state::SessionState;
use super::{Session, SessionEnv};
use crate::analyse::{self, ParamTypes};
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
use std::rc::Rc;
use std::sync::Arc;
use types::oids;

/// A plan, and under which catalogs and settings it was made.
struct CachedPlan {
    plan: Arc<Plan>,
    /// What it is of, if plans for given values may be better.
    query: Option<Rc<Query>>,
    /// Plans made for given values, and their costs with that of planning.
    made: u32,
    costs: f64,
    generation: u64,
    footing: Footing,
    search_path: Rc<[String]>,
    /// What [`Session::imports`] was.
    imports: u64,
    sizes: PlanSizes,
}

/// A statement's meaning, and under which catalogs and settings it was found.
struct Analysed {
    query: Query,
    generation: u64,
    footing: Footing,
    search_path: Rc<[String]>,
}

/// A statement that has been parsed and analysed.
pub struct Prepared {
    /// The text it came from.
    pub text: Arc<str>,
    /// None for an empty statement.
    pub parsed: Option<Arc<Parsed>>,
    /// The types of `$1` and on.
    pub params: Vec<Oid>,
    /// Result columns; None if it returns no rows.
    pub columns: Option<Rc<Vec<OutputColumn>>>,
    /// PREPARE rather than Parse made it (`pg_prepared_statements`).
    pub from_sql: bool,
    /// When it was prepared.
    pub prepared_us: i64,
    /// How often it was run by its plan.
    pub runs: Cell<i64>,
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
}

impl Prepared {
    /// An empty statement.
    pub fn empty(text: Arc<str>) -> Prepared {
        Prepared::of(text, None, Vec::new(), None)
    }

    fn of(
        text: Arc<str>,
        parsed: Option<Arc<Parsed>>,
        params: Vec<Oid>,
        columns: Option<Vec<OutputColumn>>,
    ) -> Prepared {
        Prepared {
            text,
            parsed,
            params,
            columns: columns.map(Rc::new),
            from_sql: false,
            prepared_us: base::sync::now_timestamp_us(),
            runs: Cell::new(0),
            footing: Footing::default(),
            found: RefCell::new(None),
            plan: RefCell::new(None),
            analysed: RefCell::new(None),
            identity: Default::default(),
            spare: RefCell::new(None),
        }
    }

    /// A query rather than a utility statement.
    pub fn is_query(&self) -> bool {
        matches!(self.parsed.as_deref(), Some(Parsed { statement: Statement::Query(_), .. }))
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
        let plan = Arc::new(plan_query(&query, session, params)?);
        if let Some(cached) = &mut *self.plan.borrow_mut() {
            cached.made += 1;
            cached.costs += plan.root.total_cost + planning_cost(&plan, session);
        }
        Ok(plan)
    }

    /// The query to be planned for the values: the first few times, and if that has been cheaper than the plan for all values.
    fn worth_values(
        &self,
        plan: &Plan,
        session: &Session,
        params: &[types::Datum],
    ) -> Option<Rc<Query>> {
        if params.is_empty() || !plan.by_values {
            return None;
        }
        let cached = self.plan.borrow();
        let cached = cached.as_ref()?;
        let mean = cached.costs / f64::from(cached.made.max(1));
        let wanted = match session.state().settings.borrow().text("plan_cache_mode") {
            "force_custom_plan" => true,
            "force_generic_plan" => false,
            _ => cached.made < TRIED || mean < plan.root.total_cost,
        };
        cached.query.clone().filter(|_| wanted)
    }

    /// The plan for all values of parameters, made anew when what it was made from has changed since.
    fn plan_for_all(&self, session: &Session) -> Result<Arc<Plan>> {
        self.runs.set(self.runs.get() + 1);
        let state = session.state();
        let generation = state.catalog.generation();
        let path = state.search_path_names();
        if let Some(cached) = &mut *self.plan.borrow_mut()
            && cached.imports == session.imports.get()
            && (Rc::ptr_eq(&cached.search_path, &path) || cached.search_path == path)
            && state.catalog.still_good(&mut cached.generation, &cached.footing)
            && cached.sizes.still()
        {
            return Ok(Arc::clone(&cached.plan));
        }
        *self.spare.borrow_mut() = None;
        let Some(parsed) = &self.parsed else {
            base::bail!(INTERNAL_ERROR, "an empty statement has no plan");
        };
        let mut kept = self.analysed.borrow_mut().take().filter(|a| a.search_path == path);
        let kept = kept
            .take_if(|a| state.catalog.still_good(&mut a.generation, &a.footing))
            .map(|a| (a.query, a.footing));
        let (analysed, mut footing) = match kept {
            Some((query, footing)) => (Ok(query), footing),
            None => crate::relations::analysed(state, || self.analyse(parsed, session)),
        };
        let query = analysed?;
        session.planned.set(session.planned.get() + 1);
        let (plan, more) = state.catalog.watched(|| plan_query(&query, session, &[]));
        let plan = Arc::new(plan?);
        if !state.catalog.is_dirty() {
            footing.add(more);
            let plan = Arc::clone(&plan);
            let sizes = PlanSizes::of(&plan, state.cluster.storage());
            let query = plan.by_values.then(|| Rc::new(query));
            *self.plan.borrow_mut() = Some(CachedPlan {
                plan,
                query,
                made: 0,
                costs: 0.0,
                generation,
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
        let mut params = ParamTypes::fixed(self.params.clone());
        let state = session.state();
        let query = analyse::analyse(parsed, state.as_ref(), &mut params, session.env().as_ref())?;
        check_result_unchanged(self, &query)?;
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
    if !same {
        base::bail!(FEATURE_NOT_SUPPORTED, "cached plan must not change result type");
    }
    Ok(())
}

pub(super) fn plan_query(
    query: &Query,
    session: &Session,
    params: &[types::Datum],
) -> Result<Plan> {
    let state = session.state();
    let env = session.env().as_ref();
    let begun = session.planning_begins();
    let plan = plan::plan_query(query, state.as_ref(), &planner_settings(state), env, params)?;
    session.planning_ended(begun);
    // Whether or not it will be come to.
    for e in &plan.left_over {
        expr::fold::value_in(e, env)?;
    }
    Ok(plan)
}

pub(super) fn planner_settings(state: &SessionState) -> plan::PlannerSettings {
    let s = state.settings.borrow();
    let bytes = |name: &str| usize::try_from(s.int(name)).unwrap_or(0).saturating_mul(1024);
    #[expect(clippy::cast_precision_loss, reason = "a page count for cost estimates")]
    let cache_pages = s.int("effective_cache_size") as f64;
    plan::PlannerSettings {
        work_mem_bytes: bytes("work_mem"),
        hash_mem_bytes: bytes("work_mem") as f64 * s.real("hash_mem_multiplier"),
        random_page_cost: s.real("random_page_cost"),
        seq_page_cost: s.real("seq_page_cost"),
        cpu_tuple_cost: s.real("cpu_tuple_cost"),
        cpu_index_tuple_cost: s.real("cpu_index_tuple_cost"),
        cpu_operator_cost: s.real("cpu_operator_cost"),
        effective_cache_pages: cache_pages,
        enable_seqscan: s.bool("enable_seqscan"),
        enable_indexscan: s.bool("enable_indexscan"),
        enable_indexonlyscan: s.bool("enable_indexonlyscan"),
        enable_bitmapscan: s.bool("enable_bitmapscan"),
        enable_hashjoin: s.bool("enable_hashjoin"),
        enable_mergejoin: s.bool("enable_mergejoin"),
        enable_nestloop: s.bool("enable_nestloop"),
        enable_hashagg: s.bool("enable_hashagg"),
        enable_sort: s.bool("enable_sort"),
        enable_tidscan: s.bool("enable_tidscan"),
        enable_incremental_sort: s.bool("enable_incremental_sort"),
        enable_presorted_aggregate: s.bool("enable_presorted_aggregate"),
        enable_material: s.bool("enable_material"),
        ..plan::PlannerSettings::default()
    }
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

    /// Analyses `parsed`, which may have the parameters that `params` allows.
    pub(super) fn prepare(&mut self, parsed: Parsed, mut params: ParamTypes) -> Result<Prepared> {
        let text: Arc<str> = Arc::from(parsed.text());
        let parsed = Arc::new(parsed);
        let state = Rc::clone(&self.state);
        if let Statement::Query(_) = &parsed.statement {
            let env: Rc<SessionEnv> = Rc::clone(&self.env);
            let (generation, search_path) = (state.catalog.generation(), state.search_path_names());
            let asked = params;
            let (analysed, footing) = crate::relations::analysed(&state, || {
                let mut params = asked.clone();
                let query = analyse::analyse(&parsed, state.as_ref(), &mut params, env.as_ref())?;
                Ok((query, params))
            });
            let (query, params) = analysed?;
            let columns = query_columns(&query);
            let mut prepared = Prepared::of(text, Some(parsed), params.types, columns);
            prepared.footing = footing.clone();
            prepared.analysed_as(&query, &state);
            // The types of parameters may have been found only on the way: then it is analysed again.
            // This transaction's own changes of catalogs do not show in the generation.
            if state.catalog.is_dirty() {
                return Ok(prepared);
            }
            *prepared.found.borrow_mut() = Some((generation, Rc::clone(&search_path)));
            if prepared.params.is_empty() {
                let analysed = Analysed { query, generation, footing, search_path };
                *prepared.analysed.borrow_mut() = Some(analysed);
            }
            return Ok(prepared);
        }
        let columns = self.utility_columns(&parsed)?;
        if let Some(query) = query_within(&parsed.statement) {
            let env: Rc<SessionEnv> = Rc::clone(&self.env);
            let asked = params;
            let (analysed, _) = crate::relations::analysed(&state, || {
                let mut params = asked.clone();
                let (source, env) = (&parsed.source, env.as_ref());
                analyse::analyse_query(query, source, state.as_ref(), &mut params, env)?;
                Ok(params)
            });
            params = analysed?;
        }
        Ok(Prepared::of(text, Some(parsed), params.types, columns))
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
