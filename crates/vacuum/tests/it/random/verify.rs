//! What must be so after each VACUUM.

use super::*;

impl Test {
    /// What no snapshot can see is gone; so are, after index clean-up, all dead line pointers.
    pub(super) fn nothing_left(&self, options: &VacuumOptions, report: &VacuumReport) {
        assert_eq!(report.counts.missed_dead_pages, 0, "{}: nobody has a pin", self.context);
        let txns = &self.w.ctx.txns;
        let live = txns.live_snapshots();
        let small = self.w.settings.work_mem_bytes < 1 << 20;
        let state = |xid: Xid| match txns.status(xid).unwrap() {
            XidStatus::Committed(csn) => (true, csn),
            _ => (false, base::Csn(0)),
        };
        for n in 0..self.w.heap.len_blocks().unwrap().0 {
            let block = BlockNumber(n);
            let rel = self.w.heap.relation();
            let pin = rel.pin(Fork::Main, block, &mut buffer::Strategy::Normal).unwrap();
            let page = pin.read();
            for offset in page.offsets() {
                let id = page.item_id(offset);
                let tid = Tid::new(block, offset);
                if id.is_dead() {
                    assert_ne!(
                        options.index_cleanup,
                        IndexCleanup::On,
                        "{}: {tid} is still dead after index clean-up",
                        self.context
                    );
                }
                if !id.is_normal() || txns.row_locks().is_locked(rel.id(), tid) {
                    continue;
                }
                let t = page.tuple(offset);
                let (xmin, xmax) = (t.xmin(), t.xmax());
                let running = xmin.is_normal() && txns.in_progress(xmin).unwrap();
                let born = running || state(xmin).0;
                assert!(born, "{}: {tid} of aborted {xmin} is left", self.context);
                let gone = xmax.is_valid() && xmax < report.cutoffs.oldest_xmin && state(xmax).0;
                assert!(!gone, "{}: {tid}, removed by {xmax}, is left", self.context);
                // Nor what was born after one snapshot and died before the next; but a root to which others lead
                // may stay for its HOT chain.
                if small || !xmax.is_valid() || t.infomask() & XMAX_INVALID != 0 || !state(xmax).0 {
                    continue;
                }
                let seen = running || live.any_between(state(t.raw_xmin()).1, state(xmax).1);
                let root = t.infomask() & UPDATED != 0 && !t.is_heap_only() && t.is_hot_updated();
                assert!(seen || root, "{}: {tid}, {xmin} to {xmax}, is left", self.context);
            }
        }
    }

    /// Every open snapshot reads what the model says, by every way.
    pub(super) fn verify(&mut self) {
        let marks = self.cancels.random();
        let check = |what: &str, snapshot: &Arc<Snapshot>, rows: &Rows, indexes: usize| {
            let context = format!("{}, {what}", self.context);
            let found = values(&by_scan(&self.w, snapshot));
            assert_eq!(&found, rows, "{context}: by the heap");
            for i in 0..indexes {
                let found = by_index(&self.w, i, snapshot, marks);
                let mut rows = rows.clone();
                rows.retain(|k, v| self.w.has(i, *k, v));
                if found != rows {
                    let lost: Vec<_> =
                        rows.keys().filter(|k| found.get(k) != rows.get(k)).collect();
                    panic!("{context}: by index {i}: {} rows, {lost:?} differ", found.len());
                }
            }
        };
        for (n, kept) in self.kept.iter().enumerate() {
            let indexes = if kept.too_old { 1 } else { self.w.indexes.len() };
            check(&format!("kept snapshot {n}"), &kept.snapshot, &kept.rows, indexes);
        }
        for (n, session) in self.sessions.iter().enumerate() {
            let Some(session) = session else { continue };
            let mut rows = session.view(&self.committed);
            // What it changed with the present command is not seen before the next.
            session.txn.advance_command().unwrap();
            let snapshot = session.txn.take_snapshot();
            check(&format!("session {n}"), &snapshot, &rows, self.w.indexes.len());
            rows.clear();
        }
    }

    /// From every version that some snapshot sees the way leads to the row's newest version.
    pub(super) fn follow_all(&mut self) {
        let probe = self.w.begin();
        let waiting = self.sessions.iter().flatten().filter_map(|s| s.statement.as_ref());
        let found: Vec<Found> = self
            .kept
            .iter()
            .map(|k| by_scan(&self.w, &k.snapshot))
            .chain(waiting.map(|s| s.found.clone()))
            .collect();
        let all = found.iter().flatten();
        let modes = [RowLockMode::KeyShare, RowLockMode::Share];
        for ((key, (tid, _)), mode) in all.flat_map(|f| modes.map(|mode| (f, mode))) {
            let mut slot = TupleSlot::new();
            let context = format!("{}: following {key} from {tid}", self.context);
            let heap = &self.w.heap;
            let mut outcome =
                heap.lock_tuple(&probe, *tid, mode, Wait::NoWait, Some(&mut slot)).unwrap();
            if let TupleOutcome::Updated { next, xmax } = outcome {
                outcome = heap
                    .lock_latest(&probe, *tid, next, xmax, mode, Wait::NoWait, &mut slot)
                    .unwrap();
            }
            let newest = self.committed.get(key);
            match outcome {
                // The version that was seen, perhaps: the row is there.
                TupleOutcome::Ok(()) if slot.tid == *tid && mode == RowLockMode::KeyShare => {
                    assert!(newest.is_some(), "{context}");
                }
                TupleOutcome::Ok(()) => {
                    let (k, v) = read_row(&slot.bytes);
                    assert_eq!((k, Some(&v)), (*key, newest), "{context}");
                    self.counts[3] += 1;
                }
                TupleOutcome::Deleted { .. } => assert_eq!(newest, None, "{context}"),
                TupleOutcome::WouldBlock => {}
                // A waiting statement's own transaction has inserted it.
                TupleOutcome::Invisible => {
                    let own = self.sessions.iter().flatten().any(|s| s.touched(*key));
                    assert!(own, "{context}");
                }
                other => panic!("{context}: {other:?}"),
            }
        }
        probe.abort().unwrap();
    }
}
