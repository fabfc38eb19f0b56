//! Random choices that can be played again, and made fewer.
//!
//! # Purpose
//! A generator that asks nothing but [`Choices::below`] is a function of the numbers it was given. Shorter lists and smaller numbers make
//! simpler statements (each generator puts its simplest way at 0), so a difference is reduced without knowing what SQL is.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};

/// Where a generator gets its decisions.
pub struct Choices {
    rng: Option<SmallRng>,
    given: Vec<u32>,
    at: usize,
    /// What was decided so far.
    pub taken: Vec<u32>,
}

impl Choices {
    /// Fresh ones, by this seed.
    pub fn new(seed: u64) -> Choices {
        Choices {
            rng: Some(SmallRng::seed_from_u64(seed)),
            given: Vec::new(),
            at: 0,
            taken: Vec::new(),
        }
    }

    /// The ones in the list, and zeroes after its end.
    pub fn replay(given: &[u32]) -> Choices {
        Choices { rng: None, given: given.to_vec(), at: 0, taken: Vec::new() }
    }

    /// A number from 0 to below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let value = match &mut self.rng {
            Some(rng) => rng.random_range(0..n),
            None => self.given.get(self.at).copied().unwrap_or(0).min(n - 1),
        };
        self.at += 1;
        self.taken.push(value);
        value as usize
    }

    /// True in so many of a hundred cases; false is the simpler one.
    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) >= 100 - p.min(100)
    }

    /// One of them; the first is the simplest.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Makes a list of choices smaller as long as `still` says that it shows the same.
pub fn reduce(mut best: Vec<u32>, tries: usize, mut still: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut left = tries;
    let mut try_it = |candidate: Vec<u32>, best: &mut Vec<u32>| {
        if left == 0 || candidate == *best {
            return false;
        }
        left -= 1;
        let good = still(&candidate);
        if good {
            *best = candidate;
        }
        good
    };
    loop {
        let before = best.clone();
        let mut size = (best.len() / 2).max(1);
        loop {
            let mut at = 0;
            while at < best.len() {
                let end = (at + size).min(best.len());
                let without = [&best[..at], &best[end..]].concat();
                if try_it(without, &mut best) {
                    continue;
                }
                let mut zeroed = best.clone();
                zeroed[at..end].fill(0);
                try_it(zeroed, &mut best);
                at += size;
            }
            if size == 1 {
                break;
            }
            size /= 2;
        }
        for at in 0..best.len() {
            if let Some(value) = best.get(at).copied().filter(|v| *v > 1) {
                for smaller in [value / 2, value - 1] {
                    let mut candidate = best.clone();
                    candidate[at] = smaller;
                    if try_it(candidate, &mut best) {
                        break;
                    }
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduced_list_keeps_what_matters_only() {
        let mut fresh = Choices::new(7);
        let list: Vec<u32> = (0..200).map(|_| fresh.below(1000) as u32).collect();
        assert_eq!(fresh.taken, list);
        let wanted = list[150];
        let small = reduce(list, 5000, |l| l.iter().any(|v| *v >= wanted));
        assert_eq!(small, [wanted]);
        let mut again = Choices::replay(&small);
        assert_eq!([again.below(1000), again.below(1000)], [wanted as usize, 0]);
    }
}
