//! `{1,2,NULL}`: arrays' text form.

use super::{text_input, text_output};
use crate::typename::type_info;
use crate::{ArrayValue, Datum, Env};
use base::{Oid, Result, SqlError, SqlState, bail};
use std::sync::Arc;

/// The most dimensions.
pub(crate) const DIMENSIONS_MAX: usize = 6;

fn malformed(text: &str, detail: &str) -> base::Error {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
    .detail(detail)
    .into()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    element: Oid,
    typmod: i32,
    delimiter: u8,
    env: &'a dyn Env,
    lengths: Vec<i32>,
    out: Vec<Datum>,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        while self.peek().is_some_and(|b| crate::text::is_space(char::from(b))) {
            self.at += 1;
        }
    }
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn bad(&self, detail: &str) -> base::Error {
        malformed(self.text, detail)
    }

    /// After the opening brace of depth `depth` (0-based).
    fn list(&mut self, depth: usize) -> Result<()> {
        let mut count = 0;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return self.close(depth, 0);
        }
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'{') => {
                    if depth + 1 >= DIMENSIONS_MAX {
                        bail!(
                            PROGRAM_LIMIT_EXCEEDED,
                            "number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})"
                        );
                    }
                    if self.lengths.len() == depth + 1 {
                        if !self.out.is_empty() || count > 0 {
                            return Err(self.bad(
                                "Multidimensional arrays must have sub-arrays with matching dimensions.",
                            ));
                        }
                        self.lengths.push(-1);
                    }
                    self.at += 1;
                    self.list(depth + 1)?;
                }
                Some(b'}') => return Err(self.bad("Unexpected \"}\" character.")),
                Some(b) if b == self.delimiter => {
                    return Err(self.bad(&format!("Unexpected \"{}\" character.", char::from(b))));
                }
                None => return Err(self.bad("Unexpected end of input.")),
                Some(_) => {
                    if self.lengths.len() != depth + 1 {
                        return Err(self.bad(
                            "Multidimensional arrays must have sub-arrays with matching dimensions.",
                        ));
                    }
                    let item = self.item()?;
                    self.out.push(item);
                }
            }
            count += 1;
            self.skip_space();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return self.close(depth, count);
                }
                Some(b) if b == self.delimiter => self.at += 1,
                None => return Err(self.bad("Unexpected end of input.")),
                Some(b'{') => return Err(self.bad("Unexpected \"{\" character.")),
                Some(_) => return Err(self.bad("Unexpected array element.")),
            }
        }
    }

    fn close(&mut self, depth: usize, count: i32) -> Result<()> {
        match self.lengths[depth] {
            -1 => self.lengths[depth] = count,
            n if n == count => {}
            _ => {
                return Err(self.bad(
                    "Multidimensional arrays must have sub-arrays with matching dimensions.",
                ));
            }
        }
        Ok(())
    }

    fn item(&mut self) -> Result<Datum> {
        let bytes = self.text.as_bytes();
        let mut s: Vec<u8> = Vec::new();
        if self.peek() == Some(b'"') {
            self.at += 1;
            loop {
                match self.peek() {
                    None => return Err(self.bad("Unexpected end of input.")),
                    Some(b'"') => {
                        self.at += 1;
                        break;
                    }
                    Some(b'\\') => {
                        self.at += 1;
                        let Some(b) = self.peek() else {
                            return Err(self.bad("Unexpected end of input."));
                        };
                        s.push(b);
                        self.at += 1;
                    }
                    Some(b) => {
                        s.push(b);
                        self.at += 1;
                    }
                }
            }
            if let Some(b) = self.peek()
                && b != self.delimiter
                && b != b'}'
                && !crate::text::is_space(char::from(b))
            {
                return Err(self.bad("Incorrectly quoted array element."));
            }
            return self.value(s);
        }
        let start = self.at;
        let mut escaped = false;
        let mut keep = 0; // trailing spaces go, escaped ones stay
        while let Some(b) = self.peek() {
            match b {
                b'{' => return Err(self.bad("Unexpected \"{\" character.")),
                b'}' => break,
                b if b == self.delimiter => break,
                b'"' => return Err(self.bad("Incorrectly quoted array element.")),
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                    let Some(b) = self.peek() else {
                        return Err(self.bad("Unexpected end of input."));
                    };
                    s.push(b);
                    keep = s.len();
                }
                b => {
                    s.push(b);
                    if !crate::text::is_space(char::from(b)) {
                        keep = s.len();
                    }
                }
            }
            self.at += 1;
        }
        s.truncate(keep);
        if !escaped && bytes[start..start + s.len()].eq_ignore_ascii_case(b"null") {
            return Ok(Datum::Null);
        }
        self.value(s)
    }

    fn value(&self, bytes: Vec<u8>) -> Result<Datum> {
        let s = String::from_utf8(bytes).map_err(|_| self.bad("Unexpected array element."))?;
        text_input(self.element, self.typmod, &s, self.env)
    }
}

/// Reads an array's text form.
///
/// # Errors
/// `22P02` "malformed array literal" and the elements' own errors.
pub fn array_input(
    element: Oid,
    typmod: i32,
    delimiter: char,
    text: &str,
    env: &dyn Env,
) -> Result<Datum> {
    let delimiter = type_info(element).map_or(delimiter, |t| t.delimiter);
    let mut p = Parser {
        text,
        at: 0,
        element,
        typmod,
        delimiter: delimiter as u8,
        env,
        lengths: Vec::new(),
        out: Vec::new(),
    };
    // [l:u][l:u]=
    let mut bounds: Vec<(i32, i32)> = Vec::new();
    p.skip_space();
    while p.peek() == Some(b'[') {
        let Some(end) = text[p.at..].find(']') else {
            return Err(p.bad("Missing \"]\" after array dimensions."));
        };
        let inside = &text[p.at + 1..p.at + end];
        let (low, high) = match inside.split_once(':') {
            Some((l, u)) => (l.trim().parse::<i32>(), u.trim().parse::<i32>()),
            None => (Ok(1), inside.trim().parse::<i32>()),
        };
        let (Ok(low), Ok(high)) = (low, high) else {
            return Err(p.bad("\"[\" must introduce explicitly-specified array dimensions."));
        };
        if high == i32::MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "array upper bound is too large: {high}");
        }
        if high < low {
            bail!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound");
        }
        bounds.push((low, high));
        p.at += end + 1;
    }
    if bounds.len() > DIMENSIONS_MAX {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})"
        );
    }
    if !bounds.is_empty() {
        p.skip_space();
        if p.peek() != Some(b'=') {
            return Err(p.bad("Missing \"=\" after array dimensions."));
        }
        p.at += 1;
        p.skip_space();
    }
    if p.peek() != Some(b'{') {
        return Err(p.bad(if bounds.is_empty() {
            "Array value must start with \"{\" or dimension information."
        } else {
            "Array contents must start with \"{\"."
        }));
    }
    p.at += 1;
    p.lengths.push(-1);
    p.list(0)?;
    p.skip_space();
    if p.at < text.len() {
        return Err(p.bad("Junk after closing right brace."));
    }
    let mut dims: Vec<(i32, i32)> = p.lengths.iter().map(|n| (*n, 1)).collect();
    if !bounds.is_empty() {
        let matches = bounds.len() == dims.len()
            && bounds
                .iter()
                .zip(&dims)
                .all(|((l, u), (n, _))| i64::from(*u) - i64::from(*l) + 1 == i64::from(*n));
        if !matches {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
        for (d, (low, _)) in dims.iter_mut().zip(&bounds) {
            d.1 = *low;
        }
    }
    if p.out.is_empty() {
        dims.clear();
    }
    Ok(Datum::Array(Arc::new(ArrayValue { element_type: element, dims, elements: p.out })))
}

fn needs_quotes(s: &str, delimiter: char) -> bool {
    s.is_empty()
        || s.eq_ignore_ascii_case("null")
        || s.chars().any(|c| {
            c == '"'
                || c == '\\'
                || c == '{'
                || c == '}'
                || c == delimiter
                || crate::text::is_space(c)
        })
}

/// Appends an array's text form.
///
/// # Errors
/// The elements' own.
pub fn array_output(a: &ArrayValue, env: &dyn Env, out: &mut String) -> Result<()> {
    if a.elements.is_empty() || a.dims.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    let delimiter = type_info(a.element_type).map_or(',', |t| t.delimiter);
    if a.dims.iter().any(|(_, low)| *low != 1) {
        use std::fmt::Write;
        for (n, low) in &a.dims {
            let _ = write!(out, "[{low}:{}]", i64::from(*low) + i64::from(*n) - 1);
        }
        out.push('=');
    }
    let mut next = 0;
    level(a, 0, &mut next, delimiter, env, out)
}

fn level(
    a: &ArrayValue,
    depth: usize,
    next: &mut usize,
    delimiter: char,
    env: &dyn Env,
    out: &mut String,
) -> Result<()> {
    out.push('{');
    for i in 0..a.dims[depth].0 {
        if i > 0 {
            out.push(delimiter);
        }
        if depth + 1 < a.dims.len() {
            level(a, depth + 1, next, delimiter, env, out)?;
            continue;
        }
        let element = a.elements.get(*next).unwrap_or(&Datum::Null);
        *next += 1;
        match element {
            Datum::Null => out.push_str("NULL"),
            Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Bool(_) => {
                text_output(a.element_type, element, env, out)?;
            }
            _ => {
                let start = out.len();
                text_output(a.element_type, element, env, out)?;
                if needs_quotes(&out[start..], delimiter) {
                    let s = out.split_off(start);
                    out.push('"');
                    for c in s.chars() {
                        if c == '"' || c == '\\' {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                    out.push('"');
                }
            }
        }
    }
    out.push('}');
    Ok(())
}
