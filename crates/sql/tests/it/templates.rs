//! Texts of the simple protocol that differ in constants alone are read once, and answer as each would by itself.

use crate::support::{Connection, Database};

fn filled(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c text, v varchar(5), p char(4), d date, z timestamptz, u uuid UNIQUE)",
        "CREATE TABLE o (id int PRIMARY KEY, t int REFERENCES t, n numeric)",
        "CREATE INDEX ON t (b)",
        "INSERT INTO t SELECT g, g * 10, 'it''s ' || g, 'v' || g, 'p' || g, date '2026-01-01' + g,
            timestamptz '2026-01-01 00:00:00+00' + g * interval '1 hour',
            ('00000000-0000-0000-0000-00000000000' || g)::uuid FROM generate_series(1, 9) g",
        "INSERT INTO o SELECT g, g % 9 + 1, g / 4.0 FROM generate_series(1, 40) g",
        "ANALYZE",
    ]);
    s
}

/// Runs the texts that `text` makes of 1 to 9 in one session, and each again in a session that has read nothing; how many were found to be known.
fn all_answer_alike(db: &Database, s: &mut Connection, text: impl Fn(i32) -> String) -> (u64, u64) {
    let (used, planned) = (s.session.templates_used(), s.session.plans_made());
    for n in 1..=9 {
        let text = text(n);
        let answer = s.run(&text);
        assert_eq!(answer, db.session().run(&text), "{text}");
    }
    (s.session.templates_used() - used, s.session.plans_made() - planned)
}

/// The first text is remembered, the second one is kept, the others use it.
const ALL: u64 = 7;

#[test]
fn one_row_by_its_key_has_one_plan() {
    let db = Database::new();
    let mut s = filled(&db);
    // Two plans of texts by themselves, one for all.
    let texts: [fn(i32) -> String; 9] = [
        |n| format!("SELECT * FROM t WHERE a = {n} ORDER BY b LIMIT 21"),
        |n| {
            format!(
                "SELECT * FROM t WHERE u = '00000000-0000-0000-0000-00000000000{n}' LIMIT 2 OFFSET 0"
            )
        },
        |n| format!("SELECT * FROM t WHERE a = {n} AND c <> 'x{n}' AND b > -{n}"),
        |n| format!("SELECT c, n FROM o JOIN t ON o.t = t.a WHERE o.id = {n}"),
        |n| format!("SELECT c, n FROM o, t WHERE o.t = t.a AND id = {n}"),
        |n| {
            format!(
                "SELECT x.n, y.n FROM o x LEFT JOIN o y ON x.t = y.t AND y.n > 3 WHERE x.id = {n} ORDER BY 2"
            )
        },
        |n| {
            format!(
                "SELECT count(*), max(c) FROM t WHERE u = '00000000-0000-0000-0000-00000000000{n}'::uuid"
            )
        },
        |n| {
            format!(
                "UPDATE t SET c = 'it''s {n}', b = a + {n}, d = '2026-02-0{n}' WHERE a = {n} RETURNING *"
            )
        },
        |n| format!("SELECT o.* FROM t JOIN o ON o.t = t.a WHERE o.id = {n} FOR UPDATE OF o"),
    ];
    for text in texts {
        assert_eq!(all_answer_alike(&db, &mut s, text), (ALL, 3), "{}", text(1));
    }
}

#[test]
fn rows_by_other_conditions_are_planned_for_their_values() {
    let db = Database::new();
    let mut s = filled(&db);
    let texts: [fn(i32) -> String; 12] = [
        |n| format!("SELECT * FROM t WHERE a > {n} AND c <> 'it''s {n}' ORDER BY a LIMIT 1"),
        |n| {
            format!(
                "SELECT count(*), min(c) FROM t WHERE b BETWEEN 1{n} AND 5{n} GROUP BY b / 30 HAVING count(*) > 1 ORDER BY 2"
            )
        },
        |n| format!("SELECT * FROM t WHERE v = 'v{n}'"),
        |n| format!("SELECT a FROM t WHERE p = 'p{n}' OR a = 3"),
        |n| format!("SELECT a FROM t WHERE p = 'p{n}' AND p <> 'p{n} ' OR a = 3"),
        |n| format!("SELECT a FROM t WHERE d >= '2026-01-0{n}' AND z < '2026-01-01 0{n}:30:00+00'"),
        |n| format!("SELECT a FROM t WHERE d >= '2026-01-0{n}'::date ORDER BY a"),
        // The key's value is one of another table's, too.
        |n| format!("SELECT o.id FROM t JOIN o ON o.t = t.a WHERE t.a = {n} ORDER BY 1"),
        |n| {
            format!(
                "SELECT o.id FROM t JOIN o ON o.t = t.a WHERE t.a = {n} AND o.n < '{n}.5' ORDER BY 1"
            )
        },
        |n| format!("SELECT x.id FROM o x JOIN o y USING (id) WHERE x.id = {n}"),
        |n| format!("SELECT x.b FROM t AS x (b, a) WHERE a = {n}0"),
        |n| format!("DELETE FROM o WHERE t = {n} AND n > 80 RETURNING id"),
    ];
    for text in texts {
        let (used, planned) = all_answer_alike(&db, &mut s, text);
        assert!(used == 0 || used == ALL && planned >= 9, "{used} {planned} {}", text(1));
    }
    let used = s.session.templates_used();
    assert!(used >= 8 * ALL, "{used}");
}

/// A constant that is no value of its column is an error of planning, row or no row.
#[test]
fn what_is_no_value_of_its_column_is_told_without_a_row_too() {
    let db = Database::new();
    let mut s = filled(&db);
    s.run_each(&["ALTER TABLE o ADD s smallint, ADD m numeric(3, 1)"]);
    let too_long = "22001 value too long for type character varying(5)";
    let too_great = "22003 numeric field overflow\nA field with precision 3, scale 1 must round to an absolute value less than 10^2.";
    let out_of_range = "22003 integer out of range";
    for (n, row) in [(1, 1), (2, 2), (3, 3), (4, 99)] {
        s.run_each(&[
            &format!("UPDATE t SET v = 'v{n}' WHERE a = {row}"),
            &format!("UPDATE o SET s = {n} WHERE id = {row}"),
            &format!("UPDATE o SET m = {n} WHERE id = {row}"),
            &format!("UPDATE o SET n = '{n}'::numeric(3, 1) WHERE id = {row}"),
            &format!("UPDATE t SET b = {n} + 5 WHERE a = {row}"),
            &format!("UPDATE t SET c = 'x{n}'::varchar WHERE a = {row}"),
        ]);
    }
    s.check(&[
        ("UPDATE t SET v = 'longer' WHERE a = 99", too_long),
        ("UPDATE o SET s = 40000 WHERE id = 99", "22003 smallint out of range"),
        ("UPDATE o SET m = 100 WHERE id = 99", too_great),
        ("UPDATE o SET n = '100'::numeric(3, 1) WHERE id = 99", too_great),
        ("UPDATE t SET b = 2147483647 + 5 WHERE a = 99", out_of_range),
        ("SELECT count(*) FROM t WHERE a = 1 AND c = 'x1' AND b = 6", "1"),
    ]);
}

/// What a text finds with a plan of its own it finds among others like it: here an index that has few rows of some values.
#[test]
fn values_choose_their_plans() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int); INSERT INTO t SELECT g, CASE WHEN g > 5000 THEN 1 ELSE g END FROM generate_series(1, 10000) g",
        "CREATE INDEX part ON t (a) WHERE b = 7",
        "CREATE INDEX ON t (b)",
        "VACUUM ANALYZE t",
    ]);
    let scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 't'";
    let mut used = 0;
    for n in [2, 3, 4, 1, 5, 1, 6] {
        let before = s.session.templates_used();
        let counted = s.run(scans).parse::<i32>().unwrap();
        let rows = if n == 1 { "5001" } else { "1" };
        s.check(&[(&format!("SELECT count(a) FROM t WHERE b = {n}"), rows)]);
        used += s.session.templates_used() - before;
        let counted = s.run(scans).parse::<i32>().unwrap() - counted;
        assert_eq!(counted, i32::from(n == 1), "{n}");
    }
    assert_eq!(used, 5);
}

#[test]
fn what_is_written_is_read_as_its_columns_type() {
    let db = Database::new();
    let mut s = filled(&db);
    s.run_each(&["CREATE TABLE w (a int, v varchar(3), n numeric(4, 1), t timestamptz, j jsonb)"]);
    let before = s.session.templates_used();
    for n in 1..=6 {
        s.run_each(&[&format!(
            "INSERT INTO w VALUES ({n}, 'a''{n}', '{n}.26', '2026-01-0{n} 10:00+00')"
        )]);
    }
    assert_eq!(s.session.templates_used() - before, 4);
    s.check(&[
        ("SELECT count(*), min(v), max(n), max(t) - min(t) FROM w", "6|a'1|6.3|5 days"),
        // What is wrong is told as ever, and the time that words stand for is that of now.
        (
            "INSERT INTO w VALUES (7, 'four', '1', '2026-01-01')",
            "22001 value too long for type character varying(3)",
        ),
        (
            "INSERT INTO w VALUES (7, 'b', 'x', '2026-01-01')",
            "22P02 invalid input syntax for type numeric: \"x\"",
        ),
        ("INSERT INTO w VALUES (7, 'now', '7', 'now')", ""),
        ("SELECT t > '2026-01-07', t <= now() FROM w WHERE a = 7", "t|t"),
        ("INSERT INTO w VALUES (8, 'tod', '7', 'today')", ""),
        ("SELECT t = current_date FROM w WHERE a = 8", "t"),
        ("SELECT count(*) FROM w WHERE t > '2026-01-07' AND a < 100", "2"),
        ("SELECT count(*) FROM w WHERE t > 'yesterday' AND a < 100", "2"),
        ("SELECT count(*) FROM w WHERE t > 'infinity' AND a < 100", "0"),
        (
            "SELECT count(*) FROM w WHERE t > 'x' AND a < 100",
            "22007 invalid input syntax for type timestamp with time zone: \"x\"",
        ),
        ("SELECT count(*) FROM w WHERE t > '2026-01-07' AND a < 100", "2"),
    ]);
    s.run_each(&["CREATE UNIQUE INDEX ON w (a)"]);
    let before = s.session.templates_used();
    for n in 1..=6 {
        let m = n + 10;
        s.run_each(&[
            &format!("INSERT INTO w VALUES ({n}, 'c{n}', '0', '2026-01-01') ON CONFLICT (a) DO UPDATE SET v = excluded.v, n = w.n + 1 WHERE w.a < 100"),
            &format!("INSERT INTO w (a, v, n) VALUES ({m}, 'r{n}', {n}), ({n}00, 's{n}', {n}5) ON CONFLICT DO NOTHING"),
            &format!("INSERT INTO w (a, v) VALUES ({m}0, 'x'), ({m}1, NULL)"),
        ]);
    }
    assert!(s.session.templates_used() - before >= 4);
    s.check(&[
        ("SELECT count(*), min(v), max(n) FROM w WHERE a < 7", "6|c1|7.3"),
        (
            "SELECT string_agg(v || n, ' ' ORDER BY a) FROM w WHERE a BETWEEN 11 AND 16",
            "r11.0 r22.0 r33.0 r44.0 r55.0 r66.0",
        ),
        (
            "SELECT string_agg(v || n, ' ' ORDER BY a) FROM w WHERE a >= 100 AND v <> 'x'",
            "s115.0 s225.0 s335.0 s445.0 s555.0 s665.0",
        ),
        ("SELECT count(*), count(v) FROM w WHERE a BETWEEN 110 AND 161", "12|6"),
        ("DELETE FROM w WHERE a > 8", ""),
    ]);
    // Of a type that is not read so nothing is kept, nor tried again and again.
    let (before, planned) = (s.session.templates_used(), s.session.plans_made());
    for n in 1..=6 {
        s.run_each(&[&format!("UPDATE w SET j = '[{n}]' WHERE a = {n}")]);
    }
    assert_eq!(s.session.templates_used(), before);
    assert_eq!(s.session.plans_made() - planned, 6);
    s.check(&[("SELECT sum((j -> 0)::int) FROM w", "21")]);
}

#[test]
fn quotes_that_are_no_strings_s_are_left_alone() {
    let db = Database::new();
    let mut s = filled(&db);
    for n in 1..=4 {
        let next = n + 1;
        s.check(&[
            (
                &format!("SELECT c FROM t WHERE a = {n} AND c <> E'it\\'s {next}'"),
                &format!("it's {n}"),
            ),
            (&format!("SELECT c FROM t WHERE a = {n} AND c = 'it''s {n}'"), &format!("it's {n}")),
            (&format!("SELECT c FROM t WHERE a = {n} AND c = 'it''s {next}'"), ""),
            (
                &format!("SELECT c FROM t WHERE c = 'it''s'\n' {n}' AND a = {n}"),
                &format!("it's {n}"),
            ),
            (
                &format!("SELECT c FROM t WHERE a = {n} /* '{n}' */ AND c = 'it''s {n}' -- '"),
                &format!("it's {n}"),
            ),
            (
                &format!("SELECT c AS \"'{n}\" FROM t WHERE a = {n} AND c = $$it's {n}$$"),
                &format!("it's {n}"),
            ),
            (&format!("SELECT '{n}', a FROM t WHERE a = {n} AND v = 'v{n}'"), &format!("{n}|{n}")),
            (&format!("SELECT '{next}' FROM t WHERE a = {n} AND v = U&'v{n}'"), &format!("{next}")),
            (&format!("SELECT a FROM t WHERE a = '{n}' AND v = N'v{n}'"), &format!("{n}")),
            (
                &format!("SELECT a FROM t WHERE b = '{n}0' AND d = date '2026-01-0{next}'"),
                &format!("{n}"),
            ),
        ]);
    }
    s.check(&[
        ("SELECT a FROM t WHERE v = 'v1'", "1"),
        ("SELECT a FROM t WHERE v = 'v2'", "2"),
        ("SELECT a FROM t WHERE v = '\u{2}'", ""),
        ("SET escape_string_warning = off; SET standard_conforming_strings = off", ""),
        ("SELECT a FROM t WHERE v = 'v\\063'", "3"),
        ("SELECT a FROM t WHERE v = 'v4'", "4"),
    ]);
}

/// Who writes another text each time where no parameter is pays for it once.
#[test]
fn what_differs_elsewhere_is_not_tried_for_ever() {
    let db = Database::new();
    let mut s = filled(&db);
    for n in 1..=30 {
        s.run_each(&[&format!("SELECT c, {n} FROM t WHERE a = 1 AND b + {n} > 0")]);
    }
    let used = s.session.templates_used();
    for n in 1..=3 {
        s.check(&[(
            &format!("SELECT c, {n} FROM t WHERE a = 2 AND b + {n} > 0"),
            &format!("it's 2|{n}"),
        )]);
    }
    assert!(s.session.templates_used() - used <= 1);
    // And is forgotten with the table that it was about.
    s.run_each(&["ALTER TABLE t DROP v"]);
    for n in 1..=9 {
        s.check(&[(&format!("SELECT a FROM t WHERE a = {n}"), &n.to_string())]);
    }
    let text = |n| format!("SELECT * FROM t WHERE a = {n} AND c <> 'x'");
    for n in 1..=3 {
        assert!(s.run(&text(n)).starts_with(&n.to_string()));
    }
    s.run_each(&["ALTER TABLE t DROP p, DROP d, DROP z, DROP u"]);
    for n in 1..=4 {
        s.check(&[(&text(n), &format!("{n}|{n}0|it's {n}"))]);
    }
}
