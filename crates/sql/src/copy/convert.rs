//! From fields to values: fast ways for the types that loads consist of.

use base::{Oid, Result};
use types::{Datum, Env, oids};

/// A column that COPY FROM fills.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its place in the row, from 0.
    pub at: usize,
    /// Its type.
    pub ty: Oid,
    /// Its type's modifier.
    pub typmod: i32,
    /// FORCE_NOT_NULL
    pub force_not_null: bool,
    /// FORCE_NULL
    pub force_null: bool,
}

/// A decimal integer of at most 18 digits; None: the slow way decides.
#[inline]
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut n = 0i64;
    for d in digits {
        let d = d.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n * 10 + i64::from(d);
    }
    Some(if negative { -n } else { n })
}

/// The text of a field, which was checked before.
fn as_str(text: &[u8]) -> Result<&str> {
    match std::str::from_utf8(text) {
        Ok(s) => Ok(s),
        Err(_) => {
            base::bail!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
        }
    }
}

impl Column {
    /// The value of a field.
    ///
    /// # Errors
    /// The type's own.
    #[inline]
    pub fn datum(&self, text: &[u8], env: &dyn Env) -> Result<Datum> {
        match self.ty {
            oids::INT4 => {
                if let Some(n) = integer(text).and_then(|n| i32::try_from(n).ok()) {
                    return Ok(Datum::Int4(n));
                }
            }
            oids::INT8 => {
                if let Some(n) = integer(text) {
                    return Ok(Datum::Int8(n));
                }
            }
            _ => {}
        }
        types::text_input(self.ty, self.typmod, as_str(text)?, env)
    }

    /// The stored form of a field's value, appended to `out`.
    ///
    /// # Errors
    /// The type's own.
    #[inline]
    pub fn stored(&self, text: &[u8], env: &dyn Env, out: &mut Vec<u8>) -> Result<()> {
        match self.ty {
            oids::INT4 => {
                if let Some(n) = integer(text).and_then(|n| i32::try_from(n).ok()) {
                    out.extend_from_slice(&n.to_le_bytes());
                    return Ok(());
                }
            }
            oids::INT8 => {
                if let Some(n) = integer(text) {
                    out.extend_from_slice(&n.to_le_bytes());
                    return Ok(());
                }
            }
            oids::INT2 => {
                if let Some(n) = integer(text).and_then(|n| i16::try_from(n).ok()) {
                    out.extend_from_slice(&n.to_le_bytes());
                    return Ok(());
                }
            }
            oids::TEXT => {
                out.extend_from_slice(text);
                return Ok(());
            }
            oids::VARCHAR if self.typmod < 4 || text.len() <= self.width() => {
                out.extend_from_slice(text);
                return Ok(());
            }
            oids::BPCHAR if self.typmod >= 4 && text.len() <= self.width() && text.is_ascii() => {
                out.extend_from_slice(text);
                out.resize(out.len() + self.width() - text.len(), b' ');
                return Ok(());
            }
            _ => {}
        }
        let value = types::text_input(self.ty, self.typmod, as_str(text)?, env)?;
        types::encode(self.ty, &value, out)
    }

    fn width(&self) -> usize {
        usize::try_from(self.typmod - 4).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_are_none_go_the_slow_way() {
        assert_eq!(integer(b"-12"), Some(-12));
        assert_eq!(integer(b"000000000000000017"), Some(17));
        for slow in ["", "-", "1x", " 1", "+1", "1234567890123456789", "1_000"] {
            assert_eq!(integer(slow.as_bytes()), None, "{slow}");
        }
    }
}
