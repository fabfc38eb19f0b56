//! The bytes of a connection: a socket, with or without TLS over it.
//!
//! # Invariants
//! Only the session's own thread reads and writes. Other threads hold clones of the socket and do nothing with them but shut its read
//! side down, which under TLS too ends the wait for input.

use rustls::ServerConnection;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

/// A connection's bytes.
pub(crate) struct Transport {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
}

impl Transport {
    pub(crate) fn new(socket: TcpStream) -> Transport {
        Transport { socket, tls: None }
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The TLS connection, if there is one.
    pub(crate) fn tls(&self) -> Option<&ServerConnection> {
        self.tls.as_deref()
    }

    /// Runs the handshake; all further bytes are encrypted.
    ///
    /// # Errors
    /// A peer that does not speak TLS or with which nothing could be agreed on; it has been told.
    pub(crate) fn encrypt(&mut self, mut tls: ServerConnection) -> Result<()> {
        // A large answer is handed over whole, and leaves at once.
        tls.set_buffer_limit(None);
        while tls.is_handshaking() {
            if let Err(e) = tls.complete_io(&mut self.socket) {
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
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        loop {
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
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
    }

    /// All of `bytes`, on their way when this returns.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.write_all(bytes) };
        tls.writer().write_all(bytes)?;
        while tls.wants_write() {
            if tls.write_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl Drop for Transport {
    /// Says goodbye, so that the peer can tell an end from a cut.
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
    }
}
