//! Dead entries of partial indexes and of indexes on expressions, looked up by keys that are made of what dead rows keep.

use crate::support::{Connection, Database};

/// Of each index that VACUUM tells of: the method, the entries removed, and those not found.
fn told(said: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|l| l.split_once("\" method: "));
    let mut told: Vec<String> = lines
        .map(|(name, what)| {
            let name = name.rsplit('"').next().unwrap();
            format!(
                "{name}: {}",
                what.replace(" entries removed", "").replace(" not found by their keys", " missed")
            )
        })
        .collect();
    told.sort_unstable();
    told
}

fn vacuum(s: &mut Connection, table: &str) -> Vec<String> {
    told(&s.run(&format!("VACUUM (VERBOSE, INDEX_CLEANUP ON) {table}")))
}

/// Every index of the table has all that it should, and nothing else.
fn check(db: &Database, s: &mut Connection, table: &str) {
    assert_eq!(db.faults(), [""; 0]);
    let indexes = s.run(&format!(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = '{table}'::regclass AND indisvalid"
    ));
    for index in indexes.lines() {
        s.check(&[(&format!("SELECT bt_index_parent_check('{index}', true)"), "")]);
    }
}

const QUEUE: [&str; 8] = [
    "CREATE EXTENSION amcheck",
    "CREATE TABLE q (id int PRIMARY KEY, done boolean, email text, at timestamp, note text) \
        WITH (autovacuum_enabled = off)",
    "INSERT INTO q SELECT g, g % 20 <> 0, CASE WHEN g % 7 > 0 THEN 'User' || g || '@Example.COM' END, \
        timestamp '2026-01-01' + g * interval '1 minute', 'n' FROM generate_series(1, 5000) g",
    "CREATE INDEX q_open ON q (at, id) WHERE NOT done",
    "CREATE UNIQUE INDEX q_unique ON q (email) INCLUDE (note) WHERE NOT done AND email IS NOT NULL",
    "CREATE INDEX q_lower ON q (lower(email), id)",
    "CREATE INDEX q_hour ON q (date_trunc('hour', at) DESC, (id % 10)) WHERE id > 1000",
    "VACUUM q",
];

#[test]
fn partial_indexes_and_expressions_are_looked_up() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&QUEUE);
    s.run_each(&["DELETE FROM q WHERE id BETWEEN 2000 AND 2011"]);
    let all = [
        "q_hour: retail, 12",
        "q_lower: retail, 12",
        "q_open: retail, 1",
        "q_pkey: retail, 12",
        "q_unique: retail, 1",
    ];
    let hit = |s: &mut Connection| vacuum(s, "q");
    assert_eq!(hit(&mut s), all);
    // Those that change their place in the queue; on access their pages are pruned.
    s.run_each(&[
        "UPDATE q SET done = NOT done WHERE id IN (100, 101, 1200, 1201)",
        "SELECT count(*) FROM q WHERE note > ''",
    ]);
    let changed = [
        "q_hour: retail, 2",
        "q_lower: retail, 4",
        "q_open: retail, 2",
        "q_pkey: retail, 4",
        "q_unique: retail, 2",
    ];
    assert_eq!(hit(&mut s), changed);
    check(&db, &mut s, "q");
    // An included column changes: there are two versions, with an entry each in every index but one.
    s.run_each(&["UPDATE q SET note = 'other' WHERE id = 300", "DELETE FROM q WHERE id = 300"]);
    let one = [
        "q_hour: retail, 0",
        "q_lower: retail, 2",
        "q_open: retail, 2",
        "q_pkey: retail, 2",
        "q_unique: retail, 2",
    ];
    assert_eq!(hit(&mut s), one);
    s.run_each(&["SET enable_seqscan = off"]);
    s.check(&[
        ("SELECT count(*) FROM q WHERE NOT done", "248"),
        (
            "SELECT count(*) FROM q WHERE id > 1000 AND date_trunc('hour', at) > '2000-01-01'",
            "3988",
        ),
        ("SELECT count(*) FROM q WHERE lower(email) > ''", "4275"),
    ]);
    check(&db, &mut s, "q");
}

/// What is not kept is not null: too long, out of line, or not there when the row was written.
#[test]
fn what_was_not_kept_is_not_taken_for_null() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE n (id int, gone text, note text, more text) WITH (autovacuum_enabled = off)",
        "ALTER TABLE n ALTER more SET STORAGE EXTERNAL",
        "ALTER TABLE n DROP gone",
        "INSERT INTO n SELECT g, CASE WHEN g % 2 = 0 THEN repeat('n', CASE WHEN g % 4 = 0 THEN 300 ELSE 60 END) END, \
            repeat('m', CASE WHEN g % 500 = 3 THEN 5000 ELSE 60 END) FROM generate_series(1, 4000) g",
        "ALTER TABLE n ADD late int DEFAULT 7",
        "CREATE INDEX n_id ON n (id)",
        "CREATE INDEX n_note ON n (id) WHERE note IS NOT NULL",
        "CREATE INDEX n_null ON n (id) WHERE note IS NULL",
        "CREATE INDEX n_more ON n (id) WHERE more IS NOT NULL",
        "CREATE INDEX n_coalesce ON n (coalesce(md5(more), 'none'))",
        "CREATE INDEX n_late ON n (id) WHERE late IS NOT NULL",
        "VACUUM n",
    ]);
    let bulk = |s: &mut Connection| {
        let told = vacuum(s, "n").into_iter();
        told.filter(|t| t.contains("bulk")).collect::<Vec<_>>()
    };
    // What was added since the row was written is not on it.
    s.run_each(&["DELETE FROM n WHERE id IN (1, 2)"]);
    assert_eq!(bulk(&mut s), ["n_late: bulk, 2"]);
    s.run_each(&["DROP INDEX n_late"]);
    s.run_each(&["DELETE FROM n WHERE id IN (5, 6)", "SELECT count(*) FROM n"]);
    assert_eq!(bulk(&mut s), [""; 0]);
    // Too long, so that keys alone are kept.
    for delete in
        ["DELETE FROM n WHERE id = 8", "DELETE FROM n WHERE id = 12; SELECT count(*) FROM n"]
    {
        s.run_each(&[delete]);
        assert_eq!(
            bulk(&mut s),
            ["n_coalesce: bulk, 1", "n_more: bulk, 1", "n_note: bulk, 1", "n_null: bulk, 0"]
        );
        check(&db, &mut s, "n");
    }
    // Out of line.
    s.run_each(&["DELETE FROM n WHERE id = 503"]);
    assert_eq!(bulk(&mut s), ["n_coalesce: bulk, 1", "n_more: bulk, 1"]);
    check(&db, &mut s, "n");
    // Rows pruned when nobody asked for these columns.
    s.run_each(&[
        "DROP INDEX n_note, n_null, n_more, n_coalesce",
        "DELETE FROM n WHERE id BETWEEN 600 AND 610",
        "SELECT count(*) FROM n",
        "CREATE INDEX n_note ON n (id) WHERE note IS NOT NULL",
        "CREATE INDEX n_coalesce ON n (coalesce(md5(more), 'none'))",
        "DELETE FROM n WHERE id = 2000",
    ]);
    assert_eq!(bulk(&mut s), ["n_coalesce: bulk, 1", "n_note: bulk, 1"]);
    check(&db, &mut s, "n");
}

/// Who reads pages without knowing of an index that is being made keeps nothing for it.
#[test]
fn pages_are_pruned_by_who_does_not_know_the_index() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE t (a int PRIMARY KEY, b text, c text) WITH (autovacuum_enabled = off)",
        "INSERT INTO t SELECT g, repeat('b', 60), 'c' || g FROM generate_series(1, 3000) g",
        "CREATE TABLE other (a int)",
    ]);
    let mut reader = db.session();
    reader.run_each(&["BEGIN", "INSERT INTO other VALUES (1)"]);
    reader.check(&[("SELECT count(*) FROM t", "3000")]);
    let armed = base::stop::arm("sql.index.concurrently.filled");
    let subject = armed.subject();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut s = db.session();
            subject
                .run(|| s.run("CREATE INDEX CONCURRENTLY t_b ON t (upper(c)) WHERE b IS NOT NULL"))
        });
        armed.wait_reached();
        db.session().run_each(&["DELETE FROM t WHERE a % 100 = 0"]);
        reader.check(&[("SELECT count(*) FROM t", "2970")]);
        armed.release();
        assert_eq!(worker.join().unwrap(), "");
    });
    reader.run_each(&["COMMIT"]);
    vacuum(&mut s, "t");
    check(&db, &mut s, "t");
    s.run_each(&["INSERT INTO t SELECT -g, NULL, 'again' FROM generate_series(1, 100) g"]);
    check(&db, &mut s, "t");
    s.run_each(&["SET enable_seqscan = off"]);
    s.check(&[("SELECT count(*) FROM t WHERE upper(c) > '' AND b IS NOT NULL", "2970")]);
}

/// An older version is all that is left of a row while an old snapshot sees it; the index, made in between, has the entry of a newer one.
#[test]
fn an_older_version_does_not_say_that_there_is_no_entry() {
    // The row is deleted, or goes on elsewhere.
    for end in ["DELETE FROM t", "UPDATE t SET flag = NULL, pad = 'moved'"] {
        let db = Database::new();
        let (mut s, mut old) = (db.session(), db.session());
        s.run_each(&[
            "CREATE TABLE t (id int, flag boolean, pad text) WITH (autovacuum_enabled = off, fillfactor = 50)",
            "INSERT INTO t SELECT g, false, 'x' FROM generate_series(1, 1000) g",
            "VACUUM t",
        ]);
        old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM t"]);
        s.run_each(&[
            "UPDATE t SET flag = true WHERE id BETWEEN 11 AND 15",
            "CREATE INDEX t_flag ON t (id) WHERE flag",
            &format!("{end} WHERE id BETWEEN 11 AND 15"),
            "VACUUM (INDEX_CLEANUP ON) t",
        ]);
        old.check(&[("SELECT count(*), count(*) FILTER (WHERE flag) FROM t", "1000|0")]);
        old.run_each(&["COMMIT"]);
        vacuum(&mut s, "t");
        s.run_each(&[
            "INSERT INTO t SELECT g, false, 'other' FROM generate_series(2001, 2100) g",
            "SET enable_seqscan = off",
        ]);
        s.check(&[("SELECT * FROM t WHERE flag", "")]);
        assert_eq!(db.faults(), [""; 0], "{end}");
    }
}

/// A predicate that asks for a setting may have said something else when the row was inserted.
#[test]
fn predicates_that_ask_for_settings_are_not_believed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE f (id int PRIMARY KEY, f float8, b bytea, x text) WITH (autovacuum_enabled = off)",
        "CREATE INDEX f_text ON f (id) WHERE f::text = '0.3'",
        "CREATE INDEX f_bytes ON f (id) WHERE b::text LIKE '\\\\%'",
        "CREATE INDEX f_lower ON f (id) WHERE lower(x) = 'é'",
        "CREATE INDEX f_key ON f ((f::text), id)",
        "SET extra_float_digits = 0",
        "SET bytea_output = escape",
        "INSERT INTO f SELECT g, 0.1::float8 + 0.2::float8, '\\x00'::bytea, 'É' FROM generate_series(1, 2000) g",
        "RESET extra_float_digits",
        "RESET bytea_output",
        "VACUUM f",
        "DELETE FROM f WHERE id = 70",
    ]);
    let said = vacuum(&mut s, "f");
    assert_eq!(said.len(), 5);
    assert_eq!(said.iter().filter(|t| t.starts_with("f_text: bulk, 1")).count(), 1, "{said:?}");
    assert_eq!(
        said.iter().filter(|t| t.starts_with("f_key: bulk, 1, 1 missed")).count(),
        1,
        "{said:?}"
    );
    assert_eq!(said.iter().filter(|t| t.starts_with("f_pkey: retail, 1")).count(), 1, "{said:?}");
    // (Of the rows of other settings this index says nothing that anybody could check.)
    s.run_each(&["DROP INDEX f_key"]);
    assert_eq!(db.faults(), [""; 0]);
    s.check(&[("SELECT bt_index_check('f_bytes'), bt_index_check('f_lower')", "|")]);
    // Other rows take the place.
    s.run_each(&[
        "INSERT INTO f SELECT g, 1, '', 'x' FROM generate_series(5001, 5300) g",
        "SET enable_seqscan = off",
        "SET extra_float_digits = 0",
    ]);
    s.check(&[("SELECT count(*) FROM f WHERE f::text = '0.3'", "1999")]);
}

/// What a function's own tables say may be something else in another version.
#[test]
fn functions_with_tables_of_their_own_are_not_believed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE u (id int PRIMARY KEY, x text, at timestamptz, doc jsonb) WITH (autovacuum_enabled = off)",
        "CREATE INDEX u_zone ON u (id) WHERE timezone('Europe/Berlin', at) < '2020-01-01'",
        "CREATE INDEX u_normal ON u (id) WHERE x IS NOT NFC NORMALIZED",
        "CREATE INDEX u_assigned ON u (id) WHERE NOT unicode_assigned(x)",
        "CREATE INDEX u_unicode ON u (id) WHERE lower(x COLLATE \"unicode\") = 'é'",
        "CREATE INDEX u_path ON u (id) WHERE jsonb_path_exists(doc, '$.k ? (@ like_regex \"^x\")')",
        "CREATE INDEX u_c ON u (id) WHERE lower(x COLLATE \"C\") = 'é'",
        "INSERT INTO u SELECT g, 'x' || g, '2026-01-01', jsonb_build_object('k', 'v') FROM generate_series(1, 2000) g",
        "VACUUM u",
        "DELETE FROM u WHERE id = 70",
    ]);
    let expected = [
        "u_assigned: bulk, 0",
        "u_c: retail, 0",
        "u_normal: bulk, 0",
        "u_path: bulk, 0",
        "u_pkey: retail, 1",
        "u_unicode: bulk, 0",
        "u_zone: bulk, 0",
    ];
    assert_eq!(vacuum(&mut s, "u"), expected);
}

/// It is kept, being short, but nothing can be told by it.
#[test]
fn what_is_compressed_is_not_taken_for_null() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE z (id int PRIMARY KEY, note text) WITH (autovacuum_enabled = off)",
        "INSERT INTO z SELECT g, CASE WHEN g % 5 = 0 THEN repeat('n', 4000) END FROM generate_series(1, 3000) g",
        "CREATE INDEX z_note ON z (id) WHERE note IS NOT NULL",
        "CREATE INDEX z_null ON z (id) WHERE note IS NULL",
        "VACUUM z",
        "DELETE FROM z WHERE id = 6",
    ]);
    assert_eq!(
        vacuum(&mut s, "z"),
        ["z_note: retail, 0", "z_null: retail, 1", "z_pkey: retail, 1"]
    );
    for prune in ["SELECT 1", "SELECT count(*) FROM z"] {
        s.run_each(&["DELETE FROM z WHERE id = (SELECT min(id) FROM z WHERE id % 5 = 0)", prune]);
        assert_eq!(
            vacuum(&mut s, "z"),
            ["z_note: bulk, 1", "z_null: bulk, 0", "z_pkey: retail, 1"]
        );
        check(&db, &mut s, "z");
    }
}

/// Rows that never got in, for what their expressions are.
#[test]
fn what_cannot_be_evaluated_is_not_to_be_had() {
    let db = Database::new();
    let mut s = db.session();
    // Of what repeats itself enough would be left to fit.
    let long: Vec<String> = (0..100).map(|i| format!("md5(x || {i})")).collect();
    let long = long.join(" || ");
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE d (id int PRIMARY KEY, n int, x text) WITH (autovacuum_enabled = off)",
        "CREATE INDEX d_part ON d ((100 / n))",
        &format!("CREATE INDEX d_long ON d ((CASE WHEN id < 0 THEN {long} ELSE x END))"),
        "CREATE INDEX d_if ON d (id) WHERE 100 / n > 3",
        "INSERT INTO d SELECT g, 1 + g % 50, md5(g::text) FROM generate_series(1, 3000) g",
        "VACUUM d",
    ]);
    let error = s.run("INSERT INTO d VALUES (-1, 0, 'x')");
    assert!(error.contains("division by zero"), "{error}");
    let error = s.run("INSERT INTO d VALUES (-2, 40, 'x')");
    assert!(error.contains("index row"), "{error}");
    let told = vacuum(&mut s, "d");
    let bulk: Vec<_> = told.iter().filter(|t| t.contains("bulk")).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(bulk.iter().any(|t| t.starts_with("d_if: bulk, 0")), "{told:?}");
    check(&db, &mut s, "d");
}

#[test]
fn columns_of_enums_and_domains_are_read() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TYPE state AS ENUM ('new', 'open', 'closed')",
        "CREATE DOMAIN amount AS int CHECK (VALUE >= 0)",
        "CREATE TABLE j (id int PRIMARY KEY, state state, amount amount, tags int[], doc jsonb, price numeric, \
            twice int GENERATED ALWAYS AS (id * 2) STORED) WITH (autovacuum_enabled = off)",
        "CREATE INDEX j_state ON j (state, id) WHERE state <> 'closed'",
        "CREATE INDEX j_amount ON j ((amount + 1), price) WHERE amount > 5",
        "CREATE INDEX j_doc ON j ((doc ->> 'k')) WHERE doc IS NOT NULL",
        "CREATE INDEX j_twice ON j (twice) WHERE twice % 3 = 0",
        "CREATE INDEX j_in ON j (id) WHERE state IN ('new', 'open') OR tags[1] = 3",
        "INSERT INTO j SELECT g, (ARRAY['new', 'open', 'closed']::state[])[1 + g % 3], g % 10, ARRAY[g % 5], \
            CASE WHEN g % 4 > 0 THEN jsonb_build_object('k', 'v' || g) END, g / 10.0 FROM generate_series(1, 4000) g",
        "VACUUM ANALYZE j",
        "DELETE FROM j WHERE id BETWEEN 101 AND 112",
        "SELECT count(*) FROM j",
    ]);
    // A value is renamed and one comes before the others: what the rows hold stays what it was.
    s.run_each(&[
        "ALTER TYPE state RENAME VALUE 'closed' TO 'done'",
        "ALTER TYPE state ADD VALUE 'first' BEFORE 'new'",
    ]);
    let told = vacuum(&mut s, "j");
    let expected = [
        "j_amount: retail, 4",
        "j_doc: retail, 9",
        "j_in: retail, 8",
        "j_pkey: retail, 12",
        "j_state: retail, 8",
        "j_twice: retail, 4",
    ];
    assert_eq!(told, expected);
    check(&db, &mut s, "j");
}

/// A simple generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Rows come, change and go; entries go early; indexes come and go: no entry of a row that is gone is ever left.
fn random_rows(seed: u64) {
    let db = Database::new();
    let (mut s, mut old) = (db.session(), db.session());
    let mut is_old = false;
    let r = &mut Random(seed);
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE r (id int PRIMARY KEY, a int, pad text, flag boolean, t text, late text, state int DEFAULT 0) \
            WITH (autovacuum_enabled = off, fillfactor = 70)",
        "CREATE INDEX r_a ON r (a)",
        "CREATE INDEX r_flag ON r (a, t) WHERE flag",
        "CREATE INDEX r_null ON r (id) WHERE flag IS NULL OR t IS NULL",
        "CREATE INDEX r_lower ON r (lower(t))",
        "CREATE INDEX r_sum ON r ((a + length(t))) WHERE a % 3 = 0",
    ]);
    let row = |r: &mut Random| {
        let flag = ["true", "false", "NULL::boolean"][r.below(3) as usize];
        let t = match r.below(6) {
            0 => "NULL::text".to_owned(),
            1 => format!("repeat('Long{}', {})", r.below(50), 20 + r.below(60)),
            n => format!("'T{}x{n}'", r.below(200)),
        };
        let pad = format!("repeat('p', {})", [0, 3, 80, 200][r.below(4) as usize]);
        format!("{}, {pad}, {flag}, {t}", r.below(300))
    };
    let mut next = 0;
    for _ in 0..10 {
        for _ in 0..1 + r.below(12) {
            let (from, some) = (r.below(next.max(1)), 1 + r.below(30));
            let which = format!("id BETWEEN {from} AND {}", from + some);
            let statement = match r.below(17) {
                0..=3 => {
                    next += 40;
                    format!(
                        "INSERT INTO r (id, a, pad, flag, t) SELECT g, v.* FROM generate_series({}, {}) g, \
                            (VALUES ({})) v(a, pad, flag, t) WHERE g % 3 > 0 OR v.a < 200",
                        next - 40,
                        next - 1,
                        row(r)
                    )
                }
                4 => format!("DELETE FROM r WHERE {which}"),
                5 => format!("UPDATE r SET flag = NOT flag WHERE {which}"),
                6 => format!("UPDATE r SET (a, pad, flag, t) = ({}) WHERE {which}", row(r)),
                7 => format!("UPDATE r SET pad = 'hot' || id WHERE {which}"),
                8 => format!("UPDATE r SET t = upper(t), late = 'l' WHERE {which}"),
                9 => format!(
                    "BEGIN; UPDATE r SET flag = NULL, pad = 'x' WHERE {which}; \
                    SAVEPOINT p; DELETE FROM r WHERE {which}; ROLLBACK TO p; \
                    UPDATE r SET pad = 'y' WHERE {which}; {}",
                    ["COMMIT", "ROLLBACK"][r.below(2) as usize]
                ),
                10 => "SELECT count(*) FROM r".to_owned(),
                // HOT, while no index is on it.
                11 | 12 => format!("UPDATE r SET state = 1 - state WHERE {which}"),
                13 | 14 => {
                    is_old = !is_old;
                    let begin: &[&str] = &["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"];
                    old.run_each(if is_old { begin } else { &["COMMIT"] });
                    continue;
                }
                15 if r.below(3) == 0 => "DROP INDEX IF EXISTS r_state".to_owned(),
                15 => "CREATE INDEX IF NOT EXISTS r_state ON r (id) WHERE state > 0".to_owned(),
                _ => "SET enable_seqscan = off; SELECT count(*) FROM r WHERE flag AND a >= 0; \
                    SELECT count(*) FROM r WHERE lower(t) >= ''; RESET enable_seqscan"
                    .to_owned(),
            };
            s.run_each(&[&statement]);
        }
        match r.below(14) {
            0 => s.run_each(&["DROP INDEX r_flag", "CREATE INDEX r_flag ON r (a, t) WHERE flag"]),
            1 => s.run_each(&[
                "DROP INDEX IF EXISTS r_late",
                "CREATE INDEX r_late ON r (id) WHERE late IS NULL",
            ]),
            2 => s.run_each(&["DROP INDEX IF EXISTS r_late"]),
            3 => s.run_each(&["REINDEX INDEX r_null"]),
            4 => s.run_each(&[
                "CREATE INDEX r_pad ON r (id) WHERE pad <> ''",
                "DELETE FROM r WHERE id % 97 = 5",
                "DROP INDEX r_pad",
            ]),
            _ => {}
        }
        let options = [
            "INDEX_CLEANUP ON",
            "INDEX_CLEANUP ON",
            "INDEX_CLEANUP AUTO",
            "INDEX_CLEANUP OFF",
            "INDEX_CLEANUP ON, FREEZE",
        ];
        let said = s.run(&format!("VACUUM ({}) r", options[r.below(5) as usize]));
        assert_eq!(said, "");
        check(&db, &mut s, "r");
        let by = [
            ("flag AND a >= 0", "r_flag"),
            ("(flag IS NULL OR t IS NULL) AND id >= 0", "r_null"),
            ("lower(t) >= ''", "r_lower"),
            ("a % 3 = 0 AND a + length(t) >= 0", "r_sum"),
            ("state > 0 AND id >= 0", "r_state"),
        ];
        for (condition, index) in by {
            let query = format!("SELECT count(*), sum(id) FROM r WHERE {condition}");
            s.run_each(&["SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off"]);
            let all = s.run(&query);
            s.run_each(&["RESET ALL", "SET enable_seqscan = off"]);
            assert_eq!(s.run(&query), all, "by {index}, seed {seed}");
            s.run_each(&["RESET ALL"]);
        }
    }
}

#[test]
fn random_rows_leave_no_entries_behind() {
    (1..=2).for_each(random_rows);
}

/// A row of a transaction that added a column and rolled back has in its place what another column may be taken for that is added later. Nothing of it
/// means anything: VACUUM evaluates what it can, and takes the row away.
#[test]
fn what_a_column_that_never_was_has_left_harms_nobody() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE EXTENSION amcheck"]);
    for (n, (ty, computed)) in [
        ("text", "lower(c)"),
        ("numeric", "(c * 2)"),
        ("jsonb", "(c -> 'a')"),
        ("int[]", "(c || 1)"),
        ("text[]", "array_length(c, 1)"),
        ("inet", "host(c)"),
        ("varbit", "(~ c)"),
        ("bigint", "(c + 1)"),
        ("interval", "(c * 2)"),
        ("timestamp", "date_trunc('day', c)"),
        ("uuid", "(c::text)"),
        ("bool", "(NOT c)"),
    ]
    .into_iter()
    .enumerate()
    {
        let t = format!("t{n}");
        for statement in [
            "CREATE TABLE {t} (id int) WITH (autovacuum_enabled = off)",
            "INSERT INTO {t} SELECT generate_series(1, 300)",
            "BEGIN",
            "ALTER TABLE {t} ADD c bytea",
            "INSERT INTO {t} SELECT g, decode(left(repeat(md5(g::text), 3), g % 90 / 2 * 2), 'hex') \
             FROM generate_series(1, 400) g",
            "INSERT INTO {t} SELECT g, decode(lpad(to_hex(g), g % 24 / 2 * 2, '0'), 'hex') \
             FROM generate_series(1, 400) g",
            "ROLLBACK",
            "ALTER TABLE {t} ADD c {ty}",
            "CREATE INDEX {t}_id ON {t} (id)",
            "CREATE INDEX {t}_c ON {t} ({computed})",
            "CREATE INDEX {t}_some ON {t} (id) WHERE {computed} IS NOT NULL",
            "VACUUM (INDEX_CLEANUP ON) {t}",
        ] {
            let statement = statement.replace("{t}", &t).replace("{ty}", ty);
            s.run_each(&[&statement.replace("{computed}", computed)]);
        }
        s.check(&[
            (&format!("SELECT count(*), count(c) FROM {t}"), "300|0"),
            (&format!("INSERT INTO {t} SELECT generate_series(301, 1500)"), ""),
        ]);
        check(&db, &mut s, &t);
    }
}
