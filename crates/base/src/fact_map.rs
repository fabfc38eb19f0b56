//! Maps of what the program itself knows, or numbers itself: facts of PostgreSQL by OID and by name, settings, catalogs.
//!
//! # Purpose
//! A statement that is planned looks up hundreds of such facts. The standard hasher withstands keys that are chosen to collide, at several times
//! the price of the look-up.
//!
//! # Invariants
//! Nobody chooses what goes into such a map: what users name (tables, columns, statements) stays in maps with the standard hasher.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with keys that nobody chooses.
pub type FactMap<K, V> = HashMap<K, V, BuildHasherDefault<FactHasher>>;
/// A set of those.
pub type FactSet<K> = HashSet<K, BuildHasherDefault<FactHasher>>;

/// A small multiplicative hasher.
#[derive(Clone, Copy, Default)]
pub struct FactHasher(u64);

impl FactHasher {
    #[inline]
    fn mix(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FactHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.mix(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_and_names_are_spread() {
        let hasher = BuildHasherDefault::<FactHasher>::default();
        let slots =
            |hashes: Vec<u64>| hashes.iter().map(|h| h % 4096).collect::<HashSet<_>>().len();
        // As a random function would: of 1024 keys in 4096 slots about 906 have one that no earlier one has.
        let numbers = slots((16384..17408u32).map(|n| hasher.hash_one(n)).collect());
        let names = slots((0..1024).map(|n| hasher.hash_one(format!("enable_{n}_scan"))).collect());
        assert!(numbers > 850 && names > 850, "{numbers} {names}");
    }
}
