//! bit and bit varying, kept as strings of 0 and 1.

use crate::oids::BIT;
use crate::{Datum, Text};
use base::{Oid, Result, bail};

/// Reads a bit string: `101`, `b101`, `x1F`.
pub(crate) fn bit_input(type_oid: Oid, typmod: i32, text: &str) -> Result<Datum> {
    let (hex, digits) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (false, &text[1..]),
        Some(b'x' | b'X') => (true, &text[1..]),
        _ => (false, text),
    };
    let mut bits = String::with_capacity(digits.len());
    for c in digits.chars() {
        if hex {
            let Some(v) = c.to_digit(16) else {
                bail!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid hexadecimal digit");
            };
            bits.push_str(&format!("{v:04b}"));
        } else if c == '0' || c == '1' {
            bits.push(c);
        } else {
            bail!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid binary digit");
        }
    }
    if typmod > 0 {
        let n = typmod as usize;
        if type_oid == BIT && bits.len() != n {
            bail!(
                STRING_DATA_LENGTH_MISMATCH,
                "bit string length {} does not match type bit({n})",
                bits.len()
            );
        }
        if bits.len() > n {
            bail!(STRING_DATA_RIGHT_TRUNCATION, "bit string too long for type bit varying({n})");
        }
    }
    Ok(Datum::Text(Text::from(bits)))
}
