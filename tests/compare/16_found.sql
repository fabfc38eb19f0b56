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
-- non-greedy quantifiers: the whole has a preference, then its parts
select substring('XY1234Z','Y*?([0-9]{1,3})'), substring('XY1234Z','Y*([0-9]{1,3})');
select regexp_match('abc01234xyz','(?:(.*?)(\d+)(.*)){1,1}'), regexp_match('abc01234xyz','(.*?)(\d+)(.*)'), regexp_match('abc01234xyz','(.*)(\d+)(.*)');
select substring('foobar' from 'o+?b'), regexp_match('foobar','o+?b|foo'), regexp_match('foofoobar','(?:foo)+?');
select regexp_match('aXbXc','(.*?)X(.*)'), regexp_match('aXbXc','(.*)X(.*?)'), regexp_match('aXbXc','(.*?)X(.*?)$');
select regexp_match('abcd','a*?(bc|b)(c|cd)?'), regexp_match('abcd','(a|ab)(bcd|c)*?'), regexp_match('aaaa','a{2,3}?'), regexp_match('aaaa','(a{2}?)+');
select regexp_match('aaab','a+?b'), regexp_match('xaaab','(x|a+?)(a+)b'), regexp_match('foo.bar','(.+?)\.(.+)');
select regexp_replace('a1b22c','\d+?','#','g'), regexp_replace('<a><b>','<.*?>','','g'), regexp_split_to_array('a, b,,c',',\s*?'), substring('key=val;k2=v2' from 'k2=(.*?)(;|$)');
select substring('abcdefg' similar 'a#"%#"g' escape '#'), substring('abcdefg' similar '%#"c%#"g%' escape '#');
select regexp_match('a1_','[\D]+'), regexp_match('a1_!','[\W]+'), regexp_match('a b','[\S]+');
select '<a>' ~ '<a>', 'a' ~ '<a>', regexp_replace('<b>x</b>', '[<>]', '', 'g'), regexp_replace('<b>x</b>', '<b>', '', 'g');
-- grouping in a recursive term
with recursive r(n) as (select 1 union all select n+1 from r where n<5 group by n having n<3) select * from r;
with recursive r(n) as (select 1 union all select n+1 from r where n<5 group by n) select * from r;
select exp(6000.0);
select exp(10000::float8);
-- a cursor that only goes forward
begin;
declare c no scroll cursor for select 1;
fetch 0 from c;
fetch next from c;
fetch 0 from c;
rollback;
begin;
declare c no scroll cursor for values (1), (2), (3);
fetch absolute 2 from c;
fetch relative 1 from c;
fetch absolute 3 from c;
rollback;
begin;
declare c no scroll cursor for values (1), (2), (3);
move backward all in c;
fetch last from c;
rollback;
-- what a read-only transaction refuses, by its tag
create table found_ro(i int primary key, t text);
create view found_rov as select * from found_ro;
create sequence found_ros;
create index found_roi on found_ro(t);
set default_transaction_read_only = on;
drop table found_ro;
drop view found_rov;
drop sequence found_ros;
drop index found_roi;
create sequence x;
create schema x;
alter table found_ro add y int;
alter view found_rov rename to z;
alter sequence found_ros restart;
alter index found_roi rename to x;
alter table found_ro rename i to j;
revoke select on found_ro from public;
create role found_r;
create database found_d;
select 1 as a into found_x;
create materialized view found_mv as select 1 as a;
refresh materialized view found_mv;
select nextval('found_ros');
select setval('found_ros', 5);
explain analyze insert into found_ro values (1);
with x as (insert into found_ro values (1) returning *) select * from x;
reset default_transaction_read_only;
drop view found_rov;
drop table found_ro;
drop sequence found_ros;
-- sets: after the sort, and grouped by
create table found_s(i int);
insert into found_s values (3), (1), (2);
create sequence found_q;
select nextval('found_q') n, generate_series(1,3) g order by g desc;
select i, generate_series(1,2) g from found_s order by i limit 3;
select i, generate_series(1,2) g from found_s order by i, g desc;
select distinct on (i) i, generate_series(1,2) g from found_s order by i;
select generate_series(1,3) g, count(*) from found_s group by generate_series(1,3) order by 1;
select generate_series(1,i)+1 g, sum(i) from found_s group by g order by 1;
select i, generate_series(1,2) g, count(*) from found_s group by i, g order by 1, 2;
select generate_series(1,i) g, generate_series(1,2) h, sum(i) from found_s group by g order by 1, 2;
select unnest(array[1,1,2]) u, count(*) from found_s group by rollup(u) order by 1;
select generate_series(1,i) g, sum(i) from found_s group by g having sum(i) > 3 order by 1;
drop sequence found_q;
select i from found_s order by i fetch first null rows only;
select i from found_s order by i fetch first null rows with ties;
-- half a DateStyle keeps the other half
set datestyle = 'SQL';
set datestyle = 'DMY';
show datestyle;
set datestyle = 'German';
show datestyle;
set datestyle = 'iso';
show datestyle;
set datestyle = 'SQL, ISO';
set datestyle = 'DMY, MDY';
set datestyle = 'ISO, foo';
reset datestyle;
-- who may know where the data lies
create role found_plain;
set role found_plain;
select count(*) from pg_settings where name = 'data_directory';
reset role;
drop role found_plain;
-- whether ON CONFLICT inserted or updated
create table found_c(k int primary key, n int);
insert into found_c values (1, 1) on conflict (k) do update set n = found_c.n + 1 returning k, n, xmax = 0 as inserted;
insert into found_c values (1, 1), (2, 1) on conflict (k) do update set n = found_c.n + 1 returning k, n, xmax = 0 as inserted;
begin;
update found_c set n = 5 where k = 1 returning xmin::text::bigint = pg_current_xact_id()::text::bigint % 4294967296, xmax;
rollback;
drop table found_c;
create table found_i(id serial, b bit(3), v varbit(2));
alter table found_i alter id add generated always as identity;
insert into found_i(b, v) values ('10'::varbit::bit(3), '101'::varbit(2)) returning b, v;
insert into found_i(b) select '1011'::varbit;
insert into found_i(v) select '101'::varbit;
drop table found_i;
begin isolation level repeatable read read only deferrable;
show transaction_deferrable;
commit;
show transaction_deferrable;
