//! amcheck: is a table, or an index, what it should be?
//!
//! # Locks
//! `bt_index_check` and `verify_heapam`: AccessShare, while they run; others write meanwhile. `bt_index_parent_check`: Share.
//!
//! # Differs from PostgreSQL
//! Damage has Ebb's words. `heapallindexed` misses nothing ([`crate::index_check`]), and under `bt_index_parent_check` also finds entries
//! that lead to no row. `rootdescend` comes after all else has been checked.

use super::{blocks, read_page, relation, require};
use crate::exec::RelationAccess;
use crate::index_check::{Bounds, TableAndIndex};
use crate::session::{SessionEnv, SessionState};
use crate::system::{Own, describe, rows, state};
use base::{BlockNumber, Error, Fork, Oid, Result, SqlError, SqlState, Tid, bail};
use btree::{Btree, VerifyReport};
use buffer::Strategy;
use engine::catalog::model::{Index, RelationKind, Table};
use heap::visibility::satisfies_mvcc;
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{FetchState, Heap, Hints, MapPin, TupleSlot};
use page::tuple::{AttrValue, TupleDesc, TupleView};
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use txn::{LockMode, Snapshot};
use types::FunctionBody::{self, Scalar, Set};
use types::args::{boolean as flag, int8, is_null, oid, text};
use types::registry::RowIter;
use types::{Datum, Env, oids};

const B: Oid = oids::BOOL;

pub(super) const FUNCTIONS: &[Own] = &[
    index_function(9910, "bt_index_check", Scalar(check), &[oids::REGCLASS]),
    index_function(9911, "bt_index_check", Scalar(check), &[oids::REGCLASS, B]),
    index_function(9912, "bt_index_check", Scalar(check), &[oids::REGCLASS, B, B]),
    index_function(9913, "bt_index_parent_check", Scalar(parent_check), &[oids::REGCLASS]),
    index_function(9914, "bt_index_parent_check", Scalar(parent_check), &[oids::REGCLASS, B]),
    index_function(9915, "bt_index_parent_check", Scalar(parent_check), &[oids::REGCLASS, B, B]),
    index_function(9916, "bt_index_parent_check", Scalar(parent_check), &[oids::REGCLASS, B, B, B]),
    Own {
        oid: 9917,
        name: "verify_heapam",
        args: &[oids::REGCLASS, B, B, oids::TEXT, oids::INT8, oids::INT8],
        result: oids::RECORD,
        columns: &[
            ("blkno", oids::INT8),
            ("offnum", oids::INT4),
            ("attnum", oids::INT4),
            ("msg", oids::TEXT),
        ],
        body: Set(verify_heap),
    },
    Own {
        oid: 9918,
        name: "gin_index_check",
        args: &[oids::REGCLASS],
        result: oids::VOID,
        columns: &[],
        body: Scalar(|env, a| {
            let state = state(env)?;
            require(state, "gin_index_check", &[])?;
            let index = index_relation(state, oid(a, 0)?)?;
            Err(expected("gin", &index))
        }),
    },
];

const fn index_function(
    oid: u32,
    name: &'static str,
    body: FunctionBody,
    args: &'static [Oid],
) -> Own {
    Own { oid, name, args, result: oids::VOID, columns: &[], body }
}

/// What stands for `verify_heapam`'s arguments from `on_error_stop` on.
pub(super) fn defaults() -> &'static [Datum] {
    static DEFAULTS: LazyLock<[Datum; 5]> = LazyLock::new(|| {
        [Datum::Bool(false), Datum::Bool(false), Datum::text("none"), Datum::Null, Datum::Null]
    });
    &*DEFAULTS
}

/// What is asked of an index.
#[derive(Clone, Copy)]
struct Wanted {
    /// Nobody may write meanwhile, and pages are held against each other.
    at_rest: bool,
    heap_all_indexed: bool,
    root_descend: bool,
    unique: bool,
}

fn check(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    require(state(env)?, "bt_index_check", &[])?;
    let wanted = Wanted {
        at_rest: false,
        heap_all_indexed: given(a, 1)?,
        root_descend: false,
        unique: given(a, 2)?,
    };
    check_index(env, oid(a, 0)?, wanted)
}

fn parent_check(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    require(state(env)?, "bt_index_parent_check", &[])?;
    let wanted = Wanted {
        at_rest: true,
        heap_all_indexed: given(a, 1)?,
        root_descend: given(a, 2)?,
        unique: given(a, 3)?,
    };
    check_index(env, oid(a, 0)?, wanted)
}

/// An argument that may be left out.
fn given(a: &[Datum], i: usize) -> Result<bool> {
    if i < a.len() { flag(a, i) } else { Ok(false) }
}

fn index_relation(state: &SessionState, oid: Oid) -> Result<Arc<Table>> {
    let found = relation(state, oid)?;
    if found.kind != RelationKind::Index {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", found.name);
    }
    Ok(found)
}

fn expected(method: &str, found: &Table) -> Error {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("expected \"{method}\" index as targets for verification"),
    )
    .detail(format!("Relation \"{}\" is a btree index.", found.name))
    .into()
}

/// Locks that are given back when the check is over.
struct Locked<'s> {
    state: &'s SessionState,
    mode: LockMode,
    relations: Vec<Oid>,
}

impl<'s> Locked<'s> {
    fn new(state: &'s SessionState, mode: LockMode) -> Locked<'s> {
        Locked { state, mode, relations: Vec::new() }
    }
    fn lock(&mut self, relation: Oid) -> Result<()> {
        crate::relations::lock(self.state, relation, self.mode)?;
        self.relations.push(relation);
        Ok(())
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Without a transaction the locks are gone already.
        let Ok(txn) = self.state.txn() else { return };
        for relation in self.relations.drain(..).rev() {
            txn.unlock(crate::relations::lock_tag(self.state, relation), self.mode);
        }
    }
}

fn check_index(env: &dyn Env, oid: Oid, wanted: Wanted) -> Result<Datum> {
    let state = state(env)?;
    index_relation(state, oid)?;
    let gone =
        || Error::sql(SqlState::INTERNAL_ERROR, format!("could not open relation with OID {oid}"));
    let (table, _) = describe::index(state, oid)?.ok_or_else(gone)?;
    let mode = if wanted.at_rest { LockMode::Share } else { LockMode::AccessShare };
    let mut locked = Locked::new(state, mode);
    locked.lock(table.oid)?;
    locked.lock(oid)?;
    // What it is now that nobody can change it.
    let (table, index) = describe::index(state, oid)?.ok_or_else(gone)?;
    checkable(state, &table, &index)?;
    let tree = state.btree(&table, &index)?;
    verify(env, &table, &index, &tree, wanted).map_err(|e| match e {
        Error::Corruption(c) => Error::sql(SqlState::INDEX_CORRUPTED, c.what),
        other => other,
    })?;
    Ok(Datum::Null)
}

fn checkable(state: &SessionState, table: &Table, index: &Index) -> Result<()> {
    let refuse = |message: String, detail: String| {
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail).into())
    };
    if crate::maintenance::options::of_another_session(state, table)? {
        return refuse(
            "cannot access temporary tables of other sessions".into(),
            format!("Index \"{}\" is associated with temporary relation.", index.name),
        );
    }
    if !index.valid {
        return refuse(
            format!("cannot check index \"{}\"", index.name),
            "Index is not valid.".into(),
        );
    }
    Ok(())
}

fn verify(
    env: &dyn Env,
    table: &Arc<Table>,
    index: &Arc<Index>,
    tree: &Arc<Btree>,
    wanted: Wanted,
) -> Result<()> {
    let state = &SessionEnv::of(env)?.state;
    // Before anything is read: what it sees is in the index already.
    let snapshot = state.txn()?.take_latest_snapshot();
    let pause = &mut || state.check_cancel();
    let report =
        if wanted.at_rest { tree.verify_pausing(pause)? } else { tree.verify_live(pause)? };
    if wanted.heap_all_indexed {
        let heap = state.heap(table)?;
        let pair = TableAndIndex { heap: &heap, table, index, tree };
        all_indexed(env, &pair, &report, &snapshot)?;
        if wanted.at_rest {
            pair.entries_without_row(pause, &mut |tid| lost(&pair, tid))?;
        }
    }
    if wanted.root_descend {
        tree.verify_descents(pause)?;
    }
    if wanted.unique && index.unique {
        let heap = state.heap(table)?;
        tree.for_each_duplicate(&mut |tids| {
            state.check_cancel()?;
            only_one_seen(&heap, index, tids, &snapshot)
        })?;
    }
    Ok(())
}

fn all_indexed(
    env: &dyn Env,
    pair: &TableAndIndex<'_>,
    report: &VerifyReport,
    snapshot: &Arc<Snapshot>,
) -> Result<()> {
    let state = &SessionEnv::of(env)?.state;
    let memory_kb = usize::try_from(state.settings.borrow().int("maintenance_work_mem"));
    let memory_bytes = memory_kb.unwrap_or(65_536).saturating_mul(1024);
    let bounds = Bounds { entries: report.entries, memory_bytes };
    pair.rows_without_entry(bounds, Some(snapshot), env, &mut || state.check_cancel(), &mut |tid| {
        Err(Error::sql(
            SqlState::DATA_CORRUPTED,
            format!(
                "heap tuple ({},{}) from table \"{}\" lacks matching index tuple within index \"{}\"",
                tid.block, tid.offset, pair.table.name, pair.index.name
            ),
        ))
    })
}

/// An entry that leads nowhere.
fn lost(pair: &TableAndIndex<'_>, tid: Tid) -> Result<()> {
    Err(Error::sql(
        SqlState::INDEX_CORRUPTED,
        format!(
            "index \"{}\" has an entry for ({},{}) in table \"{}\", where there is no row",
            pair.index.name, tid.block, tid.offset, pair.table.name
        ),
    ))
}

/// Fails if the snapshot sees more than one of these rows, which have the same key.
fn only_one_seen(heap: &Heap, index: &Index, tids: &[Tid], snapshot: &Snapshot) -> Result<()> {
    let mut seen: Option<Tid> = None;
    let (mut fetch, mut slot) = (FetchState::default(), TupleSlot::default());
    for tid in tids {
        if !heap.fetch(*tid, snapshot, &mut fetch, &mut slot)?.found {
            continue;
        }
        if let Some(first) = seen {
            return Err(SqlError::new(
                SqlState::INDEX_CORRUPTED,
                format!("index uniqueness is violated for index \"{}\"", index.name),
            )
            .detail(format!(
                "Rows ({},{}) and ({},{}) have the same key.",
                first.block, first.offset, tid.block, tid.offset
            ))
            .into());
        }
        seen = Some(*tid);
    }
    Ok(())
}

/// `verify_heapam`'s arguments.
struct Scope {
    on_error_stop: bool,
    check_toast: bool,
    /// Bits of the visibility map.
    skip: u8,
}

impl Scope {
    fn of(a: &[Datum]) -> Result<Scope> {
        for (i, name) in ["relation", "on_error_stop", "check_toast", "skip"].iter().enumerate() {
            if is_null(a, i) {
                bail!(INVALID_PARAMETER_VALUE, "{name} cannot be null");
            }
        }
        let skip = match text(a, 3)?.to_ascii_lowercase().as_str() {
            "none" => 0,
            "all-visible" => ALL_VISIBLE,
            "all-frozen" => ALL_FROZEN,
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "invalid skip option",
                )
                .hint("Valid skip options are \"all-visible\", \"all-frozen\", and \"none\".")
                .into());
            }
        };
        Ok(Scope { on_error_stop: flag(a, 1)?, check_toast: flag(a, 2)?, skip })
    }
}

/// The blocks asked for, of `count`.
fn range(a: &[Datum], count: u32) -> Result<Range<u32>> {
    let bound = |i: usize, which: &str, otherwise: u32| -> Result<u32> {
        if is_null(a, i) {
            return Ok(otherwise);
        }
        match u32::try_from(int8(a, i)?) {
            Ok(n) if n < count => Ok(n),
            _ => bail!(
                INVALID_PARAMETER_VALUE,
                "{which} block number must be between 0 and {}",
                count - 1
            ),
        }
    };
    let first = bound(4, "starting", 0)?;
    Ok(first..bound(5, "ending", count - 1)? + 1)
}

fn verify_heap(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let state = state(env)?;
    require(state, "verify_heapam", &[])?;
    let scope = Scope::of(a)?;
    let oid = oid(a, 0)?;
    let found = relation(state, oid)?;
    let rows_or_one = matches!(
        found.kind,
        RelationKind::Table
            | RelationKind::MaterializedView
            | RelationKind::Toast
            | RelationKind::Sequence
    );
    if !rows_or_one {
        let message = format!("cannot check relation \"{}\"", found.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .detail(super::not_supported_for(found.kind))
            .into());
    }
    let mut locked = Locked::new(state, LockMode::AccessShare);
    locked.lock(oid)?;
    let table = relation(state, oid)?;
    if table.storage.is_none() {
        return Ok(rows(Vec::new()));
    }
    let heap = state.heap(&table)?;
    let count = blocks(heap.relation(), Fork::Main)?;
    if count == 0 {
        return Ok(rows(Vec::new()));
    }
    let values = Values {
        heap: &heap,
        desc: engine::relation::tuple_desc(&table.columns),
        snapshot: state.txn()?.take_latest_snapshot(),
        toasted: scope.check_toast,
    };
    let mut strategy = Strategy::bulk_read(&state.cluster.engine().pool);
    let mut out = Vec::new();
    for n in range(a, count)? {
        state.check_cancel()?;
        let before = out.len();
        heap.check_blocks(n..n + 1, scope.skip, table.relfrozenxid, &mut strategy, &mut |fault| {
            let offset = fault.offset.map_or(Datum::Null, |o| Datum::Int4(i32::from(o.0)));
            out.push(vec![Datum::Int8(n.into()), offset, Datum::Null, Datum::text(&fault.what)]);
        })?;
        // What is in the rows of a damaged page nobody knows.
        if out.len() == before && (scope.skip == 0 || !skipped(&heap, n, scope.skip)?) {
            values.check(BlockNumber(n), &mut out)?;
        }
        if scope.on_error_stop && out.len() > before {
            break;
        }
    }
    Ok(rows(out))
}

fn skipped(heap: &Heap, block: u32, skip: u8) -> Result<bool> {
    let bits = heap.visibility_map().bits(BlockNumber(block), &mut MapPin::none())?;
    Ok(bits & skip != 0)
}

/// Looks at the columns of the rows that a snapshot sees.
struct Values<'a> {
    heap: &'a Heap,
    desc: TupleDesc,
    snapshot: Arc<Snapshot>,
    /// Values kept out of line, too.
    toasted: bool,
}

impl Values<'_> {
    fn check(&self, block: BlockNumber, out: &mut Vec<Vec<Datum>>) -> Result<()> {
        let Some(page) = read_page(self.heap.relation(), Fork::Main, block)? else { return Ok(()) };
        let mut hints = Hints::default();
        for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
            let tuple = TupleView::on_page(&page, offset);
            if !satisfies_mvcc(&tuple, &self.snapshot, &mut hints)? {
                continue;
            }
            let mut fault = |attribute: Option<usize>, what: &str| {
                let number = attribute.and_then(|i| i32::try_from(i).ok());
                out.push(vec![
                    Datum::Int8(block.0.into()),
                    Datum::Int4(i32::from(offset.0)),
                    number.map_or(Datum::Null, Datum::Int4),
                    Datum::text(what),
                ]);
            };
            let (has, expected) = (tuple.natts(), self.desc.len());
            if has > expected {
                let what = format!(
                    "number of attributes {has} exceeds maximum {expected} expected for table"
                );
                fault(None, &what);
                continue;
            }
            let mut values = vec![AttrValue::Null; expected];
            if let Err(what) = page::tuple::deform(tuple.bytes, &self.desc, &mut values) {
                fault(None, what);
                continue;
            }
            for (i, value) in values.iter().enumerate() {
                let outside = matches!(value, AttrValue::External(_));
                if matches!(value, AttrValue::Null | AttrValue::Inline(_))
                    || outside && !self.toasted
                {
                    continue;
                }
                match self.heap.detoast(value) {
                    Ok(_) => {}
                    Err(Error::Corruption(c)) => fault(Some(i), &c.what),
                    Err(Error::Sql(e)) if e.state == SqlState::DATA_CORRUPTED => {
                        fault(Some(i), &e.message);
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }
}
