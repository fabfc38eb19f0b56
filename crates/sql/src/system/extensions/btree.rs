//! pageinspect's functions for B-trees.
//!
//! # Differs from PostgreSQL
//! Entries have Ebb's layout (`page::btree`): values unaligned, without the header's lengths. `ctid` of a pivot is its child and
//! its number of attributes, of a posting list its first address. `data` is the null bitmap and the values. There is no
//! `last_cleanup_num_tuples`.

use super::pageinspect::{page_argument, page_of};
use super::{block_argument, int4, int8, relation_named};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, OffsetNumber, Oid, Result, Tid, bail};
use engine::catalog::model::{RelationKind, Table};
use page::btree::{self as layout, PageRef};
use std::fmt::Write as _;
use std::sync::Arc;
use types::FunctionBody::Set;
use types::args::{int8 as int8_at, text};
use types::registry::RowIter;
use types::{ArrayValue, Datum, Env, oids};

const STATS: &[(&str, Oid)] = &[
    ("blkno", oids::INT8),
    ("type", oids::CHAR),
    ("live_items", oids::INT4),
    ("dead_items", oids::INT4),
    ("avg_item_size", oids::INT4),
    ("page_size", oids::INT4),
    ("free_size", oids::INT4),
    ("btpo_prev", oids::INT8),
    ("btpo_next", oids::INT8),
    ("btpo_level", oids::INT8),
    ("btpo_flags", oids::INT4),
];
const ITEMS: &[(&str, Oid)] = &[
    ("itemoffset", oids::INT2),
    ("ctid", oids::TID),
    ("itemlen", oids::INT2),
    ("nulls", oids::BOOL),
    ("vars", oids::BOOL),
    ("data", oids::TEXT),
    ("dead", oids::BOOL),
    ("htid", oids::TID),
    ("tids", oids::TID_ARRAY),
];

pub(super) const METAP: Own = Own {
    oid: 9990,
    name: "bt_metap",
    args: &[oids::TEXT],
    result: oids::RECORD,
    columns: &[
        ("magic", oids::INT4),
        ("version", oids::INT4),
        ("root", oids::INT8),
        ("level", oids::INT8),
        ("fastroot", oids::INT8),
        ("fastlevel", oids::INT8),
        ("last_cleanup_num_delpages", oids::INT8),
        ("last_cleanup_num_tuples", oids::FLOAT8),
        ("allequalimage", oids::BOOL),
    ],
    body: Set(|env, a| {
        let state = state(env)?;
        superuser(state)?;
        let index = index(state, text(a, 0)?)?;
        let page = page_of(state, &index, Fork::Main, layout::META_BLOCK)?;
        let m = PageRef(page.bytes()).meta();
        Ok(rows(vec![vec![
            int4(m.magic),
            int4(m.version),
            int8(m.root.0),
            int8(m.level),
            int8(m.fast_root.0),
            int8(m.fast_level),
            int8(m.last_cleanup_deleted_pages),
            Datum::Float8(-1.0),
            Datum::Bool(m.all_equal_image),
        ]]))
    }),
};

pub(super) const PAGE_STATS: Own = Own {
    oid: 9991,
    name: "bt_page_stats",
    args: &[oids::TEXT, oids::INT8],
    result: oids::RECORD,
    columns: STATS,
    body: Set(|env, a| {
        let state = state(env)?;
        superuser(state)?;
        let index = index(state, text(a, 0)?)?;
        let block = entry_block(int8_at(a, 1)?)?;
        Ok(rows(vec![stats(state, &index, block)?]))
    }),
};

pub(super) const MULTI_PAGE_STATS: Own = Own {
    oid: 9992,
    name: "bt_multi_page_stats",
    args: &[oids::TEXT, oids::INT8, oids::INT8],
    result: oids::RECORD,
    columns: STATS,
    body: Set(|env, a| {
        let state = state(env)?;
        superuser(state)?;
        let index = index(state, text(a, 0)?)?;
        let first = entry_block(int8_at(a, 1)?)?;
        let pages = match super::pages_of(state, &index) {
            Some(rel) => super::blocks(&rel, Fork::Main)?,
            None => 0,
        };
        // A negative count is all that follow.
        let end = match u32::try_from(int8_at(a, 2)?) {
            Ok(0) => first.0,
            Ok(n) => {
                // All or none.
                let last = first.0.saturating_add(n - 1);
                if last >= pages {
                    let missing = first.0.max(pages);
                    bail!(INVALID_PARAMETER_VALUE, "block number {missing} is out of range");
                }
                last + 1
            }
            Err(_) => pages.max(first.0),
        };
        let mut out = Vec::new();
        for n in first.0..end {
            state.check_cancel()?;
            out.push(stats(state, &index, BlockNumber(n))?);
        }
        Ok(rows(out))
    }),
};

pub(super) const PAGE_ITEMS: Own = Own {
    oid: 9993,
    name: "bt_page_items",
    args: &[oids::TEXT, oids::INT8],
    result: oids::RECORD,
    columns: ITEMS,
    body: Set(|env, a| {
        let state = state(env)?;
        superuser(state)?;
        let index = index(state, text(a, 0)?)?;
        let block = entry_block(int8_at(a, 1)?)?;
        let page = page_of(state, &index, Fork::Main, block)?;
        items(PageRef(page.bytes()))
    }),
};

pub(super) const PAGE_ITEMS_OF_BYTES: Own = Own {
    oid: 9994,
    name: "bt_page_items",
    args: &[oids::BYTEA],
    result: oids::RECORD,
    columns: ITEMS,
    body: Set(|env: &dyn Env, a| {
        super::pageinspect::superuser(state(env)?)?;
        let Some(page) = page_argument(a)? else { return Ok(rows(Vec::new())) };
        let page = PageRef(page.bytes());
        if !page.is_sane() {
            bail!(INVALID_PARAMETER_VALUE, "input page is not a valid btree page");
        }
        if page.has(layout::META) {
            bail!(INVALID_PARAMETER_VALUE, "block is a meta page");
        }
        items(page)
    }),
};

fn index(state: &SessionState, name: &str) -> Result<Arc<Table>> {
    let table = relation_named(state, name)?;
    if table.kind != RelationKind::Index {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a btree index", table.name);
    }
    Ok(table)
}

fn superuser(state: &SessionState) -> Result<()> {
    if state.is_superuser() {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to use pageinspect functions")
}

fn entry_block(n: i64) -> Result<BlockNumber> {
    let Ok(block) = block_argument(n) else {
        bail!(INVALID_PARAMETER_VALUE, "invalid block number {n}");
    };
    if block == layout::META_BLOCK {
        bail!(INVALID_PARAMETER_VALUE, "block 0 is a meta page");
    }
    Ok(block)
}

fn stats(state: &SessionState, index: &Table, block: BlockNumber) -> Result<Vec<Datum>> {
    let page = page_of(state, index, Fork::Main, block)?;
    let page = PageRef(page.bytes());
    let kind = if page.is_new() || page.has(layout::DELETED) {
        b'd'
    } else if page.is_ignored() {
        b'e'
    } else if page.is_leaf() {
        b'l'
    } else if page.has(layout::ROOT) {
        b'r'
    } else {
        b'i'
    };
    let (mut live, mut dead, mut bytes) = (0usize, 0usize, 0usize);
    if kind != b'd' {
        for offset in 1..=page.count() {
            bytes += page.item_len(offset);
            if page.is_dead(offset) {
                dead += 1;
            } else {
                live += 1;
            }
        }
    }
    Ok(vec![
        int8(block.0),
        Datum::Char(kind),
        int4(live),
        int4(dead),
        int4(bytes.checked_div(live + dead).unwrap_or(0)),
        int4(layout::SIZE),
        int4(if kind == b'd' { 0 } else { page.free_space() }),
        int8(page.prev().0),
        int8(page.next().0),
        int8(page.level()),
        int4(page.flags()),
    ])
}

fn items(page: PageRef<'_>) -> Result<RowIter> {
    let mut out = Vec::new();
    if page.is_new() || page.has(layout::DELETED) {
        return Ok(rows(out));
    }
    for offset in 1..=page.count() {
        let item = page.item(offset);
        let pivot = item.is_pivot();
        let ctid = if pivot {
            let attributes = u16::try_from(item.pivot_attributes()).unwrap_or(u16::MAX);
            Tid::new(item.downlink(), OffsetNumber(attributes))
        } else {
            item.tid()
        };
        let mut data = String::new();
        for (i, byte) in item.key_bytes().iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(data, "{}{byte:02x}", if i == 0 { "" } else { " " });
        }
        let tids = item.is_posting().then(|| {
            let list = item.tids().map(Datum::Tid).collect();
            Datum::Array(Arc::new(ArrayValue::one_dimension(oids::TID, list)))
        });
        let heap = if pivot { item.pivot_tid() } else { Some(item.tid()) };
        out.push(vec![
            Datum::Int2(i16::try_from(offset).unwrap_or(i16::MAX)),
            Datum::Tid(ctid),
            Datum::Int2(i16::try_from(page.item_len(offset)).unwrap_or(i16::MAX)),
            Datum::Bool(item.has_nulls()),
            // The widths are the index's to know, not the entry's.
            Datum::Bool(false),
            Datum::text(data),
            if pivot { Datum::Null } else { Datum::Bool(page.is_dead(offset)) },
            heap.map_or(Datum::Null, Datum::Tid),
            tids.unwrap_or_default(),
        ]);
    }
    Ok(rows(out))
}
