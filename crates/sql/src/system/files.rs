//! The server's files, as SQL reads them: `pg_read_file`, `pg_ls_dir`, `pg_stat_file` and their kin.
//!
//! # Invariants
//! Who may read any file is a superuser. Names that do not begin with a slash are looked for in the data folder.
//!
//! # Differs from PostgreSQL
//! EXECUTE on these functions is granted to nobody. There are no archiver, no replication slots and no WAL summaries, and so none of their
//! files. There is no `pg_hba.conf` and no `pg_ident.conf`, and so no lines of them.

use super::session::superuser;
use super::{Bodies, int8, rows, state};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use std::fs::{DirEntry, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;
use types::FunctionBody::{Scalar, Set};
use types::args::{boolean, int8 as int8_at, oid, text};
use types::registry::RowIter;
use types::{Datum, Numeric};

pub(super) const BODIES: Bodies = &[
    (
        "pg_read_file",
        Scalar(|env, a| {
            let read = read(state(env)?, "pg_read_file", a)?;
            match read {
                Some(bytes) => Ok(Datum::text(types::utf8(&bytes)?)),
                None => Ok(Datum::Null),
            }
        }),
    ),
    (
        "pg_read_binary_file",
        Scalar(|env, a| {
            let read = read(state(env)?, "pg_read_binary_file", a)?;
            Ok(read.map_or(Datum::Null, |bytes| Datum::Bytea(bytes.into())))
        }),
    ),
    ("pg_ls_dir", Set(|env, a| list(state(env)?, a))),
    ("pg_stat_file", Set(|env, a| about(state(env)?, a))),
    ("pg_ls_waldir", Set(|env, _| folder(state(env)?, "pg_ls_waldir", "wal", false))),
    ("pg_ls_logdir", Set(|env, _| folder(state(env)?, "pg_ls_logdir", "log", false))),
    (
        "pg_ls_tmpdir",
        Set(|env, a| {
            let state = state(env)?;
            monitor(state, "pg_ls_tmpdir")?;
            // The default tablespace and that of the shared catalogs are all there are.
            if !a.is_empty() && ![Oid(1663), Oid(1664)].contains(&oid(a, 0)?) {
                let oid = oid(a, 0)?;
                bail!(UNDEFINED_OBJECT, "tablespace with OID {oid} does not exist");
            }
            folder(state, "pg_ls_tmpdir", crate::exec::TEMP_FOLDER, true)
        }),
    ),
    ("pg_ls_archive_statusdir", Set(|env, _| none(state(env)?, "pg_ls_archive_statusdir"))),
    ("pg_ls_summariesdir", Set(|env, _| none(state(env)?, "pg_ls_summariesdir"))),
    ("pg_ls_logicalsnapdir", Set(|env, _| none(state(env)?, "pg_ls_logicalsnapdir"))),
    ("pg_ls_logicalmapdir", Set(|env, _| none(state(env)?, "pg_ls_logicalmapdir"))),
    (
        "pg_ls_replslotdir",
        Set(|env, a| {
            monitor(state(env)?, "pg_ls_replslotdir")?;
            bail!(UNDEFINED_OBJECT, "replication slot \"{}\" does not exist", text(a, 0)?)
        }),
    ),
    (
        "pg_hba_file_rules",
        Set(|env, _| superuser(state(env)?, "pg_hba_file_rules").map(|()| rows(Vec::new()))),
    ),
    (
        "pg_ident_file_mappings",
        Set(|env, _| superuser(state(env)?, "pg_ident_file_mappings").map(|()| rows(Vec::new()))),
    ),
    (
        "pg_split_walfile_name",
        Set(|env, a| {
            let size = state(env)?.settings.borrow().int("wal_segment_size").max(1);
            let per_log = 0x1_0000_0000 / u64::try_from(size).unwrap_or(1);
            let (segment, timeline) = split_wal_name(text(a, 0)?, per_log)?;
            let segment = Datum::Numeric(Box::new(Numeric::from(segment)));
            Ok(rows(vec![vec![segment, int8(u64::from(timeline))]]))
        }),
    ),
];

/// Number of the segment and timeline of a WAL file's name.
fn split_wal_name(name: &str, segments_per_log: u64) -> Result<(u64, u32)> {
    let part = |n: usize| {
        let digits = name.get(8 * n..8 * (n + 1)).filter(|_| name.len() == 24)?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    match (part(0), part(1), part(2)) {
        (Some(timeline), Some(log), Some(segment)) => {
            Ok((u64::from(log) * segments_per_log + u64::from(segment), timeline))
        }
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid WAL file name \"{name}\""),
    }
}

/// Members of `pg_monitor` may.
fn monitor(state: &SessionState, function: &str) -> Result<()> {
    const PG_MONITOR: Oid = Oid(3373);
    let me = state.current_user.borrow().oid;
    if !state.is_superuser() && !crate::acl::roles_of(state, me)?.contains(&PG_MONITOR) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {function}");
    }
    Ok(())
}

fn none(state: &SessionState, function: &str) -> Result<RowIter> {
    monitor(state, function)?;
    Ok(rows(Vec::new()))
}

fn path(state: &SessionState, name: &str) -> PathBuf {
    PathBuf::from(state.settings.borrow().text("data_directory")).join(name)
}

/// `could not open file "x": No such file or directory`, with PostgreSQL's codes.
fn failed(what: String, error: &std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    let word = error.to_string();
    let word = word.split(" (os error").next().unwrap_or_default();
    let state = match error.kind() {
        K::NotFound => SqlState::UNDEFINED_FILE,
        K::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
        K::IsADirectory | K::NotADirectory => SqlState::WRONG_OBJECT_TYPE,
        K::InvalidInput => SqlState::INTERNAL_ERROR,
        _ => return Error::Io { what, source: std::io::Error::new(error.kind(), word.to_owned()) },
    };
    SqlError::new(state, format!("{what}: {word}")).into()
}

/// What `(name)`, `(name, missing_ok)`, `(name, offset, length)` or `(name, offset, length, missing_ok)` asks for; None: it is missing.
fn read(state: &SessionState, function: &str, a: &[Datum]) -> Result<Option<Vec<u8>>> {
    superuser(state, function)?;
    let name = text(a, 0)?;
    let part = if a.len() > 2 { Some((int8_at(a, 1)?, int8_at(a, 2)?)) } else { None };
    let missing_ok = match a.len() {
        2 => boolean(a, 1)?,
        4 => boolean(a, 3)?,
        _ => false,
    };
    if part.is_some_and(|(_, length)| length < 0) {
        bail!(INVALID_PARAMETER_VALUE, "requested length cannot be negative");
    }
    let mut file = match File::open(path(state, name)) {
        Ok(file) => file,
        Err(e) if missing_ok && e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(format!("could not open file \"{name}\" for reading"), &e)),
    };
    let mut out = Vec::new();
    // A value is no longer than this.
    let most = u64::from(u32::MAX / 4);
    let mut limit = most + 1;
    if let Some((offset, length)) = part {
        let from = match u64::try_from(offset) {
            Ok(offset) => SeekFrom::Start(offset),
            Err(_) => SeekFrom::End(offset),
        };
        file.seek(from).map_err(|e| failed(format!("could not seek in file \"{name}\""), &e))?;
        limit = limit.min(u64::try_from(length).unwrap_or(0));
    }
    file.take(limit)
        .read_to_end(&mut out)
        .map_err(|e| failed(format!("could not read file \"{name}\""), &e))?;
    if u64::try_from(out.len()).unwrap_or(u64::MAX) > most {
        bail!(PROGRAM_LIMIT_EXCEEDED, "file length too large");
    }
    Ok(Some(out))
}

/// What is in a folder; `None`: it is not there, and need not be.
fn entries(state: &SessionState, name: &str, missing_ok: bool) -> Result<Option<Vec<DirEntry>>> {
    let could_not = |e| failed(format!("could not open directory \"{name}\""), &e);
    match std::fs::read_dir(path(state, name)) {
        Ok(entries) => entries.map(|e| e.map_err(could_not)).collect::<Result<_>>().map(Some),
        Err(e) if missing_ok && e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(could_not(e)),
    }
}

/// The names in a folder: `(name)` or `(name, missing_ok, include_dot_dirs)`.
fn list(state: &SessionState, a: &[Datum]) -> Result<RowIter> {
    superuser(state, "pg_ls_dir")?;
    let name = text(a, 0)?;
    let (missing_ok, dots) =
        if a.len() > 1 { (boolean(a, 1)?, boolean(a, 2)?) } else { (false, false) };
    let Some(entries) = entries(state, name, missing_ok)? else { return Ok(rows(Vec::new())) };
    let mut out = Vec::new();
    if dots {
        out.extend([".", ".."].map(|name| vec![Datum::text(name)]));
    }
    for entry in entries {
        out.push(vec![Datum::text(entry.file_name().to_string_lossy())]);
    }
    Ok(rows(out))
}

/// Microseconds since 2000, as a datum, of seconds and nanoseconds since 1970.
fn time(seconds: i64, nanos: i64) -> Datum {
    let us = seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000);
    Datum::TimestampTz(us.saturating_sub(946_684_800_000_000))
}

/// Size, times, and whether it is a folder: `(name)` or `(name, missing_ok)`.
fn about(state: &SessionState, a: &[Datum]) -> Result<RowIter> {
    superuser(state, "pg_stat_file")?;
    let name = text(a, 0)?;
    let missing_ok = a.len() > 1 && boolean(a, 1)?;
    let about = match std::fs::metadata(path(state, name)) {
        Ok(about) => about,
        Err(e) if missing_ok && e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(rows(vec![vec![Datum::Null; 6]]));
        }
        Err(e) => return Err(failed(format!("could not stat file \"{name}\""), &e)),
    };
    Ok(rows(vec![vec![
        int8(about.len()),
        // To the second, as there.
        time(about.atime(), 0),
        time(about.mtime(), 0),
        time(about.ctime(), 0),
        Datum::Null,
        Datum::Bool(about.is_dir()),
    ]]))
}

/// The files of one of the server's folders: name, size, time of the last change.
fn folder(state: &SessionState, function: &str, name: &str, missing_ok: bool) -> Result<RowIter> {
    monitor(state, function)?;
    let Some(entries) = entries(state, name, missing_ok)? else { return Ok(rows(Vec::new())) };
    let mut out = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // One that is gone meanwhile is none of them.
        let Ok(about) = entry.metadata() else { continue };
        if !about.is_file() || name.starts_with('.') {
            continue;
        }
        let changed = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        let seconds = changed.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX));
        out.push(vec![Datum::text(name), int8(about.len()), time(seconds, 0)]);
    }
    Ok(rows(out))
}

#[cfg(test)]
mod tests {
    use super::split_wal_name;

    #[test]
    fn names_of_wal_files() {
        let split = |name| split_wal_name(name, 256).ok();
        assert_eq!(split("000000010000000100000003"), Some((259, 1)));
        assert_eq!(split("ffffffff00000001000000ff"), Some((511, u32::MAX)));
        assert_eq!(split("000000010000000100000100"), Some((512, 1)), "as there");
        assert_eq!(split("00000001000000010000000"), None);
        assert_eq!(split("x00000010000000100000003"), None);
        assert_eq!(split("+00000010000000100000003"), None);
    }
}
