//! The tables of a schedule, and what its sessions say.

use rand::RngExt as _;
use rand::rngs::SmallRng;

/// What there is in the end.
pub const LEFT: [&str; 7] = [
    "SELECT id, k, v, g, d, md5(note) FROM t WHERE id > -100 ORDER BY id",
    "SELECT count(*), sum(v) FROM t WHERE g = 1 AND v > -1000000",
    "SELECT count(*), sum(id) FROM t WHERE g < 9",
    "SELECT * FROM c WHERE tid > -9 OR tid IS NULL ORDER BY id",
    "SELECT * FROM l ORDER BY 1, 2",
    "SELECT * FROM u WHERE a > -1 ORDER BY id",
    "SELECT count(*), sum(id) FROM u WHERE live",
];

fn pick<'a>(rng: &mut SmallRng, list: &[&'a str]) -> &'a str {
    list[rng.random_range(0..list.len())]
}

/// Makes the tables; the constraints' kinds, how full pages are and how long values are differ.
pub fn setup(rng: &mut SmallRng) -> String {
    let fill = pick(rng, &["100", "100", "50"]);
    let on_update = pick(rng, &["CASCADE", "NO ACTION", "RESTRICT"]);
    let on_delete = pick(rng, &["CASCADE", "NO ACTION", "SET NULL", "RESTRICT"]);
    let when = pick(rng, &["", "DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"]);
    let long = pick(rng, &["1", "10", "900"]);
    let first = pick(rng, &["IMMEDIATE", "DEFERRED"]);
    format!(
        "DROP TABLE IF EXISTS c, t, l, u CASCADE; \
         CREATE TABLE t (id int PRIMARY KEY, k int UNIQUE, v int NOT NULL DEFAULT 0, g int, note text, \
         d int GENERATED ALWAYS AS (v * 2 + coalesce(g, 0)) STORED) WITH (autovacuum_enabled = off, fillfactor = {fill}); \
         CREATE INDEX t_g ON t (g); CREATE INDEX t_p ON t (v) WHERE g = 1; \
         CREATE TABLE c (id int PRIMARY KEY, tid int REFERENCES t ON UPDATE {on_update} ON DELETE {on_delete} {when}, w int CHECK (w > -50)) WITH (autovacuum_enabled = off); \
         CREATE INDEX c_tid ON c (tid); CREATE TABLE l (id int, what text) WITH (autovacuum_enabled = off); \
         CREATE VIEW tv AS SELECT id, v, g FROM t WHERE g <> 2 WITH CHECK OPTION; \
         CREATE TABLE u (id int PRIMARY KEY, a int, live bool, s text, UNIQUE (a) DEFERRABLE INITIALLY {first}) WITH (autovacuum_enabled = off); \
         CREATE UNIQUE INDEX u_s ON u (lower(s)) WHERE live; \
         INSERT INTO u SELECT i, i, i % 2 = 0, 'S' || i FROM generate_series(1, 6) i; \
         INSERT INTO t SELECT i, i * 10, i, i % 3, repeat('x', i * {long}) FROM generate_series(1, 6) i; \
         INSERT INTO c SELECT i, i, i FROM generate_series(1, 4) i"
    )
}

/// What a session has said so far.
pub struct Session {
    keys: i32,
    /// Of ten blocks so many are REPEATABLE READ.
    repeatable: u32,
    in_block: bool,
    failed: bool,
    savepoints: Vec<String>,
}

impl Session {
    pub fn new(keys: i32, repeatable: u32) -> Session {
        Session { keys, repeatable, in_block: false, failed: false, savepoints: Vec::new() }
    }

    /// A statement was answered.
    pub fn has_run(&mut self, sql: &str, failed: bool) {
        if failed {
            self.failed = self.in_block;
            return;
        }
        let words: Vec<&str> = sql.split(' ').collect();
        let kept = |list: &[String], name: &str| list.iter().rposition(|s| s == name).unwrap_or(0);
        match words[..] {
            ["BEGIN", ..] => (self.in_block, self.failed) = (true, false),
            ["COMMIT" | "ROLLBACK"] => {
                (self.in_block, self.failed) = (false, false);
                self.savepoints.clear();
            }
            ["SAVEPOINT", name] => self.savepoints.push(name.to_owned()),
            ["ROLLBACK", "TO", name] => {
                self.failed = false;
                self.savepoints.truncate(kept(&self.savepoints, name) + 1);
            }
            ["RELEASE", name] => self.savepoints.truncate(kept(&self.savepoints, name)),
            _ => {}
        }
    }

    /// What it says next.
    pub fn next(&mut self, rng: &mut SmallRng) -> String {
        let x = rng.random_range(0..100);
        if !self.in_block {
            return match x {
                0..55 => {
                    let repeatable = rng.random_range(0..10) < self.repeatable;
                    let level = if repeatable { "REPEATABLE READ" } else { "READ COMMITTED" };
                    format!("BEGIN ISOLATION LEVEL {level}")
                }
                55..64 => pick(
                    rng,
                    &[
                        "VACUUM t",
                        "VACUUM (FREEZE) t",
                        "VACUUM (INDEX_CLEANUP ON, FREEZE) t, c",
                        "VACUUM (INDEX_CLEANUP OFF) t",
                        "VACUUM c",
                        "ANALYZE t",
                    ],
                )
                .to_owned(),
                64..66 => pick(
                    rng,
                    &[
                        "VACUUM FULL t",
                        "VACUUM FULL c",
                        "VACUUM (FREEZE) u",
                        "VACUUM FULL u",
                        "TRUNCATE t CASCADE",
                        "TRUNCATE u",
                        "ALTER TABLE t ALTER note TYPE varchar(9000)",
                        "ALTER TABLE t ALTER note TYPE text",
                        "ALTER TABLE c ALTER w TYPE bigint",
                        "ALTER TABLE u ADD COLUMN IF NOT EXISTS x int DEFAULT 7",
                        "REINDEX TABLE u",
                        "REINDEX TABLE t",
                        "CREATE INDEX IF NOT EXISTS t_x ON t (v, g)",
                        "DROP INDEX IF EXISTS t_x",
                        "TRUNCATE c",
                        "CLUSTER t USING t_pkey",
                    ],
                )
                .to_owned(),
                _ => self.one(rng),
            };
        }
        let savepoint = match self.savepoints.len() {
            0 => None,
            n => Some(self.savepoints[rng.random_range(0..n)].clone()),
        };
        match (x, savepoint) {
            (0..60, Some(name)) if self.failed => format!("ROLLBACK TO {name}"),
            _ if self.failed => pick(rng, &["ROLLBACK", "COMMIT"]).to_owned(),
            (0..18, _) => pick(rng, &["COMMIT", "COMMIT", "ROLLBACK"]).to_owned(),
            (18..26, _) => format!("SAVEPOINT s{}", self.savepoints.len()),
            (26..32, Some(name)) => {
                format!("{}{name}", pick(rng, &["ROLLBACK TO ", "ROLLBACK TO ", "RELEASE "]))
            }
            (32..34, _) => {
                format!("SET CONSTRAINTS ALL {}", pick(rng, &["IMMEDIATE", "DEFERRED"]))
            }
            (34..37, _) => {
                let (n, which) = (rng.random_range(1..4), self.some(rng));
                // Of the third one rows are changed.
                let lock = if n == 3 { " FOR UPDATE" } else { pick(rng, &["", " FOR UPDATE"]) };
                format!(
                    "DECLARE cu{n} CURSOR FOR SELECT id, v FROM t WHERE {which} ORDER BY id{lock}"
                )
            }
            (37..40, _) => {
                format!("FETCH {} FROM cu{}", rng.random_range(1..3), rng.random_range(1..4))
            }
            (40..42, _) => Self::ddl(rng),
            (42..44, _) => {
                let what = ["UPDATE t SET v = v + 1", "UPDATE t SET k = k + 1", "DELETE FROM t"];
                format!("{} WHERE CURRENT OF cu3 RETURNING id, v", pick(rng, &what))
            }
            (44, _) => format!("SET LOCAL lock_timeout = '{}'", pick(rng, &["1ms", "0"])),
            _ => self.one(rng),
        }
    }

    fn key(&self, rng: &mut SmallRng) -> i32 {
        rng.random_range(1..=self.keys)
    }

    /// A condition on one row.
    fn row(&self, rng: &mut SmallRng) -> String {
        let (id, g) = (self.key(rng), rng.random_range(0..3));
        match rng.random_range(0..10) {
            0..6 => format!("id = {id}"),
            6 => format!("k = {id}0"),
            7 => format!("id = {id} AND v < {}", rng.random_range(0..10)),
            8 => format!("k = {id}0 AND g = {g}"),
            _ => format!("id = {id} AND g <> {g}"),
        }
    }

    /// A condition on several.
    fn some(&self, rng: &mut SmallRng) -> String {
        let (a, b) = (self.key(rng), self.key(rng));
        match rng.random_range(0..5) {
            0 => format!("g = {}", rng.random_range(0..3)),
            1 => format!("v > {}", rng.random_range(0..9)),
            2 => format!("id BETWEEN {a} AND {b}"),
            3 => format!("id IN ({a}, {b})"),
            _ => "true".to_owned(),
        }
    }

    fn set(&self, rng: &mut SmallRng) -> String {
        let (n, g) = (self.key(rng), rng.random_range(0..3));
        match rng.random_range(0..10) {
            0 => format!("v = v + {n}"),
            1 => format!("v = {n}"),
            2 => format!("g = {g}"),
            3 => format!("k = k + {}", pick(rng, &["1", "10", "-10"])),
            4 => format!("note = note || '{n}'"),
            5 => format!("id = {n}"),
            6 => "g = g + 1, v = v - 1".to_owned(),
            7 => "v = v".to_owned(),
            8 => "k = NULL".to_owned(),
            _ => format!("note = repeat('y', {})", rng.random_range(1..3000)),
        }
    }

    fn one(&self, rng: &mut SmallRng) -> String {
        match rng.random_range(0..100) {
            0..18 => self.read(rng),
            18..26 => self.lock(rng),
            26..48 => self.write(rng),
            48..62 => self.on_conflict(rng),
            62..80 => self.second_look(rng),
            80..88 => self.again(rng),
            _ => self.unique(rng),
        }
    }

    /// What takes the table from under those who wait for its rows, as a part of more.
    fn ddl(rng: &mut SmallRng) -> String {
        pick(
            rng,
            &[
                "TRUNCATE c",
                "TRUNCATE t CASCADE",
                "TRUNCATE u",
                "CLUSTER t USING t_pkey",
                "CLUSTER u USING u_pkey",
                "ALTER TABLE t ALTER note TYPE varchar(9000)",
                "ALTER TABLE u ALTER a TYPE bigint",
                "ALTER TABLE t SET (fillfactor = 70)",
                "CREATE INDEX IF NOT EXISTS t_x ON t (v, g)",
                "DROP INDEX IF EXISTS t_x",
            ],
        )
        .to_owned()
    }

    /// One row so often that its page fills up, and versions go that others stand on.
    fn again(&self, rng: &mut SmallRng) -> String {
        let id = self.key(rng);
        let times = rng.random_range(2..12);
        let set = pick(rng, &["v = v + 1", "g = (g + 1) % 3", "note = repeat('z', 1500)"]);
        let update = format!("UPDATE t SET {set} WHERE id = {id}");
        if self.in_block {
            return format!("{update} RETURNING id, v, g");
        }
        // Each by itself, so that its version is dead at once.
        let one = format!("BEGIN; {update}; COMMIT; ");
        format!("{}SELECT 1", one.repeat(times))
    }

    /// Keys that are checked at the end, or of some rows only.
    fn unique(&self, rng: &mut SmallRng) -> String {
        let (id, a, n) = (self.key(rng), self.key(rng), self.key(rng));
        let case = pick(rng, &["S", "s"]);
        match rng.random_range(0..9) {
            0 => format!("UPDATE u SET a = a + {n} WHERE id >= {id} RETURNING id, a"),
            1 => format!("UPDATE u SET a = {a} WHERE id = {id} RETURNING id, a"),
            2 => format!("UPDATE u SET live = NOT live WHERE id = {id} RETURNING id, live, s"),
            3 => format!("UPDATE u SET s = '{case}{n}' WHERE id = {id} RETURNING id, live, s"),
            4 => format!("DELETE FROM u WHERE id = {id} RETURNING id, a"),
            5 => format!("INSERT INTO u VALUES ({id}, {a}, true, '{case}{n}') RETURNING id"),
            6 => format!(
                "INSERT INTO u VALUES ({id}, {a}, true, '{case}{n}') ON CONFLICT (lower(s)) WHERE live DO UPDATE SET live = false RETURNING id, s, live"
            ),
            7 => format!(
                "INSERT INTO u VALUES ({id}, {a}, true, '{case}{n}') ON CONFLICT (id) DO UPDATE SET s = excluded.s, a = excluded.a RETURNING id, a, s, live"
            ),
            _ => format!("SELECT id, a, live, s FROM u WHERE lower(s) = 's{n}' AND live"),
        }
    }

    fn read(&self, rng: &mut SmallRng) -> String {
        let (row, some) = (self.row(rng), self.some(rng));
        match rng.random_range(0..6) {
            0..2 => format!("SELECT id, k, v, g, length(note) FROM t WHERE {row}"),
            2 => "SELECT id, k, v, g, length(note) FROM t ORDER BY id".to_owned(),
            3 => format!("SELECT count(*), sum(v) FROM t WHERE {some}"),
            4 => "SELECT * FROM c ORDER BY id".to_owned(),
            _ => format!("SELECT pg_try_advisory_xact_lock({})", rng.random_range(1..4)),
        }
    }

    fn lock(&self, rng: &mut SmallRng) -> String {
        let (row, some, id) = (self.row(rng), self.some(rng), self.key(rng));
        let mode = pick(rng, &["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
        let wait = pick(rng, &["", "", "", " NOWAIT", " SKIP LOCKED"]);
        match rng.random_range(0..6) {
            0..3 => format!("SELECT id, v, g FROM t WHERE {row} FOR {mode}{wait}"),
            3 => {
                let limit = rng.random_range(1..4);
                format!(
                    "SELECT id, v FROM t WHERE {some} ORDER BY id LIMIT {limit} FOR {mode}{wait}"
                )
            }
            4 => {
                let of = pick(rng, &[" OF t", " OF c", ""]);
                format!(
                    "SELECT t.id, c.id FROM t JOIN c ON c.tid = t.id WHERE t.id = {id} ORDER BY 1, 2 FOR {mode}{of}"
                )
            }
            _ if self.in_block => {
                let mode =
                    pick(rng, &["ROW EXCLUSIVE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "SHARE"]);
                format!("LOCK TABLE t IN {mode} MODE{}", pick(rng, &["", " NOWAIT"]))
            }
            _ => format!(
                "SELECT id FROM t WHERE {row} AND EXISTS (SELECT FROM c WHERE tid = t.id) FOR {mode}"
            ),
        }
    }

    fn write(&self, rng: &mut SmallRng) -> String {
        let (row, some, set) = (self.row(rng), self.some(rng), self.set(rng));
        let (id, child) = (self.key(rng), rng.random_range(1..10));
        match rng.random_range(0..11) {
            0..5 => format!("UPDATE t SET {set} WHERE {row} RETURNING id, k, v, g"),
            5 => {
                let set = pick(rng, &["v = v + 1", "g = (g + 1) % 3"]);
                format!(
                    "UPDATE t SET {set} WHERE id IN (SELECT id FROM t WHERE {some} ORDER BY id FOR UPDATE) RETURNING id, v"
                )
            }
            6 => format!("DELETE FROM t WHERE {row} RETURNING id, v"),
            7 => format!(
                "INSERT INTO t (id, k, v, g) VALUES ({id}, {}0, 1, 1) RETURNING id",
                self.key(rng)
            ),
            8 => {
                let set = [
                    format!("tid = {id}"),
                    "w = w + 1".into(),
                    format!("id = {}", rng.random_range(1..10)),
                ];
                let set = &set[rng.random_range(0..3)];
                format!("UPDATE c SET {set} WHERE id = {child} RETURNING *")
            }
            9 => format!("DELETE FROM c WHERE id = {child} RETURNING *"),
            _ => format!(
                "WITH d AS (DELETE FROM t WHERE {row} RETURNING id, v) INSERT INTO l SELECT id, v::text FROM d RETURNING *"
            ),
        }
    }

    fn on_conflict(&self, rng: &mut SmallRng) -> String {
        let (id, k, v, g) = (self.key(rng), self.key(rng), self.key(rng), rng.random_range(0..3));
        let child = rng.random_range(1..10);
        match rng.random_range(0..5) {
            0 => {
                let on = pick(rng, &["", "(id)", "(k)"]);
                format!(
                    "INSERT INTO t (id, k, v, g) VALUES ({id}, {k}0, {v}, {g}) ON CONFLICT {on} DO NOTHING RETURNING id"
                )
            }
            1 => {
                let on = pick(rng, &["id", "k"]);
                let more = pick(rng, &["", ", g = excluded.g", " WHERE o.g <> excluded.g"]);
                format!(
                    "INSERT INTO t AS o (id, k, v, g) VALUES ({id}, {k}0, {v}, {g}) ON CONFLICT ({on}) DO UPDATE SET v = o.v + excluded.v{more} RETURNING id, v"
                )
            }
            2 => {
                let on = pick(
                    rng,
                    &[
                        "",
                        " ON CONFLICT DO NOTHING",
                        " ON CONFLICT (id) DO UPDATE SET w = c.w + 1, tid = excluded.tid",
                    ],
                );
                format!("INSERT INTO c VALUES ({child}, {id}, {v}){on}")
            }
            3 => format!(
                "MERGE INTO t USING (VALUES ({id}, {v})) s(i, a) ON t.id = s.i WHEN MATCHED AND t.v > 7 THEN DELETE \
                 WHEN MATCHED THEN UPDATE SET v = t.v + s.a WHEN NOT MATCHED THEN INSERT (id, k, v, g) VALUES (s.i, s.i * 10, s.a, 1) \
                 RETURNING merge_action(), t.id, t.v"
            ),
            _ => format!(
                "INSERT INTO tv VALUES ({id}, {v}, {g}) ON CONFLICT (id) DO UPDATE SET v = tv.v + 1 RETURNING *"
            ),
        }
    }

    /// What READ COMMITTED has to look at again when somebody was quicker.
    fn second_look(&self, rng: &mut SmallRng) -> String {
        let (id, other, child) = (self.key(rng), self.key(rng), rng.random_range(1..10));
        let (n, g) = (rng.random_range(0..6), rng.random_range(0..3));
        match rng.random_range(0..20) {
            0 => format!(
                "UPDATE t SET v = (SELECT count(*) FROM c WHERE c.tid = t.id AND c.w > {n}) WHERE id = {id} RETURNING old.v, new.v, new.d"
            ),
            1 => format!(
                "UPDATE t SET v = t.v + s.m FROM (SELECT tid, max(w) m FROM c GROUP BY tid) s WHERE s.tid = t.id AND t.id = {id} RETURNING t.id, t.v, s.m"
            ),
            2 => format!(
                "DELETE FROM t USING c WHERE c.tid = t.id AND c.w >= {n} AND t.id = {id} RETURNING t.id, c.w"
            ),
            3 => format!(
                "SELECT t.id, t.v, c.w FROM t LEFT JOIN c ON c.tid = t.id WHERE t.id = {id} AND t.v > {n} ORDER BY 3 FOR UPDATE OF t"
            ),
            4 => {
                let skip = pick(rng, &[" SKIP LOCKED", ""]);
                format!(
                    "WITH q AS (SELECT id FROM t WHERE g = {g} ORDER BY id LIMIT 1 FOR UPDATE{skip}) DELETE FROM t USING q WHERE t.id = q.id RETURNING t.id, t.v"
                )
            }
            5 => format!(
                "UPDATE t SET v = v + 1 WHERE id = (SELECT min(id) FROM t WHERE g = {g}) RETURNING id, v"
            ),
            6 => format!(
                "UPDATE t SET v = v + 1 WHERE EXISTS (SELECT 1 FROM c WHERE c.tid = t.id AND c.w > {n}) AND id = {id} RETURNING id, v"
            ),
            7 => format!(
                "UPDATE t SET g = 1 WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.tid = t.id) AND id = {id} AND v < 9 RETURNING id, v, g"
            ),
            8 => format!(
                "MERGE INTO t USING (SELECT * FROM c WHERE id = {child}) s ON t.id = s.tid WHEN MATCHED AND t.v > s.w THEN UPDATE SET v = s.w \
                 WHEN MATCHED THEN UPDATE SET v = t.v + 5 WHEN NOT MATCHED BY SOURCE AND t.id = {id} AND t.g = {g} THEN UPDATE SET g = 2 \
                 RETURNING merge_action(), old.v, new.v, t.id"
            ),
            9 => format!(
                "INSERT INTO t (id, k, v, g) SELECT id + 1, k + 10, v, g FROM t WHERE id = {id} ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v RETURNING id, v, k"
            ),
            10 => format!("UPDATE tv SET v = v + 1 WHERE id = {id} RETURNING id, v"),
            11 => format!("UPDATE tv SET g = g + 1 WHERE id = {id} RETURNING *"),
            12 => format!("DELETE FROM tv WHERE id = {id} AND v < {n} RETURNING *"),
            13 => format!(
                "UPDATE t SET v = a.v FROM t a WHERE t.id = {id} AND a.id = {other} RETURNING t.id, t.v, a.v"
            ),
            14 => format!(
                "SELECT a.id, b.id, a.v, b.v FROM t a JOIN t b ON b.g = a.g AND b.id > a.id WHERE a.id = {id} ORDER BY 1, 2 LIMIT 2 FOR UPDATE OF a"
            ),
            15 => format!(
                "SELECT id, v FROM (SELECT * FROM t WHERE v > {n}) s WHERE id = {id} FOR UPDATE"
            ),
            16 => format!("UPDATE t SET v = v * 2 WHERE d > {n} AND id = {id} RETURNING id, v, d"),
            17 => format!(
                "UPDATE t SET v = t.v + c.w FROM c WHERE c.tid = t.id AND c.id = {child} RETURNING t.id, t.v, c.id"
            ),
            18 => format!(
                "WITH u AS (UPDATE t SET v = v + 1 WHERE id = {id} RETURNING id, v), i AS (INSERT INTO l SELECT id, v FROM u RETURNING id) SELECT u.v, i.id FROM u JOIN i ON u.id = i.id"
            ),
            _ => format!(
                "UPDATE t SET (v, g) = (SELECT sum(w), 1 FROM c WHERE tid = t.id) WHERE id = {id} AND EXISTS (SELECT FROM c WHERE tid = t.id) RETURNING id, v, g"
            ),
        }
    }
}
