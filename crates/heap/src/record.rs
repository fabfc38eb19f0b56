//! Heap's WAL records: their kinds and how their data is laid out.
//!
//! # WAL and replay
//! `docs/FORMAT.md`, "Heap records", draws every one. Blocks are numbered by role: [`HEAP`] is the page
//! changed (for an update the one with the new version), [`OLD`] the page of an update's old version if it is
//! another one, [`MAP`] and [`OLD_MAP`] the visibility-map pages whose bits the change clears or sets.

use crate::apply::{Body, Rebase, RebaseTo, TupleParts};
use crate::kept::{self, Told};
use crate::prune::{Freeze, Link, PrunePlan};
use base::{BlockNumber, OffsetNumber, Result, Tid, Xid};
use page::tuple::{HEADER_MIN, MAX_TUPLES_PER_PAGE};

pub(crate) const INSERT: u8 = 0;
pub(crate) const MULTI_INSERT: u8 = 1;
pub(crate) const DELETE: u8 = 2;
pub(crate) const UPDATE: u8 = 3;
/// As [`PRUNE`], its head of fixed length; read, and written no more.
pub(crate) const PRUNE_FIXED: u8 = 4;
pub(crate) const SHIFT_BASE: u8 = 5;
pub(crate) const KILL: u8 = 6;
pub(crate) const IN_PLACE: u8 = 7;
pub(crate) const MAP_IMAGE: u8 = 8;
pub(crate) const PRUNE: u8 = 9;

pub(crate) const HEAP: u8 = 0;
pub(crate) const OLD: u8 = 1;
pub(crate) const MAP: u8 = 2;
pub(crate) const OLD_MAP: u8 = 3;

/// The page is initialised by this record; a u64 xid base follows the fixed data.
pub(crate) const F_INIT: u8 = 0x01;
/// The page's all-visible flag and map bits are cleared.
pub(crate) const F_CLEAR: u8 = 0x02;
/// The same for the old version's page.
pub(crate) const F_CLEAR_OLD: u8 = 0x04;
/// Update: the new version is heap-only on the same page.
pub(crate) const F_HOT: u8 = 0x08;
/// Update: key columns changed.
pub(crate) const F_KEYS: u8 = 0x10;
/// Update: a u16 of bytes that the new body shares with the old one's beginning.
pub(crate) const F_PREFIX: u8 = 0x20;
/// Update: a u16 of bytes that the new body shares with the old one's end.
pub(crate) const F_SUFFIX: u8 = 0x40;
/// Multi-insert: the tuples are frozen, the page all-visible and all-frozen.
pub(crate) const F_FROZEN: u8 = 0x80;

/// The name of a record kind, for `pg_waldump`-like output.
pub fn name(info: u8) -> &'static str {
    match info {
        INSERT => "INSERT",
        MULTI_INSERT => "MULTI_INSERT",
        DELETE => "DELETE",
        UPDATE => "UPDATE",
        PRUNE | PRUNE_FIXED => "PRUNE",
        SHIFT_BASE => "SHIFT_BASE",
        KILL => "KILL",
        IN_PLACE => "IN_PLACE",
        MAP_IMAGE => "MAP_IMAGE",
        _ => "UNKNOWN",
    }
}

const FLAG_NAMES: [(u8, &str); 8] = [
    (F_INIT, "INIT"),
    (F_CLEAR, "CLEAR"),
    (F_CLEAR_OLD, "CLEAR_OLD"),
    (F_HOT, "HOT"),
    (F_KEYS, "KEYS"),
    (F_PREFIX, "PREFIX"),
    (F_SUFFIX, "SUFFIX"),
    (F_FROZEN, "FROZEN"),
];

/// A record as one line of text.
pub fn describe(rec: &wal::Record) -> String {
    use std::fmt::Write;
    let mut out = String::from(name(rec.info));
    if rec.xid.is_valid() {
        let _ = write!(out, " xid {}", rec.xid);
    }
    if describe_data(rec, &mut out).is_err() {
        out += " (damaged)";
    }
    for b in &rec.blocks {
        let fork = b.tag.fork.suffix();
        let _ = write!(out, " | {}: {}{fork} block {}", b.id, b.tag.relation, b.tag.block);
        if b.will_init {
            out += " will init";
        }
        if b.image.is_some() {
            out += " image";
        }
        if !b.data.is_empty() {
            let _ = write!(out, ", data {}", b.data.len());
        }
    }
    out
}

fn describe_data(rec: &wal::Record, out: &mut String) -> Result<()> {
    use std::fmt::Write;
    let mut d = Decoder(&rec.data);
    let flags = |f: u8, out: &mut String| {
        for (i, (_, name)) in FLAG_NAMES.iter().filter(|(bit, _)| f & bit != 0).enumerate() {
            out.push_str(if i == 0 { " flags " } else { " " });
            out.push_str(name);
        }
    };
    let list = |what: &str, offsets: &[OffsetNumber], out: &mut String| {
        if !offsets.is_empty() {
            let _ = write!(out, " {what}");
            for o in offsets {
                let _ = write!(out, " {o}");
            }
        }
    };
    match rec.info {
        INSERT | DELETE => {
            let _ = write!(out, " offset {}", d.offset()?);
            flags(d.u8()?, out);
        }
        MULTI_INSERT => {
            let f = d.u8()?;
            flags(f, out);
            if f & F_INIT != 0 {
                d.u64()?;
                let _ = write!(out, " tuples {}", d.u16()?);
            } else {
                let offsets = (0..d.u16()?).map(|_| d.offset()).collect::<Result<Vec<_>>>()?;
                list("offsets", &offsets, out);
            }
        }
        UPDATE => {
            let _ = write!(out, " offset {} to {}", d.offset()?, d.offset()?);
            flags(d.u8()?, out);
        }
        PRUNE | PRUNE_FIXED => {
            let block = rec.block(HEAP).map_or(BlockNumber::INVALID, |b| b.tag.block);
            let plan = plan_of(rec, block)?;
            for (from, to) in &plan.redirects {
                let _ = write!(out, " redirect {from} to {to}");
            }
            list("dead", &plan.dead, out);
            if plan.keeping.is_some() || plan.keeps_any() {
                let _ = write!(out, " keys");
            }
            let freed = if plan.reap {
                "reap"
            } else if plan.frees_roots {
                "clean"
            } else {
                "unused"
            };
            list(freed, &plan.unused, out);
            for l in &plan.links {
                let _ = write!(out, " link {} to {}", l.from, l.to);
            }
            let frozen: Vec<_> = plan.freeze.iter().map(|f| f.offset).collect();
            list("freeze", &frozen, out);
            if plan.visibility != 0 {
                let _ = write!(out, " map bits {}", plan.visibility);
            }
        }
        SHIFT_BASE => {
            let (base, list) = decode_rebase(&rec.data)?;
            let _ = write!(out, " base {base} settled {}", list.len());
        }
        KILL | IN_PLACE => {
            let _ = write!(out, " offset {}", d.offset()?);
        }
        _ => {}
    }
    Ok(())
}

/// A small buffer that record data is written to without allocating.
#[derive(Debug)]
pub(crate) struct Encoder<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Encoder<N> {
    pub fn new() -> Self {
        Encoder { bytes: [0; N], len: 0 }
    }
    pub fn put(&mut self, b: &[u8]) -> &mut Self {
        self.bytes[self.len..self.len + b.len()].copy_from_slice(b);
        self.len += b.len();
        self
    }
    pub fn u8(&mut self, v: u8) -> &mut Self {
        self.put(&[v])
    }
    pub fn u16(&mut self, v: u16) -> &mut Self {
        self.put(&v.to_le_bytes())
    }
    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.put(&v.to_le_bytes())
    }
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads record data; anything missing is a damaged log.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(pub &'a [u8]);

pub(crate) fn damaged() -> base::Error {
    base::Error::corrupt_file("heap record in the write-ahead log is damaged")
}

impl<'a> Decoder<'a> {
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| damaged())
    }
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// A number in groups of seven bits, the lowest first, with 128 in all but the last.
    pub fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let group = self.u8()?;
            number |= u64::from(group & 127) << shift;
            if group < 128 {
                return Ok(number);
            }
        }
        Err(damaged())
    }
    pub fn offset(&mut self) -> Result<OffsetNumber> {
        self.u16().map(OffsetNumber)
    }
    /// A line pointer that exists on `page`.
    pub fn offset_on(&mut self, page: &page::Page) -> Result<OffsetNumber> {
        existing(page, self.offset()?)
    }
}

/// The inverse of [`Decoder::number`].
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// `offset` if it exists on `page`.
pub(crate) fn existing(page: &page::Page, offset: OffsetNumber) -> Result<OffsetNumber> {
    if offset.0 == 0 || usize::from(offset.0) > page.item_count() {
        return Err(damaged());
    }
    Ok(offset)
}

/// The five bytes that precede a tuple's body in a record.
pub(crate) fn tuple_header(parts: &TupleParts<'_>) -> [u8; 5] {
    let [a, b] = parts.infomask2.to_le_bytes();
    let [c, d] = parts.infomask.to_le_bytes();
    [a, b, c, d, parts.hoff]
}

/// The inverse of [`tuple_header`], with `body`.
pub(crate) fn tuple_parts<'a>(from: &mut Decoder<'a>) -> Result<TupleParts<'a>> {
    let infomask2 = from.u16()?;
    let infomask = from.u16()?;
    let hoff = from.u8()?;
    Ok(TupleParts { infomask2, infomask, hoff, body: Body::whole(&[]) })
}

/// How many bytes the bodies of two versions share at their beginnings and ends.
pub(crate) fn shared(old: &[u8], new: &[u8]) -> (usize, usize) {
    let common = old.len().min(new.len());
    let prefix = common_prefix(&old[..common], &new[..common]);
    let room = common - prefix;
    let (old_end, new_end) = (&old[old.len() - room..], &new[new.len() - room..]);
    let suffix = old_end.iter().rev().zip(new_end.iter().rev()).take_while(|(a, b)| a == b).count();
    // A saving smaller than its own length field is none.
    (if prefix < 3 { 0 } else { prefix }, if suffix < 3 { 0 } else { suffix })
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut n = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        if x != y {
            break;
        }
        n += 8;
    }
    n + a[n..].iter().zip(&b[n..]).take_while(|(x, y)| x == y).count()
}

const P_REAP: u8 = 1;
const P_COMPACT: u8 = 2;
/// Some of the dead keep their keys.
const P_KEYS: u8 = 4;
/// What is frozen is told in runs of neighbours.
const P_RUNS: u8 = 8;
/// Some of those that stay lead elsewhere.
const P_LINKS: u8 = 16;
/// The line pointers that become dead or unused are told in runs of neighbours.
const P_OFFSET_RUNS: u8 = 32;
/// Among the unused are some that index entries led to.
const P_FREES_ROOTS: u8 = 64;
/// With [`P_KEYS`]: it is told how to decide what is kept.
const P_AGAIN: u8 = 128;
/// In a link's first number: it stays in its HOT chain.
const LINK_HOT: u16 = 1 << 15;

/// A prune plan as record data.
pub(crate) fn encode_plan(plan: &PrunePlan) -> Vec<u8> {
    let dead = offset_runs(&plan.dead);
    let unused = offset_runs(&plan.unused);
    let offset_runs = 2 * (dead.len() + unused.len()) < plan.dead.len() + plan.unused.len();
    let told = kept::encode(plan);
    let (how_kept, kept) = match &told {
        Told::Nothing => (0, &[][..]),
        Told::Each(bytes) => (P_KEYS, &bytes[..]),
        Told::Again(bytes) => (P_KEYS | P_AGAIN, &bytes[..]),
    };
    let runs = freeze_runs(&plan.freeze);
    let in_runs = 2 * runs.len() < plan.freeze.len();
    let offsets = plan.dead.len() + plan.unused.len();
    let mut out = Vec::with_capacity(
        40 + 4 * plan.redirects.len()
            + if offset_runs { 4 * (dead.len() + unused.len()) } else { 2 * offsets }
            + if in_runs { 4 * runs.len() } else { 2 * plan.freeze.len() }
            + kept.len(),
    );
    out.push(
        (u8::from(plan.reap) * P_REAP)
            | (u8::from(plan.compact) * P_COMPACT)
            | how_kept
            | (u8::from(in_runs) * P_RUNS)
            | (u8::from(!plan.links.is_empty()) * P_LINKS)
            | (u8::from(offset_runs) * P_OFFSET_RUNS)
            | (u8::from(plan.frees_roots) * P_FREES_ROOTS),
    );
    out.push(plan.visibility);
    put_number(&mut out, plan.conflict_horizon.0);
    put_number(&mut out, plan.prune_xid.0);
    let freeze = if in_runs { runs.len() } else { plan.freeze.len() };
    let (dead_count, unused_count) =
        if offset_runs { (dead.len(), unused.len()) } else { (plan.dead.len(), plan.unused.len()) };
    for n in [plan.redirects.len(), dead_count, unused_count, freeze] {
        put_number(&mut out, n as u64);
    }
    let mut put = |n: u16| out.extend_from_slice(&n.to_le_bytes());
    for &(from, to) in &plan.redirects {
        put(from.0);
        put(to.0);
    }
    if offset_runs {
        for (first, len) in dead.iter().chain(&unused) {
            put(first.0);
            put(*len);
        }
    } else {
        for o in plan.dead.iter().chain(&plan.unused) {
            put(o.0);
        }
    }
    // An offset takes 9 bits; the top two say what is frozen.
    let head = |f: &Freeze| f.offset.0 | u16::from(f.xmin) << 15 | u16::from(f.xmax) << 14;
    if in_runs {
        for (first, len) in &runs {
            put(head(first));
            put(*len);
        }
    } else {
        plan.freeze.iter().for_each(|f| put(head(f)));
    }
    out.extend_from_slice(kept);
    let mut put = |n: u16| out.extend_from_slice(&n.to_le_bytes());
    if !plan.links.is_empty() {
        put(plan.links.len() as u16);
        for link in &plan.links {
            put(link.from.0 | if link.hot { LINK_HOT } else { 0 });
            put(link.to.offset.0);
            let block = link.to.block.0;
            for half in [link.xmin as u16, (link.xmin >> 16) as u16] {
                put(half);
            }
            if !link.hot {
                put(block as u16);
                put((block >> 16) as u16);
            }
        }
    }
    out
}

/// Neighbours: the first, and how many.
fn offset_runs(offsets: &[OffsetNumber]) -> Runs<OffsetNumber> {
    let mut runs = Runs::<OffsetNumber>::new();
    let Some((&first, rest)) = offsets.split_first() else { return runs };
    // The run that grows is kept out of memory: every further one would wait for what was stored there.
    let (mut run, mut len) = (first, 1);
    for &o in rest {
        if run.0 + len == o.0 {
            len += 1;
        } else {
            runs.push((run, len));
            (run, len) = (o, 1);
        }
    }
    runs.push((run, len));
    runs
}

type Runs<T> = smallvec::SmallVec<[(T, u16); 8]>;

/// Neighbours that are frozen alike: the first, and how many.
fn freeze_runs(freeze: &[Freeze]) -> Runs<Freeze> {
    let mut runs = Runs::<Freeze>::new();
    let Some((&first, rest)) = freeze.split_first() else { return runs };
    let (mut run, mut len) = (first, 1);
    for &f in rest {
        if run.offset.0 + len == f.offset.0 && (run.xmin, run.xmax) == (f.xmin, f.xmax) {
            len += 1;
        } else {
            runs.push((run, len));
            (run, len) = (f, 1);
        }
    }
    runs.push((run, len));
    runs
}

/// The line pointers of a run: not more than a page can have, whatever the bytes say.
fn run(first: u16, len: u16) -> impl Iterator<Item = OffsetNumber> {
    let end = if len == 1 {
        first.saturating_add(1)
    } else {
        first.saturating_add(len).min(MAX_TUPLES_PER_PAGE as u16 + 1)
    };
    (first..end).map(OffsetNumber)
}

/// The plan that a record tells, up to [`PrunePlan::keep_again`].
pub(crate) fn plan_of(rec: &wal::Record, heap_block: BlockNumber) -> Result<PrunePlan> {
    match rec.info {
        PRUNE => decode_plan(&rec.data, heap_block),
        _ => decode_fixed_plan(&rec.data, heap_block),
    }
}

/// The inverse of [`encode_plan`], up to [`PrunePlan::keep_again`].
pub(crate) fn decode_plan(data: &[u8], heap_block: BlockNumber) -> Result<PrunePlan> {
    let mut d = Decoder(data);
    let (kind, visibility) = (d.u8()?, d.u8()?);
    let xids = [Xid(d.number()?), Xid(d.number()?)];
    let mut count = || u16::try_from(d.number()?).map_err(|_| damaged());
    let counts = [count()?, count()?, count()?, count()?];
    decode_lists(d, (kind, visibility), xids, counts, heap_block)
}

fn decode_fixed_plan(data: &[u8], heap_block: BlockNumber) -> Result<PrunePlan> {
    let mut d = Decoder(data);
    let (kind, visibility) = (d.u8()?, d.u8()?);
    let xids = [Xid(d.u64()?), Xid(d.u64()?)];
    let counts = [d.u16()?, d.u16()?, d.u16()?, d.u16()?];
    decode_lists(d, (kind, visibility), xids, counts, heap_block)
}

/// What follows a plan's head.
fn decode_lists(
    mut d: Decoder<'_>,
    (kind, visibility): (u8, u8),
    [conflict_horizon, prune_xid]: [Xid; 2],
    [redirects, dead, unused, freeze]: [u16; 4],
    heap_block: BlockNumber,
) -> Result<PrunePlan> {
    let mut plan = PrunePlan {
        reap: kind & P_REAP != 0,
        compact: kind & P_COMPACT != 0,
        frees_roots: kind & P_FREES_ROOTS != 0,
        visibility,
        conflict_horizon,
        prune_xid,
        ..PrunePlan::default()
    };
    for _ in 0..redirects {
        plan.redirects.push((d.offset()?, d.offset()?));
    }
    for (list, count) in [(&mut plan.dead, dead), (&mut plan.unused, unused)] {
        for _ in 0..count {
            let first = d.u16()?;
            let len = if kind & P_OFFSET_RUNS != 0 { d.u16()? } else { 1 };
            list.extend(run(first, len));
        }
    }
    for _ in 0..freeze {
        let n = d.u16()?;
        let len = if kind & P_RUNS != 0 { d.u16()? } else { 1 };
        let how = |offset| Freeze { offset, xmin: n >> 15 != 0, xmax: n >> 14 & 1 != 0 };
        plan.freeze.extend(run(n & 0x3FFF, len).map(how));
    }
    if kind & P_KEYS != 0 {
        match kind & P_AGAIN {
            0 => kept::decode_each(&mut d, &mut plan)?,
            _ => kept::decode_again(&mut d, &mut plan)?,
        }
    }
    if kind & P_LINKS != 0 {
        for _ in 0..d.u16()? {
            let from = d.u16()?;
            let to = d.offset()?;
            let xmin = u32::from_le_bytes(d.array()?);
            let hot = from & LINK_HOT != 0;
            let block = if hot { heap_block } else { BlockNumber(u32::from_le_bytes(d.array()?)) };
            let from = OffsetNumber(from & !LINK_HOT);
            plan.links.push(Link { from, to: Tid::new(block, to), xmin, hot });
        }
    }
    Ok(plan)
}

/// A move of the page's xid base as record data.
pub(crate) fn encode_rebase(base: Xid, list: &[Rebase]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + 3 * list.len());
    out.extend_from_slice(&base.0.to_le_bytes());
    for r in list {
        out.extend_from_slice(&r.offset.0.to_le_bytes());
        out.push(r.xmin as u8 | (r.xmax as u8) << 4);
    }
    out
}

/// The inverse of [`encode_rebase`].
pub(crate) fn decode_rebase(data: &[u8]) -> Result<(Xid, Vec<Rebase>)> {
    let mut d = Decoder(data);
    let base = Xid(d.u64()?);
    let mut list = Vec::new();
    while !d.0.is_empty() {
        let offset = d.offset()?;
        let how = d.u8()?;
        let to = |n| RebaseTo::from_number(n).ok_or_else(damaged);
        list.push(Rebase { offset, xmin: to(how & 15)?, xmax: to(how >> 4)? });
    }
    Ok((base, list))
}

/// The body of the tuple at `offset`, to compress an update against.
pub(crate) fn body_on_page(page: &page::Page, offset: OffsetNumber) -> &[u8] {
    page.item(offset).get(HEADER_MIN..).unwrap_or(&[])
}
