//! Values out of line that are read late: whatever happens between a row and who reads its values, and within memory.

use crate::support::{Connection, Database};
use base::{Error, Result};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sql::client::{Client, CopyWireFormat, Notice, OutputColumn};
use std::collections::BTreeMap;
use std::rc::Rc;
use types::{Datum, Env};

/// Chunks of `t`'s values that have been read.
fn chunks(s: &mut Connection) -> u64 {
    let said = s.run(
        "SELECT idx_tup_fetch FROM pg_stat_all_tables \
         WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
    );
    said.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// A client that wants so many rows, and is gone then.
struct Leaving(usize);

impl Client for Leaving {
    fn row_description(&mut self, _: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn data_row(&mut self, _: &[OutputColumn], _: &[Datum], _: &dyn Env) -> Result<()> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => return Err(Error::unsupported("more rows")),
        }
        Ok(())
    }
    fn command_complete(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, _: &Notice) -> Result<()> {
        Ok(())
    }
    fn parameter_status(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
    fn copy_in_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Ok(())
    }
    fn copy_in_read(&mut self, _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
    fn copy_out_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Ok(())
    }
    fn copy_out_data(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn copy_out_end(&mut self) -> Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A batch of rows is read as far as it fits memory; what comes after is read when it is its turn.
#[test]
fn long_values_are_read_a_few_at_once() {
    let db = Database::new();
    let mut s = db.session();
    // Each is of 151 chunks.
    s.run_each(&[
        "CREATE TABLE t (id int, big text) WITH (autovacuum_enabled = off)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, repeat(chr(64 + i), 300000) FROM generate_series(1, 20) i",
    ]);
    for query in ["SELECT big FROM t", "SELECT big FROM t ORDER BY id DESC"] {
        let before = chunks(&mut s);
        let said = s.session.simple_query(query, &mut Leaving(2));
        assert!(said.is_err(), "{query}");
        let read = chunks(&mut s) - before;
        assert!((300..1500).contains(&read), "{read} chunks read for the first rows of {query}");
    }
    // All the same all rows come, in their order.
    let all = s.run("SELECT id, big FROM t ORDER BY id DESC");
    let seen: Vec<&str> = all.lines().map(|line| &line[..line.len() - 299_998]).collect();
    let wanted: Vec<String> =
        (1..=20u8).rev().map(|i| format!("{i}|{0}{0}", char::from(64 + i))).collect();
    assert_eq!(seen, wanted);
    s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT id, big FROM t"]);
    for first in [1, 8, 15] {
        let said = s.run("FETCH 7 FROM c");
        let ids: Vec<i32> =
            said.lines().map(|l| l.split_once('|').unwrap().0.parse().unwrap()).collect();
        assert_eq!(ids, (first..first + 7).filter(|i| *i <= 20).collect::<Vec<_>>());
    }
}

/// What a sort keeps of values that are compressed in their rows counts as its memory.
#[test]
fn compressed_values_count_as_memory() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, big text)",
        "INSERT INTO t SELECT i, string_agg(md5(i::text || j), '') || repeat('x', 5000) FROM generate_series(1, 800) i, generate_series(1, 40) j GROUP BY i",
        "SET work_mem = '256kB'",
    ]);
    // In their rows, and more than a kilobyte each.
    s.check(&[
        ("SELECT pg_relation_size(reltoastrelid), pg_relation_size('t') > 800000 FROM pg_class WHERE relname = 't'", "0|t"),
        ("SELECT bool_and(pg_column_size(big) BETWEEN 1200 AND 2000) FROM t", "t"),
    ]);
    let told = s
        .run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT big FROM t ORDER BY id");
    assert!(told.contains("Sort Method: external merge"), "{told}");
    s.check(&[("SELECT count(*), count(DISTINCT big), min(length(big)) FROM (SELECT big FROM t ORDER BY id OFFSET 0) x", "800|800|6280")]);
}

/// What would take a value's chunks away under an open cursor that has not read it yet waits, is refused, or leaves them there.
#[test]
fn a_cursor_outlives_what_its_own_transaction_does() {
    let db = Database::new();
    let mut s = db.session();
    let refused = |what: &str| {
        format!(
            "55006 cannot {what} \"t\" because it is being used by active queries in this session"
        )
    };
    let list = [
        ("TRUNCATE t", refused("TRUNCATE")),
        ("DROP TABLE t", refused("DROP TABLE")),
        (
            "ALTER TABLE t ALTER big TYPE bytea USING convert_to(big, 'UTF8')",
            refused("ALTER TABLE"),
        ),
        ("ALTER TABLE t DROP big", refused("ALTER TABLE")),
        ("CLUSTER t USING t_pkey", refused("CLUSTER")),
        ("REINDEX TABLE t", String::new()),
        ("REINDEX TABLE t; UPDATE t SET big = big || 'x'", String::new()),
        ("DELETE FROM t", String::new()),
        ("UPDATE t SET big = 'x'", String::new()),
        (
            "UPDATE t SET big = n::text || big; UPDATE t SET big = NULL; DELETE FROM t",
            String::new(),
        ),
        (
            "INSERT INTO t SELECT id + 100, n, big FROM t; DELETE FROM t WHERE id < 100",
            String::new(),
        ),
        (
            "MERGE INTO t USING t o ON t.id = o.id WHEN MATCHED AND t.id < 3 THEN DELETE WHEN MATCHED THEN UPDATE SET big = o.big || 'x'",
            String::new(),
        ),
        ("SAVEPOINT a; UPDATE t SET big = 'new'; ROLLBACK TO a; DELETE FROM t", String::new()),
    ];
    for (what, wanted) in &list {
        s.run_each(&[
            "DROP TABLE IF EXISTS t",
            "CREATE TABLE t (id int PRIMARY KEY, n int, big text)",
            "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
            "INSERT INTO t SELECT i, 10 - i, repeat(chr(64 + i), 5000) FROM generate_series(1, 5) i",
            "BEGIN",
            "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, big FROM t ORDER BY n",
            "MOVE 1 FROM c",
            "SAVEPOINT s",
        ]);
        let said = s.run(what);
        assert!(said.starts_with(wanted.as_str()), "{what}: {said}");
        if wanted.is_empty() {
            assert_eq!(said, "", "{what}");
        } else {
            s.run_each(&["ROLLBACK TO s"]);
        }
        let line = |i: u8| format!("{i}|{}", char::from(64 + i).to_string().repeat(5000));
        s.check(&[("FETCH 1 FROM c", &line(4)), ("FETCH PRIOR FROM c", &line(5))]);
        s.run_each(&["COMMIT", "VACUUM t"]);
        let rest = [3, 2, 1].map(line).join("\n");
        s.check(&[
            ("FETCH ABSOLUTE 2 FROM c", &line(4)),
            ("FETCH ALL FROM c", &rest),
            ("CLOSE c", ""),
        ]);
    }
}

/// A new column's value may be longer than a row of a catalog: the rows then get it for themselves.
#[test]
fn a_new_columns_default_may_be_long() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int)",
        "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ADD short text DEFAULT 'x'",
        "ALTER TABLE t ADD long text DEFAULT repeat('abc', 30000), ADD size int GENERATED ALWAYS AS (length(long)) STORED",
        "ALTER TABLE t ADD noise bytea DEFAULT convert_to((repeat('\\x', 6000)), 'UTF8')",
        "INSERT INTO t VALUES (3)",
        "UPDATE t SET id = id + 1",
        "UPDATE t SET long = long || 'd' WHERE id = 2",
        "VACUUM FULL t",
    ]);
    s.check(&[
        ("SELECT id, short, length(long), size, right(long, 2), length(noise) FROM t ORDER BY id", "2|x|90001|90001|cd|12000\n3|x|90000|90000|bc|12000\n4|x|90000|90000|bc|12000"),
        ("SELECT attname, atthasmissing FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 1 ORDER BY attnum", "short|f\nlong|f\nsize|f\nnoise|f"),
    ]);
}

/// A row as the model has it: values as they are shown.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    n: i32,
    /// `a`: out of line as it is; `b`: compressed, then out of line; `c`: bytea; `d`: in the row if it may.
    values: [Option<Rc<str>>; 4],
}

type Rows = BTreeMap<i32, Row>;

const COLUMNS: [&str; 4] = ["a", "b", "c", "d"];

fn shown(id: i32, row: &Row) -> String {
    let values = row.values.each_ref().map(|v| v.as_deref().unwrap_or("~"));
    format!("{id}|{}|{}", row.n, values.join("|"))
}

fn in_order(rows: &Rows) -> Vec<String> {
    let mut list: Vec<(&i32, &Row)> = rows.iter().collect();
    list.sort_by_key(|(id, row)| (row.n, **id));
    list.into_iter().map(|(id, row)| shown(*id, row)).collect()
}

struct Cursor {
    name: String,
    rest: Vec<String>,
    depth: usize,
    hold: bool,
    held: bool,
}

/// One session writes the even rows, in blocks with savepoints and cursors, another the odd ones; a third looks on with an old
/// snapshot, and a fourth cleans up.
struct Play {
    rng: SmallRng,
    writer: Connection,
    other: Connection,
    looker: Connection,
    cleaner: Connection,
    /// Even rows as committed, and as the writer has them.
    kept: Rows,
    mine: Rows,
    odd: Rows,
    in_block: bool,
    savepoints: Vec<Rows>,
    cursors: Vec<Cursor>,
    seen: Option<Rows>,
    named: u32,
    seed: u64,
}

impl Play {
    fn new(db: &Database, seed: u64) -> Play {
        let mut writer = db.session();
        writer.run_each(&[
            "CREATE TABLE t (id int PRIMARY KEY, n int, a text, b text, c bytea, d text) WITH (autovacuum_enabled = off)",
            "ALTER TABLE t ALTER a SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL, ALTER d SET STORAGE MAIN",
        ]);
        if seed.is_multiple_of(2) {
            writer.run_each(&[
                "CREATE INDEX ON t (n)",
                "CREATE INDEX ON t (left(a, 5)) WHERE b IS NOT NULL",
            ]);
        }
        Play {
            rng: SmallRng::seed_from_u64(seed),
            writer,
            other: db.session(),
            looker: db.session(),
            cleaner: db.session(),
            kept: Rows::new(),
            mine: Rows::new(),
            odd: Rows::new(),
            in_block: false,
            savepoints: Vec::new(),
            cursors: Vec::new(),
            seen: None,
            named: 0,
            seed,
        }
    }

    /// A value of column `at`, as it is shown and as it is written in a statement.
    fn value(&mut self, at: usize) -> Option<Rc<str>> {
        if self.rng.random_ratio(1, 12) {
            return None;
        }
        let most = [8, 40, 200, 1000, 2500, 2500, 9000, 60_000][self.rng.random_range(0..8usize)];
        let most = if at == 3 { most.min(5000) } else { most };
        let len = self.rng.random_range(1..=most);
        let mut out = String::new();
        if at == 2 {
            out.push_str("\\x");
            while out.len() < 2 + len / 2 * 2 {
                out.push_str(&format!("{:02x}", self.rng.random::<u8>()));
            }
            return Some(out.into());
        }
        let letters = ['a', 'b', 'ß', '€', '😀', 'z'];
        let runs = self.rng.random_bool(0.6);
        while out.len() < len {
            let c = letters[self.rng.random_range(0..letters.len())];
            let n = if runs { self.rng.random_range(1..200) } else { 1 };
            out.extend(std::iter::repeat_n(c, n));
        }
        Some(out.into())
    }

    fn literal(value: Option<&Rc<str>>) -> String {
        value.map_or("NULL".to_owned(), |v| format!("'{v}'"))
    }

    fn write(&mut self, even: bool) {
        let mut rows = std::mem::take(if even { &mut self.mine } else { &mut self.odd });
        let sql = self.change(&mut rows, even);
        let session = if even { &mut self.writer } else { &mut self.other };
        let said = session.run(&sql);
        assert!(said.is_empty(), "seed {}: {}: {said}", self.seed, &sql[..sql.len().min(300)]);
        *(if even { &mut self.mine } else { &mut self.odd }) = rows;
        if even && !self.in_block {
            self.kept = self.mine.clone();
        }
    }

    /// A statement, and what it does to the rows of one side.
    fn change(&mut self, rows: &mut Rows, even: bool) -> String {
        let side = if even { "id % 2 = 0" } else { "id % 2 = 1" };
        let ids: Vec<i32> = rows.keys().copied().collect();
        let deed = if ids.len() < 2 { 0 } else { self.rng.random_range(0..12) };
        if deed == 0 && ids.len() < 9 {
            let id = 2 * self.rng.random_range(1..200) + i32::from(!even);
            let values = [0, 1, 2, 3].map(|at| self.value(at));
            let n = self.rng.random_range(0..6);
            let literals: Vec<String> = values.iter().map(|v| Play::literal(v.as_ref())).collect();
            let row = Row { n, values };
            let sql = format!(
                "INSERT INTO t VALUES ({id}, {n}, {}) ON CONFLICT (id) DO UPDATE SET n = excluded.n, a = excluded.a, b = excluded.b, c = excluded.c, d = excluded.d",
                literals.join(", ")
            );
            rows.insert(id, row);
            return sql;
        }
        let id = ids[self.rng.random_range(0..ids.len())];
        match deed {
            // All rows, nothing long of them.
            1 | 2 => {
                rows.values_mut().for_each(|r| r.n = (r.n + 1) % 7);
                format!("UPDATE t SET n = (n + 1) % 7 WHERE {side}")
            }
            3 => {
                let from = rows[&id].values.clone();
                for row in rows.values_mut() {
                    row.values[0] = from[1].clone();
                }
                format!("UPDATE t SET a = o.b FROM t o WHERE o.id = {id} AND t.{side}")
            }
            4 => {
                for row in rows.values_mut() {
                    row.values.swap(0, 1);
                }
                format!("UPDATE t SET a = b, b = a WHERE {side}")
            }
            5 => {
                rows.remove(&id);
                format!("DELETE FROM t WHERE id = {id}")
            }
            6 => {
                let r = rows.get_mut(&id).unwrap();
                r.values[1] =
                    r.values[0].as_ref().map(|v| v.chars().take(2000).collect::<String>().into());
                format!(
                    "MERGE INTO t USING (SELECT id, left(a, 2000) AS head FROM t) o ON t.id = o.id AND t.id = {id} WHEN MATCHED THEN UPDATE SET b = o.head"
                )
            }
            7 => {
                let to = id + 1000;
                let row = rows[&id].clone();
                rows.entry(to).or_insert(row);
                format!(
                    "INSERT INTO t SELECT id + 1000, n, a, b, c, d FROM t WHERE id = {id} ON CONFLICT DO NOTHING"
                )
            }
            8 => {
                rows.get_mut(&id).unwrap().n += 1;
                format!(
                    "INSERT INTO t (id, n) VALUES ({id}, 0) ON CONFLICT (id) DO UPDATE SET n = t.n + 1"
                )
            }
            _ => {
                let at = self.rng.random_range(0..4usize);
                let value = self.value(at);
                let sql = format!(
                    "UPDATE t SET {} = {} WHERE id = {id}",
                    COLUMNS[at],
                    Play::literal(value.as_ref())
                );
                rows.get_mut(&id).unwrap().values[at] = value;
                sql
            }
        }
    }

    fn told(said: &str) -> Vec<&str> {
        said.lines().collect()
    }

    #[track_caller]
    fn same(&self, what: &str, said: &str, wanted: &[String]) {
        let got = Play::told(said);
        assert_eq!(got.len(), wanted.len(), "seed {}: {what}: {:.200}", self.seed, said);
        for (g, w) in got.iter().zip(wanted) {
            assert!(
                g == w,
                "seed {}: {what}: {:.100} ({}) is not {:.100} ({})",
                self.seed,
                g,
                g.len(),
                w,
                w.len()
            );
        }
    }

    fn control(&mut self) {
        let deed = self.rng.random_range(0..6);
        let (sql, over) = match (self.in_block, deed) {
            (false, _) => {
                self.in_block = true;
                self.mine = self.kept.clone();
                ("BEGIN", false)
            }
            (true, 0) => ("COMMIT", true),
            (true, 1) => {
                self.mine = self.kept.clone();
                self.cursors.retain(|c| c.held);
                ("ROLLBACK", true)
            }
            (true, 2 | 3) if self.savepoints.len() < 4 => {
                self.savepoints.push(self.mine.clone());
                ("SAVEPOINT p", false)
            }
            (true, 4) if !self.savepoints.is_empty() => {
                let depth = self.savepoints.len();
                self.mine = self.savepoints[depth - 1].clone();
                self.cursors.retain(|c| c.depth < depth);
                ("ROLLBACK TO p", false)
            }
            _ if !self.savepoints.is_empty() => {
                self.savepoints.pop();
                let depth = self.savepoints.len();
                self.cursors.iter_mut().for_each(|c| c.depth = c.depth.min(depth));
                ("RELEASE p", false)
            }
            _ => return,
        };
        self.writer.run_each(&[sql]);
        if over {
            self.in_block = false;
            self.savepoints.clear();
            self.kept = self.mine.clone();
            self.cursors.retain(|c| c.hold);
            self.cursors.iter_mut().for_each(|c| (c.held, c.depth) = (true, 0));
        }
    }

    /// What the writer sees.
    fn all(&self) -> Rows {
        self.mine.iter().chain(&self.odd).map(|(id, row)| (*id, row.clone())).collect()
    }

    fn declare(&mut self) {
        if !self.in_block || self.cursors.len() > 3 {
            return;
        }
        self.named += 1;
        let name = format!("c{}", self.named);
        let hold = self.rng.random_ratio(1, 3);
        let query = [
            "SELECT * FROM t ORDER BY n, id",
            "SELECT x.* FROM t x JOIN t y USING (id) ORDER BY x.n, x.id",
            "SELECT id, n, a, b, c, d FROM (SELECT *, row_number() OVER (ORDER BY n, id) AS r FROM t) x ORDER BY r",
            "WITH w AS MATERIALIZED (SELECT * FROM t) SELECT * FROM w ORDER BY n, id",
            "SELECT x.* FROM generate_series(0, 20) g JOIN LATERAL (SELECT * FROM t WHERE n = g OFFSET 0) x ON true ORDER BY n, id",
            "SELECT DISTINCT ON (n, id) * FROM t ORDER BY n, id, a",
        ][self.rng.random_range(0..6usize)];
        let with = if hold { "WITH HOLD " } else { "" };
        self.writer.run_each(&[&format!("DECLARE {name} CURSOR {with}FOR {query}")]);
        let mut rest = in_order(&self.all());
        rest.reverse();
        let depth = self.savepoints.len();
        self.cursors.push(Cursor { name, rest, depth, hold, held: false });
    }

    fn fetch(&mut self) {
        if self.cursors.is_empty() {
            return;
        }
        let i = self.rng.random_range(0..self.cursors.len());
        let n = self.rng.random_range(1..4);
        let said = self.writer.run(&format!("FETCH {n} FROM {}", self.cursors[i].name));
        let rest = &mut self.cursors[i].rest;
        let mut wanted = rest.split_off(rest.len().saturating_sub(n));
        wanted.reverse();
        self.same("a cursor", &said, &wanted);
        if self.cursors[i].rest.is_empty() {
            let gone = self.cursors.swap_remove(i);
            self.writer.run_each(&[&format!("CLOSE {}", gone.name)]);
        }
    }

    /// A statement that fails at one of its rows.
    fn fail(&mut self) {
        let Some(last) = self.mine.keys().next_back().copied() else { return };
        let back = if self.in_block { "ROLLBACK TO q; RELEASE q" } else { "" };
        if self.in_block {
            self.writer.run_each(&["SAVEPOINT q"]);
        }
        let said = self.writer.run(&format!(
            "UPDATE t SET a = b || 'x', c = NULL, n = 1 / (id - {last}) WHERE id % 2 = 0"
        ));
        assert!(said.starts_with("22012"), "seed {}: {said}", self.seed);
        self.writer.run_each(&[back]);
    }

    /// Parts of values, as the writer sees them.
    fn parts(&mut self) {
        let (from, n) = (self.rng.random_range(-5..3000i32), self.rng.random_range(0..2500i32));
        let said = self.writer.run(&format!(
            "SELECT id, substr(a, {from}, {n}), left(b, {n}), octet_length(c), substr(c, {from}, {n}), a IS NULL, a = b, length(d) FROM t ORDER BY id"
        ));
        let text = |v: &Option<Rc<str>>, from: i32, n: i32| {
            let (start, end) = ((from - 1).max(0), (from + n - 1).max(0));
            let part = |v: &Rc<str>| {
                v.chars().skip(start as usize).take((end - start).max(0) as usize).collect()
            };
            v.as_ref().map_or("~".to_owned(), part)
        };
        let wanted: Vec<String> = self
            .all()
            .iter()
            .map(|(id, row)| {
                let [a, b, c, d] = &row.values;
                let (start, end) = ((from - 1).max(0) as usize, (from + n - 1).max(0) as usize);
                let size = c.as_ref().map(|c| (c.len() - 2) / 2);
                let bytes = c.as_ref().map_or("~".to_owned(), |c| {
                    let size = (c.len() - 2) / 2;
                    let (start, end) = (start.min(size), end.min(size).max(start.min(size)));
                    format!("\\x{}", &c[2 + 2 * start..2 + 2 * end])
                });
                let or = |v: Option<String>| v.unwrap_or_else(|| "~".to_owned());
                let same = a
                    .as_ref()
                    .zip(b.as_ref())
                    .map(|(a, b)| if a == b { "t" } else { "f" }.to_owned());
                format!(
                    "{id}|{}|{}|{}|{bytes}|{}|{}|{}",
                    text(a, from, n),
                    text(b, 1, n),
                    or(size.map(|s| s.to_string())),
                    if a.is_none() { "t" } else { "f" },
                    or(same),
                    or(d.as_ref().map(|d| d.chars().count().to_string())),
                )
            })
            .collect();
        self.same("parts", &said, &wanted);
    }

    fn look(&mut self) {
        let Some(seen) = self.seen.take() else {
            self.looker.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"]);
            let rows = self.kept.iter().chain(&self.odd);
            self.seen = Some(rows.map(|(id, row)| (*id, row.clone())).collect());
            return;
        };
        let said = self.looker.run("SELECT * FROM t ORDER BY n, id");
        self.same("an old snapshot", &said, &in_order(&seen));
        if self.rng.random_ratio(1, 3) {
            self.looker.run_each(&["COMMIT"]);
        } else {
            self.seen = Some(seen);
        }
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0..=5 => self.write(true),
            6..=8 => self.write(false),
            9..=11 => self.control(),
            12 => self.declare(),
            13 | 14 => self.fetch(),
            15 => self.fail(),
            16 => self.parts(),
            17 => self.look(),
            _ => {
                let sql = ["VACUUM t", "VACUUM t", "VACUUM (FREEZE) t", "ANALYZE t"]
                    [self.rng.random_range(0..4usize)];
                self.cleaner.run_each(&[sql]);
            }
        }
    }
}

#[test]
fn are_what_a_model_says() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..2 + more {
        let db = Database::new();
        let mut play = Play::new(&db, seed);
        for _ in 0..60 {
            play.step();
        }
        let said = play.writer.run("SELECT * FROM t ORDER BY n, id");
        let wanted = in_order(&play.all());
        play.same("at the end", &said, &wanted);
        if play.in_block {
            play.writer.run_each(&["COMMIT"]);
            play.kept = play.mine.clone();
        }
        if play.seen.is_some() {
            play.looker.run_each(&["COMMIT"]);
        }
        play.cleaner.run_each(&["VACUUM t", "CREATE EXTENSION amcheck"]);
        let said = play.cleaner.run("SELECT * FROM t ORDER BY n, id");
        play.same("after all", &said, &wanted);
        play.cleaner
            .check(&[("SELECT count(*) FROM verify_heapam('t', check_toast => true)", "0")]);
        drop(play);
        assert_eq!(db.faults(), Vec::<String>::new(), "seed {seed}");
    }
}
