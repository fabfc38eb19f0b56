-- Forgetting a relation's buffers: a hundred small tables in place of a thousand.
SELECT format('CREATE TABLE t%s (a int)', g) FROM generate_series(1, 100) g \gexec
SELECT format('INSERT INTO t%s VALUES (%s)', g, g) FROM generate_series(1, 100) g \gexec
SELECT format('DELETE FROM t%s', g) FROM generate_series(1, 50) g \gexec
SELECT format('VACUUM t%s', g) FROM generate_series(1, 50) g \gexec
SELECT format('TRUNCATE t%s', g) FROM generate_series(51, 99) g \gexec
BEGIN;
CREATE TABLE gone AS SELECT generate_series(1, 10000) AS a;
SELECT count(*) FROM gone;
ROLLBACK;
SELECT to_regclass('gone');
DROP TABLE t98, t99;
-- crash
SELECT count(*), sum(pg_relation_size(oid)) FROM pg_class WHERE relname ~ '^t[0-9]+$';
SELECT a FROM t100;
SELECT to_regclass('gone'), to_regclass('t99');
SELECT pg_is_in_recovery();
