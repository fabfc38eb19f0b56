//! Regular expressions.
//!
//! # Differs from PostgreSQL
//! Patterns are translated for the `fancy-regex` engine and matched leftmost-longest, as POSIX asks. Where a pattern
//! holds a non-greedy quantifier, the length of the whole is found first, by what the pattern as a whole prefers, and
//! its parts then by leftmost-first within that length. Shorter matches than the first found are looked for up to
//! [`SHORTEN_MAX`] bytes, and not when the pattern looks at what follows it.

mod functions;
mod translate;

pub(super) use functions::BODIES;
use translate::{Flags, Translated, translate};

use crate::Env;
use base::{Result, err};
use fancy_regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A pattern made ready.
struct Compiled {
    /// To test only: the leftmost-first engine, which is faster.
    test: Regex,
    /// To find the right end.
    find: Option<Regex>,
    groups: usize,
    /// With non-greedy quantifiers: how the whole finds its length.
    length: Option<Length>,
}

/// How long a match is whose pattern holds non-greedy quantifiers.
struct Length {
    /// Finds the start, and the end or one that may be too late.
    whole: Regex,
    /// The pattern up to the end of the text, to find the groups when the end is known.
    bounded: Regex,
    /// An earlier end is to be looked for.
    shorten: bool,
}

/// How far from its start a match is tried for a shorter one.
const SHORTEN_MAX: usize = 2000;

impl Length {
    fn of(t: &Translated) -> Result<Option<Length>> {
        let Some(whole) = &t.whole else { return Ok(None) };
        let pattern = &whole.pattern;
        let looks_ahead = ["\\z", "$", "\\b", "\\B", "(?=", "(?!"];
        // one quantifier alone cannot trade its own length for another's
        let quantifiers = pattern.matches('?').count() - pattern.matches("(?").count();
        let certain = quantifiers <= 1 && !pattern.contains('|');
        let blind = !looks_ahead.iter().any(|part| pattern.contains(part));
        Ok(Some(Length {
            whole: build(pattern, !whole.short)?,
            bounded: build(&format!("(?:{})\\z", t.pattern), false)?,
            shorten: whole.short && !certain && blind,
        }))
    }

    /// The match from `from` on, but for its groups.
    fn range(&self, s: &str, from: usize) -> Result<Option<(usize, usize)>> {
        let Some(m) = self.whole.find_from_pos(s, from).map_err(|e| failed(&e))? else {
            return Ok(None);
        };
        let (start, end) = (m.start(), m.end());
        if self.shorten {
            let near = s[start..end].char_indices().map(|(i, _)| start + i);
            for earlier in near.take_while(|e| e - start <= SHORTEN_MAX) {
                if self.within(s, start, earlier)?.is_some() {
                    return Ok(Some((start, earlier)));
                }
            }
        }
        Ok(Some((start, end)))
    }

    /// The match of exactly this range.
    fn within<'s>(
        &self,
        s: &'s str,
        start: usize,
        end: usize,
    ) -> Result<Option<fancy_regex::Captures<'s, str>>> {
        let found = self.bounded.captures_from_pos(&s[..end], start).map_err(|e| failed(&e))?;
        Ok(found.filter(|c| c.get(0).is_some_and(|m| m.start() == start)))
    }
}

/// How many patterns a session keeps ready.
const CACHE_MAX: usize = 64;
type Cache = HashMap<(String, Flags), Rc<Compiled>>;
thread_local!(static CACHE: RefCell<Cache> = RefCell::new(HashMap::new()));
type Last = Option<(String, Flags, Rc<Compiled>)>;
thread_local!(static LAST: RefCell<Last> = const { RefCell::new(None) });

fn build(pattern: &str, longest: bool) -> Result<Regex> {
    RegexBuilder::new(pattern)
        .leftmost_longest(longest)
        .backtrack_limit(20_000_000)
        .build()
        .map_err(|e| err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {e}"))
}

fn compile(env: &dyn Env, pattern: &str, flags: Flags) -> Result<Rc<Compiled>> {
    let flags = Flags { global: false, ctype: env.style().ctype, ..flags };
    // nearly always the pattern of the row before
    let last = LAST.with_borrow(|l| match l {
        Some((p, f, c)) if p == pattern && *f == flags => Some(Rc::clone(c)),
        _ => None,
    });
    if let Some(c) = last {
        return Ok(c);
    }
    let compiled = compile_cached(pattern, flags)?;
    LAST.set(Some((pattern.to_owned(), flags, Rc::clone(&compiled))));
    Ok(compiled)
}

fn compile_cached(pattern: &str, flags: Flags) -> Result<Rc<Compiled>> {
    let hit = CACHE.with_borrow(|c| c.get(&(pattern.to_owned(), flags)).cloned());
    if let Some(c) = hit {
        return Ok(c);
    }
    let mut effective = flags;
    let t = translate(pattern, &mut effective)?;
    let test = build(&t.pattern, false)?;
    let length = Length::of(&t)?;
    let ambiguous = length.is_none() && t.pattern.contains(['|', '?', '*', '+', '{']);
    let find = if ambiguous && t.pattern.contains(['|', '(']) {
        Some(build(&t.pattern, true)?)
    } else {
        None
    };
    let groups = test.captures_len().saturating_sub(1);
    let compiled = Rc::new(Compiled { test, find, groups, length });
    CACHE.with_borrow_mut(|c| {
        if c.len() >= CACHE_MAX {
            c.clear();
        }
        c.insert((pattern.to_owned(), flags), Rc::clone(&compiled));
    });
    Ok(compiled)
}

fn failed(e: &fancy_regex::Error) -> base::Error {
    err!(INVALID_REGULAR_EXPRESSION, "regular expression failed: {e}")
}

/// Whether a text matches a pattern, with these letters for options.
///
/// # Errors
/// `2201B`, `22023`
pub(crate) fn matches(env: &dyn Env, pattern: &str, letters: &str, s: &str) -> Result<bool> {
    compile(env, pattern, Flags::parse(letters)?)?.is_match(s)
}

/// A match: byte ranges of the whole and of each group.
struct Found {
    start: usize,
    end: usize,
    groups: Vec<Option<(usize, usize)>>,
}

impl Compiled {
    fn is_match(&self, s: &str) -> Result<bool> {
        self.test.is_match(s).map_err(|e| failed(&e))
    }
    fn find(&self, s: &str, from: usize) -> Result<Option<Found>> {
        if from > s.len() {
            return Ok(None);
        }
        if let Some(length) = &self.length {
            let Some((start, end)) = length.range(s, from)? else { return Ok(None) };
            let captures = match length.within(s, start, end)? {
                Some(c) => Some(c),
                None => length.whole.captures_from_pos(s, from).map_err(|e| failed(&e))?,
            };
            return Ok(captures.map(|c| Found { end, ..self.found(&c, start) }));
        }
        let re = self.find.as_ref().unwrap_or(&self.test);
        let captures = re.captures_from_pos(s, from).map_err(|e| failed(&e))?;
        Ok(captures.map(|c| self.found(&c, from)))
    }
    fn found(&self, c: &fancy_regex::Captures<'_, str>, from: usize) -> Found {
        let (start, end) = c.get(0).map_or((from, from), |m| (m.start(), m.end()));
        let groups = (1..=self.groups).map(|i| c.get(i).map(|m| (m.start(), m.end()))).collect();
        Found { start, end, groups }
    }
    /// All matches from `from` on, or the first. `ignore_empty` leaves out matches of nothing at the ends and
    /// right after another (splitting).
    fn all(&self, s: &str, from: usize, global: bool, ignore_empty: bool) -> Result<Vec<Found>> {
        let mut out = Vec::new();
        let mut at = from;
        let mut previous = 0;
        while let Some(m) = self.find(s, at)? {
            let (start, end) = (m.start, m.end);
            if !ignore_empty || start < s.len() && end > previous {
                out.push(m);
            }
            previous = end;
            if !global {
                break;
            }
            at = end;
            if start == end {
                match s[at..].chars().next() {
                    Some(c) => at += c.len_utf8(),
                    None => break,
                }
            }
        }
        Ok(out)
    }
}
