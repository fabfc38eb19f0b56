//! Storage parameters (`reloptions`) of tables, their TOAST tables and indexes: which there are, and what they take.
//!
//! # Differs from PostgreSQL
//! `autovacuum_freeze_max_age` starts at 1000, so that tests can reach it.

use crate::parse::utility::UtilityOption;
use base::{Result, SqlError, SqlState, bail};
use engine::catalog::options::RelationOptions;
use types::io::parse_bool;

/// Parameters by name, as texts.
pub type StorageOptions = RelationOptions;

/// What a parameter takes.
#[derive(Clone, Copy)]
enum Takes {
    Bool,
    Int(i64, i64),
    Real(f64, f64),
    /// `on`, `off`, their other spellings, and `auto`.
    Cleanup,
    /// `local`, `cascaded`.
    Check,
}
use Takes::{Bool, Check, Cleanup, Int, Real};

/// What has a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Tables.
    Table,
    /// Tables and TOAST tables.
    Both,
    /// B-trees.
    Index,
    /// Tables and B-trees.
    TableAndIndex,
    /// Columns.
    Column,
    /// Views.
    View,
}

impl Of {
    fn has(self, relation: Relation) -> bool {
        match relation {
            Relation::Table => !matches!(self, Of::Index | Of::Column | Of::View),
            Relation::Toast => self == Of::Both,
            Relation::Index => matches!(self, Of::Index | Of::TableAndIndex),
            Relation::Column => self == Of::Column,
            Relation::View => self == Of::View,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Table,
    Toast,
    Index,
    Column,
    View,
}

const MAX: i64 = i32::MAX as i64;

const PARAMETERS: &[(&str, Of, Takes)] = &[
    ("fillfactor", Of::TableAndIndex, Int(10, 100)),
    ("deduplicate_items", Of::Index, Bool),
    // Accepted for compatibility, as PostgreSQL does.
    ("vacuum_cleanup_index_scale_factor", Of::Index, Real(0.0, 1e10)),
    ("security_barrier", Of::View, Bool),
    ("security_invoker", Of::View, Bool),
    ("check_option", Of::View, Check),
    ("n_distinct", Of::Column, Real(-1.0, f64::MAX)),
    ("n_distinct_inherited", Of::Column, Real(-1.0, f64::MAX)),
    ("toast_tuple_target", Of::Table, Int(128, 8160)),
    ("parallel_workers", Of::Table, Int(0, 1024)),
    ("user_catalog_table", Of::Table, Bool),
    ("autovacuum_enabled", Of::Both, Bool),
    ("autovacuum_vacuum_threshold", Of::Both, Int(0, MAX)),
    ("autovacuum_vacuum_max_threshold", Of::Both, Int(-1, MAX)),
    ("autovacuum_vacuum_scale_factor", Of::Both, Real(0.0, 100.0)),
    ("autovacuum_vacuum_insert_threshold", Of::Both, Int(-1, MAX)),
    ("autovacuum_vacuum_insert_scale_factor", Of::Both, Real(0.0, 100.0)),
    ("autovacuum_analyze_threshold", Of::Table, Int(0, MAX)),
    ("autovacuum_analyze_scale_factor", Of::Table, Real(0.0, 100.0)),
    ("autovacuum_vacuum_cost_delay", Of::Both, Real(0.0, 100.0)),
    ("autovacuum_vacuum_cost_limit", Of::Both, Int(1, 10_000)),
    ("autovacuum_freeze_min_age", Of::Both, Int(0, 1_000_000_000)),
    ("autovacuum_freeze_max_age", Of::Both, Int(1000, 2_000_000_000)),
    ("autovacuum_freeze_table_age", Of::Both, Int(0, 2_000_000_000)),
    ("autovacuum_multixact_freeze_min_age", Of::Both, Int(0, 1_000_000_000)),
    ("autovacuum_multixact_freeze_max_age", Of::Both, Int(10_000, 2_000_000_000)),
    ("autovacuum_multixact_freeze_table_age", Of::Both, Int(0, 2_000_000_000)),
    ("log_autovacuum_min_duration", Of::Both, Int(-1, MAX)),
    ("vacuum_index_cleanup", Of::Both, Cleanup),
    ("vacuum_truncate", Of::Both, Bool),
    ("vacuum_latency_target", Of::Both, Real(0.0, 3_600_000.0)),
    ("vacuum_max_eager_freeze_failure_rate", Of::Both, Real(0.0, 1.0)),
];

/// Storage parameters of a table: its own, and those of its TOAST table.
///
/// # Errors
/// `22023` for an unknown one, one given twice, or a value out of range.
pub fn table_options(options: &[UtilityOption]) -> Result<(StorageOptions, StorageOptions)> {
    let (mut own, mut toast) = (StorageOptions::new(), StorageOptions::new());
    for option in options {
        let (relation, name, into) = match option.name.split_once('.') {
            Some(("toast", name)) => (Relation::Toast, name, &mut toast),
            Some((namespace, _)) => {
                bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter namespace \"{namespace}\"")
            }
            None => (Relation::Table, option.name.as_str(), &mut own),
        };
        if name == "oids" && relation == Relation::Table {
            if option.boolean()? {
                bail!(FEATURE_NOT_SUPPORTED, "tables declared WITH OIDS are not supported");
            }
            continue;
        }
        put(relation, name, option, into)?;
    }
    Ok((own, toast))
}

/// Options of a view.
///
/// # Errors
/// As [`table_options`].
pub fn view_options(options: &[UtilityOption]) -> Result<StorageOptions> {
    plain_options(Relation::View, options)
}

/// Storage parameters of an index.
///
/// # Errors
/// As [`table_options`].
pub fn index_options(options: &[UtilityOption]) -> Result<StorageOptions> {
    plain_options(Relation::Index, options)
}

fn plain_options(of: Relation, options: &[UtilityOption]) -> Result<StorageOptions> {
    let mut out = StorageOptions::new();
    for option in options {
        if let Some((namespace, _)) = option.name.split_once('.') {
            bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter namespace \"{namespace}\"");
        }
        put(of, &option.name, option, &mut out)?;
    }
    Ok(out)
}

/// Options of a column.
///
/// # Errors
/// As [`table_options`].
pub fn column_options(options: &[UtilityOption]) -> Result<StorageOptions> {
    let mut out = StorageOptions::new();
    for option in options {
        put(Relation::Column, &option.name, option, &mut out)?;
    }
    Ok(out)
}

/// The names that RESET takes away.
///
/// # Errors
/// `42601` when one comes with a value.
pub fn reset_names(options: &[UtilityOption]) -> Result<Vec<String>> {
    if options.iter().any(|o| o.value.is_some()) {
        bail!(SYNTAX_ERROR, "RESET must not include values for parameters");
    }
    Ok(options.iter().map(|o| o.name.clone()).collect())
}

fn put(
    relation: Relation,
    name: &str,
    option: &UtilityOption,
    into: &mut StorageOptions,
) -> Result<()> {
    let known = PARAMETERS.iter().find(|(n, of, _)| *n == name && of.has(relation));
    let Some((_, _, takes)) = known else {
        bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\"");
    };
    let text = option.storage_text();
    check(name, &text, *takes)?;
    if into.insert(name.to_owned(), text).is_some() {
        bail!(INVALID_PARAMETER_VALUE, "parameter \"{name}\" specified more than once");
    }
    Ok(())
}

fn out_of_bounds(name: &str, text: &str, valid: String) -> base::Error {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("value {text} out of bounds for option \"{name}\""),
    )
    .detail(valid)
    .into()
}

fn check(name: &str, text: &str, takes: Takes) -> Result<()> {
    match takes {
        Bool => {
            if parse_bool(text).is_none() {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for boolean option \"{name}\": {text}"
                );
            }
        }
        Int(min, max) => {
            // As PostgreSQL, which rounds (70.5 is a whole number here) and has no number above its integers.
            let value = text.trim().parse::<f64>().ok().map(f64::round_ties_even);
            let Some(value) = value.filter(|v| v.abs() <= f64::from(i32::MAX)) else {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for integer option \"{name}\": {text}"
                );
            };
            #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
            if !(min as f64..=max as f64).contains(&value) {
                let valid = format!("Valid values are between \"{min}\" and \"{max}\".");
                return Err(out_of_bounds(name, text, valid));
            }
        }
        Real(min, max) => {
            let Ok(value) = text.trim().parse::<f64>() else {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for floating point option \"{name}\": {text}"
                );
            };
            if !(min..=max).contains(&value) {
                let valid = format!("Valid values are between \"{min:.6}\" and \"{max:.6}\".");
                return Err(out_of_bounds(name, text, valid));
            }
        }
        Cleanup | Check => {
            let (known, valid): (&[&str], _) = match takes {
                Cleanup => (
                    &["auto", "on", "off", "true", "false", "yes", "no", "1", "0"],
                    "Valid values are \"on\", \"off\", and \"auto\".",
                ),
                _ => (&["local", "cascaded"], "Valid values are \"local\" and \"cascaded\"."),
            };
            if !known.contains(&text.to_ascii_lowercase().as_str()) {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid value for enum option \"{name}\": {text}"),
                )
                .detail(valid)
                .into());
            }
        }
    }
    Ok(())
}
