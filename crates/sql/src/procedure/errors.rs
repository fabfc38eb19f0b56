//! In which text an error is.

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
