//! pg_freespacemap: the room that the free-space map knows of.

use super::{block_argument, blocks, heap_of, not_supported_for, pages_of, relation, scanner};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Result, SqlError, SqlState, bail};
use engine::catalog::model::{RelationKind, Table};
use std::sync::Arc;
use types::FunctionBody::{Scalar, Set};
use types::args::{int8, oid};
use types::{Datum, Env, oids};

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9945,
        name: "pg_freespace",
        args: &[oids::REGCLASS, oids::INT8],
        result: oids::INT2,
        columns: &[],
        body: Scalar(|env, a| {
            let table = opened(env, a)?;
            if table.storage.is_none() {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("relation \"{}\" does not have storage", table.name),
                )
                .detail(not_supported_for(table.kind))
                .into());
            }
            let block = int8(a, 1)?;
            if !(0..i64::from(u32::MAX)).contains(&block) {
                bail!(INVALID_PARAMETER_VALUE, "invalid block number");
            }
            free(state(env)?, &table, block_argument(block)?)
        }),
    },
    Own {
        oid: 9946,
        name: "pg_freespace",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[("blkno", oids::INT8), ("avail", oids::INT2)],
        body: Set(|env, a| {
            let (state, table) = (state(env)?, opened(env, a)?);
            let Some(pages) = pages_of(state, &table) else { return Ok(rows(Vec::new())) };
            let len = blocks(&pages, Fork::Main)?;
            let mut out = Vec::with_capacity(len as usize);
            for n in 0..len {
                out.push(vec![Datum::Int8(i64::from(n)), free(state, &table, BlockNumber(n))?]);
            }
            Ok(rows(out))
        }),
    },
];

fn opened(env: &dyn Env, a: &[Datum]) -> Result<Arc<Table>> {
    let state = state(env)?;
    scanner(state, "pg_freespace")?;
    relation(state, oid(a, 0)?)
}

/// The free bytes that are known of a page; an index has no free-space map.
fn free(state: &SessionState, table: &Arc<Table>, block: BlockNumber) -> Result<Datum> {
    let has_map = matches!(
        table.kind,
        RelationKind::Table | RelationKind::MaterializedView | RelationKind::Toast
    );
    if !has_map {
        return Ok(Datum::Int2(0));
    }
    let bytes = heap_of(state, table)?.free_space_map().get(block)?;
    Ok(Datum::Int2(i16::try_from(bytes).unwrap_or(i16::MAX)))
}
