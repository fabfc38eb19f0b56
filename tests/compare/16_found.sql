-- What random statements found to be answered otherwise (`cargo run -p sim --bin differ`).
CREATE TABLE t (id int PRIMARY KEY, s text, b bytea);
INSERT INTO t VALUES (1, 'a', '\x61'), (2, 'b', '\x62'), (3, 'c', NULL);
-- a set of nothing is no row
SELECT * FROM unnest(NULL::int[]) WITH ORDINALITY;
SELECT count(*) FROM t, generate_series(NULL::int, 3);
SELECT id, unnest(NULL::int[]) FROM t;
-- the group of everything exists without rows
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t WHERE id > 10 GROUP BY GROUPING SETS ((id), ()));
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t WHERE id > 10 GROUP BY GROUPING SETS ((id), (s)));
SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM t WHERE id > 10 GROUP BY CUBE (id));
-- a grouping set makes NULL of constants and of equal columns too
SELECT GROUPING(a), a FROM (SELECT 5 FROM t) x(a) GROUP BY GROUPING SETS ((a), ()) ORDER BY 1;
SELECT a, b, count(*) FROM (SELECT id, id + 0 FROM t) x(a, b) GROUP BY GROUPING SETS ((a), (b)) ORDER BY 1, 2;
SELECT a FROM (SELECT id, '00:00'::time FROM t) x(a, c) GROUP BY CUBE (a, c) HAVING (c, a) = (c, a) ORDER BY 1;
-- the level of an aggregate is that of its columns, those in sub-selects too
SELECT (SELECT max((SELECT id FROM t b ORDER BY 1 LIMIT 1)) FROM t c) FROM t;
SELECT (SELECT max((SELECT max(x.id) FROM t y)) FROM t x);
SELECT id FROM t x WHERE (SELECT max((SELECT max(x.id) FROM t y))) = 1;
-- a sub-select among the columns of a sub-select that a third one looks at
SELECT x.id FROM t x JOIN (SELECT (SELECT max(s) FROM t) FROM t) y(a) ON true WHERE x.s IN (SELECT y.a FROM t z) ORDER BY 1;
SELECT x.id FROM t x JOIN (SELECT (SELECT max(s) FROM t) FROM t) y(a) ON true WHERE ('\x'::bytea, x.s) IN (SELECT convert_to(y.a, 'UTF8') || z.b, z.s FROM t z);
-- a call that is a cast
SELECT pg_catalog.float4('0'), pg_catalog."numeric"('-1'), date('2024-01-01'), text('x'), int4(2.5), text(5);
SELECT pg_catalog.float4('null');
SELECT pg_catalog."time"('2000-01-01 12:34:56');
SELECT array_to_string('{}', ',');
SELECT array_fill('x', '{2}');
SELECT trim_array('{}', 0);
-- smallint as oid
SELECT greatest(3::int2::oid, 2::oid), 5::int2::oid > 4::oid, 1::int2::regclass IS NULL;
-- errors in arguments beside NULL
SELECT NULL::int + 1 / 0;
SELECT NULL::int2 * ''::varchar::int2;
SELECT x + 1 / 0 FROM (VALUES (NULL::int)) v(x);
-- dates at their ends
SELECT '2000-01-01'::date + 2147483647;
SELECT '5874897-12-31'::date + 1;
SELECT '4713-01-01 BC'::date - 100;
SELECT 'infinity'::date + 1, '-infinity'::date - 5;
SELECT 'infinity'::date - '2000-01-01'::date;
SELECT '5874897-12-31'::date - interval '1 day';
SELECT '5874897-12-31'::date::timestamp;
SELECT '5874897-12-31'::date::timestamptz;
SELECT '5874897-12-31'::date < 'infinity'::timestamp, '5874897-12-31'::date = 'infinity'::timestamp, '5874897-12-31'::date > '2000-01-01'::timestamp;
SELECT '-infinity'::date + time '12:34', time '12:34' + 'infinity'::date;
SELECT '5874897-12-31'::date + time '12:34';
-- scalars and arrays
SELECT '1'::jsonb -> 0, '1'::jsonb ->> -1, '1'::jsonb -> 1, '"x"'::jsonb ->> 0, '{}'::jsonb -> 0;
SELECT 'null'::jsonb #- '{{a,b},{c,d}}';
SELECT jsonb_insert('null', '{{a,b},{c,d}}', 'null');
SELECT '{}'::jsonb - '{{a,b},{c,d}}'::text[];
SELECT array_fill(0, '{}'::int[], '{1}'::int[]);
SELECT array_fill(0, '{NULL,2}'::int[], '{}'::int[]);
SELECT array_fill(0, '{}'::int[], '{{1,2},{3,4}}'::int[]);
SELECT array_fill(0, '{NULL}'::int[], '{{1,2}}'::int[]);
SELECT array_fill(0, '{1,2,3,4,5,6,7}'::int[], '{NULL}'::int[]);
SELECT trim_array('[2:4]={1,2,3}'::int[], 0), trim_array('[2:4]={1,2,3}'::int[], 1);
SELECT '0/0'::pg_lsn + 'Infinity'::numeric;
SELECT '-3'::xid8;
SELECT timestamptz('2000-01-01 00:00:00+00'::timestamptz, 42);
-- an expression that is grouped by is not known in a sub-select
SELECT id % 2 FROM t GROUP BY id % 2 HAVING max(id) IN (SELECT t.id % 2 FROM t x);
SELECT array_fill(''::text, '{}'::int[], '{NULL,2}'::int[]);
SELECT timezone('1 day'::interval, 'infinity'::timestamp), timezone('1 day'::interval, '-infinity'::timestamptz);
SELECT timezone('1 day'::interval, '2000-01-01'::timestamp);
SELECT jsonb_object_agg(NULL::text, 1);
SELECT timestamptz('5874897-12-31'::date, '00:00'::time);
SELECT numeric_send('Infinity'), numeric_send('-Infinity'), numeric_send('NaN');
SELECT regexp_count('', '{1,2}', 5);
-- outer joins of LATERAL sub-selects whose conditions look outside
SELECT count(*) FROM t x1 JOIN LATERAL (SELECT 0 FROM t x3 LEFT JOIN t x4 ON x3.id = x1.id) x2(a0) ON true;
SELECT count(*) FROM t x1 JOIN LATERAL (SELECT 0 FROM t x3 LEFT JOIN (t x4 JOIN t x5 ON x4.id = x1.id) ON x3.id = x4.id) x2(a0) ON true;
SELECT count(*), count(a0) FROM t x1 JOIN LATERAL (SELECT x4.id FROM t x3 FULL JOIN (SELECT x1.id) x4 ON x3.id = x4.id) x2(a0) ON true;
SELECT count(*), count(b.id) FROM t x1 JOIN t a ON true LEFT JOIN LATERAL (SELECT y.id FROM t y WHERE y.id = x1.id) b ON b.id = a.id;
SELECT count(*), count(b.id) FROM t x1, LATERAL (SELECT a.id FROM t a LEFT JOIN LATERAL (SELECT y.id FROM t y WHERE y.id = x1.id) b ON b.id = a.id) b;
SELECT count(*), count(b.x) FROM t x1 LEFT JOIN LATERAL (SELECT x1.id + y.id FROM t y WHERE y.id > x1.id) b(x) ON b.x < 5;
SELECT pg_catalog."timestamp"('infinity'::timestamp, 7);
