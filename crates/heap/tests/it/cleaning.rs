//! Cleaning a page in one visit, and what may happen to the page between planning and doing.

use crate::common::{World, row, world, world_with};
use base::{BlockNumber, Fork, OffsetNumber, Oid, RelationId, Tid, Xid};
use buffer::{Persistence, PinnedPage, Strategy};
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{
    ALL_KEPT, FreezeEarly, FreezePolicy, Heap, HeapOptions, Horizon, MapPin, PageFindings, Planned,
    PruneDone, PruneOptions, RowLockMode, TupleOutcome, UpdateOptions, Wait,
};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc};
use txn::CommitExtras;

const HOT: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
const COLD: UpdateOptions = UpdateOptions { hot: false, ..HOT };

/// A page on its way through the three steps.
struct Visit<'a> {
    w: &'a World,
    pin: PinnedPage,
    map: MapPin,
    horizon: Horizon,
    planned: Planned,
    /// Roots and their keys.
    roots: Vec<(OffsetNumber, Option<u64>)>,
}

fn options(w: &World, map: &mut MapPin, block: BlockNumber, horizon: &Horizon) -> PruneOptions {
    let freeze = FreezePolicy {
        freeze_limit: horizon.oldest_xmin,
        oldest_xmin: horizon.oldest_xmin,
        early: FreezeEarly::Never,
        still_changing_from: Xid::MAX,
        at_will: false,
    };
    let bits = w.heap.visibility_map().bits(block, map).unwrap();
    PruneOptions {
        prune: true,
        no_indexes: false,
        freeze,
        map_bits: Some(bits),
        kept_attributes: ALL_KEPT,
    }
}

impl<'a> Visit<'a> {
    fn plan(w: &'a World, block: u32) -> Visit<'a> {
        let horizon = w.heap.horizon();
        let block = BlockNumber(block);
        let mut map = MapPin::none();
        w.heap.visibility_map().pin(block, &mut map).unwrap();
        let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
        let guard = pin.read();
        let options = options(w, &mut map, block, &horizon);
        let planned = w.heap.plan(&guard, block, &options, &horizon).unwrap();
        let desc = TupleDesc::new(vec![PhysicalAttr::new(8, 8)]);
        let key = |source: &page::tuple::KeySource<'_>| {
            let mut out = [None];
            source.deform(&desc, &mut out).unwrap();
            match out {
                [Some(AttrValue::Inline(k))] => {
                    assert_eq!(source.plain(1).unwrap()[..8], *k);
                    u64::from_le_bytes(k.try_into().unwrap())
                }
                other => panic!("{other:?}"),
            }
        };
        let mut roots = Vec::new();
        let all = planned.roots(&guard, |o, s| {
            roots.push((o, s.map(key)));
            Ok(true)
        });
        assert!(all.unwrap());
        drop(guard);
        Visit { w, pin, map, horizon, planned, roots }
    }

    fn offsets(&self) -> Vec<OffsetNumber> {
        self.roots.iter().map(|r| r.0).collect()
    }

    fn clean(mut self, cleaned: &[OffsetNumber]) -> (PruneDone, PageFindings) {
        let mut guard = self.pin.cleanup().unwrap();
        let options = options(self.w, &mut self.map, guard.block(), &self.horizon);
        let heap = &self.w.heap;
        heap.clean(&mut guard, &self.map, self.planned, cleaned, &options, &self.horizon).unwrap()
    }
}

fn committed<R>(w: &World, f: impl FnOnce(&txn::Transaction) -> R) -> R {
    let t = w.begin();
    let r = f(&t);
    t.commit(CommitExtras::default()).unwrap();
    r
}

fn five_rows(w: &World) -> Vec<Tid> {
    committed(w, |t| (0..5).map(|k| w.insert(t, k, b"row")).collect())
}

fn delete(w: &World, tid: Tid) {
    committed(w, |t| {
        assert_eq!(w.heap.delete(t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()))
    });
}

fn update(w: &World, tid: Tid, key: u64, how: UpdateOptions) -> Tid {
    committed(w, |t| match w.heap.update(t, tid, &row(key, b"new"), how).unwrap() {
        TupleOutcome::Ok(done) => done.tid,
        other => panic!("{other:?}"),
    })
}

fn keys(w: &World) -> Vec<u64> {
    let t = w.begin();
    w.rows(&t.take_snapshot()).into_keys().collect()
}

/// The states of a page's line pointers: normal, redirect, dead, unused.
fn drawn(w: &World) -> String {
    let page = w.page(Fork::Main, 0);
    page.offsets().map(|o| ['-', 'n', 'r', 'd'][page.item_id(o).state() as usize]).collect()
}

/// It is not listed: its entries are looked for by that key, in a later visit.
#[test]
fn a_row_that_died_after_the_page_was_planned_keeps_its_key() {
    let w = world();
    let tids = five_rows(&w);
    delete(&w, tids[1]);
    delete(&w, tids[4]);
    let mut visit = Visit::plan(&w, 0);
    let listed = visit.offsets();
    delete(&w, tids[2]);
    visit.horizon = w.heap.horizon();
    assert_eq!(visit.clean(&listed).1.dead_items, [tids[2].offset]);
    assert_eq!(Visit::plan(&w, 0).roots, [(tids[2].offset, Some(2))]);
    assert_eq!(keys(&w), [0, 3]);
    w.assert_replay_equal();
}

#[test]
fn one_record_frees_freezes_and_sets_the_map() {
    let w = world();
    let tids = five_rows(&w);
    delete(&w, tids[1]);
    delete(&w, tids[4]);
    update(&w, tids[2], 2, HOT);
    let visit = Visit::plan(&w, 0);
    assert!(visit.planned.can_wait());
    assert_eq!(visit.roots, [(OffsetNumber(2), Some(1)), (OffsetNumber(5), Some(4))]);
    assert_eq!(drawn(&w), "nnnnnn", "planning changes nothing");
    let lsn = w.ctx.wal.insert_lsn();
    let all = visit.offsets();
    let (done, found) = visit.clean(&all);
    assert_eq!(w.records_since(lsn).len(), 1);
    assert!(w.log_since(lsn).contains(" clean 2 5 "), "{}", w.log_since(lsn));
    assert_eq!((done.removed, done.frozen, found.live_tuples), (3, 3, 3));
    assert!(done.set_all_visible && done.set_all_frozen && found.dead_items.is_empty());
    assert_eq!(drawn(&w), "n-rn-n");
    assert_eq!(w.page(Fork::Main, 0).wasted_space(), 0);
    assert_eq!(keys(&w), [0, 2, 3]);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_page_of_dead_rows_is_empty_afterwards() {
    let w = world();
    let tids = five_rows(&w);
    tids.iter().for_each(|t| delete(&w, *t));
    let visit = Visit::plan(&w, 0);
    let all = visit.offsets();
    let (done, found) = visit.clean(&all);
    assert_eq!((done.removed, done.unused), (5, 5));
    assert!(!found.in_use && found.all_frozen && done.set_all_frozen);
    assert_eq!(drawn(&w), "", "the line pointers go too");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn chains_go_whole_under_the_key_of_their_last_version() {
    let w = world();
    let tids = five_rows(&w);
    let last = update(&w, update(&w, tids[0], 0, HOT), 70, HOT);
    delete(&w, last);
    // Another chain, of which pruning has left a redirect.
    let last = update(&w, tids[3], 3, HOT);
    let first = Visit::plan(&w, 0);
    assert_eq!(first.roots, [(OffsetNumber(1), Some(70))]);
    let all = first.offsets();
    first.clean(&all);
    assert_eq!(drawn(&w), "-nnrn--n");
    delete(&w, last);
    let second = Visit::plan(&w, 0);
    assert_eq!(second.roots, [(OffsetNumber(4), Some(3))]);
    let all = second.offsets();
    second.clean(&all);
    assert_eq!(drawn(&w), "-nn-n");
    assert_eq!(keys(&w), [1, 2, 4]);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn what_pruning_on_access_left_is_freed_too() {
    let w = world();
    let tids = five_rows(&w);
    delete(&w, tids[0]);
    // Dead line pointers with their keys, from an earlier visit whose list was empty.
    Visit::plan(&w, 0).clean(&[]);
    assert_eq!(drawn(&w), "dnnnn");
    delete(&w, tids[2]);
    let visit = Visit::plan(&w, 0);
    assert_eq!(visit.roots, [(OffsetNumber(1), Some(0)), (OffsetNumber(3), Some(2))]);
    let all = visit.offsets();
    visit.clean(&all);
    assert_eq!(drawn(&w), "-n-nn");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_page_pruned_in_between_is_judged_again() {
    let w = world();
    let tids = five_rows(&w);
    delete(&w, tids[0]);
    update(&w, tids[2], 2, HOT);
    let visit = Visit::plan(&w, 0);
    // Somebody else prunes it.
    Visit::plan(&w, 0).clean_from(&visit.pin);
    assert_eq!(drawn(&w), "dnrnnn");
    // And a row is inserted, one is deleted.
    committed(&w, |t| w.insert(t, 9, b"row"));
    delete(&w, tids[1]);
    let all = visit.offsets();
    assert_eq!(all, [OffsetNumber(1)]);
    let (done, found) = visit.clean(&all);
    assert_eq!((done.removed, done.unused), (0, 1), "the later deletion is not this vacuum's");
    assert!(!found.all_visible);
    assert_eq!(drawn(&w), "-nrnnnn");
    assert_eq!(keys(&w), [2, 3, 4, 9]);
    w.check();
    w.assert_replay_equal();
}

impl Visit<'_> {
    /// Cleans with an empty list, through another's pin.
    fn clean_from(mut self, pin: &PinnedPage) {
        drop(self.pin);
        let mut guard = pin.cleanup().unwrap();
        let options = options(self.w, &mut self.map, guard.block(), &self.horizon);
        let heap = &self.w.heap;
        heap.clean(&mut guard, &self.map, self.planned, &[], &options, &self.horizon).unwrap();
    }
}

#[test]
fn an_abort_in_between_leaves_dead_line_pointers() {
    let w = world();
    let tids = five_rows(&w);
    delete(&w, tids[0]);
    let aborts = w.begin();
    w.insert(&aborts, 8, b"never was");
    let visit = Visit::plan(&w, 0);
    assert_eq!(visit.offsets(), [OffsetNumber(1)]);
    aborts.abort().unwrap();
    // The page is as it was: the plan holds, and takes the row for one being inserted.
    visit.clean(&[OffsetNumber(1)]);
    assert_eq!(drawn(&w), "-nnnnn");
    let aborts = w.begin();
    w.insert(&aborts, 8, b"never was");
    let visit = Visit::plan(&w, 0);
    assert_eq!(visit.offsets(), [OffsetNumber(6)]);
    aborts.abort().unwrap();
    committed(&w, |t| w.insert(t, 9, b"row"));
    let (_, found) = visit.clean(&[OffsetNumber(6)]);
    // It took the place that was free.
    assert_eq!(found.dead_items, [OffsetNumber(1)]);
    assert_eq!(drawn(&w), "dnnnn-n");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn what_is_not_on_the_list_stays() {
    let w = world();
    let tids = five_rows(&w);
    [0, 2, 4].iter().for_each(|n| delete(&w, tids[*n]));
    let visit = Visit::plan(&w, 0);
    // The key of one was not found.
    let (done, found) = visit.clean(&[OffsetNumber(1), OffsetNumber(5)]);
    assert_eq!((done.removed, done.unused), (3, 2));
    assert_eq!(found.dead_items, [OffsetNumber(3)]);
    assert!(found.all_visible_but_dead_items && !found.all_visible && !done.set_all_visible);
    assert_eq!(drawn(&w), "-ndn");
    let visit = Visit::plan(&w, 0);
    assert_eq!(visit.roots, [(OffsetNumber(3), Some(2))]);
    // A list that names what is not dead frees nothing of it.
    let (done, _) = visit.clean(&[1, 2, 3, 4].map(OffsetNumber));
    assert!(done.set_all_visible && done.set_all_frozen);
    assert_eq!(drawn(&w), "-n-n");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_locked_row_keeps_its_place() {
    let w = world();
    let tids = five_rows(&w);
    let holder = w.begin();
    let locked = w.heap.lock_tuple(&holder, tids[0], RowLockMode::KeyShare, Wait::NoWait, None);
    assert!(matches!(locked, Ok(TupleOutcome::Ok(_))), "{locked:?}");
    update(&w, tids[0], 0, COLD);
    let visit = Visit::plan(&w, 0);
    assert!(visit.roots.is_empty() && !visit.planned.can_wait());
    // Even if the list names it.
    visit.clean(&[OffsetNumber(1)]);
    assert_eq!(drawn(&w), "nnnnnn");
    holder.commit(CommitExtras::default()).unwrap();
    let visit = Visit::plan(&w, 0);
    let all = visit.offsets();
    visit.clean(&all);
    assert_eq!(drawn(&w), "-nnnnn");
    w.check();
}

#[test]
fn a_snapshot_keeps_its_versions_and_the_middle_goes_the_old_way() {
    let w = world();
    let tids = five_rows(&w);
    let reader = w.begin();
    let snapshot = reader.take_snapshot();
    delete(&w, tids[0]);
    let visit = Visit::plan(&w, 0);
    assert!(visit.roots.is_empty(), "{:?}", visit.roots);
    drop(visit);
    let second = update(&w, tids[1], 1, COLD);
    update(&w, second, 1, COLD);
    let horizon = w.heap.exact_horizon();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let map = &mut MapPin::none();
    let options = options(&w, map, BlockNumber(0), &horizon);
    let planned = w.heap.plan(&pin.read(), BlockNumber(0), &options, &horizon).unwrap();
    assert!(planned.findings().middle && !planned.can_wait());
    drop(planned);
    assert_eq!(w.rows(&snapshot).len(), 5);
}

#[test]
fn an_unlogged_page_is_judged_again_in_any_case() {
    let w = world_with(Xid(100), HeapOptions::default());
    let tids = five_rows(&w);
    delete(&w, tids[0]);
    let visit = Visit::plan(&w, 0);
    let all = visit.offsets();
    // As if it could not be told whether the page has changed: the LSN moves without the page.
    {
        let mut guard = visit.pin.write();
        let lsn = guard.lsn();
        guard.mark_dirty();
        guard.set_lsn(base::Lsn(lsn.0 + 8));
    }
    let (done, _) = visit.clean(&all);
    assert_eq!((done.removed, done.unused), (1, 1));
    assert_eq!(w.heap.visibility_map().bits(BlockNumber(0), &mut MapPin::none()).unwrap(), {
        ALL_VISIBLE | ALL_FROZEN
    });
    w.check();
}

/// Nothing tells whether a page has changed that is not logged.
#[test]
fn what_came_to_a_page_without_a_log_is_seen_to() {
    let w = world();
    let id = RelationId { database: Oid(5), file_number: 16399 };
    let rel = w.ctx.pool.create(id, Persistence::Unlogged).unwrap();
    let heap = Heap::new(rel.clone(), w.ctx.clone(), w.heap.options().clone());
    let w = World { rel, heap, ..w };
    let tids = five_rows(&w);
    delete(&w, tids[0]);
    let visit = Visit::plan(&w, 0);
    let all = visit.offsets();
    let running = w.begin();
    w.insert(&running, 9, b"new");
    let (done, _) = visit.clean(&all);
    assert_eq!((done.removed, done.unused), (1, 1));
    assert_eq!(w.heap.visibility_map().bits(BlockNumber(0), &mut MapPin::none()).unwrap(), 0);
    running.abort().unwrap();
    assert_eq!(keys(&w), [1, 2, 3, 4]);
    w.check();
}
