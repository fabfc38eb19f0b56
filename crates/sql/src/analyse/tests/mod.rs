//! What PostgreSQL says, statement by statement.

pub(crate) mod catalog;

use super::*;
use catalog::{TestCatalog, TestEnv};

fn run(sql: &str) -> Result<Query> {
    let parsed = crate::parse::parse(sql)?;
    let mut params = ParamTypes::variable(Vec::new());
    analyse(&parsed[0], TestCatalog::get(), &mut params, &TestEnv)
}

/// The types and names of the output columns: `name type, …`.
fn out(sql: &str) -> String {
    let q = match run(sql) {
        Ok(q) => q,
        Err(e) => return error_text(&e),
    };
    let list = if q.command == Command::Select { &q.targets } else { &q.returning };
    let text: Vec<String> = list
        .iter()
        .filter(|t| !t.hidden)
        .map(|t| format!("{} {}", t.name, types::format_type(t.expr.ty().oid, t.expr.ty().typmod)))
        .collect();
    text.join(", ")
}

fn error_text(e: &Error) -> String {
    let e = e.to_sql_error();
    let at = e.position.map_or(String::new(), |p| format!(" @{p}"));
    format!("{} {}{at}", e.state, e.message)
}

fn error(sql: &str) -> String {
    match run(sql) {
        Ok(_) => format!("no error: {sql}"),
        Err(e) => error_text(&e),
    }
}

#[test]
fn what_clients_ask_of_the_catalogs_is_analysed() {
    let mut bad = Vec::new();
    for text in include_str!("../../parse/testdata/clients.sql").split('\x0c') {
        for p in crate::parse::parse(text).unwrap() {
            // amcheck's functions come with an extension
            let amcheck = text.contains("verify_heapam") || text.contains("bt_index_check");
            if amcheck || !matches!(p.statement, crate::parse::Statement::Query(_)) {
                continue;
            }
            let mut params = ParamTypes::variable(Vec::new());
            if let Err(e) = analyse(&p, TestCatalog::get(), &mut params, &TestEnv) {
                bad.push(format!("{}\n    {}", error_text(&e), p.text().replace('\n', " ")));
            }
        }
    }
    assert!(bad.is_empty(), "{} bad\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn columns_have_postgresqls_names_and_types() {
    let same = [
        (
            "select 1, 'x', 1.5, null, true, 3000000000",
            "?column? integer, ?column? text, ?column? numeric, ?column? text, ?column? boolean, ?column? bigint",
        ),
        (
            "select * from t",
            "a integer, b text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json",
        ),
        ("select t.a, b as x, count(*) from t group by 1, 2", "a integer, x text, count bigint"),
        (
            "select a + 1, a + 1.5, a + a::int8, a / 2.0::float8, -a from t",
            "?column? integer, ?column? numeric, ?column? bigint, ?column? double precision, ?column? integer",
        ),
        (
            "select sum(a), avg(a), max(b), min(ts), sum(c), string_agg(b, ',') from t",
            "sum bigint, avg numeric, max text, min timestamp with time zone, sum numeric, string_agg text",
        ),
        (
            "select arr[1], arr[1:2], array[1,2], array[[1],[2]], array_agg(a) from t group by arr",
            "arr integer, arr integer[], array integer[], array integer[], array_agg integer[]",
        ),
        (
            "select b || 'x', a || 'x', 'a' || 'b', arr || 1 from t",
            "?column? text, ?column? text, ?column? text, ?column? integer[]",
        ),
        (
            "select case when a > 1 then 1 else 2.5 end, coalesce(a, 1), greatest(a, 2.5), nullif(a, 1) from t",
            "case numeric, coalesce integer, greatest numeric, nullif integer",
        ),
        (
            "select now(), current_date, current_timestamp(3), localtime, current_user, date '2020-01-01' + 1, interval '1' day",
            "now timestamp with time zone, current_date date, current_timestamp timestamp(3) with time zone, localtime time without time zone, current_user name, ?column? date, interval interval day",
        ),
        (
            "select ts - ts, ts + interval '1 day', d - d, d - 1 from t, u",
            "?column? interval, ?column? timestamp with time zone, ?column? integer, ?column? date",
        ),
        (
            "select extract(year from ts), substring(b from 1 for 2), trim(b), position('a' in b), ts at time zone 'UTC', overlay(b placing 'x' from 1) from t",
            "extract numeric, substring text, btrim text, position integer, timezone timestamp without time zone, overlay text",
        ),
        (
            "select j -> 'a', j ->> 'a', j #> '{a}', j @> '{}', j['x'] from t",
            "?column? jsonb, ?column? text, ?column? jsonb, ?column? boolean, j jsonb",
        ),
        ("select x from generate_series(1, 10) x", "x integer"),
        ("select * from generate_series(1, 10) with ordinality as g(n, o)", "n integer, o bigint"),
        (
            "select unnest(arr), generate_series(1, 2) from t",
            "unnest integer, generate_series integer",
        ),
        (
            "select (select a from t limit 1), exists (select 1), array(select a from t), a in (select id from u) from t",
            "a integer, exists boolean, array integer[], ?column? boolean",
        ),
        ("select a from t union select 2.5 order by 1", "a numeric"),
        ("select 'x' union all select null", "?column? text"),
        ("values (1, 'a'), (2.5, null)", "column1 numeric, column2 text"),
        (
            "select * from t join u using (a)",
            "a bigint, b text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json, id integer, d date, f double precision",
        ),
        (
            "select * from (t cross join u) as x(p, q)",
            "p integer, q text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json, id integer, a bigint, d date, f double precision",
        ),
        (
            "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r",
            "n integer",
        ),
        (
            "with x as (insert into t (a) values (1) returning a, b) select * from x",
            "a integer, b text",
        ),
        (
            "select row_number() over (), sum(a) over (partition by b order by c), lag(a, 1) over w from t window w as (order by a)",
            "row_number bigint, sum bigint, lag integer",
        ),
        (
            "select percentile_cont(0.5) within group (order by a), count(*) filter (where a > 1) from t",
            "percentile_cont double precision, count bigint",
        ),
        (
            "select a, b, grouping(a, b), count(*) from t group by rollup (a, b)",
            "a integer, b text, grouping integer, count bigint",
        ),
        (
            "select t, t.* , (t).b, row(1, 2) from t",
            "t ???, a integer, b text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json, b text, row record",
        ),
        ("insert into t values (1) returning a + 1 as n", "n integer"),
        (
            "update t set b = 'x', c = 5 where a = 1 returning *",
            "a integer, b text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json",
        ),
        ("delete from t using u where t.a = u.a returning u.id", "id integer"),
        ("select $1, $2 + 1, a from t where b = $3", "?column? text, ?column? integer, a integer"),
        ("select a, b from t group by a", "a integer, b text"),
        (
            "select b between 'a' and 'c', a not in (1, 2), b like 'x%', b similar to 'y', (a, b) = (1, 'x'), (a, b) < (1, 'x') from t",
            "?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean",
        ),
        (
            "select int4 '5', text(5), float8(1), a::text::int from t",
            "int4 integer, text text, float8 double precision, a integer",
        ),
        ("select x.a, s.n from t x, lateral (select x.a + 1 as n) s", "a integer, n integer"),
        ("select ctid, xmin, tableoid::regclass from t", "ctid tid, xmin xid, tableoid regclass"),
        (
            "select format('%s', 1), concat(1, 'a'), json_build_object('a', 1), to_char(now(), 'x')",
            "format text, concat text, json_build_object json, to_char text",
        ),
        (
            "select b::char(3), c::numeric(4,1), 'x'::varchar(2) from t",
            "b character(3), c numeric(4,1), varchar character varying(2)",
        ),
        (
            "select * from t left join lateral unnest(t.arr) as e on true where b is not distinct from 'x'",
            "a integer, b text, c numeric(10,2), v character varying(5), arr integer[], ts timestamp with time zone, j jsonb, js json, e integer",
        ),
        ("select js is json, b is json object from t", "?column? boolean, ?column? boolean"),
        ("select * from (select 1 as one) union all (select 2 order by 1 limit 1)", "one integer"),
    ];
    let bad: Vec<String> = same
        .iter()
        .filter(|(sql, want)| out(sql) != *want)
        .map(|(sql, want)| format!("{sql}\n  want {want}\n  got  {}", out(sql)))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn errors_are_postgresqls() {
    let same = [
        ("select x from t", "42703 column \"x\" does not exist @8"),
        ("select t.x from t", "42703 column t.x does not exist @8"),
        ("select z.a from t", "42P01 missing FROM-clause entry for table \"z\" @8"),
        ("select * from nope", "42P01 relation \"nope\" does not exist @15"),
        ("select * from s.nope", "42P01 relation \"s.nope\" does not exist @15"),
        ("select a from t, u", "42702 column reference \"a\" is ambiguous @8"),
        ("select 1 + 'x'", "22P02 invalid input syntax for type integer: \"x\" @12"),
        ("select a + b from t", "42883 operator does not exist: integer + text @10"),
        ("select f(1, 'x')", "42883 function f(integer, unknown) does not exist @8"),
        (
            "select b from t group by c",
            "42803 column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function @8",
        ),
        (
            "select sum(a), b from t",
            "42803 column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function @16",
        ),
        (
            "select a from t where sum(a) > 1",
            "42803 aggregate functions are not allowed in WHERE @23",
        ),
        ("select sum(sum(a)) from t", "42803 aggregate function calls cannot be nested @12"),
        (
            "select a from t where row_number() over () > 1",
            "42P20 window functions are not allowed in WHERE @23",
        ),
        (
            "select a from t where b",
            "42804 argument of WHERE must be type boolean, not type text @23",
        ),
        (
            "select case when a then 1 end from t",
            "42804 argument of CASE/WHEN must be type boolean, not type integer @18",
        ),
        ("select 1 union select 'a'", "22P02 invalid input syntax for type integer: \"a\" @23"),
        (
            "select 1 union select now()",
            "42804 UNION types integer and timestamp with time zone cannot be matched @23",
        ),
        (
            "select 1, 2 union select 1",
            "42601 each UNION query must have the same number of columns @26",
        ),
        ("select a from t order by 2", "42P10 ORDER BY position 2 is not in select list @26"),
        (
            "insert into t (a, nope) values (1, 2)",
            "42703 column \"nope\" of relation \"t\" does not exist @19",
        ),
        (
            "insert into t (a) values (1, 2)",
            "42601 INSERT has more expressions than target columns @30",
        ),
        (
            "insert into t (a, b) values (1)",
            "42601 INSERT has more target columns than expressions @19",
        ),
        (
            "insert into t (a) values (now())",
            "42804 column \"a\" is of type integer but expression is of type timestamp with time zone @27",
        ),
        (
            "insert into g (id) values (1)",
            "428C9 cannot insert a non-DEFAULT value into column \"id\"",
        ),
        (
            "insert into g (twice) values (1)",
            "428C9 cannot insert a non-DEFAULT value into column \"twice\"",
        ),
        ("update t set nope = 1", "42703 column \"nope\" of relation \"t\" does not exist @14"),
        ("update t set a = 1, a = 2", "42601 multiple assignments to same column \"a\""),
        ("select a::date from t", "42846 cannot cast type integer to date @9"),
        ("select 'x'::nope", "42704 type \"nope\" does not exist @13"),
        ("select * from t t1, u t1", "42712 table name \"t1\" specified more than once"),
        ("select (select a, b from t)", "42601 subquery must return only one column @8"),
        ("select a from t limit a", "42P10 argument of LIMIT must not contain variables @23"),
        (
            "select a from t for update of x",
            "42P01 relation \"x\" in FOR UPDATE clause not found in FROM clause @31",
        ),
        (
            "select distinct a from t for update",
            "0A000 FOR UPDATE is not allowed with DISTINCT clause",
        ),
        (
            "select distinct a from t order by b",
            "42P10 for SELECT DISTINCT, ORDER BY expressions must appear in select list @35",
        ),
        (
            "select generate_series(1,2) from t where generate_series(1,2) = 1",
            "0A000 set-returning functions are not allowed in WHERE @42",
        ),
        (
            "select lower(distinct b) from t",
            "42809 DISTINCT specified, but lower is not an aggregate function @8",
        ),
        (
            "select row_number() from t",
            "42809 window function row_number requires an OVER clause @8",
        ),
        (
            "select js from t group by js",
            "42883 could not identify an equality operator for type json @27",
        ),
        ("select * ", "42601 SELECT * with no tables specified is not valid @8"),
        ("select array[]", "42P18 cannot determine type of empty array @8"),
        (
            "insert into t values (1) on conflict (b) do nothing",
            "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification",
        ),
        (
            "select a from t where a = $1 and b = $1",
            "42883 operator does not exist: text = integer @36",
        ),
        ("select nope.* from t", "42P01 missing FROM-clause entry for table \"nope\" @8"),
        ("select 'é', x from t", "42703 column \"x\" does not exist @13"),
        (
            "select x.a from t x join u y on x.a = t.a",
            "42P01 invalid reference to FROM-clause entry for table \"t\" @39",
        ),
    ];
    let bad: Vec<String> = same
        .iter()
        .filter(|(sql, want)| error(sql) != *want)
        .map(|(sql, want)| format!("{sql}\n  want {want}\n  got  {}", error(sql)))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn parameters_are_inferred() {
    let types = |sql: &str| {
        let parsed = crate::parse::parse(sql).unwrap();
        let mut params = ParamTypes::variable(Vec::new());
        analyse(&parsed[0], TestCatalog::get(), &mut params, &TestEnv).unwrap();
        params.types.iter().map(|t| types::format_type(*t, -1)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(types("select * from t where a = $1 and b like $2"), "integer, text");
    assert_eq!(
        types("insert into t (a, c, v) values ($1, $2, $3)"),
        "integer, numeric, character varying"
    );
    assert_eq!(
        types("update t set ts = $1 where a in ($2, $3)"),
        "timestamp with time zone, integer, integer"
    );
    assert_eq!(
        types("select $1::int8, $2 || 'x', a + $3 from t limit $4"),
        "bigint, text, integer, bigint"
    );
    assert_eq!(types("insert into t (a, b) select $1, $2"), "integer, text");
    assert_eq!(types("select * from t where a = any($1)"), "integer[]");
}

#[test]
fn inserts_fill_in_what_was_not_given() {
    let q = run("insert into g (x) values (5)").unwrap();
    let shape: Vec<String> = q
        .targets
        .iter()
        .map(|t| {
            let what = match &t.expr {
                Expr::NextValue { sequence, .. } => format!("nextval {sequence}"),
                Expr::Const(_) => "const".into(),
                other => format!("{other:?}"),
            };
            format!("{}={what}", t.name)
        })
        .collect();
    assert_eq!(shape, ["id=nextval 20030", "x=const", "twice=const", "k=nextval 20031"]);
    let q = run("insert into t (a) values (1), (default) on conflict (a) do update set b = excluded.b where t.a > 1").unwrap();
    assert_eq!(q.on_conflict.unwrap().arbiters, [20002]);
    assert_eq!(q.targets.len(), 8);
}

#[test]
fn analysed_queries_survive_storage() {
    let q = run("select t.a, count(*) from t join u on u.a = t.a where b in ('x', 'y') group by 1 order by 2 desc").unwrap();
    let text = serde_json::to_string(&q).unwrap();
    let back: Query = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{q:?}"), format!("{back:?}"));
}

/// Whatever the parser lets through, the analyser can nest (unoptimised frames are much larger).
#[test]
fn nesting_fits_the_stack() {
    let stack = if cfg!(debug_assertions) { 64 << 20 } else { 2 << 20 };
    let work = || {
        for n in [50, 150, 300] {
            for sql in [
                format!("select {}1{}", "abs(".repeat(n), ")".repeat(n)),
                format!("select {}1{}", "(select ".repeat(n), ")".repeat(n)),
                format!("select {}1 from t", "- a * ".repeat(n)),
                format!("select {}true", "not ".repeat(n)),
                format!("select 1{}", " + 1".repeat(n * 6)),
                format!("select {}1{}", "case when true then ".repeat(n), " end".repeat(n)),
                format!("select * from {}t{}", "(select * from ".repeat(n), ") s".repeat(n)),
                format!("select a from t{}", " union select 1".repeat(n)),
            ] {
                if let Err(e) = run(&sql) {
                    assert_eq!(e.state(), base::SqlState::STATEMENT_TOO_COMPLEX, "{e}");
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(stack).spawn(work).unwrap();
    thread.join().unwrap();
}
