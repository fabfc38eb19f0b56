//! `(1,"a b",)`: rows' text form.

use super::{natural_type, text_output};
use crate::datum::RecordValue;
use crate::{Datum, Env};
use base::Result;

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
