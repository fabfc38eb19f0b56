//! Indexes on types whose bytes tell nothing of their order: arrays, jsonb, addresses and networks, bit strings.

use crate::support::Database;

/// What a column of such a type holds, how often: values and NULLs, in an order that is not theirs.
const COLUMNS: [(&str, &str); 7] = [
    (
        "int[]",
        "CASE WHEN g % 50 = 0 THEN NULL WHEN g % 7 = 0 THEN ARRAY[g % 90] ELSE ARRAY[g % 40, -g % 3, NULL] END",
    ),
    ("text[]", "ARRAY[md5((g % 300)::text), 'x']"),
    ("numeric[]", "ARRAY[(g % 60) / 7.0, 1.50]"),
    (
        "jsonb",
        "CASE g % 4 WHEN 0 THEN to_jsonb(g % 100) WHEN 1 THEN jsonb_build_object('a', g % 80) WHEN 2 THEN to_jsonb(md5((g % 70)::text)) ELSE 'null' END",
    ),
    (
        "inet",
        "('10.' || g % 200 || '.9.' || g % 7 || CASE WHEN g % 3 = 0 THEN '/16' ELSE '' END)::inet",
    ),
    ("cidr", "('10.' || g % 200 || '.0.0/' || 16 + g % 4)::cidr"),
    ("varbit", "(g % 500)::bit(12)::varbit || CASE WHEN g % 2 = 0 THEN B'0' ELSE B'' END"),
];

#[test]
fn they_give_what_a_sequential_scan_gives() {
    let db = Database::new();
    let mut s = db.session();
    for (ty, value) in COLUMNS {
        s.run_each(&[
            &format!("CREATE TABLE t (id int, v {ty})"),
            "CREATE INDEX t_v ON t (v)",
            &format!("INSERT INTO t SELECT g, {value} FROM generate_series(1, 2000) g"),
            "DELETE FROM t WHERE id % 5 = 0",
            "UPDATE t SET id = -id WHERE id % 11 = 0",
            "VACUUM ANALYZE t",
        ]);
        let some = s.run("SELECT quote_literal(v::text) FROM t WHERE id = 123");
        let queries = [
            format!("SELECT id, v FROM t WHERE v = {some}::{ty} ORDER BY id"),
            format!("SELECT count(*), min(id), max(id) FROM t WHERE v < {some}::{ty}"),
            format!("SELECT count(*), min(id), max(id) FROM t WHERE v >= {some}::{ty}"),
            "SELECT v, count(*) FROM t GROUP BY v ORDER BY v LIMIT 50".to_owned(),
            "SELECT v FROM t WHERE v IS NOT NULL ORDER BY v DESC, id LIMIT 20".to_owned(),
            "SELECT count(*) FROM t WHERE v IS NULL".to_owned(),
        ];
        s.run_each(&[
            "SET enable_indexscan = off",
            "SET enable_indexonlyscan = off",
            "SET enable_bitmapscan = off",
        ]);
        let wanted: Vec<String> = queries.iter().map(|q| s.run(q)).collect();
        s.run_each(&["RESET ALL", "SET enable_seqscan = off", "SET enable_sort = off"]);
        let planned = s.run(&format!("EXPLAIN {}", queries[0]));
        assert!(planned.contains("Index Cond: (") && planned.contains(" = "), "{ty}: {planned}");
        for (query, want) in queries.iter().zip(&wanted) {
            assert_eq!(&s.run(query), want, "{ty}: {query}");
        }
        s.run_each(&["RESET ALL", "REINDEX INDEX t_v"]);
        assert_eq!(db.faults(), Vec::<String>::new(), "{ty}");
        s.run_each(&["DROP TABLE t"]);
    }
}

#[test]
fn they_keep_keys_apart() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE u (a int[] PRIMARY KEY, b inet UNIQUE, c jsonb UNIQUE, d numeric[] UNIQUE)",
        "INSERT INTO u VALUES ('{1,2}', '10.0.0.1', '{\"a\": 1}', '{1.50}')",
    ]);
    let key = |column: &str, value: &str| {
        format!(
            "23505 duplicate key value violates unique constraint \"u_{column}\"\nKey {value} already exists."
        )
    };
    s.check(&[
        ("INSERT INTO u VALUES ('{1,2}', '10.0.0.2', '2', '{2}')", &key("pkey", "(a)=({1,2})")),
        ("INSERT INTO u VALUES ('{1}', '10.0.0.1/32', '2', '{2}')", &key("b_key", "(b)=(10.0.0.1)")),
        ("INSERT INTO u VALUES ('{1}', '10.0.0.2', '{\"a\": 1.0}', '{2}')", &key("c_key", "(c)=({\"a\": 1.0})")),
        ("INSERT INTO u VALUES ('{1}', '10.0.0.2', '2', '{1.5}')", &key("d_key", "(d)=({1.5})")),
        ("INSERT INTO u VALUES ('{1}', '10.0.0.2', '2', '{2}') ON CONFLICT (a) DO NOTHING", ""),
        ("INSERT INTO u VALUES ('{1}', NULL, '3', '{3}') ON CONFLICT (a) DO UPDATE SET b = '::1' RETURNING a, b", "{1}|::1"),
        ("SELECT a FROM u ORDER BY a", "{1}\n{1,2}"),
    ]);
}

/// Networks are networks, in the order of addresses.
#[test]
fn networks_and_addresses() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT string_agg(x::text, ' ' ORDER BY x) FROM unnest('{10.1/16,10/8,9/8,::/0,10.1.0.0/24}'::cidr[]) x",
            "9.0.0.0/8 10.0.0.0/8 10.1.0.0/16 10.1.0.0/24 ::/0",
        ),
        ("SELECT '1.2.3.4'::cidr::inet, '1.2.3.4'::cidr = '1.2.3.4'::inet, '10.1.2.3/16'::inet::cidr", "1.2.3.4|t|10.1.0.0/16"),
        ("SELECT network('10.1.2.3/16'), inet_merge('192.168.1.5/24', '192.168.2.5/24'), abbrev('10.1/16'::cidr), set_masklen('10.1.2/24'::cidr, 8)", "10.1.0.0/16|192.168.0.0/22|10.1/16|10.0.0.0/8"),
        ("SELECT '10.1.2.3/24'::cidr", "22P02 invalid cidr value: \"10.1.2.3/24\"\nValue has bits set to right of mask."),
        ("SELECT inet_merge('1.2.3.4', '::1')", "22023 cannot merge addresses from different families"),
        (
            "SELECT count(*) FROM (VALUES ('1.2.3.4'::cidr)) a (c) JOIN (VALUES ('1.2.3.4'::inet), ('::1')) b (i) ON c = i",
            "1",
        ),
        ("SELECT count(DISTINCT x) FROM unnest('{10.0.0.2,10.0.0.2/32,10.0.0.2/31}'::inet[]) x", "2"),
    ]);
}
