//! FROM: trees of joins, whose conditions look at the queries around too.

use super::exprs::{Col, Gen};
use super::values::{TYPES, Ty, ty};

/// A part of FROM.
struct Item {
    text: String,
    /// All its columns, in order unless some are merged.
    cols: Vec<Col>,
    /// A join that is not in parentheses.
    bare: bool,
    /// No two columns are merged into one.
    apart: bool,
}

/// What a column is called within its relation.
fn bare_name(c: &Col) -> &str {
    c.sql.rsplit('.').next().unwrap_or("")
}

fn column(alias: &str, n: &str, t: Ty) -> Col {
    Col { sql: format!("{alias}.{n}"), ty: t, aggregate: false }
}

/// The columns of this type, one of them by number.
fn key(cols: &[Col], t: Ty, at: usize) -> Option<String> {
    let of: Vec<&Col> = cols.iter().filter(|c| c.ty == t).collect();
    of.get(at % of.len().max(1)).map(|c| c.sql.clone())
}

impl Gen<'_> {
    fn subselect_in_from(&mut self, alias: &str) -> (String, Vec<Col>) {
        let types = self.outputs(3);
        let lateral = self.c.percent(50);
        let hidden = if lateral { None } else { self.scopes.pop() };
        let ranked = self.c.percent(12);
        let query = if ranked { self.first_of_each(&types) } else { self.nested(&types) };
        self.scopes.extend(hidden);
        let names: Vec<String> = (0..types.len()).map(|i| format!("a{i}")).collect();
        let cols = names.iter().zip(&types).map(|(n, t)| column(alias, n, *t)).collect();
        let word = if lateral { "LATERAL " } else { "" };
        (format!("{word}({query}) {alias}({})", names.join(", ")), cols)
    }

    /// The first rows of each partition, by a condition on their numbers or ranks.
    fn first_of_each(&mut self, types: &[Ty]) -> String {
        self.depth += 1;
        let from = self.from(2);
        let filter = self.filter();
        let items: Vec<String> =
            types.iter().map(|t| format!("{}::{}", self.leaf(*t), TYPES[*t].name)).collect();
        let order = self.total_order();
        let (f, order) = match self.c.below(4) {
            0 | 1 => ("row_number()", order),
            2 => ("rank()", order.split(',').next().unwrap_or("1").to_owned()),
            _ => ("dense_rank()", order.split(',').next().unwrap_or("1").to_owned()),
        };
        let partition = if self.c.percent(60) {
            let t = ty(self.c.pick::<&str>(&["int4", "text", "bool"]));
            format!("PARTITION BY {} ", self.leaf(t))
        } else {
            String::new()
        };
        let window = format!("({partition}ORDER BY {order})");
        let more = *self.c.pick(&["", "count(*)", "max(1)", "cume_dist()", "ntile(2)"]);
        let more = match more {
            "" => String::new(),
            "ntile(2)" => ", count(*) OVER ()".to_owned(),
            call => format!(", {call} OVER {window}"),
        };
        self.scopes.pop();
        self.depth -= 1;
        let names: Vec<String> = (0..types.len()).map(|i| format!("r{i}")).collect();
        let (names, items) = (names.join(", "), items.join(", "));
        let (op, k) = (*self.c.pick(&["<=", "<", "=", "<>"]), self.c.below(4));
        let given = if more.is_empty() || self.c.percent(50) { "" } else { " AND m > 0" };
        let rows = format!("SELECT {items}, {f} OVER {window}{more} FROM {from}{filter}");
        let columns = if more.is_empty() { "n" } else { "n, m" };
        format!("SELECT {names} FROM ({rows}) r({names}, {columns}) WHERE n {op} {k}{given}")
    }

    fn values_in_from(&mut self, alias: &str) -> (String, Vec<Col>) {
        let types = self.outputs(2);
        let look = self.c.percent(20);
        let rows: Vec<String> = (0..=self.c.below(4))
            .map(|_| {
                let row: Vec<String> = types
                    .iter()
                    .map(|t| {
                        let e = if look { self.leaf(*t) } else { self.literal(*t) };
                        format!("{e}::{}", TYPES[*t].name)
                    })
                    .collect();
                format!("({})", row.join(", "))
            })
            .collect();
        let names: Vec<String> = (0..types.len()).map(|i| format!("v{i}")).collect();
        let cols = names.iter().zip(&types).map(|(n, t)| column(alias, n, *t)).collect();
        let word = if look { "LATERAL " } else { "" };
        (format!("{word}(VALUES {}) {alias}({})", rows.join(", "), names.join(", ")), cols)
    }

    fn relation(&mut self) -> (String, Vec<Col>) {
        let alias = self.name("x");
        let how = self.c.below(20);
        let deeper = self.depth < 2 || self.depth < 3 && self.c.percent(30);
        match how {
            12..=14 if deeper => return self.subselect_in_from(&alias),
            15 if deeper => {
                let (low, high) = (self.c.below(4), self.c.below(9));
                let text = format!("generate_series({low}, {high}) {alias}(g)");
                return (text, vec![column(&alias, "g", 0)]);
            }
            16 if deeper => {
                let array = self.leaf(ty("int4[]"));
                let text = format!("unnest({array}::int4[]) WITH ORDINALITY {alias}(u, o)");
                return (text, vec![column(&alias, "u", 0), column(&alias, "o", ty("int8"))]);
            }
            17 if deeper => return self.values_in_from(&alias),
            18 if deeper => return self.rows_in_from(&alias),
            _ => {}
        }
        if !self.ctes.is_empty() && self.c.percent(45) {
            let (name, cols) = self.c.pick(&self.ctes).clone();
            let cols = cols.iter().map(|(n, t)| column(&alias, n, *t)).collect();
            return (format!("{name} {alias}"), cols);
        }
        let table = self.table();
        let cols = table.columns.iter().map(|(n, t)| column(&alias, n, *t)).collect();
        (format!("{} {alias}", table.name), cols)
    }

    /// A table; the last one, which is large, seldom.
    pub fn table(&mut self) -> super::schema::Table {
        let (large, others) = self.tables.split_last().expect("there are tables");
        if self.dense {
            let few: Vec<&super::schema::Table> =
                others.iter().filter(|t| t.name.starts_with('s')).collect();
            return (*self.c.pick(&few)).clone();
        }
        if others.is_empty() || self.c.percent(4) {
            large.clone()
        } else {
            self.c.pick(others).clone()
        }
    }

    /// Something about a column of a query around, and one of this.
    pub fn outward(&mut self) -> Option<String> {
        let (here, around) = self.scopes.split_last()?;
        let outer: Vec<&Col> = around.iter().flatten().filter(|c| !c.aggregate).collect();
        if outer.is_empty() {
            return None;
        }
        let here: Vec<Col> = here.iter().filter(|c| !c.aggregate).cloned().collect();
        let out = (*self.c.pick(&outer)).clone();
        if !TYPES[out.ty].sorts {
            return Some(format!("({} IS NOT NULL)", out.sql));
        }
        let of = key(&here, out.ty, self.c.below(4));
        let how = self.c.below(9);
        Some(match (of, how) {
            (Some(of), 0..=4) => format!("({of} = {})", out.sql),
            (Some(of), 5) => {
                let op = *self.c.pick(&["<", ">=", "<>", "IS NOT DISTINCT FROM"]);
                format!("({of} {op} {})", out.sql)
            }
            (Some(of), 6) => {
                let l = self.literal(out.ty);
                format!("(COALESCE({of}, {}) = {l})", out.sql)
            }
            (_, 7) => {
                let not = *self.c.pick(&["", "NOT "]);
                format!("({} IS {not}NULL)", out.sql)
            }
            _ => {
                let (op, l) = (*self.c.pick(&["=", "<", "<>", ">="]), self.literal(out.ty));
                format!("({} {op} {l})", out.sql)
            }
        })
    }

    /// What a join's condition asks for besides an equality.
    fn on_condition(&mut self) -> String {
        let how = self.c.below(7);
        let sub = how == 4 && self.depth < 2;
        let deep = self.depth;
        self.depth = if sub { deep } else { 2 };
        let text = match how {
            2 | 3 => self.outward().unwrap_or_else(|| self.condition(1)),
            5 => format!("({} OR {})", self.condition(1), self.condition(1)),
            6 => match (self.outward(), self.outward()) {
                (Some(a), Some(b)) => format!("({a} OR {b})"),
                _ => self.condition(1),
            },
            _ => self.condition(1),
        };
        self.depth = deep;
        text
    }

    /// Columns that both sides have once, and of one type.
    fn shared(&mut self, left: &[Col], right: &[Col]) -> Vec<(String, Ty)> {
        let once =
            |cols: &[Col], name: &str| cols.iter().filter(|c| bare_name(c) == name).count() == 1;
        let of =
            |cols: &[Col], name: &str| cols.iter().find(|c| bare_name(c) == name).map(|c| c.ty);
        let mut list: Vec<(String, Ty)> = left
            .iter()
            .map(|c| (bare_name(c).to_owned(), c.ty))
            .filter(|(n, t)| once(left, n) && once(right, n) && of(right, n) == Some(*t))
            .filter(|(_, t)| TYPES[*t].sorts)
            .collect();
        let by = self.c.below(list.len());
        list.rotate_left(by);
        list.truncate(1 + self.c.below(2));
        list
    }

    /// The condition of a join of two sides, whose columns are in sight.
    fn on(&mut self, left: &[Col], right: &[Col], full: bool) -> String {
        let t = if self.c.percent(25) { self.c.pick(right).ty } else { 0 };
        let (a, b) = (self.c.below(3), self.c.below(3));
        let u = if !self.dense && self.c.percent(15) { self.partner(t) } else { t };
        let equal = match (key(left, u, a), key(right, t, b)) {
            (Some(l), Some(r)) if TYPES[t].sorts => Some(format!("{l} = {r}")),
            _ => None,
        };
        let more = self.c.percent(if full { 20 } else { 35 });
        match equal {
            Some(equal) if more && (full || self.c.percent(65)) => {
                format!("{equal} AND {}", self.on_condition())
            }
            _ if more && !full => self.on_condition(),
            Some(equal) => equal,
            None => "true".into(),
        }
    }

    fn joined(&mut self, how: usize, left: Item, right: Item) -> Item {
        let l = if left.bare && self.c.percent(30) {
            format!("({})", left.text)
        } else {
            left.text.clone()
        };
        let r = if right.bare { format!("({})", right.text) } else { right.text.clone() };
        let word = match how {
            0..=2 => "JOIN",
            3 => "CROSS JOIN",
            4..=6 => "LEFT JOIN",
            7 | 8 => "RIGHT JOIN",
            _ => "FULL JOIN",
        };
        let shared =
            if self.c.percent(15) { self.shared(&left.cols, &right.cols) } else { Vec::new() };
        let mut cols: Vec<Col> = left.cols.iter().chain(&right.cols).cloned().collect();
        let mut apart = left.apart && right.apart;
        let text = if how == 3 {
            format!("{l} {word} {r}")
        } else if !shared.is_empty() {
            let alias = self.name("j");
            apart = false;
            let names: Vec<&str> = shared.iter().map(|(n, _)| n.as_str()).collect();
            let text = format!("{l} {word} {r} USING ({}) AS {alias}", names.join(", "));
            cols.extend(shared.iter().map(|(n, t)| column(&alias, n, *t)));
            text
        } else {
            let on = self.on(&left.cols, &right.cols, how >= 9);
            format!("{l} {word} {r} ON {on}")
        };
        if apart && self.c.percent(7) {
            // Its columns under names of their own: those within are no longer in sight.
            let alias = self.name("j");
            let names: Vec<String> = (0..cols.len()).map(|i| format!("b{i}")).collect();
            let cols = names.iter().zip(&cols).map(|(n, c)| column(&alias, n, c.ty)).collect();
            let text = format!("({text}) {alias}({})", names.join(", "));
            return Item { text, cols, bare: false, apart: true };
        }
        Item { text, cols, bare: true, apart }
    }

    /// So many relations, joined. What LATERAL may look at is in sight before and after.
    fn tree(&mut self, size: usize) -> Item {
        if size <= 1 {
            let (text, cols) = self.relation();
            return Item { text, cols, bare: false, apart: true };
        }
        let at_left = if self.c.percent(35) { 1 + self.c.below(size - 1) } else { size - 1 };
        let left = self.tree(at_left);
        let how = self.c.below(11);
        let here = self.scopes.len() - 1;
        let before = self.scopes[here].clone();
        // What stands at the right of a RIGHT or FULL join cannot look to its left.
        if how < 7 {
            self.scopes[here].extend(left.cols.clone());
        }
        let right = self.tree(size - at_left);
        self.scopes[here] = left.cols.iter().chain(&right.cols).cloned().collect();
        let item = self.joined(how, left, right);
        self.scopes[here] = before;
        item
    }

    /// A FROM list; leaves its columns as a new innermost scope.
    pub fn from(&mut self, most: usize) -> String {
        self.scopes.push(Vec::new());
        let here = self.scopes.len() - 1;
        let size = 1 + self.c.below(most);
        let apart = if size > 1 && self.c.percent(20) { 1 + self.c.below(size - 1) } else { 0 };
        let mut item = self.tree(size - apart);
        if apart > 0 {
            self.scopes[here] = item.cols.clone();
            let second = self.tree(apart);
            item.text = format!("{}, {}", item.text, second.text);
            item.cols.extend(second.cols);
        }
        self.scopes[here] = item.cols;
        item.text
    }
}
