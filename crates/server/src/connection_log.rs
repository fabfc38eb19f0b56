//! What the log says of a connection: `log_connections`, `log_disconnections`.
//!
//! # Differs from PostgreSQL
//! There is no pg_hba.conf: which of its lines let a client in is not said. A connection has the server's number until it is a session.

use crate::wire::Wire;
use base::settings::ServerSettings;
use std::time::{Duration, Instant};

/// What `log_connections` asks for.
#[derive(Clone, Copy, Default)]
struct Wanted {
    receipt: bool,
    authentication: bool,
    authorization: bool,
    setup: bool,
}

impl Wanted {
    fn of(setting: &str) -> Wanted {
        let mut wanted = Wanted::default();
        for word in setting.split(',').map(|w| w.trim().to_ascii_lowercase()) {
            let all = word == "all";
            // What the setting was as a Boolean.
            let most = all || matches!(word.as_str(), "on" | "true" | "yes" | "1");
            wanted.receipt |= most || word == "receipt";
            wanted.authentication |= most || word == "authentication";
            wanted.authorization |= most || word == "authorization";
            wanted.setup |= all || word == "setup_durations";
        }
        wanted
    }
}

/// One connection.
pub(crate) struct ConnectionLog {
    wanted: Wanted,
    begun: Instant,
    authenticated: Duration,
    host: String,
    port: u16,
    /// Of a session: its role and database.
    who: Option<(String, String)>,
}

impl ConnectionLog {
    /// A client has come.
    pub(crate) fn received(wire: &Wire, settings: &ServerSettings) -> ConnectionLog {
        let peer = wire.stream().peer_addr().ok();
        let log = ConnectionLog {
            wanted: Wanted::of(&settings.string("log_connections")),
            begun: Instant::now(),
            authenticated: Duration::ZERO,
            host: peer.map(|p| p.ip().to_string()).unwrap_or_default(),
            port: peer.map(|p| p.port()).unwrap_or_default(),
            who: None,
        };
        if log.wanted.receipt {
            base::log!("connection received: host={} port={}", log.host, log.port);
        }
        log
    }

    /// It is who it says; `method` as in pg_hba.conf.
    pub(crate) fn authenticated(&mut self, user: &str, method: &str) {
        if self.wanted.authentication {
            let what = if method == "trust" { "user" } else { "identity" };
            base::log!("connection authenticated: {what}=\"{user}\" method={method}");
        }
        self.authenticated = self.begun.elapsed();
    }

    /// It is a session.
    pub(crate) fn authorized(
        &mut self,
        user: &str,
        database: &str,
        application: &str,
        wire: &Wire,
    ) {
        self.who = Some((user.to_owned(), database.to_owned()));
        if !self.wanted.authorization {
            return;
        }
        let mut line = format!("connection authorized: user={user} database={database}");
        if !application.is_empty() {
            line.push_str(&format!(" application_name={application}"));
        }
        if let Some(tls) = wire.tls().map(crate::tls::describe) {
            line.push_str(&format!(
                " SSL enabled (protocol={}, cipher={}, bits={})",
                tls.version, tls.cipher, tls.bits
            ));
        }
        base::log!("{line}");
    }

    /// It may begin.
    pub(crate) fn ready(&self) {
        if self.wanted.setup {
            let ms = |time: Duration| time.as_secs_f64() * 1000.0;
            base::log!(
                "connection ready: setup total={:.3} ms, fork=0.000 ms, authentication={:.3} ms",
                ms(self.begun.elapsed()),
                ms(self.authenticated)
            );
        }
    }

    /// It is over.
    pub(crate) fn ended(&self, settings: &ServerSettings) {
        let Some((user, database)) =
            self.who.as_ref().filter(|_| settings.bool("log_disconnections"))
        else {
            return;
        };
        let time = self.begun.elapsed();
        let seconds = time.as_secs();
        base::log!(
            "disconnection: session time: {}:{:02}:{:02}.{:03} user={user} database={database} host={} port={}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            time.subsec_millis(),
            self.host,
            self.port
        );
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn words_of_the_setting() {
        let of = |text| {
            let w = Wanted::of(text);
            [w.receipt, w.authentication, w.authorization, w.setup]
        };
        assert_eq!(of(""), [false; 4]);
        assert_eq!(of("off"), [false; 4]);
        assert_eq!(of("on"), [true, true, true, false]);
        assert_eq!(of("all"), [true; 4]);
        assert_eq!(of("receipt, Setup_Durations"), [true, false, false, true]);
    }
}
