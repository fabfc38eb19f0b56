//! The hash that statements are known by.
//!
//! # Invariants
//! It is the same on every machine and after every restart: saved identifiers are found again.

/// A hash, a word at a time, mixed at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn number(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// With its length: two texts are not one that is as long as both.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// As [`Hash::text`].
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// As `queryid` shows it: never 0, which stands for none.
    pub(super) fn id(self) -> i64 {
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^= n >> 31;
        if n == 0 { 1 } else { n.cast_signed() }
    }
}
