//! json as text, gone through once from its beginning to its end: however deep it is nested, each byte is looked at a few times, where
//! [`raw`](super::raw) looks for the end of each part anew. The text has been checked, its depth too.

use super::build::push_string;
use super::raw::unescape;
use base::Result;
use std::collections::HashSet;

/// A place in the text.
struct Place<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Place<'a> {
    /// What stands here behind blanks; 0 at the end.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Goes on behind the opening bracket, or the comma, before a part. False at the container's end, which it goes behind.
    fn enter_next(&mut self, first: bool) -> bool {
        if first || self.peek() == b',' {
            self.at += 1;
        }
        if matches!(self.peek(), b']' | b'}' | 0) {
            self.at += 1;
            return false;
        }
        true
    }

    /// A string, with its quotes, or a number or word.
    fn scalar(&mut self) -> &'a str {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let quoted = self.peek() == b'"';
        self.at += 1;
        while let Some(b) = bytes.get(self.at) {
            match b {
                b'"' if quoted => {
                    self.at += 1;
                    break;
                }
                b'\\' if quoted => self.at += 1,
                b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' if !quoted => break,
                _ => {}
            }
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// An object's key, and the colon.
    fn key(&mut self) -> Result<String> {
        let key = unescape(self.scalar())?;
        self.peek();
        self.at += 1;
        Ok(key)
    }

    fn strip(&mut self, in_arrays: bool, out: &mut String) -> Result<()> {
        let kind = self.peek();
        match kind {
            b'{' | b'[' => {
                out.push(char::from(kind));
                let (mut first, mut any) = (true, false);
                while self.enter_next(std::mem::take(&mut first)) {
                    let key = if kind == b'{' { Some(self.key()?) } else { None };
                    if self.peek() == b'n' && (in_arrays || key.is_some()) {
                        self.scalar();
                        continue;
                    }
                    out.push_str(if std::mem::replace(&mut any, true) { "," } else { "" });
                    if let Some(key) = key {
                        push_string(&key, out);
                        out.push(':');
                    }
                    self.strip(in_arrays, out)?;
                }
                out.push(if kind == b'{' { '}' } else { ']' });
            }
            b'"' => push_string(&unescape(self.scalar())?, out),
            _ => out.push_str(self.scalar()),
        }
        Ok(())
    }

    fn repeated(&mut self) -> Result<Option<String>> {
        let kind = self.peek();
        if kind != b'{' && kind != b'[' {
            self.scalar();
            return Ok(None);
        }
        let mut keys = HashSet::new();
        let mut first = true;
        while self.enter_next(std::mem::take(&mut first)) {
            if kind == b'{' {
                let key = self.key()?;
                if keys.contains(&key) {
                    return Ok(Some(key));
                }
                keys.insert(key);
            }
            if let Some(key) = self.repeated()? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

/// Appends a value without the spaces between its parts, its strings written anew, members that are null left out; with `in_arrays`,
/// elements too.
///
/// # Errors
/// `22P02` for escapes that no characters can be made of.
pub(super) fn strip_nulls(text: &str, in_arrays: bool, out: &mut String) -> Result<()> {
    Place { text, at: 0 }.strip(in_arrays, out)
}

/// A key that an object in the text has twice.
///
/// # Errors
/// `22P02` for escapes that no characters can be made of.
pub(super) fn repeated_key(text: &str) -> Result<Option<String>> {
    Place { text, at: 0 }.repeated()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_left_out() {
        for (text, plain, in_arrays) in [
            (" null ", "null", "null"),
            ("[]", "[]", "[]"),
            (" { } ", "{}", "{}"),
            ("[ null , 1,null ]", "[null,1,null]", "[1]"),
            ("[null]", "[null]", "[]"),
            (r#"{"a":null}"#, "{}", "{}"),
            (
                r#"{"a" : null , "b\u0041" : -1.50e3 , "c":"\"}null" , "d":[{"e":null},null] }"#,
                r#"{"bA":-1.50e3,"c":"\"}null","d":[{},null]}"#,
                r#"{"bA":-1.50e3,"c":"\"}null","d":[{}]}"#,
            ),
            ("[[[null]],[true,false]]", "[[[null]],[true,false]]", "[[[]],[true,false]]"),
        ] {
            for (arrays, wanted) in [(false, plain), (true, in_arrays)] {
                let mut out = String::new();
                strip_nulls(text, arrays, &mut out).unwrap();
                assert_eq!(out, wanted, "{text}");
            }
        }
    }

    #[test]
    fn keys_that_come_twice_are_found() {
        for (text, key) in [
            ("1", None),
            (r#""{\"a\":1,\"a\":1}""#, None),
            (r#"{"a":1,"b":{"a":1}}"#, None),
            (r#"[{"a":1},{"a":1}]"#, None),
            (r#"{"a":1,"\u0061":1}"#, Some("a")),
            (r#"[1,{"x":[{"k":{}, "l":[], "k":3}]}]"#, Some("k")),
            (r#"{"a":[{}],"b":{"c":null},"a":1}"#, Some("a")),
        ] {
            assert_eq!(repeated_key(text).unwrap().as_deref(), key, "{text}");
        }
    }

    /// A text as long as it is deep takes time for each of its bytes, not for each at each depth.
    #[test]
    fn depth_costs_nothing() {
        let deep = 990;
        let text = format!("{}\"{}\"{}", "[".repeat(deep), "x".repeat(1 << 22), "]".repeat(deep));
        assert_eq!(repeated_key(&text).unwrap(), None);
        let mut out = String::new();
        strip_nulls(&text, true, &mut out).unwrap();
        assert_eq!(out, text);
    }
}
