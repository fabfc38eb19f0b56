//! Waking a session that waits for its client, so that it goes on waiting afterwards.
//!
//! # Purpose
//! A session that has to end is woken by shutting its socket's read side down, once and for all: that costs those who wait nothing. One
//! that listens for notifications has to hear them and wait on. It waits for its socket and for its bell; others ring that.
//!
//! # Invariant
//! A bell that was rung stays rung until its session has looked: nothing is missed between looking for notifications and waiting.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A session's end of it.
pub(crate) struct Bell(UnixStream);

/// What others ring it by.
pub(crate) struct Rope(UnixStream);

/// What a wait ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The client has sent something, or is gone, or the session must end: a read tells.
    Input,
    /// The bell was rung.
    Rung,
    /// Nothing happened for so long.
    TimedOut,
}

/// A bell and its rope.
///
/// # Errors
/// No file descriptors.
pub(crate) fn hang() -> io::Result<(Bell, Rope)> {
    let (bell, rope) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    rope.set_nonblocking(true)?;
    Ok((Bell(bell), Rope(rope)))
}

impl Rope {
    /// Rings.
    pub(crate) fn pull(&self) {
        // Full: it has been rung often enough.
        let _ = (&self.0).write(&[1]);
    }
}

impl Bell {
    /// Waits until there is something to read from `socket` or the bell is rung, for `timeout` at most.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn wait(&self, socket: &TcpStream, timeout: Option<Duration>) -> io::Result<Woken> {
        let mut both = [PollFd::new(socket, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        match poll(&mut both, timeout.as_ref()) {
            Ok(0) => return Ok(Woken::TimedOut),
            Ok(_) => {}
            // It is looked again; the caller counts the time.
            Err(rustix::io::Errno::INTR) => return Ok(Woken::Rung),
            Err(e) => return Err(e.into()),
        }
        // A client in a hurry is served first: what there is to hear it hears with the answer.
        if !both[0].revents().is_empty() {
            return Ok(Woken::Input);
        }
        self.still()?;
        Ok(Woken::Rung)
    }

    fn still(&self) -> io::Result<()> {
        let mut rings = [0; 64];
        loop {
            match (&self.0).read(&mut rings) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_ring_is_not_missed_and_input_comes_first() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let (bell, rope) = hang().unwrap();
        let soon = Some(Duration::from_millis(1));
        assert_eq!(bell.wait(&socket, soon).unwrap(), Woken::TimedOut);
        // Rung before the wait, more often than it can hold.
        for _ in 0..100_000 {
            rope.pull();
        }
        assert_eq!(bell.wait(&socket, None).unwrap(), Woken::Rung);
        assert_eq!(bell.wait(&socket, soon).unwrap(), Woken::TimedOut);
        rope.pull();
        client.write_all(b"x").unwrap();
        assert_eq!(bell.wait(&socket, None).unwrap(), Woken::Input);
        (&socket).read_exact(&mut [0]).unwrap();
        assert_eq!(bell.wait(&socket, None).unwrap(), Woken::Rung);
        std::thread::scope(|s| {
            s.spawn(|| rope.pull());
            assert_eq!(bell.wait(&socket, None).unwrap(), Woken::Rung);
        });
        // How a session is told to end.
        socket.shutdown(std::net::Shutdown::Read).unwrap();
        assert_eq!(bell.wait(&socket, None).unwrap(), Woken::Input);
    }
}
