//! INSERT, UPDATE, DELETE, locks and constraints.

use super::db::Db;
use engine::catalog::model::{Check, ForeignKey, KeyTriggers, ReferentialAction};
use std::sync::Arc;

#[test]
fn rows_change() {
    let db = Db::new();
    db.create("t", "a int4 notnull, b text, c int8", &["unique a", "b"]);
    assert_eq!(db.run("insert into t values (1, 'x', 10), (2, 'y', 20), (3, null, null)"), "3");
    assert_eq!(
        db.run("insert into t values (1, 'z', 0)"),
        "23505 duplicate key value violates unique constraint \"t_a_idx\" / Key (a)=(1) already exists."
    );
    assert_eq!(
        db.run("insert into t values (null, 'z', 0)"),
        "23502 null value in column \"a\" of relation \"t\" violates not-null constraint / Failing row contains (null, z, 0)."
    );
    assert_eq!(db.run("update t set c = c + 1 where a = 2 returning a, c"), "2|21");
    assert_eq!(db.run("update t set a = a + 10"), "3");
    assert_eq!(db.run("select a, b, c from t order by a"), "11|x|10\n12|y|21\n13|~|~");
    assert_eq!(db.run("select a from t where b = 'y'"), "12");
    assert_eq!(db.run("delete from t where a = 11 returning *"), "11|x|10");
    assert_eq!(db.run("select count(*) from t"), "2");
    assert_eq!(db.run("insert into t values (12, 'q', 1) on conflict (a) do nothing"), "0");
    assert_eq!(
        db.run("insert into t values (12, 'q', 1), (20, 'n', 2) on conflict (a) do update set b = excluded.b, c = t.c + excluded.c returning a, b, c"),
        "12|q|22\n20|n|2"
    );
    assert_eq!(
        db.run(
            "insert into t values (30, 'q', 1), (30, 'n', 2) on conflict (a) do update set b = 'w'"
        ),
        "21000 ON CONFLICT DO UPDATE command cannot affect row a second time"
    );
    assert_eq!(
        db.run(
            "update t set b = v.b from (values (12, 'one'), (13, 'two')) v(a, b) where t.a = v.a"
        ),
        "2"
    );
    assert_eq!(db.run("delete from t using (values (13)) v(a) where t.a = v.a"), "1");
    assert_eq!(db.run("select a, b from t order by a"), "12|one\n20|n");
    assert_eq!(db.run("with d as (delete from t where a = 20 returning a) select * from d"), "20");
    assert_eq!(db.run("with i as (insert into t values (40, 'cte', 1)) select 1"), "1");
    assert_eq!(db.run("select a from t for update"), "12\n40");
    assert_eq!(
        db.run("update t set c = (select count(*) from t x) where a in (select a from t)"),
        "2"
    );
    assert_eq!(db.run("select a, c from t order by a"), "12|2\n40|2");
    assert_eq!(db.run("insert into t select a + 100, b, c from t"), "2");
    assert_eq!(db.run("select count(*) from t"), "4");
}

#[test]
fn checks_and_foreign_keys() {
    let db = Db::new();
    db.create("p", "id int4 notnull, n int4", &["unique id"]);
    db.create("c", "id int4 notnull, pid int4", &["unique id", "pid"]);
    let plan = db.plan("select 1 from p where n > 0").unwrap();
    drop(plan);
    let (p, c) = (db.tables.borrow()["p"].clone(), db.tables.borrow()["c"].clone());
    let key = |on_delete, on_update| {
        Arc::new(ForeignKey {
            oid: base::Oid(30_000),
            name: "c_pid_fkey".to_owned(),
            table: c.oid,
            columns: vec![2],
            referenced_table: p.oid,
            referenced_columns: vec![1],
            referenced_index: p.indexes[0].oid,
            on_update,
            on_delete,
            on_delete_columns: Vec::new(),
            match_full: false,
            deferrable: false,
            deferred: false,
            validated: true,
            enforced: true,
            operators: vec![96],
            triggers: KeyTriggers::default(),
        })
    };
    let set = |k: &Arc<ForeignKey>| {
        db.alter("c", |t| t.foreign_keys = vec![k.clone()]);
        db.alter("p", |t| t.referenced_by = vec![k.clone()]);
    };
    set(&key(ReferentialAction::NoAction, ReferentialAction::NoAction));
    db.alter("p", |t| {
        let e = expr::Expr::Call {
            function: 147,
            args: vec![
                expr::Expr::Var {
                    levels_up: 0,
                    rte: 0,
                    column: 2,
                    ty: expr::TypeRef::of(types::oids::INT4),
                },
                expr::Expr::Const(expr::Constant {
                    ty: expr::TypeRef::of(types::oids::INT4),
                    value: types::Datum::Int4(0),
                }),
            ],
            arg_types: vec![expr::TypeRef::of(types::oids::INT4); 2],
            ty: expr::TypeRef::of(types::oids::BOOL),
            operator: 521,
            form: expr::tree::CallForm::Operator,
        };
        t.checks = vec![Check {
            oid: base::Oid(1),
            name: "p_n_check".to_owned(),
            expr: Arc::new(e),
            validated: true,
            no_inherit: false,
            enforced: true,
        }];
    });
    assert_eq!(db.run("insert into p values (1, 1), (2, 2), (3, null)"), "3");
    assert_eq!(
        db.run("insert into p values (4, 0)"),
        "23514 new row for relation \"p\" violates check constraint \"p_n_check\" / Failing row contains (4, 0)."
    );
    assert_eq!(db.run("insert into c values (1, 1), (2, null)"), "2");
    assert_eq!(
        db.run("insert into c values (3, 9)"),
        "23503 insert or update on table \"c\" violates foreign key constraint \"c_pid_fkey\" / Key (pid)=(9) is not present in table \"p\"."
    );
    assert_eq!(
        db.run("delete from p where id = 1"),
        "23503 update or delete on table \"p\" violates foreign key constraint \"c_pid_fkey\" on table \"c\" / Key (id)=(1) is still referenced from table \"c\"."
    );
    assert_eq!(db.run("delete from p where id = 2"), "1");
    set(&key(ReferentialAction::Cascade, ReferentialAction::Cascade));
    assert_eq!(db.run("update p set id = 7 where id = 1"), "1");
    assert_eq!(db.run("select * from c order by id"), "1|7\n2|~");
    assert_eq!(db.run("delete from p where id = 7"), "1");
    assert_eq!(db.run("select * from c order by id"), "2|~");
    set(&key(ReferentialAction::SetNull, ReferentialAction::SetNull));
    assert_eq!(db.run("insert into c values (5, 3)"), "1");
    assert_eq!(db.run("delete from p where id = 3"), "1");
    assert_eq!(db.run("select * from c order by id"), "2|~\n5|~");
}

#[test]
fn concurrent_updates_are_followed() {
    let db = Db::new();
    db.create("t", "a int4 notnull, n int4", &["unique a"]);
    db.run("insert into t values (1, 0), (2, 0)");
    // A statement whose snapshot is older than a committed update sees the new version again.
    let one = db.begin();
    let two = db.begin();
    db.execute(&one, "update t set n = n + 1 where a = 1", &[]).unwrap();
    std::thread::scope(|s| {
        let db = &db;
        let engine = db.engine.clone();
        let _ = engine;
        let _ = s;
        let _ = two;
        one.commit(txn::CommitExtras::default()).unwrap();
    });
    assert_eq!(db.run("update t set n = n + 1 where a = 1"), "1");
    assert_eq!(db.run("select n from t where a = 1"), "2");
    let locker = db.begin();
    db.execute(&locker, "select * from t where a = 1 for update", &[]).unwrap();
    assert_eq!(db.run("select a from t for update skip locked"), "2");
    assert_eq!(
        db.run("select a from t where a = 1 for update nowait"),
        "55P03 could not obtain lock on row in relation \"t\""
    );
    locker.abort().unwrap();
}

/// Two sessions add to one row in turn, each statement waiting for the other's transaction.
#[test]
fn no_update_is_lost_between_sessions() {
    let db = Db::new();
    db.create("t", "a int4 notnull, n int4", &["unique a"]);
    db.run("insert into t values (1, 0)");
    let table = db.tables.borrow()["t"].clone();
    let engine = db.engine.clone();
    let rounds = 40;
    std::thread::scope(|s| {
        for _ in 0..3 {
            let (engine, table) = (engine.clone(), table.clone());
            s.spawn(move || {
                let db = Db::over(engine, table);
                for _ in 0..rounds {
                    assert_eq!(db.run("update t set n = n + 1 where a = 1 and n >= 0"), "1");
                }
            });
        }
    });
    assert_eq!(db.run("select n from t"), (3 * rounds).to_string());
}

/// An execution of a prepared plan sees what was committed since the last one, also where rows are kept.
#[test]
fn an_executor_runs_again() {
    use crate::exec::{ExecContext, Executor};
    let db = Db::new();
    db.create("t", "a int4 notnull, n int4", &["unique a"]);
    db.run("insert into t values (1, 10), (2, 20)");
    db.settings.borrow_mut().enable_hashjoin = false;
    db.settings.borrow_mut().enable_mergejoin = false;
    db.settings.borrow_mut().enable_indexscan = false;
    db.settings.borrow_mut().enable_indexonlyscan = false;
    let plan = db.plan("select count(*) from t x join t y on x.n < y.n").unwrap();
    let mut e = Executor::new(plan).unwrap();
    for want in [1, 3, 6] {
        let txn = db.begin();
        let x = ExecContext {
            txn: &txn,
            snapshot: txn.take_snapshot(),
            env: &super::db::TestEnv,
            catalog: &db,
            relations: &db,
            cancel: &db.cancel,
            work_mem_bytes: 1 << 20,
            hash_mem_bytes: (1 << 20) * 2,
            params: &[],
        };
        e.start(&x).unwrap();
        let b = e.next_batch(&x, 10).unwrap();
        assert!(matches!(b.row(0)[0], types::Datum::Int8(n) if n == want), "{:?}", b.row(0));
        assert!(e.next_batch(&x, 10).unwrap().is_empty());
        drop(x);
        txn.commit(txn::CommitExtras::default()).unwrap();
        db.run(&format!("insert into t values ({}, {})", want + 2, want * 100));
    }
}
