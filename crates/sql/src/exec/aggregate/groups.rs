//! The hash table of groups.
//!
//! # Invariants
//! Once a row of a set had to wait, no group of it is begun any more: all rows of a group wait, or none does.

use super::{AggregateWork, COUNTED_AFTER, Call, LEAST_RUN_BYTES, NONE, State};
use crate::exec::Cx;
use crate::exec::batch::row_bytes;
use base::{Oid, Result};
use expr::ops::{compare_key, hash, mix};
use types::Datum;

impl AggregateWork {
    /// Adds a row to its group of a set. A new group that finds no room gives its hash: once one had to wait, all new ones of the set do, or
    /// the rows of the first would be parted.
    pub(super) fn hash_row(
        &mut self,
        (calls, types): (&[Call], &[Oid]),
        (set, key): (usize, &[&Datum]),
        row: &[Datum],
        cx: &Cx<'_>,
        waits: bool,
    ) -> Result<Option<u64>> {
        let limit = cx.x.hash_mem_bytes;
        let (width, n) = (key.len(), calls.len());
        let h = types.iter().zip(key).fold(set as u64, |h, (ty, d)| mix(h ^ hash(*ty, d)));
        let at = match self.find(types, set, key, h) {
            Some(at) => at,
            None if waits || self.bytes + self.held > limit => return Ok(Some(h)),
            None => {
                let at = self.hashes.len();
                self.keys.extend(key.iter().map(|d| (*d).clone()));
                self.bytes += row_bytes(&self.keys[at * width..]) + 32 + n * 48;
                self.hashes.push(h);
                self.set_of.push(set as u32);
                self.states.extend(calls.iter().map(Call::start));
                self.next.push(NONE);
                self.link(at);
                at
            }
        };
        for (c, s) in calls.iter().zip(&mut self.states[at * n..(at + 1) * n]) {
            let before = s.put_aside();
            c.add(s, row, cx)?;
            let now = s.put_aside();
            if now == before {
                continue;
            }
            self.bytes = (self.bytes + now).saturating_sub(before);
            if self.bytes > limit && now >= LEAST_RUN_BYTES {
                s.spill(cx.x.cancel)?;
                self.bytes = (self.bytes + s.put_aside()).saturating_sub(now);
            }
        }
        match &mut self.count_in {
            None => {}
            Some(0) => self.count_held(),
            Some(rows) => *rows -= 1,
        }
        Ok(None)
    }

    /// Counts what states hold: seldom enough that it costs each row little.
    fn count_held(&mut self) {
        self.held = self.states.iter().filter_map(State::held_bytes).sum();
        self.count_in = Some((self.states.len() * 2).max(COUNTED_AFTER));
    }

    /// Notes what the table has come to.
    pub(super) fn tell(&mut self) {
        let (parts, disk) = self.waiting.made();
        let told = &mut self.told;
        told.peak = told.peak.max(self.bytes + self.held);
        told.batches = told.batches.max(parts + 1);
        told.disk = told.disk.max(disk);
    }

    /// The place of a set's group.
    fn find(&self, types: &[Oid], set: usize, key: &[&Datum], h: u64) -> Option<usize> {
        if self.heads.is_empty() {
            return None;
        }
        let width = key.len();
        let mut i = self.heads[h as usize & (self.heads.len() - 1)];
        while i != NONE {
            let at = i as usize;
            let own = &self.keys[at * width..(at + 1) * width];
            let mut pairs = types.iter().zip(own.iter().zip(key));
            if self.hashes[at] == h
                && self.set_of[at] as usize == set
                && pairs.all(|(ty, (a, b))| compare_key(*ty, a, b, false, false).is_eq())
            {
                return Some(at);
            }
            i = self.next[at];
        }
        None
    }

    /// Hangs the newest group into its chain.
    fn link(&mut self, at: usize) {
        if self.hashes.len() * 2 <= self.heads.len() {
            let b = self.hashes[at] as usize & (self.heads.len() - 1);
            self.next[at] = self.heads[b];
            self.heads[b] = at as u32;
            return;
        }
        let size = (self.hashes.len() * 4).next_power_of_two().max(64);
        self.heads = vec![NONE; size];
        for i in 0..self.hashes.len() {
            let b = self.hashes[i] as usize & (size - 1);
            self.next[i] = self.heads[b];
            self.heads[b] = i as u32;
        }
    }
}
