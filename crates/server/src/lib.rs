//! `server`: the wire protocol, sessions' threads, authentication.
//!
//! # Purpose
//! [`listen::Listener`] accepts connections and gives each a thread; [`connection`] runs the protocol on it,
//! start to end, over a blocking socket: messages are decoded and encoded by `pgwire`'s codecs,
//! everything a message asks for is done by [`sql::session::Session`]. A client that asks for encryption gets it from [`tls`].
//!
//! # Differs from the design
//! No asynchronous runtime: `pgwire`'s message codecs alone, over blocking sockets, need no `tokio`, and what is
//! sent leaves in one write before the next read (docs/decisions/0003).

#![forbid(unsafe_code)]

mod bell;
pub mod connection;
mod connection_log;
mod keepalive;
pub mod listen;
mod recode;
mod startup;
mod startup_packet;
pub mod tls;
mod transport;
mod wire;

pub use listen::{Listener, Server};
pub use tls::Tls;
