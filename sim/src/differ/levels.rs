//! What is of another level than where it stands: aggregates of a query around; rows of sub-selects as columns; SEARCH and CYCLE.

use super::exprs::{Col, Gen};
use super::values::{TYPES, Ty, ty};

impl Gen<'_> {
    /// A sub-select with an aggregate of the query that it stands in, and its type. `raw`: that query's columns before they are grouped by
    /// `keys`.
    pub(super) fn outer_aggregate(&mut self, raw: &[Col], keys: &[Col]) -> (String, Ty) {
        let here = self.scopes.len() - 1;
        self.scopes[here] = raw.to_vec();
        let (aggregate, t) = self.aggregate();
        self.scopes[here] = keys.to_vec();
        self.depth += 1;
        let from = self.from(2);
        let filter = self.filter();
        let (sorts, bigint, boolean) = (TYPES[t].sorts, ty("int8"), ty("bool"));
        let op = *self.c.pick(&["=", "<", ">=", "IS DISTINCT FROM"]);
        let beside = if sorts { self.leaf(t) } else { String::new() };
        let number = self.leaf(0);
        let made = match self.c.below(9) {
            1 if sorts => {
                (format!("(SELECT count(*) FROM {from} WHERE {beside} {op} {aggregate})"), bigint)
            }
            2 => {
                let having = format!("HAVING {aggregate} IS NOT NULL");
                (format!("(SELECT max({number}) FROM {from}{filter} {having})"), 0)
            }
            3 if sorts => {
                let not = *self.c.pick(&["", "NOT "]);
                let query = format!("SELECT 1 FROM {from} WHERE {beside} {op} {aggregate}");
                (format!("({not}EXISTS ({query}))"), boolean)
            }
            4 => (format!("(SELECT (SELECT {aggregate}) FROM {from}{filter} LIMIT 1)"), t),
            5 if sorts => {
                let not = *self.c.pick(&["", "NOT "]);
                (format!("({aggregate} {not}IN (SELECT {beside} FROM {from}{filter}))"), boolean)
            }
            6 if matches!(TYPES[t].name, "int4" | "int8" | "numeric" | "text" | "date") => {
                let query =
                    format!("SELECT max({beside}) FROM {from} WHERE {beside} < {aggregate}");
                (format!("COALESCE(({query}), {aggregate})"), t)
            }
            7 => {
                let query = format!("SELECT {aggregate} AS m FROM {from}{filter} LIMIT 1");
                (format!("(SELECT z.m FROM ({query}) z)"), t)
            }
            8 => (
                format!(
                    "(SELECT count(*) FILTER (WHERE {aggregate} IS NOT NULL) FROM {from}{filter})"
                ),
                bigint,
            ),
            _ => (format!("(SELECT {aggregate} FROM {from}{filter} LIMIT 1)"), t),
        };
        self.scopes.pop();
        self.depth -= 1;
        made
    }

    /// A sub-select of which a column is a whole row.
    pub(super) fn rows_in_from(&mut self, alias: &str) -> (String, Vec<Col>) {
        let table = self.table();
        let y = self.name("y");
        let column = |n: &str, t: Ty| Col { sql: format!("{y}.{n}"), ty: t, aggregate: false };
        let lateral = self.c.percent(30);
        let hidden = if lateral { None } else { self.scopes.pop() };
        self.depth += 1;
        self.scopes.push(table.columns.iter().map(|(n, t)| column(n, *t)).collect());
        let filter = self.filter();
        self.scopes.pop();
        self.depth -= 1;
        self.scopes.extend(hidden);
        let seen = |sql: String, ty: Ty| Col { sql, ty, aggregate: false };
        let mut cols = vec![
            seen(format!("({alias}.w)::text"), ty("text")),
            seen(format!("({alias}.w IS NULL)"), ty("bool")),
        ];
        let mut items = String::new();
        for (n, (name, t)) in table.columns.iter().take(2).enumerate() {
            items.push_str(&format!(", {y}.{name} AS k{n}"));
            cols.push(seen(format!("{alias}.k{n}"), *t));
            cols.push(seen(format!("({alias}.w).{name}"), *t));
        }
        let word = if lateral { "LATERAL " } else { "" };
        let name = &table.name;
        (format!("{word}(SELECT {y} AS w{items} FROM {name} {y}{filter}) {alias}"), cols)
    }

    /// A recursive WITH query that goes round in circles and says so, and one that shows what it says.
    pub(super) fn going_round(&mut self, first: &str) -> [String; 2] {
        let (name, shown) = (self.name("w"), self.name("w"));
        let to = self.c.below(12);
        let step = match self.c.below(5) {
            0 => format!("SELECT t.n, w.p FROM {name} w JOIN t0 t ON t.id = w.k"),
            1 => format!(
                "SELECT t.n + 1, COALESCE(t.s, '') FROM t1 t, {name} w WHERE t.id = w.k AND t.n < {to}"
            ),
            2 => format!(
                "SELECT t.id, w.p FROM t3 t JOIN {name} w ON t.n = w.k WHERE t.id < {to} AND w.m IS NOT NULL"
            ),
            3 => format!("SELECT t.n, w.p FROM {name} w LEFT JOIN t0 t ON t.id = w.k + 1"),
            _ => format!("SELECT (k * 2) % 7, left(p || 'a', 2) FROM {name}"),
        };
        let by = *self.c.pick(&["k", "k, p", "p, k"]);
        let order = *self.c.pick(&["DEPTH", "BREADTH"]);
        let search = format!(" SEARCH {order} FIRST BY {by} SET q");
        let search = if self.c.percent(70) { search } else { String::new() };
        let q = if search.is_empty() { "''" } else { "q::text" };
        let (to, mark) = *self.c.pick(&[("", "bool"), (" TO 'y' DEFAULT 'n'", "text")]);
        let by = *self.c.pick(&["k", "k, p"]);
        let cycle = format!(" CYCLE {by} SET m{to} USING z");
        let op = *self.c.pick(&["UNION ALL", "UNION"]);
        let columns = [("k", 0), ("p", 1), ("m", ty(mark)), ("q", 1), ("z", 1)];
        let columns = columns.map(|(n, t)| (n.to_owned(), t)).to_vec();
        self.ctes.push((shown.clone(), columns));
        [
            format!("{name}(k, p) AS ({first} {op} {step}){search}{cycle}"),
            format!("{shown}(k, p, m, q, z) AS (SELECT k, p, m, {q}, z::text FROM {name})"),
        ]
    }
}
