//! SELECT statements whose rows do not depend on the order in which a server meets them.

use super::exprs::{Col, Gen};
use super::values::{Statement, TYPES, Ty, ty};

/// The types that select lists are made of: those whose equal values look equal.
pub const OUTPUTS: &[&str] = &[
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

impl Gen<'_> {
    /// A name that nothing else has.
    pub fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    /// The types of a select list.
    pub fn outputs(&mut self, most: usize) -> Vec<Ty> {
        if self.dense {
            return vec![0; self.c.below(most) + 1];
        }
        (0..=self.c.below(most)).map(|_| ty(self.c.pick::<&str>(OUTPUTS))).collect()
    }

    /// A subquery that yields columns of these types.
    pub fn nested(&mut self, types: &[Ty]) -> String {
        self.depth += 1;
        let known = self.ctes.len();
        let with = if self.c.percent(5) { self.with() } else { String::new() };
        let text = with + &self.query(types, false);
        self.ctes.truncate(known);
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
    pub fn total_order(&mut self) -> String {
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

    /// GROUP BY, and HAVING; afterwards what stands above the grouping is in sight.
    fn grouping(&mut self) -> String {
        let here = self.scopes.len() - 1;
        let all: Vec<Col> =
            self.scopes[here].iter().filter(|c| TYPES[c.ty].sorts).cloned().collect();
        let mut keys: Vec<Col> = Vec::new();
        for _ in 0..self.c.below(4) {
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
        if self.depth < 2 && self.c.percent(35) {
            let raw = self.scopes[here].clone();
            let (sql, t) = self.outer_aggregate(&raw, &keys);
            visible.push(Col { sql, ty: t, aggregate: true });
        }
        let mut tail = String::new();
        if let Some(first) = keys.first().map(|k| k.sql.clone()) {
            let list: Vec<&str> = keys.iter().map(|k| k.sql.as_str()).collect();
            let (list, rest) = (list.join(", "), list[1..].join(", "));
            let rest = if rest.is_empty() { first.clone() } else { rest };
            let how = self.c.below(12);
            tail = match how {
                5 => format!(" GROUP BY ROLLUP ({list})"),
                6 => format!(" GROUP BY CUBE ({list})"),
                7 => format!(" GROUP BY GROUPING SETS (({list}), ({first}), ())"),
                8 => format!(" GROUP BY {first}, ROLLUP ({rest})"),
                9 => {
                    format!(" GROUP BY GROUPING SETS (({first}), ROLLUP ({rest}), CUBE ({first}))")
                }
                10 => format!(" GROUP BY DISTINCT ROLLUP ({list}), CUBE ({first})"),
                11 => format!(" GROUP BY GROUPING SETS (({rest}), ({first}))"),
                _ => format!(" GROUP BY {list}"),
            };
            if how >= 5 {
                let of = if self.c.percent(30) { &list } else { &first };
                visible.push(Col { sql: format!("GROUPING({of})"), ty: 0, aggregate: true });
            }
        }
        self.scopes[here] = visible;
        if self.c.percent(30) {
            tail.push_str(&format!(" HAVING {}", self.condition(1)));
        }
        tail
    }

    fn windows(&mut self) {
        let mut extra = Vec::new();
        for _ in 0..=self.c.below(3) {
            let (sql, t) = self.window();
            extra.push(Col { sql, ty: t, aggregate: true });
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(extra);
        }
    }

    /// An item of a select list.
    fn item(&mut self, t: Ty) -> String {
        let aggregates: Vec<String> = self.scopes.last().map_or_else(Vec::new, |s| {
            s.iter().filter(|c| c.aggregate && c.ty == t).map(|c| c.sql.clone()).collect()
        });
        let set = self.c.percent(3);
        let e = match TYPES[t].name {
            "int4" if set => match self.c.below(3) {
                0 => format!("generate_series(1, {} % 3)", self.leaf(t)),
                1 => format!("unnest({})", self.leaf(ty("int4[]"))),
                _ => format!("generate_series({}, 4) + 1", self.leaf(t)),
            },
            "text" if set => format!("unnest({})", self.leaf(ty("text[]"))),
            _ if !aggregates.is_empty() && self.c.percent(60) => self.c.pick(&aggregates).clone(),
            _ => self.expr(t, 2),
        };
        // So that bare constants have the type that a set operation or a subquery's reader counts on.
        if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[t].name) } else { e }
    }

    /// WHERE, in sub-selects with something about the query around.
    pub fn filter(&mut self) -> String {
        let beside = if self.depth > 0 && self.c.percent(if self.dense { 65 } else { 40 }) {
            self.outward()
        } else {
            None
        };
        let own = self.c.percent(if beside.is_some() { 35 } else { 60 });
        match (beside, own) {
            (Some(beside), true) => format!(" WHERE {beside} AND {}", self.condition(2)),
            (Some(beside), false) => format!(" WHERE {beside}"),
            (None, true) => format!(" WHERE {}", self.condition(2)),
            (None, false) => String::new(),
        }
    }

    /// One SELECT without ORDER BY that yields these types.
    fn select(&mut self, types: &[Ty]) -> String {
        let most = if self.depth == 0 { 3 } else { 2 } + usize::from(self.dense);
        let from = self.from(most);
        let condition = self.filter();
        let mut tail = String::new();
        match self.c.below(10) {
            7 | 8 => {
                tail = self.grouping();
                if self.c.percent(20) {
                    self.windows();
                }
            }
            9 if self.depth < 2 => self.windows(),
            _ => {}
        }
        let items: Vec<String> = types.iter().map(|t| self.item(*t)).collect();
        let distinct = if self.c.percent(12) { "DISTINCT " } else { "" };
        self.scopes.pop();
        format!("SELECT {distinct}{} FROM {from}{condition}{tail}", items.join(", "))
    }

    /// DISTINCT ON: the first row of each group by an order that leaves no ties but of equal rows.
    fn distinct_on(&mut self, types: &[Ty]) -> String {
        let from = self.from(2);
        let condition = self.filter();
        let order = self.total_order();
        let mut names = order.split(", ").map(|k| k.split(' ').next().unwrap_or("1"));
        let mut on = names.next().unwrap_or("1").to_owned();
        if let Some(second) = names.next()
            && self.c.percent(25)
        {
            on = format!("{on}, {second}");
        }
        let items: Vec<String> = types
            .iter()
            .map(|t| {
                let e = if self.c.percent(30) { self.expr(*t, 1) } else { self.leaf(*t) };
                if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[*t].name) } else { e }
            })
            .collect();
        self.scopes.pop();
        format!(
            "SELECT DISTINCT ON ({on}) {} FROM {from}{condition} ORDER BY {order}",
            items.join(", ")
        )
    }

    /// How many rows, and from which on.
    fn limit(&mut self) -> String {
        let n = self.c.below(7);
        let how = if self.tables.is_empty() { 0 } else { self.c.below(8) };
        let limit = match how {
            5 => {
                let table = self.c.below(5);
                format!("(SELECT abs(max(n)) % 7 FROM t{table} WHERE n < 40)")
            }
            6 => self.outer_number().map_or("ALL".into(), |c| format!("abs({c}) % 5")),
            7 => format!("{n} OFFSET {}", self.c.below(3)),
            _ => n.to_string(),
        };
        format!(" LIMIT {limit}")
    }

    fn outer_number(&mut self) -> Option<String> {
        let of: Vec<String> = self
            .scopes
            .iter()
            .flatten()
            .filter(|c| !c.aggregate && c.ty == 0)
            .map(|c| c.sql.clone())
            .collect();
        if of.is_empty() { None } else { Some(self.c.pick(&of).clone()) }
    }

    /// A query that yields these types; `top` gives it an order, perhaps, and says whether.
    pub fn query(&mut self, types: &[Ty], top: bool) -> String {
        let mut text = if !top && self.c.percent(6) {
            let names: Vec<String> = (0..types.len()).map(|i| format!("o{i}")).collect();
            format!("SELECT * FROM ({}) d({})", self.distinct_on(types), names.join(", "))
        } else {
            self.select(types)
        };
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
                let nested = self.depth < 2 && self.c.percent(25);
                // Where nobody else counts on the types.
                let others: Vec<Ty> = match self.depth == 0 && self.c.percent(30) {
                    true => types.iter().map(|t| self.partner(*t)).collect(),
                    false => types.to_vec(),
                };
                let other = if nested { self.nested(&others) } else { self.select(&others) };
                text = if nested || self.c.percent(30) {
                    format!("({text}) {op} ({other})")
                } else {
                    format!("{text} {op} {other}")
                };
            }
        }
        if !top && self.c.percent(20) {
            let mut keys: Vec<String> = (1..=types.len()).map(|n| n.to_string()).collect();
            let by = self.c.below(keys.len());
            keys.rotate_left(by);
            let order = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            keys[0].push_str(order);
            text = if self.c.percent(12) {
                let n = 1 + self.c.below(4);
                format!("{text} ORDER BY {} FETCH FIRST {n} ROWS WITH TIES", keys[0])
            } else {
                format!("{text} ORDER BY {}{}", keys.join(", "), self.limit())
            };
        }
        text
    }

    fn with(&mut self) -> String {
        let mut list = Vec::new();
        let mut recursive = false;
        for _ in 0..=self.c.below(if self.depth > 0 { 1 } else { 2 }) {
            let name = self.name("w");
            if self.c.percent(25) {
                recursive = true;
                let (to, op) = (self.c.below(8), *self.c.pick(&["UNION ALL", "UNION"]));
                let how = self.c.below(7);
                let step = match how {
                    0 => format!("SELECT k + 1, p || k::text FROM {name} WHERE k < {to}"),
                    1 => format!(
                        "SELECT t.n + w.k, w.p FROM {name} w JOIN t1 t ON t.id = w.k WHERE w.k < {to} AND t.n > 0"
                    ),
                    2 => format!(
                        "SELECT t.n, w.p FROM {name} w JOIN t0 t ON t.id = w.k OR t.n = w.k + 1"
                    ),
                    3 => format!(
                        "SELECT w.k + 1, COALESCE(t.s, w.p) FROM {name} w LEFT JOIN t1 t ON t.id = w.k AND t.n > 1 WHERE w.k < {to}"
                    ),
                    4 => format!(
                        "SELECT k + 1, p FROM {name} w WHERE k < {to} AND NOT EXISTS (SELECT 1 FROM t3 t WHERE t.n = w.k AND t.id < 5)"
                    ),
                    5 => format!(
                        "SELECT u.a, w.p FROM {name} w, LATERAL (SELECT t.id FROM t0 t WHERE t.id > w.k ORDER BY t.id LIMIT 1) u(a)"
                    ),
                    _ => format!(
                        "SELECT (k * 2) % 7, '' FROM {name} WHERE k <> {to} AND length(p) < 1"
                    ),
                };
                let op = if how == 2 || how == 6 { "UNION" } else { op };
                let first = *self.c.pick(&[
                    "SELECT 1, ''::text",
                    "VALUES (1, ''::text), (3, 'x')",
                    "SELECT id, s FROM t0 WHERE id < 3",
                ]);
                if self.c.percent(25) {
                    list.extend(self.going_round(first));
                    continue;
                }
                list.push(format!("{name}(k, p) AS ({first} {op} {step})"));
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
        self.dense = !self.wild && self.c.percent(50);
        let types = self.outputs(4);
        let with = if self.c.percent(20) { self.with() } else { String::new() };
        let mut ordered = false;
        let text = match self.c.below(14) {
            12 | 13 => {
                let (text, sorted) = self.probe();
                ordered = sorted;
                text
            }
            10 => self.distinct_on(&types),
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
