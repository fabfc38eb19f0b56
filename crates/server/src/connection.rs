//! One connection, start to end.
//!
//! # Invariants
//! After an error in the extended protocol everything up to Sync is skipped, simple queries too. Every Sync, and every simple query that
//! is not skipped, ends with ReadyForQuery. A panic in a statement ends this session with an error, not the server.

use crate::bell::{self, Bell, Woken};
use crate::connection_log::ConnectionLog;
use crate::keepalive::Keepalive;
use crate::listen::Shared;
use crate::startup;
use crate::wire::{ReadError, Wire, message_name};
use base::sync::CancelReason;
use base::{Error, Result, SqlError, SqlState};
use pgwire::messages::PgWireFrontendMessage as Frontend;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::{NotificationResponse, ReadyForQuery, TransactionStatus};
use sql::activity::SessionEnd;
use sql::client::{Client as _, ExecuteOutcome, OutputColumn};
use sql::session::Session;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How many reads of the queue (64 kB each) are told before the client is listened to.
const TOLD_AT_ONCE: usize = 16;

/// Runs the connection on `stream` until it ends.
pub(crate) fn run(stream: TcpStream, shared: &Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut wire = Wire::new(stream);
    base::log::prefix::begin_peer(wire.peer());
    // Dropped last: what the session does when it closes is waited for.
    let mut log = ConnectionLog::received(&wire, shared.cluster.settings());
    let (_inside, session) = match startup::start(&mut wire, shared, &mut log) {
        Ok(Some(started)) => started,
        Ok(None) => return,
        Err(error) => {
            let error = error.to_sql_error();
            base::log::write_error(base::log::Level::Fatal, &error);
            wire.send_error("FATAL", &error);
            let _ = wire.flush();
            return;
        }
    };
    let shared = Arc::clone(shared);
    let mut connection = Connection::new(wire, session, shared);
    let ended = catch_unwind(AssertUnwindSafe(|| connection.serve()));
    let ended = ended.unwrap_or_else(|_| {
        Ended::Fatal(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "the session has ended because of an internal error; the server log has the details",
        ))
    });
    if let Some(how) = ended.counted_as(connection.session.backend().cancel.reason()) {
        connection.session.count_end(how);
    }
    if let Ended::Fatal(error) = ended {
        base::log::write_error(base::log::Level::Fatal, &error);
        connection.wire.send_error("FATAL", &error);
        let _ = connection.wire.flush();
    }
    connection.session.close();
    log.ended(connection.shared.cluster.settings());
}

/// Ends a connection for which there is no place, without waiting for anything that its client might say or read.
pub(crate) fn refuse(stream: TcpStream) {
    let error = SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
    base::log::write_error(base::log::Level::Fatal, &error);
    if stream.set_nonblocking(true).is_ok() {
        let mut wire = Wire::new(stream);
        wire.ending().store(true, Ordering::SeqCst);
        wire.send_error("FATAL", &error);
        let _ = wire.flush();
    }
}

/// Why a connection is over.
enum Ended {
    /// The client said good-bye.
    Left,
    /// The client is gone without a word.
    Lost,
    /// An error that ends sessions.
    Fatal(SqlError),
}

impl Ended {
    /// What `pg_stat_database` counts it as: who was told to end counts as killed, whatever came of that.
    fn counted_as(&self, told: Option<CancelReason>) -> Option<SessionEnd> {
        match (self, told) {
            (_, Some(CancelReason::Terminate | CancelReason::Shutdown)) => Some(SessionEnd::Killed),
            (Ended::Left, _) => None,
            (Ended::Lost, _) => Some(SessionEnd::Abandoned),
            (Ended::Fatal(e), _) if e.state == SqlState::CONNECTION_FAILURE => {
                Some(SessionEnd::Abandoned)
            }
            (Ended::Fatal(_), _) => Some(SessionEnd::Fatal),
        }
    }
}

/// What came from the client.
enum Incoming {
    Message(Frontend),
    /// A query, or another message, that can't be taken: its error is a statement's.
    Garbled {
        query: bool,
        error: SqlError,
    },
    /// The client is gone.
    End,
}

struct Connection {
    wire: Wire,
    session: Session,
    keepalive: Keepalive,
    shared: Arc<Shared>,
    /// What wakes it for notifications, once it has listened.
    bell: Option<Bell>,
    /// An error in the extended protocol: skip until Sync.
    skip_to_sync: bool,
    /// The client was told that the server is ready, and has said nothing since.
    idle: bool,
    /// The settings' version that the wire goes by.
    settings_seen: u64,
}

impl Connection {
    fn new(wire: Wire, session: Session, shared: Arc<Shared>) -> Connection {
        let keepalive = Keepalive::new(wire.stream());
        Connection {
            wire,
            session,
            keepalive,
            shared,
            bell: None,
            skip_to_sync: false,
            idle: false,
            settings_seen: 0,
        }
    }

    /// Serves messages until the client leaves or an error ends the session.
    fn serve(&mut self) -> Ended {
        self.ready();
        loop {
            let done = match self.read() {
                Ok(Incoming::Message(Frontend::Terminate(_))) => return Ended::Left,
                Ok(Incoming::Message(Frontend::Sync(_))) => self.sync(),
                Ok(Incoming::Message(_) | Incoming::Garbled { .. }) if self.skip_to_sync => Ok(()),
                Ok(Incoming::Message(Frontend::Query(query))) => self.simple(&query.query),
                Ok(Incoming::Garbled { query: true, error }) => {
                    self.session.fail();
                    self.send_error(&error.into());
                    self.ready();
                    Ok(())
                }
                Ok(Incoming::Message(message)) => self.extended(message),
                Ok(Incoming::Garbled { error, .. }) => Err(error.into()),
                Ok(Incoming::End) => return Ended::Lost,
                Err(fatal) => return Ended::Fatal(fatal),
            };
            if let Err(error) = done
                && let Some(fatal) = self.report(error)
            {
                return Ended::Fatal(fatal);
            }
            if self.wire.is_out_of_step() {
                return Ended::Fatal(SqlError::new(
                    SqlState::PROTOCOL_VIOLATION,
                    "terminating connection because protocol synchronization was lost",
                ));
            }
            self.mind_encoding();
        }
    }

    /// What comes next is in the encoding that the message before may have set.
    fn mind_encoding(&mut self) {
        let settings = self.session.state().settings.borrow();
        if std::mem::replace(&mut self.settings_seen, settings.version()) != settings.version() {
            self.wire.set_encoding(settings.text("client_encoding"));
        }
    }

    /// The next message, minding the timeouts of an idle session.
    fn read(&mut self) -> std::result::Result<Incoming, SqlError> {
        self.session.forget_statement();
        let waits = !self.wire.has_input();
        self.keepalive.set(self.wire.stream(), self.session.tcp_settings());
        // Only a wait that follows ReadyForQuery is idle time.
        let ready = std::mem::take(&mut self.idle);
        let idle = if waits { self.session.time_left(ready) } else { None };
        let timeout = idle.as_ref().map(|(duration, _)| (*duration).max(Duration::from_millis(1)));
        if idle.is_some() {
            let _ = self.wire.stream().set_read_timeout(timeout);
        }
        let backend = Arc::clone(self.session.backend());
        let rest = if waits { self.session.rest(&backend) } else { None };
        let message = match timeout {
            timeout if waits && self.session.is_listening() => self.listen(timeout),
            _ => Ok(()),
        };
        let message = message.and_then(|()| self.wire.read());
        drop(rest);
        if idle.is_some() {
            let _ = self.wire.stream().set_read_timeout(None);
        }
        match message {
            // What it sent before it was told to end is not begun.
            Ok(message) => self.told_to_end().map_or(Ok(Incoming::Message(message)), Err),
            Err(ReadError::Garbled { query, error }) => Ok(Incoming::Garbled { query, error }),
            Err(ReadError::TimedOut) => Err(match idle {
                Some((_, error)) => error,
                None => SqlError::new(SqlState::CONNECTION_FAILURE, "connection timed out"),
            }),
            Err(ReadError::Closed) => self.told_to_end().map_or(Ok(Incoming::End), Err),
            Err(ReadError::Protocol(e) | ReadError::Failed(e)) => Err(e),
        }
    }

    /// Why the session has to end, if it does.
    fn told_to_end(&self) -> Option<SqlError> {
        match self.session.backend().cancel.reason() {
            Some(reason @ (CancelReason::Shutdown | CancelReason::Terminate)) => {
                Some(reason.error().to_sql_error())
            }
            _ => None,
        }
    }

    /// Waits for the client's next message, and tells it meanwhile what others notify it of.
    fn listen(&mut self, timeout: Option<Duration>) -> std::result::Result<(), ReadError> {
        let begun = Instant::now();
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => self.hang_bell()?,
        };
        let bell = self.bell.insert(bell);
        loop {
            let all = tell(&self.session, &mut self.wire);
            self.wire.flush().map_err(|_| ReadError::Closed)?;
            let left = match timeout.map(|t| t.saturating_sub(begun.elapsed())) {
                Some(Duration::ZERO) => return Err(ReadError::TimedOut),
                left => left,
            };
            let left = if all { left } else { Some(Duration::ZERO) };
            match bell.wait(self.wire.stream(), left).map_err(no_bell)? {
                Woken::Input => return Ok(()),
                Woken::Rung | Woken::TimedOut => {}
            }
        }
    }

    fn hang_bell(&self) -> std::result::Result<Bell, ReadError> {
        let (bell, rope) = bell::hang().map_err(no_bell)?;
        self.shared.tie(self.session.backend().pid, rope);
        Ok(bell)
    }

    fn simple(&mut self, query: &str) -> Result<()> {
        let result = self.session.simple_query(query, &mut self.wire);
        if let Err(error) = result {
            if is_fatal(&error) && !self.wire.is_out_of_step() {
                return Err(error);
            }
            self.send_error(&error);
        }
        if !self.wire.is_out_of_step() {
            self.ready();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.skip_to_sync = false;
        if let Err(error) = self.session.sync(&mut self.wire) {
            if is_fatal(&error) {
                return Err(error);
            }
            self.send_error(&error);
        }
        self.ready();
        Ok(())
    }

    fn extended(&mut self, message: Frontend) -> Result<()> {
        match message {
            Frontend::Parse(m) => self.parse(&m),
            Frontend::Bind(m) => self.bind(&m),
            Frontend::Describe(m) => self.describe(&m),
            Frontend::Execute(m) => self.execute(&m),
            Frontend::Close(m) => {
                let name = m.name.as_deref().unwrap_or("");
                match m.target_type {
                    b'S' => self.session.close_statement(name),
                    b'P' => self.session.close_portal(name),
                    other => return Err(bad_target("CLOSE", other)),
                }
                self.wire.send(&CloseComplete::new());
                Ok(())
            }
            Frontend::Flush(_) => self.wire.flush(),
            // What a client sent after its COPY had already failed.
            Frontend::CopyData(_) | Frontend::CopyDone(_) | Frontend::CopyFail(_) => Ok(()),
            other => {
                base::bail!(PROTOCOL_VIOLATION, "unexpected message: {}", message_name(&other))
            }
        }
    }

    fn parse(&mut self, m: &Parse) -> Result<()> {
        let name = m.name.as_deref().unwrap_or("");
        self.session.parse(name, &m.query, &m.type_oids, &mut self.wire)?;
        self.wire.send(&ParseComplete::new());
        Ok(())
    }

    fn bind(&mut self, m: &Bind) -> Result<()> {
        self.session.bind(
            m.portal_name.as_deref().unwrap_or(""),
            m.statement_name.as_deref().unwrap_or(""),
            &m.parameter_format_codes,
            &m.parameters,
            &m.result_column_format_codes,
        )?;
        self.wire.send(&BindComplete::new());
        Ok(())
    }

    fn describe(&mut self, m: &Describe) -> Result<()> {
        let name = m.name.as_deref().unwrap_or("");
        match m.target_type {
            b'S' => {
                let (params, columns) = self.session.describe_statement(name)?;
                self.wire.send(&ParameterDescription::new(params));
                if columns.is_some() {
                    self.session.check_result(name)?;
                }
                self.describe_columns(columns.as_deref().map(Vec::as_slice))
            }
            b'P' => {
                let columns = self.session.describe_portal(name)?;
                self.describe_columns(columns.as_deref().map(Vec::as_slice))
            }
            other => Err(bad_target("DESCRIBE", other)),
        }
    }

    fn describe_columns(&mut self, columns: Option<&[OutputColumn]>) -> Result<()> {
        match columns {
            Some(columns) => self.wire.row_description(columns),
            None => {
                self.wire.send(&NoData::new());
                Ok(())
            }
        }
    }

    fn execute(&mut self, m: &Execute) -> Result<()> {
        let limit = usize::try_from(m.max_rows).unwrap_or(0);
        let name = m.name.as_deref().unwrap_or("");
        if self.session.execute(name, limit, &mut self.wire)? == ExecuteOutcome::Suspended {
            self.wire.send(&PortalSuspended::new());
        }
        Ok(())
    }

    fn ready(&mut self) {
        self.idle = true;
        // A client that is gone is noticed by the next read.
        let _ = self.session.report_settings(&mut self.wire);
        tell(&self.session, &mut self.wire);
        self.wire.set_min_notice(self.session.min_notice());
        let status = match self.session.transaction_status() {
            b'T' => TransactionStatus::Transaction,
            b'E' => TransactionStatus::Error,
            _ => TransactionStatus::Idle,
        };
        if base::log::prefix::wants_command() {
            base::log::prefix::set_command(match status {
                TransactionStatus::Transaction => "idle in transaction",
                TransactionStatus::Error => "idle in transaction (aborted)",
                TransactionStatus::Idle => "idle",
            });
        }
        self.wire.send(&ReadyForQuery::new(status));
    }

    fn send_error(&mut self, error: &Error) {
        let error = error.to_sql_error();
        base::log::write_error(base::log::Level::Error, &error);
        self.wire.send_error("ERROR", &error);
    }

    /// Tells the client of an error in the extended protocol; returns those that end the session.
    fn report(&mut self, error: Error) -> Option<SqlError> {
        if is_fatal(&error) && !self.wire.is_out_of_step() {
            let mut fatal = error.to_sql_error();
            // Nothing more comes from a client whose session was told to end: that is why.
            if fatal.state == SqlState::CONNECTION_FAILURE
                && let Some(reason) = self.told_to_end()
            {
                fatal = SqlError { context: fatal.context, ..reason };
            }
            return Some(fatal);
        }
        // What was said before it comes before it.
        let told = self.session.tell(&mut self.wire);
        self.session.fail();
        if let Err(fatal) = told {
            return Some(fatal.to_sql_error());
        }
        self.send_error(&error);
        self.skip_to_sync = true;
        None
    }
}

/// Tells the client what others have notified it of, if it may hear that now. False if there may be more: others may go on as fast
/// as it is told, and it may want to say something itself.
fn tell(session: &Session, wire: &mut Wire) -> bool {
    for _ in 0..TOLD_AT_ONCE {
        let heard = session.hear();
        if heard.is_empty() {
            return true;
        }
        for notification in heard {
            let (channel, payload) = (&*notification.channel, &*notification.payload);
            wire.send(&NotificationResponse::new(
                notification.pid,
                channel.to_owned(),
                payload.to_owned(),
            ));
        }
        // A client that is gone is noticed by the next read.
        if wire.grow().is_err() {
            return true;
        }
    }
    false
}

/// A session that listens and cannot be woken is of no use.
fn no_bell(error: std::io::Error) -> ReadError {
    let error = Error::io("could not wait for notifications", error);
    ReadError::Failed(error.to_sql_error())
}

/// Errors after which the session cannot go on.
fn is_fatal(error: &Error) -> bool {
    matches!(
        error.state(),
        SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CONNECTION_FAILURE
            | SqlState::DATABASE_DROPPED
            | SqlState::TRANSACTION_TIMEOUT
    )
}

fn bad_target(what: &str, target: u8) -> Error {
    base::err!(PROTOCOL_VIOLATION, "invalid {what} message subtype {target}")
}
