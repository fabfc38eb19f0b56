//! The extended protocol in its corners: portals in pieces, pipelines without an end, what is skipped.

use crate::support::server;
use lab::client::{Batch, Client, Event, Outcome};

fn outcome(client: &mut Client, fill: impl FnOnce(&mut Batch)) -> Outcome {
    let mut batch = Batch::default();
    fill(&mut batch);
    batch.sync();
    client.send(&batch).unwrap();
    client.finish().unwrap()
}

fn suspended(outcome: &Outcome) -> usize {
    outcome.events.iter().filter(|e| **e == Event::Suspended).count()
}

/// A statement with RETURNING has written all its rows, and had its constraints looked at, when the first of them is handed out.
#[test]
fn what_writes_writes_all_however_few_rows_are_asked_for() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int PRIMARY KEY, v int)").unwrap();
    client.run("CREATE TABLE u (id int REFERENCES t)").unwrap();
    client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 5000) g").unwrap();
    for sql in [
        "UPDATE t SET v = v + 1 RETURNING id",
        "WITH w AS (UPDATE t SET v = v + 1 RETURNING id) SELECT id FROM w",
    ] {
        let said = outcome(&mut client, |b| {
            b.parse("", sql, &[]).bind("", "", &[], &[], &[]).execute("", 2);
        });
        assert_eq!((said.rows().len(), suspended(&said), said.error()), (2, 1, None), "{sql}");
    }
    assert_eq!(client.value("SELECT min(v) || ' ' || max(v) FROM t").unwrap(), "2 2");
    let said = outcome(&mut client, |b| {
        b.parse("", "INSERT INTO u SELECT g FROM generate_series(4999, 5001) g RETURNING id", &[]);
        b.bind("", "", &[], &[], &[]).execute("", 1);
    });
    assert_eq!(said.sqlstate(), "23503");
    assert_eq!(client.value("SELECT count(*) FROM u").unwrap(), "0");
    // In pieces, each with its tag; drivers ask for one row of what returns none.
    client.run("BEGIN").unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("", "DELETE FROM t WHERE id <= 5 RETURNING id", &[]).bind("p", "", &[], &[], &[]);
        b.execute("p", 2).execute("p", 2).execute("p", 2).execute("p", 2);
        b.parse("", "INSERT INTO t VALUES (1), (2), (3)", &[]).bind("", "", &[], &[], &[]);
        b.execute("", 1);
    });
    assert_eq!(said.error(), None);
    assert_eq!((said.rows().len(), suspended(&said)), (5, 2));
    assert_eq!(said.tags(), ["DELETE 1", "DELETE 0", "INSERT 0 3"]);
    let said = outcome(&mut client, |b| {
        b.parse("", "UPDATE t SET v = 9 RETURNING id", &[]).bind("q", "", &[], &[], &[]);
    });
    assert_eq!(said.error(), None);
    assert_eq!(client.run("FETCH 1 FROM q").unwrap().rows().len(), 1);
    client.run("COMMIT").unwrap();
    assert_eq!(client.value("SELECT min(v) FROM t").unwrap(), "9");
}

#[test]
fn a_portal_is_told_in_pieces_and_cannot_write_twice() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int)").unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("", "SELECT generate_series(1, 5)", &[]).bind("p", "", &[], &[], &[]);
        b.execute("p", 2).execute("p", 2).execute("p", 2).execute("p", 0);
    });
    assert_eq!(said.tags(), ["SELECT 1", "SELECT 0"]);
    client.run("PREPARE five AS SELECT generate_series(1, 5)").unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("", "EXECUTE five", &[]).bind("", "", &[], &[], &[]);
        b.execute("", 3).execute("", 3).execute("", 3);
    });
    assert_eq!((said.rows().len(), said.tags()), (5, vec!["SELECT 2", "SELECT 0"]));
    let said = outcome(&mut client, |b| {
        b.parse("", "INSERT INTO t VALUES (1)", &[]).bind("", "", &[], &[], &[]);
        b.execute("", 0).execute("", 0);
    });
    assert_eq!((said.tags(), said.sqlstate()), (vec!["INSERT 0 1"], "55000"));
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "0");
}

/// What is bound sees nothing of what runs between that and its Execute.
#[test]
fn a_bound_query_sees_what_was_there() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int)").unwrap();
    client.run("BEGIN").unwrap();
    let count = |batch: &mut Batch, portal: &str| {
        batch.parse("", "SELECT count(*) FROM t", &[]).bind(portal, "", &[], &[], &[]);
    };
    let said = outcome(&mut client, |b| {
        count(b, "early");
        b.parse("", "INSERT INTO t VALUES (1)", &[]).bind("", "", &[], &[], &[]).execute("", 0);
        count(b, "late");
        b.execute("early", 0).execute("late", 0);
        count(b, "last");
    });
    assert_eq!(said.rows(), [[Some("0".to_owned())], [Some("1".to_owned())]]);
    client.run("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(
        outcome(&mut client, |b| {
            b.execute("last", 0);
        })
        .value()
        .unwrap(),
        "1"
    );
}

/// After an error everything up to Sync is passed over, a simple query too: it might build upon what has failed.
#[test]
fn a_query_behind_an_error_is_passed_over() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int)").unwrap();
    let mut batch = Batch::default();
    batch.parse("", "SELECT 1 / 0", &[]).bind("", "", &[], &[], &[]).execute("", 0);
    client.send(&batch).unwrap();
    client.send_simple("INSERT INTO t VALUES (1)").unwrap();
    client.send_bytes(b"F\0\0\0\x0e\0\0\x05\x75\0\0\0\0\0\0S\0\0\0\x04").unwrap();
    let said = client.finish().unwrap();
    assert_eq!((said.sqlstate(), said.tags()), ("22012", vec![]));
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "0");
}

#[test]
fn a_parse_that_fails_leaves_no_unnamed_statement() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("", "SELECT 1", &[]);
    });
    assert_eq!(said.error(), None);
    // It is none of those that DEALLOCATE ALL ends.
    client.run("BEGIN").unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("s", "DEALLOCATE ALL", &[]).parse("", "SELECT 1", &[]);
        b.bind("p", "s", &[], &[], &[]).execute("p", 0);
        b.bind("", "", &[], &[], &[]).execute("", 0);
    });
    assert_eq!(said.tags(), ["DEALLOCATE ALL", "SELECT 1"]);
    client.run("ROLLBACK").unwrap();
    for (sql, state) in [("SELECT nothing", "42703"), ("SELEC", "42601")] {
        let said = outcome(&mut client, |b| {
            b.parse("", "SELECT 1", &[]);
        });
        assert_eq!(said.error(), None);
        assert_eq!(
            outcome(&mut client, |b| {
                b.parse("", sql, &[]);
            })
            .sqlstate(),
            state
        );
        let said = outcome(&mut client, |b| {
            b.bind("", "", &[], &[], &[]);
        });
        assert_eq!(said.sqlstate(), "26000");
    }
}

/// Who has not been told that the server is ready is not idle: its client may be busy with what it got.
#[test]
fn a_pipeline_without_an_end_is_not_idle() {
    let server = server(&[]);
    let mut other = server.connect().unwrap();
    let mut client = server.connect().unwrap();
    client.run("SET idle_in_transaction_session_timeout = 20").unwrap();
    client.run("SET idle_session_timeout = 0").unwrap();
    let mut batch = Batch::default();
    batch.parse("", "SELECT 7", &[]).bind("", "", &[], &[], &[]).execute("", 0).flush();
    client.send(&batch).unwrap();
    while client.read_raw().unwrap().tag != b'C' {}
    other.run("SELECT pg_sleep(0.1)").unwrap();
    assert_eq!(outcome(&mut client, |_| ()).error(), None);
    // The transaction's own time runs on.
    client.run("SET transaction_timeout = 20").unwrap();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "25P04");
}

/// What was set is told with the next ReadyForQuery, also when something failed behind it; and however long it is.
#[test]
fn settings_are_told_whatever_came_of_the_rest() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    // What a block that fails has set holds no longer.
    client
        .run("BEGIN; SET application_name = 'lost'; SAVEPOINT s; SET DateStyle = 'German'")
        .unwrap();
    assert_eq!(client.parameters["DateStyle"], "German, DMY");
    assert_eq!(client.simple("SELECT 1 / 0").unwrap().sqlstate(), "22012");
    let told = |client: &Client| {
        [&client.parameters["application_name"], &client.parameters["DateStyle"]].map(String::clone)
    };
    assert_eq!(told(&client), ["lost", "ISO, MDY"]);
    client.run("ROLLBACK TO s; SET DateStyle = 'SQL'; RELEASE s").unwrap();
    assert_eq!(told(&client), ["lost", "SQL, MDY"]);
    assert_eq!(client.simple("SELECT 1 / 0").unwrap().sqlstate(), "22012");
    assert_eq!(told(&client), ["", "ISO, MDY"]);
    client.run("ROLLBACK").unwrap();
    let string = "BEGIN; SET application_name = 'seen'; COMMIT; SELECT 1 / 0";
    assert_eq!(client.simple(string).unwrap().sqlstate(), "22012");
    assert_eq!(client.parameters["application_name"], "seen");
    client.run("SET scram_iterations = 4097").unwrap();
    assert_eq!(client.parameters["scram_iterations"], "4097");
    let schemas: Vec<String> = (0..4000).map(|n| format!("schema_{n}")).collect();
    client.run(&format!("SET search_path = {}", schemas.join(", "))).unwrap();
    assert_eq!(client.parameters["search_path"], schemas.join(", "));
    assert_eq!(client.value("SELECT 1").unwrap(), "1");
}

/// What comes behind the Execute that sets it is in the new encoding.
#[test]
fn an_encoding_holds_from_the_next_message_on() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    let mut batch = Batch::default();
    batch.parse("", "SET client_encoding = 'LATIN1'", &[]).bind("", "", &[], &[], &[]);
    batch.execute("", 0);
    client.send(&batch).unwrap();
    client.send_bytes(b"P\0\0\0\x1b\0SELECT length('\xe9\xe9')\0\0\0").unwrap();
    let said = outcome(&mut client, |b| {
        b.bind("", "", &[], &[], &[]).execute("", 0);
    });
    assert_eq!((said.error(), said.value().as_deref()), (None, Some("2")));
    // It is taken back with its transaction.
    let mut batch = Batch::default();
    batch.parse("", "SET client_encoding = 'UTF8'", &[]).bind("", "", &[], &[], &[]);
    batch.execute("", 0).parse("", "SELECT 1 / 0", &[]).bind("", "", &[], &[], &[]);
    batch.execute("", 0).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "22012");
    assert_eq!(client.value("SELECT length('é')").unwrap(), "2");
}

/// SQL's cursors are portals: what is kept of their rows is handed out to whoever asks.
#[test]
fn a_cursor_is_executed_from_where_it_stands() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("BEGIN").unwrap();
    client.run("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT generate_series(1, 7)").unwrap();
    client.run("FETCH 3 FROM c; MOVE BACKWARD 1 FROM c").unwrap();
    let said = outcome(&mut client, |b| {
        b.execute("c", 2);
    });
    assert_eq!(said.rows(), [[Some("3".to_owned())], [Some("4".to_owned())]]);
    client.run("COMMIT").unwrap();
    assert_eq!(client.value("FETCH 1 FROM c").unwrap(), "5");
    let said = outcome(&mut client, |b| {
        b.execute("c", 0);
    });
    assert_eq!((said.rows().len(), said.tags()), (2, vec!["SELECT 2"]));
    // One that has failed has nothing to hold.
    client
        .run(
            "BEGIN; DECLARE d CURSOR WITH HOLD FOR SELECT 1 / (2 - g) FROM generate_series(1, 3) g",
        )
        .unwrap();
    client.run("SAVEPOINT s").unwrap();
    assert_eq!(client.simple("FETCH ALL FROM d").unwrap().sqlstate(), "22012");
    client.run("ROLLBACK TO s; COMMIT").unwrap();
    assert_eq!(client.simple("FETCH ALL FROM d").unwrap().sqlstate(), "34000");
}

/// A message that is laid out wrong is an error like others: its end is known.
#[test]
fn a_message_laid_out_wrong_ends_no_session() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    for wrong in [
        // A Bind with a value that is longer than it; a Sync and a Query with something behind them.
        &b"B\0\0\0\x14\0\0\0\0\0\x01\0\0\x7f\xffabcd\0\0S\0\0\0\x04"[..],
        b"S\0\0\0\x09extra",
        b"Q\0\0\0\x0fSELECT 1\0\0\0",
    ] {
        client.send_bytes(wrong).unwrap();
        assert_eq!(client.finish().unwrap().sqlstate(), "08P01", "{wrong:?}");
        assert_eq!(client.value("SELECT 1").unwrap(), "1");
    }
    // Nor is anything waited for that no message of its kind can be.
    client.send_bytes(b"E\0\x10\0\0").unwrap();
    let said = client.finish().unwrap();
    assert_eq!(said.fatal().unwrap().message(), "invalid message length");
    let mut client = server.connect().unwrap();
    client.send_bytes(b"p\0\0\0\x04").unwrap();
    assert_eq!(
        client.finish().unwrap().fatal().unwrap().message(),
        "invalid frontend message type 112"
    );
}

#[test]
fn statements_that_stand_alone_are_refused_in_a_string_of_several() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    for sql in ["DISCARD ALL", "ALTER SYSTEM SET work_mem = '5MB'"] {
        for string in [format!("SELECT 1; {sql}"), format!("{sql}; SELECT 1")] {
            assert_eq!(client.simple(&string).unwrap().sqlstate(), "25001", "{string}");
        }
        client.run(sql).unwrap();
    }
}

/// Where the client is told of an error: analysis is Parse's, planning and a reading query's rights are Bind's, the rest is Execute's.
#[test]
fn errors_are_told_where_they_belong() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE ROLE other").unwrap();
    client.run("INSERT INTO t VALUES (1, 'a'); SET ROLE other").unwrap();
    let mut told = |sql: &str| {
        let mut batch = Batch::default();
        batch.parse("", sql, &[]).bind("", "", &[], &[], &[]).execute("", 0).sync();
        client.send(&batch).unwrap();
        let (mut done, mut state) = (0, String::new());
        loop {
            let raw = client.read_raw().unwrap();
            match raw.tag {
                b'1' | b'2' => done += 1,
                b'E' => {
                    let code = raw.body.split(|b| *b == 0).find(|f| f.first() == Some(&b'C'));
                    state = String::from_utf8_lossy(&code.unwrap()[1..]).into_owned();
                }
                b'Z' => return format!("{} {state}", ["Parse", "Bind", "Execute"][done]),
                _ => {}
            }
        }
    };
    for (sql, wanted) in [
        ("SELECT nothing", "Parse 42703"),
        ("EXPLAIN SELECT * FROM nowhere", "Parse 42P01"),
        ("DECLARE c CURSOR FOR SELECT * FROM nowhere", "Parse 42P01"),
        ("CREATE TABLE u AS SELECT * FROM nowhere", "Parse 42P01"),
        ("SELECT 1 / 0", "Bind 22012"),
        ("SELECT * FROM t", "Bind 42501"),
        ("SELECT * FROM t FOR UPDATE", "Bind 42501"),
        ("INSERT INTO t VALUES (2, 'b')", "Execute 42501"),
        ("INSERT INTO t SELECT 1 / 0", "Bind 22012"),
        ("WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d", "Execute 42501"),
        ("SELECT 1 / length(substr(current_user, 6))", "Execute 22012"),
        ("EXPLAIN SELECT 1 / 0", "Execute 22012"),
        ("DROP TABLE nowhere", "Execute 42P01"),
    ] {
        assert_eq!(told(sql), wanted, "{sql}");
    }
}

/// What is bound is planned, and its tables are locked; what has changed them meanwhile is minded.
#[test]
fn a_bound_change_minds_what_has_changed_since() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int, v text)").unwrap();
    client.run("BEGIN").unwrap();
    let said = outcome(&mut client, |b| {
        b.parse("s", "INSERT INTO t (id) VALUES (1)", &[]).bind("p", "s", &[], &[], &[]);
    });
    assert_eq!(said.error(), None);
    let mut other = server.connect().unwrap();
    let modes = "SELECT string_agg(mode, ' ') FROM pg_locks WHERE relation = 't'::regclass";
    assert_eq!(other.value(modes).unwrap(), "RowExclusiveLock");
    client.run("ALTER TABLE t ADD c int DEFAULT 7").unwrap();
    let said = outcome(&mut client, |b| {
        b.execute("p", 0);
    });
    assert_eq!(said.tags(), ["INSERT 0 1"]);
    assert_eq!(client.value("SELECT c FROM t").unwrap(), "7");
    client.run("COMMIT").unwrap();
    // A query that is bound sees what was there, whatever others commit.
    let mut batch = Batch::default();
    batch.parse("", "SELECT count(*) FROM t", &[]).bind("", "", &[], &[], &[]).flush();
    client.send(&batch).unwrap();
    while client.read_raw().unwrap().tag != b'2' {}
    other.run("INSERT INTO t VALUES (2)").unwrap();
    let said = outcome(&mut client, |b| {
        b.execute("", 0);
    });
    assert_eq!(said.value().unwrap(), "1");
}

/// After Parse of a query, too, the transaction has looked at data.
#[test]
fn a_prepared_query_fixes_the_isolation_level() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    for (sql, wanted) in
        [("SELECT 1", "25001"), ("EXPLAIN SELECT 1", "25001"), ("SHOW work_mem", "")]
    {
        client.run("BEGIN").unwrap();
        let said = outcome(&mut client, |b| {
            b.parse("", sql, &[]);
        });
        assert_eq!(said.error(), None);
        let said = client.simple("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").unwrap();
        assert_eq!(said.sqlstate(), wanted, "{sql}");
        client.run("ROLLBACK").unwrap();
    }
}
