-- Freezing: ordinary, eager and aggressive vacuums of a history table that only grows.
SELECT name, setting, min_val, max_val, context FROM pg_settings WHERE name IN ('vacuum_freeze_min_age', 'vacuum_freeze_table_age', 'autovacuum_vacuum_insert_threshold', 'autovacuum_vacuum_insert_scale_factor', 'vacuum_max_eager_freeze_failure_rate') ORDER BY name;
SELECT setting, context FROM pg_settings WHERE name = 'autovacuum_freeze_max_age';
CREATE TABLE history (id bigserial PRIMARY KEY, tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
ALTER TABLE history SET (autovacuum_enabled = off, vacuum_max_eager_freeze_failure_rate = 0.1, autovacuum_freeze_min_age = 100, autovacuum_freeze_table_age = 100000, autovacuum_vacuum_insert_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.05);
INSERT INTO history (tid, bid, aid, delta, mtime) SELECT g % 10, 1, g, g % 100, now() FROM generate_series(1, 20000) g;
SET vacuum_freeze_min_age = 1000000;
VACUUM history;
SELECT relpages = relallvisible AS all_visible, relallfrozen <= relallvisible AS some_frozen FROM pg_class WHERE relname = 'history';
INSERT INTO history (tid, bid, aid, delta, mtime) SELECT g % 10, 1, g, g % 100, now() FROM generate_series(1, 20000) g;
SET vacuum_freeze_min_age = 0;
SET vacuum_max_eager_freeze_failure_rate = 0.03;
VACUUM (VERBOSE) history;
SET vacuum_freeze_table_age = 0;
VACUUM (VERBOSE) history;
SELECT age(relfrozenxid) < 100, relfrozenxid <> '0' FROM pg_class WHERE relname = 'history';
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING, VERBOSE) history;
SELECT datname, age(datfrozenxid) >= 0 FROM pg_database WHERE datname = current_database();
SELECT mxid_age(relminmxid) >= 0 FROM pg_class WHERE relname = 'history';
SELECT relname, n_ins_since_vacuum, vacuum_count, total_vacuum_time >= 0 FROM pg_stat_user_tables WHERE relname = 'history';
SELECT count(*) FROM pg_stat_progress_vacuum;
\! pgbench -n -i -s 1 -q -I dtg postgres 2>/dev/null
\! pgbench -n -b simple-update -c 2 -t 100 -R 2000 postgres 2>&1 | grep -c '200/200'
SELECT count(*) FROM pgbench_history;
VACUUM (FREEZE) pgbench_history;
SELECT relallvisible = relpages AND relallfrozen = relpages FROM pg_class WHERE relname = 'pgbench_history';
