//! What the control file says, and what belongs to a recovery that is not under way.
//!
//! # Differs from PostgreSQL
//! What the control file does not have is NULL. There are no multixacts, and no log collector.

use super::session::wal_file_name;
use super::{Bodies, rows, state};
use crate::client::{Notice, Severity};
use crate::session::SessionState;
use base::{Lsn, Result, SqlError, SqlState};
use types::Datum;
use types::FunctionBody::{Scalar, Set};
use types::args::{int4, int8, lsn};

pub(super) const BODIES: Bodies = &[
    ("pg_control_checkpoint", Set(|env, _| Ok(rows(vec![checkpoint(state(env)?)?])))),
    (
        "pg_control_recovery",
        Set(|_, _| {
            let none = Datum::Lsn(Lsn(0));
            Ok(rows(vec![vec![
                none.clone(),
                Datum::Int4(0),
                none.clone(),
                none,
                Datum::Bool(false),
            ]]))
        }),
    ),
    ("pg_control_init", Set(|env, _| Ok(rows(vec![init(state(env)?)])))),
    ("pg_config", Set(|env, _| built(state(env)?))),
    (
        "pg_get_wal_resource_managers",
        Set(|_, _| {
            let all = wal::ResourceManager::ALL.iter();
            let row = |r: &wal::ResourceManager| {
                vec![Datum::Int4(*r as i32), Datum::text(r.name()), Datum::Bool(true)]
            };
            Ok(rows(all.map(row).collect()))
        }),
    ),
    // Text is compared as bytes, whatever library there is.
    ("pg_database_collation_actual_version", Scalar(|_, _| Ok(Datum::Null))),
    (
        "pg_walfile_name_offset",
        Set(|env, a| {
            let (state, at) = (state(env)?, lsn(a, 0)?);
            let name = Datum::text(wal_file_name(state, at)?);
            let size = state.settings.borrow().int("wal_segment_size").max(1);
            let offset = at.0 % u64::try_from(size).unwrap_or(1);
            Ok(rows(vec![vec![name, Datum::Int4(i32::try_from(offset).unwrap_or(0))]]))
        }),
    ),
    ("pg_current_logfile", Scalar(|_, _| Ok(Datum::Null))),
    (
        "pg_rotate_logfile",
        Scalar(|env, _| {
            let state = state(env)?;
            super::session::superuser(state, "pg_rotate_logfile")?;
            let text = "rotation not possible because log collection not active";
            let mut notice = Notice::new(Severity::Warning, text);
            notice.body.state = SqlState::WARNING;
            state.notices.borrow_mut().push(notice);
            Ok(Datum::Bool(false))
        }),
    ),
    ("pg_is_wal_replay_paused", Scalar(|_, _| Err(not_recovering()))),
    ("pg_get_wal_replay_pause_state", Scalar(|_, _| Err(not_recovering()))),
    ("pg_wal_replay_pause", Scalar(|_, _| Err(not_recovering()))),
    ("pg_wal_replay_resume", Scalar(|_, _| Err(not_recovering()))),
    ("pg_promote", Scalar(|_, _| Err(not_recovering()))),
    ("pg_xact_commit_timestamp", Scalar(|_, _| no_commit_times())),
    ("pg_xact_commit_timestamp_origin", Set(|_, _| no_commit_times().map(|_| rows(Vec::new())))),
    ("pg_last_committed_xact", Set(|_, _| no_commit_times().map(|_| rows(Vec::new())))),
    (
        "pg_stat_get_backend_subxact",
        Set(|env, a| {
            let found = state(env)?.cluster.backends().by_pid(int4(a, 0)?);
            let row = found.map_or_else(
                || vec![Datum::Null, Datum::Null],
                |b| vec![Datum::Int4(b.subtransactions()), Datum::Bool(false)],
            );
            Ok(rows(vec![row]))
        }),
    ),
    (
        "pg_indexam_progress_phasename",
        Scalar(|_, a| {
            let phase = match int8(a, 1)? {
                1 => "initializing",
                2 => "scanning table",
                3 => "sorting live tuples",
                4 => "sorting dead tuples",
                5 => "loading tuples in tree",
                _ => return Ok(Datum::Null),
            };
            let btree = matches!(&a[0], Datum::Oid(oid) if oid.0 == 403);
            Ok(if btree { Datum::text(phase) } else { Datum::Null })
        }),
    ),
];

fn checkpoint(state: &SessionState) -> Result<Vec<Datum>> {
    let control = state.cluster.engine().control();
    let timeline = Datum::Int4(i32::try_from(control.timeline).unwrap_or(0));
    let xid = |n: u32| Datum::Oid(base::Oid(n));
    let next = control.next_xid.0;
    Ok(vec![
        Datum::Lsn(control.checkpoint),
        Datum::Lsn(control.redo),
        // The file that has its first byte.
        Datum::text(wal_file_name(state, Lsn(control.redo.0 + 1))?),
        timeline.clone(),
        timeline,
        Datum::Bool(state.settings.borrow().bool("full_page_writes")),
        Datum::text(format!("{}:{}", next >> 32, next & 0xffff_ffff)),
        Datum::Null,
        xid(1),
        xid(0),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        xid(1),
        Datum::Null,
        xid(0),
        xid(0),
        Datum::TimestampTz(control.time_us),
    ])
}

/// What cannot be changed after init. There are no segments of relations' files, and no large objects.
fn init(state: &SessionState) -> Vec<Datum> {
    let number = |n: usize| Datum::Int4(i32::try_from(n).unwrap_or(i32::MAX));
    let segment = state.settings.borrow().int("wal_segment_size");
    vec![
        number(8),
        number(page::PAGE_SIZE),
        Datum::Null,
        number(page::PAGE_SIZE),
        number(usize::try_from(segment).unwrap_or(0)),
        number(64),
        number(32),
        number(heap::toast::CHUNK),
        Datum::Null,
        Datum::Bool(true),
        number(1),
        Datum::Bool(true),
    ]
}

/// How the server was built and where it is: as PostgreSQL says it of what it does not know.
fn built(state: &SessionState) -> Result<types::registry::RowIter> {
    const NAMES: [&str; 23] = [
        "BINDIR",
        "DOCDIR",
        "HTMLDIR",
        "INCLUDEDIR",
        "PKGINCLUDEDIR",
        "INCLUDEDIR-SERVER",
        "LIBDIR",
        "PKGLIBDIR",
        "LOCALEDIR",
        "MANDIR",
        "SHAREDIR",
        "SYSCONFDIR",
        "PGXS",
        "CONFIGURE",
        "CC",
        "CPPFLAGS",
        "CFLAGS",
        "CFLAGS_SL",
        "LDFLAGS",
        "LDFLAGS_EX",
        "LDFLAGS_SL",
        "LIBS",
        "VERSION",
    ];
    super::session::superuser(state, "pg_config")?;
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(std::path::Path::parent);
    let version = state.settings.borrow().show("server_version")?;
    let row = |name: &str| {
        let setting = match name {
            "BINDIR" => folder.map(|f| f.display().to_string()),
            "VERSION" => Some(format!("PostgreSQL {version}")),
            _ => None,
        };
        vec![Datum::text(name), Datum::text(setting.as_deref().unwrap_or("not recorded"))]
    };
    Ok(rows(NAMES.iter().map(|name| row(name)).collect()))
}

fn not_recovering() -> base::Error {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "recovery is not in progress")
        .hint("Recovery control functions can only be executed during recovery.")
        .into()
}

fn no_commit_times() -> Result<Datum> {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    let hint = "Make sure the configuration parameter \"track_commit_timestamp\" is set.";
    Err(SqlError::new(state, "could not get commit timestamp data").hint(hint).into())
}
