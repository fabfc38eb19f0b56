//! Date and time text, cut into fields, and the words that it may hold.

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number,
    Date,
    Time,
    /// A sign and digits.
    Zone,
    Word,
    /// A sign and letters.
    Special,
}

/// A field: what it looks like, and its text (words in lower case).
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub kind: Kind,
    pub text: String,
}

/// The most fields.
const FIELDS_MAX: usize = 25;

/// Cuts text into fields; None when it cannot be a date or time.
pub(super) fn fields(text: &str) -> Option<Vec<Field>> {
    let b = text.as_bytes();
    let at = |i: usize| b.get(i).copied().unwrap_or(0);
    let digit = |i: usize| at(i).is_ascii_digit();
    let alpha = |i: usize| at(i).is_ascii_alphabetic();
    let mut out: Vec<Field> = Vec::with_capacity(6);
    let mut i = 0;
    while i < b.len() {
        let c = b[i];
        if c.is_ascii_whitespace() || c == 0x0b {
            i += 1;
            continue;
        }
        let start = i;
        let kind;
        if c.is_ascii_digit() {
            while digit(i) {
                i += 1;
            }
            match at(i) {
                b':' => {
                    kind = Kind::Time;
                    while digit(i) || at(i) == b':' || at(i) == b'.' {
                        i += 1;
                    }
                }
                delimiter @ (b'-' | b'/' | b'.') => {
                    i += 1;
                    if digit(i) {
                        let mut k = if delimiter == b'.' { Kind::Number } else { Kind::Date };
                        while digit(i) {
                            i += 1;
                        }
                        if at(i) == delimiter {
                            k = Kind::Date;
                            i += 1;
                            while digit(i) || at(i) == delimiter {
                                i += 1;
                            }
                        }
                        kind = k;
                    } else {
                        kind = Kind::Date;
                        while alpha(i) || digit(i) || at(i) == delimiter {
                            i += 1;
                        }
                    }
                }
                _ => kind = Kind::Number,
            }
        } else if c == b'.' {
            kind = Kind::Number;
            i += 1;
            while digit(i) {
                i += 1;
            }
        } else if c.is_ascii_alphabetic() {
            while alpha(i) {
                i += 1;
            }
            let dated = match at(i) {
                b'-' | b'/' | b'.' => true,
                b'+' | b'0'..=b'9' => {
                    matches!(word(&text[start..i].to_ascii_lowercase()), Word::Unknown)
                }
                _ => false,
            };
            if dated {
                kind = Kind::Date;
                while alpha(i)
                    || digit(i)
                    || matches!(at(i), b'+' | b'-' | b'/' | b'_' | b'.' | b':')
                {
                    i += 1;
                }
            } else {
                kind = Kind::Word;
            }
        } else if c == b'+' || c == b'-' {
            i += 1;
            while at(i).is_ascii_whitespace() {
                i += 1;
            }
            let first = i;
            if digit(i) {
                kind = Kind::Zone;
                while digit(i) || matches!(at(i), b':' | b'.' | b'-') {
                    i += 1;
                }
            } else if alpha(i) {
                kind = Kind::Special;
                while alpha(i) {
                    i += 1;
                }
            } else {
                return None;
            }
            let text = format!("{}{}", char::from(c), text[first..i].to_ascii_lowercase());
            out.push(Field { kind, text });
            if out.len() > FIELDS_MAX {
                return None;
            }
            continue;
        } else if c.is_ascii_punctuation() {
            i += 1;
            continue;
        } else {
            return None;
        }
        out.push(Field { kind, text: text[start..i].to_ascii_lowercase() });
        if out.len() > FIELDS_MAX {
            return None;
        }
    }
    Some(out)
}

/// What a word of a date means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Month(i64),
    Weekday,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    AllBalls,
    Infinity,
    MinusInfinity,
    /// 0 or 12 to add
    Am,
    Pm,
    Ad,
    Bc,
    DaylightMark,
    /// A filler.
    Ignored,
    /// `j`, `jd`: a Julian day follows.
    Julian,
    /// `t`: a time follows.
    IsoTime,
    /// The name of a unit, which no date has.
    Unit,
    Unknown,
}

/// Looks a lower-case word up.
pub(super) fn word(w: &str) -> Word {
    match w {
        "jan" | "january" => Word::Month(1),
        "feb" | "february" => Word::Month(2),
        "mar" | "march" => Word::Month(3),
        "apr" | "april" => Word::Month(4),
        "may" => Word::Month(5),
        "jun" | "june" => Word::Month(6),
        "jul" | "july" => Word::Month(7),
        "aug" | "august" => Word::Month(8),
        "sep" | "sept" | "september" => Word::Month(9),
        "oct" | "october" => Word::Month(10),
        "nov" | "november" => Word::Month(11),
        "dec" | "december" => Word::Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds"
        | "wednesday" | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat"
        | "saturday" => Word::Weekday,
        "now" => Word::Now,
        "today" => Word::Today,
        "tomorrow" => Word::Tomorrow,
        "yesterday" => Word::Yesterday,
        "epoch" => Word::Epoch,
        "allballs" => Word::AllBalls,
        "infinity" | "+infinity" => Word::Infinity,
        "-infinity" => Word::MinusInfinity,
        "am" => Word::Am,
        "pm" => Word::Pm,
        "ad" => Word::Ad,
        "bc" => Word::Bc,
        "dst" => Word::DaylightMark,
        "at" | "on" => Word::Ignored,
        "j" | "jd" | "julian" => Word::Julian,
        "t" => Word::IsoTime,
        "d" | "dow" | "doy" | "h" | "isodow" | "isoyear" | "m" | "mm" | "s" | "y" => Word::Unit,
        _ => Word::Unknown,
    }
}
