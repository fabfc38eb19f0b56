//! pgrowlocks: which rows of a table are locked, how, and by whom.
//!
//! # Layout
//! Who only locks a row is among the row locks in memory, who changes or deletes it in its xmax.
//!
//! # Differs from PostgreSQL
//! There are no MultiXacts: `locker` of a row that several transactions have locked is the oldest of them.

use super::{blocks, read_page, relation_named};
use crate::acl;
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Result, SqlError, SqlState, Tid, Xid, bail};
use engine::catalog::model::{RelationKind, Table};
use heap::Hints;
use heap::visibility::{UpdateVerdict, satisfies_mvcc, satisfies_update};
use page::tuple::{KEYS_UPDATED, TupleView};
use std::sync::Arc;
use txn::{LockMode, RowLockMode};
use types::FunctionBody::Set;
use types::args::text;
use types::registry::RowIter;
use types::{ArrayValue, Datum, Env, oids};

pub(super) const FUNCTIONS: &[Own] = &[Own {
    oid: 9951,
    name: "pgrowlocks",
    args: &[oids::TEXT],
    result: oids::RECORD,
    columns: &[
        ("locked_row", oids::TID),
        ("locker", oids::XID),
        ("multi", oids::BOOL),
        ("xids", oids::XID_ARRAY),
        ("modes", oids::TEXT_ARRAY),
        ("pids", oids::INT4_ARRAY),
    ],
    body: Set(row_locks),
}];

/// What one transaction does with a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Locks(RowLockMode),
    /// It has changed the row, its key perhaps, or deleted it.
    Changes {
        key: bool,
    },
}

impl Held {
    fn shown(self) -> &'static str {
        match self {
            Held::Locks(RowLockMode::KeyShare) => "For Key Share",
            Held::Locks(RowLockMode::Share) => "For Share",
            Held::Locks(RowLockMode::NoKeyUpdate) => "For No Key Update",
            Held::Locks(RowLockMode::Update) => "For Update",
            Held::Changes { key: false } => "No Key Update",
            Held::Changes { key: true } => "Update",
        }
    }
}

fn row_locks(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let state = state(env)?;
    let table = relation_named(state, text(a, 0)?)?;
    crate::relations::lock(state, table.oid, LockMode::AccessShare)?;
    check(state, &table)?;
    let heap = state.open_relation(&table)?.heap.clone();
    let txn = state.txn()?;
    let snapshot = txn.take_snapshot();
    let locks = state.cluster.engine().txns.row_locks();
    let mut out = Vec::new();
    for n in 0..blocks(heap.relation(), Fork::Main)? {
        state.check_cancel()?;
        let block = BlockNumber(n);
        let Some(page) = read_page(heap.relation(), Fork::Main, block)? else { break };
        let locked = locks.on_page(heap.relation().id(), block);
        for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
            let (tuple, tid) = (TupleView::on_page(&page, offset), Tid::new(block, offset));
            let mut held: Vec<(Xid, Held)> = Vec::new();
            for (_, xid, mode) in locked.iter().filter(|(o, ..)| *o == offset) {
                // The last one in which a transaction holds it is the strongest.
                held.retain(|(x, _)| x != xid);
                held.push((*xid, Held::Locks(*mode)));
            }
            let hints = &mut Hints::default();
            let verdict = satisfies_update(&tuple, tid, &txn, txn.command_id(), hints)?;
            if let UpdateVerdict::BeingModified(xid) = verdict {
                held.retain(|(x, _)| *x != xid);
                let key = tuple.infomask2() & KEYS_UPDATED != 0;
                held.push((xid, Held::Changes { key }));
            }
            if !held.is_empty() && satisfies_mvcc(&tuple, &snapshot, &mut Hints::default())? {
                held.sort_by_key(|(xid, _)| *xid);
                out.push(shown(state, tid, &held));
            }
        }
    }
    Ok(rows(out))
}

/// Only tables have rows to lock; who may read them all is told, and who looks into all tables.
fn check(state: &SessionState, table: &Arc<Table>) -> Result<()> {
    let name = &table.name;
    if table.kind == RelationKind::PartitionedTable {
        let e = SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is a partitioned table"),
        );
        return Err(e.detail("Partitioned tables do not contain rows.").into());
    }
    if table.kind != RelationKind::Table || table.storage.is_none() {
        bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a table");
    }
    let me = state.current_user.borrow().oid;
    if acl::roles_of(state, me)?.contains(&super::STAT_SCAN_TABLES) {
        return Ok(());
    }
    acl::check_table(state, table, acl::SELECT, me)
}

fn shown(state: &SessionState, tid: Tid, held: &[(Xid, Held)]) -> Vec<Datum> {
    let xid = |xid: Xid| Datum::Oid(base::Oid(xid.0 as u32));
    let backends = state.cluster.backends();
    // A subtransaction is nobody's, as in PostgreSQL.
    let holder = |x: Xid| backends.by_xid(x).filter(|backend| backend.top_xid() == Some(x));
    let pid = |x: Xid| holder(x).map_or(0, |backend| backend.pid);
    let array = |ty, list| Datum::Array(Arc::new(ArrayValue::one_dimension(ty, list)));
    vec![
        Datum::Tid(tid),
        held.first().map_or(Datum::Null, |(x, _)| xid(*x)),
        Datum::Bool(held.len() > 1),
        array(oids::XID, held.iter().map(|(x, _)| xid(*x)).collect()),
        array(oids::TEXT, held.iter().map(|(_, h)| Datum::text(h.shown())).collect()),
        array(oids::INT4, held.iter().map(|(x, _)| Datum::Int4(pid(*x))).collect()),
    ]
}
