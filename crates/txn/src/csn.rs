//! The window of commit sequence numbers, in memory.
//!
//! # Purpose
//! For every XID that a live snapshot might have to place in time: in progress, aborted, or committed with
//! which CSN. Lost at restart: XIDs from before it are decided by the commit log alone.
//!
//! # Layout
//! Pages of 4,096 XIDs. The newest 64 pages stand in a ring of atomics that readers use without a lock, each
//! with the number of the page it holds, read before and after the value (a sequence lock). A page that leaves
//! the ring goes to a map under a reader-writer lock, where it is dropped when all its XIDs are below every
//! snapshot's xmin, or *collapsed* to one number when no live snapshot stands between the least and greatest CSN
//! on it: none will ever stand there again, since new ones are newer. So the memory is bounded by the
//! running transactions and live snapshots, not by the XIDs a long snapshot spans.
//!
//! # Invariants
//! A value changes once, from in-progress to its end. A page is zeroed before its number is published.

use crate::rank;
use crate::snapshot::LiveSnapshots;
use base::sync::RwLock;
use base::{Csn, Xid};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// XIDs on a page.
pub const PAGE_XIDS: u64 = 4096;
const RING_PAGES: usize = 64;
const NO_PAGE: u64 = u64::MAX;

const IN_PROGRESS: u64 = 0;
const ABORTED: u64 = 2;

/// What the window knows of an XID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Neither committed nor aborted yet.
    InProgress,
    /// Committed with this CSN.
    Committed(Csn),
    /// Aborted.
    Aborted,
    /// Ended, and if it committed then with this CSN; the commit log says whether.
    Ended(Csn),
    /// Older than the window: ended before every live snapshot; the commit log says how.
    Old,
}

struct RingPage {
    number: AtomicU64,
    values: OnceLock<Box<[AtomicU64]>>,
}

enum OldPage {
    Whole(Box<[AtomicU64]>),
    Collapsed(Csn),
}

/// The window.
pub struct CsnWindow {
    start: AtomicU64,
    newest: AtomicU64,
    ring: Box<[RingPage]>,
    old: RwLock<BTreeMap<u64, OldPage>>,
}

fn page_of(xid: Xid) -> u64 {
    xid.0 / PAGE_XIDS
}
fn slot_of(xid: Xid) -> usize {
    (xid.0 % PAGE_XIDS) as usize
}
fn entry(value: u64) -> Entry {
    match value {
        IN_PROGRESS => Entry::InProgress,
        ABORTED => Entry::Aborted,
        csn => Entry::Committed(Csn(csn)),
    }
}
fn new_page() -> Box<[AtomicU64]> {
    (0..PAGE_XIDS).map(|_| AtomicU64::new(0)).collect()
}

/// The CSN that stands for "before every snapshot since start-up".
pub const OLD_CSN: Csn = Csn(3);
/// The counter's first value.
pub const FIRST_CSN: Csn = Csn(4);

impl CsnWindow {
    /// A window that begins at `start`: all XIDs below it have ended.
    pub fn new(start: Xid) -> CsnWindow {
        let window = CsnWindow {
            start: AtomicU64::new(start.0),
            newest: AtomicU64::new(page_of(start)),
            ring: (0..RING_PAGES)
                .map(|_| RingPage { number: AtomicU64::new(NO_PAGE), values: OnceLock::new() })
                .collect(),
            old: RwLock::new(rank::CSN_OLD, BTreeMap::new()),
        };
        window.install(page_of(start));
        window
    }

    /// The first XID the window knows of; those below ended before start-up.
    pub fn start(&self) -> Xid {
        Xid(self.start.load(Ordering::Acquire))
    }

    /// Moves the beginning to `start`; only while no transaction has run (the end of recovery).
    pub fn reset(&self, start: Xid) {
        for page in &self.ring {
            page.number.store(NO_PAGE, Ordering::SeqCst);
        }
        self.old.write().clear();
        self.newest.store(page_of(start), Ordering::SeqCst);
        self.install(page_of(start));
        self.start.store(start.0, Ordering::SeqCst);
    }

    /// Makes room for `xid`, which is about to be assigned; called under the running set's lock.
    /// True if a page was begun.
    pub fn extend_to(&self, xid: Xid) -> bool {
        let page = page_of(xid);
        let newest = self.newest.load(Ordering::Acquire);
        if page <= newest {
            return false;
        }
        for p in (newest + 1)..=page {
            // After a jump of many pages (tests burn XIDs) the pages between are all aborted or unused:
            // only those that stay in the ring are made.
            if page - p < RING_PAGES as u64 {
                self.install(p);
            }
        }
        self.newest.store(page, Ordering::Release);
        true
    }

    fn install(&self, page: u64) {
        let slot = &self.ring[(page % RING_PAGES as u64) as usize];
        let values = slot.values.get_or_init(new_page);
        let former = slot.number.load(Ordering::Acquire);
        if former != NO_PAGE {
            let copy = values.iter().map(|v| AtomicU64::new(v.load(Ordering::Acquire))).collect();
            // A transaction that ends meanwhile writes under the map's lock (see `set`), so nothing is lost:
            // the number is withdrawn while the map is held.
            let mut old = self.old.write();
            slot.number.store(NO_PAGE, Ordering::SeqCst);
            let page: Box<[AtomicU64]> = copy;
            for (to, from) in page.iter().zip(values.iter()) {
                to.store(from.load(Ordering::SeqCst), Ordering::Relaxed);
            }
            old.insert(former, OldPage::Whole(page));
        } else {
            slot.number.store(NO_PAGE, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        for value in values {
            value.store(IN_PROGRESS, Ordering::Relaxed);
        }
        slot.number.store(page, Ordering::SeqCst);
    }

    /// What the window knows of `xid`, which must have been assigned.
    #[inline]
    pub fn get(&self, xid: Xid) -> Entry {
        if xid < self.start() {
            return Entry::Old;
        }
        let page = page_of(xid);
        let slot = &self.ring[(page % RING_PAGES as u64) as usize];
        if slot.number.load(Ordering::Acquire) == page
            && let Some(values) = slot.values.get()
        {
            let value = values[slot_of(xid)].load(Ordering::Acquire);
            fence(Ordering::Acquire);
            if slot.number.load(Ordering::Relaxed) == page {
                return entry(value);
            }
        }
        self.get_old(xid)
    }

    #[cold]
    fn get_old(&self, xid: Xid) -> Entry {
        let old = self.old.read();
        match old.get(&page_of(xid)) {
            Some(OldPage::Whole(values)) => entry(values[slot_of(xid)].load(Ordering::Acquire)),
            Some(OldPage::Collapsed(csn)) => Entry::Ended(*csn),
            None => {
                // Back in the ring? (It is not put back; but the page may have been begun just now.)
                let slot = &self.ring[(page_of(xid) % RING_PAGES as u64) as usize];
                if slot.number.load(Ordering::SeqCst) == page_of(xid)
                    && let Some(values) = slot.values.get()
                {
                    return entry(values[slot_of(xid)].load(Ordering::Acquire));
                }
                Entry::Old
            }
        }
    }

    fn set(&self, xid: Xid, value: u64) {
        let page = page_of(xid);
        // Readers of the map keep `install` from withdrawing the page between the check and the store.
        let old = self.old.read();
        let slot = &self.ring[(page % RING_PAGES as u64) as usize];
        if slot.number.load(Ordering::SeqCst) == page {
            if let Some(values) = slot.values.get() {
                values[slot_of(xid)].store(value, Ordering::SeqCst);
            }
        } else if let Some(OldPage::Whole(values)) = old.get(&page) {
            values[slot_of(xid)].store(value, Ordering::SeqCst);
        }
    }

    /// Notes that `xid` committed with `csn`.
    pub fn commit(&self, xid: Xid, csn: Csn) {
        self.set(xid, csn.0);
    }

    /// Notes that `xid` aborted.
    pub fn abort(&self, xid: Xid) {
        self.set(xid, ABORTED);
    }

    /// Drops and collapses pages that have left the ring: those wholly below `oldest_xmin`, and
    /// those on which no two CSNs are separated by one of `live`.
    pub fn sweep(&self, oldest_xmin: Xid, live: &LiveSnapshots) {
        let mut old = self.old.write();
        old.retain(|page, _| (page + 1) * PAGE_XIDS > oldest_xmin.0);
        for page in old.values_mut() {
            let OldPage::Whole(values) = page else { continue };
            let (mut least, mut greatest) = (u64::MAX, 0);
            let mut running = false;
            for value in values.iter() {
                match value.load(Ordering::Acquire) {
                    IN_PROGRESS => {
                        running = true;
                        break;
                    }
                    ABORTED => {}
                    csn => {
                        least = least.min(csn);
                        greatest = greatest.max(csn);
                    }
                }
            }
            if running {
                continue;
            }
            if greatest == 0 || !live.any_between(Csn(least), Csn(greatest)) {
                *page = OldPage::Collapsed(Csn(greatest.max(OLD_CSN.0)));
            }
        }
    }

    /// How many pages have left the ring and are still kept: (whole, collapsed).
    pub fn old_pages(&self) -> (usize, usize) {
        let old = self.old.read();
        let whole = old.values().filter(|p| matches!(p, OldPage::Whole(_))).count();
        (whole, old.len() - whole)
    }
}
