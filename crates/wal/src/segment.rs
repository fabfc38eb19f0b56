//! Segment files: names, making, recycling.
//!
//! # Layout
//! `wal/TTTTTTTTHHHHHHHHLLLLLLLL`, in hexadecimal: timeline, then the segment's number in two halves,
//! PostgreSQL's way (256 segments of 16 MiB to the high half).
//!
//! # Crash cases
//! A segment is filled with zeros before it takes its name (or, when the log outruns the preparing
//! of segments, after; then a short file is just an end of the log). A recycled segment keeps its old
//! bytes: their checksums are for other positions.

use base::sync::{Mutex, Rank, now};
use base::{Error, GiveWay, Lsn, Manners, Result};
use disk::{Disk, File, OpenMode};
use std::sync::Arc;
use std::time::Duration;

/// Bytes in a segment file.
pub const SEGMENT_SIZE: u64 = 16 << 20;
const PER_HIGH: u64 = (1 << 32) / SEGMENT_SIZE;

/// The number of the segment that holds the byte at `lsn`.
pub fn segment_of(lsn: Lsn) -> u64 {
    lsn.0 / SEGMENT_SIZE
}

/// The file name of a segment.
pub fn segment_name(timeline: u32, number: u64) -> String {
    format!("{timeline:08X}{:08X}{:08X}", number / PER_HIGH, number % PER_HIGH)
}

/// The timeline and number in a file name.
pub(crate) fn parse_name(name: &str) -> Option<(u32, u64)> {
    if name.len() != 24 || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')) {
        return None;
    }
    let part = |i: usize| u32::from_str_radix(&name[i..i + 8], 16).ok();
    let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
    (u64::from(low) < PER_HIGH).then(|| (timeline, u64::from(high) * PER_HIGH + u64::from(low)))
}

/// What [`crate::Wal::recycle_before`] did.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct RecycleStats {
    /// Segments removed.
    pub removed: u64,
    /// Segments renamed, to be written again.
    pub recycled: u64,
}

static ZEROS: [u8; 1 << 17] = [0; 1 << 17];

pub(crate) struct Segments {
    pub disk: Arc<dyn Disk>,
    pub dir: String,
    pub timeline: u32,
    names: Mutex<Names>,
}

/// Whoever looks for, makes or renames a segment holds this, so that no segment is renamed over one
/// that has just been opened to be written.
struct Names {
    /// A rename may not be durable yet: nobody may count on what is written to that segment.
    unsynced: bool,
    /// All segments up to this one are there to be written.
    ready: u64,
}

impl Segments {
    pub fn new(disk: Arc<dyn Disk>, dir: &str, timeline: u32) -> Segments {
        // Who was here before may have died between a rename and its sync.
        let names = Mutex::new(Rank(620), Names { unsynced: true, ready: 0 });
        Segments { disk, dir: dir.to_owned(), timeline, names }
    }

    pub fn path(&self, number: u64) -> String {
        format!("{}/{}", self.dir, segment_name(self.timeline, number))
    }

    /// The numbers of the segments there, in order.
    pub fn list(&self) -> Result<Vec<u64>> {
        let names = self
            .disk
            .list(&self.dir)
            .map_err(|e| Error::io(format!("could not open directory \"{}\"", self.dir), e))?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|n| parse_name(n))
            .filter(|(timeline, _)| *timeline == self.timeline)
            .map(|(_, number)| number)
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub fn sync_dir(&self) -> Result<()> {
        self.disk
            .sync_dir(&self.dir)
            .map_err(|e| Error::io(format!("could not fsync file \"{}\"", self.dir), e))
    }

    /// Opens a segment, making it if it is not there; says so if it was made.
    pub fn open(&self, number: u64) -> Result<(Arc<dyn File>, Option<Made>)> {
        let path = self.path(number);
        let mut names = self.names.lock();
        names.ready = names.ready.max(number);
        if names.unsynced {
            self.sync_dir()?;
            names.unsynced = false;
        }
        let fail = |e| Error::io(format!("could not open file \"{path}\""), e);
        match self.disk.open(&path, OpenMode::Existing) {
            Ok(file) => {
                let len = file.len().map_err(fail)?;
                if len < SEGMENT_SIZE {
                    fill(&*file, len, &mut GiveWay::never())
                        .map_err(|e| Error::io(format!("could not write to file \"{path}\""), e))?;
                }
                Ok((file, None))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let file = self.disk.open(&path, OpenMode::Create).map_err(fail)?;
                let started = now();
                fill(&*file, 0, &mut GiveWay::never())
                    .map_err(|e| Error::io(format!("could not write to file \"{path}\""), e))?;
                let made = Made { fill: started.elapsed(), sync: None };
                self.sync_dir()?;
                Ok((file, Some(made)))
            }
            Err(e) => Err(fail(e)),
        }
    }

    /// Makes segment `number` ahead of its use, synced, so that later syncs of it change no metadata;
    /// says so if it was made. A failure means nothing yet: whoever needs the segment will meet it.
    /// For one thread at a time.
    pub fn prepare(&self, number: u64) -> Option<Made> {
        if self.names.lock().ready >= number {
            return None;
        }
        let temporary = format!("{}/preparing", self.dir);
        let made = self.try_prepare(number, &temporary);
        if made.is_err() {
            // It may be space that is lacking: leave none taken.
            let _ = self.disk.remove(&temporary);
        }
        made.unwrap_or(None)
    }

    fn try_prepare(&self, number: u64, temporary: &str) -> std::io::Result<Option<Made>> {
        let path = self.path(number);
        let mut cost = Made::default();
        if !self.disk.exists(&path)? {
            let file = self.disk.open(temporary, OpenMode::Create)?;
            let started = now();
            fill(&*file, 0, &mut GiveWay::new(Manners::Gentle))?;
            cost.fill = started.elapsed();
            let started = now();
            file.sync_data()?;
            cost.sync = Some(started.elapsed());
        }
        let mut names = self.names.lock();
        let made = !self.disk.exists(&path)?;
        if made {
            names.unsynced = true;
            self.disk.rename(temporary, &path)?;
            self.disk.sync_dir(&self.dir)?;
            names.unsynced = false;
        } else if self.disk.exists(temporary)? {
            self.disk.remove(temporary)?;
        }
        names.ready = names.ready.max(number);
        Ok(made.then_some(cost))
    }
}

impl Segments {
    /// Sees to it that nothing beyond `end` can be taken for a record: the rest of its segment is
    /// zeros, later segments are gone.
    pub fn wipe_after(&self, end: Lsn) -> Result<()> {
        let number = segment_of(end);
        for later in self.list()?.into_iter().filter(|n| *n > number) {
            let path = self.path(later);
            self.disk
                .remove(&path)
                .map_err(|e| Error::io(format!("could not remove file \"{path}\""), e))?;
        }
        let (file, _) = self.open(number)?;
        let path = self.path(number);
        let mut at = end.0 % SEGMENT_SIZE;
        let mut chunk = vec![0; ZEROS.len()];
        while at < SEGMENT_SIZE {
            let n = ((SEGMENT_SIZE - at) as usize).min(chunk.len());
            let got = file
                .read_at(&mut chunk[..n], at)
                .map_err(|e| Error::io(format!("could not read file \"{path}\""), e))?;
            if chunk[..got] != ZEROS[..got] {
                file.write_at(&ZEROS[..got], at)
                    .map_err(|e| Error::io(format!("could not write to file \"{path}\""), e))?;
            }
            at += n as u64;
        }
        file.sync_data().map_err(|e| Error::io(format!("could not fsync file \"{path}\""), e))?;
        self.sync_dir()
    }

    /// Renames up to `keep` of the segments before `first_needed` to follow the last one there is,
    /// and removes the rest.
    pub fn recycle(&self, first_needed: u64, current: u64, keep: u64) -> Result<RecycleStats> {
        let mut stats = RecycleStats::default();
        let mut next = current + 1;
        for number in self.list()?.into_iter().filter(|n| *n < first_needed.min(current)) {
            let path = self.path(number);
            let mut names = self.names.lock();
            while next <= current + keep
                && self.disk.exists(&self.path(next)).map_err(|e| {
                    Error::io(format!("could not stat file \"{}\"", self.path(next)), e)
                })?
            {
                next += 1;
            }
            if next <= current + keep {
                names.unsynced = true;
                names.ready = names.ready.max(next);
                self.disk
                    .rename(&path, &self.path(next))
                    .map_err(|e| Error::io(format!("could not rename file \"{path}\""), e))?;
                stats.recycled += 1;
            } else {
                self.disk
                    .remove(&path)
                    .map_err(|e| Error::io(format!("could not remove file \"{path}\""), e))?;
                stats.removed += 1;
            }
        }
        if stats != RecycleStats::default() {
            let mut names = self.names.lock();
            self.sync_dir()?;
            names.unsynced = false;
        }
        Ok(stats)
    }
}

/// What a new segment cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct Made {
    /// Filling it with zeros.
    pub fill: Duration,
    /// Syncing it, if that was done at once.
    pub sync: Option<Duration>,
}

/// Writes zeros from `from` to the segment's end, between pieces of which it gives way if it is to.
fn fill(file: &dyn File, from: u64, give_way: &mut GiveWay) -> std::io::Result<()> {
    let mut at = from;
    while at < SEGMENT_SIZE {
        let n = (SEGMENT_SIZE - at).min(ZEROS.len() as u64);
        file.write_at(&ZEROS[..n as usize], at)?;
        at += n;
        give_way.point();
    }
    Ok(())
}
