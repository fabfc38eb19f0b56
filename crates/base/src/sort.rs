//! Sorting that can be stopped: a cancel is met between pieces of the work, however much is sorted.

use crate::Result;
use std::cmp::Ordering;

/// So many elements are sorted, or merged, before the next look.
const PIECE: usize = 1 << 15;

/// Sorts so that equal elements keep their order, asking `check` every so often. Fails as `check` does; what the list
/// holds then is of no use. Beside the list there is room for half of it.
///
/// # Errors
/// `check`'s.
pub fn in_pieces<T: Copy>(
    list: &mut [T],
    mut compare: impl FnMut(&T, &T) -> Ordering,
    mut check: impl FnMut() -> Result<()>,
) -> Result<()> {
    for piece in list.chunks_mut(PIECE) {
        check()?;
        piece.sort_by(&mut compare);
    }
    let mut spare = Vec::new();
    let mut width = PIECE;
    while width < list.len() {
        for pair in list.chunks_mut(width * 2).filter(|p| p.len() > width) {
            check()?;
            merge(pair, width, &mut spare, &mut compare, &mut check)?;
        }
        width *= 2;
    }
    Ok(())
}

/// Merges the first `middle` elements with the others, both sorted.
fn merge<T: Copy>(
    pair: &mut [T],
    middle: usize,
    spare: &mut Vec<T>,
    compare: &mut impl FnMut(&T, &T) -> Ordering,
    check: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    if compare(&pair[middle - 1], &pair[middle]).is_le() {
        return Ok(());
    }
    spare.clear();
    spare.extend_from_slice(&pair[..middle]);
    let (mut left, mut right, mut out) = (0, middle, 0);
    while left < spare.len() && right < pair.len() {
        if out % PIECE == 0 {
            check()?;
        }
        // Of equal ones the left one was first.
        if compare(&pair[right], &spare[left]).is_lt() {
            pair[out] = pair[right];
            right += 1;
        } else {
            pair[out] = spare[left];
            left += 1;
        }
        out += 1;
    }
    let rest = spare.len() - left;
    pair[out..out + rest].copy_from_slice(&spare[left..]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_a_stable_sort_does() {
        for n in [0, 1, 2, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
            for turn in [1, 7919, n.max(1) - 1] {
                let key = |i: usize| (i * turn % n.max(1)) / 3;
                let mut list: Vec<(usize, usize)> = (0..n).map(|i| (key(i), i)).collect();
                let mut wanted = list.clone();
                wanted.sort_by_key(|e| e.0);
                in_pieces(&mut list, |a, b| a.0.cmp(&b.0), || Ok(())).unwrap();
                assert!(list == wanted, "{n} elements, {turn}");
            }
        }
    }

    #[test]
    fn looks_for_a_cancel_between_pieces_and_while_merging() {
        let n = 8 * PIECE;
        let mut compared = 0u64;
        let mut most = 0;
        let mut before = 0;
        let seen = std::cell::Cell::new(0u64);
        let mut list: Vec<usize> = (0..n).map(|i| i * 7919 % n).collect();
        let check = || {
            most = most.max(seen.get() - before);
            before = seen.get();
            Ok(())
        };
        let compare = |a: &usize, b: &usize| {
            compared += 1;
            seen.set(compared);
            a.cmp(b)
        };
        in_pieces(&mut list, compare, check).unwrap();
        assert!(most <= 32 * PIECE as u64, "{most} comparisons in one go");
        let stop = || Err(crate::err!(QUERY_CANCELED, "stop"));
        assert!(in_pieces(&mut list, usize::cmp, stop).is_err());
    }
}
