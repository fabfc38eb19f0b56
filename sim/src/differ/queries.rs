//! SELECT statements whose rows do not depend on the order in which a server meets them.

use super::exprs::{Col, Gen};
use super::values::{Statement, TYPES, Ty, ty};

/// The types that select lists are made of: those whose equal values look equal.
const OUTPUTS: &[&str] = &[
    "int4",
    "text",
    "int8",
    "bool",
    "date",
    "numeric",
    "timestamp",
    "int4[]",
    "jsonb",
    "text[]",
    "varchar",
    "uuid",
    "float8",
    "timestamptz",
    "bytea",
    "time",
];

/// Keys of frames, and offsets from them.
const OFFSETS: &[(&str, &[&str])] = &[
    ("int4", &["1", "2", "0"]),
    ("int8", &["1", "3"]),
    ("numeric", &["0.5", "2"]),
    ("float8", &["0.5", "2"]),
    ("date", &["'1 day'", "'2 months'", "'0'"]),
    ("timestamp", &["'1 month'", "'12 hours'", "'1 year 2 days'"]),
    ("timestamptz", &["'1 day'", "'1 month'", "'2 hours'"]),
    ("interval", &["'1 day'", "'3 hours'"]),
    ("time", &["'1 hour'", "'23 hours'"]),
];

impl Gen<'_> {
    /// A name that nothing else has.
    pub fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    /// The types of a select list.
    fn outputs(&mut self, most: usize) -> Vec<Ty> {
        (0..=self.c.below(most)).map(|_| ty(self.c.pick::<&str>(OUTPUTS))).collect()
    }

    /// A subquery that yields columns of these types.
    pub fn nested(&mut self, types: &[Ty]) -> String {
        self.depth += 1;
        let text = self.query(types, false);
        self.depth -= 1;
        text
    }

    /// A subquery of one column and at most one row.
    pub fn scalar_subquery(&mut self, t: Ty) -> String {
        self.depth += 1;
        let from = self.from(1);
        let text = match (TYPES[t].name, self.c.below(3)) {
            ("int4" | "text" | "int8" | "numeric" | "date" | "timestamp", 0 | 1) => {
                let f = *self.c.pick(&["max", "min"]);
                let arg = self.expr(t, 1);
                let condition = self.condition(1);
                format!("(SELECT {f}({arg}) FROM {from} WHERE {condition})")
            }
            _ => {
                let arg = self.expr(t, 1);
                let order = self.total_order();
                format!("(SELECT {arg} FROM {from} ORDER BY {order} LIMIT 1)")
            }
        };
        self.scopes.pop();
        self.depth -= 1;
        text
    }

    /// All columns in sight, so that equal places are equal rows.
    fn total_order(&mut self) -> String {
        let mut keys: Vec<String> = self.scopes.last().map_or_else(Vec::new, |s| {
            s.iter().filter(|c| TYPES[c.ty].sorts).map(|c| c.sql.clone()).collect()
        });
        if keys.is_empty() {
            return "1".into();
        }
        let by = self.c.below(keys.len());
        keys.rotate_left(by);
        let direction = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        keys[0].push_str(direction);
        keys.join(", ")
    }

    fn relation(&mut self, lateral: bool) -> (String, Vec<Col>) {
        let alias = self.name("x");
        let column = |alias: &str, n: &str, t: Ty| Col {
            sql: format!("{alias}.{n}"),
            ty: t,
            aggregate: false,
        };
        let how = self.c.below(20);
        if how >= 12 && self.depth < 2 {
            match how {
                12..=14 => {
                    let types = self.outputs(3);
                    let lateral = lateral && self.c.percent(50);
                    let hidden = if lateral { None } else { self.scopes.pop() };
                    let query = self.nested(&types);
                    self.scopes.extend(hidden);
                    let names: Vec<String> = (0..types.len()).map(|i| format!("a{i}")).collect();
                    let cols =
                        names.iter().zip(&types).map(|(n, t)| column(&alias, n, *t)).collect();
                    let word = if lateral { "LATERAL " } else { "" };
                    return (format!("{word}({query}) {alias}({})", names.join(", ")), cols);
                }
                15 => {
                    let (low, high) = (self.c.below(4), self.c.below(9));
                    return (
                        format!("generate_series({low}, {high}) {alias}(g)"),
                        vec![column(&alias, "g", 0)],
                    );
                }
                16 => {
                    let array =
                        if lateral { self.leaf(ty("int4[]")) } else { "ARRAY[3,1,NULL,2]".into() };
                    let text = format!("unnest({array}) WITH ORDINALITY {alias}(u, o)");
                    return (text, vec![column(&alias, "u", 0), column(&alias, "o", ty("int8"))]);
                }
                17 => {
                    let types = self.outputs(2);
                    let rows: Vec<String> = (0..=self.c.below(4))
                        .map(|_| {
                            let row: Vec<String> = types
                                .iter()
                                .map(|t| {
                                    let l = self.literal(*t);
                                    format!("{l}::{}", TYPES[*t].name)
                                })
                                .collect();
                            format!("({})", row.join(", "))
                        })
                        .collect();
                    let names: Vec<String> = (0..types.len()).map(|i| format!("v{i}")).collect();
                    let cols =
                        names.iter().zip(&types).map(|(n, t)| column(&alias, n, *t)).collect();
                    return (
                        format!("(VALUES {}) {alias}({})", rows.join(", "), names.join(", ")),
                        cols,
                    );
                }
                _ => {}
            }
        }
        if !self.ctes.is_empty() && self.c.percent(40) {
            let (name, cols) = self.c.pick(&self.ctes).clone();
            let cols = cols.iter().map(|(n, t)| column(&alias, n, *t)).collect();
            return (format!("{name} {alias}"), cols);
        }
        let table = self.c.pick(self.tables);
        let cols = table.columns.iter().map(|(n, t)| column(&alias, n, *t)).collect();
        (format!("{} {alias}", table.name), cols)
    }

    /// A FROM list; leaves its columns as a new innermost scope.
    pub fn from(&mut self, most: usize) -> String {
        self.scopes.push(Vec::new());
        let (mut text, cols) = self.relation(false);
        let here = self.scopes.len() - 1;
        self.scopes[here] = cols;
        for _ in 0..self.c.below(most) {
            let before = self.scopes[here].clone();
            let how = self.c.below(10);
            // What stands at the right of a RIGHT or FULL join cannot look to its left.
            let lateral = !matches!(how, 7..=9);
            let (right, cols) = self.relation(lateral);
            let key = |cols: &[Col], t: Ty, at: usize| {
                let of: Vec<String> =
                    cols.iter().filter(|c| c.ty == t).map(|c| c.sql.clone()).collect();
                of.get(at % of.len().max(1)).cloned()
            };
            let t = if self.c.percent(25) { self.c.pick(&cols).ty } else { 0 };
            let (a, b) = (self.c.below(3), self.c.below(3));
            let u = if self.c.percent(15) { self.partner(t) } else { t };
            let equal = match (key(&before, u, a), key(&cols, t, b)) {
                (Some(l), Some(r)) => Some(format!("{l} = {r}")),
                _ => None,
            };
            let outer = self.scopes.len() - 1;
            let lone: Vec<Vec<Col>> = self.scopes.clone();
            self.scopes[outer].extend(cols.clone());
            let mut on = equal.clone().unwrap_or_else(|| "true".into());
            if self.c.percent(25) && how < 9 {
                let deep = std::mem::replace(&mut self.depth, 2);
                on = if self.c.percent(50) {
                    format!("{on} AND {}", self.condition(1))
                } else {
                    self.condition(1)
                };
                self.depth = deep;
            }
            drop(lone);
            text = match how {
                0 | 1 => format!("{text} JOIN {right} ON {on}"),
                2 if !text.contains(" JOIN ") => {
                    let joined = format!("{text}, {right}");
                    if equal.is_some() { joined } else { format!("{text} CROSS JOIN {right}") }
                }
                2 | 3 => format!("{text} CROSS JOIN {right}"),
                4..=6 => format!("{text} LEFT JOIN {right} ON {on}"),
                7 | 8 => format!("{text} RIGHT JOIN {right} ON {on}"),
                _ => format!("{text} FULL JOIN {right} ON {on}"),
            };
        }
        text
    }

    fn aggregate(&mut self) -> (String, Ty) {
        let deep = std::mem::replace(&mut self.depth, 2);
        let e = |g: &mut Self, t: &str| g.expr(ty(t), 1);
        let (text, t) = match self.c.below(22) {
            0 => ("count(*)".into(), "int8"),
            1 => {
                let t = ty(self.c.pick::<&str>(OUTPUTS));
                let distinct = *self.c.pick(&["", "DISTINCT "]);
                (format!("count({distinct}{})", self.expr(t, 1)), "int8")
            }
            2 => (format!("sum({})", e(self, "int4")), "int8"),
            3 => (format!("sum(DISTINCT {})", e(self, "int4")), "int8"),
            4 => (format!("sum({})", e(self, "numeric")), "numeric"),
            5 => (format!("avg({})", e(self, "int4")), "numeric"),
            6 => (format!("min({})", e(self, "text")), "text"),
            7 => (format!("max({})", e(self, "timestamp")), "timestamp"),
            8 => (format!("max({})", e(self, "int4")), "int4"),
            9 => (format!("bool_and({})", e(self, "bool")), "bool"),
            10 => (format!("bool_or({})", e(self, "bool")), "bool"),
            11 => {
                let (x, d) = (e(self, "text"), *self.c.pick(&["", " DESC"]));
                (format!("string_agg({x}, ',' ORDER BY {x}{d})"), "text")
            }
            12 => {
                let x = e(self, "text");
                (format!("string_agg(DISTINCT {x}, '-')"), "text")
            }
            13 => {
                let (x, d) =
                    (e(self, "int4"), *self.c.pick(&["", " DESC NULLS LAST", " NULLS FIRST"]));
                (format!("array_agg({x} ORDER BY {x}{d})"), "int4[]")
            }
            14 => (format!("array_agg(DISTINCT {})", e(self, "text")), "text[]"),
            15 => {
                let x = e(self, "int4");
                (format!("jsonb_agg({x} ORDER BY {x})"), "jsonb")
            }
            16 => (format!("bit_xor({})", e(self, "int4")), "int4"),
            17 => (
                format!("percentile_disc(0.4) WITHIN GROUP (ORDER BY {})", e(self, "int4")),
                "int4",
            ),
            18 => (
                format!("percentile_cont(0.25) WITHIN GROUP (ORDER BY {})", e(self, "float8")),
                "float8",
            ),
            19 => (format!("stddev_pop({})", e(self, "int4")), "numeric"),
            20 => (format!("min({})", e(self, "date")), "date"),
            _ => (format!("var_samp({})", e(self, "numeric")), "numeric"),
        };
        let text = if self.c.percent(20) {
            format!("{text} FILTER (WHERE {})", self.condition(1))
        } else {
            text
        };
        self.depth = deep;
        (text, ty(t))
    }

    fn window(&mut self) -> (String, Ty) {
        let deep = std::mem::replace(&mut self.depth, 2);
        let (f, t) = match self.c.below(14) {
            0 => ("row_number()".to_owned(), ty("int8")),
            1 => ("rank()".to_owned(), ty("int8")),
            2 => ("dense_rank()".to_owned(), ty("int8")),
            3 => ("ntile(3)".to_owned(), ty("int4")),
            4 => (format!("lag({}, 2)", self.leaf(0)), 0),
            5 => (format!("lead({}, 1, -9)", self.leaf(0)), 0),
            6 => (format!("first_value({})", self.leaf(1)), 1),
            7 => (format!("last_value({})", self.leaf(0)), 0),
            8 => (format!("nth_value({}, 2)", self.leaf(1)), 1),
            9 => ("count(*)".to_owned(), ty("int8")),
            10 => (format!("sum({})", self.leaf(0)), ty("int8")),
            11 => (format!("max({})", self.leaf(1)), 1),
            12 => (format!("avg({})", self.leaf(0)), ty("numeric")),
            _ => ("cume_dist()".to_owned(), ty("float8")),
        };
        let partition = if self.c.percent(60) {
            let t = ty(self.c.pick::<&str>(&["int4", "text", "bool"]));
            format!("PARTITION BY {} ", self.leaf(t))
        } else {
            String::new()
        };
        let exclude =
            *self.c.pick(&["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"]);
        let over = if self.c.percent(30) {
            // A RANGE over one key: peers are alike, whatever their order.
            let direction = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            let (kind, offsets) = *self.c.pick(OFFSETS);
            let key = self.columns_of(ty(kind));
            match key {
                Some(key)
                    if matches!(
                        f.split('(').next(),
                        Some("count" | "sum" | "max" | "avg" | "rank" | "dense_rank" | "cume_dist")
                    ) =>
                {
                    let (a, b) = (*self.c.pick(offsets), *self.c.pick(offsets));
                    let frame = match self.c.below(9) {
                        0 => String::new(),
                        1 => format!(" RANGE BETWEEN {a} PRECEDING AND {b} FOLLOWING"),
                        2 => " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW".into(),
                        3 => format!(" RANGE BETWEEN UNBOUNDED PRECEDING AND {a} PRECEDING"),
                        4 => " GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING".into(),
                        5 => format!(" RANGE BETWEEN {a} PRECEDING AND {b} PRECEDING"),
                        6 => format!(" RANGE BETWEEN {a} FOLLOWING AND {b} FOLLOWING"),
                        7 => format!(" RANGE BETWEEN CURRENT ROW AND {a} FOLLOWING"),
                        _ => format!(" RANGE BETWEEN {a} FOLLOWING AND UNBOUNDED FOLLOWING"),
                    };
                    let exclude = if frame.is_empty() { "" } else { exclude };
                    format!("ORDER BY {key}{direction}{frame}{exclude}")
                }
                _ => format!("ORDER BY {}", self.total_order()),
            }
        } else {
            let frame = *self.c.pick(&[
                "",
                "",
                " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
                " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
                " ROWS 1 PRECEDING",
                " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            ]);
            let exclude = if frame.is_empty() { "" } else { exclude };
            format!("ORDER BY {}{frame}{exclude}", self.total_order())
        };
        let aggregate = matches!(f.split('(').next(), Some("count" | "sum" | "max" | "avg"));
        let filter = if aggregate && self.c.percent(20) {
            format!(" FILTER (WHERE {})", self.condition(1))
        } else {
            String::new()
        };
        self.depth = deep;
        (format!("{f}{filter} OVER ({partition}{over})"), t)
    }

    fn columns_of(&mut self, t: Ty) -> Option<String> {
        let of: Vec<String> =
            self.scopes.last()?.iter().filter(|c| c.ty == t).map(|c| c.sql.clone()).collect();
        if of.is_empty() { None } else { Some(self.c.pick(&of).clone()) }
    }

    /// One SELECT without ORDER BY that yields these types; `free` lets it be DISTINCT ON with an order of its own.
    fn select(&mut self, types: &[Ty]) -> String {
        let most = if self.depth == 0 { 3 } else { 2 };
        let from = self.from(most);
        let condition = if self.c.percent(60) {
            format!(" WHERE {}", self.condition(2))
        } else {
            String::new()
        };
        let mut tail = String::new();
        match self.c.below(10) {
            7 | 8 => {
                let here = self.scopes.len() - 1;
                let all: Vec<Col> =
                    self.scopes[here].iter().filter(|c| TYPES[c.ty].sorts).cloned().collect();
                let mut keys: Vec<Col> = Vec::new();
                for _ in 0..self.c.below(3) {
                    if all.is_empty() {
                        break;
                    }
                    let mut key = self.c.pick(&all).clone();
                    if self.c.percent(15) && TYPES[key.ty].name == "int4" {
                        key.sql = format!("({} % 3)", key.sql);
                    }
                    if !keys.iter().any(|k| k.sql == key.sql) {
                        keys.push(key);
                    }
                }
                let mut visible = keys.clone();
                for _ in 0..=self.c.below(3) {
                    let (sql, t) = self.aggregate();
                    visible.push(Col { sql, ty: t, aggregate: true });
                }
                if !keys.is_empty() {
                    let list: Vec<&str> = keys.iter().map(|k| k.sql.as_str()).collect();
                    let list = list.join(", ");
                    tail = match self.c.below(8) {
                        5 => format!(" GROUP BY ROLLUP ({list})"),
                        6 => format!(" GROUP BY CUBE ({list})"),
                        7 => format!(" GROUP BY GROUPING SETS (({list}), ({}), ())", keys[0].sql),
                        _ => format!(" GROUP BY {list}"),
                    };
                    if tail.contains("S (") || tail.contains("P (") || tail.contains("E (") {
                        visible.push(Col {
                            sql: format!("GROUPING({})", keys[0].sql),
                            ty: 0,
                            aggregate: true,
                        });
                    }
                }
                self.scopes[here] = visible;
                if self.c.percent(30) {
                    tail.push_str(&format!(" HAVING {}", self.condition(1)));
                }
            }
            9 if self.depth == 0 => {
                let here = self.scopes.len() - 1;
                let mut extra = Vec::new();
                for _ in 0..=self.c.below(2) {
                    let (sql, t) = self.window();
                    extra.push(Col { sql, ty: t, aggregate: true });
                }
                self.scopes[here].extend(extra);
            }
            _ => {}
        }
        let items: Vec<String> = types
            .iter()
            .map(|t| {
                let aggregates: Vec<String> = self.scopes.last().map_or_else(Vec::new, |s| {
                    s.iter().filter(|c| c.aggregate && c.ty == *t).map(|c| c.sql.clone()).collect()
                });
                let e = if !aggregates.is_empty() && self.c.percent(60) {
                    self.c.pick(&aggregates).clone()
                } else {
                    self.expr(*t, 2)
                };
                // So that bare constants have the type that a set operation or a subquery's reader counts on.
                if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[*t].name) } else { e }
            })
            .collect();
        let distinct = if self.c.percent(12) { "DISTINCT " } else { "" };
        self.scopes.pop();
        format!("SELECT {distinct}{} FROM {from}{condition}{tail}", items.join(", "))
    }

    /// A query that yields these types; `top` gives it an order, perhaps, and says whether.
    pub fn query(&mut self, types: &[Ty], top: bool) -> String {
        let mut text = self.select(types);
        if self.c.percent(15) {
            for _ in 0..=self.c.below(2) {
                let op = *self.c.pick(&[
                    "UNION ALL",
                    "UNION",
                    "INTERSECT",
                    "EXCEPT",
                    "EXCEPT ALL",
                    "INTERSECT ALL",
                ]);
                let other = self.select(types);
                text = if self.c.percent(30) {
                    format!("({text}) {op} ({other})")
                } else {
                    format!("{text} {op} {other}")
                };
            }
        }
        if !top && self.c.percent(20) {
            let all: Vec<String> = (1..=types.len()).map(|n| n.to_string()).collect();
            text = format!("{text} ORDER BY {} LIMIT {}", all.join(", "), self.c.below(7));
        }
        text
    }

    fn with(&mut self) -> String {
        let mut list = Vec::new();
        let mut recursive = false;
        for _ in 0..=self.c.below(2) {
            let name = self.name("w");
            if self.c.percent(25) {
                recursive = true;
                let (to, op) = (self.c.below(8), *self.c.pick(&["UNION ALL", "UNION"]));
                let step = match self.c.below(3) {
                    0 => format!("SELECT k + 1, p || k::text FROM {name} WHERE k < {to}"),
                    1 => format!(
                        "SELECT t.n + w.k, w.p FROM {name} w JOIN t1 t ON t.id = w.k WHERE w.k < {to} AND t.n > 0"
                    ),
                    _ => format!(
                        "SELECT (k * 2) % 7, '' FROM {name} WHERE k <> {to} AND length(p) < 1"
                    ),
                };
                let op = if step.contains("% 7") { "UNION" } else { op };
                list.push(format!("{name}(k, p) AS (SELECT 1, ''::text {op} {step})"));
                self.ctes.push((name, vec![("k".into(), 0), ("p".into(), 1)]));
                continue;
            }
            let types = self.outputs(3);
            let query = self.nested(&types);
            let names: Vec<String> = (0..types.len()).map(|i| format!("q{i}")).collect();
            let kind = *self.c.pick(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            list.push(format!("{name}({}) AS {kind}({query})", names.join(", ")));
            self.ctes.push((name, names.into_iter().zip(types).collect()));
        }
        format!("WITH {}{} ", if recursive { "RECURSIVE " } else { "" }, list.join(", "))
    }

    /// A whole SELECT statement.
    pub fn whole(mut self) -> (Statement, Vec<u32>) {
        self.wild = self.c.percent(8);
        let types = self.outputs(4);
        let with = if self.c.percent(20) { self.with() } else { String::new() };
        let mut ordered = false;
        let text = match self.c.below(12) {
            10 => {
                // DISTINCT ON: the first row of each group by an order that leaves no ties but of equal rows.
                let from = self.from(2);
                let order = self.total_order();
                let first = order.split([' ', ',']).next().unwrap_or("1").to_owned();
                let items: Vec<String> = types
                    .iter()
                    .map(|t| {
                        let e = self.leaf(*t);
                        if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[*t].name) } else { e }
                    })
                    .collect();
                self.scopes.pop();
                format!(
                    "SELECT DISTINCT ON ({first}) {} FROM {from} ORDER BY {order}",
                    items.join(", ")
                )
            }
            11 => {
                // By key, as applications do.
                let table = self.c.pick(self.tables);
                let (name, columns) = (table.name.clone(), table.columns.clone());
                self.scopes.push(
                    columns
                        .iter()
                        .map(|(n, t)| Col { sql: n.clone(), ty: *t, aggregate: false })
                        .collect(),
                );
                let id = self.literal(0);
                let more = if self.c.percent(30) {
                    format!(" AND {}", self.condition(1))
                } else {
                    String::new()
                };
                self.scopes.pop();
                format!("SELECT * FROM {name} WHERE id = {id}{more}")
            }
            _ => {
                let mut text = self.query(&types, true);
                if self.c.percent(45) {
                    let mut keys: Vec<usize> = (1..=types.len()).collect();
                    let by = self.c.below(keys.len());
                    keys.rotate_left(by);
                    let keys: Vec<String> = keys
                        .iter()
                        .map(|k| {
                            format!(
                                "{k}{}",
                                self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
                            )
                        })
                        .collect();
                    text = format!("{text} ORDER BY {}", keys.join(", "));
                    ordered = true;
                    if self.c.percent(40) {
                        text =
                            format!("{text} LIMIT {} OFFSET {}", self.c.below(9), self.c.below(4));
                    }
                }
                text
            }
        };
        (Statement { text: with + &text, literals: self.literals, ordered }, self.c.taken)
    }
}
