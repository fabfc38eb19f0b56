//! The extensions whose functions are built in: what CREATE EXTENSION makes visible.
//!
//! # Layout
//! [`statements`]: pg_stat_statements; [`amcheck`], [`buffercache`], [`visibility`], [`stattuple`], [`rowlocks`], [`pageinspect`] and its [`btree`] part:
//! PostgreSQL's functions under their names.
//!
//! # Invariants
//! A function of an extension is found by name only while `pg_extension` has the extension's row.
//!
//! # Differs from PostgreSQL
//! The functions' OIDs are the same in every database, and they are found whatever schema the extension was made in. A statement prepared before
//! DROP EXTENSION still runs.

mod amcheck;
mod btree;
mod buffercache;
mod freespacemap;
mod pageinspect;
mod prewarm;
mod rowlocks;
mod statements;
mod stattuple;
mod tuples;
mod visibility;

use super::Own;
use crate::session::SessionState;
use base::{BlockNumber, Fork, Oid, Result, SqlError, SqlState, bail};
use buffer::{RelationHandle, Strategy};
use engine::catalog::model::{CatalogView, RelationKind, Table};
use heap::Heap;
use page::Page;
use std::sync::Arc;
use types::Datum;

/// An extension.
pub struct Extension {
    /// Its name.
    pub name: &'static str,
    /// `default_version`
    pub version: &'static str,
    /// What it is for, in a line.
    pub comment: &'static str,
    /// Its functions.
    functions: &'static [Own],
    /// Who else may use the views.
    pub view_readers: &'static [&'static str],
    /// Its views: their names and queries.
    pub views: &'static [(&'static str, &'static str)],
}

/// All of them, by name.
pub const EXTENSIONS: &[Extension] = &[
    Extension {
        name: "amcheck",
        version: "1.5",
        comment: "functions for verifying relation integrity",
        functions: amcheck::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pageinspect",
        version: "1.13",
        comment: "inspect the contents of database pages at a low level",
        functions: pageinspect::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pg_buffercache",
        version: "1.6",
        comment: "examine the shared buffer cache",
        functions: buffercache::FUNCTIONS,
        view_readers: &["pg_monitor"],
        views: &[
            ("pg_buffercache", "SELECT * FROM pg_buffercache_pages()"),
            ("pg_buffercache_numa", "SELECT * FROM pg_buffercache_numa_pages()"),
        ],
    },
    Extension {
        name: "pg_freespacemap",
        version: "1.3",
        comment: "examine the free space map (FSM)",
        functions: freespacemap::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pg_prewarm",
        version: "1.2",
        comment: "prewarm relation data",
        functions: prewarm::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pg_stat_statements",
        version: "1.12",
        comment: "track planning and execution statistics of all SQL statements executed",
        functions: statements::FUNCTIONS,
        // Everybody.
        view_readers: &[""],
        views: &[
            ("pg_stat_statements", "SELECT * FROM pg_stat_statements(true)"),
            ("pg_stat_statements_info", "SELECT * FROM pg_stat_statements_info()"),
        ],
    },
    Extension {
        name: "pg_visibility",
        version: "1.2",
        comment: "examine the visibility map (VM) and page-level visibility info",
        functions: visibility::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pgrowlocks",
        version: "1.2",
        comment: "show row-level locking information",
        functions: rowlocks::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    Extension {
        name: "pgstattuple",
        version: "1.5",
        comment: "show tuple-level statistics",
        functions: stattuple::FUNCTIONS,
        view_readers: &[],
        views: &[],
    },
    // Every database has it from the beginning.
    Extension {
        name: "plpgsql",
        version: "1.0",
        comment: "PL/pgSQL procedural language",
        functions: &[],
        view_readers: &[],
        views: &[],
    },
];

/// The extension called `name`.
pub fn by_name(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().find(|e| e.name == name)
}

/// The extension that a function belongs to.
pub fn of_function(oid: Oid) -> Option<&'static Extension> {
    // Theirs are numbered from here on.
    if oid.0 < FIRST_FUNCTION || oid >= Oid::FIRST_NORMAL {
        return None;
    }
    EXTENSIONS.iter().find(|e| e.functions.iter().any(|f| f.oid == oid.0))
}

const FIRST_FUNCTION: u32 = 9903;

/// A function as `pg_proc` describes it.
pub struct Signature {
    /// `oid`
    pub oid: Oid,
    /// `proname`
    pub name: &'static str,
    /// `proargtypes`
    pub args: &'static [Oid],
    /// `prorettype`
    pub result: Oid,
    /// Their names; none for those without.
    pub names: &'static [&'static str],
    /// OUT parameters.
    pub columns: &'static [(&'static str, Oid)],
    /// `proretset`
    pub returns_set: bool,
}

/// Is it, of the functions whose body gives rows, one that gives a single one and is declared so?
fn gives_one_row(own: &Own) -> bool {
    matches!(
        own.name,
        "bt_metap"
            | "bt_page_stats"
            | "pg_buffercache_summary"
            | "pg_buffercache_evict"
            | "pg_buffercache_evict_relation"
            | "pg_buffercache_evict_all"
            | "page_header"
            | "heap_tuple_infomask_flags"
            | "pgstattuple"
            | "pgstatindex"
            | "pgstatginindex"
            | "pgstathashindex"
            | "pgstattuple_approx"
            | "pg_visibility_map_summary"
            | "pg_stat_statements_info"
    ) || (matches!(own.name, "pg_visibility_map" | "pg_visibility") && own.args.len() == 2)
}

/// `proretset`
pub(super) fn returns_set(own: &Own) -> bool {
    matches!(own.body, types::FunctionBody::Set(_)) && !gives_one_row(own)
}

impl Signature {
    fn of(own: &Own) -> Signature {
        Signature {
            oid: Oid(own.oid),
            name: own.name,
            args: own.args,
            names: argument_names(own.oid, own.name, own.args.len()),
            result: own.result,
            columns: own.columns,
            returns_set: returns_set(own),
        }
    }

    /// As `pg_get_function_arguments` shows them.
    pub fn arguments(&self, with_out: bool) -> String {
        let name = |i: usize| match self.names.get(i) {
            Some(name) if !name.is_empty() => format!("{} ", types::quote_ident(name)),
            _ => String::new(),
        };
        let defaults = default_values(self.name);
        let default = |i: usize| {
            let value = (i + defaults.len()).checked_sub(self.args.len()).map(|at| &defaults[at]);
            value.map_or_else(String::new, |v| format!(" DEFAULT {}", shown(v, self.args[i])))
        };
        let inputs = self
            .args
            .iter()
            .enumerate()
            .map(|(i, ty)| format!("{}{}{}", name(i), types::format_type(*ty, -1), default(i)));
        let outputs = self.columns.iter().filter(|_| with_out).map(|(name, ty)| {
            format!("OUT {} {}", types::quote_ident(name), types::format_type(*ty, -1))
        });
        inputs.chain(outputs).collect::<Vec<_>>().join(", ")
    }

    /// As `pg_get_function_result` shows it.
    pub fn result_text(&self) -> String {
        let ty = types::format_type(self.result, -1);
        if self.returns_set { format!("SETOF {ty}") } else { ty }
    }
}

impl Extension {
    /// Its functions.
    pub fn signatures(&self) -> impl Iterator<Item = Signature> {
        self.functions.iter().map(Signature::of)
    }
}

/// How an extension's functions call their arguments.
const ARGUMENT_NAMES: &[(&str, usize, &[&str])] = &[
    ("bt_index_check", 1, &["index"]),
    ("bt_index_check", 2, &["index", "heapallindexed"]),
    ("bt_index_check", 3, &["index", "heapallindexed", "checkunique"]),
    ("bt_index_parent_check", 1, &["index"]),
    ("bt_index_parent_check", 2, &["index", "heapallindexed"]),
    ("bt_index_parent_check", 3, &["index", "heapallindexed", "rootdescend"]),
    ("bt_index_parent_check", 4, &["index", "heapallindexed", "rootdescend", "checkunique"]),
    ("bt_metap", 1, &["relname"]),
    ("bt_multi_page_stats", 3, &["relname", "blkno", "blk_count"]),
    ("bt_page_items", 1, &["page"]),
    ("bt_page_items", 2, &["relname", "blkno"]),
    ("bt_page_stats", 2, &["relname", "blkno"]),
    ("fsm_page_contents", 1, &["page"]),
    ("gin_index_check", 1, &["index"]),
    ("heap_page_item_attrs", 2, &["page", "rel_oid"]),
    ("heap_page_item_attrs", 3, &["page", "rel_oid", "do_detoast"]),
    ("heap_page_items", 1, &["page"]),
    ("heap_tuple_infomask_flags", 2, &["t_infomask", "t_infomask2"]),
    ("page_checksum", 2, &["page", "blkno"]),
    ("page_header", 1, &["page"]),
    ("pg_freespace", 1, &["rel"]),
    ("pg_prewarm", 5, &["", "mode", "fork", "first_block", "last_block"]),
    ("pg_relpages", 1, &["relname"]),
    ("pg_stat_statements", 1, &["showtext"]),
    ("pg_stat_statements_reset", 4, &["userid", "dbid", "queryid", "minmax_only"]),
    ("pg_visibility", 2, &["", "blkno"]),
    ("pg_visibility_map", 2, &["", "blkno"]),
    ("pgrowlocks", 1, &["relname"]),
    ("pgstatginindex", 1, &["relname"]),
    ("pgstathashindex", 1, &["relname"]),
    ("pgstatindex", 1, &["relname"]),
    ("pgstattuple", 1, &["relname"]),
    ("pgstattuple_approx", 1, &["reloid"]),
    ("tuple_data_split", 5, &["rel_oid", "t_data", "t_infomask", "t_infomask2", "t_bits"]),
    (
        "tuple_data_split",
        6,
        &["rel_oid", "t_data", "t_infomask", "t_infomask2", "t_bits", "do_detoast"],
    ),
    (
        "verify_heapam",
        6,
        &["relation", "on_error_stop", "check_toast", "skip", "startblock", "endblock"],
    ),
];

/// What stands for trailing arguments of a function that are left out.
pub(super) fn default_values(name: &str) -> &'static [Datum] {
    match name {
        "verify_heapam" => amcheck::defaults(),
        "pg_prewarm" => prewarm::defaults(),
        "pg_stat_statements_reset" => statements::defaults(),
        _ => &[],
    }
}

/// A default as a declaration writes it.
fn shown(value: &Datum, ty: Oid) -> String {
    match value {
        Datum::Null => format!("NULL::{}", types::format_type(ty, -1)),
        Datum::Text(text) => format!("'{}'::{}", text.as_str(), types::format_type(ty, -1)),
        Datum::Bool(yes) => yes.to_string(),
        Datum::Oid(oid) => oid.to_string(),
        Datum::Int8(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

/// The names of a function's arguments; none for one without.
pub(super) fn argument_names(oid: u32, name: &str, count: usize) -> &'static [&'static str] {
    // Of pgstattuple's two, the one that takes an OID.
    if oid == 9971 {
        return &["reloid"];
    }
    let known = ARGUMENT_NAMES.iter().find(|(n, c, _)| *n == name && *c == count);
    known.map_or(&[], |(.., names)| names)
}

/// An extension's function.
pub fn signature(oid: Oid) -> Option<Signature> {
    of_function(oid)?.functions.iter().find(|f| f.oid == oid.0).map(Signature::of)
}

/// Is its result NULL whenever an argument is?
pub fn is_strict(function: &str) -> bool {
    // One takes a tuple without null bits, too; the other says itself what must not be null.
    !matches!(function, "tuple_data_split" | "verify_heapam" | "pg_prewarm")
}

/// Every extension's functions.
pub(super) fn functions() -> impl Iterator<Item = Own> {
    EXTENSIONS.iter().flat_map(|e| e.functions.iter().copied())
}

/// `pg_monitor` and `pg_stat_scan_tables`.
const MONITOR: Oid = Oid(3373);
const STAT_SCAN_TABLES: Oid = Oid(3377);

/// Fails unless the current user is a superuser or has one of `roles`.
fn require(state: &SessionState, function: &str, roles: &[Oid]) -> Result<()> {
    let me = state.current_user.borrow().oid;
    if state.is_superuser() || crate::acl::roles_of(state, me)?.iter().any(|r| roles.contains(r)) {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {function}");
}

fn scanner(state: &SessionState, function: &str) -> Result<()> {
    require(state, function, &[STAT_SCAN_TABLES, MONITOR])
}

/// The relation of an OID.
fn relation(state: &SessionState, oid: Oid) -> Result<Arc<Table>> {
    match state.table_by_oid(oid)? {
        Some(table) => Ok(table),
        None => bail!(INTERNAL_ERROR, "could not open relation with OID {oid}"),
    }
}

/// The relation that a text names, as a regclass does.
fn relation_named(state: &SessionState, name: &str) -> Result<Arc<Table>> {
    relation(state, super::names::relation_oid(state, name)?)
}

/// What a relation of this kind is not supported for, in PostgreSQL's words.
pub(super) fn not_supported_for(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::View => "This operation is not supported for views.",
        RelationKind::Index => "This operation is not supported for indexes.",
        RelationKind::Sequence => "This operation is not supported for sequences.",
        RelationKind::Toast => "This operation is not supported for TOAST tables.",
        _ => "This operation is not supported for this kind of relation.",
    }
}

/// A relation that holds rows.
fn heap_of(state: &SessionState, table: &Arc<Table>) -> Result<Arc<Heap>> {
    let rows = matches!(
        table.kind,
        RelationKind::Table | RelationKind::MaterializedView | RelationKind::Toast
    );
    if !rows || table.storage.is_none() {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("relation \"{}\" is of wrong relation kind", table.name),
        )
        .detail(not_supported_for(table.kind))
        .into());
    }
    Ok(state.open_relation(table)?.heap)
}

/// The stored pages of a relation of any kind.
fn pages_of(state: &SessionState, table: &Table) -> Option<RelationHandle> {
    table.storage.map(|id| state.cluster.storage().open(id, table.persistence))
}

/// A copy of a page; None beyond the end.
fn read_page(rel: &RelationHandle, fork: Fork, block: BlockNumber) -> Result<Option<Box<Page>>> {
    let pin = rel.try_pin(fork, block, &mut Strategy::Normal)?;
    Ok(pin.map(|pin| Page::from_bytes(pin.read().bytes())))
}

fn blocks(rel: &RelationHandle, fork: Fork) -> Result<u32> {
    Ok(if rel.exists(fork)? { rel.len_blocks(fork)?.0 } else { 0 })
}

fn block_argument(n: i64) -> Result<BlockNumber> {
    match u32::try_from(n) {
        Ok(block) if block != u32::MAX => Ok(BlockNumber(block)),
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid block number"),
    }
}

fn int4(n: impl TryInto<i32>) -> Datum {
    Datum::Int4(n.try_into().unwrap_or(i32::MAX))
}

fn int8(n: impl TryInto<i64>) -> Datum {
    Datum::Int8(n.try_into().unwrap_or(i64::MAX))
}

/// The low half, as type xid shows it.
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn xid(x: base::Xid) -> Datum {
    Datum::Oid(Oid(x.0 as u32))
}

fn texts(list: &[&str]) -> Datum {
    let elements = list.iter().map(Datum::text).collect();
    Datum::Array(Arc::new(types::ArrayValue::one_dimension(types::oids::TEXT, elements)))
}
