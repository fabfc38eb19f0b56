//! Hash joins: the right side in a hash table, in parts on disk if it is too big.

use super::batch::{BATCH_ROWS, Batch, row_bytes};
use super::join::{emit, emit_pair};
use super::store::RowFile;
use super::{Cx, Node};
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
    #[inline]
    pub(crate) fn first(&self, h: u64) -> u32 {
        if self.heads.is_empty() { NONE } else { self.heads[h as usize & (self.heads.len() - 1)] }
    }
    #[inline]
    fn after(&self, i: u32) -> u32 {
        self.next[i as usize]
    }
}

/// So many parts are made at once.
const PARTS: usize = 32;
/// Parts that are too large are parted again so often.
const DEEPEST: u32 = 4;

/// Rows of both sides whose hashes put them together, on disk.
struct Part {
    left: RowFile,
    right: RowFile,
    /// How often its rows have been parted before.
    depth: u32,
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
}

#[derive(Default)]
pub(crate) struct HashState {
    built: bool,
    table: Table,
    /// Parts on disk; taken from the end.
    parts: Vec<Part>,
    spilled: bool,
    part_left: Option<RowFile>,
    left: Batch,
    at: usize,
    chain: u32,
    hash: u64,
    open: bool,
    matched: bool,
    /// How many rows of the table a right semi join has given.
    met: usize,
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

    fn build(&mut self, cx: &Cx<'_>) -> Result<()> {
        let keep = self.keeps_right();
        let limit = cx.x.work_mem_bytes.saturating_mul(2);
        let s = &mut self.state;
        s.table.clear();
        s.table.width = self.right_width;
        let mut batch = Batch::new();
        let mut files: Vec<RowFile> = Vec::new();
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
                if files.is_empty() {
                    s.table.take(row, h);
                } else {
                    files[part_of(h, 0)].write(row)?;
                }
            }
            if files.is_empty() && s.table.bytes > limit {
                for _ in 0..PARTS {
                    files.push(RowFile::new(self.right_width)?);
                }
                for i in 0..s.table.len() {
                    files[part_of(s.table.hashes[i], 0)].write(s.table.row(i))?;
                }
                s.table.clear();
            }
        }
        if files.is_empty() {
            s.table.index();
            s.built = true;
            return Ok(());
        }
        // The left side goes to the same parts.
        let mut lefts: Vec<RowFile> =
            (0..PARTS).map(|_| RowFile::new(self.left_width)).collect::<Result<_>>()?;
        loop {
            cx.poll()?;
            self.left.next(cx, &mut batch, BATCH_ROWS)?;
            if batch.is_empty() {
                break;
            }
            for row in batch.rows() {
                let h = HashJoinNode::key_hash(&self.keys, true, row, cx)?.unwrap_or(0);
                lefts[part_of(h, 0)].write(row)?;
            }
        }
        let s = &mut self.state;
        s.spilled = true;
        for (mut left, mut right) in lefts.into_iter().zip(files) {
            left.rest()?;
            right.rest()?;
            s.parts.push(Part { left, right, depth: 0 });
        }
        s.built = true;
        self.next_part(cx).map(|_| ())
    }

    /// Loads the next part from disk; false if there is none.
    fn next_part(&mut self, cx: &Cx<'_>) -> Result<bool> {
        let limit = cx.x.work_mem_bytes.saturating_mul(2);
        loop {
            let Some(mut part) = self.state.parts.pop() else { return Ok(false) };
            part.left.rewind()?;
            part.right.rewind()?;
            self.state.table.clear();
            self.state.met = 0;
            self.state.table.width = self.right_width;
            if self.load(&mut part.right, part.depth < DEEPEST, limit, cx)? {
                self.state.table.index();
                self.state.part_left = Some(part.left);
                return Ok(true);
            }
            self.part_again(part, cx)?;
        }
    }

    /// Reads a part's right rows into the table; false if they are too many, and can be parted further.
    fn load(
        &mut self,
        right: &mut RowFile,
        further: bool,
        limit: usize,
        cx: &Cx<'_>,
    ) -> Result<bool> {
        let keep = self.keeps_right();
        let table = &mut self.state.table;
        let mut row = Vec::new();
        let mut several = false;
        loop {
            row.clear();
            if !right.read(&mut row)? {
                return Ok(true);
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
            if table.bytes > limit && further && several {
                return Ok(false);
            }
            if table.bytes > cx.x.work_mem_bytes.saturating_mul(64).max(256 << 20) {
                base::bail!(OUT_OF_MEMORY, "out of memory");
            }
        }
    }

    /// Makes parts of a part that is too large.
    fn part_again(&mut self, mut part: Part, cx: &Cx<'_>) -> Result<()> {
        let depth = part.depth + 1;
        self.state.table.clear();
        part.right.rewind()?;
        let right = self.parted(&mut part.right, false, depth, cx)?;
        let left = self.parted(&mut part.left, true, depth, cx)?;
        for (mut left, mut right) in left.into_iter().zip(right) {
            left.rest()?;
            right.rest()?;
            self.state.parts.push(Part { left, right, depth });
        }
        Ok(())
    }

    /// The rows of one side, in parts.
    fn parted(
        &self,
        from: &mut RowFile,
        left: bool,
        depth: u32,
        cx: &Cx<'_>,
    ) -> Result<Vec<RowFile>> {
        let width = if left { self.left_width } else { self.right_width };
        let mut files = (0..PARTS).map(|_| RowFile::new(width)).collect::<Result<Vec<_>>>()?;
        let mut row = Vec::new();
        loop {
            row.clear();
            if !from.read(&mut row)? {
                return Ok(files);
            }
            if from.left().is_multiple_of(BATCH_ROWS as u64) {
                cx.poll()?;
            }
            let h = HashJoinNode::key_hash(&self.keys, left, &row, cx)?.unwrap_or(0);
            files[part_of(h, depth)].write(&row)?;
        }
    }

    fn fill_left(&mut self, cx: &Cx<'_>, max: usize) -> Result<bool> {
        cx.poll()?;
        let s = &mut self.state;
        s.at = 0;
        // Each row is given once: there is none left to find a match for.
        if self.kind == JoinKind::RightSemi && s.met == s.table.len() {
            s.left.reset(self.left_width);
            return Ok(false);
        }
        if !s.spilled {
            // An empty table decides some joins without looking at the left side.
            if s.table.len() == 0
                && matches!(
                    self.kind,
                    JoinKind::Inner | JoinKind::Semi | JoinKind::Right | JoinKind::RightAnti
                )
            {
                return Ok(false);
            }
            self.left.next(cx, &mut s.left, max)?;
            return Ok(!s.left.is_empty());
        }
        s.left.reset(self.left_width);
        let Some(f) = &mut s.part_left else { return Ok(false) };
        let mut row = Vec::new();
        while s.left.len() < BATCH_ROWS {
            row.clear();
            if !f.read(&mut row)? {
                break;
            }
            s.left.push(&row);
        }
        Ok(!s.left.is_empty())
    }
}

/// The part of a hash; what has been in one part is parted by other bits.
fn part_of(h: u64, depth: u32) -> usize {
    mix(h.wrapping_add(u64::from(depth))) as usize % PARTS
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
                if !self.next_part(cx)? {
                    self.state.ended = true;
                }
                continue;
            }
            if !self.state.open {
                if self.state.at >= self.state.left.len() && !self.fill_left(cx, max)? {
                    if self.keeps_right() {
                        self.state.unmatched = Some(0);
                    } else if !self.next_part(cx)? {
                        self.state.ended = true;
                    }
                    continue;
                }
                let s = &mut self.state;
                let left = s.left.row(s.at);
                s.matched = false;
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
                s.met += 1;
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
            let left = s.left.row(s.at);
            s.at += 1;
            let lone = match self.kind {
                JoinKind::Semi => s.matched,
                JoinKind::Anti | JoinKind::Left | JoinKind::Full => !s.matched,
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
