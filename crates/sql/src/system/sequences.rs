//! Sequences' functions.

use super::{Bodies, rows, state};
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::model::{CatalogView, RelationKind, Table};
use std::sync::Arc;
use types::Datum;
use types::FunctionBody::{Scalar, Set};
use types::args::{boolean, int8, oid};

const SELECT: u32 = 1;
const UPDATE: u32 = 4;

pub(super) const BODIES: Bodies = &[
    (
        "nextval",
        Scalar(|env, a| {
            let state = state(env)?;
            let sequence = allowed(state, oid(a, 0)?, crate::acl::USAGE | UPDATE)?;
            crate::sequence::next_value(state, sequence).map(Datum::Int8)
        }),
    ),
    (
        "currval",
        Scalar(|env, a| {
            let state = state(env)?;
            let sequence = allowed(state, oid(a, 0)?, crate::acl::USAGE | SELECT)?;
            crate::sequence::current_value(state, sequence).map(Datum::Int8)
        }),
    ),
    (
        "lastval",
        Scalar(|env, _| {
            let state = state(env)?;
            let value = crate::sequence::last_value(state)?;
            allowed(state, state.last_sequence.get(), crate::acl::USAGE | SELECT)?;
            Ok(Datum::Int8(value))
        }),
    ),
    (
        "setval",
        Scalar(|env, a| {
            let state = state(env)?;
            let sequence = allowed(state, oid(a, 0)?, UPDATE)?;
            let called = if a.len() > 2 { boolean(a, 2)? } else { true };
            crate::sequence::set_value(state, sequence, int8(a, 1)?, called).map(Datum::Int8)
        }),
    ),
    (
        "pg_sequence_parameters",
        Set(|env, a| {
            let any = crate::acl::USAGE | SELECT | UPDATE;
            let p =
                crate::sequence::parameters(state(env)?, allowed(state(env)?, oid(a, 0)?, any)?)?;
            Ok(rows(vec![vec![
                Datum::Int8(p.start),
                Datum::Int8(p.min),
                Datum::Int8(p.max),
                Datum::Int8(p.increment),
                Datum::Bool(p.cycle),
                Datum::Int8(p.cache),
                Datum::Oid(p.data_type),
            ]]))
        }),
    ),
    (
        "pg_sequence_last_value",
        Scalar(|env, a| {
            let state = state(env)?;
            let Some(table) = sequence(state, oid(a, 0)?)? else { return Ok(Datum::Null) };
            if !may(state, &table, crate::acl::USAGE | SELECT)? {
                return Ok(Datum::Null);
            }
            let (last, called) = crate::sequence::exact(state, &table)?;
            Ok(if called { Datum::Int8(last) } else { Datum::Null })
        }),
    ),
    (
        "pg_get_sequence_data",
        Set(|env, a| {
            let state = state(env)?;
            let table = sequence(state, oid(a, 0)?)?;
            let readable = match &table {
                Some(table) => may(state, table, SELECT)?,
                None => false,
            };
            let Some(table) = table.filter(|_| readable) else {
                return Ok(rows(vec![vec![Datum::Null, Datum::Null]]));
            };
            let (last, called) = crate::sequence::exact(state, &table)?;
            Ok(rows(vec![vec![Datum::Int8(last), Datum::Bool(called)]]))
        }),
    ),
];

fn sequence(state: &SessionState, oid: Oid) -> Result<Option<Arc<Table>>> {
    Ok(state.table_by_oid(oid)?.filter(|t| t.kind == RelationKind::Sequence))
}

/// The sequence's OID, if the current user has one of the privileges `any_of`.
fn allowed(state: &SessionState, oid: Oid, any_of: u32) -> Result<Oid> {
    let Some(table) = sequence(state, oid)? else { return Ok(oid) };
    if !may(state, &table, any_of)? {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for sequence {}", table.name);
    }
    Ok(oid)
}

/// Has the current user one of the privileges `any_of`?
fn may(state: &SessionState, table: &Table, any_of: u32) -> Result<bool> {
    if state.is_superuser() {
        return Ok(true);
    }
    let role = state.current_user.borrow().oid;
    Ok(crate::acl::table_privileges(state, role, table)? & any_of != 0)
}
