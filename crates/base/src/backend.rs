//! What each thread is, for the statistics of I/O: of relations' pages and of the log.

use std::cell::Cell;

/// Who does the I/O (`pg_stat_io.backend_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum BackendType {
    /// A session.
    #[default]
    ClientBackend,
    /// Starts autovacuum workers.
    AutovacuumLauncher,
    /// Vacuums.
    AutovacuumWorker,
    /// A helper of a session or of the server.
    BackgroundWorker,
    /// Writes pages that will soon be evicted.
    BackgroundWriter,
    /// Writes checkpoints.
    Checkpointer,
    /// Write-behind, which writes for others.
    IoWorker,
    /// The server when it runs without sessions.
    StandaloneBackend,
    /// Recovery.
    Startup,
    /// Sends WAL.
    WalSender,
    /// Receives WAL.
    WalReceiver,
    /// Writes WAL in the background.
    WalWriter,
    /// Keeps replication slots in step with another server's: there is none here.
    SlotsyncWorker,
    /// Sums WAL up for incremental backups: there is none here.
    WalSummarizer,
}

impl BackendType {
    /// Every type.
    pub const ALL: [BackendType; 14] = [
        BackendType::ClientBackend,
        BackendType::AutovacuumLauncher,
        BackendType::AutovacuumWorker,
        BackendType::BackgroundWorker,
        BackendType::BackgroundWriter,
        BackendType::Checkpointer,
        BackendType::IoWorker,
        BackendType::StandaloneBackend,
        BackendType::Startup,
        BackendType::WalSender,
        BackendType::WalReceiver,
        BackendType::WalWriter,
        BackendType::SlotsyncWorker,
        BackendType::WalSummarizer,
    ];
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            BackendType::ClientBackend => "client backend",
            BackendType::AutovacuumLauncher => "autovacuum launcher",
            BackendType::AutovacuumWorker => "autovacuum worker",
            BackendType::BackgroundWorker => "background worker",
            BackendType::BackgroundWriter => "background writer",
            BackendType::Checkpointer => "checkpointer",
            BackendType::IoWorker => "io worker",
            BackendType::StandaloneBackend => "standalone backend",
            BackendType::Startup => "startup",
            BackendType::WalSender => "walsender",
            BackendType::WalReceiver => "walreceiver",
            BackendType::WalWriter => "walwriter",
            BackendType::SlotsyncWorker => "slotsync worker",
            BackendType::WalSummarizer => "walsummarizer",
        }
    }
}

thread_local!(static TYPE: Cell<BackendType> = const { Cell::new(BackendType::ClientBackend) });

/// What this thread is.
pub fn my_type() -> BackendType {
    TYPE.get()
}

/// Says what this thread is, and gives what it was. (`buffer::set_backend_type` calls this, and is what to call: the
/// pool counts by thread.)
pub fn set_type(backend_type: BackendType) -> BackendType {
    TYPE.replace(backend_type)
}
