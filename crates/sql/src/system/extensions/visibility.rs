//! pg_visibility: the visibility map, and whether it tells the truth.

use super::{block_argument, blocks, heap_of, int8, read_page, relation, scanner};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Oid, Result, Tid};
use heap::visibility::satisfies_vacuum;
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{Heap, Hints, MapPin, prune::Verdict};
use page::tuple::{TupleView, XMAX_INVALID, XMIN_FROZEN};
use std::sync::Arc;
use txn::LockMode;
use types::FunctionBody::{Scalar, Set};
use types::args::{int8 as int8_at, oid};
use types::registry::RowIter;
use types::{Datum, Env, oids};

const MAP: &[(&str, Oid)] = &[("all_visible", oids::BOOL), ("all_frozen", oids::BOOL)];
const MAP_AND_PAGE: &[(&str, Oid)] =
    &[("all_visible", oids::BOOL), ("all_frozen", oids::BOOL), ("pd_all_visible", oids::BOOL)];

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9960,
        name: "pg_visibility_map",
        args: &[oids::REGCLASS, oids::INT8],
        result: oids::RECORD,
        columns: MAP,
        body: Set(|env, a| one(env, a, "pg_visibility_map", false)),
    },
    Own {
        oid: 9961,
        name: "pg_visibility",
        args: &[oids::REGCLASS, oids::INT8],
        result: oids::RECORD,
        columns: MAP_AND_PAGE,
        body: Set(|env, a| one(env, a, "pg_visibility", true)),
    },
    Own {
        oid: 9962,
        name: "pg_visibility_map",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[("blkno", oids::INT8), ("all_visible", oids::BOOL), ("all_frozen", oids::BOOL)],
        body: Set(|env, a| all(env, a, "pg_visibility_map", false)),
    },
    Own {
        oid: 9963,
        name: "pg_visibility",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[
            ("blkno", oids::INT8),
            ("all_visible", oids::BOOL),
            ("all_frozen", oids::BOOL),
            ("pd_all_visible", oids::BOOL),
        ],
        body: Set(|env, a| all(env, a, "pg_visibility", true)),
    },
    Own {
        oid: 9964,
        name: "pg_visibility_map_summary",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[("all_visible", oids::INT8), ("all_frozen", oids::INT8)],
        body: Set(|env, a| {
            let (_, heap) = opened(env, a, "pg_visibility_map_summary")?;
            let (visible, frozen) = heap.visibility_map().count()?;
            Ok(rows(vec![vec![int8(visible), int8(frozen)]]))
        }),
    },
    Own {
        oid: 9965,
        name: "pg_check_frozen",
        args: &[oids::REGCLASS],
        result: oids::TID,
        columns: &[("t_ctid", oids::TID)],
        body: Set(|env, a| check(env, a, "pg_check_frozen", ALL_FROZEN)),
    },
    Own {
        oid: 9966,
        name: "pg_check_visible",
        args: &[oids::REGCLASS],
        result: oids::TID,
        columns: &[("t_ctid", oids::TID)],
        body: Set(|env, a| check(env, a, "pg_check_visible", ALL_VISIBLE)),
    },
    Own {
        oid: 9967,
        name: "pg_truncate_visibility_map",
        args: &[oids::REGCLASS],
        result: oids::VOID,
        columns: &[],
        body: Scalar(|env, a| {
            let state = state(env)?;
            crate::system::session::superuser(state, "pg_truncate_visibility_map")?;
            let relation_oid = oid(a, 0)?;
            crate::relations::lock(state, relation_oid, LockMode::AccessExclusive)?;
            let heap = heap_of(state, &relation(state, relation_oid)?)?;
            let rel = heap.relation();
            if blocks(rel, Fork::VisibilityMap)? > 0 {
                let files = &state.cluster.engine().files;
                files.truncate(rel, &[(Fork::VisibilityMap, BlockNumber(0))])?;
            }
            Ok(Datum::Null)
        }),
    },
];

fn opened<'e>(
    env: &'e dyn Env,
    a: &[Datum],
    function: &str,
) -> Result<(&'e SessionState, Arc<Heap>)> {
    let state = state(env)?;
    scanner(state, function)?;
    let table = relation(state, oid(a, 0)?)?;
    crate::relations::lock(state, table.oid, LockMode::AccessShare)?;
    Ok((state, heap_of(state, &table)?))
}

fn bits(bits: u8) -> [Datum; 2] {
    [Datum::Bool(bits & ALL_VISIBLE != 0), Datum::Bool(bits & ALL_FROZEN != 0)]
}

fn one(env: &dyn Env, a: &[Datum], function: &str, page: bool) -> Result<RowIter> {
    let (_, heap) = opened(env, a, function)?;
    let block = block_argument(int8_at(a, 1)?)?;
    let mut row = bits(heap.visibility_map().bits(block, &mut MapPin::none())?).to_vec();
    if page {
        let page = read_page(heap.relation(), Fork::Main, block)?;
        row.push(Datum::Bool(page.is_some_and(|p| p.is_all_visible())));
    }
    Ok(rows(vec![row]))
}

fn all(env: &dyn Env, a: &[Datum], function: &str, page: bool) -> Result<RowIter> {
    let (state, heap) = opened(env, a, function)?;
    let (map, mut pin) = (heap.visibility_map(), MapPin::none());
    let mut out = Vec::new();
    for n in 0..blocks(heap.relation(), Fork::Main)? {
        state.check_cancel()?;
        let block = BlockNumber(n);
        let mut row = vec![Datum::Int8(i64::from(n))];
        row.extend(bits(map.bits(block, &mut pin)?));
        if page {
            let page = read_page(heap.relation(), Fork::Main, block)?;
            row.push(Datum::Bool(page.is_some_and(|p| p.is_all_visible())));
        }
        out.push(row);
    }
    Ok(rows(out))
}

/// The tuples that belie a bit of the map.
fn check(env: &dyn Env, a: &[Datum], function: &str, bit: u8) -> Result<RowIter> {
    let (state, heap) = opened(env, a, function)?;
    let (map, mut pin) = (heap.visibility_map(), MapPin::none());
    let mut out = Vec::new();
    for n in 0..blocks(heap.relation(), Fork::Main)? {
        state.check_cancel()?;
        let block = BlockNumber(n);
        if map.bits(block, &mut pin)? & bit == 0 {
            continue;
        }
        // Read before the bit is looked at again: a writer clears it together with its change.
        let Some(page) = read_page(heap.relation(), Fork::Main, block)? else { break };
        if map.bits(block, &mut pin)? & bit == 0 {
            continue;
        }
        for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
            let tuple = TupleView::on_page(&page, offset);
            let fine = if bit == ALL_FROZEN {
                is_frozen(&tuple)
            } else {
                is_visible_to_all(&heap, &tuple)?
            };
            if !fine {
                out.push(vec![Datum::Tid(Tid::new(block, offset))]);
            }
        }
    }
    Ok(rows(out))
}

fn is_frozen(t: &TupleView<'_>) -> bool {
    t.infomask() & XMIN_FROZEN == XMIN_FROZEN
        && (t.infomask() & XMAX_INVALID != 0 || !t.xmax().is_valid())
}

fn is_visible_to_all(heap: &Heap, t: &TupleView<'_>) -> Result<bool> {
    let horizon = heap.horizon();
    let live = satisfies_vacuum(t, &heap.context().txns, &horizon, &mut Hints::default())?;
    if live != Verdict::Live {
        return Ok(false);
    }
    let frozen = t.infomask() & XMIN_FROZEN == XMIN_FROZEN;
    if !frozen && t.raw_xmin() >= horizon.oldest_xmin {
        return Ok(false);
    }
    Ok(true)
}
