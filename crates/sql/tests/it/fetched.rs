//! FETCH hands out rows that the cursor keeps: those that it was about, whatever becomes of the cursor before its client has them all.

use crate::support::Database;

#[test]
fn rows_half_handed_out_stay_what_they_were() {
    let db = Database::new();
    let mut s = db.session();
    // In memory, and with what is on disk.
    for (memory, width) in [("4MB", 10), ("64kB", 1000)] {
        s.run_each(&[
            &format!("SET work_mem = '{memory}'"),
            "BEGIN",
            &format!(
                "DECLARE c SCROLL CURSOR FOR SELECT g, repeat('x', {width}) FROM generate_series(1, 500) g"
            ),
            "MOVE 200 IN c",
        ]);
        let row = |n: usize| format!("{n}|{}", "x".repeat(width));
        s.open_portal("p", "FETCH BACKWARD 3 FROM c");
        assert_eq!(s.execute_portal("p", 1), row(199));
        s.open_portal("", "MOVE 250 IN c");
        s.execute_portal("", 0);
        assert_eq!(s.execute_portal("p", 1), row(198));
        s.open_portal("", "CLOSE c");
        s.execute_portal("", 0);
        assert_eq!(s.execute_portal("p", 0), row(197));
        s.check(&[("FETCH c", "34000 cursor \"c\" does not exist")]);
        s.run_each(&["ROLLBACK"]);
    }
}

#[test]
fn fetch_gives_rows_both_ways_and_none() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 5) g"]);
    s.check(&[
        ("FETCH 0 FROM c", ""),
        ("FETCH 2 FROM c", "1\n2"),
        ("FETCH ALL FROM c", "3\n4\n5"),
        ("FETCH c", ""),
        ("FETCH BACKWARD 2 FROM c", "5\n4"),
        ("FETCH RELATIVE 0 FROM c", "4"),
        ("FETCH BACKWARD ALL FROM c", "3\n2\n1"),
        ("FETCH PRIOR FROM c", ""),
        ("FETCH LAST FROM c", "5"),
        ("FETCH ABSOLUTE 2 FROM c", "2"),
        ("COMMIT", ""),
    ]);
}
