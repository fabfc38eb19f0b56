//! pageinspect: pages as they lie on disk.
//!
//! # Differs from PostgreSQL
//! The pages are Ebb's (docs/FORMAT.md): the header is 32 bytes long, its checksum is a CRC-32C of which `checksum` and
//! `page_checksum` show the low half, `version` is Ebb's layout version, and transaction ids are offsets from the page's base, shown
//! added up. Of `t_infomask2` the bits 0x1000 (a hop of the chain was shortened) and 0x0800 (it leads out of the HOT chain, whole) are Ebb's own. Lengths and
//! offsets beyond the page's end are shown as they are found. BRIN, GIN, GiST and hash pages do not exist.

use super::{block_argument, blocks, int4, pages_of, read_page, relation_named, texts, xid};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Lsn, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{RelationKind, Table};
use page::Page;
use page::tuple::{HEADER_MIN, TupleView};
use std::fmt::Write as _;
use types::FunctionBody::{Scalar, Set};
use types::args::{int4 as int4_at, int8, text};
use types::registry::RowIter;
use types::{Datum, Env, oids};

/// What is told of a line pointer, but for the tuple's data.
const ITEM: [(&str, Oid); 13] = [
    ("lp", oids::INT2),
    ("lp_off", oids::INT2),
    ("lp_flags", oids::INT2),
    ("lp_len", oids::INT2),
    ("t_xmin", oids::XID),
    ("t_xmax", oids::XID),
    ("t_field3", oids::INT4),
    ("t_ctid", oids::TID),
    ("t_infomask2", oids::INT4),
    ("t_infomask", oids::INT4),
    ("t_hoff", oids::INT2),
    ("t_bits", oids::TEXT),
    ("t_oid", oids::OID),
];
const HEAP_ITEMS: &[(&str, Oid)] = &item_with(("t_data", oids::BYTEA));

/// The columns that tell of a line pointer, the tuple's data in a column like `last`.
pub(super) const fn item_with(last: (&'static str, Oid)) -> [(&'static str, Oid); 14] {
    let mut columns = [last; 14];
    columns.split_at_mut(ITEM.len()).0.copy_from_slice(&ITEM);
    columns
}

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9980,
        name: "get_raw_page",
        args: &[oids::TEXT, oids::INT8],
        result: oids::BYTEA,
        columns: &[],
        body: Scalar(|env, a| raw_page(env, text(a, 0)?, "main", int8(a, 1)?)),
    },
    Own {
        oid: 9981,
        name: "get_raw_page",
        args: &[oids::TEXT, oids::TEXT, oids::INT8],
        result: oids::BYTEA,
        columns: &[],
        body: Scalar(|env, a| raw_page(env, text(a, 0)?, text(a, 1)?, int8(a, 2)?)),
    },
    Own {
        oid: 9982,
        name: "page_header",
        args: &[oids::BYTEA],
        result: oids::RECORD,
        columns: &[
            ("lsn", oids::PG_LSN),
            ("checksum", oids::INT2),
            ("flags", oids::INT2),
            ("lower", oids::INT4),
            ("upper", oids::INT4),
            ("special", oids::INT4),
            ("pagesize", oids::INT4),
            ("version", oids::INT2),
            ("prune_xid", oids::XID),
        ],
        body: Set(|env, a| header(env, a)),
    },
    Own {
        oid: 9983,
        name: "page_checksum",
        args: &[oids::BYTEA, oids::INT8],
        result: oids::INT2,
        columns: &[],
        body: Scalar(|env, a| {
            superuser(state(env)?)?;
            let block = block_argument(int8(a, 1)?)?;
            let shown = |p: &Page| low_half(p.compute_checksum(block.0));
            Ok(page_argument(a)?.map_or(Datum::Null, |p| shown(&p)))
        }),
    },
    Own {
        oid: 9984,
        name: "heap_page_items",
        args: &[oids::BYTEA],
        result: oids::RECORD,
        columns: HEAP_ITEMS,
        body: Set(|env, a| heap_items(env, a)),
    },
    Own {
        oid: 9985,
        name: "heap_tuple_infomask_flags",
        args: &[oids::INT4, oids::INT4],
        result: oids::RECORD,
        columns: &[("raw_flags", oids::TEXT_ARRAY), ("combined_flags", oids::TEXT_ARRAY)],
        body: Set(|env, a| {
            superuser(state(env)?)?;
            Ok(rows(vec![infomask_flags(int4_at(a, 0)?, int4_at(a, 1)?)]))
        }),
    },
    Own {
        oid: 9986,
        name: "fsm_page_contents",
        args: &[oids::BYTEA],
        result: oids::TEXT,
        columns: &[],
        body: Scalar(|env, a| {
            superuser(state(env)?)?;
            Ok(page_argument(a)?.map_or(Datum::Null, |p| Datum::text(fsm_text(&p))))
        }),
    },
    super::tuples::SPLIT,
    super::tuples::SPLIT_DETOAST,
    super::tuples::ITEM_ATTRS,
    super::tuples::ITEM_ATTRS_DETOAST,
    super::btree::METAP,
    super::btree::PAGE_STATS,
    super::btree::MULTI_PAGE_STATS,
    super::btree::PAGE_ITEMS,
    super::btree::PAGE_ITEMS_OF_BYTES,
];

/// Fails unless the current user is a superuser.
pub(super) fn superuser(state: &SessionState) -> Result<()> {
    if !state.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to use raw page functions");
    }
    Ok(())
}

fn raw_page(env: &dyn Env, name: &str, fork: &str, block: i64) -> Result<Datum> {
    let state = state(env)?;
    let block = block_argument(block)?;
    superuser(state)?;
    let table = relation_named(state, name)?;
    let Some(fork) = Fork::ALL.into_iter().find(|f| f.name() == fork) else {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")
            .into());
    };
    if let (Some(rel), Some(id)) = (pages_of(state, &table), table.storage) {
        if !rel.exists(fork)? {
            bail!(
                UNDEFINED_FILE,
                "could not open file \"{id}{}\": No such file or directory",
                fork.suffix()
            );
        }
        let name = &table.name;
        if block.0 >= blocks(&rel, fork)? {
            bail!(
                INVALID_PARAMETER_VALUE,
                "block number {block} is out of range for relation \"{name}\""
            );
        }
    }
    let page = page_of(state, &table, fork, block)?;
    Ok(Datum::Bytea(page.bytes().as_slice().into()))
}

/// A stored page.
///
/// # Errors
/// `42809` without storage, `22023` beyond the end.
pub(super) fn page_of(
    state: &SessionState,
    table: &Table,
    fork: Fork,
    block: BlockNumber,
) -> Result<Box<Page>> {
    let Some(rel) = pages_of(state, table) else {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot get raw page from relation \"{}\"", table.name),
        )
        .detail(super::not_supported_for(table.kind))
        .into());
    };
    let page = if block.0 < blocks(&rel, fork)? { read_page(&rel, fork, block)? } else { None };
    match page {
        Some(page) => Ok(page),
        None if fork == Fork::Main && table.kind == RelationKind::Index => {
            bail!(INVALID_PARAMETER_VALUE, "block number {block} is out of range")
        }
        None if fork == Fork::Main => bail!(
            INVALID_PARAMETER_VALUE,
            "block number {block} is out of range for relation \"{}\"",
            table.name
        ),
        None => bail!(
            INVALID_PARAMETER_VALUE,
            "block number {block} is out of range for relation \"{}\" fork \"{}\"",
            table.name,
            fork.name()
        ),
    }
}

/// The page given as bytes; None for one never initialised.
pub(super) fn page_argument(a: &[Datum]) -> Result<Option<Box<Page>>> {
    let Some(Datum::Bytea(bytes)) = a.first() else {
        bail!(INTERNAL_ERROR, "expected bytea as a function's argument");
    };
    let Ok(bytes) = <&[u8; page::PAGE_SIZE]>::try_from(&**bytes) else {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid page size")
            .detail(format!("Expected {} bytes, got {}.", page::PAGE_SIZE, bytes.len()))
            .into());
    };
    let page = Page::from_bytes(bytes);
    Ok(if page.is_new() { None } else { Some(page) })
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn low_half(checksum: u32) -> Datum {
    Datum::Int2((checksum as u16).cast_signed())
}

fn int2(n: impl TryInto<i16>) -> Datum {
    Datum::Int2(n.try_into().unwrap_or(i16::MAX))
}

fn header(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    superuser(state(env)?)?;
    let Some(Datum::Bytea(bytes)) = a.first() else {
        bail!(INTERNAL_ERROR, "expected bytea as a function's argument");
    };
    let page = match page_argument(a)? {
        Some(page) => page,
        // All its fields are zero then.
        None => match <&[u8; page::PAGE_SIZE]>::try_from(&**bytes) {
            Ok(bytes) => Page::from_bytes(bytes),
            Err(_) => return Ok(rows(Vec::new())),
        },
    };
    let lsn: Lsn = page.lsn();
    Ok(rows(vec![vec![
        Datum::Lsn(lsn),
        low_half(page.checksum()),
        int2(page.flags()),
        int4(page.lower()),
        int4(page.upper()),
        int4(page.special()),
        int4(page::PAGE_SIZE),
        int2(page.layout_version()),
        xid(page.prune_xid()),
    ]]))
}

fn heap_items(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    superuser(state(env)?)?;
    if let Some(Datum::Bytea(bytes)) = a.first()
        && bytes.len() < page::PAGE_SIZE
    {
        let len = bytes.len();
        bail!(INVALID_PARAMETER_VALUE, "input page too small ({len} bytes)");
    }
    Ok(rows(page_argument(a)?.map_or_else(Vec::new, |page| item_rows(&page))))
}

/// What [`HEAP_ITEMS`] says of each line pointer.
pub(super) fn item_rows(page: &Page) -> Vec<Vec<Datum>> {
    let mut out = Vec::new();
    for o in page.offsets() {
        let id = page.item_id(o);
        let mut row =
            vec![int2(o.0), int2(id.offset()), int2((id.raw() >> 15) & 3), int2(id.len())];
        let end = id.offset().saturating_add(id.len());
        if id.is_normal() && id.len() > HEADER_MIN && end <= page::PAGE_SIZE {
            let t = TupleView::on_page(page, o);
            let bytes = t.bytes;
            let data = bytes.get(t.hoff()..).unwrap_or_default();
            let null_bits = t.null_bitmap().map(|map| {
                let mut text = String::with_capacity(map.len() * 8);
                for bit in 0..t.natts().div_ceil(8) * 8 {
                    let set = map.get(bit / 8).is_some_and(|b| b >> (bit % 8) & 1 != 0);
                    text.push(if set { '1' } else { '0' });
                }
                text
            });
            row.extend([
                xid(t.raw_xmin()),
                xid(t.xmax()),
                Datum::Int4(t.command_id().0.cast_signed()),
                Datum::Tid(t.ctid()),
                int4(t.infomask2()),
                int4(t.infomask()),
                int2(t.hoff()),
                null_bits.map_or(Datum::Null, Datum::text),
                Datum::Null,
                Datum::Bytea(data.into()),
            ]);
        }
        row.resize(HEAP_ITEMS.len(), Datum::Null);
        out.push(row);
    }
    out
}

const INFOMASK: &[(i32, &str)] = &[
    (0x0001, "HEAP_HASNULL"),
    (0x0002, "HEAP_HASVARWIDTH"),
    (0x0004, "HEAP_HASEXTERNAL"),
    (0x0008, "HEAP_HASOID_OLD"),
    (0x0010, "HEAP_XMAX_KEYSHR_LOCK"),
    (0x0020, "HEAP_COMBOCID"),
    (0x0040, "HEAP_XMAX_EXCL_LOCK"),
    (0x0080, "HEAP_XMAX_LOCK_ONLY"),
    (0x0100, "HEAP_XMIN_COMMITTED"),
    (0x0200, "HEAP_XMIN_INVALID"),
    (0x0400, "HEAP_XMAX_COMMITTED"),
    (0x0800, "HEAP_XMAX_INVALID"),
    (0x1000, "HEAP_XMAX_IS_MULTI"),
    (0x2000, "HEAP_UPDATED"),
    (0x4000, "HEAP_MOVED_OFF"),
    (0x8000, "HEAP_MOVED_IN"),
];
const INFOMASK2: &[(i32, &str)] = &[
    (0x0800, "EBB_CHAIN_END"),
    (0x1000, "EBB_CHAIN_SHORTENED"),
    (0x2000, "HEAP_KEYS_UPDATED"),
    (0x4000, "HEAP_HOT_UPDATED"),
    (0x8000, "HEAP_ONLY_TUPLE"),
];
const COMBINED: &[(i32, &str)] =
    &[(0x0050, "HEAP_XMAX_SHR_LOCK"), (0x0300, "HEAP_XMIN_FROZEN"), (0xC000, "HEAP_MOVED")];

fn infomask_flags(infomask: i32, infomask2: i32) -> Vec<Datum> {
    let set = |list: &'static [(i32, &'static str)], mask: i32| {
        list.iter().filter(move |(bits, _)| mask & bits == *bits).map(|(_, name)| *name)
    };
    let raw: Vec<&str> = set(INFOMASK, infomask).chain(set(INFOMASK2, infomask2)).collect();
    let combined: Vec<&str> = set(COMBINED, infomask).collect();
    vec![texts(&raw), texts(&combined)]
}

/// The tree of a free-space map's page, then its hint.
fn fsm_text(page: &Page) -> String {
    let mut out = String::new();
    for (node, value) in page::free_space::nodes(page).iter().enumerate().filter(|(_, v)| **v > 0) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{node}: {value}");
    }
    let _ = writeln!(out, "fp_next_slot: {}", page::free_space::next_slot(page));
    out
}
