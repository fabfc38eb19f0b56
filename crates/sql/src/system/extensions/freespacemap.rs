//! pg_freespacemap: the room that the free-space map knows of.

use super::{block_argument, blocks, heap_of, relation, scanner};
use crate::system::{Own, rows, state};
use base::{BlockNumber, Fork, Result, bail};
use heap::Heap;
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
            let heap = opened(env, a)?;
            let block = int8(a, 1)?;
            if !(0..i64::from(u32::MAX)).contains(&block) {
                bail!(INVALID_PARAMETER_VALUE, "invalid block number");
            }
            free(&heap, block_argument(block)?)
        }),
    },
    Own {
        oid: 9946,
        name: "pg_freespace",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: &[("blkno", oids::INT8), ("avail", oids::INT2)],
        body: Set(|env, a| {
            let heap = opened(env, a)?;
            let len = blocks(heap.relation(), Fork::Main)?;
            let mut out = Vec::with_capacity(len as usize);
            for n in 0..len {
                out.push(vec![Datum::Int8(i64::from(n)), free(&heap, BlockNumber(n))?]);
            }
            Ok(rows(out))
        }),
    },
];

fn opened(env: &dyn Env, a: &[Datum]) -> Result<Arc<Heap>> {
    let state = state(env)?;
    scanner(state, "pg_freespace")?;
    let table = relation(state, oid(a, 0)?)?;
    if table.storage.is_none() {
        bail!(WRONG_OBJECT_TYPE, "relation \"{}\" does not have storage", table.name);
    }
    heap_of(state, &table)
}

fn free(heap: &Heap, block: BlockNumber) -> Result<Datum> {
    let bytes = heap.free_space_map().get(block)?;
    Ok(Datum::Int2(i16::try_from(bytes).unwrap_or(i16::MAX)))
}
