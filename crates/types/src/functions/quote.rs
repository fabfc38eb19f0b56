//! quote_ident, quote_literal, format, and the words of SQL.

use super::text::t;
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Oid, Result, bail, err};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A word's class in PostgreSQL's grammar: U unreserved, C column name, T type or function name, R reserved; and
/// whether it may be a label without AS.
pub fn keyword(word: &str) -> Option<(char, bool)> {
    static MAP: OnceLock<HashMap<&'static str, (char, bool)>> = OnceLock::new();
    MAP.get_or_init(|| {
        include_str!("../../data/keywords.tsv")
            .lines()
            .filter_map(|l| {
                let mut f = l.split('\t');
                Some((f.next()?, (f.next()?.chars().next()?, f.next()? == "t")))
            })
            .collect()
    })
    .get(word)
    .copied()
}

/// All keywords: (word, class, may be a bare label).
pub fn keywords() -> impl Iterator<Item = (&'static str, char, bool)> {
    include_str!("../../data/keywords.tsv").lines().filter_map(|l| {
        let mut f = l.split('\t');
        Some((f.next()?, f.next()?.chars().next()?, f.next()? == "t"))
    })
}

/// An identifier as SQL must write it: quoted only where needed.
pub fn quote_ident(s: &str) -> String {
    let plain = s.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && keyword(s).is_none_or(|(class, _)| class == 'U');
    if plain { s.to_owned() } else { format!("\"{}\"", s.replace('"', "\"\"")) }
}

/// A string literal.
pub fn quote_literal(s: &str) -> String {
    let quoted = s.replace('\'', "''");
    if s.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

fn format_string(env: &dyn Env, a: &[Datum], types: &[Oid]) -> Result<Datum> {
    if is_null(a, 0) {
        return Ok(Datum::Null);
    }
    let mut out = String::new();
    let chars: Vec<char> = text(a, 0)?.chars().collect();
    let mut i = 0;
    let mut next = 1;
    let unterminated = || {
        base::SqlError::new(
            base::SqlState::INVALID_PARAMETER_VALUE,
            "unterminated format() type specifier",
        )
        .hint("For a single \"%\" use \"%%\".")
    };
    let few = || err!(INVALID_PARAMETER_VALUE, "too few arguments for format()");
    let number = |i: &mut usize| -> Result<Option<i32>> {
        let start = *i;
        let mut n: i32 = 0;
        while let Some(d) = chars.get(*i).and_then(|c| c.to_digit(10)) {
            n = n
                .checked_mul(10)
                .and_then(|n| n.checked_add(d as i32))
                .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
            *i += 1;
        }
        Ok((*i > start).then_some(n))
    };
    while i < chars.len() {
        if chars[i] != '%' {
            out.push(chars[i]);
            i += 1;
            continue;
        }
        i += 1;
        if chars.get(i) == Some(&'%') {
            out.push('%');
            i += 1;
            continue;
        }
        if i >= chars.len() {
            return Err(unterminated().into());
        }
        let mut arg: Option<usize> = None;
        let mut width: Option<i32> = None;
        let mut left = false;
        let position = |n: i32| -> Result<usize> {
            if n == 0 {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "format specifies argument 0, but arguments are numbered from 1"
                );
            }
            Ok(n as usize)
        };
        let before = i;
        match number(&mut i)? {
            Some(n) if chars.get(i) == Some(&'$') => {
                arg = Some(position(n)?);
                i += 1;
            }
            Some(_) => i = before,
            None => {}
        }
        while chars.get(i) == Some(&'-') {
            left = true;
            i += 1;
        }
        if chars.get(i) == Some(&'*') {
            i += 1;
            let at = match number(&mut i)? {
                Some(n) if chars.get(i) == Some(&'$') => {
                    i += 1;
                    next = position(n)? + 1;
                    next - 1
                }
                Some(_) => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "width argument position must be ended by \"$\""
                    ));
                }
                None => {
                    next += 1;
                    next - 1
                }
            };
            let w = a.get(at).ok_or_else(few)?;
            width = Some(match w {
                Datum::Null => 0,
                Datum::Int2(n) => i32::from(*n),
                Datum::Int4(n) => *n,
                Datum::Int8(n) => i32::try_from(*n).map_err(|_| super::int::int4_range())?,
                other => {
                    let s =
                        crate::io::to_text(types.get(at).copied().unwrap_or_default(), other, env)?;
                    match crate::io::text_input(crate::oids::INT4, -1, &s, env)? {
                        Datum::Int4(n) => n,
                        _ => 0,
                    }
                }
            });
        } else if let Some(n) = number(&mut i)? {
            width = Some(n);
        }
        let mut w = width.unwrap_or(0);
        if w < 0 {
            left = true;
            w = w
                .checked_neg()
                .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
        }
        let Some(kind) = chars.get(i).copied() else { return Err(unterminated().into()) };
        i += 1;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(base::SqlError::new(
                base::SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized format() type specifier \"{kind}\""),
            )
            .hint("For a single \"%\" use \"%%\".")
            .into());
        }
        let at = match arg {
            Some(n) => {
                next = n + 1;
                n
            }
            None => {
                next += 1;
                next - 1
            }
        };
        let value = a.get(at).ok_or_else(few)?;
        let s = if value.is_null() {
            match kind {
                's' => String::new(),
                'L' => "NULL".to_owned(),
                _ => bail!(
                    NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier"
                ),
            }
        } else {
            let ty = types.get(at).copied().unwrap_or_else(|| crate::io::natural_type(value));
            let s = crate::io::to_text(ty, value, env)?;
            match kind {
                'I' => quote_ident(&s),
                'L' => quote_literal(&s),
                _ => s,
            }
        };
        let have = s.chars().count();
        let missing = (w as usize).saturating_sub(have);
        super::text::check_size(out.len().saturating_add(s.len()).saturating_add(missing))?;
        let padding = " ".repeat(missing);
        if left {
            out.push_str(&s);
            out.push_str(&padding);
        } else {
            out.push_str(&padding);
            out.push_str(&s);
        }
    }
    Ok(t(out))
}

pub(super) const BODIES: BodyTable = &[
    ("quote_ident", S(|_, a| Ok(t(quote_ident(text(a, 0)?))))),
    ("quote_literal", S(|_, a| Ok(t(quote_literal(text(a, 0)?))))),
    (
        "quote_literal(anyelement)",
        FunctionBody::ScalarTyped(|env, a, ty, _| {
            Ok(t(quote_literal(&super::text::cast_to_text(ty[0], &a[0], env)?)))
        }),
    ),
    (
        "quote_nullable",
        S(|_, a| Ok(t(if is_null(a, 0) { "NULL".to_owned() } else { quote_literal(text(a, 0)?) }))),
    ),
    (
        "quote_nullable(anyelement)",
        FunctionBody::ScalarTyped(|env, a, ty, _| {
            Ok(t(if is_null(a, 0) {
                "NULL".to_owned()
            } else {
                quote_literal(&super::text::cast_to_text(ty[0], &a[0], env)?)
            }))
        }),
    ),
    ("text_format", FunctionBody::ScalarTyped(|env, a, ty, _| format_string(env, a, ty))),
    ("text_format_nv", FunctionBody::ScalarTyped(|env, a, ty, _| format_string(env, a, ty))),
];
