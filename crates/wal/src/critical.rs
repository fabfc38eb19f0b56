//! Changing a page and logging it, as one; and whatever else may not be left half done once it is in the log.

use base::log::Level;

/// Lives from the first byte changed on a page until its record is in the log. A panic in between would leave a page
/// that no record describes, for others to read and to write: it ends the process, and recovery makes the page whole.
#[derive(Debug)]
pub struct CriticalSection(&'static str);

impl CriticalSection {
    /// It begins here, and ends where the value is dropped.
    pub fn enter() -> CriticalSection {
        CriticalSection::during("a page and its record were being made")
    }

    /// As [`CriticalSection::enter`], around something else, which the log's line names.
    pub fn during(what: &'static str) -> CriticalSection {
        CriticalSection(what)
    }
}

impl Drop for CriticalSection {
    fn drop(&mut self) {
        if std::thread::panicking() {
            base::log::write(Level::Panic, &format!("panic while {}", self.0));
            std::process::abort();
        }
    }
}
