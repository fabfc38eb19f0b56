//! An open file of the simulated disk.

use super::content::Pending;
use super::{Operation, State, crashed};
use crate::File;
use base::sync::Mutex;
use rand::RngExt;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is written whole or not at all.
const SECTOR: usize = 512;

pub(super) struct SimFile {
    state: Arc<Mutex<State>>,
    inode: usize,
    path: String,
    holds_lock: AtomicBool,
}

impl std::fmt::Debug for SimFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SimFile").field(&self.path).finish()
    }
}

impl SimFile {
    pub fn new(state: Arc<Mutex<State>>, inode: usize, path: &str) -> SimFile {
        SimFile { state, inode, path: path.to_owned(), holds_lock: AtomicBool::new(false) }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let dying = match state.change(Operation::Write, &self.path) {
            Ok(dying) => dying,
            Err(e) => {
                if !state.crashed {
                    self.write_part(&mut state, bytes, offset);
                }
                return Err(e);
            }
        };
        state.counts.writes += 1;
        state.counts.write_bytes += bytes.len() as u64;
        let more = state.inodes[self.inode].content.space_for(offset, bytes.len() as u64);
        if let Err(e) = state.take_space(more) {
            self.write_part(&mut state, bytes, offset);
            return Err(e);
        }
        self.put(&mut state, bytes, offset);
        if dying { Err(crashed()) } else { Ok(()) }
    }

    fn put(&self, state: &mut State, bytes: &[u8], offset: u64) {
        state.inodes[self.inode].content.write(bytes, offset);
        state.add_pending(self.inode, Pending::Write { offset, bytes: bytes.into() });
    }

    /// Of a write that fails some sectors are done, as far as there is room.
    fn write_part(&self, state: &mut State, bytes: &[u8], offset: u64) {
        let sectors = state.rng.random_range(0..=bytes.len() / SECTOR);
        let part = &bytes[..(sectors * SECTOR).min(bytes.len())];
        let more = state.inodes[self.inode].content.space_for(offset, part.len() as u64);
        if !part.is_empty() && state.take_space(more).is_ok() {
            self.put(state, part, offset);
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if self.holds_lock.load(Ordering::SeqCst) {
            self.state.lock().inodes[self.inode].locked = false;
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        state.fault(Operation::Read, &self.path)?;
        state.counts.reads += 1;
        Ok(state.inodes[self.inode].content.read(buf, offset))
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        state.fault(Operation::Read, &self.path)?;
        state.counts.reads += 1;
        let mut done = 0;
        for buf in bufs {
            let n = state.inodes[self.inode].content.read(buf, offset + done as u64);
            done += n;
            if n < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.write(&bufs.iter().map(|b| &**b).collect::<Vec<&[u8]>>().concat(), offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.counts.syncs += 1;
        match state.change(Operation::Sync, &self.path) {
            Ok(false) => {}
            Ok(true) => return Err(crashed()),
            Err(e) => {
                if !state.crashed {
                    state.inodes[self.inode].pending.clear();
                }
                return Err(e);
            }
        }
        let inode = &mut state.inodes[self.inode];
        for change in std::mem::take(&mut inode.pending) {
            change.apply(&mut inode.durable);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        if state.crashed {
            return Err(crashed());
        }
        Ok(state.inodes[self.inode].content.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let dying = state.change(Operation::Write, &self.path)?;
        let before = state.inodes[self.inode].content.space();
        state.inodes[self.inode].content.set_len(len);
        let after = state.inodes[self.inode].content.space();
        state.used = state.used.saturating_sub(before.saturating_sub(after));
        state.add_pending(self.inode, Pending::SetLen(len));
        if dying { Err(crashed()) } else { Ok(()) }
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let dying = state.change(Operation::Write, &self.path)?;
        let more = state.inodes[self.inode].content.space_for(offset, len);
        state.take_space(more)?;
        let content = &mut state.inodes[self.inode].content;
        let grows = offset + len > content.len();
        content.allocate(offset, len);
        let len = content.len();
        if grows {
            state.add_pending(self.inode, Pending::SetLen(len));
        }
        if dying { Err(crashed()) } else { Ok(()) }
    }

    fn will_need(&self, _offset: u64, len: u64) {
        let mut state = self.state.lock();
        state.counts.asks += 1;
        state.counts.asked_bytes += len;
    }

    fn start_writeback(&self, _offset: u64, len: u64) {
        let mut state = self.state.lock();
        state.counts.writebacks += 1;
        state.counts.writeback_bytes += len;
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.state.lock();
        if self.holds_lock.load(Ordering::SeqCst) {
            return Ok(true);
        }
        if state.inodes[self.inode].locked {
            return Ok(false);
        }
        state.inodes[self.inode].locked = true;
        self.holds_lock.store(true, Ordering::SeqCst);
        Ok(true)
    }
}
