//! What letters are, and their cases: `LC_CTYPE`.
//!
//! # Purpose
//! `lower`, `upper`, `initcap`, `casefold`, ILIKE and regular expressions ask here. Order does not: text is compared by bytes, which is
//! the order of code points, under either.
//!
//! # Layout
//! [`Ctype`] is a database's (`pg_database.datctype`), in the session's [`Style`](crate::Style), or a COLLATE's of the one call. The
//! standard library knows the cases of Unicode's letters in full, where one may become three; what PostgreSQL's provider `builtin` goes
//! by, and so does this, are the simple ones, one for one. The few letters in which they differ are here.
//!
//! # Differs from PostgreSQL
//! `pg_unicode_fast` has the simple cases too, where PostgreSQL's makes `SS` of `ß`. A column's own collation is not asked, only a COLLATE in the call's arguments and the database's. Regular expressions that ignore case
//! take letters for equal that fold to the same one, as the Kelvin sign and `k`, or both small sigmas.

use crate::env::{Env, Style};
use base::Result;
use std::any::Any;
use std::sync::OnceLock;

/// Which characters are letters, and have another case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ctype {
    /// Those of ASCII.
    #[default]
    C,
    /// Unicode's.
    Unicode,
}

impl Ctype {
    /// Of a locale's name; None: there is no such locale here.
    pub fn of_locale(name: &str) -> Option<Ctype> {
        match name {
            "C" | "POSIX" => Some(Ctype::C),
            "C.UTF-8" | "C.UTF8" | "C.utf8" | "C.utf-8" => Some(Ctype::Unicode),
            _ => None,
        }
    }

    /// Of a built-in collation; None: the database's.
    pub fn of_collation(oid: u32) -> Option<Ctype> {
        match crate::facts::collations().iter().find(|c| c.oid.0 == oid)?.name {
            "C" | "POSIX" | "ucs_basic" => Some(Ctype::C),
            "pg_c_utf8" | "pg_unicode_fast" | "unicode" => Some(Ctype::Unicode),
            _ => None,
        }
    }

    /// The text with each letter's other case, if `case` gives one.
    fn map(self, s: &str, ascii: fn(&str) -> String, case: fn(char) -> char) -> String {
        match self {
            Ctype::Unicode if !s.is_ascii() => s.chars().map(case).collect(),
            _ => ascii(s),
        }
    }

    /// In small letters.
    pub fn lower(self, s: &str) -> String {
        self.map(s, str::to_ascii_lowercase, lower)
    }

    /// In capitals.
    pub fn upper(self, s: &str) -> String {
        self.map(s, str::to_ascii_uppercase, upper)
    }

    /// As it is compared when case is of no matter.
    pub fn fold(self, s: &str) -> String {
        self.map(s, str::to_ascii_lowercase, fold)
    }

    /// Each word with a capital, for the rest in small letters.
    pub fn initcap(self, s: &str) -> String {
        let unicode = self == Ctype::Unicode;
        let mut start = true;
        s.chars()
            .map(|c| {
                let cased = match (unicode, start) {
                    (false, true) => c.to_ascii_uppercase(),
                    (false, false) => c.to_ascii_lowercase(),
                    (true, true) => upper(c),
                    (true, false) => lower(c),
                };
                start = !(c.is_ascii_digit()
                    || if unicode { c.is_alphabetic() } else { c.is_ascii_alphabetic() });
                cased
            })
            .collect()
    }
}

/// The one character that `all` are; None: there are more.
fn single(mut all: impl Iterator<Item = char>) -> Option<char> {
    all.next().filter(|_| all.next().is_none())
}

fn lower(c: char) -> char {
    // Only the capital I with a dot has more: the dot comes off.
    single(c.to_lowercase()).unwrap_or('i')
}

fn upper(c: char) -> char {
    single(c.to_uppercase()).unwrap_or_else(|| {
        // Greek vowels with an iota below have capitals with one beside them; others, as the sharp s, have none.
        let further = match u32::from(c) {
            0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => 8,
            0x1fb3 | 0x1fc3 | 0x1ff3 => 9,
            _ => 0,
        };
        char::from_u32(u32::from(c) + further).unwrap_or(c)
    })
}

fn fold(c: char) -> char {
    match u32::from(c) {
        // neither i has another in every language
        0x130 | 0x131 => c,
        0xfb05 => '\u{fb06}',
        0x1fd3 => '\u{390}',
        0x1fe3 => '\u{3b0}',
        // Cherokee had capitals first
        0x13a0..=0x13fd | 0xab70..=0xabbf => upper(c),
        _ => lower(upper(c)),
    }
}

/// The session, for a call whose arguments have a COLLATE.
struct Collated<'a> {
    session: &'a dyn Env,
    style: &'static Style,
}

/// Calls `f` as if the database's [`Ctype`] were this one.
///
/// # Errors
/// Those of `f`.
pub fn with<T>(
    ctype: Ctype,
    session: &dyn Env,
    f: impl FnOnce(&dyn Env) -> Result<T>,
) -> Result<T> {
    static UNICODE: OnceLock<Style> = OnceLock::new();
    let style = match ctype {
        Ctype::C => Style::plain(),
        Ctype::Unicode => {
            UNICODE.get_or_init(|| Style { ctype: Ctype::Unicode, ..Style::default() })
        }
    };
    f(&Collated { session, style })
}

impl Env for Collated<'_> {
    fn setting(&self, name: &str) -> Option<String> {
        self.session.setting(name)
    }
    fn style(&self) -> &Style {
        self.style
    }
    fn transaction_timestamp(&self) -> i64 {
        self.session.transaction_timestamp()
    }
    fn statement_timestamp(&self) -> i64 {
        self.session.statement_timestamp()
    }
    fn check_cancel(&self) -> Result<()> {
        self.session.check_cancel()
    }
    fn as_any(&self) -> &dyn Any {
        self.session.as_any()
    }
}

/// The functions that ask what letters are, by `pg_proc.prosrc`'s names.
pub fn is_asked_by(symbol: &str) -> bool {
    matches!(symbol, "lower" | "upper" | "initcap" | "casefold")
        || symbol.contains("iclike")
        || symbol.contains("icnlike")
        || symbol.contains("regex")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_one_other_case_at_most() {
        let u = Ctype::Unicode;
        assert_eq!(u.lower("ÀÉÎ Straße İI ΑΣ"), "àéî straße ii ασ");
        assert_eq!(u.upper("àéî straße ŉ ᾳ ᾀ ǆ"), "ÀÉÎ STRAßE ŉ ᾼ ᾈ Ǆ");
        assert_eq!(u.initcap("élan d'été 2e ǆ ⅷx"), "Élan D'Été 2e Ǆ Ⅷx");
        assert_eq!(u.fold("ſKµς İı ᎠꭰⒶ"), "skμσ İı ᎠᎠⓐ");
    }

    #[test]
    fn the_locale_c_knows_ascii() {
        let c = Ctype::C;
        assert_eq!(c.lower("ÀBC"), "Àbc");
        assert_eq!(c.upper("àbc"), "àBC");
        assert_eq!(c.initcap("élan vital"), "éLan Vital");
        assert_eq!(c.fold("ÀBC"), "Àbc");
    }
}
