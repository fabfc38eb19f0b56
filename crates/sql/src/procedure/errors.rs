//! In which text an error is.

use super::Body;
use base::Error;
use plpgsql::{Mode, Site, Source};

/// What stands before an expression when it is parsed.
pub(super) const SELECT: &str = "SELECT ";

/// How far positions in what is parsed of a site are from those in its text.
fn shift(site: &Site) -> (u32, u32) {
    let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(0);
    match site.mode {
        Mode::Statement => (0, 0),
        Mode::Expression => (chars(SELECT), 0),
        Mode::Assignment { expression_at } => {
            let target = site.text.get(..expression_at as usize).unwrap_or("");
            (chars(SELECT), chars(target))
        }
    }
}

/// A position in what was parsed of a site as one in the site's text.
pub(super) fn in_text(site: &Site, position: u32) -> u32 {
    let (before, target) = shift(site);
    position.saturating_sub(before).max(1) + target
}

/// An error that running, planning or analysing a text has met, which says so.
pub(super) fn within(source: Source<'_>, error: Error) -> Error {
    let Error::Sql(mut e) = error else { return error };
    match e.position.take() {
        Some(position) => {
            let (position, text) = match source {
                Source::Site(site) => (in_text(site, position), site.text.to_string()),
                Source::Text { text, .. } => (position, text.to_owned()),
            };
            e.internal_position = Some(position);
            e.internal_query = Some(text);
        }
        None => {
            let line = context(source);
            e.context = Some(match e.context.take() {
                Some(lines) => format!("{lines}\n{line}"),
                None => line,
            });
        }
    }
    Error::Sql(e)
}

/// The context line of a text.
pub(super) fn context(source: Source<'_>) -> String {
    match source {
        Source::Site(site) => site.context(),
        Source::Text { text, .. } => format!("SQL statement \"{text}\""),
    }
}

/// An error in a body as one in the statement that the body was a literal of, if that is there once.
pub(super) fn in_statement(error: Error, body: Body<'_>) -> Error {
    let Error::Sql(mut e) = error else { return error };
    if e.internal_query.as_deref() == Some(body.text)
        && let Some(at) = e.internal_position
        && let Some(position) = place_in_literal(body, (at as usize).saturating_sub(1))
    {
        e.position = u32::try_from(position + 1).ok();
        e.internal_position = None;
        e.internal_query = None;
    }
    Error::Sql(e)
}

/// Where character `at` (from 0) of the body is in its source; None if there is not one literal of that value.
fn place_in_literal(body: Body<'_>, at: usize) -> Option<usize> {
    let mut found = None;
    for (start, quote) in body.source.char_indices().filter(|(_, c)| matches!(c, '$' | '\'')) {
        let inside = &body.source[start + 1..];
        let written = match quote {
            '$' => inside.strip_prefix(body.text).filter(|rest| rest.starts_with('$')).map(|_| at),
            _ => place_in_quotes(inside, body.text, at),
        };
        let Some(written) = written else { continue };
        if found.is_some() {
            return None;
        }
        found = Some(body.source[..=start].chars().count() + written);
    }
    found
}

/// How many characters of `inside`, which begins behind a quote, stand for the first `at` of `text`; None if it does not stand for `text`.
fn place_in_quotes(inside: &str, text: &str, at: usize) -> Option<usize> {
    let mut chars = inside.chars();
    let (mut taken, mut place) = (0, None);
    for (n, wanted) in text.chars().enumerate() {
        if n == at {
            place = Some(taken);
        }
        if chars.next()? != wanted {
            return None;
        }
        taken += 1;
        if wanted == '\'' {
            if chars.next()? != '\'' {
                return None;
            }
            taken += 1;
        }
    }
    let ends = chars.next() == Some('\'') && chars.next() != Some('\'');
    ends.then(|| place.unwrap_or(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_body_is_one_in_the_statement() {
        let place = |source, text, at| place_in_literal(Body { text, source }, at);
        assert_eq!(place("DO $$abc$$", "abc", 1), Some(6));
        assert_eq!(place("DO 'a''bc'", "a'bc", 2), Some(7));
        assert_eq!(place("DO 'a''bc'", "a'bc", 4), Some(9));
        // Twice, or written in another way.
        assert_eq!(place("DO $$abc$$; DO $$abc$$", "abc", 1), None);
        assert_eq!(place("DO E'a\\nc'", "a\nc", 1), None);
        assert_eq!(place("DO 'abc'''", "abc", 1), None);
    }
}
