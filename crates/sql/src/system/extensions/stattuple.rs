//! pgstattuple: how full tables and B-trees are.
//!
//! # Differs from PostgreSQL
//! Only B-trees are indexes here. A dead line pointer that keeps its row's keys counts as free room that pruning has not taken yet.

use super::{blocks, int4, int8, pages_of, read_page, relation, relation_named, scanner};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{RelationKind, Table};
use heap::visibility::{Dirty, satisfies_dirty, satisfies_vacuum};
use heap::visibility_map::ALL_VISIBLE;
use heap::{Hints, MapPin, prune::Verdict};
use page::btree::{self as layout, PageRef};
use page::tuple::TupleView;
use page::{HEADER_SIZE, PAGE_SIZE};
use std::sync::Arc;
use types::FunctionBody::{Scalar, Set};
use types::args::{oid, text};
use types::registry::RowIter;
use types::{Datum, Env, oids};

const TABLE: &[(&str, Oid)] = &[
    ("table_len", oids::INT8),
    ("tuple_count", oids::INT8),
    ("tuple_len", oids::INT8),
    ("tuple_percent", oids::FLOAT8),
    ("dead_tuple_count", oids::INT8),
    ("dead_tuple_len", oids::INT8),
    ("dead_tuple_percent", oids::FLOAT8),
    ("free_space", oids::INT8),
    ("free_percent", oids::FLOAT8),
];
const INDEX: &[(&str, Oid)] = &[
    ("version", oids::INT4),
    ("tree_level", oids::INT4),
    ("index_size", oids::INT8),
    ("root_block_no", oids::INT8),
    ("internal_pages", oids::INT8),
    ("leaf_pages", oids::INT8),
    ("empty_pages", oids::INT8),
    ("deleted_pages", oids::INT8),
    ("avg_leaf_density", oids::FLOAT8),
    ("leaf_fragmentation", oids::FLOAT8),
];

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9970,
        name: "pgstattuple",
        args: &[oids::TEXT],
        result: oids::RECORD,
        columns: TABLE,
        body: Set(|env, a| tuples(state(env)?, named(env, a)?)),
    },
    Own {
        oid: 9971,
        name: "pgstattuple",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: TABLE,
        body: Set(|env, a| tuples(state(env)?, by_oid(env, a)?)),
    },
    Own {
        oid: 9972,
        name: "pgstatindex",
        args: &[oids::TEXT],
        result: oids::RECORD,
        columns: INDEX,
        body: Set(|env, a| index(state(env)?, named(env, a)?)),
    },
    Own {
        oid: 9973,
        name: "pgstatindex",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: INDEX,
        body: Set(|env, a| index(state(env)?, by_oid(env, a)?)),
    },
    Own {
        oid: 9977,
        name: "pgstatginindex",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[
            ("version", oids::INT4),
            ("pending_pages", oids::INT4),
            ("pending_tuples", oids::INT8),
        ],
        body: Set(|env, a| other_index(state(env)?, by_oid(env, a)?, "pgstatginindex", "GIN")),
    },
    Own {
        oid: 9978,
        name: "pgstathashindex",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[
            ("version", oids::INT4),
            ("bucket_pages", oids::INT8),
            ("overflow_pages", oids::INT8),
            ("bitmap_pages", oids::INT8),
            ("unused_pages", oids::INT8),
            ("live_items", oids::INT8),
            ("dead_items", oids::INT8),
            ("free_percent", oids::FLOAT8),
        ],
        body: Set(|env, a| other_index(state(env)?, by_oid(env, a)?, "pgstathashindex", "hash")),
    },
    Own {
        oid: 9974,
        name: "pg_relpages",
        args: &[oids::TEXT],
        result: oids::INT8,
        columns: &[],
        body: Scalar(|env, a| length(state(env)?, named(env, a)?)),
    },
    Own {
        oid: 9975,
        name: "pg_relpages",
        args: &[oids::REGCLASS],
        result: oids::INT8,
        columns: &[],
        body: Scalar(|env, a| length(state(env)?, by_oid(env, a)?)),
    },
    Own {
        oid: 9976,
        name: "pgstattuple_approx",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[
            ("table_len", oids::INT8),
            ("scanned_percent", oids::FLOAT8),
            ("approx_tuple_count", oids::INT8),
            ("approx_tuple_len", oids::INT8),
            ("approx_tuple_percent", oids::FLOAT8),
            ("dead_tuple_count", oids::INT8),
            ("dead_tuple_len", oids::INT8),
            ("dead_tuple_percent", oids::FLOAT8),
            ("approx_free_space", oids::INT8),
            ("approx_free_percent", oids::FLOAT8),
        ],
        body: Set(|env, a| approximate(state(env)?, by_oid(env, a)?)),
    },
];

fn named(env: &dyn Env, a: &[Datum]) -> Result<Arc<Table>> {
    relation_named(state(env)?, text(a, 0)?)
}

fn by_oid(env: &dyn Env, a: &[Datum]) -> Result<Arc<Table>> {
    relation(state(env)?, oid(a, 0)?)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// What is added up page by page.
#[derive(Default)]
struct Sums {
    count: u64,
    len: u64,
    dead_count: u64,
    dead_len: u64,
    free: u64,
}

impl Sums {
    fn row(&self, pages: u32) -> Vec<Datum> {
        let total = u64::from(pages) * PAGE_SIZE as u64;
        let share = |n: u64| Datum::Float8(two_places(percent(n, total)));
        vec![
            int8(total),
            int8(self.count),
            int8(self.len),
            share(self.len),
            int8(self.dead_count),
            int8(self.dead_len),
            share(self.dead_len),
            int8(self.free),
            share(self.free),
        ]
    }
}

/// As PostgreSQL prints it: `%.2f`.
fn two_places(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn wrong_kind(table: &Table) -> base::Error {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("cannot get tuple-level statistics for relation \"{}\"", table.name),
    )
    .detail(super::not_supported_for(table.kind))
    .into()
}

fn tuples(state: &SessionState, table: Arc<Table>) -> Result<RowIter> {
    scanner(state, "pgstattuple")?;
    let (true, Some(rel)) = (table.storage.is_some(), pages_of(state, &table)) else {
        return Err(wrong_kind(&table));
    };
    let pages = blocks(&rel, Fork::Main)?;
    let mut sums = Sums::default();
    match table.kind {
        RelationKind::Table
        | RelationKind::Toast
        | RelationKind::MaterializedView
        | RelationKind::Sequence => {
            let txns = &state.cluster.engine().txns;
            let mut hints = Hints::default();
            for n in 0..pages {
                state.check_cancel()?;
                let Some(page) = read_page(&rel, Fork::Main, BlockNumber(n))? else { break };
                if page.is_new() {
                    continue;
                }
                for o in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
                    let len = page.item_id(o).len() as u64;
                    let t = TupleView::on_page(&page, o);
                    if satisfies_dirty(&t, txns, None, &mut hints)? == Dirty::Dead {
                        sums.dead_count += 1;
                        sums.dead_len += len;
                    } else {
                        sums.count += 1;
                        sums.len += len;
                    }
                }
                sums.free += (page.upper() - page.lower()) as u64;
            }
        }
        RelationKind::Index => {
            for n in 1..pages {
                state.check_cancel()?;
                let Some(page) = read_page(&rel, Fork::Main, BlockNumber(n))? else { break };
                let page = PageRef(page.bytes());
                if page.is_new() || page.is_ignored() {
                    sums.free += PAGE_SIZE as u64;
                } else if page.is_leaf() {
                    for o in page.first_data()..=page.count() {
                        let len = page.item_len(o) as u64;
                        if page.is_dead(o) {
                            sums.dead_count += 1;
                            sums.dead_len += len;
                        } else {
                            sums.count += 1;
                            sums.len += len;
                        }
                    }
                    sums.free += page.free_space() as u64;
                }
            }
        }
        _ => return Err(wrong_kind(&table)),
    }
    Ok(rows(vec![sums.row(pages)]))
}

fn index(state: &SessionState, table: Arc<Table>) -> Result<RowIter> {
    scanner(state, "pgstatindex")?;
    let rel = match (table.kind, pages_of(state, &table)) {
        (RelationKind::Index, Some(rel)) => rel,
        _ => bail!(WRONG_OBJECT_TYPE, "relation \"{}\" is not a btree index", table.name),
    };
    let pages = blocks(&rel, Fork::Main)?;
    let Some(meta) = read_page(&rel, Fork::Main, layout::META_BLOCK)? else {
        bail!(INDEX_CORRUPTED, "index \"{}\" has no meta page", table.name);
    };
    let meta = PageRef(meta.bytes()).meta();
    let (mut internal, mut leaves, mut empty, mut deleted) = (0u64, 0u64, 0u64, 0u64);
    let (mut room, mut free, mut fragments) = (0u64, 0u64, 0u64);
    for n in 1..pages {
        state.check_cancel()?;
        let Some(page) = read_page(&rel, Fork::Main, BlockNumber(n))? else { break };
        let page = PageRef(page.bytes());
        // Of a tree that a rebuild in place took the place of: about to be deleted.
        let former = page.generation() != meta.generation;
        if page.is_new() || page.has(layout::DELETED) || former {
            deleted += 1;
        } else if page.is_ignored() {
            empty += 1;
        } else if page.is_leaf() {
            leaves += 1;
            room += (layout::SPECIAL - HEADER_SIZE) as u64;
            free += page.free_space() as u64;
            fragments += u64::from(!page.is_rightmost() && page.next().0 < n);
        } else {
            internal += 1;
        }
    }
    let ratio = |part: f64, whole: u64| {
        if whole == 0 { f64::NAN } else { two_places(100.0 * part / whole as f64) }
    };
    Ok(rows(vec![vec![
        int4(meta.version),
        int4(meta.level),
        int8((1 + leaves + internal + deleted + empty) * PAGE_SIZE as u64),
        int8(meta.root.0),
        int8(internal),
        int8(leaves),
        int8(empty),
        int8(deleted),
        Datum::Float8(ratio((room - free.min(room)) as f64, room)),
        Datum::Float8(ratio(fragments as f64, leaves)),
    ]]))
}

/// No index is of another kind than B-tree.
fn other_index(
    state: &SessionState,
    table: Arc<Table>,
    function: &str,
    wanted: &str,
) -> Result<RowIter> {
    scanner(state, function)?;
    bail!(WRONG_OBJECT_TYPE, "relation \"{}\" is not a {wanted} index", table.name)
}

fn length(state: &SessionState, table: Arc<Table>) -> Result<Datum> {
    scanner(state, "pg_relpages")?;
    match pages_of(state, &table) {
        Some(rel) => Ok(int8(blocks(&rel, Fork::Main)?)),
        None => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot get page count of relation \"{}\"", table.name),
        )
        .detail(super::not_supported_for(table.kind))
        .into()),
    }
}

/// All-visible pages are not read: the free-space map says what they hold.
fn approximate(state: &SessionState, table: Arc<Table>) -> Result<RowIter> {
    scanner(state, "pgstattuple_approx")?;
    let heap = match table.kind {
        RelationKind::Table | RelationKind::Toast | RelationKind::MaterializedView => {
            super::heap_of(state, &table)?
        }
        _ => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("relation \"{}\" is of wrong relation kind", table.name),
            )
            .detail(super::not_supported_for(table.kind))
            .into());
        }
    };
    let rel = heap.relation();
    let pages = blocks(rel, Fork::Main)?;
    let (map, mut pin, mut hints) = (heap.visibility_map(), MapPin::none(), Hints::default());
    let (mut sums, mut scanned, horizon) = (Sums::default(), 0u32, heap.horizon());
    for n in 0..pages {
        state.check_cancel()?;
        let block = BlockNumber(n);
        if map.bits(block, &mut pin)? & ALL_VISIBLE != 0 {
            let free = heap.free_space_map().get(block)? as u64;
            sums.free += free;
            sums.len += PAGE_SIZE as u64 - free;
            continue;
        }
        let Some(page) = read_page(rel, Fork::Main, block)? else { break };
        scanned += 1;
        if page.is_new() {
            continue;
        }
        sums.free += page.free_space_for_item() as u64;
        for o in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
            let len = page.item_id(o).len() as u64;
            let t = TupleView::on_page(&page, o);
            match satisfies_vacuum(&t, &heap.context().txns, &horizon, &mut hints)? {
                Verdict::Live | Verdict::DeleteInProgress => {
                    sums.count += 1;
                    sums.len += len;
                }
                Verdict::Dead | Verdict::RecentlyDead | Verdict::Middle => {
                    sums.dead_count += 1;
                    sums.dead_len += len;
                }
                Verdict::InsertInProgress => {}
            }
        }
    }
    let (old_pages, old_tuples) = (f64::from(table.relpages.max(0)), f64::from(table.reltuples));
    let density = if old_tuples >= 0.0 && old_pages > 0.0 {
        old_tuples / old_pages
    } else if scanned > 0 {
        sums.count as f64 / f64::from(scanned)
    } else {
        0.0
    };
    #[expect(clippy::cast_possible_truncation, reason = "a row count")]
    let count = (density * f64::from(pages - scanned) + sums.count as f64 + 0.5).floor() as i64;
    let total = u64::from(pages) * PAGE_SIZE as u64;
    let share = |n: u64| Datum::Float8(percent(n, total));
    Ok(rows(vec![vec![
        int8(total),
        Datum::Float8(percent(u64::from(scanned), u64::from(pages))),
        Datum::Int8(count),
        int8(sums.len),
        share(sums.len),
        int8(sums.dead_count),
        int8(sums.dead_len),
        share(sums.dead_len),
        int8(sums.free),
        share(sums.free),
    ]]))
}
