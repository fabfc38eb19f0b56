//! The different values of an aggregate's argument (`count(DISTINCT x)`), in a hash table.
//!
//! # Purpose
//! Where an aggregate's result does not depend on the order of its arguments, the different ones need not be sorted: of many equal values
//! one is kept, and none is compared with others. Values of the types that a machine word holds are kept as such words, others as they are.
//!
//! # Invariants
//! - The table has no NULLs, which none of these aggregates counts.
//! - Words order as the values do that they stand for, and equal values are one word.
//! - A table that has outgrown its memory is parted by hash into a file and begun anew: of what several tables had all is in one part, of which a
//!   table is made in its turn.
//! - One of many tables that have outgrown their memory together may be small: it is sorted, and becomes a run of a sorter on disk: each run has a
//!   value once, and what several of them have is met side by side when they are merged. What has begun in one way goes on so.
//! - Of equal values the first one is kept, in either way.

use super::{Call, Collected, Maker, State};
use crate::exec::Cx;
use crate::exec::hash_join::Table;
use crate::exec::parts::{DEEPEST, Parted, Split};
use crate::exec::sort::{KeyPlace, Sorter};
use base::sync::CancelFlag;
use base::{Oid, Result};
use expr::ops::{compare, mix};
use expr::tree::AggregateCall;
use types::{Datum, oids};

/// So many words are sorted at once before a cancel is looked for, and become a run.
const RUN_WORDS: usize = 1 << 20;
const LEAST_SLOTS: usize = 8;
const SIGN: u64 = 1 << 63;

/// What a word stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Oid,
}

/// A value as a word, if one holds values of its type.
#[inline]
fn word_of(value: &Datum) -> Option<(Kind, u64)> {
    let signed = |n: i64| n.cast_unsigned() ^ SIGN;
    Some(match value {
        Datum::Int4(n) => (Kind::Int4, signed(i64::from(*n))),
        Datum::Int8(n) => (Kind::Int8, signed(*n)),
        Datum::Int2(n) => (Kind::Int2, signed(i64::from(*n))),
        Datum::Date(n) => (Kind::Date, signed(i64::from(*n))),
        Datum::Time(n) => (Kind::Time, signed(*n)),
        Datum::Timestamp(n) => (Kind::Timestamp, signed(*n)),
        Datum::TimestampTz(n) => (Kind::TimestampTz, signed(*n)),
        Datum::Bool(b) => (Kind::Bool, u64::from(*b)),
        Datum::Oid(o) => (Kind::Oid, u64::from(o.0)),
        Datum::Float4(x) => (Kind::Float4, word_of_float(f64::from(*x))),
        Datum::Float8(x) => (Kind::Float8, word_of_float(*x)),
        _ => return None,
    })
}

/// Zeros of both signs are one value, and so is whatever is not a number, which comes last.
fn word_of_float(x: f64) -> u64 {
    if x.is_nan() {
        return u64::MAX;
    }
    let bits = (x + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn value_of(kind: Kind, word: u64) -> Datum {
    let n = (word ^ SIGN).cast_signed();
    match kind {
        Kind::Bool => Datum::Bool(word != 0),
        Kind::Int2 => Datum::Int2(n as i16),
        Kind::Int4 => Datum::Int4(n as i32),
        Kind::Int8 => Datum::Int8(n),
        Kind::Date => Datum::Date(n as i32),
        Kind::Time => Datum::Time(n),
        Kind::Timestamp => Datum::Timestamp(n),
        Kind::TimestampTz => Datum::TimestampTz(n),
        Kind::Oid => Datum::Oid(Oid(word as u32)),
        Kind::Float4 => Datum::Float4(float_of_word(word) as f32),
        Kind::Float8 => Datum::Float8(float_of_word(word)),
    }
}

fn float_of_word(word: u64) -> f64 {
    match word {
        u64::MAX => f64::NAN,
        word if word & SIGN == 0 => f64::from_bits(!word),
        word => f64::from_bits(word ^ SIGN),
    }
}

/// Different words. A slot of zero is free: whether zero itself is among them is noted beside.
#[derive(Default)]
struct Words {
    slots: Vec<u64>,
    len: usize,
    zero: bool,
}

impl Words {
    /// There is no room for one more in these slots.
    fn is_full(&self) -> bool {
        self.len * 4 >= self.slots.len() * 3
    }

    #[inline]
    fn has(&self, word: u64) -> bool {
        if word == 0 {
            return self.zero;
        }
        if self.slots.is_empty() {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut at = mix(word) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return false,
                other if other == word => return true,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a word that it does not have.
    fn add(&mut self, word: u64) {
        if word == 0 {
            self.zero = true;
            return;
        }
        if self.is_full() {
            let slots = vec![0; (self.slots.len() * 2).max(LEAST_SLOTS)];
            let old = std::mem::replace(&mut self.slots, slots);
            old.into_iter().filter(|w| *w != 0).for_each(|w| self.place(w));
        }
        self.place(word);
        self.len += 1;
    }

    fn place(&mut self, word: u64) {
        let mask = self.slots.len() - 1;
        let mut at = mix(word) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = word;
    }

    fn into_words(mut self) -> Vec<u64> {
        self.slots.retain(|w| *w != 0);
        if self.zero {
            self.slots.push(0);
        }
        self.slots
    }

    fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }
}

enum Values {
    Words(Kind, Words),
    Rows(Table),
}

/// The different values of an argument.
pub(crate) struct Different {
    ty: Oid,
    values: Option<Values>,
    /// What was added last, which comes again where the input is in order.
    last: Option<(Kind, u64)>,
    disk: Option<OnDisk>,
    /// How often these values have been parted.
    level: u32,
}

/// What went to disk.
enum OnDisk {
    Runs(Box<Sorter>),
    Parts(Box<Parts>),
}

struct Parts {
    home: Parted<1>,
    split: Split<1>,
}

impl Different {
    pub(super) fn new(ty: Oid) -> Different {
        Different { ty, values: None, last: None, disk: None, level: 0 }
    }

    /// What it has in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Different>()
            + match &self.values {
                None => 0,
                Some(Values::Words(_, words)) => words.bytes(),
                // A hash, and links between those of a chain.
                Some(Values::Rows(table)) => table.bytes + table.len() * 32,
            }
    }

    /// Adds a value which is not NULL; beyond so much memory to disk.
    pub(super) fn add(&mut self, value: &Datum, limit: usize, cancel: &CancelFlag) -> Result<()> {
        let word = word_of(value);
        if word.is_some() && word == self.last {
            return Ok(());
        }
        self.last = word;
        let values = self.values.get_or_insert_with(|| match word {
            Some((kind, _)) => Values::Words(kind, Words::default()),
            None => Values::Rows(Table::default()),
        });
        match (values, word) {
            (Values::Words(kind, words), Some((of, word))) if *kind == of => {
                if words.has(word) {
                    return Ok(());
                }
                if words.is_full() && words.bytes() * 2 > limit {
                    self.outgrow(limit, cancel)?;
                    let mut words = Words::default();
                    words.add(word);
                    self.values = Some(Values::Words(of, words));
                    return Ok(());
                }
                words.add(word);
            }
            (Values::Rows(table), _) => {
                let value = value.now()?;
                let (ty, value) = ([self.ty], std::slice::from_ref(value));
                let hash = Table::hash_of(&ty, value);
                if table.find(&ty, hash, value).is_some() {
                    return Ok(());
                }
                table.add(value, hash);
                if self.bytes() > limit {
                    self.outgrow(limit, cancel)?;
                }
            }
            // Values of one type are of one kind.
            _ => base::bail!(
                INTERNAL_ERROR,
                "values of an aggregate's argument are of several kinds"
            ),
        }
        Ok(())
    }

    /// It is too large for its memory: what there is of it goes to disk.
    fn outgrow(&mut self, limit: usize, cancel: &CancelFlag) -> Result<()> {
        if self.disk.is_none() && self.level <= DEEPEST {
            let mut home = Parted::default();
            let split = home.split(self.level, 0, limit)?;
            self.disk = Some(OnDisk::Parts(Box::new(Parts { home, split })));
        }
        self.spill(cancel)
    }

    /// Takes what is in memory to disk.
    pub(super) fn spill(&mut self, cancel: &CancelFlag) -> Result<()> {
        self.last = None;
        let Some(OnDisk::Parts(parts)) = &mut self.disk else { return self.spill_sorted(cancel) };
        let mut put = |n: usize, hash: u64, value: Datum| {
            if n.is_multiple_of(1 << 10) {
                cancel.check()?;
            }
            parts.split.put(0, hash, &[value])
        };
        match self.values.take() {
            None => {}
            Some(Values::Words(kind, words)) => {
                let mut words = words.into_words().into_iter().enumerate();
                words.try_for_each(|(n, word)| put(n, mix(word), value_of(kind, word)))?;
            }
            Some(Values::Rows(table)) => {
                let ty = [self.ty];
                let mut values = table.data.into_iter().enumerate();
                values.try_for_each(|(n, value)| {
                    put(n, Table::hash_of(&ty, std::slice::from_ref(&value)), value)
                })?;
            }
        }
        Ok(())
    }

    /// Takes what is in memory to disk, as a run of a sorter.
    fn spill_sorted(&mut self, cancel: &CancelFlag) -> Result<()> {
        let ty = self.ty;
        let key = KeyPlace { slot: 0, ty, descending: false, nulls_first: false };
        let new = || OnDisk::Runs(Box::new(Sorter::new(vec![key], 1, 0, None)));
        let OnDisk::Runs(runs) = self.disk.get_or_insert_with(new) else { return Ok(()) };
        match self.values.take() {
            None => {}
            Some(Values::Words(kind, words)) => {
                for part in words.into_words().chunks_mut(RUN_WORDS) {
                    cancel.check()?;
                    part.sort_unstable();
                    let values = part.iter().map(|word| value_of(kind, *word));
                    runs.add_run(values, cancel)?;
                }
            }
            Some(Values::Rows(table)) => {
                let mut order: Vec<u32> = (0..table.len() as u32).collect();
                let value = |i: u32| &table.row(i as usize)[0];
                let by_value = |a: &u32, b: &u32| compare(ty, value(*a), value(*b));
                base::sort::in_pieces(&mut order, by_value, || cancel.check())?;
                runs.add_run(order.into_iter().map(|i| value(i).clone()), cancel)?;
            }
        }
        Ok(())
    }
}

impl Call {
    /// Are the different values of its argument all that it needs, in whatever order, and NULLs nothing to it?
    pub(crate) fn takes_different(call: &AggregateCall) -> bool {
        let [arg] = &call.args[..] else { return false };
        if !call.distinct || !call.order_by.is_empty() {
            return false;
        }
        let ty = arg.ty().oid;
        let exact = matches!(ty, oids::INT2 | oids::INT4 | oids::INT8 | oids::NUMERIC);
        match types::facts::proc(Oid(call.function)).map_or("", |p| p.name) {
            "count" => true,
            "sum" | "avg" => exact,
            "min" | "max" => {
                matches!(Call::maker(call.function, false, Some(ty)), Ok(Maker::Extreme { .. }))
            }
            _ => false,
        }
    }

    /// Is its argument of a type whose values a word holds?
    pub(crate) fn is_word(call: &AggregateCall) -> bool {
        call.args.first().is_some_and(|arg| {
            matches!(
                arg.ty().oid,
                oids::BOOL
                    | oids::INT2
                    | oids::INT4
                    | oids::INT8
                    | oids::FLOAT4
                    | oids::FLOAT8
                    | oids::DATE
                    | oids::TIME
                    | oids::TIMESTAMP
                    | oids::TIMESTAMPTZ
                    | oids::OID
            )
        })
    }

    /// Adds a row's argument to the different ones.
    pub(super) fn add_different(
        &self,
        different: &mut Option<Box<Different>>,
        row: &[Datum],
        cx: &Cx<'_>,
    ) -> Result<()> {
        if !self.counts(row, &cx.eval)? {
            return Ok(());
        }
        let mut scratch = Datum::Null;
        let value = self.args[0].eval_ref(row, &cx.eval, &mut scratch)?;
        if value.is_null() {
            return Ok(());
        }
        let new = || Box::new(Different::new(self.arg_types[0]));
        different.get_or_insert_with(new).add(value, cx.x.hash_mem_bytes, cx.x.cancel)
    }

    /// The aggregate of the different values.
    pub(super) fn finish_different(
        &self,
        different: Option<Box<Different>>,
        cx: &Cx<'_>,
    ) -> Result<Datum> {
        let mut inner = self.start_plain();
        if let Some(different) = different {
            self.aggregate_different(*different, &mut inner, cx)?;
        }
        self.finish(&mut inner, cx)
    }

    /// Aggregates the different values, wherever they are.
    fn aggregate_different(
        &self,
        mut different: Different,
        inner: &mut State,
        cx: &Cx<'_>,
    ) -> Result<()> {
        if different.disk.is_some() {
            different.spill(cx.x.cancel)?;
        }
        match different.disk {
            None => {}
            Some(OnDisk::Runs(sorter)) => {
                let collected = Collected { sorter: *sorter, values: 0 };
                return self.aggregate_collected(collected, inner, cx);
            }
            Some(OnDisk::Parts(parts)) => {
                let Parts { mut home, split } = *parts;
                home.end(split)?;
                let mut row = Vec::new();
                while let Some(mut part) = home.next() {
                    let mut of_part =
                        Different { level: part.level, ..Different::new(different.ty) };
                    cx.poll()?;
                    while part.read(0, &mut row)? {
                        for value in row.drain(..) {
                            of_part.add(&value, cx.x.hash_mem_bytes, cx.x.cancel)?;
                        }
                    }
                    drop(part);
                    self.aggregate_different(of_part, inner, cx)?;
                }
                return Ok(());
            }
        }
        match (different.values, inner) {
            (None, _) => {}
            (Some(Values::Words(_, words)), State::Count(n)) => {
                *n += words.len as i64 + i64::from(words.zero);
            }
            (Some(Values::Rows(table)), State::Count(n)) => *n += table.len() as i64,
            (Some(Values::Words(kind, words)), inner) => {
                for word in words.into_words() {
                    self.add_values(inner, &[value_of(kind, word)], cx)?;
                }
            }
            (Some(Values::Rows(table)), inner) => {
                for value in &table.data {
                    self.add_values(inner, std::slice::from_ref(value), cx)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words order as their values do, and stand for nothing else.
    #[test]
    fn words_are_their_values_and_order_alike() {
        let floats = [f64::NEG_INFINITY, f64::MIN, -1.5, -1e-310, 0.0, 1e-310, 2.5, f64::MAX];
        let mut floats: Vec<Datum> = floats.into_iter().map(Datum::Float8).collect();
        floats.extend([Datum::Float8(f64::INFINITY), Datum::Float8(f64::NAN)]);
        let ints = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
        let small = [i32::MIN, -1, 0, 1, i32::MAX];
        let reals = [f32::NEG_INFINITY, f32::MIN, -1.5, -1e-40, 0.0, 1e-40, 2.5, f32::MAX];
        let mut reals: Vec<Datum> = reals.into_iter().map(Datum::Float4).collect();
        reals.extend([Datum::Float4(f32::INFINITY), Datum::Float4(f32::NAN)]);
        let lists: [(Oid, Vec<Datum>); 7] = [
            (oids::FLOAT4, reals),
            (oids::FLOAT8, floats),
            (oids::INT8, ints.map(Datum::Int8).into()),
            (oids::TIMESTAMP, ints.map(Datum::Timestamp).into()),
            (oids::INT4, small.map(Datum::Int4).into()),
            (oids::DATE, small.map(Datum::Date).into()),
            (oids::BOOL, [false, true].map(Datum::Bool).into()),
        ];
        for (ty, list) in lists {
            let words: Vec<(Kind, u64)> = list.iter().filter_map(word_of).collect();
            assert_eq!(words.len(), list.len());
            assert!(words.windows(2).all(|w| w[0].1 < w[1].1), "{list:?}");
            for (value, (kind, word)) in list.iter().zip(words) {
                assert!(compare(ty, value, &value_of(kind, word)).is_eq(), "{value:?}");
            }
        }
        assert!(word_of(&Datum::Float8(-0.0)) == word_of(&Datum::Float8(0.0)));
    }

    /// All values of one on disk, those of a part side by side; `level`: the deepest that any was parted at.
    fn values_of(mut different: Different, level: &mut u32) -> Vec<Datum> {
        const LIMIT: usize = 16 << 10;
        let cancel = CancelFlag::default();
        *level = different.level.max(*level);
        if different.disk.is_some() {
            different.spill(&cancel).unwrap();
        }
        let mut seen: Vec<Datum> = Vec::new();
        match different.disk {
            Some(OnDisk::Runs(mut runs)) => {
                runs.finish(&cancel).unwrap();
                let mut out = crate::exec::batch::Batch::new();
                loop {
                    out.reset(1);
                    runs.read(&mut out, 1, 100, &cancel).unwrap();
                    if out.is_empty() {
                        break;
                    }
                    seen.extend(out.rows().map(|row| row[0].clone()));
                }
                let ty = different.ty;
                assert!(seen.windows(2).all(|w| compare(ty, &w[0], &w[1]).is_le()));
                seen.dedup_by(|a, b| compare(ty, a, b).is_eq());
            }
            Some(OnDisk::Parts(parts)) => {
                let Parts { mut home, split } = *parts;
                home.end(split).unwrap();
                while let Some(mut part) = home.next() {
                    let mut inner = Different { level: part.level, ..Different::new(different.ty) };
                    let mut row = Vec::new();
                    while part.read(0, &mut row).unwrap() {
                        inner.add(&row.remove(0), LIMIT, &cancel).unwrap();
                        assert!(inner.bytes() <= LIMIT + size_of::<Different>());
                    }
                    seen.extend(values_of(inner, level));
                }
            }
            None => match different.values {
                None => {}
                Some(Values::Words(kind, words)) => {
                    seen.extend(words.into_words().into_iter().map(|w| value_of(kind, w)));
                }
                Some(Values::Rows(table)) => seen.extend(table.data),
            },
        }
        seen
    }

    /// However little memory there is, each value comes out once, whichever way they went to disk; parts that are too large are parted again.
    #[test]
    fn what_goes_to_disk_is_all_there() {
        let cancel = CancelFlag::default();
        let text = |n: i64| Datum::Text(format!("value {n}").into());
        type Made<'a> = &'a dyn Fn(i64) -> Datum;
        let kinds: [(Oid, Made<'_>); 2] = [(oids::INT8, &Datum::Int8), (oids::TEXT, &text)];
        for ((ty, make), (of, sorted)) in kinds
            .into_iter()
            .flat_map(|k| [(k, (3001, false)), (k, (3001, true)), (k, (90_001, false))])
        {
            let mut different = Different::new(ty);
            for n in 0..of * 2 {
                let value = make(n * 7919 % of - 5);
                different.add(&value, 16 << 10, &cancel).unwrap();
                assert!(different.bytes() <= (16 << 10) + size_of::<Different>());
                if sorted && n == 100 {
                    different.spill(&cancel).unwrap();
                }
            }
            assert_eq!(matches!(different.disk, Some(OnDisk::Runs(_))), sorted);
            let mut level = 0;
            let mut seen = values_of(different, &mut level);
            assert!(of < 90_000 || level > 1, "{level}");
            seen.sort_by(|a, b| compare(ty, a, b));
            assert_eq!(seen.len(), of as usize);
            assert!(seen.windows(2).all(|w| compare(ty, &w[0], &w[1]).is_lt()));
        }
    }
}
