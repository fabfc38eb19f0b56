//! What ANALYZE learns of a table's indexes from the sample of its rows: how many of them a partial one has, and the statistics of
//! expressions.

use super::analyze::{Place, store};
use crate::analyze_stats::column_statistics;
use crate::ddl::index::RowDecoder;
use crate::exec::modify::IndexWriter;
use crate::session::Session;
use crate::session::state::OpenRelation;
use base::{GiveWay, Result};
use engine::catalog::model::{Index, Table};
use std::cell::RefCell;
use std::sync::Arc;
use types::Datum;
use vacuum::AnalyzeSample;

/// For each index, the part of the table's rows that are in it. Stores the statistics of its expressions.
///
/// # Errors
/// Those of the expressions; I/O, cancellation.
pub(super) fn index_fractions(
    session: &Session,
    table: &Table,
    open: &OpenRelation,
    sample: &AnalyzeSample,
    default_target: i64,
    give_way: &mut GiveWay,
) -> Result<Vec<f64>> {
    let indexes = table.indexes.iter().zip(&open.indexes);
    indexes
        .map(|(index, tree)| {
            let plain = index.predicate.is_none() && index.columns.iter().all(|c| c.expr.is_none());
            if plain || sample.rows.is_empty() {
                return Ok(1.0);
            }
            let found = sampled(session, table, open, index, tree, sample, give_way)?;
            #[expect(clippy::cast_precision_loss, reason = "sample sizes")]
            let fraction = found.rows as f64 / sample.rows.len() as f64;
            let rows = (fraction * sample.live_rows).ceil();
            for (at, values) in found.values {
                keep(session, index, at, &values, rows, default_target, give_way)?;
            }
            Ok(fraction)
        })
        .collect()
}

/// What an index would hold of a sample.
struct Sampled {
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
        Sampled { rows: 0, values: expressions.map(|(i, _)| (i, Vec::new())).collect() };
    for row in &sample.rows {
        state.check_cancel()?;
        give_way.point();
        if !writer.encode(decoder.decode(&open.heap, &row.tuple)?, &eval)? {
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
    let mut place = Place {
        relation: index.oid,
        number: i32::try_from(at + 1).unwrap_or(0),
        ty: index.columns[at].ty.oid,
        collation: base::Oid::INVALID,
    };
    let Some(attribute) = place.attribute(state)? else { return Ok(()) };
    place.collation = attribute.oid("attcollation");
    let target = match attribute.get("attstattarget") {
        Datum::Int2(own) if *own >= 0 => i64::from(*own),
        _ => default_target,
    };
    if target == 0 || values.is_empty() {
        return Ok(());
    }
    let target = usize::try_from(target).unwrap_or(100);
    store(state, &place, column_statistics(place.ty, values, rows, target, give_way))
}
