-- The ring: how much VACUUM writes, by BUFFER_USAGE_LIMIT. Ten thousand rows in place of ten million.
CREATE TABLE table1 (id SERIAL PRIMARY KEY, filler VARCHAR(32));
ALTER TABLE table1 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false, log_autovacuum_min_duration = 0);
SELECT reloptions FROM pg_class WHERE relname = 'table1';
INSERT INTO table1 (filler) SELECT md5(random()::text) FROM generate_series(1, 10000);
CREATE INDEX ON table1 (filler);
UPDATE table1 SET filler = md5(random()::text) WHERE id <= (SELECT max(id) FROM table1) * 2 / 4;
SELECT count(*), count(DISTINCT id), min(length(filler)), max(length(filler)) FROM table1;
CHECKPOINT;
SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val FROM pg_settings WHERE name IN ('vacuum_buffer_usage_limit', 'shared_buffers', 'log_checkpoints') ORDER BY name;
ALTER SYSTEM SET vacuum_buffer_usage_limit = '256kB';
ALTER SYSTEM SET log_checkpoints = on;
ALTER SYSTEM SET autovacuum_naptime TO '1h';
SHOW vacuum_buffer_usage_limit;
-- restart
SHOW vacuum_buffer_usage_limit;
SELECT name, setting, source, sourcefile ~ 'postgresql.auto.conf$' AS from_file, pending_restart FROM pg_settings WHERE name IN ('vacuum_buffer_usage_limit', 'autovacuum_naptime') ORDER BY name;
CREATE EXTENSION IF NOT EXISTS pg_buffercache;
-- Nothing of the table is cached after a restart; a VACUUM brings in its ring, no more than an eighth of shared_buffers, and leaves it dirty or clean.
SELECT count(*) FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) WHERE c.relname = 'table1' AND b.isdirty;
VACUUM (VERBOSE, BUFFER_USAGE_LIMIT '256 kB') table1;
SELECT c.relname, count(*) FILTER (WHERE b.isdirty) + count(*) FILTER (WHERE NOT b.isdirty) = count(*) AS dirty_and_clean
  FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  WHERE c.relname LIKE 'table1%' GROUP BY c.relname ORDER BY count(*) > 0, c.relname;
SELECT c.relname, CASE WHEN b.isdirty THEN 'dirty' ELSE 'clean' END AS state, count(*)
  FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid)
  GROUP BY 1, 2 HAVING count(*) > 1000000 ORDER BY 3 DESC;
SELECT c.relname, count(*) * current_setting('block_size')::int <= 256 * 1024 + 8192 * 16 AS bounded
  FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  WHERE c.relname = 'table1' GROUP BY c.relname;
SELECT count(*) = (SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers') FROM pg_buffercache;
SELECT buffers_used + buffers_unused = (SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers') AS whole, buffers_dirty >= 0 FROM pg_buffercache_summary();
SELECT count(*), sum(buffers) = (SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers') FROM pg_buffercache_usage_counts();
CHECKPOINT;
SELECT count(*) FROM pg_buffercache b JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) WHERE c.relname = 'table1' AND b.isdirty;
VACUUM (BUFFER_USAGE_LIMIT 0) table1;
VACUUM (BUFFER_USAGE_LIMIT 1024) table1;
VACUUM (BUFFER_USAGE_LIMIT '16 GB', ANALYZE) table1;
ANALYZE (BUFFER_USAGE_LIMIT '1 MB', VERBOSE) table1;
SET vacuum_buffer_usage_limit = 0;
VACUUM ANALYZE table1;
RESET vacuum_buffer_usage_limit;
SHOW vacuum_buffer_usage_limit;
SELECT n_live_tup, n_dead_tup, vacuum_count, analyze_count, autovacuum_count FROM pg_stat_user_tables WHERE relname = 'table1';
SELECT reltuples, relpages > 0, relallvisible = relpages FROM pg_class WHERE relname = 'table1';
ALTER TABLE table1 RESET (autovacuum_enabled, toast.autovacuum_enabled);
SELECT reloptions FROM pg_class WHERE relname = 'table1';
ALTER SYSTEM RESET ALL;
-- restart
SHOW vacuum_buffer_usage_limit;
\! vacuumdb --table=table1 --verbose --analyze postgres 2>&1 | grep -c 'finished vacuuming "postgres.public.table1"'
\! vacuumdb --table=table1 --disable-page-skipping --freeze --no-truncate --skip-locked --parallel=2 --quiet postgres
\! vacuumdb --all --analyze-only --jobs=2 --quiet
SELECT vacuum_count, analyze_count FROM pg_stat_user_tables WHERE relname = 'table1';
