//! MERGE over the wire: command tags, parameters whose types it settles, what drivers ask of it, and sessions side by side.

use crate::support::server;
use lab::client::{Batch, Client, Event};

fn tables(client: &mut Client) {
    client.run("CREATE TABLE t (k int PRIMARY KEY, v bigint)").unwrap();
    client.run("INSERT INTO t VALUES (1, 10), (2, 20)").unwrap();
}

const UPSERT: &str = "MERGE INTO t USING (VALUES ($1::int)) x (k) ON t.k = x.k WHEN MATCHED AND $2 < 0 THEN DELETE \
    WHEN MATCHED THEN UPDATE SET v = t.v + $2 WHEN NOT MATCHED THEN INSERT VALUES (x.k, $2)";

#[test]
fn tags_tell_how_many_rows_were_changed() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    tables(&mut client);
    let merge = |rest: &str| {
        format!("MERGE INTO t USING (VALUES (1), (2), (3)) x (k) ON t.k = x.k WHEN {rest}")
    };
    let outcome = client
        .run(&merge("MATCHED AND t.k = 1 THEN DO NOTHING WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x.k, 0)"))
        .unwrap();
    assert_eq!(outcome.tags(), ["MERGE 2"]);
    let outcome = client.run(&merge("MATCHED THEN DO NOTHING")).unwrap();
    assert_eq!(outcome.tags(), ["MERGE 0"]);
    let outcome = client.run(&merge("MATCHED THEN UPDATE SET v = 5 RETURNING t.k")).unwrap();
    assert_eq!((outcome.tags().as_slice(), outcome.rows().len()), (["MERGE 2"].as_slice(), 2));
    let with =
        format!("WITH m AS ({} RETURNING 1) SELECT count(*) FROM m", merge("MATCHED THEN DELETE"));
    assert_eq!(client.value(&with).unwrap(), "2");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "0");
}

#[test]
fn a_prepared_merge_is_bound_again_and_again() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    tables(&mut client);
    let sql = format!("{UPSERT} RETURNING merge_action(), v");
    let mut batch = Batch::default();
    batch.parse("s", &sql, &[]).describe_statement("s").sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert!(outcome.events.contains(&Event::Parameters(vec![23, 23])), "{outcome:?}");
    let mut batch = Batch::default();
    for (k, v) in [("1", "5"), ("9", "7"), ("9", "1"), ("1", "-1"), ("1", "-1")] {
        let values = [Some(k.as_bytes()), Some(v.as_bytes())];
        batch.bind("", "s", &[], &values, &[]).execute("", 0);
    }
    batch.sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.error(), None);
    assert_eq!(outcome.tags(), ["MERGE 1"; 5]);
    let rows: Vec<String> = outcome
        .rows()
        .iter()
        .map(|r| {
            let fields = r.iter().map(|f| f.as_deref().unwrap_or("~").to_owned());
            fields.collect::<Vec<_>>().join("|")
        })
        .collect();
    assert_eq!(rows, ["UPDATE|15", "INSERT|7", "UPDATE|8", "DELETE|15", "INSERT|-1"]);
}

/// Sessions that merge the same few rows at once: each change is made to the row as the one before left it, and none is lost.
#[test]
fn no_update_of_many_sessions_is_lost() {
    const SESSIONS: usize = 4;
    const ROUNDS: usize = 60;
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v bigint, n int)").unwrap();
    client.run("INSERT INTO t SELECT g, 0, 0 FROM generate_series(1, 3) g").unwrap();
    let merge = "MERGE INTO t USING (VALUES (1), (2), (3)) x (k) ON t.k = x.k WHEN MATCHED AND t.v % 2 = 0 THEN \
        UPDATE SET v = t.v + 1, n = t.n + 1 WHEN MATCHED THEN UPDATE SET v = t.v + 1 WHEN NOT MATCHED THEN INSERT VALUES (x.k, -1, -1)";
    std::thread::scope(|scope| {
        for _ in 0..SESSIONS {
            let mut session = server.connect().unwrap();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    assert_eq!(session.run(merge).unwrap().tags(), ["MERGE 3"]);
                }
            });
        }
    });
    let all = (SESSIONS * ROUNDS).to_string();
    let half = (SESSIONS * ROUNDS / 2).to_string();
    let want = format!("{all}|{half}");
    let seen = client
        .value("SELECT string_agg(DISTINCT v || '|' || n, ',') || '/' || count(*) FROM t")
        .unwrap();
    assert_eq!(seen, format!("{want}/3"));
}
