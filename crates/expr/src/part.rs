//! Functions that read part of a column's value, or only how long it is.
//!
//! # Purpose
//! Of a value that is not read yet ([`types::late`]) they are given no more than they look at: the function then says of that part
//! what it says of the whole.
//!
//! # Invariants
//! A part of a text ends between two characters.

use crate::code::{CallCode, Code};
use crate::eval::EvalContext;
use base::{Result, err};
use smallvec::SmallVec;
use std::sync::Arc;
use types::{Datum, LateValue, Text};

/// What is looked at, by the function's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Its length in bytes.
    Length,
    /// Its length where it is kept.
    KeptLength,
    /// How it is compressed where it is kept.
    Compression,
    /// The characters before the one at argument 1 plus argument 2.
    Substring,
    /// The bytes before the one at argument 1 plus argument 2.
    ByteSubstring,
    /// As many characters as argument 1 says.
    Left,
    /// The byte at argument 1, from 0.
    Byte,
    /// As many bytes as argument 1 has.
    Beginning,
}

/// A call of such a function whose first argument is a column.
pub struct PartCode {
    part: Part,
    slot: usize,
    call: CallCode,
}

fn part_of(symbol: &str) -> Option<Part> {
    Some(match symbol {
        "textoctetlen" | "bpcharoctetlen" | "byteaoctetlen" => Part::Length,
        "pg_column_size" => Part::KeptLength,
        "pg_column_compression" => Part::Compression,
        "text_substr" => Part::Substring,
        "bytea_substr" => Part::ByteSubstring,
        "text_left" => Part::Left,
        "byteaGetByte" => Part::Byte,
        "text_starts_with" => Part::Beginning,
        _ => return None,
    })
}

impl PartCode {
    /// `call`, of the function with this symbol, made one of a part; itself if it is none.
    pub(crate) fn made(symbol: &str, call: CallCode) -> std::result::Result<PartCode, CallCode> {
        match (part_of(symbol), call.args.first()) {
            (Some(part), Some(Code::Slot(slot))) => Ok(PartCode { part, slot: *slot, call }),
            _ => Err(call),
        }
    }

    pub(crate) fn call(&self) -> &CallCode {
        &self.call
    }

    /// What the function says of a column that has not been read.
    pub(crate) fn of_late(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Option<Datum>> {
        let Some(Datum::Late(late)) = row.get(self.slot) else { return Ok(None) };
        let length = |n: usize| i32::try_from(n).map(Datum::Int4);
        match self.part {
            Part::Compression if late.is_compressed() => return Ok(Some(Datum::text("lz4"))),
            Part::Compression => return Ok(Some(Datum::Null)),
            _ if late.is_read() && self.part != Part::KeptLength => return Ok(None),
            Part::Length => return Ok(length(late.len()).ok()),
            Part::KeptLength => return Ok(length(late.kept_len()).ok()),
            _ => {}
        }
        let mut args: SmallVec<[Datum; 3]> = SmallVec::new();
        args.push(Datum::Null);
        for a in &self.call.args[1..] {
            args.push(a.eval(row, cx)?);
        }
        if args[1..].iter().any(Datum::is_null) {
            return Ok(Some(Datum::Null));
        }
        let number = |i: usize| match args.get(i) {
            Some(Datum::Int4(n)) => Some(i64::from(*n)),
            _ => None,
        };
        let part = match (self.part, number(1), number(2)) {
            (Part::Substring, Some(from), Some(n)) => first_characters(&**late, from + n - 1)?,
            (Part::ByteSubstring, Some(from), Some(n)) => {
                let end = usize::try_from(from + n - 1).unwrap_or(0);
                // Where it begins is not read either, but counted.
                let start = usize::try_from(from - 1).unwrap_or(0).min(end);
                if n >= 0 {
                    args[1] = Datum::Int4(1);
                    args[2] = length(end - start).unwrap_or(Datum::Null);
                }
                Some(Datum::Bytea(Arc::from(late.slice(start, end - start)?)))
            }
            (Part::Left, Some(n @ 0..), _) => first_characters(&**late, n)?,
            (Part::Byte, Some(n), _) => match usize::try_from(n) {
                Ok(at) if at < late.len() => {
                    args[1] = Datum::Int4(0);
                    Some(Datum::Bytea(Arc::from(late.slice(at, 1)?)))
                }
                _ => None,
            },
            (Part::Beginning, ..) => match &args[1] {
                Datum::Text(t) => first_bytes(&**late, t.len())?,
                _ => None,
            },
            _ => None,
        };
        args[0] = match part {
            Some(part) => part,
            // Not kept: others may hold it, too.
            None => late.read()?,
        };
        self.call.invoke(&args, cx).map(Some)
    }
}

/// As much of the bytes as are whole characters.
fn text(mut bytes: Vec<u8>) -> Result<Datum> {
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // Cut within a character.
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        Err(_) => return Err(err!(DATA_CORRUPTED, "invalid stored value of type text")),
    };
    bytes.truncate(whole);
    let text = Text::from_utf8(bytes);
    text.map(Datum::Text).map_err(|_| err!(DATA_CORRUPTED, "invalid stored value of type text"))
}

/// So many bytes of a text, and the rest of the last one's character; None: all are asked for.
fn first_bytes(late: &dyn LateValue, n: usize) -> Result<Option<Datum>> {
    let n = n.saturating_add(3);
    if n >= late.len() { Ok(None) } else { late.slice(0, n).and_then(text).map(Some) }
}

/// At least so many characters of a text; None: it may have no more.
fn first_characters(late: &dyn LateValue, n: i64) -> Result<Option<Datum>> {
    let n = usize::try_from(n).unwrap_or(0);
    // Most have a byte. If they do not, those that were not seen may have four.
    if n >= late.len() {
        return Ok(None);
    }
    let bytes = late.slice(0, n)?;
    let begins = |b: &&u8| (**b as i8) >= -0x40;
    let characters = bytes.iter().filter(begins).count();
    if characters == n {
        // The last one may be cut.
        return if bytes.last().is_none_or(u8::is_ascii) {
            text(bytes).map(Some)
        } else {
            first_bytes(late, n)
        };
    }
    let more = (n - characters).saturating_mul(4).saturating_add(3);
    let mut bytes = bytes;
    bytes.extend(late.slice(n, more)?);
    text(bytes).map(Some)
}

#[cfg(test)]
mod tests;
