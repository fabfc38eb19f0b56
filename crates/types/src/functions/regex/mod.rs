//! Regular expressions.
//!
//! # Differs from PostgreSQL
//! Patterns are translated for the `fancy-regex` engine and matched leftmost-longest, as POSIX asks, unless they
//! hold a non-greedy quantifier; then leftmost-first decides.

mod functions;
mod translate;

pub(super) use functions::BODIES;
use translate::{Flags, translate};

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

fn compile(pattern: &str, flags: Flags) -> Result<Rc<Compiled>> {
    let flags = Flags { global: false, ..flags };
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
    let ambiguous = !t.lazy && t.pattern.contains(['|', '?', '*', '+', '{']);
    let find = if ambiguous && t.pattern.contains(['|', '(']) {
        Some(build(&t.pattern, true)?)
    } else {
        None
    };
    let groups = test.captures_len().saturating_sub(1);
    let compiled = Rc::new(Compiled { test, find, groups });
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
        let re = self.find.as_ref().unwrap_or(&self.test);
        let Some(c) = re.captures_from_pos(s, from).map_err(|e| failed(&e))? else {
            return Ok(None);
        };
        let Some(whole) = c.get(0) else { return Ok(None) };
        let groups = (1..=self.groups).map(|i| c.get(i).map(|m| (m.start(), m.end()))).collect();
        Ok(Some(Found { start: whole.start(), end: whole.end(), groups }))
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
