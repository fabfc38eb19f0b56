//! Bytes that are no protocol and SQL that is no SQL: errors, never the server's end.

use crate::support::server;
use lab::client::{Batch, Client, Target};
use lab::servers::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A small generator, so that a seed repeats a run. `EBB_FUZZ_SEED` and `EBB_FUZZ_SECONDS` set
/// seed and length.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let seed = std::env::var("EBB_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
        println!("seed {seed}");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

fn until() -> Instant {
    let seconds = std::env::var("EBB_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    Instant::now() + Duration::from_secs(seconds)
}

fn unharmed(server: &Server) {
    let mut client = server.connect().expect("the server still serves");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "100");
    let log = server.log();
    assert!(!log.contains("panicked"), "a panic:\n{log}");
}

fn prepare(server: &Server) {
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, d timestamp)").unwrap();
    client
        .run("INSERT INTO t SELECT g, 'v' || g, g, '2024-01-01' FROM generate_series(1, 100) g")
        .unwrap();
}

#[test]
fn protocol_bytes() {
    let server = server(&[]);
    prepare(&server);
    let mut random = Random::new();
    let end = until();
    while Instant::now() < end {
        let mut socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let mut bytes = Vec::new();
        if random.below(4) > 0 {
            let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
            bytes.extend((u32::try_from(body.len()).unwrap() + 4).to_be_bytes());
            bytes.extend(body);
        }
        for _ in 0..random.below(6) {
            bytes.extend(message(&mut random));
        }
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.byte();
            }
        }
        let _ = socket.write_all(&bytes);
        let _ = socket.read(&mut [0; 4096]);
    }
    unharmed(&server);
}

fn message(random: &mut Random) -> Vec<u8> {
    let mut batch = Batch::default();
    match random.below(8) {
        0 => drop(batch.parse("s", "SELECT $1::int, * FROM t", &[23])),
        1 => drop(batch.bind("p", "s", &[1], &[Some(&[0, 0, 0, 7])], &[1])),
        2 => drop(batch.describe_portal("p")),
        3 => drop(batch.execute("p", 3)),
        4 => drop(batch.sync()),
        _ => {
            let tags = b"QPBDESCHfdcXpF\0\xff";
            let mut raw = vec![tags[random.below(tags.len())]];
            let length = random.below(40);
            let claimed = if random.below(3) == 0 { random.below(1 << 20) } else { length + 4 };
            raw.extend(u32::try_from(claimed).unwrap_or(0).to_be_bytes());
            raw.extend((0..length).map(|_| random.byte()));
            return raw;
        }
    }
    batch.bytes().to_vec()
}

const SEEDS: &[&str] = &[
    "SELECT id, v, n * 2 FROM t WHERE id BETWEEN 1 AND 5 ORDER BY n DESC LIMIT 3",
    "SELECT count(*) FILTER (WHERE id > 3), sum(n) OVER (PARTITION BY v) FROM t GROUP BY v, n HAVING true",
    "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x WHERE a < 9) SELECT * FROM x",
    "SELECT CASE WHEN id = 1 THEN 'a' ELSE v END, ARRAY[1, 2][1], '{\"a\": 1}'::jsonb -> 'a' FROM t",
    "SELECT '2024-01-31'::date + interval '1 month', extract(year FROM d), to_char(n, '999') FROM t",
    "SELECT a.id FROM t a LEFT JOIN LATERAL (SELECT * FROM t b WHERE b.id = a.id) s ON true",
    "SELECT substring(v FROM 2 FOR 3), regexp_replace(v, '[0-9]+', 'x', 'g'), lpad(v, 10, '*') FROM t",
    "EXPLAIN SELECT * FROM t WHERE id = ANY (ARRAY[1, 2]) UNION SELECT * FROM t EXCEPT SELECT * FROM t",
    "SELECT 1e400::numeric, 12345678901234567890 % 7, -2147483648 / -1, 1.5::int2, power(2, 100)",
    "SELECT generate_series(1, 5), unnest('{1,2,3}'::int[]), repeat('x', 10), chr(65), 'a' LIKE '%'",
];

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "t",
    "WHERE",
    "(",
    ")",
    ",",
    "NULL",
    "1",
    "-1",
    "'x'",
    "::",
    "int",
    "text",
    "[",
    "]",
    "*",
    "ORDER BY",
    "GROUP BY",
    "LIMIT",
    "0",
    "9223372036854775808",
    "'",
    "\"",
    "$1",
    "--",
    "/*",
    "numeric",
    "interval",
    "JOIN",
    "ON",
    "IN",
    "AND",
    "NOT",
    "OVER",
    "DISTINCT",
    "AS",
    "1e999",
    ".",
];

#[test]
fn sql_text() {
    let server = server(&[("statement_timeout", "1s")]);
    prepare(&server);
    let target: Target = server.target();
    let mut client = Client::connect(&target).unwrap();
    let mut random = Random::new();
    let end = until();
    while Instant::now() < end {
        let sql = mutate(&mut random);
        // Read only, so that the table can be counted afterwards.
        let wrapped = client.simple("BEGIN READ ONLY").and_then(|_| {
            let outcome = client.simple(&sql)?;
            client.simple("ROLLBACK")?;
            Ok(outcome)
        });
        match wrapped {
            Ok(outcome) => {
                assert!(!outcome.sqlstate().starts_with("XX"), "{sql}\n{:?}", outcome.error());
            }
            Err(e) => panic!("{sql}\n{e}\n{}", server.log()),
        }
    }
    unharmed(&server);
}

fn mutate(random: &mut Random) -> String {
    let mut words: Vec<&str> = SEEDS[random.below(SEEDS.len())].split(' ').collect();
    for _ in 0..=random.below(4) {
        let at = random.below(words.len());
        match random.below(4) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, WORDS[random.below(WORDS.len())]),
            2 => words[at] = WORDS[random.below(WORDS.len())],
            _ => {
                let other = random.below(words.len());
                words.swap(at, other);
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.join(" ")
}
