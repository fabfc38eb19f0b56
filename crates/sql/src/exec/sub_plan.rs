//! Sub-selects in expressions.

use super::batch::{BATCH_ROWS, Batch};
use super::cte_reads::ctes_read;
use super::hash_join::Table;
use super::{Cx, ExecContext, Hook, Node, Shared};
use crate::plan::{Plan, SubPlan};
use base::{Oid, Result, bail};
use expr::code::{Code, compile};
use expr::eval::{EvalContext, EvalHook};
use expr::tree::SubLinkKind;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;
use types::{ArrayValue, Datum};

mod gathered;

/// The rows of an uncorrelated `IN`, by hash.
struct Hashed {
    whole: Table,
    with_null: Vec<Vec<Datum>>,
    rows: usize,
}

/// A sub-plan at work.
pub(crate) struct SubPlanState {
    node: Option<Box<dyn Node>>,
    /// It is the plan's sub-plan of that number, planned at its first evaluation.
    later: Option<(Arc<Plan>, usize)>,
    /// What its nodes share, if it was planned apart.
    apart: Option<Rc<Shared>>,
    cache: bool,
    depends: Vec<usize>,
    /// CTEs of the levels around that it reads: with other rows of theirs it has another value.
    reads: Vec<usize>,
    hash: Option<(Vec<Code>, Vec<Oid>)>,
    element: Oid,
    /// ARRAY(SELECT …) of arrays.
    nested: bool,
    /// The result, and what it depends on: the values of parameters, and which rows CTEs had.
    value: Option<(Vec<Datum>, Datum)>,
    rows: Option<(Vec<Datum>, Vec<Vec<Datum>>)>,
    hashed: Option<(Vec<Datum>, Hashed)>,
    /// For EXISTS: its other way, as long as there is one.
    gathered: Option<gathered::Counted>,
}

impl SubPlanState {
    pub(crate) fn new(
        plan: &Plan,
        number: usize,
        node: Box<dyn Node>,
        later: Option<(Arc<Plan>, usize)>,
    ) -> Result<SubPlanState> {
        let reads = ctes_read(plan, &plan.sub_plans[number].node);
        let plan: &SubPlan = &plan.sub_plans[number];
        let hash = match &plan.hash {
            None => None,
            Some(list) => {
                let codes: Vec<Code> =
                    list.iter().map(|(e, _)| compile(e)).collect::<Result<_>>().unwrap_or_default();
                (codes.len() == list.len()).then(|| (codes, list.iter().map(|l| l.1).collect()))
            }
        };
        Ok(SubPlanState {
            node: Some(node),
            later,
            apart: None,
            cache: plan.cache,
            depends: plan.depends.clone(),
            reads,
            hash,
            element: expr::array::element_type(plan.ty.oid),
            nested: plan.kind == SubLinkKind::Array
                && plan.node.columns.first().is_some_and(|c| c.ty().oid == plan.ty.oid),
            value: None,
            rows: None,
            hashed: None,
            gathered: plan.gathered.map(gathered::Counted::new),
        })
    }
    pub(crate) fn let_go(&mut self) {
        self.reset();
        if let Some(node) = &mut self.node {
            node.let_go();
        }
        if let Some(shared) = &self.apart {
            shared.let_go();
        }
    }
    pub(crate) fn reset(&mut self) {
        self.value = None;
        self.rows = None;
        self.hashed = None;
        if let Some(gathered) = &mut self.gathered {
            gathered.reset();
        }
        if let Some(shared) = &self.apart {
            shared.reset();
        }
    }

    /// What its rows depend on, as it is now: the values of parameters, and which rows CTEs have.
    fn known(&self, shared: &Shared) -> Vec<Datum> {
        let params = shared.exec_params.borrow();
        let values = self.depends.iter().map(|i| params.get(*i).cloned().unwrap_or(Datum::Null));
        let rows = self.reads.iter().map(|cte| Datum::Int8(shared.times_made(*cte)));
        values.chain(rows).collect()
    }

    /// Plans what was left for later. It has the parameters of the statement around it, and its own behind them.
    fn plan_now(&mut self, x: &ExecContext<'_>, shared: &Shared) -> Result<()> {
        let Some((plan, number)) = &self.later else { return Ok(()) };
        let Some(later) = &plan.sub_plans[*number].later else { return Ok(()) };
        let made = later.plan(x.catalog, x.env, shared.exec_params.borrow().len())?;
        let (node, own) = super::parts(&Arc::new(made), None, false)?;
        self.node = Some(node);
        self.apart = Some(Rc::new(own));
        self.later = None;
        Ok(())
    }
}

/// Hands the statement's parameters to a sub-plan that was planned apart.
fn lend(from: &Shared, to: &Shared) {
    let from_params = from.exec_params.borrow();
    to.exec_params.borrow_mut()[..from_params.len()].clone_from_slice(&from_params);
    to.depth.set(from.depth.get());
    to.generation.set(from.generation.get());
}

fn same(a: &[Datum], b: &[Datum]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| expr::ops::identical(a, b))
}

/// Runs a sub-plan, calling `f` for each row until it says stop.
fn run(
    node: &mut dyn Node,
    cx: &Cx<'_>,
    one: bool,
    f: &mut dyn FnMut(&mut Batch, usize) -> Result<bool>,
) -> Result<()> {
    node.rescan(cx)?;
    let mut batch = Batch::new();
    loop {
        cx.poll()?;
        node.next(cx, &mut batch, if one { 1 } else { BATCH_ROWS })?;
        if batch.is_empty() {
            return Ok(());
        }
        for i in 0..batch.len() {
            if !f(&mut batch, i)? {
                return Ok(());
            }
        }
    }
}

impl EvalHook for Hook<'_> {
    fn sub_plan(
        &self,
        outer: &EvalContext<'_>,
        kind: SubLinkKind,
        plan: usize,
        test: Option<&Code>,
        args: &[(usize, Code)],
        row: &[Datum],
    ) -> Result<Datum> {
        let left = self.shared.sub_plans[plan].borrow().gathered_by();
        for (i, code) in args.iter().filter(|(i, _)| !left.contains(i)) {
            let v = code.eval(row, outer)?;
            self.shared.exec_params.borrow_mut()[*i] = v;
        }
        let depth = self.shared.depth.get();
        if depth > 100 {
            bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
        }
        let cell = &self.shared.sub_plans[plan];
        if kind == SubLinkKind::Exists
            && let Some(found) = self.exists_among_gathered(plan, args, row, outer)?
        {
            return Ok(Datum::Bool(found));
        }
        let known: Vec<Datum> = {
            let s = cell.borrow();
            let known = s.known(self.shared);
            // Of a row that is asked for column by column the first place has the arguments.
            let again = kind == SubLinkKind::Row && args.is_empty() && !s.cache;
            if let Some((k, v)) = &s.value
                && (again || s.cache && same(k, &known))
            {
                return Ok(v.clone());
            }
            known
        };
        if kind == SubLinkKind::Any
            && let Some(found) = self.looked_up(plan, test, row, outer, &known)?
        {
            return Ok(found);
        }
        cell.borrow_mut().plan_now(self.x, self.shared)?;
        let Some(mut node) = cell.borrow_mut().node.take() else {
            bail!(INTERNAL_ERROR, "sub-plan evaluates itself");
        };
        self.shared.depth.set(depth + 1);
        let apart = cell.borrow().apart.clone();
        let shared = apart.as_deref().unwrap_or(self.shared);
        if apart.is_some() {
            lend(self.shared, shared);
        }
        let hook = Hook { x: self.x, shared };
        let cx = Cx::new(self.x, shared, &hook);
        let result = self.evaluate(&mut *node, &cx, kind, plan, test, row, outer, &known);
        self.shared.depth.set(depth);
        let mut s = cell.borrow_mut();
        s.node = Some(node);
        let value = result?;
        let kept = s.cache && !matches!(kind, SubLinkKind::Any | SubLinkKind::All);
        if kept || kind == SubLinkKind::Row {
            s.value = Some((known, value.clone()));
        }
        Ok(value)
    }

    fn next_value(&self, sequence: Oid) -> Result<i64> {
        self.x.relations.next_value(sequence)
    }
}

impl Hook<'_> {
    #[expect(clippy::too_many_arguments, reason = "all of one evaluation")]
    fn evaluate(
        &self,
        node: &mut dyn Node,
        cx: &Cx<'_>,
        kind: SubLinkKind,
        plan: usize,
        test: Option<&Code>,
        row: &[Datum],
        outer: &EvalContext<'_>,
        known: &[Datum],
    ) -> Result<Datum> {
        match kind {
            SubLinkKind::Exists => {
                let mut found = false;
                run(node, cx, true, &mut |_, _| {
                    found = true;
                    Ok(false)
                })?;
                Ok(Datum::Bool(found))
            }
            SubLinkKind::Scalar => {
                let mut value: Option<Datum> = None;
                run(node, cx, false, &mut |b, i| {
                    if value.is_some() {
                        bail!(
                            CARDINALITY_VIOLATION,
                            "more than one row returned by a subquery used as an expression"
                        );
                    }
                    value = Some(b.row(i).first().cloned().unwrap_or(Datum::Null));
                    Ok(true)
                })?;
                Ok(value.unwrap_or(Datum::Null))
            }
            SubLinkKind::Row => {
                let mut value: Option<Vec<Datum>> = None;
                run(node, cx, false, &mut |b, i| {
                    if value.is_some() {
                        bail!(
                            CARDINALITY_VIOLATION,
                            "more than one row returned by a subquery used as an expression"
                        );
                    }
                    value = Some(b.row(i).to_vec());
                    Ok(true)
                })?;
                let fields = value.unwrap_or_default();
                let columns = fields
                    .iter()
                    .enumerate()
                    .map(|(i, f)| types::RecordColumn {
                        name: types::Text::from(format!("f{}", i + 1)),
                        type_oid: types::io::natural_type(f),
                        typmod: -1,
                    })
                    .collect();
                Ok(Datum::Record(Arc::new(types::RecordValue {
                    type_oid: types::oids::RECORD,
                    columns,
                    fields,
                })))
            }
            SubLinkKind::Array => {
                let mut elements = Vec::new();
                run(node, cx, false, &mut |b, i| {
                    elements.push(b.row(i).first().cloned().unwrap_or(Datum::Null));
                    if elements.len() > 10_000_000 {
                        bail!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed");
                    }
                    Ok(true)
                })?;
                let (element, nested) = {
                    let s = self.shared.sub_plans[plan].borrow();
                    (s.element, s.nested)
                };
                if nested {
                    return types::array::accumulate(element, &elements);
                }
                Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(element, elements))))
            }
            SubLinkKind::Any | SubLinkKind::All => {
                let has_hash = self.shared.sub_plans[plan].borrow().hash.is_some();
                if has_hash && kind == SubLinkKind::Any {
                    return self.hashed_any(node, cx, plan, test, row, outer, known);
                }
                let any = kind == SubLinkKind::Any;
                let cached = {
                    let mut s = self.shared.sub_plans[plan].borrow_mut();
                    if s.cache && s.rows.as_ref().is_some_and(|(k, _)| same(k, known)) {
                        s.rows.take()
                    } else {
                        None
                    }
                };
                let keep = self.shared.sub_plans[plan].borrow().cache;
                let mut result = Some(!any);
                if keep {
                    let rows = match cached {
                        Some((_, rows)) => rows,
                        None => {
                            let mut rows = Vec::new();
                            run(node, cx, false, &mut |b, i| {
                                rows.push(b.take_row(i));
                                Ok(true)
                            })?;
                            rows
                        }
                    };
                    for (n, r) in rows.iter().enumerate() {
                        if n % BATCH_ROWS == 0 {
                            cx.poll()?;
                        }
                        match self.compare(test, r.clone(), row, outer)? {
                            Some(b) if b == any => {
                                result = Some(any);
                                break;
                            }
                            Some(_) => {}
                            None => result = None,
                        }
                    }
                    self.shared.sub_plans[plan].borrow_mut().rows = Some((known.to_vec(), rows));
                } else {
                    run(node, cx, false, &mut |b, i| {
                        let r = b.take_row(i);
                        match self.compare(test, r, row, outer)? {
                            Some(b) if b == any => {
                                result = Some(any);
                                return Ok(false);
                            }
                            Some(_) => {}
                            None => result = None,
                        }
                        Ok(true)
                    })?;
                }
                Ok(result.map_or(Datum::Null, Datum::Bool))
            }
        }
    }

    fn compare(
        &self,
        test: Option<&Code>,
        sub_row: Vec<Datum>,
        row: &[Datum],
        outer: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        let Some(test) = test else { return Ok(None) };
        let saved = outer.sub_row.replace(sub_row);
        let r = test.eval_bool(row, outer);
        outer.sub_row.replace(saved);
        r
    }

    /// `row IN (SELECT …)` by the rows of the sub-select, which are hashed first.
    #[expect(clippy::too_many_arguments, reason = "all of one evaluation")]
    fn hashed_any(
        &self,
        node: &mut dyn Node,
        cx: &Cx<'_>,
        plan: usize,
        test: Option<&Code>,
        row: &[Datum],
        outer: &EvalContext<'_>,
        known: &[Datum],
    ) -> Result<Datum> {
        let cell = &self.shared.sub_plans[plan];
        let types: Vec<Oid> = cell.borrow().hash.as_ref().map_or_else(Vec::new, |h| h.1.clone());
        let mut table = Hashed { whole: Table::default(), with_null: Vec::new(), rows: 0 };
        let mut bytes = 0usize;
        run(node, cx, false, &mut |b, i| {
            let r = b.take_row(i);
            bytes += super::batch::row_bytes(&r);
            if bytes > (1 << 30) {
                bail!(OUT_OF_MEMORY, "out of memory");
            }
            table.rows += 1;
            if r.iter().any(Datum::is_null) {
                if table.with_null.len() < 1000 || types.len() > 1 {
                    table.with_null.push(r);
                }
            } else {
                let h = Table::hash_of(&types, &r);
                if table.whole.find(&types, h, &r).is_none() {
                    table.whole.add(&r, h);
                }
            }
            Ok(true)
        })?;
        cell.borrow_mut().hashed = Some((known.to_vec(), table));
        Ok(self.looked_up(plan, test, row, outer, known)?.unwrap_or_default())
    }

    /// Whether a row is among those of a sub-select; None if they have not been hashed for these values of what it depends on.
    fn looked_up(
        &self,
        plan: usize,
        test: Option<&Code>,
        row: &[Datum],
        outer: &EvalContext<'_>,
        known: &[Datum],
    ) -> Result<Option<Datum>> {
        let s = self.shared.sub_plans[plan].borrow();
        let (Some((codes, types)), Some((of, table))) = (&s.hash, &s.hashed) else {
            return Ok(None);
        };
        if !same(of, known) {
            return Ok(None);
        }
        if table.rows == 0 {
            return Ok(Some(Datum::Bool(false)));
        }
        let mut left: SmallVec<[Datum; 2]> = SmallVec::new();
        for c in codes {
            left.push(c.eval(row, outer)?);
        }
        if left.iter().any(Datum::is_null) {
            if left.len() == 1 {
                return Ok(Some(Datum::Null));
            }
            return self.compared(table, test, row, outer).map(Some);
        }
        if table.whole.find(types, Table::hash_of(types, &left), &left).is_some() {
            return Ok(Some(Datum::Bool(true)));
        }
        for (n, r) in table.with_null.iter().enumerate() {
            if n % BATCH_ROWS == 0 {
                self.x.cancel.check()?;
            }
            if self.compare(test, r.clone(), row, outer)?.is_none() {
                return Ok(Some(Datum::Null));
            }
        }
        Ok(Some(Datum::Bool(false)))
    }

    /// The same of a row of which some columns are known, some not: one after the other.
    fn compared(
        &self,
        table: &Hashed,
        test: Option<&Code>,
        row: &[Datum],
        outer: &EvalContext<'_>,
    ) -> Result<Datum> {
        let mut result = Some(false);
        let whole = (0..table.whole.len()).map(|i| table.whole.row(i));
        let all = whole.chain(table.with_null.iter().map(Vec::as_slice));
        for (n, r) in all.enumerate() {
            if n % BATCH_ROWS == 0 {
                self.x.cancel.check()?;
            }
            match self.compare(test, r.to_vec(), row, outer)? {
                Some(true) => return Ok(Datum::Bool(true)),
                Some(false) => {}
                None => result = None,
            }
        }
        Ok(result.map_or(Datum::Null, Datum::Bool))
    }
}
