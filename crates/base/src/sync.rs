//! Locks with ranks, threads and the clock.
//!
//! # Invariants
//! A thread that holds a lock of rank *r* takes only locks of a rank greater than *r*. Debug builds
//! check it at every lock; docs/LOCKS.md lists the ranks. Page latches are not in this order: the
//! rules for them are index before heap, left before right, and lower block first (docs/LOCKS.md).

pub use parking_lot::{Condvar, WaitTimeoutResult};
use std::ops::{Deref, DerefMut};
pub use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A lock's place in the order: taken only while every lock held has a smaller one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank(pub u16);

#[cfg(debug_assertions)]
mod order {
    use super::Rank;
    use std::cell::RefCell;
    thread_local!(static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) });
    pub fn enter(rank: Rank) {
        HELD.with_borrow_mut(|held| {
            if let Some(worst) = held.iter().max()
                && !std::thread::panicking()
            {
                assert!(*worst < rank, "lock order: taking {rank:?} while holding {held:?}");
            }
            held.push(rank);
        });
    }
    pub fn leave(rank: Rank) {
        HELD.with_borrow_mut(|held| {
            if let Some(i) = held.iter().rposition(|r| *r == rank) {
                held.remove(i);
            }
        });
    }
}
#[cfg(not(debug_assertions))]
mod order {
    use super::Rank;
    #[inline(always)]
    pub fn enter(_: Rank) {}
    #[inline(always)]
    pub fn leave(_: Rank) {}
}

/// A mutex with a rank; not poisoned by a panic.
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    inner: parking_lot::Mutex<T>,
}

/// Holds a [`Mutex`].
pub struct MutexGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// A mutex of rank `rank`.
    pub const fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank, inner: parking_lot::Mutex::new(value) }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, waiting for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        order::enter(self.rank);
        MutexGuard { rank: self.rank, inner: self.inner.lock() }
    }
    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = self.inner.try_lock()?;
        order::enter(self.rank);
        Some(MutexGuard { rank: self.rank, inner })
    }
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Waits on `condvar`, the lock released meanwhile.
    pub fn wait(&mut self, condvar: &Condvar) {
        condvar.wait(&mut self.inner);
    }
    /// Waits on `condvar` for at most `timeout`; true if it timed out.
    pub fn wait_for(&mut self, condvar: &Condvar, timeout: Duration) -> bool {
        condvar.wait_for(&mut self.inner, timeout).timed_out()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        order::leave(self.rank);
    }
}

/// A reader-writer lock with a rank; not poisoned by a panic.
pub struct RwLock<T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLock<T>,
}

/// Holds a [`RwLock`] for reading.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLockReadGuard<'a, T>,
}

/// Holds a [`RwLock`] for writing.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: parking_lot::RwLockWriteGuard<'a, T>,
}

impl<T> RwLock<T> {
    /// A lock of rank `rank`.
    pub const fn new(rank: Rank, value: T) -> RwLock<T> {
        RwLock { rank, inner: parking_lot::RwLock::new(value) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes the lock for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        order::enter(self.rank);
        RwLockReadGuard { rank: self.rank, inner: self.inner.read() }
    }
    /// Takes the lock for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        order::enter(self.rank);
        RwLockWriteGuard { rank: self.rank, inner: self.inner.write() }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        order::leave(self.rank);
    }
}
impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}
impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        order::leave(self.rank);
    }
}

/// Starts a named thread.
///
/// # Errors
/// When the system has no thread to give.
pub fn spawn<F, T>(name: &str, f: F) -> std::io::Result<std::thread::JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // Deep expressions recurse: the depth limits are made for this size.
    std::thread::Builder::new().name(name.to_owned()).stack_size(16 << 20).spawn(f)
}

/// Microseconds since 2000-01-01 00:00 UTC: PostgreSQL's timestamptz.
pub fn now_timestamp_us() -> i64 {
    const UNIX_TO_2000_US: i64 = 946_684_800_000_000;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX) - UNIX_TO_2000_US
}

/// The monotonic clock.
pub fn now() -> Instant {
    Instant::now()
}

/// A flag that another thread raises and long work polls.
#[derive(Default, Debug)]
pub struct CancelFlag(std::sync::atomic::AtomicU8);

/// Why work should stop: the work alone, or, from `TransactionTimeout` on, its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CancelReason {
    /// The user asked (57014, "canceling statement due to user request").
    UserRequest = 1,
    /// `statement_timeout` ran out.
    StatementTimeout = 2,
    /// A conflicting lock request cancels an autovacuum.
    AutovacuumYield = 3,
    /// `transaction_timeout` ran out (25P04).
    TransactionTimeout = 4,
    /// The client is gone (08006): `client_connection_check_interval`.
    ClientLost = 5,
    /// The server is stopping (57P01).
    Shutdown = 6,
    /// `pg_terminate_backend` (57P01).
    Terminate = 7,
}

impl CancelFlag {
    /// Raises the flag; of two reasons the graver stays.
    pub fn raise(&self, reason: CancelReason) {
        self.0.fetch_max(reason as u8, std::sync::atomic::Ordering::SeqCst);
    }
    /// Lowers the flag after the work that was to stop; not if its thread is to end, however late that is asked.
    pub fn clear(&self) {
        use std::sync::atomic::Ordering::{Relaxed, SeqCst};
        let threads = CancelReason::TransactionTimeout as u8;
        let stopped = |reason| (1..threads).contains(&reason).then_some(0);
        // None: it is not raised, or stays so.
        let _ = self.0.fetch_update(SeqCst, Relaxed, stopped);
    }
    /// Lowers the flag if it was raised for this reason. True if it was.
    pub fn withdraw(&self, reason: CancelReason) -> bool {
        use std::sync::atomic::Ordering::{Relaxed, SeqCst};
        self.0.compare_exchange(reason as u8, 0, SeqCst, Relaxed).is_ok()
    }
    /// The reason, if raised.
    pub fn reason(&self) -> Option<CancelReason> {
        Some(match self.0.load(std::sync::atomic::Ordering::Relaxed) {
            1 => CancelReason::UserRequest,
            2 => CancelReason::StatementTimeout,
            3 => CancelReason::AutovacuumYield,
            4 => CancelReason::TransactionTimeout,
            5 => CancelReason::ClientLost,
            6 => CancelReason::Shutdown,
            7 => CancelReason::Terminate,
            _ => return None,
        })
    }
    /// Fails with PostgreSQL's error if raised.
    ///
    /// # Errors
    /// `57014`, `25P04` or `57P01`.
    #[inline]
    pub fn check(&self) -> crate::Result<()> {
        match self.reason() {
            None => Ok(()),
            Some(reason) => Err(reason.error()),
        }
    }
}

impl CancelReason {
    /// The error that the statement ends with.
    pub fn error(self) -> crate::Error {
        match self {
            CancelReason::UserRequest => {
                crate::err!(QUERY_CANCELED, "canceling statement due to user request")
            }
            CancelReason::StatementTimeout => {
                crate::err!(QUERY_CANCELED, "canceling statement due to statement timeout")
            }
            CancelReason::AutovacuumYield => {
                crate::err!(QUERY_CANCELED, "canceling autovacuum task")
            }
            CancelReason::TransactionTimeout => {
                crate::err!(
                    TRANSACTION_TIMEOUT,
                    "terminating connection due to transaction timeout"
                )
            }
            CancelReason::ClientLost => {
                crate::err!(CONNECTION_FAILURE, "connection to client lost")
            }
            CancelReason::Shutdown | CancelReason::Terminate => {
                crate::err!(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CancelFlag, CancelReason};

    /// Who is to end is not made to go on by a lesser request that comes later, nor by the end of the statement.
    #[test]
    fn a_graver_reason_stays() {
        use CancelReason::{AutovacuumYield, Shutdown, StatementTimeout, Terminate, UserRequest};
        for lesser in [UserRequest, StatementTimeout, AutovacuumYield] {
            let flag = CancelFlag::default();
            flag.raise(lesser);
            assert_eq!(flag.reason(), Some(lesser));
            flag.clear();
            assert_eq!(flag.reason(), None);
            for grave in [Shutdown, Terminate] {
                let flag = CancelFlag::default();
                flag.raise(lesser);
                flag.raise(grave);
                flag.raise(lesser);
                assert_eq!(flag.reason(), Some(grave), "{lesser:?}");
                flag.clear();
                assert_eq!(flag.reason(), Some(grave), "{lesser:?}");
            }
        }
    }
}
