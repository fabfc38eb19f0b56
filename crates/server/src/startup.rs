//! From an open socket to a session: negotiation, authentication, the first parameters.

use crate::connection_log::ConnectionLog;
use crate::listen::{Inside, Shared};
use crate::tls;
use crate::wire::{ReadError, Wire};
use base::{Error, Result, SqlError, SqlState, bail};
use bytes::Bytes;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, PasswordMessageFamily, SecretKey,
    Startup,
};
use pgwire::messages::{PgWireFrontendMessage as Frontend, SslNegotiationMetaMessage};
use sql::client::Client as _;
use sql::scram::{Binding, Exchange, Verifier};
use sql::session::{ConnectRequest, Session};
use std::sync::Arc;

/// The session and its place, or None when the connection was only a cancel request or closed early.
pub(crate) fn start(
    wire: &mut Wire,
    shared: &Arc<Shared>,
    log: &mut ConnectionLog,
) -> Result<Option<(Inside, Session)>> {
    let timeout = shared.cluster.settings().int("authentication_timeout").max(1);
    let timeout = std::time::Duration::from_secs(u64::try_from(timeout).unwrap_or(60));
    let _ = wire.stream().set_read_timeout(Some(timeout));
    let Some(startup) = negotiate(wire, shared)? else { return Ok(None) };
    let minor = startup.protocol_number_minor;
    if startup.protocol_number_major != 3 {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "unsupported frontend protocol {}.{minor}: server supports 3.0 to 3.0",
            startup.protocol_number_major
        );
    }
    let unknown: Vec<String> =
        startup.parameters.keys().filter(|k| k.starts_with("_pq_.")).cloned().collect();
    if minor > 0 || !unknown.is_empty() {
        wire.send(&NegotiateProtocolVersion::new(0, unknown));
    }
    let request = connect_request(&startup, wire)?;
    base::log::prefix::set_peer(&request.user, &request.database);
    base::log::prefix::set_command("authentication");
    if !shared.accepting() {
        bail!(CANNOT_CONNECT_NOW, "the database system is shutting down");
    }
    let method = authenticate(wire, shared, &request.user)?;
    log.authenticated(&request.user, method);
    let (user, database) = (request.user.clone(), request.database.clone());
    // From here on it reads and writes; before, it may wait for its client for long.
    let mut inside = shared.let_in()?;
    base::stop_point!("server.session.let_in");
    let mut session = Session::connect(&shared.cluster, request)?;
    session.look_after_client(
        wire.gone().map_err(|e| Error::io("could not look after the client", e))?,
    );
    wire.send(&Authentication::Ok);
    for (name, value) in session.reported_settings() {
        wire.parameter_status(&name, &value)?;
    }
    let backend = session.backend();
    backend.runs_here();
    let weak = Arc::downgrade(backend);
    base::log::prefix::set_transaction(weak);
    let application = backend.activity.lock().application_name.clone();
    log.authorized(&user, &database, &application, wire);
    wire.belongs_to(Arc::clone(backend));
    inside.enter(backend, wire.stream(), wire.ending())?;
    wire.send(&BackendKeyData::new(backend.pid, SecretKey::I32(shared.secret(backend.pid))));
    let _ = wire.stream().set_read_timeout(None);
    base::log::prefix::set_application(&application);
    base::log::prefix::set_command("idle");
    log.ready();
    Ok(Some((inside, session)))
}

fn read(wire: &mut Wire) -> Result<Option<Frontend>> {
    match wire.read() {
        Ok(message) => Ok(Some(message)),
        Err(ReadError::Closed | ReadError::TimedOut) => Ok(None),
        Err(
            ReadError::Protocol(error)
            | ReadError::Failed(error)
            | ReadError::Garbled { error, .. },
        ) => Err(error.into()),
    }
}

/// Does the client open with a TLS handshake, without asking first?
fn begins_with_tls(wire: &Wire) -> bool {
    const HANDSHAKE_RECORD: u8 = 0x16;
    let mut first = [0];
    matches!(wire.stream().peek(&mut first), Ok(1)) && first[0] == HANDSHAKE_RECORD
}

/// Runs the handshake. On failure the log says why; the connection is of no more use.
fn encrypt(wire: &mut Wire, shared: &Shared) -> bool {
    let Some(acceptor) = shared.tls.acceptor() else { return false };
    let done = acceptor
        .connection()
        .map_err(std::io::Error::other)
        .and_then(|connection| wire.encrypt(connection));
    if let Err(error) = &done {
        base::log!("could not accept SSL connection: {error}");
    }
    wire.set_end_point(acceptor.end_point());
    done.is_ok()
}

/// Answers encryption requests and cancel requests, up to the startup packet.
fn negotiate(wire: &mut Wire, shared: &Shared) -> Result<Option<Startup>> {
    if begins_with_tls(wire) {
        if !encrypt(wire, shared) {
            return Ok(None);
        }
        // A client that speaks first must name the protocol: some other protocol's client is not to be talked into ours.
        if !wire.tls().is_some_and(tls::agreed_on_protocol) {
            base::log!(
                "received direct SSL connection request without ALPN protocol negotiation extension"
            );
            return Ok(None);
        }
        wire.context.awaiting_frontend_ssl = false;
    }
    loop {
        match read(wire)? {
            None => return Ok(None),
            Some(Frontend::SslNegotiation(SslNegotiationMetaMessage::None)) => {
                wire.context.awaiting_frontend_ssl = false;
            }
            Some(Frontend::SslNegotiation(SslNegotiationMetaMessage::PostgresSsl(_)))
                if shared.tls.acceptor().is_some() =>
            {
                // What came before the handshake may be another's: it must not count as encrypted.
                if wire.has_input() {
                    let mut error = SqlError::new(
                        SqlState::PROTOCOL_VIOLATION,
                        "received unencrypted data after SSL request",
                    );
                    error.detail = Some("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.".to_owned());
                    return Err(error.into());
                }
                wire.send_raw(b"S");
                wire.flush()?;
                if !encrypt(wire, shared) {
                    return Ok(None);
                }
                wire.context.awaiting_frontend_ssl = false;
            }
            Some(Frontend::SslNegotiation(_)) => {
                wire.send_raw(b"N");
                wire.flush()?;
            }
            Some(Frontend::CancelRequest(request)) => {
                if let SecretKey::I32(key) = request.secret_key {
                    shared.cancel(request.pid, key);
                }
                return Ok(None);
            }
            Some(Frontend::Startup(startup)) => {
                wire.context.awaiting_frontend_startup = false;
                return Ok(Some(startup));
            }
            Some(_) => bail!(PROTOCOL_VIOLATION, "expected a startup packet"),
        }
    }
}

fn connect_request(startup: &Startup, wire: &Wire) -> Result<ConnectRequest> {
    let mut user = None;
    let mut database = None;
    let mut settings = Vec::new();
    for (name, value) in &startup.parameters {
        match name.as_str() {
            "user" => user = Some(value.clone()),
            "database" => database = Some(value.clone()),
            "options" => settings.extend(command_line_settings(value)?),
            "replication" => {
                if !matches!(value.as_str(), "false" | "off" | "no" | "0") {
                    return Err(Error::unsupported("a replication connection"));
                }
            }
            name if name.starts_with("_pq_.") => {}
            name => settings.push((name.to_owned(), value.clone())),
        }
    }
    let Some(user) = user.filter(|u| !u.is_empty()) else {
        bail!(
            INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet"
        );
    };
    let database = database.filter(|d| !d.is_empty()).unwrap_or_else(|| user.clone());
    Ok(ConnectRequest {
        user,
        database,
        settings,
        peer: wire.stream().peer_addr().ok(),
        tls: wire.tls().map(tls::describe),
    })
}

/// `-c name=value` and `--name=value` from the startup packet's options.
fn command_line_settings(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = options.split_ascii_whitespace();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next()
        } else {
            word.strip_prefix("-c").or_else(|| word.strip_prefix("--"))
        };
        match assignment.and_then(|a| a.split_once('=')) {
            Some((name, value)) => settings.push((name.replace('-', "_"), value.to_owned())),
            None => bail!(
                PROTOCOL_VIOLATION,
                "invalid command-line argument for server process: {word}"
            ),
        }
    }
    Ok(settings)
}

const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Trust on loopback for roles without a password; SCRAM-SHA-256 for all others.
/// Which of them it was.
fn authenticate(wire: &mut Wire, shared: &Shared, user: &str) -> Result<&'static str> {
    let role = shared.cluster.login_role(user)?;
    let loopback = wire.stream().peer_addr().is_ok_and(|a| a.ip().is_loopback());
    let verifier = match &role {
        Some(role) => match role.password.as_deref().and_then(Verifier::parse) {
            Some(verifier) => verifier,
            None if loopback => return Ok("trust"),
            None => Verifier::nobody(),
        },
        None if loopback => return Ok("trust"), // Session::connect says that the role does not exist
        None => Verifier::nobody(),
    };
    let failed =
        || base::err!(INVALID_PASSWORD, "password authentication failed for user \"{user}\"");
    let end_point = wire.end_point().map(<[u8]>::to_vec);
    let mut mechanisms = Vec::new();
    if end_point.is_some() {
        mechanisms.push(SCRAM_PLUS.to_owned());
    }
    mechanisms.push(SCRAM.to_owned());
    wire.send(&Authentication::SASL(mechanisms));
    let (bound, first) = match read(wire)? {
        Some(Frontend::PasswordMessageFamily(m)) => sasl_initial(m).ok_or_else(failed)?,
        _ => return Err(failed()),
    };
    let binding = match (bound, end_point) {
        (true, Some(hash)) => Binding::EndPoint(hash),
        (true, None) => {
            bail!(PROTOCOL_VIOLATION, "client selected an invalid SASL authentication mechanism")
        }
        (false, Some(_)) => Binding::Declined,
        (false, None) => Binding::Impossible,
    };
    let exchange = Exchange::begin(verifier, &first, binding)?;
    wire.send(&Authentication::SASLContinue(Bytes::from(exchange.server_first().to_owned())));
    let last = match read(wire)? {
        Some(Frontend::PasswordMessageFamily(m)) => {
            m.into_sasl_response().map_err(|_| failed())?.data
        }
        _ => return Err(failed()),
    };
    match exchange.finish(&last)? {
        Some(server_final) => {
            wire.send(&Authentication::SASLFinal(Bytes::from(server_final)));
            Ok("scram-sha-256")
        }
        None => Err(failed()),
    }
}

/// Whether the client binds to the channel, and its first message.
fn sasl_initial(message: PasswordMessageFamily) -> Option<(bool, Vec<u8>)> {
    let initial = message.into_sasl_initial_response().ok()?;
    let bound = match initial.auth_method.as_str() {
        SCRAM => false,
        SCRAM_PLUS => true,
        _ => return None,
    };
    Some((bound, initial.data.unwrap_or_default().to_vec()))
}
