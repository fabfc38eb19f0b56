//! Damaged input of four kinds: SQL text, protocol bytes, pages, WAL.

use crate::{Server, prepared};
use base::Result;
use disk::sim::SimDisk;
use disk::{Disk, OpenMode};
use rand::RngExt as _;
use rand::rngs::SmallRng;
use sql::client::Quiet;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Statements that mutations start from.
const CORPUS: &[&str] = &[
    "SELECT a, b, count(*) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WHERE a BETWEEN 1 AND 50 ORDER BY 1 DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT x.a, y.b FROM t x LEFT JOIN t y ON x.a = y.a + 1 WHERE x.b LIKE 'a%' OR y.c IS NULL",
    "INSERT INTO t (a, b, c) VALUES (1, 'x', 2.5), (2, NULL, -1e10) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *",
    "UPDATE t SET b = upper(b), c = c * 2 WHERE a IN (SELECT a FROM t WHERE c > 0) RETURNING a, c",
    "DELETE FROM t USING t u WHERE t.a = u.a + 1 AND u.c < 3",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT sum(n), array_agg(n) FROM r",
    "SELECT CASE WHEN a > 1 THEN 'big' ELSE b END, coalesce(c, 0)::numeric(10,2), a::text || 'x' FROM t",
    "SELECT b, sum(c) FILTER (WHERE a > 2), string_agg(b, ',' ORDER BY a) FROM t GROUP BY ROLLUP (b) HAVING count(*) > 0",
    "SELECT date '2024-02-29' + interval '1 year 2 mons', extract(epoch FROM timestamp '2000-01-01 12:34:56.789')",
    "SELECT '{1,2,{3}}'::int[], ARRAY[[1,2],[3,4]][2:2][1:1], '{\"a\":[1,2,{\"b\":null}]}'::jsonb",
    "SELECT substring('foobar' FROM 2 FOR 3), regexp_replace('abc', '(b)', '<\\1>', 'g'), to_hex(255), md5('x')",
    "SELECT 9223372036854775807 + 1, 1 / 0, 2 ^ 1000, sqrt(-1), 'abc'::int, round(1.005, 2), 1e400::numeric",
    "CREATE TEMP TABLE z (a int DEFAULT 3, b text CHECK (length(b) < 10), PRIMARY KEY (a)); DROP TABLE z",
    "BEGIN; SAVEPOINT s; INSERT INTO t VALUES (77); ROLLBACK TO s; RELEASE s; COMMIT",
    "EXPLAIN SELECT * FROM t WHERE a = 5 AND b = 'x' ORDER BY c",
    "SELECT * FROM generate_series(1, 10, 3) WITH ORDINALITY AS g(v, o), LATERAL (SELECT v * o) s(p)",
    "VALUES (1, 'a'), (2, 'b') EXCEPT SELECT a, b FROM t INTERSECT SELECT 3, 'c' ORDER BY 1",
    "SELECT (SELECT max(a) FROM t u WHERE u.b = t.b), EXISTS (SELECT 1 FROM t WHERE false), a = ANY (ARRAY[1,2]) FROM t",
    "DECLARE c CURSOR FOR SELECT a FROM t; FETCH ALL FROM c; CLOSE c",
    "PREPARE p (int) AS SELECT * FROM t WHERE a = $1; EXECUTE p(1); DEALLOCATE p",
    "VACUUM (VERBOSE, ANALYZE) t",
    "ANALYZE t (a, b)",
    "COPY t TO STDOUT (FORMAT csv, HEADER)",
    "SELECT relname, pg_get_expr(adbin, adrelid) FROM pg_class c JOIN pg_attrdef d ON d.adrelid = c.oid",
    "SET work_mem = '64kB'; SHOW work_mem; RESET ALL",
    "SELECT rank() OVER w, ntile(3) OVER w, lag(a, 2, 0) OVER w FROM t WINDOW w AS (ORDER BY b, a)",
    "SELECT * FROM t FOR UPDATE SKIP LOCKED",
];

const TOKENS: &[&str] = &[
    "NULL",
    "0",
    "-1",
    "2147483648",
    "9223372036854775807",
    "1e308",
    "'x'",
    "''",
    "(",
    ")",
    ",",
    "*",
    "AND",
    "NOT",
    "IN",
    "(SELECT 1)",
    "ARRAY[1]",
    "$1",
    "::int",
    "::numeric(5,2)",
    "::date",
    "::jsonb",
    "||",
    "+",
    "/",
    "%",
    "a",
    "b",
    "t",
    "t.*",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "OVER ()",
    "DISTINCT",
    "UNION ALL",
    "LATERAL",
    "row(1,2)",
    "interval '1 day'",
    "'infinity'::timestamp",
    "'NaN'::float8",
    "repeat('a', 1000)",
    "\"",
    "/*",
    "--",
    "E'\\u00e9'",
    "U&'\\0061'",
    ";",
    "CASE",
    "END",
    "IS",
    "BETWEEN",
    "LIKE",
    "COLLATE \"C\"",
    "AT TIME ZONE 'UTC'",
    "FILTER (WHERE true)",
    "[1]",
    "[1:2]",
];

/// Panics that were seen, each once.
pub struct Found {
    seen: Arc<Mutex<BTreeMap<String, String>>>,
    input: Arc<Mutex<String>>,
}

impl Found {
    /// Watches for panics from now on, printing none of them at once.
    pub fn watch() -> Found {
        let seen: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let input: Arc<Mutex<String>> = Arc::default();
        let (to, of) = (Arc::clone(&seen), Arc::clone(&input));
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let text = info.payload_as_str().unwrap_or("").to_owned();
            let input = of.lock().map(|i| i.clone()).unwrap_or_default();
            if let Ok(mut seen) = to.lock() {
                seen.entry(place).or_insert_with(|| format!("{text}\n    input: {input}"));
            }
        }));
        Found { seen, input }
    }

    /// What is being tried, to be told with a panic.
    pub fn note(&self, input: &str) {
        if let Ok(mut slot) = self.input.lock() {
            input.clone_into(&mut slot);
        }
    }

    /// How many distinct panics.
    #[expect(clippy::len_without_is_empty, reason = "a count to print")]
    pub fn len(&self) -> usize {
        self.seen.lock().map_or(0, |s| s.len())
    }

    /// Prints them.
    pub fn print(&self) {
        if let Ok(seen) = self.seen.lock() {
            for (place, text) in seen.iter() {
                println!("{place}: {text}");
            }
        }
    }
}

fn mutate(rng: &mut SmallRng, text: &str) -> String {
    let mut words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    for _ in 0..rng.random_range(1..5) {
        if words.is_empty() {
            words.push(String::new());
        }
        let at = rng.random_range(0..words.len());
        match rng.random_range(0..6) {
            0 => {
                words.remove(at);
            }
            1 => {
                let word = words[at].clone();
                words.insert(at, word);
            }
            2 => {
                let other = rng.random_range(0..words.len());
                words.swap(at, other);
            }
            3 | 4 => {
                let token = TOKENS[rng.random_range(0..TOKENS.len())];
                words[at] = format!("{token} ");
            }
            _ => {
                let mut chars: Vec<char> = words[at].chars().collect();
                if !chars.is_empty() {
                    let i = rng.random_range(0..chars.len());
                    chars[i] = char::from(rng.random_range(1..127u8));
                }
                words[at] = chars.into_iter().collect();
            }
        }
    }
    words.concat()
}

/// Mutated statements through a session; how many.
///
/// # Errors
/// When the database itself cannot be made.
pub fn sql(rng: &mut SmallRng, end: Instant, found: &mut Found) -> Result<u64> {
    let disk = prepared(1)?;
    let server = Server::open(disk)?;
    let mut runs = 0;
    while Instant::now() < end {
        let mut session = server.session()?;
        let mut quiet = Quiet;
        session.simple_query("DROP TABLE IF EXISTS t", &mut quiet)?;
        session
            .simple_query("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric)", &mut quiet)?;
        session.simple_query(
            "INSERT INTO t SELECT g, chr(97 + g % 5), g * 1.5 FROM generate_series(1, 40) g",
            &mut quiet,
        )?;
        // As a default, so that RESET ALL leaves it.
        session.state().settings.borrow_mut().set_default(
            "statement_timeout",
            "300ms",
            base::settings::Source::Client,
        )?;
        for _ in 0..200 {
            let base = CORPUS[rng.random_range(0..CORPUS.len())];
            let text = mutate(rng, base);
            found.note(&text);
            runs += 1;
            let lived = catch_unwind(AssertUnwindSafe(|| {
                let _ = session.simple_query(&text, &mut quiet);
            }));
            if lived.is_err() || Instant::now() > end {
                break;
            }
            if session.transaction_status() != b'I' {
                let _ = session.simple_query("ROLLBACK", &mut quiet);
            }
        }
        // A session that panicked is not closed in order.
        let _ = catch_unwind(AssertUnwindSafe(|| session.close()));
    }
    Ok(runs)
}

/// Mutated protocol bytes to a listening server; how many connections.
///
/// # Errors
/// When the server cannot be started.
pub fn protocol(rng: &mut SmallRng, end: Instant, found: &mut Found) -> Result<u64> {
    let disk = prepared(1)?;
    let running = Server::open(disk)?;
    let listener = server::Listener::bind("127.0.0.1", 0)?;
    let server = server::Server::start(listener, Arc::clone(&running.cluster), server::Tls::off())?;
    let address = server.addresses()[0];
    let mut runs = 0;
    while Instant::now() < end {
        let bytes = conversation(rng);
        found.note(&format!("{bytes:?}"));
        runs += 1;
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
        let _ = stream.write_all(&bytes);
        let mut answer = [0; 4096];
        let _ = stream.read(&mut answer);
        // Is anybody still at home?
        if runs % 100 == 0 {
            let mut session = running.session()?;
            session.simple_query("SELECT 1", &mut Quiet)?;
            session.close();
        }
    }
    server.stop();
    Ok(runs)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&u32::try_from(body.len() + 4).unwrap_or(4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// A startup and a few messages, damaged.
fn conversation(rng: &mut SmallRng) -> Vec<u8> {
    let mut startup = Vec::from(196_608u32.to_be_bytes());
    startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
    let mut bytes = Vec::from(u32::try_from(startup.len() + 4).unwrap_or(8).to_be_bytes());
    bytes.extend_from_slice(&startup);
    for _ in 0..rng.random_range(1..8) {
        let next = match rng.random_range(0..8) {
            0 => message(b'Q', b"SELECT 1; SELECT 'x'::int\0"),
            1 => message(b'P', b"s\0SELECT $1::int + 1\0\0\x01\0\0\0\x17"),
            2 => message(b'B', b"\0s\0\0\x01\0\0\0\x01\0\0\0\x015\0\x01\0\x01"),
            3 => message(b'D', b"Ss\0"),
            4 => message(b'E', b"\0\0\0\0\0"),
            5 => message(b'S', b""),
            6 => message(b'C', b"Ps\0"),
            _ => message(b'Q', b"COPY branches FROM STDIN\0"),
        };
        bytes.extend_from_slice(&next);
    }
    for _ in 0..rng.random_range(0..6) {
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..3) {
            0 => bytes[at] = rng.random(),
            1 => {
                bytes.remove(at);
            }
            _ => bytes.insert(at, rng.random()),
        }
    }
    bytes
}

/// Flips bytes of some files whose path `wanted` accepts.
fn damage(disk: &SimDisk, rng: &mut SmallRng, folders: &[&str]) -> String {
    let mut told = String::new();
    for _ in 0..rng.random_range(1..4) {
        let folder = folders[rng.random_range(0..folders.len())];
        let Ok(files) = disk.list(folder) else { continue };
        if files.is_empty() {
            continue;
        }
        let path = format!("{folder}/{}", files[rng.random_range(0..files.len())]);
        let Ok(file) = disk.open(&path, OpenMode::Existing) else { continue };
        let Ok(len) = file.len() else { continue };
        if len == 0 {
            continue;
        }
        for _ in 0..rng.random_range(1..10) {
            let at = rng.random_range(0..len);
            let byte: u8 = rng.random();
            let _ = file.write_at(&[byte], at);
            told.push_str(&format!("{path}@{at}={byte} "));
        }
        let _ = file.sync_data();
    }
    told
}

/// Opens a damaged folder, asks it everything, and closes it.
fn visit(disk: Arc<SimDisk>) {
    let as_disk: Arc<dyn Disk> = disk;
    let Ok(server) = Server::open(as_disk) else { return };
    if let Ok(mut session) = server.session() {
        for text in [
            "SELECT sum(balance), count(*) FROM accounts",
            "SELECT * FROM accounts WHERE aid = 17",
            "SELECT count(*) FROM accounts WHERE filler > 'a'",
            "UPDATE accounts SET balance = balance + 1 WHERE aid < 20",
            "INSERT INTO history VALUES (1, 2, 3, 4)",
            "VACUUM accounts",
            "SELECT relname FROM pg_class",
        ] {
            let _ = session.simple_query(text, &mut Quiet);
        }
        session.close();
    }
    let _ = sql::check::check(&server.engine);
    server.engine.stop_at_once();
}

/// Damaged pages under an open database; how many folders.
///
/// # Errors
/// When the database itself cannot be made.
pub fn pages(rng: &mut SmallRng, end: Instant, found: &mut Found) -> Result<u64> {
    let start = prepared(1)?;
    let mut runs = 0;
    while Instant::now() < end {
        let disk = start.snapshot(rng.random());
        found.note(&damage(&disk, rng, &["base/5", "base/5", "global", "xact"]));
        runs += 1;
        let _ = catch_unwind(AssertUnwindSafe(|| visit(disk)));
    }
    Ok(runs)
}

/// Damaged WAL before recovery; how many folders.
///
/// # Errors
/// When the database itself cannot be made.
pub fn wal(rng: &mut SmallRng, end: Instant, found: &mut Found) -> Result<u64> {
    let start = prepared(1)?;
    {
        // Work that only the WAL knows of.
        let as_disk: Arc<dyn Disk> = start.clone();
        let server = Server::open(as_disk)?;
        let mut session = server.session()?;
        for i in 0..200 {
            let text = format!(
                "UPDATE accounts SET balance = {i}, filler = 'f{i}' WHERE aid = {}",
                i % 190 + 1
            );
            session.simple_query(&text, &mut Quiet)?;
        }
        session.close();
        server.engine.stop_at_once();
    }
    let mut runs = 0;
    while Instant::now() < end {
        let disk = start.after_crash(rng.random());
        found.note(&damage(&disk, rng, &["wal"]));
        runs += 1;
        let _ = catch_unwind(AssertUnwindSafe(|| visit(disk)));
    }
    Ok(runs)
}
