//! pg_prewarm: reads a relation's pages into the pool.
//!
//! # Differs from PostgreSQL
//! There is no autoprewarm. A prefetch is a read here, whose page the system keeps.

use super::{blocks, not_supported_for, pages_of, relation};
use crate::system::{Own, state};
use base::{BlockNumber, Fork, Result, SqlError, SqlState, bail};
use buffer::Strategy;
use engine::catalog::model::RelationKind;
use types::FunctionBody::Scalar;
use types::args::{int8, is_null, oid, text};
use types::{Datum, Env, oids};

pub(super) const FUNCTIONS: &[Own] = &[Own {
    oid: 9996,
    name: "pg_prewarm",
    args: &[oids::REGCLASS, oids::TEXT, oids::TEXT, oids::INT8, oids::INT8],
    result: oids::INT8,
    columns: &[],
    body: Scalar(prewarm),
}];

/// What is left out.
pub(super) fn defaults() -> &'static [Datum] {
    static DEFAULTS: std::sync::OnceLock<[Datum; 4]> = std::sync::OnceLock::new();
    DEFAULTS.get_or_init(|| [Datum::text("buffer"), Datum::text("main"), Datum::Null, Datum::Null])
}

fn prewarm(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    for (at, what) in [(0, "relation"), (1, "prewarm type"), (2, "relation fork")] {
        if is_null(a, at) {
            bail!(INVALID_PARAMETER_VALUE, "{what} cannot be null");
        }
    }
    let strategy = match text(a, 1)? {
        "buffer" => Strategy::Normal,
        "prefetch" | "read" => Strategy::bulk_read(&state.cluster.engine().pool),
        _ => {
            let hint = "Valid prewarm types are \"prefetch\", \"read\", and \"buffer\".";
            let e = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid prewarm type");
            return Err(e.hint(hint).into());
        }
    };
    let fork = text(a, 2)?;
    let Some(fork) = Fork::ALL.into_iter().find(|f| f.name() == fork) else {
        let e = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name");
        return Err(e.hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".").into());
    };
    let table = relation(state, oid(a, 0)?)?;
    let checked = match table.kind {
        RelationKind::Index => crate::system::restore::table_of_index(state, &table)?,
        _ => table.clone(),
    };
    let me = state.current_user.borrow().oid;
    crate::acl::check_table(state, &checked, crate::acl::SELECT, me)?;
    let Some(rel) = pages_of(state, &table) else {
        let message = format!("relation \"{}\" does not have storage", table.name);
        let e = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
        return Err(e.detail(not_supported_for(table.kind)).into());
    };
    if !rel.exists(fork)? {
        bail!(INVALID_PARAMETER_VALUE, "fork \"{}\" does not exist for this relation", fork.name());
    }
    let len = i64::from(blocks(&rel, fork)?);
    let bound = |at: usize, which: &str, none: i64| -> Result<i64> {
        if is_null(a, at) {
            return Ok(none);
        }
        match int8(a, at)? {
            n if (0..len).contains(&n) => Ok(n),
            _ => bail!(
                INVALID_PARAMETER_VALUE,
                "{which} block number must be between 0 and {}",
                len - 1
            ),
        }
    };
    let (first, last) = (bound(3, "starting", 0)?, bound(4, "ending", len - 1)?);
    let mut strategy = strategy;
    let mut read = 0;
    for n in first..=last {
        state.check_cancel()?;
        let block = BlockNumber(u32::try_from(n).unwrap_or(u32::MAX));
        if rel.try_pin(fork, block, &mut strategy)?.is_some() {
            read += 1;
        }
    }
    Ok(Datum::Int8(read))
}
