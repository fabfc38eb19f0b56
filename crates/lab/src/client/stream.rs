//! A connection's bytes, plain or encrypted.

use super::Target;
use super::message::Encoder;
use crate::Result;
use crate::tls::Mode;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The code of an SSLRequest.
const SSL_REQUEST: i32 = 80_877_103;

/// Bytes to and from a server.
#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects, and encrypts as the target wants it.
    pub fn connect(target: &Target) -> Result<Stream> {
        let address = (target.host.as_str(), target.port)
            .to_socket_addrs()?
            .next()
            .ok_or("the host has no address")?;
        let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        socket.set_nodelay(true)?;
        let Some(config) = target.tls.config()? else { return Ok(Stream::Plain(socket)) };
        let mut request = Encoder::default();
        request.i32(SSL_REQUEST);
        socket.write_all(&request.untagged())?;
        // One byte and no more: what comes after it is the handshake's.
        let mut answer = [0];
        socket.read_exact(&mut answer)?;
        match &answer {
            b"S" => {}
            b"N" if target.tls.mode == Mode::Prefer => return Ok(Stream::Plain(socket)),
            b"N" => return Err("server does not support SSL, but SSL was required".into()),
            other => return Err(format!("an answer of {other:?} to the request for TLS").into()),
        }
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| format!("{:?} is no host's name for TLS", target.host))?;
        let client = ClientConnection::new(Arc::new(config), name)?;
        let mut stream = StreamOwned::new(client, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// How long a read waits.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    /// Whole: records that are made but not sent go too.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}
