//! The bytes of a simulated file: blocks shared between states until they differ.

use rand::RngExt;
use rand::rngs::SmallRng;
use std::sync::{Arc, LazyLock};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

#[derive(Clone, Default, Debug)]
pub(super) struct Content {
    len: u64,
    /// `None` is a hole.
    blocks: Vec<Option<Arc<[u8; BLOCK]>>>,
}

/// A change that was made and not synced.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

impl Content {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The space it takes.
    pub fn space(&self) -> u64 {
        self.blocks.iter().filter(|b| b.is_some()).count() as u64 * BLOCK as u64
    }

    /// The space that a write of the range would take in addition.
    pub fn space_for(&self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let first = offset / BLOCK as u64;
        let last = (offset + len - 1) / BLOCK as u64;
        (first..=last).filter(|b| self.blocks.get(*b as usize).is_none_or(Option::is_none)).count()
            as u64
            * BLOCK as u64
    }

    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let n = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < n {
            let at = offset as usize + done;
            let within = at % BLOCK;
            let part = (BLOCK - within).min(n - done);
            match self.blocks.get(at / BLOCK) {
                Some(Some(block)) => {
                    buf[done..done + part].copy_from_slice(&block[within..within + part]);
                }
                _ => buf[done..done + part].fill(0),
            }
            done += part;
        }
        n
    }

    /// Whole blocks of zeros are one block, shared: logs are full of them.
    fn zero_block(&mut self, number: usize) {
        static SHARED: LazyLock<Arc<[u8; BLOCK]>> = LazyLock::new(|| Arc::new(ZEROS));
        if number >= self.blocks.len() {
            self.blocks.resize(number + 1, None);
        }
        self.blocks[number] = Some(Arc::clone(&SHARED));
    }

    fn block(&mut self, number: usize) -> &mut [u8; BLOCK] {
        if number >= self.blocks.len() {
            self.blocks.resize(number + 1, None);
        }
        Arc::make_mut(self.blocks[number].get_or_insert_with(|| Arc::new([0; BLOCK])))
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let within = at % BLOCK;
            let part = (BLOCK - within).min(bytes.len() - done);
            let bytes_here = &bytes[done..done + part];
            if part == BLOCK && bytes_here == &ZEROS[..] {
                self.zero_block(at / BLOCK);
                done += part;
                continue;
            }
            self.block(at / BLOCK)[within..within + part].copy_from_slice(bytes_here);
            done += part;
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Takes space for the range, as zeros where nothing was.
    pub fn allocate(&mut self, offset: u64, len: u64) {
        if len > 0 {
            for number in offset / BLOCK as u64..=(offset + len - 1) / BLOCK as u64 {
                self.block(number as usize);
            }
            self.len = self.len.max(offset + len);
        }
    }

    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.blocks.truncate((len as usize).div_ceil(BLOCK));
            let within = len as usize % BLOCK;
            if within != 0
                && let Some(Some(block)) = self.blocks.last_mut()
            {
                Arc::make_mut(block)[within..].fill(0);
            }
        }
        self.len = len;
    }
}

impl Pending {
    /// The change as it is when all of it has reached the disk.
    pub fn apply(&self, content: &mut Content) {
        match self {
            Pending::Write { offset, bytes } => content.write(bytes, *offset),
            Pending::SetLen(len) => content.set_len(*len),
        }
    }

    /// Power is lost: `survival` percent of the sectors reach the disk.
    pub fn settle(&self, content: &mut Content, survival: u32, rng: &mut SmallRng) {
        match self {
            _ if survival == 0 => {}
            Pending::SetLen(len) => {
                if rng.random_range(0..100) < survival {
                    content.set_len(*len);
                }
            }
            Pending::Write { offset, bytes } => {
                // Often a write is there or not there whole.
                if rng.random_bool(0.5) {
                    if rng.random_range(0..100) < survival {
                        content.write(bytes, *offset);
                    }
                    return;
                }
                let mut at = 0;
                while at < bytes.len() {
                    let position = *offset as usize + at;
                    let part = (SECTOR - position % SECTOR).min(bytes.len() - at);
                    if rng.random_range(0..100) < survival {
                        content.write(&bytes[at..at + part], position as u64);
                    }
                    at += part;
                }
            }
        }
    }
}
