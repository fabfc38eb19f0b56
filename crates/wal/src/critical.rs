//! Changing a page and logging it, as one.

use base::log::Level;

/// Lives from the first byte changed on a page until its record is in the log. A panic in between would leave a page
/// that no record describes, for others to read and to write: it ends the process, and recovery makes the page whole.
#[derive(Debug)]
pub struct CriticalSection(());

impl CriticalSection {
    /// It begins here, and ends where the value is dropped.
    pub fn enter() -> CriticalSection {
        CriticalSection(())
    }
}

impl Drop for CriticalSection {
    fn drop(&mut self) {
        if std::thread::panicking() {
            base::log::write(Level::Panic, "panic while a page and its record were being made");
            std::process::abort();
        }
    }
}
