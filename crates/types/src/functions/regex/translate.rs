//! PostgreSQL's advanced regular expressions rewritten for the regex engine.

use crate::Ctype;
use base::{Result, err};

/// The options that flags letters set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Flags {
    /// g
    pub global: bool,
    /// i
    pub insensitive: bool,
    /// q: no metacharacters.
    pub literal: bool,
    /// x: white space and comments are ignored.
    pub expanded: bool,
    /// n, p: `.` and `[^…]` do not match a newline.
    pub newline_stop: bool,
    /// n, w: `^` and `$` match at newlines too.
    pub newline_anchor: bool,
    /// What letters are.
    pub ctype: Ctype,
}

impl Flags {
    /// Reads flags letters.
    pub(crate) fn parse(text: &str) -> Result<Flags> {
        let mut f = Flags::default();
        for c in text.chars() {
            if c == 'g' {
                f.global = true;
            } else if !f.letter(c) {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "invalid regular expression option: \"{c}\""
                ));
            }
        }
        Ok(f)
    }
    fn letter(&mut self, c: char) -> bool {
        match c {
            'b' | 'e' => {}
            'c' => self.insensitive = false,
            'i' => self.insensitive = true,
            'm' | 'n' => (self.newline_stop, self.newline_anchor) = (true, true),
            'p' => (self.newline_stop, self.newline_anchor) = (true, false),
            'q' => self.literal = true,
            's' => (self.newline_stop, self.newline_anchor) = (false, false),
            't' => self.expanded = false,
            'w' => (self.newline_stop, self.newline_anchor) = (false, true),
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}

fn bad(what: &str) -> base::Error {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {what}")
}

/// What a pattern becomes.
pub(crate) struct Translated {
    pub pattern: String,
    /// When it has non-greedy quantifiers: what finds the length of a match.
    pub whole: Option<Whole>,
}

/// The same pattern with all its quantifiers of one kind, that which the whole prefers.
pub(crate) struct Whole {
    pub pattern: String,
    /// They are non-greedy.
    pub short: bool,
}

/// Where in a pattern: since its start or the last `(` or `|`.
#[derive(Clone, Copy, Default)]
struct Branch {
    /// Whether what first has a preference prefers to be short.
    short: Option<bool>,
    /// Other branches stand beside it.
    alternatives: bool,
}

impl Branch {
    /// What a whole of these branches prefers: of several, length.
    fn preference(self) -> Option<bool> {
        if self.alternatives { Some(false) } else { self.short }
    }
}

struct Translator<'a> {
    chars: Vec<char>,
    at: usize,
    out: String,
    flags: &'a mut Flags,
    /// Where quantifiers end in `out`, and whether they are non-greedy.
    quantifiers: Vec<(usize, bool)>,
    /// The groups that are open, the whole first.
    branches: Vec<Branch>,
    /// What the group that has just ended prefers.
    group_prefers: Option<bool>,
    depth: usize,
    groups: usize,
    /// Something stands before that a quantifier can apply to.
    operand: bool,
}

/// Rewrites `pattern`, which may change the flags by a prefix (`***=`, `(?i)`).
pub(crate) fn translate(pattern: &str, flags: &mut Flags) -> Result<Translated> {
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("***") {
        if let Some(rest) = rest.strip_prefix('=') {
            flags.literal = true;
            body = rest;
        } else if let Some(rest) = rest.strip_prefix(':') {
            body = rest;
        } else {
            return Err(bad("quantifier operand invalid"));
        }
    }
    if !flags.literal
        && let Some(rest) = body.strip_prefix("(?")
        && let Some(end) = rest.find(')')
        && end > 0
        && rest[..end].chars().all(|c| c.is_ascii_alphabetic())
    {
        for c in rest[..end].chars() {
            if !flags.letter(c) {
                return Err(bad("invalid embedded option"));
            }
        }
        body = &rest[end + 1..];
    }
    let head = |f: &Flags| {
        let mut s = String::from("(?");
        if f.insensitive {
            s.push('i');
        }
        if f.newline_anchor {
            s.push('m');
        }
        if !f.newline_stop {
            s.push('s');
        }
        if s.len() == 2 { String::new() } else { s + ")" }
    };
    if flags.literal {
        let mut out = head(flags);
        for c in body.chars() {
            literal(c, &mut out);
        }
        return Ok(Translated { pattern: out, whole: None });
    }
    let start = head(flags);
    let mut t = Translator {
        chars: body.chars().collect(),
        at: 0,
        out: start,
        flags,
        quantifiers: Vec::new(),
        branches: vec![Branch::default()],
        group_prefers: None,
        depth: 0,
        groups: 0,
        operand: false,
    };
    t.run()?;
    let mixed = t.quantifiers.iter().any(|(_, lazy)| *lazy);
    let whole = mixed.then(|| {
        let short = t.branches[0].preference() == Some(true);
        Whole { pattern: t.all_of_a_kind(short), short }
    });
    Ok(Translated { pattern: t.out, whole })
}

fn literal(c: char, out: &mut String) {
    // to the engine, \< and \> are the ends of words
    if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
        out.push('\\');
    }
    out.push(c);
}

impl Translator<'_> {
    fn peek(&self, n: usize) -> Option<char> {
        self.chars.get(self.at + n).copied()
    }

    /// The inside of brackets for a class; None: there is no such class.
    fn class(&self, name: &str) -> Option<&'static str> {
        let unicode = self.flags.ctype == Ctype::Unicode;
        Some(match name {
            "alpha" if unicode => "\\p{Alphabetic}",
            "alnum" if unicode => "\\p{Alphabetic}0-9",
            "word" if unicode => "\\p{Alphabetic}0-9_",
            "upper" | "lower" if unicode && self.flags.insensitive => "\\p{Alphabetic}",
            "upper" if unicode => "\\p{Uppercase}",
            "lower" if unicode => "\\p{Lowercase}",
            "space" if unicode => "\\p{White_Space}",
            "punct" if unicode => "[\\p{P}\\p{S}--\\p{Alphabetic}]",
            "cntrl" if unicode => "\\p{Cc}",
            "graph" if unicode => "[^\\p{White_Space}\\p{Cc}\\p{Cs}\\p{Cn}]",
            "print" if unicode => "\\p{Zs}[^\\p{White_Space}\\p{Cc}\\p{Cs}\\p{Cn}]",
            "alpha" => "a-zA-Z",
            "digit" => "0-9",
            "alnum" => "0-9A-Za-z",
            "upper" | "lower" if self.flags.insensitive => "a-zA-Z",
            "upper" => "A-Z",
            "lower" => "a-z",
            "space" => " \\t\\n\\r\\x0b\\x0c",
            "blank" => " \\t",
            "punct" => "!-/:-@\\[-`{-~",
            "cntrl" => "\\x00-\\x1f\\x7f",
            "graph" => "!-~",
            "print" => " -~",
            "xdigit" => "0-9A-Fa-f",
            "word" => "0-9A-Za-z_",
            "ascii" => "\\x00-\\x7f",
            _ => return None,
        })
    }

    /// The class of an escape; that of the capital letter is its complement.
    fn class_escape(&self, c: char) -> Option<&'static str> {
        self.class(match c {
            'd' | 'D' => "digit",
            's' | 'S' => "space",
            'w' | 'W' => "word",
            _ => return None,
        })
    }

    /// A character that stands for itself. Of those beyond ASCII none has another case, in the locale "C".
    fn literal(&mut self, c: char) {
        if self.flags.insensitive && self.flags.ctype == Ctype::C && !c.is_ascii() {
            self.out.push_str("(?-i:");
            self.out.push(c);
            self.out.push(')');
        } else {
            literal(c, &mut self.out);
        }
    }

    /// The pattern with every quantifier greedy or none.
    fn all_of_a_kind(&self, short: bool) -> String {
        let mut out = String::with_capacity(self.out.len() + self.quantifiers.len());
        let mut from = 0;
        for (end, lazy) in &self.quantifiers {
            let without = if *lazy { end - 1 } else { *end };
            out.push_str(&self.out[from..without]);
            if short {
                out.push('?');
            }
            from = *end;
        }
        out.push_str(&self.out[from..]);
        out
    }

    /// What stands at this place of the branch prefers this; the first to prefer anything decides.
    fn prefer(&mut self, short: Option<bool>) {
        if let Some(branch) = self.branches.last_mut() {
            branch.short = branch.short.or(short);
        }
    }

    fn run(&mut self) -> Result<()> {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            let quantifier = matches!(c, '*' | '+' | '?')
                || c == '{' && self.peek(0).is_some_and(|c| c.is_ascii_digit());
            if !quantifier {
                let group = self.group_prefers.take();
                self.prefer(group);
            }
            match c {
                '\\' => self.escape()?,
                '[' => {
                    self.bracket()?;
                    self.operand = true;
                }
                '(' => self.open()?,
                ')' => {
                    if self.depth == 0 {
                        return Err(bad("parentheses () not balanced"));
                    }
                    self.depth -= 1;
                    self.group_prefers = self.branches.pop().and_then(Branch::preference);
                    self.out.push(')');
                    self.operand = true;
                }
                '*' | '+' | '?' => self.quantifier(c)?,
                '{' if self.peek(0).is_some_and(|c| c.is_ascii_digit()) => self.braces()?,
                '{' => {
                    self.out.push_str("\\{");
                    self.operand = true;
                }
                '}' => {
                    self.out.push_str("\\}");
                    self.operand = true;
                }
                ']' => {
                    self.out.push_str("\\]");
                    self.operand = true;
                }
                '|' => {
                    self.out.push('|');
                    self.operand = false;
                    if let Some(branch) = self.branches.last_mut() {
                        branch.alternatives = true;
                    }
                }
                '^' => {
                    self.out.push('^');
                    self.operand = false;
                }
                '$' => {
                    // the engine's $ without m would also match before a final newline in some modes
                    self.out.push_str(if self.flags.newline_anchor { "$" } else { "\\z" });
                    self.operand = false;
                }
                '.' => {
                    self.out.push('.');
                    self.operand = true;
                }
                c if self.flags.expanded && crate::text::is_space(c) => {}
                '#' if self.flags.expanded => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                c => {
                    self.literal(c);
                    self.operand = true;
                }
            }
        }
        if self.depth > 0 {
            return Err(bad("parentheses () not balanced"));
        }
        let group = self.group_prefers.take();
        self.prefer(group);
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        self.operand = false;
        if self.peek(0) == Some('?') {
            match (self.peek(1), self.peek(2)) {
                (Some(':'), _) => {
                    self.out.push_str("(?:");
                    self.at += 2;
                }
                (Some(c @ ('=' | '!')), _) => {
                    self.out.push_str("(?");
                    self.out.push(c);
                    self.at += 2;
                }
                (Some('<'), Some(c @ ('=' | '!'))) => {
                    self.out.push_str("(?<");
                    self.out.push(c);
                    self.at += 3;
                }
                (Some('#'), _) => {
                    while self.peek(0).is_some_and(|c| c != ')') {
                        self.at += 1;
                    }
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(bad("quantifier operand invalid")),
            }
        } else {
            self.groups += 1;
            self.out.push('(');
        }
        self.depth += 1;
        self.branches.push(Branch::default());
        Ok(())
    }

    fn quantifier(&mut self, c: char) -> Result<()> {
        if !self.operand {
            return Err(bad("quantifier operand invalid"));
        }
        self.out.push(c);
        self.suffix(false)
    }

    /// The end of a quantifier; one of a fixed count prefers what its operand does.
    fn suffix(&mut self, fixed: bool) -> Result<()> {
        let group = self.group_prefers.take();
        let lazy = self.peek(0) == Some('?');
        if lazy {
            self.at += 1;
            self.out.push('?');
        }
        self.quantifiers.push((self.out.len(), lazy));
        self.prefer(if fixed { group } else { Some(lazy) });
        if matches!(self.peek(0), Some('*' | '+' | '?')) {
            return Err(bad("quantifier operand invalid"));
        }
        self.operand = false;
        Ok(())
    }

    fn braces(&mut self) -> Result<()> {
        if !self.operand {
            return Err(bad("quantifier operand invalid"));
        }
        let number = |t: &mut Self| {
            let start = t.at;
            while t.peek(0).is_some_and(|c| c.is_ascii_digit()) {
                t.at += 1;
            }
            let s: String = t.chars[start..t.at].iter().collect();
            s.parse::<u32>().ok()
        };
        let low = number(self).ok_or_else(|| bad("invalid repetition count(s)"))?;
        let mut high = Some(low);
        let range = self.peek(0) == Some(',');
        if range {
            self.at += 1;
            high = number(self);
        }
        if self.peek(0) != Some('}') {
            return Err(bad("braces {} not balanced"));
        }
        self.at += 1;
        if low > 255 || high.is_some_and(|h| h > 255 || h < low) {
            return Err(bad("invalid repetition count(s)"));
        }
        match high {
            Some(h) if h == low => self.out.push_str(&format!("{{{low}}}")),
            Some(h) => self.out.push_str(&format!("{{{low},{h}}}")),
            None => self.out.push_str(&format!("{{{low},}}")),
        }
        self.suffix(!range)
    }

    fn hex(&mut self, min: usize, max: usize) -> Result<char> {
        let start = self.at;
        while self.at - start < max && self.peek(0).is_some_and(|c| c.is_ascii_hexdigit()) {
            self.at += 1;
        }
        if self.at - start < min {
            return Err(bad("invalid escape \\ sequence"));
        }
        let s: String = self.chars[start..self.at].iter().collect();
        let v =
            u32::from_str_radix(&s, 16).ok().or(if s.is_empty() { None } else { Some(u32::MAX) });
        v.and_then(char::from_u32).ok_or_else(|| bad("invalid escape \\ sequence"))
    }

    /// A character escape that means the same inside and outside brackets.
    fn character(&mut self, c: char) -> Result<Option<char>> {
        Ok(Some(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'c' => {
                let Some(x) = self.peek(0) else { return Err(bad("invalid escape \\ sequence")) };
                self.at += 1;
                char::from((x as u32 & 0x1f) as u8)
            }
            'u' => self.hex(4, 4)?,
            'U' => self.hex(8, 8)?,
            'x' => self.hex(1, 255)?,
            '0' => {
                let start = self.at;
                while self.at - start < 2 && self.peek(0).is_some_and(|c| c.is_digit(8)) {
                    self.at += 1;
                }
                let s: String = self.chars[start..self.at].iter().collect();
                char::from(u8::from_str_radix(&s, 8).unwrap_or(0))
            }
            _ => return Ok(None),
        }))
    }

    fn escape(&mut self) -> Result<()> {
        let Some(c) = self.peek(0) else { return Err(bad("invalid escape \\ sequence")) };
        self.at += 1;
        if let Some(class) = self.class_escape(c) {
            self.out.push_str(if c.is_ascii_uppercase() { "[^" } else { "[" });
            self.out.push_str(class);
            self.out.push(']');
            self.operand = true;
            return Ok(());
        }
        let place = match c {
            'A' => "\\A",
            'Z' => "\\z",
            'm' => "\\b{start}",
            'M' => "\\b{end}",
            'y' => "\\b",
            'Y' => "\\B",
            _ => "",
        };
        if !place.is_empty() {
            self.out.push_str(place);
            self.operand = false;
            return Ok(());
        }
        self.operand = true;
        if c.is_ascii_digit() && c != '0' {
            let mut n = c.to_digit(10).unwrap_or(0) as usize;
            if let Some(d) = self.peek(0).and_then(|c| c.to_digit(10))
                && n * 10 + d as usize <= self.groups
            {
                n = n * 10 + d as usize;
                self.at += 1;
            }
            if n > self.groups {
                return Err(bad("invalid backreference number"));
            }
            self.out.push_str(&format!("(?:\\{n})"));
            return Ok(());
        }
        if let Some(x) = self.character(c)? {
            self.literal(x);
            return Ok(());
        }
        if c.is_ascii_alphanumeric() {
            return Err(bad("invalid escape \\ sequence"));
        }
        literal(c, &mut self.out);
        Ok(())
    }

    /// After `[`.
    fn bracket(&mut self) -> Result<()> {
        let unbalanced = || bad("brackets [] not balanced");
        let rest: String = self.chars[self.at..].iter().take(6).collect();
        if rest.starts_with("[:<:]]") {
            self.at += 6;
            self.out.push_str("\\b{start}");
            return Ok(());
        }
        if rest.starts_with("[:>:]]") {
            self.at += 6;
            self.out.push_str("\\b{end}");
            return Ok(());
        }
        self.out.push('[');
        if self.peek(0) == Some('^') {
            self.at += 1;
            self.out.push('^');
            if self.flags.newline_stop {
                self.out.push_str("\\n");
            }
        }
        let mut first = true;
        loop {
            let Some(c) = self.peek(0) else { return Err(unbalanced()) };
            self.at += 1;
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.peek(0) == Some(':') => {
                    let start = self.at + 1;
                    let mut end = start;
                    while self.chars.get(end).is_some_and(|c| *c != ':') {
                        end += 1;
                    }
                    let name: String =
                        self.chars[start..end.min(self.chars.len())].iter().collect();
                    if self.chars.get(end + 1) != Some(&']') {
                        return Err(unbalanced());
                    }
                    self.at = end + 2;
                    let Some(inside) = self.class(&name) else {
                        return Err(bad("invalid character class"));
                    };
                    self.out.push_str(inside);
                }
                '[' if matches!(self.peek(0), Some('.' | '=')) => {
                    let mark = self.peek(0).unwrap_or('.');
                    let Some(x) = self.peek(1) else { return Err(unbalanced()) };
                    if self.peek(2) != Some(mark) || self.peek(3) != Some(']') {
                        return Err(bad("invalid collating element"));
                    }
                    self.at += 4;
                    literal(x, &mut self.out);
                }
                '\\' => {
                    let Some(e) = self.peek(0) else { return Err(unbalanced()) };
                    self.at += 1;
                    if let Some(class) = self.class_escape(e) {
                        let others = e.is_ascii_uppercase();
                        let (open, close) = if others { ("[^", "]") } else { ("", "") };
                        self.out.extend([open, class, close]);
                    } else {
                        match self.character(e)? {
                            Some(x) => literal(x, &mut self.out),
                            None if e.is_ascii_alphanumeric() => {
                                return Err(bad("invalid escape \\ sequence"));
                            }
                            None => literal(e, &mut self.out),
                        }
                    }
                }
                '-' => {
                    // a range, unless first or last
                    let last = self.peek(0) == Some(']');
                    if first || last || self.out.ends_with(['[', '^']) {
                        self.out.push_str("\\-");
                    } else {
                        let low = self.chars.get(self.at.wrapping_sub(2)).copied();
                        if let (Some(l), Some(h)) = (low, self.peek(0))
                            && l > h
                            && !matches!(h, '\\' | '[')
                        {
                            return Err(bad("invalid character range"));
                        }
                        self.out.push('-');
                    }
                }
                c => literal(c, &mut self.out),
            }
            first = false;
        }
    }
}

/// A SIMILAR TO pattern as an advanced regular expression.
pub(crate) fn similar(pattern: &str, escape: Option<&str>) -> Result<String> {
    let escape = match escape {
        None => Some('\\'),
        Some(e) => {
            let mut it = e.chars();
            let c = it.next();
            if it.next().is_some() {
                return Err(base::SqlError::new(
                    base::SqlState::INVALID_ESCAPE_SEQUENCE,
                    "invalid escape string",
                )
                .hint("Escape string must be empty or one character.")
                .into());
            }
            c
        }
    };
    let mut out = String::from("^(?:");
    let (mut after, mut in_class, mut class_start) = (false, 0u8, 0u8);
    let mut quotes = 0;
    // what is repeated before the first separator: as short as can be
    let lazy = escape.is_some_and(|e| pattern.contains(&format!("{e}\"")));
    let chars: Vec<char> = pattern.chars().collect();
    for c in chars {
        if after {
            if c == '"' && in_class == 0 {
                match quotes {
                    0 => out.push_str(")("),
                    1 => out.push_str(")(?:"),
                    _ => {
                        return Err(err!(
                            INVALID_USE_OF_ESCAPE_CHARACTER,
                            "SQL regular expression may not contain more than two escape-double-quote separators"
                        ));
                    }
                }
                quotes += 1;
            } else {
                out.push('\\');
                out.push(c);
            }
            after = false;
            class_start = 0;
        } else if Some(c) == escape {
            after = true;
        } else if in_class > 0 {
            // inside brackets: only ] ends, and a backslash is itself
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            if c == ']' && class_start == 0 {
                in_class = 0;
            } else if c != '^' {
                class_start = 0;
            }
        } else {
            match c {
                '[' => {
                    out.push('[');
                    in_class = 1;
                    class_start = 1;
                }
                '%' if lazy && quotes == 0 => out.push_str(".*?"),
                '*' | '+' | '?' | '}' if lazy && quotes == 0 => out.extend([c, '?']),
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                _ => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}
