use super::*;
use crate::analyse::tests::catalog::{TestCatalog, TestEnv};
use crate::analyse::{ParamTypes, analyse, analyse_check, analyse_default};
use expr::TypeRef;
use types::oids;

fn check(text: &str, pretty: bool) -> String {
    let e = crate::parse::parse_expression(text).unwrap();
    let t = TestCatalog::get().table_by_name(None, "t").unwrap().unwrap();
    let e = analyse_check(&e, &t, text, TestCatalog::get(), &TestEnv).unwrap();
    let columns: Vec<String> = t.columns.iter().map(|c| c.name.clone()).collect();
    expression(&e, &columns, pretty, &TestEnv).unwrap()
}

fn default(text: &str, ty: TypeRef) -> String {
    let e = crate::parse::parse_expression(text).unwrap();
    let e = analyse_default(&e, "x", ty, text, TestCatalog::get(), &TestEnv).unwrap();
    expression(&e, &[], false, &TestEnv).unwrap()
}

fn view(sql: &str, pretty: bool) -> String {
    let parsed = crate::parse::parse(sql).unwrap();
    let mut params = ParamTypes::default();
    let q = analyse(&parsed[0], TestCatalog::get(), &mut params, &TestEnv).unwrap();
    query(&q, &[], TestCatalog::get(), pretty, &TestEnv).unwrap()
}

#[test]
fn conditions_print_as_in_postgresql() {
    let same = [
        ("a > 0", "(a > 0)", "a > 0"),
        (
            "a > 0 and b = 'x' or not a is null",
            "(((a > 0) AND (b = 'x'::text)) OR (NOT (a IS NULL)))",
            "a > 0 AND b = 'x'::text OR NOT a IS NULL",
        ),
        ("a in (1, 2)", "(a = ANY (ARRAY[1, 2]))", "a = ANY (ARRAY[1, 2])"),
        ("a + 1 * 2 < 5", "((a + (1 * 2)) < 5)", "(a + 1 * 2) < 5"),
        ("length(b) > 3", "(length(b) > 3)", "length(b) > 3"),
        ("a::text = b", "((a)::text = b)", "a::text = b"),
        ("v like 'x%'", "((v)::text ~~ 'x%'::text)", "v::text ~~ 'x%'::text"),
        (
            "a between 1 and -2",
            "((a >= 1) AND (a <= '-2'::integer))",
            "a >= 1 AND a <= '-2'::integer",
        ),
        ("c > 1.5", "(c > 1.5)", "c > 1.5"),
        (
            "c > 1 and lower(v) = 'x'",
            "((c > (1)::numeric) AND (lower((v)::text) = 'x'::text))",
            "c > 1::numeric AND lower(v::text) = 'x'::text",
        ),
        ("coalesce(a, 0) = arr[1]", "(COALESCE(a, 0) = arr[1])", "COALESCE(a, 0) = arr[1]"),
    ];
    let mut bad = Vec::new();
    for (sql, plain, pretty) in same {
        for (want, p) in [(plain, false), (pretty, true)] {
            let got = check(sql, p);
            if got != want {
                bad.push(format!("{sql}\n  want {want}\n  got  {got}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn defaults_print_as_in_postgresql() {
    let varchar = TypeRef { oid: oids::VARCHAR, typmod: 14 };
    assert_eq!(default("'x'", TypeRef::of(oids::TEXT)), "'x'::text");
    assert_eq!(default("'it''s'", varchar), "'it''s'::character varying");
    assert_eq!(default("0", TypeRef::of(oids::INT4)), "0");
    assert_eq!(default("-1", TypeRef::of(oids::INT4)), "'-1'::integer");
    assert_eq!(default("now()", TypeRef::of(oids::TIMESTAMPTZ)), "now()");
    assert_eq!(default("current_timestamp", TypeRef::of(oids::TIMESTAMPTZ)), "CURRENT_TIMESTAMP");
    assert_eq!(default("true", TypeRef::of(oids::BOOL)), "true");
    assert_eq!(default("null", TypeRef::of(oids::TEXT)), "NULL::text");
}

#[test]
fn views_print_as_in_postgresql() {
    assert_eq!(
        view("select a, b as x, a + 1 from t where a > 1 order by b desc limit 5", false),
        " SELECT a,\n    b AS x,\n    (a + 1) AS \"?column?\"\n   FROM t\n  WHERE (a > 1)\n  ORDER BY b DESC\n LIMIT 5;"
    );
    assert_eq!(
        view(
            "select x.a, u.id from t x join u on u.a = x.a where exists (select 1 from u y where y.id = x.a)",
            true
        ),
        " SELECT x.a,\n    u.id\n   FROM t x\n     JOIN u ON u.a = x.a\n  WHERE (EXISTS ( SELECT 1\n           FROM u y\n          WHERE y.id = x.a));"
    );
    assert_eq!(
        view("select a, count(*) from t group by a having count(*) > 1", false),
        " SELECT a,\n    count(*) AS count\n   FROM t\n  GROUP BY a\n HAVING (count(*) > 1);"
    );
    assert_eq!(
        view("select 1 union all select 2", false),
        " SELECT 1 AS \"?column?\"\nUNION ALL\n SELECT 2;"
    );
}
