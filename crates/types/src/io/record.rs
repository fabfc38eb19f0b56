//! `(1,"a b",)`: rows' text form.

use super::{natural_type, text_input, text_output};
use crate::datum::{RecordColumn, RecordValue};
use crate::{Datum, Env};
use base::{Oid, Result, SqlError, SqlState};
use std::sync::Arc;

/// Appends a row's text form.
///
/// # Errors
/// The fields' own.
pub fn record_output(r: &RecordValue, env: &dyn Env, out: &mut String) -> Result<()> {
    out.push('(');
    for (i, value) in r.fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if matches!(value, Datum::Null) {
            continue;
        }
        let ty = r.columns.get(i).map_or_else(|| natural_type(value), |c| c.type_oid);
        let start = out.len();
        text_output(ty, value, env, out)?;
        let s = &out[start..];
        let quote = s.is_empty()
            || s.chars()
                .any(|c| matches!(c, '"' | '\\' | '(' | ')' | ',') || crate::text::is_space(c));
        if quote {
            let s = out.split_off(start);
            out.push('"');
            for c in s.chars() {
                if c == '"' || c == '\\' {
                    out.push(c);
                }
                out.push(c);
            }
            out.push('"');
        }
    }
    out.push(')');
    Ok(())
}

fn malformed<T>(text: &str, why: &str) -> Result<T> {
    let message = format!("malformed record literal: \"{text}\"");
    let e = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).detail(why);
    Err(e.into())
}

/// The text form of a row of `columns` columns, taken apart: what each reads, None for NULL.
///
/// # Errors
/// `22P02`
pub fn record_parts(text: &str, columns: usize) -> Result<Vec<Option<String>>> {
    const ENDS: &str = "Unexpected end of input.";
    let blank = |c: char| crate::text::is_space(c);
    let Some(inner) = text.trim_start_matches(blank).strip_prefix('(') else {
        return malformed(text, "Missing left parenthesis.");
    };
    let mut rest = inner.chars().peekable();
    let mut parts = Vec::with_capacity(columns);
    for n in 0..columns {
        if n > 0 && rest.next_if_eq(&',').is_none() {
            return malformed(text, "Too few columns.");
        }
        if matches!(rest.peek(), Some(',' | ')')) {
            parts.push(None);
            continue;
        }
        let mut part = String::new();
        let mut quoted = false;
        while quoted || !matches!(rest.peek(), Some(',' | ')')) {
            let Some(c) = rest.next() else { return malformed(text, ENDS) };
            match c {
                '\\' => match rest.next() {
                    Some(c) => part.push(c),
                    None => return malformed(text, ENDS),
                },
                '"' if quoted && rest.next_if_eq(&'"').is_some() => part.push('"'),
                '"' => quoted = !quoted,
                c => part.push(c),
            }
        }
        parts.push(Some(part));
    }
    if rest.next() != Some(')') {
        return malformed(text, "Too many columns.");
    }
    if rest.any(|c| !blank(c)) {
        return malformed(text, "Junk after right parenthesis.");
    }
    Ok(parts)
}

/// Reads a row of the type, whose columns are those.
///
/// # Errors
/// `22P02`, and the columns' own.
pub(super) fn record_input(
    type_oid: Oid,
    columns: Arc<[RecordColumn]>,
    text: &str,
    env: &dyn Env,
) -> Result<Datum> {
    let mut fields = Vec::with_capacity(columns.len());
    for (part, column) in record_parts(text, columns.len())?.into_iter().zip(columns.iter()) {
        fields.push(match part {
            Some(part) => text_input(column.type_oid, column.typmod, &part, env)?,
            None => {
                crate::domains::check(column.type_oid, &Datum::Null, env)?;
                Datum::Null
            }
        });
    }
    Ok(Datum::Record(Arc::new(RecordValue { type_oid, columns, fields })))
}
