//! ALTER SYSTEM: `postgresql.auto.conf`.
//!
//! # Invariants
//! The file is read, changed and written by one session at a time, under [`Cluster::settings_file`](crate::cluster::Cluster::settings_file).

use super::{Session, check_setting, setting_text};
use crate::parse::utility::AlterSystem;
use base::settings::{Context, Definition, check_custom_name, find, parse_file, quote_value};
use base::{Error, Result, bail};
use disk::OpenMode;

/// The file that ALTER SYSTEM writes, in the data folder.
pub const AUTO_CONF: &str = "postgresql.auto.conf";

/// What no file says for all sessions.
const OF_SESSIONS: [&str; 7] = [
    "config_file",
    "data_directory",
    "role",
    "session_authorization",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
];

/// Writes the change; a reload or restart takes it.
///
/// # Errors
/// `42501`, `42704`, `22023`, `55P02`; I/O.
pub(super) fn run(session: &mut Session, alter: &AlterSystem) -> Result<()> {
    if !session.state().is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter by ALTER SYSTEM");
    }
    if !session.state().settings.borrow().bool("allow_alter_system") {
        bail!(FEATURE_NOT_SUPPORTED, "ALTER SYSTEM is not allowed in this environment");
    }
    let disk = &session.state().cluster.engine().disk;
    let _alone = session.state().cluster.settings_file.lock();
    let mut lines: Vec<(String, String)> = read(disk.as_ref())?;
    match alter {
        AlterSystem::ResetAll => lines.clear(),
        AlterSystem::Reset { name } => {
            let name = name_of(name)?;
            lines.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        }
        AlterSystem::Set { name, values } => {
            let value = setting_text(name, values);
            if let Some((_, def)) = find(name) {
                check(def, &value)?;
            }
            let name = name_of(name)?;
            // It would end the line.
            if value.contains(['\n', '\r']) {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "parameter value for ALTER SYSTEM must not contain a newline"
                );
            }
            lines.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
            lines.push((name.to_owned(), value));
        }
    }
    write(disk.as_ref(), &lines)
}

/// A setting's name as it is spelled; of one that nobody has defined as it is given.
fn name_of(name: &str) -> Result<&str> {
    match find(name) {
        Some((_, def)) => Ok(def.name),
        None => check_custom_name(name).map(|()| name),
    }
}

fn check(def: &Definition, value: &str) -> Result<()> {
    if def.context == Context::Internal || OF_SESSIONS.contains(&def.name) {
        bail!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{}\" cannot be changed", def.name);
    }
    check_setting(def, value)
}

/// The assignments in the file; none when there is no file.
///
/// # Errors
/// I/O, `F0000`.
pub fn read(disk: &dyn disk::Disk) -> Result<Vec<(String, String)>> {
    let io = |e| Error::io(format!("could not read file \"{AUTO_CONF}\""), e);
    if !disk.exists(AUTO_CONF).map_err(io)? {
        return Ok(Vec::new());
    }
    let file = disk.open(AUTO_CONF, OpenMode::Existing).map_err(io)?;
    let mut bytes = vec![0; usize::try_from(file.len().map_err(io)?).unwrap_or(0)];
    let n = file.read_at(&mut bytes, 0).map_err(io)?;
    bytes.truncate(n);
    let text = String::from_utf8_lossy(&bytes);
    Ok(parse_file(AUTO_CONF, &text)?.into_iter().map(|a| (a.name, a.value)).collect())
}

fn write(disk: &dyn disk::Disk, lines: &[(String, String)]) -> Result<()> {
    let io = |e| Error::io(format!("could not write file \"{AUTO_CONF}\""), e);
    let mut text =
        String::from("# Written by ALTER SYSTEM: changes made by hand are lost at the next one.\n");
    for (name, value) in lines {
        text.push_str(&format!("{name} = {}\n", quote_value(value)));
    }
    let temporary = "postgresql.auto.conf.tmp";
    let file = disk.open(temporary, OpenMode::Create).map_err(io)?;
    file.set_len(0).map_err(io)?;
    file.write_at(text.as_bytes(), 0).map_err(io)?;
    file.sync_data().map_err(io)?;
    disk.rename(temporary, AUTO_CONF).map_err(io)?;
    disk.sync_dir("").map_err(io)
}
