//! jsonb as it is stored, in memory and on pages: its parts are found without reading the rest.
//!
//! # Layout
//! A value is a byte that says its kind, then what that kind holds:
//!
//! | kind | then |
//! |---|---|
//! | 1 null, 2 false, 3 true | nothing |
//! | 4 integer | 1 to 8 bytes, two's complement, least first, as few as hold it |
//! | 5 number | numeric's stored form |
//! | 6 string | UTF-8 |
//! | 8 + *w* array | *n*, where each of its *n* elements ends, the elements |
//! | 12 + *w* object | *n*, where each of its *n* keys ends, where each of its *n* values ends, the keys, the values |
//!
//! Counts and ends have 1 << *w* bytes, least first (*w* is 0, 1 or 2: as few as hold the last end), and are counted from where the ends
//! themselves end. Keys are in the order of their lengths, then of their bytes, and each is there once.
//! Text never begins with such a byte: what earlier builds stored, its text, is told apart by it and read as text.
//!
//! # Invariants
//! - Values are made by this module only, so that every part of one is a value. Nothing panics on bytes that are none, though: a part that is
//!   not there reads as null. What comes from a page is looked at as far as its outermost level goes ([`Jsonb::decode`]).
//! - An integer that i64 holds is kind 4 and nothing else, unless it was written with decimals, which are shown again (1.0).
//!
//! # Differs from PostgreSQL
//! Its form has four bytes for each key and value; the shortest here have one. Numbers are numerics there always.

use crate::Numeric;
use base::{Result, err};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const NUMBER: u8 = 5;
const STRING: u8 = 6;
const ARRAY: u8 = 8;
const OBJECT: u8 = 12;
/// The first byte that text can begin with.
const TEXT: u8 = b' ';

/// A jsonb value.
#[derive(Clone, Debug)]
pub struct Jsonb(Arc<[u8]>);

/// What a jsonb value, or a part of one, is.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// null
    Null,
    /// true and false
    Bool(bool),
    /// A number without decimals that i64 holds.
    Integer(i64),
    /// Any other number, in numeric's stored form.
    Number(&'a [u8]),
    /// A string.
    String(&'a str),
    /// An array.
    Array(Array<'a>),
    /// An object.
    Object(Object<'a>),
}

/// Ends of parts, and the parts.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    ends: &'a [u8],
    width: usize,
    payload: &'a [u8],
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a>(Parts<'a>);

/// The members of an object: first the keys, then the values are its parts.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a>(Parts<'a>);

impl Jsonb {
    /// The value that `write` writes, which may put values into others.
    ///
    /// # Errors
    /// What `write` says; `54001` for one that is nested deeper than one can be read.
    pub(super) fn write(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Jsonb> {
        let made = Jsonb::write_read(write)?;
        if is_too_deep(&made.0) {
            return Err(super::too_deep());
        }
        Ok(made)
    }

    /// The value that `write` writes, of text whose depth has been looked at.
    ///
    /// # Errors
    /// What `write` says.
    pub(super) fn write_read(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Jsonb> {
        let mut out = Vec::with_capacity(128);
        write(&mut out)?;
        Ok(Jsonb(out.into()))
    }

    /// A copy of a part.
    pub fn part(bytes: &[u8]) -> Jsonb {
        Jsonb(Arc::from(bytes))
    }

    /// The stored form.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What it is.
    pub fn view(&self) -> View<'_> {
        view(&self.0)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `XX001`
    pub fn decode(bytes: &[u8]) -> Result<Jsonb> {
        let corrupt = |what: &str| err!(DATA_CORRUPTED, "invalid jsonb: {what}");
        match bytes.first() {
            Some(&kind) if kind < TEXT => match is_whole(kind, bytes) {
                true => Ok(Jsonb(Arc::from(bytes))),
                false => Err(corrupt("its parts do not make up the whole")),
            },
            Some(_) => {
                let text = std::str::from_utf8(bytes).map_err(|e| corrupt(&e.to_string()))?;
                super::read::jsonb(text).map_err(|e| corrupt(&e.to_string()))
            }
            None => Err(corrupt("no bytes")),
        }
    }
}

/// True for a value that is nested deeper than what goes through its parts may go.
fn is_too_deep(bytes: &[u8]) -> bool {
    // Each level takes three bytes at least: few values need be gone through.
    const LEVEL: usize = 3;
    let mut open = vec![(bytes, super::DEPTH_MAX)];
    while let Some((bytes, levels)) = open.pop() {
        if bytes.len() <= LEVEL * levels {
            continue;
        }
        let deep = |part: &[u8]| part.len() > LEVEL * (levels - 1);
        match view(bytes) {
            View::Array(_) | View::Object(_) if levels == 0 => return true,
            View::Array(items) => {
                open.extend(items.iter().filter(|p| deep(p)).map(|p| (p, levels - 1)));
            }
            View::Object(members) => {
                let values = members.iter().map(|(_, value)| value);
                open.extend(values.filter(|p| deep(p)).map(|p| (p, levels - 1)));
            }
            _ => {}
        }
    }
    false
}

/// True if a value of this kind can be of these bytes, as far as its outermost level tells.
fn is_whole(kind: u8, bytes: &[u8]) -> bool {
    match kind {
        NULL | FALSE | TRUE => bytes.len() == 1,
        INTEGER => (2..=9).contains(&bytes.len()),
        NUMBER | STRING => true,
        _ => match container(kind, bytes) {
            Some(parts) => parts.end(parts.count()) == Some(parts.payload.len()),
            None => false,
        },
    }
}

fn container(kind: u8, bytes: &[u8]) -> Option<Parts<'_>> {
    let per = match kind & !3 {
        ARRAY => 1,
        OBJECT => 2,
        _ => return None,
    };
    let width = match kind & 3 {
        3 => return None,
        w => 1usize << w,
    };
    let count = number(bytes.get(1..1 + width)?);
    let (ends, payload) =
        bytes.get(1 + width..)?.split_at_checked(count.checked_mul(per)?.checked_mul(width)?)?;
    Some(Parts { ends, width, payload })
}

/// Bytes, least first.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

/// What the bytes of a part say.
pub fn view(bytes: &[u8]) -> View<'_> {
    let Some((&kind, rest)) = bytes.split_first() else { return View::Null };
    match kind {
        FALSE => View::Bool(false),
        TRUE => View::Bool(true),
        INTEGER => View::Integer(integer(rest)),
        NUMBER => View::Number(rest),
        STRING => std::str::from_utf8(rest).map_or(View::Null, View::String),
        _ => match container(kind, bytes) {
            Some(parts) if kind & !3 == ARRAY => View::Array(Array(parts)),
            Some(parts) => View::Object(Object(parts)),
            None => View::Null,
        },
    }
}

fn integer(bytes: &[u8]) -> i64 {
    let mut out = [if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xFF } else { 0 }; 8];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(out)
}

impl<'a> Parts<'a> {
    /// How many parts.
    fn count(&self) -> usize {
        self.ends.len() / self.width
    }

    /// Where the first `n` parts end.
    fn end(&self, n: usize) -> Option<usize> {
        if n == 0 {
            return Some(0);
        }
        let at = (n - 1) * self.width;
        match self.width {
            1 => self.ends.get(at).map(|b| usize::from(*b)),
            _ => self.ends.get(at..at + self.width).map(number),
        }
    }

    fn part(&self, i: usize) -> Option<&'a [u8]> {
        self.payload.get(self.end(i)?..self.end(i + 1)?)
    }
}

impl<'a> Array<'a> {
    /// How many elements.
    pub fn len(&self) -> usize {
        self.0.count()
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// An element; from the end if negative.
    pub fn get(&self, i: i64) -> Option<&'a [u8]> {
        let i = if i < 0 { i + self.len() as i64 } else { i };
        self.0.part(usize::try_from(i).ok().filter(|i| *i < self.len())?)
    }

    /// The elements.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.len()).map(move |i| self.0.part(i).unwrap_or(&[NULL]))
    }
}

impl<'a> Object<'a> {
    /// How many members.
    pub fn len(&self) -> usize {
        self.0.count() / 2
    }

    /// True without members.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        let n = self.len();
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            match key_order(self.0.part(middle)?, key.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.0.part(n + middle),
            }
        }
        None
    }

    /// The members, in the order of their keys.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let n = self.len();
        (0..n).map(move |i| {
            let key = self.0.part(i).and_then(|k| std::str::from_utf8(k).ok()).unwrap_or_default();
            (key, self.0.part(n + i).unwrap_or(&[NULL]))
        })
    }
}

impl View<'_> {
    /// True for what has no parts.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, View::Array(_) | View::Object(_))
    }

    /// A number's value.
    pub fn number(&self) -> Option<Numeric> {
        match self {
            View::Integer(n) => Some(Numeric::from_i128((*n).into())),
            View::Number(bytes) => Numeric::decode(bytes).ok(),
            _ => None,
        }
    }
}

/// jsonb's order of keys: shorter first, then bytes.
pub(super) fn key_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

pub(super) fn put_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

pub(super) fn put_bool(b: bool, out: &mut Vec<u8>) {
    out.push(if b { TRUE } else { FALSE });
}

pub(super) fn put_string(s: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    out.extend_from_slice(s.as_bytes());
}

pub(super) fn put_integer(n: i64, out: &mut Vec<u8>) {
    out.push(INTEGER);
    let spare = if n < 0 { n.leading_ones() } else { n.leading_zeros() } - 1;
    let bytes = 8 - (spare / 8) as usize;
    out.extend(n.to_le_bytes().into_iter().take(bytes));
}

pub(super) fn put_numeric(n: &Numeric, out: &mut Vec<u8>) {
    match n.to_i64().filter(|_| n.is_finite() && n.scale() == 0) {
        Some(n) => put_integer(n, out),
        None => {
            out.push(NUMBER);
            n.encode(out);
        }
    }
}

/// Writes an array: `elements` writes them all, and after each tells where `out` ends.
pub(super) fn put_array(
    out: &mut Vec<u8>,
    elements: impl FnOnce(&mut Vec<u8>, &mut dyn FnMut(usize)) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    let mut ends = Vec::new();
    elements(out, &mut |end| ends.push(end - start))?;
    put_head(ARRAY, 1, start, &ends, out)
}

/// Writes an object of members that are in the order of their keys.
pub(super) fn put_members<'m>(
    members: impl Iterator<Item = (&'m str, &'m [u8])> + Clone,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let mut ends = Vec::new();
    for (key, _) in members.clone() {
        out.extend_from_slice(key.as_bytes());
        ends.push(out.len() - start);
    }
    for (_, value) in members {
        out.extend_from_slice(value);
        ends.push(out.len() - start);
    }
    put_head(OBJECT, 2, start, &ends, out)
}

/// Members of an object that is being made, in any order, their values behind each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Members<K> {
    keys: Vec<(K, Range<usize>)>,
    values: Vec<u8>,
}

impl<K: AsRef<str>> Members<K> {
    /// Adds one, whose value `write` writes.
    pub(super) fn add(
        &mut self,
        key: K,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let start = self.values.len();
        write(&mut self.values)?;
        self.keys.push((key, start..self.values.len()));
        Ok(())
    }

    /// How much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.values.capacity() + self.keys.len() * (size_of::<(K, Range<usize>)>() + 16)
    }

    /// Writes the object: of members with one key the last stays.
    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        let key = |i: usize| self.keys[i].0.as_ref();
        // Of two with one key the later one first.
        order.sort_unstable_by(|a, b| {
            key_order(key(*a).as_bytes(), key(*b).as_bytes()).then(b.cmp(a))
        });
        order.dedup_by(|later, earlier| key(*later) == key(*earlier));
        let member = |i: &usize| (key(*i), &self.values[self.keys[*i].1.clone()]);
        put_members(order.iter().map(member), out)
    }
}

/// Puts a container's kind, count and ends before its parts.
fn put_head(kind: u8, per: usize, start: usize, ends: &[usize], out: &mut Vec<u8>) -> Result<()> {
    let payload = out.len() - start;
    // PostgreSQL's own bound, and its words.
    if payload > 0x0FFF_FFFF {
        let what = if kind == ARRAY { "array elements" } else { "object elements" };
        base::bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "total size of jsonb {what} exceeds the maximum of 268435455 bytes"
        );
    }
    let count = ends.len() / per;
    let w = match payload.max(count) {
        0..=0xFF => 0,
        0x100..=0xFFFF => 1,
        _ => 2,
    };
    let width = 1usize << w;
    let head = 1 + width * (1 + ends.len());
    out.resize(out.len() + head, 0);
    out.copy_within(start..start + payload, start + head);
    out[start] = kind + w;
    let numbers = std::iter::once(&count).chain(ends);
    for (to, n) in out[start + 1..start + head].chunks_exact_mut(width).zip(numbers) {
        to.copy_from_slice(&n.to_le_bytes()[..width]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{jsonb_compare, jsonb_hash, jsonb_output};
    use std::hash::{DefaultHasher, Hasher};

    fn read(text: &str) -> Jsonb {
        crate::json::read::jsonb(text).unwrap()
    }

    fn shown(v: View) -> String {
        let mut out = String::new();
        jsonb_output(v, &mut out);
        out
    }

    fn hashed(v: &Jsonb) -> u64 {
        let mut state = DefaultHasher::new();
        jsonb_hash(v.view(), &mut state);
        state.finish()
    }

    #[test]
    fn integers_take_as_few_bytes_as_hold_them() {
        let cases = [0, 1, -1, 127, 128, -128, -129, 255, 32_767, 32_768, i64::MAX, i64::MIN];
        for n in cases.into_iter().chain((0..63).flat_map(|s| [1 << s, -(1i64 << s)])) {
            let mut out = Vec::new();
            put_integer(n, &mut out);
            assert!(matches!(view(&out), View::Integer(m) if m == n), "{n}: {out:?}");
            let shorter = &out[1..out.len() - 1];
            assert!(shorter.is_empty() || integer(shorter) != n, "{n} in fewer bytes");
            let same = read(&n.to_string());
            assert_eq!(same.bytes(), out, "{n} of its text");
        }
    }

    #[test]
    fn parts_are_found_whatever_the_width_of_their_ends() {
        // Payloads around the most that one and two bytes count.
        for size in [0, 1, 100, 230, 255, 256, 257, 65_000, 65_535, 65_536, 70_000] {
            let long = "x".repeat(size);
            let text = format!("{{\"b\": [1, \"{long}\", null], \"a\": \"{long}\", \"cc\": {{}}}}");
            let v = read(&text);
            let View::Object(o) = v.view() else { panic!("{size}") };
            assert_eq!(o.iter().map(|(k, _)| k).collect::<Vec<_>>(), ["a", "b", "cc"]);
            assert!(matches!(view(o.get("a").unwrap()), View::String(s) if s == long));
            let View::Array(items) = view(o.get("b").unwrap()) else { panic!("{size}") };
            assert_eq!(items.len(), 3);
            assert!(matches!(view(items.get(1).unwrap()), View::String(s) if s == long));
            assert!(matches!(view(items.get(-1).unwrap()), View::Null));
            assert!(items.get(3).is_none() && items.get(-4).is_none() && o.get("c").is_none());
            assert_eq!(shown(Jsonb::decode(v.bytes()).unwrap().view()), shown(v.view()));
        }
        let many = format!("[{}1]", "1,".repeat(70_000));
        let v = read(&many);
        assert!(matches!(v.view(), View::Array(items) if items.len() == 70_001));
    }

    #[test]
    fn the_last_of_two_members_with_one_key_stays() {
        let v = read(r#"{"k": 1, "aa": 2, "k": {"x": 3}, "k": 4}"#);
        assert_eq!(shown(v.view()), r#"{"k": 4, "aa": 2}"#);
    }

    /// What earlier builds stored is read as what it was.
    #[test]
    fn text_is_read_as_well() {
        for text in ["null", "true", "-1.50", "\"s\"", "[]", "{\"a\": [1, {\"b\": 2}]}", "7"] {
            let v = Jsonb::decode(text.as_bytes()).unwrap();
            assert_eq!(shown(v.view()), text);
            assert_eq!(v.bytes(), read(text).bytes());
        }
    }

    #[test]
    fn equal_numbers_are_hashed_alike_and_shown_as_written() {
        let big = "123456789012345678901234567890";
        for (a, b) in [("1", "1.0"), ("0", "-0.00"), ("1e3", "1000"), (big, &format!("{big}.00"))] {
            let (x, y) = (read(a), read(b));
            assert_eq!(jsonb_compare(x.view(), y.view()), Ordering::Equal, "{a} {b}");
            assert_eq!(hashed(&x), hashed(&y), "{a} {b}");
        }
        assert_eq!(shown(read("[1.0, -0.00, 1e3, 1.10]").view()), "[1.0, 0.00, 1000, 1.10]");
    }

    /// Bytes that are no value are refused or read as something, never with a panic.
    #[test]
    fn damaged_bytes_do_no_harm() {
        let whole = read(r#"{"a": [1, "x", {"b": null}], "bb": -1.5, "c": [[], {}, 70000]}"#);
        for i in 0..whole.bytes().len() {
            for change in [0u8, 1, 2, 8, 12, 14, 127, 128, 255] {
                let mut bytes = whole.bytes().to_vec();
                bytes[i] = change;
                for end in [bytes.len(), i, i + 1] {
                    if let Ok(v) = Jsonb::decode(&bytes[..end]) {
                        _ = shown(v.view());
                        _ = jsonb_compare(v.view(), whole.view());
                        _ = hashed(&v);
                    }
                }
            }
        }
        let cut = &whole.bytes()[..whole.bytes().len() - 1];
        assert!(Jsonb::decode(cut).is_err() && Jsonb::decode(&[]).is_err());
    }
}
