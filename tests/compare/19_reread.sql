-- What reading against the grain found to be answered otherwise.
CREATE TABLE par (id int PRIMARY KEY);
CREATE TABLE ch (q int DEFAULT 3 REFERENCES par ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
INSERT INTO par VALUES (3), (4);
INSERT INTO ch VALUES (3), (4);
-- who has the default already still has it when the default goes
DELETE FROM par WHERE id = 3;
UPDATE par SET id = 5 WHERE id = 3;
UPDATE par SET id = 9 WHERE id = 4;
SELECT q FROM ch;
-- volatile columns are evaluated in the order asked for, and only for the rows taken
CREATE SEQUENCE s;
CREATE TABLE src (v int);
INSERT INTO src VALUES (3), (1), (2);
SELECT nextval('s'), v FROM src ORDER BY v;
SELECT nextval('s'), v FROM src ORDER BY v DESC LIMIT 1;
SELECT currval('s');
SELECT nextval('s') n, v FROM src ORDER BY v, n;
SELECT nextval('s') + v n, -v FROM src ORDER BY v DESC;
SELECT v, sum(v), nextval('s') FROM src GROUP BY v ORDER BY v;
SELECT v, row_number() OVER (ORDER BY v DESC), nextval('s') FROM src ORDER BY v;
SELECT v, nextval('s') FROM src ORDER BY v FETCH FIRST 2 ROWS WITH TIES;
SELECT DISTINCT ON (v) v, nextval('s') FROM src ORDER BY v DESC;
CREATE TABLE dst (id int, v int);
INSERT INTO dst SELECT nextval('s'), v FROM src ORDER BY v;
SELECT * FROM dst ORDER BY v;
-- sets where only some of the parts are evaluated
SELECT CASE WHEN v = 1 THEN generate_series(1, 2) END FROM src;
SELECT coalesce(v, generate_series(1, 2)) FROM src;
SELECT CASE WHEN v = 1 THEN (SELECT max(g) FROM generate_series(1, 2) g) END FROM src ORDER BY v;
SELECT generate_series(1, CASE WHEN v > 1 THEN 2 ELSE 1 END) FROM src;
-- a recursive term may not take rows away
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT 2 WHERE NOT EXISTS (SELECT FROM r WHERE n = 2)) SELECT * FROM r LIMIT 3;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(n) + 3 FROM r)) SELECT * FROM r LIMIT 3;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM src LEFT JOIN r ON r.n = v WHERE r.n < 3) SELECT * FROM r;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r FULL JOIN src ON r.n = v WHERE r.n < 3) SELECT * FROM r;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r LEFT JOIN src ON r.n = v WHERE r.n < 3) SELECT * FROM r;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT 3 EXCEPT SELECT n + 1 FROM r WHERE n < 5)) SELECT * FROM r LIMIT 3;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM r INTERSECT ALL SELECT 2)) SELECT * FROM r LIMIT 3;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM r WHERE n < 5 INTERSECT SELECT 2)) SELECT * FROM r;
-- ages are in the days of the session
SET TimeZone TO 'America/New_York';
SELECT age(timestamptz '2024-03-31', timestamptz '2024-02-29');
SET DateStyle TO 'German';
SHOW DateStyle;
SELECT '31.01.2024'::date;
RESET DateStyle;
-- arrays of arrays, NUL in strings
SELECT ARRAY(SELECT ARRAY[g, g] FROM generate_series(1, 2) g), ARRAY(SELECT '{}'::int[] WHERE false);
SELECT ARRAY(SELECT NULL::int[]);
SELECT ARRAY(SELECT '{}'::int[]);
SELECT ARRAY(SELECT a FROM (VALUES ('{1}'::int[]), ('{1,2}')) x(a));
SELECT E'a\000b';
SELECT E'\x00';
-- generated columns go with what they are made of
CREATE TABLE g (a int, b int, c int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO g VALUES (1, 2);
ALTER TABLE g ALTER a TYPE text;
ALTER TABLE g ALTER c TYPE bigint;
INSERT INTO g VALUES (3, 4) RETURNING *, pg_typeof(c);
ALTER TABLE g DROP COLUMN a;
ALTER TABLE g DROP COLUMN a CASCADE;
SELECT * FROM g ORDER BY b;
INSERT INTO g VALUES (5) RETURNING *;
-- what a column's new type does to checks and partial indexes
CREATE TABLE k (a int CHECK (a < 100), b int);
INSERT INTO k SELECT n, n FROM generate_series(1, 50) n;
CREATE INDEX k_b ON k (b) WHERE a > 5;
ALTER TABLE k ALTER a TYPE numeric;
INSERT INTO k VALUES (200.5, 60);
INSERT INTO k VALUES (7.5, 70);
SET enable_seqscan = off;
SELECT b FROM k WHERE a > 5 AND b > 48;
SELECT b FROM k WHERE a > 7 AND b > 48;
ALTER TABLE k ALTER a TYPE int USING (a + 90)::int;
ALTER TABLE k ALTER a TYPE float8;
INSERT INTO k VALUES (101, 1);
INSERT INTO k VALUES (-1, 100);
SELECT b FROM k WHERE a > 7 AND b > 48;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'k_a_check';
