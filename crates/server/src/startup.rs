//! From an open socket to a session: negotiation, authentication, the first parameters.

use crate::connection_log::ConnectionLog;
use crate::listen::{Inside, Shared};
use crate::startup_packet::{Opening, Version};
use crate::tls;
use crate::wire::{ReadError, Wire};
use base::{Error, Result, SqlError, SqlState, bail};
use bytes::Bytes;
use pgwire::messages::PgWireFrontendMessage as Frontend;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, PasswordMessageFamily, SecretKey,
};
use sql::client::Client as _;
use sql::scram::{Binding, Exchange, Verifier};
use sql::session::{ConnectRequest, Session};
use std::sync::Arc;

/// What a client says of itself: names and values.
type Parameters = Vec<(String, String)>;

/// The session and its place, or None when the connection was only a cancel request or closed early.
pub(crate) fn start(
    wire: &mut Wire,
    shared: &Arc<Shared>,
    log: &mut ConnectionLog,
) -> Result<Option<(Inside, Session)>> {
    let timeout = shared.cluster.settings().int("authentication_timeout").max(1);
    let timeout = std::time::Duration::from_secs(u64::try_from(timeout).unwrap_or(60));
    wire.hurry(timeout);
    let _ = wire.stream().set_read_timeout(Some(timeout));
    let Some((version, parameters)) = negotiate(wire, shared)? else { return Ok(None) };
    let version = agree(wire, version, &parameters)?;
    let request = connect_request(parameters, wire)?;
    base::log::prefix::set_peer(&request.user, &request.database);
    base::log::prefix::set_command("authentication");
    if !shared.accepting() {
        bail!(CANNOT_CONNECT_NOW, "the database system is shutting down");
    }
    let Some(method) = authenticate(wire, shared, &request.user)? else { return Ok(None) };
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
    let told = version.key_bytes();
    inside.enter(backend, wire.stream(), wire.ending(), told)?;
    let key = Bytes::copy_from_slice(&shared.key(backend.pid)[..told]);
    wire.send(&BackendKeyData::new(backend.pid, SecretKey::Bytes(key)));
    wire.let_in();
    base::log::prefix::set_application(&application);
    base::log::prefix::set_command("idle");
    log.ready();
    Ok(Some((inside, session)))
}

/// The version that is spoken with a client which wants `wanted`; it is told where that is another one, or options are not known.
fn agree(wire: &mut Wire, wanted: Version, parameters: &Parameters) -> Result<Version> {
    let newest = Version::NEWEST;
    if wanted.major != newest.major {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "unsupported frontend protocol {}.{}: server supports {}.0 to {}.{}",
            wanted.major,
            wanted.minor,
            newest.major,
            newest.major,
            newest.minor
        );
    }
    let spoken = wanted.min(newest);
    let options = parameters.iter().map(|(name, _)| name).filter(|n| n.starts_with("_pq_."));
    let unknown: Vec<String> = options.cloned().collect();
    if spoken != wanted || !unknown.is_empty() {
        wire.send(&NegotiateProtocolVersion::new(spoken.number(), unknown));
    }
    Ok(spoken)
}

fn error_of(error: ReadError) -> Result<()> {
    match error {
        ReadError::Closed => Ok(()),
        ReadError::TimedOut => {
            bail!(QUERY_CANCELED, "canceling authentication due to timeout")
        }
        ReadError::Protocol(error)
        | ReadError::Failed(error)
        | ReadError::Garbled { error, .. } => Err(error.into()),
    }
}

/// What the client says of its password; None if it has left: many ask for it only when they know that it is wanted.
fn read(wire: &mut Wire) -> Result<Option<Bytes>> {
    match wire.read() {
        Ok(Frontend::PasswordMessageFamily(PasswordMessageFamily::Raw(body))) => {
            Ok(Some(body.freeze()))
        }
        Ok(_) => bail!(PROTOCOL_VIOLATION, "expected password response"),
        Err(error) => error_of(error).map(|()| None),
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
fn negotiate(wire: &mut Wire, shared: &Shared) -> Result<Option<(Version, Parameters)>> {
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
    }
    loop {
        let opening = match wire.opening() {
            Ok(opening) => opening,
            // Nobody has said who he is: nobody is told.
            Err(ReadError::TimedOut) => return Ok(None),
            Err(error) => return error_of(error).map(|()| None),
        };
        match opening {
            Opening::Tls if wire.tls().is_none() && shared.tls.acceptor().is_some() => {
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
            }
            Opening::Tls | Opening::Gss => {
                wire.send_raw(b"N");
                wire.flush()?;
            }
            Opening::Cancel(pid, key) => {
                shared.cancel(pid, &key);
                return Ok(None);
            }
            Opening::Startup(version, parameters) => return Ok(Some((version, parameters))),
        }
    }
}

fn connect_request(parameters: Parameters, wire: &Wire) -> Result<ConnectRequest> {
    let mut user = None;
    let mut database = None;
    // What is said by itself counts more than the command line.
    let (mut settings, mut by_name) = (Vec::new(), Vec::new());
    for (name, value) in parameters {
        match name.as_str() {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "options" => settings.extend(command_line_settings(&value)?),
            "replication" => {
                if !matches!(value.as_str(), "false" | "off" | "no" | "0") {
                    return Err(Error::unsupported("a replication connection"));
                }
            }
            name if name.starts_with("_pq_.") => {}
            _ => by_name.push((name, value)),
        }
    }
    settings.append(&mut by_name);
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

/// The words of the startup packet's options: a backslash makes a space, or another backslash, part of one.
fn words(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = options.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// `-c name=value` and `--name=value` from the startup packet's options.
fn command_line_settings(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = words(options).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--") {
            Some(rest) => Some(rest.to_owned()),
            None if word == "-c" => words.next(),
            None => word.strip_prefix("-c").map(str::to_owned),
        };
        match assignment {
            Some(assignment) => match assignment.split_once('=') {
                Some((name, value)) => settings.push((name.replace('-', "_"), value.to_owned())),
                None if word.starts_with("--") => {
                    bail!(SYNTAX_ERROR, "--{assignment} requires a value")
                }
                None => bail!(SYNTAX_ERROR, "-c {assignment} requires a value"),
            },
            None => {
                bail!(SYNTAX_ERROR, "invalid command-line argument for server process: {word}")
            }
        }
    }
    Ok(settings)
}

const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Trust on loopback for roles without a password; SCRAM-SHA-256 for all others.
/// Which of them it was; None if the client has left.
fn authenticate(wire: &mut Wire, shared: &Shared, user: &str) -> Result<Option<&'static str>> {
    let role = shared.cluster.login_role(user)?;
    let loopback = wire.stream().peer_addr().is_ok_and(|a| a.ip().is_loopback());
    let verifier = match &role {
        Some(role) => match role.password.as_deref().and_then(Verifier::parse) {
            Some(verifier) => verifier,
            None if loopback => return Ok(Some("trust")),
            None => Verifier::nobody(&shared.salt_for(user)),
        },
        None if loopback => return Ok(Some("trust")), // Session::connect says that the role does not exist
        None => Verifier::nobody(&shared.salt_for(user)),
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
    let Some(initial) = read(wire)? else { return Ok(None) };
    let (bound, first) = sasl_initial(&initial)?;
    let binding = match (bound, end_point) {
        (true, Some(hash)) => Binding::EndPoint(hash),
        (true, None) => return Err(no_such_mechanism()),
        (false, Some(_)) => Binding::Declined,
        (false, None) => Binding::Impossible,
    };
    let exchange = Exchange::begin(verifier, first, binding)?;
    wire.send(&Authentication::SASLContinue(Bytes::from(exchange.server_first().to_owned())));
    let Some(last) = read(wire)? else { return Ok(None) };
    match exchange.finish(&last)? {
        Some(server_final) => {
            wire.send(&Authentication::SASLFinal(Bytes::from(server_final)));
            Ok(Some("scram-sha-256"))
        }
        None => Err(failed()),
    }
}

fn no_such_mechanism() -> Error {
    base::err!(PROTOCOL_VIOLATION, "client selected an invalid SASL authentication mechanism")
}

/// Whether the client binds to the channel, and its first message: a mechanism's name, a length, as many bytes.
fn sasl_initial(message: &[u8]) -> Result<(bool, &[u8])> {
    let malformed = || base::err!(PROTOCOL_VIOLATION, "invalid message format");
    let end = message.iter().position(|b| *b == 0).ok_or_else(malformed)?;
    let (name, rest) = (&message[..end], &message[end + 1..]);
    let (length, first) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
    let length = i32::from_be_bytes(*length).max(0);
    if usize::try_from(length) != Ok(first.len()) {
        return Err(malformed());
    }
    match name {
        n if n == SCRAM.as_bytes() => Ok((false, first)),
        n if n == SCRAM_PLUS.as_bytes() => Ok((true, first)),
        _ => Err(no_such_mechanism()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words_and_words_are_settings() {
        assert_eq!(words(r" -c  a=1\ 2\\3 --b-c=\ "), ["-c", r"a=1 2\3", "--b-c= "]);
        let pairs = |options| command_line_settings(options).map_err(|e| e.to_string());
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        assert_eq!(
            pairs(r"-c datestyle=ISO,\ MDY --geqo=off -cwork-mem=1=2"),
            Ok(vec![pair("datestyle", "ISO, MDY"), pair("geqo", "off"), pair("work_mem", "1=2")])
        );
        assert_eq!(pairs("-c"), Err("invalid command-line argument for server process: -c".into()));
        assert_eq!(pairs("--geqo"), Err("--geqo requires a value".into()));
        assert_eq!(pairs("-c geqo"), Err("-c geqo requires a value".into()));
    }

    #[test]
    fn what_a_password_message_says_of_its_length_is_checked() {
        let say = |length: i32, rest: &[u8]| {
            [b"SCRAM-SHA-256\0", &length.to_be_bytes()[..], rest].concat()
        };
        assert_eq!(sasl_initial(&say(3, b"abc")).unwrap(), (false, &b"abc"[..]));
        assert_eq!(sasl_initial(&say(-1, b"")).unwrap(), (false, &b""[..]));
        for (length, rest) in [(3, &b"ab"[..]), (2, b"abc"), (-7, b"abc"), (i32::MAX, b"")] {
            assert!(sasl_initial(&say(length, rest)).is_err(), "{length}");
        }
        for wrong in [&b""[..], b"SCRAM-SHA-256", b"SCRAM-SHA-256\0\0\0", b"X\0\0\0\0\0"] {
            assert!(sasl_initial(wrong).is_err());
        }
    }
}
