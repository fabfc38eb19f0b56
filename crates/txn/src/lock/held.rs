//! What one backend holds.
//!
//! # Invariants
//! A mode of a tag is held either by the fast path (here alone) or in the shared table, never in both. `log` lists, in the order
//! they were taken, the (tag, mode) pairs that belong to the transaction; each stands there once, with the number under which it was
//! taken. A savepoint's mark is such a number and no place in the list: what is given up early leaves none of the later ones its place.

use super::{LockMode, LockOwner, LockTag};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A small multiplicative hasher: tags are a few integers and not chosen by an attacker in bulk.
#[derive(Default)]
pub struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

/// Maps by tag.
pub type TagMap<V> = HashMap<LockTag, V, BuildHasherDefault<TagHasher>>;

/// A tag's hash.
pub fn hash(tag: &LockTag) -> u64 {
    let mut hasher = TagHasher::default();
    tag.hash(&mut hasher);
    hasher.finish()
}

/// A set of lock modes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ModeSet(pub u16);

impl ModeSet {
    /// Just this one.
    pub fn of(mode: LockMode) -> ModeSet {
        ModeSet(mode.bit())
    }
    /// None.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Is it in?
    pub fn has(self, mode: LockMode) -> bool {
        self.0 & mode.bit() != 0
    }
    /// Adds all of `other`.
    pub fn extend(&mut self, other: ModeSet) {
        self.0 |= other.0;
    }
    /// Is one in that conflicts with `mode`?
    pub fn conflicts_with(self, mode: LockMode) -> bool {
        self.0 & mode.conflict_bits() != 0
    }
    /// The modes, weakest first.
    pub fn iter(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |m| self.has(*m))
    }
}

#[derive(Default)]
struct Entry {
    fast: ModeSet,
    table: ModeSet,
    transaction: [u32; 9],
    session: [u32; 9],
}

impl Entry {
    fn held(&self) -> ModeSet {
        ModeSet(self.fast.0 | self.table.0)
    }
}

/// All locks of a backend.
#[derive(Default)]
pub struct HeldLocks {
    entries: TagMap<Entry>,
    log: Vec<(u64, LockTag, LockMode)>,
    taken: u64,
}

/// The memory of so many locks an idle session may keep.
const KEPT: usize = 1024;

/// What [`HeldLocks::remove`] did.
pub enum Removed {
    /// It was not held.
    NotHeld,
    /// Other counts remain.
    StillHeld,
    /// It was a fast-path lock, and is gone.
    Fast,
    /// It is to be released in the table.
    FromTable,
}

impl HeldLocks {
    /// Counts once more, if held in this mode.
    pub fn again(&mut self, tag: &LockTag, mode: LockMode, owner: LockOwner) -> bool {
        let Some(entry) = self.entries.get_mut(tag) else { return false };
        if !entry.held().has(mode) {
            return false;
        }
        let i = mode as usize;
        match owner {
            LockOwner::Transaction => {
                entry.transaction[i] += 1;
                if entry.transaction[i] == 1 {
                    self.note(*tag, mode);
                }
            }
            LockOwner::Session => entry.session[i] += 1,
        }
        true
    }

    /// Notes a lock newly held.
    pub fn add(&mut self, tag: LockTag, mode: LockMode, owner: LockOwner, fast: bool) {
        let entry = self.entries.entry(tag).or_default();
        if fast {
            entry.fast.extend(ModeSet::of(mode));
        } else {
            entry.table.extend(ModeSet::of(mode));
        }
        match owner {
            LockOwner::Transaction => {
                entry.transaction[mode as usize] += 1;
                self.note(tag, mode);
            }
            LockOwner::Session => entry.session[mode as usize] += 1,
        }
    }

    fn note(&mut self, tag: LockTag, mode: LockMode) {
        self.log.push((self.taken, tag, mode));
        self.taken += 1;
    }

    /// Takes its fast-path modes of `tag` out, to be put into the table by the caller.
    pub fn leave_fast_path(&mut self, tag: &LockTag) -> ModeSet {
        let Some(entry) = self.entries.get_mut(tag) else { return ModeSet::default() };
        let modes = std::mem::take(&mut entry.fast);
        entry.table.extend(modes);
        modes
    }

    /// Its fast-path modes of `tag`.
    pub fn fast_modes(&self, tag: &LockTag) -> ModeSet {
        self.entries.get(tag).map(|e| e.fast).unwrap_or_default()
    }

    /// All fast-path locks.
    pub fn fast_list(&self) -> Vec<(LockTag, ModeSet)> {
        self.entries.iter().filter(|e| !e.1.fast.is_empty()).map(|(t, e)| (*t, e.fast)).collect()
    }

    /// Is `tag` held in `mode` or a stronger one?
    pub fn holds_at_least(&self, tag: &LockTag, mode: LockMode) -> bool {
        self.entries.get(tag).is_some_and(|e| e.held().iter().any(|m| m >= mode))
    }

    /// Gives up one count.
    pub fn remove(&mut self, tag: &LockTag, mode: LockMode, owner: LockOwner) -> Removed {
        let Some(entry) = self.entries.get_mut(tag) else { return Removed::NotHeld };
        let i = mode as usize;
        let count = match owner {
            LockOwner::Transaction => &mut entry.transaction[i],
            LockOwner::Session => &mut entry.session[i],
        };
        if *count == 0 {
            return Removed::NotHeld;
        }
        *count -= 1;
        if *count > 0 {
            return Removed::StillHeld;
        }
        if owner == LockOwner::Transaction
            && let Some(at) = self.log.iter().rposition(|l| l.1 == *tag && l.2 == mode)
        {
            self.log.remove(at);
        }
        self.drop_mode(tag, mode)
    }

    fn drop_mode(&mut self, tag: &LockTag, mode: LockMode) -> Removed {
        let Some(entry) = self.entries.get_mut(tag) else { return Removed::NotHeld };
        let i = mode as usize;
        if entry.transaction[i] > 0 || entry.session[i] > 0 {
            return Removed::StillHeld;
        }
        let fast = entry.fast.has(mode);
        entry.fast.0 &= !mode.bit();
        entry.table.0 &= !mode.bit();
        if entry.held().is_empty() {
            self.entries.remove(tag);
        }
        if fast { Removed::Fast } else { Removed::FromTable }
    }

    /// The number of transaction locks taken so far.
    pub fn mark(&self) -> u64 {
        self.taken
    }

    /// Gives up the transaction's locks taken since `mark`; what must go from the table too.
    pub fn release_since(&mut self, mark: u64) -> Vec<(LockTag, ModeSet)> {
        let mut gone: Vec<(LockTag, ModeSet)> = Vec::new();
        while let Some((_, tag, mode)) = self.log.pop_if(|l| l.0 >= mark) {
            if let Some(entry) = self.entries.get_mut(&tag) {
                entry.transaction[mode as usize] = 0;
            }
            if let Removed::FromTable = self.drop_mode(&tag, mode) {
                gone.push((tag, ModeSet::of(mode)));
            }
        }
        if self.entries.is_empty() && self.entries.capacity() > KEPT {
            *self = HeldLocks { taken: self.taken, ..HeldLocks::default() };
        }
        gone
    }

    /// Gives up the session's locks; what must go from the table too.
    pub fn release_session(&mut self, advisory_only: bool) -> Vec<(LockTag, ModeSet)> {
        let tags: Vec<LockTag> = self
            .entries
            .iter()
            .filter(|(t, e)| {
                (!advisory_only || t.is_advisory()) && e.session.iter().any(|c| *c > 0)
            })
            .map(|(t, _)| *t)
            .collect();
        let mut gone = Vec::new();
        for tag in tags {
            for mode in LockMode::ALL {
                let Some(entry) = self.entries.get_mut(&tag) else { break };
                if entry.session[mode as usize] == 0 {
                    continue;
                }
                entry.session[mode as usize] = 0;
                if let Removed::FromTable = self.drop_mode(&tag, mode) {
                    gone.push((tag, ModeSet::of(mode)));
                }
            }
        }
        gone
    }
}
