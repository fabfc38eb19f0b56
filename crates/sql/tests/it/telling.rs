//! How far commands have come, as other sessions see it; what VERBOSE's lines say.

use crate::support::{Database, database};

/// Holds the thread that runs `sql` at a stop point, and asks until `question`, of another session, has `answer`.
fn watch(db: &Database, point: &'static str, sql: &str, question: &str, answer: &str) {
    let mut watcher = db.session();
    std::thread::scope(|scope| {
        let armed = base::stop::arm(point);
        let subject = armed.subject();
        // A session belongs to its thread.
        let worker = scope.spawn(move || subject.run(|| db.session().run(sql)));
        let began = std::time::Instant::now();
        let mut said = String::new();
        while began.elapsed() < base::stop::PATIENCE {
            said = watcher.run(question);
            if said == answer || worker.is_finished() {
                break;
            }
            std::thread::yield_now();
        }
        armed.release();
        assert_eq!(said, answer, "{sql}");
        assert_eq!(worker.join().unwrap(), "", "{sql}");
    });
}

/// Other sessions see how far COPY, CREATE INDEX, REINDEX and VACUUM FULL have come.
#[test]
fn commands_show_their_progress() {
    let db = database();
    let mut s = db.session();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows");
    let rows: Vec<String> = (1..=2000).map(|n| format!("{n}\tx\n")).collect();
    std::fs::write(&file, rows.concat()).unwrap();
    s.check(&[("CREATE TABLE p (a int, b text) WITH (autovacuum_enabled=off)", "")]);
    watch(
        &db,
        "sql.copy.shown",
        &format!("COPY p FROM '{}' WHERE a % 2 = 0", file.display()),
        "SELECT relid::regclass, command, type, bytes_processed = bytes_total, tuples_excluded FROM pg_stat_progress_copy",
        "p|COPY FROM|FILE|t|500",
    );
    let pages = s.run("SELECT pg_relation_size('p') / 8192");
    s.check(&[(
        "COPY (SELECT command, type, relid, tuples_processed FROM pg_stat_progress_copy) TO STDOUT",
        "COPY TO\\tPIPE\\t0\\t0\\n",
    )]);
    watch(
        &db,
        "sql.index.build.sorting",
        "CREATE INDEX p_a ON p (a)",
        "SELECT relid::regclass, command, phase, blocks_total, blocks_done, tuples_total, tuples_done FROM pg_stat_progress_create_index",
        &format!("p|CREATE INDEX|building index: sorting live tuples|{pages}|{pages}|1000|0"),
    );
    watch(
        &db,
        "sql.index.build.sorting",
        "REINDEX INDEX p_a",
        "SELECT index_relid::regclass, command FROM pg_stat_progress_create_index WHERE tuples_total > 0",
        "p_a|REINDEX",
    );
    watch(
        &db,
        "sql.compact.written",
        "VACUUM FULL p",
        "SELECT relid::regclass, command, phase, heap_blks_total, heap_blks_scanned, heap_tuples_scanned, heap_tuples_written \
         FROM pg_stat_progress_cluster WHERE heap_tuples_written = 1000",
        &format!("p|VACUUM FULL|seq scanning heap|{pages}|{pages}|1000|1000"),
    );
    watch(
        &db,
        "sql.compact.written",
        "CLUSTER p USING p_a",
        "SELECT relid::regclass, command, phase, cluster_index_relid::regclass, heap_tuples_scanned, heap_tuples_written \
         FROM pg_stat_progress_cluster WHERE heap_tuples_written = 1000",
        "p|CLUSTER|writing new heap|p_a|1000|1000",
    );
    watch(
        &db,
        "sql.index.build.sorting",
        "VACUUM FULL p",
        "SELECT phase, index_rebuild_count FROM pg_stat_progress_cluster WHERE phase = 'rebuilding index'",
        "rebuilding index|0",
    );
    // CONCURRENTLY says whom it waits for.
    let mut other = db.session();
    other.check(&[("BEGIN", ""), ("INSERT INTO p VALUES (0, 'waited for')", "")]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("CREATE INDEX CONCURRENTLY p_b ON p (b)"));
        let question = "SELECT c.command, c.phase, c.lockers_total, c.lockers_done, a.state FROM pg_stat_progress_create_index c \
                        JOIN pg_stat_activity a ON a.pid = c.current_locker_pid";
        let answer =
            "CREATE INDEX CONCURRENTLY|waiting for writers before build|1|0|idle in transaction";
        let began = std::time::Instant::now();
        let mut said = String::new();
        while said != answer && began.elapsed() < base::stop::PATIENCE && !worker.is_finished() {
            said = s.run(question);
            std::thread::yield_now();
        }
        other.check(&[("COMMIT", "")]);
        assert_eq!(said, answer);
        assert_eq!(worker.join().unwrap(), "");
    });
    s.check(&[
        ("SELECT count(*) FROM pg_stat_progress_create_index", "0"),
        ("SELECT count(*) FROM pg_stat_progress_copy", "0"),
        ("SELECT count(*) FROM p WHERE b = 'waited for'", "1"),
    ]);
}

/// The numbers in a line, names with digits in quotes left out.
fn numbers(line: &str) -> Vec<f64> {
    let outside: String = line.split('"').step_by(2).collect();
    outside
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|word| word.trim_matches('.').parse().ok())
        .collect()
}

/// VERBOSE's lines are PostgreSQL's, in its order, and their numbers are what the maps, the sizes, the catalog and the log say.
#[test]
fn report_lines_tell_the_truth() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("CREATE EXTENSION pg_visibility", ""),
        ("CREATE TABLE r (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)", ""),
        ("INSERT INTO r SELECT g, repeat('x', 50) FROM generate_series(1, 6000) g", ""),
        ("DELETE FROM r WHERE a % 3 = 0", ""),
    ]);
    let lsn = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let before: f64 = s.run(lsn).parse().unwrap();
    let said = s.run("VACUUM (FREEZE, VERBOSE, INDEX_CLEANUP on, PROCESS_TOAST off) r");
    let after: f64 = s.run(lsn).parse().unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let heads = [
        "INFO 00000 aggressively vacuuming \"postgres.public.r\"",
        "INFO 00000 finished vacuuming \"postgres.public.r\": index scans: 1",
        "pages: 0 removed, ",
        "tuples: 2000 removed, 4000 remain, 0 are dead but not yet removable",
        "removable cutoff: ",
        "new relfrozenxid: ",
        "frozen: ",
        "visibility map: ",
        "index scan needed: ",
        "index \"r_pkey\": pages: ",
        "avg read rate: ",
        "buffer usage: ",
        "WAL usage: ",
        "system usage: CPU: user: ",
    ];
    for (line, head) in lines.iter().zip(heads) {
        assert!(line.starts_with(head), "{line} instead of {head}\n{said}");
    }
    assert!(lines.len() >= heads.len(), "{said}");
    let get = |n: usize| numbers(lines[n]);
    let mut one = |sql: &str| -> f64 { s.run(sql).parse().unwrap() };
    let pages = one("SELECT pg_relation_size('r') / 8192");
    assert_eq!(get(2), [0.0, pages, pages, 100.0, 0.0], "{said}");
    assert_eq!(get(4)[1], 0.0, "{said}");
    assert_eq!(get(5)[0], one("SELECT relfrozenxid::text::int FROM pg_class WHERE relname = 'r'"));
    assert_eq!(get(6), [pages, 100.0, 4000.0], "{said}");
    assert_eq!(get(7)[1], one("SELECT all_frozen FROM pg_visibility_map_summary('r')"), "{said}");
    assert_eq!(get(8), [pages, 100.0, 2000.0], "{said}");
    let index_pages = one("SELECT pg_relation_size('r_pkey') / 8192");
    assert_eq!(get(9), [index_pages, 0.0, 0.0, 0.0], "{said}");
    assert_eq!(get(11).len(), 3, "{said}");
    assert!(get(11)[0] + get(11)[1] >= pages, "{said}");
    let wal = get(12);
    assert!(wal[0] >= pages && wal[2] <= after - before, "{said}\n{}", after - before);
    assert!(wal[2] * 2.0 > after - before, "{said}\n{}", after - before);
    let said = s.run("ANALYZE VERBOSE r");
    let want = format!(
        "INFO 00000 analyzing \"public.r\"\nINFO 00000 \"r\": scanned {pages} of {pages} pages, containing 4000 live rows and 0 dead rows; \
         4000 rows in sample, 4000 estimated total rows\nINFO 00000 finished analyzing table \"postgres.public.r\"\navg read rate: "
    );
    assert!(said.starts_with(&want), "{said}");
    s.check(&[(
        "SELECT vacuum_count, analyze_count, n_live_tup, n_dead_tup, n_mod_since_analyze, n_ins_since_vacuum, \
         total_vacuum_time > 0, last_vacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'r'",
        "1|1|4000|0|0|0|t|t",
    )]);
}

/// EXPLAIN's WAL, and what JSON says of buffers, are of the whole statement.
#[test]
fn explain_tells_of_wal_and_buffers() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let quiet = "COSTS OFF, TIMING OFF, SUMMARY OFF";
    let insert = "INSERT INTO t SELECT generate_series(1, 1000)";
    let said = s.run(&format!("EXPLAIN (ANALYZE, WAL, {quiet}) {insert}"));
    let line = said.lines().last().unwrap();
    let figures = numbers(line);
    assert!(line.starts_with("WAL: records=") && line.contains(" bytes="), "{said}");
    assert!(figures[0] >= 1.0 && figures[figures.len() - 1] > 8000.0, "{said}");
    let said = s.run(&format!("EXPLAIN (ANALYZE, {quiet}) {insert}"));
    assert!(said.contains("Buffers: shared hit=") && !said.contains("WAL:"), "{said}");
    let said = s.run(&format!("EXPLAIN (ANALYZE, WAL, FORMAT JSON) {insert}"));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let top = &said[0]["Plan"];
    assert!(top["WAL Records"].as_u64() > Some(0) && top["WAL Bytes"].as_u64() > Some(8000));
    assert!(top["Shared Hit Blocks"].as_u64() > Some(0), "{said}");
    s.check(&[("EXPLAIN (WAL) SELECT 1", "22023 EXPLAIN option WAL requires ANALYZE")]);
}

/// The client is told of a setting that changes, by the first statement too.
#[test]
fn a_changed_setting_is_told() {
    let db = Database::new();
    let mut s = db.session();
    let first = s.session.reported_settings();
    assert!(first.iter().any(|(name, _)| name == "TimeZone"));
    assert_eq!(s.told_of_settings("SET timezone = 'Europe/Moscow'"), ["TimeZone=Europe/Moscow"]);
    assert_eq!(s.told_of_settings("SELECT 1"), [""; 0]);
    assert_eq!(s.told_of_settings("SET DateStyle = 'SQL'"), ["DateStyle=SQL, MDY"]);
}

/// What nodes tell of their work: rows refused, searches, look-ups in the table after changes, how rows were sorted.
#[test]
fn explain_tells_what_nodes_did() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (id int PRIMARY KEY, n int, t text)",
        "INSERT INTO w SELECT g, g % 10, repeat('x', 100) FROM generate_series(1, 5000) g",
        "VACUUM ANALYZE w",
    ]);
    let mut told = |sql: &str| {
        let said = s.run(&format!(
            "EXPLAIN (ANALYZE, COSTS off, TIMING off, BUFFERS off, SUMMARY off) {sql}"
        ));
        said.lines().map(|l| l.trim().to_owned()).collect::<Vec<_>>()
    };
    let has = |said: &[String], line: &str| {
        assert!(said.iter().any(|l| l.starts_with(line)), "{line}: {said:#?}");
    };
    has(&told("SELECT * FROM w WHERE n = 3"), "Rows Removed by Filter: 4500");
    let both = told("SELECT id FROM w WHERE id = ANY ('{7,8,4000}')");
    has(&both, "Heap Fetches: 0");
    has(&both, "Index Searches: 3");
    has(&told("SELECT * FROM w ORDER BY n, id LIMIT 3"), "Sort Method: top-N heapsort  Memory: ");
    has(&told("SELECT * FROM w ORDER BY n"), "Sort Method: quicksort  Memory: ");
    // Each of the loops refuses as many.
    let each = told(
        "SELECT (SELECT count(*) FROM w WHERE w.n > v.n AND w.id <= 10) FROM (VALUES (1), (1)) v (n)",
    );
    has(&each, "Rows Removed by Filter: 2");
    s.run_each(&["SET work_mem = '64kB'", "UPDATE w SET t = 'y' WHERE id <= 20"]);
    let json = s.run(
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM (SELECT * FROM w ORDER BY n OFFSET 0) o, \
         (SELECT count(id) FROM w WHERE id < 100) c",
    );
    for part in [
        "\"Sort Method\": \"external merge\"",
        "\"Sort Space Type\": \"Disk\"",
        "\"Heap Fetches\": ",
    ] {
        assert!(json.contains(part), "{part}: {json}");
    }
    assert!(!json.contains("\"Heap Fetches\": 0"), "{json}");
}

#[test]
fn a_setting_and_what_it_may_be() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT setting, max_val, context FROM pg_settings WHERE name = 'seq_page_cost'",
            "1|1.79769e+308|user",
        ),
        (
            "SELECT setting, enumvals, context, vartype FROM pg_settings WHERE name = 'io_method'",
            "sync|{sync,worker}|postmaster|enum",
        ),
        (
            "SET zero_damaged_pages = on",
            "22023 invalid value for parameter \"zero_damaged_pages\": \"on\"\nIt is \"off\", and nothing else, in this server.",
        ),
        ("SET trace_sort = off; SHOW trace_sort", "off"),
    ]);
    let all = s.run("SHOW ALL");
    // These are told to whoever names them.
    for unlisted in ["role", "session_authorization", "default_with_oids"] {
        assert!(!all.contains(&format!("\n{unlisted}|")), "{unlisted}");
        let listed = format!("SELECT count(*) FROM pg_settings WHERE name = '{unlisted}'");
        assert_eq!(s.run(&listed), "0", "{unlisted}");
        assert!(!s.run(&format!("SHOW {unlisted}")).contains("unrecognized"), "{unlisted}");
    }
    let names: Vec<&str> = all.lines().filter_map(|l| l.split('|').next()).collect();
    assert!(names.is_sorted_by_key(|n| n.to_ascii_lowercase()) && names.contains(&"io_workers"));
}

/// What reads plans finds PostgreSQL's members, in its order and shapes.
#[test]
fn a_plan_as_a_tree() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c text)",
        "SET enable_indexscan = off",
    ]);
    let said = s.run(
        "EXPLAIN (FORMAT JSON, COSTS OFF) SELECT b FROM t WHERE c = 'x' AND b > 3 ORDER BY b DESC, a",
    );
    let lines = [
        "[",
        "  {",
        "    \"Plan\": {",
        "      \"Node Type\": \"Sort\",",
        "      \"Parallel Aware\": false,",
        "      \"Async Capable\": false,",
        "      \"Disabled\": false,",
        "      \"Sort Key\": [\"b DESC\", \"a\"],",
        "      \"Plans\": [",
        "        {",
        "          \"Node Type\": \"Seq Scan\",",
        "          \"Parent Relationship\": \"Outer\",",
        "          \"Parallel Aware\": false,",
        "          \"Async Capable\": false,",
        "          \"Relation Name\": \"t\",",
        "          \"Alias\": \"t\",",
        "          \"Disabled\": false,",
        "          \"Filter\": \"((c = 'x'::text) AND (b > 3))\"",
        "        }",
        "      ]",
        "    }",
        "  }",
        "]",
    ];
    assert_eq!(said, lines.join("\n"));
    s.run_each(&["SET enable_seqscan = off"]);
    let tree = |s: &mut crate::support::Connection, options: &str, query: &str| {
        let said = s.run(&format!("EXPLAIN (FORMAT JSON, {options}) {query}"));
        serde_json::from_str::<serde_json::Value>(&said).unwrap()[0].clone()
    };
    let told =
        tree(&mut s, "ANALYZE, SUMMARY OFF", "SELECT count(*) FROM t WHERE c = 'x' GROUP BY b");
    assert!(told["Planning Time"].is_null() && told["Execution Time"].is_null(), "{told}");
    assert!(told["Triggers"].is_array() && told["Planning"]["Shared Hit Blocks"].is_u64());
    let top = &told["Plan"];
    assert_eq!((&top["Strategy"], &top["Group Key"][0]), (&"Hashed".into(), &"b".into()), "{told}");
    let scan = &top["Plans"][0];
    assert_eq!((&scan["Disabled"], &scan["Rows Removed by Filter"]), (&true.into(), &0.into()));
    let told = tree(
        &mut s,
        "COSTS OFF, SUMMARY ON",
        "SELECT b FROM t GROUP BY GROUPING SETS ((a, b), ())",
    );
    assert!(told["Planning Time"].is_f64());
    let sets = serde_json::json!([{ "Hash Keys": [["a", "b"]] }, { "Group Keys": [[]] }]);
    assert_eq!(told["Plan"]["Grouping Sets"], sets, "{told}");
}
