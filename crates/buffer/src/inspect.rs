//! What the pool holds, for `pg_buffercache`.

use crate::frame::{DIRTY, ONE_PIN, POISONED, STAGED, VALID, pins, usage};
use crate::pool::BufferPool;
use crate::stats::IoContext;
use base::{PageTag, Result};
use std::sync::atomic::Ordering;

/// A frame that holds a page.
#[derive(Clone, Copy, Debug)]
pub struct BufferInfo {
    /// The frame's number, from 1 as PostgreSQL's `bufferid`.
    pub buffer: u32,
    /// Its page.
    pub tag: PageTag,
    /// Changed since it was last written.
    pub dirty: bool,
    /// 0 to 5.
    pub usage_count: u8,
    /// Pins of others.
    pub pins: u32,
    /// In write-behind, not in shared_buffers.
    pub staged: bool,
    /// Left half changed by a panic.
    pub poisoned: bool,
}

/// What became of a page that was to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Evicted {
    /// Its frame is free now.
    pub evicted: bool,
    /// It was dirty, and has been written.
    pub flushed: bool,
}

impl BufferPool {
    /// Takes the page in frame `buffer` (from 1) out of the pool, written first if it is dirty. Left alone if it is pinned, on its way
    /// to or from the disk, or there is none.
    ///
    /// # Errors
    /// The disk's.
    pub fn evict(&self, buffer: u32) -> Result<Evicted> {
        let pool = self.inner();
        let n = buffer.wrapping_sub(1);
        let mut done = Evicted::default();
        if n as usize >= pool.frames.total {
            return Ok(done);
        }
        let frame = pool.frames.get(n);
        if !pool.pin_for_eviction(frame, u64::MAX) {
            return Ok(done);
        }
        if frame.load() & DIRTY != 0 {
            match pool.write_victim(n, IoContext::Normal) {
                Ok(true) => done.flushed = true,
                other => {
                    pool.unpin(n);
                    return other.map(|_| done);
                }
            }
        }
        if pool.evict_pinned(n).is_some() {
            pool.put_free(n);
            done.evicted = true;
        } else {
            pool.unpin(n);
        }
        Ok(done)
    }

    /// Calls `f` for every cached page; each as it is at its moment. Frames never used are not looked at.
    pub fn for_each_buffer(&self, mut f: impl FnMut(&BufferInfo)) {
        let pool = self.inner();
        for n in pool.frames.touched() {
            let frame = pool.frames.get(n);
            let mut state = frame.load();
            loop {
                if state & VALID == 0 {
                    break;
                }
                match frame.state.compare_exchange_weak(
                    state,
                    state + ONE_PIN,
                    Ordering::Acquire,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => state = now,
                }
            }
            if state & VALID == 0 {
                continue;
            }
            let (fork, block) = frame.place();
            // SAFETY: pinned just now.
            let relation = unsafe { frame.relation() }.id;
            let info = BufferInfo {
                buffer: n + 1,
                tag: PageTag { relation, fork, block },
                dirty: state & DIRTY != 0,
                usage_count: usage(state) as u8,
                pins: pins(state) as u32,
                staged: state & STAGED != 0,
                poisoned: state & POISONED != 0,
            };
            pool.unpin(n);
            f(&info);
        }
    }

    /// Nodes of block tables in use: their memory is 512 bytes each.
    pub fn table_nodes(&self) -> usize {
        self.inner().nodes.in_use()
    }

    /// Relations that it has an object for.
    pub fn known_relations(&self) -> usize {
        self.inner().known_relations(None).len()
    }
}
