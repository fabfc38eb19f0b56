//! `has_column_privilege` and `has_any_column_privilege`.

use super::names;
use super::privileges::{parse, public_privileges, who};
use crate::acl::column_acls::Columns;
use crate::acl::{self, ALL_OF_COLUMN};
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::model::{CatalogView, Table};
use std::sync::Arc;
use types::args::{oid, text};
use types::{Datum, Env};

/// What of a privilege is held, and what of it may be granted.
type Held = (u32, u32);

/// The table that an argument names or numbers.
fn table(state: &SessionState, rest: &[Datum]) -> Result<Option<Arc<Table>>> {
    let oid = match &rest[0] {
        Datum::Text(name) => names::relation_oid(state, name)?,
        _ => oid(rest, 0)?,
    };
    state.table_by_oid(oid)
}

/// (privilege, with grant option?) of each alternative.
fn wanted(rest: &[Datum]) -> Result<Vec<(u32, bool)>> {
    let written = text(rest, rest.len() - 1)?;
    let wanted = parse(written)?;
    for ((bit, _), word) in wanted.iter().zip(written.split(',')) {
        if bit & ALL_OF_COLUMN == 0 {
            bail!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{}\"", word.trim());
        }
    }
    Ok(wanted)
}

/// What a role may do with the table, and with its columns. PUBLIC is no role.
fn held(state: &SessionState, role: Oid, table: &Table) -> Result<(Held, Columns)> {
    let columns = Columns::of(state, role, table)?;
    if !role.is_valid() {
        return Ok(((public_privileges(table.acl.as_deref(), 0), 0), columns));
    }
    let may_grant = acl::grantable(state, role, table.owner, table.acl.as_deref())?;
    Ok(((acl::table_privileges(state, role, table)?, may_grant), columns))
}

fn any_of(wanted: &[(u32, bool)], (held, may_grant): Held) -> Datum {
    let has = |(bit, option): &(u32, bool)| bit & if *option { may_grant } else { held } != 0;
    Datum::Bool(wanted.iter().any(has))
}

pub(super) fn has_any(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let (state, role, rest) = who(env, a, 2)?;
    let table = table(state, rest)?;
    let wanted = wanted(rest)?;
    let Some(table) = table else { return Ok(Datum::Null) };
    let ((on_all, grantable), columns) = held(state, role, &table)?;
    let (any, any_grantable) = columns.on_any();
    Ok(any_of(&wanted, (on_all | any, grantable | any_grantable)))
}

pub(super) fn has(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let (state, role, rest) = who(env, a, 3)?;
    let table = table(state, rest)?;
    let number = match (&rest[1], &table) {
        (Datum::Text(name), Some(table)) => {
            match table.columns.iter().find(|c| !c.dropped && *c.name == **name) {
                Some(column) => Some(column.number),
                None => match crate::analyse::number_of_system_column(name) {
                    Some(number) => Some(number),
                    None => bail!(
                        UNDEFINED_COLUMN,
                        "column \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                },
            }
        }
        (Datum::Int2(n), Some(table)) => {
            let number = i32::from(*n);
            let there = |c: &engine::catalog::model::Column| c.number == number && !c.dropped;
            ((-6..0).contains(&number) || table.columns.iter().any(there)).then_some(number)
        }
        _ => None,
    };
    let wanted = wanted(rest)?;
    let (Some(table), Some(number)) = (table, number) else { return Ok(Datum::Null) };
    let ((on_all, grantable), columns) = held(state, role, &table)?;
    let (own, own_grantable) = columns.on(number);
    Ok(any_of(&wanted, (on_all | own, grantable | own_grantable)))
}
