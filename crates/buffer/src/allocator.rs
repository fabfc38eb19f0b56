//! How threads share the memory that the process has allocated beside the pool.
//!
//! # Purpose
//! glibc gives threads arenas to allocate from, up to eight a core, and what is free in one is of no use to a thread of another. A thread a
//! session makes the most of that: with a hundred sessions at work the process grew for as long as they worked, to several times
//! what it had in use (100 clients of pgbench: 323 MB after six minutes, and going on). No more threads run at once than there are cores, so
//! as many arenas do.
//!
//! What is freed in the midst of what is in use stays the process's, whole pages of it, until somebody asks for it to be given back: after a
//! statement on tens of thousands of tables that was as much as was in use.

/// At most so many arenas for all threads; to be said before there are others. Whoever sets `MALLOC_ARENA_MAX` knows better. False: it was left as it was.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn share_arenas(cores: usize) -> bool {
    if std::env::var_os("MALLOC_ARENA_MAX").is_some() {
        return false;
    }
    let most = libc::c_int::try_from(cores.max(2)).unwrap_or(libc::c_int::MAX);
    // SAFETY: sets a number of the allocator's own, under its lock.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, most) == 1 }
}

/// Gives pages back to the system on which nothing is allocated any more. Who allocates from an arena meanwhile waits until it has been gone
/// through: not to be done often.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() {
    // SAFETY: the allocator's own, under its locks.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do that by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

/// Other allocators have no such limit.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_arenas(_cores: usize) -> bool {
    false
}
