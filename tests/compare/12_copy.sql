CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, b bool, d date);
COPY t FROM STDIN;
1	plain	1.5	t	2024-01-01
2	\N	\N	f	\N
3	tab\there\\	0	true	2024-02-29
4		9	0	1999-12-31
\.
SELECT * FROM t ORDER BY id;
COPY t TO STDOUT;
COPY t (id, v) TO STDOUT WITH (FORMAT csv, HEADER);
COPY t TO STDOUT (FORMAT csv, NULL 'nil', QUOTE '''', DELIMITER ';', FORCE_QUOTE (v));
COPY t TO STDOUT CSV;
COPY (SELECT id * 2 AS dbl, v FROM t WHERE id < 3 ORDER BY id) TO STDOUT WITH DELIMITER '|' NULL 'NULL';
COPY t (id, v) FROM STDIN WITH (FORMAT csv);
10,"quoted, with ""quotes"""
11,
12,""
13,"two
lines"
\.
SELECT id, v, v IS NULL FROM t WHERE id >= 10 ORDER BY id;
COPY t (id, v) FROM STDIN WITH (FORMAT csv, HEADER true, NULL 'nil');
id,v
20,nil
21,x
\.
SELECT id, v FROM t WHERE id >= 20 ORDER BY id;
COPY t (id) FROM STDIN;
1
\.
COPY t (id) FROM STDIN;
abc
\.
COPY t (id, v) FROM STDIN;
50
\.
COPY t (id, v) FROM STDIN;
50	a	b
\.
COPY t (id, v) FROM STDIN (FORMAT csv);
60,"open
\.
COPY t (id, nope) FROM STDIN;
\.
COPY nope FROM STDIN;
\.
COPY nope TO STDOUT;
COPY t (id, v) FROM STDIN WHERE id > 70;
70	no
71	yes
\.
SELECT id, v FROM t WHERE id >= 70;
BEGIN;
TRUNCATE t;
COPY t (id, v) FROM STDIN WITH (FREEZE);
1	frozen
2	rows
\.
COMMIT;
SELECT id, v FROM t ORDER BY id;
COPY t FROM STDIN WITH (FORMAT nonsense);
\.
COPY t TO STDOUT WITH (NONSENSE);
COPY t TO STDOUT WITH (DELIMITER 'ab');
CREATE VIEW v AS SELECT * FROM t;
COPY v TO STDOUT;
COPY (SELECT * FROM v ORDER BY id) TO STDOUT;
COPY (VALUES (1, E'back\\slash\ttab\nnew'), (2, NULL)) TO STDOUT;
COPY (INSERT INTO t (id, v) VALUES (90, 'ret') RETURNING id, v) TO STDOUT;
COPY t (id, v) FROM STDIN;
91	\x41\101\r
\.
SELECT id, v, length(v) FROM t WHERE id = 91;
COPY t TO '/nonexistent/dir/file';
COPY (SELECT 1, 'a'::text, NULL) TO STDOUT (FORMAT csv, FORCE_QUOTE *);
