//! What ANALYZE learns of a table's indexes from the sample of its rows: how many of them a partial one has, and the statistics of
//! expressions.

use super::analyze::{Place, store};
use crate::analyze_stats::column_statistics;
use crate::ddl::index::RowDecoder;
use crate::exec::modify::IndexWriter;
use crate::session::state::OpenRelation;
use crate::session::{Session, SessionState};
use base::{GiveWay, Result};
use engine::catalog::model::{Index, Table};
use std::cell::RefCell;
use std::sync::Arc;
use types::Datum;
use vacuum::AnalyzeSample;

/// For each index, the part of the table's rows that are in it. Stores the statistics of its expressions, if a target is given.
///
/// # Errors
/// Those of the expressions; I/O, cancellation.
pub(super) fn index_fractions(
    session: &Session,
    table: &Table,
    open: &OpenRelation,
    sample: &AnalyzeSample,
    default_target: Option<i64>,
    give_way: &mut GiveWay,
) -> Result<Vec<f64>> {
    let indexes = table.indexes.iter().zip(&open.indexes);
    indexes
        .map(|(index, tree)| {
            let expressions = index.columns.iter().any(|c| c.expr.is_some());
            let plain = index.predicate.is_none() && !(expressions && default_target.is_some());
            if plain || sample.rows.is_empty() {
                return Ok(1.0);
            }
            let found = sampled(session, table, open, index, tree, sample, give_way)?;
            #[expect(clippy::cast_precision_loss, reason = "sample sizes")]
            let fraction = found.rows as f64 / found.asked.max(1) as f64;
            let rows = (fraction * sample.live_rows).ceil();
            if let Some(default) = default_target {
                for (at, values) in found.values {
                    keep(session, index, at, &values, rows, default, give_way)?;
                }
            }
            Ok(fraction)
        })
        .collect()
}

/// What an index would hold of a sample.
struct Sampled {
    /// Rows of the sample that are there yet.
    asked: usize,
    /// Those of them that are in the index.
    rows: usize,
    /// The values of each expression, by its place among the index's columns.
    values: Vec<(usize, Vec<Datum>)>,
}

fn sampled(
    session: &Session,
    table: &Table,
    open: &OpenRelation,
    index: &Arc<Index>,
    tree: &Arc<btree::Btree>,
    sample: &AnalyzeSample,
    give_way: &mut GiveWay,
) -> Result<Sampled> {
    let (state, env) = (session.state(), session.env());
    let mut writer = IndexWriter::over(index, tree)?;
    let mut decoder = RowDecoder::new(table, index);
    let exec_params = RefCell::new(Vec::new());
    let eval = expr::eval::EvalContext::new(env.as_ref(), &exec_params);
    let expressions = index.columns.iter().enumerate().filter(|(_, c)| c.expr.is_some());
    let mut found =
        Sampled { asked: 0, rows: 0, values: expressions.map(|(i, _)| (i, Vec::new())).collect() };
    for row in &sample.rows {
        state.check_cancel()?;
        give_way.point();
        let view = page::tuple::TupleView { bytes: &row.tuple, xid_base: row.xid_base };
        let values = match decoder.decode(&open.heap, &row.tuple) {
            Ok(values) => values,
            // What belongs to the row has gone meanwhile, for no snapshot keeps it.
            Err(_) if open.heap.has_gone(row.tid, &view)? => continue,
            Err(e) => return Err(e),
        };
        found.asked += 1;
        if !writer.encode(values, &eval)? {
            continue;
        }
        found.rows += 1;
        let entry = writer.values();
        for (i, values) in &mut found.values {
            values.push(match entry[*i] {
                None => Datum::Null,
                Some(bytes) => types::decode(index.columns[*i].ty.oid, bytes)?,
            });
        }
    }
    Ok(found)
}

/// An index's expression, and its target.
fn place(
    state: &SessionState,
    index: &Index,
    at: usize,
    default_target: i64,
) -> Result<Option<(Place, usize)>> {
    let mut place = Place {
        relation: index.oid,
        number: i32::try_from(at + 1).unwrap_or(0),
        ty: index.columns[at].ty.oid,
        collation: base::Oid::INVALID,
    };
    let Some(attribute) = place.attribute(state)? else { return Ok(None) };
    place.collation = attribute.oid("attcollation");
    let target = match attribute.get("attstattarget") {
        Datum::Int2(own) if *own >= 0 => i64::from(*own),
        _ => default_target,
    };
    Ok(Some((place, usize::try_from(target).unwrap_or(100))))
}

/// The largest target of all expressions of a table's indexes; 0: there is none.
pub(super) fn largest_target(
    state: &SessionState,
    table: &Table,
    default_target: i64,
) -> Result<usize> {
    let mut largest = 0;
    for index in &table.indexes {
        for (at, _) in index.columns.iter().enumerate().filter(|(_, c)| c.expr.is_some()) {
            let target = place(state, index, at, default_target)?.map_or(0, |(_, target)| target);
            largest = largest.max(target);
        }
    }
    Ok(largest)
}

/// Stores the statistics of an index's expression.
fn keep(
    session: &Session,
    index: &Index,
    at: usize,
    values: &[Datum],
    rows: f64,
    default_target: i64,
    give_way: &mut GiveWay,
) -> Result<()> {
    let state = session.state();
    let Some((place, target)) = place(state, index, at, default_target)? else { return Ok(()) };
    if target == 0 || values.is_empty() {
        return Ok(());
    }
    store(state, &place, column_statistics(place.ty, values, None, rows, target, give_way))
}
