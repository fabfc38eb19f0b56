//! Advisory locks, `pg_locks`, and the signals that sessions send each other.

use super::{Bodies, rows, state};
use crate::client::{Notice, Severity};
use crate::session::SessionState;
use base::sync::CancelReason;
use base::{Oid, Result, SqlState, bail};
use std::sync::Arc;
use std::time::Duration;
use txn::{Backend, BackendKind, LockMode, LockOutcome, LockOwner, LockTag, Wait};
use types::FunctionBody::{Scalar, Set};
use types::args::{int4, int8};
use types::{ArrayValue, Datum, Env, oids};

pub(super) const BODIES: Bodies = &[
    ("pg_advisory_lock", Scalar(|env, a| take(env, a, LockOwner::Session, LockMode::Exclusive))),
    ("pg_advisory_lock_shared", Scalar(|env, a| take(env, a, LockOwner::Session, LockMode::Share))),
    (
        "pg_advisory_xact_lock",
        Scalar(|env, a| take(env, a, LockOwner::Transaction, LockMode::Exclusive)),
    ),
    (
        "pg_advisory_xact_lock_shared",
        Scalar(|env, a| take(env, a, LockOwner::Transaction, LockMode::Share)),
    ),
    (
        "pg_try_advisory_lock",
        Scalar(|env, a| try_take(env, a, LockOwner::Session, LockMode::Exclusive)),
    ),
    (
        "pg_try_advisory_lock_shared",
        Scalar(|env, a| try_take(env, a, LockOwner::Session, LockMode::Share)),
    ),
    (
        "pg_try_advisory_xact_lock",
        Scalar(|env, a| try_take(env, a, LockOwner::Transaction, LockMode::Exclusive)),
    ),
    (
        "pg_try_advisory_xact_lock_shared",
        Scalar(|env, a| try_take(env, a, LockOwner::Transaction, LockMode::Share)),
    ),
    ("pg_advisory_unlock", Scalar(|env, a| release(env, a, LockMode::Exclusive))),
    ("pg_advisory_unlock_shared", Scalar(|env, a| release(env, a, LockMode::Share))),
    (
        "pg_advisory_unlock_all",
        Scalar(|env, _| {
            let state = state(env)?;
            state.cluster.engine().txns.locks().release_session(&state.backend, true);
            Ok(Datum::Null)
        }),
    ),
    ("pg_lock_status", Set(|env, _| Ok(rows(listing(state(env)?))))),
    (
        "pg_blocking_pids",
        Scalar(|env, a| {
            let pids = state(env)?.cluster.engine().txns.locks().blocking_pids(int4(a, 0)?);
            let pids = pids.into_iter().map(Datum::Int4).collect();
            Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(oids::INT4, pids))))
        }),
    ),
    (
        // What PostgreSQL's isolation tester asks: does this session wait for one of those?
        "pg_isolation_test_session_is_blocked",
        Scalar(|env, a| {
            let pids = state(env)?.cluster.engine().txns.locks().blocking_pids(int4(a, 0)?);
            let asked = &types::args::array(a, 1)?.elements;
            let waits = |d: &Datum| matches!(d, Datum::Int4(pid) if pids.contains(pid));
            Ok(Datum::Bool(asked.iter().any(waits)))
        }),
    ),
    (
        "pg_safe_snapshot_blocking_pids",
        Scalar(|_, _| {
            Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(oids::INT4, Vec::new()))))
        }),
    ),
    (
        "pg_cancel_backend",
        Scalar(|env, a| {
            let (state, pid) = (state(env)?, int4(a, 0)?);
            if !may_signal(state, pid, Signal::Cancel)? {
                return Ok(Datum::Bool(false));
            }
            if let Some(backend) = state.cluster.backends().by_pid(pid) {
                backend.interrupt(CancelReason::UserRequest);
            }
            state.check_cancel()?;
            Ok(Datum::Bool(true))
        }),
    ),
    ("pg_terminate_backend", Scalar(|env, a| terminate(env, a))),
];

fn tag(state: &SessionState, a: &[Datum]) -> Result<LockTag> {
    let database = state.database.oid;
    Ok(match a {
        [Datum::Int4(_), Datum::Int4(_)] => LockTag::advisory2(database, int4(a, 0)?, int4(a, 1)?),
        _ => LockTag::advisory(database, int8(a, 0)?),
    })
}

fn take(env: &dyn Env, a: &[Datum], owner: LockOwner, mode: LockMode) -> Result<Datum> {
    let state = state(env)?;
    let locks = state.cluster.engine().txns.locks();
    locks.acquire(&state.backend, owner, tag(state, a)?, mode, Wait::Block).map(|_| Datum::Null)
}

fn try_take(env: &dyn Env, a: &[Datum], owner: LockOwner, mode: LockMode) -> Result<Datum> {
    let state = state(env)?;
    let locks = state.cluster.engine().txns.locks();
    let outcome = locks.acquire(&state.backend, owner, tag(state, a)?, mode, Wait::NoWait)?;
    Ok(Datum::Bool(outcome != LockOutcome::NotAvailable))
}

fn warn(state: &SessionState, sql_state: SqlState, message: String) {
    let mut notice = Notice::new(Severity::Warning, message);
    notice.body.state = sql_state;
    state.notice(notice);
}

fn release(env: &dyn Env, a: &[Datum], mode: LockMode) -> Result<Datum> {
    let state = state(env)?;
    let locks = state.cluster.engine().txns.locks();
    let held = locks.release(&state.backend, LockOwner::Session, tag(state, a)?, mode);
    if !held {
        let message = format!("you don't own a lock of type {}", mode.name());
        warn(state, SqlState::WARNING, message);
    }
    Ok(Datum::Bool(held))
}

/// The rows of `pg_locks`.
fn listing(state: &SessionState) -> Vec<Vec<Datum>> {
    let engine = state.cluster.engine();
    let oid = Datum::Oid;
    let half = |n: u32| Datum::Oid(Oid(n));
    engine
        .txns
        .locks()
        .list()
        .into_iter()
        .map(|l| {
            // database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid
            let mut what: [Datum; 9] = Default::default();
            match l.tag {
                LockTag::Relation { database, relation }
                | LockTag::Extend { database, relation } => {
                    what[0] = oid(database);
                    what[1] = oid(relation);
                }
                LockTag::Tuple { database, relation, tid, .. } => {
                    what[0] = oid(database);
                    what[1] = oid(relation);
                    what[2] = Datum::Int4(tid.block.0 as i32);
                    what[3] = Datum::Int2(tid.offset.0 as i16);
                }
                LockTag::Transaction(xid) => what[5] = half(xid.0 as u32),
                LockTag::Virtual(a, b) => what[4] = Datum::text(format!("{a}/{b}")),
                LockTag::Object { database, class, object, sub } => {
                    what[0] = oid(database);
                    what[6] = oid(class);
                    what[7] = oid(object);
                    what[8] = Datum::Int2(sub as i16);
                }
                LockTag::Advisory { database, key1, key2, kind } => {
                    what[0] = oid(database);
                    what[6] = half(key1);
                    what[7] = half(key2);
                    what[8] = Datum::Int2(kind as i16);
                }
                LockTag::DatabaseFrozenIds { database } => what[0] = oid(database),
            }
            let mut row = vec![Datum::text(l.tag.kind_name())];
            row.extend(what);
            row.extend([
                Datum::text(format!("{}/{}", l.virtual_xid.0, l.virtual_xid.1)),
                Datum::Int4(l.pid),
                Datum::text(l.mode.name()),
                Datum::Bool(l.granted),
                Datum::Bool(l.fast_path),
                l.wait_start_us.map_or(Datum::Null, Datum::TimestampTz),
            ]);
            row
        })
        .collect()
}

/// The roles that may signal others' sessions, and autovacuum's workers.
const SIGNAL_BACKEND: Oid = Oid(4200);
const SIGNAL_AUTOVACUUM_WORKER: Oid = Oid(6392);

/// What a session is to be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Cancel,
    Terminate,
}

/// Fails unless the current user may end the session `pid`; nothing if there is none.
///
/// # Errors
/// `42501`; I/O.
pub(crate) fn check_may_terminate(state: &SessionState, pid: i32) -> Result<()> {
    match state.cluster.backends().by_pid(pid) {
        Some(_) => may_signal(state, pid, Signal::Terminate).map(|_| ()),
        None => Ok(()),
    }
}

/// May this session signal `pid`? False (with a warning) when there is no such session.
fn may_signal(state: &SessionState, pid: i32, signal: Signal) -> Result<bool> {
    let takes_signals = |b: &Arc<Backend>| {
        matches!(
            b.kind,
            BackendKind::Client
                | BackendKind::ParallelWorker
                | BackendKind::AutovacuumLauncher
                | BackendKind::AutovacuumWorker
        )
    };
    let Some(backend) = state.cluster.backends().by_pid(pid).filter(takes_signals) else {
        let message = format!("PID {pid} is not a PostgreSQL backend process");
        warn(state, SqlState::WARNING, message);
        return Ok(false);
    };
    if state.is_superuser() {
        return Ok(true);
    }
    let user = backend.activity.lock().user;
    let mine = crate::acl::roles_of(state, state.current_user.borrow().oid)?;
    let cancels = signal == Signal::Cancel;
    let verb = if cancels { "cancel" } else { "terminate" };
    let (may, why) = if backend.kind == BackendKind::AutovacuumWorker {
        let role = "\"pg_signal_autovacuum_worker\"";
        let why = format!("with privileges of the {role} role may {verb} autovacuum workers");
        (mine.contains(&SIGNAL_AUTOVACUUM_WORKER), why)
    } else if !user.is_valid() || crate::acl::is_superuser(state, user)? {
        let what = if cancels { "queries" } else { "processes" };
        let who = "with the SUPERUSER attribute";
        (false, format!("{who} may {verb} {what} of roles {who}"))
    } else {
        let (what, done) = if cancels { ("query", "canceled") } else { ("process", "terminated") };
        let why = format!(
            "with privileges of the role whose {what} is being {done} or with privileges of the \
             \"pg_signal_backend\" role may {verb} this {what}"
        );
        (mine.contains(&user) || mine.contains(&SIGNAL_BACKEND), why)
    };
    if may {
        return Ok(true);
    }
    let what = if cancels { "cancel query" } else { "terminate process" };
    let text = format!("permission denied to {what}");
    Err(base::SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text)
        .detail(format!("Only roles {why}."))
        .into())
}

fn terminate(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let (state, pid) = (state(env)?, int4(a, 0)?);
    let timeout = if a.len() > 1 { int8(a, 1)? } else { 0 };
    let Ok(timeout) = u64::try_from(timeout) else {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "\"timeout\" must not be negative");
    };
    if !may_signal(state, pid, Signal::Terminate)? {
        return Ok(Datum::Bool(false));
    }
    let found = state.cluster.terminate(pid);
    state.check_cancel()?;
    if !found || timeout == 0 {
        return Ok(Datum::Bool(found));
    }
    let start = base::sync::now();
    while state.cluster.backends().by_pid(pid).is_some() {
        state.check_cancel()?;
        if start.elapsed() >= Duration::from_millis(timeout) {
            let message =
                format!("backend with PID {pid} did not terminate within {timeout} milliseconds");
            warn(state, SqlState::WARNING, message);
            return Ok(Datum::Bool(false));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Datum::Bool(true))
}
