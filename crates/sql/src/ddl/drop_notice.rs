//! What the client is told of that goes with what is dropped.

use super::depend::Object;
use super::drop::describe;
use crate::client::{Notice, Severity};
use crate::session::SessionState;
use base::Result;

/// How many objects the notice names, as in PostgreSQL: a schema may have thousands.
const REPORTED_MAX: usize = 100;

/// The lines of the first, and how many there are besides.
fn with_the_rest(mut lines: Vec<String>, all: usize) -> String {
    match all - lines.len() {
        0 => {}
        1 => lines.push("and 1 other object (see server log for list)".to_owned()),
        more => lines.push(format!("and {more} other objects (see server log for list)")),
    }
    lines.join("\n")
}

/// Of what goes besides what was named: each with what it depends on.
///
/// # Errors
/// I/O.
pub(super) fn cascades(state: &SessionState, dropped: &[(Object, Object)]) -> Result<Notice> {
    if let [(one, _)] = dropped {
        let text = format!("drop cascades to {}", describe(state, *one)?);
        return Ok(Notice::new(Severity::Notice, text));
    }
    let text = format!("drop cascades to {} other objects", dropped.len());
    let mut notice = Notice::new(Severity::Notice, text);
    let lines: Vec<String> = dropped
        .iter()
        .take(REPORTED_MAX)
        .map(|(o, _)| Ok(format!("drop cascades to {}", describe(state, *o)?)))
        .collect::<Result<_>>()?;
    notice.body.detail = Some(with_the_rest(lines, dropped.len()));
    Ok(notice)
}

#[cfg(test)]
mod tests {
    use super::with_the_rest;

    #[test]
    fn what_is_not_named_is_counted() {
        let lines = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(with_the_rest(lines(), 2), "a\nb");
        assert_eq!(with_the_rest(lines(), 3), "a\nb\nand 1 other object (see server log for list)");
        assert_eq!(
            with_the_rest(lines(), 9),
            "a\nb\nand 7 other objects (see server log for list)"
        );
    }
}
