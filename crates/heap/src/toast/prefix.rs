//! The beginning of a compressed value, without the rest.
//!
//! # Layout
//! An LZ4 block is a row of sequences: a token (two lengths of four bits), more of the first length, so many literal bytes, an
//! offset (2), more of the second length, which with 4 more is how many bytes are copied from `offset` bytes back. A length of 15 goes
//! on in bytes that are added to it, up to the first that is not 255. The last sequence ends with its literals.

/// What became of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// The bytes asked for; fewer only if the whole block has no more.
    Done(Vec<u8>),
    /// The part of the block that was given does not tell so many.
    NeedsMore,
    /// No block begins so.
    Damaged,
}

/// A length that goes on behind its four bits; no further than to `enough`. None: the block is cut in it.
fn length(block: &[u8], at: &mut usize, bits: u8, enough: usize) -> Option<usize> {
    let mut sum = usize::from(bits);
    if bits < 15 {
        return Some(sum);
    }
    loop {
        let Some(more) = block.get(*at) else { return (sum >= enough).then_some(sum) };
        *at += 1;
        sum = sum.saturating_add(usize::from(*more));
        if *more < 255 {
            return Some(sum);
        }
    }
}

/// The first `len` bytes of what the LZ4 block says that `block` is, or begins (`cut`).
pub fn decompress_prefix(block: &[u8], cut: bool, len: usize) -> Prefix {
    let ended = if cut { Prefix::NeedsMore } else { Prefix::Damaged };
    // A block of so many bytes cannot say more: what a damaged row asks for is not allocated.
    let mut out = Vec::with_capacity(len.min(block.len().saturating_mul(255)));
    let mut at = 0;
    while out.len() < len {
        let Some(token) = block.get(at).copied() else { return ended };
        at += 1;
        let Some(literals) = length(block, &mut at, token >> 4, usize::MAX) else { return ended };
        let wanted = literals.min(len - out.len());
        let Some(bytes) = block.get(at..at.saturating_add(wanted)) else { return ended };
        out.extend_from_slice(bytes);
        at = at.saturating_add(literals);
        if out.len() == len {
            break;
        }
        if at == block.len() && !cut {
            break;
        }
        let Some(&[low, high]) = block.get(at..at.saturating_add(2)) else { return ended };
        at += 2;
        let offset = usize::from(u16::from_le_bytes([low, high]));
        if offset == 0 || offset > out.len() {
            return Prefix::Damaged;
        }
        let left = len - out.len();
        let Some(copied) = length(block, &mut at, token & 15, left) else { return ended };
        let mut left = copied.saturating_add(4).min(left);
        while left > 0 {
            // What was just copied may be copied again.
            let n = left.min(offset);
            let from = out.len() - offset;
            out.extend_from_within(from..from + n);
            left -= n;
        }
    }
    Prefix::Done(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    /// Bytes with runs, repetitions and noise of all lengths.
    fn mixture(rng: &mut SmallRng) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        for _ in 0..rng.random_range(1..12) {
            let n = 1usize << rng.random_range(0..11);
            let n = rng.random_range(0..=n);
            match rng.random_range(0..3) {
                0 => out.extend((0..n).map(|_| rng.random::<u8>())),
                1 => out.resize(out.len() + n, rng.random()),
                _ if out.is_empty() => out.push(7),
                _ => {
                    let from = rng.random_range(0..out.len());
                    let again = out[from..out.len().min(from + n)].to_vec();
                    out.extend(again);
                }
            }
        }
        out
    }

    #[test]
    fn is_the_beginning_of_the_whole() {
        for seed in 0..40 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let whole = mixture(&mut rng);
            let block = lz4_flex::block::compress(&whole);
            for len in (0..=whole.len() + 3).step_by(1 + seed as usize % 5) {
                let got = decompress_prefix(&block, false, len);
                let end = len.min(whole.len());
                assert_eq!(got, Prefix::Done(whole[..end].to_vec()), "seed {seed}, {len} bytes");
            }
            // Cut anywhere: the same bytes, or the wish for more.
            for _ in 0..200 {
                let len = rng.random_range(0..=whole.len());
                let cut = rng.random_range(0..=block.len());
                match decompress_prefix(&block[..cut], true, len) {
                    Prefix::Done(bytes) => assert_eq!(bytes, whole[..len], "seed {seed}"),
                    Prefix::NeedsMore => assert!(len > 0 && cut < block.len() + 1),
                    Prefix::Damaged => panic!("seed {seed}: cut at {cut} it is no block"),
                }
            }
        }
    }

    #[test]
    fn damage_is_told() {
        let mut rng = SmallRng::seed_from_u64(1);
        let whole = mixture(&mut rng);
        let block = lz4_flex::block::compress(&whole);
        for _ in 0..20_000 {
            let mut bad = block.clone();
            let at = rng.random_range(0..bad.len());
            bad[at] = rng.random();
            // Other bytes or an error, never a panic nor more than was asked for.
            if let Prefix::Done(bytes) = decompress_prefix(&bad, false, 500) {
                assert!(bytes.len() <= 500);
            }
        }
        assert_eq!(decompress_prefix(&[0x10, b'a', 2, 0], false, 9), Prefix::Damaged);
        assert_eq!(decompress_prefix(&[0x10, b'a', 0, 0], true, 9), Prefix::Damaged);
        assert_eq!(decompress_prefix(&[], false, 1), Prefix::Damaged);
        assert_eq!(decompress_prefix(&[], true, 1), Prefix::NeedsMore);
        assert_eq!(decompress_prefix(&[], true, 0), Prefix::Done(Vec::new()));
    }
}
