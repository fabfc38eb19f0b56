SELECT 1, 2147483648, 9223372036854775808, 1.5, 1e3, 'x', NULL, true, false;
SELECT -1, +1, - -1, 1 - -1;
SELECT 'it''s', E'a\tb\n\\', U&'d\0061t', $$dollar 'quoted'$$, $t$ $$ $t$;
SELECT 'a' 'b';
SELECT 'a'
'b';
SELECT B'101', X'1F';
SELECT 1::int2, 2::int4, 3::int8, 4.5::float4, 5.5::float8, 6.7::numeric;
SELECT int '5', float8 '1.5', date '2020-01-02', interval '1 day';
SELECT CAST('12' AS integer), CAST(12 AS text), '12'::int + 1;
SELECT '{1,2,3}'::int[], ARRAY[1,2,3], ARRAY['a','b'];
SELECT 'abc'::char(5), 'abc'::varchar(2), 'abc'::name, 'a'::"char";
SELECT pg_typeof(1), pg_typeof(1.0), pg_typeof('x'), pg_typeof(NULL), pg_typeof(ARRAY[1]), pg_typeof(now());
SELECT true AND NULL, false AND NULL, true OR NULL, false OR NULL, NOT NULL::bool;
SELECT 't'::bool, 'yes'::bool, 'off'::bool, '0'::bool;
SELECT 'maybe'::bool;
SELECT 'x'::int;
SELECT 99999999999::int;
SELECT 40000::int2;
SELECT '99999999999'::int;
SELECT 1 AS "Mixed Case", 2 AS order_, 3 "quoted""name";
SELECT 0x1F;
SELECT row(1, 'a', NULL), (1, 2) = (1, 2), (1, 2) < (1, 3), (1, NULL) = (1, NULL);
SELECT NULL = NULL, NULL IS NULL, 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL;
SELECT 1 IN (1, 2), 3 IN (1, 2), 3 IN (1, NULL), 3 NOT IN (1, 2);
SELECT 5 BETWEEN 1 AND 10, 5 NOT BETWEEN 1 AND 10, 5 BETWEEN SYMMETRIC 10 AND 1;
SELECT CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END, CASE 3 WHEN 3 THEN 'three' END, CASE WHEN false THEN 1 END;
SELECT COALESCE(NULL, 2, 3), NULLIF(1, 1), NULLIF(1, 2), GREATEST(1, 3, NULL), LEAST(2, 1);
SELECT 'a' < 'b', 'B' < 'a', 'abc' = 'abc ', 'abc'::char(5) = 'abc'::char(4);
SELECT decode('deadbeef', 'hex'), '\xDEADBEEF'::bytea, encode('\x00ff'::bytea, 'base64'), length('\x0102'::bytea);
SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'::uuid;
SELECT 'nope'::uuid;
SELECT 'pg_class'::regclass, 'int4'::regtype, 'integer'::regtype::oid;
SELECT 'no_such_table'::regclass;
SELECT no_such_column;
SELECT * FROM no_such_table;
SELECT no_such_function(1);
SELEC 1;
SELECT 1 +;
SELECT (1;
SELECT 'unterminated;
';
SELECT current_user, session_user, current_schema;
SELECT;
SELECT 1; SELECT 2;
SELECT 1\; SELECT 'two';
;
-- a comment alone
SELECT /* inner /* nested? */ */ 1;
--! params 7 | abc | NULL
SELECT $1::int + 1, $2::text, $3::text;
--! params 7 | 8
SELECT $1 + $2;
--! params x
SELECT $1::int;
--! params 1
SELECT $1;
--! params 3
SELECT 'n = ' || $1;
--! params 1
SELECT $1, $2;
