//! Settings that bound what locks take.

use crate::lifecycle::{DATABASE, begin, fresh, options};
use base::settings::Value;
use base::{BlockNumber, OffsetNumber, RelationId, SqlState, Tid};
use engine::{Engine, EngineOptions};
use txn::RowLockMode;

fn with(settings: &[(&str, i64)]) -> EngineOptions {
    let options = options();
    for (name, value) in settings {
        options.settings.set_internal(name, Value::Int(*value));
    }
    options
}

#[test]
fn of_rows() {
    let engine = Engine::open(fresh(), with(&[("ebb.max_row_lock_pages", 1024)])).unwrap();
    let t = begin(&engine);
    let relation = RelationId { database: DATABASE, file_number: 1 };
    let lock = |block| {
        let tid = Tid::new(BlockNumber(block), OffsetNumber(1));
        t.lock_row(relation, tid, RowLockMode::Update)
    };
    (0..1024).for_each(|block| assert!(lock(block).is_ok()));
    let refused = lock(1024).unwrap_err().to_sql_error();
    assert_eq!(refused.state, SqlState::OUT_OF_MEMORY);
    let hint = refused.hint.unwrap();
    assert_eq!(hint, "You might need to increase \"ebb.max_row_lock_pages\".");
}

/// There is room for a million in any case, and for more if so many are asked for.
#[test]
fn of_everything_else() {
    for (each, room) in [(64, 1 << 20), (100_000, 10_000_000)] {
        let settings = [("max_locks_per_transaction", each), ("max_connections", 100)];
        let engine = Engine::open(fresh(), with(&settings)).unwrap();
        assert_eq!(engine.txns.locks().room(), room);
    }
}
