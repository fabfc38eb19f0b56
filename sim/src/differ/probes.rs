//! Conditions on rows and lists, and queries of one table as its indexes answer them.

use super::exprs::{Col, Gen};
use super::values::{TYPES, Ty};

const COMPARED: &[&str] = &["=", "<>", "<", "<=", ">", ">="];

impl Gen<'_> {
    /// Conditions of rows, of lists with NULLs, and of what is around.
    pub fn row_condition(&mut self, sub: bool, depth: usize) -> String {
        let how = self.c.below(7);
        let (a, b) = (self.sortable(), self.sortable());
        match how {
            0 | 1 if sub => {
                let args = (self.leaf(a), self.leaf(b));
                let query = self.nested(&[a, b]);
                let op = *self.c.pick(COMPARED);
                if how == 0 {
                    let one = format!("SELECT p, q FROM ({query}) r(p, q) ORDER BY 1, 2 LIMIT 1");
                    return format!("(({}, {}) {op} ({one}))", args.0, args.1);
                }
                let which = *self.c.pick(&["ANY", "ALL"]);
                let op = *self.c.pick(&["=", "<>", "<", ">="]);
                format!("(({}, {}) {op} {which} ({query}))", args.0, args.1)
            }
            2 => {
                let args = (self.leaf(a), self.leaf(b));
                let rows: Vec<String> = (0..=self.c.below(3))
                    .map(|_| format!("({}, {})", self.literal(a), self.literal(b)))
                    .collect();
                let not = *self.c.pick(&["", "NOT "]);
                format!("(({}, {}) {not}IN ({}))", args.0, args.1, rows.join(", "))
            }
            3 => {
                let arg = self.expr(a, depth);
                let list: Vec<String> = (0..=self.c.below(3)).map(|_| self.leaf(a)).collect();
                let not = *self.c.pick(&["", "NOT "]);
                let null = if self.c.percent(30) { ", NULL" } else { "" };
                format!("({arg} {not}IN ({}{null}))", list.join(", "))
            }
            4 => {
                let arg = self.expr(a, depth);
                let list: Vec<String> = (0..=self.c.below(3)).map(|_| self.leaf(a)).collect();
                let (op, which) = (*self.c.pick(COMPARED), *self.c.pick(&["ANY", "ALL"]));
                let null = if self.c.percent(25) { ", NULL" } else { "" };
                let name = TYPES[a].name;
                // An array of arrays is one array, of which not every length is one.
                if name.ends_with(']') {
                    return format!("({arg} IS NULL)");
                }
                format!("({arg} {op} {which} (ARRAY[{}{null}]::{name}[]))", list.join(", "))
            }
            _ => self.outward().unwrap_or_else(|| self.condition(depth)),
        }
    }

    /// A condition on a column that an index may answer.
    fn probed(&mut self, cols: &[Col]) -> String {
        let col = self.c.pick(cols).clone();
        let t = col.ty;
        let literal = |g: &mut Self, t: Ty| g.literal(t);
        let has = |name: &str| cols.iter().any(|c| c.sql == name);
        match self.c.below(13) {
            0 | 1 => format!("{} = {}", col.sql, literal(self, t)),
            2 | 3 => {
                let op = *self.c.pick(&["<", "<=", ">", ">="]);
                format!("{} {op} {}", col.sql, literal(self, t))
            }
            4 | 5 => {
                let list: Vec<String> = (0..=self.c.below(4)).map(|_| self.literal(t)).collect();
                format!("{} IN ({})", col.sql, list.join(", "))
            }
            6 => format!("{} BETWEEN {} AND {}", col.sql, literal(self, t), literal(self, t)),
            7 => {
                let not = *self.c.pick(&["", "NOT "]);
                format!("{} IS {not}NULL", col.sql)
            }
            8 | 9 => {
                let other = self.c.pick(cols).clone();
                let op = *self.c.pick(COMPARED);
                let (a, b) = (self.literal(t), self.literal(other.ty));
                format!("({}, {}) {op} ({a}, {b})", col.sql, other.sql)
            }
            10 if has("x.s") => {
                let l = self.literal(1);
                let op = *self.c.pick(&["=", "<", ">="]);
                format!("lower(x.s) {op} {l}")
            }
            11 if has("x.n") => {
                let l = self.literal(0);
                let op = *self.c.pick(&["=", "<", ">="]);
                format!("(x.n + 1) {op} {l}")
            }
            _ => {
                let (op, u) = (*self.c.pick(&["=", "<", ">"]), self.partner(t));
                let l = self.literal(u);
                format!("({} {op} {l} OR {} IS NULL)", col.sql, col.sql)
            }
        }
    }

    /// A query of one table by conditions and in orders that indexes have; and whether its order is fixed.
    pub fn probe(&mut self) -> (String, bool) {
        let large = self.c.percent(30);
        let table = if large { self.tables.last().cloned() } else { None };
        let table = table.unwrap_or_else(|| self.table());
        let cols: Vec<Col> = table
            .columns
            .iter()
            .filter(|(_, t)| TYPES[*t].sorts)
            .map(|(n, t)| Col { sql: format!("x.{n}"), ty: *t, aggregate: false })
            .collect();
        let mut conditions: Vec<String> =
            (0..=self.c.below(4)).map(|_| self.probed(&cols)).collect();
        if self.c.percent(15) {
            let either = self.probed(&cols);
            if let Some(first) = conditions.first_mut() {
                *first = format!("({first} OR {either})");
            }
        }
        let mut keys: Vec<Col> = Vec::new();
        for _ in 0..=self.c.below(3) {
            let key = self.c.pick(&cols).clone();
            if !keys.iter().any(|k| k.sql == key.sql) {
                keys.push(key);
            }
        }
        let names: Vec<&str> = keys.iter().map(|k| k.sql.as_str()).collect();
        let same = self.c.percent(50);
        let direction = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let mut order = Vec::new();
        for name in &names {
            let other = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            order.push(format!("{name}{}", if same { direction } else { other }));
        }
        let (from, names) = (format!("{} x", table.name), names.join(", "));
        let (filter, order) = (conditions.join(" AND "), order.join(", "));
        let filter = format!("FROM {from} WHERE {filter}");
        match self.c.below(10) {
            9 => {
                let (of, n) = (self.c.pick(&cols).sql.clone(), 1 + self.c.below(6));
                let limit = format!("FETCH FIRST {n} ROWS WITH TIES");
                (format!("SELECT {of} {filter} ORDER BY {order} {limit}"), false)
            }
            0..=2 => (format!("SELECT {names} {filter} ORDER BY {order}"), true),
            3 | 4 => {
                let limit = format!("LIMIT {} OFFSET {}", self.c.below(9), self.c.below(4));
                (format!("SELECT {names} {filter} ORDER BY {order} {limit}"), true)
            }
            5 => (format!("SELECT DISTINCT {names} {filter} ORDER BY {order}"), true),
            6 => {
                let of = &keys[0].sql;
                let many = if matches!(TYPES[keys[0].ty].name, "bool" | "jsonb" | "uuid" | "bytea")
                {
                    format!("count({of})")
                } else {
                    format!("min({of}), max({of})")
                };
                (format!("SELECT {many}, count(*) {filter}"), true)
            }
            7 => (
                format!(
                    "SELECT {names}, count(*), row_number() OVER (ORDER BY {order}) {filter} GROUP BY {names}"
                ),
                false,
            ),
            _ => (format!("SELECT x.* {filter}"), false),
        }
    }
}
