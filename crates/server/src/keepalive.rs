//! What the system does about a client that is silent or gone: `tcp_keepalives_*`, `tcp_user_timeout`.
//!
//! # Differs from PostgreSQL
//! 0 is shown as 0, not as what the system has. Going back to 0 within a session sets what the connection had when it began.

use rustix::net::sockopt;
use std::net::TcpStream;
use std::time::Duration;

/// The values in force on a connection.
pub(crate) struct Keepalive {
    wanted: [u32; 4],
    /// What the system had.
    at_first: [u32; 4],
}

impl Keepalive {
    /// The system looks after the connection, in its own time.
    pub(crate) fn new(stream: &TcpStream) -> Keepalive {
        let seconds = |found: rustix::io::Result<Duration>| {
            found.map_or(0, |d| u32::try_from(d.as_secs()).unwrap_or(0))
        };
        if let Err(error) = sockopt::set_socket_keepalive(stream, true) {
            told("SO_KEEPALIVE", error);
        }
        let at_first = [
            seconds(sockopt::tcp_keepidle(stream)),
            seconds(sockopt::tcp_keepintvl(stream)),
            sockopt::tcp_keepcnt(stream).unwrap_or(0),
            0,
        ];
        Keepalive { wanted: [0; 4], at_first }
    }

    /// Sets what has changed. What the system does not take is logged, as PostgreSQL does.
    pub(crate) fn set(&mut self, stream: &TcpStream, wanted: [u32; 4]) {
        for (i, wanted) in wanted.into_iter().enumerate() {
            if self.wanted[i] == wanted {
                continue;
            }
            self.wanted[i] = wanted;
            let value = if wanted == 0 { self.at_first[i] } else { wanted };
            let seconds = Duration::from_secs(u64::from(value));
            let (name, done) = match i {
                0 => ("TCP_KEEPIDLE", sockopt::set_tcp_keepidle(stream, seconds)),
                1 => ("TCP_KEEPINTVL", sockopt::set_tcp_keepintvl(stream, seconds)),
                2 => ("TCP_KEEPCNT", sockopt::set_tcp_keepcnt(stream, value)),
                _ => ("TCP_USER_TIMEOUT", sockopt::set_tcp_user_timeout(stream, value)),
            };
            if let Err(error) = done {
                told(name, error);
            }
        }
    }
}

fn told(name: &str, error: rustix::io::Errno) {
    base::log!("setsockopt({name}) failed: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_system_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let had = sockopt::tcp_keepcnt(&stream).unwrap();
        let mut keepalive = Keepalive::new(&stream);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        keepalive.set(&stream, [60, 7, 3, 1500]);
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap().as_secs(), 60);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap().as_secs(), 7);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), 3);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 1500);
        keepalive.set(&stream, [0; 4]);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), had);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 0);
    }
}
