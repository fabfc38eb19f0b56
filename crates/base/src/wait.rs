//! What a thread waits for that is no lock: files, pins, having something to do. Told to whoever asks its session
//! (`pg_stat_activity.wait_event`).
//!
//! # Invariants
//! Noting a wait is two stores in memory of the thread's own: it may be done around every read of a page.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

macro_rules! events {
    ($($name:ident: $type:literal, $event:literal, $what:literal;)*) => {
        /// A kind of wait, PostgreSQL's.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "named after what is shown")]
        pub enum WaitEvent {
            $($name,)*
        }
        impl WaitEvent {
            /// Every kind.
            pub const ALL: &[WaitEvent] = &[$(WaitEvent::$name,)*];
            /// Type, name and description.
            pub fn told(self) -> [&'static str; 3] {
                match self {
                    $(WaitEvent::$name => [$type, $event, $what],)*
                }
            }
        }
    };
}

events! {
    AutovacuumMain: "Activity", "AutovacuumMain", "Waiting in main loop of autovacuum launcher process";
    BgWriterMain: "Activity", "BgwriterMain", "Waiting in main loop of background writer process";
    CheckpointerMain: "Activity", "CheckpointerMain", "Waiting in main loop of checkpointer process";
    WalWriterMain: "Activity", "WalWriterMain", "Waiting in main loop of WAL writer process";
    BufferPin: "BufferPin", "BufferPin", "Waiting to acquire an exclusive pin on a buffer";
    DataFileExtend: "IO", "DataFileExtend", "Waiting for a relation data file to be extended";
    DataFileRead: "IO", "DataFileRead", "Waiting for a read from a relation data file";
    DataFileSync: "IO", "DataFileSync", "Waiting for changes to a relation data file to reach durable storage";
    DataFileWrite: "IO", "DataFileWrite", "Waiting for a write to a relation data file";
    WalSync: "IO", "WalSync", "Waiting for a WAL file to reach durable storage";
    WalWrite: "IO", "WalWrite", "Waiting for a write to a WAL file";
    CheckpointDone: "IPC", "CheckpointDone", "Waiting for a checkpoint to complete";
    WalWriteLock: "LWLock", "WALWrite", "Waiting for WAL buffers to be written to disk";
    CheckpointWriteDelay: "Timeout", "CheckpointWriteDelay", "Waiting between writes while performing a checkpoint";
}

/// Where a thread notes what it waits for.
#[derive(Default, Debug)]
pub struct WaitNote(AtomicU8);

impl WaitNote {
    /// What it waits for now.
    pub fn now(&self) -> Option<WaitEvent> {
        let n = self.0.load(Ordering::Relaxed);
        WaitEvent::ALL.get(usize::from(n.checked_sub(1)?)).copied()
    }
}

thread_local!(static NOTE: RefCell<Option<Arc<WaitNote>>> = const { RefCell::new(None) });

/// This thread notes its waits there from now on.
pub fn note_in(note: Arc<WaitNote>) {
    NOTE.set(Some(note));
}

/// This thread waits until this is dropped.
#[must_use]
pub struct Waiting(u8);

/// This thread waits for `event`, until the result is dropped.
pub fn at(event: WaitEvent) -> Waiting {
    Waiting(replace(event as u8 + 1))
}

fn replace(value: u8) -> u8 {
    // A thread that is ending has none any more. Only this thread writes: no read-modify-write is needed.
    let noted = NOTE.try_with(|note| {
        let note = note.borrow();
        let note = note.as_ref()?;
        let before = note.0.load(Ordering::Relaxed);
        note.0.store(value, Ordering::Relaxed);
        Some(before)
    });
    noted.ok().flatten().unwrap_or(0)
}

impl Drop for Waiting {
    fn drop(&mut self) {
        replace(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_within_a_wait_gives_way_to_it_again() {
        let note = Arc::new(WaitNote::default());
        drop(at(WaitEvent::DataFileRead));
        note_in(Arc::clone(&note));
        assert_eq!(note.now(), None);
        let outer = at(WaitEvent::CheckpointDone);
        let inner = at(WaitEvent::CheckpointWriteDelay);
        assert_eq!(note.now(), Some(WaitEvent::CheckpointWriteDelay));
        drop(inner);
        assert_eq!(note.now(), Some(WaitEvent::CheckpointDone));
        drop(outer);
        assert_eq!(note.now(), None);
    }
}
