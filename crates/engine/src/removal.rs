//! Giving back the space of removed files, off everybody's path.
//!
//! # Purpose
//! To take a name out of a folder costs microseconds; to free what the file held can cost the file system
//! milliseconds (with discards, say), and syncs of the WAL wait behind it. So a removed file is kept open until
//! a thread of its own closes it, when no more removals are coming.
//!
//! # Invariants
//! At most [`FileCloser::room`] files are held; beyond that the remover closes its own.
//!
//! # Crash cases
//! The system frees what a dead process had open.

use base::sync::{Arc, Condvar, Mutex, Rank, now};
use disk::File;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// No removal for so long: now is a good time.
const QUIET: Duration = Duration::from_millis(300);

#[derive(Default)]
struct Queue {
    files: VecDeque<Arc<dyn File>>,
    last_arrival: Option<Instant>,
    running: bool,
    stopping: bool,
}

/// Holds removed files open until they can be closed at leisure.
pub struct FileCloser {
    queue: Mutex<Queue>,
    wake: Condvar,
    room: usize,
}

impl FileCloser {
    /// One that holds up to `room` files once [`FileCloser::run`] is running, and none before.
    pub fn new(room: usize) -> FileCloser {
        FileCloser { queue: Mutex::new(Rank(270), Queue::default()), wake: Condvar::new(), room }
    }

    /// How many files it holds at most.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Will files be taken? Else opening them to be handed over is for nothing.
    pub fn is_running(&self) -> bool {
        self.queue.lock().running
    }

    /// Takes removed files over.
    pub fn take(&self, files: Vec<Arc<dyn File>>) {
        let mut queue = self.queue.lock();
        if !queue.running || queue.files.len() + files.len() > self.room {
            drop(queue);
            drop(files);
            return;
        }
        queue.last_arrival = Some(now());
        // One that has files waits for a time, and looks again then: no need to wake it for each.
        let asleep = queue.files.is_empty();
        queue.files.extend(files);
        if asleep || queue.files.len() > self.room / 2 {
            self.wake.notify_one();
        }
    }

    /// From now on files are taken; [`FileCloser::run`] follows.
    pub fn start(&self) {
        let mut queue = self.queue.lock();
        queue.running = true;
        queue.stopping = false;
    }

    /// The thread's work.
    pub fn run(&self) {
        while let Some(file) = self.next() {
            drop(file);
        }
    }

    /// The next file to close, when its time has come; `None` at the end.
    fn next(&self) -> Option<Arc<dyn File>> {
        let mut queue = self.queue.lock();
        while !queue.stopping {
            if queue.files.is_empty() {
                queue.wait(&self.wake);
                continue;
            }
            let since = queue.last_arrival.map_or(QUIET, |at| at.elapsed());
            if since >= QUIET || queue.files.len() > self.room / 2 {
                break;
            }
            queue.wait_for(&self.wake, QUIET - since);
        }
        queue.files.pop_front()
    }

    /// Ends the thread; what it still holds is closed by then.
    pub fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.running = false;
        queue.stopping = true;
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Disk, OpenMode};

    #[test]
    fn files_are_taken_only_while_it_runs() {
        let disk = disk::sim::SimDisk::new(1);
        let open = || disk.open("f", OpenMode::Create).unwrap();
        let closer = Arc::new(FileCloser::new(2));
        let file = open();
        closer.take(vec![Arc::clone(&file)]);
        assert_eq!(Arc::strong_count(&file), 1);
        closer.start();
        closer.take(vec![Arc::clone(&file), Arc::clone(&file)]);
        assert_eq!(Arc::strong_count(&file), 3);
        // No room.
        closer.take(vec![Arc::clone(&file)]);
        assert_eq!(Arc::strong_count(&file), 3);
        let thread = {
            let closer = Arc::clone(&closer);
            std::thread::spawn(move || closer.run())
        };
        closer.stop();
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&file), 1);
    }
}
