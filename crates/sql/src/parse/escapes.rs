//! `\XXXX` and `\+XXXXXX` in strings and identifiers that begin with `U&`.

use base::{Error, Result, SqlError, SqlState};

/// May `UESCAPE` name this character?
pub fn may_escape(c: char) -> bool {
    !c.is_ascii_hexdigit() && !"+'\" \t\n\r\x0b\x0c".contains(c)
}

fn fault(message: &str) -> Error {
    SqlError::new(SqlState::SYNTAX_ERROR, message).into()
}

/// The character that an escape at the head of `text` (after the escape character) names, and how long that is.
fn code(text: &str) -> Option<(u32, usize)> {
    let (from, len) = if text.starts_with('+') { (1, 6) } else { (0, 4) };
    let digits = text.get(from..from + len)?;
    let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
    all.then(|| (u32::from_str_radix(digits, 16).unwrap_or(0), from + len))
}

/// `raw` with its escapes resolved.
///
/// # Errors
/// 42601, with the byte of `raw` where it is.
pub fn unicode(raw: &str, escape: char) -> Result<String, (Error, usize)> {
    let mut out = String::with_capacity(raw.len());
    let mut first = None;
    let mut at = 0;
    while let Some(c) = raw[at..].chars().next() {
        let unpaired = || (fault("invalid Unicode surrogate pair"), at);
        let rest = &raw[at + c.len_utf8()..];
        if c != escape || rest.starts_with(escape) {
            if first.is_some() {
                return Err(unpaired());
            }
            out.push(c);
            at += c.len_utf8() * if c == escape { 2 } else { 1 };
            continue;
        }
        let Some((value, len)) = code(rest) else {
            let e = SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
                .hint("Unicode escapes must be \\XXXX or \\+XXXXXX.");
            return Err((e.into(), at));
        };
        match (first.take(), value) {
            (None, 0xd800..=0xdbff) => first = Some(value),
            (Some(high), 0xdc00..=0xdfff) => {
                let both = 0x10000 + ((high - 0xd800) << 10) + (value - 0xdc00);
                out.extend(char::from_u32(both));
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(unpaired()),
            (None, _) => match char::from_u32(value).filter(|c| *c != '\0') {
                Some(c) => out.push(c),
                None => return Err((fault("invalid Unicode escape value"), at)),
            },
        }
        at += c.len_utf8() + len;
    }
    match first {
        Some(_) => Err((fault("invalid Unicode surrogate pair"), at)),
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_name_characters() {
        let said = |raw: &str, escape| {
            unicode(raw, escape)
                .unwrap_or_else(|(e, at)| format!("{} {at}", e.to_sql_error().message))
        };
        assert_eq!(said("d\\0061t\\+000061\\\\", '\\'), "data\\");
        assert_eq!(said("d!0061t\\!!", '!'), "dat\\!");
        assert_eq!(said("\\d83d\\de00", '\\'), "😀");
        assert_eq!(said("a\\006", '\\'), "invalid Unicode escape 1");
        assert_eq!(said("\\+0061", '\\'), "invalid Unicode escape 0");
        assert_eq!(said("\\++00061", '\\'), "invalid Unicode escape 0");
        assert_eq!(said("\\+110000", '\\'), "invalid Unicode escape value 0");
        assert_eq!(said("\\0000", '\\'), "invalid Unicode escape value 0");
        for (raw, at) in [("\\d83d", 5), ("\\d83dx", 5), ("x\\de00", 1), ("\\d83d\\0061", 5)] {
            assert_eq!(said(raw, '\\'), format!("invalid Unicode surrogate pair {at}"));
        }
    }
}
