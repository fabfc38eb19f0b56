//! ~, regexp_* and substring from a pattern.

use super::translate::similar;
use super::{Flags, Found, compile};
use crate::args::*;
use crate::functions::text::{char_at, char_count, check_size, t};
use crate::registry::{
    BodyTable, FunctionBody, FunctionBody::Scalar as S, FunctionBody::Set, RowIter,
};
use crate::{ArrayValue, Ctype, Datum, Env, ctype, oids};
use base::{Result, SqlError, SqlState, bail};
use std::sync::Arc;

fn matches(env: &dyn Env, a: &[Datum], insensitive: bool) -> Result<bool> {
    let flags = Flags { insensitive, ..Flags::default() };
    compile(env, text(a, 1)?, flags)?.is_match(text(a, 0)?)
}

fn flags_at(a: &[Datum], i: usize) -> Result<Flags> {
    if a.len() > i { Flags::parse(text(a, i)?) } else { Ok(Flags::default()) }
}

/// A function that has no use for `g`.
fn no_global(f: Flags, function: &str) -> Result<Flags> {
    if f.global {
        let e = SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function} does not support the \"global\" option"),
        );
        return Err(if function == "regexp_match()" {
            e.hint("Use the regexp_matches function instead.").into()
        } else {
            e.into()
        });
    }
    Ok(f)
}

fn text_array(items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(ArrayValue::one_dimension(oids::TEXT, items)))
}

fn captures(s: &str, m: &Found) -> Datum {
    if m.groups.is_empty() {
        return text_array(vec![t(&s[m.start..m.end])]);
    }
    text_array(m.groups.iter().map(|g| g.map_or(Datum::Null, |(a, b)| t(&s[a..b]))).collect())
}

fn regexp_match(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    let re = compile(env, text(a, 1)?, no_global(flags_at(a, 2)?, "regexp_match()")?)?;
    Ok(re.find(s, 0)?.map_or(Datum::Null, |m| captures(s, &m)))
}

fn regexp_matches(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let s = text(a, 0)?;
    let flags = flags_at(a, 2)?;
    let re = compile(env, text(a, 1)?, flags)?;
    let rows: Vec<Datum> =
        re.all(s, 0, flags.global, false)?.iter().map(|m| captures(s, m)).collect();
    Ok(Box::new(rows.into_iter().map(|d| Ok(vec![d]))))
}

fn split(env: &dyn Env, a: &[Datum], function: &str) -> Result<Vec<Datum>> {
    let s = text(a, 0)?;
    let re = compile(env, text(a, 1)?, no_global(flags_at(a, 2)?, function)?)?;
    let mut out = Vec::new();
    let mut at = 0;
    for m in re.all(s, 0, true, true)? {
        out.push(t(&s[at..m.start]));
        at = m.end;
    }
    out.push(t(&s[at..]));
    Ok(out)
}

/// Appends a replacement: \1 … \9, \&, \\.
fn substitute(s: &str, m: &Found, with: &str, out: &mut String) {
    let mut it = with.chars();
    while let Some(c) = it.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match it.next() {
            Some('&') => out.push_str(&s[m.start..m.end]),
            Some(d) if d.is_ascii_digit() && d != '0' => {
                let i = d.to_digit(10).unwrap_or(1) as usize - 1;
                if let Some(Some((a, b))) = m.groups.get(i) {
                    out.push_str(&s[*a..*b]);
                }
            }
            Some('\\') => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
}

/// Replaces match number `n` from character `start` on (0: all).
fn replace(
    env: &dyn Env,
    s: &str,
    pattern: &str,
    with: &str,
    flags: Flags,
    start: i32,
    n: i32,
) -> Result<Datum> {
    let re = compile(env, pattern, flags)?;
    let from = char_at(s, start as usize - 1);
    if start as usize > char_count(s) + 1 {
        return Ok(t(s));
    }
    let mut out = String::with_capacity(s.len());
    let mut done = 0;
    let mut at = from;
    let mut count = 0;
    out.push_str(&s[..from]);
    done += from;
    while let Some(m) = re.find(s, at)? {
        count += 1;
        let empty = m.start == m.end;
        if n == 0 || count == n {
            out.push_str(&s[done..m.start]);
            substitute(s, &m, with, &mut out);
            check_size(out.len())?;
            done = m.end;
            if n != 0 {
                break;
            }
        }
        at = m.end;
        if empty {
            match s[at..].chars().next() {
                Some(c) => at += c.len_utf8(),
                None => break,
            }
        }
    }
    out.push_str(&s[done..]);
    Ok(t(out))
}

fn positive(v: i32, name: &str, min: i32) -> Result<i32> {
    if v < min {
        bail!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{name}\": {v}");
    }
    Ok(v)
}

fn replace_flags(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let letters = text(a, 3)?;
    if letters.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid regular expression option: \"{}\"", &letters[..1]),
        )
        .hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
        .into());
    }
    let flags = Flags::parse(letters)?;
    replace(env, text(a, 0)?, text(a, 1)?, text(a, 2)?, flags, 1, i32::from(!flags.global))
}

fn replace_extended(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let start = positive(int4(a, 3)?, "start", 1)?;
    let n = if a.len() > 4 { Some(positive(int4(a, 4)?, "n", 0)?) } else { None };
    let flags = flags_at(a, 5)?;
    let n = n.unwrap_or(i32::from(!flags.global));
    replace(env, text(a, 0)?, text(a, 1)?, text(a, 2)?, flags, start, n)
}

fn count(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    let start = if a.len() > 2 { positive(int4(a, 2)?, "start", 1)? } else { 1 };
    let flags = no_global(flags_at(a, 3)?, "regexp_count()")?;
    let re = compile(env, text(a, 1)?, flags)?;
    if start as usize > char_count(s) + 1 {
        return Ok(Datum::Int4(0));
    }
    let all = re.all(s, char_at(s, start as usize - 1), true, false)?;
    Ok(Datum::Int4(all.len() as i32))
}

/// Match `n` from character `start` on.
fn nth(
    env: &dyn Env,
    s: &str,
    pattern: &str,
    flags: Flags,
    start: i32,
    n: i32,
) -> Result<Option<Found>> {
    let re = compile(env, pattern, flags)?;
    if start as usize > char_count(s) + 1 {
        return Ok(None);
    }
    let all = re.all(s, char_at(s, start as usize - 1), n > 1, false)?;
    Ok(all.into_iter().nth(n as usize - 1))
}

fn instr(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    let opt = |i: usize, default: i32| if a.len() > i { int4(a, i) } else { Ok(default) };
    let start = positive(opt(2, 1)?, "start", 1)?;
    let n = positive(opt(3, 1)?, "n", 1)?;
    let end = opt(4, 0)?;
    if end != 0 && end != 1 {
        bail!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"endoption\": {end}");
    }
    let group = positive(opt(6, 0)?, "subexpr", 0)?;
    let flags = no_global(flags_at(a, 5)?, "regexp_instr()")?;
    let Some(m) = nth(env, s, text(a, 1)?, flags, start, n)? else { return Ok(Datum::Int4(0)) };
    let range = if group == 0 || group == 1 && m.groups.is_empty() {
        Some((m.start, m.end))
    } else {
        m.groups.get(group as usize - 1).copied().flatten()
    };
    Ok(Datum::Int4(
        range.map_or(0, |(from, to)| char_count(&s[..if end == 1 { to } else { from }]) as i32 + 1),
    ))
}

fn substr(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    let opt = |i: usize, default: i32| if a.len() > i { int4(a, i) } else { Ok(default) };
    let start = positive(opt(2, 1)?, "start", 1)?;
    let n = positive(opt(3, 1)?, "n", 1)?;
    let group = positive(opt(5, 0)?, "subexpr", 0)?;
    let flags = no_global(flags_at(a, 4)?, "regexp_substr()")?;
    let Some(m) = nth(env, s, text(a, 1)?, flags, start, n)? else { return Ok(Datum::Null) };
    let range = if group == 0 || group == 1 && m.groups.is_empty() {
        Some((m.start, m.end))
    } else {
        m.groups.get(group as usize - 1).copied().flatten()
    };
    Ok(range.map_or(Datum::Null, |(from, to)| t(&s[from..to])))
}

/// The first group if there is one, else the whole match.
fn substring_from(env: &dyn Env, s: &str, pattern: &str) -> Result<Datum> {
    let re = compile(env, pattern, Flags::default())?;
    let Some(m) = re.find(s, 0)? else { return Ok(Datum::Null) };
    let range = match m.groups.first() {
        Some(g) => *g,
        None => Some((m.start, m.end)),
    };
    Ok(range.map_or(Datum::Null, |(a, b)| t(&s[a..b])))
}

const MATCH: FunctionBody = S(|env, a| Ok(Datum::Bool(matches(env, a, false)?)));
const NOT_MATCH: FunctionBody = S(|env, a| Ok(Datum::Bool(!matches(env, a, false)?)));
const IMATCH: FunctionBody = S(|env, a| Ok(Datum::Bool(matches(env, a, true)?)));
const NOT_IMATCH: FunctionBody = S(|env, a| Ok(Datum::Bool(!matches(env, a, true)?)));
/// Names are of the collation "C", whatever the database's.
const NAME_MATCH: FunctionBody =
    S(|env, a| ctype::with(Ctype::C, env, |c| matches(c, a, false)).map(Datum::Bool));
const NOT_NAME_MATCH: FunctionBody =
    S(|env, a| ctype::with(Ctype::C, env, |c| matches(c, a, false)).map(|m| Datum::Bool(!m)));
const NAME_IMATCH: FunctionBody =
    S(|env, a| ctype::with(Ctype::C, env, |c| matches(c, a, true)).map(Datum::Bool));
const NOT_NAME_IMATCH: FunctionBody =
    S(|env, a| ctype::with(Ctype::C, env, |c| matches(c, a, true)).map(|m| Datum::Bool(!m)));
const COUNT: FunctionBody = S(|env, a| count(env, a));
const INSTR: FunctionBody = S(|env, a| instr(env, a));
const SUBSTR: FunctionBody = S(|env, a| substr(env, a));
const REPLACE: FunctionBody = S(|env, a| replace_extended(env, a));
const LIKE: FunctionBody = S(|env, a| {
    let flags = no_global(flags_at(a, 2)?, "regexp_like()")?;
    Ok(Datum::Bool(compile(env, text(a, 1)?, flags)?.is_match(text(a, 0)?)?))
});
const REGEXP_MATCH: FunctionBody = S(|env, a| regexp_match(env, a));
const MATCHES: FunctionBody = Set(|env, a| regexp_matches(env, a));
const SPLIT_ARRAY: FunctionBody =
    S(|env, a| Ok(text_array(split(env, a, "regexp_split_to_array()")?)));
const SPLIT_TABLE: FunctionBody = Set(|env, a| {
    Ok(Box::new(split(env, a, "regexp_split_to_table()")?.into_iter().map(|d| Ok(vec![d]))))
});

pub(crate) const BODIES: BodyTable = &[
    ("textregexeq", MATCH),
    ("nameregexeq", NAME_MATCH),
    ("textregexne", NOT_MATCH),
    ("nameregexne", NOT_NAME_MATCH),
    ("texticregexeq", IMATCH),
    ("nameicregexeq", NAME_IMATCH),
    ("texticregexne", NOT_IMATCH),
    ("nameicregexne", NOT_NAME_IMATCH),
    ("regexp_match", REGEXP_MATCH),
    ("regexp_match_no_flags", REGEXP_MATCH),
    ("regexp_matches", MATCHES),
    ("regexp_matches_no_flags", MATCHES),
    ("regexp_split_to_array", SPLIT_ARRAY),
    ("regexp_split_to_array_no_flags", SPLIT_ARRAY),
    ("regexp_split_to_table", SPLIT_TABLE),
    ("regexp_split_to_table_no_flags", SPLIT_TABLE),
    (
        "textregexreplace_noopt",
        S(|env, a| replace(env, text(a, 0)?, text(a, 1)?, text(a, 2)?, Flags::default(), 1, 1)),
    ),
    ("textregexreplace", S(|env, a| replace_flags(env, a))),
    ("textregexreplace_extended", REPLACE),
    ("textregexreplace_extended_no_flags", REPLACE),
    ("textregexreplace_extended_no_n", REPLACE),
    ("regexp_count", COUNT),
    ("regexp_count_no_flags", COUNT),
    ("regexp_count_no_start", COUNT),
    ("regexp_instr", INSTR),
    ("regexp_instr_no_start", INSTR),
    ("regexp_instr_no_n", INSTR),
    ("regexp_instr_no_endoption", INSTR),
    ("regexp_instr_no_flags", INSTR),
    ("regexp_instr_no_subexpr", INSTR),
    ("regexp_like", LIKE),
    ("regexp_like_no_flags", LIKE),
    ("regexp_substr", SUBSTR),
    ("regexp_substr_no_start", SUBSTR),
    ("regexp_substr_no_n", SUBSTR),
    ("regexp_substr_no_flags", SUBSTR),
    ("regexp_substr_no_subexpr", SUBSTR),
    ("textregexsubstr", S(|env, a| substring_from(env, text(a, 0)?, text(a, 1)?))),
    (
        "substring(text,text,text)",
        S(|env, a| substring_from(env, text(a, 0)?, &similar(text(a, 1)?, Some(text(a, 2)?))?)),
    ),
    ("similar_to_escape_1", S(|_, a| Ok(t(similar(text(a, 0)?, None)?)))),
    ("similar_to_escape_2", S(|_, a| Ok(t(similar(text(a, 0)?, Some(text(a, 1)?))?)))),
    (
        "similar_escape",
        S(|_, a| {
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            Ok(t(similar(text(a, 0)?, if is_null(a, 1) { None } else { Some(text(a, 1)?) })?))
        }),
    ),
];
