//! Tables that refer to each other by foreign keys of all kinds, and writes that follow them.

use super::choices::Choices;
use super::exprs::Gen;
use super::schema::Schema;

/// What shows all that they hold.
pub const SHOWN: &[&str] = &[
    "SELECT id, u, s FROM k0 ORDER BY 1, 2, 3",
    "SELECT id, r, d, g FROM k1 ORDER BY 1, 2, 3",
    "SELECT a, b, s FROM k3 ORDER BY 1, 2, 3",
    "SELECT id, a, b FROM k2 ORDER BY 1, 2, 3",
    "SELECT id, up, n FROM k4 ORDER BY 1, 2, 3",
];

/// The tables.
pub fn make(c: &mut Choices, schema: &mut Schema) {
    let action =
        |c: &mut Choices| *c.pick(&["CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION", "RESTRICT"]);
    let later =
        |c: &mut Choices| *c.pick(&["", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"]);
    let out = &mut schema.statements;
    for name in ["k1", "k0", "k2", "k3", "k4"] {
        out.push(format!("DROP TABLE IF EXISTS {name} CASCADE"));
    }
    out.push("CREATE TABLE k0 (id int PRIMARY KEY, u int UNIQUE, s text)".into());
    out.push(
        "INSERT INTO k0 SELECT i, i % 20, chr(97 + i % 5) FROM generate_series(0, 15) i".into(),
    );
    let (update, delete, wait) = (action(c), action(c), later(c));
    let unique = *c.pick(&["UNIQUE", "UNIQUE DEFERRABLE", "UNIQUE DEFERRABLE INITIALLY DEFERRED"]);
    out.push(format!(
        "CREATE TABLE k1 (id int PRIMARY KEY, r int DEFAULT 3 REFERENCES k0 (u) ON UPDATE {update} ON DELETE {delete}{wait}, d int {unique}, g int GENERATED ALWAYS AS (r * 2 + d) STORED)"
    ));
    out.push("INSERT INTO k1 SELECT i, nullif(i % 9, 8), i FROM generate_series(0, 20) i".into());
    out.push("CREATE TABLE k3 (a int, b int, s text, PRIMARY KEY (a, b))".into());
    out.push("INSERT INTO k3 SELECT i % 4, i / 4, 's' FROM generate_series(0, 11) i".into());
    let (update, delete, wait) = (action(c), action(c), later(c));
    let full = *c.pick(&["", " MATCH FULL"]);
    out.push(format!(
        "CREATE TABLE k2 (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES k3{full} ON UPDATE {update} ON DELETE {delete}{wait})"
    ));
    let null = if full.is_empty() { "nullif(i % 3, 2)" } else { "i % 3" };
    out.push(format!("INSERT INTO k2 SELECT i, i % 4, {null} FROM generate_series(0, 14) i"));
    let (update, delete, wait) = (action(c), action(c), later(c));
    out.push(format!(
        "CREATE TABLE k4 (id int PRIMARY KEY, up int REFERENCES k4 ON UPDATE {update} ON DELETE {delete}{wait}, n int)"
    ));
    out.push(
        "INSERT INTO k4 SELECT i, nullif(i / 2, 0), i % 3 FROM generate_series(1, 15) i".into(),
    );
    if c.percent(40) {
        out.push("CREATE INDEX ON k1 (r)".into());
        out.push("CREATE INDEX ON k2 (a, b)".into());
        out.push("CREATE INDEX ON k4 (up)".into());
    }
}

/// How many kinds of [`Gen::keyed`] there are.
const KINDS: usize = 18;

impl Gen<'_> {
    fn on_keys(&mut self) -> String {
        let (i, j) = (self.c.below(18), self.c.below(6));
        let op = *self.c.pick(&["=", "<", ">", "<>"]);
        match self.c.below(8) {
            0..=2 => format!("id = {i}"),
            3 => format!("id {op} {i} AND id % 3 = {}", j % 3),
            4 => format!("id IN ({i}, {j}, NULL)"),
            5 => format!("EXISTS (SELECT 1 FROM k4 e WHERE e.up = {i} AND e.n = {})", j % 3),
            6 => format!("id IN (SELECT a + {j} FROM k2 WHERE b {op} 1)"),
            _ => format!("id NOT IN (SELECT n + {i} FROM k4 WHERE n IS NOT NULL) AND id < {j}"),
        }
    }

    /// A write to the tables that refer to each other.
    pub fn keyed(&mut self) -> String {
        let (i, j) = (self.c.below(18), self.c.below(8));
        let on = self.on_keys();
        let table = *self.c.pick(&["k0", "k1", "k4", "k2"]);
        match self.c.below(KINDS) {
            0 => format!("DELETE FROM {table} WHERE {on} RETURNING id"),
            1 => format!("UPDATE k0 SET u = u + 50 WHERE {on} RETURNING old.u, new.u"),
            2 => format!("UPDATE k4 SET id = id + 100 WHERE {on} RETURNING id, up"),
            3 => format!("UPDATE k3 SET b = b + 10 WHERE a = {j} OR b = {}", j % 3),
            4 => format!("DELETE FROM k3 WHERE a = {} AND b < {j} RETURNING a, b", i % 4),
            5 => format!("UPDATE k1 SET d = d + 1 WHERE {on} RETURNING g"),
            6 => format!("UPDATE k1 SET d = 20 - d, r = {j} WHERE {on} RETURNING old.g, new.g"),
            7 => format!(
                "INSERT INTO k1 VALUES ({i} + 10, {j}, {i} + 15) ON CONFLICT (id) DO UPDATE SET r = excluded.r + 1 RETURNING r, g"
            ),
            8 => format!(
                "INSERT INTO k0 (id, u) SELECT id + {j}, id + {i} FROM k4 WHERE {on} ON CONFLICT DO NOTHING RETURNING u"
            ),
            9 => format!("INSERT INTO k2 VALUES ({i} + 5, {}, {}) RETURNING *", j % 5, i % 4),
            10 => format!("SET CONSTRAINTS ALL {}", self.c.pick(&["DEFERRED", "IMMEDIATE"])),
            11 => format!(
                "WITH gone AS (DELETE FROM k1 WHERE {on} RETURNING *), made AS (UPDATE k0 SET s = 'w' FROM gone WHERE k0.u = gone.r RETURNING k0.id) SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM made), (SELECT count(*) FROM k1)"
            ),
            12 => format!(
                "UPDATE k1 SET r = k0.u FROM k0 WHERE k0.id = k1.id + {j} AND k1.id > {i} RETURNING k1.id, k1.r"
            ),
            13 => format!(
                "DELETE FROM k0 USING k1 WHERE k1.d = k0.id + {j} AND k1.id < {i} RETURNING k0.id"
            ),
            14 => format!(
                "MERGE INTO k0 USING k4 ON k0.id = k4.id AND k4.n = {} WHEN MATCHED AND k0.u > {j} THEN DELETE WHEN MATCHED THEN UPDATE SET s = s || 'm' WHEN NOT MATCHED AND k4.id > {i} THEN INSERT (id, u) VALUES (k4.id + 30, k4.id + 60) RETURNING merge_action(), k0.id",
                j % 3
            ),
            15 => format!("UPDATE k4 SET up = {} WHERE {on} RETURNING *", i + 1),
            16 => format!(
                "UPDATE k2 SET (a, b) = (SELECT a, b FROM k3 WHERE a = {} ORDER BY b LIMIT 1) WHERE {on} RETURNING *",
                j % 5
            ),
            _ => format!(
                "INSERT INTO k4 VALUES ({i} + 10, {j}, 1), ({i} + 11, {i} + 10, 2) ON CONFLICT (id) DO UPDATE SET up = excluded.up WHERE k4.n <> 0 RETURNING id, old.up, new.up"
            ),
        }
    }
}
