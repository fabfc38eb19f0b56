-- Access strategies, WAL syncs and the failsafe.
\! pgbench -i -q -s 1 -I dtG postgres 2>/dev/null
ALTER TABLE pgbench_accounts SET (autovacuum_enabled = off);
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 3 = 0;
VACUUM (BUFFER_USAGE_LIMIT 0) pgbench_accounts;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 3 = 0;
VACUUM (BUFFER_USAGE_LIMIT 256) pgbench_accounts;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 3 = 0;
VACUUM (BUFFER_USAGE_LIMIT 1024) pgbench_accounts;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 3 = 0;
VACUUM (BUFFER_USAGE_LIMIT 4096) pgbench_accounts;
SELECT backend_type, object, context, writes >= 0, fsyncs IS NULL FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'vacuum';
SELECT object, context FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'wal' AND context = 'normal';
SELECT sum(writes) IS NOT NULL AS writes, sum(hits) > 0 AS hits, sum(extends) > 0 AS extends FROM pg_stat_io WHERE object = 'relation';
SELECT sum(fsyncs) > 0, sum(writes) > 0, sum(write_bytes) > 0 FROM pg_stat_io WHERE object = 'wal';
SELECT wal_records > 0, wal_fpi >= 0, wal_bytes > 0, wal_buffers_full >= 0 FROM pg_stat_wal;
COPY pgbench_branches TO STDOUT;
CREATE TABLE copied (LIKE pgbench_accounts);
\! psql -XqAt -c "COPY pgbench_accounts TO STDOUT" postgres | psql -XqAt -c "COPY copied FROM STDIN" postgres
SELECT count(*), sum(abalance) = (SELECT sum(abalance) FROM pgbench_accounts) FROM copied;
SELECT count(*) FROM pgbench_accounts WHERE filler IS NOT NULL;
SHOW vacuum_failsafe_age;
SELECT setting, min_val, max_val FROM pg_settings WHERE name = 'vacuum_failsafe_age';
SET vacuum_failsafe_age = 0;
VACUUM (VERBOSE) pgbench_accounts;
RESET vacuum_failsafe_age;
SELECT pg_current_wal_lsn() > '0/0', pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') > 0;
