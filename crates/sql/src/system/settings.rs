//! The rows of `pg_settings`.
//!
//! # Layout
//! What a setting is by itself is put together once; what it is now is filled in for each look, which may be for one of them only.

use super::text_or_null;
use crate::session::SessionState;
use base::Result;
use base::settings::{Context, DEFINITIONS, Definition, Kind, Source, short};
use std::sync::{Arc, OnceLock};
use types::{ArrayValue, Datum, oids};

/// Columns that say what a setting is now.
const SETTING: usize = 1;
const SOURCE: usize = 8;
const RESET: usize = 13;
const FILE: usize = 14;
const LINE: usize = 15;
const PENDING: usize = 16;

/// Rows as far as they are always the same, with their settings' indexes, in the order in which they are told.
fn lasting() -> &'static [(usize, Vec<Datum>)] {
    static ROWS: OnceLock<Vec<(usize, Vec<Datum>)>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let all = DEFINITIONS.iter().enumerate();
        let mut rows: Vec<_> = all.map(|(index, def)| (index, lasting_row(def))).collect();
        rows.sort_by_cached_key(|(index, _)| DEFINITIONS[*index].name.to_ascii_lowercase());
        rows
    })
}

fn lasting_row(def: &Definition) -> Vec<Datum> {
    let (min, max) = match def.kind {
        Kind::Int(min, max) => (Some(min.to_string()), Some(max.to_string())),
        Kind::Real(min, max) => (Some(short(min)), Some(short(max))),
        _ => (None, None),
    };
    let words = match def.kind {
        Kind::Enum(words) => {
            let words = words.iter().map(Datum::text).collect();
            Datum::Array(Arc::new(ArrayValue::one_dimension(oids::TEXT, words)))
        }
        _ => Datum::Null,
    };
    let boot = def.parse(def.boot).map(|v| def.plain(&v)).unwrap_or_default();
    vec![
        Datum::text(def.name),
        Datum::Null,
        text_or_null(def.unit.name()),
        Datum::text(def.category),
        Datum::text(def.short_desc),
        Datum::Null,
        Datum::text(def.context.name()),
        Datum::text(def.type_name()),
        Datum::Null,
        text_or_null(min),
        text_or_null(max),
        words,
        Datum::text(boot),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Bool(false),
    ]
}

/// All rows that the session's user may see.
///
/// # Errors
/// I/O.
pub(super) fn all(state: &SessionState) -> Result<Vec<Vec<Datum>>> {
    let all = state.may_read_all_settings()?;
    let session = state.settings.borrow();
    let row = |(index, lasting): &(usize, Vec<Datum>), entries: &[base::settings::Entry]| {
        let (def, entry) = (&DEFINITIONS[*index], &entries[*index]);
        let mut row = lasting.clone();
        // An octal one is told as SHOW tells it, but for its defaults.
        row[SETTING] = Datum::text(match session.at(*index) {
            value if def.is_octal() => def.show(value),
            value => def.plain(value),
        });
        let source = session.source_over(entry, *index);
        row[SOURCE] = Datum::text(source.name());
        row[RESET] = Datum::text(def.plain(session.reset_value_over(entry, *index)));
        if let Some((file, line)) = &entry.location
            && all
            && source == Source::ConfigurationFile
        {
            row[FILE] = Datum::text(file);
            row[LINE] = Datum::Int4(i32::try_from(*line).unwrap_or(0));
        }
        row[PENDING] = Datum::Bool(entry.pending_restart && def.context == Context::Postmaster);
        row
    };
    Ok(state.cluster.settings().with_entries(|entries| {
        let listed = lasting().iter().filter(|(index, _)| DEFINITIONS[*index].is_listed_for(all));
        listed.map(|lasting| row(lasting, entries)).collect()
    }))
}
