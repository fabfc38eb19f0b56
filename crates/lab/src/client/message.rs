//! Messages to bytes and back.

use super::Raw;
use crate::Result;
use std::collections::BTreeMap;
use std::fmt;

/// Builds a message's body.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn byte(&mut self, b: u8) -> &mut Self {
        self.0.push(b);
        self
    }

    pub(super) fn bytes(&mut self, b: &[u8]) -> &mut Self {
        self.0.extend_from_slice(b);
        self
    }

    pub(super) fn string(&mut self, s: &str) -> &mut Self {
        self.bytes(s.as_bytes()).byte(0)
    }

    pub(super) fn i16(&mut self, n: usize) -> &mut Self {
        self.bytes(&u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes())
    }

    pub(super) fn i32(&mut self, n: i32) -> &mut Self {
        self.bytes(&n.to_be_bytes())
    }

    fn length(&self) -> [u8; 4] {
        u32::try_from(self.0.len() + 4).unwrap_or(u32::MAX).to_be_bytes()
    }

    pub(super) fn untagged(&self) -> Vec<u8> {
        [&self.length()[..], &self.0].concat()
    }

    pub(super) fn tagged(&self, tag: u8) -> Vec<u8> {
        [&[tag][..], &self.length()[..], &self.0].concat()
    }
}

/// An ErrorResponse or NoticeResponse: its fields by their letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report(pub BTreeMap<char, String>);

impl Report {
    pub(super) fn parse(body: &[u8]) -> Report {
        let fields = body.split(|b| *b == 0).filter_map(|field| {
            let (letter, text) = field.split_first()?;
            Some((char::from(*letter), String::from_utf8_lossy(text).into_owned()))
        });
        Report(fields.collect())
    }

    /// A field's text, empty if it is not there.
    pub fn field(&self, letter: char) -> &str {
        self.0.get(&letter).map_or("", String::as_str)
    }

    /// ERROR, FATAL, NOTICE …
    pub fn severity(&self) -> &str {
        self.field('S')
    }

    /// The session is over.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity(), "FATAL" | "PANIC")
    }

    /// The five-character code.
    pub fn sqlstate(&self) -> &str {
        self.field('C')
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        self.field('M')
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity(), self.sqlstate(), self.message())?;
        for (letter, name) in [('D', "DETAIL"), ('H', "HINT")] {
            if let Some(text) = self.0.get(&letter) {
                write!(f, "\n{name}: {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

/// A column of a RowDescription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type OID.
    pub type_oid: u32,
    /// Type modifier.
    pub type_modifier: i32,
    /// 0 text, 1 binary.
    pub format: u16,
}

/// Something the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// RowDescription.
    Columns(Vec<Column>),
    /// DataRow.
    Row(Vec<Option<Vec<u8>>>),
    /// CommandComplete.
    Tag(String),
    /// EmptyQueryResponse.
    Empty,
    /// PortalSuspended.
    Suspended,
    /// NoticeResponse.
    Notice(Report),
    /// ErrorResponse.
    Error(Report),
    /// All CopyData of one COPY TO STDOUT.
    Copied(Vec<u8>),
    /// ParameterDescription.
    Parameters(Vec<u32>),
    /// Any other message, by its type byte.
    Other(u8),
}

/// Everything said up to a ReadyForQuery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In the order said.
    pub events: Vec<Event>,
    /// Transaction status then.
    pub status: u8,
}

impl Outcome {
    /// The first error.
    pub fn error(&self) -> Option<&Report> {
        self.events.iter().find_map(|e| if let Event::Error(r) = e { Some(r) } else { None })
    }

    /// What ended the session, if something did: it may follow the error of a statement.
    pub fn fatal(&self) -> Option<&Report> {
        self.events.iter().find_map(|e| match e {
            Event::Error(report) if report.is_fatal() => Some(report),
            _ => None,
        })
    }

    /// The first error's SQLSTATE, empty without one.
    pub fn sqlstate(&self) -> &str {
        self.error().map_or("", Report::sqlstate)
    }

    /// All rows, as text; NULL is `None`.
    pub fn rows(&self) -> Vec<Vec<Option<String>>> {
        let text = |v: &Option<Vec<u8>>| v.as_ref().map(|v| String::from_utf8_lossy(v).into());
        let row = |e: &Event| match e {
            Event::Row(values) => Some(values.iter().map(text).collect()),
            _ => None,
        };
        self.events.iter().filter_map(row).collect()
    }

    /// The first value of the first row.
    pub fn value(&self) -> Option<String> {
        self.rows().first()?.first()?.clone()
    }

    /// The command tags.
    pub fn tags(&self) -> Vec<&str> {
        let mut tags = Vec::new();
        for event in &self.events {
            if let Event::Tag(tag) = event {
                tags.push(tag.as_str());
            }
        }
        tags
    }

    /// All data of COPY TO STDOUT.
    pub fn copied(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for event in &self.events {
            if let Event::Copied(data) = event {
                all.extend_from_slice(data);
            }
        }
        all
    }
}

struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or("a message ends early")?;
        self.0 = rest;
        Ok(head)
    }

    fn u16(&mut self) -> Result<u16> {
        let b = self.bytes(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    fn i32(&mut self) -> Result<i32> {
        let b = self.bytes(4)?;
        Ok(i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn string(&mut self) -> Result<String> {
        let end = self.0.iter().position(|b| *b == 0).ok_or("a string without an end")?;
        let text = String::from_utf8_lossy(self.bytes(end)?).into_owned();
        self.bytes(1)?;
        Ok(text)
    }
}

/// The event a message stands for; None if it says nothing or was added to the one before.
pub(super) fn decode(raw: &Raw, pending: &mut Outcome) -> Result<Option<Event>> {
    let mut d = Decoder(&raw.body);
    Ok(Some(match raw.tag {
        b'T' => {
            let count = d.u16()?;
            let mut columns = Vec::with_capacity(count.into());
            for _ in 0..count {
                let name = d.string()?;
                d.bytes(6)?;
                let type_oid = d.i32()?.cast_unsigned();
                d.bytes(2)?;
                let (type_modifier, format) = (d.i32()?, d.u16()?);
                columns.push(Column { name, type_oid, type_modifier, format });
            }
            Event::Columns(columns)
        }
        b'D' => {
            let count = d.u16()?;
            let mut values = Vec::with_capacity(count.into());
            for _ in 0..count {
                let length = d.i32()?;
                values.push(match usize::try_from(length) {
                    Ok(n) => Some(d.bytes(n)?.to_vec()),
                    Err(_) => None,
                });
            }
            Event::Row(values)
        }
        b'C' => Event::Tag(d.string()?),
        b'I' => Event::Empty,
        b's' => Event::Suspended,
        b'N' => Event::Notice(Report::parse(&raw.body)),
        b't' => {
            let count = d.u16()?;
            let oids: Result<Vec<u32>> = (0..count).map(|_| Ok(d.i32()?.cast_unsigned())).collect();
            Event::Parameters(oids?)
        }
        b'H' => Event::Copied(Vec::new()),
        b'd' => {
            if let Some(Event::Copied(data)) = pending.events.last_mut() {
                data.extend_from_slice(&raw.body);
            }
            return Ok(None);
        }
        b'1' | b'2' | b'3' | b'n' | b'c' => return Ok(None),
        other => Event::Other(other),
    }))
}
