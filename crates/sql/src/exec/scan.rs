//! Sequential scans, scans by address, VALUES and functions in FROM.

use super::batch::{Batch, Later};
use super::row::RowReader;
use super::sample::{Choice, SampleCode};
use super::sort::Beyond;
use super::{Cx, Node, Told};
use crate::activity::TableChanges;
use crate::plan::{TableScan, TidBound};
use base::{Result, Tid, bail};
use engine::catalog::model::{RelationKind, Table};
use expr::code::{Code, compile};
use heap::{FetchState, Heap, HeapScan, PageBatch, ScanOptions, TidRange, TupleSlot};
use std::sync::Arc;
use types::Datum;

/// What every scan of a table is made of.
pub(crate) struct ScanBase {
    pub table: Arc<Table>,
    pub columns: Vec<i32>,
    pub reader: RowReader,
    pub filter: Option<Code>,
    pub heap: Option<Arc<Heap>>,
    /// Only rows of addresses between these are asked for.
    bounds: Vec<Bound>,
}

/// A bound of the addresses.
struct Bound {
    lower: bool,
    inclusive: bool,
    value: Code,
}

impl ScanBase {
    /// `late`: the columns that are left unread if they are long.
    pub(crate) fn new(scan: &TableScan, late: &[bool]) -> Result<ScanBase> {
        let reader = RowReader::new(&scan.table, &scan.columns, scan.filter.as_ref());
        Ok(ScanBase {
            table: scan.table.clone(),
            columns: scan.columns.clone(),
            reader: reader.leave(late),
            filter: scan.filter.as_ref().map(compile).transpose()?,
            heap: None,
            bounds: Vec::new(),
        })
    }
    /// Of what lies between bounds of `ctid`.
    pub(crate) fn between(mut self, bounds: &[TidBound]) -> Result<ScanBase> {
        for b in bounds {
            let value = compile(&b.value)?;
            self.bounds.push(Bound { lower: b.lower, inclusive: b.inclusive, value });
        }
        Ok(self)
    }
    /// Of the columns only those that are wanted are read, and those that the filter asks for; NULLs stand for the others.
    pub(crate) fn reading(mut self, wanted: Option<&[bool]>) -> ScanBase {
        if let Some(wanted) = wanted {
            self.reader = self.reader.only(wanted);
        }
        self
    }
    /// As in PostgreSQL, where a scan of a range of addresses counts as no sequential one.
    pub(crate) fn is_bounded(&self) -> bool {
        !self.bounds.is_empty()
    }
    /// The addresses that the bounds leave, as they are now.
    pub(crate) fn tids(&self, cx: &Cx<'_>) -> Result<Option<TidRange>> {
        if self.bounds.is_empty() {
            return Ok(None);
        }
        let mut tids = TidRange::ALL;
        for b in &self.bounds {
            tids = match b.value.eval(&[], &cx.eval)? {
                Datum::Tid(t) if b.lower => tids.from(t, b.inclusive),
                Datum::Tid(t) => tids.up_to(t, b.inclusive),
                // Nothing is more or less than NULL.
                _ => TidRange::NONE,
            };
        }
        Ok(Some(tids))
    }
    /// The heap, opened once: but for a sequence's, which has its row written when it is opened.
    pub(crate) fn heap(&mut self, cx: &Cx<'_>) -> Result<Arc<Heap>> {
        if let Some(h) = &self.heap {
            return Ok(h.clone());
        }
        let h = cx.x.relations.heap(&self.table)?;
        if self.table.kind != RelationKind::Sequence {
            self.heap = Some(h.clone());
        }
        Ok(h)
    }
}

/// A sequential scan.
pub(crate) struct SeqScanNode {
    base: ScanBase,
    /// TABLESAMPLE, and what it has chosen.
    sample: Option<SampleCode>,
    choice: Option<Choice>,
    scan: Option<HeapScan>,
    page: PageBatch,
    at: usize,
    ended: bool,
    rows: Option<std::vec::IntoIter<Vec<Datum>>>,
    told: Told,
    later: Later,
}

impl SeqScanNode {
    pub(crate) fn new(base: ScanBase) -> SeqScanNode {
        SeqScanNode {
            base,
            sample: None,
            choice: None,
            scan: None,
            page: PageBatch::new(),
            at: 0,
            ended: false,
            rows: None,
            told: Told::default(),
            later: Later::default(),
        }
    }

    /// A scan of a sample.
    pub(crate) fn sampled(base: ScanBase, sample: SampleCode) -> SeqScanNode {
        SeqScanNode { sample: Some(sample), ..SeqScanNode::new(base) }
    }

    /// How the heap is to be scanned.
    fn options(&mut self, cx: &Cx<'_>) -> Result<ScanOptions> {
        let mut options = ScanOptions { tids: self.base.tids(cx)?, ..ScanOptions::default() };
        if let Some(sample) = &mut self.sample {
            let choice = sample.choose(cx)?;
            options.choice = choice.pages();
            if choice.reads_little() {
                options.strategy = Some(buffer::Strategy::Normal);
            }
            self.choice = Some(choice);
        }
        Ok(options)
    }

    fn next_virtual(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        if self.rows.is_none() {
            self.rows = Some(cx.x.relations.virtual_rows(&self.base.table)?.into_iter());
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for row in rows.by_ref() {
            for c in &self.base.columns {
                out.push_value(match usize::try_from(*c - 1) {
                    Ok(i) => row.get(i).cloned().unwrap_or(Datum::Null),
                    Err(_) if *c == -6 => Datum::Oid(self.base.table.oid),
                    Err(_) => Datum::Null,
                });
            }
            out.end_row();
            let keep = match &self.base.filter {
                Some(f) => f.is_true(out.row(out.len() - 1), &cx.eval)?,
                None => true,
            };
            if !keep {
                out.truncate(out.len() - 1);
                self.told.removed += 1;
            }
            if out.len() >= max {
                break;
            }
        }
        Ok(())
    }
}

impl SeqScanNode {
    /// The next rows; what is read is counted in `seen`.
    fn fill(
        &mut self,
        cx: &Cx<'_>,
        out: &mut Batch,
        max: usize,
        seen: &mut TableChanges,
    ) -> Result<()> {
        out.reset(self.base.reader.width());
        self.later.raise()?;
        if self.base.table.storage.is_none() {
            return self.next_virtual(cx, out, max);
        }
        if self.ended {
            return Ok(());
        }
        let heap = self.base.heap(cx)?;
        if self.scan.is_none() {
            let options = self.options(cx)?;
            let scan = HeapScan::new(&heap, cx.x.snapshot.clone(), options)?;
            self.scan = Some(scan);
            // As in PostgreSQL, where samples are no sequential scans either.
            seen.scans += i64::from(!self.base.is_bounded() && self.sample.is_none());
            self.at = 0;
            self.page = PageBatch::new();
        }
        let Some(scan) = &mut self.scan else { return Ok(()) };
        loop {
            if self.at >= self.page.len() {
                cx.poll()?;
                self.at = 0;
                if !scan.next_page(&mut self.page)? {
                    self.ended = true;
                    self.scan = None;
                    return Ok(());
                }
            }
            let n = self.page.len();
            while self.at < n {
                let t = self.page.get(self.at);
                self.at += 1;
                if self.choice.is_some_and(|c| !c.takes(t.tid)) {
                    continue;
                }
                seen.tuples_read += 1;
                match &self.base.filter {
                    None => {
                        self.base.reader.read(&t.tuple, t.tid, &heap, out, |_| Ok(true), false)?;
                    }
                    Some(f) => {
                        let keep = |row: &[Datum]| f.is_true(row, &cx.eval);
                        match self.base.reader.read(&t.tuple, t.tid, &heap, out, keep, true) {
                            Ok(kept) => self.told.removed += u64::from(!kept),
                            Err(error) => return self.later.keep(error, out),
                        }
                    }
                }
                if out.len() >= max {
                    return Ok(());
                }
            }
        }
    }
}

impl Node for SeqScanNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        let mut seen = TableChanges::default();
        let filled = self.fill(cx, out, max, &mut seen);
        // What is left of the last row that the filter took out.
        out.drop_partial();
        cx.x.relations.note_scan(self.base.table.oid, &seen);
        filled
    }
    fn set_beyond(&mut self, beyond: Option<Beyond>) {
        self.base.reader.set_beyond(beyond);
    }
    fn let_go(&mut self) {
        self.scan = None;
    }
    fn told(&self) -> Told {
        self.told
    }
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.scan = None;
        self.at = 0;
        self.page = PageBatch::new();
        self.ended = false;
        self.rows = None;
        self.later.forget();
        Ok(())
    }
}

/// Where a scan by addresses has them from.
enum Addresses {
    /// A value: of versions.
    Value(Code),
    /// Where this cursor stands: of the row of which its version is one.
    Cursor(String),
    /// Where the cursor stands whose name this parameter is.
    CursorOf(usize),
}

/// Fetches rows by the addresses of versions (`ctid = …`).
pub(crate) struct TidScanNode {
    base: ScanBase,
    tids: Addresses,
    list: Option<std::vec::IntoIter<Tid>>,
    slot: TupleSlot,
    told: Told,
}

impl TidScanNode {
    pub(crate) fn new(scan: &TableScan, late: &[bool], tids: &expr::Expr) -> Result<TidScanNode> {
        Ok(TidScanNode {
            base: ScanBase::new(scan, late)?,
            tids: match tids {
                expr::Expr::CurrentOf { parameter: number @ 1.., .. } => {
                    Addresses::CursorOf(*number as usize - 1)
                }
                expr::Expr::CurrentOf { cursor, .. } => Addresses::Cursor(cursor.clone()),
                value => Addresses::Value(compile(value)?),
            },
            list: None,
            slot: TupleSlot::new(),
            told: Told::default(),
        })
    }
}

impl TidScanNode {
    /// The addresses asked for, each once, in their order.
    fn addresses(&self, cx: &Cx<'_>) -> Result<Vec<Tid>> {
        let value = match &self.tids {
            Addresses::Cursor(cursor) => {
                let current = cx.x.relations.current_of(cursor, &self.base.table)?;
                return Ok(current.into_iter().collect());
            }
            Addresses::CursorOf(parameter) => {
                let Some(Datum::Text(cursor)) = cx.x.params.get(*parameter) else {
                    bail!(INTERNAL_ERROR, "no value found for parameter {}", parameter + 1);
                };
                let current = cx.x.relations.current_of(cursor.as_str(), &self.base.table)?;
                return Ok(current.into_iter().collect());
            }
            Addresses::Value(code) => code.eval(&[], &cx.eval)?,
        };
        let mut list: Vec<Tid> = match value {
            Datum::Tid(t) => vec![t],
            Datum::Array(a) => {
                let tid = |e: &Datum| match e {
                    Datum::Tid(t) => Some(*t),
                    _ => None,
                };
                a.elements.iter().filter_map(tid).collect()
            }
            _ => Vec::new(),
        };
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }
}

impl Node for TidScanNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.base.reader.width());
        if self.list.is_none() {
            self.list = Some(self.addresses(cx)?.into_iter());
        }
        let of_cursor = matches!(self.tids, Addresses::Cursor(_));
        let heap = self.base.heap(cx)?;
        let Some(list) = &mut self.list else { return Ok(()) };
        for tid in list.by_ref() {
            let found = tid.is_valid()
                && match of_cursor {
                    true => heap.fetch_row(tid, &cx.x.snapshot, &mut self.slot)?,
                    false => heap.fetch_version(tid, &cx.x.snapshot, &mut self.slot)?,
                };
            if !found {
                continue;
            }
            let filter = self.base.filter.as_ref();
            let keep = |row: &[Datum]| filter.map_or(Ok(true), |f| f.is_true(row, &cx.eval));
            let view = self.slot.view();
            let at = self.slot.tid;
            let kept = self.base.reader.read(&view, at, &heap, out, keep, filter.is_some())?;
            self.told.removed += u64::from(!kept);
            if out.len() >= max {
                break;
            }
        }
        out.drop_partial();
        Ok(())
    }
    fn let_go(&mut self) {}
    fn told(&self) -> Told {
        self.told
    }
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.list = None;
        Ok(())
    }
}

/// Fetches the rows of addresses that index scans gave, in the order of the heap. Those of one index are all different, so that they may come
/// in pieces, each in that order: there are never many more of them than `work_mem` has room for.
pub(crate) struct BitmapNode {
    base: ScanBase,
    arms: Vec<super::index_scan::KeyedIndex>,
    list: Option<std::vec::IntoIter<Tid>>,
    /// What the only index has still to give.
    more: Option<super::index_scan::Gathering>,
    state: FetchState,
    slot: TupleSlot,
    told: Told,
}

impl BitmapNode {
    pub(crate) fn new(
        scan: &TableScan,
        late: &[bool],
        arms: Vec<super::index_scan::KeyedIndex>,
    ) -> Result<BitmapNode> {
        Ok(BitmapNode {
            base: ScanBase::new(scan, late)?,
            arms,
            list: None,
            more: None,
            state: FetchState::new(),
            slot: TupleSlot::new(),
            told: Told::default(),
        })
    }

    /// The addresses to be fetched next are in `list`.
    fn gather(&mut self, cx: &Cx<'_>) -> Result<()> {
        let mut list = Vec::new();
        let table = &self.base.table;
        match &mut self.arms[..] {
            [only] => {
                let most = (cx.x.work_mem_bytes / size_of::<Tid>()).max(1);
                let mut more = match self.more.take() {
                    Some(more) => more,
                    None => only.gathering(cx, table)?,
                };
                self.more = more.gather(cx, &mut list, most)?.then_some(more);
            }
            arms => {
                for arm in arms {
                    arm.gathering(cx, table)?.gather(cx, &mut list, usize::MAX)?;
                }
            }
        }
        list.sort_unstable();
        list.dedup();
        self.list = Some(list.into_iter());
        Ok(())
    }

    fn begin_anew(&mut self) {
        self.list = None;
        self.more = None;
    }
}

impl Node for BitmapNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.base.reader.width());
        if self.list.is_none() {
            self.gather(cx)?;
        }
        let heap = self.base.heap(cx)?;
        loop {
            let Some(tid) = self.list.as_mut().and_then(Iterator::next) else {
                if self.more.is_none() {
                    break;
                }
                self.gather(cx)?;
                continue;
            };
            if !heap.fetch(tid, &cx.x.snapshot, &mut self.state, &mut self.slot)?.found {
                continue;
            }
            let filter = self.base.filter.as_ref();
            let keep = |row: &[Datum]| filter.map_or(Ok(true), |f| f.is_true(row, &cx.eval));
            let at = self.slot.tid;
            let view = self.slot.view();
            let kept = self.base.reader.read(&view, at, &heap, out, keep, filter.is_some())?;
            self.told.removed += u64::from(!kept);
            if out.len() >= max {
                break;
            }
        }
        out.drop_partial();
        if out.is_empty() {
            self.state.release();
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.begin_anew();
        self.state = FetchState::new();
    }
    fn told(&self) -> Told {
        self.told
    }
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.begin_anew();
        Ok(())
    }
}

/// VALUES.
pub(crate) struct ValuesNode {
    pub rows: Vec<Vec<Code>>,
    pub width: usize,
    pub at: usize,
}

impl Node for ValuesNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        while self.at < self.rows.len() && out.len() < max {
            for c in &self.rows[self.at] {
                out.push_value(c.eval(&[], &cx.eval)?);
            }
            out.end_row();
            self.at += 1;
        }
        Ok(())
    }
    fn let_go(&mut self) {}
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.at = 0;
        Ok(())
    }
}

/// One row of expressions.
pub(crate) struct ResultNode {
    pub exprs: Vec<Code>,
    pub filter: Option<Code>,
    pub done: bool,
}

impl Node for ResultNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, _max: usize) -> Result<()> {
        out.reset(self.exprs.len());
        if self.done {
            return Ok(());
        }
        self.done = true;
        if let Some(f) = &self.filter
            && !f.is_true(&[], &cx.eval)?
        {
            return Ok(());
        }
        for e in &self.exprs {
            out.push_value(e.eval(&[], &cx.eval)?);
        }
        out.end_row();
        Ok(())
    }
    fn let_go(&mut self) {}
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.done = false;
        Ok(())
    }
}
