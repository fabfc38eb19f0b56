//! How long a session's thread was ready to run and had no processor.
//!
//! # Purpose
//! A client waits from the moment its message is there, a statement's clock starts when the session's thread gets to see it.
//! Where a vacuum keeps the processors busy, that is where the time goes: without it the latency target of a vacuum
//! would look at quick statements while clients wait. The kernel counts it (`/proc/thread-self/schedstat`); where
//! it does not tell, nothing is added.
//!
//! # Invariants
//! The file is open only while somebody listens to latencies: reading it costs a system call at either end of a statement.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// One session's.
#[derive(Default)]
pub struct RunQueue {
    file: RefCell<Option<File>>,
    seen_us: Cell<u64>,
    waited_us: Cell<u64>,
}

impl RunQueue {
    /// A statement begins: what was waited since the last one ended, or began, was waited for this.
    pub fn begin(&self) {
        let first = self.file.borrow().is_none();
        let Some(now) = self.read() else { return };
        if !first {
            let more = now.saturating_sub(self.seen_us.get());
            self.waited_us.set(self.waited_us.get() + more);
        }
        self.seen_us.set(now);
    }

    /// It has ended: microseconds that were waited for it before it began.
    pub fn end(&self) -> u64 {
        if let Some(now) = self.read() {
            self.seen_us.set(now);
        }
        self.waited_us.replace(0)
    }

    /// Nobody listens.
    pub fn close(&self) {
        if self.file.borrow().is_some() {
            *self.file.borrow_mut() = None;
            self.waited_us.set(0);
        }
    }

    fn read(&self) -> Option<u64> {
        let mut file = self.file.borrow_mut();
        if file.is_none() {
            *file = File::open("/proc/thread-self/schedstat").ok();
        }
        let mut text = [0; 96];
        let n = file.as_ref()?.read_at(&mut text, 0).ok()?;
        waited_us(&text[..n])
    }
}

/// The second of the three numbers, nanoseconds, as microseconds.
fn waited_us(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    Some(text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_between_statements_counts_once() {
        assert_eq!(waited_us(b"2912330 31970 17\n"), Some(31));
        assert_eq!(waited_us(b""), None);
        let queue = RunQueue::default();
        queue.begin();
        // The first one does not know since when.
        assert_eq!(queue.end(), 0);
        queue.seen_us.set(0);
        queue.begin();
        let waited = queue.seen_us.get();
        assert_eq!(queue.end(), waited);
        assert_eq!(queue.end(), 0);
        queue.close();
        queue.begin();
        assert_eq!(queue.end(), 0);
    }
}
