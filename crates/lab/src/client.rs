//! A small blocking client of protocol 3.
//!
//! Everything a server says is kept in the order in which it was said ([`Event`]), so that a
//! comparison of two servers sees notices, errors and rows where they stood. Messages are encoded
//! by hand: a test of the wire should not share its codec with the server it tests.

mod message;
mod password;
mod stream;

pub use message::{Column, Event, Outcome, Report};
use message::{Encoder, decode};

use crate::Result;
use crate::tls::Tls;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use stream::Stream;

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, for a server that asks.
    pub password: Option<String>,
    /// Further startup parameters.
    pub options: Vec<(String, String)>,
    /// How it is encrypted.
    pub tls: Tls,
}

impl Target {
    /// Reads `postgres://[user[:password]@]host[:port][/database][?sslmode=…&sslrootcert=…]`; a password is looked
    /// for in `PGPASSWORD` too.
    pub fn parse(url: &str) -> Result<Target> {
        let wrong =
            || "--server is not of the form postgres://[user[:password]@]host[:port][/database]";
        let (tls, url) = Tls::take(url)?;
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or_else(wrong)?;
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = place.rsplit_once('@').unwrap_or(("postgres", place));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password))),
            None => (login, std::env::var("PGPASSWORD").ok()),
        };
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "5432"));
        let database = database.split('?').next().unwrap_or("");
        let text = |given: &str, default: &str| {
            if given.is_empty() { default.to_owned() } else { given.to_owned() }
        };
        Ok(Target {
            host: text(host, "127.0.0.1"),
            port: port.parse().map_err(|_| wrong())?,
            user: user.to_owned(),
            database: text(database, user),
            password,
            options: Vec::new(),
            tls,
        })
    }
}

/// A part of an URL without its `%40`.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    input: Vec<u8>,
    read_from: usize,
    target: Target,
    /// The backend's process number, for cancel requests and `pg_stat_activity`.
    pub pid: i32,
    secret: i32,
    /// What ParameterStatus messages said last.
    pub parameters: BTreeMap<String, String>,
    /// Transaction status of the last ReadyForQuery: `I`, `T` or `E`.
    pub status: u8,
    /// The Outcome being read.
    pending: Outcome,
}

/// A raw message: its type byte and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Type byte.
    pub tag: u8,
    /// Body without the length.
    pub body: Vec<u8>,
}

impl Client {
    /// Connects and waits for the first ReadyForQuery.
    pub fn connect(target: &Target) -> Result<Client> {
        let mut client = Client {
            stream: Stream::connect(target)?,
            input: Vec::new(),
            read_from: 0,
            target: target.clone(),
            pid: 0,
            secret: 0,
            parameters: BTreeMap::new(),
            status: 0,
            pending: Outcome::default(),
        };
        let mut startup = Encoder::default();
        startup.i32(196_608);
        for (name, value) in [("user", &target.user), ("database", &target.database)] {
            startup.string(name).string(value);
        }
        for (name, value) in &target.options {
            startup.string(name).string(value);
        }
        startup.byte(0);
        client.stream.write_all(&startup.untagged())?;
        let mut exchange = password::Exchange::default();
        loop {
            let raw = client.read_raw()?;
            match raw.tag {
                b'R' => exchange.answer(&mut client, &raw)?,
                b'K' => (client.pid, client.secret) = (raw.i32_at(0), raw.i32_at(4)),
                b'E' => return Err(Box::new(Report::parse(&raw.body))),
                b'Z' => {
                    client.status = raw.body.first().copied().unwrap_or(0);
                    return Ok(client);
                }
                _ => client.aside(&raw),
            }
        }
    }

    /// Another connection to the same place.
    pub fn again(&self) -> Result<Client> {
        Client::connect(&self.target)
    }

    /// Runs a simple query, which may hold many statements; COPY FROM STDIN gets no data.
    pub fn simple(&mut self, sql: &str) -> Result<Outcome> {
        self.simple_with(sql, b"")
    }

    /// Runs a simple query; a COPY FROM STDIN in it gets `data`.
    pub fn simple_with(&mut self, sql: &str, data: &[u8]) -> Result<Outcome> {
        self.send_simple(sql)?;
        self.finish_with(data)
    }

    /// Runs a simple query and makes an error of the server's an error here.
    pub fn run(&mut self, sql: &str) -> Result<Outcome> {
        let outcome = self.simple(sql)?;
        match outcome.error() {
            Some(report) => Err(format!("{report}\nin: {sql}").into()),
            None => Ok(outcome),
        }
    }

    /// The first value of the first row, as text.
    pub fn value(&mut self, sql: &str) -> Result<String> {
        let outcome = self.run(sql)?;
        outcome.value().ok_or_else(|| format!("no value from: {sql}").into())
    }

    /// Parses, binds and executes one statement with text parameters.
    pub fn query(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<Outcome> {
        let values: Vec<Option<&[u8]>> = parameters.iter().map(|p| p.map(str::as_bytes)).collect();
        let mut batch = Batch::default();
        batch.parse("", sql, &[]).bind("", "", &[], &values, &[]).describe_portal("");
        batch.execute("", 0).sync();
        self.send(&batch)?;
        self.finish()
    }

    /// Sends a simple query without waiting.
    pub fn send_simple(&mut self, sql: &str) -> Result<()> {
        let mut e = Encoder::default();
        e.string(sql);
        self.stream.write_all(&e.tagged(b'Q'))?;
        Ok(())
    }

    /// Sends messages of the extended protocol without waiting.
    pub fn send(&mut self, batch: &Batch) -> Result<()> {
        self.send_bytes(&batch.0)
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes)?;
        Ok(())
    }

    /// Reads up to the next ReadyForQuery.
    pub fn finish(&mut self) -> Result<Outcome> {
        self.finish_with(b"")
    }

    fn finish_with(&mut self, data: &[u8]) -> Result<Outcome> {
        loop {
            let raw = self.read_raw()?;
            if let Some(outcome) = self.take(raw, data)? {
                return Ok(outcome);
            }
        }
    }

    /// Reads what comes within `patience`: the outcome if it is complete by then.
    pub fn finish_within(&mut self, patience: Duration) -> Result<Option<Outcome>> {
        let end = Instant::now() + patience;
        loop {
            match self.read_raw_until(Some(end))? {
                None => return Ok(None),
                Some(raw) => {
                    if let Some(outcome) = self.take(raw, b"")? {
                        return Ok(Some(outcome));
                    }
                }
            }
        }
    }

    fn take(&mut self, raw: Raw, data: &[u8]) -> Result<Option<Outcome>> {
        match raw.tag {
            b'Z' => {
                self.status = raw.body.first().copied().unwrap_or(0);
                self.pending.status = self.status;
                return Ok(Some(std::mem::take(&mut self.pending)));
            }
            b'G' => {
                for chunk in data.chunks(1 << 16) {
                    let mut e = Encoder::default();
                    e.bytes(chunk);
                    self.stream.write_all(&e.tagged(b'd'))?;
                }
                self.stream.write_all(&Encoder::default().tagged(b'c'))?;
            }
            b'S' | b'A' => self.aside(&raw),
            b'E' => {
                let report = Report::parse(&raw.body);
                let fatal = report.is_fatal();
                self.pending.events.push(Event::Error(report));
                if fatal {
                    return Ok(Some(std::mem::take(&mut self.pending)));
                }
            }
            _ => {
                if let Some(event) = decode(&raw, &mut self.pending)? {
                    self.pending.events.push(event);
                }
            }
        }
        Ok(None)
    }

    fn aside(&mut self, raw: &Raw) {
        if raw.tag == b'S' {
            let mut parts = raw.body.split(|b| *b == 0).map(|p| String::from_utf8_lossy(p));
            if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                self.parameters.insert(name.into_owned(), value.into_owned());
            }
        }
    }

    /// Reads one message.
    pub fn read_raw(&mut self) -> Result<Raw> {
        self.read_raw_until(None)?.ok_or_else(|| "no message".into())
    }

    /// Reads one message, or None if `end` comes first.
    pub fn read_raw_until(&mut self, end: Option<Instant>) -> Result<Option<Raw>> {
        loop {
            let have = &self.input[self.read_from..];
            if let Some(head) = have.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if !(4..1 << 30).contains(&length) {
                    return Err(format!("a message of {length} bytes from the server").into());
                }
                if have.len() > length {
                    let raw = Raw { tag: head[0], body: have[5..=length].to_vec() };
                    self.read_from += length + 1;
                    return Ok(Some(raw));
                }
            }
            self.input.drain(..self.read_from);
            self.read_from = 0;
            let timeout = match end {
                None => None,
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    Some(left)
                }
            };
            self.stream.set_read_timeout(timeout)?;
            let old = self.input.len();
            self.input.resize(old + (1 << 16), 0);
            let got = self.stream.read(&mut self.input[old..]);
            self.input.truncate(old + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Asks the server to cancel what this connection is doing.
    pub fn cancel(&self) -> Result<()> {
        let address = (self.target.host.as_str(), self.target.port);
        let mut stream = TcpStream::connect(address)?;
        let mut e = Encoder::default();
        e.i32(80_877_102).i32(self.pid).i32(self.secret);
        stream.write_all(&e.untagged())?;
        let _ = stream.read(&mut [0; 1]);
        Ok(())
    }

    /// Closes the connection politely.
    pub fn close(mut self) {
        let _ = self.stream.write_all(&Encoder::default().tagged(b'X'));
    }
}

impl Raw {
    fn i32_at(&self, at: usize) -> i32 {
        self.body.get(at..at + 4).map_or(0, |b| i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
}

/// Messages of the extended protocol, to be sent together.
#[derive(Clone, Debug, Default)]
pub struct Batch(Vec<u8>);

impl Batch {
    fn put(&mut self, tag: u8, e: &Encoder) -> &mut Self {
        self.0.extend(e.tagged(tag));
        self
    }

    /// Parse.
    pub fn parse(&mut self, name: &str, sql: &str, types: &[u32]) -> &mut Self {
        let mut e = Encoder::default();
        e.string(name).string(sql).i16(types.len());
        for oid in types {
            e.i32(oid.cast_signed());
        }
        self.put(b'P', &e)
    }

    /// Bind; formats: none (all text), one for all, or one each (0 text, 1 binary).
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        formats: &[u8],
        values: &[Option<&[u8]>],
        result_formats: &[u8],
    ) -> &mut Self {
        let mut e = Encoder::default();
        e.string(portal).string(statement).i16(formats.len());
        for format in formats {
            e.i16(usize::from(*format));
        }
        e.i16(values.len());
        for value in values {
            match value {
                None => e.i32(-1),
                Some(v) => e.i32(i32::try_from(v.len()).unwrap_or(i32::MAX)).bytes(v),
            };
        }
        e.i16(result_formats.len());
        for format in result_formats {
            e.i16(usize::from(*format));
        }
        self.put(b'B', &e)
    }

    /// Describe a portal.
    pub fn describe_portal(&mut self, name: &str) -> &mut Self {
        let mut e = Encoder::default();
        e.byte(b'P').string(name);
        self.put(b'D', &e)
    }

    /// Describe a statement.
    pub fn describe_statement(&mut self, name: &str) -> &mut Self {
        let mut e = Encoder::default();
        e.byte(b'S').string(name);
        self.put(b'D', &e)
    }

    /// Execute up to `rows` rows, 0 for all.
    pub fn execute(&mut self, portal: &str, rows: i32) -> &mut Self {
        let mut e = Encoder::default();
        e.string(portal).i32(rows);
        self.put(b'E', &e)
    }

    /// Close a statement.
    pub fn close_statement(&mut self, name: &str) -> &mut Self {
        let mut e = Encoder::default();
        e.byte(b'S').string(name);
        self.put(b'C', &e)
    }

    /// Sync.
    pub fn sync(&mut self) -> &mut Self {
        self.put(b'S', &Encoder::default())
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Flush.
    pub fn flush(&mut self) -> &mut Self {
        self.put(b'H', &Encoder::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let target = Target::parse("postgres://a:p%40%3a@h:1/d?x=y").expect("an URL");
        let said =
            (target.user.as_str(), target.host.as_str(), target.port, target.database.as_str());
        assert_eq!((said, target.password.as_deref()), (("a", "h", 1, "d"), Some("p@:")));
        let wrong = Target::parse("a:secret@h").expect_err("no scheme").to_string();
        assert!(!wrong.contains("secret"), "{wrong}");
        let target = Target::parse("postgres://h?sslmode=require").expect("an URL");
        assert_eq!((target.host.as_str(), target.tls.mode), ("h", crate::tls::Mode::Require));
    }
}
