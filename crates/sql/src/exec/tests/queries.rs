//! SELECT.

use super::db::Db;

fn sample() -> Db {
    let db = Db::new();
    db.create("t", "a int4 notnull, b text, c int8", &["unique a", "b"]);
    db.create("u", "id int4, a int4, v text", &["unique id", "a"]);
    assert_eq!(
        db.run("insert into t select i, 'r' || (i % 10), i * 10 from generate_series(1, 1000) i"),
        "1000"
    );
    assert_eq!(
        db.run("insert into u select i, i * 2, 'u' || i from generate_series(1, 200) i"),
        "200"
    );
    db
}

#[track_caller]
fn check(db: &Db, list: &[(&str, &str)]) {
    let bad: Vec<String> = list
        .iter()
        .filter_map(|(sql, want)| {
            let got = db.run(sql);
            (got != *want).then(|| format!("{sql}\n  want {want:?}\n  got  {got:?}"))
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn scans_filters_and_expressions() {
    let db = sample();
    check(
        &db,
        &[
            ("select 1 + 1, 'a' || 'b', null::int", "2|ab|~"),
            ("select * from t where a = 7", "7|r7|70"),
            ("select a from t where a between 5 and 8 order by a desc", "8\n7\n6\n5"),
            ("select count(*) from t", "1000"),
            ("select count(*), sum(a), min(b), max(c) from t where b = 'r3'", "100|49800|r3|9930"),
            ("select a from t where a in (3, 1, 999, 5000) order by 1", "1\n3\n999"),
            ("select a from t where b = 'r1' order by a limit 3", "1\n11\n21"),
            ("select a from t order by a desc limit 2 offset 1", "999\n998"),
            ("select max(a), min(a) from t", "1000|1"),
            ("select max(a) from t", "1000"),
            ("select a from t where a = 1 or a = 3 order by a", "1\n3"),
            ("select a from t where b like 'r9%' and a < 30 order by a", "9\n19\n29"),
            ("select case when a > 1 then 'x' else 'y' end from t where a < 3 order by a", "y\nx"),
            (
                "select case a when 1 then 'one' when 2 then 'two' end from t where a < 4 order by a",
                "one\ntwo\n~",
            ),
            (
                "select coalesce(null, a, 1), nullif(a, 2), greatest(a, 2), least(a, 2) from t where a in (1,2) order by a",
                "1|1|2|1\n2|~|2|2",
            ),
            ("select a::text || '!' from t where a = 12", "12!"),
            ("select (array[1,2,3])[2], array[a, a + 1] from t where a = 5", "2|{5,6}"),
            ("select a is null, a is not null, (a > 3) is true from t where a = 1", "f|t|f"),
            ("select 1 / 0", "22012 division by zero"),
            ("select 2147483647 + 1", "22003 integer out of range"),
            ("select count(*) from t where a > 100 and a <= 200 and b <> 'r5'", "90"),
            ("select * from (values (1, 'a'), (2, 'b')) v(x, y) where x = 2", "2|b"),
            (
                "select row_number() over (order by a desc), a from t where a < 4 order by 2",
                "3|1\n2|2\n1|3",
            ),
            ("select generate_series(1, 3)", "1\n2\n3"),
            (
                "select a, generate_series(1, 2) from t where a < 3 order by 1, 2",
                "1|1\n1|2\n2|1\n2|2",
            ),
            ("select * from generate_series(1, 3) with ordinality", "1|1\n2|2\n3|3"),
            ("select distinct b from t order by b limit 3", "r0\nr1\nr2"),
            (
                "select distinct on (b) b, a from t where a < 30 order by b, a desc limit 3",
                "r0|20\nr1|21\nr2|22",
            ),
            ("select ctid from t where a = 1", "(0,1)"),
            ("select a from t where ctid = '(0,2)'", "2"),
        ],
    );
}

#[test]
fn joins() {
    let db = sample();
    let list = [
        (
            "select t.a, u.v from t join u on t.a = u.a where u.id < 4 order by 1",
            "2|u1\n4|u2\n6|u3",
        ),
        ("select count(*) from t, u where t.a = u.a", "200"),
        ("select count(*) from t left join u on t.a = u.a", "1000"),
        (
            "select count(*), count(u.id) from t left join u on t.a = u.a and u.id < 11 where t.a < 31",
            "30|10",
        ),
        ("select count(*) from t left join u on t.a = u.a where u.id is null", "800"),
        ("select count(*) from u right join t on t.a = u.a", "1000"),
        (
            "select count(*), count(t.a), count(u.a) from (select * from t where a < 11) t full join (select * from u where id < 11) u on t.a = u.a",
            "15|10|10",
        ),
        ("select count(*) from t where exists (select 1 from u where u.a = t.a)", "200"),
        ("select count(*) from t where not exists (select 1 from u where u.a = t.a)", "800"),
        ("select count(*) from t where a in (select a from u)", "200"),
        ("select count(*) from t where a not in (select a from u)", "800"),
        ("select count(*) from t where a not in (select null::int)", "0"),
        (
            "select a, (select v from u where u.a = t.a) from t where a < 4 order by a",
            "1|~\n2|u1\n3|~",
        ),
        ("select count(*) from t where c = (select max(c) from t)", "1"),
        (
            "select t.a, s.n from t, lateral (select t.a + 1 as n) s where t.a < 3 order by 1",
            "1|2\n2|3",
        ),
        (
            "select t.a, s.id from t cross join lateral (select id from u where u.a = t.a limit 1) s where t.a < 7 order by 1",
            "2|1\n4|2\n6|3",
        ),
        ("select count(*) from t a join t b on a.a = b.a join t c on b.a = c.a", "1000"),
        ("select count(*) from t a, t b where a.a = b.a and a.a = 5", "1"),
        (
            "select a.a, b.a from t a left join t b on b.a = a.a + 999 where a.a < 3 order by 1",
            "1|1000\n2|~",
        ),
        ("select * from u join t using (a) where id = 3", "6|3|u3|r6|60"),
        ("select x.a from t x join u y on x.a = y.a join t z on z.a = y.id where z.a = 4", "8"),
        ("select count(*) from t join u on t.a > u.a where t.a < 10", "16"),
        ("with w as (select a from t where a < 5) select count(*) from w x, w y", "16"),
        (
            "with recursive r(n) as (select 1 union all select n + 1 from r where n < 10) select sum(n) from r",
            "55",
        ),
        (
            "with recursive r(n) as (select 1 union select (n + 1) % 5 from r) select count(*) from r",
            "5",
        ),
        ("select count(*) from (select a from t union all select a from u) s", "1200"),
        ("select count(*) from (select a from t union select a from u) s", "1000"),
        ("select count(*) from (select a from t intersect select a from u) s", "200"),
        ("select count(*) from (select a from t except select a from u) s", "800"),
        ("select a from t where a < 3 union all select 100 order by 1 desc limit 2", "100\n2"),
        ("select t.a from t join u on t.a = u.id and u.v = 'u5'", "5"),
        ("select count(*) from t where (a, b) in (select a, 'r2' from u)", "40"),
        ("select count(*) from t where a > all (select id from u)", "800"),
        ("select count(*) from t where a < any (select id from u)", "199"),
        ("select array(select id from u where id < 4 order by id)", "{1,2,3}"),
    ];
    check(&db, &list);
    // The same answers by every method.
    for off in 0..4 {
        {
            let mut s = db.settings.borrow_mut();
            *s = crate::plan::PlannerSettings::default();
            s.enable_hashjoin = off != 1;
            s.enable_mergejoin = off != 2;
            s.enable_nestloop = off != 0;
            if off == 3 {
                s.enable_hashjoin = false;
                s.enable_nestloop = false;
            }
        }
        check(&db, &list);
    }
}

#[test]
fn grouping_and_windows() {
    let db = sample();
    check(
        &db,
        &[
            (
                "select b, count(*), sum(a) from t group by b order by b limit 2",
                "r0|100|50500\nr1|100|49600",
            ),
            ("select b, count(*) from t group by b having count(*) > 1000", ""),
            ("select count(*) from t where false", "0"),
            ("select sum(a) from t where false", "~"),
            ("select b, count(*) from t where false group by b", ""),
            ("select count(distinct b) from t", "10"),
            ("select string_agg(v, ',' order by id desc) from u where id < 4", "u3,u2,u1"),
            ("select array_agg(distinct a % 3 order by a % 3) from t", "{0,1,2}"),
            ("select count(*) filter (where a < 10), count(*) from t", "9|1000"),
            ("select avg(a), sum(c) from t", "500.5000000000000000|5005000"),
            (
                "select b, a % 2, count(*) from t where a < 5 group by rollup (b, a % 2) order by 1, 2",
                "r1|1|1\nr1|~|1\nr2|0|1\nr2|~|1\nr3|1|1\nr3|~|1\nr4|0|1\nr4|~|1\n~|~|4",
            ),
            (
                "select a % 2, grouping(a % 2), count(*) from t group by grouping sets ((a % 2), ()) order by 2, 1",
                "0|0|500\n1|0|500\n~|1|1000",
            ),
            (
                "select a, sum(a) over (order by a) from t where a < 5 order by a",
                "1|1\n2|3\n3|6\n4|10",
            ),
            (
                "select a, sum(a) over (order by a rows between 1 preceding and 1 following) from t where a < 5 order by a",
                "1|3\n2|6\n3|9\n4|7",
            ),
            (
                "select a, rank() over (partition by a % 2 order by a), lag(a) over (order by a), lead(a, 1, 0) over (order by a), first_value(a) over (order by a), ntile(2) over (order by a) from t where a < 5 order by a",
                "1|1|~|2|1|1\n2|1|1|3|1|1\n3|2|2|4|1|2\n4|2|3|0|1|2",
            ),
            (
                "select b, count(*), rank() over (order by count(*) desc, b) from t where a < 25 group by b order by 3 limit 3",
                "r1|3|1\nr2|3|2\nr3|3|3",
            ),
            ("select a % 3 as m, max(a) from t group by m order by m", "0|999\n1|1000\n2|998"),
            ("select a from t group by a order by a limit 2", "1\n2"),
            ("select a, b from t where a < 3 group by a order by a", "1|r1\n2|r2"),
            (
                "select sum(a) over (order by a range between 2 preceding and current row) from t where a in (1,2,5,6) order by a",
                "1\n3\n5\n11",
            ),
            ("select a from t order by a limit 1", "1"),
            ("select a % 4 from t where a < 9 order by a % 4 fetch first 1 row with ties", "0\n0"),
            ("select count(*) from (select a from t order by a limit 10) s", "10"),
            (
                "select x, y from (select b as x, count(*) as y from t group by b) s where x = 'r4'",
                "r4|100",
            ),
        ],
    );
}

#[test]
fn memory_bounds_spill_to_disk() {
    let db = sample();
    db.work_mem.set(64 << 10);
    check(
        &db,
        &[
            (
                "select count(*), sum(x.a) from generate_series(1, 20000) x(a) join generate_series(1, 20000) y(a) on x.a = y.a",
                "20000|200010000",
            ),
            (
                "select sum(n) from (select a, count(*) as n from generate_series(1, 30000) g(a) group by a) s",
                "30000",
            ),
            (
                "select a from (select a from generate_series(1, 20000) g(a) order by a desc offset 19998) s",
                "2\n1",
            ),
            (
                "with w as materialized (select a from generate_series(1, 5000) g(a)) select count(*) from w x where x.a in (select a from w)",
                "5000",
            ),
        ],
    );
}

#[test]
fn a_join_on_keys_does_not_nest_loops() {
    let db = sample();
    let plan = db.plan("select count(*) from t x join t y on x.a = y.a").unwrap();
    fn has_loop(n: &crate::plan::PlanNode) -> bool {
        matches!(n.kind, crate::plan::NodeKind::NestLoop { .. })
            || n.children().into_iter().any(has_loop)
    }
    assert!(!has_loop(&plan.root));
    // One row by key does.
    let plan = db.plan("select * from t join u on u.id = t.a where t.a = 5").unwrap();
    assert!(has_loop(&plan.root));
}

#[test]
fn plans_are_shown_as_postgresql_shows_them() {
    let db = sample();
    let list = [
        (
            "update t set b = 'x' where a = 5",
            "Update on t\n  ->  Index Scan using t_a_idx on t\n        Index Cond: (a = 5)",
        ),
        ("insert into t values (1,'2',3)", "Insert on t\n  ->  Result"),
        (
            "select * from t order by a desc limit 1",
            "Limit\n  ->  Index Scan Backward using t_a_idx on t",
        ),
        (
            "select count(*) from t x join t y on x.a = y.a where x.c > 5",
            "Aggregate\n  ->  Hash Join\n        Hash Cond: (y.a = x.a)\n        ->  Seq Scan on t y\n        ->  Hash\n              ->  Seq Scan on t x\n                    Filter: (c > 5)",
        ),
        (
            "select a from t where a = 1 or b = 'r3'",
            "Bitmap Heap Scan on t\n  Recheck Cond: ((a = 1) OR (b = 'r3'::text))\n  ->  BitmapOr\n        ->  Bitmap Index Scan on t_a_idx\n              Index Cond: (a = 1)\n        ->  Bitmap Index Scan on t_b_idx\n              Index Cond: (b = 'r3'::text)",
        ),
    ];
    for (sql, want) in list {
        assert_eq!(db.explain(sql), want, "{sql}");
    }
}

#[test]
fn what_side_by_side_runs_with_postgresql_found() {
    let db = Db::new();
    db.create("a", "id int4, x text", &[]);
    db.create("b", "id int4, y text", &[]);
    db.run("insert into a values (1, 'a1'), (2, 'a2'), (null, 'an')");
    db.run("insert into b values (2, 'b2'), (5, null)");
    check(
        &db,
        &[
            ("select a.id, b from a left join b on a.id = b.id order by 1", "1|~\n2|(2,b2)\n~|~"),
            ("select a, b from a full join b on a.id = b.id where a is null", "~|(5,)"),
            (
                "select s from a left join (select id i from b) s on s.i = a.id order by 1",
                "(2)\n~\n~",
            ),
            ("select count(b) from a left join b on a.id = b.id", "1"),
            ("select count(*), count(a.x), count(b.id) from a full join b on true", "6|6|6"),
            ("select count(*), count(a.x), count(b.id) from a full join b on false", "5|3|2"),
            (
                "select * from a full join b on a.id < b.id",
                "0A000 FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
            ),
            ("select * from unnest(array[1,2], array['a','b','c']) u(n, t)", "1|a\n2|b\n~|c"),
            ("select * from unnest(array[1], array['a','b']) with ordinality", "1|a|1\n~|b|2"),
            ("select id from a where id not in (select id from b)", "1"),
            ("select id from b where id not in (select id from a)", ""),
            ("select (a.id, a.id) in (select id, id from b) from a order by a.id", "f\nt\n~"),
            (
                "with recursive r as (select 1 n union all select r.n + 1 from r, r r2) select * from r",
                "42P19 recursive reference to query \"r\" must not appear more than once",
            ),
            (
                "with recursive r as (select 1::int8 n union all select count(*) from r) select * from r",
                "42P19 aggregate functions are not allowed in a recursive query's recursive term",
            ),
            (
                "with recursive r(s) as (select 'a'::varchar(3) union all select s || 'b' from r) select * from r",
                "42804 recursive query \"r\" column 1 has type character varying(3) in non-recursive term but type character varying overall",
            ),
        ],
    );
}

#[test]
fn not_in_looks_its_values_up() {
    let db = Db::new();
    db.create("big", "id int4, k int4", &[]);
    db.run("insert into big select g, g % 1000 from generate_series(1, 20000) g");
    // Row against row these would be 4 * 10^8 comparisons each.
    check(
        &db,
        &[
            ("select count(*) from big where id not in (select k from big)", "19001"),
            ("select count(*) from big where (id, k) not in (select k, k from big)", "19001"),
            ("select count(*) from big where k in (select id from big) or id = 0", "19980"),
        ],
    );
}
