//! Checks that wait for the end of the statement or of the transaction, one for each row written.
//!
//! # Layout
//! The first few are kept as they are: most statements write few rows. Of those that follow, what all checks of a constraint have in common is
//! kept once, and of each check its number among those kinds and its values, as bytes: a key of one integer takes seven.
//!
//! # Invariants
//! - Checks come out in the order in which they went in.
//! - A [`Mark`] holds for as long as nothing that went in before it has come out.
//!
//! # Differs from PostgreSQL
//! There the addresses of rows wait, which takes about as much; here their keys, so that the rows are not read again.

use super::foreign_key::AfterCheck;
use super::unique_later::DoubtfulKey;
use base::{Error, Oid, Result};
use engine::catalog::model::ForeignKey;
use std::collections::VecDeque;
use std::sync::Arc;
use types::Datum;

/// So many are kept as they are.
const PLAIN: usize = 32;
/// Bytes are kept in pieces of this size, which go as their checks come out.
const PIECE: usize = 1 << 16;
/// So many kinds, the last ones, are looked through for one that is the same. More of one kind do no harm.
const LOOKED_AT: usize = 16;

/// What checks have in common.
#[derive(Clone, Debug)]
enum Kind {
    Referencing(Arc<ForeignKey>),
    Referenced { key: Arc<ForeignKey>, updated: bool },
    Unique { table: Oid, constraint: Oid, index: Oid, deferred: bool, width: usize },
}

impl Kind {
    fn of(check: &AfterCheck) -> Kind {
        match check {
            AfterCheck::Referencing { key, .. } => Kind::Referencing(Arc::clone(key)),
            AfterCheck::Referenced { key, new, .. } => {
                Kind::Referenced { key: Arc::clone(key), updated: new.is_some() }
            }
            AfterCheck::Unique(k) => Kind::Unique {
                table: k.table,
                constraint: k.constraint,
                index: k.index,
                deferred: k.deferred,
                width: k.key.len(),
            },
        }
    }

    fn is_of(&self, check: &AfterCheck) -> bool {
        match (self, check) {
            (Kind::Referencing(a), AfterCheck::Referencing { key: b, .. }) => Arc::ptr_eq(a, b),
            (Kind::Referenced { key: a, updated }, AfterCheck::Referenced { key: b, new, .. }) => {
                Arc::ptr_eq(a, b) && *updated == new.is_some()
            }
            (Kind::Unique { table, constraint, index, deferred, width }, AfterCheck::Unique(k)) => {
                (*table, *constraint, *index) == (k.table, k.constraint, k.index)
                    && (*deferred, *width) == (k.deferred, k.key.len())
            }
            _ => false,
        }
    }

    fn read(&self, bytes: &mut &[u8]) -> Result<AfterCheck> {
        Ok(match self {
            Kind::Referencing(key) => AfterCheck::Referencing {
                key: Arc::clone(key),
                values: read_values(bytes, key.columns.len())?,
            },
            Kind::Referenced { key, updated } => {
                let width = key.referenced_columns.len();
                AfterCheck::Referenced {
                    key: Arc::clone(key),
                    old: read_values(bytes, width)?,
                    new: updated.then(|| read_values(bytes, width)).transpose()?,
                }
            }
            Kind::Unique { table, constraint, index, deferred, width } => {
                AfterCheck::Unique(DoubtfulKey {
                    table: *table,
                    constraint: *constraint,
                    index: *index,
                    deferred: *deferred,
                    key: read_values(bytes, *width)?,
                })
            }
        })
    }
}

/// Seven bits a byte, the lowest first.
fn put_number(mut n: u32, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn damaged() -> Error {
    base::err!(INTERNAL_ERROR, "a check that waited cannot be read")
}

fn take_number(bytes: &mut &[u8]) -> Result<u32> {
    let mut n = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(damaged)?;
        *bytes = rest;
        n |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(damaged())
}

/// Each value's type, length and bytes; of a NULL type 0 alone.
fn put_values(values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    let mut value = Vec::new();
    for d in values {
        if d.is_null() {
            put_number(0, out);
            continue;
        }
        let d = d.now()?;
        let ty = types::io::natural_type(d);
        value.clear();
        types::encode(ty, d, &mut value)?;
        put_number(ty.0, out);
        put_number(u32::try_from(value.len()).map_err(|_| damaged())?, out);
        out.extend_from_slice(&value);
    }
    Ok(())
}

fn read_values(bytes: &mut &[u8], width: usize) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(width);
    for _ in 0..width {
        let ty = take_number(bytes)?;
        if ty == 0 {
            values.push(Datum::Null);
            continue;
        }
        let len = take_number(bytes)? as usize;
        let (value, rest) = bytes.split_at_checked(len).ok_or_else(damaged)?;
        *bytes = rest;
        values.push(types::decode(Oid(ty), value)?);
    }
    Ok(values)
}

/// Checks that wait, in order.
#[derive(Default, Debug)]
pub struct CheckList {
    plain: VecDeque<AfterCheck>,
    kinds: Vec<Kind>,
    pieces: VecDeque<Vec<u8>>,
    /// So many bytes of the first piece have come out.
    out: usize,
    len: usize,
}

/// How long a list was.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mark {
    plain: usize,
    pieces: usize,
    /// Of the last piece.
    bytes: usize,
    len: usize,
}

impl CheckList {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Does none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How long it is.
    pub fn mark(&self) -> Mark {
        Mark {
            plain: self.plain.len(),
            pieces: self.pieces.len(),
            bytes: self.pieces.back().map_or(0, Vec::len),
            len: self.len,
        }
    }

    /// One more.
    ///
    /// # Errors
    /// Those of reading a long value that was not read yet.
    pub fn push(&mut self, check: AfterCheck) -> Result<()> {
        if self.pieces.is_empty() && self.plain.len() < PLAIN {
            self.plain.push_back(check);
            self.len += 1;
            return Ok(());
        }
        let last = self.kinds.iter().rev().take(LOOKED_AT).position(|kind| kind.is_of(&check));
        let kind = match last {
            Some(from_end) => self.kinds.len() - 1 - from_end,
            None => {
                self.kinds.push(Kind::of(&check));
                self.kinds.len() - 1
            }
        };
        if self.pieces.back().is_none_or(|piece| piece.len() >= PIECE - PIECE / 16) {
            self.pieces.push_back(Vec::new());
        }
        let Some(piece) = self.pieces.back_mut() else { return Err(damaged()) };
        let before = piece.len();
        put_number(u32::try_from(kind).map_err(|_| damaged())?, piece);
        let put = match &check {
            AfterCheck::Referencing { values, .. } => put_values(values, piece),
            AfterCheck::Referenced { old, new, .. } => {
                let new = new.as_deref().unwrap_or_default();
                put_values(old, piece).and_then(|()| put_values(new, piece))
            }
            AfterCheck::Unique(key) => put_values(&key.key, piece),
        };
        if put.is_err() {
            piece.truncate(before);
        } else {
            self.len += 1;
        }
        put
    }

    /// All of another's.
    ///
    /// # Errors
    /// As [`CheckList::push`].
    pub fn append(&mut self, more: &mut CheckList) -> Result<()> {
        if self.is_empty() {
            *self = std::mem::take(more);
            return Ok(());
        }
        while let Some(check) = more.take_first()? {
            self.push(check)?;
        }
        Ok(())
    }

    /// The first, which waits no longer.
    ///
    /// # Errors
    /// None but by a bug.
    pub fn take_first(&mut self) -> Result<Option<AfterCheck>> {
        if let Some(check) = self.plain.pop_front() {
            self.len -= 1;
            return Ok(Some(check));
        }
        while let Some(piece) = self.pieces.front() {
            let mut bytes = piece.get(self.out..).unwrap_or_default();
            if bytes.is_empty() {
                self.pieces.pop_front();
                self.out = 0;
                continue;
            }
            let check = read_check(&self.kinds, &mut bytes)?;
            self.out = piece.len() - bytes.len();
            self.len -= 1;
            return Ok(Some(check));
        }
        self.kinds.clear();
        Ok(None)
    }

    /// Calls `f` with each, or each that came after `from`, in order.
    ///
    /// # Errors
    /// `f`'s.
    pub fn each(&self, from: Mark, f: &mut dyn FnMut(AfterCheck) -> Result<()>) -> Result<()> {
        self.plain.iter().skip(from.plain).try_for_each(|check| f(check.clone()))?;
        for (n, piece) in self.pieces.iter().enumerate().skip(from.pieces.saturating_sub(1)) {
            let out = if n == 0 { self.out } else { 0 };
            let start = if n + 1 == from.pieces { from.bytes.max(out) } else { out };
            let mut bytes = piece.get(start..).unwrap_or_default();
            while !bytes.is_empty() {
                f(read_check(&self.kinds, &mut bytes)?)?;
            }
        }
        Ok(())
    }

    /// Does one of a row of `table` wait?
    ///
    /// # Errors
    /// None but by a bug.
    pub fn has_of(&self, table: Oid) -> Result<bool> {
        let mut found = self.plain.iter().any(|check| check.table() == table);
        // Of some kinds none may be left.
        if !found && !self.pieces.is_empty() {
            self.each(Mark { plain: usize::MAX, ..Mark::default() }, &mut |check| {
                found |= check.table() == table;
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Those that came after `mark` wait no longer.
    pub fn truncate(&mut self, mark: &Mark) {
        self.plain.truncate(mark.plain);
        self.pieces.truncate(mark.pieces);
        if let Some(piece) = self.pieces.back_mut() {
            piece.truncate(mark.bytes);
        }
        self.len = self.len.min(mark.len);
        if self.len == 0 {
            *self = CheckList::default();
        }
    }

    /// Bytes that it takes beside the first few.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }
}

fn read_check(kinds: &[Kind], bytes: &mut &[u8]) -> Result<AfterCheck> {
    let kind = take_number(bytes)? as usize;
    kinds.get(kind).ok_or_else(damaged)?.read(bytes)
}

impl AfterCheck {
    /// The constraint.
    pub fn constraint(&self) -> Oid {
        match self {
            AfterCheck::Referencing { key, .. } | AfterCheck::Referenced { key, .. } => key.oid,
            AfterCheck::Unique(key) => key.constraint,
        }
    }

    /// The table whose row it is of.
    pub fn table(&self) -> Oid {
        match self {
            AfterCheck::Referencing { key, .. } => key.table,
            AfterCheck::Referenced { key, .. } => key.referenced_table,
            AfterCheck::Unique(key) => key.table,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::catalog::model::{KeyTriggers, ReferentialAction};

    fn key(oid: u32, columns: usize) -> Arc<ForeignKey> {
        let numbers: Vec<i32> = (1..).take(columns).collect();
        Arc::new(ForeignKey {
            oid: Oid(oid),
            name: "k".to_owned(),
            table: Oid(oid + 1),
            columns: numbers.clone(),
            referenced_table: Oid(oid + 2),
            referenced_columns: numbers,
            referenced_index: Oid::INVALID,
            on_update: ReferentialAction::NoAction,
            on_delete: ReferentialAction::NoAction,
            on_delete_columns: Vec::new(),
            match_full: false,
            deferrable: true,
            deferred: true,
            validated: true,
            enforced: true,
            operators: Vec::new(),
            triggers: KeyTriggers::default(),
        })
    }

    fn shown(check: &AfterCheck) -> String {
        match check {
            AfterCheck::Referencing { key, values } => format!("{} {values:?}", key.oid),
            AfterCheck::Referenced { key, old, new } => format!("{} {old:?} {new:?}", key.oid),
            AfterCheck::Unique(k) => format!("{k:?}"),
        }
    }

    /// Of all sorts, by turns.
    fn checks(keys: &[Arc<ForeignKey>; 2], n: i32) -> Vec<AfterCheck> {
        let mut checks = Vec::new();
        for i in 0..n {
            let (key, other) = (Arc::clone(&keys[0]), Arc::clone(&keys[1]));
            checks.push(AfterCheck::Referencing { key, values: vec![Datum::Int4(i)] });
            let old = vec![Datum::text("long ".repeat(i as usize % 90)), Datum::Null];
            let new = (i % 3 == 0).then(|| vec![Datum::Int8(-1), Datum::Uuid([7; 16])]);
            checks.push(AfterCheck::Referenced { key: other, old, new });
            checks.push(AfterCheck::Unique(DoubtfulKey {
                table: Oid(5),
                constraint: Oid(6),
                index: Oid(7),
                deferred: i % 2 == 0,
                key: vec![Datum::Bool(true); 3],
            }));
        }
        checks
    }

    fn listed(list: &CheckList, from: Mark) -> Vec<String> {
        let mut all = Vec::new();
        list.each(from, &mut |check| {
            all.push(shown(&check));
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn they_come_out_as_they_went_in() {
        let keys = [key(100, 1), key(200, 2)];
        let all = checks(&keys, 3000);
        let mut list = CheckList::default();
        let mut out = Vec::new();
        // In twice as fast as out, then out alone, and again.
        for round in all.chunks(4000) {
            for (n, check) in round.iter().enumerate() {
                list.push(check.clone()).unwrap();
                if n % 2 == 0 {
                    out.extend(list.take_first().unwrap().as_ref().map(shown));
                }
            }
            while let Some(check) = list.take_first().unwrap() {
                out.push(shown(&check));
            }
        }
        let expected: Vec<String> = all.iter().map(shown).collect();
        assert_eq!(out, expected);
        assert!(list.is_empty() && list.bytes() == 0);
        all.iter().for_each(|check| list.push(check.clone()).unwrap());
        assert_eq!((list.len(), listed(&list, Mark::default())), (all.len(), expected.clone()));
        let mut out = Vec::new();
        while let Some(check) = list.take_first().unwrap() {
            out.push(shown(&check));
            if out.len() == 5000 {
                assert_eq!(listed(&list, Mark::default()), expected[5000..]);
                list.push(all[0].clone()).unwrap();
            }
        }
        assert_eq!(out[..all.len()], expected);
        assert_eq!(out[all.len()..], expected[..1]);
    }

    #[test]
    fn what_came_after_a_mark_goes_with_it() {
        let keys = [key(100, 1), key(200, 2)];
        let all = checks(&keys, 3000);
        let expected: Vec<String> = all.iter().map(shown).collect();
        for at in [0, 1, PLAIN - 1, PLAIN, PLAIN + 1, 100, 8999, 9000] {
            let mut list = CheckList::default();
            all[..at].iter().for_each(|check| list.push(check.clone()).unwrap());
            let mark = list.mark();
            for rest in [&all[at..], &all[..], &all[..0], &all[7..]] {
                rest.iter().for_each(|check| list.push(check.clone()).unwrap());
                assert_eq!(list.len(), at + rest.len());
                let since: Vec<String> = rest.iter().map(shown).collect();
                assert_eq!(listed(&list, mark), since);
                list.truncate(&mark);
                assert_eq!(listed(&list, Mark::default()), expected[..at]);
                assert_eq!(list.len(), at);
            }
        }
    }

    /// Rows of a large statement take little more than their keys.
    #[test]
    fn a_key_of_one_integer_takes_seven_bytes() {
        let key = key(100, 1);
        let mut list = CheckList::default();
        for i in 0..100_000 {
            let values = vec![Datum::Int4(i)];
            list.push(AfterCheck::Referencing { key: Arc::clone(&key), values }).unwrap();
        }
        assert!(list.bytes() < 8 * 100_000 + PIECE, "{}", list.bytes());
        assert_eq!(list.kinds.len(), 1);
        // What has come out takes nothing.
        for _ in 0..90_000 {
            list.take_first().unwrap();
        }
        assert!(list.bytes() < 8 * 10_000 + 2 * PIECE, "{}", list.bytes());
    }

    #[test]
    fn tables_are_known() {
        let keys = [key(100, 1), key(200, 2)];
        let mut list = CheckList::default();
        let mark = list.mark();
        for check in checks(&keys, 100) {
            list.push(check).unwrap();
        }
        for (table, waits) in [(5, true), (101, true), (202, true), (102, false), (201, false)] {
            assert_eq!(list.has_of(Oid(table)).unwrap(), waits, "{table}");
        }
        list.truncate(&mark);
        assert!(!list.has_of(Oid(5)).unwrap());
    }
}
