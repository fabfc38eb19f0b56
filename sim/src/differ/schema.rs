//! Tables with rows and indexes.

use super::choices::Choices;
use super::values::{IN_TABLES, Literal, TYPES, Ty};

/// A table that statements name.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Columns that may be read.
    pub columns: Vec<(String, Ty)>,
    /// Columns that may be written: without generated ones.
    pub writable: Vec<(String, Ty)>,
    /// What ON CONFLICT may name.
    pub unique: Vec<String>,
}

/// Tables and the statements that make them.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The tables.
    pub tables: Vec<Table>,
    /// What makes them.
    pub statements: Vec<String>,
}

fn value(c: &mut Choices, t: Ty) -> String {
    let text = if c.percent(15) { None } else { Some((*c.pick(TYPES[t].plain)).to_owned()) };
    Literal { ty: t, text, bare: true }.sql()
}

/// A table of all values of a type, found again by each of them, by index and without.
fn odd(c: &mut Choices, out: &mut Vec<String>) {
    let t = loop {
        let t = c.below(TYPES.len());
        if TYPES[t].sorts && !matches!(TYPES[t].name, "jsonb" | "jsonb[]") {
            break t;
        }
    };
    let literal = |text: &str| Literal { ty: t, text: Some(text.into()), bare: false }.sql();
    let all: Vec<String> = TYPES[t].plain.iter().chain(TYPES[t].odd).map(|v| literal(v)).collect();
    out.push("DROP TABLE IF EXISTS odd".into());
    out.push(format!("CREATE TABLE odd (k int, v {})", TYPES[t].name));
    let direction = *c.pick(&["", " DESC", " NULLS FIRST"]);
    if c.percent(50) {
        out.push(format!("CREATE INDEX ON odd (v{direction}, k)"));
    }
    for (k, v) in all.iter().enumerate() {
        out.push(format!("INSERT INTO odd VALUES ({k}, {v})"));
    }
    out.push("INSERT INTO odd SELECT 1000, NULL FROM generate_series(1, 3)".into());
    out.push(format!("CREATE INDEX ON odd (v{direction})"));
    if c.percent(50) {
        out.push("VACUUM ANALYZE odd".into());
    }
    out.push("SELECT k, v FROM odd ORDER BY v, k".into());
    let op = *c.pick(&["=", "<", ">=", "<>", ">"]);
    for seq in ["on", "off"] {
        out.push(format!("SET enable_seqscan = {seq}"));
        for v in &all {
            out.push(format!("SELECT k FROM odd WHERE v {op} {v} ORDER BY k"));
        }
        out.push(format!("SELECT k FROM odd WHERE v IN ({}, {}) ORDER BY k", all[0], c.pick(&all)));
        out.push(format!("SELECT a.k, b.k FROM odd a JOIN odd b ON a.v {op} b.v ORDER BY 1, 2"));
        out.push("SELECT min(k), count(*) FROM odd GROUP BY v ORDER BY 1".into());
    }
    out.push("RESET enable_seqscan".into());
}

/// How many of the tables are tables, and a view that is written as they are: the others are views that are read only.
pub const WRITTEN: usize = 6;

/// Views of the tables, which stand behind them in the list.
fn views(schema: &mut Schema) {
    let (int, text, bigint) = (0, 1, 2);
    type View<'v> = (&'v str, &'v str, &'v [(&'v str, Ty)]);
    let made: &[View<'_>] = &[
        (
            "v0",
            "SELECT id, n, s FROM t0 WHERE n > 1 OR s <> 'ab' WITH CHECK OPTION",
            &[("id", int), ("n", int), ("s", text)],
        ),
        (
            "v1",
            "SELECT a.id, a.n, b.s, b.r FROM t0 a LEFT JOIN t1 b ON a.id = b.r AND b.n > 0",
            &[("id", int), ("n", int), ("s", text), ("r", int)],
        ),
        (
            "v2",
            "SELECT n, count(*) c, max(s) m FROM t3 GROUP BY n",
            &[("n", int), ("c", bigint), ("m", text)],
        ),
        (
            "v3",
            "SELECT id, n, s FROM t2 UNION ALL SELECT id, n + 1, s FROM t4",
            &[("id", int), ("n", int), ("s", text)],
        ),
        (
            "v4",
            "SELECT id, n, row_number() OVER (PARTITION BY n ORDER BY id) r FROM t3",
            &[("id", int), ("n", int), ("r", bigint)],
        ),
        ("v5", "SELECT DISTINCT n, s FROM t1", &[("n", int), ("s", text)]),
    ];
    for (name, query, columns) in made {
        schema.statements.push(format!("CREATE VIEW {name} AS {query}"));
        let columns: Vec<(String, Ty)> =
            columns.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect();
        let unique = if *name == "v0" { vec!["id".to_owned()] } else { Vec::new() };
        let writable = columns.clone();
        schema.tables.push(Table { name: (*name).to_owned(), columns, writable, unique });
    }
}

/// Some tables.
pub fn make(c: &mut Choices) -> Schema {
    let mut schema = Schema::default();
    for number in 0..5 {
        let name = format!("t{number}");
        schema.statements.push(format!("DROP TABLE IF EXISTS {name} CASCADE"));
        let mut columns: Vec<(String, Ty)> =
            vec![("id".into(), 0), ("n".into(), 0), ("s".into(), 1)];
        for extra in 0..2 + c.below(4) {
            let t = c.below(IN_TABLES);
            columns.push((format!("c{extra}"), t));
        }
        let mut unique = Vec::new();
        let mut defined = Vec::new();
        for (at, (column, t)) in columns.iter().enumerate() {
            let mut text = format!("{column} {}", TYPES[*t].name);
            match (number, at) {
                (0 | 1 | 3, 0) => text.push_str(" PRIMARY KEY"),
                (2, 0) => text.push_str(" NOT NULL"),
                (_, 1) if c.percent(20) => text.push_str(" CHECK (n < 1000)"),
                _ => {
                    if c.percent(10) {
                        text.push_str(&format!(
                            " DEFAULT {}",
                            Literal { ty: *t, text: Some(TYPES[*t].plain[0].into()), bare: false }
                                .sql()
                        ));
                    }
                }
            }
            defined.push(text);
        }
        let writable = columns.clone();
        if c.percent(30) {
            defined.push("g int GENERATED ALWAYS AS (n * 2 + length(s)) STORED".into());
            columns.push(("g".into(), 0));
        }
        if matches!(number, 0 | 1 | 3) {
            unique.push("id".to_owned());
        }
        if number == 1 {
            defined.push("r int REFERENCES t0 (id) ON DELETE CASCADE".into());
            columns.push(("r".into(), 0));
        }
        if number == 4 {
            defined.push("UNIQUE (n, s)".into());
            unique.push("n, s".into());
        }
        schema.statements.push(format!("CREATE TABLE {name} ({})", defined.join(", ")));
        let indexes = |c: &mut Choices, out: &mut Vec<String>| {
            for _ in 0..c.below(3) {
                let sortable: Vec<&str> = columns
                    .iter()
                    .filter(|(_, t)| TYPES[*t].sorts)
                    .map(|(n, _)| n.as_str())
                    .collect();
                let mut keys = Vec::new();
                for _ in 0..=c.below(3) {
                    let column = *c.pick(&sortable);
                    let direction = *c.pick(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                    keys.push(match c.below(6) {
                        4 => format!("lower(s){direction}"),
                        5 => format!("(n + 1){direction}"),
                        _ => format!("{column}{direction}"),
                    });
                }
                let partial = *c.pick(&[
                    "",
                    "",
                    "",
                    " WHERE n > 1",
                    " WHERE s IS NOT NULL",
                    " WHERE n IS NULL OR id < 10",
                ]);
                let include = *c.pick(&["", "", "", " INCLUDE (n)"]);
                out.push(format!("CREATE INDEX ON {name} ({}){include}{partial}", keys.join(", ")));
            }
        };
        if c.percent(50) {
            indexes(c, &mut schema.statements);
        }
        let rows = [0, 3, 9, 14, 20][c.below(5)] + if number == 3 { 80 } else { 5 };
        let mut list = Vec::new();
        for row in 0..rows {
            let mut values = Vec::new();
            for (column, t) in &writable {
                values.push(match column.as_str() {
                    "id" if number == 2 => (row % 7).to_string(),
                    "id" => row.to_string(),
                    _ => value(c, *t),
                });
            }
            if number == 1 {
                values.push(if c.percent(20) { "NULL".into() } else { c.below(8).to_string() });
            }
            list.push(format!("({})", values.join(", ")));
        }
        let mut names: Vec<&str> = writable.iter().map(|(n, _)| n.as_str()).collect();
        if number == 1 {
            names.push("r");
        }
        schema.statements.push(format!(
            "INSERT INTO {name} ({}) VALUES {} ON CONFLICT DO NOTHING",
            names.join(", "),
            list.join(", ")
        ));
        indexes(c, &mut schema.statements);
        if c.percent(40) {
            schema
                .statements
                .push(format!("UPDATE {name} SET s = s || 'u' WHERE id % 5 = 1 AND n <> 3"));
            schema.statements.push(format!("DELETE FROM {name} WHERE id % 11 = 10"));
        }
        if c.percent(60) {
            schema
                .statements
                .push(format!("{} {name}", c.pick(&["ANALYZE", "VACUUM", "VACUUM ANALYZE"])));
        }
        if number == 3 {
            odd(c, &mut schema.statements);
        }
        schema.tables.push(Table { name, columns, writable, unique });
    }
    views(&mut schema);
    dense(c, &mut schema);
    large(c, &mut schema);
    super::keys::make(c, &mut schema);
    schema
}

/// Tables of few rows and fewer values: whatever is asked of some of their columns, some rows meet it and some do not.
fn dense(c: &mut Choices, schema: &mut Schema) {
    for number in 0..4 {
        let name = format!("s{number}");
        let out = &mut schema.statements;
        out.push(format!("DROP TABLE IF EXISTS {name}"));
        let kept = *c.pick(&["", " NOT NULL"]);
        out.push(format!("CREATE TABLE {name} (a int{kept}, b int, c int)"));
        let value = |c: &mut Choices| *c.pick(&["0", "1", "2", "3", "NULL", "1", "2"]);
        let rows: Vec<String> = (0..4 + c.below(5))
            .map(|_| {
                let a = if kept.is_empty() { value(c) } else { *c.pick(&["0", "1", "2", "3"]) };
                format!("({a}, {}, {})", value(c), value(c))
            })
            .collect();
        out.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
        let indexes = ["(a)", "(b, c)", "(c DESC, a)", "(a, b, c)", "(b) WHERE c IS NOT NULL"];
        for index in indexes {
            if c.percent(30) {
                out.push(format!("CREATE INDEX ON {name} {index}"));
            }
        }
        if c.percent(50) {
            out.push(format!("{} {name}", c.pick(&["ANALYZE", "VACUUM ANALYZE"])));
        }
        let columns: Vec<(String, Ty)> = ["a", "b", "c"].map(|n| (n.to_owned(), 0)).to_vec();
        let writable = columns.clone();
        schema.tables.push(Table { name, columns, writable, unique: Vec::new() });
    }
}

/// Indexes that the large table may have.
const LARGE_INDEXES: &[&str] = &[
    "(n, s)",
    "(n DESC NULLS LAST, c0)",
    "(s, n) INCLUDE (c1)",
    "(c0 DESC, s NULLS FIRST)",
    "(lower(s), n)",
    "((n + 1))",
    "(c1, c2 DESC, n)",
    "(n) WHERE s IS NOT NULL",
    "(c2) INCLUDE (n, s)",
    "(s, c0) WHERE n > 1",
];

/// The last table: of so many rows, and such wide ones, that sorts and hashes of them spill, and that indexes are worth it.
fn large(c: &mut Choices, schema: &mut Schema) {
    let types = [("id", 0), ("n", 0), ("s", 1), ("c0", 2), ("c1", 3), ("c2", 6), ("w", 1)];
    let columns: Vec<(String, Ty)> = types.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect();
    let defined: Vec<String> =
        columns.iter().map(|(n, t)| format!("{n} {}", TYPES[*t].name)).collect();
    let out = &mut schema.statements;
    out.push("DROP TABLE IF EXISTS large".into());
    out.push(format!("CREATE TABLE large ({}, PRIMARY KEY (id))", defined.join(", ")));
    let one_of = |t: Ty, step: usize| {
        let of: Vec<String> = TYPES[t]
            .plain
            .iter()
            .map(|v| Literal { ty: t, text: Some((*v).to_owned()), bare: false }.sql())
            .collect();
        let many = of.len() + 1;
        format!("(ARRAY[{}, NULL])[i / {step} % {many} + 1]", of.join(", "))
    };
    let (rows, step) = ([400, 1200][c.below(2)], 1 + c.below(3));
    out.push(format!(
        "INSERT INTO large SELECT i, CASE WHEN i % 13 <> 0 THEN i * 7 % 40 - 1 END, {}, {}, {}, {}, repeat(chr(97 + i % 20), i % 90) FROM generate_series(1, {rows}) i",
        one_of(1, step),
        one_of(2, 2),
        one_of(3, 3),
        one_of(6, 1),
    ));
    for index in LARGE_INDEXES {
        if c.percent(35) {
            out.push(format!("CREATE INDEX ON large {index}"));
        }
    }
    if c.percent(40) {
        out.push("DELETE FROM large WHERE id % 7 = 3".into());
    }
    if c.percent(70) {
        out.push(format!("{} large", c.pick(&["VACUUM ANALYZE", "ANALYZE", "VACUUM"])));
    }
    let name = "large".to_owned();
    let unique = vec!["id".to_owned()];
    schema.tables.push(Table { name, writable: columns.clone(), columns, unique });
}
