//! COPY's input, cut into lines and fields.
//!
//! # Invariants
//! A line is borrowed from the input's buffer where it needs no change: no byte of a plain field is copied
//! before it is turned into a value.

use super::options::{CopyOptions, Format};
use base::encoding::Encoding;
use base::{Result, SqlError, SqlState, bail};
use memchr::{memchr, memchr2};
use std::io::Read;

/// Where the data comes from.
pub enum Input<'a> {
    /// The client.
    Client(&'a mut dyn crate::client::Client),
    /// A file on the server.
    File(std::fs::File),
}

/// How lines end; the first one tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineEnd {
    Unknown,
    Newline,
    Return,
    Both,
}

/// What stands in a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A value.
    Value,
    /// The NULL marker.
    Null,
    /// The DEFAULT marker.
    Default,
}

/// A field of the present line.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    start: usize,
    end: usize,
    /// What stands in it.
    pub mark: Mark,
    /// CSV: it was quoted, so that it is no marker.
    pub quoted: bool,
}

/// The reader.
pub struct Lines<'a> {
    input: Input<'a>,
    buffer: Vec<u8>,
    piece: Vec<u8>,
    at: usize,
    eof: bool,
    ended: bool,
    line_end: LineEnd,
    /// The present line within `buffer`.
    line: (usize, usize),
    /// Where fields lie if they had to be changed.
    scratch: Vec<u8>,
    in_scratch: bool,
    fields: Vec<Field>,
    /// The number of the present line, from 1.
    pub number: u64,
    /// The present line is whole and may be shown.
    pub valid: bool,
    /// Bytes read so far.
    pub bytes: u64,
}

/// How much of a file is read at a time.
const FILE_PIECE: usize = 1 << 18;

impl<'a> Lines<'a> {
    /// Over `input`.
    pub fn new(input: Input<'a>) -> Lines<'a> {
        Lines {
            input,
            buffer: Vec::new(),
            piece: Vec::new(),
            at: 0,
            eof: false,
            ended: false,
            line_end: LineEnd::Unknown,
            line: (0, 0),
            scratch: Vec::new(),
            in_scratch: false,
            fields: Vec::new(),
            number: 0,
            valid: false,
            bytes: 0,
        }
    }

    /// The data is the client's.
    fn from_client(&self) -> bool {
        matches!(self.input, Input::Client(_))
    }

    /// The client, for notices.
    pub fn client(&mut self) -> Option<&mut dyn crate::client::Client> {
        match &mut self.input {
            Input::Client(client) => Some(&mut **client),
            Input::File(_) => None,
        }
    }

    /// More bytes behind those that are there; false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.eof {
            return Ok(false);
        }
        if self.at > 0 && (self.at == self.buffer.len() || self.at > FILE_PIECE) {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        match &mut self.input {
            Input::Client(client) => {
                if !client.copy_in_read(&mut self.piece)? {
                    self.eof = true;
                    return Ok(false);
                }
                self.bytes += self.piece.len() as u64;
                if self.buffer.is_empty() {
                    std::mem::swap(&mut self.buffer, &mut self.piece);
                } else {
                    self.buffer.extend_from_slice(&self.piece);
                }
            }
            Input::File(file) => {
                let old = self.buffer.len();
                self.buffer.resize(old + FILE_PIECE, 0);
                let n = file
                    .read(&mut self.buffer[old..])
                    .map_err(|e| base::Error::io("could not read from COPY file", e))?;
                self.buffer.truncate(old + n);
                self.bytes += n as u64;
                if n == 0 {
                    self.eof = true;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Reads what the client still sends after the end marker.
    ///
    /// # Errors
    /// The client's.
    pub fn drain(&mut self) -> Result<()> {
        if self.from_client() {
            while self.fill()? {
                self.at = self.buffer.len();
            }
        }
        Ok(())
    }

    /// `n` bytes of binary data, or as many as there are.
    ///
    /// # Errors
    /// The source's.
    pub fn take(&mut self, n: usize) -> Result<&[u8]> {
        while self.buffer.len() - self.at < n {
            if !self.fill()? {
                break;
            }
        }
        let n = n.min(self.buffer.len() - self.at);
        let start = self.at;
        self.at += n;
        Ok(&self.buffer[start..start + n])
    }

    /// The present line's bytes.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.0..self.line.1]
    }

    /// The fields of the present line.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// A field's text. The line was checked to be UTF-8.
    #[inline]
    pub fn text(&self, field: &Field) -> &[u8] {
        let from = if self.in_scratch { &self.scratch } else { &self.buffer };
        &from[field.start..field.end]
    }

    /// Goes to the next line; false at the end of the data.
    ///
    /// # Errors
    /// `22P04`, `22021`; the source's.
    pub fn next_line(&mut self, options: &CopyOptions) -> Result<bool> {
        self.valid = false;
        if self.ended {
            return Ok(false);
        }
        self.number += 1;
        let found =
            if options.format == Format::Csv { self.csv_line(options)? } else { self.text_line()? };
        if !found {
            self.ended = true;
            return Ok(false);
        }
        if let Some(encoding) = options.conversion() {
            self.convert(encoding)?;
        }
        check_utf8(&self.buffer[self.line.0..self.line.1])?;
        self.valid = true;
        Ok(true)
    }

    /// Makes UTF-8 of the line.
    fn convert(&mut self, encoding: &'static Encoding) -> Result<()> {
        let line = &self.buffer[self.line.0..self.line.1];
        if line.is_ascii() {
            return Ok(());
        }
        let mut text = Vec::with_capacity(line.len() * 2);
        encoding.decode(line, &mut text)?;
        // No character is longer in a one-byte encoding than in UTF-8.
        let grown = text.len() - line.len();
        self.buffer.splice(self.line.0..self.line.1, text);
        self.line.1 += grown;
        self.at += grown;
        Ok(())
    }

    fn text_line(&mut self) -> Result<bool> {
        let mut seen = 0;
        // The usual line: a newline, nothing special before it.
        let found = loop {
            match memchr(b'\n', &self.buffer[self.at + seen..]) {
                Some(n) => break Some(self.at + seen + n),
                None => {
                    seen = self.buffer.len() - self.at;
                    if !self.fill()? {
                        break None;
                    }
                }
            }
        };
        if let Some(end) = found {
            let line = &self.buffer[self.at..end];
            let plain = memchr2(b'\\', b'\r', line).is_none();
            if plain && matches!(self.line_end, LineEnd::Newline | LineEnd::Unknown) {
                self.line_end = LineEnd::Newline;
                self.line = (self.at, end);
                self.at = end + 1;
                return Ok(true);
            }
        }
        self.text_line_slowly()
    }

    /// A line with backslashes or carriage returns in it, or the last one.
    fn text_line_slowly(&mut self) -> Result<bool> {
        let mut i = 0;
        loop {
            let Some(c) = self.peek(i)? else {
                if i == 0 {
                    return Ok(false);
                }
                self.line = (self.at, self.at + i);
                self.at += i;
                return Ok(true);
            };
            match c {
                b'\\' => {
                    if self.peek(i + 1)? == Some(b'.') {
                        return self.end_marker(i);
                    }
                    i += 2;
                    // What follows a backslash is data, a newline too.
                    if self.peek(i - 1)?.is_none() {
                        i -= 1;
                    }
                }
                b'\r' | b'\n' => {
                    if let Some(len) = self.line_break(i, c, false)? {
                        self.line = (self.at, self.at + i);
                        self.at += i + len;
                        return Ok(true);
                    }
                    i += 1;
                }
                _ => i += 1,
            }
        }
    }

    /// The byte `i` of the line under way.
    fn peek(&mut self, i: usize) -> Result<Option<u8>> {
        while self.at + i >= self.buffer.len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        Ok(Some(self.buffer[self.at + i]))
    }

    /// `\.` at `i`: alone on its line it is the end.
    fn end_marker(&mut self, i: usize) -> Result<bool> {
        let next = self.peek(i + 2)?;
        if !matches!(next, None | Some(b'\n' | b'\r')) {
            bail!(BAD_COPY_FILE_FORMAT, "end-of-copy marker is not alone on its line");
        }
        if i > 0 {
            bail!(BAD_COPY_FILE_FORMAT, "end-of-copy marker is not alone on its line");
        }
        self.at += 2;
        self.drain()?;
        Ok(false)
    }

    /// A carriage return or newline at `i`: how long the line's end there is, None if it is data.
    fn line_break(&mut self, i: usize, c: u8, csv: bool) -> Result<Option<usize>> {
        if c == b'\r' && matches!(self.line_end, LineEnd::Unknown | LineEnd::Both) {
            if self.peek(i + 1)? == Some(b'\n') {
                self.line_end = LineEnd::Both;
                return Ok(Some(2));
            }
            if self.line_end == LineEnd::Both {
                return Err(literal_return(csv));
            }
            self.line_end = LineEnd::Return;
            return Ok(Some(1));
        }
        match (c, self.line_end) {
            (b'\r', LineEnd::Newline) => Err(literal_return(csv)),
            (b'\r', _) => Ok(Some(1)),
            (_, LineEnd::Both | LineEnd::Return) => Err(literal_newline(csv)),
            (_, LineEnd::Unknown | LineEnd::Newline) => {
                self.line_end = LineEnd::Newline;
                Ok(Some(1))
            }
        }
    }

    fn csv_line(&mut self, options: &CopyOptions) -> Result<bool> {
        let mut i = 0;
        let (mut in_quote, mut escaped) = (false, false);
        loop {
            let Some(c) = self.peek(i)? else {
                if i == 0 {
                    return Ok(false);
                }
                self.line = (self.at, self.at + i);
                self.at += i;
                return Ok(true);
            };
            // When quote and escape are one, it simply toggles.
            if in_quote && c == options.escape && options.escape != options.quote {
                escaped = !escaped;
            }
            if c == options.quote && !escaped {
                in_quote = !in_quote;
            }
            if c != options.escape {
                escaped = false;
            }
            if !in_quote && (c == b'\r' || c == b'\n') {
                if let Some(len) = self.line_break(i, c, true)? {
                    self.line = (self.at, self.at + i);
                    self.at += i + len;
                    return Ok(true);
                }
            } else if in_quote && c == b'\n' {
                self.number += 1;
            }
            i += 1;
        }
    }

    /// Cuts the present line into fields.
    ///
    /// # Errors
    /// `22P04`, `22021`
    pub fn split(&mut self, options: &CopyOptions) -> Result<()> {
        self.fields.clear();
        if options.format == Format::Csv {
            return self.split_csv(options);
        }
        let (start, end) = self.line;
        if memchr(b'\\', &self.buffer[start..end]).is_some() {
            return self.split_escaped(options);
        }
        self.in_scratch = false;
        let mut at = start;
        loop {
            let field_end =
                memchr(options.delimiter, &self.buffer[at..end]).map_or(end, |n| at + n);
            let mark = mark(&self.buffer[at..field_end], options);
            self.fields.push(Field { start: at, end: field_end, mark, quoted: false });
            if field_end == end {
                return Ok(());
            }
            at = field_end + 1;
        }
    }

    fn split_escaped(&mut self, options: &CopyOptions) -> Result<()> {
        let line = &self.buffer[self.line.0..self.line.1];
        let out = &mut self.scratch;
        out.clear();
        self.in_scratch = true;
        let mut i = 0;
        loop {
            let (start, raw) = (out.len(), i);
            let mut check = false;
            while i < line.len() && line[i] != options.delimiter {
                let c = line[i];
                i += 1;
                if c != b'\\' {
                    out.push(c);
                    continue;
                }
                let Some(&e) = line.get(i) else {
                    out.push(b'\\');
                    break;
                };
                i += 1;
                out.push(match e {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    b'0'..=b'7' => {
                        let mut value = u32::from(e - b'0');
                        for _ in 0..2 {
                            match line.get(i) {
                                Some(d @ b'0'..=b'7') => {
                                    value = value * 8 + u32::from(d - b'0');
                                    i += 1;
                                }
                                _ => break,
                            }
                        }
                        check |= value & 0xff >= 0x80 || value & 0xff == 0;
                        (value & 0xff) as u8
                    }
                    b'x' if line.get(i).is_some_and(u8::is_ascii_hexdigit) => {
                        let mut value = 0u32;
                        for _ in 0..2 {
                            match line.get(i).and_then(|d| char::from(*d).to_digit(16)) {
                                Some(d) => {
                                    value = value * 16 + d;
                                    i += 1;
                                }
                                None => break,
                            }
                        }
                        check |= value >= 0x80 || value == 0;
                        value as u8
                    }
                    other => other,
                });
            }
            // Markers are compared before backslashes are taken out.
            let mark = mark(&line[raw..i.min(line.len())], options);
            if check && mark == Mark::Value {
                check_utf8(&out[start..])?;
            }
            self.fields.push(Field { start, end: out.len(), mark, quoted: false });
            if i >= line.len() {
                break;
            }
            i += 1;
            if i == line.len() {
                // A last, empty field behind the delimiter.
                let mark = self::mark(b"", options);
                self.fields.push(Field { start: out.len(), end: out.len(), mark, quoted: false });
                break;
            }
        }
        Ok(())
    }

    fn split_csv(&mut self, options: &CopyOptions) -> Result<()> {
        let line = &self.buffer[self.line.0..self.line.1];
        let out = &mut self.scratch;
        out.clear();
        self.in_scratch = true;
        let mut i = 0;
        loop {
            let (start, raw) = (out.len(), i);
            let (mut saw_quote, mut ended) = (false, false);
            'field: loop {
                // Outside quotes.
                loop {
                    let Some(&c) = line.get(i) else {
                        ended = true;
                        break 'field;
                    };
                    i += 1;
                    if c == options.delimiter {
                        break 'field;
                    }
                    if c == options.quote {
                        saw_quote = true;
                        break;
                    }
                    out.push(c);
                }
                // Within quotes.
                loop {
                    let Some(&c) = line.get(i) else {
                        bail!(BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
                    };
                    i += 1;
                    if c == options.escape
                        && let Some(&next) = line.get(i)
                        && (next == options.escape || next == options.quote)
                    {
                        out.push(next);
                        i += 1;
                        continue;
                    }
                    if c == options.quote {
                        break;
                    }
                    out.push(c);
                }
            }
            let raw_end = if ended { i } else { i - 1 };
            let mark = if saw_quote { Mark::Value } else { mark(&line[raw..raw_end], options) };
            self.fields.push(Field { start, end: out.len(), mark, quoted: saw_quote });
            if ended {
                return Ok(());
            }
        }
    }
}

fn mark(raw: &[u8], options: &CopyOptions) -> Mark {
    if raw == options.null.as_bytes() {
        Mark::Null
    } else if options.default.as_deref().is_some_and(|d| d.as_bytes() == raw) {
        Mark::Default
    } else {
        Mark::Value
    }
}

fn literal_return(csv: bool) -> base::Error {
    let (message, hint) = if csv {
        (
            "unquoted carriage return found in data",
            "Use quoted CSV field to represent carriage return.",
        )
    } else {
        ("literal carriage return found in data", "Use \"\\r\" to represent carriage return.")
    };
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message).hint(hint).into()
}

fn literal_newline(csv: bool) -> base::Error {
    let (message, hint) = if csv {
        ("unquoted newline found in data", "Use quoted CSV field to represent newline.")
    } else {
        ("literal newline found in data", "Use \"\\n\" to represent newline.")
    };
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message).hint(hint).into()
}

/// Fails unless the bytes are UTF-8 without zeros.
fn check_utf8(bytes: &[u8]) -> Result<()> {
    let (at, len) = match std::str::from_utf8(bytes) {
        Ok(_) => match memchr(0, bytes) {
            None => return Ok(()),
            Some(at) => (at, 1),
        },
        Err(e) => {
            let at = e.valid_up_to();
            let expected = match bytes[at] {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            (at, expected.min(bytes.len() - at))
        }
    };
    let shown: Vec<String> = bytes[at..at + len].iter().map(|b| format!("0x{b:02x}")).collect();
    bail!(
        CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"UTF8\": {}",
        shown.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::utility::{Copy, UtilityStatement};
    use crate::parse::{Statement, parse};
    use std::io::{Seek, Write};

    fn options(with: &str) -> CopyOptions {
        let sql = format!("COPY t FROM STDIN {with}");
        let mut parsed = parse(&sql).unwrap();
        let Statement::Utility(u) = parsed.remove(0).statement else { panic!("{sql}") };
        let UtilityStatement::Copy(copy) = *u else { panic!("{sql}") };
        let copy: Copy = *copy;
        CopyOptions::of(&copy, &sql).unwrap()
    }

    /// The fields of every line; `~` for NULL.
    fn read(data: &[u8], with: &str) -> Result<Vec<Vec<String>>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(data).unwrap();
        file.rewind().unwrap();
        let options = options(with);
        let mut lines = Lines::new(Input::File(file));
        let mut out = Vec::new();
        while lines.next_line(&options)? {
            lines.split(&options)?;
            let text = |f: &Field| match f.mark {
                Mark::Null => "~".to_owned(),
                _ => String::from_utf8(lines.text(f).to_vec()).unwrap(),
            };
            out.push(lines.fields().iter().map(text).collect());
        }
        Ok(out)
    }

    #[test]
    fn text_lines_and_escapes() {
        let rows = read(b"1\t\\N\tx\n2\ta\\tb\\\\\\x41\\101\t\n", "").unwrap();
        assert_eq!(rows, [vec!["1", "~", "x"], vec!["2", "a\tb\\AA", ""]]);
        // A backslash before a newline makes it data; the last line may lack its end.
        assert_eq!(read(b"a\\\nb\nc", "").unwrap(), [["a\nb"], ["c"]]);
        assert_eq!(read(b"a\r\nb\r\n", "").unwrap(), [["a"], ["b"]]);
        assert_eq!(read(b"a\n\\.\nignored\n", "").unwrap(), [["a"]]);
        // a marker is compared as it was written, whatever it would mean
        assert_eq!(read(b"\\0\ta\n", "(null '\\0')").unwrap(), [["~", "a"]]);
        assert!(read(b"\\0\ta\n", "").is_err());
        assert!(read(b"a\nb\rc\n", "").is_err());
        assert!(read(b"a\\.\n", "").is_err());
        assert!(read(b"\xff\n", "").is_err());
        assert_eq!(read(b"\xe4\n", "(encoding 'latin1')").unwrap(), [["\u{e4}"]]);
        assert_eq!(read(b"\xd4\n\xc1\n", "(encoding 'koi8')").unwrap(), [["т"], ["а"]]);
    }

    #[test]
    fn csv_quotes() {
        let rows = read(b"1,\"a,\"\"b\nc\",\"\"\n,x,\n", "csv").unwrap();
        assert_eq!(rows, [vec!["1", "a,\"b\nc", ""], vec!["~", "x", "~"]]);
        let rows = read(b"'a\\'b';'c'\n", "(format csv, delimiter ';', quote '''', escape '\\')");
        assert_eq!(rows.unwrap(), [["a'b", "c"]]);
        // what ends the data of psql is data here
        assert_eq!(read(b"a\n\\.\nb\n", "csv").unwrap(), [["a"], ["\\."], ["b"]]);
        let error = read(b"\"a\n", "csv").unwrap_err();
        assert_eq!(error.to_string(), "unterminated CSV quoted field");
    }
}
