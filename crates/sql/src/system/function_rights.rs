//! `has_function_privilege`: who may call a function.
//!
//! # Differs from PostgreSQL
//! Nobody grants or revokes EXECUTE: functions are everybody's but for those that [`callers`] knows, each of which asks for
//! its callers' roles itself.

use super::privileges::who;
use crate::acl;
use crate::session::SessionState;
use base::{Oid, Result, bail};
use types::args::{oid, text};
use types::{Datum, Env, oids};

const MONITOR: Oid = Oid(3373);
const READ_ALL_STATS: Oid = Oid(3375);
const STAT_SCAN_TABLES: Oid = Oid(3377);

/// The roles that may call a function which not everybody may, beside superusers.
fn callers(function: &str) -> Option<&'static [Oid]> {
    Some(match function {
        "bt_index_check"
        | "bt_index_parent_check"
        | "gin_index_check"
        | "verify_heapam"
        | "pg_config"
        | "pg_hba_file_rules"
        | "pg_ident_file_mappings"
        | "pg_ls_dir"
        | "pg_promote"
        | "pg_read_binary_file"
        | "pg_read_file"
        | "pg_reload_conf"
        | "pg_rotate_logfile"
        | "pg_show_all_file_settings"
        | "pg_show_replication_origin_status"
        | "pg_stat_file"
        | "pg_stat_have_stats"
        | "pg_stat_reset"
        | "pg_stat_reset_backend_stats"
        | "pg_stat_reset_replication_slot"
        | "pg_stat_reset_shared"
        | "pg_stat_statements_reset"
        | "pg_stat_reset_single_function_counters"
        | "pg_stat_reset_single_table_counters"
        | "pg_stat_reset_slru"
        | "pg_stat_reset_subscription_stats"
        | "pg_wal_replay_pause"
        | "pg_wal_replay_resume" => &[],
        "pg_get_aios" => &[READ_ALL_STATS, MONITOR],
        "pg_current_logfile"
        | "pg_ls_archive_statusdir"
        | "pg_ls_logdir"
        | "pg_ls_logicalmapdir"
        | "pg_ls_logicalsnapdir"
        | "pg_ls_replslotdir"
        | "pg_ls_summariesdir"
        | "pg_ls_tmpdir"
        | "pg_ls_waldir"
        | "pg_buffercache_numa_pages"
        | "pg_buffercache_pages"
        | "pg_buffercache_summary"
        | "pg_buffercache_usage_counts" => &[MONITOR],
        "pg_freespace"
        | "pg_relpages"
        | "pgstatginindex"
        | "pgstathashindex"
        | "pgstatindex"
        | "pgstattuple"
        | "pgstattuple_approx"
        | "pg_check_frozen"
        | "pg_check_visible"
        | "pg_truncate_visibility_map"
        | "pg_visibility"
        | "pg_visibility_map"
        | "pg_visibility_map_summary" => &[STAT_SCAN_TABLES, MONITOR],
        _ => return None,
    })
}

fn name(function: Oid) -> Option<&'static str> {
    let own = || super::extensions::functions().find(|f| f.oid == function.0).map(|f| f.name);
    let known = types::facts::proc(function).map(|p| p.name);
    known.or_else(|| types::registry::function(function).map(|f| f.name)).or_else(own)
}

/// For each alternative in `EXECUTE, EXECUTE WITH GRANT OPTION`: is it the option?
fn alternatives(words: &str) -> Result<Vec<bool>> {
    let option = |word: &str| match word.trim().to_ascii_uppercase().as_str() {
        "EXECUTE" => Ok(false),
        "EXECUTE WITH GRANT OPTION" => Ok(true),
        _ => bail!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{}\"", word.trim()),
    };
    words.split(',').map(option).collect()
}

fn may_call(state: &SessionState, role: Oid, function: &str) -> Result<bool> {
    let Some(roles) = callers(function) else { return Ok(true) };
    Ok(role.is_valid() && acl::roles_of(state, role)?.iter().any(|r| roles.contains(r)))
}

/// `has_function_privilege`
pub(super) fn has_function(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let (state, role, rest) = who(env, a, 2)?;
    let function = match &rest[0] {
        Datum::Text(named) => types::io::text_input(oids::REGPROCEDURE, -1, named, env)?,
        _ => Datum::Oid(oid(rest, 0)?),
    };
    let alternatives = alternatives(text(rest, 1)?)?;
    let Datum::Oid(function) = function else {
        bail!(INTERNAL_ERROR, "a function's OID was expected");
    };
    let Some(name) = name(function) else { return Ok(Datum::Null) };
    let all = role.is_valid() && acl::is_superuser(state, role)?;
    let may = all || may_call(state, role, name)?;
    Ok(Datum::Bool(alternatives.iter().any(|option| if *option { all } else { may })))
}
