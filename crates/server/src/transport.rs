//! The bytes of a connection: a socket, with or without TLS over it.
//!
//! # Invariants
//! Only the session's own thread reads and writes. Other threads hold clones of the socket and do nothing with them but shut its read
//! side down, which under TLS too ends the wait for input.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConnection;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use txn::Backend;

/// So long a client may read nothing before a write looks whether its session has to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The other side sends nothing any more. Elsewhere a break only is told.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

/// A connection's bytes.
pub(crate) struct Transport {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// The session has to end: a client that does not read is not waited for.
    ending: Arc<AtomicBool>,
    /// Whose session it is: shown to wait for a client that does not read.
    backend: Option<Arc<Backend>>,
    /// A write has failed half way: what came after it would make no sense.
    broken: bool,
}

impl Transport {
    pub(crate) fn new(socket: TcpStream) -> Transport {
        // It fails for a timeout of nothing only.
        let _ = socket.set_write_timeout(Some(PATIENCE));
        Transport { socket, tls: None, ending: Arc::default(), backend: None, broken: false }
    }

    /// The session that it is the client of.
    pub(crate) fn belongs_to(&mut self, backend: Arc<Backend>) {
        self.backend = Some(backend);
    }

    /// To be set by whoever ends the session.
    pub(crate) fn ending(&self) -> &Arc<AtomicBool> {
        &self.ending
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// What tells whether the client has closed its side, or the connection is broken. What it sent before may still be unread.
    ///
    /// # Errors
    /// No file descriptors.
    pub(crate) fn gone(&self) -> Result<sql::timer::Question> {
        let socket = self.socket.try_clone()?;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        Ok(Arc::new(move || {
            let mut it = [PollFd::new(&socket, CLOSED)];
            // A break is told unasked.
            poll(&mut it, Some(&now)).is_ok_and(|n| n > 0)
        }))
    }

    /// The TLS connection, if there is one.
    pub(crate) fn tls(&self) -> Option<&ServerConnection> {
        self.tls.as_deref()
    }

    /// Runs the handshake, which may last until `deadline`; all further bytes are encrypted.
    ///
    /// # Errors
    /// A peer that does not speak TLS or with which nothing could be agreed on; it has been told.
    pub(crate) fn encrypt(
        &mut self,
        mut tls: ServerConnection,
        deadline: Option<Instant>,
    ) -> Result<()> {
        // A large answer is handed over whole, and leaves at once.
        tls.set_buffer_limit(None);
        while tls.is_handshaking() {
            if let Err(e) = tls.complete_io(&mut Hurried { socket: &self.socket, deadline }) {
                // An alert says why; the peer may be gone already.
                let _ = tls.write_tls(&mut self.socket);
                return Err(e);
            }
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Decrypted bytes that no read has returned yet.
    pub(crate) fn has_pending(&mut self) -> bool {
        // Not a read of the socket: an empty buffer takes nothing in.
        self.tls.as_mut().is_some_and(|tls| {
            tls.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
        })
    }

    /// Some bytes; none at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
            match tls.reader().read(buffer) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                // A peer that closed without saying so closed all the same.
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            if let Err(e) = tls.process_new_packets() {
                let _ = tls.write_tls(&mut self.socket);
                return Err(Error::new(ErrorKind::InvalidData, e));
            }
            // A key update asks for an answer.
            if tls.wants_write() {
                let mut waited = false;
                let written = self.write_encrypted(&mut waited);
                self.waits_no_longer(waited);
                written.map_err(|_| Error::from(ErrorKind::BrokenPipe))?;
            }
        }
    }

    /// All of `bytes`, on their way when this returns.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        if self.broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let written = self.write_patiently(bytes);
        self.broken = written.is_err();
        written
    }

    fn write_patiently(&mut self, bytes: &[u8]) -> Result<()> {
        let mut waited = false;
        let written = self.write_waiting(bytes, &mut waited);
        self.waits_no_longer(waited);
        written
    }

    fn waits_no_longer(&self, waited: bool) {
        if waited {
            self.shows_wait(None);
        }
    }

    /// Shows what its session waits for.
    pub(crate) fn shows_wait(&self, event: Option<(&'static str, &'static str)>) {
        if let Some(backend) = &self.backend {
            backend.set_wait_event(event);
        }
    }

    fn write_waiting(&mut self, mut bytes: &[u8], waited: &mut bool) -> Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.write_encrypted(waited);
        }
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) => self.go_on_after(e, waited)?,
            }
        }
        Ok(())
    }

    /// What is encrypted and has not left yet.
    fn write_encrypted(&mut self, waited: &mut bool) -> Result<()> {
        while let Some(tls) = &mut self.tls
            && tls.wants_write()
        {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) => self.go_on_after(e, waited)?,
            }
        }
        Ok(())
    }

    /// A client that is slow is waited for, unless the session has to end.
    fn go_on_after(&self, error: Error, waited: &mut bool) -> Result<()> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut if !self.ending.load(Ordering::SeqCst) => {
                *waited = true;
                self.shows_wait(Some(("Client", "ClientWrite")));
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// A socket that is read until a deadline at most, however many reads that takes.
struct Hurried<'a> {
    socket: &'a TcpStream,
    deadline: Option<Instant>,
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left))?;
        }
        self.socket.read(buffer)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.socket.write(bytes)
    }
    fn flush(&mut self) -> Result<()> {
        self.socket.flush()
    }
}

impl Drop for Transport {
    /// Says goodbye, so that the peer can tell an end from a cut.
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls
            && !self.broken
        {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_has_to_end_does_not_wait_for_a_client_that_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut transport = Transport::new(listener.accept().unwrap().0);
        let ending = Arc::clone(transport.ending());
        let much = vec![b'x'; 64 << 20];
        // One that is slow gets everything.
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| transport.write_all(&much));
            std::thread::sleep(PATIENCE * 3 / 2);
            let mut read = vec![0; much.len()];
            client.read_exact(&mut read).unwrap();
            writer.join().unwrap().unwrap();
            assert!(read == much);
        });
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| transport.write_all(&much));
            ending.store(true, Ordering::SeqCst);
            assert!(writer.join().unwrap().is_err());
        });
        // Nothing follows what was cut off.
        assert_eq!(transport.write_all(b"FATAL").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
