//! Index scans, index-only scans, and what turns conditions into bounds.

use super::batch::Batch;
use super::scan::ScanBase;
use super::{Cx, Node, Told};
use crate::activity::TableChanges;
use crate::plan::{IndexKey, IndexOp, TableScan};
use base::{Oid, Result, Tid};
use btree::{Btree, BtreeScan, Condition, Direction, ScanBounds, ScanOptions};
use engine::catalog::model::{Index, Table};
use expr::code::{Code, compile, int_of};
use expr::ops::compare;
use heap::{FetchState, MapPin, TupleSlot};
use std::sync::Arc;
use types::row_types::RowShape;
use types::{Datum, oids};

struct Key {
    column: usize,
    op: IndexOp,
    value: Option<Code>,
    then: Option<Code>,
}

/// An index with conditions on it.
pub(crate) struct KeyedIndex {
    pub index: Arc<Index>,
    keys: Vec<Key>,
    tree: Option<Arc<Btree>>,
}

/// What a name takes, with the zero that ends it.
const NAME_BYTES: usize = 64;

/// So many ranges are looked up before a cancel is looked for.
const RANGES_BETWEEN_LOOKS: usize = 64;

/// A value as the index's type.
enum Fitted {
    Value(Datum),
    Below,
    Above,
}

/// Turns a value into the key's type without changing its order.
fn fit(v: Datum, ty: Oid) -> Fitted {
    let low_high = match ty {
        oids::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oids::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        oids::INT8 => (i64::MIN, i64::MAX),
        _ => return Fitted::Value(v),
    };
    let Some(i) = int_of(&v) else { return Fitted::Value(v) };
    if i < low_high.0 {
        return Fitted::Below;
    }
    if i > low_high.1 {
        return Fitted::Above;
    }
    Fitted::Value(match ty {
        oids::INT2 => Datum::Int2(i as i16),
        oids::INT4 => Datum::Int4(i as i32),
        _ => Datum::Int8(i),
    })
}

fn encoded(ty: Oid, v: &Datum) -> Result<Vec<u8>> {
    // No name is as long, and none lies between a text and as much of it as a name has room for: not cut to be one it has its own place.
    if let (oids::NAME, Datum::Text(text)) = (ty, v)
        && let Some(head) = text.as_bytes().get(..NAME_BYTES)
    {
        return Ok(head.to_vec());
    }
    let mut out = Vec::with_capacity(16);
    types::encode(ty, v, &mut out)?;
    Ok(out)
}

/// What one column must be, being put together.
#[derive(Default)]
struct ColumnRange {
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
    not_null: bool,
}

/// Only behind columns of one value each are two ranges of the next in order one after the other.
fn is_one_value(c: &Condition) -> bool {
    matches!(c, Condition::Equal(_) | Condition::IsNull)
}

/// The ranges of a scan, in its order. Each is made when it is its turn: the elements of several `= ANY` together are too many to be kept.
#[derive(Default)]
pub(crate) struct Ranges {
    /// What each column in turn may be; for a row comparison, what the last two may be together.
    choices: Vec<Vec<Vec<Condition>>>,
    /// Which of these come next; None: there are no more.
    next: Option<Vec<usize>>,
}

impl Ranges {
    fn next(&mut self, tree: &Btree) -> Option<ScanBounds> {
        let chosen = self.next.as_mut()?;
        let conditions: Vec<Condition> =
            self.choices.iter().zip(&*chosen).flat_map(|(list, at)| list[*at].clone()).collect();
        let more = self.choices.iter().zip(chosen).rev().any(|(list, at)| {
            *at = (*at + 1) % list.len();
            *at > 0
        });
        if !more {
            self.next = None;
        }
        Some(ScanBounds::from_conditions(tree.schema(), &conditions))
    }
}

/// Makes of lists of values whose combinations would be ranges one by one (`a = ANY (…) AND b = ANY (…)`, or a list behind a column that
/// may be anything) one condition each: the scan then goes from one that is there to the next.
fn in_one_pass(choices: &mut [Vec<Vec<Condition>>]) {
    let is_list = |list: &Vec<Vec<Condition>>| {
        list.len() > 1 && list.iter().all(|c| matches!(c.as_slice(), [Condition::Equal(_)]))
    };
    let is_open = |list: &Vec<Vec<Condition>>| !list.iter().flatten().all(is_one_value);
    let Some(first) = choices.iter().position(|l| l.len() > 1) else { return };
    let several = choices.iter().filter(|l| l.len() > 1).count() > 1;
    let behind = choices[..first].iter().any(is_open);
    // A row comparison is two ranges, which are no list.
    if !(several || behind) || !choices.iter().all(|l| l.len() == 1 || is_list(l)) {
        return;
    }
    for list in choices.iter_mut().filter(|l| l.len() > 1) {
        let values = list.drain(..).flatten().filter_map(|c| match c {
            Condition::Equal(value) => Some(value),
            _ => None,
        });
        let values: Vec<Vec<u8>> = values.collect();
        list.push(vec![Condition::OneOf(values)]);
    }
}

impl KeyedIndex {
    pub(crate) fn new(index: &Arc<Index>, keys: &[IndexKey]) -> Result<KeyedIndex> {
        let keys: Vec<Key> = keys
            .iter()
            .map(|k| {
                let value = k.value.as_ref().map(compile).transpose()?;
                let then = k.then.as_ref().map(compile).transpose()?;
                Ok(Key { column: k.column, op: k.op, value, then })
            })
            .collect::<Result<_>>()?;
        Ok(KeyedIndex { index: index.clone(), keys, tree: None })
    }

    pub(crate) fn tree(&mut self, cx: &Cx<'_>, table: &Arc<Table>) -> Result<Arc<Btree>> {
        if let Some(t) = &self.tree {
            return Ok(t.clone());
        }
        let t = cx.x.relations.btree(table, &self.index)?;
        self.tree = Some(t.clone());
        Ok(t)
    }

    /// The ranges to be scanned, in the index's order.
    pub(crate) fn ranges(&self, cx: &Cx<'_>, backward: bool) -> Result<Ranges> {
        let n = self.keys.iter().map(|k| k.column + 1).max().unwrap_or(0);
        let mut choices: Vec<Vec<Vec<Condition>>> = Vec::with_capacity(n);
        for c in 0..n {
            if c + 1 == n
                && let Some(ranges) = self.row_ranges(cx, n)?
                && choices.iter().flatten().flatten().all(is_one_value)
            {
                choices.push(ranges);
                break;
            }
            let ty = self.index.columns[c].ty.oid;
            let Some(list) = self.column(cx, c, ty)? else { return Ok(Ranges::default()) };
            choices.push(list.into_iter().map(|one| vec![one]).collect());
        }
        in_one_pass(&mut choices);
        if backward {
            choices.iter_mut().for_each(|list| list.reverse());
        }
        Ok(Ranges { next: Some(vec![0; choices.len()]), choices })
    }

    /// `(a, b) > (x, y)` as the last condition of all: where a is x, b from y on; and where a is beyond x. In the index's order.
    fn row_ranges(&self, cx: &Cx<'_>, n: usize) -> Result<Option<Vec<Vec<Condition>>>> {
        let mut last = self.keys.iter().filter(|k| k.column + 1 == n);
        let (Some(key), None) = (last.next(), last.next()) else { return Ok(None) };
        let (Some(first), Some(then)) = (&key.value, &key.then) else { return Ok(None) };
        let (column, next) = (&self.index.columns[n - 1], &self.index.columns[n]);
        let first = first.eval(&[], &cx.eval)?;
        // NULL, or beyond the type: as without the second column.
        if first.is_null() {
            return Ok(None);
        }
        let Fitted::Value(first) = fit(first, column.ty.oid) else { return Ok(None) };
        let first = encoded(column.ty.oid, &first)?;
        let up = key.op == IndexOp::Ge;
        let from = |value: Vec<u8>, inclusive: bool| {
            let (lower, upper) = if up { (Some(value), None) } else { (None, Some(value)) };
            let end = |v: Option<Vec<u8>>| v.map(|v| (v, inclusive));
            Condition::Range { lower: end(lower), upper: end(upper) }
        };
        let mut out = vec![vec![from(first.clone(), false)]];
        let second = then.eval(&[], &cx.eval)?;
        if !second.is_null() {
            let second = match fit(second, next.ty.oid) {
                Fitted::Value(v) => from(encoded(next.ty.oid, &v)?, true),
                _ => Condition::IsNotNull,
            };
            out.push(vec![Condition::Equal(first), second]);
        }
        // Where the first column is equal comes before what is greater, and after what is less.
        if up != column.descending {
            out.reverse();
        }
        Ok(Some(out))
    }

    /// What column `c` may be: one condition, or several for `= ANY`; None: nothing fits.
    fn column(&self, cx: &Cx<'_>, c: usize, ty: Oid) -> Result<Option<Vec<Condition>>> {
        let mut range = ColumnRange::default();
        for k in self.keys.iter().filter(|k| k.column == c) {
            let value = match &k.value {
                Some(v) => v.eval(&[], &cx.eval)?,
                None => match k.op {
                    IndexOp::IsNull => return Ok(Some(vec![Condition::IsNull])),
                    _ => {
                        range.not_null = true;
                        continue;
                    }
                },
            };
            if value.is_null() {
                return Ok(None);
            }
            match k.op {
                IndexOp::Eq => {
                    let Fitted::Value(v) = fit(value, ty) else { return Ok(None) };
                    return Ok(Some(vec![Condition::Equal(encoded(ty, &v)?)]));
                }
                IndexOp::Any => {
                    let Datum::Array(a) = value else { return Ok(None) };
                    let mut list: Vec<Datum> = a
                        .elements
                        .iter()
                        .filter(|e| !e.is_null())
                        .filter_map(|e| match fit(e.clone(), ty) {
                            Fitted::Value(v) => Some(v),
                            _ => None,
                        })
                        .collect();
                    list.sort_by(|a, b| compare(ty, a, b));
                    list.dedup_by(|a, b| compare(ty, a, b).is_eq());
                    if self.index.columns[c].descending {
                        list.reverse();
                    }
                    if list.is_empty() {
                        return Ok(None);
                    }
                    let list = list
                        .iter()
                        .map(|v| Ok(Condition::Equal(encoded(ty, v)?)))
                        .collect::<Result<_>>()?;
                    return Ok(Some(list));
                }
                IndexOp::Lt | IndexOp::Le => match fit(value, ty) {
                    Fitted::Below => return Ok(None),
                    Fitted::Above => range.not_null = true,
                    Fitted::Value(v) => {
                        let inclusive = k.op == IndexOp::Le;
                        let tighter = range.upper.as_ref().is_none_or(|(u, i)| {
                            let o = compare(ty, &v, u);
                            o.is_lt() || (o.is_eq() && *i && !inclusive)
                        });
                        if tighter {
                            range.upper = Some((v, inclusive));
                        }
                    }
                },
                IndexOp::Gt | IndexOp::Ge => match fit(value, ty) {
                    Fitted::Above => return Ok(None),
                    Fitted::Below => range.not_null = true,
                    Fitted::Value(v) => {
                        let inclusive = k.op == IndexOp::Ge;
                        let tighter = range.lower.as_ref().is_none_or(|(l, i)| {
                            let o = compare(ty, &v, l);
                            o.is_gt() || (o.is_eq() && *i && !inclusive)
                        });
                        if tighter {
                            range.lower = Some((v, inclusive));
                        }
                    }
                },
                IndexOp::IsNull | IndexOp::IsNotNull => {}
            }
        }
        let end = |e: Option<(Datum, bool)>| -> Result<Option<(Vec<u8>, bool)>> {
            e.map(|(v, i)| Ok((encoded(ty, &v)?, i))).transpose()
        };
        Ok(Some(vec![match (range.lower, range.upper) {
            (None, None) if range.not_null => Condition::IsNotNull,
            (None, None) => Condition::Any,
            (lower, upper) => Condition::Range { lower: end(lower)?, upper: end(upper)? },
        }]))
    }

    /// Begins to gather the addresses that satisfy the conditions.
    pub(crate) fn gathering(&mut self, cx: &Cx<'_>, table: &Arc<Table>) -> Result<Gathering> {
        let tree = self.tree(cx, table)?;
        let ranges = self.ranges(cx, false)?;
        let seen = TableChanges { scans: 1, ..TableChanges::default() };
        cx.x.relations.note_scan(self.index.oid, &seen);
        // One scan for all ranges: it looks first where the last one ended.
        let scan = tree.scan(ScanBounds::default(), ScanOptions::default());
        Ok(Gathering { index: self.index.oid, scan, ranges, searches: 0, in_range: false })
    }
}

/// Addresses that an index leads to, on their way out of it.
pub(crate) struct Gathering {
    index: Oid,
    scan: BtreeScan,
    ranges: Ranges,
    searches: usize,
    in_range: bool,
}

impl Gathering {
    /// Adds addresses to `out` until it holds `most` of them, and those of the leaf that the last one is on; false if there are no more.
    pub(crate) fn gather(&mut self, cx: &Cx<'_>, out: &mut Vec<Tid>, most: usize) -> Result<bool> {
        let before = out.len();
        let more = self.gather_uncounted(cx, out, most);
        let read = i64::try_from(out.len() - before).unwrap_or(0);
        let seen = TableChanges { tuples_read: read, ..TableChanges::default() };
        cx.x.relations.note_scan(self.index, &seen);
        more
    }

    fn gather_uncounted(&mut self, cx: &Cx<'_>, out: &mut Vec<Tid>, most: usize) -> Result<bool> {
        let tree = self.scan.tree().clone();
        while out.len() < most {
            if !self.in_range {
                let Some(bounds) = self.ranges.next(&tree) else { return Ok(false) };
                self.searches += 1;
                // There may be nothing in any of them.
                if self.searches.is_multiple_of(RANGES_BETWEEN_LOOKS) {
                    cx.poll()?;
                }
                self.scan.rescan(bounds);
                self.in_range = true;
            }
            match self.scan.next_unless(&|| cx.poll())? {
                Some(tid) => {
                    out.push(tid);
                    self.scan.take_rest_of_leaf(out);
                    cx.poll()?;
                }
                None => self.in_range = false,
            }
        }
        Ok(true)
    }
}

/// Where an index-only scan has a value from.
enum FromIndex {
    Column(usize),
    /// A column of rows, or arrays of them, which are like that by now.
    Rows(usize, Arc<RowShape>),
    /// The address that the entry bears: of the row's first version on its page, perhaps. It is for cursors, which know that.
    Address,
    Table,
}

/// An index scan.
pub(crate) struct IndexScanNode {
    base: ScanBase,
    keyed: KeyedIndex,
    backward: bool,
    index_only: bool,
    /// For index-only scans: where each output column is from.
    from_index: Vec<FromIndex>,
    ranges: Ranges,
    scan: Option<BtreeScan>,
    active: bool,
    prepared: bool,
    state: FetchState,
    slot: TupleSlot,
    map: MapPin,
    /// A unique key fully given: one row at most.
    single: bool,
    told: Told,
}

impl IndexScanNode {
    pub(crate) fn new(
        scan: &TableScan,
        late: &[bool],
        index: &Arc<Index>,
        keys: &[IndexKey],
        backward: bool,
        index_only: bool,
    ) -> Result<IndexScanNode> {
        let from_index: Vec<FromIndex> = if index_only {
            let place = |c: &i32| match c {
                -1 => Some(FromIndex::Address),
                -6 => Some(FromIndex::Table),
                c => index.columns.iter().position(|i| i.expr.is_none() && i.column == *c).map(
                    |at| match scan.table.columns.get(*c as usize - 1).map(|c| &c.rows) {
                        Some(Some(shape)) => FromIndex::Rows(at, shape.clone()),
                        _ => FromIndex::Column(at),
                    },
                ),
            };
            scan.columns.iter().filter_map(place).collect()
        } else {
            Vec::new()
        };
        let index_only = index_only && from_index.len() == scan.columns.len();
        let single = index.unique
            && index.immediate
            && (0..index.key_columns)
                .all(|c| keys.iter().any(|k| k.column == c && k.op == IndexOp::Eq));
        Ok(IndexScanNode {
            base: ScanBase::new(scan, late)?,
            keyed: KeyedIndex::new(index, keys)?,
            backward,
            index_only,
            from_index,
            ranges: Ranges::default(),
            scan: None,
            active: false,
            prepared: false,
            state: FetchState::new(),
            slot: TupleSlot::new(),
            map: MapPin::none(),
            single,
            told: Told::default(),
        })
    }

    /// Moves to the next range; false if there is none.
    fn advance(&mut self, cx: &Cx<'_>, tree: &Arc<Btree>) -> bool {
        let Some(bounds) = self.ranges.next(tree) else {
            self.active = false;
            return false;
        };
        self.told.searches += 1;
        match &mut self.scan {
            Some(s) => s.rescan(bounds),
            None => {
                let direction =
                    if self.backward { Direction::Backward } else { Direction::Forward };
                // Indexes of catalogs are rebuilt beside their readers.
                let tidies = self.keyed.index.oid >= Oid::FIRST_NORMAL;
                let options = ScanOptions { direction, index_only: self.index_only, tidies };
                self.scan = Some(tree.scan(bounds, options));
            }
        }
        if let Some(scan) = &mut self.scan {
            scan.judge_by(cx.x.snapshot.csn);
        }
        self.active = true;
        true
    }
}

impl IndexScanNode {
    /// Lets go of the heap's pages.
    fn release(&mut self) {
        self.state.release();
        self.map = MapPin::none();
        self.active = false;
    }

    /// The next rows; what is read is counted in `noted`.
    fn fill(
        &mut self,
        cx: &Cx<'_>,
        out: &mut Batch,
        max: usize,
        noted: &mut TableChanges,
    ) -> Result<()> {
        out.reset(self.base.reader.width());
        let heap = self.base.heap(cx)?;
        let tree = self.keyed.tree(cx, &self.base.table)?;
        if !self.prepared {
            self.ranges = self.keyed.ranges(cx, self.backward)?;
            self.prepared = true;
            noted.scans += 1;
            self.advance(cx, &tree);
        }
        let mut seen = 0u32;
        while self.active {
            let Some(scan) = &mut self.scan else { break };
            let Some(tid) = scan.next_unless(&|| cx.poll())? else {
                if !self.advance(cx, &tree) {
                    break;
                }
                // There may be nothing in any of them.
                if self.told.searches.is_multiple_of(RANGES_BETWEEN_LOOKS as u64) {
                    cx.poll()?;
                }
                continue;
            };
            seen = seen.wrapping_add(1);
            noted.tuples_read += 1;
            if seen.is_multiple_of(64) {
                cx.poll()?;
            }
            let filter = self.base.filter.as_ref();
            if self.index_only {
                let bits = heap.visibility_map().bits(tid.block, &mut self.map)?;
                let visible = bits & page::visibility::ALL_VISIBLE != 0 && scan.leaf_unchanged();
                if !visible {
                    self.told.heap_fetches += 1;
                    let f = heap.fetch(tid, &cx.x.snapshot, &mut self.state, &mut self.slot)?;
                    if !f.found {
                        scan.pass_over(f.all_dead, f.gone);
                        continue;
                    }
                }
                let values: smallvec::SmallVec<[Option<&[u8]>; 8]> = scan.values().collect();
                let index = &self.keyed.index;
                let value = |c: usize| match values.get(c).copied().flatten() {
                    Some(bytes) => types::decode(index.columns[c].ty.oid, bytes),
                    None => Ok(Datum::Null),
                };
                for from in &self.from_index {
                    out.push_value(match from {
                        FromIndex::Address => Datum::Tid(tid),
                        FromIndex::Table => Datum::Oid(self.base.table.oid),
                        FromIndex::Column(c) => value(*c)?,
                        FromIndex::Rows(c, shape) => shape.fit(value(*c)?),
                    });
                }
                out.end_row();
                if let Some(f) = filter
                    && !f.is_true(out.row(out.len() - 1), &cx.eval)?
                {
                    out.truncate(out.len() - 1);
                    self.told.removed += 1;
                }
            } else {
                let f = heap.fetch(tid, &cx.x.snapshot, &mut self.state, &mut self.slot)?;
                if !f.found {
                    scan.pass_over(f.all_dead, f.gone);
                    continue;
                }
                noted.tuples_fetched += 1;
                let keep = |row: &[Datum]| filter.map_or(Ok(true), |f| f.is_true(row, &cx.eval));
                let at = self.slot.tid;
                let view = self.slot.view();
                if !self.base.reader.read(&view, at, &heap, out, keep, filter.is_some())? {
                    out.drop_partial();
                    self.told.removed += 1;
                }
                if self.single {
                    self.active = false;
                }
            }
            if out.len() >= max {
                break;
            }
        }
        if !self.active {
            self.release();
            if let Some(scan) = &mut self.scan {
                scan.pause();
            }
        }
        Ok(())
    }
}

impl Node for IndexScanNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        let mut noted = TableChanges::default();
        let filled = self.fill(cx, out, max, &mut noted);
        cx.x.relations.note_scan(self.keyed.index.oid, &noted);
        filled
    }
    fn told(&self) -> Told {
        self.told
    }
    fn let_go(&mut self) {
        self.release();
        if let Some(scan) = &mut self.scan {
            scan.let_go();
        }
    }
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.prepared = false;
        self.active = false;
        self.state = FetchState::new();
        self.map = MapPin::none();
        Ok(())
    }
}
