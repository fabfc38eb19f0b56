//! VACUUM FULL and CLUSTER: what anybody can still see of a table goes into a new file, as it is; CLUSTER's in the order of
//! an index.
//!
//! # Locks
//! The caller holds AccessExclusive: nobody reads the old file meanwhile, and after the commit it is gone.
//!
//! # Invariants
//! Nothing changes that a snapshot sees: a version that all see goes over frozen, another keeps its xmin and xmax. A version
//! that nobody sees stays behind. The order comes from keys made of the rows themselves: what an index lacks is not lost.
//!
//! # Differs from PostgreSQL
//! Chains of versions that are not removable yet are not kept together: a repeatable-read transaction that wants to change
//! such a row is told that it was deleted, not updated. They, and rows too young to be frozen, get pages of their own, in order among
//! themselves. CLUSTER always sorts; sorted are keys and addresses, and rows are fetched by them.

use super::index::RowDecoder;
use super::rewrite::{Broken, NewFile, Toast, begin, finish};
use crate::exec::modify::IndexWriter;
use crate::maintenance::commands::{Command, cluster};
use crate::session::{Session, SessionState};
use base::{BlockNumber, Fork, GiveWay, Manners, Result, Tid};
use btree::Sorter;
use buffer::Strategy;
use engine::catalog::model::{Index, Table};
use engine::relation::{key_schema, tuple_desc};
use expr::eval::EvalContext;
use heap::prune::Verdict;
use heap::toast::ToastChanges;
use heap::visibility::satisfies_vacuum;
use heap::{Heap, Hints, Horizon, InsertState, TupleSlot};
use page::Page;
use page::tuple::{AttrValue, TupleDesc, TupleView, XMIN_FROZEN};
use std::rc::Rc;
use std::sync::Arc;
use txn::Transaction;

/// What was found.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Compacted {
    /// Versions left behind.
    pub removed: u64,
    /// Versions that live on.
    pub live: u64,
    /// Dead versions that a snapshot may still see.
    pub recently_dead: u64,
    /// What went into the TOAST table, if it is the one from before.
    pub toasted: Option<ToastChanges>,
}

/// How many tuples go into the new file at once.
const BATCH: usize = 256;

/// Writes what anybody can still see of `before` into a new file, as it is, in the order of `by` if there is such an index.
///
/// # Errors
/// `23505` when an index finds two rows of one key; I/O, corruption, cancellation.
pub fn compact(
    session: &mut Session,
    before: &Arc<Table>,
    by: Option<&Arc<Index>>,
) -> Result<Compacted> {
    let state = Rc::clone(session.state());
    let txn = state.txn()?;
    let old = state.open_relation(before)?.heap;
    let Some(new) = begin(session, before, Toast::Kept)? else { return Ok(Compacted::default()) };
    let mut copier = Copier::new(&state, &txn, before, &old, &new);
    base::stop_point!("sql.compact.judging");
    match by {
        None => copier.scan(None)?,
        Some(index) => {
            let params = std::cell::RefCell::new(Vec::new());
            let eval = EvalContext::new(session.env().as_ref(), &params);
            let mut keys = Keys::new(&state, before, index, eval)?;
            copier.scan(Some(&mut keys))?;
            copier.sorted(keys.sorter)?;
        }
    }
    let mut done = copier.finish()?;
    crate::relations::note_whole_scan(&state, before.oid, done.live + done.recently_dead);
    done.toasted = new.moved.take().pop();
    base::stop_point!("sql.compact.written");
    state.progress.set(Command::Cluster, cluster::PHASE, cluster::SWAPPING);
    finish(session, before, &new, Broken::Leave)?;
    Ok(done)
}

/// Makes the keys by which rows are sorted.
struct Keys<'a> {
    sorter: Sorter,
    writer: IndexWriter,
    decoder: RowDecoder,
    eval: EvalContext<'a>,
}

impl<'a> Keys<'a> {
    fn new(
        state: &SessionState,
        table: &Arc<Table>,
        index: &Arc<Index>,
        eval: EvalContext<'a>,
    ) -> Result<Keys<'a>> {
        let config = super::index::sort_config(state);
        let tree = state.cluster.storage().btree(&table.name, index)?;
        Ok(Keys {
            sorter: Sorter::new(Arc::new(key_schema(&table.name, index)?), config),
            writer: IndexWriter::over(index, &tree)?,
            decoder: RowDecoder::new(table, index),
            eval,
        })
    }

    fn add(&mut self, heap: &Heap, tid: Tid, tuple: &TupleView<'_>) -> Result<()> {
        let row = self.decoder.decode(heap, tuple.bytes)?;
        if !self.writer.encode(row, &self.eval)? {
            base::bail!(INTERNAL_ERROR, "a partial index gives no order");
        }
        self.sorter.add(&self.writer.values(), tid, true)
    }
}

/// Copies versions from file to file.
struct Copier<'a> {
    state: &'a SessionState,
    txn: &'a Transaction,
    before: &'a Arc<Table>,
    old: &'a Arc<Heap>,
    new: &'a NewFile,
    horizon: Horizon,
    hints: Hints,
    desc: TupleDesc,
    /// Frozen rows and others go to pages of their own, so that the former's are all-frozen.
    frozen: InsertState,
    recent: InsertState,
    pending: Vec<Vec<u8>>,
    /// How long it has waited for its log to be durable.
    log_turn: GiveWay,
    tids: Vec<Tid>,
    /// Pages of the new file.
    len: u32,
    written: u64,
    done: Compacted,
}

impl<'a> Copier<'a> {
    fn new(
        state: &'a SessionState,
        txn: &'a Transaction,
        before: &'a Arc<Table>,
        old: &'a Arc<Heap>,
        new: &'a NewFile,
    ) -> Copier<'a> {
        let pool = &state.cluster.engine().pool;
        let mut frozen = InsertState::bulk(pool);
        (frozen.frozen, frozen.skip_fsm) = (true, true);
        let mut recent = InsertState::bulk(pool);
        recent.skip_fsm = true;
        Copier {
            state,
            txn,
            before,
            old,
            new,
            horizon: old.exact_horizon(),
            hints: Hints::default(),
            desc: tuple_desc(&before.columns),
            frozen,
            recent,
            pending: Vec::new(),
            log_turn: GiveWay::new(Manners::Gentle),
            tids: Vec::new(),
            len: 0,
            written: 0,
            done: Compacted::default(),
        }
    }

    fn show(&self, n: usize, value: u64) {
        self.state.progress.set(Command::Cluster, n, value);
    }

    /// Reads the old file; what is kept is copied at once, or its key noted.
    fn scan(&mut self, mut keys: Option<&mut Keys<'_>>) -> Result<()> {
        let mut strategy = Strategy::bulk_read(&self.state.cluster.engine().pool);
        let blocks = self.old.len_blocks()?.0;
        self.show(cluster::PHASE, cluster::SCANNING);
        self.show(cluster::BLOCKS_TOTAL, u64::from(blocks));
        for n in 0..blocks {
            self.state.check_cancel()?;
            self.show(cluster::BLOCKS_SCANNED, u64::from(n));
            self.show_tuples();
            let block = BlockNumber(n);
            let Some(pin) = self.old.relation().try_pin(Fork::Main, block, &mut strategy)? else {
                break;
            };
            let page = Page::from_bytes(pin.read().bytes());
            drop(pin);
            for offset in page.offsets() {
                let id = page.item_id(offset);
                if !id.is_normal() {
                    self.done.removed += u64::from(id.is_dead());
                    continue;
                }
                let t = TupleView::on_page(&page, offset);
                let tid = Tid::new(block, offset);
                let verdict = self.judge(&t, tid)?;
                match verdict {
                    Verdict::Live => self.done.live += 1,
                    Verdict::RecentlyDead => self.done.recently_dead += 1,
                    _ => {
                        self.done.removed += 1;
                        continue;
                    }
                }
                match &mut keys {
                    None => self.copy(&t, verdict)?,
                    Some(keys) => keys.add(self.old, tid, &t)?,
                }
            }
        }
        self.show(cluster::BLOCKS_SCANNED, u64::from(blocks));
        self.show_tuples();
        Ok(())
    }

    fn show_tuples(&self) {
        let kept = self.done.live + self.done.recently_dead;
        self.show(cluster::TUPLES_SCANNED, kept + self.done.removed);
        self.show(cluster::TUPLES_WRITTEN, self.written);
    }

    /// Copies in the order of the keys.
    fn sorted(&mut self, sorter: Sorter) -> Result<()> {
        self.show(cluster::PHASE, cluster::SORTING);
        let mut sorted = sorter.finish()?;
        self.show(cluster::PHASE, cluster::WRITING);
        let old = Arc::clone(self.old);
        let mut slot = TupleSlot::new();
        while let Some(tid) = sorted.next_address()? {
            if self.written.is_multiple_of(64) {
                self.state.check_cancel()?;
                self.show_tuples();
            }
            if !old.fetch_any(tid, &mut slot)? {
                base::bail!(DATA_CORRUPTED, "row {tid} of \"{}\" is gone", self.before.name);
            }
            let t = slot.view();
            let verdict = self.judge(&t, tid)?;
            self.copy(&t, verdict)?;
        }
        Ok(())
    }

    /// Live, recently dead, or to be left behind.
    fn judge(&mut self, t: &TupleView<'_>, tid: Tid) -> Result<Verdict> {
        let txns = &self.old.context().txns;
        Ok(match satisfies_vacuum(t, txns, &self.horizon, &mut self.hints)? {
            // What this very transaction has done.
            Verdict::InsertInProgress if self.txn.is_mine(t.raw_xmin()) => Verdict::Live,
            Verdict::DeleteInProgress if self.txn.is_mine(t.xmax()) => Verdict::RecentlyDead,
            Verdict::InsertInProgress | Verdict::DeleteInProgress => base::bail!(
                INTERNAL_ERROR,
                "row {tid} of \"{}\" is being changed in spite of the lock on its table",
                self.before.name
            ),
            settled => settled,
        })
    }

    fn copy(&mut self, t: &TupleView<'_>, verdict: Verdict) -> Result<()> {
        self.written += 1;
        let columns = &self.before.columns;
        let as_it_is =
            !t.has_external() && t.natts() == columns.len() && !columns.iter().any(|c| c.dropped);
        let tuple = if as_it_is { t.bytes.to_vec() } else { self.gathered(t)? };
        let frozen = t.infomask() & XMIN_FROZEN == XMIN_FROZEN;
        let settled = frozen || t.raw_xmin() < self.horizon.oldest_xmin;
        if settled && verdict == Verdict::Live {
            self.pending.push(tuple);
            return if self.pending.len() >= BATCH { self.write_pending() } else { Ok(()) };
        }
        self.recent.frozen = settled;
        self.recent.xmin = if settled { None } else { Some(t.raw_xmin()) };
        let tid = self.new.heap.insert(self.txn, &tuple, &mut self.recent)?;
        self.len = self.len.max(tid.block.0 + 1);
        if verdict == Verdict::RecentlyDead {
            self.new.heap.end_version(tid, t.xmax())?;
        }
        Ok(())
    }

    /// A row with all that belongs to it: what is out of line is fetched, and a compressed value stays so.
    fn gathered(&self, t: &TupleView<'_>) -> Result<Vec<u8>> {
        let columns = &self.before.columns;
        let mut attrs = vec![AttrValue::Null; columns.len()];
        page::tuple::deform(t.bytes, &self.desc, &mut attrs).map_err(base::Error::corrupt_file)?;
        let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); columns.len()];
        for (i, (attr, bytes)) in attrs.iter().zip(&mut bytes).enumerate() {
            let column = &columns[i];
            match (attr, &column.missing) {
                _ if column.dropped => {}
                (AttrValue::External(p), _) => {
                    let store = self.old.options().toast.as_deref();
                    *bytes = heap::toast::fetch_stored(p, store)?;
                }
                (AttrValue::Null, Some(value)) if i >= t.natts() && !value.is_null() => {
                    types::encode(column.ty.oid, value, bytes)?;
                }
                _ => {}
            }
        }
        let attr = |i: usize| match (attrs[i], &columns[i].missing) {
            _ if columns[i].dropped => AttrValue::Null,
            (AttrValue::External(p), _) if p.compressed => {
                AttrValue::Compressed { raw_size: p.raw_size, data: &bytes[i] }
            }
            (AttrValue::External(_), _) => AttrValue::Inline(&bytes[i]),
            (AttrValue::Null, Some(value)) if i >= t.natts() && !value.is_null() => {
                AttrValue::Inline(&bytes[i])
            }
            (attr, _) => attr,
        };
        let values: Vec<AttrValue<'_>> = (0..columns.len()).map(attr).collect();
        Ok(page::tuple::form_values(&self.desc, &values))
    }

    fn write_pending(&mut self) -> Result<()> {
        let heap = &self.new.heap;
        heap.multi_insert(self.txn, &self.pending, &mut self.frozen, &mut self.tids)?;
        self.pending.clear();
        self.txn.manager().log().give_way_to_commits(&mut self.log_turn);
        self.len = self.tids.drain(..).fold(self.len, |len, tid| len.max(tid.block.0 + 1));
        Ok(())
    }

    fn finish(mut self) -> Result<Compacted> {
        self.write_pending()?;
        self.show_tuples();
        let len = BlockNumber(self.len);
        self.new.heap.finish_new(&mut [self.frozen, self.recent], len)?;
        Ok(self.done)
    }
}
