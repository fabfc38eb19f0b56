//! A connection's two directions: messages in, messages out.
//!
//! # Invariants
//! Nothing is written to the socket but in [`Wire::flush`], which happens before each wait for input, for
//! notices, and when the output buffer has grown past 64 kB.

use crate::recode;
use crate::startup_packet::{self, Opening};
use crate::transport::Transport;
use base::encoding::Encoding;
use base::{Error, Result, SqlError, SqlState};
use bytes::{Buf as _, BufMut, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ErrorResponse, NoticeResponse,
};
use pgwire::messages::startup::ParameterStatus;
use pgwire::messages::{DecodeContext, Message, PgWireFrontendMessage, ProtocolVersion};
use sql::client::{Client, CopyWireFormat, Notice, OutputColumn};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use types::{Datum, Env};

const FLUSH_BYTES: usize = 64 * 1024;

/// What calls a function without SQL: libpq's `PQfn`. As after a query, its client waits for ReadyForQuery.
const FUNCTION_CALL: u8 = b'F';

/// What a client says of its password.
const PASSWORD: u8 = b'p';

/// What the messages are that a session takes, and how long each may be.
fn longest_in_session(kind: u8) -> Option<u32> {
    match kind {
        b'Q' | b'P' | b'B' | b'd' | FUNCTION_CALL => Some(0x3fff_fffe),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => Some(10_000),
        _ => None,
    }
}

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn no_function_calls() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "fastpath function calls are not supported")
        .hint("Call the function in a SELECT.")
}

/// Why reading stopped.
#[derive(Debug)]
pub enum ReadError {
    /// The client is gone.
    Closed,
    /// The socket's read timeout ran out.
    TimedOut,
    /// The bytes are not the protocol.
    Protocol(SqlError),
    /// A whole message that can't be taken, a query or one of the extended protocol: its text is not UTF-8, or it is of a kind
    /// that is not served.
    Garbled { query: bool, error: SqlError },
    /// The wait itself failed.
    Failed(SqlError),
}

/// A connection.
pub struct Wire {
    transport: Transport,
    input: BytesMut,
    output: BytesMut,
    scratch: Vec<u8>,
    text: String,
    /// What a SCRAM exchange on this connection may bind to.
    end_point: Option<Vec<u8>>,
    context: DecodeContext,
    /// Until when the client may take to be let in; None: it is.
    deadline: Option<Instant>,
    min_notice: sql::client::Severity,
    /// `client_encoding`, where it is not UTF-8.
    encoding: Option<&'static Encoding>,
    /// What comes next from the client can't be told apart any more.
    out_of_step: bool,
}

impl Wire {
    /// Over `stream`.
    pub fn new(stream: TcpStream) -> Wire {
        let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        // Openings are taken by `opening`.
        context.awaiting_frontend_ssl = false;
        context.awaiting_frontend_startup = false;
        Wire {
            transport: Transport::new(stream),
            input: BytesMut::with_capacity(8192),
            output: BytesMut::with_capacity(8192),
            scratch: vec![0; 16 * 1024],
            text: String::new(),
            end_point: None,
            context,
            deadline: None,
            min_notice: sql::client::Severity::Notice,
            encoding: None,
            out_of_step: false,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Who is at the other end, as the log tells it.
    pub(crate) fn peer(&self) -> base::log::prefix::Peer {
        let peer = self.stream().peer_addr().ok();
        let local = self.stream().local_addr().ok();
        base::log::prefix::Peer {
            host: peer.map(|p| p.ip().to_string()).unwrap_or_default(),
            port: peer.map(|p| p.port().to_string()).unwrap_or_default(),
            local: local.map(|l| l.ip().to_string()).unwrap_or_default(),
            ..Default::default()
        }
    }

    /// What tells whether the client is gone.
    ///
    /// # Errors
    /// No file descriptors.
    pub(crate) fn gone(&self) -> std::io::Result<sql::timer::Question> {
        self.transport.gone()
    }

    /// The session that it serves.
    pub(crate) fn belongs_to(&mut self, backend: std::sync::Arc<txn::Backend>) {
        self.transport.belongs_to(backend);
    }

    /// To be set by whoever ends the session.
    pub(crate) fn ending(&self) -> &std::sync::Arc<std::sync::atomic::AtomicBool> {
        self.transport.ending()
    }

    /// The TLS connection, if this one is encrypted.
    pub(crate) fn tls(&self) -> Option<&rustls::ServerConnection> {
        self.transport.tls()
    }

    /// Encrypts all further bytes.
    ///
    /// # Errors
    /// A handshake that failed.
    pub(crate) fn encrypt(&mut self, connection: rustls::ServerConnection) -> std::io::Result<()> {
        self.transport.encrypt(connection, self.deadline)
    }

    pub(crate) fn set_end_point(&mut self, hash: Option<&[u8]>) {
        self.end_point = hash.map(<[u8]>::to_vec);
    }

    /// What a SCRAM exchange may bind to, on an encrypted connection.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }

    /// `client_encoding`
    pub(crate) fn set_encoding(&mut self, name: &str) {
        self.encoding = base::encoding::by_name(name).filter(|e| e.converts());
    }

    /// `client_min_messages`
    pub fn set_min_notice(&mut self, severity: sql::client::Severity) {
        self.min_notice = severity;
    }

    /// Gives the client so long to be let in, in all.
    pub(crate) fn hurry(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
    }

    /// The client is let in: it may take its time, and send more than its password.
    pub(crate) fn let_in(&mut self) {
        self.deadline = None;
        let _ = self.stream().set_read_timeout(None);
    }

    /// What the client opens with.
    ///
    /// # Errors
    /// [`ReadError`]
    pub(crate) fn opening(&mut self) -> std::result::Result<Opening, ReadError> {
        loop {
            if let Some((opening, length)) =
                startup_packet::take(&self.input).map_err(ReadError::Protocol)?
            {
                self.input.advance(length);
                return Ok(opening);
            }
            self.flush().map_err(|_| ReadError::Closed)?;
            self.fill()?;
        }
    }

    /// The next message, flushing what is to be sent before waiting for it.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&mut self) -> std::result::Result<PgWireFrontendMessage, ReadError> {
        loop {
            if let Some(message) = self.decode()? {
                return Ok(message);
            }
            self.flush().map_err(|_| ReadError::Closed)?;
            self.fill()?;
        }
    }

    /// The client has sent what belongs to no COPY while one ran: where its next message begins nobody knows.
    pub(crate) fn is_out_of_step(&self) -> bool {
        self.out_of_step
    }

    /// The next message in the midst of a COPY: the session is shown to wait for it, as one between statements is by being idle.
    fn read_within_copy(&mut self) -> std::result::Result<PgWireFrontendMessage, ReadError> {
        loop {
            if let Some(kind) = self.input.first()
                && !b"dcfHS".contains(kind)
            {
                self.out_of_step = true;
                return Err(ReadError::Protocol(violation(format!(
                    "unexpected message type 0x{kind:02X} during COPY from stdin"
                ))));
            }
            if let Some(message) = self.decode()? {
                return Ok(message);
            }
            self.flush().map_err(|_| ReadError::Closed)?;
            self.transport.shows_wait(Some(("Client", "ClientRead")));
            let filled = self.fill();
            self.transport.shows_wait(None);
            filled?;
        }
    }

    /// True if another message has already been read from the socket, whole or in part.
    pub fn has_input(&mut self) -> bool {
        !self.input.is_empty() || self.transport.has_pending()
    }

    fn decode(&mut self) -> std::result::Result<Option<PgWireFrontendMessage>, ReadError> {
        let Some((kind, length)) = self.head()? else { return Ok(None) };
        // An incomplete message is not looked at: codecs may allocate by counts inside it.
        if self.input.len() < length + 1 {
            let missing = length + 1 - self.input.len();
            self.input.reserve(missing.min(1 << 20));
            return Ok(None);
        }
        if kind == FUNCTION_CALL {
            self.input.advance(length + 1);
            return Err(ReadError::Garbled { query: true, error: no_function_calls() });
        }
        if let Some(encoding) = self.encoding {
            self.convert(encoding, kind, length)?;
        }
        let length = self.head()?.map_or(length, |(_, length)| length);
        // The codecs trust counts and lengths inside a message, and take no notice of what is behind them.
        if let Err(error) = look(kind, &self.input[5..=length]) {
            self.input.advance(length + 1);
            // Its client waits for ReadyForQuery.
            let query = matches!(kind, b'Q' | b'S');
            return Err(ReadError::Garbled { query, error });
        }
        let before = self.input.len();
        let decoded = PgWireFrontendMessage::decode(&mut self.input, &self.context);
        let_go(&mut self.input, before);
        decoded
            .map_err(|e| ReadError::Protocol(violation(format!("invalid frontend message: {e}"))))
    }

    /// The kind of the message at the input's start, and its length without that.
    fn head(&self) -> std::result::Result<Option<(u8, usize)>, ReadError> {
        let Some((&kind, rest)) = self.input.split_first() else { return Ok(None) };
        let longest = match self.deadline {
            None => longest_in_session(kind),
            Some(_) => (kind == PASSWORD).then_some(10_000),
        };
        let Some(longest) = longest else {
            return Err(ReadError::Protocol(violation(match self.deadline {
                None => format!("invalid frontend message type {kind}"),
                Some(_) => format!("expected password response, got message type {kind}"),
            })));
        };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if !(4..=longest).contains(&length) {
            return Err(ReadError::Protocol(violation("invalid message length")));
        }
        Ok(Some((kind, usize::try_from(length).unwrap_or(usize::MAX))))
    }

    /// Makes UTF-8 of the text in the message at the input's start.
    fn convert(
        &mut self,
        encoding: &'static Encoding,
        kind: u8,
        length: usize,
    ) -> std::result::Result<(), ReadError> {
        match recode::incoming(encoding, kind, &self.input[5..=length]) {
            Ok(None) => {}
            Ok(Some(message)) => {
                let rest = self.input.split_off(length + 1);
                self.input = BytesMut::from(&message[..]);
                self.input.unsplit(rest);
            }
            Err(error) => {
                self.input.advance(length + 1);
                let error = error.to_sql_error();
                return Err(ReadError::Garbled { query: kind == b'Q', error });
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> std::result::Result<(), ReadError> {
        loop {
            if let Some(deadline) = self.deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ReadError::TimedOut);
                }
                let _ = self.stream().set_read_timeout(Some(left));
            }
            match self.transport.read(&mut self.scratch) {
                Ok(0) => return Err(ReadError::Closed),
                Ok(n) => {
                    self.input.extend_from_slice(&self.scratch[..n]);
                    return Ok(());
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e)
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    return Err(ReadError::TimedOut);
                }
                Err(_) => return Err(ReadError::Closed),
            }
        }
    }

    /// Queues a message.
    pub fn send<M: Message>(&mut self, message: &M) {
        let start = self.output.len();
        if let Some(kind) = M::message_type() {
            self.output.put_u8(kind);
        }
        // Not by the codec's `encode`: what it thinks too long for a client it gives up with its kind already written.
        self.output.put_i32(i32::try_from(message.message_length()).unwrap_or(i32::MAX));
        let _ = message.encode_body(&mut self.output);
        if let Some(encoding) = self.encoding
            && let Some(message) = recode::outgoing(encoding, &self.output[start..])
        {
            self.output.truncate(start);
            self.output.put_slice(&message);
        }
    }

    /// Writes a value as the client is to have it.
    fn value(&mut self, column: &OutputColumn, value: &Datum, env: &dyn Env) -> Result<()> {
        let mut bytes = Vec::new();
        if column.format == 0 {
            self.text.clear();
            types::text_output(column.ty.oid, value, env, &mut self.text)?;
            match self.encoding {
                None => self.output.put_slice(self.text.as_bytes()),
                Some(encoding) => {
                    encoding.encode(&self.text, &mut bytes)?;
                    self.output.put_slice(&bytes);
                }
            }
            return Ok(());
        }
        types::binary_output(column.ty.oid, value, env, &mut bytes)?;
        if let Some(encoding) = self.encoding
            && let Some(start) = recode::text_in_binary(column.ty.oid)
        {
            let text = bytes.split_off(start.min(bytes.len()));
            encoding.encode(&String::from_utf8_lossy(&text), &mut bytes)?;
        }
        self.output.put_slice(&bytes);
        Ok(())
    }

    /// Queues raw bytes (the answer to an SSL request).
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.output.put_slice(bytes);
    }

    /// Queues an error.
    pub fn send_error(&mut self, severity: &str, error: &SqlError) {
        self.send(&ErrorResponse::new(error_fields(severity, error)));
    }

    /// Sends what is buffered if that has become much.
    ///
    /// # Errors
    /// The client is gone.
    pub(crate) fn grow(&mut self) -> Result<()> {
        if self.output.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }
}

/// The bytes of a message's body that are still to be looked at.
struct Body<'a> {
    rest: &'a [u8],
    garbled: Option<SqlError>,
}

impl Body<'_> {
    fn skip(&mut self, n: usize) -> Option<()> {
        self.rest = self.rest.get(n..)?;
        Some(())
    }
    fn string(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|b| *b == 0)?;
        if let Err(e) = std::str::from_utf8(&self.rest[..end]) {
            let at = e.valid_up_to();
            let len = e.error_len().unwrap_or(end - at);
            self.garbled.get_or_insert_with(|| not_utf8(&self.rest[at..at + len]));
        }
        self.skip(end + 1)
    }
    fn count(&mut self) -> Option<usize> {
        let n = u16::from_be_bytes(*self.rest.first_chunk::<2>()?);
        self.skip(2)?;
        Some(usize::from(n))
    }
    fn value(&mut self) -> Option<()> {
        let n = i32::from_be_bytes(*self.rest.first_chunk::<4>()?);
        self.skip(4)?;
        if n == -1 { Some(()) } else { self.skip(usize::try_from(n).ok()?) }
    }
}

fn not_utf8(bytes: &[u8]) -> SqlError {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("0x{b:02x}")).collect();
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": {}", bytes.join(" ")),
    )
}

/// Do the counts and lengths inside a message fit it, and is its text text?
fn look(kind: u8, body: &[u8]) -> std::result::Result<(), SqlError> {
    let mut body = Body { rest: body, garbled: None };
    let mut look = || -> Option<()> {
        match kind {
            b'B' => {
                body.string()?;
                body.string()?;
                let formats = body.count()?;
                body.skip(formats * 2)?;
                for _ in 0..body.count()? {
                    body.value()?;
                }
                let formats = body.count()?;
                body.skip(formats * 2)
            }
            b'P' => {
                body.string()?;
                body.string()?;
                let types = body.count()?;
                body.skip(types * 4)
            }
            b'D' | b'C' => {
                body.skip(1)?;
                body.string()
            }
            b'E' => {
                body.string()?;
                body.skip(4)
            }
            b'Q' | b'f' => body.string(),
            b'H' | b'S' | b'c' => Some(()),
            _ => body.skip(body.rest.len()),
        }?;
        body.rest.is_empty().then_some(())
    };
    if look().is_none() {
        return Err(violation("invalid message format"));
    }
    body.garbled.map_or(Ok(()), Err)
}

/// Protocol fields of an error or notice.
fn error_fields(severity: &str, e: &SqlError) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', e.state.to_string()),
        (b'M', e.message.clone()),
    ];
    let mut add = |code: u8, value: &Option<String>| {
        if let Some(value) = value {
            fields.push((code, value.clone()));
        }
    };
    add(b'D', &e.detail);
    add(b'H', &e.hint);
    add(b'P', &e.position.map(|p| p.to_string()));
    add(b'p', &e.internal_position.map(|p| p.to_string()));
    add(b'q', &e.internal_query);
    add(b'W', &e.context);
    add(b's', &e.schema);
    add(b't', &e.table);
    add(b'c', &e.column);
    add(b'd', &e.data_type);
    add(b'n', &e.constraint);
    if let Some(routine) = routine(e) {
        fields.push((b'R', routine.to_owned()));
    }
    fields
}

/// Where PostgreSQL raises an error, of those that drivers know by that: to prepare a statement again whose tables have changed.
fn routine(e: &SqlError) -> Option<&'static str> {
    let stale = "cached plan must not change result type";
    (e.state == SqlState::FEATURE_NOT_SUPPORTED && e.message == stale)
        .then_some("RevalidateCachedQuery")
}

fn gone(e: std::io::Error) -> Error {
    Error::Sql(Box::new(SqlError::new(
        SqlState::CONNECTION_FAILURE,
        format!("could not send data to client: {e}"),
    )))
}

impl Client for Wire {
    fn row_description(&mut self, columns: &[OutputColumn]) -> Result<()> {
        let fields = columns.iter().map(field_description).collect();
        self.send(&RowDescription::new(fields));
        Ok(())
    }

    /// Written straight into the output: this is where the bytes of a result go.
    fn data_row(&mut self, columns: &[OutputColumn], row: &[Datum], env: &dyn Env) -> Result<()> {
        let start = self.output.len();
        self.output.put_u8(b'D');
        self.output.put_i32(0);
        self.output.put_i16(i16::try_from(columns.len()).unwrap_or(i16::MAX));
        for (column, value) in columns.iter().zip(row) {
            if value.is_null() {
                self.output.put_i32(-1);
                continue;
            }
            let at = self.output.len();
            self.output.put_i32(0);
            let written = self.value(column, value, env);
            if let Err(e) = written {
                self.output.truncate(start);
                return Err(e);
            }
            let length = i32::try_from(self.output.len() - at - 4).unwrap_or(i32::MAX);
            self.output[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        let length = self.output.len() - start - 1;
        if length >= 0x3fff_ffff {
            self.output.truncate(start);
            base::bail!(PROGRAM_LIMIT_EXCEEDED, "out of memory: row of {length} bytes");
        }
        let length = u32::try_from(length).unwrap_or(0);
        self.output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        self.grow()
    }

    fn command_complete(&mut self, tag: &str) -> Result<()> {
        self.send(&CommandComplete::new(tag.to_owned()));
        Ok(())
    }

    fn empty_query(&mut self) -> Result<()> {
        self.send(&EmptyQueryResponse::new());
        Ok(())
    }

    fn notice(&mut self, notice: &Notice) -> Result<()> {
        base::log::write_error(notice.severity.level(), &notice.body);
        // INFO always goes to the client, whatever client_min_messages says.
        if notice.severity < self.min_notice && notice.severity != sql::client::Severity::Info {
            return Ok(());
        }
        let fields = error_fields(notice.severity.name(), &notice.body);
        self.send(&NoticeResponse::new(fields));
        self.flush()
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.send(&ParameterStatus::new(name.to_owned(), value.to_owned()));
        if name == "client_encoding" {
            self.set_encoding(value);
        }
        Ok(())
    }

    fn copy_in_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        let (format, n) = copy_format(format, columns);
        self.send(&CopyInResponse::new(format, n, vec![i16::from(format); columns]));
        self.flush()
    }

    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        loop {
            match self.read_within_copy() {
                Ok(PgWireFrontendMessage::CopyData(d)) => {
                    buffer.extend_from_slice(&d.data);
                    return Ok(true);
                }
                Ok(PgWireFrontendMessage::CopyDone(_)) => return Ok(false),
                Ok(PgWireFrontendMessage::CopyFail(f)) => {
                    base::bail!(QUERY_CANCELED, "COPY from stdin failed: {}", f.message)
                }
                // The extended protocol allows these while copying.
                Ok(PgWireFrontendMessage::Flush(_) | PgWireFrontendMessage::Sync(_)) => {}
                Ok(other) => base::bail!(
                    PROTOCOL_VIOLATION,
                    "unexpected message during COPY from stdin: {}",
                    message_name(&other)
                ),
                Err(ReadError::TimedOut) => {}
                Err(ReadError::Closed) => base::bail!(
                    CONNECTION_FAILURE,
                    "unexpected EOF on client connection with an open transaction"
                ),
                // A length that can't be one: the rest is as good as not there.
                Err(ReadError::Protocol(error)) if !self.out_of_step => {
                    self.out_of_step = true;
                    base::log::write_error(base::log::Level::Log, &error);
                    base::bail!(
                        CONNECTION_FAILURE,
                        "unexpected EOF on client connection with an open transaction"
                    );
                }
                Err(
                    ReadError::Protocol(error)
                    | ReadError::Failed(error)
                    | ReadError::Garbled { error, .. },
                ) => return Err(error.into()),
            }
        }
    }

    fn copy_out_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        let (format, n) = copy_format(format, columns);
        self.send(&CopyOutResponse::new(format, n, vec![i16::from(format); columns]));
        Ok(())
    }

    fn copy_out_data(&mut self, data: &[u8]) -> Result<()> {
        self.output.put_u8(b'd');
        self.output.put_u32(u32::try_from(data.len() + 4).unwrap_or(u32::MAX));
        self.output.put_slice(data);
        self.grow()
    }

    fn copy_out_end(&mut self) -> Result<()> {
        self.send(&CopyDone::new());
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.output.is_empty() {
            self.transport.write_all(&self.output).map_err(gone)?;
            self.output.clear();
        }
        Ok(())
    }
}

fn copy_format(format: CopyWireFormat, columns: usize) -> (i8, i16) {
    let format = if format == CopyWireFormat::Binary { 1 } else { 0 };
    (format, i16::try_from(columns).unwrap_or(i16::MAX))
}

/// A column as RowDescription has it.
#[expect(clippy::cast_possible_wrap, reason = "the wire's field is unsigned, the codec's is not")]
fn field_description(c: &OutputColumn) -> FieldDescription {
    FieldDescription::new(
        c.name.clone(),
        c.table as i32,
        c.column,
        c.ty.oid.0,
        c.type_len,
        c.ty.typmod,
        c.format,
    )
}

/// What a message is called in an error.
pub fn message_name(message: &PgWireFrontendMessage) -> &'static str {
    match message {
        PgWireFrontendMessage::Query(_) => "Query",
        PgWireFrontendMessage::Parse(_) => "Parse",
        PgWireFrontendMessage::Bind(_) => "Bind",
        PgWireFrontendMessage::Execute(_) => "Execute",
        PgWireFrontendMessage::Describe(_) => "Describe",
        PgWireFrontendMessage::Close(_) => "Close",
        PgWireFrontendMessage::Startup(_) => "Startup",
        PgWireFrontendMessage::Terminate(_) => "Terminate",
        _ => "message",
    }
}

/// Room for a message that was taken out of `input`, which had `before` bytes, is given back if it was much: the session may be idle for long.
fn let_go(input: &mut BytesMut, before: usize) {
    const KEPT: usize = 1 << 20;
    if before - input.len() > KEPT {
        *input = BytesMut::from(&input[..]);
    }
}

#[cfg(test)]
mod tests {
    use super::let_go;
    use super::look;

    fn is_well_formed(kind: u8, body: &[u8]) -> bool {
        look(kind, body).is_ok()
    }

    #[test]
    fn counts_and_lengths_must_fit_the_message() {
        let bind = b"\0s\0\0\x01\0\0\0\x01\0\0\0\x015\0\x01\0\x01";
        assert!(is_well_formed(b'B', bind));
        for cut in 0..bind.len() {
            assert!(!is_well_formed(b'B', &bind[..cut]), "cut at {cut}");
        }
        assert!(!is_well_formed(b'B', b"\0s\0\0\x01\0\0\0\x01\0\0\0\xcc5\0\x01\0\x01"));
        assert!(is_well_formed(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17"));
        assert!(!is_well_formed(b'P', b"s\0SELECT $1\0\xff\xff"));
        // Counts are unsigned: 40,000 parameters.
        let many = [&b"\0\0\0\0\x9c\x40"[..], &[0xff; 4 * 40_000], b"\0\0"].concat();
        assert!(is_well_formed(b'B', &many));
        assert!(is_well_formed(b'Q', b"SELECT 1\0"));
        assert!(!is_well_formed(b'Q', b"SELECT 1"));
    }

    #[test]
    fn text_that_is_none_is_told_from_a_wrong_layout() {
        let told = |kind, body| look(kind, body).unwrap_err().message;
        let cut = "invalid byte sequence for encoding \"UTF8\": 0xc3";
        assert_eq!(told(b'Q', b"SELECT '\xc3'\0"), cut);
        assert_eq!(told(b'P', b"\0\xc3\0\0\0"), cut);
        assert_eq!(told(b'Q', b"\xc3\0more\0"), "invalid message format");
        assert_eq!(told(b'S', b"\xc3"), "invalid message format");
    }
    #[test]
    fn room_for_a_long_message_is_given_back() {
        use bytes::{Buf, BytesMut};
        let mut input = BytesMut::zeroed(10 << 20);
        input.extend_from_slice(b"next");
        let before = input.len();
        input.advance(100);
        let_go(&mut input, before);
        assert!(input.capacity() > 1 << 20, "a short one");
        let before = input.len();
        input.advance(before - 4);
        input.reserve(1 << 20);
        let_go(&mut input, before);
        assert_eq!(&input[..], b"next");
        assert!(input.capacity() < 1 << 20, "a long one");
    }
}
