//! The session: who, where, its settings, its transaction.

use super::{Bodies, Own, rows, state, text_or_null};
use crate::session::SessionState;
use base::settings::{Context, SetScope, Source};
use base::{Lsn, Result, SqlError, SqlState, Xid, bail};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use txn::XidStatus;
use types::FunctionBody::{Scalar, Set};
use types::args::{boolean, float8, int8, interval, is_null, lsn, oid, text, timestamptz, xid8};
use types::io::parse_snapshot;
use types::{ArrayValue, Datum, Env, oids};

/// Encodings by number, as PostgreSQL counts them.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Functions of our own.
pub(super) const OWN: &[Own] = &[Own {
    oid: 9900,
    name: "ebb_burn_xids",
    args: &[oids::INT8],
    result: oids::XID8,
    columns: &[],
    body: Scalar(|env, a| {
        let state = state(env)?;
        superuser(state, "ebb_burn_xids")?;
        let Ok(n) = u64::try_from(int8(a, 0)?) else {
            bail!(INVALID_PARAMETER_VALUE, "the number of transaction IDs must not be negative");
        };
        Ok(Datum::Xid8(state.cluster.engine().txns.burn_xids(n)?.0))
    }),
}];

pub(super) const BODIES: Bodies = &[
    ("current_database", Scalar(|env, _| Ok(Datum::text(&state(env)?.database.name)))),
    ("current_user", Scalar(|env, _| Ok(Datum::text(&state(env)?.current_user.borrow().name)))),
    ("getpgusername", Scalar(|env, _| Ok(Datum::text(&state(env)?.current_user.borrow().name)))),
    (
        "current_query",
        Scalar(|env, _| {
            let query = std::sync::Arc::clone(&state(env)?.backend.activity.lock().query);
            Ok(if query.is_empty() { Datum::Null } else { Datum::text(&*query) })
        }),
    ),
    ("session_user", Scalar(|env, _| Ok(Datum::text(&state(env)?.session_user.borrow().name)))),
    ("system_user", Scalar(|_, _| Ok(Datum::Null))),
    ("version", Scalar(|_, _| Ok(Datum::text(version())))),
    ("pg_backend_pid", Scalar(|env, _| Ok(Datum::Int4(state(env)?.backend.pid)))),
    (
        "pg_postmaster_start_time",
        Scalar(|env, _| Ok(Datum::TimestampTz(state(env)?.cluster.started_us))),
    ),
    (
        "pg_conf_load_time",
        Scalar(|env, _| {
            Ok(Datum::TimestampTz(state(env)?.cluster.configured_us.load(Ordering::Relaxed)))
        }),
    ),
    (
        "pg_reload_conf",
        Scalar(|env, _| {
            let state = state(env)?;
            superuser(state, "pg_reload_conf")?;
            Ok(Datum::Bool(state.cluster.reload()))
        }),
    ),
    ("pg_is_in_recovery", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("pg_client_encoding", Scalar(|env, _| Ok(Datum::text(setting(env, "client_encoding")?)))),
    ("getdatabaseencoding", Scalar(|_, _| Ok(Datum::text("UTF8")))),
    (
        "pg_encoding_to_char",
        Scalar(|_, a| {
            let n = usize::try_from(types::args::int4(a, 0)?).unwrap_or(usize::MAX);
            Ok(Datum::text(ENCODINGS.get(n).copied().unwrap_or("")))
        }),
    ),
    (
        "pg_char_to_encoding",
        Scalar(|_, a| {
            let plain = |s: &str| s.replace(['-', '_', ' '], "").to_ascii_lowercase();
            let name = plain(text(a, 0)?);
            let name = if name == "unicode" { "utf8" } else { &name };
            let found = ENCODINGS.iter().position(|e| plain(e) == name);
            Ok(Datum::Int4(found.and_then(|n| i32::try_from(n).ok()).unwrap_or(-1)))
        }),
    ),
    (
        "pg_encoding_max_length",
        Scalar(|_, a| {
            let n = usize::try_from(types::args::int4(a, 0)?).unwrap_or(usize::MAX);
            Ok(match ENCODINGS.get(n) {
                Some(&"UTF8") => Datum::Int4(4),
                Some(name) if name.starts_with("EUC") => Datum::Int4(3),
                Some(_) => Datum::Int4(1),
                None => Datum::Null,
            })
        }),
    ),
    (
        "inet_client_addr",
        Scalar(|env, _| Ok(text_or_null(state(env)?.backend.activity.lock().client_addr.clone()))),
    ),
    (
        "inet_client_port",
        Scalar(|env, _| {
            let port = state(env)?.backend.activity.lock().client_port;
            Ok(port.map_or(Datum::Null, Datum::Int4))
        }),
    ),
    ("inet_server_addr", Scalar(|_, _| Ok(Datum::Null))),
    (
        "inet_server_port",
        Scalar(|env, _| {
            let state = state(env)?;
            let over_tcp = state.backend.activity.lock().client_port.is_some();
            let port = i32::try_from(state.settings.borrow().int("port")).unwrap_or(0);
            Ok(if over_tcp { Datum::Int4(port) } else { Datum::Null })
        }),
    ),
    (
        "current_setting",
        Scalar(|env, a| {
            let missing_ok = a.len() > 1 && boolean(a, 1)?;
            state(env)?.check_examine(text(a, 0)?)?;
            match state(env)?.shown(text(a, 0)?) {
                Err(_) if missing_ok => Ok(Datum::Null),
                shown => shown.map(Datum::text),
            }
        }),
    ),
    ("set_config", Scalar(|env, a| set_config(env, a))),
    ("pg_show_all_settings", Set(|env, _| Ok(rows(super::settings::all(state(env)?)?)))),
    ("pg_show_all_file_settings", Set(|env, _| file_settings(state(env)?).map(rows))),
    (
        "pg_settings_get_flags",
        Scalar(|_, a| {
            let Some((_, definition)) = base::settings::find(text(a, 0)?) else {
                return Ok(Datum::Null);
            };
            let flags = definition.flags().into_iter().map(Datum::text).collect();
            Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(oids::TEXT, flags))))
        }),
    ),
    ("pg_sleep", Scalar(|env, a| sleep(env, float8(a, 0)?).map(|()| Datum::Null))),
    (
        "pg_sleep_for",
        Scalar(|env, a| {
            let i = interval(a, 0)?;
            let days = f64::from(i.months) * 30.0 + f64::from(i.days);
            sleep(env, days * 86_400.0 + i.micros as f64 / 1e6).map(|()| Datum::Null)
        }),
    ),
    (
        "pg_sleep_until",
        Scalar(|env, a| {
            let left = timestamptz(a, 0)?.saturating_sub(base::sync::now_timestamp_us());
            sleep(env, left as f64 / 1e6).map(|()| Datum::Null)
        }),
    ),
    // Transactions.
    ("txid_current", Scalar(|env, _| Ok(super::int8(top(env)?.0)))),
    ("pg_current_xact_id", Scalar(|env, _| Ok(Datum::Xid8(top(env)?.0)))),
    (
        "txid_current_if_assigned",
        Scalar(|env, _| Ok(state(env)?.txn()?.top_xid().map_or(Datum::Null, |x| super::int8(x.0)))),
    ),
    (
        "pg_current_xact_id_if_assigned",
        Scalar(|env, _| Ok(state(env)?.txn()?.top_xid().map_or(Datum::Null, |x| Datum::Xid8(x.0)))),
    ),
    ("txid_status", Scalar(|env, a| status(env, u64::try_from(int8(a, 0)?).unwrap_or(0)))),
    ("pg_xact_status", Scalar(|env, a| status(env, xid8(a, 0)?))),
    ("pg_current_snapshot", Scalar(|env, _| snapshot(state(env)?).map(Datum::text))),
    ("pg_export_snapshot", Scalar(|env, _| state(env)?.txn()?.export_snapshot().map(Datum::text))),
    ("txid_current_snapshot", Scalar(|env, _| snapshot(state(env)?).map(Datum::text))),
    ("txid_snapshot_xmin", Scalar(|_, a| Ok(super::int8(parse_snapshot(text(a, 0)?)?.0)))),
    ("txid_snapshot_xmax", Scalar(|_, a| Ok(super::int8(parse_snapshot(text(a, 0)?)?.1)))),
    (
        "txid_snapshot_xip",
        Set(|_, a| {
            let xids = parse_snapshot(text(a, 0)?)?.2;
            Ok(rows(xids.into_iter().map(|x| vec![super::int8(x)]).collect()))
        }),
    ),
    (
        "txid_visible_in_snapshot",
        Scalar(|_, a| {
            let xid = u64::try_from(int8(a, 0)?).unwrap_or(0);
            visible(xid, text(a, 1)?)
        }),
    ),
    ("pg_snapshot_xmin", Scalar(|_, a| Ok(Datum::Xid8(parse_snapshot(text(a, 0)?)?.0)))),
    ("pg_snapshot_xmax", Scalar(|_, a| Ok(Datum::Xid8(parse_snapshot(text(a, 0)?)?.1)))),
    (
        "pg_snapshot_xip",
        Set(|_, a| {
            let xids = parse_snapshot(text(a, 0)?)?.2;
            Ok(rows(xids.into_iter().map(|x| vec![Datum::Xid8(x)]).collect()))
        }),
    ),
    (
        "pg_visible_in_snapshot",
        Scalar(|_, a| {
            let xid = xid8(a, 0)?;
            visible(xid, text(a, 1)?)
        }),
    ),
    ("age(xid)", Scalar(|env, a| age(env, a))),
    (
        "mxid_age",
        // There are no MultiXacts: the next one is always 1.
        Scalar(|_, a| {
            let xid = oid(a, 0)?.0;
            Ok(Datum::Int4(if xid == 0 { i32::MAX } else { 1i32.wrapping_sub(xid as i32) }))
        }),
    ),
    // WAL.
    (
        "pg_current_wal_lsn",
        Scalar(|env, _| Ok(Datum::Lsn(state(env)?.cluster.engine().wal.written_lsn()))),
    ),
    (
        "pg_current_wal_insert_lsn",
        Scalar(|env, _| Ok(Datum::Lsn(state(env)?.cluster.engine().wal.insert_lsn()))),
    ),
    (
        "pg_current_wal_flush_lsn",
        Scalar(|env, _| Ok(Datum::Lsn(state(env)?.cluster.engine().wal.flushed_lsn()))),
    ),
    ("pg_walfile_name", Scalar(|env, a| wal_file_name(state(env)?, lsn(a, 0)?).map(Datum::text))),
    ("pg_last_wal_receive_lsn", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_last_wal_replay_lsn", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_last_xact_replay_timestamp", Scalar(|_, _| Ok(Datum::Null))),
    (
        "pg_control_system",
        Set(|env, _| {
            let control = state(env)?.cluster.engine().control();
            Ok(rows(vec![vec![
                Datum::Int4(1800),
                Datum::Int4(202_506_291),
                super::int8(control.system_id),
                Datum::TimestampTz(control.time_us),
            ]]))
        }),
    ),
    // Notifications.
    (
        "pg_notify",
        Scalar(|env, a| {
            let given = |n| if is_null(a, n) { Ok("") } else { text(a, n) };
            state(env)?.notify(given(0)?, given(1)?)?;
            Ok(Datum::Null)
        }),
    ),
    (
        "pg_listening_channels",
        Set(|env, _| {
            let notify = state(env)?.notify.borrow();
            Ok(rows(notify.listening().iter().map(|c| vec![Datum::text(c)]).collect()))
        }),
    ),
    (
        "pg_notification_queue_usage",
        Scalar(|env, _| Ok(Datum::Float8(state(env)?.cluster.notifications.usage()))),
    ),
    // Lists that are empty here.
    ("pg_prepared_xact", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_get_replication_slots", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_stat_get_wal_senders", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_show_replication_origin_status", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_prepared_statement", Set(|env, _| Ok(rows(prepared_statements(state(env)?))))),
    ("pg_cursor", Set(|env, _| Ok(rows(cursors(state(env)?))))),
    ("pg_available_extension_versions", Set(|_, _| Ok(rows(extension_versions())))),
    ("pg_available_extensions", Set(|_, _| Ok(rows(extensions())))),
    ("pg_jit_available", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("pg_trigger_depth", Scalar(|_, _| Ok(Datum::Int4(0)))),
    ("pg_timezone_names", Set(|_, _| Ok(rows(zones())))),
];

/// The time zones that are known, and what holds in them now.
fn zones() -> Vec<Vec<Datum>> {
    let now = base::sync::now_timestamp_us();
    let zone = |name: &'static str| {
        let zone = types::datetime::zone::TimeZone::by_name(name)?;
        let period = zone.period_at(now);
        let offset =
            types::Interval { micros: i64::from(period.offset) * 1_000_000, ..Default::default() };
        Some(vec![
            Datum::text(name),
            Datum::text(&period.abbreviation),
            Datum::Interval(Box::new(offset)),
            Datum::Bool(period.dst),
        ])
    };
    types::datetime::zone::names().filter_map(zone).collect()
}

fn types_array(types: &[base::Oid]) -> Datum {
    let elements = types.iter().map(|t| Datum::Oid(*t)).collect();
    Datum::Array(Arc::new(ArrayValue::one_dimension(oids::REGTYPE, elements)))
}

/// Named statements, as `pg_prepared_statements` shows them.
fn prepared_statements(state: &SessionState) -> Vec<Vec<Datum>> {
    let statements = state.statements.borrow();
    let named = statements.iter().filter(|(name, _)| !name.is_empty());
    named
        .map(|(name, p)| {
            let results = p.columns.as_ref().map_or(Datum::Null, |columns| {
                types_array(&columns.iter().map(|c| c.ty.oid).collect::<Vec<_>>())
            });
            vec![
                Datum::text(name),
                Datum::text(&*p.text),
                Datum::TimestampTz(p.prepared_us),
                types_array(&p.params),
                results,
                Datum::Bool(p.from_sql),
                Datum::Int8(p.runs.get()),
                // Plans are made once, for all parameters.
                Datum::Int8(0),
            ]
        })
        .collect()
}

/// Open portals, as `pg_cursors` shows them.
fn cursors(state: &SessionState) -> Vec<Vec<Datum>> {
    let all = state.cursors.rows();
    all.into_iter()
        .map(|c| {
            vec![
                Datum::text(&c.name),
                Datum::text(&*c.statement),
                Datum::Bool(c.is_holdable),
                Datum::Bool(c.is_binary),
                Datum::Bool(c.is_scrollable),
                Datum::TimestampTz(c.creation_time),
            ]
        })
        .collect()
}

/// What `version()` says.
fn version() -> String {
    format!(
        "PostgreSQL 18.0 (Ebb {}) on {}-{}, compiled by rustc, {}-bit",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        usize::BITS
    )
}

fn extension_versions() -> Vec<Vec<Datum>> {
    let of = |e: &super::extensions::Extension| {
        vec![
            Datum::text(e.name),
            Datum::text(e.version),
            // superuser, trusted, relocatable, schema, requires
            Datum::Bool(true),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::Null,
            Datum::Null,
            Datum::text(e.comment),
        ]
    };
    super::extensions::EXTENSIONS.iter().map(of).collect()
}

fn extensions() -> Vec<Vec<Datum>> {
    super::extensions::EXTENSIONS
        .iter()
        .map(|e| vec![Datum::text(e.name), Datum::text(e.version), Datum::text(e.comment)])
        .collect()
}

/// Fails unless the current user is a superuser.
pub(super) fn superuser(state: &SessionState, function: &str) -> Result<()> {
    if !state.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {function}");
    }
    Ok(())
}

fn setting(env: &dyn Env, name: &str) -> Result<String> {
    state(env)?.settings.borrow().show(name)
}

/// Settings that are what the transaction is like.
const OF_TRANSACTIONS: [&str; 3] =
    ["transaction_isolation", "transaction_read_only", "transaction_deferrable"];

/// One of them in a query, when it is too late for most.
fn set_transaction_mode(state: &SessionState, name: &str, value: &str) -> Result<()> {
    let (_, def) = base::settings::definition(name)?;
    let value = def.parse(value)?;
    let txn = state.txn()?;
    match name {
        "transaction_read_only" if value.as_bool() => txn.set_read_only(true),
        "transaction_read_only" if txn.is_read_only() => bail!(
            ACTIVE_SQL_TRANSACTION,
            "transaction read-write mode must be set before any query"
        ),
        "transaction_read_only" => {}
        "transaction_isolation" if def.show(&value) == state.shown(name)? => {}
        "transaction_isolation" => bail!(
            ACTIVE_SQL_TRANSACTION,
            "SET TRANSACTION ISOLATION LEVEL must be called before any query"
        ),
        _ => bail!(
            ACTIVE_SQL_TRANSACTION,
            "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
        ),
    }
    state.set(name, &def.show(&value), SetScope::Local)
}

fn set_config(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    if is_null(a, 0) {
        return Err(
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name").into()
        );
    }
    let name = text(a, 0)?;
    let local = !is_null(a, 2) && boolean(a, 2)?;
    let scope = if local { SetScope::Local } else { SetScope::Session };
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "role" | "session_authorization") {
        let of_login = state.login_user.name.clone();
        let default = if lower == "role" { "none" } else { &*of_login };
        let wanted = if is_null(a, 1) { default } else { text(a, 1)? };
        state.set_role(&lower, wanted, scope)?;
        return state.shown(&lower).map(Datum::text);
    }
    if OF_TRANSACTIONS.contains(&lower.as_str()) {
        if is_null(a, 1) {
            bail!(FEATURE_NOT_SUPPORTED, "parameter \"{lower}\" cannot be reset");
        }
        set_transaction_mode(state, &lower, text(a, 1)?)?;
        return state.shown(&lower).map(Datum::text);
    }
    if is_null(a, 1) {
        let superuser = state.is_superuser();
        state.settings.borrow_mut().reset(name, scope, superuser)?;
    } else {
        state.set(name, text(a, 1)?, scope)?;
    }
    let shown = state.settings.borrow().show(name)?;
    Ok(Datum::text(shown))
}

/// The rows of `pg_file_settings`: what the configuration files say now, and whether a reload would take it.
fn file_settings(state: &SessionState) -> Result<Vec<Vec<Datum>>> {
    superuser(state, "pg_show_all_file_settings")?;
    let folder = state.settings.borrow().text("data_directory").to_owned();
    let all = match crate::config_files::read(std::path::Path::new(&folder)) {
        Ok(all) => all,
        Err(error) => {
            let mut row = vec![Datum::Null; 7];
            (row[5], row[6]) = (Datum::Bool(false), Datum::text(error.to_string()));
            return Ok(vec![row]);
        }
    };
    let server = state.cluster.settings();
    let wrong = |a: &base::settings::Assignment| -> Option<String> {
        let Some((index, def)) = base::settings::find(&a.name) else {
            let what = "unrecognized configuration parameter".to_owned();
            return (!a.name.contains('.')).then_some(what);
        };
        let needs_restart = |value: &base::settings::Value| {
            let entry = server.entry(index);
            let from_files = entry.source <= Source::ConfigurationFile;
            def.context == Context::Postmaster && from_files && entry.value != *value
        };
        match server.checked(def, &a.value) {
            Ok(value) if def.context != Context::Internal && !needs_restart(&value) => None,
            _ => Some("setting could not be applied".to_owned()),
        }
    };
    let is_last = |at: usize| {
        let name = &all[at].name;
        all[at + 1..].iter().all(|later| !later.name.eq_ignore_ascii_case(name))
    };
    let row = |(at, a): (usize, &base::settings::Assignment)| {
        let (file, line) = a.location.clone().unwrap_or_default();
        // Of several values the last counts, and no other is looked at.
        let error = if is_last(at) { wrong(a) } else { None };
        vec![
            Datum::text(file),
            Datum::Int4(i32::try_from(line).unwrap_or(0)),
            Datum::Int4(i32::try_from(at + 1).unwrap_or(0)),
            Datum::text(&a.name),
            Datum::text(&a.value),
            Datum::Bool(is_last(at) && error.is_none()),
            text_or_null(error),
        ]
    };
    Ok(all.iter().enumerate().map(row).collect())
}

/// Sleeps, looking now and then whether the statement was cancelled.
fn sleep(env: &dyn Env, seconds: f64) -> Result<()> {
    if seconds.is_nan() || seconds <= 0.0 {
        return env.check_cancel();
    }
    let state = state(env)?;
    state.backend.set_wait_event(Some(("Timeout", "PgSleep")));
    let start = base::sync::now();
    let whole = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let result = loop {
        if let Err(error) = env.check_cancel() {
            break Err(error);
        }
        let left = whole.saturating_sub(start.elapsed());
        if left.is_zero() {
            break Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(10)));
    };
    state.backend.set_wait_event(None);
    result
}

/// The transaction's own XID, which it gets if it has none yet.
fn top(env: &dyn Env) -> Result<Xid> {
    let txn = state(env)?.txn()?;
    let xid = txn.xid()?;
    Ok(txn.top_xid().unwrap_or(xid))
}

fn status(env: &dyn Env, xid: u64) -> Result<Datum> {
    let txns = &state(env)?.cluster.engine().txns;
    if xid >= txns.next_xid().0 {
        bail!(INVALID_PARAMETER_VALUE, "transaction ID {xid} is in the future");
    }
    if xid < Xid::FIRST_NORMAL.0 {
        return Ok(if xid == 0 { Datum::Null } else { Datum::text("committed") });
    }
    if xid < txns.oldest_clog_xid().0 {
        return Ok(Datum::Null);
    }
    Ok(Datum::text(match txns.status(Xid(xid))? {
        XidStatus::InProgress => "in progress",
        XidStatus::Committed(_) => "committed",
        XidStatus::Aborted => "aborted",
    }))
}

/// `xmin:xmax:running,…`
fn snapshot(state: &SessionState) -> Result<String> {
    let snapshot = state.txn()?.take_snapshot();
    let mut running: Vec<u64> = state
        .cluster
        .backends()
        .all()
        .iter()
        .filter_map(|b| b.top_xid())
        .map(|x| x.0)
        .filter(|x| *x >= snapshot.xmin.0 && *x < snapshot.xmax.0)
        .collect();
    running.sort_unstable();
    Ok(types::io::snapshot_text(snapshot.xmin.0, snapshot.xmax.0, &running))
}

/// Had the transaction ended when the snapshot was taken?
fn visible(xid: u64, snapshot: &str) -> Result<Datum> {
    let (min, max, running) = parse_snapshot(snapshot)?;
    Ok(Datum::Bool(xid < min || xid < max && !running.contains(&xid)))
}

/// How many transactions ago: NULL is not possible, special XIDs are as old as can be.
fn age(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let xid = oid(a, 0)?.0;
    if u64::from(xid) < Xid::FIRST_NORMAL.0 {
        return Ok(Datum::Int4(i32::MAX));
    }
    let state = state(env)?;
    let next = state.cluster.engine().txns.next_xid();
    let now = state.txn()?.top_xid().unwrap_or(next);
    Ok(Datum::Int4(age_of(xid, now, next)))
}

/// How many XIDs before `now` the one is whose last 32 bits these are: of those given out (before `next`) the newest. Ages do not end
/// at 2^31 here, as XIDs do not wrap around: what an int4 cannot say is its largest. Only an XID later than `now` has a negative age.
fn age_of(low: u32, now: Xid, next: Xid) -> i32 {
    let epoch = next.0 & !u64::from(u32::MAX);
    let here = epoch | u64::from(low);
    let full = if here > next.0 && epoch > 0 { here - (1 << 32) } else { here };
    match now.0.checked_sub(full) {
        Some(age) => i32::try_from(age).unwrap_or(i32::MAX),
        None => i32::try_from(full - now.0).map_or(i32::MIN, |n| -n),
    }
}

pub(super) fn wal_file_name(state: &SessionState, at: Lsn) -> Result<String> {
    let segment = u64::try_from(state.settings.borrow().int("wal_segment_size")).unwrap_or(0);
    let bytes = if segment == 0 { 16 << 20 } else { segment };
    let number = at.0.saturating_sub(1) / bytes;
    let per_id = (1u64 << 32) / bytes;
    let timeline = state.cluster.engine().wal.timeline();
    Ok(format!("{timeline:08X}{:08X}{:08X}", number / per_id, number % per_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_beyond_an_int4_are_its_largest_and_not_negative() {
        let at = |low: u64, now: u64| age_of(low as u32, Xid(now), Xid(now + 2));
        assert_eq!(at(3, 1000), 997);
        assert_eq!(at(3, 3 + (1 << 31) - 1), i32::MAX);
        assert_eq!(at(3, 3 + (1 << 31)), i32::MAX);
        assert_eq!(at(3, 3_900_000_000), i32::MAX);
        assert_eq!(at(4_000_000_000, (1 << 32) + 10), 294_967_306);
        assert_eq!(at(100, (1 << 32) + 10), i32::MAX);
        assert_eq!(at(100, (1 << 32) + 100), 0);
        assert_eq!(at(102, (1 << 32) + 100), -2);
        assert_eq!(at(500, 100), -400);
    }

    #[test]
    fn snapshots_parse() {
        assert_eq!(parse_snapshot("10:20:11,15").unwrap(), (10, 20, vec![11, 15]));
        assert_eq!(parse_snapshot("10:10:").unwrap(), (10, 10, vec![]));
        for bad in ["x", "10:20", "20:10:", "0:1:", "12:13:0", "12:16:14,13", "12:16:16", "12:13:x"]
        {
            assert!(parse_snapshot(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_snapshot("12:16:14,14").unwrap(), (12, 16, vec![14]));
        assert!(parse_snapshot("1:9223372036854775808:3").is_err());
    }

    #[test]
    fn the_encoding_of_every_database_is_number_6() {
        assert_eq!(ENCODINGS[6], "UTF8");
        assert_eq!(ENCODINGS[41], "SHIFT_JIS_2004");
    }

    #[test]
    fn own_oid_is_out_of_postgresqls_way() {
        assert!(OWN.iter().all(|o| types::facts::proc(base::Oid(o.oid)).is_none()));
    }
}
