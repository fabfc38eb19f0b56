//! What clients do to tables, indexes, databases and each other.

use super::tables::TABLES;
use super::worker::{Step, Worker};
use std::time::Duration;

/// A table of one's own: made, changed in shape, filled, checked, dropped; any of it rolled back.
pub fn own_table(w: &mut Worker<'_>) -> Step<()> {
    let (id, number) = (w.id, w.below(6));
    let name = format!("own{id}_{number}");
    let n = 50 + w.below(400);
    w.transaction("BEGIN", |w| {
        w.exec(&format!("DROP TABLE IF EXISTS {name} CASCADE"))?;
        w.exec(&format!("CREATE TABLE {name} (id serial PRIMARY KEY, a int, b text DEFAULT 'b')"))?;
        w.exec(&format!("INSERT INTO {name} (a) SELECT g FROM generate_series(1, {n}) g"))?;
        w.exec(&format!("CREATE INDEX ON {name} (a)"))?;
        if w.one_in(3) {
            w.exec(&format!("SAVEPOINT s; ALTER TABLE {name} ALTER a TYPE text; DROP TABLE {name}; ROLLBACK TO s"))?;
        }
        Ok(())
    })?;
    let sum = (n * (n + 1) / 2).to_string();
    for _ in 0..w.below(4) {
        let sql = match w.below(12) {
            9 => format!("ALTER TABLE {name} SET UNLOGGED"),
            10 => format!("ALTER TABLE {name} SET LOGGED"),
            11 => format!("BEGIN; TRUNCATE {name}; INSERT INTO {name} (a) VALUES (1); ROLLBACK"),
            0 => format!("ALTER TABLE {name} ADD COLUMN IF NOT EXISTS c int DEFAULT 7"),
            1 => format!("ALTER TABLE {name} ALTER a TYPE bigint"),
            2 => format!("ALTER TABLE {name} DROP COLUMN IF EXISTS c"),
            3 => format!(
                "ALTER TABLE {name} RENAME TO {name}_x; ALTER TABLE {name}_x RENAME TO {name}"
            ),
            4 => format!("VACUUM FULL {name}"),
            5 => format!("CLUSTER {name} USING {name}_pkey"),
            6 => format!("REINDEX TABLE {name}"),
            7 => {
                format!("ALTER TABLE {name} SET (autovacuum_vacuum_threshold = 5, fillfactor = 80)")
            }
            _ => format!("UPDATE {name} SET b = b || 'b'"),
        };
        // The transaction may have been rolled back.
        w.exec_may(&sql, &["42P01"])?;
        w.expect(&format!("SELECT sum(a) FROM {name}"), &sum)?;
    }
    if w.one_in(2) {
        w.exec(&format!("DROP TABLE IF EXISTS {name}"))?;
    }
    Ok(())
}

/// The shape of a table that others read.
pub fn shape(w: &mut Worker<'_>) -> Step<()> {
    let n = w.below(4);
    let sql = match w.below(8) {
        0 => format!("ALTER TABLE shape ADD COLUMN IF NOT EXISTS x{n} int DEFAULT {n}"),
        1 => format!("ALTER TABLE shape DROP COLUMN IF EXISTS x{n}"),
        2 => format!("ALTER TABLE shape ALTER a TYPE {}", w.pick(&["bigint", "int", "numeric"])),
        3 => "ALTER TABLE shape RENAME b TO bb; ALTER TABLE shape RENAME bb TO b".into(),
        4 => format!("ALTER TABLE shape ADD COLUMN IF NOT EXISTS x{n} text DEFAULT random()::text"),
        5 => "UPDATE shape SET b = b WHERE id % 5 = 0".into(),
        6 => format!("ALTER TABLE shape SET (fillfactor = {})", 50 + n * 10),
        _ => "ALTER TABLE shape ADD CONSTRAINT a_ok CHECK (a > 0); ALTER TABLE shape DROP CONSTRAINT a_ok".into(),
    };
    w.exec_may(&sql, &["42710"])?;
    w.expect("SELECT count(*), sum(a) FROM shape", "400|561400")
}

/// A table that is logged again at each commit, whatever it was before.
pub fn swing(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    w.transaction(begin, |w| {
        w.exec("ALTER TABLE swing SET UNLOGGED")?;
        for _ in 0..w.below(3) {
            let sql = w.pick(&[
                "UPDATE swing SET t = t || '' WHERE id % 3 = 0",
                "SAVEPOINT s; TRUNCATE swing; ROLLBACK TO s",
                "ALTER TABLE swing ALTER v TYPE bigint; ALTER TABLE swing ALTER v TYPE int",
                "ALTER TABLE swing DROP CONSTRAINT swing_pkey; ALTER TABLE swing ADD PRIMARY KEY (id)",
                "DELETE FROM swing WHERE id <= 100; INSERT INTO swing SELECT g, g, repeat('t', g * 20) FROM generate_series(1, 100) g",
                "CREATE TEMP TABLE was ON COMMIT DROP AS SELECT * FROM swing; TRUNCATE swing; INSERT INTO swing SELECT * FROM was; DROP TABLE was",
            ]);
            w.exec(sql)?;
        }
        w.exec("ALTER TABLE swing SET LOGGED")?;
        if w.one_in(3) {
            w.exec("UPDATE swing SET t = t || '' WHERE id % 5 = 0")?;
        }
        Ok(())
    })
}

/// Indexes that come, are rebuilt and go among writers.
pub fn indexes(w: &mut Worker<'_>) -> Step<()> {
    let n = w.below(5);
    let (table, columns) = w.pick(&[
        ("account", "(balance)"),
        ("account", "(owner, balance) INCLUDE (note)"),
        ("toast", "(sum)"),
        ("child", "(t, p)"),
        ("tag", "(t, k)"),
        ("queue", "(v) WHERE v > 10"),
        ("upsert", "((n + 1))"),
        ("ledger_part", "(t, n)"),
        ("aged", "(v)"),
        ("aged", "(g, id) INCLUDE (v)"),
    ]);
    let unique = w.pick(&[("account", "(id)"), ("tag", "(k, id)"), ("queue", "(id, v)")]);
    let index = w.pick(&[
        "account_pkey",
        "account_owner",
        "tag_k",
        "tag_pkey",
        "queue_pkey",
        "child_p",
        "child_pkey",
        "parent_pkey",
        "upsert_pkey",
        "ledger_pkey",
        "ledger_part_n",
        "toast_pkey",
        "aged_pkey",
        "aged_g",
    ]);
    let any = w.pick(&TABLES);
    let sql = match w.below(8) {
        0 | 1 => format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS soak{n} ON {table} {columns}"),
        2 => format!(
            "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS soak{n} ON {} {}",
            unique.0, unique.1
        ),
        3 => format!("DROP INDEX CONCURRENTLY IF EXISTS soak{n}"),
        4 => format!("CREATE INDEX IF NOT EXISTS soak{n} ON {table} {columns}"),
        5 => format!("REINDEX INDEX CONCURRENTLY {index}"),
        6 => format!("REINDEX TABLE CONCURRENTLY {any}"),
        _ => format!("REINDEX INDEX {index}"),
    };
    w.exec_may(&sql, &["42P07", "42704", "42P01"]).map(drop)
}

/// Removes what cancelled builds left.
pub fn no_invalid_indexes(w: &mut Worker<'_>) -> Step<()> {
    let names = w.table("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid AND indrelid > 16383 AND indrelid NOT IN (SELECT oid FROM pg_class WHERE relkind = 't')")?;
    for name in names.lines() {
        w.exec(&format!("DROP INDEX IF EXISTS {name}"))?;
    }
    Ok(())
}

/// VACUUM in all its ways, of ours and of catalogs.
pub fn vacuum(w: &mut Worker<'_>) -> Step<()> {
    let mut options = Vec::new();
    for option in [
        "FREEZE",
        "FULL",
        "ANALYZE",
        "DISABLE_PAGE_SKIPPING",
        "SKIP_LOCKED",
        "PARALLEL 2",
        "PARALLEL 0",
        "INDEX_CLEANUP on",
        "INDEX_CLEANUP off",
        "TRUNCATE off",
        "PROCESS_TOAST off",
        "BUFFER_USAGE_LIMIT '128 kB'",
        "BUFFER_USAGE_LIMIT 0",
        "VERBOSE",
    ] {
        let odds = if option == "FULL" { 12 } else { 6 };
        let name = option.split(' ').next().unwrap_or(option);
        let clash = |o: &&str| {
            o.starts_with(name)
                || (name == "FULL" && (o.starts_with("PARALLEL") || o.starts_with("DISABLE")))
        };
        if w.one_in(odds) && !options.iter().any(clash) {
            options.push(option);
        }
    }
    if options.contains(&"FULL") {
        options.retain(|o| {
            !["PARALLEL 2", "PARALLEL 0", "DISABLE_PAGE_SKIPPING", "PROCESS_TOAST off"].contains(o)
                && !o.starts_with("BUFFER")
        });
    }
    let catalogs = [
        "pg_class",
        "pg_attribute",
        "pg_index",
        "pg_type",
        "pg_depend",
        "pg_statistic",
        "pg_attrdef",
        "pg_constraint",
        "pg_database",
    ];
    let table = match w.below(12) {
        0 => String::new(),
        1 | 2 => w.pick(&catalogs).to_owned(),
        _ => w.pick(&TABLES).to_owned(),
    };
    if table.is_empty() {
        options.retain(|o| *o != "FULL");
    }
    let list =
        if options.is_empty() { String::new() } else { format!("({}) ", options.join(", ")) };
    let sql = match w.below(12) {
        0 => format!("ANALYZE {table}"),
        1 => {
            let (table, index) = w.pick(&[
                ("account", "account_owner"),
                ("tag", "tag_k"),
                ("child", "child_p"),
                ("queue", "queue_pkey"),
                ("aged", "aged_g"),
                ("aged", "aged_pkey"),
                ("ledger_part", "ledger_part_n"),
            ]);
            format!("CLUSTER {table} USING {index}")
        }
        2 => {
            let age = w.pick(&["0", "100", "50000000"]);
            format!("SET vacuum_freeze_min_age = {age}")
        }
        3 => format!("SET maintenance_work_mem = '{}'", w.pick(&["1MB", "64kB", "64MB"])),
        _ => format!("VACUUM {list}{table}"),
    };
    w.exec(&sql).map(drop)
}

/// Cancels and ends others, burns XIDs, makes checkpoints, reloads.
pub fn mischief(w: &mut Worker<'_>) -> Step<()> {
    let pause = 20 + w.below(200);
    w.world.pause(Duration::from_millis(pause));
    let other = "FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    match w.below(20) {
        0 => {
            w.exec(&format!("SELECT pg_terminate_backend(pid) {other} AND backend_type = 'client backend' ORDER BY random() LIMIT 1"))?;
        }
        1..=6 => {
            w.exec(&format!("SELECT pg_cancel_backend(pid) {other} AND state = 'active' AND backend_type = 'client backend' ORDER BY random() LIMIT 1"))?;
        }
        7 => {
            w.exec(&format!(
                "SELECT pg_cancel_backend(pid) {other} AND backend_type = 'autovacuum worker'"
            ))?;
        }
        8..=11 => {
            let n = 1 + w.below(6000);
            w.exec(&format!("SELECT ebb_burn_xids({n})"))?;
        }
        12 => {
            w.exec("CHECKPOINT")?;
        }
        13 => {
            let cost = w.pick(&["0", "1", "2"]);
            w.exec(&format!("ALTER SYSTEM SET autovacuum_vacuum_cost_delay = {cost}"))?;
            w.exec("SELECT pg_reload_conf()")?;
        }
        14 => {
            w.exec("SELECT count(*) FROM pg_stat_all_tables; SELECT count(*) FROM pg_stat_activity; SELECT count(*) FROM pg_locks")?;
        }
        15 => {
            w.exec("SELECT count(*) FROM ebb_vacuum_backlog; EXPLAIN VACUUM account")?;
        }
        16 => {
            w.exec("SELECT count(*) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indexrelid = c.oid")?;
        }
        _ => {}
    }
    Ok(())
}

/// A database that comes, holds something, and goes.
pub fn third_database(w: &mut Worker<'_>) -> Step<()> {
    let may = &["42P04", "55006", "3D000"];
    w.exec_may("DROP DATABASE IF EXISTS third", may)?;
    w.exec_may("CREATE DATABASE third", may)?;
    let mut rng_fates = Vec::new();
    let seed = w.below(1 << 40);
    let mut inside = Worker::new(w.id + 100, seed, w.world, "third", &mut rng_fates);
    let done = (|| {
        inside.exec("CREATE TABLE t (id int PRIMARY KEY, b text)")?;
        inside.exec("INSERT INTO t SELECT g, repeat('b', g) FROM generate_series(1, 500) g")?;
        inside.exec("DELETE FROM t WHERE id % 2 = 0")?;
        inside.exec("VACUUM (ANALYZE) t")?;
        inside.expect("SELECT count(*), sum(length(b)) FROM t", "250|62500")
    })();
    inside.leave(true);
    let force = w.pick(&["", " WITH (FORCE)"]);
    w.exec_may(&format!("DROP DATABASE third{force}"), may)?;
    done
}
