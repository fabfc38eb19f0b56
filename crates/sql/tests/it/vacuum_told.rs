//! What VACUUM (VERBOSE) tells, held against what is in the table.

use crate::support::{Connection, Database};
use base::{BlockNumber, Fork};
use buffer::Strategy;

/// The number in `told` between `before` and `after`.
#[track_caller]
fn number(told: &str, before: &str, after: &str) -> i64 {
    let rest = told.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?} in {told}"));
    rest.split(after)
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{before:?}: {told}"))
}

/// How many line pointers it says were freed.
#[track_caller]
fn freed(told: &str) -> i64 {
    let line = told.split(" dead item identifiers removed").next().unwrap();
    line.rsplit(" had ").next().unwrap().parse().unwrap_or_else(|_| panic!("{told}"))
}

fn asked(s: &mut Connection, sql: &str) -> i64 {
    s.run(sql).parse().unwrap()
}

const DEAD_ROWS: &str = "SELECT dead_tuple_count FROM pgstattuple('t')";
const DEAD_POINTERS: &str = "SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b, \
     heap_page_items(get_raw_page('t', b)) WHERE lp_flags = 3";

/// A page is left as it is until its index entries are gone; one that somebody uses then keeps its dead rows, and nobody says that they were removed.
#[test]
fn what_stays_on_a_page_in_use_is_not_told_as_removed() {
    let db = &Database::with_buffers(128);
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pgstattuple",
        "CREATE EXTENSION pageinspect",
        "CREATE TABLE t (k text PRIMARY KEY, v text) WITH (autovacuum_enabled = off)",
        "INSERT INTO t SELECT md5(g::text), repeat('v', 150) FROM generate_series(1, 12000) g",
        "VACUUM t",
        // So that some of what is dead there are line pointers already.
        "DELETE FROM t WHERE k < '1'",
        "VACUUM (INDEX_CLEANUP OFF) t",
    ]);
    let pointers = asked(&mut s, DEAD_POINTERS);
    s.run_each(&["DELETE FROM t WHERE k < '8'"]);
    let rows = asked(&mut s, DEAD_ROWS);
    let file = db.file("t");
    let vacuum = "VACUUM (VERBOSE, INDEX_CLEANUP ON, BUFFER_USAGE_LIMIT '128 kB') t";
    let told = std::thread::scope(|scope| {
        let armed = base::stop::arm("vacuum.before_reap");
        let subject = armed.subject();
        let worker = scope.spawn(move || {
            let mut s = db.session();
            // What a page costs that is made dirty twice is why pages are put off.
            s.run_each(&["SET vacuum_cost_delay = '1ms'", "SET vacuum_cost_limit = 2000"]);
            subject.run(|| s.run(vacuum))
        });
        armed.wait_reached();
        let put_off = asked(&mut s, DEAD_ROWS);
        let pin = file.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        armed.release();
        let told = worker.join().unwrap();
        drop(pin);
        assert_eq!(put_off, rows, "pages were cleaned before: {told}");
        told
    });
    let (rows_left, pointers_left) = (asked(&mut s, DEAD_ROWS), asked(&mut s, DEAD_POINTERS));
    assert!(rows_left > 0 && pointers_left > 0, "{told}");
    assert_eq!(number(&told, "tuples: ", " removed"), rows - rows_left, "{told}");
    assert_eq!(number(&told, "tuples missed: ", " dead from 1 pages"), rows_left, "{told}");
    let gone = rows + pointers - rows_left - pointers_left;
    assert_eq!(freed(&told), gone, "{told}");
    assert_eq!(number(&told, "t_pkey\" method: bulk, ", " entries removed"), rows + pointers);
    // The next one says of the rest that it has gone.
    let told = s.run(vacuum);
    assert_eq!(number(&told, "tuples: ", " removed"), rows_left, "{told}");
    let gone = rows_left + pointers_left;
    assert_eq!(freed(&told), gone, "{told}");
    s.check(&[(DEAD_ROWS, "0"), (DEAD_POINTERS, "0")]);
}
