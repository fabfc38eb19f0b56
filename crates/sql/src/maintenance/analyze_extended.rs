//! What ANALYZE learns for a table's extended statistics from the sample of its rows.

use super::analyze::sampled_value;
use super::progress::{AnalyzeProgress, analyze as phase};
use crate::analyze_stats::column_statistics;
use crate::client::{Client, Notice, Severity};
use crate::exec::modify::compile_stored_of;
use crate::extended_stats::{Sampled, build};
use crate::session::{Session, SessionState};
use base::{GiveWay, Result, SqlState};
use engine::catalog::extended::{ExtendedData, ExtendedStatistics};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Column, Table};
use expr::Expr;
use page::tuple::{AttrValue, TupleDesc};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::Datum;
use vacuum::AnalyzeSample;

/// The target of an object: its own, or the greatest of its columns.
pub(super) fn target(
    statistics: &ExtendedStatistics,
    table: &Table,
    goal: &dyn Fn(&Column) -> usize,
    default: usize,
) -> usize {
    if let Some(own) = statistics.target {
        return usize::try_from(own).unwrap_or(0);
    }
    let of = |number: &i32| {
        let at = usize::try_from(number - 1).ok()?;
        let column = table.columns.get(at)?;
        column.statistics_target.filter(|t| *t >= 0).map(|_| goal(column))
    };
    statistics.columns.iter().filter_map(of).max().unwrap_or(default)
}

/// What ANALYZE was told to look at, and what it saw.
pub(super) struct Seen<'a> {
    pub(super) table: &'a Arc<Table>,
    /// The columns that were analysed.
    pub(super) columns: &'a [i32],
    pub(super) heap: &'a heap::Heap,
    pub(super) sample: &'a AnalyzeSample,
    /// autovacuum keeps quiet of what it cannot do.
    pub(super) automatic: bool,
    /// Shown to others.
    pub(super) progress: &'a AnalyzeProgress,
}

impl Seen<'_> {
    /// Gathers and stores all of them.
    ///
    /// # Errors
    /// What expressions raise; I/O, cancellation.
    pub(super) fn gather(
        &self,
        session: &Session,
        list: &[(ExtendedStatistics, usize)],
        client: &mut dyn Client,
        give_way: &mut GiveWay,
    ) -> Result<()> {
        let state = session.state();
        if !list.is_empty() {
            self.progress.objects_total.store(list.len() as u64, Ordering::Relaxed);
            self.progress.enter(phase::EXTENDED);
        }
        for (statistics, target) in list {
            if !statistics.columns.iter().all(|c| self.columns.contains(c)) {
                if !self.automatic {
                    client.notice(&self.not_computed(state, statistics)?)?;
                }
                continue;
            }
            if *target == 0 {
                continue;
            }
            state.check_cancel()?;
            let sampled = self.values(session, statistics, give_way)?;
            let rows = self.sample.live_rows;
            let mut data = build(&statistics.kinds, &sampled, rows, *target);
            if statistics.kinds.contains(&b'e') {
                let of = |c: &Sampled| {
                    let known = !c.values.is_empty();
                    known.then(|| {
                        Arc::new(column_statistics(c.ty, &c.values, None, rows, *target, give_way))
                    })
                };
                data.expressions = Some(sampled.iter().filter(|c| c.number < 0).map(of).collect());
            }
            let types: Vec<_> = statistics.exprs.iter().map(|e| e.ty().oid).collect();
            store(state, statistics, &data, &types)?;
            self.progress.objects_computed.fetch_add(1, Ordering::Relaxed);
            base::stop_point!("sql.analyze.object_computed");
        }
        if !list.is_empty() {
            state.catalog.changed_statistics(self.table.oid);
        }
        Ok(())
    }

    fn not_computed(
        &self,
        state: &SessionState,
        statistics: &ExtendedStatistics,
    ) -> Result<Notice> {
        let schema = crate::system::names::schema_name(state, statistics.namespace)?;
        let mut notice = Notice::new(
            Severity::Warning,
            format!(
                "statistics object \"{}.{}\" could not be computed for relation \"{}.{}\"",
                schema.unwrap_or_default(),
                statistics.name,
                self.table.namespace_name,
                self.table.name
            ),
        );
        notice.body.state = SqlState::INVALID_OBJECT_DEFINITION;
        notice.body.schema = Some(self.table.namespace_name.clone());
        notice.body.table = Some(self.table.name.clone());
        Ok(notice)
    }

    /// The sampled rows' values of an object's columns and expressions.
    fn values(
        &self,
        session: &Session,
        statistics: &ExtendedStatistics,
        give_way: &mut GiveWay,
    ) -> Result<Vec<Sampled>> {
        let mut needed: BTreeSet<usize> = BTreeSet::new();
        let mut whole = false;
        let mut need = |number: i32| match usize::try_from(number - 1) {
            Ok(at) => {
                needed.insert(at);
            }
            // The whole row.
            Err(_) => whole = true,
        };
        statistics.columns.iter().for_each(|c| need(*c));
        for e in &statistics.exprs {
            e.walk(&mut |e| {
                if let Expr::Var { column, .. } = e {
                    need(*column);
                }
            });
        }
        if whole {
            needed = (0..self.table.columns.len()).collect();
        }
        let codes = statistics.exprs.iter().map(|e| compile_stored_of(e, Some(self.table)));
        let codes = codes.collect::<Result<Vec<_>>>()?;
        let mut sampled: Vec<Sampled> = Vec::new();
        for number in &statistics.columns {
            let at = usize::try_from(number - 1).unwrap_or(0);
            let ty = self.table.columns[at].ty.oid;
            sampled.push(Sampled { number: *number, ty, values: Vec::new() });
        }
        for (n, e) in (1i32..).zip(&statistics.exprs) {
            sampled.push(Sampled { number: -n, ty: e.ty().oid, values: Vec::new() });
        }
        let (columns, exprs) = sampled.split_at_mut(statistics.columns.len());
        let desc = engine::relation::tuple_desc(&self.table.columns);
        for row in &self.sample.rows {
            session.state().check_cancel()?;
            give_way.point();
            let Some(values) = self.decode(&desc, &needed, row)? else { continue };
            for (code, s) in codes.iter().zip(exprs.iter_mut()) {
                s.values.push(session.evaluate_over(code, &values)?);
            }
            for s in columns.iter_mut() {
                s.values.push(values[usize::try_from(s.number - 1).unwrap_or(0)].clone());
            }
        }
        Ok(sampled)
    }

    /// A row's values; NULL where they are not needed. None: what belongs to it has gone meanwhile.
    fn decode(
        &self,
        desc: &TupleDesc,
        needed: &BTreeSet<usize>,
        row: &vacuum::SampledRow,
    ) -> Result<Option<Vec<Datum>>> {
        let mut attrs = vec![AttrValue::Null; self.table.columns.len()];
        page::tuple::deform(&row.tuple, desc, &mut attrs).map_err(base::Error::corrupt_file)?;
        let mut values = vec![Datum::Null; attrs.len()];
        for at in needed.iter().copied() {
            match sampled_value(self.heap, &self.table.columns[at], row, &attrs[at])? {
                Some(value) => values[at] = value,
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }
}

fn store(
    state: &SessionState,
    statistics: &ExtendedStatistics,
    data: &ExtendedData,
    types: &[base::Oid],
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = [("stxoid", Datum::Oid(statistics.oid)), ("stxdinherit", Datum::Bool(false))];
    let row = data.row(statistics.oid, types);
    match rows.find("pg_statistic_ext_data", &key)?.into_iter().next() {
        Some(mut old) => {
            old.values = row.values;
            rows.update(&old)
        }
        None => rows.insert(&row).map(|_| ()),
    }
}

/// A table's objects, each with its target.
pub(super) fn objects(
    state: &SessionState,
    table: &Table,
    goal: &dyn Fn(&Column) -> usize,
    default: usize,
) -> Result<Vec<(ExtendedStatistics, usize)>> {
    let all = state.extended_statistics(table.oid)?;
    Ok(all.iter().map(|s| (s.clone(), target(s, table, goal, default))).collect())
}
