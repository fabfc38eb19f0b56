//! Scripts that write, in a transaction that is rolled back at their end.

use super::exprs::{Col, Gen};
use super::schema::WRITTEN;
use super::values::{Statement, TYPES, Ty};

impl Gen<'_> {
    fn see(&mut self, table: usize, alias: &str) {
        let cols = self.tables[table].columns.iter();
        let cols = cols.map(|(n, t)| Col { sql: format!("{alias}.{n}"), ty: *t, aggregate: false });
        self.scopes.push(cols.collect());
    }

    /// RETURNING of a change to the table of the first columns in sight.
    fn returning(&mut self) -> String {
        match self.c.below(6) {
            0 => String::new(),
            1 => " RETURNING *".into(),
            4 | 5 => {
                let here = self.scopes.last().cloned().unwrap_or_default();
                let table = here.first().and_then(|c| c.sql.split_once('.'));
                let table = table.map_or("", |t| t.0).to_owned();
                let mine = here.iter().filter_map(|c| {
                    let (of, column) = c.sql.split_once('.')?;
                    (of == table).then(|| (column.to_owned(), c.ty))
                });
                let of = |image: &str, (column, ty): (String, Ty)| Col {
                    sql: format!("{image}.{column}"),
                    ty,
                    aggregate: false,
                };
                let images: Vec<Col> = mine
                    .flat_map(|c| [of("old", c.clone()), of("new", c)])
                    .chain(here.iter().cloned())
                    .collect();
                self.scopes.push(images);
                let mut items: Vec<String> = (0..=self.c.below(2))
                    .map(|_| {
                        let t = self.c.below(4);
                        let e = self.expr(t, 1);
                        if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[t].name) } else { e }
                    })
                    .collect();
                self.scopes.pop();
                items.push((*self.c.pick(&["old.id", "new.*", "old.*", "old IS NULL"])).into());
                format!(" RETURNING {}", items.join(", "))
            }
            _ => {
                let items: Vec<String> = (0..=self.c.below(2))
                    .map(|_| {
                        let t = self.c.below(8);
                        let e = self.expr(t, 2);
                        if e.starts_with('\u{1}') { format!("{e}::{}", TYPES[t].name) } else { e }
                    })
                    .collect();
                format!(" RETURNING {}", items.join(", "))
            }
        }
    }

    fn assignments(&mut self, writable: &[(String, Ty)]) -> String {
        let free: Vec<&(String, Ty)> =
            writable.iter().filter(|(n, _)| n != "id" && n != "n").collect();
        let at = self.c.below(free.len());
        let (name, t) = free[at].clone();
        let other = free[(at + 1) % free.len()].clone();
        let value = self.expr(t, 2);
        match self.c.below(7) {
            6 if other.0 != name && TYPES[t].sorts && TYPES[other.1].sorts => {
                let query = self.nested(&[t, other.1]);
                let one = format!("SELECT p, q FROM ({query}) r(p, q) ORDER BY 1, 2 LIMIT 1");
                format!("({name}, {}) = ({one})", other.0)
            }
            4 if other.0 != name => {
                let second = self.expr(other.1, 1);
                format!("({name}, {}) = ROW({value}, {second})", other.0)
            }
            5 => format!("{name} = DEFAULT"),
            3 if other.0 != name => {
                let second = self.expr(other.1, 1);
                format!("{name} = {value}, {} = {second}", other.0)
            }
            _ => format!("{name} = {value}"),
        }
    }

    fn insert(&mut self) -> String {
        let at = self.c.below(WRITTEN);
        let table = self.tables[at].clone();
        let mut columns: Vec<(String, Ty)> = table.writable.clone();
        let keep = 2 + self.c.below(columns.len() - 1);
        columns.truncate(keep);
        let names: Vec<&str> = columns.iter().map(|(n, _)| n.as_str()).collect();
        let source = if self.c.percent(35) {
            let from = self.from(1);
            let key = self.columns_of_int();
            let items: Vec<String> = columns
                .iter()
                .map(|(n, t)| if n == "id" { format!("{key} + 1000") } else { self.expr(*t, 1) })
                .collect();
            self.scopes.pop();
            // Which of two rows is refused, or in the way of the other, is for an order to say.
            let order: Vec<String> = (1..)
                .zip(&columns)
                .filter(|(_, c)| TYPES[c.1].sorts)
                .map(|(at, _): (usize, _)| at.to_string())
                .collect();
            format!("SELECT {} FROM {from} ORDER BY {}", items.join(", "), order.join(", "))
        } else {
            let rows: Vec<String> = (0..=self.c.below(3))
                .map(|row| {
                    let values: Vec<String> = columns
                        .iter()
                        .map(|(n, t)| {
                            if n == "id" {
                                (self.c.below(12) * 5 + row).to_string()
                            } else if self.c.percent(8) {
                                "DEFAULT".into()
                            } else {
                                self.expr(*t, 1)
                            }
                        })
                        .collect();
                    format!("({})", values.join(", "))
                })
                .collect();
            format!("VALUES {}", rows.join(", "))
        };
        self.see(at, &table.name);
        let conflict = if self.c.percent(50) {
            match table.unique.first() {
                Some(target) if self.c.percent(60) => {
                    let inner = self.scopes.last().cloned().unwrap_or_default();
                    let excluded = inner.iter().map(|c| Col {
                        sql: c.sql.replacen(&table.name, "excluded", 1),
                        ..c.clone()
                    });
                    let both: Vec<Col> = excluded.chain(inner.iter().cloned()).collect();
                    self.scopes.push(both);
                    let set = self.assignments(&table.writable);
                    let filter = if self.c.percent(30) {
                        format!(" WHERE {}", self.condition(1))
                    } else {
                        String::new()
                    };
                    self.scopes.pop();
                    format!(" ON CONFLICT ({target}) DO UPDATE SET {set}{filter}")
                }
                _ => " ON CONFLICT DO NOTHING".into(),
            }
        } else {
            String::new()
        };
        let returning = self.returning();
        self.scopes.pop();
        format!("INSERT INTO {} ({}) {source}{conflict}{returning}", table.name, names.join(", "))
    }

    fn columns_of_int(&mut self) -> String {
        let of: Vec<String> = self.scopes.last().map_or_else(Vec::new, |s| {
            s.iter().filter(|c| c.ty == 0).map(|c| c.sql.clone()).collect()
        });
        of.first().cloned().unwrap_or_else(|| "1".into())
    }

    fn update(&mut self) -> String {
        let at = self.c.below(WRITTEN);
        let table = self.tables[at].clone();
        self.see(at, &table.name);
        let mut from = String::new();
        let mut join = String::new();
        if self.c.percent(30) {
            // One row of the source at most for each row: t0, t1 and t3 have a key.
            let source = [0, 1, 3][self.c.below(3)];
            let cols = self.tables[source].columns.iter();
            let cols: Vec<Col> = cols
                .map(|(n, t)| Col { sql: format!("u.{n}"), ty: *t, aggregate: false })
                .collect();
            if let Some(scope) = self.scopes.last_mut() {
                scope.extend(cols);
            }
            from = format!(" FROM {} u", self.tables[source].name);
            join = format!("u.id = {}.n AND ", table.name);
        }
        let set = self.assignments(&table.writable);
        let condition = if self.c.percent(30) {
            format!("{}.id = {}", table.name, self.c.below(12))
        } else {
            self.condition(2)
        };
        let returning = self.returning();
        self.scopes.pop();
        format!("UPDATE {} SET {set}{from} WHERE {join}{condition}{returning}", table.name)
    }

    fn delete(&mut self) -> String {
        let at = self.c.below(WRITTEN);
        let table = self.tables[at].clone();
        self.see(at, &table.name);
        let mut using = String::new();
        let condition = if self.c.percent(30) {
            let source = self.c.below(WRITTEN);
            using = format!(" USING {} u", self.tables[source].name);
            format!("{}.id = u.n AND u.id % 2 = 0", table.name)
        } else {
            self.condition(2)
        };
        let returning = if using.is_empty() { self.returning() } else { String::new() };
        self.scopes.pop();
        format!("DELETE FROM {}{using} WHERE {condition}{returning}", table.name)
    }

    fn row_of(&self, table: usize, alias: &str) -> Vec<Col> {
        let cols = self.tables[table].columns.iter();
        cols.map(|(n, t)| Col { sql: format!("{alias}.{n}"), ty: *t, aggregate: false }).collect()
    }

    /// WHEN … AND …, over the columns that such rows have; with an action on the target's row.
    fn merge_clause(&mut self, when: &str, scope: Vec<Col>, writable: &[(String, Ty)]) -> String {
        self.scopes.push(scope);
        let and =
            if self.c.percent(60) { format!(" AND {}", self.condition(1)) } else { String::new() };
        let then = match self.c.below(6) {
            0 => "DO NOTHING".into(),
            1 | 2 => "DELETE".into(),
            _ => format!("UPDATE SET {}", self.assignments(writable)),
        };
        self.scopes.pop();
        format!(" WHEN {when}{and} THEN {then}")
    }

    fn merge(&mut self) -> String {
        let at = self.c.below(WRITTEN);
        let table = self.tables[at].clone();
        // One row of the source at most for each row: t0, t1 and t3 have a key.
        let from = [0, 1, 3][self.c.below(3)];
        let (target, source) = (self.row_of(at, &table.name), self.row_of(from, "u"));
        let both: Vec<Col> = target.iter().chain(&source).cloned().collect();
        let mut clauses = String::new();
        for _ in 0..self.c.below(3) {
            clauses += &self.merge_clause("MATCHED", both.clone(), &table.writable);
            if !clauses.contains(" AND ") {
                break;
            }
        }
        if self.c.percent(30) {
            clauses += &self.merge_clause("NOT MATCHED BY SOURCE", target, &table.writable);
        }
        if clauses.is_empty() || self.c.percent(60) {
            self.scopes.push(source);
            let columns = &table.writable[..2 + self.c.below(table.writable.len() - 1)];
            let names: Vec<&str> = columns.iter().map(|(n, _)| n.as_str()).collect();
            let values: Vec<String> = columns
                .iter()
                .map(|(n, t)| if n == "id" { "u.id + 1000".into() } else { self.expr(*t, 1) })
                .collect();
            let and = if self.c.percent(40) {
                format!(" AND {}", self.condition(1))
            } else {
                String::new()
            };
            self.scopes.pop();
            let (names, values) = (names.join(", "), values.join(", "));
            clauses += &format!(" WHEN NOT MATCHED{and} THEN INSERT ({names}) VALUES ({values})");
        }
        self.scopes.push(both);
        let returning = self.returning().replacen("RETURNING ", "RETURNING merge_action(), ", 1);
        self.scopes.pop();
        let (into, using) = (&table.name, &self.tables[from].name);
        format!("MERGE INTO {into} USING {using} u ON u.id = {into}.n{clauses}{returning}")
    }

    /// A statement that writes.
    fn write(&mut self) -> String {
        match self.c.below(10) {
            0..=2 => self.update(),
            3..=5 => self.insert(),
            6 => self.delete(),
            7 | 8 => self.merge(),
            _ => {
                let inner = match self.c.below(3) {
                    0 => self.update(),
                    1 => self.insert(),
                    _ => self.delete(),
                };
                let inner = inner.split(" RETURNING ").next().unwrap_or("").to_owned();
                let table = self.c.pick(self.tables).name.clone();
                // What a statement does to a row twice is not said: the other table is another one.
                let other = ["t2", "t3", "t4"][self.c.below(3)];
                let apart = !inner.split_whitespace().take(3).any(|word| word == other);
                // Of several rows of the source any one may be the one that deletes.
                let from = match inner.strip_prefix("DELETE FROM ") {
                    Some(rest) => format!("{}.", rest.split(' ').next().unwrap_or("")),
                    None if inner.contains(" u ") => "u.".to_owned(),
                    None => String::new(),
                };
                let keyed = format!("WITH w(k, m) AS ({inner} RETURNING {from}id, {from}n)");
                match self.c.below(6) {
                    3 if apart => format!(
                        "{keyed} INSERT INTO {other} (id, n, s) SELECT k + 2000, m, 'w' FROM w ON CONFLICT DO NOTHING RETURNING n, s"
                    ),
                    4 if apart => format!(
                        "{keyed} UPDATE {other} SET s = 'w' FROM w WHERE {other}.id = w.k RETURNING {other}.id, old.s"
                    ),
                    5 if apart => {
                        format!("{keyed} DELETE FROM {other} USING w WHERE {other}.id = w.k")
                    }
                    _ => format!(
                        "WITH w AS ({inner} RETURNING *) SELECT count(*), (SELECT count(*) FROM {table}) FROM w"
                    ),
                }
            }
        }
    }

    /// A cursor, moved about.
    fn cursor(&mut self) -> Vec<String> {
        let types = [0, 1];
        let c = self.name("c");
        let query = self.query(&types, true);
        let mut list = vec![
            "SAVEPOINT each".to_owned(),
            format!("DECLARE {c} SCROLL CURSOR FOR {query} ORDER BY 1, 2"),
        ];
        for _ in 0..=self.c.below(6) {
            let n = self.c.below(6);
            list.push(match self.c.below(12) {
                0 => format!("FETCH NEXT FROM {c}"),
                1 => format!("FETCH PRIOR FROM {c}"),
                2 => format!("FETCH FIRST FROM {c}"),
                3 => format!("FETCH LAST FROM {c}"),
                4 => format!("FETCH ABSOLUTE {n} FROM {c}"),
                5 => format!("FETCH ABSOLUTE -{n} FROM {c}"),
                6 => format!("FETCH RELATIVE {n} FROM {c}"),
                7 => format!("FETCH RELATIVE -{n} FROM {c}"),
                8 => format!("FETCH FORWARD {n} FROM {c}"),
                9 => format!("FETCH BACKWARD {n} FROM {c}"),
                10 => format!("MOVE {n} FROM {c}"),
                _ => format!("FETCH {} FROM {c}", self.c.pick(&["ALL", "BACKWARD ALL"])),
            });
        }
        list.push("ROLLBACK_IF_FAILED each".into());
        list
    }

    /// A cursor over a table, and changes of the row on which it stands.
    fn current_of(&mut self) -> Vec<String> {
        let table = ["t0", "t1", "t3"][self.c.below(3)];
        let (skip, by) = (1 + self.c.below(3), 1 + self.c.below(3));
        let change = match self.c.below(3) {
            0 => format!("UPDATE {table} SET s = 'here' WHERE CURRENT OF d RETURNING id, s"),
            1 => format!("DELETE FROM {table} WHERE CURRENT OF d RETURNING id"),
            _ => format!("UPDATE {table} SET n = n + 1 WHERE CURRENT OF d"),
        };
        vec![
            "SAVEPOINT each".into(),
            format!("DECLARE d CURSOR FOR SELECT id, n, s FROM {table} ORDER BY id FOR UPDATE"),
            format!("FETCH {skip} FROM d"),
            change.clone(),
            format!("FETCH {by} FROM d"),
            change,
            "CLOSE d".into(),
            "ROLLBACK_IF_FAILED each".into(),
        ]
    }

    /// Statements one by one; the last ones show what all tables hold.
    pub fn script(mut self) -> (Vec<Statement>, Vec<u32>) {
        let mut list = Vec::new();
        if self.c.percent(15) {
            list.extend(self.held());
        }
        list.push("BEGIN".to_owned());
        let keys = self.c.percent(35);
        for _ in 0..=self.c.below(4) {
            match self.c.below(14) {
                8 | 9 => list.extend(self.cursor()),
                10 => list.extend(self.current_of()),
                12 | 13 => {
                    list.push("SAVEPOINT each".into());
                    list.push(self.several());
                    list.push("ROLLBACK_IF_FAILED each".into());
                }
                6 => list.push("SAVEPOINT s".into()),
                7 => list.push((*self.c.pick(&["ROLLBACK TO s", "RELEASE s"])).into()),
                _ => {
                    list.push("SAVEPOINT each".into());
                    list.push(if keys { self.keyed() } else { self.write() });
                    // After an error the next statements are tried all the same.
                    list.push("ROLLBACK_IF_FAILED each".into());
                }
            }
        }
        if keys {
            list.extend(super::keys::SHOWN.iter().map(|s| (*s).to_owned()));
            list.push("SAVEPOINT each".into());
            list.push("SET CONSTRAINTS ALL IMMEDIATE".into());
            list.push("ROLLBACK_IF_FAILED each".into());
        }
        for table in self.tables.iter().filter(|t| t.name != "large") {
            let names: Vec<&str> = table.columns.iter().map(|(n, _)| n.as_str()).collect();
            let (all, name) = (names.join(", "), &table.name);
            list.push(format!("SELECT {all} FROM {name} ORDER BY {all}"));
        }
        for _ in 0..self.c.below(3) {
            let (probe, ordered) = self.probe();
            list.push(format!("EACH_PLAN {}{probe}", if ordered { "" } else { UNORDERED }));
        }
        list.push("ROLLBACK".into());
        let literals = self.literals;
        let make = |text: String| {
            let ordered = text.starts_with("FETCH")
                || (text.starts_with("SELECT") || text.starts_with("EACH_PLAN"))
                    && text.contains(" ORDER BY ")
                    && !text.contains(UNORDERED);
            Statement { text: text.replace(UNORDERED, ""), literals: literals.clone(), ordered }
        };
        (list.into_iter().map(make).collect(), self.c.taken)
    }
}

/// Marks a query whose order is not fixed.
const UNORDERED: &str = "\u{3}";
