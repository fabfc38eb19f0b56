//! Accepting connections, and stopping.
//!
//! # Invariants
//! Clients, let in or not yet, hold no more than [`Shared::seats`] connections: else whoever opens sockets and says nothing leaves the
//! server without descriptors for its tables and its log, which it does not survive.
//! A session is let in ([`Shared::let_in`]) before it exists and leaves when nothing is left of it: [`Server::stop`] lets nobody in any more and
//! waits for all that are, so that nothing is written after it.

use crate::bell::Rope;
use crate::connection;
use crate::tls::Tls;
use base::sync::{self, CancelReason, Rank};
use base::{Error, Result, bail};
use sha2::{Digest, Sha256};
use sql::cluster::{Cluster, Wake};
use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use txn::Backend;

#[cfg(test)]
mod tests;

/// What wakes a session that waits for its client.
struct Waker {
    /// Its read side is shut down when the session must end.
    socket: TcpStream,
    /// Set then: it does not wait for a client that does not read.
    ending: Arc<AtomicBool>,
    /// How many bytes of its key it has told its client.
    key_bytes: usize,
    /// Rung when there is a notification; only who listens has one.
    rope: Option<Rope>,
}

/// The sessions there are, and are to be.
#[derive(Default)]
struct Sessions {
    /// Nobody is let in any more.
    closed: bool,
    /// How many have been let in and not left.
    inside: usize,
    /// What wakes each of them when it waits for its client, by its number.
    wakers: HashMap<i32, Waker>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) tls: Arc<Tls>,
    stopping: AtomicBool,
    sessions: sync::Mutex<Sessions>,
    /// Somebody has left.
    changed: sync::Condvar,
    /// How many connections there are, and may be.
    seated: AtomicUsize,
    seats: usize,
    /// Cancel keys are derived from this and the session's number.
    secret: [u8; 32],
}

impl Shared {
    pub(crate) fn accepting(&self) -> bool {
        !self.stopping.load(Ordering::SeqCst)
    }

    /// The key of session `pid`, of which its client is told a part or all: nobody can tell one session's from another's.
    pub(crate) fn key(&self, pid: i32) -> [u8; 32] {
        let hash = Sha256::new().chain_update(self.secret).chain_update(pid.to_be_bytes());
        hash.finalize().into()
    }

    /// The salt of a role that has no password: the same each time, as those have that have one.
    pub(crate) fn salt_for(&self, role: &str) -> [u8; 16] {
        let hash = Sha256::new().chain_update(self.secret).chain_update(b"salt").chain_update(role);
        let hash: [u8; 32] = hash.finalize().into();
        std::array::from_fn(|i| hash[i])
    }

    /// A client asks for session `pid`'s statement to be cancelled.
    pub(crate) fn cancel(&self, pid: i32, shown: &[u8]) {
        let told = self.sessions.lock().wakers.get(&pid).map(|waker| waker.key_bytes);
        let Some(told) = told else { return };
        // All of it is looked at, wherever it differs: how long that takes tells nothing.
        let key = self.key(pid);
        let differ = key[..told].iter().zip(shown).fold(0, |differ, (a, b)| differ | (a ^ b));
        if told == shown.len()
            && differ == 0
            && let Some(backend) = self.cluster.backends().by_pid(pid)
        {
            backend.interrupt(CancelReason::UserRequest);
        }
    }

    /// A place for a session that is about to be made; [`Server::stop`] waits until it is given back.
    ///
    /// # Errors
    /// `57P03`: the server is stopping.
    pub(crate) fn let_in(self: &Arc<Self>) -> Result<Inside> {
        let mut sessions = self.sessions.lock();
        if sessions.closed {
            bail!(CANNOT_CONNECT_NOW, "the database system is shutting down");
        }
        sessions.inside += 1;
        drop(sessions);
        Ok(Inside { shared: Arc::clone(self), pid: None })
    }

    /// Session `pid` hears its bell from now on.
    pub(crate) fn tie(&self, pid: i32, rope: Rope) {
        if let Some(waker) = self.sessions.lock().wakers.get_mut(&pid) {
            waker.rope = Some(rope);
        }
    }

    /// Each accept thread waits for a connection: gives it one.
    fn knock(addresses: &[SocketAddr]) {
        for address in addresses {
            let ip = match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => {
                    "127.0.0.1".parse().unwrap_or(address.ip())
                }
                ip => ip,
            };
            let target = SocketAddr::new(ip, address.port());
            let _ = TcpStream::connect_timeout(&target, Duration::from_secs(1));
        }
    }

    /// Ends session `pid`'s wait for input: it then looks at its cancel flag, or hears what there is and waits on.
    fn wake(&self, pid: i32, why: Wake) {
        if let Some(waker) = self.sessions.lock().wakers.get(&pid) {
            match (why, &waker.rope) {
                (Wake::End, _) => {
                    waker.ending.store(true, Ordering::SeqCst);
                    let _ = waker.socket.shutdown(Shutdown::Read);
                }
                (Wake::Hear, Some(rope)) => rope.pull(),
                // It has not waited yet since it listens, and looks before it does.
                (Wake::Hear, None) => {}
            }
        }
    }
}

/// A session's place among those that a stopping server waits for; dropped when nothing is left of the session.
pub(crate) struct Inside {
    shared: Arc<Shared>,
    /// Its number, once it has one.
    pid: Option<i32>,
}

impl Inside {
    /// The session of `backend` is there, and `stream` its client, which will be told so much of its key: it can be woken from now on. One
    /// that comes while the server stops has missed being told to end.
    ///
    /// # Errors
    /// No descriptor: who cannot be woken does not end when told to.
    pub(crate) fn enter(
        &mut self,
        backend: &Backend,
        stream: &TcpStream,
        ending: &Arc<AtomicBool>,
        key_bytes: usize,
    ) -> Result<()> {
        let socket = stream
            .try_clone()
            .map_err(|e| Error::io("could not duplicate the client's socket", e))?;
        let waker = Waker { socket, ending: Arc::clone(ending), key_bytes, rope: None };
        let mut sessions = self.shared.sessions.lock();
        sessions.wakers.insert(backend.pid, waker);
        self.pid = Some(backend.pid);
        let closed = sessions.closed;
        drop(sessions);
        if closed {
            backend.interrupt(CancelReason::Shutdown);
            self.shared.wake(backend.pid, Wake::End);
        }
        Ok(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions.lock();
        sessions.inside -= 1;
        if let Some(pid) = self.pid {
            sessions.wakers.remove(&pid);
        }
        drop(sessions);
        self.shared.changed.notify_all();
    }
}

/// Two for each session, as PostgreSQL has it: there are those that are not let in yet. What they hold open leaves the other half of the
/// descriptors to relations' files, and some to the log and to sorts.
fn seats(sessions_max: i64, open_files_max: u64) -> usize {
    /// A socket twice, and what rings for who listens.
    const EACH: u64 = 4;
    const OTHERS: u64 = 32;
    const LEAST: u64 = 8;
    let wanted = 2 * (u64::try_from(sessions_max).unwrap_or(1) + 8);
    let room = (open_files_max / 2).saturating_sub(OTHERS) / EACH;
    usize::try_from(wanted.min(room.max(LEAST))).unwrap_or(usize::MAX)
}

/// How many files and sockets the process may have open.
fn open_files_max() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A connection's place among those that there may be.
struct Seat(Arc<Shared>);

impl Seat {
    fn take(shared: &Arc<Shared>) -> Option<Seat> {
        let seat = Seat(Arc::clone(shared));
        (shared.seated.fetch_add(1, Ordering::SeqCst) < shared.seats).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.seated.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A bound socket.
pub struct Listener {
    sockets: Vec<TcpListener>,
}

impl Listener {
    /// Binds `listen_addresses` and `port`.
    ///
    /// # Errors
    /// A port in use, an address that is not ours.
    pub fn bind(addresses: &str, port: u16) -> Result<Listener> {
        let mut sockets = Vec::new();
        for address in addresses.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let host = match address {
                "*" | "0.0.0.0" => "0.0.0.0",
                "localhost" => "127.0.0.1",
                other => other,
            };
            let Ok(ip) = host.parse::<IpAddr>() else {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "could not translate host name \"{address}\" to address"
                );
            };
            let socket = TcpListener::bind(SocketAddr::new(ip, port))
                .map_err(|e| Error::io(format!("could not listen on {ip}, port {port}"), e))?;
            sockets.push(socket);
        }
        if sockets.is_empty() {
            bail!(INVALID_PARAMETER_VALUE, "no address to listen on: listen_addresses is empty");
        }
        Ok(Listener { sockets })
    }

    /// True if every address is a loopback address.
    pub fn is_loopback(&self) -> bool {
        self.sockets.iter().all(|s| s.local_addr().is_ok_and(|a| a.ip().is_loopback()))
    }

    /// The addresses bound.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|s| s.local_addr().ok()).collect()
    }
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Accepts connections to `cluster` on `listener`, encrypted by `tls` where a client asks for it.
    ///
    /// # Errors
    /// An address that is not loopback while a role that can log in has no password; no threads.
    pub fn start(listener: Listener, cluster: Arc<Cluster>, tls: Arc<Tls>) -> Result<Server> {
        if !listener.is_loopback()
            && let Some(role) = cluster.login_role_without_password()?
        {
            bail!(
                INVALID_PASSWORD,
                "will not listen on an address other than loopback while role \"{role}\" can log in without a password"
            );
        }
        let addresses = listener.addresses();
        let seats = seats(cluster.settings().int("max_connections"), open_files_max());
        let shared = Arc::new(Shared {
            cluster,
            tls,
            stopping: AtomicBool::new(false),
            sessions: sync::Mutex::new(Rank(5), Sessions::default()),
            changed: sync::Condvar::new(),
            seated: AtomicUsize::new(0),
            seats,
            secret: sql::cancel_secret(),
        });
        let waker = Arc::downgrade(&shared);
        shared.cluster.on_wake(Box::new(move |pid, why| {
            if let Some(shared) = waker.upgrade() {
                shared.wake(pid, why);
            }
        }));
        let mut threads = Vec::new();
        for socket in listener.sockets {
            let shared = Arc::clone(&shared);
            let thread = sync::spawn("accept", move || accept(&socket, &shared))
                .map_err(|e| Error::io("could not start a thread", e))?;
            threads.push(thread);
        }
        Ok(Server { shared, addresses, threads })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Fast shutdown: no new connections, sessions' transactions abort, all threads end. The cluster is
    /// the caller's to close.
    pub fn stop(self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Who comes in before this is told here or waited for; who enters later tells itself.
        self.shared.sessions.lock().closed = true;
        for backend in self.shared.cluster.backends().all() {
            backend.interrupt(CancelReason::Shutdown);
        }
        let pids: Vec<i32> = self.shared.sessions.lock().wakers.keys().copied().collect();
        for pid in pids {
            self.shared.wake(pid, Wake::End);
        }
        Shared::knock(&self.addresses);
        for thread in self.threads {
            // Without descriptors to spare that could not be done; sessions that end leave some.
            while !thread.is_finished() {
                std::thread::sleep(PAUSE.min(Duration::from_millis(5)));
                Shared::knock(&self.addresses);
            }
            let _ = thread.join();
        }
        let mut sessions = self.shared.sessions.lock();
        while sessions.inside > 0 {
            sessions.wait(&self.shared.changed);
        }
    }
}

/// How long to wait when a connection can't be accepted: it stays in the queue, and would be refused again at once.
const PAUSE: Duration = Duration::from_millis(100);

fn accept(socket: &TcpListener, shared: &Arc<Shared>) {
    // What was said of the connections that could not be accepted since the last one that was.
    let mut told = None;
    loop {
        let stream = match socket.accept() {
            Ok((stream, _)) => {
                told = None;
                stream
            }
            Err(e) => {
                if !shared.accepting() {
                    return;
                }
                if told.replace(e.kind()) != Some(e.kind()) {
                    base::log!("could not accept new connection: {e}");
                }
                // Of its own doing is only a connection that was given up before.
                if e.kind() != std::io::ErrorKind::ConnectionAborted {
                    std::thread::sleep(PAUSE);
                }
                continue;
            }
        };
        if !shared.accepting() {
            return;
        }
        let Some(seat) = Seat::take(shared) else {
            connection::refuse(stream);
            continue;
        };
        let session = move || connection::run(stream, &seat.0);
        let started = sync::spawn("session", move || buffer::keeping(session));
        if let Err(e) = started {
            base::log!("could not start a thread for a new connection: {e}");
        }
    }
}
