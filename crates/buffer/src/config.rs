//! What a pool is told when it is made.

/// Sizes and switches of a [`BufferPool`](crate::BufferPool).
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// `shared_buffers`, in pages; at least 16.
    pub frames: usize,
    /// Write-behind's own pages, beside `frames` (32 MB by default).
    pub staging_frames: usize,
    /// The longest vectored read or write, in pages (`io_combine_limit`; 1 MiB by default).
    pub combine_pages: usize,
    /// Files kept open at once; beyond that one not lately used is closed. 0 is as many as the system lets the process
    /// have, less a reserve for connections; the process's soft limit is raised for it.
    pub open_files_max: usize,
    /// Whether the pool starts a thread for write-behind when it is first needed. Without it an
    /// operation that finds staging full writes it out itself, which tests can follow.
    pub write_behind_thread: bool,
}

impl PoolConfig {
    /// `frames` pages of shared buffers, everything else at its default.
    pub fn new(frames: usize) -> PoolConfig {
        PoolConfig {
            frames: frames.max(16),
            staging_frames: 4096,
            combine_pages: 128,
            open_files_max: 0,
            write_behind_thread: true,
        }
    }
}

/// Raises the process's limit of open files as far as it may, and says how many of them may be relations' files.
pub(crate) fn open_files_allowed() -> usize {
    const WANTED: libc::rlim_t = 65_536;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the struct it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 400;
    }
    let wanted = WANTED.min(limit.rlim_max);
    if limit.rlim_cur < wanted {
        let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max };
        // SAFETY: the call reads the struct it is given.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit.rlim_cur = wanted;
        }
    }
    (limit.rlim_cur / 2).clamp(16, 16_384) as usize
}

/// Whether a relation's changes outlive a crash, or its session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Persistence {
    /// Logged; written and synced by checkpoints.
    #[default]
    Permanent = 0,
    /// Not logged; written at a shutdown checkpoint; emptied after a crash.
    Unlogged = 1,
    /// Not logged, never synced, gone with its session.
    Temp = 2,
}

impl Persistence {
    pub(crate) fn from_number(n: u8) -> Persistence {
        match n {
            1 => Persistence::Unlogged,
            2 => Persistence::Temp,
            _ => Persistence::Permanent,
        }
    }
}
