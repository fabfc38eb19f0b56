//! A statement that is kept for its text was read under settings, and at a time.

use crate::support::Database;

#[test]
fn constants_are_read_under_the_settings_in_force() {
    let db = Database::new();
    let mut s = db.session();
    let moment = "SELECT extract(epoch from '2012-12-12 12:00'::timestamptz)::int";
    for (zone, wanted) in
        [("'-1.5'", "1355319000"), ("'+2'", "1355306400"), ("'Europe/Berlin'", "1355310000")]
    {
        s.run_each(&[&format!("SET TIME ZONE {zone}")]);
        for _ in 0..3 {
            assert_eq!(s.run(moment), wanted, "{zone}");
        }
    }
    for (order, wanted) in [("mdy", "2020-01-02"), ("dmy", "2020-02-01"), ("mdy", "2020-01-02")] {
        s.run_each(&[&format!("SET DateStyle = 'iso, {order}'")]);
        for _ in 0..3 {
            assert_eq!(s.run("SELECT '01/02/2020'::date"), wanted, "{order}");
        }
    }
    // A transaction's own setting, taken back.
    s.run_each(&["BEGIN", "SET LOCAL DateStyle = 'iso, dmy'"]);
    assert_eq!(s.run("SELECT '01/02/2020'::date"), "2020-02-01");
    s.run_each(&["ROLLBACK"]);
    assert_eq!(s.run("SELECT '01/02/2020'::date"), "2020-01-02");
}

#[test]
fn now_is_not_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (t timestamptz, n int)"]);
    for _ in 0..5 {
        s.run_each(&["INSERT INTO t VALUES ('now', 1)"]);
    }
    for n in 0..5 {
        s.run_each(&[&format!("INSERT INTO t VALUES ('now', {})", 10 + n)]);
    }
    s.check(&[
        ("SELECT count(DISTINCT t) FROM t WHERE n = 1", "5"),
        ("SELECT count(DISTINCT t) FROM t WHERE n > 1", "5"),
    ]);
    for _ in 0..3 {
        assert_eq!(s.run("SELECT 'now'::timestamptz = now()"), "t");
    }
}

#[test]
fn a_zone_has_its_name_whatever_it_was_called() {
    let db = Database::new();
    let mut s = db.session();
    for (zone, shown) in [
        ("'-1.5'", "<-01:30>+01:30"),
        ("-7", "<-07>+07"),
        ("INTERVAL '08:00' HOUR TO MINUTE", "<+08>-08"),
        ("INTERVAL '-1:30' HOUR TO MINUTE", "<-01:30>+01:30"),
        ("INTERVAL '3' HOUR", "<+03>-03"),
        ("'europe/berlin'", "Europe/Berlin"),
        ("'utc'", "UTC"),
    ] {
        s.run_each(&[&format!("SET TIME ZONE {zone}")]);
        assert_eq!(s.run("SHOW TimeZone"), shown, "{zone}");
    }
    s.check(&[(
        "SET TIME ZONE INTERVAL '1 day'",
        "22023 interval time zone \"1 day\" must not include months or days",
    )]);
    s.run_each(&["SET TIME ZONE INTERVAL '08:00' HOUR TO MINUTE"]);
    assert_eq!(s.run("SELECT '2012-12-12 12:00+0'::timestamptz"), "2012-12-12 20:00:00+08");
}

#[test]
fn backslashes_are_read_under_the_setting_in_force() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["SET escape_string_warning = off"]);
    for (setting, wanted) in [("on", "a\\tb|\\\\"), ("off", "a\tb|\\"), ("on", "a\\tb|\\\\")] {
        s.run_each(&[&format!("SET standard_conforming_strings = {setting}")]);
        for _ in 0..3 {
            assert_eq!(s.run("SELECT 'a\\tb', '\\\\'"), wanted, "{setting}");
        }
    }
    s.run_each(&["SET standard_conforming_strings = off"]);
    s.check(&[
        ("SELECT 'it\\'s' AS \"a\\b\", $$\\t$$, E'\\\\'", "it's|\\t|\\"),
        ("SELECT U&\"\\0061\" FROM (SELECT 1 AS a) x", "1"),
    ]);
    let said = s.run("SELECT U&'a'");
    assert!(said.starts_with("0A000 unsafe use of string constant"), "{said}");
    assert_eq!(s.run("SET standard_conforming_strings = on"), "");
    assert_eq!(s.run("SELECT U&'\\0061\\+000062'"), "ab");
}
