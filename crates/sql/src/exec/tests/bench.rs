//! Times of the hot paths: `cargo test --release -p sql --lib bench -- --ignored --nocapture`.

use super::db::{Db, TestEnv};
use crate::exec::{ExecContext, Executor};
use std::time::Instant;
use types::Datum;

#[test]
#[ignore = "a measurement"]
fn bench() {
    let db = Db::new();
    db.create(
        "accounts",
        "aid int4 notnull, bid int4, abalance int4, filler text",
        &["unique aid"],
    );
    let begin = Instant::now();
    let n = 300_000;
    db.run(&format!(
        "insert into accounts select i, 1, 0, repeat('x', 84) from generate_series(1, {n}) i"
    ));
    println!("insert {n}: {:?}", begin.elapsed());
    let txn = db.begin();
    let statement = |sql: &str, loops: i32, params: &dyn Fn(i32) -> Vec<Datum>| {
        let plan = db.plan(sql).unwrap();
        let mut e = Executor::new(plan).unwrap();
        let begin = Instant::now();
        for i in 0..loops {
            let p = params(i);
            let x = ExecContext {
                txn: &txn,
                snapshot: txn.take_snapshot(),
                env: &TestEnv,
                catalog: &db,
                relations: &db,
                cancel: &db.cancel,
                work_mem_bytes: 4 << 20,
                params: &p,
                lock_wait: txn::Wait::FOREVER,
            };
            e.start(&x).unwrap();
            while !e.next_batch(&x, 100).unwrap().is_empty() {}
            if e.affected() > 0 {
                txn.advance_command().unwrap();
            }
        }
        println!("{:?} each: {sql}", begin.elapsed() / loops as u32);
    };
    let key = |i: i32| vec![Datum::Int4((i * 7919) % n + 1)];
    for _ in 0..2 {
        statement("select abalance from accounts where aid = $1", 200_000, &key);
    }
    statement("update accounts set abalance = abalance + 1 where aid = $1", 50_000, &key);
    let none = |_: i32| Vec::new();
    statement("select count(*) from accounts", 3, &none);
    statement("select count(*) from accounts where abalance >= 0", 3, &none);
    statement("select sum(abalance) from accounts", 3, &none);
    statement("select count(*) from accounts a join accounts b on a.aid = b.aid", 2, &none);
    statement("select bid, count(*), sum(abalance) from accounts group by bid", 3, &none);
    statement("select aid from accounts order by abalance, aid limit 10", 3, &none);
    statement(
        "select count(*) from (select aid from accounts order by filler, aid offset 1) s",
        1,
        &none,
    );
}
