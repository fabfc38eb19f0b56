-- What was once found missing.
SELECT pg_typeof('x'), pg_typeof(NULL), pg_typeof('x'::text), pg_typeof('x' || 'y'), pg_typeof((SELECT 'x')), pg_typeof(upper('x'));
SELECT num_nulls('a', NULL), format('%s %s', 'a', 1), concat('a', NULL, 'b'), count('x'), json_build_array('a', 1);
SELECT true, false AS no, true::text, CASE WHEN true THEN true END, not true;
SELECT -(-2147483648), pg_typeof(-(-2147483648)), -(5), -(-(7)), - 2147483648, pg_typeof(-2147483648), -(-9223372036854775808);
SELECT -(2)::int, - 2 ^ 2, 2 ^ -(-3), -(1.5);
-- A recursive query is one that names itself where the name means itself.
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT b FROM (WITH t AS (SELECT 2 AS b) SELECT b FROM t) x) SELECT * FROM t;
CREATE TABLE x (a int);
INSERT INTO x VALUES (5);
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a FROM (SELECT t.a FROM x t) y) SELECT * FROM t;
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t WHERE a < (SELECT count(*) + 2 FROM (WITH u AS (SELECT 1), t AS (SELECT 2) SELECT * FROM t) z)) SELECT * FROM t;
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT n + 1 FROM x AS y, LATERAL (SELECT t.a FROM t) AS l(n) WHERE n < 3) SELECT * FROM t;
-- Prepared statements and cursors show themselves.
PREPARE one (int) AS SELECT $1 + 1;
PREPARE two AS UPDATE x SET a = 6 WHERE a = 5;
SELECT name, statement, parameter_types, from_sql, generic_plans FROM pg_prepared_statements ORDER BY name;
EXECUTE two;
DEALLOCATE one;
SELECT name FROM pg_prepared_statements;
DEALLOCATE ALL;
SELECT count(*) FROM pg_prepared_statements;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM x;
DECLARE d SCROLL CURSOR WITH HOLD FOR SELECT a FROM x;
DECLARE e NO SCROLL CURSOR FOR SELECT a FROM x ORDER BY a;
DECLARE f BINARY NO SCROLL CURSOR FOR SELECT a FROM x;
FETCH c;
SELECT name, statement, is_holdable, is_binary, is_scrollable, creation_time <= now() + interval '1 hour' FROM pg_cursors WHERE name <> '' ORDER BY name;
CLOSE c;
SELECT name FROM pg_cursors WHERE name <> '' ORDER BY name;
COMMIT;
SELECT name FROM pg_cursors WHERE name <> '';
CLOSE ALL;
SELECT count(*) FROM pg_cursors WHERE name <> '';
