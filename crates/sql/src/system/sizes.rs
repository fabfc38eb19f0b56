//! How large relations and databases are, and where they are stored.

use super::{Bodies, state, text_or_null};
use crate::session::SessionState;
use base::{Fork, Oid, RelationId, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Table};
use types::Datum;
use types::FunctionBody::Scalar;
use types::args::{oid, text};

const PAGE_BYTES: i64 = 8192;

pub(super) const BODIES: Bodies = &[
    (
        "pg_relation_size",
        Scalar(|env, a| {
            let name = if a.len() > 1 { text(a, 1)? } else { "main" };
            let Some(fork) = Fork::ALL.into_iter().find(|f| f.name() == name) else {
                return Err(base::SqlError::new(
                    base::SqlState::INVALID_PARAMETER_VALUE,
                    "invalid fork name",
                )
                .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")
                .into());
            };
            of_table(env, a, |state, table| fork_size(state, table, fork))
        }),
    ),
    ("pg_table_size", Scalar(|env, a| of_table(env, a, table_size))),
    ("pg_indexes_size", Scalar(|env, a| of_table(env, a, indexes_size))),
    (
        "pg_total_relation_size",
        Scalar(|env, a| {
            of_table(env, a, |state, table| {
                Ok(table_size(state, table)? + indexes_size(state, table)?)
            })
        }),
    ),
    (
        "pg_database_size",
        Scalar(|env, a| {
            let state = state(env)?;
            let oid = match &a[0] {
                Datum::Text(name) => {
                    let txn = state.txn()?;
                    let key = [("datname", Datum::Text(name.clone()))];
                    match state.catalog.rows(&txn).find("pg_database", &key)?.first() {
                        Some(row) => row.oid("oid"),
                        None => {
                            bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist")
                        }
                    }
                }
                _ => {
                    let oid = oid(a, 0)?;
                    if super::names::row_by_oid(state, "pg_database", "oid", oid)?.is_none() {
                        return Ok(Datum::Null);
                    }
                    oid
                }
            };
            check_may_measure(state, oid)?;
            folder_size(state, oid).map(Datum::Int8)
        }),
    ),
    (
        "pg_tablespace_size",
        Scalar(|env, a| {
            let state = state(env)?;
            let global = match &a[0] {
                Datum::Text(name) => match name.as_str() {
                    "pg_default" => false,
                    "pg_global" => true,
                    name => bail!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist"),
                },
                _ => oid(a, 0)? == engine::catalog::bootstrap::GLOBAL_TABLESPACE,
            };
            if global {
                return folder_size(state, Oid::INVALID).map(Datum::Int8);
            }
            let mut total = 0;
            for (database, _) in engine::storage::database_folders(&*state.cluster.engine().disk)? {
                if database.is_valid() {
                    total += folder_size(state, database)?;
                }
            }
            Ok(Datum::Int8(total))
        }),
    ),
    ("pg_tablespace_location", Scalar(|_, _| Ok(Datum::text("")))),
    (
        "pg_tablespace_databases",
        types::FunctionBody::Set(|env, a| {
            let state = state(env)?;
            if oid(a, 0)? != engine::catalog::bootstrap::DEFAULT_TABLESPACE {
                return Ok(super::rows(Vec::new()));
            }
            let folders = engine::storage::database_folders(&*state.cluster.engine().disk)?;
            let oids = folders.into_iter().filter(|(oid, _)| oid.is_valid());
            Ok(super::rows(oids.map(|(oid, _)| vec![Datum::Oid(oid)]).collect()))
        }),
    ),
    (
        "pg_relation_filenode",
        Scalar(|env, a| {
            let state = state(env)?;
            let id = state.catalog.storage_of(&*state.txn()?, oid(a, 0)?)?;
            Ok(id.map_or(Datum::Null, |id| Datum::Oid(Oid(id.file_number))))
        }),
    ),
    (
        "pg_filenode_relation",
        Scalar(|env, a| {
            let state = state(env)?;
            let txn = state.txn()?;
            let key = [("relfilenode", Datum::Oid(oid(a, 1)?))];
            let found = state.catalog.rows(&txn).find("pg_class", &key)?;
            Ok(found.first().map_or(Datum::Null, |r| Datum::Oid(r.oid("oid"))))
        }),
    ),
    (
        "pg_relation_filepath",
        Scalar(|env, a| {
            let state = state(env)?;
            let id = state.catalog.storage_of(&*state.txn()?, oid(a, 0)?)?;
            Ok(text_or_null(id.map(path)))
        }),
    ),
];

fn path(id: RelationId) -> String {
    if id.database.is_valid() {
        format!("base/{}/{}", id.database, id.file_number)
    } else {
        format!("global/{}", id.file_number)
    }
}

/// `f` of the relation that the first argument names; NULL when it is gone.
fn of_table(
    env: &dyn types::Env,
    a: &[Datum],
    f: impl FnOnce(&SessionState, &Table) -> Result<i64>,
) -> Result<Datum> {
    let state = state(env)?;
    match state.table_by_oid(oid(a, 0)?)? {
        Some(table) => f(state, &table).map(Datum::Int8),
        None => Ok(Datum::Null),
    }
}

/// The bytes of one fork; none when the relation is not stored.
fn fork_size(state: &SessionState, table: &Table, fork: Fork) -> Result<i64> {
    let Some(id) = table.storage else { return Ok(0) };
    let relation = state.cluster.storage().open(id, table.persistence);
    if !relation.exists(fork)? {
        return Ok(0);
    }
    Ok(i64::from(relation.len_blocks(fork)?.0) * PAGE_BYTES)
}

fn all_forks(state: &SessionState, table: &Table) -> Result<i64> {
    Fork::ALL.into_iter().map(|fork| fork_size(state, table, fork)).sum()
}

/// The table itself, its maps, its TOAST table and that one's index.
fn table_size(state: &SessionState, table: &Table) -> Result<i64> {
    let mut total = all_forks(state, table)?;
    if table.toast.is_valid()
        && let Some(toast) = state.table_by_oid(table.toast)?
    {
        total += all_forks(state, &toast)? + indexes_size(state, &toast)?;
    }
    Ok(total)
}

fn indexes_size(state: &SessionState, table: &Table) -> Result<i64> {
    let mut total = 0;
    for index in &table.indexes {
        let relation = state.cluster.storage().open(index.storage, index.persistence);
        for fork in Fork::ALL {
            if relation.exists(fork)? {
                total += i64::from(relation.len_blocks(fork)?.0) * PAGE_BYTES;
            }
        }
    }
    Ok(total)
}

/// Who may connect to a database may know its size, and who may read all statistics.
fn check_may_measure(state: &SessionState, database: Oid) -> Result<()> {
    const READ_ALL_STATS: Oid = Oid(3375);
    let me = state.current_user.borrow().oid;
    if state.is_superuser() || crate::acl::roles_of(state, me)?.contains(&READ_ALL_STATS) {
        return Ok(());
    }
    let Some(row) = super::names::row_by_oid(state, "pg_database", "oid", database)? else {
        return Ok(());
    };
    if !crate::acl::may_connect(state, me, &row)? {
        let name = row.text("datname");
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for database {name}");
    }
    Ok(())
}

/// The bytes of all files of a database; of the shared ones for no database.
fn folder_size(state: &SessionState, database: Oid) -> Result<i64> {
    let disk = &state.cluster.engine().disk;
    let folder = if database.is_valid() { format!("base/{database}") } else { "global".to_owned() };
    let failed = |e| base::Error::io(format!("could not read directory \"{folder}\""), e);
    // What VACUUM has cut off counts no more, though files may be longer for a moment.
    let cuts: std::collections::HashMap<String, u32> = state
        .cluster
        .engine()
        .pool
        .pending_cut_list()
        .into_iter()
        .map(|(id, fork, len)| (format!("{id}{}", fork.suffix()), len.0))
        .collect();
    let mut total = 0;
    for name in disk.list(&folder).map_err(failed)? {
        state.check_cancel()?;
        // A file may go while we look.
        let path = format!("{folder}/{name}");
        if let Ok(file) = disk.open(&path, disk::OpenMode::Existing)
            && let Ok(len) = file.len()
        {
            let cut_to =
                cuts.get(&path).map_or(u64::MAX, |n| u64::from(*n) * PAGE_BYTES.unsigned_abs());
            total += i64::try_from(len.min(cut_to)).unwrap_or(0);
        }
    }
    Ok(total)
}
