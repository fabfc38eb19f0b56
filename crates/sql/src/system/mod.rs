//! What the server tells of itself: system functions, system views, names of objects.
//!
//! # Where to look
//! [`names`]: reg* types. `describe`: `pg_get_*def`. `visible`: `pg_*_is_visible`, schemas. `sizes`: relation
//! and database sizes. `privileges`: `has_*_privilege`; `function_rights`: of functions. `session`: the session, its settings, transaction IDs.
//! `locks`: advisory locks, `pg_locks`, cancelling. `sequences`: `nextval` and company. `activity`,
//! `control`: the control file; `files`: the server's files; `properties`: of indexes, and what may be updated; `statistics`: the counters behind `pg_stat_*`; [`fetched`]: as a transaction has read them; [`reset`]: they begin anew. `restore`: what ANALYZE finds, as it is told. `io`: `pg_stat_io`. `backlog`: `ebb_vacuum_backlog`. `progress`: vacuums under way.
//! [`extensions`]: amcheck, pg_buffercache, pg_stat_statements, pg_visibility, pgstattuple, pg_freespacemap, pageinspect. `views.sql`: the views.
//!
//! # Differs from PostgreSQL
//! Functions keep PostgreSQL's OIDs; the few of our own have OIDs from 9900.

mod activity;
mod backlog;
mod column_privileges;
mod control;
pub(crate) mod describe;
mod extended;
pub mod extensions;
pub mod fetched;
mod files;
mod function_rights;
mod functions;
mod io;
mod locks;
pub mod names;
mod privileges;
mod progress;
mod properties;
mod reg_functions;
pub mod reset;
mod restore;
mod sequences;
mod session;
mod settings;
mod sizes;
mod statistics;
mod visible;

pub(crate) use locks::check_may_terminate;

use crate::session::{SessionEnv, SessionState};
use base::{Oid, Result};
use std::sync::Arc;
use types::registry::{self, RowIter};
use types::{ArrayValue, Datum, Env, FunctionBody, FunctionInfo, FunctionKind, Volatility, oids};

/// Bodies by function name, each for all of PostgreSQL's functions of that name; or of the one with the
/// arguments given: `age(xid)`.
type Bodies = &'static [(&'static str, FunctionBody)];

/// A function of our own, with no row in PostgreSQL's `pg_proc`.
#[derive(Clone, Copy)]
struct Own {
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    result: Oid,
    columns: &'static [(&'static str, Oid)],
    body: FunctionBody,
}

/// Makes all functions of this crate known. Called when a server starts; later calls do nothing.
pub fn register() {
    let mut all = Vec::new();
    for bodies in [
        activity::BODIES,
        control::BODIES,
        describe::BODIES,
        extended::BODIES,
        files::BODIES,
        functions::BODIES,
        properties::BODIES,
        io::BODIES,
        locks::BODIES,
        privileges::BODIES,
        progress::BODIES,
        reset::BODIES,
        restore::BODIES,
        sequences::BODIES,
        session::BODIES,
        sizes::BODIES,
        statistics::BODIES,
        visible::BODIES,
    ] {
        for (name, body) in bodies {
            match name.split_once('(') {
                Some((name, args)) => {
                    all.push(registry::declare(name, &argument_types(args), *body))
                }
                None => all.extend(registry::declare_all(name, *body)),
            }
        }
    }
    let own = [session::OWN, describe::OWN, extended::OWN, statistics::OWN, backlog::OWN].concat();
    for own in own.into_iter().chain(extensions::functions()) {
        let default_values = extensions::default_values(own.name);
        all.push(FunctionInfo {
            oid: Oid(own.oid),
            name: own.name,
            args: own.args,
            arg_names: extensions::argument_names(own.oid, own.name, own.args.len()),
            defaults: u16::try_from(default_values.len()).unwrap_or(0),
            default_values,
            variadic: Oid::INVALID,
            result: own.result,
            columns: own.columns,
            strict: extensions::is_strict(own.name),
            volatility: Volatility::Volatile,
            kind: FunctionKind::Scalar,
            returns_set: extensions::returns_set(&own),
            body: own.body,
        });
    }
    registry::register(all);
}

/// The types in `int4,text)`.
fn argument_types(args: &str) -> Vec<Oid> {
    args.trim_end_matches(')')
        .split(',')
        .filter_map(|name| types::type_by_name(name).map(|t| t.oid))
        .collect()
}

/// The system views, run once by `init` as the superuser.
pub fn script() -> &'static str {
    concat!(include_str!("views.sql"), include_str!("information_schema.sql"))
}

/// The session behind a function's environment.
fn state(env: &dyn Env) -> Result<&SessionState> {
    Ok(&SessionEnv::of(env)?.state)
}

/// Rows that are there already, as a set-returning function gives them.
fn rows(rows: Vec<Vec<Datum>>) -> RowIter {
    Box::new(rows.into_iter().map(Ok))
}

/// A text, or NULL.
fn text_or_null<S: AsRef<str>>(text: Option<S>) -> Datum {
    text.map_or(Datum::Null, |t| Datum::text(t.as_ref()))
}

/// A name[].
fn name_array<S: AsRef<str>>(names: &[S]) -> Datum {
    let elements = names.iter().map(Datum::text).collect();
    Datum::Array(Arc::new(ArrayValue::one_dimension(oids::NAME, elements)))
}

/// A count as int8.
fn int8(n: u64) -> Datum {
    Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A timestamptz of a moment that 0 says has not come.
fn moment(us: i64) -> Datum {
    if us == 0 { Datum::Null } else { Datum::TimestampTz(us) }
}

#[cfg(test)]
mod tests;
