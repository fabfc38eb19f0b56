//! `pg_stat_activity` and its scalar cousins.

use super::{Bodies, moment, rows, state, text_or_null};
use crate::session::SessionState;
use base::wait::WaitEvent;
use base::{Oid, Result};
use std::sync::Arc;
use txn::{Backend, BackendKind, BackendState};
use types::Datum;
use types::FunctionBody::{Scalar, Set};
use types::args::{int4, is_null};

pub(super) const BODIES: Bodies = &[
    (
        "pg_stat_get_activity",
        Set(|env, a| {
            let state = state(env)?;
            let only = if is_null(a, 0) { None } else { Some(int4(a, 0)?) };
            let may = Readable::of(state)?;
            let backends = state.cluster.backends().all();
            let mut list: Vec<&Arc<Backend>> =
                backends.iter().filter(|b| only.is_none_or(|pid| b.pid == pid)).collect();
            list.sort_by_key(|b| b.pid);
            Ok(rows(list.into_iter().map(|b| row(b, &may)).collect()))
        }),
    ),
    (
        "pg_stat_get_backend_idset",
        Set(|env, _| {
            let mut pids: Vec<i32> =
                state(env)?.cluster.backends().all().iter().map(|b| b.pid).collect();
            pids.sort_unstable();
            Ok(rows(pids.into_iter().map(|pid| vec![Datum::Int4(pid)]).collect()))
        }),
    ),
    ("pg_stat_get_backend_pid", Scalar(|env, a| of(env, a, |b| Datum::Int4(b.pid)))),
    (
        "pg_stat_get_backend_dbid",
        Scalar(|env, a| of(env, a, |b| Datum::Oid(b.activity.lock().database))),
    ),
    (
        "pg_stat_get_backend_userid",
        Scalar(|env, a| of(env, a, |b| Datum::Oid(b.activity.lock().user))),
    ),
    (
        "pg_stat_get_backend_activity",
        Scalar(|env, a| {
            let hidden = Datum::text(NOT_PERMITTED);
            let told = of_readable(env, a, hidden, |b| Datum::text(&*b.activity.lock().query))?;
            Ok(if told.is_null() { Datum::text(NOT_THERE) } else { told })
        }),
    ),
    (
        "pg_stat_get_backend_client_addr",
        Scalar(|env, a| {
            of_readable(env, a, Datum::Null, |b| {
                text_or_null(b.activity.lock().client_addr.as_deref())
            })
        }),
    ),
    (
        "pg_stat_get_backend_client_port",
        Scalar(|env, a| {
            of_readable(env, a, Datum::Null, |b| {
                b.activity.lock().client_port.map_or(Datum::Null, Datum::Int4)
            })
        }),
    ),
    (
        "pg_stat_get_backend_start",
        Scalar(|env, a| {
            of_readable(env, a, Datum::Null, |b| moment(b.activity.lock().backend_start))
        }),
    ),
    (
        "pg_stat_get_backend_activity_start",
        Scalar(|env, a| {
            of_readable(env, a, Datum::Null, |b| moment(b.activity.lock().query_start))
        }),
    ),
    (
        "pg_stat_get_backend_xact_start",
        Scalar(|env, a| of_readable(env, a, Datum::Null, |b| moment(b.activity.lock().xact_start))),
    ),
    (
        "pg_stat_get_backend_wait_event",
        Scalar(|env, a| wait_told(env, a, |b| waits_for(b).map(|w| w.1))),
    ),
    (
        "pg_stat_get_backend_wait_event_type",
        Scalar(|env, a| wait_told(env, a, |b| waits_for(b).map(|w| w.0))),
    ),
    (
        "pg_get_wait_events",
        Set(|_, _| {
            let noted = WaitEvent::ALL.iter().map(|e| e.told());
            let all = WAIT_EVENTS.iter().copied().chain(noted);
            Ok(rows(all.map(|e| e.map(Datum::text).to_vec()).collect()))
        }),
    ),
    // Reads and writes are waited for where they are asked for.
    ("pg_get_aios", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_numa_available", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("pg_stat_force_next_flush", Scalar(|_, _| Ok(Datum::Null))),
];

/// What `wait_event` may say besides [`WaitEvent`]'s: type, name, description.
const WAIT_EVENTS: &[[&str; 3]] = &[
    ["Client", "ClientRead", "Waiting to read data from the client"],
    ["Client", "ClientWrite", "Waiting to write data to the client"],
    ["Lock", "advisory", "Waiting to acquire an advisory user lock"],
    ["Lock", "frozenid", "Waiting to update pg_database.datfrozenxid and pg_database.datminmxid"],
    ["Lock", "object", "Waiting to acquire a lock on a non-relation database object"],
    ["Lock", "relation", "Waiting to acquire a lock on a relation"],
    ["Lock", "transactionid", "Waiting for a transaction to finish"],
    ["Lock", "tuple", "Waiting to acquire a lock on a tuple"],
    ["Lock", "virtualxid", "Waiting to acquire a virtual transaction ID lock"],
    ["Timeout", "PgSleep", "Waiting due to a call to pg_sleep or a sibling function"],
    ["Timeout", "VacuumDelay", "Waiting in a cost-based vacuum delay point"],
];

/// A value of the session whose number is its PID.
fn of(env: &dyn types::Env, a: &[Datum], f: impl Fn(&Backend) -> Datum) -> Result<Datum> {
    let found = state(env)?.cluster.backends().by_pid(int4(a, 0)?);
    Ok(found.map_or(Datum::Null, |b| f(&b)))
}

/// What is told of a session to those who may not look into it.
const NOT_PERMITTED: &str = "<insufficient privilege>";
/// What is told of one that is not there.
const NOT_THERE: &str = "<backend information not available>";

/// As [`of`], for those who may look into the session; `hidden` for others.
fn of_readable(
    env: &dyn types::Env,
    a: &[Datum],
    hidden: Datum,
    f: impl Fn(&Backend) -> Datum,
) -> Result<Datum> {
    let may = Readable::of(state(env)?)?;
    of(env, a, |b| {
        let user = b.activity.lock().user;
        if may.of_user(user) { f(b) } else { hidden.clone() }
    })
}

/// Whose sessions the asker may look into.
struct Readable {
    everybody: bool,
    roles: std::collections::HashSet<Oid>,
}

impl Readable {
    fn of(state: &SessionState) -> Result<Readable> {
        let me = state.current_user.borrow().oid;
        let roles = crate::acl::roles_of(state, me)?;
        // pg_read_all_stats
        let everybody = state.is_superuser() || roles.contains(&Oid(3375));
        Ok(Readable { everybody, roles })
    }

    fn of_user(&self, user: Oid) -> bool {
        self.everybody || self.roles.contains(&user)
    }
}

fn half(xid: Option<base::Xid>) -> Datum {
    xid.map_or(Datum::Null, |x| Datum::Oid(Oid(x.0 as u32)))
}

fn oid_or_null(oid: Oid) -> Datum {
    if oid.is_valid() { Datum::Oid(oid) } else { Datum::Null }
}

/// A part of what a session waits for, told as what it is doing is.
fn wait_told(
    env: &dyn types::Env,
    a: &[Datum],
    part: impl Fn(&Backend) -> Option<&'static str>,
) -> Result<Datum> {
    if state(env)?.cluster.backends().by_pid(int4(a, 0)?).is_none() {
        return Ok(Datum::text(NOT_THERE));
    }
    of_readable(env, a, Datum::text(NOT_PERMITTED), |b| text_or_null(part(b)))
}

/// What a session waits for; between its statements, its client.
fn waits_for(backend: &Backend) -> Option<(&'static str, &'static str)> {
    let a = backend.activity.lock();
    match (a.wait_event_type, a.wait_event) {
        (Some(kind), Some(event)) => Some((kind, event)),
        _ if backend.waits_for().is_some() => {
            backend.waits_for().map(WaitEvent::told).map(|[kind, event, _]| (kind, event))
        }
        _ if backend.kind != BackendKind::Client => None,
        _ if matches!(
            a.state,
            BackendState::Idle
                | BackendState::IdleInTransaction
                | BackendState::IdleInTransactionAborted
        ) =>
        {
            Some(("Client", "ClientRead"))
        }
        _ => None,
    }
}

fn row(backend: &Backend, may: &Readable) -> Vec<Datum> {
    let waits = waits_for(backend);
    let a = backend.activity.lock();
    let client = backend.kind == BackendKind::Client;
    let has_state = client
        || matches!(backend.kind, BackendKind::AutovacuumWorker | BackendKind::ParallelWorker);
    let mut row = vec![
        oid_or_null(a.database),
        Datum::Int4(backend.pid),
        oid_or_null(a.user),
        Datum::text(&a.application_name),
    ];
    if !may.of_user(a.user) {
        row.push(Datum::Null);
        row.push(Datum::text(NOT_PERMITTED));
        row.resize(17, Datum::Null);
        row.push(Datum::Null);
        row.resize(31, Datum::Null);
        return row;
    }
    let in_transaction = !matches!(a.state, BackendState::Idle) || !client;
    row.extend([
        text_or_null(a.state.name().filter(|_| has_state)),
        Datum::text(&*a.query),
        text_or_null(waits.map(|w| w.0)),
        text_or_null(waits.map(|w| w.1)),
        if in_transaction { moment(a.xact_start) } else { Datum::Null },
        moment(a.query_start),
        moment(a.backend_start),
        moment(a.state_change),
        text_or_null(a.client_addr.as_deref()),
        Datum::Null,
        a.client_port.map_or(Datum::Null, Datum::Int4),
        half(backend.top_xid()),
        half(backend.shown_xmin()),
        Datum::text(backend.kind.name()),
        // ssl and what belongs to it, gss and what belongs to it
        Datum::Bool(a.tls.is_some()),
        a.tls.map_or(Datum::Null, |t| Datum::text(t.version)),
        a.tls.map_or(Datum::Null, |t| Datum::text(t.cipher)),
        a.tls.map_or(Datum::Null, |t| Datum::Int4(t.bits)),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Bool(false),
        Datum::Null,
        Datum::Bool(false),
        Datum::Bool(false),
        backend.leader().map_or(Datum::Null, |leader| Datum::Int4(leader.pid)),
        a.query_id.map_or(Datum::Null, Datum::Int8),
    ]);
    row
}
