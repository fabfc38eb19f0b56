//! Hash joins: the right side in a hash table, both sides in parts on disk if it is too big.
//!
//! # Invariants
//! - The table has no more rows than go into the memory for hash tables, and one more.
//! - A part of which the right rows are more than that is split again. Where that is of no use, for rows of one key, its right rows are taken
//!   piece by piece, and all of its left rows looked at for each piece; which of those have met a right row is kept in a bit for each.
//!
//! # Differs from PostgreSQL
//! There rows of one key are all held in memory, however many they are.

use super::batch::{BATCH_ROWS, Batch, row_bytes};
use super::join::{emit, emit_pair};
use super::parts::{DEEPEST, Part, Parted, Split};
use super::{Cx, HashTold, Node, Told};
use crate::query::JoinKind;
use base::{Oid, Result};
use expr::code::Code;
use expr::ops::{compare, compare_key, hash, mix};
use types::Datum;
use types::datetime::beside;

/// One equality.
pub(crate) struct HashKey {
    pub left: Code,
    pub right: Code,
    pub ty: Oid,
    /// The types of both sides, if they are different kinds of days and moments.
    pub mixed: Option<(Oid, Oid)>,
    pub nulls_match: bool,
}

impl HashKey {
    /// Its value in a row of one side, to be compared with those of the other one; `scratch` has room for it.
    #[inline]
    fn value<'v>(
        &'v self,
        left: bool,
        row: &'v [Datum],
        cx: &'v Cx<'_>,
        scratch: &'v mut Datum,
    ) -> Result<&'v Datum> {
        let code = if left { &self.left } else { &self.right };
        let Some((l, r)) = self.mixed else { return code.eval_ref(row, &cx.eval, scratch) };
        *scratch = beside(code.eval(row, &cx.eval)?, if left { r } else { l }, cx.x.env);
        Ok(scratch)
    }
}

const NONE: u32 = u32::MAX;

/// A chained hash table of rows.
#[derive(Default)]
pub(crate) struct Table {
    pub width: usize,
    pub data: Vec<Datum>,
    pub hashes: Vec<u64>,
    next: Vec<u32>,
    heads: Vec<u32>,
    pub matched: Vec<bool>,
    pub bytes: usize,
}

/// So much memory is kept for another execution.
const KEPT_BYTES: usize = 16 << 10;

impl Table {
    /// Empties it; little memory is kept.
    pub(crate) fn let_go(&mut self) {
        if self.data.capacity() * size_of::<Datum>() > KEPT_BYTES {
            *self = Table { width: self.width, ..Table::default() };
        }
        self.clear();
    }
    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.hashes.clear();
        self.next.clear();
        self.heads.clear();
        self.matched.clear();
        self.bytes = 0;
    }
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }
    pub(crate) fn row(&self, i: usize) -> &[Datum] {
        &self.data[i * self.width..(i + 1) * self.width]
    }
    pub(crate) fn push(&mut self, row: &[Datum], h: u64) {
        self.bytes += row_bytes(row);
        self.data.extend_from_slice(row);
        self.hashes.push(h);
        self.matched.push(false);
    }
    /// As [`Table::push`]; the row's values are moved out of it.
    fn take(&mut self, row: &mut [Datum], h: u64) {
        self.bytes += row_bytes(row);
        self.data.extend(row.iter_mut().map(std::mem::take));
        self.hashes.push(h);
        self.matched.push(false);
    }
    /// Adds a row to a table in which rows are looked up meanwhile.
    pub(crate) fn add(&mut self, row: &[Datum], h: u64) {
        self.width = row.len();
        self.push(row, h);
        if self.len() * 2 > self.heads.len() {
            // Room for as many again, or each would make it anew.
            self.index();
            return;
        }
        let bucket = h as usize & (self.heads.len() - 1);
        self.next.push(self.heads[bucket]);
        self.heads[bucket] = (self.len() - 1) as u32;
    }
    /// A row whose values of these types are not distinct from the given ones.
    pub(crate) fn find(&self, types: &[Oid], h: u64, row: &[Datum]) -> Option<usize> {
        let mut at = self.first(h);
        while at != NONE {
            let i = at as usize;
            let mut pairs = types.iter().zip(self.row(i).iter().zip(row));
            if self.hashes[i] == h
                && pairs.all(|(ty, (a, b))| compare_key(*ty, a, b, false, false).is_eq())
            {
                return Some(i);
            }
            at = self.after(at);
        }
        None
    }
    /// The hash of values of these types.
    pub(crate) fn hash_of(types: &[Oid], row: &[Datum]) -> u64 {
        types.iter().zip(row).fold(0, |h, (ty, d)| mix(h ^ hash(*ty, d)))
    }
    pub(crate) fn index(&mut self) {
        let n = (self.len() * 2).next_power_of_two().max(16);
        self.heads = vec![NONE; n];
        self.next = vec![NONE; self.len()];
        for i in (0..self.len()).rev() {
            let b = self.hashes[i] as usize & (n - 1);
            self.next[i] = self.heads[b];
            self.heads[b] = i as u32;
        }
    }
    /// Into how many chains rows are hung.
    fn buckets(&self) -> usize {
        self.heads.len()
    }
    #[inline]
    pub(crate) fn first(&self, h: u64) -> u32 {
        if self.heads.is_empty() { NONE } else { self.heads[h as usize & (self.heads.len() - 1)] }
    }
    #[inline]
    fn after(&self, i: u32) -> u32 {
        self.next[i as usize]
    }
}

/// The sides of a part.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Which left rows of a part, whose right rows are taken piece by piece, have met one of them.
struct Met {
    bits: Vec<u64>,
    /// How many have not.
    lone: u64,
}

impl Met {
    fn none_of(rows: u64) -> Met {
        Met { bits: vec![0; rows.div_ceil(64) as usize], lone: rows }
    }
    fn has(&self, row: u64) -> bool {
        self.bits.get((row / 64) as usize).is_some_and(|bits| bits >> (row % 64) & 1 == 1)
    }
    fn set(&mut self, row: u64) {
        if !self.has(row)
            && let Some(bits) = self.bits.get_mut((row / 64) as usize)
        {
            *bits |= 1 << (row % 64);
            self.lone -= 1;
        }
    }
}

/// What of a part's right rows is in the table.
#[derive(PartialEq, Eq)]
enum Loaded {
    All,
    /// There are more of them.
    Piece,
    /// Too many, which can be parted.
    TooMany,
}

/// A hash join.
pub(crate) struct HashJoinNode {
    pub kind: JoinKind,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub keys: Vec<HashKey>,
    pub on: Option<Code>,
    pub filter: Option<Code>,
    pub output: Vec<usize>,
    pub left_width: usize,
    pub right_width: usize,
    pub state: HashState,
    pub told: HashTold,
}

#[derive(Default)]
pub(crate) struct HashState {
    built: bool,
    table: Table,
    /// Parts on disk, and the one in hand.
    parted: Parted<2>,
    spilled: bool,
    part: Option<Part<2>>,
    /// The right rows of the part in hand are taken piece by piece.
    met: Option<Met>,
    /// There are more pieces.
    more: bool,
    /// Parts that were split again.
    again: u64,
    left: Batch,
    /// The number of the first row in `left` among those of the part.
    first: u64,
    at: usize,
    chain: u32,
    hash: u64,
    open: bool,
    matched: bool,
    /// How many rows of the table a right semi join has given.
    given: usize,
    /// Unmatched right rows are being handed out from here.
    unmatched: Option<usize>,
    ended: bool,
    row: Vec<Datum>,
    /// Pairs of rows looked at, so that a cancel is met though few of many are given.
    pairs: usize,
}

impl HashState {
    /// As before the first row, the table's memory kept.
    fn reset(&mut self) {
        let mut table = std::mem::take(&mut self.table);
        table.clear();
        *self = HashState { table, ..HashState::default() };
    }
}

impl HashJoinNode {
    /// The hash of a row's keys; None if a NULL makes it match nothing.
    fn key_hash(keys: &[HashKey], left: bool, row: &[Datum], cx: &Cx<'_>) -> Result<Option<u64>> {
        let mut h = 0u64;
        for k in keys {
            let mut scratch = Datum::Null;
            let v = k.value(left, row, cx, &mut scratch)?;
            if v.is_null() && !k.nulls_match {
                return Ok(None);
            }
            h = mix(h ^ hash(k.ty, v));
        }
        Ok(Some(h))
    }

    fn same_keys(keys: &[HashKey], left: &[Datum], right: &[Datum], cx: &Cx<'_>) -> Result<bool> {
        for k in keys {
            let (mut x, mut y) = (Datum::Null, Datum::Null);
            let a = k.value(true, left, cx, &mut x)?;
            let b = k.value(false, right, cx, &mut y)?;
            let same = match (a.is_null(), b.is_null()) {
                (true, true) => k.nulls_match,
                (false, false) => compare(k.ty, a, b).is_eq(),
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keeps_right(&self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::RightAnti | JoinKind::Full)
    }

    /// Are left rows without a match of no interest?
    fn wants_pairs(&self) -> bool {
        use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
        matches!(self.kind, Inner | Semi | Right | RightAnti | RightSemi)
    }

    fn build(&mut self, cx: &Cx<'_>) -> Result<()> {
        let keep = self.keeps_right();
        let limit = cx.x.hash_mem_bytes;
        let s = &mut self.state;
        s.table.clear();
        s.table.width = self.right_width;
        let mut batch = Batch::new();
        let mut split: Option<Split<2>> = None;
        loop {
            cx.poll()?;
            self.right.next(cx, &mut batch, BATCH_ROWS)?;
            if batch.is_empty() {
                break;
            }
            for i in 0..batch.len() {
                let row = batch.row_mut(i);
                let h = match HashJoinNode::key_hash(&self.keys, false, row, cx)? {
                    Some(h) => h,
                    // Kept for the rows without a match; its hash never leads to a match.
                    None if keep => 0,
                    None => continue,
                };
                if let Some(split) = &mut split {
                    split.put(RIGHT, h, row)?;
                    continue;
                }
                s.table.take(row, h);
                if s.table.bytes > limit {
                    let split = split.insert(s.parted.split(0, 0, limit)?);
                    for i in 0..s.table.len() {
                        split.put(RIGHT, s.table.hashes[i], s.table.row(i))?;
                    }
                    self.told.peak = self.told.peak.max(s.table.bytes);
                    s.table.clear();
                }
            }
        }
        let Some(mut split) = split else {
            s.table.index();
            s.built = true;
            self.tell();
            return Ok(());
        };
        split.rest(RIGHT)?;
        // The left side goes to the same parts.
        loop {
            cx.poll()?;
            self.left.next(cx, &mut batch, BATCH_ROWS)?;
            if batch.is_empty() {
                break;
            }
            for row in batch.rows() {
                self.put_left(&mut split, row, cx)?;
            }
        }
        let s = &mut self.state;
        s.parted.end(split)?;
        s.spilled = true;
        s.built = true;
        self.state.ended = !self.next_table(cx)?;
        Ok(())
    }

    /// Puts a left row to the part of its key, if it may come to something there.
    fn put_left(&self, split: &mut Split<2>, row: &[Datum], cx: &Cx<'_>) -> Result<()> {
        let hash = HashJoinNode::key_hash(&self.keys, true, row, cx)?;
        if self.wants_pairs() && !hash.is_some_and(|h| split.has(RIGHT, h)) {
            return Ok(());
        }
        split.put(LEFT, hash.unwrap_or(0), row)
    }

    /// Loads the next rows from disk, the left rows to be looked at anew; false if there are none.
    fn next_table(&mut self, cx: &Cx<'_>) -> Result<bool> {
        let s = &mut self.state;
        if !s.spilled {
            return Ok(false);
        }
        let one_is_enough = matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        if s.more && one_is_enough && s.met.as_ref().is_some_and(|met| met.lone == 0) {
            s.more = false;
        }
        if s.more
            && let Some(mut part) = s.part.take()
        {
            part.rewind(LEFT);
            s.first = 0;
            s.left.reset(self.left_width);
            self.load(part, false, cx)?;
            return Ok(true);
        }
        loop {
            let s = &mut self.state;
            (s.part, s.met, s.more, s.first) = (None, None, false, 0);
            s.left.reset(self.left_width);
            let Some(part) = s.parted.next() else { return Ok(false) };
            // What one side alone has comes to nothing, unless it is asked for.
            if part.rows(RIGHT) == 0 && self.wants_pairs()
                || part.rows(LEFT) == 0 && !self.keeps_right()
            {
                continue;
            }
            let further = part.level < DEEPEST && !part.is_lump(RIGHT);
            if self.load(part, further, cx)? {
                return Ok(true);
            }
        }
    }

    /// Reads a part's right rows into the table, as many as there is room for. False: they are too many, and the part was split.
    fn load(&mut self, mut part: Part<2>, further: bool, cx: &Cx<'_>) -> Result<bool> {
        self.state.table.clear();
        self.state.given = 0;
        self.state.table.width = self.right_width;
        match self.fill_table(&mut part, further, cx)? {
            Loaded::TooMany => {
                self.state.table.clear();
                self.split_again(part, cx)?;
                Ok(false)
            }
            loaded => {
                let s = &mut self.state;
                s.more = loaded == Loaded::Piece;
                if s.more && s.met.is_none() {
                    s.met = Some(Met::none_of(part.rows(LEFT)));
                }
                s.table.index();
                s.part = Some(part);
                self.tell();
                Ok(true)
            }
        }
    }

    fn fill_table(&mut self, part: &mut Part<2>, further: bool, cx: &Cx<'_>) -> Result<Loaded> {
        let keep = self.keeps_right();
        let limit = cx.x.hash_mem_bytes;
        let table = &mut self.state.table;
        let mut row = Vec::new();
        let mut several = false;
        loop {
            row.clear();
            if !part.read(RIGHT, &mut row)? {
                return Ok(Loaded::All);
            }
            if table.len().is_multiple_of(BATCH_ROWS) {
                cx.poll()?;
            }
            match HashJoinNode::key_hash(&self.keys, false, &row, cx)? {
                Some(h) => {
                    several |= table.hashes.first().is_some_and(|first| *first != h);
                    table.take(&mut row, h);
                }
                None if keep => table.take(&mut row, 0),
                None => {}
            }
            if table.bytes > limit && part.left(RIGHT) > 0 {
                return Ok(if further && several { Loaded::TooMany } else { Loaded::Piece });
            }
        }
    }

    /// Makes parts of a part that is too large.
    fn split_again(&mut self, mut part: Part<2>, cx: &Cx<'_>) -> Result<()> {
        let mut split = self.state.parted.split(part.level, 0, cx.x.hash_mem_bytes)?;
        let mut row = Vec::new();
        for side in [RIGHT, LEFT] {
            part.rewind(side);
            loop {
                row.clear();
                if !part.read(side, &mut row)? {
                    break;
                }
                if part.left(side).is_multiple_of(BATCH_ROWS as u64) {
                    cx.poll()?;
                }
                if side == LEFT {
                    self.put_left(&mut split, &row, cx)?;
                    continue;
                }
                let h = HashJoinNode::key_hash(&self.keys, false, &row, cx)?.unwrap_or(0);
                split.put(RIGHT, h, &row)?;
            }
            split.rest(side)?;
        }
        self.state.again += 1;
        self.state.parted.end(split)
    }

    /// Notes what the table has come to.
    fn tell(&mut self) {
        let (s, told) = (&self.state, &mut self.told);
        let (parts, disk) = s.parted.made();
        told.buckets = told.buckets.max(s.table.buckets());
        told.peak = told.peak.max(s.table.bytes);
        told.batches = told.batches.max((parts - s.again).max(1));
        told.disk = told.disk.max(disk);
    }

    fn fill_left(&mut self, cx: &Cx<'_>, max: usize) -> Result<bool> {
        cx.poll()?;
        let wants_pairs = self.wants_pairs();
        let s = &mut self.state;
        s.at = 0;
        // Each row is given once: there is none left to find a match for.
        if self.kind == JoinKind::RightSemi && s.given == s.table.len() {
            s.left.reset(self.left_width);
            return Ok(false);
        }
        if !s.spilled {
            // An empty table decides some joins without looking at the left side.
            if s.table.len() == 0 && wants_pairs {
                return Ok(false);
            }
            self.left.next(cx, &mut s.left, max)?;
            return Ok(!s.left.is_empty());
        }
        s.first += s.left.len() as u64;
        s.left.reset(self.left_width);
        let Some(part) = &mut s.part else { return Ok(false) };
        part.read_batch(LEFT, &mut s.left, BATCH_ROWS)?;
        Ok(!s.left.is_empty())
    }
}

impl Node for HashJoinNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.output.len());
        if !self.state.built {
            self.build(cx)?;
        }
        loop {
            if self.state.ended {
                return Ok(());
            }
            if let Some(mut i) = self.state.unmatched {
                let s = &mut self.state;
                while i < s.table.len() && out.len() < max {
                    if !s.table.matched[i] {
                        s.row.clear();
                        s.row.resize(self.left_width, Datum::Null);
                        s.row.extend_from_slice(s.table.row(i));
                        let pass = match &self.filter {
                            Some(f) => f.is_true(&s.row, &cx.eval)?,
                            None => true,
                        };
                        if pass {
                            emit(&s.row, &self.output, out);
                        }
                    }
                    i += 1;
                }
                s.unmatched = Some(i);
                if out.len() >= max {
                    return Ok(());
                }
                s.unmatched = None;
                self.state.ended = !self.next_table(cx)?;
                continue;
            }
            if !self.state.open {
                if self.state.at >= self.state.left.len() && !self.fill_left(cx, max)? {
                    if self.keeps_right() {
                        self.state.unmatched = Some(0);
                    } else {
                        self.state.ended = !self.next_table(cx)?;
                    }
                    continue;
                }
                let s = &mut self.state;
                s.matched = s.met.as_ref().is_some_and(|met| met.has(s.first + s.at as u64));
                if s.matched && matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    s.at += 1;
                    continue;
                }
                let left = s.left.row(s.at);
                s.chain = match HashJoinNode::key_hash(&self.keys, true, left, cx)? {
                    Some(h) => {
                        s.hash = h;
                        s.table.first(h)
                    }
                    None => NONE,
                };
                s.row.clear();
                s.open = true;
            }
            let s = &mut self.state;
            let width = self.left_width;
            // Where nothing is asked of pairs, none are made.
            let asked = self.on.is_some() || self.filter.is_some();
            while s.chain != NONE {
                s.pairs = s.pairs.wrapping_add(1);
                if s.pairs.is_multiple_of(BATCH_ROWS) {
                    cx.poll()?;
                }
                let i = s.chain as usize;
                s.chain = s.table.after(s.chain);
                let given = self.kind == JoinKind::RightSemi && s.table.matched[i];
                if given
                    || s.table.hashes[i] != s.hash
                    || !HashJoinNode::same_keys(&self.keys, s.left.row(s.at), s.table.row(i), cx)?
                {
                    continue;
                }
                if asked {
                    if s.row.is_empty() {
                        s.row.extend_from_slice(s.left.row(s.at));
                    }
                    s.row.truncate(width);
                    s.row.extend_from_slice(s.table.row(i));
                }
                if let Some(on) = &self.on
                    && !on.is_true(&s.row, &cx.eval)?
                {
                    continue;
                }
                s.matched = true;
                s.table.matched[i] = true;
                s.given += 1;
                if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    s.chain = NONE;
                    break;
                }
                if self.kind == JoinKind::RightAnti {
                    continue;
                }
                let pass = match &self.filter {
                    Some(f) => f.is_true(&s.row, &cx.eval)?,
                    None => true,
                };
                if pass {
                    emit_pair(s.left.row(s.at), s.table.row(i), &self.output, out);
                    if out.len() >= max {
                        return Ok(());
                    }
                }
            }
            s.open = false;
            if s.matched
                && let Some(met) = &mut s.met
            {
                met.set(s.first + s.at as u64);
            }
            let left = s.left.row(s.at);
            s.at += 1;
            let lone = match self.kind {
                JoinKind::Semi => s.matched,
                JoinKind::Anti | JoinKind::Left | JoinKind::Full => !s.matched && !s.more,
                _ => false,
            };
            if lone {
                s.row.clear();
                s.row.extend_from_slice(left);
                s.row.resize(width + self.right_width, Datum::Null);
                let pass = match &self.filter {
                    Some(f) => f.is_true(&s.row, &cx.eval)?,
                    None => true,
                };
                if pass {
                    emit(&s.row, &self.output, out);
                }
            }
            if out.len() >= max {
                return Ok(());
            }
        }
    }
    fn told(&self) -> Told {
        Told { hash: Some(self.told), ..Told::default() }
    }
    fn let_go(&mut self) {
        self.state.reset();
        self.state.table.let_go();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.state.reset();
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
