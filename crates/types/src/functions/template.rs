//! to_char and to_number: numbers by a template such as `FM999,990.00MI`.

use crate::args::*;
use crate::datetime::ordinal_suffix;
use crate::numeric::Numeric;
use crate::recent::Recent;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Result, SqlError, SqlState, bail};
use std::rc::Rc;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Key(&'static str, bool),
    Char(char),
}

/// Longer ones before their beginnings.
const KEYS: [&str; 20] = [
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "9", "0", "B", "C", "D", "G",
    "L", "S", "V",
];

/// Where the sign goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lead {
    None,
    Before,
    After,
}

#[derive(Clone, Debug)]
struct Template {
    nodes: Vec<Node>,
    before: usize,
    after: usize,
    before_sign: usize,
    zero_start: usize,
    zero_end: usize,
    multiply: usize,
    sign: Lead,
    decimal: bool,
    locale_sign: bool,
    plus: bool,
    minus: bool,
    bracket: bool,
    blank: bool,
    zero: bool,
    tight: bool,
    roman: bool,
    scientific: bool,
}

fn syntax(message: &str) -> base::Error {
    SqlError::new(SqlState::SYNTAX_ERROR, message.to_owned()).into()
}

thread_local!(static PARSED: Recent<Template> = const { Recent::new() });

/// What a template says.
fn parsed(template: &str) -> Result<Rc<Template>> {
    PARSED.with(|p| p.get(template, parse))
}

fn parse(text: &str) -> Result<Template> {
    let mut t = Template {
        nodes: Vec::new(),
        before: 0,
        after: 0,
        before_sign: 0,
        zero_start: 0,
        zero_end: 0,
        multiply: 0,
        sign: Lead::None,
        decimal: false,
        locale_sign: false,
        plus: false,
        minus: false,
        bracket: false,
        blank: false,
        zero: false,
        tight: false,
        roman: false,
        scientific: false,
    };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let key = KEYS.iter().find(|k| {
            rest.as_bytes().get(..k.len()).is_some_and(|h| {
                h == k.as_bytes()
                    || h.eq_ignore_ascii_case(k.as_bytes()) && !h.iter().any(u8::is_ascii_uppercase)
            })
        });
        if let Some(k) = key {
            let lower = rest.starts_with(|c: char| c.is_ascii_lowercase());
            rest = &rest[k.len()..];
            t.prepare(k)?;
            t.nodes.push(Node::Key(k, lower));
            continue;
        }
        if c == '"' {
            rest = &rest[1..];
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '"' => break,
                    '\\' => {
                        if let Some(c) = rest.chars().next() {
                            t.nodes.push(Node::Char(c));
                            rest = &rest[c.len_utf8()..];
                        }
                    }
                    c => t.nodes.push(Node::Char(c)),
                }
            }
            continue;
        }
        if c == '\\' && rest[1..].starts_with('"') {
            t.nodes.push(Node::Char('"'));
            rest = &rest[2..];
            continue;
        }
        t.nodes.push(Node::Char(c));
        rest = &rest[c.len_utf8()..];
    }
    Ok(t)
}

impl Template {
    fn prepare(&mut self, key: &str) -> Result<()> {
        if self.scientific && key != "EEEE" {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        match key {
            "9" => {
                if self.bracket {
                    return Err(syntax("\"9\" must be ahead of \"PR\""));
                }
                if self.multiply > 0 || self.nodes.contains(&Node::Key("V", false)) {
                    self.multiply += 1;
                } else if self.decimal {
                    self.after += 1;
                } else {
                    self.before += 1;
                }
            }
            "0" => {
                if self.bracket {
                    return Err(syntax("\"0\" must be ahead of \"PR\""));
                }
                if !self.zero && !self.decimal {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                if self.decimal {
                    self.after += 1;
                } else {
                    self.before += 1;
                }
                self.zero_end = self.before + self.after;
            }
            "B" if self.before == 0 && self.after == 0 && !self.zero => {
                self.blank = true;
            }
            "D" | "." => {
                if self.decimal {
                    return Err(syntax("multiple decimal points"));
                }
                if self.nodes.iter().any(|n| matches!(n, Node::Key("V", _))) {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
            }
            "FM" => self.tight = true,
            "S" => {
                if self.locale_sign {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.bracket {
                    return Err(syntax(
                        "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                    ));
                }
                if !self.decimal {
                    self.sign = Lead::Before;
                    self.before_sign = self.before;
                } else if self.sign == Lead::None {
                    self.sign = Lead::After;
                }
                self.locale_sign = true;
            }
            "MI" | "PL" | "SG" => {
                if self.locale_sign {
                    return Err(syntax(&format!("cannot use \"S\" and \"{key}\" together")));
                }
                self.minus |= key != "PL";
                self.plus |= key != "MI";
            }
            "PR" => {
                if self.locale_sign || self.plus || self.minus {
                    return Err(syntax(
                        "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together",
                    ));
                }
                self.bracket = true;
            }
            "RN" => {
                if self.roman {
                    return Err(syntax("cannot use \"RN\" twice"));
                }
                self.roman = true;
            }
            "V" if self.decimal => {
                return Err(syntax("cannot use \"V\" and decimal point together"));
            }
            "EEEE" => {
                if self.scientific {
                    return Err(syntax("cannot use \"EEEE\" twice"));
                }
                if self.blank
                    || self.tight
                    || self.locale_sign
                    || self.bracket
                    || self.minus
                    || self.plus
                    || self.roman
                {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "\"EEEE\" is incompatible with other formats",
                    )
                    .detail(
                        "\"EEEE\" may only be used together with digit and decimal point patterns.",
                    )
                    .into());
                }
                self.scientific = true;
            }
            _ => {}
        }
        let sign = self.locale_sign || self.plus || self.minus || self.bracket;
        let other = self.decimal || self.blank || self.zero || self.multiply > 0;
        if self.roman && (sign || other) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "\"RN\" is incompatible with other formats",
            )
            .detail("\"RN\" may only be used together with \"FM\".")
            .into());
        }
        Ok(())
    }
}

/// 1 to 3999 in Roman numerals.
fn roman(n: i64) -> String {
    if !(1..=3999).contains(&n) {
        return "#".repeat(15);
    }
    const PARTS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut out = String::new();
    let mut n = n;
    for (v, s) in PARTS {
        while n >= v {
            out.push_str(s);
            n -= v;
        }
    }
    out
}

/// The state of writing digits by a template.
struct Writer<'a> {
    t: &'a Template,
    bracket: bool,
    lead: Lead,
    /// The digits and the point, without a sign.
    digits: Vec<char>,
    at: usize,
    negative: bool,
    sign_written: bool,
    spaces: usize,
    current: usize,
    columns: usize,
    zero_start: usize,
    /// The last digit that FM keeps.
    last: Option<usize>,
    started: bool,
    out: String,
}

impl Writer<'_> {
    fn digit(&self) -> char {
        self.digits.get(self.at).copied().unwrap_or('\0')
    }

    fn lone_zero(&self) -> bool {
        !self.t.zero && self.at == 0 && self.digit() == '0' && self.t.after != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|l| self.digits.get(l) == Some(&'.'))
    }

    fn column(&mut self, key: &str) {
        let t = self.t;
        if !self.sign_written
            && (self.current >= self.spaces || t.zero && self.zero_start == self.current)
            && (!self.lone_zero() || self.ends_at_point())
        {
            if t.locale_sign {
                if self.lead == Lead::Before {
                    self.out.push(if self.negative { '-' } else { '+' });
                    self.sign_written = true;
                }
            } else if self.bracket {
                self.out.push(if self.negative { '<' } else { ' ' });
                self.sign_written = true;
            } else if !self.negative {
                if !t.tight {
                    self.out.push(' ');
                }
                self.sign_written = true;
            } else {
                self.out.push('-');
                self.sign_written = true;
            }
        }
        if self.current < self.spaces && (self.zero_start > self.current || !t.zero) {
            if !t.tight {
                self.out.push(' ');
            }
        } else if t.zero && self.current < self.spaces && self.zero_start <= self.current {
            self.out.push('0');
            self.started = true;
        } else {
            if self.digit() == '.' {
                if !self.ends_at_point() || t.tight {
                    self.out.push('.');
                }
            } else if self.last.is_some_and(|l| self.at > l) && key != "0" {
            } else if self.lone_zero() {
                if !t.tight {
                    self.out.push(' ');
                } else if self.ends_at_point() {
                    self.out.push('0');
                }
            } else if self.digit() != '\0' {
                self.out.push(self.digit());
                self.started = true;
            }
            if self.digit() != '\0' {
                self.at += 1;
            }
            let mut end = self.columns + usize::from(self.spaces > 0) + usize::from(t.decimal);
            if self.last == Some(self.at) {
                end = self.current;
            }
            if self.current + 1 == end {
                if self.sign_written && self.bracket {
                    self.out.push(if self.negative { '>' } else { ' ' });
                } else if t.locale_sign && self.lead == Lead::After {
                    self.out.push(if self.negative { '-' } else { '+' });
                }
            }
        }
        self.current += 1;
    }
}

/// Writes `text` (digits with a sign, rounded as the template asks).
fn write(t: &Template, text: &str) -> String {
    let (negative, body) = match text.strip_prefix('-') {
        Some(b) => (true, b),
        None => (false, text),
    };
    let before = t.before + t.multiply;
    let length = body.find('.').unwrap_or(body.len());
    let (digits, spaces) = if length > before {
        let mut s = "#".repeat(before);
        if t.decimal || t.after > 0 {
            s.push('.');
            s.push_str(&"#".repeat(t.after));
        }
        (s, 0)
    } else {
        (body.to_owned(), before - length)
    };
    let mut bracket = t.bracket;
    let sign_written = if t.plus || t.minus {
        !(t.plus && !t.minus)
    } else {
        if !negative && t.tight {
            bracket = false;
        }
        !negative && t.tight && !t.locale_sign
    };
    let lead = if !(t.plus || t.minus) && t.sign == Lead::Before && before == t.before_sign {
        Lead::After
    } else {
        t.sign
    };
    let digits: Vec<char> = digits.chars().collect();
    let zero_start = t.zero_start.saturating_sub(1);
    let last = if t.tight && t.decimal {
        digits.iter().position(|c| *c == '.').map(|point| {
            let kept = (point..digits.len())
                .rev()
                .find(|i| *i == point || digits[*i] != '0')
                .unwrap_or(point);
            if t.zero_end > spaces {
                let last_zero = (digits.len() - 1).min(t.zero_end - spaces);
                kept.max(last_zero)
            } else {
                kept
            }
        })
    } else {
        None
    };
    let mut w = Writer {
        t,
        bracket,
        lead,
        digits,
        at: 0,
        negative,
        sign_written,
        spaces,
        current: 0,
        columns: (t.after + before).saturating_sub(1),
        zero_start,
        last,
        started: false,
        out: String::new(),
    };
    if !w.sign_written && w.spaces == 0 {
        w.columns += 1;
    }
    for node in &t.nodes {
        let (key, lower) = match node {
            Node::Char(c) => {
                w.out.push(*c);
                continue;
            }
            Node::Key(k, lower) => (*k, *lower),
        };
        match key {
            "9" | "0" | "." | "D" => w.column(key),
            "," | "G" => {
                if w.started {
                    w.out.push(',');
                } else if !t.tight {
                    w.out.push(' ');
                }
            }
            "L" => w.out.push(' '),
            "MI" => {
                if negative {
                    w.out.push('-');
                } else if !t.tight {
                    w.out.push(' ');
                }
            }
            "PL" => {
                if !negative {
                    w.out.push('+');
                } else if !t.tight {
                    w.out.push(' ');
                }
            }
            "SG" => w.out.push(if negative { '-' } else { '+' }),
            "TH" if !negative && !t.decimal && w.digits.first() != Some(&'#') => {
                let number: String = w.digits.iter().collect();
                w.out.push_str(ordinal_suffix(&number, !lower));
            }
            _ => {}
        }
    }
    w.out
}

/// A number in scientific form with so many decimals.
fn scientific(n: &Numeric, decimals: usize) -> Result<String> {
    let text = n.abs().to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let point = text.find('.').unwrap_or(text.len()) as i64;
    let first = digits.find(|c| c != '0');
    let exponent = first.map_or(0, |f| point - 1 - f as i64);
    // The digits themselves, with the point behind the first: a power of ten that scales them may be out of a number's range.
    let (one, rest) = digits[first.unwrap_or(0)..].split_at(1);
    // The first digit that goes decides; a number does not have as many decimals as a large one has digits.
    let rest = rest.get(..(decimals + 1).min(16_000)).unwrap_or(rest);
    let minus = if n.signum() < 0 { "-" } else { "" };
    let m = Numeric::parse(&format!("{minus}{one}.{rest}0"))?.round(decimals as i32);
    let sign = if n.signum() < 0 { "" } else { " " };
    let e = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{sign}{m}e{e}{:02}", exponent.abs()))
}

/// A number by a template.
fn to_char(n: &Numeric, template: &str) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    let t = parsed(template)?;
    if t.roman {
        let fits = n.round(0).to_i64();
        let s = fits.map_or_else(|| "#".repeat(15), roman);
        let lower = t.nodes.iter().any(|k| matches!(k, Node::Key("RN", true)));
        let s = if lower { s.to_lowercase() } else { s };
        let mut out = String::new();
        for node in &t.nodes {
            match node {
                Node::Char(c) => out.push(*c),
                Node::Key("RN", _) if t.tight => out.push_str(&s),
                Node::Key("RN", _) => out.push_str(&format!("{s:>15}")),
                Node::Key(..) => {}
            }
        }
        return Ok(Datum::text(out));
    }
    if t.scientific {
        if !n.is_finite() {
            let shown = format!(" {}.{}####", "#".repeat(t.before), "#".repeat(t.after));
            return Ok(Datum::text(shown));
        }
        return Ok(Datum::text(scientific(n, t.after)?));
    }
    let mut n = n.clone();
    if t.multiply > 0 && n.is_finite() {
        n = n.mul(&Numeric::parse(&format!("1e{}", t.multiply))?)?;
    }
    Ok(Datum::text(write(&t, &n.round(t.after as i32).to_string())))
}

/// Reads a number by a template.
fn to_number(s: &str, template: &str) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let t = parsed(template)?;
    if t.scientific {
        bail!(FEATURE_NOT_SUPPORTED, "\"EEEE\" not supported for input");
    }
    if t.roman {
        return from_roman(s);
    }
    let input: Vec<char> = s.chars().collect();
    let at = |i: usize| input.get(i).copied().unwrap_or('\0');
    let data = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-');
    let mut i = 0;
    let mut negative = false;
    let mut signed = false;
    let has =
        |keys: &[&str]| t.nodes.iter().any(|n| matches!(n, Node::Key(k, _) if keys.contains(k)));
    let (sign_behind, sign_apart) = (has(&["S"]), has(&["MI", "SG", "PL"]));
    let mut digits = String::new();
    let mut point = false;
    let mut after = 0;
    for node in &t.nodes {
        if i >= input.len() {
            break;
        }
        let key = match node {
            Node::Key(k, _) => *k,
            Node::Char(_) => {
                i += usize::from(!data(at(i)));
                continue;
            }
        };
        match key {
            "9" | "0" | "." | "D" => {
                if at(i) == ' ' {
                    i += 1;
                }
                let none = !digits.contains(|c: char| c.is_ascii_digit());
                if none && !signed && matches!(key, "9" | "0") {
                    match at(i) {
                        '-' => {
                            negative = true;
                            signed = true;
                            i += 1;
                        }
                        '<' if t.bracket => {
                            negative = true;
                            signed = true;
                            i += 1;
                        }
                        '+' => {
                            signed = true;
                            i += 1;
                        }
                        _ => {}
                    }
                }
                let c = at(i);
                let before = digits.len();
                if c.is_ascii_digit() {
                    if !point || after < t.after {
                        digits.push(c);
                        after += usize::from(point);
                    }
                } else if c == '.' && t.decimal && !point {
                    digits.push('.');
                    point = true;
                }
                i += 1;
                // The sign may come before the template is at it, when the number is shorter.
                let some = digits.contains(|c: char| c.is_ascii_digit());
                let read = digits.len() > before;
                if some && !signed && if sign_behind { read } else { sign_apart && !read } {
                    let c = if sign_behind { at(i) } else { c };
                    if matches!(c, '-' | '+') {
                        signed = true;
                        negative = c == '-';
                        i += usize::from(sign_behind);
                    }
                }
            }
            "," | "G" => i += usize::from(at(i) == ','),
            "L" | "TH" => i += usize::from(!data(at(i))),
            "MI" | "S" | "SG" | "PL" => match at(i) {
                '-' => {
                    negative = true;
                    signed = true;
                    i += 1;
                }
                '+' => {
                    signed = true;
                    i += 1;
                }
                c => i += usize::from(key != "S" && !data(c)),
            },
            _ => {}
        }
    }
    if !digits.contains(|c: char| c.is_ascii_digit()) {
        bail!(
            INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type numeric: \"{}\"",
            if negative { "-" } else { " " }
        );
    }
    if negative {
        digits.insert(0, '-');
    }
    let mut n = Numeric::parse(digits.trim_end_matches('.'))?;
    let whole = n.abs().trunc(0);
    let digits = t.before + t.multiply;
    if !whole.is_zero() && whole.to_string().len() > digits {
        let limit = if digits == 0 { "1".to_owned() } else { format!("10^{digits}") };
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
            .detail(format!(
                "A field with precision {}, scale {after} must round to an absolute value less than {limit}.",
                digits + after
            ))
            .into());
    }
    if has(&["V"]) {
        let power = Numeric::from(10).power(&Numeric::from(-(t.multiply as i64)))?;
        n = n.mul(&power)?;
    }
    Ok(Datum::Numeric(Box::new(n)))
}

fn from_roman(s: &str) -> Result<Datum> {
    if s.is_empty() {
        bail!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type numeric: \" \"");
    }
    let s = s.trim_start().to_ascii_uppercase();
    let end = s.find(|c| !"IVXLCDM".contains(c)).unwrap_or(s.len());
    let s = &s[..end];
    match (1..=3999).find(|n| roman(*n) == s) {
        Some(n) => Ok(Datum::Numeric(Box::new(Numeric::from(n)))),
        None => bail!(INVALID_TEXT_REPRESENTATION, "invalid Roman numeral"),
    }
}

/// C's `%+.*e` with a space for the plus.
fn binary_scientific(v: f64, decimals: usize) -> String {
    let s = format!("{v:.decimals$e}");
    let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
    let (sign, e) = match e.strip_prefix('-') {
        Some(e) => ('-', e),
        None => ('+', e),
    };
    format!("{}{m}e{sign}{e:0>2}", if v < 0.0 { "" } else { " " })
}

/// Floats show no more digits than they have.
fn of_float(v: f64, digits_max: usize, template: &str) -> Result<Datum> {
    let t = parsed(template)?;
    if t.roman || template.is_empty() || t.scientific && !v.is_finite() {
        return to_char(&Numeric::from_f64(v), template);
    }
    if !v.is_finite() {
        let text = Numeric::from_f64(v).to_string();
        let whole = text.trim_start_matches('-').len();
        let after = t.after.min(digits_max.saturating_sub(whole));
        return Ok(Datum::text(write(&Template { after, ..Template::clone(&t) }, &text)));
    }
    if t.scientific {
        return Ok(Datum::text(binary_scientific(v, t.after)));
    }
    let v = v * 10f64.powi(t.multiply as i32);
    let whole = format!("{:.0}", v.abs()).len();
    let digits = t.after.min(digits_max.saturating_sub(whole));
    let fitting = Template { after: digits, ..Template::clone(&t) };
    Ok(Datum::text(write(&fitting, &format!("{v:.digits$}"))))
}

fn integer(_: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let n = match a.first() {
        Some(Datum::Int4(n)) => {
            let t = parsed(text(a, 1)?)?;
            if t.scientific {
                return Ok(Datum::text(binary_scientific(f64::from(*n), t.after)));
            }
            Numeric::from(i64::from(*n))
        }
        _ => Numeric::from(int8(a, 0)?),
    };
    to_char(&n, text(a, 1)?)
}

pub(super) const BODIES: BodyTable = &[
    ("numeric_to_char", S(|_, a| to_char(numeric(a, 0)?, text(a, 1)?))),
    ("int4_to_char", S(integer)),
    ("int8_to_char", S(integer)),
    ("float4_to_char", S(|_, a| of_float(f64::from(float4(a, 0)?), 6, text(a, 1)?))),
    ("float8_to_char", S(|_, a| of_float(float8(a, 0)?, 15, text(a, 1)?))),
    ("numeric_to_number", S(|_, a| to_number(text(a, 0)?, text(a, 1)?))),
];
