//! Values that stay where their table keeps them until somebody reads them.
//!
//! # Purpose
//! A long value that a plan only carries need not be read: [`Datum::Late`] stands for it. Who reads it asks [`Datum::now`].
//!
//! # Invariants
//! Only executor nodes that know of late values are handed them, and expressions, which read them; what leaves the executor has none.
//! A late value is never NULL, nor a row.

use crate::Datum;
use base::Result;
use std::any::Any;
use std::sync::Arc;

/// A value that is somewhere else, or compressed.
#[expect(clippy::len_without_is_empty, reason = "nobody asks: a long value is not empty")]
pub trait LateValue: std::fmt::Debug + Send + Sync {
    /// The value, read when it is first asked for.
    ///
    /// # Errors
    /// Corruption, I/O.
    fn get(&self) -> Result<&Datum>;
    /// The value for who takes it away: it is not kept here.
    ///
    /// # Errors
    /// Corruption, I/O.
    fn read(&self) -> Result<Datum>;
    /// It has been read, and takes memory.
    fn is_read(&self) -> bool;
    /// How many bytes its on-page form ([`crate::encode`]) has.
    fn len(&self) -> usize;
    /// How many bytes it takes where it is kept.
    fn kept_len(&self) -> usize;
    /// Is it compressed where it is kept?
    fn is_compressed(&self) -> bool;
    /// How many bytes it takes in its row.
    fn len_in_row(&self) -> usize;
    /// Bytes of its on-page form, from `start` on, `len` of them or up to its end. No more is read than that takes.
    ///
    /// # Errors
    /// Corruption, I/O.
    fn slice(&self, start: usize, len: usize) -> Result<Vec<u8>>;
    /// For whoever made it.
    fn as_any(&self) -> &dyn Any;
}

/// A longer value is not kept with its row when an expression reads it: of a whole batch of rows that would be too much at once.
const KEPT_AT_MOST: usize = 256 << 10;

impl Datum {
    /// The value itself, read if it is late.
    ///
    /// # Errors
    /// Corruption, I/O.
    #[inline(always)]
    pub fn now(&self) -> Result<&Datum> {
        match self {
            Datum::Late(late) => late.get(),
            there => Ok(there),
        }
    }

    /// The value itself; one that is late and that others hold, too, or that is very long, is read into `scratch`. Who holds it may be a node
    /// that keeps rows, and has counted this one's memory as it was.
    ///
    /// # Errors
    /// Corruption, I/O.
    #[inline(always)]
    pub fn lent<'v>(&'v self, scratch: &'v mut Datum) -> Result<&'v Datum> {
        match self {
            Datum::Late(late) if Arc::strong_count(late) > 1 || late.len() > KEPT_AT_MOST => {
                *scratch = late.read()?;
                Ok(scratch)
            }
            own => own.now(),
        }
    }

    /// Puts a late value's own in its place.
    ///
    /// # Errors
    /// Corruption, I/O.
    #[inline]
    pub fn settle(&mut self) -> Result<()> {
        if let Datum::Late(late) = self {
            let value = late.read()?;
            *self = value;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    #[derive(Debug, Default)]
    struct Kept(OnceLock<Datum>, usize);

    impl LateValue for Kept {
        fn get(&self) -> Result<&Datum> {
            Ok(self.0.get_or_init(|| Datum::Int4(7)))
        }
        fn read(&self) -> Result<Datum> {
            Ok(Datum::Int4(7))
        }
        fn is_read(&self) -> bool {
            self.0.get().is_some()
        }
        fn len(&self) -> usize {
            self.1
        }
        fn kept_len(&self) -> usize {
            4
        }
        fn is_compressed(&self) -> bool {
            false
        }
        fn len_in_row(&self) -> usize {
            4
        }
        fn slice(&self, _: usize, _: usize) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn is_read(d: &Datum) -> bool {
        matches!(d, Datum::Late(late) if late.is_read())
    }

    #[test]
    fn what_others_hold_too_is_not_kept_when_it_is_read() {
        let held = Datum::Late(Arc::new(Kept::default()));
        let row = held.clone();
        for _ in 0..2 {
            let mut scratch = Datum::Null;
            assert!(matches!(row.lent(&mut scratch).unwrap(), Datum::Int4(7)));
            assert!(!is_read(&row) && !is_read(&held));
        }
        drop(held);
        let mut scratch = Datum::Null;
        assert!(matches!(row.lent(&mut scratch).unwrap(), Datum::Int4(7)));
        assert!(is_read(&row));
    }

    #[test]
    fn what_is_very_long_is_not_kept_when_it_is_read() {
        for (len, kept) in [(4, true), (KEPT_AT_MOST, true), (KEPT_AT_MOST + 1, false)] {
            let row = Datum::Late(Arc::new(Kept(OnceLock::new(), len)));
            let mut scratch = Datum::Null;
            assert!(matches!(row.lent(&mut scratch).unwrap(), Datum::Int4(7)));
            assert_eq!(is_read(&row), kept, "{len} bytes");
        }
    }
}
