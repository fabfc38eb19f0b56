//! Statements of the simple protocol without their constants: `WHERE aid = 5` and `WHERE aid = 6` are read once.
//!
//! # Purpose
//! Clients that write their values into the text send a new text each time. [`Templates`] keeps statements under the text with its whole numbers
//! and its strings struck out, and knows which of them are parameters.
//!
//! # Invariants
//! A constant becomes a parameter only where it is the whole of what the analyser sees as a constant of type integer, or as one whose type is that
//! of what it is compared with or written to (`template_form.rs`). All others of the text must be the same again. Of what UPDATE writes one stays a
//! constant that might be no value of its column: planning tells that, whether a row is found or not.
//! The plan of a template is one for all values only where it could not have depended on them: they find one row at most by a unique key, or are
//! written. Elsewhere the statement is planned for its values each time, as it would be as a text of its own.
//! A template is used under the catalogs, and the search path, that it was made under, and under no others.
//!
//! # Layout
//! In a key a number is the byte 1, a string the byte 2; no text that is looked up has these. Where a quote may be something else than a string's
//! (in a comment, within dollars, behind a letter or `&`) strings stay in the key.

use super::Session;
use super::prepared::Prepared;
use super::template_form::{Taker, has_form};
use crate::analyse::ParamTypes;
use crate::parse::{Parsed, Statement};
use base::{Oid, Result};
use engine::catalog::cache::SessionCatalog;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::rc::Rc;
use types::{Datum, Env, oids};

/// How many statements are kept.
const KEPT: usize = 256;
/// How many are remembered as having come once.
const SEEN: usize = 1024;
/// Longer texts are not looked at.
const LONGEST: usize = 2048;

/// So many texts in a row that differ from a template in what is no parameter: it is left as it is.
const MOST_MISSED: u8 = 8;

/// A run of digits in a text, or a string with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_string: bool,
}

impl Run {
    /// What a string of `text` says.
    pub(super) fn content(self, text: &str) -> Cow<'_, str> {
        let within = &text[self.start + 1..self.end - 1];
        match within.contains('\'') {
            true => Cow::Owned(within.replace("''", "'")),
            false => Cow::Borrowed(within),
        }
    }
}

/// What stands where a run was.
enum Slot {
    /// A parameter of the plan, or its negative.
    Number { negative: bool },
    /// A parameter of this type.
    String(Oid),
    /// These bytes and no others.
    Fixed(Box<str>),
}

struct Template {
    prepared: Rc<Prepared>,
    slots: Vec<Slot>,
    generation: u64,
    search_path: Rc<[String]>,
    /// How many texts in a row were others where no parameter is.
    missed: u8,
}

/// Statements by text without constants.
#[derive(Default)]
pub(super) struct Templates {
    /// None: the text is known to make no template.
    templates: HashMap<Box<str>, Option<Template>>,
    /// Hashes of keys that came once, by their low bits.
    seen: Vec<u64>,
    hasher: std::hash::RandomState,
    /// The key and the runs of the text looked up last.
    key: String,
    runs: Vec<Run>,
    /// How often a template was found.
    used: u64,
}

/// Part of a name, of a number that is not whole, of $1.
fn joins(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$') || b >= 0x80
}

/// Strikes the whole numbers and the strings out of `text`.
fn strike_out(text: &str, key: &mut String, runs: &mut Vec<Run>) {
    let bytes = text.as_bytes();
    let strings = bytes.contains(&b'\'')
        && !bytes.contains(&b'$')
        && !text.contains("--")
        && !text.contains("/*");
    if !strike(text, strings, key, runs) {
        strike(text, false, key, runs);
    }
}

/// The same, with `strings` or without; false, with nothing that is of use: a quote is not a string's.
fn strike(text: &str, strings: bool, key: &mut String, runs: &mut Vec<Run>) -> bool {
    key.clear();
    runs.clear();
    let bytes = text.as_bytes();
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        let start = at;
        let is_string = strings && bytes[at] == b'\'';
        if is_string {
            let before = start.checked_sub(1).map(|i| bytes[i]);
            let Some(end) = after_quoted(bytes, start) else { return false };
            if before.is_some_and(|b| joins(b) || b == b'&') {
                return false;
            }
            at = end;
        } else if strings && bytes[at] == b'"' {
            let Some(end) = after_quoted(bytes, start) else { return false };
            at = end;
            continue;
        } else if joins(bytes[at]) {
            while at < bytes.len() && joins(bytes[at]) {
                at += 1;
            }
            if !bytes[start..at].iter().all(u8::is_ascii_digit) {
                continue;
            }
        } else {
            at += 1;
            continue;
        }
        key.push_str(&text[copied..start]);
        key.push(if is_string { '\u{2}' } else { '\u{1}' });
        copied = at;
        runs.push(Run { start, end: at, is_string });
    }
    key.push_str(&text[copied..]);
    true
}

/// Where what is quoted from `start` on is over; a quote that is doubled is part of it.
fn after_quoted(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == quote)? + 1;
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// A string can be a parameter of such a type: its value is that of its text alone.
fn is_plain_type(ty: Oid) -> bool {
    is_of_time(ty)
        || matches!(
            ty,
            oids::TEXT
                | oids::VARCHAR
                | oids::BPCHAR
                | oids::NAME
                | oids::UUID
                | oids::BOOL
                | oids::INT2
                | oids::INT4
                | oids::INT8
                | oids::FLOAT8
                | oids::NUMERIC
        )
}

fn is_of_time(ty: Oid) -> bool {
    matches!(ty, oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ)
}

impl Slot {
    /// The parameter that `run` of `text` is here: none where none is, an error where the text is another one.
    fn parameter(&self, text: &str, run: Run, env: &dyn Env) -> Result<Option<Datum>, ()> {
        let written = &text[run.start..run.end];
        match self {
            Slot::Fixed(same) if **same == *written => Ok(None),
            Slot::Fixed(_) => Err(()),
            Slot::Number { negative } => {
                let n = written.parse::<i64>().map_err(|_| ())?;
                let n = i32::try_from(if *negative { -n } else { n }).map_err(|_| ())?;
                Ok(Some(Datum::Int4(n)))
            }
            Slot::String(ty) => {
                let content = run.content(text);
                // 'now' and 'tomorrow' are read when the transaction is there.
                let is_moment = |b: u8| b.is_ascii_digit() || b"-:. +TZ".contains(&b);
                if is_of_time(*ty) && !content.bytes().all(is_moment) {
                    return Err(());
                }
                // What is wrong with it is told with its place.
                types::text_input(*ty, -1, &content, env).map(Some).map_err(|_| ())
            }
        }
    }
}

impl Templates {
    /// The statement that `text` is and its parameters.
    pub(super) fn get(
        &mut self,
        text: &str,
        catalog: &SessionCatalog,
        path: &[String],
        env: &dyn Env,
    ) -> Option<(Rc<Prepared>, Vec<Datum>)> {
        self.key.clear();
        // A text with a byte that stands for a constant in it could be taken for another one.
        if text.len() > LONGEST || text.bytes().any(|b| matches!(b, 1 | 2)) {
            return None;
        }
        strike_out(text, &mut self.key, &mut self.runs);
        let template = self.templates.get_mut(self.key.as_str())?.as_mut()?;
        if *template.search_path != *path
            || !catalog.still_good(&mut template.generation, &template.prepared.footing)
        {
            // It may be made anew.
            template.missed = 0;
            return None;
        }
        let mut params = Vec::with_capacity(self.runs.len());
        for (slot, run) in template.slots.iter().zip(&self.runs) {
            let Ok(param) = slot.parameter(text, *run, env) else {
                template.missed = template.missed.saturating_add(1);
                return None;
            };
            params.extend(param);
        }
        template.missed = 0;
        self.used += 1;
        Some((Rc::clone(&template.prepared), params))
    }

    /// Is the text looked up last to be made a template of: has it come before in all but its constants, and is none yet?
    fn is_wanted(&mut self) -> bool {
        if self.key.is_empty() || self.runs.is_empty() {
            return false;
        }
        match self.templates.get(self.key.as_str()) {
            Some(None) => return false,
            Some(Some(template)) if template.missed > MOST_MISSED => return false,
            _ => {}
        }
        let hash = self.hasher.hash_one(self.key.as_str());
        self.seen.resize(SEEN, 0);
        let slot = usize::try_from(hash % SEEN as u64).unwrap_or(0);
        std::mem::replace(&mut self.seen[slot], hash) == hash
    }

    /// Keeps what the text looked up last makes.
    fn put(&mut self, template: Option<Template>) {
        if self.templates.len() >= KEPT {
            self.templates.clear();
        }
        let before = self.templates.get(self.key.as_str()).and_then(Option::as_ref);
        let missed = before.map_or(0, |before| before.missed);
        let template = template.map(|template| Template { missed, ..template });
        self.templates.insert(self.key.as_str().into(), template);
    }

    pub(super) fn clear(&mut self) {
        self.templates.clear();
    }
}

impl Session {
    /// How many statements of the simple protocol ran as another one that differs in constants alone.
    pub fn templates_used(&self) -> u64 {
        self.templates.used
    }

    /// Keeps the statement that was prepared of the text looked up last, for the texts that differ from it in constants alone.
    ///
    /// # Errors
    /// None of the statement's: one that does not analyse with parameters is not kept.
    pub(super) fn keep_template(&mut self, whole: &Prepared) -> Result<()> {
        let Some(parsed) = &whole.parsed else { return Ok(()) };
        let Statement::Query(query) = &parsed.statement else { return Ok(()) };
        // What is none by its form is not copied to find that out.
        if self.state.catalog.is_dirty() || !has_form(query) || !self.templates.is_wanted() {
            return Ok(());
        }
        let template = self.template_of(whole, parsed)?;
        self.templates.put(template);
        Ok(())
    }

    fn template_of(&mut self, whole: &Prepared, parsed: &Parsed) -> Result<Option<Template>> {
        let mut changed = Parsed::clone(parsed);
        let Statement::Query(query) = &mut changed.statement else { return Ok(None) };
        let runs = self.templates.runs.clone();
        let mut taker = Taker::new(&parsed.source, &runs);
        let Some(for_all) = taker.statement(query, self.state.as_ref())? else { return Ok(None) };
        let taken = taker.taken;
        // Parameters are numbered as they were met in the tree; values are read in the order of the text.
        if taken.is_empty() || !taken.is_sorted_by_key(|t| t.start) {
            return Ok(None);
        }
        // Those of strings are found by analysis.
        let is_string = |start| runs.iter().any(|run| run.start == start && run.is_string);
        let asked =
            taken.iter().map(|t| if is_string(t.start) { Oid::INVALID } else { oids::INT4 });
        let asked: Vec<Oid> = asked.collect();
        changed.max_param = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        let Ok(mut prepared) = self.prepare(changed, ParamTypes::variable(asked.clone())) else {
            return Ok(None);
        };
        let found = asked.iter().zip(&taken).zip(&prepared.params);
        let found = found.into_iter().all(|((asked, taken), found)| match *asked {
            Oid::INVALID => {
                is_plain_type(*found) && taken.written_to.is_none_or(|column| column == *found)
            }
            asked => asked == *found,
        });
        if self.state.clock_read.get() || !found || prepared.params.len() != taken.len() {
            return Ok(None);
        }
        let mut params = taken.iter().zip(&prepared.params).peekable();
        let mut slots = Vec::with_capacity(runs.len());
        for run in &runs {
            slots.push(match params.next_if(|(t, _)| t.start == run.start) {
                Some((_, ty)) if run.is_string => Slot::String(*ty),
                Some((t, _)) => Slot::Number { negative: t.negative },
                None => Slot::Fixed(parsed.source[run.start..run.end].into()),
            });
        }
        if params.next().is_some() {
            return Ok(None);
        }
        prepared.identity.become_template_of(&whole.identity);
        prepared.plan_by_values(!for_all);
        Ok(Some(Template {
            prepared: Rc::new(prepared),
            slots,
            generation: self.state.catalog.generation(),
            search_path: self.state.search_path_names(),
            missed: 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(text: &str) -> (String, Vec<&str>) {
        let (mut key, mut runs) = (String::new(), Vec::new());
        strike_out(text, &mut key, &mut runs);
        (
            key.replace('\u{1}', "?").replace('\u{2}', "!"),
            runs.iter().map(|r| &text[r.start..r.end]).collect(),
        )
    }

    #[test]
    fn whole_numbers_are_struck_out() {
        let (key, runs) =
            struck("SELECT a1, 12 FROM t WHERE b=-345 AND c=$1 AND d<1.5e3 OR é7=0x1F");
        assert_eq!(key, "SELECT a1, ? FROM t WHERE b=-? AND c=$1 AND d<1.5e3 OR é7=0x1F");
        assert_eq!(runs, ["12", "345"]);
        assert_eq!(struck("99").0, "?");
        assert_eq!(struck("").0, "");
    }

    #[test]
    fn strings_are_struck_out_where_they_are_sure_to_be_such() {
        let (key, runs) = struck("SELECT 'a''1', '', \"x'2\", 3 FROM t WHERE b='4'AND c<>'5'");
        assert_eq!(key, "SELECT !, !, \"x'2\", ? FROM t WHERE b=!AND c<>!");
        assert_eq!(runs, ["'a''1'", "''", "3", "'4'", "'5'"]);
        assert_eq!(struck("'it''s'").0, "!");
        let run = Run { start: 0, end: 7, is_string: true };
        assert_eq!(run.content("'it''s'"), "it's");
        // Not closed; other literals; comments; dollars.
        for text in [
            "SELECT 'a",
            "SELECT '",
            "SELECT 'a'' ",
            "SELECT \"a' ",
            "SELECT E'\\'' 1",
            "SELECT X'1'",
            "SELECT U&'1'",
            "SELECT 'a' -- 'b",
            "SELECT /* ' */ 'a'",
            "SELECT $$'$$, 'a'",
        ] {
            let (key, runs) = struck(text);
            assert!(!key.contains('!') && runs.iter().all(|run| !run.contains('\'')), "{text}");
        }
        assert_eq!(struck("SELECT E'1 2', 'b'").0, "SELECT E'? ?', 'b'");
    }
}
