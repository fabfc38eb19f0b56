-- What INDEX_CLEANUP costs.
\! pgbench -i -q -s 1 postgres 2>/dev/null
\dt+
\di+
ALTER TABLE pgbench_accounts SET (autovacuum_enabled = off);
UPDATE pgbench_accounts SET aid = aid WHERE aid <= 1000;
VACUUM (INDEX_CLEANUP on, VERBOSE) pgbench_accounts;
SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts';
UPDATE pgbench_accounts SET aid = aid WHERE aid <= 1000;
VACUUM (INDEX_CLEANUP off, VERBOSE) pgbench_accounts;
UPDATE pgbench_accounts SET aid = aid WHERE aid <= 10;
VACUUM (INDEX_CLEANUP auto, VERBOSE) pgbench_accounts;
VACUUM (INDEX_CLEANUP) pgbench_accounts;
ALTER TABLE pgbench_accounts SET (vacuum_index_cleanup = off);
SELECT reloptions FROM pg_class WHERE relname = 'pgbench_accounts';
VACUUM (VERBOSE) pgbench_accounts;
ALTER TABLE pgbench_accounts SET (vacuum_index_cleanup = auto);
VACUUM (VERBOSE, INDEX_CLEANUP on, PARALLEL 0) pgbench_accounts;
ALTER TABLE pgbench_accounts RESET (vacuum_index_cleanup);
SELECT count(*), sum(abalance), min(aid), max(aid) FROM pgbench_accounts;
SET enable_seqscan = off;
SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN 1 AND 1000;
SELECT pg_size_pretty(pg_relation_size('pgbench_accounts_pkey'::regclass));
SELECT indexrelid::regclass, indisvalid, indisready FROM pg_index WHERE indrelid = 'pgbench_accounts'::regclass;
